/* SPDX-License-Identifier: BSD-3-Clause
 *
 * search_arguments: what the searching kernels are told; shared by C and Metal. All tensors are contiguous.
 */
#ifndef OPENMPS_KERNELS_SEARCH_ARGUMENTS_H
#define OPENMPS_KERNELS_SEARCH_ARGUMENTS_H

#ifndef __METAL_VERSION__
#include <stdint.h>
#endif

typedef struct mps_search_arguments {
  int64_t count;  /* values to look for */
  int64_t block;  /* values that one thread takes */
  int64_t row;    /* values that share a row of boundaries: count when there is one row */
  int64_t length; /* of a row of boundaries, or of the test elements */
  uint32_t right;
  uint32_t sorter;   /* 1: boundaries are read through the sorter */
  uint32_t narrow;   /* 1: results are int32 */
  uint32_t inverted; /* of isin: true where the value is not found */
} mps_search_arguments;

#endif
