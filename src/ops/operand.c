/* SPDX-License-Identifier: BSD-3-Clause
 *
 * operand: small questions that every family asks of tensors, and the temporaries it makes.
 */
#include "ops/operand.h"

#include <stdio.h>
#include <string.h>

#include "openmps/ops/pointwise.h"

void mps_operand_byte_range(uint64_t offset, mps_dtype dtype, uint32_t rank, const int64_t *sizes, const int64_t *strides, uint64_t *begin,
                            uint64_t *end) {
  int64_t bytes = (int64_t)mps_dtype_size(dtype), low = 0, high = bytes;
  for (uint32_t d = 0; d < rank; d++) {
    if (sizes[d] == 0) {
      *begin = *end = offset;
      return;
    }
    int64_t reach = (sizes[d] - 1) * strides[d] * bytes;
    *(reach < 0 ? &low : &high) += reach;
  }
  *begin = offset + (uint64_t)low;
  *end = offset + (uint64_t)high;
}

void mps_operand_range(const mps_tensor *tensor, uint64_t *begin, uint64_t *end) {
  *begin = *end = tensor->offset;
  if (tensor->buffer) mps_operand_byte_range(tensor->offset, tensor->dtype, tensor->rank, tensor->sizes, tensor->strides, begin, end);
}

bool mps_operands_overlap(const mps_tensor *a, const mps_tensor *b) {
  if (!a->buffer || a->buffer != b->buffer) return false;
  uint64_t a_begin, a_end, b_begin, b_end;
  mps_operand_range(a, &a_begin, &a_end);
  mps_operand_range(b, &b_begin, &b_end);
  return a_begin < b_end && b_begin < a_end;
}

bool mps_operands_same_shape(const mps_tensor *a, const mps_tensor *b) {
  return a->rank == b->rank && memcmp(a->sizes, b->sizes, a->rank * sizeof a->sizes[0]) == 0;
}

bool mps_operands_equal(const mps_tensor *a, const mps_tensor *b) {
  if (!a->buffer || a->buffer != b->buffer || a->offset != b->offset || a->dtype != b->dtype || a->flags != b->flags) return false;
  if (!mps_operands_same_shape(a, b)) return false;
  for (uint32_t d = 0; d < a->rank; d++)
    if (a->sizes[d] > 1 && a->strides[d] != b->strides[d]) return false;
  return true;
}

mps_status mps_operand_create(mps_stream *stream, mps_dtype dtype, uint32_t rank, const int64_t *sizes, mps_tensor *out_tensor) {
  memset(out_tensor, 0, sizeof *out_tensor);
  out_tensor->dtype = dtype;
  mps_tensor_set_contiguous(out_tensor, rank, sizes);
  uint64_t bytes = (uint64_t)mps_tensor_element_count(out_tensor) * mps_dtype_size(dtype);
  return mps_buffer_create(mps_stream_device(stream), stream, bytes ? bytes : 1, &out_tensor->buffer);
}

mps_status mps_operand_copy(mps_stream *stream, const mps_tensor *source, mps_dtype dtype, mps_tensor *out_tensor) {
  mps_status status = mps_operand_create(stream, dtype, source->rank, source->sizes, out_tensor);
  if (status != MPS_STATUS_OK) return status;
  status = mps_op_copy(stream, source, out_tensor);
  if (status != MPS_STATUS_OK) {
    mps_buffer_release(out_tensor->buffer);
    out_tensor->buffer = NULL;
  }
  return status;
}

mps_status mps_operand_prepare(mps_stream *stream, const mps_tensor *tensor, mps_dtype dtype, bool contiguous, mps_tensor *out_tensor,
                               mps_buffer **out_owned) {
  *out_owned = NULL;
  *out_tensor = *tensor;
  if (tensor->buffer && tensor->dtype == dtype && !tensor->flags && (!contiguous || mps_tensor_is_contiguous(tensor))) return MPS_STATUS_OK;
  mps_status status = mps_operand_copy(stream, tensor, dtype, out_tensor);
  if (status == MPS_STATUS_OK) *out_owned = out_tensor->buffer;
  return status;
}

