// SPDX-License-Identifier: BSD-3-Clause
//
// search: where values belong in sorted boundaries (searchsorted, bucketize), and whether they are among others (isin).

#include <metal_stdlib>
#include "search_arguments.h"

using namespace metal;

namespace {

// The first position whose boundary is not before `value`, by halving [0, length). The steps are the CPU's, so that boundaries which are
// not sorted, NaN among them, give the same position. A NaN is looked for at the end.
template <typename T, bool RIGHT>
inline long lower_bound(device const T *boundaries, long length, T value) {
  long start = 0;
  while (length > 0) {
    const long half_length = length >> 1;
    const T middle = boundaries[start + half_length];
    const bool after = RIGHT ? !(middle > value) : !(middle >= value);
    start = after ? start + half_length + 1 : start;
    length = after ? length - half_length - 1 : half_length;
  }
  return start;
}

// The same through a sorter, the order of one row.
template <typename T>
inline long lower_bound_sorted(device const T *boundaries, device const long *sorter, long length, T value, bool right) {
  long start = 0;
  while (length > 0) {
    const long half_length = length >> 1;
    const T middle = boundaries[sorter[start + half_length]];
    const bool after = right ? !(middle > value) : !(middle >= value);
    start = after ? start + half_length + 1 : start;
    length = after ? length - half_length - 1 : half_length;
  }
  return start;
}

}  // namespace

// Thread: a block of values. `narrow` is `out` seen as int32.
template <typename T>
kernel void search_sorted(device const T *boundaries [[buffer(0)]], device const T *values [[buffer(1)]], device const long *sorter [[buffer(2)]],
                          device long *out [[buffer(3)]], device int *narrow [[buffer(4)]], constant mps_search_arguments &a [[buffer(5)]],
                          uint block [[thread_position_in_grid]]) {
  const long begin = long(block) * a.block, end = min(begin + a.block, long(a.count));
  for (long i = begin; i < end; i++) {
    const long from = (i / a.row) * a.length;
    const T value = values[i];
    long position;
    if (a.sorter)
      position = lower_bound_sorted(boundaries + from, sorter + from, a.length, value, a.right != 0);
    else
      position = a.right ? lower_bound<T, true>(boundaries + from, a.length, value) : lower_bound<T, false>(boundaries + from, a.length, value);
    if (a.narrow)
      narrow[i] = int(position);
    else
      out[i] = position;
  }
}

// out[i] = values[i] is one of few tests: each test is compared with a whole block.
template <typename T>
kernel void isin_few(device const T *tests [[buffer(0)]], device const T *values [[buffer(1)]], device uchar *out [[buffer(2)]],
                     constant mps_search_arguments &a [[buffer(3)]], uint block [[thread_position_in_grid]]) {
  const long begin = long(block) * a.block, end = min(begin + a.block, long(a.count));
  const uchar inverted = a.inverted ? 1 : 0;
  for (long i = begin; i < end; i++) out[i] = inverted;
  for (long k = 0; k < a.length; k++) {
    const T test = tests[k];
    const uchar found = inverted ^ 1;
    for (long i = begin; i < end; i++) out[i] = values[i] == test ? found : out[i];
  }
}

// out[i] = values[i] is one of many tests, which are sorted, NaN last.
template <typename T>
kernel void isin_sorted(device const T *tests [[buffer(0)]], device const T *values [[buffer(1)]], device uchar *out [[buffer(2)]],
                        constant mps_search_arguments &a [[buffer(3)]], uint block [[thread_position_in_grid]]) {
  const long begin = long(block) * a.block, end = min(begin + a.block, long(a.count));
  for (long i = begin; i < end; i++) {
    const T value = values[i];
    long start = 0, length = a.length;
    while (length > 1) {
      const long half_length = length >> 1;
      start = tests[start + half_length] <= value ? start + half_length : start;
      length -= half_length;
    }
    out[i] = uchar((tests[start] == value) != (a.inverted != 0));
  }
}

#define SEARCH(NAME, T)                                                                                                                       \
  template [[host_name("search_sorted_" #NAME)]] kernel void search_sorted<T>(device const T *, device const T *, device const long *,       \
                                                                              device long *, device int *, constant mps_search_arguments &, \
                                                                              uint);                                                         \
  template [[host_name("isin_few_" #NAME)]] kernel void isin_few<T>(device const T *, device const T *, device uchar *,                      \
                                                                    constant mps_search_arguments &, uint);                                  \
  template [[host_name("isin_sorted_" #NAME)]] kernel void isin_sorted<T>(device const T *, device const T *, device uchar *,                \
                                                                          constant mps_search_arguments &, uint);
SEARCH(u8, uchar)
SEARCH(i8, char)
SEARCH(i16, short)
SEARCH(i32, int)
SEARCH(i64, long)
SEARCH(f16, half)
SEARCH(bf16, bfloat)
SEARCH(f32, float)
