/* SPDX-License-Identifier: BSD-3-Clause
 *
 * scan_plan: from shapes and strides to the arguments and grids of the kernels of running results. Pure: needs no device.
 */
#ifndef OPENMPS_OPS_SCAN_PLAN_H
#define OPENMPS_OPS_SCAN_PLAN_H

#include <stdbool.h>

#include "kernels/scan_arguments.h"
#include "openmps/tensor.h"

typedef struct mps_scan_plan {
  mps_scan_arguments arguments;
  bool outer;       /* a thread takes a tile of rows; else one row */
  uint64_t threads; /* rows or tiles; each once a chunk */
} mps_scan_plan;

/* All tensors have input's shape, rank >= 1 and no size 0. `indices` may be NULL. `whole`: rows are never cut into chunks. */
void mps_scan_plan_make(mps_scan_plan *plan, const mps_tensor *input, uint32_t dimension, const mps_tensor *output, const mps_tensor *indices, bool whole);

#endif
