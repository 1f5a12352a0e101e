/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reduce_var: variance and standard deviation, with or without the mean.
 */
#include "openmps/ops/reduce.h"
#include "ops/reduce.h"

/* `mean` may be NULL. */
static mps_status run_var(mps_stream *stream, const char *label, const mps_tensor *self, const int64_t *dim, uint32_t dim_count, double correction,
                          bool root, const mps_tensor *out, const mps_tensor *mean) {
  uint32_t mask;
  mps_status status = mps_reduce_mask(dim, dim_count, self->rank, &mask);
  if (status != MPS_STATUS_OK) return status;
  if (!mps_dtype_is_floating(self->dtype))
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s only support floating point and complex dtypes", label);
  mps_reduction r = {.label = label, .kernel = "moments", .suffix = mps_dtype_name(self->dtype), .accumulator_bytes = 16, .always_raw = true,
                     .mode = mean != NULL, .root = root, .correction = (float)correction};
  mps_tensor input;
  mps_buffer *owned;
  status = mps_operand_prepare(stream, self, self->dtype, false, &input, &owned);
  if (status != MPS_STATUS_OK) return status;
  mps_result variance, average = {.out = NULL};
  status = mps_result_begin(stream, out, self->dtype, &input, false, &variance);
  if (status == MPS_STATUS_OK) {
    if (mean) status = mps_result_begin(stream, mean, self->dtype, &input, false, &average);
    if (status == MPS_STATUS_OK) {
      status = mps_reduce_encode(stream, &r, &input, mask, &variance.tensor, mean ? &average.tensor : NULL);
      status = mps_result_end(stream, &average, status);
    }
    status = mps_result_end(stream, &variance, status);
  }
  mps_buffer_release(owned);
  return status;
}

mps_status mps_op_var(mps_stream *stream, const mps_tensor *self, const int64_t *dim, uint32_t dim_count, double correction, bool keepdim,
                      const mps_tensor *out) {
  (void)keepdim;
  return run_var(stream, "var", self, dim, dim_count, correction, false, out, NULL);
}

mps_status mps_op_std(mps_stream *stream, const mps_tensor *self, const int64_t *dim, uint32_t dim_count, double correction, bool keepdim,
                      const mps_tensor *out) {
  (void)keepdim;
  return run_var(stream, "std", self, dim, dim_count, correction, true, out, NULL);
}

mps_status mps_op_var_mean(mps_stream *stream, const mps_tensor *self, const int64_t *dim, uint32_t dim_count, double correction, bool keepdim,
                           const mps_tensor *out, const mps_tensor *mean) {
  (void)keepdim;
  return run_var(stream, "var_mean", self, dim, dim_count, correction, false, out, mean);
}

mps_status mps_op_std_mean(mps_stream *stream, const mps_tensor *self, const int64_t *dim, uint32_t dim_count, double correction, bool keepdim,
                           const mps_tensor *out, const mps_tensor *mean) {
  (void)keepdim;
  return run_var(stream, "std_mean", self, dim, dim_count, correction, true, out, mean);
}
