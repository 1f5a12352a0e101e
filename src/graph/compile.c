/* SPDX-License-Identifier: BSD-3-Clause
 *
 * compile: from stages to templates of steps: each stage's expressions become one program over its iteration space, with the kernels looked up;
 * temporaries get their places; stages that share rows are put together.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"
#include "graph/program_builder.h"
#include "runtime/device.h"

#define MAX_VALUES 128
/* Smaller tensors stay in the outer caches between two stages; running them row by row saves nothing and costs 5 to 10 %. */
#define ROWS_LEAST (UINT64_C(4) << 20)
#define TEMPORARY_ALIGNMENT 64

typedef struct lowered {
  uint16_t node;
  int8_t order[MPS_MAX_RANK]; /* the node's dimension -> the iteration's; -1: broadcast */
  mps_program_value value;
} lowered;

typedef struct compiler {
  const mps_graph_builder *b;
  const graph_plan *plan;
  mps_graph *graph;
  uint16_t *slots; /* a node's temporary */
  const graph_stage_plan *stage;
  uint32_t stage_number;
  mps_program_builder program;
  uint32_t value_count, tensor_count;
  lowered values[MAX_VALUES];
  mps_tensor tensors[MPS_PROGRAM_MAX_OPERANDS]; /* what the program builder is told of the operands */
  graph_operand sources[MPS_PROGRAM_MAX_OPERANDS];
} compiler;

/* ---- lowering ---- */
static bool computed_here(const compiler *c, uint32_t n) {
  for (uint32_t r = 0; r < c->stage->root_count; r++)
    if (c->stage->roots[r] == n && !c->stage->reduces) return true;
  return false;
}

/* A tensor of the run as the iteration sees it. Its buffer is never looked into by a plan. */
static const mps_tensor *iteration_tensor(compiler *c, uint32_t slot, mps_dtype dtype, uint32_t rank, const int8_t *order) {
  if (c->tensor_count == MPS_PROGRAM_MAX_OPERANDS) return NULL;
  mps_tensor *tensor = &c->tensors[c->tensor_count];
  graph_operand *source = &c->sources[c->tensor_count++];
  memset(tensor, 0, sizeof *tensor);
  memset(source, -1, sizeof *source);
  source->slot = (uint16_t)slot;
  int64_t sizes[MPS_MAX_RANK];
  for (uint32_t d = 0; d < c->stage->rank; d++) sizes[d] = 1;
  for (uint32_t d = 0; d < rank; d++) {
    if (order[d] < 0) continue;
    source->order[order[d]] = (int8_t)d;
    sizes[order[d]] = c->stage->sizes[order[d]];
  }
  tensor->buffer = (mps_buffer *)(uintptr_t)TEMPORARY_ALIGNMENT;
  tensor->dtype = dtype;
  mps_tensor_set_contiguous(tensor, c->stage->rank, sizes);
  return tensor;
}

static mps_program_value lower(compiler *c, uint32_t n, const int8_t *order);

static mps_program_value lower_source(compiler *c, const graph_node *node, uint32_t source, const int8_t *order) {
  int8_t inner[MPS_MAX_RANK];
  mps_graph_source_order(c->b, node, source, order, inner);
  return lower(c, source, inner);
}

