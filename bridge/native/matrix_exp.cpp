/* SPDX-License-Identifier: BSD-3-Clause
 *
 * matrix_exp: the exponential of matrices as products and sums of the device: a Taylor polynomial of degree 18 in seven products (Paterson and
 * Stockmeyer), scaled and squared. One degree for all, so that a matrix gives the same numbers in every batch.
 */
#include <torch/library.h>

#include "bridge/native/linalg.h"

namespace openmps::native {
namespace {

// The polynomial is exact to float's precision up to this norm.
constexpr double kLargestNorm = 3.010066362817634e+00;

at::Tensor polynomial(const at::Tensor &a) {
  constexpr int degree = 18;
  double coefficients[degree + 1] = {1.0};
  for (int i = 1; i <= degree; i++) coefficients[i] = coefficients[i - 1] / i;
  const at::Tensor identity = at::eye(a.size(-1), a.options()), a2 = at::matmul(a, a), a3 = at::matmul(a2, a);
  at::Tensor sum = a3.mul(coefficients[degree]);
  for (int i = degree - 3; i >= 0; i -= 3) {
    const at::Tensor part = a2.mul(coefficients[i + 2]).add_(a, coefficients[i + 1]).add_(identity, coefficients[i]);
    sum.add_(part);
    if (i > 0) sum = at::matmul(sum, a3);
  }
  return sum;
}

// Each matrix of a batch is halved as often as its own norm asks for.
at::Tensor scaled_and_squared(const at::Tensor &a) {
  const at::Tensor norm = a.abs().sum(-2).amax(-1);
  const at::Tensor halvings = norm.div(kLargestNorm).log2().ceil().nan_to_num(0.0, 0.0, 0.0).clamp_min(0.0).unsqueeze(-1).unsqueeze(-1);
  const int64_t most = halvings.max().item<int64_t>();
  at::Tensor result = polynomial(most == 0 ? a : a.mul(at::exp2(halvings.neg())));
  for (int64_t i = 0; i < most; i++) {
    const at::Tensor square = at::matmul(result, result);
    result = a.dim() == 2 ? square : at::where(halvings.gt(i), square, result);
  }
  return result;
}

at::Tensor matrix_exp(const at::Tensor &self) {
  at::native::squareCheckInputs(self, "linalg.matrix_exp");
  at::native::checkFloatingOrComplex(self, "linalg.matrix_exp");
  if (self.numel() == 0) return at::empty_like(self, LEGACY_CONTIGUOUS_MEMORY_FORMAT);
  if (self.size(-1) == 1) return self.exp();
  const at::ScalarType type = self.is_complex() ? at::kComplexFloat : at::kFloat;
  return scaled_and_squared(self.to(type)).to(self.scalar_type());
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, MPS, m) { m.impl("linalg_matrix_exp", TORCH_FN(matrix_exp)); }

}  // namespace openmps::native
