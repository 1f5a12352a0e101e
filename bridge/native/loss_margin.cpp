/* SPDX-License-Identifier: BSD-3-Clause
 *
 * loss_margin: multi_margin_loss and multilabel_margin_loss, which upstream does not list for MPS: their checks, in PyTorch's order and words.
 */
#include <ATen/TensorUtils.h>
#include <ATen/core/Reduction.h>
#include <ATen/native/LossMulti.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#include "bridge/convert.h"
#include "openmps/ops/loss.h"

namespace openmps::native {
namespace {

using at::Tensor;
using Weight = std::optional<Tensor>;

bool given(const Weight &weight) { return weight.has_value() && weight->defined(); }

void check_floating(const Tensor &self, const char *name) {
  TORCH_CHECK_NOT_IMPLEMENTED(at::isFloatingType(self.scalar_type()), "\"", name, "\" not implemented for '", self.scalar_type(), "'");
}

void check_type(const Tensor &tensor, at::ScalarType type) {
  TORCH_CHECK(tensor.scalar_type() == type, "expected scalar type ", type, " but found ", tensor.scalar_type());
}

// An accessor's checks, where a gradient has one element a row; else its first element counts.
Tensor gradient_of(const Tensor &grad_output, const Tensor &self, int64_t reduction) {
  check_type(grad_output, self.scalar_type());
  if (reduction == at::Reduction::None && grad_output.dim() > 0) {
    TORCH_CHECK(grad_output.dim() == 1, "TensorAccessor expected 1 dims but tensor has ", grad_output.dim());
    return grad_output;
  }
  return grad_output.dim() == 0 ? grad_output : grad_output.as_strided({}, {});
}

// The power as a number, and the margin as the dtype can hold it.
int64_t power_of(const at::Scalar &p) {
  const int64_t power = p.toInt();
  TORCH_CHECK(power == 1 || power == 2, "only p == 1 and p == 2 supported");
  return power;
}
double margin_of(const at::Scalar &margin, at::ScalarType type) {
  if (type == at::kFloat) return margin.to<float>();
  return type == at::kHalf ? static_cast<float>(margin.to<at::Half>()) : static_cast<float>(margin.to<at::BFloat16>());
}

// ---- multi_margin_loss ----
Tensor &multi_margin_loss_out(const Tensor &self, const Tensor &target, const at::Scalar &p, const at::Scalar &margin, const Weight &weight,
                              int64_t reduction, Tensor &out) {
  const int64_t power = power_of(p);
  int64_t rows = 0, classes = 0;
  at::native::multi_margin_loss_shape_check(rows, classes, self.dim(), self, target, weight);
  const bool reduced = reduction != at::Reduction::None || target.dim() == 0;
  out.resize_(reduced ? at::IntArrayRef() : at::IntArrayRef(rows));
  if (self.numel() != 0) {
    check_floating(self, "multi_margin_loss_cpu_kernel");
    check_type(target, at::kLong);
    if (given(weight)) check_type(*weight, self.scalar_type());
    check_type(out, self.scalar_type());
  } else {
    out.zero_();
    return out;
  }
  const Operand self_(self, Operand::plain), target_(target, Operand::plain), weight_(weight, Operand::plain), out_(out, Operand::output);
  check(mps_op_multi_margin_loss(stream(), self_.pointer(), target_.pointer(), power, margin_of(margin, self.scalar_type()), weight_.pointer_or_null(),
                                 reduction, out_.pointer()));
  return out;
}

Tensor multi_margin_loss(const Tensor &self, const Tensor &target, const at::Scalar &p, const at::Scalar &margin, const Weight &weight,
                         int64_t reduction) {
  Tensor out = empty({0}, self.options());
  return multi_margin_loss_out(self, target, p, margin, weight, reduction, out);
}

Tensor &multi_margin_loss_backward_out(const Tensor &grad_output, const Tensor &self, const Tensor &target, const at::Scalar &p,
                                       const at::Scalar &margin, const Weight &weight, int64_t reduction, Tensor &grad_input) {
  const int64_t power = power_of(p);
  int64_t rows = 0, classes = 0;
  at::native::multi_margin_loss_shape_check(rows, classes, self.dim(), self, target, weight);
  grad_input.resize_as_(self);
  TORCH_CHECK(grad_input.is_contiguous(), "grad_input must be contiguous");
  if (self.numel() == 0) return grad_input;
  check_floating(self, "multi_margin_loss_backward_cpu_kernel");
  check_type(grad_input, self.scalar_type());
  check_type(target, at::kLong);
  if (given(weight)) check_type(*weight, self.scalar_type());
  const Operand grad_(gradient_of(grad_output, self, reduction), Operand::plain), self_(self, Operand::plain), target_(target, Operand::plain);
  const Operand weight_(weight, Operand::plain), out_(grad_input, Operand::output);
  check(mps_op_multi_margin_loss_backward(stream(), grad_.pointer(), self_.pointer(), target_.pointer(), power, margin_of(margin, self.scalar_type()),
                                          weight_.pointer_or_null(), reduction, out_.pointer()));
  return grad_input;
}

Tensor multi_margin_loss_backward(const Tensor &grad_output, const Tensor &self, const Tensor &target, const at::Scalar &p, const at::Scalar &margin,
                                  const Weight &weight, int64_t reduction) {
  Tensor grad_input = empty({0}, self.options());
  return multi_margin_loss_backward_out(grad_output, self, target, p, margin, weight, reduction, grad_input);
}

// ---- multilabel_margin_loss ----
std::tuple<Tensor &, Tensor &> multilabel_margin_loss_forward_out(const Tensor &self, const Tensor &target, int64_t reduction, Tensor &output,
                                                                  Tensor &is_target) {
  int64_t rows = 0, classes = 0;
  at::native::multilabel_margin_loss_shape_check(rows, classes, self.dim(), self, target);
  const bool reduced = reduction != at::Reduction::None || target.dim() <= 1;
  output.resize_(reduced ? at::IntArrayRef() : at::IntArrayRef(rows));
  is_target.resize_as_(target);
  TORCH_CHECK(is_target.is_contiguous(), "is_target must be contiguous");
  if (self.numel() == 0) {
    output.zero_();
    return {output, is_target};
  }
  check_floating(self, "multilabel_margin_loss_forward_out_frame");
  check_type(target, at::kLong);
  check_type(is_target, self.scalar_type());
  check_type(output, self.scalar_type());
  const Operand self_(self, Operand::plain), target_(target, Operand::plain), output_(output, Operand::output), is_target_(is_target, Operand::output);
  check(mps_op_multilabel_margin_loss_forward(stream(), self_.pointer(), target_.pointer(), reduction, output_.pointer(), is_target_.pointer()));
  return {output, is_target};
}

std::tuple<Tensor, Tensor> multilabel_margin_loss_forward(const Tensor &self, const Tensor &target, int64_t reduction) {
  Tensor output = empty({0}, self.options()), is_target = empty({0}, self.options());
  multilabel_margin_loss_forward_out(self, target, reduction, output, is_target);
  return {output, is_target};
}

Tensor &multilabel_margin_loss_backward_out(const Tensor &grad_output, const Tensor &self, const Tensor &target, int64_t reduction,
                                            const Tensor &is_target, Tensor &grad_input) {
  int64_t rows = 0, classes = 0;
  at::native::multilabel_margin_loss_shape_check(rows, classes, self.dim(), self, target);
  at::checkSameSize("multilabel_margin_loss_backward_cpu_template", at::TensorArg(target, "target", 3), at::TensorArg(is_target, "is_target", 5));
  grad_input.resize_as_(self);
  if (grad_input.numel() == 0) return grad_input;
  TORCH_CHECK(grad_input.is_contiguous(), "grad_input must be contiguous");
  check_floating(self, "multilabel_margin_loss_backward_out_frame");
  check_type(target, at::kLong);
  check_type(is_target, self.scalar_type());
  check_type(grad_input, self.scalar_type());
  if (reduction == at::Reduction::None && grad_output.dim() > 0) at::check_dim_size(grad_output, 1, 0, rows);
  const Operand grad_(gradient_of(grad_output, self, reduction), Operand::plain), self_(self, Operand::plain), target_(target, Operand::plain);
  const Operand is_target_(is_target, Operand::plain), out_(grad_input, Operand::output);
  check(mps_op_multilabel_margin_loss_backward(stream(), grad_.pointer(), self_.pointer(), target_.pointer(), reduction, is_target_.pointer(),
                                               out_.pointer()));
  return grad_input;
}

Tensor multilabel_margin_loss_backward(const Tensor &grad_output, const Tensor &self, const Tensor &target, int64_t reduction,
                                       const Tensor &is_target) {
  Tensor grad_input = at::empty_like(self, at::MemoryFormat::Contiguous);
  return multilabel_margin_loss_backward_out(grad_output, self, target, reduction, is_target, grad_input);
}

TORCH_LIBRARY_IMPL(aten, MPS, m) {
  m.impl("multi_margin_loss.out", TORCH_FN(multi_margin_loss_out));
  m.impl("multi_margin_loss", TORCH_FN(multi_margin_loss));
  m.impl("multi_margin_loss_backward.grad_input", TORCH_FN(multi_margin_loss_backward_out));
  m.impl("multi_margin_loss_backward", TORCH_FN(multi_margin_loss_backward));
  m.impl("multilabel_margin_loss_forward.output", TORCH_FN(multilabel_margin_loss_forward_out));
  m.impl("multilabel_margin_loss_forward", TORCH_FN(multilabel_margin_loss_forward));
  m.impl("multilabel_margin_loss_backward.grad_input", TORCH_FN(multilabel_margin_loss_backward_out));
  m.impl("multilabel_margin_loss_backward", TORCH_FN(multilabel_margin_loss_backward));
}

}  // namespace
}  // namespace openmps::native
