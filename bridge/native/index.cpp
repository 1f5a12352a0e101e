/* SPDX-License-Identifier: BSD-3-Clause
 *
 * index: kernels of the index family whose results have to be made, or whose iteration space is PyTorch's to lay out.
 */
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/OpMathType.h>
#include <ATen/native/IndexingUtils.h>
#include <ATen/native/TensorAdvancedIndexingUtils.h>
#include <ATen/native/Resize.h>

#include "bridge/convert.h"
#include "bridge/kernels/index.h"
#include "bridge/torch_version.h"
#include "openmps/ops/index.h"

namespace openmps::native {
namespace {

// The tensors that at::meta::structured_index_Tensor lays out: self restrided over the shape of the result, and the index tensors.
struct Layout {
  mps_tensor self;
  at::DimVector sizes, strides;  // of the indexed dimensions, elements
  std::vector<at::Tensor> kept;
  std::vector<mps_tensor> indices;

  Layout(const at::TensorIteratorBase &iterator, at::IntArrayRef shape, at::IntArrayRef indexed_sizes, at::IntArrayRef indexed_strides)
      : self(tensor(iterator.tensor(1))), sizes(indexed_sizes.begin(), indexed_sizes.end()) {
    for (const int64_t stride : indexed_strides) strides.push_back(stride / static_cast<int64_t>(iterator.tensor(1).itemsize()));
    for (int i = 2; i < iterator.ntensors(); i++) {
      kept.push_back(iterator.tensor(i).expand(shape));
      indices.push_back(tensor(kept.back()));
    }
  }
  uint32_t count() const { return static_cast<uint32_t>(indices.size()); }
};

// Lets structured_index_Tensor lay out an index_put: its "output" is the values, broadcast to the shape of the result.
struct PutLayout final : at::meta::structured_index_Tensor {
  explicit PutLayout(at::Tensor values) : values_(std::move(values)) {}
  void set_output_strided(int64_t index, at::IntArrayRef sizes, at::IntArrayRef strides, at::TensorOptions options OPENMPS_NAMES_PARAMETER) override {
    set_output_raw_strided(index, sizes, strides, options OPENMPS_NAMES_ARGUMENT);
  }
  void set_output_raw_strided(int64_t index, at::IntArrayRef sizes, at::IntArrayRef strides, at::TensorOptions options OPENMPS_NAMES_PARAMETER) override {
    TORCH_CHECK(at::is_expandable_to(values_.sizes(), sizes), "shape mismatch: value tensor of shape ", values_.sizes(),
                " cannot be broadcast to indexing result of shape ", sizes);
    expanded_ = values_.expand(sizes);
    at::meta::structured_index_Tensor::set_output_raw_strided(index, sizes, strides, options OPENMPS_NAMES_ARGUMENT);
  }
  const at::Tensor &maybe_get_output(int64_t) override { return expanded_; }
  const at::Tensor &expanded() const { return expanded_; }

