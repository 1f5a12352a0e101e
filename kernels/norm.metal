// SPDX-License-Identifier: BSD-3-Clause
//
// norm: batch norm and group norm. Moments come from reduce_moments_*; here they become statistics, coefficients per statistic, and
// results: forward y = (x - mean) * scale + shift, backward dx = grad * scale + (x - mean) * slope + shift. All of it is float.

#include "welford.h"
#include "norm_arguments.h"

inline moments moments_of(device const moments *partials, long chunks, long statistics, long s) {
  reduce_tree<moments_op> tree;
  for (long c = 0; c < chunks; c++) tree.push(partials[c * statistics + s]);
  return tree.fold();
}

// Batch norm, training: mean and 1 / sqrt(variance + epsilon) of a channel; running statistics move by `momentum`.
kernel void norm_batch_statistics(device const moments *partials [[buffer(0)]], device float *means [[buffer(1)]],
                                  device float *scales [[buffer(2)]], device float *running_means [[buffer(3)]],
                                  device float *running_variances [[buffer(4)]], constant mps_norm_statistics &a [[buffer(5)]],
                                  uint c [[thread_position_in_grid]]) {
  const moments m = moments_of(partials, a.chunk_count, a.statistics, c);
  const float count = float(a.count), mean = m.mean + m.low;
  means[c] = mean;
  scales[c] = 1.0f / sqrt(m.m2 / count + a.epsilon);
  if (a.has_running) {
    running_means[c] = a.momentum * mean + (1.0f - a.momentum) * running_means[c];
    running_variances[c] = a.momentum * (m.m2 / (count - 1.0f)) + (1.0f - a.momentum) * running_variances[c];
  }
}

// Batch norm, evaluation: the running statistics.
kernel void norm_batch_running(device const float *running_means [[buffer(0)]], device const float *running_variances [[buffer(1)]],
                               device float *means [[buffer(2)]], device float *scales [[buffer(3)]],
                               constant mps_norm_statistics &a [[buffer(4)]], uint c [[thread_position_in_grid]]) {
  means[c] = running_means[c];
  scales[c] = 1.0f / sqrt(running_variances[c] + a.epsilon);
}

// Group norm: mean and 1 / sqrt(variance + epsilon) of a group of one sample.
kernel void norm_group_statistics(device const moments *partials [[buffer(0)]], device float *means [[buffer(1)]],
                                  device float *scales [[buffer(2)]], constant mps_norm_statistics &a [[buffer(3)]],
                                  uint s [[thread_position_in_grid]]) {
  const moments m = moments_of(partials, a.chunk_count, a.statistics, s);
  means[s] = m.mean + m.low;
  scales[s] = 1.0f / sqrt(m.m2 / float(a.count) + a.epsilon);
}

// Forward coefficients [3][statistics]: mean, scale, shift; of a channel, or of a channel of a sample (groups > 0).
kernel void norm_forward_coefficients(device const float *means [[buffer(0)]], device const float *scales [[buffer(1)]],
                                      device const float *weight [[buffer(2)]], device const float *bias [[buffer(3)]],
                                      device float *coefficients [[buffer(4)]], constant mps_norm_statistics &a [[buffer(5)]],
                                      uint s [[thread_position_in_grid]]) {
  const long c = a.groups ? s % a.channels : s;
  const long g = a.groups ? s / a.channels * a.groups + c / (a.channels / a.groups) : s;
  coefficients[s] = means[g];
  coefficients[a.statistics + s] = a.has_weight ? scales[g] * weight[c] : scales[g];
  coefficients[2 * a.statistics + s] = a.has_bias ? bias[c] : 0.0f;
}

// Merges the chunks' sums of grad and of grad * (x - mean): sums [2][statistics].
struct pair_op {
  typedef float2 acc;
  static float2 empty() { return float2(0.0f, 0.0f); }
  static float2 merge(float2 a, float2 b) { return float2(a.x + b.x, a.y + b.y); }
};
kernel void norm_pair_finish(device const float2 *partials [[buffer(0)]], device float *sums [[buffer(1)]],
                             constant mps_norm_statistics &a [[buffer(2)]], uint s [[thread_position_in_grid]]) {
  reduce_tree<pair_op> tree;
  for (long c = 0; c < a.chunk_count; c++) tree.push(partials[c * a.statistics + s]);
  const float2 total = tree.fold();
  sums[s] = total.x;
  sums[a.statistics + s] = total.y;
}

