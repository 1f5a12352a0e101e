/* SPDX-License-Identifier: BSD-3-Clause
 *
 * welford: mean and sum of squared distances of a set, in a form that can be merged. Means are kept in two floats, and blocks are
 * looked at twice (mean first, distances then), so that a large mean does not eat the variance.
 */
#ifndef OPENMPS_KERNELS_WELFORD_H
#define OPENMPS_KERNELS_WELFORD_H

#include "reduce.h"

#define MOMENTS_LANES 16
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

/* Into lanes: the sum of x - shift over a run; and, when `squared`, of its square. */
template <typename T, bool squared>
inline void distances_of_run(thread float *sums, thread float *squares, device const T *x, long stride, long count, float shift) {
  long i = 0;
  if (stride == 1) {
    for (; i + 4 * MOMENTS_LANES <= count; i += 4 * MOMENTS_LANES) { // four rows at once, as in accumulate_run
      device const T *p = x + i;
      VECTORIZE
      for (uint l = 0; l < MOMENTS_LANES; l++) {
        const float a = float(p[l]) - shift, b = float(p[l + MOMENTS_LANES]) - shift;
        const float c = float(p[l + 2 * MOMENTS_LANES]) - shift, d = float(p[l + 3 * MOMENTS_LANES]) - shift;
        sums[l] += (a + b) + (c + d);
        if (squared) squares[l] += (a * a + b * b) + (c * c + d * d);
      }
    }
  }
  for (uint l = 0; i < count; i++, l = (l + 1) % MOMENTS_LANES) {
    const float d = float(x[i * stride]) - shift;
    sums[l] += d;
    if (squared) squares[l] += d * d;
  }
}

inline float fold_sums(thread float *lanes) {
  VECTORIZE
  for (uint l = 0; l < MOMENTS_LANES / 2; l++) lanes[l] += lanes[l + MOMENTS_LANES / 2];
  return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

/* What a block sums up to, with its distances to `shift`. */
struct distances {
  float sum;
  float squares;
};
template <typename T, bool squared>
inline distances distances_of_block(device const T *x, long begin, long end, float shift, constant mps_reduce_arguments &a) {
  const long run = a.reduced_sizes[a.reduced_rank - 1], stride = a.reduced_strides[a.reduced_rank - 1];
  float sums[MOMENTS_LANES], squares[MOMENTS_LANES];
  for (uint l = 0; l < MOMENTS_LANES; l++) sums[l] = squares[l] = 0.0f;
  for (long p = begin; p < end;) {
    const long index = a.reduced_rank > 1 ? p / run : 0;
    const long first = p - index * run, count = min(run - first, end - p);
    distances_of_run<T, squared>(sums, squares, x + run_offset(a, index) + first * stride, stride, count, shift);
    p += count;
  }
  distances result;
  result.sum = fold_sums(sums);
  result.squares = squared ? fold_sums(squares) : 0.0f;
  return result;
}

#endif
