/* SPDX-License-Identifier: BSD-3-Clause
 *
 * unfold: the gradient of Tensor.unfold. (The forward is a view.)
 */
#include <string.h>

#include "kernels/unfold.h"
#include "openmps/library.h"
#include "openmps/ops/shape.h"
#include "ops/operand.h"

static mps_status plan(const mps_tensor *grad, uint32_t dimension, int64_t size, int64_t step, const mps_tensor *out, mps_unfold_arguments *a) {
  memset(a, 0, sizeof *a);
  if (grad->rank != out->rank + 1 || grad->dtype != out->dtype || size < 1 || step < 1 || grad->sizes[grad->rank - 1] != size)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "unfold_backward(): the gradient must have one dimension more than the result, of size %lld", (long long)size);
  a->length = out->sizes[dimension];
  a->windows = grad->sizes[dimension];
  a->size = size;
  a->step = step;
  a->out_step = out->strides[dimension];
  a->window_step = grad->strides[dimension];
  a->element_step = grad->strides[grad->rank - 1];
  for (uint32_t d = 0; d < out->rank; d++) {
    if (d == dimension) continue;
    if (grad->sizes[d] != out->sizes[d]) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "unfold_backward(): gradient and result differ in dimension %u", d);
    a->sizes[a->rank] = out->sizes[d];
    a->out_strides[a->rank] = out->strides[d];
    a->grad_strides[a->rank++] = grad->strides[d];
  }
  return MPS_STATUS_OK;
}

mps_status mps_op_unfold_backward(mps_stream *stream, const mps_tensor *grad_in, int64_t dim, int64_t size, int64_t step, const mps_tensor *out) {
  uint32_t dimension;
  mps_status status = mps_operand_dimension(dim, out->rank, &dimension);
  mps_unfold_arguments arguments;
  if (status == MPS_STATUS_OK && out->rank == 0) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "unfold_backward(): the result must have a dimension");
  if (status == MPS_STATUS_OK) status = plan(grad_in, dimension, size, step, out, &arguments);
  if (status != MPS_STATUS_OK || mps_tensor_element_count(out) == 0) return status;
  mps_pipeline *pipeline;
  status = mps_operand_pipeline(stream, "unfold_backward", mps_dtype_name(out->dtype), &pipeline);
  if (status == MPS_STATUS_NOT_FOUND)
    return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "\"unfold_backward\" not implemented for '%s'", mps_dtype_name(out->dtype));
  if (status != MPS_STATUS_OK) return status;
  const uint64_t count = (uint64_t)mps_tensor_element_count(out);
  mps_encoder encoder;
  mps_encoder_begin(&encoder, stream, "unfold_backward");
  mps_encoder_set_pipeline(&encoder, pipeline);
  mps_encoder_set_buffer(&encoder, 0, grad_in->buffer, grad_in->offset, MPS_ACCESS_READ);
  mps_encoder_set_buffer(&encoder, 1, out->buffer, out->offset, MPS_ACCESS_WRITE);
  mps_encoder_set_bytes(&encoder, 2, &arguments, sizeof arguments);
  mps_encoder_set_cost(&encoder, 2.0 * (double)mps_tensor_element_count(grad_in) + 5.0 * (double)count);
  return mps_encoder_dispatch(&encoder, (uint64_t[]){(uint64_t)arguments.length, count / (uint64_t)arguments.length, 1}, NULL);
}
