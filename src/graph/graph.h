/* SPDX-License-Identifier: BSD-3-Clause
 *
 * graph: what the files of the graph room share. Nodes (builder.c) become stages (fuse.c), stages become templates of steps (compile.c), and a
 * run fills templates in with addresses, strides and numbers (run.c). Fusing is pure; compiling needs a device for its kernels.
 */
#ifndef OPENMPS_GRAPH_GRAPH_H
#define OPENMPS_GRAPH_GRAPH_H

#include <stdatomic.h>

#include "base/status.h"
#include "driver/driver.h"
#include "openmps/graph.h"
#include "graph/formula.h"

#define MPS_GRAPH_MAX_NODES 1024
#define MPS_GRAPH_MAX_TENSORS 64 /* inputs, or outputs, or scalars */
#define MPS_GRAPH_MAX_STAGES 64
#define MPS_GRAPH_MAX_TEMPORARIES 128
#define MPS_GRAPH_NO_SLOT 0xffffu
#define MPS_GRAPH_OUTPUT_ROOT 0x8000u /* | number of an output */

typedef enum graph_node_kind { NODE_INPUT, NODE_SCALAR, NODE_CONSTANT, NODE_FORMULA, NODE_CAST, NODE_REDUCE, NODE_VIEW } graph_node_kind;
/* What a reduce node folds with; the names are the kernels'. X(NAME, kernel name) */
#define MPS_GRAPH_FOLD_LIST(X) X(SUM, sum) X(PROD, prod) X(MIN, min) X(MAX, max)
typedef enum graph_fold {
#define X(name, text) FOLD_##name,
  MPS_GRAPH_FOLD_LIST(X)
#undef X
} graph_fold;

typedef struct graph_node {
  uint8_t kind, dtype, category, rank;
  uint8_t source_count, common, fold, index; /* common: dtype a formula computes in; index: of an input or scalar */
  uint16_t formula;
  uint16_t sources[MPS_PROGRAM_MAX_SOURCES];
  uint32_t mask;      /* reduce: dimensions; they keep their place with size 1 */
  mps_scalar scalars[MPS_PROGRAM_MAX_PARAMETERS]; /* of a formula; the first one: a constant */
  int8_t order[MPS_MAX_RANK]; /* view: the source's dimension; -1: broadcast */
  int64_t sizes[MPS_MAX_RANK];
} graph_node;

struct mps_graph_builder {
  mps_device *device;
  const char *label;
  mps_status failure;
  uint32_t node_count, node_capacity;
  graph_node *nodes;
  uint32_t input_count, scalar_count, output_count;
  uint16_t inputs[MPS_GRAPH_MAX_TENSORS];
  uint8_t scalar_kinds[MPS_GRAPH_MAX_TENSORS];
  uint16_t outputs[MPS_GRAPH_MAX_TENSORS]; /* nodes of the output's dtype */
  uint32_t options; /* for tests: MPS_GRAPH_* below */
};
enum {
  MPS_GRAPH_UNFUSED = 1,  /* each formula becomes a program of its own */
  MPS_GRAPH_NO_ROWS = 2,  /* stages are not run together row by row */
  MPS_GRAPH_UNCACHED = 4, /* compile anew */
  MPS_GRAPH_ALL_ROWS = 8, /* stages are run together row by row however small they are */
};

/* The formula by number instead of name. */
mps_graph_node mps_graph_apply(mps_graph_builder *builder, mps_formula formula, const mps_graph_node *sources, const mps_scalar *parameters);
int64_t mps_graph_node_count(const graph_node *node);

/* ---- fuse.c ---- */
/* Nodes whose values exist in memory at once: the results of one program. */
typedef struct graph_stage_plan {
  uint8_t reduces; /* roots are reduce nodes of one mask and shape; else pointwise values of one shape */
  uint8_t rank;
  uint8_t group;   /* stages of one number > 0 run row by row together */
  uint32_t mask;
  uint32_t root_count;
  uint16_t roots[MPS_PROGRAM_MAX_OPERANDS];
  int64_t sizes[MPS_MAX_RANK];
} graph_stage_plan;

