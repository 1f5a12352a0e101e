# SPDX-License-Identifier: BSD-3-Clause
"""The ratio table: cpu time / mps time for each case, both in this process, in pairs, median of the pairs (higher is better).

    python bench/ratio.py [--filter TEXT] [--pairs N] [--busy] [--json FILE]

--busy keeps one core occupied by another process. A run is repeated until it takes about a millisecond; mps time includes the wait.
"""
import argparse
import json
import math
import statistics
import subprocess
import sys
import time

import torch
from rich.console import Console
from rich.table import Table
from tqdm import tqdm

import cases


SETTLE_SECONDS = 0.03  # torch's OpenMP team goes on spinning for some milliseconds after a run, on the cores that the other side needs


def time_run(run, count, device):
    """Seconds a run, after one that is not counted. The device is idle before and after; results are dropped at once."""
    time.sleep(SETTLE_SECONDS)
    run()
    if device == "mps":
        torch.mps.synchronize()
    start = time.perf_counter()
    for _ in range(count):
        run()
    if device == "mps":
        torch.mps.synchronize()
    return (time.perf_counter() - start) / count


def repetitions(run, device):
    for _ in range(3):
        run()
    single = max(time_run(run, 1, device), 1e-7)
    return max(1, min(2000, math.ceil(2e-3 / single)))


def measure(case, pairs):
    runs = {device: case.make(device) for device in ("cpu", "mps")}
    count = max(repetitions(run, device) for device, run in runs.items())
    samples = []
    for pair in range(pairs):
        order = ("cpu", "mps") if pair % 2 == 0 else ("mps", "cpu")  # neither side always runs on the warmer cache
        times = {device: time_run(runs[device], count, device) for device in order}
        samples.append((times["cpu"], times["mps"]))
    return {
        "cpu_seconds": statistics.median(cpu for cpu, _ in samples),
        "mps_seconds": statistics.median(mps for _, mps in samples),
        "ratio": statistics.median(cpu / mps for cpu, mps in samples),
    }


def verdict(ratio, goal):
    if goal is None:
        return ""
    return "[green]reached" if ratio >= goal else "[red]missed"


def table(rows, title):
    out = Table(title=title)
    for heading in ("group", "case"):
        out.add_column(heading)
    for heading in ("cpu ms", "mps ms", "cpu / mps", "goal"):
        out.add_column(heading, justify="right")
    out.add_column("")
    for row in rows:
        goal = "" if row["goal"] is None else f"{row['goal']:.2f}"
        out.add_row(row["group"], row["name"], f"{row['cpu_seconds'] * 1e3:.4f}", f"{row['mps_seconds'] * 1e3:.4f}",
                    f"{row['ratio']:.2f}", goal, verdict(row["ratio"], row["goal"]))
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--filter", default="", help="only cases whose group or name holds this text")
    parser.add_argument("--pairs", type=int, default=11)
    parser.add_argument("--busy", action="store_true", help="with one core kept busy by another process")
    parser.add_argument("--json", help="write the figures to this file")
    arguments = parser.parse_args()
    if not torch.backends.mps.is_available():
        sys.exit("mps is not available: install OpenMPS first (make run)")
    load = subprocess.Popen([sys.executable, "-c", "while True: pass"]) if arguments.busy else None
    try:
        rows = []
        chosen = [c for c in cases.CASES if arguments.filter in c.group or arguments.filter in c.name]
        for case in tqdm(chosen, desc="bench", disable=not sys.stderr.isatty()):
            row = {"group": case.group, "name": case.name, "goal": case.busy_goal if arguments.busy else case.goal}
            rows.append(row | measure(case, arguments.pairs))
    finally:
        if load:
            load.kill()
            load.wait()
    mean = math.exp(statistics.fmean(math.log(row["ratio"]) for row in rows)) if rows else float("nan")
    title = f"cpu time / mps time, torch {torch.__version__}, {torch.get_num_threads()} threads" + (", one core busy" if arguments.busy else "")
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(table(rows, title))
    missed = [row["name"] for row in rows if row["goal"] is not None and row["ratio"] < row["goal"]]
    console.print(f"geometric mean {mean:.2f}; goals missed: {', '.join(missed) or 'none'}")
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"torch": torch.__version__, "threads": torch.get_num_threads(), "busy": arguments.busy, "mean": mean, "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()
