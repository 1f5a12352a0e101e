// SPDX-License-Identifier: BSD-3-Clause
// Floating-point functions of Metal for float, half, bfloat and vectors of them; half and bfloat compute in
// float and round once. Behind <metal_math>, together with <metal_common>.
#pragma once

#include <openmps_math/integer_functions.h>
#include <openmps_math/exponential.h>
#include <openmps_math/logarithm.h>
#include <openmps_math/power.h>
#include <openmps_math/rounding.h>
#include <openmps_math/trigonometric.h>

#define MAXFLOAT 3.40282347e+38f
#define HUGE_VALF __builtin_huge_valf()
#define INFINITY __builtin_huge_valf()
#define NAN __builtin_nanf("")
#define M_E_F 2.71828175f
#define M_LOG2E_F 1.44269502f
#define M_LOG10E_F 0.434294492f
#define M_LN2_F 0.693147182f
#define M_LN10_F 2.30258512f
#define M_PI_F 3.14159274f
#define M_PI_2_F 1.57079637f
#define M_PI_4_F 0.785398185f
#define M_1_PI_F 0.318309873f
#define M_2_PI_F 0.636619747f
#define M_2_SQRTPI_F 1.12837923f
#define M_SQRT2_F 1.41421354f
#define M_SQRT1_2_F 0.707106769f
#define MAXHALF ((half)65504.0f)
#define HUGE_VALH ((half)__builtin_huge_valf())
#define M_E_H ((half)2.71828175f)
#define M_LOG2E_H ((half)1.44269502f)
#define M_LOG10E_H ((half)0.434294492f)
#define M_LN2_H ((half)0.693147182f)
#define M_LN10_H ((half)2.30258512f)
#define M_PI_H ((half)3.14159274f)
#define M_PI_2_H ((half)1.57079637f)
#define M_PI_4_H ((half)0.785398185f)
#define M_1_PI_H ((half)0.318309873f)
#define M_2_PI_H ((half)0.636619747f)
#define M_2_SQRTPI_H ((half)1.12837923f)
#define M_SQRT2_H ((half)1.41421354f)
#define M_SQRT1_2_H ((half)0.707106769f)
#define MAXBFLOAT (::metal::bfloat::from_bits(0x7f7f))
#define HUGE_VALBF ((::metal::bfloat)__builtin_huge_valf())
#define M_E_BF ((::metal::bfloat)2.71828175f)
#define M_LOG2E_BF ((::metal::bfloat)1.44269502f)
#define M_LOG10E_BF ((::metal::bfloat)0.434294492f)
#define M_LN2_BF ((::metal::bfloat)0.693147182f)
#define M_LN10_BF ((::metal::bfloat)2.30258512f)
#define M_PI_BF ((::metal::bfloat)3.14159274f)
#define M_PI_2_BF ((::metal::bfloat)1.57079637f)
#define M_PI_4_BF ((::metal::bfloat)0.785398185f)
#define M_1_PI_BF ((::metal::bfloat)0.318309873f)
#define M_2_PI_BF ((::metal::bfloat)0.636619747f)
#define M_2_SQRTPI_BF ((::metal::bfloat)1.12837923f)
#define M_SQRT2_BF ((::metal::bfloat)1.41421354f)
#define M_SQRT1_2_BF ((::metal::bfloat)0.707106769f)
#define FLT_DIG 6
#define FLT_MANT_DIG 24
#define FLT_RADIX 2
#define FLT_MAX 3.40282347e+38f
#define FLT_MIN 1.17549435e-38f
#define FLT_EPSILON 1.1920929e-07f
#define FLT_MAX_EXP 128
#define FLT_MIN_EXP (-125)
#define FLT_MAX_10_EXP 38
#define FLT_MIN_10_EXP (-37)
#define HALF_DIG 3
#define HALF_MANT_DIG 11
#define HALF_RADIX 2
#define HALF_MAX ((half)65504.0f)
#define HALF_MIN ((half)6.10351562e-05f)
#define HALF_EPSILON ((half)0.0009765625f)
#define FP_ILOGB0 (-0x7fffffff - 1)
#define FP_ILOGBNAN (-0x7fffffff - 1)

