/* SPDX-License-Identifier: BSD-3-Clause
 *
 * norm_group: group norm over [N, C, ...], contiguous, with its gradient.
 */
#include "graph/formula.h"
#include "openmps/ops/norm.h"
#include "openmps/ops/pointwise.h"
#include "ops/norm.h"

typedef struct group {
  const char *label;
  mps_operand_list temporaries;
  mps_norm_statistics statistics; /* of the channels of the samples: N * C */
  mps_norm_runs runs;
  mps_tensor input, storage[2];
  const mps_tensor *self, *weight, *bias;
} group;

static mps_status check(const char *label, const mps_tensor *input, const mps_tensor *weight, const mps_tensor *bias, int64_t groups) {
  if (input->rank < 2 || groups < 1 || input->sizes[1] % groups != 0)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT,
                         "Expected number of channels in input to be divisible by num_groups, but got input of rank %u and num_groups=%lld",
                         (unsigned)input->rank, (long long)groups);
  if (!mps_dtype_is_floating(input->dtype))
    return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", label, mps_dtype_title(input->dtype));
  if ((weight && mps_tensor_element_count(weight) != input->sizes[1]) || (bias && mps_tensor_element_count(bias) != input->sizes[1]))
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s: weight and bias must have one element for each of the %lld channels", label,
                         (long long)input->sizes[1]);
  return MPS_STATUS_OK;
}

static mps_status begin(group *g, const mps_tensor *input, const mps_tensor *weight, const mps_tensor *bias, int64_t groups, double eps) {
  mps_operand_list *t = &g->temporaries;
  mps_status status = mps_norm_prepare(t, input, input->dtype, &g->input, &g->self);
  if (status == MPS_STATUS_OK) status = mps_norm_prepare(t, weight, MPS_DTYPE_F32, &g->storage[0], &g->weight);
  if (status == MPS_STATUS_OK) status = mps_norm_prepare(t, bias, MPS_DTYPE_F32, &g->storage[1], &g->bias);
  if (status != MPS_STATUS_OK) return status;
  int64_t batch = input->sizes[0], channels = input->sizes[1];
  g->runs = mps_norm_runs_of(&g->input, batch * channels, MPS_NORM_INNER);
  g->statistics = (mps_norm_statistics){.statistics = batch * channels,
                                        .count = channels / groups * g->runs.run,
                                        .channels = channels,
                                        .groups = groups,
                                        .batch = batch,
                                        .epsilon = (float)eps,
                                        .has_weight = g->weight != NULL,
                                        .has_bias = g->bias != NULL};
  return MPS_STATUS_OK;
}

/* The input as [N * G, elements of a group]. */
static mps_status encode_statistics(group *g, const mps_tensor *mean, const mps_tensor *rstd) {
  mps_stream *stream = g->temporaries.stream;
  mps_norm_statistics s = g->statistics;
  s.statistics = s.batch * s.groups;
  mps_tensor rows = g->input, flat = *mean;
  mps_tensor_set_contiguous(&rows, 2, (int64_t[]){s.statistics, s.count});
  mps_tensor_set_contiguous(&flat, 1, &s.statistics);
  mps_reduction moments = {.label = g->label, .kernel = "moments", .suffix = mps_dtype_name(rows.dtype), .accumulator_bytes = 16};
  mps_reduce_plan plan;
  mps_reduce_plan_make(&plan, &rows, 2, &flat, NULL, false);
  mps_buffer *partials;
  mps_status status = mps_reduce_encode_partials(stream, &moments, &rows, &plan, &partials);
  if (status != MPS_STATUS_OK) return status;
  mps_operands_keep(&g->temporaries, partials);
  s.chunk_count = plan.arguments.chunk_count;
  const mps_norm_argument arguments[] = {{.buffer = partials, .access = MPS_ACCESS_READ}, mps_norm_write(mean), mps_norm_write(rstd),
                                         mps_norm_bytes(&s, sizeof s)};
  return mps_norm_launch(stream, g->label, "norm_group_statistics", NULL, arguments, 4, s.statistics, 1, (double)(s.statistics * (s.chunk_count + 2)) * 5.0);
}

