/* SPDX-License-Identifier: BSD-3-Clause
 *
 * linalg: operands of factorisations as column-major memory, and the call of the provider.
 */
#include "ops/linalg.h"

#include <string.h>

#include "base/status.h"
#include "openmps/ops/pointwise.h"
#include "graph/formula.h"
#include "ops/dense.h"
#include "ops/operand.h"

static int64_t at_least_1(int64_t value) { return value > 1 ? value : 1; }

/* ---- check ---- */

mps_status mps_linalg_check_matrix(const char *label, const char *name, const mps_tensor *tensor, bool square) {
  if (tensor->rank < 2)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s: the input tensor %s must have at least 2 dimensions.", label, name);
  if (square && mps_linalg_rows(tensor) != mps_linalg_columns(tensor))
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s: %s must be batches of square matrices, but they are %lld by %lld matrices", label, name,
                         (long long)mps_linalg_rows(tensor), (long long)mps_linalg_columns(tensor));
  return MPS_STATUS_OK;
}

mps_status mps_linalg_check_batch(const char *label, const mps_tensor *a, uint32_t a_inner, const mps_tensor *b, uint32_t b_inner) {
  if (a->rank >= a_inner && b->rank >= b_inner && a->rank - a_inner == b->rank - b_inner &&
      memcmp(a->sizes, b->sizes, (a->rank - a_inner) * sizeof a->sizes[0]) == 0)
    return MPS_STATUS_OK;
  return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s: the operands have different batch dimensions", label);
}

/* PyTorch's names of the kernels, for its text about dtypes. */
static const char *kernel_name(mps_dense_kind kind) {
  static const char *const names[] = {[MPS_DENSE_CHOLESKY] = "cholesky_cpu",
                                      [MPS_DENSE_CHOLESKY_INVERSE] = "cholesky_inverse_out_cpu",
                                      [MPS_DENSE_CHOLESKY_SOLVE] = "cholesky_solve_cpu",
                                      [MPS_DENSE_FACTOR_LU] = "lu_cpu",
                                      [MPS_DENSE_SOLVE_LU] = "linalg.lu_solve_cpu",
                                      [MPS_DENSE_SOLVE_TRIANGULAR] = "triangular_solve_cpu",
                                      [MPS_DENSE_FACTOR_LDL] = "ldl_factor_kernel_cpu",
                                      [MPS_DENSE_SOLVE_LDL] = "ldl_solve_kernel_cpu",
                                      [MPS_DENSE_FACTOR_QR] = "geqrf_cpu",
                                      [MPS_DENSE_FORM_Q] = "orgqr_cpu",
                                      [MPS_DENSE_MULTIPLY_Q] = "ormqr_cpu",
                                      [MPS_DENSE_SVD] = "linalg_svd_cpu",
                                      [MPS_DENSE_EIGEN_HERMITIAN] = "linalg_eigh_cpu",
                                      [MPS_DENSE_EIGEN] = "linalg_eig_out_cpu",
                                      [MPS_DENSE_LEAST_SQUARES] = "linalg_lstsq_cpu"};
  return names[kind];
}

/* The dtype that the provider takes an operand to have; what is only read from `source` into a result may have another. */
static mps_dtype expected_dtype(const mps_dense_factorization *call, const mps_linalg_operand *operand, mps_dtype found) {
  if (operand->columns == &call->a || operand->columns == &call->b) return call->dtype;
  if (operand->columns == &call->pivots || operand->columns == &call->info) return MPS_DTYPE_I32;
  if (operand->columns == &call->ranks) return MPS_DTYPE_I64;
  bool real = call->kind == MPS_DENSE_SVD || call->kind == MPS_DENSE_EIGEN_HERMITIAN || call->kind == MPS_DENSE_LEAST_SQUARES;
  if (operand->columns == &call->values) return real ? MPS_DTYPE_F32 : call->kind == MPS_DENSE_EIGEN ? MPS_DTYPE_C64 : call->dtype;
  return call->kind == MPS_DENSE_EIGEN ? MPS_DTYPE_C64 : call->kind == MPS_DENSE_SVD ? call->dtype : found;
}

