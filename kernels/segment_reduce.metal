// SPDX-License-Identifier: BSD-3-Clause
//
// segment_reduce: sums, means, products and extremes of neighbouring rows, segment by segment, and their gradients. One thread takes a block of
// one segment, in the order of the rows (single columns: sixteen rows side by side), in float, rounded once: the same bits every time.

#include <metal_stdlib>
#include "error.h"
#include "segment_reduce_arguments.h"

using namespace metal;

namespace {

#define LANES 16

struct add_values {
  static float identity() { return 0.0f; }
  static float combine(float a, float b) { return a + b; }
};
struct multiply_values {
  static float identity() { return 1.0f; }
  static float combine(float a, float b) { return a * b; }
};
// A NaN wins; of equal ones the first.
struct larger_value {
  static float identity() { return -INFINITY; }
  static float combine(float a, float b) { return b != b || a < b ? b : a; }
};
struct smaller_value {
  static float identity() { return INFINITY; }
  static float combine(float a, float b) { return b != b || b < a ? b : a; }
};

// [begin, end) of segment s, always inside of the data; what is not is reported.
struct segment_range {
  long begin, end;
};
inline segment_range range_of(device const long *bounds, long s, constant mps_segment_reduce_arguments &a, device mps_kernel_error *error) {
  const bool offsets = a.bounds > a.segments;
  long begin = offsets ? bounds[s] : s > 0 ? bounds[s - 1] : 0, end = offsets ? bounds[s + 1] : bounds[s];
  if (end < begin) {
    report_error(error, MPS_KERNEL_ERROR_NEGATIVE, end - begin, s, 0);
    end = begin;
  }
  if (begin < 0 || end > a.length) {
    report_index_error(error, begin < 0 ? begin : end, a.length, 0);
    begin = clamp(begin, 0L, long(a.length));
    end = clamp(end, begin, long(a.length));
  }
  return {begin, end};
}

template <typename Op, typename T>
inline void take_rows(thread float *values, device const T *rows, long count, long width, long stride) {
  if (width == MPS_SEGMENT_BLOCK) { // a fixed length: the values stay in registers
    for (long r = 0; r < count; r++)
      for (uint c = 0; c < MPS_SEGMENT_BLOCK; c++) values[c] = Op::combine(values[c], float(rows[r * stride + c]));
  } else if (width == 1) {
    float lanes[LANES];
    for (uint l = 0; l < LANES; l++) lanes[l] = Op::identity();
    long r = 0;
    if (stride == 1) {
      for (; r + LANES <= count; r += LANES)
        for (uint l = 0; l < LANES; l++) lanes[l] = Op::combine(lanes[l], float(rows[r + l]));
    }
    float value = values[0];
    if (r > 0)
      for (uint l = 0; l < LANES; l++) value = Op::combine(value, lanes[l]);
    for (; r < count; r++) value = Op::combine(value, float(rows[r * stride]));
    values[0] = value;
  } else {
    for (long r = 0; r < count; r++)
      for (long c = 0; c < width; c++) values[c] = Op::combine(values[c], float(rows[r * stride + c]));
  }
}

}  // namespace

// Thread (segment of a row, block of inner).
template <typename T>
kernel void segment_reduce(device const T *data [[buffer(0)]], device const long *bounds [[buffer(1)]], device T *out [[buffer(2)]],
                           constant mps_segment_reduce_arguments &a [[buffer(3)]], device mps_kernel_error *error [[buffer(4)]],
                           uint2 position [[thread_position_in_grid]]) {
  const long row = long(position.x) / a.segments, s = long(position.x) - row * a.segments, first = long(position.y) * MPS_SEGMENT_BLOCK;
  const long width = min(long(MPS_SEGMENT_BLOCK), a.inner - first);
  const segment_range r = range_of(bounds + row * a.bounds, s, a, error);
  const long count = r.end - r.begin;
  device const T *from = data + (row * a.length + r.begin) * a.inner + first;
  device T *to = out + long(position.x) * a.inner + first;
  float values[MPS_SEGMENT_BLOCK];
  for (uint c = 0; c < MPS_SEGMENT_BLOCK; c++) values[c] = a.initial;
  if (a.mode == MPS_SEGMENT_MAX)
    take_rows<larger_value>(values, from, count, width, a.inner);
  else if (a.mode == MPS_SEGMENT_MIN)
    take_rows<smaller_value>(values, from, count, width, a.inner);
  else if (a.mode == MPS_SEGMENT_PROD)
    take_rows<multiply_values>(values, from, count, width, a.inner);
  else
    take_rows<add_values>(values, from, count, width, a.inner);
  const bool mean = a.mode == MPS_SEGMENT_MEAN, nothing = mean && count == 0 && !a.has_initial;
  const float divisor = mean && count > 0 ? float(count) : 1.0f;
  for (long c = 0; c < width; c++) to[c] = T(nothing ? NAN : values[c] / divisor);
}

