/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fuse: from nodes to stages. A stage is one program: reductions over one shape, or values of one shape. Pointwise nodes are computed anew
 * in each program that reads them; stored are reductions, what a larger shape reads again and again (a mean, its root), and what cuts a
 * program that would be too long. Pure.
 */
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"

/* Of one program, below the limits of driver/program.h: conversions between computing types and stores come on top. */
#define MOST_INSTRUCTIONS 26
#define MOST_OPERANDS (MPS_PROGRAM_MAX_OPERANDS - 2)

typedef struct fuser {
  const mps_graph_builder *b;
  graph_plan *plan;
  uint8_t *stored;
  uint32_t *seen;  /* a node: number of the walk that saw it last */
  uint16_t *level; /* of stored nodes */
  uint32_t walk;
  uint32_t instructions, operands; /* counted by a walk */
} fuser;

static const graph_node *node_at(const fuser *f, uint32_t n) { return &f->b->nodes[n]; }
static bool computes(const graph_node *node) { return node->kind == NODE_FORMULA || node->kind == NODE_CAST; }

/* ---- leaders ---- */
void mps_graph_source_order(const mps_graph_builder *builder, const graph_node *node, uint32_t source, const int8_t *order, int8_t *out_order) {
  const graph_node *from = &builder->nodes[source];
  memset(out_order, -1, MPS_MAX_RANK);
  if (node->kind == NODE_VIEW) {
    for (uint32_t d = 0; d < node->rank; d++)
      if (node->order[d] >= 0 && from->sizes[node->order[d]] != 1) out_order[node->order[d]] = order[d];
  } else {
    for (uint32_t d = 0; d < from->rank; d++)
      if (from->sizes[d] != 1) out_order[d] = order[d + node->rank - from->rank];
  }
}

static bool covers(uint32_t node_rank, const int8_t *order, uint32_t rank, const int64_t *sizes) {
  uint32_t seen = 0;
  for (uint32_t d = 0; d < node_rank; d++)
    if (order[d] >= 0) seen |= 1u << order[d];
  for (uint32_t d = 0; d < rank; d++)
    if (sizes[d] != 1 && !(seen >> d & 1u)) return false;
  return true;
}

graph_leaf mps_graph_leader(const mps_graph_builder *builder, const uint8_t *stored, uint32_t n, bool root, uint32_t rank, const int64_t *sizes) {
  graph_leaf leaf = {.node = n};
  memset(leaf.order, -1, sizeof leaf.order);
  for (uint32_t d = 0; d < rank; d++) leaf.order[d] = (int8_t)d;
  for (;; root = false) {
    const graph_node *node = &builder->nodes[leaf.node];
    if (node->kind == NODE_INPUT || node->kind == NODE_REDUCE || (stored[leaf.node] && !root)) return leaf;
    graph_leaf next = {.node = MPS_GRAPH_NONE};
    for (uint32_t i = 0; i < node->source_count && next.node == MPS_GRAPH_NONE; i++) {
      mps_graph_source_order(builder, node, node->sources[i], leaf.order, next.order);
      if (builder->nodes[node->sources[i]].category != MPS_CATEGORY_NUMBER && covers(builder->nodes[node->sources[i]].rank, next.order, rank, sizes))
        next.node = node->sources[i];
    }
    if (next.node == MPS_GRAPH_NONE) return next;
    leaf = next;
  }
}

static bool same_leader(const fuser *f, uint32_t a, uint32_t b, const graph_stage_plan *stage) {
  const graph_leaf x = mps_graph_leader(f->b, f->stored, a, false, stage->rank, stage->sizes);
  const graph_leaf y = mps_graph_leader(f->b, f->stored, b, false, stage->rank, stage->sizes);
  return x.node == y.node && (x.node == MPS_GRAPH_NONE || memcmp(x.order, y.order, sizeof x.order) == 0);
}

