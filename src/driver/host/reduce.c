/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reduce: runs MPS_STEP_REDUCE. The blocks of a program are folded while they lie in the first-level cache; stages that share their rows run
 * one after the other on a few rows at a time, so that a later stage finds in the cache what an earlier one has read or made.
 */
#include <stdlib.h>
#include <string.h>

#include "driver/host/host.h"

#define LANES 16
#define BLOCK 8192 /* values that go into the lanes before they are folded */
#define ROWS 64    /* rows that are added up before they are merged */
#define LEVELS 48  /* of a tree: more than any count has bits */
#define TILE 512   /* outputs side by side in the outer layout; at most the smallest block */
#define VALUE 8    /* bytes of the largest accumulator */
#define GROUP_ELEMENTS 4096 /* of the rows that stages take turns on: a first-level cache holds some tensors of them */
#define RESULTS MPS_REDUCE_MAX_RESULTS

typedef struct job {
  const mps_step_reduce *step;
  const mps_host_plan *plans;
  const mps_reduce_stage *stage; /* of a task for one stage, and its plan */
  const mps_host_plan *plan;
  unsigned char *partials;
  uint64_t chunk_count;
  uint64_t pieces; /* of the outputs, or tiles */
  uint64_t rows_a_task;
} job;

static size_t value_bytes(const mps_reduce_result *result) { return result->compute == MPS_COMPUTE_F32 ? 4 : 8; }

static void fill_identity(const mps_reduce_result *result, void *values, uint64_t count) {
  memcpy(values, &result->identity, value_bytes(result));
  if (count > 1) mps_host_repeat(values, value_bytes(result), value_bytes(result) * (size_t)count);
}

static void call(mps_host_frame *f, const mps_reduce_result *result, unsigned function, void *out, const void *in, uint64_t count) {
  f->buffers[0] = out;
  f->buffers[1] = (void *)(uintptr_t)in;
  mps_host_frame_call(f, (mps_host_entry)result->functions[function]->entry, count);
}

/* `count` values into the lanes. */
static void add_to_lanes(mps_host_frame *f, const mps_reduce_result *result, void *lanes, const void *values, uint64_t count) {
  int64_t length = (int64_t)count;
  f->buffers[2] = &length;
  call(f, result, MPS_REDUCE_LANES, lanes, values, 1);
}

/* ---- trees: the values that wait, a binary counter ---- */
typedef struct tree {
  uint32_t top;
  uint64_t count;
  void *values[LEVELS]; /* vectors; a merge leaves its result in the left one */
} tree;

static void tree_push(mps_host_frame *f, const mps_reduce_result *result, tree *t, void *vector, uint64_t width) {
  for (uint64_t n = ++t->count; (n & 1) == 0; n >>= 1) {
    void *left = t->values[--t->top];
    call(f, result, MPS_REDUCE_COMBINE, left, vector, width);
    vector = left;
  }
  t->values[t->top++] = vector;
}

static void *tree_fold(mps_host_frame *f, const mps_reduce_result *result, tree *t, uint64_t width) {
  void *vector = t->values[--t->top];
  while (t->top) {
    void *left = t->values[--t->top];
    call(f, result, MPS_REDUCE_COMBINE, left, vector, width);
    vector = left;
  }
  return vector;
}

/* ---- inner layout: the values of an output lie behind each other in the iteration ---- */
static const void *result_block(const mps_host_frame *f, uint32_t r) { return f->slots[f->plan->kept_slots[r]]; }

/* Some outputs of few values each: blocks hold several of them. */
static void fold_short_rows(mps_host_frame *f, const mps_reduce_stage *stage, uint64_t first, uint64_t end, unsigned char *const *out) {
  uint64_t length = stage->reduce_count, most = f->plan->block / length;
  int64_t row = (int64_t)length;
  for (uint64_t o = first; o < end;) {
    uint64_t count = end - o < most ? end - o : most;
    mps_host_frame_block(f, o * length, count * length);
    for (uint32_t r = 0; r < stage->result_count; r++) {
      const mps_reduce_result *result = &stage->results[r];
      f->buffers[2] = &row;
      call(f, result, MPS_REDUCE_SHORT, out[r] + o * value_bytes(result), result_block(f, r), count);
    }
    o += count;
  }
}

