/* SPDX-License-Identifier: BSD-3-Clause
 *
 * optimizer: fused optimiser steps. A parameter's step is one pointwise program that reads parameter, gradient and state and writes them
 * all; what depends on the step number alone is computed once for it, in a program of one element.
 */
#include <math.h>

#include "openmps/ops.h"
#include "ops/operand.h"
#include "ops/program_builder.h"

typedef mps_program_value value;

static value unary(mps_program_builder *b, mps_formula formula, value x) { return mps_program_apply(b, formula, &x, NULL); }
static value binary(mps_program_builder *b, mps_formula formula, value x, value y) { return mps_program_apply(b, formula, (value[]){x, y}, NULL); }
static value number(mps_program_builder *b, double x) { return mps_program_number(b, mps_scalar_float(x)); }
static value multiply(mps_program_builder *b, value x, value y) { return binary(b, MPS_FORMULA_MUL, x, y); }
static value add(mps_program_builder *b, value x, value y) { return binary(b, MPS_FORMULA_ADD, x, y); }
static value subtract(mps_program_builder *b, value x, value y) { return binary(b, MPS_FORMULA_SUB, x, y); }
static value read_f32(mps_program_builder *b, const mps_tensor *tensor) { return mps_program_cast(b, mps_program_read(b, tensor), MPS_DTYPE_F32); }

/* A one-element tensor that broadcasts over anything. */
static mps_tensor scalar_view(const mps_tensor *tensor) {
  mps_tensor view = *tensor;
  view.rank = 0;
  return view;
}

/* What GradScaler passes to a fused step; each may be NULL. */
typedef struct scaling {
  const mps_tensor *grad_scale, *found_inf;
} scaling;

/* Writes `changed`, or what was there before if found_inf is set. */
static void write_unless_inf(mps_program_builder *b, const scaling *s, value changed, value before, const mps_tensor *to) {
  if (s->found_inf) {
    const mps_tensor flag = scalar_view(s->found_inf);
    value found = binary(b, MPS_FORMULA_NE, mps_program_read(b, &flag), number(b, 0.0));
    changed = mps_program_apply(b, MPS_FORMULA_WHERE, (value[]){found, before, changed}, NULL);
  }
  mps_program_write(b, changed, to);
}

/* The gradient in f32, unscaled (and stored so), its sign turned for maximisation. */
static value begin_gradient(mps_program_builder *b, const scaling *s, const mps_tensor *grad, const mps_tensor *scale, bool maximize) {
  value g = read_f32(b, grad);
  if (s->grad_scale) {
    g = binary(b, MPS_FORMULA_DIV, g, mps_program_read(b, scale));
    mps_program_write(b, g, grad);
  }
  return maximize ? unary(b, MPS_FORMULA_NEG, g) : g;
}

static mps_status check_list(const char *label, const mps_tensor *params, uint32_t count, const char *name, const mps_tensor *list, uint32_t list_count) {
  if (list_count != count) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): %u tensors in %s for %u parameters", label, list_count, name, count);
  for (uint32_t i = 0; i < count; i++)
    if (!mps_operands_same_shape(&params[i], &list[i]))
      return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): tensor %u of %s has not the shape of its parameter", label, i, name);
  return MPS_STATUS_OK;
}

/* ---- Adam ---- */

typedef struct adam_options {
  const char *label;
  double beta1, beta2, weight_decay, eps;
  bool amsgrad, maximize, decoupled;
  mps_tensor lr;
  scaling scale;
} adam_options;

typedef struct adam_state {
  const mps_tensor *param, *grad, *average, *square, *largest_square, *step;
} adam_state;

/* 1 - beta^step without cancellation: -expm1(step * log(beta)). */
static value bias_correction(mps_program_builder *b, value step, double beta) {
  return unary(b, MPS_FORMULA_NEG, unary(b, MPS_FORMULA_EXPM1, multiply(b, step, number(b, log(beta)))));
}

