/* SPDX-License-Identifier: BSD-3-Clause
 *
 * scan_float: running sums and products of floats, as exact as the double that the CPU keeps: a state is a pair of floats whose sum it is, times a
 * power of two where float's range does not do. Halves are no different, though the CPU keeps only a float of them.
 */
#ifndef OPENMPS_KERNELS_SCAN_FLOAT_H
#define OPENMPS_KERNELS_SCAN_FLOAT_H

#include "scan.h"

#define SCAN_FAR 18446744073709551616.0f       // 2^64
#define SCAN_NEAR 5.421010862427522e-20f       // 2^-64
#define SCAN_BACK 1099511627776.0f             // 2^40

/* high + low, times 2^exponent. */
template <typename Part>
struct scan_pair {
  Part high, low, exponent;
  template <typename P>
  static scan_pair load(P p, uint stride) {
    return scan_pair{p[0], p[stride], p[2 * stride]};
  }
  template <typename P>
  void store(P p, uint stride) const {
    p[0] = high;
    p[stride] = low;
    p[2 * stride] = exponent;
  }
  template <typename P>
  static scan_pair load_within(P p, uint stride) {
    return scan_pair{p[0], p[stride], -0.0f}; // what is added to -0 stays the same: the compiler knows
  }
  template <typename P>
  void store_within(P p, uint stride) const {
    p[0] = high;
    p[stride] = low;
  }
};

/* What a + b lost when it was rounded to `sum` (Knuth). */
inline float sum_error(float a, float b, float sum) {
  const float part = sum - a;
  return (a - (sum - part)) + (b - part);
}

template <typename T>
struct sum_scan {
  typedef T in;
  typedef T out;
  typedef float item;
  typedef float part;
  typedef scan_pair<float> state;
  enum { parts = 3, within = 2, places = 0, total_tells = 1, heavy = 0, serial = 0 };
  static bool rises(thread const float *, state) { return true; }
  static float take(T x, constant mps_scan_arguments &) { return float(x); }
  static T give(float y, constant mps_scan_arguments &) { return T(y); }
  static float neutral() { return 0.0f; }
  static state identity() { return state{0.0f, 0.0f, 0.0f}; }
  static state first(float x, long) { return state{x, 0.0f, 0.0f}; }
  static state step(state s, float x, long) {
    const float sum = s.high + x;
    return state{sum, s.low + sum_error(s.high, x, sum), s.exponent};
  }
  static state merge(state a, state b) {
    const float sum = a.high + b.high;
    return state{sum, (a.low + b.low) + sum_error(a.high, b.high, sum), a.exponent};
  }
  static float value(state s) { return s.high + s.low; }
  static float unscaled(state s) { return s.high + s.low; }
  static void scale(thread float *, thread const float *, long, long) {}
  static long index(state) { return 0; }
  static bool good(state s) { return isfinite(s.high + s.low) & (s.exponent == 0.0f); }
  static state settle(state s) {
    const float sum = s.high + s.low;
    return state{sum, s.low - (sum - s.high), s.exponent};
  }

  static state join(state a, state b) { return add(a, b); }
  static state careful(state s, float x) { return add(s, state{x, 0.0f, 0.0f}); }
  static bool finished(state s) { return !isfinite(s.high); }
  static state rest(state s, thread const float *x, thread float *y, uint stride, long count) {
    float sum = s.high;
    for (long i = 0; i < count; i++) y[i * stride] = sum = sum + x[i * stride];
    return state{sum, 0.0f, 0.0f};
  }
  static float careful_value(state s) { return s.exponent == 0.0f ? s.high + s.low : (s.high + s.low) * SCAN_FAR; }
  /* exponent is 0, or 64 while the sum is beyond float's range. */
  static state add(state a, state b) {
    if (!isfinite(a.high) || !isfinite(b.high)) return state{a.high + b.high, 0.0f, 0.0f};
    bool far = a.exponent != 0.0f || b.exponent != 0.0f || !isfinite(a.high + b.high);
    if (far && a.exponent == 0.0f) a = state{a.high * SCAN_NEAR, a.low * SCAN_NEAR, 64.0f};
    if (far && b.exponent == 0.0f) b = state{b.high * SCAN_NEAR, b.low * SCAN_NEAR, 64.0f};
    state s = settle(merge(a, b));
    if (far && fabs(s.high) < SCAN_BACK) s = state{s.high * SCAN_FAR, s.low * SCAN_FAR, 0.0f};
    return s;
  }
};

inline float power_of_two(int exponent) { return as_type<float>(uint(exponent + 127) << 23); } // a normal number

