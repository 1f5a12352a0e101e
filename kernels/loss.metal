// SPDX-License-Identifier: BSD-3-Clause
//
// loss: the negative log likelihood of class targets, and its gradient. A target outside of the classes is reported and counts nothing.

#include "error.h"
#include "reduce.h"
#include "loss_arguments.h"

// The class of target `p`; -1 for one that is ignored or wrong.
inline long class_of(device const long *wide, device const uchar *bytes, long p, constant mps_nll_arguments &a,
                     device mps_kernel_error *error) {
  const long value = a.byte_targets ? (long)bytes[p] : wide[p];
  if (value == a.ignore_index) return -1;
  if (value < 0 || value >= a.classes) {
    report_error(error, MPS_KERNEL_ERROR_TARGET, value, a.classes, 1);
    return -1;
  }
  return value;
}

inline long element_of(long p, long value, constant mps_nll_arguments &a) {
  const long n = a.spatial == 1 ? p : p / a.spatial;
  return n * a.strides[0] + value * a.strides[1] + (p - n * a.spatial) * a.strides[2];
}

// Sum and weight of a piece of targets; or, unreduced, each target's loss.
template <typename T>
kernel void nll_forward(device const T *input [[buffer(0)]], device const long *targets [[buffer(1)]],
                        device const uchar *byte_targets [[buffer(2)]], device const float *weight [[buffer(3)]],
                        device float2 *partials [[buffer(4)]], device T *out [[buffer(5)]], constant mps_nll_arguments &a [[buffer(6)]],
                        device mps_kernel_error *error [[buffer(7)]], uint piece [[thread_position_in_grid]]) {
  const long begin = piece * (long)MPS_NLL_PIECE, end = min(begin + MPS_NLL_PIECE, (long)a.targets);
  float sums[8], weights[8];
  for (uint l = 0; l < 8; l++) sums[l] = weights[l] = 0.0f;
  for (long p = begin; p < end; p++) {
    const long value = class_of(targets, byte_targets, p, a, error);
    const float w = value < 0 ? 0.0f : a.has_weight ? weight[value] : 1.0f;
    const float loss = value < 0 ? 0.0f : -float(input[element_of(p, value, a)]) * w;
    if (a.reduction == 0) out[p] = T(loss);
    sums[p % 8] += loss;
    weights[p % 8] += w;
  }
  if (a.reduction == 0) return;
  partials[piece] = float2(((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7])),
                           ((weights[0] + weights[1]) + (weights[2] + weights[3])) + ((weights[4] + weights[5]) + (weights[6] + weights[7])));
}

struct nll_op {
  typedef float2 acc;
  static float2 empty() { return float2(0.0f, 0.0f); }
  static float2 merge(float2 a, float2 b) { return float2(a.x + b.x, a.y + b.y); }
};

template <typename T>
kernel void nll_finish(device const float2 *partials [[buffer(0)]], device T *out [[buffer(1)]], device T *total_weight [[buffer(2)]],
                       constant mps_nll_arguments &a [[buffer(3)]], uint i [[thread_position_in_grid]]) {
  reduce_tree<nll_op> tree;
  for (long c = 0; c < a.chunk_count; c++) tree.push(partials[c]);
  const float2 total = tree.fold();
  out[i] = T(a.reduction == 1 ? total.x / total.y : total.x);
  total_weight[i] = T(total.y);
}

// The gradient is zero already but for one element a target.
template <typename T>
kernel void nll_backward(device const T *grad [[buffer(0)]], device const long *targets [[buffer(1)]],
                         device const uchar *byte_targets [[buffer(2)]], device const float *weight [[buffer(3)]],
                         device const T *total_weight [[buffer(4)]], device T *result [[buffer(5)]],
                         constant mps_nll_arguments &a [[buffer(6)]], device mps_kernel_error *error [[buffer(7)]],
                         uint piece [[thread_position_in_grid]]) {
  const long begin = piece * (long)MPS_NLL_PIECE, end = min(begin + MPS_NLL_PIECE, (long)a.targets);
  for (long p = begin; p < end; p++) {
    const long value = class_of(targets, byte_targets, p, a, error);
    if (value < 0) continue;
    const float g = float(grad[p * a.grad_stride]), w = a.has_weight ? weight[value] : 1.0f;
    result[element_of(p, value, a)] = T(-g * w / (a.reduction == 1 ? float(total_weight[0]) : 1.0f));
  }
}

#define NLL_KERNELS(suffix, type)                                                                                        \
  template [[host_name("nll_forward_" #suffix)]] kernel void nll_forward<type>(                                          \
      device const type *input [[buffer(0)]], device const long *targets [[buffer(1)]],                                  \
      device const uchar *byte_targets [[buffer(2)]], device const float *weight [[buffer(3)]],                          \
      device float2 *partials [[buffer(4)]], device type *out [[buffer(5)]], constant mps_nll_arguments &a [[buffer(6)]], \
      device mps_kernel_error *error [[buffer(7)]], uint piece [[thread_position_in_grid]]);                             \
  template [[host_name("nll_finish_" #suffix)]] kernel void nll_finish<type>(                                            \
      device const float2 *partials [[buffer(0)]], device type *out [[buffer(1)]], device type *total_weight [[buffer(2)]], \
      constant mps_nll_arguments &a [[buffer(3)]], uint i [[thread_position_in_grid]]);                                  \
  template [[host_name("nll_backward_" #suffix)]] kernel void nll_backward<type>(                                        \
      device const type *grad [[buffer(0)]], device const long *targets [[buffer(1)]],                                   \
      device const uchar *byte_targets [[buffer(2)]], device const float *weight [[buffer(3)]],                          \
      device const type *total_weight [[buffer(4)]], device type *result [[buffer(5)]],                                  \
      constant mps_nll_arguments &a [[buffer(6)]], device mps_kernel_error *error [[buffer(7)]],                         \
      uint piece [[thread_position_in_grid]]);
NLL_KERNELS(f32, float)
NLL_KERNELS(f16, half)
NLL_KERNELS(bf16, bfloat)
