/* SPDX-License-Identifier: BSD-3-Clause
 *
 * index_encode: runs indexing plans: picks the kernel, binds, dispatches.
 */
#include "ops/index_encode.h"

#include "graph/formula.h"
#include "openmps/library.h"
#include "ops/operand.h"

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

mps_status mps_index_write(mps_stream *stream, const char *label, mps_index_reduction reduction, const mps_index_space *space,
                           const mps_tensor *data, const mps_tensor *index, const mps_tensor *values) {
  mps_index_plan plan;
  uint32_t cores = mps_device_get_info(mps_stream_device(stream))->core_count;
  mps_index_plan_write(space, cores < 8 ? cores : 8, &plan);
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
