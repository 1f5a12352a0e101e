/* SPDX-License-Identifier: BSD-3-Clause
 *
 * compare: torch.equal, whose answer is a Python bool: it waits.
 */
#include "bridge/convert.h"
#include "bridge/kernels/compare.h"
#include "openmps/ops/compare.h"

namespace openmps::native {

bool mps_equal(const at::Tensor &self, const at::Tensor &other) {
  TORCH_CHECK(self.device() == other.device(), "Expected all tensors to be on the same device, but found at least two devices, ", self.device(), " and ",
              other.device(), "!");
  if (!self.is_same_size(other)) return false;
  if (self.numel() == 0) return true;
  const at::Tensor answer = empty({}, self.options().dtype(at::kBool));
  const Operand self_(self, Operand::plain), other_(other, Operand::plain), answer_(answer, Operand::output);
  check(mps_op_equal(stream(), self_.pointer(), other_.pointer(), answer_.pointer()));
  return answer.item<bool>();
}

}  // namespace openmps::native
