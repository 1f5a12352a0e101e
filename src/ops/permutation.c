/* SPDX-License-Identifier: BSD-3-Clause
 *
 * permutation: randperm. Numbers are dealt to buckets at random, and each bucket is shuffled; small permutations are one bucket.
 */
#include "openmps/library.h"
#include "openmps/ops/pointwise.h"
#include "openmps/ops/random.h"
#include "ops/operand.h"
#include "ops/random_plan.h"

/* What the passes share. */
typedef struct permutation {
  mps_stream *stream;
  const mps_permutation_plan *plan;
  const mps_tensor *dealt, *counts, *out;
} permutation;

static mps_status encode_pass(const permutation *p, const char *kernel, int64_t threads, double cost) {
  mps_pipeline *pipeline;
  mps_status status = mps_operand_pipeline(p->stream, kernel, NULL, &pipeline);
  if (status != MPS_STATUS_OK) return status;
  mps_encoder encoder;
  mps_encoder_begin(&encoder, p->stream, "randperm");
  mps_encoder_set_pipeline(&encoder, pipeline);
  mps_encoder_set_buffer(&encoder, 0, p->dealt->buffer, p->dealt->offset, MPS_ACCESS_READ_WRITE);
  mps_encoder_set_buffer(&encoder, 1, p->counts->buffer, p->counts->offset, MPS_ACCESS_READ_WRITE);
  mps_encoder_set_bytes(&encoder, 2, &p->plan->arguments, sizeof p->plan->arguments);
  mps_encoder_set_buffer(&encoder, 3, p->out->buffer, p->out->offset, MPS_ACCESS_WRITE);
  mps_encoder_set_cost(&encoder, cost);
  return mps_encoder_dispatch(&encoder, (uint64_t[]){(uint64_t)threads, 1, 1}, NULL);
}

static mps_status encode(const permutation *p) {
  const mps_permutation_arguments *a = &p->plan->arguments;
  mps_status status = MPS_STATUS_OK;
  if (a->bits) {
    status = encode_pass(p, "permutation_count", a->blocks, p->plan->deal_cost);
    if (status == MPS_STATUS_OK) status = encode_pass(p, "permutation_starts", 1, (double)p->plan->counts);
    if (status == MPS_STATUS_OK) status = encode_pass(p, "permutation_deal", a->blocks, p->plan->deal_cost);
  }
  return status == MPS_STATUS_OK ? encode_pass(p, "permutation_shuffle", (int64_t)1 << a->bits, p->plan->shuffle_cost) : status;
}

mps_status mps_op_randperm(mps_stream *stream, mps_generator *generator, const mps_tensor *out) {
  if (out->rank != 1) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "randperm(): expected a result of rank 1, got %u", out->rank);
  mps_permutation_plan plan;
  mps_status status = mps_permutation_plan_make(&plan, out->sizes[0]);
  if (status != MPS_STATUS_OK || out->sizes[0] == 0) return status;
  mps_tensor dealt, counts, made = *out;
  status = mps_operand_create(stream, MPS_DTYPE_U32, 1, out->sizes, &dealt);
  if (status != MPS_STATUS_OK) return status;
  status = mps_operand_create(stream, MPS_DTYPE_U32, 1, &plan.counts, &counts);
  if (status == MPS_STATUS_OK) {
    const bool direct = out->dtype == MPS_DTYPE_I64 && !out->flags && mps_tensor_is_contiguous(out);
    if (!direct) status = mps_operand_create(stream, MPS_DTYPE_I64, 1, out->sizes, &made);
    if (status == MPS_STATUS_OK) {
      plan.arguments.seed = mps_generator_seed(generator);
      plan.arguments.offset = mps_generator_advance(generator, plan.blocks);
      status = encode(&(permutation){stream, &plan, &dealt, &counts, &made});
      if (status == MPS_STATUS_OK && !direct) status = mps_op_copy(stream, &made, out);
      if (!direct) mps_buffer_release(made.buffer);
    }
    mps_buffer_release(counts.buffer);
  }
  mps_buffer_release(dealt.buffer);
  return status;
}
