/* SPDX-License-Identifier: BSD-3-Clause
 *
 * random_call: runs one distribution over one result.
 */
#ifndef OPENMPS_OPS_RANDOM_CALL_H
#define OPENMPS_OPS_RANDOM_CALL_H

#include "openmps/stream.h"
#include "ops/random_plan.h"

/* Takes the plan's Philox blocks from the generator (NULL: the default one) and encodes it. A result that is not contiguous, or not of the
 * dtype that the kernel makes, is made in a temporary first. */
MPS_WARN_UNUSED mps_status mps_random_run(mps_stream *stream, const mps_random_call *call, mps_generator *generator, const mps_tensor *out);

#endif
