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

/* Sampling from rows of weights. */
typedef struct mps_multinomial_arguments {
  uint64_t seed;
  uint64_t offset;
  int64_t rows, categories, samples;
  int64_t row_stride, category_stride; /* of the weights, elements */
} mps_multinomial_arguments;

#endif
