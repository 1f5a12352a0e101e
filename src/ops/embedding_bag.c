/* SPDX-License-Identifier: BSD-3-Clause
 *
 * embedding_bag: sums, means and maxima of embeddings, bag by bag, and their gradients.
 */
#include "openmps/ops/embedding_bag.h"

#include "graph/formula.h"
#include "openmps/library.h"
#include "openmps/ops/pointwise.h"
#include "ops/embedding.h"
#include "ops/embedding_bag_plan.h"
#include "ops/index_encode.h"
#include "ops/reduce.h"

/* What a kernel writes as `dtype` in place of `out`: out itself where it fits. */
static mps_tensor target(mps_operand_list *list, const mps_tensor *out, mps_dtype dtype) {
  return out->dtype == dtype && mps_tensor_is_contiguous(out) ? *out : mps_operands_create(list, dtype, out->rank, out->sizes);
}

static void deliver(mps_operand_list *list, const mps_tensor *made, const mps_tensor *out) {
  if (list->status == MPS_STATUS_OK && !mps_operands_equal(made, out)) list->status = mps_op_copy(list->stream, made, out);
}

static mps_status dispatch(mps_encoder *encoder, const mps_embedding_bag_plan *plan) {
  mps_encoder_set_bytes(encoder, 8, &plan->arguments, sizeof plan->arguments);
  mps_encoder_set_error_buffer(encoder, 9);
  mps_encoder_set_cost(encoder, plan->cost);
  return mps_encoder_dispatch(encoder, plan->threads, NULL);
}

static mps_status check(const char *label, const mps_tensor *weight, const mps_tensor *indices, const mps_tensor *offsets, int64_t mode) {
  mps_status status = mps_index_check(indices, label);
  if (status == MPS_STATUS_OK) status = mps_index_check(offsets, label);
  if (status != MPS_STATUS_OK) return status;
  if (weight->rank != 2 || indices->rank != 1 || mode < MPS_EMBEDDING_BAG_SUM || mode > MPS_EMBEDDING_BAG_MAX)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): expected a matrix, indices of rank 1 and a mode of 0, 1 or 2", label);
  if (!mps_dtype_is_floating(weight->dtype))
    return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", label, mps_dtype_title(weight->dtype));
  return MPS_STATUS_OK;
}

static mps_status start(mps_encoder *encoder, mps_stream *stream, const char *label, const char *stem, mps_dtype dtype) {
  mps_pipeline *pipeline;
  mps_status status = mps_operand_pipeline(stream, stem, mps_dtype_name(dtype), &pipeline);
  if (status != MPS_STATUS_OK) return status;
  mps_encoder_begin(encoder, stream, label);
  mps_encoder_set_pipeline(encoder, pipeline);
  return MPS_STATUS_OK;
}

mps_status mps_op_embedding_bag(mps_stream *stream, const mps_tensor *weight, const mps_tensor *indices, const mps_tensor *offsets, int64_t mode,
                                const mps_tensor *per_sample_weights, bool ends_with_last_offset, int64_t padding_idx, const mps_tensor *out,
                                const mps_tensor *offset2bag, const mps_tensor *bag_size, const mps_tensor *maximum_indices) {
  static const char label[] = "embedding_bag";
  mps_status status = check(label, weight, indices, offsets, mode);
  if (status != MPS_STATUS_OK) return status;
  const bool wants_bag_of = mps_tensor_element_count(offset2bag) > 0;
  if (out->rank != 2 || out->dtype != weight->dtype || offsets->sizes[0] < out->sizes[0] + ends_with_last_offset ||
      (wants_bag_of && offset2bag->sizes[0] != indices->sizes[0]) || (mode && bag_size->sizes[0] != out->sizes[0]) ||
      (mode == MPS_EMBEDDING_BAG_MAX && (!maximum_indices || !mps_operands_same_shape(maximum_indices, out))))
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): the shapes of the results do not fit", label);
  if (out->sizes[0] == 0) return MPS_STATUS_OK;

  mps_operand_list list = {.stream = stream};
  const mps_tensor rows = mps_operands_prepare(&list, weight, weight->dtype, false);
  const mps_tensor index = mps_operands_prepare(&list, indices, MPS_DTYPE_I64, true);
  const mps_tensor offset = mps_operands_prepare(&list, offsets, MPS_DTYPE_I64, true), to = target(&list, out, out->dtype);
  const mps_tensor scales = per_sample_weights ? mps_operands_prepare(&list, per_sample_weights, weight->dtype, true) : (mps_tensor){0};
  const mps_tensor bag_of = wants_bag_of ? target(&list, offset2bag, MPS_DTYPE_I64) : (mps_tensor){0};
  const mps_tensor sizes = mode ? target(&list, bag_size, MPS_DTYPE_I64) : (mps_tensor){0};
  const mps_tensor maxima = mode == MPS_EMBEDDING_BAG_MAX ? target(&list, maximum_indices, MPS_DTYPE_I64) : (mps_tensor){0};
  mps_embedding_bag_plan plan;
  mps_embedding_bag_plan_forward(&plan, &rows, indices, mode, out);
  plan.arguments.padding = padding_idx;
  plan.arguments.has_scales = per_sample_weights != NULL;
  plan.arguments.has_last = ends_with_last_offset;
  plan.arguments.wants_bag_of = wants_bag_of;
  mps_encoder encoder;
  if (list.status == MPS_STATUS_OK) list.status = start(&encoder, stream, label, "embedding_bag", weight->dtype);
  if (list.status == MPS_STATUS_OK) {
    const mps_tensor *const read[] = {&rows, &index, &offset, &scales}, *const written[] = {&to, &bag_of, &sizes, &maxima};
    for (uint32_t i = 0; i < 4; i++) {
      mps_encoder_set_optional(&encoder, i, read[i], MPS_ACCESS_READ);
      mps_encoder_set_optional(&encoder, 4 + i, written[i], MPS_ACCESS_WRITE);
    }
    list.status = dispatch(&encoder, &plan);
  }
  deliver(&list, &to, out);
  if (wants_bag_of) deliver(&list, &bag_of, offset2bag);
  if (mode) deliver(&list, &sizes, bag_size);
  if (mode == MPS_EMBEDDING_BAG_MAX) deliver(&list, &maxima, maximum_indices);
  return mps_operands_finish(&list);
}

