/* SPDX-License-Identifier: BSD-3-Clause
 *
 * scan_arguments: what the kernels of running sums, products, maxima are told; written by src/ops/scan_plan.c. Strides count elements.
 */
#ifndef OPENMPS_KERNELS_SCAN_ARGUMENTS_H
#define OPENMPS_KERNELS_SCAN_ARGUMENTS_H

#ifndef __METAL_VERSION__
#include <stdint.h>
#endif

#define MPS_SCAN_MAX_RANK 16
#define MPS_SCAN_TILE 64    /* rows a thread takes together in the outer layout */
#define MPS_SCAN_GROUP 128  /* elements of a row taken at once in the inner layout; chunks are multiples of it */
#define MPS_SCAN_STEPS 16   /* the same in the outer layout */

/* What a pass over chunks is for. A row of one chunk needs VALUES alone. */
#define MPS_SCAN_VALUES 0 /* results; chunks behind the first start from what PREFIXES left */
#define MPS_SCAN_TOTALS 1 /* the state after each chunk, as if a row began there */

typedef struct mps_scan_arguments {
  int64_t rows;
  int64_t length; /* of a row */
  int64_t chunk;  /* elements of a row that a thread takes */
  int64_t chunk_count;
  uint32_t rank; /* of the row space, at least 1; the last dimension is the innermost */
  uint32_t pass;
  uint32_t smallest; /* of running extremes: minima, not maxima */
  uint32_t unused;
  int64_t sizes[MPS_SCAN_MAX_RANK];
  int64_t input_strides[MPS_SCAN_MAX_RANK], output_strides[MPS_SCAN_MAX_RANK], index_strides[MPS_SCAN_MAX_RANK];
  int64_t input_step, output_step, index_step; /* along a row */
} mps_scan_arguments;

#endif
