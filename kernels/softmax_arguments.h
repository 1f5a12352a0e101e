/* SPDX-License-Identifier: BSD-3-Clause
 *
 * softmax_arguments: what the softmax kernels are told; written by src/ops/softmax.c, read by kernels/softmax.metal.
 * Up to three tensors (input or grad, output, result) are walked together: rows, and `count` elements in each. Strides count elements.
 */
#ifndef OPENMPS_KERNELS_SOFTMAX_ARGUMENTS_H
#define OPENMPS_KERNELS_SOFTMAX_ARGUMENTS_H

#ifndef __METAL_VERSION__
#include <stdint.h>
#endif

#define MPS_SOFTMAX_MAX_RANK 16
#define MPS_SOFTMAX_TILE 128 /* rows a thread takes together in the outer layout */

typedef struct mps_softmax_arguments {
  int64_t count;
  int64_t chunk; /* elements that a thread takes of a row that is cut; count otherwise */
  int64_t chunk_count;
  uint32_t rank; /* of the rows, at least 1; the last dimension is the innermost */
  uint32_t logarithm;
  int64_t element_strides[3];
  int64_t sizes[MPS_SOFTMAX_MAX_RANK];
  int64_t strides[3][MPS_SOFTMAX_MAX_RANK];
} mps_softmax_arguments;

#endif
