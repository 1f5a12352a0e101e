/* SPDX-License-Identifier: BSD-3-Clause
 *
 * linalg_permutation: the row exchanges of an LU factorisation as a permutation.
 */
#include "base/status.h"
#include "kernels/linalg_arguments.h"
#include "openmps/library.h"
#include "openmps/ops/linalg.h"
#include "ops/linalg.h"
#include "ops/operand.h"

static mps_status check(const mps_tensor *pivots, const mps_tensor *permutation) {
  if (pivots->rank < 1 || pivots->dtype != MPS_DTYPE_I32 || permutation->dtype != MPS_DTYPE_I64 || !mps_tensor_is_contiguous(pivots) ||
      !mps_tensor_is_contiguous(permutation))
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "unpack_pivots: pivots must be int32 and the permutation int64, both contiguous");
  return mps_linalg_check_batch("unpack_pivots", pivots, 1, permutation, 1);
}

mps_status mps_op_unpack_pivots(mps_stream *stream, const mps_tensor *pivots, const mps_tensor *permutation) {
  MPS_TRY(check(pivots, permutation));
  int64_t count = mps_tensor_element_count(permutation);
  if (count == 0) return MPS_STATUS_OK;
  const mps_permutation_arguments arguments = {pivots->sizes[pivots->rank - 1u], permutation->sizes[permutation->rank - 1u]};
  mps_pipeline *pipeline;
  MPS_TRY(mps_operand_pipeline(stream, "linalg_permutation", NULL, &pipeline));
  mps_encoder encoder;
  mps_encoder_begin(&encoder, stream, "lu_unpack");
  mps_encoder_set_pipeline(&encoder, pipeline);
  /* Without pivots the kernel reads none, but every argument wants an address. */
  const mps_tensor *from = mps_tensor_element_count(pivots) > 0 ? pivots : permutation;
  mps_encoder_set_buffer(&encoder, 0, from->buffer, from->offset, MPS_ACCESS_READ);
  mps_encoder_set_buffer(&encoder, 1, permutation->buffer, permutation->offset, MPS_ACCESS_WRITE);
  mps_encoder_set_bytes(&encoder, 2, &arguments, sizeof arguments);
  mps_encoder_set_error_buffer(&encoder, 3);
  mps_encoder_set_cost(&encoder, 2.0 * (double)count);
  return mps_encoder_dispatch(&encoder, (uint64_t[]){(uint64_t)(count / arguments.rows), 1, 1}, NULL);
}
