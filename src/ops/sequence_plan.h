/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sequence_plan: from bounds and shapes to the kernels and arguments of arange, linspace, eye, triangles and their coordinates. Pure.
 */
#ifndef OPENMPS_OPS_SEQUENCE_PLAN_H
#define OPENMPS_OPS_SEQUENCE_PLAN_H

#include "kernels/sequence.h"
#include "openmps/tensor.h"

/* One thread an element. */
typedef struct mps_sequence_plan {
  const char *stem, *suffix; /* of the kernel */
  mps_sequence_arguments arguments;
} mps_sequence_plan;

/* `out` has rank 1. */
void mps_sequence_plan_arange(mps_sequence_plan *plan, mps_scalar start, mps_scalar step, const mps_tensor *out);
void mps_sequence_plan_linspace(mps_sequence_plan *plan, mps_scalar start, mps_scalar end, const mps_tensor *out);
/* values[i] = element first + i of `total` of a logspace in `dtype`, before the bits that it lacks are cut off (mps_op_logspace_integers). */
void mps_sequence_logspace_integers(mps_dtype dtype, int64_t start, int64_t end, double base, int64_t total, int64_t first, int64_t count,
                                    int64_t *values);
/* The main diagonal of a matrix, as a vector. */
mps_tensor mps_sequence_diagonal(const mps_tensor *matrix);

typedef struct mps_triangle_plan {
  const char *suffix; /* of kernel "triangle": it moves bytes */
  mps_triangle_arguments arguments;
  uint64_t threads[3]; /* rows, and the batch */
} mps_triangle_plan;

/* out[.., r, c] = self[.., r, c] in the triangle, else 0. INVALID_ARGUMENT unless both are matrices or batches of one shape and dtype. */
MPS_WARN_UNUSED mps_status mps_triangle_plan_make(mps_triangle_plan *plan, const mps_tensor *self, int64_t diagonal, bool upper, const mps_tensor *out);
/* The coordinates of a triangle's elements into `out` (2 x count); one thread a row of the matrix. */
mps_triangle_indices_arguments mps_triangle_indices_plan(int64_t rows, int64_t columns, int64_t offset, bool upper, const mps_tensor *out);

#endif
