/* SPDX-License-Identifier: BSD-3-Clause
 *
 * interpolate: resizing of the last one, two or three dimensions, and the gradients, which are the same sums with transposed tables.
 */
#include <stdlib.h>
#include <string.h>

#include "graph/formula.h"
#include "kernels/interpolate_arguments.h"
#include "openmps/library.h"
#include "openmps/ops/interpolate.h"
#include "openmps/ops/pointwise.h"
#include "ops/interpolate_plan.h"
#include "ops/operand.h"

enum {
  MOST_THREADS = 128,      /* shares of the rows */
  SHARES_PER_CORE = 4,     /* where more would mean that shares begin again with lines that others have too */
  SPREAD_CHANNELS = 16,    /* channels last: fewer channels than this are written out in the width's table */
  COLUMN_BLOCK = 8192,     /* a line is cut into blocks of about this many elements where there are few rows */
  STAGED_RATIO = 4,        /* source lines are converted as a whole unless they are this much longer than the result's */
  SCRATCH_BYTES = 64 << 20 /* for all threads */
};

/* A call, whatever the operator. `source` is read, `target` written: in the gradient, source is the larger side's gradient. */
typedef struct interpolation {
  const char *label;
  const mps_tensor *source, *target;
  mps_filter filter;
  uint32_t dimensions;
  bool align_corners, backward;
  const double *scale[3]; /* by dimension; NULL where not given */
  uint32_t cores;
} interpolation;

typedef struct interpolation_plan {
  mps_interpolate_arguments arguments;
  mps_axis_table tables[3]; /* depth, height, width */
  uint64_t table_words, scratch_words;
  uint64_t column_blocks;
  double cost;
} interpolation_plan;

/* ---- check ---- */

/* Whether PyTorch's CPU kernel for this call is one of those that go by pixels; they differ in how indices and weights are rounded. */
static bool by_pixel(const interpolation *call) {
  if (call->backward) return true;
  if (call->dimensions == 1 || call->filter == MPS_FILTER_CUBIC || call->filter >= MPS_FILTER_LINEAR_ANTIALIAS) return false;
  const mps_tensor *source = call->source;
  bool channels_last = source->sizes[1] > 3;
  int64_t expected = 1;
  const uint32_t rank = source->rank;
  for (uint32_t i = 0; channels_last && i < rank; i++) {
    const uint32_t d = i == 0 ? 1 : i < rank - 1 ? rank - i : 0;
    channels_last = source->sizes[d] == 1 || source->strides[d] == expected;
    expected *= source->sizes[d];
  }
  return channels_last || (call->dimensions == 2 && call->target->sizes[2] + call->target->sizes[3] <= 128);
}

static const char *kernel_title(const interpolation *call) {
  if (call->backward) return call->label;
  if (call->filter >= MPS_FILTER_LINEAR_ANTIALIAS) return "compute_index_ranges_weights";
  if (call->filter == MPS_FILTER_CUBIC) return "compute_indices_weights_cubic";
  const bool nearest = call->filter != MPS_FILTER_LINEAR;
  if (!by_pixel(call)) return nearest ? "compute_indices_weights_nearest" : "compute_indices_weights_linear";
  if (call->dimensions == 2) return nearest ? "upsample_nearest2d_channels_last" : "upsample_bilinear2d_channels_last";
  return nearest ? "upsample_nearest3d_channels_last" : "upsample_trilinear3d_channels_last";
}

