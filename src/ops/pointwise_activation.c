/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pointwise_activation: activations that choose their formula, split their input or write two outputs.
 */
#include <string.h>

#include "ops/pointwise.h"
#include "graph/program_builder.h"
#include "openmps/ops/pointwise_activation.h"

/* Limits are converted to the tensors' dtype: they take no part in promotion. */
static mps_status limited(mps_stream *stream, mps_formula formula, const mps_tensor *const *tensors, uint32_t promoted,
                          const mps_tensor *out, const char *label) {
  mps_program_builder builder;
  mps_program_value sources[3];
  mps_program_begin(&builder, label, out->rank, out->sizes);
  for (uint32_t i = 0; i < 3; i++)
    sources[i] = mps_program_read(&builder, tensors[i]);
  const mps_program_value result = mps_program_apply_in(&builder, formula, mps_program_promote(sources, promoted), sources, NULL);
  mps_program_write(&builder, result, out);
  return mps_program_encode(&builder, stream);
}

mps_status mps_op_threshold(mps_stream *stream, const mps_tensor *self, const mps_tensor *threshold, const mps_tensor *value,
                            const mps_tensor *out) {
  const mps_tensor *const tensors[] = {self, threshold, value};
  return limited(stream, MPS_FORMULA_THRESHOLD, tensors, 1, out, "threshold");
}

mps_status mps_op_threshold_backward(mps_stream *stream, const mps_tensor *grad_output, const mps_tensor *self, const mps_tensor *threshold,
                                     const mps_tensor *grad_input) {
  const mps_tensor *const tensors[] = {grad_output, self, threshold};
  return limited(stream, MPS_FORMULA_THRESHOLD_BACKWARD, tensors, 2, grad_input, "threshold_backward");
}

static mps_status choose_gelu(const char *approximate, mps_formula exact, mps_formula by_tanh, mps_formula *out) {
  if (strcmp(approximate, "none") == 0)
    *out = exact;
  else if (strcmp(approximate, "tanh") == 0)
    *out = by_tanh;
  else
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "approximate argument must be either none or tanh.");
  return MPS_STATUS_OK;
}

mps_status mps_op_gelu(mps_stream *stream, const mps_tensor *self, const char *approximate, const mps_tensor *out) {
  mps_formula formula = MPS_FORMULA_GELU;
  const mps_tensor *const inputs[] = {self};
  const mps_status status = choose_gelu(approximate, MPS_FORMULA_GELU, MPS_FORMULA_GELU_TANH, &formula);
  return status != MPS_STATUS_OK ? status : mps_pointwise(stream, formula, inputs, 1, NULL, 0, out, "gelu");
}

mps_status mps_op_gelu_backward(mps_stream *stream, const mps_tensor *grad_output, const mps_tensor *self, const char *approximate,
                                const mps_tensor *grad_input) {
  mps_formula formula = MPS_FORMULA_GELU_BACKWARD;
  const mps_tensor *const inputs[] = {grad_output, self};
  const mps_status status = choose_gelu(approximate, MPS_FORMULA_GELU_BACKWARD, MPS_FORMULA_GELU_TANH_BACKWARD, &formula);
  return status != MPS_STATUS_OK ? status : mps_pointwise(stream, formula, inputs, 2, NULL, 0, grad_input, "gelu_backward");
}

static void elu_parameters(mps_scalar alpha, mps_scalar scale, mps_scalar input_scale, mps_scalar out[3]) {
  const double outer = mps_scalar_to_double(scale);
  out[0] = mps_scalar_float(mps_scalar_to_double(alpha) * outer);
  out[1] = mps_scalar_float(outer);
  out[2] = mps_scalar_float(mps_scalar_to_double(input_scale));
}

mps_status mps_op_elu(mps_stream *stream, const mps_tensor *self, mps_scalar alpha, mps_scalar scale, mps_scalar input_scale,
                      const mps_tensor *out) {
  mps_scalar parameters[3];
  const mps_tensor *const inputs[] = {self};
  elu_parameters(alpha, scale, input_scale, parameters);
  return mps_pointwise(stream, MPS_FORMULA_ELU, inputs, 1, parameters, 3, out, "elu");
}

mps_status mps_op_elu_backward(mps_stream *stream, const mps_tensor *grad_output, mps_scalar alpha, mps_scalar scale, mps_scalar input_scale,
                               bool is_result, const mps_tensor *self_or_result, const mps_tensor *grad_input) {
  mps_scalar parameters[3];
  const mps_tensor *const inputs[] = {grad_output, self_or_result};
  elu_parameters(alpha, scale, input_scale, parameters);
  return mps_pointwise(stream, is_result ? MPS_FORMULA_ELU_BACKWARD_RESULT : MPS_FORMULA_ELU_BACKWARD, inputs, 2, parameters, 3, grad_input,
                       "elu_backward");
}

mps_status mps_op_leaky_relu_backward(mps_stream *stream, const mps_tensor *grad_output, const mps_tensor *self, mps_scalar negative_slope,
                                      bool self_is_result, const mps_tensor *grad_input) {
  (void)self_is_result; /* PyTorch refuses a negative slope then, so that the signs agree */
  const mps_tensor *const inputs[] = {grad_output, self};
  return mps_pointwise(stream, MPS_FORMULA_LEAKY_RELU_BACKWARD, inputs, 2, &negative_slope, 1, grad_input, "leaky_relu_backward");
}

