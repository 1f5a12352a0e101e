// SPDX-License-Identifier: BSD-3-Clause
// Helpers of the maths headers: reinterpretation, exact doubles, branch-free rounding, scaling by powers
// of two. Everything here and beside it is inlined, has no branch on data and calls no library, so that
// a loop over elements becomes vector code whose values do not depend on an element's position.
//
// Rules: no fused multiply-add (one CPU level lacks it, and all levels give equal bits); no gather except
// in the argument reduction of sin, cos and tan; floating literals carry a suffix, doubles come as bits.
#pragma once

#define OPENMPS_INLINE inline __attribute__((__always_inline__))

// A user may compile a shader with -ffast-math; the maths must not be reassociated even then. (Targets without
// float_control keep the second pragma to the end of the file.)
#if defined(__NVPTX__)
#define OPENMPS_PRECISE_BEGIN _Pragma("clang fp contract(off) reassociate(off)")
#define OPENMPS_PRECISE_END
#else
#define OPENMPS_PRECISE_BEGIN \
  _Pragma("float_control(precise, on, push)") _Pragma("clang fp contract(off) reassociate(off)")
#define OPENMPS_PRECISE_END _Pragma("float_control(pop)")
#endif

OPENMPS_PRECISE_BEGIN
namespace openmps_math {

typedef unsigned int u32;
typedef unsigned long u64;

OPENMPS_INLINE constexpr u32 float_bits(float x) { return __builtin_bit_cast(u32, x); }
OPENMPS_INLINE constexpr float float_from(u32 bits) { return __builtin_bit_cast(float, bits); }
OPENMPS_INLINE constexpr u64 double_bits(double x) { return __builtin_bit_cast(u64, x); }
OPENMPS_INLINE constexpr double double_from(u64 bits) { return __builtin_bit_cast(double, bits); }

OPENMPS_INLINE constexpr float infinity() { return __builtin_huge_valf(); }
OPENMPS_INLINE constexpr float quiet_nan() { return float_from(0x7fc00000u); }

OPENMPS_INLINE constexpr float absolute(float x) { return float_from(float_bits(x) & 0x7fffffffu); }
OPENMPS_INLINE constexpr bool is_nan(float x) { return x != x; }

// |magnitude| with the sign of `sign`.
OPENMPS_INLINE constexpr float with_sign(float magnitude, float sign) {
  return float_from((float_bits(magnitude) & 0x7fffffffu) | (float_bits(sign) & 0x80000000u));
}

// Nearest integer, ties to even, of |x| < 2^22: adding 1.5 * 2^23 leaves the integer in the low bits.
constexpr float round_magic = 12582912.0f;
OPENMPS_INLINE float round_small(float x) { return (x + round_magic) - round_magic; }
// The same integer as an int, from the sum x + round_magic.
OPENMPS_INLINE int magic_to_int(float sum) { return (int)(float_bits(sum) - 0x4b400000u); }

// 2^n for -126 <= n <= 127.
OPENMPS_INLINE float power_of_two(int n) { return float_from((u32)(n + 127) << 23); }

// p * 2^n for p in [0.5, 2] and -252 <= n <= 254, rounded once more only where the result is subnormal.
OPENMPS_INLINE float scale(float p, int n) {
  int half = n >> 1;
  return (p * power_of_two(half)) * power_of_two(n - half);
}

// The same roundings for double: 1.5 * 2^52.
OPENMPS_INLINE constexpr double round_magic_double() { return double_from(0x4338000000000000ul); }
OPENMPS_INLINE double round_small_double(double x) { return (x + round_magic_double()) - round_magic_double(); }

// 2^n for -1022 <= n <= 1023, n taken from the low bits of (n + round_magic_double()).
OPENMPS_INLINE double power_of_two_double(u64 magic_sum_bits) {
  return double_from((magic_sum_bits + 1023ul) << 52);
}

}  // namespace openmps_math
OPENMPS_PRECISE_END
