/* SPDX-License-Identifier: BSD-3-Clause
 *
 * linalg_arguments: what the kernels of the linalg family are told; shared by C and Metal.
 */
#ifndef OPENMPS_KERNELS_LINALG_ARGUMENTS_H
#define OPENMPS_KERNELS_LINALG_ARGUMENTS_H

#ifndef __METAL_VERSION__
#include <stdint.h>
#endif

typedef struct mps_permutation_arguments {
  int64_t pivots; /* of an item */
  int64_t rows;
} mps_permutation_arguments;

#endif
