/* SPDX-License-Identifier: BSD-3-Clause
 *
 * quantized: products with weights of 8 and 4 bits.
 */
#include "graph/formula.h"
#include "kernels/quantized_arguments.h"
#include "openmps/library.h"
#include "openmps/ops/dense.h"
#include "openmps/ops/pointwise.h"
#include "openmps/ops/quantized.h"
#include "ops/operand.h"

enum {
  FLOAT_ROWS = 2,    /* from so many rows on, widening halves once pays, rather than for every weight */
  UNPACKED_ROWS = 40 /* and unpacking the weights for a matrix product */
};
/* Nanoseconds on one core, estimates. */
#define UNPACK_COST 0.15
#define MULTIPLY_COST 0.05

static mps_status check(const char *label, const mps_tensor *self, const mps_tensor *scales, int64_t columns, const mps_tensor *out) {
  if (!mps_dtype_is_floating(self->dtype))
    return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", label, mps_dtype_title(self->dtype));
  if (self->rank == 2 && out->rank == 2 && out->dtype == self->dtype && scales->dtype == self->dtype && out->sizes[0] == self->sizes[0] &&
      out->sizes[1] == columns && mps_tensor_is_contiguous(out))
    return MPS_STATUS_OK;
  return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): the shapes or dtypes of the arguments do not fit", label);
}

static mps_status start(mps_encoder *encoder, mps_stream *stream, const char *label, const char *stem, mps_dtype dtype, const mps_tensor *packed,
                        const mps_tensor *scales, const mps_quantized_arguments *arguments) {
  mps_pipeline *pipeline;
  mps_status status = mps_operand_pipeline(stream, stem, mps_dtype_name(dtype), &pipeline);
  if (status != MPS_STATUS_OK) return status;
  mps_encoder_begin(encoder, stream, label);
  mps_encoder_set_pipeline(encoder, pipeline);
  mps_encoder_set_buffer(encoder, 1, packed->buffer, packed->offset, MPS_ACCESS_READ);
  mps_encoder_set_buffer(encoder, 2, scales->buffer, scales->offset, MPS_ACCESS_READ);
  mps_encoder_set_bytes(encoder, 4, arguments, sizeof *arguments);
  return MPS_STATUS_OK;
}

static mps_status multiply(mps_stream *stream, const char *label, const mps_tensor *self, const mps_tensor *packed, const mps_tensor *scales,
                           const mps_quantized_arguments *a, const mps_tensor *out) {
  mps_encoder encoder;
  mps_status status = start(&encoder, stream, label, "quantized_multiply", self->dtype, packed, scales, a);
  if (status != MPS_STATUS_OK) return status;
  mps_encoder_set_buffer(&encoder, 0, self->buffer, self->offset, MPS_ACCESS_READ);
  mps_encoder_set_buffer(&encoder, 3, out->buffer, out->offset, MPS_ACCESS_WRITE);
  const uint64_t blocks = (uint64_t)((a->rows + MPS_QUANTIZED_ROWS - 1) / MPS_QUANTIZED_ROWS);
  mps_encoder_set_cost(&encoder, (double)(a->columns * a->depth) * ((double)blocks * UNPACK_COST + (double)a->rows * MULTIPLY_COST));
  return mps_encoder_dispatch(&encoder, (uint64_t[]){(uint64_t)a->columns, blocks, 1}, NULL);
}

/* With input, scales and result as floats. */
static mps_status multiply_in_float(mps_stream *stream, const char *label, const mps_tensor *self, const mps_tensor *packed, const mps_tensor *scales,
                                    const mps_quantized_arguments *a, const mps_tensor *out) {
  mps_tensor input, factors, result;
  mps_buffer *owned[2] = {NULL, NULL};
  mps_status status = mps_operand_create(stream, MPS_DTYPE_F32, 2, out->sizes, &result);
  if (status != MPS_STATUS_OK) return status;
  status = mps_operand_prepare(stream, self, MPS_DTYPE_F32, true, &input, &owned[0]);
  if (status == MPS_STATUS_OK) status = mps_operand_prepare(stream, scales, MPS_DTYPE_F32, true, &factors, &owned[1]);
  if (status == MPS_STATUS_OK) status = multiply(stream, label, &input, packed, &factors, a, &result);
  if (status == MPS_STATUS_OK) status = mps_op_copy(stream, &result, out);
  mps_buffer_release(owned[0]);
  mps_buffer_release(owned[1]);
  mps_buffer_release(result.buffer);
  return status;
}

/* With the weights as floats, and input and result too. */
static mps_status multiply_unpacked(mps_stream *stream, const char *label, const mps_tensor *self, const mps_tensor *packed, const mps_tensor *scales,
                                    const mps_quantized_arguments *a, const mps_tensor *out) {
  mps_tensor weight, input, result = *out;
  mps_buffer *owned = NULL;
  mps_status status = mps_operand_create(stream, MPS_DTYPE_F32, 2, (int64_t[]){a->columns, a->depth}, &weight);
  if (status != MPS_STATUS_OK) return status;
  mps_encoder encoder;
  status = start(&encoder, stream, label, "quantized_unpack", self->dtype, packed, scales, a);
  if (status == MPS_STATUS_OK) {
    mps_encoder_set_buffer(&encoder, 3, weight.buffer, weight.offset, MPS_ACCESS_WRITE);
    mps_encoder_set_cost(&encoder, (double)(a->columns * a->depth) * UNPACK_COST);
    status = mps_encoder_dispatch(&encoder, (uint64_t[]){(uint64_t)a->columns, 1, 1}, NULL);
  }
  const bool converts = out->dtype != MPS_DTYPE_F32;
  if (status == MPS_STATUS_OK) status = mps_operand_prepare(stream, self, MPS_DTYPE_F32, false, &input, &owned);
  if (status == MPS_STATUS_OK && converts) status = mps_operand_create(stream, MPS_DTYPE_F32, 2, out->sizes, &result);
  if (status == MPS_STATUS_OK) {
    status = mps_op_linear(stream, &input, &weight, NULL, &result);
    if (status == MPS_STATUS_OK && converts) status = mps_op_copy(stream, &result, out);
    if (converts) mps_buffer_release(result.buffer);
  }
  mps_buffer_release(owned);
  mps_buffer_release(weight.buffer);
  return status;
}

