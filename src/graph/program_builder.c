/* SPDX-License-Identifier: BSD-3-Clause
 *
 * program_builder: values, promotion, conversions between computing types, and the final layout of a program.
 */
#include "graph/program_builder.h"

#include <string.h>

static const mps_program_value no_value = {MPS_VALUE_REGISTER, 0, MPS_DTYPE_F32, MPS_CATEGORY_NUMBER};

static void fail(mps_program_builder *builder, const char *what) {
  if (builder->failure == MPS_STATUS_OK)
    builder->failure = mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s: %s", builder->label, what);
}

void mps_program_begin(mps_program_builder *builder, const char *label, uint32_t rank, const int64_t *sizes) {
  builder->label = label;
  builder->failure = MPS_STATUS_OK;
  builder->cost = 0;
  builder->tensor_count = builder->number_count = builder->operand_count = 0;
  builder->instruction_count = builder->register_count = builder->write_count = builder->kept_count = 0;
  builder->rank = rank;
  builder->element_count = 1;
  if (rank > MPS_MAX_RANK) {
    builder->rank = 0;
    builder->failure = mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s: tensors have at most %d dimensions, got %u", label, MPS_MAX_RANK, rank);
    return;
  }
  for (uint32_t d = 0; d < rank; d++) {
    builder->sizes[d] = sizes[d];
    builder->element_count *= (uint64_t)sizes[d];
  }
}

static const uint8_t number_dtypes[] = {
  [MPS_SCALAR_BOOL] = MPS_DTYPE_BOOL,  [MPS_SCALAR_INT] = MPS_DTYPE_I64,     [MPS_SCALAR_UINT] = MPS_DTYPE_U64,
  [MPS_SCALAR_FLOAT] = MPS_DTYPE_F32, [MPS_SCALAR_COMPLEX] = MPS_DTYPE_C64,
};

mps_program_value mps_program_parameter(mps_program_builder *builder, uint32_t parameter, mps_scalar_kind kind) {
  if (parameter >= MPS_PROGRAM_NO_PARAMETER) {
    fail(builder, "too many parameters in one program");
    return no_value;
  }
  return (mps_program_value){MPS_VALUE_PARAMETER, (uint8_t)parameter, number_dtypes[kind], MPS_CATEGORY_NUMBER};
}

mps_program_value mps_program_number(mps_program_builder *builder, mps_scalar number) {
  if (builder->number_count == MPS_PROGRAM_MAX_OPERANDS) {
    fail(builder, "too many numbers in one program");
    return no_value;
  }
  const mps_program_value value = {MPS_VALUE_NUMBER, (uint8_t)builder->number_count, number_dtypes[number.kind], MPS_CATEGORY_NUMBER};
  builder->numbers[builder->number_count++] = number;
  return value;
}

static bool broadcasts(const mps_program_builder *builder, const mps_tensor *tensor) {
  if (tensor->rank > builder->rank)
    return false;
  const int64_t *sizes = builder->sizes + (builder->rank - tensor->rank);
  for (uint32_t d = 0; d < tensor->rank; d++)
    if (tensor->sizes[d] != sizes[d] && tensor->sizes[d] != 1)
      return false;
  return true;
}

mps_program_value mps_program_read(mps_program_builder *builder, const mps_tensor *tensor) {
  if ((unsigned)tensor->dtype >= MPS_DTYPE_COUNT || !broadcasts(builder, tensor)) {
    fail(builder, "an input does not broadcast to the shape of the output");
    return no_value;
  }
  if (tensor->buffer == NULL) {
    mps_program_value value = mps_program_number(builder, tensor->constant);
    value.dtype = (uint8_t)tensor->dtype;
    if (!(tensor->flags & MPS_TENSOR_WRAPPED_NUMBER))
      value.category = tensor->rank == 0 ? MPS_CATEGORY_SCALAR : MPS_CATEGORY_TENSOR;
    return value;
  }
  if (builder->tensor_count == MPS_PROGRAM_MAX_OPERANDS) {
    fail(builder, "too many tensors in one program");
    return no_value;
  }
  const mps_program_value value = {MPS_VALUE_TENSOR, (uint8_t)builder->tensor_count, (uint8_t)tensor->dtype,
                                   tensor->rank == 0 ? MPS_CATEGORY_SCALAR : MPS_CATEGORY_TENSOR};
  builder->tensors[builder->tensor_count++] = tensor;
  return value;
}

