# SPDX-License-Identifier: BSD-3-Clause
"""Native means native: which of torch's kernels the bridge may reach, read off its symbols, and which operators an mps program runs: a training step
under torch.profiler, and every operator of PyTorch's database under its execution trace, which tells the device of each tensor."""
import contextlib
import glob
import os
import subprocess
import sys
import warnings

import torch
import torchgen
from torch.profiler import ProfilerActivity, profile
from torchgen.gen import parse_native_yaml
from torchgen.model import DispatchKey

import openmps

sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from tests import entries  # noqa: E402
from tests.conformance.samples import OPERATORS, dtypes_of  # noqa: E402

# Kernels of the wheel that only rearrange metadata or call other operators through the dispatcher (EXPORTED in bridge/codegen/generate.py),
# and helpers without arithmetic.
COMPOSITIONS = {
    "_reshape_alias", "as_strided_tensorimpl", "cholesky_inverse", "cholesky_out", "ctc_loss_backward_tensor", "ctc_loss_tensor",
    "dense_to_sparse", "dense_to_sparse_bsc", "dense_to_sparse_bsr",
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


# Calls that move no number, or read one that Python gave or the device copied: a Python number is a tensor of the CPU, and so is an argument of .cpu().
NO_ARITHMETIC = {"item", "_local_scalar_dense", "as_strided", "narrow", "slice.Tensor", "view", "reshape", "detach", "unsqueeze", "select.int", "expand", "alias", "is_nonzero",
                 "empty_like", "resolve_conj", "resolve_neg", "to.dtype", "to.device", "to.dtype_layout", "_to_copy", "copy_", "clone", "resize_", "contiguous", "lift_fresh", "detach_",
                 "squeeze", "set_.source_Tensor", "set_.source_Storage_storage_offset", "empty_strided", "size", "stride", "flatten.using_ints", "permute", "transpose.int", "t"}
# Dense mathematics has a provider (docs/decisions/0004-dense-provider.md).
PROVIDER = ("convolution", "convolution_backward")


def on_cpu(call):
    return bool(call.tensors) and all(device == "cpu" for _, device in call.tensors)


def cpu_calls(calls):
    """(call, the mps call around it or None) for each call whose tensors are all on the CPU, without those inside of another such call."""
    numbered = {call.number: call for call in calls}
    for call in calls:
        if not on_cpu(call):
            continue
        around, at = [], numbered.get(call.parent)
        while at is not None and at.parent != at.number:
            around.append(at)
            at = numbered.get(at.parent)
        if not any(on_cpu(a) for a in around):
            yield call, next((a for a in around if any(d.startswith("mps") for _, d in a.tensors + a.results)), None)



# No sample of these reaches mps: CUDA's alone, float8 or double precision, no tensors (broadcast_shapes) or a split by a CPU tensor, no samples on a CPU.
UNSEEN = {
    "jiterator_unary", "jiterator_binary", "jiterator_binary_return_by_ref", "jiterator_2inputs_2outputs", "jiterator_4inputs_with_extra_args",
    "torch.ops.aten._flash_attention_forward", "torch.ops.aten._efficient_attention_forward", "nn.functional.batch_norm.without_cudnn",
    "torch._scaled_mm", "torch._scaled_mm_v2", "float_power", "double", "cdouble", "softmax.with_dtype", "log_softmax.with_dtype", "to",
    "broadcast_shapes", "tensor_split",
}


def first_samples(op):
    """One of float32, or of the first dtype there is; none where the database makes none."""
    dtypes = dtypes_of(op)
    for dtype in sorted(dtypes, key=lambda d: d != torch.float32)[:1]:
        with contextlib.suppress(Exception):
            return entries.samples(op, dtype)
    return []


def traced_operators(names):
    """(operator, the calls it made); without calls where there is no sample."""
    warnings.simplefilter("ignore")
    for name in sorted(set(names) - entries.UNTRACEABLE):
        calls = []
        for arguments, sample in first_samples(OPERATORS[name]):
            with contextlib.suppress(Exception), entries.traced() as seen:
                entries.exercise(OPERATORS[name], arguments, sample)
            calls += seen
        yield name, calls


def offences(names):
    """(what computes on the CPU, the operators that called nothing on mps)"""
    found, unseen = [], set()
    for name, calls in traced_operators(names):
        if not any(device.startswith("mps") for call in calls for _, device in call.tensors + call.results):
            unseen.add(name)
        for call, around in cpu_calls(calls):
            if call.name in PROVIDER or call.name in NO_ARITHMETIC:
                continue
            found.append(f"{name}: {call.name} of {call.tensors}" + (f" inside of {around.name}" if around else ""))
    return found, unseen


def test_no_operator_computes_on_the_cpu():
    """Forward, out=, in-place and backward of one sample of each operator: whatever runs below has its tensors on mps."""
    found, unseen = offences(OPERATORS)
    assert not found, "\n".join(found)
    assert unseen <= UNSEEN, unseen - UNSEEN


def test_a_computation_on_the_cpu_would_be_noticed():
    with entries.traced() as calls:
        torch.add(torch.ones(3), 1)
        torch.ones(3, device="mps") + 1
    assert {call.name for call, _ in cpu_calls(calls)} >= {"add.Tensor"}
    assert [call.name for call, around in cpu_calls(calls) if around is not None and call.name not in NO_ARITHMETIC] == []
