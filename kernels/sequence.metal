// SPDX-License-Identifier: BSD-3-Clause
//
// sequence: values made from positions: arange and linspace, triangles of matrices, and the coordinates of triangles.

#include <metal_stdlib>
#include "sequence.h"

using namespace metal;

namespace {

// A number as the unevaluated sum of two floats, about 48 bits. Sums and products as by Knuth and Dekker.
struct pair {
  float high, low;
};

inline pair two_sum(float a, float b) {
  const float sum = a + b, rest = sum - a;
  return {sum, (a - (sum - rest)) + (b - rest)};
}

inline pair two_product(float a, float b) {
  const float split = 4097.0f;  // 2^12 + 1
  const float a_scaled = a * split, b_scaled = b * split;
  const float a_high = a_scaled - (a_scaled - a), b_high = b_scaled - (b_scaled - b);
  const float a_low = a - a_high, b_low = b - b_high;
  const float product = a * b;
  return {product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low};
}

inline pair add(pair a, pair b) {
  pair sum = two_sum(a.high, b.high);
  sum.low += a.low + b.low;
  return two_sum(sum.high, sum.low);
}

// base + position * step. The position is cut into two exact floats of 24 bits.
inline pair along(pair base, pair step, long position) {
  const float upper = float((position >> 20) << 20), lower = float(position & 0xfffffL);
  pair a = two_product(upper, step.high), b = two_product(lower, step.high);
  a.low += upper * step.low;
  b.low += lower * step.low;
  return add(base, add(a, b));
}

template <typename T> inline T rounded(pair p) { return T(p.high + p.low); }
// Towards zero, exactly: the high part alone may lie on the other side of an integer.
template <> inline long rounded<long>(pair p) {
  const float whole = trunc(p.high);
  const float rest = (p.high - whole) + p.low;
  const long value = long(whole);
  if (p.high > 0.0f) return rest < 0.0f ? value - 1 : value + long(rest);
  return rest > 0.0f ? value + 1 : value + long(rest);
}

}  // namespace

template <typename T>
kernel void sequence_float(device T *out [[buffer(0)]], constant mps_sequence_arguments &a [[buffer(1)]], uint position [[thread_position_in_grid]]) {
  const long i = position;
  const pair step = {a.step_high, a.step_low};
  const pair back = {-a.step_high, -a.step_low};
  const bool second = i >= a.middle;
  const pair base = {second ? a.end_high : a.start_high, second ? a.end_low : a.start_low};
  const pair value = along(base, second ? back : step, second ? a.count - 1 - i : i);
  out[i * a.out_stride] = rounded<T>(value);
}

// As above, with results rounded towards zero.
template <typename T>
kernel void sequence_truncated(device T *out [[buffer(0)]], constant mps_sequence_arguments &a [[buffer(1)]], uint position [[thread_position_in_grid]]) {
  const long i = position;
  const pair step = {a.step_high, a.step_low};
  const pair back = {-a.step_high, -a.step_low};
  const bool second = i >= a.middle;
  const pair base = {second ? a.end_high : a.start_high, second ? a.end_low : a.start_low};
  out[i * a.out_stride] = T(rounded<long>(along(base, second ? back : step, second ? a.count - 1 - i : i)));
}

// As the CPU counts: in the result's own type, rounded after each step; in float the product is not rounded.
inline float placed(float base, float step, long position) { return fma(step, float(position), base); }
template <typename T> inline T placed(T base, T step, long position) {
  return T(float(base) + float(T(float(step) * float(T(float(position))))));
}

template <typename T>
kernel void linspace(device T *out [[buffer(0)]], constant mps_sequence_arguments &a [[buffer(1)]], uint position [[thread_position_in_grid]]) {
  const long i = position;
  const T start = T(a.start_high), end = T(a.end_high);
  const T step = a.count > 1 ? T(float(T(float(end) - float(start))) / float(T(float(a.count - 1)))) : T(0.0f);
  out[i * a.out_stride] = i < a.middle ? placed(start, step, i) : placed(end, T(-step), a.count - 1 - i);
}

