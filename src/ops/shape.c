/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shape: operators that move elements without computing. Each is a copy, or a few, between two views that it makes.
 */
#include <string.h>

#include "openmps/ops.h"
#include "ops/operand.h"

/* Elements [start, start + length) of dimension d. */
static mps_tensor narrow(const mps_tensor *tensor, uint32_t d, int64_t start, int64_t length) {
  mps_tensor view = *tensor;
  view.offset = (uint64_t)((int64_t)view.offset + start * view.strides[d] * (int64_t)mps_dtype_size(view.dtype));
  view.sizes[d] = length;
  return view;
}

static mps_status shape_error(const char *label) {
  return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): the shape of out does not fit the arguments", label);
}

/* ---- cat ---- */

static bool left_out(const mps_tensor *tensor) { return tensor->rank == 1 && tensor->sizes[0] == 0; }

static mps_status check_cat(const mps_tensor *tensors, uint32_t count, uint32_t dimension, const mps_tensor *out) {
  int64_t total = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (left_out(&tensors[i])) continue;
    if (tensors[i].rank != out->rank) return shape_error("cat");
    for (uint32_t d = 0; d < out->rank; d++)
      if (d != dimension && tensors[i].sizes[d] != out->sizes[d]) return shape_error("cat");
    total += tensors[i].sizes[dimension];
  }
  return total == out->sizes[dimension] || mps_tensor_element_count(out) == 0 ? MPS_STATUS_OK : shape_error("cat");
}

mps_status mps_op_cat(mps_stream *stream, const mps_tensor *tensors, uint32_t tensors_count, int64_t dim, const mps_tensor *out) {
  uint32_t dimension;
  mps_status status = mps_operand_dimension(dim, out->rank, &dimension);
  if (status == MPS_STATUS_OK) status = check_cat(tensors, tensors_count, dimension, out);
  int64_t start = 0;
  for (uint32_t i = 0; status == MPS_STATUS_OK && i < tensors_count; i++) {
    if (left_out(&tensors[i])) continue;
    const int64_t length = tensors[i].sizes[dimension];
    const mps_tensor part = narrow(out, dimension, start, length);
    start += length;
    if (mps_tensor_element_count(&part)) status = mps_op_copy(stream, &tensors[i], &part);
  }
  return status;
}

/* ---- flip, repeat ---- */

mps_status mps_op_flip(mps_stream *stream, const mps_tensor *self, const int64_t *dims, uint32_t dims_count, const mps_tensor *out) {
  if (!mps_operands_same_shape(self, out)) return shape_error("flip");
  if (mps_tensor_element_count(out) == 0) return MPS_STATUS_OK;
  mps_tensor view = *self;
  for (uint32_t i = 0; i < dims_count; i++) {
    uint32_t d;
    mps_status status = mps_operand_dimension(dims[i], self->rank, &d);
    if (status != MPS_STATUS_OK) return status;
    if (self->rank == 0) continue;
    view = narrow(&view, d, view.sizes[d] - 1, view.sizes[d]);
    view.strides[d] = -view.strides[d];
  }
  return mps_op_copy(stream, &view, out);
}

/* Copies `self` into out's blocks along dimension `d` upwards; dimensions above are done one block after the other when the rank of the
 * interleaved view would not fit. */
static mps_status repeat_blocks(mps_stream *stream, const mps_tensor *self, const int64_t *repeats, const mps_tensor *out) {
  mps_tensor from = *self, to = *out;
  from.rank = to.rank = 0;
  for (uint32_t d = 0; d < out->rank; d++) {
    if (repeats[d] > 1) {
      to.sizes[to.rank] = from.sizes[to.rank] = repeats[d];
      to.strides[to.rank] = out->strides[d] * self->sizes[d];
      from.strides[to.rank] = 0;
      to.rank++;
    }
    if (self->sizes[d] > 1 || repeats[d] == 1) {
      to.sizes[to.rank] = from.sizes[to.rank] = self->sizes[d];
      to.strides[to.rank] = out->strides[d];
      from.strides[to.rank] = self->strides[d];
      to.rank++;
    }
  }
  from.rank = to.rank;
  return mps_op_copy(stream, &from, &to);
}

static uint32_t interleaved_rank(const mps_tensor *self, const int64_t *repeats) {
  uint32_t rank = 0;
  for (uint32_t d = 0; d < self->rank; d++) rank += (repeats[d] > 1 ? 1u : 0u) + (self->sizes[d] > 1 || repeats[d] == 1 ? 1u : 0u);
  return rank;
}

