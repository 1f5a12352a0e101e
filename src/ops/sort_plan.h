/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sort_plan: from a row operation (sort, topk, kthvalue, median) and its tensors to the kernel, its arguments and its scratch. Pure.
 */
#ifndef OPENMPS_OPS_SORT_PLAN_H
#define OPENMPS_OPS_SORT_PLAN_H

#include "kernels/sort_arguments.h"
#include "openmps/stream.h"
#include "openmps/tensor.h"

typedef enum mps_sort_kind { MPS_SORT_ALL, MPS_SORT_TOP, MPS_SORT_KTH, MPS_SORT_MODE } mps_sort_kind; /* the last two rearrange their only keys */

/* What all operators here are: a row operation with `count` results a row. */
typedef struct mps_sort_call {
  const char *label;
  mps_sort_kind kind;
  int64_t count, kth;
  bool descending, sorted;
  uint32_t median; /* as in mps_sort_arguments */
} mps_sort_call;

typedef struct mps_sort_plan {
  const char *stem, *suffix; /* of the kernel */
  mps_sort_arguments arguments;
  uint64_t key_bytes;   /* scratch for keys, of all lanes */
  uint64_t order_bytes; /* scratch for indices */
  double cost;          /* nanoseconds */
} mps_sort_plan;

/* Elements of a row along `dim`; 1 for a 0-d tensor and for a dimension out of range. */
int64_t mps_sort_row_length(const mps_tensor *self, int64_t dim);
/* Results with the shape, dtypes and row length that kernels can take; PyTorch's texts otherwise. */
MPS_WARN_UNUSED mps_status mps_sort_check(const mps_sort_call *call, const mps_tensor *self, const mps_tensor *values, const mps_tensor *indices,
                                          uint32_t dimension);
/* True when self's memory is written while rows of it are still read. */
bool mps_sort_needs_copy(const mps_tensor *self, const mps_tensor *values, const mps_tensor *indices);
/* All tensors have rank 1 or more, at least one element, and no flags. Lanes are few enough that scratch stays below 64 MiB. */
void mps_sort_plan_make(mps_sort_plan *plan, const mps_sort_call *call, const mps_tensor *self, const mps_tensor *values, const mps_tensor *indices,
                        uint32_t dimension);

/* One long row, sorted by all threads together. */
typedef struct mps_sort_long_plan {
  const char *suffix, *key_suffix; /* of the kernels that see values, and of those that see keys */
  mps_sort_long_arguments arguments;
  uint64_t key_bytes, order_bytes, varies_bytes, count_bytes; /* of scratch */
} mps_sort_long_plan;

/* False for rows that are sorted one by a thread; `plan` is that of all rows. */
bool mps_sort_long_plan_make(mps_sort_long_plan *out_plan, const mps_sort_plan *plan, const mps_sort_call *call, mps_dtype dtype);
/* The operands that `plan` was made from: one row in any layout. */
MPS_WARN_UNUSED mps_status mps_sort_long(mps_stream *stream, const mps_sort_long_plan *plan, const mps_tensor *self, const mps_tensor *values,
                                         const mps_tensor *indices);

#endif
