// SPDX-License-Identifier: BSD-3-Clause
//
// repeat_interleave: position i, repeats[i] times behind each other. ends holds the running sums of repeats, then the smallest repeat.

#include <metal_stdlib>
#include "error.h"

using namespace metal;

struct repeat_arguments {
  long count, block; // repeats, and how many of them one thread takes
  long length;       // of out
};

// One thread: the sums are quick compared with what is written by them.
template <typename T>
kernel void repeat_ends(device const T *repeats [[buffer(0)]], device long *ends [[buffer(1)]], constant repeat_arguments &a [[buffer(2)]],
                        uint position [[thread_position_in_grid]]) {
  long sum = 0, lowest = 0;
  for (long i = 0; position == 0 && i < a.count; i++) {
    const long n = repeats[i];
    sum += n;
    lowest = min(lowest, n);
    ends[i] = sum;
  }
  if (position == 0) ends[a.count] = lowest;
}

template <typename T>
kernel void repeat_interleave(device const T *repeats [[buffer(0)]], device const long *ends [[buffer(1)]], device T *out [[buffer(2)]],
                              constant repeat_arguments &a [[buffer(3)]], device mps_kernel_error *error [[buffer(4)]],
                              uint position [[thread_position_in_grid]]) {
  const long begin = long(position) * a.block, end = min(begin + a.block, long(a.count));
  const bool fits = ends[a.count - 1] == a.length;
  if (!fits && begin == 0) report_error(error, MPS_KERNEL_ERROR_REPEATS_SIZE, ends[a.count - 1], a.length, 0);
  for (long i = begin; i < end; i++) {
    if (repeats[i] < 0) report_error(error, MPS_KERNEL_ERROR_REPEATS, repeats[i], i, 0);
    const long first = clamp(ends[i] - long(repeats[i]), 0L, long(a.length)), last = clamp(long(ends[i]), first, long(a.length));
    for (long j = first; j < last; j++) out[j] = T(i);
  }
}

#define REPEAT(NAME, T)                                                                                                                      \
  template [[host_name("repeat_ends_" #NAME)]] kernel void repeat_ends<T>(device const T *, device long *, constant repeat_arguments &, uint); \
  template [[host_name("repeat_interleave_" #NAME)]] kernel void repeat_interleave<T>(device const T *, device const long *, device T *,      \
                                                                                      constant repeat_arguments &, device mps_kernel_error *, uint);
REPEAT(i32, int)
REPEAT(i64, long)
