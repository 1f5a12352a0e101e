/* SPDX-License-Identifier: BSD-3-Clause
 *
 * scan_float: running sums and products of floats, as exact as the double that the CPU keeps: a state is a pair of floats whose sum it is, times a
 * power of two where float's range does not do. `narrow`: of halves the CPU keeps a float: what leaves its range is infinite, or 0, for good.
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
};

/* What a + b lost when it was rounded to `sum` (Knuth). */
inline float sum_error(float a, float b, float sum) {
  const float part = sum - a;
  return (a - (sum - part)) + (b - part);
}

template <typename T, bool narrow>
struct sum_scan {
  typedef T in;
  typedef T out;
  typedef float item;
  typedef float part;
  typedef scan_pair<float> state;
  enum { parts = 3, places = 0, total_tells = 1 };
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
  static long index(state) { return 0; }
  static bool good(state s) { return isfinite(s.high + s.low) && s.exponent == 0.0f; }
  static state settle(state s) {
    const float sum = s.high + s.low;
    return state{sum, s.low - (sum - s.high), s.exponent};
  }

  static state join(state a, state b) { return add(a, b, false); }
  static state careful(state s, float x, bool total) { return add(s, state{x, 0.0f, 0.0f}, narrow && !total); }
  static bool finished(state s) { return !isfinite(s.high); }
  static state plain(state s, float x) { return state{s.high + x, 0.0f, 0.0f}; }
  static float plain_value(state s) { return s.high; }
  static float careful_value(state s) { return s.exponent == 0.0f ? s.high + s.low : (s.high + s.low) * SCAN_FAR; }
  /* exponent is 0, or 64 while the sum is beyond float's range. */
  static state add(state a, state b, bool limited) {
    if (!isfinite(a.high) || !isfinite(b.high)) return state{a.high + b.high, 0.0f, 0.0f};
    bool far = a.exponent != 0.0f || b.exponent != 0.0f || !isfinite(a.high + b.high);
    if (far && limited) return state{a.high + b.high, 0.0f, 0.0f};
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
/* (high + low) * 2^exponent, rounded once. */
inline float scale_up(float high, float low, int exponent) {
  float sum = high + low;
  const float lost = low - (sum - high);
  // What will be subnormal is rounded again: its last bit is made to tell that something was lost (round to odd).
  const uint bits = as_type<uint>(sum);
  const bool even = (bits & 1u) == 0u && lost != 0.0f, down = (lost < 0.0f) != (sum < 0.0f);
  sum = exponent < -126 && even ? as_type<float>(down ? bits - 1u : bits + 1u) : sum;
  sum = exponent < -160 ? copysign(0.0f, sum) : sum; // quicker than to underflow
  const int first = clamp(exponent, -126, 127), second = clamp(exponent - first, -126, 127);
  return sum * power_of_two(first) * power_of_two(second);
}
/* How far the CPU's accumulator reaches: double, or float. 0, or the exponent's factor that the value is lost to. */
inline float reach(int exponent, bool limited) {
  return exponent > (limited ? 127 : 1023) ? INFINITY : exponent < (limited ? -149 : -1074) ? 0.0f : 1.0f;
}
inline bool settled(float x) { return x == 0.0f || !isfinite(x); }

/* high lies in [1, 2) between groups. */
template <typename T, bool narrow>
struct product_scan {
  typedef T in;
  typedef T out;
  typedef float item;
  typedef float part;
  typedef scan_pair<float> state;
  enum { parts = 3, places = 0, total_tells = 0 };
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
  static float value(state s) { return scale_up(s.high, s.low, int(s.exponent)); }
  static long index(state) { return 0; }
  static bool good(state s) { // neither the mantissa nor its error leaves float's range, nor the value the CPU's
    const float size = fabs(s.high), limit = narrow ? 60.0f : 900.0f;
    return size > 8.6736174e-19f && size < 1.1529215e18f && fabs(s.exponent) < limit;
  }
  static state settle(state s) {
    if (settled(s.high)) return state{s.high, 0.0f, 0.0f};
    const float sum = s.high + s.low, low = s.low - (sum - s.high);
    const int exponent = exponent_of(sum);
    return state{scale_down(sum, exponent), scale_down(low, exponent), s.exponent + float(exponent)};
  }

  static state join(state a, state b) { return multiply(a, b, false); }
  static state careful(state s, float x, bool total) { return multiply(s, settle(state{x, 0.0f, 0.0f}), narrow && !total); }
  static float careful_value(state s) { return scale_up(s.high, s.low, int(s.exponent)); }
  static bool finished(state s) { return settled(s.high); }
  static state plain(state s, float x) { return state{s.high * x, 0.0f, 0.0f}; }
  static float plain_value(state s) { return s.high; }
  static state multiply(state a, state b, bool limited) {
    if (settled(a.high) || settled(b.high)) return state{a.high * b.high, 0.0f, 0.0f};
    const state s = settle(merge(a, b));
    const float factor = reach(int(s.exponent), limited);
    return factor == 1.0f ? s : state{s.high * factor, 0.0f, 0.0f};
  }
};

#endif
