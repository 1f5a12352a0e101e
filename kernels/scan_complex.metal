// SPDX-License-Identifier: BSD-3-Clause
//
// scan_complex: running products of complex numbers, as pairs of floats like scan_float.h's, and logarithms of running sums of exponentials.

#include "complex_functions.h"
#include "scan_float.h"

// (high + low) * 2^exponent of both parts.
struct scan_complex_pair {
  float high_x, high_y, low_x, low_y, exponent;
  template <typename P>
  static scan_complex_pair load(P p, uint stride) {
    return scan_complex_pair{p[0], p[stride], p[2 * stride], p[3 * stride], p[4 * stride]};
  }
  template <typename P>
  void store(P p, uint stride) const {
    p[0] = high_x;
    p[stride] = high_y;
    p[2 * stride] = low_x;
    p[3 * stride] = low_y;
    p[4 * stride] = exponent;
  }
  template <typename P>
  static scan_complex_pair load_within(P p, uint stride) {
    return scan_complex_pair{p[0], p[stride], p[2 * stride], p[3 * stride], -0.0f};
  }
  template <typename P>
  void store_within(P p, uint stride) const {
    p[0] = high_x;
    p[stride] = high_y;
    p[2 * stride] = low_x;
    p[3 * stride] = low_y;
  }
};

struct product_complex_scan {
  typedef float2 in;
  typedef float2 out;
  typedef float2 item;
  typedef float part;
  typedef scan_complex_pair state;
  enum { parts = 5, within = 4, places = 0, total_tells = 0, heavy = 1, serial = 0 };
  static bool rises(thread const float2 *, state) { return true; }
  static float2 take(float2 x, constant mps_scan_arguments &) { return x; }
  static float2 give(float2 y, constant mps_scan_arguments &) { return y; }
  static float2 neutral() { return float2(1.0f, 0.0f); }
  static state identity() { return state{1.0f, 0.0f, 0.0f, 0.0f, 0.0f}; }
  static state first(float2 x, long) { return state{x.x, x.y, 0.0f, 0.0f, 0.0f}; }
  static state step(state s, float2 x, long i) { return merge(s, first(x, i)); }
  static state merge(state a, state b) {
    const float xx = a.high_x * b.high_x, yy = a.high_y * b.high_y, xy = a.high_x * b.high_y, yx = a.high_y * b.high_x;
    const float x = xx - yy, y = xy + yx;
    const float lost_x = fma(a.high_x, b.high_x, -xx) - fma(a.high_y, b.high_y, -yy) + sum_error(xx, -yy, x);
    const float lost_y = fma(a.high_x, b.high_y, -xy) + fma(a.high_y, b.high_x, -yx) + sum_error(xy, yx, y);
    const float low_x = (a.low_x * b.high_x - a.low_y * b.high_y) + (a.high_x * b.low_x - a.high_y * b.low_y);
    const float low_y = (a.low_x * b.high_y + a.low_y * b.high_x) + (a.high_x * b.low_y + a.high_y * b.low_x);
    return state{x, y, low_x + lost_x, low_y + lost_y, a.exponent + b.exponent};
  }
  static float2 value(state s) {
    return float2(scale_up(s.high_x + s.low_x, int(s.exponent)), scale_up(s.high_y + s.low_y, int(s.exponent)));
  }
  static float2 unscaled(state s) { return value(s); }
  static void scale(thread float2 *, thread const float *, long, long) {}
  static long index(state) { return 0; }
  static bool good(state s) {
    const float size = fabs(s.high_x) + fabs(s.high_y);
    return (size > 9.0949470e-13f) & (size < 1.0995116e12f);
  }
  static bool is_settled(state s) { return !isfinite(0.5f * fabs(s.high_x) + 0.5f * fabs(s.high_y)) || fabs(s.high_x) + fabs(s.high_y) == 0.0f; }
  static state settle(state s) {
    const bool stays = is_settled(s);
    const float x = s.high_x + s.low_x, y = s.high_y + s.low_y, low_x = s.low_x - (x - s.high_x), low_y = s.low_y - (y - s.high_y);
    const int exponent = stays ? 0 : exponent_of(max(fabs(x), fabs(y)));
    const float all = s.exponent + float(exponent);
    const bool large = !stays & (all > 1023.0f), small = !stays & (all < -1074.0f), ends = stays | large | small;
    const float factor = large ? INFINITY : small ? 0.0f : 1.0f;
    return state{stays ? s.high_x : scale_down(x, exponent) * factor, stays ? s.high_y : scale_down(y, exponent) * factor,
                 ends ? 0.0f : scale_down(low_x, exponent), ends ? 0.0f : scale_down(low_y, exponent), ends ? 0.0f : all};
  }
  static state join(state a, state b) {
    if (is_settled(a) || is_settled(b))
      return state{a.high_x * b.high_x - a.high_y * b.high_y, a.high_x * b.high_y + a.high_y * b.high_x, 0.0f, 0.0f, 0.0f};
    return settle(merge(a, b));
  }
  static state careful(state s, float2 x) { return join(s, settle(first(x, 0))); }
  static float2 careful_value(state s) { return value(s); }
  static bool finished(state s) { return is_settled(s); }
  static state rest(state s, thread const float2 *x, thread float2 *y, uint stride, long count) {
    float2 product = float2(s.high_x, s.high_y);
    for (long i = 0; i < count; i++) y[i * stride] = product = formula::complex_mul(product, x[i * stride]);
    return state{product.x, product.y, 0.0f, 0.0f, 0.0f};
  }
};

