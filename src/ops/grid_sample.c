/* SPDX-License-Identifier: BSD-3-Clause
 *
 * grid_sample: sampling of pictures and volumes at the points of a grid, and the gradients.
 */
#include <string.h>

#include "graph/formula.h"
#include "kernels/grid_sample_arguments.h"
#include "openmps/library.h"
#include "openmps/ops/grid_sample.h"
#include "openmps/ops/pointwise.h"
#include "ops/operand.h"

enum { BLOCK = 64 }; /* points a thread takes, as in the kernel */

typedef struct sampling {
  const char *label;
  const mps_tensor *input, *grid;
  uint32_t dimensions;
  int64_t interpolation, padding;
  bool align_corners;
} sampling;

static mps_status check(const sampling *call, const mps_tensor *result) {
  const mps_tensor *input = call->input, *grid = call->grid;
  const uint32_t n = call->dimensions;
  if (input->rank != n + 2 || grid->rank != n + 2 || result->rank != n + 2 || grid->sizes[n + 1] != n || input->sizes[0] != grid->sizes[0])
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): expected input, grid and result of %u dimensions, and %u coordinates a point", call->label, n + 2, n);
  bool fits = result->sizes[0] == input->sizes[0] && result->sizes[1] == input->sizes[1];
  for (uint32_t d = 0; d < n; d++) fits = fits && result->sizes[2 + d] == grid->sizes[1 + d];
  if (!fits) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): the result has another shape than the grid", call->label);
  if (input->dtype != grid->dtype || input->dtype != result->dtype)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): expected input and grid to have the same dtype, but input has %s and grid has %s", call->label,
                         mps_dtype_title(input->dtype), mps_dtype_title(grid->dtype));
  if (!mps_dtype_is_floating(input->dtype))
    return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", call->label, mps_dtype_title(input->dtype));
  if (call->interpolation < 0 || call->interpolation > (n == 2 ? MPS_GRID_BICUBIC : MPS_GRID_NEAREST) || call->padding < 0 ||
      call->padding > MPS_GRID_REFLECTION)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): unknown interpolation (%lld) or padding (%lld)", call->label, (long long)call->interpolation,
                         (long long)call->padding);
  return MPS_STATUS_OK;
}

/* `input` may lie anyhow; INVALID_ARGUMENT if a plane is too large for 32-bit offsets. */
static mps_status plan(const sampling *call, const mps_tensor *input, mps_grid_sample_arguments *a) {
  memset(a, 0, sizeof *a);
  a->points = 1;
  for (uint32_t d = 0; d < call->dimensions; d++) a->points *= call->grid->sizes[1 + d];
  a->channels = input->sizes[1];
  a->in_batch = input->strides[0];
  a->in_channel = input->strides[1];
  int64_t reach = 0, elements = 1;
  for (uint32_t k = 0; k < 3; k++) a->size[k] = 1;
  for (uint32_t k = 0; k < call->dimensions; k++) {
    const uint32_t d = call->dimensions + 1 - k;
    const int64_t step = input->strides[d] < 0 ? -input->strides[d] : input->strides[d];
    reach += (input->sizes[d] - 1) * step;
    elements *= input->sizes[d];
    a->size[k] = (int32_t)input->sizes[d];
    a->in_stride[k] = (int32_t)input->strides[d];
  }
  if (reach >= INT32_MAX || elements >= INT32_MAX)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): planes of more than 2^31 elements", call->label);
  a->interpolation = (uint32_t)call->interpolation;
  a->padding = (uint32_t)call->padding;
  a->align_corners = call->align_corners;
  return MPS_STATUS_OK;
}

/* Nanoseconds for one point of one plane. */
static double cost_of(const sampling *call) {
  return call->interpolation == MPS_GRID_NEAREST ? 1.0 : call->interpolation == MPS_GRID_BICUBIC ? 12.0 : call->dimensions == 2 ? 3.0 : 6.0;
}

