/* SPDX-License-Identifier: BSD-3-Clause
 *
 * welford: mean and sum of squared distances of a set, in a form that can be merged. Means are kept in two floats, and blocks are
 * looked at twice (mean first, distances then), so that a large mean does not eat the variance.
 */
#ifndef OPENMPS_KERNELS_WELFORD_H
#define OPENMPS_KERNELS_WELFORD_H

#include "reduce.h"

#define MOMENTS_LANES 64
#define MOMENTS_BLOCK 2048 /* elements that are looked at twice: they stay in the first cache */

struct moments {
  float count;
  float mean; /* mean + low is the mean */
  float low;
  float m2; /* sum of (x - mean)^2 */
};

inline moments no_moments() {
  moments m;
  m.count = 0.0f;
  m.mean = 0.0f;
  m.low = 0.0f;
  m.m2 = 0.0f;
  return m;
}

/* Of `count` values: their rounded mean, and of the distances to it the sum and the sum of squares. */
inline moments make_moments(float count, float mean, float sum, float squares) {
  moments m;
  m.count = count;
  m.mean = mean;
  m.low = sum / count;
  m.m2 = squares - sum * m.low;
  m.m2 = m.m2 < 0.0f ? 0.0f : m.m2;
  return m;
}

inline moments merge_moments(moments a, moments b) {
  moments m;
  const float delta = (b.mean - a.mean) + (b.low - a.low);
  m.count = a.count + b.count;
  const float share = b.count / m.count;
  const float shift = a.low + delta * share;
  m.mean = a.mean + shift;
  m.low = (a.mean - m.mean) + shift;
  m.m2 = a.m2 + b.m2 + delta * delta * (a.count * share);
  if (a.count == 0.0f) m = b;
  if (b.count == 0.0f) m = a;
  return m;
}

/* For reduce_tree. */
struct moments_op {
  typedef moments acc;
  static moments empty() { return no_moments(); }
  static moments merge(moments a, moments b) { return merge_moments(a, b); }
};

/* Sum of x - shift, and of its square, over a run: into lanes. */
template <typename T>
inline void distances_of_run(thread float *sums, thread float *squares, device const T *x, long stride, long count, float shift) {
  if (stride == 1) {
    long i = 0;
    for (; i + MOMENTS_LANES <= count; i += MOMENTS_LANES) {
      device const T *p = x + i;
      VECTORIZE
      for (uint l = 0; l < MOMENTS_LANES; l++) {
        const float d = float(p[l]) - shift;
        sums[l] += d;
        squares[l] += d * d;
      }
    }
    for (uint l = 0; i < count; i++, l++) {
      const float d = float(x[i]) - shift;
      sums[l] += d;
      squares[l] += d * d;
    }
  } else {
    uint l = 0;
    for (long i = 0; i < count; i++, l = (l + 1) % MOMENTS_LANES) {
      const float d = float(x[i * stride]) - shift;
      sums[l] += d;
      squares[l] += d * d;
    }
  }
}

inline float fold_sums(thread float *lanes) {
  for (uint width = MOMENTS_LANES / 2; width >= 8; width /= 2) {
    VECTORIZE
    for (uint l = 0; l < width; l++) lanes[l] += lanes[l + width];
  }
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

/* What a block sums up to, with its distances to `shift`. */
struct distances {
  float sum;
  float squares;
};
template <typename T>
inline distances distances_of_block(device const T *x, long begin, long end, float shift, constant mps_reduce_arguments &a) {
  const long run = a.reduced_sizes[a.reduced_rank - 1], stride = a.reduced_strides[a.reduced_rank - 1];
  float sums[MOMENTS_LANES], squares[MOMENTS_LANES];
  for (uint l = 0; l < MOMENTS_LANES; l++) sums[l] = squares[l] = 0.0f;
  for (long p = begin; p < end;) {
    const long index = a.reduced_rank > 1 ? p / run : 0;
    const long first = p - index * run, count = min(run - first, end - p);
    distances_of_run<T>(sums, squares, x + run_offset(a, index) + first * stride, stride, count, shift);
    p += count;
  }
  distances result;
  result.sum = fold_sums(sums);
  result.squares = fold_sums(squares);
  return result;
}

#endif
