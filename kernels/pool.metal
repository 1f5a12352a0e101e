// SPDX-License-Identifier: BSD-3-Clause
//
// pool: maxima and means over windows, and their gradients. Forward: thread (output row, plane). Backward: thread (plane), since windows
// may overlap.

#include <metal_stdlib>
#include "error.h"
#include "pool_arguments.h"

using namespace metal;

namespace {

// Positions begin, begin + step, ... below end, all inside of the input. `padded` counts those that lie in the padding too.
struct window {
  long begin, end, step, padded;
};

inline window window_of(constant mps_pool_arguments &a, uint d, long o) {
  if (a.adaptive) {
    const long begin = o * a.in_size[d] / a.out_size[d], end = ((o + 1) * a.in_size[d] + a.out_size[d] - 1) / a.out_size[d];
    return {begin, end, 1, end - begin};
  }
  const long start = o * a.stride[d] - a.padding[d], step = a.dilation[d];
  const long stop = start + (a.window[d] - 1) * step + 1;
  const long begin = start < 0 ? start + (-start + step - 1) / step * step : start;
  return {begin, min(stop, long(a.in_size[d])), step, min(stop, a.in_size[d] + a.padding[d]) - start};
}

inline long plane_offset(constant mps_pool_arguments &a, long plane, long batch_stride, long channel_stride) {
  const long batch = plane / a.channels;
  return batch * batch_stride + (plane - batch * a.channels) * channel_stride;
}

inline long in_plane(constant mps_pool_arguments &a, long plane) { return plane_offset(a, plane, a.in_batch, a.in_channel); }
inline long out_plane(constant mps_pool_arguments &a, long plane) { return plane_offset(a, plane, a.out_batch, a.out_channel); }
inline long index_plane(constant mps_pool_arguments &a, long plane) { return plane_offset(a, plane, a.index_batch, a.index_channel); }

// Position in a plane from its number in row-major order, as indices tell it.
inline long in_place(constant mps_pool_arguments &a, long number) {
  const long w = number % a.in_size[2], rest = number / a.in_size[2];
  return rest / a.in_size[1] * a.in_stride[0] + rest % a.in_size[1] * a.in_stride[1] + w * a.in_stride[2];
}

inline float divisor(constant mps_pool_arguments &a, window d, window h, window w) {
  if (a.divisor) return float(a.divisor);
  if (a.count_include_pad && !a.adaptive) return float(d.padded * h.padded * w.padded);
  return float((d.end - d.begin) * (h.end - h.begin) * (w.end - w.begin));
}

template <typename T> struct sum_of { typedef float type; };
template <> struct sum_of<long> { typedef long type; };

inline float divided(float sum, float by) { return sum / by; }
inline long divided(long sum, float by) { return sum / long(by); }

}  // namespace

// The largest element of each window and its number; a NaN is larger than everything, the first of equals is taken.
template <typename T>
kernel void pool_max(device const T *input [[buffer(0)]], device T *out [[buffer(1)]], device long *indices [[buffer(2)]],
                     constant mps_pool_arguments &a [[buffer(3)]], uint2 position [[thread_position_in_grid]]) {
  const long plane = position.y, od = long(position.x) / a.out_size[1], oh = long(position.x) - od * a.out_size[1];
  const window d = window_of(a, 0, od), h = window_of(a, 1, oh);
  device const T *from = input + in_plane(a, plane);
  device T *to = out + out_plane(a, plane) + od * a.out_stride[0] + oh * a.out_stride[1];
  device long *at = indices + index_plane(a, plane) + od * a.index_stride[0] + oh * a.index_stride[1];
  for (long ow = 0; ow < a.out_size[2]; ow++) {
    const window w = window_of(a, 2, ow);
    long best_number = (d.begin * a.in_size[1] + h.begin) * a.in_size[2] + w.begin;
    T best = from[d.begin * a.in_stride[0] + h.begin * a.in_stride[1] + w.begin * a.in_stride[2]];
    for (long z = d.begin; z < d.end; z += d.step)
      for (long y = h.begin; y < h.end; y += h.step) {
        device const T *row = from + z * a.in_stride[0] + y * a.in_stride[1];
        const long number = (z * a.in_size[1] + y) * a.in_size[2];
        for (long x = w.begin; x < w.end; x += w.step) {
          const T value = row[x * a.in_stride[2]];
          const bool larger = value > best || value != value;
          best = larger ? value : best;
          best_number = larger ? number + x : best_number;
        }
      }
    to[ow * a.out_stride[2]] = best;
    at[ow * a.index_stride[2]] = best_number;
  }
}

// grad_input[index] += grad_output. grad_input is zero on entry.
template <typename A, typename T>
kernel void pool_max_backward(device A *grad_input [[buffer(0)]], device const T *grad_output [[buffer(1)]], device const long *indices [[buffer(2)]],
                              constant mps_pool_arguments &a [[buffer(3)]], device mps_kernel_error *error [[buffer(4)]],
                              uint plane [[thread_position_in_grid]]) {
  device A *to = grad_input + in_plane(a, plane);
  device const T *from = grad_output + out_plane(a, plane);
  device const long *at = indices + index_plane(a, plane);
  const long limit = a.in_size[0] * a.in_size[1] * a.in_size[2];
  for (long z = 0; z < a.out_size[0]; z++)
    for (long y = 0; y < a.out_size[1]; y++)
      for (long x = 0; x < a.out_size[2]; x++) {
        const long number = at[z * a.index_stride[0] + y * a.index_stride[1] + x * a.index_stride[2]];
        if (number < 0 || number >= limit) {
          report_index_error(error, number, limit, 0);
          continue;
        }
        device A *element = to + in_place(a, number);
        *element = A(*element + A(from[z * a.out_stride[0] + y * a.out_stride[1] + x * a.out_stride[2]]));
      }
}

