/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pool: pooling over windows in two and three dimensions, adaptive and fractional pooling, unpooling, and the gradients.
 */
#include "ops/pool_plan.h"

#include <string.h>

#include "graph/formula.h"
#include "openmps/library.h"
#include "openmps/ops/pointwise.h"
#include "openmps/ops/pool.h"
#include "ops/operand.h"

/* Buffers 0 and 1 by the kernel's order, then indices, arguments, samples or (where indices are read) errors. */
static mps_status encode(mps_stream *stream, const mps_pool_call *call, mps_pool_grid grid, const mps_tensor *first, mps_access first_access,
                         const mps_tensor *second, mps_access second_access) {
  mps_pool_plan p;
  mps_pool_plan_make(&p, call, grid);
  mps_pipeline *pipeline;
  mps_status status = mps_operand_pipeline(stream, p.stem, p.suffix, &pipeline);
  if (status == MPS_STATUS_NOT_FOUND)
    return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", call->title ? call->title : call->label,
                         mps_dtype_title(call->small->dtype));
  if (status != MPS_STATUS_OK) return status;
  const bool puts = grid == MPS_POOL_GRID_PLANES, takes_samples = strcmp(p.stem, "pool_max") == 0;
  mps_encoder encoder;
  mps_encoder_begin(&encoder, stream, call->label);
  mps_encoder_set_pipeline(&encoder, pipeline);
  mps_encoder_set_buffer(&encoder, 0, first->buffer, first->offset, first_access);
  mps_encoder_set_buffer(&encoder, 1, second->buffer, second->offset, second_access);
  const mps_tensor *samples = call->samples ? call->samples : first; /* every argument of a kernel is set, used or not */
  if (call->indices) mps_encoder_set_buffer(&encoder, 2, call->indices->buffer, call->indices->offset, puts ? MPS_ACCESS_READ : MPS_ACCESS_WRITE);
  else if (takes_samples) mps_encoder_set_buffer(&encoder, 2, first->buffer, first->offset, MPS_ACCESS_READ);
  mps_encoder_set_bytes(&encoder, 3, &p.arguments, sizeof p.arguments);
  if (takes_samples) mps_encoder_set_buffer(&encoder, 4, samples->buffer, samples->offset, MPS_ACCESS_READ);
  if (puts) mps_encoder_set_error_buffer(&encoder, 4);
  mps_encoder_set_cost(&encoder, p.cost);
  return mps_encoder_dispatch(&encoder, p.threads, NULL);
}

static mps_status forward(mps_stream *stream, mps_pool_call *call) {
  mps_status status = mps_pool_check(call);
  if (status != MPS_STATUS_OK || mps_tensor_element_count(call->small) == 0) return status;
  if (call->large->dtype != call->small->dtype)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): input and output differ in dtype", call->label);
  mps_tensor input, samples;
  mps_buffer *owned = NULL, *samples_owned = NULL;
  status = mps_operand_prepare(stream, call->large, call->large->dtype, false, &input, &owned);
  if (status == MPS_STATUS_OK && call->samples) {
    status = mps_operand_prepare(stream, call->samples, call->large->dtype, true, &samples, &samples_owned);
    call->samples = &samples;
  }
  call->large = &input;
  if (status == MPS_STATUS_OK) status = encode(stream, call, MPS_POOL_GRID_SMALL, &input, MPS_ACCESS_READ, call->small, MPS_ACCESS_WRITE);
  mps_buffer_release(samples_owned);
  mps_buffer_release(owned);
  return status;
}

/* Both sides of a gradient fit. True when there is more to do: nothing is left where the result is empty, and only zeros without windows. */
static bool begin_backward(mps_stream *stream, const mps_pool_call *call, mps_status *status) {
  *status = mps_pool_check(call);
  if (*status != MPS_STATUS_OK || mps_tensor_element_count(call->large) == 0) return false;
  if (call->large->dtype != call->small->dtype) {
    *status = mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): gradients differ in dtype", call->label);
    return false;
  }
  if (mps_tensor_element_count(call->small)) return true;
  *status = mps_operand_fill(stream, call->large, mps_scalar_int(0));
  return false;
}

