/* SPDX-License-Identifier: BSD-3-Clause
 *
 * unfold_plan: from the windows' gradient and the result to the arguments and grid of unfold_backward. Pure.
 */
#ifndef OPENMPS_OPS_UNFOLD_PLAN_H
#define OPENMPS_OPS_UNFOLD_PLAN_H

#include "kernels/unfold.h"
#include "openmps/tensor.h"

typedef struct mps_unfold_plan {
  mps_unfold_arguments arguments;
  uint64_t threads[3]; /* an element of the dimension each, and the other dimensions; all 0 for an empty result */
  double cost;         /* nanoseconds */
} mps_unfold_plan;

/* `grad` has one dimension more than `out`: the elements of a window, last. INVALID_ARGUMENT unless the two fit. */
MPS_WARN_UNUSED mps_status mps_unfold_plan_make(mps_unfold_plan *plan, const mps_tensor *grad, uint32_t dimension, int64_t size, int64_t step,
                                                const mps_tensor *out);

#endif
