/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sparse_plan: from the shapes of a sparse and a dense matrix to kernel arguments, the kernel's name and threads. Pure.
 */
#ifndef OPENMPS_OPS_SPARSE_PLAN_H
#define OPENMPS_OPS_SPARSE_PLAN_H

#include "kernels/sparse_arguments.h"
#include "openmps/tensor.h"

typedef struct mps_sparse_plan {
  mps_sparse_arguments arguments;
  const char *stem; /* of the kernel */
  const char *suffix;
  uint64_t threads[3];
  double cost; /* nanoseconds */
} mps_sparse_plan;

/* `columns` (entries) is contiguous, `out` (rows x width) too; dense: columns of the sparse matrix x width. `reduction` is valid. */
void mps_sparse_plan_product(mps_sparse_plan *plan, const mps_tensor *columns, const mps_tensor *dense, int64_t reduction, bool wants_places,
                             const mps_tensor *out);

#endif
