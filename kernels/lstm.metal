// SPDX-License-Identifier: BSD-3-Clause
//
// lstm: what one step of an LSTM does behind its matrix products, forwards and backwards. Thread (hidden unit, row of the batch).

#include <metal_stdlib>
#include "lstm_arguments.h"

using namespace metal;

namespace {
inline float sigmoid(float x) { return 1.0f / (1.0f + exp(-x)); }
}  // namespace

// The gates are replaced by their values behind sigmoid and tanh, which the gradient needs.
template <typename T>
kernel void lstm_cell(device T *gates [[buffer(0)]], device const T *previous [[buffer(1)]], device T *cell [[buffer(2)]], device T *out [[buffer(3)]],
                      constant mps_lstm_arguments &a [[buffer(4)]], uint2 position [[thread_position_in_grid]]) {
  const long unit = position.x, row = position.y;
  device T *gate = gates + row * 4 * a.hidden + unit;
  const T i = T(sigmoid(float(gate[0]))), f = T(sigmoid(float(gate[a.hidden]))), g = T(tanh(float(gate[2 * a.hidden])));
  const T o = T(sigmoid(float(gate[3 * a.hidden])));
  const T c = T(float(f) * float(previous[row * a.hidden + unit]) + float(i) * float(g));
  gate[0] = i;
  gate[a.hidden] = f;
  gate[2 * a.hidden] = g;
  gate[3 * a.hidden] = o;
  cell[row * a.hidden + unit] = c;
  out[row * a.out_row + unit] = T(float(o) * tanh(float(c)));
}

// From the gradients of the hidden state (of the next step, and of the output) and of the cell to those of the gates before sigmoid and
// tanh, and of the cell before this step (in place, float).
template <typename T>
kernel void lstm_cell_backward(device const T *gates [[buffer(0)]], device const T *previous [[buffer(1)]], device const T *cell [[buffer(2)]],
                               device const T *grad_output [[buffer(3)]], constant mps_lstm_arguments &a [[buffer(4)]],
                               device const T *grad_next [[buffer(5)]], device float *grad_cell [[buffer(6)]], device T *grad_gates [[buffer(7)]],
                               uint2 position [[thread_position_in_grid]]) {
  const long unit = position.x, row = position.y, first = row * 4 * a.hidden + unit, here = row * a.hidden + unit;
  const float i = float(gates[first]), f = float(gates[first + a.hidden]), g = float(gates[first + 2 * a.hidden]);
  const float o = float(gates[first + 3 * a.hidden]), bent = tanh(float(cell[here]));
  const float output = a.has_gradient ? float(grad_output[row * a.out_row + unit]) : 0.0f;
  const float grad_hidden = float(grad_next[here]) + output;
  const float grad = grad_cell[here] + grad_hidden * o * (1.0f - bent * bent);
  grad_gates[first] = T(grad * g * i * (1.0f - i));
  grad_gates[first + a.hidden] = T(grad * float(previous[row * a.hidden + unit]) * f * (1.0f - f));
  grad_gates[first + 2 * a.hidden] = T(grad * i * (1.0f - g * g));
  grad_gates[first + 3 * a.hidden] = T(grad_hidden * bent * o * (1.0f - o));
  grad_cell[here] = grad * f;
}

#define LSTM(NAME, T)                                                                                                                          \
  template [[host_name("lstm_cell_" #NAME)]] kernel void lstm_cell<T>(device T *, device const T *, device T *, device T *,                    \
                                                                     constant mps_lstm_arguments &, uint2);                                    \
  template [[host_name("lstm_cell_backward_" #NAME)]] kernel void lstm_cell_backward<T>(device const T *, device const T *, device const T *,  \
                                                                                       device const T *, constant mps_lstm_arguments &,        \
                                                                                       device const T *, device float *, device T *, uint2);
LSTM(f32, float)
LSTM(f16, half)
LSTM(bf16, bfloat)
