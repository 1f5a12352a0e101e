/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pool: pooling kernels that make their results; windows and checks are PyTorch's (ATen/native/Pool.h).
 */
#include <ATen/native/AdaptivePooling.h>
#include <ATen/native/Pool.h>
#include <ATen/ops/max_pool2d_with_indices_meta.h>
#include <torch/library.h>

#include "bridge/convert.h"
#include "bridge/kernels/pool.h"
#include "bridge/torch_version.h"
#include "openmps/ops/pool.h"

namespace openmps::native {
namespace {

// Three numbers from one or three.
std::array<int64_t, 3> triple(at::IntArrayRef list, const char *name, const char *function) {
  TORCH_CHECK(list.size() == 1 || list.size() == 3, function, ": ", name, " must be an int, or a tuple of three ints");
  return list.size() == 1 ? std::array<int64_t, 3>{list[0], list[0], list[0]} : std::array<int64_t, 3>{list[0], list[1], list[2]};
}

// The shape of a result whose last dimensions are replaced.
at::DimVector with_space(const at::Tensor &self, at::IntArrayRef space) {
  at::DimVector sizes(self.sizes().begin(), self.sizes().end() - static_cast<int64_t>(space.size()));
  sizes.append(space.begin(), space.end());
  return sizes;
}

struct Windows3d {
  std::array<int64_t, 3> kernel, stride, padding, dilation, out;

  Windows3d(const at::Tensor &self, at::IntArrayRef kernel_size, at::IntArrayRef stride_, at::IntArrayRef padding_, at::IntArrayRef dilation_, bool ceil_mode)
      : kernel(triple(kernel_size, "kernel_size", "max_pool3d")), stride(stride_.empty() ? kernel : triple(stride_, "stride", "max_pool3d")),
        padding(triple(padding_, "padding", "max_pool3d")), dilation(triple(dilation_, "dilation", "max_pool3d")) {
    TORCH_CHECK(self.dim() == 4 || self.dim() == 5, "max_pool3d_with_indices: Expected 4D or 5D input, but got ", self.sizes());
    for (int d = 0; d < 3; d++)
      out[d] = at::native::pooling_output_shape<int64_t>(self.size(d - 3), kernel[d], padding[d], stride[d], dilation[d], ceil_mode);
    const int64_t slices = self.size(-4);
    at::native::pool3d_shape_check(self, slices, kernel[0], kernel[1], kernel[2], stride[0], stride[1], stride[2], padding[0], padding[1], padding[2],
                                   dilation[0], dilation[1], dilation[2], self.size(-3), self.size(-2), self.size(-1), out[0], out[1], out[2],
                                   "max_pool3d_with_indices_out_mps()");
  }
};

// PyTorch's checks and shapes of max_pool2d_with_indices, but no memory for the indices.
struct MaxPool2d : at::meta::structured_max_pool2d_with_indices {
  at::Tensor out;