template <typename T>
kernel void sequence_integer(device T *out [[buffer(0)]], constant mps_sequence_arguments &a [[buffer(1)]], uint position [[thread_position_in_grid]]) {
  out[long(position) * a.out_stride] = T(ulong(a.first_integer) + ulong(position) * ulong(a.step_integer));
}

#define SEQUENCE(KIND, NAME, T) \
  template [[host_name("sequence_" #KIND "_" #NAME)]] kernel void sequence_##KIND<T>(device T *, constant mps_sequence_arguments &, uint);
SEQUENCE(float, f32, float)
SEQUENCE(float, f16, half)
SEQUENCE(float, bf16, bfloat)
#define LINSPACE(NAME, T) \
  template [[host_name("linspace_" #NAME)]] kernel void linspace<T>(device T *, constant mps_sequence_arguments &, uint);
LINSPACE(f32, float)
LINSPACE(f16, half)
LINSPACE(bf16, bfloat)
#define INTEGER(NAME, T)      \
  SEQUENCE(integer, NAME, T)  \
  SEQUENCE(truncated, NAME, T)
INTEGER(u8, uchar)
INTEGER(u16, ushort)
INTEGER(u32, uint)
INTEGER(u64, ulong)
INTEGER(i8, char)
INTEGER(i16, short)
INTEGER(i32, int)
INTEGER(i64, long)

// Thread: one row of one matrix.
template <typename T>
kernel void triangle(device const T *self [[buffer(0)]], device T *out [[buffer(1)]], constant mps_triangle_arguments &a [[buffer(2)]],
                     uint2 position [[thread_position_in_grid]]) {
  const long row = position.x;
  long matrix = position.y, from = row * a.self_row, to = row * a.out_row;
  for (uint d = a.batch_rank; d-- > 0;) {
    const long rest = matrix / a.batch_sizes[d], coordinate = matrix - rest * a.batch_sizes[d];
    from += coordinate * a.self_batch[d];
    to += coordinate * a.out_batch[d];
    matrix = rest;
  }
  // Columns [begin, end) stay.
  const long edge = clamp(row + a.diagonal + (a.upper ? 0L : 1L), 0L, long(a.columns));
  const long begin = a.upper ? edge : 0L, end = a.upper ? long(a.columns) : edge;
  for (long c = 0; c < begin; c++) out[to + c * a.out_column] = T(0);
  for (long c = begin; c < end; c++) out[to + c * a.out_column] = self[from + c * a.self_column];
  for (long c = end; c < a.columns; c++) out[to + c * a.out_column] = T(0);
}

#define TRIANGLE(NAME, T) \
  template [[host_name("triangle_" #NAME)]] kernel void triangle<T>(device const T *, device T *, constant mps_triangle_arguments &, uint2);
TRIANGLE(u8, uchar)
TRIANGLE(u16, ushort)
TRIANGLE(u32, uint)
TRIANGLE(u64, ulong)

// Thread: one row of the matrix, whose elements lie behind those of the rows before.
template <typename T>
kernel void triangle_indices(device T *out [[buffer(0)]], constant mps_triangle_indices_arguments &a [[buffer(1)]],
                             uint position [[thread_position_in_grid]]) {
  const long row = position;
  long before = 0, begin = 0, end = 0;
  for (long r = 0; r <= row; r++) {
    before += end - begin;
    const long edge = clamp(r + a.offset + (a.upper ? 0L : 1L), 0L, long(a.columns));
    begin = a.upper ? edge : 0L;
    end = a.upper ? long(a.columns) : edge;
  }
  for (long c = begin; c < end; c++) {
    const long k = before + c - begin;
    out[k * a.out_second] = T(row);
    out[k * a.out_second + a.out_first] = T(c);
  }
}
template [[host_name("triangle_indices_i64")]] kernel void triangle_indices<long>(device long *, constant mps_triangle_indices_arguments &, uint);
template [[host_name("triangle_indices_i32")]] kernel void triangle_indices<int>(device int *, constant mps_triangle_indices_arguments &, uint);
