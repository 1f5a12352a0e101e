# SPDX-License-Identifier: BSD-3-Clause
"""Runs PyTorch's OpInfo and ModuleInfo databases on mps against the CPU.

    python -m tests.conformance                                     what `make test` runs: up to 16 samples a case, 1/20 of the gradients
    python -m tests.conformance --all --resume                      what `make test-all` runs: all samples, all gradients
    python -m tests.conformance --op cumsum --dtype float32 --verbose
"""
import argparse
import fnmatch
import hashlib
import json
import os
import pathlib
import sys
import time
import xml.etree.ElementTree as xml

from . import pool
from .exceptions import CHECKS, Rules

QUICK_SAMPLES, GRADIENT_TURNS = 16, 20


def arguments():
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--op", action="append", help="operators, as fnmatch patterns of OpInfo.full_name or nn.Module names")
    parser.add_argument("--dtype", action="append", help="float32, ..., or any (error inputs)")
    parser.add_argument("--check", action="append", choices=CHECKS)
    parser.add_argument("--samples", type=int, help=f"samples a case, evenly spread; 0: all (default {QUICK_SAMPLES}, with --all 0)")
    parser.add_argument("--all", action="store_true", help="all samples, all gradients")
    parser.add_argument("--turn", type=int, help=f"which 1/{GRADIENT_TURNS} of the gradients; default: the next one each time")
    parser.add_argument("--shard", default="1/1", help="N/M: every Mth case from the Nth on")
    parser.add_argument("--resume", action="store_true", help="keep the results that this build has already")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--timeout", type=float, help="seconds a case may take (default 120, with --all 900)")
    parser.add_argument("--folder", type=pathlib.Path, default=pool.ROOT / "build" / "conformance")
    parser.add_argument("--junit", type=pathlib.Path, help="write a JUnit file for tools/test.py")
    parser.add_argument("--forget", action="store_true", help="take lines that pass out of not_yet.txt")
    parser.add_argument("--verbose", action="store_true", help="also what passes, and what not_yet.txt lists")
    return parser.parse_args()


def next_turn(folder):
    """Counts up in a file, so that successive runs go round."""
    path = folder / "turn"
    turn = (int(path.read_text()) if path.exists() else -1) + 1
    path.write_text(str(turn % GRADIENT_TURNS))
    return turn % GRADIENT_TURNS


def checks_of(case):
    """A case of error inputs has that check alone, the others have all the rest."""
    return [c for c in CHECKS if (c == "error") == case.endswith(":any")]


def selected(options, never, turn, cases):
    """The tasks of this run, and how many cases never.txt takes out of it."""
    shard, shards = map(int, options.shard.split("/"))
    filtered = bool(options.op or options.dtype or options.check)
    tasks, left_out = [], 0
    for place, case in enumerate(cases):
        operator, dtype = case.rsplit(":", 1)
        if place % shards != shard - 1 or options.dtype and dtype not in options.dtype:
            continue
        if options.op and not any(fnmatch.fnmatch(operator, pattern) for pattern in options.op):
            continue
        checks = [c for c in checks_of(case) if not options.check or c in options.check]
        if not (options.all or filtered) and place % GRADIENT_TURNS != turn:
            checks = [c for c in checks if c != "gradient"]
        wanted = [c for c in checks if never.find(case, c) is None]
        left_out += len(wanted) < len(checks)
        limit = options.samples if options.samples is not None else 0 if options.all else QUICK_SAMPLES
        if wanted:
            tasks.append({"case": case, "checks": wanted, "limit": limit})
    return tasks, left_out


def fingerprint():
    """Of everything built: results of another build are not resumed."""
    folder = pathlib.Path(__import__("openmps").__file__).resolve().parent
    files = sorted(p for place in (folder, folder / "lib" / ".") for p in place.resolve().rglob("*") if p.is_file() and p.suffix != ".pyc")
    return hashlib.sha256(repr([(str(p), p.stat().st_size, p.stat().st_mtime_ns) for p in files]).encode()).hexdigest()[:16]


