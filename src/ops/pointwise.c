/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pointwise: one formula over tensors, and the operators of the family that choose their formula by an argument.
 */
#include "ops/pointwise.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "openmps/ops/pointwise.h"
#include "openmps/ops/pointwise_comparison.h"
#include "ops/pointwise_dense.h"

mps_status mps_pointwise(mps_stream *stream, mps_formula formula, const mps_tensor *const *inputs, uint32_t input_count,
                         const mps_scalar *parameters, uint32_t parameter_count, const mps_tensor *out, const char *label) {
  mps_program_builder builder;
  mps_program_value sources[MPS_PROGRAM_MAX_SOURCES];
  const mps_formula_info *info = &mps_formula_infos[formula];
  if (info->source_count != input_count || info->parameter_count != parameter_count)
    return mps_error_set(MPS_STATUS_INTERNAL_ERROR, "%s: formula %s takes %u sources and %u parameters, got %u and %u", label, info->name,
                         info->source_count, info->parameter_count, input_count, parameter_count);
  if (mps_pointwise_is_dense(formula, inputs, input_count, out))
    return mps_pointwise_encode_dense(stream, formula, inputs, input_count, parameters, out, label);
  mps_program_begin(&builder, label, out->rank, out->sizes);
  for (uint32_t i = 0; i < input_count; i++)
    sources[i] = mps_program_read(&builder, inputs[i]);
  const mps_program_value result = mps_program_apply(&builder, formula, sources, parameters);
  mps_program_write(&builder, result, out);
  return mps_program_encode(&builder, stream);
}

/* ---- copies ---- */
static mps_status convert(mps_stream *stream, const mps_tensor *source, const mps_tensor *destination, const char *label) {
  mps_program_builder builder;
  mps_program_begin(&builder, label, destination->rank, destination->sizes);
  const mps_program_value value = mps_program_read(&builder, source);
  mps_program_write(&builder, value, destination);
  return mps_program_encode(&builder, stream);
}

mps_status mps_op_copy(mps_stream *stream, const mps_tensor *source, const mps_tensor *destination) {
  return convert(stream, source, destination, "copy");
}

mps_status mps_op_fill(mps_stream *stream, const mps_tensor *value, const mps_tensor *out) {
  if (value->rank != 0)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "fill_ only supports 0-dimension value tensor but got tensor with %u dimensions.",
                         value->rank);
  return convert(stream, value, out, "fill_");
}

mps_status mps_op_masked_fill(mps_stream *stream, const mps_tensor *self, const mps_tensor *mask, const mps_tensor *value,
                              const mps_tensor *out) {
  mps_program_builder builder;
  mps_program_begin(&builder, "masked_fill_", out->rank, out->sizes);
  const mps_program_value sources[] = {mps_program_read(&builder, mask), mps_program_read(&builder, value), mps_program_read(&builder, self)};
  const mps_program_value result = mps_program_apply_in(&builder, MPS_FORMULA_WHERE, self->dtype, sources, NULL);
  mps_program_write(&builder, result, out);
  return mps_program_encode(&builder, stream);
}

/* ---- sums with a factor ---- */
static bool is_one(mps_scalar scalar) {
  switch (scalar.kind) {
  case MPS_SCALAR_FLOAT:
    return scalar.real == 1.0;
  case MPS_SCALAR_COMPLEX:
    return scalar.real == 1.0 && scalar.imaginary == 0.0;
  default:
    return scalar.integer == 1;
  }
}

/* a +- alpha * b. alpha is rounded to the promoted dtype but takes no part in promotion. */
static mps_status scaled_sum(mps_stream *stream, mps_formula plain, mps_formula scaled, const mps_tensor *a, const mps_tensor *b,
                             mps_scalar alpha, const mps_tensor *out, const char *label) {
  const mps_tensor *const inputs[] = {a, b};
  if (is_one(alpha))
    return mps_pointwise(stream, plain, inputs, 2, NULL, 0, out, label);
  mps_program_builder builder;
  mps_program_begin(&builder, label, out->rank, out->sizes);
  const mps_program_value sources[] = {mps_program_read(&builder, a), mps_program_read(&builder, b), mps_program_number(&builder, alpha)};
  const mps_program_value result = mps_program_apply_in(&builder, scaled, mps_program_promote(sources, 2), sources, NULL);
  mps_program_write(&builder, result, out);
  return mps_program_encode(&builder, stream);
}

mps_status mps_op_add(mps_stream *stream, const mps_tensor *self, const mps_tensor *other, mps_scalar alpha, const mps_tensor *out) {
  return scaled_sum(stream, MPS_FORMULA_ADD, MPS_FORMULA_ADD_SCALED, self, other, alpha, out, "add");
}

mps_status mps_op_sub(mps_stream *stream, const mps_tensor *self, const mps_tensor *other, mps_scalar alpha, const mps_tensor *out) {
  return scaled_sum(stream, MPS_FORMULA_SUB, MPS_FORMULA_SUB_SCALED, self, other, alpha, out, "sub");
}

mps_status mps_op_rsub(mps_stream *stream, const mps_tensor *self, const mps_tensor *other, mps_scalar alpha, const mps_tensor *out) {
  return scaled_sum(stream, MPS_FORMULA_SUB, MPS_FORMULA_SUB_SCALED, other, self, alpha, out, "rsub");
}

