// SPDX-License-Identifier: BSD-3-Clause
//
// norm_rows: layer norm and rms norm over rows of neighbours, and their gradients. Weights and statistics are float.

#include "welford.h"
#include "norm_arguments.h"

// Mean and 1 / sqrt(variance + epsilon) of a row; rms norm: of the squares, with mean 0.
struct row_statistics {
  float mean;
  float low; // mean + low is the mean
  float scale;
};
template <typename T>
inline row_statistics statistics_of_row(device const T *x, constant mps_norm_rows &a) {
  row_statistics s;
  moments total = no_moments();
  float squares = 0.0f;
  for (long begin = 0; begin < a.count; begin += MOMENTS_BLOCK) {
    const long n = min((long)MOMENTS_BLOCK, (long)a.count - begin);
    float sums[MOMENTS_LANES], distances[MOMENTS_LANES];
    for (uint l = 0; l < MOMENTS_LANES; l++) sums[l] = distances[l] = 0.0f;
    if (!a.centred) {
      distances_of_run<T, true>(sums, distances, x + begin, 1, n, 0.0f);
      squares += fold_sums(distances);
      continue;
    }
    distances_of_run<T, false>(sums, distances, x + begin, 1, n, 0.0f);
    const float mean = fold_sums(sums) / float(n);
    for (uint l = 0; l < MOMENTS_LANES; l++) sums[l] = 0.0f;
    distances_of_run<T, true>(sums, distances, x + begin, 1, n, mean);
    const float sum = fold_sums(sums);
    const moments block = make_moments(float(n), mean, sum, fold_sums(distances));
    total = begin ? merge_moments(total, block) : block;
  }
  s.mean = a.centred ? total.mean : 0.0f;
  s.low = a.centred ? total.low : 0.0f;
  s.scale = 1.0f / sqrt((a.centred ? total.m2 : squares) / float(a.count) + a.epsilon);
  return s;
}

template <typename T>
kernel void norm_rows_forward(device const T *input [[buffer(0)]], device T *output [[buffer(1)]],
                              constant mps_norm_rows &a [[buffer(2)]], device const float *weight [[buffer(3)]],
                              device const float *bias [[buffer(4)]], device float *means [[buffer(5)]],
                              device float *scales [[buffer(6)]], uint row [[thread_position_in_grid]]) {
  device const T *x = input + row * a.count;
  device T *y = output + row * a.count;
  const row_statistics s = statistics_of_row<T>(x, a);
  if (a.centred) means[row] = s.mean + s.low;
  scales[row] = s.scale;
  if (a.has_weight && a.has_bias) {
    VECTORIZE
    for (long i = 0; i < a.count; i++) y[i] = T(((float(x[i]) - s.mean) - s.low) * s.scale * weight[i] + bias[i]);
  } else if (a.has_weight) {
    VECTORIZE
    for (long i = 0; i < a.count; i++) y[i] = T(((float(x[i]) - s.mean) - s.low) * s.scale * weight[i]);
  } else if (a.has_bias) {
    VECTORIZE
    for (long i = 0; i < a.count; i++) y[i] = T(((float(x[i]) - s.mean) - s.low) * s.scale + bias[i]);
  } else {
    VECTORIZE
    for (long i = 0; i < a.count; i++) y[i] = T(((float(x[i]) - s.mean) - s.low) * s.scale);
  }
}

// Into lanes: sums of g = grad * weight and of g * (x - mean).
template <typename T, bool weighted>
inline void gradient_sums(thread float *sums, thread float *dots, device const T *g, device const T *x, device const float *weight, long begin,
                          long end, float mean) {
  long i = begin;
  for (; i + 2 * MOMENTS_LANES <= end; i += 2 * MOMENTS_LANES) {
    device const T *p = g + i, *q = x + i;
    device const float *w = weight + i;
    VECTORIZE
    for (uint l = 0; l < MOMENTS_LANES; l++) {
      const uint k = l + MOMENTS_LANES;
      const float a = weighted ? float(p[l]) * w[l] : float(p[l]), b = weighted ? float(p[k]) * w[k] : float(p[k]);
      sums[l] += a + b;
      dots[l] += a * (float(q[l]) - mean) + b * (float(q[k]) - mean);
    }
  }
  for (uint l = 0; i < end; i++, l = (l + 1) % MOMENTS_LANES) {
    const float a = weighted ? float(g[i]) * weight[i] : float(g[i]);
    sums[l] += a;
    dots[l] += a * (float(x[i]) - mean);
  }
}

