/* SPDX-License-Identifier: BSD-3-Clause
 *
 * norm_arguments: what the normalisation kernels are told; written by src/ops/norm*.c, read by kernels/norm*.metal.
 */
#ifndef OPENMPS_KERNELS_NORM_ARGUMENTS_H
#define OPENMPS_KERNELS_NORM_ARGUMENTS_H

#ifndef __METAL_VERSION__
#include <stdint.h>
#endif

#define MPS_NORM_PIECE 4096 /* elements of a run, or about as many of rows, that a thread takes */
#define MPS_NORM_TILE 256   /* columns that a thread takes */

/* Rows of `count` neighbouring elements (layer norm, rms norm). */
typedef struct mps_norm_rows {
  int64_t rows;
  int64_t count;
  int64_t chunk; /* rows a thread of the weight's gradient takes */
  float epsilon;
  uint32_t centred; /* 0: rms norm, no mean */
  uint32_t has_weight;
  uint32_t has_bias;
} mps_norm_rows;

/* A tensor of `runs` runs of `run` neighbours; run r belongs to statistic r % statistics (layout inner). Or, with run 0, of `runs`
 * rows of `statistics` neighbours, element j of a row belonging to statistic j (layout outer). */
typedef struct mps_norm_runs {
  int64_t runs;
  int64_t run;
  int64_t statistics;
  int64_t piece; /* elements of a run, or rows, that a thread takes */
} mps_norm_runs;

/* Small kernels over the statistics. */
typedef struct mps_norm_statistics {
  int64_t statistics;  /* partial sums or moments lie as [chunk][statistic] */
  int64_t chunk_count;
  int64_t count;       /* elements a statistic is made of */
  int64_t channels;    /* group norm: C */
  int64_t groups;
  int64_t batch;
  float epsilon;
  float momentum;
  uint32_t has_weight;
  uint32_t has_bias;
  uint32_t has_running;
  uint32_t training;
} mps_norm_statistics;

#endif
