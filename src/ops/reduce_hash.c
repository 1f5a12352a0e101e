/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reduce_hash: hash_tensor, the exclusive or of all elements as 64 bits.
 */
#include "graph/formula.h"
#include "openmps/ops/reduce.h"
#include "ops/reduce.h"

static bool is_known(mps_dtype dtype) {
  return mps_dtype_is_floating(dtype) || dtype == MPS_DTYPE_BOOL || dtype == MPS_DTYPE_U8 || dtype == MPS_DTYPE_I8 || dtype == MPS_DTYPE_I16 ||
         dtype == MPS_DTYPE_I32 || dtype == MPS_DTYPE_I64;
}

mps_status mps_op_hash_tensor(mps_stream *stream, const mps_tensor *self, const int64_t *dim, uint32_t dim_count, bool keepdim, int64_t mode,
                              const mps_tensor *out) {
  (void)keepdim;
  uint32_t mask;
  mps_status status = mps_reduce_mask(dim, dim_count, self->rank, &mask);
  if (status != MPS_STATUS_OK) return status;
  if (mode != 0) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "Unknown hash_tensor mode: %lld", (long long)mode);
  if (out->dtype != MPS_DTYPE_U64)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "Expected result to be of dtype uint64, but got %s", mps_dtype_title(out->dtype));
  if (!is_known(self->dtype))
    return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "\"xor_sum_cpu\" not implemented for '%s'", mps_dtype_title(self->dtype));
  const mps_reduction r = {.label = "hash_tensor", .kernel = "hash", .accumulator_bytes = 8, .suffix = mps_dtype_name(self->dtype)};
  return mps_reduce_run(stream, &r, self, self->dtype, mask, MPS_DTYPE_U64, out);
}
