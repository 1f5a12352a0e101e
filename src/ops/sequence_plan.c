/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sequence_plan: from bounds and shapes to the kernels and arguments of arange, linspace, eye, triangles and their coordinates. Pure.
 */
#include "ops/sequence_plan.h"

#include <math.h>
#include <string.h>

#include "ops/operand.h"

/* A double as the sum of two floats. */
static void split(double value, float *high, float *low) {
  *high = (float)value;
  *low = __builtin_isfinite(*high) ? (float)(value - (double)*high) : 0.0f;
}

static void begin(mps_sequence_plan *plan, const char *float_stem, const char *integer_stem, const mps_tensor *out) {
  memset(plan, 0, sizeof *plan);
  plan->stem = mps_dtype_is_floating(out->dtype) ? float_stem : integer_stem;
  plan->suffix = mps_dtype_name(out->dtype);
  plan->arguments.count = out->sizes[0];
  plan->arguments.out_stride = out->strides[0];
}

void mps_sequence_plan_arange(mps_sequence_plan *plan, mps_scalar start, mps_scalar step, const mps_tensor *out) {
  begin(plan, "sequence_float", "sequence_integer", out);
  mps_sequence_arguments *a = &plan->arguments;
  a->middle = a->count;
  a->first_integer = mps_scalar_to_int64(start);
  a->step_integer = mps_scalar_to_int64(step);
  split(mps_scalar_to_double(start), &a->start_high, &a->start_low);
  split(mps_scalar_to_double(step), &a->step_high, &a->step_low);
}

void mps_sequence_plan_linspace(mps_sequence_plan *plan, mps_scalar start, mps_scalar end, const mps_tensor *out) {
  begin(plan, "linspace", "sequence_truncated", out);
  const double from = mps_scalar_to_double(start), to = mps_scalar_to_double(end);
  mps_sequence_arguments *a = &plan->arguments;
  a->middle = a->count == 1 ? 1 : a->count / 2;
  split(from, &a->start_high, &a->start_low);
  split(to, &a->end_high, &a->end_low);
  split(a->count > 1 ? (to - from) / (double)(a->count - 1) : 0.0, &a->step_high, &a->step_low);
}

/* As a processor converts a double: what does not fit becomes the smallest number. */
static int64_t truncated(double value, bool wide) {
  const double limit = wide ? 9223372036854775808.0 : 2147483648.0;
  const bool fits = value < limit && (wide ? value >= -limit : value > -limit - 1.0);
  return fits ? (int64_t)value : wide ? INT64_MIN : INT32_MIN;
}

void mps_sequence_logspace_integers(mps_dtype dtype, int64_t start, int64_t end, double base, int64_t total, int64_t first, int64_t count,
                                    int64_t *values) {
  const double step = (double)(int64_t)((uint64_t)end - (uint64_t)start) / (double)(total > 1 ? total - 1 : 1);
  const int64_t middle = total == 1 ? 1 : total / 2;
  for (int64_t i = 0; i < count; i++) {
    const int64_t position = first + i;
    const double exponent = position < middle ? (double)start + step * (double)position : (double)end - step * (double)(total - position - 1);
    values[i] = truncated(pow(base, exponent), dtype == MPS_DTYPE_I64);
  }
}

mps_tensor mps_sequence_diagonal(const mps_tensor *matrix) {
  mps_tensor diagonal = *matrix;
  diagonal.rank = 1;
  diagonal.sizes[0] = matrix->sizes[0] < matrix->sizes[1] ? matrix->sizes[0] : matrix->sizes[1];
  diagonal.strides[0] = matrix->strides[0] + matrix->strides[1];
  return diagonal;
}

mps_status mps_triangle_plan_make(mps_triangle_plan *plan, const mps_tensor *self, int64_t diagonal, bool upper, const mps_tensor *out) {
  if (self->rank < 2 || !mps_operands_same_shape(self, out) || self->dtype != out->dtype)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): input tensor must have at least 2 dimensions, and out its shape and dtype", upper ? "triu" : "tril");
  uint32_t r = self->rank - 2, c = self->rank - 1;
  memset(plan, 0, sizeof *plan);
  plan->suffix = mps_operand_bytes_suffix(out->dtype);
  mps_triangle_arguments *a = &plan->arguments;
  a->rows = self->sizes[r];
  a->columns = self->sizes[c];
  a->diagonal = diagonal;
  a->upper = upper;
  a->self_row = self->strides[r];
  a->self_column = self->strides[c];
  a->out_row = out->strides[r];
  a->out_column = out->strides[c];
  a->batch_rank = r;
  plan->threads[0] = (uint64_t)a->rows;
  plan->threads[1] = plan->threads[2] = 1;
  for (uint32_t d = 0; d < r; d++) {
    a->batch_sizes[d] = self->sizes[d];
    a->self_batch[d] = self->strides[d];
    a->out_batch[d] = out->strides[d];
    plan->threads[1] *= (uint64_t)self->sizes[d];
  }
  /* Far diagonals would overflow when a row is added to them. */
  if (a->diagonal > a->columns) a->diagonal = a->columns;
  if (a->diagonal < -a->rows) a->diagonal = -a->rows - 1;
  return MPS_STATUS_OK;
}

mps_triangle_indices_arguments mps_triangle_indices_plan(int64_t rows, int64_t columns, int64_t offset, bool upper, const mps_tensor *out) {
  mps_triangle_indices_arguments a = {.rows = rows, .columns = columns, .offset = offset, .count = out->sizes[1], .out_first = out->strides[0],
                                      .out_second = out->strides[1], .upper = upper};
  if (a.offset > columns) a.offset = columns;
  if (a.offset < -rows) a.offset = -rows - 1;
  return a;
}
