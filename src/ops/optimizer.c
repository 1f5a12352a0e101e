/* SPDX-License-Identifier: BSD-3-Clause
 *
 * optimizer: fused optimiser steps. A parameter's step is a graph that reads parameter, gradient and state and writes them all in place; what
 * depends on the step number alone is computed once for it. Graphs are kept by dtypes, options and shape; numbers are given at each run.
 */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "graph/graph.h"
#include "openmps/ops/optimizer.h"
#include "openmps/ops/pointwise.h"
#include "ops/operand.h"

typedef mps_graph_node node;

static node unary(mps_graph_builder *b, mps_formula formula, node x) { return mps_graph_apply(b, formula, &x, NULL); }
static node binary(mps_graph_builder *b, mps_formula formula, node x, node y) { return mps_graph_apply(b, formula, (node[]){x, y}, NULL); }
static node number(mps_graph_builder *b, double x) { return mps_graph_constant(b, mps_scalar_float(x)); }
static node multiply(mps_graph_builder *b, node x, node y) { return binary(b, MPS_FORMULA_MUL, x, y); }
static node add(mps_graph_builder *b, node x, node y) { return binary(b, MPS_FORMULA_ADD, x, y); }
static node subtract(mps_graph_builder *b, node x, node y) { return binary(b, MPS_FORMULA_SUB, x, y); }
static node divide(mps_graph_builder *b, node x, node y) { return binary(b, MPS_FORMULA_DIV, x, y); }

/* A one-element tensor that broadcasts over anything. */
static mps_tensor scalar_view(const mps_tensor *tensor) {
  mps_tensor view = *tensor;
  view.rank = 0;
  return view;
}

/* ---- a step: the graph's key, and what it is run with ---- */
#define MAX_INPUTS 10
#define MAX_OUTPUTS 5
#define MAX_SCALARS 8
enum { AMSGRAD = 1, MAXIMIZE = 2, DECOUPLED = 4, DECAYS = 8, NESTEROV = 16, FIRST_STEP = 32, MOMENTUM = 64, SCALED = 128, MAY_SKIP = 256 };

typedef struct step_key {
  uint16_t options;
  uint8_t rank, input_count;
  uint8_t dtypes[MAX_INPUTS];
  uint8_t padding[2];
  int64_t sizes[MPS_MAX_RANK]; /* rank of them count */
} step_key;

typedef struct step {
  step_key key;
  uint32_t shaped_count, output_count; /* inputs of the parameter's shape come first */
  mps_tensor inputs[MAX_INPUTS], outputs[MAX_OUTPUTS];
  mps_scalar scalars[MAX_SCALARS];
  uint32_t scalar_count;
} step;

/* What a builder reads of a key; inputs in the order of step.inputs. */
typedef struct step_builder {
  mps_graph_builder *b;
  const step_key *key;
  uint32_t next, shaped_count;
  node scale, found;
} step_builder;

static void add_input(step *s, const mps_tensor *tensor) {
  s->key.dtypes[s->key.input_count] = (uint8_t)tensor->dtype;
  s->inputs[s->key.input_count++] = *tensor;
}

/* Ends the shaped inputs; contiguous ones are seen as one dimension, so that few graphs serve all parameters. */
static void end_shaped(step *s) {
  const mps_tensor *shape = &s->inputs[0];
  bool contiguous = true;
  s->shaped_count = s->key.input_count;
  for (uint32_t i = 0; i < s->shaped_count; i++) contiguous = contiguous && mps_tensor_is_contiguous(&s->inputs[i]);
  s->key.rank = contiguous ? 1 : shape->rank;
  if (!contiguous) {
    memcpy(s->key.sizes, shape->sizes, shape->rank * sizeof shape->sizes[0]);
    return;
  }
  s->key.sizes[0] = mps_tensor_element_count(shape);
  for (uint32_t i = 0; i < s->shaped_count; i++) mps_tensor_set_contiguous(&s->inputs[i], 1, s->key.sizes);
}

static void add_scalar_input(step *s, const mps_tensor *tensor) {
  const mps_tensor view = scalar_view(tensor);
  add_input(s, &view);
}

/* What GradScaler passes to a fused step; each may be NULL. */
static void add_scaling(step *s, const mps_tensor *grad_scale, const mps_tensor *found_inf) {
  if (grad_scale) add_scalar_input(s, grad_scale);
  if (found_inf) add_scalar_input(s, found_inf);
  s->key.options |= (uint16_t)((grad_scale ? SCALED : 0) | (found_inf ? MAY_SKIP : 0));
}

