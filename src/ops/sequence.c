/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sequence: tensors made from positions: arange, linspace, eye, triangles of matrices and the coordinates of triangles.
 */
#include <string.h>

#include "kernels/sequence.h"
#include "openmps/library.h"
#include "openmps/ops/pointwise.h"
#include "openmps/ops/shape.h"
#include "ops/operand.h"

/* A double as the sum of two floats. */
static void split(double value, float *high, float *low) {
  *high = (float)value;
  *low = __builtin_isfinite(*high) ? (float)(value - (double)*high) : 0.0f;
}

static mps_status check_vector(const char *label, const mps_tensor *out) {
  if (out->rank != 1) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): expected a result of rank 1, got %u", label, out->rank);
  if (mps_dtype_is_complex(out->dtype) || out->dtype == MPS_DTYPE_BOOL)
    return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", label, mps_dtype_name(out->dtype));
  return MPS_STATUS_OK;
}

static mps_status encode_sequence(mps_stream *stream, const char *label, const char *stem, const mps_sequence_arguments *arguments, const mps_tensor *out) {
  if (arguments->count == 0) return MPS_STATUS_OK;
  mps_pipeline *pipeline;
  mps_status status = mps_operand_pipeline(stream, stem, mps_dtype_name(out->dtype), &pipeline);
  if (status != MPS_STATUS_OK) return status;
  mps_encoder encoder;
  mps_encoder_begin(&encoder, stream, label);
  mps_encoder_set_pipeline(&encoder, pipeline);
  mps_encoder_set_buffer(&encoder, 0, out->buffer, out->offset, MPS_ACCESS_WRITE);
  mps_encoder_set_bytes(&encoder, 1, arguments, sizeof *arguments);
  mps_encoder_set_cost(&encoder, 2.0 * (double)arguments->count);
  return mps_encoder_dispatch(&encoder, (uint64_t[]){(uint64_t)arguments->count, 1, 1}, NULL);
}

mps_status mps_op_arange(mps_stream *stream, mps_scalar start, mps_scalar step, const mps_tensor *out) {
  mps_status status = check_vector("arange", out);
  if (status != MPS_STATUS_OK) return status;
  mps_sequence_arguments a = {.count = out->sizes[0], .middle = out->sizes[0], .out_stride = out->strides[0]};
  a.first_integer = mps_scalar_to_int64(start);
  a.step_integer = mps_scalar_to_int64(step);
  split(mps_scalar_to_double(start), &a.start_high, &a.start_low);
  split(mps_scalar_to_double(step), &a.step_high, &a.step_low);
  return encode_sequence(stream, "arange", mps_dtype_is_floating(out->dtype) ? "sequence_float" : "sequence_integer", &a, out);
}

mps_status mps_op_linspace(mps_stream *stream, mps_scalar start, mps_scalar end, const mps_tensor *out) {
  mps_status status = check_vector("linspace", out);
  if (status != MPS_STATUS_OK) return status;
  const double from = mps_scalar_to_double(start), to = mps_scalar_to_double(end);
  mps_sequence_arguments a = {.count = out->sizes[0], .middle = out->sizes[0] / 2, .out_stride = out->strides[0]};
  if (a.count == 1) a.middle = 1;
  split(from, &a.start_high, &a.start_low);
  split(to, &a.end_high, &a.end_low);
  split(a.count > 1 ? (to - from) / (double)(a.count - 1) : 0.0, &a.step_high, &a.step_low);
  return encode_sequence(stream, "linspace", mps_dtype_is_floating(out->dtype) ? "linspace" : "sequence_truncated", &a, out);
}

mps_status mps_op_eye(mps_stream *stream, const mps_tensor *out) {
  if (out->rank != 2) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "eye(): expected a result of rank 2, got %u", out->rank);
  if (mps_tensor_element_count(out) == 0) return MPS_STATUS_OK;
  mps_tensor constant = *out, diagonal = *out;
  constant.buffer = NULL;
  constant.flags = 0;
  constant.constant = mps_scalar_int(0);
  mps_status status = mps_op_copy(stream, &constant, out);
  if (status != MPS_STATUS_OK) return status;
  diagonal.rank = 1;
  diagonal.sizes[0] = out->sizes[0] < out->sizes[1] ? out->sizes[0] : out->sizes[1];
  diagonal.strides[0] = out->strides[0] + out->strides[1];
  constant.rank = 1;
  constant.sizes[0] = diagonal.sizes[0];
  constant.constant = mps_scalar_int(1);
  return mps_op_copy(stream, &constant, &diagonal);
}

/* ---- triangles ---- */

