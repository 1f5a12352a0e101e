// SPDX-License-Identifier: BSD-3-Clause
//
// formulas_comparison: comparisons, choices, limits, logic and bits.
#ifndef OPENMPS_KERNELS_FORMULAS_COMPARISON_H
#define OPENMPS_KERNELS_FORMULAS_COMPARISON_H

#include "complex.h"
#include "formulas.h"

namespace formula {

struct eq {
  template <typename T> METAL_FUNC bool operator()(T a, T b) const { return a == b; }
  METAL_FUNC bool operator()(float2 a, float2 b) const { return a.x == b.x && a.y == b.y; }
};
struct ne {
  template <typename T> METAL_FUNC bool operator()(T a, T b) const { return a != b; }
  METAL_FUNC bool operator()(float2 a, float2 b) const { return a.x != b.x || a.y != b.y; }
};
struct lt {
  template <typename T> METAL_FUNC bool operator()(T a, T b) const { return a < b; }
};
struct le {
  template <typename T> METAL_FUNC bool operator()(T a, T b) const { return a <= b; }
};
struct gt {
  template <typename T> METAL_FUNC bool operator()(T a, T b) const { return a > b; }
};
struct ge {
  template <typename T> METAL_FUNC bool operator()(T a, T b) const { return a >= b; }
};

struct isnan {
  METAL_FUNC bool operator()(float a) const { return a != a; }
  METAL_FUNC bool operator()(float2 a) const { return a.x != a.x || a.y != a.y; }
};
struct isposinf {
  METAL_FUNC bool operator()(float a) const { return a == infinity(); }
};
struct isneginf {
  METAL_FUNC bool operator()(float a) const { return a == -infinity(); }
};
struct signbit {
  template <typename T> METAL_FUNC bool operator()(T a) const { return a < T(0); }
  METAL_FUNC bool operator()(float a) const { return (as_type<uint>(a) >> 31) != 0u; }
  METAL_FUNC bool operator()(bool) const { return false; }
};

struct where {
  template <typename T> METAL_FUNC T operator()(bool condition, T a, T b) const { return condition ? a : b; }
  float2 operator()(bool condition, float2 a, float2 b) const { return float2(condition ? a.x : b.x, condition ? a.y : b.y); }
};

// NaN wins.
struct maximum {
  template <typename T> METAL_FUNC T operator()(T a, T b) const { return a > b ? a : b; }
  METAL_FUNC float operator()(float a, float b) const { return a > b || a != a ? a : b; }
  METAL_FUNC bool operator()(bool a, bool b) const { return a || b; }
};
struct minimum {
  template <typename T> METAL_FUNC T operator()(T a, T b) const { return a < b ? a : b; }
  METAL_FUNC float operator()(float a, float b) const { return a < b || a != a ? a : b; }
  METAL_FUNC bool operator()(bool a, bool b) const { return a && b; }
};
// NaN loses.
struct fmax {
  template <typename T> METAL_FUNC T operator()(T a, T b) const { return a > b ? a : b; }
  METAL_FUNC float operator()(float a, float b) const { return a >= b || b != b ? a : b; }
  METAL_FUNC bool operator()(bool a, bool b) const { return a || b; }
};
struct fmin {
  template <typename T> METAL_FUNC T operator()(T a, T b) const { return a < b ? a : b; }
  METAL_FUNC float operator()(float a, float b) const { return a <= b || b != b ? a : b; }
  METAL_FUNC bool operator()(bool a, bool b) const { return a && b; }
};
// The upper limit wins over the lower one.
struct clamp {
  template <typename T> METAL_FUNC T operator()(T a, T low, T high) const { return minimum()(maximum()(a, low), high); }
};

struct nan_to_num {
  METAL_FUNC float operator()(float a, constant float *p) const {
    return a != a ? p[0] : a == infinity() ? p[1] : a == -infinity() ? p[2] : a;
  }
  float2 operator()(float2 a, constant float2 *p) const {
    return float2(a.x != a.x ? p[0].x : a.x == infinity() ? p[1].x : a.x == -infinity() ? p[2].x : a.x,
                  a.y != a.y ? p[0].x : a.y == infinity() ? p[1].x : a.y == -infinity() ? p[2].x : a.y);
  }
};

// 0 below zero (and for NaN), 1 above it, b at it.
struct heaviside {
  template <typename T> METAL_FUNC T operator()(T a, T b) const { return a == T(0) ? b : a > T(0) ? T(1) : T(0); }
  METAL_FUNC float operator()(float a, float b) const { return a == 0.0f ? b : a > 0.0f ? 1.0f : 0.0f; }
  METAL_FUNC bool operator()(bool a, bool b) const { return a || b; }
};

struct logical_and {
  METAL_FUNC bool operator()(bool a, bool b) const { return a && b; }
};
struct logical_or {
  METAL_FUNC bool operator()(bool a, bool b) const { return a || b; }
};
struct logical_xor {
  METAL_FUNC bool operator()(bool a, bool b) const { return a != b; }
};
struct logical_not {
  METAL_FUNC bool operator()(bool a) const { return !a; }
};

struct bitwise_and {
  template <typename T> METAL_FUNC T operator()(T a, T b) const { return T(a & b); }
};
struct bitwise_or {
  template <typename T> METAL_FUNC T operator()(T a, T b) const { return T(a | b); }
};
struct bitwise_xor {
  template <typename T> METAL_FUNC T operator()(T a, T b) const { return T(a ^ b); }
};
struct bitwise_not {
  template <typename T> METAL_FUNC T operator()(T a) const { return ~a; }
  METAL_FUNC bool operator()(bool a) const { return !a; }
};

// Shifts by a negative count or by the width and more: 0 to the left, copies of the sign to the right. Types narrower than the computing
// type need nothing more: what is shifted out of them is cut off when the result is wrapped, and their sign is already extended.
struct bitwise_left_shift {
  template <typename T> METAL_FUNC T operator()(T a, T b) const {
    const T width = T(sizeof(T) * 8);
    bool fits = b >= T(0) && b < width;
    return fits ? T(bits_of(a) << bits_of(fits ? b : T(0))) : T(0);
  }
};
struct bitwise_right_shift {
  template <typename T> METAL_FUNC T operator()(T a, T b) const {
    const T width = T(sizeof(T) * 8);
    bool fits = b >= T(0) && b < width;
    T sign = a < T(0) ? T(-1) : T(0);
    return fits ? T(a >> (fits ? b : T(0))) : sign;
  }
};

}  // namespace formula

#endif
