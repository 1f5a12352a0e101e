# SPDX-License-Identifier: BSD-3-Clause
"""generate: turns the operator table (src/ops/table/*.yaml) into C.

    generate.py --table FOLDER --output FOLDER

writes include/openmps/ops/<table>.h (public prototypes), include/openmps/ops.h (all of them, and the operator enum), graph/formulas.h (private), and the C files operators.c,
formulas.c and pointwise_bodies.c. Files are rewritten only when their text changes. Others import load() for the rows.
"""
import argparse
import os
import re
import sys

import yaml

COMPUTES = ["f32", "i32", "i64", "u64", "c64", "bool"]
RULES = ["common", "float", "bool", "first"]
SCALARS = {"scalar", "int", "double", "bool"}

# Type in the table -> C parameters, written with the argument's name for %s.
C_TYPES = {
    "tensor": "const mps_tensor *%s",
    "tensor?": "const mps_tensor *%s",
    "tensors": "const mps_tensor *%s, uint32_t %s_count",
    "scalar": "mps_scalar %s",
    "scalar?": "const mps_scalar *%s",
    "scalars": "const mps_scalar *%s, uint32_t %s_count",
    "int": "int64_t %s",
    "int?": "const int64_t *%s",
    "ints": "const int64_t *%s, uint32_t %s_count",
    "ints?": "const int64_t *%s, uint32_t %s_count",
    "double": "double %s",
    "double?": "const double *%s",
    "doubles": "const double *%s, uint32_t %s_count",
    "doubles?": "const double *%s, uint32_t %s_count",
    "bool": "bool %s",
    "bool?": "const bool *%s",
    "bools": "const bool *%s, uint32_t %s_count",
    "dtype": "mps_dtype %s",
    "dtype?": "const mps_dtype *%s",
    "string": "const char *%s",
    "string?": "const char *%s",
    "generator": "mps_generator *%s",
}
OUTPUT_TYPES = {"tensor", "tensor?", "tensors"}
OPERATOR_KEYS = {"op", "family", "doc", "arguments", "outputs", "formula", "sources", "parameters", "tolerance", "serves", "glue", "note", "flags"}
FUNCTOR_KEYS = {"functor", "doc", "sources", "result", "types", "parameters", "compute", "constants", "cost"}
OPTIONAL = re.compile(r"(:\s*)([a-z]+\?)(?=\s*[,\]}\n])")
NAME = re.compile(r"^[a-z_][a-z0-9_]*$")
ATEN = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z0-9_]+)?$")


class TableError(Exception):
    pass


class Operator:
    """One row `op:`. arguments and outputs are lists of (name, type); serves and glue are lists of ATen entries."""

    def __init__(self, row, where):
        self.where = where
        self.name = row["op"]
        unknown = set(row) - OPERATOR_KEYS
        if unknown:
            self.fail("unknown keys %s" % sorted(unknown))
        if not NAME.match(str(self.name)):
            self.fail("the name must be lower case")
        self.family = row.get("family")
        self.doc = " ".join(str(row.get("doc", "")).split())
        if not self.family or not self.doc:
            self.fail("family and doc are required")
        self.note = " ".join(str(row.get("note", "")).split())
        self.arguments = [self.pair(a, None) for a in row.get("arguments", [])]
        self.outputs = [self.pair(o, "tensor") for o in row.get("outputs", [])]
        names = [name for name, _ in self.arguments + self.outputs]
        if len(set(names)) != len(names):
            self.fail("an argument name occurs twice")
        for name, kind in self.arguments:
            if kind not in C_TYPES:
                self.fail("argument %s has the unknown type %r" % (name, kind))
        for name, kind in self.outputs:
            if kind not in OUTPUT_TYPES:
                self.fail("output %s has the type %r, expected one of %s" % (name, kind, sorted(OUTPUT_TYPES)))
        self.tolerance = float(row.get("tolerance", 0))
        self.serves = self.entries(row, "serves")
        self.glue = self.entries(row, "glue")
        if "flags" in row:  # the C function reads conjugate and negative flags itself
            self.flags = bool(row["flags"])
        self.formula = row.get("formula")
        kinds = dict(self.arguments)
        self.sources = row.get("sources", [name for name, kind in self.arguments if kind == "tensor"])
        self.parameters = row.get("parameters", [name for name, kind in self.arguments if kind in SCALARS])
        if self.formula is None:
            if "sources" in row or "parameters" in row:
                self.fail("sources and parameters belong to rows with a formula")
            return
        if [kind for _, kind in self.outputs] != ["tensor"]:
            self.fail("a row with a formula has one output")
        for name in self.sources:
            if kinds.get(name) != "tensor":
                self.fail("source %s is no tensor argument" % name)
        for name in self.parameters:
            if kinds.get(name) not in SCALARS:
                self.fail("parameter %s is no scalar argument" % name)
        missing = set(kinds) - set(self.sources) - set(self.parameters)
        if missing:
            self.fail("arguments %s are used by nothing" % sorted(missing))

    def fail(self, text):
        raise TableError("%s: operator %s: %s" % (self.where, self.name, text))

    def pair(self, item, default):
        if isinstance(item, str) and default:
            name, kind = item, default
        elif isinstance(item, dict) and len(item) == 1:
            name, kind = next(iter(item.items()))
        else:
            self.fail("%r is not `name: type`" % (item,))
        if not NAME.match(name):
            self.fail("%r is no argument name" % name)
        return name, kind

    def entries(self, row, key):
        entries = row.get(key, [])
        if not isinstance(entries, list) or not all(isinstance(e, str) and ATEN.match(e) for e in entries):
            self.fail("%s must be a list of ATen entry names" % key)
        return entries

    def prototype(self):
        parameters = ["mps_stream *stream"]
        for name, kind in self.arguments + self.outputs:
            parameters.append(C_TYPES[kind].replace("%s", name))
        return "mps_status mps_op_%s(%s)" % (self.name, ", ".join(parameters))


