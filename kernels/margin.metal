// SPDX-License-Identifier: BSD-3-Clause
//
// margin: multi_margin_loss and multilabel_margin_loss, and their gradients. A thread takes a piece of the rows. A row with a target out of
// range is reported and counts nothing; a NaN is never above a margin.

#include "error.h"
#include "reduce.h"
#include "softmax.h"
#include "margin_arguments.h"

namespace {

inline float fold(thread float *lanes) {
  for (uint n = REDUCE_LANES / 2; n > 0; n /= 2)
    for (uint l = 0; l < n; l++) lanes[l] += lanes[l + n];
  return lanes[0];
}

// The sum of (shift + x)^p * weight where shift + x is positive.
template <bool squared>
inline float sum_above(device const float *x, long count, float shift, float weight) {
  float lanes[REDUCE_LANES];
  running_sum total;
  for (long begin = 0; begin < count; begin += REDUCE_SHORT_BLOCK) {
    const long end = min(begin + REDUCE_SHORT_BLOCK, count);
    for (uint l = 0; l < REDUCE_LANES; l++) lanes[l] = 0.0f;
    long d = begin;
    for (; d + REDUCE_LANES <= end; d += REDUCE_LANES) {
      VECTORIZE
      for (uint l = 0; l < REDUCE_LANES; l++) {
        const float z = shift + x[d + l];
        lanes[l] += z > 0.0f ? (squared ? z * z : z) * weight : 0.0f;
      }
    }
    for (uint l = 0; d < end; d++, l++) {
      const float z = shift + x[d];
      lanes[l] += z > 0.0f ? (squared ? z * z : z) * weight : 0.0f;
    }
    total.add(fold(lanes));
  }
  return total.value();
}

// Its gradient by x, times grad, is written; the sum of the gradients is returned.
template <bool squared>
inline float write_gradient(device float *to, device const float *x, long count, float shift, float factor, float weight, float grad) {
  VECTORIZE
  for (long d = 0; d < count; d++) {
    const float z = shift + x[d];
    to[d] = z > 0.0f ? (squared ? 2.0f * factor * z : factor) * weight * grad : 0.0f;
  }
  float lanes[REDUCE_LANES];
  running_sum total;
  for (long begin = 0; begin < count; begin += REDUCE_SHORT_BLOCK) {
    const long end = min(begin + REDUCE_SHORT_BLOCK, count);
    for (uint l = 0; l < REDUCE_LANES; l++) lanes[l] = 0.0f;
    long d = begin;
    for (; d + REDUCE_LANES <= end; d += REDUCE_LANES) {
      VECTORIZE
      for (uint l = 0; l < REDUCE_LANES; l++) lanes[l] += to[d + l];
    }
    for (uint l = 0; d < end; d++, l++) lanes[l] += to[d];
    total.add(fold(lanes));
  }
  return total.value();
}

inline bool valid(long target, long lowest, constant mps_margin_arguments &a, device mps_kernel_error *error) {
  if (target >= lowest && target < a.classes) return true;
  report_error(error, MPS_KERNEL_ERROR_TEXT, a.target_text, 0, 0);
  return false;
}

inline void clear(device float *to, long count) {
  for (long d = 0; d < count; d++) to[d] = 0.0f;
}

}  // namespace

template <bool squared>
kernel void multi_margin(device const float *input [[buffer(0)]], device const long *targets [[buffer(1)]], device const float *weight [[buffer(2)]],
                         device float *losses [[buffer(3)]], constant mps_margin_arguments &a [[buffer(4)]],
                         device mps_kernel_error *error [[buffer(5)]], uint piece [[thread_position_in_grid]]) {
  const long first = piece * a.piece, end = min(first + a.piece, long(a.rows));
  for (long row = first; row < end; row++) {
    const long y = targets[row];
    losses[row] = 0.0f;
    if (!valid(y, 0, a, error)) continue;
    device const float *x = input + row * a.classes;
    const float shift = a.margin - x[y], w = a.has_weight ? weight[y] : 1.0f;
    losses[row] = (sum_above<squared>(x, y, shift, w) + sum_above<squared>(x + y + 1, a.classes - y - 1, shift, w)) / float(a.classes);
  }
}

template <bool squared>
kernel void multi_margin_backward(device const float *grads [[buffer(0)]], device const float *input [[buffer(1)]],
                                  device const long *targets [[buffer(2)]], device const float *weight [[buffer(3)]],
                                  device float *result [[buffer(4)]], constant mps_margin_arguments &a [[buffer(5)]],
                                  device mps_kernel_error *error [[buffer(6)]], uint piece [[thread_position_in_grid]]) {
  const long first = piece * a.piece, end = min(first + a.piece, long(a.rows));
  for (long row = first; row < end; row++) {
    const long y = targets[row];
    device const float *x = input + row * a.classes;
    device float *to = result + row * a.classes;
    if (!valid(y, 0, a, error)) {
      clear(to, a.classes);
      continue;
    }
    const float shift = a.margin - x[y], w = a.has_weight ? weight[y] : 1.0f, grad = grads[row * a.grad_stride];
    to[y] = -(write_gradient<squared>(to, x, y, shift, a.factor, w, grad) +
              write_gradient<squared>(to + y + 1, x + y + 1, a.classes - y - 1, shift, a.factor, w, grad));
  }
}

