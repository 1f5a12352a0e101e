/* SPDX-License-Identifier: BSD-3-Clause
 *
 * unique_arguments: what the kernels are told that order rows and drop equal neighbours; shared by C and Metal. Rows are contiguous.
 */
#ifndef OPENMPS_KERNELS_UNIQUE_ARGUMENTS_H
#define OPENMPS_KERNELS_UNIQUE_ARGUMENTS_H

#ifndef __METAL_VERSION__
#include <stdint.h>
#endif

typedef struct mps_unique_arguments {
  int64_t count;     /* rows */
  int64_t width;     /* elements of a row */
  int64_t block;     /* rows that one thread takes */
  int64_t blocks;
  int64_t run;       /* of a merge: rows that are in order already; 0: none, and each thread sorts a block */
  int64_t distinct;  /* rows that are kept */
  uint32_t ordered;  /* 1: there is an order, the place where each row was */
  uint32_t gathered; /* 1: rows lie in that order already; 0: they are read through it */
  uint32_t values, inverse; /* 1: this result is wanted */
} mps_unique_arguments;

#endif
