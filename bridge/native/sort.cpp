/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sort: kernels of the sort family that make or reshape their results: k-th values, medians and modes.
 */
#include <ATen/MemoryOverlap.h>
#include <ATen/native/ReduceOpsUtils.h>
#include <torch/library.h>

#include "bridge/convert.h"
#include "bridge/kernels/sort.h"
#include "openmps/ops/sort.h"

namespace openmps::native {
namespace {

using Pair = std::tuple<at::Tensor &, at::Tensor &>;

// Gives values and indices the shape of self with `dim` kept as 1, calls, then drops dim if it is not kept.
template <class Call>
Pair select_one(const at::Tensor &self, int64_t dim, bool keepdim, at::Tensor &values, at::Tensor &indices, const char *name, const Call &call) {
  dim = at::maybe_wrap_dim(dim, self.dim());
  TORCH_CHECK(values.scalar_type() == self.scalar_type(), "output values must be of same type as input");
  TORCH_CHECK(indices.scalar_type() == at::kLong, "output indices must be of scalar type Long");
  at::assert_no_overlap(self, values);
  at::DimVector sizes(self.sizes());
  if (!sizes.empty()) {
    at::native::zero_numel_check_dims(self, dim, (std::string(name) + "()").c_str());
    sizes[dim] = 1;
    for (at::Tensor *out : {&values, &indices})  // one that fits already is not resized
      if (!keepdim && out->dim() >= dim) out->unsqueeze_(dim);
  }
  for (at::Tensor *out : {&values, &indices}) {
    if (!keepdim && self.dim() > 0 && out->dim() == self.dim() - 1) out->unsqueeze_(dim);  // so that an out= that fits keeps its strides
    at::native::resize_output(*out, sizes);
  }
  if (self.numel() > 0) {
    const Operand self_(self, Operand::plain), values_(values, Operand::output), indices_(indices, Operand::output);
    call(dim, self_.pointer(), values_.pointer(), indices_.pointer());
  }
  if (!keepdim && self.dim() > 0) {
    values.squeeze_(dim);
    indices.squeeze_(dim);
  }
  return {values, indices};
}

Pair median_along(const at::Tensor &self, int64_t dim, bool keepdim, bool ignore_nan, at::Tensor &values, at::Tensor &indices) {
  return select_one(self, dim, keepdim, values, indices, ignore_nan ? "nanmedian" : "median",
                    [&](int64_t d, const mps_tensor *self_, const mps_tensor *values_, const mps_tensor *indices_) {
                      check(mps_op_median(stream(), self_, d, ignore_nan, values_, indices_));
                    });
}

at::Tensor median_of_all(const at::Tensor &self, bool ignore_nan) {
  if (self.numel() == 0) return at::full({}, std::numeric_limits<float>::quiet_NaN(), self.options());
  at::Tensor values = empty({0}, self.options()), indices = empty({0}, self.options().dtype(at::kLong));
  median_along(self.reshape({-1}), 0, false, ignore_nan, values, indices);
  return values;
}

}  // namespace

Pair kthvalue_out_mps(const at::Tensor &self, int64_t k, int64_t dim, bool keepdim, at::Tensor &values, at::Tensor &indices) {
  const int64_t wrapped = at::maybe_wrap_dim(dim, self.dim());
  const int64_t length = self.dim() > 0 ? self.size(wrapped) : 1;
  TORCH_CHECK(k >= 1 && k <= length, "kthvalue(): selected number k out of range for dimension ", wrapped);
  return select_one(self, dim, keepdim, values, indices, "kthvalue",
                    [&](int64_t d, const mps_tensor *self_, const mps_tensor *values_, const mps_tensor *indices_) {
                      check(mps_op_kthvalue(stream(), self_, k, d, values_, indices_));
                    });
}

Pair median_out_mps(const at::Tensor &self, int64_t dim, bool keepdim, at::Tensor &values, at::Tensor &indices) {
  return median_along(self, dim, keepdim, false, values, indices);
}
Pair nanmedian_out_mps(const at::Tensor &self, int64_t dim, bool keepdim, at::Tensor &values, at::Tensor &indices) {
  return median_along(self, dim, keepdim, true, values, indices);
}
// Registered below: upstream has no entry for MPS, and the composite one refuses the device.
namespace {

Pair mode_out(const at::Tensor &self, int64_t dim, bool keepdim, at::Tensor &values, at::Tensor &indices) {
  for (const auto &[out, name] : {std::pair<const at::Tensor &, const char *>(values, "values"), {indices, "indices"}})
    TORCH_CHECK(self.device() == out.device(), "expected device '", self.device(), "' but got '", out.device(), "' for ", name, " output");
  TORCH_CHECK(self.scalar_type() == values.scalar_type(), "expected scalar type '", self.scalar_type(), "' but got '", values.scalar_type(), "' for values output");
  TORCH_CHECK(indices.scalar_type() == at::kLong, "expected scalar type '", at::kLong, "' but got '", indices.scalar_type(), "' for indices output");
  dim = at::maybe_wrap_dim(dim, self.dim());
  if (self.numel() == 0) {
    const auto sizes = at::native::get_zero_numel_tensor_size(self, dim, keepdim, "mode()");
    at::native::resize_output(values, sizes);
    at::native::resize_output(indices, sizes);
    return {values, indices};
  }
  TORCH_CHECK_NOT_IMPLEMENTED(!self.is_complex(), "\"mode_cpu\" not implemented for '", self.scalar_type(), "'");
  return select_one(self, dim, keepdim, values, indices, "mode",
                    [&](int64_t d, const mps_tensor *self_, const mps_tensor *values_, const mps_tensor *indices_) {
                      check(mps_op_mode(stream(), self_, d, values_, indices_));
                    });
}

std::tuple<at::Tensor, at::Tensor> mode(const at::Tensor &self, int64_t dim, bool keepdim) {
  at::Tensor values = empty({0}, self.options()), indices = empty({0}, self.options().dtype(at::kLong));
  mode_out(self, dim, keepdim, values, indices);
  return {values, indices};
}

}  // namespace

at::Tensor median_mps(const at::Tensor &self) { return median_of_all(self, false); }
at::Tensor nanmedian_mps(const at::Tensor &self) { return median_of_all(self, true); }

}  // namespace openmps::native

TORCH_LIBRARY_IMPL(aten, MPS, m) {
  m.impl("mode", TORCH_FN(openmps::native::mode));
  m.impl("mode.values", TORCH_FN(openmps::native::mode_out));
}
