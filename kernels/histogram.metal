// SPDX-License-Identifier: BSD-3-Clause
//
// histogram: points counted, or their weights added up, in bins: of whole numbers (bincount) and between edges (histc, histogram).

#include <metal_stdlib>
#include "error.h"
#include "histogram_arguments.h"

using namespace metal;

namespace {

// How many of the edges in [first, last) are not above the value, and first.
template <typename T>
inline long upper_bound(device const T *edges, long first, long last, T value) {
  long length = last - first;
  while (length > 0) {
    const long half_length = length >> 1;
    const long after = !(value < edges[first + half_length]);  // without a branch, which nothing could foresee
    first += after * (half_length + 1);
    length = (length - after) >> 1;
  }
  return first;
}

// What upper_bound finds from one edge before the bin to one edge behind it, less 1.
template <typename T>
inline long near(device const T *edges, long bin, long count, T value) {
  const long low = max(bin - 1, 0L), high = min(bin + 2, count);
  const long next = low + 2 * long(!(value < edges[low + 1]));
  const long more = long(next < high) & long(!(value < edges[min(next, count - 1)]));
  return next + more - 1;
}

// The bin of a value that lies between the outer edges. Arithmetic is in T, rounded after each step, as the CPU's.
template <typename T>
inline long bin_of(device const T *edges, long count, T value, uint method) {
  long bin;
  if (method == MPS_HISTOGRAM_SEARCHED) {
    bin = upper_bound(edges, 0L, count, value) - 1;
  } else {
    const T distance = T(value - edges[0]), range = T(edges[count - 1] - edges[0]);
    const T scaled = T(T(distance * T(float(count - 1))) / range);
    bin = scaled > T(0.0f) ? long(min(float(scaled), float(count))) : 0;  // not a number where the range is 0 or infinite
    if (method == MPS_HISTOGRAM_NEAR) bin = near(edges, min(bin, count - 1), count, value);
  }
  return clamp(bin, 0L, count - 2);  // the last bin has its right edge too
}

}  // namespace

// Thread: one part of the values, into bins[part]. A is what bins are added up in.
template <typename T, typename A>
kernel void count_values(device const T *values [[buffer(0)]], device const A *weights [[buffer(1)]], device A *all_bins [[buffer(2)]],
                         constant mps_histogram_arguments &a [[buffer(3)]], device mps_kernel_error *error [[buffer(4)]],
                         uint part [[thread_position_in_grid]]) {
  device A *bins = all_bins + long(part) * a.bins;
  for (long k = 0; k < a.bins; k++) bins[k] = A(0);
  const long begin = long(part) * a.part, end = min(begin + a.part, long(a.count)), stride = a.row_stride, weight_stride = a.weight_stride;
  const ulong count = ulong(a.bins);
  const bool weighted = a.weighted != 0;
  for (long i = begin; i < end; i++) {
    const long bin = long(values[i * stride]);
    if (ulong(bin) >= count) {
      report_index_error(error, bin, long(count), 0);
      continue;
    }
    bins[bin] += weighted ? weights[i * weight_stride] : A(1);
  }
}

template <typename T, typename A>
kernel void count_points(device const T *points [[buffer(0)]], device const T *weights [[buffer(1)]], device A *all_bins [[buffer(2)]],
                         constant mps_histogram_arguments &a [[buffer(3)]], device const T *edges [[buffer(4)]],
                         uint part [[thread_position_in_grid]]) {
  device A *bins = all_bins + long(part) * a.bins;
  for (long k = 0; k < a.bins; k++) bins[k] = A(0);
  const long begin = long(part) * a.part, end = min(begin + a.part, long(a.count));
  const long stride = a.row_stride, weight_stride = a.weight_stride, column_stride = a.column_stride;
  const uint dimensions = a.dimensions, method = a.method;
  const bool weighted = a.weighted != 0;
  const long count_of_one = a.edge_counts[0];
  for (long i = begin; i < end; i++) {
    long bin = 0, first_edge = 0;
    bool inside = true;
    for (uint d = 0; d < dimensions && inside; d++) {
      const T value = points[i * stride + d * column_stride];
      device const T *along = edges + first_edge;
      const long count = dimensions == 1 ? count_of_one : long(a.edge_counts[d]);
      inside = value >= along[0] && value <= along[count - 1];
      if (inside) bin += bin_of(along, count, value, method) * (dimensions == 1 ? 1 : long(a.bin_strides[d]));
      first_edge += count;
    }
    if (inside) bins[bin] += weighted ? A(float(weights[i * weight_stride])) : A(1);
  }
}

// out[k] = bins[0][k] + bins[1][k] + .., in this order.
template <typename A, typename O>
kernel void add_parts(device const A *bins [[buffer(0)]], device O *out [[buffer(1)]], constant mps_histogram_arguments &a [[buffer(2)]],
                      uint block [[thread_position_in_grid]]) {
  const long begin = long(block) * a.block, end = min(begin + a.block, long(a.bins));
  for (long k = begin; k < end; k++) {
    A sum = bins[k];
    for (long part = 1; part < a.parts; part++) sum += bins[part * a.bins + k];
    out[k] = O(sum);
  }
}

#define VALUES(NAME, T, SUM, A)                                                                                                             \
  template [[host_name("count_values_" #NAME "_" #SUM)]] kernel void count_values<T, A>(device const T *, device const A *, device A *,     \
                                                                                      constant mps_histogram_arguments &,                   \
                                                                                      device mps_kernel_error *, uint);
VALUES(i32, int, i64, long)
VALUES(i64, long, i64, long)
VALUES(i32, int, f32, float)
VALUES(i64, long, f32, float)

#define POINTS(NAME, T, SUM, A)                                                                                                             \
  template [[host_name("count_points_" #NAME "_" #SUM)]] kernel void count_points<T, A>(device const T *, device const T *, device A *,     \
                                                                                      constant mps_histogram_arguments &,                   \
                                                                                      device const T *, uint);
POINTS(f32, float, i64, long)
POINTS(f16, half, i64, long)
POINTS(bf16, bfloat, i64, long)
POINTS(f32, float, f32, float)
POINTS(f16, half, f32, float)
POINTS(bf16, bfloat, f32, float)

#define ADD(NAME, A, OUT, O)                                                                                                  \
  template [[host_name("add_parts_" #NAME "_" #OUT)]] kernel void add_parts<A, O>(device const A *, device O *,              \
                                                                                constant mps_histogram_arguments &, uint);
ADD(i64, long, i64, long)
ADD(i64, long, f32, float)
ADD(f32, float, f32, float)
