# SPDX-License-Identifier: BSD-3-Clause
"""Writes the C++ that registers OpenMPS's operators with the installed torch.

What torch asks for comes from the torchgen in its wheel (schemas, structured kernels, precomputed arguments); what OpenMPS has comes
from the operator table, src/ops/table/*.yaml. Three kinds of entries are registered, all others reach the boxed fallback:
  serves   an ATen entry whose arguments equal the C function's: the body that converts and calls is written here;
  glue     an ATen entry whose kernel is written by hand in bridge/native/<family>.cpp (declared in bridge/kernels/<family>.h);
  exported a kernel that the wheel exports and that calls no device code of its own (views and compositions).
Glue for entries that upstream does not list under MPS registers itself in its file, or the entry is among OTHERS (structured ones).

Usage: generate.py --table DIR --native DIR --out DIR --shards N
Sparse tensors have dispatch keys of their own: the kernels that SparseMPS and SparseCsrMPS share with the CPU are compositions, registered as
exported; the others are written by hand in bridge/native/sparse.cpp.
Writes kernels/<family>.h, shard0.cpp .. shardN-1.cpp, sparse.cpp, coverage.h; a file whose text did not change is left alone.
"""
import argparse
import dataclasses
import importlib.util
import os
import pathlib
import re
import sys
import zlib

import torch
import torchgen
from torchgen import dest
from torchgen.api import meta, structured
from torchgen.api.types import kernel_signature
from torchgen.context import native_function_manager
from torchgen.dest.register_dispatch_key import StructuredRegisterDispatchKey
from torchgen.gen import get_grouped_native_functions, parse_native_yaml
from torchgen.model import DispatchKey, NativeFunctionsGroup, SchemaKind
from torchgen.selective_build.selector import SelectiveBuilder
from torchgen.utils import Target

import arguments

# Kernels of the wheel that only rearrange metadata or call other operators through the dispatcher.
EXPORTED = set("""
view_as_real view_as_complex as_strided isin.Tensor_Scalar_out isnan mvlgamma.out _reshape_alias roll
norm.dtype_out norm.out zero_ rsub.Tensor _to_sparse.sparse_dim _to_sparse set_.source_Storage set_.source_Tensor is_set_to view
index_fill_.int_Tensor cholesky.out cholesky_inverse remainder.Scalar_Tensor unfold hardtanh.out hardtanh hardtanh_ linalg_lu.out
_linalg_det.result _linalg_slogdet.sign linalg_householder_product
""".split())

# Entries that upstream lists for the CPU and not for MPS: their kernels (glue or exported) have the names of the CPU's.
OTHERS = set("""
linalg_lu_solve.out linalg_ldl_factor_ex.out linalg_ldl_solve.out geqrf.a geqrf ormqr.out ormqr _linalg_svd.U _linalg_eigh.eigenvalues linalg_eig
linalg_eig.out _linalg_eigvals linalg_eigvals.out linalg_lstsq.out hash_tensor.out special_airy_ai.out segment_reduce _segment_reduce_backward
_adaptive_avg_pool3d adaptive_avg_pool3d.out _adaptive_avg_pool3d_backward adaptive_avg_pool3d_backward.grad_input adaptive_max_pool3d.out
adaptive_max_pool3d_backward.grad_input fractional_max_pool2d.output fractional_max_pool2d_backward.grad_input fractional_max_pool3d.output
fractional_max_pool3d_backward fractional_max_pool3d_backward.grad_input
""".split())

# Registered by hand in the seams (bridge/storage.cpp, copy.cpp, ...), with what they need of the runtime.
SEAMS = set("""
empty.memory_format empty_strided resize_ _local_scalar_dense _copy_from _copy_from_and_resize set_.source_Storage_storage_offset set_
fill_.Scalar fill_.Tensor _efficientzerotensor permute
""".split())

OURS = "openmps::native"


