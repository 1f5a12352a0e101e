/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reduce_plan: from shapes and strides to the arguments and grids of the reduction kernels. Pure: needs no device.
 */
#ifndef OPENMPS_OPS_REDUCE_PLAN_H
#define OPENMPS_OPS_REDUCE_PLAN_H

#include <stdbool.h>

#include "kernels/reduce_arguments.h"
#include "openmps/tensor.h"

typedef struct mps_reduce_plan {
  mps_reduce_arguments arguments;
  bool outer;          /* a thread takes a tile of outputs; else one output */
  uint64_t threads[3]; /* of the first pass; the finishing pass has output_count threads */
} mps_reduce_plan;

/* Reduces the dimensions of `input` whose bit is set in `mask`. `out` and `second` (may be NULL) have the input's rank, with size 1 where
 * it is reduced, or lack those dimensions. `ordered`: reduced elements are counted in row-major order (places of maxima). */
void mps_reduce_plan_make(mps_reduce_plan *plan, const mps_tensor *input, uint32_t mask, const mps_tensor *out, const mps_tensor *second,
                          bool ordered);

/* Many short rows of neighbours become a layout of their own (arguments.rows), which the kernels of reduce.h and those that find places know.
 * Other plans stay as they are. */
void mps_reduce_plan_rows(mps_reduce_plan *plan);

/* A list of dimensions as a mask; none (NULL or count 0) means all. INVALID_ARGUMENT with PyTorch's texts. */
MPS_WARN_UNUSED mps_status mps_reduce_mask(const int64_t *dimensions, uint32_t count, uint32_t rank, uint32_t *out_mask);
/* Elements that one output is made of. */
int64_t mps_reduce_count(const mps_tensor *input, uint32_t mask);

#endif
