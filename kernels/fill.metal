// SPDX-License-Identifier: BSD-3-Clause
// Fills memory with one element of any size: the smallest kernels there are.
#include <metal_stdlib>
using namespace metal;

template <typename T>
kernel void fill(device T *out [[buffer(0)]], constant T &value [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  out[i] = value;
}

template [[host_name("fill_1")]] kernel void fill<uchar>(device uchar *, constant uchar &, uint);
template [[host_name("fill_2")]] kernel void fill<ushort>(device ushort *, constant ushort &, uint);
template [[host_name("fill_4")]] kernel void fill<uint>(device uint *, constant uint &, uint);
template [[host_name("fill_8")]] kernel void fill<ulong>(device ulong *, constant ulong &, uint);
