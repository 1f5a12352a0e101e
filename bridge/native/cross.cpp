/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cross: refuses results that overlap their inputs, as PyTorch does.
 */
#include "bridge/kernels/cross.h"
#include "bridge/convert.h"
#include "openmps/ops/cross.h"

namespace openmps::native {

void structured_linalg_cross_out::impl(const at::Tensor &self, const at::Tensor &other, int64_t dim, const at::Tensor &out) {
  at::assert_no_internal_overlap(out);
  at::assert_no_overlap(out, self);
  at::assert_no_overlap(out, other);
  const Operand self_(self, Operand::plain), other_(other, Operand::plain), out_(out, Operand::output);
  check(mps_op_linalg_cross(stream(), self_.pointer(), other_.pointer(), dim, out_.pointer()));
}

}  // namespace openmps::native
