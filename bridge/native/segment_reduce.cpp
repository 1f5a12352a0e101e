/* SPDX-License-Identifier: BSD-3-Clause
 *
 * segment_reduce: the CPU's checks. Unless they are called unsafe, the lengths are read, which waits.
 */
#include <ATen/WrapDimUtils.h>
#include <ATen/native/ReductionType.h>

#include "bridge/convert.h"
#include "bridge/kernels/segment_reduce.h"
#include "openmps/ops/segment_reduce.h"

namespace openmps::native {
namespace {

using OptionalTensor = std::optional<at::Tensor>;

bool given(const OptionalTensor &value) { return value.has_value() && value->defined(); }

// Offsets come first, where both are there.
void check_bounds(const at::Tensor &data, const OptionalTensor &lengths, const OptionalTensor &offsets, int64_t axis, bool unsafe) {
  if (given(offsets)) {
    const at::Tensor &offsets_value = *offsets;
    TORCH_CHECK(data.dim() >= offsets_value.dim());
    TORCH_CHECK(axis == offsets_value.dim() - 1, "segment_reduce(): Expected axis to be the last dimension of offsets but got ", axis, ".");
    return;
  }
  const at::Tensor &lengths_value = *lengths;
  TORCH_CHECK(data.dim() >= lengths_value.dim());
  TORCH_CHECK(axis == lengths_value.dim() - 1, "segment_reduce(): Expected axis to be the last dimension of lengths but got ", axis, ".");
  if (unsafe) return;
  TORCH_CHECK(lengths_value.min().item<int64_t>() >= 0, "lengths contains negative value!");
  TORCH_CHECK(lengths_value.sum({-1}).eq(data.size(axis)).all().item<bool>(),
              "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when !unsafe.");
}

void check_types(const at::Tensor &data, const OptionalTensor &lengths, const OptionalTensor &offsets, const char *before, const char *behind) {
  const bool is_offsets = given(offsets);
  const at::ScalarType type = (is_offsets ? *offsets : *lengths).scalar_type();
  TORCH_CHECK_NOT_IMPLEMENTED(type == at::kLong || type == at::kInt, "\"", before, is_offsets ? "offsets" : "lengths", behind,
                              "\" not implemented for '", type, "'");
  TORCH_CHECK_NOT_IMPLEMENTED(at::isFloatingType(data.scalar_type()), "\"_segment_reduce_cpu\" not implemented for '", data.scalar_type(), "'");
}

// As the dtype of data holds it.
std::optional<at::Scalar> held(const std::optional<at::Scalar> &initial, const at::Tensor &data) {
  if (!initial.has_value()) return std::nullopt;
  return check_fits(*initial, data.scalar_type());
}

}  // namespace

at::Tensor segment_reduce_kernel(const at::Tensor &data, std::string_view reduce, const OptionalTensor &lengths, const OptionalTensor &indices,
                                 const OptionalTensor &offsets, int64_t axis, bool unsafe, const std::optional<at::Scalar> &initial) {
  axis = at::maybe_wrap_dim(axis, data.dim());
  TORCH_CHECK(!given(indices), "segment_reduce(): indices based reduction is not supported yet.");
  TORCH_CHECK(given(lengths) || given(offsets), "segment_reduce(): Either lengths or offsets must be defined.");
  at::native::get_reduction_enum(reduce);
  check_bounds(data, lengths, offsets, axis, unsafe);
  at::DimVector shape(data.sizes());
  shape[static_cast<size_t>(axis)] = given(offsets) ? offsets->size(axis) - 1 : lengths->size(axis);
  const at::Tensor out = at::empty(shape, data.options());
  check_types(data, lengths, offsets, "_segment_reduce_", "_cpu_kernel1");
  if (out.numel() == 0) return out;
  const Operand data_(data, Operand::plain), lengths_(lengths, Operand::plain), offsets_(offsets, Operand::plain), out_(out, Operand::output);
  const Optional<mps_scalar> initial_(held(initial, data));
  const String reduce_(reduce);
  check(mps_op_segment_reduce(stream(), data_.pointer(), reduce_.text(), lengths_.pointer_or_null(), offsets_.pointer_or_null(), axis,
                              initial_.pointer(), out_.pointer()));
  return out;
}

at::Tensor _segment_reduce_backward_kernel(const at::Tensor &grad, const at::Tensor &output, const at::Tensor &data, std::string_view reduce,
                                           const OptionalTensor &lengths, const OptionalTensor &offsets, int64_t axis,
                                           const std::optional<at::Scalar> &initial) {
  axis = at::maybe_wrap_dim(axis, data.dim());
  TORCH_CHECK(given(lengths) || given(offsets), "segment_reduce(): Either lengths or offsets must be defined.");
  at::native::get_reduction_enum(reduce);
  check_types(data, lengths, offsets, "_segment_reduce_cpu_", "_backward_kernel1");
  for (const at::Tensor &each : {output, grad})
    TORCH_CHECK(each.scalar_type() == data.scalar_type(), "expected scalar type ", data.scalar_type(), " but found ", each.scalar_type());
  const at::Tensor out = at::empty(data.sizes(), grad.options());
  const Operand grad_(grad, Operand::plain), output_(output, Operand::plain), data_(data, Operand::plain), lengths_(lengths, Operand::plain),
      offsets_(offsets, Operand::plain), out_(out, Operand::output);
  const Optional<mps_scalar> initial_(held(initial, data));
  const String reduce_(reduce);
  check(mps_op_segment_reduce_backward(stream(), grad_.pointer(), output_.pointer(), data_.pointer(), reduce_.text(), lengths_.pointer_or_null(),
                                       offsets_.pointer_or_null(), axis, initial_.pointer(), out_.pointer()));
  return out;
}

}  // namespace openmps::native
