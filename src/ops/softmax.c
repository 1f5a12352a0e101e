/* SPDX-License-Identifier: BSD-3-Clause
 *
 * softmax: softmax, log_softmax and their gradients along one dimension.
 */
#include <stdio.h>
#include <string.h>

#include "graph/formula.h"
#include "kernels/softmax_arguments.h"
#include "openmps/ops/norm.h"
#include "ops/reduce.h"

/* Nanoseconds an element on one core, estimates. */
#define FORWARD_COST 0.6
#define BACKWARD_COST 0.4
/* Rows shorter than this are taken side by side when there are enough of them. */
#define SHORT_ROW 32
/* Where there are fewer rows than FEW_ROWS, long ones are cut into chunks. Constants: results do not depend on the machine. */
#define CHUNK 16384
#define LONG_ROW (4 * CHUNK)
#define FEW_ROWS 8

typedef struct softmax_plan {
  mps_softmax_arguments arguments;
  bool outer;
  uint64_t threads;
} softmax_plan;

typedef struct row_dimension {
  int64_t size;
  int64_t strides[3];
} row_dimension;

static int64_t magnitude(int64_t value) { return value < 0 ? -value : value; }

/* Rows in the order of the last tensor's strides (the result), merged where all tensors allow it. */
static uint32_t collect_rows(row_dimension *rows, const mps_tensor *const *tensors, uint32_t count, uint32_t dim) {
  uint32_t rank = 0;
  const mps_tensor *shape = tensors[0];
  for (uint32_t d = 0; d < shape->rank; d++) {
    if (d == dim || shape->sizes[d] == 1) continue;
    row_dimension item = {.size = shape->sizes[d]};
    for (uint32_t t = 0; t < count; t++) item.strides[t] = tensors[t]->strides[d];
    uint32_t j = rank++;
    for (; j > 0 && magnitude(rows[j - 1].strides[count - 1]) < magnitude(item.strides[count - 1]); j--) rows[j] = rows[j - 1];
    rows[j] = item;
  }
  uint32_t kept = 0;
  for (uint32_t i = 0; i < rank; i++) {
    bool joins = kept > 0;
    for (uint32_t t = 0; joins && t < count; t++) joins = rows[kept - 1].strides[t] == rows[i].strides[t] * rows[i].size;
    if (joins) {
      rows[kept - 1].size *= rows[i].size;
      memcpy(rows[kept - 1].strides, rows[i].strides, sizeof rows[i].strides);
    } else {
      rows[kept++] = rows[i];
    }
  }
  if (kept == 0) rows[kept++] = (row_dimension){.size = 1, .strides = {1, 1, 1}};
  return kept;
}

static void plan_rows(softmax_plan *plan, const mps_tensor *const *tensors, uint32_t count, uint32_t dim, bool logarithm) {
  memset(plan, 0, sizeof *plan);
  mps_softmax_arguments *a = &plan->arguments;
  row_dimension rows[MPS_SOFTMAX_MAX_RANK];
  a->rank = collect_rows(rows, tensors, count, dim);
  a->logarithm = logarithm;
  a->count = tensors[0]->sizes[dim];
  int64_t total = 1;
  bool neighbours = true;
  for (uint32_t t = 0; t < count; t++) {
    a->element_strides[t] = tensors[t]->strides[dim];
    neighbours = neighbours && (a->element_strides[t] == 1 || a->count == 1);
  }
  for (uint32_t d = 0; d < a->rank; d++) {
    a->sizes[d] = rows[d].size;
    total *= rows[d].size;
    for (uint32_t t = 0; t < count; t++) a->strides[t][d] = rows[d].strides[t];
  }
  int64_t inner = a->sizes[a->rank - 1];
  plan->outer = !neighbours || (a->count < SHORT_ROW && inner >= SHORT_ROW);
  const bool cut = !plan->outer && total < FEW_ROWS && a->count >= LONG_ROW;
  a->chunk = cut ? CHUNK : a->count;
  a->chunk_count = cut ? (a->count + CHUNK - 1) / CHUNK : 1;
  plan->threads = (uint64_t)(plan->outer ? total / inner * ((inner + MPS_SOFTMAX_TILE - 1) / MPS_SOFTMAX_TILE) : total);
}

