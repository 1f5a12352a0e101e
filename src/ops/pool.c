/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pool: pooling over windows in two and three dimensions, adaptive pooling, unpooling, and the gradients.
 */
#include <string.h>

#include "../kernels/pool_arguments.h"
#include "openmps/library.h"
#include "openmps/ops.h"
#include "ops/operand.h"

/* A call, whatever the operator: `large` is the side that windows lie in (input or its gradient), `small` has one element a window. */
typedef struct pool_call {
  const char *label, *stem;
  const mps_tensor *large, *small, *indices; /* indices may be NULL */
  uint32_t dimensions;
  bool adaptive, count_include_pad;
  const int64_t *kernel, *stride, *padding, *dilation;
  uint32_t kernel_count, stride_count, padding_count, dilation_count;
  const int64_t *divisor;
} pool_call;

typedef struct pool_plan {
  mps_pool_arguments arguments;
  uint64_t rows;   /* output rows of a plane */
  uint64_t planes;
  double cost;
} pool_plan;

/* Number `d` of a list in which one number stands for all. */
static int64_t number(const int64_t *list, uint32_t count, uint32_t d, int64_t missing) { return count == 0 ? missing : list[count == 1 ? 0 : d]; }

static mps_status check(const pool_call *call) {
  const mps_tensor *large = call->large, *small = call->small;
  const uint32_t n = call->dimensions;
  if ((large->rank != n + 1 && large->rank != n + 2) || small->rank != large->rank)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): Expected %uD or %uD tensors, got %uD and %uD", call->label, n + 1, n + 2, large->rank, small->rank);
  for (uint32_t d = 0; d < large->rank - n; d++)
    if (large->sizes[d] != small->sizes[d]) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): batch and channels of input and output differ", call->label);
  if (call->indices && (call->indices->dtype != MPS_DTYPE_I64 || !mps_operands_same_shape(call->indices, small)))
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): indices must be int64 and have the shape of the pooled side", call->label);
  const uint32_t counts[] = {call->kernel_count, call->stride_count, call->padding_count, call->dilation_count};
  for (uint32_t i = 0; i < 4; i++)
    if (counts[i] > 1 && counts[i] != n) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): a list must have one or %u numbers, got %u", call->label, n, counts[i]);
  for (uint32_t d = 0; !call->adaptive && d < n; d++) {
    const int64_t kernel = number(call->kernel, call->kernel_count, d, 1);
    if (kernel < 1 || number(call->stride, call->stride_count, d, kernel) < 1 || number(call->dilation, call->dilation_count, d, 1) < 1)
      return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): kernel size, stride and dilation must be greater than zero", call->label);
  }
  return MPS_STATUS_OK;
}

/* Batch, channel and space strides of a tensor; the space is put behind missing dimensions. */
static void strides_of(const mps_tensor *tensor, uint32_t dimensions, int64_t *batch, int64_t *channel, int64_t space[3]) {
  const uint32_t first = tensor->rank - dimensions;
  *channel = tensor->strides[first - 1];
  *batch = first == 2 ? tensor->strides[0] : 0;
  for (uint32_t d = 0; d < dimensions; d++) space[3 - dimensions + d] = tensor->strides[first + d];
}

static void plan(const pool_call *call, pool_plan *out) {
  memset(out, 0, sizeof *out);
  mps_pool_arguments *a = &out->arguments;
  const uint32_t n = call->dimensions, first = call->large->rank - n;
  for (uint32_t d = 0; d < 3; d++) a->in_size[d] = a->out_size[d] = a->window[d] = a->stride[d] = a->dilation[d] = 1;
  for (uint32_t d = 0; d < n; d++) {
    const uint32_t to = 3 - n + d;
    a->in_size[to] = call->large->sizes[first + d];
    a->out_size[to] = call->small->sizes[first + d];
    a->window[to] = number(call->kernel, call->kernel_count, d, 1);
    a->stride[to] = number(call->stride, call->stride_count, d, a->window[to]);
    a->padding[to] = number(call->padding, call->padding_count, d, 0);
    a->dilation[to] = number(call->dilation, call->dilation_count, d, 1);
  }
  strides_of(call->large, n, &a->in_batch, &a->in_channel, a->in_stride);
  strides_of(call->small, n, &a->out_batch, &a->out_channel, a->out_stride);
  if (call->indices) strides_of(call->indices, n, &a->index_batch, &a->index_channel, a->index_stride);
  a->channels = call->large->sizes[first - 1];
  a->adaptive = call->adaptive;
  a->count_include_pad = call->count_include_pad;
  a->divisor = call->divisor ? *call->divisor : 0;
  out->planes = (uint64_t)(a->channels * (first == 2 ? call->large->sizes[0] : 1));
  out->rows = (uint64_t)(a->out_size[0] * a->out_size[1]);
  double elements = (double)out->planes * (double)a->out_size[0] * (double)a->out_size[1] * (double)a->out_size[2];
  double taps = call->adaptive ? (double)mps_tensor_element_count(call->large) / (elements > 0.0 ? elements : 1.0)
                               : (double)(a->window[0] * a->window[1] * a->window[2]);
  out->cost = elements * (3.0 + taps);
}

