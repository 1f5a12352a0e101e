/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sequence: tensors made from positions: arange, linspace, eye, triangles of matrices and the coordinates of triangles.
 */
#include "ops/sequence_plan.h"

#include "graph/formula.h"
#include "openmps/library.h"
#include "openmps/buffer.h"
#include "openmps/ops/pointwise.h"
#include "openmps/ops/shape.h"
#include "ops/operand.h"

enum { LOGSPACE_BLOCK = 1024 /* values computed at a time */ };

static mps_status check_vector(const char *label, const mps_tensor *out) {
  if (out->rank != 1) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): expected a result of rank 1, got %u", label, out->rank);
  if (mps_dtype_is_complex(out->dtype) || out->dtype == MPS_DTYPE_BOOL)
    return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", label, mps_dtype_title(out->dtype));
  return MPS_STATUS_OK;
}

static mps_status encode_sequence(mps_stream *stream, const char *label, const mps_sequence_plan *plan, const mps_tensor *out) {
  if (plan->arguments.count == 0) return MPS_STATUS_OK;
  mps_pipeline *pipeline;
  mps_status status = mps_operand_pipeline(stream, plan->stem, plan->suffix, &pipeline);
  if (status != MPS_STATUS_OK) return status;
  mps_encoder encoder;
  mps_encoder_begin(&encoder, stream, label);
  mps_encoder_set_pipeline(&encoder, pipeline);
  mps_encoder_set_buffer(&encoder, 0, out->buffer, out->offset, MPS_ACCESS_WRITE);
  mps_encoder_set_bytes(&encoder, 1, &plan->arguments, sizeof plan->arguments);
  mps_encoder_set_cost(&encoder, 2.0 * (double)plan->arguments.count);
  return mps_encoder_dispatch(&encoder, (uint64_t[]){(uint64_t)plan->arguments.count, 1, 1}, NULL);
}

mps_status mps_op_arange(mps_stream *stream, mps_scalar start, mps_scalar step, const mps_tensor *out) {
  mps_status status = check_vector("arange", out);
  if (status != MPS_STATUS_OK) return status;
  mps_sequence_plan plan;
  mps_sequence_plan_arange(&plan, start, step, out);
  return encode_sequence(stream, "arange", &plan, out);
}

mps_status mps_op_linspace(mps_stream *stream, mps_scalar start, mps_scalar end, const mps_tensor *out) {
  mps_status status = check_vector("linspace", out);
  if (status != MPS_STATUS_OK) return status;
  mps_sequence_plan plan;
  mps_sequence_plan_linspace(&plan, start, end, out);
  return encode_sequence(stream, "linspace", &plan, out);
}

mps_status mps_op_logspace_integers(mps_stream *stream, int64_t start, int64_t end, double base, const mps_tensor *out) {
  mps_status status = check_vector("logspace", out);
  if (status != MPS_STATUS_OK) return status;
  if (!mps_dtype_is_integral(out->dtype))
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "logspace_integers(): expected a result of integers, got %s", mps_dtype_name(out->dtype));
  const int64_t total = out->sizes[0];
  if (total == 0) return MPS_STATUS_OK;
  mps_tensor values;
  status = mps_operand_create(stream, MPS_DTYPE_I64, 1, &total, &values);
  if (status != MPS_STATUS_OK) return status;
  for (int64_t first = 0; status == MPS_STATUS_OK && first < total; first += LOGSPACE_BLOCK) {
    int64_t block[LOGSPACE_BLOCK];
    const int64_t count = total - first < LOGSPACE_BLOCK ? total - first : LOGSPACE_BLOCK;
    mps_sequence_logspace_integers(out->dtype, start, end, base, total, first, count, block);
    status = mps_stream_write(stream, values.buffer, values.offset + (uint64_t)first * sizeof(int64_t), block, (uint64_t)count * sizeof(int64_t));
  }
  if (status == MPS_STATUS_OK) status = mps_op_copy(stream, &values, out);
  mps_buffer_release(values.buffer);
  return status;
}

mps_status mps_op_eye(mps_stream *stream, const mps_tensor *out) {
  if (out->rank != 2) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "eye(): expected a result of rank 2, got %u", out->rank);
  if (mps_tensor_element_count(out) == 0) return MPS_STATUS_OK;
  mps_status status = mps_operand_fill(stream, out, mps_scalar_int(0));
  if (status != MPS_STATUS_OK) return status;
  const mps_tensor diagonal = mps_sequence_diagonal(out);
  return mps_operand_fill(stream, &diagonal, mps_scalar_int(1));
}

/* ---- triangles ---- */

static mps_status triangle(mps_stream *stream, const mps_tensor *self, int64_t diagonal, bool upper, const mps_tensor *out) {
  mps_triangle_plan plan;
  mps_status status = mps_triangle_plan_make(&plan, self, diagonal, upper, out);
  if (status != MPS_STATUS_OK || mps_tensor_element_count(out) == 0) return status;
  mps_tensor source;
  mps_buffer *owned = NULL;
  bool apart = mps_operands_equal(self, out) || !mps_operands_overlap(self, out);
  status = apart ? mps_operand_prepare(stream, self, self->dtype, false, &source, &owned) : mps_operand_copy(stream, self, self->dtype, &source);
  if (!apart && status == MPS_STATUS_OK) owned = source.buffer;
  if (status == MPS_STATUS_OK && owned) status = mps_triangle_plan_make(&plan, &source, diagonal, upper, out);
  mps_pipeline *pipeline = NULL;
  if (status == MPS_STATUS_OK) status = mps_operand_pipeline(stream, "triangle", plan.suffix, &pipeline);
  if (status == MPS_STATUS_OK) {
    mps_encoder encoder;
    mps_encoder_begin(&encoder, stream, upper ? "triu" : "tril");
    mps_encoder_set_pipeline(&encoder, pipeline);
    mps_encoder_set_buffer(&encoder, 0, source.buffer, source.offset, MPS_ACCESS_READ);
    mps_encoder_set_buffer(&encoder, 1, out->buffer, out->offset, MPS_ACCESS_READ_WRITE);
    mps_encoder_set_bytes(&encoder, 2, &plan.arguments, sizeof plan.arguments);
    mps_encoder_set_cost(&encoder, 0.5 * (double)mps_tensor_element_count(out));
    status = mps_encoder_dispatch(&encoder, plan.threads, NULL);
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
  const mps_triangle_indices_arguments a = mps_triangle_indices_plan(row, col, offset, upper, out);
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
