/* SPDX-License-Identifier: BSD-3-Clause
 *
 * linalg_solve: Cholesky, LU and LDL factors, and systems solved with them or with triangles.
 */
#include "base/status.h"
#include "openmps/ops/linalg.h"
#include "ops/linalg.h"

#define MAC_NS 0.05

static double product(int64_t a, int64_t b, int64_t c) { return 500.0 + MAC_NS * (double)a * (double)b * (double)c; }

static mps_tensor swapped(const mps_tensor *tensor) {
  mps_tensor t = *tensor;
  uint32_t row = t.rank - 2u, column = t.rank - 1u;
  int64_t size = t.sizes[row], stride = t.strides[row];
  t.sizes[row] = t.sizes[column];
  t.strides[row] = t.strides[column];
  t.sizes[column] = size;
  t.strides[column] = stride;
  return t;
}

/* A solution that is wanted row by row is the column-major solution of the transposed system, from the other side. */
static void turn(mps_dense_factorization *call, const mps_tensor *B, const mps_tensor *out, mps_tensor *turned_b, mps_tensor *turned_out) {
  *turned_b = *B;
  *turned_out = *out;
  if (out->strides[out->rank - 1u] != 1 || out->strides[out->rank - 2u] == 1) return;
  if (call->transpose == MPS_DENSE_ADJOINT && call->dtype == MPS_DTYPE_C64) return;
  *turned_b = swapped(B);
  *turned_out = swapped(out);
  call->is_left = !call->is_left;
  call->transpose = call->transpose == MPS_DENSE_PLAIN ? MPS_DENSE_TRANSPOSED : MPS_DENSE_PLAIN;
}

/* ---- Cholesky ---- */

mps_status mps_op_linalg_cholesky(mps_stream *stream, const mps_tensor *self, bool upper, const mps_tensor *L, const mps_tensor *info) {
  MPS_TRY(mps_linalg_check_matrix("linalg.cholesky", "A", self, true));
  mps_dense_factorization call;
  mps_linalg_begin(&call, MPS_DENSE_CHOLESKY, self);
  call.n = mps_linalg_rows(self);
  call.upper = upper;
  const mps_linalg_operand operands[] = {{self, L, 2, true, &call.a}, {NULL, info, 0, true, &call.info}};
  return mps_linalg_run(stream, "linalg.cholesky", &call, operands, 2, product(call.n, call.n, call.n) / 3.0);
}

mps_status mps_op_cholesky_inverse(mps_stream *stream, const mps_tensor *self, bool upper, const mps_tensor *out, const mps_tensor *info) {
  MPS_TRY(mps_linalg_check_matrix("cholesky_inverse", "A", self, true));
  mps_dense_factorization call;
  mps_linalg_begin(&call, MPS_DENSE_CHOLESKY_INVERSE, self);
  call.n = mps_linalg_rows(self);
  call.upper = upper;
  const mps_linalg_operand operands[] = {{self, out, 2, true, &call.a}, {NULL, info, 0, true, &call.info}};
  return mps_linalg_run(stream, "cholesky_inverse", &call, operands, 2, product(call.n, call.n, call.n));
}

mps_status mps_op_cholesky_solve(mps_stream *stream, const mps_tensor *self, const mps_tensor *A, bool upper, const mps_tensor *out) {
  MPS_TRY(mps_linalg_check_matrix("cholesky_solve", "A", A, true));
  MPS_TRY(mps_linalg_check_matrix("cholesky_solve", "B", self, false));
  MPS_TRY(mps_linalg_check_batch("cholesky_solve", self, 2, A, 2));
  mps_dense_factorization call;
  mps_linalg_begin(&call, MPS_DENSE_CHOLESKY_SOLVE, self);
  call.n = mps_linalg_rows(A);
  call.k = mps_linalg_columns(self);
  call.upper = upper;
  const mps_linalg_operand operands[] = {{A, NULL, 2, false, &call.a}, {self, out, 2, true, &call.b}};
  return mps_linalg_run(stream, "cholesky_solve", &call, operands, 2, product(call.n, call.n, call.k));
}

/* ---- LU ---- */

mps_status mps_op_linalg_lu_factor(mps_stream *stream, const mps_tensor *A, const mps_tensor *LU, const mps_tensor *pivots, const mps_tensor *info) {
  MPS_TRY(mps_linalg_check_matrix("linalg.lu_factor", "A", A, false));
  mps_dense_factorization call;
  mps_linalg_begin(&call, MPS_DENSE_FACTOR_LU, A);
  call.m = mps_linalg_rows(A);
  call.n = mps_linalg_columns(A);
  const mps_linalg_operand operands[] = {{A, LU, 2, true, &call.a}, {NULL, pivots, 1, true, &call.pivots}, {NULL, info, 0, true, &call.info}};
  return mps_linalg_run(stream, "linalg.lu_factor", &call, operands, 3, product(call.m, call.n, call.m < call.n ? call.m : call.n) / 2.0);
}