static mps_status check_dtypes(const mps_dense_factorization *call, const mps_linalg_operand *operands, uint32_t count) {
  if (call->dtype != MPS_DTYPE_F32 && call->dtype != MPS_DTYPE_C64)
    return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", kernel_name(call->kind), mps_dtype_title(call->dtype));
  for (uint32_t i = 0; i < count; i++) {
    const mps_tensor *tensor = operands[i].out != NULL ? operands[i].out : operands[i].source;
    if (tensor == NULL) continue;
    mps_dtype expected = expected_dtype(call, &operands[i], tensor->dtype);
    if (tensor->dtype != expected)
      return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "expected scalar type %s but found %s", mps_dtype_title(expected), mps_dtype_title(tensor->dtype));
  }
  return MPS_STATUS_OK;
}

/* ---- plan ---- */

static void begin(mps_dense_factorization *call, mps_dense_kind kind, const mps_tensor *shape) {
  memset(call, 0, sizeof *call);
  call->kind = kind;
  call->dtype = shape->dtype;
  call->is_left = true;
  call->batch = 1;
  for (uint32_t d = 0; d + 2 < shape->rank; d++) call->batch *= shape->sizes[d];
}

mps_status mps_linalg_open(const char *label, const char *name, const mps_tensor *a, bool square, mps_dense_kind kind, mps_dense_factorization *call) {
  MPS_TRY(mps_linalg_check_matrix(label, name, a, square));
  begin(call, kind, a);
  call->m = mps_linalg_rows(a);
  call->n = mps_linalg_columns(a);
  return MPS_STATUS_OK;
}

mps_status mps_linalg_open_system(const char *label, const char *name, const mps_tensor *a, const mps_tensor *b, bool left, mps_dense_kind kind,
                                  mps_dense_factorization *call) {
  MPS_TRY(mps_linalg_check_matrix(label, name, a, true));
  MPS_TRY(mps_linalg_check_matrix(label, "B", b, false));
  MPS_TRY(mps_linalg_check_batch(label, a, 2, b, 2));
  begin(call, kind, b);
  call->n = mps_linalg_rows(a);
  call->k = left ? mps_linalg_columns(b) : mps_linalg_rows(b);
  call->is_left = left;
  return MPS_STATUS_OK;
}

mps_linalg_operand mps_linalg_input(const mps_tensor *source, uint32_t inner, mps_dense_columns *columns) {
  return (mps_linalg_operand){.source = source, .inner = inner, .columns = columns};
}
mps_linalg_operand mps_linalg_consumed(const mps_tensor *source, uint32_t inner, mps_dense_columns *columns) {
  return (mps_linalg_operand){.source = source, .inner = inner, .changed = true, .columns = columns};
}
mps_linalg_operand mps_linalg_output(const mps_tensor *out, uint32_t inner, mps_dense_columns *columns) {
  return (mps_linalg_operand){.out = out, .inner = inner, .changed = true, .columns = columns};
}
mps_linalg_operand mps_linalg_becomes(const mps_tensor *source, const mps_tensor *out, uint32_t inner, mps_dense_columns *columns) {
  return (mps_linalg_operand){.source = source, .out = out, .inner = inner, .changed = true, .columns = columns};
}
mps_linalg_operand mps_linalg_brought(const mps_tensor *source, const mps_tensor *out, mps_dense_factorization *call) {
  return (mps_linalg_operand){.source = source, .out = out, .inner = 2, .changed = true, .columns = &call->a, .from = &call->from, .to = &call->to};
}

