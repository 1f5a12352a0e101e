/* SPDX-License-Identifier: BSD-3-Clause
 *
 * scan: running sums, products, maxima and minima, and logarithms of sums of exponentials, along one dimension.
 */
#include <stdio.h>
#include <string.h>

#include "openmps/ops/scan.h"
#include "ops/reduce.h"
#include "ops/scan_plan.h"

typedef struct scan_call {
  const char *label;
  const char *kernel; /* scan_<kernel>_{inner,outer,prefix}_<suffix> */
  const char *suffix;
  uint32_t parts;     /* scalars of a state */
  size_t part_bytes;
  double cost;        /* nanoseconds an element on one core, an estimate */
  bool smallest, whole;
  bool direct;        /* the kernel reads self's dtype */
} scan_call;

/* One pass: values, totals of chunks, or (`pass` "prefix") what joins them. */
static mps_status encode_pass(mps_stream *stream, const scan_call *call, const char *pass, const mps_scan_plan *plan, const mps_tensor *input,
                              const mps_tensor *output, const mps_tensor *indices, mps_buffer *partials) {
  char stem[64];
  snprintf(stem, sizeof stem, "scan_%s_%s", call->kernel, pass);
  mps_pipeline *pipeline;
  mps_status status = mps_operand_pipeline(stream, stem, call->suffix, &pipeline);
  if (status != MPS_STATUS_OK) return status;
  const mps_scan_arguments *a = &plan->arguments;
  const bool prefix = strcmp(pass, "prefix") == 0, totals = a->pass == MPS_SCAN_TOTALS && !prefix;
  mps_encoder encoder;
  mps_encoder_begin(&encoder, stream, call->label);
  mps_encoder_set_pipeline(&encoder, pipeline);
  for (uint32_t i = 0; i <= 4; i++) mps_encoder_set_unused(&encoder, i);
  if (!prefix) mps_encoder_set_tensor(&encoder, 0, input, MPS_ACCESS_READ);
  if (!prefix && !totals) mps_encoder_set_tensor(&encoder, 1, output, MPS_ACCESS_WRITE);
  if (!prefix && !totals && indices) mps_encoder_set_tensor(&encoder, 2, indices, MPS_ACCESS_WRITE);
  mps_encoder_set_bytes(&encoder, 3, a, sizeof *a);
  if (partials) mps_encoder_set_buffer(&encoder, 4, partials, 0, prefix ? MPS_ACCESS_READ_WRITE : totals ? MPS_ACCESS_WRITE : MPS_ACCESS_READ);
  mps_encoder_set_cost(&encoder, (double)a->rows * (double)(prefix ? a->chunk_count : a->length) * call->cost);
  uint64_t grid[3] = {prefix ? (uint64_t)a->rows : plan->threads, prefix ? 1 : (uint64_t)(a->chunk_count - (totals ? 1 : 0)), 1};
  return mps_encoder_dispatch(&encoder, grid, NULL);
}

/* input, output and indices (may be NULL) have the kernel's dtypes; output and input are the same elements or do not overlap. */
static mps_status encode(mps_stream *stream, const scan_call *call, const mps_tensor *input, uint32_t dimension, const mps_tensor *output,
                         const mps_tensor *indices) {
  mps_scan_plan plan;
  mps_scan_plan_make(&plan, input, dimension, output, indices, call->whole);
  mps_scan_arguments *a = &plan.arguments;
  if (plan.threads > UINT32_MAX || a->rows > UINT32_MAX)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s: %lld rows are more than one call can take; split the tensor", call->label, (long long)a->rows);
  a->smallest = call->smallest;
  const char *layout = plan.outer ? "outer" : "inner";
  if (a->chunk_count == 1) return encode_pass(stream, call, layout, &plan, input, output, indices, NULL);
  mps_buffer *partials;
  const uint64_t bytes = (uint64_t)(a->chunk_count * a->rows) * call->parts * call->part_bytes;
  mps_status status = mps_buffer_create(mps_stream_device(stream), stream, bytes, &partials);
  if (status != MPS_STATUS_OK) return status;
  a->pass = MPS_SCAN_TOTALS;
  status = encode_pass(stream, call, layout, &plan, input, output, indices, partials);
  if (status == MPS_STATUS_OK) status = encode_pass(stream, call, "prefix", &plan, input, output, indices, partials);
  a->pass = MPS_SCAN_VALUES;
  if (status == MPS_STATUS_OK) status = encode_pass(stream, call, layout, &plan, input, output, indices, partials);
  mps_buffer_release(partials);
  return status;
}

/* Overlaps that are not element for element go through a temporary. */
static const mps_tensor *met(const mps_tensor *input, const mps_tensor *out) {
  return mps_operands_overlap(input, out) && !mps_operands_equal(input, out) ? input : NULL;
}

