/* SPDX-License-Identifier: BSD-3-Clause
 *
 * unique: the plan of a search for distinct rows: how rows are cut into blocks, and how often runs are merged.
 */
#ifndef OPENMPS_OPS_UNIQUE_H
#define OPENMPS_OPS_UNIQUE_H

#include "kernels/unique_arguments.h"
#include "openmps/tensor.h"

/* For a matrix of rows, cut into as many blocks as `starts` (one more than blocks) has room for. */
void mps_unique_plan(const mps_tensor *rows, bool ordered, bool gathered, int64_t starts, mps_unique_arguments *arguments);
/* How often two orders of `rows` are merged, runs of `block` rows to begin with. */
uint32_t mps_unique_merges(int64_t rows, int64_t block);

#endif