static mps_status plan_triangle(const mps_tensor *self, int64_t diagonal, bool upper, const mps_tensor *out, mps_triangle_arguments *a, uint64_t threads[3]) {
  if (self->rank < 2 || !mps_operands_same_shape(self, out) || self->dtype != out->dtype)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): input tensor must have at least 2 dimensions, and out its shape and dtype", upper ? "triu" : "tril");
  uint32_t r = self->rank - 2, c = self->rank - 1;
  memset(a, 0, sizeof *a);
  a->rows = self->sizes[r];
  a->columns = self->sizes[c];
  a->diagonal = diagonal;
  a->upper = upper;
  a->self_row = self->strides[r];
  a->self_column = self->strides[c];
  a->out_row = out->strides[r];
  a->out_column = out->strides[c];
  a->batch_rank = r;
  threads[0] = (uint64_t)a->rows;
  threads[1] = threads[2] = 1;
  for (uint32_t d = 0; d < r; d++) {
    a->batch_sizes[d] = self->sizes[d];
    a->self_batch[d] = self->strides[d];
    a->out_batch[d] = out->strides[d];
    threads[1] *= (uint64_t)self->sizes[d];
  }
  /* Far diagonals would overflow when a row is added to them. */
  if (a->diagonal > a->columns) a->diagonal = a->columns;
  if (a->diagonal < -a->rows) a->diagonal = -a->rows - 1;
  return MPS_STATUS_OK;
}

static mps_status triangle(mps_stream *stream, const mps_tensor *self, int64_t diagonal, bool upper, const mps_tensor *out) {
  mps_triangle_arguments arguments;
  uint64_t threads[3];
  mps_status status = plan_triangle(self, diagonal, upper, out, &arguments, threads);
  if (status != MPS_STATUS_OK || mps_tensor_element_count(out) == 0) return status;
  mps_tensor source;
  mps_buffer *owned = NULL;
  bool apart = mps_operands_equal(self, out) || !mps_operands_overlap(self, out);
  status = apart ? mps_operand_prepare(stream, self, self->dtype, false, &source, &owned) : mps_operand_copy(stream, self, self->dtype, &source);
  if (!apart && status == MPS_STATUS_OK) owned = source.buffer;
  if (status == MPS_STATUS_OK && owned) status = plan_triangle(&source, diagonal, upper, out, &arguments, threads);
  mps_pipeline *pipeline = NULL;
  if (status == MPS_STATUS_OK) status = mps_operand_pipeline(stream, "triangle", mps_operand_bytes_suffix(out->dtype), &pipeline);
  if (status == MPS_STATUS_OK) {
    mps_encoder encoder;
    mps_encoder_begin(&encoder, stream, upper ? "triu" : "tril");
    mps_encoder_set_pipeline(&encoder, pipeline);
    mps_encoder_set_buffer(&encoder, 0, source.buffer, source.offset, MPS_ACCESS_READ);
    mps_encoder_set_buffer(&encoder, 1, out->buffer, out->offset, MPS_ACCESS_READ_WRITE);
    mps_encoder_set_bytes(&encoder, 2, &arguments, sizeof arguments);
    mps_encoder_set_cost(&encoder, 0.5 * (double)mps_tensor_element_count(out));
    status = mps_encoder_dispatch(&encoder, threads, NULL);
  }
  mps_buffer_release(owned);
  return status;
}

mps_status mps_op_tril(mps_stream *stream, const mps_tensor *self, int64_t diagonal, const mps_tensor *out) {
  return triangle(stream, self, diagonal, false, out);
}

mps_status mps_op_triu(mps_stream *stream, const mps_tensor *self, int64_t diagonal, const mps_tensor *out) {
  return triangle(stream, self, diagonal, true, out);
}

static mps_status triangle_indices(mps_stream *stream, const char *label, int64_t row, int64_t col, int64_t offset, bool upper, const mps_tensor *out) {
  if (out->rank != 2 || out->sizes[0] != 2 || (out->dtype != MPS_DTYPE_I64 && out->dtype != MPS_DTYPE_I32))
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): expected a 2 x count result of int32 or int64", label);
  if (out->sizes[1] == 0) return MPS_STATUS_OK;
  mps_pipeline *pipeline;
  mps_status status = mps_operand_pipeline(stream, "triangle_indices", mps_dtype_name(out->dtype), &pipeline);
  if (status != MPS_STATUS_OK) return status;
  mps_triangle_indices_arguments a = {.rows = row, .columns = col, .offset = offset, .count = out->sizes[1], .out_first = out->strides[0],
                                      .out_second = out->strides[1], .upper = upper};
  if (a.offset > col) a.offset = col;
  if (a.offset < -row) a.offset = -row - 1;
  mps_encoder encoder;
  mps_encoder_begin(&encoder, stream, label);
  mps_encoder_set_pipeline(&encoder, pipeline);
  mps_encoder_set_buffer(&encoder, 0, out->buffer, out->offset, MPS_ACCESS_WRITE);
  mps_encoder_set_bytes(&encoder, 1, &a, sizeof a);
  mps_encoder_set_cost(&encoder, 2.0 * (double)a.count + (double)row * (double)row);
  return mps_encoder_dispatch(&encoder, (uint64_t[]){(uint64_t)row, 1, 1}, NULL);
}

mps_status mps_op_tril_indices(mps_stream *stream, int64_t row, int64_t col, int64_t offset, const mps_tensor *out) {
  return triangle_indices(stream, "tril_indices", row, col, offset, false, out);
}

mps_status mps_op_triu_indices(mps_stream *stream, int64_t row, int64_t col, int64_t offset, const mps_tensor *out) {
  return triangle_indices(stream, "triu_indices", row, col, offset, true, out);
}
