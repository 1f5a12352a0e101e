// SPDX-License-Identifier: BSD-3-Clause
//
// reduce_hash: the exclusive or of all elements, each widened first: floats to the 64 bits of the double that equals them, integers to int64.

#include "reduce.h"

// Exact, without doubles. A NaN becomes quiet and keeps its payload, as a processor's conversion does.
inline ulong double_bits(float x) {
  const uint bits = as_type<uint>(x), magnitude = bits & 0x7fffffffu;
  const ulong sign = ulong(bits >> 31) << 63;
  // Subnormal: an integer times 2^-149.
  const ulong subnormal = (ulong(as_type<uint>(float(int(magnitude & 0x7fffffu)))) << 29) + (ulong(1023 - 127 - 149) << 52);
  const ulong normal = (ulong(magnitude) << 29) + (ulong(1023 - 127) << 52);
  const ulong special = (ulong(magnitude) << 29) | 0x7ff0000000000000ul | (magnitude > 0x7f800000u ? 0x0008000000000000ul : 0ul);
  const ulong small = magnitude == 0 ? 0ul : subnormal;
  return sign | (magnitude >= 0x7f800000u ? special : magnitude < 0x00800000u ? small : normal);
}
inline ulong wide_bits(float x) { return double_bits(x); }
inline ulong wide_bits(half x) { return double_bits(float(x)); }
inline ulong wide_bits(bfloat x) { return double_bits(as_type<float>(uint(as_type<ushort>(x)) << 16)); }
inline ulong wide_bits(uchar x) { return x; }
inline ulong wide_bits(char x) { return ulong(long(x)); }
inline ulong wide_bits(short x) { return ulong(long(x)); }
inline ulong wide_bits(int x) { return ulong(long(x)); }
inline ulong wide_bits(long x) { return ulong(x); }

template <typename T>
struct hash_xor {
  typedef T in;
  typedef ulong lane;
  typedef ulong acc;
  typedef ulong out;
  static ulong identity() { return 0; }
  static ulong empty() { return 0; }
  static ulong load(T x, constant mps_reduce_arguments &) { return wide_bits(x); }
  static ulong combine(ulong a, ulong b) { return a ^ b; }
  static ulong merge(ulong a, ulong b) { return a ^ b; }
  static ulong widen(ulong a) { return a; }
  static ulong finish(ulong a, constant mps_reduce_arguments &) { return a; }
};

// By the bytes of bool: any but 0 is true.
struct hash_truths : hash_xor<uchar> {
  static ulong load(uchar x, constant mps_reduce_arguments &) { return x != 0 ? 1 : 0; }
};

#define HASH_KERNELS(suffix, type) REDUCE_KERNELS(hash, suffix, type, ulong, ulong, hash_xor<type>)
REDUCE_KERNELS(hash, bool, uchar, ulong, ulong, hash_truths)
HASH_KERNELS(u8, uchar)
HASH_KERNELS(i8, char)
HASH_KERNELS(i16, short)
HASH_KERNELS(i32, int)
HASH_KERNELS(i64, long)
HASH_KERNELS(f16, half)
HASH_KERNELS(bf16, bfloat)
HASH_KERNELS(f32, float)