  void set_output_raw_strided(int64_t number, at::IntArrayRef sizes, at::IntArrayRef, at::TensorOptions options OPENMPS_NAMES_PARAMETER) override {
    if (number == 0) out = empty(sizes, options);
  }
  const at::Tensor &maybe_get_output(int64_t) override { return out; }
};

at::Tensor &unpool(const at::Tensor &self, const at::Tensor &indices, at::IntArrayRef output_size, size_t dimensions, at::Tensor &out) {
  const char *name = dimensions == 2 ? "max_unpooling2d" : "max_unpooling3d";
  TORCH_CHECK(indices.scalar_type() == at::kLong, "elements in indices should be type int64 but got: ", indices.scalar_type());
  TORCH_CHECK(output_size.size() == dimensions, "There should be exactly ", dimensions == 2 ? "two" : "three", " elements (",
              dimensions == 2 ? "height, width" : "depth, height, width", ") in output_size, but got ", output_size.size(), " elements.");
  TORCH_CHECK(self.dim() == static_cast<int64_t>(dimensions) + 1 || self.dim() == static_cast<int64_t>(dimensions) + 2, "Input to ", name, " should be a ",
              dimensions + 1, "d or ", dimensions + 2, "d Tensor, but got a tensor with ", self.dim(), " dimensions");
  TORCH_CHECK(self.sizes() == indices.sizes(), "Expected shape of indices to be same as that of the input tensor (", self.sizes(),
              ") but got indices tensor with shape: ", indices.sizes());
  for (int64_t d = 1; d < self.dim(); d++)
    TORCH_CHECK(self.size(d) > 0, name, "(): Expected input to have non-zero size for non-batch dimensions, but got ", self.sizes(), " with dimension ", d,
                " being empty.");
  if (self.dim() == 4 && dimensions == 2)
    out.resize_(with_space(self, output_size), self.suggest_memory_format());
  else
    at::native::resize_output(out, with_space(self, output_size));
  const Operand self_(self, Operand::plain), indices_(indices, Operand::plain), out_(out, Operand::output);
  check((dimensions == 2 ? mps_op_max_unpool2d : mps_op_max_unpool3d)(stream(), self_.pointer(), indices_.pointer(), out_.pointer()));
  return out;
}

}  // namespace

at::Tensor mps_max_pool2d(const at::Tensor &self, at::IntArrayRef kernel_size, at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation,
                          bool ceil_mode) {
  MaxPool2d pool;
  pool.meta(self, kernel_size, stride, padding, dilation, ceil_mode);
  const Operand self_(self, Operand::plain), out_(pool.out, Operand::output);
  check(mps_op_max_pool2d(stream(), self_.pointer(), kernel_size.data(), static_cast<uint32_t>(kernel_size.size()), stride.data(),
                          static_cast<uint32_t>(stride.size()), padding.data(), static_cast<uint32_t>(padding.size()), dilation.data(),
                          static_cast<uint32_t>(dilation.size()), ceil_mode, out_.pointer(), nullptr));
  return pool.out;
}

namespace {

// For autograd, as on the CPU: the indices are kept rather than found again, and there are gradients of gradients.
at::Tensor max_pool2d_autograd(const at::Tensor &self, at::IntArrayRef kernel_size, at::IntArrayRef stride, at::IntArrayRef padding,
                               at::IntArrayRef dilation, bool ceil_mode) {
  if ((at::GradMode::is_enabled() && self.requires_grad()) || self._fw_grad(0).defined())
    return std::get<0>(at::max_pool2d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode));
  at::AutoDispatchBelowADInplaceOrView below;
  return at::max_pool2d(self, kernel_size, stride, padding, dilation, ceil_mode);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, AutogradMPS, m) { m.impl("max_pool2d", TORCH_FN(max_pool2d_autograd)); }

at::Tensor mps_max_pool2d_backward(const at::Tensor &grad_output, const at::Tensor &self, at::IntArrayRef kernel_size, at::IntArrayRef stride,
                                   at::IntArrayRef padding, at::IntArrayRef dilation, bool ceil_mode) {
  const at::Tensor indices = std::get<1>(at::max_pool2d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode));
  return at::max_pool2d_with_indices_backward(grad_output, self, kernel_size, stride.empty() ? kernel_size : stride, padding, dilation, ceil_mode, indices);
}

std::tuple<at::Tensor &, at::Tensor &> max_pool3d_with_indices_out_mps(const at::Tensor &self, at::IntArrayRef kernel_size, at::IntArrayRef stride,
                                                                       at::IntArrayRef padding, at::IntArrayRef dilation, bool ceil_mode, at::Tensor &out,
                                                                       at::Tensor &indices) {
  const Windows3d w(self, kernel_size, stride, padding, dilation, ceil_mode);
  at::native::resize_output(out, with_space(self, w.out));
  at::native::resize_output(indices, with_space(self, w.out));
  const Operand self_(self, Operand::plain), out_(out, Operand::output), indices_(indices, Operand::output);
  check(mps_op_max_pool3d(stream(), self_.pointer(), w.kernel.data(), 3, w.stride.data(), 3, w.padding.data(), 3, w.dilation.data(), 3, ceil_mode,
                          out_.pointer(), indices_.pointer()));
  return {out, indices};
}

std::tuple<at::Tensor, at::Tensor> max_pool3d_with_indices_mps(const at::Tensor &self, at::IntArrayRef kernel_size, at::IntArrayRef stride,
                                                               at::IntArrayRef padding, at::IntArrayRef dilation, bool ceil_mode) {
  at::Tensor out = empty({0}, self.options()), indices = empty({0}, self.options().dtype(at::kLong));
  max_pool3d_with_indices_out_mps(self, kernel_size, stride, padding, dilation, ceil_mode, out, indices);
  return {out, indices};
}

at::Tensor &max_pool3d_with_indices_backward_out_mps(const at::Tensor &grad_output, const at::Tensor &self, at::IntArrayRef kernel_size,
                                                     at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, bool ceil_mode,
                                                     const at::Tensor &indices, at::Tensor &grad_input) {
  const Windows3d w(self, kernel_size, stride, padding, dilation, ceil_mode);
  TORCH_CHECK(grad_output.sizes() == at::IntArrayRef(with_space(self, w.out)), "max_pool3d_with_indices_backward: expected a gradient of shape ",
              with_space(self, w.out), ", but got ", grad_output.sizes());
  at::native::resize_output(grad_input, self.sizes());
  const Operand grad_(grad_output, Operand::plain), self_(self, Operand::plain), indices_(indices, Operand::plain), out_(grad_input, Operand::output);
  check(mps_op_max_pool3d_backward(stream(), grad_.pointer(), self_.pointer(), w.kernel.data(), 3, w.stride.data(), 3, w.padding.data(), 3,
                                   w.dilation.data(), 3, ceil_mode, indices_.pointer(), out_.pointer()));
  return grad_input;
}

