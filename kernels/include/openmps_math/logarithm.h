// SPDX-License-Identifier: BSD-3-Clause
// log, log2, log10, log1p of float in float arithmetic, and the double-precision logarithm on which pow
// and the inverse hyperbolic functions stand.
#pragma once

#include <openmps_math/bits.h>

OPENMPS_PRECISE_BEGIN
namespace openmps_math {

// x = 2^e (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)); for 0 < x < infinity.
struct split_float {
  float e;
  float f;
};

OPENMPS_INLINE split_float split_for_log(float x) {
  bool subnormal = x < 1.17549435e-38f;
  float y = subnormal ? x * 8388608.0f : x;
  u32 shifted = float_bits(y) - 0x3f3504f3u;  // sqrt(1/2)
  int e = ((int)shifted >> 23) - (subnormal ? 23 : 0);
  float m = float_from((shifted & 0x007fffffu) + 0x3f3504f3u);
  split_float result = {(float)e, m - 1.0f};
  return result;
}

// The part after f - f^2/2 in log(1 + f): f^3 (c3 + ... + c10 f^7).
// 2^-27.4 relative to log(1 + f) on [sqrt(1/2) - 1, sqrt(2) - 1].
OPENMPS_INLINE float log_tail(float f) {
  float q = -0.0763666f;
  q = q * f + 0.12762359f;
  q = q * f - 0.13159615f;
  q = q * f + 0.1420157f;
  q = q * f - 0.16623408f;
  q = q * f + 0.20001242f;
  q = q * f - 0.2500082f;
  q = q * f + 0.3333333f;
  return (f * (f * f)) * q;
}

// Values outside (0, infinity): log(0) = -infinity, log(negative) = NaN, log(infinity) = infinity, NaN stays.
OPENMPS_INLINE float log_special(float x, float result) {
  result = x == infinity() ? x : result;
  result = x == 0.0f ? -infinity() : result;
  result = x < 0.0f ? quiet_nan() : result;
  return is_nan(x) ? x : result;
}

// e ln2_high is exact (ln2_high has 16 bits), the small terms are added first.
OPENMPS_INLINE float log(float x) {
  const float ln2_high = 0.693145752f, ln2_low = 1.42860677e-06f;
  split_float s = split_for_log(x);
  float half_square = 0.5f * (s.f * s.f);
  float small = (log_tail(s.f) + s.e * ln2_low) - half_square;
  return log_special(x, s.e * ln2_high + (s.f + small));
}

// log(1 + f) as head + tail, head with 12 bits: products with a 12-bit constant are then exact.
struct split_log {
  float head;
  float tail;
};

OPENMPS_INLINE split_log log1p_split(float f) {
  float half_square = 0.5f * (f * f);
  float head = float_from(float_bits(f - half_square) & 0xfffff000u);
  float tail = ((f - head) - half_square) + log_tail(f);
  split_log result = {head, tail};
  return result;
}

// log2(x) = e + (head + tail) * (1/ln2), the constant as 12 bits + rest.
OPENMPS_INLINE float log2(float x) {
  const float high = 1.44287109f, low = -0.000176052854f;
  split_float s = split_for_log(x);
  split_log l = log1p_split(s.f);
  float small = (l.head + l.tail) * low + l.tail * high;
  float large = l.head * high;
  float sum = s.e + large;
  small = small + (large - (sum - s.e));
  return log_special(x, sum + small);
}

// log10(x) = e log10(2) + (head + tail) / ln10; log10(2)_high has 12 bits.
OPENMPS_INLINE float log10(float x) {
  const float high = 0.434326172f, low = -3.16899714e-05f;
  const float log10_2_high = 0.301025391f, log10_2_low = 4.60503907e-06f;
  split_float s = split_for_log(x);
  split_log l = log1p_split(s.f);
  float small = (s.e * log10_2_low + (l.head + l.tail) * low) + l.tail * high;
  float base = s.e * log10_2_high;
  float large = l.head * high;
  float sum = base + large;
  small = small + (large - (sum - base));
  return log_special(x, sum + small);
}

// log(1 + x): u = 1 + x rounded, its rounding error c enters as c / u. Where u needs no scaling, f = x itself.
OPENMPS_INLINE float log1p(float x) {
  const float ln2_high = 0.693145752f, ln2_low = 1.42860677e-06f;
  float u = 1.0f + x;
  split_float s = split_for_log(u);
  float lost = x < 1.0f ? x - (u - 1.0f) : 1.0f - (u - x);
  bool direct = s.e == 0.0f;
  float f = direct ? x : s.f;
  float correction = direct ? 0.0f : lost / u;
  float half_square = 0.5f * (f * f);
  float small = ((log_tail(f) + s.e * ln2_low) + correction) - half_square;
  float result = log_special(u, s.e * ln2_high + (f + small));
  return x == 0.0f ? x : result;
}

// v = 2^e m, m in [sqrt(1/2), sqrt(2)), for normal positive v; s = (m - 1) / (m + 1).
struct split_double {
  double e;
  double s;
};

OPENMPS_INLINE split_double split_for_log_double(double v) {
  const u64 sqrt_half = 0x3fe6a09e667f3bcdul;
  u64 shifted = double_bits(v) + (0x3ff0000000000000ul - sqrt_half);
  // The biased exponent as a double without a conversion: 2^52 + biased - (2^52 + 1023).
  double e = double_from(0x4330000000000000ul | (shifted >> 52)) - double_from(0x43300000000003fful);
  double m = double_from((shifted & 0x000ffffffffffffful) + sqrt_half);
  double one = (double)1.0f;
  split_double result = {e, (m - one) / (m + one)};
  return result;
}

// 2 atanh(s) = log((1 + s) / (1 - s)) = 2 s + s^3 (c3 + ... + c13 s^10): 2^-51 relative for |s| <= 0.17158.
OPENMPS_INLINE double log_of_ratio(double s) {
  double t = s * s;
  double q = double_from(0x3fc58756c095a940ul);      // 0.16819271472497554
  q = q * t + double_from(0x3fc732c55b3745baul);     // 0.1812369056120085
  q = q * t + double_from(0x3fcc72276772c4fbul);     // 0.2222337012404195
  q = q * t + double_from(0x3fd2492417adf198ul);     // 0.28571417152832046
  q = q * t + double_from(0x3fd999999a28e10bul);     // 0.40000000052124624
  q = q * t + double_from(0x3fe555555555397dul);     // 0.6666666666658753
  return (s + s) + (s * t) * q;
}

// Natural logarithm of a normal positive double, some 2^-50 absolute.
OPENMPS_INLINE double log_double(double v) {
  split_double d = split_for_log_double(v);
  return d.e * double_from(0x3fe62e42fefa39eful) + log_of_ratio(d.s);  // ln 2 = 0.6931471805599453
}

OPENMPS_INLINE double log2_double(double v) {
  split_double d = split_for_log_double(v);
  return d.e + log_of_ratio(d.s) * double_from(0x3ff71547652b82feul);  // 1 / ln 2 = 1.4426950408889634
}

}  // namespace openmps_math
OPENMPS_PRECISE_END
