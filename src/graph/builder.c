/* SPDX-License-Identifier: BSD-3-Clause
 *
 * builder: nodes, their shapes and dtypes. Nothing here looks at a device.
 */
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"
#include "graph/program_builder.h"

mps_status mps_graph_builder_create(mps_device *device, const char *label, mps_graph_builder **out_builder) {
  *out_builder = calloc(1, sizeof **out_builder);
  if (!*out_builder) return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for a graph");
  (*out_builder)->device = device;
  (*out_builder)->label = label;
  return MPS_STATUS_OK;
}

void mps_graph_builder_destroy(mps_graph_builder *builder) {
  if (!builder) return;
  free(builder->nodes);
  free(builder);
}

static mps_graph_node fail(mps_graph_builder *b, const char *what) {
  if (b->failure == MPS_STATUS_OK) b->failure = mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s: %s", b->label, what);
  return MPS_GRAPH_NONE;
}

static bool usable(mps_graph_builder *b, mps_graph_node node) {
  if (b->failure != MPS_STATUS_OK) return false;
  if (node < b->node_count) return true;
  fail(b, "a node of another graph was passed");
  return false;
}

static mps_graph_node add_node(mps_graph_builder *b, const graph_node *node) {
  if (b->failure != MPS_STATUS_OK) return MPS_GRAPH_NONE;
  if (b->node_count == MPS_GRAPH_MAX_NODES) return fail(b, "a graph has too many nodes");
  if (b->node_count == b->node_capacity) {
    uint32_t capacity = b->node_capacity ? 2 * b->node_capacity : 32;
    graph_node *nodes = realloc(b->nodes, capacity * sizeof *nodes);
    if (!nodes) {
      b->failure = mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for the nodes of a graph");
      return MPS_GRAPH_NONE;
    }
    b->nodes = nodes;
    b->node_capacity = capacity;
  }
  b->nodes[b->node_count] = *node;
  return b->node_count++;
}

/* All bytes are set: nodes are compared as bytes. */
static graph_node blank(graph_node_kind kind) {
  graph_node node;
  memset(&node, 0, sizeof node);
  node.kind = (uint8_t)kind;
  return node;
}

static void set_scalar(mps_scalar *to, mps_scalar from) {
  to->kind = from.kind;
  to->unsigned_integer = from.unsigned_integer;
  to->imaginary = from.kind == MPS_SCALAR_COMPLEX ? from.imaginary : 0.0;
}

int64_t mps_graph_node_count(const graph_node *node) {
  int64_t count = 1;
  for (uint32_t d = 0; d < node->rank; d++) count *= node->sizes[d];
  return count;
}

static bool set_shape(mps_graph_builder *b, graph_node *node, uint32_t rank, const int64_t *sizes) {
  if (rank > MPS_MAX_RANK) {
    fail(b, "tensors have at most 16 dimensions");
    return false;
  }
  node->rank = (uint8_t)rank;
  for (uint32_t d = 0; d < rank; d++) {
    if (sizes[d] < 0) {
      fail(b, "a size is negative");
      return false;
    }
    node->sizes[d] = sizes[d];
  }
  return true;
}

mps_graph_node mps_graph_input(mps_graph_builder *b, mps_dtype dtype, uint32_t rank, const int64_t *sizes) {
  graph_node node = blank(NODE_INPUT);
  if (b->failure != MPS_STATUS_OK || !set_shape(b, &node, rank, sizes)) return MPS_GRAPH_NONE;
  if (b->input_count == MPS_GRAPH_MAX_TENSORS || (unsigned)dtype >= MPS_DTYPE_COUNT) return fail(b, "an input has no known dtype, or there are too many");
  node.dtype = (uint8_t)dtype;
  node.category = rank ? MPS_CATEGORY_TENSOR : MPS_CATEGORY_SCALAR;
  node.index = (uint8_t)b->input_count;
  mps_graph_node made = add_node(b, &node);
  if (made != MPS_GRAPH_NONE) b->inputs[b->input_count++] = (uint16_t)made;
  return made;
}

static uint8_t kind_dtype(mps_scalar_kind kind) {
  static const uint8_t dtypes[] = {
      [MPS_SCALAR_BOOL] = MPS_DTYPE_BOOL,  [MPS_SCALAR_INT] = MPS_DTYPE_I64,     [MPS_SCALAR_UINT] = MPS_DTYPE_U64,
      [MPS_SCALAR_FLOAT] = MPS_DTYPE_F32, [MPS_SCALAR_COMPLEX] = MPS_DTYPE_C64,
  };
  return dtypes[kind];
}

