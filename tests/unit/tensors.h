/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tensors: the tensors that tests of plans take. Their buffers are addresses that no plan looks into.
 */
#ifndef OPENMPS_TESTS_TENSORS_H
#define OPENMPS_TESTS_TENSORS_H

#include <stdint.h>
#include <string.h>

#include "openmps/tensor.h"

static inline mps_buffer *buffer_a(void) { return (mps_buffer *)(uintptr_t)64; }
static inline mps_buffer *buffer_b(void) { return (mps_buffer *)(uintptr_t)128; }

static inline mps_tensor make(mps_buffer *buffer, mps_dtype dtype, uint32_t rank, const int64_t *sizes) {
  mps_tensor tensor;
  memset(&tensor, 0, sizeof(tensor));
  tensor.buffer = buffer;
  tensor.dtype = dtype;
  mps_tensor_set_contiguous(&tensor, rank, sizes);
  return tensor;
}

/* TENSOR(F32, 2, 3): contiguous, in buffer a. */
#define TENSOR(dtype, ...) make(buffer_a(), MPS_DTYPE_##dtype, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]){__VA_ARGS__})

static inline mps_tensor zero_dimensional(mps_dtype dtype) { return make(buffer_a(), dtype, 0, NULL); }

static inline mps_tensor transposed(mps_tensor t, uint32_t a, uint32_t b) {
  int64_t size = t.sizes[a], stride = t.strides[a];
  t.sizes[a] = t.sizes[b];
  t.strides[a] = t.strides[b];
  t.sizes[b] = size;
  t.strides[b] = stride;
  return t;
}

/* [N, C, H, W] in the order N H W C. */
static inline mps_tensor channels_last(mps_tensor t) {
  t.strides[1] = 1;
  t.strides[3] = t.sizes[1];
  t.strides[2] = t.sizes[1] * t.sizes[3];
  t.strides[0] = t.sizes[1] * t.sizes[3] * t.sizes[2];
  return t;
}

static inline mps_tensor in_buffer(mps_tensor t, mps_buffer *buffer) {
  t.buffer = buffer;
  return t;
}

#endif