/* Values [begin, end) of the iteration, at most BLOCK of them, to one accumulator a result. */
static void fold_block(mps_host_frame *f, const mps_reduce_stage *stage, uint64_t begin, uint64_t end, unsigned char (*out)[VALUE]) {
  unsigned char lanes[RESULTS][LANES * VALUE];
  for (uint32_t r = 0; r < stage->result_count; r++) fill_identity(&stage->results[r], lanes[r], LANES);
  for (uint64_t at = begin; at < end;) {
    uint64_t count = end - at < f->plan->block ? end - at : f->plan->block;
    mps_host_frame_block(f, at, count);
    for (uint32_t r = 0; r < stage->result_count; r++) add_to_lanes(f, &stage->results[r], lanes[r], result_block(f, r), count);
    at += count;
  }
  for (uint32_t r = 0; r < stage->result_count; r++) call(f, &stage->results[r], MPS_REDUCE_FOLD, out[r], lanes[r], 1);
}

/* Values [begin, end) of one output. */
static void fold_values(mps_host_frame *f, const mps_reduce_stage *stage, uint64_t begin, uint64_t end, unsigned char (*out)[VALUE]) {
  if (end - begin <= BLOCK) {
    fold_block(f, stage, begin, end, out);
    return;
  }
  unsigned char values[LEVELS][RESULTS][VALUE];
  tree trees[RESULTS] = {{.top = 0}};
  for (uint64_t at = begin; at < end; at += BLOCK) {
    uint32_t top = trees[0].top;
    fold_block(f, stage, at, end - at < BLOCK ? end : at + BLOCK, values[top]);
    for (uint32_t r = 0; r < stage->result_count; r++) tree_push(f, &stage->results[r], &trees[r], values[top][r], 1);
  }
  for (uint32_t r = 0; r < stage->result_count; r++) memcpy(out[r], tree_fold(f, &stage->results[r], &trees[r], 1), VALUE);
}

/* Chunk `chunk` of outputs [first, end); out: where output 0 of each result goes. */
static void fold_outputs(mps_host_frame *f, const mps_reduce_stage *stage, uint64_t first, uint64_t end, uint64_t chunk,
                         unsigned char *const *out) {
  uint64_t length = stage->reduce_count, begin = chunk * stage->chunk;
  uint64_t stop = length - begin < stage->chunk ? length : begin + stage->chunk;
  if (begin == 0 && stop == length && length <= f->plan->block && length <= BLOCK) {
    fold_short_rows(f, stage, first, end, out);
    return;
  }
  for (uint64_t o = first; o < end; o++) {
    unsigned char values[RESULTS][VALUE];
    fold_values(f, stage, o * length + begin, o * length + stop, values);
    for (uint32_t r = 0; r < stage->result_count; r++) {
      size_t bytes = value_bytes(&stage->results[r]);
      memcpy(out[r] + o * bytes, values[r], bytes);
    }
  }
}

/* ---- outer layout: neighbouring outputs lie behind each other in the iteration ---- */
typedef struct outer {
  mps_host_frame *frame;
  const mps_reduce_stage *stage;
  uint64_t first, width; /* outputs */
  unsigned char *sums[RESULTS]; /* of up to ROWS rows */
  unsigned char *side[RESULTS]; /* four rows, where they are not in memory */
} outer;

static size_t outer_scratch(const mps_reduce_stage *stage) { return stage->result_count * 5 * (size_t)TILE * VALUE; }

static void add_rows(const outer *t, uint32_t r, const void *const *rows, uint64_t count) {
  const mps_reduce_result *result = &t->stage->results[r];
  if (count == 4) {
    for (unsigned i = 2; i <= 4; i++) t->frame->buffers[i] = (void *)(uintptr_t)rows[i - 1];
    call(t->frame, result, MPS_REDUCE_ROWS, t->sums[r], rows[0], t->width);
    return;
  }
  for (uint64_t i = 0; i < count; i++) call(t->frame, result, MPS_REDUCE_COMBINE, t->sums[r], rows[i], t->width);
}

/* Rows [p, p + count) when a block holds several of them. */
static void add_narrow(const outer *t, uint64_t p, uint64_t count) {
  mps_host_frame_block(t->frame, p * t->width, count * t->width);
  for (uint32_t r = 0; r < t->stage->result_count; r++) {
    size_t bytes = value_bytes(&t->stage->results[r]) * (size_t)t->width;
    const unsigned char *values = result_block(t->frame, r);
    for (uint64_t i = 0; i < count; i += 4) {
      const void *rows[4] = {values + i * bytes, values + (i + 1) * bytes, values + (i + 2) * bytes, values + (i + 3) * bytes};
      add_rows(t, r, rows, count - i < 4 ? count - i : 4);
    }
  }
}

