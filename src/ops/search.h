/* SPDX-License-Identifier: BSD-3-Clause
 *
 * search: the plan of a search: how many values a thread takes and which row of boundaries they share.
 */
#ifndef OPENMPS_OPS_SEARCH_H
#define OPENMPS_OPS_SEARCH_H

#include "kernels/search_arguments.h"
#include "openmps/tensor.h"

/* What is to be done on (contiguous) boundaries and values; *cost in nanoseconds on one core. */
void mps_search_plan(const mps_tensor *boundaries, const mps_tensor *values, mps_search_arguments *arguments, double *cost);
/* True when so few test elements are compared one by one faster than they are sorted. */
bool mps_isin_compares(int64_t tests);

#endif
