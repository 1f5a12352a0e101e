/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cdist: p-norm distances between the rows of two matrices (cdist) or of one (pdist), and their gradients. All is computed in float; other
 * types are converted before and rounded once behind.
 */
#include <math.h>

#include "graph/formula.h"
#include "kernels/cdist_arguments.h"
#include "openmps/library.h"
#include "openmps/ops/cdist.h"
#include "openmps/ops/pointwise.h"
#include "ops/operand.h"

enum { BLOCK = 512 /* distances, or columns of a gradient, that one thread takes */, MAX_OPERANDS = 5 };

/* Operands in float, and what of them has to be released. */
typedef struct cdist_call {
  const char *label;
  mps_tensor operands[MAX_OPERANDS]; /* the last one is written */
  mps_buffer *owned[MAX_OPERANDS];
  uint32_t count;
  const mps_tensor *out;
  mps_cdist_arguments arguments;
  uint64_t threads[3];
  double cost;
} cdist_call;

static mps_status check_matrices(const char *label, const mps_tensor *x1, const mps_tensor *x2, double p) {
  if (x1->rank != 3 || x2->rank != 3 || x1->sizes[0] != x2->sizes[0] || x1->sizes[2] != x2->sizes[2])
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): expected two batches of matrices with rows of one length", label);
  if (!(p >= 0)) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): p must not be negative", label);
  if (!mps_dtype_is_floating(x1->dtype))
    return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", label, mps_dtype_title(x1->dtype));
  return MPS_STATUS_OK;
}

static mps_status check_size(const char *label, const mps_tensor *tensor, int64_t count) {
  if (mps_tensor_element_count(tensor) == count && mps_dtype_is_floating(tensor->dtype)) return MPS_STATUS_OK;
  return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): expected a floating tensor with %lld elements", label, (long long)count);
}

/* The kernel of a norm. Its gradient has no kernel for 0: that gradient is zero. */
static const char *norm_of(double p, bool backward) {
  if (p == 0.0) return "zero";
  if (p == 1.0) return "one";
  if (p == 2.0) return "two";
  if (isinf(p)) return "infinite";
  return backward && p < 2.0 ? "below_two" : "general";
}

static mps_tensor transposed(const mps_tensor *batch) {
  mps_tensor view = *batch;
  view.sizes[1] = batch->sizes[2];
  view.sizes[2] = batch->sizes[1];
  view.strides[1] = batch->strides[2];
  view.strides[2] = batch->strides[1];
  return view;
}

/* Adds an operand that is read. */
static mps_status add_operand(mps_stream *stream, cdist_call *call, const mps_tensor *tensor) {
  const uint32_t i = call->count;
  mps_status status = mps_operand_prepare(stream, tensor, MPS_DTYPE_F32, true, &call->operands[i], &call->owned[i]);
  if (status == MPS_STATUS_OK) call->count++;
  return status;
}

/* The operand that is written: `out`, or a temporary behind which out is a copy. */
static mps_status add_result(mps_stream *stream, cdist_call *call, const mps_tensor *out) {
  const uint32_t i = call->count++;
  call->out = out;
  call->operands[i] = *out;
  call->owned[i] = NULL;
  if (out->dtype == MPS_DTYPE_F32 && mps_tensor_is_contiguous(out)) return MPS_STATUS_OK;
  mps_status status = mps_operand_create(stream, MPS_DTYPE_F32, out->rank, out->sizes, &call->operands[i]);
  if (status == MPS_STATUS_OK) call->owned[i] = call->operands[i].buffer;
  return status;
}