static mps_program_value lower_new(compiler *c, uint32_t n, const int8_t *order) {
  const graph_node *node = &c->b->nodes[n];
  mps_program_value sources[MPS_PROGRAM_MAX_SOURCES];
  uint32_t slot = node->kind == NODE_INPUT ? node->index : MPS_GRAPH_NO_SLOT;
  if (c->plan->stored[n] && !computed_here(c, n)) slot = c->slots[n];
  if (slot != MPS_GRAPH_NO_SLOT) {
    const mps_tensor *tensor = iteration_tensor(c, slot, (mps_dtype)node->dtype, node->rank, order);
    if (tensor) return mps_program_read(&c->program, tensor);
    if (c->program.failure == MPS_STATUS_OK)
      c->program.failure = mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s: a program of the graph has too many operands", c->b->label);
    return (mps_program_value){.dtype = node->dtype};
  }
  switch (node->kind) {
    case NODE_CONSTANT: return mps_program_number(&c->program, node->scalars[0]);
    case NODE_SCALAR: return mps_program_parameter(&c->program, node->index, (mps_scalar_kind)c->b->scalar_kinds[node->index]);
    case NODE_VIEW: return lower_source(c, node, node->sources[0], order);
    case NODE_CAST: return mps_program_cast(&c->program, lower_source(c, node, node->sources[0], order), (mps_dtype)node->dtype);
    default: break;
  }
  for (uint32_t i = 0; i < node->source_count; i++) sources[i] = lower_source(c, node, node->sources[i], order);
  return mps_program_apply_in(&c->program, (mps_formula)node->formula, (mps_dtype)node->common, sources, node->scalars);
}

/* Each node once for each way in which its dimensions meet the iteration. */
static mps_program_value lower(compiler *c, uint32_t n, const int8_t *order) {
  const uint32_t rank = c->b->nodes[n].rank;
  for (uint32_t i = 0; i < c->value_count; i++)
    if (c->values[i].node == n && memcmp(c->values[i].order, order, rank) == 0) return c->values[i].value;
  const mps_program_value value = lower_new(c, n, order);
  if (c->value_count < MAX_VALUES) {
    lowered *made = &c->values[c->value_count++];
    made->node = (uint16_t)n;
    memcpy(made->order, order, MPS_MAX_RANK);
    made->value = value;
  }
  return value;
}

static void identity_order(const graph_stage_plan *stage, int8_t *order) {
  memset(order, -1, MPS_MAX_RANK);
  for (uint32_t d = 0; d < stage->rank; d++) order[d] = (int8_t)d;
}

static uint32_t output_slot(const compiler *c, uint16_t root) { return c->graph->input_count + (root & ~MPS_GRAPH_OUTPUT_ROOT); }

static void lower_roots(compiler *c) {
  int8_t order[MPS_MAX_RANK];
  identity_order(c->stage, order);
  for (uint32_t r = 0; r < c->stage->root_count; r++) {
    const uint16_t root = c->stage->roots[r];
    if (c->stage->reduces) {
      mps_program_keep(&c->program, lower(c, c->b->nodes[root].sources[0], order));
      continue;
    }
    const bool output = root & MPS_GRAPH_OUTPUT_ROOT;
    const uint32_t n = output ? c->b->outputs[root & ~MPS_GRAPH_OUTPUT_ROOT] : root;
    const bool stores = output && c->b->nodes[n].kind == NODE_CAST && !c->plan->stored[n]; /* a store converts as a cast does */
    const mps_program_value value = stores ? lower_source(c, &c->b->nodes[n], c->b->nodes[n].sources[0], order) : lower(c, n, order);
    const mps_tensor *tensor = iteration_tensor(c, output ? output_slot(c, root) : c->slots[n], (mps_dtype)c->b->nodes[n].dtype, c->stage->rank, order);
    if (tensor)
      mps_program_write(&c->program, value, tensor);
    else if (c->program.failure == MPS_STATUS_OK)
      c->program.failure = mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s: a program of the graph has too many operands", c->b->label);
  }
}

/* ---- templates ---- */
static mps_status find_reduce_functions(compiler *c, const graph_node *node, mps_reduce_result *result) {
  static const char *const folds[] = {
#define X(name, text) #text,
      MPS_GRAPH_FOLD_LIST(X)
#undef X
  };
  static const char *const parts[MPS_REDUCE_FUNCTIONS] = {"lanes", "fold", "short", "rows", "combine"};
  mps_driver_device *driver = mps_device_driver(c->b->device);
  mps_driver_library *library;
  MPS_TRY(driver->vtable->builtin_library(driver, &library));
  for (uint32_t i = 0; i < MPS_REDUCE_FUNCTIONS; i++) {
    char name[64];
    snprintf(name, sizeof name, "reduce_%s_%s_%s", parts[i], folds[node->fold], mps_compute_name((mps_compute)result->compute));
    result->functions[i] = driver->vtable->find_function(library, name);
    if (!result->functions[i]) return mps_error_set(MPS_STATUS_NOT_FOUND, "the kernel library has no block kernel \"%s\"", name);
  }
  return MPS_STATUS_OK;
}

