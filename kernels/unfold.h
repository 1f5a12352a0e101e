/* SPDX-License-Identifier: BSD-3-Clause
 *
 * unfold: arguments of the gradient of Tensor.unfold, shared by C and Metal. Strides count elements.
 */
#ifndef OPENMPS_KERNELS_UNFOLD_H
#define OPENMPS_KERNELS_UNFOLD_H

#ifndef __METAL_VERSION__
#include <stdint.h>
#endif

typedef struct mps_unfold_arguments {
  int64_t length;  /* of the unfolded dimension of the result */
  int64_t windows; /* along that dimension of the gradient */
  int64_t size, step;
  int64_t out_step, window_step, element_step; /* strides along the dimension: result, gradient's windows, their elements */
  uint32_t rank;                               /* of the other dimensions */
  uint32_t reserved;
  int64_t sizes[16], out_strides[16], grad_strides[16];
} mps_unfold_arguments;

#endif