/* Buffers 0 and 1 by the kernel's order, then indices and arguments. */
static mps_status encode(mps_stream *stream, const pool_call *call, const pool_plan *p, bool by_rows, const mps_tensor *first, mps_access first_access,
                         const mps_tensor *second, mps_access second_access, mps_access indices_access) {
  mps_pipeline *pipeline;
  mps_status status = mps_operand_pipeline(stream, call->stem, mps_dtype_name(call->small->dtype), &pipeline);
  if (status == MPS_STATUS_NOT_FOUND)
    return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", call->label, mps_dtype_name(call->small->dtype));
  if (status != MPS_STATUS_OK) return status;
  mps_encoder encoder;
  mps_encoder_begin(&encoder, stream, call->label);
  mps_encoder_set_pipeline(&encoder, pipeline);
  mps_encoder_set_buffer(&encoder, 0, first->buffer, first->offset, first_access);
  mps_encoder_set_buffer(&encoder, 1, second->buffer, second->offset, second_access);
  if (call->indices) mps_encoder_set_buffer(&encoder, 2, call->indices->buffer, call->indices->offset, indices_access);
  mps_encoder_set_bytes(&encoder, 3, &p->arguments, sizeof p->arguments);
  if (call->indices && !by_rows) mps_encoder_set_error_buffer(&encoder, 4);
  mps_encoder_set_cost(&encoder, p->cost);
  uint64_t threads[3] = {by_rows ? p->rows : p->planes, by_rows ? p->planes : 1, 1};
  return mps_encoder_dispatch(&encoder, threads, NULL);
}

static mps_status forward(mps_stream *stream, pool_call *call) {
  mps_status status = check(call);
  if (status != MPS_STATUS_OK || mps_tensor_element_count(call->small) == 0) return status;
  if (call->large->dtype != call->small->dtype) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): input and output differ in dtype", call->label);
  mps_tensor input;
  mps_buffer *owned;
  status = mps_operand_prepare(stream, call->large, call->large->dtype, false, &input, &owned);
  if (status != MPS_STATUS_OK) return status;
  call->large = &input;
  pool_plan p;
  plan(call, &p);
  status = encode(stream, call, &p, true, &input, MPS_ACCESS_READ, call->small, MPS_ACCESS_WRITE, MPS_ACCESS_WRITE);
  mps_buffer_release(owned);
  return status;
}