mps_dtype mps_program_promote(const mps_program_value *values, uint32_t count) {
  bool equal = true;
  for (uint32_t i = 1; i < count; i++)
    equal = equal && values[i].dtype == values[0].dtype;
  if (equal && count)
    return (mps_dtype)values[0].dtype;
  mps_dtype_promotion promotion;
  mps_promotion_begin(&promotion);
  for (uint32_t i = 0; i < count; i++)
    mps_promotion_add(&promotion, (mps_dtype)values[i].dtype, (mps_dtype_category)values[i].category);
  return mps_promotion_end(&promotion);
}

static mps_operand *add_operand(mps_program_builder *builder, const mps_tensor *tensor, mps_compute compute, uint8_t *out_index) {
  if (builder->operand_count == MPS_PROGRAM_MAX_OPERANDS) {
    fail(builder, "too many operands in one program");
    *out_index = 0;
    return NULL;
  }
  *out_index = (uint8_t)builder->operand_count;
  builder->operand_parameters[builder->operand_count] = MPS_PROGRAM_NO_PARAMETER;
  mps_operand *operand = &builder->operands[builder->operand_count];
  builder->operand_tensors[builder->operand_count++] = tensor;
  operand->address = operand->allocation = 0;
  operand->compute = (uint8_t)compute;
  operand->flags = 0;
  operand->access = 1;
  operand->constant = 0;
  operand->value = 0;
  return operand;
}

static void set_strides(const mps_program_builder *builder, mps_operand *operand, const mps_tensor *tensor) {
  const int64_t bytes = (int64_t)mps_dtype_size(tensor->dtype);
  const uint32_t lead = builder->rank - tensor->rank;
  for (uint32_t d = 0; d < lead; d++)
    operand->strides[d] = 0;
  for (uint32_t d = 0; d < tensor->rank; d++)
    operand->strides[lead + d] = tensor->sizes[d] == builder->sizes[lead + d] ? tensor->strides[d] * bytes : 0;
  operand->dtype = (uint8_t)tensor->dtype;
  operand->flags = tensor->flags & (MPS_TENSOR_CONJUGATE | MPS_TENSOR_NEGATIVE);
}

static uint8_t tensor_operand(mps_program_builder *builder, const mps_tensor *tensor, mps_compute compute) {
  for (uint32_t i = 0; i < builder->operand_count; i++)
    if (builder->operand_tensors[i] == tensor && builder->operands[i].compute == compute && builder->operands[i].access == 1)
      return (uint8_t)i;
  uint8_t index;
  mps_operand *operand = add_operand(builder, tensor, compute, &index);
  if (operand)
    set_strides(builder, operand, tensor);
  return index;
}

static void set_constant(const mps_program_builder *builder, mps_operand *operand, mps_compute compute, uint64_t value) {
  operand->constant = 1;
  operand->value = value;
  operand->dtype = (uint8_t)mps_compute_dtype(compute);
  for (uint32_t d = 0; d < builder->rank; d++)
    operand->strides[d] = 0;
}

static uint8_t parameter_operand(mps_program_builder *builder, uint8_t parameter, mps_dtype dtype, mps_compute compute) {
  for (uint32_t i = 0; i < builder->operand_count; i++)
    if (builder->operand_parameters[i] == parameter && builder->operand_parameter_dtypes[i] == dtype && builder->operands[i].compute == compute)
      return (uint8_t)i;
  uint8_t index;
  mps_operand *operand = add_operand(builder, NULL, compute, &index);
  if (operand) {
    set_constant(builder, operand, compute, 0);
    builder->operand_parameters[index] = parameter;
    builder->operand_parameter_dtypes[index] = (uint8_t)dtype;
  }
  return index;
}

