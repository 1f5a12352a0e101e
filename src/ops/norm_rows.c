/* SPDX-License-Identifier: BSD-3-Clause
 *
 * norm_rows: layer norm and rms norm: rows of neighbouring elements, with their gradients.
 */
#include "graph/formula.h"
#include "openmps/ops/norm.h"
#include "ops/norm.h"

/* Nanoseconds an element on one core, estimates. */
#define FORWARD_COST 0.5
#define BACKWARD_COST 0.6
#define WEIGHT_COST 0.3
/* Elements that a thread of the weight's gradient takes. */
#define WEIGHT_ELEMENTS 32768

static mps_status check(const char *label, const mps_tensor *input, const int64_t *shape, uint32_t shape_count, const mps_tensor *weight,
                        mps_norm_rows *rows) {
  bool fits = shape_count >= 1 && shape_count <= input->rank;
  rows->rows = rows->count = 1;
  for (uint32_t d = 0; fits && d < input->rank; d++) {
    uint32_t first = input->rank - shape_count;
    if (d < first) {
      rows->rows *= input->sizes[d];
      continue;
    }
    fits = input->sizes[d] == shape[d - first];
    rows->count *= input->sizes[d];
  }
  if (!fits)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s: normalized_shape must be the last %u sizes of the input, which has rank %u", label,
                         (unsigned)shape_count, (unsigned)input->rank);
  if (!mps_dtype_is_floating(input->dtype))
    return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", label, mps_dtype_title(input->dtype));
  if (weight && mps_tensor_element_count(weight) != rows->count)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s: weight has %lld elements, normalized_shape %lld", label,
                         (long long)mps_tensor_element_count(weight), (long long)rows->count);
  return MPS_STATUS_OK;
}

/* ---- forward ---- */
static mps_status encode_forward(mps_operand_list *t, const char *label, mps_norm_rows *rows, const mps_tensor *input, const mps_tensor *weight,
                                 const mps_tensor *bias, const mps_tensor *out, const mps_tensor *mean, const mps_tensor *rstd) {
  mps_tensor x, storage[2];
  const mps_tensor *w, *b, *self;
  mps_status status = mps_norm_prepare(t, input, out->dtype, &x, &self);
  if (status == MPS_STATUS_OK) status = mps_norm_prepare(t, weight, MPS_DTYPE_F32, &storage[0], &w);
  if (status == MPS_STATUS_OK) status = mps_norm_prepare(t, bias, MPS_DTYPE_F32, &storage[1], &b);
  if (status != MPS_STATUS_OK) return status;
  rows->has_weight = w != NULL;
  rows->has_bias = b != NULL;
  const mps_norm_argument arguments[] = {mps_norm_read(self), mps_norm_write(out), mps_norm_bytes(rows, sizeof *rows), mps_norm_read(w),
                                         mps_norm_read(b),    mps_norm_write(mean), mps_norm_write(rstd)};
  return mps_norm_launch(t->stream, label, "norm_rows_forward", mps_dtype_name(out->dtype), arguments, 7, rows->rows, 1,
                         (double)rows->rows * (double)rows->count * FORWARD_COST);
}

static mps_status run_forward(mps_stream *stream, const char *label, mps_norm_rows *rows, const mps_tensor *input, const mps_tensor *weight,
                              const mps_tensor *bias, const mps_tensor *out, const mps_tensor *mean, const mps_tensor *rstd) {
  if (rows->rows == 0) return MPS_STATUS_OK;
  mps_operand_list t = {.stream = stream};
  mps_result results[3] = {{.out = NULL}, {.out = NULL}, {.out = NULL}};
  mps_status status = mps_result_begin(stream, out, input->dtype, mps_operands_equal(input, out) ? NULL : input, true, &results[0]);
  if (status == MPS_STATUS_OK && mean) status = mps_result_begin(stream, mean, MPS_DTYPE_F32, NULL, true, &results[1]);
  if (status == MPS_STATUS_OK) status = mps_result_begin(stream, rstd, MPS_DTYPE_F32, NULL, true, &results[2]);
  if (status == MPS_STATUS_OK)
    status = encode_forward(&t, label, rows, input, weight, bias, &results[0].tensor, mean ? &results[1].tensor : NULL, &results[2].tensor);
  for (int i = 0; i < 3; i++) status = mps_result_end(stream, &results[i], status);
  mps_operands_finish(&t);
  return status;
}

