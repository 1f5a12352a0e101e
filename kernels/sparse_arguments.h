/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sparse_arguments: what the kernels for products of sparse matrices are told; written by src/ops/sparse_plan.c.
 *
 * Row i of the sparse matrix has the entries begins[i] <= e < begins[i + 1], in columns[e].
 */
#ifndef OPENMPS_KERNELS_SPARSE_ARGUMENTS_H
#define OPENMPS_KERNELS_SPARSE_ARGUMENTS_H

#ifndef __METAL_VERSION__
#include <stdint.h>
#endif

#define MPS_SPARSE_SUM 0
#define MPS_SPARSE_MEAN 1
#define MPS_SPARSE_MAX 2
#define MPS_SPARSE_MIN 3
#define MPS_SPARSE_PRODUCT 4
#define MPS_SPARSE_BLOCK 64 /* most elements of a row of the result that one thread takes */

typedef struct mps_sparse_arguments {
  int64_t entries;
  int64_t rows;          /* of the dense matrix; valid columns are below it */
  int64_t width;         /* columns of the dense matrix and of the result */
  int64_t row_stride;    /* of the dense matrix, elements */
  int64_t column_stride;
  uint32_t reduction;    /* MPS_SPARSE_... */
  uint32_t wants_places; /* 1: which entry gave the largest or smallest product is written */
} mps_sparse_arguments;

#endif
