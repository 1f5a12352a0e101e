/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tensor_check: whether a tensor descriptor lies inside of its buffer.
 */
#include <stdio.h>

#include "base/status.h"
#include "runtime/buffer.h"

/* Lowest and highest element reached, relative to the offset; false on overflow. */
static bool extent(const mps_tensor *tensor, int64_t *out_low, int64_t *out_high) {
  int64_t low = 0, high = 0;
  for (uint32_t d = 0; d < tensor->rank; d++) {
    int64_t reach;
    if (__builtin_mul_overflow(tensor->sizes[d] - 1, tensor->strides[d], &reach)) return false;
    int64_t *end = reach < 0 ? &low : &high;
    if (__builtin_add_overflow(*end, reach, end)) return false;
  }
  *out_low = low;
  *out_high = high;
  return true;
}

mps_status mps_tensor_check(const mps_tensor *tensor, const char *name) {
  if (!tensor) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s is missing", name);
  int64_t item = (int64_t)mps_dtype_size(tensor->dtype);
  if (item == 0) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s: %d is no dtype", name, (int)tensor->dtype);
  if (tensor->rank > MPS_MAX_RANK) {
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s: rank %u; at most %d are possible", name, tensor->rank, MPS_MAX_RANK);
  }
  int64_t count = 1;
  bool empty = false;
  for (uint32_t d = 0; d < tensor->rank; d++) {
    if (tensor->sizes[d] < 0) {
      return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s: dimension %u has size %lld", name, d, (long long)tensor->sizes[d]);
    }
    empty = empty || tensor->sizes[d] == 0;
  }
  for (uint32_t d = 0; d < tensor->rank && !empty; d++) {
    if (__builtin_mul_overflow(count, tensor->sizes[d], &count)) {
      return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s: more than 2^63 elements", name);
    }
  }
  if (empty || !tensor->buffer) return MPS_STATUS_OK;
  int64_t low, high, first, last, offset = (int64_t)tensor->offset, length = (int64_t)tensor->buffer->length;
  if (!extent(tensor, &low, &high) || __builtin_mul_overflow(low, item, &first) || __builtin_mul_overflow(high, item, &last) ||
      tensor->offset > (uint64_t)length || __builtin_add_overflow(offset, first, &first) || __builtin_add_overflow(offset, last, &last) ||
      first < 0 || last > length - item) {
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s: its elements do not all lie inside of its buffer (offset %llu, length %zu bytes)",
                         name, (unsigned long long)tensor->offset, tensor->buffer->length);
  }
  return MPS_STATUS_OK;
}
