// SPDX-License-Identifier: BSD-3-Clause
//
// embedding_bag: sums, means and maxima of rows of a weight, bag by bag, and their gradients. Each result is added up by one thread in
// the order of the indices, in float, and rounded once: no atomics, the same bits every time.

#include <metal_stdlib>
#include "embedding_bag_arguments.h"
#include "error.h"

using namespace metal;

namespace {

inline bool valid(long index, constant mps_embedding_bag_arguments &a, device mps_kernel_error *error) {
  if (index >= 0 && index < a.rows) return true;
  report_index_error(error, index, a.rows, 0);
  return false;
}

// [begin, end) of a bag, always inside of the indices.
struct range {
  long begin, end;
};
inline range bag_range(device const long *offsets, long bag, bool has_last, constant mps_embedding_bag_arguments &a) {
  const bool last = bag + 1 == a.bags && !has_last;
  const long begin = clamp(offsets[bag], 0L, long(a.count));
  const long end = last ? long(a.count) : clamp(offsets[bag + 1], 0L, long(a.count));
  return {begin, max(begin, end)};
}

// Number `embedding` onto the sums of its block. Whole blocks have a fixed length, so that the sums stay in registers.
template <typename T>
inline void add_row(thread float *sums, device const T *row, long length, long stride, float scale) {
  if (length == MPS_EMBEDDING_BAG_BLOCK && stride == 1) {
    for (uint i = 0; i < MPS_EMBEDDING_BAG_BLOCK; i++) sums[i] += float(row[i]) * scale;
  } else if (length == 16 && stride == 1) {
    for (uint i = 0; i < 16; i++) sums[i] += float(row[i]) * scale;
  } else {
    for (long i = 0; i < length; i++) sums[i] += float(row[i * stride]) * scale;
  }
}

// A NaN stays where it comes first, and is passed over later, as on the CPU.
template <typename T>
inline void take_larger(thread float *values, thread int *places, device const T *row, long length, long stride, int place, bool is_first) {
  if (length == MPS_EMBEDDING_BAG_BLOCK && stride == 1) {
    for (uint c = 0; c < MPS_EMBEDDING_BAG_BLOCK; c++) {
      const float value = float(row[c]);
      const bool larger = is_first || value > values[c];
      values[c] = larger ? value : values[c];
      places[c] = larger ? place : places[c];
    }
  } else {
    for (long c = 0; c < length; c++) {
      const float value = float(row[c * stride]);
      const bool larger = is_first || value > values[c];
      values[c] = larger ? value : values[c];
      places[c] = larger ? place : places[c];
    }
  }
}

}  // namespace

// Thread (bag, block of the width). bag_sizes counts without padding; maxima are the indices that the largest elements come from.
template <typename T>
kernel void embedding_bag(device const T *weight [[buffer(0)]], device const long *indices [[buffer(1)]], device const long *offsets [[buffer(2)]],
                          device const T *scales [[buffer(3)]], device T *out [[buffer(4)]], device long *bag_of [[buffer(5)]],
                          device long *bag_sizes [[buffer(6)]], device long *maxima [[buffer(7)]],
                          constant mps_embedding_bag_arguments &a [[buffer(8)]], device mps_kernel_error *error [[buffer(9)]],
                          uint2 thread_position [[thread_position_in_grid]]) {
  const long bag = thread_position.x, first = long(thread_position.y) * MPS_EMBEDDING_BAG_BLOCK;
  const long length = min(long(MPS_EMBEDDING_BAG_BLOCK), a.width - first);
  if (thread_position.y == 0) {
    if (bag == 0 && offsets[0] != 0) report_error(error, MPS_KERNEL_ERROR_FIRST_OFFSET, offsets[0], 0, 0);
    const long last = a.bags - 1 + a.has_last;
    if (bag == a.bags - 1 && offsets[last] > a.count) report_error(error, MPS_KERNEL_ERROR_OFFSET, offsets[last], a.count, 0);
    const range all = bag_range(offsets, bag, false, a);
    if (a.wants_bag_of)
      for (long i = all.begin; i < all.end; i++) bag_of[i] = bag;
  }
  const range r = bag_range(offsets, bag, a.has_last, a);
  float values[MPS_EMBEDDING_BAG_BLOCK];
  for (uint i = 0; i < MPS_EMBEDDING_BAG_BLOCK; i++) values[i] = 0.0f;
  device const T *column = weight + first * a.column_stride;
  device T *to = out + bag * a.width + first;
  long counted = 0;
  if (a.mode == MPS_EMBEDDING_BAG_MAX) {
    int places[MPS_EMBEDDING_BAG_BLOCK];  // in the bag, of the largest so far
    for (uint c = 0; c < MPS_EMBEDDING_BAG_BLOCK; c++) places[c] = 0;
    for (long i = r.begin; i < r.end; i++) {
      const long index = indices[i];
      if (!valid(index, a, error) || index == a.padding) continue;
      take_larger(values, places, column + index * a.row_stride, length, a.column_stride, int(i - r.begin), counted == 0);
      counted++;
    }
    device long *origin = maxima + bag * a.width + first;
    for (long c = 0; c < length; c++) origin[c] = counted ? indices[r.begin + places[c]] : 0;
  } else {
    for (long i = r.begin; i < r.end; i++) {
      const long index = indices[i];
      if (!valid(index, a, error) || index == a.padding) continue;
      add_row(values, column + index * a.row_stride, length, a.column_stride, a.has_scales ? float(scales[i]) : 1.0f);
      counted++;
    }
  }
  if (a.mode != MPS_EMBEDDING_BAG_SUM) {
    const range all = bag_range(offsets, bag, false, a);
    counted += a.padding < 0 ? (all.end - all.begin) - (r.end - r.begin) : 0;  // bags end at the end of the indices for their sizes
    if (thread_position.y == 0) bag_sizes[bag] = counted;
  }
  if (a.mode == MPS_EMBEDDING_BAG_MEAN && counted > 0)
    for (long i = 0; i < length; i++) values[i] /= float(counted);
  for (long i = 0; i < length; i++) to[i] = T(values[i]);
}