static mps_status check(const interpolation *call) {
  const mps_tensor *source = call->source, *target = call->target;
  if (source->rank != call->dimensions + 2 || target->rank != source->rank || source->sizes[0] != target->sizes[0] || source->sizes[1] != target->sizes[1])
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): Expected two tensors of %u dimensions with the same batch and channels", call->label,
                         call->dimensions + 2);
  if (source->dtype != target->dtype)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "expected dtype %s for `output` but got dtype %s", mps_dtype_title(source->dtype),
                         mps_dtype_title(target->dtype));
  const bool bytes = source->dtype == MPS_DTYPE_U8 && !call->backward && (call->dimensions == 2 || call->filter <= MPS_FILTER_NEAREST_EXACT);
  if (!bytes && !mps_dtype_is_floating(source->dtype))
    return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", kernel_title(call), mps_dtype_title(source->dtype));
  for (uint32_t d = 2; d < source->rank && mps_tensor_element_count(target); d++)
    if (source->sizes[d] < 1 || target->sizes[d] < 1)
      return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): Input and output sizes should be greater than 0", call->label);
  return MPS_STATUS_OK;
}

/* ---- plan ---- */

static bool moves(const interpolation *call) { return call->filter <= MPS_FILTER_NEAREST_EXACT && !call->backward; }

/* True for an axis that PyTorch's CPU kernels do not touch. */
static bool skips(const interpolation *call, uint32_t d) {
  const mps_tensor *s = call->source, *t = call->target;
  const bool same = s->sizes[d] == t->sizes[d];
  if (call->filter >= MPS_FILTER_LINEAR_ANTIALIAS && !call->backward) return same;
  if (s->dtype == MPS_DTYPE_U8 && !moves(call)) return same;
  if (call->filter == MPS_FILTER_CUBIC && call->backward) return s->sizes[2] == t->sizes[2] && s->sizes[3] == t->sizes[3];
  return false;
}

static mps_status make_table(const interpolation *call, uint32_t axis, mps_axis_table *out) {
  const mps_tensor *source = call->source, *target = call->target;
  const uint32_t first = 3 - call->dimensions;
  const mps_dtype weight = source->dtype == MPS_DTYPE_U8 && moves(call) ? MPS_DTYPE_F32 : source->dtype;
  if (axis < first) return mps_axis_table_make_identity(1, weight, out);
  const uint32_t d = axis - first + 2;
  if (skips(call, d)) return mps_axis_table_make_identity(target->sizes[d], weight, out);
  const mps_tensor *in = call->backward ? target : source, *result = call->backward ? source : target;
  const bool rounds = !call->backward && call->filter < MPS_FILTER_LINEAR_ANTIALIAS;
  const mps_axis a = {.in_size = in->sizes[d], .out_size = result->sizes[d], .scale = call->scale[axis - first], .filter = call->filter,
                      .align_corners = call->align_corners, .by_pixel = by_pixel(call),
                      .weight = rounds || weight == MPS_DTYPE_U8 ? weight : MPS_DTYPE_F32};
  if (!call->backward) return mps_axis_table_make(&a, out);
  mps_axis_table forward;
  mps_status status = mps_axis_table_make(&a, &forward);
  if (status == MPS_STATUS_OK) status = mps_axis_table_transpose(&forward, a.in_size, out);
  mps_axis_table_free(&forward);
  return status;
}

/* Strides by axis; depth and height that are missing keep 0. */
static void strides_of(const mps_tensor *tensor, int64_t *batch, int64_t *channel, int64_t space[3]) {
  *batch = tensor->strides[0];
  *channel = tensor->strides[1];
  for (uint32_t d = 2; d < tensor->rank; d++) space[3 - tensor->rank + d] = tensor->strides[d];
}

/* Lines of pixels: channels are contiguous, and so are pixels. */
static bool holds_channels(const mps_tensor *tensor) {
  return tensor->sizes[1] > 1 && tensor->strides[1] == 1 && tensor->strides[tensor->rank - 1] == tensor->sizes[1];
}

/* Few channels of bytes are computed together, whatever their layout: slots hold pixels of four bytes. */
static void plan_quads(const interpolation *call, mps_interpolate_arguments *a) {
  const mps_tensor *source = call->source, *target = call->target;
  const uint32_t last = source->rank - 1;
  strides_of(source, &a->in_batch, &a->in_channel, a->in_stride);
  strides_of(target, &a->out_batch, &a->out_channel, a->out_stride);
  a->channels = 1;
  a->quads = (uint32_t)source->sizes[1];
  a->vector = 4;
  a->spread = 1;
  a->line_length = (uint32_t)source->sizes[last];
  a->columns = (uint32_t)target->sizes[last] * 4;
  a->staged = 1;
  a->staging_words = a->line_length + (uint32_t)target->sizes[last];
}

