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
  mps_dense_matrix *from, *to; /* both or none: of the call, for source and out as they lie where the provider can bring them itself */
} mps_linalg_operand;

enum { MPS_LINALG_MAX_OPERANDS = 6 };
/* Larger matrices are brought into column-major memory by the device: a provider's scratch memory stays with its thread. */
#define MPS_LINALG_SCRATCH_BYTES ((int64_t)1 << 20)

/* Values that are only read, that are read and destroyed, that are only written, and that become others. */
mps_linalg_operand mps_linalg_input(const mps_tensor *source, uint32_t inner, mps_dense_columns *columns);
mps_linalg_operand mps_linalg_consumed(const mps_tensor *source, uint32_t inner, mps_dense_columns *columns);
mps_linalg_operand mps_linalg_output(const mps_tensor *out, uint32_t inner, mps_dense_columns *columns);
mps_linalg_operand mps_linalg_becomes(const mps_tensor *source, const mps_tensor *out, uint32_t inner, mps_dense_columns *columns);
/* The matrices a of a kind that may be given from and to. */
mps_linalg_operand mps_linalg_brought(const mps_tensor *source, const mps_tensor *out, mps_dense_factorization *call);

/* Begins a call on matrices `a` (m x n), and one of a system with right-hand sides b (n x k, or k x n unless left): checks ranks, sizes and
 * batches, fills in kind, dtype, batch, m, n, k and is_left. */
MPS_WARN_UNUSED mps_status mps_linalg_open(const char *label, const char *name, const mps_tensor *a, bool square, mps_dense_kind kind,
                                           mps_dense_factorization *call);
MPS_WARN_UNUSED mps_status mps_linalg_open_system(const char *label, const char *name, const mps_tensor *a, const mps_tensor *b, bool left,
                                                  mps_dense_kind kind, mps_dense_factorization *call);
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
