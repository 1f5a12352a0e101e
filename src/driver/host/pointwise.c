/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pointwise: makes a plan of a program. What can be decided once is decided here, in some tens of nanoseconds for a small program.
 */
#include "driver/host/pointwise.h"

#include <string.h>

#include "driver/host/host.h"

#define BLOCK 1024          /* elements; what is live stays in the first-level cache */
#define LARGE_BLOCK 16384   /* for one operation in place: nothing is live */
#define PERIOD_LIMIT 512    /* elements; at most the smallest block */
#define SMALLEST_BLOCK 512
#define REGISTER_BYTES (192 * 1024) /* wanted of all registers together: a share of the second-level cache */
#define TILE_LINE_BYTES 64  /* of a tile in the direction in which a transposed operand is dense: a cache line */
#define TILE_ELEMENTS 2048
#define TILE_INNER_LEAST 32 /* shorter inner dimensions are gathered well without tiles */
#define ROW_LEAST 192 /* elements: from here on rows are worth blocks of their own */
#define NONE 255u

typedef struct state {
  mps_host_plan *plan;
  const mps_program *program;
  const mps_host_conversions *conversions;
  uint8_t read_index[MPS_PROGRAM_MAX_OPERANDS];  /* into plan->reads; NONE */
  uint8_t write_index[MPS_PROGRAM_MAX_OPERANDS]; /* into plan->writes; NONE */
  uint8_t last_read[MPS_PROGRAM_MAX_OPERANDS];   /* instruction that last reads what memory held */
  uint8_t writer[MPS_PROGRAM_MAX_OPERANDS];      /* instruction that first writes it */
  bool read_back[MPS_PROGRAM_MAX_OPERANDS];      /* read after it was written */
  uint8_t register_slot[MPS_PROGRAM_MAX_REGISTERS]; /* that holds the register now; NONE */
  uint8_t register_bytes[MPS_HOST_MAX_REGISTERS];   /* of an element in each of the plan's registers */
  uint8_t register_owner[MPS_HOST_MAX_REGISTERS];   /* the program's register */
} state;

static const uint8_t compute_bytes[MPS_COMPUTE_COUNT] = {
#define X(name, suffix, metal, bytes) bytes,
    MPS_COMPUTE_LIST(X)
#undef X
};
static const char *const compute_names[MPS_COMPUTE_COUNT] = {
#define X(name, suffix, metal, bytes) #suffix,
    MPS_COMPUTE_LIST(X)
#undef X
};
static const uint8_t dtype_bytes[MPS_DTYPE_COUNT] = {
#define X(name, short_name, metal, bytes, floating, signed_integer, unsigned_integer, complex) bytes,
    MPS_DTYPE_LIST(X)
#undef X
};
/* The dtype that a register of a computing type holds without conversion. */
static const uint8_t natural_dtype[MPS_COMPUTE_COUNT] = {MPS_DTYPE_F32, MPS_DTYPE_I32, MPS_DTYPE_I64,
                                                         MPS_DTYPE_U64, MPS_DTYPE_C64, MPS_DTYPE_BOOL};

/* Does a computing type hold every value of the dtype? */
static bool holds(unsigned compute, unsigned dtype) {
  switch (compute) {
    case MPS_COMPUTE_F32: return mps_dtype_is_floating((mps_dtype)dtype);
    case MPS_COMPUTE_C64: return mps_dtype_is_complex((mps_dtype)dtype);
    case MPS_COMPUTE_BOOL: return dtype == MPS_DTYPE_BOOL;
    case MPS_COMPUTE_U64: return dtype == MPS_DTYPE_U64;
    case MPS_COMPUTE_I32: return dtype_bytes[dtype] <= 2 ? mps_dtype_is_integral((mps_dtype)dtype) : dtype == MPS_DTYPE_I32;
    default: return dtype != MPS_DTYPE_U64 && mps_dtype_is_integral((mps_dtype)dtype);
  }
}