at::Tensor max_pool3d_with_indices_backward_mps(const at::Tensor &grad_output, const at::Tensor &self, at::IntArrayRef kernel_size, at::IntArrayRef stride,
                                                at::IntArrayRef padding, at::IntArrayRef dilation, bool ceil_mode, const at::Tensor &indices) {
  at::Tensor grad_input = empty({0}, self.options());
  return max_pool3d_with_indices_backward_out_mps(grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices, grad_input);
}

at::Tensor &adaptive_avg_pool2d_out_mps(const at::Tensor &self, at::IntArrayRef output_size, at::Tensor &out) {
  TORCH_CHECK(output_size.size() == 2, "adaptive_avg_pool2d: output_size must be 2");
  TORCH_CHECK(self.dim() == 3 || self.dim() == 4, "adaptive_avg_pool2d(): Expected 3D or 4D tensor, but got ", self.sizes());
  for (const int64_t d : {-2, -1})
    TORCH_CHECK(self.size(d) > 0, "adaptive_avg_pool2d(): Expected input to have non-zero size for non-batch dimensions, but input has sizes ", self.sizes(),
                " with dimension ", d + self.dim(), " being empty");
  TORCH_CHECK(out.scalar_type() == self.scalar_type(), "expected dtype ", self.scalar_type(), " for `output` but got dtype ", out.scalar_type());
  if (out.numel() == 0)
    out.resize_(with_space(self, output_size), self.suggest_memory_format());
  else
    at::native::resize_output(out, with_space(self, output_size));
  const Operand self_(self, Operand::plain), out_(out, Operand::output);
  check(mps_op_adaptive_avg_pool2d(stream(), self_.pointer(), out_.pointer()));
  return out;
}

at::Tensor adaptive_avg_pool2d_mps(const at::Tensor &self, at::IntArrayRef output_size) {
  at::Tensor out = empty({0}, self.options());
  return adaptive_avg_pool2d_out_mps(self, output_size, out);
}

at::Tensor adaptive_avg_pool2d_backward_mps(const at::Tensor &grad_output, const at::Tensor &self) {
  at::native::adaptive_pool_empty_output_check(grad_output, "adaptive_avg_pool2d_backward");
  TORCH_CHECK(self.dim() == 3 || self.dim() == 4, "adaptive_avg_pool2d_backward(): Expected 3D or 4D tensor, but got ", self.sizes());
  TORCH_CHECK(self.scalar_type() == grad_output.scalar_type(), "expected dtype ", self.scalar_type(), " for `grad_output` but got dtype ",
              grad_output.scalar_type());
  const at::Tensor grad_input = empty(self.sizes(), self.options().memory_format(self.suggest_memory_format()));
  const Operand grad_(grad_output, Operand::plain), out_(grad_input, Operand::output);
  check(mps_op_adaptive_avg_pool2d_backward(stream(), grad_.pointer(), out_.pointer()));
  return grad_input;
}

at::Tensor &adaptive_avg_pool3d_out_cpu(const at::Tensor &self, at::IntArrayRef output_size, at::Tensor &out) {
  TORCH_CHECK(output_size.size() == 3, "adaptive_avg_pool3d: output_size must be 3");
  for (int64_t d = 1; d < self.dim(); d++)
    TORCH_CHECK(self.size(d) > 0, "adaptive_avg_pool3d(): Expected input to have non-zero size for non-batch dimensions, but input has sizes ", self.sizes(),
                " with dimension ", d, " being empty");
  TORCH_CHECK(self.dim() == 4 || self.dim() == 5, "adaptive_avg_pool3d(): Expected 4D or 5D tensor, but got ", self.sizes());
  TORCH_CHECK(out.scalar_type() == self.scalar_type(), "expected dtype ", self.dtype(), " for `output` but got dtype ", out.dtype());
  at::native::resize_output(out, with_space(self, output_size));
  const Operand self_(self, Operand::plain), out_(out, Operand::output);
  check(mps_op_adaptive_avg_pool3d(stream(), self_.pointer(), out_.pointer()));
  return out;
}

at::Tensor adaptive_avg_pool3d_cpu(const at::Tensor &self, at::IntArrayRef output_size) {
  at::Tensor out = empty({0}, self.options().memory_format(at::MemoryFormat::Contiguous));
  return adaptive_avg_pool3d_out_cpu(self, output_size, out);
}

