/* SPDX-License-Identifier: BSD-3-Clause
 *
 * optimizer: fused optimiser steps and loss scaling: lists of tensors and learning rates that are numbers or tensors.
 */
#include "bridge/convert.h"
#include "bridge/kernels/optimizer.h"
#include "openmps/ops/optimizer.h"

namespace openmps::native {
namespace {

using MaybeTensor = const std::optional<at::Tensor> &;

mps_tensor learning_rate(double lr) {
  mps_tensor constant = {};
  constant.dtype = MPS_DTYPE_F32;
  constant.constant = mps_scalar_float(lr);
  return constant;
}
mps_tensor learning_rate(const at::Tensor &lr) { return tensor(lr); }

template <class Rate>
void adam(decltype(&mps_op_fused_adam) step, at::TensorList params, at::TensorList grads, at::TensorList averages, at::TensorList squares,
          at::TensorList largest, at::TensorList steps, const Rate &lr, double beta1, double beta2, double weight_decay, double eps, bool amsgrad,
          bool maximize, MaybeTensor grad_scale, MaybeTensor found_inf) {
  const OperandList params_(params, Operand::output), grads_(grads, Operand::output), averages_(averages, Operand::output),
      squares_(squares, Operand::output), largest_(largest, Operand::output), steps_(steps, Operand::plain);
  const Operand scale_(grad_scale, Operand::plain), found_(found_inf, Operand::plain);
  const mps_tensor lr_ = learning_rate(lr);
  check(step(stream(), params_.data(), params_.count(), grads_.data(), grads_.count(), averages_.data(), averages_.count(), squares_.data(),
             squares_.count(), largest_.data(), largest_.count(), steps_.data(), steps_.count(), &lr_, beta1, beta2, weight_decay, eps, amsgrad, maximize,
             scale_.pointer_or_null(), found_.pointer_or_null()));
}

template <class Rate>
void sgd(at::TensorList params, at::TensorList grads, at::TensorList momenta, double weight_decay, double momentum, const Rate &lr, double dampening,
         bool nesterov, bool maximize, bool is_first_step, MaybeTensor grad_scale, MaybeTensor found_inf) {
  const OperandList params_(params, Operand::output), grads_(grads, Operand::output), momenta_(momenta, Operand::output);
  const Operand scale_(grad_scale, Operand::plain), found_(found_inf, Operand::plain);
  const mps_tensor lr_ = learning_rate(lr);
  check(mps_op_fused_sgd(stream(), params_.data(), params_.count(), grads_.data(), grads_.count(), momenta_.data(), momenta_.count(), weight_decay, momentum,
                         &lr_, dampening, nesterov, maximize, is_first_step, scale_.pointer_or_null(), found_.pointer_or_null()));
}

}  // namespace

#define ADAM(NAME, RATE, STEP)                                                                                                                        \
  void NAME(at::TensorList params, at::TensorList grads, at::TensorList averages, at::TensorList squares, at::TensorList largest, at::TensorList steps, \
            RATE lr, double beta1, double beta2, double weight_decay, double eps, bool amsgrad, bool maximize, MaybeTensor grad_scale,                \
            MaybeTensor found_inf) {                                                                                                                  \
    adam(STEP, params, grads, averages, squares, largest, steps, lr, beta1, beta2, weight_decay, eps, amsgrad, maximize, grad_scale, found_inf);       \
  }
ADAM(_fused_adam_kernel_mps_, double, mps_op_fused_adam)
ADAM(_fused_adam_kernel_mps_, const at::Tensor &, mps_op_fused_adam)
ADAM(_fused_adamw_kernel_mps_, double, mps_op_fused_adamw)
ADAM(_fused_adamw_kernel_mps_, const at::Tensor &, mps_op_fused_adamw)
#undef ADAM

void _fused_sgd_kernel_mps_(at::TensorList params, at::TensorList grads, at::TensorList momenta, double weight_decay, double momentum, double lr,
                            double dampening, bool nesterov, bool maximize, bool is_first_step, MaybeTensor grad_scale, MaybeTensor found_inf) {
  sgd(params, grads, momenta, weight_decay, momentum, lr, dampening, nesterov, maximize, is_first_step, grad_scale, found_inf);
}
void _fused_sgd_kernel_mps_(at::TensorList params, at::TensorList grads, at::TensorList momenta, double weight_decay, double momentum,
                            const at::Tensor &lr, double dampening, bool nesterov, bool maximize, bool is_first_step, MaybeTensor grad_scale,
                            MaybeTensor found_inf) {
  sgd(params, grads, momenta, weight_decay, momentum, lr, dampening, nesterov, maximize, is_first_step, grad_scale, found_inf);
}

void _amp_foreach_non_finite_check_and_unscale_mps_(at::TensorList self, at::Tensor &found_inf, const at::Tensor &inv_scale) {
  if (self.empty()) return;
  TORCH_CHECK(inv_scale.numel() == 1, "inv_scale must be a 1-element tensor.");
  TORCH_CHECK(found_inf.numel() == 1, "found_inf must be a 1-element tensor.");
  TORCH_CHECK(inv_scale.scalar_type() == at::kFloat, "inv_scale must be a float tensor.");
  TORCH_CHECK(found_inf.scalar_type() == at::kFloat, "found_inf must be a float tensor.");
  const Operand inverse_(inv_scale, Operand::plain), found_(found_inf, Operand::output);
  for (const at::Tensor &gradient : self) {
    TORCH_CHECK(gradient.layout() == at::kStrided, "one of scaled_grads was not a strided tensor.");
    const Operand gradient_(gradient, Operand::output);
    check(mps_op_amp_unscale(stream(), gradient_.pointer(), inverse_.pointer(), found_.pointer()));
  }
}

at::Tensor &_amp_update_scale_mps_(at::Tensor &scale, at::Tensor &growth_tracker, const at::Tensor &found_inf, double growth, double backoff,
                                   int64_t growth_interval) {
  TORCH_CHECK(growth_tracker.numel() == 1, "growth_tracker must be a 1-element tensor.");
  TORCH_CHECK(growth_tracker.scalar_type() == at::kInt, "growth_tracker must be an int tensor.");
  TORCH_CHECK(scale.numel() == 1, "current_scale must be a 1-element tensor.");
  TORCH_CHECK(scale.scalar_type() == at::kFloat, "current_scale must be a float tensor.");
  TORCH_CHECK(found_inf.numel() == 1, "found_inf must be a 1-element tensor.");
  TORCH_CHECK(found_inf.scalar_type() == at::kFloat, "found_inf must be a float tensor.");
  const Operand found_(found_inf, Operand::plain), scale_(scale, Operand::output), tracker_(growth_tracker, Operand::output);
  check(mps_op_amp_update_scale(stream(), found_.pointer(), growth, backoff, growth_interval, scale_.pointer(), tracker_.pointer()));
  return scale;
}

}  // namespace openmps::native
