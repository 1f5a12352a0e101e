/* SPDX-License-Identifier: BSD-3-Clause
 *
 * program_layout: the shape in which a program walks its operands: few dimensions, the innermost one dense. Pure.
 */
#include <stdlib.h>

#include "graph/program_builder.h"

static uint32_t drop_ones(uint32_t rank, int64_t *sizes, mps_operand *operands, uint32_t operand_count) {
  uint32_t kept = 0;
  for (uint32_t d = 0; d < rank; d++) {
    if (sizes[d] == 1)
      continue;
    if (kept != d) {
      sizes[kept] = sizes[d];
      for (uint32_t o = 0; o < operand_count; o++)
        operands[o].strides[kept] = operands[o].strides[d];
    }
    kept++;
  }
  return kept;
}

static void swap_dimensions(uint32_t a, uint32_t b, int64_t *sizes, mps_operand *operands, uint32_t operand_count) {
  const int64_t size = sizes[a];
  sizes[a] = sizes[b];
  sizes[b] = size;
  for (uint32_t o = 0; o < operand_count; o++) {
    const int64_t stride = operands[o].strides[a];
    operands[o].strides[a] = operands[o].strides[b];
    operands[o].strides[b] = stride;
  }
}

/* Stable: dimensions of equal stride keep their order. */
static void order_by_stride(uint32_t rank, int64_t *sizes, mps_operand *operands, uint32_t operand_count, uint32_t leader) {
  const int64_t *strides = operands[leader].strides;
  for (uint32_t i = 1; i < rank; i++)
    for (uint32_t j = i; j > 0 && llabs(strides[j - 1]) < llabs(strides[j]); j--)
      swap_dimensions(j - 1, j, sizes, operands, operand_count);
}

static bool can_merge(uint32_t outer, uint32_t inner, const int64_t *sizes, const mps_operand *operands, uint32_t operand_count) {
  for (uint32_t o = 0; o < operand_count; o++)
    if (operands[o].strides[outer] != operands[o].strides[inner] * sizes[inner])
      return false;
  return true;
}

void mps_program_layout(uint32_t *rank, int64_t *sizes, mps_operand *operands, uint32_t operand_count, uint32_t leader) {
  *rank = drop_ones(*rank, sizes, operands, operand_count);
  order_by_stride(*rank, sizes, operands, operand_count, leader);
  mps_program_merge(rank, sizes, operands, operand_count);
}

void mps_program_merge(uint32_t *rank, int64_t *sizes, mps_operand *operands, uint32_t operand_count) {
  const uint32_t count = drop_ones(*rank, sizes, operands, operand_count);
  uint32_t last = 0;
  for (uint32_t d = 1; d < count; d++) {
    const bool merge = can_merge(last, d, sizes, operands, operand_count);
    if (!merge)
      last++;
    sizes[last] = merge ? sizes[last] * sizes[d] : sizes[d];
    for (uint32_t o = 0; o < operand_count; o++)
      operands[o].strides[last] = operands[o].strides[d];
  }
  *rank = count == 0 ? 0 : last + 1;
}

/* Bytes from the element at index 0 to the lowest and behind the highest one. */
static void extent(const mps_tensor *tensor, int64_t *low, int64_t *high) {
  const int64_t bytes = (int64_t)mps_dtype_size(tensor->dtype);
  *low = *high = (int64_t)tensor->offset;
  for (uint32_t d = 0; d < tensor->rank; d++) {
    const int64_t reach = (tensor->sizes[d] - 1) * tensor->strides[d] * bytes;
    *(reach < 0 ? low : high) += reach;
  }
  *high += bytes;
}

static bool same_places(const mps_tensor *a, const mps_tensor *b) {
  if (a->offset != b->offset || a->rank != b->rank || mps_dtype_size(a->dtype) != mps_dtype_size(b->dtype))
    return false;
  for (uint32_t d = 0; d < a->rank; d++)
    if (a->sizes[d] != b->sizes[d] || (a->sizes[d] > 1 && a->strides[d] != b->strides[d]))
      return false;
  return true;
}

mps_overlap mps_tensor_overlap(const mps_tensor *written, const mps_tensor *read) {
  if (read->buffer != written->buffer || read->buffer == NULL)
    return MPS_OVERLAP_NONE;
  if (same_places(written, read))
    return MPS_OVERLAP_SAME;
  int64_t written_low, written_high, read_low, read_high;
  extent(written, &written_low, &written_high);
  extent(read, &read_low, &read_high);
  return written_high <= read_low || read_high <= written_low ? MPS_OVERLAP_NONE : MPS_OVERLAP_PARTIAL;
}