// dx = scale * (g - mean(g) - xhat * mean(g * xhat)) with g = grad * weight; rms norm leaves mean(g) out.
template <typename T>
kernel void norm_rows_backward(device const T *grad [[buffer(0)]], device const T *input [[buffer(1)]],
                               constant mps_norm_rows &a [[buffer(2)]], device const float *weight [[buffer(3)]],
                               device const float *means [[buffer(4)]], device const float *scales [[buffer(5)]],
                               device T *result [[buffer(6)]], uint row [[thread_position_in_grid]]) {
  device const T *g = grad + row * a.count, *x = input + row * a.count;
  device T *r = result + row * a.count;
  const float mean = a.centred ? means[row] : 0.0f, scale = scales[row];
  float sum = 0.0f, dot = 0.0f;
  for (long begin = 0; begin < a.count; begin += MOMENTS_BLOCK) {
    const long end = min(begin + MOMENTS_BLOCK, (long)a.count);
    float sums[MOMENTS_LANES], dots[MOMENTS_LANES];
    for (uint l = 0; l < MOMENTS_LANES; l++) sums[l] = dots[l] = 0.0f;
    if (a.has_weight)
      gradient_sums<T, true>(sums, dots, g, x, weight, begin, end, mean);
    else
      gradient_sums<T, false>(sums, dots, g, x, weight, begin, end, mean);
    sum += fold_sums(sums);
    dot += fold_sums(dots);
  }
  const float count = float(a.count), shift = a.centred ? sum / count : 0.0f, slope = dot * scale * scale / count;
  if (a.has_weight) {
    VECTORIZE
    for (long i = 0; i < a.count; i++) r[i] = T(scale * (float(g[i]) * weight[i] - shift - (float(x[i]) - mean) * slope));
  } else {
    VECTORIZE
    for (long i = 0; i < a.count; i++) r[i] = T(scale * (float(g[i]) - shift - (float(x[i]) - mean) * slope));
  }
}

// Gradients of weight and bias: sums over a chunk of rows of grad * xhat and of grad, into [chunk][count].
template <typename T>
kernel void norm_rows_weight(device const T *grad [[buffer(0)]], device const T *input [[buffer(1)]],
                             constant mps_norm_rows &a [[buffer(2)]], device const float *means [[buffer(3)]],
                             device const float *scales [[buffer(4)]], device float *weights [[buffer(5)]],
                             device float *biases [[buffer(6)]], uint2 position [[thread_position_in_grid]]) {
  const long first = position.x * (long)MPS_NORM_TILE, width = min((long)MPS_NORM_TILE, (long)a.count - first);
  const long begin = position.y * a.chunk, end = min(begin + a.chunk, (long)a.rows);
  float products[MPS_NORM_TILE], sums[MPS_NORM_TILE];
  for (long j = 0; j < width; j++) products[j] = sums[j] = 0.0f;
  for (long row = begin; row < end; row++) {
    const float mean = a.centred ? means[row] : 0.0f, scale = scales[row];
    device const T *g = grad + row * a.count + first, *x = input + row * a.count + first;
    VECTORIZE
    for (long j = 0; j < width; j++) {
      const float v = float(g[j]);
      sums[j] += v;
      products[j] += v * ((float(x[j]) - mean) * scale);
    }
  }
  for (long j = 0; j < width; j++) {
    if (a.has_weight) weights[position.y * a.count + first + j] = products[j];
    if (a.has_bias) biases[position.y * a.count + first + j] = sums[j];
  }
}

#define ROWS_KERNELS(suffix, type)                                                                                      \
  template [[host_name("norm_rows_forward_" #suffix)]] kernel void norm_rows_forward<type>(                             \
      device const type *input [[buffer(0)]], device type *output [[buffer(1)]], constant mps_norm_rows &a [[buffer(2)]], \
      device const float *weight [[buffer(3)]], device const float *bias [[buffer(4)]], device float *means [[buffer(5)]], \
      device float *scales [[buffer(6)]], uint row [[thread_position_in_grid]]);                                        \
  template [[host_name("norm_rows_backward_" #suffix)]] kernel void norm_rows_backward<type>(                           \
      device const type *grad [[buffer(0)]], device const type *input [[buffer(1)]],                                    \
      constant mps_norm_rows &a [[buffer(2)]], device const float *weight [[buffer(3)]],                                \
      device const float *means [[buffer(4)]], device const float *scales [[buffer(5)]],                                \
      device type *result [[buffer(6)]], uint row [[thread_position_in_grid]]);                                         \
  template [[host_name("norm_rows_weight_" #suffix)]] kernel void norm_rows_weight<type>(                               \
      device const type *grad [[buffer(0)]], device const type *input [[buffer(1)]],                                    \
      constant mps_norm_rows &a [[buffer(2)]], device const float *means [[buffer(3)]],                                 \
      device const float *scales [[buffer(4)]], device float *weights [[buffer(5)]], device float *biases [[buffer(6)]], \
      uint2 position [[thread_position_in_grid]]);
ROWS_KERNELS(f32, float)
ROWS_KERNELS(f16, half)
ROWS_KERNELS(bf16, bfloat)
