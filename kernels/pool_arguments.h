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

typedef struct mps_pool_arguments {
  int64_t channels;            /* plane p is batch p / channels, channel p % channels */
  int64_t in_size[3], out_size[3];
  int64_t window[3], stride[3], padding[3], dilation[3];
  int64_t in_batch, in_channel, in_stride[3];          /* of the input, or of its gradient */
  int64_t out_batch, out_channel, out_stride[3];       /* of the output, or of its gradient */
  int64_t index_batch, index_channel, index_stride[3]; /* of the indices */
  uint32_t adaptive;          /* 1: windows are those of adaptive pooling, window and the rest are unused */
  uint32_t count_include_pad;
  int64_t divisor;            /* 0: the count of elements */
} mps_pool_arguments;

#endif
