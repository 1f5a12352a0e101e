/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reduce: encodes reduction kernels: one pass when an output is one chunk, else chunks and a finish.
 */
#include "ops/reduce.h"

#include <stdio.h>
#include <string.h>

#include "openmps/ops/pointwise.h"

/* Nanoseconds an element takes on one core, an estimate; and a thread of its own. */
#define ELEMENT_COST 0.12
#define OUTPUT_COST 15.0
#define ROW_COST 2.0 /* of an output that a tile makes of a short row */

void mps_encoder_set_tensor(mps_encoder *encoder, uint32_t index, const mps_tensor *tensor, mps_access access) {
  mps_encoder_set_buffer(encoder, index, tensor->buffer, tensor->offset, access);
}

void mps_encoder_set_unused(mps_encoder *encoder, uint32_t index) {
  static const uint64_t zeros = 0;
  mps_encoder_set_bytes(encoder, index, &zeros, sizeof zeros);
}

void mps_encoder_set_optional(mps_encoder *encoder, uint32_t index, const mps_tensor *tensor, mps_access access) {
  if (tensor && tensor->buffer)
    mps_encoder_set_tensor(encoder, index, tensor, access);
  else
    mps_encoder_set_unused(encoder, index);
}

mps_status mps_result_begin(mps_stream *stream, const mps_tensor *out, mps_dtype dtype, const mps_tensor *input, bool contiguous,
                            mps_result *result) {
  result->tensor = *out;
  result->out = NULL;
  bool fits = out->dtype == dtype || (mps_dtype_size(dtype) == 1 && dtype == MPS_DTYPE_BOOL && out->dtype == MPS_DTYPE_U8);
  if (fits && !out->flags && !(input && mps_operands_overlap(input, out)) && (!contiguous || mps_tensor_is_contiguous(out)))
    return MPS_STATUS_OK;
  result->out = out;
  return mps_operand_create(stream, dtype, out->rank, out->sizes, &result->tensor);
}

mps_status mps_result_end(mps_stream *stream, mps_result *result, mps_status status) {
  if (!result->out) return status;
  if (status == MPS_STATUS_OK) status = mps_op_copy(stream, &result->tensor, result->out);
  mps_buffer_release(result->tensor.buffer);
  result->out = NULL;
  return status;
}

static mps_status find_pipeline(mps_stream *stream, const mps_reduction *r, const char *pass, const char *suffix, mps_pipeline **out) {
  char stem[64];
  snprintf(stem, sizeof stem, "reduce_%s_%s", r->kernel, pass);
  return mps_operand_pipeline(stream, stem, suffix, out);
}

static void apply_parameters(const mps_reduction *r, mps_reduce_arguments *a) {
  a->mode = r->mode;
  a->root = r->root;
  a->divisor = r->divisor != 0.0f ? r->divisor : 1.0f;
  a->power = r->power;
  a->correction = r->correction;
}

/* Buffers: 0 input, 1 partials, 2 out, 3 arguments, 4 second. */
static mps_status encode_first(mps_stream *stream, const mps_reduction *r, const mps_tensor *input, const mps_reduce_plan *plan,
                               mps_buffer *partials, const mps_tensor *out, const mps_tensor *second) {
  if (plan->threads[0] > UINT32_MAX || plan->threads[1] > UINT32_MAX)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s: %lld results are more than one call can make; split the tensor", r->label,
                         (long long)plan->arguments.output_count);
  mps_pipeline *pipeline;
  mps_status status = find_pipeline(stream, r, plan->outer ? "outer" : "inner", r->suffix, &pipeline);
  if (status != MPS_STATUS_OK) return status;
  mps_encoder encoder;
  mps_encoder_begin(&encoder, stream, r->label);
  mps_encoder_set_pipeline(&encoder, pipeline);
  mps_encoder_set_tensor(&encoder, 0, input, MPS_ACCESS_READ);
  const mps_reduce_arguments *a = &plan->arguments;
  for (uint32_t i = 1; i <= 4; i++) mps_encoder_set_unused(&encoder, i);
  if (partials) mps_encoder_set_buffer(&encoder, 1, partials, 0, MPS_ACCESS_WRITE);
  if (!a->raw) mps_encoder_set_tensor(&encoder, 2, out, MPS_ACCESS_WRITE);
  mps_encoder_set_bytes(&encoder, 3, a, sizeof *a);
  if (!a->raw && second) mps_encoder_set_tensor(&encoder, 4, second, MPS_ACCESS_WRITE);
  mps_encoder_set_cost(&encoder, (double)a->output_count * ((double)a->reduce_count * ELEMENT_COST + (a->rows ? ROW_COST : OUTPUT_COST)));
  return mps_encoder_dispatch(&encoder, plan->threads, NULL);
}

