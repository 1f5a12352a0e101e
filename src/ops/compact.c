/* SPDX-License-Identifier: BSD-3-Clause
 *
 * compact: operators whose result is what a mask picks: masked_select, nonzero, masked_scatter. The count of a mask is a result of its
 * own (mask_count): whoever sizes the output reads it first, which waits.
 */
#include <string.h>

#include "openmps/library.h"
#include "openmps/ops/index.h"
#include "openmps/ops/pointwise.h"
#include "ops/index_plan.h"
#include "ops/operand.h"

/* A mask, contiguous, with the starts of its blocks (int64, one more than there are blocks: the last is the count of all). */
typedef struct compaction {
  mps_tensor mask;
  mps_buffer *mask_owned;
  mps_tensor starts;
  mps_compact_arguments arguments;
  uint64_t blocks;
} compaction;

static void compaction_end(compaction *c) {
  mps_buffer_release(c->mask_owned);
  mps_buffer_release(c->starts.buffer);
}

static void bind(mps_encoder *encoder, mps_stream *stream, const char *label, mps_pipeline *pipeline, const compaction *c, mps_access starts) {
  mps_encoder_begin(encoder, stream, label);
  mps_encoder_set_pipeline(encoder, pipeline);
  mps_encoder_set_buffer(encoder, 0, c->mask.buffer, c->mask.offset, MPS_ACCESS_READ);
  mps_encoder_set_buffer(encoder, 1, c->starts.buffer, c->starts.offset, starts);
  mps_encoder_set_bytes(encoder, 2, &c->arguments, sizeof c->arguments);
  mps_encoder_set_cost(encoder, (double)c->arguments.count);
}

/* Counts each block; starts[b + 1] = count of block b. */
static mps_status count_blocks(mps_stream *stream, const char *label, const compaction *c) {
  mps_pipeline *pipeline;
  mps_status status = mps_operand_pipeline(stream, "compact_count", NULL, &pipeline);
  if (status != MPS_STATUS_OK) return status;
  compaction shifted = *c;
  shifted.starts.offset += sizeof(int64_t);
  mps_encoder encoder;
  bind(&encoder, stream, label, pipeline, &shifted, MPS_ACCESS_WRITE);
  return mps_encoder_dispatch(&encoder, (uint64_t[]){c->blocks, 1, 1}, NULL);
}

/* Makes starts from counts, as a running sum, on the device. */
static mps_status compaction_begin(mps_stream *stream, const char *label, const mps_tensor *mask, compaction *c) {
  memset(c, 0, sizeof *c);
  c->blocks = mps_compact_plan_make(&c->arguments, mask);
  mps_status status = mps_operand_prepare(stream, mask, MPS_DTYPE_BOOL, true, &c->mask, &c->mask_owned);
  int64_t length = (int64_t)c->blocks + 1;
  if (status == MPS_STATUS_OK) status = mps_operand_create(stream, MPS_DTYPE_I64, 1, &length, &c->starts);
  if (status == MPS_STATUS_OK) status = mps_stream_fill(stream, c->starts.buffer, 0, sizeof(int64_t), 0);
  if (status == MPS_STATUS_OK && c->blocks) status = count_blocks(stream, label, c);
  mps_pipeline *pipeline = NULL;
  if (status == MPS_STATUS_OK) status = mps_operand_pipeline(stream, "compact_starts", NULL, &pipeline);
  if (status == MPS_STATUS_OK) {
    mps_encoder encoder;
    bind(&encoder, stream, label, pipeline, c, MPS_ACCESS_READ_WRITE);
    status = mps_encoder_dispatch(&encoder, (uint64_t[]){1, 1, 1}, NULL);
  }
  if (status != MPS_STATUS_OK) compaction_end(c);
  return status;
}

mps_status mps_op_mask_count(mps_stream *stream, const mps_tensor *mask, const mps_tensor *out) {
  if (out->dtype != MPS_DTYPE_I64 || mps_tensor_element_count(out) != 1)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "mask_count(): expected one int64 element for the result");
  compaction c;
  mps_status status = compaction_begin(stream, "nonzero", mask, &c);
  if (status != MPS_STATUS_OK) return status;
  status = mps_stream_copy(stream, c.starts.buffer, c.blocks * sizeof(int64_t), out->buffer, out->offset, sizeof(int64_t));
  compaction_end(&c);
  return status;
}

