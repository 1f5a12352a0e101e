/* SPDX-License-Identifier: BSD-3-Clause
 *
 * embedding_bag: the four results of a bag of embeddings, in the shapes that the CPU gives them, and the gradients.
 */
#include <ATen/Functions.h>
#include <ATen/TensorUtils.h>

#include "bridge/convert.h"
#include "bridge/kernels/embedding_bag.h"
#include "openmps/ops/embedding_bag.h"

namespace openmps::native {
namespace {

constexpr int64_t kSum = 0, kMax = 2;
using OptionalTensor = std::optional<at::Tensor>;
using Results = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

bool given(const OptionalTensor &value) { return value.has_value() && value->defined(); }

// int64 when the two differ.
std::pair<at::Tensor, at::Tensor> promoted(const at::Tensor &indices, const at::Tensor &offsets) {
  const auto is_index = [](const at::Tensor &t) { return t.scalar_type() == at::kLong || t.scalar_type() == at::kInt; };
  if (indices.scalar_type() == offsets.scalar_type() || !is_index(indices) || !is_index(offsets)) return {indices, offsets};
  return {indices.to(at::kLong), offsets.to(at::kLong)};
}

void check_indices(const at::Tensor &indices, const at::Tensor &offsets) {
  const at::TensorArg indices_(indices, "indices", 1), offsets_(offsets, "offsets", 1);
  at::checkScalarTypes("embedding_bag", indices_, {at::kLong, at::kInt});
  at::checkScalarTypes("embedding_bag", offsets_, {at::kLong, at::kInt});
  at::checkSameType("embedding_bag", indices_, offsets_);
}

void check_forward(const at::Tensor &weight, const at::Tensor &indices, const at::Tensor &offsets, int64_t mode, const OptionalTensor &per_sample_weights,
                   bool include_last_offset) {
  check_indices(indices, offsets);
  const at::TensorArg weight_(weight, "weight", 1);
  at::checkScalarTypes("embedding_bag", weight_, {at::kHalf, at::kBFloat16, at::kFloat});
  if (given(per_sample_weights)) {
    TORCH_CHECK(mode == kSum, "embedding_bag: per_sample_weights only supported with mode='sum'");
    const at::TensorArg scales_(*per_sample_weights, "per_sample_weights", 1);
    at::checkSameType("embedding_bag", weight_, scales_);
    TORCH_CHECK(per_sample_weights->dim() == 1);
    TORCH_CHECK(per_sample_weights->numel() == indices.numel());
  }
  if (include_last_offset) TORCH_CHECK(offsets.size(0) >= 1, "include_last_offset: number of offset should be at least 1");
}

// Where the CPU adds up rows with a library: only then does a last offset cut off indices, and there is no offset2bag.
bool is_plain_sum(const at::Tensor &weight, const OptionalTensor &per_sample_weights, int64_t padding_idx) {
  return weight.stride(1) == 1 && padding_idx < 0 && (!given(per_sample_weights) || per_sample_weights->stride(0) == 1);
}

// Sums have no offset2bag from their forward.
at::Tensor bags_of(const at::Tensor &indices, const at::Tensor &offsets, const at::Tensor &offset2bag) {
  if (indices.numel() == 0 || offset2bag.numel() != 0) return offset2bag;
  const at::Tensor made = empty({indices.size(0)}, offsets.options());
  const Operand offsets_(offsets, Operand::plain), made_(made, Operand::output);
  check(mps_op_embedding_bag_offset2bag(stream(), offsets_.pointer(), made_.pointer()));
  return made;
}

Results forward(const at::Tensor &weight, const at::Tensor &indices_given, const at::Tensor &offsets_given, int64_t mode,
                const OptionalTensor &per_sample_weights, bool include_last_offset, int64_t padding_idx, bool requires_grad) {
  TORCH_CHECK(indices_given.dim() == 1 || indices_given.dim() == 2, "input has to be a 1D or 2D Tensor, but got Tensor of dimension ", indices_given.dim());
  if (indices_given.dim() == 1)
    TORCH_CHECK(offsets_given.dim() == 1, "offsets has to be a 1D Tensor, but got Tensor of dimension ", offsets_given.dim());
  TORCH_CHECK(weight.dim() == 2, "weight has to be a 2D Tensor, but got Tensor of dimension ", weight.dim());
  const auto [indices, offsets] = promoted(indices_given, offsets_given);
  check_forward(weight, indices, offsets, mode, per_sample_weights, include_last_offset);
  const int64_t bags = offsets.size(0) - (include_last_offset ? 1 : 0);
  const bool plain = is_plain_sum(weight, per_sample_weights, padding_idx);
  const at::Tensor out = empty({bags, weight.size(1)}, weight.options());
  const at::Tensor offset2bag = empty({mode == kSum && plain ? 0 : indices.size(0)}, offsets.options());
  const at::Tensor bag_size = empty({mode != kSum || requires_grad ? bags : offsets.size(0)}, offsets.options());
  const at::Tensor maxima = mode == kMax ? empty({bags, weight.size(1)}, offsets.options()) : empty(bag_size.sizes(), offsets.options());
  if (mode == kSum) bag_size.zero_();
  const Operand weight_(weight, Operand::plain), indices_(indices, Operand::plain), offsets_(offsets, Operand::plain);
  const Operand scales_(per_sample_weights, Operand::plain), out_(out, Operand::output), offset2bag_(offset2bag, Operand::output);
  const Operand bag_size_(bag_size, Operand::output), maxima_(maxima, Operand::output);
  check(mps_op_embedding_bag(stream(), weight_.pointer(), indices_.pointer(), offsets_.pointer(), mode, scales_.pointer_or_null(),
                             include_last_offset && plain && mode != kMax, padding_idx, out_.pointer(), offset2bag_.pointer(), bag_size_.pointer(),
                             maxima_.pointer()));
  return {out, offset2bag, bag_size, maxima};
}

}  // namespace

Results _embedding_bag_mps(const at::Tensor &weight, const at::Tensor &indices, const at::Tensor &offsets, const bool /*scale_grad_by_freq*/,
                           const int64_t mode, bool /*sparse*/, const OptionalTensor &per_sample_weights, bool include_last_offset, int64_t padding_idx) {
  return forward(weight, indices, offsets, mode, per_sample_weights, include_last_offset, padding_idx, true);
}

Results _embedding_bag_forward_only_mps(const at::Tensor &weight, const at::Tensor &indices, const at::Tensor &offsets, const bool /*scale_grad_by_freq*/,
                                        const int64_t mode, bool /*sparse*/, const OptionalTensor &per_sample_weights, bool include_last_offset,
                                        int64_t padding_idx) {
  return forward(weight, indices, offsets, mode, per_sample_weights, include_last_offset, padding_idx, false);
}

at::Tensor _embedding_bag_dense_backward_mps(const at::Tensor &grad, const at::Tensor &indices, const at::Tensor &offset2bag, const at::Tensor &bag_size,
                                             const at::Tensor &maximum_indices, int64_t num_weights, bool scale_grad_by_freq, int64_t mode,
                                             const OptionalTensor &per_sample_weights, int64_t padding_idx) {
  const at::TensorArg grad_(grad, "grad_", 1);
  at::checkScalarTypes("embedding_bag", grad_, {at::kHalf, at::kBFloat16, at::kFloat});
  const at::Tensor out = empty({num_weights, grad.size(1)}, grad.options());
  const Operand from(grad, Operand::plain), indices_(indices, Operand::plain), offset2bag_(offset2bag, Operand::plain);
  const Operand bag_size_(bag_size, Operand::plain), maxima_(maximum_indices, Operand::plain), scales_(per_sample_weights, Operand::plain);
  const Operand out_(out, Operand::output);
  check(mps_op_embedding_bag_dense_backward(stream(), from.pointer(), indices_.pointer(), offset2bag_.pointer(), bag_size_.pointer(), maxima_.pointer(),
                                            scale_grad_by_freq, mode, scales_.pointer_or_null(), padding_idx, out_.pointer()));
  return out;
}

at::Tensor _embedding_bag_backward_symint(const at::Tensor &grad, const at::Tensor &indices_given, const at::Tensor &offsets_given,
                                          const at::Tensor &offset2bag, const at::Tensor &bag_size, const at::Tensor &maximum_indices,
                                          c10::SymInt num_weights, bool scale_grad_by_freq, int64_t mode, bool sparse,
                                          const OptionalTensor &per_sample_weights, int64_t padding_idx) {
  const auto [indices, offsets] = promoted(indices_given, offsets_given);
  check_indices(indices, offsets);
  const at::Tensor bag_of = bags_of(indices, offsets, offset2bag);
  if (sparse)
    return at::_embedding_bag_sparse_backward_symint(grad, indices, offsets, bag_of, bag_size, num_weights, scale_grad_by_freq, mode,
                                                     per_sample_weights, padding_idx);
  return at::_embedding_bag_dense_backward_symint(grad, indices, bag_of, bag_size, maximum_indices, num_weights, scale_grad_by_freq, mode,
                                                  per_sample_weights, padding_idx);
}

at::Tensor _embedding_bag_per_sample_weights_backward_mps(const at::Tensor &grad, const at::Tensor &weight, const at::Tensor &indices_given,
                                                          const at::Tensor &offsets_given, const at::Tensor &offset2bag, int64_t mode,
                                                          int64_t padding_idx) {
  TORCH_CHECK(mode == kSum, "embedding_bag_backward: per_sample_weights only supported for mode='sum'");
  TORCH_CHECK(grad.dim() == 2 && weight.dim() == 2 && indices_given.dim() == 1 && weight.size(1) == grad.size(1));
  const auto [indices, offsets] = promoted(indices_given, offsets_given);
  check_indices(indices, offsets);
  const at::Tensor bag_of = bags_of(indices, offsets, offset2bag);
  const at::Tensor out = empty({indices.size(0)}, grad.options());
  const Operand grad_(grad, Operand::plain), weight_(weight, Operand::plain), indices_(indices, Operand::plain), bag_of_(bag_of, Operand::plain);
  const Operand out_(out, Operand::output);
  check(mps_op_embedding_bag_per_sample_weights_backward(stream(), grad_.pointer(), weight_.pointer(), indices_.pointer(), bag_of_.pointer(), padding_idx,
                                                         out_.pointer()));
  return out;
}

}  // namespace openmps::native