static mps_status missing(const char *prefix, const char *first, const char *second) {
  return mps_error_set(MPS_STATUS_INTERNAL_ERROR, "the kernel library has no %s_%s_%s", prefix, first, second);
}

static uint64_t magnitude(int64_t stride) { return stride < 0 ? -(uint64_t)stride : (uint64_t)stride; }

/* ---- the order of the dimensions, and tiles ---- */
/* Dimensions go by the strides of what is written first: elements are independent, so that any order is right. */
static void sort_dimensions(mps_host_plan *plan, const mps_program *program, const mps_operand *written) {
  for (uint32_t i = 0; i < program->rank; i++) {
    uint32_t j = i;
    while (j > 0 && magnitude(written->strides[plan->order[j - 1]]) < magnitude(written->strides[i])) {
      plan->order[j] = plan->order[j - 1];
      j--;
    }
    plan->order[j] = (uint8_t)i;
  }
}

/* The plan's dimension in which the operand is denser than in the innermost one; the rank when there is none. */
static uint32_t dense_dimension(const mps_host_plan *plan, const mps_operand *operand) {
  uint32_t inner = plan->rank - 1, best = plan->rank;
  uint64_t least = magnitude(operand->strides[plan->order[inner]]);
  if (least <= dtype_bytes[operand->dtype]) return best;
  for (uint32_t d = 0; d < inner; d++) {
    uint64_t stride = magnitude(operand->strides[plan->order[d]]);
    if (stride == 0 || stride >= least || plan->sizes[d] < 2) continue;
    least = stride;
    best = d;
  }
  return best;
}

static void choose_tiles(mps_host_plan *plan, const mps_program *program) {
  if (plan->sizes[plan->rank - 1] < TILE_INNER_LEAST) return;
  uint32_t rows = plan->rank;
  uint32_t bytes = 8;
  for (uint32_t i = 0; i < program->operand_count; i++) {
    const mps_operand *operand = &program->operands[i];
    if (operand->constant) continue;
    uint32_t d = dense_dimension(plan, operand);
    if (d == plan->rank) continue;
    if (rows == plan->rank) rows = d;
    if (d == rows && dtype_bytes[operand->dtype] < bytes) bytes = dtype_bytes[operand->dtype];
  }
  if (rows == plan->rank) return;
  plan->tiled = true;
  uint8_t moved = plan->order[rows];
  int64_t size = plan->sizes[rows];
  for (uint32_t d = rows; d + 2 < plan->rank; d++) {
    plan->order[d] = plan->order[d + 1];
    plan->sizes[d] = plan->sizes[d + 1];
  }
  plan->order[plan->rank - 2] = moved;
  plan->sizes[plan->rank - 2] = size;
  uint32_t wanted = TILE_LINE_BYTES / bytes;
  plan->tile_rows = size < (int64_t)wanted ? (uint32_t)size : wanted;
  uint32_t columns = TILE_ELEMENTS / plan->tile_rows;
  int64_t inner = plan->sizes[plan->rank - 1];
  plan->tile_columns = inner < (int64_t)columns ? (uint32_t)inner : columns;
}

static void choose_dimensions(mps_host_plan *plan, const mps_program *program, bool ordered) {
  plan->rank = program->rank;
  plan->tiled = false;
  for (uint32_t d = 0; d < program->rank; d++) plan->order[d] = (uint8_t)d;
  if (program->rank >= 2 && !ordered) {
    const mps_instruction *first = &program->instructions[0];
    for (uint32_t i = 0; i < program->instruction_count; i++) {
      if (program->instructions[i].destination >= MPS_PROGRAM_REGISTER) continue;
      first = &program->instructions[i];
      sort_dimensions(plan, program, &program->operands[first->destination]);
      break;
    }
  }
  for (uint32_t d = 0; d < program->rank; d++) plan->sizes[d] = program->sizes[plan->order[d]];
  if (program->rank >= 2 && !ordered) choose_tiles(plan, program);
}