/* step_size = lr / (1 - beta1^step), root = sqrt(1 - beta2^step), decay = 1 - lr * weight_decay: three numbers on the device. */
static mps_status adam_numbers(mps_stream *stream, const adam_options *o, const mps_tensor *step_tensor, mps_tensor out[3]) {
  mps_tensor block;
  mps_status status = mps_operand_create(stream, MPS_DTYPE_F32, 1, (int64_t[]){3}, &block);
  if (status != MPS_STATUS_OK) return status;
  for (uint32_t i = 0; i < 3; i++) {
    out[i] = block;
    out[i].rank = 0;
    out[i].offset = block.offset + i * sizeof(float);
  }
  const mps_tensor at = scalar_view(step_tensor);
  mps_program_builder b;
  mps_program_begin(&b, o->label, 0, NULL);
  value step = read_f32(&b, &at), lr = read_f32(&b, &o->lr);
  mps_program_write(&b, binary(&b, MPS_FORMULA_DIV, lr, bias_correction(&b, step, o->beta1)), &out[0]);
  mps_program_write(&b, unary(&b, MPS_FORMULA_SQRT, bias_correction(&b, step, o->beta2)), &out[1]);
  mps_program_write(&b, subtract(&b, number(&b, 1.0), multiply(&b, lr, number(&b, o->weight_decay))), &out[2]);
  status = mps_program_encode(&b, stream);
  if (status != MPS_STATUS_OK) mps_buffer_release(block.buffer);
  return status;
}

static mps_status adam_step(mps_stream *stream, const adam_options *o, const adam_state *s) {
  mps_tensor numbers[3];
  mps_status status = adam_numbers(stream, o, s->step, numbers);
  if (status != MPS_STATUS_OK) return status;
  const mps_tensor scale = o->scale.grad_scale ? scalar_view(o->scale.grad_scale) : (mps_tensor){0};
  mps_program_builder b;
  mps_program_begin(&b, o->label, s->param->rank, s->param->sizes);
  value g = begin_gradient(&b, &o->scale, s->grad, &scale, o->maximize);
  const value p_before = read_f32(&b, s->param), average_before = read_f32(&b, s->average), square_before = read_f32(&b, s->square);
  value p = p_before;
  if (o->weight_decay != 0.0) {
    if (o->decoupled)
      p = multiply(&b, p, mps_program_read(&b, &numbers[2]));
    else
      g = add(&b, g, multiply(&b, p, number(&b, o->weight_decay)));
  }
  const value average = add(&b, average_before, multiply(&b, subtract(&b, g, average_before), number(&b, 1.0 - o->beta1)));
  const value square = add(&b, multiply(&b, square_before, number(&b, o->beta2)), multiply(&b, multiply(&b, g, g), number(&b, 1.0 - o->beta2)));
  value variance = square;
  if (o->amsgrad) {
    const value largest_before = read_f32(&b, s->largest_square);
    variance = binary(&b, MPS_FORMULA_MAXIMUM, largest_before, square);
    write_unless_inf(&b, &o->scale, variance, largest_before, s->largest_square);
  }
  const value denominator = add(&b, binary(&b, MPS_FORMULA_DIV, unary(&b, MPS_FORMULA_SQRT, variance), mps_program_read(&b, &numbers[1])), number(&b, o->eps));
  p = subtract(&b, p, multiply(&b, mps_program_read(&b, &numbers[0]), binary(&b, MPS_FORMULA_DIV, average, denominator)));
  write_unless_inf(&b, &o->scale, p, p_before, s->param);
  write_unless_inf(&b, &o->scale, average, average_before, s->average);
  write_unless_inf(&b, &o->scale, square, square_before, s->square);
  status = mps_program_encode(&b, stream);
  mps_buffer_release(numbers[0].buffer);
  return status;
}

typedef struct adam_lists {
  const mps_tensor *params, *grads, *averages, *squares, *largest_squares, *steps;
  uint32_t count, grad_count, average_count, square_count, largest_square_count, step_count;
} adam_lists;

static mps_status adam(mps_stream *stream, const adam_options *o, const adam_lists *l) {
  mps_status status = check_list(o->label, l->params, l->count, "grads", l->grads, l->grad_count);
  if (status == MPS_STATUS_OK) status = check_list(o->label, l->params, l->count, "exp_avgs", l->averages, l->average_count);
  if (status == MPS_STATUS_OK) status = check_list(o->label, l->params, l->count, "exp_avg_sqs", l->squares, l->square_count);
  if (status == MPS_STATUS_OK && o->amsgrad) status = check_list(o->label, l->params, l->count, "max_exp_avg_sqs", l->largest_squares, l->largest_square_count);
  if (status == MPS_STATUS_OK && l->step_count != l->count)
    status = mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): %u state_steps for %u parameters", o->label, l->step_count, l->count);
  for (uint32_t i = 0; status == MPS_STATUS_OK && i < l->count; i++) {
    if (mps_tensor_element_count(&l->params[i]) == 0) continue;
    const adam_state s = {.param = &l->params[i], .grad = &l->grads[i], .average = &l->averages[i], .square = &l->squares[i],
                          .largest_square = o->amsgrad ? &l->largest_squares[i] : NULL, .step = &l->steps[i]};
    status = adam_step(stream, o, &s);
  }
  return status;
}

