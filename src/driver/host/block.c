/* SPDX-License-Identifier: BSD-3-Clause
 *
 * block: runs a plan, block by block: load, operate, store. All that a thread needs besides the plan is its frame and its scratch.
 */
#include <string.h>

#include "driver/host/pointwise.h"

/* What a kernel may ask for of an operand's length: block kernels are given what they need, always. */
#define ENDLESS (1ull << 60)
#define PREFETCH_OPERATIONS 3 /* from this many on, there is time to ask for the next block's memory */
#define BUFFERS MPS_HOST_BUFFERS

typedef mps_host_frame frame;

/* A block: elements [start, start + count) of the iteration, or a tile of it. */
typedef struct range {
  uint64_t start, count;
  uint64_t index[MPS_MAX_RANK]; /* tiled: of the outer dimensions, then the tile's first row and column */
  uint64_t rows, columns;
} range;

static const unsigned long long endless[BUFFERS] = {ENDLESS, ENDLESS, ENDLESS, ENDLESS, ENDLESS, ENDLESS};

static void *scratch_at(const frame *f, uint32_t place) { return f->scratch + (size_t)place * f->plan->block; }

static void call(frame *f, mps_host_entry entry, uint64_t count) {
  f->call.grid[0] = f->call.end[0] = count;
  entry(&f->call);
}

static void convert(frame *f, mps_host_entry entry, void *out, const void *in, uint64_t count) {
  f->buffers[0] = out;
  f->buffers[1] = (void *)(uintptr_t)in;
  call(f, entry, count);
}

static void apply_flags(frame *f, const mps_host_access *a, void *values, uint64_t count) {
  if (a->conjugate) convert(f, a->conjugate, values, values, count);
  if (a->negate) convert(f, a->negate, values, values, count);
}

/* ---- reads ---- */
static void gather(const frame *f, const mps_host_access *a, const range *r, void *block) {
  if (!f->plan->tiled) {
    mps_host_gather(a, r->start, r->count, block);
    return;
  }
  uint64_t address = a->operand->address;
  for (unsigned d = 0; d < a->rank; d++) address += r->index[d] * (uint64_t)a->strides[d];
  mps_host_gather_tile(address, r->rows, r->columns, a->strides[a->rank - 2], a->strides[a->rank - 1], a->bytes, block);
}

static void scatter(const frame *f, const mps_host_access *a, const range *r, const void *block) {
  if (!f->plan->tiled) {
    mps_host_scatter(a, r->start, r->count, block);
    return;
  }
  uint64_t address = a->operand->address;
  for (unsigned d = 0; d < a->rank; d++) address += r->index[d] * (uint64_t)a->strides[d];
  mps_host_scatter_tile(address, r->rows, r->columns, a->strides[a->rank - 2], a->strides[a->rank - 1], a->bytes, block);
}

/* Address of the block's elements where they lie without gaps; 0 where they do not. */
static uint64_t dense_address(const frame *f, const mps_host_access *a, const range *r) {
  if (a->layout == MPS_HOST_CONTIGUOUS) return a->operand->address + r->start * a->bytes;
  if (f->plan->tiled) return 0;
  uint64_t run;
  uint64_t address = mps_host_element_address(a, r->start, &run);
  return run >= r->count ? address : 0;
}

/* Registers that hold one period again and again, long enough for a block that starts anywhere in it. */
static void fill_periodic(frame *f, const mps_host_access *a, uint64_t most) {
  void *values = scratch_at(f, a->place);
  if (a->operand->constant) {
    memcpy(values, &a->operand->value, a->value_bytes);
  } else {
    void *raw = a->convert ? scratch_at(f, f->plan->raw_place) : values;
    mps_host_gather(a, 0, a->period, raw);
    if (a->convert) convert(f, a->convert, values, raw, a->period);
    apply_flags(f, a, values, a->period);
  }
  uint64_t wanted = (most < f->plan->block ? most : f->plan->block) + (a->period > 1 ? a->period : 0);
  mps_host_repeat(values, (size_t)(a->period * a->value_bytes), (size_t)(wanted * a->value_bytes));
  f->slots[a->slot] = values;
}