 private:
  at::Tensor values_, expanded_;
};

void put(at::Tensor &self, const at::IOptTensorListRef &indices, const at::Tensor &values, bool accumulate) {
  PutLayout layout(values.is_cpu() ? values.to(self.device()) : values);
  const auto precomputed = layout.meta(self, indices);
  if (layout.expanded().numel() == 0) return;
  const Layout laid(layout, layout.expanded().sizes(), precomputed.sizes, precomputed.strides);
  const mps_tensor values_ = tensor(layout.expanded());
  check(mps_op_index_put(stream(), laid.indices.data(), laid.count(), laid.sizes.data(), laid.count(), laid.strides.data(), laid.count(), &values_,
                         accumulate, &laid.self));
}

int64_t count_set(const at::Tensor &mask) {
  if (mask.numel() == 0) return 0;
  const at::Tensor count = empty({1}, mask.options().dtype(at::kLong));
  const Operand mask_(mask, Operand::plain), count_(count, Operand::output);
  check(mps_op_mask_count(stream(), mask_.pointer(), count_.pointer()));
  return count.item<int64_t>();
}

// Makes `out` fit; an undefined one is allocated.
void fit(at::Tensor &out, at::IntArrayRef sizes, const at::TensorOptions &options) {
  if (!out.defined())
    out = empty(sizes, options);
  else
    at::native::resize_output(out, sizes);
}

void check_dtype(const at::Tensor &out, at::ScalarType wanted, const char *name) {
  TORCH_CHECK(out.scalar_type() == wanted, name, ": Expected out tensor to have scalar type ", wanted, " but got scalar type", out.scalar_type());
}

}  // namespace

void structured_index_out::impl(const at::Tensor & /*self*/, at::DimVector sizes, at::DimVector strides, const at::Tensor &result) {
  if (result.numel() == 0) return;
  const Layout layout(*this, result.sizes(), sizes, strides);
  const Operand result_(result, Operand::output);
  check(mps_op_index(stream(), &layout.self, layout.indices.data(), layout.count(), layout.sizes.data(), layout.count(), layout.strides.data(),
                     layout.count(), result_.pointer()));
}

at::Tensor &_index_put_impl_(at::Tensor &self, const c10::List<std::optional<at::Tensor>> &indices, const at::Tensor &values, const bool accumulate,
                             const bool /*unsafe*/) {
  TORCH_CHECK_INDEX(indices.size() <= static_cast<size_t>(self.dim()), "too many indices for tensor of dimension ", self.dim(), " (got ",
                    indices.size(), ")");
  TORCH_CHECK_INDEX(self.scalar_type() == values.scalar_type(), "Index put requires the source and destination dtypes match, got ",
                    self.scalar_type(), " for the destination and ", values.scalar_type(), " for the source.");
  if (at::has_internal_overlap(self) == at::MemOverlap::Yes)
    TORCH_WARN("Use of index_put_ on expanded tensors is deprecated. Please clone() the tensor before performing this operation. "
               "This also applies to advanced indexing e.g. tensor[indices] = tensor");
  if (!accumulate) {
    const auto [masked, mask] = at::native::canDispatchToMaskedFill(self, indices, values);
    if (masked) return self.masked_fill_(mask, values.item());
  }
  at::Tensor source = values;
  if (source.device() != self.device() && source.numel() == 1 && source.dim() == 0) source = source.to(self.device());
  at::assert_no_overlap(self, source);
  const at::IOptTensorListRef list(indices);
  const at::ScalarType kept_in = at::toOpMathType(self.scalar_type());
  const bool half = kept_in != self.scalar_type();
  if ((accumulate && half) || self.is_conj() || self.is_neg()) {  // sums of half values are kept in float and rounded once
    at::Tensor sums = half ? self.to(kept_in) : self.clone();
    put(sums, list, half ? source.to(kept_in) : source, accumulate);
    return self.copy_(sums);
  }
  put(self, list, source.resolve_conj().resolve_neg(), accumulate);
  return self;
}

at::Tensor &index_select_out_mps(const at::Tensor &self, int64_t dim, const at::Tensor &index, at::Tensor &out) {
  dim = c10::maybe_wrap_dim(dim, self.dim());
  TORCH_CHECK_INDEX(index.dim() <= 1, "index_select(): Index is supposed to be a vector");
  TORCH_CHECK(!(self.dim() == 0 && index.numel() != 1), "index_select(): Index to scalar can have only 1 value, got ", index.numel(), " value(s)");
  TORCH_CHECK(index.scalar_type() == at::kLong || index.scalar_type() == at::kInt, "index_select(): Expected dtype int32 or int64 for index");
  TORCH_CHECK(!out.defined() || self.scalar_type() == out.scalar_type(), "index_select(): self and result must have the same scalar type");
  at::DimVector sizes(self.sizes());
  if (self.dim() > 0) {
    TORCH_CHECK_INDEX(self.size(dim) > 0 || index.numel() == 0, "index out of range in self");
    sizes[dim] = index.numel();
  }
  if (out.defined()) {
    at::assert_no_internal_overlap(out);
    at::assert_no_overlap(out, self);
    at::assert_no_overlap(out, index);
  }
  fit(out, sizes, self.options());
  const Operand self_(self, Operand::plain), index_(index, Operand::plain), out_(out, Operand::output);
  check(mps_op_index_select(stream(), self_.pointer(), dim, index_.pointer(), out_.pointer()));
  return out;
}

at::Tensor index_select_mps(const at::Tensor &self, int64_t dim, const at::Tensor &index) {
  at::Tensor out;
  index_select_out_mps(self, dim, index, out);
  return out;
}

at::Tensor embedding_dense_backward_mps(const at::Tensor &grad_output, const at::Tensor &indices, int64_t num_weights, int64_t padding_idx,
                                        bool scale_grad_by_freq) {
  const at::Tensor out = empty({num_weights, grad_output.size(-1)}, grad_output.options());
  const Operand grad_(grad_output, Operand::plain), indices_(indices, Operand::plain), out_(out, Operand::output);
  check(mps_op_embedding_dense_backward(stream(), grad_.pointer(), indices_.pointer(), padding_idx, scale_grad_by_freq, out_.pointer()));
  return out;
}

at::Tensor &masked_select_out_mps(const at::Tensor &self, const at::Tensor &mask, at::Tensor &out) {
  TORCH_CHECK(mask.scalar_type() == at::kBool, "masked_select: expected BoolTensor for mask");
  TORCH_CHECK(!out.defined() || self.scalar_type() == out.scalar_type(), "masked_select(): self and result must have the same scalar type");
  const auto expanded = at::expand_outplace(mask, self);
  const at::Tensor &mask_b = *std::get<0>(expanded), &self_b = *std::get<1>(expanded);
  if (out.defined()) {
    at::assert_no_internal_overlap(out);
    at::assert_no_overlap(out, self);
    at::assert_no_overlap(out, mask);
  }
  fit(out, {count_set(mask_b)}, self.options());
  const Operand self_(self_b, Operand::plain), mask_(mask_b, Operand::plain), out_(out, Operand::output);
  check(mps_op_masked_select(stream(), self_.pointer(), mask_.pointer(), out_.pointer()));
  return out;
}

at::Tensor masked_select_mps(const at::Tensor &self, const at::Tensor &mask) {
  at::Tensor out;
  masked_select_out_mps(self, mask, out);
  return out;
}

at::Tensor &masked_scatter__mps(at::Tensor &self, const at::Tensor &mask, const at::Tensor &source) {
  at::assert_no_internal_overlap(self);
  TORCH_CHECK(self.scalar_type() == source.scalar_type(), "masked_scatter_: expected self and source to have same dtypes but got ",
              self.scalar_type(), " and ", source.scalar_type());
  TORCH_CHECK(mask.scalar_type() == at::kBool, "masked_scatter_ only supports boolean masks, but got mask with dtype ", mask.scalar_type());
  const auto mask_b = at::expand_inplace(self, mask, "masked_scatter_");
  if (self.numel() == 0) return self;
  TORCH_CHECK(source.numel() >= self.numel() || count_set(*mask_b) <= source.numel(),
              "Number of elements of source < number of ones in mask");
  const Operand mask_(*mask_b, Operand::plain), source_(source.reshape({-1}), Operand::plain), self_(self, Operand::output);
  check(mps_op_masked_scatter(stream(), mask_.pointer(), source_.pointer(), self_.pointer()));
  return self;
}

at::Tensor &index_fill_(at::Tensor &self, int64_t dim, const at::Tensor &index, const at::Scalar &value) {
  TORCH_CHECK(self.is_complex() || !value.isComplex(), "index_fill_(): Converting complex Scalar to non-complex type is not supported");
  const at::Scalar held = check_fits(value, self.scalar_type());
  const Operand self_(self, Operand::flagged), index_(index, Operand::plain), out_(self, Operand::output);
  check(mps_op_index_fill(stream(), self_.pointer(), dim, index_.pointer(), scalar(held), out_.pointer()));
  return self;
}

at::Tensor &nonzero_out_mps(const at::Tensor &self, at::Tensor &out) {
  const at::Tensor mask = self.scalar_type() == at::kBool ? self : self.ne(0);
  if (out.defined()) {
    check_dtype(out, at::kLong, "nonzero");
    at::assert_no_internal_overlap(out);
    at::assert_no_overlap(out, self);
  }
  // As on the CPU a coordinate's values are neighbours (gh-46224); an out= that fits keeps its strides.
  const int64_t count = count_set(mask);
  if (!out.defined())
    out = empty({self.dim(), count}, self.options().dtype(at::kLong)).t();
  else if (at::native::resize_output_check(out, {count, self.dim()}))
    out.resize_({self.dim(), count}).t_();
  const Operand mask_(mask, Operand::plain), out_(out, Operand::output);
  check(mps_op_nonzero(stream(), mask_.pointer(), out_.pointer()));
  return out;
}

at::Tensor nonzero_mps(const at::Tensor &self) {
  at::Tensor out;
  nonzero_out_mps(self, out);
  return out;
}

at::Tensor &nonzero_static_out_mps(const at::Tensor &self, int64_t size, int64_t fill_value, at::Tensor &out) {
  TORCH_CHECK(size >= 0, "nonzero_static: 'size' must be an non-negative integer");
  const at::Tensor mask = self.scalar_type() == at::kBool ? self : self.ne(0);
  if (out.defined()) check_dtype(out, at::kLong, "nonzero_static");
  fit(out, {size, self.dim()}, self.options().dtype(at::kLong));
  out.fill_(fill_value);
  const Operand mask_(mask, Operand::plain), out_(out, Operand::output);
  check(mps_op_nonzero(stream(), mask_.pointer(), out_.pointer()));
  return out;
}

at::Tensor nonzero_static_mps(const at::Tensor &self, int64_t size, int64_t fill_value) {
  at::Tensor out;
  nonzero_static_out_mps(self, size, fill_value, out);
  return out;
}

}  // namespace openmps::native
