// SPDX-License-Identifier: BSD-3-Clause
//
// complex_functions: elementary functions of a complex number (float2). Branch cuts and limits follow C's Annex G where the real functions
// allow it. asin and acos: Hull, Fairgrieve and Tang, ACM TOMS 23 (1997); tanh: Kahan, Branch Cuts (1987).
#ifndef OPENMPS_KERNELS_COMPLEX_FUNCTIONS_H
#define OPENMPS_KERNELS_COMPLEX_FUNCTIONS_H

#include "complex.h"
#include "special_elementary.h"

namespace formula {

inline float2 times_i(float2 z) { return float2(-z.y, z.x); }
inline float2 over_i(float2 z) { return float2(z.y, -z.x); }

inline bool has_nan(float2 z) { return z.x != z.x || z.y != z.y; }
inline bool is_finite(float x) { return metal::fabs(x) < special::infinity(); }

inline float2 complex_exp(float2 z) {
  if (z.x == special::infinity() && !is_finite(z.y)) return float2(z.x, special::not_a_number());
  // Halves of the exponent: e^x alone may overflow where e^x sin(y) does not.
  float e = metal::exp(0.5f * z.x);
  float c = metal::cos(z.y), s = metal::sin(z.y);
  float2 result = float2((e * c) * e, (e * s) * e);
  if (e == 0.0f) result = is_finite(z.y) ? float2(metal::copysign(0.0f, c), metal::copysign(0.0f, s)) : float2(0.0f, metal::copysign(0.0f, z.y));
  if (z.y == 0.0f) result = float2(metal::exp(z.x), z.y);
  return result;
}

inline float log_abs(float2 z) {
  float x = metal::fabs(z.x), y = metal::fabs(z.y);
  float large = x > y ? x : y, small = x > y ? y : x;
  float near = 0.5f * special::log1p((large - 1.0f) * (large + 1.0f) + small * small);
  return large > 0.7f && large < 1.5f && small < 1.0f ? near : metal::log(hypotenuse(x, y));
}

inline float2 complex_log(float2 z) { return float2(log_abs(z), metal::atan2(z.y, z.x)); }

inline float2 complex_log1p(float2 z) {
  if (has_nan(z)) return float2(special::not_a_number(), special::not_a_number());
  if (z.x == 0.0f && z.y == 0.0f) return z;
  float2 sum = float2(1.0f + z.x, z.y);
  bool small = metal::fabs(z.x) < 0.5f && metal::fabs(z.y) < 0.5f;
  float real = small ? 0.5f * special::log1p(z.x * (2.0f + z.x) + z.y * z.y) : log_abs(sum);
  return float2(real, metal::atan2(z.y, sum.x));
}

// log(1 + e^z). Where e^z is near -1, the real part of the sum is (e^x - 1) cos y + 2 cos(y/2)^2, which does not cancel.
inline float2 complex_log1pexp(float2 z) {
  float2 power = complex_exp(z);
  float half_cosine = metal::cos(0.5f * z.y);
  float2 sum = float2(special::expm1(z.x) * metal::cos(z.y) + 2.0f * half_cosine * half_cosine, power.y);
  return metal::fabs(sum.x) + metal::fabs(sum.y) < 0.5f ? complex_log(sum) : complex_log1p(power);
}

inline float2 complex_expm1(float2 z) {
  float half_sine = metal::sin(0.5f * z.y);
  return float2(special::expm1(z.x) * metal::cos(z.y) - 2.0f * half_sine * half_sine, metal::exp(z.x) * metal::sin(z.y));
}

inline float2 complex_sqrt(float2 z) {
  float infinite = special::infinity();
  if (z.x == 0.0f && z.y == 0.0f) return float2(0.0f, z.y);
  if (metal::fabs(z.y) == infinite) return float2(infinite, z.y);
  if (z.x == infinite) return float2(z.x, z.y != z.y ? z.y : metal::copysign(0.0f, z.y));
  if (z.x == -infinite) return float2(z.y != z.y ? z.y : 0.0f, z.y != z.y ? infinite : metal::copysign(infinite, z.y));
  bool huge = metal::fabs(z.x) > 1.0e37f || metal::fabs(z.y) > 1.0e37f;
  bool tiny = metal::fabs(z.x) < 1.0e-36f && metal::fabs(z.y) < 1.0e-36f;
  float scale = huge ? 0.0625f : tiny ? 18446744073709551616.0f : 1.0f;
  float back = huge ? 4.0f : tiny ? 2.3283064365386963e-10f : 1.0f;
  float x = z.x * scale, y = z.y * scale;
  float t = metal::sqrt(0.5f * (metal::fabs(x) + hypotenuse(x, y)));
  float2 result = x >= 0.0f ? float2(t, y / (2.0f * t)) : float2(metal::fabs(y) / (2.0f * t), metal::copysign(t, y));
  return float2(result.x * back, result.y * back);
}

inline float2 complex_sinh(float2 z) {
  if (z.y == 0.0f) return float2(metal::sinh(z.x), z.y);
  if (metal::fabs(z.x) == special::infinity() && !is_finite(z.y)) return float2(metal::fabs(z.x), special::not_a_number());
  return float2(z.x == 0.0f ? z.x : metal::sinh(z.x) * metal::cos(z.y), metal::cosh(z.x) * metal::sin(z.y));
}
inline float2 complex_cosh(float2 z) {
  if (metal::fabs(z.x) == special::infinity() && !is_finite(z.y)) return float2(metal::fabs(z.x), special::not_a_number());
  float imaginary = metal::sinh(z.x) * metal::sin(z.y);
  imaginary = z.x == 0.0f ? (is_finite(z.y) ? z.x * z.y : 0.0f) : imaginary;
  imaginary = z.y == 0.0f ? (z.x != z.x ? z.y : z.y * metal::copysign(1.0f, z.x)) : imaginary;
  return float2(z.y == 0.0f ? metal::cosh(z.x) : metal::cosh(z.x) * metal::cos(z.y), imaginary);
}

inline float2 complex_tanh(float2 z) {
  if (z.x == 0.0f && !is_finite(z.y)) return float2(z.x, special::not_a_number());
  if (z.y == 0.0f && z.x != z.x) return z;
  if (metal::fabs(z.x) > 9.5f) {
    float decay = metal::exp(-2.0f * metal::fabs(z.x));
    float imaginary = decay == 0.0f ? metal::copysign(0.0f, z.y) : 4.0f * metal::sin(z.y) * metal::cos(z.y) * decay;
    return float2(metal::copysign(1.0f, z.x), imaginary);
  }
  float t = metal::tan(z.y), s = metal::sinh(z.x);
  float beta = 1.0f + t * t, rho = metal::sqrt(1.0f + s * s);
  float denominator = 1.0f + beta * s * s;
  float2 result = float2(beta * rho * s / denominator, t / denominator);
  return metal::fabs(t) > 1.0e18f ? float2(rho / s, 1.0f / t) : result;
}

inline float2 complex_sin(float2 z) {
  float2 w = over_i(complex_sinh(times_i(z)));
  return float2(w.x, is_finite(z.x) || is_finite(z.y) ? w.y : metal::fabs(w.y));
}
inline float2 complex_cos(float2 z) { return complex_cosh(times_i(z)); }
inline float2 complex_tan(float2 z) { return over_i(complex_tanh(times_i(z))); }

// asin (and acos) of the first quadrant; .y is the imaginary part of both, without its sign.
inline float2 inverse_sine(float x, float y, bool cosine) {
  if (x > 1.0e17f || y > 1.0e17f) {
    float angle = cosine ? metal::atan2(y, x) : metal::atan2(x, y);
    return float2(angle, metal::log(hypotenuse(0.5f * x, 0.5f * y)) + 1.38629436f);
  }
  float r = hypotenuse(x + 1.0f, y), s = hypotenuse(x - 1.0f, y);
  float a = 0.5f * (r + s), b = x / a;
  float real;
  if (b <= 0.6417f) {
    real = cosine ? metal::acos(b) : metal::asin(b);
  } else {
    float root = x <= 1.0f ? metal::sqrt(0.5f * (a + x) * (y * y / (r + x + 1.0f) + (s + (1.0f - x))))
                           : y * metal::sqrt(0.5f * ((a + x) / (r + x + 1.0f) + (a + x) / (s + (x - 1.0f))));
    real = cosine ? metal::atan2(root, x) : metal::atan2(x, root);
  }
  float imaginary;
  if (a <= 1.5f) {
    float first = y * y / (r + x + 1.0f);
    float second = x < 1.0f ? y * y / (s + (1.0f - x)) : s + (x - 1.0f);
    second = x < 1.0f && y == 0.0f ? 0.0f : second;
    float excess = 0.5f * (first + second);
    imaginary = special::log1p(excess + metal::sqrt(excess * (a + 1.0f)));
  } else {
    imaginary = metal::log(a + metal::sqrt(a * a - 1.0f));
  }
  return float2(real, imaginary);
}

// asin where a part is NaN.
inline float2 asin_of_nan(float2 z) {
  bool infinite = metal::fabs(z.x) == special::infinity() || metal::fabs(z.y) == special::infinity();
  float nan = special::not_a_number();
  return float2(z.x == 0.0f ? z.x : nan, infinite ? metal::copysign(special::infinity(), z.y) : nan);
}

inline float2 complex_asin(float2 z) {
  if (has_nan(z)) return asin_of_nan(z);
  float2 w = inverse_sine(metal::fabs(z.x), metal::fabs(z.y), false);
  return float2(metal::copysign(w.x, z.x), metal::copysign(w.y, z.y));
}
inline float2 complex_acos(float2 z) {
  if (has_nan(z)) {
    float2 w = asin_of_nan(z);
    return float2(1.57079633f - w.x, -w.y);
  }
  float2 w = inverse_sine(metal::fabs(z.x), metal::fabs(z.y), true);
  return float2((as_type<uint>(z.x) >> 31) != 0u ? 3.14159265f - w.x : w.x, metal::copysign(w.y, -z.y));
}
inline float2 complex_asinh(float2 z) { return over_i(complex_asin(times_i(z))); }
inline float2 complex_acosh(float2 z) {
  float2 w = complex_acos(z);
  return float2(metal::fabs(w.y), metal::copysign(w.x, z.y));
}

inline float2 complex_atanh(float2 z) {
  float x = metal::fabs(z.x), y = metal::fabs(z.y);
  float2 w;
  if (has_nan(z) && y != special::infinity()) {
    bool zero = x == 0.0f || x == special::infinity();
    w = float2(zero ? 0.0f : special::not_a_number(), special::not_a_number());
  } else if (x > 1.0e9f || y > 1.0e9f) {
    float m = hypotenuse(x, y);
    w = float2(m == special::infinity() ? 0.0f : x / m / m, 1.57079633f);
  } else {
    float d = (1.0f - x) * (1.0f - x) + y * y;
    w = float2(0.25f * special::log1p(4.0f * x / d), 0.5f * metal::atan2(2.0f * y, (1.0f - x) * (1.0f + x) - y * y));
  }
  return float2(metal::copysign(w.x, z.x), metal::copysign(w.y, z.y));
}
inline float2 complex_atan(float2 z) { return over_i(complex_atanh(times_i(z))); }

inline float2 complex_pow(float2 a, float2 b) {
  if (b.x == 0.0f && b.y == 0.0f) return float2(1.0f, 0.0f);
  if (a.x == 0.0f && a.y == 0.0f) return b.x > 0.0f ? float2(0.0f, 0.0f) : float2(special::not_a_number(), special::not_a_number());
  if (b.x == 1.0f && b.y == 0.0f) return a;
  return complex_exp(complex_mul(b, complex_log(a)));
}

}  // namespace formula

#endif