#define MULTI_MARGIN(suffix, squared)                                                                                          \
  template [[host_name("multi_margin_" #suffix)]] kernel void multi_margin<squared>(                                           \
      device const float *, device const long *, device const float *, device float *, constant mps_margin_arguments &,        \
      device mps_kernel_error *, uint);                                                                                        \
  template [[host_name("multi_margin_backward_" #suffix)]] kernel void multi_margin_backward<squared>(                         \
      device const float *, device const float *, device const long *, device const float *, device float *,                   \
      constant mps_margin_arguments &, device mps_kernel_error *, uint);
MULTI_MARGIN(linear, false)
MULTI_MARGIN(squared, true)

// Targets count up to the first negative one, but all have to be in range. is_target: 1 for those.
kernel void multilabel_margin(device const float *input [[buffer(0)]], device const long *targets [[buffer(1)]], device float *is_target [[buffer(2)]],
                              device float *losses [[buffer(3)]], constant mps_margin_arguments &a [[buffer(4)]],
                              device mps_kernel_error *error [[buffer(5)]], uint piece [[thread_position_in_grid]]) {
  const long first = piece * a.piece, end = min(first + a.piece, long(a.rows));
  for (long row = first; row < end; row++) {
    device const float *x = input + row * a.classes;
    device const long *y = targets + row * a.classes;
    device float *mask = is_target + row * a.classes;
    clear(mask, a.classes);
    long count = -1;
    bool good = true;
    for (long i = 0; i < a.classes; i++) {
      good = valid(y[i], -1, a, error) && good;
      if (y[i] < 0 && count < 0) count = i;
    }
    count = !good ? 0 : count < 0 ? a.classes : count;
    for (long i = 0; i < count; i++) mask[y[i]] = 1.0f;
    running_sum total;
    for (long i = 0; i < count; i++) {
      const float shift = 1.0f - x[y[i]];
      float lanes[REDUCE_LANES];
      for (uint l = 0; l < REDUCE_LANES; l++) lanes[l] = 0.0f;
      long d = 0;
      for (; d + REDUCE_LANES <= a.classes; d += REDUCE_LANES) {
        VECTORIZE
        for (uint l = 0; l < REDUCE_LANES; l++) {
          const float z = shift + x[d + l];
          lanes[l] += mask[d + l] == 0.0f && z > 0.0f ? z : 0.0f;
        }
      }
      for (uint l = 0; d < a.classes; d++, l++) {
        const float z = shift + x[d];
        lanes[l] += mask[d] == 0.0f && z > 0.0f ? z : 0.0f;
      }
      total.add(fold(lanes));
    }
    losses[row] = total.value() / float(a.classes);
  }
}

// Pairs above the margin are counted, which is exact; then comes the factor.
kernel void multilabel_margin_backward(device const float *grads [[buffer(0)]], device const float *input [[buffer(1)]],
                                       device const long *targets [[buffer(2)]], device const float *is_target [[buffer(3)]],
                                       device float *result [[buffer(4)]], constant mps_margin_arguments &a [[buffer(5)]],
                                       device mps_kernel_error *error [[buffer(6)]], uint piece [[thread_position_in_grid]]) {
  const long first = piece * a.piece, end = min(first + a.piece, long(a.rows));
  for (long row = first; row < end; row++) {
    device const float *x = input + row * a.classes, *mask = is_target + row * a.classes;
    device const long *y = targets + row * a.classes;
    device float *to = result + row * a.classes;
    clear(to, a.classes);
    bool good = true;
    for (long i = 0; i < a.classes; i++) good = valid(y[i], -1, a, error) && good;
    for (long i = 0; i < a.classes; i++) {
      if (mask[i] >= 0.0f && mask[i] <= 1.0f) continue;
      report_error(error, MPS_KERNEL_ERROR_TEXT, a.mask_text, 0, 0);
      good = false;
    }
    for (long i = 0; good && i < a.classes && y[i] >= 0; i++) {
      const float shift = 1.0f - x[y[i]];
      int count = 0;
      VECTORIZE
      for (long d = 0; d < a.classes; d++) {
        const int above = mask[d] == 0.0f && shift + x[d] > 0.0f;
        to[d] += float(above);
        count += above;
      }
      to[y[i]] -= float(count);
    }
    const float grad = grads[row * a.grad_stride];
    VECTORIZE
    for (long d = 0; d < a.classes; d++) to[d] = to[d] * a.factor * grad;
  }
}