namespace {

// All elements that are the extreme share the gradient, if it is positive; a negative one goes to each of them (as on the CPU).
template <typename T>
inline void extreme_gradient(device T *to, device const T *from, device const T *value, device const T *gradient, long count, long width,
                             long stride) {
  uint hits[MPS_SEGMENT_BLOCK];
  for (long c = 0; c < width; c++) hits[c] = 0;
  for (long r = 0; r < count; r++)
    for (long c = 0; c < width; c++) {
      const float x = float(from[r * stride + c]);
      hits[c] += x != x || x == float(value[c]) ? 1 : 0;
    }
  for (long r = 0; r < count; r++)
    for (long c = 0; c < width; c++) {
      const float x = float(from[r * stride + c]), g = float(gradient[c]);
      const float share = hits[c] > 1 && g > 0.0f ? g / float(hits[c]) : g;
      to[r * stride + c] = T(x != x || x == float(value[c]) ? share : 0.0f);
    }
}

// The product of the others: the whole one divided by the element, or multiplied anew where that is impossible.
template <typename T>
inline void product_gradient(device T *to, device const T *from, device const T *value, device const T *gradient, long count, long width, long stride,
                             float initial) {
  for (long r = 0; r < count; r++)
    for (long c = 0; c < width; c++) {
      const float x = float(from[r * stride + c]), g = float(gradient[c]);
      float result = g * float(value[c]) / x;
      if (x != x || x == 0.0f) {
        float others = initial;
        for (long k = 0; k < count; k++) others *= k == r ? 1.0f : float(from[k * stride + c]);
        result = g * others;
      }
      to[r * stride + c] = T(result);
    }
}

}  // namespace

// The gradient of data, zeroed before: rows of no segment stay so. The same threads.
template <typename T>
kernel void segment_reduce_backward(device const T *gradient [[buffer(0)]], device const T *output [[buffer(1)]], device const T *data [[buffer(2)]],
                                    device const long *bounds [[buffer(3)]], device T *out [[buffer(4)]],
                                    constant mps_segment_reduce_arguments &a [[buffer(5)]], device mps_kernel_error *error [[buffer(6)]],
                                    uint2 position [[thread_position_in_grid]]) {
  const long row = long(position.x) / a.segments, s = long(position.x) - row * a.segments, first = long(position.y) * MPS_SEGMENT_BLOCK;
  const long width = min(long(MPS_SEGMENT_BLOCK), a.inner - first);
  const segment_range r = range_of(bounds + row * a.bounds, s, a, error);
  const long count = r.end - r.begin, at = (row * a.length + r.begin) * a.inner + first, result = long(position.x) * a.inner + first;
  device const T *from = data + at, *value = output + result, *g = gradient + result;
  device T *to = out + at;
  if (a.mode == MPS_SEGMENT_MAX || a.mode == MPS_SEGMENT_MIN) {
    extreme_gradient(to, from, value, g, count, width, a.inner);
  } else if (a.mode == MPS_SEGMENT_PROD) {
    product_gradient(to, from, value, g, count, width, a.inner, a.initial);
  } else {
    const float divisor = a.mode == MPS_SEGMENT_MEAN ? float(count) : 1.0f;
    for (long i = 0; i < count; i++)
      for (long c = 0; c < width; c++) to[i * a.inner + c] = T(float(g[c]) / divisor);
  }
}

#define SEGMENT(NAME, T)                                                                                                                      \
  template [[host_name("segment_reduce_" #NAME)]] kernel void segment_reduce<T>(device const T *, device const long *, device T *,            \
                                                                                constant mps_segment_reduce_arguments &,                      \
                                                                                device mps_kernel_error *, uint2);                            \
  template [[host_name("segment_reduce_backward_" #NAME)]] kernel void segment_reduce_backward<T>(                                            \
      device const T *, device const T *, device const T *, device const long *, device T *, constant mps_segment_reduce_arguments &,         \
      device mps_kernel_error *, uint2);
SEGMENT(f32, float)
SEGMENT(f16, half)
SEGMENT(bf16, bfloat)
