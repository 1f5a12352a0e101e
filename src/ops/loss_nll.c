/* SPDX-License-Identifier: BSD-3-Clause
 *
 * loss_nll: the negative log likelihood of class targets: input [C], [N, C] or [N, C, ...], target of the same shape without C.
 */
#include "graph/formula.h"
#include "kernels/loss_arguments.h"
#include "openmps/ops/loss.h"
#include "ops/norm.h"

/* Nanoseconds a target on one core, an estimate. */
#define TARGET_COST 3.0

typedef struct nll {
  const char *label;
  mps_operand_list temporaries;
  mps_nll_arguments arguments;
  mps_tensor storage[2];
  const mps_tensor *target, *weight;
} nll;

static mps_status check(const char *label, const mps_tensor *self, const mps_tensor *target, const mps_tensor *weight, mps_nll_arguments *a) {
  if (!mps_dtype_is_floating(self->dtype))
    return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", label, mps_dtype_title(self->dtype));
  if (target->dtype != MPS_DTYPE_I64 && target->dtype != MPS_DTYPE_U8)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "expected target dtype to be Long or Byte, but got %s", mps_dtype_name(target->dtype));
  if (self->rank == 0) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "input tensor should be 1D or more");
  uint32_t class_dimension = self->rank == 1 ? 0 : 1;
  a->classes = self->sizes[class_dimension];
  a->targets = mps_tensor_element_count(target);
  a->spatial = 1;
  for (uint32_t d = 2; d < self->rank; d++) a->spatial *= self->sizes[d];
  int64_t expected = (self->rank == 1 ? 1 : self->sizes[0]) * a->spatial;
  if (a->targets != expected)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s: %lld targets for an input with %lld places", label, (long long)a->targets, (long long)expected);
  if (weight && mps_tensor_element_count(weight) != a->classes)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "weight tensor should be defined either for all %lld classes or no classes but got weight tensor of %lld",
                         (long long)a->classes, (long long)mps_tensor_element_count(weight));
  return MPS_STATUS_OK;
}

static mps_status begin(nll *l, const mps_tensor *target, const mps_tensor *weight, int64_t reduction, int64_t ignore_index) {
  mps_nll_arguments *a = &l->arguments;
  a->reduction = (uint32_t)reduction;
  a->ignore_index = ignore_index;
  a->has_weight = weight != NULL;
  a->byte_targets = target->dtype == MPS_DTYPE_U8;
  a->chunk_count = (a->targets + MPS_NLL_PIECE - 1) / MPS_NLL_PIECE;
  mps_status status = mps_norm_prepare(&l->temporaries, target, target->dtype, &l->storage[0], &l->target);
  return status != MPS_STATUS_OK ? status : mps_norm_prepare(&l->temporaries, weight, MPS_DTYPE_F32, &l->storage[1], &l->weight);
}

/* Strides of N, C and S; false when the spatial dimensions are not one. */
static bool set_strides(mps_nll_arguments *a, const mps_tensor *input) {
  a->strides[0] = input->rank == 1 ? 0 : input->strides[0];
  a->strides[1] = input->strides[input->rank == 1 ? 0 : 1];
  a->strides[2] = input->rank > 2 ? input->strides[input->rank - 1] : 0;
  for (uint32_t d = 2; d + 1 < input->rank; d++)
    if (input->strides[d] != input->strides[d + 1] * input->sizes[d + 1]) return false;
  return true;
}

/* Buffers: 0 data, 1 or 2 target, 3 weight, 4 and 5 the caller's, 6 arguments, 7 error record. */
static mps_status launch(nll *l, const char *kernel, const mps_tensor *data, const mps_tensor *fourth, const mps_tensor *fifth, const char *suffix) {
  mps_stream *stream = l->temporaries.stream;
  mps_pipeline *pipeline;
  mps_status status = mps_operand_pipeline(stream, kernel, suffix, &pipeline);
  if (status != MPS_STATUS_OK) return status;
  mps_encoder encoder;
  mps_encoder_begin(&encoder, stream, l->label);
  mps_encoder_set_pipeline(&encoder, pipeline);
  for (uint32_t i = 1; i <= 5; i++) mps_encoder_set_unused(&encoder, i);
  mps_encoder_set_tensor(&encoder, 0, data, MPS_ACCESS_READ);
  mps_encoder_set_tensor(&encoder, l->arguments.byte_targets ? 2 : 1, l->target, MPS_ACCESS_READ);
  if (l->weight) mps_encoder_set_tensor(&encoder, 3, l->weight, MPS_ACCESS_READ);
  if (fourth) mps_encoder_set_tensor(&encoder, 4, fourth, MPS_ACCESS_READ_WRITE);
  if (fifth) mps_encoder_set_tensor(&encoder, 5, fifth, MPS_ACCESS_READ_WRITE);
  mps_encoder_set_bytes(&encoder, 6, &l->arguments, sizeof l->arguments);
  mps_encoder_set_error_buffer(&encoder, 7);
  mps_encoder_set_cost(&encoder, (double)l->arguments.targets * TARGET_COST);
  return mps_encoder_dispatch(&encoder, (uint64_t[3]){(uint64_t)l->arguments.chunk_count, 1, 1}, NULL);
}

