# SPDX-License-Identifier: BSD-3-Clause
"""What there is to run: the cases (operator or module, dtype), their samples, tolerances, and samples moved between devices."""
import contextlib
import random

import numpy
import torch
import torch.testing._internal.common_methods_invocations as invocations
from torch.testing._internal.common_device_type import precisionOverride, toleranceOverride
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_modules import module_db
from torch.testing._internal.common_utils import noncontiguous_like
from torch.testing._internal.opinfo.core import DecorateInfo, UnaryUfuncInfo

from tests.python import compare

DOUBLE = (torch.float64, torch.complex128)
WIDE = {torch.float16: torch.float64, torch.bfloat16: torch.float64, torch.float32: torch.float64,
        torch.complex32: torch.complex128, torch.complex64: torch.complex128}
SUITES = (None, "TestCommon", "TestUnaryUfuncs", "TestBinaryUfuncs", "TestReductions", "TestConsistency", "TestModule")

# Random operators seed themselves in OpInfo; without that, exceptions.py's random.txt can be told by running twice.
invocations.wrapper_set_seed = lambda op, *args, **kwargs: op(*args, **kwargs)

OPERATORS = {op.full_name: op for op in op_db}
MODULES = {info.name: info for info in module_db}


def name_of(dtype):
    return str(dtype).removeprefix("torch.")


def dtypes_of(entry):
    """What the database claims on cpu or on mps, less double precision."""
    claimed = set(entry.supported_dtypes("cpu")) | set(entry.supported_dtypes("mps"))
    return sorted(claimed - set(DOUBLE), key=str)


def all_cases():
    """`operator:dtype` for each pair, and `operator:any` for error inputs, which have no dtype."""
    for table in (OPERATORS, MODULES):
        for name, entry in table.items():
            yield from (f"{name}:{name_of(dtype)}" for dtype in dtypes_of(entry))
            if (entry.error_inputs_func if table is OPERATORS else entry.module_error_inputs_func) is not None:
                yield f"{name}:any"


# Arguments that PyTorch wants on the CPU whatever the device.
STAY_ON_CPU = {"tensor_split": lambda sample: [a for a in sample.args if isinstance(a, torch.Tensor)]}


def seed():
    torch.manual_seed(0)
    numpy.random.seed(0)
    random.seed(0)


def spread(samples, limit):
    """(number, sample) of at most `limit` of them, evenly spread, the first and the last among them; all without a limit."""
    samples = list(samples)
    if not limit or len(samples) <= limit:
        return list(enumerate(samples))
    numbers = sorted({round(i * (len(samples) - 1) / (limit - 1)) for i in range(limit)})
    return [(i, samples[i]) for i in numbers]


def operator_samples(op, dtype, limit, requires_grad=False):
    """OpInfo's reference inputs, which begin with its sample inputs; for gradients the sample inputs alone."""
    seed()
    source = op.sample_inputs if requires_grad or op.reference_inputs_func is None else op.reference_inputs
    picked = spread(source("cpu", dtype, requires_grad=requires_grad), limit)
    for _, sample in picked if op.full_name in STAY_ON_CPU else ():
        for tensor in STAY_ON_CPU[op.full_name](sample):
            tensor.stays = True
    return picked


MOST_SPARSE = 10_000  # elements of a sparse sample: a few of OpInfo's are many times larger, and say nothing more
SPARSE_LAYOUTS = (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)


