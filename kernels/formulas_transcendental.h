// SPDX-License-Identifier: BSD-3-Clause
//
// formulas_transcendental: powers, exponentials, logarithms, circular and hyperbolic functions, of real and of complex numbers.
#ifndef OPENMPS_KERNELS_FORMULAS_TRANSCENDENTAL_H
#define OPENMPS_KERNELS_FORMULAS_TRANSCENDENTAL_H

#include "complex_functions.h"
#include "formulas.h"
#include "special_elementary.h"

namespace formula {

#define REAL_AND_COMPLEX(name, real, complex_value)              \
  struct name {                                                  \
    METAL_FUNC float operator()(float a) const { return real; }  \
    float2 operator()(float2 a) const { return complex_value; }  \
  };

REAL_AND_COMPLEX(sqrt, metal::sqrt(a), complex_sqrt(a))
REAL_AND_COMPLEX(rsqrt, metal::rsqrt(a), complex_div(float2(1.0f, 0.0f), complex_sqrt(a)))
REAL_AND_COMPLEX(exp, metal::exp(a), complex_exp(a))
REAL_AND_COMPLEX(exp2, metal::exp2(a), complex_exp(float2(a.x * 0.693147181f, a.y * 0.693147181f)))
REAL_AND_COMPLEX(expm1, special::expm1(a), complex_expm1(a))
REAL_AND_COMPLEX(log, metal::log(a), complex_log(a))
REAL_AND_COMPLEX(log2, metal::log2(a), complex_log(a) * 1.44269504f)
REAL_AND_COMPLEX(log10, metal::log10(a), complex_log(a) * 0.434294482f)
REAL_AND_COMPLEX(log1p, special::log1p(a), complex_log1p(a))
REAL_AND_COMPLEX(sin, metal::sin(a), complex_sin(a))
REAL_AND_COMPLEX(cos, metal::cos(a), complex_cos(a))
REAL_AND_COMPLEX(tan, metal::tan(a), complex_tan(a))
REAL_AND_COMPLEX(asin, metal::asin(a), complex_asin(a))
REAL_AND_COMPLEX(acos, metal::acos(a), complex_acos(a))
REAL_AND_COMPLEX(atan, metal::atan(a), complex_atan(a))
REAL_AND_COMPLEX(sinh, metal::sinh(a), complex_sinh(a))
REAL_AND_COMPLEX(cosh, metal::cosh(a), complex_cosh(a))
REAL_AND_COMPLEX(tanh, metal::tanh(a), complex_tanh(a))
REAL_AND_COMPLEX(asinh, metal::asinh(a), complex_asinh(a))
REAL_AND_COMPLEX(acosh, metal::acosh(a), complex_acosh(a))
REAL_AND_COMPLEX(atanh, metal::atanh(a), complex_atanh(a))
REAL_AND_COMPLEX(sigmoid, 1.0f / (1.0f + metal::exp(-a)), complex_div(float2(1.0f, 0.0f), float2(1.0f, 0.0f) + complex_exp(-a)))

// sin(pi a) / (pi a).
struct sinc {
  METAL_FUNC float operator()(float a) const { return a == 0.0f ? 1.0f : metal::sinpi(a) / (3.14159265f * a); }
  float2 operator()(float2 a) const {
    float2 z = float2(3.14159265f * a.x, 3.14159265f * a.y);
    return a.x == 0.0f && a.y == 0.0f ? float2(1.0f, 0.0f) : complex_div(complex_sin(z), z);
  }
};

struct square {
  template <typename T> METAL_FUNC T operator()(T a) const { return T(bits_of(a) * bits_of(a)); }
  METAL_FUNC float operator()(float a) const { return a * a; }
  float2 operator()(float2 a) const { return complex_mul(a, a); }
};

struct cube {
  template <typename T> METAL_FUNC T operator()(T a) const { return T(bits_of(a) * bits_of(a) * bits_of(a)); }
  METAL_FUNC float operator()(float a) const { return a * a * a; }
  float2 operator()(float2 a) const { return complex_mul(complex_mul(a, a), a); }
};

struct reciprocal_square {
  METAL_FUNC float operator()(float a) const { return 1.0f / (a * a); }
  float2 operator()(float2 a) const { return complex_div(float2(1.0f, 0.0f), complex_mul(a, a)); }
};

// Integers: by squaring, modulo 2^width; a negative exponent leaves only the powers of 1 and -1.
template <typename T> T integer_power(T base, T exponent) {
  auto b = bits_of(base);
  auto result = bits_of(T(1));
  for (auto e = bits_of(exponent); e != 0u; e >>= 1) {
    result = (e & 1u) != 0u ? result * b : result;
    b *= b;
  }
  return T(result);
}

struct pow {
  template <typename T> METAL_FUNC T operator()(T a, T b) const {
    T negative = a == T(1) ? T(1) : a == T(-1) ? ((b & T(1)) != T(0) ? T(-1) : T(1)) : T(0);
    return b < T(0) ? negative : integer_power(a, b < T(0) ? T(0) : b);
  }
  ulong operator()(ulong a, ulong b) const { return integer_power(a, b); }
  METAL_FUNC float operator()(float a, float b) const { return metal::pow(a, b); }
  float2 operator()(float2 a, float2 b) const { return complex_pow(a, b); }
};

struct atan2 {
  METAL_FUNC float operator()(float a, float b) const { return metal::atan2(a, b); }
};
struct hypot {
  METAL_FUNC float operator()(float a, float b) const { return hypotenuse(a, b); }
};
struct copysign {
  METAL_FUNC float operator()(float a, float b) const { return metal::copysign(a, b); }
};

// log(e^a + e^b), from the larger one.
struct logaddexp {
  METAL_FUNC float operator()(float a, float b) const {
    float large = a > b ? a : b;
    float distance = metal::fabs(a - b);
    float sum = large + special::log1p(metal::exp(-distance));
    return a != a || b != b ? a + b : a == b && metal::fabs(a) == infinity() ? a : sum;
  }
  float2 operator()(float2 a, float2 b) const {
    if (has_nan(a) || has_nan(b)) return float2(special::not_a_number(), special::not_a_number());
    float2 large = a.x >= b.x ? a : b, small = a.x >= b.x ? b : a;
    if (large.x == -infinity()) return small;
    if (small.x == infinity()) return complex_log(complex_exp(a) + complex_exp(b));
    return large + complex_log1pexp(small - large);
  }
};
struct logaddexp2 {
  METAL_FUNC float operator()(float a, float b) const {
    float large = a > b ? a : b;
    float distance = metal::fabs(a - b);
    float sum = large + special::log1p(metal::exp2(-distance)) * 1.44269504f;
    return a != a || b != b ? a + b : a == b && metal::fabs(a) == infinity() ? a : sum;
  }
  float2 operator()(float2 a, float2 b) const {
    return logaddexp()(a * 0.693147181f, b * 0.693147181f) * 1.44269504f;
  }
};

// 0 where a is 0, NaN where b is NaN.
struct xlogy {
  METAL_FUNC float operator()(float a, float b) const { return b != b ? b : a == 0.0f ? 0.0f : a * metal::log(b); }
};
struct xlog1py {
  METAL_FUNC float operator()(float a, float b) const { return b != b ? b : a == 0.0f ? 0.0f : a * special::log1p(b); }
};

// The neighbour of a towards b. parameters[0] is the step between neighbours among the bits: 1 for float, 65536 for bfloat.
struct nextafter {
  METAL_FUNC float operator()(float a, float b, constant float *p) const {
    uint step = uint(p[0]), bits = as_type<uint>(a);
    bool away = (a > 0.0f) == (b > a);
    float moved = as_type<float>(away ? bits + step : bits - step);
    moved = a == 0.0f ? as_type<float>(step | (as_type<uint>(b) & 0x80000000u)) : moved;
    moved = a == b ? b : moved;
    return a != a || b != b ? a + b : moved;
  }
};
struct nextafter_half {
  METAL_FUNC float operator()(float a, float b) const {
    ushort bits = as_type<ushort>(half(a));
    bool away = (a > 0.0f) == (b > a);
    ushort next = ushort(away ? bits + 1 : bits - 1);
    next = a == 0.0f ? ushort(b < 0.0f ? 0x8001 : 1) : next;
    float moved = float(as_type<half>(next));
    moved = a == b ? b : moved;
    return a != a || b != b ? a + b : moved;
  }
};

// Exact, or rounded once among the subnormals. From 400 on every exponent gives the same.
struct ldexp {
  METAL_FUNC float operator()(float a, float b) const { return metal::ldexp(a, int(metal::clamp(b, -400.0f, 400.0f))); }
};

}  // namespace formula

#endif
