/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pointwise: one formula over tensors. What the generated bodies of one-formula operators call.
 */
#ifndef OPENMPS_OPS_POINTWISE_H
#define OPENMPS_OPS_POINTWISE_H

#include "graph/formula.h"
#include "openmps/stream.h"
#include "openmps/tensor.h"

/* out = formula(inputs..., parameters...). The counts are the formula's; inputs broadcast to out's shape. out may be strided, exactly
 * one of the inputs, or lie across one. `label` lives for ever. */
MPS_WARN_UNUSED mps_status mps_pointwise(mps_stream *stream, mps_formula formula, const mps_tensor *const *inputs, uint32_t input_count,
                                         const mps_scalar *parameters, uint32_t parameter_count, const mps_tensor *out, const char *label);

#endif