def sparse_samples(op, dtype, limit):
    """(layout, sample) of OpInfo's sparse inputs, for the layouts that it says the operator has; for unary operators a few of its dense ones."""
    for layout in SPARSE_LAYOUTS:
        if not op.supports_sparse_layout(layout):
            continue
        seed()
        name = str(layout).removeprefix("torch.")
        source = getattr(op, f"sample_inputs_{name}_func")
        if "unspecified" not in source.__name__:
            small = (sample for sample in source(op, "cpu", dtype, False) if sample.input.numel() <= MOST_SPARSE)
            yield from ((layout, sample) for _, sample in spread(small, limit and limit // 4))
        elif isinstance(op, UnaryUfuncInfo):
            blocks = {"blocksize": (1, 1)} if layout in (torch.sparse_bsr, torch.sparse_bsc) else {}
            dense = [s for s in op.sample_inputs("cpu", dtype) if s.input.dim() >= 2 and s.input.numel() and not s.input.is_conj()]
            for sample in dense[:2]:
                with contextlib.suppress(RuntimeError):  # matrices of a batch with different numbers of entries have no compressed layout
                    sample.input = sample.input.detach().to_sparse(layout=layout, **blocks)
                    yield layout, sample


def module_samples(info, dtype, training, limit, requires_grad=False):
    seed()
    return spread(info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=requires_grad, training=training), limit)


def tolerance(entry, dtype):
    """(rtol, atol) of the entry's decorators for this dtype, the loosest of the suites that compare values; None without."""
    loosest = None
    for decorator in entry.decorators:
        inner = [decorator]
        if isinstance(decorator, DecorateInfo):
            if decorator.cls_name not in SUITES or decorator.device_type not in (None, "cpu", "mps"):
                continue
            inner = decorator.decorators if decorator.dtypes is None or dtype in decorator.dtypes else []
        for each in inner:
            if isinstance(each, toleranceOverride) and dtype in each.d:
                pair = (each.d[dtype].rtol, each.d[dtype].atol)
            elif isinstance(each, precisionOverride) and dtype in each.d:
                pair = (0, each.d[dtype])
            else:
                continue
            loosest = pair if loosest is None else (max(loosest[0], pair[0]), max(loosest[1], pair[1]))
    return loosest


def transform(value, tensor, leaf=lambda x: x):
    """A copy of nested arguments: `tensor` applied to tensors, `leaf` to everything that is no container."""
    if isinstance(value, torch.Tensor):
        return tensor(value)
    if isinstance(value, torch.nn.Module):
        return value
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        elements = [transform(v, tensor, leaf) for v in value]
        return elements if isinstance(value, list) else tuple(elements) if type(value) is tuple else type(value)(*elements)
    if isinstance(value, dict):
        return {k: transform(v, tensor, leaf) for k, v in value.items()}
    return leaf(value)


def copy_tensor(x):
    if getattr(x, "stays", False):
        return x
    if x.layout != torch.strided:
        return x.detach().clone().requires_grad_(x.requires_grad)
    if x.device.type != "cpu":
        return x
    y = compare.clone(x.detach())
    y = torch._neg_view(y) if x.is_neg() else y
    return y.requires_grad_() if x.requires_grad else y


def mps_tensor(x):
    if x.device.type != "cpu" or getattr(x, "stays", False):
        return x
    if x.layout != torch.strided:
        return x.detach().to("mps").requires_grad_(x.requires_grad)
    return torch.nn.Parameter(compare.to_mps(x.detach()), x.requires_grad) if isinstance(x, torch.nn.Parameter) else compare.to_mps(x)


def strided(arguments):
    """SampleInput.noncontiguous(), but for tensors that stay on the CPU."""
    return transform(arguments, lambda x: x if getattr(x, "stays", False) else noncontiguous_like(x))


def leaf_on(device):
    """Devices among the arguments: every cpu and mps becomes `device`."""
    def leaf(x):
        if isinstance(x, torch.device) or isinstance(x, str) and x in ("cpu", "mps"):
            return device if isinstance(x, str) else torch.device(device)
        return x

    return leaf


def copied(arguments):
    return transform(arguments, copy_tensor, leaf_on("cpu"))


def on_mps(arguments):
    return transform(arguments, mps_tensor, leaf_on("mps"))


def widened(arguments, integers=None):
    """In double precision, as the judge of two results that differ. `integers`: a dtype that becomes float64 too."""
    wide = {**WIDE, integers: torch.float64} if integers else WIDE
    return transform(arguments, lambda x: x.detach().to(wide.get(x.dtype, x.dtype)).requires_grad_(x.requires_grad),
                     lambda x: wide.get(x, x) if isinstance(x, torch.dtype) else x)


def narrowed(arguments):
    """Without double precision, where that is not what is being looked at (error inputs)."""
    narrow = {torch.float64: torch.float32, torch.complex128: torch.complex64}
    return transform(arguments, lambda x: x.to(narrow[x.dtype]) if x.dtype in narrow else x)


def has_double(arguments):
    found = []
    transform(arguments, lambda x: found.append(x.dtype), found.append)
    return any(isinstance(x, torch.dtype) and x in DOUBLE for x in found)


def shown(arguments, limit=110):
    """A sample in a few words."""
    def word(x):
        if isinstance(x, torch.Tensor):
            return f"{name_of(x.dtype)}{list(x.shape)}" + ("" if x.layout != torch.strided or x.is_contiguous() else f"/{list(x.stride())}")
        if isinstance(x, (list, tuple)):
            return "(" + ", ".join(word(v) for v in x) + ")"
        if isinstance(x, dict):
            return ", ".join(f"{k}={word(v)}" for k, v in x.items())
        return f"{x!r:.40}"

    args, kwargs = arguments
    text = ", ".join([word(a) for a in args] + ([word(kwargs)] if kwargs else []))
    return text if len(text) <= limit else text[: limit - 3] + "..."
