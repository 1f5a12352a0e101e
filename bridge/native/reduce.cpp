/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reduce: reductions that PyTorch leaves to allocate their own results.
 */
#include <ATen/native/ReduceOpsUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/add.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/imag.h>
#include <ATen/ops/real.h>
#include <ATen/ops/sqrt.h>
#include <torch/library.h>

#include "bridge/convert.h"
#include "bridge/kernels/reduce.h"
#include "openmps/ops/reduce.h"

namespace openmps::native {

namespace {

using at::Tensor;

// The shape of a reduction over `dim`; absent or empty means all.
at::DimVector reduced_shape(const Tensor &self, at::OptionalIntArrayRef dim, bool keepdim) {
  const auto mask = at::native::make_dim_mask(dim, self.dim());
  return at::native::shape_from_dim_mask(self, mask, keepdim);
}

at::ScalarType sum_type(const Tensor &self, std::optional<at::ScalarType> type) {
  if (type.has_value()) return *type;
  return at::isIntegralType(self.scalar_type(), true) ? at::kLong : self.scalar_type();
}

void run_nansum(const Tensor &self, at::OptionalIntArrayRef dim, bool keepdim, const Tensor &out) {
  const Operand self_(self, Operand::plain), out_(out, Operand::output);
  const List<int64_t> dim_(dim);
  check(mps_op_nansum(stream(), self_.pointer(), dim_.data(), dim_.count(), keepdim, nullptr, out_.pointer()));
}

void refuse_empty(const Tensor &self, const char *name) {
  TORCH_CHECK(self.numel() > 0, name, "(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument.");
}

// ---- var and std ----
using VarFunction = mps_status (*)(mps_stream *, const mps_tensor *, const int64_t *, uint32_t, double, bool, const mps_tensor *);
using VarMeanFunction = mps_status (*)(mps_stream *, const mps_tensor *, const int64_t *, uint32_t, double, bool, const mps_tensor *, const mps_tensor *);

struct Var {
  const char *name;
  VarFunction function;
  VarMeanFunction with_mean;
};
constexpr Var kVar{"var", mps_op_var, mps_op_var_mean};
constexpr Var kStd{"std", mps_op_std, mps_op_std_mean};
constexpr Var kVarMean{"var_mean", mps_op_var, mps_op_var_mean};
constexpr Var kStdMean{"std_mean", mps_op_std, mps_op_std_mean};

// `mean` may be null. Complex: the variances of both components add up.
Tensor run_var(const Var &var, const Tensor &self, at::OptionalIntArrayRef dim, const std::optional<at::Scalar> &correction, bool keepdim, Tensor *mean) {
  TORCH_CHECK(at::isFloatingType(self.scalar_type()) || at::isComplexType(self.scalar_type()), "std and var only support floating point and complex dtypes");
  if (at::isComplexType(self.scalar_type())) {
    Tensor real_mean, imaginary_mean;
    const Tensor real = run_var(kVar, at::real(self), dim, correction, keepdim, mean ? &real_mean : nullptr);
    const Tensor sum = real.add(run_var(kVar, at::imag(self), dim, correction, keepdim, mean ? &imaginary_mean : nullptr));
    if (mean) *mean = at::complex(real_mean, imaginary_mean);
    return var.function == mps_op_std ? sum.sqrt() : sum;
  }
  const double by = correction.has_value() ? correction->toDouble() : 1.0;
  const at::DimVector shape = reduced_shape(self, dim, keepdim);
  Tensor out = empty(shape, self.options());
  if (out.numel() > 0 && static_cast<double>(self.numel()) / static_cast<double>(out.numel()) <= by)
    TORCH_WARN(var.name, "(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor (input numel divided by output numel).");
  const Operand self_(self, Operand::plain), out_(out, Operand::output);
  const List<int64_t> dim_(dim);
  if (mean) {
    *mean = empty(shape, self.options());
    const Operand mean_(*mean, Operand::output);
    check(var.with_mean(stream(), self_.pointer(), dim_.data(), dim_.count(), by, keepdim, out_.pointer(), mean_.pointer()));
  } else {
    check(var.function(stream(), self_.pointer(), dim_.data(), dim_.count(), by, keepdim, out_.pointer()));
  }
  return out;
}

}  // namespace

Tensor nansum(const Tensor &self, at::OptionalIntArrayRef dim, bool keepdim, std::optional<at::ScalarType> dtype) {
  Tensor out = empty(reduced_shape(self, dim, keepdim), self.options().dtype(sum_type(self, dtype)));
  run_nansum(self, dim, keepdim, out);
  return out;
}

Tensor &nansum_out(const Tensor &self, at::OptionalIntArrayRef dim, bool keepdim, std::optional<at::ScalarType> dtype, Tensor &out) {
  TORCH_CHECK(!dtype.has_value() || *dtype == out.scalar_type(), "Expected out tensor to have dtype ", *dtype, ", but got ", out.scalar_type(), " instead");
  at::native::resize_output(out, reduced_shape(self, dim, keepdim));
  run_nansum(self, dim, keepdim, out);
  return out;
}

// PyTorch's own checks leave the dtype of out= to the kernel.
static void check_norm_out(at::ScalarType type, const Tensor &out) {
  const auto expected = at::scalarTypeToTypeMeta(at::toRealValueType(type));
  TORCH_CHECK(out.dtype() == expected, "Expected out tensor to have dtype ", expected, ", but got ", out.dtype(), " instead");
}

void structured_norm_out::impl(const Tensor &self, at::OptionalScalarRef p, at::IntArrayRef dim, bool keepdim, const Tensor &out) {
  check_norm_out(self.scalar_type(), out);
  const Operand self_(self, Operand::plain), out_(out, Operand::output);
  const Optional<mps_scalar> p_(p);
  const List<int64_t> dim_(dim);
  check(mps_op_norm(stream(), self_.pointer(), p_.pointer(), dim_.data(), dim_.count(), keepdim, out_.pointer()));
}

void structured_norm_dtype_out::impl(const Tensor &self, at::OptionalScalarRef p, at::IntArrayRef dim, bool keepdim, at::ScalarType dtype,
                                     const Tensor &out) {
  check_norm_out(dtype, out);
  const Operand self_(self, Operand::plain), out_(out, Operand::output);
  const Optional<mps_scalar> p_(p);
  const List<int64_t> dim_(dim);
  check(mps_op_norm_dtype(stream(), self_.pointer(), p_.pointer(), dim_.data(), dim_.count(), keepdim, openmps::dtype(dtype), out_.pointer()));
}

Tensor prod_mps(const Tensor &self, std::optional<at::ScalarType> dtype) {
  Tensor out = empty({}, self.options().dtype(sum_type(self, dtype)));
  const Operand self_(self, Operand::plain), out_(out, Operand::output);
  check(mps_op_prod(stream(), self_.pointer(), nullptr, 0, false, nullptr, out_.pointer()));
  return out;
}

Tensor trace_mps(const Tensor &self) {
  TORCH_CHECK(self.dim() == 2, "trace: expected a matrix, but got tensor with dim ", self.dim());
  Tensor out = empty({}, self.options().dtype(sum_type(self, std::nullopt)));
  const Operand self_(self, Operand::plain), out_(out, Operand::output);
  check(mps_op_trace(stream(), self_.pointer(), out_.pointer()));
  return out;
}

Tensor count_nonzero_mps(const Tensor &self, at::IntArrayRef dim) {
  Tensor out = empty(reduced_shape(self, dim, false), self.options().dtype(at::kLong));
  const Operand self_(self, Operand::plain), out_(out, Operand::output);
  const List<int64_t> dim_(dim);
  check(mps_op_count_nonzero(stream(), self_.pointer(), dim_.data(), dim_.count(), out_.pointer()));
  return out;
}

Tensor max_mps(const Tensor &self) {
  refuse_empty(self, "max");
  Tensor out = empty({}, self.options());
  const Operand self_(self, Operand::plain), out_(out, Operand::output);
  check(mps_op_max_all(stream(), self_.pointer(), out_.pointer()));
  return out;
}

Tensor min_mps(const Tensor &self) {
  refuse_empty(self, "min");
  Tensor out = empty({}, self.options());
  const Operand self_(self, Operand::plain), out_(out, Operand::output);
  check(mps_op_min_all(stream(), self_.pointer(), out_.pointer()));
  return out;
}

Tensor var_mps(const Tensor &self, at::OptionalIntArrayRef dim, const std::optional<at::Scalar> &correction, bool keepdim) {
  return run_var(kVar, self, dim, correction, keepdim, nullptr);
}

Tensor std_mps(const Tensor &self, at::OptionalIntArrayRef dim, const std::optional<at::Scalar> &correction, bool keepdim) {
  return run_var(kStd, self, dim, correction, keepdim, nullptr);
}

std::tuple<Tensor, Tensor> var_mean_mps(const Tensor &self, at::OptionalIntArrayRef dim, const std::optional<at::Scalar> &correction, bool keepdim) {
  Tensor mean, out = run_var(kVarMean, self, dim, correction, keepdim, &mean);
  return {out, mean};
}

std::tuple<Tensor, Tensor> std_mean_mps(const Tensor &self, at::OptionalIntArrayRef dim, const std::optional<at::Scalar> &correction, bool keepdim) {
  Tensor mean, out = run_var(kStdMean, self, dim, correction, keepdim, &mean);
  return {out, mean};
}

namespace {

// ---- any and all over several dimensions: PyTorch would go through them one by one. No dimensions given: all; an empty list: none. ----
template <auto Function>
Tensor &truth_of_dims_out(const char *name, const Tensor &self, at::OptionalIntArrayRef dim, bool keepdim, Tensor &out) {
  TORCH_CHECK(out.scalar_type() == at::kBool || out.scalar_type() == at::kByte, name, " only supports bool tensor for result, got: ", out.scalar_type());
  const bool none = dim.has_value() && dim->empty();
  at::native::resize_output(out, none ? at::DimVector(self.sizes()) : reduced_shape(self, dim, keepdim));
  if (none) return out.copy_(self.ne(0));
  const Operand self_(self, Operand::plain), out_(out, Operand::output);
  const List<int64_t> dim_(dim);
  check(Function(stream(), self_.pointer(), dim_.data(), dim_.count(), keepdim, out_.pointer()));
  return out;
}

Tensor truth(const Tensor &self) { return at::empty({0}, self.options().dtype(self.scalar_type() == at::kByte ? at::kByte : at::kBool)); }

Tensor &any_dims_out(const Tensor &self, at::OptionalIntArrayRef dim, bool keepdim, Tensor &out) {
  return truth_of_dims_out<mps_op_any_dims>("any", self, dim, keepdim, out);
}
Tensor &all_dims_out(const Tensor &self, at::OptionalIntArrayRef dim, bool keepdim, Tensor &out) {
  return truth_of_dims_out<mps_op_all_dims>("all", self, dim, keepdim, out);
}
Tensor any_dims(const Tensor &self, at::OptionalIntArrayRef dim, bool keepdim) {
  Tensor out = truth(self);
  return any_dims_out(self, dim, keepdim, out);
}
Tensor all_dims(const Tensor &self, at::OptionalIntArrayRef dim, bool keepdim) {
  Tensor out = truth(self);
  return all_dims_out(self, dim, keepdim, out);
}

}  // namespace

}  // namespace openmps::native

TORCH_LIBRARY_IMPL(aten, MPS, m) {
  using namespace openmps::native;
  m.impl("any.dims", TORCH_FN(any_dims));
  m.impl("any.dims_out", TORCH_FN(any_dims_out));
  m.impl("all.dims", TORCH_FN(all_dims));
  m.impl("all.dims_out", TORCH_FN(all_dims_out));
}