mps_status mps_op_layer_norm(mps_stream *stream, const mps_tensor *input, const int64_t *normalized_shape, uint32_t normalized_shape_count,
                             const mps_tensor *weight, const mps_tensor *bias, double eps, const mps_tensor *out, const mps_tensor *mean,
                             const mps_tensor *rstd) {
  mps_norm_rows rows = {.centred = 1, .epsilon = (float)eps};
  mps_status status = check("layer_norm", input, normalized_shape, normalized_shape_count, weight, &rows);
  return status != MPS_STATUS_OK ? status : run_forward(stream, "layer_norm", &rows, input, weight, bias, out, mean, rstd);
}

mps_status mps_op_rms_norm(mps_stream *stream, const mps_tensor *input, const int64_t *normalized_shape, uint32_t normalized_shape_count,
                           const mps_tensor *weight, double eps, const mps_tensor *out, const mps_tensor *rstd) {
  mps_norm_rows rows = {.centred = 0, .epsilon = (float)eps};
  mps_status status = check("rms_norm", input, normalized_shape, normalized_shape_count, weight, &rows);
  return status != MPS_STATUS_OK ? status : run_forward(stream, "rms_norm", &rows, input, weight, NULL, out, NULL, rstd);
}

/* ---- backward ---- */
/* What both gradients read, as the kernels want it. */
typedef struct backward {
  const char *label;
  mps_operand_list temporaries;
  mps_norm_rows rows;
  mps_tensor storage[5];
  const mps_tensor *grad, *input, *mean, *rstd, *weight;
} backward;

static mps_status prepare_backward(backward *b, const mps_tensor *grad, const mps_tensor *input, const mps_tensor *mean, const mps_tensor *rstd,
                                   const mps_tensor *weight) {
  mps_operand_list *t = &b->temporaries;
  mps_status status = mps_norm_prepare(t, grad, input->dtype, &b->storage[0], &b->grad);
  if (status == MPS_STATUS_OK) status = mps_norm_prepare(t, input, input->dtype, &b->storage[1], &b->input);
  if (status == MPS_STATUS_OK) status = mps_norm_prepare(t, mean, MPS_DTYPE_F32, &b->storage[2], &b->mean);
  if (status == MPS_STATUS_OK) status = mps_norm_prepare(t, rstd, MPS_DTYPE_F32, &b->storage[3], &b->rstd);
  if (status == MPS_STATUS_OK) status = mps_norm_prepare(t, weight, MPS_DTYPE_F32, &b->storage[4], &b->weight);
  return status;
}

static mps_status encode_input_gradient(backward *b, const mps_tensor *out) {
  mps_stream *stream = b->temporaries.stream;
  mps_result result;
  mps_status status = mps_result_begin(stream, out, b->input->dtype, NULL, true, &result);
  if (status != MPS_STATUS_OK) return status;
  b->rows.has_weight = b->weight != NULL;
  const mps_norm_argument arguments[] = {mps_norm_read(b->grad), mps_norm_read(b->input), mps_norm_bytes(&b->rows, sizeof b->rows),
                                         mps_norm_read(b->weight), mps_norm_read(b->mean), mps_norm_read(b->rstd), mps_norm_write(&result.tensor)};
  status = mps_norm_launch(stream, b->label, "norm_rows_backward", mps_dtype_name(b->input->dtype), arguments, 7, b->rows.rows, 1,
                           (double)b->rows.rows * (double)b->rows.count * BACKWARD_COST);
  return mps_result_end(stream, &result, status);
}

static mps_status finish_weight(backward *b, const mps_tensor *partials, int64_t chunks, const mps_tensor *out) {
  mps_stream *stream = b->temporaries.stream;
  mps_result result;
  mps_status status = mps_result_begin(stream, out, out->dtype, NULL, true, &result);
  if (status != MPS_STATUS_OK) return status;
  status = mps_reduce_finish_sums(stream, b->label, partials->buffer, chunks, 1.0f, &result.tensor);
  return mps_result_end(stream, &result, status);
}

