// SPDX-License-Identifier: BSD-3-Clause
//
// compact: from a contiguous mask to what is set in it. First each block of the mask is counted, then one thread adds the counts up, then
// each block writes from its own start, so that results are in order.

#include "element.h"
#include "index_arguments.h"

kernel void compact_count(device const bool *mask [[buffer(0)]], device long *counts [[buffer(1)]],
                          constant mps_compact_arguments &a [[buffer(2)]], uint block [[thread_position_in_grid]]) {
  const long begin = long(block) * a.block, end = min(begin + a.block, long(a.count));
  long count = 0;
  for (long i = begin; i < end; i++) count += element(mask + i) ? 1 : 0;
  counts[block] = count;
}

// starts[b] = elements set before block b. starts[0] is 0 and starts[b + 1] holds the count of block b on entry.
kernel void compact_starts(device long *starts [[buffer(1)]], constant mps_compact_arguments &a [[buffer(2)]],
                           uint thread_position [[thread_position_in_grid]]) {
  const long blocks = (a.count + a.block - 1) / a.block;
  for (long b = 0; b < blocks; b++) starts[b + 1] += starts[b];
}

// Coordinates of the elements that are set: out[row, dimension].
kernel void compact_coordinates(device const bool *mask [[buffer(0)]], device const long *starts [[buffer(1)]],
                                constant mps_compact_arguments &a [[buffer(2)]], device long *out [[buffer(3)]],
                                uint block [[thread_position_in_grid]]) {
  const long begin = long(block) * a.block, end = min(begin + a.block, long(a.count));
  long row = starts[block];
  for (long i = begin; i < end && row < a.limit; i++) {
    if (!element(mask + i)) continue;
    long rest = i;
    for (uint d = a.rank; d-- > 0;) {
      const long quotient = rest / a.sizes[d];
      out[row * a.row_stride + d * a.column_stride] = rest - quotient * a.sizes[d];
      rest = quotient;
    }
    row++;
  }
}

// out[k] = values[position of the k-th element that is set].
template <typename T>
kernel void compact_values(device const bool *mask [[buffer(0)]], device const long *starts [[buffer(1)]],
                           constant mps_compact_arguments &a [[buffer(2)]], device const T *values [[buffer(3)]],
                           device T *out [[buffer(4)]], uint block [[thread_position_in_grid]]) {
  const long begin = long(block) * a.block, end = min(begin + a.block, long(a.count));
  long row = starts[block];
  for (long i = begin; i < end; i++)
    if (element(mask + i)) out[row++ * a.row_stride] = values[i];
}

// out[i] = source[number of set elements before i] where mask[i]; other elements stay. The reverse of compact_values.
template <typename T>
kernel void compact_scatter(device const bool *mask [[buffer(0)]], device const long *starts [[buffer(1)]],
                            constant mps_compact_arguments &a [[buffer(2)]], device const T *source [[buffer(3)]],
                            device T *out [[buffer(4)]], uint block [[thread_position_in_grid]]) {
  const long begin = long(block) * a.block, end = min(begin + a.block, long(a.count));
  long row = starts[block];
  for (long i = begin; i < end; i++)
    if (element(mask + i)) out[i] = source[row++];
}

#define COMPACT(NAME, T)                                                                                                      \
  template [[host_name("compact_values_" #NAME)]] kernel void compact_values<T>(device const bool *, device const long *,     \
                                                                                constant mps_compact_arguments &,             \
                                                                                device const T *, device T *, uint);          \
  template [[host_name("compact_scatter_" #NAME)]] kernel void compact_scatter<T>(device const bool *, device const long *,   \
                                                                                  constant mps_compact_arguments &,           \
                                                                                  device const T *, device T *, uint);
COMPACT(u8, uchar)
COMPACT(u16, ushort)
COMPACT(u32, uint)
COMPACT(u64, ulong)
