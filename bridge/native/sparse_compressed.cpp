/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sparse_compressed: tensors of the layouts CSR, CSC, BSR and BSC on mps. torch's constructors know the CPU, CUDA and a few more devices by name,
 * and not mps: here are the ones that all others end in, the checks of their indices, and conversions between layouts.
 */
#include <ATen/ATen.h>
#include <ATen/SparseCsrTensorUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_to_sparse_bsc_native.h>
#include <ATen/ops/_to_sparse_bsr_native.h>
#include <ATen/ops/_to_sparse_csc_native.h>
#include <ATen/ops/_to_sparse_csr_native.h>
#include <ATen/ops/_to_sparse_native.h>
#include <torch/library.h>

#include "bridge/convert.h"
#include "bridge/native/sparse.h"

namespace openmps::native {
namespace {

using at::kSparseBsc, at::kSparseBsr, at::kSparseCsc, at::kSparseCsr;  // named by the macros
using at::Tensor;
using OptionalType = std::optional<at::ScalarType>;
using OptionalLayout = std::optional<at::Layout>;
using OptionalDevice = std::optional<at::Device>;

// ---- construction ----

// torch's class takes the key of a device that it knows by name: it is built for meta, and then told where it is.
class CompressedImpl final : public at::SparseCsrTensorImpl {
 public:
  CompressedImpl(at::Layout layout, caffe2::TypeMeta type)
      : SparseCsrTensorImpl(c10::DispatchKeySet(c10::DispatchKey::SparseCsrMeta), at::kMeta, layout, type) {
    const c10::DispatchKeySet keys(c10::DispatchKey::SparseCsrMPS);
    const auto backend = keys.highestBackendKey();
    key_set_ = keys | c10::getAutocastRelatedKeySetFromBackend(backend);
    if (!c10::InferenceMode::is_enabled()) key_set_ = key_set_ | c10::getAutogradRelatedKeySetFromBackend(backend);
    device_opt_ = kDevice;
  }

  c10::intrusive_ptr<TensorImpl> shallow_copy_and_detach(const c10::VariableVersion &version, bool allow_metadata_change) const override {
    if (is_python()) return SparseCsrTensorImpl::shallow_copy_and_detach(version, allow_metadata_change);
    return detached(version, allow_metadata_change);
  }
  c10::intrusive_ptr<TensorImpl> shallow_copy_and_detach(c10::VariableVersion &&version, bool allow_metadata_change) const override {
    if (is_python()) return SparseCsrTensorImpl::shallow_copy_and_detach(std::move(version), allow_metadata_change);
    return detached(std::move(version), allow_metadata_change);
  }

