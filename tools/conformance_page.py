# SPDX-License-Identifier: BSD-3-Clause
"""Writes docs/conformance.md from the results of `make test-all` (build/conformance/all.jsonl) and the lists in tests/conformance."""
import argparse
import collections
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from tests.conformance.exceptions import CHECKS, Rules, random_operators  # noqa: E402

HEAD = """# Conformance

Written by `make test-all`. PyTorch's own databases of operators (OpInfo) and modules (ModuleInfo) run on mps and on the CPU: values with OpInfo's
tolerances, dtype, shape, strides, aliasing of inputs, `out=`, in-place calls, non-contiguous inputs, gradients, exceptions and their texts.
Every dtype that the database claims on the CPU or on mps is run, less float64 and complex128.
"""


def table(head, rows):
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    yield from ("| " + " | ".join(str(cell) for cell in row) + " |" for row in rows)


def by_check(results, not_yet):
    """A row a check: cases that ran it, samples compared, cases that fail."""
    for check in CHECKS:
        ran = [r for r in results if check in r["counts"]]
        failing = [r for r in ran if any(f["check"] == check for f in r["failures"])]
        listed = [r for r in failing if not_yet.find(r["case"], check)]
        yield check, len(ran), sum(r["counts"][check] for r in ran), len(ran) - len(failing), len(listed), len(failing) - len(listed)


def rules(file):
    """A row a reason: the lines of a list, those with the same reason together."""
    reasons = collections.OrderedDict()
    for rule in Rules(file).rules:
        reasons.setdefault(rule.reason, []).append(rule.text)
    for reason, texts in reasons.items():
        yield reason.replace("|", "\\|"), ", ".join(f"`{t}`" for t in texts)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "build" / "conformance" / "all.jsonl")
    options = parser.parse_args()
    results = [json.loads(line) for line in options.results.read_text().splitlines()[1:]]
    operators = {r["case"].rsplit(":", 1)[0] for r in results}
    print(HEAD)
    print(f"{len(operators)} operators and modules, {len(results)} cases (an operator and a dtype), "
          f"{sum(sum(r['counts'].values()) for r in results)} comparisons.\n")
    print("\n".join(table(("check", "cases", "comparisons", "right", "not yet", "wrong"), by_check(results, Rules("not_yet.txt")))))
    print("\n## Not yet\n\nAn entry that passes makes the tests fail, so that this list is never longer than the truth.\n")
    print("\n".join(table(("reason", "operator:dtype:check"), rules("not_yet.txt"))))
    print("\n## Never\n")
    print("\n".join(table(("reason", "operator:dtype:check"), rules("never.txt"))))
    print("\n## Random\n\nDtype and shape are compared, and values where the CPU gives the same twice: "
          + ", ".join(f"`{name}`" for name in sorted(random_operators())) + ".")


if __name__ == "__main__":
    main()