static uint8_t number_operand(mps_program_builder *builder, mps_scalar number, mps_dtype dtype, mps_compute compute) {
  const uint64_t value = mps_scalar_element(number, dtype, compute);
  for (uint32_t i = 0; i < builder->operand_count; i++)
    if (builder->operands[i].constant && builder->operand_parameters[i] == MPS_PROGRAM_NO_PARAMETER && builder->operands[i].compute == compute &&
        builder->operands[i].value == value)
      return (uint8_t)i;
  uint8_t index;
  mps_operand *operand = add_operand(builder, NULL, compute, &index);
  if (operand)
    set_constant(builder, operand, compute, value);
  return index;
}

/* Appends an instruction whose result is a new register; the caller fills in sources and parameters. */
static mps_instruction *add_instruction(mps_program_builder *builder, uint32_t formula, mps_compute compute, mps_compute result, mps_dtype round,
                                        uint8_t *out_register) {
  *out_register = 0;
  if (builder->instruction_count == MPS_PROGRAM_MAX_INSTRUCTIONS) {
    fail(builder, "too many formulas in one program");
    return NULL;
  }
  *out_register = (uint8_t)builder->register_count;
  builder->register_computes[builder->register_count] = (uint8_t)result;
  builder->register_makers[builder->register_count++] = (uint8_t)builder->instruction_count;
  builder->instruction_computes[builder->instruction_count] = (uint8_t)compute;
  mps_instruction *instruction = &builder->instructions[builder->instruction_count++];
  instruction->function = NULL;
  instruction->formula = (uint16_t)formula;
  instruction->result = (uint8_t)result;
  instruction->round = (uint8_t)round;
  instruction->destination = (uint8_t)(MPS_PROGRAM_REGISTER + *out_register);
  memset(instruction->parameters, 0, sizeof(instruction->parameters));
  return instruction;
}

static uint8_t copy_register(mps_program_builder *builder, uint8_t source, mps_compute compute, mps_dtype round) {
  uint8_t result;
  mps_instruction *instruction = add_instruction(builder, MPS_FORMULA_COPY, compute, compute, round, &result);
  if (instruction) {
    instruction->source_count = 1;
    instruction->sources[0] = source;
  }
  return (uint8_t)(MPS_PROGRAM_REGISTER + result);
}

static uint8_t cast_register(mps_program_builder *builder, uint8_t source, mps_compute from, mps_compute to) {
  uint8_t result;
  mps_instruction *instruction =
    add_instruction(builder, MPS_FORMULA_CAST + (uint32_t)from * 8 + (uint32_t)to, to, to, mps_compute_dtype(to), &result);
  if (instruction) {
    instruction->source_count = 1;
    instruction->sources[0] = source;
  }
  return (uint8_t)(MPS_PROGRAM_REGISTER + result);
}

/* A value as a source of `compute`, holding only what `dtype` can hold (MPS_DTYPE_COUNT: no rounding). */
static uint8_t source_of(mps_program_builder *builder, mps_program_value value, mps_compute compute, mps_dtype dtype) {
  uint8_t source;
  const mps_dtype wide = mps_compute_dtype(compute);
  if (value.kind == MPS_VALUE_NUMBER)
    return number_operand(builder, builder->numbers[value.index], dtype == MPS_DTYPE_COUNT ? wide : dtype, compute);
  if (value.kind == MPS_VALUE_PARAMETER)
    return parameter_operand(builder, value.index, dtype == MPS_DTYPE_COUNT ? wide : dtype, compute);
  if (value.kind == MPS_VALUE_TENSOR) {
    source = tensor_operand(builder, builder->tensors[value.index], compute);
  } else {
    source = (uint8_t)(MPS_PROGRAM_REGISTER + value.index);
    const mps_compute from = (mps_compute)builder->register_computes[value.index];
    if (from != compute)
      source = cast_register(builder, source, from, compute);
  }
  if (dtype != MPS_DTYPE_COUNT && dtype != wide && !mps_dtype_contains(dtype, (mps_dtype)value.dtype))
    source = copy_register(builder, source, compute, dtype);
  return source;
}

