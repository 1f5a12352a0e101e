/* SPDX-License-Identifier: BSD-3-Clause
 *
 * program_builder: makes pointwise programs out of formulas, with PyTorch's dtype rules: each formula computes in the promoted dtype of
 * its sources and rounds to it, so that a program gives bit for bit what its formulas give one by one.
 *
 *   mps_program_builder b;                                      // on the stack, a few KB, needs no end
 *   mps_program_begin(&b, "silu_mul", rank, sizes);
 *   mps_program_value x = mps_program_read(&b, self), g = mps_program_read(&b, gate);
 *   x = mps_program_apply(&b, MPS_FORMULA_SILU, &x, 1, NULL);
 *   x = mps_program_apply(&b, MPS_FORMULA_MUL, (mps_program_value[]){x, g}, 2, NULL);
 *   mps_program_write(&b, x, out);
 *   return mps_program_encode(&b, stream);
 *
 * All values that a program reads are the old ones: written tensors may be exactly one that is read; any other overlap goes through a
 * temporary. A failure is remembered and returned by the last call. Tensors are borrowed until then. Planning needs no device.
 */
#ifndef OPENMPS_GRAPH_PROGRAM_BUILDER_H
#define OPENMPS_GRAPH_PROGRAM_BUILDER_H

#include "openmps/stream.h"
#include "graph/formula.h"

/* Something that formulas take: a tensor, a number, or the result of a formula. */
typedef struct mps_program_value {
  uint8_t kind;     /* mps_program_value_kind */
  uint8_t index;    /* of the tensor, number or register */
  uint8_t dtype;    /* mps_dtype */
  uint8_t category; /* mps_dtype_category */
} mps_program_value;

typedef enum mps_program_value_kind { MPS_VALUE_TENSOR, MPS_VALUE_NUMBER, MPS_VALUE_REGISTER, MPS_VALUE_PARAMETER } mps_program_value_kind;

#define MPS_PROGRAM_NO_PARAMETER 255
#define MPS_PROGRAM_MAX_KEPT 4

typedef struct mps_program_builder {
  const char *label;
  mps_status failure;
  float cost; /* nanoseconds an element */
  uint32_t rank;
  uint64_t element_count;
  uint32_t tensor_count, number_count, operand_count, instruction_count, register_count, write_count;
  int64_t sizes[MPS_MAX_RANK];
  const mps_tensor *tensors[MPS_PROGRAM_MAX_OPERANDS];
  mps_scalar numbers[MPS_PROGRAM_MAX_OPERANDS];
  const mps_tensor *operand_tensors[MPS_PROGRAM_MAX_OPERANDS]; /* NULL for a constant */
  uint8_t register_computes[MPS_PROGRAM_MAX_INSTRUCTIONS];     /* register n is the result of instruction register_makers[n] */
  uint8_t register_makers[MPS_PROGRAM_MAX_INSTRUCTIONS];
  uint8_t instruction_computes[MPS_PROGRAM_MAX_INSTRUCTIONS]; /* T of the formula: names the block kernel */
  uint8_t operand_parameters[MPS_PROGRAM_MAX_OPERANDS];       /* constants whose value is given later: the parameter's number */
  uint8_t operand_parameter_dtypes[MPS_PROGRAM_MAX_OPERANDS]; /* that it is rounded to */
  uint32_t kept_count;
  uint8_t kept[MPS_PROGRAM_MAX_KEPT]; /* registers and read operands that are wanted after each block */
  struct {
    uint8_t source, operand, compute;
  } writes[MPS_PROGRAM_MAX_OPERANDS];
  mps_operand operands[MPS_PROGRAM_MAX_OPERANDS];
  mps_instruction instructions[MPS_PROGRAM_MAX_INSTRUCTIONS];
} mps_program_builder;