at::Tensor &adaptive_avg_pool3d_backward_out_cpu(const at::Tensor &grad_output, const at::Tensor &self, at::Tensor &grad_input) {
  at::native::adaptive_pool_empty_output_check(grad_output, "adaptive_avg_pool3d_backward");
  TORCH_CHECK(grad_output.dim() == self.dim(), "adaptive_avg_pool3d_backward_out_cpu_template: Expected dimensions ", self.dim(),
              " for `gradOutput_` but got dimensions ", grad_output.dim());
  TORCH_CHECK(grad_output.scalar_type() == self.scalar_type(), "expected scalar type ", self.scalar_type(), " but found ", grad_output.scalar_type());
  TORCH_CHECK(grad_input.scalar_type() == self.scalar_type(), "expected scalar type ", self.scalar_type(), " but found ", grad_input.scalar_type());
  at::native::resize_output(grad_input, self.sizes());
  const Operand grad_(grad_output, Operand::plain), out_(grad_input, Operand::output);
  check(mps_op_adaptive_avg_pool3d_backward(stream(), grad_.pointer(), out_.pointer()));
  return grad_input;
}

at::Tensor adaptive_avg_pool3d_backward_cpu(const at::Tensor &grad_output, const at::Tensor &self) {
  at::Tensor grad_input = empty(self.sizes(), self.options().memory_format(at::MemoryFormat::Contiguous));
  return adaptive_avg_pool3d_backward_out_cpu(grad_output, self, grad_input);
}

at::Tensor &fractional_max_pool3d_backward_out_cpu(const at::Tensor &grad_output, const at::Tensor &self, at::IntArrayRef kernel_size,
                                                   at::IntArrayRef output_size, const at::Tensor &indices, at::Tensor &grad_input) {
  static const char *const names[] = {"time", "height", "width"};
  for (size_t d = 0; d < 3; d++)
    TORCH_CHECK((d < output_size.size() ? output_size[d] : 0) == grad_output.size(static_cast<int64_t>(d) + self.dim() - 3),
                "fractional_max_pool3d_backward_out(): gradOutput ", names[d], " unexpected");
  TORCH_CHECK(grad_output.scalar_type() == self.scalar_type(), "expected scalar type ", self.scalar_type(), " but found ", grad_output.scalar_type());
  TORCH_CHECK(grad_input.scalar_type() == self.scalar_type(), "expected scalar type ", self.scalar_type(), " but found ", grad_input.scalar_type());
  TORCH_CHECK(indices.scalar_type() == at::kLong, "expected scalar type Long but found ", indices.scalar_type());
  at::native::resize_output(grad_input, self.sizes());
  const Operand grad_(grad_output, Operand::plain), self_(self, Operand::plain), indices_(indices, Operand::plain), out_(grad_input, Operand::output);
  check(mps_op_fractional_max_pool3d_backward(stream(), grad_.pointer(), self_.pointer(), kernel_size.data(), static_cast<uint32_t>(kernel_size.size()),
                                              output_size.data(), static_cast<uint32_t>(output_size.size()), indices_.pointer(), out_.pointer()));
  return grad_input;
}

at::Tensor fractional_max_pool3d_backward_cpu(const at::Tensor &grad_output, const at::Tensor &self, at::IntArrayRef kernel_size,
                                              at::IntArrayRef output_size, const at::Tensor &indices) {
  at::Tensor grad_input = empty({0}, self.options().memory_format(at::MemoryFormat::Contiguous));
  return fractional_max_pool3d_backward_out_cpu(grad_output, self, kernel_size, output_size, indices, grad_input);
}

at::Tensor &max_unpooling2d_forward_out_mps(const at::Tensor &self, const at::Tensor &indices, at::IntArrayRef output_size, at::Tensor &out) {
  return unpool(self, indices, output_size, 2, out);
}
at::Tensor max_unpooling2d_forward_mps(const at::Tensor &self, const at::Tensor &indices, at::IntArrayRef output_size) {
  at::Tensor out = empty({0}, self.options());
  return unpool(self, indices, output_size, 2, out);
}
at::Tensor &max_unpooling3d_forward_out_mps(const at::Tensor &self, const at::Tensor &indices, at::IntArrayRef output_size, at::IntArrayRef, at::IntArrayRef,
                                            at::Tensor &out) {
  return unpool(self, indices, output_size, 3, out);
}
at::Tensor max_unpooling3d_forward_mps(const at::Tensor &self, const at::Tensor &indices, at::IntArrayRef output_size, at::IntArrayRef, at::IntArrayRef) {
  at::Tensor out = empty({0}, self.options());
  return unpool(self, indices, output_size, 3, out);
}

}  // namespace openmps::native
