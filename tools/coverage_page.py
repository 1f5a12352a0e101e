# SPDX-License-Identifier: BSD-3-Clause
"""Prints docs/coverage.md: the operators of the table, and every MPS entry with the family that carries it, the dtypes it runs in and its tests.

Dtypes and conformance cases are found out, not written down: one or two samples of every operator and dtype of PyTorch's database run on mps under
torch.profiler's execution trace, but for those that tests/conformance lists as failing or not to be compared. What an entry is called with there is what it
runs in, and `make test` compares the same cases with the CPU. The trace takes minutes and is kept in build/coverage.json until --probe asks for another.
"""
import argparse
import importlib.util
import json
import os
import pathlib
import re
import sys

os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")  # the trace announces itself
ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests/python")]
CACHE = ROOT / "build/coverage.json"
ORDER = ("float32", "float16", "bfloat16", "complex64", "complex32", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "bool")
SHORT = {"float32": "f32", "float16": "f16", "bfloat16": "bf16", "complex64": "c64", "complex32": "c32", "uint8": "u8", "int8": "i8", "int16": "i16", "int32": "i32",
         "int64": "i64", "uint16": "u16", "uint32": "u32", "uint64": "u64", "bool": "bool"}


def operators():
    spec = importlib.util.spec_from_file_location("operator_table", ROOT / "src/ops/generate.py")
    table = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(table)
    return table.load(ROOT / "src/ops/table")[0].values()


# ---- what runs ----
def probe():
    """{entry: {operator of the database: [dtypes]}} over all cases that pass."""
    import warnings

    from tests import entries
    from tests.conformance.exceptions import Rules
    from tests.conformance.samples import OPERATORS, dtypes_of, name_of

    warnings.simplefilter("ignore")
    excluded = [Rules("never.txt"), Rules("not_yet.txt")]
    served, found = entries.served_by(), {}
    for place, (name, op) in enumerate(OPERATORS.items()):
        if name in entries.UNTRACEABLE:
            continue
        for dtype in dtypes_of(op):
            if any(rules.find(f"{name}:{name_of(dtype)}", "forward") for rules in excluded):
                continue
            try:
                with entries.traced() as calls:
                    for arguments, sample in entries.samples(op, dtype, 2 if name_of(dtype) == "float32" else 1):
                        entries.exercise(op, arguments, sample)
            except Exception:  # noqa: BLE001 - the CPU has this dtype no more than mps: OpInfo claims for both together
                continue
            for call in calls:
                if any(device.startswith("mps") for _, device in call.tensors + call.results):
                    kind = next((d for d, device in call.tensors + call.results if device.startswith("mps")), None)
                    found.setdefault(served.get(call.name, call.name), {}).setdefault(name, set()).add(kind)
        if place % 50 == 0:
            print(f"{place} of {len(OPERATORS)} operators", file=sys.stderr, flush=True)
    probe_by_name(found)
    return {entry: {name: sorted(k for k in kinds if k) for name, kinds in names.items()} for entry, names in found.items()}


def probe_by_name(found):
    """The calls of tests/python/test_entries.py, each counted for the entry that it is about."""
    import test_entries
    from compare import make, to_mps
    from tests import entries

    calls_of = {entry: (function, inputs, dtypes) for entry, (function, inputs, dtypes) in test_entries.CASES.items()}
    calls_of |= {entry: (function, lambda dtype: [make((4, 5), dtype)], dtypes) for entry, (function, dtypes) in test_entries.RANDOM.items()}
    for entry, (function, inputs, dtypes) in calls_of.items():
        for dtype in dtypes:
            with entries.traced() as calls:
                function(*to_mps(inputs(dtype)))
            kinds = {next((d for d, device in call.tensors + call.results if device.startswith("mps")), None) for call in calls if call.name == entry}
            found.setdefault(entry, {}).setdefault("test_entries", set()).update(kinds or {str(dtype).removeprefix("torch.")})


def probed(again):
    if again or not CACHE.exists():
        CACHE.parent.mkdir(exist_ok=True)
        CACHE.write_text(json.dumps(probe()))
    return json.loads(CACHE.read_text())