// out[index] = input: the reverse of max pooling. "in" is the large side here too.
template <typename T>
kernel void pool_unpool(device T *out [[buffer(0)]], device const T *input [[buffer(1)]], device const long *indices [[buffer(2)]],
                        constant mps_pool_arguments &a [[buffer(3)]], device mps_kernel_error *error [[buffer(4)]], uint plane [[thread_position_in_grid]]) {
  device T *to = out + in_plane(a, plane);
  device const T *from = input + out_plane(a, plane);
  device const long *at = indices + index_plane(a, plane);
  const long limit = a.in_size[0] * a.in_size[1] * a.in_size[2];
  for (long z = 0; z < a.out_size[0]; z++)
    for (long y = 0; y < a.out_size[1]; y++)
      for (long x = 0; x < a.out_size[2]; x++) {
        const long number = at[z * a.index_stride[0] + y * a.index_stride[1] + x * a.index_stride[2]];
        if (number < 0 || number >= limit)
          report_index_error(error, number, limit, 0);
        else
          to[in_place(a, number)] = from[z * a.out_stride[0] + y * a.out_stride[1] + x * a.out_stride[2]];
      }
}

template <typename T>
kernel void pool_average(device const T *input [[buffer(0)]], device T *out [[buffer(1)]], constant mps_pool_arguments &a [[buffer(3)]],
                         uint2 position [[thread_position_in_grid]]) {
  typedef typename sum_of<T>::type sum_type;
  const long plane = position.y, od = long(position.x) / a.out_size[1], oh = long(position.x) - od * a.out_size[1];
  const window d = window_of(a, 0, od), h = window_of(a, 1, oh);
  device const T *from = input + in_plane(a, plane);
  device T *to = out + out_plane(a, plane) + od * a.out_stride[0] + oh * a.out_stride[1];
  for (long ow = 0; ow < a.out_size[2]; ow++) {
    const window w = window_of(a, 2, ow);
    sum_type sum = 0;
    for (long z = d.begin; z < d.end; z++)
      for (long y = h.begin; y < h.end; y++) {
        device const T *row = from + z * a.in_stride[0] + y * a.in_stride[1];
        for (long x = w.begin; x < w.end; x++) sum += sum_type(row[x * a.in_stride[2]]);
      }
    const bool nothing = d.begin >= d.end || h.begin >= h.end || w.begin >= w.end;
    to[ow * a.out_stride[2]] = nothing ? T(0) : T(divided(sum, divisor(a, d, h, w)));
  }
}

// Spreads each output's gradient over its window. grad_input is zero on entry.
template <typename A, typename T>
kernel void pool_average_backward(device A *grad_input [[buffer(0)]], device const T *grad_output [[buffer(1)]],
                                  constant mps_pool_arguments &a [[buffer(3)]], uint plane [[thread_position_in_grid]]) {
  device A *to = grad_input + in_plane(a, plane);
  device const T *from = grad_output + out_plane(a, plane);
  for (long od = 0; od < a.out_size[0]; od++)
    for (long oh = 0; oh < a.out_size[1]; oh++)
      for (long ow = 0; ow < a.out_size[2]; ow++) {
        const window d = window_of(a, 0, od), h = window_of(a, 1, oh), w = window_of(a, 2, ow);
        if (d.begin >= d.end || h.begin >= h.end || w.begin >= w.end) continue;
        const A share = divided(A(from[od * a.out_stride[0] + oh * a.out_stride[1] + ow * a.out_stride[2]]), divisor(a, d, h, w));
        for (long z = d.begin; z < d.end; z++)
          for (long y = h.begin; y < h.end; y++) {
            device A *row = to + z * a.in_stride[0] + y * a.in_stride[1];
            for (long x = w.begin; x < w.end; x++) row[x * a.in_stride[2]] += share;
          }
      }
}

#define MAXIMUM(NAME, T)                                                                                                                            \
  template [[host_name("pool_max_" #NAME)]] kernel void pool_max<T>(device const T *, device T *, device long *, constant mps_pool_arguments &, uint2); \
  template [[host_name("pool_unpool_" #NAME)]] kernel void pool_unpool<T>(device T *, device const T *, device const long *,                        \
                                                                         constant mps_pool_arguments &, device mps_kernel_error *, uint);
#define MAXIMUM_BACKWARD(NAME, A, T)                                                                                                     \
  template [[host_name("pool_max_backward_" #NAME)]] kernel void pool_max_backward<A, T>(device A *, device const T *, device const long *, \
                                                                                        constant mps_pool_arguments &, device mps_kernel_error *, uint);
#define AVERAGE(NAME, A, T)                                                                                                                     \
  template [[host_name("pool_average_" #NAME)]] kernel void pool_average<T>(device const T *, device T *, constant mps_pool_arguments &, uint2); \
  template [[host_name("pool_average_backward_" #NAME)]] kernel void pool_average_backward<A, T>(device A *, device const T *,                  \
                                                                                                constant mps_pool_arguments &, uint);
MAXIMUM(f32, float)
MAXIMUM(f16, half)
MAXIMUM(bf16, bfloat)
MAXIMUM(u8, uchar)
MAXIMUM(i8, char)
MAXIMUM(i16, short)
MAXIMUM(i32, int)
MAXIMUM(i64, long)
MAXIMUM_BACKWARD(f32, float, float)
MAXIMUM_BACKWARD(f16, float, half)
MAXIMUM_BACKWARD(bf16, float, bfloat)
MAXIMUM_BACKWARD(i64, long, long)
AVERAGE(f32, float, float)
AVERAGE(f16, float, half)
AVERAGE(bf16, float, bfloat)
AVERAGE(i64, long, long)