/* ---- operands ---- */
/* The operand's own dimensions: neighbours that are one for it are joined. */
static void coalesce(const mps_host_plan *plan, mps_host_access *access) {
  const mps_operand *operand = access->operand;
  unsigned rank = 0;
  for (uint32_t d = 0; d < plan->rank; d++) {
    int64_t size = plan->sizes[d], stride = operand->strides[plan->order[d]];
    if (size == 1 && !plan->tiled) continue;
    if (rank > 0 && !plan->tiled && (uint64_t)access->strides[rank - 1] == (uint64_t)size * (uint64_t)stride) {
      access->sizes[rank - 1] *= size;
      access->strides[rank - 1] = stride;
    } else {
      access->sizes[rank] = size;
      access->strides[rank++] = stride;
    }
  }
  access->rank = (uint8_t)rank;
}

static void choose_layout(const mps_host_plan *plan, mps_host_access *access) {
  const mps_operand *operand = access->operand;
  access->period = 1;
  access->rank = 0;
  access->layout = MPS_HOST_PERIODIC;
  if (operand->constant) return;
  coalesce(plan, access);
  access->layout = MPS_HOST_STRIDED;
  if (plan->tiled) {
    for (unsigned d = 0; d < access->rank; d++) {
      if (access->strides[d] != 0) return;
    }
    access->rank = 0;
    access->layout = MPS_HOST_PERIODIC;
  } else if (access->rank == 0 || (access->rank == 1 && access->strides[0] == (int64_t)access->bytes)) {
    access->layout = MPS_HOST_CONTIGUOUS;
  } else if (access->strides[0] == 0) {
    uint64_t period = 1;
    for (unsigned d = 1; d < access->rank && period <= PERIOD_LIMIT; d++) period *= (uint64_t)access->sizes[d];
    if (period > PERIOD_LIMIT) return;
    access->layout = MPS_HOST_PERIODIC;
    access->period = period;
    access->rank--; /* what one period is */
    memmove(access->sizes, access->sizes + 1, access->rank * sizeof access->sizes[0]);
    memmove(access->strides, access->strides + 1, access->rank * sizeof access->strides[0]);
  }
}

static mps_status set_flags(const state *s, mps_host_access *access, unsigned compute) {
  unsigned flags = access->operand->flags;
  access->conjugate = NULL;
  access->negate = NULL;
  if (!flags || access->operand->constant) return MPS_STATUS_OK;
  if ((flags & MPS_TENSOR_CONJUGATE) && compute == MPS_COMPUTE_C64) {
    access->conjugate = s->conversions->conjugate;
    if (!access->conjugate) return missing("conjugate", "c64", "");
  }
  if (flags & MPS_TENSOR_NEGATIVE) {
    access->negate = s->conversions->negate[compute];
    if (!access->negate) return missing("negate", compute_names[compute], "");
  }
  return MPS_STATUS_OK;
}

static mps_status add_read(state *s, unsigned index) {
  mps_host_plan *plan = s->plan;
  const mps_operand *operand = &s->program->operands[index];
  s->read_index[index] = (uint8_t)plan->read_count;
  mps_host_access *access = &plan->reads[plan->read_count++];
  access->operand = operand;
  access->slot = (uint8_t)index;
  access->bytes = dtype_bytes[operand->dtype];
  access->value_bytes = compute_bytes[operand->compute];
  /* A bool's byte may hold anything (a reinterpreted integer): it is made 0 or 1. */
  bool natural = operand->dtype == natural_dtype[operand->compute];
  access->convert = operand->constant ? NULL : s->conversions->load[operand->dtype][operand->compute];
  if (natural && operand->dtype != MPS_DTYPE_BOOL) access->convert = NULL;
  if (!natural && !operand->constant && !access->convert) {
    return missing("load", mps_dtype_name((mps_dtype)operand->dtype), compute_names[operand->compute]);
  }
  mps_status status = set_flags(s, access, operand->compute);
  if (status != MPS_STATUS_OK) return status;
  choose_layout(plan, access);
  access->in_place = !access->convert && !access->conjugate && !access->negate && access->layout != MPS_HOST_PERIODIC;
  return MPS_STATUS_OK;
}

