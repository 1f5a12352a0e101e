/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rnn: LSTM by layers and directions of the C core. Nothing in a wheel that is not Apple's calls _lstm_mps, so lstm.input is registered too;
 * what _lstm_mps does not take (projections, autocast, mixed or odd arguments) goes to PyTorch's composition of cells.
 */
#include <ATen/Functions.h>
#include <ATen/autocast_mode.h>
#include <ATen/ops/lstm_native.h>
#include <torch/library.h>

#include "bridge/convert.h"
#include "bridge/kernels/rnn.h"
#include "openmps/ops/rnn.h"

namespace openmps::native {
namespace {

using OptionalTensor = std::optional<at::Tensor>;

// How layers, directions and their parameters are counted.
struct Network {
  int64_t layers, directions, per_direction, steps, batch, hidden;
  bool drops;

  Network(const at::Tensor &steps_first, at::TensorList hx, bool has_biases, int64_t num_layers, double dropout, bool train, bool bidirectional)
      : layers(num_layers), directions(bidirectional ? 2 : 1), per_direction(has_biases ? 4 : 2), steps(steps_first.size(0)),
        batch(steps_first.size(1)), hidden(hx[0].size(2)), drops(train && dropout > 0 && num_layers > 1) {}
  int64_t width() const { return directions * hidden; }
};

at::Tensor steps_first(const at::Tensor &input, bool batch_first) { return batch_first ? input.transpose(0, 1) : input; }

// The outputs of all layers, then the factors (0 or 1 / (1 - p)) by which dropout multiplies all but the last.
at::Tensor factors(const Network &n, const at::Tensor &outputs, int64_t layer) { return outputs[n.layers + layer]; }
at::Tensor input_of(const Network &n, const at::Tensor &outputs, const at::Tensor &input, int64_t layer) {
  if (layer == 0) return input;
  return n.drops ? outputs[layer - 1].mul(factors(n, outputs, layer - 1)) : outputs[layer - 1];
}

struct Parameters {
  at::Tensor weight_input, weight_hidden, bias_input, bias_hidden;
  Parameters(const Network &n, at::TensorList all, int64_t index) {
    const auto mine = all.slice(static_cast<size_t>(index * n.per_direction), static_cast<size_t>(n.per_direction));
    weight_input = mine[0];
    weight_hidden = mine[1];
    if (n.per_direction == 4) {
      bias_input = mine[2];
      bias_hidden = mine[3];
    }
  }
};

// Whether the arguments are what _lstm_mps takes; the composition refuses what is wrong, with PyTorch's texts.
bool is_plain(const at::Tensor &input, at::TensorList hx, at::TensorList params, bool has_biases, int64_t layers, bool bidirectional) {
  const int64_t directions = bidirectional ? 2 : 1, per_direction = has_biases ? 4 : 2;
  if (hx.size() != 2 || input.dim() != 3 || !at::isFloatingType(input.scalar_type()) || input.numel() == 0 || layers < 1) return false;
  if (static_cast<int64_t>(params.size()) != layers * directions * per_direction || hx[0].dim() != 3 || !hx[0].sizes().equals(hx[1].sizes())) return false;
  const int64_t hidden = hx[0].size(2);
  const auto fits = [&](const at::Tensor &t, at::IntArrayRef sizes) {
    return t.device() == input.device() && t.scalar_type() == input.scalar_type() && t.sizes().equals(sizes);
  };
  if (hidden == 0 || hx[0].size(0) != layers * directions || !fits(hx[0], hx[0].sizes()) || !fits(hx[1], hx[0].sizes())) return false;
  for (int64_t i = 0; i < layers * directions; i++) {
    const auto mine = params.slice(static_cast<size_t>(i * per_direction), static_cast<size_t>(per_direction));
    if (!fits(mine[0], {4 * hidden, i < directions ? input.size(2) : directions * hidden}) || !fits(mine[1], {4 * hidden, hidden})) return false;
    for (int64_t k = 2; k < per_direction; k++)
      if (!fits(mine[static_cast<size_t>(k)], {4 * hidden})) return false;
  }
  return true;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm(const at::Tensor &input, at::TensorList hx, at::TensorList params, bool has_biases, int64_t layers,
                                                    double dropout, bool train, bool bidirectional, bool batch_first) {
  if (at::autocast::is_autocast_enabled(at::kMPS) || !is_plain(input, hx, params, has_biases, layers, bidirectional) ||
      hx[0].size(1) != input.size(batch_first ? 0 : 1))
    return at::native::lstm(input, hx, params, has_biases, layers, dropout, train, bidirectional, batch_first);
  auto [output, hidden, cell, gates, cells, outputs] = at::_lstm_mps(input, hx, params, has_biases, layers, dropout, train, bidirectional, batch_first);
  return {output, hidden, cell};
}

}  // namespace

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> _lstm_mps(const at::Tensor &input, at::TensorList hx,
                                                                                             at::TensorList params, bool has_biases,
                                                                                             int64_t num_layers, double dropout, bool train,
                                                                                             bool bidirectional, bool batch_first) {
  TORCH_CHECK(hx.size() == 2, "lstm expects two hidden states");
  TORCH_CHECK(hx[0].dim() != 3 || hx[1].dim() != 3 || hx[0].size(2) == hx[1].size(2), "LSTM with projections is not currently supported with MPS.");
  TORCH_CHECK(is_plain(input, hx, params, has_biases, num_layers, bidirectional), "_lstm_mps: the arguments do not fit");
  const at::Tensor first = steps_first(input, batch_first);
  const Network n(first, hx, has_biases, num_layers, dropout, train, bidirectional);
  const auto options = input.options();
  const at::Tensor outputs = empty({n.layers + (n.drops ? n.layers - 1 : 0), n.steps, n.batch, n.width()}, options);
  const at::Tensor hidden = empty(hx[0].sizes(), options), cell = empty(hx[0].sizes(), options);
  const at::Tensor gates = empty({n.layers * n.directions, n.steps, n.batch, 4 * n.hidden}, options);
  const at::Tensor cells = empty({n.layers * n.directions, n.steps, n.batch, n.hidden}, options);
  for (int64_t layer = 0; layer < n.layers; layer++) {
    if (n.drops && layer > 0) {
      at::Tensor factor = factors(n, outputs, layer - 1);
      if (dropout >= 1.0)
        factor.zero_();
      else
        factor.bernoulli_(1.0 - dropout).div_(1.0 - dropout);
    }
    const at::Tensor in = input_of(n, outputs, first, layer);
    for (int64_t direction = 0; direction < n.directions; direction++) {
      const int64_t index = layer * n.directions + direction;
      const Parameters p(n, params, index);
      const Operand in_(in, Operand::plain), h(hx[0][index], Operand::plain), c(hx[1][index], Operand::plain);
      const Operand weight_input(p.weight_input, Operand::plain), weight_hidden(p.weight_hidden, Operand::plain);
      const Operand bias_input(p.bias_input, Operand::plain), bias_hidden(p.bias_hidden, Operand::plain);
      const Operand output(outputs[layer].narrow(2, direction * n.hidden, n.hidden), Operand::output);
      const Operand last_h(hidden[index], Operand::output), last_c(cell[index], Operand::output);
      const Operand gates_(gates[index], Operand::output), cells_(cells[index], Operand::output);
      check(mps_op_lstm_layer(stream(), in_.pointer(), h.pointer(), c.pointer(), weight_input.pointer(), weight_hidden.pointer(),
                              bias_input.pointer_or_null(), bias_hidden.pointer_or_null(), direction == 1, output.pointer(), last_h.pointer(),
                              last_c.pointer(), gates_.pointer(), cells_.pointer()));
    }
  }
  // `outputs` is kept for the gradient: the caller may write into a copy.
  const at::Tensor output = outputs[n.layers - 1].clone();
  return {batch_first ? output.transpose(0, 1) : output, hidden, cell, gates, cells, outputs};
}

std::tuple<at::Tensor, std::vector<at::Tensor>, std::vector<at::Tensor>> lstm_mps_backward(
    const OptionalTensor &grad_y, const OptionalTensor &grad_hy, const OptionalTensor &grad_cy, const at::Tensor &z_state,
    const at::Tensor &cell_state_fwd, const at::Tensor &input, const at::Tensor &layersOutputs, at::TensorList hx, at::TensorList params, bool has_biases,
    int64_t num_layers, double dropout, bool train, bool bidirectional, bool batch_first) {
  const at::Tensor first = steps_first(input, batch_first);
  const Network n(first, hx, has_biases, num_layers, dropout, train, bidirectional);
  const auto options = input.options();
  const auto given = [](const OptionalTensor &t) { return t.has_value() && t->defined(); };
  const at::Tensor grad_hidden = empty(hx[0].sizes(), options), grad_cell = empty(hx[0].sizes(), options);
  std::vector<at::Tensor> grad_params(params.size());
  at::Tensor grad = given(grad_y) ? steps_first(*grad_y, batch_first) : at::Tensor();
  for (int64_t layer = n.layers; layer-- > 0;) {
    const at::Tensor in = input_of(n, layersOutputs, first, layer);
    at::Tensor grad_in;
    for (int64_t direction = 0; direction < n.directions; direction++) {
      const int64_t index = layer * n.directions + direction;
      const Parameters p(n, params, index);
      const at::Tensor to_input = empty(in.sizes(), options), to_weight = empty(p.weight_input.sizes(), options);
      const at::Tensor to_weight_hidden = empty(p.weight_hidden.sizes(), options);
      const at::Tensor to_bias = has_biases ? empty(p.bias_input.sizes(), options) : at::Tensor();
      const at::Tensor from = grad.defined() ? grad.narrow(2, direction * n.hidden, n.hidden) : at::Tensor();
      const at::Tensor from_h = given(grad_hy) ? (*grad_hy)[index] : at::Tensor(), from_c = given(grad_cy) ? (*grad_cy)[index] : at::Tensor();
      const Operand from_(from, Operand::plain), from_h_(from_h, Operand::plain), from_c_(from_c, Operand::plain);
      const Operand gates(z_state[index], Operand::plain), cells(cell_state_fwd[index], Operand::plain);
      const Operand output(layersOutputs[layer].narrow(2, direction * n.hidden, n.hidden), Operand::plain), in_(in, Operand::plain);
      const Operand h(hx[0][index], Operand::plain), c(hx[1][index], Operand::plain);
      const Operand weight_input(p.weight_input, Operand::plain), weight_hidden(p.weight_hidden, Operand::plain);
      const Operand to_input_(to_input, Operand::output), to_h(grad_hidden[index], Operand::output), to_c(grad_cell[index], Operand::output);
      const Operand to_weight_(to_weight, Operand::output), to_weight_hidden_(to_weight_hidden, Operand::output), to_bias_(to_bias, Operand::output);
      check(mps_op_lstm_layer_backward(stream(), from_.pointer_or_null(), from_h_.pointer_or_null(), from_c_.pointer_or_null(), gates.pointer(),
                                       cells.pointer(), output.pointer(), in_.pointer(), h.pointer(), c.pointer(), weight_input.pointer(),
                                       weight_hidden.pointer(), direction == 1, to_input_.pointer(), to_h.pointer(), to_c.pointer(),
                                       to_weight_.pointer(), to_weight_hidden_.pointer(), to_bias_.pointer_or_null()));
      const auto at = static_cast<size_t>(index * n.per_direction);
      grad_params[at] = to_weight;
      grad_params[at + 1] = to_weight_hidden;
      if (has_biases) {
        grad_params[at + 2] = to_bias;
        grad_params[at + 3] = to_bias.clone();
      }
      grad_in = grad_in.defined() ? grad_in.add_(to_input) : to_input;
    }
    grad = n.drops && layer > 0 ? grad_in.mul_(factors(n, layersOutputs, layer - 1)) : grad_in;
  }
  return {batch_first ? grad.transpose(0, 1) : grad, {grad_hidden, grad_cell}, grad_params};
}

TORCH_LIBRARY_IMPL(aten, MPS, m) { m.impl("lstm.input", TORCH_FN(lstm)); }
TORCH_LIBRARY_IMPL(aten, AutogradMPS, m) { m.impl("lstm.input", TORCH_FN(lstm)); }

}  // namespace openmps::native
