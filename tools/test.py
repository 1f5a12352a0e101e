# SPDX-License-Identifier: BSD-3-Clause
"""Runs every test of a build folder: the C unit tests (ctest), tests/metal and tests/python (pytest, two processes), then tests/conformance.

The last line is `N passed, N failed` over all of them; the exit code is 0 only when nothing failed and something ran.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import xml.etree.ElementTree as xml

ROOT = pathlib.Path(__file__).resolve().parent.parent


def counts(report):
    """(passed, failed, skipped) of a JUnit file; a missing one counts as one failure."""
    if not report.exists():
        return 0, 1, 0
    total = failed = skipped = 0
    for suite in xml.parse(report).getroot().iter("testsuite"):
        total += int(suite.get("tests", 0))
        failed += int(suite.get("failures", 0)) + int(suite.get("errors", 0))
        skipped += int(suite.get("skipped", 0)) + int(suite.get("disabled", 0))
    return total - failed - skipped, failed, skipped


def run(name, command, report, **options):
    """Runs one runner and returns its counts; a runner that dies without a failed test counts as a failure."""
    print(f"== {name}", flush=True)
    report.unlink(missing_ok=True)
    code = subprocess.run([str(c) for c in command], cwd=ROOT, **options).returncode
    passed, failed, skipped = counts(report)
    if code != 0 and failed == 0:
        print(f"{name}: the runner ended with {code}")
        failed = 1
    return passed, failed, skipped


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--processes", default="2", help="pytest processes")
    options = parser.parse_args()
    build = options.build.resolve()
    ctest_report, pytest_report, conformance_report = build / "ctest.xml", build / "pytest.xml", build / "conformance.xml"
    # Two processes on two cores: an OpenMP team in each would wait for the other's at the end of every parallel region of the CPU side.
    environment = dict(os.environ, OPENMPS_BUILD=str(build), OMP_NUM_THREADS="1")
    results = [
        run("unit tests of the C core", ["ctest", "--test-dir", build, "--output-on-failure", "-j2", "--output-junit", ctest_report], ctest_report),
        run("tests of the kernels and of torch on mps",
            [sys.executable, "-m", "pytest", "-q", "-n", options.processes, "--dist", "loadgroup", f"--junitxml={pytest_report}",
             *[f for f in ("tests/metal", "tests/python") if (ROOT / f).is_dir()]], pytest_report, env=environment),
        run("every operator that PyTorch's database knows, on mps against the CPU",
            [sys.executable, "-m", "tests.conformance", "--processes", options.processes, f"--junit={conformance_report}"], conformance_report),
    ]
    passed, failed, skipped = (sum(column) for column in zip(*results))
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 0 if failed == 0 and passed > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