static mps_status add_write(state *s, unsigned index, unsigned compute) {
  mps_host_plan *plan = s->plan;
  const mps_operand *operand = &s->program->operands[index];
  s->write_index[index] = (uint8_t)plan->write_count;
  mps_host_access *access = &plan->writes[plan->write_count++];
  access->operand = operand;
  access->slot = (uint8_t)(MPS_HOST_WRITE_SLOT + index);
  access->bytes = dtype_bytes[operand->dtype];
  access->value_bytes = compute_bytes[compute];
  access->convert = NULL;
  if (operand->dtype != natural_dtype[compute]) {
    access->convert = s->conversions->store[compute][operand->dtype];
    if (!access->convert) return missing("store", compute_names[compute], mps_dtype_name((mps_dtype)operand->dtype));
  }
  mps_status status = set_flags(s, access, compute);
  if (status != MPS_STATUS_OK) return status;
  choose_layout(plan, access);
  if (access->layout == MPS_HOST_PERIODIC) {
    return mps_error_set(MPS_STATUS_INTERNAL_ERROR, "a written operand is a constant or overlaps itself (a stride of 0)");
  }
  access->in_place = !access->convert && !access->conjugate && !access->negate;
  return MPS_STATUS_OK;
}

/* ---- instructions ---- */
static uint8_t slot_of_register(state *s, unsigned number, uint8_t bytes) {
  mps_host_plan *plan = s->plan;
  uint32_t i = 0;
  while (i < plan->register_count && (s->register_owner[i] != number || s->register_bytes[i] != bytes)) i++;
  if (i == plan->register_count) {
    s->register_owner[i] = (uint8_t)number;
    s->register_bytes[i] = bytes;
    plan->register_count++;
  }
  s->register_slot[number] = (uint8_t)(MPS_HOST_REGISTER_SLOT + i);
  return s->register_slot[number];
}

static mps_status add_sources(state *s, uint32_t number, mps_host_operation *operation) {
  const mps_instruction *instruction = &s->program->instructions[number];
  operation->source_count = instruction->source_count;
  for (unsigned i = 0; i < instruction->source_count; i++) {
    unsigned source = instruction->sources[i];
    if (source >= MPS_PROGRAM_REGISTER) {
      operation->sources[i] = s->register_slot[source - MPS_PROGRAM_REGISTER];
      if (operation->sources[i] == NONE) {
        return mps_error_set(MPS_STATUS_INTERNAL_ERROR, "instruction %u reads a register that nothing wrote", (unsigned)number);
      }
    } else if (s->write_index[source] != NONE) {
      operation->sources[i] = (uint8_t)(MPS_HOST_WRITE_SLOT + source);
      s->read_back[source] = true;
    } else {
      if (s->read_index[source] == NONE) {
        mps_status status = add_read(s, source);
        if (status != MPS_STATUS_OK) return status;
      }
      s->last_read[source] = (uint8_t)number;
      operation->sources[i] = (uint8_t)source;
    }
  }
  return MPS_STATUS_OK;
}

