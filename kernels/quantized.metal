// SPDX-License-Identifier: BSD-3-Clause
//
// quantized: products with weights of 8 and 4 bits. Sums are kept in float and rounded once. A few rows are multiplied with the packed
// weights; for many, the weights are unpacked to floats for a matrix product.

#include <metal_stdlib>
#include "quantized_arguments.h"

using namespace metal;

#define LANES 16 // sums a row: those of all rows fit into registers

namespace {

// Values [k, k + length) of weight n, before scale and zero.
inline void unpack(thread float *values, device const uchar *packed, long n, long k, long length, constant mps_quantized_arguments &a) {
  if (a.bits == 8) {
    device const char *from = (device const char *)(packed + n * a.depth + k);
    for (long i = 0; i < length; i++) values[i] = float(from[i]);
  } else {
    device const uchar *from = packed + (n * a.depth + k) / 2;
    for (long i = 0; i < length / 2; i++) {
      values[2 * i] = float(int(from[i] & 15) - 8);
      values[2 * i + 1] = float(int(from[i] >> 4) - 8);
    }
  }
}

template <typename T>
inline float2 scale_and_zero(device const T *scales, long n, long k, constant mps_quantized_arguments &a) {
  if (a.bits == 8) return float2(float(scales[n]), 0.0f);
  device const T *at = scales + (k / a.group * a.columns + n) * 2;
  return float2(float(at[0]), float(at[1]));
}

}  // namespace

namespace {

// Products of `Rows` rows with weight n, whose length of registers is fixed.
template <typename T, uint Rows>
inline void multiply_rows(device const T *input, device const uchar *packed, device const T *scales, device T *out, long n,
                          constant mps_quantized_arguments &a) {
  float sums[Rows][LANES];
  for (uint r = 0; r < Rows; r++)
    for (uint i = 0; i < LANES; i++) sums[r][i] = 0.0f;
  long k = 0;
  for (; k + MPS_QUANTIZED_CHUNK <= a.depth; k += MPS_QUANTIZED_CHUNK) {
    float weight[MPS_QUANTIZED_CHUNK];
    if (a.bits == 8) {
      device const char *from = (device const char *)(packed + n * a.depth + k);
      for (uint i = 0; i < MPS_QUANTIZED_CHUNK; i++) weight[i] = float(from[i]);
    } else {
      const float2 scale = scale_and_zero(scales, n, k, a);
      unpack(weight, packed, n, k, MPS_QUANTIZED_CHUNK, a);
      for (uint i = 0; i < MPS_QUANTIZED_CHUNK; i++) weight[i] = weight[i] * scale.x + scale.y;
    }
    for (uint lane = 0; lane < MPS_QUANTIZED_CHUNK; lane += LANES)
      for (uint r = 0; r < Rows; r++) {
        device const T *row = input + r * a.depth + k + lane;
        for (uint i = 0; i < LANES; i++) sums[r][i] += float(row[i]) * weight[lane + i];
      }
  }
  const float2 scale = a.depth ? scale_and_zero(scales, n, min(k, a.depth - 1), a) : float2(0.0f);
  float rest[MPS_QUANTIZED_CHUNK];
  unpack(rest, packed, n, k, a.depth - k, a);
  for (uint r = 0; r < Rows; r++) {
    float sum = 0.0f;
    for (uint i = 0; i < LANES; i++) sum += sums[r][i];
    for (long i = 0; i < a.depth - k; i++) sum += float(input[r * a.depth + k + i]) * (a.bits == 8 ? rest[i] : rest[i] * scale.x + scale.y);
    out[r * a.columns + n] = T(a.bits == 8 ? sum * scale.x : sum);
  }
}

}  // namespace

// Thread (column, block of rows). A row has LANES sums.
template <typename T>
kernel void quantized_multiply(device const T *input [[buffer(0)]], device const uchar *packed [[buffer(1)]], device const T *scales [[buffer(2)]],
                               device T *out [[buffer(3)]], constant mps_quantized_arguments &a [[buffer(4)]],
                               uint2 position [[thread_position_in_grid]]) {
  const long first = long(position.y) * MPS_QUANTIZED_ROWS, rows = min(long(MPS_QUANTIZED_ROWS), a.rows - first);
  if (rows == MPS_QUANTIZED_ROWS) {
    multiply_rows<T, MPS_QUANTIZED_ROWS>(input + first * a.depth, packed, scales, out + first * a.columns, position.x, a);
  } else {
    for (long r = first; r < first + rows; r++) multiply_rows<T, 1>(input + r * a.depth, packed, scales, out + r * a.columns, position.x, a);
  }
}

// Weight n as floats. Thread (column).
template <typename T>
kernel void quantized_unpack(device const uchar *packed [[buffer(1)]], device const T *scales [[buffer(2)]], device float *weight [[buffer(3)]],
                             constant mps_quantized_arguments &a [[buffer(4)]], uint n [[thread_position_in_grid]]) {
  device float *to = weight + long(n) * a.depth;
  for (long k = 0; k < a.depth; k += MPS_QUANTIZED_CHUNK) {
    float values[MPS_QUANTIZED_CHUNK];
    const float2 scale = scale_and_zero(scales, n, k, a);
    const long length = min(long(MPS_QUANTIZED_CHUNK), a.depth - k);
    if (length == MPS_QUANTIZED_CHUNK)
      unpack(values, packed, n, k, MPS_QUANTIZED_CHUNK, a);
    else
      unpack(values, packed, n, k, length, a);
    for (long i = 0; i < length; i++) to[k + i] = values[i] * scale.x + scale.y;
  }
}

// Swaps the halves of each byte: callers have the lower k in the upper half.
kernel void quantized_pack(device const uchar *weight [[buffer(0)]], device uchar *packed [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  packed[i] = uchar((weight[i] << 4) | (weight[i] >> 4));
}

#define QUANTIZED(NAME, T)                                                                                                            \
  template [[host_name("quantized_multiply_" #NAME)]] kernel void quantized_multiply<T>(                                              \
      device const T *, device const uchar *, device const T *, device T *, constant mps_quantized_arguments &, uint2);               \
  template [[host_name("quantized_unpack_" #NAME)]] kernel void quantized_unpack<T>(device const uchar *, device const T *, device float *, \
                                                                                   constant mps_quantized_arguments &, uint);
QUANTIZED(f32, float)
QUANTIZED(f16, half)
QUANTIZED(bf16, bfloat)