class Report:
    """Judges results against not_yet.txt as they come, prints and stores them."""

    def __init__(self, options, path, count):
        self.options, self.count, self.not_yet = options, count, Rules("not_yet.txt")
        self.file, self.begin, self.results = open(path, "a"), time.monotonic(), []
        self.passed = self.failed = self.known = 0

    def add(self, result, seconds, new=True):
        if new:
            self.file.write(json.dumps({**result, "seconds": round(seconds, 3)}) + "\n")
            self.file.flush()
        failing = {f["check"] for f in result["failures"]}
        unlisted = []
        for failure in result["failures"]:
            rule = self.not_yet.find(result["case"], failure["check"])
            if rule is None:
                unlisted.append(line_of(result["case"], failure))
            elif self.options.verbose:
                print(f"not yet {line_of(result['case'], failure)}", flush=True)
        for check in set(result["counts"]) | failing:
            rule = self.not_yet.find(result["case"], check)
            if rule:
                rule.ran, rule.failed = rule.ran + 1, rule.failed + (check in failing)
        self.results.append((result["case"], unlisted))
        self.failed += bool(unlisted)
        self.known += not unlisted and bool(failing)
        self.passed += not failing
        for text in unlisted:
            print(f"FAILED {text}", flush=True)
        if self.options.verbose and not failing:
            print(f"passed {result['case']} {result['counts']}", flush=True)
        if not self.options.verbose and len(self.results) % 500 == 0:
            print(f"{len(self.results)} of {self.count} cases, {time.monotonic() - self.begin:.0f} s", flush=True)

    def unexpected(self, tasks, never, cases):
        """Lines of not_yet.txt all of whose cases ran and passed. Gradients count for lines about gradients alone: few of them run each time."""
        if self.options.samples:
            return []
        planned = {(task["case"], check) for task in tasks for check in task["checks"]}
        missed = set()
        for case in cases:
            for check in checks_of(case):
                rule = self.not_yet.find(case, check)
                if rule and (case, check) not in planned and never.find(case, check) is None and (check != "gradient" or rule.check == "gradient"):
                    missed.add(rule)
        return [r for r in self.not_yet.rules if r.ran and not r.failed and r not in missed and (self.options.all or not r.full_only)]


def line_of(case, failure):
    more = f" [{failure['count']} samples]" if failure["count"] > 1 else ""
    return f"{case}:{failure['check']} #{failure['sample']} {failure['kind']} {failure['text']}{more}"


def write_junit(path, report, unexpected):
    tests, failures = len(report.results) + len(unexpected), report.failed + len(unexpected)
    suite = xml.Element("testsuite", name="conformance", tests=str(tests), failures=str(failures))
    for case, lines in report.results + [(text, [text]) for text in unexpected]:
        element = xml.SubElement(suite, "testcase", classname="conformance", name=case)
        if lines:
            xml.SubElement(element, "failure", message=lines[0]).text = "\n".join(lines)
    root = xml.Element("testsuites")
    root.append(suite)
    path.write_bytes(xml.tostring(root))


def main():
    options = arguments()
    options.folder.mkdir(parents=True, exist_ok=True)
    filtered = bool(options.op or options.dtype or options.check)
    turn = options.turn if options.turn is not None else 0 if options.all or filtered else next_turn(options.folder)
    from .samples import all_cases

    never, cases = Rules("never.txt"), list(all_cases())
    tasks, left_out = selected(options, never, turn, cases)
    stamp, path = fingerprint(), options.folder / ("filtered.jsonl" if filtered else "all.jsonl" if options.all else "quick.jsonl")
    kept = {}
    if options.resume and path.exists():
        first, *lines = path.read_text().splitlines()
        if json.loads(first).get("build") == stamp:
            kept = {json.loads(line)["case"]: json.loads(line) for line in lines}
    if not kept:
        path.write_text(json.dumps({"build": stamp}) + "\n")
    report = Report(options, path, len(tasks))
    for task in tasks:
        if task["case"] in kept:
            report.add(kept[task["case"]], 0, new=False)
    seconds = options.timeout or (900 if options.all else 120)
    pool.run_all([t for t in tasks if t["case"] not in kept], options.processes, seconds, options.folder, report.add)
    rules = report.unexpected(tasks, never, cases)
    if options.forget:
        report.not_yet.forget(rules)
        rules = []
    unexpected = [f"not_yet.txt:{rule.number}: `{rule.text}` passes: remove this line" for rule in rules]
    print("\n".join(unexpected) + "\n" if unexpected else "", end="")
    if options.junit:
        write_junit(options.junit, report, unexpected)
    print(f"conformance: {report.passed} passed, {report.failed + len(unexpected)} failed, {report.known} not yet, {left_out} never"
          + ("" if options.all or filtered else f"; gradients: turn {turn} of {GRADIENT_TURNS}") + f"; {time.monotonic() - report.begin:.0f} s")
    return 0 if not report.failed and not unexpected and report.results else 1


if __name__ == "__main__":
    os.environ.pop("PYTORCH_ENABLE_MPS_FALLBACK", None)
    sys.exit(main())