static mps_status add_operation(state *s, uint32_t number) {
  const mps_instruction *instruction = &s->program->instructions[number];
  mps_host_operation *operation = &s->plan->operations[number];
  unsigned result = instruction->result;
  mps_status status = add_sources(s, number, operation);
  if (status != MPS_STATUS_OK) return status;
  operation->entry = instruction->function ? (mps_host_entry)instruction->function->entry : NULL;
  if (operation->entry == s->conversions->copy[result] || operation->entry == s->conversions->cast_same[result]) operation->entry = NULL;
  if (!operation->entry && instruction->source_count != 1) {
    return mps_error_set(MPS_STATUS_INTERNAL_ERROR, "formula %u has no compiled code", (unsigned)instruction->formula);
  }
  operation->parameters = instruction->parameters;
  operation->value_bytes = compute_bytes[result];
  operation->round = NULL;
  if (instruction->round != natural_dtype[result]) {
    operation->round = s->conversions->round[instruction->round][result];
    if (!operation->round) return missing("round", mps_dtype_name((mps_dtype)instruction->round), compute_names[result]);
  }
  unsigned destination = instruction->destination;
  if (destination >= MPS_PROGRAM_REGISTER) {
    operation->destination = slot_of_register(s, destination - MPS_PROGRAM_REGISTER, compute_bytes[result]);
    return MPS_STATUS_OK;
  }
  operation->destination = (uint8_t)(MPS_HOST_WRITE_SLOT + destination);
  if (s->write_index[destination] != NONE) return MPS_STATUS_OK;
  s->writer[destination] = (uint8_t)number;
  return add_write(s, destination, result);
}

/* A store rounds as well as a rounding step does: the step goes where only the store reads its result. */
static void drop_roundings(state *s) {
  for (uint32_t i = 0; i < s->program->instruction_count; i++) {
    const mps_instruction *instruction = &s->program->instructions[i];
    unsigned destination = instruction->destination;
    if (destination >= MPS_PROGRAM_REGISTER || s->read_back[destination]) continue;
    const mps_operand *operand = &s->program->operands[destination];
    if (operand->dtype == instruction->round && s->plan->writes[s->write_index[destination]].convert) s->plan->operations[i].round = NULL;
  }
}

/* Writes that other operands of the same memory would see too early are put off to the end of the block. */
static void put_off_writes(state *s) {
  for (uint32_t w = 0; w < s->plan->write_count; w++) {
    mps_host_access *write = &s->plan->writes[w];
    unsigned index = write->slot - (unsigned)MPS_HOST_WRITE_SLOT;
    for (uint32_t r = 0; r < s->plan->read_count; r++) {
      const mps_host_access *read = &s->plan->reads[r];
      bool later = s->last_read[read->slot] > s->writer[index];
      if (later && !read->operand->constant && read->operand->address == write->operand->address) write->in_place = false;
    }
    for (uint32_t v = 0; v < s->plan->write_count; v++) {
      if (v != w && s->plan->writes[v].operand->address == write->operand->address) write->in_place = false;
    }
  }
}

/* One move between equal dtypes copies bytes, whatever they mean. */
static void find_copy(state *s) {
  mps_host_plan *plan = s->plan;
  const mps_instruction *instruction = &s->program->instructions[0];
  plan->copies = false;
  if (plan->operation_count != 1 || plan->kept_count || plan->operations[0].entry || plan->read_count != 1 || plan->write_count != 1) return;
  mps_host_access *read = &plan->reads[0], *write = &plan->writes[0];
  unsigned dtype = write->operand->dtype;
  if (read->operand->constant || read->operand->dtype != dtype || read->operand->flags != write->operand->flags) return;
  if (plan->operations[0].round && instruction->round != dtype) return;
  if (read->operand->compute != instruction->result || !holds(instruction->result, dtype)) return;
  plan->copies = true;
  mps_host_access *both[2] = {read, write};
  for (int i = 0; i < 2; i++) {
    both[i]->convert = both[i]->conjugate = both[i]->negate = NULL;
    both[i]->value_bytes = both[i]->bytes;
    both[i]->in_place = both[i]->layout != MPS_HOST_PERIODIC;
  }
  plan->operations[0].round = NULL;
  plan->operations[0].value_bytes = write->bytes;
}

