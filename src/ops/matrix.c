/* SPDX-License-Identifier: BSD-3-Clause
 *
 * matrix: mm, bmm, mv, dot and their adding forms. Each checks as PyTorch's CPU does and is one gemm (addbmm: one a batch).
 */
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "graph/formula.h"
#include "openmps/ops/dense.h"
#include "ops/dense.h"
#include "ops/gemm.h"

#define SIZES_TEXT_BYTES 96

static const mps_scalar one = {MPS_SCALAR_INT, {1}, 0.0};
static const mps_scalar zero = {MPS_SCALAR_INT, {0}, 0.0};

/* "2, 3" for texts. */
static const char *sizes_text(uint32_t rank, const int64_t *sizes, char text[SIZES_TEXT_BYTES]) {
  size_t used = 0;
  text[0] = 0;
  for (uint32_t d = 0; d < rank && used < SIZES_TEXT_BYTES - 24; d++)
    used += (size_t)snprintf(text + used, SIZES_TEXT_BYTES - used, d ? ", %lld" : "%lld", (long long)sizes[d]);
  return text;
}

static mps_status check_rank(const mps_tensor *tensor, uint32_t rank, const char *operator_name, const char *name) {
  if (tensor->rank == rank) return MPS_STATUS_OK;
  return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s: Expected %u-D argument %s, but got %u-D", operator_name, (unsigned)rank, name,
                       (unsigned)tensor->rank);
}

static mps_status check_out(const mps_tensor *out, mps_dtype dtype, uint32_t rank, const int64_t *sizes, const char *operator_name) {
  char expected[SIZES_TEXT_BYTES], actual[SIZES_TEXT_BYTES];
  if (out->dtype == dtype && out->rank == rank && memcmp(out->sizes, sizes, rank * sizeof *sizes) == 0) return MPS_STATUS_OK;
  return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s: out must be %s of size [%s], but is %s of size [%s]", operator_name, mps_dtype_name(dtype),
                       sizes_text(rank, sizes, expected), mps_dtype_name(out->dtype), sizes_text(out->rank, out->sizes, actual));
}

/* Matrix products of bool have no meaning in PyTorch; addr has one. */
static mps_status check_not_bool(mps_dtype dtype, const char *kernel_name) {
  if (dtype != MPS_DTYPE_BOOL) return MPS_STATUS_OK;
  return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "\"%s\" not implemented for 'Bool'", kernel_name);
}

static mps_status check_same(mps_dtype a, mps_dtype b) {
  if (a == b) return MPS_STATUS_OK;
  return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "expected scalar type %s but found %s", mps_dtype_title(a),
                       mps_dtype_title(b));
}

/* The bias of out = beta * bias + ..., broadcast to `rank` dimensions; maps[3] tells which of them are batch, row and column (-1: none). */
static mps_status add_bias(mps_gemm *gemm, const mps_tensor *bias, mps_scalar beta, uint32_t rank, const int64_t *sizes, const int maps[3]) {
  char target[SIZES_TEXT_BYTES], actual[SIZES_TEXT_BYTES];
  if (bias->rank > rank)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT,
                         "The expanded sizes of the tensor ([%s]) must be at least the number of dimensions in the tensor ([%s])",
                         sizes_text(rank, sizes, target), sizes_text(bias->rank, bias->sizes, actual));
  mps_tensor expanded = *bias;
  for (uint32_t d = rank; d-- > 0;) {
    bool present = d >= rank - bias->rank;
    uint32_t from = d - (rank - bias->rank);
    int64_t size = present ? bias->sizes[from] : 1;
    if (size != sizes[d] && size != 1)
      return mps_error_set(MPS_STATUS_INVALID_ARGUMENT,
                           "The expanded size of the tensor (%lld) must match the existing size (%lld) at non-singleton dimension %u.  "
                           "Target sizes: [%s].  Tensor sizes: [%s]",
                           (long long)sizes[d], (long long)size, (unsigned)d, sizes_text(rank, sizes, target),
                           sizes_text(bias->rank, bias->sizes, actual));
    expanded.strides[d] = size == 1 ? 0 : bias->strides[from];
  }
  gemm->bias = mps_gemm_operand_of(&expanded, maps[0], maps[1], maps[2]);
  gemm->has_bias = true;
  gemm->beta = beta;
  return MPS_STATUS_OK;
}

