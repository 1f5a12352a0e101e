// SPDX-License-Identifier: BSD-3-Clause
//
// scan: cumsum, cumprod, cummax, cummin and logcumsumexp of real numbers. Complex sums are real ones of twice as many rows.

#include "scan_float.h"

template <typename Part>
struct scan_single {
  Part all;
  template <typename P>
  static scan_single load(P p, uint) {
    return scan_single{p[0]};
  }
  template <typename P>
  void store(P p, uint) const {
    p[0] = all;
  }
  template <typename P>
  static scan_single load_within(P p, uint stride) {
    return load(p, stride);
  }
  template <typename P>
  void store_within(P p, uint stride) const {
    store(p, stride);
  }
};

// Unsigned: wrap-around is defined there. Other integers are brought to 32 or 64 bits before, but for the usual ones that int64 sums are made of.
template <typename T, typename Part>
struct sum_wrap {
  typedef T in;
  typedef Part out;
  typedef Part item;
  typedef Part part;
  typedef scan_single<Part> state;
  enum { parts = 1, within = 1, places = 0, total_tells = 1, heavy = 0, serial = 1 };
  static bool rises(thread const Part *, state) { return true; }
  static Part take(T x, constant mps_scan_arguments &) { return Part(x); }
  static Part give(Part y, constant mps_scan_arguments &) { return y; }
  static Part neutral() { return 0; }
  static state identity() { return state{0}; }
  static state first(Part x, long) { return state{x}; }
  static state step(state s, Part x, long) { return state{s.all + x}; }
  static state merge(state a, state b) { return state{a.all + b.all}; }
  static Part value(state s) { return s.all; }
  static Part unscaled(state s) { return value(s); }
  static void scale(thread Part *, thread const Part *, long, long) {}
  static long index(state) { return 0; }
  static bool good(state) { return true; }
  static state settle(state s) { return s; }
  static state join(state a, state b) { return state{a.all + b.all}; }
  static state careful(state s, Part x) { return state{s.all + x}; }
  static Part careful_value(state s) { return s.all; }
  static bool finished(state) { return false; }
  static state rest(state s, thread const Part *, thread Part *, uint, long) { return s; }
};

// By the bytes of bool: any but 0 is true.
struct sum_truths : sum_wrap<uchar, ulong> {
  static ulong take(uchar x, constant mps_scan_arguments &) { return x != 0 ? 1 : 0; }
};

template <typename Part>
struct product_wrap : sum_wrap<Part, Part> {
  typedef scan_single<Part> state;
  static Part neutral() { return 1; }
  static state identity() { return state{1}; }
  static state step(state s, Part x, long) { return state{s.all * x}; }
  static state merge(state a, state b) { return state{a.all * b.all}; }
  static state join(state a, state b) { return state{a.all * b.all}; }
  static state careful(state s, Part x) { return state{s.all * x}; }
};

// A value and its place, an integer of the value's size.
template <typename Part>
struct scan_found {
  Part all, place;
  template <typename P>
  static scan_found load(P p, uint stride) {
    return scan_found{p[0], p[stride]};
  }
  template <typename P>
  void store(P p, uint stride) const {
    p[0] = all;
    p[stride] = place;
  }
  template <typename P>
  static scan_found load_within(P p, uint stride) {
    return load(p, stride);
  }
  template <typename P>
  void store_within(P p, uint stride) const {
    store(p, stride);
  }
};
inline float place_of(long i, float) { return as_type<float>(int(i)); }
inline int place_of(long i, int) { return int(i); }
inline long place_of(long i, long) { return i; }
inline long place_from(float p) { return as_type<int>(p); }
inline long place_from(int p) { return p; }
inline long place_from(long p) { return p; }
// Turns the order of values round.
inline float turned(float x) { return -x; }
inline int turned(int x) { return ~x; }
inline long turned(long x) { return ~x; }
inline float lowest(float) { return -INFINITY; }
inline int lowest(int) { return int(0x80000000u); }
inline long lowest(long) { return long(0x8000000000000000ul); }

// The largest so far, of equal ones the last; a NaN is larger than all.
template <typename T, typename Part>
struct largest_scan {
  typedef T in;
  typedef T out;
  typedef Part item;
  typedef Part part;
  typedef scan_found<Part> state;
  enum { parts = 2, within = 2, places = 1, total_tells = 1, heavy = 0, serial = 0 };
  static bool rises(thread const Part *x, state s) {
    uint any = 0;
    SCAN_VECTORIZE
    for (uint k = 0; k < MPS_SCAN_GROUP; k++) any |= uint(x[k] >= s.all) | uint(x[k] != x[k]);
    return any != 0;
  }
  static Part take(T x, constant mps_scan_arguments &a) { return a.smallest ? turned(Part(x)) : Part(x); }
  static T give(Part y, constant mps_scan_arguments &a) { return T(a.smallest ? turned(y) : y); }
  static Part neutral() { return 0; }
  static state identity() { return state{lowest(Part()), Part()}; }
  static state first(Part x, long i) { return state{x, place_of(i, Part())}; }
  static state step(state s, Part x, long i) { return merge(s, first(x, i)); }
  static state merge(state a, state b) {
    const bool later = (b.all >= a.all) | (b.all != b.all);
    return state{later ? b.all : a.all, later ? b.place : a.place};
  }
  static Part value(state s) { return s.all; }
  static Part unscaled(state s) { return value(s); }
  static void scale(thread Part *, thread const Part *, long, long) {}
  static long index(state s) { return place_from(s.place); }
  static bool good(state) { return true; }
  static state settle(state s) { return s; }
  static state join(state a, state b) { return merge(a, b); }
  static state careful(state s, Part) { return s; }
  static Part careful_value(state s) { return s.all; }
  static bool finished(state) { return false; }
  static state rest(state s, thread const Part *, thread Part *, uint, long) { return s; }
};

