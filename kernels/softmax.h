/* SPDX-License-Identifier: BSD-3-Clause
 *
 * softmax: exponentials without the branches of the full function, the largest of a row, and compensated sums; for softmax and the losses.
 */
#ifndef OPENMPS_KERNELS_SOFTMAX_H
#define OPENMPS_KERNELS_SOFTMAX_H

#include "extreme.h"
#include "reduce.h"

// exp(x) for x <= 0 or NaN, within 1 ulp: half the work of exp, since nothing overflows, and products may be fused with sums.
inline float exp_below(float x) {
#pragma clang fp contract(fast)
  const float magic = 12582912.0f; // 1.5 * 2^23: what is added to it is rounded to an integer
  x = x < -104.0f ? -104.0f : x;   // rounds to 0
  const float sum = x * 1.44269502f + magic, n = sum - magic;
  const float r = (x - n * 0.693145752f) - n * 1.42860677e-06f;
  float q = 0.0013939361f;
  q = q * r + 0.008368827f;
  q = q * r + 0.041666415f;
  q = q * r + 0.1666652f;
  q = q * r + 0.5f;
  const float p = (r * r) * q + r + 1.0f;
  const uint power = (as_type<uint>(sum) + (127u + 64u)) << 23; // 2^(n + 64), so that subnormal results are rounded once
  return p * as_type<float>(power) * 5.42101086e-20f;
}

inline float fold_larger(thread float *lanes) {
  VECTORIZE
  for (uint l = 0; l < REDUCE_LANES / 2; l++) lanes[l] = larger(lanes[l], lanes[l + REDUCE_LANES / 2]);
  return larger(larger(larger(lanes[0], lanes[1]), larger(lanes[2], lanes[3])), larger(larger(lanes[4], lanes[5]), larger(lanes[6], lanes[7])));
}

template <typename T>
inline float largest_of_row(device const T *x, long count) {
  float lanes[REDUCE_LANES];
  for (uint l = 0; l < REDUCE_LANES; l++) lanes[l] = -INFINITY;
  long i = 0;
  for (; i + 4 * REDUCE_LANES <= count; i += 4 * REDUCE_LANES) {
    device const T *p = x + i;
    VECTORIZE
    for (uint l = 0; l < REDUCE_LANES; l++)
      lanes[l] = larger(lanes[l], larger(larger(float(p[l]), float(p[l + REDUCE_LANES])),
                                         larger(float(p[l + 2 * REDUCE_LANES]), float(p[l + 3 * REDUCE_LANES]))));
  }
  for (; i + REDUCE_LANES <= count; i += REDUCE_LANES) {
    device const T *p = x + i;
    VECTORIZE
    for (uint l = 0; l < REDUCE_LANES; l++) lanes[l] = larger(lanes[l], float(p[l]));
  }
  for (uint l = 0; i < count; i++, l++) lanes[l] = larger(lanes[l], float(x[i]));
  return fold_larger(lanes);
}

// Long sums: floats are added up in blocks, and the blocks' sums with a compensation.
struct running_sum {
  float sum;
  float low;
  running_sum() : sum(0.0f), low(0.0f) {}
  void add(float value) {
    const float total = sum + value, part = total - sum;
    low += (sum - (total - part)) + (value - part);
    sum = total;
  }
  float value() const { return low == low ? sum + low : sum; } // infinities leave no error behind
};

#endif