/* The iteration space is that of the outputs. rank <= MPS_MAX_RANK. */
void mps_program_begin(mps_program_builder *builder, const char *label, uint32_t rank, const int64_t *sizes);
/* A tensor that broadcasts to the iteration space. Descriptors of constants and Python numbers are welcome. */
mps_program_value mps_program_read(mps_program_builder *builder, const mps_tensor *tensor);
/* A Python number: takes part in promotion by its category only. */
mps_program_value mps_program_number(mps_program_builder *builder, mps_scalar number);
/* A number that is not known yet: operands of it are left to the caller (operand_parameters). `kind` decides its part in promotion. */
mps_program_value mps_program_parameter(mps_program_builder *builder, uint32_t parameter, mps_scalar_kind kind);
/* formula(sources..., parameters...); counts are the formula's. Computes by the formula's own rule. */
mps_program_value mps_program_apply(mps_program_builder *builder, mps_formula formula, const mps_program_value *sources,
                                    const mps_scalar *parameters);
/* The same in a dtype of the caller's choice. */
mps_program_value mps_program_apply_in(mps_program_builder *builder, mps_formula formula, mps_dtype common, const mps_program_value *sources,
                                       const mps_scalar *parameters);
/* The value as another dtype, as Tensor.to does it. */
mps_program_value mps_program_cast(mps_program_builder *builder, mps_program_value value, mps_dtype dtype);
/* Stores a value, converted to the tensor's dtype. The tensor has the iteration space's shape. */
void mps_program_write(mps_program_builder *builder, mps_program_value value, const mps_tensor *tensor);

/* Keeps a value, in the computing type of its dtype, readable at the end of each block: what a reduction folds. */
void mps_program_keep(mps_program_builder *builder, mps_program_value value);

/* The dtype that a formula computes in for these sources. Pure. */
mps_dtype mps_program_common(mps_formula formula, const mps_program_value *sources);
/* The promoted dtype of some values (torch.result_type). */
mps_dtype mps_program_promote(const mps_program_value *values, uint32_t count);

/* Lays the program out: destinations, registers, order and merging of dimensions. Functions and addresses are not filled in. Pure.
 * The result points into the builder, which must not be added to afterwards. */
mps_status mps_program_plan(mps_program_builder *builder, mps_program *out_program);
/* The first half of it: destinations and registers; the layout is left to the caller. */
MPS_WARN_UNUSED mps_status mps_program_finish(mps_program_builder *builder, uint32_t *out_register_count);
/* Looks up the block kernels of all instructions. */
MPS_WARN_UNUSED mps_status mps_program_find_functions(mps_program_builder *builder, mps_device *device);
/* Plans and encodes. An empty iteration space encodes nothing. */
MPS_WARN_UNUSED mps_status mps_program_encode(mps_program_builder *builder, mps_stream *stream);
/* A program that copies and converts. */
MPS_WARN_UNUSED mps_status mps_program_copy(mps_stream *stream, const char *label, const mps_tensor *from, const mps_tensor *to);

/* ---- program_layout.c ---- */
/* Drops dimensions of size 1, orders the others by the strides of operand `leader` and merges what lies together in all operands. */
void mps_program_layout(uint32_t *rank, int64_t *sizes, mps_operand *operands, uint32_t operand_count, uint32_t leader);
/* Drops dimensions of size 1 and merges what lies together in all operands; elements keep their order. */
void mps_program_merge(uint32_t *rank, int64_t *sizes, mps_operand *operands, uint32_t operand_count);
/* How two tensors of one buffer meet. SAME: each element is at the same place in both. */
typedef enum mps_overlap { MPS_OVERLAP_NONE, MPS_OVERLAP_SAME, MPS_OVERLAP_PARTIAL } mps_overlap;
mps_overlap mps_tensor_overlap(const mps_tensor *written, const mps_tensor *read);

/* ---- pointwise_functions.c ---- */
/* The block kernel of a formula (or of MPS_FORMULA_CAST + ...) in a computing type; NOT_FOUND when the driver's library lacks it. */
MPS_WARN_UNUSED mps_status mps_formula_function(mps_device *device, uint32_t formula, mps_compute compute, const mps_driver_function **out);

#endif
