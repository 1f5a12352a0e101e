/* SPDX-License-Identifier: BSD-3-Clause
 *
 * loss_margin: losses by margins between a row's classes: multi_margin_loss with one target a row, multilabel_margin_loss with a list of them.
 * Input is [N, C], [C] or a number. All is computed in float; halves are converted before and rounded once behind.
 */
#include "graph/formula.h"
#include "kernels/margin_arguments.h"
#include "openmps/ops/loss.h"
#include "openmps/ops/reduce.h"
#include "ops/norm.h"
#include "runtime/failure.h"

/* at::Reduction */
enum { REDUCTION_NONE, REDUCTION_MEAN };
/* Elements that a thread takes at least, and nanoseconds an element on one core (an estimate; of several targets too). */
#define PIECE_ELEMENTS 4096
#define ELEMENT_COST 0.5
#define LABELS_COST 4.0

typedef struct margin_call {
  const char *label;
  mps_operand_list temporaries;
  mps_margin_arguments arguments;
  mps_tensor storage[5];
  const mps_tensor *input, *targets, *weight, *mask, *grads;
} margin_call;

static mps_status check(margin_call *c, const mps_tensor *self, const mps_tensor *target, bool is_list) {
  mps_margin_arguments *a = &c->arguments;
  if (!mps_dtype_is_floating(self->dtype))
    return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", c->label, mps_dtype_title(self->dtype));
  if (target->dtype != MPS_DTYPE_I64)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "expected scalar type Long but found %s", mps_dtype_title(target->dtype));
  if (self->rank > 2)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s: expected a vector or a matrix, but got rank %u", c->label, (unsigned)self->rank);
  a->rows = self->rank == 2 ? self->sizes[0] : 1;
  a->classes = self->rank ? self->sizes[self->rank - 1] : 1;
  const int64_t expected = is_list ? a->rows * a->classes : a->rows, count = mps_tensor_element_count(target);
  if (count != expected)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s: %lld targets where %lld are expected", c->label, (long long)count, (long long)expected);
  a->piece = a->classes < PIECE_ELEMENTS ? PIECE_ELEMENTS / (a->classes ? a->classes : 1) : 1;
  return MPS_STATUS_OK;
}

static mps_status check_count(const margin_call *c, const char *name, const mps_tensor *tensor, int64_t expected) {
  if (mps_tensor_element_count(tensor) == expected) return MPS_STATUS_OK;
  return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s: %s has %lld elements where %lld are expected", c->label, name,
                       (long long)mps_tensor_element_count(tensor), (long long)expected);
}

static mps_status check_power(margin_call *c, int64_t p, double margin, const mps_tensor *weight) {
  if (p != 1 && p != 2) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "only p == 1 and p == 2 supported");
  c->arguments.squared = p == 2;
  c->arguments.margin = (float)margin;
  c->arguments.has_weight = weight != NULL;
  c->arguments.target_text = mps_failure_text("target out of range");
  return weight ? check_count(c, "weight", weight, c->arguments.classes) : MPS_STATUS_OK;
}

static mps_status begin(margin_call *c, const mps_tensor *self, const mps_tensor *target, const mps_tensor *weight) {
  mps_status status = mps_norm_prepare(&c->temporaries, self, MPS_DTYPE_F32, &c->storage[0], &c->input);
  if (status == MPS_STATUS_OK) status = mps_norm_prepare(&c->temporaries, target, MPS_DTYPE_I64, &c->storage[1], &c->targets);
  return status != MPS_STATUS_OK ? status : mps_norm_prepare(&c->temporaries, weight, MPS_DTYPE_F32, &c->storage[2], &c->weight);
}

/* Buffers in order, then the arguments and the error record. The last tensor, and the one before it where `two`, are written. */
static mps_status launch(const margin_call *c, const char *kernel, const char *suffix, const mps_tensor *const *tensors, uint32_t count, bool two,
                         double element_cost) {
  mps_stream *stream = c->temporaries.stream;
  const mps_margin_arguments *a = &c->arguments;
  const int64_t threads = (a->rows + a->piece - 1) / a->piece;
  if (threads > UINT32_MAX)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s: %lld rows are more than one call can take; split the tensor", c->label, (long long)a->rows);
  mps_pipeline *pipeline;
  mps_status status = mps_operand_pipeline(stream, kernel, suffix, &pipeline);
  if (status != MPS_STATUS_OK) return status;
  mps_encoder encoder;
  mps_encoder_begin(&encoder, stream, c->label);
  mps_encoder_set_pipeline(&encoder, pipeline);
  for (uint32_t i = 0; i < count; i++)
    mps_encoder_set_optional(&encoder, i, tensors[i], i + 1 == count || (two && i + 2 == count) ? MPS_ACCESS_READ_WRITE : MPS_ACCESS_READ);
  mps_encoder_set_bytes(&encoder, count, a, sizeof *a);
  mps_encoder_set_error_buffer(&encoder, count + 1);
  mps_encoder_set_cost(&encoder, (double)(a->rows * a->classes) * element_cost);
  return mps_encoder_dispatch(&encoder, (uint64_t[3]){(uint64_t)threads, 1, 1}, NULL);
}

