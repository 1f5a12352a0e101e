/* SPDX-License-Identifier: BSD-3-Clause
 *
 * provider_convolution: convolutions by ATen on the CPU, which is oneDNN for most. A job is cut along the batch, or along channels or groups
 * where the batch is small; a piece's result is copied to its place while it is in the cache. Halves that oneDNN does not compute well on
 * this processor go through f32 and are rounded once.
 */
#include <ATen/Functions.h>

#include <algorithm>
#include <array>
#include <vector>

#include "bridge/provider.h"

namespace openmps::dense {
namespace {

// What one core does: multiply-adds and bytes a nanosecond.
constexpr double kMacsPerNs = 40.0, kBytesPerNs = 8.0;
constexpr double kPieceNs = 800e3;  // pieces of the batch stay in the cache

struct Tensors {
  at::Tensor input, weight, bias, out; // bias may be undefined
};

struct Settings {
  std::vector<int64_t> stride, padding, dilation, output_padding;
  bool transposed;
};

at::Tensor tensor(const mps_dense_operand &o, uint32_t rank, at::ScalarType type) {
  if (o.data == nullptr) return {};
  return alias(o.data, {o.sizes, rank}, {o.strides, rank}, type);
}

Settings settings(const mps_dense_convolution &c) {
  auto list = [&](const int64_t *values) { return std::vector<int64_t>(values, values + c.dimensions); };
  return {list(c.stride), list(c.padding), list(c.dilation), list(c.output_padding), c.transposed};
}

Tensors tensors(const mps_dense_convolution &c) {
  at::ScalarType type = scalar_type(c.dtype);
  uint32_t rank = c.dimensions + 2;
  return {tensor(c.input, rank, type), tensor(c.weight, rank, type), tensor(c.bias, 1, type), tensor(c.out, rank, type)};
}

// The type that a piece is computed in.
at::ScalarType compute_type(at::ScalarType type) { return type == at::kFloat || has_native(type) ? type : at::kFloat; }

int64_t elements(const mps_dense_operand &o, uint32_t rank) {
  int64_t count = 1;
  for (uint32_t d = 0; d < rank; d++) count *= o.sizes[d];
  return count;
}

double nanoseconds(const mps_dense_convolution &c) {
  const mps_dense_operand &positions = c.transposed ? c.input : c.out;
  double macs = static_cast<double>(c.weight.sizes[1]);
  for (uint32_t d = 0; d < c.dimensions; d++) macs *= static_cast<double>(c.weight.sizes[d + 2]);
  for (uint32_t d = 0; d < c.dimensions + 2; d++) macs *= static_cast<double>(positions.sizes[d]);
  double bytes = static_cast<double>(elements(c.input, c.dimensions + 2) + elements(c.out, c.dimensions + 2)) * 4.0;
  return std::max(macs / kMacsPerNs, bytes / kBytesPerNs);
}

// [begin, end) of `size` for piece `index` of `count`, in multiples of `step`.
std::pair<int64_t, int64_t> range(int64_t size, int64_t count, int64_t step, int64_t index) {
  int64_t steps = (size + step - 1) / step, each = (steps + count - 1) / count;
  return {std::min(size, index * each * step), std::min(size, (index + 1) * each * step)};
}

// Images of one piece: each piece arranges the weights anew, so that it should have as many values of its own.
int64_t batch_pieces(const mps_dense_convolution &c, int64_t wanted) {
  uint32_t rank = c.dimensions + 2;
  int64_t batch = c.input.sizes[0], values = (elements(c.input, rank) + elements(c.out, rank)) / batch;
  int64_t least = std::max<int64_t>(1, elements(c.weight, rank) / std::max<int64_t>(1, values));
  return std::clamp<int64_t>(batch / least, 1, wanted);
}

at::Tensor optional_narrow(const at::Tensor &t, int64_t begin, int64_t end) { return t.defined() ? t.narrow(0, begin, end - begin) : t; }

// A part of a convolution: its tensors and how many groups it has.
struct Part {
  at::Tensor input, weight, bias, out;
  int64_t groups;
};

constexpr int64_t kChannelStep = 16; // oneDNN's blocks

// Output channels [begin, end) of one group, or whole groups where there are several. The weight's channels are dimension 0, transposed 1.
Part channel_part(const Tensors &t, const mps_dense_convolution &c, int64_t index, int64_t count) {
  if (c.groups == 1) {
    auto [begin, end] = range(t.out.size(1), count, kChannelStep, index);
    return {t.input, t.weight.narrow(c.transposed ? 1 : 0, begin, end - begin), optional_narrow(t.bias, begin, end),
            t.out.narrow(1, begin, end - begin), 1};
  }
  auto [begin, end] = range(c.groups, count, 1, index);
  int64_t in = t.input.size(1) / c.groups, out = t.out.size(1) / c.groups, rows = t.weight.size(0) / c.groups;
  return {t.input.narrow(1, begin * in, (end - begin) * in), t.weight.narrow(0, begin * rows, (end - begin) * rows),
          optional_narrow(t.bias, begin * out, end * out), t.out.narrow(1, begin * out, (end - begin) * out), end - begin};
}

int64_t channel_pieces(const mps_dense_convolution &c, int64_t channels, int64_t wanted) {
  int64_t most = c.groups == 1 ? channels / kChannelStep : c.groups;
  return std::clamp<int64_t>(most, 1, wanted);
}

at::Tensor in_type(const at::Tensor &t, at::ScalarType type) { return t.defined() ? t.to(type) : t; }

std::optional<at::Tensor> optional_tensor(const at::Tensor &t) { return t.defined() ? std::optional<at::Tensor>(t) : std::nullopt; }

void run_part(const Part &p, const Settings &s) {
  if (p.out.numel() == 0) return;
  at::ScalarType type = compute_type(p.out.scalar_type());
  p.out.copy_(at::convolution(in_type(p.input, type), in_type(p.weight, type), optional_tensor(in_type(p.bias, type)), s.stride, s.padding,
                              s.dilation, s.transposed, s.output_padding, p.groups));
}

// ---- backward ----

struct Gradients {
  at::Tensor input, weight, bias; // undefined: not wanted
};

// oneDNN 3.12 gives wrong weight gradients for dilated depthwise convolutions in bf16, channels last (torch 2.13.0 on the CPU does too).
bool is_trusted(const Part &p, const Settings &s) {
  return p.groups == 1 || std::all_of(s.dilation.begin(), s.dilation.end(), [](int64_t d) { return d == 1; });
}

std::array<at::Tensor, 3> run_backward(const Part &p, const Settings &s, std::array<bool, 3> mask) {
  at::ScalarType type = is_trusted(p, s) ? compute_type(p.out.scalar_type()) : at::kFloat;
  at::Tensor grad = in_type(p.out, type);
  std::array<int64_t, 1> bias_sizes{grad.size(1)};
  auto [a, b, c] = at::convolution_backward(grad, in_type(p.input, type), in_type(p.weight, type), at::IntArrayRef(bias_sizes), s.stride,
                                            s.padding, s.dilation, s.transposed, s.output_padding, p.groups, mask);
  return {a, b, c};
}

// Along the batch: the gradient of the input is cut, those of weight and bias are sums over the pieces, added as a tree.
mps_status backward_by_batch(const mps_dense_convolution &c, const Tensors &t, const Settings &s, const Gradients &g, int64_t count) {
  std::vector<at::Tensor> weights(static_cast<size_t>(count)), biases(static_cast<size_t>(count));
  std::array<bool, 3> mask{g.input.defined(), g.weight.defined(), g.bias.defined()};
  mps_status status = spread(static_cast<uint32_t>(count), [&](uint32_t i) {
    auto [begin, end] = range(t.input.size(0), count, 1, i);
    if (begin == end) return;
    Part p{t.input.narrow(0, begin, end - begin), t.weight, {}, t.out.narrow(0, begin, end - begin), c.groups};
    auto results = run_backward(p, s, mask);
    if (mask[0]) g.input.narrow(0, begin, end - begin).copy_(results[0]);
    if (count == 1) {
      if (mask[1]) g.weight.copy_(results[1]);
      if (mask[2]) g.bias.copy_(results[2]);
      return;
    }
    // Halves keep their sums in f32.
    if (mask[1]) weights[i] = results[1].to(at::kFloat);
    if (mask[2]) biases[i] = results[2].to(at::kFloat);
  });
  if (status != MPS_STATUS_OK || count == 1 || (!mask[1] && !mask[2])) return status;
  return spread(1, [&](uint32_t) {
    for (auto *sums : {&weights, &biases}) {
      const at::Tensor &to = sums == &weights ? g.weight : g.bias;
      if (!to.defined()) continue;
      sums->erase(std::remove_if(sums->begin(), sums->end(), [](const at::Tensor &x) { return !x.defined(); }), sums->end());
      for (size_t width = 1; width < sums->size(); width *= 2)
        for (size_t i = 0; i + width < sums->size(); i += 2 * width) (*sums)[i].add_((*sums)[i + width]);
      to.copy_((*sums)[0]);
    }
  });
}

// Along the channels: of the input for its gradient, of the output for the others; or along the groups for all.
mps_status backward_by_channels(const mps_dense_convolution &c, const Tensors &t, const Settings &s, const Gradients &g, int64_t wanted) {
  int64_t in_count = 0, out_count = 0;
  if (c.groups > 1 || g.weight.defined() || g.bias.defined()) out_count = channel_pieces(c, t.out.size(1), wanted);
  if (c.groups == 1 && g.input.defined()) in_count = channel_pieces(c, t.input.size(1), wanted);
  return spread(static_cast<uint32_t>(in_count + out_count), [&](uint32_t i) {
    if (i < in_count) {
      auto [begin, end] = range(t.input.size(1), in_count, kChannelStep, i);
      if (begin == end) return;
      Part p{t.input.narrow(1, begin, end - begin), t.weight.narrow(c.transposed ? 0 : 1, begin, end - begin), {}, t.out, 1};
      g.input.narrow(1, begin, end - begin).copy_(run_backward(p, s, {true, false, false})[0]);
      return;
    }
    int64_t index = i - in_count;
    Part p = channel_part(t, c, index, out_count);
    if (p.out.numel() == 0) return;
    bool with_input = c.groups > 1 && g.input.defined();
    auto results = run_backward(p, s, {with_input, g.weight.defined(), g.bias.defined()});
    // Where the part lies, told by the same cut of the gradients.
    Tensors to{g.input.defined() ? g.input : t.input, g.weight.defined() ? g.weight : t.weight, g.bias, t.out};
    Part place = channel_part(to, c, index, out_count);
    if (with_input) place.input.copy_(results[0]);
    if (g.weight.defined()) place.weight.copy_(results[1]);
    if (g.bias.defined()) place.bias.copy_(results[2]);
  });
}

}  // namespace

mps_status convolution(const mps_dense_convolution *call) {
  const mps_dense_convolution &c = *call;
  int64_t wanted = pieces_for(nanoseconds(c), kPieceNs);
  Settings s = settings(c);
  int64_t batches = batch_pieces(c, wanted);
  if (batches >= std::min<int64_t>(wanted, 2)) {
    return spread(static_cast<uint32_t>(batches), [&](uint32_t i) {
      Tensors t = tensors(c);
      auto [begin, end] = range(t.out.size(0), batches, 1, i);
      if (begin < end)
        run_part({t.input.narrow(0, begin, end - begin), t.weight, t.bias, t.out.narrow(0, begin, end - begin), c.groups}, s);
    });
  }
  int64_t count = channel_pieces(c, c.out.sizes[1], wanted);
  return spread(static_cast<uint32_t>(count), [&](uint32_t i) { run_part(channel_part(tensors(c), c, i, count), s); });
}

mps_status convolution_backward(const mps_dense_convolution_backward *call) {
  const mps_dense_convolution &c = call->forward;
  uint32_t rank = c.dimensions + 2;
  at::ScalarType type = scalar_type(c.dtype);
  Settings s = settings(c);
  Tensors t;
  Gradients g;
  mps_status status = spread(1, [&](uint32_t) {
    t = tensors(c);
    g = {tensor(call->grad_input, rank, type), tensor(call->grad_weight, rank, type), tensor(call->grad_bias, 1, type)};
  });
  if (status != MPS_STATUS_OK) return status;
  int64_t wanted = pieces_for(2.0 * nanoseconds(c), kPieceNs), batches = std::min<int64_t>(batch_pieces(c, wanted), 32);
  if (batches >= std::min<int64_t>(wanted, 2)) return backward_by_batch(c, t, s, g, batches);
  return backward_by_channels(c, t, s, g, wanted);
}

}  // namespace openmps::dense