# ---- which tests ----
def test_files():
    """{words of a test file: its name}, for entries that are called by name."""
    return {path.stem: set(re.findall(r"\w+", path.read_text())) | set(re.findall(r"\w+\.\w+", path.read_text())) for path in sorted((ROOT / "tests/python").glob("test_*.py"))}


def words_of(entry):
    """What a test that is about this entry says: its own name, or that of the operator it is a part of."""
    base, _, overload = entry.partition(".")
    plain = base.strip("_")
    found = {base, plain, plain.removesuffix("_backward"), plain.removesuffix("_forward"), plain.removeprefix("mps_"), f"{plain}_", entry}
    return {w for w in found if len(w) > 2}


def tests_of(entry, names, files):
    """At most three operators of the database, and at most three files."""
    own = sorted(names.keys() - {"test_entries"}, key=lambda n: (n.split(".")[-1] not in entry, len(n), n))
    listed = [f"`{n}`" for n in own[:3]] + ([f"{len(own) - 3} more"] if len(own) > 3 else [])
    named = [f for f, words in files.items() if words_of(entry) & words and f != "test_entries"]
    named.sort(key=lambda f: (entry.strip("_").partition(".")[0] not in f, f))
    named = ["test_entries"] * ("test_entries" in names) + named
    return ", ".join(listed + named[:3])


def cell(text):
    return text.replace("|", "\\|")


def sparse(counted):
    """A line about the sparse dispatch keys; tests/python/test_sparse_entries.py calls each of their entries."""
    counts = {key: (sum(names.values()), len(names)) for key, names in counted.items()}
    return " and ".join(f"{there} of the {entries} entries of {key}" for key, (there, entries) in counts.items()) + " have a kernel."


def page(native, missing, sparse_entries, found):
    out = ["# Coverage\n\nWritten by `make docs` from `src/ops/table` and from what runs: no line is written by hand.\n"]
    out.append(f"{len(native)} of the {len(native) + len(missing)} entries that upstream registers for MPS are native.\n")
    out.append(f"{sparse(sparse_entries)}\n")
    families, carried = {}, {}
    for operator in operators():
        families.setdefault(operator.family, []).append(operator)
        for entry in operator.serves + operator.glue:
            carried[entry] = operator.family
    files, untested = test_files(), []
    out.append("## Entries\n\n`dtypes`: those of the first tensor in calls that PyTorch's operator database makes and the conformance run compares with the CPU; a dash: "
               "it makes none. Entries that it does not reach are called by name in `test_entries`.\n`tests`: operators of that database whose samples reach the entry, then files of `tests/python` that name it.\n")
    out.append("| entry | family | dtypes | tests |\n|---|---|---|---|")
    for entry in sorted(native, key=lambda e: (e.strip("_"), e)):
        names = found.get(entry, {})
        kinds = {k for each in names.values() for k in each if k}
        dtypes = " ".join(SHORT[k] for k in ORDER if k in kinds) or "—"
        tests = tests_of(entry, names, files)
        untested += [] if tests else [entry]
        out.append(f"| `{entry}` | {carried.get(entry, 'runtime')} | {dtypes} | {tests or '**none**'} |")
    out.append("")
    out.append("Without any test: " + (", ".join(f"`{e}`" for e in untested) if untested else "none") + ".\n")
    for family, members in sorted(families.items()):
        out.append(f"## {family}\n\n| operator | what it computes | ATen entries |\n|---|---|---|")
        for operator in sorted(members, key=lambda o: o.name):
            served = ", ".join(f"`{e}`" for e in operator.serves + operator.glue)
            out.append(f"| `{operator.name}` | {cell(operator.doc)} | {served} |")
        out.append("")
    if missing:
        out.append("## Not native\n\nThese raise NotImplementedError, or run on the CPU with `PYTORCH_ENABLE_MPS_FALLBACK=1`.\n")
        out.append(", ".join(f"`{name}`" for name in sorted(missing)) + ".")
    return "\n".join(out).rstrip() + "\n", untested


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--probe", action="store_true", help="trace again instead of using build/coverage.json")
    options = parser.parse_args()
    from openmps import _bridge

    native, missing = _bridge.coverage()
    text, untested = page(native, missing, _bridge.sparse_coverage(), probed(options.probe))
    print(text, end="")
    return 1 if untested else 0


if __name__ == "__main__":
    sys.exit(main())
