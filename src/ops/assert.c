/* SPDX-License-Identifier: BSD-3-Clause
 *
 * assert: a condition that is looked at when the device comes to it; what it says is raised at the next wait.
 */
#include "openmps/library.h"
#include "openmps/ops/assert.h"
#include "ops/operand.h"
#include "runtime/failure.h"

mps_status mps_op_assert_async(mps_stream *stream, const mps_tensor *self, const char *message) {
  if (mps_tensor_element_count(self) != 1)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "Boolean value of Tensor with %s is ambiguous",
                         mps_tensor_element_count(self) ? "more than one value" : "no values");
  const int64_t text = mps_failure_text(message ? message : "Expected Tensor with single nonzero value, but got zero");
  mps_pipeline *pipeline;
  mps_status status = mps_operand_pipeline(stream, "assert_true", NULL, &pipeline);
  if (status != MPS_STATUS_OK) return status;
  mps_tensor condition;
  mps_buffer *owned;
  status = mps_operand_prepare(stream, self, MPS_DTYPE_BOOL, true, &condition, &owned);
  if (status != MPS_STATUS_OK) return status;
  mps_encoder encoder;
  mps_encoder_begin(&encoder, stream, "_assert_async");
  mps_encoder_set_pipeline(&encoder, pipeline);
  mps_encoder_set_buffer(&encoder, 0, condition.buffer, condition.offset, MPS_ACCESS_READ);
  mps_encoder_set_bytes(&encoder, 1, &text, sizeof text);
  mps_encoder_set_error_buffer(&encoder, 2);
  mps_encoder_set_cost(&encoder, 5.0);
  status = mps_encoder_dispatch(&encoder, (uint64_t[]){1, 1, 1}, NULL);
  mps_buffer_release(owned);
  return status;
}
