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

enum { TOGETHER = 64 };  // indices that are looked at together

/* Iterations are independent. */
#define BAG_VECTORIZE _Pragma("clang loop vectorize(assume_safety)")

// Which of `count` indices count: where their rows begin, and their numbers. Those out of range are reported.
inline long admit(device const long *indices, long count, constant mps_embedding_bag_arguments &a, device mps_kernel_error *error, thread long *rows,
                  thread uint *numbers) {
  const ulong last = ulong(a.rows) - 1;
  const long padding = a.padding, row_stride = a.row_stride;
  ulong bad = 0;  // its sign tells
  BAG_VECTORIZE
  for (long k = 0; k < count; k++) {
    const long index = indices[k];
    rows[k] = index * row_stride;
    numbers[k] = uint(k);
    bad |= ulong(index) | (last - ulong(index)) | (index == padding ? ~0ul : 0ul);
  }
  if (long(bad) >= 0) return count;
  long admitted = 0;
  for (long k = 0; k < count; k++) {
    const long index = indices[k];
    rows[admitted] = index * row_stride;
    numbers[admitted] = uint(k);
    admitted += valid(index, a, error) && index != padding ? 1 : 0;
  }
  return admitted;
}

// Adds rows, `columns` elements of each, in order. A fixed number of columns keeps the sums in registers, and four rows are read side by side.
template <typename T, uint columns, bool SCALED>
inline void add_rows(thread float *sums, device const T *column, thread const long *rows, thread const float *scales, long count) {
  long k = 0;
  for (; k + 4 <= count; k += 4) {
    device const T *p = column + rows[k], *q = column + rows[k + 1], *r = column + rows[k + 2], *s = column + rows[k + 3];
    if (SCALED) {
      const float x = scales[k], y = scales[k + 1], z = scales[k + 2], w = scales[k + 3];
      for (uint i = 0; i < columns; i++) sums[i] = sums[i] + float(p[i]) * x + float(q[i]) * y + float(r[i]) * z + float(s[i]) * w;
    } else {
      for (uint i = 0; i < columns; i++) sums[i] = sums[i] + float(p[i]) + float(q[i]) + float(r[i]) + float(s[i]);
    }
  }
  for (; k < count; k++) {
    device const T *p = column + rows[k];
    const float x = SCALED ? scales[k] : 1.0f;
    for (uint i = 0; i < columns; i++) sums[i] += SCALED ? float(p[i]) * x : float(p[i]);
  }
}

// The same for any number of columns, `stride` apart.
template <typename T>
inline void add_any_rows(thread float *sums, device const T *column, thread const long *rows, thread const float *scales, bool scaled, long count,
                         long columns, long stride) {
  for (long k = 0; k < count; k++) {
    device const T *p = column + rows[k];
    const float x = scaled ? scales[k] : 1.0f;
    if (stride == 1) {
      BAG_VECTORIZE
      for (long i = 0; i < columns; i++) sums[i] += float(p[i]) * x;
    } else {
      for (long i = 0; i < columns; i++) sums[i] += float(p[i * stride]) * x;
    }
  }
}

// What a block of columns of a bag's sums or means is made of.
struct bag_block {
  long begin, end;  // of the indices
  long behind;      // indices that count for the mean though they are not added
  long columns;
};

// Sums or means of a block of columns; returns how many indices count. `columns` 0: any number.
template <typename T, uint columns>
inline long write_sums(device T *to, device const T *column, device const long *indices, device const T *scales, bag_block b,
                       constant mps_embedding_bag_arguments &a, device mps_kernel_error *error) {
  const uint room = columns ? columns : MPS_EMBEDDING_BAG_BLOCK;
  float sums[room];
  for (uint i = 0; i < room; i++) sums[i] = 0.0f;
  long rows[TOGETHER], counted = 0;
  uint numbers[TOGETHER];
  float factors[TOGETHER];
  const bool scaled = a.has_scales != 0;
  for (long i = b.begin; i < b.end; i += TOGETHER) {
    const long count = admit(indices + i, min(long(TOGETHER), b.end - i), a, error, rows, numbers);
    if (scaled)
      for (long k = 0; k < count; k++) factors[k] = float(scales[i + long(numbers[k])]);
    if (columns == 0)
      add_any_rows(sums, column, rows, factors, scaled, count, b.columns, a.column_stride);
    else if (scaled)
      add_rows<T, room, true>(sums, column, rows, factors, count);
    else
      add_rows<T, room, false>(sums, column, rows, factors, count);
    counted += count;
  }
  counted += b.behind;
  if (a.mode == MPS_EMBEDDING_BAG_MEAN && counted > 0)
    for (uint i = 0; i < room; i++) sums[i] /= float(counted);
  if (columns == 0) {
    for (long i = 0; i < b.columns; i++) to[i] = T(sums[i]);
  } else {
    for (uint i = 0; i < room; i++) to[i] = T(sums[i]);
  }
  return counted;
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

// Maxima of a block of columns, and the indices that they come from; returns how many indices count.
template <typename T>
inline long write_maxima(device T *to, device long *origin, device const T *column, device const long *indices, bag_block b,
                         constant mps_embedding_bag_arguments &a, device mps_kernel_error *error) {
  float values[MPS_EMBEDDING_BAG_BLOCK];
  int places[MPS_EMBEDDING_BAG_BLOCK];  // in the bag, of the largest so far
  for (uint c = 0; c < MPS_EMBEDDING_BAG_BLOCK; c++) values[c] = 0.0f;
  for (uint c = 0; c < MPS_EMBEDDING_BAG_BLOCK; c++) places[c] = 0;
  long counted = 0;
  for (long i = b.begin; i < b.end; i++) {
    const long index = indices[i];
    if (!valid(index, a, error) || index == a.padding) continue;
    take_larger(values, places, column + index * a.row_stride, b.columns, a.column_stride, int(i - b.begin), counted == 0);
    counted++;
  }
  for (long c = 0; c < b.columns; c++) origin[c] = counted ? indices[b.begin + places[c]] : 0;
  for (long c = 0; c < b.columns; c++) to[c] = T(values[c]);
  return counted + b.behind;
}

}  // namespace

