// SPDX-License-Identifier: BSD-3-Clause
//
// grid_sample: values of the input where a grid points, and the gradients. Coordinates and sums are floats, whatever the type. Points are taken
// in blocks: first where they are, then channel by channel. The input's gradient is scattered by one thread for each plane, in the order of
// the points.

#include <metal_stdlib>
#include "grid_sample_arguments.h"

using namespace metal;

#define VECTORIZE _Pragma("clang loop vectorize(assume_safety)")

namespace {

constant constexpr uint BLOCK = 64;
constant constexpr int NOWHERE = -2147483647 - 1;

// A whole number as an index; what lies far outside is NOWHERE.
inline int index_of(float value) { return value >= -16777216.0f && value <= 16777216.0f * 64.0f ? int(value) : NOWHERE; }

// ---- from a grid's coordinate to one of the input ----
// Two dimensions and three differ in how they round, since PyTorch's kernels do. `slope` is the derivative.

template <uint D> struct axis {
  float size, factor, shift, low, twice_span, last;
  bool align, empty;

  axis(constant mps_grid_sample_arguments &a, uint k) {
    align = a.align_corners;
    const float n = float(a.size[k]);
    size = n;
    last = float(a.size[k] - 1);
    factor = (align ? last : n) / 2.0f;
    shift = align ? 0.0f : 0.5f;
    low = align ? 0.0f : -0.5f;
    twice_span = (align ? last : n) * 2.0f;
    empty = align && a.size[k] <= 1;
  }

  float unnormalize(float x) const {
    const float y = x + 1.0f;
    if (D == 2) return fma(y, factor, -shift);
    return align ? (y / 2.0f) * last : ((y * size) - 1.0f) / 2.0f;
  }

  float clip(float x) const {
    if (D == 2) return fmin(fmax(x, 0.0f), last);
    const float y = x < 0.0f ? 0.0f : x;
    return y < last ? y : last;
  }
  float clip(float x, thread float &slope) const {
    slope = x <= 0.0f || x >= last ? 0.0f : slope;
    return clip(x);
  }

  float reflect(float x, thread float &slope) const {
    if (empty) {
      slope = 0.0f;
      return 0.0f;
    }
    const float from_low = x - low, distance = fabs(from_low);
    bool turned = from_low < 0.0f;
    float y;
    if (D == 2) {
      const float extra = distance - (trunc(distance / twice_span) * twice_span);
      const float reflected = twice_span - extra;
      const bool flip = extra > reflected;
      y = flip ? reflected : extra;
      turned = turned != flip;
    } else {
      const float span = twice_span / 2.0f, extra = fmod(distance, span), flips = floor(distance / span);
      const bool flip = flips - 2.0f * floor(flips / 2.0f) != 0.0f;
      y = flip ? span - extra : extra;
      turned = turned != flip;
    }
    slope = turned ? -slope : slope;
    return y + low;
  }

  // Brings a coordinate of the input into it.
  template <uint P> float pad(float x) const {
    float slope = 0.0f;
    if (P == MPS_GRID_BORDER) return clip(x);
    if (P == MPS_GRID_REFLECTION) return clip(reflect(x, slope));
    return x;
  }
  template <uint P> float pad(float x, thread float &slope) const {
    if (P == MPS_GRID_BORDER) return clip(x, slope);
    if (P == MPS_GRID_REFLECTION) return clip(reflect(x, slope), slope);
    return x;
  }
};

// A block of points.
template <typename T, uint D> struct block {
  uint count;
  float x[D][BLOCK]; // coordinates in the input
  float slope[D][BLOCK];

  template <uint P> void locate(constant mps_grid_sample_arguments &a, device const T *grid) {
    const uint n = count;
    for (uint k = 0; k < D; k++) {
      const axis<D> s(a, k);
      VECTORIZE for (uint i = 0; i < n; i++) {
        float slope_ = s.factor;
        x[k][i] = s.template pad<P>(s.unnormalize(float(grid[i * D + k])), slope_);
        slope[k][i] = slope_;
      }
    }
  }
  // Bicubic sampling pads the neighbours' coordinates, not the point's.
  void locate(constant mps_grid_sample_arguments &a, device const T *grid) {
    if (a.padding == MPS_GRID_BORDER && a.interpolation != MPS_GRID_BICUBIC)
      locate<MPS_GRID_BORDER>(a, grid);
    else if (a.padding == MPS_GRID_REFLECTION && a.interpolation != MPS_GRID_BICUBIC)
      locate<MPS_GRID_REFLECTION>(a, grid);
    else
      locate<MPS_GRID_ZEROS>(a, grid);
  }
};

// ---- the elements that a point reads ----

// Offsets of 2^D neighbours, NOWHERE outside; the weight of each side of each axis.
template <typename T, uint D> struct neighbours {
  int offset[1 << D][BLOCK];
  float side[D][2][BLOCK];

  void find(constant mps_grid_sample_arguments &a, thread const block<T, D> &b, thread const int *strides) {
    const uint count = b.count;
    for (uint k = 0; k < D; k++)
      VECTORIZE for (uint i = 0; i < count; i++) {
        const float x = b.x[k][i], first = floor(x), far = x - first;
        side[k][0][i] = D == 2 ? 1.0f - far : (first + 1.0f) - x;
        side[k][1][i] = far;
      }
    int at[D][2][BLOCK]; // of each side, along each axis
    for (uint k = 0; k < D; k++) {
      const int size = a.size[k], stride = strides[k];
      VECTORIZE for (uint i = 0; i < count; i++) {
        const int index = index_of(floor(b.x[k][i]));
        at[k][0][i] = index >= 0 && index < size ? index * stride : NOWHERE;
        at[k][1][i] = index >= -1 && index < size - 1 ? (index + 1) * stride : NOWHERE;
      }
    }
    for (uint corner = 0; corner < 1u << D; corner++) {
      thread const int *x = at[0][corner & 1], *y = at[1][corner >> 1 & 1], *z = at[D - 1][corner >> (D - 1) & 1];
      VECTORIZE for (uint i = 0; i < count; i++) {
        const bool inside = x[i] != NOWHERE && y[i] != NOWHERE && z[i] != NOWHERE;
        offset[corner][i] = inside ? x[i] + y[i] + (D == 3 ? z[i] : 0) : NOWHERE;
      }
    }
  }
  float weight(uint corner, uint i) const {
    const float plane = side[1][corner >> 1 & 1][i] * side[0][corner & 1][i];
    return D == 2 ? plane : plane * side[D - 1][corner >> 2][i];
  }
};

template <typename T, uint D>
inline void find_nearest(constant mps_grid_sample_arguments &a, thread const block<T, D> &b, thread const int *strides, thread int *offset) {
  const uint count = b.count;
  for (uint k = 0; k < D; k++) {
    const int size = a.size[k], stride = strides[k];
    VECTORIZE for (uint i = 0; i < count; i++) {
      const int index = index_of(rint(b.x[k][i])), before = k ? offset[i] : 0;
      offset[i] = index >= 0 && index < size && before != NOWHERE ? before + index * stride : NOWHERE;
    }
  }
}

// a * b + c, rounded twice.
inline float step(float a, float b, float c) { return (a * b) + c; }
inline float cubic_inner(float x) { return step(step(1.25f, x, -2.25f) * x, x, 1.0f); }
inline float cubic_outer(float x) { return step(step(step(-0.75f, x, 3.75f), x, -6.0f), x, 3.0f); }

// Four by four neighbours, in rows.
template <typename T> struct cubic_neighbours {
  int offset[16][BLOCK];
  float weight[2][4][BLOCK], gradient[2][4][BLOCK];

  template <uint P> void find_offsets(constant mps_grid_sample_arguments &a, thread const block<T, 2> &b, thread const int *strides) {
    const uint count = b.count;
    const axis<2> sx(a, 0), sy(a, 1);
    const int width = a.size[0], height = a.size[1], across = strides[0], down = strides[1];
    int column[4][BLOCK], row[4][BLOCK];
    for (uint n = 0; n < 4; n++) {
      const float distance = float(n) - 1.0f;
      VECTORIZE for (uint i = 0; i < count; i++) {
        const int x = index_of(trunc(sx.template pad<P>(floor(b.x[0][i]) + distance)));
        const int y = index_of(trunc(sy.template pad<P>(floor(b.x[1][i]) + distance)));
        column[n][i] = x >= 0 && x < width ? x * across : NOWHERE;
        row[n][i] = y >= 0 && y < height ? y * down : NOWHERE;
      }
    }
    for (uint n = 0; n < 16; n++)
      VECTORIZE for (uint i = 0; i < count; i++) {
        const int x = column[n & 3][i], y = row[n >> 2][i];
        offset[n][i] = x != NOWHERE && y != NOWHERE ? x + y : NOWHERE;
      }
  }

  void find(constant mps_grid_sample_arguments &a, thread const block<T, 2> &b, thread const int *strides) {
    const uint count = b.count;
    for (uint k = 0; k < 2; k++)
      VECTORIZE for (uint i = 0; i < count; i++) {
        const float t = b.x[k][i] - floor(b.x[k][i]);
        const float x0 = t + 1.0f, x2 = 1.0f - t, x3 = 2.0f - t;
        weight[k][0][i] = cubic_outer(x0);
        weight[k][1][i] = cubic_inner(t);
        weight[k][2][i] = cubic_inner(x2);
        weight[k][3][i] = cubic_outer(x3);
        gradient[k][0][i] = step(step(2.25f, -x0, 7.5f), -x0, 6.0f);
        gradient[k][1][i] = step(-3.75f, -t, -4.5f) * -t;
        gradient[k][2][i] = step(3.75f, x2, -4.5f) * x2;
        gradient[k][3][i] = step(step(-2.25f, x3, 7.5f), x3, -6.0f);
      }
    if (a.padding == MPS_GRID_BORDER)
      find_offsets<MPS_GRID_BORDER>(a, b, strides);
    else if (a.padding == MPS_GRID_REFLECTION)
      find_offsets<MPS_GRID_REFLECTION>(a, b, strides);
    else
      find_offsets<MPS_GRID_ZEROS>(a, b, strides);
  }
};

// Read in any case, and then left out: loads under a condition are taken one by one.
template <typename T> inline T element_at(device const T *plane, int offset) {
  const T value = plane[max(offset, 0)];
  return offset < 0 ? T(0) : value;
}
template <typename T> inline float value_at(device const T *plane, int offset) {
  const float value = float(plane[max(offset, 0)]);
  return offset < 0 ? 0.0f : value;
}

// ---- values ----

template <typename T, uint D>
inline void sample_bilinear(constant mps_grid_sample_arguments &a, thread const block<T, D> &b, thread const int *strides, device const T *input,
                            device T *output) {
  const uint count = b.count;
  neighbours<T, D> near;
  near.find(a, b, strides);
  float weights[1 << D][BLOCK];
  for (uint corner = 0; corner < 1u << D; corner++)
    VECTORIZE for (uint i = 0; i < count; i++) weights[corner][i] = near.weight(corner, i);
  for (long c = 0; c < a.channels; c++, input += a.in_channel, output += a.points) {
    VECTORIZE for (uint i = 0; i < count; i++) {
      float sum = value_at(input, near.offset[0][i]) * weights[0][i];
      if (D == 3) sum = near.offset[0][i] == NOWHERE ? 0.0f : sum;
      for (uint corner = 1; corner < 1u << D; corner++) {
        const float more = sum + value_at(input, near.offset[corner][i]) * weights[corner][i];
        sum = D == 3 && near.offset[corner][i] == NOWHERE ? sum : more;
      }
      output[i] = T(sum);
    }
  }
}

template <typename T, uint D>
inline void sample_nearest(constant mps_grid_sample_arguments &a, thread const block<T, D> &b, thread const int *strides, device const T *input,
                           device T *output) {
  const uint count = b.count;
  int offset[BLOCK];
  find_nearest<T, D>(a, b, strides, offset);
  for (long c = 0; c < a.channels; c++, input += a.in_channel, output += a.points)
    VECTORIZE for (uint i = 0; i < count; i++) output[i] = element_at(input, offset[i]);
}

template <typename T>
inline void sample_bicubic(constant mps_grid_sample_arguments &a, thread const block<T, 2> &b, thread const int *strides, device const T *input,
                           device T *output) {
  const uint count = b.count;
  cubic_neighbours<T> near;
  near.find(a, b, strides);
  for (long c = 0; c < a.channels; c++, input += a.in_channel, output += a.points) {
    float sums[BLOCK];
    for (uint y = 0; y < 4; y++)
      VECTORIZE for (uint i = 0; i < count; i++) {
        float row = near.weight[0][0][i] * value_at(input, near.offset[4 * y][i]);
        row += near.weight[0][1][i] * value_at(input, near.offset[4 * y + 1][i]);
        row += near.weight[0][2][i] * value_at(input, near.offset[4 * y + 2][i]);
        row += near.weight[0][3][i] * value_at(input, near.offset[4 * y + 3][i]);
        row *= near.weight[1][y][i];
        sums[i] = y ? sums[i] + row : row;
      }
    for (uint i = 0; i < count; i++) output[i] = T(sums[i]);
  }
}
template <typename T>
inline void sample_bicubic(constant mps_grid_sample_arguments &, thread const block<T, 3> &, thread const int *, device const T *, device T *) {}

// ---- the input's gradient: of one plane ----

template <typename T, uint D>
inline void scatter_bilinear(constant mps_grid_sample_arguments &a, thread const block<T, D> &b, thread const int *strides, device const T *grad,
                             device float *to) {
  const uint count = b.count;
  neighbours<T, D> near;
  near.find(a, b, strides);
  for (uint i = 0; i < count; i++) {
    const float g = float(grad[i]);
    for (uint corner = 0; corner < 1u << D; corner++)
      if (near.offset[corner][i] != NOWHERE) to[near.offset[corner][i]] += near.weight(corner, i) * g;
  }
}

template <typename T, uint D>
inline void scatter_nearest(constant mps_grid_sample_arguments &a, thread const block<T, D> &b, thread const int *strides, device const T *grad,
                            device float *to) {
  const uint count = b.count;
  int offset[BLOCK];
  find_nearest<T, D>(a, b, strides, offset);
  for (uint i = 0; i < count; i++)
    if (offset[i] != NOWHERE) to[offset[i]] += float(grad[i]);
}

template <typename T>
inline void scatter_bicubic(constant mps_grid_sample_arguments &a, thread const block<T, 2> &b, thread const int *strides, device const T *grad,
                            device float *to) {
  const uint count = b.count;
  cubic_neighbours<T> near;
  near.find(a, b, strides);
  for (uint i = 0; i < count; i++) {
    const float g = float(grad[i]);
    for (uint n = 0; n < 16; n++)
      if (near.offset[n][i] != NOWHERE) to[near.offset[n][i]] += g * near.weight[0][n & 3][i] * near.weight[1][n >> 2][i];
  }
}
template <typename T>
inline void scatter_bicubic(constant mps_grid_sample_arguments &, thread const block<T, 3> &, thread const int *, device const T *, device float *) {}

// ---- the grid's gradient ----

template <typename T, uint D>
inline void slope_bilinear(constant mps_grid_sample_arguments &a, thread const block<T, D> &b, thread const int *strides, device const T *input,
                           device const T *grad, thread float (*sums)[BLOCK]) {
  const uint count = b.count;
  neighbours<T, D> near;
  near.find(a, b, strides);
  for (long c = 0; c < a.channels; c++, input += a.in_channel, grad += a.points) {
    VECTORIZE for (uint i = 0; i < count; i++) {
      const float g = float(grad[i]);
      float value[1 << D];
      for (uint corner = 0; corner < 1u << D; corner++) value[corner] = value_at(input, near.offset[corner][i]);
      const float e = near.side[0][0][i], w = near.side[0][1][i], s = near.side[1][0][i], n = near.side[1][1][i];
      if (D == 2) {
        sums[0][i] += ((value[1] - value[0]) * s + (value[3] - value[2]) * n) * g;
        sums[1][i] += ((value[2] - value[0]) * e + (value[3] - value[1]) * w) * g;
      } else {
        const uint back = (1 << D) - 4; // 4 where there is depth
        const float t = near.side[D - 1][0][i], u = near.side[D - 1][1][i];
        sums[0][i] += (((value[1] - value[0]) * s + (value[3] - value[2]) * n) * t +
                       ((value[back + 1] - value[back]) * s + (value[back + 3] - value[back + 2]) * n) * u) * g;
        sums[1][i] += (((value[2] - value[0]) * e + (value[3] - value[1]) * w) * t +
                       ((value[back + 2] - value[back]) * e + (value[back + 3] - value[back + 1]) * w) * u) * g;
        sums[D - 1][i] += (((value[back] - value[0]) * e + (value[back + 1] - value[1]) * w) * s +
                           ((value[back + 2] - value[2]) * e + (value[back + 3] - value[3]) * w) * n) * g;
      }
    }
  }
}

template <typename T>
inline void slope_bicubic(constant mps_grid_sample_arguments &a, thread const block<T, 2> &b, thread const int *strides, device const T *input,
                          device const T *grad, thread float (*sums)[BLOCK]) {
  const uint count = b.count;
  cubic_neighbours<T> near;
  near.find(a, b, strides);
  for (long c = 0; c < a.channels; c++, input += a.in_channel, grad += a.points)
    for (uint n = 0; n < 16; n++)
      VECTORIZE for (uint i = 0; i < count; i++) {
        const float value = value_at(input, near.offset[n][i]) * float(grad[i]);
        sums[0][i] -= value * near.gradient[0][n & 3][i] * near.weight[1][n >> 2][i];
        sums[1][i] -= value * near.gradient[1][n >> 2][i] * near.weight[0][n & 3][i];
      }
}
template <typename T>
inline void slope_bicubic(constant mps_grid_sample_arguments &, thread const block<T, 3> &, thread const int *, device const T *, device const T *,
                          thread float (*)[BLOCK]) {}

}  // namespace

