/* SPDX-License-Identifier: BSD-3-Clause
 *
 * loss_arguments: what the negative-log-likelihood kernels are told; written by src/ops/loss.c, read by kernels/loss.metal.
 * Input is [N, C, S] with S the product of the spatial sizes (1 without), target and unreduced output are [N, S].
 */
#ifndef OPENMPS_KERNELS_LOSS_ARGUMENTS_H
#define OPENMPS_KERNELS_LOSS_ARGUMENTS_H

#ifndef __METAL_VERSION__
#include <stdint.h>
#endif

#define MPS_NLL_PIECE 2048 /* targets a thread takes */

typedef struct mps_nll_arguments {
  int64_t targets; /* N * S */
  int64_t classes;
  int64_t spatial;
  int64_t ignore_index;
  int64_t chunk_count;
  int64_t strides[3]; /* of N, C and S in the input (backward: in its gradient), elements */
  int64_t grad_stride; /* of the gradient of the output, 0 when that is one number */
  uint32_t reduction; /* 0 none, 1 mean, 2 sum */
  uint32_t has_weight;
  uint32_t byte_targets; /* 1: targets are u8, 0: i64 */
  uint32_t reserved;
} mps_nll_arguments;

#endif