static mps_status encode_weight_gradients(backward *b, const mps_tensor *weight_out, const mps_tensor *bias_out) {
  mps_norm_rows *rows = &b->rows;
  int64_t width = rows->count < MPS_NORM_TILE ? rows->count : MPS_NORM_TILE;
  rows->chunk = WEIGHT_ELEMENTS / width;
  rows->has_weight = weight_out != NULL;
  rows->has_bias = bias_out != NULL;
  int64_t chunks = (rows->rows + rows->chunk - 1) / rows->chunk;
  mps_tensor products, sums;
  mps_status status = mps_norm_vector(&b->temporaries, chunks * rows->count, &products);
  if (status == MPS_STATUS_OK) status = mps_norm_vector(&b->temporaries, chunks * rows->count, &sums);
  if (status != MPS_STATUS_OK) return status;
  const mps_norm_argument arguments[] = {mps_norm_read(b->grad), mps_norm_read(b->input), mps_norm_bytes(rows, sizeof *rows), mps_norm_read(b->mean),
                                         mps_norm_read(b->rstd), mps_norm_write(&products), mps_norm_write(&sums)};
  status = mps_norm_launch(b->temporaries.stream, b->label, "norm_rows_weight", mps_dtype_name(b->input->dtype), arguments, 7,
                           (rows->count + MPS_NORM_TILE - 1) / MPS_NORM_TILE, chunks, (double)rows->rows * (double)rows->count * WEIGHT_COST);
  if (status == MPS_STATUS_OK && weight_out) status = finish_weight(b, &products, chunks, weight_out);
  if (status == MPS_STATUS_OK && bias_out) status = finish_weight(b, &sums, chunks, bias_out);
  return status;
}

static mps_status run_backward(backward *b, const mps_tensor *grad_out, const mps_tensor *input, const mps_tensor *mean, const mps_tensor *rstd,
                               const mps_tensor *weight, const mps_tensor *grad_input, const mps_tensor *grad_weight, const mps_tensor *grad_bias) {
  mps_stream *stream = b->temporaries.stream;
  if (b->rows.rows == 0 || b->rows.count == 0) {
    mps_status status = mps_operand_fill(stream, grad_weight, mps_scalar_int(0));
    return status != MPS_STATUS_OK ? status : mps_operand_fill(stream, grad_bias, mps_scalar_int(0));
  }
  mps_status status = prepare_backward(b, grad_out, input, mean, rstd, weight);
  if (status == MPS_STATUS_OK && (grad_weight || grad_bias)) status = encode_weight_gradients(b, grad_weight, grad_bias);
  if (status == MPS_STATUS_OK && grad_input) status = encode_input_gradient(b, grad_input);
  mps_operands_finish(&b->temporaries);
  return status;
}

mps_status mps_op_layer_norm_backward(mps_stream *stream, const mps_tensor *grad_out, const mps_tensor *input, const int64_t *normalized_shape,
                                      uint32_t normalized_shape_count, const mps_tensor *mean, const mps_tensor *rstd, const mps_tensor *weight,
                                      const mps_tensor *grad_input, const mps_tensor *grad_weight, const mps_tensor *grad_bias) {
  backward b = {.label = "layer_norm_backward", .temporaries = {.stream = stream}, .rows = {.centred = 1}};
  mps_status status = check(b.label, input, normalized_shape, normalized_shape_count, weight, &b.rows);
  return status != MPS_STATUS_OK ? status : run_backward(&b, grad_out, input, mean, rstd, weight, grad_input, grad_weight, grad_bias);
}

mps_status mps_op_rms_norm_backward(mps_stream *stream, const mps_tensor *grad_out, const mps_tensor *input, const int64_t *normalized_shape,
                                    uint32_t normalized_shape_count, const mps_tensor *rstd, const mps_tensor *weight, const mps_tensor *grad_input,
                                    const mps_tensor *grad_weight) {
  backward b = {.label = "rms_norm_backward", .temporaries = {.stream = stream}, .rows = {.centred = 0}};
  mps_status status = check(b.label, input, normalized_shape, normalized_shape_count, weight, &b.rows);
  return status != MPS_STATUS_OK ? status : run_backward(&b, grad_out, input, NULL, rstd, weight, grad_input, grad_weight, NULL);
}
