/* SPDX-License-Identifier: BSD-3-Clause
 *
 * provider_linalg: factorisations by the LAPACK in torch's wheel: which function does what kind, and how a batch is spread over workers.
 */
#include "bridge/provider_lapack.h"

namespace openmps::dense {
namespace {

template <class T>
mps_status run(const Call &c) {
  switch (c.kind) {
    case MPS_DENSE_CHOLESKY: return cholesky<T>(c);
    case MPS_DENSE_CHOLESKY_INVERSE: return cholesky_inverse<T>(c);
    case MPS_DENSE_CHOLESKY_SOLVE: return cholesky_solve<T>(c);
    case MPS_DENSE_FACTOR_LU: return factor_lu<T>(c);
    case MPS_DENSE_SOLVE_LU: return solve_lu<T>(c);
    case MPS_DENSE_SOLVE_TRIANGULAR: return solve_triangular<T>(c);
    case MPS_DENSE_FACTOR_LDL: return factor_ldl<T>(c);
    case MPS_DENSE_SOLVE_LDL: return solve_ldl<T>(c);
    case MPS_DENSE_FACTOR_QR: return factor_qr<T>(c);
    case MPS_DENSE_FORM_Q: return form_q<T>(c);
    case MPS_DENSE_MULTIPLY_Q: return multiply_q<T>(c);
    case MPS_DENSE_SVD: return singular_values<T>(c);
    case MPS_DENSE_EIGEN_HERMITIAN: return eigen_hermitian<T>(c);
    case MPS_DENSE_EIGEN: return eigen<T>(c);
    case MPS_DENSE_LEAST_SQUARES: return least_squares<T>(c);
    default: return mps_error_set(MPS_STATUS_PROVIDER_ERROR, "dense call %d is no factorisation", static_cast<int>(c.kind));
  }
}

}  // namespace

mps_status each_item(const Call &c, double nanoseconds, const std::function<void(int64_t)> &work) {
  constexpr double kPieceNs = 100e3;
  const int64_t pieces = std::min(c.batch, pieces_for(nanoseconds * static_cast<double>(c.batch), kPieceNs));
  const int64_t each = (c.batch + pieces - 1) / pieces;
  return spread(static_cast<uint32_t>(pieces), [&](uint32_t piece) {
    for (int64_t i = piece * each; i < std::min(c.batch, (piece + 1) * each); i++) work(i);
  });
}

// work(item, first right-hand side, how many): along right-hand sides where there are many, else along items.
mps_status each_side(const Call &c, double nanoseconds, const std::function<void(int64_t, int64_t, int64_t)> &work) {
  if (!is_cut(c, nanoseconds)) return each_item(c, nanoseconds, [&](int64_t i) { work(i, 0, c.k); });
  const int64_t pieces = blocks(c.k);
  return spread(static_cast<uint32_t>(c.batch * pieces), [&](uint32_t i) {
    const int64_t begin = i % pieces * kBlock;
    work(i / pieces, begin, width(begin, c.k));
  });
}

mps_status factorize(const mps_dense_factorization *call) {
  const Call &c = *call;
  if (c.batch == 0) return MPS_STATUS_OK;
  if (std::max({c.m, c.n, c.k, c.a.leading, c.b.leading}) > INT_MAX)
    return mps_error_set(MPS_STATUS_PROVIDER_ERROR, "a matrix of %lld x %lld is larger than LAPACK can take", static_cast<long long>(c.m),
                         static_cast<long long>(c.n));
  return c.dtype == MPS_DTYPE_C64 ? run<complex64>(c) : run<float>(c);
}

}  // namespace openmps::dense
