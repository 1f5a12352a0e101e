/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lstm: one layer and direction of an LSTM over all steps. The products with the input are one gemm for all steps; each step then is the
 * product with the hidden state, added in place, and one kernel for everything else.
 */
#include "graph/formula.h"
#include "kernels/lstm_arguments.h"
#include "openmps/library.h"
#include "openmps/ops/dense.h"
#include "openmps/ops/pointwise.h"
#include "openmps/ops/rnn.h"
#include "ops/operand.h"

/* Nanoseconds a hidden unit and row on one core, estimates. */
#define FORWARD_COST 6.0
#define BACKWARD_COST 3.0

/* Sizes that all tensors of a layer agree on. */
typedef struct lstm_shape {
  int64_t steps, batch, features, hidden;
} lstm_shape;

static bool is_matrix(const mps_tensor *tensor, mps_dtype dtype, int64_t rows, int64_t columns) {
  return tensor->dtype == dtype && tensor->rank == 2 && tensor->sizes[0] == rows && tensor->sizes[1] == columns;
}

static bool is_sequence(const mps_tensor *tensor, mps_dtype dtype, const lstm_shape *shape, int64_t width) {
  return tensor->dtype == dtype && tensor->rank == 3 && tensor->sizes[0] == shape->steps && tensor->sizes[1] == shape->batch && tensor->sizes[2] == width;
}

static mps_status check(const mps_tensor *input, const mps_tensor *hidden, const mps_tensor *cell, const mps_tensor *weight_input,
                        const mps_tensor *weight_hidden, const mps_tensor *output, const mps_tensor *gates, const mps_tensor *cells, lstm_shape *out_shape) {
  const mps_dtype dtype = input->dtype;
  if (!mps_dtype_is_floating(dtype)) return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "\"lstm\" not implemented for '%s'", mps_dtype_title(dtype));
  if (input->rank == 3 && hidden->rank == 2) {
    *out_shape = (lstm_shape){input->sizes[0], input->sizes[1], input->sizes[2], hidden->sizes[1]};
    const lstm_shape s = *out_shape;
    if (s.steps > 0 && s.batch > 0 && s.hidden > 0 && is_matrix(hidden, dtype, s.batch, s.hidden) && is_matrix(cell, dtype, s.batch, s.hidden) &&
        is_matrix(weight_input, dtype, 4 * s.hidden, s.features) && is_matrix(weight_hidden, dtype, 4 * s.hidden, s.hidden) &&
        is_sequence(output, dtype, &s, s.hidden) && is_sequence(gates, dtype, &s, 4 * s.hidden) && is_sequence(cells, dtype, &s, s.hidden) &&
        mps_tensor_is_contiguous(gates) && mps_tensor_is_contiguous(cells) && output->strides[0] == s.batch * output->strides[1] &&
        output->strides[2] == 1)
      return MPS_STATUS_OK;
  }
  return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "lstm_layer(): the shapes or dtypes of the arguments do not fit");
}

/* One step of a sequence, as a matrix. */
static mps_tensor step_of(const mps_tensor *sequence, int64_t step) {
  mps_tensor result = *sequence;
  result.offset += (uint64_t)(step * sequence->strides[0]) * mps_dtype_size(sequence->dtype);
  result.rank = 2;
  for (uint32_t d = 0; d < 2; d++) {
    result.sizes[d] = sequence->sizes[d + 1];
    result.strides[d] = sequence->strides[d + 1];
  }
  return result;
}

/* `count` steps from `first` on, as one matrix. The rows lie evenly. */
static mps_tensor rows_of(const mps_tensor *sequence, int64_t first, int64_t count) {
  mps_tensor result = step_of(sequence, first);
  result.sizes[0] *= count;
  return result;
}

static mps_tensor transposed(const mps_tensor *matrix) {
  mps_tensor result = *matrix;
  for (uint32_t d = 0; d < 2; d++) {
    result.sizes[d] = matrix->sizes[1 - d];
    result.strides[d] = matrix->strides[1 - d];
  }
  return result;
}

/* gates = input @ weight^T + both biases, for all steps. */
static mps_status input_products(mps_stream *stream, const mps_tensor *input, const mps_tensor *weight, const mps_tensor *bias_input,
                                 const mps_tensor *bias_hidden, const mps_tensor *gates) {
  if (!bias_input || !bias_hidden) return mps_op_linear(stream, input, weight, bias_input ? bias_input : bias_hidden, gates);
  mps_tensor bias;
  mps_status status = mps_operand_create(stream, bias_input->dtype, 1, bias_input->sizes, &bias);
  if (status != MPS_STATUS_OK) return status;
  status = mps_op_add(stream, bias_input, bias_hidden, mps_scalar_int(1), &bias);
  if (status == MPS_STATUS_OK) status = mps_op_linear(stream, input, weight, &bias, gates);
  mps_buffer_release(bias.buffer);
  return status;
}

static void bind(mps_encoder *encoder, uint32_t index, const mps_tensor *tensor, mps_access access) {
  mps_encoder_set_buffer(encoder, index, tensor->buffer, tensor->offset, access);
}

