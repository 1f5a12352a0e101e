/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ctc_plan: what a call of connectionist temporal classification needs, from shapes and lengths alone.
 */
#ifndef OPENMPS_OPS_CTC_PLAN_H
#define OPENMPS_OPS_CTC_PLAN_H

#include "kernels/ctc_arguments.h"
#include "openmps/tensor.h"

/* The lengths of a batch, of inputs and of targets. */
typedef struct mps_ctc_lengths {
  const int64_t *inputs, *targets;
  uint32_t input_count, target_count;
} mps_ctc_lengths;

typedef struct mps_ctc_plan {
  mps_ctc_arguments arguments; /* without what depends on copies: strides of log_probs and of the gradient */
  int64_t longest;             /* target */
  double cost;                 /* nanoseconds, of one direction */
} mps_ctc_plan;

/* Shapes [steps, batch, classes] and [batch, longest] or [sum of target lengths], lengths within them, PyTorch's texts. */
MPS_WARN_UNUSED mps_status mps_ctc_check(const mps_tensor *log_probs, const mps_tensor *targets, const mps_ctc_lengths *lengths, int64_t blank);
/* For checked arguments. `items` has room for the batch. */
void mps_ctc_plan_make(const mps_tensor *log_probs, const mps_tensor *targets, const mps_ctc_lengths *lengths, int64_t blank, mps_ctc_plan *plan,
                       mps_ctc_item *items);

#endif
