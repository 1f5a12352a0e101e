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
  mps_dense_factorization call;
  MPS_TRY(mps_linalg_open("linalg.cholesky", "A", self, true, MPS_DENSE_CHOLESKY, &call));
  call.upper = upper;
  const mps_linalg_operand operands[] = {mps_linalg_brought(self, L, &call), mps_linalg_output(info, 0, &call.info)};
  return mps_linalg_run(stream, "linalg.cholesky", &call, operands, 2, product(call.n, call.n, call.n) / 3.0);
}

mps_status mps_op_cholesky_inverse(mps_stream *stream, const mps_tensor *self, bool upper, const mps_tensor *out, const mps_tensor *info) {
  mps_dense_factorization call;
  MPS_TRY(mps_linalg_open("cholesky_inverse", "A", self, true, MPS_DENSE_CHOLESKY_INVERSE, &call));
  call.upper = upper;
  const mps_linalg_operand operands[] = {mps_linalg_becomes(self, out, 2, &call.a), mps_linalg_output(info, 0, &call.info)};
  return mps_linalg_run(stream, "cholesky_inverse", &call, operands, 2, product(call.n, call.n, call.n));
}

mps_status mps_op_cholesky_solve(mps_stream *stream, const mps_tensor *self, const mps_tensor *A, bool upper, const mps_tensor *out) {
  mps_dense_factorization call;
  MPS_TRY(mps_linalg_open_system("cholesky_solve", "A", A, self, true, MPS_DENSE_CHOLESKY_SOLVE, &call));
  call.upper = upper;
  const mps_linalg_operand operands[] = {mps_linalg_input(A, 2, &call.a), mps_linalg_becomes(self, out, 2, &call.b)};
  return mps_linalg_run(stream, "cholesky_solve", &call, operands, 2, product(call.n, call.n, call.k));
}

/* ---- LU ---- */

mps_status mps_op_linalg_lu_factor(mps_stream *stream, const mps_tensor *A, const mps_tensor *LU, const mps_tensor *pivots, const mps_tensor *info) {
  mps_dense_factorization call;
  MPS_TRY(mps_linalg_open("linalg.lu_factor", "A", A, false, MPS_DENSE_FACTOR_LU, &call));
  const mps_linalg_operand operands[] = {mps_linalg_brought(A, LU, &call), mps_linalg_output(pivots, 1, &call.pivots),
                                         mps_linalg_output(info, 0, &call.info)};
  return mps_linalg_run(stream, "linalg.lu_factor", &call, operands, 3, product(call.m, call.n, call.m < call.n ? call.m : call.n) / 2.0);
}

mps_status mps_op_linalg_lu_solve(mps_stream *stream, const mps_tensor *LU, const mps_tensor *pivots, const mps_tensor *B, bool left, bool adjoint,
                                  const mps_tensor *out) {
  mps_dense_factorization call;
  MPS_TRY(mps_linalg_open_system("linalg.lu_solve", "LU", LU, B, left, MPS_DENSE_SOLVE_LU, &call));
  MPS_TRY(mps_linalg_check_batch("linalg.lu_solve", LU, 2, pivots, 1));
  call.transpose = adjoint ? MPS_DENSE_ADJOINT : MPS_DENSE_PLAIN;
  mps_tensor from, to, factors = *LU;
  turn(&call, B, out, &from, &to);
  const bool rows = LU->flags == 0 && LU->strides[LU->rank - 1u] == 1 && LU->strides[LU->rank - 2u] >= call.n;
  call.turned = rows && !(call.transpose == MPS_DENSE_ADJOINT && call.dtype == MPS_DTYPE_C64);
  if (call.turned) factors = swapped(LU);
  const mps_linalg_operand operands[] = {mps_linalg_input(&factors, 2, &call.a), mps_linalg_input(pivots, 1, &call.pivots),
                                         mps_linalg_becomes(&from, &to, 2, &call.b)};
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
  mps_dense_factorization call;
  MPS_TRY(mps_linalg_open_system("linalg.solve_triangular", "A", A, B, left, MPS_DENSE_SOLVE_TRIANGULAR, &call));
  call.dtype = A->dtype;
  call.upper = upper;
  call.unit = unitriangular;
  call.transpose = transpose ? MPS_DENSE_TRANSPOSED : MPS_DENSE_PLAIN;
  mps_tensor from, to;
  turn(&call, B, out, &from, &to);
  const mps_tensor turned = in_columns(A, &call);
  const mps_linalg_operand operands[] = {mps_linalg_input(&turned, 2, &call.a), mps_linalg_becomes(&from, &to, 2, &call.b)};
  return mps_linalg_run(stream, "linalg.solve_triangular", &call, operands, 2, product(call.n, call.n, call.k) / 2.0);
}

/* ---- LDL ---- */

mps_status mps_op_linalg_ldl_factor(mps_stream *stream, const mps_tensor *self, bool hermitian, const mps_tensor *LD, const mps_tensor *pivots,
                                    const mps_tensor *info) {
  mps_dense_factorization call;
  MPS_TRY(mps_linalg_open("torch.linalg.ldl_factor_ex", "A", self, true, MPS_DENSE_FACTOR_LDL, &call));
  call.hermitian = hermitian;
  const mps_linalg_operand operands[] = {mps_linalg_becomes(self, LD, 2, &call.a), mps_linalg_output(pivots, 1, &call.pivots),
                                         mps_linalg_output(info, 0, &call.info)};
  return mps_linalg_run(stream, "linalg.ldl_factor", &call, operands, 3, product(call.n, call.n, call.n) / 2.0);
}

mps_status mps_op_linalg_ldl_solve(mps_stream *stream, const mps_tensor *LD, const mps_tensor *pivots, const mps_tensor *B, bool hermitian,
                                   const mps_tensor *out) {
  mps_dense_factorization call;
  MPS_TRY(mps_linalg_open_system("torch.linalg.ldl_solve", "LD", LD, B, true, MPS_DENSE_SOLVE_LDL, &call));
  call.hermitian = hermitian;
  const mps_linalg_operand operands[] = {mps_linalg_input(LD, 2, &call.a), mps_linalg_input(pivots, 1, &call.pivots),
                                         mps_linalg_becomes(B, out, 2, &call.b)};
  return mps_linalg_run(stream, "linalg.ldl_solve", &call, operands, 3, product(call.n, call.n, call.k));
}
