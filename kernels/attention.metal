// SPDX-License-Identifier: BSD-3-Clause
//
// attention: the softmax between the two products of attention, in place, one row a thread: mask, largest value, exponentials and
// their sum in fixed lanes, quotient. A row of which nothing is visible becomes zeros.

#include "element.h"

#include "attention.h"

#define LANES 64
#define VECTORIZE _Pragma("clang loop vectorize(assume_safety)")

// The scores of one row, masked, as floats; columns behind `visible` are left alone.
template <typename T>
inline void mask_row(device T *row, device const void *mask, constant mps_attention_arguments &a, int64_t head, int64_t r, int64_t visible) {
  int64_t offset = head * a.mask_strides[0] + r * a.mask_strides[1], step = a.mask_strides[2];
  if (a.mask == MPS_ATTENTION_BOOL_MASK) {
    device const bool *m = (device const bool *)mask + offset;
    VECTORIZE
    for (int64_t i = 0; i < visible; i++) row[i] = element(m + i * step) ? row[i] : T(-INFINITY);
  } else if (a.mask == MPS_ATTENTION_SCORE_MASK) {
    device const T *m = (device const T *)mask + offset;
    VECTORIZE
    for (int64_t i = 0; i < visible; i++) row[i] = T(float(row[i]) + float(m[i * step]));
  } else if (a.mask == MPS_ATTENTION_FLOAT_MASK) {
    device const float *m = (device const float *)mask + offset;
    VECTORIZE
    for (int64_t i = 0; i < visible; i++) row[i] = T(float(row[i]) + m[i * step]);
  }
}

template <typename T>
kernel void attention_softmax(device T *scores [[buffer(0)]], device const void *mask [[buffer(1)]],
                              constant mps_attention_arguments &arguments [[buffer(2)]], uint2 position [[thread_position_in_grid]]) {
  constant mps_attention_arguments &a = arguments;
  int64_t r = position.x, head = position.y;
  device T *row = scores + (head * a.rows + r) * a.columns;
  int64_t visible = a.is_causal ? min(a.columns, a.first_row + r + 1) : a.columns;
  mask_row<T>(row, mask, a, head, r, visible);

  float lanes[LANES];
  for (uint i = 0; i < LANES; i++) lanes[i] = -INFINITY;
  for (int64_t c = 0; c < visible; c += LANES) {
    uint count = uint(min(int64_t(LANES), visible - c));
    VECTORIZE
    for (uint i = 0; i < count; i++) lanes[i] = max(lanes[i], float(row[c + i]));
  }
  float largest = lanes[0];
  for (uint i = 1; i < LANES; i++) largest = max(largest, lanes[i]);

  const bool keeps = sizeof(T) == sizeof(float) && largest != -INFINITY; // exponentials that need no second rounding are not made twice
  for (uint i = 0; i < LANES; i++) lanes[i] = 0.0f;
  for (int64_t c = 0; c < visible; c += LANES) {
    uint count = uint(min(int64_t(LANES), visible - c));
    VECTORIZE
    for (uint i = 0; i < count; i++) {
      float power = exp(float(row[c + i]) - largest);
      lanes[i] += power;
      if (keeps) row[c + i] = T(power);
    }
  }
  for (uint width = LANES / 2; width > 0; width /= 2)
    for (uint i = 0; i < width; i++) lanes[i] += lanes[i + width];
  float factor = 1.0f / lanes[0];

  if (largest == -INFINITY) {
    // NaN is no number that max() keeps: a row of NaN and -inf stays NaN.
    bool unordered = false;
    for (int64_t c = 0; c < visible; c++) unordered = unordered || isnan(float(row[c]));
    for (int64_t c = 0; c < visible; c++) row[c] = unordered ? T(NAN) : T(0.0f);
  } else {
    VECTORIZE
    for (int64_t c = 0; c < visible; c++) row[c] = T((sizeof(T) == sizeof(float) ? float(row[c]) : exp(float(row[c]) - largest)) * factor);
  }
  for (int64_t c = visible; c < a.columns; c++) row[c] = T(0.0f);
}

#define INSTANTIATE(name, type)                                                                                                   \
  template [[host_name("attention_softmax_" #name)]] kernel void attention_softmax<type>(                                         \
      device type * scores [[buffer(0)]], device const void *mask [[buffer(1)]], constant mps_attention_arguments &arguments [[buffer(2)]], \
      uint2 position [[thread_position_in_grid]]);
INSTANTIATE(f32, float)
INSTANTIATE(f16, half)
INSTANTIATE(bf16, bfloat)
