/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pad_arguments: what the padding kernels are told; written by src/ops/pad_plan.c. Shared by C and Metal.
 *
 * The written side ("to") is walked row by row, the other side ("from") is read at the places that the padding tells. A row lies along
 * the width; its places are `group` elements that lie together: one, or the channels of a channels_last tensor. Spaces have three
 * dimensions (depth, height, width); missing ones have size 1 and no padding. Strides count elements.
 */
#ifndef OPENMPS_KERNELS_PAD_ARGUMENTS_H
#define OPENMPS_KERNELS_PAD_ARGUMENTS_H

#ifndef __METAL_VERSION__
#include <stdint.h>
#endif

typedef struct mps_pad_arguments {
  int64_t channels; /* 1 when they are the group */
  int64_t group;
  int64_t to_size[3], from_size[3];
  int64_t before[3]; /* padding in front; negative: elements cut away */
  int64_t to_batch, to_channel, to_stride[3];
  int64_t from_batch, from_channel, from_stride[3];
  int64_t row_count;
  int64_t rows;  /* that one thread takes */
  int64_t block; /* places of a row that one thread takes */
} mps_pad_arguments;

#endif
