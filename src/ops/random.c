/* SPDX-License-Identifier: BSD-3-Clause
 *
 * random: fills tensors with random numbers. Numbers go by logical position: a result that is not contiguous is made in a contiguous
 * temporary first, so that layout never changes values.
 */
#include <math.h>
#include <string.h>

#include "kernels/random_arguments.h"
#include "openmps/library.h"
#include "openmps/ops/pointwise.h"
#include "openmps/ops/random.h"
#include "ops/operand.h"

/* One distribution over one result. */
typedef struct random_call {
  const char *label;
  const char *stem;    /* of the kernel; the dtype that it makes is appended */
  mps_dtype makes;     /* dtype that the kernel writes; converted to out's if it differs */
  int64_t per_block;   /* elements of a Philox block */
  mps_random_arguments arguments;
  const mps_tensor *input; /* contiguous, buffer 2; may be NULL */
  const mps_tensor *mask;  /* contiguous, buffer 3; may be NULL */
} random_call;

static mps_status encode(mps_stream *stream, random_call *call, mps_generator *generator, const mps_tensor *target) {
  mps_pipeline *pipeline;
  mps_status status = mps_operand_pipeline(stream, call->stem, mps_dtype_name(call->makes), &pipeline);
  if (status != MPS_STATUS_OK) return status;
  call->arguments.count = mps_tensor_element_count(target);
  uint64_t blocks = (uint64_t)((call->arguments.count + call->per_block - 1) / call->per_block);
  call->arguments.seed = mps_generator_seed(generator);
  call->arguments.offset = mps_generator_advance(generator, blocks);
  mps_encoder encoder;
  mps_encoder_begin(&encoder, stream, call->label);
  mps_encoder_set_pipeline(&encoder, pipeline);
  mps_encoder_set_buffer(&encoder, 0, target->buffer, target->offset, MPS_ACCESS_WRITE);
  mps_encoder_set_bytes(&encoder, 1, &call->arguments, sizeof call->arguments);
  if (call->input) mps_encoder_set_buffer(&encoder, 2, call->input->buffer, call->input->offset, MPS_ACCESS_READ);
  if (call->mask) mps_encoder_set_buffer(&encoder, 3, call->mask->buffer, call->mask->offset, MPS_ACCESS_WRITE);
  mps_encoder_set_cost(&encoder, 3.0 * (double)call->arguments.count);
  return mps_encoder_dispatch(&encoder, (uint64_t[]){blocks, 1, 1}, NULL);
}

static mps_status run(mps_stream *stream, random_call *call, mps_generator *generator, const mps_tensor *out) {
  if (mps_tensor_element_count(out) == 0) return MPS_STATUS_OK;
  if (out->dtype == call->makes && !out->flags && mps_tensor_is_contiguous(out)) return encode(stream, call, generator, out);
  mps_tensor temporary;
  mps_status status = mps_operand_create(stream, call->makes, out->rank, out->sizes, &temporary);
  if (status != MPS_STATUS_OK) return status;
  status = encode(stream, call, generator, &temporary);
  if (status == MPS_STATUS_OK) status = mps_op_copy(stream, &temporary, out);
  mps_buffer_release(temporary.buffer);
  return status;
}

static mps_status check_floating(const char *label, const mps_tensor *out) {
  if (mps_dtype_is_floating(out->dtype)) return MPS_STATUS_OK;
  return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", label, mps_dtype_name(out->dtype));
}

/* A complex tensor as its parts: one more dimension, of size 2. */
static mps_tensor parts_of(const mps_tensor *complex) {
  mps_tensor parts = *complex;
  parts.dtype = complex->dtype == MPS_DTYPE_C64 ? MPS_DTYPE_F32 : MPS_DTYPE_F16;
  for (uint32_t d = 0; d < parts.rank; d++) parts.strides[d] *= 2;
  parts.sizes[parts.rank] = 2;
  parts.strides[parts.rank] = 1;
  parts.rank++;
  return parts;
}

