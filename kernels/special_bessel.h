// SPDX-License-Identifier: BSD-3-Clause
//
// special_bessel: Bessel functions of orders 0 and 1. Small arguments: polynomials in x^2 (with the first zero as a factor, with the
// logarithm of the second kind taken out); large ones: the asymptotic forms of DLMF 10.17 and 10.40 with fitted amplitudes.
#ifndef OPENMPS_KERNELS_SPECIAL_BESSEL_H
#define OPENMPS_KERNELS_SPECIAL_BESSEL_H

#include "special_elementary.h"

namespace special {

// sqrt(2 / (pi x)) (P cos(x - phase) - Q sin(x - phase)), phase = pi/4 or 3pi/4, and with sine and cosine exchanged for the second kind.
struct bessel_wave {
  float p, q, amplitude, cosine, sine; // of the shifted angle
};

METAL_FUNC bessel_wave bessel_wave_0(float x) {
  float r = 5.0f / x, u = r * r;
  bessel_wave w;
  w.p = 1.0f + u * (-0.00281246612f + u * (0.000178995251f + u * (-3.43620486e-05f + u * (9.6613021e-06f - u * 1.84267469e-06f))));
  w.q = r * (-0.0250000004f + u * (0.000585907314f + u * (-7.22687473e-05f + u * (2.00030718e-05f + u * (-6.78980041e-06f + u * 1.41093733e-06f)))));
  w.amplitude = 0.797884561f * metal::rsqrt(x);
  float c = metal::cos(x), s = metal::sin(x);
  w.cosine = (c + s) * 0.707106781f;
  w.sine = (s - c) * 0.707106781f;
  return w;
}

METAL_FUNC bessel_wave bessel_wave_1(float x) {
  float r = 5.0f / x, u = r * r;
  bessel_wave w;
  w.p = 1.0f + u * (0.00468746247f + u * (-0.00023021434f + u * (4.07717962e-05f + u * (-1.1105325e-05f + u * 2.0921691e-06f))));
  w.q = r * (0.075000003f + u * (-0.00082027918f + u * (8.83767643e-05f + u * (-2.31905742e-05f + u * (7.69924191e-06f - u * 1.58580622e-06f)))));
  w.amplitude = 0.797884561f * metal::rsqrt(x);
  float c = metal::cos(x), s = metal::sin(x);
  w.cosine = (s - c) * 0.707106781f;
  w.sine = -(c + s) * 0.707106781f;
  return w;
}

// z = x^2 <= 25. The zero's square is subtracted in two parts.
METAL_FUNC float j0_small(float z) {
  float p = -2.10343725e-17f;
  p = p * z + 8.85625378e-15f;
  p = p * z - 2.33960811e-12f;
  p = p * z + 4.57203331e-10f;
  p = p * z - 6.51702834e-08f;
  p = p * z + 6.40477447e-06f;
  p = p * z - 0.000396987714f;
  p = p * z + 0.0133291464f;
  p = p * z - 0.172915071f;
  return p * ((z - 5.783186f) - 4.0845e-09f);
}

METAL_FUNC float j1_small_over_x(float z) {
  float p = -1.06996495e-18f;
  p = p * z + 4.85239447e-16f;
  p = p * z - 1.42412747e-13f;
  p = p * z + 3.15360515e-11f;
  p = p * z - 5.18824006e-09f;
  p = p * z + 6.01993634e-07f;
  p = p * z - 4.5415014e-05f;
  p = p * z + 0.00193738472f;
  p = p * z - 0.0340553746f;
  return p * ((z - 14.681971f) - 4.5810e-08f);
}

METAL_FUNC float bessel_j0(float x) {
  float a = metal::fabs(x);
  bessel_wave w = bessel_wave_0(a > 5.0f ? a : 5.0f);
  float large = w.amplitude * (w.p * w.cosine - w.q * w.sine);
  float result = a <= 5.0f ? j0_small(x * x) : large;
  result = a == infinity() ? 0.0f : result;
  return x != x ? x : result;
}

METAL_FUNC float bessel_j1(float x) {
  float a = metal::fabs(x);
  bessel_wave w = bessel_wave_1(a > 5.0f ? a : 5.0f);
  float large = w.amplitude * (w.p * w.cosine - w.q * w.sine);
  float result = a <= 5.0f ? j1_small_over_x(x * x) * x : (x < 0.0f ? -large : large);
  result = a == infinity() ? 0.0f : result;
  return x != x ? x : result;
}

METAL_FUNC float bessel_y0(float x) {
  float z = x * x;
  float p = -1.17646295e-14f;
  p = p * z + 3.91540446e-12f;
  p = p * z - 7.63716479e-10f;
  p = p * z + 1.03503957e-07f;
  p = p * z - 9.49431524e-06f;
  p = p * z + 0.000538599328f;
  p = p * z - 0.0160739608f;
  p = p * z + 0.177606016f;
  p = p * z - 0.0738042966f;
  float small = p + 0.636619772f * metal::log(x) * j0_small(z);
  bessel_wave w = bessel_wave_0(x > 5.0f ? x : 5.0f);
  float large = w.amplitude * (w.p * w.sine + w.q * w.cosine);
  float result = x <= 5.0f ? small : large;
  result = x == infinity() ? 0.0f : result;
  result = x == 0.0f ? -infinity() : result;
  return x < 0.0f || x != x ? not_a_number() : result;
}

METAL_FUNC float bessel_y1(float x) {
  float z = x * x;
  float p = -6.92307239e-16f;
  p = p * z + 2.53099354e-13f;
  p = p * z - 5.61889979e-11f;
  p = p * z + 8.92766305e-09f;
  p = p * z - 9.92637979e-07f;
  p = p * z + 7.16425129e-05f;
  p = p * z - 0.00295530492f;
  p = p * z + 0.0543486886f;
  p = p * z - 0.196057096f;
  float small = p * x + 0.636619772f * (metal::log(x) * j1_small_over_x(z) * x - 1.0f / x);
  bessel_wave w = bessel_wave_1(x > 5.0f ? x : 5.0f);
  float large = w.amplitude * (w.p * w.sine + w.q * w.cosine);
  float result = x <= 5.0f ? small : large;
  result = x == infinity() ? 0.0f : result;
  result = x == 0.0f ? -infinity() : result;
  return x < 0.0f || x != x ? not_a_number() : result;
}

// I0 and I1 / x for z = x^2 <= 64: all coefficients are positive.
METAL_FUNC float i0_small(float z) {
  float p = 1.35663798e-19f;
  p = p * z + 1.99133906e-17f;
  p = p * z + 1.00695633e-14f;
  p = p * z + 2.37213873e-12f;
  p = p * z + 4.71799877e-10f;
  p = p * z + 6.7802354e-08f;
  p = p * z + 6.78183051e-06f;
  p = p * z + 0.000434026966f;
  p = p * z + 0.0156250019f;
  p = p * z + 0.25f;
  return p * z + 1.0f;
}

METAL_FUNC float i1_small_over_x(float z) {
  float p = 2.75044357e-18f;
  p = p * z + 3.50455541e-16f;
  p = p * z + 1.61782263e-13f;
  p = p * z + 3.31828315e-11f;
  p = p * z + 5.6621059e-09f;
  p = p * z + 6.78021593e-07f;
  p = p * z + 5.42545749e-05f;
  p = p * z + 0.00260416279f;
  p = p * z + 0.0625000075f;
  return p * z + 0.5f;
}

// sqrt(x) e^-x I(x) for x >= 8, in t = 16/x - 1.
METAL_FUNC float i0_large(float x) {
  float t = 16.0f / x - 1.0f;
  return 0.402176499f + t * (0.00336055807f + t * (0.000136156523f + t * (1.1102883e-05f + t * (1.63862728e-06f + t * 3.69994154e-07f))));
}

METAL_FUNC float i1_large(float x) {
  float t = 16.0f / x - 1.0f;
  return 0.389398456f - t * (0.00974958483f + t * (0.000219168753f + t * (1.49908847e-05f + t * (2.00911563e-06f + t * 4.31415117e-07f))));
}

METAL_FUNC float i0e(float x) {
  float a = metal::fabs(x);
  float small = metal::exp(-a) * i0_small(a < 8.0f ? x * x : 64.0f);
  float large = i0_large(a > 8.0f ? a : 8.0f) * metal::rsqrt(a);
  return a <= 8.0f || x != x ? (x != x ? x : small) : large;
}

METAL_FUNC float i1e(float x) {
  float a = metal::fabs(x);
  float small = metal::exp(-a) * i1_small_over_x(a < 8.0f ? x * x : 64.0f) * x;
  float large = metal::copysign(i1_large(a > 8.0f ? a : 8.0f) * metal::rsqrt(a), x);
  return a <= 8.0f || x != x ? (x != x ? x : small) : large;
}

METAL_FUNC float i0(float x) {
  float a = metal::fabs(x);
  float e = metal::exp(0.5f * a);
  float large = (e * (i0_large(a > 8.0f ? a : 8.0f) * metal::rsqrt(a))) * e;
  large = a == infinity() ? a : large;
  return a <= 8.0f || x != x ? (x != x ? x : i0_small(x * x)) : large;
}

METAL_FUNC float i1(float x) {
  float a = metal::fabs(x);
  float e = metal::exp(0.5f * a);
  float large = (e * (i1_large(a > 8.0f ? a : 8.0f) * metal::rsqrt(a))) * e;
  large = metal::copysign(a == infinity() ? a : large, x);
  return a <= 8.0f || x != x ? (x != x ? x : i1_small_over_x(x * x) * x) : large;
}

// sqrt(x) e^x K(x) for x >= 1, in t = 2/x - 1.
METAL_FUNC float k0_large(float x) {
  float t = 2.0f / x - 1.0f;
  float p = -1.6655802e-05f;
  p = p * t + 2.85129045e-05f;
  p = p * t - 1.84455439e-05f;
  p = p * t + 6.12191798e-05f;
  p = p * t - 0.000204464421f;
  p = p * t + 0.000575038895f;
  p = p * t - 0.00190685713f;
  p = p * t + 0.00806661975f;
  p = p * t - 0.0522791035f;
  p = p * t + 1.19015718f;
  return p;
}

METAL_FUNC float k1_large(float x) {
  float t = 2.0f / x - 1.0f;
  float p = 2.14048614e-05f;
  p = p * t - 3.53883552e-05f;
  p = p * t + 2.31355189e-05f;
  p = p * t - 8.45350951e-05f;
  p = p * t + 0.000286418159f;
  p = p * t - 0.000851233897f;
  p = p * t + 0.00310966326f;
  p = p * t - 0.0158519633f;
  p = p * t + 0.187979057f;
  p = p * t + 1.46155691f;
  return p;
}

METAL_FUNC float k0_small(float x) {
  float z = x * x;
  float p = 1.15224985e-07f + z * 9.59008095e-10f;
  p = p * z + 1.02155218e-05f;
  p = p * z + 0.000545187446f;
  p = p * z + 0.014418507f;
  p = p * z + 0.105696082f;
  p = p * z - 0.577215672f;
  float i = 7.34874703e-08f;
  i = i * z + 6.75692036e-06f;
  i = i * z + 0.000434076763f;
  i = i * z + 0.0156249572f;
  i = i * z + 0.25f;
  i = i * z + 1.0f;
  return p - (metal::log(x) - 0.693147181f) * i;
}

METAL_FUNC float k1_small(float x) {
  float z = x * x;
  float p = -1.08343397e-06f - z * 1.11063398e-08f;
  p = p * z - 7.49470855e-05f;
  p = p * z - 0.00283708726f;
  p = p * z - 0.0420490392f;
  p = p * z + 0.0386078358f;
  p = p * z + 1.0f;
  float i = 6.06089712e-09f;
  i = i * z + 6.7634852e-07f;
  i = i * z + 5.42571579e-05f;
  i = i * z + 0.00260416325f;
  i = i * z + 0.0625f;
  i = i * z + 0.5f;
  return (metal::log(x) - 0.693147181f) * (i * x) + p / x;
}

METAL_FUNC float of_second_kind(float x, float small, float large) {
  float result = x <= 1.0f ? small : large;
  result = x == 0.0f ? infinity() : result;
  result = x == infinity() ? 0.0f : result;
  return x < 0.0f || x != x ? not_a_number() : result;
}

METAL_FUNC float k0(float x) { return of_second_kind(x, k0_small(x), metal::exp(-x) * (k0_large(x > 1.0f ? x : 1.0f) * metal::rsqrt(x))); }
METAL_FUNC float k1(float x) { return of_second_kind(x, k1_small(x), metal::exp(-x) * (k1_large(x > 1.0f ? x : 1.0f) * metal::rsqrt(x))); }
METAL_FUNC float k0e(float x) { return of_second_kind(x, metal::exp(x) * k0_small(x), k0_large(x > 1.0f ? x : 1.0f) * metal::rsqrt(x)); }
METAL_FUNC float k1e(float x) { return of_second_kind(x, metal::exp(x) * k1_small(x), k1_large(x > 1.0f ? x : 1.0f) * metal::rsqrt(x)); }

// sin(x) / x.
METAL_FUNC float spherical_j0(float x) {
  float z = x * x;
  float series = 1.0f - z * (0.166666667f - z * (0.00833333333f - z * (0.000198412698f - z * 2.75573192e-06f)));
  float result = metal::fabs(x) < 0.5f ? series : metal::sin(x) / x;
  return metal::fabs(x) == infinity() ? 0.0f : result;
}

}  // namespace special

#endif
