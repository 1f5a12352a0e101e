/* SPDX-License-Identifier: BSD-3-Clause
 *
 * random_arguments: what the random kernels are told; shared by C and Metal.
 *
 * Element i of a result takes 32-bit word i % 4 of Philox block offset + i / 4 (64-bit integers: words of pairs), so that a value depends
 * on seed, offset and position alone.
 */
#ifndef OPENMPS_KERNELS_RANDOM_ARGUMENTS_H
#define OPENMPS_KERNELS_RANDOM_ARGUMENTS_H

#ifndef __METAL_VERSION__
#include <stdint.h>
#endif

typedef struct mps_random_arguments {
  uint64_t seed;
  uint64_t offset; /* of the first Philox block */
  int64_t count;   /* elements, contiguous */
  float a, b;      /* parameters of the distribution: from/to, mean/deviation, p, lambda, median/sigma */
  uint64_t range;  /* integers: values in [base, base + range); 0 = all 64 bits */
  int64_t base;
} mps_random_arguments;

/* A permutation: numbers are dealt to buckets block by block, and each bucket is shuffled. */
#define MPS_PERMUTATION_BLOCK 16384 /* numbers that one thread deals, a multiple of what it makes digits for at once */
#define MPS_PERMUTATION_BUCKETS 1024
#define MPS_PERMUTATION_BUCKET 4096 /* numbers of a bucket, about */

typedef struct mps_permutation_arguments {
  uint64_t seed;
  uint64_t offset;     /* of the first Philox block */
  int64_t count;       /* below 2^32 */
  int64_t blocks;      /* of numbers */
  int64_t deal_blocks; /* Philox blocks that dealing takes; shuffling takes those behind */
  uint32_t bits;       /* 2^bits buckets; 0: one, nothing is dealt */
  uint32_t reserved;
} mps_permutation_arguments;

/* Sampling from rows of weights, whose running sums are kept block by block. */
#define MPS_MULTINOMIAL_BLOCK 16

typedef struct mps_multinomial_arguments {
  uint64_t seed;
  uint64_t offset;
  int64_t rows, categories, samples;
  int64_t row_stride, category_stride; /* of the weights, elements */
  int64_t blocks; /* of MPS_MULTINOMIAL_BLOCK categories in a row */
} mps_multinomial_arguments;

#endif
