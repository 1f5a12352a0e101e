# SPDX-License-Identifier: BSD-3-Clause
"""Turns ATen arguments into those of a C operator: the text of a generated kernel's body.

A row names its arguments in schema order with types of the table (tensor, scalar, ints, ...); a binding is what torchgen declares.
Operands own what a conversion must keep alive until the call is encoded (bridge/convert.h).
"""


class Mismatch(Exception):
    """The row does not fit the entry's schema."""


def schema_values(function, bindings):
    """(name, C++ type, expression) of each schema argument that is no output; precomputed ones are put back together."""
    by_name = {b.name: b for b in bindings}
    replaced = function.precomputed.replace if function.precomputed else {}
    values = []
    for argument in function.func.arguments.flat_non_out:
        if argument.name in by_name and argument.name not in replaced:
            values.append((argument.name, by_name[argument.name].nctype.type.cpp_type(), argument.name))
        elif argument.name in replaced:
            names = [a.name for a in replaced[argument.name]]
            if len(names) == 1 or argument.name in names:
                values.append((argument.name, "int64_t", f"static_cast<int64_t>({names[0]})"))
            else:
                values.append((argument.name, "list", f"{{{', '.join(names)}}}"))
        else:
            raise Mismatch(f"{function.func.name}: no value for {argument.name}")
    return values


def tensor_argument(name, kind, cpp, value, common, flags):
    """Declaration and call text of a tensor operand."""
    construct = [value, "openmps::Operand::flagged" if flags else "openmps::Operand::plain"] + ([common] if common else [])
    access = "pointer()" if kind == "tensor" else "pointer_or_null()"
    return [f"const openmps::Operand {name}_({', '.join(construct)});"], [f"{name}_.{access}"]


def argument(name, kind, cpp, value, common, flags):
    """(declarations, call arguments) for one argument."""
    optional, base = kind.endswith("?"), kind.rstrip("?")
    if base == "tensor":
        return tensor_argument(name, kind, cpp, value, common, flags)
    if base == "tensors":
        return [f"const openmps::OperandList {name}_({value}, openmps::Operand::{'flagged' if flags else 'plain'});"], [f"{name}_.data()", f"{name}_.count()"]
    if base == "scalar":
        if optional:
            return [f"const openmps::Optional<mps_scalar> {name}_({value});"], [f"{name}_.pointer()"]
        return [], [f"openmps::scalar({value})"]
    if base in ("ints", "doubles", "bools", "scalars"):
        c_type = {"ints": "int64_t", "doubles": "double", "bools": "bool", "scalars": "mps_scalar"}[base]
        return [f"const openmps::List<{c_type}> {name}_({value});"], [f"{name}_.data()", f"{name}_.count()"]
    if base == "string":
        return [f"const openmps::String {name}_({value});"], [f"{name}_.text()"]
    if base == "generator":
        return [], [f"openmps::generator({value})"]
    if base in ("int", "double", "bool", "dtype"):
        c_type = {"int": "int64_t", "double": "double", "bool": "bool", "dtype": "mps_dtype"}[base]
        if optional:
            return [f"const openmps::Optional<{c_type}> {name}_({value});"], [f"{name}_.pointer()"]
        return [], [f"openmps::value<{c_type}>({value})"]
    raise Mismatch(f"type {kind} of argument {name} is unknown")


def choose(row, function, values):
    """The row's (name, type) pairs with the schema's values: by position where the counts agree, else by name."""
    if len(row.arguments) == len(values):
        return list(zip(row.arguments, values))
    named = {v[0]: v for v in values}
    missing = [name for name, _ in row.arguments if name not in named]
    if missing:
        raise Mismatch(f"{row.where}: {row.name} does not fit {function.func}: no argument {', '.join(missing)}")
    return [((name, kind), named[name]) for name, kind in row.arguments]


def body(row, bindings, function, iterator):
    """The lines of a kernel: one conversion an argument, then the call."""
    # The pointwise family reads through conjugate and negative bits; others get plain values unless their row says `flags: true`.
    flags = getattr(row, "flags", row.formula is not None or row.family == "pointwise")
    tensors = [name for name, kind in row.arguments if kind.startswith("tensor")]
    common = "common_dtype()" if iterator and len(tensors) > 1 else ""
    declarations, call = [], ["openmps::stream()"]
    for (name, kind), (_, cpp, value) in choose(row, function, schema_values(function, bindings)):
        declared, passed = argument(name, kind, cpp, value, common, flags)
        declarations += declared
        call += passed
    outputs = [a.name for a in function.func.arguments.out]
    if not outputs and function.func.arguments.self_arg:
        outputs = ["self"]  # in place
    if len(outputs) != len(row.outputs):
        raise Mismatch(f"{row.where}: {row.name} has other outputs than {function.func}")
    for name in outputs:
        declarations.append(f"const openmps::Operand {name}_out({name}, openmps::Operand::output);")
        call.append(f"{name}_out.pointer()")
    lines = declarations + [f"openmps::check(mps_op_{row.name}({', '.join(call)}));"]
    if not function.structured and function.func.returns:
        lines.append(f"return {outputs[0]};" if len(outputs) == 1 else f"return std::forward_as_tuple({', '.join(outputs)});")
    return "\n".join(f"  {line}" for line in lines)
