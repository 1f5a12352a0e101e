// SPDX-License-Identifier: BSD-3-Clause
//
// reduce_var: moments (count, mean, squared distances) of chunks, and their finish as variance or standard deviation and mean.
// The norms use the same moments with finishes of their own.

#include "welford.h"

template <typename T>
kernel void moments_inner(device const T *input [[buffer(0)]], device moments *partials [[buffer(1)]],
                          constant mps_reduce_arguments &a [[buffer(3)]], uint2 position [[thread_position_in_grid]]) {
  const long o = position.x, c = position.y;
  const long end = min((c + 1) * a.chunk, (long)a.reduce_count);
  device const T *x = input + kept_offset(a, a.kept_strides, o, 0);
  reduce_tree<moments_op> tree;
  for (long p = c * a.chunk; p < end; p += MOMENTS_BLOCK) {
    const long stop = min(p + MOMENTS_BLOCK, end);
    const float count = float(stop - p);
    const float mean = distances_of_block<T, false>(x, p, stop, 0.0f, a).sum / count;
    const distances d = distances_of_block<T, true>(x, p, stop, mean, a);
    tree.push(make_moments(count, mean, d.sum, d.squares));
  }
  partials[c * a.output_count + o] = tree.fold();
}

// Sums over rows [begin, end) for each output of the tile; with shifts[j] taken off.
template <typename T, bool squared>
inline void sum_rows(thread float *sums, thread float *squares, thread const float *shifts, device const T *x, long begin, long end,
                     long step, long width, constant mps_reduce_arguments &a) {
  const long run = a.reduced_sizes[a.reduced_rank - 1], stride = a.reduced_strides[a.reduced_rank - 1];
  for (long j = 0; j < width; j++) sums[j] = squares[j] = 0.0f;
  for (long p = begin; p < end; p++) {
    const long index = a.reduced_rank > 1 ? p / run : 0;
    device const T *q = x + run_offset(a, index) + (p - index * run) * stride;
    if (step == 1) {
      VECTORIZE
      for (long j = 0; j < width; j++) {
        const float d = float(q[j]) - (squared ? shifts[j] : 0.0f);
        sums[j] += d;
        if (squared) squares[j] += d * d;
      }
    } else {
      VECTORIZE
      for (long j = 0; j < width; j++) {
        const float d = float(q[j * step]) - (squared ? shifts[j] : 0.0f);
        sums[j] += d;
        if (squared) squares[j] += d * d;
      }
    }
  }
}

template <typename T>
kernel void moments_outer(device const T *input [[buffer(0)]], device moments *partials [[buffer(1)]],
                          constant mps_reduce_arguments &a [[buffer(3)]], uint2 position [[thread_position_in_grid]]) {
  const long size = a.kept_sizes[a.kept_rank - 1], tiles = (size + MPS_REDUCE_TILE - 1) / MPS_REDUCE_TILE;
  const long outer = position.x / tiles, tile = (position.x - outer * tiles) * MPS_REDUCE_TILE;
  const long width = min((long)MPS_REDUCE_TILE, size - tile), c = position.y;
  const long end = min((c + 1) * a.chunk, (long)a.reduce_count);
  const long step = a.kept_strides[a.kept_rank - 1];
  device const T *x = input + kept_offset(a, a.kept_strides, outer, 1) + tile * step;
  moments totals[MPS_REDUCE_TILE];
  float means[MPS_REDUCE_TILE], sums[MPS_REDUCE_TILE], squares[MPS_REDUCE_TILE];
  for (long j = 0; j < width; j++) totals[j] = no_moments();
  for (long p = c * a.chunk; p < end; p += REDUCE_ROWS) {
    const long stop = min(p + REDUCE_ROWS, end);
    const float count = float(stop - p);
    sum_rows<T, false>(means, squares, means, x, p, stop, step, width, a);
    for (long j = 0; j < width; j++) means[j] /= count;
    sum_rows<T, true>(sums, squares, means, x, p, stop, step, width, a);
    for (long j = 0; j < width; j++) totals[j] = merge_moments(totals[j], make_moments(count, means[j], sums[j], squares[j]));
  }
  device moments *out = partials + c * a.output_count + outer * size + tile;
  for (long j = 0; j < width; j++) out[j] = totals[j];
}

template <typename T>
kernel void moments_finish(device const moments *partials [[buffer(1)]], device T *variances [[buffer(2)]],
                           constant mps_reduce_arguments &a [[buffer(3)]], device T *means [[buffer(4)]],
                           uint o [[thread_position_in_grid]]) {
  reduce_tree<moments_op> tree;
  for (long c = 0; c < a.chunk_count; c++) tree.push(partials[c * a.output_count + o]);
  const moments m = tree.fold();
  const float count = float(a.reduce_count), freedom = count - a.correction;
  const float variance = count > 0.0f ? m.m2 / (freedom > 0.0f ? freedom : 0.0f) : NAN;
  variances[kept_offset(a, a.out_strides, o, 0)] = T(a.root ? sqrt(variance) : variance);
  if (a.mode) means[kept_offset(a, a.second_strides, o, 0)] = T(count > 0.0f ? m.mean + m.low : NAN);
}

#define MOMENTS_KERNELS(suffix, type)                                                                          \
  template [[host_name("reduce_moments_inner_" #suffix)]] kernel void moments_inner<type>(                     \
      device const type *input [[buffer(0)]], device moments *partials [[buffer(1)]],                          \
      constant mps_reduce_arguments &a [[buffer(3)]], uint2 position [[thread_position_in_grid]]);             \
  template [[host_name("reduce_moments_outer_" #suffix)]] kernel void moments_outer<type>(                     \
      device const type *input [[buffer(0)]], device moments *partials [[buffer(1)]],                          \
      constant mps_reduce_arguments &a [[buffer(3)]], uint2 position [[thread_position_in_grid]]);             \
  template [[host_name("reduce_moments_finish_" #suffix)]] kernel void moments_finish<type>(                   \
      device const moments *partials [[buffer(1)]], device type *variances [[buffer(2)]],                      \
      constant mps_reduce_arguments &a [[buffer(3)]], device type *means [[buffer(4)]],                        \
      uint o [[thread_position_in_grid]]);
MOMENTS_KERNELS(f32, float)
MOMENTS_KERNELS(f16, half)
MOMENTS_KERNELS(bf16, bfloat)
