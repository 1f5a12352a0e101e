/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pointwise: runs a program (driver/program.h) on the processors. A plan is made of the program once, then blocks of about 1,000
 * elements go through it: operands that lie without gaps in their computing type are used in place, others are gathered and
 * converted into the block's registers, and results go back the same way.
 *
 * Meaning: an operand that is read holds what was there before the program, unless an earlier instruction wrote this same operand:
 * then it is that instruction's rounded result. Two operands may name the same memory if their addresses, dtypes and strides are
 * equal; later instructions win.
 */
#ifndef OPENMPS_HOST_POINTWISE_H
#define OPENMPS_HOST_POINTWISE_H

#include "driver/driver.h"
#include "driver/host/abi.h"
#include "driver/host/workers.h"

/* Block kernels of kernels/convert.metal: out at buffer 0, source at buffer 1. NULL where a library lacks one. */
typedef struct mps_host_conversions {
  mps_host_entry load[MPS_DTYPE_COUNT][MPS_COMPUTE_COUNT];
  mps_host_entry store[MPS_COMPUTE_COUNT][MPS_DTYPE_COUNT];
  mps_host_entry round[MPS_DTYPE_COUNT][MPS_COMPUTE_COUNT];
  mps_host_entry negate[MPS_COMPUTE_COUNT];
  mps_host_entry conjugate;
  mps_host_entry copy[MPS_COMPUTE_COUNT], cast_same[MPS_COMPUTE_COUNT]; /* copy_f32, cast_f32_f32: recognised as moves */
} mps_host_conversions;

/* Where the elements of an operand come from, or go to. */
typedef enum mps_host_layout {
  MPS_HOST_CONTIGUOUS, /* element i of the iteration lies at address + i * bytes */
  MPS_HOST_PERIODIC,   /* element i is element i % period: made once, then used again and again */
  MPS_HOST_STRIDED,    /* anything else: gathered block by block */
} mps_host_layout;

/* One side (read or written) of an operand in a plan. Registers lie in the scratch at `place` times the block length. */
typedef struct mps_host_access {
  const mps_operand *operand;
  uint8_t layout;      /* mps_host_layout */
  uint8_t slot;        /* that operations use */
  uint8_t bytes;       /* of an element in memory */
  uint8_t value_bytes; /* of an element in a register */
  uint8_t rank;        /* of sizes and strides below: coalesced for this operand alone (tiled: the plan's) */
  bool in_place;       /* memory may serve as the register: nothing to convert, nothing to put off */
  uint32_t place;      /* of its register */
  uint64_t period;
  mps_host_entry convert; /* NULL: none */
  mps_host_entry conjugate, negate; /* applied to the register; NULL: none */
  int64_t sizes[MPS_MAX_RANK], strides[MPS_MAX_RANK];
} mps_host_access;

typedef struct mps_host_operation {
  mps_host_entry entry; /* NULL: move */
  mps_host_entry round; /* NULL: none */
  const uint64_t *parameters;
  uint8_t destination, source_count, value_bytes;
  uint8_t sources[MPS_PROGRAM_MAX_SOURCES];
} mps_host_operation;

/* Slots: read operands, written operands, registers. A register of the program has one for each size that it is used with (1, 4 and
 * 8 bytes), so that an operation may narrow or widen from a register into itself. */
#define MPS_HOST_MAX_REGISTERS (3 * MPS_PROGRAM_MAX_REGISTERS)
#define MPS_HOST_WRITE_SLOT MPS_PROGRAM_MAX_OPERANDS
#define MPS_HOST_REGISTER_SLOT (2 * MPS_PROGRAM_MAX_OPERANDS)
#define MPS_HOST_SLOT_COUNT (2 * MPS_PROGRAM_MAX_OPERANDS + MPS_HOST_MAX_REGISTERS)