static mps_lstm_arguments arguments_of(const lstm_shape *shape, const mps_tensor *out) {
  mps_lstm_arguments a = {.hidden = shape->hidden};
  if (out) {
    a.out_row = out->strides[0];
    a.has_gradient = 1;
  }
  return a;
}

static mps_status dispatch(mps_encoder *encoder, const lstm_shape *shape, double cost) {
  mps_encoder_set_cost(encoder, cost * (double)(shape->hidden * shape->batch));
  return mps_encoder_dispatch(encoder, (uint64_t[]){(uint64_t)shape->hidden, (uint64_t)shape->batch, 1}, NULL);
}

mps_status mps_op_lstm_layer(mps_stream *stream, const mps_tensor *input, const mps_tensor *hidden, const mps_tensor *cell,
                             const mps_tensor *weight_input, const mps_tensor *weight_hidden, const mps_tensor *bias_input,
                             const mps_tensor *bias_hidden, bool reverse, const mps_tensor *output, const mps_tensor *last_hidden,
                             const mps_tensor *last_cell, const mps_tensor *gates, const mps_tensor *cells) {
  lstm_shape shape;
  mps_status status = check(input, hidden, cell, weight_input, weight_hidden, output, gates, cells, &shape);
  mps_pipeline *pipeline;
  if (status == MPS_STATUS_OK) status = mps_operand_pipeline(stream, "lstm_cell", mps_dtype_name(input->dtype), &pipeline);
  if (status == MPS_STATUS_OK) status = input_products(stream, input, weight_input, bias_input, bias_hidden, gates);
  const mps_tensor weight = transposed(weight_hidden);
  mps_tensor h = *hidden, c = *cell;
  mps_buffer *owned = NULL;
  if (status == MPS_STATUS_OK) status = mps_operand_prepare(stream, cell, cell->dtype, true, &c, &owned);
  for (int64_t i = 0; status == MPS_STATUS_OK && i < shape.steps; i++) {
    const int64_t t = reverse ? shape.steps - 1 - i : i;
    const mps_tensor gate = step_of(gates, t), out = step_of(output, t), next = step_of(cells, t);
    status = mps_op_addmm(stream, &gate, &h, &weight, mps_scalar_int(1), mps_scalar_int(1), &gate);
    if (status != MPS_STATUS_OK) break;
    const mps_lstm_arguments arguments = arguments_of(&shape, &out);
    mps_encoder encoder;
    mps_encoder_begin(&encoder, stream, "lstm_cell");
    mps_encoder_set_pipeline(&encoder, pipeline);
    bind(&encoder, 0, &gate, MPS_ACCESS_READ_WRITE);
    bind(&encoder, 1, &c, MPS_ACCESS_READ);
    bind(&encoder, 2, &next, MPS_ACCESS_WRITE);
    bind(&encoder, 3, &out, MPS_ACCESS_WRITE);
    mps_encoder_set_bytes(&encoder, 4, &arguments, sizeof arguments);
    status = dispatch(&encoder, &shape, FORWARD_COST);
    h = out;
    c = next;
  }
  if (status == MPS_STATUS_OK) status = mps_op_copy(stream, &h, last_hidden);
  if (status == MPS_STATUS_OK) status = mps_op_copy(stream, &c, last_cell);
  mps_buffer_release(owned);
  return status;
}

/* ---- the gradient ---- */

/* The gradients that go from step to step, and those of the gates before sigmoid and tanh. */
typedef struct lstm_gradient {
  mps_tensor hidden, cell, gates;
} lstm_gradient;

static mps_status start(mps_stream *stream, mps_dtype made, const mps_tensor *given, const lstm_shape *shape, mps_tensor *out_tensor) {
  if (given) return mps_operand_copy(stream, given, made, out_tensor);
  mps_status status = mps_operand_create(stream, made, 2, (int64_t[]){shape->batch, shape->hidden}, out_tensor);
  return status == MPS_STATUS_OK ? mps_operand_fill(stream, out_tensor, mps_scalar_int(0)) : status;
}

/* Back through the steps. */
static mps_status unroll(mps_stream *stream, const lstm_shape *shape, const mps_tensor *grad_output, const mps_tensor *gates, const mps_tensor *cells,
                         const mps_tensor *cell, const mps_tensor *weight_hidden, bool reverse, const lstm_gradient *gradient) {
  mps_pipeline *pipeline;
  mps_status status = mps_operand_pipeline(stream, "lstm_cell_backward", mps_dtype_name(gates->dtype), &pipeline);
  for (int64_t i = shape->steps; status == MPS_STATUS_OK && i-- > 0;) {
    const int64_t t = reverse ? shape->steps - 1 - i : i, before = reverse ? t + 1 : t - 1;
    const mps_tensor gate = step_of(gates, t), here = step_of(cells, t), previous = i ? step_of(cells, before) : *cell;
    const mps_tensor output = grad_output ? step_of(grad_output, t) : gradient->hidden, grad_gate = step_of(&gradient->gates, t);
    const mps_lstm_arguments arguments = arguments_of(shape, grad_output ? &output : NULL);
    mps_encoder encoder;
    mps_encoder_begin(&encoder, stream, "lstm_cell_backward");
    mps_encoder_set_pipeline(&encoder, pipeline);
    bind(&encoder, 0, &gate, MPS_ACCESS_READ);
    bind(&encoder, 1, &previous, MPS_ACCESS_READ);
    bind(&encoder, 2, &here, MPS_ACCESS_READ);
    bind(&encoder, 3, &output, MPS_ACCESS_READ);
    mps_encoder_set_bytes(&encoder, 4, &arguments, sizeof arguments);
    bind(&encoder, 5, &gradient->hidden, MPS_ACCESS_READ);
    bind(&encoder, 6, &gradient->cell, MPS_ACCESS_READ_WRITE);
    bind(&encoder, 7, &grad_gate, MPS_ACCESS_WRITE);
    status = dispatch(&encoder, shape, BACKWARD_COST);
    if (status == MPS_STATUS_OK) status = mps_op_mm(stream, &grad_gate, weight_hidden, &gradient->hidden);
  }
  return status;
}