class Structured(StructuredRegisterDispatchKey):
    """torchgen's wrapper of a structured kernel, with our allocation and without guards (there is one device)."""

    def gen_class_set_output_body(self, k, maybe_create_proxy):
        if k is SchemaKind.functional:
            return "outputs_[output_idx] = openmps::create_out(sizes, strides, options);"
        check = "check_inplace(out, sizes, options)" if k is SchemaKind.inplace else "resize_out(out, sizes, strides, options)"
        lines = ["const auto& out = outputs_[output_idx].get();", f"openmps::{check};"]
        wanted = "openmps::wants_proxy(out)" + (" || out.strides() != strides" if maybe_create_proxy else "")
        lines.append(f"if (C10_UNLIKELY({wanted})) proxy_outputs_[output_idx] = openmps::create_out(sizes, strides, options);")
        return "\n".join(lines)

    def text(self, f):
        text = self.gen_one(f)
        if self.target is not Target.ANONYMOUS_DEFINITION:
            return text
        text = text.replace("c10::OptionalDeviceGuard guard_;", "")
        # A kernel writes where the output really is, in place too.
        head, call, tail = text.partition("op.impl(")
        for i in range(len(f.func.returns)):
            tail = tail.replace(f"op.outputs_[{i}],", f"op.maybe_get_output({i}),", 1)
            tail = tail.replace(f"op.outputs_[{i}]);", f"op.maybe_get_output({i}));", 1)
        if f.func.kind() is SchemaKind.functional:  # the result is moved out, not read through an accessor
            tail = tail.replace("std::move(op.maybe_get_output", "std::move(op.outputs_")
        return head + call + tail


@dataclasses.dataclass
class Entry:
    """An ATen entry that OpenMPS registers, and how."""
    function: object
    kind: str  # "serves", "glue", "exported"
    row: object


def load_rows(folder):
    """The rows of the table, read and checked by the generator of the C side (src/ops/generate.py)."""
    spec = importlib.util.spec_from_file_location("operator_table", folder.parent / "generate.py")
    table = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(table)
    try:
        return list(table.load(folder)[0].values())
    except table.TableError as error:
        sys.exit(f"operator table: {error}")


def claims(rows):
    """entry name -> (kind, row)."""
    return {name: (kind, row) for row in rows for kind in ("serves", "glue") for name in getattr(row, kind)}


def written_names(folder):
    """{file's stem: its words} of bridge/native/*.cpp: a glue kernel counts when its name is among them."""
    return {path.stem: set(re.findall(r"\w+", path.read_text())) for path in sorted(folder.glob("*.cpp"))}


def functions(group):
    return list(group.functions()) if isinstance(group, NativeFunctionsGroup) else [group]


def structured_declaration(group, kernel):
    args = ", ".join(a.decl() for a in structured.impl_arguments(group))
    return f"struct structured_{kernel} : public at::meta::structured_{meta.name(group)} {{ void impl({args}); }};"


def structured_body(group, kernel, row):
    """Converts the arguments of impl in schema order and calls the C function."""
    bindings = structured.impl_arguments(group)
    lines = arguments.body(row, bindings, group.out, iterator=group.out.structured_inherits == "TensorIteratorBase")
    head = ", ".join(a.decl() for a in bindings)
    return f"void structured_{kernel}::impl({head}) {{\n{lines}\n}}"


def unstructured_body(f, index, kernel, row):
    """For in-place and out= entries without a structured kernel, whose output is resized by hand glue otherwise."""
    signature = kernel_signature(f, index)
    lines = arguments.body(row, signature.arguments(), f, iterator=False)
    return f"{signature.defn(name=kernel)} {{\n{lines}\n}}"


class Writer:
    """Gathers the text of the shards and of kernels/*.h."""

    def __init__(self, index, shards):
        self.index = index
        self.declarations = {}  # of glue kernels, for bridge/native/*.cpp: text -> (name, root)
        self.shards = [{"roots": set(), "operators": {}, "kernels": [], "wrappers": [], "registrations": []} for _ in range(shards)]

    def generator(self, target, group=None):
        common = (self.index, target, SelectiveBuilder.get_nop_selector(), False, True, None, False)
        return Structured(*common, group) if group else dest.RegisterDispatchKey(*common)

    def shard(self, group):
        name = str((group.functional if isinstance(group, NativeFunctionsGroup) else group).func.name)
        return self.shards[zlib.crc32(name.encode()) % len(self.shards)]

    def declare(self, shard, text, entry, name, root):
        """Text of a kernel in its shard; kernels written by hand are also declared in kernels/<family>.h."""
        if text not in shard["kernels"]:
            shard["kernels"].append(text)
        if entry.kind == "glue":
            self.declarations[text] = (name, root)
        if entry.kind == "serves":
            shard["operators"][entry.row.name] = entry.row.prototype()

    def add_structured(self, group, entry):
        shard, kernel = self.shard(group), self.index.get_kernel(group.out)
        shard["roots"].update(f.root_name for f in functions(group))
        with native_function_manager(group.out):
            if entry.kind != "exported":
                self.declare(shard, structured_declaration(group, kernel.kernel), entry, f"structured_{kernel.kernel}", group.out.root_name)
            if entry.kind == "serves":
                self.declare(shard, structured_body(group, kernel.kernel, entry.row), entry, kernel.kernel, group.out.root_name)
        for f in functions(group):
            with native_function_manager(f):
                shard["wrappers"].append(self.generator(Target.ANONYMOUS_DEFINITION, group).text(f))
                shard["registrations"].append(self.generator(Target.REGISTRATION, group).text(f))

    def add_unstructured(self, group, entry):
        shard, f, kernel = self.shard(group), entry.function, self.index.get_kernel(entry.function)
        shard["roots"].add(f.root_name)
        with native_function_manager(f):
            if entry.kind != "exported":
                text = kernel_signature(f, self.index).decl(name=kernel.kernel) + ";"
                self.declare(shard, text, entry, kernel.kernel, f.root_name)
            if entry.kind == "serves":
                self.declare(shard, unstructured_body(f, self.index, kernel.kernel, entry.row), entry, kernel.kernel, f.root_name)
        wrapper = self.generator(Target.ANONYMOUS_DEFINITION).gen_unstructured(f)
        wrapper = wrapper.replace("const OptionalDeviceGuard device_guard", "//")
        wrapper = wrapper.replace("const DeviceGuard device_guard", "//")
        shard["wrappers"].append(wrapper)
        shard["registrations"].append(self.generator(Target.REGISTRATION).gen_unstructured(f))


