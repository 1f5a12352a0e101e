// SPDX-License-Identifier: BSD-3-Clause
// sin, cos, tan, sincos, sinpi, cospi, tanpi, asin, acos, atan, atan2 of float.
// The argument reduction is right for every finite float: a table indexed by the exponent holds
// (2/pi * 2^k) mod 4 in two parts, which takes the place of the Payne-Hanek bit string.
#pragma once

#include <openmps_math/bits.h>

OPENMPS_PRECISE_BEGIN
namespace openmps_math {

// 2^23 ((2/pi * 2^(k-23)) mod 4) for k = -13 ... 127, as the bits of doubles. x = m 2^k with m in [1, 2), so
// that 2^23 m is an integer and m times this is 2/pi x modulo 4. The high parts have 29 bits: their product
// with m is exact. The low parts are the rest, and add some 2^-57 of error in quarter turns. The last entry
// is for the exponent of infinity and NaN: NaN.
// Made by tests/metal/fit_polynomials.py.
static const u64 two_over_pi_high[142] = {
    0x3f145f306e000000ul, 0x3f245f306e000000ul, 0x3f345f306e000000ul, 0x3f445f306e000000ul,
    0x3f545f306e000000ul, 0x3f645f306e000000ul, 0x3f745f306e000000ul, 0x3f845f306e000000ul,
    0x3f945f306e000000ul, 0x3fa45f306e000000ul, 0x3fb45f306e000000ul, 0x3fc45f306e000000ul,
    0x3fd45f306e000000ul, 0x3fe45f306e000000ul, 0x3ff45f306e000000ul, 0x40045f306e000000ul,
    0x40145f306e000000ul, 0x40245f306e000000ul, 0x40345f306e000000ul, 0x40445f306e000000ul,
    0x40545f306e000000ul, 0x40645f306e000000ul, 0x40745f306e000000ul, 0x40845f306e000000ul,
    0x40945f306e000000ul, 0x40a45f306e000000ul, 0x40b45f306e000000ul, 0x40c45f306e000000ul,
    0x40d45f306e000000ul, 0x40e45f306e000000ul, 0x40f45f306e000000ul, 0x41045f306e000000ul,
    0x41145f306e000000ul, 0x41245f306e000000ul, 0x41345f306e000000ul, 0x41445f306e000000ul,
    0x41545f306e000000ul, 0x41645f306e000000ul, 0xc167419f24000000ul, 0x41617cc1b7000000ul,
    0xc16d067c92000000ul, 0x4147cc1b72000000ul, 0x4157cc1b72000000ul, 0x4167cc1b72000000ul,
    0xc16067c91b000000ul, 0x416f306dca000000ul, 0xc129f246c7000000ul, 0xc139f246c7000000ul,
    0xc149f246c7000000ul, 0xc159f246c7000000ul, 0xc169f246c7000000ul, 0x415836e4e4000000ul,
    0x416836e4e4000000ul, 0xc15f246c6f000000ul, 0xc16f246c6f000000ul, 0x412b727221000000ul,
    0x413b727221000000ul, 0x414b727221000000ul, 0x415b727221000000ul, 0x416b727221000000ul,
    0xc15236377d000000ul, 0xc16236377d000000ul, 0x416b939105000000ul, 0xc151b1bbeb000000ul,
    0xc161b1bbeb000000ul, 0x416c9c882a000000ul, 0xc14b1bbead000000ul, 0xc15b1bbead000000ul,
    0xc16b1bbead000000ul, 0x415391054a000000ul, 0x416391054a000000ul, 0xc168ddf56b000000ul,
    0x415c882a54000000ul, 0x416c882a54000000ul, 0xc14bbead60000000ul, 0xc15bbead60000000ul,
    0xc16bbead60000000ul, 0x4151054a7f000000ul, 0x4161054a7f000000ul, 0xc16df56b02000000ul,
    0x414054a7f1000000ul, 0x415054a7f1000000ul, 0x416054a7f1000000ul, 0xc16f56b01f000000ul,
    0x412529fc27000000ul, 0x413529fc27000000ul, 0x414529fc27000000ul, 0x415529fc27000000ul,
    0x416529fc27000000ul, 0xc165ac07b1000000ul, 0x4164a7f09d000000ul, 0xc166b01ec5000000ul,
    0x41629fc275000000ul, 0xc16ac07b15000000ul, 0x4154fe13ac000000ul, 0x4164fe13ac000000ul,
    0xc16603d8a8000000ul, 0x4163f84eb0000000ul, 0xc1680f62a1000000ul, 0x415fc2757d000000ul,
    0x416fc2757d000000ul, 0xc10ec54170000000ul, 0xc11ec54170000000ul, 0xc12ec54170000000ul,
    0xc13ec54170000000ul, 0xc14ec54170000000ul, 0xc15ec54170000000ul, 0xc16ec54170000000ul,
    0x4133abe8fb000000ul, 0x4143abe8fb000000ul, 0x4153abe8fb000000ul, 0x4163abe8fb000000ul,
    0xc168a82e0b000000ul, 0x415d5f47d5000000ul, 0x416d5f47d5000000ul, 0xc14505c159000000ul,
    0xc15505c159000000ul, 0xc16505c159000000ul, 0x4165f47d4d000000ul, 0xc164170566000000ul,
    0x4167d1f535000000ul, 0xc1605c1596000000ul, 0x416f47d4d3000000ul, 0xc127056591000000ul,
    0xc137056591000000ul, 0xc147056591000000ul, 0xc157056591000000ul, 0xc167056591000000ul,
    0x4161f534de000000ul, 0xc16c159644000000ul, 0x414f534ddc000000ul, 0x415f534ddc000000ul,
    0x416f534ddc000000ul, 0xc12596447e000000ul, 0xc13596447e000000ul, 0xc14596447e000000ul,
    0xc15596447e000000ul, 0xc16596447e000000ul, 0x4164d37703000000ul, 0xc1665911f9000000ul,
    0x41634ddc0e000000ul, 0x7ff8000000000000ul,
};
static const u64 two_over_pi_low[142] = {
    0xbd2b1bbead603d8bul, 0xbd3b1bbead603d8bul, 0xbd4b1bbead603d8bul, 0xbd5b1bbead603d8bul,
    0xbd6b1bbead603d8bul, 0xbd7b1bbead603d8bul, 0xbd8b1bbead603d8bul, 0xbd9b1bbead603d8bul,
    0xbdab1bbead603d8bul, 0xbdbb1bbead603d8bul, 0xbdcb1bbead603d8bul, 0xbddb1bbead603d8bul,
    0xbdeb1bbead603d8bul, 0xbdfb1bbead603d8bul, 0xbe0b1bbead603d8bul, 0xbe1b1bbead603d8bul,
    0xbe2b1bbead603d8bul, 0xbe3b1bbead603d8bul, 0xbe4b1bbead603d8bul, 0xbe5b1bbead603d8bul,
    0xbe6b1bbead603d8bul, 0xbe7b1bbead603d8bul, 0xbe8b1bbead603d8bul, 0xbe9b1bbead603d8bul,
    0xbeab1bbead603d8bul, 0xbebb1bbead603d8bul, 0xbecb1bbead603d8bul, 0xbedb1bbead603d8bul,
    0xbeeb1bbead603d8bul, 0xbefb1bbead603d8bul, 0xbf0b1bbead603d8bul, 0xbf1b1bbead603d8bul,
    0xbf2b1bbead603d8bul, 0xbf3b1bbead603d8bul, 0xbf4b1bbead603d8bul, 0xbf5b1bbead603d8bul,
    0xbf6b1bbead603d8bul, 0xbf7b1bbead603d8bul, 0xbf8b1bbead603d8bul, 0x3f7391054a7f09d6ul,
    0x3f8391054a7f09d6ul, 0x3f6c882a53f84eb0ul, 0x3f7c882a53f84eb0ul, 0x3f8c882a53f84eb0ul,
    0xbf6bbead603d8a83ul, 0xbf7bbead603d8a83ul, 0x3f2054a7f09d5f48ul, 0x3f3054a7f09d5f48ul,
    0x3f4054a7f09d5f48ul, 0x3f5054a7f09d5f48ul, 0x3f6054a7f09d5f48ul, 0x3f7054a7f09d5f48ul,
    0x3f8054a7f09d5f48ul, 0x3f3529fc2757d1f5ul, 0x3f4529fc2757d1f5ul, 0xbf45ac07b1505c16ul,
    0xbf55ac07b1505c16ul, 0xbf65ac07b1505c16ul, 0xbf75ac07b1505c16ul, 0xbf85ac07b1505c16ul,
    0xbf76b01ec5417056ul, 0xbf86b01ec5417056ul, 0x3f829fc2757d1f53ul, 0x3f64fe13abe8fa9aul,
    0x3f74fe13abe8fa9aul, 0x3f84fe13abe8fa9aul, 0xbf680f62a0b82b2dul, 0xbf780f62a0b82b2dul,
    0xbf880f62a0b82b2dul, 0x3f7fc2757d1f534eul, 0x3f8fc2757d1f534eul, 0xbf2ec54170565912ul,
    0xbf3ec54170565912ul, 0xbf4ec54170565912ul, 0xbf5ec54170565912ul, 0xbf6ec54170565912ul,
    0xbf7ec54170565912ul, 0x3f43abe8fa9a6ee0ul, 0x3f53abe8fa9a6ee0ul, 0x3f63abe8fa9a6ee0ul,
    0xbf68a82e0acb223ful, 0xbf78a82e0acb223ful, 0xbf88a82e0acb223ful, 0x3f7d5f47d4d37703ul,
    0x3f45f47d4d377037ul, 0x3f55f47d4d377037ul, 0x3f65f47d4d377037ul, 0x3f75f47d4d377037ul,
    0x3f85f47d4d377037ul, 0xbf84170565911f92ul, 0x3f87d1f534ddc0dbul, 0xbf805c1596447e49ul,
    0x3f8f47d4d377036eul, 0xbf470565911f924ful, 0xbf570565911f924ful, 0xbf670565911f924ful,
    0xbf770565911f924ful, 0xbf870565911f924ful, 0x3f81f534ddc0db63ul, 0x3f5f534ddc0db629ul,
    0x3f6f534ddc0db629ul, 0xbf2596447e493ad5ul, 0xbf3596447e493ad5ul, 0xbf4596447e493ad5ul,
    0xbf5596447e493ad5ul, 0xbf6596447e493ad5ul, 0xbf7596447e493ad5ul, 0xbf8596447e493ad5ul,
    0xbf596447e493ad4dul, 0xbf696447e493ad4dul, 0xbf796447e493ad4dul, 0xbf896447e493ad4dul,
    0x3f7a6ee06db14acdul, 0xbf66447e493ad4ceul, 0xbf76447e493ad4ceul, 0xbf6911f924eb5336ul,
    0xbf7911f924eb5336ul, 0xbf8911f924eb5336ul, 0x3f7bb81b6c52b328ul, 0x3f8bb81b6c52b328ul,
    0xbf711f924eb53362ul, 0xbf811f924eb53362ul, 0x3f8dc0db6295993cul, 0xbf2f924eb53361deul,
    0xbf3f924eb53361deul, 0xbf4f924eb53361deul, 0xbf5f924eb53361deul, 0xbf6f924eb53361deul,
    0xbf7f924eb53361deul, 0xbf8f924eb53361deul, 0x3f3b6c52b3278872ul, 0x3f4b6c52b3278872ul,
    0x3f5b6c52b3278872ul, 0xbf424eb53361de38ul, 0xbf524eb53361de38ul, 0xbf624eb53361de38ul,
    0xbf724eb53361de38ul, 0xbf824eb53361de38ul, 0x3f8b6295993c4390ul, 0xbf7275a99b0ef1bful,
    0xbf8275a99b0ef1bful, 0x7ff8000000000000ul,
};

// x = (quadrant + fraction) * pi/2; r = fraction * pi/2 in [-0.8345, 0.8345] (the
// low part comes after rounding). quadrant counts modulo 4 in its
// low two bits. |x| < 2^-13 is reduced as if its exponent were -13: its callers treat such x apart.
struct reduced_angle {
  double r;
  u64 quadrant;
};

OPENMPS_INLINE reduced_angle reduce_angle(float x) {
  u32 bits = float_bits(x);
  int index = (int)((bits >> 23) & 255u) - 114;
  index = index < 0 ? 0 : index;
  double m = (double)float_from((bits & 0x807fffffu) | 0x3f800000u);
  double turn = m * double_from(two_over_pi_high[index]);
  double sum = turn + round_magic_double();
  double fraction = (turn - (sum - round_magic_double())) + m * double_from(two_over_pi_low[index]);
  reduced_angle result = {fraction * double_from(0x3ff921fb54442d18ul), double_bits(sum)};
  return result;
}

// r + r^3 (c3 + ... + c9 r^6): 2^-36.6 relative on [-0.8345, 0.8345].
OPENMPS_INLINE double sin_reduced(double r) {
  double t = r * r;
  double q = double_from(0x3ec6c2b9c317837bul);      // 2.713280559105513e-06
  q = q * t + double_from(0xbf2a00c9b719208eul);     // -0.00019838774055558724
  q = q * t + double_from(0x3f81111049a5e45dul);     // 0.008333327529486729
  q = q * t + double_from(0xbfc55555546dafe0ul);     // -0.16666666624530446
  return r + (r * t) * q;
}

// 1 - r^2/2 + r^4 (c4 + ... + c10 r^6): 2^-42.2 on [-0.8345, 0.8345].
OPENMPS_INLINE double cos_reduced(double r) {
  double t = r * r;
  double q = double_from(0xbe923b0c1a4e57e0ul);      // -2.716579053317044e-07
  q = q * t + double_from(0x3efa00eb3af81b33ul);     // 2.4798955278650114e-05
  q = q * t + double_from(0xbf56c16b4be23114ul);     // -0.0013888881508448735
  q = q * t + double_from(0x3fa5555554b8efa9ul);     // 0.04166666659554547
  return ((double)1.0f - t * (double)0.5f) + (t * t) * q;
}

// sin(r + quadrant * pi/2)
OPENMPS_INLINE float sin_of_quadrant(double sine, double cosine, u64 quadrant) {
  double value = (quadrant & 1ul) != 0ul ? cosine : sine;
  return (float)double_from(double_bits(value) ^ ((quadrant & 2ul) << 62));
}

OPENMPS_INLINE float sin(float x) {
  reduced_angle a = reduce_angle(x);
  float result = sin_of_quadrant(sin_reduced(a.r), cos_reduced(a.r), a.quadrant);
  return absolute(x) < 0.0001220703125f ? x : result;
}

OPENMPS_INLINE float cos(float x) {
  reduced_angle a = reduce_angle(x);
  return sin_of_quadrant(sin_reduced(a.r), cos_reduced(a.r), a.quadrant + 1ul);
}

OPENMPS_INLINE float sincos(float x, float& cosine) {
  reduced_angle a = reduce_angle(x);
  double s = sin_reduced(a.r), c = cos_reduced(a.r);
  cosine = sin_of_quadrant(s, c, a.quadrant + 1ul);
  float result = sin_of_quadrant(s, c, a.quadrant);
  return absolute(x) < 0.0001220703125f ? x : result;
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
  return absolute(x) < 0.0001220703125f ? x : result;
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

OPENMPS_INLINE float not_finite_to_nan(float x, float result) {
  return absolute(x) < infinity() ? result : quiet_nan();
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

// atan(t) - t for 0 <= t <= 1: t^3 (c3 + ... + c17 t^14), 2^-25.8 relative to atan(t).
OPENMPS_INLINE float atan_tail(float t) {
  float z = t * t;
  float q = 0.002919643f;
  q = q * z - 0.016363785f;
  q = q * z + 0.0432053f;
  q = q * z - 0.07551683f;
  q = q * z + 0.10665772f;
  q = q * z - 0.14211002f;
  q = q * z + 0.19993767f;
  q = q * z - 0.33333153f;
  return (t * z) * q;
}

constexpr float half_pi_high = 1.57079637f, half_pi_low = -4.37113883e-08f;
constexpr float pi_high = 3.14159274f, pi_low = -8.74227766e-08f;

// pi/2 - (t + tail) for 0 <= t <= 1.1: `lost` is what the first difference could not hold.
OPENMPS_INLINE float half_pi_minus(float t, float tail) {
  float difference = half_pi_high - t;
  float lost = (half_pi_high - difference) - t;
  return difference + (lost - (tail - half_pi_low));
}

OPENMPS_INLINE float atan(float x) {
  float a = absolute(x);
  bool inverted = a > 1.0f;
  float t = inverted ? 1.0f / a : a;
  float tail = atan_tail(t);
  return with_sign(inverted ? half_pi_minus(t, tail) : t + tail, x);
}

// By octants: the smaller of |x|, |y| over the larger. Signed zeros count as in IEEE 754.
OPENMPS_INLINE float atan2(float y, float x) {
  float ax = absolute(x), ay = absolute(y);
  bool steep = ay > ax;
  float small = steep ? ax : ay, large = steep ? ay : ax;
  float t = small / large;
  t = large == 0.0f ? 0.0f : t;
  t = small == infinity() ? 1.0f : t;
  float tail = atan_tail(t);
  float p = steep ? half_pi_minus(t, tail) : t + tail;
  p = (float_bits(x) & 0x80000000u) != 0u ? pi_high - (p - pi_low) : p;
  p = is_nan(x) || is_nan(y) ? quiet_nan() : p;
  return with_sign(p, y);
}

// asin(s) - s for 0 <= s <= 1/2, z = s^2: s^3 (c3 + ... + c13 z^5), 2^-31.7 relative to asin(s).
OPENMPS_INLINE float asin_tail(float s, float z) {
  float q = 0.03768818f;
  q = q * z + 0.014318345f;
  q = q * z + 0.031838663f;
  q = q * z + 0.04451339f;
  q = q * z + 0.07500522f;
  q = q * z + 0.1666666f;
  return (s * z) * q;
}

// Above 1/2: asin(a) = pi/2 - 2 asin(sqrt((1 - a) / 2)). |x| > 1 gives the root of a negative number, NaN.
OPENMPS_INLINE float asin(float x) {
  float a = absolute(x);
  bool large = a > 0.5f;
  float z = large ? (1.0f - a) * 0.5f : a * a;
  float s = large ? __builtin_elementwise_sqrt(z) : a;
  float tail = asin_tail(s, z);
  return with_sign(large ? half_pi_minus(2.0f * s, 2.0f * tail) : s + tail, x);
}

OPENMPS_INLINE float acos(float x) {
  float a = absolute(x);
  bool large = a > 0.5f;
  float z = large ? (1.0f - a) * 0.5f : a * a;
  float s = large ? __builtin_elementwise_sqrt(z) : a;
  float p = s + asin_tail(s, z);
  float outer = x < 0.0f ? pi_high - (2.0f * p - pi_low) : 2.0f * p;
  return large ? outer : half_pi_high - (with_sign(p, x) - half_pi_low);
}

}  // namespace openmps_math
OPENMPS_PRECISE_END