// Batch norm's backward coefficients [4][channels]: mean, scale, slope, shift; and the gradients of weight and bias.
kernel void norm_batch_backward(device const float *sums [[buffer(0)]], device const float *means [[buffer(1)]],
                                device const float *scales [[buffer(2)]], device const float *weight [[buffer(3)]],
                                device float *coefficients [[buffer(4)]], device float *weight_gradient [[buffer(5)]],
                                constant mps_norm_statistics &a [[buffer(6)]], uint c [[thread_position_in_grid]]) {
  const float scale = scales[c], factor = a.has_weight ? scale * weight[c] : scale, count = float(a.count);
  weight_gradient[c] = sums[a.statistics + c] * scale;
  coefficients[c] = means[c];
  coefficients[a.statistics + c] = factor;
  coefficients[2 * a.statistics + c] = a.training ? -factor * scale * scale * sums[a.statistics + c] / count : 0.0f;
  coefficients[3 * a.statistics + c] = a.training ? -factor * sums[c] / count : 0.0f;
}

// Group norm's, for each channel of each sample: thread (sample, group).
kernel void norm_group_backward(device const float *sums [[buffer(0)]], device const float *means [[buffer(1)]],
                                device const float *scales [[buffer(2)]], device const float *weight [[buffer(3)]],
                                device float *coefficients [[buffer(4)]], constant mps_norm_statistics &a [[buffer(5)]],
                                uint s [[thread_position_in_grid]]) {
  const long width = a.channels / a.groups, group = s % a.groups, sample = s / a.groups;
  const long first = sample * a.channels + group * width;
  const float scale = scales[s], count = float(a.count);
  float sum = 0.0f, dot = 0.0f;
  for (long j = 0; j < width; j++) {
    const float w = a.has_weight ? weight[group * width + j] : 1.0f;
    sum += w * sums[first + j];
    dot += w * sums[a.statistics + first + j];
  }
  for (long j = 0; j < width; j++) {
    coefficients[first + j] = means[s];
    coefficients[a.statistics + first + j] = a.has_weight ? scale * weight[group * width + j] : scale;
    coefficients[2 * a.statistics + first + j] = -scale * scale * scale * dot / count;
    coefficients[3 * a.statistics + first + j] = -scale * sum / count;
  }
}

// Group norm's gradients of weight and bias: thread (channel).
kernel void norm_group_weight(device const float *sums [[buffer(0)]], device const float *scales [[buffer(1)]],
                              device float *weight_gradient [[buffer(2)]], device float *bias_gradient [[buffer(3)]],
                              constant mps_norm_statistics &a [[buffer(4)]], uint c [[thread_position_in_grid]]) {
  const long group = c / (a.channels / a.groups);
  float product = 0.0f, sum = 0.0f;
  for (long n = 0; n < a.batch; n++) {
    sum += sums[n * a.channels + c];
    product += sums[a.statistics + n * a.channels + c] * scales[n * a.groups + group];
  }
  weight_gradient[c] = product;
  bias_gradient[c] = sum;
}

// The statistic of each channel of each sample of group norm: means [N * G] to [N * C].
kernel void norm_group_spread(device const float *means [[buffer(0)]], device float *spread [[buffer(1)]],
                              constant mps_norm_statistics &a [[buffer(2)]], uint s [[thread_position_in_grid]]) {
  const long c = s % a.channels;
  spread[s] = means[s / a.channels * a.groups + c / (a.channels / a.groups)];
}

// ---- layout inner: thread (piece of a run, run) ----
template <typename T>
kernel void norm_apply_inner(device const T *input [[buffer(0)]], device T *output [[buffer(1)]],
                             device const float *coefficients [[buffer(2)]], constant mps_norm_runs &a [[buffer(3)]],
                             uint2 position [[thread_position_in_grid]]) {
  const long s = position.y % a.statistics, first = position.x * a.piece, n = min((long)a.piece, a.run - first);
  const float mean = coefficients[s], scale = coefficients[a.statistics + s], shift = coefficients[2 * a.statistics + s];
  device const T *x = input + position.y * a.run + first;
  device T *y = output + position.y * a.run + first;
  VECTORIZE
  for (long i = 0; i < n; i++) y[i] = T((float(x[i]) - mean) * scale + shift);
}

