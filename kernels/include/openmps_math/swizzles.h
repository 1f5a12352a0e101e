// SPDX-License-Identifier: BSD-3-Clause
// Macros that list the swizzles of vectors of 2, 3 and 4 elements, in xyzw and rgba letters, as properties.
// A setter gives its value back, for chains of assignments. Included by metal_vector alone. Each S* macro gives one swizzle; each L* macro completes a list.
#pragma once

// NE_ij(text) is the text where i and j differ: only swizzles without repetition can be written.
#define OPENMPS_NE_00(...)
#define OPENMPS_NE_01(...) __VA_ARGS__
#define OPENMPS_NE_02(...) __VA_ARGS__
#define OPENMPS_NE_03(...) __VA_ARGS__
#define OPENMPS_NE_10(...) __VA_ARGS__
#define OPENMPS_NE_11(...)
#define OPENMPS_NE_12(...) __VA_ARGS__
#define OPENMPS_NE_13(...) __VA_ARGS__
#define OPENMPS_NE_20(...) __VA_ARGS__
#define OPENMPS_NE_21(...) __VA_ARGS__
#define OPENMPS_NE_22(...)
#define OPENMPS_NE_23(...) __VA_ARGS__
#define OPENMPS_NE_30(...) __VA_ARGS__
#define OPENMPS_NE_31(...) __VA_ARGS__
#define OPENMPS_NE_32(...) __VA_ARGS__
#define OPENMPS_NE_33(...)
#define OPENMPS_DISTINCT3(A, B, C, ...) OPENMPS_NE_##A##B(OPENMPS_NE_##A##C(OPENMPS_NE_##B##C(__VA_ARGS__)))
#define OPENMPS_DISTINCT4(A, B, C, D, ...) \
  OPENMPS_NE_##A##B(OPENMPS_NE_##A##C(OPENMPS_NE_##A##D(OPENMPS_NE_##B##C(OPENMPS_NE_##B##D(OPENMPS_NE_##C##D(__VA_ARGS__))))))

