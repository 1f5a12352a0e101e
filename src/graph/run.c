/* SPDX-License-Identifier: BSD-3-Clause
 *
 * run: encodes a compiled graph: templates are copied into the stream's command buffer and filled in with addresses, strides and numbers.
 */
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"
#include "graph/program_builder.h"
#include "runtime/buffer.h"
#include "runtime/device.h"
#include "runtime/stream.h"

/* As src/ops/reduce_plan.c cuts: reduced elements of a chunk. */
#define INNER_CHUNK 16384
#define OUTER_ELEMENTS 65536
#define OUTER_ROWS 8192
#define OUTER_WIDTH 256
/* Few elements each for many outputs are better taken side by side. */
#define SHORT_REDUCTION 64
#define MANY_OUTPUTS 16

#define MAX_SLOTS (2 * MPS_GRAPH_MAX_TENSORS + MPS_GRAPH_MAX_TEMPORARIES)

/* Where a tensor of this run lies. */
typedef struct place {
  uint64_t address, allocation;
  const int64_t *strides; /* elements */
  const mps_tensor *constant; /* an input that is one number; else NULL */
  uint8_t flags, item;
} place;

/* The order in which a stage goes through its dimensions. */
typedef struct stage_order {
  uint8_t order[MPS_MAX_RANK]; /* iteration dimension at each position, outermost first; reductions: kept ones, then reduced ones (outer: the other way) */
  uint8_t outer;
  bool logical; /* as the dimensions are numbered, inner layout */
} stage_order;

typedef struct runner {
  const mps_graph *graph;
  mps_stream *stream;
  const mps_scalar *scalars;
  mps_buffer *scratch;
  place places[MAX_SLOTS];
  stage_order orders[MPS_GRAPH_MAX_STAGES];
  int64_t (*temporary_strides)[MPS_MAX_RANK];
} runner;

/* ---- the order of each stage ---- */
static uint64_t magnitude(int64_t stride) { return stride < 0 ? -(uint64_t)stride : (uint64_t)stride; }

/* Strides of the leader over the iteration, in elements; row-major ones where nothing leads. */
static void leading_strides(const runner *run, const graph_stage *stage, uint8_t leader, int64_t *out) {
  if (leader == UINT8_MAX) {
    int64_t stride = 1;
    for (uint32_t d = stage->rank; d-- > 0;) {
      out[d] = stride;
      stride *= stage->sizes[d];
    }
    return;
  }
  const graph_operand *source = &stage->operand_sources[leader];
  const place *from = &run->places[source->slot];
  for (uint32_t d = 0; d < stage->rank; d++) out[d] = source->order[d] < 0 || from->constant ? 0 : from->strides[source->order[d]];
}

static bool goes_before(int64_t stride, int64_t other) {
  const uint64_t a = magnitude(stride), b = magnitude(other);
  return a == 0 ? b != 0 : b != 0 && a > b;
}

/* Large strides first; expanded dimensions before all. Stable; dimensions of size 1 stay unless one moves past them. */
static void sort_dimensions(uint8_t *order, uint32_t count, const int64_t *strides, const int64_t *sizes) {
  for (uint32_t i = 1; i < count; i++) {
    const uint8_t moved = order[i];
    uint32_t to = i;
    if (sizes[moved] == 1) continue;
    for (uint32_t j = i; j-- > 0;) {
      if (sizes[order[j]] == 1) continue;
      if (!goes_before(strides[moved], strides[order[j]])) break;
      to = j;
    }
    memmove(order + to + 1, order + to, i - to);
    order[to] = moved;
  }
}

/* Does the innermost dimension stay? Then outputs lie side by side. It is a matter of order alone: gaps between elements do not count. */
static bool innermost_is_kept(const graph_stage *stage, const int64_t *strides) {
  uint8_t all[MPS_MAX_RANK];
  for (uint32_t d = 0; d < stage->rank; d++) all[d] = (uint8_t)d;
  sort_dimensions(all, stage->rank, strides, stage->sizes);
  uint32_t last = stage->rank;
  while (last > 0 && stage->sizes[all[last - 1]] == 1) last--;
  return last > 0 && !(stage->mask >> all[last - 1] & 1u);
}

