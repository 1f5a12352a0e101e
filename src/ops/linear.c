/* SPDX-License-Identifier: BSD-3-Clause
 *
 * linear: input @ weight^T + bias and its gradients. The leading dimensions of input and output are joined as far as their strides
 * allow; what is left are rows, a batch, and at worst a loop of gemms.
 */
#include <string.h>

#include "base/status.h"
#include "openmps/ops/dense.h"
#include "ops/dense.h"
#include "ops/gemm.h"

/* The leading dimensions of two tensors that agree in them, joined; the last one is the innermost. */
typedef struct leading {
  uint32_t rank;
  int64_t sizes[MPS_MAX_RANK];
  int64_t first[MPS_MAX_RANK], second[MPS_MAX_RANK]; /* strides, elements */
  int64_t count; /* product of sizes */
} leading;

static leading join_leading(const mps_tensor *first, const mps_tensor *second) {
  leading l = {.count = 1};
  for (uint32_t d = 0; d + 1 < first->rank; d++) {
    int64_t size = first->sizes[d];
    l.count *= size;
    if (size == 1) continue;
    bool joins = l.rank > 0 && l.first[l.rank - 1] == size * first->strides[d] && l.second[l.rank - 1] == size * second->strides[d];
    if (joins) l.rank--;
    l.sizes[l.rank] = joins ? l.sizes[l.rank] * size : size;
    l.first[l.rank] = first->strides[d];
    l.second[l.rank] = second->strides[d];
    l.rank++;
  }
  return l;
}

/* Strides of dimension `from_last` counted from the innermost; 0 where there is none. */
static int64_t stride_at(const leading *l, const int64_t *strides, uint32_t from_last) {
  return from_last < l->rank ? strides[l->rank - 1 - from_last] : 0;
}
static int64_t size_at(const leading *l, uint32_t from_last) { return from_last < l->rank ? l->sizes[l->rank - 1 - from_last] : 1; }

/* Offsets in elements of the loop's iteration `index` over all dimensions but the `inner` innermost. */
static void loop_offsets(const leading *l, uint32_t inner, int64_t index, int64_t *first, int64_t *second) {
  *first = *second = 0;
  for (uint32_t d = l->rank > inner ? l->rank - inner : 0; d-- > 0;) {
    *first += index % l->sizes[d] * l->first[d];
    *second += index % l->sizes[d] * l->second[d];
    index /= l->sizes[d];
  }
}

static int64_t loop_count(const leading *l, uint32_t inner) {
  int64_t count = 1;
  for (uint32_t d = 0; d + inner < l->rank; d++) count *= l->sizes[d];
  return count;
}

static mps_gemm_operand moved(mps_gemm_operand operand, int64_t elements, mps_dtype dtype) {
  operand.offset += (uint64_t)(elements * (int64_t)mps_dtype_size(dtype));
  return operand;
}

/* to[..., n] = from[..., k] @ b[k][n] (+ bias). */
static mps_status run_rows(mps_stream *stream, const char *label, const mps_tensor *from, const mps_tensor *to, mps_gemm gemm) {
  leading l = join_leading(from, to);
  gemm.m = size_at(&l, 0);
  gemm.batch = size_at(&l, 1);
  mps_gemm_operand a = mps_gemm_operand_of(from, -1, -1, (int)from->rank - 1), out = mps_gemm_operand_of(to, -1, -1, (int)to->rank - 1);
  for (uint32_t i = 0; i < 2; i++) {
    a.strides[1 - i] = stride_at(&l, l.first, i);
    out.strides[1 - i] = stride_at(&l, l.second, i);
  }
  for (int64_t i = 0, count = l.count ? loop_count(&l, 2) : 0; i < count; i++) {
    int64_t from_offset, to_offset;
    loop_offsets(&l, 2, i, &from_offset, &to_offset);
    gemm.a = moved(a, from_offset, gemm.dtype);
    gemm.out = moved(out, to_offset, gemm.dtype);
    MPS_TRY(mps_gemm_run(stream, label, &gemm));
  }
  return MPS_STATUS_OK;
}

/* ---- forward ---- */

static mps_status check_dtypes(const mps_tensor *a, const mps_tensor *b) {
  if (a->dtype != b->dtype)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "expected m1 and m2 to have the same dtype, but got: %s != %s",
                         mps_dense_type_name(a->dtype), mps_dense_type_name(b->dtype));
  if (a->dtype == MPS_DTYPE_BOOL)
    return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "\"addmm_impl_cpu_\" not implemented for 'Bool'");
  return MPS_STATUS_OK;
}

static mps_status check_linear(const mps_tensor *input, const mps_tensor *weight, const mps_tensor *out, int64_t features, bool with_columns) {
  if (input->rank == 0 || weight->rank != 2)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "linear: input needs at least 1 dimension and weight 2, but they have %u and %u",
                         (unsigned)input->rank, (unsigned)weight->rank);
  MPS_TRY(check_dtypes(input, weight));
  int64_t inner = input->sizes[input->rank - 1], expected = weight->sizes[with_columns ? 1 : 0];
  int64_t rows = 1;
  for (uint32_t d = 0; d + 1 < input->rank; d++) rows *= input->sizes[d];
  if (inner != expected)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "mat1 and mat2 shapes cannot be multiplied (%lldx%lld and %lldx%lld)", (long long)rows,
                         (long long)inner, (long long)weight->sizes[with_columns ? 1 : 0], (long long)weight->sizes[with_columns ? 0 : 1]);
  if (out == NULL) return MPS_STATUS_OK;
  bool agrees = out->rank == input->rank && out->dtype == input->dtype && out->sizes[out->rank - 1] == features &&
                memcmp(out->sizes, input->sizes, (input->rank - 1) * sizeof(int64_t)) == 0;
  return agrees ? MPS_STATUS_OK : mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "linear: the output's shape or dtype does not fit");
}

