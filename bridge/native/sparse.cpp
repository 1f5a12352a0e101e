/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sparse: the kernels of sparse COO tensors that upstream's SparseMPS key does not share with the CPU (the others are generated). Each is made
 * of dense operators on indices and values; coordinates are compared by their flat numbers.
 */
#include <ATen/ExpandUtils.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/WrapDimUtilsMulti.h>
#include <ATen/native/Resize.h>
#include <ATen/native/SparseTensorUtils.h>
#include <ATen/ATen.h>
#include <torch/library.h>

#include <limits>
#include <vector>

#include "bridge/native/sparse.h"

namespace openmps::native {
namespace {

using at::Tensor;

Tensor sparse_from(const Tensor &like, at::IntArrayRef sizes, int64_t sparse_dim, int64_t dense_dim, const Tensor &indices, const Tensor &values,
                   bool is_coalesced) {
  // Not said to be: then torch decides, by the number of entries.
  return at::_sparse_coo_tensor_with_dims_and_tensors(sparse_dim, dense_dim, sizes, indices, values, like.options().dtype(values.scalar_type()),
                                                      is_coalesced ? std::optional<bool>(true) : std::nullopt);
}

Tensor sparse_like(const Tensor &self, const Tensor &indices, const Tensor &values, bool is_coalesced) {
  return sparse_from(self, self.sizes(), self.sparse_dim(), self.dense_dim(), indices, values, is_coalesced);
}

void deliver_sparse(const Tensor &result, Tensor &out) {
  TORCH_CHECK(out.is_sparse(), "the result of sparse operands is sparse, but out has the layout ", out.layout());
  TORCH_CHECK(canCast(result.scalar_type(), out.scalar_type()), "Can't convert result type ", result.scalar_type(), " to output ", out.scalar_type());
  auto *const target = at::sparse::get_sparse_impl(out);
  target->resize_(result.sparse_dim(), result.dense_dim(), result.sizes());
  at::sparse::alias_into_sparse(out, result._indices(), result._values().to(out.scalar_type()));
  out._coalesced_(result.is_coalesced());
}

// One number for each coordinate: rows of `indices` (dimensions x nnz) counted over `sizes`. No row at all: one coordinate.
Tensor flat(const Tensor &indices, at::IntArrayRef sizes) {
  if (indices.size(0) == 0) return at::zeros({indices.size(1)}, indices.options());
  Tensor numbers = indices[0];
  for (int64_t d = 1; d < indices.size(0); d++) numbers = numbers.mul(sizes[static_cast<size_t>(d)]).add(indices[d]);
  return numbers.contiguous();
}

// Sums values (count x ...) whose group is equal; groups are numbered below `count`.
Tensor sum_groups(const Tensor &values, const Tensor &group, int64_t count) {
  at::DimVector sizes(values.sizes());
  sizes[0] = count;
  return at::zeros(sizes, values.options()).index_add_(0, group, values);
}

// Shaped so that it broadcasts over the trailing dimensions of values.
Tensor along_rows(const Tensor &vector, const Tensor &values) {
  at::DimVector sizes(static_cast<size_t>(values.dim()), 1);
  sizes[0] = vector.size(0);
  return vector.view(sizes);
}

Tensor coalesce(const Tensor &self) {
  if (self._nnz() < 2) {
    const Tensor result = self.clone();
    return result._coalesced_(true);
  }
  const Tensor numbers = flat(self._indices(), self.sizes());
  const auto [sorted, order] = numbers.sort(/*stable=*/true, 0, /*descending=*/false);
  const Tensor begins = at::cat({at::ones({1}, sorted.options().dtype(at::kBool)), sorted.slice(0, 1).ne(sorted.slice(0, 0, -1))});
  const Tensor group = begins.to(at::kLong).cumsum(0).sub(1);
  const Tensor first = begins.nonzero().squeeze(1);
  const Tensor indices = self._indices().index_select(1, order.index_select(0, first));
  return sparse_like(self, indices, sum_groups(self._values().index_select(0, order), group, first.size(0)), true);
}

// Where in `sorted` each of `wanted` stands, and whether it is there at all.
std::pair<Tensor, Tensor> find(const Tensor &sorted, const Tensor &wanted) {
  if (sorted.size(0) == 0) return {at::zeros_like(wanted), at::zeros_like(wanted, wanted.options().dtype(at::kBool))};
  const Tensor position = at::searchsorted(sorted, wanted).clamp_max(sorted.size(0) - 1);
  return {position, sorted.index_select(0, position).eq(wanted)};
}

// All pairs (i, j) with left[i] == right[j]; `right` is any order. Pairs come in the order of i.
std::pair<Tensor, Tensor> join(const Tensor &left, const Tensor &right) {
  const auto [sorted, order] = right.sort(/*stable=*/true, 0, /*descending=*/false);
  const Tensor begin = at::searchsorted(sorted, left), count = at::searchsorted(sorted, left, false, /*right=*/true).sub(begin);
  const Tensor i = at::repeat_interleave(count);
  const Tensor start = count.cumsum(0).sub(count);
  const Tensor within = at::arange(i.size(0), left.options()).sub(start.index_select(0, i));
  return {i, order.index_select(0, begin.index_select(0, i).add(within))};
}

// ---- sums and products ----

// alpha * values in the dtype of values: a product with an integer would turn bool into int64.
Tensor scaled(const Tensor &values, const at::Scalar &alpha) {
  return alpha.equal(1) ? values : values.mul(alpha).to(values.scalar_type());
}

Tensor &add_to_dense(const Tensor &dense, const Tensor &sparse, const at::Scalar &alpha, Tensor &out) {
  TORCH_CHECK(!out.is_sparse(), "add: expected 'out' to be a dense tensor");
  TORCH_CHECK(dense.sizes().equals(sparse.sizes()), "add: expected 'self' and 'other' to have same size, but self has size ", dense.sizes(),
              " while other has size ", sparse.sizes(), " (FYI: dense-sparse addition does not currently support broadcasting)");
  const at::ScalarType common = at::promoteTypes(dense.scalar_type(), sparse.scalar_type());
  TORCH_CHECK(canCast(common, out.scalar_type()), "Can't convert result type ", common, " to output ", out.scalar_type(), " in add operation");
  Tensor sum = dense.to(common, false, /*copy=*/true).contiguous();
  const Tensor values = scaled(sparse._values().to(common), alpha);
  if (sparse._nnz() > 0 && values.numel() > 0) {
    at::DimVector rows{-1};
    for (int64_t d = 1; d < values.dim(); d++) rows.push_back(values.size(d));
    sum.view(rows).index_add_(0, flat(sparse._indices(), sparse.sizes()), values);
  }
  at::native::resize_output(out, dense.sizes());
  return out.copy_(sum);
}

Tensor &add_out(const Tensor &self, const Tensor &other, const at::Scalar &alpha, Tensor &out) {
  if (!self.is_sparse()) return add_to_dense(self, other, alpha, out);
  TORCH_CHECK(other.is_sparse(), "add(sparse, dense) is not supported. Use add(dense, sparse) instead.");
  TORCH_CHECK(self.sizes().equals(other.sizes()), "add: expected sizes of 'self' and 'other' to match, but ", self.sizes(), " != ", other.sizes());
  const at::ScalarType common = at::promoteTypes(self.scalar_type(), other.scalar_type());
  TORCH_CHECK(canCast(common, out.scalar_type()), "Can't convert result type ", common, " to output ", out.scalar_type(), " in add operation");
  const Tensor theirs = scaled(other._values().to(common, false, /*copy=*/true), alpha);
  if (self._nnz() == 0) {
    deliver_sparse(sparse_like(other, other._indices().clone(), theirs, other.is_coalesced()), out);
    return out;
  }
  TORCH_CHECK(other._nnz() == 0 || at::sparse::is_same_density(self, other), "add: expected 'self' and 'other' to have same density, but 'self' has ",
              self.sparse_dim(), " sparse dimensions while 'other' has ", other.sparse_dim(), " sparse dimensions");
  if (other._nnz() == 0) {
    deliver_sparse(sparse_like(self, self._indices().clone(), self._values().to(common, false, /*copy=*/true), self.is_coalesced()), out);
    return out;
  }
  const Tensor all = sparse_like(self, at::cat({self._indices(), other._indices()}, 1), at::cat({self._values().to(common), theirs}), false);
  deliver_sparse(self.is_coalesced() && other.is_coalesced() ? coalesce(all) : all, out);
  return out;
}

// The dense elements at the sparse coordinates, shaped like the values of `sparse`.
Tensor gather_at(const Tensor &dense, const Tensor &sparse) {
  const Tensor indices = sparse._indices();
  if (indices.size(0) == 0) return dense.unsqueeze(0).expand_as(sparse._values());
  c10::List<std::optional<Tensor>> places;
  for (const Tensor &row : indices.unbind(0)) places.push_back(row);
  return at::index(dense, places);
}

Tensor multiplied_by_dense(const Tensor &dense, const Tensor &sparse) {
  if (dense.dim() == 0) {
    // A number takes part in promotion as it would with a dense tensor of the sparse one's shape.
    return sparse_like(sparse, sparse._indices().clone(), sparse._values().mul(dense), sparse.is_coalesced());
  }
  const auto sizes = at::infer_size(dense.sizes(), sparse.sizes());
  const Tensor wide = sparse.sizes().equals(sizes) ? sparse : at::_sparse_broadcast_to(sparse, sizes);
  return sparse_like(wide, wide._indices().clone(), wide._values().mul(gather_at(dense.expand(sizes), wide)), wide.is_coalesced());
}

Tensor multiplied(const Tensor &self, const Tensor &other) {
  if (!self.is_sparse()) return multiplied_by_dense(self, other);
  if (!other.is_sparse()) return multiplied_by_dense(other, self);
  if (self.dim() == 0) return multiplied_by_dense(self.to_dense(), other);
  if (other.dim() == 0) return multiplied_by_dense(other.to_dense(), self);
  TORCH_CHECK(self.sizes().equals(other.sizes()), "mul(sparse, sparse): operands have incompatible sizes; self.shape=", self.sizes(),
              ", other.shape=", other.sizes());
  TORCH_CHECK(self.sparse_dim() == other.sparse_dim(), "mul(sparse, sparse): operands have incompatible sparse dimensions; self.sparse_dim()=",
              self.sparse_dim(), ", other.sparse_dim()=", other.sparse_dim());
  const Tensor a = self.coalesce(), b = other.coalesce();
  const auto [position, found] = find(flat(b._indices(), b.sizes()), flat(a._indices(), a.sizes()));
  const Tensor kept = found.nonzero().squeeze(1);
  const Tensor values = a._values().index_select(0, kept).mul(b._values().index_select(0, position.index_select(0, kept)));
  return sparse_like(self, a._indices().index_select(1, kept), values, true);
}

Tensor &mul_out(const Tensor &self, const Tensor &other, Tensor &out) {
  deliver_sparse(multiplied(self, other), out);
  return out;
}

// ---- matrix products ----

Tensor sparse_addmm(const Tensor &self, const Tensor &mat1, const Tensor &mat2, const at::Scalar &beta, const at::Scalar &alpha) {
  TORCH_CHECK(self.layout() == at::kStrided, "addmm_sparse_dense: expected strided result tensor, got tensor with layout ", self.layout());
  TORCH_CHECK(mat1.layout() == at::kSparse && mat2.layout() == at::kStrided,
              "addmm_sparse_dense: expected either 'mat1' to have sparse layout and 'mat2' to have strided layout, got 'mat1' with layout ", mat1.layout(),
              " and 'mat2' with layout ", mat2.layout());
  TORCH_CHECK(mat1.sparse_dim() == 2, "addmm: matrices expected, got ", mat1.sparse_dim(), "D tensor");
  TORCH_CHECK(mat1.dense_dim() == 0, "addmm: scalar values expected, got ", mat1.dense_dim(), "D values");
  TORCH_CHECK(mat2.dim() == 2, "addmm: matrices expected, got ", mat2.dim(), "D tensor");
  TORCH_CHECK(mat2.size(0) == mat1.size(1), "addmm: Argument #3 (dense): Expected dim 0 size ", mat1.size(1), ", got ", mat2.size(0));
  const Tensor bias = self.expand({mat1.size(0), mat2.size(1)});
  const at::ScalarType type = mat2.scalar_type(), wide = alpha.equal(1) && beta.toComplexDouble() == 0.0 ? type : sum_type(type);
  const Tensor indices = mat1._indices(), values = mat1._values().to(wide);
  const Tensor product = product_of_coordinates(indices[0], indices[1], values, mat2.to(wide), mat1.size(0), mat1.is_coalesced());
  return combined(product, alpha, bias, beta, type);
}

Tensor &addmm_out(const Tensor &self, const Tensor &mat1, const Tensor &mat2, const at::Scalar &beta, const at::Scalar &alpha, Tensor &out) {
  const Tensor result = sparse_addmm(self, mat1, mat2, beta, alpha);
  at::native::resize_output(out, result.sizes());
  return out.copy_(result);
}

Tensor &addmm_in_place(Tensor &self, const Tensor &mat1, const Tensor &mat2, const at::Scalar &beta, const at::Scalar &alpha) {
  return self.copy_(sparse_addmm(self, mat1, mat2, beta, alpha));
}

Tensor sparse_bmm(const Tensor &self, const Tensor &mat2) {
  TORCH_CHECK(!mat2.is_sparse(), "bmm_sparse: Tensor 'mat2' must be dense");
  TORCH_CHECK(self.dense_dim() == 0, "bmm_sparse: Tensor 'self' must have 0 dense dims, but has ", self.dense_dim());
  TORCH_CHECK(self.sparse_dim() == 3, "bmm_sparse: Tensor 'self' must have 3 sparse dims, but has ", self.sparse_dim());
  TORCH_CHECK(mat2.dim() == 3, "bmm_sparse: Tensor 'mat2' must have 3 dims, but has ", mat2.dim());
  TORCH_CHECK(self.size(0) == mat2.size(0), "bmm_sparse: 'self.size(0)' and 'mat2.size(0)' must match");
  TORCH_CHECK(self.size(2) == mat2.size(1), "bmm_sparse: 'self.size(2)' and 'mat2.size(1)' must match");
  const Tensor indices = self._indices(), batch = indices[0];
  const Tensor from = batch.mul(self.size(2)).add(indices[2]), to = batch.mul(self.size(1)).add(indices[1]);
  const Tensor rows = mat2.reshape({mat2.size(0) * mat2.size(1), mat2.size(2)});
  return product_of_coordinates(to, from, self._values(), rows, self.size(0) * self.size(1), self.is_coalesced()).view({self.size(0), self.size(1), mat2.size(2)});
}

Tensor &bmm_out(const Tensor &self, const Tensor &mat2, Tensor &out) {
  const Tensor result = sparse_bmm(self, mat2);
  at::native::resize_output(out, result.sizes());
  return out.copy_(result);
}

Tensor sparse_matmul(const Tensor &self, const Tensor &other) {
  TORCH_CHECK(self.is_sparse() && other.is_sparse(), "sparse_matmul(): expected two sparse tensors");
  TORCH_CHECK(self.dim() == 2 && other.dim() == 2 && self.dense_dim() == 0 && other.dense_dim() == 0,
              "sparse_matmul(): expected matrices of scalar values");
  TORCH_CHECK(self.size(1) == other.size(0), "mat1 and mat2 shapes cannot be multiplied (", self.size(0), "x", self.size(1), " and ", other.size(0),
              "x", other.size(1), ")");
  TORCH_CHECK(self.scalar_type() == other.scalar_type(), "mat1 dtype ", self.dtype(), " does not match mat2 dtype ", other.dtype());
  const Tensor a = self.coalesce(), b = other.coalesce();
  const auto [i, j] = join(a._indices()[1].contiguous(), b._indices()[0].contiguous());
  const Tensor rows = a._indices()[0].index_select(0, i), columns = b._indices()[1].index_select(0, j);
  const Tensor values = a._values().index_select(0, i).mul(b._values().index_select(0, j));
  const Tensor all = sparse_from(self, {self.size(0), other.size(1)}, 2, 0, at::stack({rows, columns}), values, false);
  return coalesce(all);
}

// ---- softmax ----

// Entries that differ in dimension `dim` only belong together: the group of each entry, and how many groups there are.
std::pair<Tensor, int64_t> groups_along(const Tensor &self, int64_t dim) {
  std::vector<Tensor> rows;
  at::DimVector sizes;
  for (int64_t d = 0; d < self.sparse_dim(); d++) {
    if (d == dim) continue;
    rows.push_back(self._indices()[d]);
    sizes.push_back(self.size(d));
  }
  if (rows.empty()) return {at::zeros({self._nnz()}, self._indices().options()), self._nnz() > 0 ? 1 : 0};
  const auto [unique, inverse] = at::_unique(flat(at::stack(rows), sizes), /*sorted=*/true, /*return_inverse=*/true);
  return {inverse, unique.size(0)};
}

Tensor softmax_of_groups(const Tensor &values, const Tensor &group, int64_t count, bool is_log) {
  at::DimVector sizes(values.sizes());
  sizes[0] = count;
  const Tensor lowest = at::full(sizes, -std::numeric_limits<double>::infinity(), values.options());
  const Tensor shifted = values.sub(lowest.index_reduce(0, group, values, "amax").index_select(0, group));
  const Tensor exponentials = shifted.exp();
  const Tensor sums = sum_groups(exponentials, group, count).index_select(0, group);
  return is_log ? shifted.sub(sums.log()) : exponentials.div(sums);
}

Tensor softmax_either(const Tensor &input, int64_t along, bool half_to_float, bool is_log) {
  TORCH_CHECK(!half_to_float, is_log ? "log_softmax" : "softmax", " with half to float conversion is not supported on MPS");
  const int64_t dim = at::maybe_wrap_dim(along, input.dim());
  const Tensor self = input.coalesce();
  if (self.numel() == 0 || self._nnz() == 0) return self.clone();
  if (dim >= self.sparse_dim()) {
    const int64_t inner = dim - self.sparse_dim() + 1;
    const Tensor values = is_log ? self._values().log_softmax(inner) : self._values().softmax(inner);
    return sparse_like(self, self._indices().clone(), values, true);
  }
  const auto [group, count] = groups_along(self, dim);
  return sparse_like(self, self._indices().clone(), softmax_of_groups(self._values(), group, count, is_log), true);
}

Tensor softmax(const Tensor &self, int64_t dim, bool half_to_float) { return softmax_either(self, dim, half_to_float, false); }
Tensor log_softmax(const Tensor &self, int64_t dim, bool half_to_float) { return softmax_either(self, dim, half_to_float, true); }

// The values of `from` at the coordinates of the coalesced `pattern`; zeros where it has none.
Tensor values_at(const Tensor &from, const Tensor &pattern) {
  const Tensor source = from.coalesce();
  if (source._nnz() == 0) return at::zeros_like(pattern._values());
  const auto [position, found] = find(flat(source._indices(), source.sizes()), flat(pattern._indices(), pattern.sizes()));
  const Tensor values = source._values().index_select(0, position);
  return values.masked_fill(along_rows(found.logical_not(), values), 0);
}

Tensor softmax_backward_either(const Tensor &grad, const Tensor &result, int64_t along, bool is_log) {
  const Tensor output = result.coalesce();
  const int64_t dim = at::maybe_wrap_dim(along, grad.dim());
  TORCH_CHECK(grad.sizes().equals(output.sizes()), "sparse softmax backward: sizes of grad and output differ");
  const Tensor values = output._values(), g = values_at(grad, output);
  const auto weighted = [&](const Tensor &sums) {
    return is_log ? g.sub(values.exp().mul(sums)) : values.mul(g.sub(sums));
  };
  const Tensor terms = is_log ? g : g.mul(values);
  Tensor gradient;
  if (output._nnz() == 0) {
    gradient = at::zeros_like(values);
  } else if (dim >= output.sparse_dim()) {
    gradient = weighted(terms.sum(dim - output.sparse_dim() + 1, /*keepdim=*/true));
  } else {
    const auto [group, count] = groups_along(output, dim);
    gradient = weighted(sum_groups(terms, group, count).index_select(0, group));
  }
  return sparse_like(output, output._indices().clone(), gradient, true);
}

Tensor softmax_backward(const Tensor &grad, const Tensor &output, int64_t dim, const Tensor &) {
  return softmax_backward_either(grad, output, dim, false);
}
Tensor log_softmax_backward(const Tensor &grad, const Tensor &output, int64_t dim, const Tensor &) {
  return softmax_backward_either(grad, output, dim, true);
}

// ---- choosing ----

Tensor index_select(const Tensor &self, int64_t along, const Tensor &index) {
  TORCH_CHECK_INDEX(self.dim() != 0, "index_select() cannot be applied to a 0-dim tensor.");
  TORCH_CHECK_INDEX(index.dim() == 1 && index.dtype() == at::kLong && index.layout() == at::kStrided,
                    "index_select() argument index must be 1-D strided (non-sparse) long-tensor.");
  const int64_t dim = at::maybe_wrap_dim(along, self.dim());
  at::DimVector sizes(self.sizes());
  const int64_t size = sizes[static_cast<size_t>(dim)];
  sizes[static_cast<size_t>(dim)] = index.size(0);
  if (dim >= self.sparse_dim()) {
    const Tensor values = self._values().index_select(dim - self.sparse_dim() + 1, index);
    return sparse_from(self, sizes, self.sparse_dim(), self.dense_dim(), self._indices().clone(), values, self.is_coalesced());
  }
  if (index.numel() > 0) {
    const auto [low, high] = at::aminmax(index);
    const int64_t least = low.item<int64_t>(), most = high.item<int64_t>();
    TORCH_CHECK_INDEX(least >= -size && most < size, "index_select(): index contains element ", least < -size ? least : most,
                      " that is out of range for tensor of size ", self.sizes(), " at dimension ", dim);
  }
  const Tensor positive = at::where(index.lt(0), index.add(size), index);
  const auto [entry, place] = join(self._indices()[dim].contiguous(), positive);
  const Tensor indices = self._indices().index_select(1, entry);
  indices[dim].copy_(place);
  return sparse_from(self, sizes, self.sparse_dim(), self.dense_dim(), indices, self._values().index_select(0, entry), false);
}

Tensor sparse_mask(const Tensor &self, const Tensor &mask) {
  TORCH_CHECK(mask.is_sparse(), "sparse_mask(): the mask must be sparse");
  TORCH_CHECK(self.sizes().equals(mask.sizes()), "sparse_mask(): operands have incompatible sizes; self has size ", self.sizes(), " but mask has size ",
              mask.sizes());
  const Tensor kept = self.is_sparse() ? mask.coalesce() : mask;
  const Tensor values = self.is_sparse() ? values_at(self, kept) : gather_at(self, kept);
  return sparse_from(kept, kept.sizes(), kept.sparse_dim(), kept.dense_dim(), kept._indices().clone(), values, kept.is_coalesced());
}

// self where the mask has entries too, times their number if they are to be counted; zero elsewhere.
Tensor mask_projection(const Tensor &self, const Tensor &mask, bool counts) {
  TORCH_CHECK(self.is_sparse() && mask.is_sparse(), "_sparse_mask_projection(): self and the mask must be sparse");
  TORCH_CHECK(self.sizes().equals(mask.sizes()), "_sparse_mask_projection(): operands have incompatible sizes; self has size ", self.sizes(),
              " but mask has size ", mask.sizes());
  TORCH_CHECK(self.sparse_dim() == mask.sparse_dim(), "_sparse_mask_projection(): the number of sparse dimensions in `self` should match that of the `mask`. ",
              "Got `self.sparse_dim() == ", self.sparse_dim(), "` != `mask.sparse_dim() == ", mask.sparse_dim(), "`.");
  const Tensor wanted = flat(self._indices(), self.sizes()), masked = std::get<0>(flat(mask._indices(), mask.sizes()).sort());
  Tensor count = at::searchsorted(masked, wanted, false, /*right=*/true).sub(at::searchsorted(masked, wanted));
  if (!counts) count = count.clamp_max(1);
  const Tensor values = self._values(), factors = along_rows(count, values);
  const Tensor multiplied = values.mul(factors.to(values.scalar_type())).masked_fill(factors.eq(0), 0);
  return sparse_like(self, self._indices().clone(), multiplied, self.is_coalesced());
}

// ---- the gradient of a sum ----

Tensor sum_backward(const Tensor &grad, const Tensor &input, at::IntArrayRef dims) {
  const int64_t rank = input.dim(), sparse_dim = input.sparse_dim();
  const auto summed = at::dim_list_to_bitset(dims, static_cast<size_t>(rank));
  std::vector<Tensor> rows;
  at::DimVector sizes;
  for (int64_t d = 0; d < sparse_dim; d++) {
    if (summed[static_cast<size_t>(d)]) continue;
    rows.push_back(input._indices()[d]);
    sizes.push_back(input.size(d));
  }
  Tensor values;
  if (rows.empty()) {
    values = grad.unsqueeze(0);
  } else {
    const Tensor source = grad.coalesce();
    const auto [position, found] = find(flat(source._indices(), source.sizes()), flat(at::stack(rows), sizes));
    values = source._nnz() == 0 ? at::zeros_like(input._values()) : source._values().index_select(0, position);
    values = values.masked_fill(along_rows(found.logical_not(), values), 0);
  }
  if (values.dim() != input._values().dim())
    for (int64_t d = sparse_dim; d < rank; d++)
      if (summed[static_cast<size_t>(d)]) values = values.unsqueeze(d - sparse_dim + 1);
  return sparse_like(input, input._indices().clone(), values.expand_as(input._values()).clone(at::MemoryFormat::Contiguous), input.is_coalesced());
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, SparseMPS, m) {
  m.impl("_coalesce", TORCH_FN(coalesce));
  m.impl("add.out", TORCH_FN(add_out));
  m.impl("mul.out", TORCH_FN(mul_out));
  m.impl("addmm", TORCH_FN(sparse_addmm));
  m.impl("addmm.out", TORCH_FN(addmm_out));
  m.impl("addmm_", TORCH_FN(addmm_in_place));
  m.impl("bmm", TORCH_FN(sparse_bmm));
  m.impl("bmm.out", TORCH_FN(bmm_out));
  m.impl("_sparse_sparse_matmul", TORCH_FN(sparse_matmul));
  m.impl("_sparse_softmax", TORCH_FN(softmax));
  m.impl("_sparse_log_softmax", TORCH_FN(log_softmax));
  m.impl("_sparse_softmax_backward_data", TORCH_FN(softmax_backward));
  m.impl("_sparse_log_softmax_backward_data", TORCH_FN(log_softmax_backward));
  m.impl("_sparse_sum_backward", TORCH_FN(sum_backward));
  m.impl("index_select", TORCH_FN(index_select));
  m.impl("sparse_mask", TORCH_FN(sparse_mask));
  m.impl("_sparse_mask_projection", TORCH_FN(mask_projection));
}

}  // namespace openmps::native