typedef struct graph_plan {
  uint32_t stage_count;
  graph_stage_plan stages[MPS_GRAPH_MAX_STAGES];
  uint8_t *stored; /* a node: 1 if its value goes to temporary memory (freed by mps_graph_plan_fini) */
} graph_plan;

/* A tensor in memory as an iteration meets it. */
typedef struct graph_leaf {
  uint32_t node; /* MPS_GRAPH_NONE: none */
  int8_t order[MPS_MAX_RANK]; /* the node's dimension -> the iteration's; -1: broadcast */
} graph_leaf;

/* How the dimensions of `node` meet those of its source, given how they meet the iteration. */
void mps_graph_source_order(const mps_graph_builder *builder, const graph_node *node, uint32_t source, const int8_t *order, int8_t *out_order);
/* The tensor whose layout a value of this shape follows: of each formula's sources the first that has the whole shape leads. What is stored on the
 * way has its leader's layout, so that the way through memory, and with it the order of sums, does not depend on what is fused. */
graph_leaf mps_graph_leader(const mps_graph_builder *builder, const uint8_t *stored, uint32_t node, bool root, uint32_t rank, const int64_t *sizes);

MPS_WARN_UNUSED mps_status mps_graph_plan(const mps_graph_builder *builder, graph_plan *out_plan);
void mps_graph_plan_fini(graph_plan *plan);

/* ---- compiled ---- */
/* Tensors of a run: inputs, then outputs, then temporaries. */
typedef struct graph_operand {
  uint16_t slot;     /* MPS_GRAPH_NO_SLOT: a constant */
  uint8_t parameter; /* constants: number of the scalar, or MPS_PROGRAM_NO_PARAMETER */
  uint8_t dtype;     /* of the parameter's rounding */
  uint8_t leader;    /* written temporaries: operand whose layout it takes; 255: row-major */
  int8_t order[MPS_MAX_RANK]; /* dimension of the iteration -> the tensor's; -1: stays */
} graph_operand;

typedef struct graph_stage {
  uint8_t rank, group, reduces, leader; /* leader: operand whose strides order the iteration; 255: none */
  uint32_t mask, operand_count, instruction_count, register_count, result_count;
  float cost; /* nanoseconds an element */
  uint64_t element_count, kept_count, reduce_count;
  int64_t sizes[MPS_MAX_RANK];
  mps_operand *operands;
  graph_operand *operand_sources;
  mps_instruction *instructions;
  uint16_t result_slots[MPS_REDUCE_MAX_RESULTS];
  mps_reduce_result results[MPS_REDUCE_MAX_RESULTS];
} graph_stage;

typedef struct graph_tensor {
  uint8_t dtype, rank;
  uint16_t last_read;  /* stage + 1 that reads it last; 0: none */
  uint16_t writer;     /* stage that makes it */
  uint64_t offset;     /* of a temporary */
  uint64_t element_count;
  int64_t sizes[MPS_MAX_RANK];
} graph_tensor;

struct mps_graph {
  _Atomic uint32_t references;
  mps_device *device; /* not owned */
  const char *label;
  _Atomic uint64_t *runs; /* the cache's counter */
  uint32_t input_count, output_count, scalar_count, temporary_count, stage_count, step_count;
  uint64_t scratch_bytes;
  uint64_t rows[MPS_GRAPH_MAX_STAGES + 1]; /* of each group */
  uint64_t rows_least; /* elements of a stage from which on its group runs row by row */
  graph_tensor *tensors;
  graph_stage *stages;
};

/* compile.c: without the cache. */
MPS_WARN_UNUSED mps_status mps_graph_compile_plan(const mps_graph_builder *builder, const graph_plan *plan, mps_graph **out_graph);
MPS_WARN_UNUSED mps_status mps_graph_compile_new(const mps_graph_builder *builder, mps_graph **out_graph);
void mps_graph_free(mps_graph *graph);

#endif
