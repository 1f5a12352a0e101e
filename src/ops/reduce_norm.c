/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reduce_norm: vector norms of any order.
 */
#include <math.h>

#include "openmps/ops/reduce.h"
#include "ops/reduce.h"

static const char *kernel_of(double order) {
  if (order == 0.0) return "norm_zero";
  if (order == 1.0) return "norm_one";
  if (order == 2.0) return "norm_two";
  if (isinf(order)) return order > 0.0 ? "norm_largest" : "norm_smallest";
  return "norm_power";
}

static mps_status run_norm(mps_stream *stream, const char *label, const mps_tensor *self, double order, const int64_t *dim, uint32_t dim_count,
                           const mps_tensor *out) {
  uint32_t mask;
  mps_status status = mps_reduce_mask(dim, dim_count, self->rank, &mask);
  if (status != MPS_STATUS_OK) return status;
  if (!mps_dtype_is_floating(out->dtype))
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s: Expected a floating point or complex tensor as input. Got %s", label, mps_dtype_name(self->dtype));
  if (order < 0.0 && mps_reduce_count(self, mask) == 0 && mps_tensor_element_count(out) > 0)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT,
                         "linalg.vector_norm cannot compute the %g norm on an empty tensor because the operation does not have an identity", order);
  /* As on the CPU the elements become the result's dtype first; halves that widen need not. */
  mps_reduction r = {.label = label, .kernel = kernel_of(order), .accumulator_bytes = 4, .power = (float)order};
  mps_dtype compute = out->dtype, natural = out->dtype;
  if (mps_dtype_is_complex(self->dtype)) {
    compute = MPS_DTYPE_C64;
    natural = MPS_DTYPE_F32;
  } else if (out->dtype == MPS_DTYPE_F32 && mps_dtype_is_floating(self->dtype) && self->dtype != MPS_DTYPE_F32) {
    compute = self->dtype;
    r.finish = "f32";
  }
  r.suffix = mps_dtype_name(compute);
  return mps_reduce_run(stream, &r, self, compute, mask, natural, out);
}

mps_status mps_op_linalg_vector_norm(mps_stream *stream, const mps_tensor *self, mps_scalar ord, const int64_t *dim, uint32_t dim_count, bool keepdim,
                                     const mps_dtype *dtype, const mps_tensor *out) {
  (void)keepdim, (void)dtype;
  return run_norm(stream, "linalg_vector_norm", self, mps_scalar_to_double(ord), dim, dim_count, out);
}

mps_status mps_op_norm(mps_stream *stream, const mps_tensor *self, const mps_scalar *p, const int64_t *dim, uint32_t dim_count, bool keepdim,
                       const mps_tensor *out) {
  (void)keepdim;
  return run_norm(stream, "norm", self, p ? mps_scalar_to_double(*p) : 2.0, dim, dim_count, out);
}

mps_status mps_op_norm_dtype(mps_stream *stream, const mps_tensor *self, const mps_scalar *p, const int64_t *dim, uint32_t dim_count, bool keepdim,
                             mps_dtype dtype, const mps_tensor *out) {
  (void)dtype;
  return mps_op_norm(stream, self, p, dim, dim_count, keepdim, out);
}