static void load(frame *f, const mps_host_access *a, const range *r) {
  if (a->layout == MPS_HOST_PERIODIC) {
    if (a->period > 1) f->slots[a->slot] = (unsigned char *)scratch_at(f, a->place) + r->start % a->period * a->value_bytes;
    return;
  }
  const void *source = (const void *)(uintptr_t)dense_address(f, a, r);
  if (a->in_place && source) {
    f->slots[a->slot] = (void *)(uintptr_t)source;
    return;
  }
  void *values = scratch_at(f, a->place);
  if (!source) {
    void *raw = a->convert ? scratch_at(f, f->plan->raw_place) : values;
    gather(f, a, r, raw);
    source = raw;
  }
  if (a->convert) {
    convert(f, a->convert, values, source, r->count);
  } else if (source != values) {
    memcpy(values, source, (size_t)(r->count * a->value_bytes));
  }
  apply_flags(f, a, values, r->count);
  f->slots[a->slot] = values;
}

/* ---- writes ---- */
static void prepare_write(frame *f, uint32_t number, const range *r) {
  const mps_host_access *a = &f->plan->writes[number];
  uint64_t address = dense_address(f, a, r);
  f->destinations[number] = address;
  f->slots[a->slot] = a->in_place && address ? (void *)(uintptr_t)address : scratch_at(f, a->place);
}

static void store(frame *f, uint32_t number, const range *r) {
  const mps_host_access *a = &f->plan->writes[number];
  void *values = f->slots[a->slot];
  void *destination = (void *)(uintptr_t)f->destinations[number];
  if (a->in_place && destination) return;
  apply_flags(f, a, values, r->count);
  if (destination && a->convert) {
    convert(f, a->convert, destination, values, r->count);
  } else if (destination) {
    memcpy(destination, values, (size_t)(r->count * a->value_bytes));
  } else if (a->convert) {
    void *raw = scratch_at(f, f->plan->raw_place);
    convert(f, a->convert, raw, values, r->count);
    scatter(f, a, r, raw);
  } else {
    scatter(f, a, r, values);
  }
}

/* ---- operations ---- */
static void operate(frame *f, const mps_host_operation *o, uint64_t count) {
  void *out = f->slots[o->destination];
  if (o->entry) {
    f->buffers[0] = out;
    for (unsigned i = 0; i < o->source_count; i++) f->buffers[i + 1] = f->slots[o->sources[i]];
    f->buffers[BUFFERS - 1] = (void *)(uintptr_t)o->parameters;
    call(f, o->entry, count);
  } else {
    memmove(out, f->slots[o->sources[0]], (size_t)(count * o->value_bytes));
  }
  if (o->round) convert(f, o->round, out, out, count);
}

/* Asks for a part of the memory that the next block starts with. While a formula is long at work memory would idle otherwise, and the
 * next block's first formula would wait for all of it. */
static void prefetch_part(const range *r, const mps_host_access *a, uint32_t part, uint32_t parts, bool write) {
  if (a->layout != MPS_HOST_CONTIGUOUS) return;
  uint64_t bytes = r->count * a->bytes, next = a->operand->address + r->start * a->bytes + bytes;
  uint64_t end = bytes * (part + 1) / parts;
  for (uint64_t at = bytes * part / parts & ~63ull; at < end; at += 64) {
    if (write) {
      __builtin_prefetch((void *)(uintptr_t)(next + at), 1);
    } else {
      __builtin_prefetch((const void *)(uintptr_t)(next + at), 0);
    }
  }
}

static void prefetch_next(const frame *f, const range *r, uint32_t part, uint32_t parts) {
  for (uint32_t i = 0; i < f->plan->read_count; i++) prefetch_part(r, &f->plan->reads[i], part, parts, false);
  for (uint32_t i = 0; i < f->plan->write_count; i++) prefetch_part(r, &f->plan->writes[i], part, parts, true);
}

/* A plan that copies: bytes go straight from one layout to the other where one of them is dense. */
static void copy_block(frame *f, const range *r) {
  const mps_host_access *from = &f->plan->reads[0], *to = &f->plan->writes[0];
  void *destination = (void *)(uintptr_t)dense_address(f, to, r);
  if (from->layout == MPS_HOST_PERIODIC) {
    load(f, from, r);
    const void *values = f->slots[from->slot];
    if (destination) {
      memcpy(destination, values, (size_t)(r->count * from->bytes));
    } else {
      scatter(f, to, r, values);
    }
    return;
  }
  const void *source = (const void *)(uintptr_t)dense_address(f, from, r);
  if (source && destination) {
    memmove(destination, source, (size_t)(r->count * from->bytes));
  } else if (source) {
    scatter(f, to, r, source);
  } else if (destination) {
    gather(f, from, r, destination);
  } else {
    void *raw = scratch_at(f, f->plan->raw_place);
    gather(f, from, r, raw);
    scatter(f, to, r, raw);
  }
}