static mps_status encode_forward(group *g, const mps_tensor *mean, const mps_tensor *rstd, const mps_tensor *out) {
  mps_stream *stream = g->temporaries.stream;
  mps_tensor coefficients;
  mps_status status = encode_statistics(g, mean, rstd);
  if (status == MPS_STATUS_OK) status = mps_norm_vector(&g->temporaries, 3 * g->statistics.statistics, &coefficients);
  if (status != MPS_STATUS_OK) return status;
  const mps_norm_argument arguments[] = {mps_norm_read(mean), mps_norm_read(rstd), mps_norm_read(g->weight), mps_norm_read(g->bias),
                                         mps_norm_write(&coefficients), mps_norm_bytes(&g->statistics, sizeof g->statistics)};
  status = mps_norm_launch(stream, g->label, "norm_forward_coefficients", NULL, arguments, 6, g->statistics.statistics, 1,
                           (double)g->statistics.statistics * 3.0);
  mps_result result;
  if (status == MPS_STATUS_OK) status = mps_norm_result(stream, out, &g->input, &result);
  if (status != MPS_STATUS_OK) return status;
  return mps_result_end(stream, &result, mps_norm_apply(stream, g->label, &g->input, &coefficients, &g->runs, MPS_NORM_INNER, &result.tensor));
}

mps_status mps_op_group_norm(mps_stream *stream, const mps_tensor *input, const mps_tensor *weight, const mps_tensor *bias, int64_t groups, double eps,
                             const mps_tensor *out, const mps_tensor *mean, const mps_tensor *rstd) {
  group g = {.label = "group_norm", .temporaries = {.stream = stream}};
  mps_status status = check(g.label, input, weight, bias, groups);
  if (status != MPS_STATUS_OK || mps_tensor_element_count(input) == 0) return status;
  status = begin(&g, input, weight, bias, groups, eps);
  mps_result means = {.out = NULL}, scales = {.out = NULL};
  if (status == MPS_STATUS_OK) status = mps_result_begin(stream, mean, MPS_DTYPE_F32, NULL, true, &means);
  if (status == MPS_STATUS_OK) status = mps_result_begin(stream, rstd, MPS_DTYPE_F32, NULL, true, &scales);
  if (status == MPS_STATUS_OK) status = encode_forward(&g, &means.tensor, &scales.tensor, out);
  status = mps_result_end(stream, &means, status);
  status = mps_result_end(stream, &scales, status);
  mps_operands_finish(&g.temporaries);
  return status;
}

/* ---- backward ---- */
/* Sums of grad and of grad * (x - mean) for each channel of each sample. */
static mps_status encode_sums(group *g, const mps_tensor *grad, const mps_tensor *mean, const mps_tensor *sums) {
  mps_stream *stream = g->temporaries.stream;
  mps_tensor spread;
  mps_status status = mps_norm_vector(&g->temporaries, g->statistics.statistics, &spread);
  if (status != MPS_STATUS_OK) return status;
  const mps_norm_argument arguments[] = {mps_norm_read(mean), mps_norm_write(&spread), mps_norm_bytes(&g->statistics, sizeof g->statistics)};
  status = mps_norm_launch(stream, g->label, "norm_group_spread", NULL, arguments, 3, g->statistics.statistics, 1, (double)g->statistics.statistics * 3.0);
  return status != MPS_STATUS_OK ? status : mps_norm_pair(stream, g->label, grad, &g->input, &spread, &g->runs, MPS_NORM_INNER, sums);
}

static mps_status encode_weights(group *g, const mps_tensor *sums, const mps_tensor *rstd, const mps_tensor *grad_weight, const mps_tensor *grad_bias) {
  mps_stream *stream = g->temporaries.stream;
  mps_tensor vectors[2];
  mps_status status = mps_norm_vector(&g->temporaries, g->statistics.channels, &vectors[0]);
  if (status == MPS_STATUS_OK) status = mps_norm_vector(&g->temporaries, g->statistics.channels, &vectors[1]);
  if (status != MPS_STATUS_OK) return status;
  const mps_norm_argument arguments[] = {mps_norm_read(sums), mps_norm_read(rstd), mps_norm_write(&vectors[0]), mps_norm_write(&vectors[1]),
                                         mps_norm_bytes(&g->statistics, sizeof g->statistics)};
  status = mps_norm_launch(stream, g->label, "norm_group_weight", NULL, arguments, 5, g->statistics.channels, 1, (double)g->statistics.statistics * 2.0);
  if (status == MPS_STATUS_OK && grad_weight) status = mps_op_copy(stream, &vectors[0], grad_weight);
  if (status == MPS_STATUS_OK && grad_bias) status = mps_op_copy(stream, &vectors[1], grad_bias);
  return status;
}

