/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sort: sort, topk, kthvalue, median and mode: rows along one dimension, spread over lanes that have scratch of their own.
 */
#include "ops/sort_plan.h"

#include "openmps/library.h"
#include "openmps/ops/sort.h"
#include "ops/operand.h"

static mps_status encode(mps_stream *stream, const char *label, const mps_sort_plan *p, const mps_tensor *self, const mps_tensor *values,
                         const mps_tensor *indices) {
  mps_device *device = mps_stream_device(stream);
  mps_pipeline *pipeline;
  mps_buffer *keys = NULL, *order = NULL;
  mps_status status = mps_operand_pipeline(stream, p->stem, p->suffix, &pipeline);
  if (status == MPS_STATUS_OK) status = mps_buffer_create(device, stream, p->key_bytes, &keys);
  if (status == MPS_STATUS_OK && p->order_bytes) status = mps_buffer_create(device, stream, p->order_bytes, &order);
  if (status == MPS_STATUS_OK) {
    mps_encoder encoder;
    mps_encoder_begin(&encoder, stream, label);
    mps_encoder_set_pipeline(&encoder, pipeline);
    mps_encoder_set_buffer(&encoder, 0, self->buffer, self->offset, MPS_ACCESS_READ);
    mps_encoder_set_buffer(&encoder, 1, values->buffer, values->offset, MPS_ACCESS_WRITE);
    mps_encoder_set_buffer(&encoder, 2, indices->buffer, indices->offset, MPS_ACCESS_WRITE);
    mps_encoder_set_bytes(&encoder, 3, &p->arguments, sizeof p->arguments);
    mps_encoder_set_buffer(&encoder, 4, keys, 0, MPS_ACCESS_READ_WRITE);
    if (order) mps_encoder_set_buffer(&encoder, 5, order, 0, MPS_ACCESS_READ_WRITE);
    mps_encoder_set_cost(&encoder, p->cost);
    status = mps_encoder_dispatch(&encoder, (uint64_t[]){(uint64_t)p->arguments.lanes, 1, 1}, NULL);
  }
  mps_buffer_release(order);
  mps_buffer_release(keys);
  return status;
}

static mps_status run(mps_stream *stream, const mps_sort_call *call, const mps_tensor *self, int64_t dim, const mps_tensor *values,
                      const mps_tensor *indices) {
  uint32_t dimension;
  mps_status status = mps_operand_dimension(dim, self->rank, &dimension);
  if (status == MPS_STATUS_OK) status = mps_sort_check(call, self, values, indices, dimension);
  if (status != MPS_STATUS_OK || mps_tensor_element_count(self) == 0 || call->count == 0) return status;
  mps_tensor input, to = mps_operand_at_least_1d(values), at = mps_operand_at_least_1d(indices);
  mps_buffer *owned = NULL;
  bool copied = mps_sort_needs_copy(self, values, indices);
  status = copied ? mps_operand_copy(stream, self, self->dtype, &input) : mps_operand_prepare(stream, self, self->dtype, false, &input, &owned);
  if (status != MPS_STATUS_OK) return status;
  if (copied) owned = input.buffer;
  input = mps_operand_at_least_1d(&input);
  mps_sort_plan p;
  mps_sort_plan_make(&p, call, &input, &to, &at, dimension);
  mps_sort_long_plan long_row;
  status = mps_sort_long_plan_make(&long_row, &p, call, self->dtype) ? mps_sort_long(stream, &long_row, &input, &to, &at)
                                                                     : encode(stream, call->label, &p, &input, &to, &at);
  mps_buffer_release(owned);
  return status;
}

mps_status mps_op_sort(mps_stream *stream, const mps_tensor *self, const bool *stable, int64_t dim, bool descending, const mps_tensor *values,
                       const mps_tensor *indices) {
  (void)stable; /* always is */
  return run(stream, &(mps_sort_call){.label = "sort", .kind = MPS_SORT_ALL, .count = mps_sort_row_length(self, dim), .descending = descending}, self, dim, values,
             indices);
}

mps_status mps_op_topk(mps_stream *stream, const mps_tensor *self, int64_t k, int64_t dim, bool largest, bool sorted, const mps_tensor *values,
                       const mps_tensor *indices) {
  if (k < 0 || k > mps_sort_row_length(self, dim)) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "selected index k out of range");
  return run(stream, &(mps_sort_call){.label = "topk", .kind = MPS_SORT_TOP, .count = k, .descending = largest, .sorted = sorted}, self, dim, values,
             indices);
}

mps_status mps_op_kthvalue(mps_stream *stream, const mps_tensor *self, int64_t k, int64_t dim, const mps_tensor *values, const mps_tensor *indices) {
  if (k < 1 || k > mps_sort_row_length(self, dim)) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "kthvalue(): selected number k out of range for dimension %lld", (long long)dim);
  return run(stream, &(mps_sort_call){.label = "kthvalue", .kind = MPS_SORT_KTH, .count = 1, .kth = k - 1}, self, dim, values, indices);
}

mps_status mps_op_median(mps_stream *stream, const mps_tensor *self, int64_t dim, bool ignore_nan, const mps_tensor *values, const mps_tensor *indices) {
  const int64_t length = mps_sort_row_length(self, dim);
  return run(stream, &(mps_sort_call){.label = ignore_nan ? "nanmedian" : "median", .kind = MPS_SORT_KTH, .count = 1, .kth = (length - 1) / 2,
                                  .median = ignore_nan ? 2u : 1u},
             self, dim, values, indices);
}

mps_status mps_op_mode(mps_stream *stream, const mps_tensor *self, int64_t dim, const mps_tensor *values, const mps_tensor *indices) {
  return run(stream, &(mps_sort_call){.label = "mode", .kind = MPS_SORT_MODE, .count = 1}, self, dim, values, indices);
}
