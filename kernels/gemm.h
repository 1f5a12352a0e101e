/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gemm: what the gemm kernels are told; written by src/ops/gemm.c, read by kernels/gemm.metal. Strides count elements, 0 broadcasts.
 * The grid is (column tiles, row tiles, batch); of gemm_small (rows, batch).
 */
#ifndef OPENMPS_KERNELS_GEMM_H
#define OPENMPS_KERNELS_GEMM_H

#ifndef __METAL_VERSION__
#include <stdint.h>
#endif

#define MPS_GEMM_TILE_ROWS 64
#define MPS_GEMM_TILE_COLUMNS 64
#define MPS_GEMM_SMALL_COLUMNS 16 /* at most, of gemm_small */

/* Bits of mps_gemm_arguments.flags. */
#define MPS_GEMM_CONJUGATE_A 1
#define MPS_GEMM_CONJUGATE_B 2
#define MPS_GEMM_CONJUGATE_BIAS 4
#define MPS_GEMM_HAS_BIAS 8

typedef struct mps_gemm_arguments {
  int64_t m, n, k;
  int64_t a_strides[3], b_strides[3], bias_strides[3], out_strides[3]; /* batch, row, column */
  int64_t alpha_integer, beta_integer; /* integers and bool */
  float alpha[2], beta[2];             /* floats; real and imaginary part */
  uint32_t flags;
  uint32_t reserved;
} mps_gemm_arguments;

#endif
