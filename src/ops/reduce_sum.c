/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reduce_sum: sum, mean, nansum, prod, trace; any, all, count_nonzero.
 */
#include <string.h>

#include "graph/formula.h"
#include "openmps/ops/pointwise.h"
#include "openmps/ops/reduce.h"
#include "ops/reduce.h"

/* ---- sums and products ---- */
typedef struct sum_plan {
  mps_dtype compute; /* what self is converted to */
  mps_dtype natural; /* what the kernels write */
  const char *finish; /* as in mps_reduction */
  size_t accumulator_bytes;
} sum_plan;

/* Halves whose sum is wanted in f32 are not converted first: the accumulators are the result. Everything else becomes the result's dtype first,
 * as on the CPU, except that integers are as good as the int64 that they add up in. */
static sum_plan plan_sum(mps_dtype self, mps_dtype out) {
  if (mps_dtype_is_complex(out)) return (sum_plan){MPS_DTYPE_C64, MPS_DTYPE_C64, NULL, 8};
  if (mps_dtype_is_floating(out)) {
    bool widens = out == MPS_DTYPE_F32 && (self == MPS_DTYPE_F16 || self == MPS_DTYPE_BF16);
    return (sum_plan){widens ? self : out, out, widens ? "f32" : NULL, 4};
  }
  bool exact = out == MPS_DTYPE_I64 && (self == MPS_DTYPE_BOOL || self == MPS_DTYPE_U8 || self == MPS_DTYPE_I8 || self == MPS_DTYPE_I16 ||
                                        self == MPS_DTYPE_I32 || self == MPS_DTYPE_I64);
  bool known = out == MPS_DTYPE_BOOL || out == MPS_DTYPE_I8 || out == MPS_DTYPE_I16 || out == MPS_DTYPE_I32 || out == MPS_DTYPE_I64;
  return (sum_plan){exact ? self : known ? out : MPS_DTYPE_I64, MPS_DTYPE_I64, NULL, 8};
}

static mps_status run_sum(mps_stream *stream, const char *label, const char *kernel, const mps_tensor *self, uint32_t mask, float divisor,
                          const mps_tensor *out) {
  sum_plan p = plan_sum(self->dtype, out->dtype);
  mps_reduction r = {.label = label, .kernel = kernel, .suffix = mps_dtype_name(p.compute), .finish = p.finish, .divisor = divisor,
                     .accumulator_bytes = p.accumulator_bytes};
  if (p.compute == MPS_DTYPE_BOOL && strcmp(kernel, "prod") == 0) { /* whether all are true */
    r.kernel = "count";
    r.suffix = "b8";
    r.mode = MPS_REDUCE_ALL;
  }
  return mps_reduce_run(stream, &r, self, p.compute, mask, p.natural, out);
}

/* `dtype` is out's already: the caller made out. */
mps_status mps_op_sum(mps_stream *stream, const mps_tensor *self, const int64_t *dim, uint32_t dim_count, bool keepdim, const mps_dtype *dtype,
                      const mps_tensor *out) {
  (void)keepdim, (void)dtype;
  uint32_t mask;
  mps_status status = mps_reduce_mask(dim, dim_count, self->rank, &mask);
  return status != MPS_STATUS_OK ? status : run_sum(stream, "sum", "sum", self, mask, 1.0f, out);
}

mps_status mps_op_mean(mps_stream *stream, const mps_tensor *self, const int64_t *dim, uint32_t dim_count, bool keepdim, const mps_dtype *dtype,
                       const mps_tensor *out) {
  (void)keepdim, (void)dtype;
  uint32_t mask;
  mps_status status = mps_reduce_mask(dim, dim_count, self->rank, &mask);
  if (status != MPS_STATUS_OK) return status;
  if (!mps_dtype_is_floating(out->dtype) && !mps_dtype_is_complex(out->dtype))
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "result type Float can't be cast to the desired output type %s", mps_dtype_title(out->dtype));
  int64_t count = mps_reduce_count(self, mask);
  mps_reduction r = {.label = "mean", .kernel = "sum", .accumulator_bytes = 4};
  sum_plan p = plan_sum(self->dtype, out->dtype);
  r.suffix = mps_dtype_name(p.compute);
  r.finish = p.finish;
  r.accumulator_bytes = p.accumulator_bytes;
  if (count == 0) return mps_operand_fill(stream, out, mps_scalar_float((double)__builtin_nanf(""))); /* 0 / 0; a divisor of 0 stands for 1 */
  r.divisor = (float)count;
  return mps_reduce_run(stream, &r, self, p.compute, mask, p.natural, out);
}

mps_status mps_op_nansum(mps_stream *stream, const mps_tensor *self, const int64_t *dim, uint32_t dim_count, bool keepdim, const mps_dtype *dtype,
                         const mps_tensor *out) {
  (void)keepdim, (void)dtype;
  uint32_t mask;
  mps_status status = mps_reduce_mask(dim, dim_count, self->rank, &mask);
  if (status != MPS_STATUS_OK) return status;
  if (mps_dtype_is_complex(self->dtype)) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "nansum does not support complex inputs");
  return run_sum(stream, "nansum", mps_dtype_is_floating(out->dtype) ? "nansum" : "sum", self, mask, 1.0f, out);
}