static mps_status encode(mps_stream *stream, const cdist_call *call, const char *stem, const char *norm) {
  mps_pipeline *pipeline;
  mps_status status = mps_operand_pipeline(stream, stem, norm, &pipeline);
  if (status != MPS_STATUS_OK) return status;
  mps_encoder encoder;
  mps_encoder_begin(&encoder, stream, call->label);
  mps_encoder_set_pipeline(&encoder, pipeline);
  for (uint32_t i = 0; i < call->count; i++)
    mps_encoder_set_buffer(&encoder, i, call->operands[i].buffer, call->operands[i].offset, i + 1 < call->count ? MPS_ACCESS_READ : MPS_ACCESS_READ_WRITE);
  mps_encoder_set_bytes(&encoder, call->count, &call->arguments, sizeof call->arguments);
  mps_encoder_set_cost(&encoder, call->cost);
  status = mps_encoder_dispatch(&encoder, call->threads, NULL);
  const mps_tensor *result = &call->operands[call->count - 1];
  return status == MPS_STATUS_OK && result->buffer != call->out->buffer ? mps_op_copy(stream, result, call->out) : status;
}

static void release(cdist_call *call) {
  for (uint32_t i = 0; i < call->count; i++) mps_buffer_release(call->owned[i]);
}

static void plan(cdist_call *call, const mps_tensor *x1, const mps_tensor *x2, double p, bool triangle, bool backward) {
  mps_cdist_arguments *a = &call->arguments;
  *a = (mps_cdist_arguments){.rows = x1->sizes[1], .others = x2->sizes[1], .length = x1->sizes[2], .block = BLOCK, .p = (float)p, .triangle = triangle};
  const int64_t blocked = backward ? a->length : a->others;
  call->threads[0] = (uint64_t)(x1->sizes[0] * a->rows);
  call->threads[1] = (uint64_t)((blocked + BLOCK - 1) / BLOCK);
  call->threads[2] = 1;
  const bool powers = p != 0.0 && p != 1.0 && p != 2.0 && !isinf(p);
  call->cost = (powers ? 3.0 : 0.15) * (double)call->threads[0] * (double)a->others * (double)a->length;
}

static mps_status forward(mps_stream *stream, const char *label, const mps_tensor *x1, const mps_tensor *x2, double p, bool triangle, const mps_tensor *out) {
  cdist_call call = {.label = label};
  const mps_tensor columns = transposed(x2);
  mps_status status = add_operand(stream, &call, x1);
  if (status == MPS_STATUS_OK) status = add_operand(stream, &call, &columns);
  if (status == MPS_STATUS_OK) status = add_result(stream, &call, out);
  plan(&call, x1, x2, p, triangle, false);
  if (status == MPS_STATUS_OK) status = encode(stream, &call, "cdist", norm_of(p, false));
  release(&call);
  return status;
}

/* The distances of halves in float: the infinite norm's gradient asks which column is the distance, and no column is the rounded one. */
static mps_status add_exact_distances(mps_stream *stream, cdist_call *call, const mps_tensor *x1, const mps_tensor *x2, double p, const mps_tensor *distances,
                                      bool triangle) {
  const uint32_t i = call->count;
  mps_status status = mps_operand_create(stream, MPS_DTYPE_F32, distances->rank, distances->sizes, &call->operands[i]);
  if (status != MPS_STATUS_OK) return status;
  call->owned[i] = call->operands[i].buffer;
  call->count++;
  return forward(stream, call->label, x1, x2, p, triangle, &call->operands[i]);
}

static mps_status backward(mps_stream *stream, const char *label, const mps_tensor *grad, const mps_tensor *x1, const mps_tensor *x2, double p,
                           const mps_tensor *distances, bool triangle, const mps_tensor *out) {
  if (p == 0.0 || mps_tensor_element_count(distances) == 0) return mps_operand_fill(stream, out, mps_scalar_int(0));
  cdist_call call = {.label = label};
  mps_status status = add_operand(stream, &call, x1);
  if (status == MPS_STATUS_OK) status = add_operand(stream, &call, x2);
  if (status == MPS_STATUS_OK) status = add_operand(stream, &call, grad);
  if (status == MPS_STATUS_OK && isinf(p) && distances->dtype != MPS_DTYPE_F32)
    status = add_exact_distances(stream, &call, x1, x2, p, distances, triangle);
  else if (status == MPS_STATUS_OK)
    status = add_operand(stream, &call, distances);
  if (status == MPS_STATUS_OK) status = add_result(stream, &call, out);
  plan(&call, x1, x2, p, triangle, true);
  if (status == MPS_STATUS_OK) status = encode(stream, &call, "cdist_backward", norm_of(p, true));
  release(&call);
  return status;
}