/* Outputs are shaped inputs, written in place. */
static void add_output(step *s, uint32_t input) { s->outputs[s->output_count++] = s->inputs[input]; }

static node next_input(step_builder *sb) {
  const bool shaped = sb->next < sb->shaped_count;
  const node made = mps_graph_input(sb->b, (mps_dtype)sb->key->dtypes[sb->next], shaped ? sb->key->rank : 0, sb->key->sizes);
  sb->next++;
  return made;
}

static node next_f32(step_builder *sb) { return mps_graph_cast(sb->b, next_input(sb), MPS_DTYPE_F32); }

static void read_scaling(step_builder *sb) {
  if (sb->key->options & SCALED) sb->scale = next_input(sb);
  if (sb->key->options & MAY_SKIP) sb->found = binary(sb->b, MPS_FORMULA_NE, next_input(sb), number(sb->b, 0.0));
}

/* The gradient, unscaled, its sign turned for maximisation; *out_plain is what goes back to memory. */
static node gradient(step_builder *sb, node grad, node *out_plain) {
  if (sb->key->options & SCALED) grad = divide(sb->b, grad, sb->scale);
  *out_plain = grad;
  return sb->key->options & MAXIMIZE ? unary(sb->b, MPS_FORMULA_NEG, grad) : grad;
}

/* Writes `changed`, or what was there before if found_inf is set. */
static void write_unless_inf(step_builder *sb, node changed, node before, uint32_t input) {
  if (sb->key->options & MAY_SKIP) changed = mps_graph_apply(sb->b, MPS_FORMULA_WHERE, (node[]){sb->found, before, changed}, NULL);
  mps_graph_output(sb->b, changed, (mps_dtype)sb->key->dtypes[input]);
}

/* Finds the graph (the last one's again if the key is the same) and runs it. */
typedef struct last_graph {
  step_key key;
  mps_graph *graph;
} last_graph;

static mps_status run_step(mps_stream *stream, const char *label, mps_graph_build build, step *s, last_graph *last) {
  const size_t length = offsetof(step_key, sizes) + s->key.rank * sizeof s->key.sizes[0];
  if (!last->graph || memcmp(&last->key, &s->key, length) != 0) {
    mps_graph_release(last->graph);
    last->graph = NULL;
    const mps_status status = mps_graph_cache_find(mps_stream_device(stream), label, &s->key, length, build, &s->key, &last->graph);
    if (status != MPS_STATUS_OK) return status;
    last->key = s->key;
  }
  return mps_graph_run(last->graph, stream, s->inputs, s->key.input_count, s->scalars, s->scalar_count, s->outputs, s->output_count);
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
  const mps_tensor *lr, *grad_scale, *found_inf;
} adam_options;

typedef struct adam_lists {
  const mps_tensor *params, *grads, *averages, *squares, *largest_squares, *steps;
  uint32_t count, grad_count, average_count, square_count, largest_square_count, step_count;
} adam_lists;

/* 1 - beta^step without cancellation: -expm1(step * log(beta)). */
static node bias_correction(mps_graph_builder *b, node at, node log_beta) {
  return unary(b, MPS_FORMULA_NEG, unary(b, MPS_FORMULA_EXPM1, multiply(b, at, log_beta)));
}

