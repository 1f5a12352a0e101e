/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sort: sort, topk, kthvalue, median and mode: rows along one dimension, spread over lanes that have scratch of their own.
 */
#include <string.h>

#include "kernels/sort_arguments.h"
#include "openmps/library.h"
#include "openmps/ops/sort.h"
#include "ops/operand.h"

typedef struct sort_plan {
  mps_sort_arguments arguments;
  uint64_t key_bytes;   /* scratch for keys, of all lanes */
  uint64_t order_bytes; /* scratch for indices; 0 if the kernel takes none */
  double cost;
} sort_plan;

typedef enum sort_kind { SORT_ALL, SORT_TOP, SORT_KTH } sort_kind;

enum { MAX_LANES = 64, SCRATCH_LIMIT = 64 << 20 /* bytes: fewer lanes rather than more scratch, down to one */ };

static mps_status check(const char *label, const mps_tensor *self, const mps_tensor *values, const mps_tensor *indices, uint32_t dimension, int64_t count) {
  if (mps_dtype_is_complex(self->dtype))
    return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", label, mps_dtype_name(self->dtype));
  bool fits = values->rank == self->rank && indices->rank == self->rank && values->dtype == self->dtype && indices->dtype == MPS_DTYPE_I64;
  for (uint32_t d = 0; fits && d < self->rank; d++) {
    int64_t wanted = d == dimension ? count : self->sizes[d];
    fits = values->sizes[d] == wanted && indices->sizes[d] == wanted;
  }
  if (!fits) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): values and indices must have the shape of the result, values self's dtype, indices int64", label);
  if (self->rank && self->sizes[dimension] > UINT32_MAX)
    return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "%s(): rows of more than 2^32 - 1 elements (here %lld) are not supported", label, (long long)self->sizes[dimension]);
  return MPS_STATUS_OK;
}

static void plan(sort_kind kind, const mps_tensor *self, const mps_tensor *values, const mps_tensor *indices, uint32_t dimension, int64_t count, sort_plan *out) {
  memset(out, 0, sizeof *out);
  mps_sort_arguments *a = &out->arguments;
  a->rows = 1;
  a->length = self->sizes[dimension];
  a->count = count;
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
  const uint64_t key_size = mps_dtype_size(self->dtype) == 8 ? 8 : 4, length = (uint64_t)a->length;
  const uint64_t keys = kind == SORT_ALL ? 2 : kind == SORT_TOP ? 3 : 1, orders = kind == SORT_KTH ? 0 : 2;
  const uint64_t lane_bytes = length * (keys * key_size + orders * sizeof(uint32_t));
  a->lanes = a->rows < MAX_LANES ? a->rows : MAX_LANES;
  while (a->lanes > 1 && (uint64_t)a->lanes * lane_bytes > SCRATCH_LIMIT) a->lanes = (a->lanes + 1) / 2;
  out->key_bytes = (uint64_t)a->lanes * length * keys * key_size;
  out->order_bytes = (uint64_t)a->lanes * length * orders * sizeof(uint32_t);
  out->cost = (double)a->rows * (double)a->length * (kind == SORT_ALL ? 12.0 : 8.0);
}

