// SPDX-License-Identifier: BSD-3-Clause
//
// multinomial: samples with replacement from rows of weights: running sums of each row, then a search for each sample.

#include <metal_stdlib>
#include "error.h"
#include "philox.h"
#include "random_arguments.h"

using namespace metal;

// Weights of a block, those behind the last category 0; `bad` is not 0 when one of them cannot be a weight.
inline float sum_block(device const float *from, long count, long stride, thread float *weights, thread uint *bad) {
  uint wrong = 0;
  if (count == MPS_MULTINOMIAL_BLOCK && stride == 1) {
    for (uint k = 0; k < MPS_MULTINOMIAL_BLOCK; k++) weights[k] = from[k];
  } else {
    for (long k = 0; k < MPS_MULTINOMIAL_BLOCK; k++) weights[k] = k < count ? from[k * stride] : 0.0f;
  }
  for (uint k = 0; k < MPS_MULTINOMIAL_BLOCK; k++) wrong |= weights[k] >= 0.0f && weights[k] < INFINITY ? 0u : 1u;
  *bad |= wrong;
  float halves[MPS_MULTINOMIAL_BLOCK / 2];
  for (uint k = 0; k < MPS_MULTINOMIAL_BLOCK / 2; k++) halves[k] = weights[k] + weights[k + MPS_MULTINOMIAL_BLOCK / 2];
  return ((halves[0] + halves[4]) + (halves[2] + halves[6])) + ((halves[1] + halves[5]) + (halves[3] + halves[7]));
}

// sums[row, b] = the weights of a row up to the end of block b, compensated (Kahan), with each weight checked.
kernel void multinomial_sums(device const float *weights [[buffer(0)]], device float *sums [[buffer(1)]],
                             constant mps_multinomial_arguments &a [[buffer(2)]], device mps_kernel_error *error [[buffer(3)]],
                             uint row [[thread_position_in_grid]]) {
  device const float *from = weights + long(row) * a.row_stride;
  device float *to = sums + long(row) * a.blocks;
  const long categories = a.categories, stride = a.category_stride, blocks = a.blocks;
  float sum = 0.0f, lost = 0.0f;
  uint bad = 0;
  for (long b = 0; b < blocks; b++) {
    float block[MPS_MULTINOMIAL_BLOCK];
    const long first = b * MPS_MULTINOMIAL_BLOCK;
    const float here = sum_block(from + first * stride, min(long(MPS_MULTINOMIAL_BLOCK), categories - first), stride, block, &bad);
    const float next = here - lost, larger = max(sum, sum + next);  // never smaller, so that it can be searched
    lost = (larger - sum) - next;
    sum = larger;
    to[b] = sum;
  }
  if (bad != 0) report_error(error, MPS_KERNEL_ERROR_PROBABILITY, long(row), 0, 0);
  if (!(sum > 0.0f)) report_error(error, MPS_KERNEL_ERROR_PROBABILITY_SUM, long(row), 0, 0);
}

// Each sample is the first category whose running sum is above a uniform number times the whole sum; one of weight 0 is never taken.
kernel void multinomial_search(device const float *weights [[buffer(0)]], device const float *sums [[buffer(1)]],
                               constant mps_multinomial_arguments &a [[buffer(2)]], device long *out [[buffer(3)]],
                               uint position [[thread_position_in_grid]]) {
  const long row = long(position) / a.samples, stride = a.category_stride, categories = a.categories;
  device const float *from = sums + row * a.blocks;
  const philox_block x = philox(a.seed, a.offset + position / 4);
  const float goal = unit(x.words[position % 4]) * from[a.blocks - 1];
  long low = 0;
  for (long length = a.blocks; length > 1;) {  // the first block whose sum is above the goal, or the last one
    const long half_length = length >> 1;
    low += from[low + half_length - 1] > goal ? 0 : half_length;
    length -= half_length;
  }
  // The goal may round up to the whole sum: go back to the last block that has weight.
  while (low > 0 && from[low] == from[low - 1]) low--;
  const long first = low * MPS_MULTINOMIAL_BLOCK, count = min(long(MPS_MULTINOMIAL_BLOCK), categories - first);
  device const float *block = weights + row * a.row_stride + first * stride;
  float sum = low > 0 ? from[low - 1] : 0.0f;
  long passed = 0, last = 0;  // categories below the goal; the last one that has weight
  for (long k = 0; k < count; k++) {
    const float weight = block[k * stride];
    sum += weight;
    passed += sum > goal ? 0 : 1;
    last = weight > 0.0f ? k : last;
  }
  out[position] = first + min(passed, last);
}
