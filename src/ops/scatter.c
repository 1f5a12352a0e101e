/* SPDX-License-Identifier: BSD-3-Clause
 *
 * scatter: operators that write through one index along a dimension: scatter and its reductions, index_add, index_copy, index_fill,
 * index_reduce. All are the same three steps: out = self, a write of the values, and for means a division by counts.
 */
#include <string.h>

#include "openmps/ops/index.h"
#include "openmps/ops/pointwise.h"
#include "openmps/ops/pointwise_comparison.h"
#include "ops/index_encode.h"
#include "ops/operand.h"

/* One write, whatever the operator. */
typedef struct scatter_call {
  const char *label;
  const mps_tensor *self, *index, *values, *out;
  int64_t dim;
  mps_index_reduction reduction;
  bool index_is_vector; /* index has one dimension, along dim; else it has the shape of the walk */
  bool mean;
  bool include_self;
  bool wraps;
} scatter_call;

static mps_status check(const scatter_call *call, uint32_t *out_dimension) {
  mps_status status = mps_operand_dimension(call->dim, call->out->rank, out_dimension);
  if (status == MPS_STATUS_OK) status = mps_index_check(call->index, call->label);
  if (status != MPS_STATUS_OK) return status;
  if (call->values->buffer && call->values->dtype != call->out->dtype)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): Expected self.dtype to be equal to src.dtype", call->label);
  return MPS_STATUS_OK;
}

/* out = self, unless they are the same. */
static mps_status start_from_self(mps_stream *stream, const scatter_call *call) {
  if (!call->self || mps_operands_equal(call->self, call->out)) return MPS_STATUS_OK;
  return mps_op_copy(stream, call->self, call->out);
}

/* out /= how many values went into each element (self counts as one when it is included), integers rounding down. */
static mps_status divide_by_counts(mps_stream *stream, const scatter_call *call, const mps_index_space *space, const mps_tensor *index,
                                   const mps_tensor *sums) {
  mps_tensor counts;
  mps_dtype dtype = mps_dtype_is_floating(sums->dtype) || mps_dtype_is_complex(sums->dtype) ? MPS_DTYPE_F32 : MPS_DTYPE_I64;
  mps_status status = mps_operand_create(stream, dtype, sums->rank, sums->sizes, &counts);
  if (status != MPS_STATUS_OK) return status;
  mps_tensor one = mps_operand_constant(&counts, dtype, mps_scalar_int(1));
  const mps_index_space over_counts = mps_index_space_counts(space, &counts);
  status = mps_operand_fill(stream, &counts, mps_scalar_int(call->include_self ? 1 : 0));
  if (status == MPS_STATUS_OK) status = mps_index_write(stream, call->label, MPS_INDEX_ADD, &over_counts, &counts, index, &one);
  mps_tensor at_least_one = counts;
  if (status == MPS_STATUS_OK && !call->include_self) status = mps_op_maximum(stream, &counts, &one, &at_least_one);
  if (status == MPS_STATUS_OK) status = dtype == MPS_DTYPE_F32 ? mps_op_div(stream, sums, &counts, sums) : mps_op_floor_divide(stream, sums, &counts, sums);
  mps_buffer_release(counts.buffer);
  return status;
}

/* The write itself, on `sums`, which is out or its float copy. */
static mps_status write_values(mps_stream *stream, const scatter_call *call, uint32_t dimension, const mps_tensor *index, const mps_tensor *sums) {
  mps_tensor data = mps_operand_at_least_1d(sums), values = mps_operand_at_least_1d(call->values);
  mps_index_space space;
  if (call->index_is_vector)
    mps_index_space_vector(&space, &data, dimension, index, &values);
  else
    mps_index_space_points(&space, &data, dimension, index, &values);
  space.wraps = call->wraps;
  mps_status status = MPS_STATUS_OK;
  if (call->reduction != MPS_INDEX_ASSIGN && !call->include_self) {
    mps_tensor fresh = mps_operand_constant(&data, data.dtype, mps_index_identity(call->reduction, data.dtype));
    mps_index_space over_fresh = space;
    memset(over_fresh.value, 0, sizeof over_fresh.value);
    status = mps_index_write(stream, call->label, MPS_INDEX_ASSIGN, &over_fresh, &data, index, &fresh);
  }
  if (status == MPS_STATUS_OK) status = mps_index_write(stream, call->label, call->reduction, &space, &data, index, &values);
  if (status == MPS_STATUS_OK && call->mean) status = divide_by_counts(stream, call, &space, index, &data);
  return status;
}

