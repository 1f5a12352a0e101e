/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pool_plan: from a pooling call and its tensors to the kernel, its arguments and its grid. Pure.
 */
#include "ops/pool_plan.h"

#include <string.h>

#include "graph/formula.h"
#include "ops/operand.h"

/* Number `d` of a list in which one number stands for all. */
static int64_t number(const int64_t *list, uint32_t count, uint32_t d, int64_t missing) { return count == 0 ? missing : list[count == 1 ? 0 : d]; }

static mps_status check_samples(const mps_pool_call *call) {
  const mps_tensor *samples = call->samples, *input = call->large;
  const uint32_t n = call->dimensions;
  if (samples->dtype != input->dtype) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "Expect _random_samples to have the same dtype as input");
  if (samples->rank != 3) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "Expect _random_samples to have 3 dimensions, got %u", samples->rank);
  if (samples->sizes[0] < (input->rank == n + 2 ? input->sizes[0] : 1))
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "Expect _random_samples.size(0) no less then input batch size.");
  if (samples->sizes[1] != input->sizes[input->rank - n - 1])
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "Expect _random_samples.size(1) equals to input channel size.");
  if (samples->sizes[2] != n)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "Expect _random_samples.size(2) equals to %u; got %lld.", n, (long long)samples->sizes[2]);
  return MPS_STATUS_OK;
}

mps_status mps_pool_check(const mps_pool_call *call) {
  const mps_tensor *large = call->large, *small = call->small;
  const uint32_t n = call->dimensions;
  if (call->only_floats && !mps_dtype_is_floating(small->dtype))
    return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", call->title ? call->title : call->label, mps_dtype_title(small->dtype));
  if ((large->rank != n + 1 && large->rank != n + 2) || small->rank != large->rank)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): Expected %uD or %uD tensors, got %uD and %uD", call->label, n + 1, n + 2, large->rank, small->rank);
  for (uint32_t d = 0; d < large->rank - n; d++)
    if (large->sizes[d] != small->sizes[d]) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): batch and channels of input and output differ", call->label);
  if (call->indices && (call->indices->dtype != MPS_DTYPE_I64 || !mps_operands_same_shape(call->indices, small)))
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): indices must be int64 and have the shape of the pooled side", call->label);
  const uint32_t counts[] = {call->kernel_count, call->stride_count, call->padding_count, call->dilation_count};
  for (uint32_t i = 0; i < 4; i++)
    if (counts[i] > 1 && counts[i] != n) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): a list must have one or %u numbers, got %u", call->label, n, counts[i]);
  if (call->samples) {
    mps_status status = check_samples(call);
    if (status != MPS_STATUS_OK) return status;
  }
  for (uint32_t d = 0; d < n && call->samples; d++)
    if (small->sizes[large->rank - n + d] + number(call->kernel, call->kernel_count, d, 1) - 1 > large->sizes[large->rank - n + d])
      return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): windows too large for the input in dimension %u", call->label, d);
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
  const uint32_t kind = call->samples ? MPS_POOL_FRACTIONAL : call->adaptive ? MPS_POOL_ADAPTIVE : MPS_POOL_REGULAR;
  for (uint32_t d = 0; d < 3; d++) a->in_size[d] = a->out_size[d] = a->window[d] = a->stride[d] = a->dilation[d] = 1;
  for (uint32_t d = 0; d < n; d++) {
    const uint32_t to = 3 - n + d;
    a->kind[to] = kind;
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
  a->count_include_pad = call->count_include_pad;
  a->divisor = call->divisor ? *call->divisor : 0;
  a->indexed = call->indices != NULL;
  a->samples = call->samples ? n : 0;
  const bool even_rows = a->in_size[1] == 1 || a->in_stride[1] == a->in_size[2] * a->in_stride[2];
  const bool even_planes = a->in_size[0] == 1 || a->in_stride[0] == a->in_size[1] * a->in_size[2] * a->in_stride[2];
  a->place = even_rows && even_planes ? a->in_stride[2] : 0;
}

/* Adaptive windows that are all alike are regular ones. */
static void make_regular(mps_pool_arguments *a) {
  for (uint32_t d = 0; d < 3; d++) {
    if (a->kind[d] != MPS_POOL_ADAPTIVE || a->out_size[d] == 0 || a->in_size[d] % a->out_size[d]) continue;
    a->kind[d] = MPS_POOL_REGULAR;
    a->window[d] = a->stride[d] = a->in_size[d] / a->out_size[d];
  }
}

