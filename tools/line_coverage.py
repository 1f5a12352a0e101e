# SPDX-License-Identifier: BSD-3-Clause
"""Runs the unit tests of a build with OPENMPS_COVERAGE, prints which share of each room's lines they reach, and writes index.html there."""

import argparse
import collections
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def room_of(name):
    """src/driver/host/dispatch.c -> driver/host; src/base/hash.c -> base."""
    folders = pathlib.PurePosixPath(name).parts[1:-1]
    return "/".join(folders)


def report(build):
    summary = build / "coverage.json"
    command = ["gcovr", "--root", ROOT, "--object-directory", build, "--filter", "src/", "--merge-mode-functions", "separate"]
    subprocess.run([*command, "--html-details", build / "index.html", "--json-summary", summary, build], cwd=ROOT, check=True)
    rooms = collections.defaultdict(lambda: [0, 0])
    for file in json.loads(summary.read_text())["files"]:
        for room in (room_of(file["filename"]), "all"):
            rooms[room][0] += file["line_covered"]
            rooms[room][1] += file["line_total"]
    print(f"{'room':16}{'lines':>8}{'reached':>9}{'share':>9}")
    for room, (covered, total) in sorted(rooms.items(), key=lambda item: (item[0] == "all", item[0])):
        print(f"{room:16}{total:8}{covered:9}{100 * covered / total:8.1f}%")
    print("ops are tested through torch, by tests/python")
    print(f"each file's lines: {build / 'index.html'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    build = parser.parse_args().build.resolve()
    for old in build.rglob("*.gcda"):  # of runs before
        old.unlink()
    tests = subprocess.run(["ctest", "--test-dir", build, "--output-on-failure", "--quiet", "-j2"], check=False).returncode
    report(build)
    return tests


if __name__ == "__main__":
    sys.exit(main())