typedef struct mps_host_plan {
  const mps_program *program;
  bool copies;          /* one move that converts nothing */
  bool tiled;           /* blocks are tiles of the two innermost dimensions: some operand is transposed against another */
  uint32_t rank;
  uint32_t block;       /* elements that a register holds; a multiple of 64 */
  uint32_t step;        /* elements that blocks have, at most `block` */
  uint64_t row;         /* blocks do not cross multiples of it, so that operands with gaps between rows are used in place; 0 = none */
  uint32_t tile_rows, tile_columns;
  uint64_t row_tiles, column_tiles;
  uint64_t item_count;  /* elements, or tiles */
  uint32_t read_count, write_count, operation_count;
  uint32_t register_bytes; /* of all registers, an element of a block */
  uint32_t raw_place;      /* gathered elements before, or scattered ones after their conversion */
  uint64_t chunk_items;    /* of a chunk, when it runs on several threads */
  int64_t sizes[MPS_MAX_RANK];
  uint8_t order[MPS_MAX_RANK]; /* the program's dimension that is the plan's dimension d */
  uint32_t register_count;
  uint32_t register_places[MPS_HOST_MAX_REGISTERS];
  mps_host_operation operations[MPS_PROGRAM_MAX_INSTRUCTIONS];
  mps_host_access reads[MPS_PROGRAM_MAX_OPERANDS];
  mps_host_access writes[MPS_PROGRAM_MAX_OPERANDS];
  uint32_t kept_count;
  uint8_t kept_slots[MPS_REDUCE_MAX_RESULTS]; /* that hold, after each block, what is wanted besides what is written */
} mps_host_plan;

/* Fills `plan` (whatever it held before). INTERNAL_ERROR with the missing kernel's name or the broken rule. */
MPS_WARN_UNUSED mps_status mps_host_plan_make(mps_host_plan *plan, const mps_program *program, const mps_host_conversions *conversions);
/* The same for a program whose elements keep their order. `kept`: registers and read operands that are wanted after each block. */
MPS_WARN_UNUSED mps_status mps_host_plan_make_ordered(mps_host_plan *plan, const mps_program *program, const mps_host_conversions *conversions,
                                                      const uint8_t *kept, uint32_t kept_count);
/* Runs elements (tiled: tiles) begin .. end - 1 in the calling thread. `scratch`: MPS_HOST_SCRATCH_BYTES. */
void mps_host_plan_run(const mps_host_plan *plan, uint64_t begin, uint64_t end, void *scratch);
/* Plans and runs, on all threads when it is worth it. `cost`: nanoseconds on one core, 0 = unknown. */
MPS_WARN_UNUSED mps_status mps_host_pointwise_run(mps_host_plan *plan, const mps_program *program,
                                                  const mps_host_conversions *conversions, mps_host_region *region, double cost);

/* ---- block.c: a thread's way through a plan ---- */
#define MPS_HOST_BUFFERS 6 /* out, four operands, parameters */

typedef struct mps_host_frame {
  const mps_host_plan *plan;
  unsigned char *scratch;
  mps_host_dispatch call;
  void *buffers[MPS_HOST_BUFFERS];
  void *slots[MPS_HOST_SLOT_COUNT]; /* where each operand's and register's block lies */
  uint64_t destinations[MPS_PROGRAM_MAX_OPERANDS]; /* of written operands: dense memory of this block; 0 = scattered */
} mps_host_frame;

/* Bytes of scratch that a frame of the plan needs. */
size_t mps_host_frame_scratch(const mps_host_plan *plan);
/* `most`: elements that will run at most. */
void mps_host_frame_begin(mps_host_frame *frame, const mps_host_plan *plan, uint64_t most, void *scratch);
/* One block of an untiled plan: elements [start, start + count), count <= plan->step. */
void mps_host_frame_block(mps_host_frame *frame, uint64_t start, uint64_t count);
/* All blocks (tiles) of begin .. end - 1. */
void mps_host_frame_run(mps_host_frame *frame, uint64_t begin, uint64_t end);
/* A block kernel on `count` elements of frame->buffers. */
void mps_host_frame_call(mps_host_frame *frame, mps_host_entry entry, uint64_t count);

/* ---- gather.c: moving elements of 1, 2, 4 or 8 bytes between memory of any strides and a block ---- */
/* Elements [start, start + count) of the coalesced space of `access`. */
void mps_host_gather(const mps_host_access *access, uint64_t start, uint64_t count, void *block);
void mps_host_scatter(const mps_host_access *access, uint64_t start, uint64_t count, const void *block);
/* rows x columns elements at `address`, dense in the block. */
void mps_host_gather_tile(uint64_t address, uint64_t rows, uint64_t columns, int64_t row_stride, int64_t column_stride, unsigned bytes,
                          void *block);
void mps_host_scatter_tile(uint64_t address, uint64_t rows, uint64_t columns, int64_t row_stride, int64_t column_stride, unsigned bytes,
                           const void *block);
/* Writes the first `count` elements' bytes of a block again and again, until `total` bytes are filled. */
void mps_host_repeat(void *block, size_t pattern_bytes, size_t total);
/* Address of element `index`, and how many elements from there on lie without gaps (within the innermost dimension). */
uint64_t mps_host_element_address(const mps_host_access *access, uint64_t index, uint64_t *out_run);

#endif