/* ---- what is stored ---- */
/* Follows the expression of a program of `space` elements down to what lies in memory. */
static void mark(fuser *f, uint32_t n, int64_t space, bool root) {
  const graph_node *node = node_at(f, n);
  if (f->seen[n] == f->walk) return;
  f->seen[n] = f->walk;
  if (node->kind == NODE_REDUCE) f->stored[n] = 1;
  if (!root && f->stored[n]) return;
  if (computes(node) && !root && node->category != MPS_CATEGORY_NUMBER &&
      (mps_graph_node_count(node) < space || f->b->options & MPS_GRAPH_UNFUSED)) {
    f->stored[n] = 1;
    return;
  }
  for (uint32_t i = 0; i < node->source_count; i++) mark(f, node->sources[i], space, false);
}

/* Stored nodes have higher numbers than what they read: one pass from the end sees all. */
static void mark_all(fuser *f) {
  for (uint32_t o = 0; o < f->b->output_count; o++) {
    f->walk++;
    const uint32_t n = f->b->outputs[o];
    mark(f, n, mps_graph_node_count(node_at(f, n)), node_at(f, n)->kind != NODE_REDUCE);
  }
  for (uint32_t n = f->b->node_count; n-- > 0;) {
    if (!f->stored[n]) continue;
    const graph_node *node = node_at(f, n);
    f->walk++;
    if (node->kind == NODE_REDUCE)
      mark(f, node->sources[0], mps_graph_node_count(node_at(f, node->sources[0])), false);
    else
      mark(f, n, mps_graph_node_count(node), true);
  }
}

/* ---- how long programs are ---- */
static mps_compute compute_of(const graph_node *node) {
  return mps_dtype_compute((mps_dtype)(node->kind == NODE_FORMULA ? node->common : node->dtype));
}

static uint32_t cast_instructions(const graph_node *from, const graph_node *to) {
  if (mps_dtype_compute((mps_dtype)from->dtype) != mps_dtype_compute((mps_dtype)to->dtype)) return 2;
  return mps_dtype_contains((mps_dtype)to->dtype, (mps_dtype)from->dtype) ? 0 : 1;
}

static void measure(fuser *f, uint32_t n, bool root) {
  const graph_node *node = node_at(f, n);
  if (f->seen[n] == f->walk) return;
  f->seen[n] = f->walk;
  if (!computes(node) && node->kind != NODE_VIEW) {
    f->operands++;
    return;
  }
  if (!root && f->stored[n]) {
    f->operands++;
    return;
  }
  if (computes(node)) f->instructions += node->kind == NODE_CAST ? cast_instructions(node_at(f, node->sources[0]), node) : 1;
  for (uint32_t i = 0; i < node->source_count; i++) {
    const graph_node *source = node_at(f, node->sources[i]);
    if (computes(node) && source->kind == NODE_FORMULA && compute_of(source) != compute_of(node)) f->instructions++;
    measure(f, node->sources[i], false);
  }
}

static void begin_measure(fuser *f) {
  f->walk++;
  f->instructions = f->operands = 0;
}

static bool fits(const fuser *f, uint32_t roots) {
  return f->instructions + roots / 2 <= MOST_INSTRUCTIONS && f->operands + roots <= MOST_OPERANDS;
}

/* The largest part of a program that is too long, and that is no longer half of it: stored. False when the program fits. */
static bool split(fuser *f, uint32_t root, bool reduces) {
  begin_measure(f);
  measure(f, reduces ? node_at(f, root)->sources[0] : root, !reduces);
  if (fits(f, 1)) return false;
  const uint32_t whole = f->walk, half = f->instructions / 2 + 1, half_operands = f->operands / 2 + 1;
  uint32_t best = root, most = 0;
  uint32_t *in_program = malloc(f->b->node_count * sizeof *in_program);
  if (!in_program) return false;
  memcpy(in_program, f->seen, f->b->node_count * sizeof *in_program);
  for (uint32_t n = 0; n < root; n++) {
    if (in_program[n] != whole || !computes(node_at(f, n)) || f->stored[n] || node_at(f, n)->category == MPS_CATEGORY_NUMBER) continue;
    begin_measure(f);
    measure(f, n, true);
    if (f->instructions > half || f->operands > half_operands || f->instructions + f->operands <= most) continue;
    most = f->instructions + f->operands;
    best = n;
  }
  free(in_program);
  if (best == root) return false;
  f->stored[best] = 1;
  return true;
}

