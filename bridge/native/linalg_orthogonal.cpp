/* SPDX-License-Identifier: BSD-3-Clause
 *
 * linalg_orthogonal: QR and Householder products, singular values, eigenvalues, least squares.
 */
#include "bridge/native/linalg.h"

#include "bridge/kernels/linalg_orthogonal.h"
#include "openmps/ops/linalg.h"

namespace openmps::native {
namespace {

using at::native::checkLinalgCompatibleDtype;
using at::native::checkSameDevice;

void run_geqrf(const at::Tensor &self, const at::Tensor &a, const at::Tensor &tau) {
  if (a.numel() == 0) return;
  const Operand self_(self, Operand::flagged), a_(a, Operand::output), tau_(tau, Operand::output);
  check(mps_op_geqrf(stream(), self_.pointer(), a_.pointer(), tau_.pointer()));
}

void run_householder(const at::Tensor &input, const at::Tensor &tau, const at::Tensor &out) {
  if (out.numel() == 0) return;
  const Operand input_(input, Operand::flagged), tau_(tau, Operand::flagged), out_(out, Operand::output);
  check(mps_op_linalg_householder_product(stream(), input_.pointer(), tau_.pointer(), out_.pointer()));
}

at::DimVector tau_sizes(const at::Tensor &matrices, int64_t count) {
  at::DimVector sizes = batch_of(matrices);
  sizes.push_back(count);
  return sizes;
}

}  // namespace

// ---- QR ----

void structured_linalg_qr_out_mps::impl(const at::Tensor &A, std::string_view mode, const at::Tensor &Q, const at::Tensor &R) {
  const int64_t m = A.size(-2), n = A.size(-1), k = std::min(m, n);
  const auto [compute_q, reduced] = at::native::_parse_qr_mode(mode);
  const at::Tensor tau = empty(tau_sizes(A, k), A.options());
  // Factored where Q goes, else where R goes, else in memory of its own.
  at::Tensor factors = R, upper = R;
  if (compute_q && m > n)
    factors = reduced ? Q : Q.narrow(-1, 0, n);
  else if (m > n)
    factors = empty_columns(A.sizes(), A.options());
  run_geqrf(A, factors, tau);
  if (compute_q && m > n && !reduced) {
    at::triu_out(upper, factors);
  } else if (m > n) {
    at::triu_out(upper, factors.narrow(-2, 0, n));
  }
  if (compute_q) {
    if (m <= n && Q.numel() > 0) {
      at::Tensor q = Q;
      q.copy_(factors.narrow(-1, 0, m));
    }
    run_householder(Q, tau, Q);
  }
  if (m <= n) upper.triu_();
}

std::tuple<at::Tensor &, at::Tensor &> geqrf_out(const at::Tensor &self, at::Tensor &a, at::Tensor &tau) {
  TORCH_CHECK(self.dim() >= 2, "torch.geqrf: input must have at least 2 dimensions.");
  checkSameDevice("torch.geqrf", a, self, "a");
  checkSameDevice("torch.geqrf", tau, self, "tau");
  checkLinalgCompatibleDtype("torch.geqrf", a, self, "a");
  checkLinalgCompatibleDtype("torch.geqrf", tau, self, "tau");
  const at::Tensor factors = empty(tau_sizes(self, std::min(self.size(-2), self.size(-1))), self.options());
  into(a, self.sizes(), self.scalar_type(), [&](const at::Tensor &target) { run_geqrf(self, target, factors); });
  at::native::resize_output(tau, factors.sizes());
  tau.copy_(factors);
  return {a, tau};
}

std::tuple<at::Tensor, at::Tensor> geqrf(const at::Tensor &self) {
  at::Tensor a = empty({0}, self.options()), tau = empty({0}, self.options());
  geqrf_out(self, a, tau);
  return {a, tau};
}

at::Tensor &linalg_householder_product_out(const at::Tensor &input, const at::Tensor &tau, at::Tensor &out) {
  static constexpr const char *name = "torch.linalg.householder_product: ";
  TORCH_CHECK(input.dim() >= 2, name, "input must have at least 2 dimensions.");
  TORCH_CHECK(input.size(-2) >= input.size(-1), name, "input.shape[-2] must be greater than or equal to input.shape[-1]");
  TORCH_CHECK(input.size(-1) >= tau.size(-1), name, "input.shape[-1] must be greater than or equal to tau.shape[-1]");
  TORCH_CHECK(input.dim() - tau.dim() == 1, name, "Expected tau to have one dimension less than input, but got tau.ndim equal to ", tau.dim(),
              " and input.ndim is equal to ", input.dim());
  const at::IntArrayRef batch = tau.sizes().slice(0, tau.dim() - 1);
  TORCH_CHECK(batch == at::IntArrayRef(batch_of(input)), name, "Expected batch dimensions of tau to be equal to input.shape[:-2], but got ", batch);
  TORCH_CHECK(tau.scalar_type() == input.scalar_type(), name, "tau dtype ", tau.scalar_type(), " does not match input dtype ", input.scalar_type());
  checkSameDevice("torch.linalg.householder_product", tau, input, "tau");
  checkSameDevice("torch.linalg.householder_product", out, input);
  checkLinalgCompatibleDtype("torch.linalg.householder_product", out, input);
  return into(out, input.sizes(), input.scalar_type(), [&](const at::Tensor &target) { run_householder(input, tau, target); });
}

at::Tensor &ormqr_out(const at::Tensor &self, const at::Tensor &tau, const at::Tensor &other, bool left, bool transpose, at::Tensor &out) {
  static constexpr const char *name = "torch.ormqr: ";
  TORCH_CHECK(self.dim() >= 2, name, "input must have at least 2 dimensions.");
  TORCH_CHECK(other.dim() >= 2, name, "other must have at least 2 dimensions.");
  const int64_t side = left ? -2 : -1;
  TORCH_CHECK(other.size(side) == self.size(-2), name, "other.shape[", side, "] must be equal to input.shape[-2]");
  TORCH_CHECK(tau.size(-1) == std::min(other.size(side), self.size(-1)), name, "tau.shape[-1] must be equal to min(other.shape[", side,
              "], input.shape[-1])");
  TORCH_CHECK(self.dim() - tau.dim() == 1, name, "Expected tau to have one dimension less than input, but got tau.ndim equal to ", tau.dim(),
              " and input.ndim is equal to ", self.dim());
  TORCH_CHECK(self.dim() == other.dim(), name, "Expected other to have the same number of dimensions as input, but got other.ndim equal to ", other.dim(),
              " and input.ndim is equal to ", self.dim());
  const at::DimVector batch = batch_of(self);
  const at::IntArrayRef tau_batch = tau.sizes().slice(0, tau.dim() - 1);
  TORCH_CHECK(tau_batch == at::IntArrayRef(batch), name, "Expected batch dimensions of tau to be equal to input.shape[:-2], but got ", tau_batch);
  TORCH_CHECK(batch_of(other) == batch, name, "Expected batch dimensions of other to be equal to input.shape[:-2], but got ", batch_of(other));
  TORCH_CHECK(tau.scalar_type() == self.scalar_type(), name, "Expected input and tau to have the same dtype, but input has dtype", self.scalar_type(),
              " and tau has dtype ", tau.scalar_type());
  TORCH_CHECK(other.scalar_type() == self.scalar_type(), name, "Expected input and other to have the same dtype, but input has dtype", self.scalar_type(),
              " and other has dtype ", other.scalar_type());
  checkSameDevice("torch.ormqr", tau, self, "tau");
  checkSameDevice("torch.ormqr", other, self, "other");
  TORCH_CHECK(out.scalar_type() == self.scalar_type(), name, "Expected input and result to have the same dtype, but input has dtype", self.scalar_type(),
              " and result has dtype ", out.scalar_type());
  checkSameDevice("torch.ormqr", out, self);
  return into(out, other.sizes(), self.scalar_type(), [&](const at::Tensor &target) {
    if (target.numel() == 0) return;
    const Operand self_(self, Operand::flagged), tau_(tau, Operand::flagged), other_(other, Operand::flagged), target_(target, Operand::output);
    check(mps_op_ormqr(stream(), self_.pointer(), tau_.pointer(), other_.pointer(), left, transpose, target_.pointer()));
  });
}

at::Tensor ormqr(const at::Tensor &self, const at::Tensor &tau, const at::Tensor &other, bool left, bool transpose) {
  at::Tensor out = empty({0}, self.options());
  ormqr_out(self, tau, other, left, transpose, out);
  return out;
}

// ---- spectra ----

void structured__linalg_svd_out::impl(const at::Tensor &A, bool full_matrices, bool compute_uv, std::optional<std::string_view> driver, const at::Tensor &U,
                                      const at::Tensor &S, const at::Tensor &Vh) {
  TORCH_CHECK(!driver.has_value(), "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend.");
  if (A.numel() == 0) {
    if (!compute_uv || !full_matrices) return;
    if (U.numel() != 0) fill_identity(U);
    if (Vh.numel() != 0) fill_identity(Vh);
    return;
  }
  const at::Tensor info = empty_info(A), none;
  const Operand matrices_(A, Operand::flagged), u_(compute_uv ? U : none, Operand::output), s_(S, Operand::output);
  const Operand vh_(compute_uv ? Vh : none, Operand::output), info_(info, Operand::output);
  check(mps_op_linalg_svd(stream(), matrices_.pointer(), full_matrices, u_.pointer_or_null(), s_.pointer(), vh_.pointer_or_null(), info_.pointer()));
  at::_linalg_check_errors(info, "linalg.svd", A.dim() == 2);
}

void structured__linalg_eigh_out::impl(const at::Tensor &A, std::string_view uplo, bool compute_v, const at::Tensor &eigenvalues,
                                       const at::Tensor &eigenvectors) {
  if (A.numel() == 0) return;
  const at::Tensor info = empty_info(A), none;
  const Operand matrices_(A, Operand::flagged), values_(eigenvalues, Operand::output), vectors_(compute_v ? eigenvectors : none, Operand::output);
  const Operand info_(info, Operand::output);
  check(mps_op_linalg_eigh(stream(), matrices_.pointer(), uplo[0] == 'U' || uplo[0] == 'u', compute_v, values_.pointer(), vectors_.pointer_or_null(),
                           info_.pointer()));
  at::_linalg_check_errors(info, "linalg.eigh", A.dim() == 2);
}

namespace {

void run_eig(const char *name, const at::Tensor &self, const at::Tensor &values, const at::Tensor &vectors) {
  if (self.numel() == 0) return;
  const at::Tensor info = empty_info(self);
  const Operand self_(self, Operand::flagged), values_(values, Operand::output), vectors_(vectors, Operand::output), info_(info, Operand::output);
  check(mps_op_linalg_eig(stream(), self_.pointer(), values_.pointer(), vectors_.pointer_or_null(), info_.pointer()));
  at::_linalg_check_errors(info, name, self.dim() == 2);
}

at::DimVector value_sizes(const at::Tensor &matrices) { return at::DimVector(matrices.sizes().slice(0, matrices.dim() - 1)); }

// Values that fill() wrote, in an out= tensor.
void give(at::Tensor &out, const at::Tensor &values) {
  at::native::resize_output(out, values.sizes());
  out.copy_(values);
}

}  // namespace

std::tuple<at::Tensor &, at::Tensor &> linalg_eig_out(const at::Tensor &self, at::Tensor &eigenvalues, at::Tensor &eigenvectors) {
  TORCH_CHECK(self.isfinite().all().item<bool>(), "torch.linalg.eig: input tensor should not contain infs or NaNs.");
  at::native::squareCheckInputs(self, "linalg.eig");
  const at::ScalarType type = c10::toComplexType(self.scalar_type());
  checkLinalgCompatibleDtype("torch.linalg.eig", eigenvalues.scalar_type(), type, "eigenvalues");
  checkLinalgCompatibleDtype("torch.linalg.eig", eigenvectors.scalar_type(), type, "eigenvectors");
  checkSameDevice("torch.linalg.eig", eigenvalues, self, "eigenvalues");
  checkSameDevice("torch.linalg.eig", eigenvectors, self, "eigenvectors");
  const at::Tensor values = empty(value_sizes(self), self.options().dtype(type));
  into(eigenvectors, self.sizes(), type, [&](const at::Tensor &target) { run_eig("torch.linalg.eig", self, values, target); });
  give(eigenvalues, values);
  return {eigenvalues, eigenvectors};
}

std::tuple<at::Tensor, at::Tensor> linalg_eig(const at::Tensor &self) {
  const at::TensorOptions options = self.options().dtype(c10::toComplexType(self.scalar_type()));
  at::Tensor values = empty({0}, options), vectors = empty({0}, options);
  linalg_eig_out(self, values, vectors);
  return {values, vectors};
}

at::Tensor &linalg_eigvals_out(const at::Tensor &self, at::Tensor &out) {
  TORCH_CHECK(self.isfinite().all().item<bool>(), "torch.linalg.eigvals: input tensor should not contain infs or NaNs.");
  at::native::squareCheckInputs(self, "linalg.eigvals");
  const at::ScalarType type = c10::toComplexType(self.scalar_type());
  checkLinalgCompatibleDtype("torch.linalg.eigvals", out.scalar_type(), type, "eigenvalues");
  checkSameDevice("torch.linalg.eigvals", out, self, "eigenvalues");
  const at::Tensor values = empty(value_sizes(self), self.options().dtype(type));
  run_eig("torch.linalg.eigvals", self, values, {});
  give(out, values);
  return out;
}

at::Tensor _linalg_eigvals(const at::Tensor &self) {
  at::Tensor values = empty({0}, self.options().dtype(c10::toComplexType(self.scalar_type())));
  linalg_eigvals_out(self, values);
  return values;
}

// ---- least squares ----

namespace {

struct LeastSquares {
  at::Tensor solution, residuals, rank, singular_values;  // those that the driver does not find are empty
};

std::string driver_name(std::optional<std::string_view> driver) {
  std::string name = driver.has_value() ? std::string(*driver) : "gelsy";
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  TORCH_CHECK(name == "gels" || name == "gelsy" || name == "gelsd" || name == "gelss", "torch.linalg.lstsq: parameter `driver` should be one of ",
              "(gels, gelsy, gelsd, gelss)");
  return name;
}

// Sums of squares of the rows behind n, which LAPACK leaves there where every matrix has full rank.
at::Tensor residuals_of(const LeastSquares &r, const std::string &driver, int64_t m, int64_t n, at::ScalarType real) {
  const bool ranked = driver == "gelss" || driver == "gelsd";
  const at::TensorOptions options = r.solution.options().dtype(real);
  if (m <= n || driver == "gelsy" || (ranked && !r.rank.eq(n).all().item<bool>())) return empty({0}, options);
  const at::Tensor rows = r.solution.narrow(-2, n, m - n);
  return (rows.is_complex() ? at::real(rows.mul(rows.conj())) : rows.pow(2)).sum(-2);
}

LeastSquares solve(const at::Tensor &a, const at::Tensor &b, double rcond, const std::string &driver) {
  const int64_t m = a.size(-2), n = a.size(-1);
  const at::ScalarType real = c10::toRealValueType(a.scalar_type());
  at::DimVector sizes = batch_of(a);
  const at::DimVector batch = sizes;
  sizes.push_back(std::max(m, n));
  sizes.push_back(b.size(-1));
  LeastSquares r;
  r.solution = empty_columns(sizes, a.options());
  r.rank = driver == "gels" ? empty({0}, a.options().dtype(at::kLong)) : at::zeros(batch, a.options().dtype(at::kLong));
  const bool has_values = driver == "gelsd" || driver == "gelss";
  r.singular_values = has_values ? at::zeros(tau_sizes(a, std::min(m, n)), a.options().dtype(real)) : empty({0}, a.options().dtype(real));
  const at::Tensor info = empty_info(a), none;
  if (r.solution.numel() > 0) {
    if (m < n) r.solution.zero_();
    r.solution.narrow(-2, 0, m).copy_(b);
  }
  if (a.numel() == 0 && driver == "gels") r.solution.zero_();
  if (a.numel() > 0 && r.solution.numel() > 0) {
    const Operand a_(a, Operand::flagged), b_(r.solution, Operand::output), info_(info, Operand::output);
    const Operand rank_(driver == "gels" ? none : r.rank, Operand::output), values_(has_values ? r.singular_values : none, Operand::output);
    check(mps_op_linalg_lstsq(stream(), a_.pointer(), b_.pointer(), rcond, driver.c_str(), b_.pointer(), rank_.pointer_or_null(), values_.pointer_or_null(),
                              info_.pointer()));
  }
  at::_linalg_check_errors(info, "torch.linalg.lstsq", info.numel() <= 1);
  r.residuals = residuals_of(r, driver, m, n, real);
  r.solution = r.solution.narrow(-2, 0, n);
  if (m == 0) r.solution.zero_();
  return r;
}

void check_lstsq(const at::Tensor &input, const at::Tensor &other, bool vectors) {
  static constexpr const char *name = "torch.linalg.lstsq: ";
  const int64_t dimension = vectors ? -1 : -2;
  TORCH_CHECK(input.size(-2) == other.size(dimension), name, "input.size(-2) should match other.size(", dimension, ")");
}

}  // namespace

std::tuple<at::Tensor &, at::Tensor &, at::Tensor &, at::Tensor &> linalg_lstsq_out(const at::Tensor &self, const at::Tensor &b, std::optional<double> rcond,
                                                                                    std::optional<std::string_view> driver, at::Tensor &solution,
                                                                                    at::Tensor &residuals, at::Tensor &rank, at::Tensor &singular_values) {
  static constexpr const char *name = "torch.linalg.lstsq: ", *function = "torch.linalg.lstsq";
  TORCH_CHECK(self.dim() >= 2, name, "input must have at least 2 dimensions.");
  TORCH_CHECK(b.dim() >= 1, name, "other must have at least 1 dimension.");
  TORCH_CHECK(self.scalar_type() == b.scalar_type(), name, "Expected input and other to have the same dtype, but got input's dtype ", self.scalar_type(),
              " and other's dtype ", b.scalar_type());
  const int64_t difference = self.dim() - b.dim();
  TORCH_CHECK(0 <= difference && difference <= 1, name, "input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1");
  const bool vectors = at::native::linalg_solve_is_vector_rhs(self, b);
  check_lstsq(self, b, vectors);
  checkSameDevice(function, b, self, "other");
  checkSameDevice(function, solution, self, "solution");
  checkSameDevice(function, residuals, self, "residuals");
  checkSameDevice(function, rank, self, "rank");
  checkSameDevice(function, singular_values, self, "singular_values");
  checkLinalgCompatibleDtype(function, solution, self, "solution");
  const at::ScalarType real = c10::toRealValueType(self.scalar_type());
  checkLinalgCompatibleDtype(function, residuals.scalar_type(), real, "solution");
  checkLinalgCompatibleDtype(function, rank.scalar_type(), at::kLong, "rank");
  checkLinalgCompatibleDtype(function, singular_values.scalar_type(), real, "singular_values");
  const std::string chosen = driver_name(driver);
  const double tolerance =
      rcond.has_value() ? *rcond : at::native::_get_epsilon(real) * static_cast<double>(std::max<int64_t>(self.size(-2), self.size(-1)));
  const auto [wide, other] = at::native::_linalg_broadcast_batch_dims(self, vectors ? b.unsqueeze(-1) : b, nullptr);
  LeastSquares result = solve(wide, other, tolerance, chosen);
  at::Tensor found = vectors ? result.solution.squeeze(-1) : result.solution;
  if (solution.numel() == 0 && solution.scalar_type() == found.scalar_type())
    solution.set_(found.storage(), found.storage_offset(), found.sizes(), found.strides());
  else
    give(solution, found);
  give(residuals, result.residuals);
  give(rank, result.rank);
  give(singular_values, result.singular_values);
  return {solution, residuals, rank, singular_values};
}

}  // namespace openmps::native
