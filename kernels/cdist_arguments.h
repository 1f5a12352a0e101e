/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cdist_arguments: what the kernels of distances between rows are told; shared by C and Metal. Matrices are contiguous float.
 */
#ifndef OPENMPS_KERNELS_CDIST_ARGUMENTS_H
#define OPENMPS_KERNELS_CDIST_ARGUMENTS_H

#ifndef __METAL_VERSION__
#include <stdint.h>
#endif

typedef struct mps_cdist_arguments {
  int64_t rows, others; /* rows of x1 and of x2, in each matrix of the batch */
  int64_t length;       /* of a row */
  int64_t block;        /* others (forward) or columns (backward) that one thread takes */
  float p;
  uint32_t triangle; /* 1: x2 is x1, and the distances are those of pairs (i, j) with i < j, packed (pdist) */
} mps_cdist_arguments;

#endif