/* ---- registers ---- */
/* A periodic register holds a block behind each position of the period. */
static uint32_t place(mps_host_plan *plan, uint32_t bytes) {
  uint32_t at = plan->register_bytes;
  plan->register_bytes += bytes;
  return at;
}

static void place_registers(state *s) {
  mps_host_plan *plan = s->plan;
  plan->register_bytes = 0;
  bool raw = plan->copies && (plan->reads[0].layout != MPS_HOST_CONTIGUOUS || plan->writes[0].layout != MPS_HOST_CONTIGUOUS);
  for (uint32_t i = 0; i < plan->read_count; i++) {
    mps_host_access *a = &plan->reads[i];
    a->place = 0;
    if (a->in_place && a->layout == MPS_HOST_CONTIGUOUS) continue;
    a->place = place(plan, a->layout == MPS_HOST_PERIODIC ? 2u * a->value_bytes : a->value_bytes);
    raw |= a->convert && a->layout != MPS_HOST_CONTIGUOUS;
  }
  for (uint32_t i = 0; i < plan->write_count; i++) {
    mps_host_access *a = &plan->writes[i];
    a->place = 0;
    if (a->in_place && a->layout == MPS_HOST_CONTIGUOUS) continue;
    a->place = place(plan, a->value_bytes);
    raw |= a->convert && a->layout != MPS_HOST_CONTIGUOUS;
  }
  for (uint32_t i = 0; i < plan->register_count; i++) plan->register_places[i] = place(plan, s->register_bytes[i]);
  plan->raw_place = place(plan, raw ? 8 : 0);
}

static void look_at_rows(mps_host_plan *plan, const mps_host_access *a) {
  if (a->layout != MPS_HOST_STRIDED || a->strides[a->rank - 1] != (int64_t)a->bytes) return;
  uint64_t row = (uint64_t)a->sizes[a->rank - 1];
  if (row >= ROW_LEAST && (plan->row == 0 || row < plan->row)) plan->row = row;
}

/* Inner dimensions of the operands are products of the same sizes, so that the shortest row divides the others. */
static void choose_rows(mps_host_plan *plan) {
  plan->row = 0;
  plan->step = plan->block;
  if (plan->tiled) return;
  for (uint32_t i = 0; i < plan->read_count; i++) look_at_rows(plan, &plan->reads[i]);
  for (uint32_t i = 0; i < plan->write_count; i++) look_at_rows(plan, &plan->writes[i]);
  if (plan->row == 0) return;
  uint64_t pieces = (plan->row + plan->block - 1) / plan->block;
  uint64_t step = ((plan->row + pieces - 1) / pieces + 15) & ~15ull;
  plan->step = step < plan->block ? (uint32_t)step : plan->block;
}

static void choose_block(mps_host_plan *plan) {
  uint32_t block = BLOCK;
  if (plan->register_bytes == 0 && plan->kept_count == 0) block = plan->operation_count == 1 ? LARGE_BLOCK : BLOCK;
  plan->item_count = plan->program->element_count;
  if (plan->tiled) {
    while (plan->register_bytes * plan->tile_rows * plan->tile_columns > REGISTER_BYTES) {
      uint32_t *longer = plan->tile_columns > 16 || plan->tile_rows == 1 ? &plan->tile_columns : &plan->tile_rows;
      *longer = (*longer + 1) / 2;
    }
    block = (plan->tile_rows * plan->tile_columns + 63u) & ~63u;
    uint64_t rows = (uint64_t)plan->sizes[plan->rank - 2], columns = (uint64_t)plan->sizes[plan->rank - 1];
    plan->row_tiles = (rows + plan->tile_rows - 1) / plan->tile_rows;
    plan->column_tiles = (columns + plan->tile_columns - 1) / plan->tile_columns;
    plan->item_count = plan->row_tiles * plan->column_tiles;
    for (uint32_t d = 0; d + 2 < plan->rank; d++) plan->item_count *= (uint64_t)plan->sizes[d];
  } else if (plan->register_bytes * BLOCK > REGISTER_BYTES) {
    block = SMALLEST_BLOCK;
  }
  plan->block = block;
  choose_rows(plan);
}