static void order_stage(const runner *run, const graph_stage *stage, uint8_t leader, stage_order *out) {
  int64_t strides[MPS_MAX_RANK];
  uint8_t kept[MPS_MAX_RANK], reduced[MPS_MAX_RANK];
  uint32_t kept_count = 0, reduced_count = 0;
  leading_strides(run, stage, leader, strides);
  for (uint32_t d = 0; d < stage->rank; d++) {
    if (stage->mask >> d & 1u)
      reduced[reduced_count++] = (uint8_t)d;
    else
      kept[kept_count++] = (uint8_t)d;
  }
  sort_dimensions(kept, kept_count, strides, stage->sizes);
  sort_dimensions(reduced, reduced_count, strides, stage->sizes);
  out->outer = stage->reduces && stage->kept_count > 1 &&
               (innermost_is_kept(stage, strides) || (stage->kept_count >= MANY_OUTPUTS && stage->reduce_count < SHORT_REDUCTION));
  memcpy(out->order, out->outer ? reduced : kept, out->outer ? reduced_count : kept_count);
  memcpy(out->order + (out->outer ? reduced_count : kept_count), out->outer ? kept : reduced, out->outer ? kept_count : reduced_count);
  out->logical = !out->outer;
  for (uint32_t d = 0; d < stage->rank; d++) out->logical = out->logical && out->order[d] == d;
}

/* Temporaries lie in the order in which they are made, so that whoever reads them goes the same way as with what they were made of. */
static void place_temporary(runner *run, const stage_order *order, uint32_t rank, uint32_t slot) {
  const graph_tensor *tensor = &run->graph->tensors[slot];
  const uint32_t number = slot - run->graph->input_count - run->graph->output_count;
  int64_t *strides = run->temporary_strides[number], stride = 1;
  for (uint32_t i = rank; i-- > 0;) {
    const uint32_t d = order->order[i];
    strides[d] = stride;
    stride *= tensor->sizes[d];
  }
  run->places[slot].strides = strides;
  run->places[slot].constant = NULL;
  run->places[slot].flags = 0;
  run->places[slot].item = (uint8_t)mps_dtype_size((mps_dtype)tensor->dtype);
  run->places[slot].address = mps_buffer_address(run->scratch) + tensor->offset;
  run->places[slot].allocation = run->scratch->identifier;
}

static void order_stages(runner *run) {
  const mps_graph *graph = run->graph;
  const uint32_t first = graph->input_count + graph->output_count;
  for (uint32_t s = 0; s < graph->stage_count; s++) {
    const graph_stage *stage = &graph->stages[s];
    order_stage(run, stage, stage->leader, &run->orders[s]);
    for (uint32_t r = 0; r < stage->result_count; r++) place_temporary(run, &run->orders[s], stage->rank, stage->result_slots[r]);
    for (uint32_t o = 0; o < stage->operand_count; o++) {
      const uint16_t slot = stage->operand_sources[o].slot;
      if (stage->operands[o].access != 2 || slot < first || slot == MPS_GRAPH_NO_SLOT) continue;
      stage_order own;
      order_stage(run, stage, stage->operand_sources[o].leader, &own);
      place_temporary(run, &own, stage->rank, slot);
    }
  }
}

/* ---- filling templates in ---- */
static size_t program_bytes(const graph_stage *stage) {
  return stage->operand_count * sizeof(mps_operand) + ((stage->instruction_count * sizeof(mps_instruction) + 15) & ~(size_t)15);
}

static void fill_operand(const runner *run, const graph_stage *stage, uint32_t o, const uint8_t *order, mps_operand *operand) {
  const graph_operand *source = &stage->operand_sources[o];
  *operand = stage->operands[o];
  if (source->slot == MPS_GRAPH_NO_SLOT) {
    if (source->parameter != MPS_PROGRAM_NO_PARAMETER)
      operand->value = mps_scalar_element(run->scalars[source->parameter], (mps_dtype)source->dtype, (mps_compute)operand->compute);
    for (uint32_t d = 0; d < stage->rank; d++) operand->strides[d] = 0;
    return;
  }
  const place *from = &run->places[source->slot];
  if (from->constant) {
    operand->constant = 1;
    operand->value = mps_scalar_element(from->constant->constant, from->constant->dtype, (mps_compute)operand->compute);
    operand->dtype = (uint8_t)mps_compute_dtype((mps_compute)operand->compute);
    for (uint32_t d = 0; d < stage->rank; d++) operand->strides[d] = 0;
    return;
  }
  operand->address = from->address;
  operand->allocation = from->allocation;
  operand->flags = from->flags & (MPS_TENSOR_CONJUGATE | MPS_TENSOR_NEGATIVE);
  for (uint32_t d = 0; d < stage->rank; d++) {
    const int8_t dimension = source->order[order ? order[d] : d];
    operand->strides[d] = dimension < 0 ? 0 : from->strides[dimension] * from->item;
  }
}

