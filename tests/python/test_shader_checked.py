# SPDX-License-Identifier: BSD-3-Clause
"""OPENMPS_SHADER_VALIDATION: what checked mode finds in shaders, where it says that it is, and that right kernels have no findings.

The mode is fixed when a process starts to compile, so a child process runs all cases at once and tells what came of each.
"""

import functools
import json
import os
import subprocess
import sys

import pytest

SOURCE = """#include <metal_stdlib>
using namespace metal;
struct Row { float3 a; packed_float3 b; char c; int n[2]; };
struct Pointers { device float *out; device const float *in; };
constant float table[4] = {1, 2, 3, 4};
float add(device const float *x, uint i) {
  return x[i] +
         x[i + 1];  // line 8
}
kernel void copy(device float *out, device const float *in, uint i [[thread_position_in_grid]]) {
  out[i] = in[i];  // line 11
}
kernel void neighbours(device float *out, device const float *in, uint i [[thread_position_in_grid]]) {
  out[i] = add(in, i);
}
kernel void before(device float *out, uint i [[thread_position_in_grid]]) {
  device float *p = out + i;
  p[-1] = 1;  // line 18
}
kernel void far_away(device float *out, device const float *in, uint i [[thread_position_in_grid]]) {
  out[i] = in[i * 1000000];  // line 21
}
kernel void column(device float *out [[buffer(3)]], uint2 p [[thread_position_in_grid]], uint2 n [[threads_per_grid]]) {
  out[p.y * n.x + p.x] = 1;  // line 24
}
kernel void vectors(device float4 *x, uint i [[thread_position_in_grid]]) {
  x[i].yz = x[i].xy;  // line 27
}
kernel void packed(device packed_float3 *x, uint i [[thread_position_in_grid]]) {
  float3 v = x[i];  // line 30
  x[i] = v + 1;
}
kernel void rows(device Row *x, uint i [[thread_position_in_grid]]) {
  Row r = x[i];  // line 34
  r.n[1] += 1;
  x[i] = r;
}
kernel void count(device atomic_uint *x, uint i [[thread_position_in_grid]]) {
  atomic_fetch_add_explicit(x + i, 1u, memory_order_relaxed);  // line 39
}
kernel void settings(device float *out, constant Row &row, uint i [[thread_position_in_grid]]) {
  out[i] = row.b.z;  // line 42
}
kernel void small(device float *out, constant float &by, uint i [[thread_position_in_grid]]) {
  out[i] = by;  // line 45, but it is read before
}
kernel void indirect(constant Pointers &p, uint i [[thread_position_in_grid]]) {
  p.out[i] = p.in[i];  // line 48
}
kernel void null(device float *out, uint i [[thread_position_in_grid]]) {
  device float *p = i < 4 ? out : nullptr;
  p[i] = 1;  // line 52
}
kernel void misaligned(device char *x, uint i [[thread_position_in_grid]]) {
  *(device int *)(x + i) = 1;  // line 55
}
kernel void divide(device int *x, device const int *by, uint i [[thread_position_in_grid]]) {
  x[i] = 100 / by[i];  // line 58
}
kernel void constants(device float *out, device const int *at, uint i [[thread_position_in_grid]]) {
  out[i] = table[at[i]];  // line 61
}
kernel void tile(device float *out, device const int *at, uint i [[thread_position_in_grid]], uint l [[thread_index_in_threadgroup]]) {
  threadgroup float a[64];
  a[l] = i;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = a[at[l]];  // line 67
}
kernel void unwritten(device float *out, device const int *skip, uint i [[thread_position_in_grid]], uint l [[thread_index_in_threadgroup]]) {
  threadgroup float a[64];
  if (!skip[l]) a[l] = i;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = a[63 - l];  // line 73
}
kernel void race(device float *out, uint i [[thread_position_in_grid]], uint l [[thread_index_in_threadgroup]]) {
  threadgroup float a[64];
  a[l] = i;  // line 77
  out[i] = a[l ^ 32];  // line 78
  threadgroup_barrier(mem_flags::mem_threadgroup);
}
kernel void device_race(device float *out, device float *sum, uint i [[thread_position_in_grid]]) {
  out[i] = i;
  sum[0] += out[i];  // line 83
}
kernel void same(device int *out, uint i [[thread_position_in_grid]], uint l [[thread_index_in_threadgroup]]) {
  threadgroup int last;
  last = 5;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i / 64] = last;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  last = l;  // line 91
}
kernel void rounds(device float *out, uint i [[thread_position_in_grid]], uint l [[thread_index_in_threadgroup]]) {
  threadgroup float a[64];
  a[l] = i;
  for (uint step = 32; step > 0; step /= 2) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (l < step) a[l] += a[l + step];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = a[0];
}
kernel void late(device float *out, uint i [[thread_position_in_grid]], uint l [[thread_index_in_threadgroup]]) {
  threadgroup float a[64];
  a[l] = i;
  for (uint step = 32; step > 0; step /= 2) {
    if (l < step) a[l] += a[l + step];  // line 107
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  out[i] = a[0];
}
kernel void simd(device float *out, uint i [[thread_position_in_grid]], uint l [[thread_index_in_threadgroup]]) {
  threadgroup float a[2], b[64];
  float sum = simd_sum(float(i));
  if (l % 32 == 0) a[l / 32] = sum;
  b[l] = i;
  simdgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = b[l ^ 1];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] += a[0] + a[1];
}
kernel void early(device float *out, constant uint &n, uint i [[thread_position_in_grid]]) {
  if (i >= n) return;
  out[i] = 1;
  threadgroup_barrier(mem_flags::mem_threadgroup);  // line 125
}
kernel void branches(device float *out, constant uint &n, uint i [[thread_position_in_grid]]) {
  if (i >= n) threadgroup_barrier(mem_flags::mem_device);  // line 128
  else threadgroup_barrier(mem_flags::mem_device);  // line 129
  out[i] = 1;
}
kernel void atomics(device atomic_uint *x, threadgroup atomic_uint *t, uint l [[thread_index_in_threadgroup]]) {
  if (l == 0) atomic_store_explicit(t, 0u, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  atomic_fetch_add_explicit(t, 1u, memory_order_relaxed);
  atomic_fetch_max_explicit(x, l, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (l == 0) atomic_store_explicit(x + 1, atomic_load_explicit(t, memory_order_relaxed), memory_order_relaxed);
}
"""

