/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pointwise: kernels of the pointwise family that PyTorch leaves to allocate their own results. Shapes, dtypes and checks are TensorIterator's.
 */
#include <ATen/ScalarOps.h>
#include <ATen/TensorIterator.h>

#include "bridge/convert.h"
#include "bridge/kernels/pointwise.h"
#include "openmps/ops/pointwise.h"
#include "openmps/ops/pointwise_activation.h"
#include "openmps/ops/pointwise_comparison.h"
#include "openmps/ops/pointwise_special.h"
#include "openmps/ops/pointwise_transcendental.h"

namespace openmps::native {

namespace {

using at::Tensor;
using at::TensorIterator;
using at::TensorIteratorConfig;

// One C function over an iterator's operands. 0-d and CPU operands are brought to the iterator's common dtype, where it has one.
template <class F, class... More>
void run(F function, at::TensorIteratorBase &iter, bool common, More... more) {
  const at::ScalarType type = common ? iter.common_dtype() : at::ScalarType::Undefined;
  const Operand out(iter.tensor(0), Operand::output);
  const Operand a(iter.tensor(1), Operand::flagged, type);
  if constexpr (std::is_invocable_v<F, mps_stream *, const mps_tensor *, More..., const mps_tensor *>) {
    check(function(stream(), a.pointer(), more..., out.pointer()));
  } else if constexpr (std::is_invocable_v<F, mps_stream *, const mps_tensor *, const mps_tensor *, More..., const mps_tensor *>) {
    const Operand b(iter.tensor(2), Operand::flagged, type);
    check(function(stream(), a.pointer(), b.pointer(), more..., out.pointer()));
  } else {
    const Operand b(iter.tensor(2), Operand::flagged, type), c(iter.tensor(3), Operand::flagged, type);
    check(function(stream(), a.pointer(), b.pointer(), c.pointer(), more..., out.pointer()));
  }
}

template <class F, class... More>
Tensor unary(F function, const Tensor &self, More... more) {
  Tensor out;
  auto iter = TensorIterator::unary_op(out, self);
  run(function, iter, false, more...);
  return iter.output();
}

template <class F, class... More>
Tensor &unary_out(F function, const Tensor &self, Tensor &out, More... more) {
  auto iter = TensorIterator::unary_op(out, self);
  run(function, iter, false, more...);
  return out;
}

template <class F, class... More>
Tensor binary(F function, const Tensor &a, const Tensor &b, More... more) {
  Tensor out;
  auto iter = TensorIterator::borrowing_binary_op(out, a, b);
  run(function, iter, true, more...);
  return iter.output();
}

template <class F, class... More>
Tensor &binary_out(F function, const Tensor &a, const Tensor &b, Tensor &out, More... more) {
  auto iter = TensorIterator::borrowing_binary_op(out, a, b);
  run(function, iter, true, more...);
  return out;
}

at::ScalarType real_type(const Tensor &self) { return at::isComplexType(self.scalar_type()) ? c10::toRealValueType(self.scalar_type()) : self.scalar_type(); }

// An out= of self's shape, for a result of `type`.
void prepare(Tensor &out, const Tensor &self, at::ScalarType type) {
  TORCH_CHECK(at::canCast(type, out.scalar_type()), "result type ", type, " can't be cast to the desired output type ", out.scalar_type());
  at::native::resize_output(out, self.sizes());
  at::assert_no_internal_overlap(out);
  at::assert_no_partial_overlap(out, self);
}

template <class F>
Tensor &to_real(F function, const Tensor &self, Tensor &out, at::ScalarType type) {
  prepare(out, self, type);
  const Operand self_(self, Operand::flagged), out_(out, Operand::output);
  check(function(stream(), self_.pointer(), out_.pointer()));
  return out;
}

at::ScalarType float_type(const Tensor &self) {
  const at::ScalarType type = real_type(self);
  return at::isIntegralType(type, true) ? at::typeMetaToScalarType(at::get_default_dtype()) : type;
}

}  // namespace

// ---- powers ----
// PyTorch's shape inference of this entry looks at no dtype and no overlap; those of two tensors do.
void structured_pow_Scalar_out_mps::impl(const at::Scalar &self, const Tensor &exponent, const Tensor &out) {
  Tensor result = out;
  if (self.equal(1.0)) result.fill_(1);
  else binary_out(mps_op_pow, at::native::wrapped_scalar_tensor(self), exponent, result);
}

// ---- complex numbers ----
Tensor &abs_out(const Tensor &self, Tensor &out) {
  return self.is_complex() ? to_real(mps_op_abs, self, out, real_type(self)) : unary_out(mps_op_abs, self, out);
}

Tensor &angle_out(const Tensor &self, Tensor &out) {
  if (self.is_complex()) return to_real(mps_op_angle, self, out, real_type(self));
  auto iter = TensorIterator::unary_float_op(out, self);
  run(mps_op_angle, iter, false);
  return out;
}

Tensor angle(const Tensor &self) {
  Tensor out = at::empty({0}, self.options().dtype(float_type(self)));
  return angle_out(self, out);
}

Tensor &conj_physical_out_mps(const Tensor &self, Tensor &out) { return unary_out(mps_op_conj_physical, self, out); }

static void check_parts(const Tensor &a, const Tensor &b, const Tensor &out) {
  const auto type = a.scalar_type();
  TORCH_CHECK((type == at::kFloat || type == at::kHalf) && (b.scalar_type() == at::kFloat || b.scalar_type() == at::kHalf),
              "Expected both inputs to be Half, Float or Double tensors but got ", type, " and ", b.scalar_type());
  TORCH_CHECK(type == b.scalar_type(), "Expected object of scalar type ", type, " but got scalar type ", b.scalar_type(), " for second argument");
  TORCH_CHECK(c10::toComplexType(type) == out.scalar_type(), "Expected object of scalar type ", c10::toComplexType(type),
              " but got scalar type ", out.scalar_type(), " for argument 'out'");
}

template <class F>
static Tensor &from_parts(F function, const Tensor &a, const Tensor &b, Tensor &out) {
  check_parts(a, b, out);
  auto iter = TensorIteratorConfig().add_output(out).add_const_input(a).add_const_input(b).check_all_same_dtype(false).build();
  run(function, iter, false);
  return out;
}

Tensor &complex_out(const Tensor &real, const Tensor &imag, Tensor &out) { return from_parts(mps_op_complex, real, imag, out); }
Tensor &polar_out(const Tensor &abs, const Tensor &angle, Tensor &out) { return from_parts(mps_op_polar, abs, angle, out); }

// ---- logic ----
template <class F>
static Tensor &logical(F function, const Tensor &self, const Tensor &other, Tensor &out) {
  auto iter = TensorIterator::comparison_op(out, self, other);
  run(function, iter, false);
  return out;
}

Tensor &logical_and_out_mps(const Tensor &self, const Tensor &other, Tensor &out) { return logical(mps_op_logical_and, self, other, out); }
Tensor &logical_or_out_mps(const Tensor &self, const Tensor &other, Tensor &out) { return logical(mps_op_logical_or, self, other, out); }
Tensor &logical_xor_out_mps(const Tensor &self, const Tensor &other, Tensor &out) { return logical(mps_op_logical_xor, self, other, out); }

Tensor &logical_not_out_mps(const Tensor &self, Tensor &out) {
  auto iter = TensorIteratorConfig().check_all_same_dtype(false).add_output(out).add_const_input(self).build();
  run(mps_op_logical_not, iter, false);
  return out;
}

// ---- quotients and shifts ----
Tensor floor_divide(const Tensor &self, const Tensor &other) { return binary(mps_op_floor_divide, self, other); }
Tensor &floor_divide_(Tensor &self, const Tensor &other) { return binary_out(mps_op_floor_divide, self, other, self); }
Tensor &floor_divide_out(const Tensor &self, const Tensor &other, Tensor &out) { return binary_out(mps_op_floor_divide, self, other, out); }

static Tensor shift_count(const Tensor &self, const at::Scalar &other) {
  Tensor count = at::scalar_tensor(other, at::TensorOptions().dtype(self.scalar_type()).device(at::kCPU));
  count.unsafeGetTensorImpl()->set_wrapped_number(true);
  return count;
}

Tensor __lshift__(const Tensor &self, const at::Scalar &other) { return binary(mps_op_bitwise_left_shift, self, shift_count(self, other)); }
Tensor __lshift__(const Tensor &self, const Tensor &other) { return binary(mps_op_bitwise_left_shift, self, other); }
Tensor &__ilshift__(Tensor &self, const at::Scalar &other) { return binary_out(mps_op_bitwise_left_shift, self, shift_count(self, other), self); }
Tensor &__ilshift__(Tensor &self, const Tensor &other) { return binary_out(mps_op_bitwise_left_shift, self, other, self); }
Tensor __rshift__(const Tensor &self, const at::Scalar &other) { return binary(mps_op_bitwise_right_shift, self, shift_count(self, other)); }
Tensor __rshift__(const Tensor &self, const Tensor &other) { return binary(mps_op_bitwise_right_shift, self, other); }
Tensor &__irshift__(Tensor &self, const at::Scalar &other) { return binary_out(mps_op_bitwise_right_shift, self, shift_count(self, other), self); }
Tensor &__irshift__(Tensor &self, const Tensor &other) { return binary_out(mps_op_bitwise_right_shift, self, other, self); }

// ---- choices ----
static void choose(const Tensor &condition, const Tensor &self, const Tensor &other, at::ScalarType type, at::TensorIteratorBase &iter) {
  const Operand condition_(condition, Operand::flagged), self_(self, Operand::flagged, type), other_(other, Operand::flagged, type);
  const Operand out_(iter.tensor(0), Operand::output);
  check(mps_op_where(stream(), condition_.pointer(), self_.pointer(), other_.pointer(), out_.pointer()));
}

static void check_condition(const Tensor &condition) {
  const auto type = condition.scalar_type();
  if (type == at::kByte) {
    TORCH_WARN_ONCE("where received a uint8 condition tensor. This behavior is deprecated and will be removed in a future version of PyTorch. "
                    "Use a boolean condition instead.");
  } else {
    TORCH_CHECK(type == at::kBool, "where expected condition to be a boolean tensor, but got a tensor with dtype ", type);
  }
}

Tensor where(const Tensor &condition, const Tensor &self, const Tensor &other) {
  check_condition(condition);
  const at::ScalarType type = at::result_type(self, other);
  auto iter = TensorIteratorConfig().check_all_same_dtype(false).allow_cpu_scalars(true).declare_static_dtype(type).add_owned_output(Tensor())
                .add_const_input(condition).add_const_input(self).add_const_input(other).build();
  choose(condition, self, other, type, iter);
  return iter.output();
}

Tensor &where_self_out(const Tensor &condition, const Tensor &self, const Tensor &other, Tensor &out) {
  check_condition(condition);
  const at::ScalarType type = at::result_type(self, other);
  TORCH_CHECK(out.scalar_type() == type, "Expected out type to be ", type, " but got ", out.scalar_type());
  auto iter = TensorIteratorConfig().check_all_same_dtype(false).allow_cpu_scalars(true).add_output(out)
                .add_const_input(condition).add_const_input(self).add_const_input(other).build();
  choose(condition, self, other, type, iter);
  return out;
}

static Tensor &fill_masked(Tensor &self, const Tensor &mask, const Operand &value) {
  TORCH_CHECK(self.device() == mask.device(), "expected self and mask to be on the same device, but got mask on ", mask.device(), " and self on ",
              self.device());
  TORCH_CHECK(mask.scalar_type() == at::kBool, "masked_fill_ only supports boolean masks, but got mask with dtype ", mask.dtype());
  at::assert_no_internal_overlap(self);
  const auto expanded = at::expand_inplace(self, mask, "masked_fill_");
  const Operand self_(self, Operand::flagged), mask_(*expanded, Operand::plain), out_(self, Operand::output);
  check(mps_op_masked_fill(stream(), self_.pointer(), mask_.pointer(), value.pointer(), out_.pointer()));
  return self;
}

Tensor &masked_fill__mps(Tensor &self, const Tensor &mask, const at::Scalar &value) {
  check_fits(value, self.scalar_type());
  return fill_masked(self, mask, Operand(value, Operand::plain, self.scalar_type()));
}

Tensor &masked_fill__mps(Tensor &self, const Tensor &mask, const Tensor &value) {
  TORCH_CHECK(value.dim() == 0, "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with ", value.dim(), " dimension(s).");
  if (value.is_complex() && !self.is_complex()) check_fits(value.item(), self.scalar_type());
  return fill_masked(self, mask, Operand(value, Operand::flagged));
}

Tensor &nan_to_num_out_mps(const Tensor &self, std::optional<double> nan, std::optional<double> posinf, std::optional<double> neginf, Tensor &out) {
  TORCH_CHECK(self.scalar_type() == out.scalar_type(), "nan_to_num: dtype of out: ", out.scalar_type(), " should be same as input: ", self.scalar_type());
  if (at::isIntegralType(self.scalar_type(), true)) {
    at::native::resize_output(out, self.sizes());
    return out.copy_(self);
  }
  const Optional<double> nan_(nan), posinf_(posinf), neginf_(neginf);
  return unary_out(mps_op_nan_to_num, self, out, nan_.pointer(), posinf_.pointer(), neginf_.pointer());
}

// ---- activations ----
Tensor relu_mps(const Tensor &self) {
  TORCH_CHECK(self.scalar_type() != at::kBool, "Boolean inputs not supported for relu");
  return unary(mps_op_relu, self);
}

Tensor &relu_mps_(Tensor &self) {
  TORCH_CHECK(self.scalar_type() != at::kBool, "Boolean inputs not supported for relu");
  auto iter = TensorIterator::unary_op(self, self);
  run(mps_op_relu, iter, false);
  return self;
}

Tensor hardswish(const Tensor &self) { return unary(mps_op_hardswish, self); }
Tensor &hardswish_out(const Tensor &self, Tensor &out) {
  auto iter = TensorIterator::unary_op(out, self);
  run(mps_op_hardswish, iter, false);
  return out;
}
Tensor hardswish_backward(const Tensor &grad, const Tensor &self) { return binary(mps_op_hardswish_backward, grad, self); }
Tensor mish_backward_mps(const Tensor &grad, const Tensor &self) { return binary(mps_op_mish_backward, grad, self); }

Tensor hardtanh_backward_mps(const Tensor &grad, const Tensor &self, const at::Scalar &low, const at::Scalar &high) {
  return binary(mps_op_hardtanh_backward, grad, self, scalar(low), scalar(high));
}
Tensor &hardtanh_backward_out_mps(const Tensor &grad, const Tensor &self, const at::Scalar &low, const at::Scalar &high, Tensor &grad_input) {
  return binary_out(mps_op_hardtanh_backward, grad, self, grad_input, scalar(low), scalar(high));
}

// As on Apple's backend the buffer is empty: the gradient is made from the input.
std::tuple<Tensor &, Tensor &> log_sigmoid_forward_out_mps(const Tensor &self, Tensor &output, Tensor &buffer) {
  TORCH_CHECK(output.scalar_type() == self.scalar_type(), "expected scalar type ", self.scalar_type(), " but found ", output.scalar_type());
  output.resize_as_(self);
  at::assert_no_internal_overlap(output);
  at::native::resize_output(buffer, {0});
  const Operand self_(self, Operand::flagged), output_(output, Operand::output);
  check(mps_op_log_sigmoid(stream(), self_.pointer(), output_.pointer(), nullptr));
  return std::forward_as_tuple(output, buffer);
}
std::tuple<Tensor, Tensor> log_sigmoid_forward_mps(const Tensor &self) {
  Tensor output = at::empty_like(self, at::MemoryFormat::Contiguous), buffer = at::empty({0}, self.options());
  log_sigmoid_forward_out_mps(self, output, buffer);
  return {output, buffer};
}
Tensor log_sigmoid_backward_mps(const Tensor &grad, const Tensor &self, const Tensor &) { return binary(mps_op_log_sigmoid_backward, grad, self); }
Tensor &log_sigmoid_backward_mps_out(const Tensor &grad, const Tensor &self, const Tensor &, Tensor &grad_input) {
  return binary_out(mps_op_log_sigmoid_backward, grad, self, grad_input);
}

Tensor &logit_out_mps(const Tensor &self, std::optional<double> eps, Tensor &out) {
  auto iter = TensorIterator::unary_float_op(out, self);
  const Optional<double> eps_(eps);
  run(mps_op_logit, iter, false, eps_.pointer());
  return out;
}
Tensor logit_mps(const Tensor &self, std::optional<double> eps) {
  Tensor out;
  auto iter = TensorIterator::unary_float_op(out, self);
  const Optional<double> eps_(eps);
  run(mps_op_logit, iter, false, eps_.pointer());
  return iter.output();
}

Tensor prelu_mps(const Tensor &self, const Tensor &weight) { return binary(mps_op_prelu, self, weight); }

std::tuple<Tensor, Tensor> prelu_backward_mps(const Tensor &grad, const Tensor &self, const Tensor &weight) {
  auto iter = TensorIteratorConfig().add_owned_output(Tensor()).add_owned_output(Tensor()).add_const_input(self).add_const_input(weight)
                .add_const_input(grad).build();
  const Operand grad_(grad, Operand::flagged), self_(self, Operand::flagged), weight_(weight, Operand::flagged);
  const Operand grad_self(iter.tensor(0), Operand::output), grad_weight(iter.tensor(1), Operand::output);
  check(mps_op_prelu_backward(stream(), grad_.pointer(), self_.pointer(), weight_.pointer(), grad_self.pointer(), grad_weight.pointer()));
  return {iter.output(0), iter.output(1)};
}

Tensor &glu_backward_mps_out(const Tensor &grad, const Tensor &self, int64_t dim, Tensor &grad_input) {
  TORCH_CHECK(self.dim() > 0, "glu does not support 0-dimensional tensors");
  const int64_t d = at::maybe_wrap_dim(dim, self.dim());
  TORCH_CHECK(self.size(d) % 2 == 0, "Halving dimension must be even, but dimension ", d, " is size ", self.size(d));
  at::native::resize_output(grad_input, self.sizes());
  const Operand grad_(grad, Operand::flagged), self_(self, Operand::flagged), out_(grad_input, Operand::output);
  check(mps_op_glu_backward(stream(), grad_.pointer(), self_.pointer(), d, out_.pointer()));
  return grad_input;
}
Tensor glu_backward_mps(const Tensor &grad, const Tensor &self, int64_t dim) {
  Tensor grad_input = at::empty({0}, self.options());
  return glu_backward_mps_out(grad, self, dim, grad_input);
}

Tensor native_dropout_backward_mps(const Tensor &grad, const Tensor &mask, double scale) {
  if (mask.scalar_type() != at::kBool || !at::isFloatingType(grad.scalar_type()) || mask.sizes() != grad.sizes()) return grad.mul(mask).mul(scale);
  const Tensor out = at::empty_like(grad);
  const Operand grad_(grad, Operand::flagged), mask_(mask, Operand::plain), out_(out, Operand::output);
  check(mps_op_native_dropout_backward(stream(), grad_.pointer(), mask_.pointer(), scale, out_.pointer()));
  return out;
}

// ---- operators that upstream does not list under MPS ----
namespace {

// The composite kernel asks for a stub.
Tensor &conj_physical_(Tensor &self) { return self.is_complex() ? conj_physical_out_mps(self, self) : self; }

Tensor &logit_(Tensor &self, std::optional<double> eps) { return logit_out_mps(self, eps, self); }

void check_heaviside(const Tensor &self, const Tensor &values, at::ScalarType out) {
  TORCH_CHECK(!self.is_complex() && !values.is_complex() && !at::isComplexType(out), "heaviside is not yet implemented for complex tensors.");
  TORCH_CHECK(self.dtype() == values.dtype() && out == self.scalar_type(), "heaviside is not yet implemented for tensors with different dtypes.");
}

Tensor heaviside(const Tensor &self, const Tensor &values) {
  check_heaviside(self, values, self.scalar_type());
  return binary(mps_op_heaviside, self, values);
}
Tensor &heaviside_out(const Tensor &self, const Tensor &values, Tensor &out) {
  check_heaviside(self, values, out.scalar_type());
  return binary_out(mps_op_heaviside, self, values, out);
}
Tensor &heaviside_(Tensor &self, const Tensor &values) {
  check_heaviside(self, values, self.scalar_type());
  return binary_out(mps_op_heaviside, self, values, self);
}

template <auto Function>
Tensor &float_unary_out(const Tensor &self, Tensor &out) {
  auto iter = TensorIterator::unary_float_op(out, self);
  run(Function, iter, false);
  return out;
}
template <auto Function>
Tensor float_unary(const Tensor &self) {
  Tensor out;
  auto iter = TensorIterator::unary_float_op(out, self);
  run(Function, iter, false);
  return iter.output();
}

TensorIterator float_binary_iterator(const Tensor &out, const Tensor &a, const Tensor &b) {
  TensorIterator iter;
  iter.build_binary_float_op(out, a, b);
  return iter;
}
template <auto Function>
Tensor &float_binary_out(const Tensor &a, const Tensor &b, Tensor &out) {
  auto iter = float_binary_iterator(out, a, b);
  run(Function, iter, true);
  return out;
}
template <auto Function>
Tensor float_binary(const Tensor &a, const Tensor &b) {
  auto iter = float_binary_iterator(Tensor(), a, b);
  run(Function, iter, true);
  return iter.output();
}

std::tuple<Tensor &, Tensor &> frexp_out(const Tensor &self, Tensor &mantissa, Tensor &exponent) {
  TORCH_CHECK_TYPE(at::isFloatingType(self.scalar_type()), "torch.frexp() only supports floating-point dtypes");
  TORCH_CHECK(mantissa.dtype() == self.dtype(), "torch.frexp() expects mantissa to have dtype ", self.dtype(), " but got ", mantissa.dtype());
  TORCH_CHECK(exponent.dtype() == at::kInt, "torch.frexp() expects exponent to have int dtype but got ", exponent.dtype());
  auto iter = TensorIteratorConfig().add_output(mantissa).add_output(exponent).add_const_input(self).check_all_same_dtype(false)
                .set_check_mem_overlap(true).build();
  const Operand self_(self, Operand::flagged), mantissa_(mantissa, Operand::output), exponent_(exponent, Operand::output);
  check(mps_op_frexp(stream(), self_.pointer(), mantissa_.pointer(), exponent_.pointer()));
  return std::forward_as_tuple(mantissa, exponent);
}

// Whole exponents scale exactly; with others ldexp is a product, as on the CPU.
bool scales(const Tensor &self, const Tensor &other) { return at::isFloatingType(self.scalar_type()) && at::isIntegralType(other.scalar_type(), false); }
Tensor ldexp_by(const Tensor &self, const Tensor &other) {
  return scales(self, other) ? binary(mps_op_ldexp, self, other) : at::mul(self, at::pow(2.0, other));
}
Tensor &ldexp_by_out(const Tensor &self, const Tensor &other, Tensor &out) {
  const at::ScalarType type = at::result_type(self, other), result = at::isIntegralType(type, true) ? at::typeMetaToScalarType(at::get_default_dtype()) : type;
  TORCH_CHECK(at::canCast(result, out.scalar_type()), "ldexp can't be cast to the desired output type ", out.scalar_type());
  return scales(self, other) ? binary_out(mps_op_ldexp, self, other, out) : at::mul_out(out, self, at::pow(2.0, other));
}
Tensor &ldexp_in_place(Tensor &self, const Tensor &other) { return ldexp_by_out(self, other, self); }

}  // namespace

}  // namespace openmps::native