class Functor:
    """One row `functor:`: a formula of kernels/formulas_*.h. Its block kernels are <functor>_<type> for each of `types`."""

    def __init__(self, row, where):
        self.where = where
        self.name = row["functor"]
        unknown = set(row) - FUNCTOR_KEYS
        if unknown:
            self.fail("unknown keys %s" % sorted(unknown))
        if not NAME.match(str(self.name)):
            self.fail("the name must be lower case")
        self.sources = [self.plain(s) for s in row.get("sources", ["T"])]
        self.result = self.plain(row.get("result", "T"))
        self.types = [self.plain(t) for t in row.get("types", [])]
        self.parameters = int(row.get("parameters", 0))
        self.rule = row.get("compute", "common")
        self.cost = float(row.get("cost", 0.25))
        self.exact_constants = row.get("constants", "rounded") == "exact"
        if row.get("constants", "rounded") not in ("rounded", "exact"):
            self.fail("constants is `rounded` or `exact`")
        self.doc = " ".join(str(row.get("doc", "")).split())
        if not 0 <= len(self.sources) <= 4 or any(s != "T" and s not in COMPUTES for s in self.sources):
            self.fail("sources are up to four of T, %s" % COMPUTES)
        if self.result not in ["T", "real", "complex", "bool"]:
            self.fail("result is one of T, real, complex, bool")
        if not self.types or any(t not in COMPUTES for t in self.types):
            self.fail("types is a list out of %s" % COMPUTES)
        if self.rule not in RULES:
            self.fail("compute is one of %s" % RULES)
        if not 0 <= self.parameters <= 4:
            self.fail("at most four parameters")

    @staticmethod
    def plain(value):
        return "bool" if value is bool else str(value)

    def fail(self, text):
        raise TableError("%s: functor %s: %s" % (self.where, self.name, text))


