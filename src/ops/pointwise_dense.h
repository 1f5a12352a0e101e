/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pointwise_dense: one formula over dense tensors of one shape and dtype, without the program builder. What mps_pointwise tries first.
 */
#ifndef OPENMPS_OPS_POINTWISE_DENSE_H
#define OPENMPS_OPS_POINTWISE_DENSE_H

#include "graph/program_builder.h"

/* Whether a call is of this kind: the steps below are for such calls only. */
bool mps_pointwise_is_dense(mps_formula formula, const mps_tensor *const *inputs, uint32_t input_count, const mps_tensor *out);
/* Fills in operands (input_count + 1 of them), instruction and program, but for addresses and the function. Pure. */
void mps_pointwise_plan_dense(mps_formula formula, const mps_tensor *const *inputs, uint32_t input_count, const mps_scalar *parameters,
                              const mps_tensor *out, mps_operand *operands, mps_instruction *instruction, mps_program *program);
MPS_WARN_UNUSED mps_status mps_pointwise_encode_dense(mps_stream *stream, mps_formula formula, const mps_tensor *const *inputs,
                                                      uint32_t input_count, const mps_scalar *parameters, const mps_tensor *out, const char *label);

#endif
