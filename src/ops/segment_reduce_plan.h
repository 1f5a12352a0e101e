/* SPDX-License-Identifier: BSD-3-Clause
 *
 * segment_reduce_plan: from the shapes of data and bounds to kernel arguments and threads. Pure.
 */
#ifndef OPENMPS_OPS_SEGMENT_REDUCE_PLAN_H
#define OPENMPS_OPS_SEGMENT_REDUCE_PLAN_H

#include "kernels/segment_reduce_arguments.h"
#include "openmps/tensor.h"

typedef struct mps_segment_reduce_plan {
  mps_segment_reduce_arguments arguments;
  uint64_t threads[3]; /* an empty result has none */
  double cost;         /* nanoseconds */
} mps_segment_reduce_plan;

/* PyTorch's words for reductions, as MPS_SEGMENT_...; -1 for no such word. */
int mps_segment_reduce_mode(const char *reduce);

/* `bounds`, whose last dimension is the one of data that is cut up, holds offsets, or else ends. `initial`: NULL, what the mode starts with. */
void mps_segment_reduce_plan_make(mps_segment_reduce_plan *plan, const mps_tensor *data, const mps_tensor *bounds, bool offsets, int mode,
                                  const mps_scalar *initial);

#endif
