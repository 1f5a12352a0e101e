/* SPDX-License-Identifier: BSD-3-Clause
 *
 * norm_batch: batch norm over [N, C, ...], in training and in evaluation, with its gradient.
 */
#include "graph/formula.h"
#include "openmps/ops/norm.h"
#include "openmps/ops/pointwise.h"
#include "ops/norm.h"

typedef struct batch {
  const char *label;
  mps_operand_list temporaries;
  mps_norm_statistics statistics;
  mps_norm_layout layout;
  mps_norm_runs runs;
  mps_tensor input;
  mps_tensor weight_storage, bias_storage;
  const mps_tensor *weight, *bias; /* float, or NULL */
} batch;

static mps_status check_vector(const char *label, const char *name, const mps_tensor *vector, int64_t channels) {
  if (!vector || mps_tensor_element_count(vector) == channels) return MPS_STATUS_OK;
  return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s: %s should contain %lld elements not %lld", label, name, (long long)channels,
                       (long long)mps_tensor_element_count(vector));
}

static mps_status check(const char *label, const mps_tensor *input, const mps_tensor *weight, const mps_tensor *bias, const mps_tensor *running_mean,
                        const mps_tensor *running_var) {
  if (input->rank < 2)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s: expected an input of rank 2 or more, but got rank %u", label, (unsigned)input->rank);
  if (!mps_dtype_is_floating(input->dtype))
    return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", label, mps_dtype_title(input->dtype));
  const struct {
    const char *name;
    const mps_tensor *tensor;
  } vectors[] = {{"weight", weight}, {"bias", bias}, {"running_mean", running_mean}, {"running_var", running_var}};
  for (int i = 0; i < 4; i++) {
    mps_status status = check_vector(label, vectors[i].name, vectors[i].tensor, input->sizes[1]);
    if (status != MPS_STATUS_OK) return status;
  }
  return MPS_STATUS_OK;
}

static mps_status begin(batch *b, const mps_tensor *input, const mps_tensor *weight, const mps_tensor *bias, double eps) {
  mps_status status = mps_norm_prepare_layout(&b->temporaries, input, input->dtype, NULL, &b->input);
  if (status == MPS_STATUS_OK) status = mps_norm_prepare(&b->temporaries, weight, MPS_DTYPE_F32, &b->weight_storage, &b->weight);
  if (status == MPS_STATUS_OK) status = mps_norm_prepare(&b->temporaries, bias, MPS_DTYPE_F32, &b->bias_storage, &b->bias);
  if (status != MPS_STATUS_OK) return status;
  int64_t channels = input->sizes[1];
  b->layout = mps_norm_layout_of(&b->input);
  b->runs = mps_norm_runs_of(&b->input, channels, b->layout);
  b->statistics = (mps_norm_statistics){.statistics = channels,
                                        .count = mps_tensor_element_count(input) / channels,
                                        .epsilon = (float)eps,
                                        .has_weight = b->weight != NULL,
                                        .has_bias = b->bias != NULL};
  return MPS_STATUS_OK;
}

/* ---- statistics ---- */
/* Mean and 1 / sqrt(variance + eps) of the running statistics. */
static mps_status encode_running(batch *b, const mps_tensor *running_mean, const mps_tensor *running_var, const mps_tensor *mean,
                                 const mps_tensor *scale) {
  mps_tensor storage[2];
  const mps_tensor *m, *v;
  mps_status status = mps_norm_prepare(&b->temporaries, running_mean, MPS_DTYPE_F32, &storage[0], &m);
  if (status == MPS_STATUS_OK) status = mps_norm_prepare(&b->temporaries, running_var, MPS_DTYPE_F32, &storage[1], &v);
  if (status != MPS_STATUS_OK) return status;
  const mps_norm_argument arguments[] = {mps_norm_read(m), mps_norm_read(v), mps_norm_write(mean), mps_norm_write(scale),
                                         mps_norm_bytes(&b->statistics, sizeof b->statistics)};
  return mps_norm_launch(b->temporaries.stream, b->label, "norm_batch_running", NULL, arguments, 5, b->statistics.statistics, 1,
                         (double)b->statistics.statistics);
}

