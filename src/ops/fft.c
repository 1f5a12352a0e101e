/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fft: Fourier transforms, dimension by dimension: from self into out, then within out.
 */
#include "openmps/ops/fft.h"

#include <string.h>

#include "base/status.h"
#include "openmps/library.h"
#include "ops/fft_plan.h"
#include "ops/operand.h"

/* ---- check ---- */

/* Sizes agree but in dimension `last`, which holds the half of `whole` when a side is one-sided. */
static mps_status check_shapes(const char *label, const mps_tensor *self, const mps_tensor *out, uint32_t last, int64_t self_size, int64_t out_size) {
  bool fits = self->rank == out->rank && self->sizes[last] == self_size && out->sizes[last] == out_size;
  for (uint32_t d = 0; fits && d < self->rank; d++) fits = d == last || self->sizes[d] == out->sizes[d];
  if (!fits) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): self and out must have the shapes of a spectrum and its signal", label);
  if (mps_operands_overlap(self, out)) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): self and out must not overlap", label);
  return MPS_STATUS_OK;
}

static mps_status check_dtypes(const char *label, const mps_tensor *self, mps_dtype wanted, const mps_tensor *out, mps_dtype wanted_out) {
  if (self->dtype == wanted && out->dtype == wanted_out && self->buffer && !self->flags) return MPS_STATUS_OK;
  return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "%s(): expected %s to %s, without flags", label, mps_dtype_name(wanted), mps_dtype_name(wanted_out));
}

/* dims as numbers from 0. At least one, at most rank. */
static mps_status check_dimensions(const char *label, const mps_tensor *self, const int64_t *dims, uint32_t dims_count, uint32_t *out) {
  if (self->rank == 0 || dims_count == 0 || dims_count > self->rank)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): expected 1 to %u dimensions, got %u", label, self->rank, dims_count);
  for (uint32_t i = 0; i < dims_count; i++) {
    MPS_TRY(mps_operand_dimension(dims[i], self->rank, &out[i]));
    for (uint32_t j = 0; j < i; j++)
      if (out[i] == out[j]) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): dimension %u appears more than once", label, out[i]);
  }
  return MPS_STATUS_OK;
}

/* ---- encode ---- */

/* A buffer and where in it. */
typedef struct place {
  mps_buffer *buffer;
  uint64_t offset;
} place;

static bool in_pairs(const int64_t *strides, uint32_t rank, uint64_t offset) {
  for (uint32_t d = 0; d < rank; d++)
    if (strides[d] % 2 != 0) return false;
  return offset % (2 * sizeof(float)) == 0;
}

/* The step's arguments with what only the places tell. */
static mps_fft_arguments tiles_at(const mps_fft_arguments *tiles, place from, place to) {
  mps_fft_arguments placed = *tiles;
  if (in_pairs(placed.batch.in_strides, placed.batch.rank, from.offset)) placed.values.flags |= MPS_FFT_IN_PAIRS;
  if (in_pairs(placed.batch.out_strides, placed.batch.rank, to.offset)) placed.values.flags |= MPS_FFT_OUT_PAIRS;
  return placed;
}

static mps_status encode_step(mps_stream *stream, const char *label, const mps_fft_step *step, const place *places) {
  static const char *const kernels[] = {
      [MPS_FFT_TILES] = "fft_tiles", [MPS_FFT_MULTIPLY] = "fft_multiply", [MPS_FFT_PACK_ROWS] = "fft_pack", [MPS_FFT_UNPACK_ROWS] = "fft_unpack"};
  const place from = places[step->source], to = places[step->destination];
  mps_pipeline *pipeline;
  mps_buffer *table = NULL, *scratch = NULL;
  MPS_TRY(mps_operand_pipeline(stream, kernels[step->kernel], NULL, &pipeline));
  mps_status status = mps_fft_table_find(stream, &step->table, &table);
  if (status == MPS_STATUS_OK && step->scratch_bytes)
    status = mps_buffer_create(mps_stream_device(stream), stream, step->scratch_bytes, &scratch);
  if (status == MPS_STATUS_OK) {
    mps_encoder encoder;
    mps_encoder_begin(&encoder, stream, label);
    mps_encoder_set_pipeline(&encoder, pipeline);
    const bool same = from.buffer == to.buffer;
    mps_encoder_set_buffer(&encoder, 0, from.buffer, from.offset, same ? MPS_ACCESS_READ_WRITE : MPS_ACCESS_READ);
    mps_encoder_set_buffer(&encoder, 1, to.buffer, to.offset, same ? MPS_ACCESS_READ_WRITE : MPS_ACCESS_WRITE);
    if (step->kernel == MPS_FFT_TILES) {
      const mps_fft_arguments tiles = tiles_at(&step->tiles, from, to);
      mps_encoder_set_bytes(&encoder, 2, &tiles, sizeof tiles);
    } else {
      mps_encoder_set_bytes(&encoder, 2, &step->rows, sizeof step->rows);
    }
    mps_encoder_set_buffer(&encoder, 3, table, 0, MPS_ACCESS_READ);
    if (scratch) mps_encoder_set_buffer(&encoder, 4, scratch, 0, MPS_ACCESS_READ_WRITE);
    mps_encoder_set_cost(&encoder, step->cost);
    status = mps_encoder_dispatch(&encoder, step->threads, NULL);
  }
  mps_buffer_release(scratch);
  mps_buffer_release(table);
  return status;
}

