/* SPDX-License-Identifier: BSD-3-Clause
 *
 * histogram_arguments: what the counting kernels are told; shared by C and Metal. Strides count elements.
 *
 * The input is cut into parts, whose number depends on the shape alone. Each part counts into bins of its own; the bins of the parts are
 * added up in order, so that sums of weights do not depend on the number of threads.
 */
#ifndef OPENMPS_KERNELS_HISTOGRAM_ARGUMENTS_H
#define OPENMPS_KERNELS_HISTOGRAM_ARGUMENTS_H

#ifndef __METAL_VERSION__
#include <stdint.h>
#endif

#define MPS_HISTOGRAM_MAX_DIMENSIONS 16

/* How the bin of a value is found. */
enum mps_histogram_method {
  MPS_HISTOGRAM_LINEAR = 0,   /* by its distance from the first edge */
  MPS_HISTOGRAM_NEAR = 1,     /* the same, then corrected by the edges next to it */
  MPS_HISTOGRAM_SEARCHED = 2, /* among the edges, which are at any distance */
};

typedef struct mps_histogram_arguments {
  int64_t count; /* points */
  int64_t part;  /* points of a part */
  int64_t parts;
  int64_t bins;       /* of a part's histogram, all dimensions */
  int64_t block;      /* bins that one thread adds up */
  int64_t row_stride; /* from point to point */
  int64_t column_stride;
  int64_t weight_stride;
  uint32_t weighted;
  uint32_t method;
  uint32_t dimensions;
  uint32_t reserved;
  int64_t edge_counts[MPS_HISTOGRAM_MAX_DIMENSIONS]; /* edges of each dimension, one after the other in a buffer */
  int64_t bin_strides[MPS_HISTOGRAM_MAX_DIMENSIONS];
} mps_histogram_arguments;

#endif
