# SPDX-License-Identifier: BSD-3-Clause
"""What torch.mps.compile_shader takes: medians in milliseconds, each round in a process of its own.

    python bench/shader_compile.py [--rounds N]

new: nothing is cached. first: the standard library is precompiled, the source is new. file: from the cache, in a new process. again: in a process
that has it. Wall time depends on what else runs; "processor" is what the round took of the processors, the compiler's processes included.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile

SMALL = """
kernel void scale(device float *out [[buffer(0)]], constant float &factor [[buffer(1)]], uint index [[thread_position_in_grid]]) {
  out[index] *= factor;
}
"""
# As Inductor writes them.
REDUCTION = """
#include <c10/metal/random.h>
#include <c10/metal/special_math.h>
#include <c10/metal/utils.h>
#include <c10/metal/reduction_utils.h>
[[max_total_threads_per_threadgroup(1024)]]
kernel void total(device float *out [[buffer(0)]], constant float *in [[buffer(1)]], constant long &count [[buffer(2)]],
                  uint2 position [[thread_position_in_grid]], uint2 group_position [[thread_position_in_threadgroup]]) {
  auto row = position.x, lane = position.y;
  threadgroup float shared[32];
  float sum = 0;
  for (auto i = lane; i < count; i += 1024) sum += metal::precise::exp(in[row * count + i]);
  auto all = c10::metal::threadgroup_sum(shared, sum, lane, 1024);
  if (lane == 0) out[row] = all;
}
"""
CODE = """
import resource, sys, time, torch
def processor():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)
torch.ones(1, device="mps")
if len(sys.argv) > 1:
    torch.mps.compile_shader("")  # torch's and the compiler's place are looked for
source = sys.stdin.read()
for _ in range(2):
    wall, used = time.perf_counter(), processor()
    torch.mps.compile_shader(source)
    print(1e3 * (time.perf_counter() - wall), 1e3 * (processor() - used))
"""


def run(source, folder, *words):
    """(wall, processor) of the first and of the second call in a new process."""
    environment = {**os.environ, "OPENMPS_CACHE_PATH": folder}
    command = [sys.executable, "-c", CODE, *words]
    text = subprocess.run(command, input=source, env=environment, capture_output=True, text=True, check=True).stdout
    return [tuple(map(float, line.split())) for line in text.splitlines()]


def measure(source, rounds):
    times = {"new": [], "first": [], "file": [], "again": []}
    for number in range(rounds):
        with tempfile.TemporaryDirectory(prefix="openmps-bench-") as folder:
            times["new"].append(run(source, folder)[0])
            times["first"].append(run(f"{source}// {number}", folder, "ready")[0])
            file, again = run(source, folder, "ready")
            times["file"].append(file)
            times["again"].append(again)
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    print(f"{'':24}{'wall':>10}{'processor':>12}   ms")
    for name, source in (("small", SMALL), ("reduction", REDUCTION)):
        for what, rows in measure(source, arguments.rounds).items():
            wall, used = (statistics.median(column) for column in zip(*rows, strict=True))
            print(f"{name + ', ' + what:24}{wall:10.2f}{used:12.2f}")


if __name__ == "__main__":
    main()
