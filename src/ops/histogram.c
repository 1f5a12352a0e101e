/* SPDX-License-Identifier: BSD-3-Clause
 *
 * histogram: bincount and histograms of points in any number of dimensions: parts are counted each for itself, then added up in order.
 */
#include "ops/histogram.h"

#include <stdio.h>
#include <string.h>

#include "openmps/library.h"
#include "openmps/ops/histogram.h"
#include "openmps/ops/pointwise.h"
#include "ops/operand.h"

enum { MAX_PARTS = 16, LEAST_PART = 8192 /* points */, POINTS_A_BIN = 4, ADD_BLOCK = 1024 /* bins that one thread adds up */ };

void mps_histogram_plan(int64_t count, int64_t bins, mps_histogram_arguments *arguments) {
  memset(arguments, 0, sizeof *arguments);
  /* Clearing and adding a part's bins must cost less than counting. */
  const int64_t least = POINTS_A_BIN * bins > LEAST_PART ? POINTS_A_BIN * bins : LEAST_PART;
  int64_t parts = count / least;
  parts = parts < 1 ? 1 : parts > MAX_PARTS ? MAX_PARTS : parts;
  arguments->count = count;
  arguments->bins = bins;
  arguments->part = (count + parts - 1) / parts;
  arguments->parts = parts;
  arguments->block = ADD_BLOCK;
}

/* What counts: the kernel, its operands, and the type that bins are added up in. */
typedef struct count_call {
  const char *label, *stem;
  const mps_tensor *points, *weights, *edges; /* edges NULL: of whole numbers */
  mps_dtype sum;
} count_call;

static mps_status encode_count(mps_stream *stream, const count_call *call, const mps_histogram_arguments *a, const mps_tensor *bins) {
  char suffix[16];
  const char *names[2] = {mps_dtype_name(call->points->dtype), mps_dtype_name(call->sum)};
  snprintf(suffix, sizeof suffix, "%s_%s", names[0], names[1]);
  mps_pipeline *pipeline;
  mps_status status = mps_operand_pipeline(stream, call->stem, suffix, &pipeline);
  if (status != MPS_STATUS_OK) return status;
  const mps_tensor *weights = call->weights ? call->weights : call->points; /* something must be bound; it is not read */
  mps_encoder encoder;
  mps_encoder_begin(&encoder, stream, call->label);
  mps_encoder_set_pipeline(&encoder, pipeline);
  mps_encoder_set_buffer(&encoder, 0, call->points->buffer, call->points->offset, MPS_ACCESS_READ);
  mps_encoder_set_buffer(&encoder, 1, weights->buffer, weights->offset, MPS_ACCESS_READ);
  mps_encoder_set_buffer(&encoder, 2, bins->buffer, bins->offset, MPS_ACCESS_READ_WRITE);
  mps_encoder_set_bytes(&encoder, 3, a, sizeof *a);
  if (call->edges)
    mps_encoder_set_buffer(&encoder, 4, call->edges->buffer, call->edges->offset, MPS_ACCESS_READ);
  else
    mps_encoder_set_error_buffer(&encoder, 4);
  const double each = call->edges ? 6.0 * (double)a->dimensions : 2.0;
  mps_encoder_set_cost(&encoder, (double)a->count * each + (double)(a->parts * a->bins) * 0.3);
  return mps_encoder_dispatch(&encoder, (uint64_t[]){(uint64_t)a->parts, 1, 1}, NULL);
}

static mps_status encode_add(mps_stream *stream, const count_call *call, const mps_histogram_arguments *a, const mps_tensor *bins, const mps_tensor *out) {
  char suffix[16];
  snprintf(suffix, sizeof suffix, "%s_%s", mps_dtype_name(call->sum), mps_dtype_name(out->dtype));
  mps_pipeline *pipeline;
  mps_status status = mps_operand_pipeline(stream, "add_parts", suffix, &pipeline);
  if (status != MPS_STATUS_OK) return status;
  mps_encoder encoder;
  mps_encoder_begin(&encoder, stream, call->label);
  mps_encoder_set_pipeline(&encoder, pipeline);
  mps_encoder_set_buffer(&encoder, 0, bins->buffer, bins->offset, MPS_ACCESS_READ);
  mps_encoder_set_buffer(&encoder, 1, out->buffer, out->offset, MPS_ACCESS_WRITE);
  mps_encoder_set_bytes(&encoder, 2, a, sizeof *a);
  mps_encoder_set_cost(&encoder, (double)(a->parts * a->bins) * 0.5);
  return mps_encoder_dispatch(&encoder, (uint64_t[]){(uint64_t)((a->bins + a->block - 1) / a->block), 1, 1}, NULL);
}

/* Counts into `out`, contiguous and of type int64 or float32. */
static mps_status count(mps_stream *stream, const count_call *call, const mps_histogram_arguments *a, const mps_tensor *out) {
  if (a->parts == 1 && call->sum == out->dtype) return encode_count(stream, call, a, out);
  mps_tensor bins;
  const int64_t sizes[2] = {a->parts, a->bins};
  mps_status status = mps_operand_create(stream, call->sum, 2, sizes, &bins);
  if (status != MPS_STATUS_OK) return status;
  status = encode_count(stream, call, a, &bins);
  if (status == MPS_STATUS_OK) status = encode_add(stream, call, a, &bins, out);
  mps_buffer_release(bins.buffer);
  return status;
}

/* ---- bincount ---- */