/* A stage's program at `memory` (program_bytes). order: NULL keeps the numbering and lets the layout choose. */
static void fill_program(const runner *run, const graph_stage *stage, const uint8_t *order, void *memory, mps_program *out) {
  mps_operand *operands = memory;
  mps_instruction *instructions = (mps_instruction *)(void *)(operands + stage->operand_count);
  uint32_t leader = 0;
  for (uint32_t o = 0; o < stage->operand_count; o++) {
    fill_operand(run, stage, o, order, &operands[o]);
    if (operands[o].access == 2 && operands[leader].access != 2) leader = o;
  }
  memcpy(instructions, stage->instructions, stage->instruction_count * sizeof *instructions);
  out->operand_count = stage->operand_count;
  out->instruction_count = stage->instruction_count;
  out->register_count = stage->register_count;
  out->rank = stage->rank;
  out->element_count = stage->element_count;
  for (uint32_t d = 0; d < stage->rank; d++) out->sizes[d] = stage->sizes[order ? order[d] : d];
  out->operands = operands;
  out->instructions = instructions;
  if (order)
    mps_program_merge(&out->rank, out->sizes, operands, stage->operand_count);
  else
    mps_program_layout(&out->rank, out->sizes, operands, stage->operand_count, leader);
}

static double stage_cost(const graph_stage *stage) { return 100.0 + (double)stage->element_count * (double)stage->cost; }

static mps_status encode_pointwise(const runner *run, const graph_stage *stage) {
  if (stage->element_count == 0) return MPS_STATUS_OK;
  mps_step_pointwise *step;
  MPS_TRY(mps_stream_reserve(run->stream, MPS_STEP_POINTWISE, sizeof *step + program_bytes(stage), run->graph->label, stage_cost(stage), (void **)&step));
  fill_program(run, stage, NULL, step + 1, &step->program);
  mps_stream_publish(run->stream, &step->step);
  return MPS_STATUS_OK;
}

static uint64_t chunk_of(const graph_stage *stage, bool outer) {
  uint64_t chunk = INNER_CHUNK;
  if (outer) {
    chunk = OUTER_ELEMENTS / (stage->kept_count < OUTER_WIDTH ? stage->kept_count : OUTER_WIDTH);
    if (chunk > OUTER_ROWS) chunk = OUTER_ROWS;
  }
  return stage->reduce_count <= chunk + chunk / 2 ? stage->reduce_count + 1 : chunk;
}

static void fill_stage(const runner *run, uint32_t number, void *memory, mps_reduce_stage *out) {
  const graph_stage *stage = &run->graph->stages[number];
  const stage_order *order = &run->orders[number];
  fill_program(run, stage, order->order, memory, &out->program);
  out->kept_count = stage->kept_count;
  out->reduce_count = stage->reduce_count;
  out->outer = order->outer;
  out->chunk = chunk_of(stage, order->outer);
  out->result_count = stage->result_count;
  for (uint32_t r = 0; r < stage->result_count; r++) {
    out->results[r] = stage->results[r];
    out->results[r].address = run->places[stage->result_slots[r]].address;
    out->results[r].allocation = run->places[stage->result_slots[r]].allocation;
  }
}

/* `count` stages in one step: one of them, or a group that goes by rows. */
static mps_status encode_reduce(const runner *run, uint32_t first, uint32_t count, uint64_t rows) {
  size_t bytes = sizeof(mps_step_reduce) + count * sizeof(mps_reduce_stage);
  bytes = (bytes + 15) & ~(size_t)15;
  const size_t programs = bytes;
  double cost = 0;
  for (uint32_t s = first; s < first + count; s++) {
    bytes += program_bytes(&run->graph->stages[s]);
    cost += stage_cost(&run->graph->stages[s]);
  }
  mps_step_reduce *step;
  MPS_TRY(mps_stream_reserve(run->stream, MPS_STEP_REDUCE, bytes, run->graph->label, cost, (void **)&step));
  step->rows = rows;
  step->stage_count = count;
  step->reserved = 0;
  char *behind = (char *)step + programs;
  for (uint32_t i = 0; i < count; i++) {
    fill_stage(run, first + i, behind, &step->stages[i]);
    behind += program_bytes(&run->graph->stages[first + i]);
  }
  mps_stream_publish(run->stream, &step->step);
  return MPS_STATUS_OK;
}