def headers(roots, suffix):
    folder = os.path.join(os.path.dirname(torch.__file__), "include/ATen/ops")
    return [f"#include <ATen/ops/{r}_{suffix}.h>" for r in sorted(roots) if os.path.exists(f"{folder}/{r}_{suffix}.h")]


def shard_text(shard, exported_roots):
    native = headers(shard["roots"] & exported_roots, "native")
    return "\n".join([
        "// Generated by bridge/codegen/generate.py.", '#include "bridge/bridge.h"',
        *headers(shard["roots"], "meta"), *native,
        # Only the prototypes in use, not openmps/ops.h: a new operator recompiles its own shard.
        'extern "C" {', *(f"{prototype};" for _, prototype in sorted(shard["operators"].items())), "}",
        f"namespace {OURS} {{", *shard["kernels"], "}",
        "namespace at { namespace {", *shard["wrappers"], "}",
        "TORCH_LIBRARY_IMPL(aten, MPS, m) {", *shard["registrations"], "}", "}", ""])


def kernels_text(writer, stem, words):
    chosen = sorted((text, root) for text, (name, root) in writer.declarations.items() if name in words)
    return "\n".join([
        f"// Generated by bridge/codegen/generate.py: the kernels that bridge/native/{stem}.cpp defines.", "#pragma once",
        '#include "bridge/bridge.h"', *headers({root for _, root in chosen}, "meta"), f"namespace {OURS} {{", *(text for text, _ in chosen), "}", ""])


def write(path, text):
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


SPARSE_GLUE = {"sparse_mask"}  # shared, but it reaches a device kernel: bridge/native/sparse.cpp has one
SPARSE = {DispatchKey.SparseMPS: DispatchKey.SparseCPU, DispatchKey.SparseCsrMPS: DispatchKey.SparseCsrCPU}


def sparse_text(parsed):
    """Registers the kernels that upstream's sparse MPS keys share with the CPU's: they call other operators and no device code."""
    wrappers, roots = {key: [] for key in SPARSE}, set()
    for key, cpu in SPARSE.items():
        index = dataclasses.replace(parsed.backend_indices[key], device_guard=True)
        common = (index, SelectiveBuilder.get_nop_selector(), False, True, None, False)
        define, register = (dest.RegisterDispatchKey(index, target, *common[1:]) for target in (Target.ANONYMOUS_DEFINITION, Target.REGISTRATION))
        for f in parsed.native_functions:
            theirs = parsed.backend_indices[cpu].get_kernel(f)
            if str(f.func.name) in SPARSE_GLUE or not index.has_kernel(f) or not theirs or theirs.kernel != index.get_kernel(f).kernel:
                continue
            roots.add(f.root_name)
            with native_function_manager(f):
                wrapper = define.gen_unstructured(f)
                wrapper = wrapper.replace("const OptionalDeviceGuard device_guard", "//").replace("const DeviceGuard device_guard", "//")
                wrappers[key].append((wrapper, register.gen_unstructured(f)))
    lines = ["// Generated by bridge/codegen/generate.py.", '#include "bridge/bridge.h"', *headers(roots, "native")]
    for key, pairs in wrappers.items():
        lines += ["namespace at { namespace {", *(wrapper for wrapper, _ in pairs),
                  f"TORCH_LIBRARY_IMPL(aten, {key}, m) {{", *(registration for _, registration in pairs), "}", "} }"]
    return "\n".join(lines) + "\n"


