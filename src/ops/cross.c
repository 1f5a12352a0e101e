/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cross: cross products along a dimension of size 3.
 */
#include <string.h>

#include "graph/formula.h"
#include "kernels/cross_arguments.h"
#include "openmps/library.h"
#include "openmps/ops/cross.h"
#include "ops/operand.h"

enum { BLOCK = 4096 /* vectors that one thread takes */ };

static mps_status check(const mps_tensor *self, const mps_tensor *other, uint32_t dimension, const mps_tensor *out) {
  if (out->rank == 0 || out->sizes[dimension] != 3)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "linalg.cross: inputs dimension %u must have length 3. Got %lld and %lld", (unsigned)dimension,
                         out->rank ? (long long)self->sizes[dimension] : 1LL, out->rank ? (long long)other->sizes[dimension] : 1LL);
  if (out->dtype == MPS_DTYPE_BOOL || out->dtype == MPS_DTYPE_C32)
    return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "\"cross\" not implemented for '%s'", mps_dtype_title(out->dtype));
  const mps_tensor *inputs[] = {self, other};
  for (uint32_t i = 0; i < 2; i++)
    for (uint32_t d = 0; d < out->rank; d++)
      if (inputs[i]->rank != out->rank || (inputs[i]->sizes[d] != out->sizes[d] && inputs[i]->sizes[d] != 1))
        return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "linalg.cross: inputs must broadcast to the shape of the result");
  return MPS_STATUS_OK;
}

static int64_t stride_of(const mps_tensor *tensor, uint32_t d, const mps_tensor *out) { return tensor->sizes[d] == out->sizes[d] ? tensor->strides[d] : 0; }

/* The dimensions but `dimension`, neighbours merged where all operands allow it; the last one is the run. */
static void plan(const mps_tensor *const operands[3], uint32_t dimension, mps_cross_arguments *a) {
  const mps_tensor *out = operands[2];
  memset(a, 0, sizeof *a);
  for (uint32_t i = 0; i < 3; i++) a->step[i] = stride_of(operands[i], dimension, out);
  for (uint32_t d = 0; d < out->rank; d++) {
    if (d == dimension || out->sizes[d] == 1) continue;
    bool merges = a->rank > 0;
    for (uint32_t i = 0; merges && i < 3; i++) merges = a->strides[i][a->rank - 1] == stride_of(operands[i], d, out) * out->sizes[d];
    if (!merges) a->sizes[a->rank++] = 1;
    a->sizes[a->rank - 1] *= out->sizes[d];
    for (uint32_t i = 0; i < 3; i++) a->strides[i][a->rank - 1] = stride_of(operands[i], d, out);
  }
  a->run = 1;
  if (a->rank) {
    a->run = a->sizes[--a->rank];
    for (uint32_t i = 0; i < 3; i++) a->run_stride[i] = a->strides[i][a->rank];
  }
  a->block = a->run < BLOCK ? a->run : BLOCK;
}

static mps_status encode(mps_stream *stream, const mps_tensor *const operands[3], uint32_t dimension) {
  mps_cross_arguments a;
  plan(operands, dimension, &a);
  const mps_dtype dtype = operands[2]->dtype;
  mps_pipeline *pipeline;
  mps_status status = mps_operand_pipeline(stream, "cross_product", mps_dtype_is_integral(dtype) ? mps_operand_bytes_suffix(dtype) : mps_dtype_name(dtype),
                                           &pipeline);
  if (status != MPS_STATUS_OK) return status;
  const int64_t vectors = mps_tensor_element_count(operands[2]) / 3;
  mps_encoder encoder;
  mps_encoder_begin(&encoder, stream, "linalg_cross");
  mps_encoder_set_pipeline(&encoder, pipeline);
  for (uint32_t i = 0; i < 3; i++)
    mps_encoder_set_buffer(&encoder, i, operands[i]->buffer, operands[i]->offset, i < 2 ? MPS_ACCESS_READ : MPS_ACCESS_WRITE);
  mps_encoder_set_bytes(&encoder, 3, &a, sizeof a);
  mps_encoder_set_cost(&encoder, 2.0 * (double)vectors);
  return mps_encoder_dispatch(&encoder, (uint64_t[]){(uint64_t)(vectors / a.run), (uint64_t)((a.run + a.block - 1) / a.block), 1}, NULL);
}

/* An input in out's dtype; a copy where out lies across it (being out itself does no harm). */
static mps_status prepare(mps_stream *stream, const mps_tensor *input, const mps_tensor *out, mps_tensor *prepared, mps_buffer **owned) {
  if (!mps_operands_overlap(input, out) || mps_operands_equal(input, out)) return mps_operand_prepare(stream, input, out->dtype, false, prepared, owned);
  mps_status status = mps_operand_copy(stream, input, out->dtype, prepared);
  *owned = status == MPS_STATUS_OK ? prepared->buffer : NULL;
  return status;
}

mps_status mps_op_linalg_cross(mps_stream *stream, const mps_tensor *self, const mps_tensor *other, int64_t dim, const mps_tensor *out) {
  uint32_t dimension;
  mps_status status = mps_operand_dimension(dim, out->rank, &dimension);
  if (status == MPS_STATUS_OK) status = check(self, other, dimension, out);
  if (status != MPS_STATUS_OK || mps_tensor_element_count(out) == 0) return status;
  mps_tensor a, b;
  mps_buffer *a_owned = NULL, *b_owned = NULL;
  status = prepare(stream, self, out, &a, &a_owned);
  if (status == MPS_STATUS_OK) status = prepare(stream, other, out, &b, &b_owned);
  if (status == MPS_STATUS_OK) status = encode(stream, (const mps_tensor *const[]){&a, &b, out}, dimension);
  mps_buffer_release(b_owned);
  mps_buffer_release(a_owned);
  return status;
}
