/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pad_plan: from two tensors and a padding to the arguments and the grid of the padding kernels. Pure.
 */
#ifndef OPENMPS_OPS_PAD_PLAN_H
#define OPENMPS_OPS_PAD_PLAN_H

#include <stdbool.h>

#include "kernels/pad_arguments.h"
#include "openmps/tensor.h"

typedef struct mps_pad_plan {
  mps_pad_arguments arguments;
  uint64_t threads[3]; /* all 0 when nothing is written */
  double cost;         /* nanoseconds */
} mps_pad_plan;

/* INVALID_ARGUMENT unless `large` is `small` padded by `padding` (PyTorch's order: the last dimension first; one to three dimensions), and,
 * when reflecting, each padding is less than its dimension. */
MPS_WARN_UNUSED mps_status mps_pad_check(const char *label, const mps_tensor *small, const mps_tensor *large, const int64_t *padding,
                                         uint32_t padding_count, bool reflects);
/* `to` is written, reading `from`: the padded side for the operator itself, the other one for its gradient (`whole_rows`: a thread has whole
 * rows). The tensors were checked. */
void mps_pad_plan_make(const mps_tensor *from, const mps_tensor *to, const int64_t *padding, uint32_t padding_count, bool whole_rows,
                       mps_pad_plan *out_plan);

#endif
