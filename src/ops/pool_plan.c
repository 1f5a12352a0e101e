/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pool_plan: from a pooling call and its tensors to the kernel, its arguments and its grid. Pure.
 */
#include "ops/pool_plan.h"

#include <string.h>

#include "ops/operand.h"

/* Number `d` of a list in which one number stands for all. */
static int64_t number(const int64_t *list, uint32_t count, uint32_t d, int64_t missing) { return count == 0 ? missing : list[count == 1 ? 0 : d]; }

mps_status mps_pool_check(const mps_pool_call *call) {
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

/* Sizes, windows and strides. */
static void lay_out(mps_pool_arguments *a, const mps_pool_call *call) {
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
}

void mps_pool_plan_make(mps_pool_plan *plan, const mps_pool_call *call, bool by_rows) {
  memset(plan, 0, sizeof *plan);
  mps_pool_arguments *a = &plan->arguments;
  lay_out(a, call);
  plan->stem = call->stem;
  plan->suffix = mps_dtype_name(call->small->dtype);
  const bool batched = call->large->rank == call->dimensions + 2;
  const uint64_t planes = (uint64_t)(a->channels * (batched ? call->large->sizes[0] : 1)), rows = (uint64_t)(a->out_size[0] * a->out_size[1]);
  plan->threads[0] = by_rows ? rows : planes;
  plan->threads[1] = by_rows ? planes : 1;
  plan->threads[2] = 1;
  double elements = (double)planes * (double)rows * (double)a->out_size[2];
  double taps = call->adaptive ? (double)mps_tensor_element_count(call->large) / (elements > 0.0 ? elements : 1.0)
                               : (double)(a->window[0] * a->window[1] * a->window[2]);
  plan->cost = elements * (3.0 + taps);
}