mps_status mps_op_embedding_bag_dense_backward(mps_stream *stream, const mps_tensor *grad, const mps_tensor *indices, const mps_tensor *offset2bag,
                                               const mps_tensor *bag_size, const mps_tensor *maximum_indices, bool scale_grad_by_freq, int64_t mode,
                                               const mps_tensor *per_sample_weights, int64_t padding_idx, const mps_tensor *out) {
  static const char label[] = "embedding_bag_dense_backward";
  mps_status status = check(label, grad, indices, offset2bag, mode);
  if (status != MPS_STATUS_OK) return status;
  if (out->rank != 2 || out->dtype != grad->dtype || out->sizes[1] != grad->sizes[1] ||
      (mode != MPS_EMBEDDING_BAG_MAX && offset2bag->sizes[0] != indices->sizes[0]) || (mode && bag_size->sizes[0] != grad->sizes[0]) ||
      (mode == MPS_EMBEDDING_BAG_MAX && !mps_operands_same_shape(maximum_indices, grad)))
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): the shapes of the arguments do not fit", label);
  status = mps_operand_fill(stream, out, mps_scalar_int(0));
  if (status != MPS_STATUS_OK || mps_tensor_element_count(out) == 0 || mps_tensor_element_count(grad) == 0 || indices->sizes[0] == 0) return status;

  mps_operand_list list = {.stream = stream};
  const bool max = mode == MPS_EMBEDDING_BAG_MAX;
  const mps_tensor rows = mps_operands_prepare(&list, grad, grad->dtype, true), index = mps_operands_prepare(&list, indices, MPS_DTYPE_I64, true);
  const mps_tensor bag_of = max ? (mps_tensor){0} : mps_operands_prepare(&list, offset2bag, MPS_DTYPE_I64, true);
  const mps_tensor scales = per_sample_weights && !max ? mps_operands_prepare(&list, per_sample_weights, grad->dtype, true) : (mps_tensor){0};
  const mps_tensor sizes = mode ? mps_operands_prepare(&list, bag_size, MPS_DTYPE_I64, true) : (mps_tensor){0};
  const mps_tensor maxima = max ? mps_operands_prepare(&list, maximum_indices, MPS_DTYPE_I64, true) : (mps_tensor){0};
  const mps_tensor sums = target(&list, out, MPS_DTYPE_F32);
  if (list.status == MPS_STATUS_OK && !mps_operands_equal(&sums, out)) list.status = mps_operand_fill(stream, &sums, mps_scalar_int(0));
  mps_embedding_bag_plan plan;
  mps_embedding_bag_plan_gradient(&plan, grad, indices, mode, mps_device_get_info(mps_stream_device(stream))->core_count, out);
  plan.arguments.padding = padding_idx;
  plan.arguments.has_scales = scales.buffer != NULL;
  mps_encoder encoder;
  if (list.status == MPS_STATUS_OK) list.status = start(&encoder, stream, label, "embedding_bag_gradient", grad->dtype);
  if (list.status == MPS_STATUS_OK) {
    const mps_tensor *const read[] = {&rows, &index, &bag_of, &scales, NULL, NULL, &sizes, &maxima};
    for (uint32_t i = 0; i < 8; i++)
      if (i != 4 && i != 5) mps_encoder_set_optional(&encoder, i, read[i], MPS_ACCESS_READ);
    mps_encoder_set_optional(&encoder, 4, &sums, MPS_ACCESS_READ_WRITE);
    list.status = dispatch(&encoder, &plan);
  }
  if (list.status == MPS_STATUS_OK && scale_grad_by_freq && !max)
    list.status = mps_embedding_scale_by_frequency(stream, &index, padding_idx >= 0 ? padding_idx : INT64_MIN, &sums);
  deliver(&list, &sums, out);
  return mps_operands_finish(&list);
}