/* ---- (m,k) x (k,n) ---- */

static mps_status run_addmm(mps_stream *stream, const char *label, const mps_tensor *self, const mps_tensor *mat1, const mps_tensor *mat2,
                            mps_scalar beta, mps_scalar alpha, const mps_tensor *out) {
  MPS_TRY(check_rank(mat1, 2, label, "mat1"));
  MPS_TRY(check_rank(mat2, 2, label, "mat2"));
  if (mat1->dtype != mat2->dtype)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "expected m1 and m2 to have the same dtype, but got: %s != %s",
                         mps_dense_type_name(mat1->dtype), mps_dense_type_name(mat2->dtype));
  MPS_TRY(check_not_bool(mat1->dtype, "addmm_impl_cpu_"));
  if (mat1->sizes[1] != mat2->sizes[0])
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "mat1 and mat2 shapes cannot be multiplied (%lldx%lld and %lldx%lld)",
                         (long long)mat1->sizes[0], (long long)mat1->sizes[1], (long long)mat2->sizes[0], (long long)mat2->sizes[1]);
  const int64_t sizes[2] = {mat1->sizes[0], mat2->sizes[1]};
  MPS_TRY(check_out(out, mat1->dtype, 2, sizes, label));
  mps_gemm gemm = {.dtype = mat1->dtype, .batch = 1, .m = sizes[0], .n = sizes[1], .k = mat1->sizes[1], .alpha = alpha, .beta = zero};
  gemm.a = mps_gemm_operand_of(mat1, -1, 0, 1);
  gemm.b = mps_gemm_operand_of(mat2, -1, 0, 1);
  gemm.out = mps_gemm_operand_of(out, -1, 0, 1);
  const int maps[3] = {-1, 0, 1};
  if (self != NULL) MPS_TRY(check_same(mat1->dtype, self->dtype));
  if (self != NULL) MPS_TRY(add_bias(&gemm, self, beta, 2, sizes, maps));
  return mps_gemm_run(stream, label, &gemm);
}

mps_status mps_op_mm(mps_stream *stream, const mps_tensor *self, const mps_tensor *mat2, const mps_tensor *out) {
  return run_addmm(stream, "mm", NULL, self, mat2, zero, one, out);
}

mps_status mps_op_addmm(mps_stream *stream, const mps_tensor *self, const mps_tensor *mat1, const mps_tensor *mat2, mps_scalar beta,
                        mps_scalar alpha, const mps_tensor *out) {
  return run_addmm(stream, "addmm", self, mat1, mat2, beta, alpha, out);
}

/* ---- (b,m,k) x (b,k,n) ---- */

static mps_status check_batches(const mps_tensor *batch1, const mps_tensor *batch2, const char *label) {
  MPS_TRY(check_rank(batch1, 3, label, "batch1"));
  MPS_TRY(check_rank(batch2, 3, label, "batch2"));
  MPS_TRY(check_same(batch1->dtype, batch2->dtype));
  MPS_TRY(check_not_bool(batch1->dtype, label));
  if (batch1->sizes[0] != batch2->sizes[0] || batch1->sizes[2] != batch2->sizes[1])
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT,
                         "Expected size for first two dimensions of batch2 tensor to be: [%lld, %lld] but got: [%lld, %lld].",
                         (long long)batch1->sizes[0], (long long)batch1->sizes[2], (long long)batch2->sizes[0], (long long)batch2->sizes[1]);
  return MPS_STATUS_OK;
}

static mps_status run_baddbmm(mps_stream *stream, const char *label, const mps_tensor *self, const mps_tensor *batch1,
                              const mps_tensor *batch2, mps_scalar beta, mps_scalar alpha, const mps_tensor *out) {
  MPS_TRY(check_batches(batch1, batch2, label));
  const int64_t sizes[3] = {batch1->sizes[0], batch1->sizes[1], batch2->sizes[2]};
  MPS_TRY(check_out(out, batch1->dtype, 3, sizes, label));
  mps_gemm gemm = {.dtype = batch1->dtype, .batch = sizes[0], .m = sizes[1], .n = sizes[2], .k = batch1->sizes[2], .alpha = alpha, .beta = zero};
  gemm.a = mps_gemm_operand_of(batch1, 0, 1, 2);
  gemm.b = mps_gemm_operand_of(batch2, 0, 1, 2);
  gemm.out = mps_gemm_operand_of(out, 0, 1, 2);
  const int maps[3] = {0, 1, 2};
  if (self != NULL) MPS_TRY(check_same(batch1->dtype, self->dtype));
  if (self != NULL) MPS_TRY(add_bias(&gemm, self, beta, 3, sizes, maps));
  return mps_gemm_run(stream, label, &gemm);
}