template <typename T>
kernel void norm_gradient_inner(device const T *grad [[buffer(0)]], device const T *input [[buffer(1)]], device T *result [[buffer(2)]],
                                device const float *coefficients [[buffer(3)]], constant mps_norm_runs &a [[buffer(4)]],
                                uint2 position [[thread_position_in_grid]]) {
  const long s = position.y % a.statistics, first = position.x * a.piece, n = min((long)a.piece, a.run - first);
  const float mean = coefficients[s], scale = coefficients[a.statistics + s];
  const float slope = coefficients[2 * a.statistics + s], shift = coefficients[3 * a.statistics + s];
  const long at = position.y * a.run + first;
  device const T *g = grad + at, *x = input + at;
  device T *r = result + at;
  VECTORIZE
  for (long i = 0; i < n; i++) r[i] = T(float(g[i]) * scale + (float(x[i]) - mean) * slope + shift);
}

// Sums of grad and grad * (x - mean): thread (statistic, chunk of its runs); partials [chunk][statistic].
template <typename T>
kernel void norm_pair_inner(device const T *grad [[buffer(0)]], device const T *input [[buffer(1)]], device const float *means [[buffer(2)]],
                            device float2 *partials [[buffer(3)]], constant mps_norm_runs &a [[buffer(4)]],
                            uint2 position [[thread_position_in_grid]]) {
  const long s = position.x, per = a.runs / a.statistics; // runs of a statistic
  const long begin = position.y * a.piece, end = min(begin + a.piece, per * a.run);
  const float mean = means[s];
  float2 total = float2(0.0f, 0.0f);
  for (long p = begin; p < end;) {
    const long stop = min(p + MOMENTS_BLOCK, end);
    float sums[MOMENTS_LANES], dots[MOMENTS_LANES];
    for (uint l = 0; l < MOMENTS_LANES; l++) sums[l] = dots[l] = 0.0f;
    while (p < stop) {
      const long index = p / a.run, first = p - index * a.run, n = min(a.run - first, stop - p);
      const long at = (index * a.statistics + s) * a.run + first;
      long i = 0;
      for (; i + 2 * MOMENTS_LANES <= n; i += 2 * MOMENTS_LANES) {
        device const T *g = grad + at + i, *x = input + at + i;
        VECTORIZE
        for (uint l = 0; l < MOMENTS_LANES; l++) {
          const float u = float(g[l]), v = float(g[l + MOMENTS_LANES]);
          sums[l] += u + v;
          dots[l] += u * (float(x[l]) - mean) + v * (float(x[l + MOMENTS_LANES]) - mean);
        }
      }
      for (uint l = 0; i < n; i++, l = (l + 1) % MOMENTS_LANES) {
        const float v = float(grad[at + i]);
        sums[l] += v;
        dots[l] += v * (float(input[at + i]) - mean);
      }
      p += n;
    }
    total = float2(total.x + fold_sums(sums), total.y + fold_sums(dots));
  }
  partials[position.y * a.statistics + s] = total;
}

// ---- layout outer: thread (tile of columns, piece of rows) ----
template <typename T>
kernel void norm_apply_outer(device const T *input [[buffer(0)]], device T *output [[buffer(1)]],
                             device const float *coefficients [[buffer(2)]], constant mps_norm_runs &a [[buffer(3)]],
                             uint2 position [[thread_position_in_grid]]) {
  const long first = position.x * (long)MPS_NORM_TILE, width = min((long)MPS_NORM_TILE, a.statistics - first);
  const long end = min((position.y + 1) * a.piece, (long)a.runs);
  device const float *mean = coefficients + first, *scale = mean + a.statistics, *shift = scale + a.statistics;
  for (long row = position.y * a.piece; row < end; row++) {
    device const T *x = input + row * a.statistics + first;
    device T *y = output + row * a.statistics + first;
    VECTORIZE
    for (long j = 0; j < width; j++) y[j] = T((float(x[j]) - mean[j]) * scale[j] + shift[j]);
  }
}