/* Gradients of means: each element of the large side gathers its shares. */
static mps_status spread(mps_stream *stream, mps_pool_call *call) {
  mps_status status;
  if (!begin_backward(stream, call, &status)) return status;
  mps_tensor source;
  mps_buffer *owned;
  status = mps_operand_prepare(stream, call->small, call->small->dtype, false, &source, &owned);
  if (status != MPS_STATUS_OK) return status;
  call->small = &source;
  status = encode(stream, call, MPS_POOL_GRID_LARGE, call->large, MPS_ACCESS_WRITE, &source, MPS_ACCESS_READ);
  mps_buffer_release(owned);
  return status;
}

/* A float tensor of `like`'s shape, with its strides if they leave no gaps. */
static mps_status create_sums(mps_stream *stream, const mps_tensor *like, mps_dtype dtype, mps_tensor *out) {
  mps_status status = mps_operand_create(stream, dtype, like->rank, like->sizes, out);
  int64_t span = 1;
  bool ascends = true;
  for (uint32_t d = 0; d < like->rank; d++) {
    span += (like->sizes[d] - 1) * like->strides[d];
    ascends = ascends && like->strides[d] >= 0;
  }
  if (status == MPS_STATUS_OK && ascends && span == mps_tensor_element_count(like)) memcpy(out->strides, like->strides, sizeof out->strides);
  return status;
}

/* Kernels that put elements into the large side, plane by plane. `sums`: they add; sums of halves are kept in float. */
static mps_status put(mps_stream *stream, mps_pool_call *call, bool sums) {
  mps_status status;
  if (!begin_backward(stream, call, &status)) return status;
  const mps_tensor *result = call->large;
  const mps_dtype kept_in = sums ? mps_operand_sum_dtype(result->dtype) : result->dtype;
  mps_tensor target = *result, source, indices;
  mps_buffer *target_owned = NULL, *source_owned = NULL, *indices_owned = NULL;
  if (kept_in != result->dtype) {
    status = create_sums(stream, result, kept_in, &target);
    target_owned = status == MPS_STATUS_OK ? target.buffer : NULL;
  }
  if (status == MPS_STATUS_OK) status = mps_operand_prepare(stream, call->small, call->small->dtype, false, &source, &source_owned);
  if (status == MPS_STATUS_OK) status = mps_operand_prepare(stream, call->indices, MPS_DTYPE_I64, false, &indices, &indices_owned);
  if (status == MPS_STATUS_OK) {
    call->large = &target;
    call->small = &source;
    call->indices = &indices;
    status = encode(stream, call, MPS_POOL_GRID_PLANES, &target, MPS_ACCESS_READ_WRITE, &source, MPS_ACCESS_READ);
  }
  if (status == MPS_STATUS_OK && target_owned) status = mps_op_copy(stream, &target, result);
  mps_buffer_release(indices_owned);
  mps_buffer_release(source_owned);
  mps_buffer_release(target_owned);
  return status;
}

/* ---- the operators: how many dimensions, which kernel ---- */

#define WINDOW_LISTS                                                                                                                          \
  .kernel = kernel_size, .kernel_count = kernel_size_count, .stride = stride, .stride_count = stride_count, .padding = padding,               \
  .padding_count = padding_count
#define MAX_LISTS WINDOW_LISTS, .dilation = dilation, .dilation_count = dilation_count

mps_status mps_op_max_pool2d(mps_stream *stream, const mps_tensor *self, const int64_t *kernel_size, uint32_t kernel_size_count,
                             const int64_t *stride, uint32_t stride_count, const int64_t *padding, uint32_t padding_count,
                             const int64_t *dilation, uint32_t dilation_count, bool ceil_mode, const mps_tensor *out, const mps_tensor *indices) {
  (void)ceil_mode; /* out's shape tells */
  return forward(stream, &(mps_pool_call){.label = "max_pool2d", .stem = "pool_max", .large = self, .small = out, .indices = indices,
                                          .dimensions = 2, MAX_LISTS});
}

