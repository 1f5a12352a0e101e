# SPDX-License-Identifier: BSD-3-Clause
"""Which entries of the dispatcher a piece of work calls, with what dtypes and devices: torch.profiler's execution trace, read back.

    with traced() as calls: torch.add(x, y)          calls is a list of Call afterwards
    samples(op, dtype, count)                        the first samples of an operator of PyTorch's database, on mps
    exercise(op, sample, dtype)                      forward, out=, in-place and backward of one of them
    served_by()                                      {"add.Tensor": "add.out", ...}: the entry that carries each overload on mps
"""
import contextlib
import dataclasses
import functools
import itertools
import json
import os
import tempfile

import torch
import torchgen
from torch.profiler import ExecutionTraceObserver
from torchgen.gen import parse_native_yaml

from tests.conformance import samples as samples_

# As the trace spells them.
DTYPES = {"float": "float32", "c10::Half": "float16", "c10::BFloat16": "bfloat16", "c10::complex<float>": "complex64", "c10::complex<c10::Half>": "complex32",
          "bool": "bool", "unsigned char": "uint8", "signed char": "int8", "short": "int16", "short int": "int16", "int": "int32", "long": "int64",
          "long int": "int64", "unsigned short": "uint16", "short unsigned int": "uint16", "unsigned int": "uint32", "unsigned long": "uint64",
          "long unsigned int": "uint64"}

# torch's trace asks compressed sparse tensors for strides, and ends the process. tests/python/test_sparse_compressed.py compares these with the CPU.
UNTRACEABLE = {"sparse.sampled_addmm", "sparse.mm.reduce"}


@dataclasses.dataclass
class Call:
    name: str  # aten's, with the overload: add.Tensor
    number: int
    parent: int
    thread: int
    tensors: list  # (dtype, device) of the tensors given, lists flattened
    results: list


def _tensors(values, types):
    """(dtype, device) of each tensor; a tensor's value is [id, storage, offset, elements, bytes, device]."""
    found = []
    for value, kind in zip(values, types):
        if kind.startswith("Tensor("):
            found.append((DTYPES.get(kind[7:-1], kind[7:-1]), value[5]))
        elif kind.startswith("GenericList[Tensor("):
            found += _tensors(value, kind[12:-1].split(","))
    return found


def _call(node):
    attributes = {a["name"]: a["value"] for a in node["attrs"]}
    schema = attributes.get("op_schema", "")
    name = schema.split("(")[0].removeprefix("aten::") if schema else node["name"]
    inputs, outputs = node["inputs"], node["outputs"]
    return Call(name, node["id"], node["ctrl_deps"], attributes.get("tid", 0), _tensors(inputs["values"], inputs["types"]), _tensors(outputs["values"], outputs["types"]))


@contextlib.contextmanager
def traced():
    calls = []
    descriptor, path = tempfile.mkstemp(suffix=".json")
    os.close(descriptor)
    try:
        observer = ExecutionTraceObserver().register_callback(path)
        observer.start()
        try:
            yield calls
        finally:
            torch.mps.synchronize()
            observer.stop()
            observer.unregister_callback()
            with open(path) as file:
                calls += sorted((_call(node) for node in json.load(file)["nodes"]), key=lambda c: c.number)
    finally:
        os.unlink(path)


def samples(op, dtype, count=1):
    samples_.seed()
    source = op.sample_inputs("cpu", dtype, requires_grad=False)
    return [(samples_.on_mps(((s.input, *s.args), s.kwargs)), s) for s in itertools.islice(source, count)]


def _floating(arguments):
    found = []
    samples_.transform(arguments, found.append)
    return [t for t in found if t.layout == torch.strided and (t.is_floating_point() or t.is_complex())]


def exercise(op, arguments, sample, gradient=True):
    """Errors of a variant that the operator does not have, or not for these arguments, are nobody's business here."""
    result = op.op(*arguments[0], **arguments[1])
    if op.supports_out and isinstance(result, torch.Tensor) and result.layout == torch.strided:
        with contextlib.suppress(Exception):
            op.op(*arguments[0], **arguments[1], out=torch.empty_like(result))
    if op.get_inplace() is not None and not sample.broadcasts_input:
        with contextlib.suppress(Exception):
            op.get_inplace()(*samples_.transform(arguments[0], torch.clone), **arguments[1])
    if gradient and op.supports_autograd:
        with contextlib.suppress(Exception):
            inputs = samples_.transform(arguments, lambda t: t.detach().requires_grad_() if t.is_floating_point() or t.is_complex() else t)
            outputs = []
            samples_.transform(sample.output_process_fn_grad(op.op(*inputs[0], **inputs[1])), outputs.append)
            outputs = [o for o in outputs if o.requires_grad]
            torch.autograd.grad(outputs, _floating(inputs), [torch.ones_like(o) for o in outputs], allow_unused=True)
    torch.mps.synchronize()


@functools.cache
def served_by():
    folder = os.path.join(os.path.dirname(torchgen.__file__), "packaged/ATen/native")
    functions = parse_native_yaml(f"{folder}/native_functions.yaml", f"{folder}/tags.yaml").native_functions
    return {str(f.func.name): str(f.structured_delegate or f.func.name) for f in functions}
