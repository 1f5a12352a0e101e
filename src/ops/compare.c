/* SPDX-License-Identifier: BSD-3-Clause
 *
 * compare: whole tensors against each other.
 */
#include "openmps/ops/compare.h"
#include "openmps/ops/pointwise_comparison.h"
#include "openmps/ops/reduce.h"
#include "ops/operand.h"

mps_status mps_op_equal(mps_stream *stream, const mps_tensor *self, const mps_tensor *other, const mps_tensor *out) {
  if (!mps_operands_same_shape(self, other) || out->dtype != MPS_DTYPE_BOOL || mps_tensor_element_count(out) != 1)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "equal(): self and other must have one shape, out one bool element");
  mps_tensor same;
  mps_status status = mps_operand_create(stream, MPS_DTYPE_BOOL, self->rank, self->sizes, &same);
  if (status != MPS_STATUS_OK) return status;
  status = mps_op_eq(stream, self, other, &same);
  if (status == MPS_STATUS_OK) status = mps_op_all_all(stream, &same, out);
  mps_buffer_release(same.buffer);
  return status;
}
