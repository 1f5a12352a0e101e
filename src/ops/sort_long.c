/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sort_long: sorts one long row with all threads, digit by digit; three passes each, which do nothing where all keys share the digit.
 */
#include "openmps/library.h"
#include "ops/operand.h"
#include "ops/sort_plan.h"

typedef struct long_sort {
  mps_stream *stream;
  const mps_tensor *self, *values, *indices;
  mps_buffer *keys, *order, *varies, *counts;
} long_sort;

static mps_status encode_pass(const long_sort *s, const char *stem, const char *suffix, const mps_sort_long_arguments *a, int64_t threads, double cost) {
  mps_pipeline *pipeline;
  mps_status status = mps_operand_pipeline(s->stream, stem, suffix, &pipeline);
  if (status != MPS_STATUS_OK) return status;
  mps_encoder encoder;
  mps_encoder_begin(&encoder, s->stream, "sort");
  mps_encoder_set_pipeline(&encoder, pipeline);
  mps_encoder_set_buffer(&encoder, 0, s->self->buffer, s->self->offset, MPS_ACCESS_READ);
  mps_encoder_set_buffer(&encoder, 1, s->values->buffer, s->values->offset, MPS_ACCESS_WRITE);
  mps_encoder_set_buffer(&encoder, 2, s->indices->buffer, s->indices->offset, MPS_ACCESS_WRITE);
  mps_encoder_set_bytes(&encoder, 3, a, sizeof *a);
  mps_encoder_set_buffer(&encoder, 4, s->keys, 0, MPS_ACCESS_READ_WRITE);
  mps_encoder_set_buffer(&encoder, 5, s->order, 0, MPS_ACCESS_READ_WRITE);
  mps_encoder_set_buffer(&encoder, 6, s->varies, 0, MPS_ACCESS_READ_WRITE);
  mps_encoder_set_buffer(&encoder, 7, s->counts, 0, MPS_ACCESS_READ_WRITE);
  mps_encoder_set_cost(&encoder, cost);
  return mps_encoder_dispatch(&encoder, (uint64_t[]){(uint64_t)threads, 1, 1}, NULL);
}

static mps_status encode(const long_sort *s, const mps_sort_long_plan *plan) {
  mps_sort_long_arguments a = plan->arguments;
  const double length = (double)a.length; /* costs are nanoseconds an element */
  mps_status status = encode_pass(s, "sort_long_load", plan->suffix, &a, a.blocks, length);
  for (a.digit = 0; status == MPS_STATUS_OK && a.digit < a.digits; a.digit++) {
    status = encode_pass(s, "sort_long_count", plan->key_suffix, &a, a.blocks, length);
    if (status == MPS_STATUS_OK) status = encode_pass(s, "sort_long_starts", plan->key_suffix, &a, 1, 256.0 * (double)a.blocks);
    if (status == MPS_STATUS_OK) status = encode_pass(s, "sort_long_move", plan->key_suffix, &a, a.blocks, 3.0 * length);
  }
  return status == MPS_STATUS_OK ? encode_pass(s, "sort_long_store", plan->suffix, &a, a.blocks, 2.0 * length) : status;
}

mps_status mps_sort_long(mps_stream *stream, const mps_sort_long_plan *plan, const mps_tensor *self, const mps_tensor *values, const mps_tensor *indices) {
  mps_device *device = mps_stream_device(stream);
  long_sort s = {.stream = stream, .self = self, .values = values, .indices = indices};
  mps_status status = mps_buffer_create(device, stream, plan->key_bytes, &s.keys);
  if (status == MPS_STATUS_OK) status = mps_buffer_create(device, stream, plan->order_bytes, &s.order);
  if (status == MPS_STATUS_OK) status = mps_buffer_create(device, stream, plan->varies_bytes, &s.varies);
  if (status == MPS_STATUS_OK) status = mps_buffer_create(device, stream, plan->count_bytes, &s.counts);
  if (status == MPS_STATUS_OK) status = encode(&s, plan);
  mps_buffer_release(s.counts);
  mps_buffer_release(s.varies);
  mps_buffer_release(s.order);
  mps_buffer_release(s.keys);
  return status;
}
