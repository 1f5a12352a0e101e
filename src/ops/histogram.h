/* SPDX-License-Identifier: BSD-3-Clause
 *
 * histogram: the plan of counting in bins: how many parts with bins of their own the input is cut into.
 */
#ifndef OPENMPS_OPS_HISTOGRAM_H
#define OPENMPS_OPS_HISTOGRAM_H

#include "kernels/histogram_arguments.h"
#include "openmps/tensor.h"

/* Parts for `count` points and `bins` bins; depends on nothing else, as sums of weights depend on it. */
void mps_histogram_plan(int64_t count, int64_t bins, mps_histogram_arguments *arguments);

#endif
