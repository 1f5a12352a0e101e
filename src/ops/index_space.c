/* SPDX-License-Identifier: BSD-3-Clause
 *
 * index_space: the iteration spaces of the indexing operators, from their tensors, and which kernel a write takes. Pure.
 */
#include "ops/index_space.h"

#include <string.h>

#include "ops/operand.h"

/* A space over `shape`'s dimensions, of which the index takes `dimension`; what it looks like along the others is left open. */
static void begin(mps_index_space *space, const mps_tensor *shape, const mps_tensor *data, uint32_t dimension, const mps_tensor *values) {
  memset(space, 0, sizeof *space);
  space->rank = shape->rank;
  for (uint32_t d = 0; d < shape->rank; d++) {
    space->sizes[d] = shape->sizes[d];
    space->data[d] = d == dimension ? 0 : data->strides[d];
    space->value[d] = values->buffer ? values->strides[d] : 0;
  }
  space->index_size = data->sizes[dimension];
  space->index_step = data->strides[dimension];
  space->skipped = INT64_MIN;
  space->dimension = dimension;
}

void mps_index_space_vector(mps_index_space *space, const mps_tensor *data, uint32_t dimension, const mps_tensor *index, const mps_tensor *values) {
  begin(space, data, data, dimension, values);
  space->sizes[dimension] = mps_tensor_element_count(index);
  space->index[dimension] = index->rank ? index->strides[0] : 0;
}

void mps_index_space_points(mps_index_space *space, const mps_tensor *data, uint32_t dimension, const mps_tensor *index, const mps_tensor *values) {
  const mps_tensor shape = mps_operand_at_least_1d(index);
  begin(space, &shape, data, dimension, values);
  memcpy(space->index, shape.strides, shape.rank * sizeof shape.strides[0]);
}

void mps_index_space_over(mps_index_space *space, const mps_tensor *data, const mps_tensor *values) {
  memset(space, 0, sizeof *space);
  space->rank = data->rank;
  space->skipped = INT64_MIN;
  memcpy(space->sizes, data->sizes, sizeof space->sizes);
  memcpy(space->data, data->strides, sizeof space->data);
  if (values->buffer) memcpy(space->value, values->strides, sizeof space->value);
}

void mps_index_space_rows(mps_index_space *space, int64_t count, int64_t width, const mps_tensor *data, int64_t value_step, int64_t skipped) {
  memset(space, 0, sizeof *space);
  space->rank = 2;
  space->sizes[0] = count;
  space->sizes[1] = width;
  space->data[1] = data->rank > 1 ? data->strides[1] : 0;
  space->value[0] = value_step;
  space->value[1] = value_step ? 1 : 0;
  space->index[0] = 1;
  space->index_size = data->sizes[0];
  space->index_step = data->strides[0];
  space->skipped = skipped;
}

mps_index_space mps_index_space_counts(const mps_index_space *space, const mps_tensor *counts) {
  mps_index_space result = *space;
  for (uint32_t d = 0; d < space->rank; d++) {
    result.data[d] = space->data[d] ? counts->strides[d] : 0;
    result.value[d] = 0;
  }
  result.index_step = counts->strides[space->dimension];
  return result;
}

void mps_index_offset_widen(const mps_tensor *index, int64_t *sizes) {
  for (uint32_t d = 0; d < index->rank; d++)
    if (index->strides[d] != 0) sizes[d] = index->sizes[d];
}

void mps_index_space_offsets(mps_index_space *space, const mps_tensor *offsets, const mps_tensor *index, uint32_t number, int64_t size, int64_t step) {
  memset(space, 0, sizeof *space);
  space->rank = offsets->rank;
  memcpy(space->sizes, offsets->sizes, sizeof space->sizes);
  memcpy(space->value, offsets->strides, sizeof space->value);
  memcpy(space->index, index->strides, sizeof space->index);
  space->index_size = size;
  space->index_step = step;
  space->skipped = INT64_MIN;
  space->wraps = true;
  space->dimension = number;
}

mps_scalar mps_index_identity(mps_index_reduction reduction, mps_dtype dtype) {
  bool floating = mps_dtype_is_floating(dtype);
  int bits = (int)mps_dtype_size(dtype) * 8;
  bool is_signed = dtype == MPS_DTYPE_I8 || dtype == MPS_DTYPE_I16 || dtype == MPS_DTYPE_I32 || dtype == MPS_DTYPE_I64;
  uint64_t top = dtype == MPS_DTYPE_BOOL ? 1 : is_signed ? ((uint64_t)1 << (bits - 1)) - 1 : bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
  switch (reduction) {
    case MPS_INDEX_MULTIPLY: return mps_scalar_int(1);
    case MPS_INDEX_LARGEST:
      if (floating) return mps_scalar_float(-__builtin_inf());
      return is_signed ? mps_scalar_int(-(int64_t)top - 1) : mps_scalar_int(0);
    case MPS_INDEX_SMALLEST: return floating ? mps_scalar_float(__builtin_inf()) : mps_scalar_uint(top);
    default: return mps_scalar_int(0);
  }
}

bool mps_index_neutral(mps_index_reduction reduction, mps_dtype dtype, mps_scalar *out_value) {
  *out_value = mps_index_identity(reduction, dtype);
  if (reduction == MPS_INDEX_ASSIGN || mps_operand_sum_dtype(dtype) != dtype) return false;
  if (mps_dtype_is_complex(dtype)) { /* products with infinite parts are not those of numbers */
    *out_value = mps_scalar_complex(-0.0, -0.0);
    return reduction == MPS_INDEX_ADD;
  }
  if (mps_dtype_is_floating(dtype) && reduction == MPS_INDEX_ADD) *out_value = mps_scalar_float(-0.0);
  return true;
}

void mps_index_write_kernel(mps_index_reduction reduction, mps_dtype dtype, const char **out_stem, const char **out_suffix) {
  static const char *const stems[] = {"index_assign", "index_add", "index_multiply", "index_largest", "index_smallest"};
  *out_stem = stems[reduction];
  *out_suffix = reduction == MPS_INDEX_ASSIGN ? mps_operand_bytes_suffix(dtype) : mps_dtype_name(dtype);
}

void mps_index_join_kernel(mps_index_reduction reduction, mps_dtype dtype, const char **out_stem, const char **out_suffix) {
  static const char *const stems[] = {NULL, "index_join_add", "index_join_multiply", "index_join_largest", "index_join_smallest"};
  *out_stem = stems[reduction];
  *out_suffix = mps_dtype_name(dtype);
}
