/* SPDX-License-Identifier: BSD-3-Clause
 *
 * search: searchsorted and bucketize with the CPU's checks and promotion, and isin, whose operands share one dtype.
 */
#include <ATen/ScalarOps.h>
#include <ATen/native/BucketizationUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TypeProperties.h>
#include <ATen/ops/isin.h>

#include "bridge/convert.h"
#include "bridge/kernels/search.h"
#include "openmps/ops/search.h"

namespace openmps::native {
namespace {

using OptionalTensor = std::optional<at::Tensor>;
using OptionalView = std::optional<std::string_view>;

at::Tensor result_of(const at::Tensor &self, bool out_int32) { return empty({0}, self.options().dtype(out_int32 ? at::kInt : at::kLong)); }

// A number as a 0-d tensor of the dtype that promotion with `other` gives; converted as the CPU does, integers wrap.
at::Tensor number(const at::Scalar &value, const at::Tensor &other) {
  return c10::scalar_to_tensor(value).to(other.options().dtype(at::native::result_type(other, value)));
}

}  // namespace

at::Tensor &searchsorted_out_mps(const at::Tensor &sorted_sequence, const at::Tensor &self, bool out_int32, bool right, OptionalView side,
                                 const OptionalTensor &sorter_, at::Tensor &out) {
  const at::Tensor sorter = sorter_.value_or(at::Tensor());
  at::native::searchsorted_pre_check(sorted_sequence, self, out, out_int32, right, side, sorter);
  at::native::resize_output(out, self.sizes());
  if (self.numel() == 0) return out;
  // What is contiguous and of the common dtype stays undefined here.
  at::Tensor values, boundaries, order;
  at::native::searchsorted_maybe_trim_input_tensors(values, boundaries, order, self, sorted_sequence, sorter);
  const Operand boundaries_(boundaries.defined() ? boundaries : sorted_sequence, Operand::plain), values_(values.defined() ? values : self, Operand::plain),
      sorter_operand(sorter, Operand::plain), out_(out, Operand::output);
  const bool after = side ? *side == "right" : right;
  check(mps_op_searchsorted(stream(), boundaries_.pointer(), values_.pointer(), after, sorter_operand.pointer_or_null(), out_.pointer()));
  return out;
}

at::Tensor &searchsorted_out_mps(const at::Tensor &sorted_sequence, const at::Scalar &self, bool out_int32, bool right, OptionalView side,
                                 const OptionalTensor &sorter, at::Tensor &out) {
  return searchsorted_out_mps(sorted_sequence, number(self, sorted_sequence), out_int32, right, side, sorter, out);
}

at::Tensor searchsorted_mps(const at::Tensor &sorted_sequence, const at::Tensor &self, bool out_int32, bool right, OptionalView side,
                            const OptionalTensor &sorter) {
  at::Tensor out = result_of(self, out_int32);
  searchsorted_out_mps(sorted_sequence, self, out_int32, right, side, sorter, out);
  return out;
}

at::Tensor searchsorted_mps(const at::Tensor &sorted_sequence, const at::Scalar &self, bool out_int32, bool right, OptionalView side,
                            const OptionalTensor &sorter) {
  return searchsorted_mps(sorted_sequence, number(self, sorted_sequence), out_int32, right, side, sorter);
}

at::Tensor &bucketize_out_mps(const at::Tensor &self, const at::Tensor &boundaries, bool out_int32, bool right, at::Tensor &out) {
  TORCH_CHECK(boundaries.dim() == 1, "boundaries tensor must be 1 dimension, but got dim(", boundaries.dim(), ")");
  return searchsorted_out_mps(boundaries, self, out_int32, right, std::nullopt, std::nullopt, out);
}

at::Tensor bucketize_mps(const at::Tensor &self, const at::Tensor &boundaries, bool out_int32, bool right) {
  at::Tensor out = result_of(self, out_int32);
  bucketize_out_mps(self, boundaries, out_int32, right, out);
  return out;
}

at::Tensor bucketize_mps(const at::Scalar &self, const at::Tensor &boundaries, bool out_int32, bool right) {
  return bucketize_mps(number(self, boundaries), boundaries, out_int32, right);
}

void structured_isin_Tensor_Tensor_out_mps::impl(const at::Tensor &elements, const at::Tensor &test_elements, bool /*assume_unique*/, bool invert,
                                                 const at::Tensor &out) {
  if (elements.numel() == 0) return;
  const at::ScalarType common = at::native::result_type(elements, test_elements);
  const at::TensorOptions options = out.options().dtype(common);
  const at::Tensor values = elements.to(options), tests = test_elements.to(options);
  const Operand values_(values, Operand::plain), tests_(tests, Operand::plain), out_(out, Operand::output);
  check(mps_op_isin(stream(), values_.pointer(), tests_.pointer(), invert, out_.pointer()));
}

void structured_isin_Scalar_Tensor_out_mps::impl(const at::Scalar &element, const at::Tensor &test_elements, bool assume_unique, bool invert,
                                                 const at::Tensor &out) {
  at::isin_out(const_cast<at::Tensor &>(out), number(element, test_elements), test_elements, assume_unique, invert);
}

}  // namespace openmps::native