/* Kernels that add or put into the large side, plane by plane. Half gradients are summed in float. `sums`: they add. */
static mps_status backward(mps_stream *stream, pool_call *call, bool sums) {
  mps_status status = check(call);
  const mps_tensor *result = call->large;
  if (status != MPS_STATUS_OK || mps_tensor_element_count(result) == 0) return status;
  if (result->dtype != call->small->dtype) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): gradients differ in dtype", call->label);
  const bool half = sums && (result->dtype == MPS_DTYPE_F16 || result->dtype == MPS_DTYPE_BF16);
  mps_tensor target = *result, source, indices;
  mps_buffer *target_owned = NULL, *source_owned = NULL, *indices_owned = NULL;
  if (half) {
    status = mps_operand_create(stream, MPS_DTYPE_F32, result->rank, result->sizes, &target);
    target_owned = status == MPS_STATUS_OK ? target.buffer : NULL;
  }
  if (status == MPS_STATUS_OK) status = mps_operand_fill(stream, &target, mps_scalar_int(0));
  if (status == MPS_STATUS_OK) status = mps_operand_prepare(stream, call->small, call->small->dtype, false, &source, &source_owned);
  if (status == MPS_STATUS_OK && call->indices) {
    status = mps_operand_prepare(stream, call->indices, MPS_DTYPE_I64, false, &indices, &indices_owned);
    call->indices = &indices;
  }
  if (status == MPS_STATUS_OK && mps_tensor_element_count(&source)) {
    call->large = &target;
    call->small = &source;
    pool_plan p;
    plan(call, &p);
    status = encode(stream, call, &p, false, &target, MPS_ACCESS_READ_WRITE, &source, MPS_ACCESS_READ, MPS_ACCESS_READ);
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

mps_status mps_op_max_pool2d(mps_stream *stream, const mps_tensor *self, const int64_t *kernel_size, uint32_t kernel_size_count, const int64_t *stride,
                             uint32_t stride_count, const int64_t *padding, uint32_t padding_count, const int64_t *dilation, uint32_t dilation_count,
                             bool ceil_mode, const mps_tensor *out, const mps_tensor *indices) {
  (void)ceil_mode; /* out's shape tells */
  return forward(stream, &(pool_call){.label = "max_pool2d", .stem = "pool_max", .large = self, .small = out, .indices = indices, .dimensions = 2, MAX_LISTS});
}

mps_status mps_op_max_pool3d(mps_stream *stream, const mps_tensor *self, const int64_t *kernel_size, uint32_t kernel_size_count, const int64_t *stride,
                             uint32_t stride_count, const int64_t *padding, uint32_t padding_count, const int64_t *dilation, uint32_t dilation_count,
                             bool ceil_mode, const mps_tensor *out, const mps_tensor *indices) {
  (void)ceil_mode;
  return forward(stream, &(pool_call){.label = "max_pool3d", .stem = "pool_max", .large = self, .small = out, .indices = indices, .dimensions = 3, MAX_LISTS});
}

mps_status mps_op_max_pool2d_backward(mps_stream *stream, const mps_tensor *grad_output, const mps_tensor *self, const int64_t *kernel_size,
                                      uint32_t kernel_size_count, const int64_t *stride, uint32_t stride_count, const int64_t *padding,
                                      uint32_t padding_count, const int64_t *dilation, uint32_t dilation_count, bool ceil_mode, const mps_tensor *indices,
                                      const mps_tensor *grad_input) {
  (void)self;
  (void)ceil_mode;
  return backward(stream, &(pool_call){.label = "max_pool2d_backward", .stem = "pool_max_backward", .large = grad_input, .small = grad_output,
                                       .indices = indices, .dimensions = 2, MAX_LISTS}, true);
}

mps_status mps_op_max_pool3d_backward(mps_stream *stream, const mps_tensor *grad_output, const mps_tensor *self, const int64_t *kernel_size,
                                      uint32_t kernel_size_count, const int64_t *stride, uint32_t stride_count, const int64_t *padding,
                                      uint32_t padding_count, const int64_t *dilation, uint32_t dilation_count, bool ceil_mode, const mps_tensor *indices,
                                      const mps_tensor *grad_input) {
  (void)self;
  (void)ceil_mode;
  return backward(stream, &(pool_call){.label = "max_pool3d_backward", .stem = "pool_max_backward", .large = grad_input, .small = grad_output,
                                       .indices = indices, .dimensions = 3, MAX_LISTS}, true);
}

mps_status mps_op_avg_pool2d(mps_stream *stream, const mps_tensor *self, const int64_t *kernel_size, uint32_t kernel_size_count, const int64_t *stride,
                             uint32_t stride_count, const int64_t *padding, uint32_t padding_count, bool ceil_mode, bool count_include_pad,
                             const int64_t *divisor_override, const mps_tensor *out) {
  (void)ceil_mode;
  return forward(stream, &(pool_call){.label = "avg_pool2d", .stem = "pool_average", .large = self, .small = out, .dimensions = 2,
                                      .count_include_pad = count_include_pad, .divisor = divisor_override, WINDOW_LISTS});
}

mps_status mps_op_avg_pool3d(mps_stream *stream, const mps_tensor *self, const int64_t *kernel_size, uint32_t kernel_size_count, const int64_t *stride,
                             uint32_t stride_count, const int64_t *padding, uint32_t padding_count, bool ceil_mode, bool count_include_pad,
                             const int64_t *divisor_override, const mps_tensor *out) {
  (void)ceil_mode;
  return forward(stream, &(pool_call){.label = "avg_pool3d", .stem = "pool_average", .large = self, .small = out, .dimensions = 3,
                                      .count_include_pad = count_include_pad, .divisor = divisor_override, WINDOW_LISTS});
}

mps_status mps_op_avg_pool2d_backward(mps_stream *stream, const mps_tensor *grad_output, const mps_tensor *self, const int64_t *kernel_size,
                                      uint32_t kernel_size_count, const int64_t *stride, uint32_t stride_count, const int64_t *padding,
                                      uint32_t padding_count, bool ceil_mode, bool count_include_pad, const int64_t *divisor_override,
                                      const mps_tensor *grad_input) {
  (void)self;
  (void)ceil_mode;
  return backward(stream, &(pool_call){.label = "avg_pool2d_backward", .stem = "pool_average_backward", .large = grad_input, .small = grad_output,
                                       .dimensions = 2, .count_include_pad = count_include_pad, .divisor = divisor_override, WINDOW_LISTS}, true);
}

mps_status mps_op_avg_pool3d_backward(mps_stream *stream, const mps_tensor *grad_output, const mps_tensor *self, const int64_t *kernel_size,
                                      uint32_t kernel_size_count, const int64_t *stride, uint32_t stride_count, const int64_t *padding,
                                      uint32_t padding_count, bool ceil_mode, bool count_include_pad, const int64_t *divisor_override,
                                      const mps_tensor *grad_input) {
  (void)self;
  (void)ceil_mode;
  return backward(stream, &(pool_call){.label = "avg_pool3d_backward", .stem = "pool_average_backward", .large = grad_input, .small = grad_output,
                                       .dimensions = 3, .count_include_pad = count_include_pad, .divisor = divisor_override, WINDOW_LISTS}, true);
}

mps_status mps_op_adaptive_avg_pool2d(mps_stream *stream, const mps_tensor *self, const mps_tensor *out) {
  return forward(stream, &(pool_call){.label = "adaptive_avg_pool2d", .stem = "pool_average", .large = self, .small = out, .dimensions = 2, .adaptive = true});
}

mps_status mps_op_adaptive_avg_pool2d_backward(mps_stream *stream, const mps_tensor *grad_output, const mps_tensor *grad_input) {
  return backward(stream, &(pool_call){.label = "adaptive_avg_pool2d_backward", .stem = "pool_average_backward", .large = grad_input,
                                       .small = grad_output, .dimensions = 2, .adaptive = true}, true);
}

mps_status mps_op_adaptive_max_pool2d(mps_stream *stream, const mps_tensor *self, const int64_t *output_size, uint32_t output_size_count,
                                      const mps_tensor *out, const mps_tensor *indices) {
  (void)output_size; /* out's shape tells */
  (void)output_size_count;
  return forward(stream, &(pool_call){.label = "adaptive_max_pool2d", .stem = "pool_max", .large = self, .small = out, .indices = indices, .dimensions = 2,
                                      .adaptive = true});
}

mps_status mps_op_adaptive_max_pool2d_backward(mps_stream *stream, const mps_tensor *grad_output, const mps_tensor *self, const mps_tensor *indices,
                                               const mps_tensor *grad_input) {
  (void)self;
  return backward(stream, &(pool_call){.label = "adaptive_max_pool2d_backward", .stem = "pool_max_backward", .large = grad_input, .small = grad_output,
                                       .indices = indices, .dimensions = 2, .adaptive = true}, true);
}

mps_status mps_op_max_unpool2d(mps_stream *stream, const mps_tensor *self, const mps_tensor *indices, const mps_tensor *out) {
  return backward(stream, &(pool_call){.label = "max_unpool2d", .stem = "pool_unpool", .large = out, .small = self, .indices = indices, .dimensions = 2,
                                       .adaptive = true}, false);
}

mps_status mps_op_max_unpool3d(mps_stream *stream, const mps_tensor *self, const mps_tensor *indices, const mps_tensor *out) {
  return backward(stream, &(pool_call){.label = "max_unpool3d", .stem = "pool_unpool", .large = out, .small = self, .indices = indices, .dimensions = 3,
                                       .adaptive = true}, false);
}
