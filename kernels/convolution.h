/* SPDX-License-Identifier: BSD-3-Clause
 *
 * convolution: what the convolution kernels are told; written by src/ops/convolution.c, read by kernels/convolution.metal.
 *
 * All of them know one geometry. `wide` is the side that padding belongs to (input of a convolution, output of a transposed one), `narrow`
 * the other; wide position = narrow position * stride - padding + tap * dilation. weight is (narrow channels, wide channels / groups, taps).
 */
#ifndef OPENMPS_KERNELS_CONVOLUTION_H
#define OPENMPS_KERNELS_CONVOLUTION_H

#ifndef __METAL_VERSION__
#include <stdint.h>
#endif

#define MPS_CONVOLUTION_TILE 32 /* neighbours along the last dimension that a thread makes */

typedef struct mps_convolution_arguments {
  int64_t batch, groups;
  int64_t wide_channels, narrow_channels; /* of one group */
  int64_t wide_sizes[3], narrow_sizes[3], taps[3]; /* spatial: depth, height, width; missing ones are 1 */
  int64_t stride[3], padding[3], dilation[3];
  int64_t wide_strides[5], narrow_strides[5], weight_strides[5]; /* elements: batch (or output channel), channel, spatial */
  int64_t bias_stride;
  uint32_t has_bias;
  uint32_t reserved;
} mps_convolution_arguments;

#endif