#define ADAM_PARAMETERS                                                                                                                       \
  mps_stream *stream, const mps_tensor *self, uint32_t self_count, const mps_tensor *grads, uint32_t grads_count, const mps_tensor *exp_avgs, \
      uint32_t exp_avgs_count, const mps_tensor *exp_avg_sqs, uint32_t exp_avg_sqs_count, const mps_tensor *max_exp_avg_sqs,                  \
      uint32_t max_exp_avg_sqs_count, const mps_tensor *state_steps, uint32_t state_steps_count, const mps_tensor *lr, double beta1,          \
      double beta2, double weight_decay, double eps, bool amsgrad, bool maximize, const mps_tensor *grad_scale, const mps_tensor *found_inf
#define ADAM_LISTS                                                                                                                            \
  &(adam_lists) {                                                                                                                             \
    self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, self_count, grads_count, exp_avgs_count, exp_avg_sqs_count,              \
        max_exp_avg_sqs_count, state_steps_count                                                                                              \
  }

mps_status mps_op_fused_adam(ADAM_PARAMETERS) {
  const adam_options o = {"fused_adam", beta1, beta2, weight_decay, eps, amsgrad, maximize, false, scalar_view(lr), {grad_scale, found_inf}};
  return adam(stream, &o, ADAM_LISTS);
}

mps_status mps_op_fused_adamw(ADAM_PARAMETERS) {
  const adam_options o = {"fused_adamw", beta1, beta2, weight_decay, eps, amsgrad, maximize, true, scalar_view(lr), {grad_scale, found_inf}};
  return adam(stream, &o, ADAM_LISTS);
}

/* ---- SGD ---- */

typedef struct sgd_options {
  double weight_decay, momentum, dampening;
  bool nesterov, maximize, is_first_step;
  mps_tensor lr;
  scaling scale;
} sgd_options;

static mps_status sgd_step(mps_stream *stream, const sgd_options *o, const mps_tensor *param, const mps_tensor *grad, const mps_tensor *buffer) {
  const mps_tensor scale = o->scale.grad_scale ? scalar_view(o->scale.grad_scale) : (mps_tensor){0};
  mps_program_builder b;
  mps_program_begin(&b, "fused_sgd", param->rank, param->sizes);
  value g = begin_gradient(&b, &o->scale, grad, &scale, o->maximize);
  const value p = read_f32(&b, param);
  if (o->weight_decay != 0.0) g = add(&b, g, multiply(&b, p, number(&b, o->weight_decay)));
  if (buffer) {
    const value before = read_f32(&b, buffer);
    const value now = o->is_first_step ? g : add(&b, multiply(&b, before, number(&b, o->momentum)), multiply(&b, g, number(&b, 1.0 - o->dampening)));
    write_unless_inf(&b, &o->scale, now, before, buffer);
    g = o->nesterov ? add(&b, g, multiply(&b, now, number(&b, o->momentum))) : now;
  }
  write_unless_inf(&b, &o->scale, subtract(&b, p, multiply(&b, g, read_f32(&b, &o->lr))), p, param);
  return mps_program_encode(&b, stream);
}

mps_status mps_op_fused_sgd(mps_stream *stream, const mps_tensor *self, uint32_t self_count, const mps_tensor *grads, uint32_t grads_count,
                            const mps_tensor *momentum_buffer_list, uint32_t momentum_buffer_list_count, double weight_decay, double momentum,
                            const mps_tensor *lr, double dampening, bool nesterov, bool maximize, bool is_first_step, const mps_tensor *grad_scale,
                            const mps_tensor *found_inf) {
  const sgd_options o = {weight_decay, momentum, dampening, nesterov, maximize, is_first_step, scalar_view(lr), {grad_scale, found_inf}};
  mps_status status = check_list("fused_sgd", self, self_count, "grads", grads, grads_count);
  if (status == MPS_STATUS_OK && momentum_buffer_list_count)
    status = check_list("fused_sgd", self, self_count, "momentum_buffer_list", momentum_buffer_list, momentum_buffer_list_count);
  for (uint32_t i = 0; status == MPS_STATUS_OK && i < self_count; i++) {
    if (mps_tensor_element_count(&self[i]) == 0) continue;
    status = sgd_step(stream, &o, &self[i], &grads[i], momentum_buffer_list_count ? &momentum_buffer_list[i] : NULL);
  }
  return status;
}