static mps_compute result_compute(const mps_formula_info *info, mps_compute compute) {
  switch (info->result) {
  case MPS_RESULT_BOOL:
    return MPS_COMPUTE_BOOL;
  case MPS_RESULT_REAL:
    return compute == MPS_COMPUTE_C64 ? MPS_COMPUTE_F32 : compute;
  case MPS_RESULT_COMPLEX:
    return MPS_COMPUTE_C64;
  default:
    return compute;
  }
}

static bool is_constant(mps_program_value value) { return value.kind == MPS_VALUE_NUMBER || value.kind == MPS_VALUE_PARAMETER; }

mps_program_value mps_program_apply_in(mps_program_builder *builder, mps_formula formula, mps_dtype common, const mps_program_value *sources,
                                       const mps_scalar *parameters) {
  const mps_formula_info *info = &mps_formula_infos[formula];
  const mps_compute compute = mps_dtype_compute(common);
  if (!(info->types >> compute & 1u)) {
    if (builder->failure == MPS_STATUS_OK)
      builder->failure =
        mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", builder->label, mps_dtype_title(common));
    return no_value;
  }
  uint8_t registers[MPS_PROGRAM_MAX_SOURCES] = {0}, category = MPS_CATEGORY_NUMBER;
  for (uint32_t i = 0; i < info->source_count; i++) {
    const bool same = info->sources[i] == MPS_FORMULA_SAME;
    const bool exact = !same || (info->exact_constants && is_constant(sources[i]) && !mps_dtype_is_integral(common));
    registers[i] = source_of(builder, sources[i], same ? compute : (mps_compute)info->sources[i], exact ? MPS_DTYPE_COUNT : common);
    if (sources[i].category > category)
      category = sources[i].category;
  }
  const mps_dtype result = mps_formula_result_dtype(info, common);
  uint8_t index;
  mps_instruction *instruction = add_instruction(builder, formula, compute, result_compute(info, compute), result, &index);
  if (!instruction)
    return no_value;
  instruction->source_count = info->source_count;
  memcpy(instruction->sources, registers, sizeof(registers));
  const mps_dtype wide = mps_compute_dtype(compute);
  for (uint32_t i = 0; i < info->parameter_count; i++)
    mps_scalar_store(parameters[i], wide, (char *)instruction->parameters + i * mps_dtype_size(wide));
  builder->cost += info->cost;
  return (mps_program_value){MPS_VALUE_REGISTER, index, (uint8_t)result, category};
}

mps_dtype mps_program_common(mps_formula formula, const mps_program_value *sources) {
  const mps_formula_info *info = &mps_formula_infos[formula];
  mps_program_value typed[MPS_PROGRAM_MAX_SOURCES];
  uint32_t count = 0;
  for (uint32_t i = 0; i < info->source_count; i++)
    if (info->sources[i] == MPS_FORMULA_SAME && !(info->rule == MPS_RULE_FIRST && count == 1))
      typed[count++] = sources[i];
  mps_dtype common = info->rule == MPS_RULE_BOOL ? MPS_DTYPE_BOOL : mps_program_promote(typed, count);
  if (info->rule == MPS_RULE_FLOAT && !mps_dtype_is_floating(common) && !mps_dtype_is_complex(common))
    common = MPS_DTYPE_F32;
  return common;
}

mps_program_value mps_program_apply(mps_program_builder *builder, mps_formula formula, const mps_program_value *sources,
                                    const mps_scalar *parameters) {
  return mps_program_apply_in(builder, formula, mps_program_common(formula, sources), sources, parameters);
}

