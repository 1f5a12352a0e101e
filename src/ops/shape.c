/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shape: operators that move elements without computing. Each is a copy, or a few, between two views.
 */
#include "ops/shape_plan.h"

#include <string.h>

#include "openmps/ops/pointwise.h"
#include "openmps/ops/shape.h"
#include "ops/operand.h"

static mps_status move(mps_stream *stream, const mps_shape_move *views) { return mps_op_copy(stream, &views->from, &views->to); }

mps_status mps_op_cat(mps_stream *stream, const mps_tensor *tensors, uint32_t tensors_count, int64_t dim, const mps_tensor *out) {
  uint32_t dimension;
  mps_status status = mps_operand_dimension(dim, out->rank, &dimension);
  if (status == MPS_STATUS_OK) status = mps_shape_check_cat(tensors, tensors_count, dimension, out);
  int64_t start = 0;
  for (uint32_t i = 0; status == MPS_STATUS_OK && i < tensors_count; i++) {
    if (mps_shape_is_left_out(&tensors[i])) continue;
    const int64_t length = tensors[i].sizes[dimension];
    const mps_tensor part = mps_shape_narrow(out, dimension, start, length);
    start += length;
    if (mps_tensor_element_count(&part)) status = mps_op_copy(stream, &tensors[i], &part);
  }
  return status;
}

mps_status mps_op_flip(mps_stream *stream, const mps_tensor *self, const int64_t *dims, uint32_t dims_count, const mps_tensor *out) {
  if (!mps_operands_same_shape(self, out)) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "flip(): the shape of out does not fit the arguments");
  if (mps_tensor_element_count(out) == 0) return MPS_STATUS_OK;
  mps_tensor view;
  mps_status status = mps_shape_flip(self, dims, dims_count, &view);
  return status == MPS_STATUS_OK ? mps_op_copy(stream, &view, out) : status;
}

/* Too many dimensions for one view: fills the first block along the first repeated dimension, then copies that block to the others. */
static mps_status repeat_blocks(mps_stream *stream, const mps_tensor *self, const int64_t *repeats, uint32_t rank, int64_t length, uint32_t d,
                                const mps_tensor *out) {
  int64_t once[MPS_MAX_RANK];
  memcpy(once, repeats, rank * sizeof once[0]);
  once[d] = 1;
  const mps_tensor first = mps_shape_narrow(out, d, 0, length);
  mps_status status = mps_op_repeat(stream, self, once, rank, &first);
  for (int64_t block = 1; status == MPS_STATUS_OK && block < repeats[d]; block++) {
    const mps_tensor next = mps_shape_narrow(out, d, block * length, length);
    status = mps_op_copy(stream, &first, &next);
  }
  return status;
}

mps_status mps_op_repeat(mps_stream *stream, const mps_tensor *self, const int64_t *repeats, uint32_t repeats_count, const mps_tensor *out) {
  mps_tensor view; /* with the new leading dimensions */
  mps_status status = mps_shape_lead(self, repeats, repeats_count, out, &view);
  if (status != MPS_STATUS_OK || mps_tensor_element_count(out) == 0) return status;
  mps_shape_move views;
  if (mps_shape_repeat(&view, repeats, out, &views)) return move(stream, &views);
  uint32_t d = 0;
  while (repeats[d] == 1) d++;
  return repeat_blocks(stream, self, repeats, repeats_count, view.sizes[d], d, out);
}

mps_status mps_op_constant_pad(mps_stream *stream, const mps_tensor *self, const int64_t *pad, uint32_t pad_count, mps_scalar value, const mps_tensor *out) {
  mps_shape_move views;
  bool fills;
  mps_status status = mps_shape_pad(self, pad, pad_count, out, &views, &fills);
  if (status != MPS_STATUS_OK || mps_tensor_element_count(out) == 0) return status;
  if (!fills) status = mps_operand_fill(stream, out, value);
  if (status == MPS_STATUS_OK && mps_tensor_element_count(&views.to)) status = move(stream, &views);
  return status;
}

mps_status mps_op_pixel_shuffle(mps_stream *stream, const mps_tensor *self, int64_t upscale_factor, const mps_tensor *out) {
  mps_tensor small, large;
  mps_status status = mps_shape_shuffle("pixel_shuffle", self, out, upscale_factor, &small, &large);
  if (status != MPS_STATUS_OK || mps_tensor_element_count(out) == 0) return status;
  return mps_op_copy(stream, &small, &large);
}

mps_status mps_op_pixel_unshuffle(mps_stream *stream, const mps_tensor *self, int64_t downscale_factor, const mps_tensor *out) {
  mps_tensor small, large;
  mps_status status = mps_shape_shuffle("pixel_unshuffle", out, self, downscale_factor, &small, &large);
  if (status != MPS_STATUS_OK || mps_tensor_element_count(out) == 0) return status;
  return mps_op_copy(stream, &large, &small);
}
