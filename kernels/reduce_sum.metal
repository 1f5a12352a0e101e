// SPDX-License-Identifier: BSD-3-Clause
//
// reduce_sum: sum, mean (a divisor), nansum, prod, and the count of nonzero elements with its kin any and all.
// Floating types add up in float, integers in 64 bits with wrap-around; complex values per component.

#include "reduce.h"

template <typename T>
struct sum_float {
  typedef T in;
  typedef float lane;
  typedef float acc;
  typedef T out;
  static float identity() { return 0.0f; }
  static float empty() { return 0.0f; }
  static float load(T x, constant mps_reduce_arguments &) { return float(x); }
  static float combine(float a, float b) { return a + b; }
  static float merge(float a, float b) { return a + b; }
  static float widen(float a) { return a; }
  static T finish(float a, constant mps_reduce_arguments &args) { return T(a / args.divisor); }
};

template <typename T>
struct nansum_float : sum_float<T> {
  static float load(T x, constant mps_reduce_arguments &) {
    float v = float(x);
    return v == v ? v : 0.0f;
  }
};

template <typename T>
struct product_float : sum_float<T> {
  static float identity() { return 1.0f; }
  static float empty() { return 1.0f; }
  static float combine(float a, float b) { return a * b; }
  static float merge(float a, float b) { return a * b; }
  static T finish(float a, constant mps_reduce_arguments &) { return T(a); }
};

// Unsigned inside: wrap-around is defined there.
template <typename T>
struct sum_integer {
  typedef T in;
  typedef ulong lane;
  typedef ulong acc;
  typedef long out;
  static ulong identity() { return 0; }
  static ulong empty() { return 0; }
  static ulong load(T x, constant mps_reduce_arguments &) { return ulong(long(x)); }
  static ulong combine(ulong a, ulong b) { return a + b; }
  static ulong merge(ulong a, ulong b) { return a + b; }
  static ulong widen(ulong a) { return a; }
  static long finish(ulong a, constant mps_reduce_arguments &) { return long(a); }
};

// By the bytes of bool: any but 0 is true.
struct sum_truths : sum_integer<uchar> {
  static ulong load(uchar x, constant mps_reduce_arguments &) { return x != 0 ? 1 : 0; }
};

template <typename T>
struct product_integer : sum_integer<T> {
  static ulong identity() { return 1; }
  static ulong empty() { return 1; }
  static ulong combine(ulong a, ulong b) { return a * b; }
  static ulong merge(ulong a, ulong b) { return a * b; }
};

struct sum_complex {
  typedef float2 in;
  typedef float2 lane;
  typedef float2 acc;
  typedef float2 out;
  static float2 identity() { return float2(0.0f, 0.0f); }
  static float2 empty() { return float2(0.0f, 0.0f); }
  static float2 load(float2 x, constant mps_reduce_arguments &) { return x; }
  static float2 combine(float2 a, float2 b) { return float2(a.x + b.x, a.y + b.y); }
  static float2 merge(float2 a, float2 b) { return combine(a, b); }
  static float2 widen(float2 a) { return a; }
  static float2 finish(float2 a, constant mps_reduce_arguments &args) { return float2(a.x / args.divisor, a.y / args.divisor); }
};

struct product_complex : sum_complex {
  static float2 identity() { return float2(1.0f, 0.0f); }
  static float2 empty() { return float2(1.0f, 0.0f); }
  static float2 combine(float2 a, float2 b) { return float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
  static float2 merge(float2 a, float2 b) { return combine(a, b); }
  static float2 finish(float2 a, constant mps_reduce_arguments &) { return a; }
};

// Is an element nonzero? By its bits, so that one kernel serves all types of a width.
inline int is_nonzero(uchar x) { return x != 0; }
inline int is_nonzero(ushort x) { return x != 0; }
inline int is_nonzero(uint x) { return x != 0; }
inline int is_nonzero(ulong x) { return x != 0; }
inline int is_nonzero(float x) { return x != 0.0f; }
inline int is_nonzero(short x) { return (x & 0x7fff) != 0; } // half and bfloat: all bits but the sign
inline int is_nonzero(float2 x) { return x.x != 0.0f || x.y != 0.0f; }

template <typename T, typename Out>
struct count_nonzero {
  typedef T in;
  typedef int lane;
  typedef long acc;
  typedef Out out;
  static int identity() { return 0; }
  static long empty() { return 0; }
  static int load(T x, constant mps_reduce_arguments &) { return is_nonzero(x); }
  static int combine(int a, int b) { return a + b; }
  static long merge(long a, long b) { return a + b; }
  static long widen(int a) { return a; }
  static Out finish(long a, constant mps_reduce_arguments &args) {
    if (args.mode == MPS_REDUCE_ANY) return Out(a != 0);
    if (args.mode == MPS_REDUCE_ALL) return Out(a == args.reduce_count);
    return Out(a);
  }
};

REDUCE_KERNELS(sum, f32, float, float, float, sum_float<float>)
REDUCE_KERNELS(sum, f16, half, float, half, sum_float<half>)
REDUCE_KERNELS(sum, bf16, bfloat, float, bfloat, sum_float<bfloat>)
REDUCE_KERNELS(sum, c64, float2, float2, float2, sum_complex)
REDUCE_KERNELS(sum, bool, uchar, ulong, long, sum_truths)
REDUCE_KERNELS(sum, u8, uchar, ulong, long, sum_integer<uchar>)
REDUCE_KERNELS(sum, i8, char, ulong, long, sum_integer<char>)
REDUCE_KERNELS(sum, i16, short, ulong, long, sum_integer<short>)
REDUCE_KERNELS(sum, i32, int, ulong, long, sum_integer<int>)
REDUCE_KERNELS(sum, i64, long, ulong, long, sum_integer<long>)

REDUCE_KERNELS(nansum, f32, float, float, float, nansum_float<float>)
REDUCE_KERNELS(nansum, f16, half, float, half, nansum_float<half>)
REDUCE_KERNELS(nansum, bf16, bfloat, float, bfloat, nansum_float<bfloat>)

REDUCE_KERNELS(prod, f32, float, float, float, product_float<float>)
REDUCE_KERNELS(prod, f16, half, float, half, product_float<half>)
REDUCE_KERNELS(prod, bf16, bfloat, float, bfloat, product_float<bfloat>)
REDUCE_KERNELS(prod, c64, float2, float2, float2, product_complex)
REDUCE_KERNELS(prod, u8, uchar, ulong, long, product_integer<uchar>)
REDUCE_KERNELS(prod, i8, char, ulong, long, product_integer<char>)
REDUCE_KERNELS(prod, i16, short, ulong, long, product_integer<short>)
REDUCE_KERNELS(prod, i32, int, ulong, long, product_integer<int>)
REDUCE_KERNELS(prod, i64, long, ulong, long, product_integer<long>)

// Suffix: the bits that are looked at. "truth" kernels write one byte, "count" kernels an int64.
#define COUNT_KERNELS(suffix, type) \
  REDUCE_KERNELS(truth, suffix, type, long, uchar, count_nonzero<type, uchar>) \
  REDUCE_KERNELS(count, suffix, type, long, long, count_nonzero<type, long>)
COUNT_KERNELS(b8, uchar)
COUNT_KERNELS(b16, ushort)
COUNT_KERNELS(b32, uint)
COUNT_KERNELS(b64, ulong)
COUNT_KERNELS(h16, short)
COUNT_KERNELS(f32, float)
COUNT_KERNELS(c64, float2)
