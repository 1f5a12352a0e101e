// SPDX-License-Identifier: BSD-3-Clause
//
// pool: what the pooling kernels share: windows, the windows that hold a position, where planes begin.
//
// Kernels come in two forms. Along the width: the lines of a window are first combined, column by column, in private memory, then the
// columns of each window. Along the channels, for tensors whose channels are neighbours: window by window, all channels at once.
#ifndef OPENMPS_KERNELS_POOL_H
#define OPENMPS_KERNELS_POOL_H

#include <metal_stdlib>
#include "pool_arguments.h"

using namespace metal;

#define VECTORIZE _Pragma("clang loop vectorize(assume_safety)")

namespace pool {

constant constexpr int COLUMNS = 1024; // of a line, in private memory
constant constexpr int CHANNELS = 256; // side by side, in private memory; a thread's channel block is no larger
constant constexpr int WIDE = 32;      // windows of this width are taken one by one
constant constexpr int LANES = 16;     // elements side by side in registers

// a / b of numbers that are not negative; short ones divide several times faster.
inline long quotient(long a, long b) { return (a | b) >> 32 ? a / b : long(uint(a) / uint(b)); }

// Positions begin, begin + step, ... below end, all inside of the input. `padded` counts those that lie in the padding too.
struct window {
  long begin, end, step, padded;
};

inline window window_of(constant mps_pool_arguments &a, uint d, long o) {
  if (a.kind[d] == MPS_POOL_ADAPTIVE) {
    const long begin = quotient(o * a.in_size[d], a.out_size[d]), end = quotient((o + 1) * a.in_size[d] + a.out_size[d] - 1, a.out_size[d]);
    return {begin, end, 1, end - begin};
  }
  const long start = o * a.stride[d] - a.padding[d], step = a.dilation[d];
  const long stop = start + (a.window[d] - 1) * step + 1;
  const long begin = start >= 0 ? start : step == 1 ? 0 : start + (-start + step - 1) / step * step;
  return {begin, min(stop, long(a.in_size[d])), step, min(stop, long(a.in_size[d] + a.padding[d])) - start};
}

// Numbers [begin, end) of the windows that hold position i. Dilation is 1.
inline window windows_at(constant mps_pool_arguments &a, uint d, long i) {
  const long out = a.out_size[d];
  if (a.kind[d] == MPS_POOL_ADAPTIVE) return {quotient(i * out, a.in_size[d]), quotient((i + 1) * out + a.in_size[d] - 1, a.in_size[d]), 1, 0};
  const long at = i + a.padding[d], stride = a.stride[d];
  return {at < a.window[d] ? 0 : quotient(at - a.window[d], stride) + 1, min(out, quotient(at, stride) + 1), 1, 0};
}

// The elements of a window by which a mean divides, without those of a divisor that the user gave.
inline long count_of(constant mps_pool_arguments &a, window w) {
  return a.count_include_pad ? w.padded : max(0l, w.end - w.begin);
}

inline long plane_offset(constant mps_pool_arguments &a, long plane, long batch_stride, long channel_stride) {
  const long batch = quotient(plane, a.channels);
  return batch * batch_stride + (plane - batch * a.channels) * channel_stride;
}
inline long in_plane(constant mps_pool_arguments &a, long plane) { return plane_offset(a, plane, a.in_batch, a.in_channel); }
inline long out_plane(constant mps_pool_arguments &a, long plane) { return plane_offset(a, plane, a.out_batch, a.out_channel); }
inline long index_plane(constant mps_pool_arguments &a, long plane) { return plane_offset(a, plane, a.index_batch, a.index_channel); }

}  // namespace pool

#endif
