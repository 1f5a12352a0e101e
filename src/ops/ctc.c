/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ctc: connectionist temporal classification: the loss with the sums over path beginnings (log_alpha), and the gradient. All is computed in
 * float, with the sums' digits kept (kernels/ctc.metal). The gradient does not need log_alpha, which for halves is float.
 */
#include <stdlib.h>

#include "graph/formula.h"
#include "openmps/ops/ctc.h"
#include "ops/ctc_plan.h"
#include "ops/norm.h"

typedef struct ctc_call {
  const char *label;
  mps_operand_list temporaries;
  mps_ctc_plan plan;
  mps_tensor log_probs, targets, items, scratch, rows;
} ctc_call;

static mps_status check(const char *name, const mps_tensor *log_probs, const mps_tensor *targets, const mps_ctc_lengths *lengths, int64_t blank) {
  if (!mps_dtype_is_floating(log_probs->dtype))
    return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", name, mps_dtype_title(log_probs->dtype));
  if (targets->dtype != MPS_DTYPE_I64 && targets->dtype != MPS_DTYPE_I32)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s: targets must be int64 or int32, not %s", name, mps_dtype_name(targets->dtype));
  return mps_ctc_check(log_probs, targets, lengths, blank);
}

static mps_status create(ctc_call *c, int64_t bytes, mps_tensor *out) {
  *out = mps_operands_create(&c->temporaries, MPS_DTYPE_U8, 1, &bytes);
  return c->temporaries.status;
}

static mps_status prepare(ctc_call *c, const mps_tensor *tensor, mps_dtype dtype, bool contiguous, mps_tensor *out) {
  *out = mps_operands_prepare(&c->temporaries, tensor, dtype, contiguous);
  return c->temporaries.status;
}

/* Brings what both directions read into place, and the lengths to the device. */
static mps_status begin(ctc_call *c, const mps_tensor *log_probs, const mps_tensor *targets, const mps_ctc_lengths *lengths, int64_t blank) {
  mps_status status = prepare(c, log_probs, MPS_DTYPE_F32, log_probs->strides[2] != 1, &c->log_probs);
  if (status == MPS_STATUS_OK) status = prepare(c, targets, MPS_DTYPE_I64, false, &c->targets);
  if (status != MPS_STATUS_OK) return status;
  const int64_t bytes = log_probs->sizes[1] * (int64_t)sizeof(mps_ctc_item);
  mps_ctc_item *items = malloc((size_t)bytes);
  if (!items) return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "%s: no memory for %lld lengths", c->label, (long long)log_probs->sizes[1]);
  mps_ctc_plan_make(log_probs, &c->targets, lengths, blank, &c->plan, items);
  mps_ctc_arguments *a = &c->plan.arguments;
  a->input_strides[0] = c->log_probs.strides[0];
  a->input_strides[1] = c->log_probs.strides[1];
  status = create(c, bytes, &c->items);
  if (status == MPS_STATUS_OK) status = mps_stream_write(c->temporaries.stream, c->items.buffer, c->items.offset, items, (uint64_t)bytes);
  if (status == MPS_STATUS_OK) status = create(c, a->batch * 2 * a->places * (int64_t)sizeof(int32_t), &c->scratch);
  free(items);
  return status;
}

/* One kernel; the last argument is the error record, the one before it the plan. */
static mps_status launch(ctc_call *c, const char *kernel, const mps_tensor *const *reads, uint32_t read_count, const mps_tensor *const *writes,
                         uint32_t write_count) {
  const mps_ctc_arguments *a = &c->plan.arguments;
  mps_pipeline *pipeline;
  mps_status status = create(c, a->batch * a->scratch * (int64_t)sizeof(float), &c->rows);
  if (status == MPS_STATUS_OK) status = mps_operand_pipeline(c->temporaries.stream, kernel, NULL, &pipeline);
  if (status != MPS_STATUS_OK) return status;
  mps_encoder encoder;
  mps_encoder_begin(&encoder, c->temporaries.stream, c->label);
  mps_encoder_set_pipeline(&encoder, pipeline);
  uint32_t index = 0;
  mps_encoder_set_tensor(&encoder, index++, &c->log_probs, MPS_ACCESS_READ);
  mps_encoder_set_optional(&encoder, index++, mps_tensor_element_count(&c->targets) > 0 ? &c->targets : NULL, MPS_ACCESS_READ);
  mps_encoder_set_tensor(&encoder, index++, &c->items, MPS_ACCESS_READ);
  mps_encoder_set_tensor(&encoder, index++, &c->scratch, MPS_ACCESS_READ_WRITE);
  mps_encoder_set_tensor(&encoder, index++, &c->rows, MPS_ACCESS_READ_WRITE);
  for (uint32_t i = 0; i < read_count; i++) mps_encoder_set_tensor(&encoder, index++, reads[i], MPS_ACCESS_READ);
  for (uint32_t i = 0; i < write_count; i++) mps_encoder_set_tensor(&encoder, index++, writes[i], MPS_ACCESS_READ_WRITE);
  mps_encoder_set_bytes(&encoder, index++, a, sizeof *a);
  mps_encoder_set_error_buffer(&encoder, index);
  mps_encoder_set_cost(&encoder, c->plan.cost);
  return mps_encoder_dispatch(&encoder, (uint64_t[3]){(uint64_t)a->batch, 1, 1}, NULL);
}

