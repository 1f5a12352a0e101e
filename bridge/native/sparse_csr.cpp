/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sparse_csr: the kernels that the CPU has of its own for compressed sparse tensors (the others, compositions, are generated): sums, products and
 * reductions. Products with dense matrices are the C operator sparse_product; what has a sparse result is computed on coordinates.
 */
#include <ATen/ATen.h>
#include <ATen/ExpandUtils.h>
#include <ATen/SparseCsrTensorUtils.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/native/ReductionType.h>
#include <ATen/native/Resize.h>
#include <torch/library.h>

#include "bridge/native/sparse.h"

namespace openmps::native {
namespace {

using at::Scalar;
using at::Tensor;
using at::sparse_csr::is_sparse_compressed;

bool is_zero(const Scalar &number) { return number.toComplexDouble() == 0.0; }

Tensor csr_of(const Tensor &begins, const Tensor &columns, const Tensor &values, at::IntArrayRef sizes, at::Layout layout = at::kSparseCsr) {
  return at::_sparse_compressed_tensor_unsafe(begins, columns, values, sizes, values.options().layout(layout));
}

// The members of `result` go into `out`, which has its layout.
void deliver(const Tensor &result, const Tensor &out, at::ScalarType index_type) {
  TORCH_CHECK(canCast(result.scalar_type(), out.scalar_type()), "Can't convert result type ", result.scalar_type(), " to output ", out.scalar_type());
  const auto [compressed, plain] = at::sparse_csr::getCompressedPlainIndices(result);
  at::sparse_csr::get_sparse_csr_impl(out)->set_member_tensors(compressed.to(index_type), plain.to(index_type), result.values().to(out.scalar_type()),
                                                               result.sizes());
}

at::ScalarType index_type(const Tensor &self) { return at::sparse_csr::getCompressedPlainIndices(self).first.scalar_type(); }

Tensor converted(const Tensor &coordinates, const Tensor &like) {
  if (like.layout() == at::kSparseBsr) return coordinates.to_sparse_bsr(at::sparse_csr::getBlockSize(like));
  return like.layout() == at::kSparseCsr ? coordinates.to_sparse_csr() : coordinates.to_sparse_csc();
}

// ---- sums ----

Tensor &add_out(const Tensor &self, const Tensor &other, const Scalar &alpha, Tensor &out) {
  if (self.layout() == at::kStrided || other.layout() == at::kStrided) {
    const Tensor &dense = self.layout() == at::kStrided ? self : other, &sparse = self.layout() == at::kStrided ? other : self;
    TORCH_CHECK(out.layout() == at::kStrided, "add: expected 'out' to be a dense tensor");
    TORCH_CHECK(dense.sizes().equals(sparse.sizes()), "add: expected 'self' and 'other' to have same size, but self has size ", dense.sizes(),
                " while other has size ", sparse.sizes(), " (FYI: op2-sparse addition does not currently support broadcasting)");
    return at::add_out(out, dense, sparse.to_sparse(), alpha);
  }
  TORCH_CHECK(self.sizes().equals(other.sizes()), "torch.add: Expected input tensors to have the same shape, but got tensor `self` with shape ",
              self.sizes(), " and tensor `other` with shape ", other.sizes());
  other.crow_indices();  // the layouts that the CPU has sums for; torch's own error for the others
  self.crow_indices();
  TORCH_CHECK(self.dim() == 2 && out.layout() == self.layout(), "add: expected sparse matrices, and 'out' in the layout ", self.layout(), ", but got ",
              self.dim(), " dimensions and ", out.layout());
  const at::ScalarType type = out.scalar_type();
  for (const Tensor *operand : {&self, &other})
    TORCH_CHECK(operand->scalar_type() == type, "expected scalar type ", type, " but found ", operand->scalar_type());
  deliver(converted(at::add(self.to_sparse().coalesce(), other.to_sparse().coalesce(), alpha), self), out, index_type(self));
  return out;
}

// ---- products ----

bool is_row_or_column_layout(at::Layout layout) { return layout == at::kSparseCsr || layout == at::kSparseCsc; }

// What the CPU has (with MKL) for result + mat1 @ mat2.
bool is_supported(at::Layout result, at::Layout mat1, at::Layout mat2) {
  if (result == at::kSparseCsr) return is_row_or_column_layout(mat1) && is_row_or_column_layout(mat2);
  if (result == at::kSparseCsc) return mat1 == at::kSparseCsc && mat2 == at::kSparseCsc;
  if (result != at::kStrided) return false;
  if (mat1 == at::kStrided) return is_row_or_column_layout(mat2) || mat2 == at::kSparseBsc;
  if (mat2 == at::kStrided) return is_row_or_column_layout(mat1) || mat1 == at::kSparseBsr;
  return (mat1 == at::kSparseCsr && is_row_or_column_layout(mat2)) || (mat1 == at::kSparseCsc && mat2 == at::kSparseCsc);
}

// sparse @ dense, or its transpose's product with dense, in the type of dense.
Tensor sparse_times_dense(const Tensor &sparse, const Tensor &dense, bool transpose) {
  const Tensor values = sparse.values().to(dense.scalar_type());
  if (sparse.layout() == (transpose ? at::kSparseCsc : at::kSparseCsr)) {
    const auto [begins, columns] = at::sparse_csr::getCompressedPlainIndices(sparse);
    return product_of_rows(begins, columns, values, dense);
  }
  const Tensor coordinates = sparse.to_sparse(), indices = coordinates._indices();
  return product_of_coordinates(indices[transpose ? 1 : 0], indices[transpose ? 0 : 1], coordinates._values().to(dense.scalar_type()), dense,
                                sparse.size(transpose ? 1 : 0), false);
}

// mat1 @ mat2 as a dense matrix.
Tensor dense_product(const Tensor &mat1, const Tensor &mat2, at::ScalarType type) {
  if (mat2.layout() == at::kStrided) return sparse_times_dense(mat1, mat2.to(type), false);
  if (mat1.layout() == at::kStrided) return sparse_times_dense(mat2, mat1.to(type).t(), true).t();
  return at::_sparse_sparse_matmul(mat1.to_sparse().to(type), mat2.to_sparse().to(type)).to_dense();
}

void check_matrices(const Tensor &self, const Tensor &mat1, const Tensor &mat2) {
  TORCH_CHECK(mat1.dim() == 2, "Expected mat1 to be a matrix, got ", mat1.dim(), "-D tensor");
  TORCH_CHECK(mat2.dim() == 2, "Expected mat2 to be a matrix, got ", mat2.dim(), "-D tensor");
  TORCH_CHECK(mat1.size(1) == mat2.size(0), "mat1 and mat2 shapes cannot be multiplied (", mat1.size(0), "x", mat1.size(1), " and ", mat2.size(0), "x",
              mat2.size(1), ")");
  TORCH_CHECK(self.scalar_type() == mat1.scalar_type() && mat1.scalar_type() == mat2.scalar_type(), "expected matrices of the same dtype, but got ",
              self.scalar_type(), ", ", mat1.scalar_type(), " and ", mat2.scalar_type());
}

Tensor &addmm_out(const Tensor &self, const Tensor &mat1, const Tensor &mat2, const Scalar &beta, const Scalar &alpha, Tensor &out) {
  check_matrices(self, mat1, mat2);
  const at::DimVector sizes{mat1.size(0), mat2.size(1)};
  const Tensor bias = self.layout() == at::kStrided ? self.expand(sizes) : self;
  TORCH_CHECK(bias.sizes().equals(sizes), "The input tensor must be a matrix with size ", sizes[0], "x", sizes[1], ", but got a ", bias.dim(), "-D tensor with size ",
              bias.sizes());
  const at::Layout layout = out.is_same(self) || out.numel() > 0 ? out.layout() : self.layout();
  TORCH_CHECK(is_supported(layout, mat1.layout(), mat2.layout()), "addmm: computation on MPS is not implemented for ", layout, " + ", mat1.layout(),
              " @ ", mat2.layout());
  const at::ScalarType type = self.scalar_type();
  if (layout == at::kStrided) {
    const Tensor result = combined(dense_product(mat1, mat2, sum_type(type)), alpha, bias, beta, type);
    if (!out.is_same(self)) at::native::resize_output(out, sizes);
    return out.copy_(result);
  }
  TORCH_CHECK(out.layout() == self.layout(), "resize_as_sparse_compressed_tensor_: self and src must have the same layout, but got: self (", out.layout(),
              ") and source (", self.layout(), ")");
  Tensor product = at::_sparse_sparse_matmul(mat1.to_sparse(), mat2.to_sparse()).mul_(alpha);
  if (!is_zero(beta)) product = at::add(product, self.to_sparse(), beta).coalesce();
  deliver(converted(product, self), out, at::kLong);
  return out;
}

Tensor &addmv_out(const Tensor &self, const Tensor &mat, const Tensor &vec, const Scalar &beta, const Scalar &alpha, Tensor &out) {
  TORCH_CHECK(mat.layout() != at::kSparseBsc, "torch.addmv: operation not supported for mat with SparseBsc layout");
  const Tensor bias = self.expand({mat.size(0)});
  const at::ScalarType type = out.scalar_type();
  const Tensor product = sparse_times_dense(mat, vec.to(sum_type(type)).unsqueeze(1), false).squeeze(1);
  const Tensor result = combined(product, alpha, bias, beta, type);
  if (!out.is_same(self)) at::native::resize_output(out, result.sizes());
  return out.copy_(result);
}

// ---- products at chosen places ----

void check_sampled(const Tensor &self, const Tensor &mat1, const Tensor &mat2, const Tensor &out) {
  static constexpr const char *label = "sampled_addmm: ";
  TORCH_CHECK(mat1.layout() == at::kStrided, label, "Expected mat1 to have strided layout, but got ", mat1.layout());
  TORCH_CHECK(mat2.layout() == at::kStrided, label, "Expected mat2 to have strided layout, but got ", mat2.layout());
  TORCH_CHECK(out.layout() == at::kSparseCsr, label, "Expected result to have sparse csr layout, but got ", out.layout());
  TORCH_CHECK(mat1.scalar_type() == mat2.scalar_type(), label, "Expected mat1 and mat2 to have the same dtype, but got ", mat1.scalar_type(), " and ",
              mat2.scalar_type());
  TORCH_CHECK(mat1.scalar_type() == self.scalar_type(), label, "Expected mat1 and self to have the same dtype, but got ", mat1.scalar_type(), " and ",
              self.scalar_type());
  TORCH_CHECK(out.scalar_type() == self.scalar_type(), label, "Expected result and self to have the same dtype, but got ", out.scalar_type(), " and ",
              self.scalar_type());
  TORCH_CHECK(mat1.dim() >= 2, label, "Expected mat1 to be a matrix, got ", mat1.dim(), "-D tensor");
  TORCH_CHECK(mat2.dim() >= 2, label, "Expected mat2 to be a matrix, got ", mat2.dim(), "-D tensor");
  TORCH_CHECK(out.dim() >= 2, label, "Expected result to be a matrix, got ", out.dim(), "-D tensor");
  TORCH_CHECK(mat1.sizes().slice(0, static_cast<size_t>(mat1.dim() - 2)) == mat2.sizes().slice(0, static_cast<size_t>(mat2.dim() - 2)), label,
              "Expected mat1 and mat2 to have the same batch size, but got ", mat1.sizes().slice(0, static_cast<size_t>(mat1.dim() - 2)), " and ",
              mat2.sizes().slice(0, static_cast<size_t>(mat2.dim() - 2)));
  TORCH_CHECK(mat1.size(-1) == mat2.size(-2), label, "mat1 and mat2 shapes cannot be multiplied (", mat1.size(-2), "x", mat1.size(-1), " and ",
              mat2.size(-2), "x", mat2.size(-1), ")");
  TORCH_CHECK(self.size(-2) == mat1.size(-2), label, "self.shape[-2] must match mat1.shape[-2]");
  TORCH_CHECK(self.size(-1) == mat2.size(-1), label, "self.shape[-1] must match mat2.shape[-1]");
}

Tensor sampled(const Tensor &self, const Tensor &mat1, const Tensor &mat2, const Scalar &beta, const Scalar &alpha) {
  const at::IntArrayRef batch = mat1.sizes().slice(0, static_cast<size_t>(mat1.dim() - 2));
  const auto with_batch = [&](const Tensor &member) {
    std::vector<int64_t> sizes = batch.vec();
    sizes.push_back(member.size(-1));
    return member.expand(sizes).contiguous();
  };
  const Tensor begins = with_batch(self.crow_indices()), columns = with_batch(self.col_indices()), values = with_batch(self.values());
  const int64_t m = mat1.size(-2), k = mat1.size(-1), n = mat2.size(-1), batches = c10::multiply_integers(batch), nnz = columns.size(-1);
  at::DimVector sizes(batch);
  sizes.append({m, n});
  const Tensor from = batches == 0 ? at::zeros({2, 0}, begins.options())
                                   : at::_convert_indices_from_csr_to_coo(begins.reshape({batches, m + 1}), columns.reshape({batches, nnz}));
  if (batches == 0 || nnz == 0) return csr_of(begins, columns, values.mul(beta), sizes);
  const Tensor rows = mat1.reshape({batches * m, k}).index_select(0, from[0].mul(m).add(from[1]));
  const Tensor others = mat2.transpose(-1, -2).reshape({batches * n, k}).index_select(0, from[0].mul(n).add(from[2]));
  const Tensor products = rows.mul(others).sum(1);
  return csr_of(begins, columns, combined(products, alpha, values.reshape(-1), beta, values.scalar_type()).reshape(values.sizes()), sizes);
}

Tensor &sampled_addmm_out(const Tensor &self, const Tensor &mat1, const Tensor &mat2, const Scalar &beta, const Scalar &alpha, Tensor &out) {
  TORCH_CHECK(self.scalar_type() == at::kFloat || self.scalar_type() == at::kComplexFloat,
              "sparse_sampled_addmm: Expected self to be a floating-point or complex tensor, but got ", self.scalar_type());
  check_sampled(self, mat1, mat2, out);
  deliver(sampled(self, mat1, mat2, beta, alpha), out, index_type(self));
  return out;
}

Tensor sampled_addmm(const Tensor &self, const Tensor &mat1, const Tensor &mat2, const Scalar &beta, const Scalar &alpha) {
  Tensor out = at::empty_like(self);
  return sampled_addmm_out(self, mat1, mat2, beta, alpha, out);
}

// ---- products that are reduced otherwise ----

Reduction reduction_of(std::string_view name) {
  switch (at::native::get_reduction_enum(name)) {
    case at::native::ReductionType::SUM: return kReduceSum;
    case at::native::ReductionType::MEAN: return kReduceMean;
    case at::native::ReductionType::MAX: return kReduceMax;
    case at::native::ReductionType::MIN: return kReduceMin;
    default: TORCH_CHECK(false, "sparse_mm_reduce: reduce type of prod has not been enabled.");
  }
}

void check_reduce(const Tensor &self, const Tensor &other, int position, const char *label) {
  at::checkLayout(label, other, at::kStrided);
  at::checkScalarType(label, {other, "other", position}, self.scalar_type());
  at::check_dim_size(other, 2, 0, self.size(1));
}

std::tuple<Tensor, Tensor> mm_reduce(const Tensor &self, const Tensor &other, std::string_view reduce) {
  TORCH_CHECK(self.layout() == at::kSparseCsr, "sparse_mm_reduce: expect self to be SparseCsr, got ", self.layout());
  TORCH_CHECK(self.dense_dim() == 0, "sparse_mm_reduce: expected non-hybrid self tensor.");
  TORCH_CHECK(self.dim() == 2, "sparse_mm_reduce: expected self to be a 2-D tensor, got ", self.dim(), "-D tensor.");
  check_reduce(self, other, 1, "sparse_mm_reduce");
  const Reduction reduction = reduction_of(reduce);
  const Tensor begins = self.crow_indices(), columns = self.col_indices();
  TORCH_CHECK_NOT_IMPLEMENTED(self.is_floating_point() || self._nnz() == 0, "\"spmm_reduce_kernel\" not implemented for '",
                              at::toString(self.scalar_type()), "'");
  Tensor places = at::empty({0}, columns.options());
  if (self._nnz() == 0) return {at::zeros({self.size(0), other.size(1)}, other.options()), places};
  const bool wants_places = (reduction == kReduceMax || reduction == kReduceMin) && at::GradMode::is_enabled() &&
                            (self.requires_grad() || other.requires_grad());
  const Tensor out = product_of_rows(begins, columns, self.values(), other, reduction, wants_places ? &places : nullptr);
  return {out, places.to(columns.scalar_type())};
}

// The gradients of the entries and of `other`, from the entry that each element came from; entry nnz stands for none.
std::pair<Tensor, Tensor> extremum_gradients(const Tensor &self, const Tensor &grad, const Tensor &other, const Tensor &places) {
  const auto with_none = [](const Tensor &member) { return at::cat({member, at::zeros({1}, member.options())}); };
  const Tensor entry = places.to(at::kLong).reshape(-1);
  const at::ScalarType type = sum_type(self.scalar_type());
  const Tensor column = with_none(self.col_indices().to(at::kLong)).index_select(0, entry).view(places.sizes());
  const Tensor value = with_none(self.values().to(type)).index_select(0, entry).view(places.sizes());
  const Tensor to_entries = grad.to(type).mul(other.to(type).gather(0, column)).reshape(-1);
  const Tensor entries = at::zeros({self._nnz() + 1}, to_entries.options()).index_add_(0, entry, to_entries).slice(0, 0, -1);
  const Tensor to_others = grad.to(type).mul(value).masked_fill(places.eq(self._nnz()), 0);  // rows without entries have no column
  const Tensor others = at::zeros(other.sizes(), to_entries.options()).scatter_add_(0, column, to_others);
  return {entries, others};
}

std::tuple<Tensor, Tensor> mm_reduce_backward(const Tensor &self, const Tensor &grad_out, const Tensor &other, std::string_view reduce, const Tensor &places,
                                              std::array<bool, 2> wanted) {
  TORCH_CHECK(self.layout() == at::kSparseCsr, "sparse_mm_reduce: expect self to be SparseCsr, got ", self.layout());
  check_reduce(self, other, 2, "sparse_mm_reduce_backward");
  const Reduction reduction = reduction_of(reduce);
  const Tensor begins = self.crow_indices(), columns = self.col_indices(), values = self.values();
  const at::ScalarType type = values.scalar_type();
  Tensor entries, others;
  if (self._nnz() == 0) {
    entries = at::zeros_like(values);
    others = at::zeros_like(other);
  } else if (reduction == kReduceMax || reduction == kReduceMin) {
    std::tie(entries, others) = extremum_gradients(self, grad_out, other, places);
  } else {
    Tensor grad = grad_out.to(sum_type(type));
    if (reduction == kReduceMean) grad = grad.div(begins.slice(0, 1).sub(begins.slice(0, 0, -1)).clamp_min(1).unsqueeze(1));
    const Tensor from = at::_convert_indices_from_csr_to_coo(begins, columns);
    if (wanted[0]) entries = grad.index_select(0, from[0]).mul(other.to(grad.scalar_type()).index_select(0, from[1])).sum(1);
    if (wanted[1]) others = product_of_coordinates(from[1], from[0], values.to(grad.scalar_type()), grad, self.size(1), false);
  }
  return {wanted[0] ? csr_of(begins.clone(), columns.clone(), entries.to(type), self.sizes()) : Tensor(), wanted[1] ? others.to(type) : Tensor()};
}

// ---- reductions of the entries that are there ----

Tensor reduced(const Tensor &self, at::IntArrayRef dims, bool keepdim, std::optional<at::ScalarType> given, Reduction reduction) {
  TORCH_CHECK(keepdim, "reduction operations on CSR tensors with keepdim=False is unsupported");
  TORCH_CHECK(self.layout() == at::kSparseCsr && self.dim() == 2 && self.dense_dim() == 0, "reductions of compressed sparse tensors are for CSR matrices, got ",
              self.layout());
  const at::ScalarType type = given.value_or(at::isIntegralType(self.scalar_type(), false) ? at::kLong : self.scalar_type());
  TORCH_CHECK_NOT_IMPLEMENTED(type != at::kBool, "\"_sparse_csr_", reduction == kReduceSum ? "sum" : "prod", "_cpu\" not implemented for 'Bool'");
  const Tensor begins = self.crow_indices(), columns = self.col_indices(), values = self.values().to(type);
  const auto mask = at::dim_list_to_bitset(dims, 2);
  const bool over_rows = dims.empty() || mask[0], over_columns = dims.empty() || mask[1];
  const at::DimVector sizes{over_rows ? 1 : self.size(0), over_columns ? 1 : self.size(1)};
  if (over_rows && over_columns) {
    const int64_t count = self._nnz() > 0;
    const Tensor result = reduce_groups(values, at::zeros({self._nnz()}, columns.options()), count, reduction);
    return csr_of(at::arange(2, begins.options()).mul(count), at::zeros({count}, columns.options()), result, sizes);
  }
  if (over_rows) {
    const auto [present, group] = at::_unique(columns, /*sorted=*/true, /*return_inverse=*/true);
    const int64_t count = present.size(0);
    return csr_of(at::arange(2, begins.options()).mul(count), present, reduce_groups(values, group, count, reduction), sizes);
  }
  const Tensor is_present = begins.slice(0, 1).ne(begins.slice(0, 0, -1)), present = is_present.nonzero().squeeze(1);
  const Tensor ends = is_present.cumsum(0).to(begins.scalar_type());
  const Tensor all = product_of_rows(begins, at::zeros_like(columns), values, at::ones({1, 1}, values.options()), reduction).squeeze(1);
  return csr_of(at::cat({at::zeros({1}, begins.options()), ends}), at::zeros({present.size(0)}, columns.options()), all.index_select(0, present), sizes);
}

Tensor csr_sum(const Tensor &self, at::IntArrayRef dims, bool keepdim, std::optional<at::ScalarType> type) {
  return reduced(self, dims, keepdim, type, kReduceSum);
}
Tensor csr_prod(const Tensor &self, at::IntArrayRef dims, bool keepdim, std::optional<at::ScalarType> type) {
  return reduced(self, dims, keepdim, type, kReduceProduct);
}

// ---- solving ----

std::tuple<Tensor &, Tensor &> triangular_solve_out(const Tensor &B, const Tensor &A, bool upper, bool transpose, bool unitriangular, Tensor &X, Tensor &M) {
  TORCH_CHECK_VALUE(A.layout() == at::kSparseCsr || A.layout() == at::kSparseBsr, "triangular_solve: unsupported sparse layout.");
  const Tensor dense = A.to_dense(), triangle = transpose ? dense.transpose(-2, -1) : dense;
  const Tensor solution = at::linalg_solve_triangular(triangle, B, upper != transpose, /*left=*/true, unitriangular);
  at::native::resize_output(X, solution.sizes());
  X.copy_(solution);
  return {X, M};
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, SparseCsrMPS, m) {
  m.impl("add.out", TORCH_FN(add_out));
  m.impl("addmm.out", TORCH_FN(addmm_out));
  m.impl("addmv.out", TORCH_FN(addmv_out));
  m.impl("sparse_sampled_addmm", TORCH_FN(sampled_addmm));
  m.impl("sparse_sampled_addmm.out", TORCH_FN(sampled_addmm_out));
  m.impl("_sparse_mm_reduce_impl", TORCH_FN(mm_reduce));
  m.impl("_sparse_mm_reduce_impl_backward", TORCH_FN(mm_reduce_backward));
  m.impl("_sparse_csr_sum.dim_dtype", TORCH_FN(csr_sum));
  m.impl("_sparse_csr_prod.dim_dtype", TORCH_FN(csr_prod));
  m.impl("triangular_solve.X", TORCH_FN(triangular_solve_out));
}

}  // namespace openmps::native
