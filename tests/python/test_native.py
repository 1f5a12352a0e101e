# SPDX-License-Identifier: BSD-3-Clause
"""Native means native: which of torch's kernels the bridge may reach, read off its symbols, and which operators an mps program runs."""
import glob
import os
import subprocess

import torch
import torchgen
from torch.profiler import ProfilerActivity, profile
from torchgen.gen import parse_native_yaml
from torchgen.model import DispatchKey

import openmps

# Kernels of the wheel that only rearrange metadata or call other operators through the dispatcher (EXPORTED in bridge/codegen/generate.py),
# and helpers without arithmetic.
COMPOSITIONS = {
    "_reshape_alias", "as_strided_tensorimpl", "cholesky_inverse", "cholesky_out", "dense_to_sparse", "dense_to_sparse_bsc", "dense_to_sparse_bsr",
    "dense_to_sparse_csc", "dense_to_sparse_csr", "hardtanh", "hardtanh_",
    "hardtanh_out", "index_fill_", "is_set_to", "isnan", "linalg_householder_product", "lstm", "mvlgamma_out", "permute", "remainder",
    "resize_output", "resize_output_check", "result_type", "roll", "rsub", "set_", "set_tensor_", "structured__linalg_det_out",
    "structured__linalg_slogdet_out", "structured_isin_Tensor_Scalar_out", "structured_linalg_lu_out", "unfold", "update_result_type_state",
    "view", "view_as_complex", "view_as_real", "zero_",
}


def shared_by_sparse():
    """The CPU's kernels for sparse tensors that are CUDA's or MPS's too: compositions, bridge/codegen/generate.py registers them."""
    folder = os.path.join(os.path.dirname(torchgen.__file__), "packaged/ATen/native")
    indices = parse_native_yaml(f"{folder}/native_functions.yaml", f"{folder}/tags.yaml").backend_indices
    found = set()
    for kind in ("Sparse", "SparseCsr"):
        cpu, cuda, mps = (indices[getattr(DispatchKey, kind + device)].index for device in ("CPU", "CUDA", "MPS"))
        for name, kernel in cpu.items():
            if kernel.kernel in {index[name].kernel for index in (cuda, mps) if name in index}:
                found |= {kernel.kernel, f"{kernel.kernel}_symint"}
    return found | {"get_reduction_enum"}


FALLBACK = {"cpu_fallback"}  # only with PYTORCH_ENABLE_MPS_FALLBACK=1


def undefined_symbols():
    library = glob.glob(os.path.join(os.path.dirname(openmps.__file__), "_bridge*.so"))[0]
    text = subprocess.run(["nm", "-D", "--undefined-only", "--demangle", library], capture_output=True, text=True, check=True).stdout
    return [line.split(" U ", 1)[1] for line in text.splitlines() if " U " in line]


def names(prefix):
    return {s[len(prefix):].split("(")[0].split("::")[0].split("<")[0] for s in undefined_symbols() if s.startswith(prefix)}


def test_no_cpu_kernel_is_called_by_name():
    assert names("at::cpu::") == set()
    assert not [s for s in undefined_symbols() if "_stub" in s or "DispatchStub" in s]


def test_only_compositions_of_the_wheel_are_registered():
    assert names("at::native::") <= COMPOSITIONS | FALLBACK | shared_by_sparse()


def ancestors(event):
    while event.cpu_parent is not None:
        event = event.cpu_parent
        yield event


def test_no_operator_runs_one_of_its_own_name_underneath():
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Flatten(),
                                torch.nn.Linear(8 * 7 * 7, 10), torch.nn.LayerNorm(10), torch.nn.GELU()).to("mps")
    update = torch.optim.AdamW(model.parameters(), fused=True)
    x, y = torch.randn(4, 3, 16, 16, device="mps"), torch.randint(10, (4,), device="mps")
    with profile(activities=[ProfilerActivity.CPU]) as trace:
        torch.nn.functional.cross_entropy(model(x), y).backward()
        update.step()
        values, index = x.flatten().sort()
        values[index % 7].softmax(0).sum().item()
    events = [e for e in trace.events() if e.name.startswith("aten::")]
    assert len({e.name for e in events}) > 30
    nested = {e.name for e in events if any(a.name == e.name for a in ancestors(e))}
    # Convolutions go to the provider; item() reads the one element that it copied to the CPU.
    assert nested <= {"aten::convolution", "aten::convolution_backward", "aten::item", "aten::_local_scalar_dense"}