void mps_program_keep(mps_program_builder *builder, mps_program_value value) {
  if (builder->failure != MPS_STATUS_OK)
    return;
  if (builder->kept_count == MPS_PROGRAM_MAX_KEPT) {
    fail(builder, "too many results in one program");
    return;
  }
  const mps_compute compute = mps_dtype_compute((mps_dtype)value.dtype);
  uint8_t source = source_of(builder, value, compute, MPS_DTYPE_COUNT);
  if (is_constant(value))
    source = copy_register(builder, source, compute, mps_compute_dtype(compute));
  builder->kept[builder->kept_count++] = source;
}

/* What a value of `from` is read as on its way to `to`: floats reach small unsigned integers through int64, as in PyTorch. */
static mps_compute conversion_compute(mps_dtype from, mps_dtype to) {
  const bool from_real = mps_dtype_is_floating(from) || mps_dtype_is_complex(from);
  if (from_real && (to == MPS_DTYPE_U8 || to == MPS_DTYPE_U16))
    return MPS_COMPUTE_I64;
  return mps_dtype_compute(to);
}

mps_program_value mps_program_cast(mps_program_builder *builder, mps_program_value value, mps_dtype dtype) {
  if (value.dtype == dtype)
    return value;
  const bool wider = mps_dtype_contains(dtype, (mps_dtype)value.dtype) && mps_dtype_compute(dtype) == mps_dtype_compute((mps_dtype)value.dtype);
  if (wider && !is_constant(value)) { /* the same values in the same computing type */
    value.dtype = (uint8_t)dtype;
    return value;
  }
  const mps_compute compute = conversion_compute((mps_dtype)value.dtype, dtype);
  uint8_t source = source_of(builder, value, compute, MPS_DTYPE_COUNT);
  if (compute != mps_dtype_compute(dtype))
    source = cast_register(builder, source, compute, mps_dtype_compute(dtype));
  source = copy_register(builder, source, mps_dtype_compute(dtype), dtype);
  return (mps_program_value){MPS_VALUE_REGISTER, (uint8_t)(source - MPS_PROGRAM_REGISTER), (uint8_t)dtype, value.category};
}

void mps_program_write(mps_program_builder *builder, mps_program_value value, const mps_tensor *tensor) {
  if (builder->failure != MPS_STATUS_OK)
    return;
  if ((unsigned)tensor->dtype >= MPS_DTYPE_COUNT || (tensor->buffer == NULL && builder->element_count) || tensor->rank != builder->rank || !broadcasts(builder, tensor) ||
      mps_tensor_element_count(tensor) != (int64_t)builder->element_count) {
    fail(builder, "the output's dtype or shape is not the program's");
    return;
  }
  mps_compute compute = value.kind == MPS_VALUE_REGISTER ? (mps_compute)builder->register_computes[value.index]
                                                         : conversion_compute((mps_dtype)value.dtype, tensor->dtype);
  uint8_t source = source_of(builder, value, compute, is_constant(value) ? tensor->dtype : MPS_DTYPE_COUNT);
  const mps_compute stored = conversion_compute((mps_dtype)value.dtype, tensor->dtype);
  if (stored != mps_dtype_compute(tensor->dtype) && stored != compute) {
    source = cast_register(builder, source, compute, stored);
    compute = stored;
  }
  if (source < MPS_PROGRAM_REGISTER)
    source = copy_register(builder, source, compute, mps_compute_dtype(compute));
  uint8_t index;
  mps_operand *operand = add_operand(builder, tensor, compute, &index);
  if (!operand)
    return;
  set_strides(builder, operand, tensor);
  operand->access = 2;
  builder->writes[builder->write_count].source = source;
  builder->writes[builder->write_count].compute = (uint8_t)compute;
  builder->writes[builder->write_count++].operand = index;
}
