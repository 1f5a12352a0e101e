# SPDX-License-Identifier: BSD-3-Clause
"""The text files of exceptions. A line is `operator[:dtype[:check]] : reason`; `*` stands for any dtype; `#` starts a comment.

never.txt     what is not run: nothing to compare with, or nothing that this device could have
not_yet.txt   what fails today; a line all of whose cases pass is itself a failure
random.txt    operators with random or undefined values: dtype, shape and strides alone are compared
rows.txt      operators whose matrices lie in rows where the CPU's lie in columns: compared like that
A line of not_yet.txt whose reason begins with [all] fails only when all samples are run, and is not missed by a quick run.
"""
import pathlib

FOLDER = pathlib.Path(__file__).resolve().parent
CHECKS = ("forward", "noncontiguous", "out", "inplace", "error", "gradient", "sparse")


class Rule:
    def __init__(self, line, number):
        pattern, _, self.reason = (part.strip() for part in line.partition(" : "))
        if not self.reason:
            raise ValueError(f"line {number}: `{line}` has no reason behind ` : `")
        self.text, self.number = pattern, number
        self.operator, self.dtype, self.check = (pattern.split(":") + ["*", "*"])[:3]
        self.full_only = self.reason.startswith("[all]")
        self.ran = self.failed = 0

    def covers(self, operator, dtype, check):
        return self.operator == operator and self.dtype in ("*", dtype) and self.check in ("*", check)


class Rules:
    def __init__(self, name):
        self.path = FOLDER / name
        lines = enumerate(self.path.read_text().splitlines(), 1)
        self.rules = [Rule(line, number) for number, line in lines if line.strip() and not line.startswith("#")]
        self.by_operator = {}
        for rule in self.rules:
            self.by_operator.setdefault(rule.operator, []).append(rule)

    def forget(self, rules):
        """Takes lines out of the file."""
        numbers = {rule.number for rule in rules}
        kept = [line for number, line in enumerate(self.path.read_text().splitlines(), 1) if number not in numbers]
        self.path.write_text("\n".join(kept) + "\n")

    def find(self, case, check):
        operator, dtype = case.rsplit(":", 1)
        return next((r for r in self.by_operator.get(operator, ()) if r.covers(operator, dtype, check)), None)


def random_operators():
    """{operator: "random" or "undefined"}"""
    lines = (line.split() for line in (FOLDER / "random.txt").read_text().splitlines() if line.strip() and not line.startswith("#"))
    return {name: kind for name, kind in lines}
