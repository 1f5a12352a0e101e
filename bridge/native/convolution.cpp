/* SPDX-License-Identifier: BSD-3-Clause
 *
 * convolution: the entries that a stock build and an Apple build send convolutions to. All of them are one C operator.
 */
#include <ATen/native/ConvUtils.h>
#include <ATen/ops/complex.h>
#include <torch/library.h>

#include <algorithm>
#include <string>

#include "bridge/convert.h"
#include "bridge/kernels/convolution.h"
#include "openmps/ops/dense.h"

namespace openmps::native {
namespace {

struct Settings {
  at::IntArrayRef stride, padding, dilation, output_padding;
  bool transposed;
  int64_t groups;
};

at::DimVector output_sizes(const at::Tensor &input, const at::Tensor &weight, const Settings &s) {
  at::DimVector sizes{input.size(0), s.transposed ? weight.size(1) * s.groups : weight.size(0)};
  auto at = [](at::IntArrayRef list, int64_t d) { return list.size() == 1 ? list[0] : list[static_cast<size_t>(d)]; };
  for (int64_t d = 0; d < input.dim() - 2; d++) {
    const int64_t reach = at(s.dilation, d) * (weight.size(d + 2) - 1), size = input.size(d + 2);
    sizes.push_back(s.transposed ? (size - 1) * at(s.stride, d) - 2 * at(s.padding, d) + reach + at(s.output_padding, d) + 1
                                 : (size + 2 * at(s.padding, d) - reach - 1) / at(s.stride, d) + 1);
  }
  return sizes;
}

std::string joined(at::IntArrayRef sizes) {
  std::string text;
  for (const int64_t size : sizes) text += (text.empty() ? "" : " x ") + std::to_string(size);
  return text;
}

// A transposed convolution that leaves nothing is refused, as on the CPU, unless there is nothing to begin with.
void check_output(const at::Tensor &input, at::IntArrayRef sizes, const Settings &s) {
  if (!s.transposed || input.numel() == 0) return;
  const at::IntArrayRef given = input.sizes().slice(2), left = sizes.slice(2);
  const bool all = std::all_of(left.begin(), left.end(), [](int64_t size) { return size >= 1; });
  TORCH_CHECK(all, "Given input size per channel: (", joined(given), "). Calculated output size per channel: (", joined(left), "). Output size is too small");
}

// As on the CPU: channels last if the input or the weight is.
at::MemoryFormat layout(const at::Tensor &input, const at::Tensor &weight) {
  if (!at::native::mkldnn_conv_use_channels_last(input, weight)) return at::MemoryFormat::Contiguous;
  return input.dim() == 5 ? at::MemoryFormat::ChannelsLast3d : input.dim() == 4 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
}

void check_types(const at::Tensor &input, const at::Tensor &weight, const at::Tensor &bias) {
  TORCH_CHECK(input.scalar_type() == weight.scalar_type(), "Input type (", input.toString(), ") and weight type (", weight.toString(), ") should be the same");
  TORCH_CHECK(!bias.defined() || bias.scalar_type() == input.scalar_type(), "Input type (", input.toString(), ") and bias type (", bias.toString(),
              ") should be the same");
}

at::Tensor forward(const at::Tensor &input, const at::Tensor &weight, const at::Tensor &bias, const Settings &s) {
  check_types(input, weight, bias);
  const at::DimVector sizes = output_sizes(input, weight, s);
  check_output(input, sizes, s);
  at::Tensor out = empty(sizes, input.options().memory_format(layout(input, weight)));
  const Operand input_(input, Operand::plain), weight_(weight, Operand::plain), bias_(bias, Operand::plain), out_(out, Operand::output);
  const List<int64_t> stride(s.stride), padding(s.padding), dilation(s.dilation), output_padding(s.output_padding);
  check(mps_op_convolution(openmps::stream(), input_.pointer(), weight_.pointer(), bias_.pointer_or_null(), stride.data(), stride.count(), padding.data(),
                           padding.count(), dilation.data(), dilation.count(), s.transposed, output_padding.data(), output_padding.count(), s.groups,
                           out_.pointer()));
  return out;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> backward(const at::Tensor &grad_output, const at::Tensor &input, const at::Tensor &weight, const Settings &s,
                                                        std::array<bool, 3> mask) {
  check_types(input, weight, grad_output);
  const at::MemoryFormat format = layout(input, weight);
  at::Tensor grad_input, grad_weight, grad_bias;
  if (mask[0]) grad_input = empty(input.sizes(), grad_output.options().memory_format(format));
  if (mask[1]) grad_weight = empty(weight.sizes(), grad_output.options().memory_format(format));
  if (mask[2]) grad_bias = empty({grad_output.size(1)}, grad_output.options());
  // Gradients of complex functions conjugate.
  const at::Tensor input_c = input.conj(), weight_c = weight.conj();
  const Operand grad_output_(grad_output, Operand::plain), input_(input_c, Operand::plain), weight_(weight_c, Operand::plain);
  const Operand to_input(grad_input, Operand::output), to_weight(grad_weight, Operand::output), to_bias(grad_bias, Operand::output);
  const List<int64_t> stride(s.stride), padding(s.padding), dilation(s.dilation), output_padding(s.output_padding);
  check(mps_op_convolution_backward(openmps::stream(), grad_output_.pointer(), input_.pointer(), weight_.pointer(), stride.data(), stride.count(),
                                    padding.data(), padding.count(), dilation.data(), dilation.count(), s.transposed, output_padding.data(),
                                    output_padding.count(), s.groups, to_input.pointer_or_null(), to_weight.pointer_or_null(), to_bias.pointer_or_null()));
  return {grad_input, grad_weight, grad_bias};
}

constexpr int64_t kNoPadding[] = {0};
const at::IntArrayRef no_padding() { return at::IntArrayRef(kNoPadding, 1); }

at::Tensor defined(const std::optional<at::Tensor> &value) { return value.has_value() ? *value : at::Tensor(); }

at::Tensor overrideable(const at::Tensor &input, const at::Tensor &weight, const std::optional<at::Tensor> &bias, at::IntArrayRef stride,
                        at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed, at::IntArrayRef output_padding, int64_t groups) {
  return forward(input, weight, defined(bias), {stride, padding, dilation, output_padding, transposed, groups});
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> backward_overrideable(const at::Tensor &grad_output, const at::Tensor &input, const at::Tensor &weight,
                                                                     at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation,
                                                                     bool transposed, at::IntArrayRef output_padding, int64_t groups,
                                                                     std::array<bool, 3> mask) {
  return backward(grad_output, input, weight, {stride, padding, dilation, output_padding, transposed, groups}, mask);
}

}  // namespace

at::Tensor _mps_convolution(const at::Tensor &self, const at::Tensor &weight, const std::optional<at::Tensor> &bias, at::IntArrayRef padding,
                            at::IntArrayRef stride, at::IntArrayRef dilation, int64_t groups) {
  return forward(self, weight, defined(bias), {stride, padding, dilation, no_padding(), false, groups});
}

at::Tensor _mps_convolution_transpose(const at::Tensor &self, const at::Tensor &weight, at::IntArrayRef padding, at::IntArrayRef output_padding,
                                      at::IntArrayRef stride, at::IntArrayRef dilation, int64_t groups) {
  return forward(self, weight, {}, {stride, padding, dilation, output_padding, true, groups});
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> mps_convolution_backward(const at::Tensor &self, const at::Tensor &grad_output, const at::Tensor &weight,
                                                                        at::IntArrayRef padding, at::IntArrayRef stride, at::IntArrayRef dilation,
                                                                        int64_t groups, std::array<bool, 3> output_mask) {
  return backward(grad_output, self, weight, {stride, padding, dilation, no_padding(), false, groups}, output_mask);
}

std::tuple<at::Tensor, at::Tensor> mps_convolution_transpose_backward(const at::Tensor &self, const at::Tensor &grad_output, const at::Tensor &weight,
                                                                      at::IntArrayRef padding, at::IntArrayRef output_padding, at::IntArrayRef stride,
                                                                      at::IntArrayRef dilation, int64_t groups, std::array<bool, 2> output_mask) {
  auto [input, kernel, bias] =
      backward(grad_output, self, weight, {stride, padding, dilation, output_padding, true, groups}, {output_mask[0], output_mask[1], false});
  return {input, kernel};
}

TORCH_LIBRARY_IMPL(aten, MPS, m) {
  m.impl("convolution_overrideable", TORCH_FN(overrideable));
  m.impl("convolution_backward_overrideable", TORCH_FN(backward_overrideable));
}

}  // namespace openmps::native