/* ---- forward ---- */
static mps_status encode_reduced(nll *l, const mps_tensor *input, const mps_tensor *out, const mps_tensor *total_weight) {
  mps_tensor partials;
  mps_status status = mps_norm_vector(&l->temporaries, 2 * (l->arguments.chunk_count + 1), &partials);
  if (status != MPS_STATUS_OK) return status;
  const char *suffix = mps_dtype_name(input->dtype);
  if (l->arguments.targets > 0) status = launch(l, "nll_forward", input, &partials, NULL, suffix);
  if (status != MPS_STATUS_OK) return status;
  const mps_norm_argument arguments[] = {mps_norm_read(&partials), mps_norm_write(out), mps_norm_write(total_weight),
                                         mps_norm_bytes(&l->arguments, sizeof l->arguments)};
  return mps_norm_launch(l->temporaries.stream, l->label, "nll_finish", suffix, arguments, 4, 1, 1, (double)l->arguments.chunk_count * 3.0);
}

static mps_status encode_forward(nll *l, const mps_tensor *self, const mps_tensor *out, const mps_tensor *total_weight) {
  mps_stream *stream = l->temporaries.stream;
  mps_tensor storage;
  const mps_tensor *input = self;
  mps_status status = MPS_STATUS_OK;
  if (!self->buffer || self->flags || !set_strides(&l->arguments, self)) {
    status = mps_norm_prepare(&l->temporaries, self, self->dtype, &storage, &input);
    if (status != MPS_STATUS_OK) return status;
    set_strides(&l->arguments, input);
  }
  mps_result result, weight = {.out = NULL};
  status = mps_result_begin(stream, out, self->dtype, NULL, true, &result);
  if (status != MPS_STATUS_OK) return status;
  if (l->arguments.reduction == 0) {
    if (l->arguments.targets > 0) status = launch(l, "nll_forward", input, NULL, &result.tensor, mps_dtype_name(input->dtype));
    if (status == MPS_STATUS_OK) status = mps_operand_fill(stream, total_weight, mps_scalar_int(0));
    return mps_result_end(stream, &result, status);
  }
  status = mps_result_begin(stream, total_weight, self->dtype, NULL, true, &weight);
  if (status == MPS_STATUS_OK) status = encode_reduced(l, input, &result.tensor, &weight.tensor);
  status = mps_result_end(stream, &weight, status);
  return mps_result_end(stream, &result, status);
}

mps_status mps_op_nll_loss_forward(mps_stream *stream, const mps_tensor *self, const mps_tensor *target, const mps_tensor *weight, int64_t reduction,
                                   int64_t ignore_index, const mps_tensor *output, const mps_tensor *total_weight) {
  nll l = {.label = "nll_loss_forward", .temporaries = {.stream = stream}};
  mps_status status = check(l.label, self, target, weight, &l.arguments);
  if (status != MPS_STATUS_OK) return status;
  status = begin(&l, target, weight, reduction, ignore_index);
  if (status == MPS_STATUS_OK) status = encode_forward(&l, self, output, total_weight);
  mps_operands_finish(&l.temporaries);
  return status;
}

/* ---- backward ---- */
static mps_status encode_backward(nll *l, const mps_tensor *grad_output, const mps_tensor *total_weight, const mps_tensor *grad_input) {
  mps_stream *stream = l->temporaries.stream;
  mps_tensor storage[2];
  const mps_tensor *grad, *total;
  mps_status status = mps_norm_prepare(&l->temporaries, grad_output, grad_input->dtype, &storage[0], &grad);
  if (status == MPS_STATUS_OK) status = mps_norm_prepare(&l->temporaries, total_weight, grad_input->dtype, &storage[1], &total);
  mps_result result;
  if (status == MPS_STATUS_OK) status = mps_result_begin(stream, grad_input, grad_input->dtype, NULL, true, &result);
  if (status != MPS_STATUS_OK) return status;
  set_strides(&l->arguments, &result.tensor);
  l->arguments.grad_stride = l->arguments.reduction == 0 && grad->rank > 0;
  status = mps_operand_fill(stream, &result.tensor, mps_scalar_int(0));
  if (status == MPS_STATUS_OK) status = launch(l, "nll_backward", grad, total, &result.tensor, mps_dtype_name(grad_input->dtype));
  return mps_result_end(stream, &result, status);
}

mps_status mps_op_nll_loss_backward(mps_stream *stream, const mps_tensor *grad_output, const mps_tensor *self, const mps_tensor *target,
                                    const mps_tensor *weight, int64_t reduction, int64_t ignore_index, const mps_tensor *total_weight,
                                    const mps_tensor *grad_input) {
  nll l = {.label = "nll_loss_backward", .temporaries = {.stream = stream}};
  mps_status status = check(l.label, self, target, weight, &l.arguments);
  if (status != MPS_STATUS_OK || mps_tensor_element_count(grad_input) == 0) return status;
  status = begin(&l, target, weight, reduction, ignore_index);
  if (status == MPS_STATUS_OK) status = encode_backward(&l, grad_output, total_weight, grad_input);
  mps_operands_finish(&l.temporaries);
  return status;
}