/* Inputs: gradient, parameter, average, square, (largest square), step, lr, (scale), (found_inf). */
static mps_status build_adam(mps_graph_builder *b, void *context) {
  step_builder sb = {.b = b, .key = context};
  const uint16_t options = sb.key->options;
  sb.shaped_count = options & AMSGRAD ? 5 : 4;
  const node grad = next_f32(&sb), p_before = next_f32(&sb), average_before = next_f32(&sb), square_before = next_f32(&sb);
  const node largest_before = options & AMSGRAD ? next_f32(&sb) : MPS_GRAPH_NONE, at = next_f32(&sb), lr = next_f32(&sb);
  read_scaling(&sb);
  node s[7]; /* log(beta1), log(beta2), 1 - beta1, beta2, 1 - beta2, weight_decay, eps */
  for (uint32_t i = 0; i < 7; i++) s[i] = mps_graph_scalar(b, MPS_SCALAR_FLOAT);
  const node step_size = divide(b, lr, bias_correction(b, at, s[0])), root = unary(b, MPS_FORMULA_SQRT, bias_correction(b, at, s[1]));
  node plain, g = gradient(&sb, grad, &plain), p = p_before;
  if (options & DECAYS && options & DECOUPLED) p = multiply(b, p, subtract(b, number(b, 1.0), multiply(b, lr, s[5])));
  if (options & DECAYS && !(options & DECOUPLED)) g = add(b, g, multiply(b, p, s[5]));
  const node average = add(b, average_before, multiply(b, subtract(b, g, average_before), s[2]));
  const node square = add(b, multiply(b, square_before, s[3]), multiply(b, multiply(b, g, g), s[4]));
  const node variance = options & AMSGRAD ? binary(b, MPS_FORMULA_MAXIMUM, largest_before, square) : square;
  const node denominator = add(b, divide(b, unary(b, MPS_FORMULA_SQRT, variance), root), s[6]);
  p = subtract(b, p, multiply(b, step_size, divide(b, average, denominator)));
  write_unless_inf(&sb, p, p_before, 1);
  write_unless_inf(&sb, average, average_before, 2);
  write_unless_inf(&sb, square, square_before, 3);
  if (options & AMSGRAD) write_unless_inf(&sb, variance, largest_before, 4);
  if (options & SCALED) mps_graph_output(b, plain, (mps_dtype)sb.key->dtypes[0]);
  return MPS_STATUS_OK;
}

static mps_status adam_step(mps_stream *stream, const adam_options *o, const adam_lists *l, uint32_t i, last_graph *last) {
  step s;
  memset(&s.key, 0, sizeof s.key);
  s.output_count = 0;
  s.key.options = (uint16_t)((o->amsgrad ? AMSGRAD : 0) | (o->maximize ? MAXIMIZE : 0) | (o->decoupled ? DECOUPLED : 0) | (o->weight_decay != 0.0 ? DECAYS : 0));
  add_input(&s, &l->grads[i]);
  add_input(&s, &l->params[i]);
  add_input(&s, &l->averages[i]);
  add_input(&s, &l->squares[i]);
  if (o->amsgrad) add_input(&s, &l->largest_squares[i]);
  end_shaped(&s);
  add_scalar_input(&s, &l->steps[i]);
  add_scalar_input(&s, o->lr);
  add_scaling(&s, o->grad_scale, o->found_inf);
  for (uint32_t k = 1; k < s.shaped_count; k++) add_output(&s, k);
  if (o->grad_scale) add_output(&s, 0);
  const double numbers[] = {log(o->beta1), log(o->beta2), 1.0 - o->beta1, o->beta2, 1.0 - o->beta2, o->weight_decay, o->eps};
  for (s.scalar_count = 0; s.scalar_count < 7; s.scalar_count++) s.scalars[s.scalar_count] = mps_scalar_float(numbers[s.scalar_count]);
  return run_step(stream, o->label, build_adam, &s, last);
}

static mps_status adam(mps_stream *stream, const adam_options *o, const adam_lists *l) {
  mps_status status = check_list(o->label, l->params, l->count, "grads", l->grads, l->grad_count);
  if (status == MPS_STATUS_OK) status = check_list(o->label, l->params, l->count, "exp_avgs", l->averages, l->average_count);
  if (status == MPS_STATUS_OK) status = check_list(o->label, l->params, l->count, "exp_avg_sqs", l->squares, l->square_count);
  if (status == MPS_STATUS_OK && o->amsgrad) status = check_list(o->label, l->params, l->count, "max_exp_avg_sqs", l->largest_squares, l->largest_square_count);
  if (status == MPS_STATUS_OK && l->step_count != l->count)
    status = mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): %u state_steps for %u parameters", o->label, l->step_count, l->count);
  last_graph last = {.graph = NULL};
  for (uint32_t i = 0; status == MPS_STATUS_OK && i < l->count; i++)
    if (mps_tensor_element_count(&l->params[i]) > 0) status = adam_step(stream, o, l, i, &last);
  mps_graph_release(last.graph);
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
  const adam_options o = {"fused_adam", beta1, beta2, weight_decay, eps, amsgrad, maximize, false, lr, grad_scale, found_inf};
  return adam(stream, &o, ADAM_LISTS);
}

mps_status mps_op_fused_adamw(ADAM_PARAMETERS) {
  const adam_options o = {"fused_adamw", beta1, beta2, weight_decay, eps, amsgrad, maximize, true, lr, grad_scale, found_inf};
  return adam(stream, &o, ADAM_LISTS);
}