/* Input (or its gradient), grid, output (or its gradient), arguments, and for the grid's gradient a fifth buffer. */
static mps_status encode(mps_stream *stream, const sampling *call, const char *stem, const mps_tensor *first, mps_access first_access, const mps_tensor *grid,
                         const mps_tensor *result, mps_access result_access, const mps_tensor *last, const mps_grid_sample_arguments *a, bool by_plane) {
  char suffix[16] = "2d_";
  suffix[0] = (char)('0' + call->dimensions);
  strncat(suffix, mps_dtype_name(grid->dtype), sizeof suffix - 4);
  mps_pipeline *pipeline;
  mps_status status = mps_operand_pipeline(stream, stem, suffix, &pipeline);
  if (status != MPS_STATUS_OK) return status;
  const uint64_t batch = (uint64_t)grid->sizes[0], blocks = (uint64_t)(a->points + BLOCK - 1) / BLOCK;
  mps_encoder encoder;
  mps_encoder_begin(&encoder, stream, call->label);
  mps_encoder_set_pipeline(&encoder, pipeline);
  mps_encoder_set_buffer(&encoder, 0, first->buffer, first->offset, first_access);
  mps_encoder_set_buffer(&encoder, 1, grid->buffer, grid->offset, MPS_ACCESS_READ);
  mps_encoder_set_buffer(&encoder, 2, result->buffer, result->offset, result_access);
  mps_encoder_set_bytes(&encoder, 3, a, sizeof *a);
  if (last) mps_encoder_set_buffer(&encoder, 4, last->buffer, last->offset, MPS_ACCESS_WRITE);
  mps_encoder_set_cost(&encoder, (double)batch * (double)a->points * (5.0 + (double)a->channels * cost_of(call) * (by_plane || last ? 2.0 : 1.0)));
  uint64_t threads[3] = {by_plane ? batch * (uint64_t)a->channels : blocks, by_plane ? 1 : batch, 1};
  return mps_encoder_dispatch(&encoder, threads, (uint32_t[]){1, 1, 1});
}

static mps_status forward(mps_stream *stream, const sampling *call, const mps_tensor *out) {
  mps_status status = check(call, out);
  if (status != MPS_STATUS_OK || mps_tensor_element_count(out) == 0) return status;
  if (!mps_tensor_is_contiguous(out)) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): the result must be contiguous", call->label);
  mps_tensor input, grid;
  mps_buffer *input_owned = NULL, *grid_owned = NULL;
  status = mps_operand_prepare(stream, call->input, call->input->dtype, false, &input, &input_owned);
  if (status == MPS_STATUS_OK) status = mps_operand_prepare(stream, call->grid, call->grid->dtype, true, &grid, &grid_owned);
  mps_grid_sample_arguments a;
  if (status == MPS_STATUS_OK) status = plan(call, &input, &a);
  if (status == MPS_STATUS_OK) status = encode(stream, call, "grid_sample", &input, MPS_ACCESS_READ, &grid, out, MPS_ACCESS_WRITE, NULL, &a, false);
  mps_buffer_release(grid_owned);
  mps_buffer_release(input_owned);
  return status;
}

/* Sums are kept in float, in the result itself where that is what it holds. */
static mps_status backward_input(mps_stream *stream, const sampling *call, const mps_tensor *grid, const mps_tensor *grad, const mps_grid_sample_arguments *a,
                                 const mps_tensor *grad_input) {
  mps_tensor sums = *grad_input;
  mps_buffer *owned = NULL;
  mps_status status = MPS_STATUS_OK;
  if (grad_input->dtype != MPS_DTYPE_F32 || !mps_tensor_is_contiguous(grad_input)) {
    status = mps_operand_create(stream, MPS_DTYPE_F32, grad_input->rank, grad_input->sizes, &sums);
    owned = status == MPS_STATUS_OK ? sums.buffer : NULL;
  }
  if (status == MPS_STATUS_OK) status = mps_operand_fill(stream, &sums, mps_scalar_int(0));
  if (status == MPS_STATUS_OK && a->points)
    status = encode(stream, call, "grid_sample_backward_input", &sums, MPS_ACCESS_READ_WRITE, grid, grad, MPS_ACCESS_READ, NULL, a, true);
  if (status == MPS_STATUS_OK && owned) status = mps_op_copy(stream, &sums, grad_input);
  mps_buffer_release(owned);
  return status;
}