/* The one stride that all items lie apart; false where there is none. */
static bool find_batch_stride(const mps_tensor *tensor, uint32_t inner, int64_t *stride) {
  bool found = false;
  int64_t expected = 0;
  *stride = 0;
  for (uint32_t d = tensor->rank - inner; d-- > 0;) {
    if (tensor->sizes[d] <= 1) continue;
    if (!found) *stride = expected = tensor->strides[d];
    if (tensor->strides[d] != expected) return false;
    expected *= tensor->sizes[d];
    found = true;
  }
  return true;
}

/* True when LAPACK can work on the tensor's memory as it lies. */
static bool describe(const mps_tensor *tensor, uint32_t inner, mps_dense_columns *columns) {
  if (tensor->buffer == NULL || tensor->flags != 0 || !find_batch_stride(tensor, inner, &columns->batch_stride)) return false;
  const int64_t *sizes = tensor->sizes + tensor->rank - inner, *strides = tensor->strides + tensor->rank - inner;
  columns->leading = inner > 0 ? at_least_1(sizes[0]) : 1;
  if (inner > 0 && sizes[0] > 1 && strides[0] != 1) return false;
  if (inner == 2 && sizes[1] > 1) {
    if (strides[1] < columns->leading) return false;
    columns->leading = strides[1];
  }
  columns->data = (char *)mps_buffer_contents(tensor->buffer) + tensor->offset;
  return true;
}

/* True when the provider can step over the tensor's matrices. */
static bool describe_matrix(const mps_tensor *tensor, mps_dense_matrix *matrix) {
  if (tensor->buffer == NULL || (tensor->flags & MPS_TENSOR_NEGATIVE) || !find_batch_stride(tensor, 2, &matrix->batch_stride)) return false;
  matrix->row_stride = tensor->strides[tensor->rank - 2u];
  matrix->column_stride = tensor->strides[tensor->rank - 1u];
  matrix->conjugate = (tensor->flags & MPS_TENSOR_CONJUGATE) != 0;
  matrix->data = (char *)mps_buffer_contents(tensor->buffer) + tensor->offset;
  return true;
}

/* Whether the provider itself brings the operand from where it lies to where it goes; fills in how. */
static bool describe_way(const mps_linalg_operand *o) {
  if (o->from == NULL || o->source == NULL || o->out == NULL || o->source->dtype != o->out->dtype || o->out->flags != 0) return false;
  if (mps_linalg_rows(o->out) * mps_linalg_columns(o->out) * (int64_t)mps_dtype_size(o->out->dtype) > MPS_LINALG_SCRATCH_BYTES) return false;
  const bool same = mps_operands_equal(o->source, o->out);
  if (!same && o->source->buffer == o->out->buffer) return false;
  const bool in_place = describe(o->out, 2, o->columns);
  mps_dense_matrix from = {.data = NULL}, to = {.data = NULL};
  if (in_place && same) return true;
  if (!describe_matrix(o->source, &from) || (!in_place && !describe_matrix(o->out, &to))) return false;
  *o->from = from;
  *o->to = to;
  if (!in_place) memset(o->columns, 0, sizeof *o->columns);
  return true;
}

/* Sizes of `like`, items one after another, each column-major; the buffer is the caller's. */
static mps_status create_columns(mps_stream *stream, const mps_tensor *like, uint32_t inner, mps_tensor *out) {
  MPS_TRY(mps_operand_create(stream, like->dtype, like->rank, like->sizes, out));
  if (inner != 2) return MPS_STATUS_OK;
  out->strides[out->rank - 2] = 1;
  out->strides[out->rank - 1] = at_least_1(mps_linalg_rows(out));
  return MPS_STATUS_OK;
}

/* ---- encode ---- */

typedef struct place {
  mps_tensor temporary;
  bool owned;
  mps_buffer *buffer; /* what the provider touches; NULL: nothing */
  mps_buffer *source; /* what it reads besides; NULL: nothing */
} place;

