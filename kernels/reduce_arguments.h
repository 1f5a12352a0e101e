/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reduce_arguments: what the reduction kernels are told; written by src/ops/reduce_plan.c, read by kernels/reduce*.metal.
 *
 * A reduction has kept dimensions (the outputs) and reduced ones. Both lists are coalesced; the last entry is the innermost.
 * Strides count elements. A thread takes one chunk of the reduced elements of one output, or of a tile of outputs that are
 * neighbours along the innermost kept dimension.
 */
#ifndef OPENMPS_KERNELS_REDUCE_ARGUMENTS_H
#define OPENMPS_KERNELS_REDUCE_ARGUMENTS_H

#ifndef __METAL_VERSION__
#include <stdint.h>
#endif

#define MPS_REDUCE_MAX_RANK 16
#define MPS_REDUCE_TILE 256 /* outputs a thread takes at most in the outer layout */
#define MPS_REDUCE_ROW_LEAST 16 /* elements of rows that a tile takes as they lie, one behind the other */
#define MPS_REDUCE_ROW_MOST 127

/* What the count of nonzero elements is turned into. */
#define MPS_REDUCE_COUNT 0
#define MPS_REDUCE_ANY 1
#define MPS_REDUCE_ALL 2

typedef struct mps_reduce_arguments {
  int64_t output_count; /* kept elements */
  int64_t reduce_count; /* elements an output is made of */
  int64_t chunk;        /* reduced elements a thread takes */
  int64_t chunk_count;
  uint32_t kept_rank; /* at least 1 */
  uint32_t reduced_rank; /* at least 1 */
  uint32_t raw;     /* 1: write accumulators to the partials [chunk][output], a finishing kernel follows */
  uint32_t mode;    /* MPS_REDUCE_COUNT.. */
  float divisor;    /* of sums: the count for a mean, 1 otherwise */
  float power;      /* p of a norm */
  float correction; /* of a variance */
  uint32_t root;    /* 1: standard deviation */
  uint32_t rows;    /* 1: outer layout of short rows of neighbours, each folded by itself */
  uint32_t reserved;
  int64_t kept_sizes[MPS_REDUCE_MAX_RANK];
  int64_t kept_strides[MPS_REDUCE_MAX_RANK];  /* of the input */
  int64_t out_strides[MPS_REDUCE_MAX_RANK];   /* of the output */
  int64_t second_strides[MPS_REDUCE_MAX_RANK]; /* of a second output: indices, means */
  int64_t reduced_sizes[MPS_REDUCE_MAX_RANK];
  int64_t reduced_strides[MPS_REDUCE_MAX_RANK];
} mps_reduce_arguments;

#endif
