// SPDX-License-Identifier: BSD-3-Clause
// Names that Apple's own headers use and programs have copied from them, mostly to give bfloat the functions that float has: their last
// argument asks for fast or precise maths, of which there is one kind here.
#pragma once

#include <metal_math>
#include <metal_simdgroup>

#define __METAL_PRECISE_MATH__ 0
#define __METAL_FAST_MATH__ 1
#define __METAL_MAYBE_FAST_MATH__ 1

#define OPENMPS_INTERNAL_1(name) METAL_FUNC float __metal_##name(float x, int) { return metal::name(x); }
#define OPENMPS_INTERNAL_2(name) METAL_FUNC float __metal_##name(float x, float y, int) { return metal::name(x, y); }
#define OPENMPS_INTERNAL_3(name) METAL_FUNC float __metal_##name(float x, float y, float z, int) { return metal::name(x, y, z); }
OPENMPS_INTERNAL_1(acos) OPENMPS_INTERNAL_1(acosh) OPENMPS_INTERNAL_1(asin) OPENMPS_INTERNAL_1(asinh)
OPENMPS_INTERNAL_1(atan) OPENMPS_INTERNAL_1(atanh) OPENMPS_INTERNAL_1(ceil) OPENMPS_INTERNAL_1(cos)
OPENMPS_INTERNAL_1(cosh) OPENMPS_INTERNAL_1(cospi) OPENMPS_INTERNAL_1(exp) OPENMPS_INTERNAL_1(exp2)
OPENMPS_INTERNAL_1(exp10) OPENMPS_INTERNAL_1(fabs) OPENMPS_INTERNAL_1(floor) OPENMPS_INTERNAL_1(fract)
OPENMPS_INTERNAL_1(log) OPENMPS_INTERNAL_1(log2) OPENMPS_INTERNAL_1(log10) OPENMPS_INTERNAL_1(rint)
OPENMPS_INTERNAL_1(round) OPENMPS_INTERNAL_1(rsqrt) OPENMPS_INTERNAL_1(sin) OPENMPS_INTERNAL_1(sinh)
OPENMPS_INTERNAL_1(sinpi) OPENMPS_INTERNAL_1(sqrt) OPENMPS_INTERNAL_1(tan) OPENMPS_INTERNAL_1(tanh)
OPENMPS_INTERNAL_1(tanpi) OPENMPS_INTERNAL_1(trunc)
OPENMPS_INTERNAL_2(atan2) OPENMPS_INTERNAL_2(divide) OPENMPS_INTERNAL_2(fmax) OPENMPS_INTERNAL_2(fmin)
OPENMPS_INTERNAL_2(fmod) OPENMPS_INTERNAL_2(nextafter) OPENMPS_INTERNAL_2(pow) OPENMPS_INTERNAL_2(powr)
OPENMPS_INTERNAL_3(fmax3) OPENMPS_INTERNAL_3(fmedian3) OPENMPS_INTERNAL_3(fmin3)
#undef OPENMPS_INTERNAL_1
#undef OPENMPS_INTERNAL_2
#undef OPENMPS_INTERNAL_3
METAL_FUNC float __metal_nextafter(float x, float y) { return metal::nextafter(x, y); }
METAL_FUNC float __metal_fma(float x, float y, float z) { return metal::fma(x, y, z); }
METAL_FUNC float __metal_frexp(float x, int* exponent) { return metal::frexp(x, *exponent); }
METAL_FUNC float __metal_frexp(float x, int& exponent) { return metal::frexp(x, exponent); }
METAL_FUNC float __metal_ldexp(float x, int k, int) { return metal::ldexp(x, k); }
METAL_FUNC float __metal_modf(float x, float& whole, int) { return metal::modf(x, whole); }
METAL_FUNC int __metal_ilogb(float x) { return metal::ilogb(x); }
METAL_FUNC int __metal_clz(uint x) { return static_cast<int>(metal::clz(x)); }
METAL_FUNC constexpr ushort __metal_get_simdgroup_size(ushort) { return 32; }

namespace metal {
template <typename T> struct __is_valid_simdgroup_type
    : bool_constant<is_arithmetic<T>::value && !is_same<openmps_detail::element_t<T>, bool>::value> {};
}  // namespace metal

#define OPENMPS_INTERNAL_SIMD(name) \
  template <typename T, typename... Rest> \
  METAL_FUNC T __metal_##name(T x, Rest... rest) { return metal::name(x, rest...); }
OPENMPS_INTERNAL_SIMD(simd_broadcast) OPENMPS_INTERNAL_SIMD(simd_shuffle) OPENMPS_INTERNAL_SIMD(simd_shuffle_xor)
OPENMPS_INTERNAL_SIMD(simd_shuffle_up) OPENMPS_INTERNAL_SIMD(simd_shuffle_down) OPENMPS_INTERNAL_SIMD(simd_shuffle_rotate_up)
OPENMPS_INTERNAL_SIMD(simd_shuffle_rotate_down) OPENMPS_INTERNAL_SIMD(simd_shuffle_and_fill_up)
OPENMPS_INTERNAL_SIMD(simd_shuffle_and_fill_down) OPENMPS_INTERNAL_SIMD(simd_sum) OPENMPS_INTERNAL_SIMD(simd_product)
OPENMPS_INTERNAL_SIMD(simd_max) OPENMPS_INTERNAL_SIMD(simd_min) OPENMPS_INTERNAL_SIMD(simd_xor)
OPENMPS_INTERNAL_SIMD(simd_prefix_inclusive_sum) OPENMPS_INTERNAL_SIMD(simd_prefix_exclusive_sum)
OPENMPS_INTERNAL_SIMD(simd_prefix_inclusive_product) OPENMPS_INTERNAL_SIMD(simd_prefix_exclusive_product)
#undef OPENMPS_INTERNAL_SIMD
METAL_FUNC float __metal_simd_xor(float x) { return as_type<float>(metal::simd_xor(as_type<uint>(x))); }  // named for all types, of use for integers