def upstream():
    folder = os.path.join(os.path.dirname(torchgen.__file__), "packaged/ATen/native")
    parsed = parse_native_yaml(f"{folder}/native_functions.yaml", f"{folder}/tags.yaml")
    return parsed, parsed.backend_indices[DispatchKey.MPS], parsed.backend_indices[DispatchKey.CPU]


def with_others(mps, cpu):
    """The MPS index, with OTHERS from the CPU's."""
    others = {name: kernel for name, kernel in cpu.index.items() if str(name) in OTHERS and name not in mps.index}
    return dataclasses.replace(mps, index={**mps.index, **others})


def choose(name, kernel, claimed, written):
    """(kind, row) of an entry of upstream's MPS list, or None when OpenMPS has nothing for it (yet)."""
    if name in claimed:
        names = {kernel.kernel, f"structured_{kernel.kernel}"}
        if claimed[name][0] == "serves" or names & written:
            return claimed[name]
    if name in EXPORTED:
        return "exported", None
    return None


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--table", type=pathlib.Path, required=True)
    options.add_argument("--native", type=pathlib.Path, required=True)
    options.add_argument("--out", type=pathlib.Path, required=True)
    options.add_argument("--shards", type=int, default=12)
    options = options.parse_args()

    parsed, mps, cpu = upstream()
    claimed, words = claims(load_rows(options.table)), written_names(options.native)
    listed_upstream = {str(name) for name in mps.index}
    mps = with_others(mps, cpu)
    written = set().union(*words.values())
    by_name = {str(f.func.name): f for f in parsed.native_functions}
    unknown = sorted(name for name in claimed if name not in by_name)
    entries = {str(name): choose(str(name), kernel, claimed, written) for name, kernel in mps.index.items()}
    # Kernels of our own live in our namespace; exported ones stay where the wheel has them. The device check is torchgen's.
    index = dataclasses.replace(mps, device_guard=True, index={
        name: kernel if entries[str(name)] and entries[str(name)][0] == "exported"
        else dataclasses.replace(kernel, cpp_namespace=OURS) for name, kernel in mps.index.items()})

    writer, native, exported_roots = Writer(index, options.shards), [], set()
    for group in get_grouped_native_functions(parsed.native_functions):
        for f in functions(group):
            name = str(f.func.name)
            choice = entries.get(name)
            if not index.has_kernel(f) or not choice or name in SEAMS:
                continue
            native.append(name)
            entry = Entry(f, *choice)
            if entry.kind == "exported":
                exported_roots.add(f.root_name)
            if index.get_kernel(f).structured:
                writer.add_structured(group, entry)
            else:
                writer.add_unstructured(group, entry)
    native += [name for name in entries if name in SEAMS]
    native, entries = [name for name in native if name in listed_upstream], {name: entries[name] for name in entries if name in listed_upstream}
    # Glue for entries that upstream does not list under MPS (convolution_overrideable) registers itself in its file.

    # Entries that exist in some versions of torch only are left out there; a name that exists nowhere is a slip of the pen.
    for name in unknown:
        print(f"generate.py: torch {torch.__version__} has no {name} ({claimed[name][1].where})", file=sys.stderr)
    for i, shard in enumerate(writer.shards):
        write(options.out / f"shard{i}.cpp", shard_text(shard, exported_roots))
    for stem in words:
        write(options.out / f"bridge/kernels/{stem}.h", kernels_text(writer, stem, words[stem]))
    listed = "\n".join(f'  "{name}",' for name in sorted(native))
    missing = "\n".join(f'  "{name}",' for name in sorted(set(entries) - set(native)))
    write(options.out / "sparse.cpp", sparse_text(parsed))
    write(options.out / "bridge/coverage.h", "\n".join([
        "// Generated by bridge/codegen/generate.py: upstream's MPS entries, those that OpenMPS registers and the rest.", "#pragma once",
        f"static constexpr const char *native_entries[] = {{\n{listed}\n}};",
        f"static constexpr const char *missing_entries[] = {{\n{missing}\n  nullptr,\n}};", ""]))
    print(f"{len(native)} of {len(entries)} entries native")


if __name__ == "__main__":
    main()