mps_status mps_op_max_pool3d(mps_stream *stream, const mps_tensor *self, const int64_t *kernel_size, uint32_t kernel_size_count,
                             const int64_t *stride, uint32_t stride_count, const int64_t *padding, uint32_t padding_count,
                             const int64_t *dilation, uint32_t dilation_count, bool ceil_mode, const mps_tensor *out, const mps_tensor *indices) {
  (void)ceil_mode;
  return forward(stream, &(mps_pool_call){.label = "max_pool3d", .stem = "pool_max", .large = self, .small = out, .indices = indices,
                                          .dimensions = 3, MAX_LISTS});
}

mps_status mps_op_max_pool2d_backward(mps_stream *stream, const mps_tensor *grad_output, const mps_tensor *self, const int64_t *kernel_size,
                                      uint32_t kernel_size_count, const int64_t *stride, uint32_t stride_count, const int64_t *padding,
                                      uint32_t padding_count, const int64_t *dilation, uint32_t dilation_count, bool ceil_mode,
                                      const mps_tensor *indices, const mps_tensor *grad_input) {
  (void)self;
  (void)ceil_mode;
  return put(stream, &(mps_pool_call){.label = "max_pool2d_backward", .stem = "pool_max_backward", .large = grad_input, .small = grad_output,
                                       .indices = indices, .dimensions = 2, MAX_LISTS}, true);
}

mps_status mps_op_max_pool3d_backward(mps_stream *stream, const mps_tensor *grad_output, const mps_tensor *self, const int64_t *kernel_size,
                                      uint32_t kernel_size_count, const int64_t *stride, uint32_t stride_count, const int64_t *padding,
                                      uint32_t padding_count, const int64_t *dilation, uint32_t dilation_count, bool ceil_mode,
                                      const mps_tensor *indices, const mps_tensor *grad_input) {
  (void)self;
  (void)ceil_mode;
  return put(stream, &(mps_pool_call){.label = "max_pool3d_backward", .stem = "pool_max_backward", .large = grad_input, .small = grad_output,
                                       .indices = indices, .dimensions = 3, MAX_LISTS}, true);
}

mps_status mps_op_avg_pool2d(mps_stream *stream, const mps_tensor *self, const int64_t *kernel_size, uint32_t kernel_size_count,
                             const int64_t *stride, uint32_t stride_count, const int64_t *padding, uint32_t padding_count, bool ceil_mode,
                             bool count_include_pad, const int64_t *divisor_override, const mps_tensor *out) {
  (void)ceil_mode;
  return forward(stream, &(mps_pool_call){.label = "avg_pool2d", .stem = "pool_average", .large = self, .small = out, .dimensions = 2,
                                      .count_include_pad = count_include_pad, .divisor = divisor_override, WINDOW_LISTS});
}

mps_status mps_op_avg_pool3d(mps_stream *stream, const mps_tensor *self, const int64_t *kernel_size, uint32_t kernel_size_count,
                             const int64_t *stride, uint32_t stride_count, const int64_t *padding, uint32_t padding_count, bool ceil_mode,
                             bool count_include_pad, const int64_t *divisor_override, const mps_tensor *out) {
  (void)ceil_mode;
  return forward(stream, &(mps_pool_call){.label = "avg_pool3d", .title = "avg_pool3d_out_frame", .stem = "pool_average", .large = self,
                                          .small = out, .dimensions = 3, .count_include_pad = count_include_pad, .divisor = divisor_override,
                                          WINDOW_LISTS});
}

mps_status mps_op_avg_pool2d_backward(mps_stream *stream, const mps_tensor *grad_output, const mps_tensor *self, const int64_t *kernel_size,
                                      uint32_t kernel_size_count, const int64_t *stride, uint32_t stride_count, const int64_t *padding,
                                      uint32_t padding_count, bool ceil_mode, bool count_include_pad, const int64_t *divisor_override,
                                      const mps_tensor *grad_input) {
  (void)self;
  (void)ceil_mode;
  return spread(stream, &(mps_pool_call){.label = "avg_pool2d_backward", .stem = "pool_average_backward", .large = grad_input, .small = grad_output,
                                       .dimensions = 2, .count_include_pad = count_include_pad, .divisor = divisor_override, WINDOW_LISTS});
}

