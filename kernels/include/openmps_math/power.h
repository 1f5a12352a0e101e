// SPDX-License-Identifier: BSD-3-Clause
// sqrt, rsqrt, pow, powr and the inverse hyperbolic functions of float. Those that need a logarithm of
// more than float's precision compute it in double and round once at the end.
#pragma once

#include <openmps_math/logarithm.h>

OPENMPS_PRECISE_BEGIN
namespace openmps_math {

OPENMPS_INLINE float sqrt(float x) { return __builtin_elementwise_sqrt(x); }
OPENMPS_INLINE float rsqrt(float x) { return 1.0f / __builtin_elementwise_sqrt(x); }

// 2^f for |f| <= 1/2: 1 + f (c1 + ... + c7 f^6), 2^-34.3.
OPENMPS_INLINE double exp2_fraction(double f) {
  double q = double_from(0x3ef00f127ee52786ul);      // 1.531493756460431e-05
  q = q * f + double_from(0x3f2445e67c082014ul);     // 0.00015467108279687612
  q = q * f + double_from(0x3f55d872399a26d9ul);     // 0.0013333430746648638
  q = q * f + double_from(0x3f83b29f10177240ul);     // 0.009618036917282358
  q = q * f + double_from(0x3fac6b08df4a59b6ul);     // 0.05550410962785028
  q = q * f + double_from(0x3fcebfbe07ab4bfcul);     // 0.24022651075810575
  q = q * f + double_from(0x3fe62e42fef7b194ul);     // 0.6931471805415179
  return (double)1.0f + f * q;
}

// 2^t as float: over- and underflow happen in the one rounding at the end.
OPENMPS_INLINE float exp2_of_double(double t) {
  t = t > (double)130.0f ? (double)130.0f : t;
  t = t < (double)-160.0f ? (double)-160.0f : t;
  double sum = t + round_magic_double();
  double n = sum - round_magic_double();
  return (float)(exp2_fraction(t - n) * power_of_two_double(double_bits(sum)));
}

// |x|^y for x and y without NaN; |x| = 0, 1 and infinity are exact cases.
OPENMPS_INLINE float pow_magnitude(float a, float y) {
  float general = exp2_of_double((double)y * log2_double((double)a));
  float at_limits = (a == 0.0f) == (y < 0.0f) ? infinity() : 0.0f;
  float result = a == 0.0f || a == infinity() ? at_limits : general;
  return a == 1.0f || y == 0.0f ? 1.0f : result;
}

// IEEE 754 pow: pow(x, 0) = pow(1, y) = 1 even for NaN; a negative base needs an integral exponent, whose
// parity gives the sign; pow(-1, +-infinity) = 1.
OPENMPS_INLINE float pow(float x, float y) {
  float a = absolute(x), b = absolute(y);
  float below = b < 16777216.0f ? b : 0.0f;
  int whole = (int)below;
  bool integral = b >= 8388608.0f || (float)whole == b;
  bool odd = (float)whole == b && (whole & 1) != 0;
  float magnitude = pow_magnitude(a, y);
  bool negative = (float_bits(x) & 0x80000000u) != 0u;
  float result = negative && odd ? -magnitude : magnitude;
  result = x < 0.0f && !integral && a < infinity() ? quiet_nan() : result;
  result = is_nan(x) || is_nan(y) ? quiet_nan() : result;
  return x == 1.0f || y == 0.0f ? 1.0f : result;
}

// pow for x >= 0.
OPENMPS_INLINE float powr(float x, float y) {
  float result = pow_magnitude(absolute(x), y);
  return x < 0.0f || is_nan(x) || is_nan(y) ? quiet_nan() : result;
}

// asinh(a) = log(a + sqrt(a^2 + 1)) in double; below 2^-10, a - a^3/6 (next term 2^-43 relative).
OPENMPS_INLINE float asinh(float x) {
  float a = absolute(x);
  double d = (double)a;
  float large = (float)log_double(d + __builtin_elementwise_sqrt(d * d + (double)1.0f));
  float small = a - (a * a * a) * 0.16666667f;
  float result = a < 0.0009765625f ? small : large;
  return with_sign(a < infinity() ? result : a, x);
}

// acosh(x) = log(x + sqrt(x^2 - 1)) in double, where x^2 - 1 is exact enough: x^2 has 48 bits.
OPENMPS_INLINE float acosh(float x) {
  double d = (double)(x >= 1.0f ? x : 1.0f);
  float result = (float)log_double(d + __builtin_elementwise_sqrt(d * d - (double)1.0f));
  result = x == infinity() ? x : result;
  return x >= 1.0f ? result : quiet_nan();
}

// atanh(a) = log((1 + a) / (1 - a)) / 2 in double; below 2^-10, a + a^3/3 (next term 2^-42 relative).
OPENMPS_INLINE float atanh(float x) {
  float a = absolute(x);
  double d = (double)(a < 1.0f ? a : 0.5f), one = (double)1.0f;
  float large = (float)(log_double((one + d) / (one - d)) * (double)0.5f);
  float small = a + (a * a * a) * 0.33333333f;
  float result = a < 0.0009765625f ? small : large;
  result = a == 1.0f ? infinity() : result;
  return a <= 1.0f ? with_sign(result, x) : quiet_nan();
}

}  // namespace openmps_math
OPENMPS_PRECISE_END