/* What a failure leaves: a shape without memory. */
static mps_tensor without_memory(mps_dtype dtype, uint32_t rank, const int64_t *sizes) {
  mps_tensor result = {.dtype = dtype};
  mps_tensor_set_contiguous(&result, rank, sizes);
  return result;
}

mps_tensor mps_operands_prepare(mps_operand_list *list, const mps_tensor *tensor, mps_dtype dtype, bool contiguous) {
  mps_tensor result;
  mps_buffer *owned;
  if (list->status == MPS_STATUS_OK) list->status = mps_operand_prepare(list->stream, tensor, dtype, contiguous, &result, &owned);
  if (list->status != MPS_STATUS_OK) return without_memory(dtype, tensor->rank, tensor->sizes);
  mps_operands_keep(list, owned);
  return result;
}

mps_tensor mps_operands_create(mps_operand_list *list, mps_dtype dtype, uint32_t rank, const int64_t *sizes) {
  mps_tensor result;
  if (list->status == MPS_STATUS_OK) list->status = mps_operand_create(list->stream, dtype, rank, sizes, &result);
  if (list->status != MPS_STATUS_OK) return without_memory(dtype, rank, sizes);
  mps_operands_keep(list, result.buffer);
  return result;
}

void mps_operands_keep(mps_operand_list *list, mps_buffer *buffer) {
  if (buffer) list->owned[list->count++] = buffer;
}

mps_status mps_operands_finish(mps_operand_list *list) {
  while (list->count) mps_buffer_release(list->owned[--list->count]);
  return list->status;
}

mps_tensor mps_operand_constant(const mps_tensor *shape, mps_dtype dtype, mps_scalar value) {
  mps_tensor constant = {.dtype = dtype, .rank = shape->rank, .constant = value};
  memcpy(constant.sizes, shape->sizes, sizeof constant.sizes);
  return constant;
}

mps_status mps_operand_fill(mps_stream *stream, const mps_tensor *tensor, mps_scalar value) {
  if (!tensor) return MPS_STATUS_OK;
  const mps_tensor number = {.dtype = tensor->dtype, .constant = value};
  return mps_op_fill(stream, &number, tensor);
}

mps_status mps_operand_pipeline(mps_stream *stream, const char *stem, const char *suffix, mps_pipeline **out_pipeline) {
  mps_library *library;
  mps_status status = mps_library_builtin(mps_stream_device(stream), &library);
  if (status != MPS_STATUS_OK) return status;
  if (!suffix) return mps_library_pipeline(library, stem, out_pipeline);
  char name[96];
  snprintf(name, sizeof name, "%s_%s", stem, suffix);
  return mps_library_pipeline(library, name, out_pipeline);
}

const char *mps_operand_bytes_suffix(mps_dtype dtype) {
  switch (mps_dtype_size(dtype)) {
    case 1: return "u8";
    case 2: return "u16";
    case 4: return "u32";
    case 8: return "u64";
    default: return NULL;
  }
}

mps_dtype mps_operand_sum_dtype(mps_dtype dtype) {
  if (dtype == MPS_DTYPE_C32) return MPS_DTYPE_C64;
  return dtype == MPS_DTYPE_F16 || dtype == MPS_DTYPE_BF16 ? MPS_DTYPE_F32 : dtype;
}

mps_status mps_operand_dimension(int64_t dimension, uint32_t rank, uint32_t *out_dimension) {
  int64_t range = rank ? rank : 1;
  if (dimension < -range || dimension >= range)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "Dimension out of range (expected to be in range of [%lld, %lld], but got %lld)",
                         (long long)-range, (long long)(range - 1), (long long)dimension);
  *out_dimension = (uint32_t)(dimension < 0 ? dimension + range : dimension);
  return MPS_STATUS_OK;
}

mps_tensor mps_operand_at_least_1d(const mps_tensor *tensor) {
  mps_tensor result = *tensor;
  if (result.rank == 0) {
    result.rank = 1;
    result.sizes[0] = 1;
    result.strides[0] = 1;
  }
  return result;
}