/* What a line is: the width of one plane, or all channels of the width. */
static void plan_lines(const interpolation *call, interpolation_plan *p) {
  mps_interpolate_arguments *a = &p->arguments;
  const mps_tensor *source = call->source, *target = call->target;
  const uint32_t last = source->rank - 1, taps = p->tables[2].taps;
  const int64_t channels = source->sizes[1];
  const bool few_taps = taps == 1 || taps == 2 || taps == 4, many_channels = channels >= SPREAD_CHANNELS;
  const bool together = holds_channels(source) && holds_channels(target) && (few_taps || many_channels);
  strides_of(source, &a->in_batch, &a->in_channel, a->in_stride);
  strides_of(target, &a->out_batch, &a->out_channel, a->out_stride);
  a->channels = together ? 1 : channels;
  a->vector = together && many_channels ? (uint32_t)channels : 1;
  const bool any_order = source->dtype == MPS_DTYPE_U8 && !moves(call); /* sums of whole numbers */
  a->spread = (few_taps || any_order) && a->vector == 1 ? (uint32_t)(together ? channels : 1) : 0;
  a->line_length = (uint32_t)(source->sizes[last] * (together ? channels : 1));
  a->columns = (uint32_t)(target->sizes[last] * (together ? channels : 1));
  if (together) a->in_stride[2] = a->out_stride[2] = 1;
  const bool pixels = channels > 2 && holds_channels(source) && holds_channels(target);
  if (source->dtype == MPS_DTYPE_U8 && !moves(call) && channels > 1 && channels <= 4 && (!few_taps || pixels)) {
    plan_quads(call, a);
    return;
  }
  const bool convert = source->dtype != MPS_DTYPE_F32 || a->in_stride[2] != 1;
  a->direct = call->dimensions == 1 && source->dtype == MPS_DTYPE_F32 && a->out_stride[2] == 1 && !moves(call);
  a->staged = !a->direct && convert && source->dtype != MPS_DTYPE_U8 && !moves(call) && a->line_length <= STAGED_RATIO * a->columns;
  a->staging_words = a->staged ? a->line_length : 0;
}

/* Threads share rows; where rows are few, columns too. */
static void plan_threads(const interpolation *call, interpolation_plan *p) {
  mps_interpolate_arguments *a = &p->arguments;
  const uint32_t element = call->source->dtype == MPS_DTYPE_U8 ? 1 : 4, slots = a->axis[0].span * a->axis[1].span;
  a->column_block = a->columns;
  if (a->rows < MOST_THREADS && a->columns > 2 * COLUMN_BLOCK && !a->quads) {
    const uint32_t unit = a->vector * (a->channels == 1 ? (uint32_t)call->source->sizes[1] / a->vector : 1);
    a->column_block = (COLUMN_BLOCK + unit - 1) / unit * unit;
  }
  p->column_blocks = (a->columns + a->column_block - 1) / a->column_block;
  const uint64_t words = slots + ((uint64_t)slots * a->column_block * element + 3) / 4 + a->staging_words;
  /* A share's first row needs all its lines, the next one few more. */
  const int64_t least = SHARES_PER_CORE * (int64_t)call->cores, amortized = a->rows / (8 * (int64_t)a->axis[1].span);
  int64_t shares = moves(call) || amortized > MOST_THREADS ? MOST_THREADS : amortized > least ? amortized : least;
  uint64_t threads = (uint64_t)(a->rows < shares ? a->rows : shares);
  while (threads > 1 && threads * p->column_blocks * words * 4 > SCRATCH_BYTES) threads /= 2;
  a->threads = (uint32_t)threads;
  a->scratch_words = (uint32_t)((words + 15) / 16 * 16);
  p->scratch_words = moves(call) ? 0 : threads * p->column_blocks * a->scratch_words;
}