def load(folder):
    """All rows of the folder's *.yaml, checked: ({name: Operator}, {name: Functor}), in the order of files and rows."""
    operators, functors, served = {}, {}, {}
    for file in sorted(os.listdir(folder)):
        if not file.endswith(".yaml"):
            continue
        with open(os.path.join(folder, file), encoding="utf-8") as stream:
            text = stream.read()
        try:
            # PyYAML takes the ? of `[x: tensor?]` for a key of a flow mapping.
            rows = yaml.safe_load(OPTIONAL.sub(r'\1"\2"', text)) or []
        except yaml.YAMLError as error:
            raise TableError("%s: %s (a text with a colon in it needs quotes)" % (file, error)) from error
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise TableError("%s: must be one list of rows" % file)
        for row in rows:
            if "op" in row:
                item, table = Operator(row, file), operators
            elif "functor" in row:
                item, table = Functor(row, file), functors
            else:
                raise TableError("%s: a row has neither `op` nor `functor`: %r" % (file, row))
            if item.name in table:
                item.fail("defined twice (also in %s)" % table[item.name].where)
            table[item.name] = item
    for operator in operators.values():
        for entry in operator.serves + operator.glue:
            if entry in served:
                operator.fail("serves %s, and so does %s" % (entry, served[entry]))
            served[entry] = operator.name
        if operator.formula is not None:
            functor = functors.get(operator.formula)
            if functor is None:
                operator.fail("unknown formula %s" % operator.formula)
            if len(functor.sources) != len(operator.sources) or functor.parameters != len(operator.parameters):
                operator.fail("formula %s takes %d sources and %d parameters, the row gives %d and %d" % (
                    operator.formula, len(functor.sources), functor.parameters, len(operator.sources), len(operator.parameters)))
    return operators, functors


HEAD = "/* SPDX-License-Identifier: BSD-3-Clause\n *\n * %s\n * Generated by src/ops/generate.py from src/ops/table: do not edit.\n */\n"


def text_ops_header(operators):
    lines = [HEAD % "ops: the operators. Outputs are allocated by the caller, with the right shape and dtype; they may be strided, and may be\n"
             " * exactly one of the inputs (in place). Calls encode steps on the stream and return; errors in data come at the next wait."]
    lines.append("#ifndef OPENMPS_OPS_H\n#define OPENMPS_OPS_H\n\n#include \"openmps/stream.h\"\n#include \"openmps/tensor.h\"\n")
    lines.append("#ifdef __cplusplus\nextern \"C\" {\n#endif\n")
    lines.append("typedef enum mps_operator {")
    lines += ["  MPS_OPERATOR_%s," % name.upper() for name in operators]
    lines.append("  MPS_OPERATOR_COUNT\n} mps_operator;\n")
    lines.append("/* What the table says of an operator. Strings live for ever. */\ntypedef struct mps_operator_info {")
    lines.append("  const char *name;\n  const char *family;\n  const char *doc;")
    lines.append("  const char *const *entries; /* ATen entries served, NULL at the end */")
    lines.append("  double tolerance;           /* below 1: relative; from 1 on: ulps of the result's dtype; 0: exact */\n} mps_operator_info;\n")
    lines.append("/* NULL for a number that is no operator. */\nMPS_API const mps_operator_info *mps_operator_get_info(mps_operator op);\n")
    lines.append("\n#ifdef __cplusplus\n}\n#endif\n")
    lines += ["#include \"openmps/ops/%s.h\"" % table for table in tables_of(operators)]
    lines.append("\n#endif")
    return "\n".join(lines) + "\n"


def tables_of(operators):
    """The tables that have operators, by their files' names without .yaml."""
    return sorted({operator.where.removesuffix(".yaml") for operator in operators.values()})


def text_table_header(table, operators):
    """Prototypes of one table: who includes only this is not compiled anew when another family grows."""
    guard = "OPENMPS_OPERATORS_%s_H" % table.upper()
    lines = [HEAD % ("%s: operators of src/ops/table/%s.yaml; openmps/ops.h says what they have in common." % (table, table))]
    lines.append("#ifndef %s\n#define %s\n\n#include \"openmps/stream.h\"\n#include \"openmps/tensor.h\"\n" % (guard, guard))
    lines.append("#ifdef __cplusplus\nextern \"C\" {\n#endif\n")
    for operator in operators.values():
        if operator.where.removesuffix(".yaml") != table:
            continue
        doc = operator.doc + (" " + operator.note if operator.note else "")
        lines.append("/* %s */\nMPS_API MPS_WARN_UNUSED %s;" % (doc.replace("*/", "* /"), operator.prototype()))
    lines.append("\n#ifdef __cplusplus\n}\n#endif\n#endif")
    return "\n".join(lines) + "\n"


def c_string(text):
    return '"%s"' % text.replace("\\", "\\\\").replace('"', '\\"')


