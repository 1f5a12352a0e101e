/* SPDX-License-Identifier: BSD-3-Clause
 *
 * grid_sample_arguments: what the grid sampling kernels are told; shared by C and Metal. Axes are width, height, depth: the order of a
 * grid's coordinates. Grid, result and gradients are contiguous; the input has strides. The numbers equal PyTorch's enumerations.
 */
#ifndef OPENMPS_KERNELS_GRID_SAMPLE_ARGUMENTS_H
#define OPENMPS_KERNELS_GRID_SAMPLE_ARGUMENTS_H

#ifndef __METAL_VERSION__
#include <stdint.h>
#endif

#define MPS_GRID_BILINEAR 0
#define MPS_GRID_NEAREST 1
#define MPS_GRID_BICUBIC 2

#define MPS_GRID_ZEROS 0
#define MPS_GRID_BORDER 1
#define MPS_GRID_REFLECTION 2

typedef struct mps_grid_sample_arguments {
  int64_t points;   /* of one batch entry of the grid */
  int64_t channels;
  int64_t in_batch, in_channel; /* strides of the input, in elements */
  int32_t in_stride[3];
  int32_t size[3];  /* of the input; 1 where an axis is missing */
  uint32_t interpolation, padding, align_corners;
} mps_grid_sample_arguments;

#endif
