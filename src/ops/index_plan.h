/* SPDX-License-Identifier: BSD-3-Clause
 *
 * index_plan: from an iteration space with three sets of strides to the arguments and grids of the indexing kernels. Pure.
 */
#ifndef OPENMPS_OPS_INDEX_PLAN_H
#define OPENMPS_OPS_INDEX_PLAN_H

#include <stdbool.h>

#include "kernels/index_arguments.h"
#include "openmps/tensor.h"

/* The space as an operator sees it; strides count elements. A data stride of 0 marks a dimension whose place an index decides. */
typedef struct mps_index_space {
  uint32_t rank;
  int64_t sizes[MPS_MAX_RANK];
  int64_t data[MPS_MAX_RANK];
  int64_t value[MPS_MAX_RANK];
  int64_t index[MPS_MAX_RANK];
  int64_t index_size; /* of the indexed dimension */
  int64_t index_step; /* its stride */
  int64_t skipped;    /* INT64_MIN: none */
  bool wraps;
  uint32_t dimension; /* for texts */
} mps_index_space;

typedef struct mps_index_plan {
  mps_index_arguments arguments;
  uint64_t threads[3]; /* all 0 for an empty space */
  double cost;         /* nanoseconds */
} mps_index_plan;

/* Every point may be taken at any time: values[point] = data[...], or offsets of several index tensors. */
void mps_index_plan_read(const mps_index_space *space, mps_index_plan *out_plan);
/* Points that may meet in one element stay in one thread, in row-major order. `slices`: how many threads may share such a walk. */
void mps_index_plan_write(const mps_index_space *space, uint32_t slices, mps_index_plan *out_plan);

/* How many parts a walk of one dimension, along which points may meet anywhere, is cut into, each with a copy of the data; 1: none. It depends on
 * the space alone, so that results do not depend on the machine. */
uint32_t mps_index_plan_parts(const mps_index_space *space);
/* The walk of the parts' copies (contiguous, part after part), and how many points it takes; fewer than there are parts are left over. */
int64_t mps_index_space_parts(const mps_index_space *space, uint32_t parts, mps_index_space *out_space);
/* The walk, of rank 1, behind the first `taken` points. */
void mps_index_space_rest(const mps_index_space *space, int64_t taken, mps_index_space *out_space);

/* A thread takes a block of the mask; the answer is how many blocks there are. Strides of a result are left 0. */
uint64_t mps_compact_plan_make(mps_compact_arguments *arguments, const mps_tensor *mask);

#endif
