# SPDX-License-Identifier: BSD-3-Clause
"""Shaders whose threads work together against the same written plainly: plain time / time, in pairs, median of the pairs (higher is better).

    python bench/shaders.py [--filter TEXT] [--pairs N]

Together: a sum by a tree in threadgroup memory, a tiled product with simdgroup_matrix, softmax with simd_max and simd_sum. Plainly: one thread
a group's sum, an element of the product, a row. Both are torch.mps.compile_shader's, and both are compared with torch's own result first.
"""
import argparse
import math
import statistics
import sys

import torch
from rich.console import Console
from rich.table import Table

import ratio
from cases import K, M, tensor

SOURCE = """
#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

constant uint GROUP = 256;

kernel void sum_together(device float *out, device const float *in, uint i [[thread_position_in_grid]], uint lane [[thread_position_in_threadgroup]],
                         uint group [[threadgroup_position_in_grid]]) {
  threadgroup float shared[GROUP];
  shared[lane] = in[i];
  for (uint half_way = GROUP / 2; half_way > 0; half_way /= 2) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (lane < half_way) shared[lane] += shared[lane + half_way];
  }
  if (lane == 0) out[group] = shared[0];
}

kernel void sum_plain(device float *out, device const float *in, uint group [[thread_position_in_grid]]) {
  float sum = 0;
  for (uint i = 0; i < GROUP; ++i) sum += in[group * GROUP + i];
  out[group] = sum;
}

// A simdgroup makes 16 x 16 elements: four matrices, each loaded one used twice.
kernel void product_together(device float *out, device const float *a, device const float *b, constant long &size,
                             uint2 group [[threadgroup_position_in_grid]]) {
  uint n = size, row = group.y * 16, column = group.x * 16;
  simdgroup_float8x8 c00(0), c01(0), c10(0), c11(0), a0, a1, b0, b1;
  for (uint k = 0; k < n; k += 8) {
    simdgroup_load(a0, a + row * n + k, n);
    simdgroup_load(a1, a + (row + 8) * n + k, n);
    simdgroup_load(b0, b + k * n + column, n);
    simdgroup_load(b1, b + k * n + column + 8, n);
    simdgroup_multiply_accumulate(c00, a0, b0, c00);
    simdgroup_multiply_accumulate(c01, a0, b1, c01);
    simdgroup_multiply_accumulate(c10, a1, b0, c10);
    simdgroup_multiply_accumulate(c11, a1, b1, c11);
  }
  device float *place = out + row * n + column;
  simdgroup_store(c00, place, n);
  simdgroup_store(c01, place + 8, n);
  simdgroup_store(c10, place + 8 * n, n);
  simdgroup_store(c11, place + 8 * n + 8, n);
}

kernel void product_plain(device float *out, device const float *a, device const float *b, constant long &size, uint2 at [[thread_position_in_grid]]) {
  uint n = size;
  float sum = 0;
  for (uint k = 0; k < n; ++k) sum += a[at.y * n + k] * b[k * n + at.x];
  out[at.y * n + at.x] = sum;
}

// A simdgroup makes a row.
kernel void softmax_together(device float *out, device const float *in, constant long &columns, uint lane [[thread_position_in_threadgroup]],
                             uint row [[threadgroup_position_in_grid]]) {
  uint n = columns;
  device const float *from = in + row * n;
  float most = -INFINITY, sum = 0;
  for (uint i = lane; i < n; i += 32) most = max(most, from[i]);
  most = simd_max(most);
  for (uint i = lane; i < n; i += 32) sum += exp(from[i] - most);
  sum = simd_sum(sum);
  for (uint i = lane; i < n; i += 32) out[row * n + i] = exp(from[i] - most) / sum;
}

kernel void softmax_plain(device float *out, device const float *in, constant long &columns, uint row [[thread_position_in_grid]]) {
  uint n = columns;
  device const float *from = in + row * n;
  float most = -INFINITY, sum = 0;
  for (uint i = 0; i < n; ++i) most = max(most, from[i]);
  for (uint i = 0; i < n; ++i) sum += exp(from[i] - most);
  for (uint i = 0; i < n; ++i) out[row * n + i] = exp(from[i] - most) / sum;
}
"""


def sums(library):
    x = tensor(M).to("mps")
    out = torch.empty(M // 256, device="mps")
    return (lambda: library.sum_together(out, x, threads=M, group_size=256), lambda: library.sum_plain(out, x, threads=M // 256),
            out, lambda: x.view(-1, 256).sum(1))


def products(library, n=256):
    a, b, out = tensor(n, n).to("mps"), tensor(n, n, seed=1).to("mps"), torch.empty(n, n, device="mps")
    return (lambda: library.product_together(out, a, b, n, threads=[n // 16 * 32, n // 16], group_size=[32, 1]),
            lambda: library.product_plain(out, a, b, n, threads=[n, n]), out, lambda: a @ b)


def softmaxes(library, rows=K, columns=K):
    x, out = tensor(rows, columns).to("mps"), torch.empty(rows, columns, device="mps")
    return (lambda: library.softmax_together(out, x, columns, threads=rows * 32, group_size=32),
            lambda: library.softmax_plain(out, x, columns, threads=rows), out, lambda: x.softmax(-1))


CASES = {
    "sum of 1M by groups of 256, threadgroup memory": sums,
    "product 256 x 256 x 256, simdgroup_matrix": products,
    "softmax 1024 x 1024, simd_max and simd_sum": softmaxes,
}


def checked(run, out, expected, name):
    out.fill_(float("nan"))
    run()
    torch.testing.assert_close(out, expected, rtol=1e-4, atol=1e-4, msg=lambda text: f"{name}: {text}")


def measure(together, plain, pairs):
    count = max(ratio.repetitions(run, "mps") for run in (together, plain))
    samples = []
    for pair in range(pairs):
        order = (together, plain) if pair % 2 == 0 else (plain, together)
        times = {run: ratio.time_run(run, count, "mps") for run in order}
        samples.append((times[together], times[plain]))
    return (statistics.median(t for t, _ in samples), statistics.median(p for _, p in samples), statistics.median(p / t for t, p in samples))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--filter", default="", help="only cases whose name holds this text")
    parser.add_argument("--pairs", type=int, default=11)
    arguments = parser.parse_args()
    if not torch.backends.mps.is_available():
        sys.exit("mps is not available: install OpenMPS first (make run)")
    library = torch.mps.compile_shader(SOURCE)
    out = Table(title=f"user shaders, {torch.get_num_threads()} threads")
    out.add_column("case")
    for heading in ("plain ms", "together ms", "plain / together"):
        out.add_column(heading, justify="right")
    ratios = []
    for name, make in CASES.items():
        if arguments.filter not in name:
            continue
        together, plain, result, expected = make(library)
        for run in (together, plain):
            checked(run, result, expected(), name)
        seconds, plain_seconds, times = measure(together, plain, arguments.pairs)
        ratios.append(times)
        out.add_row(name, f"{plain_seconds * 1e3:.3f}", f"{seconds * 1e3:.3f}", f"{times:.2f}")
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(out)
    console.print(f"geometric mean {math.exp(statistics.fmean(map(math.log, ratios))) if ratios else float('nan'):.2f}")


if __name__ == "__main__":
    main()
