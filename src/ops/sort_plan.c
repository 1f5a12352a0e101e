/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sort_plan: from a row operation (sort, topk, kthvalue, median) and its tensors to the kernel, its arguments and its scratch. Pure.
 */
#include "ops/sort_plan.h"

#include <string.h>

#include "graph/formula.h"
#include "ops/operand.h"

/* Elements that gathering the first `count` has room for besides twice as many. */
#define GATHER_ROOM 512

enum { LONG_ROW = 1 << 15, LONG_BLOCK = 1 << 13, MOST_BLOCKS = 64 };
enum { MAX_LANES = 64, SCRATCH_LIMIT = 64 << 20 /* bytes: fewer lanes rather than more scratch, down to one */ };

int64_t mps_sort_row_length(const mps_tensor *self, int64_t dim) {
  uint32_t dimension;
  if (self->rank == 0 || mps_operand_dimension(dim, self->rank, &dimension) != MPS_STATUS_OK) return 1;
  return self->sizes[dimension];
}

mps_status mps_sort_check(const mps_sort_call *call, const mps_tensor *self, const mps_tensor *values, const mps_tensor *indices, uint32_t dimension) {
  if (mps_dtype_is_complex(self->dtype))
    return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", call->label, mps_dtype_title(self->dtype));
  bool fits = values->rank == self->rank && indices->rank == self->rank && values->dtype == self->dtype && indices->dtype == MPS_DTYPE_I64;
  for (uint32_t d = 0; fits && d < self->rank; d++) {
    int64_t wanted = d == dimension ? call->count : self->sizes[d];
    fits = values->sizes[d] == wanted && indices->sizes[d] == wanted;
  }
  if (!fits) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): values and indices must have the shape of the result, values self's dtype, indices int64", call->label);
  if (self->rank && self->sizes[dimension] > UINT32_MAX)
    return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "%s(): rows of more than 2^32 - 1 elements (here %lld) are not supported", call->label, (long long)self->sizes[dimension]);
  return MPS_STATUS_OK;
}

bool mps_sort_needs_copy(const mps_tensor *self, const mps_tensor *values, const mps_tensor *indices) {
  return mps_operands_overlap(self, values) || mps_operands_overlap(self, indices);
}

/* The row space is every dimension but one. */
static void lay_out(mps_sort_arguments *a, const mps_tensor *self, const mps_tensor *values, const mps_tensor *indices, uint32_t dimension) {
  a->rows = 1;
  a->length = self->sizes[dimension];
  a->input_step = self->strides[dimension];
  a->value_step = values->strides[dimension];
  a->index_step = indices->strides[dimension];
  for (uint32_t d = 0; d < self->rank; d++) {
    if (d == dimension) continue;
    a->sizes[a->rank] = self->sizes[d];
    a->input_strides[a->rank] = self->strides[d];
    a->value_strides[a->rank] = values->strides[d];
    a->index_strides[a->rank] = indices->strides[d];
    a->rows *= self->sizes[d];
    a->rank++;
  }
}

void mps_sort_plan_make(mps_sort_plan *plan, const mps_sort_call *call, const mps_tensor *self, const mps_tensor *values, const mps_tensor *indices,
                        uint32_t dimension) {
  static const char *const stems[] = {"sort", "top", "kth", "mode"};
  memset(plan, 0, sizeof *plan);
  plan->stem = stems[call->kind];
  plan->suffix = mps_dtype_name(self->dtype);
  mps_sort_arguments *a = &plan->arguments;
  lay_out(a, self, values, indices, dimension);
  a->count = call->count;
  a->kth = call->kth;
  a->descending = call->descending;
  a->sorted = call->sorted;
  a->median = call->median;
  const uint64_t key_size = mps_dtype_size(self->dtype) == 8 ? 8 : 4;
  const uint64_t keys = call->kind == MPS_SORT_KTH || call->kind == MPS_SORT_MODE ? 1 : 2, orders = keys;
  a->capacity = a->length;
  if (call->kind == MPS_SORT_TOP && a->count <= MPS_SORT_LIST) {
    a->capacity = 1; /* none is used */
  } else if (call->kind == MPS_SORT_TOP && a->count < (a->length - GATHER_ROOM) / 2) {
    a->capacity = 2 * a->count + GATHER_ROOM;
  }
  const uint64_t capacity = (uint64_t)a->capacity, lane_bytes = capacity * (keys * key_size + orders * sizeof(uint32_t));
  a->lanes = a->rows < MAX_LANES ? a->rows : MAX_LANES;
  while (a->lanes > 1 && (uint64_t)a->lanes * lane_bytes > SCRATCH_LIMIT) a->lanes = (a->lanes + 1) / 2;
  plan->key_bytes = (uint64_t)a->lanes * capacity * keys * key_size;
  plan->order_bytes = (uint64_t)a->lanes * capacity * orders * sizeof(uint32_t);
  static const double costs[] = {12.0, 1.0, 8.0, 25.0}; /* nanoseconds an element */
  plan->cost = (double)a->rows * (double)a->length * costs[call->kind];
}

bool mps_sort_long_plan_make(mps_sort_long_plan *out_plan, const mps_sort_plan *plan, const mps_sort_call *call, mps_dtype dtype) {
  memset(out_plan, 0, sizeof *out_plan);
  const mps_sort_arguments *from = &plan->arguments;
  if (call->kind != MPS_SORT_ALL || from->rows != 1 || from->length < LONG_ROW) return false;
  const uint64_t size = mps_dtype_size(dtype), key_size = size == 8 ? 8 : 4, length = (uint64_t)from->length;
  mps_sort_long_arguments *a = &out_plan->arguments;
  a->length = from->length;
  a->block = (from->length + MOST_BLOCKS - 1) / MOST_BLOCKS;
  if (a->block < LONG_BLOCK) a->block = LONG_BLOCK;
  a->blocks = (from->length + a->block - 1) / a->block;
  a->input_step = from->input_step;
  a->value_step = from->value_step;
  a->index_step = from->index_step;
  a->descending = from->descending;
  a->digits = (uint32_t)(mps_dtype_is_floating(dtype) ? key_size : size); /* keys of floats are those of float */
  out_plan->suffix = plan->suffix;
  out_plan->key_suffix = key_size == 8 ? "u64" : "u32";
  out_plan->key_bytes = 2 * length * key_size;
  out_plan->order_bytes = 2 * length * sizeof(uint32_t);
  out_plan->varies_bytes = (uint64_t)a->blocks * key_size;
  out_plan->count_bytes = 256 * (uint64_t)a->blocks * sizeof(uint32_t);
  return true;
}
