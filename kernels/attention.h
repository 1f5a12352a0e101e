/* SPDX-License-Identifier: BSD-3-Clause
 *
 * attention: what the softmax between the two products of attention is told; written by src/ops/attention.c, read by
 * kernels/attention.metal. Scores are (heads, rows, columns) without gaps. Strides count elements.
 */
#ifndef OPENMPS_KERNELS_ATTENTION_H
#define OPENMPS_KERNELS_ATTENTION_H

#ifndef __METAL_VERSION__
#include <stdint.h>
#endif

/* How the mask is read. */
#define MPS_ATTENTION_NO_MASK 0
#define MPS_ATTENTION_BOOL_MASK 1   /* false hides */
#define MPS_ATTENTION_SCORE_MASK 2  /* added, of the scores' dtype */
#define MPS_ATTENTION_FLOAT_MASK 3  /* added, f32 */

typedef struct mps_attention_arguments {
  int64_t rows, columns;
  int64_t first_row; /* of the scores within the queries: is_causal hides columns behind it */
  int64_t mask_strides[3]; /* head, row, column */
  uint32_t mask;
  uint32_t is_causal;
} mps_attention_arguments;

#endif