# What the child does for each name: (statement, finding). None: there is none.
THREAD = ", in thread ({}, {}, {})"
CASES = {
    "copy": ("lib.copy(zeros(100), ones(100))", None),
    "read behind": ("lib.copy(zeros(100), ones(99))", "11: kernel 'copy' reads 4 bytes at offset 396 of buffer 1, which has 396 bytes, in thread (99, 0, 0)"),
    "write behind": (
        "lib.copy(zeros(90), ones(100), threads=100)",
        "11: kernel 'copy' writes 4 bytes at offset 360 of buffer 0, which has 360 bytes, in thread (90, 0, 0) (the first of 10 findings)",
    ),
    "a view": ("lib.copy(zeros(100)[40:], ones(100), threads=61)", "11: kernel 'copy' writes 4 bytes at offset 240 of buffer 0, which has 240 bytes, in thread (60, 0, 0)"),
    "a function": ("lib.neighbours(zeros(8), ones(8))", "8: kernel 'neighbours' reads 4 bytes at offset 32 of buffer 1, which has 32 bytes, in thread (7, 0, 0)"),
    "before": ("lib.before(zeros(8))", "18: kernel 'before' writes 4 bytes at offset -4 of buffer 0, which has 32 bytes, in thread (0, 0, 0)"),
    "far away": (
        "lib.far_away(zeros(3), ones(3))",
        "21: kernel 'far_away' reads 4 bytes at offset 4000000 of buffer 1, which has 12 bytes, in thread (1, 0, 0) (the first of 2 findings)",
    ),
    "two dimensions": ("lib.column(zeros(1), zeros(1), zeros(1), zeros(11), threads=(4, 3))", "24: kernel 'column' writes 4 bytes at offset 44 of buffer 3, which has 44 bytes, in thread (3, 2, 0)"),
    "vectors": ("lib.vectors(zeros(16), threads=4)", None),
    "a vector": ("lib.vectors(zeros(18), threads=5)", "27: kernel 'vectors' writes 4 bytes at offset 72 of buffer 0, which has 72 bytes, in thread (4, 0, 0)"),
    "packed": ("lib.packed(zeros(12), threads=4)", None),
    "a packed one": ("lib.packed(zeros(12), threads=5)", "30: kernel 'packed' reads 4 bytes at offset 48 of buffer 0, which has 48 bytes, in thread (4, 0, 0)"),
    "structs": ("lib.rows(zeros(24), threads=2)", None),
    "a struct": ("lib.rows(zeros(20), threads=2)", "34: kernel 'rows' reads"),
    "atomic": ("lib.count(zeros(4, int), threads=5)", "39: kernel 'count' changes (atomically) 4 bytes at offset 16 of buffer 0, which has 16 bytes, in thread (4, 0, 0)"),
    "a constant reference": ("lib.settings(zeros(2), zeros(12))", None),
    "a short one": ("lib.settings(zeros(1), zeros(6))", "42: kernel 'settings' reads 4 bytes at offset 24 of buffer 1, which has 24 bytes, in thread (0, 0, 0)"),
    "a short argument": ("lib.small(zeros(1), zeros(3)[:1].to(torch.float16))", "kernel 'small' reads 4 bytes at offset 0 of buffer 1, which has 2 bytes, when its arguments are made ready for thread (0, 0, 0)"),
    "argument buffer": ("lib.indirect([zeros(8), ones(8)], threads=8)", None),
    "through it": ("lib.indirect([zeros(8), ones(7)], threads=8)", "48: kernel 'indirect' reads 4 bytes at offset 28 of a buffer of 28 bytes that it has by address, in thread (7, 0, 0)"),
    "null": ("lib.null(zeros(8), threads=5)", "52: kernel 'null' writes 4 bytes through a null pointer (at 0x10), in thread (4, 0, 0)"),
    "misaligned": (
        "lib.misaligned(zeros(2), threads=2)",
        "55: kernel 'misaligned' writes 4 bytes at offset 1 of buffer 0, where they are misaligned: they need a multiple of 4, in thread (1, 0, 0)",
    ),
    "division": ("lib.divide(zeros(3, int), tensor([1, 2, 5]))", None),
    "by zero": ("lib.divide(zeros(3, int), tensor([1, 0, 5]))", "58: kernel 'divide' divides an integer by zero, in thread (1, 0, 0)"),
    "constants": ("lib.constants(zeros(3), tensor([0, 3, 2]))", None),
    "a constant": ("lib.constants(zeros(3), tensor([0, 4, 2]))", "61: kernel 'constants' reads 4 bytes at offset 16 of constant variable 'table', which has 16 bytes, in thread (1, 0, 0)"),
    "tile": ("lib.tile(zeros(128), arange(64), group_size=64)", None),
    "outside a tile": (
        "lib.tile(zeros(128), arange(1, 65), group_size=64)",
        "67: kernel 'tile' reads 4 bytes at offset 256 of threadgroup variable 'a', which has 256 bytes, in thread (63, 0, 0) (the first of 2 findings)",
    ),
    "written": ("lib.unwritten(zeros(64), zeros(64, int), group_size=64)", None),
    "unwritten": (
        "lib.unwritten(zeros(64), tensor([0, 1] + 62 * [0]), group_size=64)",
        "73: kernel 'unwritten' reads byte 4 of threadgroup variable 'a', which no thread of the group has written, in thread (62, 0, 0)",
    ),
    "race": (
        "lib.race(zeros(64), group_size=64)",
        "77: kernel 'race' writes byte 128 of threadgroup variable 'a', which thread (0, 0, 0) of the same group read in line 78 without a barrier between them: a data race, in thread (32, 0, 0)",
    ),
    "race in device memory": (
        "lib.device_race(zeros(4), zeros(1), group_size=4)",
        "83: kernel 'device_race' reads byte 0 of buffer 1, which thread (0, 0, 0) of the same group wrote in line 83 without a barrier between them: a data race, in thread (1, 0, 0)",
    ),
    "no race between groups": ("lib.device_race(zeros(4), zeros(1), group_size=1)", None),
    "same values": (
        "lib.same(zeros(2, int), threads=64, group_size=64)",
        "91: kernel 'same' writes byte 0 of threadgroup variable 'last', which thread (0, 0, 0) of the same group wrote in line 91",
    ),
    "rounds": ("lib.rounds(zeros(128), group_size=64)", None),
    "a late barrier": ("lib.late(zeros(64), group_size=64)", "105: kernel 'late' writes byte 128 of threadgroup variable 'a', which thread (0, 0, 0) of the same group read in line 107"),
    "simdgroups": ("lib.simd(zeros(128), group_size=64)", None),
    "all come": ("lib.early(zeros(64), 64, group_size=64)", None),
    "an early return": (
        "lib.early(zeros(64), 60, threads=64, group_size=64)",
        "125: kernel 'early' waits at a barrier that 4 of the 64 threads of its group do not come to, thread (60, 0, 0) among them, in thread (0, 0, 0)",
    ),
    "one branch": ("lib.branches(zeros(64), 64, group_size=64)", None),
    "two branches": (
        "lib.branches(zeros(64), 60, threads=64, group_size=64)",
        "128: kernel 'branches' waits at this barrier while other threads of its group wait at the one in line 129: all must come to the same one, in thread (60, 0, 0)",
    ),
}

