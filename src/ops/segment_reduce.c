/* SPDX-License-Identifier: BSD-3-Clause
 *
 * segment_reduce: reductions of neighbouring rows, and their gradients. Lengths become ends first; what does not fit is reported by the kernels.
 */
#include "openmps/ops/segment_reduce.h"

#include "graph/formula.h"
#include "openmps/library.h"
#include "openmps/ops/scan.h"
#include "ops/reduce.h"
#include "ops/segment_reduce_plan.h"

/* Where each segment ends, as int64. */
static mps_tensor ends_of(mps_operand_list *list, const mps_tensor *lengths) {
  const mps_tensor result = mps_operands_create(list, MPS_DTYPE_I64, lengths->rank, lengths->sizes);
  if (list->status == MPS_STATUS_OK) list->status = mps_op_cumsum(list->stream, lengths, -1, &result);
  return result;
}

static mps_status check_bounds(const mps_tensor *data, const mps_tensor *bounds, bool offsets, int64_t axis) {
  const char *name = offsets ? "offsets" : "lengths";
  if (bounds->rank == 0 || bounds->rank > data->rank || axis != (int64_t)bounds->rank - 1)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "segment_reduce(): Expected axis to be the last dimension of %s but got %lld.", name,
                         (long long)axis);
  if (bounds->dtype != MPS_DTYPE_I64 && bounds->dtype != MPS_DTYPE_I32)
    return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "\"_segment_reduce_%s_cpu_kernel1\" not implemented for '%s'", name,
                         mps_dtype_title(bounds->dtype));
  int64_t rows = 1, given = 1;
  for (uint32_t d = 0; d + 1 < bounds->rank; d++) {
    rows *= data->sizes[d];
    given *= bounds->sizes[d];
  }
  if (given < rows || (offsets && bounds->sizes[axis] == 0))
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "segment_reduce(): expected %s for %lld rows of data, got %lld", name, (long long)rows,
                         bounds->sizes[axis] ? (long long)given : 0LL);
  return MPS_STATUS_OK;
}

static mps_status check(const mps_tensor *data, const char *reduce, const mps_tensor *lengths, const mps_tensor *offsets, int64_t axis) {
  if (!lengths && !offsets) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "segment_reduce(): Either lengths or offsets must be defined.");
  if (mps_segment_reduce_mode(reduce) < 0)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "reduce argument must be either sum, prod, mean, amax or amin, got %s", reduce);
  mps_status status = check_bounds(data, offsets ? offsets : lengths, offsets != NULL, axis);
  if (status != MPS_STATUS_OK) return status;
  if (!mps_dtype_is_floating(data->dtype))
    return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "\"_segment_reduce_cpu\" not implemented for '%s'", mps_dtype_title(data->dtype));
  return MPS_STATUS_OK;
}

static bool is_result(const mps_tensor *result, const mps_tensor *data, const mps_segment_reduce_plan *plan, int64_t axis) {
  bool fits = result->dtype == data->dtype && result->rank == data->rank;
  for (uint32_t d = 0; fits && d < data->rank; d++) fits = result->sizes[d] == (d == (uint32_t)axis ? plan->arguments.segments : data->sizes[d]);
  return fits;
}

static mps_status begin(mps_encoder *encoder, mps_stream *stream, const char *stem, mps_dtype dtype) {
  mps_pipeline *pipeline;
  mps_status status = mps_operand_pipeline(stream, stem, mps_dtype_name(dtype), &pipeline);
  if (status != MPS_STATUS_OK) return status;
  mps_encoder_begin(encoder, stream, stem);
  mps_encoder_set_pipeline(encoder, pipeline);
  return MPS_STATUS_OK;
}

