/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gemm: out = beta * bias + alpha * (a @ b) over tensors; what mm, bmm, mv, dot, addr, linear and attention are made of.
 *
 *   mps_gemm gemm = {.dtype = .., .batch = 1, .m = .., .n = .., .k = .., .alpha = mps_scalar_int(1), .beta = mps_scalar_int(0)};
 *   gemm.a = mps_gemm_operand_of(tensor, -1, 0, 1); ...; mps_gemm_run(stream, "mm", &gemm)
 */
#ifndef OPENMPS_OPS_GEMM_H
#define OPENMPS_OPS_GEMM_H

#include "openmps/stream.h"
#include "openmps/tensor.h"

/* A tensor as a matrix, or a batch of them. Strides count elements. */
typedef struct mps_gemm_operand {
  mps_buffer *buffer; /* NULL: `constant` everywhere */
  uint64_t offset;    /* bytes, of element 0 */
  int64_t strides[3]; /* batch, row, column; 0 broadcasts */
  uint32_t flags;     /* MPS_TENSOR_* */
  mps_scalar constant;
} mps_gemm_operand;

typedef struct mps_gemm {
  mps_dtype dtype;
  int64_t batch, m, n, k;
  mps_gemm_operand a, b, bias, out;
  bool has_bias;
  mps_scalar alpha, beta;
} mps_gemm;

/* The tensor's strides along three of its dimensions; -1: there is none (stride 0). */
mps_gemm_operand mps_gemm_operand_of(const mps_tensor *tensor, int batch_dimension, int row_dimension, int column_dimension);

/* Brings a gemm into the form that kernels and providers take; pure. Negative and out's conjugate flags move into alpha, beta and the
 * inputs; alpha 0 becomes k 0; beta 0 drops the bias; a batch that is one tall matrix becomes one. */
void mps_gemm_plan(mps_gemm *gemm);
/* Whether a planned gemm is many products so small that the kernel gemm_small is quicker than a call of the provider for each; pure. */
bool mps_gemm_is_small(const mps_gemm *gemm);

/* Plans and encodes. Inputs that out overlaps (bias: unless it is out) are copied first. */
MPS_WARN_UNUSED mps_status mps_gemm_run(mps_stream *stream, const char *label, const mps_gemm *gemm);

#endif