mps_status mps_op_bmm(mps_stream *stream, const mps_tensor *self, const mps_tensor *mat2, const mps_tensor *out) {
  return run_baddbmm(stream, "bmm", NULL, self, mat2, zero, one, out);
}

mps_status mps_op_baddbmm(mps_stream *stream, const mps_tensor *self, const mps_tensor *batch1, const mps_tensor *batch2, mps_scalar beta,
                          mps_scalar alpha, const mps_tensor *out) {
  return run_baddbmm(stream, "baddbmm", self, batch1, batch2, beta, alpha, out);
}

mps_status mps_op_addbmm(mps_stream *stream, const mps_tensor *self, const mps_tensor *batch1, const mps_tensor *batch2, mps_scalar beta,
                         mps_scalar alpha, const mps_tensor *out) {
  MPS_TRY(check_batches(batch1, batch2, "addbmm"));
  MPS_TRY(check_same(batch1->dtype, self->dtype));
  const int64_t sizes[2] = {batch1->sizes[1], batch2->sizes[2]};
  MPS_TRY(check_out(out, batch1->dtype, 2, sizes, "addbmm"));
  if (out->buffer != NULL && (out->buffer == batch1->buffer || out->buffer == batch2->buffer))
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "addbmm: out must not share memory with batch1 or batch2");
  mps_gemm gemm = {.dtype = batch1->dtype, .batch = 1, .m = sizes[0], .n = sizes[1], .k = batch1->sizes[2], .alpha = alpha, .beta = zero};
  gemm.a = mps_gemm_operand_of(batch1, -1, 1, 2);
  gemm.b = mps_gemm_operand_of(batch2, -1, 1, 2);
  gemm.out = mps_gemm_operand_of(out, -1, 0, 1);
  const int maps[3] = {-1, 0, 1};
  MPS_TRY(add_bias(&gemm, self, beta, 2, sizes, maps));
  if (batch1->sizes[0] == 0) { /* an empty sum */
    gemm.k = 0;
    return mps_gemm_run(stream, "addbmm", &gemm);
  }
  int64_t bytes = (int64_t)mps_dtype_size(gemm.dtype);
  for (int64_t i = 0; i < batch1->sizes[0]; i++) {
    MPS_TRY(mps_gemm_run(stream, "addbmm", &gemm));
    if (batch1->buffer != NULL) gemm.a.offset += (uint64_t)(batch1->strides[0] * bytes);
    if (batch2->buffer != NULL) gemm.b.offset += (uint64_t)(batch2->strides[0] * bytes);
    gemm.bias = gemm.out;
    gemm.beta = one;
  }
  return MPS_STATUS_OK;
}

/* ---- vectors ---- */

mps_status mps_op_addmv(mps_stream *stream, const mps_tensor *self, const mps_tensor *mat, const mps_tensor *vec, mps_scalar beta,
                        mps_scalar alpha, const mps_tensor *out) {
  MPS_TRY(check_rank(mat, 2, "addmv", "mat"));
  MPS_TRY(check_rank(vec, 1, "addmv", "vec"));
  if (self->dtype != mat->dtype || mat->dtype != vec->dtype)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "addmv input tensors must have the same dtype, but got %s, %s, and %s",
                         mps_dtype_title(self->dtype), mps_dtype_title(mat->dtype), mps_dtype_title(vec->dtype));
  MPS_TRY(check_not_bool(mat->dtype, "addmv_impl_cpu"));
  if (mat->sizes[1] != vec->sizes[0])
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "size mismatch, got input (%lld), mat (%lldx%lld), vec (%lld)",
                         (long long)(self->rank ? self->sizes[0] : 1), (long long)mat->sizes[0], (long long)mat->sizes[1],
                         (long long)vec->sizes[0]);
  MPS_TRY(check_out(out, mat->dtype, 1, mat->sizes, "addmv"));
  mps_gemm gemm = {.dtype = mat->dtype, .batch = 1, .m = mat->sizes[0], .n = 1, .k = mat->sizes[1], .alpha = alpha};
  gemm.a = mps_gemm_operand_of(mat, -1, 0, 1);
  gemm.b = mps_gemm_operand_of(vec, -1, 0, -1);
  gemm.out = mps_gemm_operand_of(out, -1, 0, -1);
  const int maps[3] = {-1, 0, -1};
  MPS_TRY(add_bias(&gemm, self, beta, 1, mat->sizes, maps));
  return mps_gemm_run(stream, "addmv", &gemm);
}