// The bag of each index, from the offsets alone. Thread (bag).
kernel void embedding_bag_of(device const long *offsets [[buffer(2)]], device long *bag_of [[buffer(5)]],
                             constant mps_embedding_bag_arguments &a [[buffer(8)]], uint bag [[thread_position_in_grid]]) {
  const range r = bag_range(offsets, bag, false, a);
  for (long i = r.begin; i < r.end; i++) bag_of[i] = bag;
}

// Thread (slice of the rows, block of the width): sums (float, zeroed before) of the gradients of the bags that a row is in.
template <typename T>
kernel void embedding_bag_gradient(device const T *gradient [[buffer(0)]], device const long *indices [[buffer(1)]],
                                   device const long *bag_of [[buffer(2)]], device const T *scales [[buffer(3)]], device float *sums [[buffer(4)]],
                                   device const long *bag_sizes [[buffer(6)]], device const long *maxima [[buffer(7)]],
                                   constant mps_embedding_bag_arguments &a [[buffer(8)]], device mps_kernel_error *error [[buffer(9)]],
                                   uint2 thread_position [[thread_position_in_grid]]) {
  const long slice = thread_position.x, first = long(thread_position.y) * a.block, length = min(long(a.block), a.width - first);
  const long low = a.rows * slice / a.slices, high = a.rows * (slice + 1) / a.slices;
  if (a.mode == MPS_EMBEDDING_BAG_MAX) {
    for (long bag = 0; bag < a.bags; bag++) {
      if (bag_sizes[bag] == 0) continue;
      const long at = bag * a.width + first;
      for (long c = 0; c < length; c++) {
        const long index = maxima[at + c];
        if (valid(index, a, error) && index >= low && index < high) sums[index * a.width + first + c] += float(gradient[at + c]);
      }
    }
    return;
  }
  for (long i = 0; i < a.count; i++) {
    const long index = indices[i];
    if (!valid(index, a, error) || index < low || index >= high || index == a.padding) continue;
    const long bag = bag_of[i];
    if (bag < 0 || bag >= a.bags) continue;  // behind the last offset
    float scale = a.has_scales ? float(scales[i]) : 1.0f;
    if (a.mode == MPS_EMBEDDING_BAG_MEAN) scale /= float(bag_sizes[bag]);
    device const T *from = gradient + bag * a.width + first;
    device float *row = sums + index * a.width + first;
    for (long c = 0; c < length; c++) row[c] += float(from[c]) * scale;
  }
}

// out[i] = gradient[bag of i] . weight[indices[i]], 0 for padding. Sixteen sums side by side.
template <typename T>
kernel void embedding_bag_scale_gradient(device const T *gradient [[buffer(0)]], device const long *indices [[buffer(1)]],
                                         device const long *bag_of [[buffer(2)]], device const T *weight [[buffer(3)]], device T *out [[buffer(4)]],
                                         constant mps_embedding_bag_arguments &a [[buffer(8)]], device mps_kernel_error *error [[buffer(9)]],
                                         uint i [[thread_position_in_grid]]) {
  const long index = indices[i], bag = bag_of[i];
  if (!valid(index, a, error) || index == a.padding || bag < 0 || bag >= a.bags) {
    out[i] = T(0.0f);
    return;
  }
  device const T *from = gradient + bag * a.width, *row = weight + index * a.row_stride;
  float parts[16];
  for (uint k = 0; k < 16; k++) parts[k] = 0.0f;
  long c = 0;
  if (a.column_stride == 1) {
    for (; c + 16 <= a.width; c += 16)
      for (uint k = 0; k < 16; k++) parts[k] += float(from[c + k]) * float(row[c + k]);
  }
  float sum = 0.0f;
  for (; c < a.width; c++) sum += float(from[c]) * float(row[c * a.column_stride]);
  for (uint k = 0; k < 16; k++) sum += parts[k];
  out[i] = T(sum);
}

#define BAG(NAME, T)                                                                                                                          \
  template [[host_name("embedding_bag_" #NAME)]] kernel void embedding_bag<T>(                                                                \
      device const T *, device const long *, device const long *, device const T *, device T *, device long *, device long *, device long *,  \
      constant mps_embedding_bag_arguments &, device mps_kernel_error *, uint2);                                                              \
  template [[host_name("embedding_bag_gradient_" #NAME)]] kernel void embedding_bag_gradient<T>(                                              \
      device const T *, device const long *, device const long *, device const T *, device float *, device const long *, device const long *, \
      constant mps_embedding_bag_arguments &, device mps_kernel_error *, uint2);                                                              \
  template [[host_name("embedding_bag_scale_gradient_" #NAME)]] kernel void embedding_bag_scale_gradient<T>(                                  \
      device const T *, device const long *, device const long *, device const T *, device T *, constant mps_embedding_bag_arguments &,       \
      device mps_kernel_error *, uint);
BAG(f32, float)
BAG(f16, half)
BAG(bf16, bfloat)
