/* SPDX-License-Identifier: BSD-3-Clause
 *
 * linalg: Cholesky, LU and LDL factors and what is solved with them: layouts, broadcasting and checks as on the CPU.
 */
#include "bridge/native/linalg.h"

#include <torch/library.h>

#include <algorithm>

#include "bridge/kernels/linalg.h"
#include "bridge/python.h"
#include "openmps/ops/linalg.h"

namespace openmps::native {
namespace {

void run_cholesky(const at::Tensor &self, bool upper, const at::Tensor &factor, const at::Tensor &info) {
  const Operand self_(self, Operand::flagged), factor_(factor, Operand::output), info_(info, Operand::output);
  check(mps_op_linalg_cholesky(stream(), self_.pointer(), upper, factor_.pointer(), info_.pointer()));
}

void run_lu_factor(const at::Tensor &matrices, const at::Tensor &lu, const at::Tensor &pivots, const at::Tensor &info) {
  const Operand matrices_(matrices, Operand::flagged), lu_(lu, Operand::output), pivots_(pivots, Operand::output), info_(info, Operand::output);
  check(mps_op_linalg_lu_factor(stream(), matrices_.pointer(), lu_.pointer(), pivots_.pointer(), info_.pointer()));
}

// As PyTorch's, which asks the device first whether there is any error.
void check_errors(const at::Tensor &info, std::string_view name, bool is_matrix) {
  TORCH_CHECK(info.scalar_type() == at::kInt, name, ": expected info of dtype Int, but got ", info.scalar_type());
  if (info.numel() == 0) return;
  const at::Tensor in_order = info.contiguous(), found = at::detail::empty_cpu(info.sizes(), at::kInt);
  const mps_tensor descriptor = tensor(in_order);
  {
    ReleaseGil unlocked;
    check(mps_stream_read(stream(), descriptor.buffer, descriptor.offset, found.mutable_data_ptr(), found.nbytes()));
  }
  const int *values = found.const_data_ptr<int>();
  if (std::any_of(values, values + found.numel(), [](int value) { return value != 0; })) at::_linalg_check_errors(found, name, is_matrix);
}

at::Tensor expand_batch(const at::Tensor &t, at::IntArrayRef like, int64_t inner) {
  std::vector<int64_t> sizes = like.slice(0, like.size() - 2).vec();
  for (int64_t d = t.dim() - inner; d < t.dim(); d++) sizes.push_back(t.size(d));
  return t.expand(sizes);
}

void run_lu_solve(const at::Tensor &lu, const at::Tensor &pivots, const at::Tensor &b, bool left, bool adjoint, const at::Tensor &out) {
  if (out.numel() == 0) return;
  if (!left && out.is_complex()) {
    // The adjoint system, as on the CPU, whose solution is conjugated lazily.
    run_lu_solve(lu, pivots, b.mH(), true, !adjoint, out.mT());
    out._set_conj(!out.is_conj());
    return;
  }
  const at::Tensor lu_wide = expand_batch(lu, out.sizes(), 2), pivots_wide = expand_batch(pivots, out.sizes(), 1), b_wide = expand_batch(b, out.sizes(), 2);
  const Operand lu_(lu_wide, Operand::flagged), pivots_(pivots_wide, Operand::flagged), b_(b_wide, Operand::flagged), out_(out, Operand::output);
  check(mps_op_linalg_lu_solve(stream(), lu_.pointer(), pivots_.pointer(), b_.pointer(), left, adjoint, out_.pointer()));
}

void run_triangular(const at::Tensor &a, const at::Tensor &b, bool upper, bool left, bool unitriangular, bool transpose, const at::Tensor &out) {
  const at::Tensor sides = b.to(out.scalar_type());
  const Operand a_(a, Operand::flagged), b_(sides, Operand::flagged), out_(out, Operand::output);
  check(mps_op_linalg_solve_triangular(stream(), a_.pointer(), b_.pointer(), upper, left, unitriangular, transpose, out_.pointer()));
}

// Factors A, reports, then solves. lu and pivots are the factors of A itself, as autograd expects of this device.
void run_solve(const at::Tensor &a, const at::Tensor &b, bool left, bool check_errors, const char *name, const at::Tensor &result, const at::Tensor &lu,
               const at::Tensor &pivots, const at::Tensor &info) {
  if (a.numel() == 0)
    info.zero_();
  else
    run_lu_factor(a, lu, pivots, info);
  if (check_errors) at::_linalg_check_errors(info, name, a.dim() == 2);
  const bool vectors = at::native::linalg_solve_is_vector_rhs(a, b);
  run_lu_solve(lu, pivots, vectors ? b.unsqueeze(-1) : b, left, false, vectors ? result.unsqueeze(-1) : result);
}

}  // namespace

// ---- Cholesky ----

void structured_linalg_cholesky_ex_out::impl(const at::Tensor &self, bool upper, bool check_errors, const at::Tensor &L, const at::Tensor &info) {
  if (L.numel() == 0) {
    info.zero_();
    return;
  }
  run_cholesky(self, upper, L, info);
  if (check_errors) at::_linalg_check_errors(info, "linalg.cholesky_ex", self.dim() == 2);
}

at::Tensor cholesky(const at::Tensor &self, bool upper) {
  if (self.numel() == 0) return at::empty_like(self, LEGACY_CONTIGUOUS_MEMORY_FORMAT);
  at::native::squareCheckInputs(self, "cholesky");
  at::Tensor factor = empty_columns(self.sizes(), self.options()), info = empty_info(self);
  run_cholesky(self, upper, factor, info);
  at::_linalg_check_errors(info, "cholesky", self.dim() == 2);
  return factor;
}

at::Tensor &cholesky_inverse_out(const at::Tensor &self, bool upper, at::Tensor &out) {
  at::native::squareCheckInputs(self, "cholesky_inverse");
  at::native::checkSameDevice("cholesky_inverse", out, self);
  at::native::checkLinalgCompatibleDtype("cholesky_inverse", out, self);
  const at::Tensor info = empty_info(self);
  into(out, self.sizes(), self.scalar_type(), [&](const at::Tensor &target) {
    if (self.numel() == 0) return;
    const Operand self_(self, Operand::flagged), target_(target, Operand::output), info_(info, Operand::output);
    check(mps_op_cholesky_inverse(stream(), self_.pointer(), upper, target_.pointer(), info_.pointer()));
  });
  at::_linalg_check_errors(info, "cholesky_inverse", out.dim() == 2);
  return out;
}

at::Tensor _cholesky_solve_helper_mps(const at::Tensor &self, const at::Tensor &A, bool upper) {
  at::Tensor out = empty_columns(self.sizes(), self.options());
  if (out.numel() == 0) return out;
  const Operand self_(self, Operand::flagged), factor_(A, Operand::flagged), out_(out, Operand::output);
  check(mps_op_cholesky_solve(stream(), self_.pointer(), factor_.pointer(), upper, out_.pointer()));
  return out;
}

// ---- LU ----

void structured_linalg_lu_factor_ex_out_mps::impl(const at::Tensor &A, bool pivot, bool check_errors, const at::Tensor &LU, const at::Tensor &pivots,
                                                  const at::Tensor &info) {
  if (A.numel() == 0) {
    info.zero_();
    return;
  }
  TORCH_CHECK(pivot, "linalg.lu_factor: LU without pivoting is not implemented on the CPU");
  run_lu_factor(A, LU, pivots, info);
  if (check_errors) at::_linalg_check_errors(info, "torch.linalg.lu_factor_ex", A.dim() == 2);
}

void structured_lu_unpack_out::impl(const at::Tensor &LU, const at::Tensor &pivots, bool unpack_data, bool unpack_pivots, const at::Tensor &P,
                                    const at::Tensor &L, const at::Tensor &U) {
  const int64_t m = LU.size(-2), n = LU.size(-1);
  at::Tensor lower = L, upper = U;
  if (unpack_data && (m > n || LU.is_same(L))) {
    // In this order: LU may be L.
    at::triu_out(upper, m == n ? LU : LU.narrow(-2, 0, n), 0);
    at::tril_out(lower, LU, -1);
    lower.diagonal(0, -2, -1).fill_(1);
  } else if (unpack_data) {
    at::tril_out(lower, m == n ? LU : LU.narrow(-1, 0, m), -1);
    lower.diagonal(0, -2, -1).fill_(1);
    at::triu_out(upper, LU, 0);
  }
  if (!unpack_pivots) return;
  const at::Tensor permutation = empty(P.sizes().slice(0, P.dim() - 1), pivots.options().dtype(at::kLong)), in_order = pivots.contiguous();
  const Operand pivots_(in_order, Operand::plain), permutation_(permutation, Operand::output);
  check(mps_op_unpack_pivots(stream(), pivots_.pointer(), permutation_.pointer()));
  P.zero_();
  at::Tensor matrix = P;
  matrix.scatter_(-2, permutation.unsqueeze(-2), 1.0);
}

void structured_linalg_lu_solve_out::impl(const at::Tensor &LU, const at::Tensor &pivots, const at::Tensor &B, bool left, bool adjoint,
                                          const at::Tensor &out) {
  run_lu_solve(LU, pivots, B, left, adjoint, out);
}

void structured__linalg_solve_ex_out_mps::impl(const at::Tensor &A, const at::Tensor &B, bool left, bool check_errors, const at::Tensor &result,
                                               const at::Tensor &LU, const at::Tensor &pivots, const at::Tensor &info) {
  run_solve(A, B, left, check_errors, "torch.linalg.solve_ex", result, LU, pivots, info);
}

void structured_linalg_inv_ex_out_mps::impl(const at::Tensor &A, bool check_errors, const at::Tensor &inverse, const at::Tensor &info) {
  fill_identity(inverse);
  at::DimVector pivot_sizes(A.sizes().slice(0, A.dim() - 1));
  const at::Tensor lu = empty_columns(A.sizes(), A.options()), pivots = empty(pivot_sizes, A.options().dtype(at::kInt));
  run_solve(A, inverse, true, false, "linalg.inv_ex", inverse, lu, pivots, info);
  if (check_errors) at::_linalg_check_errors(info, "linalg.inv_ex", A.dim() == 2);
}

// ---- triangles ----

at::Tensor &linalg_solve_triangular_mps_out(const at::Tensor &A, const at::Tensor &B, bool upper, bool left, bool unitriangular, at::Tensor &out) {
  at::native::checkInputsSolver(A, B, left, "linalg.solve_triangular");
  const auto [b, a] = at::native::_linalg_broadcast_batch_dims(B, A, nullptr);
  // As on the CPU: rows where A lies in rows (of conjugates), else columns.
  if (a.transpose(-2, -1).is_contiguous() && a.is_conj()) {
    at::native::resize_output(out, b.sizes());
  } else if (at::native::resize_output_check(out, b.sizes())) {
    out.resize_(b.transpose(-2, -1).sizes(), at::MemoryFormat::Contiguous);
    out.transpose_(-2, -1);
  }
  run_triangular(a, b, upper, left, unitriangular, false, out);
  return out;
}

at::Tensor linalg_solve_triangular_mps(const at::Tensor &A, const at::Tensor &B, bool upper, bool left, bool unitriangular) {
  at::Tensor out = empty({0}, A.options());
  linalg_solve_triangular_mps_out(A, B, upper, left, unitriangular, out);
  return out;
}

void structured_triangular_solve_mps_out::impl(const at::Tensor &self, const at::Tensor &A, bool upper, bool transpose, bool unitriangular,
                                               const at::Tensor &X, const at::Tensor &M) {
  const auto [b, a] = at::native::_linalg_broadcast_batch_dims(self, A, "triangular_solve");
  at::Tensor cloned = M;
  cloned.copy_(a);
  run_triangular(a, b, upper, true, unitriangular, transpose, X);
}

// ---- LDL ----

void structured_linalg_ldl_factor_ex_out::impl(const at::Tensor &self, bool hermitian, bool check_errors, const at::Tensor &LD, const at::Tensor &pivots,
                                               const at::Tensor &info) {
  if (self.numel() == 0) {
    info.zero_();
    return;
  }
  at::Tensor factors = LD;
  at::tril_out(factors, self);
  const Operand ld_(factors, Operand::output), pivots_(pivots, Operand::output), info_(info, Operand::output);
  check(mps_op_linalg_ldl_factor(stream(), ld_.pointer(), hermitian, ld_.pointer(), pivots_.pointer(), info_.pointer()));
  if (check_errors) at::_linalg_check_errors(info, "torch.linalg.ldl_factor_ex", self.dim() == 2);
}

void structured_linalg_ldl_solve_out::impl(const at::Tensor &LD, const at::Tensor &pivots, const at::Tensor &B, bool hermitian, const at::Tensor &out) {
  if (LD.numel() == 0 || pivots.numel() == 0 || out.numel() == 0) return;
  const at::Tensor ld = expand_batch(LD, out.sizes(), 2), pivots_wide = expand_batch(pivots, out.sizes(), 1), b = expand_batch(B, out.sizes(), 2);
  const Operand ld_(ld, Operand::flagged), pivots_(pivots_wide, Operand::flagged), b_(b, Operand::flagged), out_(out, Operand::output);
  check(mps_op_linalg_ldl_solve(stream(), ld_.pointer(), pivots_.pointer(), b_.pointer(), hermitian, out_.pointer()));
}

TORCH_LIBRARY_IMPL(aten, MPS, m) { m.impl("_linalg_check_errors", TORCH_FN(check_errors)); }

}  // namespace openmps::native