static mps_status run_floating(mps_stream *stream, const char *label, const char *stem, double a, double b, mps_generator *generator, const mps_tensor *out) {
  mps_status status = check_floating(label, out);
  if (status != MPS_STATUS_OK) return status;
  random_call call = {.label = label, .stem = stem, .makes = out->dtype, .per_block = 4};
  call.arguments.a = (float)a;
  call.arguments.b = (float)b;
  return run(stream, &call, generator, out);
}

mps_status mps_op_uniform(mps_stream *stream, double from, double to, mps_generator *generator, const mps_tensor *out) {
  if (!(from <= to))
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "uniform_ expects to return a [from, to) range, but found from=%g > to=%g", from, to);
  if (mps_dtype_is_complex(out->dtype) && out->rank < MPS_MAX_RANK) {
    mps_tensor parts = parts_of(out);
    return mps_op_uniform(stream, from, to, generator, &parts);
  }
  return run_floating(stream, "uniform_", "random_uniform", from, to, generator, out);
}

mps_status mps_op_normal(mps_stream *stream, double mean, double std, mps_generator *generator, const mps_tensor *out) {
  if (!(std >= 0.0)) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "normal expects std >= 0.0, but found std %g", std);
  if (mps_dtype_is_complex(out->dtype) && out->rank < MPS_MAX_RANK) {
    /* Both parts share the variance; a mean is real, and added to both as PyTorch does. */
    mps_tensor parts = parts_of(out);
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
  random_call call = {.label = "geometric_", .stem = "random_geometric", .makes = floating_or_f32(out), .per_block = 4};
  call.arguments.b = (float)log1p(-p);
  return run(stream, &call, generator, out);
}

mps_status mps_op_bernoulli(mps_stream *stream, double p, mps_generator *generator, const mps_tensor *out) {
  if (!(p >= 0.0 && p <= 1.0)) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "bernoulli_ expects p to be in [0, 1], but got p=%g", p);
  random_call call = {.label = "bernoulli_", .stem = "random_bernoulli", .makes = floating_or_f32(out), .per_block = 4};
  call.arguments.a = (float)p;
  return run(stream, &call, generator, out);
}

mps_status mps_op_bernoulli_each(mps_stream *stream, const mps_tensor *p, mps_generator *generator, const mps_tensor *out) {
  if (!mps_operands_same_shape(p, out)) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "bernoulli_(): p must have the shape of the result");
  mps_tensor probabilities;
  mps_buffer *owned;
  mps_status status = mps_operand_prepare(stream, p, MPS_DTYPE_F32, true, &probabilities, &owned);
  if (status != MPS_STATUS_OK) return status;
  random_call call = {.label = "bernoulli_", .stem = "random_bernoulli_each", .makes = MPS_DTYPE_F32, .per_block = 4, .input = &probabilities};
  status = run(stream, &call, generator, out);
  mps_buffer_release(owned);
  return status;
}

/* ---- integers ---- */

/* The integers that a dtype holds exactly, from 0 on: the largest one. */
static uint64_t largest_of(mps_dtype dtype) {
  switch (dtype) {
    case MPS_DTYPE_BOOL: return 1;
    case MPS_DTYPE_U8: return UINT8_MAX;
    case MPS_DTYPE_I8: return INT8_MAX;
    case MPS_DTYPE_U16: return UINT16_MAX;
    case MPS_DTYPE_I16: return INT16_MAX;
    case MPS_DTYPE_U32: return UINT32_MAX;
    case MPS_DTYPE_I32: return INT32_MAX;
    case MPS_DTYPE_U64: return UINT64_MAX;
    case MPS_DTYPE_F16: return (uint64_t)1 << 11;
    case MPS_DTYPE_BF16: return (uint64_t)1 << 8;
    case MPS_DTYPE_F32: return (uint64_t)1 << 24;
    default: return INT64_MAX;
  }
}

/* Values in [base, base + range); range 0: all 64 bits. */
static mps_status run_integer(mps_stream *stream, int64_t base, uint64_t range, mps_generator *generator, const mps_tensor *out) {
  if (mps_dtype_is_complex(out->dtype))
    return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "\"random_\" not implemented for '%s'", mps_dtype_name(out->dtype));
  bool wide = range == 0 || range > ((uint64_t)1 << 32);
  mps_dtype makes = out->dtype == MPS_DTYPE_I32 ? MPS_DTYPE_I32 : MPS_DTYPE_I64;
  random_call call = {.label = "random_", .stem = wide ? "random_integer_wide" : "random_integer", .makes = makes, .per_block = wide ? 2 : 4};
  call.arguments.base = base;
  call.arguments.range = range;
  return run(stream, &call, generator, out);
}

