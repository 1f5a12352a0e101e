/* SPDX-License-Identifier: BSD-3-Clause
 *
 * renorm: the checks that PyTorch leaves to the kernel.
 */
#include "bridge/kernels/renorm.h"
#include "bridge/convert.h"
#include "openmps/ops/renorm.h"

namespace openmps::native {

void structured_renorm_out_mps::impl(const at::Tensor &self, const at::Scalar &p, int64_t dim, const at::Scalar &maxnorm, const at::Tensor &out) {
  dim = c10::maybe_wrap_dim(dim, self.dim());
  TORCH_CHECK(self.is_floating_point() || self.is_complex(), "linalg.vector_norm: Expected a floating point or complex tensor as input. Got ",
              self.scalar_type());
  const Operand self_(self, Operand::plain), out_(out, Operand::output);
  check(mps_op_renorm(stream(), self_.pointer(), scalar(p), dim, scalar(maxnorm), out_.pointer()));
}

}  // namespace openmps::native
