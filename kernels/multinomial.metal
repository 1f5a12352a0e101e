// SPDX-License-Identifier: BSD-3-Clause
//
// multinomial: samples with replacement from rows of weights: running sums of each row, then a search for each sample.

#include <metal_stdlib>
#include "error.h"
#include "philox.h"
#include "random_arguments.h"

using namespace metal;

// sums[row, k] = weights[row, 0] + .. + weights[row, k], compensated (Kahan), with each weight checked.
kernel void multinomial_sums(device const float *weights [[buffer(0)]], device float *sums [[buffer(1)]],
                             constant mps_multinomial_arguments &a [[buffer(2)]], device mps_kernel_error *error [[buffer(3)]],
                             uint row [[thread_position_in_grid]]) {
  device const float *from = weights + long(row) * a.row_stride;
  device float *to = sums + long(row) * a.categories;
  float sum = 0.0f, lost = 0.0f;
  for (long k = 0; k < a.categories; k++) {
    const float weight = from[k * a.category_stride];
    if (!(weight >= 0.0f) || isinf(weight)) report_error(error, MPS_KERNEL_ERROR_PROBABILITY, k, long(row), 0);
    const float next = weight - lost, larger = sum + next;
    lost = (larger - sum) - next;
    sum = larger;
    to[k] = sum;
  }
  if (!(sum > 0.0f)) report_error(error, MPS_KERNEL_ERROR_PROBABILITY_SUM, long(row), 0, 0);
}

// Each sample is the first category whose running sum is above a uniform number times the whole sum; one of weight 0 is never taken.
kernel void multinomial_search(device const float *sums [[buffer(1)]], constant mps_multinomial_arguments &a [[buffer(2)]],
                               device long *out [[buffer(0)]], uint position [[thread_position_in_grid]]) {
  const long row = long(position) / a.samples;
  device const float *from = sums + row * a.categories;
  const philox_block x = philox(a.seed, a.offset + position / 4);
  const float goal = unit(x.words[position % 4]) * from[a.categories - 1];
  long low = 0, high = a.categories - 1;
  while (low < high) {
    const long middle = low + (high - low) / 2;
    if (from[middle] > goal)
      high = middle;
    else
      low = middle + 1;
  }
  // goal may round up to the whole sum: go back to the last category that has weight.
  while (low > 0 && from[low] == from[low - 1]) low--;
  out[position] = low;
}