mps_status mps_op_linalg_lu_solve(mps_stream *stream, const mps_tensor *LU, const mps_tensor *pivots, const mps_tensor *B, bool left, bool adjoint,
                                  const mps_tensor *out) {
  MPS_TRY(mps_linalg_check_matrix("linalg.lu_solve", "LU", LU, true));
  MPS_TRY(mps_linalg_check_matrix("linalg.lu_solve", "B", B, false));
  MPS_TRY(mps_linalg_check_batch("linalg.lu_solve", LU, 2, B, 2));
  MPS_TRY(mps_linalg_check_batch("linalg.lu_solve", LU, 2, pivots, 1));
  mps_dense_factorization call;
  mps_linalg_begin(&call, MPS_DENSE_SOLVE_LU, B);
  call.n = mps_linalg_rows(LU);
  call.k = left ? mps_linalg_columns(B) : mps_linalg_rows(B);
  call.is_left = left;
  call.transpose = adjoint ? MPS_DENSE_ADJOINT : MPS_DENSE_PLAIN;
  mps_tensor from, to;
  turn(&call, B, out, &from, &to);
  const mps_linalg_operand operands[] = {{LU, NULL, 2, false, &call.a}, {pivots, NULL, 1, false, &call.pivots}, {&from, &to, 2, true, &call.b}};
  return mps_linalg_run(stream, "linalg.lu_solve", &call, operands, 3, product(call.n, call.n, call.k));
}

/* ---- triangles ---- */

/* A triangle that lies row by row is the other triangle of its transpose, without a copy. */
static mps_tensor in_columns(const mps_tensor *A, mps_dense_factorization *call) {
  mps_tensor turned = *A;
  uint32_t row = A->rank - 2u, column = A->rank - 1u;
  if (A->flags & MPS_TENSOR_NEGATIVE) return turned;
  bool conjugate = (A->flags & MPS_TENSOR_CONJUGATE) != 0, row_major = A->strides[column] == 1 && A->strides[row] >= A->sizes[column];
  if (!row_major && !(A->strides[row] == 1 && call->transpose == MPS_DENSE_TRANSPOSED && conjugate)) return turned;
  if (!row_major) { /* the transpose of a conjugate is the adjoint */
    turned.flags = 0;
    call->transpose = MPS_DENSE_ADJOINT;
    return turned;
  }
  if (call->transpose == MPS_DENSE_PLAIN)
    call->transpose = conjugate ? MPS_DENSE_ADJOINT : MPS_DENSE_TRANSPOSED;
  else if ((call->transpose == MPS_DENSE_ADJOINT) == conjugate || A->dtype != MPS_DTYPE_C64)
    call->transpose = MPS_DENSE_PLAIN;
  else
    return turned;
  call->upper = !call->upper;
  turned.flags = 0;
  turned.strides[row] = A->strides[column];
  turned.strides[column] = A->strides[row];
  return turned;
}

mps_status mps_op_linalg_solve_triangular(mps_stream *stream, const mps_tensor *A, const mps_tensor *B, bool upper, bool left, bool unitriangular,
                                          bool transpose, const mps_tensor *out) {
  MPS_TRY(mps_linalg_check_matrix("linalg.solve_triangular", "A", A, true));
  MPS_TRY(mps_linalg_check_matrix("linalg.solve_triangular", "B", B, false));
  MPS_TRY(mps_linalg_check_batch("linalg.solve_triangular", A, 2, B, 2));
  mps_dense_factorization call;
  mps_linalg_begin(&call, MPS_DENSE_SOLVE_TRIANGULAR, B);
  call.dtype = A->dtype;
  call.n = mps_linalg_rows(A);
  call.k = left ? mps_linalg_columns(B) : mps_linalg_rows(B);
  call.is_left = left;
  call.upper = upper;
  call.unit = unitriangular;
  call.transpose = transpose ? MPS_DENSE_TRANSPOSED : MPS_DENSE_PLAIN;
  mps_tensor from, to;
  turn(&call, B, out, &from, &to);
  const mps_tensor turned = in_columns(A, &call);
  const mps_linalg_operand operands[] = {{&turned, NULL, 2, false, &call.a}, {&from, &to, 2, true, &call.b}};
  return mps_linalg_run(stream, "linalg.solve_triangular", &call, operands, 2, product(call.n, call.n, call.k) / 2.0);
}

/* ---- LDL ---- */

mps_status mps_op_linalg_ldl_factor(mps_stream *stream, const mps_tensor *self, bool hermitian, const mps_tensor *LD, const mps_tensor *pivots,
                                    const mps_tensor *info) {
  MPS_TRY(mps_linalg_check_matrix("torch.linalg.ldl_factor_ex", "A", self, true));
  mps_dense_factorization call;
  mps_linalg_begin(&call, MPS_DENSE_FACTOR_LDL, self);
  call.n = mps_linalg_rows(self);
  call.hermitian = hermitian;
  const mps_linalg_operand operands[] = {{self, LD, 2, true, &call.a}, {NULL, pivots, 1, true, &call.pivots}, {NULL, info, 0, true, &call.info}};
  return mps_linalg_run(stream, "linalg.ldl_factor", &call, operands, 3, product(call.n, call.n, call.n) / 2.0);
}

mps_status mps_op_linalg_ldl_solve(mps_stream *stream, const mps_tensor *LD, const mps_tensor *pivots, const mps_tensor *B, bool hermitian,
                                   const mps_tensor *out) {
  MPS_TRY(mps_linalg_check_matrix("torch.linalg.ldl_solve", "LD", LD, true));
  MPS_TRY(mps_linalg_check_matrix("torch.linalg.ldl_solve", "B", B, false));
  MPS_TRY(mps_linalg_check_batch("torch.linalg.ldl_solve", LD, 2, B, 2));
  mps_dense_factorization call;
  mps_linalg_begin(&call, MPS_DENSE_SOLVE_LDL, B);
  call.n = mps_linalg_rows(LD);
  call.k = mps_linalg_columns(B);
  call.hermitian = hermitian;
  const mps_linalg_operand operands[] = {{LD, NULL, 2, false, &call.a}, {pivots, NULL, 1, false, &call.pivots}, {B, out, 2, true, &call.b}};
  return mps_linalg_run(stream, "linalg.ldl_solve", &call, operands, 3, product(call.n, call.n, call.k));
}
