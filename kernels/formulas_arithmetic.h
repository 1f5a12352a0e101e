// SPDX-License-Identifier: BSD-3-Clause
//
// formulas_arithmetic: sums, products, quotients and what is made of them. Values are PyTorch CPU's, except that an integer divided by
// zero gives 0 (the CPU raises) and the remainder by zero is 0.
#ifndef OPENMPS_KERNELS_FORMULAS_ARITHMETIC_H
#define OPENMPS_KERNELS_FORMULAS_ARITHMETIC_H

#include "complex.h"
#include "formulas.h"

namespace formula {

struct add {
  template <typename T> METAL_FUNC T operator()(T a, T b) const { return T(bits_of(a) + bits_of(b)); }
  METAL_FUNC float operator()(float a, float b) const { return a + b; }
  float2 operator()(float2 a, float2 b) const { return a + b; }
  METAL_FUNC bool operator()(bool a, bool b) const { return a || b; }
};

struct sub {
  template <typename T> METAL_FUNC T operator()(T a, T b) const { return T(bits_of(a) - bits_of(b)); }
  METAL_FUNC float operator()(float a, float b) const { return a - b; }
  float2 operator()(float2 a, float2 b) const { return a - b; }
};

struct mul {
  template <typename T> METAL_FUNC T operator()(T a, T b) const { return T(bits_of(a) * bits_of(b)); }
  METAL_FUNC float operator()(float a, float b) const { return a * b; }
  float2 operator()(float2 a, float2 b) const { return complex_mul(a, b); }
  METAL_FUNC bool operator()(bool a, bool b) const { return a && b; }
};

struct add_scaled {
  template <typename T> METAL_FUNC T operator()(T a, T b, T alpha) const { return add()(a, mul()(alpha, b)); }
};

struct sub_scaled {
  template <typename T> METAL_FUNC T operator()(T a, T b, T alpha) const { return sub()(a, mul()(alpha, b)); }
};

struct div {
  METAL_FUNC float operator()(float a, float b) const { return a / b; }
  float2 operator()(float2 a, float2 b) const { return complex_div(a, b); }
};

// Quotient and remainder of integers without the two traps: division by 0 and MIN / -1.
template <typename T> T safe_divisor(T b) { return b == T(0) || b == T(-1) ? T(1) : b; }
template <> inline ulong safe_divisor<ulong>(ulong b) { return b == 0ul ? 1ul : b; }
template <typename T> T quotient(T a, T b) {
  T q = a / safe_divisor(b);
  q = b == T(-1) ? T(0u - bits_of(a)) : q;
  return b == T(0) ? T(0) : q;
}
template <> inline ulong quotient<ulong>(ulong a, ulong b) { return b == 0ul ? 0ul : a / safe_divisor(b); }
template <typename T> T modulus(T a, T b) { return b == T(0) || b == T(-1) ? T(0) : a % safe_divisor(b); }
template <> inline ulong modulus<ulong>(ulong a, ulong b) { return b == 0ul ? 0ul : a % safe_divisor(b); }

struct div_trunc {
  template <typename T> METAL_FUNC T operator()(T a, T b) const { return quotient(a, b); }
  METAL_FUNC float operator()(float a, float b) const { return metal::trunc(a / b); }
};

struct div_floor {
  template <typename T> METAL_FUNC T operator()(T a, T b) const {
    T r = modulus(a, b);
    T q = quotient(a, b);
    return r != T(0) && (r < T(0)) != (b < T(0)) ? T(q - T(1)) : q;
  }
  // Python's float floor division: from the exact remainder, so that the quotient is never one too large.
  METAL_FUNC float operator()(float a, float b) const {
    float r = metal::fmod(a, b);
    float q = (a - r) / b;
    q = r != 0.0f && (b < 0.0f) != (r < 0.0f) ? q - 1.0f : q;
    float whole = metal::floor(q);
    whole = q - whole > 0.5f ? whole + 1.0f : whole;
    whole = q != 0.0f ? whole : metal::copysign(0.0f, a / b);
    return b == 0.0f ? a / b : whole;
  }
};

struct fmod {
  template <typename T> METAL_FUNC T operator()(T a, T b) const { return modulus(a, b); }
  METAL_FUNC float operator()(float a, float b) const { return metal::fmod(a, b); }
};

struct remainder {
  template <typename T> METAL_FUNC T operator()(T a, T b) const {
    T r = modulus(a, b);
    return r != T(0) && (r < T(0)) != (b < T(0)) ? T(r + b) : r;
  }
  METAL_FUNC float operator()(float a, float b) const {
    float r = metal::fmod(a, b);
    return r != 0.0f && (b < 0.0f) != (r < 0.0f) ? r + b : r;
  }
};

struct neg {
  template <typename T> METAL_FUNC T operator()(T a) const { return T(0u - bits_of(a)); }
  METAL_FUNC float operator()(float a) const { return -a; }
  float2 operator()(float2 a) const { return -a; }
};

struct abs {
  template <typename T> METAL_FUNC T operator()(T a) const { return a < T(0) ? T(0u - bits_of(a)) : a; }
  ulong operator()(ulong a) const { return a; }
  METAL_FUNC float operator()(float a) const { return metal::fabs(a); }
  METAL_FUNC float operator()(float2 a) const { return complex_abs(a); }
  METAL_FUNC bool operator()(bool a) const { return a; }
};

struct sign {
  template <typename T> METAL_FUNC T operator()(T a) const { return T((a > T(0)) - (a < T(0))); }
  METAL_FUNC float operator()(float a) const { return float((a > 0.0f) - (a < 0.0f)); }
  METAL_FUNC bool operator()(bool a) const { return a; }
};

struct sgn {
  template <typename T> METAL_FUNC T operator()(T a) const { return sign()(a); }
  float2 operator()(float2 a) const {
    float magnitude = complex_abs(a);
    return magnitude == 0.0f ? float2(0.0f, 0.0f) : float2(a.x / magnitude, a.y / magnitude);
  }
};

struct reciprocal {
  METAL_FUNC float operator()(float a) const { return 1.0f / a; }
  float2 operator()(float2 a) const { return complex_div(float2(1.0f, 0.0f), a); }
};

struct conj_physical {
  template <typename T> METAL_FUNC T operator()(T a) const { return a; }
  float2 operator()(float2 a) const { return float2(a.x, -a.y); }
};

struct angle {
  METAL_FUNC float operator()(float a) const { return is_nan(a) ? a : a < 0.0f ? 3.14159265f : 0.0f; }
  METAL_FUNC float operator()(float2 a) const { return metal::atan2(a.y, a.x); }
};

struct complex {
  float2 operator()(float real, float imaginary) const { return float2(real, imaginary); }
};

struct polar {
  float2 operator()(float magnitude, float phase) const {
    return float2(magnitude * metal::cos(phase), magnitude * metal::sin(phase));
  }
};

struct ceil {
  template <typename T> METAL_FUNC T operator()(T a) const { return a; }
  METAL_FUNC float operator()(float a) const { return metal::ceil(a); }
};
struct floor {
  template <typename T> METAL_FUNC T operator()(T a) const { return a; }
  METAL_FUNC float operator()(float a) const { return metal::floor(a); }
};
struct trunc {
  template <typename T> METAL_FUNC T operator()(T a) const { return a; }
  METAL_FUNC float operator()(float a) const { return metal::trunc(a); }
};
struct round {
  template <typename T> METAL_FUNC T operator()(T a) const { return a; }
  METAL_FUNC float operator()(float a) const { return metal::rint(a); }
};
struct frac {
  METAL_FUNC float operator()(float a) const { return a - metal::trunc(a); }
};

// a = mantissa 2^exponent with 1/2 <= |mantissa| < 1; 0, NaN and infinities have exponent 0.
struct frexp_mantissa {
  METAL_FUNC float operator()(float a) const {
    float scaled = metal::fabs(a) < 1.17549435e-38f ? a * 16777216.0f : a;
    float mantissa = as_type<float>((as_type<uint>(scaled) & 0x807fffffu) | 0x3f000000u);
    return a == 0.0f || !(metal::fabs(a) < infinity()) ? a : mantissa;
  }
};
struct frexp_exponent {
  METAL_FUNC float operator()(float a) const {
    bool small = metal::fabs(a) < 1.17549435e-38f;
    float scaled = small ? a * 16777216.0f : a;
    int exponent = int((as_type<uint>(scaled) >> 23) & 255u) - (small ? 150 : 126);
    return a == 0.0f || !(metal::fabs(a) < infinity()) ? 0.0f : float(exponent);
  }
};

// parameters[0] is a power of ten; the second one is for negative decimals.
struct round_decimals {
  METAL_FUNC float operator()(float a, constant float *p) const { return metal::rint(a * p[0]) / p[0]; }
};
struct round_tens {
  METAL_FUNC float operator()(float a, constant float *p) const { return metal::rint(a / p[0]) * p[0]; }
};

struct lerp {
  METAL_FUNC float operator()(float a, float b, float weight) const {
    return metal::fabs(weight) < 0.5f ? a + weight * (b - a) : b - (b - a) * (1.0f - weight);
  }
  float2 operator()(float2 a, float2 b, float2 weight) const {
    return complex_abs(weight) < 0.5f ? a + complex_mul(weight, b - a) : b - complex_mul(b - a, float2(1.0f, 0.0f) - weight);
  }
};

struct addcmul {
  template <typename T> METAL_FUNC T operator()(T a, T b, T c, constant T *p) const { return add()(a, mul()(mul()(p[0], b), c)); }
};

struct addcdiv {
  template <typename T> METAL_FUNC T operator()(T a, T b, T c, constant T *p) const { return add()(a, div()(mul()(p[0], b), c)); }
};

template <typename T> T greatest_common_divisor(T a, T b) {
  while (b != T(0)) {
    T r = a % b;
    a = b;
    b = r;
  }
  return a;
}

struct gcd {
  template <typename T> METAL_FUNC T operator()(T a, T b) const {
    return T(greatest_common_divisor(bits_of(abs()(a)), bits_of(abs()(b))));
  }
};

struct lcm {
  template <typename T> METAL_FUNC T operator()(T a, T b) const {
    auto g = greatest_common_divisor(bits_of(abs()(a)), bits_of(abs()(b)));
    return g == 0u ? T(0) : abs()(mul()(quotient(a, T(g)), b));
  }
};

}  // namespace formula

#endif