static const char *power(const margin_call *c) { return c->arguments.squared ? "squared" : "linear"; }

/* A row's loss each, into out or a vector that is then reduced. `mask` is NULL for a target a row. */
static mps_status encode_losses(margin_call *c, int64_t reduction, const mps_tensor *mask, const mps_tensor *out) {
  mps_stream *stream = c->temporaries.stream;
  mps_result result = {.out = NULL};
  mps_tensor losses;
  mps_status status;
  if (reduction == REDUCTION_NONE) {
    status = mps_result_begin(stream, out, MPS_DTYPE_F32, NULL, true, &result);
    losses = result.tensor;
  } else {
    status = mps_norm_vector(&c->temporaries, c->arguments.rows, &losses);
  }
  if (status != MPS_STATUS_OK) return status;
  const mps_tensor *const tensors[] = {c->input, c->targets, mask ? mask : c->weight, &losses};
  status = mask ? launch(c, "multilabel_margin", NULL, tensors, 4, true, LABELS_COST)
                : launch(c, "multi_margin", power(c), tensors, 4, false, ELEMENT_COST);
  if (reduction == REDUCTION_NONE) return mps_result_end(stream, &result, status);
  if (status != MPS_STATUS_OK) return status;
  if (reduction == REDUCTION_MEAN) return mps_op_mean(stream, &losses, NULL, 0, false, NULL, out);
  return mps_op_sum(stream, &losses, NULL, 0, false, NULL, out);
}

mps_status mps_op_multi_margin_loss(mps_stream *stream, const mps_tensor *self, const mps_tensor *target, int64_t p, double margin,
                                    const mps_tensor *weight, int64_t reduction, const mps_tensor *out) {
  margin_call c = {.label = "multi_margin_loss", .temporaries = {.stream = stream}};
  mps_status status = check(&c, self, target, false);
  if (status == MPS_STATUS_OK) status = check_power(&c, p, margin, weight);
  if (status == MPS_STATUS_OK) status = check_count(&c, "the result", out, reduction == REDUCTION_NONE ? c.arguments.rows : 1);
  if (status != MPS_STATUS_OK) return status;
  if (mps_tensor_element_count(self) == 0) return mps_operand_fill(stream, out, mps_scalar_int(0));
  status = begin(&c, self, target, weight);
  if (status == MPS_STATUS_OK) status = encode_losses(&c, reduction, NULL, out);
  mps_operands_finish(&c.temporaries);
  return status;
}

mps_status mps_op_multilabel_margin_loss_forward(mps_stream *stream, const mps_tensor *self, const mps_tensor *target, int64_t reduction,
                                                 const mps_tensor *output, const mps_tensor *is_target) {
  margin_call c = {.label = "multilabel_margin_loss_forward", .temporaries = {.stream = stream}};
  mps_status status = check(&c, self, target, true);
  if (status == MPS_STATUS_OK) status = check_count(&c, "the result", output, reduction == REDUCTION_NONE ? c.arguments.rows : 1);
  if (status == MPS_STATUS_OK) status = check_count(&c, "is_target", is_target, c.arguments.rows * c.arguments.classes);
  if (status != MPS_STATUS_OK) return status;
  if (mps_tensor_element_count(self) == 0) return mps_operand_fill(stream, output, mps_scalar_int(0));
  c.arguments.target_text = mps_failure_text("argument #2 'target' is out of range");
  mps_result mask;
  status = begin(&c, self, target, NULL);
  if (status == MPS_STATUS_OK) status = mps_result_begin(stream, is_target, MPS_DTYPE_F32, NULL, true, &mask);
  if (status == MPS_STATUS_OK) status = mps_result_end(stream, &mask, encode_losses(&c, reduction, &mask.tensor, output));
  mps_operands_finish(&c.temporaries);
  return status;
}

