// SPDX-License-Identifier: BSD-3-Clause
// Integer functions of Metal for scalars and vectors: bit counting and fields, saturation, high products.
// Behind <metal_integer>; min, max, abs, clamp of vectors are in metal_common.
#pragma once

#include <metal_vector>

namespace metal {

// The integer types; the functions below are overloads, not templates, so that mixed operands are as
// ambiguous as they are in Metal.
#define OPENMPS_EACH_INTEGER(M) \
  M(char) M(signed char) M(uchar) M(short) M(ushort) M(int) M(uint) M(long) M(ulong)

#define OPENMPS_INTEGER_SCALARS(T)                                                                   \
  METAL_FUNC constexpr T max(T a, T b) { return a < b ? b : a; }                                     \
  METAL_FUNC constexpr T min(T a, T b) { return b < a ? b : a; }                                     \
  METAL_FUNC constexpr T abs(T x) {                                                                  \
    return static_cast<T>(x < 0 ? static_cast<make_unsigned_t<T>>(0) - static_cast<make_unsigned_t<T>>(x) : x); \
  }                                                                                                  \
  METAL_FUNC constexpr make_unsigned_t<T> absdiff(T a, T b) {                                        \
    return static_cast<make_unsigned_t<T>>(a < b ? static_cast<make_unsigned_t<T>>(b) - static_cast<make_unsigned_t<T>>(a) \
                                                 : static_cast<make_unsigned_t<T>>(a) - static_cast<make_unsigned_t<T>>(b)); \
  }                                                                                                  \
  METAL_FUNC constexpr T clamp(T x, T low, T high) { return min(max(x, low), high); }                \
  METAL_FUNC constexpr T max3(T a, T b, T c) { return max(a, max(b, c)); }                           \
  METAL_FUNC constexpr T min3(T a, T b, T c) { return min(a, min(b, c)); }                           \
  METAL_FUNC constexpr T median3(T a, T b, T c) { return max(min(a, b), min(max(a, b), c)); }        \
  METAL_FUNC constexpr T popcount(T x) { return static_cast<T>(__builtin_popcountg(static_cast<make_unsigned_t<T>>(x))); } \
  METAL_FUNC constexpr T clz(T x) {                                                                  \
    return static_cast<T>(__builtin_clzg(static_cast<make_unsigned_t<T>>(x), static_cast<int>(8 * sizeof(T)))); \
  }                                                                                                  \
  METAL_FUNC constexpr T ctz(T x) {                                                                  \
    return static_cast<T>(__builtin_ctzg(static_cast<make_unsigned_t<T>>(x), static_cast<int>(8 * sizeof(T)))); \
  }                                                                                                  \
  METAL_FUNC T addsat(T a, T b) { return __builtin_elementwise_add_sat(a, b); }                      \
  METAL_FUNC T subsat(T a, T b) { return __builtin_elementwise_sub_sat(a, b); }                      \
  METAL_FUNC constexpr T hadd(T a, T b) { return static_cast<T>((a & b) + ((a ^ b) >> 1)); }         \
  METAL_FUNC constexpr T rhadd(T a, T b) { return static_cast<T>((a | b) - ((a ^ b) >> 1)); }        \
  METAL_FUNC constexpr T rotate(T x, T count) {                                                      \
    typedef make_unsigned_t<T> U;                                                                    \
    unsigned bits = 8 * sizeof(T), left = static_cast<unsigned>(static_cast<U>(count)) & (bits - 1); \
    return static_cast<T>(static_cast<U>(static_cast<U>(x) << left) | static_cast<U>(static_cast<U>(x) >> ((bits - left) & (bits - 1)))); \
  }                                                                                                  \
  METAL_FUNC constexpr T extract_bits(T x, uint offset, uint count) {                                \
    typedef make_unsigned_t<T> U;                                                                    \
    uint bits = 8 * sizeof(T);                                                                       \
    if (count == 0) return 0;                                                                        \
    U top = static_cast<U>(static_cast<U>(x) << (bits - count - offset));                            \
    return static_cast<T>(static_cast<T>(top) >> (bits - count));                                    \
  }                                                                                                  \
  METAL_FUNC constexpr T insert_bits(T base, T insert, uint offset, uint count) {                    \
    typedef make_unsigned_t<T> U;                                                                    \
    uint bits = 8 * sizeof(T);                                                                       \
    if (count == 0) return base;                                                                     \
    U mask = static_cast<U>(static_cast<U>(static_cast<U>(~static_cast<U>(0)) >> (bits - count)) << offset); \
    return static_cast<T>((static_cast<U>(base) & static_cast<U>(~mask)) | (static_cast<U>(static_cast<U>(insert) << offset) & mask)); \
  }
OPENMPS_EACH_INTEGER(OPENMPS_INTEGER_SCALARS)
#undef OPENMPS_INTEGER_SCALARS

#define OPENMPS_REVERSE(T, builtin) \
  METAL_FUNC constexpr T reverse_bits(T x) { return static_cast<T>(builtin(static_cast<make_unsigned_t<T>>(x))); }
OPENMPS_REVERSE(char, __builtin_bitreverse8)
OPENMPS_REVERSE(signed char, __builtin_bitreverse8)
OPENMPS_REVERSE(uchar, __builtin_bitreverse8)
OPENMPS_REVERSE(short, __builtin_bitreverse16)
OPENMPS_REVERSE(ushort, __builtin_bitreverse16)
OPENMPS_REVERSE(int, __builtin_bitreverse32)
OPENMPS_REVERSE(uint, __builtin_bitreverse32)
OPENMPS_REVERSE(long, __builtin_bitreverse64)
OPENMPS_REVERSE(ulong, __builtin_bitreverse64)
#undef OPENMPS_REVERSE

// High half of a product: through the type of twice the width, __int128 where no target type has it.
#define OPENMPS_MULHI(T, Wide) \
  METAL_FUNC constexpr T mulhi(T a, T b) { return static_cast<T>((static_cast<Wide>(a) * static_cast<Wide>(b)) >> (8 * sizeof(T))); }
OPENMPS_MULHI(char, int)
OPENMPS_MULHI(signed char, int)
OPENMPS_MULHI(uchar, uint)
OPENMPS_MULHI(short, int)
OPENMPS_MULHI(ushort, uint)
OPENMPS_MULHI(int, long)
OPENMPS_MULHI(uint, ulong)
__extension__ typedef __int128 openmps_int128;
__extension__ typedef unsigned __int128 openmps_uint128;
OPENMPS_MULHI(long, openmps_int128)
OPENMPS_MULHI(ulong, openmps_uint128)
#undef OPENMPS_MULHI

#define OPENMPS_MADHI(T)                                                                             \
  METAL_FUNC constexpr T madhi(T a, T b, T c) {                                                      \
    return static_cast<T>(static_cast<make_unsigned_t<T>>(mulhi(a, b)) + static_cast<make_unsigned_t<T>>(c)); \
  }
OPENMPS_EACH_INTEGER(OPENMPS_MADHI)
#undef OPENMPS_MADHI

// a * b + c held to the range of T.
#define OPENMPS_MADSAT(T, Wide)                                                       \
  METAL_FUNC constexpr T madsat(T a, T b, T c) {                                      \
    Wide sum = static_cast<Wide>(a) * static_cast<Wide>(b) + static_cast<Wide>(c);    \
    constexpr bool is_signed_type = static_cast<T>(-1) < static_cast<T>(0);           \
    constexpr Wide high = is_signed_type ? (static_cast<Wide>(1) << (8 * sizeof(T) - 1)) - 1 \
                                         : static_cast<Wide>(static_cast<T>(-1));     \
    constexpr Wide low = is_signed_type ? -high - 1 : 0;                              \
    return static_cast<T>(sum > high ? high : sum < low ? low : sum);                 \
  }
OPENMPS_MADSAT(char, int)
OPENMPS_MADSAT(signed char, int)
OPENMPS_MADSAT(uchar, int)
OPENMPS_MADSAT(short, long)
OPENMPS_MADSAT(ushort, long)
OPENMPS_MADSAT(int, long)
OPENMPS_MADSAT(uint, openmps_int128)
OPENMPS_MADSAT(long, openmps_int128)
#undef OPENMPS_MADSAT
METAL_FUNC constexpr ulong madsat(ulong a, ulong b, ulong c) {
  openmps_uint128 sum = static_cast<openmps_uint128>(a) * b + c;
  return (sum >> 64) != 0 ? ~0ul : static_cast<ulong>(sum);
}

// The operands have 24 significant bits.
METAL_FUNC constexpr int mul24(int a, int b) { return static_cast<int>(static_cast<uint>(a) * static_cast<uint>(b)); }
METAL_FUNC constexpr uint mul24(uint a, uint b) { return a * b; }
METAL_FUNC constexpr int mad24(int a, int b, int c) {
  return static_cast<int>(static_cast<uint>(a) * static_cast<uint>(b) + static_cast<uint>(c));
}
METAL_FUNC constexpr uint mad24(uint a, uint b, uint c) { return a * b + c; }

#define OPENMPS_INTEGER_VECTOR_1(name)                            \
  template <typename T, int N>                                    \
  METAL_FUNC constexpr vec<T, N> name(vec<T, N> x) {              \
    vec<T, N> r{};                                                \
    for (int i = 0; i < N; ++i) r.data[i] = name(x.data[i]);      \
    return r;                                                     \
  }
#define OPENMPS_INTEGER_VECTOR_2(name)                                     \
  template <typename T, int N>                                             \
  METAL_FUNC constexpr vec<T, N> name(vec<T, N> a, vec<T, N> b) {          \
    vec<T, N> r{};                                                         \
    for (int i = 0; i < N; ++i) r.data[i] = name(a.data[i], b.data[i]);    \
    return r;                                                              \
  }                                                                        \
  template <typename T, int N>                                             \
  METAL_FUNC constexpr vec<T, N> name(vec<T, N> a, openmps_detail::same<T> b) { return name(a, vec<T, N>(b)); }
#define OPENMPS_INTEGER_VECTOR_3(name)                                                  \
  template <typename T, int N>                                                          \
  METAL_FUNC constexpr vec<T, N> name(vec<T, N> a, vec<T, N> b, vec<T, N> c) {          \
    vec<T, N> r{};                                                                      \
    for (int i = 0; i < N; ++i) r.data[i] = name(a.data[i], b.data[i], c.data[i]);      \
    return r;                                                                           \
  }
OPENMPS_INTEGER_VECTOR_1(popcount)
OPENMPS_INTEGER_VECTOR_1(clz)
OPENMPS_INTEGER_VECTOR_1(ctz)
OPENMPS_INTEGER_VECTOR_1(reverse_bits)
OPENMPS_INTEGER_VECTOR_2(addsat)
OPENMPS_INTEGER_VECTOR_2(subsat)
OPENMPS_INTEGER_VECTOR_2(hadd)
OPENMPS_INTEGER_VECTOR_2(rhadd)
OPENMPS_INTEGER_VECTOR_2(rotate)
OPENMPS_INTEGER_VECTOR_2(mulhi)
OPENMPS_INTEGER_VECTOR_2(mul24)
OPENMPS_INTEGER_VECTOR_3(madhi)
OPENMPS_INTEGER_VECTOR_3(madsat)
OPENMPS_INTEGER_VECTOR_3(mad24)
#undef OPENMPS_INTEGER_VECTOR_1
#undef OPENMPS_INTEGER_VECTOR_2
#undef OPENMPS_INTEGER_VECTOR_3

template <typename T, int N>
METAL_FUNC constexpr vec<make_unsigned_t<T>, N> absdiff(vec<T, N> a, vec<T, N> b) {
  vec<make_unsigned_t<T>, N> r{};
  for (int i = 0; i < N; ++i) r.data[i] = absdiff(a.data[i], b.data[i]);
  return r;
}
template <typename T, int N>
METAL_FUNC constexpr vec<T, N> extract_bits(vec<T, N> x, uint offset, uint count) {
  vec<T, N> r{};
  for (int i = 0; i < N; ++i) r.data[i] = extract_bits(x.data[i], offset, count);
  return r;
}
template <typename T, int N>
METAL_FUNC constexpr vec<T, N> insert_bits(vec<T, N> base, vec<T, N> insert, uint offset, uint count) {
  vec<T, N> r{};
  for (int i = 0; i < N; ++i) r.data[i] = insert_bits(base.data[i], insert.data[i], offset, count);
  return r;
}

}  // namespace metal