static void run_block(frame *f, const range *r) {
  const mps_host_plan *plan = f->plan;
  if (plan->copies) {
    copy_block(f, r);
    return;
  }
  for (uint32_t i = 0; i < plan->read_count; i++) load(f, &plan->reads[i], r);
  for (uint32_t i = 0; i < plan->write_count; i++) prepare_write(f, i, r);
  bool prefetches = plan->operation_count >= PREFETCH_OPERATIONS && r->count == plan->step && !plan->tiled;
  for (uint32_t i = 0; i < plan->operation_count; i++) {
    if (prefetches) prefetch_next(f, r, i, plan->operation_count);
    operate(f, &plan->operations[i], r->count);
  }
  for (uint32_t i = 0; i < plan->write_count; i++) store(f, i, r);
}

/* ---- the way through ---- */
static void set_tile(const mps_host_plan *plan, uint64_t number, range *r) {
  unsigned rows = plan->rank - 2, columns = plan->rank - 1;
  r->index[columns] = number % plan->column_tiles * plan->tile_columns;
  number /= plan->column_tiles;
  r->index[rows] = number % plan->row_tiles * plan->tile_rows;
  number /= plan->row_tiles;
  for (unsigned d = rows; d-- > 0;) {
    r->index[d] = number % (uint64_t)plan->sizes[d];
    number /= (uint64_t)plan->sizes[d];
  }
  uint64_t rows_left = (uint64_t)plan->sizes[rows] - r->index[rows];
  uint64_t columns_left = (uint64_t)plan->sizes[columns] - r->index[columns];
  r->rows = rows_left < plan->tile_rows ? rows_left : plan->tile_rows;
  r->columns = columns_left < plan->tile_columns ? columns_left : plan->tile_columns;
  r->start = 0;
  r->count = r->rows * r->columns;
}

size_t mps_host_frame_scratch(const mps_host_plan *plan) { return ((size_t)plan->register_bytes * plan->block + 63) & ~(size_t)63; }

void mps_host_frame_begin(mps_host_frame *f, const mps_host_plan *plan, uint64_t most, void *scratch) {
  f->plan = plan;
  f->scratch = scratch;
  f->call = (mps_host_dispatch){.buffers = f->buffers, .lengths = endless, .grid = {0, 1, 1}, .group = {1, 1, 1}, .end = {0, 1, 1}};
  for (uint32_t i = 0; i < plan->read_count; i++) {
    if (plan->reads[i].layout == MPS_HOST_PERIODIC) fill_periodic(f, &plan->reads[i], plan->tiled ? plan->block : most);
  }
  for (uint32_t i = 0; i < plan->register_count; i++) {
    f->slots[MPS_HOST_REGISTER_SLOT + i] = scratch_at(f, plan->register_places[i]);
  }
}

void mps_host_frame_call(mps_host_frame *f, mps_host_entry entry, uint64_t count) { call(f, entry, count); }

void mps_host_frame_block(mps_host_frame *f, uint64_t start, uint64_t count) {
  range r;
  r.start = start;
  r.count = count;
  run_block(f, &r);
}

void mps_host_frame_run(mps_host_frame *f, uint64_t begin, uint64_t end) {
  const mps_host_plan *plan = f->plan;
  range r;
  if (plan->tiled) {
    for (uint64_t tile = begin; tile < end; tile++) {
      set_tile(plan, tile, &r);
      run_block(f, &r);
    }
    return;
  }
  for (r.start = begin; r.start < end; r.start += r.count) {
    r.count = end - r.start < plan->step ? end - r.start : plan->step;
    if (plan->row) {
      uint64_t left = plan->row - r.start % plan->row;
      if (r.count > left) r.count = left;
    }
    run_block(f, &r);
  }
}

void mps_host_plan_run(const mps_host_plan *plan, uint64_t begin, uint64_t end, void *scratch) {
  frame f;
  mps_host_frame_begin(&f, plan, end - begin, scratch);
  mps_host_frame_run(&f, begin, end);
}