static void split_all(fuser *f) {
  for (uint32_t o = 0; o < f->b->output_count; o++)
    while (split(f, f->b->outputs[o], false)) continue;
  for (uint32_t n = f->b->node_count; n-- > 0;) /* what is stored on the way has a lower number */
    while (f->stored[n] && split(f, n, node_at(f, n)->kind == NODE_REDUCE)) continue;
}

/* ---- stages ---- */
static uint16_t level_of(fuser *f, uint32_t n, bool root) {
  const graph_node *node = node_at(f, n);
  if (!root && f->stored[n]) return f->level[n];
  if (f->seen[n] == f->walk) return 0;
  f->seen[n] = f->walk;
  uint16_t level = 0;
  for (uint32_t i = 0; i < node->source_count; i++) {
    const uint16_t l = level_of(f, node->sources[i], false);
    if (l > level) level = l;
  }
  return level;
}

static void measure_root(fuser *f, uint16_t root) {
  if (root & MPS_GRAPH_OUTPUT_ROOT) {
    measure(f, f->b->outputs[root & ~MPS_GRAPH_OUTPUT_ROOT], node_at(f, f->b->outputs[root & ~MPS_GRAPH_OUTPUT_ROOT])->kind != NODE_REDUCE);
  } else if (node_at(f, root)->kind == NODE_REDUCE) {
    measure(f, node_at(f, root)->sources[0], false);
  } else {
    measure(f, root, true);
  }
}

static bool joins(fuser *f, const graph_stage_plan *stage, const graph_stage_plan *wanted) {
  if (stage->reduces != wanted->reduces || stage->rank != wanted->rank || stage->mask != wanted->mask ||
      memcmp(stage->sizes, wanted->sizes, stage->rank * sizeof stage->sizes[0]) != 0)
    return false;
  if (f->b->options & MPS_GRAPH_UNFUSED || stage->root_count == (stage->reduces ? MPS_REDUCE_MAX_RESULTS : MPS_PROGRAM_MAX_OPERANDS / 2)) return false;
  if (stage->reduces && !same_leader(f, node_at(f, stage->roots[0])->sources[0], node_at(f, wanted->roots[0])->sources[0], stage)) return false;
  begin_measure(f);
  for (uint32_t r = 0; r < stage->root_count; r++) measure_root(f, stage->roots[r]);
  measure_root(f, wanted->roots[0]);
  return fits(f, stage->reduces ? 1 : stage->root_count + 1);
}

static mps_status add_root(fuser *f, uint16_t root, uint32_t first_stage) {
  const bool output = root & MPS_GRAPH_OUTPUT_ROOT;
  const graph_node *node = node_at(f, output ? f->b->outputs[root & ~MPS_GRAPH_OUTPUT_ROOT] : root);
  graph_stage_plan wanted = {.root_count = 1, .roots = {root}};
  wanted.reduces = !output && node->kind == NODE_REDUCE;
  wanted.mask = wanted.reduces ? node->mask : 0;
  const graph_node *shape = wanted.reduces ? node_at(f, node->sources[0]) : node;
  wanted.rank = shape->rank;
  memcpy(wanted.sizes, shape->sizes, sizeof wanted.sizes);
  graph_plan *plan = f->plan;
  for (uint32_t s = first_stage; s < plan->stage_count; s++) {
    if (!joins(f, &plan->stages[s], &wanted)) continue;
    plan->stages[s].roots[plan->stages[s].root_count++] = root;
    return MPS_STATUS_OK;
  }
  if (plan->stage_count == MPS_GRAPH_MAX_STAGES)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s: a graph of more than %d stages; make two of it", f->b->label, MPS_GRAPH_MAX_STAGES);
  plan->stages[plan->stage_count++] = wanted;
  return MPS_STATUS_OK;
}