CHILD = """
import json, sys, torch
SOURCE, CASES = json.load(sys.stdin)
lib = torch.mps.compile_shader(SOURCE)
def zeros(n, dtype=None): return torch.zeros(n, dtype=torch.int32 if dtype is int else torch.float32, device="mps")
def ones(n): return torch.ones(n, device="mps")
def tensor(values): return torch.tensor(values, dtype=torch.int32, device="mps")
def arange(*range): return torch.arange(*range, dtype=torch.int32, device="mps")
said = {}
for name, statement in CASES.items():
    try:
        exec(statement)
        torch.mps.synchronize()
        said[name] = None
    except torch.AcceleratorError as error:
        said[name] = str(error)
out, x = torch.full((4,), 9.0, device="mps"), torch.full((3,), 2.0, device="mps")
try:
    lib.copy(out, x)
    torch.mps.synchronize()
except torch.AcceleratorError:
    said["values"] = [out.tolist()]
try:
    lib.copy(x, torch.arange(4.0, device="mps"), threads=4)
    torch.mps.synchronize()
except torch.AcceleratorError:
    said["values"].append(x.tolist())
json.dump(said, sys.stdout)
"""


@functools.cache
def said(variable: str = "OPENMPS_SHADER_VALIDATION") -> dict:
    """What each case raised, in a process of its own with the mode on."""
    cases = {name: statement for name, (statement, _) in CASES.items()}
    environment = dict(os.environ, **{variable: "1"})
    child = subprocess.run(
        [sys.executable, "-c", CHILD], input=json.dumps([SOURCE, cases]), env=environment, text=True, capture_output=True, timeout=600
    )
    assert child.returncode == 0, child.stderr[-4000:]
    return json.loads(child.stdout)


