/* SPDX-License-Identifier: BSD-3-Clause
 *
 * program_plan: the end of a program's making: destinations, registers, layout; then the step in the stream's command buffer.
 */
#include <string.h>

#include "graph/program_builder.h"
#include "runtime/buffer.h"
#include "runtime/device.h"
#include "runtime/stream.h"

static uint32_t count_uses(const mps_program_builder *builder, uint8_t source) {
  uint32_t uses = 0;
  for (uint32_t i = 0; i < builder->instruction_count; i++)
    for (uint32_t s = 0; s < builder->instructions[i].source_count; s++)
      uses += builder->instructions[i].sources[s] == source;
  for (uint32_t w = 0; w < builder->write_count; w++)
    uses += builder->writes[w].source == source;
  for (uint32_t k = 0; k < builder->kept_count; k++)
    uses += builder->kept[k] == source;
  return uses;
}

/* Results go straight to their operand where nobody else wants them; copies at the end of the program do the others. */
static mps_status set_destinations(mps_program_builder *builder) {
  const uint32_t made = builder->instruction_count;
  for (uint32_t w = 0; w < builder->write_count; w++) {
    const uint8_t source = builder->writes[w].source, operand = builder->writes[w].operand;
    const uint32_t maker = builder->register_makers[source - MPS_PROGRAM_REGISTER];
    if ((made == 1 && builder->write_count == 1 && builder->kept_count == 0) || count_uses(builder, source) == 1) {
      builder->instructions[maker].destination = operand;
      continue;
    }
    if (builder->instruction_count == MPS_PROGRAM_MAX_INSTRUCTIONS)
      return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s: more than %d formulas in one program", builder->label, MPS_PROGRAM_MAX_INSTRUCTIONS);
    const uint8_t compute = builder->writes[w].compute;
    builder->instruction_computes[builder->instruction_count] = compute;
    mps_instruction *instruction = &builder->instructions[builder->instruction_count++];
    memset(instruction, 0, sizeof(*instruction));
    instruction->formula = MPS_FORMULA_COPY;
    instruction->source_count = 1;
    instruction->sources[0] = source;
    instruction->result = compute;
    instruction->round = (uint8_t)mps_compute_dtype((mps_compute)compute);
    instruction->destination = operand;
  }
  return MPS_STATUS_OK;
}

/* Gives registers that are never alive together the same number, so that a long program's blocks stay in the first-level cache. */
static mps_status assign_registers(mps_program_builder *builder, uint32_t *out_count) {
  uint8_t last_use[MPS_PROGRAM_MAX_INSTRUCTIONS] = {0}, place[MPS_PROGRAM_MAX_INSTRUCTIONS] = {0};
  for (uint32_t i = 0; i < builder->instruction_count; i++)
    for (uint32_t s = 0; s < builder->instructions[i].source_count; s++)
      if (builder->instructions[i].sources[s] >= MPS_PROGRAM_REGISTER)
        last_use[builder->instructions[i].sources[s] - MPS_PROGRAM_REGISTER] = (uint8_t)i;
  uint8_t kept[MPS_PROGRAM_MAX_INSTRUCTIONS] = {0};
  for (uint32_t k = 0; k < builder->kept_count; k++)
    if (builder->kept[k] >= MPS_PROGRAM_REGISTER)
      kept[builder->kept[k] - MPS_PROGRAM_REGISTER] = 1;
  uint32_t taken = 0, count = 0;
  for (uint32_t i = 0; i < builder->instruction_count; i++) {
    mps_instruction *instruction = &builder->instructions[i];
    uint32_t freed = 0;
    for (uint32_t s = 0; s < instruction->source_count; s++) {
      if (instruction->sources[s] < MPS_PROGRAM_REGISTER)
        continue;
      const uint32_t name = instruction->sources[s] - MPS_PROGRAM_REGISTER;
      instruction->sources[s] = (uint8_t)(MPS_PROGRAM_REGISTER + place[name]);
      if (last_use[name] == i && !kept[name])
        freed |= 1u << place[name];
    }
    if (instruction->destination >= MPS_PROGRAM_REGISTER) {
      uint32_t free_place = 0;
      while (taken >> free_place & 1u)
        free_place++;
      if (free_place >= MPS_PROGRAM_MAX_REGISTERS)
        return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s: more than %d registers in one program", builder->label, MPS_PROGRAM_MAX_REGISTERS);
      place[instruction->destination - MPS_PROGRAM_REGISTER] = (uint8_t)free_place;
      instruction->destination = (uint8_t)(MPS_PROGRAM_REGISTER + free_place);
      taken |= 1u << free_place;
      if (free_place >= count)
        count = free_place + 1;
    }
    taken &= ~freed;
  }
  for (uint32_t k = 0; k < builder->kept_count; k++)
    if (builder->kept[k] >= MPS_PROGRAM_REGISTER)
      builder->kept[k] = (uint8_t)(MPS_PROGRAM_REGISTER + place[builder->kept[k] - MPS_PROGRAM_REGISTER]);
  *out_count = count;
  return MPS_STATUS_OK;
}