/* ---- gradients ---- */
/* What all gradients need beside `begin`; `third` is the weight or the mask. */
static mps_status encode_gradient(margin_call *c, const char *kernel, const char *suffix, const mps_tensor *third, const mps_tensor *grad_output,
                                  int64_t reduction, double element_cost, const mps_tensor *grad_input) {
  mps_stream *stream = c->temporaries.stream;
  mps_margin_arguments *a = &c->arguments;
  mps_status status = mps_norm_prepare(&c->temporaries, grad_output, MPS_DTYPE_F32, &c->storage[3], &c->grads);
  mps_result result;
  if (status == MPS_STATUS_OK) status = mps_result_begin(stream, grad_input, MPS_DTYPE_F32, NULL, true, &result);
  if (status != MPS_STATUS_OK) return status;
  a->grad_stride = reduction == REDUCTION_NONE && grad_output->rank > 0;
  a->factor = (float)(1.0 / (reduction == REDUCTION_MEAN ? (double)(a->rows * a->classes) : (double)a->classes));
  const mps_tensor *const tensors[] = {c->grads, c->input, c->targets, third, &result.tensor};
  return mps_result_end(stream, &result, launch(c, kernel, suffix, tensors, 5, false, element_cost));
}

static mps_status check_gradient(const margin_call *c, const mps_tensor *grad_output, int64_t reduction, const mps_tensor *grad_input) {
  mps_status status = check_count(c, "grad_input", grad_input, c->arguments.rows * c->arguments.classes);
  if (status != MPS_STATUS_OK) return status;
  if (reduction == REDUCTION_NONE && grad_output->rank > 0) return check_count(c, "grad_output", grad_output, c->arguments.rows);
  return mps_tensor_element_count(grad_output) > 0 ? MPS_STATUS_OK : check_count(c, "grad_output", grad_output, 1);
}

mps_status mps_op_multi_margin_loss_backward(mps_stream *stream, const mps_tensor *grad_output, const mps_tensor *self, const mps_tensor *target,
                                             int64_t p, double margin, const mps_tensor *weight, int64_t reduction, const mps_tensor *grad_input) {
  margin_call c = {.label = "multi_margin_loss_backward", .temporaries = {.stream = stream}};
  mps_status status = check(&c, self, target, false);
  if (status == MPS_STATUS_OK) status = check_power(&c, p, margin, weight);
  if (status != MPS_STATUS_OK || mps_tensor_element_count(self) == 0) return status;
  status = check_gradient(&c, grad_output, reduction, grad_input);
  if (status == MPS_STATUS_OK) status = begin(&c, self, target, weight);
  if (status == MPS_STATUS_OK)
    status = encode_gradient(&c, "multi_margin_backward", power(&c), c.weight, grad_output, reduction, ELEMENT_COST, grad_input);
  mps_operands_finish(&c.temporaries);
  return status;
}

mps_status mps_op_multilabel_margin_loss_backward(mps_stream *stream, const mps_tensor *grad_output, const mps_tensor *self, const mps_tensor *target,
                                                  int64_t reduction, const mps_tensor *is_target, const mps_tensor *grad_input) {
  margin_call c = {.label = "multilabel_margin_loss_backward", .temporaries = {.stream = stream}};
  mps_status status = check(&c, self, target, true);
  if (status == MPS_STATUS_OK) status = check_count(&c, "is_target", is_target, c.arguments.rows * c.arguments.classes);
  if (status != MPS_STATUS_OK || mps_tensor_element_count(self) == 0) return status;
  status = check_gradient(&c, grad_output, reduction, grad_input);
  c.arguments.target_text = mps_failure_text("argument #3 'target' is out of range");
  c.arguments.mask_text = mps_failure_text("argument #5 'is_target' is out of range");
  if (status == MPS_STATUS_OK) status = begin(&c, self, target, NULL);
  if (status == MPS_STATUS_OK) status = mps_norm_prepare(&c.temporaries, is_target, MPS_DTYPE_F32, &c.storage[4], &c.mask);
  if (status == MPS_STATUS_OK)
    status = encode_gradient(&c, "multilabel_margin_backward", NULL, c.mask, grad_output, reduction, LABELS_COST, grad_input);
  mps_operands_finish(&c.temporaries);
  return status;
}