mps_status mps_op_linear(mps_stream *stream, const mps_tensor *input, const mps_tensor *weight, const mps_tensor *bias, const mps_tensor *out) {
  MPS_TRY(check_linear(input, weight, out, weight->rank == 2 ? weight->sizes[0] : 0, true));
  mps_gemm gemm = {.dtype = input->dtype, .n = weight->sizes[0], .k = weight->sizes[1], .alpha = mps_scalar_int(1), .beta = mps_scalar_int(1)};
  gemm.b = mps_gemm_operand_of(weight, -1, 1, 0);
  if (bias != NULL) {
    if (bias->dtype != input->dtype || bias->rank > 1 || (bias->rank == 1 && bias->sizes[0] != gemm.n && bias->sizes[0] != 1))
      return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "linear: bias must be %s with %lld elements", mps_dtype_name(input->dtype), (long long)gemm.n);
    gemm.bias = mps_gemm_operand_of(bias, -1, -1, bias->rank == 1 && bias->sizes[0] == gemm.n ? 0 : -1);
    gemm.has_bias = true;
  }
  return run_rows(stream, "linear", input, out, gemm);
}

/* ---- backward ---- */

/* grad_weight[n][k] = sum of grad_output[..., n] * input[..., k]; with input NULL and grad_weight a vector: the sum of grad_output. */
static mps_status run_weight(mps_stream *stream, const mps_tensor *grad_output, const mps_tensor *input, mps_gemm gemm) {
  leading l = join_leading(grad_output, input);
  mps_gemm_operand a = mps_gemm_operand_of(grad_output, -1, (int)grad_output->rank - 1, -1);
  mps_gemm_operand b = gemm.b;
  a.strides[2] = stride_at(&l, l.first, 0);
  if (b.buffer != NULL) b.strides[1] = stride_at(&l, l.second, 0);
  gemm.k = l.count ? size_at(&l, 0) : 0;
  for (int64_t i = 0, count = l.count ? loop_count(&l, 1) : 1; i < count; i++) {
    int64_t a_offset, b_offset;
    loop_offsets(&l, 1, i, &a_offset, &b_offset);
    gemm.a = moved(a, a_offset, gemm.dtype);
    gemm.b = b.buffer != NULL ? moved(b, b_offset, gemm.dtype) : b;
    MPS_TRY(mps_gemm_run(stream, "linear_backward", &gemm));
    gemm.bias = gemm.out;
    gemm.has_bias = true;
  }
  return MPS_STATUS_OK;
}

static mps_status check_gradient(const mps_tensor *gradient, mps_dtype dtype, uint32_t rank, int64_t rows, int64_t columns) {
  if (gradient == NULL || (gradient->dtype == dtype && gradient->rank == rank && gradient->sizes[0] == rows &&
                           (rank == 1 || gradient->sizes[1] == columns)))
    return MPS_STATUS_OK;
  return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "linear_backward: a gradient's shape or dtype does not fit");
}

mps_status mps_op_linear_backward(mps_stream *stream, const mps_tensor *input, const mps_tensor *grad_output, const mps_tensor *weight,
                                  const mps_tensor *grad_input, const mps_tensor *grad_weight, const mps_tensor *grad_bias) {
  MPS_TRY(check_linear(input, weight, grad_output, weight->rank == 2 ? weight->sizes[0] : 0, true));
  MPS_TRY(check_linear(grad_output, weight, grad_input, weight->sizes[1], false));
  mps_dtype dtype = input->dtype;
  MPS_TRY(check_gradient(grad_weight, dtype, 2, weight->sizes[0], weight->sizes[1]));
  MPS_TRY(check_gradient(grad_bias, dtype, 1, weight->sizes[0], 0));
  mps_gemm gemm = {.dtype = dtype, .batch = 1, .alpha = mps_scalar_int(1), .beta = mps_scalar_int(1)};
  if (grad_input != NULL) {
    mps_gemm g = gemm;
    g.n = weight->sizes[1];
    g.k = weight->sizes[0];
    g.b = mps_gemm_operand_of(weight, -1, 0, 1);
    MPS_TRY(run_rows(stream, "linear_backward", grad_output, grad_input, g));
  }
  if (grad_weight != NULL) {
    mps_gemm g = gemm;
    g.m = weight->sizes[0];
    g.n = weight->sizes[1];
    g.b = mps_gemm_operand_of(input, -1, -1, (int)input->rank - 1);
    g.out = mps_gemm_operand_of(grad_weight, -1, 0, 1);
    MPS_TRY(run_weight(stream, grad_output, input, g));
  }
  if (grad_bias != NULL) {
    mps_gemm g = gemm;
    g.m = weight->sizes[0];
    g.n = 1;
    g.b = (mps_gemm_operand){.constant = mps_scalar_int(1)};
    g.out = mps_gemm_operand_of(grad_bias, -1, 0, -1);
    MPS_TRY(run_weight(stream, grad_output, grad_output, g));
  }
  return MPS_STATUS_OK;
}