// Thread: a block of points, a batch entry.
template <typename T, uint D>
kernel void grid_sample(device const T *input [[buffer(0)]], device const T *grid [[buffer(1)]], device T *output [[buffer(2)]],
                        constant mps_grid_sample_arguments &a [[buffer(3)]], uint2 position [[thread_position_in_grid]]) {
  const long first = long(position.x) * BLOCK, batch = position.y;
  const int strides[3] = {a.in_stride[0], a.in_stride[1], a.in_stride[2]};
  block<T, D> b;
  b.count = uint(min(long(BLOCK), a.points - first));
  b.locate(a, grid + (batch * a.points + first) * D);
  input += batch * a.in_batch;
  output += batch * a.channels * a.points + first;
  if (a.interpolation == MPS_GRID_BILINEAR)
    sample_bilinear<T, D>(a, b, strides, input, output);
  else if (a.interpolation == MPS_GRID_NEAREST)
    sample_nearest<T, D>(a, b, strides, input, output);
  else
    sample_bicubic<T>(a, b, strides, input, output);
}

// Adds to grad_input. Thread: a plane.
template <typename T, uint D>
kernel void grid_sample_backward_input(device float *grad_input [[buffer(0)]], device const T *grid [[buffer(1)]], device const T *grad [[buffer(2)]],
                                       constant mps_grid_sample_arguments &a [[buffer(3)]], uint position [[thread_position_in_grid]]) {
  const long plane = position, batch = plane / a.channels;
  const int strides[3] = {1, a.size[0], a.size[0] * a.size[1]};
  grad_input += plane * a.size[0] * a.size[1] * a.size[2];
  block<T, D> b;
  for (long first = 0; first < a.points; first += BLOCK) {
    b.count = uint(min(long(BLOCK), a.points - first));
    b.locate(a, grid + (batch * a.points + first) * D);
    device const T *g = grad + plane * a.points + first;
    if (a.interpolation == MPS_GRID_BILINEAR)
      scatter_bilinear<T, D>(a, b, strides, g, grad_input);
    else if (a.interpolation == MPS_GRID_NEAREST)
      scatter_nearest<T, D>(a, b, strides, g, grad_input);
    else
      scatter_bicubic<T>(a, b, strides, g, grad_input);
  }
}