/* Stages from `first` on that go by rows together in this run. */
static uint32_t rows_together(const runner *run, uint32_t first) {
  const mps_graph *graph = run->graph;
  const uint8_t group = graph->stages[first].group;
  uint32_t count = 0;
  uint64_t most = 0;
  while (group && first + count < graph->stage_count && graph->stages[first + count].group == group) {
    const graph_stage *stage = &graph->stages[first + count];
    if (!run->orders[first + count].logical || (stage->reduces && stage->reduce_count > chunk_of(stage, false))) return 1;
    if (stage->element_count > most) most = stage->element_count;
    count++;
  }
  return count && most >= graph->rows_least ? count : 1;
}

static mps_status encode_stages(const runner *run) {
  const mps_graph *graph = run->graph;
  for (uint32_t s = 0; s < graph->stage_count;) {
    const graph_stage *stage = &graph->stages[s];
    const uint32_t count = rows_together(run, s);
    if (count > 1)
      MPS_TRY(encode_reduce(run, s, count, graph->rows[stage->group]));
    else if (stage->reduces)
      MPS_TRY(encode_reduce(run, s, 1, 0));
    else
      MPS_TRY(encode_pointwise(run, stage));
    s += count;
  }
  return MPS_STATUS_OK;
}

/* ---- tensors of the caller ---- */
static mps_status check_tensor(const mps_graph *graph, const graph_tensor *wanted, const mps_tensor *tensor, bool written, uint32_t number) {
  bool right = tensor->dtype == wanted->dtype && tensor->rank == wanted->rank && (tensor->buffer || wanted->element_count == 0 || !written);
  for (uint32_t d = 0; right && d < wanted->rank; d++) right = tensor->sizes[d] == wanted->sizes[d];
  if (right) return MPS_STATUS_OK;
  return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s: %s %u is not of the dtype and shape that the graph was built for", graph->label, written ? "output" : "input",
                       number);
}

static void place_tensor(runner *run, uint32_t slot, const mps_tensor *tensor) {
  place *to = &run->places[slot];
  to->strides = tensor->strides;
  to->flags = tensor->flags;
  to->item = (uint8_t)mps_dtype_size(tensor->dtype);
  to->address = to->allocation = 0;
  to->constant = tensor->buffer ? NULL : tensor;
  if (!tensor->buffer) return;
  mps_buffer_use(tensor->buffer, run->stream);
  to->address = mps_buffer_address(tensor->buffer) + tensor->offset;
  to->allocation = tensor->buffer->identifier;
}

/* May this output be written over this input, of which it has exactly the places? Not if something reads the input later, or elsewhere. */
static bool may_share(const mps_graph *graph, uint32_t input, uint32_t output) {
  const uint16_t writer = graph->tensors[graph->input_count + output].writer;
  const uint8_t group = graph->stages[writer].group;
  if (graph->tensors[input].last_read > writer + 1u) return false;
  for (uint32_t s = 0; s <= writer; s++) {
    const graph_stage *stage = &graph->stages[s];
    if (s != writer && (group == 0 || stage->group != group)) continue; /* is over by then */
    for (uint32_t o = 0; o < stage->operand_count; o++) {
      if (stage->operand_sources[o].slot != input) continue;
      if (stage->rank != graph->tensors[input].rank) return false;
      for (uint32_t d = 0; d < stage->rank; d++)
        if (graph->tensors[input].sizes[d] != 1 && stage->operand_sources[o].order[d] != (int8_t)d) return false;
    }
  }
  return true;
}

