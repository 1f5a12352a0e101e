/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pointwise_dense: the way of most calls of one formula: tensors of one shape without gaps, all of the dtype that is computed in. Their
 * program is written down at once, the same that the builder makes; it takes a third of the builder's time.
 */
#include <string.h>

#include "base/status.h"
#include "driver/driver.h"
#include "ops/pointwise_dense.h"
#include "runtime/buffer.h"
#include "runtime/stream.h"

/* ---- check ---- */

/* The shape is `out`'s, and elements lie in its order without gaps. */
static bool is_dense(const mps_tensor *tensor, const mps_tensor *out) {
  if (tensor->buffer == NULL || tensor->flags || tensor->rank != out->rank)
    return false;
  int64_t expected = 1;
  for (uint32_t d = tensor->rank; d-- > 0;) {
    if (tensor->sizes[d] != out->sizes[d] || (tensor->strides[d] != expected && tensor->sizes[d] != 1))
      return false;
    expected = (int64_t)((uint64_t)expected * (uint64_t)tensor->sizes[d]);
  }
  return true;
}

/* In place, or in other memory. What shares a buffer otherwise is left to the builder, which looks closer. */
static bool meets_nowhere(const mps_tensor *out, const mps_tensor *input) {
  return out->buffer != input->buffer || (out->offset == input->offset && out->dtype == input->dtype);
}

static bool computes_in(const mps_formula_info *info, mps_dtype dtype) {
  if (mps_compute_dtype(mps_dtype_compute(dtype)) != dtype || !(info->types >> mps_dtype_compute(dtype) & 1u))
    return false;
  switch (info->rule) {
  case MPS_RULE_FLOAT:
    return mps_dtype_is_floating(dtype) || mps_dtype_is_complex(dtype);
  case MPS_RULE_BOOL:
    return dtype == MPS_DTYPE_BOOL;
  default:
    return true;
  }
}

bool mps_pointwise_is_dense(mps_formula formula, const mps_tensor *const *inputs, uint32_t input_count, const mps_tensor *out) {
  const mps_formula_info *info = &mps_formula_infos[formula];
  if (input_count != info->source_count || input_count == 0 || out->rank > MPS_MAX_RANK)
    return false;
  const mps_dtype dtype = inputs[0]->dtype;
  if ((unsigned)dtype >= MPS_DTYPE_COUNT || !computes_in(info, dtype) || out->dtype != mps_formula_result_dtype(info, dtype) || !is_dense(out, out))
    return false;
  for (uint32_t i = 0; i < input_count; i++)
    if (info->sources[i] != MPS_FORMULA_SAME || inputs[i]->dtype != dtype || !is_dense(inputs[i], out) || !meets_nowhere(out, inputs[i]))
      return false;
  return mps_compute_dtype(mps_dtype_compute(out->dtype)) == out->dtype && mps_tensor_element_count(out) > 0;
}

/* ---- plan ---- */
static void set_operand(mps_operand *operand, const mps_tensor *tensor, uint8_t access) {
  operand->address = operand->allocation = 0;
  operand->dtype = (uint8_t)tensor->dtype;
  operand->compute = (uint8_t)mps_dtype_compute(tensor->dtype);
  operand->flags = operand->constant = 0;
  operand->access = access;
  operand->value = 0;
  operand->strides[0] = (int64_t)mps_dtype_size(tensor->dtype);
}

void mps_pointwise_plan_dense(mps_formula formula, const mps_tensor *const *inputs, uint32_t input_count, const mps_scalar *parameters,
                              const mps_tensor *out, mps_operand *operands, mps_instruction *instruction, mps_program *program) {
  const mps_formula_info *info = &mps_formula_infos[formula];
  const mps_dtype dtype = inputs[0]->dtype;
  memset(instruction, 0, sizeof(*instruction));
  for (uint32_t i = 0; i < input_count; i++) {
    set_operand(&operands[i], inputs[i], 1);
    instruction->sources[i] = (uint8_t)i;
  }
  set_operand(&operands[input_count], out, 2);
  instruction->formula = (uint16_t)formula;
  instruction->source_count = (uint8_t)input_count;
  instruction->result = (uint8_t)mps_dtype_compute(out->dtype);
  instruction->round = (uint8_t)out->dtype;
  instruction->destination = (uint8_t)input_count;
  for (uint32_t i = 0; i < info->parameter_count; i++)
    mps_scalar_store(parameters[i], dtype, (char *)instruction->parameters + i * mps_dtype_size(dtype));
  program->operand_count = input_count + 1;
  program->instruction_count = 1;
  program->register_count = 0;
  program->element_count = (uint64_t)mps_tensor_element_count(out);
  program->rank = program->element_count > 1;
  program->sizes[0] = (int64_t)program->element_count;
  program->operands = operands;
  program->instructions = instruction;
}

/* ---- encode ---- */
static void take_address(mps_operand *operand, const mps_tensor *tensor) {
  operand->address = mps_buffer_address(tensor->buffer) + tensor->offset;
  operand->allocation = tensor->buffer->identifier;
}

mps_status mps_pointwise_encode_dense(mps_stream *stream, mps_formula formula, const mps_tensor *const *inputs, uint32_t input_count,
                                      const mps_scalar *parameters, const mps_tensor *out, const char *label) {
  const mps_driver_function *function;
  MPS_TRY(mps_formula_function(mps_stream_device(stream), formula, mps_dtype_compute(inputs[0]->dtype), &function));
  for (uint32_t i = 0; i < input_count; i++)
    mps_buffer_use(inputs[i]->buffer, stream);
  mps_buffer_use(out->buffer, stream);
  const size_t operand_bytes = (input_count + 1) * sizeof(mps_operand);
  const size_t bytes = sizeof(mps_step_pointwise) + operand_bytes + sizeof(mps_instruction);
  const double cost = 100.0 + (double)mps_tensor_element_count(out) * (double)(mps_formula_infos[formula].cost + 0.1f * (float)(input_count + 1));
  void *memory;
  MPS_TRY(mps_stream_reserve(stream, MPS_STEP_POINTWISE, bytes, label, cost, &memory));
  mps_step_pointwise *step = memory;
  mps_operand *operands = (mps_operand *)(void *)(step + 1);
  mps_instruction *instruction = (mps_instruction *)(void *)(operands + input_count + 1);
  mps_pointwise_plan_dense(formula, inputs, input_count, parameters, out, operands, instruction, &step->program);
  instruction->function = function;
  for (uint32_t i = 0; i < input_count; i++)
    take_address(&operands[i], inputs[i]);
  take_address(&operands[input_count], out);
  mps_stream_publish(stream, &step->step);
  return MPS_STATUS_OK;
}