@pytest.mark.parametrize("name", CASES)
def test_finding(name):
    expected = CASES[name][1]
    found = said()[name]
    if expected is None:
        assert found is None
    else:
        prefix = "" if expected.startswith("kernel") else "program_source:"
        assert found is not None and (prefix + expected) in found


def test_a_wrong_read_is_zero_and_a_wrong_write_is_lost():
    assert said()["values"] == [[2, 2, 2, 0], [0, 1, 2]]


LARGE = """
import json, resource, sys, torch
lib = torch.mps.compile_shader('''
struct Large { int v[40000]; };
kernel void move(device Large *to, device const Large *from, uint i [[thread_position_in_grid]]) { to[i] = from[i]; }
kernel void take(device int *out, constant Large &from, uint i [[thread_position_in_grid]]) { out[i] = from.v[i]; }
''')
whole, short = torch.ones(40000, dtype=torch.int32, device="mps"), torch.ones(39999, dtype=torch.int32, device="mps")
said = []
def call(kernel, *arguments, threads):
    try:
        getattr(lib, kernel)(*arguments, threads=threads)
        torch.mps.synchronize()
        said.append(None)
    except torch.AcceleratorError as error:
        said.append(str(error))
call("move", whole, short, threads=1)
said.append(whole.unique().tolist())
call("move", short, torch.full_like(whole, 2), threads=1)
said.append(short.unique().tolist())
call("take", torch.zeros(4, dtype=torch.int32, device="mps"), short, threads=4)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
del said[6:]
for _ in range(300): call("move", short, whole, threads=1)
del said[5:]
said.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
json.dump(said, sys.stdout)
"""


def test_wrong_accesses_of_large_structs():
    """As small ones, and what stands in for their memory does not outlive the call."""
    child = subprocess.run([sys.executable, "-c", LARGE], env=dict(os.environ, OPENMPS_SHADER_VALIDATION="1"), text=True, capture_output=True, timeout=600)
    assert child.returncode == 0, child.stderr[-4000:]
    read, zeros, write, kept, taken, kilobytes = json.loads(child.stdout)
    assert "kernel 'move' reads 160000 bytes at offset 0 of buffer 1, which has 159996 bytes" in read
    assert zeros == [0]
    assert "kernel 'move' writes 160000 bytes at offset 0 of buffer 0, which has 159996 bytes" in write
    assert kept == [1]
    assert taken is None  # each thread reads what is there
    assert kilobytes < 16 << 10  # 300 calls lost 47 MB once
