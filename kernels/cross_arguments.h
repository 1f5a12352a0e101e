/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cross_arguments: what the cross product's kernel is told; shared by C and Metal. Strides count elements; operands are self, other, out.
 */
#ifndef OPENMPS_KERNELS_CROSS_ARGUMENTS_H
#define OPENMPS_KERNELS_CROSS_ARGUMENTS_H

#ifndef __METAL_VERSION__
#include <stdint.h>
#endif

#define MPS_CROSS_MAX_RANK 16

typedef struct mps_cross_arguments {
  int64_t run;     /* vectors of the innermost dimension */
  int64_t block;   /* vectors of the run that one thread takes */
  int64_t step[3]; /* from one component to the next */
  int64_t run_stride[3];
  uint32_t rank; /* of the outer dimensions */
  uint32_t reserved;
  int64_t sizes[MPS_CROSS_MAX_RANK];
  int64_t strides[3][MPS_CROSS_MAX_RANK];
} mps_cross_arguments;

#endif
