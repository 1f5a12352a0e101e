/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sparse_product: products of sparse and dense matrices by the C operator, for all sparse layouts.
 */
#include <ATen/Functions.h>

#include "bridge/convert.h"
#include "bridge/native/sparse.h"
#include "openmps/ops/sparse.h"

namespace openmps::native {

using at::Tensor;

Tensor row_begins(const Tensor &rows, int64_t count) {
  return at::searchsorted(rows.contiguous(), at::arange(count + 1, rows.options()));
}

Tensor product_of_rows(const Tensor &begins, const Tensor &columns, const Tensor &values, const Tensor &dense, Reduction reduction, Tensor *places) {
  const Tensor out = empty({begins.size(0) - 1, dense.size(1)}, values.options());
  if (places) *places = empty(out.sizes(), values.options().dtype(at::kLong));
  const Operand begins_(begins, Operand::plain), columns_(columns, Operand::plain), values_(values, Operand::plain), dense_(dense, Operand::plain);
  const Operand out_(out, Operand::output), places_(places ? *places : Tensor(), Operand::output);
  check(mps_op_sparse_product(stream(), begins_.pointer(), columns_.pointer(), values_.pointer(), dense_.pointer(), reduction, out_.pointer(),
                              places_.pointer_or_null()));
  return out;
}

Tensor product_of_coordinates(const Tensor &rows, const Tensor &columns, const Tensor &values, const Tensor &dense, int64_t row_count,
                              bool are_sorted) {
  if (are_sorted) return product_of_rows(row_begins(rows, row_count), columns, values, dense);
  const auto [sorted, order] = rows.sort(/*stable=*/true, 0, /*descending=*/false);
  return product_of_rows(row_begins(sorted, row_count), columns.index_select(0, order), values.index_select(0, order), dense);
}

Tensor reduce_groups(const Tensor &values, const Tensor &group, int64_t count, Reduction reduction) {
  const auto [sorted, order] = group.sort(/*stable=*/true, 0, /*descending=*/false);
  const Tensor one = at::ones({1, 1}, values.options());
  return product_of_rows(row_begins(sorted, count), at::zeros_like(order), values.index_select(0, order), one, reduction).squeeze(1);
}

at::ScalarType sum_type(at::ScalarType type) { return type == at::kHalf || type == at::kBFloat16 ? at::kFloat : type; }

Tensor combined(const Tensor &product, const at::Scalar &alpha, const Tensor &self, const at::Scalar &beta, at::ScalarType type) {
  Tensor result = alpha.equal(1) ? product : product.mul(alpha);
  if (beta.toComplexDouble() != 0.0) result = result.add(self.to(product.scalar_type()), beta);
  return result.to(type);
}

}  // namespace openmps::native