static bool takes_all(const mps_pool_arguments *a, uint32_t d) {
  return a->kind[d] == MPS_POOL_REGULAR && a->out_size[d] == 1 && a->window[d] == a->in_size[d] && a->padding[d] == 0 && a->dilation[d] == 1;
}

/* One window over whole rows is a longer row: global pooling has one line a plane. */
static void merge(mps_pool_arguments *a) {
  for (uint32_t d = 2; d-- > 0;) {
    if (!takes_all(a, 2) || !takes_all(a, d) || (a->in_size[d] > 1 && a->in_stride[d] != a->in_size[2] * a->in_stride[2])) return;
    a->in_size[2] *= a->in_size[d];
    a->window[2] = a->stride[2] = a->in_size[2];
    a->in_size[d] = a->window[d] = a->stride[d] = 1;
    a->in_stride[d] = 0;
  }
}

enum {
  ROW_ELEMENTS = 4096,    /* a thread takes rows of about so many elements in all */
  CHANNEL_ROWS = 4,       /* or so many rows of pixels */
  CHANNEL_BLOCK = 256,    /* of so many channels, at most */
  PLANE_CHANNELS = 64,    /* planes that a thread puts elements into, side by side */
  FEW_CHANNELS = 16       /* fewer are taken plane by plane */
};

/* Along the channels where they are neighbours on the side that is read (the large one where elements are put). */
static uint32_t choose_channel_block(const mps_pool_arguments *a, const mps_pool_call *call, mps_pool_grid grid) {
  const int64_t stride = grid == MPS_POOL_GRID_LARGE ? a->out_channel : a->in_channel;
  if (stride != 1 || a->channels < FEW_CHANNELS || call->samples) return 0;
  const int64_t most = grid == MPS_POOL_GRID_PLANES ? PLANE_CHANNELS : CHANNEL_BLOCK;
  return (uint32_t)(a->channels < most ? a->channels : most);
}

static void plan_grid(mps_pool_plan *plan, uint64_t batches, mps_pool_grid grid) {
  mps_pool_arguments *a = &plan->arguments;
  const int64_t *sizes = grid == MPS_POOL_GRID_LARGE ? a->in_size : a->out_size;
  const uint64_t rows = (uint64_t)(sizes[0] * sizes[1]), width = (uint64_t)(sizes[2] > 0 ? sizes[2] : 1);
  const uint64_t channels = (uint64_t)a->channels, block = a->channel_block;
  uint64_t share = block ? CHANNEL_ROWS : ROW_ELEMENTS / width;
  share = share < 1 ? 1 : share < rows ? share : rows > 0 ? rows : 1;
  a->rows = (uint32_t)share;
  const uint64_t row_groups = (rows + share - 1) / share, blocks = block ? (channels + block - 1) / block : 1;
  if (grid == MPS_POOL_GRID_PLANES) {
    plan->threads[0] = blocks;
    plan->threads[1] = block ? batches : batches * channels;
    plan->threads[2] = 1;
    return;
  }
  plan->threads[0] = row_groups;
  plan->threads[1] = block ? batches : batches * channels;
  plan->threads[2] = blocks;
}

void mps_pool_plan_make(mps_pool_plan *plan, const mps_pool_call *call, mps_pool_grid grid) {
  memset(plan, 0, sizeof *plan);
  mps_pool_arguments *a = &plan->arguments;
  lay_out(a, call);
  make_regular(a);
  if (grid != MPS_POOL_GRID_PLANES) merge(a);
  a->channel_block = choose_channel_block(a, call, grid);
  plan->stem = call->stem;
  plan->suffix = mps_dtype_name(call->small->dtype);
  plan_grid(plan, call->large->rank == call->dimensions + 2 ? (uint64_t)call->large->sizes[0] : 1, grid);
  const double large = (double)mps_tensor_element_count(call->large), small = (double)mps_tensor_element_count(call->small);
  double taps = call->adaptive ? large / (small > 0.0 ? small : 1.0) : (double)(a->window[0] * a->window[1] * a->window[2]);
  plan->cost = grid == MPS_POOL_GRID_PLANES ? large * 0.25 + small * 1.5 : large * 0.25 + small * (1.0 + 0.25 * taps);
}