static mps_status check(const mps_program *program) {
  bool right = program->operand_count <= MPS_PROGRAM_MAX_OPERANDS && program->instruction_count <= MPS_PROGRAM_MAX_INSTRUCTIONS &&
               program->register_count <= MPS_PROGRAM_MAX_REGISTERS && program->rank <= MPS_MAX_RANK;
  if (right) return MPS_STATUS_OK;
  return mps_error_set(MPS_STATUS_INTERNAL_ERROR, "a program of %u operands, %u instructions, %u registers, rank %u is too large",
                       (unsigned)program->operand_count, (unsigned)program->instruction_count, (unsigned)program->register_count,
                       (unsigned)program->rank);
}

/* What is wanted after each block counts as read by an operation behind the last one. */
static mps_status keep(state *s, const uint8_t *kept, uint32_t kept_count) {
  s->plan->kept_count = kept_count;
  for (uint32_t i = 0; i < kept_count; i++) {
    unsigned source = kept[i];
    if (source >= MPS_PROGRAM_REGISTER) {
      s->plan->kept_slots[i] = s->register_slot[source - MPS_PROGRAM_REGISTER];
      continue;
    }
    mps_status status = s->read_index[source] == NONE ? add_read(s, source) : MPS_STATUS_OK;
    if (status != MPS_STATUS_OK) return status;
    s->last_read[source] = (uint8_t)s->program->instruction_count;
    s->plan->kept_slots[i] = (uint8_t)source;
  }
  return MPS_STATUS_OK;
}

static mps_status make(mps_host_plan *plan, const mps_program *program, const mps_host_conversions *conversions, bool ordered,
                       const uint8_t *kept, uint32_t kept_count) {
  mps_status status = check(program);
  if (status != MPS_STATUS_OK) return status;
  state s;
  s.plan = plan;
  s.program = program;
  s.conversions = conversions;
  for (uint32_t i = 0; i < program->operand_count; i++) {
    s.read_index[i] = s.write_index[i] = NONE;
    s.last_read[i] = s.writer[i] = 0;
    s.read_back[i] = false;
  }
  plan->program = program;
  for (uint32_t i = 0; i < program->register_count; i++) s.register_slot[i] = NONE;
  plan->read_count = plan->write_count = plan->register_count = 0;
  plan->operation_count = program->instruction_count;
  choose_dimensions(plan, program, ordered);
  for (uint32_t i = 0; i < program->instruction_count; i++) {
    status = add_operation(&s, i);
    if (status != MPS_STATUS_OK) return status;
  }
  status = keep(&s, kept, kept_count);
  if (status != MPS_STATUS_OK) return status;
  drop_roundings(&s);
  put_off_writes(&s);
  find_copy(&s);
  place_registers(&s);
  choose_block(plan);
  return MPS_STATUS_OK;
}

mps_status mps_host_plan_make(mps_host_plan *plan, const mps_program *program, const mps_host_conversions *conversions) {
  return make(plan, program, conversions, false, NULL, 0);
}

mps_status mps_host_plan_make_ordered(mps_host_plan *plan, const mps_program *program, const mps_host_conversions *conversions,
                                      const uint8_t *kept, uint32_t kept_count) {
  return make(plan, program, conversions, true, kept, kept_count);
}

/* ---- all threads ---- */
#define BYTE_NS 0.05
#define OPERATION_NS 0.2
#define GATHER_NS 0.7

