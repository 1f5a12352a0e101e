/* SPDX-License-Identifier: BSD-3-Clause
 *
 * unique: distinct rows, in two operators with a wait between them (how many there are, what they are), and the order of rows.
 */
#include "ops/unique.h"

#include <string.h>

#include "openmps/library.h"
#include "openmps/ops/unique.h"
#include "ops/operand.h"

enum { RUN = 16 /* rows that are ordered by insertion */ };

void mps_unique_plan(const mps_tensor *rows, bool ordered, bool gathered, int64_t starts, mps_unique_arguments *arguments) {
  memset(arguments, 0, sizeof *arguments);
  arguments->count = rows->sizes[0];
  arguments->width = rows->sizes[1];
  arguments->blocks = starts - 1;
  arguments->block = (arguments->count + arguments->blocks - 1) / arguments->blocks;
  if (arguments->block == 0) arguments->block = 1;
  arguments->ordered = ordered;
  arguments->gathered = gathered;
}

uint32_t mps_unique_merges(int64_t rows, int64_t block) {
  uint32_t merges = 0;
  for (int64_t run = block; run < rows; run *= 2) merges++;
  return merges;
}

static mps_status check_rows(const mps_tensor *rows, const mps_tensor *order) {
  if (rows->rank != 2 || !mps_tensor_is_contiguous(rows) || mps_dtype_is_complex(rows->dtype))
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "unique(): expected a contiguous real matrix of rows");
  if (order && (order->dtype != MPS_DTYPE_I64 || order->rank != 1 || order->sizes[0] != rows->sizes[0] || !mps_tensor_is_contiguous(order)))
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "unique(): expected a contiguous int64 order with an element for each row");
  return MPS_STATUS_OK;
}

static mps_status check_vector(const mps_tensor *vector, mps_dtype dtype, int64_t least) {
  if (!vector || (vector->rank == 1 && vector->dtype == dtype && mps_tensor_is_contiguous(vector) && vector->sizes[0] >= least)) return MPS_STATUS_OK;
  return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "unique(): expected contiguous vectors of the result's dtype and length");
}

/* Equality of floats is not that of their bytes. */
static const char *equality_suffix(mps_dtype dtype) {
  return mps_dtype_is_floating(dtype) || dtype == MPS_DTYPE_BOOL ? mps_dtype_name(dtype) : mps_operand_bytes_suffix(dtype);
}

static void bind(mps_encoder *encoder, uint32_t index, const mps_tensor *tensor, const mps_tensor *stand_in, mps_access access) {
  const mps_tensor *bound = tensor ? tensor : stand_in; /* something must be bound; it is not touched */
  mps_encoder_set_buffer(encoder, index, bound->buffer, bound->offset, access);
}

/* ---- counting ---- */

static mps_status encode_starts(mps_stream *stream, const mps_unique_arguments *a, const mps_tensor *starts) {
  mps_pipeline *pipeline;
  mps_status status = mps_operand_pipeline(stream, "unique_starts", NULL, &pipeline);
  if (status != MPS_STATUS_OK) return status;
  mps_encoder encoder;
  mps_encoder_begin(&encoder, stream, "unique");
  mps_encoder_set_pipeline(&encoder, pipeline);
  mps_encoder_set_buffer(&encoder, 0, starts->buffer, starts->offset, MPS_ACCESS_READ_WRITE);
  mps_encoder_set_bytes(&encoder, 1, a, sizeof *a);
  mps_encoder_set_cost(&encoder, (double)a->blocks);
  return mps_encoder_dispatch(&encoder, (uint64_t[]){1, 1, 1}, NULL);
}

mps_status mps_op_unique_count(mps_stream *stream, const mps_tensor *self, const mps_tensor *order, bool gathered, const mps_tensor *starts) {
  mps_status status = check_rows(self, order);
  if (status == MPS_STATUS_OK) status = check_vector(starts, MPS_DTYPE_I64, 2);
  if (status != MPS_STATUS_OK) return status;
  mps_unique_arguments a;
  mps_unique_plan(self, order != NULL, gathered, starts->sizes[0], &a);
  if (a.count == 0) return mps_stream_fill(stream, starts->buffer, starts->offset, (uint64_t)starts->sizes[0] * sizeof(int64_t), 0);
  mps_pipeline *pipeline;
  status = mps_operand_pipeline(stream, "unique_count", equality_suffix(self->dtype), &pipeline);
  if (status != MPS_STATUS_OK) return status;
  mps_encoder encoder;
  mps_encoder_begin(&encoder, stream, "unique");
  mps_encoder_set_pipeline(&encoder, pipeline);
  bind(&encoder, 0, self, self, MPS_ACCESS_READ);
  bind(&encoder, 1, order, self, MPS_ACCESS_READ);
  bind(&encoder, 2, starts, starts, MPS_ACCESS_WRITE);
  mps_encoder_set_bytes(&encoder, 3, &a, sizeof a);
  mps_encoder_set_cost(&encoder, (double)a.count * (a.width == 1 ? 0.5 : 4.0));
  status = mps_encoder_dispatch(&encoder, (uint64_t[]){(uint64_t)a.blocks, 1, 1}, NULL);
  return status == MPS_STATUS_OK && a.blocks > 1 ? encode_starts(stream, &a, starts) : status;
}

/* ---- writing ---- */