mps_status mps_op_prod(mps_stream *stream, const mps_tensor *self, const int64_t *dim, uint32_t dim_count, bool keepdim, const mps_dtype *dtype,
                       const mps_tensor *out) {
  (void)keepdim, (void)dtype;
  uint32_t mask;
  mps_status status = mps_reduce_mask(dim, dim_count, self->rank, &mask);
  return status != MPS_STATUS_OK ? status : run_sum(stream, "prod", "prod", self, mask, 1.0f, out);
}

mps_status mps_op_prod_dim(mps_stream *stream, const mps_tensor *self, int64_t dim, bool keepdim, const mps_dtype *dtype, const mps_tensor *out) {
  return mps_op_prod(stream, self, &dim, 1, keepdim, dtype, out);
}

/* The diagonal is a tensor of rank 1. */
mps_status mps_op_trace(mps_stream *stream, const mps_tensor *self, const mps_tensor *out) {
  if (self->rank != 2)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "trace: expected a matrix, but got tensor with dim %u", (unsigned)self->rank);
  mps_tensor diagonal = *self;
  diagonal.rank = 1;
  diagonal.sizes[0] = self->sizes[0] < self->sizes[1] ? self->sizes[0] : self->sizes[1];
  diagonal.strides[0] = self->strides[0] + self->strides[1];
  return run_sum(stream, "trace", "sum", &diagonal, 1, 1.0f, out);
}

/* ---- counts of nonzero elements ---- */
/* Kernels look at bits; what has no kernel of its own is converted. */
static const char *bits_suffix(mps_dtype dtype) {
  switch (dtype) {
    case MPS_DTYPE_BOOL:
    case MPS_DTYPE_U8:
    case MPS_DTYPE_I8: return "b8";
    case MPS_DTYPE_U16:
    case MPS_DTYPE_I16: return "b16";
    case MPS_DTYPE_U32:
    case MPS_DTYPE_I32: return "b32";
    case MPS_DTYPE_U64:
    case MPS_DTYPE_I64: return "b64";
    case MPS_DTYPE_F16:
    case MPS_DTYPE_BF16: return "h16";
    case MPS_DTYPE_F32: return "f32";
    default: return "c64";
  }
}

static mps_status run_count(mps_stream *stream, const char *label, const mps_tensor *self, uint32_t mask, uint32_t mode, const mps_tensor *out) {
  mps_reduction r = {.label = label, .kernel = mode == MPS_REDUCE_COUNT ? "count" : "truth", .suffix = bits_suffix(self->dtype), .mode = mode,
                     .accumulator_bytes = 8};
  mps_dtype compute = self->dtype == MPS_DTYPE_C32 ? MPS_DTYPE_C64 : self->dtype;
  return mps_reduce_run(stream, &r, self, compute, mask, mode == MPS_REDUCE_COUNT ? MPS_DTYPE_I64 : MPS_DTYPE_BOOL, out);
}

mps_status mps_op_any(mps_stream *stream, const mps_tensor *self, int64_t dim, bool keepdim, const mps_tensor *out) {
  (void)keepdim;
  uint32_t mask;
  mps_status status = mps_reduce_mask(&dim, 1, self->rank, &mask);
  return status != MPS_STATUS_OK ? status : run_count(stream, "any", self, mask, MPS_REDUCE_ANY, out);
}

mps_status mps_op_all(mps_stream *stream, const mps_tensor *self, int64_t dim, bool keepdim, const mps_tensor *out) {
  (void)keepdim;
  uint32_t mask;
  mps_status status = mps_reduce_mask(&dim, 1, self->rank, &mask);
  return status != MPS_STATUS_OK ? status : run_count(stream, "all", self, mask, MPS_REDUCE_ALL, out);
}

mps_status mps_op_any_dims(mps_stream *stream, const mps_tensor *self, const int64_t *dim, uint32_t dim_count, bool keepdim, const mps_tensor *out) {
  (void)keepdim;
  uint32_t mask;
  mps_status status = mps_reduce_mask(dim, dim_count, self->rank, &mask);
  return status != MPS_STATUS_OK ? status : run_count(stream, "any", self, mask, MPS_REDUCE_ANY, out);
}

mps_status mps_op_all_dims(mps_stream *stream, const mps_tensor *self, const int64_t *dim, uint32_t dim_count, bool keepdim, const mps_tensor *out) {
  (void)keepdim;
  uint32_t mask;
  mps_status status = mps_reduce_mask(dim, dim_count, self->rank, &mask);
  return status != MPS_STATUS_OK ? status : run_count(stream, "all", self, mask, MPS_REDUCE_ALL, out);
}

mps_status mps_op_any_all(mps_stream *stream, const mps_tensor *self, const mps_tensor *out) {
  return mps_op_any_dims(stream, self, NULL, 0, false, out);
}

mps_status mps_op_all_all(mps_stream *stream, const mps_tensor *self, const mps_tensor *out) {
  return mps_op_all_dims(stream, self, NULL, 0, false, out);
}

mps_status mps_op_count_nonzero(mps_stream *stream, const mps_tensor *self, const int64_t *dim, uint32_t dim_count, const mps_tensor *out) {
  uint32_t mask;
  mps_status status = mps_reduce_mask(dim, dim_count, self->rank, &mask);
  return status != MPS_STATUS_OK ? status : run_count(stream, "count_nonzero", self, mask, MPS_REDUCE_COUNT, out);
}
