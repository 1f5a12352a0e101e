// SPDX-License-Identifier: BSD-3-Clause
// exp, exp2, exp10, expm1, sinh, cosh, tanh of float, in float arithmetic only.
// Coefficients: tests/metal/fit_polynomials.py; each comment gives interval and error of the polynomial,
// the measured error of the function is in tests/metal/test_metal_stdlib.py.
#pragma once

#include <openmps_math/bits.h>

OPENMPS_PRECISE_BEGIN
namespace openmps_math {

// exp(x) = p * 2^n with p in [0.7, 1.42].
struct scaled_exponential {
  float p;
  int n;
};

// x = n ln2 + r, |r| <= ln2/2. ln2_high has 16 bits, so n * ln2_high and its difference from x are exact.
// exp(r) = 1 + r + r^2 (c2 + ... + c6 r^4): 2^-28.2 on [-0.34675, 0.34675].
OPENMPS_INLINE scaled_exponential exp_parts(float x) {
  const float log2_e = 1.44269502f, ln2_high = 0.693145752f, ln2_low = 1.42860677e-06f;
  float sum = x * log2_e + round_magic;
  float n = sum - round_magic;
  float r = (x - n * ln2_high) - n * ln2_low;
  float q = 0.0013939361f;
  q = q * r + 0.008368827f;
  q = q * r + 0.041666415f;
  q = q * r + 0.1666652f;
  q = q * r + 0.5f;
  scaled_exponential result = {1.0f + (r + (r * r) * q), magic_to_int(sum)};
  return result;
}

// NaN passes through the clamps; exp(89) overflows, exp(-104) rounds to 0.
OPENMPS_INLINE float exp(float x) {
  x = x > 89.0f ? 89.0f : x;
  x = x < -104.0f ? -104.0f : x;
  scaled_exponential e = exp_parts(x);
  return scale(e.p, e.n);
}

// 2^r = 1 + r (c1 + ... + c6 r^5): 2^-28.3 on [-0.5, 0.5].
OPENMPS_INLINE float exp2(float x) {
  x = x > 129.0f ? 129.0f : x;
  x = x < -151.0f ? -151.0f : x;
  float sum = x + round_magic;
  float r = x - (sum - round_magic);
  float q = 0.0001546289f;
  q = q * r + 0.0013391f;
  q = q * r + 0.0096180625f;
  q = q * r + 0.055503596f;
  q = q * r + 0.2402265f;
  q = q * r + 0.6931472f;
  return scale(1.0f + r * q, magic_to_int(sum));
}

// x = n log10(2) + r; log10(2)_high has 12 bits, so n * high is exact.
// 10^r = 1 + r (c1 + ... + c7 r^6): 2^-30.3 on [-0.15059, 0.15059].
OPENMPS_INLINE float exp10(float x) {
  const float log2_10 = 3.32192802f, high = 0.301025391f, low = 4.60503907e-06f;
  x = x > 39.0f ? 39.0f : x;
  x = x < -46.0f ? -46.0f : x;
  float sum = x * log2_10 + round_magic;
  float n = sum - round_magic;
  float r = (x - n * high) - n * low;
  float q = 0.04637661f;
  q = q * r + 0.20726654f;
  q = q * r + 0.5402939f;
  q = q * r + 1.1712601f;
  q = q * r + 2.0346677f;
  q = q * r + 2.650949f;
  q = q * r + 2.3025851f;
  return scale(1.0f + r * q, magic_to_int(sum));
}

// expm1(x) = 2^n expm1(r) + (2^n - 1).
// expm1(r) = r + r^2 (1/2 + c3 r + ... + c7 r^5): 2^-31.1 relative on [-0.34675, 0.34675].
OPENMPS_INLINE float expm1(float x) {
  const float log2_e = 1.44269502f, ln2_high = 0.693145752f, ln2_low = 1.42860677e-06f;
  float y = x > 89.0f ? 89.0f : x;
  y = y < -20.0f ? -20.0f : y;
  float sum = y * log2_e + round_magic;
  float n = sum - round_magic;
  float r = (y - n * ln2_high) - n * ln2_low;
  float q = 0.00019761814f;
  q = q * r + 0.0013932324f;
  q = q * r + 0.008333546f;
  q = q * r + 0.041666493f;
  q = q * r + 0.16666666f;
  q = q * r + 0.5f;
  float p = r + (r * r) * q;
  int k = magic_to_int(sum) - 1;  // one less, so that n = 128 stays in range
  float power = power_of_two(k);
  float result = 2.0f * (power * p + (power - 0.5f));
  result = k == -1 ? p : result;  // n = 0: subnormal results must not be halved on the way
  return x == 0.0f ? x : result;
}

// |x| < 1: x + x^3 (c3 + c5 x^2 + c7 x^4 + c9 x^6), 2^-31.6 relative. Else (e - 1/e) / 2 with e/2 = p 2^(n-1).
OPENMPS_INLINE float sinh(float x) {
  float a = absolute(x);
  float t = a * a;
  float small = 2.7822132e-06f;
  small = small * t + 0.00019842896f;
  small = small * t + 0.0083333105f;
  small = small * t + 0.16666667f;
  small = a + (a * t) * small;
  float clamped = a > 90.0f ? 90.0f : a;
  scaled_exponential e = exp_parts(clamped);
  float half_exp = scale(e.p, e.n - 1);
  float large = half_exp - 0.25f / half_exp;
  return with_sign(a < 1.0f ? small : large, x);
}

OPENMPS_INLINE float cosh(float x) {
  float a = absolute(x);
  a = a > 90.0f ? 90.0f : a;
  scaled_exponential e = exp_parts(a);
  float half_exp = scale(e.p, e.n - 1);
  return half_exp + 0.25f / half_exp;
}

// |x| < 0.625: x + x^3 (c3 + ... + c13 x^10), 2^-32.4 relative. Else 1 - 2 / (exp(2x) + 1).
OPENMPS_INLINE float tanh(float x) {
  float a = absolute(x);
  float t = a * a;
  float small = 0.002152684f;
  small = small * t - 0.0081900135f;
  small = small * t + 0.021706894f;
  small = small * t - 0.05394818f;
  small = small * t + 0.13333221f;
  small = small * t - 0.3333333f;
  small = a + (a * t) * small;
  float doubled = a > 10.0f ? 20.0f : a + a;
  scaled_exponential e = exp_parts(doubled);
  float large = 1.0f - 2.0f / (e.p * power_of_two(e.n) + 1.0f);
  return with_sign(a < 0.625f ? small : large, x);
}

}  // namespace openmps_math
OPENMPS_PRECISE_END
