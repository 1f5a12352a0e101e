/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reduce_order: amax, amin, aminmax; max and min with places; argmax and argmin. NaN wins, of equal values the first one counts.
 */
#include <string.h>

#include "openmps/ops/reduce.h"
#include "ops/reduce.h"

/* The dtype that kernels exist for and that holds all values of `dtype`; COUNT when there is none. */
static mps_dtype compute_of(mps_dtype dtype) {
  switch (dtype) {
    case MPS_DTYPE_BOOL: return MPS_DTYPE_U8; /* made of 0 and 1 by the conversion, which a bool's bytes need not be */
    case MPS_DTYPE_U16: return MPS_DTYPE_I32;
    case MPS_DTYPE_U32: return MPS_DTYPE_I64;
    case MPS_DTYPE_U64:
    case MPS_DTYPE_C32:
    case MPS_DTYPE_C64: return MPS_DTYPE_COUNT;
    default: return dtype;
  }
}

static mps_status check(const char *label, const mps_tensor *self, uint32_t mask) {
  if (compute_of(self->dtype) == MPS_DTYPE_COUNT)
    return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "%s: values of dtype %s have no order here", label, mps_dtype_name(self->dtype));
  for (uint32_t d = 0; d < self->rank; d++)
    if ((mask >> d & 1) && self->sizes[d] == 0)
      return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): Expected reduction dim %u to have non-zero size.", label, (unsigned)d);
  return MPS_STATUS_OK;
}

/* ---- values ---- */
static mps_status run_value(mps_stream *stream, const char *label, const char *kernel, const mps_tensor *self, uint32_t mask, const mps_tensor *out) {
  mps_status status = check(label, self, mask);
  if (status != MPS_STATUS_OK) return status;
  if (self->dtype == MPS_DTYPE_BOOL) { /* the largest is whether any is true, the smallest whether all are */
    mps_reduction r = {.label = label, .kernel = "truth", .suffix = "b8", .accumulator_bytes = 8};
    r.mode = strcmp(kernel, "amax") == 0 ? MPS_REDUCE_ANY : MPS_REDUCE_ALL;
    return mps_reduce_run(stream, &r, self, MPS_DTYPE_BOOL, mask, MPS_DTYPE_BOOL, out);
  }
  mps_dtype compute = compute_of(self->dtype);
  mps_reduction r = {.label = label, .kernel = kernel, .suffix = mps_dtype_name(compute), .accumulator_bytes = 8};
  return mps_reduce_run(stream, &r, self, compute, mask, compute, out);
}

mps_status mps_op_amax(mps_stream *stream, const mps_tensor *self, const int64_t *dim, uint32_t dim_count, bool keepdim, const mps_tensor *out) {
  (void)keepdim;
  uint32_t mask;
  mps_status status = mps_reduce_mask(dim, dim_count, self->rank, &mask);
  return status != MPS_STATUS_OK ? status : run_value(stream, "amax", "amax", self, mask, out);
}

mps_status mps_op_amin(mps_stream *stream, const mps_tensor *self, const int64_t *dim, uint32_t dim_count, bool keepdim, const mps_tensor *out) {
  (void)keepdim;
  uint32_t mask;
  mps_status status = mps_reduce_mask(dim, dim_count, self->rank, &mask);
  return status != MPS_STATUS_OK ? status : run_value(stream, "amin", "amin", self, mask, out);
}

mps_status mps_op_max_all(mps_stream *stream, const mps_tensor *self, const mps_tensor *out) {
  return run_value(stream, "max", "amax", self, (1u << self->rank) - 1, out);
}

mps_status mps_op_min_all(mps_stream *stream, const mps_tensor *self, const mps_tensor *out) {
  return run_value(stream, "min", "amin", self, (1u << self->rank) - 1, out);
}

mps_status mps_op_aminmax(mps_stream *stream, const mps_tensor *self, const int64_t *dim, bool keepdim, const mps_tensor *min, const mps_tensor *max) {
  (void)keepdim;
  uint32_t mask;
  mps_status status = mps_reduce_mask(dim, dim ? 1 : 0, self->rank, &mask);
  if (status == MPS_STATUS_OK) status = run_value(stream, "aminmax", "amin", self, mask, min);
  return status != MPS_STATUS_OK ? status : run_value(stream, "aminmax", "amax", self, mask, max);
}

/* ---- values and places ---- */
/* Either output may be missing; the kernels write both. */
static mps_status run_located(mps_stream *stream, const char *label, const char *kernel, const mps_tensor *self, uint32_t mask,
                              const mps_tensor *values, const mps_tensor *indices) {
  mps_status status = check(label, self, mask);
  if (status != MPS_STATUS_OK) return status;
  mps_dtype compute = compute_of(self->dtype);
  mps_reduction r = {.label = label, .kernel = kernel, .suffix = mps_dtype_name(compute), .accumulator_bytes = 16, .ordered = true};
  mps_tensor input;
  mps_buffer *owned;
  status = mps_operand_prepare(stream, self, compute, false, &input, &owned);
  if (status != MPS_STATUS_OK) return status;
  mps_result places, tops;
  mps_tensor unwanted;
  status = mps_result_begin(stream, indices, MPS_DTYPE_I64, &input, false, &places);
  if (status == MPS_STATUS_OK) {
    if (values)
      status = mps_result_begin(stream, values, compute, &input, false, &tops);
    else if ((status = mps_operand_create(stream, compute, indices->rank, indices->sizes, &unwanted)) == MPS_STATUS_OK)
      tops = (mps_result){.tensor = unwanted, .out = NULL};
    if (status == MPS_STATUS_OK) {
      status = mps_reduce_encode(stream, &r, &input, mask, &tops.tensor, &places.tensor);
      if (values)
        status = mps_result_end(stream, &tops, status);
      else
        mps_buffer_release(unwanted.buffer);
    }
    status = mps_result_end(stream, &places, status);
  }
  mps_buffer_release(owned);
  return status;
}

static mps_status run_located_dim(mps_stream *stream, const char *label, const char *kernel, const mps_tensor *self, const int64_t *dim,
                                  const mps_tensor *values, const mps_tensor *indices) {
  uint32_t mask;
  mps_status status = mps_reduce_mask(dim, dim ? 1 : 0, self->rank, &mask);
  return status != MPS_STATUS_OK ? status : run_located(stream, label, kernel, self, mask, values, indices);
}

mps_status mps_op_max_dim(mps_stream *stream, const mps_tensor *self, int64_t dim, bool keepdim, const mps_tensor *max, const mps_tensor *max_values) {
  (void)keepdim;
  return run_located_dim(stream, "max", "max", self, &dim, max, max_values);
}

mps_status mps_op_min_dim(mps_stream *stream, const mps_tensor *self, int64_t dim, bool keepdim, const mps_tensor *min, const mps_tensor *min_indices) {
  (void)keepdim;
  return run_located_dim(stream, "min", "min", self, &dim, min, min_indices);
}

mps_status mps_op_argmax(mps_stream *stream, const mps_tensor *self, const int64_t *dim, bool keepdim, const mps_tensor *out) {
  (void)keepdim;
  return run_located_dim(stream, "argmax", "max", self, dim, NULL, out);
}

mps_status mps_op_argmin(mps_stream *stream, const mps_tensor *self, const int64_t *dim, bool keepdim, const mps_tensor *out) {
  (void)keepdim;
  return run_located_dim(stream, "argmin", "min", self, dim, NULL, out);
}
