/* SPDX-License-Identifier: BSD-3-Clause
 *
 * assert: assertions on the device, raised at the next wait.
 */
#include "bridge/convert.h"
#include "bridge/kernels/assert.h"
#include "openmps/ops/assert.h"

namespace openmps::native {

void _assert_async_mps(const at::Tensor &self) {
  const Operand self_(self, Operand::plain);
  check(mps_op_assert_async(stream(), self_.pointer(), nullptr));
}

void _assert_async_msg_mps(const at::Tensor &self, std::string_view assert_msg) {
  const String message(assert_msg);
  const Operand self_(self, Operand::plain);
  check(mps_op_assert_async(stream(), self_.pointer(), assert_msg.empty() ? "Assertion is failed" : message.text()));
}

}  // namespace openmps::native
