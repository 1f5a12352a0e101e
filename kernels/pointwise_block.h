// SPDX-License-Identifier: BSD-3-Clause
//
// pointwise_block: the block kernels that pointwise programs are made of. One formula, one thread an element, one signature:
// out at buffer 0, up to four operands at buffers 1 to 4, the parameters at buffer 5. All operands lie without gaps; out may be
// the same memory as an operand. A formula is a functor, `R operator()(A a, B b, ..., constant T *parameters) const`.
//
//   struct add { float operator()(float a, float b) const { return a + b; } };
//   POINTWISE_BINARY(add_f32, add, float, float, float) // name, functor, result, operands
#ifndef OPENMPS_KERNELS_POINTWISE_BLOCK_H
#define OPENMPS_KERNELS_POINTWISE_BLOCK_H

#include "element.h"

template <typename F, typename R, typename A>
kernel void pointwise_unary(device R *out [[buffer(0)]], device const A *a [[buffer(1)]],
                            uint i [[thread_position_in_grid]]) {
  out[i] = F()(element(a + i));
}

template <typename F, typename R, typename A, typename B>
kernel void pointwise_binary(device R *out [[buffer(0)]], device const A *a [[buffer(1)]], device const B *b [[buffer(2)]],
                             uint i [[thread_position_in_grid]]) {
  out[i] = F()(element(a + i), element(b + i));
}

template <typename F, typename R, typename A, typename B, typename C>
kernel void pointwise_ternary(device R *out [[buffer(0)]], device const A *a [[buffer(1)]], device const B *b [[buffer(2)]],
                              device const C *c [[buffer(3)]], uint i [[thread_position_in_grid]]) {
  out[i] = F()(element(a + i), element(b + i), element(c + i));
}

template <typename F, typename R, typename A, typename B, typename C, typename D>
kernel void pointwise_quaternary(device R *out [[buffer(0)]], device const A *a [[buffer(1)]],
                                 device const B *b [[buffer(2)]], device const C *c [[buffer(3)]],
                                 device const D *d [[buffer(4)]], uint i [[thread_position_in_grid]]) {
  out[i] = F()(element(a + i), element(b + i), element(c + i), element(d + i));
}

// The same with parameters (T: the element type of the parameters).
template <typename F, typename R, typename A, typename T>
kernel void pointwise_unary_with(device R *out [[buffer(0)]], device const A *a [[buffer(1)]],
                                 constant T *parameters [[buffer(5)]], uint i [[thread_position_in_grid]]) {
  out[i] = F()(element(a + i), parameters);
}

template <typename F, typename R, typename A, typename B, typename T>
kernel void pointwise_binary_with(device R *out [[buffer(0)]], device const A *a [[buffer(1)]],
                                  device const B *b [[buffer(2)]], constant T *parameters [[buffer(5)]],
                                  uint i [[thread_position_in_grid]]) {
  out[i] = F()(element(a + i), element(b + i), parameters);
}

template <typename F, typename R, typename A, typename B, typename C, typename T>
kernel void pointwise_ternary_with(device R *out [[buffer(0)]], device const A *a [[buffer(1)]],
                                   device const B *b [[buffer(2)]], device const C *c [[buffer(3)]],
                                   constant T *parameters [[buffer(5)]], uint i [[thread_position_in_grid]]) {
  out[i] = F()(element(a + i), element(b + i), element(c + i), parameters);
}

#define POINTWISE_UNARY(name, F, R, A)                                                                          \
  template [[host_name(#name)]] kernel void pointwise_unary<F, R, A>(                                           \
      device R *out [[buffer(0)]], device const A *a [[buffer(1)]], uint i [[thread_position_in_grid]]);

#define POINTWISE_BINARY(name, F, R, A, B)                                                                      \
  template [[host_name(#name)]] kernel void pointwise_binary<F, R, A, B>(                                       \
      device R *out [[buffer(0)]], device const A *a [[buffer(1)]], device const B *b [[buffer(2)]],            \
      uint i [[thread_position_in_grid]]);

#define POINTWISE_TERNARY(name, F, R, A, B, C)                                                                  \
  template [[host_name(#name)]] kernel void pointwise_ternary<F, R, A, B, C>(                                   \
      device R *out [[buffer(0)]], device const A *a [[buffer(1)]], device const B *b [[buffer(2)]],            \
      device const C *c [[buffer(3)]], uint i [[thread_position_in_grid]]);

#define POINTWISE_QUATERNARY(name, F, R, A, B, C, D)                                                            \
  template [[host_name(#name)]] kernel void pointwise_quaternary<F, R, A, B, C, D>(                             \
      device R *out [[buffer(0)]], device const A *a [[buffer(1)]], device const B *b [[buffer(2)]],            \
      device const C *c [[buffer(3)]], device const D *d [[buffer(4)]], uint i [[thread_position_in_grid]]);

#define POINTWISE_UNARY_WITH(name, F, R, A, T)                                                                  \
  template [[host_name(#name)]] kernel void pointwise_unary_with<F, R, A, T>(                                   \
      device R *out [[buffer(0)]], device const A *a [[buffer(1)]], constant T *parameters [[buffer(5)]],       \
      uint i [[thread_position_in_grid]]);

#define POINTWISE_BINARY_WITH(name, F, R, A, B, T)                                                              \
  template [[host_name(#name)]] kernel void pointwise_binary_with<F, R, A, B, T>(                               \
      device R *out [[buffer(0)]], device const A *a [[buffer(1)]], device const B *b [[buffer(2)]],            \
      constant T *parameters [[buffer(5)]], uint i [[thread_position_in_grid]]);

#define POINTWISE_TERNARY_WITH(name, F, R, A, B, C, T)                                                          \
  template [[host_name(#name)]] kernel void pointwise_ternary_with<F, R, A, B, C, T>(                           \
      device R *out [[buffer(0)]], device const A *a [[buffer(1)]], device const B *b [[buffer(2)]],            \
      device const C *c [[buffer(3)]], constant T *parameters [[buffer(5)]], uint i [[thread_position_in_grid]]);

#endif