mps_status mps_op_avg_pool3d_backward(mps_stream *stream, const mps_tensor *grad_output, const mps_tensor *self, const int64_t *kernel_size,
                                      uint32_t kernel_size_count, const int64_t *stride, uint32_t stride_count, const int64_t *padding,
                                      uint32_t padding_count, bool ceil_mode, bool count_include_pad, const int64_t *divisor_override,
                                      const mps_tensor *grad_input) {
  (void)self;
  (void)ceil_mode;
  return spread(stream, &(mps_pool_call){.label = "avg_pool3d_backward", .title = "avg_pool3d_backward_out_frame",
                                         .stem = "pool_average_backward", .large = grad_input, .small = grad_output, .dimensions = 3,
                                         .count_include_pad = count_include_pad, .divisor = divisor_override, WINDOW_LISTS});
}

mps_status mps_op_adaptive_avg_pool2d(mps_stream *stream, const mps_tensor *self, const mps_tensor *out) {
  return forward(stream, &(mps_pool_call){.label = "adaptive_avg_pool2d", .stem = "pool_average", .large = self, .small = out, .dimensions = 2,
                                          .adaptive = true});
}

mps_status mps_op_adaptive_avg_pool2d_backward(mps_stream *stream, const mps_tensor *grad_output, const mps_tensor *grad_input) {
  return spread(stream, &(mps_pool_call){.label = "adaptive_avg_pool2d_backward", .stem = "pool_average_backward", .large = grad_input,
                                       .small = grad_output, .dimensions = 2, .adaptive = true});
}

mps_status mps_op_adaptive_max_pool2d(mps_stream *stream, const mps_tensor *self, const int64_t *output_size, uint32_t output_size_count,
                                      const mps_tensor *out, const mps_tensor *indices) {
  (void)output_size; /* out's shape tells */
  (void)output_size_count;
  return forward(stream, &(mps_pool_call){.label = "adaptive_max_pool2d", .stem = "pool_max", .large = self, .small = out, .indices = indices,
                                          .dimensions = 2, .adaptive = true});
}

mps_status mps_op_adaptive_max_pool2d_backward(mps_stream *stream, const mps_tensor *grad_output, const mps_tensor *self, const mps_tensor *indices,
                                               const mps_tensor *grad_input) {
  (void)self;
  return put(stream, &(mps_pool_call){.label = "adaptive_max_pool2d_backward", .stem = "pool_max_backward", .large = grad_input, .small = grad_output,
                                       .indices = indices, .dimensions = 2, .adaptive = true}, true);
}

mps_status mps_op_max_unpool2d(mps_stream *stream, const mps_tensor *self, const mps_tensor *indices, const mps_tensor *out) {
  return put(stream, &(mps_pool_call){.label = "max_unpool2d", .stem = "pool_unpool", .large = out, .small = self, .indices = indices,
                                      .dimensions = 2, .adaptive = true}, false);
}

mps_status mps_op_max_unpool3d(mps_stream *stream, const mps_tensor *self, const mps_tensor *indices, const mps_tensor *out) {
  return put(stream, &(mps_pool_call){.label = "max_unpool3d", .stem = "pool_unpool", .large = out, .small = self, .indices = indices,
                                      .dimensions = 3, .adaptive = true}, false);
}

mps_status mps_op_adaptive_avg_pool3d(mps_stream *stream, const mps_tensor *self, const mps_tensor *out) {
  return forward(stream, &(mps_pool_call){.label = "adaptive_avg_pool3d", .title = "adaptive_avg_pool3d_cpu", .stem = "pool_average",
                                          .large = self, .small = out, .dimensions = 3, .adaptive = true, .only_floats = true});
}

mps_status mps_op_adaptive_avg_pool3d_backward(mps_stream *stream, const mps_tensor *grad_output, const mps_tensor *grad_input) {
  return spread(stream, &(mps_pool_call){.label = "adaptive_avg_pool3d_backward", .title = "adaptive_avg_pool3d_backward_cpu",
                                         .stem = "pool_average_backward", .large = grad_input, .small = grad_output, .dimensions = 3,
                                         .adaptive = true, .only_floats = true});
}