/* grad_weight_hidden = the sum over all steps of the gates' gradients times the hidden state before them. */
static mps_status hidden_weight(mps_stream *stream, const lstm_shape *shape, const mps_tensor *grad_gates, const mps_tensor *output,
                                const mps_tensor *hidden, bool reverse, const mps_tensor *grad_weight) {
  const mps_tensor first = step_of(grad_gates, reverse ? shape->steps - 1 : 0), first_t = transposed(&first);
  mps_status status = mps_op_mm(stream, &first_t, hidden, grad_weight);
  if (status != MPS_STATUS_OK || shape->steps == 1) return status;
  const mps_tensor later = rows_of(grad_gates, reverse ? 0 : 1, shape->steps - 1), later_t = transposed(&later);
  const mps_tensor before = rows_of(output, reverse ? 1 : 0, shape->steps - 1);
  return mps_op_addmm(stream, grad_weight, &later_t, &before, mps_scalar_int(1), mps_scalar_int(1), grad_weight);
}

mps_status mps_op_lstm_layer_backward(mps_stream *stream, const mps_tensor *grad_output, const mps_tensor *grad_hidden, const mps_tensor *grad_cell,
                                      const mps_tensor *gates, const mps_tensor *cells, const mps_tensor *output, const mps_tensor *input,
                                      const mps_tensor *hidden, const mps_tensor *cell, const mps_tensor *weight_input,
                                      const mps_tensor *weight_hidden, bool reverse, const mps_tensor *grad_input,
                                      const mps_tensor *grad_first_hidden, const mps_tensor *grad_first_cell, const mps_tensor *grad_weight_input,
                                      const mps_tensor *grad_weight_hidden, const mps_tensor *grad_bias) {
  lstm_shape shape;
  mps_status status = check(input, hidden, cell, weight_input, weight_hidden, output, gates, cells, &shape);
  if (status == MPS_STATUS_OK && grad_output && !is_sequence(grad_output, input->dtype, &shape, shape.hidden))
    status = mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "lstm_layer_backward(): the gradient does not have the output's shape");
  if (status != MPS_STATUS_OK) return status;
  lstm_gradient gradient = {.hidden = {.buffer = NULL}};
  mps_tensor from = {.buffer = NULL}, first_cell = *cell;
  mps_buffer *from_owned = NULL, *cell_owned = NULL;
  status = start(stream, input->dtype, grad_hidden, &shape, &gradient.hidden);
  if (status == MPS_STATUS_OK) status = start(stream, MPS_DTYPE_F32, grad_cell, &shape, &gradient.cell);
  if (status == MPS_STATUS_OK) status = mps_operand_create(stream, input->dtype, 3, gates->sizes, &gradient.gates);
  if (status == MPS_STATUS_OK) status = mps_operand_prepare(stream, cell, cell->dtype, true, &first_cell, &cell_owned);
  if (status == MPS_STATUS_OK && grad_output) {
    const bool contiguous = grad_output->strides[2] != 1;
    status = mps_operand_prepare(stream, grad_output, input->dtype, contiguous, &from, &from_owned);
  }
  if (status == MPS_STATUS_OK)
    status = unroll(stream, &shape, grad_output ? &from : NULL, gates, cells, &first_cell, weight_hidden, reverse, &gradient);
  if (status == MPS_STATUS_OK) status = mps_op_copy(stream, &gradient.hidden, grad_first_hidden);
  if (status == MPS_STATUS_OK) status = mps_op_copy(stream, &gradient.cell, grad_first_cell);
  if (status == MPS_STATUS_OK)
    status = mps_op_linear_backward(stream, input, &gradient.gates, weight_input, grad_input, grad_weight_input, grad_bias);
  if (status == MPS_STATUS_OK) status = hidden_weight(stream, &shape, &gradient.gates, output, hidden, reverse, grad_weight_hidden);
  mps_buffer_release(gradient.hidden.buffer);
  mps_buffer_release(gradient.cell.buffer);
  mps_buffer_release(gradient.gates.buffer);
  mps_buffer_release(from_owned);
  mps_buffer_release(cell_owned);
  return status;
}
