/* SPDX-License-Identifier: BSD-3-Clause
 *
 * dense: matrix products whose entries are not structured: they make their results, promote types, or take inputs of any rank.
 */
#include <ATen/ExpandUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/add.h>
#include <ATen/ops/linear_backward.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/result_type.h>

#include "bridge/convert.h"
#include "bridge/kernels/dense.h"
#include "openmps/ops/dense.h"

namespace openmps::native {
namespace {

// ---- addbmm ----

void check_addbmm(const at::Tensor &self, const at::Tensor &batch1, const at::Tensor &batch2) {
  TORCH_CHECK(batch1.dim() == 3, "batch1 must be a 3D tensor");
  TORCH_CHECK(batch2.dim() == 3, "batch2 must be a 3D tensor");
  TORCH_CHECK(batch1.size(0) == batch2.size(0), "batch1 and batch2 must have same number of batches, got ", batch1.size(0), " and ", batch2.size(0));
  TORCH_CHECK(batch1.size(2) == batch2.size(1), "Incompatible matrix sizes for bmm (", batch1.size(1), "x", batch1.size(2), " and ", batch2.size(1), "x",
              batch2.size(2), ")");
  TORCH_CHECK(self.scalar_type() == batch1.scalar_type(), "self and mat2 must have the same dtype, but got ", self.scalar_type(), " and ", batch2.scalar_type());
}

at::Tensor &run_addbmm(const at::Tensor &self, const at::Tensor &batch1, const at::Tensor &batch2, const at::Scalar &beta, const at::Scalar &alpha,
                       at::Tensor &out) {
  const bool shares = out.is_alias_of(batch1) || out.is_alias_of(batch2);
  at::Tensor to = shares ? at::empty_like(out, at::MemoryFormat::Contiguous) : out;
  {
    const Operand self_(self, Operand::flagged), batch1_(batch1, Operand::flagged), batch2_(batch2, Operand::flagged), out_(to, Operand::output);
    check(mps_op_addbmm(stream(), self_.pointer(), batch1_.pointer(), batch2_.pointer(), scalar(beta), scalar(alpha), out_.pointer()));
  }
  if (shares) out.copy_(to);
  return out;
}

// ---- dot ----

at::Tensor run_dot(const at::Tensor &self, const at::Tensor &other, bool conjugate) {
  // Where PyTorch conjugates the result and not an argument, the result is a conjugate view.
  if (other.is_conj() && self.is_conj() != conjugate)
    return conjugate ? run_dot(self, other.conj(), false).conj() : run_dot(self.conj(), other.conj(), false).conj();
  at::Tensor out = empty({}, self.options());
  const Operand self_(self, Operand::flagged), other_(other, Operand::flagged), out_(out, Operand::output);
  check((conjugate ? mps_op_vdot : mps_op_dot)(stream(), self_.pointer(), other_.pointer(), out_.pointer()));
  return out;
}

// ---- addr ----

bool is_floating(const at::Scalar &value) { return value.isFloatingPoint() || value.isComplex(); }

// The dtype that addr computes in; PyTorch's checks.
at::ScalarType addr_type(const at::Tensor &self, const at::Tensor &vec1, const at::Tensor &vec2, const at::Scalar &beta, const at::Scalar &alpha) {
  TORCH_CHECK(vec1.dim() == 1, "addr: Expected 1-D argument vec1, but got ", vec1.dim(), "-D");
  TORCH_CHECK(vec2.dim() == 1, "addr: Expected 1-D argument vec2, but got ", vec2.dim(), "-D");
  const at::ScalarType type = at::promote_types(at::result_type(self, vec1), vec2.scalar_type());
  if (type == at::kBool) {
    TORCH_CHECK(beta.isBoolean() || !is_floating(beta), "Boolean beta only supported for Boolean results.");
    return type;
  }
  TORCH_CHECK(!beta.isBoolean() && !alpha.isBoolean(), "Boolean ", beta.isBoolean() ? "beta" : "alpha", " only supported for Boolean results.");
  if (at::isIntegralType(type, false)) {
    TORCH_CHECK(!is_floating(beta), "For integral input tensors, argument beta must not be a floating point number.");
    TORCH_CHECK(!is_floating(alpha), "For integral input tensors, argument alpha must not be a floating point number.");
  }
  TORCH_CHECK(at::isComplexType(type) || (!beta.isComplex() && !alpha.isComplex()), "For non-complex input tensors, argument ",
              beta.isComplex() ? "beta" : "alpha", " must not be a complex number.");
  return type;
}

void run_addr(const at::Tensor &self, const at::Tensor &vec1, const at::Tensor &vec2, const at::Scalar &beta, const at::Scalar &alpha, at::ScalarType type,
              const at::Tensor &out) {
  const at::Tensor bias = self.to(type), first = vec1.to(type), second = vec2.to(type);
  if (alpha.equal(0) && !at::isIntegralType(type, true)) {  // NaN and infinities of the vectors count here, unlike in a matrix product
    const at::Tensor product = first.mul(alpha).unsqueeze(1).mul(second);
    const_cast<at::Tensor &>(out).copy_(beta.equal(0) ? product : product.add(bias.mul(beta)));
    return;
  }
  const Operand self_(bias, Operand::flagged), vec1_(first, Operand::flagged), vec2_(second, Operand::flagged), out_(out, Operand::output);
  check(mps_op_addr(stream(), self_.pointer(), vec1_.pointer(), vec2_.pointer(), scalar(beta), scalar(alpha), out_.pointer()));
}

}  // namespace

at::Tensor &addbmm_out_mps(const at::Tensor &self, const at::Tensor &batch1, const at::Tensor &batch2, const at::Scalar &beta, const at::Scalar &alpha,
                           at::Tensor &out) {
  check_addbmm(self, batch1, batch2);
  TORCH_CHECK(out.scalar_type() == batch2.scalar_type(), "self and mat2 must have the same dtype, but got ", out.scalar_type(), " and ", batch2.scalar_type());
  at::native::resize_output(out, {batch1.size(1), batch2.size(2)});
  return run_addbmm(self, batch1, batch2, beta, alpha, out);
}

at::Tensor addbmm_mps(const at::Tensor &self, const at::Tensor &batch1, const at::Tensor &batch2, const at::Scalar &beta, const at::Scalar &alpha) {
  check_addbmm(self, batch1, batch2);
  at::Tensor out = empty({batch1.size(1), batch2.size(2)}, self.options());
  return run_addbmm(self, batch1, batch2, beta, alpha, out);
}

at::Tensor &addbmm_mps_(at::Tensor &self, const at::Tensor &batch1, const at::Tensor &batch2, const at::Scalar &beta, const at::Scalar &alpha) {
  check_addbmm(self, batch1, batch2);
  TORCH_CHECK(self.dim() == 2 && self.size(0) == batch1.size(1) && self.size(1) == batch2.size(2), "addbmm_: the result has the shape [", batch1.size(1), ", ",
              batch2.size(2), "], but self ", self.sizes());
  return run_addbmm(self, batch1, batch2, beta, alpha, self);
}

at::Tensor dot_mps(const at::Tensor &self, const at::Tensor &tensor) { return run_dot(self, tensor, false); }

at::Tensor vdot_mps(const at::Tensor &self, const at::Tensor &other) { return run_dot(self, other, true); }

at::Tensor addr_mps(const at::Tensor &self, const at::Tensor &vec1, const at::Tensor &vec2, const at::Scalar &beta, const at::Scalar &alpha) {
  const at::ScalarType type = addr_type(self, vec1, vec2, beta, alpha);
  at::Tensor out = empty({vec1.size(0), vec2.size(0)}, self.options().dtype(type));
  run_addr(self, vec1, vec2, beta, alpha, type, out);
  return out;
}

at::Tensor &addr_out_mps(const at::Tensor &self, const at::Tensor &vec1, const at::Tensor &vec2, const at::Scalar &beta, const at::Scalar &alpha,
                         at::Tensor &out) {
  const at::ScalarType type = addr_type(self, vec1, vec2, beta, alpha);
  TORCH_CHECK(at::canCast(type, out.scalar_type()), "result type ", type, " can't be cast to the desired output type ", out.scalar_type());
  at::native::resize_output(out, {vec1.size(0), vec2.size(0)});
  if (out.scalar_type() == type) {
    run_addr(self, vec1, vec2, beta, alpha, type, out);
    return out;
  }
  return out.copy_(addr_mps(self, vec1, vec2, beta, alpha));
}

// ---- linear ----

at::Tensor _mps_linear(const at::Tensor &input, const at::Tensor &weight, const std::optional<at::Tensor> &bias) {
  TORCH_CHECK(input.dim() > 0 && weight.dim() > 0, "both arguments to linear need to be at least 1D, but they are ", input.dim(), "D and ", weight.dim(), "D");
  const bool has_bias = bias.has_value() && bias->defined();
  if (weight.dim() != 2) {
    const at::Tensor product = at::matmul(input, weight.t());
    return has_bias ? at::add(product, *bias) : product;
  }
  at::DimVector sizes(input.sizes().begin(), input.sizes().end());
  sizes.back() = weight.size(0);
  at::Tensor out = empty(sizes, input.options());
  const bool fused = has_bias && bias->dim() <= 1 && bias->scalar_type() == input.scalar_type() && (bias->numel() == 1 || bias->numel() == weight.size(0));
  if (has_bias && bias->dim() == 1 && !fused)
    TORCH_CHECK(bias->scalar_type() != input.scalar_type(), "The expanded size of the tensor (", weight.size(0), ") must match the existing size (",
                bias->size(0), ") at non-singleton dimension ", 1, ".  Target sizes: [", input.numel() / std::max<int64_t>(1, input.size(-1)), ", ",
                weight.size(0), "].  Tensor sizes: [", bias->size(0), "]");
  TORCH_CHECK(!has_bias || bias->scalar_type() == input.scalar_type(), "self and mat2 must have the same dtype, but got ",
              has_bias ? bias->scalar_type() : input.scalar_type(), " and ", weight.scalar_type());
  const Operand input_(input, Operand::flagged), weight_(weight, Operand::flagged), out_(out, Operand::output);
  const Operand bias_(fused ? *bias : at::Tensor(), Operand::flagged);
  check(mps_op_linear(stream(), input_.pointer(), weight_.pointer(), bias_.pointer_or_null(), out_.pointer()));
  return has_bias && !fused ? at::add(out, *bias) : out;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> mps_linear_backward(const at::Tensor &input, const at::Tensor &grad_output, const at::Tensor &weight,
                                                                   std::array<bool, 3> output_mask) {
  at::Tensor grad_input, grad_weight, grad_bias;
  if (output_mask[0]) grad_input = empty(input.sizes(), grad_output.options());
  if (output_mask[1]) grad_weight = empty(weight.sizes(), grad_output.options());
  if (output_mask[2]) grad_bias = empty({weight.size(0)}, grad_output.options());
  // Gradients of complex functions conjugate.
  const at::Tensor input_c = input.conj(), weight_c = weight.conj();
  const Operand input_(input_c, Operand::flagged), grad_output_(grad_output, Operand::flagged), weight_(weight_c, Operand::flagged);
  const Operand to_input(grad_input, Operand::output), to_weight(grad_weight, Operand::output), to_bias(grad_bias, Operand::output);
  check(mps_op_linear_backward(stream(), input_.pointer(), grad_output_.pointer(), weight_.pointer(), to_input.pointer_or_null(), to_weight.pointer_or_null(),
                               to_bias.pointer_or_null()));
  return {grad_input, grad_weight, grad_bias};
}

}  // namespace openmps::native