/* Outputs that must not be written before all inputs are read. */
static uint64_t crossing_outputs(const mps_graph *graph, const mps_tensor *inputs, const mps_tensor *outputs) {
  uint64_t crossing = 0;
  for (uint32_t o = 0; o < graph->output_count; o++) {
    for (uint32_t i = 0; i < graph->input_count; i++) {
      if (outputs[o].buffer != inputs[i].buffer || !outputs[o].buffer || graph->tensors[i].last_read == 0) continue;
      const mps_overlap overlap = mps_tensor_overlap(&outputs[o], &inputs[i]);
      if (overlap == MPS_OVERLAP_PARTIAL || (overlap == MPS_OVERLAP_SAME && !may_share(graph, i, o))) crossing |= UINT64_C(1) << o;
    }
  }
  return crossing;
}

/* Makes a contiguous tensor of the output's shape and lets the graph write there. */
static mps_status redirect(runner *run, uint32_t output, const mps_tensor *target, mps_tensor *out) {
  const graph_tensor *tensor = &run->graph->tensors[run->graph->input_count + output];
  *out = (mps_tensor){.dtype = (mps_dtype)tensor->dtype};
  mps_tensor_set_contiguous(out, tensor->rank, target->sizes);
  MPS_TRY(mps_buffer_create(run->graph->device, run->stream, tensor->element_count * mps_dtype_size(out->dtype), &out->buffer));
  place_tensor(run, run->graph->input_count + output, out);
  return MPS_STATUS_OK;
}

/* Encodes with the outputs of `crossing` beside the inputs, and moves them at the end. */
static mps_status encode_crossing(runner *run, uint64_t crossing, const mps_tensor *outputs) {
  mps_tensor *beside = calloc(run->graph->output_count, sizeof *beside);
  if (!beside) return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for the outputs of %s", run->graph->label);
  mps_status status = MPS_STATUS_OK;
  for (uint32_t o = 0; o < run->graph->output_count && status == MPS_STATUS_OK; o++)
    if (crossing >> o & 1u) status = redirect(run, o, &outputs[o], &beside[o]);
  if (status == MPS_STATUS_OK) {
    order_stages(run);
    status = encode_stages(run);
  }
  for (uint32_t o = 0; o < run->graph->output_count; o++) {
    if (!beside[o].buffer) continue;
    if (status == MPS_STATUS_OK) status = mps_program_copy(run->stream, run->graph->label, &beside[o], &outputs[o]);
    mps_buffer_release(beside[o].buffer);
  }
  free(beside);
  return status;
}

mps_status mps_graph_run(const mps_graph *graph, mps_stream *stream, const mps_tensor *inputs, uint32_t input_count, const mps_scalar *scalars,
                         uint32_t scalar_count, const mps_tensor *outputs, uint32_t output_count) {
  if (input_count != graph->input_count || output_count != graph->output_count || scalar_count != graph->scalar_count)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s: the graph has %u inputs, %u scalars and %u outputs, not %u, %u and %u", graph->label,
                         graph->input_count, graph->scalar_count, graph->output_count, input_count, scalar_count, output_count);
  if (mps_stream_device(stream) != graph->device)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s: the graph was compiled for another device than the stream's", graph->label);
  for (uint32_t i = 0; i < input_count; i++) MPS_TRY(check_tensor(graph, &graph->tensors[i], &inputs[i], false, i));
  for (uint32_t o = 0; o < output_count; o++) MPS_TRY(check_tensor(graph, &graph->tensors[input_count + o], &outputs[o], true, o));
  runner run;
  int64_t temporary_strides[MPS_GRAPH_MAX_TEMPORARIES][MPS_MAX_RANK];
  run.graph = graph;
  run.stream = stream;
  run.scalars = scalars;
  run.scratch = NULL;
  run.temporary_strides = temporary_strides;
  for (uint32_t i = 0; i < input_count; i++) place_tensor(&run, i, &inputs[i]);
  for (uint32_t o = 0; o < output_count; o++) place_tensor(&run, input_count + o, &outputs[o]);
  if (graph->temporary_count) MPS_TRY(mps_buffer_create(graph->device, stream, graph->scratch_bytes ? graph->scratch_bytes : 1, &run.scratch));
  const uint64_t crossing = crossing_outputs(graph, inputs, outputs);
  mps_status status;
  if (crossing) {
    status = encode_crossing(&run, crossing, outputs);
  } else {
    order_stages(&run);
    status = encode_stages(&run);
  }
  mps_buffer_release(run.scratch);
  if (graph->runs) atomic_fetch_add_explicit(graph->runs, 1, memory_order_relaxed);
  return status;
}
