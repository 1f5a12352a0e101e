/* SPDX-License-Identifier: BSD-3-Clause
 *
 * composite: operators that have no MPS entry upstream and would reach a kernel of another device. Each is made of operators that are
 * native here; checks and their texts are those of PyTorch's CPU.
 */
#include <ATen/MemoryOverlap.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_softmax_backward_data.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/amin.h>
#include <ATen/ops/aminmax.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/i0.h>
#include <ATen/ops/index.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/max.h>
#include <ATen/ops/min.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/std.h>
#include <ATen/ops/var.h>
#include <ATen/ops/where.h>
#include <torch/library.h>

#include <cmath>
#include <limits>
#include <tuple>

#include "bridge/convert.h"
#include "openmps/ops/shape.h"

namespace openmps::native {
namespace {

at::Tensor &deliver(const at::Tensor &result, at::Tensor &out) {
  at::native::resize_output(out, result.sizes());
  return out.copy_(result);
}

// ---- elements by their number ----

void check_take(const at::Tensor &self, const at::Tensor &index) {
  TORCH_CHECK(index.scalar_type() == at::kLong, "take(): Expected a long tensor for index, but got ", index.scalar_type());
  TORCH_CHECK_INDEX(self.numel() != 0 || index.numel() == 0, "take(): tried to take from an empty tensor");
}

at::Tensor take_elements(const at::Tensor &self, const at::Tensor &index) {
  check_take(self, index);
  if (index.numel() == 0) return at::empty(index.sizes(), self.options());
  return at::index(self.reshape({-1}), {index}).contiguous();
}

at::Tensor &take_out(const at::Tensor &self, const at::Tensor &index, at::Tensor &out) {
  check_take(self, index);
  TORCH_CHECK(self.scalar_type() == out.scalar_type(), "take(): self and out expected to have the same dtype, but got self.dtype = ",
              self.scalar_type(), " and out.dtype = ", out.scalar_type());
  at::assert_no_internal_overlap(out);
  at::assert_no_overlap(out, index);
  at::assert_no_overlap(out, self);
  return deliver(take_elements(self, index), out);
}

at::Tensor &put_(at::Tensor &self, const at::Tensor &index, const at::Tensor &source, bool accumulate) {
  TORCH_CHECK(index.scalar_type() == at::kLong, "put_(): Expected a long tensor for index, but got ", index.scalar_type());
  TORCH_CHECK(self.scalar_type() == source.scalar_type(), "put_(): self and source expected to have the same dtype, but got self.dtype = ",
              self.scalar_type(), " and source.dtype = ", source.scalar_type());
  TORCH_CHECK_INDEX(source.numel() == index.numel(), "put_(): Expected source and index to have the same number of elements, but got source.numel() = ",
                    source.numel(), ", index.numel() = ", index.numel());
  TORCH_CHECK_INDEX(self.numel() != 0 || index.numel() == 0, "put_(): Tried to put elements into an empty tensor");
  at::assert_no_internal_overlap(self);
  at::assert_no_overlap(self, index);
  at::assert_no_overlap(self, source);
  if (index.numel() == 0) return self;
  at::Tensor flat = self.is_contiguous() ? self.view({-1}) : self.contiguous().view({-1});
  flat.index_put_({index.reshape({-1})}, source.reshape({-1}), accumulate);
  if (!self.is_contiguous()) self.copy_(flat.view(self.sizes()));
  return self;
}

at::Tensor channel_shuffle(const at::Tensor &self, int64_t groups) {
  TORCH_CHECK(self.dim() > 2, "channel_shuffle expects input with > 2 dims, but got input with sizes ", self.sizes());
  const int64_t channels = self.size(1);
  TORCH_CHECK(groups > 0, "Number of groups to divide channels in must be positive. Value of groups:", groups);
  TORCH_CHECK(channels % groups == 0, "Number of channels must be divisible by groups. Got ", channels, " channels and ", groups, " groups.");
  if (self.numel() == 0) return self.alias();
  const at::Tensor shuffled = self.reshape({self.size(0), groups, channels / groups, -1}).transpose(1, 2).reshape(self.sizes());
  return shuffled.contiguous(self.suggest_memory_format());
}

at::Tensor &narrow_copy_out(const at::Tensor &self, int64_t dim, int64_t start, int64_t length, at::Tensor &out) {
  TORCH_CHECK(self.dim() > 0, "narrow() cannot be applied to a 0-dim tensor.");
  TORCH_CHECK(self.scalar_type() == out.scalar_type());
  return deliver(self.narrow(dim, start, length), out);
}

// ---- reductions into a given tensor ----

template <at::Tensor (*Reduction)(const at::Tensor &)>
at::Tensor &reduce_all_out(const at::Tensor &self, at::Tensor &out) {
  TORCH_CHECK(canCast(self.scalar_type(), out.scalar_type()), "result type ", self.scalar_type(), " can't be cast to the desired output type ",
              out.scalar_type());
  return deliver(Reduction(self), out);
}

template <at::Tensor (*Reduction)(const at::Tensor &, at::OptionalIntArrayRef, const std::optional<at::Scalar> &, bool)>
at::Tensor &deviation_out(const at::Tensor &self, at::OptionalIntArrayRef dim, const std::optional<at::Scalar> &correction, bool keepdim,
                          at::Tensor &out) {
  const at::Tensor result = Reduction(self, dim, correction, keepdim);
  TORCH_CHECK(canCast(result.scalar_type(), out.scalar_type()), "result type ", result.scalar_type(),
              " can't be cast to the desired output type ", out.scalar_type());
  return deliver(result, out);
}

std::tuple<at::Tensor, at::Tensor> aminmax_all(const at::Tensor &self) { return at::aminmax(self); }

std::tuple<at::Tensor, at::Tensor> aminmax_dim(const at::Tensor &self, int64_t dim, bool keepdim) { return at::aminmax(self, dim, keepdim); }

// ---- sequences ----

at::Tensor &logspace_out(const at::Scalar &start, const at::Scalar &end, int64_t steps, double base, at::Tensor &out) {
  TORCH_CHECK(steps >= 0, "number of steps must be non-negative");
  if (out.numel() != steps) out.resize_({steps});
  if (steps == 0) return out;
  if (out.is_complex()) {
    const at::Tensor exponents = at::linspace(start, end, steps, out.options().dtype(at::kComplexFloat));
    return out.copy_(at::pow(at::full({}, base, exponents.options()), exponents).view(out.sizes()));
  }
  const at::ScalarType type = out.scalar_type();
  if (steps == 1) return out.fill_(std::pow(base, start.to<double>()));  // the end and what the dtype makes of the start do not matter
  const bool unsigned_ = type == at::kUInt16 || type == at::kUInt32 || type == at::kUInt64;
  TORCH_CHECK_NOT_IMPLEMENTED(type != at::kBool && !unsigned_, "\"logspace_cpu\" not implemented for '", type, "'");
  // Both ends become the dtype first.
  const at::Scalar first = check_fits(start, type), last = check_fits(end, type);
  if (!at::isIntegralType(type, false)) {
    const at::Tensor exponents = at::linspace(first, last, steps, out.options().dtype(at::kFloat));
    return out.copy_(at::pow(base, exponents).view(out.sizes()));
  }
  const at::Tensor whole = out.dim() == 1 ? out : at::empty({steps}, out.options());
  const Operand whole_(whole, Operand::output);
  check(mps_op_logspace_integers(stream(), first.toLong(), last.toLong(), base, whole_.pointer()));
  return whole.is_same(out) ? out : out.copy_(whole.view(out.sizes()));
}

// i0(beta sqrt(1 - (2 n / (length - 1) - 1)^2)) / i0(beta), as torch.kaiser_window documents it.
at::Tensor kaiser_window_beta(int64_t length, bool periodic, double beta, std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
                              std::optional<at::Device> device, std::optional<bool> pin_memory) {
  const auto options = at::TensorOptions().dtype(dtype).layout(layout).device(device).pinned_memory(pin_memory);
  const at::ScalarType type = dtype.value_or(at::get_default_dtype_as_scalartype());
  TORCH_CHECK(!layout || *layout != at::kSparse, "kaiser_window is not implemented for sparse types, got: ", layout.value_or(at::kStrided));
  TORCH_CHECK(at::isFloatingType(type) || at::isComplexType(type), "kaiser_window expects floating point dtypes, got: ", options);
  TORCH_CHECK(length >= 0, "kaiser_window requires non-negative window_length, got window_length=", length);
  if (length == 0) return at::empty({0}, options);
  if (length == 1) return at::ones({1}, options);
  const int64_t points = periodic ? length + 1 : length;
  const auto wide = options.dtype(at::kFloat);
  const at::Tensor x = at::arange(points, wide).mul(2.0 / static_cast<double>(points - 1)).sub(1);
  const at::Tensor window = at::i0(x.mul(x).neg().add(1).clamp_min(0).sqrt().mul(beta)).div(at::i0(at::full({}, beta, wide)));
  return window.narrow(0, 0, length).to(options).contiguous();
}

at::Tensor kaiser_window_periodic(int64_t length, bool periodic, std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
                                  std::optional<at::Device> device, std::optional<bool> pin_memory) {
  return kaiser_window_beta(length, periodic, 12.0, dtype, layout, device, pin_memory);
}

at::Tensor kaiser_window(int64_t length, std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout, std::optional<at::Device> device,
                         std::optional<bool> pin_memory) {
  return kaiser_window_beta(length, true, 12.0, dtype, layout, device, pin_memory);
}

// ---- activations ----

at::Tensor &rrelu_with_noise_out(const at::Tensor &self, at::Tensor &noise, const at::Scalar &lower, const at::Scalar &upper, bool training,
                                 std::optional<at::Generator> generator, at::Tensor &out) {
  const double low = lower.toDouble(), high = upper.toDouble();
  TORCH_CHECK(low <= high, "Lower bound should be less than or equal to the upper bound");
  if (!training) return deliver(at::leaky_relu(self, (low + high) / 2), out);
  TORCH_CHECK(self.sym_sizes() == noise.sym_sizes(), "noise tensor shape must match self tensor shape. Got self.shape = ", self.sym_sizes(),
              " noise.shape = ", noise.sym_sizes());
  const at::Tensor slopes = at::empty_like(self).uniform_(low, high, generator);
  noise.copy_(at::where(self.le(0), slopes, at::ones({}, self.options())));
  return deliver(self.mul(noise), out);
}

at::Tensor rrelu_with_noise(const at::Tensor &self, at::Tensor &noise, const at::Scalar &lower, const at::Scalar &upper, bool training,
                            std::optional<at::Generator> generator) {
  at::Tensor out = at::empty_like(self, at::MemoryFormat::Contiguous);
  rrelu_with_noise_out(self, noise, lower, upper, training, std::move(generator), out);
  return out;
}

at::Tensor &rrelu_with_noise_in_place(at::Tensor &self, at::Tensor &noise, const at::Scalar &lower, const at::Scalar &upper, bool training,
                                      std::optional<at::Generator> generator) {
  return rrelu_with_noise_out(self, noise, lower, upper, training, std::move(generator), self);
}

// The derivative of glu(a, b) = a s(b) along (da, db): s(b) da + a s'(b) db.
at::Tensor glu_jvp(const at::Tensor &glu, const at::Tensor &x, const at::Tensor &dx, int64_t dim) {
  dim = at::maybe_wrap_dim(dim, x.dim());
  const int64_t half = x.size(dim) / 2;
  const at::Tensor gate = x.narrow(dim, half, half).sigmoid();
  return dx.narrow(dim, 0, half).mul(gate).add(glu.sub(gate.mul(glu)).mul(dx.narrow(dim, half, half)));
}

// mask_type 0: (L, L) for all batches and heads; 1: (B, L) for all heads and rows; else the shape of self. True takes an element out.
at::Tensor spread_mask(const at::Tensor &self, const at::Tensor &mask, std::optional<int64_t> mask_type) {
  if (mask_type.value_or(2) == 1) return mask.view({self.size(0), 1, 1, self.size(-1)}).expand(self.sizes());
  return mask.expand(self.sizes());
}

at::Tensor masked_softmax(const at::Tensor &self, const at::Tensor &mask, std::optional<int64_t> dim, std::optional<int64_t> mask_type) {
  TORCH_CHECK(mask.scalar_type() == at::kBool, "Mask should be a boolean tensor");
  const int64_t along = dim.value_or(self.dim() - 1);
  const double minus_infinity = -std::numeric_limits<double>::infinity();
  return at::softmax(self.masked_fill(spread_mask(self, mask, mask_type), minus_infinity), along);
}

at::Tensor masked_softmax_backward(const at::Tensor &grad, const at::Tensor &output, const at::Tensor &mask, std::optional<int64_t> dim) {
  const at::Tensor gradient = at::_softmax_backward_data(grad, output, dim.value_or(output.dim() - 1), output.scalar_type());
  return gradient.masked_fill(mask.expand(output.sizes()), 0);
}

// ---- integers ----

at::Tensor int_mm(const at::Tensor &self, const at::Tensor &mat2) {
  TORCH_CHECK(self.dim() == 2, "Expected self to be of dimension 2 but got ", self.dim());
  TORCH_CHECK(mat2.dim() == 2, "Expected mat2 to be of dimension 2 but got ", mat2.dim());
  TORCH_CHECK(self.size(1) == mat2.size(0), "self.size(1) needs to match mat2.size(0) but got ", self.size(1), " and ", mat2.size(0));
  TORCH_CHECK(self.dtype() == at::kChar, "Expected self dtype to be of type int8 but got ", self.dtype());
  TORCH_CHECK(mat2.dtype() == at::kChar, "Expected mat2 dtype to be of type int8 but got ", mat2.dtype());
  return at::mm(self.to(at::kInt), mat2.to(at::kInt));
}

at::Tensor &int_mm_out(const at::Tensor &self, const at::Tensor &mat2, at::Tensor &out) {
  TORCH_CHECK(out.dtype() == at::kInt, "Expected result dtype to be of type kInt but got ", out.dtype());
  return deliver(int_mm(self, mat2), out);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, MPS, m) {
  m.impl("take", TORCH_FN(take_elements));
  m.impl("take.out", TORCH_FN(take_out));
  m.impl("put_", TORCH_FN(put_));
  m.impl("channel_shuffle", TORCH_FN(channel_shuffle));
  m.impl("narrow_copy.out", TORCH_FN(narrow_copy_out));
  m.impl("max.unary_out", TORCH_FN(reduce_all_out<at::max>));
  m.impl("min.unary_out", TORCH_FN(reduce_all_out<at::min>));
  m.impl("var.correction_out", TORCH_FN(deviation_out<at::var>));
  m.impl("std.correction_out", TORCH_FN(deviation_out<at::std>));
  m.impl("_aminmax", TORCH_FN(aminmax_all));
  m.impl("_aminmax.dim", TORCH_FN(aminmax_dim));
  m.impl("logspace.out", TORCH_FN(logspace_out));
  m.impl("kaiser_window", TORCH_FN(kaiser_window));
  m.impl("kaiser_window.periodic", TORCH_FN(kaiser_window_periodic));
  m.impl("kaiser_window.beta", TORCH_FN(kaiser_window_beta));
  m.impl("rrelu_with_noise", TORCH_FN(rrelu_with_noise));
  m.impl("rrelu_with_noise_", TORCH_FN(rrelu_with_noise_in_place));
  m.impl("rrelu_with_noise.out", TORCH_FN(rrelu_with_noise_out));
  m.impl("glu_jvp", TORCH_FN(glu_jvp));
  m.impl("_masked_softmax", TORCH_FN(masked_softmax));
  m.impl("_masked_softmax_backward", TORCH_FN(masked_softmax_backward));
  m.impl("_int_mm", TORCH_FN(int_mm));
  m.impl("_int_mm.out", TORCH_FN(int_mm_out));
}

}  // namespace openmps::native
