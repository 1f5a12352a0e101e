// SPDX-License-Identifier: BSD-3-Clause
// sin, cos, tan, sincos, sinpi, cospi, tanpi, asin, acos, atan, atan2 of float.
// The argument reduction is right for every finite float: a table indexed by the exponent holds
// (2/pi * 2^k) mod 4 in two parts, which takes the place of the Payne-Hanek bit string.
#pragma once

#include <openmps_math/bits.h>

namespace openmps_math {

// (2/pi * 2^k) mod 4, in [-2, 2], for k = -13 ... 127, as the bits of doubles: the high parts have 29 bits,
// so that their product with a float's mantissa is exact; the low parts are the rest.
// Made by tests/metal/fit_polynomials.py.
static const u64 two_over_pi_high[141] = {
    0x3f145f306e000000ul, 0x3f245f306e000000ul, 0x3f345f306e000000ul, 0x3f445f306e000000ul,
    0x3f545f306e000000ul, 0x3f645f306e000000ul, 0x3f745f306e000000ul, 0x3f845f306e000000ul,
    0x3f945f306e000000ul, 0x3fa45f306e000000ul, 0x3fb45f306e000000ul, 0x3fc45f306e000000ul,
    0x3fd45f306e000000ul, 0x3fe45f306e000000ul, 0x3ff45f306e000000ul, 0xbff7419f24000000ul,
    0x3ff17cc1b7000000ul, 0xbffd067c92000000ul, 0x3fd7cc1b72000000ul, 0x3fe7cc1b72000000ul,
    0x3ff7cc1b72000000ul, 0xbff067c91b000000ul, 0x3fff306dca000000ul, 0xbfb9f246c7000000ul,
    0xbfc9f246c7000000ul, 0xbfd9f246c7000000ul, 0xbfe9f246c7000000ul, 0xbff9f246c7000000ul,
    0x3fe836e4e4000000ul, 0x3ff836e4e4000000ul, 0xbfef246c6f000000ul, 0xbfff246c6f000000ul,
    0x3fbb727221000000ul, 0x3fcb727221000000ul, 0x3fdb727221000000ul, 0x3feb727221000000ul,
    0x3ffb727221000000ul, 0xbfe236377d000000ul, 0xbff236377d000000ul, 0x3ffb939105000000ul,
    0xbfe1b1bbeb000000ul, 0xbff1b1bbeb000000ul, 0x3ffc9c882a000000ul, 0xbfdb1bbead000000ul,
    0xbfeb1bbead000000ul, 0xbffb1bbead000000ul, 0x3fe391054a000000ul, 0x3ff391054a000000ul,
    0xbff8ddf56b000000ul, 0x3fec882a54000000ul, 0x3ffc882a54000000ul, 0xbfdbbead60000000ul,
    0xbfebbead60000000ul, 0xbffbbead60000000ul, 0x3fe1054a7f000000ul, 0x3ff1054a7f000000ul,
    0xbffdf56b02000000ul, 0x3fd054a7f1000000ul, 0x3fe054a7f1000000ul, 0x3ff054a7f1000000ul,
    0xbfff56b01f000000ul, 0x3fb529fc27000000ul, 0x3fc529fc27000000ul, 0x3fd529fc27000000ul,
    0x3fe529fc27000000ul, 0x3ff529fc27000000ul, 0xbff5ac07b1000000ul, 0x3ff4a7f09d000000ul,
    0xbff6b01ec5000000ul, 0x3ff29fc275000000ul, 0xbffac07b15000000ul, 0x3fe4fe13ac000000ul,
    0x3ff4fe13ac000000ul, 0xbff603d8a8000000ul, 0x3ff3f84eb0000000ul, 0xbff80f62a1000000ul,
    0x3fefc2757d000000ul, 0x3fffc2757d000000ul, 0xbf9ec54170000000ul, 0xbfaec54170000000ul,
    0xbfbec54170000000ul, 0xbfcec54170000000ul, 0xbfdec54170000000ul, 0xbfeec54170000000ul,
    0xbffec54170000000ul, 0x3fc3abe8fb000000ul, 0x3fd3abe8fb000000ul, 0x3fe3abe8fb000000ul,
    0x3ff3abe8fb000000ul, 0xbff8a82e0b000000ul, 0x3fed5f47d5000000ul, 0x3ffd5f47d5000000ul,
    0xbfd505c159000000ul, 0xbfe505c159000000ul, 0xbff505c159000000ul, 0x3ff5f47d4d000000ul,
    0xbff4170566000000ul, 0x3ff7d1f535000000ul, 0xbff05c1596000000ul, 0x3fff47d4d3000000ul,
    0xbfb7056591000000ul, 0xbfc7056591000000ul, 0xbfd7056591000000ul, 0xbfe7056591000000ul,
    0xbff7056591000000ul, 0x3ff1f534de000000ul, 0xbffc159644000000ul, 0x3fdf534ddc000000ul,
    0x3fef534ddc000000ul, 0x3fff534ddc000000ul, 0xbfb596447e000000ul, 0xbfc596447e000000ul,
    0xbfd596447e000000ul, 0xbfe596447e000000ul, 0xbff596447e000000ul, 0x3ff4d37703000000ul,
    0xbff65911f9000000ul, 0x3ff34ddc0e000000ul, 0xbff96447e5000000ul, 0x3fea6ee06e000000ul,
    0x3ffa6ee06e000000ul, 0xbfe6447e49000000ul, 0xbff6447e49000000ul, 0x3ff377036e000000ul,
    0xbff911f925000000ul, 0x3febb81b6c000000ul, 0x3ffbb81b6c000000ul, 0xbfe11f924f000000ul,
    0xbff11f924f000000ul, 0x3ffdc0db63000000ul, 0xbfd1f924eb000000ul, 0xbfe1f924eb000000ul,
    0xbff1f924eb000000ul, 0x3ffc0db629000000ul, 0xbfdf924eb5000000ul, 0xbfef924eb5000000ul,
    0xbfff924eb5000000ul, 0x3fab6c52b3000000ul, 0x3fbb6c52b3000000ul, 0x3fcb6c52b3000000ul,
    0x3fdb6c52b3000000ul,
};
static const u64 two_over_pi_low[141] = {
    0xbd2b1bbead603d8bul, 0xbd3b1bbead603d8bul, 0xbd4b1bbead603d8bul, 0xbd5b1bbead603d8bul,
    0xbd6b1bbead603d8bul, 0xbd7b1bbead603d8bul, 0xbd8b1bbead603d8bul, 0xbd9b1bbead603d8bul,
    0xbdab1bbead603d8bul, 0xbdbb1bbead603d8bul, 0xbdcb1bbead603d8bul, 0xbddb1bbead603d8bul,
    0xbdeb1bbead603d8bul, 0xbdfb1bbead603d8bul, 0xbe0b1bbead603d8bul, 0xbe1b1bbead603d8bul,
    0x3e0391054a7f09d6ul, 0x3e1391054a7f09d6ul, 0x3dfc882a53f84eb0ul, 0x3e0c882a53f84eb0ul,
    0x3e1c882a53f84eb0ul, 0xbdfbbead603d8a83ul, 0xbe0bbead603d8a83ul, 0x3db054a7f09d5f48ul,
    0x3dc054a7f09d5f48ul, 0x3dd054a7f09d5f48ul, 0x3de054a7f09d5f48ul, 0x3df054a7f09d5f48ul,
    0x3e0054a7f09d5f48ul, 0x3e1054a7f09d5f48ul, 0x3dc529fc2757d1f5ul, 0x3dd529fc2757d1f5ul,
    0xbdd5ac07b1505c16ul, 0xbde5ac07b1505c16ul, 0xbdf5ac07b1505c16ul, 0xbe05ac07b1505c16ul,
    0xbe15ac07b1505c16ul, 0xbe06b01ec5417056ul, 0xbe16b01ec5417056ul, 0x3e129fc2757d1f53ul,
    0x3df4fe13abe8fa9aul, 0x3e04fe13abe8fa9aul, 0x3e14fe13abe8fa9aul, 0xbdf80f62a0b82b2dul,
    0xbe080f62a0b82b2dul, 0xbe180f62a0b82b2dul, 0x3e0fc2757d1f534eul, 0x3e1fc2757d1f534eul,
    0xbdbec54170565912ul, 0xbdcec54170565912ul, 0xbddec54170565912ul, 0xbdeec54170565912ul,
    0xbdfec54170565912ul, 0xbe0ec54170565912ul, 0x3dd3abe8fa9a6ee0ul, 0x3de3abe8fa9a6ee0ul,
    0x3df3abe8fa9a6ee0ul, 0xbdf8a82e0acb223ful, 0xbe08a82e0acb223ful, 0xbe18a82e0acb223ful,
    0x3e0d5f47d4d37703ul, 0x3dd5f47d4d377037ul, 0x3de5f47d4d377037ul, 0x3df5f47d4d377037ul,
    0x3e05f47d4d377037ul, 0x3e15f47d4d377037ul, 0xbe14170565911f92ul, 0x3e17d1f534ddc0dbul,
    0xbe105c1596447e49ul, 0x3e1f47d4d377036eul, 0xbdd70565911f924ful, 0xbde70565911f924ful,
    0xbdf70565911f924ful, 0xbe070565911f924ful, 0xbe170565911f924ful, 0x3e11f534ddc0db63ul,
    0x3def534ddc0db629ul, 0x3dff534ddc0db629ul, 0xbdb596447e493ad5ul, 0xbdc596447e493ad5ul,
    0xbdd596447e493ad5ul, 0xbde596447e493ad5ul, 0xbdf596447e493ad5ul, 0xbe0596447e493ad5ul,
    0xbe1596447e493ad5ul, 0xbde96447e493ad4dul, 0xbdf96447e493ad4dul, 0xbe096447e493ad4dul,
    0xbe196447e493ad4dul, 0x3e0a6ee06db14acdul, 0xbdf6447e493ad4ceul, 0xbe06447e493ad4ceul,
    0xbdf911f924eb5336ul, 0xbe0911f924eb5336ul, 0xbe1911f924eb5336ul, 0x3e0bb81b6c52b328ul,
    0x3e1bb81b6c52b328ul, 0xbe011f924eb53362ul, 0xbe111f924eb53362ul, 0x3e1dc0db6295993cul,
    0xbdbf924eb53361deul, 0xbdcf924eb53361deul, 0xbddf924eb53361deul, 0xbdef924eb53361deul,
    0xbdff924eb53361deul, 0xbe0f924eb53361deul, 0xbe1f924eb53361deul, 0x3dcb6c52b3278872ul,
    0x3ddb6c52b3278872ul, 0x3deb6c52b3278872ul, 0xbdd24eb53361de38ul, 0xbde24eb53361de38ul,
    0xbdf24eb53361de38ul, 0xbe024eb53361de38ul, 0xbe124eb53361de38ul, 0x3e1b6295993c4390ul,
    0xbe0275a99b0ef1bful, 0xbe1275a99b0ef1bful, 0x3e1b14acc9e21c82ul, 0xbe03ad4cd8778df8ul,
    0xbe13ad4cd8778df8ul, 0xbdfd6a66c3bc6fbeul, 0xbe0d6a66c3bc6fbeul, 0xbe1d6a66c3bc6fbeul,
    0x3df4acc9e21c8210ul, 0x3e04acc9e21c8210ul, 0x3e14acc9e21c8210ul, 0x3e02b32788720840ul,
    0x3e12b32788720840ul, 0xbe1a99b0ef1bef80ul, 0xbdf4cd8778df7c03ul, 0xbe04cd8778df7c03ul,
    0xbe14cd8778df7c03ul, 0x3e1664f10e4107f9ul, 0xbde9b0ef1bef806cul, 0xbdf9b0ef1bef806cul,
    0xbe09b0ef1bef806cul, 0x3db3c439041fe516ul, 0x3dc3c439041fe516ul, 0x3dd3c439041fe516ul,
    0x3de3c439041fe516ul,
};

// x = (quadrant + fraction) * pi/2; r = fraction * pi/2 in [-pi/4, pi/4]. quadrant counts modulo 4 in its
// low two bits. |x| < 2^-13 is reduced as if its exponent were -13: its callers treat such x apart.
struct reduced_angle {
  double r;
  u64 quadrant;
};

OPENMPS_INLINE reduced_angle reduce_angle(float x) {
  u32 bits = float_bits(x);
  int index = (int)((bits >> 23) & 255u) - 114;
  index = index < 0 ? 0 : index;
  index = index > 140 ? 140 : index;
  double m = (double)float_from((bits & 0x807fffffu) | 0x3f800000u);
  double turn = m * double_from(two_over_pi_high[index]);
  double sum = turn + round_magic_double();
  double fraction = (turn - (sum - round_magic_double())) + m * double_from(two_over_pi_low[index]);
  reduced_angle result = {fraction * double_from(0x3ff921fb54442d18ul), double_bits(sum)};
  return result;
}

// r + r^3 (c3 + ... + c9 r^6): 2^-37.5 relative on [-pi/4, pi/4].
OPENMPS_INLINE double sin_reduced(double r) {
  double t = r * r;
  double q = double_from(0x3ec6cd1b9e6553d1ul);      // 2.718115172199093e-06
  q = q * t + double_from(0xbf2a00f7e3d5cb6ful);     // -0.00019839311600441552
  q = q * t + double_from(0x3f81111086941058ul);     // 0.008333329302793555
  q = q * t + double_from(0xbfc5555554c7051ful);     // -0.16666666640780023
  return r + (r * t) * q;
}

// 1 - r^2/2 + r^4 (c4 + ... + c10 r^6): 2^-43.2 on [-pi/4, pi/4].
OPENMPS_INLINE double cos_reduced(double r) {
  double t = r * r;
  double q = double_from(0xbe9242abfd7b595ful);      // -2.721017131451408e-07
  q = q * t + double_from(0x3efa0111fbaf5d9dul);     // 2.479951920605698e-05
  q = q * t + double_from(0xbf56c16b89824380ul);     // -0.00138888837503634
  q = q * t + double_from(0x3fa5555554f4da50ul);     // 0.04166666662279239
  return ((double)1.0f - t * (double)0.5f) + (t * t) * q;
}

// sin(r + quadrant * pi/2)
OPENMPS_INLINE float sin_of_quadrant(double sine, double cosine, u64 quadrant) {
  double value = (quadrant & 1ul) != 0ul ? cosine : sine;
  return (float)double_from(double_bits(value) ^ ((quadrant & 2ul) << 62));
}

OPENMPS_INLINE float not_finite_to_nan(float x, float result) {
  return absolute(x) < infinity() ? result : quiet_nan();
}

OPENMPS_INLINE float sin(float x) {
  reduced_angle a = reduce_angle(x);
  float result = sin_of_quadrant(sin_reduced(a.r), cos_reduced(a.r), a.quadrant);
  return absolute(x) < 0.0001220703125f ? x : not_finite_to_nan(x, result);
}

OPENMPS_INLINE float cos(float x) {
  reduced_angle a = reduce_angle(x);
  return not_finite_to_nan(x, sin_of_quadrant(sin_reduced(a.r), cos_reduced(a.r), a.quadrant + 1ul));
}

OPENMPS_INLINE float sincos(float x, float& cosine) {
  reduced_angle a = reduce_angle(x);
  double s = sin_reduced(a.r), c = cos_reduced(a.r);
  cosine = not_finite_to_nan(x, sin_of_quadrant(s, c, a.quadrant + 1ul));
  float result = sin_of_quadrant(s, c, a.quadrant);
  return absolute(x) < 0.0001220703125f ? x : not_finite_to_nan(x, result);
}

// tan(r), or -1/tan(r) in odd quadrants.
OPENMPS_INLINE float tan_of_quadrant(double r, u64 quadrant) {
  double s = sin_reduced(r), c = cos_reduced(r);
  bool odd = (quadrant & 1ul) != 0ul;
  return (float)((odd ? -c : s) / (odd ? s : c));
}

OPENMPS_INLINE float tan(float x) {
  reduced_angle a = reduce_angle(x);
  float result = tan_of_quadrant(a.r, a.quadrant);
  return absolute(x) < 0.0001220703125f ? x : not_finite_to_nan(x, result);
}

// x = (quadrant + fraction) / 2 exactly; from 2^23 on every float is a whole number, from 2^24 an even one.
OPENMPS_INLINE reduced_angle reduce_half_turns(float x) {
  double d = (double)(absolute(x) < 16777216.0f ? x : 0.0f);
  double twice = d + d;
  double sum = twice + round_magic_double();
  double fraction = twice - (sum - round_magic_double());
  reduced_angle result = {fraction * double_from(0x3ff921fb54442d18ul), double_bits(sum)};
  return result;
}

OPENMPS_INLINE float sinpi(float x) {
  reduced_angle a = reduce_half_turns(x);
  float result = sin_of_quadrant(sin_reduced(a.r), cos_reduced(a.r), a.quadrant);
  return not_finite_to_nan(x, result == 0.0f ? with_sign(0.0f, x) : result);
}

OPENMPS_INLINE float cospi(float x) {
  reduced_angle a = reduce_half_turns(x);
  float result = sin_of_quadrant(sin_reduced(a.r), cos_reduced(a.r), a.quadrant + 1ul);
  return not_finite_to_nan(x, result == 0.0f ? 0.0f : result);
}

// Infinite at odd multiples of 1/2; there the quotient is -1/0 of either sign, as IEEE 754 wants it.
OPENMPS_INLINE float tanpi(float x) {
  reduced_angle a = reduce_half_turns(x);
  float result = tan_of_quadrant(a.r, a.quadrant);
  return not_finite_to_nan(x, result == 0.0f ? with_sign(0.0f, x) : result);
}

// atan(t) for 0 <= t <= 1: t + t^3 (c3 + ... + c17 t^14), 2^-25.8 relative.
OPENMPS_INLINE float atan_reduced(float t) {
  float z = t * t;
  float q = 0.002919643f;
  q = q * z - 0.016363785f;
  q = q * z + 0.0432053f;
  q = q * z - 0.07551683f;
  q = q * z + 0.10665772f;
  q = q * z - 0.14211002f;
  q = q * z + 0.19993767f;
  q = q * z - 0.33333153f;
  return t + (t * z) * q;
}

constexpr float half_pi_high = 1.57079637f, half_pi_low = -4.37113883e-08f;
constexpr float pi_high = 3.14159274f, pi_low = -8.74227766e-08f;

OPENMPS_INLINE float atan(float x) {
  float a = absolute(x);
  bool inverted = a > 1.0f;
  float p = atan_reduced(inverted ? 1.0f / a : a);
  return with_sign(inverted ? half_pi_high - (p - half_pi_low) : p, x);
}

// By octants: the smaller of |x|, |y| over the larger. Signed zeros count as in IEEE 754.
OPENMPS_INLINE float atan2(float y, float x) {
  float ax = absolute(x), ay = absolute(y);
  bool steep = ay > ax;
  float small = steep ? ax : ay, large = steep ? ay : ax;
  float t = small / large;
  t = large == 0.0f ? 0.0f : t;
  t = small == infinity() ? 1.0f : t;
  float p = atan_reduced(t);
  p = steep ? half_pi_high - (p - half_pi_low) : p;
  p = (float_bits(x) & 0x80000000u) != 0u ? pi_high - (p - pi_low) : p;
  p = is_nan(x) || is_nan(y) ? quiet_nan() : p;
  return with_sign(p, y);
}

// asin(s) for 0 <= s <= 1/2, z = s^2: s + s^3 (c3 + ... + c13 z^5), 2^-31.7 relative.
OPENMPS_INLINE float asin_reduced(float s, float z) {
  float q = 0.03768818f;
  q = q * z + 0.014318345f;
  q = q * z + 0.031838663f;
  q = q * z + 0.04451339f;
  q = q * z + 0.07500522f;
  q = q * z + 0.1666666f;
  return s + (s * z) * q;
}

// Above 1/2: asin(a) = pi/2 - 2 asin(sqrt((1 - a) / 2)). |x| > 1 gives the root of a negative number, NaN.
OPENMPS_INLINE float asin(float x) {
  float a = absolute(x);
  bool large = a > 0.5f;
  float z = large ? (1.0f - a) * 0.5f : a * a;
  float s = large ? __builtin_elementwise_sqrt(z) : a;
  float p = asin_reduced(s, z);
  return with_sign(large ? half_pi_high - (2.0f * p - half_pi_low) : p, x);
}

OPENMPS_INLINE float acos(float x) {
  float a = absolute(x);
  bool large = a > 0.5f;
  float z = large ? (1.0f - a) * 0.5f : a * a;
  float s = large ? __builtin_elementwise_sqrt(z) : a;
  float p = asin_reduced(s, z);
  float outer = x < 0.0f ? pi_high - (2.0f * p - pi_low) : 2.0f * p;
  return large ? outer : half_pi_high - (with_sign(p, x) - half_pi_low);
}

}  // namespace openmps_math
