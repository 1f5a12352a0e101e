/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sparse_plan: from the shapes of a sparse and a dense matrix to kernel arguments, the kernel's name and threads. Pure.
 */
#include "ops/sparse_plan.h"

#include <string.h>

#include "ops/operand.h"

/* Nanoseconds on one core, estimates. */
#define ELEMENT_COST 0.15
#define ENTRY_COST 4.0

void mps_sparse_plan_product(mps_sparse_plan *plan, const mps_tensor *columns, const mps_tensor *dense, int64_t reduction, bool wants_places,
                             const mps_tensor *out) {
  memset(plan, 0, sizeof *plan);
  mps_sparse_arguments *a = &plan->arguments;
  a->entries = columns->sizes[0];
  a->rows = dense->sizes[0];
  a->width = dense->sizes[1];
  a->row_stride = dense->strides[0];
  a->column_stride = dense->strides[1];
  a->reduction = (uint32_t)reduction;
  a->wants_places = wants_places;
  const bool extremum = reduction == MPS_SPARSE_MAX || reduction == MPS_SPARSE_MIN;
  plan->stem = extremum ? "sparse_extremum" : "sparse_sum";
  plan->suffix = mps_dtype_is_integral(out->dtype) ? mps_operand_bytes_suffix(out->dtype) : mps_dtype_name(out->dtype);
  plan->threads[0] = (uint64_t)out->sizes[0];
  plan->threads[1] = (uint64_t)((a->width + MPS_SPARSE_BLOCK - 1) / MPS_SPARSE_BLOCK);
  plan->threads[2] = 1;
  plan->cost = (double)a->entries * (ENTRY_COST + ELEMENT_COST * (double)a->width) + (double)mps_tensor_element_count(out) * ELEMENT_COST;
}