static mps_status backward_grid(mps_stream *stream, const sampling *call, const mps_tensor *input, const mps_tensor *grid, const mps_tensor *grad,
                                const mps_grid_sample_arguments *a, const mps_tensor *grad_grid) {
  if (a->interpolation == MPS_GRID_NEAREST || mps_tensor_element_count(grad) == 0) return mps_operand_fill(stream, grad_grid, mps_scalar_int(0));
  if (!mps_tensor_is_contiguous(grad_grid)) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): the result must be contiguous", call->label);
  return encode(stream, call, "grid_sample_backward_grid", input, MPS_ACCESS_READ, grid, grad, MPS_ACCESS_READ, grad_grid, a, false);
}

/* Either result may be NULL. */
static mps_status backward(mps_stream *stream, const sampling *call, const mps_tensor *grad_output, const mps_tensor *grad_input, const mps_tensor *grad_grid) {
  mps_status status = check(call, grad_output);
  if (status != MPS_STATUS_OK) return status;
  if ((grad_input && (!mps_operands_same_shape(grad_input, call->input) || grad_input->dtype != call->input->dtype)) ||
      (grad_grid && (!mps_operands_same_shape(grad_grid, call->grid) || grad_grid->dtype != call->grid->dtype)))
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): gradients must have the shapes and the dtype of input and grid", call->label);
  mps_tensor input, grid, grad;
  mps_buffer *owned[3] = {NULL, NULL, NULL};
  status = mps_operand_prepare(stream, call->input, call->input->dtype, false, &input, &owned[0]);
  if (status == MPS_STATUS_OK) status = mps_operand_prepare(stream, call->grid, call->grid->dtype, true, &grid, &owned[1]);
  if (status == MPS_STATUS_OK) status = mps_operand_prepare(stream, grad_output, grad_output->dtype, true, &grad, &owned[2]);
  mps_grid_sample_arguments a;
  if (status == MPS_STATUS_OK) status = plan(call, &input, &a);
  if (status == MPS_STATUS_OK && grad_input && mps_tensor_element_count(grad_input))
    status = backward_input(stream, call, &grid, &grad, &a, grad_input);
  if (status == MPS_STATUS_OK && grad_grid && mps_tensor_element_count(grad_grid))
    status = backward_grid(stream, call, &input, &grid, &grad, &a, grad_grid);
  for (uint32_t i = 3; i-- > 0;) mps_buffer_release(owned[i]);
  return status;
}

/* ---- the operators ---- */

#define GRID_SAMPLER(N)                                                                                                                             \
  mps_status mps_op_grid_sampler_##N##d(mps_stream *stream, const mps_tensor *input, const mps_tensor *grid, int64_t interpolation_mode,           \
                                        int64_t padding_mode, bool align_corners, const mps_tensor *out) {                                          \
    return forward(stream, &(sampling){"grid_sampler_" #N "d", input, grid, N, interpolation_mode, padding_mode, align_corners}, out);             \
  }                                                                                                                                                 \
  mps_status mps_op_grid_sampler_##N##d_backward(mps_stream *stream, const mps_tensor *grad_output, const mps_tensor *input, const mps_tensor *grid, \
                                                 int64_t interpolation_mode, int64_t padding_mode, bool align_corners,                              \
                                                 const mps_tensor *grad_input, const mps_tensor *grad_grid) {                                       \
    return backward(stream, &(sampling){"grid_sampler_" #N "d_backward", input, grid, N, interpolation_mode, padding_mode, align_corners},         \
                    grad_output, grad_input, grad_grid);                                                                                            \
  }
GRID_SAMPLER(2)
GRID_SAMPLER(3)
