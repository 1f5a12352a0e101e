/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sparse: what the kernels of the sparse layouts share: products with dense matrices by the C operator, and types that sums are kept in.
 */
#pragma once

#include <ATen/core/Tensor.h>

namespace openmps::native {

// Reductions of the C operator sparse_product.
enum Reduction : int64_t { kReduceSum, kReduceMean, kReduceMax, kReduceMin, kReduceProduct };

// begins[i], i = 0 .. count: how many of the sorted numbers `rows` are below i.
at::Tensor row_begins(const at::Tensor &rows, int64_t count);
// values[e] * dense[columns[e]] reduced over the entries e of each row. `places`, where given, becomes the entries that gave maximum or minimum.
at::Tensor product_of_rows(const at::Tensor &begins, const at::Tensor &columns, const at::Tensor &values, const at::Tensor &dense,
                           Reduction reduction = kReduceSum, at::Tensor *places = nullptr);
// The sum for coordinates in any order.
at::Tensor product_of_coordinates(const at::Tensor &rows, const at::Tensor &columns, const at::Tensor &values, const at::Tensor &dense,
                                  int64_t row_count, bool are_sorted);
// values (entries), all of a group of equal number brought together; groups are numbered below `count`. Groups without any give 0.
at::Tensor reduce_groups(const at::Tensor &values, const at::Tensor &group, int64_t count, Reduction reduction);

// float for half and bfloat, else the type itself: the type that several rounded steps are computed in.
at::ScalarType sum_type(at::ScalarType type);
// alpha * product + beta * self, where product has the type sum_type gives; self is not looked at when beta is 0. Rounded to `type` once.
at::Tensor combined(const at::Tensor &product, const at::Scalar &alpha, const at::Tensor &self, const at::Scalar &beta, at::ScalarType type);

}  // namespace openmps::native