mps_graph_node mps_graph_scalar(mps_graph_builder *b, mps_scalar_kind kind) {
  if (b->failure != MPS_STATUS_OK) return MPS_GRAPH_NONE;
  if (b->scalar_count == MPS_GRAPH_MAX_TENSORS || (unsigned)kind > MPS_SCALAR_COMPLEX) return fail(b, "too many scalars, or of no known kind");
  graph_node node = blank(NODE_SCALAR);
  node.dtype = kind_dtype(kind);
  node.category = MPS_CATEGORY_NUMBER;
  node.index = (uint8_t)b->scalar_count;
  mps_graph_node made = add_node(b, &node);
  if (made != MPS_GRAPH_NONE) b->scalar_kinds[b->scalar_count++] = (uint8_t)kind;
  return made;
}

mps_graph_node mps_graph_constant(mps_graph_builder *b, mps_scalar number) {
  graph_node node = blank(NODE_CONSTANT);
  node.dtype = kind_dtype(number.kind);
  node.category = MPS_CATEGORY_NUMBER;
  set_scalar(&node.scalars[0], number);
  return add_node(b, &node);
}

/* ---- formulas ---- */
static mps_program_value value_of(const graph_node *node) {
  uint8_t kind = node->kind == NODE_CONSTANT ? MPS_VALUE_NUMBER : node->kind == NODE_SCALAR ? MPS_VALUE_PARAMETER : MPS_VALUE_TENSOR;
  return (mps_program_value){kind, 0, node->dtype, node->category};
}

static bool broadcast(mps_graph_builder *b, graph_node *node, const graph_node *source) {
  if (source->rank > node->rank) {
    uint32_t more = source->rank - (uint32_t)node->rank;
    memmove(node->sizes + more, node->sizes, node->rank * sizeof node->sizes[0]);
    for (uint32_t d = 0; d < more; d++) node->sizes[d] = 1;
    node->rank = source->rank;
  }
  int64_t *sizes = node->sizes + (node->rank - source->rank);
  for (uint32_t d = 0; d < source->rank; d++) {
    if (sizes[d] == source->sizes[d] || source->sizes[d] == 1) continue;
    if (sizes[d] != 1) {
      fail(b, "the shapes of a formula's sources do not broadcast");
      return false;
    }
    sizes[d] = source->sizes[d];
  }
  return true;
}

mps_graph_node mps_graph_apply(mps_graph_builder *b, mps_formula formula, const mps_graph_node *sources, const mps_scalar *parameters) {
  const mps_formula_info *info = &mps_formula_infos[formula];
  graph_node node = blank(NODE_FORMULA);
  mps_program_value values[MPS_PROGRAM_MAX_SOURCES];
  node.formula = (uint16_t)formula;
  node.source_count = info->source_count;
  for (uint32_t i = 0; i < info->source_count; i++) {
    if (!usable(b, sources[i])) return MPS_GRAPH_NONE;
    const graph_node *source = &b->nodes[sources[i]];
    node.sources[i] = (uint16_t)sources[i];
    values[i] = value_of(source);
    if (source->category > node.category) node.category = source->category;
    if (!broadcast(b, &node, source)) return MPS_GRAPH_NONE;
  }
  if (info->parameter_count && !parameters) return fail(b, "a formula's parameters are missing");
  for (uint32_t i = 0; i < info->parameter_count; i++) set_scalar(&node.scalars[i], parameters[i]);
  const mps_dtype common = mps_program_common(formula, values);
  if (!(info->types >> mps_dtype_compute(common) & 1u)) {
    if (b->failure == MPS_STATUS_OK)
      b->failure = mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "\"%s\" of %s is not implemented for '%s'", info->name, b->label, mps_dtype_title(common));
    return MPS_GRAPH_NONE;
  }
  node.common = (uint8_t)common;
  node.dtype = (uint8_t)mps_formula_result_dtype(info, common);
  return add_node(b, &node);
}

mps_graph_node mps_graph_formula(mps_graph_builder *b, const char *name, const mps_graph_node *sources, const mps_scalar *parameters) {
  for (uint32_t f = 0; f < MPS_FORMULA_COUNT; f++)
    if (strcmp(mps_formula_infos[f].name, name) == 0) return mps_graph_apply(b, (mps_formula)f, sources, parameters);
  if (b->failure == MPS_STATUS_OK) b->failure = mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s: there is no formula '%s'", b->label, name);
  return MPS_GRAPH_NONE;
}