/* `kernel` over the blocks of a compaction, from `source` to `destination`. */
static mps_status move(mps_stream *stream, const char *label, const char *kernel, const char *suffix, const compaction *c, const mps_tensor *source,
                       const mps_tensor *destination, uint32_t destination_index) {
  mps_pipeline *pipeline;
  mps_status status = mps_operand_pipeline(stream, kernel, suffix, &pipeline);
  if (status != MPS_STATUS_OK) return status;
  mps_encoder encoder;
  bind(&encoder, stream, label, pipeline, c, MPS_ACCESS_READ);
  if (source) mps_encoder_set_buffer(&encoder, 3, source->buffer, source->offset, MPS_ACCESS_READ);
  mps_encoder_set_buffer(&encoder, destination_index, destination->buffer, destination->offset, MPS_ACCESS_READ_WRITE);
  return mps_encoder_dispatch(&encoder, (uint64_t[]){c->blocks, 1, 1}, NULL);
}

mps_status mps_op_masked_select(mps_stream *stream, const mps_tensor *self, const mps_tensor *mask, const mps_tensor *out) {
  if (!mps_operands_same_shape(self, mask) || self->dtype != out->dtype)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "masked_select(): self and mask must have one shape, self and out one dtype");
  if (mps_tensor_element_count(out) == 0) return MPS_STATUS_OK;
  compaction c;
  mps_status status = compaction_begin(stream, "masked_select", mask, &c);
  if (status != MPS_STATUS_OK) return status;
  c.arguments.row_stride = out->rank ? out->strides[0] : 1;
  mps_tensor values;
  mps_buffer *owned;
  status = mps_operand_prepare(stream, self, self->dtype, true, &values, &owned);
  if (status == MPS_STATUS_OK) {
    status = move(stream, "masked_select", "compact_values", mps_operand_bytes_suffix(self->dtype), &c, &values, out, 4);
    mps_buffer_release(owned);
  }
  compaction_end(&c);
  return status;
}

mps_status mps_op_nonzero(mps_stream *stream, const mps_tensor *self, const mps_tensor *out) {
  if (out->dtype != MPS_DTYPE_I64 || out->rank != 2 || out->sizes[1] != (int64_t)self->rank)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "nonzero(): expected an int64 result of shape count x rank of self");
  if (mps_tensor_element_count(out) == 0) return MPS_STATUS_OK;
  compaction c;
  mps_status status = compaction_begin(stream, "nonzero", self, &c);
  if (status != MPS_STATUS_OK) return status;
  c.arguments.row_stride = out->strides[0];
  c.arguments.column_stride = out->strides[1];
  c.arguments.limit = out->sizes[0];
  status = move(stream, "nonzero", "compact_coordinates", NULL, &c, NULL, out, 3);
  compaction_end(&c);
  return status;
}

mps_status mps_op_masked_scatter(mps_stream *stream, const mps_tensor *mask, const mps_tensor *source, const mps_tensor *out) {
  if (!mps_operands_same_shape(out, mask) || source->dtype != out->dtype)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "masked_scatter(): mask must have the shape, source the dtype of the result");
  if (mps_tensor_element_count(out) == 0) return MPS_STATUS_OK;
  compaction c;
  mps_status status = compaction_begin(stream, "masked_scatter", mask, &c);
  if (status != MPS_STATUS_OK) return status;
  mps_tensor values, target;
  mps_buffer *values_owned = NULL, *target_owned = NULL;
  status = mps_operand_prepare(stream, source, source->dtype, true, &values, &values_owned);
  if (status == MPS_STATUS_OK) status = mps_operand_prepare(stream, out, out->dtype, true, &target, &target_owned);
  if (status == MPS_STATUS_OK) status = move(stream, "masked_scatter", "compact_scatter", mps_operand_bytes_suffix(out->dtype), &c, &values, &target, 4);
  if (status == MPS_STATUS_OK && target_owned) status = mps_op_copy(stream, &target, out);
  mps_buffer_release(target_owned);
  mps_buffer_release(values_owned);
  compaction_end(&c);
  return status;
}