TORCH_LIBRARY_IMPL(aten, MPS, m) {
  using namespace openmps::native;
  m.impl("conj_physical_", TORCH_FN(conj_physical_));
  m.impl("logit_", TORCH_FN(logit_));
  m.impl("heaviside", TORCH_FN(heaviside));
  m.impl("heaviside_", TORCH_FN(heaviside_));
  m.impl("heaviside.out", TORCH_FN(heaviside_out));
  m.impl("frexp.Tensor_out", TORCH_FN(frexp_out));
  m.impl("ldexp.Tensor", TORCH_FN(ldexp_by));
  m.impl("ldexp.out", TORCH_FN(ldexp_by_out));
  m.impl("ldexp_", TORCH_FN(ldexp_in_place));
  m.impl("special_ndtri", TORCH_FN(float_unary<mps_op_special_ndtri>));
  m.impl("special_ndtri.out", TORCH_FN(float_unary_out<mps_op_special_ndtri>));
  m.impl("special_log_ndtr", TORCH_FN(float_unary<mps_op_special_log_ndtr>));
  m.impl("special_log_ndtr.out", TORCH_FN(float_unary_out<mps_op_special_log_ndtr>));
  m.impl("special_laguerre_polynomial_l", TORCH_FN(float_binary<mps_op_special_laguerre_polynomial_l>));
  m.impl("special_laguerre_polynomial_l.out", TORCH_FN(float_binary_out<mps_op_special_laguerre_polynomial_l>));
  m.impl("special_legendre_polynomial_p", TORCH_FN(float_binary<mps_op_special_legendre_polynomial_p>));
  m.impl("special_legendre_polynomial_p.out", TORCH_FN(float_binary_out<mps_op_special_legendre_polynomial_p>));
}
