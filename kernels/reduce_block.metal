// SPDX-License-Identifier: BSD-3-Clause
//
// reduce_block: what a reduction does with the blocks of a program (MPS_STEP_REDUCE of driver.h): values go into fixed lanes, lanes are folded
// as a tree, rows are added by fours, accumulators merge. The order of the operations is that of reduce.h, whatever made the values.

#include <metal_stdlib>
#include "extreme.h"

using namespace metal;

#define LANES 16
// All lanes, or the half of them, at once: then they stay in registers from one loop to the next.
#define ALL_LANES _Pragma("clang loop vectorize(assume_safety) vectorize_width(16) interleave_count(1) unroll(disable)")
#define HALF_THE_LANES _Pragma("clang loop vectorize(assume_safety) vectorize_width(8) interleave_count(1) unroll(disable)")

struct sum_f32 {
  typedef float value;
  static float identity() { return 0.0f; }
  static float combine(float a, float b) { return a + b; }
};
struct prod_f32 {
  typedef float value;
  static float identity() { return 1.0f; }
  static float combine(float a, float b) { return a * b; }
};
// A NaN wins.
struct min_f32 {
  typedef float value;
  static float identity() { return INFINITY; }
  static float combine(float a, float b) { return smaller(a, b); }
};
struct max_f32 {
  typedef float value;
  static float identity() { return -INFINITY; }
  static float combine(float a, float b) { return larger(a, b); }
};
// Unsigned inside: wrap-around is defined there.
struct sum_i64 {
  typedef long value;
  static long identity() { return 0; }
  static long combine(long a, long b) { return long(ulong(a) + ulong(b)); }
};
struct prod_i64 {
  typedef long value;
  static long identity() { return 1; }
  static long combine(long a, long b) { return long(ulong(a) * ulong(b)); }
};
struct min_i64 {
  typedef long value;
  static long identity() { return long(0x7fffffffffffffff); }
  static long combine(long a, long b) { return smaller(a, b); }
};
struct max_i64 {
  typedef long value;
  static long identity() { return -long(0x7fffffffffffffff) - 1; }
  static long combine(long a, long b) { return larger(a, b); }
};
struct sum_c64 {
  typedef float2 value;
  static float2 identity() { return float2(0.0f, 0.0f); }
  static float2 combine(float2 a, float2 b) { return float2(a.x + b.x, a.y + b.y); }
};
struct prod_c64 {
  typedef float2 value;
  static float2 identity() { return float2(1.0f, 0.0f); }
  static float2 combine(float2 a, float2 b) { return float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
};

template <typename Op>
inline typename Op::value combine_four(device const typename Op::value *x) {
  return Op::combine(Op::combine(x[0], x[LANES]), Op::combine(x[2 * LANES], x[3 * LANES]));
}

// `n` values into the lanes; a multiple of 8 * LANES of them, but for the last time.
template <typename Op>
inline void add_to_lanes(thread typename Op::value *sums, device const typename Op::value *values, long n) {
  long i = 0;
  for (; i + 8 * LANES <= n; i += 8 * LANES) {
    device const typename Op::value *p = values + i;
    ALL_LANES
    for (uint l = 0; l < LANES; l++)
      sums[l] = Op::combine(sums[l], Op::combine(combine_four<Op>(p + l), combine_four<Op>(p + l + 4 * LANES)));
  }
  for (; i + LANES <= n; i += LANES) {
    device const typename Op::value *p = values + i;
    ALL_LANES
    for (uint l = 0; l < LANES; l++) sums[l] = Op::combine(sums[l], p[l]);
  }
  for (uint l = 0; i < n; i++, l++) sums[l] = Op::combine(sums[l], values[i]);
}

template <typename Op>
inline typename Op::value fold_lanes(thread const typename Op::value *lanes) {
  typename Op::value sums[LANES / 2];
  HALF_THE_LANES
  for (uint l = 0; l < LANES / 2; l++) sums[l] = Op::combine(lanes[l], lanes[l + LANES / 2]);
  return Op::combine(Op::combine(Op::combine(sums[0], sums[1]), Op::combine(sums[2], sums[3])),
                     Op::combine(Op::combine(sums[4], sums[5]), Op::combine(sums[6], sums[7])));
}

// One thread.
template <typename Op>
kernel void reduce_lanes(device typename Op::value *lanes [[buffer(0)]], device const typename Op::value *values [[buffer(1)]],
                         constant long *count [[buffer(2)]], uint thread_index [[thread_position_in_grid]]) {
  typename Op::value sums[LANES];
  for (uint l = 0; l < LANES; l++) sums[l] = lanes[l];
  add_to_lanes<Op>(sums, values, count[thread_index]);
  for (uint l = 0; l < LANES; l++) lanes[l] = sums[l];
}

template <typename Op>
kernel void reduce_fold(device typename Op::value *out [[buffer(0)]], device const typename Op::value *lanes [[buffer(1)]],
                        uint i [[thread_position_in_grid]]) {
  typename Op::value sums[LANES];
  for (uint l = 0; l < LANES; l++) sums[l] = lanes[l];
  out[i] = fold_lanes<Op>(sums);
}

// Both, for a row of `length` values a thread.
template <typename Op>
kernel void reduce_short(device typename Op::value *out [[buffer(0)]], device const typename Op::value *values [[buffer(1)]],
                         constant long &length [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  typename Op::value sums[LANES];
  for (uint l = 0; l < LANES; l++) sums[l] = Op::identity();
  add_to_lanes<Op>(sums, values + long(i) * length, length);
  out[i] = fold_lanes<Op>(sums);
}

// Four rows at once onto the sums.
template <typename Op>
kernel void reduce_rows(device typename Op::value *sums [[buffer(0)]], device const typename Op::value *a [[buffer(1)]],
                        device const typename Op::value *b [[buffer(2)]], device const typename Op::value *c [[buffer(3)]],
                        device const typename Op::value *d [[buffer(4)]], uint i [[thread_position_in_grid]]) {
  sums[i] = Op::combine(sums[i], Op::combine(Op::combine(a[i], b[i]), Op::combine(c[i], d[i])));
}

template <typename Op>
kernel void reduce_combine(device typename Op::value *sums [[buffer(0)]], device const typename Op::value *values [[buffer(1)]],
                           uint i [[thread_position_in_grid]]) {
  sums[i] = Op::combine(sums[i], values[i]);
}

#define BLOCK_KERNELS(op, T)                                                                                                      \
  template [[host_name("reduce_lanes_" #op)]] kernel void reduce_lanes<op>(device T *lanes [[buffer(0)]],                         \
      device const T *values [[buffer(1)]], constant long *count [[buffer(2)]], uint thread_index [[thread_position_in_grid]]);   \
  template [[host_name("reduce_fold_" #op)]] kernel void reduce_fold<op>(device T *out [[buffer(0)]],                             \
      device const T *lanes [[buffer(1)]], uint i [[thread_position_in_grid]]);                                                   \
  template [[host_name("reduce_short_" #op)]] kernel void reduce_short<op>(device T *out [[buffer(0)]],                           \
      device const T *values [[buffer(1)]], constant long &length [[buffer(2)]], uint i [[thread_position_in_grid]]);             \
  template [[host_name("reduce_rows_" #op)]] kernel void reduce_rows<op>(device T *sums [[buffer(0)]],                            \
      device const T *a [[buffer(1)]], device const T *b [[buffer(2)]], device const T *c [[buffer(3)]],                          \
      device const T *d [[buffer(4)]], uint i [[thread_position_in_grid]]);                                                       \
  template [[host_name("reduce_combine_" #op)]] kernel void reduce_combine<op>(device T *sums [[buffer(0)]],                      \
      device const T *values [[buffer(1)]], uint i [[thread_position_in_grid]]);

BLOCK_KERNELS(sum_f32, float)
BLOCK_KERNELS(prod_f32, float)
BLOCK_KERNELS(min_f32, float)
BLOCK_KERNELS(max_f32, float)
BLOCK_KERNELS(sum_i64, long)
BLOCK_KERNELS(prod_i64, long)
BLOCK_KERNELS(min_i64, long)
BLOCK_KERNELS(max_i64, long)
BLOCK_KERNELS(sum_c64, float2)
BLOCK_KERNELS(prod_c64, float2)
