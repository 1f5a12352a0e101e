/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pointwise_power: powers and other operators whose formula depends on a number or on the dtype.
 */
#include <math.h>

#include "ops/pointwise.h"
#include "graph/program_builder.h"
#include "openmps/ops/pointwise_comparison.h"
#include "openmps/ops/pointwise_special.h"
#include "openmps/ops/pointwise_transcendental.h"

/* The formula of a power by a number that has one of its own, as PyTorch chooses them; MPS_FORMULA_COUNT: none. */
static mps_formula power_formula(double exponent, mps_dtype common) {
  const bool integral = !mps_dtype_is_floating(common) && !mps_dtype_is_complex(common);
  if (exponent == 1.0)
    return MPS_FORMULA_COPY;
  if (exponent == 2.0)
    return MPS_FORMULA_SQUARE;
  if (exponent == 3.0)
    return MPS_FORMULA_CUBE;
  if (integral)
    return MPS_FORMULA_COUNT;
  if (common == MPS_DTYPE_F16 && fabs(exponent) == 0.5) /* differs at -infinity and -0 */
    return MPS_FORMULA_COUNT;
  if (exponent == 0.5)
    return MPS_FORMULA_SQRT;
  if (exponent == -0.5)
    return MPS_FORMULA_RSQRT;
  if (exponent == -1.0)
    return MPS_FORMULA_RECIPROCAL;
  if (exponent == -2.0)
    return MPS_FORMULA_RECIPROCAL_SQUARE;
  return MPS_FORMULA_COUNT;
}

mps_status mps_op_pow(mps_stream *stream, const mps_tensor *self, const mps_tensor *exponent, const mps_tensor *out) {
  mps_program_builder builder;
  mps_program_begin(&builder, "pow", out->rank, out->sizes);
  const mps_program_value sources[] = {mps_program_read(&builder, self), mps_program_read(&builder, exponent)};
  const mps_dtype common = mps_program_promote(sources, 2);
  mps_formula formula = MPS_FORMULA_COUNT;
  if (exponent->buffer == NULL && exponent->rank == 0 && (exponent->constant.kind != MPS_SCALAR_COMPLEX || exponent->constant.imaginary == 0.0)) {
    const double number = mps_scalar_to_double(exponent->constant);
    if (number == 0.0) {
      mps_program_write(&builder, mps_program_number(&builder, mps_scalar_int(1)), out);
      return mps_program_encode(&builder, stream);
    }
    formula = power_formula(number, common);
  }
  const mps_program_value result = formula == MPS_FORMULA_COUNT ? mps_program_apply_in(&builder, MPS_FORMULA_POW, common, sources, NULL)
                                                                : mps_program_apply_in(&builder, formula, common, sources, NULL);
  mps_program_write(&builder, result, out);
  return mps_program_encode(&builder, stream);
}

mps_status mps_op_nextafter(mps_stream *stream, const mps_tensor *self, const mps_tensor *other, const mps_tensor *out) {
  mps_program_builder builder;
  mps_program_begin(&builder, "nextafter", out->rank, out->sizes);
  const mps_program_value sources[] = {mps_program_read(&builder, self), mps_program_read(&builder, other)};
  const mps_dtype common = mps_program_promote(sources, 2);
  const mps_scalar step = mps_scalar_float(common == MPS_DTYPE_BF16 ? 65536.0 : 1.0);
  const mps_formula formula = common == MPS_DTYPE_F16 ? MPS_FORMULA_NEXTAFTER_HALF : MPS_FORMULA_NEXTAFTER;
  mps_program_write(&builder, mps_program_apply_in(&builder, formula, common, sources, &step), out);
  return mps_program_encode(&builder, stream);
}

mps_status mps_op_polygamma(mps_stream *stream, int64_t n, const mps_tensor *self, const mps_tensor *out) {
  const mps_tensor *const inputs[] = {self};
  if (n < 0)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "polygamma(n, x) does not support negative n.");
  if (n <= 1)
    return mps_pointwise(stream, n == 0 ? MPS_FORMULA_DIGAMMA : MPS_FORMULA_TRIGAMMA, inputs, 1, NULL, 0, out, "polygamma");
  const double factor = (n % 2 ? 1.0 : -1.0) * exp(lgamma((double)n + 1.0));
  const mps_scalar parameters[] = {mps_scalar_float((double)n + 1.0), mps_scalar_float(factor)};
  return mps_pointwise(stream, MPS_FORMULA_POLYGAMMA, inputs, 1, parameters, 2, out, "polygamma");
}

/* Integers are never NaN or infinite. */
static mps_status test(mps_stream *stream, mps_formula formula, const mps_tensor *self, const mps_tensor *out, const char *label) {
  const mps_tensor *const inputs[] = {self};
  if (mps_dtype_is_floating(self->dtype) || mps_dtype_is_complex(self->dtype))
    return mps_pointwise(stream, formula, inputs, 1, NULL, 0, out, label);
  mps_program_builder builder;
  mps_program_begin(&builder, label, out->rank, out->sizes);
  mps_program_write(&builder, mps_program_number(&builder, mps_scalar_bool(false)), out);
  return mps_program_encode(&builder, stream);
}

mps_status mps_op_isnan(mps_stream *stream, const mps_tensor *self, const mps_tensor *out) {
  return test(stream, MPS_FORMULA_ISNAN, self, out, "isnan");
}

mps_status mps_op_isposinf(mps_stream *stream, const mps_tensor *self, const mps_tensor *out) {
  return test(stream, MPS_FORMULA_ISPOSINF, self, out, "isposinf");
}

mps_status mps_op_isneginf(mps_stream *stream, const mps_tensor *self, const mps_tensor *out) {
  return test(stream, MPS_FORMULA_ISNEGINF, self, out, "isneginf");
}
