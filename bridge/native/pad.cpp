/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pad: padding kernels that make their results, with PyTorch's checks; in one and three dimensions they are PyTorch's own.
 */
#include <ATen/native/Padding.h>
#include <ATen/native/Resize.h>

#include "bridge/convert.h"
#include "bridge/kernels/pad.h"
#include "openmps/ops/pad.h"

namespace openmps::native {
namespace {

using Forward = decltype(&mps_op_reflection_pad);
using Backward = decltype(&mps_op_reflection_pad_backward);

void run(Forward function, const at::Tensor &self, at::IntArrayRef padding, const at::Tensor &out) {
  TORCH_CHECK(out.scalar_type() == self.scalar_type(), "expected scalar type ", self.scalar_type(), " but found ", out.scalar_type());
  const Operand self_(self, Operand::plain), out_(out, Operand::output);
  check(function(stream(), self_.pointer(), padding.data(), static_cast<uint32_t>(padding.size()), out_.pointer()));
}

void run_backward(Backward function, const at::Tensor &grad_output, const at::Tensor &self, at::IntArrayRef padding, const at::Tensor &grad_input) {
  TORCH_CHECK(grad_output.scalar_type() == grad_input.scalar_type(), "expected scalar type ", grad_output.scalar_type(), " but found ",
              grad_input.scalar_type());
  const Operand grad_(grad_output, Operand::plain), self_(self, Operand::plain), out_(grad_input, Operand::output);
  check(function(stream(), grad_.pointer(), self_.pointer(), padding.data(), static_cast<uint32_t>(padding.size()), out_.pointer()));
}

// The checks of a gradient whose entry is not structured.
void check_gradient(const at::Tensor &grad_output, const at::Tensor &self, at::IntArrayRef padding) {
  static constexpr const char *names[] = {"width", "height", "depth"};
  for (size_t k = 0; k < padding.size() / 2; k++) {
    const int64_t d = self.dim() - 1 - static_cast<int64_t>(k), expected = self.size(d) + padding[2 * k] + padding[2 * k + 1];
    TORCH_CHECK(expected == grad_output.size(d), "gradOutput ", names[k], " unexpected. Expected: ", expected, ", Got: ", grad_output.size(d));
  }
}

at::Tensor &replicate_backward(const at::Tensor &grad_output, const at::Tensor &self, at::IntArrayRef padding, size_t dimensions, at::Tensor &grad_input) {
  TORCH_CHECK(padding.size() == 2 * dimensions, "padding size is expected to be ", 2 * dimensions);
  check_gradient(grad_output, self, padding);
  grad_input.resize_(self.sizes(), self.suggest_memory_format());
  run_backward(mps_op_replication_pad_backward, grad_output, self, padding, grad_input);
  return grad_input;
}

}  // namespace

at::Tensor &reflection_pad2d_out_mps(const at::Tensor &self, at::IntArrayRef padding, at::Tensor &out) {
  at::native::padding::check_valid_input<2>(self, padding);
  const int64_t height = self.size(-2), width = self.size(-1);
  const int64_t out_height = height + padding[2] + padding[3], out_width = width + padding[0] + padding[1];
  for (size_t k = 0; k < 2; k++) {
    const int64_t d = self.dim() - 1 - static_cast<int64_t>(k);
    TORCH_CHECK(padding[2 * k] < self.size(d) && padding[2 * k + 1] < self.size(d), "Argument #", 4 + 2 * k, ": Padding size should be less than the ",
                "corresponding input dimension, but got: padding (", padding[2 * k], ", ", padding[2 * k + 1], ") at dimension ", d, " of input ", self.sizes());
  }
  TORCH_CHECK(out_width >= 1 || out_height >= 1, "input (H: ", height, ", W: ", width, ") is too small. Calculated output H: ", out_height, " W: ",
              out_width);
  at::DimVector sizes(self.sizes());
  sizes[sizes.size() - 2] = out_height;
  sizes[sizes.size() - 1] = out_width;
  if (self.dim() == 3)
    out.resize_(sizes);
  else
    out.resize_(sizes, self.suggest_memory_format());
  run(mps_op_reflection_pad, self, padding, out);
  return out;
}

at::Tensor reflection_pad2d_mps(const at::Tensor &self, at::IntArrayRef padding) {
  at::Tensor out = empty({0}, self.options());
  return reflection_pad2d_out_mps(self, padding, out);
}

at::Tensor &reflection_pad2d_backward_out_mps(const at::Tensor &grad_output, const at::Tensor &self, at::IntArrayRef padding, at::Tensor &grad_input) {
  check_gradient(grad_output, self, padding);
  grad_input.resize_as_(self, self.suggest_memory_format());
  run_backward(mps_op_reflection_pad_backward, grad_output, self, padding, grad_input);
  return grad_input;
}

at::Tensor reflection_pad2d_backward_mps(const at::Tensor &grad_output, const at::Tensor &self, at::IntArrayRef padding) {
  at::Tensor grad_input = empty({0}, self.options());
  return reflection_pad2d_backward_out_mps(grad_output, self, padding, grad_input);
}

// PyTorch gives the result self's memory format here, also where out had strides of its own.
void structured_reflection_pad3d_out_mps::impl(const at::Tensor &self, at::ArrayRef<int64_t> padding, const at::Tensor &out) {
  out.resize_(out.sizes(), self.suggest_memory_format());
  run(mps_op_reflection_pad, self, padding, out);
}

void structured_replication_pad2d_out_mps::impl(const at::Tensor &self, at::ArrayRef<int64_t> padding, const at::Tensor &out) {
  if (self.dim() == 4) out.resize_(out.sizes(), self.suggest_memory_format());
  run(mps_op_replication_pad, self, padding, out);
}

void structured_replication_pad3d_out_mps::impl(const at::Tensor &self, at::ArrayRef<int64_t> padding, const at::Tensor &out) {
  out.resize_(out.sizes(), self.suggest_memory_format());
  run(mps_op_replication_pad, self, padding, out);
}

void structured_reflection_pad3d_backward_out_mps::impl(const at::Tensor &grad_output, const at::Tensor &self, at::ArrayRef<int64_t> padding,
                                                        const at::Tensor &grad_input) {
  if (grad_output.numel() == 0) return;
  grad_input.resize_(self.sizes(), self.suggest_memory_format());
  run_backward(mps_op_reflection_pad_backward, grad_output, self, padding, grad_input);
}

at::Tensor &replication_pad2d_backward_out_mps(const at::Tensor &grad_output, const at::Tensor &self, at::IntArrayRef padding, at::Tensor &grad_input) {
  return replicate_backward(grad_output, self, padding, 2, grad_input);
}

at::Tensor replication_pad2d_backward_mps(const at::Tensor &grad_output, const at::Tensor &self, at::IntArrayRef padding) {
  at::Tensor grad_input = empty({0}, self.options());
  return replicate_backward(grad_output, self, padding, 2, grad_input);
}

at::Tensor &replication_pad3d_backward_out_mps(const at::Tensor &grad_output, const at::Tensor &self, at::IntArrayRef padding, at::Tensor &grad_input) {
  return replicate_backward(grad_output, self, padding, 3, grad_input);
}

at::Tensor replication_pad3d_backward_mps(const at::Tensor &grad_output, const at::Tensor &self, at::IntArrayRef padding) {
  at::Tensor grad_input = empty({0}, self.options());
  return replicate_backward(grad_output, self, padding, 3, grad_input);
}

}  // namespace openmps::native