/* Up to four rows, each a block of its own. Registers are told to lie side by side; what lies in memory is used there. */
static void add_wide(const outer *t, uint64_t p, uint64_t count) {
  mps_host_frame *f = t->frame;
  const void *rows[RESULTS][4];
  for (uint64_t i = 0; i < count; i++) {
    for (uint32_t r = 0; r < t->stage->result_count; r++) {
      unsigned slot = f->plan->kept_slots[r];
      if (slot >= MPS_HOST_REGISTER_SLOT) f->slots[slot] = t->side[r] + i * TILE * VALUE;
    }
    mps_host_frame_block(f, (p + i) * t->stage->kept_count + t->first, t->width);
    for (uint32_t r = 0; r < t->stage->result_count; r++) {
      rows[r][i] = result_block(f, r);
      const unsigned char *at = rows[r][i];
      bool in_scratch = at >= f->scratch && at < f->scratch + mps_host_frame_scratch(f->plan);
      if (in_scratch) rows[r][i] = memcpy(t->side[r] + i * TILE * VALUE, at, value_bytes(&t->stage->results[r]) * (size_t)t->width);
    }
  }
  for (uint32_t r = 0; r < t->stage->result_count; r++) add_rows(t, r, rows[r], count);
}

/* Chunk `chunk` of outputs [first, first + width). */
static void fold_tile(mps_host_frame *f, const mps_reduce_stage *stage, uint64_t first, uint64_t width, uint64_t chunk,
                      unsigned char *const *out, unsigned char *scratch) {
  outer t = {.frame = f, .stage = stage, .first = first, .width = width};
  for (uint32_t r = 0; r < stage->result_count; r++) {
    t.sums[r] = scratch + r * 5 * (size_t)TILE * VALUE;
    t.side[r] = t.sums[r] + (size_t)TILE * VALUE;
    fill_identity(&stage->results[r], out[r] + first * value_bytes(&stage->results[r]), width);
  }
  bool narrow = width == stage->kept_count && width * 4 <= f->plan->block;
  uint64_t step = narrow ? f->plan->block / width & ~3ull : 4;
  uint64_t begin = chunk * stage->chunk, end = stage->reduce_count - begin < stage->chunk ? stage->reduce_count : begin + stage->chunk;
  while (begin < end) {
    uint64_t stop = end - begin < ROWS ? end : begin + ROWS;
    for (uint32_t r = 0; r < stage->result_count; r++) fill_identity(&stage->results[r], t.sums[r], width);
    while (begin < stop) {
      uint64_t count = stop - begin < step ? stop - begin : step;
      if (narrow) {
        add_narrow(&t, begin, count);
      } else {
        add_wide(&t, begin, count);
      }
      begin += count;
    }
    for (uint32_t r = 0; r < stage->result_count; r++)
      call(f, &stage->results[r], MPS_REDUCE_COMBINE, out[r] + first * value_bytes(&stage->results[r]), t.sums[r], width);
  }
}

/* ---- one stage on all threads ---- */
static void set_outputs(const job *j, uint64_t chunk, unsigned char **out) {
  const mps_reduce_stage *stage = j->stage;
  for (uint32_t r = 0; r < stage->result_count; r++) {
    uint64_t vector = (uint64_t)r * j->chunk_count + chunk;
    out[r] = j->chunk_count == 1 ? (unsigned char *)(uintptr_t)stage->results[r].address
                                 : j->partials + vector * stage->kept_count * VALUE;
  }
}

static void run_task(void *context, uint32_t task, void *scratch) {
  const job *j = context;
  const mps_reduce_stage *stage = j->stage;
  mps_host_frame f;
  unsigned char *out[RESULTS];
  uint64_t chunk = task / j->pieces, piece = task % j->pieces;
  set_outputs(j, chunk, out);
  mps_host_frame_begin(&f, j->plan, j->plan->block, scratch);
  if (stage->outer) {
    uint64_t tiles = (stage->kept_count - 1) / TILE + 1;
    for (uint64_t tile = piece * tiles / j->pieces; tile < (piece + 1) * tiles / j->pieces; tile++) {
      uint64_t first = tile * TILE, left = stage->kept_count - first;
      fold_tile(&f, stage, first, left < TILE ? left : TILE, chunk, out, (unsigned char *)scratch + mps_host_frame_scratch(j->plan));
    }
  } else {
    fold_outputs(&f, stage, piece * stage->kept_count / j->pieces, (piece + 1) * stage->kept_count / j->pieces, chunk, out);
  }
}