/* The transforms along one dimension. self and out may be one tensor. */
static mps_status run(mps_stream *stream, const char *label, mps_fft_call *call, const mps_tensor *self, const mps_tensor *out, uint32_t dimension) {
  mps_fft_plan plan;
  call->cores = mps_device_get_info(mps_stream_device(stream))->core_count;
  MPS_TRY(mps_fft_plan_make(&plan, call, self, out, dimension));
  place places[MPS_FFT_TEMPORARY + MPS_FFT_MAX_TEMPORARIES] = {[MPS_FFT_SELF] = {self->buffer, self->offset}, [MPS_FFT_OUT] = {out->buffer, out->offset}};
  mps_status status = MPS_STATUS_OK;
  for (uint32_t i = 0; i < plan.temporary_count && status == MPS_STATUS_OK; i++)
    status = mps_buffer_create(mps_stream_device(stream), stream, plan.temporary_bytes[i], &places[MPS_FFT_TEMPORARY + i].buffer);
  for (uint32_t i = 0; i < plan.step_count && status == MPS_STATUS_OK; i++) status = encode_step(stream, label, &plan.steps[i], places);
  for (uint32_t i = 0; i < plan.temporary_count; i++) mps_buffer_release(places[MPS_FFT_TEMPORARY + i].buffer);
  return status;
}

/* Complex transforms along several dimensions, the last one first; `scale` with the one that ends. */
static mps_status run_all(mps_stream *stream, const char *label, const mps_tensor *self, const mps_tensor *out, const uint32_t *dims, uint32_t count,
                          bool inverse, double scale) {
  for (uint32_t i = count; i-- > 0;) {
    mps_fft_call call = {.kind = MPS_FFT_COMPLEX, .inverse = inverse, .scale = i == 0 ? (float)scale : 1.0f};
    MPS_TRY(run(stream, label, &call, i + 1 == count ? self : out, out, dims[i]));
  }
  return MPS_STATUS_OK;
}

mps_status mps_op_fft_c2c(mps_stream *stream, const mps_tensor *self, const int64_t *dims, uint32_t dims_count, double scale, bool forward,
                          const mps_tensor *out) {
  uint32_t dimensions[MPS_MAX_RANK];
  MPS_TRY(check_dtypes("fft_c2c", self, MPS_DTYPE_C64, out, MPS_DTYPE_C64));
  MPS_TRY(check_dimensions("fft_c2c", self, dims, dims_count, dimensions));
  MPS_TRY(check_shapes("fft_c2c", self, out, 0, self->sizes[0], self->sizes[0]));
  return run_all(stream, "fft_c2c", self, out, dimensions, dims_count, !forward, scale);
}

mps_status mps_op_fft_r2c(mps_stream *stream, const mps_tensor *self, const int64_t *dims, uint32_t dims_count, double scale, bool onesided,
                          const mps_tensor *out) {
  uint32_t dimensions[MPS_MAX_RANK];
  MPS_TRY(check_dtypes("fft_r2c", self, MPS_DTYPE_F32, out, MPS_DTYPE_C64));
  MPS_TRY(check_dimensions("fft_r2c", self, dims, dims_count, dimensions));
  const uint32_t last = dimensions[dims_count - 1];
  const int64_t length = self->sizes[last];
  MPS_TRY(check_shapes("fft_r2c", self, out, last, length, onesided ? length / 2 + 1 : length));
  mps_fft_call call = {.kind = MPS_FFT_FROM_REAL, .onesided = onesided, .scale = dims_count == 1 ? (float)scale : 1.0f};
  MPS_TRY(run(stream, "fft_r2c", &call, self, out, last));
  return run_all(stream, "fft_r2c", out, out, dimensions, dims_count - 1, false, scale);
}

mps_status mps_op_fft_c2r(mps_stream *stream, const mps_tensor *self, const int64_t *dims, uint32_t dims_count, double scale, const mps_tensor *out) {
  uint32_t dimensions[MPS_MAX_RANK];
  MPS_TRY(check_dtypes("fft_c2r", self, MPS_DTYPE_C64, out, MPS_DTYPE_F32));
  MPS_TRY(check_dimensions("fft_c2r", self, dims, dims_count, dimensions));
  const uint32_t last = dimensions[dims_count - 1];
  const int64_t length = out->sizes[last];
  MPS_TRY(check_shapes("fft_c2r", self, out, last, length / 2 + 1, length));
  mps_tensor half = *self;
  mps_buffer *owned = NULL;
  mps_status status = MPS_STATUS_OK;
  if (dims_count > 1 && mps_tensor_element_count(self) > 0) {
    status = mps_operand_create(stream, self->dtype, self->rank, self->sizes, &half);
    if (status != MPS_STATUS_OK) return status;
    owned = half.buffer;
    status = run_all(stream, "fft_c2r", self, &half, dimensions, dims_count - 1, true, 1.0);
  }
  mps_fft_call call = {.kind = MPS_FFT_TO_REAL, .scale = (float)scale};
  if (status == MPS_STATUS_OK) status = run(stream, "fft_c2r", &call, &half, out, last);
  mps_buffer_release(owned);
  return status;
}
