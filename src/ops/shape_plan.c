/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shape_plan: the views between which the operators that only move elements copy. Pure.
 */
#include "ops/shape_plan.h"

#include "ops/operand.h"

mps_tensor mps_shape_narrow(const mps_tensor *tensor, uint32_t d, int64_t start, int64_t length) {
  mps_tensor view = *tensor;
  view.offset = (uint64_t)((int64_t)view.offset + start * view.strides[d] * (int64_t)mps_dtype_size(view.dtype));
  view.sizes[d] = length;
  return view;
}

static mps_status shape_error(const char *label) {
  return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): the shape of out does not fit the arguments", label);
}

bool mps_shape_is_left_out(const mps_tensor *tensor) { return tensor->rank == 1 && tensor->sizes[0] == 0; }

mps_status mps_shape_check_cat(const mps_tensor *tensors, uint32_t count, uint32_t dimension, const mps_tensor *out) {
  int64_t total = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (mps_shape_is_left_out(&tensors[i])) continue;
    if (tensors[i].rank != out->rank) return shape_error("cat");
    for (uint32_t d = 0; d < out->rank; d++)
      if (d != dimension && tensors[i].sizes[d] != out->sizes[d]) return shape_error("cat");
    total += tensors[i].sizes[dimension];
  }
  return total == out->sizes[dimension] || mps_tensor_element_count(out) == 0 ? MPS_STATUS_OK : shape_error("cat");
}

mps_status mps_shape_flip(const mps_tensor *self, const int64_t *dims, uint32_t dims_count, mps_tensor *out_view) {
  *out_view = *self;
  for (uint32_t i = 0; i < dims_count; i++) {
    uint32_t d;
    mps_status status = mps_operand_dimension(dims[i], self->rank, &d);
    if (status != MPS_STATUS_OK) return status;
    if (self->rank == 0) continue;
    *out_view = mps_shape_narrow(out_view, d, self->sizes[d] - 1, self->sizes[d]);
    out_view->strides[d] = -out_view->strides[d];
  }
  return MPS_STATUS_OK;
}

/* ---- repeat ---- */

mps_status mps_shape_lead(const mps_tensor *self, const int64_t *repeats, uint32_t repeats_count, const mps_tensor *out, mps_tensor *out_view) {
  if (repeats_count < self->rank || repeats_count != out->rank)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor");
  const uint32_t leading = repeats_count - self->rank;
  *out_view = *self;
  out_view->rank = out->rank;
  for (uint32_t d = 0; d < repeats_count; d++) {
    out_view->sizes[d] = d < leading ? 1 : self->sizes[d - leading];
    out_view->strides[d] = d < leading ? 0 : self->strides[d - leading];
    if (out->sizes[d] != out_view->sizes[d] * repeats[d]) return shape_error("repeat");
  }
  return MPS_STATUS_OK;
}

static uint32_t interleaved_rank(const mps_tensor *self, const int64_t *repeats) {
  uint32_t rank = 0;
  for (uint32_t d = 0; d < self->rank; d++) rank += (repeats[d] > 1 ? 1u : 0u) + (self->sizes[d] > 1 || repeats[d] == 1 ? 1u : 0u);
  return rank;
}

static void append(mps_shape_move *move, int64_t size, int64_t from_stride, int64_t to_stride) {
  const uint32_t d = move->to.rank++;
  move->from.sizes[d] = move->to.sizes[d] = size;
  move->from.strides[d] = from_stride;
  move->to.strides[d] = to_stride;
}

bool mps_shape_repeat(const mps_tensor *self, const int64_t *repeats, const mps_tensor *out, mps_shape_move *out_move) {
  if (interleaved_rank(self, repeats) > MPS_MAX_RANK) return false;
  out_move->from = *self;
  out_move->to = *out;
  out_move->to.rank = 0;
  for (uint32_t d = 0; d < out->rank; d++) {
    if (repeats[d] > 1) append(out_move, repeats[d], 0, out->strides[d] * self->sizes[d]);
    if (self->sizes[d] > 1 || repeats[d] == 1) append(out_move, self->sizes[d], self->strides[d], out->strides[d]);
  }
  out_move->from.rank = out_move->to.rank;
  return true;
}

/* ---- constant_pad ---- */

mps_status mps_shape_pad(const mps_tensor *self, const int64_t *pad, uint32_t pad_count, const mps_tensor *out, mps_shape_move *out_move,
                         bool *out_fills) {
  if (pad_count % 2 || pad_count / 2 > self->rank || out->rank != self->rank)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "constant_pad_nd(): expected an even number of paddings, at most two a dimension, got %u", pad_count);
  *out_move = (mps_shape_move){*self, *out};
  *out_fills = true;
  for (uint32_t k = 0; k < pad_count / 2; k++) {
    uint32_t d = self->rank - 1 - k;
    int64_t before = pad[2 * k], behind = pad[2 * k + 1];
    if (out->sizes[d] != self->sizes[d] + before + behind) return shape_error("constant_pad_nd");
    *out_fills = *out_fills && before <= 0 && behind <= 0;
    int64_t cut_before = before < 0 ? -before : 0, cut_behind = behind < 0 ? -behind : 0;
    int64_t length = self->sizes[d] - cut_before - cut_behind;
    if (length < 0) length = 0;
    out_move->from = mps_shape_narrow(&out_move->from, d, length ? cut_before : 0, length);
    out_move->to = mps_shape_narrow(&out_move->to, d, before > 0 ? before : 0, length);
  }
  return MPS_STATUS_OK;
}

/* ---- pixel_shuffle ---- */

mps_status mps_shape_shuffle(const char *label, const mps_tensor *small, const mps_tensor *large, int64_t r, mps_tensor *out_small, mps_tensor *out_large) {
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