static mps_status encode_lengths(mps_stream *stream, const mps_unique_arguments *a, const mps_tensor *heads, const mps_tensor *counts) {
  mps_pipeline *pipeline;
  mps_status status = mps_operand_pipeline(stream, "unique_lengths", NULL, &pipeline);
  if (status != MPS_STATUS_OK) return status;
  mps_encoder encoder;
  mps_encoder_begin(&encoder, stream, "unique");
  mps_encoder_set_pipeline(&encoder, pipeline);
  mps_encoder_set_buffer(&encoder, 0, heads->buffer, heads->offset, MPS_ACCESS_READ);
  mps_encoder_set_buffer(&encoder, 1, counts->buffer, counts->offset, MPS_ACCESS_WRITE);
  mps_encoder_set_bytes(&encoder, 2, a, sizeof *a);
  mps_encoder_set_cost(&encoder, (double)a->distinct);
  return mps_encoder_dispatch(&encoder, (uint64_t[]){(uint64_t)a->distinct, 1, 1}, NULL);
}

mps_status mps_op_unique_write(mps_stream *stream, const mps_tensor *self, const mps_tensor *order, bool gathered, const mps_tensor *starts,
                               const mps_tensor *heads, const mps_tensor *values, const mps_tensor *inverse, const mps_tensor *counts) {
  mps_status status = check_rows(self, order);
  if (status == MPS_STATUS_OK) status = check_vector(starts, MPS_DTYPE_I64, 2);
  if (status == MPS_STATUS_OK) status = check_vector(heads, MPS_DTYPE_I64, 0);
  if (status == MPS_STATUS_OK) status = check_vector(values, self->dtype, heads->sizes[0]);
  if (status == MPS_STATUS_OK) status = check_vector(counts, MPS_DTYPE_I64, heads->sizes[0]);
  if (status == MPS_STATUS_OK) status = check_vector(inverse, MPS_DTYPE_I64, self->sizes[0]);
  if (status != MPS_STATUS_OK || heads->sizes[0] == 0) return status;
  if (values && self->sizes[1] != 1) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "unique(): only rows of one element are written out");
  mps_unique_arguments a;
  mps_unique_plan(self, order != NULL, gathered, starts->sizes[0], &a);
  a.distinct = heads->sizes[0];
  a.values = values != NULL;
  a.inverse = inverse != NULL;
  mps_pipeline *pipeline;
  status = mps_operand_pipeline(stream, "unique_write", equality_suffix(self->dtype), &pipeline);
  if (status != MPS_STATUS_OK) return status;
  mps_encoder encoder;
  mps_encoder_begin(&encoder, stream, "unique");
  mps_encoder_set_pipeline(&encoder, pipeline);
  bind(&encoder, 0, self, self, MPS_ACCESS_READ);
  bind(&encoder, 1, order, self, MPS_ACCESS_READ);
  bind(&encoder, 2, starts, starts, MPS_ACCESS_READ);
  bind(&encoder, 3, heads, heads, MPS_ACCESS_WRITE);
  bind(&encoder, 4, values, heads, MPS_ACCESS_WRITE);
  bind(&encoder, 5, inverse, heads, MPS_ACCESS_WRITE);
  mps_encoder_set_bytes(&encoder, 6, &a, sizeof a);
  mps_encoder_set_cost(&encoder, (double)a.count * (a.width == 1 ? 2.0 : 5.0));
  status = mps_encoder_dispatch(&encoder, (uint64_t[]){(uint64_t)a.blocks, 1, 1}, NULL);
  return status == MPS_STATUS_OK && counts ? encode_lengths(stream, &a, heads, counts) : status;
}

/* ---- the order of rows ---- */

mps_status mps_op_sort_rows(mps_stream *stream, const mps_tensor *self, const mps_tensor *order) {
  mps_status status = check_rows(self, order);
  if (status != MPS_STATUS_OK || self->sizes[0] == 0) return status;
  mps_pipeline *pipeline;
  status = mps_operand_pipeline(stream, "sort_whole_rows", mps_dtype_name(self->dtype), &pipeline);
  mps_tensor other;
  if (status == MPS_STATUS_OK) status = mps_operand_create(stream, MPS_DTYPE_I64, 1, order->sizes, &other);
  if (status != MPS_STATUS_OK) return status;
  mps_unique_arguments a;
  mps_unique_plan(self, false, false, 2, &a);
  a.block = RUN;
  const uint32_t merges = mps_unique_merges(a.count, RUN);
  const mps_tensor *to = merges % 2 ? &other : order, *from = merges % 2 ? order : &other; /* the last merge writes the result */
  for (uint32_t pass = 0; status == MPS_STATUS_OK && pass <= merges; pass++) {
    mps_encoder encoder;
    mps_encoder_begin(&encoder, stream, "unique_dim");
    mps_encoder_set_pipeline(&encoder, pipeline);
    mps_encoder_set_buffer(&encoder, 0, self->buffer, self->offset, MPS_ACCESS_READ);
    mps_encoder_set_buffer(&encoder, 1, from->buffer, from->offset, MPS_ACCESS_READ);
    mps_encoder_set_buffer(&encoder, 2, to->buffer, to->offset, MPS_ACCESS_READ_WRITE);
    mps_encoder_set_bytes(&encoder, 3, &a, sizeof a);
    mps_encoder_set_cost(&encoder, (double)a.count * (pass ? 8.0 : 30.0));
    const int64_t rows = a.run ? 2 * a.run : RUN;
    status = mps_encoder_dispatch(&encoder, (uint64_t[]){(uint64_t)((a.count + rows - 1) / rows), 1, 1}, NULL);
    a.run = a.run ? 2 * a.run : RUN;
    const mps_tensor *swap = from;
    from = to;
    to = swap;
  }
  mps_buffer_release(other.buffer);
  return status;
}