mps_graph_node mps_graph_cast(mps_graph_builder *b, mps_graph_node source, mps_dtype dtype) {
  if (!usable(b, source)) return MPS_GRAPH_NONE;
  if ((unsigned)dtype >= MPS_DTYPE_COUNT) return fail(b, "a cast to no known dtype");
  if (b->nodes[source].dtype == dtype) return source;
  graph_node node = blank(NODE_CAST);
  node.source_count = 1;
  node.sources[0] = (uint16_t)source;
  node.dtype = (uint8_t)dtype;
  node.category = b->nodes[source].category;
  node.rank = b->nodes[source].rank;
  memcpy(node.sizes, b->nodes[source].sizes, sizeof node.sizes);
  return add_node(b, &node);
}

/* ---- views ---- */
mps_graph_node mps_graph_arrange(mps_graph_builder *b, mps_graph_node source, uint32_t rank, const int *order) {
  if (!usable(b, source)) return MPS_GRAPH_NONE;
  if (rank > MPS_MAX_RANK) return fail(b, "tensors have at most 16 dimensions");
  const graph_node *from = &b->nodes[source];
  graph_node node = blank(NODE_VIEW);
  uint32_t seen = 0;
  node.source_count = 1;
  node.sources[0] = (uint16_t)source;
  node.dtype = from->dtype;
  node.category = from->category;
  node.rank = (uint8_t)rank;
  for (uint32_t d = 0; d < rank; d++) {
    if (order[d] >= (int)from->rank || (order[d] >= 0 && seen >> order[d] & 1u)) return fail(b, "a dimension is arranged twice, or not there");
    node.order[d] = (int8_t)(order[d] < 0 ? -1 : order[d]);
    node.sizes[d] = order[d] < 0 ? 1 : from->sizes[order[d]];
    if (order[d] >= 0) seen |= 1u << order[d];
  }
  for (uint32_t d = 0; d < from->rank; d++)
    if (!(seen >> d & 1u) && from->sizes[d] != 1) return fail(b, "a dimension that is left out has more than one element");
  return add_node(b, &node);
}

mps_graph_node mps_graph_expand(mps_graph_builder *b, mps_graph_node source, uint32_t rank, const int64_t *sizes) {
  graph_node node = blank(NODE_VIEW);
  if (!usable(b, source) || !set_shape(b, &node, rank, sizes)) return MPS_GRAPH_NONE;
  const graph_node *from = &b->nodes[source];
  if (from->rank > rank) return fail(b, "an expanded tensor has fewer dimensions than before");
  const uint32_t lead = rank - from->rank;
  node.source_count = 1;
  node.sources[0] = (uint16_t)source;
  node.dtype = from->dtype;
  node.category = from->category;
  for (uint32_t d = 0; d < rank; d++) {
    const bool same = d >= lead && from->sizes[d - lead] == sizes[d];
    if (!same && d >= lead && from->sizes[d - lead] != 1) return fail(b, "a tensor does not expand to that shape");
    node.order[d] = (int8_t)(same ? (int)(d - lead) : -1);
  }
  return add_node(b, &node);
}

/* ---- reductions ---- */
static bool reduce_mask(mps_graph_builder *b, const graph_node *source, const int64_t *dimensions, uint32_t count, uint32_t *out_mask) {
  *out_mask = (1u << source->rank) - 1;
  if (!dimensions || count == 0) return true;
  *out_mask = 0;
  for (uint32_t i = 0; i < count; i++) {
    int64_t d = dimensions[i] < 0 ? dimensions[i] + source->rank : dimensions[i];
    if (source->rank == 0 && (dimensions[i] == 0 || dimensions[i] == -1)) continue;
    if (d < 0 || d >= source->rank || *out_mask >> d & 1u) {
      fail(b, "a dimension to reduce is out of range, or there twice");
      return false;
    }
    *out_mask |= 1u << d;
  }
  return true;
}

