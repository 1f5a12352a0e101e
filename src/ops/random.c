/* SPDX-License-Identifier: BSD-3-Clause
 *
 * random: fills tensors with random numbers. Numbers go by logical position: a result that is not contiguous is made in a contiguous
 * temporary first, so that layout never changes values.
 */
#include "ops/random_call.h"

#include <math.h>

#include "graph/formula.h"
#include "openmps/library.h"
#include "openmps/ops/pointwise.h"
#include "openmps/ops/random.h"
#include "ops/operand.h"

enum { PART = 1 << 22 /* elements made at a time, where their dtype is not the result's; whole Philox blocks */ };

static mps_status encode(mps_stream *stream, const mps_random_call *call, mps_random_plan *plan, mps_generator *generator, const mps_tensor *target) {
  mps_pipeline *pipeline;
  mps_status status = mps_operand_pipeline(stream, plan->stem, plan->suffix, &pipeline);
  if (status != MPS_STATUS_OK) return status;
  plan->arguments.seed = mps_generator_seed(generator);
  plan->arguments.offset = mps_generator_advance(generator, plan->blocks);
  mps_encoder encoder;
  mps_encoder_begin(&encoder, stream, call->label);
  mps_encoder_set_pipeline(&encoder, pipeline);
  mps_encoder_set_buffer(&encoder, 0, target->buffer, target->offset, MPS_ACCESS_WRITE);
  mps_encoder_set_bytes(&encoder, 1, &plan->arguments, sizeof plan->arguments);
  if (call->input) mps_encoder_set_buffer(&encoder, 2, call->input->buffer, call->input->offset, MPS_ACCESS_READ);
  if (call->second_input) mps_encoder_set_buffer(&encoder, 3, call->second_input->buffer, call->second_input->offset, MPS_ACCESS_READ);
  if (call->mask) mps_encoder_set_buffer(&encoder, 3, call->mask->buffer, call->mask->offset, MPS_ACCESS_WRITE);
  mps_encoder_set_error_buffer(&encoder, 4);
  mps_encoder_set_cost(&encoder, plan->cost);
  return mps_encoder_dispatch(&encoder, (uint64_t[]){plan->threads, 1, 1}, NULL);
}

static mps_status run_through_temporary(mps_stream *stream, const mps_random_call *call, mps_generator *generator, const mps_tensor *out) {
  mps_random_plan plan;
  mps_random_plan_make(&plan, call, out);
  mps_tensor temporary;
  mps_status status = mps_operand_create(stream, call->makes, out->rank, out->sizes, &temporary);
  if (status != MPS_STATUS_OK) return status;
  status = encode(stream, call, &plan, generator, &temporary);
  if (status == MPS_STATUS_OK) status = mps_op_copy(stream, &temporary, out);
  mps_buffer_release(temporary.buffer);
  return status;
}

/* The same numbers, part by part: int64 for a large tensor of bytes would take eight times its memory. */
static mps_status run_in_parts(mps_stream *stream, const mps_random_call *call, mps_generator *generator, const mps_tensor *out) {
  const int64_t total = mps_tensor_element_count(out);
  mps_status status = MPS_STATUS_OK;
  for (int64_t first = 0; status == MPS_STATUS_OK && first < total; first += PART) {
    const int64_t count = total - first < PART ? total - first : PART;
    mps_tensor part = *out;
    mps_tensor_set_contiguous(&part, 1, &count);
    part.offset = out->offset + (uint64_t)first * mps_dtype_size(out->dtype);
    status = run_through_temporary(stream, call, generator, &part);
  }
  return status;
}

mps_status mps_random_run(mps_stream *stream, const mps_random_call *call, mps_generator *generator, const mps_tensor *out) {
  mps_random_plan plan;
  mps_random_plan_make(&plan, call, out);
  if (plan.threads == 0) return MPS_STATUS_OK;
  if (plan.direct) return encode(stream, call, &plan, generator, out);
  const bool whole = call->input || call->second_input || call->mask;
  if (!whole && mps_tensor_is_contiguous(out) && mps_tensor_element_count(out) > PART) return run_in_parts(stream, call, generator, out);
  return run_through_temporary(stream, call, generator, out);
}