/* Running values alone. `compute`: the dtype that self is brought to (after out's, as PyTorch does: what does not fit is lost there) and that
 * results have before they are brought to out's. */
static mps_status run(mps_stream *stream, const scan_call *call, const mps_tensor *self, int64_t dim, mps_dtype compute, const mps_tensor *out) {
  uint32_t dimension;
  mps_status status = mps_operand_dimension(dim, self->rank, &dimension);
  if (status != MPS_STATUS_OK) return status;
  if (!mps_operands_same_shape(self, out)) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): out must have self's shape", call->label);
  if (mps_tensor_element_count(self) == 0) return MPS_STATUS_OK;
  mps_tensor from = mps_operand_at_least_1d(self), to = mps_operand_at_least_1d(out), input;
  mps_buffer *owned;
  status = mps_operand_prepare(stream, &from, call->direct ? self->dtype : out->dtype, false, &input, &owned);
  if (status == MPS_STATUS_OK && compute != out->dtype) {
    mps_buffer *first = owned;
    mps_tensor narrow = input;
    status = mps_operand_prepare(stream, &narrow, compute, false, &input, &owned);
    mps_buffer_release(first);
  }
  if (status != MPS_STATUS_OK) return status;
  mps_result result;
  status = mps_result_begin(stream, &to, compute, met(&input, &to), false, &result);
  if (status == MPS_STATUS_OK) status = mps_result_end(stream, &result, encode(stream, call, &input, dimension, &result.tensor, NULL));
  mps_buffer_release(owned);
  return status;
}

static mps_status run_integers(mps_stream *stream, scan_call *call, const mps_tensor *self, int64_t dim, const mps_tensor *out) {
  const bool wide = mps_dtype_size(out->dtype) == 8, truths = self->dtype == MPS_DTYPE_BOOL, bytes = self->dtype == MPS_DTYPE_U8;
  const bool sum = strcmp(call->kernel, "sum") == 0;
  call->direct = sum && out->dtype == MPS_DTYPE_I64 && (truths || bytes || self->dtype == MPS_DTYPE_I32);
  call->suffix = !wide ? "u32" : !call->direct ? "u64" : truths ? "bool_u64" : bytes ? "u8_u64" : "i32_u64";
  call->parts = 1;
  call->part_bytes = wide ? 8 : 4;
  call->cost = 0.5;
  return run(stream, call, self, dim, mps_dtype_size(out->dtype) >= 4 ? out->dtype : MPS_DTYPE_I32, out);
}

/* The elements as real numbers: one more dimension, of two. */
static mps_status real_view(const mps_tensor *tensor, mps_dtype part, mps_tensor *out) {
  if (tensor->rank >= MPS_MAX_RANK)
    return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "cumsum(): complex tensors of %u dimensions are not supported", tensor->rank);
  *out = *tensor;
  out->dtype = part;
  for (uint32_t d = 0; d < out->rank; d++) out->strides[d] *= 2;
  out->sizes[out->rank] = 2;
  out->strides[out->rank++] = 1;
  return MPS_STATUS_OK;
}

static mps_status refuse(const char *name, mps_dtype dtype) {
  return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", name, mps_dtype_name(dtype));
}

/* A complex sum is the sums of its parts. */
static mps_status sum_complex(mps_stream *stream, const mps_tensor *self, int64_t dim, const mps_tensor *out) {
  uint32_t dimension;
  mps_status status = mps_operand_dimension(dim, self->rank, &dimension);
  if (status != MPS_STATUS_OK) return status;
  const mps_dtype part = out->dtype == MPS_DTYPE_C64 ? MPS_DTYPE_F32 : MPS_DTYPE_F16;
  const mps_tensor from = mps_operand_at_least_1d(self), to = mps_operand_at_least_1d(out);
  mps_tensor input, input_parts, parts;
  mps_buffer *owned;
  status = mps_operand_prepare(stream, &from, out->dtype, false, &input, &owned);
  if (status != MPS_STATUS_OK) return status;
  mps_result result;
  status = mps_result_begin(stream, &to, out->dtype, NULL, false, &result);
  if (status == MPS_STATUS_OK) {
    status = real_view(&result.tensor, part, &parts);
    if (status == MPS_STATUS_OK) status = real_view(&input, part, &input_parts);
    if (status == MPS_STATUS_OK) status = mps_op_cumsum(stream, &input_parts, dimension, &parts);
    status = mps_result_end(stream, &result, status);
  }
  mps_buffer_release(owned);
  return status;
}

mps_status mps_op_cumsum(mps_stream *stream, const mps_tensor *self, int64_t dim, const mps_tensor *out) {
  scan_call call = {.label = "cumsum", .kernel = "sum", .suffix = mps_dtype_name(out->dtype), .parts = 3, .part_bytes = sizeof(float), .cost = 0.5};
  if (mps_dtype_is_floating(out->dtype)) return run(stream, &call, self, dim, out->dtype, out);
  if (mps_dtype_is_complex(out->dtype)) return sum_complex(stream, self, dim, out);
  if (out->dtype == MPS_DTYPE_BOOL) return refuse("cumsum_out_cpu", out->dtype);
  return run_integers(stream, &call, self, dim, out);
}