/* One kernel: "<kernel>_<pass>", for the dtype of the tensors, or for all when `suffix` is NULL. The result is bound unless `reads_only`. */
static mps_status encode_pass(mps_stream *stream, const char *label, const char *kernel, const char *pass, const char *suffix, const softmax_plan *plan,
                              const mps_tensor *const *tensors, uint32_t count, bool reads_only, mps_buffer *partials) {
  char stem[40];
  snprintf(stem, sizeof stem, "%s_%s", kernel, pass);
  mps_pipeline *pipeline;
  mps_status status = mps_operand_pipeline(stream, stem, suffix, &pipeline);
  if (status != MPS_STATUS_OK) return status;
  mps_encoder encoder;
  mps_encoder_begin(&encoder, stream, label);
  mps_encoder_set_pipeline(&encoder, pipeline);
  for (uint32_t t = 0; t < count; t++) {
    const bool result = t + 1 == count;
    if (!suffix || (result && reads_only))
      mps_encoder_set_unused(&encoder, t);
    else
      mps_encoder_set_tensor(&encoder, t, tensors[t], result ? MPS_ACCESS_WRITE : MPS_ACCESS_READ);
  }
  mps_encoder_set_bytes(&encoder, 3, &plan->arguments, sizeof plan->arguments);
  if (partials) mps_encoder_set_buffer(&encoder, 4, partials, 0, !suffix ? MPS_ACCESS_READ_WRITE : reads_only ? MPS_ACCESS_WRITE : MPS_ACCESS_READ);
  const double elements = suffix ? (double)mps_tensor_element_count(tensors[0]) : (double)plan->arguments.chunk_count;
  mps_encoder_set_cost(&encoder, elements * (count == 2 ? FORWARD_COST : BACKWARD_COST));
  return mps_encoder_dispatch(&encoder, (uint64_t[3]){plan->threads, suffix ? (uint64_t)plan->arguments.chunk_count : 1, 1}, NULL);
}

/* tensors: what is read, then the result; all of one dtype. */
static mps_status encode_rows(mps_stream *stream, const char *label, const char *kernel, const mps_tensor *const *tensors, uint32_t count,
                              uint32_t dim, bool logarithm) {
  softmax_plan plan;
  plan_rows(&plan, tensors, count, dim, logarithm);
  if (plan.threads > UINT32_MAX)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s: %llu rows are more than one call can take; split the tensor", label,
                         (unsigned long long)plan.threads);
  const char *suffix = mps_dtype_name(tensors[0]->dtype);
  if (plan.arguments.chunk_count == 1)
    return encode_pass(stream, label, kernel, plan.outer ? "outer" : "inner", suffix, &plan, tensors, count, false, NULL);
  mps_buffer *partials;
  mps_status status = mps_buffer_create(mps_stream_device(stream), stream, plan.threads * (uint64_t)plan.arguments.chunk_count * 2 * sizeof(float), &partials);
  if (status != MPS_STATUS_OK) return status;
  status = encode_pass(stream, label, kernel, "totals", suffix, &plan, tensors, count, true, partials);
  if (status == MPS_STATUS_OK) status = encode_pass(stream, label, kernel, "merge", NULL, &plan, tensors, count, true, partials);
  if (status == MPS_STATUS_OK) status = encode_pass(stream, label, kernel, "results", suffix, &plan, tensors, count, false, partials);
  mps_buffer_release(partials);
  return status;
}

/* An overlap that is not element for element goes through a temporary. */
static bool meets(const mps_tensor *input, const mps_tensor *out) { return mps_operands_overlap(input, out) && !mps_operands_equal(input, out); }

