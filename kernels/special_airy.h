// SPDX-License-Identifier: BSD-3-Clause
//
// special_airy: Airy's function Ai. Polynomials between -3 and 2.1 (times an exponential above 0), DLMF 9.7.5 and 9.7.9 with fitted
// amplitudes outside. The phase 2/3 |x|^1.5 is kept in two floats: its exponential and its sine need more digits than one has.
#ifndef OPENMPS_KERNELS_SPECIAL_AIRY_H
#define OPENMPS_KERNELS_SPECIAL_AIRY_H

#include "special_elementary.h"

namespace special {

struct airy_phase {
  float high, low;
};

METAL_FUNC airy_phase airy_phase_of(float a) {
  float root = metal::sqrt(a), root_low = metal::fma(-root, root, a) / (root + root);
  float cube = a * root, cube_low = metal::fma(a, root, -cube) + a * root_low;
  airy_phase phase;
  phase.high = 0.666666687f * cube;
  phase.low = metal::fma(0.666666687f, cube, -phase.high) + (0.666666687f * cube_low - 1.98682151e-08f * cube);
  return phase;
}

// a >= 2.1: e^-phase F(1 / phase) / (2 sqrt(pi) a^(1/4)).
METAL_FUNC float airy_ai_decaying(float a) {
  airy_phase phase = airy_phase_of(a);
  float t = 1.0f / phase.high - 0.251347894f;
  float f = 0.0149139427f;
  f = f * t - 0.0121294465f;
  f = f * t + 0.0103321187f;
  f = f * t - 0.0127242208f;
  f = f * t + 0.0206191875f;
  f = f * t - 0.0556737669f;
  f = f * t + 0.984444618f;
  return metal::exp(-phase.high) * (f * (0.282094792f * metal::rsqrt(metal::sqrt(a))) * (1.0f - phase.low));
}

// Ai(-a), a >= 3: (P cos(phase - pi/4) + Q sin(phase - pi/4)) / (sqrt(pi) a^(1/4)).
METAL_FUNC float airy_ai_wave(float a) {
  airy_phase phase = airy_phase_of(a);
  float t = 1.0f / phase.high, u = t * t;
  float p = 1.0f + u * (-0.0371150859f + u * (0.055500742f + u * (-0.192606971f + u * 0.511863232f)));
  float q = t * (0.0694440156f + u * (-0.0378708504f + u * (0.105728857f + u * (-0.457321763f + u * 1.25982428f))));
  float s = metal::sin(phase.high), c = metal::cos(phase.high), s_low = metal::sin(phase.low), c_low = metal::cos(phase.low);
  float sine = s * c_low + c * s_low, cosine = c * c_low - s * s_low;
  // cos(phase - pi/4) = (cosine + sine) / sqrt(2), sin(phase - pi/4) = (sine - cosine) / sqrt(2)
  return (p * (cosine + sine) + q * (sine - cosine)) * (0.398942280f * metal::rsqrt(metal::sqrt(a)));
}

METAL_FUNC float airy_ai(float x) {
  float v = x - 1.05f; // 0 <= x < 2.1: e^(-1.25 x) times a polynomial
  float right = -2.55273335e-06f;
  right = right * v + 9.01593012e-06f;
  right = right * v + 6.14468299e-05f;
  right = right * v - 0.000355198426f;
  right = right * v - 0.000746207719f;
  right = right * v + 0.00754249236f;
  right = right * v + 0.00253314269f;
  right = right * v - 0.0890550464f;
  right = right * v + 0.0258713067f;
  right = (right * v + 0.473733395f) * metal::exp(-1.25f * x);
  float w = x + 1.5f; // -3 < x < 0
  float left = -9.8087844e-07f;
  left = left * w + 5.11880046e-07f;
  left = left * w + 2.86169779e-05f;
  left = left * w - 9.85748193e-05f;
  left = left * w - 0.000217806504f;
  left = left * w + 0.00227587484f;
  left = left * w - 0.00346224126f;
  left = left * w - 0.01741823f;
  left = left * w + 0.0692898035f;
  left = left * w + 8.00888156e-05f;
  left = left * w - 0.348192453f;
  left = left * w + 0.309186906f;
  left = left * w + 0.464256585f;
  float result = x < 0.0f ? left : right;
  result = x >= 2.1f ? airy_ai_decaying(x > 2.1f ? x : 2.1f) : result;
  result = x <= -3.0f ? airy_ai_wave(x < -3.0f ? -x : 3.0f) : result;
  result = x > 104.0f ? 0.0f : result;
  return metal::fabs(x) == infinity() || x != x ? not_a_number() : result;
}

}  // namespace special

#endif