mps_status mps_op_embedding_bag_per_sample_weights_backward(mps_stream *stream, const mps_tensor *grad, const mps_tensor *weight,
                                                            const mps_tensor *indices, const mps_tensor *offset2bag, int64_t padding_idx,
                                                            const mps_tensor *out) {
  static const char label[] = "embedding_bag_per_sample_weights_backward";
  mps_status status = check(label, weight, indices, offset2bag, MPS_EMBEDDING_BAG_SUM);
  if (status != MPS_STATUS_OK) return status;
  if (grad->rank != 2 || out->rank != 1 || out->dtype != grad->dtype || weight->dtype != grad->dtype || weight->sizes[1] != grad->sizes[1] ||
      out->sizes[0] != indices->sizes[0] || offset2bag->sizes[0] != indices->sizes[0])
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): the shapes of the arguments do not fit", label);
  if (out->sizes[0] == 0) return MPS_STATUS_OK;
  mps_operand_list list = {.stream = stream};
  const mps_tensor from = mps_operands_prepare(&list, grad, grad->dtype, true), index = mps_operands_prepare(&list, indices, MPS_DTYPE_I64, true);
  const mps_tensor bag_of = mps_operands_prepare(&list, offset2bag, MPS_DTYPE_I64, true);
  const mps_tensor rows = mps_operands_prepare(&list, weight, weight->dtype, false);
  const mps_tensor to = target(&list, out, out->dtype);
  mps_embedding_bag_plan plan;
  mps_embedding_bag_plan_scale_gradient(&plan, grad, &rows, indices);
  plan.arguments.padding = padding_idx;
  mps_encoder encoder;
  if (list.status == MPS_STATUS_OK) list.status = start(&encoder, stream, label, "embedding_bag_scale_gradient", grad->dtype);
  if (list.status == MPS_STATUS_OK) {
    const mps_tensor *const read[] = {&from, &index, &bag_of, &rows};
    for (uint32_t i = 0; i < 4; i++) mps_encoder_set_optional(&encoder, i, read[i], MPS_ACCESS_READ);
    mps_encoder_set_optional(&encoder, 4, &to, MPS_ACCESS_WRITE);
    list.status = dispatch(&encoder, &plan);
  }
  deliver(&list, &to, out);
  return mps_operands_finish(&list);
}

mps_status mps_op_embedding_bag_offset2bag(mps_stream *stream, const mps_tensor *offsets, const mps_tensor *offset2bag) {
  static const char label[] = "embedding_bag_offset2bag";
  mps_status status = mps_index_check(offsets, label);
  if (status == MPS_STATUS_OK) status = mps_index_check(offset2bag, label);
  if (status != MPS_STATUS_OK) return status;
  if (offsets->rank != 1 || offset2bag->rank != 1 || (offsets->sizes[0] == 0 && offset2bag->sizes[0] > 0))
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): expected offsets and a result of rank 1", label);
  if (offset2bag->sizes[0] == 0) return MPS_STATUS_OK;
  mps_operand_list list = {.stream = stream};
  const mps_tensor offset = mps_operands_prepare(&list, offsets, MPS_DTYPE_I64, true), to = target(&list, offset2bag, MPS_DTYPE_I64);
  mps_embedding_bag_plan plan;
  mps_embedding_bag_plan_bag_of(&plan, offsets, offset2bag);
  mps_pipeline *pipeline;
  if (list.status == MPS_STATUS_OK) list.status = mps_operand_pipeline(stream, "embedding_bag_of", NULL, &pipeline);
  if (list.status == MPS_STATUS_OK) {
    mps_encoder encoder;
    mps_encoder_begin(&encoder, stream, label);
    mps_encoder_set_pipeline(&encoder, pipeline);
    mps_encoder_set_optional(&encoder, 2, &offset, MPS_ACCESS_READ);
    mps_encoder_set_optional(&encoder, 5, &to, MPS_ACCESS_WRITE);
    list.status = dispatch(&encoder, &plan);
  }
  deliver(&list, &to, offset2bag);
  return mps_operands_finish(&list);
}
