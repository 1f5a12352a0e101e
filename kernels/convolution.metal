// SPDX-License-Identifier: BSD-3-Clause
//
// convolution: direct convolution in 1 to 3 dimensions and its gradients, for every dtype and any strides. Used where the device's dense
// provider does not take a dtype, or where there is none. Four kernels: narrow from wide (a convolution), wide from narrow (its transpose,
// which is also the gradient of the input), the gradient of the weight, and the sum over all but the channels (the gradient of the bias).

#include "dense_types.h"

#include "convolution.h"

#define TILE MPS_CONVOLUTION_TILE
#define LANES 16

inline int64_t divide_up(int64_t a, int64_t b) { return a >= 0 ? (a + b - 1) / b : -(-a / b); }
inline int64_t divide_down(int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

// The narrow positions [begin, end) whose wide position for `tap` lies inside, along dimension d.
inline void narrow_range(constant mps_convolution_arguments &c, uint d, int64_t tap, thread int64_t &begin, thread int64_t &end) {
  int64_t shift = c.padding[d] - tap * c.dilation[d];
  begin = max(int64_t(0), divide_up(shift, c.stride[d]));
  end = min(c.narrow_sizes[d], divide_down(c.wide_sizes[d] - 1 + shift, c.stride[d]) + 1);
}

// Grid: (tiles of the last narrow dimension, depth x height, batch x channels).
template <typename T>
kernel void convolution(device const T *wide [[buffer(0)]], device const T *weight [[buffer(1)]], device const T *bias [[buffer(2)]],
                        device T *narrow [[buffer(3)]], constant mps_convolution_arguments &arguments [[buffer(4)]],
                        uint3 position [[thread_position_in_grid]]) {
  typedef typename dense_type<T>::compute C;
  constant mps_convolution_arguments &c = arguments;
  int64_t channels = c.groups * c.narrow_channels;
  int64_t n = position.z / channels, channel = position.z % channels, group = channel / c.narrow_channels;
  int64_t z = position.y / c.narrow_sizes[1], y = position.y % c.narrow_sizes[1], x0 = int64_t(position.x) * TILE;
  int64_t x1 = min(x0 + TILE, c.narrow_sizes[2]);
  C first = c.has_bias ? dense_type<T>::load(bias[channel * c.bias_stride], false) : dense_type<T>::zero();
  C sum[TILE];
  for (uint i = 0; i < TILE; i++) sum[i] = first;
  for (int64_t i = 0; i < c.wide_channels; i++)
    for (int64_t kz = 0; kz < c.taps[0]; kz++) {
      int64_t wz = z * c.stride[0] - c.padding[0] + kz * c.dilation[0];
      if (wz < 0 || wz >= c.wide_sizes[0]) continue;
      for (int64_t ky = 0; ky < c.taps[1]; ky++) {
        int64_t wy = y * c.stride[1] - c.padding[1] + ky * c.dilation[1];
        if (wy < 0 || wy >= c.wide_sizes[1]) continue;
        device const T *line = wide + n * c.wide_strides[0] + (group * c.wide_channels + i) * c.wide_strides[1] + wz * c.wide_strides[2] +
                               wy * c.wide_strides[3];
        device const T *taps = weight + channel * c.weight_strides[0] + i * c.weight_strides[1] + kz * c.weight_strides[2] +
                               ky * c.weight_strides[3];
        for (int64_t kx = 0; kx < c.taps[2]; kx++) {
          int64_t begin, end;
          narrow_range(c, 2, kx, begin, end);
          begin = max(begin, x0);
          end = min(end, x1);
          C factor = dense_type<T>::load(taps[kx * c.weight_strides[4]], false);
          int64_t step = c.stride[2] * c.wide_strides[4];
          device const T *from = line + (begin * c.stride[2] - c.padding[2] + kx * c.dilation[2]) * c.wide_strides[4];
          thread C *to = sum + (begin - x0);
          VECTORIZE
          for (int64_t x = 0; x < end - begin; x++) to[x] = add(to[x], multiply(factor, dense_type<T>::load(from[x * step], false)));
        }
      }
    }
  device T *to = narrow + n * c.narrow_strides[0] + channel * c.narrow_strides[1] + z * c.narrow_strides[2] + y * c.narrow_strides[3];
  for (int64_t x = x0; x < x1; x++) to[x * c.narrow_strides[4]] = dense_type<T>::store(sum[x - x0]);
}

// Grid: (tiles of the last wide dimension, depth x height, batch x channels).
template <typename T>
kernel void convolution_transpose(device const T *narrow [[buffer(0)]], device const T *weight [[buffer(1)]],
                                  device const T *bias [[buffer(2)]], device T *wide [[buffer(3)]],
                                  constant mps_convolution_arguments &arguments [[buffer(4)]], uint3 position [[thread_position_in_grid]]) {
  typedef typename dense_type<T>::compute C;
  constant mps_convolution_arguments &c = arguments;
  int64_t channels = c.groups * c.wide_channels;
  int64_t n = position.z / channels, channel = position.z % channels, group = channel / c.wide_channels;
  int64_t z = position.y / c.wide_sizes[1], y = position.y % c.wide_sizes[1], x0 = int64_t(position.x) * TILE;
  int64_t x1 = min(x0 + TILE, c.wide_sizes[2]);
  C first = c.has_bias ? dense_type<T>::load(bias[channel * c.bias_stride], false) : dense_type<T>::zero();
  C sum[TILE];
  for (uint i = 0; i < TILE; i++) sum[i] = first;
  for (int64_t o = group * c.narrow_channels; o < (group + 1) * c.narrow_channels; o++)
    for (int64_t kz = 0; kz < c.taps[0]; kz++) {
      int64_t tz = z + c.padding[0] - kz * c.dilation[0], nz = tz / c.stride[0];
      if (tz < 0 || nz * c.stride[0] != tz || nz >= c.narrow_sizes[0]) continue;
      for (int64_t ky = 0; ky < c.taps[1]; ky++) {
        int64_t ty = y + c.padding[1] - ky * c.dilation[1], ny = ty / c.stride[1];
        if (ty < 0 || ny * c.stride[1] != ty || ny >= c.narrow_sizes[1]) continue;
        device const T *line = narrow + n * c.narrow_strides[0] + o * c.narrow_strides[1] + nz * c.narrow_strides[2] +
                               ny * c.narrow_strides[3];
        device const T *taps = weight + o * c.weight_strides[0] + (channel - group * c.wide_channels) * c.weight_strides[1] +
                               kz * c.weight_strides[2] + ky * c.weight_strides[3];
        for (int64_t kx = 0; kx < c.taps[2]; kx++) {
          int64_t shift = c.padding[2] - kx * c.dilation[2]; // wide = narrow * stride - shift
          int64_t begin = max(int64_t(0), divide_up(x0 + shift, c.stride[2]));
          int64_t end = min(c.narrow_sizes[2], divide_down(x1 - 1 + shift, c.stride[2]) + 1);
          C factor = dense_type<T>::load(taps[kx * c.weight_strides[4]], false);
          int64_t step = c.stride[2];
          device const T *from = line + begin * c.narrow_strides[4];
          thread C *to = sum + (begin * step - shift - x0);
          VECTORIZE
          for (int64_t x = 0; x < end - begin; x++)
            to[x * step] = add(to[x * step], multiply(factor, dense_type<T>::load(from[x * c.narrow_strides[4]], false)));
        }
      }
    }
  device T *to = wide + n * c.wide_strides[0] + channel * c.wide_strides[1] + z * c.wide_strides[2] + y * c.wide_strides[3];
  for (int64_t x = x0; x < x1; x++) to[x * c.wide_strides[4]] = dense_type<T>::store(sum[x - x0]);
}

// Sum of the lanes, as a tree.
template <typename C>
inline C fold(thread C *lanes) {
  for (uint width = LANES / 2; width > 0; width /= 2)
    for (uint i = 0; i < width; i++) lanes[i] = add(lanes[i], lanes[i + width]);
  return lanes[0];
}

// Grid: (taps, wide channels of a group, narrow channels). weight_gradient has weight_strides.
template <typename T>
kernel void convolution_weight(device const T *wide [[buffer(0)]], device const T *narrow [[buffer(1)]],
                               device T *weight_gradient [[buffer(2)]], constant mps_convolution_arguments &arguments [[buffer(3)]],
                               uint3 position [[thread_position_in_grid]]) {
  typedef typename dense_type<T>::compute C;
  constant mps_convolution_arguments &c = arguments;
  int64_t kx = position.x % c.taps[2], ky = position.x / c.taps[2] % c.taps[1], kz = position.x / c.taps[2] / c.taps[1];
  int64_t o = position.z, wide_channel = o / c.narrow_channels * c.wide_channels + position.y;
  int64_t z0, z1, y0, y1, x0, x1;
  narrow_range(c, 0, kz, z0, z1);
  narrow_range(c, 1, ky, y0, y1);
  narrow_range(c, 2, kx, x0, x1);
  C total = dense_type<T>::zero();
  for (int64_t n = 0; n < c.batch; n++)
    for (int64_t z = z0; z < z1; z++) {
      C lanes[LANES];
      for (uint i = 0; i < LANES; i++) lanes[i] = dense_type<T>::zero();
      for (int64_t y = y0; y < y1; y++) {
        device const T *from = narrow + n * c.narrow_strides[0] + o * c.narrow_strides[1] + z * c.narrow_strides[2] +
                               y * c.narrow_strides[3] + x0 * c.narrow_strides[4];
        device const T *with = wide + n * c.wide_strides[0] + wide_channel * c.wide_strides[1] +
                               (z * c.stride[0] - c.padding[0] + kz * c.dilation[0]) * c.wide_strides[2] +
                               (y * c.stride[1] - c.padding[1] + ky * c.dilation[1]) * c.wide_strides[3] +
                               (x0 * c.stride[2] - c.padding[2] + kx * c.dilation[2]) * c.wide_strides[4];
        int64_t step = c.stride[2] * c.wide_strides[4];
        for (int64_t x = 0; x < x1 - x0; x += LANES) {
          uint count = uint(min(int64_t(LANES), x1 - x0 - x));
          VECTORIZE
          for (uint i = 0; i < count; i++)
            lanes[i] = add(lanes[i], multiply(dense_type<T>::load(from[(x + i) * c.narrow_strides[4]], false),
                                              dense_type<T>::load(with[(x + i) * step], false)));
        }
      }
      total = add(total, fold<C>(lanes));
    }
  weight_gradient[o * c.weight_strides[0] + position.y * c.weight_strides[1] + kz * c.weight_strides[2] + ky * c.weight_strides[3] +
                  kx * c.weight_strides[4]] = dense_type<T>::store(total);
}

// Grid: channels. bias_gradient[channel] = sum of narrow over batch and positions; narrow_channels counts all channels.
template <typename T>
kernel void convolution_bias(device const T *narrow [[buffer(0)]], device T *bias_gradient [[buffer(1)]],
                             constant mps_convolution_arguments &arguments [[buffer(2)]], uint channel [[thread_position_in_grid]]) {
  typedef typename dense_type<T>::compute C;
  constant mps_convolution_arguments &c = arguments;
  C total = dense_type<T>::zero();
  for (int64_t n = 0; n < c.batch; n++)
    for (int64_t z = 0; z < c.narrow_sizes[0]; z++) {
      C plane = dense_type<T>::zero();
      for (int64_t y = 0; y < c.narrow_sizes[1]; y++) {
        device const T *from = narrow + n * c.narrow_strides[0] + int64_t(channel) * c.narrow_strides[1] + z * c.narrow_strides[2] +
                               y * c.narrow_strides[3];
        C lanes[LANES];
        for (uint i = 0; i < LANES; i++) lanes[i] = dense_type<T>::zero();
        for (int64_t x = 0; x < c.narrow_sizes[2]; x += LANES) {
          uint count = uint(min(int64_t(LANES), c.narrow_sizes[2] - x));
          VECTORIZE
          for (uint i = 0; i < count; i++) lanes[i] = add(lanes[i], dense_type<T>::load(from[(x + i) * c.narrow_strides[4]], false));
        }
        plane = add(plane, fold<C>(lanes));
      }
      total = add(total, plane);
    }
  bias_gradient[int64_t(channel) * c.bias_stride] = dense_type<T>::store(total);
}

#define INSTANTIATE(name, type)                                                                                              \
  template [[host_name("convolution_" #name)]] kernel void convolution<type>(                                                \
      device const type * wide [[buffer(0)]], device const type *weight [[buffer(1)]], device const type *bias [[buffer(2)]],     \
      device type *narrow [[buffer(3)]], constant mps_convolution_arguments &arguments [[buffer(4)]],                        \
      uint3 position [[thread_position_in_grid]]);                                                                           \
  template [[host_name("convolution_transpose_" #name)]] kernel void convolution_transpose<type>(                            \
      device const type * narrow [[buffer(0)]], device const type *weight [[buffer(1)]], device const type *bias [[buffer(2)]],   \
      device type *wide [[buffer(3)]], constant mps_convolution_arguments &arguments [[buffer(4)]],                          \
      uint3 position [[thread_position_in_grid]]);                                                                           \
  template [[host_name("convolution_weight_" #name)]] kernel void convolution_weight<type>(                                  \
      device const type * wide [[buffer(0)]], device const type *narrow [[buffer(1)]], device type *weight_gradient [[buffer(2)]], \
      constant mps_convolution_arguments &arguments [[buffer(3)]], uint3 position [[thread_position_in_grid]]);              \
  template [[host_name("convolution_bias_" #name)]] kernel void convolution_bias<type>(                                      \
      device const type * narrow [[buffer(0)]], device type *bias_gradient [[buffer(1)]],                                    \
      constant mps_convolution_arguments &arguments [[buffer(2)]], uint channel [[thread_position_in_grid]]);
INSTANTIATE(u8, uchar)
INSTANTIATE(u16, ushort)
INSTANTIATE(u32, uint)
INSTANTIATE(u64, ulong)
INSTANTIATE(f16, half)
INSTANTIATE(bf16, bfloat)
INSTANTIATE(f32, float)
INSTANTIATE(c32, half2)
INSTANTIATE(c64, float2)