mps_status mps_op_cdist(mps_stream *stream, const mps_tensor *x1, const mps_tensor *x2, double p, const mps_tensor *out) {
  mps_status status = check_matrices("cdist", x1, x2, p);
  if (status == MPS_STATUS_OK) status = check_size("cdist", out, x1->sizes[0] * x1->sizes[1] * x2->sizes[1]);
  if (status != MPS_STATUS_OK || mps_tensor_element_count(out) == 0) return status;
  return forward(stream, "cdist", x1, x2, p, false, out);
}

mps_status mps_op_cdist_backward(mps_stream *stream, const mps_tensor *grad, const mps_tensor *x1, const mps_tensor *x2, double p, const mps_tensor *cdist,
                                 const mps_tensor *out) {
  mps_status status = check_matrices("cdist_backward", x1, x2, p);
  if (status == MPS_STATUS_OK) status = check_size("cdist_backward", grad, x1->sizes[0] * x1->sizes[1] * x2->sizes[1]);
  if (status == MPS_STATUS_OK) status = check_size("cdist_backward", cdist, x1->sizes[0] * x1->sizes[1] * x2->sizes[1]);
  if (status == MPS_STATUS_OK) status = check_size("cdist_backward", out, mps_tensor_element_count(x1));
  if (status != MPS_STATUS_OK || mps_tensor_element_count(out) == 0) return status;
  return backward(stream, "cdist_backward", grad, x1, x2, p, cdist, false, out);
}

/* A matrix as a batch of one. */
static mps_tensor batch_of_one(const mps_tensor *matrix) {
  mps_tensor batch = *matrix;
  batch.rank = 3;
  batch.sizes[0] = 1;
  batch.strides[0] = 0;
  for (uint32_t d = 0; d < 2; d++) {
    batch.sizes[d + 1] = matrix->sizes[d];
    batch.strides[d + 1] = matrix->strides[d];
  }
  return batch;
}

static mps_status check_pairs(const char *label, const mps_tensor *self, double p, const mps_tensor *distances) {
  if (self->rank != 2) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s only supports 2D tensors, got: %uD", label, (unsigned)self->rank);
  const mps_tensor batch = batch_of_one(self);
  mps_status status = check_matrices(label, &batch, &batch, p);
  const int64_t n = self->sizes[0];
  return status != MPS_STATUS_OK ? status : check_size(label, distances, n * (n - 1) / 2);
}

mps_status mps_op_pdist(mps_stream *stream, const mps_tensor *self, double p, const mps_tensor *out) {
  mps_status status = check_pairs("pdist", self, p, out);
  if (status != MPS_STATUS_OK || mps_tensor_element_count(out) == 0) return status;
  const mps_tensor batch = batch_of_one(self);
  return forward(stream, "pdist", &batch, &batch, p, true, out);
}

mps_status mps_op_pdist_backward(mps_stream *stream, const mps_tensor *grad, const mps_tensor *self, double p, const mps_tensor *pdist, const mps_tensor *out) {
  mps_status status = check_pairs("pdist_backward", self, p, pdist);
  if (status == MPS_STATUS_OK) status = check_size("pdist_backward", grad, mps_tensor_element_count(pdist));
  if (status == MPS_STATUS_OK) status = check_size("pdist_backward", out, mps_tensor_element_count(self));
  if (status != MPS_STATUS_OK || mps_tensor_element_count(out) == 0) return status;
  const mps_tensor batch = batch_of_one(self);
  return backward(stream, "pdist_backward", grad, &batch, &batch, p, pdist, true, out);
}
