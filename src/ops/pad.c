/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pad: reflection and replication padding of one to three dimensions, and their gradients.
 */
#include <string.h>

#include "openmps/library.h"
#include "openmps/ops/pad.h"
#include "openmps/ops/pointwise.h"
#include "ops/operand.h"
#include "ops/pad_plan.h"

static mps_status encode(mps_stream *stream, const char *label, mps_pipeline *pipeline, const mps_pad_plan *plan, const mps_tensor *from,
                         const mps_tensor *to) {
  mps_encoder encoder;
  mps_encoder_begin(&encoder, stream, label);
  mps_encoder_set_pipeline(&encoder, pipeline);
  mps_encoder_set_buffer(&encoder, 0, from->buffer, from->offset, MPS_ACCESS_READ);
  mps_encoder_set_buffer(&encoder, 1, to->buffer, to->offset, MPS_ACCESS_WRITE);
  mps_encoder_set_bytes(&encoder, 2, &plan->arguments, sizeof plan->arguments);
  mps_encoder_set_cost(&encoder, plan->cost);
  return mps_encoder_dispatch(&encoder, plan->threads, NULL);
}

/* Reads a copy of `from` where it cannot be read as it is. */
static mps_status run(mps_stream *stream, const char *label, mps_pipeline *pipeline, const mps_tensor *from, mps_dtype dtype, const int64_t *padding,
                      uint32_t padding_count, bool whole_rows, const mps_tensor *to) {
  mps_tensor source;
  mps_buffer *owned = NULL;
  mps_status status;
  if (mps_operands_overlap(from, to)) {
    status = mps_operand_copy(stream, from, dtype, &source);
    owned = status == MPS_STATUS_OK ? source.buffer : NULL;
  } else {
    status = mps_operand_prepare(stream, from, dtype, false, &source, &owned);
  }
  if (status != MPS_STATUS_OK) return status;
  mps_pad_plan plan;
  mps_pad_plan_make(&source, to, padding, padding_count, whole_rows, &plan);
  status = encode(stream, label, pipeline, &plan, &source, to);
  mps_buffer_release(owned);
  return status;
}

static mps_status forward(mps_stream *stream, const char *label, const mps_tensor *self, const int64_t *padding, uint32_t padding_count, bool reflects,
                          const mps_tensor *out) {
  mps_status status = mps_pad_check(label, self, out, padding, padding_count, reflects);
  if (status != MPS_STATUS_OK || mps_tensor_element_count(out) == 0) return status;
  mps_pipeline *pipeline;
  status = mps_operand_pipeline(stream, label, mps_operand_bytes_suffix(out->dtype), &pipeline);
  return status != MPS_STATUS_OK ? status : run(stream, label, pipeline, self, out->dtype, padding, padding_count, false, out);
}

/* A float tensor for sums, laid out as `tensor` where that has no gaps, so that its channels stay together. */
static mps_status create_sums(mps_stream *stream, const mps_tensor *tensor, mps_tensor *out_sums) {
  mps_status status = mps_operand_create(stream, MPS_DTYPE_F32, tensor->rank, tensor->sizes, out_sums);
  uint64_t begin, end;
  mps_operand_range(tensor, &begin, &end);
  const uint64_t bytes = (uint64_t)mps_tensor_element_count(tensor) * mps_dtype_size(tensor->dtype);
  if (status == MPS_STATUS_OK && begin == tensor->offset && end - begin == bytes) memcpy(out_sums->strides, tensor->strides, sizeof out_sums->strides);
  return status;
}

/* Half and bfloat gradients are summed in float and rounded once. */
static mps_status backward(mps_stream *stream, const char *label, const mps_tensor *grad_output, const int64_t *padding, uint32_t padding_count,
                           bool reflects, const mps_tensor *grad_input) {
  mps_status status = mps_pad_check(label, grad_input, grad_output, padding, padding_count, reflects);
  if (status != MPS_STATUS_OK || mps_tensor_element_count(grad_input) == 0) return status;
  const mps_dtype dtype = grad_input->dtype;
  mps_pipeline *pipeline;
  status = mps_operand_pipeline(stream, label, mps_dtype_name(dtype), &pipeline);
  if (status == MPS_STATUS_NOT_FOUND) return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", label, mps_dtype_name(dtype));
  if (status != MPS_STATUS_OK) return status;
  if (dtype != MPS_DTYPE_F16 && dtype != MPS_DTYPE_BF16) return run(stream, label, pipeline, grad_output, dtype, padding, padding_count, true, grad_input);
  mps_tensor sums;
  status = create_sums(stream, grad_input, &sums);
  if (status != MPS_STATUS_OK) return status;
  status = run(stream, label, pipeline, grad_output, dtype, padding, padding_count, true, &sums);
  if (status == MPS_STATUS_OK) status = mps_op_copy(stream, &sums, grad_input);
  mps_buffer_release(sums.buffer);
  return status;
}

mps_status mps_op_reflection_pad(mps_stream *stream, const mps_tensor *self, const int64_t *padding, uint32_t padding_count, const mps_tensor *out) {
  return forward(stream, "reflection_pad", self, padding, padding_count, true, out);
}

mps_status mps_op_replication_pad(mps_stream *stream, const mps_tensor *self, const int64_t *padding, uint32_t padding_count, const mps_tensor *out) {
  return forward(stream, "replication_pad", self, padding, padding_count, false, out);
}

mps_status mps_op_reflection_pad_backward(mps_stream *stream, const mps_tensor *grad_output, const mps_tensor *self, const int64_t *padding,
                                          uint32_t padding_count, const mps_tensor *grad_input) {
  (void)self; /* grad_input has its shape */
  return backward(stream, "reflection_pad_backward", grad_output, padding, padding_count, true, grad_input);
}

mps_status mps_op_replication_pad_backward(mps_stream *stream, const mps_tensor *grad_output, const mps_tensor *self, const int64_t *padding,
                                           uint32_t padding_count, const mps_tensor *grad_input) {
  (void)self;
  return backward(stream, "replication_pad_backward", grad_output, padding, padding_count, false, grad_input);
}
