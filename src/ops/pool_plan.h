/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pool_plan: from a pooling call and its tensors to the kernel, its arguments and its grid. Pure.
 */
#ifndef OPENMPS_OPS_POOL_PLAN_H
#define OPENMPS_OPS_POOL_PLAN_H

#include "kernels/pool_arguments.h"
#include "openmps/tensor.h"

/* A call, whatever the operator: `large` is the side that windows lie in (input or its gradient), `small` has one element a window. */
typedef struct mps_pool_call {
  const char *label, *stem;
  const char *title; /* the name by which errors about the dtype call it; NULL: the label */
  const mps_tensor *large, *small, *indices; /* indices may be NULL */
  const mps_tensor *samples;                 /* of fractional pooling, [batch, channels, dimensions]; else NULL */
  uint32_t dimensions;
  bool adaptive, count_include_pad, only_floats;
  const int64_t *kernel, *stride, *padding, *dilation;
  uint32_t kernel_count, stride_count, padding_count, dilation_count;
  const int64_t *divisor;
} mps_pool_call;

typedef struct mps_pool_plan {
  const char *stem, *suffix; /* of the kernel */
  mps_pool_arguments arguments;
  uint64_t threads[3];
  double cost; /* nanoseconds */
} mps_pool_plan;

/* Which side a thread owns: rows of windows, rows of the large side (gradients of means), or planes, into which elements are put. */
typedef enum mps_pool_grid { MPS_POOL_GRID_SMALL, MPS_POOL_GRID_LARGE, MPS_POOL_GRID_PLANES } mps_pool_grid;

/* Ranks, shapes, lists and dtypes fit; INVALID_ARGUMENT or, for a dtype that the operator lacks, NOT_IMPLEMENTED otherwise. */
MPS_WARN_UNUSED mps_status mps_pool_check(const mps_pool_call *call);
void mps_pool_plan_make(mps_pool_plan *plan, const mps_pool_call *call, mps_pool_grid grid);

#endif