static mps_status encode_input_gradient(group *g, const mps_tensor *grad, const mps_tensor *sums, const mps_tensor *mean, const mps_tensor *rstd,
                                        const mps_tensor *grad_input) {
  mps_stream *stream = g->temporaries.stream;
  mps_tensor coefficients;
  mps_status status = mps_norm_vector(&g->temporaries, 4 * g->statistics.statistics, &coefficients);
  if (status != MPS_STATUS_OK) return status;
  const mps_norm_argument arguments[] = {mps_norm_read(sums), mps_norm_read(mean), mps_norm_read(rstd), mps_norm_read(g->weight),
                                         mps_norm_write(&coefficients), mps_norm_bytes(&g->statistics, sizeof g->statistics)};
  status = mps_norm_launch(stream, g->label, "norm_group_backward", NULL, arguments, 6, g->statistics.batch * g->statistics.groups, 1,
                           (double)g->statistics.statistics * 4.0);
  mps_result result;
  if (status == MPS_STATUS_OK) status = mps_norm_result(stream, grad_input, &g->input, &result);
  if (status != MPS_STATUS_OK) return status;
  return mps_result_end(stream, &result,
                        mps_norm_gradient(stream, g->label, grad, &g->input, &coefficients, &g->runs, MPS_NORM_INNER, &result.tensor));
}

static mps_status encode_backward(group *g, const mps_tensor *grad_out, const mps_tensor *mean, const mps_tensor *rstd, const mps_tensor *grad_input,
                                  const mps_tensor *grad_weight, const mps_tensor *grad_bias) {
  mps_tensor storage[3], sums;
  const mps_tensor *grad, *m, *r;
  mps_operand_list *t = &g->temporaries;
  mps_status status = mps_norm_prepare(t, grad_out, g->input.dtype, &storage[0], &grad);
  if (status == MPS_STATUS_OK) status = mps_norm_prepare(t, mean, MPS_DTYPE_F32, &storage[1], &m);
  if (status == MPS_STATUS_OK) status = mps_norm_prepare(t, rstd, MPS_DTYPE_F32, &storage[2], &r);
  if (status == MPS_STATUS_OK) status = mps_norm_vector(t, 2 * g->statistics.statistics, &sums);
  if (status == MPS_STATUS_OK) status = encode_sums(g, grad, m, &sums);
  if (status == MPS_STATUS_OK && (grad_weight || grad_bias)) status = encode_weights(g, &sums, r, grad_weight, grad_bias);
  if (status == MPS_STATUS_OK && grad_input) status = encode_input_gradient(g, grad, &sums, m, r, grad_input);
  return status;
}

mps_status mps_op_group_norm_backward(mps_stream *stream, const mps_tensor *grad_out, const mps_tensor *input, const mps_tensor *mean,
                                      const mps_tensor *rstd, const mps_tensor *weight, int64_t groups, const mps_tensor *grad_input,
                                      const mps_tensor *grad_weight, const mps_tensor *grad_bias) {
  group g = {.label = "group_norm_backward", .temporaries = {.stream = stream}};
  mps_status status = check(g.label, input, weight, NULL, groups);
  if (status != MPS_STATUS_OK) return status;
  if (mps_tensor_element_count(input) == 0) {
    status = mps_operand_fill(stream, grad_weight, mps_scalar_int(0));
    return status != MPS_STATUS_OK ? status : mps_operand_fill(stream, grad_bias, mps_scalar_int(0));
  }
  status = begin(&g, input, weight, NULL, groups, 0.0);
  if (status == MPS_STATUS_OK) status = encode_backward(&g, grad_out, mean, rstd, grad_input, grad_weight, grad_bias);
  mps_operands_finish(&g.temporaries);
  return status;
}