static void merge_chunks(const job *j) {
  mps_host_frame f;
  f.call = (mps_host_dispatch){.buffers = f.buffers, .grid = {0, 1, 1}, .group = {1, 1, 1}, .end = {0, 1, 1}};
  static const unsigned long long lengths[MPS_HOST_BUFFERS] = {1ull << 60, 1ull << 60, 1ull << 60, 1ull << 60, 1ull << 60, 1ull << 60};
  f.call.lengths = lengths;
  for (uint32_t r = 0; r < j->stage->result_count; r++) {
    const mps_reduce_result *result = &j->stage->results[r];
    tree t = {.top = 0};
    for (uint64_t c = 0; c < j->chunk_count; c++) {
      unsigned char *out[RESULTS];
      set_outputs(j, c, out);
      tree_push(&f, result, &t, out[r], j->stage->kept_count);
    }
    const void *values = tree_fold(&f, result, &t, j->stage->kept_count);
    memcpy((void *)(uintptr_t)result->address, values, value_bytes(result) * (size_t)j->stage->kept_count);
  }
}

static mps_status reserve_partials(mps_driver_queue *queue, size_t bytes) {
  if (bytes <= queue->partial_capacity) return MPS_STATUS_OK;
  free(queue->partials);
  queue->partial_capacity = 0;
  queue->partials = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
  if (!queue->partials) return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for %zu bytes of partial sums", bytes);
  queue->partial_capacity = bytes;
  return MPS_STATUS_OK;
}

static mps_status run_reduction(mps_driver_queue *queue, job *j, double cost) {
  const mps_reduce_stage *stage = j->stage;
  if (stage->kept_count == 0) return MPS_STATUS_OK;
  if (stage->reduce_count == 0) {
    for (uint32_t r = 0; r < stage->result_count; r++)
      fill_identity(&stage->results[r], (void *)(uintptr_t)stage->results[r].address, stage->kept_count);
    return MPS_STATUS_OK;
  }
  if (mps_host_frame_scratch(j->plan) + outer_scratch(stage) > MPS_HOST_SCRATCH_BYTES)
    return mps_error_set(MPS_STATUS_INTERNAL_ERROR, "a reduction's program needs %zu bytes a thread", mps_host_frame_scratch(j->plan));
  j->chunk_count = (stage->reduce_count - 1) / stage->chunk + 1;
  if (j->chunk_count > 1) {
    mps_status status = reserve_partials(queue, (size_t)(j->chunk_count * stage->kept_count) * stage->result_count * VALUE);
    if (status != MPS_STATUS_OK) return status;
    j->partials = queue->partials;
  }
  uint64_t most = stage->outer ? (stage->kept_count - 1) / TILE + 1 : stage->kept_count;
  uint32_t wanted = mps_host_chunk_count(mps_host_region_workers(queue->region), cost, most * j->chunk_count);
  j->pieces = (wanted + j->chunk_count - 1) / j->chunk_count;
  if (j->pieces > most) j->pieces = most;
  uint64_t tasks = j->pieces * j->chunk_count;
  if (tasks > MPS_HOST_MAX_CHUNKS)
    return mps_error_set(MPS_STATUS_INTERNAL_ERROR, "a reduction of %llu pieces", (unsigned long long)tasks);
  if (tasks == 1 || cost < MPS_HOST_PARALLEL_NS) {
    for (uint32_t i = 0; i < tasks; i++) run_task(j, i, mps_host_region_scratch(queue->region));
  } else {
    mps_host_region_run(queue->region, (uint32_t)tasks, cost, run_task, j);
  }
  if (j->chunk_count > 1) merge_chunks(j);
  return MPS_STATUS_OK;
}

static void run_elements(void *context, uint32_t task, void *scratch) {
  const job *j = context;
  uint64_t begin = task * j->rows_a_task, end = begin + j->rows_a_task;
  uint64_t count = j->plan->program->element_count;
  mps_host_plan_run(j->plan, begin, end < count ? end : count, scratch);
}

static mps_status run_stage(mps_driver_queue *queue, job *j, double cost) {
  if (j->stage->result_count) return run_reduction(queue, j, cost);
  uint64_t count = j->stage->program.element_count;
  if (count == 0) return MPS_STATUS_OK;
  uint32_t chunks = mps_host_chunk_count(mps_host_region_workers(queue->region), cost, (count + 1023) / 1024);
  j->rows_a_task = ((count + chunks - 1) / chunks + 1023) / 1024 * 1024;
  mps_host_region_run(queue->region, (uint32_t)((count + j->rows_a_task - 1) / j->rows_a_task), cost, run_elements, j);
  return MPS_STATUS_OK;
}