 private:
  // Dispatch modes and subclasses in Python copy for themselves.
  bool is_python() const {
    return !c10::impl::tls_is_dispatch_key_excluded(c10::DispatchKey::Python) &&
           (c10::impl::TorchDispatchModeTLS::stack_len() > 0 || key_set_.has(c10::DispatchKey::Python));
  }
  c10::intrusive_ptr<TensorImpl> detached(c10::VariableVersion version, bool allow_metadata_change) const {
    auto copy = c10::make_intrusive<CompressedImpl>(layout_, dtype());
    copy_tensor_metadata(static_cast<const TensorImpl *>(this), static_cast<TensorImpl *>(copy.get()), std::move(version), allow_metadata_change);
    copy->crow_indices_ = crow_indices_;
    copy->col_indices_ = col_indices_;
    copy->values_ = values_;
    copy->refresh_numel();
    return copy;
  }
  static void copy_tensor_metadata(const TensorImpl *from, TensorImpl *to, c10::VariableVersion version, bool allow_metadata_change) {
    TensorImpl::copy_tensor_metadata(from, to, std::move(version), allow_metadata_change);
  }
};

Tensor made_of(const Tensor &compressed, const Tensor &plain, const Tensor &values, at::IntArrayRef sizes, OptionalType type, at::Layout layout,
               OptionalDevice device, std::optional<bool> pin_memory) {
  if (at::globalContext().checkSparseTensorInvariants())
    at::_validate_sparse_compressed_tensor_args(compressed, plain, values, sizes, layout, /*check_pinning=*/true);
  TORCH_CHECK(!pin_memory.value_or(false), "Only dense CPU tensors can be pinned");
  TORCH_CHECK(device.value_or(kDevice).is_mps(), "device of sparse compressed tensor (", *device, ") must match device of its members (", values.device(), ")");
  const auto options = at::TensorOptions().dtype(type);
  Tensor result = at::detail::make_tensor<CompressedImpl>(layout, options.dtype());
  at::sparse_csr::get_sparse_csr_impl(result)->set_member_tensors(compressed, plain, values, sizes);
  return result;
}

Tensor compressed_unsafe(const Tensor &compressed, const Tensor &plain, const Tensor &values, c10::SymIntArrayRef sizes, OptionalType type,
                         OptionalLayout layout, OptionalDevice device, std::optional<bool> pin_memory) {
  TORCH_CHECK(layout.has_value(), "sparse_compressed_tensor_unsafe expected sparse compressed tensor layout but got none");
  AT_DISPATCH_ALL_SPARSE_COMPRESSED_LAYOUTS(*layout, "sparse_compressed_tensor_unsafe", [&] {});
  return made_of(compressed, plain, values, C10_AS_INTARRAYREF_SLOW(sizes), type, *layout, device, pin_memory);
}

template <at::Layout kLayout>
Tensor unsafe(const Tensor &compressed, const Tensor &plain, const Tensor &values, at::IntArrayRef sizes, OptionalType type, OptionalLayout layout,
              OptionalDevice device, std::optional<bool> pin_memory) {
  TORCH_CHECK(layout.value_or(kLayout) == kLayout, "sparse compressed layout must be ", kLayout, " but got ", *layout);
  return made_of(compressed, plain, values, sizes, type, kLayout, device, pin_memory);
}

std::pair<Tensor, Tensor> indices_of(const Tensor &self) {
  auto *const impl = at::sparse_csr::get_sparse_csr_impl(self);
  return {impl->compressed_indices(), impl->plain_indices()};
}

// The shapes, and what can be wrong with them, are those of the same call on meta.
Tensor compressed_with_dims(int64_t nnz, int64_t dense_dim, at::IntArrayRef sizes, at::IntArrayRef blocksize, at::ScalarType index_type, OptionalType type,
                            OptionalLayout layout, OptionalDevice device, std::optional<bool> pin_memory) {
  const Tensor shape = at::_sparse_compressed_tensor_with_dims(nnz, dense_dim, sizes, blocksize, index_type,
                                                               at::TensorOptions().dtype(type).layout(layout).device(at::kMeta));
  const auto [compressed, plain] = indices_of(shape);
  const auto &values = at::sparse_csr::get_sparse_csr_impl(shape)->values();
  const auto on_mps = [](const Tensor &meta) { return at::empty(meta.sizes(), meta.options().device(kDevice)); };
  return made_of(on_mps(compressed), on_mps(plain), on_mps(values), sizes, type, *layout, device, pin_memory);
}

Tensor empty_like(const Tensor &self, OptionalType type, OptionalLayout layout, OptionalDevice device, std::optional<bool> pin_memory,
                  std::optional<at::MemoryFormat> format) {
  const auto asked = at::TensorOptions().dtype(type).layout(layout).device(device).pinned_memory(pin_memory);
  const auto options = self.options().merge_in(asked).merge_memory_format(format);
  TORCH_CHECK(options.layout() == self.layout(), "empty_like with different sparse layout is not supported (self is ", self.layout(),
              " but you requested ", options.layout(), ")");
  const auto [compressed, plain] = indices_of(self);
  const auto copy = [&](const Tensor &indices) { return indices.to(options.device(), indices.scalar_type(), /*non_blocking=*/false, /*copy=*/true); };
  const Tensor values = at::empty(self.values().sizes(), options.layout(at::kStrided).memory_format(std::nullopt));
  return at::_sparse_compressed_tensor_unsafe(copy(compressed), copy(plain), values, self.sizes(), options.layout(self.layout()).memory_format(std::nullopt));
}

// No entries, whatever the pattern of self.
Tensor zeros_like(const Tensor &self, OptionalType type, OptionalLayout layout, OptionalDevice device, std::optional<bool> pin_memory,
                  std::optional<at::MemoryFormat> format) {
  const auto asked = at::TensorOptions().dtype(type).layout(layout).device(device).pinned_memory(pin_memory);
  const auto options = self.options().merge_in(asked).merge_memory_format(format);
  TORCH_CHECK(options.layout() == at::kStrided || !format.has_value(), "memory format option is only supported by strided tensors");
  const auto is_of_blocks = [](at::Layout each) { return each == at::kSparseBsr || each == at::kSparseBsc; };
  const bool has_blocks = is_of_blocks(self.layout());
  if (options.layout() != self.layout() && !(has_blocks && is_of_blocks(options.layout()))) return at::zeros(self.sizes(), options);
  const at::DimVector blocksize = has_blocks ? at::DimVector(at::sparse_csr::getBlockSize(self)) : at::DimVector();
  const Tensor result = at::_sparse_compressed_tensor_with_dims(0, self.dense_dim(), self.sizes(), blocksize, indices_of(self).first.scalar_type(), options);
  indices_of(result).first.zero_();
  return result;
}

// ---- conversions ----

bool is_by_rows(at::Layout layout) { return layout == at::kSparseCsr || layout == at::kSparseBsr; }

// The same entries (or blocks) column by column in the place of row by row, or the other way round.
Tensor flipped(const Tensor &self) {
  const auto [compressed, plain] = indices_of(self);
  const Tensor values = self.values();
  const int64_t nnz = plain.size(-1), outer = compressed.size(-1) - 1, batches = compressed.numel() / (outer + 1), batch_dim = compressed.dim() - 1;
  const bool has_blocks = self.layout() == at::kSparseBsr || self.layout() == at::kSparseBsc, by_rows = is_by_rows(self.layout());
  const int64_t block = has_blocks ? values.size(batch_dim + (by_rows ? 2 : 1)) : 1, inner = self.size(batch_dim + (by_rows ? 1 : 0)) / block;
  const Tensor from = at::_convert_indices_from_csr_to_coo(compressed.reshape({batches, outer + 1}).to(at::kLong), plain.reshape({batches, nnz}).to(at::kLong));
  const Tensor bucket = from[0].mul(inner).add(from[2]);
  const auto [sorted, order] = bucket.mul(outer).add(from[1]).sort(/*stable=*/true, 0, /*descending=*/false);
  const Tensor ends = at::searchsorted(bucket.index_select(0, order), at::arange(1, batches * inner + 1, bucket.options())).view({batches, inner});
  const Tensor before = at::arange(batches, bucket.options()).mul(nnz).unsqueeze(1);
  at::DimVector sizes(compressed.sizes());
  sizes.back() = inner + 1;
  const Tensor begins = at::cat({at::zeros_like(before), ends.sub(before)}, 1).view(sizes).to(compressed.scalar_type());
  const Tensor members = values.flatten(0, batch_dim).index_select(0, order).view(values.sizes());
  const at::Layout layout = has_blocks ? (by_rows ? at::kSparseBsc : at::kSparseBsr) : by_rows ? at::kSparseCsc : at::kSparseCsr;
  return made_of(begins, from[1].index_select(0, order).view(plain.sizes()).to(plain.scalar_type()), members, self.sizes(), self.scalar_type(), layout,
                 kDevice, false);
}

// Layouts that differ in more than their orientation, and what torch refuses, are left to torch: it calls no kernel of a device there.
Tensor to_csr(const Tensor &self, std::optional<int64_t> dense_dim) {
  if (self.layout() == at::kSparseCsc && !dense_dim.has_value()) return flipped(self);
  return at::native::sparse_compressed_to_sparse_csr(self, dense_dim);
}

Tensor to_csc(const Tensor &self, std::optional<int64_t> dense_dim) {
  if (self.layout() == at::kSparseCsr && !dense_dim.has_value()) return flipped(self);
  return at::native::sparse_compressed_to_sparse_csc(self, dense_dim);
}

Tensor to_bsr(const Tensor &self, at::IntArrayRef blocksize, std::optional<int64_t> dense_dim) {
  if (self.layout() == at::kSparseCsc && !dense_dim.has_value()) return flipped(self).to_sparse_bsr(blocksize);
  if (self.layout() == at::kSparseBsc && !dense_dim.has_value() && blocksize == at::sparse_csr::getBlockSize(self)) return flipped(self);
  return at::native::sparse_compressed_to_sparse_bsr(self, blocksize, dense_dim);
}

Tensor to_bsc(const Tensor &self, at::IntArrayRef blocksize, std::optional<int64_t> dense_dim) {
  if (self.layout() == at::kSparseCsr && !dense_dim.has_value()) return flipped(self).to_sparse_bsc(blocksize);
  if (self.layout() == at::kSparseBsr && !dense_dim.has_value() && blocksize == at::sparse_csr::getBlockSize(self)) return flipped(self);
  return at::native::sparse_compressed_to_sparse_bsc(self, blocksize, dense_dim);
}

Tensor to_sparse(const Tensor &self, OptionalLayout layout, at::OptionalIntArrayRef blocksize, std::optional<int64_t> dense_dim) {
  if (layout == at::kSparseCsr && self.layout() == at::kSparseCsc && !blocksize.has_value()) return to_csr(self, dense_dim);
  if (layout == at::kSparseCsc && self.layout() == at::kSparseCsr && !blocksize.has_value()) return to_csc(self, dense_dim);
  if (layout == at::kSparseBsr && !is_by_rows(self.layout()) && blocksize.has_value()) return to_bsr(self, *blocksize, dense_dim);
  if (layout == at::kSparseBsc && is_by_rows(self.layout()) && blocksize.has_value()) return to_bsc(self, *blocksize, dense_dim);
  return at::native::sparse_compressed_to_sparse(self, layout, blocksize, dense_dim);
}

// From coordinates. Sorted by the last dimension first, where columns are compressed.
Tensor from_coordinates(const Tensor &self, at::Layout layout, std::optional<int64_t> dense_dim) {
  TORCH_CHECK(self.sparse_dim() == 2, "Only tensors with two sparse dimensions can be converted to the ", layout, " layout, got self with ",
              self.sparse_dim(), " sparse dimensions");
  TORCH_CHECK(!dense_dim.has_value() || *dense_dim == self.dense_dim(), "conversion from Sparse to ", layout, " with dense_dim argument !=self.dense_dim() is not supported");
  const bool by_rows = is_by_rows(layout);
  const Tensor entries = (by_rows ? self : self.transpose(0, 1)).coalesce(), indices = entries._indices();
  return made_of(row_begins(indices[0], self.size(by_rows ? 0 : 1)), indices[1].contiguous(), entries._values(), self.sizes(), self.scalar_type(), layout,
                 kDevice, false);
}

Tensor coo_to_csr_layout(const Tensor &self, std::optional<int64_t> dense_dim) { return from_coordinates(self, at::kSparseCsr, dense_dim); }
Tensor coo_to_csc_layout(const Tensor &self, std::optional<int64_t> dense_dim) { return from_coordinates(self, at::kSparseCsc, dense_dim); }
Tensor coo_to_bsr_layout(const Tensor &self, at::IntArrayRef blocksize, std::optional<int64_t> dense_dim) {
  return from_coordinates(self, at::kSparseCsr, dense_dim).to_sparse_bsr(blocksize);
}
Tensor coo_to_bsc_layout(const Tensor &self, at::IntArrayRef blocksize, std::optional<int64_t> dense_dim) {
  return from_coordinates(self, at::kSparseCsc, dense_dim).to_sparse_bsc(blocksize);
}

// ---- indices ----

// The conditions that torch numbers 5.1 to 5.6 (compressed sparse layouts, docs of torch.sparse), looked at in the order of the CPU's kernel. One wait.
void validate(bool is_crow, const Tensor &compressed, const Tensor &plain, int64_t compressed_size, int64_t plain_size, int64_t nnz) {
  TORCH_CHECK_NOT_IMPLEMENTED(compressed.scalar_type() == at::kLong || compressed.scalar_type() == at::kInt,
                              "\"compressed_index_invariance_checks_cpu\" not implemented for '", at::toString(compressed.scalar_type()), "'");
  const std::string c = is_crow ? "crow_indices" : "ccol_indices", p = is_crow ? "col_indices" : "row_indices";
  const std::string wide = is_crow ? "ncols" : "nrows", high = is_crow ? "nrows" : "ncols";
  const int64_t batches = compressed.numel() / (compressed_size + 1);
  const Tensor begins = compressed.to(at::kLong).reshape({batches, compressed_size + 1}), places = plain.to(at::kLong).reshape({batches, nnz});
  const Tensor counts = begins.slice(1, 1).sub(begins.slice(1, 0, -1));
  // Where entry e - 1 is of the same row, entry e stands behind it: rows begin where `begins` says so.
  const Tensor starts = at::zeros({places.size(0), nnz + 1}, places.options()).scatter(1, begins.clamp(0, nnz), 1).to(at::kBool);
  const Tensor is_unsorted = nnz < 2 ? at::zeros({0}, starts.options())
                                     : places.slice(1, 1).le(places.slice(1, 0, -1)).logical_and(starts.slice(1, 1, nnz).logical_not());
  const Tensor flags = at::stack({places.lt(0).logical_or(places.ge(plain_size)).any(), begins.select(1, 0).ne(0).any(),
                                  begins.select(1, compressed_size).ne(nnz).any(), counts.lt(0).logical_or(counts.gt(plain_size)).any(),
                                  is_unsorted.any()}).cpu();
  const bool *const wrong = flags.const_data_ptr<bool>();
  TORCH_CHECK(!wrong[0], "`0 <= ", p, " < ", wide, "` is not satisfied.");
  TORCH_CHECK(!wrong[1], "`", c, "[..., 0] == 0` is not satisfied.");
  TORCH_CHECK(!wrong[2], "`", c, "[..., -1] == nnz` is not satisfied.");
  TORCH_CHECK(!wrong[3], "`0 <= ", c, "[..., 1:] - ", c, "[..., :-1] <= ", wide, "` is not satisfied.");
  TORCH_CHECK(!wrong[4], "`", p, "[..., ", c, "[..., i - 1]:", c, "[..., i]] for all i = 1, ..., ", high,
              " are sorted and distinct along the last dimension values` is not satisfied.");
}

// torch looks at members on devices that it knows: at copies of the indices, beside values of the same shape that nobody reads.
void validate_members(const Tensor &compressed, const Tensor &plain, const Tensor &values, at::IntArrayRef sizes, at::Layout layout,
                      std::optional<bool> check_pinning) {
  at::_validate_sparse_compressed_tensor_args(compressed.cpu(), plain.cpu(), at::empty_strided(values.sizes(), values.strides(), values.options().device(at::kCPU)),
                                              sizes, layout, check_pinning);
}

Tensor delivered(const Tensor &result, Tensor &out) {
  at::native::resize_output(out, result.sizes());
  return out.copy_(result);
}

Tensor coo_to_csr(const Tensor &rows, int64_t size, bool out_int32) {
  TORCH_CHECK(rows.dim() <= 1, "Input is supposed to be a vector, but got ", rows.dim(), " dimensional tensor.");
  return row_begins(rows, size).to(out_int32 ? at::kInt : at::kLong);
}

Tensor &coo_to_csr_out(const Tensor &rows, int64_t size, bool out_int32, Tensor &out) {
  delivered(coo_to_csr(rows, size, out_int32), out);
  return out;
}

// Rows (batch dimensions, row, column): entries follow each other batch by batch.
Tensor csr_to_coo(const Tensor &begins, const Tensor &columns, bool out_int32, bool transpose) {
  const int64_t batch_dim = begins.dim() - 1, nnz = columns.size(-1), batches = nnz ? columns.numel() / nnz : 0;
  const auto options = begins.options().dtype(out_int32 ? at::kInt : at::kLong);
  const Tensor result = at::zeros({batch_dim + 2, columns.numel()}, options);
  if (columns.numel() == 0) return result;
  const int64_t rows = begins.size(-1) - 1;
  const Tensor counts = begins.slice(-1, 1).sub(begins.slice(-1, 0, -1)).to(at::kLong).reshape(-1);
  const Tensor row = at::repeat_interleave(counts, std::optional<int64_t>(columns.numel())).remainder(rows);
  Tensor batch = at::arange(batches, options.dtype(at::kLong)).unsqueeze(1).expand({batches, nnz}).reshape(-1);
  for (int64_t d = batch_dim - 1; d >= 0; d--) {
    result[d].copy_(batch.remainder(begins.size(d)));
    batch = batch.div(begins.size(d), "floor");
  }
  result[batch_dim + (transpose ? 1 : 0)].copy_(row);
  result[batch_dim + (transpose ? 0 : 1)].copy_(columns.reshape(-1));
  return result;
}

Tensor &csr_to_coo_out(const Tensor &begins, const Tensor &columns, bool out_int32, bool transpose, Tensor &out) {
  delivered(csr_to_coo(begins, columns, out_int32, transpose), out);
  return out;
}

void register_construction(torch::Library &m) {
  m.impl("_sparse_compressed_tensor_unsafe", TORCH_FN(compressed_unsafe));
  m.impl("_sparse_csr_tensor_unsafe", TORCH_FN(unsafe<at::kSparseCsr>));
  m.impl("_sparse_csc_tensor_unsafe", TORCH_FN(unsafe<at::kSparseCsc>));
  m.impl("_sparse_bsr_tensor_unsafe", TORCH_FN(unsafe<at::kSparseBsr>));
  m.impl("_sparse_bsc_tensor_unsafe", TORCH_FN(unsafe<at::kSparseBsc>));
}

}  // namespace

// The constructors are compositions to autograd, on mps too; their members are dense tensors, and what they make is not.
TORCH_LIBRARY_IMPL(aten, AutogradMPS, m) {
  register_construction(m);
  m.impl("_validate_sparse_compressed_tensor_args", TORCH_FN(validate_members));
}

TORCH_LIBRARY_IMPL(aten, SparseCsrMPS, m) {
  register_construction(m);
  m.impl("_sparse_compressed_tensor_with_dims", TORCH_FN(compressed_with_dims));
  m.impl("empty_like", TORCH_FN(empty_like));
  m.impl("zeros_like", TORCH_FN(zeros_like));
  m.impl("_to_sparse", TORCH_FN(to_sparse));
  m.impl("_to_sparse_csr", TORCH_FN(to_csr));
  m.impl("_to_sparse_csc", TORCH_FN(to_csc));
  m.impl("_to_sparse_bsr", TORCH_FN(to_bsr));
  m.impl("_to_sparse_bsc", TORCH_FN(to_bsc));
}

TORCH_LIBRARY_IMPL(aten, SparseMPS, m) {
  m.impl("_to_sparse_csr", TORCH_FN(coo_to_csr_layout));
  m.impl("_to_sparse_csc", TORCH_FN(coo_to_csc_layout));
  m.impl("_to_sparse_bsr", TORCH_FN(coo_to_bsr_layout));
  m.impl("_to_sparse_bsc", TORCH_FN(coo_to_bsc_layout));
}

TORCH_LIBRARY_IMPL(aten, MPS, m) {
  register_construction(m);
  m.impl("_validate_sparse_compressed_tensor_args", TORCH_FN(validate_members));
  m.impl("_validate_compressed_sparse_indices", TORCH_FN(validate));
  m.impl("_convert_indices_from_coo_to_csr", TORCH_FN(coo_to_csr));
  m.impl("_convert_indices_from_coo_to_csr.out", TORCH_FN(coo_to_csr_out));
  m.impl("_convert_indices_from_csr_to_coo", TORCH_FN(csr_to_coo));
  m.impl("_convert_indices_from_csr_to_coo.out", TORCH_FN(csr_to_coo_out));
}

}  // namespace openmps::native
