# SPDX-License-Identifier: BSD-3-Clause
"""Formats the lines that were changed since the branch left main (on main itself: since HEAD), and new files; no other line is touched.

C, C++ and Metal: clang-format with .clang-format. Python: ruff with pyproject.toml. Both come with requirements-dev.txt.
"""

import argparse
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Without a column limit clang-format puts each constant of an enum, and each arm of a chain of ?:, on a line of its own: not here.
LEFT_ALONE = re.compile(r"\benum\b.*\{.*\}|\?[^?]*:[^?]*\?")
HUNK = re.compile(r"^@@ -\S+ \+(\d+)(?:,(\d+))? @@", re.MULTILINE)
C_SUFFIXES = (".c", ".h", ".cpp", ".metal")


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def base_commit(name):
    """Where HEAD and `name` parted; HEAD when there is no such name."""
    found = subprocess.run(["git", "merge-base", name, "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "HEAD"


def changed_ranges(base):
    """{path: [(first, last), ...]} of the lines in the working tree that `base` does not have; an empty list means all of them."""
    ranges = {}
    for path in git("diff", "--name-only", "--diff-filter=d", base).splitlines():
        found = [(int(first), int(first) + int(count or 1) - 1) for first, count in HUNK.findall(git("diff", "-U0", base, "--", path))]
        ranges[path] = [(first, last) for first, last in found if last >= first]  # a hunk that only takes lines away has none
    ranges = {path: lines for path, lines in ranges.items() if lines}
    ranges.update({path: [] for path in git("ls-files", "--others", "--exclude-standard").splitlines()})
    return ranges


def format_c(path, lines):
    text = (ROOT / path).read_text().splitlines()
    chosen = {n for first, last in lines or [(1, len(text))] for n in range(first, last + 1) if not LEFT_ALONE.search(text[n - 1])}
    if chosen:
        subprocess.run(["clang-format", "-i", *[f"--lines={n}:{n}" for n in sorted(chosen)], path], cwd=ROOT, check=True)


def format_python(path, lines):
    ranges = [["--range", f"{first}-{last}"] for first, last in reversed(lines)] or [[]]  # from the end: the numbers above stay right
    for option in ranges:
        subprocess.run(["ruff", "format", "--quiet", *option, path], cwd=ROOT, check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", default="main", help="the branch or commit whose lines are left alone")
    base = base_commit(parser.parse_args().base)
    formatted = 0
    for path, lines in changed_ranges(base).items():
        suffix = pathlib.Path(path).suffix
        if suffix not in (*C_SUFFIXES, ".py"):
            continue
        before = (ROOT / path).read_bytes()
        (format_python if suffix == ".py" else format_c)(path, lines)
        if (ROOT / path).read_bytes() != before:
            formatted += 1
            print(f"formatted {path}")
    print(f"format: {formatted} files changed, against {base[:12]}")


if __name__ == "__main__":
    main()