static mps_status run(mps_stream *stream, const scatter_call *call) {
  uint32_t dimension;
  mps_status status = check(call, &dimension);
  if (status == MPS_STATUS_OK) status = start_from_self(stream, call);
  if (status != MPS_STATUS_OK) return status;
  if (mps_tensor_element_count(call->index) == 0 || mps_tensor_element_count(call->out) == 0) return MPS_STATUS_OK;

  mps_tensor index, sums;
  mps_buffer *owned_index, *owned_sums = NULL;
  status = mps_operand_prepare(stream, call->index, MPS_DTYPE_I64, false, &index, &owned_index);
  if (status != MPS_STATUS_OK) return status;
  status = mps_index_accumulator(stream, call->out, call->reduction, &sums, &owned_sums);
  if (status == MPS_STATUS_OK) status = write_values(stream, call, dimension, &index, &sums);
  if (status == MPS_STATUS_OK && owned_sums) status = mps_op_copy(stream, &sums, call->out);
  mps_buffer_release(owned_sums);
  mps_buffer_release(owned_index);
  return status;
}

/* "sum" and "add" and so on, as PyTorch names them. */
static mps_status parse_reduction(const char *label, const char *reduce, mps_index_reduction *out_reduction, bool *out_mean) {
  static const struct {
    const char *name;
    mps_index_reduction reduction;
  } names[] = {{"sum", MPS_INDEX_ADD},       {"add", MPS_INDEX_ADD},      {"prod", MPS_INDEX_MULTIPLY},  {"multiply", MPS_INDEX_MULTIPLY},
               {"mean", MPS_INDEX_ADD},      {"amax", MPS_INDEX_LARGEST}, {"amin", MPS_INDEX_SMALLEST}};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    if (strcmp(reduce, names[i].name) != 0) continue;
    *out_reduction = names[i].reduction;
    *out_mean = strcmp(reduce, "mean") == 0;
    return MPS_STATUS_OK;
  }
  return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): reduce argument must be either sum, prod, mean, amax or amin, got %s", label, reduce);
}

mps_status mps_op_scatter(mps_stream *stream, const mps_tensor *self, int64_t dim, const mps_tensor *index, const mps_tensor *src, const mps_tensor *out) {
  return run(stream, &(scatter_call){.label = "scatter", .self = self, .index = index, .values = src, .out = out, .dim = dim,
                                     .reduction = MPS_INDEX_ASSIGN, .include_self = true});
}

mps_status mps_op_scatter_value(mps_stream *stream, const mps_tensor *self, int64_t dim, const mps_tensor *index, mps_scalar value, const mps_tensor *out) {
  mps_tensor values = mps_operand_constant(index, out->dtype, value);
  return run(stream, &(scatter_call){.label = "scatter", .self = self, .index = index, .values = &values, .out = out, .dim = dim,
                                     .reduction = MPS_INDEX_ASSIGN, .include_self = true});
}

mps_status mps_op_scatter_add(mps_stream *stream, const mps_tensor *self, int64_t dim, const mps_tensor *index, const mps_tensor *src, const mps_tensor *out) {
  return run(stream, &(scatter_call){.label = "scatter_add", .self = self, .index = index, .values = src, .out = out, .dim = dim,
                                     .reduction = MPS_INDEX_ADD, .include_self = true});
}