static mps_graph_node add_reduce(mps_graph_builder *b, mps_graph_node source, graph_fold fold, uint32_t mask) {
  if (!usable(b, source)) return MPS_GRAPH_NONE;
  const graph_node *from = &b->nodes[source];
  graph_node node = blank(NODE_REDUCE);
  node.source_count = 1;
  node.sources[0] = (uint16_t)source;
  node.fold = (uint8_t)fold;
  node.mask = mask;
  node.dtype = (uint8_t)mps_compute_dtype(mps_dtype_compute((mps_dtype)from->dtype));
  node.category = from->category;
  node.rank = from->rank;
  for (uint32_t d = 0; d < from->rank; d++) node.sizes[d] = mask >> d & 1u ? 1 : from->sizes[d];
  return add_node(b, &node);
}

/* What is folded: floats as f32, everything whole as i64, complex numbers as c64. */
static mps_dtype fold_dtype(mps_dtype dtype) {
  if (mps_dtype_is_floating(dtype)) return MPS_DTYPE_F32;
  return mps_dtype_is_complex(dtype) ? MPS_DTYPE_C64 : MPS_DTYPE_I64;
}

mps_graph_node mps_graph_reduce(mps_graph_builder *b, mps_graph_reduction reduction, mps_graph_node source, const int64_t *dimensions,
                                uint32_t count, bool keep_dimensions) {
  static const uint8_t folds[] = {[MPS_GRAPH_SUM] = FOLD_SUM, [MPS_GRAPH_MEAN] = FOLD_SUM, [MPS_GRAPH_PROD] = FOLD_PROD,
                                  [MPS_GRAPH_MIN] = FOLD_MIN, [MPS_GRAPH_MAX] = FOLD_MAX};
  if (!usable(b, source)) return MPS_GRAPH_NONE;
  if ((unsigned)reduction > MPS_GRAPH_MAX) return fail(b, "there is no such reduction");
  const graph_node from = b->nodes[source];
  const mps_dtype dtype = (mps_dtype)from.dtype, wide = fold_dtype(dtype);
  const bool extreme = reduction == MPS_GRAPH_MIN || reduction == MPS_GRAPH_MAX;
  uint32_t mask;
  if (!reduce_mask(b, &from, dimensions, count, &mask)) return MPS_GRAPH_NONE;
  int64_t reduced = 1;
  for (uint32_t d = 0; d < from.rank; d++) reduced *= mask >> d & 1u ? from.sizes[d] : 1;
  if (reduction == MPS_GRAPH_MEAN && wide == MPS_DTYPE_I64) return fail(b, "a mean needs a floating point or complex dtype");
  if (extreme && (wide == MPS_DTYPE_C64 || dtype == MPS_DTYPE_U64)) return fail(b, "there is no minimum or maximum of complex numbers, nor yet of uint64");
  if (extreme && reduced == 0) return fail(b, "a minimum or maximum of no element");
  mps_graph_node node = wide == MPS_DTYPE_I64 ? mps_graph_cast(b, source, wide) : source;
  node = add_reduce(b, node, (graph_fold)folds[reduction], mask);
  if (reduction == MPS_GRAPH_MEAN) {
    const mps_graph_node parts[] = {node, mps_graph_constant(b, mps_scalar_float((double)reduced))};
    node = mps_graph_apply(b, MPS_FORMULA_DIV, parts, NULL);
  }
  node = mps_graph_cast(b, node, extreme || wide != MPS_DTYPE_I64 ? dtype : wide);
  if (keep_dimensions || !usable(b, node)) return node;
  int order[MPS_MAX_RANK];
  uint32_t rank = 0;
  for (uint32_t d = 0; d < from.rank; d++)
    if (!(mask >> d & 1u)) order[rank++] = (int)d;
  return rank == from.rank ? node : mps_graph_arrange(b, node, rank, order);
}

void mps_graph_output(mps_graph_builder *b, mps_graph_node node, mps_dtype dtype) {
  node = mps_graph_cast(b, node, dtype);
  if (!usable(b, node)) return;
  if (b->output_count == MPS_GRAPH_MAX_TENSORS) {
    fail(b, "a graph has too many outputs");
    return;
  }
  b->outputs[b->output_count++] = (uint16_t)node;
}

bool mps_graph_describe(const mps_graph_builder *b, mps_graph_node node, mps_dtype *out_dtype, uint32_t *out_rank, int64_t *out_sizes) {
  if (node >= b->node_count) return false;
  if (out_dtype) *out_dtype = (mps_dtype)b->nodes[node].dtype;
  if (out_rank) *out_rank = b->nodes[node].rank;
  if (out_sizes) memcpy(out_sizes, b->nodes[node].sizes, sizeof b->nodes[node].sizes);
  return true;
}
