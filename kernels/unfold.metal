// SPDX-License-Identifier: BSD-3-Clause
//
// unfold: the gradient of Tensor.unfold. Each element of the result sums the windows that hold it, in their order; threads share nothing.

#include <metal_stdlib>
#include "unfold.h"

using namespace metal;

template <typename T> struct unfold_sum { typedef float type; };
template <> struct unfold_sum<float2> { typedef float2 type; };

// Thread: position along the dimension, point of the other dimensions.
template <typename T>
kernel void unfold_backward(device const T *grad [[buffer(0)]], device T *out [[buffer(1)]], constant mps_unfold_arguments &a [[buffer(2)]],
                            uint2 position [[thread_position_in_grid]]) {
  const long p = position.x;
  long point = position.y, from = 0, to = p * a.out_step;
  for (uint d = a.rank; d-- > 0;) {
    const long rest = point / a.sizes[d], coordinate = point - rest * a.sizes[d];
    from += coordinate * a.grad_strides[d];
    to += coordinate * a.out_strides[d];
    point = rest;
  }
  const long first = p < a.size ? 0 : (p - a.size) / a.step + 1, last = min(p / a.step, a.windows - 1);
  typename unfold_sum<T>::type sum = 0.0f;
  for (long w = first; w <= last; w++) sum += typename unfold_sum<T>::type(grad[from + w * a.window_step + (p - w * a.step) * a.element_step]);
  out[to] = T(sum);
}

#define UNFOLD(NAME, T) \
  template [[host_name("unfold_backward_" #NAME)]] kernel void unfold_backward<T>(device const T *, device T *, constant mps_unfold_arguments &, uint2);
UNFOLD(f32, float)
UNFOLD(f16, half)
UNFOLD(bf16, bfloat)
UNFOLD(c64, float2)