mps_status mps_op_scatter_reduce(mps_stream *stream, const mps_tensor *self, int64_t dim, const mps_tensor *index, const mps_tensor *src,
                                 const char *reduce, bool include_self, const mps_tensor *out) {
  scatter_call call = {.label = "scatter_reduce", .self = self, .index = index, .values = src, .out = out, .dim = dim, .include_self = include_self};
  mps_status status = parse_reduction(call.label, reduce, &call.reduction, &call.mean);
  return status == MPS_STATUS_OK ? run(stream, &call) : status;
}

mps_status mps_op_scatter_with_reduce(mps_stream *stream, const mps_tensor *self, int64_t dim, const mps_tensor *index, const mps_tensor *src,
                                      const char *reduce, const mps_tensor *out) {
  return mps_op_scatter_reduce(stream, self, dim, index, src, reduce, true, out);
}

mps_status mps_op_scatter_value_with_reduce(mps_stream *stream, const mps_tensor *self, int64_t dim, const mps_tensor *index, mps_scalar value,
                                            const char *reduce, const mps_tensor *out) {
  mps_tensor values = mps_operand_constant(index, out->dtype, value);
  return mps_op_scatter_reduce(stream, self, dim, index, &values, reduce, true, out);
}

mps_status mps_op_index_add(mps_stream *stream, const mps_tensor *self, int64_t dim, const mps_tensor *index, const mps_tensor *source, mps_scalar alpha,
                            const mps_tensor *out) {
  mps_tensor values = *source;
  mps_buffer *owned = NULL;
  mps_status status = MPS_STATUS_OK;
  if (alpha.kind == MPS_SCALAR_COMPLEX || mps_scalar_to_double(alpha) != 1.0) {
    mps_tensor factor = mps_operand_constant(source, source->dtype, alpha);
    status = mps_operand_create(stream, source->dtype, source->rank, source->sizes, &values);
    owned = status == MPS_STATUS_OK ? values.buffer : NULL;
    if (status == MPS_STATUS_OK) status = mps_op_mul(stream, source, &factor, &values);
  }
  if (status == MPS_STATUS_OK)
    status = run(stream, &(scatter_call){.label = "index_add", .self = self, .index = index, .values = &values, .out = out, .dim = dim,
                                         .reduction = MPS_INDEX_ADD, .index_is_vector = true, .include_self = true});
  mps_buffer_release(owned);
  return status;
}

mps_status mps_op_index_copy(mps_stream *stream, const mps_tensor *self, int64_t dim, const mps_tensor *index, const mps_tensor *source,
                             const mps_tensor *out) {
  return run(stream, &(scatter_call){.label = "index_copy", .self = self, .index = index, .values = source, .out = out, .dim = dim,
                                     .reduction = MPS_INDEX_ASSIGN, .index_is_vector = true, .include_self = true});
}

mps_status mps_op_index_fill(mps_stream *stream, const mps_tensor *self, int64_t dim, const mps_tensor *index, mps_scalar value, const mps_tensor *out) {
  mps_tensor values = mps_operand_constant(out, out->dtype, value);
  return run(stream, &(scatter_call){.label = "index_fill", .self = self, .index = index, .values = &values, .out = out, .dim = dim,
                                     .reduction = MPS_INDEX_ASSIGN, .index_is_vector = true, .include_self = true, .wraps = true});
}

mps_status mps_op_index_reduce(mps_stream *stream, const mps_tensor *self, int64_t dim, const mps_tensor *index, const mps_tensor *source,
                               const char *reduce, bool include_self, const mps_tensor *out) {
  scatter_call call = {.label = "index_reduce", .self = self, .index = index, .values = source, .out = out, .dim = dim, .index_is_vector = true,
                       .include_self = include_self};
  mps_status status = parse_reduction(call.label, reduce, &call.reduction, &call.mean);
  return status == MPS_STATUS_OK ? run(stream, &call) : status;
}