static mps_status encode_finish(mps_stream *stream, const mps_reduction *r, const mps_reduce_arguments *a, mps_buffer *partials,
                                const mps_tensor *out, const mps_tensor *second) {
  mps_pipeline *pipeline;
  mps_status status = find_pipeline(stream, r, "finish", r->finish ? r->finish : r->suffix, &pipeline);
  if (status != MPS_STATUS_OK) return status;
  mps_encoder encoder;
  mps_encoder_begin(&encoder, stream, r->label);
  mps_encoder_set_pipeline(&encoder, pipeline);
  mps_encoder_set_buffer(&encoder, 1, partials, 0, MPS_ACCESS_READ);
  mps_encoder_set_tensor(&encoder, 2, out, MPS_ACCESS_WRITE);
  mps_encoder_set_bytes(&encoder, 3, a, sizeof *a);
  if (second)
    mps_encoder_set_tensor(&encoder, 4, second, MPS_ACCESS_WRITE);
  else
    mps_encoder_set_unused(&encoder, 4);
  mps_encoder_set_cost(&encoder, (double)a->output_count * ((double)a->chunk_count * 2.0 + OUTPUT_COST));
  return mps_encoder_dispatch(&encoder, (uint64_t[3]){(uint64_t)a->output_count, 1, 1}, NULL);
}

static mps_status create_partials(mps_stream *stream, const mps_reduction *r, const mps_reduce_arguments *a, mps_buffer **out) {
  return mps_buffer_create(mps_stream_device(stream), stream, (size_t)(a->chunk_count * a->output_count) * r->accumulator_bytes, out);
}

mps_status mps_reduce_encode_partials(mps_stream *stream, const mps_reduction *reduction, const mps_tensor *input, mps_reduce_plan *plan,
                                      mps_buffer **out_partials) {
  plan->arguments.raw = 1;
  apply_parameters(reduction, &plan->arguments);
  mps_status status = create_partials(stream, reduction, &plan->arguments, out_partials);
  if (status != MPS_STATUS_OK) return status;
  status = encode_first(stream, reduction, input, plan, *out_partials, NULL, NULL);
  if (status == MPS_STATUS_OK) return status;
  mps_buffer_release(*out_partials);
  *out_partials = NULL;
  return status;
}

mps_status mps_reduce_encode(mps_stream *stream, const mps_reduction *reduction, const mps_tensor *input, uint32_t mask, const mps_tensor *out,
                             const mps_tensor *second) {
  mps_reduce_plan plan;
  mps_reduce_plan_make(&plan, input, mask, out, second, reduction->ordered);
  if (plan.arguments.output_count == 0) return MPS_STATUS_OK;
  if (!reduction->always_raw) mps_reduce_plan_rows(&plan);
  apply_parameters(reduction, &plan.arguments);
  if (plan.arguments.chunk_count == 1 && !reduction->always_raw && !reduction->finish)
    return encode_first(stream, reduction, input, &plan, NULL, out, second);
  mps_buffer *partials;
  mps_status status = mps_reduce_encode_partials(stream, reduction, input, &plan, &partials);
  if (status != MPS_STATUS_OK) return status;
  status = encode_finish(stream, reduction, &plan.arguments, partials, out, second);
  mps_buffer_release(partials);
  return status;
}

mps_status mps_reduce_finish_sums(mps_stream *stream, const char *label, mps_buffer *partials, int64_t chunk_count, float divisor,
                                  const mps_tensor *out) {
  mps_reduction r = {.label = label, .kernel = "sum", .suffix = mps_dtype_name(out->dtype), .divisor = divisor};
  mps_reduce_plan plan;
  mps_reduce_plan_make(&plan, out, 0, out, NULL, false); /* nothing is reduced: the outputs, in order of their strides */
  if (plan.arguments.output_count == 0) return MPS_STATUS_OK;
  apply_parameters(&r, &plan.arguments);
  plan.arguments.chunk_count = chunk_count;
  return encode_finish(stream, &r, &plan.arguments, partials, out, NULL);
}

mps_status mps_reduce_run(mps_stream *stream, const mps_reduction *reduction, const mps_tensor *self, mps_dtype compute, uint32_t mask,
                          mps_dtype natural, const mps_tensor *out) {
  mps_tensor input;
  mps_buffer *owned;
  mps_status status = mps_operand_prepare(stream, self, compute, false, &input, &owned);
  if (status != MPS_STATUS_OK) return status;
  mps_result result;
  status = mps_result_begin(stream, out, natural, &input, false, &result);
  if (status == MPS_STATUS_OK) {
    status = mps_reduce_encode(stream, reduction, &input, mask, &result.tensor, NULL);
    status = mps_result_end(stream, &result, status);
  }
  mps_buffer_release(owned);
  return status;
}
