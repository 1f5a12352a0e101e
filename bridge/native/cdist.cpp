/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cdist: distances between rows, whose batches broadcast. pdist's kernels are not in upstream's list for MPS; they are registered here.
 */
#include <ATen/ExpandUtils.h>

#include "bridge/convert.h"
#include "bridge/kernels/cdist.h"
#include "openmps/ops/cdist.h"

namespace openmps::native {
namespace {

// A batch of matrices that broadcast with another's, and its shape with one dimension for the batch.
struct Batch {
  at::DimVector batch;
  at::Tensor x1, x2;

  Batch(const at::Tensor &a, const at::Tensor &b)
      : batch(at::infer_size_dimvector(a.sizes().slice(0, static_cast<size_t>(a.dim() - 2)), b.sizes().slice(0, static_cast<size_t>(b.dim() - 2)))),
        x1(folded(a)), x2(folded(b)) {}
  at::DimVector with(int64_t rows, int64_t columns) const {
    at::DimVector sizes(batch);
    sizes.push_back(rows);
    sizes.push_back(columns);
    return sizes;
  }

 private:
  at::Tensor folded(const at::Tensor &x) const {
    return x.expand(with(x.size(-2), x.size(-1))).reshape({c10::multiply_integers(batch), x.size(-2), x.size(-1)});
  }
};

at::Tensor pdist_forward(const at::Tensor &self, double p) {
  TORCH_CHECK(self.is_contiguous(), "_pdist_forward requires contiguous input");
  const int64_t n = self.size(0);
  const at::Tensor out = empty({n <= 1 ? 0 : n * (n - 1) / 2}, self.options());
  if (out.numel() != 0 && self.size(1) == 0) return out.zero_();
  const Operand self_(self, Operand::plain), out_(out, Operand::output);
  check(mps_op_pdist(stream(), self_.pointer(), p, out_.pointer()));
  return out;
}

at::Tensor pdist_backward(const at::Tensor &grad, const at::Tensor &self, double p, const at::Tensor &pdist) {
  TORCH_CHECK(self.is_contiguous(), "_pdist_backward requires self to be contiguous");
  TORCH_CHECK(pdist.is_contiguous(), "_pdist_backward requires pdist to be contiguous");
  const at::Tensor out = at::empty_like(self, at::MemoryFormat::Contiguous);
  const Operand grad_(grad, Operand::plain), self_(self, Operand::plain), pdist_(pdist, Operand::plain), out_(out, Operand::output);
  check(mps_op_pdist_backward(stream(), grad_.pointer(), self_.pointer(), p, pdist_.pointer(), out_.pointer()));
  return out;
}

TORCH_LIBRARY_IMPL(aten, MPS, m) {
  m.impl("_pdist_forward", TORCH_FN(pdist_forward));
  m.impl("_pdist_backward", TORCH_FN(pdist_backward));
}

}  // namespace

at::Tensor _cdist_forward(const at::Tensor &x1, const at::Tensor &x2, double p, std::optional<int64_t> compute_mode) {
  TORCH_CHECK(x1.dim() >= 2, "cdist only supports at least 2D tensors, X1 got: ", x1.dim(), "D");
  TORCH_CHECK(x2.dim() >= 2, "cdist only supports at least 2D tensors, X2 got: ", x2.dim(), "D");
  TORCH_CHECK(x1.size(-1) == x2.size(-1), "X1 and X2 must have the same number of columns. X1: ", x1.size(-1), " X2: ", x2.size(-1));
  TORCH_CHECK(at::isFloatingType(x1.scalar_type()), "cdist only supports floating-point dtypes, X1 got: ", x1.scalar_type());
  TORCH_CHECK(at::isFloatingType(x2.scalar_type()), "cdist only supports floating-point dtypes, X2 got: ", x2.scalar_type());
  TORCH_CHECK(p >= 0, "cdist only supports non-negative p values");
  const int64_t mode = compute_mode.value_or(0), rows = x1.size(-2), others = x2.size(-2);
  TORCH_CHECK(mode >= 0 && mode <= 2, "possible modes: 0, 1, 2, but was: ", mode);
  const Batch operands(x1, x2);
  const at::DimVector sizes = operands.with(rows, others);
  if (c10::multiply_integers(sizes) != 0 && x1.size(-1) != 0 && p == 2 && (mode == 1 || (mode == 0 && (rows > 25 || others > 25)))) {
    // by a matrix product, which is faster and less exact
    const bool single = operands.x1.size(0) == 1;
    return at::_euclidean_dist(single ? x1 : operands.x1, single ? x2 : operands.x2).view(sizes);
  }
  const at::Tensor out = empty(sizes, x1.options());
  if (x1.size(-1) == 0) return out.zero_();
  if (out.numel() == 0) return out;
  const Operand x1_(operands.x1, Operand::plain), x2_(operands.x2, Operand::plain), out_(out, Operand::output);
  check(mps_op_cdist(stream(), x1_.pointer(), x2_.pointer(), p, out_.pointer()));
  return out;
}

at::Tensor _cdist_backward(const at::Tensor &grad, const at::Tensor &x1, const at::Tensor &x2, double p, const at::Tensor &cdist) {
  const Batch operands(x1, x2);
  const at::DimVector sizes = operands.with(x1.size(-2), x1.size(-1));
  if (x1.size(-2) == 0 || x2.size(-2) == 0 || x1.size(-1) == 0 || operands.x1.size(0) == 0) return at::zeros_like(x1, x1.options());
  const at::Tensor out = empty(sizes, x1.options());
  const Operand grad_(grad, Operand::plain), x1_(operands.x1, Operand::plain), x2_(operands.x2, Operand::plain), cdist_(cdist, Operand::plain),
      out_(out, Operand::output);
  check(mps_op_cdist_backward(stream(), grad_.pointer(), x1_.pointer(), x2_.pointer(), p, cdist_.pointer(), out_.pointer()));
  return out;
}

}  // namespace openmps::native