// log(sum of exp(x)) as `reference` + log(high + low). The reference is not far below the largest x: it follows in steps.
struct scan_logarithm {
  float reference, high, low;
  template <typename P>
  static scan_logarithm load(P p, uint stride) {
    return scan_logarithm{p[0], p[stride], p[2 * stride]};
  }
  template <typename P>
  void store(P p, uint stride) const {
    p[0] = reference;
    p[stride] = high;
    p[2 * stride] = low;
  }
  template <typename P>
  static scan_logarithm load_within(P p, uint stride) {
    return load(p, stride);
  }
  template <typename P>
  void store_within(P p, uint stride) const {
    store(p, stride);
  }
};

template <typename T>
struct logarithm_scan {
  typedef T in;
  typedef T out;
  typedef float item;
  typedef float part;
  typedef scan_logarithm state;
  enum { parts = 3, within = 3, places = 0, total_tells = 1, heavy = 1, serial = 0 };
  static bool rises(thread const float *, state) { return true; }
  static float take(T x, constant mps_scan_arguments &) { return float(x); }
  static T give(float y, constant mps_scan_arguments &) { return T(y); }
  static float neutral() { return -INFINITY; }
  static state identity() { return state{-INFINITY, 0.0f, 0.0f}; }
  static state first(float x, long) { return state{x, x == -INFINITY ? 0.0f : 1.0f, 0.0f}; }
  static state step(state s, float x, long i) { return merge(s, first(x, i)); }
  static state merge(state a, state b) {
    const bool rises = (b.reference > a.reference + 2.0f) | (b.reference != b.reference);
    const state kept = state{rises ? b.reference : a.reference, rises ? b.high : a.high, rises ? b.low : a.low};
    const state scaled = state{rises ? a.reference : b.reference, rises ? a.high : b.high, rises ? a.low : b.low};
    // exp(scaled.reference - kept.reference), with what the difference lost.
    const float distance = scaled.reference - kept.reference;
    const float lost = sum_error(scaled.reference, -kept.reference, distance);
    const float power = exp(distance), corrected = isfinite(distance) ? power + power * lost : power;
    const float factor = scaled.reference == kept.reference ? 1.0f : corrected;
    const float addend = scaled.high * factor, sum = kept.high + addend;
    return state{kept.reference, sum, (kept.low + scaled.low * factor) + sum_error(kept.high, addend, sum)};
  }
  static float value(state s) { return s.reference + log(s.high + s.low); }
  static float unscaled(state s) { return value(s); }
  static void scale(thread float *, thread const float *, long, long) {}
  static long index(state) { return 0; }
  static bool good(state) { return true; }
  static state settle(state s) {
    const float sum = s.high + s.low;
    return state{s.reference, sum, s.low - (sum - s.high)};
  }
  static state join(state a, state b) { return settle(merge(a, b)); }
  static state careful(state s, float) { return s; }
  static float careful_value(state s) { return value(s); }
  static bool finished(state) { return false; }
  static state rest(state s, thread const float *, thread float *, uint, long) { return s; }
};

SCAN_KERNELS(sum, f32, float, float, float, sum_scan<float>)
SCAN_KERNELS(sum, f16, half, half, float, sum_scan<half>)
SCAN_KERNELS(sum, bf16, bfloat, bfloat, float, sum_scan<bfloat>)
SCAN_KERNELS(sum, u32, uint, uint, uint, sum_wrap<uint, uint>)
SCAN_KERNELS(sum, u64, ulong, ulong, ulong, sum_wrap<ulong, ulong>)
SCAN_KERNELS(sum, u8_u64, uchar, ulong, ulong, sum_wrap<uchar, ulong>)
SCAN_KERNELS(sum, bool_u64, uchar, ulong, ulong, sum_truths)
SCAN_KERNELS(sum, i32_u64, int, ulong, ulong, sum_wrap<int, ulong>)
SCAN_KERNELS(product, f32, float, float, float, product_scan<float>)
SCAN_KERNELS(product, f16, half, half, float, product_scan<half>)
SCAN_KERNELS(product, bf16, bfloat, bfloat, float, product_scan<bfloat>)
SCAN_KERNELS(product, u32, uint, uint, uint, product_wrap<uint>)
SCAN_KERNELS(product, u64, ulong, ulong, ulong, product_wrap<ulong>)
SCAN_KERNELS(largest, f32, float, float, float, largest_scan<float, float>)
SCAN_KERNELS(largest, f16, half, half, float, largest_scan<half, float>)
SCAN_KERNELS(largest, bf16, bfloat, bfloat, float, largest_scan<bfloat, float>)
SCAN_KERNELS(largest, i32, int, int, int, largest_scan<int, int>)
SCAN_KERNELS(largest, i64, long, long, long, largest_scan<long, long>)
SCAN_KERNELS(logarithm, f32, float, float, float, logarithm_scan<float>)
SCAN_KERNELS(logarithm, f16, half, half, float, logarithm_scan<half>)
SCAN_KERNELS(logarithm, bf16, bfloat, bfloat, float, logarithm_scan<bfloat>)