mps_status mps_program_finish(mps_program_builder *builder, uint32_t *out_register_count) {
  *out_register_count = 0;
  if (builder->failure != MPS_STATUS_OK)
    return builder->failure;
  if (builder->write_count + builder->kept_count == 0)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s: the program writes nothing", builder->label);
  const mps_status status = set_destinations(builder);
  if (status != MPS_STATUS_OK)
    return status;
  const uint32_t count = builder->instruction_count;
  if (count > 1 || (count == 1 && builder->instructions[0].destination >= MPS_PROGRAM_REGISTER))
    return assign_registers(builder, out_register_count);
  return MPS_STATUS_OK;
}

mps_status mps_program_plan(mps_program_builder *builder, mps_program *out_program) {
  uint32_t registers;
  const mps_status status = mps_program_finish(builder, &registers);
  if (status != MPS_STATUS_OK)
    return status;
  if (builder->write_count == 0)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s: the program writes nothing", builder->label);
  mps_program_layout(&builder->rank, builder->sizes, builder->operands, builder->operand_count, builder->writes[0].operand);
  out_program->operand_count = builder->operand_count;
  out_program->instruction_count = builder->instruction_count;
  out_program->register_count = registers;
  out_program->rank = builder->rank;
  out_program->element_count = builder->element_count;
  memcpy(out_program->sizes, builder->sizes, builder->rank * sizeof(builder->sizes[0]));
  out_program->operands = builder->operands;
  out_program->instructions = builder->instructions;
  return MPS_STATUS_OK;
}

mps_status mps_program_find_functions(mps_program_builder *builder, mps_device *device) {
  for (uint32_t i = 0; i < builder->instruction_count; i++) {
    const mps_status status = mps_formula_function(device, builder->instructions[i].formula,
                                                   (mps_compute)builder->instruction_computes[i], &builder->instructions[i].function);
    if (status != MPS_STATUS_OK)
      return status;
  }
  return MPS_STATUS_OK;
}

static void take_addresses(mps_program_builder *builder, mps_stream *stream) {
  for (uint32_t o = 0; o < builder->operand_count; o++) {
    const mps_tensor *tensor = builder->operand_tensors[o];
    if (tensor == NULL)
      continue;
    mps_buffer_use(tensor->buffer, stream);
    builder->operands[o].address = mps_buffer_address(tensor->buffer) + tensor->offset;
    builder->operands[o].allocation = tensor->buffer->identifier;
  }
}

static mps_status encode_step(mps_program_builder *builder, mps_stream *stream) {
  mps_program program;
  mps_status status = mps_program_plan(builder, &program);
  if (status == MPS_STATUS_OK)
    status = mps_program_find_functions(builder, mps_stream_device(stream));
  if (status != MPS_STATUS_OK)
    return status;
  take_addresses(builder, stream);
  const size_t operand_bytes = program.operand_count * sizeof(mps_operand), instruction_bytes = program.instruction_count * sizeof(mps_instruction);
  const size_t bytes = (sizeof(mps_step_pointwise) + operand_bytes + instruction_bytes + 15) & ~(size_t)15;
  const double cost = 100.0 + (double)program.element_count * (double)(builder->cost + 0.1f * (float)program.operand_count);
  void *memory;
  status = mps_stream_reserve(stream, MPS_STEP_POINTWISE, bytes, builder->label, cost, &memory);
  if (status != MPS_STATUS_OK)
    return status;
  mps_step_pointwise *step = memory;
  char *behind = (char *)(step + 1);
  memcpy(behind, program.operands, operand_bytes);
  memcpy(behind + operand_bytes, program.instructions, instruction_bytes);
  program.operands = (const mps_operand *)(const void *)behind;
  program.instructions = (const mps_instruction *)(const void *)(behind + operand_bytes);
  step->program = program;
  mps_stream_publish(stream, &step->step);
  return MPS_STATUS_OK;
}