/* The tables' place in one buffer. The width's is written out for each element of a line where lines hold few channels. */
static void plan_tables(interpolation_plan *p) {
  mps_interpolate_arguments *a = &p->arguments;
  for (uint32_t i = 0; i < 3; i++) {
    const mps_axis_table *t = &p->tables[i];
    const uint32_t taps = i == 2 && a->spread ? mps_axis_table_most_taps(t) : t->taps;
    const uint32_t entries = i == 2 && a->spread ? taps * t->rows * a->spread : t->start[t->rows];
    mps_interpolate_axis *axis = &a->axis[i];
    axis->start = (uint32_t)p->table_words;
    axis->index = axis->start + (i == 2 && a->spread ? 0 : t->rows + 1);
    axis->weight = axis->index + entries;
    axis->taps = taps;
    axis->span = t->span;
    axis->precision = t->precision;
    p->table_words = (uint64_t)axis->weight + entries;
  }
}

static mps_status plan(const interpolation *call, interpolation_plan *p) {
  memset(p, 0, sizeof *p);
  mps_status status = MPS_STATUS_OK;
  for (uint32_t i = 0; i < 3 && status == MPS_STATUS_OK; i++) status = make_table(call, i, &p->tables[i]);
  if (status != MPS_STATUS_OK) return status;
  mps_interpolate_arguments *a = &p->arguments;
  const mps_tensor *source = call->source, *target = call->target;
  if (source->sizes[source->rank - 1] * source->sizes[1] >= INT32_MAX || target->sizes[source->rank - 1] * source->sizes[1] >= INT32_MAX)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): lines of more than 2^31 elements", call->label);
  plan_lines(call, p);
  plan_tables(p);
  a->out_size[0] = p->tables[0].rows;
  a->out_size[1] = p->tables[1].rows;
  a->in_height = call->dimensions > 1 ? (uint32_t)source->sizes[source->rank - 2] : 1;
  const int64_t in_depth = call->dimensions > 2 ? source->sizes[2] : 1;
  if (in_depth * a->in_height >= INT32_MAX || (int64_t)a->out_size[0] * a->out_size[1] >= INT32_MAX)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): planes of more than 2^31 lines", call->label);
  a->rows = target->sizes[0] * a->channels * a->out_size[0] * a->out_size[1];
  plan_threads(call, p);
  double taps = 1.0;
  for (uint32_t i = 0; i < 3; i++) taps += (double)p->tables[i].start[p->tables[i].rows] / (double)(p->tables[i].rows ? p->tables[i].rows : 1);
  p->cost = (double)a->rows * (double)a->columns * (moves(call) ? 0.4 : 0.2 * taps);
  return MPS_STATUS_OK;
}

/* ---- encode ---- */

static mps_status upload(mps_stream *stream, const interpolation_plan *p, mps_buffer **out) {
  mps_status status = mps_buffer_create(mps_stream_device(stream), stream, p->table_words * 4, out);
  if (status != MPS_STATUS_OK) return status;
  uint32_t *words = malloc(p->table_words * 4);
  if (!words) return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "interpolate(): no memory for a table of %llu words", (unsigned long long)p->table_words);
  for (uint32_t i = 0; i < (p->arguments.spread ? 2u : 3u); i++)
    memcpy(words + p->arguments.axis[i].start, p->tables[i].start, mps_axis_table_words(&p->tables[i]) * 4);
  if (p->arguments.spread) {
    const mps_interpolate_axis *width = &p->arguments.axis[2];
    mps_axis_table_spread(&p->tables[2], width->taps, p->arguments.spread, (int32_t *)words + width->index, (int32_t *)words + width->weight);
  }
  status = mps_stream_write(stream, *out, 0, words, p->table_words * 4);
  free(words);
  return status;
}

