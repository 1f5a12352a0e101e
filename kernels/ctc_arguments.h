/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ctc_arguments: what the kernels of connectionist temporal classification are told; made by src/ops/ctc_plan.c, read by kernels/ctc.metal.
 * log_probs is [steps, batch, classes] with classes side by side, log_alpha [batch, steps, states], both float. Strides count elements.
 */
#ifndef OPENMPS_KERNELS_CTC_ARGUMENTS_H
#define OPENMPS_KERNELS_CTC_ARGUMENTS_H

#ifndef __METAL_VERSION__
#include <stdint.h>
#endif

typedef struct mps_ctc_arguments {
  int64_t steps, batch, classes;
  int64_t states;           /* of a row of log_alpha: 2 * the longest target + 1 */
  int64_t places;           /* the longest target, at least 1: the length of the scratch rows of targets */
  int64_t input_strides[2]; /* of steps and batch in log_probs */
  int64_t target_stride;    /* between the targets of one item */
  int64_t scratch;          /* floats that an item has for itself */
  int64_t grad_stride;      /* between the gradients of two items */
  int64_t blank;
  uint32_t zero_infinity;
  uint32_t own_loss; /* 1: the loss is computed anew, since the one given was rounded to a half */
} mps_ctc_arguments;

/* An item of the batch. */
typedef struct mps_ctc_item {
  int64_t input_length, target_length;
  int64_t target_offset; /* of its first target */
} mps_ctc_item;

#endif
