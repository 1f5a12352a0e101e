// SPDX-License-Identifier: BSD-3-Clause
// Rounding, decomposition and remainder of float, and the correctly rounded fused multiply-add.
// Where the instruction set has the operation it is used; the plain code gives the same bits.
#pragma once

#include <openmps_math/bits.h>

#if defined(__SSE4_1__) || defined(__aarch64__) || defined(__NVPTX__)
#define OPENMPS_HAS_ROUNDING 1
#else
#define OPENMPS_HAS_ROUNDING 0
#endif
#if defined(__FMA__) || defined(__aarch64__) || defined(__NVPTX__)
#define OPENMPS_HAS_FMA 1
#else
#define OPENMPS_HAS_FMA 0
#endif

OPENMPS_PRECISE_BEGIN
namespace openmps_math {

#if OPENMPS_HAS_ROUNDING
OPENMPS_INLINE float trunc(float x) { return __builtin_elementwise_trunc(x); }
OPENMPS_INLINE float floor(float x) { return __builtin_elementwise_floor(x); }
OPENMPS_INLINE float ceil(float x) { return __builtin_elementwise_ceil(x); }
OPENMPS_INLINE float rint(float x) { return __builtin_elementwise_roundeven(x); }
#else
// From 2^23 on every float is an integer; NaN and infinity stay too.
OPENMPS_INLINE float trunc(float x) {
  float a = absolute(x);
  bool fractional = a < 8388608.0f;
  return fractional ? with_sign((float)(int)(fractional ? a : 0.0f), x) : x;
}
OPENMPS_INLINE float floor(float x) {
  float t = trunc(x);
  return t > x ? t - 1.0f : t;
}
OPENMPS_INLINE float ceil(float x) {
  float t = trunc(x);
  return t < x ? t + 1.0f : t;
}
OPENMPS_INLINE float rint(float x) {
  float a = absolute(x);
  return a < 8388608.0f ? with_sign((a + 8388608.0f) - 8388608.0f, x) : x;
}
#endif

// Ties away from zero.
OPENMPS_INLINE float round(float x) {
  float t = trunc(x);
  return absolute(x - t) >= 0.5f ? t + with_sign(1.0f, x) : t;
}

// Fractional part in [0, 1).
OPENMPS_INLINE float fract(float x) {
  float f = x - floor(x);
  return f >= 1.0f ? 0.99999994f : f;
}

// The fraction keeps the sign; modf(infinity) = 0 with integral part infinity.
OPENMPS_INLINE float modf(float x, float& integral) {
  float t = trunc(x);
  integral = t;
  return with_sign(absolute(x) == infinity() ? 0.0f : x - t, x);
}

// x = mantissa * 2^exponent, mantissa in [0.5, 1); zero, infinity and NaN come back with exponent 0.
OPENMPS_INLINE float frexp(float x, int& exponent) {
  float a = absolute(x);
  bool subnormal = a < 1.17549435e-38f;
  u32 bits = float_bits(subnormal ? x * 8388608.0f : x);
  bool plain = a > 0.0f && a < infinity();
  int e = (int)((bits >> 23) & 255u) - 126 - (subnormal ? 23 : 0);
  exponent = plain ? e : 0;
  return plain ? float_from((bits & 0x807fffffu) | 0x3f000000u) : x;
}

// In double the product is exact, so the result is rounded once, also where it is subnormal.
OPENMPS_INLINE float ldexp(float x, int k) {
  k = k > 400 ? 400 : k;
  k = k < -400 ? -400 : k;
  return (float)((double)x * double_from((u64)(u32)(k + 1023) << 52));
}

OPENMPS_INLINE int ilogb(float x) {
  float a = absolute(x);
  bool subnormal = a < 1.17549435e-38f;
  int e = (int)(float_bits(subnormal ? a * 8388608.0f : a) >> 23) - 127 - (subnormal ? 23 : 0);
  e = a == infinity() ? 0x7fffffff : e;
  return a > 0.0f ? e : -0x7fffffff - 1;  // zero and NaN
}

OPENMPS_INLINE float nextafter(float x, float y) {
  u32 bits = float_bits(x);
  bool away = (x < y) == (x > 0.0f);
  float next = float_from(away ? bits + 1u : bits - 1u);
  next = x == 0.0f ? with_sign(float_from(1u), y) : next;
  next = x == y ? y : next;
  return is_nan(x) ? x : is_nan(y) ? y : next;
}

#if OPENMPS_HAS_FMA
OPENMPS_INLINE float fma(float a, float b, float c) { return __builtin_elementwise_fma(a, b, c); }
#else
// The product is exact in double. The sum is rounded to odd (the error of the sum tells whether it was
// exact), and 53 >= 2 * 24 + 2 bits rounded to odd give the right float in the end.
OPENMPS_INLINE float fma(float a, float b, float c) {
  double p = (double)a * (double)b;
  double addend = (double)c;
  double s = p + addend;
  double part = s - p;
  double error = (p - (s - part)) + (addend - part);
  u64 bits = double_bits(s);
  bool inexact = error != (double)0.0f && (bits & 0x7ff0000000000000ul) != 0x7ff0000000000000ul;
  bool grows = (error > (double)0.0f) == (s > (double)0.0f);
  u64 odd = grows ? bits + 1ul : bits - 1ul;
  return (float)double_from(inexact && (bits & 1ul) == 0ul ? odd : bits);
}
#endif

// One step of fmod: r minus the nearest multiple of y 2^shift, exact since the quotient has 29 bits at most.
OPENMPS_INLINE double fmod_step(double r, double y, double inverse, int shift) {
  double up = double_from((u64)(1023 + shift) << 52), down = double_from((u64)(1023 - shift) << 52);
  double quotient = round_small_double(r * (inverse * down));
  return r - quotient * (y * up);
}

// Exact for all x and y: the quotient has up to 277 bits, each step takes 28 of them.
OPENMPS_INLINE float fmod(float x, float y) {
  double a = (double)absolute(x), b = (double)absolute(y);
  double inverse = (double)1.0f / b;
  double r = fmod_step(a, b, inverse, 252);
  r = fmod_step(r, b, inverse, 224);
  r = fmod_step(r, b, inverse, 196);
  r = fmod_step(r, b, inverse, 168);
  r = fmod_step(r, b, inverse, 140);
  r = fmod_step(r, b, inverse, 112);
  r = fmod_step(r, b, inverse, 84);
  r = fmod_step(r, b, inverse, 56);
  r = fmod_step(r, b, inverse, 28);
  r = fmod_step(r, b, inverse, 0);
  r = r < (double)0.0f ? r + b : r;
  float result = with_sign((float)r, x);
  bool finite = absolute(x) < infinity();
  result = absolute(y) == infinity() && finite ? x : result;
  return finite && absolute(y) > 0.0f ? result : quiet_nan();
}

}  // namespace openmps_math
OPENMPS_PRECISE_END
