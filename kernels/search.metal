// SPDX-License-Identifier: BSD-3-Clause
//
// search: where values belong in sorted boundaries (searchsorted, bucketize), and whether they are among others (isin).

#include <metal_stdlib>
#include "search_arguments.h"

using namespace metal;

namespace {

enum { LANES = 8 };  // values that are looked up side by side, so that one waits for memory while others go on

// Where `begin`.. lie in [0, length): the first position whose boundary is not before the value, by halving. The steps are the CPU's, so
// that boundaries which are not sorted, NaN among them, give the same position. A NaN is looked for at the end. No step branches.
template <typename T, bool RIGHT>
inline void lower_bounds(device const T *boundaries, device const long *sorter, long length, device const T *values, uint lanes, thread long *starts) {
  T wanted[LANES];
  long lengths[LANES];
  for (uint k = 0; k < LANES; k++) {
    wanted[k] = values[k < lanes ? k : 0];
    starts[k] = 0;
    lengths[k] = length;
  }
  for (long rest = length; rest > 0; rest >>= 1) {  // no length is above rest
    for (uint k = 0; k < LANES; k++) {
      const long half_length = lengths[k] >> 1, at = min(starts[k] + half_length, length - 1);
      const T middle = boundaries[sorter ? sorter[at] : at];
      const bool before = RIGHT ? !(middle > wanted[k]) : !(middle >= wanted[k]);
      const long after = long(before) & long(lengths[k] > 0);
      starts[k] += after * (half_length + 1);
      lengths[k] = (lengths[k] - after) >> 1;
    }
  }
}

}  // namespace

// Thread: a block of values. `narrow` is `out` seen as int32.
template <typename T>
kernel void search_sorted(device const T *boundaries [[buffer(0)]], device const T *values [[buffer(1)]], device const long *sorter [[buffer(2)]],
                          device long *out [[buffer(3)]], device int *narrow [[buffer(4)]], constant mps_search_arguments &a [[buffer(5)]],
                          uint block [[thread_position_in_grid]]) {
  const long end = min(long(block + 1) * a.block, long(a.count)), length = a.length, row_length = a.row;
  const bool right = a.right != 0, is_narrow = a.narrow != 0, sorted = a.sorter != 0;
  for (long i = long(block) * a.block; i < end;) {
    const long row = i / row_length, from = row * length;
    const uint lanes = uint(min(min(end, (row + 1) * row_length) - i, long(LANES)));
    device const long *order = sorted ? sorter + from : nullptr;
    long positions[LANES];
    if (right)
      lower_bounds<T, true>(boundaries + from, order, length, values + i, lanes, positions);
    else
      lower_bounds<T, false>(boundaries + from, order, length, values + i, lanes, positions);
    for (uint k = 0; k < lanes; k++) {
      if (is_narrow)
        narrow[i + k] = int(positions[k]);
      else
        out[i + k] = positions[k];
    }
    i += lanes;
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
  const long begin = long(block) * a.block, end = min(begin + a.block, long(a.count)), tests_length = a.length;
  const bool inverted = a.inverted != 0;
  for (long i = begin; i < end; i += LANES) {
    const uint lanes = uint(min(end - i, long(LANES)));
    T wanted[LANES];
    long starts[LANES];
    for (uint k = 0; k < LANES; k++) {
      wanted[k] = values[i + (k < lanes ? k : 0)];
      starts[k] = 0;
    }
    for (long length = tests_length; length > 1;) {
      const long half_length = length >> 1;
      for (uint k = 0; k < LANES; k++) starts[k] += half_length * long(tests[starts[k] + half_length] <= wanted[k]);
      length -= half_length;
    }
    for (uint k = 0; k < lanes; k++) out[i + k] = uchar((tests[starts[k]] == wanted[k]) != inverted);
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