namespace {

// The larger of the two by its real part, plus log1p(exp(smaller - larger)): what the CPU does for each element. The imaginary part is not
// brought back between -pi and pi.
inline float2 add_logarithms(float2 x, float2 y) {
  const bool swap = !(x.x < y.x);
  const float2 low = swap ? y : x, high = swap ? x : y;
  if (!isfinite(low.x) && low.x == high.x) {
    if (low.x < 0.0f) return low;
    const float2 a = formula::complex_exp(low), b = formula::complex_exp(high);
    return formula::complex_log(float2(a.x + b.x, a.y + b.y));
  }
  const float2 more = formula::complex_log1p(formula::complex_exp(float2(low.x - high.x, low.y - high.y)));
  return float2(more.x + high.x, more.y + high.y);
}

inline bool has_nan(float2 x) { return x.x != x.x || x.y != x.y; }

// exp(reference) * (high + low) = the sum so far.
struct exponential_sum {
  float reference;
  float2 high, low;
  exponential_sum() : reference(-INFINITY), high(0.0f, 0.0f), low(0.0f, 0.0f) {}
  void add(float2 x) {
    if (x.x == -INFINITY) return;
    if (x.x > reference + 2.0f) {
      const float factor = exp(reference - x.x);
      high = float2(high.x * factor, high.y * factor);
      low = float2(low.x * factor, low.y * factor);
      reference = x.x;
    }
    const float2 power = formula::complex_exp(float2(x.x - reference, x.y)), sum = float2(high.x + power.x, high.y + power.y);
    low = float2(low.x + sum_error(high.x, power.x, sum.x), low.y + sum_error(high.y, power.y, sum.y));
    high = sum;
  }
  // With the imaginary part that is nearest to `near`, of those 2 pi apart.
  float2 logarithm(float near) const {
    const float2 value = formula::complex_log(float2(high.x + low.x, high.y + low.y));
    const float turns = rint((near - value.y) * 0.159154943f);
    return float2(value.x + reference, (value.y + turns * 6.28318548f) - turns * 1.74845553e-07f);
  }
};

}  // namespace

// Thread (row, 0). One after the other, as the imaginary part wants it.
kernel void scan_logarithm_inner_c64(device const float2 *input [[buffer(0)]], device float2 *output [[buffer(1)]],
                                     constant mps_scan_arguments &a [[buffer(3)]], uint2 position [[thread_position_in_grid]]) {
  const scan_row at = locate_row(a, position.x, 0);
  float2 so_far = float2(-INFINITY, 0.0f);
  exponential_sum sum;
  for (long i = 0; i < a.length; i++) {
    const float2 x = input[at.input + i * a.input_step];
    if (has_nan(x) || has_nan(so_far)) {
      so_far = float2(NAN, NAN);
    } else {
      sum.add(x);
      // The smaller one turns the sum by no more than a right angle: its imaginary part is near the larger one's.
      const bool usual = isfinite(x.x) && isfinite(x.y) && isfinite(so_far.x) && isfinite(so_far.y);
      so_far = usual ? sum.logarithm(x.x < so_far.x ? so_far.y : x.y) : add_logarithms(x, so_far);
    }
    output[at.output + i * a.output_step] = so_far;
  }
}

SCAN_KERNELS(product, c64, float2, float2, float, product_complex_scan)