/* Halves: the quotient is rounded before it is cut, as in PyTorch. */
static mps_status truncated_quotient(mps_stream *stream, const mps_tensor *self, const mps_tensor *other, const mps_tensor *out) {
  mps_program_builder builder;
  mps_program_begin(&builder, "div", out->rank, out->sizes);
  const mps_program_value sources[] = {mps_program_read(&builder, self), mps_program_read(&builder, other)};
  const mps_dtype common = mps_program_promote(sources, 2);
  mps_program_value result;
  if (common == MPS_DTYPE_F16 || common == MPS_DTYPE_BF16) {
    result = mps_program_apply(&builder, MPS_FORMULA_DIV, sources, NULL);
    result = mps_program_apply(&builder, MPS_FORMULA_TRUNC, &result, NULL);
  } else {
    result = mps_program_apply(&builder, MPS_FORMULA_DIV_TRUNC, sources, NULL);
  }
  mps_program_write(&builder, result, out);
  return mps_program_encode(&builder, stream);
}

mps_status mps_op_div_mode(mps_stream *stream, const mps_tensor *self, const mps_tensor *other, const char *rounding_mode,
                           const mps_tensor *out) {
  const mps_tensor *const inputs[] = {self, other};
  if (!rounding_mode)
    return mps_pointwise(stream, MPS_FORMULA_DIV, inputs, 2, NULL, 0, out, "div");
  if (strcmp(rounding_mode, "trunc") == 0)
    return truncated_quotient(stream, self, other, out);
  if (strcmp(rounding_mode, "floor") == 0)
    return mps_pointwise(stream, MPS_FORMULA_DIV_FLOOR, inputs, 2, NULL, 0, out, "div");
  return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '%s'",
                       rounding_mode);
}

/* ---- limits and rounding ---- */
mps_status mps_op_clamp(mps_stream *stream, const mps_tensor *self, const mps_tensor *min, const mps_tensor *max, const mps_tensor *out) {
  if (min && max) {
    const mps_tensor *const inputs[] = {self, min, max};
    return mps_pointwise(stream, MPS_FORMULA_CLAMP, inputs, 3, NULL, 0, out, "clamp");
  }
  if (!min && !max)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "torch.clamp: At least one of 'min' or 'max' must not be None");
  const mps_tensor *const inputs[] = {self, min ? min : max};
  return mps_pointwise(stream, min ? MPS_FORMULA_MAXIMUM : MPS_FORMULA_MINIMUM, inputs, 2, NULL, 0, out, "clamp");
}

mps_status mps_op_round_decimals(mps_stream *stream, const mps_tensor *self, int64_t decimals, const mps_tensor *out) {
  const mps_tensor *const inputs[] = {self};
  if (decimals == 0 || (decimals > 0 && !mps_dtype_is_floating(self->dtype)))
    return mps_pointwise(stream, MPS_FORMULA_ROUND, inputs, 1, NULL, 0, out, "round");
  const mps_scalar power = mps_scalar_float(pow(10.0, fabs((double)decimals)));
  const mps_formula formula = decimals > 0 ? MPS_FORMULA_ROUND_DECIMALS : MPS_FORMULA_ROUND_TENS;
  return mps_pointwise(stream, formula, inputs, 1, &power, 1, out, "round");
}

mps_status mps_op_frexp(mps_stream *stream, const mps_tensor *self, const mps_tensor *mantissa, const mps_tensor *exponent) {
  mps_program_builder builder;
  mps_program_begin(&builder, "frexp", mantissa->rank, mantissa->sizes);
  const mps_program_value value = mps_program_read(&builder, self);
  mps_program_write(&builder, mps_program_apply(&builder, MPS_FORMULA_FREXP_MANTISSA, &value, NULL), mantissa);
  mps_program_write(&builder, mps_program_apply(&builder, MPS_FORMULA_FREXP_EXPONENT, &value, NULL), exponent);
  return mps_program_encode(&builder, stream);
}

static double largest_number(mps_dtype dtype) {
  switch (dtype) {
  case MPS_DTYPE_F16:
  case MPS_DTYPE_C32:
    return 65504.0;
  case MPS_DTYPE_BF16:
    return 0x1.fep127;
  default:
    return (double)FLT_MAX;
  }
}

mps_status mps_op_nan_to_num(mps_stream *stream, const mps_tensor *self, const double *nan, const double *posinf, const double *neginf,
                             const mps_tensor *out) {
  if (!mps_dtype_is_floating(self->dtype) && !mps_dtype_is_complex(self->dtype))
    return convert(stream, self, out, "nan_to_num");
  const mps_tensor *const inputs[] = {self};
  const double largest = largest_number(self->dtype);
  const mps_scalar parameters[] = {mps_scalar_float(nan ? *nan : 0.0), mps_scalar_float(posinf ? *posinf : largest),
                                   mps_scalar_float(neginf ? *neginf : -largest)};
  return mps_pointwise(stream, MPS_FORMULA_NAN_TO_NUM, inputs, 1, parameters, 3, out, "nan_to_num");
}
