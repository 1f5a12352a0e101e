/* SPDX-License-Identifier: BSD-3-Clause
 *
 * index_arguments: what the indexing kernels are told; written by src/ops/index_plan.c, read by kernels/index*.metal.
 *
 * Every indexing operator walks an iteration space in which three things have strides: the data (the tensor that is indexed; stride 0
 * where an index decides), the values (what is read into or written from) and the index. The element of the data that belongs to a
 * point is  data[sum(point * data_strides) + wrap(index) * index_step].  Strides count elements.
 */
#ifndef OPENMPS_KERNELS_INDEX_ARGUMENTS_H
#define OPENMPS_KERNELS_INDEX_ARGUMENTS_H

#ifndef __METAL_VERSION__
#include <stdint.h>
#endif

#define MPS_INDEX_MAX_RANK 16

typedef struct mps_index_arguments {
  int64_t outer_count;  /* points of the outer dimensions: threads along x */
  int64_t walk_count;   /* points of the walked dimensions: one after the other in a thread; 1 when reading */
  int64_t run;          /* elements of the innermost dimension */
  int64_t block;        /* elements of the run that one thread takes */
  int64_t index_size;   /* valid indices are below it */
  int64_t index_step;   /* elements of data from one index to the next */
  int64_t skipped;      /* points with this index are left out (padding_idx); INT64_MIN: none */
  int64_t data_run;     /* strides along the run */
  int64_t value_run;
  int64_t index_run;
  uint32_t slices;      /* threads along y: each writes only where the index falls into its part of [0, index_size) */
  uint32_t outer_rank;
  uint32_t walk_rank;
  uint32_t wraps;       /* 1: negative indices count from the end */
  uint32_t dimension;   /* for the error's text */
  uint32_t reserved;
  /* The outer dimensions, then the walked ones; the last of each is the innermost. */
  int64_t sizes[MPS_INDEX_MAX_RANK];
  int64_t data_strides[MPS_INDEX_MAX_RANK];
  int64_t value_strides[MPS_INDEX_MAX_RANK];
  int64_t index_strides[MPS_INDEX_MAX_RANK];
} mps_index_arguments;

/* A walk along one dimension may be cut into parts, each with a copy of the data of its own; these are joined in order. */
#define MPS_INDEX_JOIN_BLOCK 512

typedef struct mps_index_join_arguments {
  int64_t size;  /* elements of a copy, and of the data */
  int64_t step;  /* from one element of the data to the next */
  int64_t parts;
  int64_t block; /* elements that one thread joins, at most MPS_INDEX_JOIN_BLOCK */
} mps_index_join_arguments;

/* Compaction (nonzero, masked_select, ...): a thread takes `block` elements of a mask of `count`. */
typedef struct mps_compact_arguments {
  int64_t count;
  int64_t block;
  int64_t limit; /* results that are kept */
  uint32_t rank; /* of the mask, for coordinates */
  uint32_t reserved;
  int64_t sizes[MPS_INDEX_MAX_RANK];
  int64_t column_stride, row_stride; /* of nonzero's result, elements */
} mps_compact_arguments;

#endif
