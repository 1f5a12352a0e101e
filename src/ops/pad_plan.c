/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pad_plan: from two tensors and a padding to the arguments and the grid of the padding kernels.
 */
#include "ops/pad_plan.h"

#include <string.h>

enum { BLOCK = 8192 /* elements that one thread takes, about */ };

mps_status mps_pad_check(const char *label, const mps_tensor *small, const mps_tensor *large, const int64_t *padding, uint32_t padding_count,
                         bool reflects) {
  const uint32_t n = padding_count / 2, rank = small->rank;
  if (padding_count % 2 || n < 1 || n > 3 || (rank != n + 1 && rank != n + 2) || large->rank != rank)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): expected two paddings for each of one to three dimensions behind (batch and) channels", label);
  for (uint32_t d = 0; d < rank - n; d++)
    if (small->sizes[d] != large->sizes[d])
      return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): batch and channels of input and output differ", label);
  for (uint32_t k = 0; k < n; k++) {
    const uint32_t d = rank - 1 - k;
    const int64_t size = small->sizes[d], before = padding[2 * k], behind = padding[2 * k + 1];
    if (large->sizes[d] != size + before + behind || (size == 0 && large->sizes[d]))
      return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): dimension %u of the output is not the padded one of the input", label, d);
    if (reflects && (before >= size || behind >= size))
      return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): padding (%lld, %lld) must be less than dimension %u of the input", label,
                           (long long)before, (long long)behind, d);
  }
  return MPS_STATUS_OK;
}

/* The batch's, the channels' and the space's strides; missing ones are 0. */
static void strides_of(const mps_tensor *tensor, uint32_t dimensions, int64_t *batch, int64_t *channel, int64_t space[3]) {
  const uint32_t first = tensor->rank - dimensions;
  *channel = tensor->strides[first - 1];
  *batch = first == 2 ? tensor->strides[0] : 0;
  for (uint32_t d = 0; d < dimensions; d++) space[3 - dimensions + d] = tensor->strides[first + d];
}

/* True when the channels of each place lie together, place behind place. */
static bool channels_together(int64_t channels, int64_t channel_stride, const int64_t space_stride[3]) {
  return channels > 1 && channel_stride == 1 && space_stride[2] == channels;
}

void mps_pad_plan_make(const mps_tensor *from, const mps_tensor *to, const int64_t *padding, uint32_t padding_count, bool whole_rows,
                       mps_pad_plan *out_plan) {
  memset(out_plan, 0, sizeof *out_plan);
  const int64_t count = mps_tensor_element_count(to);
  if (count == 0) return;
  mps_pad_arguments *a = &out_plan->arguments;
  const uint32_t n = padding_count / 2, first = to->rank - n;
  for (uint32_t d = 0; d < 3; d++) a->to_size[d] = a->from_size[d] = 1;
  for (uint32_t d = 0; d < n; d++) {
    a->to_size[3 - n + d] = to->sizes[first + d];
    a->from_size[3 - n + d] = from->sizes[first + d];
    a->before[3 - n + d] = padding[2 * (n - 1 - d)];
  }
  strides_of(to, n, &a->to_batch, &a->to_channel, a->to_stride);
  strides_of(from, n, &a->from_batch, &a->from_channel, a->from_stride);
  a->channels = to->sizes[first - 1];
  a->group = 1;
  if (channels_together(a->channels, a->to_channel, a->to_stride) && channels_together(a->channels, a->from_channel, a->from_stride)) {
    a->group = a->channels;
    a->channels = 1;
  }
  const int64_t run = a->to_size[2] * a->group; /* elements of a row */
  a->row_count = count / run;
  a->rows = run < BLOCK ? BLOCK / run : 1;
  a->block = run < BLOCK || whole_rows ? a->to_size[2] : (BLOCK + a->group - 1) / a->group;
  out_plan->threads[0] = (uint64_t)((a->row_count + a->rows - 1) / a->rows);
  out_plan->threads[1] = (uint64_t)((a->to_size[2] + a->block - 1) / a->block);
  out_plan->threads[2] = 1;
  out_plan->cost = (whole_rows ? 0.3 : 0.15) * (double)count + 10.0 * (double)a->row_count;
}
