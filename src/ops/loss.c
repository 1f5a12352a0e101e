/* SPDX-License-Identifier: BSD-3-Clause
 *
 * loss: losses that are a formula of two tensors and a reduction, and their gradients.
 */
#include <stddef.h>
#include <string.h>

#include "graph/graph.h"
#include "openmps/ops/loss.h"
#include "openmps/ops/pointwise.h"
#include "ops/operand.h"
#include "ops/pointwise.h"

/* at::Reduction */
enum { REDUCTION_NONE, REDUCTION_MEAN, REDUCTION_SUM };

/* The shape that two tensors broadcast to. */
static mps_status broadcast(const char *label, const mps_tensor *a, const mps_tensor *b, mps_tensor *out) {
  uint32_t rank = a->rank > b->rank ? a->rank : b->rank;
  int64_t sizes[MPS_MAX_RANK];
  for (uint32_t d = 0; d < rank; d++) {
    int64_t x = d + a->rank < rank ? 1 : a->sizes[d + a->rank - rank], y = d + b->rank < rank ? 1 : b->sizes[d + b->rank - rank];
    if (x != y && x != 1 && y != 1)
      return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s: The size of tensor a (%lld) must match the size of tensor b (%lld) at dimension %u", label,
                           (long long)x, (long long)y, (unsigned)d);
    sizes[d] = x == 1 ? y : x;
  }
  mps_tensor_set_contiguous(out, rank, sizes);
  return MPS_STATUS_OK;
}

/* A formula of self and target, times a weight if there is one. */
typedef struct loss {
  const char *label;
  mps_formula formula;
  const mps_tensor *self, *target, *weight;
  mps_scalar parameters[2];
  uint32_t parameter_count;
} loss;

static mps_status encode_elements(mps_stream *stream, const loss *l, const mps_tensor *out) {
  const mps_tensor *const inputs[] = {l->self, l->target};
  mps_status status = mps_pointwise(stream, l->formula, inputs, 2, l->parameters, l->parameter_count, out, l->label);
  return status != MPS_STATUS_OK || !l->weight ? status : mps_op_mul(stream, out, l->weight, out);
}

/* ---- reduced losses: one graph, so that the elements are never stored ---- */
typedef struct loss_key {
  uint16_t formula;
  uint8_t mean, tensor_count, out_dtype, dtypes[3], ranks[3], padding[5];
  double parameters[2];
  int64_t sizes[3][MPS_MAX_RANK]; /* of self, target, weight */
} loss_key;

/* Elements are rounded to out's dtype before they are added up, as on the CPU. */
static mps_status build_reduced(mps_graph_builder *b, void *context) {
  const loss_key *key = context;
  mps_graph_node sources[3];
  for (uint32_t i = 0; i < key->tensor_count; i++) sources[i] = mps_graph_input(b, (mps_dtype)key->dtypes[i], key->ranks[i], key->sizes[i]);
  const mps_scalar parameters[] = {mps_scalar_float(key->parameters[0]), mps_scalar_float(key->parameters[1])};
  mps_graph_node elements = mps_graph_cast(b, mps_graph_apply(b, (mps_formula)key->formula, sources, parameters), (mps_dtype)key->out_dtype);
  if (key->tensor_count == 3) {
    const mps_graph_node pair[] = {elements, sources[2]};
    elements = mps_graph_cast(b, mps_graph_apply(b, MPS_FORMULA_MUL, pair, NULL), (mps_dtype)key->out_dtype);
  }
  mps_graph_output(b, mps_graph_reduce(b, key->mean ? MPS_GRAPH_MEAN : MPS_GRAPH_SUM, elements, NULL, 0, false), (mps_dtype)key->out_dtype);
  return MPS_STATUS_OK;
}

static bool same_shape(const mps_tensor *a, const mps_tensor *b) {
  return a->rank == b->rank && memcmp(a->sizes, b->sizes, a->rank * sizeof a->sizes[0]) == 0;
}

/* Tensors of one shape without gaps are seen as one dimension: few graphs serve all shapes. */
static void flatten(mps_tensor *tensors, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (!tensors[i].buffer || !mps_tensor_is_contiguous(&tensors[i]) || !same_shape(&tensors[0], &tensors[i])) return;
  const int64_t elements = mps_tensor_element_count(&tensors[0]);
  for (uint32_t i = 0; i < count; i++) mps_tensor_set_contiguous(&tensors[i], 1, &elements);
}

static mps_status run_reduced(mps_stream *stream, const loss *l, bool mean, const mps_tensor *out) {
  mps_tensor tensors[3] = {*l->self, *l->target};
  loss_key key;
  memset(&key, 0, sizeof key);
  key.tensor_count = l->weight ? 3 : 2;
  if (l->weight) tensors[2] = *l->weight;
  flatten(tensors, key.tensor_count);
  key.formula = (uint16_t)l->formula;
  key.mean = mean;
  key.out_dtype = (uint8_t)out->dtype;
  for (uint32_t i = 0; i < l->parameter_count; i++) key.parameters[i] = mps_scalar_to_double(l->parameters[i]);
  for (uint32_t i = 0; i < key.tensor_count; i++) {
    key.dtypes[i] = (uint8_t)tensors[i].dtype;
    key.ranks[i] = tensors[i].rank;
    memcpy(key.sizes[i], tensors[i].sizes, tensors[i].rank * sizeof tensors[i].sizes[0]);
  }
  mps_graph *graph;
  mps_status status = mps_graph_cache_find(mps_stream_device(stream), l->label, &key, sizeof key, build_reduced, &key, &graph);
  if (status != MPS_STATUS_OK) return status;
  status = mps_graph_run(graph, stream, tensors, key.tensor_count, NULL, 0, out, 1);
  mps_graph_release(graph);
  return status;
}