static bool same_shape(const graph_node *a, const graph_node *b) {
  return a->rank == b->rank && memcmp(a->sizes, b->sizes, a->rank * sizeof a->sizes[0]) == 0;
}

/* Outputs of one shape wait for each other: one program writes them all. */
static void level_outputs(fuser *f, uint16_t *levels) {
  bool free_to_wait[MPS_GRAPH_MAX_TENSORS];
  for (uint32_t o = 0; o < f->b->output_count; o++) {
    const uint32_t n = f->b->outputs[o];
    const bool pointwise = node_at(f, n)->kind != NODE_REDUCE;
    f->walk++;
    free_to_wait[o] = !(f->stored[n] && pointwise); /* else it is written where it is stored */
    levels[o] = free_to_wait[o] ? (uint16_t)(1 + level_of(f, n, pointwise)) : f->level[n];
  }
  for (uint32_t o = 0; o < f->b->output_count; o++)
    for (uint32_t other = 0; free_to_wait[o] && other < f->b->output_count; other++)
      if (free_to_wait[other] && levels[other] > levels[o] && same_shape(node_at(f, f->b->outputs[o]), node_at(f, f->b->outputs[other])))
        levels[o] = levels[other];
}

static mps_status form_stages(fuser *f) {
  uint16_t output_levels[MPS_GRAPH_MAX_TENSORS], highest = 0;
  for (uint32_t n = 0; n < f->b->node_count; n++) {
    if (!f->stored[n]) continue;
    f->walk++;
    const bool reduces = node_at(f, n)->kind == NODE_REDUCE;
    f->level[n] = (uint16_t)(1 + level_of(f, reduces ? node_at(f, n)->sources[0] : n, !reduces));
    if (f->level[n] > highest) highest = f->level[n];
  }
  level_outputs(f, output_levels);
  for (uint32_t o = 0; o < f->b->output_count; o++)
    if (output_levels[o] > highest) highest = output_levels[o];
  for (uint16_t level = 1; level <= highest; level++) {
    const uint32_t first = f->plan->stage_count;
    for (uint32_t n = 0; n < f->b->node_count; n++) {
      if (!f->stored[n] || f->level[n] != level) continue;
      MPS_TRY(add_root(f, (uint16_t)n, first));
    }
    for (uint32_t o = 0; o < f->b->output_count; o++)
      if (output_levels[o] == level) MPS_TRY(add_root(f, (uint16_t)(MPS_GRAPH_OUTPUT_ROOT | o), first));
  }
  return MPS_STATUS_OK;
}

mps_status mps_graph_plan(const mps_graph_builder *builder, graph_plan *out_plan) {
  memset(out_plan, 0, sizeof *out_plan);
  if (builder->failure != MPS_STATUS_OK) return builder->failure;
  if (builder->output_count == 0) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s: the graph has no output", builder->label);
  fuser f = {.b = builder, .plan = out_plan, .stored = calloc(builder->node_count, 1), .seen = calloc(builder->node_count, sizeof *f.seen),
             .level = calloc(builder->node_count, sizeof *f.level)};
  mps_status status = MPS_STATUS_OK;
  if (!f.stored || !f.seen || !f.level) status = mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for the plan of %s", builder->label);
  if (status == MPS_STATUS_OK) {
    mark_all(&f);
    split_all(&f);
    status = form_stages(&f);
  }
  out_plan->stored = f.stored;
  free(f.seen);
  free(f.level);
  if (status != MPS_STATUS_OK) mps_graph_plan_fini(out_plan);
  return status;
}

void mps_graph_plan_fini(graph_plan *plan) {
  free(plan->stored);
  plan->stored = NULL;
}
