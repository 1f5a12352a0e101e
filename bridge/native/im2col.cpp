/* SPDX-License-Identifier: BSD-3-Clause
 *
 * im2col: kernels that make their results; the checks are PyTorch's (ATen/native/im2col_shape_check.h).
 */
#include <ATen/native/im2col_shape_check.h>

#include "bridge/convert.h"
#include "bridge/kernels/im2col.h"
#include "openmps/ops/im2col.h"

namespace openmps::native {
namespace {

void check_pairs(std::initializer_list<std::pair<const char *, at::IntArrayRef>> lists) {
  for (const auto &[name, list] : lists) TORCH_CHECK(list.size() == 2, "It is expected ", name, " equals to 2, but got size ", list.size());
}

void check_type(const at::Tensor &self, const at::Tensor &out, const char *name) {
  const at::ScalarType type = self.scalar_type();
  TORCH_CHECK_NOT_IMPLEMENTED(at::isFloatingType(type) || type == at::kComplexFloat || type == at::kBool, "\"", name, "\" not implemented for '", type, "'");
  TORCH_CHECK(out.scalar_type() == type, "expected scalar type ", type, " but found ", out.scalar_type());
}

}  // namespace

at::Tensor &im2col_out_mps(const at::Tensor &self, at::IntArrayRef kernel_size, at::IntArrayRef dilation, at::IntArrayRef padding, at::IntArrayRef stride,
                           at::Tensor &out) {
  check_pairs({{"kernel_size", kernel_size}, {"dilation", dilation}, {"padding", padding}, {"stride", stride}});
  at::native::im2col_shape_check(self, at::Tensor(), kernel_size[0], kernel_size[1], dilation[0], dilation[1], padding[0], padding[1], stride[0], stride[1]);
  int64_t places = 1;
  for (int d = 0; d < 2; d++) places *= at::native::sliding_window_count(self.size(d - 2), padding[d], dilation[d], kernel_size[d], stride[d]);
  const int64_t rows = self.size(-3) * kernel_size[0] * kernel_size[1];
  if (self.dim() == 4)
    out.resize_({self.size(0), rows, places});
  else
    out.resize_({rows, places});
  check_type(self, out, "im2col_out_cpu");
  const Operand self_(self, Operand::plain), out_(out, Operand::output);
  check(mps_op_im2col(stream(), self_.pointer(), kernel_size.data(), 2, dilation.data(), 2, padding.data(), 2, stride.data(), 2, out_.pointer()));
  return out;
}

at::Tensor im2col_mps(const at::Tensor &self, at::IntArrayRef kernel_size, at::IntArrayRef dilation, at::IntArrayRef padding, at::IntArrayRef stride) {
  at::Tensor out = empty({0}, self.options());
  return im2col_out_mps(self, kernel_size, dilation, padding, stride, out);
}

at::Tensor &col2im_out_mps(const at::Tensor &self, at::IntArrayRef output_size, at::IntArrayRef kernel_size, at::IntArrayRef dilation,
                           at::IntArrayRef padding, at::IntArrayRef stride, at::Tensor &out) {
  check_pairs({{"output_size", output_size}, {"kernel_size", kernel_size}, {"dilation", dilation}, {"padding", padding}, {"stride", stride}});
  at::native::col2im_shape_check(self, at::Tensor(), output_size[0], output_size[1], kernel_size[0], kernel_size[1], dilation[0], dilation[1], padding[0],
                                 padding[1], stride[0], stride[1]);
  const int64_t channels = self.size(-2) / (kernel_size[0] * kernel_size[1]);
  if (self.dim() == 3)
    out.resize_({self.size(0), channels, output_size[0], output_size[1]});
  else
    out.resize_({channels, output_size[0], output_size[1]});
  check_type(self, out, "col2im_out_cpu");
  const Operand self_(self, Operand::plain), out_(out, Operand::output);
  check(mps_op_col2im(stream(), self_.pointer(), output_size.data(), 2, kernel_size.data(), 2, dilation.data(), 2, padding.data(), 2, stride.data(), 2,
                      out_.pointer()));
  return out;
}

at::Tensor col2im_mps(const at::Tensor &self, at::IntArrayRef output_size, at::IntArrayRef kernel_size, at::IntArrayRef dilation, at::IntArrayRef padding,
                      at::IntArrayRef stride) {
  at::Tensor out = empty({0}, self.options());
  return col2im_out_mps(self, output_size, kernel_size, dilation, padding, stride, out);
}

}  // namespace openmps::native
