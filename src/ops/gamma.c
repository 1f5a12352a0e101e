/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gamma: random numbers with parameters of their own, found by rejection: gamma, Dirichlet, Poisson and binomial variables.
 */
#include "openmps/ops/gamma.h"

#include <math.h>

#include "graph/formula.h"
#include "openmps/ops/norm.h"
#include "openmps/ops/pointwise.h"
#include "openmps/ops/pointwise_comparison.h"
#include "ops/operand.h"
#include "ops/random_call.h"

/* Nanoseconds an element on one core, an estimate. */
#define REJECTION_COST 40.0

static mps_status check(const char *label, const mps_tensor *parameter, const mps_tensor *out) {
  if (!mps_dtype_is_floating(out->dtype))
    return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", label, mps_dtype_title(out->dtype));
  if (!mps_operands_same_shape(parameter, out))
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): the parameters must have the shape of the result", label);
  return MPS_STATUS_OK;
}

static double smallest_normal(mps_dtype dtype) { return dtype == MPS_DTYPE_F16 ? 0x1p-14 : 0x1p-126; }
static double largest_below_one(mps_dtype dtype) { return 1.0 - (dtype == MPS_DTYPE_F16 ? 0x1p-11 : dtype == MPS_DTYPE_BF16 ? 0x1p-8 : 0x1p-24); }

/* One variable an element: `stem` makes floats from one or two parameters, which are brought to float. */
static mps_status run(mps_stream *stream, const char *label, const char *stem, double limit, const mps_tensor *first, const mps_tensor *second,
                      mps_generator *generator, const mps_tensor *out) {
  mps_status status = check(label, first, out);
  if (status == MPS_STATUS_OK && second) status = check(label, second, out);
  if (status != MPS_STATUS_OK) return status;
  mps_tensor parameters[2];
  mps_buffer *owned[2] = {NULL, NULL};
  status = mps_operand_prepare(stream, first, MPS_DTYPE_F32, true, &parameters[0], &owned[0]);
  if (status == MPS_STATUS_OK && second) status = mps_operand_prepare(stream, second, MPS_DTYPE_F32, true, &parameters[1], &owned[1]);
  if (status == MPS_STATUS_OK) {
    mps_random_call call = {.label = label, .stem = stem, .makes = MPS_DTYPE_F32, .per_block = 1, .cost = REJECTION_COST, .input = &parameters[0]};
    call.second_input = second ? &parameters[1] : NULL;
    call.arguments.a = (float)limit;
    status = mps_random_run(stream, &call, generator, out);
  }
  mps_buffer_release(owned[0]);
  mps_buffer_release(owned[1]);
  return status;
}

mps_status mps_op_standard_gamma(mps_stream *stream, const mps_tensor *self, mps_generator *generator, const mps_tensor *out) {
  return run(stream, "gamma", "random_gamma", smallest_normal(out->dtype), self, NULL, generator, out);
}

mps_status mps_op_poisson(mps_stream *stream, const mps_tensor *self, mps_generator *generator, const mps_tensor *out) {
  return run(stream, "poisson", "random_poisson", 0.0, self, NULL, generator, out);
}

mps_status mps_op_binomial(mps_stream *stream, const mps_tensor *count, const mps_tensor *prob, mps_generator *generator, const mps_tensor *out) {
  return run(stream, "binomial", "random_binomial", 0.0, count, prob, generator, out);
}

/* Gamma variables over their sum, from their logarithms: small parameters would underflow. */
mps_status mps_op_sample_dirichlet(mps_stream *stream, const mps_tensor *self, mps_generator *generator, const mps_tensor *out) {
  mps_status status = check("dirichlet", self, out);
  if (status != MPS_STATUS_OK || mps_tensor_element_count(out) == 0) return status;
  mps_tensor logarithms;
  status = mps_operand_create(stream, MPS_DTYPE_F32, out->rank, out->sizes, &logarithms);
  if (status != MPS_STATUS_OK) return status;
  /* PyTorch keeps each variable, as a double, above the smallest normal one. */
  status = run(stream, "dirichlet", "random_log_gamma", log(0x1p-1022), self, NULL, generator, &logarithms);
  const mps_tensor rows = mps_operand_at_least_1d(&logarithms);
  if (status == MPS_STATUS_OK) status = mps_op_softmax(stream, &rows, -1, false, &rows);
  const mps_tensor low = mps_operand_constant(&logarithms, MPS_DTYPE_F32, mps_scalar_float(smallest_normal(out->dtype)));
  const mps_tensor high = mps_operand_constant(&logarithms, MPS_DTYPE_F32, mps_scalar_float(largest_below_one(out->dtype)));
  if (status == MPS_STATUS_OK) status = mps_op_maximum(stream, &logarithms, &low, &logarithms);
  if (status == MPS_STATUS_OK) status = mps_op_minimum(stream, &logarithms, &high, out);
  mps_buffer_release(logarithms.buffer);
  return status;
}