static mps_status check_floating(const char *label, const mps_tensor *out) {
  if (mps_dtype_is_floating(out->dtype)) return MPS_STATUS_OK;
  return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", label, mps_dtype_title(out->dtype));
}

static mps_status run_floating(mps_stream *stream, const char *label, const char *stem, double a, double b, mps_generator *generator, const mps_tensor *out) {
  mps_status status = check_floating(label, out);
  if (status != MPS_STATUS_OK) return status;
  mps_random_call call = {.label = label, .stem = stem, .makes = out->dtype, .per_block = 4};
  call.arguments.a = (float)a;
  call.arguments.b = (float)b;
  return mps_random_run(stream, &call, generator, out);
}

mps_status mps_op_uniform(mps_stream *stream, double from, double to, mps_generator *generator, const mps_tensor *out) {
  if (!(from <= to))
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "uniform_ expects to return a [from, to) range, but found from=%g > to=%g", from, to);
  if (mps_dtype_is_complex(out->dtype) && out->rank < MPS_MAX_RANK) {
    mps_tensor parts = mps_random_parts(out);
    return mps_op_uniform(stream, from, to, generator, &parts);
  }
  return run_floating(stream, "uniform_", "random_uniform", from, to, generator, out);
}

mps_status mps_op_normal(mps_stream *stream, double mean, double std, mps_generator *generator, const mps_tensor *out) {
  if (!(std >= 0.0)) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "normal expects std >= 0.0, but found std %g", std);
  if (mps_dtype_is_complex(out->dtype) && out->rank < MPS_MAX_RANK) {
    /* Both parts share the variance; a mean is real, and added to both as PyTorch does. */
    mps_tensor parts = mps_random_parts(out);
    return mps_op_normal(stream, mean, std / sqrt(2.0), generator, &parts);
  }
  return run_floating(stream, "normal_", "random_normal", mean, std, generator, out);
}

mps_status mps_op_log_normal(mps_stream *stream, double mean, double std, mps_generator *generator, const mps_tensor *out) {
  if (!(std > 0.0)) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "log_normal_ expects std > 0.0, but found std=%g", std);
  return run_floating(stream, "log_normal_", "random_log_normal", mean, std, generator, out);
}

mps_status mps_op_exponential(mps_stream *stream, double lambd, mps_generator *generator, const mps_tensor *out) {
  if (!(lambd > 0.0)) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "exponential_ expects lambda > 0.0, but found lambda=%g", lambd);
  return run_floating(stream, "exponential_", "random_exponential", lambd, 0.0, generator, out);
}

mps_status mps_op_cauchy(mps_stream *stream, double median, double sigma, mps_generator *generator, const mps_tensor *out) {
  if (!(sigma > 0.0)) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "cauchy_ expects sigma > 0.0, but found sigma=%g", sigma);
  return run_floating(stream, "cauchy_", "random_cauchy", median, sigma, generator, out);
}

/* Distributions of whole numbers are made in f32 and converted, unless out is a float type itself. */
static mps_dtype floating_or_f32(const mps_tensor *out) { return mps_dtype_is_floating(out->dtype) ? out->dtype : MPS_DTYPE_F32; }

mps_status mps_op_geometric(mps_stream *stream, double p, mps_generator *generator, const mps_tensor *out) {
  if (!(p > 0.0 && p < 1.0)) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "geometric_ expects p to be in (0, 1), but got p=%g", p);
  mps_random_call call = {.label = "geometric_", .stem = "random_geometric", .makes = floating_or_f32(out), .per_block = 4};
  call.arguments.b = (float)log1p(-p);
  return mps_random_run(stream, &call, generator, out);
}

