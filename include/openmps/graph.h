/* SPDX-License-Identifier: BSD-3-Clause
 *
 * graph: a computation of several operators, compiled once and run many times.
 *
 *   static mps_status build(mps_graph_builder *b, void *context) {
 *     mps_graph_node x = mps_graph_input(b, MPS_DTYPE_F32, 2, (int64_t[]){rows, columns});
 *     mps_graph_node mean = mps_graph_reduce(b, MPS_GRAPH_MEAN, x, (int64_t[]){1}, 1, true);
 *     mps_graph_output(b, mps_graph_formula(b, "sub", (mps_graph_node[]){x, mean}, NULL), MPS_DTYPE_F32);
 *     return MPS_STATUS_OK;
 *   }
 *   mps_graph_cache_find(device, &key, sizeof key, build, &context, &graph);
 *   mps_graph_run(graph, stream, &x, 1, NULL, 0, &out, 1);
 *   mps_graph_release(graph);
 *
 * Pointwise formulas are fused into programs, and into the reductions that read them; a result does not depend on what was fused. Dtypes
 * follow PyTorch's rules. A builder belongs to one thread; compiled graphs are immutable and run from any number of threads.
 */
#ifndef OPENMPS_GRAPH_H
#define OPENMPS_GRAPH_H

#include "openmps/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mps_graph mps_graph;
typedef struct mps_graph_builder mps_graph_builder;
/* A value of a builder. After a failure calls return MPS_GRAPH_NONE, which may be passed on; the failure comes back from mps_graph_compile. */
typedef uint32_t mps_graph_node;
#define MPS_GRAPH_NONE UINT32_MAX

typedef enum mps_graph_reduction {
  MPS_GRAPH_SUM,  /* integers and bools: int64 */
  MPS_GRAPH_MEAN, /* floating and complex dtypes */
  MPS_GRAPH_PROD,
  MPS_GRAPH_MIN, /* a NaN wins; bools: all */
  MPS_GRAPH_MAX, /* bools: any */
} mps_graph_reduction;

/* ---- building ---- */
/* `label` names the graph's steps in errors and profiles, and lives for ever. */
MPS_API MPS_WARN_UNUSED mps_status mps_graph_builder_create(mps_device *device, const char *label, mps_graph_builder **out_builder);
MPS_API void mps_graph_builder_destroy(mps_graph_builder *builder); /* accepts NULL */
/* Inputs are numbered from 0 in the order of these calls; so are scalars and outputs. */
MPS_API mps_graph_node mps_graph_input(mps_graph_builder *builder, mps_dtype dtype, uint32_t rank, const int64_t *sizes);
/* A number that is given at each run and does not change the compiled graph. In promotion it is a Python number of `kind`. */
MPS_API mps_graph_node mps_graph_scalar(mps_graph_builder *builder, mps_scalar_kind kind);
/* A Python number. */
MPS_API mps_graph_node mps_graph_constant(mps_graph_builder *builder, mps_scalar number);
/* A formula of the table by its name ("add", "exp", "where"); sources broadcast. `parameters` (alpha, min, ...) may be NULL if it has none. */
MPS_API mps_graph_node mps_graph_formula(mps_graph_builder *builder, const char *name, const mps_graph_node *sources, const mps_scalar *parameters);
MPS_API mps_graph_node mps_graph_cast(mps_graph_builder *builder, mps_graph_node node, mps_dtype dtype);
/* Over `count` dimensions (NULL or 0: all). */
MPS_API mps_graph_node mps_graph_reduce(mps_graph_builder *builder, mps_graph_reduction reduction, mps_graph_node node, const int64_t *dimensions,
                                        uint32_t count, bool keep_dimensions);
/* The same elements seen otherwise: dimension d of the result is dimension order[d] of the node, or for -1 a new one of size 1. Dimensions that are
 * left out have size 1. Serves transpose, unsqueeze and squeeze. */
MPS_API mps_graph_node mps_graph_arrange(mps_graph_builder *builder, mps_graph_node node, uint32_t rank, const int *order);
/* Broadcasts to a shape. */
MPS_API mps_graph_node mps_graph_expand(mps_graph_builder *builder, mps_graph_node node, uint32_t rank, const int64_t *sizes);
/* The value, converted to `dtype`, goes to the next output tensor. */
MPS_API void mps_graph_output(mps_graph_builder *builder, mps_graph_node node, mps_dtype dtype);
/* What was inferred; false for MPS_GRAPH_NONE. Any pointer may be NULL; sizes takes MPS_MAX_RANK. */
MPS_API bool mps_graph_describe(const mps_graph_builder *builder, mps_graph_node node, mps_dtype *out_dtype, uint32_t *out_rank, int64_t *out_sizes);

/* ---- compiled graphs ---- */
/* Fuses and compiles what was built, or finds the same graph in the device's cache. The caller owns one reference. */
MPS_API MPS_WARN_UNUSED mps_status mps_graph_compile(mps_graph_builder *builder, mps_graph **out_graph);
MPS_API mps_graph *mps_graph_retain(mps_graph *graph);
MPS_API void mps_graph_release(mps_graph *graph); /* accepts NULL; encoded steps do not need the graph */
/* Encodes the graph's steps. Tensors have the dtypes and shapes that were built for, and any strides; inputs may be constants. An output may lie on inputs in any
 * way: all values that are read are the old ones. Outputs do not overlap each other. INVALID_ARGUMENT encodes nothing. */
MPS_API MPS_WARN_UNUSED mps_status mps_graph_run(const mps_graph *graph, mps_stream *stream, const mps_tensor *inputs, uint32_t input_count,
                                                 const mps_scalar *scalars, uint32_t scalar_count, const mps_tensor *outputs, uint32_t output_count);
/* Steps that a run of large contiguous tensors encodes (others may take some more), and bytes of temporary memory that it takes. */
MPS_API uint32_t mps_graph_step_count(const mps_graph *graph);
MPS_API uint64_t mps_graph_scratch_bytes(const mps_graph *graph);

/* ---- the cache of a device ---- */
typedef mps_status (*mps_graph_build)(mps_graph_builder *builder, void *context);
/* The graph that `build` made for this key (any bytes: all that it makes depends on), or builds and compiles it. The caller owns one reference. */
MPS_API MPS_WARN_UNUSED mps_status mps_graph_cache_find(mps_device *device, const char *label, const void *key, size_t key_length,
                                                        mps_graph_build build, void *context, mps_graph **out_graph);

typedef struct mps_graph_statistics {
  uint64_t hits;       /* of mps_graph_cache_find by the caller's key */
  uint64_t misses;     /* of it: the build function ran */
  uint64_t shared;     /* builds that turned out to be a graph that was there */
  uint64_t compiled;
  uint64_t evictions;  /* graphs dropped because the cache was full */
  uint64_t runs;
  uint64_t graphs;     /* in the cache now */
} mps_graph_statistics;
MPS_API void mps_graph_get_statistics(mps_device *device, mps_graph_statistics *out);
/* Forgets all graphs. */
MPS_API void mps_graph_cache_clear(mps_device *device);

#ifdef __cplusplus
}
#endif
#endif
