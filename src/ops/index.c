/* SPDX-License-Identifier: BSD-3-Clause
 *
 * index: operators that read through indices (index_select, gather, index), and index_put, which shares index's layout.
 */
#include <string.h>

#include "openmps/library.h"
#include "openmps/ops/index.h"
#include "ops/index_encode.h"
#include "ops/operand.h"

static bool is_empty(const mps_tensor *tensor) { return mps_tensor_element_count(tensor) == 0; }

mps_status mps_op_index_select(mps_stream *stream, const mps_tensor *self, int64_t dim, const mps_tensor *index, const mps_tensor *out) {
  uint32_t dimension;
  mps_status status = mps_operand_dimension(dim, self->rank, &dimension);
  if (status == MPS_STATUS_OK) status = mps_index_check(index, "index_select");
  if (status != MPS_STATUS_OK) return status;
  if (index->rank > 1) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "index_select(): Index is supposed to be a vector, but it has %u dimensions", index->rank);
  if (is_empty(out)) return MPS_STATUS_OK;

  mps_tensor data = mps_operand_at_least_1d(self), values = mps_operand_at_least_1d(out), expected = data, indices;
  expected.sizes[dimension] = mps_tensor_element_count(index);
  if (!mps_operands_same_shape(&expected, &values))
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "index_select(): out must have self's shape with as many elements along dimension %u as the index", dimension);
  mps_buffer *owned;
  status = mps_operand_prepare(stream, index, MPS_DTYPE_I64, false, &indices, &owned);
  if (status != MPS_STATUS_OK) return status;
  mps_index_space space;
  mps_index_space_vector(&space, &data, dimension, &indices, &values);
  status = mps_index_read(stream, "index_select", &space, &data, &indices, &values);
  mps_buffer_release(owned);
  return status;
}

mps_status mps_op_gather(mps_stream *stream, const mps_tensor *self, int64_t dim, const mps_tensor *index, bool sparse_grad, const mps_tensor *out) {
  (void)sparse_grad;
  uint32_t dimension;
  mps_status status = mps_operand_dimension(dim, self->rank, &dimension);
  if (status == MPS_STATUS_OK) status = mps_index_check(index, "gather");
  if (status != MPS_STATUS_OK) return status;
  if (is_empty(out)) return MPS_STATUS_OK;

  mps_tensor data = mps_operand_at_least_1d(self), values = mps_operand_at_least_1d(out), shape = mps_operand_at_least_1d(index), indices;
  if (data.rank != shape.rank || !mps_operands_same_shape(&shape, &values))
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "gather(): index must have the rank of self (%u) and the shape of out", self->rank);
  mps_buffer *owned;
  status = mps_operand_prepare(stream, &shape, MPS_DTYPE_I64, false, &indices, &owned);
  if (status != MPS_STATUS_OK) return status;
  mps_index_space space;
  mps_index_space_points(&space, &data, dimension, &indices, &values);
  status = mps_index_read(stream, "gather", &space, &data, &indices, &values);
  mps_buffer_release(owned);
  return status;
}

/* ---- several index tensors ---- */

/* Adds up what each index tensor contributes: an int64 tensor over the dimensions in which any of them varies, -1 where one is out of
 * range. One dispatch an index tensor. */
static mps_status combine_indices(mps_stream *stream, const char *label, const mps_tensor *shape, const mps_tensor *indices, uint32_t count,
                                  const int64_t *sizes, const int64_t *strides, mps_tensor *out_offsets) {
  int64_t extents[MPS_MAX_RANK];
  for (uint32_t d = 0; d < shape->rank; d++) extents[d] = 1;
  for (uint32_t k = 0; k < count; k++) mps_index_offset_widen(&indices[k], extents);
  mps_status status = mps_operand_create(stream, MPS_DTYPE_I64, shape->rank, extents, out_offsets);
  mps_pipeline *pipeline = NULL;
  if (status == MPS_STATUS_OK) status = mps_operand_pipeline(stream, "index_offsets", NULL, &pipeline);
  for (uint32_t k = 0; status == MPS_STATUS_OK && k < count; k++) {
    mps_index_space space;
    mps_index_space_offsets(&space, out_offsets, &indices[k], k, sizes[k], strides[k]);
    mps_index_plan plan;
    mps_index_plan_read(&space, &plan);
    plan.arguments.data_run = k > 0; /* the first sets, later ones add */
    mps_encoder encoder;
    mps_encoder_begin(&encoder, stream, label);
    mps_encoder_set_pipeline(&encoder, pipeline);
    mps_encoder_set_buffer(&encoder, 1, indices[k].buffer, indices[k].offset, MPS_ACCESS_READ);
    mps_encoder_set_buffer(&encoder, 2, out_offsets->buffer, out_offsets->offset, MPS_ACCESS_READ_WRITE);
    mps_encoder_set_bytes(&encoder, 3, &plan.arguments, sizeof plan.arguments);
    mps_encoder_set_error_buffer(&encoder, 4);
    mps_encoder_set_cost(&encoder, plan.cost);
    status = mps_encoder_dispatch(&encoder, plan.threads, NULL);
  }
  if (status != MPS_STATUS_OK) {
    mps_buffer_release(out_offsets->buffer);
    out_offsets->buffer = NULL;
    return status;
  }
  for (uint32_t d = 0; d < shape->rank; d++)
    if (extents[d] == 1) out_offsets->strides[d] = 0;
  return MPS_STATUS_OK;
}