/* Those of the batch; the running ones move. */
static mps_status encode_statistics(batch *b, const mps_tensor *running_mean, const mps_tensor *running_var, const mps_tensor *mean,
                                    const mps_tensor *scale) {
  mps_stream *stream = b->temporaries.stream;
  mps_reduction moments = {.label = b->label, .kernel = "moments", .suffix = mps_dtype_name(b->input.dtype), .accumulator_bytes = 16};
  mps_reduce_plan plan;
  mps_reduce_plan_make(&plan, &b->input, ((1u << b->input.rank) - 1) & ~2u, mean, NULL, false);
  mps_buffer *partials;
  mps_status status = mps_reduce_encode_partials(stream, &moments, &b->input, &plan, &partials);
  if (status != MPS_STATUS_OK) return status;
  mps_operands_keep(&b->temporaries, partials);
  b->statistics.chunk_count = plan.arguments.chunk_count;
  b->statistics.has_running = running_mean != NULL;
  mps_tensor storage[2];
  const mps_tensor *m, *v;
  status = mps_norm_prepare(&b->temporaries, running_mean, MPS_DTYPE_F32, &storage[0], &m);
  if (status == MPS_STATUS_OK) status = mps_norm_prepare(&b->temporaries, running_var, MPS_DTYPE_F32, &storage[1], &v);
  if (status != MPS_STATUS_OK) return status;
  const mps_norm_argument arguments[] = {{.buffer = partials, .access = MPS_ACCESS_READ}, mps_norm_write(mean), mps_norm_write(scale), mps_norm_write(m),
                                         mps_norm_write(v), mps_norm_bytes(&b->statistics, sizeof b->statistics)};
  status = mps_norm_launch(stream, b->label, "norm_batch_statistics", NULL, arguments, 6, b->statistics.statistics, 1,
                           (double)(b->statistics.statistics * (b->statistics.chunk_count + 2)) * 5.0);
  /* Running statistics that were converted go back. */
  if (status == MPS_STATUS_OK && m && m->buffer != running_mean->buffer) status = mps_op_copy(stream, m, running_mean);
  if (status == MPS_STATUS_OK && v && v->buffer != running_var->buffer) status = mps_op_copy(stream, v, running_var);
  return status;
}

/* ---- forward ---- */
static mps_status encode_forward(batch *b, const mps_tensor *running_mean, const mps_tensor *running_var, const mps_tensor *mean, const mps_tensor *scale,
                                 const mps_tensor *out) {
  mps_stream *stream = b->temporaries.stream;
  mps_status status = b->statistics.training ? encode_statistics(b, running_mean, running_var, mean, scale)
                                             : encode_running(b, running_mean, running_var, mean, scale);
  mps_tensor coefficients;
  if (status == MPS_STATUS_OK) status = mps_norm_vector(&b->temporaries, 3 * b->statistics.statistics, &coefficients);
  if (status != MPS_STATUS_OK) return status;
  const mps_norm_argument arguments[] = {mps_norm_read(mean), mps_norm_read(scale), mps_norm_read(b->weight), mps_norm_read(b->bias),
                                         mps_norm_write(&coefficients), mps_norm_bytes(&b->statistics, sizeof b->statistics)};
  status = mps_norm_launch(stream, b->label, "norm_forward_coefficients", NULL, arguments, 6, b->statistics.statistics, 1,
                           (double)b->statistics.statistics);
  mps_result result;
  if (status == MPS_STATUS_OK) status = mps_norm_result(stream, out, &b->input, &result);
  if (status != MPS_STATUS_OK) return status;
  return mps_result_end(stream, &result, mps_norm_apply(stream, b->label, &b->input, &coefficients, &b->runs, b->layout, &result.tensor));
}

/* The statistics' vector: the output if it fits, else a temporary. */
static mps_status begin_vector(batch *b, const mps_tensor *out, mps_result *result) {
  if (out) return mps_result_begin(b->temporaries.stream, out, MPS_DTYPE_F32, NULL, true, result);
  result->out = NULL;
  return mps_norm_vector(&b->temporaries, b->statistics.statistics, &result->tensor);
}

mps_status mps_op_batch_norm(mps_stream *stream, const mps_tensor *input, const mps_tensor *weight, const mps_tensor *bias,
                             const mps_tensor *running_mean, const mps_tensor *running_var, bool training, double momentum, double eps,
                             const mps_tensor *out, const mps_tensor *save_mean, const mps_tensor *save_invstd) {
  batch b = {.label = "batch_norm", .temporaries = {.stream = stream}};
  mps_status status = check(b.label, input, weight, bias, running_mean, running_var);
  if (status != MPS_STATUS_OK) return status;
  if ((!training && !running_mean) || (!running_mean != !running_var))
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "batch_norm: running_mean and running_var must both be given%s",
                         training ? " or both be left out" : " in evaluation");
  if (mps_tensor_element_count(input) == 0) return MPS_STATUS_OK;
  status = begin(&b, input, weight, bias, eps);
  b.statistics.training = training;
  b.statistics.momentum = (float)momentum;
  mps_result mean = {.out = NULL}, scale = {.out = NULL};
  if (status == MPS_STATUS_OK) status = begin_vector(&b, save_mean, &mean);
  if (status == MPS_STATUS_OK) status = begin_vector(&b, save_invstd, &scale);
  if (status == MPS_STATUS_OK) status = encode_forward(&b, running_mean, running_var, &mean.tensor, &scale.tensor, out);
  status = mps_result_end(stream, &mean, status);
  status = mps_result_end(stream, &scale, status);
  mps_operands_finish(&b.temporaries);
  return status;
}