mps_status mps_op_segment_reduce(mps_stream *stream, const mps_tensor *data, const char *reduce, const mps_tensor *lengths, const mps_tensor *offsets,
                                 int64_t axis, const mps_scalar *initial, const mps_tensor *out) {
  mps_status status = check(data, reduce, lengths, offsets, axis);
  if (status != MPS_STATUS_OK) return status;
  const mps_tensor *given = offsets ? offsets : lengths;
  mps_segment_reduce_plan plan;
  mps_segment_reduce_plan_make(&plan, data, given, offsets != NULL, mps_segment_reduce_mode(reduce), initial);
  if (!is_result(out, data, &plan, axis) || !mps_tensor_is_contiguous(out) || mps_operands_overlap(out, data))
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "segment_reduce(): expected a contiguous result like data, with a row for each segment");
  if (mps_tensor_element_count(out) == 0) return MPS_STATUS_OK;
  mps_operand_list list = {.stream = stream};
  const mps_tensor from = mps_operands_prepare(&list, data, data->dtype, true);
  const mps_tensor bounds = offsets ? mps_operands_prepare(&list, offsets, MPS_DTYPE_I64, true) : ends_of(&list, lengths);
  mps_encoder encoder;
  if (list.status == MPS_STATUS_OK) list.status = begin(&encoder, stream, "segment_reduce", data->dtype);
  if (list.status == MPS_STATUS_OK) {
    mps_encoder_set_optional(&encoder, 0, &from, MPS_ACCESS_READ);
    mps_encoder_set_optional(&encoder, 1, &bounds, MPS_ACCESS_READ);
    mps_encoder_set_optional(&encoder, 2, out, MPS_ACCESS_WRITE);
    mps_encoder_set_bytes(&encoder, 3, &plan.arguments, sizeof plan.arguments);
    mps_encoder_set_error_buffer(&encoder, 4);
    mps_encoder_set_cost(&encoder, plan.cost);
    list.status = mps_encoder_dispatch(&encoder, plan.threads, NULL);
  }
  return mps_operands_finish(&list);
}

mps_status mps_op_segment_reduce_backward(mps_stream *stream, const mps_tensor *grad, const mps_tensor *output, const mps_tensor *data,
                                          const char *reduce, const mps_tensor *lengths, const mps_tensor *offsets, int64_t axis,
                                          const mps_scalar *initial, const mps_tensor *grad_input) {
  mps_status status = check(data, reduce, lengths, offsets, axis);
  if (status != MPS_STATUS_OK) return status;
  const mps_tensor *given = offsets ? offsets : lengths;
  mps_segment_reduce_plan plan;
  mps_segment_reduce_plan_make(&plan, data, given, offsets != NULL, mps_segment_reduce_mode(reduce), initial);
  if (!is_result(grad, data, &plan, axis) || !is_result(output, data, &plan, axis) || grad_input->dtype != data->dtype ||
      !mps_operands_same_shape(data, grad_input) || !mps_tensor_is_contiguous(grad_input))
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "segment_reduce_backward(): expected gradient and output with a row for each segment");
  if (mps_tensor_element_count(grad_input) == 0) return MPS_STATUS_OK;
  status = mps_operand_fill(stream, grad_input, mps_scalar_int(0));
  if (status != MPS_STATUS_OK || mps_tensor_element_count(grad) == 0) return status;
  mps_operand_list list = {.stream = stream};
  const mps_tensor g = mps_operands_prepare(&list, grad, grad->dtype, true);
  const mps_tensor value = mps_operands_prepare(&list, output, output->dtype, true);
  const mps_tensor from = mps_operands_prepare(&list, data, data->dtype, true);
  const mps_tensor bounds = offsets ? mps_operands_prepare(&list, offsets, MPS_DTYPE_I64, true) : ends_of(&list, lengths);
  mps_encoder encoder;
  if (list.status == MPS_STATUS_OK) list.status = begin(&encoder, stream, "segment_reduce_backward", data->dtype);
  if (list.status == MPS_STATUS_OK) {
    const mps_tensor *const read[] = {&g, &value, &from, &bounds};
    for (uint32_t i = 0; i < 4; i++) mps_encoder_set_optional(&encoder, i, read[i], MPS_ACCESS_READ);
    mps_encoder_set_optional(&encoder, 4, grad_input, MPS_ACCESS_READ_WRITE);
    mps_encoder_set_bytes(&encoder, 5, &plan.arguments, sizeof plan.arguments);
    mps_encoder_set_error_buffer(&encoder, 6);
    mps_encoder_set_cost(&encoder, 2.0 * plan.cost);
    list.status = mps_encoder_dispatch(&encoder, plan.threads, NULL);
  }
  return mps_operands_finish(&list);
}
