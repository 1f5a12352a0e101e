/* SPDX-License-Identifier: BSD-3-Clause
 *
 * repeat_interleave: the length of the result is read, which waits, unless it is given; then errors are raised at the next wait.
 */
#include "bridge/convert.h"
#include "bridge/kernels/repeat_interleave.h"
#include "openmps/ops/repeat_interleave.h"

namespace openmps::native {

at::Tensor repeat_interleave_mps(const at::Tensor &repeats, std::optional<int64_t> output_size) {
  const at::ScalarType type = repeats.scalar_type();
  TORCH_CHECK_NOT_IMPLEMENTED(type == at::kLong || type == at::kInt, "\"repeat_interleave_cpu\" not implemented for '", type, "'");
  TORCH_CHECK(repeats.dim() == 1, "repeat_interleave only accept 1D vector as repeat");
  if (repeats.size(0) == 0) return at::empty_like(repeats, at::MemoryFormat::Contiguous);
  const int64_t count = repeats.size(0);
  const at::Tensor ends = empty({count + 1}, repeats.options().dtype(at::kLong));
  const Operand repeats_(repeats, Operand::plain), ends_(ends, Operand::output);
  check(mps_op_repeat_ends(stream(), repeats_.pointer(), ends_.pointer()));
  int64_t total = output_size.value_or(0);
  if (!output_size.has_value()) {
    const at::Tensor known = ends.narrow(0, count - 1, 2).to(at::kCPU);  // waits
    total = known.const_data_ptr<int64_t>()[0];
    TORCH_CHECK(known.const_data_ptr<int64_t>()[1] >= 0, "repeats can not be negative");
  }
  const at::Tensor out = empty({total}, repeats.options());
  const Operand out_(out, Operand::output);
  check(mps_op_repeat_interleave(stream(), repeats_.pointer(), ends_.pointer(), out_.pointer()));
  return out;
}

}  // namespace openmps::native