static mps_status encode(mps_stream *stream, const interpolation *call, const interpolation_plan *p) {
  const mps_tensor *source = call->source, *target = call->target;
  mps_pipeline *pipeline;
  mps_status status = moves(call) ? mps_operand_pipeline(stream, "interpolate_nearest", mps_operand_bytes_suffix(source->dtype), &pipeline)
                                  : mps_operand_pipeline(stream, "interpolate", mps_dtype_name(source->dtype), &pipeline);
  mps_buffer *tables = NULL, *scratch = NULL;
  if (status == MPS_STATUS_OK) status = upload(stream, p, &tables);
  if (status == MPS_STATUS_OK && p->scratch_words) status = mps_buffer_create(mps_stream_device(stream), stream, p->scratch_words * 4, &scratch);
  if (status == MPS_STATUS_OK) {
    mps_encoder encoder;
    mps_encoder_begin(&encoder, stream, call->label);
    mps_encoder_set_pipeline(&encoder, pipeline);
    mps_encoder_set_buffer(&encoder, 0, source->buffer, source->offset, MPS_ACCESS_READ);
    mps_encoder_set_buffer(&encoder, 1, target->buffer, target->offset, MPS_ACCESS_WRITE);
    mps_encoder_set_buffer(&encoder, 2, tables, 0, MPS_ACCESS_READ);
    if (scratch) mps_encoder_set_buffer(&encoder, 3, scratch, 0, MPS_ACCESS_READ_WRITE);
    mps_encoder_set_bytes(&encoder, 4, &p->arguments, sizeof p->arguments);
    mps_encoder_set_cost(&encoder, p->cost);
    status = mps_encoder_dispatch(&encoder, (uint64_t[]){p->arguments.threads, p->column_blocks, 1}, (uint32_t[]){1, 1, 1});
  }
  mps_buffer_release(scratch);
  mps_buffer_release(tables);
  return status;
}

static mps_status interpolate(mps_stream *stream, interpolation call) {
  /* PyTorch's CPU kernels with antialiasing copy where the size stays, whatever the dtype. */
  if (call.filter >= MPS_FILTER_LINEAR_ANTIALIAS && !call.backward && mps_operands_same_shape(call.source, call.target))
    return mps_op_copy(stream, call.source, call.target);
  mps_status status = check(&call);
  if (status != MPS_STATUS_OK || mps_tensor_element_count(call.target) == 0) return status;
  mps_tensor source;
  mps_buffer *owned = NULL;
  if (mps_operands_overlap(call.source, call.target)) {
    status = mps_operand_copy(stream, call.source, call.source->dtype, &source);
    owned = status == MPS_STATUS_OK ? source.buffer : NULL;
  } else {
    status = mps_operand_prepare(stream, call.source, call.source->dtype, false, &source, &owned);
  }
  if (status != MPS_STATUS_OK) return status;
  call.source = &source;
  call.cores = mps_device_get_info(mps_stream_device(stream))->core_count;
  interpolation_plan p;
  status = plan(&call, &p);
  if (status == MPS_STATUS_OK) status = encode(stream, &call, &p);
  for (uint32_t i = 0; i < 3; i++) mps_axis_table_free(&p.tables[i]);
  mps_buffer_release(owned);
  return status;
}

/* ---- the operators ---- */

#define SIZES const int64_t *output_size, uint32_t output_size_count
#define INPUT_SIZES const int64_t *input_size, uint32_t input_size_count
#define UNUSED_SIZES (void)output_size, (void)output_size_count
#define UNUSED_INPUT_SIZES UNUSED_SIZES, (void)input_size, (void)input_size_count