mps_status mps_op_bernoulli(mps_stream *stream, double p, mps_generator *generator, const mps_tensor *out) {
  if (!(p >= 0.0 && p <= 1.0)) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "bernoulli_ expects p to be in [0, 1], but got p=%g", p);
  mps_random_call call = {.label = "bernoulli_", .stem = "random_bernoulli", .makes = floating_or_f32(out), .per_block = 4};
  call.arguments.a = (float)p;
  return mps_random_run(stream, &call, generator, out);
}

mps_status mps_op_bernoulli_each(mps_stream *stream, const mps_tensor *p, mps_generator *generator, const mps_tensor *out) {
  if (!mps_operands_same_shape(p, out)) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "bernoulli_(): p must have the shape of the result");
  mps_tensor probabilities;
  mps_buffer *owned;
  mps_status status = mps_operand_prepare(stream, p, MPS_DTYPE_F32, true, &probabilities, &owned);
  if (status != MPS_STATUS_OK) return status;
  mps_random_call call = {.label = "bernoulli_", .stem = "random_bernoulli_each", .makes = MPS_DTYPE_F32, .per_block = 4, .input = &probabilities};
  status = mps_random_run(stream, &call, generator, out);
  mps_buffer_release(owned);
  return status;
}

/* ---- integers ---- */

/* Values in [base, base + range); range 0: all 64 bits. */
static mps_status run_integer(mps_stream *stream, int64_t base, uint64_t range, mps_generator *generator, const mps_tensor *out) {
  if (mps_dtype_is_complex(out->dtype))
    return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "\"random_\" not implemented for '%s'", mps_dtype_title(out->dtype));
  const mps_random_call call = mps_random_integers(base, range, out->dtype);
  return mps_random_run(stream, &call, generator, out);
}

mps_status mps_op_random_from(mps_stream *stream, int64_t from, const int64_t *to, mps_generator *generator, const mps_tensor *out) {
  int64_t base;
  uint64_t range;
  mps_status status = mps_random_range(from, to, out->dtype, &base, &range);
  return status == MPS_STATUS_OK ? run_integer(stream, base, range, generator, out) : status;
}

mps_status mps_op_random_to(mps_stream *stream, int64_t to, mps_generator *generator, const mps_tensor *out) {
  return mps_op_random_from(stream, 0, &to, generator, out);
}

mps_status mps_op_random(mps_stream *stream, mps_generator *generator, const mps_tensor *out) {
  return run_integer(stream, 0, mps_random_largest(out->dtype) + 1, generator, out); /* u64: wraps to 0, all bits */
}

/* ---- dropout ---- */

mps_status mps_op_dropout(mps_stream *stream, const mps_tensor *self, double p, mps_generator *generator, const mps_tensor *out, const mps_tensor *mask) {
  mps_status status = check_floating("native_dropout", out);
  if (status != MPS_STATUS_OK) return status;
  if (!(p >= 0.0 && p <= 1.0)) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "dropout probability has to be between 0 and 1, but got %g", p);
  if (!mps_operands_same_shape(self, out) || !mps_operands_same_shape(self, mask) || mask->dtype != MPS_DTYPE_BOOL || self->dtype != out->dtype ||
      !mps_tensor_is_contiguous(mask) || !mps_tensor_is_contiguous(out))
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "dropout(): out and mask must be contiguous, of self's shape; mask bool, out of self's dtype");
  mps_tensor input;
  mps_buffer *owned;
  status = mps_operand_prepare(stream, self, self->dtype, true, &input, &owned);
  if (status != MPS_STATUS_OK) return status;
  mps_random_call call = {.label = "native_dropout", .stem = "random_dropout", .makes = out->dtype, .per_block = 4, .input = &input, .mask = mask};
  call.arguments.a = (float)(1.0 - p);
  call.arguments.b = p == 1.0 ? 0.0f : (float)(1.0 / (1.0 - p));
  status = mps_random_run(stream, &call, generator, out);
  mps_buffer_release(owned);
  return status;
}