/* ---- all stages on some rows ---- */
static size_t frames_bytes(const mps_step_reduce *step) { return (step->stage_count * sizeof(mps_host_frame) + 63) & ~(size_t)63; }

static void run_rows(void *context, uint32_t task, void *scratch) {
  const job *j = context;
  const mps_step_reduce *step = j->step;
  uint64_t first = task * j->rows_a_task, end = first + j->rows_a_task;
  if (end > step->rows) end = step->rows;
  mps_host_frame *frames = scratch;
  unsigned char *place = (unsigned char *)scratch + frames_bytes(step);
  uint64_t longest = 1;
  for (uint32_t s = 0; s < step->stage_count; s++) {
    mps_host_frame_begin(&frames[s], &j->plans[s], j->plans[s].block, place);
    place += mps_host_frame_scratch(&j->plans[s]);
    uint64_t row = step->stages[s].program.element_count / step->rows;
    if (row > longest) longest = row;
  }
  uint64_t group = GROUP_ELEMENTS / longest ? GROUP_ELEMENTS / longest : 1;
  for (; first < end; first += group) {
    uint64_t last = end - first < group ? end : first + group;
    for (uint32_t s = 0; s < step->stage_count; s++) {
      const mps_reduce_stage *stage = &step->stages[s];
      if (stage->result_count == 0) {
        uint64_t row = stage->program.element_count / step->rows;
        mps_host_frame_run(&frames[s], first * row, last * row);
        continue;
      }
      unsigned char *out[RESULTS];
      for (uint32_t r = 0; r < stage->result_count; r++) out[r] = (unsigned char *)(uintptr_t)stage->results[r].address;
      uint64_t kept = stage->kept_count / step->rows;
      fold_outputs(&frames[s], stage, first * kept, last * kept, 0, out);
    }
  }
}

/* Do all frames fit into a thread's scratch, and is each stage of one chunk in the inner layout? */
static bool rows_fit(const mps_step_reduce *step, const mps_host_plan *plans) {
  size_t bytes = frames_bytes(step);
  for (uint32_t s = 0; s < step->stage_count; s++) {
    const mps_reduce_stage *stage = &step->stages[s];
    if (stage->result_count && (stage->outer || stage->reduce_count == 0 || stage->reduce_count > stage->chunk)) return false;
    bytes += mps_host_frame_scratch(&plans[s]);
  }
  return step->rows > 0 && bytes <= MPS_HOST_SCRATCH_BYTES;
}

static mps_status make_plans(mps_driver_queue *queue, const mps_step_reduce *step, const mps_host_conversions *conversions) {
  if (step->stage_count > queue->stage_capacity) {
    free(queue->stages);
    queue->stage_capacity = 0;
    queue->stages = malloc(step->stage_count * sizeof *queue->stages);
    if (!queue->stages) return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for the plans of %u stages", (unsigned)step->stage_count);
    queue->stage_capacity = step->stage_count;
  }
  for (uint32_t s = 0; s < step->stage_count; s++) {
    const mps_reduce_stage *stage = &step->stages[s];
    uint8_t kept[RESULTS];
    for (uint32_t r = 0; r < stage->result_count; r++) kept[r] = stage->results[r].source;
    mps_status status = mps_host_plan_make_ordered(&queue->stages[s], &stage->program, conversions, kept, stage->result_count);
    if (status != MPS_STATUS_OK) return status;
  }
  return MPS_STATUS_OK;
}

mps_status mps_host_run_reduce(mps_driver_queue *queue, const mps_step_reduce *step, const mps_host_conversions *conversions) {
  mps_status status = make_plans(queue, step, conversions);
  if (status != MPS_STATUS_OK) return status;
  job j = {.step = step, .plans = queue->stages};
  if (!rows_fit(step, j.plans)) {
    for (uint32_t s = 0; s < step->stage_count && status == MPS_STATUS_OK; s++) {
      j.stage = &step->stages[s];
      j.plan = &j.plans[s];
      status = run_stage(queue, &j, step->step.cost / step->stage_count);
    }
    return status;
  }
  uint32_t tasks = mps_host_chunk_count(mps_host_region_workers(queue->region), step->step.cost, step->rows);
  j.rows_a_task = (step->rows + tasks - 1) / tasks;
  mps_host_region_run(queue->region, (uint32_t)((step->rows + j.rows_a_task - 1) / j.rows_a_task), step->step.cost, run_rows, &j);
  return MPS_STATUS_OK;
}
