// SPDX-License-Identifier: BSD-3-Clause
//
// unique: rows (of one element for a flat tensor) in which equal ones are neighbours, to the first of each. Heads, the rows that differ
// from the one before, are counted block by block; then each block writes from its own start. And a merge sort of rows by their elements.

#include "sort.h"
#include "unique_arguments.h"

namespace {

// Where row i lies.
inline long place(device const long *order, constant mps_unique_arguments &a, long i) { return a.ordered && !a.gathered ? order[i] : i; }

template <typename T>
inline bool differs(device const T *rows, long width, long i, long j) {
  for (long k = 0; k < width; k++)
    if (element(rows + i * width + k) != element(rows + j * width + k)) return true;
  return false;
}

template <typename T>
inline bool is_head(device const T *rows, device const long *order, constant mps_unique_arguments &a, long i) {
  return i == 0 || differs(rows, a.width, place(order, a, i), place(order, a, i - 1));
}

enum { QUIET = 32 };  // rows that are looked at together

// True when one of the elements from i on differs from the one before it.
template <typename T>
inline bool any_head(device const T *elements, long i) {
  bool any = false;
  for (long k = 0; k < QUIET; k++) any |= element(elements + i + k) != element(elements + i + k - 1);
  return any;
}

template <typename T>
inline bool comes_before(device const T *rows, long width, long i, long j) {
  for (long k = 0; k < width; k++) {
    const typename sort_key<T>::type x = sort_key<T>::of(element(rows + i * width + k)), y = sort_key<T>::of(element(rows + j * width + k));
    if (x != y) return x < y;
  }
  return false;
}

}  // namespace

// starts[b + 1] = heads in block b.
template <typename T>
kernel void unique_count(device const T *rows [[buffer(0)]], device const long *order [[buffer(1)]], device long *starts [[buffer(2)]],
                         constant mps_unique_arguments &a [[buffer(3)]], uint block [[thread_position_in_grid]]) {
  const long begin = long(block) * a.block, end = min(begin + a.block, long(a.count));
  long count = 0;
  if (a.width == 1 && !(a.ordered && !a.gathered)) {
    count += begin == 0 ? 1 : 0;
    for (long i = max(begin, 1L); i < end; i++) count += element(rows + i) != element(rows + i - 1) ? 1 : 0;
  } else {
    for (long i = begin; i < end; i++) count += is_head(rows, order, a, i) ? 1 : 0;
  }
  starts[block + 1] = count;
  if (block == 0) starts[0] = 0;
}

// starts[b + 1] += starts[b]: the heads before each block, from counts.
kernel void unique_starts(device long *starts [[buffer(0)]], constant mps_unique_arguments &a [[buffer(1)]], uint position [[thread_position_in_grid]]) {
  for (long b = 0; b < a.blocks; b++) starts[b + 1] += starts[b];
}

// heads[k] = position of the k-th head; values[k] = its row, where rows are single elements; inverse[place of row i] = k.
template <typename T>
kernel void unique_write(device const T *rows [[buffer(0)]], device const long *order [[buffer(1)]], device const long *starts [[buffer(2)]],
                         device long *heads [[buffer(3)]], device T *values [[buffer(4)]], device long *inverse [[buffer(5)]],
                         constant mps_unique_arguments &a [[buffer(6)]], uint block [[thread_position_in_grid]]) {
  const long begin = long(block) * a.block, end = min(begin + a.block, long(a.count));
  const long limit = starts[block + 1];
  const bool ordered = a.ordered != 0, with_values = a.values != 0, with_inverse = a.inverse != 0, single = a.width == 1 && !(ordered && !a.gathered);
  long next = starts[block];
  for (long i = begin; i < end;) {
    if (single && i > 0 && end - i >= QUIET && !any_head(rows, i)) {  // long runs are the common case where neighbours are equal at all
      if (with_inverse)
        for (long k = i; k < i + QUIET; k++) inverse[ordered ? order[k] : k] = next - 1;
      i += QUIET;
      continue;
    }
    for (const long stop = min(i + QUIET, end); i < stop; i++) {
      const bool head = single ? i == 0 || element(rows + i) != element(rows + i - 1) : is_head(rows, order, a, i);
      if (next < limit) {  // what is no head is written over by the next one
        heads[next] = i;
        if (with_values) values[next] = element(rows + i);
      }
      next += head ? 1 : 0;
      if (with_inverse) inverse[ordered ? order[i] : i] = next - 1;
    }
  }
}

// counts[k] = rows from one head to the next.
kernel void unique_lengths(device const long *heads [[buffer(0)]], device long *counts [[buffer(1)]], constant mps_unique_arguments &a [[buffer(2)]],
                           uint position [[thread_position_in_grid]]) {
  const long k = position;
  counts[k] = (k + 1 < a.distinct ? heads[k + 1] : long(a.count)) - heads[k];
}

// The order of rows by their elements, first ones first. Without runs a thread orders a block by insertion, else it merges two runs.
template <typename T>
kernel void sort_whole_rows(device const T *rows [[buffer(0)]], device const long *from [[buffer(1)]], device long *to [[buffer(2)]],
                            constant mps_unique_arguments &a [[buffer(3)]], uint position [[thread_position_in_grid]]) {
  if (a.run == 0) {
    const long begin = long(position) * a.block, end = min(begin + a.block, long(a.count));
    for (long i = begin; i < end; i++) {
      long j = i;
      for (; j > begin && comes_before(rows, a.width, i, to[j - 1]); j--) to[j] = to[j - 1];
      to[j] = i;
    }
    return;
  }
  const long begin = long(position) * a.run * 2, middle = min(begin + a.run, long(a.count)), end = min(middle + a.run, long(a.count));
  long left = begin, right = middle;
  for (long i = begin; i < end; i++) {
    const bool take_right = left == middle || (right < end && comes_before(rows, a.width, from[right], from[left]));
    to[i] = take_right ? from[right] : from[left];
    right += take_right ? 1 : 0;
    left += take_right ? 0 : 1;
  }
}

#define DISTINCT(NAME, T)                                                                                                                      \
  template [[host_name("unique_count_" #NAME)]] kernel void unique_count<T>(device const T *, device const long *, device long *,             \
                                                                           constant mps_unique_arguments &, uint);                            \
  template [[host_name("unique_write_" #NAME)]] kernel void unique_write<T>(device const T *, device const long *, device const long *,       \
                                                                           device long *, device T *, device long *,                          \
                                                                           constant mps_unique_arguments &, uint);
DISTINCT(bool, bool)
DISTINCT(u8, uchar)
DISTINCT(u16, ushort)
DISTINCT(u32, uint)
DISTINCT(u64, ulong)
DISTINCT(f16, half)
DISTINCT(bf16, bfloat)
DISTINCT(f32, float)

#define ORDER(NAME, T)                                                                                                                        \
  template [[host_name("sort_whole_rows_" #NAME)]] kernel void sort_whole_rows<T>(device const T *, device const long *, device long *,      \
                                                                                  constant mps_unique_arguments &, uint);
ORDER(bool, bool)
ORDER(u8, uchar)
ORDER(u16, ushort)
ORDER(u32, uint)
ORDER(u64, ulong)
ORDER(i8, char)
ORDER(i16, short)
ORDER(i32, int)
ORDER(i64, long)
ORDER(f16, half)
ORDER(bf16, bfloat)
ORDER(f32, float)
