/* SPDX-License-Identifier: BSD-3-Clause
 *
 * unfold: the gradient of Tensor.unfold. (The forward is a view.)
 */
#include "ops/unfold_plan.h"

#include "graph/formula.h"
#include "openmps/library.h"
#include "openmps/ops/shape.h"
#include "ops/operand.h"

mps_status mps_op_unfold_backward(mps_stream *stream, const mps_tensor *grad_in, int64_t dim, int64_t size, int64_t step, const mps_tensor *out) {
  uint32_t dimension;
  mps_status status = mps_operand_dimension(dim, out->rank, &dimension);
  mps_unfold_plan plan;
  if (status == MPS_STATUS_OK && out->rank == 0) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "unfold_backward(): the result must have a dimension");
  if (status == MPS_STATUS_OK) status = mps_unfold_plan_make(&plan, grad_in, dimension, size, step, out);
  if (status != MPS_STATUS_OK || mps_tensor_element_count(out) == 0) return status;
  mps_pipeline *pipeline;
  status = mps_operand_pipeline(stream, "unfold_backward", mps_dtype_name(out->dtype), &pipeline);
  if (status == MPS_STATUS_NOT_FOUND)
    return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "\"unfold_backward\" not implemented for '%s'", mps_dtype_title(out->dtype));
  if (status != MPS_STATUS_OK) return status;
  mps_encoder encoder;
  mps_encoder_begin(&encoder, stream, "unfold_backward");
  mps_encoder_set_pipeline(&encoder, pipeline);
  mps_encoder_set_buffer(&encoder, 0, grad_in->buffer, grad_in->offset, MPS_ACCESS_READ);
  mps_encoder_set_buffer(&encoder, 1, out->buffer, out->offset, MPS_ACCESS_WRITE);
  mps_encoder_set_bytes(&encoder, 2, &plan.arguments, sizeof plan.arguments);
  mps_encoder_set_cost(&encoder, plan.cost);
  return mps_encoder_dispatch(&encoder, plan.threads, NULL);
}
