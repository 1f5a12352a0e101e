/* SPDX-License-Identifier: BSD-3-Clause
 *
 * embedding_bag_arguments: what the kernels for bags of embeddings are told; written by src/ops/embedding_bag_plan.c.
 *
 * Bag b holds the indices from offsets[b] to offsets[b + 1]; the last one those up to the end, or up to a last offset behind it.
 */
#ifndef OPENMPS_KERNELS_EMBEDDING_BAG_ARGUMENTS_H
#define OPENMPS_KERNELS_EMBEDDING_BAG_ARGUMENTS_H

#ifndef __METAL_VERSION__
#include <stdint.h>
#endif

#define MPS_EMBEDDING_BAG_SUM 0
#define MPS_EMBEDDING_BAG_MEAN 1
#define MPS_EMBEDDING_BAG_MAX 2
#define MPS_EMBEDDING_BAG_BLOCK 64

typedef struct mps_embedding_bag_arguments {
  int64_t count;           /* indices */
  int64_t bags;
  int64_t width;           /* elements of an embedding */
  int64_t rows;            /* embeddings; valid indices are below it */
  int64_t padding;         /* this index does not count; -1: none */
  int64_t row_stride;      /* of the weight, elements */
  int64_t column_stride;
  uint32_t mode;           /* MPS_EMBEDDING_BAG_... */
  uint32_t has_scales;     /* 1: each index's embedding is multiplied with a number of its own */
  uint32_t has_last;       /* 1: offsets holds the end of the last bag */
  uint32_t wants_bag_of;   /* 1: the bag of each index is written */
  uint32_t slices;         /* gradient: threads along x, each owning a range of rows */
  uint32_t block;          /* elements of a row that a thread takes; results: a multiple of MPS_EMBEDDING_BAG_BLOCK */
  uint32_t together;       /* results: bags that a thread takes */
  uint32_t reserved;
} mps_embedding_bag_arguments;

#endif