static bool meets_a_read(const mps_program_builder *builder, const mps_tensor *written) {
  for (uint32_t o = 0; o < builder->operand_count; o++) {
    const mps_tensor *tensor = builder->operand_tensors[o];
    if (tensor && builder->operands[o].access == 1 && mps_tensor_overlap(written, tensor) == MPS_OVERLAP_PARTIAL)
      return true;
  }
  return false;
}

/* Lets write `w` go to a new contiguous tensor instead. */
static mps_status redirect(mps_program_builder *builder, mps_stream *stream, uint32_t w, mps_tensor *temporary) {
  const uint8_t index = builder->writes[w].operand;
  const mps_tensor *tensor = builder->operand_tensors[index];
  *temporary = *tensor;
  temporary->offset = 0;
  mps_tensor_set_contiguous(temporary, tensor->rank, tensor->sizes);
  const size_t item = mps_dtype_size(tensor->dtype);
  const mps_status status = mps_buffer_create(mps_stream_device(stream), stream, builder->element_count * item, &temporary->buffer);
  if (status != MPS_STATUS_OK)
    return status;
  builder->operand_tensors[index] = temporary;
  for (uint32_t d = 0; d < temporary->rank; d++)
    builder->operands[index].strides[d] = temporary->strides[d] * (int64_t)item;
  return MPS_STATUS_OK;
}

/* Outputs that lie across an input: computed beside, then moved as they are stored, flags included. */
static mps_status encode_with_temporaries(mps_program_builder *builder, mps_stream *stream, uint32_t crossing) {
  mps_tensor temporaries[MPS_PROGRAM_MAX_OPERANDS], targets[MPS_PROGRAM_MAX_OPERANDS];
  mps_status status = MPS_STATUS_OK;
  uint32_t made = 0;
  for (uint32_t w = 0; w < builder->write_count && status == MPS_STATUS_OK; w++) {
    if (!(crossing >> w & 1u))
      continue;
    targets[w] = *builder->operand_tensors[builder->writes[w].operand];
    status = redirect(builder, stream, w, &temporaries[w]);
    if (status == MPS_STATUS_OK)
      made |= 1u << w;
  }
  if (status == MPS_STATUS_OK)
    status = encode_step(builder, stream);
  for (uint32_t w = 0; w < builder->write_count; w++) {
    if (!(made >> w & 1u))
      continue;
    temporaries[w].flags = targets[w].flags = 0;
    if (status == MPS_STATUS_OK)
      status = mps_program_copy(stream, builder->label, &temporaries[w], &targets[w]);
    mps_buffer_release(temporaries[w].buffer);
  }
  return status;
}

mps_status mps_program_encode(mps_program_builder *builder, mps_stream *stream) {
  if (builder->failure != MPS_STATUS_OK)
    return builder->failure;
  if (builder->element_count == 0)
    return MPS_STATUS_OK;
  uint32_t crossing = 0;
  for (uint32_t w = 0; w < builder->write_count; w++)
    if (meets_a_read(builder, builder->operand_tensors[builder->writes[w].operand]))
      crossing |= 1u << w;
  return crossing ? encode_with_temporaries(builder, stream, crossing) : encode_step(builder, stream);
}

mps_status mps_program_copy(mps_stream *stream, const char *label, const mps_tensor *from, const mps_tensor *to) {
  mps_program_builder builder;
  mps_program_begin(&builder, label, to->rank, to->sizes);
  mps_program_write(&builder, mps_program_read(&builder, from), to);
  return mps_program_encode(&builder, stream);
}
