# SPDX-License-Identifier: BSD-3-Clause
"""Prints docs/coverage.md: the operators of the table with the ATen entries they serve, and the MPS entries that nothing serves yet."""
import importlib.util
import pathlib

from openmps import _bridge

ROOT = pathlib.Path(__file__).resolve().parent.parent


def operators():
    spec = importlib.util.spec_from_file_location("operator_table", ROOT / "src/ops/generate.py")
    table = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(table)
    return table.load(ROOT / "src/ops/table")[0].values()


def sparse():
    """A line about the sparse dispatch keys; tests/python/test_sparse_entries.py calls each of their entries."""
    counts = {key: (sum(names.values()), len(names)) for key, names in _bridge.sparse_coverage().items()}
    return " and ".join(f"{there} of the {entries} entries of {key}" for key, (there, entries) in counts.items()) + " have a kernel."


def main():
    native, missing = _bridge.coverage()
    print("# Coverage\n\nWritten by `make docs` from `src/ops/table`.\n")
    print(f"{len(native)} of the {len(native) + len(missing)} entries that upstream registers for MPS are native.\n")
    print(f"{sparse()}\n")
    families = {}
    for operator in operators():
        families.setdefault(operator.family, []).append(operator)
    for family, members in sorted(families.items()):
        print(f"## {family}\n\n| operator | what it computes | ATen entries |\n|---|---|---|")
        for operator in sorted(members, key=lambda o: o.name):
            entries = ", ".join(f"`{e}`" for e in operator.serves + operator.glue)
            print(f"| `{operator.name}` | {operator.doc.replace('|', chr(92) + '|')} | {entries} |")
        print()
    print("## Not native\n\nThese raise NotImplementedError, or run on the CPU with `PYTORCH_ENABLE_MPS_FALLBACK=1`.\n")
    print(", ".join(f"`{name}`" for name in sorted(missing)) + ".")


if __name__ == "__main__":
    main()