static mps_status encode(mps_stream *stream, const char *label, const char *stem, const sort_plan *p, const mps_tensor *self, const mps_tensor *values,
                         const mps_tensor *indices) {
  mps_device *device = mps_stream_device(stream);
  mps_pipeline *pipeline;
  mps_buffer *keys = NULL, *order = NULL;
  mps_status status = mps_operand_pipeline(stream, stem, mps_dtype_name(self->dtype), &pipeline);
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

/* What all operators here are: a row operation with `count` results a row. */
typedef struct sort_call {
  const char *label, *stem;
  sort_kind kind;
  int64_t count, kth;
  bool descending, sorted;
  uint32_t median;
} sort_call;

static mps_status run(mps_stream *stream, const sort_call *call, const mps_tensor *self, int64_t dim, const mps_tensor *values, const mps_tensor *indices) {
  uint32_t dimension;
  mps_status status = mps_operand_dimension(dim, self->rank, &dimension);
  if (status == MPS_STATUS_OK) status = check(call->label, self, values, indices, dimension, call->count);
  if (status != MPS_STATUS_OK || mps_tensor_element_count(self) == 0 || call->count == 0) return status;
  mps_tensor input, to = mps_operand_at_least_1d(values), at = mps_operand_at_least_1d(indices);
  mps_buffer *owned = NULL;
  /* Rows are read again after values are written: an output may not lie in the input. */
  status = mps_operands_overlap(self, values) ? mps_operand_copy(stream, self, self->dtype, &input)
                                              : mps_operand_prepare(stream, self, self->dtype, false, &input, &owned);
  if (status != MPS_STATUS_OK) return status;
  if (mps_operands_overlap(self, values)) owned = input.buffer;
  input = mps_operand_at_least_1d(&input);
  sort_plan p;
  plan(call->kind, &input, &to, &at, dimension, call->count, &p);
  p.arguments.kth = call->kth;
  p.arguments.descending = call->descending;
  p.arguments.sorted = call->sorted;
  p.arguments.median = call->median;
  status = encode(stream, call->label, call->stem, &p, &input, &to, &at);
  mps_buffer_release(owned);
  return status;
}

static int64_t row_length(const mps_tensor *self, int64_t dim) {
  uint32_t dimension;
  if (self->rank == 0 || mps_operand_dimension(dim, self->rank, &dimension) != MPS_STATUS_OK) return 1;
  return self->sizes[dimension];
}

mps_status mps_op_sort(mps_stream *stream, const mps_tensor *self, const bool *stable, int64_t dim, bool descending, const mps_tensor *values,
                       const mps_tensor *indices) {
  (void)stable; /* always is */
  return run(stream, &(sort_call){.label = "sort", .stem = "sort", .kind = SORT_ALL, .count = row_length(self, dim), .descending = descending}, self, dim, values,
             indices);
}

mps_status mps_op_topk(mps_stream *stream, const mps_tensor *self, int64_t k, int64_t dim, bool largest, bool sorted, const mps_tensor *values,
                       const mps_tensor *indices) {
  if (k < 0 || k > row_length(self, dim)) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "selected index k out of range");
  return run(stream, &(sort_call){.label = "topk", .stem = "top", .kind = SORT_TOP, .count = k, .descending = largest, .sorted = sorted}, self, dim, values,
             indices);
}

mps_status mps_op_kthvalue(mps_stream *stream, const mps_tensor *self, int64_t k, int64_t dim, const mps_tensor *values, const mps_tensor *indices) {
  if (k < 1 || k > row_length(self, dim)) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "kthvalue(): selected number k out of range for dimension %lld", (long long)dim);
  return run(stream, &(sort_call){.label = "kthvalue", .stem = "kth", .kind = SORT_KTH, .count = 1, .kth = k - 1}, self, dim, values, indices);
}

mps_status mps_op_median(mps_stream *stream, const mps_tensor *self, int64_t dim, bool ignore_nan, const mps_tensor *values, const mps_tensor *indices) {
  const int64_t length = row_length(self, dim);
  return run(stream, &(sort_call){.label = ignore_nan ? "nanmedian" : "median", .stem = "kth", .kind = SORT_KTH, .count = 1, .kth = (length - 1) / 2,
                                  .median = ignore_nan ? 2u : 1u},
             self, dim, values, indices);
}

mps_status mps_op_mode(mps_stream *stream, const mps_tensor *self, int64_t dim, const mps_tensor *values, const mps_tensor *indices) {
  return run(stream, &(sort_call){.label = "mode", .stem = "mode", .kind = SORT_ALL, .count = 1}, self, dim, values, indices);
}
