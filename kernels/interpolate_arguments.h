/* SPDX-License-Identifier: BSD-3-Clause
 *
 * interpolate_arguments: what the interpolation kernels are told; shared by C and Metal.
 *
 * Source and target are planes of lines: a line is the innermost axis of one row, `columns` target elements long. It holds either the
 * width, or width times channels (channels last). Depth, height and width each have a table of taps (see src/ops/interpolate_plan.h).
 */
#ifndef OPENMPS_KERNELS_INTERPOLATE_ARGUMENTS_H
#define OPENMPS_KERNELS_INTERPOLATE_ARGUMENTS_H

#ifndef __METAL_VERSION__
#include <stdint.h>
#endif

/* Where an axis's table is, in words of 4 bytes. */
typedef struct mps_interpolate_axis {
  uint32_t start, index, weight;
  uint32_t taps;      /* of every row; 0: rows differ */
  uint32_t span;      /* taps of a row lie within so many neighbours */
  uint32_t precision; /* of fixed point weights */
} mps_interpolate_axis;

typedef struct mps_interpolate_arguments {
  mps_interpolate_axis axis[3]; /* depth, height, width */
  int64_t channels;             /* plane p is batch p / channels, channel p % channels; 1 where lines hold the channels */
  int64_t in_batch, in_channel, in_stride[3]; /* in elements; [2] is the step along a line */
  int64_t out_batch, out_channel, out_stride[3];
  int64_t rows;                /* planes * depth * height of the target */
  uint32_t out_size[2];        /* depth, height */
  uint32_t in_height;
  uint32_t line_length;        /* of the source */
  uint32_t columns;            /* of the target, in elements */
  uint32_t column_block;       /* columns a thread takes */
  uint32_t vector;             /* elements of a pixel that share a row of the width's table */
  uint32_t spread;             /* elements of a pixel for which the width's table is written out by tap: [tap][pixel][element]; 0: it is by row */
  uint32_t direct;             /* lines are the result's rows: nothing is summed across them */
  uint32_t staged;             /* source lines are converted to contiguous floats first */
  uint32_t quads;              /* bytes: 2 to 4 channels that are computed together, as pixels of 4 bytes; 0: planes on their own */
  uint32_t staging_words;      /* behind the slots: a staged line; for quads, a line of the result too */
  uint32_t threads;            /* that share the rows */
  uint32_t scratch_words;      /* of one thread: a tag for each slot, slots of column_block, a staged line */
} mps_interpolate_arguments;

#endif
