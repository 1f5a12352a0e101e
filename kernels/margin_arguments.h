/* SPDX-License-Identifier: BSD-3-Clause
 *
 * margin_arguments: what the kernels of losses by margins between classes are told; written by src/ops/loss_margin.c, read by kernels/margin.metal.
 * All matrices are contiguous float, [rows, classes].
 */
#ifndef OPENMPS_KERNELS_MARGIN_ARGUMENTS_H
#define OPENMPS_KERNELS_MARGIN_ARGUMENTS_H

#ifndef __METAL_VERSION__
#include <stdint.h>
#endif

typedef struct mps_margin_arguments {
  int64_t rows, classes;
  int64_t piece;       /* rows that a thread takes */
  int64_t grad_stride; /* of the gradient of the result: 0 when that is one number */
  int64_t target_text; /* what is said about a target out of range, a number of mps_failure_text */
  int64_t mask_text;   /* the same about is_target */
  float margin;
  float factor; /* of a gradient: 1 / classes, and / rows for a mean */
  uint32_t squared;    /* 1: p is 2, 0: it is 1 */
  uint32_t has_weight;
} mps_margin_arguments;

#endif