mps_status mps_op_random_from(mps_stream *stream, int64_t from, const int64_t *to, mps_generator *generator, const mps_tensor *out) {
  if (to) {
    if (from >= *to)
      return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "random_ expects 'from' to be less than 'to', but got from=%lld >= to=%lld", (long long)from, (long long)*to);
    uint64_t largest = largest_of(out->dtype);
    if (!mps_dtype_is_floating(out->dtype) && *to - 1 > 0 && (uint64_t)(*to - 1) > largest)
      return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "to - 1 is out of bounds for %s", mps_dtype_name(out->dtype));
    if (!mps_dtype_is_floating(out->dtype) && from > 0 && (uint64_t)from > largest)
      return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "from is out of bounds for %s", mps_dtype_name(out->dtype));
    return run_integer(stream, from, (uint64_t)*to - (uint64_t)from, generator, out);
  }
  if (from == INT64_MIN) return run_integer(stream, from, 0, generator, out);
  uint64_t top = largest_of(out->dtype);
  if (top > INT64_MAX) top = INT64_MAX;
  if (from > (int64_t)top) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "from is out of bounds for %s", mps_dtype_name(out->dtype));
  return run_integer(stream, from, top - (uint64_t)from + 1, generator, out);
}

mps_status mps_op_random_to(mps_stream *stream, int64_t to, mps_generator *generator, const mps_tensor *out) {
  return mps_op_random_from(stream, 0, &to, generator, out);
}

mps_status mps_op_random(mps_stream *stream, mps_generator *generator, const mps_tensor *out) {
  return run_integer(stream, 0, largest_of(out->dtype) + 1, generator, out); /* u64: wraps to 0, all bits */
}

mps_status mps_op_randperm(mps_stream *stream, mps_generator *generator, const mps_tensor *out) {
  if (out->rank != 1) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "randperm(): expected a result of rank 1, got %u", out->rank);
  const int64_t count = out->sizes[0];
  if (count == 0) return MPS_STATUS_OK;
  mps_tensor target = *out;
  bool direct = out->dtype == MPS_DTYPE_I64 && mps_tensor_is_contiguous(out);
  mps_status status = direct ? MPS_STATUS_OK : mps_operand_create(stream, MPS_DTYPE_I64, 1, &count, &target);
  if (status != MPS_STATUS_OK) return status;
  mps_pipeline *pipeline;
  status = mps_operand_pipeline(stream, "random_permutation", NULL, &pipeline);
  if (status == MPS_STATUS_OK) {
    mps_random_arguments arguments = {.seed = mps_generator_seed(generator), .offset = mps_generator_advance(generator, (uint64_t)count), .count = count};
    mps_encoder encoder;
    mps_encoder_begin(&encoder, stream, "randperm");
    mps_encoder_set_pipeline(&encoder, pipeline);
    mps_encoder_set_buffer(&encoder, 0, target.buffer, target.offset, MPS_ACCESS_READ_WRITE);
    mps_encoder_set_bytes(&encoder, 1, &arguments, sizeof arguments);
    mps_encoder_set_cost(&encoder, 10.0 * (double)count);
    status = mps_encoder_dispatch(&encoder, (uint64_t[]){1, 1, 1}, NULL);
  }
  if (!direct) {
    if (status == MPS_STATUS_OK) status = mps_op_copy(stream, &target, out);
    mps_buffer_release(target.buffer);
  }
  return status;
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
  random_call call = {.label = "native_dropout", .stem = "random_dropout", .makes = out->dtype, .per_block = 4, .input = &input, .mask = mask};
  call.arguments.a = (float)(1.0 - p);
  call.arguments.b = p == 1.0 ? 0.0f : (float)(1.0 / (1.0 - p));
  status = run(stream, &call, generator, out);
  mps_buffer_release(owned);
  return status;
}