static mps_status run(mps_stream *stream, const loss *l, int64_t reduction, const mps_tensor *out) {
  if (reduction == REDUCTION_NONE) return encode_elements(stream, l, out);
  mps_tensor shape;
  mps_status status = broadcast(l->label, l->self, l->target, &shape);
  return status != MPS_STATUS_OK ? status : run_reduced(stream, l, reduction == REDUCTION_MEAN, out);
}

mps_status mps_op_mse_loss(mps_stream *stream, const mps_tensor *self, const mps_tensor *target, int64_t reduction, const mps_tensor *out) {
  loss l = {.label = "mse_loss", .formula = MPS_FORMULA_SQUARED_DIFFERENCE, .self = self, .target = target};
  return run(stream, &l, reduction, out);
}

mps_status mps_op_smooth_l1_loss(mps_stream *stream, const mps_tensor *self, const mps_tensor *target, int64_t reduction, double beta,
                                 const mps_tensor *out) {
  loss l = {.label = "smooth_l1_loss", .formula = MPS_FORMULA_SMOOTH_L1, .self = self, .target = target, .parameters = {mps_scalar_float(beta)},
            .parameter_count = 1};
  return run(stream, &l, reduction, out);
}

mps_status mps_op_huber_loss(mps_stream *stream, const mps_tensor *self, const mps_tensor *target, int64_t reduction, double delta,
                             const mps_tensor *out) {
  if (!(delta > 0.0)) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "huber_loss does not support non-positive values for delta.");
  loss l = {.label = "huber_loss", .formula = MPS_FORMULA_HUBER, .self = self, .target = target, .parameters = {mps_scalar_float(delta)},
            .parameter_count = 1};
  return run(stream, &l, reduction, out);
}

mps_status mps_op_binary_cross_entropy(mps_stream *stream, const mps_tensor *self, const mps_tensor *target, const mps_tensor *weight,
                                       int64_t reduction, const mps_tensor *out) {
  loss l = {.label = "binary_cross_entropy", .formula = MPS_FORMULA_BINARY_CROSS_ENTROPY, .self = self, .target = target, .weight = weight};
  return run(stream, &l, reduction, out);
}

/* ---- gradients ---- */
/* The factor of a mean is 1 / the elements of the result, which has the broadcast shape. */
static double share(int64_t reduction, const mps_tensor *grad_input) {
  return reduction == REDUCTION_MEAN ? 1.0 / (double)mps_tensor_element_count(grad_input) : 1.0;
}

mps_status mps_op_mse_loss_backward(mps_stream *stream, const mps_tensor *grad_output, const mps_tensor *self, const mps_tensor *target,
                                    int64_t reduction, const mps_tensor *grad_input) {
  const mps_tensor *const inputs[] = {grad_output, self, target};
  const mps_scalar factor = mps_scalar_float(2.0 * share(reduction, grad_input));
  return mps_pointwise(stream, MPS_FORMULA_SQUARED_DIFFERENCE_BACKWARD, inputs, 3, &factor, 1, grad_input, "mse_loss_backward");
}

mps_status mps_op_smooth_l1_loss_backward(mps_stream *stream, const mps_tensor *grad_output, const mps_tensor *self, const mps_tensor *target,
                                          int64_t reduction, double beta, const mps_tensor *grad_input) {
  const mps_tensor *const inputs[] = {grad_output, self, target};
  const mps_scalar parameters[] = {mps_scalar_float(beta), mps_scalar_float(share(reduction, grad_input))};
  return mps_pointwise(stream, MPS_FORMULA_SMOOTH_L1_BACKWARD, inputs, 3, parameters, 2, grad_input, "smooth_l1_loss_backward");
}

mps_status mps_op_huber_loss_backward(mps_stream *stream, const mps_tensor *grad_output, const mps_tensor *self, const mps_tensor *target,
                                      int64_t reduction, double delta, const mps_tensor *grad_input) {
  const mps_tensor *const inputs[] = {grad_output, self, target};
  const mps_scalar parameters[] = {mps_scalar_float(delta), mps_scalar_float(share(reduction, grad_input))};
  return mps_pointwise(stream, MPS_FORMULA_HUBER_BACKWARD, inputs, 3, parameters, 2, grad_input, "huber_loss_backward");
}

mps_status mps_op_binary_cross_entropy_backward(mps_stream *stream, const mps_tensor *grad_output, const mps_tensor *self, const mps_tensor *target,
                                                const mps_tensor *weight, int64_t reduction, const mps_tensor *grad_input) {
  const mps_tensor *const inputs[] = {grad_output, self, target};
  const mps_scalar factor = mps_scalar_float(share(reduction, grad_input));
  mps_status status =
      mps_pointwise(stream, MPS_FORMULA_BINARY_CROSS_ENTROPY_BACKWARD, inputs, 3, &factor, 1, grad_input, "binary_cross_entropy_backward");
  return status != MPS_STATUS_OK || !weight ? status : mps_op_mul(stream, grad_input, weight, grad_input);
}
