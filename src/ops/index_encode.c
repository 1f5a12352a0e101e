/* SPDX-License-Identifier: BSD-3-Clause
 *
 * index_encode: runs indexing plans: picks the kernel, binds, dispatches.
 */
#include "ops/index_encode.h"

#include "graph/formula.h"
#include "openmps/library.h"
#include "ops/operand.h"

enum { MOST_SLICES = 8 /* each reads all indices */ };

mps_status mps_index_check(const mps_tensor *index, const char *label) {
  if (index->dtype == MPS_DTYPE_I64 || index->dtype == MPS_DTYPE_I32 || mps_tensor_element_count(index) == 0) return MPS_STATUS_OK;
  return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): Expected dtype int32/int64 for index, but got %s", label, mps_dtype_name(index->dtype));
}

static mps_status dispatch(mps_stream *stream, const char *label, mps_pipeline *pipeline, const mps_index_plan *plan, const mps_tensor *data,
                           const mps_tensor *index, const mps_tensor *values, bool reading) {
  mps_encoder encoder;
  mps_encoder_begin(&encoder, stream, label);
  mps_encoder_set_pipeline(&encoder, pipeline);
  if (data) mps_encoder_set_buffer(&encoder, 0, data->buffer, data->offset, reading ? MPS_ACCESS_READ : MPS_ACCESS_READ_WRITE);
  mps_encoder_set_buffer(&encoder, 1, index->buffer, index->offset, MPS_ACCESS_READ);
  uint64_t constant[2] = {0, 0};
  if (values->buffer) {
    mps_encoder_set_buffer(&encoder, 2, values->buffer, values->offset, reading ? MPS_ACCESS_WRITE : MPS_ACCESS_READ);
  } else {
    mps_scalar_store(values->constant, values->dtype, constant);
    mps_encoder_set_bytes(&encoder, 2, constant, sizeof constant);
  }
  mps_encoder_set_bytes(&encoder, 3, &plan->arguments, sizeof plan->arguments);
  mps_encoder_set_error_buffer(&encoder, 4);
  mps_encoder_set_cost(&encoder, plan->cost);
  return mps_encoder_dispatch(&encoder, plan->threads, NULL);
}

mps_status mps_index_read(mps_stream *stream, const char *label, const mps_index_space *space, const mps_tensor *data, const mps_tensor *index,
                          const mps_tensor *values) {
  mps_index_plan plan;
  mps_index_plan_read(space, &plan);
  if (plan.threads[0] == 0) return MPS_STATUS_OK;
  mps_pipeline *pipeline;
  mps_status status = mps_operand_pipeline(stream, "index_read", mps_operand_bytes_suffix(values->dtype), &pipeline);
  if (status != MPS_STATUS_OK) return status;
  return dispatch(stream, label, pipeline, &plan, data, index, values, true);
}

static mps_status write(mps_stream *stream, const char *label, mps_index_reduction reduction, const mps_index_space *space, uint32_t slices,
                        const mps_tensor *data, const mps_tensor *index, const mps_tensor *values) {
  mps_index_plan plan;
  mps_index_plan_write(space, slices, &plan);
  if (plan.threads[0] == 0) return MPS_STATUS_OK;
  const char *stem, *suffix;
  mps_index_write_kernel(reduction, values->dtype, &stem, &suffix);
  mps_pipeline *pipeline;
  mps_status status = mps_operand_pipeline(stream, stem, suffix, &pipeline);
  if (status == MPS_STATUS_NOT_FOUND)
    return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", label, mps_dtype_title(values->dtype));
  if (status != MPS_STATUS_OK) return status;
  return dispatch(stream, label, pipeline, &plan, data, index, values, false);
}