static double estimate(const mps_host_plan *plan) {
  double ns = OPERATION_NS * plan->operation_count;
  for (uint32_t i = 0; i < plan->read_count; i++) {
    const mps_host_access *a = &plan->reads[i];
    if (a->layout != MPS_HOST_PERIODIC) ns += BYTE_NS * a->bytes + (a->layout == MPS_HOST_STRIDED ? GATHER_NS : 0);
  }
  for (uint32_t i = 0; i < plan->write_count; i++) {
    const mps_host_access *a = &plan->writes[i];
    ns += BYTE_NS * a->bytes + (a->layout == MPS_HOST_STRIDED ? GATHER_NS : 0);
  }
  return ns * (double)plan->program->element_count;
}

static void run_chunk(void *context, uint32_t chunk, void *scratch) {
  const mps_host_plan *plan = context;
  uint64_t begin = chunk * plan->chunk_items, end = begin + plan->chunk_items;
  mps_host_plan_run(plan, begin, end < plan->item_count ? end : plan->item_count, scratch);
}

static bool is_dense(const mps_operand *operand, uint32_t rank) {
  unsigned compute = operand->compute;
  return compute < MPS_COMPUTE_COUNT && operand->dtype == natural_dtype[compute] && !operand->constant && !operand->flags &&
         (rank == 0 || operand->strides[0] == compute_bytes[compute]);
}

/* One formula over a single block of dense operands, as most small calls are: it runs in place, and a plan would take longer than the
 * work. False, with nothing done, for any other program. */
static bool run_dense_block(const mps_program *program) {
  static const unsigned long long lengths[MPS_HOST_BUFFERS] = {1ull << 60, 1ull << 60, 1ull << 60, 1ull << 60, 1ull << 60, 1ull << 60};
  const mps_instruction *instruction = program->instructions;
  if (program->instruction_count != 1 || program->rank > 1 || program->element_count > BLOCK) return false;
  if (!instruction->function || instruction->destination >= program->operand_count) return false;
  const mps_operand *out = &program->operands[instruction->destination];
  if (!is_dense(out, program->rank) || out->compute != instruction->result || out->dtype != instruction->round) return false;
  void *buffers[MPS_HOST_BUFFERS] = {(void *)(uintptr_t)out->address};
  for (unsigned i = 0; i < instruction->source_count; i++) {
    if (instruction->sources[i] >= program->operand_count) return false;
    const mps_operand *source = &program->operands[instruction->sources[i]];
    if (!is_dense(source, program->rank)) return false;
    buffers[i + 1] = (void *)(uintptr_t)source->address;
  }
  buffers[MPS_HOST_BUFFERS - 1] = (void *)(uintptr_t)instruction->parameters;
  uint64_t count = program->element_count;
  mps_host_dispatch call = {.buffers = buffers, .lengths = lengths, .grid = {count, 1, 1}, .group = {1, 1, 1}, .end = {count, 1, 1}};
  ((mps_host_entry)instruction->function->entry)(&call);
  return true;
}

mps_status mps_host_pointwise_run(mps_host_plan *plan, const mps_program *program, const mps_host_conversions *conversions,
                                  mps_host_region *region, double cost) {
  if (program->element_count == 0 || run_dense_block(program)) return MPS_STATUS_OK;
  mps_status status = mps_host_plan_make(plan, program, conversions);
  if (status != MPS_STATUS_OK) return status;
  double estimated = estimate(plan);
  if (cost < estimated) cost = estimated;
  uint64_t unit = plan->tiled ? 1 : BLOCK;
  uint64_t units = (plan->item_count + unit - 1) / unit;
  uint32_t chunks = mps_host_chunk_count(mps_host_region_workers(region), cost, units);
  if (chunks <= 1) {
    mps_host_plan_run(plan, 0, plan->item_count, mps_host_region_scratch(region));
    return MPS_STATUS_OK;
  }
  plan->chunk_items = (units + chunks - 1) / chunks * unit;
  mps_host_region_run(region, (uint32_t)((plan->item_count + plan->chunk_items - 1) / plan->chunk_items), cost, run_chunk, plan);
  return MPS_STATUS_OK;
}
