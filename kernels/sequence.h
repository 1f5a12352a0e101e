/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sequence: arguments of the kernels that make values from positions (arange, linspace, eye, triangles), shared by C and Metal.
 */
#ifndef OPENMPS_KERNELS_SEQUENCE_H
#define OPENMPS_KERNELS_SEQUENCE_H

#ifndef __METAL_VERSION__
#include <stdint.h>
#endif

/* value(i) = start + i * step. For floats start and step are sums of two floats, which carry what a double would. */
typedef struct mps_sequence_arguments {
  int64_t count;
  int64_t out_stride; /* elements */
  int64_t first_integer;
  int64_t step_integer;
  float start_high, start_low;
  float step_high, step_low;
  float end_high, end_low; /* linspace counts the second half back from here */
  int64_t middle;          /* first position that is counted back; count when none is */
} mps_sequence_arguments;

/* Matrices in a batch: out[b, r, c] = self[b, r, c] inside of the triangle, else zero. Strides count elements. */
typedef struct mps_triangle_arguments {
  int64_t rows, columns;
  int64_t diagonal;
  int64_t self_row, self_column, out_row, out_column;
  uint32_t upper;
  uint32_t batch_rank;
  int64_t batch_sizes[16];
  int64_t self_batch[16], out_batch[16];
} mps_triangle_arguments;

/* Coordinates (row, column) of a triangle's elements: out[0, k], out[1, k]. */
typedef struct mps_triangle_indices_arguments {
  int64_t rows, columns, offset;
  int64_t count;
  int64_t out_first, out_second; /* strides along the pair and along k, elements */
  uint32_t upper;
  uint32_t reserved;
} mps_triangle_indices_arguments;

#endif
