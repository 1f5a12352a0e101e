/* SPDX-License-Identifier: BSD-3-Clause
 *
 * scan: running results. PyTorch's own kernels refuse dtypes by name; so do these.
 */
#include <ATen/WrapDimUtils.h>
#include <ATen/native/Resize.h>

#include "bridge/convert.h"
#include "bridge/kernels/scan.h"
#include "openmps/ops/scan.h"

namespace openmps::native {
namespace {

enum Accepted { numbers, floats, ordered };

void accept(const char *name, at::ScalarType type, Accepted accepted) {
  const bool small = at::isFloatingType(type) || type == at::kComplexFloat;
  const bool integer = at::isIntegralType(type, accepted == ordered) && type != at::kUInt16 && type != at::kUInt32 && type != at::kUInt64;
  const bool fits = accepted == floats ? small : accepted == numbers ? small || integer : at::isFloatingType(type) || integer;
  TORCH_CHECK_NOT_IMPLEMENTED(fits, "\"", name, "\" not implemented for '", at::toString(type), "'");
}

using Running = mps_status (*)(mps_stream *, const mps_tensor *, int64_t, const mps_tensor *);

void run(Running function, const char *name, Accepted accepted, const at::Tensor &self, int64_t dim, const at::Tensor &out) {
  if (out.numel() == 0) return;
  if (self.dim() > 0) accept(name, out.scalar_type(), accepted);
  if (self.dim() == 0) {
    out.copy_(self);
    return;
  }
  const Operand self_(self, Operand::plain), out_(out, Operand::output);
  check(function(stream(), self_.pointer(), dim, out_.pointer()));
}

using RunningExtreme = mps_status (*)(mps_stream *, const mps_tensor *, int64_t, const mps_tensor *, const mps_tensor *);

void run_extreme(RunningExtreme function, const char *name, const at::Tensor &self, int64_t dim, const at::Tensor &values, const at::Tensor &indices) {
  accept(name, self.scalar_type(), ordered);
  const Operand self_(self, Operand::plain), values_(values, Operand::output), indices_(indices, Operand::output);
  check(function(stream(), self_.pointer(), at::maybe_wrap_dim(dim, self.dim()), values_.pointer(), indices_.pointer()));
}

}  // namespace

void structured_cumsum_out_mps::impl(const at::Tensor &self, int64_t dim, std::optional<at::ScalarType>, const at::Tensor &out) {
  run(mps_op_cumsum, "cumsum_out_cpu", numbers, self, dim, out);
}
void structured_cumprod_out_mps::impl(const at::Tensor &self, int64_t dim, std::optional<at::ScalarType>, const at::Tensor &out) {
  run(mps_op_cumprod, "cumprod_out_cpu", numbers, self, dim, out);
}

at::Tensor &_logcumsumexp_out_mps(const at::Tensor &self, int64_t dim, at::Tensor &out) {
  at::native::resize_output(out, self.sizes());
  run(mps_op_logcumsumexp, "logcumsumexp_out_cpu", floats, self, at::maybe_wrap_dim(dim, self.dim()), out);
  return out;
}
at::Tensor _logcumsumexp_mps(const at::Tensor &self, int64_t dim) {
  at::Tensor out = at::empty_like(self, at::MemoryFormat::Contiguous);
  return _logcumsumexp_out_mps(self, dim, out);
}

void cummax_helper_mps(const at::Tensor &self, at::Tensor &values, at::Tensor &indices, int64_t dim) {
  run_extreme(mps_op_cummax, "cummax_cpu", self, dim, values, indices);
}
void cummin_helper_mps(const at::Tensor &self, at::Tensor &values, at::Tensor &indices, int64_t dim) {
  run_extreme(mps_op_cummin, "cummin_cpu", self, dim, values, indices);
}

}  // namespace openmps::native