mps_status mps_op_cumprod(mps_stream *stream, const mps_tensor *self, int64_t dim, const mps_tensor *out) {
  scan_call call = {.label = "cumprod", .kernel = "product", .suffix = mps_dtype_name(out->dtype), .parts = 3, .part_bytes = sizeof(float), .cost = 0.5};
  if (mps_dtype_is_floating(out->dtype)) return run(stream, &call, self, dim, out->dtype, out);
  if (out->dtype == MPS_DTYPE_BOOL || out->dtype == MPS_DTYPE_C32) return refuse("cumprod_out_cpu", out->dtype);
  if (out->dtype == MPS_DTYPE_C64) {
    call.parts = 5;
    call.cost = 1.5;
    return run(stream, &call, self, dim, out->dtype, out);
  }
  return run_integers(stream, &call, self, dim, out);
}

mps_status mps_op_logcumsumexp(mps_stream *stream, const mps_tensor *self, int64_t dim, const mps_tensor *out) {
  scan_call call = {.label = "logcumsumexp", .kernel = "logarithm", .suffix = mps_dtype_name(out->dtype), .parts = 3, .part_bytes = sizeof(float), .cost = 5.0};
  /* The imaginary part goes on beyond pi from element to element: there are no chunks to join. */
  call.whole = out->dtype == MPS_DTYPE_C64;
  if (call.whole) call.cost = 70.0;
  if (!mps_dtype_is_floating(out->dtype) && out->dtype != MPS_DTYPE_C64) return refuse("logcumsumexp_out_cpu", out->dtype);
  return run(stream, &call, self, dim, out->dtype, out);
}

static mps_status run_extreme(mps_stream *stream, const char *label, bool smallest, const mps_tensor *self, int64_t dim, const mps_tensor *values,
                              const mps_tensor *indices) {
  uint32_t dimension;
  mps_status status = mps_operand_dimension(dim, self->rank, &dimension);
  if (status != MPS_STATUS_OK) return status;
  const mps_dtype dtype = self->dtype;
  if (mps_dtype_is_complex(dtype) || dtype == MPS_DTYPE_U32 || dtype == MPS_DTYPE_U64) return refuse(label, dtype);
  if (!mps_operands_same_shape(self, values) || !mps_operands_same_shape(self, indices) || indices->dtype != MPS_DTYPE_I64 || values->dtype != dtype)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): values and indices must have self's shape, values its dtype, indices int64",
                         label);
  if (mps_tensor_element_count(self) == 0) return MPS_STATUS_OK;
  const mps_dtype compute = mps_dtype_is_floating(dtype) || dtype == MPS_DTYPE_I64 ? dtype : MPS_DTYPE_I32;
  const mps_tensor from = mps_operand_at_least_1d(self), to = mps_operand_at_least_1d(values), at = mps_operand_at_least_1d(indices);
  if (from.sizes[dimension] > INT32_MAX)
    return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "%s(): rows of more than 2^31 - 1 elements (here %lld) are not supported", label,
                         (long long)from.sizes[dimension]);
  mps_tensor input;
  mps_buffer *owned;
  status = mps_operand_prepare(stream, &from, compute, false, &input, &owned);
  if (status != MPS_STATUS_OK) return status;
  const size_t bytes = compute == MPS_DTYPE_I64 ? 8 : 4;
  const scan_call call = {.label = label, .kernel = "largest", .suffix = mps_dtype_name(compute), .parts = 2, .part_bytes = bytes, .cost = 1.0,
                          .smallest = smallest};
  mps_result result, places;
  status = mps_result_begin(stream, &to, compute, met(&input, &to), false, &result);
  if (status == MPS_STATUS_OK) {
    status = mps_result_begin(stream, &at, MPS_DTYPE_I64, met(&input, &at), false, &places);
    if (status == MPS_STATUS_OK) status = mps_result_end(stream, &places, encode(stream, &call, &input, dimension, &result.tensor, &places.tensor));
    status = mps_result_end(stream, &result, status);
  }
  mps_buffer_release(owned);
  return status;
}

mps_status mps_op_cummax(mps_stream *stream, const mps_tensor *self, int64_t dim, const mps_tensor *values, const mps_tensor *indices) {
  return run_extreme(stream, "cummax", false, self, dim, values, indices);
}

mps_status mps_op_cummin(mps_stream *stream, const mps_tensor *self, int64_t dim, const mps_tensor *values, const mps_tensor *indices) {
  return run_extreme(stream, "cummin", true, self, dim, values, indices);
}