static mps_status make_temporary(mps_stream *stream, const mps_tensor *like, uint32_t inner, mps_dense_columns *columns, place *p) {
  MPS_TRY(create_columns(stream, like, inner, &p->temporary));
  p->owned = true;
  p->buffer = p->temporary.buffer;
  describe(&p->temporary, inner, columns);
  return MPS_STATUS_OK;
}

static mps_status bring(mps_stream *stream, const mps_linalg_operand *o, place *p) {
  const mps_tensor *shape = o->out != NULL ? o->out : o->source;
  memset(o->columns, 0, sizeof *o->columns);
  o->columns->leading = 1;
  if (shape == NULL || mps_tensor_element_count(shape) == 0) return MPS_STATUS_OK;
  if (describe_way(o)) {
    p->buffer = o->out->buffer;
    if (o->source->buffer != o->out->buffer) p->source = o->source->buffer;
    return MPS_STATUS_OK;
  }
  bool in_place = o->out != NULL || !o->changed;
  if (in_place && describe(shape, o->inner, o->columns)) {
    p->buffer = shape->buffer;
    if (o->out == NULL || o->source == NULL || mps_operands_equal(o->source, o->out)) return MPS_STATUS_OK;
    return mps_op_copy(stream, o->source, o->out);
  }
  MPS_TRY(make_temporary(stream, shape, o->inner, o->columns, p));
  return o->source != NULL ? mps_op_copy(stream, o->source, &p->temporary) : MPS_STATUS_OK;
}

typedef struct linalg_call {
  mps_status (*factorize)(const mps_dense_factorization *call);
  mps_dense_factorization call;
} linalg_call;

static mps_status run_call(const void *parameters) {
  const linalg_call *c = parameters;
  return c->factorize(&c->call);
}

static mps_status encode(mps_stream *stream, const char *label, mps_dense_factorization *call, const mps_linalg_operand *operands, uint32_t count,
                         double cost, const mps_dense_provider *provider, place *places) {
  mps_buffer *buffers[2 * MPS_LINALG_MAX_OPERANDS];
  uint32_t buffer_count = 0;
  for (uint32_t i = 0; i < count; i++) {
    MPS_TRY(bring(stream, &operands[i], &places[i]));
    if (places[i].buffer != NULL) buffers[buffer_count++] = places[i].buffer;
    if (places[i].source != NULL) buffers[buffer_count++] = places[i].source;
  }
  linalg_call c = {provider->factorize, *call};
  const bool anywhere = mps_dense_is_anywhere(provider, call->kind, call->dtype);
  MPS_TRY(mps_dense_call(stream, label, run_call, &c, sizeof c, buffers, buffer_count, anywhere, cost));
  for (uint32_t i = 0; i < count; i++)
    if (places[i].owned && operands[i].out != NULL) MPS_TRY(mps_op_copy(stream, &places[i].temporary, operands[i].out));
  return MPS_STATUS_OK;
}

mps_status mps_linalg_run(mps_stream *stream, const char *label, mps_dense_factorization *call, const mps_linalg_operand *operands, uint32_t count,
                          double cost) {
  MPS_TRY(check_dtypes(call, operands, count));
  if (count > MPS_LINALG_MAX_OPERANDS) return mps_error_set(MPS_STATUS_INTERNAL_ERROR, "%s: %u operands", label, (unsigned)count);
  const mps_dense_provider *provider = mps_dense_choose(stream, call->kind, call->dtype);
  if (provider == NULL || provider->factorize == NULL)
    return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "%s: the device has no provider of matrix factorisations", label);
  if (call->batch == 0) return MPS_STATUS_OK;
  place places[MPS_LINALG_MAX_OPERANDS];
  memset(places, 0, sizeof places);
  mps_status status = encode(stream, label, call, operands, count, cost * (double)call->batch, provider, places);
  for (uint32_t i = 0; i < count; i++)
    if (places[i].owned) mps_buffer_release(places[i].temporary.buffer);
  return status;
}