static mps_status forward(ctc_call *c, const mps_tensor *neg_log_likelihood, const mps_tensor *log_alpha) {
  mps_stream *stream = c->temporaries.stream;
  mps_ctc_arguments *a = &c->plan.arguments;
  if (log_alpha->rank != 3 || log_alpha->sizes[0] != a->batch || log_alpha->sizes[1] != a->steps || log_alpha->sizes[2] != a->states)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s: log_alpha must be of size [%lld, %lld, %lld]", c->label, (long long)a->batch,
                         (long long)a->steps, (long long)a->states);
  a->scratch = 2 * a->states;
  mps_result losses, alpha;
  mps_status status = mps_result_begin(stream, neg_log_likelihood, MPS_DTYPE_F32, NULL, true, &losses);
  if (status != MPS_STATUS_OK) return status;
  status = mps_result_begin(stream, log_alpha, MPS_DTYPE_F32, NULL, true, &alpha);
  if (status == MPS_STATUS_OK) {
    const mps_tensor *const writes[] = {&losses.tensor, &alpha.tensor};
    status = mps_result_end(stream, &alpha, launch(c, "ctc_forward", NULL, 0, writes, 2));
  }
  return mps_result_end(stream, &losses, status);
}

mps_status mps_op_ctc_loss(mps_stream *stream, const mps_tensor *log_probs, const mps_tensor *targets, const int64_t *input_lengths,
                           uint32_t input_lengths_count, const int64_t *target_lengths, uint32_t target_lengths_count, int64_t blank,
                           const mps_tensor *neg_log_likelihood, const mps_tensor *log_alpha) {
  ctc_call c = {.label = "_ctc_loss", .temporaries = {.stream = stream}};
  const mps_ctc_lengths lengths = {input_lengths, target_lengths, input_lengths_count, target_lengths_count};
  mps_status status = check("ctc_loss_cpu", log_probs, targets, &lengths, blank);
  if (status == MPS_STATUS_OK && mps_tensor_element_count(neg_log_likelihood) != log_probs->sizes[1])
    status = mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "_ctc_loss: the result must have one element an item of the batch");
  if (status != MPS_STATUS_OK) return status;
  status = begin(&c, log_probs, targets, &lengths, blank);
  if (status == MPS_STATUS_OK) status = forward(&c, neg_log_likelihood, log_alpha);
  mps_operands_finish(&c.temporaries);
  return status;
}

static mps_status backward(ctc_call *c, const mps_tensor *grad, const mps_tensor *neg_log_likelihood, const mps_tensor *grad_input) {
  mps_ctc_arguments *a = &c->plan.arguments;
  mps_tensor grads, losses;
  a->own_loss = neg_log_likelihood->dtype != MPS_DTYPE_F32;
  a->scratch = 2 * a->states + a->places + 2 * a->steps + a->steps * a->states;
  mps_status status = prepare(c, grad, MPS_DTYPE_F32, false, &grads);
  if (status == MPS_STATUS_OK) status = prepare(c, neg_log_likelihood, MPS_DTYPE_F32, true, &losses);
  mps_result result;
  if (status == MPS_STATUS_OK) status = mps_result_begin(c->temporaries.stream, grad_input, MPS_DTYPE_F32, NULL, true, &result);
  if (status != MPS_STATUS_OK) return status;
  a->grad_stride = grads.strides[0];
  const mps_tensor *const reads[] = {&losses, &grads}, *const writes[] = {&result.tensor};
  return mps_result_end(c->temporaries.stream, &result, launch(c, "ctc_backward", reads, 2, writes, 1));
}

mps_status mps_op_ctc_loss_backward(mps_stream *stream, const mps_tensor *grad, const mps_tensor *log_probs, const mps_tensor *targets,
                                    const int64_t *input_lengths, uint32_t input_lengths_count, const int64_t *target_lengths,
                                    uint32_t target_lengths_count, const mps_tensor *neg_log_likelihood, int64_t blank, bool zero_infinity,
                                    const mps_tensor *grad_input) {
  ctc_call c = {.label = "_ctc_loss_backward", .temporaries = {.stream = stream}};
  const mps_ctc_lengths lengths = {input_lengths, target_lengths, input_lengths_count, target_lengths_count};
  mps_status status = check("ctc_loss_backward_cpu", log_probs, targets, &lengths, blank);
  if (status != MPS_STATUS_OK) return status;
  const int64_t batch = log_probs->sizes[1];
  if (grad->rank != 1 || grad->sizes[0] != batch || mps_tensor_element_count(neg_log_likelihood) != batch ||
      !mps_operands_same_shape(log_probs, grad_input))
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "_ctc_loss_backward: grad and neg_log_likelihood must have one element an item of the batch, the "
                                                      "result the shape of log_probs");
  status = begin(&c, log_probs, targets, &lengths, blank);
  c.plan.arguments.zero_infinity = zero_infinity;
  c.plan.cost *= 3.0;
  if (status == MPS_STATUS_OK) status = backward(&c, grad, neg_log_likelihood, grad_input);
  mps_operands_finish(&c.temporaries);
  return status;
}
