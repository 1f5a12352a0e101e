// SPDX-License-Identifier: BSD-3-Clause
//
// complex: arithmetic of complex numbers held as float2 (x real, y imaginary), without needless overflow. What includes it finds the
// functions in namespace formula.
#ifndef OPENMPS_KERNELS_COMPLEX_H
#define OPENMPS_KERNELS_COMPLEX_H

#include <metal_stdlib>

namespace formula {

inline float2 complex_mul(float2 a, float2 b) { return float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }

// sqrt(a^2 + b^2), scaled by the larger magnitude; infinite if either is, NaN otherwise if either is.
METAL_FUNC float hypotenuse(float a, float b) {
  float x = metal::fabs(a), y = metal::fabs(b);
  float large = x > y ? x : y, small = x > y ? y : x;
  // Powers of two: exact scaling keeps the result within an ulp.
  float scale = large > 1.0e18f ? 8.470329472543003e-22f : large < 1.0e-18f ? 1.2676506002282294e30f : 1.0f;
  float inverse = large > 1.0e18f ? 1.1805916207174113e21f : large < 1.0e-18f ? 7.888609052210118e-31f : 1.0f;
  float l = large * scale, s = small * scale;
  float result = metal::sqrt(l * l + s * s) * inverse;
  float infinite = as_type<float>(0x7f800000u);
  result = (a != a || b != b) ? a + b : result;
  return x == infinite || y == infinite ? infinite : result;
}

inline float complex_abs(float2 a) { return hypotenuse(a.x, a.y); }

// Smith's algorithm (Communications of the ACM 5, 1962).
inline float2 complex_div(float2 a, float2 b) {
  bool wide = metal::fabs(b.x) >= metal::fabs(b.y);
  float large = wide ? b.x : b.y, small = wide ? b.y : b.x;
  float ratio = small / large;
  float scale = 1.0f / (large + small * ratio);
  float real = wide ? (a.x + a.y * ratio) * scale : (a.x * ratio + a.y) * scale;
  float imaginary = wide ? (a.y - a.x * ratio) * scale : (a.y * ratio - a.x) * scale;
  bool zero = b.x == 0.0f && b.y == 0.0f;
  float magnitude = metal::fabs(b.x);
  return float2(zero ? a.x / magnitude : real, zero ? a.y / magnitude : imaginary);
}

}  // namespace formula

#endif