mps_status mps_op_repeat(mps_stream *stream, const mps_tensor *self, const int64_t *repeats, uint32_t repeats_count, const mps_tensor *out) {
  if (repeats_count < self->rank || repeats_count != out->rank)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor");
  mps_tensor view = *self; /* with the new leading dimensions */
  uint32_t leading = repeats_count - self->rank;
  view.rank = out->rank;
  for (uint32_t d = 0; d < repeats_count; d++) {
    view.sizes[d] = d < leading ? 1 : self->sizes[d - leading];
    view.strides[d] = d < leading ? 0 : self->strides[d - leading];
    if (out->sizes[d] != view.sizes[d] * repeats[d]) return shape_error("repeat");
  }
  if (mps_tensor_element_count(out) == 0) return MPS_STATUS_OK;
  if (interleaved_rank(&view, repeats) <= MPS_MAX_RANK) return repeat_blocks(stream, &view, repeats, out);
  /* Too many dimensions for one view: fill the first block along dimension 0, then copy that block to the others. */
  int64_t once[MPS_MAX_RANK];
  memcpy(once, repeats, out->rank * sizeof once[0]);
  uint32_t d = 0;
  while (repeats[d] == 1) d++;
  once[d] = 1;
  const mps_tensor first = narrow(out, d, 0, view.sizes[d]);
  mps_status status = mps_op_repeat(stream, self, once, repeats_count, &first);
  for (int64_t block = 1; status == MPS_STATUS_OK && block < repeats[d]; block++) {
    const mps_tensor next = narrow(out, d, block * view.sizes[d], view.sizes[d]);
    status = mps_op_copy(stream, &first, &next);
  }
  return status;
}

/* ---- constant_pad ---- */

mps_status mps_op_constant_pad(mps_stream *stream, const mps_tensor *self, const int64_t *pad, uint32_t pad_count, mps_scalar value, const mps_tensor *out) {
  if (pad_count % 2 || pad_count / 2 > self->rank || out->rank != self->rank)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "constant_pad_nd(): expected an even number of paddings, at most two a dimension, got %u", pad_count);
  mps_tensor from = *self, to = *out;
  bool covers = true;
  for (uint32_t k = 0; k < pad_count / 2; k++) {
    uint32_t d = self->rank - 1 - k;
    int64_t before = pad[2 * k], behind = pad[2 * k + 1];
    if (out->sizes[d] != self->sizes[d] + before + behind) return shape_error("constant_pad_nd");
    covers = covers && before <= 0 && behind <= 0;
    int64_t cut_before = before < 0 ? -before : 0, cut_behind = behind < 0 ? -behind : 0;
    int64_t length = self->sizes[d] - cut_before - cut_behind;
    if (length < 0) length = 0;
    from = narrow(&from, d, length ? cut_before : 0, length);
    to = narrow(&to, d, before > 0 ? before : 0, length);
  }
  if (mps_tensor_element_count(out) == 0) return MPS_STATUS_OK;
  mps_status status = covers ? MPS_STATUS_OK : mps_operand_fill(stream, out, value);
  if (status == MPS_STATUS_OK && mps_tensor_element_count(&to)) status = mps_op_copy(stream, &from, &to);
  return status;
}

/* ---- pixel_shuffle ---- */

/* (.., C, r, r, H, W) of the small image and (.., C, H, r, W, r) of the large one name the same elements. */
static mps_status shuffle_views(const char *label, const mps_tensor *small, const mps_tensor *large, int64_t r, mps_tensor *out_small, mps_tensor *out_large) {
  uint32_t batch = small->rank - 3;
  if (small->rank < 3 || large->rank != small->rank || r < 1 || small->rank + 2 > MPS_MAX_RANK) return shape_error(label);
  const int64_t channels = large->sizes[batch], height = small->sizes[batch + 1], width = small->sizes[batch + 2];
  if (small->sizes[batch] != channels * r * r || large->sizes[batch + 1] != height * r || large->sizes[batch + 2] != width * r) return shape_error(label);
  *out_small = *small;
  *out_large = *large;
  out_small->rank = out_large->rank = (uint8_t)(batch + 5);
  const int64_t sizes[5] = {channels, height, r, width, r};
  const int64_t *s = small->strides + batch, *l = large->strides + batch;
  const int64_t small_strides[5] = {s[0] * r * r, s[1], s[0] * r, s[2], s[0]};
  const int64_t large_strides[5] = {l[0], l[1] * r, l[1], l[2] * r, l[2]};
  for (uint32_t d = 0; d < 5; d++) {
    out_small->sizes[batch + d] = out_large->sizes[batch + d] = sizes[d];
    out_small->strides[batch + d] = small_strides[d];
    out_large->strides[batch + d] = large_strides[d];
  }
  return MPS_STATUS_OK;
}

mps_status mps_op_pixel_shuffle(mps_stream *stream, const mps_tensor *self, int64_t upscale_factor, const mps_tensor *out) {
  mps_tensor small, large;
  mps_status status = shuffle_views("pixel_shuffle", self, out, upscale_factor, &small, &large);
  if (status != MPS_STATUS_OK || mps_tensor_element_count(out) == 0) return status;
  return mps_op_copy(stream, &small, &large);
}

mps_status mps_op_pixel_unshuffle(mps_stream *stream, const mps_tensor *self, int64_t downscale_factor, const mps_tensor *out) {
  mps_tensor small, large;
  mps_status status = shuffle_views("pixel_unshuffle", out, self, downscale_factor, &small, &large);
  if (status != MPS_STATUS_OK || mps_tensor_element_count(out) == 0) return status;
  return mps_op_copy(stream, &large, &small);
}