mps_status mps_op_log_sigmoid(mps_stream *stream, const mps_tensor *self, const mps_tensor *output, const mps_tensor *buffer) {
  mps_program_builder builder;
  mps_program_begin(&builder, "log_sigmoid", output->rank, output->sizes);
  const mps_program_value value = mps_program_read(&builder, self);
  const mps_program_value result = mps_program_apply(&builder, MPS_FORMULA_LOG_SIGMOID, &value, NULL);
  mps_program_write(&builder, result, output);
  if (buffer) {
    const mps_program_value kept = mps_program_apply(&builder, MPS_FORMULA_LOG_SIGMOID_BUFFER, &value, NULL);
    mps_program_write(&builder, kept, buffer);
  }
  return mps_program_encode(&builder, stream);
}

mps_status mps_op_prelu_backward(mps_stream *stream, const mps_tensor *grad_output, const mps_tensor *self, const mps_tensor *weight,
                                 const mps_tensor *grad_self, const mps_tensor *grad_weight) {
  mps_program_builder builder;
  mps_program_begin(&builder, "prelu_backward", grad_self->rank, grad_self->sizes);
  const mps_program_value sources[] = {mps_program_read(&builder, grad_output), mps_program_read(&builder, self),
                                       mps_program_read(&builder, weight)};
  const mps_program_value for_self = mps_program_apply(&builder, MPS_FORMULA_PRELU_BACKWARD, sources, NULL);
  mps_program_write(&builder, for_self, grad_self);
  const mps_program_value for_weight = mps_program_apply(&builder, MPS_FORMULA_PRELU_WEIGHT_BACKWARD, sources, NULL);
  mps_program_write(&builder, for_weight, grad_weight);
  return mps_program_encode(&builder, stream);
}

/* The halves of a tensor along a dimension. */
static mps_status split(const mps_tensor *tensor, int64_t dim, mps_tensor halves[2]) {
  const int64_t rank = tensor->rank, d = dim < 0 ? dim + rank : dim;
  if (d < 0 || d >= rank || tensor->sizes[d] % 2 != 0)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "Halving dimension must be even, but dimension %lld is size %lld", (long long)dim,
                         d < 0 || d >= rank ? -1LL : (long long)tensor->sizes[d]);
  halves[0] = halves[1] = *tensor;
  halves[0].sizes[d] = halves[1].sizes[d] = tensor->sizes[d] / 2;
  const int64_t step = tensor->sizes[d] / 2 * tensor->strides[d] * (int64_t)mps_dtype_size(tensor->dtype);
  halves[1].offset = (uint64_t)((int64_t)tensor->offset + step);
  return MPS_STATUS_OK;
}

mps_status mps_op_glu(mps_stream *stream, const mps_tensor *self, int64_t dim, const mps_tensor *out) {
  mps_tensor halves[2];
  const mps_status status = split(self, dim, halves);
  if (status != MPS_STATUS_OK)
    return status;
  const mps_tensor *const inputs[] = {&halves[0], &halves[1]};
  return mps_pointwise(stream, MPS_FORMULA_GLU, inputs, 2, NULL, 0, out, "glu");
}

mps_status mps_op_glu_backward(mps_stream *stream, const mps_tensor *grad_output, const mps_tensor *self, int64_t dim,
                               const mps_tensor *grad_input) {
  mps_tensor halves[2], outputs[2];
  mps_status status = split(self, dim, halves);
  if (status == MPS_STATUS_OK)
    status = split(grad_input, dim, outputs);
  if (status != MPS_STATUS_OK)
    return status;
  mps_program_builder builder;
  mps_program_begin(&builder, "glu_backward", outputs[0].rank, outputs[0].sizes);
  const mps_program_value g = mps_program_read(&builder, grad_output), a = mps_program_read(&builder, &halves[0]),
                          b = mps_program_read(&builder, &halves[1]);
  const mps_program_value for_value = mps_program_apply(&builder, MPS_FORMULA_GLU_BACKWARD_VALUE, (mps_program_value[]){g, b}, NULL);
  const mps_program_value for_gate = mps_program_apply(&builder, MPS_FORMULA_GLU_BACKWARD_GATE, (mps_program_value[]){g, a, b}, NULL);
  mps_program_write(&builder, for_value, &outputs[0]);
  mps_program_write(&builder, for_gate, &outputs[1]);
  return mps_program_encode(&builder, stream);
}

static mps_scalar eps_parameter(const double *eps) {
  return mps_scalar_float(eps ? *eps : -1.0);
}

mps_status mps_op_logit(mps_stream *stream, const mps_tensor *self, const double *eps, const mps_tensor *out) {
  const mps_scalar parameter = eps_parameter(eps);
  const mps_tensor *const inputs[] = {self};
  return mps_pointwise(stream, MPS_FORMULA_LOGIT, inputs, 1, &parameter, 1, out, "logit");
}

mps_status mps_op_logit_backward(mps_stream *stream, const mps_tensor *grad_output, const mps_tensor *self, const double *eps,
                                 const mps_tensor *grad_input) {
  const mps_scalar parameter = eps_parameter(eps);
  const mps_tensor *const inputs[] = {grad_output, self};
  return mps_pointwise(stream, MPS_FORMULA_LOGIT_BACKWARD, inputs, 2, &parameter, 1, grad_input, "logit_backward");
}
