/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sort_arguments: what the sorting and selecting kernels are told; shared by C and Metal. Strides count elements.
 */
#ifndef OPENMPS_KERNELS_SORT_ARGUMENTS_H
#define OPENMPS_KERNELS_SORT_ARGUMENTS_H

#ifndef __METAL_VERSION__
#include <stdint.h>
#endif

#define MPS_SORT_MAX_RANK 16
#define MPS_SORT_LIST 32   /* so many first elements are kept in a list in order; more are gathered in scratch */
#define MPS_SORT_BLOCK 128 /* elements of a row that are looked at together for being among the first */

typedef struct mps_sort_arguments {
  int64_t rows;
  int64_t lanes;  /* threads: thread t takes rows t, t + lanes, ... and has scratch of its own */
  int64_t length; /* elements of a row, below 2^32 */
  int64_t count;  /* results of a row: length, k, or 1 */
  int64_t capacity; /* of a lane's scratch, in elements, where the first elements are gathered */
  int64_t kth;    /* which smallest element (from 0) a selection looks for */
  uint32_t descending; /* also: the largest k */
  uint32_t sorted;
  uint32_t median; /* 1: a NaN wins; 2: NaNs do not count and the middle of the others is looked for */
  uint32_t rank;   /* of the row space */
  int64_t sizes[MPS_SORT_MAX_RANK];
  int64_t input_strides[MPS_SORT_MAX_RANK], value_strides[MPS_SORT_MAX_RANK], index_strides[MPS_SORT_MAX_RANK];
  int64_t input_step, value_step, index_step; /* along a row */
} mps_sort_arguments;

/* One long row, sorted by all threads. */
typedef struct mps_sort_long_arguments {
  int64_t length; /* below 2^32 */
  int64_t block;  /* elements that one thread takes */
  int64_t blocks;
  int64_t input_step, value_step, index_step;
  uint32_t descending;
  uint32_t digits; /* bytes of a key that may differ */
  uint32_t digit;  /* the one that a pass sorts by */
  uint32_t reserved;
} mps_sort_long_arguments;

#endif