static mps_status run_dot(mps_stream *stream, const char *label, const mps_tensor *self, const mps_tensor *other, bool conjugate,
                          const mps_tensor *out) {
  if (self->rank != 1 || other->rank != 1)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "1D tensors expected, but got %uD and %uD tensors", (unsigned)self->rank,
                         (unsigned)other->rank);
  if (self->dtype != other->dtype)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "dot : expected both vectors to have same dtype, but found %s and %s",
                         mps_dtype_title(self->dtype), mps_dtype_title(other->dtype));
  if (self->sizes[0] != other->sizes[0])
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT,
                         "inconsistent tensor size, expected tensor [%lld] and src [%lld] to have the same number of elements, but got %lld and "
                         "%lld elements respectively",
                         (long long)self->sizes[0], (long long)other->sizes[0], (long long)self->sizes[0], (long long)other->sizes[0]);
  MPS_TRY(check_not_bool(self->dtype, label));
  MPS_TRY(check_out(out, self->dtype, 0, self->sizes, label));
  mps_gemm gemm = {.dtype = self->dtype, .batch = 1, .m = 1, .n = 1, .k = self->sizes[0], .alpha = one, .beta = zero};
  gemm.a = mps_gemm_operand_of(self, -1, -1, 0);
  gemm.b = mps_gemm_operand_of(other, -1, 0, -1);
  gemm.out = mps_gemm_operand_of(out, -1, -1, -1);
  if (conjugate) gemm.a.flags ^= MPS_TENSOR_CONJUGATE;
  return mps_gemm_run(stream, label, &gemm);
}

mps_status mps_op_dot(mps_stream *stream, const mps_tensor *self, const mps_tensor *tensor, const mps_tensor *out) {
  return run_dot(stream, "dot", self, tensor, false, out);
}

mps_status mps_op_vdot(mps_stream *stream, const mps_tensor *self, const mps_tensor *other, const mps_tensor *out) {
  return run_dot(stream, "vdot", self, other, true, out);
}

mps_status mps_op_addr(mps_stream *stream, const mps_tensor *self, const mps_tensor *vec1, const mps_tensor *vec2, mps_scalar beta,
                       mps_scalar alpha, const mps_tensor *out) {
  MPS_TRY(check_rank(vec1, 1, "addr", "vec1"));
  MPS_TRY(check_rank(vec2, 1, "addr", "vec2"));
  MPS_TRY(check_same(vec1->dtype, vec2->dtype));
  MPS_TRY(check_same(vec1->dtype, self->dtype));
  const int64_t sizes[2] = {vec1->sizes[0], vec2->sizes[0]};
  MPS_TRY(check_out(out, vec1->dtype, 2, sizes, "addr"));
  mps_gemm gemm = {.dtype = vec1->dtype, .batch = 1, .m = sizes[0], .n = sizes[1], .k = 1, .alpha = alpha};
  gemm.a = mps_gemm_operand_of(vec1, -1, 0, -1);
  gemm.b = mps_gemm_operand_of(vec2, -1, -1, 0);
  gemm.out = mps_gemm_operand_of(out, -1, 0, 1);
  const int maps[3] = {-1, 0, 1};
  MPS_TRY(add_bias(&gemm, self, beta, 2, sizes, maps));
  return mps_gemm_run(stream, "addr", &gemm);
}
