/* SPDX-License-Identifier: BSD-3-Clause
 *
 * multinomial: samples of categories with replacement. (Without replacement is a top-k of weights divided by exponentials.)
 */
#include "openmps/library.h"
#include "openmps/ops/random.h"
#include "ops/operand.h"
#include "ops/random_plan.h"

static mps_status check(const mps_tensor *self, const mps_tensor *out) {
  if (self->rank != 2 || out->rank != 2 || out->sizes[0] != self->sizes[0] || out->dtype != MPS_DTYPE_I64 || !mps_tensor_is_contiguous(out))
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "multinomial(): expected weights of shape rows x categories and a contiguous int64 result rows x samples");
  if (self->sizes[1] == 0 && mps_tensor_element_count(out)) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "multinomial(): there are no categories");
  return MPS_STATUS_OK;
}

static void bind(mps_encoder *encoder, mps_stream *stream, mps_pipeline *pipeline, const mps_multinomial_arguments *arguments, const mps_tensor *weights,
                 const mps_tensor *sums) {
  mps_encoder_begin(encoder, stream, "multinomial");
  mps_encoder_set_pipeline(encoder, pipeline);
  mps_encoder_set_buffer(encoder, 0, weights->buffer, weights->offset, MPS_ACCESS_READ);
  mps_encoder_set_buffer(encoder, 1, sums->buffer, sums->offset, MPS_ACCESS_READ_WRITE);
  mps_encoder_set_bytes(encoder, 2, arguments, sizeof *arguments);
}

mps_status mps_op_multinomial(mps_stream *stream, const mps_tensor *self, mps_generator *generator, const mps_tensor *out) {
  mps_status status = check(self, out);
  if (status != MPS_STATUS_OK || mps_tensor_element_count(out) == 0) return status;
  mps_pipeline *sum, *search;
  status = mps_operand_pipeline(stream, "multinomial_sums", NULL, &sum);
  if (status == MPS_STATUS_OK) status = mps_operand_pipeline(stream, "multinomial_search", NULL, &search);
  if (status != MPS_STATUS_OK) return status;
  mps_tensor weights, sums;
  mps_buffer *owned;
  status = mps_operand_prepare(stream, self, MPS_DTYPE_F32, false, &weights, &owned);
  if (status != MPS_STATUS_OK) return status;
  mps_multinomial_plan plan;
  mps_multinomial_plan_make(&plan, &weights, out);
  status = mps_operand_create(stream, MPS_DTYPE_F32, 2, (int64_t[]){plan.arguments.rows, plan.arguments.blocks}, &sums);
  if (status == MPS_STATUS_OK) {
    plan.arguments.seed = mps_generator_seed(generator);
    plan.arguments.offset = mps_generator_advance(generator, plan.blocks);
    mps_encoder encoder;
    bind(&encoder, stream, sum, &plan.arguments, &weights, &sums);
    mps_encoder_set_error_buffer(&encoder, 3);
    mps_encoder_set_cost(&encoder, plan.sums_cost);
    status = mps_encoder_dispatch(&encoder, (uint64_t[]){plan.rows, 1, 1}, NULL);
    if (status == MPS_STATUS_OK) {
      bind(&encoder, stream, search, &plan.arguments, &weights, &sums);
      mps_encoder_set_buffer(&encoder, 3, out->buffer, out->offset, MPS_ACCESS_WRITE);
      mps_encoder_set_cost(&encoder, plan.search_cost);
      status = mps_encoder_dispatch(&encoder, (uint64_t[]){plan.samples, 1, 1}, NULL);
    }
    mps_buffer_release(sums.buffer);
  }
  mps_buffer_release(owned);
  return status;
}
