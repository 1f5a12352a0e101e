/* SPDX-License-Identifier: BSD-3-Clause
 *
 * unique: distinct elements and slices. How many there are is waited for, as the outputs have that size.
 */
#include <ATen/ops/arange.h>
#include <ATen/ops/count_nonzero.h>
#include <ATen/ops/full.h>
#include <ATen/ops/moveaxis.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "bridge/convert.h"
#include "bridge/kernels/unique.h"
#include "openmps/ops/histogram.h"
#include "openmps/ops/unique.h"

namespace openmps::native {
namespace {

using Triple = std::tuple<at::Tensor, at::Tensor, at::Tensor>;  // values, inverse, counts

at::Tensor indices(int64_t count, const at::Tensor &like) { return empty({count}, like.options().dtype(at::kLong)); }

void check_type(const at::Tensor &self, const char *name) {
  TORCH_CHECK_NOT_IMPLEMENTED(!self.is_complex(), "\"", name, "\" not implemented for '", self.scalar_type(), "'");
}

struct Distinct {
  at::Tensor heads, values, inverse, counts;
};

// Of rows in which equal ones are neighbours: in `order` if it is defined; `gathered` rows lie in it already.
Distinct distinct(const at::Tensor &rows, const at::Tensor &order, bool gathered, bool with_values, bool return_inverse, bool return_counts) {
  const int64_t blocks = std::clamp<int64_t>(rows.numel() / 65536, 1, 256);
  const at::Tensor starts = indices(blocks + 1, rows);
  const Operand rows_(rows, Operand::plain), order_(order, Operand::plain), starts_(starts, Operand::output);
  check(mps_op_unique_count(stream(), rows_.pointer(), order_.pointer_or_null(), gathered, starts_.pointer()));
  const int64_t count = starts.select(0, blocks).item<int64_t>();
  Distinct result{indices(count, rows), {}, {}, {}};
  if (with_values) result.values = empty({count}, rows.options());
  if (return_inverse) result.inverse = indices(rows.size(0), rows);
  if (return_counts) result.counts = indices(count, rows);
  const Operand heads_(result.heads, Operand::output), values_(result.values, Operand::output), inverse_(result.inverse, Operand::output),
      counts_(result.counts, Operand::output);
  check(mps_op_unique_write(stream(), rows_.pointer(), order_.pointer_or_null(), gathered, starts_.pointer(), heads_.pointer(), values_.pointer_or_null(),
                            inverse_.pointer_or_null(), counts_.pointer_or_null()));
  return result;
}

// Two values at most: counting is enough.
Triple flat_bool(const at::Tensor &self, bool return_inverse, bool return_counts) {
  const int64_t set = self.numel() ? at::count_nonzero(self).item<int64_t>() : 0, unset = self.numel() - set;
  const int64_t count = (set > 0) + (unset > 0);
  const at::Tensor values = at::zeros({count}, self.options());
  if (set > 0) values.select(0, count - 1).fill_(true);
  at::Tensor inverse = indices(0, self), counts = indices(0, self);
  if (return_inverse) {
    inverse = empty(self.sizes(), self.options().dtype(at::kLong));
    if (count == 2)
      inverse.copy_(self);
    else
      inverse.zero_();
  }
  if (return_counts) {
    counts = at::full({count}, unset > 0 ? unset : set, counts.options());
    if (count == 2) counts.select(0, 1).fill_(set);
  }
  return {values, inverse, counts};
}

// 256 values at most: each is counted, then looked up by its value (from the least one on).
Triple flat_bytes(const at::Tensor &self, bool return_inverse, bool return_counts) {
  const int64_t least = self.scalar_type() == at::kChar ? -128 : 0;
  const at::Tensor places = self.reshape({-1}).to(at::kInt).sub_(least), bins = empty({256}, self.options().dtype(at::kLong));
  const Operand places_(places, Operand::plain), bins_(bins, Operand::output);
  check(mps_op_bincount(stream(), places_.pointer(), nullptr, bins_.pointer()));
  const at::Tensor found = bins.nonzero().select(1, 0);
  at::Tensor inverse = indices(0, self), counts = indices(0, self);
  if (return_inverse) {
    const at::Tensor table = at::zeros({256}, inverse.options()).index_copy_(0, found, at::arange(found.size(0), inverse.options()));
    inverse = table.index_select(0, places).view(self.sizes());
  }
  if (return_counts) counts = bins.index_select(0, found);
  return {found.add(least).to(self.scalar_type()), inverse, counts};
}

Triple flat(const at::Tensor &self, bool consecutive, bool return_inverse, bool return_counts) {
  check_type(self, "unique");
  if (self.scalar_type() == at::kBool && !consecutive) return flat_bool(self, return_inverse, return_counts);
  if (self.element_size() == 1 && !consecutive && self.numel() > 256) return flat_bytes(self, return_inverse, return_counts);
  at::Tensor inverse = indices(0, self), counts = indices(0, self);
  if (self.numel() == 0) return {empty({0}, self.options()), return_inverse ? inverse.resize_(self.sizes()) : inverse, counts};
  at::Tensor values = self.reshape({-1}), order;
  if (!consecutive)
    std::tie(values, order) = at::sort(values, /*stable=*/true, 0, false);
  else
    values = values.contiguous();
  const Distinct found = distinct(values.view({-1, 1}), order, /*gathered=*/true, /*with_values=*/true, return_inverse, return_counts);
  return {found.values, return_inverse ? found.inverse.view(self.sizes()) : inverse, return_counts ? found.counts : counts};
}

Triple slices(const at::Tensor &self, int64_t dim, bool consecutive) {
  check_type(self, "unique_dim");
  const auto zeros = std::count(self.sizes().begin(), self.sizes().end(), 0);
  if (self.size(dim) == 0) {
    TORCH_CHECK(zeros == 1, "Number of zero sized dimensions is more than one, so unique cannot be applied ")
    return {empty(self.sizes(), self.options()), indices(0, self), indices(0, self)};
  }
  TORCH_CHECK(zeros == 0, "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied");
  const at::Tensor moved = self.moveaxis(dim, 0).contiguous(), rows = moved.view({moved.size(0), -1});
  at::Tensor order;
  if (!consecutive) {
    order = indices(rows.size(0), rows);
    const Operand rows_(rows, Operand::plain), order_(order, Operand::output);
    check(mps_op_sort_rows(stream(), rows_.pointer(), order_.pointer()));
  }
  const Distinct found = distinct(rows, order, /*gathered=*/false, /*with_values=*/false, true, true);
  const at::Tensor kept = consecutive ? found.heads : order.index_select(0, found.heads);
  at::DimVector sizes(moved.sizes());
  sizes[0] = kept.size(0);
  return {rows.index_select(0, kept).view(sizes).moveaxis(0, dim), found.inverse, found.counts};
}

}  // namespace

// `sorted` asks for no more than is done anyway, as on the CPU.
std::tuple<at::Tensor, at::Tensor> _unique_mps(const at::Tensor &self, bool /*sorted*/, bool return_inverse) {
  const auto [values, inverse, counts] = flat(self, false, return_inverse, false);
  return {values, inverse};
}

Triple _unique2_mps(const at::Tensor &self, bool /*sorted*/, bool return_inverse, bool return_counts) {
  return flat(self, false, return_inverse, return_counts);
}

Triple unique_dim_mps(const at::Tensor &self, int64_t dim, bool /*sorted*/, bool /*return_inverse*/, bool /*return_counts*/) {
  return slices(self, dim, false);
}

Triple unique_dim_consecutive_mps(const at::Tensor &self, int64_t dim, bool /*return_inverse*/, bool /*return_counts*/) {
  return slices(self, dim, true);
}

Triple unique_consecutive_mps(const at::Tensor &self, bool return_inverse, bool return_counts, std::optional<int64_t> dim) {
  if (!dim.has_value() || (*dim == 0 && self.dim() == 1)) return flat(self, true, return_inverse, return_counts);
  return slices(self, *dim, true);
}

}  // namespace openmps::native