static mps_status run_forward(mps_stream *stream, const char *label, const mps_tensor *self, int64_t dim, const mps_tensor *out, bool logarithm) {
  uint32_t d;
  mps_status status = mps_operand_dimension(dim, self->rank, &d);
  if (status != MPS_STATUS_OK || mps_tensor_element_count(self) == 0) return status;
  mps_tensor shaped = mps_operand_at_least_1d(self), shaped_out = mps_operand_at_least_1d(out), input;
  if (!mps_dtype_is_floating(out->dtype))
    return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", label, mps_dtype_title(out->dtype));
  mps_buffer *owned;
  status = mps_operand_prepare(stream, &shaped, out->dtype, false, &input, &owned);
  if (status != MPS_STATUS_OK) return status;
  mps_result result;
  status = mps_result_begin(stream, &shaped_out, out->dtype, meets(&input, out) ? &input : NULL, false, &result);
  if (status == MPS_STATUS_OK) {
    const mps_tensor *tensors[] = {&input, &result.tensor};
    status = mps_result_end(stream, &result, encode_rows(stream, label, "softmax", tensors, 2, d, logarithm));
  }
  mps_buffer_release(owned);
  return status;
}

mps_status mps_op_softmax(mps_stream *stream, const mps_tensor *self, int64_t dim, bool half_to_float, const mps_tensor *out) {
  (void)half_to_float; /* out says it */
  return run_forward(stream, "softmax", self, dim, out, false);
}

mps_status mps_op_log_softmax(mps_stream *stream, const mps_tensor *self, int64_t dim, bool half_to_float, const mps_tensor *out) {
  (void)half_to_float;
  return run_forward(stream, "log_softmax", self, dim, out, true);
}

/* Computes in the dtype of `output`; the result may be a half's where output is f32. */
static mps_status run_backward(mps_stream *stream, const char *label, const mps_tensor *grad_output, const mps_tensor *output, int64_t dim,
                               const mps_tensor *grad_input, bool logarithm) {
  uint32_t d;
  mps_status status = mps_operand_dimension(dim, output->rank, &d);
  if (status != MPS_STATUS_OK || mps_tensor_element_count(output) == 0) return status;
  mps_tensor shaped[3] = {mps_operand_at_least_1d(grad_output), mps_operand_at_least_1d(output), mps_operand_at_least_1d(grad_input)};
  mps_tensor grad, values;
  mps_buffer *owned_grad, *owned_values = NULL;
  if (!mps_dtype_is_floating(output->dtype))
    return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", label, mps_dtype_title(output->dtype));
  /* The gradient of a sum is expanded: one copy is cheaper than rows of which one operand cannot be read in vectors. */
  bool copied = shaped[1].strides[d] == 1 && shaped[0].strides[d] != 1;
  status = mps_operand_prepare(stream, &shaped[0], output->dtype, copied, &grad, &owned_grad);
  if (status != MPS_STATUS_OK) return status;
  status = mps_operand_prepare(stream, &shaped[1], output->dtype, false, &values, &owned_values);
  if (status == MPS_STATUS_OK) {
    mps_result result;
    const mps_tensor *overlapping = meets(&grad, grad_input) ? &grad : meets(&values, grad_input) ? &values : NULL;
    status = mps_result_begin(stream, &shaped[2], output->dtype, overlapping, false, &result);
    if (status == MPS_STATUS_OK) {
      const mps_tensor *tensors[] = {&grad, &values, &result.tensor};
      status = mps_result_end(stream, &result, encode_rows(stream, label, "softmax_backward", tensors, 3, d, logarithm));
    }
  }
  mps_buffer_release(owned_grad);
  mps_buffer_release(owned_values);
  return status;
}

mps_status mps_op_softmax_backward(mps_stream *stream, const mps_tensor *grad_output, const mps_tensor *output, int64_t dim, mps_dtype input_dtype,
                                   const mps_tensor *grad_input) {
  (void)input_dtype; /* grad_input says it */
  return run_backward(stream, "softmax_backward", grad_output, output, dim, grad_input, false);
}

mps_status mps_op_log_softmax_backward(mps_stream *stream, const mps_tensor *grad_output, const mps_tensor *output, int64_t dim,
                                       mps_dtype input_dtype, const mps_tensor *grad_input) {
  (void)input_dtype;
  return run_backward(stream, "log_softmax_backward", grad_output, output, dim, grad_input, true);
}