static mps_status run(mps_stream *stream, const char *label, const mps_tensor *self, const mps_tensor *mat2, const mps_tensor *scales,
                      const mps_quantized_arguments *a, const mps_tensor *out) {
  if (mps_tensor_element_count(out) == 0) return MPS_STATUS_OK;
  if (a->depth == 0) return mps_operand_fill(stream, out, mps_scalar_int(0));
  mps_tensor input, packed, factors;
  mps_buffer *owned[3] = {NULL, NULL, NULL};
  mps_status status = mps_operand_prepare(stream, self, self->dtype, true, &input, &owned[0]);
  if (status == MPS_STATUS_OK) status = mps_operand_prepare(stream, mat2, mat2->dtype, true, &packed, &owned[1]);
  if (status == MPS_STATUS_OK) status = mps_operand_prepare(stream, scales, scales->dtype, true, &factors, &owned[2]);
  const bool widens = self->dtype != MPS_DTYPE_F32 && a->rows >= FLOAT_ROWS;
  if (status == MPS_STATUS_OK)
    status = (a->rows >= UNPACKED_ROWS ? multiply_unpacked : widens ? multiply_in_float : multiply)(stream, label, &input, &packed, &factors, a, out);
  for (uint32_t i = 0; i < 3; i++) mps_buffer_release(owned[i]);
  return status;
}

mps_status mps_op_weight_int8pack_mm(mps_stream *stream, const mps_tensor *self, const mps_tensor *mat2, const mps_tensor *scales,
                                     const mps_tensor *out) {
  static const char label[] = "weight_int8pack_mm";
  mps_status status = check(label, self, scales, mat2->sizes[0], out);
  if (status != MPS_STATUS_OK) return status;
  if (mat2->rank != 2 || mat2->dtype != MPS_DTYPE_I8 || mat2->sizes[1] != self->sizes[1] || scales->rank != 1 || scales->sizes[0] != mat2->sizes[0])
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): expected int8 weights of shape columns x depth and a scale a column", label);
  const mps_quantized_arguments a = {.rows = self->sizes[0], .columns = mat2->sizes[0], .depth = self->sizes[1], .group = self->sizes[1], .bits = 8};
  return run(stream, label, self, mat2, scales, &a, out);
}

mps_status mps_op_weight_int4pack_mm(mps_stream *stream, const mps_tensor *self, const mps_tensor *mat2, int64_t group_size,
                                     const mps_tensor *scales_and_zeros, const mps_tensor *out) {
  static const char label[] = "weight_int4pack_mm";
  mps_status status = check(label, self, scales_and_zeros, out->sizes[1], out);
  if (status != MPS_STATUS_OK) return status;
  const int64_t depth = self->sizes[1], columns = out->sizes[1];
  if (group_size <= 0 || group_size % MPS_QUANTIZED_CHUNK || depth % 2 || mat2->dtype != MPS_DTYPE_I32 ||
      mps_tensor_element_count(mat2) * 8 != depth * columns || scales_and_zeros->rank != 3 || scales_and_zeros->sizes[1] != columns ||
      scales_and_zeros->sizes[2] != 2 || scales_and_zeros->sizes[0] * group_size < depth)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): the weights or their scales do not fit", label);
  const mps_quantized_arguments a = {.rows = self->sizes[0], .columns = columns, .depth = depth, .group = group_size, .bits = 4};
  return run(stream, label, self, mat2, scales_and_zeros, &a, out);
}

mps_status mps_op_convert_weight_to_int4pack(mps_stream *stream, const mps_tensor *self, const mps_tensor *out) {
  static const char label[] = "convert_weight_to_int4pack";
  const int64_t count = mps_tensor_element_count(self);
  if (self->dtype != MPS_DTYPE_U8 || out->dtype != MPS_DTYPE_I32 || mps_tensor_element_count(out) * 4 != count || !mps_tensor_is_contiguous(out))
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): expected bytes and a contiguous int32 result of as many", label);
  if (count == 0) return MPS_STATUS_OK;
  mps_tensor weight;
  mps_buffer *owned;
  mps_pipeline *pipeline;
  mps_status status = mps_operand_pipeline(stream, "quantized_pack", NULL, &pipeline);
  if (status == MPS_STATUS_OK) status = mps_operand_prepare(stream, self, MPS_DTYPE_U8, true, &weight, &owned);
  if (status != MPS_STATUS_OK) return status;
  mps_encoder encoder;
  mps_encoder_begin(&encoder, stream, label);
  mps_encoder_set_pipeline(&encoder, pipeline);
  mps_encoder_set_buffer(&encoder, 0, weight.buffer, weight.offset, MPS_ACCESS_READ);
  mps_encoder_set_buffer(&encoder, 1, out->buffer, out->offset, MPS_ACCESS_WRITE);
  mps_encoder_set_cost(&encoder, 0.1 * (double)count);
  status = mps_encoder_dispatch(&encoder, (uint64_t[]){(uint64_t)count, 1, 1}, NULL);
  mps_buffer_release(owned);
  return status;
}