/* ---- loss scaling ---- */

mps_status mps_op_amp_unscale(mps_stream *stream, const mps_tensor *self, const mps_tensor *inv_scale, const mps_tensor *found_inf) {
  if (!mps_dtype_is_floating(self->dtype) || found_inf->dtype != MPS_DTYPE_F32 || mps_tensor_element_count(found_inf) != 1)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "amp_unscale(): expected floating gradients and one float32 element for found_inf");
  const int64_t count = mps_tensor_element_count(self);
  if (count == 0) return MPS_STATUS_OK;
  mps_tensor factor, gradients;
  mps_buffer *factor_owned, *gradients_owned = NULL;
  mps_status status = mps_operand_prepare(stream, inv_scale, MPS_DTYPE_F32, true, &factor, &factor_owned);
  if (status != MPS_STATUS_OK) return status;
  status = mps_operand_prepare(stream, self, self->dtype, true, &gradients, &gradients_owned);
  mps_pipeline *pipeline = NULL;
  if (status == MPS_STATUS_OK) status = mps_operand_pipeline(stream, "amp_unscale", mps_dtype_name(self->dtype), &pipeline);
  if (status == MPS_STATUS_OK) {
    mps_encoder encoder;
    mps_encoder_begin(&encoder, stream, "amp_unscale");
    mps_encoder_set_pipeline(&encoder, pipeline);
    mps_encoder_set_buffer(&encoder, 0, gradients.buffer, gradients.offset, MPS_ACCESS_READ_WRITE);
    mps_encoder_set_buffer(&encoder, 1, found_inf->buffer, found_inf->offset, MPS_ACCESS_READ_WRITE);
    mps_encoder_set_buffer(&encoder, 2, factor.buffer, factor.offset, MPS_ACCESS_READ);
    mps_encoder_set_bytes(&encoder, 3, &count, sizeof count);
    mps_encoder_set_cost(&encoder, 0.3 * (double)count);
    status = mps_encoder_dispatch(&encoder, (uint64_t[]){(uint64_t)(count + 4095) / 4096, 1, 1}, NULL); /* 4096: CHUNK of amp.metal */
  }
  if (status == MPS_STATUS_OK && gradients_owned) status = mps_op_copy(stream, &gradients, self);
  mps_buffer_release(gradients_owned);
  mps_buffer_release(factor_owned);
  return status;
}

mps_status mps_op_amp_update_scale(mps_stream *stream, const mps_tensor *found_inf, double growth, double backoff, int64_t growth_interval,
                                   const mps_tensor *scale, const mps_tensor *growth_tracker) {
  if (scale->dtype != MPS_DTYPE_F32 || growth_tracker->dtype != MPS_DTYPE_I32 || found_inf->dtype != MPS_DTYPE_F32)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "amp_update_scale(): expected float32 scale and found_inf, int32 growth_tracker");
  mps_pipeline *pipeline;
  mps_status status = mps_operand_pipeline(stream, "amp_update_scale", NULL, &pipeline);
  if (status != MPS_STATUS_OK) return status;
  const struct {
    float growth, backoff;
    int64_t interval;
  } arguments = {(float)growth, (float)backoff, growth_interval};
  mps_encoder encoder;
  mps_encoder_begin(&encoder, stream, "amp_update_scale");
  mps_encoder_set_pipeline(&encoder, pipeline);
  mps_encoder_set_buffer(&encoder, 0, scale->buffer, scale->offset, MPS_ACCESS_READ_WRITE);
  mps_encoder_set_buffer(&encoder, 1, growth_tracker->buffer, growth_tracker->offset, MPS_ACCESS_READ_WRITE);
  mps_encoder_set_buffer(&encoder, 2, found_inf->buffer, found_inf->offset, MPS_ACCESS_READ);
  mps_encoder_set_bytes(&encoder, 3, &arguments, sizeof arguments);
  return mps_encoder_dispatch(&encoder, (uint64_t[]){1, 1, 1}, NULL);
}