static mps_scalar identity_of(graph_fold fold, mps_compute compute) {
  const bool whole = compute == MPS_COMPUTE_I64;
  switch (fold) {
    case FOLD_PROD: return mps_scalar_int(1);
    case FOLD_MIN: return whole ? mps_scalar_int(INT64_MAX) : mps_scalar_float((double)__builtin_inff());
    case FOLD_MAX: return whole ? mps_scalar_int(INT64_MIN) : mps_scalar_float(-(double)__builtin_inff());
    default: return mps_scalar_int(0);
  }
}

static mps_status set_results(compiler *c, graph_stage *stage) {
  for (uint32_t r = 0; stage->reduces && r < c->stage->root_count; r++) {
    const graph_node *node = &c->b->nodes[c->stage->roots[r]];
    mps_reduce_result *result = &stage->results[r];
    result->source = c->program.kept[r];
    result->compute = (uint8_t)mps_dtype_compute((mps_dtype)node->dtype);
    mps_scalar_store(identity_of((graph_fold)node->fold, (mps_compute)result->compute), (mps_dtype)node->dtype, &result->identity);
    stage->result_slots[r] = c->slots[c->stage->roots[r]];
    MPS_TRY(find_reduce_functions(c, node, result));
  }
  stage->result_count = stage->reduces ? c->stage->root_count : 0;
  return MPS_STATUS_OK;
}

static void set_sizes(const compiler *c, graph_stage *stage) {
  stage->rank = c->stage->rank;
  stage->reduces = c->stage->reduces;
  stage->mask = c->stage->mask;
  stage->element_count = stage->kept_count = stage->reduce_count = 1;
  for (uint32_t d = 0; d < stage->rank; d++) {
    const uint64_t size = (uint64_t)c->stage->sizes[d];
    stage->sizes[d] = c->stage->sizes[d];
    stage->element_count *= size;
    *(stage->mask >> d & 1u ? &stage->reduce_count : &stage->kept_count) *= size;
  }
}

/* The operand whose strides say how the values of node `n` are gone through. */
static uint8_t find_leader(const compiler *c, const graph_stage *stage, uint32_t n, bool root) {
  const graph_leaf leaf = mps_graph_leader(c->b, c->plan->stored, n, root, c->stage->rank, c->stage->sizes);
  if (leaf.node == MPS_GRAPH_NONE) return UINT8_MAX;
  const graph_node *node = &c->b->nodes[leaf.node];
  const uint32_t slot = node->kind == NODE_INPUT ? node->index : c->slots[leaf.node];
  for (uint32_t o = 0; o < stage->operand_count; o++) {
    const graph_operand *source = &stage->operand_sources[o];
    if (source->slot != slot || stage->operands[o].access != 1) continue;
    bool same = true;
    for (uint32_t d = 0; d < node->rank; d++) same = same && (leaf.order[d] < 0 || source->order[leaf.order[d]] == (int8_t)d);
    if (same) return (uint8_t)o;
  }
  return UINT8_MAX;
}

static void find_leaders(const compiler *c, graph_stage *stage) {
  const uint16_t first = c->stage->roots[0];
  const uint32_t n = first & MPS_GRAPH_OUTPUT_ROOT ? c->b->outputs[first & ~MPS_GRAPH_OUTPUT_ROOT] : first;
  stage->leader = stage->reduces ? find_leader(c, stage, c->b->nodes[n].sources[0], false) : find_leader(c, stage, n, true);
  for (uint32_t r = 0; !stage->reduces && r < c->stage->root_count; r++) {
    const uint16_t root = c->stage->roots[r];
    if (root & MPS_GRAPH_OUTPUT_ROOT) continue;
    for (uint32_t o = 0; o < stage->operand_count; o++)
      if (stage->operand_sources[o].slot == c->slots[root] && stage->operands[o].access == 2)
        stage->operand_sources[o].leader = find_leader(c, stage, root, true);
  }
}

