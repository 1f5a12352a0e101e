/* SPDX-License-Identifier: BSD-3-Clause
 *
 * norm_weight: weight norm: v scaled to the length g along one dimension, and its gradients.
 */
#include "openmps/ops.h"
#include "ops/norm.h"

/* All dimensions but `dim`, for the reductions. */
static uint32_t other_dimensions(const mps_tensor *v, uint32_t dim, int64_t *dimensions) {
  uint32_t count = 0;
  for (uint32_t d = 0; d < v->rank; d++)
    if (d != dim) dimensions[count++] = d;
  return count;
}

static mps_status check(const char *label, const mps_tensor *v, const mps_tensor *g, int64_t dim, uint32_t *out_dim) {
  mps_status status = mps_operand_dimension(dim, v->rank, out_dim);
  if (status != MPS_STATUS_OK) return status;
  if (v->rank < 2 || g->rank != v->rank || mps_tensor_element_count(g) != v->sizes[*out_dim])
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s: g must have the rank of v (2 or more) and its %lld elements along dimension %u", label,
                         (long long)(v->rank ? v->sizes[*out_dim] : 1), (unsigned)*out_dim);
  return MPS_STATUS_OK;
}

/* A float temporary of g's shape. */
static mps_status create_like(mps_norm_temporaries *t, const mps_tensor *g, mps_tensor *out) {
  mps_status status = mps_operand_create(t->stream, MPS_DTYPE_F32, g->rank, g->sizes, out);
  if (status == MPS_STATUS_OK) mps_norm_keep(t, out->buffer);
  return status;
}

/* out = v * (g / norms) */
mps_status mps_op_weight_norm(mps_stream *stream, const mps_tensor *v, const mps_tensor *g, int64_t dim, const mps_tensor *out, const mps_tensor *norms) {
  uint32_t d;
  mps_status status = check("weight_norm", v, g, dim, &d);
  if (status != MPS_STATUS_OK) return status;
  mps_norm_temporaries t = {.stream = stream};
  int64_t dimensions[MPS_MAX_RANK];
  uint32_t count = other_dimensions(v, d, dimensions);
  mps_tensor lengths, ratio;
  status = create_like(&t, g, &lengths);
  if (status == MPS_STATUS_OK) status = create_like(&t, g, &ratio);
  if (status == MPS_STATUS_OK) status = mps_op_linalg_vector_norm(stream, v, mps_scalar_float(2.0), dimensions, count, true, NULL, &lengths);
  if (status == MPS_STATUS_OK) status = mps_op_copy(stream, &lengths, norms);
  if (status == MPS_STATUS_OK) status = mps_op_div(stream, g, &lengths, &ratio);
  if (status == MPS_STATUS_OK) status = mps_op_mul(stream, v, &ratio, out);
  mps_norm_release(&t);
  return status;
}

/* With s = sum of grad * v: grad_g = s / norms; grad_v = grad * g / norms - v * g * s / norms^3. */
mps_status mps_op_weight_norm_backward(mps_stream *stream, const mps_tensor *grad, const mps_tensor *v, const mps_tensor *g, const mps_tensor *norms,
                                       int64_t dim, const mps_tensor *grad_v, const mps_tensor *grad_g) {
  uint32_t d;
  mps_status status = check("weight_norm_backward", v, g, dim, &d);
  if (status != MPS_STATUS_OK) return status;
  mps_norm_temporaries t = {.stream = stream};
  int64_t dimensions[MPS_MAX_RANK];
  uint32_t count = other_dimensions(v, d, dimensions);
  mps_tensor products, sums, slope, ratio, pull;
  status = mps_operand_create(stream, MPS_DTYPE_F32, v->rank, v->sizes, &products);
  if (status == MPS_STATUS_OK) mps_norm_keep(&t, products.buffer);
  if (status == MPS_STATUS_OK) status = create_like(&t, g, &sums);
  if (status == MPS_STATUS_OK) status = create_like(&t, g, &slope);
  if (status == MPS_STATUS_OK) status = create_like(&t, g, &ratio);
  if (status == MPS_STATUS_OK) status = create_like(&t, g, &pull);
  if (status == MPS_STATUS_OK) status = mps_op_mul(stream, grad, v, &products);
  if (status == MPS_STATUS_OK) status = mps_op_sum(stream, &products, dimensions, count, true, NULL, &sums);
  if (status == MPS_STATUS_OK) status = mps_op_div(stream, &sums, norms, &slope);
  if (status == MPS_STATUS_OK) status = mps_op_copy(stream, &slope, grad_g);
  if (status == MPS_STATUS_OK) status = mps_op_div(stream, g, norms, &ratio);
  if (status == MPS_STATUS_OK) status = mps_op_mul(stream, &ratio, &slope, &pull);
  if (status == MPS_STATUS_OK) status = mps_op_div(stream, &pull, norms, &pull);
  if (status == MPS_STATUS_OK) status = mps_op_mul(stream, v, &pull, &products);
  if (status == MPS_STATUS_OK) {
    mps_tensor scaled;
    status = mps_operand_create(stream, MPS_DTYPE_F32, v->rank, v->sizes, &scaled);
    if (status == MPS_STATUS_OK) mps_norm_keep(&t, scaled.buffer);
    if (status == MPS_STATUS_OK) status = mps_op_mul(stream, grad, &ratio, &scaled);
    if (status == MPS_STATUS_OK) status = mps_op_sub(stream, &scaled, &products, mps_scalar_int(1), grad_v);
  }
  mps_norm_release(&t);
  return status;
}