static mps_status check_indices(const char *label, const mps_tensor *indices, uint32_t count, uint32_t sizes_count, uint32_t strides_count,
                                const mps_tensor *shape) {
  if (count == 0 || count > MPS_MAX_RANK || sizes_count != count || strides_count != count)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): expected 1 to %d index tensors with a size and a stride each, got %u", label, MPS_MAX_RANK, count);
  for (uint32_t k = 0; k < count; k++) {
    mps_status status = mps_index_check(&indices[k], label);
    if (status != MPS_STATUS_OK) return status;
    if (!mps_operands_same_shape(&indices[k], shape))
      return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): index tensor %u is not broadcast to the shape of the result", label, k);
  }
  return MPS_STATUS_OK;
}

/* The one index tensor that kernels take: the only one, or the offsets of several. Fills the space's index part. */
static mps_status prepare_indices(mps_stream *stream, const char *label, const mps_tensor *shape, const mps_tensor *indices, uint32_t count,
                                  const int64_t *sizes, const int64_t *strides, mps_index_space *space, mps_tensor *out_index,
                                  mps_buffer **out_owned) {
  mps_tensor prepared[MPS_MAX_RANK];
  mps_buffer *owned[MPS_MAX_RANK] = {NULL};
  mps_status status = MPS_STATUS_OK;
  *out_owned = NULL;
  for (uint32_t k = 0; status == MPS_STATUS_OK && k < count; k++) status = mps_operand_prepare(stream, &indices[k], MPS_DTYPE_I64, false, &prepared[k], &owned[k]);
  if (status == MPS_STATUS_OK && count == 1) {
    *out_index = prepared[0];
    *out_owned = owned[0];
    owned[0] = NULL;
    space->index_size = sizes[0];
    space->index_step = strides[0];
    space->wraps = true;
  } else if (status == MPS_STATUS_OK) {
    status = combine_indices(stream, label, shape, prepared, count, sizes, strides, out_index);
    *out_owned = status == MPS_STATUS_OK ? out_index->buffer : NULL;
    space->index_size = 1;
    for (uint32_t k = 0; k < count; k++) space->index_size += sizes[k] > 0 ? (sizes[k] - 1) * strides[k] : 0;
    space->index_step = 1;
    space->wraps = false;
    space->skipped = -1; /* reported already */
  }
  for (uint32_t k = 0; k < count; k++) mps_buffer_release(owned[k]);
  if (status == MPS_STATUS_OK) memcpy(space->index, out_index->strides, sizeof space->index);
  return status;
}

mps_status mps_op_index(mps_stream *stream, const mps_tensor *self, const mps_tensor *indices, uint32_t indices_count, const int64_t *indexed_sizes,
                        uint32_t indexed_sizes_count, const int64_t *indexed_strides, uint32_t indexed_strides_count, const mps_tensor *out) {
  mps_status status = check_indices("index", indices, indices_count, indexed_sizes_count, indexed_strides_count, out);
  if (status != MPS_STATUS_OK) return status;
  if (!mps_operands_same_shape(self, out) || self->flags || self->dtype != out->dtype)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "index(): self is not laid out over the shape and dtype of out, or has conjugate or negative bits");
  if (is_empty(out)) return MPS_STATUS_OK;
  mps_index_space space;
  mps_index_space_over(&space, self, out);
  mps_tensor index;
  mps_buffer *owned;
  status = prepare_indices(stream, "index", out, indices, indices_count, indexed_sizes, indexed_strides, &space, &index, &owned);
  if (status != MPS_STATUS_OK) return status;
  status = mps_index_read(stream, "index", &space, self, &index, out);
  mps_buffer_release(owned);
  return status;
}

mps_status mps_op_index_put(mps_stream *stream, const mps_tensor *indices, uint32_t indices_count, const int64_t *indexed_sizes,
                            uint32_t indexed_sizes_count, const int64_t *indexed_strides, uint32_t indexed_strides_count, const mps_tensor *values,
                            bool accumulate, const mps_tensor *out) {
  mps_status status = check_indices("index_put", indices, indices_count, indexed_sizes_count, indexed_strides_count, out);
  if (status != MPS_STATUS_OK) return status;
  if ((values->buffer && !mps_operands_same_shape(values, out)) || values->flags || values->dtype != out->dtype)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "index_put(): values are not broadcast to the shape and dtype of the iteration, or have conjugate or negative bits");
  if (accumulate && mps_operand_sum_dtype(out->dtype) != out->dtype)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "index_put(): sums of %s are kept in %s: give both sides in it", mps_dtype_name(out->dtype),
                         mps_dtype_name(mps_operand_sum_dtype(out->dtype)));
  if (is_empty(out)) return MPS_STATUS_OK;
  mps_index_space space;
  mps_index_space_over(&space, out, values);
  mps_tensor index;
  mps_buffer *owned;
  status = prepare_indices(stream, "index_put", out, indices, indices_count, indexed_sizes, indexed_strides, &space, &index, &owned);
  if (status != MPS_STATUS_OK) return status;
  status = mps_index_write(stream, "index_put", accumulate ? MPS_INDEX_ADD : MPS_INDEX_ASSIGN, &space, out, &index, values);
  mps_buffer_release(owned);
  return status;
}
