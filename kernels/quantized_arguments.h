/* SPDX-License-Identifier: BSD-3-Clause
 *
 * quantized_arguments: what the kernels for weights of 8 and 4 bits are told; written by src/ops/quantized.c.
 *
 * 8 bits: weight[n][k] = value * scale[n]. 4 bits: two values a byte, the lower k in the lower half, and weight[n][k] =
 * (value - 8) * scales[k / group][n][0] + scales[k / group][n][1].
 */
#ifndef OPENMPS_KERNELS_QUANTIZED_ARGUMENTS_H
#define OPENMPS_KERNELS_QUANTIZED_ARGUMENTS_H

#ifndef __METAL_VERSION__
#include <stdint.h>
#endif

#define MPS_QUANTIZED_ROWS 4    /* rows of the input that a thread multiplies with its weights at once */
#define MPS_QUANTIZED_CHUNK 32  /* values of a weight that are unpacked at once; divides every group */

typedef struct mps_quantized_arguments {
  int64_t rows, columns, depth; /* of input (rows x depth) and result (rows x columns) */
  int64_t group;                /* values that share a scale; the whole depth for 8 bits */
  uint32_t bits;
  uint32_t reserved;
} mps_quantized_arguments;

#endif