/* Exponent of a finite number other than 0. */
inline int exponent_of(float x) {
  const bool small = fabs(x) < 1.1754943508e-38f;
  const uint bits = as_type<uint>(small ? x * SCAN_FAR : x);
  return int((bits >> 23) & 255u) - 127 - (small ? 64 : 0);
}
/* x * 2^-exponent, where the result is a normal number. */
inline float scale_down(float x, int exponent) {
  const int half_way = exponent / 2;
  return x * power_of_two(-half_way) * power_of_two(half_way - exponent);
}
/* 2^exponent as two factors; the one that may lead to a subnormal number comes last. */
inline float first_power(int exponent) { return power_of_two(clamp(exponent - clamp(exponent, -126, 127), -126, 127)); }
inline float last_power(int exponent) { return exponent < -240 ? 0.0f : power_of_two(clamp(exponent, -126, 127)); }
inline float scale_up(float x, int exponent) { return x * first_power(exponent) * last_power(exponent); }
inline bool settled(float x) { return (x == 0.0f) | !isfinite(x); }

/* high lies in [1, 2) between groups. */
template <typename T>
struct product_scan {
  typedef T in;
  typedef T out;
  typedef float item;
  typedef float part;
  typedef scan_pair<float> state;
  enum { parts = 3, within = 2, places = 0, total_tells = 0, heavy = 0, serial = 0 };
  static bool rises(thread const float *, state) { return true; }
  static float take(T x, constant mps_scan_arguments &) { return float(x); }
  static T give(float y, constant mps_scan_arguments &) { return T(y); }
  static float neutral() { return 1.0f; }
  static state identity() { return state{1.0f, 0.0f, 0.0f}; }
  static state first(float x, long) { return state{x, 0.0f, 0.0f}; }
  static state step(state s, float x, long) {
    const float product = s.high * x;
    return state{product, fma(s.low, x, fma(s.high, x, -product)), s.exponent};
  }
  static state merge(state a, state b) {
    const float product = a.high * b.high;
    return state{product, fma(a.high, b.high, -product) + fma(a.high, b.low, a.low * b.high), a.exponent + b.exponent};
  }
  static float value(state s) { return scale_up(s.high + s.low, int(s.exponent)); }
  static float unscaled(state s) { return s.high + s.low; }
  static void scale(thread float *y, thread const float *states, long count, long width) {
    float first[MPS_SCAN_TILE], last[MPS_SCAN_TILE];
    SCAN_VECTORIZE
    for (long j = 0; j < width; j++) {
      const int exponent = int(states[2 * MPS_SCAN_TILE + j]);
      first[j] = first_power(exponent);
      last[j] = last_power(exponent);
    }
    for (long i = 0; i < count; i++) {
      SCAN_VECTORIZE
      for (long j = 0; j < width; j++) y[i * MPS_SCAN_TILE + j] = y[i * MPS_SCAN_TILE + j] * first[j] * last[j];
    }
  }
  static long index(state) { return 0; }
  static bool good(state s) { // neither the mantissa nor its error leaves float's range
    const float size = fabs(s.high);
    return (size > 8.6736174e-19f) & (size < 1.1529215e18f);
  }
  static state settle(state s) {
    const bool stays = settled(s.high); // without branches: lanes are vectors
    const float sum = s.high + s.low, low = s.low - (sum - s.high);
    const int exponent = stays ? 0 : exponent_of(sum);
    const float high = stays ? s.high : scale_down(sum, exponent), all = s.exponent + float(exponent);
    const bool large = !stays & (all > 1023.0f), small = !stays & (all < -1074.0f); // lost to a double too, for good
    const bool ends = stays | large | small;
    return state{large ? high * INFINITY : small ? high * 0.0f : high, ends ? 0.0f : scale_down(low, exponent), ends ? 0.0f : all};
  }

  static state join(state a, state b) {
    return settled(a.high) || settled(b.high) ? state{a.high * b.high, 0.0f, 0.0f} : settle(merge(a, b));
  }
  static state careful(state s, float x) { return join(s, settle(state{x, 0.0f, 0.0f})); }
  static float careful_value(state s) { return scale_up(s.high + s.low, int(s.exponent)); }
  static bool finished(state s) { return settled(s.high); }
  static state rest(state s, thread const float *x, thread float *y, uint stride, long count) {
    uint infinite = s.high == 0.0f ? 0u : 1u;
    for (long i = 0; i < count; i++) infinite |= isfinite(x[i * stride]) ? 0u : 1u;
    uint sign = as_type<uint>(s.high); // of 0 times finite numbers: it is quicker alone
    float product = s.high;
    for (long i = 0; i < count && !infinite; i++) y[i * stride] = as_type<float>(sign ^= as_type<uint>(x[i * stride]) & 0x80000000u);
    for (long i = 0; i < count && infinite; i++) y[i * stride] = product = product * x[i * stride];
    return state{infinite ? product : as_type<float>(sign), 0.0f, 0.0f};
  }
};

#endif
