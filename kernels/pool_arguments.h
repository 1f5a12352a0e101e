/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pool_arguments: what the pooling kernels are told; shared by C and Metal.
 *
 * A plane is one channel of one batch entry. Spaces have three dimensions (depth, height, width); missing ones have size 1 and a window
 * of 1. Strides count elements.
 */
#ifndef OPENMPS_KERNELS_POOL_ARGUMENTS_H
#define OPENMPS_KERNELS_POOL_ARGUMENTS_H

#ifndef __METAL_VERSION__
#include <stdint.h>
#endif

#define MPS_POOL_REGULAR 0u    /* windows begin at o * stride - padding */
#define MPS_POOL_ADAPTIVE 1u   /* [floor(o * in / out), ceil((o + 1) * in / out)) */
#define MPS_POOL_FRACTIONAL 2u /* windows of one size that begin where the plane's random samples say */

typedef struct mps_pool_arguments {
  int64_t channels;            /* plane p is batch p / channels, channel p % channels */
  int64_t in_size[3], out_size[3];
  int64_t window[3], stride[3], padding[3], dilation[3];
  int64_t in_batch, in_channel, in_stride[3];          /* of the input, or of its gradient */
  int64_t out_batch, out_channel, out_stride[3];       /* of the output, or of its gradient */
  int64_t index_batch, index_channel, index_stride[3]; /* of the indices */
  int64_t divisor;             /* 0: the count of elements */
  int64_t place;               /* elements from one number of a plane of the input to the next; 0: numbers are not evenly spaced */
  uint32_t kind[3];            /* MPS_POOL_ of each dimension */
  uint32_t count_include_pad;
  uint32_t indexed;            /* 1: indices are wanted */
  uint32_t samples;            /* random samples a plane */
  uint32_t rows;               /* rows of the target that a thread takes */
  uint32_t channel_block;      /* channels that a thread takes side by side; 0: one plane, along its width */
} mps_pool_arguments;

#endif
