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
  MPS_TRY(mps_linalg_check_matrix("torch.geqrf", "input", self, false));
  mps_dense_factorization call;
  mps_linalg_begin(&call, MPS_DENSE_FACTOR_QR, self);
  call.m = mps_linalg_rows(self);
  call.n = mps_linalg_columns(self);
  const mps_linalg_operand operands[] = {{self, a, 2, true, &call.a}, {NULL, tau, 1, true, &call.values}};
  return mps_linalg_run(stream, "geqrf", &call, operands, 2, product(call.m, call.n, smaller(call.m, call.n)));
}

mps_status mps_op_linalg_householder_product(mps_stream *stream, const mps_tensor *input, const mps_tensor *tau, const mps_tensor *out) {
  MPS_TRY(mps_linalg_check_matrix("torch.linalg.householder_product", "input", input, false));
  mps_dense_factorization call;
  mps_linalg_begin(&call, MPS_DENSE_FORM_Q, input);
  call.m = mps_linalg_rows(input);
  call.n = mps_linalg_columns(input);
  call.k = tau->sizes[tau->rank - 1u];
  const mps_linalg_operand operands[] = {{input, out, 2, true, &call.a}, {tau, NULL, 1, false, &call.values}};
  return mps_linalg_run(stream, "linalg.householder_product", &call, operands, 2, product(call.m, call.n, call.k));
}

mps_status mps_op_ormqr(mps_stream *stream, const mps_tensor *self, const mps_tensor *tau, const mps_tensor *other, bool left, bool transpose,
                        const mps_tensor *out) {
  MPS_TRY(mps_linalg_check_matrix("torch.ormqr", "input", self, false));
  MPS_TRY(mps_linalg_check_matrix("torch.ormqr", "other", other, false));
  MPS_TRY(mps_linalg_check_batch("torch.ormqr", self, 2, other, 2));
  mps_dense_factorization call;
  mps_linalg_begin(&call, MPS_DENSE_MULTIPLY_Q, other);
  call.m = mps_linalg_rows(other);
  call.n = mps_linalg_columns(other);
  call.k = tau->sizes[tau->rank - 1u];
  call.is_left = left;
  call.transpose = transpose ? MPS_DENSE_TRANSPOSED : MPS_DENSE_PLAIN;
  const mps_linalg_operand operands[] = {{self, NULL, 2, false, &call.a}, {tau, NULL, 1, false, &call.values}, {other, out, 2, true, &call.b}};
  return mps_linalg_run(stream, "ormqr", &call, operands, 3, product(call.m, call.n, call.k));
}

/* ---- spectra ---- */

mps_status mps_op_linalg_svd(mps_stream *stream, const mps_tensor *A, bool full_matrices, const mps_tensor *U, const mps_tensor *S,
                             const mps_tensor *Vh, const mps_tensor *info) {
  MPS_TRY(mps_linalg_check_matrix("linalg.svd", "A", A, false));
  mps_dense_factorization call;
  mps_linalg_begin(&call, MPS_DENSE_SVD, A);
  call.m = mps_linalg_rows(A);
  call.n = mps_linalg_columns(A);
  call.full = full_matrices;
  const mps_linalg_operand operands[] = {{A, NULL, 2, true, &call.a}, {NULL, S, 1, true, &call.values}, {NULL, info, 0, true, &call.info},
                                         {NULL, U, 2, true, &call.left}, {NULL, Vh, 2, true, &call.right}};
  return mps_linalg_run(stream, "linalg.svd", &call, operands, 5, 20.0 * product(call.m, call.n, smaller(call.m, call.n)));
}

mps_status mps_op_linalg_eigh(mps_stream *stream, const mps_tensor *A, bool upper, bool compute_v, const mps_tensor *eigenvalues,
                              const mps_tensor *eigenvectors, const mps_tensor *info) {
  MPS_TRY(mps_linalg_check_matrix("linalg.eigh", "A", A, true));
  mps_dense_factorization call;
  mps_linalg_begin(&call, MPS_DENSE_EIGEN_HERMITIAN, A);
  call.n = mps_linalg_rows(A);
  call.upper = upper;
  call.vectors = compute_v;
  const mps_linalg_operand operands[] = {{A, compute_v ? eigenvectors : NULL, 2, true, &call.a}, {NULL, eigenvalues, 1, true, &call.values},
                                         {NULL, info, 0, true, &call.info}};
  return mps_linalg_run(stream, "linalg.eigh", &call, operands, 3, 20.0 * product(call.n, call.n, call.n));
}

mps_status mps_op_linalg_eig(mps_stream *stream, const mps_tensor *self, const mps_tensor *eigenvalues, const mps_tensor *eigenvectors,
                             const mps_tensor *info) {
  MPS_TRY(mps_linalg_check_matrix("linalg.eig", "A", self, true));
  mps_dense_factorization call;
  mps_linalg_begin(&call, MPS_DENSE_EIGEN, self);
  call.n = mps_linalg_rows(self);
  const mps_linalg_operand operands[] = {{self, NULL, 2, true, &call.a}, {NULL, eigenvalues, 1, true, &call.values},
                                         {NULL, info, 0, true, &call.info}, {NULL, eigenvectors, 2, true, &call.left}};
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
  MPS_TRY(mps_linalg_check_matrix("torch.linalg.lstsq", "input", self, false));
  MPS_TRY(mps_linalg_check_matrix("torch.linalg.lstsq", "other", b, false));
  MPS_TRY(mps_linalg_check_batch("torch.linalg.lstsq", self, 2, b, 2));
  mps_dense_factorization call;
  mps_linalg_begin(&call, MPS_DENSE_LEAST_SQUARES, self);
  call.m = mps_linalg_rows(self);
  call.n = mps_linalg_columns(self);
  call.k = mps_linalg_columns(b);
  call.tolerance = rcond;
  if (driver == NULL || !find_driver(driver, &call.driver))
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "torch.linalg.lstsq: there is no driver %s", driver == NULL ? "(null)" : driver);
  const mps_linalg_operand operands[] = {{self, NULL, 2, true, &call.a}, {b, solution, 2, true, &call.b}, {NULL, rank, 0, true, &call.ranks},
                                         {NULL, singular_values, 1, true, &call.values}, {NULL, info, 0, true, &call.info}};
  return mps_linalg_run(stream, "linalg.lstsq", &call, operands, 5, 4.0 * product(call.m, call.n, smaller(call.m, call.n) + call.k));
}