#define OPENMPS_S1(a, ra, A)                                                                  \
  constexpr T get_##a() const { return data[A]; }                                             \
  constexpr T put_##a(T s) { return data[A] = s; }                                            \
  __declspec(property(get = get_##a, put = put_##a)) T a;                                     \
  __declspec(property(get = get_##a, put = put_##a)) T ra;
#define OPENMPS_S2(a, ra, A, b, rb, B)                                                        \
  constexpr V2 get_##a##b() const { return V2(data[A], data[B]); }                            \
  OPENMPS_NE_##A##B(constexpr const V2& put_##a##b(const V2& v) { return place<A, B>(v); })                      \
  __declspec(property(get = get_##a##b OPENMPS_NE_##A##B(, put = put_##a##b))) V2 a##b;       \
  __declspec(property(get = get_##a##b OPENMPS_NE_##A##B(, put = put_##a##b))) V2 ra##rb;
#define OPENMPS_S3(a, ra, A, b, rb, B, c, rc, C)                                              \
  constexpr V3 get_##a##b##c() const { return V3(data[A], data[B], data[C]); }                \
  OPENMPS_DISTINCT3(A, B, C, constexpr const V3& put_##a##b##c(const V3& v) { return place<A, B, C>(v); })       \
  __declspec(property(get = get_##a##b##c OPENMPS_DISTINCT3(A, B, C, , put = put_##a##b##c))) V3 a##b##c; \
  __declspec(property(get = get_##a##b##c OPENMPS_DISTINCT3(A, B, C, , put = put_##a##b##c))) V3 ra##rb##rc;
#define OPENMPS_S4(a, ra, A, b, rb, B, c, rc, C, d, rd, D)                                    \
  constexpr V4 get_##a##b##c##d() const { return V4(data[A], data[B], data[C], data[D]); }    \
  OPENMPS_DISTINCT4(A, B, C, D, constexpr const V4& put_##a##b##c##d(const V4& v) { return place<A, B, C, D>(v); }) \
  __declspec(property(get = get_##a##b##c##d OPENMPS_DISTINCT4(A, B, C, D, , put = put_##a##b##c##d))) V4 a##b##c##d; \
  __declspec(property(get = get_##a##b##c##d OPENMPS_DISTINCT4(A, B, C, D, , put = put_##a##b##c##d))) V4 ra##rb##rc##rd;

// Of two components.
#define OPENMPS_L2_1() OPENMPS_S1(x, r, 0) OPENMPS_S1(y, g, 1)
#define OPENMPS_L2_2(...) OPENMPS_S2(__VA_ARGS__, x, r, 0) OPENMPS_S2(__VA_ARGS__, y, g, 1)
#define OPENMPS_L2_3(...) OPENMPS_S3(__VA_ARGS__, x, r, 0) OPENMPS_S3(__VA_ARGS__, y, g, 1)
#define OPENMPS_L2_4(...) OPENMPS_S4(__VA_ARGS__, x, r, 0) OPENMPS_S4(__VA_ARGS__, y, g, 1)
#define OPENMPS_L2_23(...) OPENMPS_L2_3(__VA_ARGS__, x, r, 0) OPENMPS_L2_3(__VA_ARGS__, y, g, 1)
#define OPENMPS_L2_24(...) OPENMPS_L2_4(__VA_ARGS__, x, r, 0) OPENMPS_L2_4(__VA_ARGS__, y, g, 1)
#define OPENMPS_L2_34(...) OPENMPS_L2_24(__VA_ARGS__, x, r, 0) OPENMPS_L2_24(__VA_ARGS__, y, g, 1)
#define OPENMPS_SWIZZLES_OF_2 OPENMPS_L2_1() \
  OPENMPS_L2_2(x, r, 0) OPENMPS_L2_2(y, g, 1) \
  OPENMPS_L2_23(x, r, 0) OPENMPS_L2_23(y, g, 1) \
  OPENMPS_L2_34(x, r, 0) OPENMPS_L2_34(y, g, 1)

// Of three.
#define OPENMPS_L3_1() OPENMPS_S1(x, r, 0) OPENMPS_S1(y, g, 1) OPENMPS_S1(z, b, 2)
#define OPENMPS_L3_2(...) OPENMPS_S2(__VA_ARGS__, x, r, 0) OPENMPS_S2(__VA_ARGS__, y, g, 1) OPENMPS_S2(__VA_ARGS__, z, b, 2)
#define OPENMPS_L3_3(...) OPENMPS_S3(__VA_ARGS__, x, r, 0) OPENMPS_S3(__VA_ARGS__, y, g, 1) OPENMPS_S3(__VA_ARGS__, z, b, 2)
#define OPENMPS_L3_4(...) OPENMPS_S4(__VA_ARGS__, x, r, 0) OPENMPS_S4(__VA_ARGS__, y, g, 1) OPENMPS_S4(__VA_ARGS__, z, b, 2)
#define OPENMPS_L3_23(...) OPENMPS_L3_3(__VA_ARGS__, x, r, 0) OPENMPS_L3_3(__VA_ARGS__, y, g, 1) OPENMPS_L3_3(__VA_ARGS__, z, b, 2)
#define OPENMPS_L3_24(...) OPENMPS_L3_4(__VA_ARGS__, x, r, 0) OPENMPS_L3_4(__VA_ARGS__, y, g, 1) OPENMPS_L3_4(__VA_ARGS__, z, b, 2)
#define OPENMPS_L3_34(...) OPENMPS_L3_24(__VA_ARGS__, x, r, 0) OPENMPS_L3_24(__VA_ARGS__, y, g, 1) OPENMPS_L3_24(__VA_ARGS__, z, b, 2)
#define OPENMPS_SWIZZLES_OF_3 OPENMPS_L3_1() \
  OPENMPS_L3_2(x, r, 0) OPENMPS_L3_2(y, g, 1) OPENMPS_L3_2(z, b, 2) \
  OPENMPS_L3_23(x, r, 0) OPENMPS_L3_23(y, g, 1) OPENMPS_L3_23(z, b, 2) \
  OPENMPS_L3_34(x, r, 0) OPENMPS_L3_34(y, g, 1) OPENMPS_L3_34(z, b, 2)

// Of four.
#define OPENMPS_L4_1() OPENMPS_S1(x, r, 0) OPENMPS_S1(y, g, 1) OPENMPS_S1(z, b, 2) OPENMPS_S1(w, a, 3)
#define OPENMPS_L4_2(...) OPENMPS_S2(__VA_ARGS__, x, r, 0) OPENMPS_S2(__VA_ARGS__, y, g, 1) \
  OPENMPS_S2(__VA_ARGS__, z, b, 2) OPENMPS_S2(__VA_ARGS__, w, a, 3)
#define OPENMPS_L4_3(...) OPENMPS_S3(__VA_ARGS__, x, r, 0) OPENMPS_S3(__VA_ARGS__, y, g, 1) \
  OPENMPS_S3(__VA_ARGS__, z, b, 2) OPENMPS_S3(__VA_ARGS__, w, a, 3)
#define OPENMPS_L4_4(...) OPENMPS_S4(__VA_ARGS__, x, r, 0) OPENMPS_S4(__VA_ARGS__, y, g, 1) \
  OPENMPS_S4(__VA_ARGS__, z, b, 2) OPENMPS_S4(__VA_ARGS__, w, a, 3)
#define OPENMPS_L4_23(...) OPENMPS_L4_3(__VA_ARGS__, x, r, 0) OPENMPS_L4_3(__VA_ARGS__, y, g, 1) \
  OPENMPS_L4_3(__VA_ARGS__, z, b, 2) OPENMPS_L4_3(__VA_ARGS__, w, a, 3)
#define OPENMPS_L4_24(...) OPENMPS_L4_4(__VA_ARGS__, x, r, 0) OPENMPS_L4_4(__VA_ARGS__, y, g, 1) \
  OPENMPS_L4_4(__VA_ARGS__, z, b, 2) OPENMPS_L4_4(__VA_ARGS__, w, a, 3)
#define OPENMPS_L4_34(...) OPENMPS_L4_24(__VA_ARGS__, x, r, 0) OPENMPS_L4_24(__VA_ARGS__, y, g, 1) \
  OPENMPS_L4_24(__VA_ARGS__, z, b, 2) OPENMPS_L4_24(__VA_ARGS__, w, a, 3)
#define OPENMPS_SWIZZLES_OF_4 OPENMPS_L4_1() \
  OPENMPS_L4_2(x, r, 0) OPENMPS_L4_2(y, g, 1) OPENMPS_L4_2(z, b, 2) OPENMPS_L4_2(w, a, 3) \
  OPENMPS_L4_23(x, r, 0) OPENMPS_L4_23(y, g, 1) OPENMPS_L4_23(z, b, 2) OPENMPS_L4_23(w, a, 3) \
  OPENMPS_L4_34(x, r, 0) OPENMPS_L4_34(y, g, 1) OPENMPS_L4_34(z, b, 2) OPENMPS_L4_34(w, a, 3)
