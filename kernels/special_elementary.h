// SPDX-License-Identifier: BSD-3-Clause
//
// special_elementary: exponentials and logarithms near 1, and the error functions; Metal's library has none of them. Polynomials are
// near-minimax fits (errors below 1e-8 relative) of the functions named beside them.
#ifndef OPENMPS_KERNELS_SPECIAL_ELEMENTARY_H
#define OPENMPS_KERNELS_SPECIAL_ELEMENTARY_H

#include <metal_stdlib>

namespace special {

inline float infinity() { return as_type<float>(0x7f800000u); }
inline float not_a_number() { return as_type<float>(0x7fc00000u); }

// e^x - 1: x = k ln 2 + r, then 2^k (e^r - 1) + (2^k - 1), where 2^k is halved so that k = 128 does not overflow.
METAL_FUNC float expm1(float x) {
  float bounded = x > 88.8f ? 88.8f : x < -20.0f ? -20.0f : x;
  float k = metal::rint(bounded * 1.44269504f);
  float r = (bounded - k * 0.693145752f) - k * 1.42860677e-6f;
  float p = 0.000198578069f;
  p = p * r + 0.001393363f;
  p = p * r + 0.00833336078f;
  p = p * r + 0.0416664667f;
  p = p * r + 0.166666672f;
  p = p * r + 0.5f;
  p = p * (r * r) + r;
  float half_scale = as_type<float>(uint(int(k) + 126) << 23);
  float result = ((half_scale * p) + (half_scale - 0.5f)) * 2.0f;
  result = k == 0.0f ? p : result;
  result = x > 88.8f ? infinity() : result;
  return x != x || x == 0.0f ? x : result;
}

// log(1 + x): the logarithm of the rounded sum, plus what the rounding lost.
METAL_FUNC float log1p(float x) {
  float sum = 1.0f + x;
  float lost = x - (sum - 1.0f);
  float result = metal::log(sum) + lost / sum;
  result = x == infinity() || x == 0.0f ? x : result;
  return x == -1.0f ? -infinity() : result;
}

// erf: an odd polynomial below 0.96, then 1 - exp(-g) with g = -log(erfc).
METAL_FUNC float erf(float x) {
  float a = metal::fabs(x), z = x * x;
  float s = 8.11905047e-05f;
  s = metal::fma(s, z, -0.000808097422f);
  s = metal::fma(s, z, 0.00519537274f);
  s = metal::fma(s, z, -0.0268570222f);
  s = metal::fma(s, z, 0.11283651f);
  s = metal::fma(s, z, -0.376126319f);
  s = metal::fma(x, metal::fma(s, z, 0.128379226f), x);
  float t = a > 4.0f ? 4.0f : a;
  float g = 2.08286219e-05f;
  g = metal::fma(g, t, -0.000431393593f);
  g = metal::fma(g, t, 0.00415625516f);
  g = metal::fma(g, t, -0.0250806175f);
  g = metal::fma(g, t, 0.108220384f);
  g = metal::fma(g, t, 0.633400857f);
  g = metal::fma(g, t, 1.12948835f);
  g = metal::fma(g, t, -0.000169205174f);
  float large = metal::copysign(1.0f - metal::exp(-g), x);
  return a < 0.96f || x != x ? s : large;
}

// exp(x^2) erfc(x) for x >= 0: (1 + 2x) erfcx(x) is smooth in q = (x - 2.5) / (x + 2.5) on [-1, 1] (after Shepherd and Laframboise,
// Mathematics of Computation 36, 1981).
METAL_FUNC float erfcx_positive(float x) {
  float q = (x - 2.5f) / (x + 2.5f);
  q = x == infinity() ? 1.0f : q;
  float p = -5.97098915e-05f;
  p = p * q - 6.43621606e-05f;
  p = p * q + 0.000569735887f;
  p = p * q + 0.000464447687f;
  p = p * q - 0.00434454996f;
  p = p * q + 0.000945788925f;
  p = p * q + 0.0327494852f;
  p = p * q - 0.10297019f;
  p = p * q + 0.157631442f;
  p = p * q - 0.0990242884f;
  p = p * q - 0.122356825f;
  p = p * q + 1.26483822f;
  return (0.5f * p) / (0.5f + x);
}

// exp(sign x^2) with the square split into an exact part and a rest.
METAL_FUNC float exp_square(float x, float sign) {
  float high = as_type<float>(as_type<uint>(x) & 0xfffff000u);
  float rest = (x - high) * (x + high);
  float result = metal::exp(sign * (high * high)) * metal::exp(sign * rest);
  return x == infinity() ? (sign > 0.0f ? x : 0.0f) : result;
}

METAL_FUNC float erfc(float x) {
  float a = metal::fabs(x);
  float tail = exp_square(a > 12.0f ? 12.0f : a, -1.0f) * erfcx_positive(a);
  float result = x < 0.0f ? 2.0f - tail : tail;
  return a < 0.5f || x != x ? 1.0f - erf(x) : result;
}

METAL_FUNC float erfcx(float x) {
  float a = metal::fabs(x);
  float positive = erfcx_positive(a);
  float negative = 2.0f * exp_square(a > 12.0f ? 12.0f : a, 1.0f) - positive;
  float result = x < 0.0f ? negative : positive;
  return x != x ? x : result;
}

// erfinv(x) / x as a function of w = -log(1 - x^2), beyond w = 5 of its root (after Giles, GPU Computing Gems, 2011).
METAL_FUNC float erfinv_ratio(float w) {
  float p = -8.79105677e-09f;
  p = p * w + 2.21031414e-07f;
  p = p * w - 1.97647e-06f;
  p = p * w + 3.98328302e-06f;
  p = p * w + 4.45650767e-05f;
  p = p * w - 0.000127481399f;
  p = p * w - 0.00233429647f;
  p = p * w + 0.0115486542f;
  p = p * w + 0.232013822f;
  p = p * w + 0.886226892f;
  float s = metal::sqrt(w) - 3.2f;
  float q = -0.00018762883f;
  q = q * s - 0.000196655325f;
  q = q * s + 0.00126195245f;
  q = q * s - 0.00208144123f;
  q = q * s + 0.00287816604f;
  q = q * s - 0.00427626632f;
  q = q * s + 0.00598285394f;
  q = q * s + 1.00469148f;
  q = q * s + 3.03363633f;
  return w < 5.0f ? p : q;
}

METAL_FUNC float erfinv(float x) {
  float result = erfinv_ratio(-metal::log((1.0f - x) * (1.0f + x))) * x;
  float a = metal::fabs(x);
  result = a == 1.0f ? metal::copysign(infinity(), x) : result;
  return a <= 1.0f ? result : not_a_number();
}

// The normal distribution's quantile: sqrt(2) erfinv(2p - 1), where w comes from p itself and may reach 100.
METAL_FUNC float ndtri(float p) {
  float w = -metal::log(4.0f * p) - log1p(-p);
  float s = metal::sqrt(w) - 7.0f;
  float far = -9.07226863e-08f;
  far = far * s + 5.59302464e-07f;
  far = far * s - 1.3095223e-06f;
  far = far * s + 4.34738422e-06f;
  far = far * s + 5.17639046e-06f;
  far = far * s - 0.000509051722f;
  far = far * s + 1.0085969f;
  far = far * s + 6.86901855f;
  float ratio = w > 16.0f ? far : erfinv_ratio(w > 0.0f ? w : 0.0f);
  float result = 2.82842712f * ratio * (p - 0.5f);
  result = p == 0.0f ? -infinity() : p == 1.0f ? infinity() : result;
  return p >= 0.0f && p <= 1.0f ? result : not_a_number();
}

// log of the normal distribution: by erfcx where the distribution itself would vanish.
METAL_FUNC float log_ndtr(float x) {
  float t = x * 0.707106781f;
  float low = metal::log(0.5f * erfcx_positive(x < -1.0f ? -t : 1.0f)) - t * t;
  float high = log1p(-0.5f * erfc(t));
  return x < -1.0f ? low : high;
}

}  // namespace special

#endif