def text_operators(operators):
    lines = [HEAD % "operators: the information table of ops.h.", '#include "openmps/ops.h"\n']
    for operator in operators.values():
        entries = operator.serves + operator.glue
        lines.append("static const char *const entries_%s[] = {%s};" % (operator.name, ", ".join([c_string(e) for e in entries] + ["NULL"])))
    lines.append("\nstatic const mps_operator_info infos[] = {")
    for operator in operators.values():
        lines.append("  {%s, %s, %s, entries_%s, %r}," % (
            c_string(operator.name), c_string(operator.family), c_string(operator.doc), operator.name, operator.tolerance))
    lines.append("};\n\nconst mps_operator_info *mps_operator_get_info(mps_operator op) {")
    lines.append("  return (unsigned)op < (unsigned)MPS_OPERATOR_COUNT ? &infos[op] : NULL;\n}")
    return "\n".join(lines) + "\n"


def text_formulas_header(functors):
    lines = [HEAD % "formulas: the numbers of the formulas. What each of them takes and gives is in mps_formula_infos (src/graph/formula.h)."]
    lines.append("#ifndef OPENMPS_GRAPH_FORMULAS_H\n#define OPENMPS_GRAPH_FORMULAS_H\n\ntypedef enum mps_formula {")
    lines += ["  MPS_FORMULA_%s," % name.upper() for name in functors]
    lines.append("  MPS_FORMULA_COUNT\n} mps_formula;\n\n#endif")
    return "\n".join(lines) + "\n"


def text_formulas(functors):
    code = {"T": "MPS_FORMULA_SAME"}
    code.update({c: "MPS_COMPUTE_%s" % c.upper() for c in COMPUTES})
    result = {"T": "SAME", "real": "REAL", "complex": "COMPLEX", "bool": "BOOL"}
    lines = [HEAD % "formulas: the information table of formula.h.", '#include "graph/formula.h"\n', "const mps_formula_info mps_formula_infos[] = {"]
    for f in functors.values():
        mask = " | ".join("1u << MPS_COMPUTE_%s" % t.upper() for t in f.types)
        sources = ", ".join(code[s] for s in f.sources) or "0"
        lines.append("  {.name = \"%s\", .source_count = %d, .sources = {%s}, .result = MPS_RESULT_%s, .rule = MPS_RULE_%s, .types = %s,\n"
                     "   .parameter_count = %d, .exact_constants = %d, .cost = %rf}," % (
                         f.name, len(f.sources), sources, result[f.result], f.rule.upper(), mask, f.parameters, f.exact_constants, f.cost))
    lines.append("};")
    return "\n".join(lines) + "\n"


def text_bodies(operators):
    convert = {"scalar": "%s", "double": "mps_scalar_float(%s)", "int": "mps_scalar_int(%s)", "bool": "mps_scalar_bool(%s)"}
    lines = [HEAD % "pointwise_bodies: the operators that are one formula.", '#include "openmps/ops.h"\n#include "ops/pointwise.h"\n']
    for operator in operators.values():
        if operator.formula is None:
            continue
        kinds = dict(operator.arguments)
        lines.append(operator.prototype() + " {")
        inputs = parameters = "NULL"
        if operator.sources:
            inputs = "inputs"
            lines.append("  const mps_tensor *const inputs[] = {%s};" % ", ".join(operator.sources))
        if operator.parameters:
            parameters = "parameters"
            lines.append("  const mps_scalar parameters[] = {%s};" % ", ".join(convert[kinds[p]] % p for p in operator.parameters))
        lines.append("  return mps_pointwise(stream, MPS_FORMULA_%s, %s, %d, %s, %d, %s, \"%s\");\n}\n" % (
            operator.formula.upper(), inputs, len(operator.sources), parameters, len(operator.parameters), operator.outputs[0][0], operator.name))
    return "\n".join(lines)


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    try:
        with open(path, encoding="utf-8") as stream:
            if stream.read() == text:
                return
    except OSError:
        pass
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", required=True)
    parser.add_argument("--output", required=True)
    options = parser.parse_args()
    try:
        operators, functors = load(options.table)
    except TableError as error:
        sys.exit("operator table: %s" % error)
    texts = {
        "include/openmps/ops.h": text_ops_header(operators),
        **{"include/openmps/ops/%s.h" % table: text_table_header(table, operators) for table in tables_of(operators)},
        "private/graph/formulas.h": text_formulas_header(functors),
        "operators.c": text_operators(operators),
        "formulas.c": text_formulas(functors),
        "pointwise_bodies.c": text_bodies(operators),
    }
    for path, text in texts.items():
        write(os.path.join(options.output, path), text)


if __name__ == "__main__":
    main()
