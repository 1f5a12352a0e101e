/* SPDX-License-Identifier: BSD-3-Clause
 *
 * loss: losses and gradients that PyTorch leaves to allocate their own results.
 */
#include <ATen/ExpandUtils.h>
#include <ATen/core/Reduction.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/result_type.h>

#include "bridge/convert.h"
#include "bridge/kernels/loss.h"
#include "openmps/ops/loss.h"

namespace openmps::native {

namespace {

using at::Tensor;
using Weight = std::optional<Tensor>;

at::DimVector loss_shape(const Tensor &self, const Tensor &target, int64_t reduction) {
  return reduction == at::Reduction::None ? at::infer_size_dimvector(self.sizes(), target.sizes()) : at::DimVector();
}

Tensor empty_loss(const Tensor &self, const Tensor &target, int64_t reduction) {
  return empty(loss_shape(self, target, reduction), self.options().dtype(at::result_type(self, target)));
}

// The gradient has the shape that all of its sources broadcast to, and self's strides where that is self's.
at::DimVector gradient_shape(const Tensor &grad, const Tensor &self, const Tensor &target) {
  return at::infer_size_dimvector(at::infer_size_dimvector(self.sizes(), target.sizes()), grad.sizes());
}

Tensor empty_gradient(const Tensor &grad, const Tensor &self, const Tensor &target) {
  const at::DimVector shape = gradient_shape(grad, self, target);
  return at::IntArrayRef(shape) == self.sizes() ? at::empty_like(self) : empty(shape, self.options());
}

template <class F, class... More>
void run_gradient(F function, const Tensor &grad, const Tensor &self, const Tensor &target, const Tensor &out, More... more) {
  const at::ScalarType type = out.scalar_type();
  const Operand grad_(grad, Operand::flagged, type), self_(self, Operand::flagged, type), target_(target, Operand::flagged, type);
  const Operand out_(out, Operand::output);
  check(function(stream(), grad_.pointer(), self_.pointer(), target_.pointer(), more..., out_.pointer()));
}

template <class F, class... More>
Tensor &gradient_out(F function, const Tensor &grad, const Tensor &self, const Tensor &target, Tensor &out, More... more) {
  at::native::resize_output(out, gradient_shape(grad, self, target));
  run_gradient(function, grad, self, target, out, more...);
  return out;
}

void run_cross_entropy(const Tensor &self, const Tensor &target, const Weight &weight, int64_t reduction, const Tensor &out) {
  const Operand self_(self, Operand::flagged), target_(target, Operand::flagged), weight_(weight, Operand::flagged), out_(out, Operand::output);
  check(mps_op_binary_cross_entropy(stream(), self_.pointer(), target_.pointer(), weight_.pointer_or_null(), reduction, out_.pointer()));
}

void check_spatial(const Tensor &self, const Tensor &target, const Weight &weight) {
  TORCH_CHECK(target.dim() == 3, "only batches of spatial targets supported (3D tensors) but got targets of dimension: ", target.dim());
  TORCH_CHECK(self.dim() == 4, "only batches of spatial inputs supported (4D tensors), but got input of dimension: ", self.dim());
  TORCH_CHECK(!(weight.has_value() && weight->defined()) || weight->numel() == self.size(1), "weight tensor should be defined either for all or no classes");
  TORCH_CHECK(self.size(0) == target.size(0) && self.size(2) == target.size(1) && self.size(3) == target.size(2), "size mismatch (got input: ",
              self.sizes(), " , target: ", target.sizes());
}

}  // namespace

Tensor mse_loss_backward_mps(const Tensor &grad_output, const Tensor &self, const Tensor &target, int64_t reduction) {
  Tensor out = empty_gradient(grad_output, self, target);
  run_gradient(mps_op_mse_loss_backward, grad_output, self, target, out, reduction);
  return out;
}

Tensor &mse_loss_backward_out_mps(const Tensor &grad_output, const Tensor &self, const Tensor &target, int64_t reduction, Tensor &grad_input) {
  return gradient_out(mps_op_mse_loss_backward, grad_output, self, target, grad_input, reduction);
}

Tensor &smooth_l1_loss_backward_out_mps(const Tensor &grad_output, const Tensor &self, const Tensor &target, int64_t reduction, double beta,
                                        Tensor &grad_input) {
  return gradient_out(mps_op_smooth_l1_loss_backward, grad_output, self, target, grad_input, reduction, beta);
}

Tensor huber_loss_mps(const Tensor &self, const Tensor &target, int64_t reduction, double delta) {
  Tensor out = empty_loss(self, target, reduction);
  return huber_loss_out_mps(self, target, reduction, delta, out);
}

Tensor &huber_loss_out_mps(const Tensor &self, const Tensor &target, int64_t reduction, double delta, Tensor &out) {
  at::native::resize_output(out, loss_shape(self, target, reduction));
  const Operand self_(self, Operand::flagged), target_(target, Operand::flagged), out_(out, Operand::output);
  check(mps_op_huber_loss(stream(), self_.pointer(), target_.pointer(), reduction, delta, out_.pointer()));
  return out;
}

Tensor &huber_loss_backward_out_mps(const Tensor &grad_output, const Tensor &self, const Tensor &target, int64_t reduction, double delta,
                                    Tensor &grad_input) {
  return gradient_out(mps_op_huber_loss_backward, grad_output, self, target, grad_input, reduction, delta);
}

Tensor binary_cross_entropy_mps(const Tensor &self, const Tensor &target, const Weight &weight, int64_t reduction) {
  Tensor out = reduction == at::Reduction::None ? at::empty_like(self) : empty({}, self.options());
  run_cross_entropy(self, target, weight, reduction, out);
  return out;
}

Tensor &binary_cross_entropy_out_mps(const Tensor &self, const Tensor &target, const Weight &weight, int64_t reduction, Tensor &out) {
  at::native::resize_output(out, reduction == at::Reduction::None ? self.sizes() : at::IntArrayRef());
  run_cross_entropy(self, target, weight, reduction, out);
  return out;
}

Tensor binary_cross_entropy_backward_mps(const Tensor &grad_output, const Tensor &self, const Tensor &target, const Weight &weight, int64_t reduction) {
  Tensor out = at::empty_like(self);
  return binary_cross_entropy_backward_out_mps(grad_output, self, target, weight, reduction, out);
}

Tensor &binary_cross_entropy_backward_out_mps(const Tensor &grad_output, const Tensor &self, const Tensor &target, const Weight &weight, int64_t reduction,
                                              Tensor &grad_input) {
  at::native::resize_output(grad_input, self.sizes());
  const Operand weight_(weight, Operand::flagged);
  run_gradient(mps_op_binary_cross_entropy_backward, grad_output, self, target, grad_input, weight_.pointer_or_null(), reduction);
  return grad_input;
}

std::tuple<Tensor &, Tensor &> nll_loss2d_forward_out_mps(const Tensor &self, const Tensor &target, const Weight &weight, int64_t reduction,
                                                          int64_t ignore_index, Tensor &output, Tensor &total_weight) {
  check_spatial(self, target, weight);
  at::native::resize_output(output, reduction == at::Reduction::None ? target.sizes() : at::IntArrayRef());
  at::native::resize_output(total_weight, {});
  const Operand self_(self, Operand::plain), target_(target, Operand::plain), weight_(weight, Operand::plain);
  const Operand output_(output, Operand::output), total_(total_weight, Operand::output);
  check(mps_op_nll_loss_forward(stream(), self_.pointer(), target_.pointer(), weight_.pointer_or_null(), reduction, ignore_index, output_.pointer(),
                                total_.pointer()));
  return {output, total_weight};
}

std::tuple<Tensor, Tensor> nll_loss2d_forward_mps(const Tensor &self, const Tensor &target, const Weight &weight, int64_t reduction, int64_t ignore_index) {
  check_spatial(self, target, weight);
  Tensor output = empty(reduction == at::Reduction::None ? target.sizes() : at::IntArrayRef(), self.options()), total_weight = empty({}, self.options());
  nll_loss2d_forward_out_mps(self, target, weight, reduction, ignore_index, output, total_weight);
  return {output, total_weight};
}

Tensor &nll_loss2d_backward_out_mps(const Tensor &grad_output, const Tensor &self, const Tensor &target, const Weight &weight, int64_t reduction,
                                    int64_t ignore_index, const Tensor &total_weight, Tensor &grad_input) {
  check_spatial(self, target, weight);
  at::native::resize_output(grad_input, self.sizes());
  const Operand grad_(grad_output, Operand::plain), self_(self, Operand::plain), target_(target, Operand::plain), weight_(weight, Operand::plain);
  const Operand total_(total_weight, Operand::plain), out_(grad_input, Operand::output);
  check(mps_op_nll_loss_backward(stream(), grad_.pointer(), self_.pointer(), target_.pointer(), weight_.pointer_or_null(), reduction, ignore_index,
                                 total_.pointer(), out_.pointer()));
  return grad_input;
}

Tensor nll_loss2d_backward_mps(const Tensor &grad_output, const Tensor &self, const Tensor &target, const Weight &weight, int64_t reduction,
                               int64_t ignore_index, const Tensor &total_weight) {
  Tensor grad_input = at::empty_like(self);
  return nll_loss2d_backward_out_mps(grad_output, self, target, weight, reduction, ignore_index, total_weight, grad_input);
}

}  // namespace openmps::native