mps_status mps_op_adaptive_max_pool3d(mps_stream *stream, const mps_tensor *self, const int64_t *output_size, uint32_t output_size_count,
                                      const mps_tensor *out, const mps_tensor *indices) {
  (void)output_size; /* out's shape tells */
  (void)output_size_count;
  return forward(stream, &(mps_pool_call){.label = "adaptive_max_pool3d", .title = "adaptive_max_pool3d_cpu", .stem = "pool_max", .large = self,
                                          .small = out, .indices = indices, .dimensions = 3, .adaptive = true, .only_floats = true});
}

mps_status mps_op_adaptive_max_pool3d_backward(mps_stream *stream, const mps_tensor *grad_output, const mps_tensor *self, const mps_tensor *indices,
                                               const mps_tensor *grad_input) {
  (void)self;
  return put(stream, &(mps_pool_call){.label = "adaptive_max_pool3d_backward", .stem = "pool_max_backward", .large = grad_input, .small = grad_output,
                                  .indices = indices, .dimensions = 3, .adaptive = true, .only_floats = true}, true);
}

/* ---- fractional: samples say where windows begin ---- */

mps_status mps_op_fractional_max_pool2d(mps_stream *stream, const mps_tensor *self, const int64_t *kernel_size, uint32_t kernel_size_count,
                                        const int64_t *output_size, uint32_t output_size_count, const mps_tensor *random_samples,
                                        const mps_tensor *out, const mps_tensor *indices) {
  (void)output_size; /* out's shape tells */
  (void)output_size_count;
  return forward(stream, &(mps_pool_call){.label = "fractional_max_pool2d", .title = "fractional_max_pool2d_out_frame", .stem = "pool_max",
                                          .large = self, .small = out, .indices = indices, .samples = random_samples, .dimensions = 2,
                                          .only_floats = true, .kernel = kernel_size, .kernel_count = kernel_size_count});
}

mps_status mps_op_fractional_max_pool2d_backward(mps_stream *stream, const mps_tensor *grad_output, const mps_tensor *self,
                                                 const int64_t *kernel_size, uint32_t kernel_size_count, const int64_t *output_size,
                                                 uint32_t output_size_count, const mps_tensor *indices, const mps_tensor *grad_input) {
  (void)self, (void)kernel_size, (void)kernel_size_count, (void)output_size, (void)output_size_count;
  return put(stream, &(mps_pool_call){.label = "fractional_max_pool2d_backward", .title = "fractional_max_pool2d_backward_out_frame",
                                  .stem = "pool_max_backward", .large = grad_input, .small = grad_output, .indices = indices, .dimensions = 2,
                                  .adaptive = true, .only_floats = true}, true);
}

mps_status mps_op_fractional_max_pool3d(mps_stream *stream, const mps_tensor *self, const int64_t *kernel_size, uint32_t kernel_size_count,
                                        const int64_t *output_size, uint32_t output_size_count, const mps_tensor *random_samples,
                                        const mps_tensor *out, const mps_tensor *indices) {
  (void)output_size; /* out's shape tells */
  (void)output_size_count;
  return forward(stream, &(mps_pool_call){.label = "fractional_max_pool3d", .title = "fractional_max_pool3d_out_frame", .stem = "pool_max",
                                          .large = self, .small = out, .indices = indices, .samples = random_samples, .dimensions = 3,
                                          .only_floats = true, .kernel = kernel_size, .kernel_count = kernel_size_count});
}

mps_status mps_op_fractional_max_pool3d_backward(mps_stream *stream, const mps_tensor *grad_output, const mps_tensor *self,
                                                 const int64_t *kernel_size, uint32_t kernel_size_count, const int64_t *output_size,
                                                 uint32_t output_size_count, const mps_tensor *indices, const mps_tensor *grad_input) {
  (void)self, (void)kernel_size, (void)kernel_size_count, (void)output_size, (void)output_size_count;
  return put(stream, &(mps_pool_call){.label = "fractional_max_pool3d_backward", .title = "fractional_max_pool3d_backward_out_frame",
                                  .stem = "pool_max_backward", .large = grad_input, .small = grad_output, .indices = indices, .dimensions = 3,
                                  .adaptive = true, .only_floats = true}, true);
}