static mps_status set_operands(compiler *c, graph_stage *stage) {
  mps_program_builder *p = &c->program;
  stage->operand_count = p->operand_count;
  stage->instruction_count = p->instruction_count;
  stage->operands = malloc((p->operand_count + 1) * sizeof *stage->operands);
  stage->operand_sources = malloc((p->operand_count + 1) * sizeof *stage->operand_sources);
  stage->instructions = malloc((p->instruction_count + 1) * sizeof *stage->instructions);
  if (!stage->operands || !stage->operand_sources || !stage->instructions)
    return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for a program of %s", c->b->label);
  memcpy(stage->operands, p->operands, p->operand_count * sizeof *stage->operands);
  memcpy(stage->instructions, p->instructions, p->instruction_count * sizeof *stage->instructions);
  for (uint32_t o = 0; o < p->operand_count; o++) {
    graph_operand *source = &stage->operand_sources[o];
    if (p->operand_tensors[o]) {
      *source = c->sources[p->operand_tensors[o] - c->tensors];
      graph_tensor *tensor = &c->graph->tensors[source->slot];
      if (p->operands[o].access == 1) {
        tensor->last_read = (uint16_t)(c->stage_number + 1);
      } else {
        tensor->writer = (uint16_t)c->stage_number;
      }
    } else {
      memset(source, -1, sizeof *source);
      source->slot = MPS_GRAPH_NO_SLOT;
      source->parameter = p->operand_parameters[o];
      source->dtype = p->operand_parameters[o] == MPS_PROGRAM_NO_PARAMETER ? 0 : p->operand_parameter_dtypes[o];
    }
  }
  for (uint32_t r = 0; r < stage->result_count; r++) c->graph->tensors[stage->result_slots[r]].writer = (uint16_t)c->stage_number;
  return MPS_STATUS_OK;
}

static mps_status compile_stage(compiler *c, uint32_t number) {
  graph_stage *stage = &c->graph->stages[number];
  c->stage = &c->plan->stages[number];
  c->stage_number = number;
  c->value_count = c->tensor_count = 0;
  mps_program_begin(&c->program, c->b->label, c->stage->rank, c->stage->sizes);
  lower_roots(c);
  MPS_TRY(mps_program_finish(&c->program, &stage->register_count));
  MPS_TRY(mps_program_find_functions(&c->program, c->b->device));
  set_sizes(c, stage);
  MPS_TRY(set_results(c, stage));
  MPS_TRY(set_operands(c, stage));
  find_leaders(c, stage);
  stage->cost = c->program.cost + 0.1f * (float)stage->operand_count + (stage->reduces ? 0.1f : 0.0f);
  return MPS_STATUS_OK;
}

/* ---- stages that share rows ---- */
/* Dimensions of more than one element. */
static uint32_t long_dimensions(const graph_stage *stage, uint8_t *out) {
  uint32_t count = 0;
  for (uint32_t d = 0; d < stage->rank; d++)
    if (stage->sizes[d] != 1) out[count++] = (uint8_t)d;
  return count;
}

typedef struct row_shape {
  uint32_t rank;
  int64_t sizes[MPS_MAX_RANK];
} row_shape;

/* The kept dimensions of a reduction over all that is inside of them; none (rank 0) for any other. */
static row_shape rows_of(const graph_stage *stage) {
  row_shape rows = {.rank = 0};
  uint8_t dimensions[MPS_MAX_RANK];
  const uint32_t count = long_dimensions(stage, dimensions);
  uint32_t kept = 0;
  while (kept < count && !(stage->mask >> dimensions[kept] & 1u)) kept++;
  for (uint32_t d = kept; d < count; d++)
    if (!(stage->mask >> dimensions[d] & 1u)) return rows;
  if (!stage->reduces || stage->element_count == 0 || kept == count) return rows;
  rows.rank = kept;
  for (uint32_t d = 0; d < kept; d++) rows.sizes[d] = stage->sizes[dimensions[d]];
  return rows;
}