static mps_status join(mps_stream *stream, const char *label, mps_index_reduction reduction, const mps_index_space *space, const mps_tensor *data,
                       const mps_tensor *copies, uint32_t parts) {
  const char *stem, *suffix;
  mps_index_join_kernel(reduction, data->dtype, &stem, &suffix);
  mps_pipeline *pipeline;
  mps_status status = mps_operand_pipeline(stream, stem, suffix, &pipeline);
  if (status != MPS_STATUS_OK) return status;
  const mps_index_join_arguments a = {.size = space->index_size, .step = space->index_step, .parts = parts, .block = MPS_INDEX_JOIN_BLOCK};
  mps_encoder encoder;
  mps_encoder_begin(&encoder, stream, label);
  mps_encoder_set_pipeline(&encoder, pipeline);
  mps_encoder_set_buffer(&encoder, 0, data->buffer, data->offset, MPS_ACCESS_READ_WRITE);
  mps_encoder_set_buffer(&encoder, 1, copies->buffer, copies->offset, MPS_ACCESS_READ);
  mps_encoder_set_bytes(&encoder, 2, &a, sizeof a);
  mps_encoder_set_cost(&encoder, 0.3 * (double)a.size * (double)parts);
  return mps_encoder_dispatch(&encoder, (uint64_t[]){(uint64_t)((a.size + a.block - 1) / a.block), 1, 1}, NULL);
}

/* The tensor from its element number `first` on, `stride` apart. */
static mps_tensor behind(const mps_tensor *tensor, int64_t first, int64_t stride) {
  mps_tensor result = *tensor;
  if (result.buffer) result.offset = (uint64_t)((int64_t)result.offset + first * stride * (int64_t)mps_dtype_size(result.dtype));
  return result;
}

/* Each part of the walk goes into a copy of its own; these are joined with data, and what is left over comes last. */
static mps_status write_in_parts(mps_stream *stream, const char *label, mps_index_reduction reduction, const mps_index_space *space,
                                 const mps_tensor *data, const mps_tensor *index, const mps_tensor *values, uint32_t parts, mps_scalar neutral) {
  mps_index_space over_parts, rest;
  const int64_t taken = mps_index_space_parts(space, parts, &over_parts);
  mps_tensor copies;
  mps_status status = mps_operand_create(stream, data->dtype, 2, (int64_t[]){parts, space->index_size}, &copies);
  if (status != MPS_STATUS_OK) return status;
  status = mps_operand_fill(stream, &copies, neutral);
  if (status == MPS_STATUS_OK) status = write(stream, label, reduction, &over_parts, 1, &copies, index, values);
  if (status == MPS_STATUS_OK) status = join(stream, label, reduction, space, data, &copies, parts);
  mps_buffer_release(copies.buffer);
  mps_index_space_rest(space, taken, &rest);
  const mps_tensor last_index = behind(index, taken, rest.index[0]), last_values = behind(values, taken, rest.value[0]);
  return status == MPS_STATUS_OK ? write(stream, label, reduction, &rest, 1, data, &last_index, &last_values) : status;
}

mps_status mps_index_write(mps_stream *stream, const char *label, mps_index_reduction reduction, const mps_index_space *space,
                           const mps_tensor *data, const mps_tensor *index, const mps_tensor *values) {
  mps_scalar neutral;
  const uint32_t parts = mps_index_neutral(reduction, data->dtype, &neutral) ? mps_index_plan_parts(space) : 1;
  const uint32_t cores = mps_device_get_info(mps_stream_device(stream))->core_count;
  if (parts == 1) return write(stream, label, reduction, space, cores < MOST_SLICES ? cores : MOST_SLICES, data, index, values);
  return write_in_parts(stream, label, reduction, space, data, index, values, parts, neutral);
}

mps_status mps_index_accumulator(mps_stream *stream, const mps_tensor *data, mps_index_reduction reduction, mps_tensor *out_tensor,
                                 mps_buffer **out_owned) {
  *out_owned = NULL;
  *out_tensor = *data;
  const mps_dtype kept_in = mps_operand_sum_dtype(data->dtype);
  if (reduction == MPS_INDEX_ASSIGN || kept_in == data->dtype) return MPS_STATUS_OK;
  mps_status status = mps_operand_copy(stream, data, kept_in, out_tensor);
  if (status == MPS_STATUS_OK) *out_owned = out_tensor->buffer;
  return status;
}
