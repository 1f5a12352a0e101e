/* SPDX-License-Identifier: BSD-3-Clause
 *
 * linalg: what the matrix factorisations share: operands brought into column-major memory, one call of the device's provider, results
 * brought back. There are no kernels for them: without a provider they are NOT_IMPLEMENTED.
 */
#ifndef OPENMPS_OPS_LINALG_H
#define OPENMPS_OPS_LINALG_H

#include "openmps/dense.h"
#include "openmps/tensor.h"

/* An operand of a factorisation. Batch items are the dimensions before the last `inner` ones (2: a matrix, 1: a vector, 0: a number). */
typedef struct mps_linalg_operand {
  const mps_tensor *source;   /* values before the call; NULL: none are read */
  const mps_tensor *out;      /* where values go; NULL: nowhere */
  uint32_t inner;
  bool changed;               /* without out: the call destroys the values, so that it works on a copy */
  mps_dense_columns *columns; /* of the call; filled in */
} mps_linalg_operand;

enum { MPS_LINALG_MAX_OPERANDS = 6 };

/* Fills dtype and batch from `shape` (rank >= 2). */
void mps_linalg_begin(mps_dense_factorization *call, mps_dense_kind kind, const mps_tensor *shape);
/* Encodes the call: sources are copied to where the provider works, results to where they belong. cost: nanoseconds of one item on one core. */
MPS_WARN_UNUSED mps_status mps_linalg_run(mps_stream *stream, const char *label, mps_dense_factorization *call, const mps_linalg_operand *operands,
                                          uint32_t count, double cost);

/* Rows and columns of a matrix, of rank >= 2. */
static inline int64_t mps_linalg_rows(const mps_tensor *t) { return t->sizes[t->rank - 2]; }
static inline int64_t mps_linalg_columns(const mps_tensor *t) { return t->sizes[t->rank - 1]; }

/* INVALID_ARGUMENT unless rank >= 2 (and square, if asked for). */
MPS_WARN_UNUSED mps_status mps_linalg_check_matrix(const char *label, const char *name, const mps_tensor *tensor, bool square);
/* INVALID_ARGUMENT unless both have the same sizes before their last `inner` dimensions. */
MPS_WARN_UNUSED mps_status mps_linalg_check_batch(const char *label, const mps_tensor *a, uint32_t a_inner, const mps_tensor *b, uint32_t b_inner);

#endif