/* Does the stage work row by row: reduce exactly what is inside of a row, and read tensors that the group makes at the same row only? */
static bool goes_by_rows(const mps_graph *graph, uint32_t number, const row_shape *rows, uint32_t first) {
  const graph_stage *stage = &graph->stages[number];
  uint8_t dimensions[MPS_MAX_RANK];
  const uint32_t count = long_dimensions(stage, dimensions);
  if (count < rows->rank) return false;
  for (uint32_t d = 0; d < rows->rank; d++)
    if (stage->sizes[dimensions[d]] != rows->sizes[d]) return false;
  if (stage->reduces) {
    const row_shape own = rows_of(stage);
    if (own.rank != rows->rank) return false;
  }
  for (uint32_t o = 0; o < stage->operand_count; o++) {
    const graph_operand *source = &stage->operand_sources[o];
    if (source->slot == MPS_GRAPH_NO_SLOT || stage->operands[o].access != 1) continue;
    const graph_tensor *tensor = &graph->tensors[source->slot];
    if (source->slot < graph->input_count || tensor->writer < first) continue;
    uint32_t next = 0; /* the tensor's rows, one after the other, in the iteration's rows */
    for (uint32_t d = 0; d < tensor->rank && next < rows->rank; d++) {
      if (tensor->sizes[d] == 1) continue;
      if (source->order[dimensions[next]] != (int8_t)d) return false;
      next++;
    }
    if (next < rows->rank) return false;
  }
  return true;
}

static bool all_go_by_rows(const mps_graph *graph, uint32_t first, uint32_t last, const row_shape *rows) {
  for (uint32_t s = first; s <= last; s++)
    if (!goes_by_rows(graph, s, rows, first)) return false;
  return true;
}

static void form_groups(mps_graph *graph) {
  uint8_t group = 0;
  for (uint32_t s = 0; s < graph->stage_count; s++) {
    const row_shape rows = rows_of(&graph->stages[s]);
    if (rows.rank == 0 || graph->stages[s].group) continue;
    if (!goes_by_rows(graph, s, &rows, s)) continue;
    uint32_t first = s, end = s + 1;
    while (first > 0 && graph->stages[first - 1].group == 0 && all_go_by_rows(graph, first - 1, s, &rows)) first--;
    while (end < graph->stage_count && goes_by_rows(graph, end, &rows, first)) end++;
    if (end - first < 2) continue;
    group++;
    graph->rows[group] = 1;
    for (uint32_t d = 0; d < rows.rank; d++) graph->rows[group] *= (uint64_t)rows.sizes[d];
    for (uint32_t i = first; i < end; i++) graph->stages[i].group = group;
  }
}

/* ---- the graph ---- */
static void set_tensor(graph_tensor *tensor, const graph_node *node) {
  tensor->dtype = node->dtype;
  tensor->rank = node->rank;
  tensor->element_count = (uint64_t)mps_graph_node_count(node);
  memcpy(tensor->sizes, node->sizes, sizeof tensor->sizes);
}

static void place_tensors(compiler *c) {
  mps_graph *graph = c->graph;
  const mps_graph_builder *b = c->b;
  for (uint32_t i = 0; i < b->input_count; i++) set_tensor(&graph->tensors[i], &b->nodes[b->inputs[i]]);
  for (uint32_t o = 0; o < b->output_count; o++) set_tensor(&graph->tensors[b->input_count + o], &b->nodes[b->outputs[o]]);
  uint32_t slot = b->input_count + b->output_count;
  for (uint32_t n = 0; n < b->node_count; n++) {
    if (!c->plan->stored[n]) continue;
    graph_tensor *tensor = &graph->tensors[slot];
    set_tensor(tensor, &b->nodes[n]);
    c->slots[n] = (uint16_t)slot++;
    tensor->offset = graph->scratch_bytes;
    const uint64_t bytes = tensor->element_count * mps_dtype_size((mps_dtype)tensor->dtype);
    graph->scratch_bytes += (bytes + TEMPORARY_ALIGNMENT - 1) / TEMPORARY_ALIGNMENT * TEMPORARY_ALIGNMENT;
  }
}