// Thread: a block of points, a batch entry. Nearest sampling has no such gradient.
template <typename T, uint D>
kernel void grid_sample_backward_grid(device const T *input [[buffer(0)]], device const T *grid [[buffer(1)]], device const T *grad [[buffer(2)]],
                                      constant mps_grid_sample_arguments &a [[buffer(3)]], device T *grad_grid [[buffer(4)]],
                                      uint2 position [[thread_position_in_grid]]) {
  const long first = long(position.x) * BLOCK, batch = position.y;
  const int strides[3] = {a.in_stride[0], a.in_stride[1], a.in_stride[2]};
  block<T, D> b;
  b.count = uint(min(long(BLOCK), a.points - first));
  b.locate(a, grid + (batch * a.points + first) * D);
  input += batch * a.in_batch;
  grad += batch * a.channels * a.points + first;
  float sums[D][BLOCK];
  for (uint k = 0; k < D; k++)
    for (uint i = 0; i < b.count; i++) sums[k][i] = 0.0f;
  if (a.interpolation == MPS_GRID_BILINEAR)
    slope_bilinear<T, D>(a, b, strides, input, grad, sums);
  else
    slope_bicubic<T>(a, b, strides, input, grad, sums);
  device T *to = grad_grid + (batch * a.points + first) * D;
  for (uint k = 0; k < D; k++)
    for (uint i = 0; i < b.count; i++) to[i * D + k] = T(sums[k][i] * b.slope[k][i]);
}

#define GRID_SAMPLE(NAME, T, D)                                                                                                                     \
  template [[host_name("grid_sample_" #D "d_" #NAME)]] kernel void grid_sample<T, D>(device const T *, device const T *, device T *,               \
                                                                                    constant mps_grid_sample_arguments &, uint2);                    \
  template [[host_name("grid_sample_backward_input_" #D "d_" #NAME)]] kernel void grid_sample_backward_input<T, D>(                                 \
    device float *, device const T *, device const T *, constant mps_grid_sample_arguments &, uint);                                                \
  template [[host_name("grid_sample_backward_grid_" #D "d_" #NAME)]] kernel void grid_sample_backward_grid<T, D>(                                   \
    device const T *, device const T *, device const T *, constant mps_grid_sample_arguments &, device T *, uint2);
GRID_SAMPLE(f32, float, 2)
GRID_SAMPLE(f16, half, 2)
GRID_SAMPLE(bf16, bfloat, 2)
GRID_SAMPLE(f32, float, 3)
GRID_SAMPLE(f16, half, 3)
GRID_SAMPLE(bf16, bfloat, 3)