template <typename T>
kernel void norm_gradient_outer(device const T *grad [[buffer(0)]], device const T *input [[buffer(1)]], device T *result [[buffer(2)]],
                                device const float *coefficients [[buffer(3)]], constant mps_norm_runs &a [[buffer(4)]],
                                uint2 position [[thread_position_in_grid]]) {
  const long first = position.x * (long)MPS_NORM_TILE, width = min((long)MPS_NORM_TILE, a.statistics - first);
  const long end = min((position.y + 1) * a.piece, (long)a.runs);
  device const float *mean = coefficients + first, *scale = mean + a.statistics, *slope = scale + a.statistics;
  device const float *shift = slope + a.statistics;
  for (long row = position.y * a.piece; row < end; row++) {
    const long at = row * a.statistics + first;
    device const T *g = grad + at, *x = input + at;
    device T *r = result + at;
    VECTORIZE
    for (long j = 0; j < width; j++) r[j] = T(float(g[j]) * scale[j] + (float(x[j]) - mean[j]) * slope[j] + shift[j]);
  }
}

template <typename T>
kernel void norm_pair_outer(device const T *grad [[buffer(0)]], device const T *input [[buffer(1)]], device const float *means [[buffer(2)]],
                            device float2 *partials [[buffer(3)]], constant mps_norm_runs &a [[buffer(4)]],
                            uint2 position [[thread_position_in_grid]]) {
  const long first = position.x * (long)MPS_NORM_TILE, width = min((long)MPS_NORM_TILE, a.statistics - first);
  const long end = min((position.y + 1) * a.piece, (long)a.runs);
  device const float *mean = means + first;
  float sums[MPS_NORM_TILE], dots[MPS_NORM_TILE];
  for (long j = 0; j < width; j++) sums[j] = dots[j] = 0.0f;
  for (long row = position.y * a.piece; row < end; row++) {
    device const T *g = grad + row * a.statistics + first, *x = input + row * a.statistics + first;
    VECTORIZE
    for (long j = 0; j < width; j++) {
      const float v = float(g[j]);
      sums[j] += v;
      dots[j] += v * (float(x[j]) - mean[j]);
    }
  }
  for (long j = 0; j < width; j++) partials[position.y * a.statistics + first + j] = float2(sums[j], dots[j]);
}

#define NORM_LAYOUT_KERNELS(layout, suffix, type)                                                                          \
  template [[host_name("norm_apply_" #layout "_" #suffix)]] kernel void norm_apply_##layout<type>(                         \
      device const type *input [[buffer(0)]], device type *output [[buffer(1)]],                                           \
      device const float *coefficients [[buffer(2)]], constant mps_norm_runs &a [[buffer(3)]],                             \
      uint2 position [[thread_position_in_grid]]);                                                                         \
  template [[host_name("norm_gradient_" #layout "_" #suffix)]] kernel void norm_gradient_##layout<type>(                   \
      device const type *grad [[buffer(0)]], device const type *input [[buffer(1)]], device type *result [[buffer(2)]],    \
      device const float *coefficients [[buffer(3)]], constant mps_norm_runs &a [[buffer(4)]],                             \
      uint2 position [[thread_position_in_grid]]);                                                                         \
  template [[host_name("norm_pair_" #layout "_" #suffix)]] kernel void norm_pair_##layout<type>(                           \
      device const type *grad [[buffer(0)]], device const type *input [[buffer(1)]], device const float *means [[buffer(2)]], \
      device float2 *partials [[buffer(3)]], constant mps_norm_runs &a [[buffer(4)]],                                      \
      uint2 position [[thread_position_in_grid]]);
#define NORM_KERNELS(suffix, type)          \
  NORM_LAYOUT_KERNELS(inner, suffix, type)  \
  NORM_LAYOUT_KERNELS(outer, suffix, type)
NORM_KERNELS(f32, float)
NORM_KERNELS(f16, half)
NORM_KERNELS(bf16, bfloat)
