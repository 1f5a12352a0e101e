/* SPDX-License-Identifier: BSD-3-Clause
 *
 * norm: see norm.h.
 */
#include "ops/norm.h"

#include <string.h>

#include "openmps/ops/pointwise.h"

/* Nanoseconds an element on one core, estimates. */
#define APPLY_COST 0.25
#define GRADIENT_COST 0.35
#define PAIR_COST 0.25
/* Elements that a thread of the sums takes. */
#define PAIR_ELEMENTS 16384

mps_status mps_norm_launch(mps_stream *stream, const char *label, const char *kernel, const char *suffix, const mps_norm_argument *arguments,
                           uint32_t count, int64_t x, int64_t y, double cost) {
  if (x > UINT32_MAX || y > UINT32_MAX)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s: a grid of %lld x %lld is more than one call can take; split the tensor", label,
                         (long long)x, (long long)y);
  mps_pipeline *pipeline;
  mps_status status = mps_operand_pipeline(stream, kernel, suffix, &pipeline);
  if (status != MPS_STATUS_OK) return status;
  mps_encoder encoder;
  mps_encoder_begin(&encoder, stream, label);
  mps_encoder_set_pipeline(&encoder, pipeline);
  for (uint32_t i = 0; i < count; i++) {
    const mps_norm_argument *a = &arguments[i];
    if (a->bytes)
      mps_encoder_set_bytes(&encoder, i, a->bytes, a->length);
    else if (a->buffer)
      mps_encoder_set_buffer(&encoder, i, a->buffer, a->offset, a->access);
    else
      mps_encoder_set_unused(&encoder, i);
  }
  mps_encoder_set_cost(&encoder, cost);
  return mps_encoder_dispatch(&encoder, (uint64_t[3]){(uint64_t)x, (uint64_t)y, 1}, NULL);
}

/* ---- operands ---- */
mps_status mps_norm_vector(mps_operand_list *temporaries, int64_t count, mps_tensor *out) {
  *out = mps_operands_create(temporaries, MPS_DTYPE_F32, 1, &count);
  return temporaries->status;
}

mps_status mps_norm_prepare(mps_operand_list *temporaries, const mps_tensor *tensor, mps_dtype dtype, mps_tensor *storage,
                            const mps_tensor **out_pointer) {
  *out_pointer = NULL;
  if (!tensor) return MPS_STATUS_OK;
  *storage = mps_operands_prepare(temporaries, tensor, dtype, true);
  if (temporaries->status == MPS_STATUS_OK) *out_pointer = storage;
  return temporaries->status;
}

/* ---- layouts ---- */
mps_norm_layout mps_norm_layout_of(const mps_tensor *tensor) {
  if (!tensor->buffer || tensor->flags || tensor->rank < 2) return MPS_NORM_STRIDED;
  mps_tensor last = *tensor; /* [N, ..., C] */
  for (uint32_t d = 2; d < tensor->rank; d++) {
    last.sizes[d - 1] = tensor->sizes[d];
    last.strides[d - 1] = tensor->strides[d];
  }
  last.sizes[tensor->rank - 1] = tensor->sizes[1];
  last.strides[tensor->rank - 1] = tensor->strides[1];
  if (mps_tensor_is_contiguous(&last)) return MPS_NORM_OUTER;
  return mps_tensor_is_contiguous(tensor) ? MPS_NORM_INNER : MPS_NORM_STRIDED;
}

static bool same_strides(const mps_tensor *a, const mps_tensor *b) {
  for (uint32_t d = 0; d < a->rank; d++)
    if (a->sizes[d] > 1 && a->strides[d] != b->strides[d]) return false;
  return true;
}

mps_status mps_norm_prepare_layout(mps_operand_list *temporaries, const mps_tensor *tensor, mps_dtype dtype, const mps_tensor *like,
                                   mps_tensor *out) {
  bool fits = mps_norm_layout_of(tensor) != MPS_NORM_STRIDED && (!like || same_strides(tensor, like));
  *out = *tensor;
  if (fits && tensor->dtype == dtype) return MPS_STATUS_OK;
  *out = mps_operands_create(temporaries, dtype, tensor->rank, tensor->sizes);
  if (temporaries->status != MPS_STATUS_OK) return temporaries->status;
  const mps_tensor *shape = like ? like : fits ? tensor : NULL; /* both are dense */
  if (shape) memcpy(out->strides, shape->strides, sizeof out->strides);
  return mps_op_copy(temporaries->stream, tensor, out);
}

mps_status mps_norm_result(mps_stream *stream, const mps_tensor *out, const mps_tensor *like, mps_result *result) {
  bool fits = out->buffer && !out->flags && out->dtype == like->dtype && same_strides(out, like) &&
              (!mps_operands_overlap(out, like) || mps_operands_equal(out, like));
  *result = (mps_result){.tensor = *out, .out = NULL};
  if (fits) return MPS_STATUS_OK;
  mps_status status = mps_operand_create(stream, like->dtype, like->rank, like->sizes, &result->tensor);
  if (status != MPS_STATUS_OK) return status;
  memcpy(result->tensor.strides, like->strides, sizeof like->strides);
  result->out = out;
  return MPS_STATUS_OK;
}