namespace metal {

// Functions of bfloat are templates: a program that brings its own in namespace metal, as several do, means its own.
#define OPENMPS_BFLOAT_ONLY template <typename T, typename = openmps_detail::if_bfloat<T>>
#define OPENMPS_NO_TEMPLATE

#define OPENMPS_MATH_1(name)                                                                          \
  METAL_FUNC float name(float x) { return openmps_math::name(x); }                                    \
  METAL_FUNC half name(half x) { return static_cast<half>(openmps_math::name(static_cast<float>(x))); } \
  template <typename T>                                                                               \
  METAL_FUNC openmps_detail::if_bfloat<T> name(T x) { return bfloat(openmps_math::name(static_cast<float>(x))); } \
  template <typename T, int N>                                                                        \
  METAL_FUNC enable_if_t<is_floating_point<T>::value, vec<T, N>> name(vec<T, N> x) {                  \
    vec<T, N> r{};                                                                                    \
    for (int i = 0; i < N; ++i) r.data[i] = name(x.data[i]);                                          \
    return r;                                                                                         \
  }
#define OPENMPS_MATH_2(name)                                                                          \
  METAL_FUNC float name(float x, float y) { return openmps_math::name(x, y); }                        \
  METAL_FUNC half name(half x, half y) {                                                              \
    return static_cast<half>(openmps_math::name(static_cast<float>(x), static_cast<float>(y)));       \
  }                                                                                                   \
  template <typename T>                                                                               \
  METAL_FUNC openmps_detail::if_bfloat<T> name(T x, T y) {                                            \
    return bfloat(openmps_math::name(static_cast<float>(x), static_cast<float>(y)));                  \
  }                                                                                                   \
  OPENMPS_MATH_VECTOR_2(name)
// A scalar beside a vector stands for a vector of it.
#define OPENMPS_MATH_VECTOR_2(name)                                                                   \
  template <typename T, int N>                                                                        \
  METAL_FUNC enable_if_t<is_floating_point<T>::value, vec<T, N>> name(vec<T, N> x, vec<T, N> y) {     \
    vec<T, N> r{};                                                                                    \
    for (int i = 0; i < N; ++i) r.data[i] = name(x.data[i], y.data[i]);                               \
    return r;                                                                                         \
  }                                                                                                   \
  template <typename T, int N>                                                                        \
  METAL_FUNC enable_if_t<is_floating_point<T>::value, vec<T, N>> name(vec<T, N> x, openmps_detail::same<T> y) { \
    return name(x, vec<T, N>(y));                                                                     \
  }                                                                                                   \
  template <typename T, int N>                                                                        \
  METAL_FUNC enable_if_t<is_floating_point<T>::value, vec<T, N>> name(openmps_detail::same<T> x, vec<T, N> y) { \
    return name(vec<T, N>(x), y);                                                                     \
  }

#define OPENMPS_EACH_MATH_1(M)                                                                \
  M(acos) M(acosh) M(asin) M(asinh) M(atan) M(atanh) M(ceil) M(cos) M(cosh) M(cospi) M(exp)   \
  M(exp2) M(exp10) M(floor) M(fract) M(log) M(log2) M(log10) M(rint) M(round) M(rsqrt) M(sin) \
  M(sinh) M(sinpi) M(sqrt) M(tan) M(tanh) M(tanpi) M(trunc)
OPENMPS_EACH_MATH_1(OPENMPS_MATH_1)

#define OPENMPS_EACH_MATH_2(M) M(atan2) M(fmod) M(pow) M(powr)
OPENMPS_EACH_MATH_2(OPENMPS_MATH_2)

// These work on the type itself.
#define OPENMPS_MATH_OWN(HEAD, T, U)                                                                        \
  HEAD METAL_FUNC constexpr T fabs(T x) {                                                                  \
    return __builtin_bit_cast(T, static_cast<U>(__builtin_bit_cast(U, x) & static_cast<U>(static_cast<U>(~static_cast<U>(0)) >> 1))); \
  }                                                                                                   \
  HEAD METAL_FUNC constexpr T abs(T x) { return fabs(x); }                                                 \
  HEAD METAL_FUNC constexpr T copysign(T x, T y) {                                                         \
    constexpr U rest = static_cast<U>(static_cast<U>(~static_cast<U>(0)) >> 1);                       \
    return __builtin_bit_cast(T, static_cast<U>((__builtin_bit_cast(U, x) & rest) |                   \
                                                (__builtin_bit_cast(U, y) & static_cast<U>(~rest)))); \
  }                                                                                                   \
  HEAD METAL_FUNC constexpr T fmax(T x, T y) { return y != y ? x : x >= y ? x : y; }                       \
  HEAD METAL_FUNC constexpr T fmin(T x, T y) { return y != y ? x : x <= y ? x : y; }                       \
  HEAD METAL_FUNC constexpr T max(T x, T y) { return fmax(x, y); }                                         \
  HEAD METAL_FUNC constexpr T min(T x, T y) { return fmin(x, y); }                                         \
  HEAD METAL_FUNC constexpr T fmax3(T x, T y, T z) { return fmax(x, fmax(y, z)); }                         \
  HEAD METAL_FUNC constexpr T fmin3(T x, T y, T z) { return fmin(x, fmin(y, z)); }                         \
  HEAD METAL_FUNC constexpr T max3(T x, T y, T z) { return fmax(x, fmax(y, z)); }                          \
  HEAD METAL_FUNC constexpr T min3(T x, T y, T z) { return fmin(x, fmin(y, z)); }                          \
  HEAD METAL_FUNC constexpr T fmedian3(T x, T y, T z) { return fmax(fmin(x, y), fmin(fmax(x, y), z)); }    \
  HEAD METAL_FUNC constexpr T median3(T x, T y, T z) { return fmedian3(x, y, z); }                         \
  HEAD METAL_FUNC constexpr T fdim(T x, T y) {                                                             \
    return x > y ? static_cast<T>(x - y) : x <= y ? static_cast<T>(0.0f) : static_cast<T>(x + y);     \
  }                                                                                                   \
  HEAD METAL_FUNC constexpr T divide(T x, T y) { return static_cast<T>(x / y); }                           \
  HEAD METAL_FUNC constexpr T clamp(T x, T low, T high) { return fmin(fmax(x, low), high); }               \
  HEAD METAL_FUNC constexpr T saturate(T x) { return fmin(fmax(x, static_cast<T>(0.0f)), static_cast<T>(1.0f)); }
OPENMPS_MATH_OWN(OPENMPS_NO_TEMPLATE, float, uint)
OPENMPS_MATH_OWN(OPENMPS_NO_TEMPLATE, half, ushort)
OPENMPS_MATH_OWN(OPENMPS_BFLOAT_ONLY, T, ushort)
#undef OPENMPS_MATH_OWN

#define OPENMPS_MATH_VECTOR_1(name)                                                                   \
  template <typename T, int N>                                                                        \
  METAL_FUNC enable_if_t<is_floating_point<T>::value, vec<T, N>> name(vec<T, N> x) {                  \
    vec<T, N> r{};                                                                                    \
    for (int i = 0; i < N; ++i) r.data[i] = name(x.data[i]);                                          \
    return r;                                                                                         \
  }
OPENMPS_MATH_VECTOR_1(fabs)
OPENMPS_MATH_VECTOR_1(saturate)
OPENMPS_MATH_VECTOR_2(copysign)
OPENMPS_MATH_VECTOR_2(fmax)
OPENMPS_MATH_VECTOR_2(fmin)
OPENMPS_MATH_VECTOR_2(fdim)
OPENMPS_MATH_VECTOR_2(divide)

METAL_FUNC float fma(float a, float b, float c) { return openmps_math::fma(a, b, c); }
// The double sum of the exact product is rounded to odd on its way through float, so that the last rounding
// is the only one.
METAL_FUNC float openmps_odd_sum(float a, float b, float c) {
  double sum = static_cast<double>(a) * static_cast<double>(b) + static_cast<double>(c);
  float nearest = static_cast<float>(sum);
  double error = sum - static_cast<double>(nearest);
  uint bits = as_type<uint>(nearest);
  bool inexact = error != static_cast<double>(0.0f) && (bits & 0x7f800000u) != 0x7f800000u;
  bool grows = (error > static_cast<double>(0.0f)) == (nearest > 0.0f);
  return as_type<float>(inexact && (bits & 1u) == 0u ? (grows ? bits + 1u : bits - 1u) : bits);
}
METAL_FUNC half fma(half a, half b, half c) {
  return static_cast<half>(openmps_odd_sum(static_cast<float>(a), static_cast<float>(b), static_cast<float>(c)));
}
OPENMPS_BFLOAT_ONLY
METAL_FUNC T fma(T a, T b, T c) {
  return bfloat(openmps_odd_sum(static_cast<float>(a), static_cast<float>(b), static_cast<float>(c)));
}
#define OPENMPS_MATH_VECTOR_3(name)                                                                   \
  template <typename T, int N>                                                                        \
  METAL_FUNC enable_if_t<is_floating_point<T>::value, vec<T, N>> name(vec<T, N> x, vec<T, N> y, vec<T, N> z) { \
    vec<T, N> r{};                                                                                    \
    for (int i = 0; i < N; ++i) r.data[i] = name(x.data[i], y.data[i], z.data[i]);                    \
    return r;                                                                                         \
  }
OPENMPS_MATH_VECTOR_3(fma)
// Scalars beside vectors stand for vectors of them.
template <typename T, int N>
METAL_FUNC vec<T, N> fma(vec<T, N> x, openmps_detail::same<T> y, vec<T, N> z) { return fma(x, vec<T, N>(y), z); }
template <typename T, int N>
METAL_FUNC vec<T, N> fma(openmps_detail::same<T> x, vec<T, N> y, vec<T, N> z) { return fma(vec<T, N>(x), y, z); }
template <typename T, int N>
METAL_FUNC vec<T, N> fma(vec<T, N> x, vec<T, N> y, openmps_detail::same<T> z) { return fma(x, y, vec<T, N>(z)); }
template <typename T, int N>
METAL_FUNC vec<T, N> fma(vec<T, N> x, openmps_detail::same<T> y, openmps_detail::same<T> z) { return fma(x, vec<T, N>(y), vec<T, N>(z)); }
OPENMPS_MATH_VECTOR_3(fmax3)
OPENMPS_MATH_VECTOR_3(fmin3)
OPENMPS_MATH_VECTOR_3(fmedian3)

// Functions with a second result or an integer operand.
METAL_FUNC float modf(float x, float& integral) { return openmps_math::modf(x, integral); }
METAL_FUNC float sincos(float x, float& cosine) { return openmps_math::sincos(x, cosine); }
METAL_FUNC float frexp(float x, int& exponent) { return openmps_math::frexp(x, exponent); }
METAL_FUNC float ldexp(float x, int k) { return openmps_math::ldexp(x, k); }
METAL_FUNC int ilogb(float x) { return openmps_math::ilogb(x); }
METAL_FUNC float nextafter(float x, float y) { return openmps_math::nextafter(x, y); }
#define OPENMPS_MATH_SMALL(HEAD, T)                                                                         \
  HEAD METAL_FUNC T modf(T x, T& integral) {                                                        \
    float whole;                                                                                      \
    float fraction = openmps_math::modf(static_cast<float>(x), whole);                                \
    integral = static_cast<T>(whole);                                                                 \
    return static_cast<T>(fraction);                                                                  \
  }                                                                                                   \
  HEAD METAL_FUNC T sincos(T x, T& cosine) {                                                        \
    float c;                                                                                          \
    float s = openmps_math::sincos(static_cast<float>(x), c);                                         \
    cosine = static_cast<T>(c);                                                                       \
    return static_cast<T>(s);                                                                         \
  }                                                                                                   \
  HEAD METAL_FUNC T frexp(T x, int& exponent) { return static_cast<T>(openmps_math::frexp(static_cast<float>(x), exponent)); } \
  HEAD METAL_FUNC int ilogb(T x) { return openmps_math::ilogb(static_cast<float>(x)); }
OPENMPS_MATH_SMALL(OPENMPS_NO_TEMPLATE, half)
OPENMPS_MATH_SMALL(OPENMPS_BFLOAT_ONLY, T)
#undef OPENMPS_MATH_SMALL
// Out of float's range before the one rounding only where the result is 0 or infinite in half too; bfloat
// has float's range, and its subnormals are rounded from float's exact ones or below half of the smallest.
METAL_FUNC half ldexp(half x, int k) { return static_cast<half>(openmps_math::ldexp(static_cast<float>(x), k)); }
OPENMPS_BFLOAT_ONLY
METAL_FUNC T ldexp(T x, int k) { return bfloat(openmps_math::ldexp(static_cast<float>(x), k)); }

template <typename T, int N>
METAL_FUNC vec<T, N> modf(vec<T, N> x, vec<T, N>& integral) {
  vec<T, N> r{};
  for (int i = 0; i < N; ++i) r.data[i] = modf(x.data[i], integral.data[i]);
  return r;
}
template <typename T, int N>
METAL_FUNC vec<T, N> sincos(vec<T, N> x, vec<T, N>& cosine) {
  vec<T, N> r{};
  for (int i = 0; i < N; ++i) r.data[i] = sincos(x.data[i], cosine.data[i]);
  return r;
}
template <typename T, int N>
METAL_FUNC vec<T, N> frexp(vec<T, N> x, vec<int, N>& exponent) {
  vec<T, N> r{};
  for (int i = 0; i < N; ++i) r.data[i] = frexp(x.data[i], exponent.data[i]);
  return r;
}
template <typename T, int N>
METAL_FUNC vec<T, N> ldexp(vec<T, N> x, vec<int, N> k) {
  vec<T, N> r{};
  for (int i = 0; i < N; ++i) r.data[i] = ldexp(x.data[i], k.data[i]);
  return r;
}
template <typename T, int N>
METAL_FUNC vec<int, N> ilogb(vec<T, N> x) {
  vec<int, N> r{};
  for (int i = 0; i < N; ++i) r.data[i] = ilogb(x.data[i]);
  return r;
}
OPENMPS_MATH_VECTOR_2(nextafter)

#undef OPENMPS_MATH_1
#undef OPENMPS_MATH_2
#undef OPENMPS_MATH_VECTOR_1
#undef OPENMPS_MATH_VECTOR_2
#undef OPENMPS_MATH_VECTOR_3

}  // namespace metal