/* ---- backward ---- */
/* Gradients of the vectors are copied out of a float temporary: `from` elements behind its start. */
static mps_status copy_vector(batch *b, const mps_tensor *source, int64_t from, const mps_tensor *out) {
  if (!out) return MPS_STATUS_OK;
  mps_tensor part = *source;
  part.offset += (uint64_t)from * 4;
  part.sizes[0] = b->statistics.statistics;
  return mps_op_copy(b->temporaries.stream, &part, out);
}

static mps_status encode_backward(batch *b, const mps_tensor *grad_out, const mps_tensor *mean, const mps_tensor *scale, const mps_tensor *grad_input,
                                  const mps_tensor *grad_weight, const mps_tensor *grad_bias) {
  mps_stream *stream = b->temporaries.stream;
  int64_t channels = b->statistics.statistics;
  mps_tensor grad, sums, coefficients, products;
  mps_status status = mps_norm_prepare_layout(&b->temporaries, grad_out, b->input.dtype, &b->input, &grad);
  if (status == MPS_STATUS_OK) status = mps_norm_vector(&b->temporaries, 2 * channels, &sums);
  if (status == MPS_STATUS_OK) status = mps_norm_vector(&b->temporaries, 4 * channels, &coefficients);
  if (status == MPS_STATUS_OK) status = mps_norm_vector(&b->temporaries, channels, &products);
  if (status == MPS_STATUS_OK) status = mps_norm_pair(stream, b->label, &grad, &b->input, mean, &b->runs, b->layout, &sums);
  if (status != MPS_STATUS_OK) return status;
  const mps_norm_argument arguments[] = {mps_norm_read(&sums), mps_norm_read(mean), mps_norm_read(scale), mps_norm_read(b->weight),
                                         mps_norm_write(&coefficients), mps_norm_write(&products), mps_norm_bytes(&b->statistics, sizeof b->statistics)};
  status = mps_norm_launch(stream, b->label, "norm_batch_backward", NULL, arguments, 7, channels, 1, (double)channels * 3.0);
  if (status == MPS_STATUS_OK) status = copy_vector(b, &products, 0, grad_weight);
  if (status == MPS_STATUS_OK) status = copy_vector(b, &sums, 0, grad_bias);
  if (status != MPS_STATUS_OK || !grad_input) return status;
  mps_result result;
  status = mps_norm_result(stream, grad_input, &b->input, &result);
  if (status != MPS_STATUS_OK) return status;
  return mps_result_end(stream, &result, mps_norm_gradient(stream, b->label, &grad, &b->input, &coefficients, &b->runs, b->layout, &result.tensor));
}

mps_status mps_op_batch_norm_backward(mps_stream *stream, const mps_tensor *grad_out, const mps_tensor *input, const mps_tensor *weight,
                                      const mps_tensor *running_mean, const mps_tensor *running_var, const mps_tensor *save_mean,
                                      const mps_tensor *save_invstd, bool train, double eps, const mps_tensor *grad_input, const mps_tensor *grad_weight,
                                      const mps_tensor *grad_bias) {
  batch b = {.label = "batch_norm_backward", .temporaries = {.stream = stream}};
  mps_status status = check(b.label, input, weight, NULL, running_mean, running_var);
  if (status != MPS_STATUS_OK) return status;
  if (train ? !save_mean || !save_invstd : !running_mean || !running_var)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "batch_norm_backward: %s are missing", train ? "save_mean and save_invstd" : "running statistics");
  if (mps_tensor_element_count(input) == 0) {
    status = mps_operand_fill(stream, grad_weight, mps_scalar_int(0));
    return status != MPS_STATUS_OK ? status : mps_operand_fill(stream, grad_bias, mps_scalar_int(0));
  }
  status = begin(&b, input, weight, NULL, eps);
  b.statistics.training = train;
  mps_tensor storage[2];
  const mps_tensor *mean = &storage[0], *scale = &storage[1];
  if (status == MPS_STATUS_OK && train) {
    status = mps_norm_prepare(&b.temporaries, save_mean, MPS_DTYPE_F32, &storage[0], &mean);
    if (status == MPS_STATUS_OK) status = mps_norm_prepare(&b.temporaries, save_invstd, MPS_DTYPE_F32, &storage[1], &scale);
  } else if (status == MPS_STATUS_OK) {
    status = mps_norm_vector(&b.temporaries, b.statistics.statistics, &storage[0]);
    if (status == MPS_STATUS_OK) status = mps_norm_vector(&b.temporaries, b.statistics.statistics, &storage[1]);
    if (status == MPS_STATUS_OK) status = encode_running(&b, running_mean, running_var, mean, scale);
  }
  if (status == MPS_STATUS_OK) status = encode_backward(&b, grad_out, mean, scale, grad_input, grad_weight, grad_bias);
  mps_operands_finish(&b.temporaries);
  return status;
}
