/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shape_plan: the views between which the operators that only move elements copy. Pure: a view is a tensor of the same buffer.
 */
#ifndef OPENMPS_OPS_SHAPE_PLAN_H
#define OPENMPS_OPS_SHAPE_PLAN_H

#include "openmps/tensor.h"

/* One copy: `to` takes the elements of `from`, which has its shape. */
typedef struct mps_shape_move {
  mps_tensor from, to;
} mps_shape_move;

/* Elements [start, start + length) of dimension d. */
mps_tensor mps_shape_narrow(const mps_tensor *tensor, uint32_t d, int64_t start, int64_t length);

/* Tensors of shape (0,) fit any shape when concatenated, and are left out. */
bool mps_shape_is_left_out(const mps_tensor *tensor);
/* INVALID_ARGUMENT unless the tensors, one behind the other along `dimension`, fill `out`. */
MPS_WARN_UNUSED mps_status mps_shape_check_cat(const mps_tensor *tensors, uint32_t count, uint32_t dimension, const mps_tensor *out);

/* `self` walked backwards along `dims`; not empty. */
MPS_WARN_UNUSED mps_status mps_shape_flip(const mps_tensor *self, const int64_t *dims, uint32_t dims_count, mps_tensor *out_view);

/* `self` with out's rank, by leading dimensions of size 1; INVALID_ARGUMENT unless `repeats` times it fills `out`. */
MPS_WARN_UNUSED mps_status mps_shape_lead(const mps_tensor *self, const int64_t *repeats, uint32_t repeats_count, const mps_tensor *out, mps_tensor *out_view);
/* All repetitions in one move, each repeated dimension being two: which repetition (stride 0 in `from`), and which element. False, and no
 * move, when that takes more than MPS_MAX_RANK dimensions. `self` is what mps_shape_lead made. */
bool mps_shape_repeat(const mps_tensor *self, const int64_t *repeats, const mps_tensor *out, mps_shape_move *out_move);

/* Where self's elements go in `out` (negative paddings cut them), and whether they fill it. */
MPS_WARN_UNUSED mps_status mps_shape_pad(const mps_tensor *self, const int64_t *pad, uint32_t pad_count, const mps_tensor *out, mps_shape_move *out_move,
                                         bool *out_fills);

/* (.., C, r, r, H, W) of the small image and (.., C, H, r, W, r) of the large one name the same elements. */
MPS_WARN_UNUSED mps_status mps_shape_shuffle(const char *label, const mps_tensor *small, const mps_tensor *large, int64_t r, mps_tensor *out_small,
                                             mps_tensor *out_large);

#endif
