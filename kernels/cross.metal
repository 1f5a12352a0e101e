// SPDX-License-Identifier: BSD-3-Clause
//
// cross: cross products of vectors of three. Thread: (outer point, block of the run). Integers wrap, so that their signs do not matter.

#include <metal_stdlib>
#include "cross_arguments.h"

using namespace metal;

namespace {

template <typename T> struct cross_type { typedef ulong type; };
template <> struct cross_type<float> { typedef float type; };
template <> struct cross_type<half> { typedef float type; };
template <> struct cross_type<bfloat> { typedef float type; };

inline float2 product(float2 a, float2 b) { return float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }

// a b - c d
template <typename T> struct arithmetic {
  typedef typename cross_type<T>::type type;
  static T difference(T a, T b, T c, T d) { return T(type(a) * type(b) - type(c) * type(d)); }
};
template <> struct arithmetic<float2> {
  static float2 difference(float2 a, float2 b, float2 c, float2 d) { return product(a, b) - product(c, d); }
};

}  // namespace

template <typename T>
kernel void cross_product(device const T *self [[buffer(0)]], device const T *other [[buffer(1)]], device T *out [[buffer(2)]],
                          constant mps_cross_arguments &a [[buffer(3)]], uint2 position [[thread_position_in_grid]]) {
  long point = position.x, x = 0, y = 0, z = 0;
  for (uint d = a.rank; d-- > 0;) {
    const long rest = d ? point / a.sizes[d] : 0, coordinate = point - rest * a.sizes[d];
    x += coordinate * a.strides[0][d];
    y += coordinate * a.strides[1][d];
    z += coordinate * a.strides[2][d];
    point = rest;
  }
  const long begin = long(position.y) * a.block, end = min(begin + a.block, long(a.run));
  const long u = a.step[0], v = a.step[1], w = a.step[2];
  for (long i = begin; i < end; i++) {
    device const T *p = self + x + i * a.run_stride[0];
    device const T *q = other + y + i * a.run_stride[1];
    device T *r = out + z + i * a.run_stride[2];
    const T p0 = p[0], p1 = p[u], p2 = p[2 * u], q0 = q[0], q1 = q[v], q2 = q[2 * v];
    r[0] = arithmetic<T>::difference(p1, q2, p2, q1);
    r[w] = arithmetic<T>::difference(p2, q0, p0, q2);
    r[2 * w] = arithmetic<T>::difference(p0, q1, p1, q0);
  }
}

#define CROSS(NAME, T)                                                                                                          \
  template [[host_name("cross_product_" #NAME)]] kernel void cross_product<T>(device const T *, device const T *, device T *,   \
                                                                              constant mps_cross_arguments &, uint2);
CROSS(u8, uchar)
CROSS(u16, ushort)
CROSS(u32, uint)
CROSS(u64, ulong)
CROSS(f32, float)
CROSS(f16, half)
CROSS(bf16, bfloat)
CROSS(c64, float2)