// The blocks of columns [begin, end) of one bag.
template <typename T>
inline void write_bag(device const T *weight, device const long *indices, device const long *offsets, device const T *scales, device T *out,
                      device long *bag_sizes, device long *maxima, long bag, long begin, long end, constant mps_embedding_bag_arguments &a,
                      device mps_kernel_error *error) {
  const range r = bag_range(offsets, bag, a.has_last, a), all = bag_range(offsets, bag, false, a);
  // Bags end at the end of the indices for their sizes.
  const long behind = a.mode != MPS_EMBEDDING_BAG_SUM && a.padding < 0 ? (all.end - all.begin) - (r.end - r.begin) : 0;
  long counted = 0;
  for (long first = begin; first < end || first == 0; first += MPS_EMBEDDING_BAG_BLOCK) {
    const bag_block b = {r.begin, r.end, behind, min(long(MPS_EMBEDDING_BAG_BLOCK), a.width - first)};
    device const T *column = weight + first * a.column_stride;
    device T *to = out + bag * a.width + first;
    if (a.mode == MPS_EMBEDDING_BAG_MAX)
      counted = write_maxima(to, maxima + bag * a.width + first, column, indices, b, a, error);
    else if (b.columns == MPS_EMBEDDING_BAG_BLOCK && a.column_stride == 1)
      counted = write_sums<T, MPS_EMBEDDING_BAG_BLOCK>(to, column, indices, scales, b, a, error);
    else if (b.columns == 16 && a.column_stride == 1)
      counted = write_sums<T, 16>(to, column, indices, scales, b, a, error);
    else
      counted = write_sums<T, 0>(to, column, indices, scales, b, a, error);
  }
  if (a.mode != MPS_EMBEDDING_BAG_SUM && begin == 0) bag_sizes[bag] = counted;
}

// Thread (some bags, part of the width). bag_sizes counts without padding; maxima are the indices that the largest elements come from.
template <typename T>
kernel void embedding_bag(device const T *weight [[buffer(0)]], device const long *indices [[buffer(1)]], device const long *offsets [[buffer(2)]],
                          device const T *scales [[buffer(3)]], device T *out [[buffer(4)]], device long *bag_of [[buffer(5)]],
                          device long *bag_sizes [[buffer(6)]], device long *maxima [[buffer(7)]],
                          constant mps_embedding_bag_arguments &a [[buffer(8)]], device mps_kernel_error *error [[buffer(9)]],
                          uint2 thread_position [[thread_position_in_grid]]) {
  const long first = long(thread_position.x) * a.together, last = min(first + a.together, long(a.bags));
  const long begin = long(thread_position.y) * a.block, end = min(begin + a.block, long(a.width));
  if (begin == 0) {
    if (first == 0 && offsets[0] != 0) report_error(error, MPS_KERNEL_ERROR_FIRST_OFFSET, offsets[0], 0, 0);
    const long behind = a.bags - 1 + a.has_last;
    if (last == a.bags && offsets[behind] > a.count) report_error(error, MPS_KERNEL_ERROR_OFFSET, offsets[behind], a.count, 0);
    for (long bag = first; bag < last && a.wants_bag_of; bag++) {
      const range all = bag_range(offsets, bag, false, a);
      for (long i = all.begin; i < all.end; i++) bag_of[i] = bag;
    }
  }
  if (a.together > 1) {
    // Rows of short bags are far apart: they are asked for all at once, so that no bag waits for its own.
    const long from = bag_range(offsets, first, a.has_last, a).begin, to = min(from + TOGETHER, bag_range(offsets, last - 1, a.has_last, a).end);
    for (long i = from; i < to; i++) {
      const long index = clamp(indices[i], 0L, a.rows - 1);
      (void)*static_cast<device const volatile T *>(weight + index * a.row_stride);
    }
  }
  for (long bag = first; bag < last; bag++) write_bag(weight, indices, offsets, scales, out, bag_sizes, maxima, bag, begin, end, a, error);
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