static mps_status check_bincount(const mps_tensor *self, const mps_tensor *weights, const mps_tensor *out) {
  const bool fits = self->rank == 1 && out->rank == 1 && mps_tensor_is_contiguous(out) && mps_dtype_is_integral(self->dtype);
  if (!fits || (weights && (weights->rank != 1 || weights->sizes[0] != self->sizes[0] || mps_dtype_is_complex(weights->dtype))))
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "bincount(): expected vectors of one length, whole numbers and their real weights, and a contiguous result");
  if (out->dtype != (weights ? MPS_DTYPE_F32 : MPS_DTYPE_I64))
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "bincount(): counts are int64, sums of weights float32");
  return MPS_STATUS_OK;
}

mps_status mps_op_bincount(mps_stream *stream, const mps_tensor *self, const mps_tensor *weights, const mps_tensor *out) {
  mps_status status = check_bincount(self, weights, out);
  if (status != MPS_STATUS_OK || out->sizes[0] == 0) return status;
  const bool wide = mps_dtype_size(self->dtype) == 8 || self->dtype == MPS_DTYPE_U32;
  const mps_dtype sum = weights && mps_dtype_is_floating(weights->dtype) ? MPS_DTYPE_F32 : MPS_DTYPE_I64;
  mps_tensor values, addends = {0};
  mps_buffer *values_owned = NULL, *addends_owned = NULL;
  status = mps_operand_prepare(stream, self, wide ? MPS_DTYPE_I64 : MPS_DTYPE_I32, false, &values, &values_owned);
  if (status == MPS_STATUS_OK && weights) status = mps_operand_prepare(stream, weights, sum, false, &addends, &addends_owned);
  if (status == MPS_STATUS_OK) {
    mps_histogram_arguments a;
    mps_histogram_plan(self->sizes[0], out->sizes[0], &a);
    a.row_stride = values.strides[0];
    a.weighted = weights != NULL;
    a.weight_stride = weights ? addends.strides[0] : 0;
    const count_call call = {.label = "bincount", .stem = "count_values", .points = &values, .weights = weights ? &addends : NULL, .sum = sum};
    status = count(stream, &call, &a, out);
  }
  mps_buffer_release(addends_owned);
  mps_buffer_release(values_owned);
  return status;
}

/* ---- histogram ---- */

static mps_status check_histogram(const mps_tensor *self, const mps_tensor *edges, const int64_t *bins, uint32_t bins_count, const mps_tensor *weight,
                                  const mps_tensor *out) {
  if (!mps_dtype_is_floating(self->dtype) || self->rank != 2 || self->sizes[1] != (int64_t)bins_count)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "histogram(): expected points of floats with a coordinate for each number of bins");
  if (bins_count > MPS_HISTOGRAM_MAX_DIMENSIONS) return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "histogram(): more than 16 dimensions are not supported");
  bool fits = out->rank == bins_count && out->dtype == self->dtype && edges->dtype == self->dtype && edges->rank == 1;
  int64_t edge_count = 0;
  for (uint32_t d = 0; fits && d < bins_count; d++) {
    fits = bins[d] > 0 && out->sizes[d] == bins[d];
    edge_count += bins[d] + 1;
  }
  if (weight) fits = fits && weight->rank == 1 && weight->dtype == self->dtype && weight->sizes[0] == self->sizes[0];
  if (!fits || edges->sizes[0] != edge_count)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "histogram(): points, edges, weights and result do not fit each other");
  return MPS_STATUS_OK;
}

static void plan_bins(const mps_tensor *points, const mps_tensor *weights, const int64_t *bins, uint32_t dimensions, int64_t method, mps_histogram_arguments *a) {
  int64_t all = 1;
  for (uint32_t d = 0; d < dimensions; d++) all *= bins[d];
  mps_histogram_plan(points->sizes[0], all, a);
  a->row_stride = points->strides[0];
  a->column_stride = points->strides[1];
  a->weighted = weights != NULL;
  a->weight_stride = weights ? weights->strides[0] : 0;
  a->method = (uint32_t)method;
  a->dimensions = dimensions;
  int64_t stride = 1;
  for (uint32_t d = dimensions; d-- > 0;) {
    a->edge_counts[d] = bins[d] + 1;
    a->bin_strides[d] = stride;
    stride *= bins[d];
  }
}

mps_status mps_op_histogram(mps_stream *stream, const mps_tensor *self, const mps_tensor *edges, const int64_t *bins, uint32_t bins_count,
                            const mps_tensor *weight, int64_t method, const mps_tensor *out) {
  mps_status status = check_histogram(self, edges, bins, bins_count, weight, out);
  if (status != MPS_STATUS_OK) return status;
  mps_tensor points, addends = {0}, sorted, result;
  mps_buffer *owned[3] = {NULL, NULL, NULL};
  status = mps_operand_prepare(stream, self, self->dtype, false, &points, &owned[0]);
  if (status == MPS_STATUS_OK && weight) status = mps_operand_prepare(stream, weight, weight->dtype, false, &addends, &owned[1]);
  if (status == MPS_STATUS_OK) status = mps_operand_prepare(stream, edges, edges->dtype, true, &sorted, &owned[2]);
  if (status == MPS_STATUS_OK) status = mps_operand_create(stream, MPS_DTYPE_F32, out->rank, out->sizes, &result);
  if (status == MPS_STATUS_OK) {
    mps_histogram_arguments a;
    plan_bins(&points, weight ? &addends : NULL, bins, bins_count, method, &a);
    const count_call call = {.label = "histogram", .stem = "count_points", .points = &points, .weights = weight ? &addends : NULL, .edges = &sorted,
                             .sum = weight ? MPS_DTYPE_F32 : MPS_DTYPE_I64};
    status = count(stream, &call, &a, &result);
    if (status == MPS_STATUS_OK) status = mps_op_copy(stream, &result, out);
    mps_buffer_release(result.buffer);
  }
  for (int i = 0; i < 3; i++) mps_buffer_release(owned[i]);
  return status;
}
