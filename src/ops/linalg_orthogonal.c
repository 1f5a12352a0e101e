/* SPDX-License-Identifier: BSD-3-Clause
 *
 * linalg_orthogonal: QR factors and products with Q, singular values, eigenvalues, least squares.
 */
#include <string.h>

#include "base/status.h"
#include "openmps/ops/linalg.h"
#include "ops/linalg.h"

#define MAC_NS 0.07

static double product(int64_t a, int64_t b, int64_t c) { return 1000.0 + MAC_NS * (double)a * (double)b * (double)c; }
static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* ---- QR ---- */

mps_status mps_op_geqrf(mps_stream *stream, const mps_tensor *self, const mps_tensor *a, const mps_tensor *tau) {
  mps_dense_factorization call;
  MPS_TRY(mps_linalg_open("torch.geqrf", "input", self, false, MPS_DENSE_FACTOR_QR, &call));
  const mps_linalg_operand operands[] = {mps_linalg_becomes(self, a, 2, &call.a), mps_linalg_output(tau, 1, &call.values)};
  return mps_linalg_run(stream, "geqrf", &call, operands, 2, product(call.m, call.n, smaller(call.m, call.n)));
}

mps_status mps_op_linalg_householder_product(mps_stream *stream, const mps_tensor *input, const mps_tensor *tau, const mps_tensor *out) {
  mps_dense_factorization call;
  MPS_TRY(mps_linalg_open("torch.linalg.householder_product", "input", input, false, MPS_DENSE_FORM_Q, &call));
  call.k = tau->sizes[tau->rank - 1u];
  const mps_linalg_operand operands[] = {mps_linalg_becomes(input, out, 2, &call.a), mps_linalg_input(tau, 1, &call.values)};
  return mps_linalg_run(stream, "linalg.householder_product", &call, operands, 2, product(call.m, call.n, call.k));
}

mps_status mps_op_ormqr(mps_stream *stream, const mps_tensor *self, const mps_tensor *tau, const mps_tensor *other, bool left, bool transpose,
                        const mps_tensor *out) {
  MPS_TRY(mps_linalg_check_matrix("torch.ormqr", "input", self, false));
  mps_dense_factorization call;
  MPS_TRY(mps_linalg_open("torch.ormqr", "other", other, false, MPS_DENSE_MULTIPLY_Q, &call));
  MPS_TRY(mps_linalg_check_batch("torch.ormqr", self, 2, other, 2));
  call.k = tau->sizes[tau->rank - 1u];
  call.is_left = left;
  call.transpose = transpose ? MPS_DENSE_TRANSPOSED : MPS_DENSE_PLAIN;
  const mps_linalg_operand operands[] = {mps_linalg_input(self, 2, &call.a), mps_linalg_input(tau, 1, &call.values),
                                         mps_linalg_becomes(other, out, 2, &call.b)};
  return mps_linalg_run(stream, "ormqr", &call, operands, 3, product(call.m, call.n, call.k));
}

/* ---- spectra ---- */

mps_status mps_op_linalg_svd(mps_stream *stream, const mps_tensor *A, bool full_matrices, const mps_tensor *U, const mps_tensor *S,
                             const mps_tensor *Vh, const mps_tensor *info) {
  mps_dense_factorization call;
  MPS_TRY(mps_linalg_open("linalg.svd", "A", A, false, MPS_DENSE_SVD, &call));
  call.full = full_matrices;
  const mps_linalg_operand operands[] = {mps_linalg_consumed(A, 2, &call.a), mps_linalg_output(S, 1, &call.values),
                                         mps_linalg_output(info, 0, &call.info),
                                         mps_linalg_output(U, 2, &call.left), mps_linalg_output(Vh, 2, &call.right)};
  return mps_linalg_run(stream, "linalg.svd", &call, operands, 5, 20.0 * product(call.m, call.n, smaller(call.m, call.n)));
}

mps_status mps_op_linalg_eigh(mps_stream *stream, const mps_tensor *A, bool upper, bool compute_v, const mps_tensor *eigenvalues,
                              const mps_tensor *eigenvectors, const mps_tensor *info) {
  mps_dense_factorization call;
  MPS_TRY(mps_linalg_open("linalg.eigh", "A", A, true, MPS_DENSE_EIGEN_HERMITIAN, &call));
  call.upper = upper;
  call.vectors = compute_v;
  const mps_linalg_operand operands[] = {mps_linalg_becomes(A, compute_v ? eigenvectors : NULL, 2, &call.a),
                                         mps_linalg_output(eigenvalues, 1, &call.values),
                                         mps_linalg_output(info, 0, &call.info)};
  return mps_linalg_run(stream, "linalg.eigh", &call, operands, 3, 20.0 * product(call.n, call.n, call.n));
}

mps_status mps_op_linalg_eig(mps_stream *stream, const mps_tensor *self, const mps_tensor *eigenvalues, const mps_tensor *eigenvectors,
                             const mps_tensor *info) {
  mps_dense_factorization call;
  MPS_TRY(mps_linalg_open("linalg.eig", "A", self, true, MPS_DENSE_EIGEN, &call));
  const mps_linalg_operand operands[] = {mps_linalg_consumed(self, 2, &call.a), mps_linalg_output(eigenvalues, 1, &call.values),
                                         mps_linalg_output(info, 0, &call.info), mps_linalg_output(eigenvectors, 2, &call.left)};
  return mps_linalg_run(stream, "linalg.eig", &call, operands, 4, 100.0 * product(call.n, call.n, call.n));
}

/* ---- least squares ---- */

static bool find_driver(const char *name, mps_dense_driver *driver) {
  static const char *const names[] = {[MPS_DENSE_GELS] = "gels", [MPS_DENSE_GELSY] = "gelsy", [MPS_DENSE_GELSD] = "gelsd", [MPS_DENSE_GELSS] = "gelss"};
  for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
    if (strcmp(name, names[i]) == 0) {
      *driver = (mps_dense_driver)i;
      return true;
    }
  return false;
}

mps_status mps_op_linalg_lstsq(mps_stream *stream, const mps_tensor *self, const mps_tensor *b, double rcond, const char *driver,
                               const mps_tensor *solution, const mps_tensor *rank, const mps_tensor *singular_values, const mps_tensor *info) {
  mps_dense_factorization call;
  MPS_TRY(mps_linalg_open("torch.linalg.lstsq", "input", self, false, MPS_DENSE_LEAST_SQUARES, &call));
  MPS_TRY(mps_linalg_check_matrix("torch.linalg.lstsq", "other", b, false));
  MPS_TRY(mps_linalg_check_batch("torch.linalg.lstsq", self, 2, b, 2));
  call.k = mps_linalg_columns(b);
  call.tolerance = rcond;
  if (driver == NULL || !find_driver(driver, &call.driver))
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "torch.linalg.lstsq: there is no driver %s", driver == NULL ? "(null)" : driver);
  const mps_linalg_operand operands[] = {mps_linalg_consumed(self, 2, &call.a), mps_linalg_becomes(b, solution, 2, &call.b),
                                         mps_linalg_output(rank, 0, &call.ranks),
                                         mps_linalg_output(singular_values, 1, &call.values), mps_linalg_output(info, 0, &call.info)};
  return mps_linalg_run(stream, "linalg.lstsq", &call, operands, 5, 4.0 * product(call.m, call.n, smaller(call.m, call.n) + call.k));
}
