/* SPDX-License-Identifier: BSD-3-Clause
 *
 * norm_weight: weight norm, w = v g / |v| with lengths over all dimensions but one, and its gradient. Graphs, computed in float.
 */
#include <stddef.h>
#include <string.h>

#include "graph/graph.h"
#include "openmps/ops/norm.h"

typedef mps_graph_node node;

/* Tensors: v, g, out, norms; or grad, v, g, norms, grad_v, grad_g. */
typedef struct weight_key {
  uint8_t rank, dim, dtypes[6];
  int64_t sizes[MPS_MAX_RANK]; /* of v; rank of them count */
} weight_key;

static mps_status make_key(const char *label, const mps_tensor *v, const mps_tensor *g, int64_t dim, const mps_tensor *const *tensors, uint32_t count,
                           weight_key *key) {
  const int64_t d = dim < 0 ? dim + v->rank : dim;
  if (v->rank == 0 || d < 0 || d >= v->rank)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "Dimension out of range (expected to be in range of [%d, %d], but got %lld)", -(int)v->rank,
                         (int)v->rank - 1, (long long)dim);
  bool fits = g->rank == v->rank;
  for (uint32_t i = 0; fits && i < v->rank; i++) fits = g->sizes[i] == (i == (uint32_t)d ? v->sizes[i] : 1);
  if (!fits || v->rank < 2)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s: g must have the rank of v (2 or more) and its %lld elements along dimension %lld", label,
                         (long long)v->sizes[d], (long long)d);
  memset(key, 0, sizeof *key);
  key->rank = v->rank;
  key->dim = (uint8_t)d;
  memcpy(key->sizes, v->sizes, v->rank * sizeof v->sizes[0]);
  for (uint32_t i = 0; i < count; i++) key->dtypes[i] = (uint8_t)tensors[i]->dtype;
  return MPS_STATUS_OK;
}

/* An input in float: of v's shape, or of g's. */
static node read(mps_graph_builder *b, const weight_key *key, uint32_t tensor, bool whole) {
  int64_t sizes[MPS_MAX_RANK];
  for (uint32_t d = 0; d < key->rank; d++) sizes[d] = whole || d == key->dim ? key->sizes[d] : 1;
  return mps_graph_cast(b, mps_graph_input(b, (mps_dtype)key->dtypes[tensor], key->rank, sizes), MPS_DTYPE_F32);
}

static node binary(mps_graph_builder *b, mps_formula formula, node x, node y) { return mps_graph_apply(b, formula, (node[]){x, y}, NULL); }
static node multiply(mps_graph_builder *b, node x, node y) { return binary(b, MPS_FORMULA_MUL, x, y); }
static node divide(mps_graph_builder *b, node x, node y) { return binary(b, MPS_FORMULA_DIV, x, y); }

static node sum_of_others(mps_graph_builder *b, const weight_key *key, node x) {
  int64_t dimensions[MPS_MAX_RANK];
  uint32_t count = 0;
  for (uint32_t d = 0; d < key->rank; d++)
    if (d != key->dim) dimensions[count++] = d;
  return mps_graph_reduce(b, MPS_GRAPH_SUM, x, dimensions, count, true);
}

/* out = v * (g / norms) */
static mps_status build_forward(mps_graph_builder *b, void *context) {
  const weight_key *key = context;
  const node v = read(b, key, 0, true), g = read(b, key, 1, false), squares = sum_of_others(b, key, multiply(b, v, v));
  const node norms = mps_graph_apply(b, MPS_FORMULA_SQRT, &squares, NULL);
  mps_graph_output(b, multiply(b, v, divide(b, g, norms)), (mps_dtype)key->dtypes[2]);
  mps_graph_output(b, norms, (mps_dtype)key->dtypes[3]);
  return MPS_STATUS_OK;
}

/* With s = sum of grad * v: grad_g = s / norms; grad_v = grad * g / norms - v * g * s / norms^3. */
static mps_status build_backward(mps_graph_builder *b, void *context) {
  const weight_key *key = context;
  const node grad = read(b, key, 0, true), v = read(b, key, 1, true), g = read(b, key, 2, false), norms = read(b, key, 3, false);
  const node slope = divide(b, sum_of_others(b, key, multiply(b, grad, v)), norms), ratio = divide(b, g, norms);
  const node pull = divide(b, multiply(b, ratio, slope), norms);
  mps_graph_output(b, binary(b, MPS_FORMULA_SUB, multiply(b, grad, ratio), multiply(b, v, pull)), (mps_dtype)key->dtypes[4]);
  mps_graph_output(b, slope, (mps_dtype)key->dtypes[5]);
  return MPS_STATUS_OK;
}

/* tensors: inputs, then the two outputs. */
static mps_status run(mps_stream *stream, const char *label, mps_graph_build build, weight_key *key, const mps_tensor *const *tensors, uint32_t input_count) {
  mps_tensor values[6];
  for (uint32_t i = 0; i < input_count + 2; i++) values[i] = *tensors[i];
  mps_graph *graph;
  mps_status status =
      mps_graph_cache_find(mps_stream_device(stream), label, key, offsetof(weight_key, sizes) + key->rank * sizeof key->sizes[0], build, key, &graph);
  if (status != MPS_STATUS_OK) return status;
  status = mps_graph_run(graph, stream, values, input_count, NULL, 0, values + input_count, 2);
  mps_graph_release(graph);
  return status;
}

mps_status mps_op_weight_norm(mps_stream *stream, const mps_tensor *v, const mps_tensor *g, int64_t dim, const mps_tensor *out, const mps_tensor *norms) {
  const mps_tensor *const tensors[] = {v, g, out, norms};
  weight_key key;
  const mps_status status = make_key("weight_norm", v, g, dim, tensors, 4, &key);
  return status != MPS_STATUS_OK ? status : run(stream, "weight_norm", build_forward, &key, tensors, 2);
}

mps_status mps_op_weight_norm_backward(mps_stream *stream, const mps_tensor *grad, const mps_tensor *v, const mps_tensor *g, const mps_tensor *norms,
                                       int64_t dim, const mps_tensor *grad_v, const mps_tensor *grad_g) {
  const mps_tensor *const tensors[] = {grad, v, g, norms, grad_v, grad_g};
  weight_key key;
  const mps_status status = make_key("weight_norm_backward", v, g, dim, tensors, 6, &key);
  return status != MPS_STATUS_OK ? status : run(stream, "weight_norm_backward", build_backward, &key, tensors, 4);
}
