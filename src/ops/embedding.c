/* SPDX-License-Identifier: BSD-3-Clause
 *
 * embedding: the backward of an embedding, which sums rows of the gradient over equal indices. (The forward is index_select.)
 */
#include "ops/embedding.h"

#include "openmps/ops/index.h"
#include "openmps/ops/pointwise.h"
#include "openmps/ops/pointwise_comparison.h"
#include "ops/index_encode.h"
#include "ops/operand.h"

/* The gradient as rows (count x width) and the indices as a vector, both contiguous. */
static mps_status flatten(mps_stream *stream, const mps_tensor *grad, const mps_tensor *indices, int64_t width, mps_tensor *out_rows,
                          mps_buffer **out_rows_owned, mps_tensor *out_indices, mps_buffer **out_indices_owned) {
  mps_status status = mps_operand_prepare(stream, grad, grad->dtype, true, out_rows, out_rows_owned);
  if (status != MPS_STATUS_OK) return status;
  status = mps_operand_prepare(stream, indices, MPS_DTYPE_I64, true, out_indices, out_indices_owned);
  if (status != MPS_STATUS_OK) {
    mps_buffer_release(*out_rows_owned);
    return status;
  }
  int64_t count = mps_tensor_element_count(indices);
  mps_tensor_set_contiguous(out_rows, 2, (int64_t[]){count, width});
  mps_tensor_set_contiguous(out_indices, 1, &count);
  return MPS_STATUS_OK;
}

mps_status mps_embedding_scale_by_frequency(mps_stream *stream, const mps_tensor *indices, int64_t skipped, const mps_tensor *sums) {
  mps_tensor counts;
  mps_status status = mps_operand_create(stream, MPS_DTYPE_F32, 1, sums->sizes, &counts);
  if (status != MPS_STATUS_OK) return status;
  const mps_tensor one = mps_operand_constant(&counts, counts.dtype, mps_scalar_int(1));
  mps_index_space space;
  mps_index_space_rows(&space, indices->sizes[0], 1, &counts, 0, skipped);
  status = mps_operand_fill(stream, &counts, mps_scalar_int(0));
  if (status == MPS_STATUS_OK) status = mps_index_write(stream, "embedding_dense_backward", MPS_INDEX_ADD, &space, &counts, indices, &one);
  if (status == MPS_STATUS_OK) status = mps_op_maximum(stream, &counts, &one, &counts);
  mps_tensor column = counts; /* broadcast over the width */
  column.rank = 2;
  column.sizes[1] = sums->sizes[1];
  column.strides[0] = 1;
  column.strides[1] = 0;
  if (status == MPS_STATUS_OK) status = mps_op_div(stream, sums, &column, sums);
  mps_buffer_release(counts.buffer);
  return status;
}

mps_status mps_op_embedding_dense_backward(mps_stream *stream, const mps_tensor *grad_output, const mps_tensor *indices, int64_t padding_idx,
                                           bool scale_grad_by_freq, const mps_tensor *out) {
  mps_status status = mps_index_check(indices, "embedding_dense_backward");
  if (status != MPS_STATUS_OK) return status;
  if (out->rank != 2 || grad_output->dtype != out->dtype)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "embedding_dense_backward(): expected a result of rank 2 in the gradient's dtype");
  status = mps_operand_fill(stream, out, mps_scalar_int(0));
  if (status != MPS_STATUS_OK || mps_tensor_element_count(grad_output) == 0) return status;

  mps_tensor rows, flat, sums;
  mps_buffer *rows_owned, *flat_owned, *sums_owned = NULL;
  status = flatten(stream, grad_output, indices, out->sizes[1], &rows, &rows_owned, &flat, &flat_owned);
  if (status != MPS_STATUS_OK) return status;
  int64_t skipped = padding_idx >= 0 ? padding_idx : INT64_MIN;
  status = mps_index_accumulator(stream, out, MPS_INDEX_ADD, &sums, &sums_owned);
  if (status == MPS_STATUS_OK) {
    mps_index_space space;
    mps_index_space_rows(&space, rows.sizes[0], rows.sizes[1], &sums, rows.sizes[1], skipped);
    space.value[1] = 1;
    status = mps_index_write(stream, "embedding_dense_backward", MPS_INDEX_ADD, &space, &sums, &flat, &rows);
  }
  if (status == MPS_STATUS_OK && scale_grad_by_freq) status = mps_embedding_scale_by_frequency(stream, &flat, skipped, &sums);
  if (status == MPS_STATUS_OK && sums_owned) status = mps_op_copy(stream, &sums, out);
  mps_buffer_release(sums_owned);
  mps_buffer_release(flat_owned);
  mps_buffer_release(rows_owned);
  return status;
}
