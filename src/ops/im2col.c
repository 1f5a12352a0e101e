/* SPDX-License-Identifier: BSD-3-Clause
 *
 * im2col: windows of an image as columns (torch.nn.functional.unfold), and their sums (fold).
 */
#include <string.h>

#include "kernels/im2col_arguments.h"
#include "openmps/library.h"
#include "openmps/ops/im2col.h"
#include "openmps/ops/pointwise.h"
#include "ops/operand.h"

enum { BLOCK = 4096 /* elements that one thread takes, about */ };

/* Lists have two numbers, height and width. */
typedef struct im2col_call {
  const char *label;
  const mps_tensor *image, *columns;
  const int64_t *window, *dilation, *padding, *stride;
  uint32_t counts[4];
} im2col_call;

static mps_status check(const im2col_call *call) {
  const mps_tensor *image = call->image, *columns = call->columns;
  for (uint32_t i = 0; i < 4; i++)
    if (call->counts[i] != 2) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): expected lists of two numbers, got %u", call->label, call->counts[i]);
  for (uint32_t d = 0; d < 2; d++)
    if (call->window[d] < 1 || call->dilation[d] < 1 || call->stride[d] < 1 || call->padding[d] < 0)
      return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): kernel size, dilation and stride must be greater than zero, padding not negative", call->label);
  if ((image->rank != 3 && image->rank != 4) || columns->rank != image->rank - 1 || (image->rank == 4 && image->sizes[0] != columns->sizes[0]))
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): expected an image of rank 3 or 4 and columns of a rank less, of one batch size", call->label);
  return MPS_STATUS_OK;
}

static mps_status plan(const im2col_call *call, mps_im2col_arguments *a) {
  memset(a, 0, sizeof *a);
  const mps_tensor *image = call->image, *columns = call->columns;
  const uint32_t first = image->rank - 3;
  a->channels = image->sizes[first];
  a->image_batch = first ? image->strides[0] : 0;
  a->image_channel = image->strides[first];
  a->column_batch = first ? columns->strides[0] : 0;
  a->column_row = columns->strides[first];
  a->column_place = columns->strides[first + 1];
  for (uint32_t d = 0; d < 2; d++) {
    a->window[d] = call->window[d];
    a->dilation[d] = call->dilation[d];
    a->padding[d] = call->padding[d];
    a->stride[d] = call->stride[d];
    a->image_size[d] = image->sizes[first + 1 + d];
    a->image_stride[d] = image->strides[first + 1 + d];
    const int64_t room = a->image_size[d] + 2 * a->padding[d] - (a->dilation[d] * (a->window[d] - 1) + 1);
    a->places[d] = room < 0 ? 0 : room / a->stride[d] + 1;
  }
  if (columns->sizes[first] != a->channels * a->window[0] * a->window[1] || columns->sizes[first + 1] != a->places[0] * a->places[1])
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): the shape of the columns does not fit the image", call->label);
  return MPS_STATUS_OK;
}

static mps_status encode(mps_stream *stream, const im2col_call *call, const mps_tensor *from, const mps_tensor *to, const char *suffix, bool to_columns) {
  mps_im2col_arguments a;
  mps_status status = plan(call, &a);
  if (status != MPS_STATUS_OK) return status;
  mps_pipeline *pipeline;
  status = mps_operand_pipeline(stream, call->label, suffix, &pipeline);
  if (status == MPS_STATUS_NOT_FOUND) return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", call->label, suffix);
  if (status != MPS_STATUS_OK) return status;
  const int64_t window = a.window[0] * a.window[1], width = to_columns ? a.places[1] : a.image_size[1] * window;
  const int64_t height = to_columns ? a.places[0] : a.image_size[0];
  const int64_t planes = a.channels * (call->image->rank == 4 ? call->image->sizes[0] : 1) * (to_columns ? window : 1);
  a.rows = width < BLOCK ? BLOCK / width : 1;
  mps_encoder encoder;
  mps_encoder_begin(&encoder, stream, call->label);
  mps_encoder_set_pipeline(&encoder, pipeline);
  mps_encoder_set_buffer(&encoder, 0, from->buffer, from->offset, MPS_ACCESS_READ);
  mps_encoder_set_buffer(&encoder, 1, to->buffer, to->offset, MPS_ACCESS_WRITE);
  mps_encoder_set_bytes(&encoder, 2, &a, sizeof a);
  mps_encoder_set_cost(&encoder, 0.4 * (double)mps_tensor_element_count(call->columns) + 5.0 * (double)(planes * height));
  return mps_encoder_dispatch(&encoder, (uint64_t[]){(uint64_t)planes, (uint64_t)((height + a.rows - 1) / a.rows), 1}, NULL);
}

mps_status mps_op_im2col(mps_stream *stream, const mps_tensor *self, const int64_t *kernel_size, uint32_t kernel_size_count, const int64_t *dilation,
                         uint32_t dilation_count, const int64_t *padding, uint32_t padding_count, const int64_t *stride, uint32_t stride_count,
                         const mps_tensor *out) {
  im2col_call call = {"im2col", self, out, kernel_size, dilation, padding, stride, {kernel_size_count, dilation_count, padding_count, stride_count}};
  mps_status status = check(&call);
  if (status != MPS_STATUS_OK || mps_tensor_element_count(out) == 0) return status;
  mps_tensor image;
  mps_buffer *owned;
  status = mps_operand_prepare(stream, self, out->dtype, false, &image, &owned);
  if (status != MPS_STATUS_OK) return status;
  call.image = &image;
  status = encode(stream, &call, &image, out, mps_operand_bytes_suffix(out->dtype), true);
  mps_buffer_release(owned);
  return status;
}

/* Half and bfloat are summed in float and rounded once. */
mps_status mps_op_col2im(mps_stream *stream, const mps_tensor *self, const int64_t *output_size, uint32_t output_size_count, const int64_t *kernel_size,
                         uint32_t kernel_size_count, const int64_t *dilation, uint32_t dilation_count, const int64_t *padding, uint32_t padding_count,
                         const int64_t *stride, uint32_t stride_count, const mps_tensor *out) {
  (void)output_size; /* out has it */
  (void)output_size_count;
  im2col_call call = {"col2im", out, self, kernel_size, dilation, padding, stride, {kernel_size_count, dilation_count, padding_count, stride_count}};
  mps_status status = check(&call);
  if (status != MPS_STATUS_OK || mps_tensor_element_count(out) == 0) return status;
  mps_tensor columns, sums = *out;
  mps_buffer *columns_owned, *sums_owned = NULL;
  status = mps_operand_prepare(stream, self, out->dtype, false, &columns, &columns_owned);
  if (status == MPS_STATUS_OK && (out->dtype == MPS_DTYPE_F16 || out->dtype == MPS_DTYPE_BF16)) {
    status = mps_operand_create(stream, MPS_DTYPE_F32, out->rank, out->sizes, &sums);
    sums_owned = status == MPS_STATUS_OK ? sums.buffer : NULL;
  }
  call.columns = &columns;
  call.image = &sums;
  if (status == MPS_STATUS_OK) status = encode(stream, &call, &columns, &sums, mps_dtype_name(out->dtype), false);
  if (status == MPS_STATUS_OK && sums_owned) status = mps_op_copy(stream, &sums, out);
  mps_buffer_release(sums_owned);
  mps_buffer_release(columns_owned);
  return status;
}