static mps_status make_graph(compiler *c) {
  const mps_graph_builder *b = c->b;
  uint32_t stored = 0;
  for (uint32_t n = 0; n < b->node_count; n++) stored += c->plan->stored[n];
  if (stored > MPS_GRAPH_MAX_TEMPORARIES)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s: a graph of %u temporaries, more than %d; make two of it", b->label, stored, MPS_GRAPH_MAX_TEMPORARIES);
  mps_graph *graph = calloc(1, sizeof *graph);
  c->graph = graph;
  if (graph) {
    graph->tensors = calloc(b->input_count + b->output_count + stored, sizeof *graph->tensors);
    graph->stages = calloc(c->plan->stage_count, sizeof *graph->stages);
  }
  if (!graph || !graph->tensors || !graph->stages) return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for the graph %s", b->label);
  atomic_init(&graph->references, 1);
  graph->device = b->device;
  graph->label = b->label;
  graph->input_count = b->input_count;
  graph->output_count = b->output_count;
  graph->scalar_count = b->scalar_count;
  graph->temporary_count = stored;
  graph->stage_count = c->plan->stage_count;
  graph->rows_least = b->options & MPS_GRAPH_ALL_ROWS ? 0 : ROWS_LEAST;
  place_tensors(c);
  return MPS_STATUS_OK;
}

mps_status mps_graph_compile_plan(const mps_graph_builder *builder, const graph_plan *plan, mps_graph **out_graph) {
  *out_graph = NULL;
  compiler *c = calloc(1, sizeof *c);
  uint16_t *slots = calloc(builder->node_count, sizeof *slots);
  mps_status status = MPS_STATUS_OK;
  if (!c || !slots) {
    status = mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory to compile %s", builder->label);
  } else {
    c->b = builder;
    c->plan = plan;
    c->slots = slots;
    status = make_graph(c);
    for (uint32_t s = 0; s < plan->stage_count && status == MPS_STATUS_OK; s++) status = compile_stage(c, s);
    if (status == MPS_STATUS_OK && !(builder->options & MPS_GRAPH_NO_ROWS)) form_groups(c->graph);
    if (status == MPS_STATUS_OK)
      *out_graph = c->graph;
    else
      mps_graph_free(c->graph);
  }
  free(slots);
  free(c);
  return status;
}

mps_status mps_graph_compile_new(const mps_graph_builder *builder, mps_graph **out_graph) {
  graph_plan plan;
  *out_graph = NULL;
  MPS_TRY(mps_graph_plan(builder, &plan));
  const mps_status status = mps_graph_compile_plan(builder, &plan, out_graph);
  mps_graph_plan_fini(&plan);
  return status;
}

void mps_graph_free(mps_graph *graph) {
  if (!graph) return;
  for (uint32_t s = 0; graph->stages && s < graph->stage_count; s++) {
    free(graph->stages[s].operands);
    free(graph->stages[s].operand_sources);
    free(graph->stages[s].instructions);
  }
  free(graph->stages);
  free(graph->tensors);
  free(graph);
}

mps_graph *mps_graph_retain(mps_graph *graph) {
  atomic_fetch_add_explicit(&graph->references, 1, memory_order_relaxed);
  return graph;
}

void mps_graph_release(mps_graph *graph) {
  if (graph && atomic_fetch_sub_explicit(&graph->references, 1, memory_order_acq_rel) == 1) mps_graph_free(graph);
}

/* Neighbouring stages of one group are one step, when the tensors of a run allow it. */
uint32_t mps_graph_step_count(const mps_graph *graph) {
  uint32_t count = 0;
  for (uint32_t s = 0; s < graph->stage_count; s++)
    count += s == 0 || graph->stages[s].group == 0 || graph->stages[s].group != graph->stages[s - 1].group;
  return count;
}

uint64_t mps_graph_scratch_bytes(const mps_graph *graph) { return graph->scratch_bytes; }
