/* SPDX-License-Identifier: BSD-3-Clause
 *
 * program: a pointwise computation as data. A short list of formulas over registers, with operands that broadcast, stride and convert.
 *
 * The host driver runs a program block by block (about 1,000 elements that stay in L1); a GPU driver is given the same program as
 * one printed kernel. One operator is a program of one instruction; fusion makes longer ones.
 */
#ifndef OPENMPS_DRIVER_PROGRAM_H
#define OPENMPS_DRIVER_PROGRAM_H

#include "openmps/tensor.h"

typedef struct mps_driver_function mps_driver_function;

/* The types that formulas compute in. X(NAME, kernel suffix, Metal type, bytes) */
#define MPS_COMPUTE_LIST(X)   \
  X(F32, f32, float, 4)       \
  X(I32, i32, int, 4)         \
  X(I64, i64, long, 8)        \
  X(U64, u64, ulong, 8)       \
  X(C64, c64, float2, 8)      \
  X(BOOL, bool, bool, 1)

typedef enum mps_compute {
#define X(name, suffix, metal, bytes) MPS_COMPUTE_##name,
  MPS_COMPUTE_LIST(X)
#undef X
  MPS_COMPUTE_COUNT
} mps_compute;

#define MPS_PROGRAM_MAX_OPERANDS 24
#define MPS_PROGRAM_MAX_INSTRUCTIONS 32
#define MPS_PROGRAM_MAX_REGISTERS 24
#define MPS_PROGRAM_MAX_SOURCES 4
#define MPS_PROGRAM_MAX_PARAMETERS 4

/* Sources and destinations name an operand (0..) or a register (MPS_PROGRAM_REGISTER + 0..). */
#define MPS_PROGRAM_REGISTER 64

/* A tensor as the iteration sees it. Read operands are converted from dtype to `compute`, written ones back from it.
 * For a fixed point of the iteration space the element's address is `address + sum(index[d] * strides[d])`. */
typedef struct mps_operand {
  uint64_t address;    /* device address of the element at index 0 */
  uint64_t allocation; /* identifier of the buffer, for fusion and validation; 0 for a constant */
  uint8_t dtype;       /* mps_dtype */
  uint8_t compute;     /* mps_compute */
  uint8_t flags;       /* MPS_TENSOR_CONJUGATE, MPS_TENSOR_NEGATIVE */
  uint8_t access;      /* 1 read, 2 write */
  uint8_t constant;    /* 1: `value` holds one element of `compute`, the address is unused */
  uint64_t value;      /* bytes of one element of `compute`, from the first byte on */
  int64_t strides[MPS_MAX_RANK]; /* bytes, one per dimension of the iteration space; 0 broadcasts */
} mps_operand;

/* destination = round(formula(sources..., parameters)).
 * A read operand holds what memory held before the program, unless an earlier instruction wrote this same operand: then it is that
 * instruction's rounded result. Operands may name one memory if address, dtype and strides are equal; of two writes the later wins. */
typedef struct mps_instruction {
  const mps_driver_function *function; /* block kernel "<formula>_<compute suffix>" of the driver's library; NULL: a move */
  uint16_t formula;                    /* number of the formula, for printing and fusion keys */
  uint8_t source_count;
  uint8_t result;       /* mps_compute of the result */
  uint8_t round;        /* mps_dtype the result is rounded or wrapped to before anybody reads it */
  uint8_t destination;  /* operand or register */
  uint8_t sources[MPS_PROGRAM_MAX_SOURCES];
  uint64_t parameters[MPS_PROGRAM_MAX_PARAMETERS]; /* elements of the computing type: alpha, min, max, ... */
} mps_instruction;

/* Iteration shape is already coalesced: no dimension of size 1, dimension rank-1 is the innermost. rank 0 is one element. */
typedef struct mps_program {
  uint32_t operand_count;
  uint32_t instruction_count;
  uint32_t register_count;
  uint32_t rank;
  uint64_t element_count;
  int64_t sizes[MPS_MAX_RANK];
  const mps_operand *operands;
  const mps_instruction *instructions;
} mps_program;

#endif
