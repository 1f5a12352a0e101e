/* SPDX-License-Identifier: BSD-3-Clause
 *
 * dense_types: the type that a dense kernel accumulates an element type in, and its arithmetic. Integers are computed modulo 2^32 or
 * 2^64 (signed and unsigned ones alike), halves in float, bool as "or" of "and".
 */
#ifndef OPENMPS_KERNELS_DENSE_TYPES_H
#define OPENMPS_KERNELS_DENSE_TYPES_H

#include <metal_stdlib>

using namespace metal;

#define VECTORIZE _Pragma("clang loop vectorize(assume_safety)")

/* compute: the accumulator; load and store convert; conjugate does nothing to real values. */
template <typename T>
struct dense_type {
  typedef float compute;
  static float zero() { return 0.0f; }
  static float load(T value, bool) { return float(value); }
  static T store(float value) { return T(value); }
};
template <>
struct dense_type<uchar> {
  typedef uint compute;
  static uint zero() { return 0u; }
  static uint load(uchar value, bool) { return uint(value); }
  static uchar store(uint value) { return uchar(value); }
};
template <>
struct dense_type<ushort> {
  typedef uint compute;
  static uint zero() { return 0u; }
  static uint load(ushort value, bool) { return uint(value); }
  static ushort store(uint value) { return ushort(value); }
};
template <>
struct dense_type<uint> {
  typedef uint compute;
  static uint zero() { return 0u; }
  static uint load(uint value, bool) { return value; }
  static uint store(uint value) { return value; }
};
template <>
struct dense_type<ulong> {
  typedef ulong compute;
  static ulong zero() { return 0ul; }
  static ulong load(ulong value, bool) { return value; }
  static ulong store(ulong value) { return value; }
};
template <>
struct dense_type<bool> {
  typedef bool compute;
  static bool zero() { return false; }
  static bool load(bool value, bool) { return value; }
  static bool store(bool value) { return value; }
};
template <>
struct dense_type<float2> {
  typedef float2 compute;
  static float2 zero() { return float2(0.0f, 0.0f); }
  static float2 load(float2 value, bool conjugate) { return conjugate ? float2(value.x, -value.y) : value; }
  static float2 store(float2 value) { return value; }
};
template <>
struct dense_type<half2> {
  typedef float2 compute;
  static float2 zero() { return float2(0.0f, 0.0f); }
  static float2 load(half2 value, bool conjugate) {
    float y = float(value.y);
    return float2(float(value.x), conjugate ? -y : y);
  }
  static half2 store(float2 value) { return half2(half(value.x), half(value.y)); }
};

inline float multiply(float a, float b) { return a * b; }
inline uint multiply(uint a, uint b) { return a * b; }
inline ulong multiply(ulong a, ulong b) { return a * b; }
inline bool multiply(bool a, bool b) { return a && b; }
inline float2 multiply(float2 a, float2 b) { return float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }

inline float add(float a, float b) { return a + b; }
inline uint add(uint a, uint b) { return a + b; }
inline ulong add(ulong a, ulong b) { return a + b; }
inline bool add(bool a, bool b) { return a || b; }
inline float2 add(float2 a, float2 b) { return float2(a.x + b.x, a.y + b.y); }

#endif