#define NEAREST(NAME, DIMENSIONS, FILTER, SCALES, ...)                                                                                              \
  mps_status mps_op_##NAME(mps_stream *stream, const mps_tensor *self, SIZES, SCALES, const mps_tensor *out) {                                      \
    UNUSED_SIZES;                                                                                                                                   \
    return interpolate(stream, (interpolation){.label = #NAME, .source = self, .target = out, .filter = FILTER, .dimensions = DIMENSIONS,          \
                                               .scale = {__VA_ARGS__}});                                                                            \
  }                                                                                                                                                 \
  mps_status mps_op_##NAME##_backward(mps_stream *stream, const mps_tensor *grad_output, SIZES, INPUT_SIZES, SCALES, const mps_tensor *grad_input) { \
    UNUSED_INPUT_SIZES;                                                                                                                             \
    return interpolate(stream, (interpolation){.label = #NAME "_backward", .source = grad_output, .target = grad_input, .filter = FILTER,          \
                                               .dimensions = DIMENSIONS, .backward = true, .scale = {__VA_ARGS__}});                                \
  }

#define SMOOTH(NAME, DIMENSIONS, FILTER, SCALES, ...)                                                                                          \
  mps_status mps_op_##NAME(mps_stream *stream, const mps_tensor *self, SIZES, bool align_corners, SCALES, const mps_tensor *out) {            \
    UNUSED_SIZES;                                                                                                                              \
    return interpolate(stream, (interpolation){.label = #NAME, .source = self, .target = out, .filter = FILTER, .dimensions = DIMENSIONS,     \
                                               .align_corners = align_corners, .scale = {__VA_ARGS__}});                                       \
  }                                                                                                                                            \
  mps_status mps_op_##NAME##_backward(mps_stream *stream, const mps_tensor *grad_output, SIZES, INPUT_SIZES, bool align_corners, SCALES,      \
                                      const mps_tensor *grad_input) {                                                                          \
    UNUSED_INPUT_SIZES;                                                                                                                        \
    return interpolate(stream, (interpolation){.label = #NAME "_backward", .source = grad_output, .target = grad_input, .filter = FILTER,     \
                                               .dimensions = DIMENSIONS, .align_corners = align_corners, .backward = true,                     \
                                               .scale = {__VA_ARGS__}});                                                                       \
  }

#define SCALES_1 const double *scales
#define SCALES_2 const double *scales_h, const double *scales_w
#define SCALES_3 const double *scales_d, const double *scales_h, const double *scales_w

NEAREST(upsample_nearest1d, 1, MPS_FILTER_NEAREST, SCALES_1, scales)
NEAREST(upsample_nearest2d, 2, MPS_FILTER_NEAREST, SCALES_2, scales_h, scales_w)
NEAREST(upsample_nearest3d, 3, MPS_FILTER_NEAREST, SCALES_3, scales_d, scales_h, scales_w)
NEAREST(upsample_nearest_exact1d, 1, MPS_FILTER_NEAREST_EXACT, SCALES_1, scales)
NEAREST(upsample_nearest_exact2d, 2, MPS_FILTER_NEAREST_EXACT, SCALES_2, scales_h, scales_w)
NEAREST(upsample_nearest_exact3d, 3, MPS_FILTER_NEAREST_EXACT, SCALES_3, scales_d, scales_h, scales_w)
SMOOTH(upsample_linear1d, 1, MPS_FILTER_LINEAR, SCALES_1, scales)
SMOOTH(upsample_bilinear2d, 2, MPS_FILTER_LINEAR, SCALES_2, scales_h, scales_w)
SMOOTH(upsample_trilinear3d, 3, MPS_FILTER_LINEAR, SCALES_3, scales_d, scales_h, scales_w)
SMOOTH(upsample_bicubic2d, 2, MPS_FILTER_CUBIC, SCALES_2, scales_h, scales_w)
SMOOTH(upsample_bilinear2d_aa, 2, MPS_FILTER_LINEAR_ANTIALIAS, SCALES_2, scales_h, scales_w)
SMOOTH(upsample_bicubic2d_aa, 2, MPS_FILTER_CUBIC_ANTIALIAS, SCALES_2, scales_h, scales_w)
SMOOTH(upsample_lanczos2d_aa, 2, MPS_FILTER_LANCZOS_ANTIALIAS, SCALES_2, scales_h, scales_w)