/* ---- SGD ---- */

typedef struct sgd_options {
  double weight_decay, momentum, dampening;
  bool nesterov, maximize, is_first_step;
  const mps_tensor *lr, *grad_scale, *found_inf;
} sgd_options;

/* Inputs: gradient, parameter, (momentum), lr, (scale), (found_inf). */
static mps_status build_sgd(mps_graph_builder *b, void *context) {
  step_builder sb = {.b = b, .key = context};
  const uint16_t options = sb.key->options;
  sb.shaped_count = options & MOMENTUM ? 3 : 2;
  const node grad = next_f32(&sb), p = next_f32(&sb), before = options & MOMENTUM ? next_f32(&sb) : MPS_GRAPH_NONE, lr = next_f32(&sb);
  read_scaling(&sb);
  node s[3]; /* weight_decay, momentum, 1 - dampening */
  for (uint32_t i = 0; i < 3; i++) s[i] = mps_graph_scalar(b, MPS_SCALAR_FLOAT);
  node plain, g = gradient(&sb, grad, &plain), now = MPS_GRAPH_NONE;
  if (options & DECAYS) g = add(b, g, multiply(b, p, s[0]));
  if (options & MOMENTUM) {
    now = options & FIRST_STEP ? g : add(b, multiply(b, before, s[1]), multiply(b, g, s[2]));
    g = options & NESTEROV ? add(b, g, multiply(b, now, s[1])) : now;
  }
  write_unless_inf(&sb, subtract(b, p, multiply(b, g, lr)), p, 1);
  if (options & MOMENTUM) write_unless_inf(&sb, now, before, 2);
  if (options & SCALED) mps_graph_output(b, plain, (mps_dtype)sb.key->dtypes[0]);
  return MPS_STATUS_OK;
}

static mps_status sgd_step(mps_stream *stream, const sgd_options *o, const mps_tensor *param, const mps_tensor *grad, const mps_tensor *momentum, last_graph *last) {
  step s;
  memset(&s.key, 0, sizeof s.key);
  s.output_count = 0;
  s.key.options = (uint16_t)((o->maximize ? MAXIMIZE : 0) | (o->weight_decay != 0.0 ? DECAYS : 0) | (o->nesterov ? NESTEROV : 0) |
                             (o->is_first_step ? FIRST_STEP : 0) | (momentum ? MOMENTUM : 0));
  add_input(&s, grad);
  add_input(&s, param);
  if (momentum) add_input(&s, momentum);
  end_shaped(&s);
  add_scalar_input(&s, o->lr);
  add_scaling(&s, o->grad_scale, o->found_inf);
  for (uint32_t k = 1; k < s.shaped_count; k++) add_output(&s, k);
  if (o->grad_scale) add_output(&s, 0);
  s.scalars[0] = mps_scalar_float(o->weight_decay);
  s.scalars[1] = mps_scalar_float(o->momentum);
  s.scalars[2] = mps_scalar_float(1.0 - o->dampening);
  s.scalar_count = 3;
  return run_step(stream, "fused_sgd", build_sgd, &s, last);
}

mps_status mps_op_fused_sgd(mps_stream *stream, const mps_tensor *self, uint32_t self_count, const mps_tensor *grads, uint32_t grads_count,
                            const mps_tensor *momentum_buffer_list, uint32_t momentum_buffer_list_count, double weight_decay, double momentum,
                            const mps_tensor *lr, double dampening, bool nesterov, bool maximize, bool is_first_step, const mps_tensor *grad_scale,
                            const mps_tensor *found_inf) {
  const sgd_options o = {weight_decay, momentum, dampening, nesterov, maximize, is_first_step, lr, grad_scale, found_inf};
  mps_status status = check_list("fused_sgd", self, self_count, "grads", grads, grads_count);
  if (status == MPS_STATUS_OK && momentum_buffer_list_count)
    status = check_list("fused_sgd", self, self_count, "momentum_buffer_list", momentum_buffer_list, momentum_buffer_list_count);
  last_graph last = {.graph = NULL};
  for (uint32_t i = 0; status == MPS_STATUS_OK && i < self_count; i++) {
    if (mps_tensor_element_count(&self[i]) == 0) continue;
    status = sgd_step(stream, &o, &self[i], &grads[i], momentum_buffer_list_count ? &momentum_buffer_list[i] : NULL, &last);
  }
  mps_graph_release(last.graph);
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