mps_norm_runs mps_norm_runs_of(const mps_tensor *tensor, int64_t statistics, mps_norm_layout layout) {
  int64_t count = mps_tensor_element_count(tensor), channels = tensor->sizes[1];
  mps_norm_runs runs = {.statistics = statistics};
  if (layout == MPS_NORM_OUTER) {
    runs.runs = count / channels;
    int64_t width = channels < MPS_NORM_TILE ? channels : MPS_NORM_TILE;
    runs.piece = PAIR_ELEMENTS / width;
  } else {
    runs.runs = tensor->sizes[0] * channels;
    runs.run = count / runs.runs;
    runs.piece = MPS_NORM_PIECE;
  }
  return runs;
}

/* ---- the large kernels ---- */
static int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

typedef struct grid {
  int64_t x, y;
} grid;

static grid grid_of(const mps_norm_runs *runs, mps_norm_layout layout) {
  if (layout == MPS_NORM_OUTER) return (grid){divide_up(runs->statistics, MPS_NORM_TILE), divide_up(runs->runs, runs->piece)};
  return (grid){divide_up(runs->run, runs->piece), runs->runs};
}

static double elements(const mps_norm_runs *runs, mps_norm_layout layout) {
  return (double)runs->runs * (double)(layout == MPS_NORM_OUTER ? runs->statistics : runs->run);
}

mps_status mps_norm_apply(mps_stream *stream, const char *label, const mps_tensor *input, const mps_tensor *coefficients, const mps_norm_runs *runs,
                          mps_norm_layout layout, const mps_tensor *out) {
  grid g = grid_of(runs, layout);
  const mps_norm_argument arguments[] = {mps_norm_read(input), mps_norm_write(out), mps_norm_read(coefficients), mps_norm_bytes(runs, sizeof *runs)};
  return mps_norm_launch(stream, label, layout == MPS_NORM_OUTER ? "norm_apply_outer" : "norm_apply_inner", mps_dtype_name(input->dtype), arguments, 4,
                         g.x, g.y, elements(runs, layout) * APPLY_COST);
}

mps_status mps_norm_gradient(mps_stream *stream, const char *label, const mps_tensor *grad, const mps_tensor *input, const mps_tensor *coefficients,
                             const mps_norm_runs *runs, mps_norm_layout layout, const mps_tensor *out) {
  grid g = grid_of(runs, layout);
  const mps_norm_argument arguments[] = {mps_norm_read(grad), mps_norm_read(input), mps_norm_write(out), mps_norm_read(coefficients),
                                         mps_norm_bytes(runs, sizeof *runs)};
  return mps_norm_launch(stream, label, layout == MPS_NORM_OUTER ? "norm_gradient_outer" : "norm_gradient_inner", mps_dtype_name(input->dtype), arguments,
                         5, g.x, g.y, elements(runs, layout) * GRADIENT_COST);
}

mps_status mps_norm_pair(mps_stream *stream, const char *label, const mps_tensor *grad, const mps_tensor *input, const mps_tensor *means,
                         const mps_norm_runs *runs, mps_norm_layout layout, const mps_tensor *sums) {
  mps_norm_runs pieces = *runs;
  grid g;
  if (layout == MPS_NORM_OUTER) {
    g = grid_of(&pieces, layout);
  } else {
    pieces.piece = PAIR_ELEMENTS;
    g = (grid){pieces.statistics, divide_up(pieces.runs / pieces.statistics * pieces.run, pieces.piece)};
  }
  mps_norm_statistics finish = {.statistics = pieces.statistics, .chunk_count = g.y};
  mps_buffer *partials;
  mps_status status = mps_buffer_create(mps_stream_device(stream), stream, (size_t)(g.y * pieces.statistics) * 8, &partials);
  if (status != MPS_STATUS_OK) return status;
  const mps_norm_argument first[] = {mps_norm_read(grad), mps_norm_read(input), mps_norm_read(means),
                                     {.buffer = partials, .access = MPS_ACCESS_WRITE}, mps_norm_bytes(&pieces, sizeof pieces)};
  status = mps_norm_launch(stream, label, layout == MPS_NORM_OUTER ? "norm_pair_outer" : "norm_pair_inner", mps_dtype_name(input->dtype), first, 5, g.x,
                           g.y, elements(&pieces, layout) * PAIR_COST);
  if (status == MPS_STATUS_OK) {
    const mps_norm_argument second[] = {{.buffer = partials, .access = MPS_ACCESS_READ}, mps_norm_write(sums), mps_norm_bytes(&finish, sizeof finish)};
    status = mps_norm_launch(stream, label, "norm_pair_finish", NULL, second, 3, pieces.statistics, 1, (double)(pieces.statistics * (g.y + 8)) * 2.0);
  }
  mps_buffer_release(partials);
  return status;
}
