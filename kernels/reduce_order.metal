// SPDX-License-Identifier: BSD-3-Clause
//
// reduce_order: amax, amin (values only) and the kernels that also find where: argmax, argmin, max and min over a dimension.
// NaN wins over every number; of equal values the first one counts.

#include "reduce.h"

// ---- values ----
// The type that values are compared in.
template <typename T> struct order_type { typedef T type; };
template <> struct order_type<half> { typedef float type; };
template <> struct order_type<bfloat> { typedef float type; };
template <> struct order_type<uchar> { typedef int type; };
template <> struct order_type<char> { typedef int type; };
template <> struct order_type<short> { typedef int type; };

inline float lowest(float) { return -INFINITY; }
inline float highest(float) { return INFINITY; }
inline int lowest(int) { return -2147483647 - 1; }
inline int highest(int) { return 2147483647; }
inline long lowest(long) { return -9223372036854775807L - 1; }
inline long highest(long) { return 9223372036854775807L; }

// `a` stays before `b` if it is better, or NaN; the comparisons of integers with themselves vanish.
struct greater_first {
  static float plain(float a, float b) { return a > b ? a : b; }
  template <typename A> static bool keeps(A a, A b) { return a > b || a != a; }
  template <typename A> static bool beats(A a, A b) { return a > b || (a != a && b == b); }
  template <typename A> static A worst() { return lowest(A(0)); }
};
struct less_first {
  static float plain(float a, float b) { return a < b ? a : b; }
  template <typename A> static bool keeps(A a, A b) { return a < b || a != a; }
  template <typename A> static bool beats(A a, A b) { return a < b || (a != a && b == b); }
  template <typename A> static A worst() { return highest(A(0)); }
};

template <typename Order, typename T>
struct order_value {
  typedef T in;
  typedef typename order_type<T>::type lane;
  typedef lane acc;
  typedef T out;
  static lane identity() { return Order::template worst<lane>(); }
  static lane empty() { return Order::template worst<lane>(); }
  static lane load(T x, constant mps_reduce_arguments &) { return lane(x); }
  static lane combine(lane a, lane b) { return Order::keeps(a, b) ? a : b; }
  static lane merge(lane a, lane b) { return combine(a, b); }
  static lane widen(lane a) { return a; }
  static T finish(lane a, constant mps_reduce_arguments &) { return T(a); }
};

// Without NaN the larger of two is one instruction. Whether there was a NaN is seen in a sum of all values; infinities of both signs make one
// too, so then the run is looked at again with care.
template <typename Order, typename T>
struct plain_value : order_value<Order, T> {
  static float combine(float a, float b) { return Order::plain(a, b); }
};
template <typename T>
struct values_sum {
  typedef T in;
  typedef float lane;
  static float load(T x, constant mps_reduce_arguments &) { return float(x); }
  static float combine(float a, float b) { return a + b; }
};
template <typename Order, typename T>
inline void take_floats(thread float *lanes, device const T *x, long stride, long count, constant mps_reduce_arguments &a) {
  if (stride != 1 || count < 8 * REDUCE_LANES) return accumulate_run<order_value<Order, T> >(lanes, x, stride, count, a);
  float best[REDUCE_LANES], sums[REDUCE_LANES];
  for (uint l = 0; l < REDUCE_LANES; l++) {
    best[l] = lanes[l];
    sums[l] = lanes[l] - lanes[l]; // 0; an infinite start sends us the slow way, but for the identity
    sums[l] = lanes[l] == Order::template worst<float>() ? 0.0f : sums[l];
  }
  long i = 0;
  for (; i + 8 * REDUCE_LANES <= count; i += 8 * REDUCE_LANES) {
    device const T *p = x + i;
    VECTORIZE
    for (uint l = 0; l < REDUCE_LANES; l++) {
      best[l] = Order::plain(best[l], combine_eight<plain_value<Order, T> >(p + l, REDUCE_LANES, a));
      sums[l] += combine_eight<values_sum<T> >(p + l, REDUCE_LANES, a);
    }
  }
  float total = 0.0f;
  for (uint l = 0; l < REDUCE_LANES; l++) total += sums[l];
  if (total != total) return accumulate_run<order_value<Order, T> >(lanes, x, stride, count, a);
  for (uint l = 0; l < REDUCE_LANES; l++) lanes[l] = best[l];
  accumulate_run<order_value<Order, T> >(lanes, x + i, stride, count - i, a);
}
template <typename Order>
struct run_taker<order_value<Order, float> > {
  static void take(thread float *lanes, device const float *x, long stride, long count, constant mps_reduce_arguments &a) {
    take_floats<Order, float>(lanes, x, stride, count, a);
  }
};
template <typename Order>
struct run_taker<order_value<Order, half> > {
  static void take(thread float *lanes, device const half *x, long stride, long count, constant mps_reduce_arguments &a) {
    take_floats<Order, half>(lanes, x, stride, count, a);
  }
};
template <typename Order>
struct run_taker<order_value<Order, bfloat> > {
  static void take(thread float *lanes, device const bfloat *x, long stride, long count, constant mps_reduce_arguments &a) {
    take_floats<Order, bfloat>(lanes, x, stride, count, a);
  }
};

// ---- values and where they are ----
template <typename A>
struct located {
  A value;
  long index;
};

template <typename Order, typename T>
struct order_index {
  typedef T in;
  typedef typename order_type<T>::type lane;
  typedef located<lane> acc;
  static acc empty() {
    acc none;
    none.value = Order::template worst<lane>();
    none.index = -1;
    return none;
  }
  // `a` lies before `b`.
  static acc merge(acc a, acc b) {
    if (b.index < 0) return a;
    return a.index < 0 || Order::beats(b.value, a.value) ? b : a;
  }
};

// The best of a run of `count` elements, and the first place where it is: the value is found with vectors; only a run that
// holds a new best is searched again.
template <typename Op, typename Order>
inline void best_of_run(thread typename Op::acc *best, device const typename Op::in *x, long stride, long count, long index,
                        constant mps_reduce_arguments &a) {
  typedef typename Op::lane lane;
  typedef order_value<Order, typename Op::in> values;
  lane lanes[REDUCE_LANES];
  for (uint l = 0; l < REDUCE_LANES; l++) lanes[l] = values::identity();
  run_taker<values>::take(lanes, x, stride, count, a);
  const lane top = fold_lanes<values>(lanes);
  if (best->index >= 0 && !Order::beats(top, best->value)) return;
  for (long i = 0; i < count; i++) {
    const lane v = lane(x[i * stride]);
    if (v == top || (v != v && top != top)) {
      best->value = v;
      best->index = index + i;
      return;
    }
  }
}

template <typename T, typename A>
inline void store_located(located<A> best, device T *values, device long *indices, constant mps_reduce_arguments &a, long o) {
  values[kept_offset(a, a.out_strides, o, 0)] = T(best.value);
  indices[kept_offset(a, a.second_strides, o, 0)] = best.index;
}

template <typename Order, typename T>
kernel void locate_inner(device const T *input [[buffer(0)]], device located<typename order_type<T>::type> *partials [[buffer(1)]],
                         device T *values [[buffer(2)]], constant mps_reduce_arguments &a [[buffer(3)]],
                         device long *indices [[buffer(4)]], uint2 position [[thread_position_in_grid]]) {
  typedef order_index<Order, T> op;
  const long o = position.x, c = position.y;
  const long end = min((c + 1) * a.chunk, (long)a.reduce_count);
  const long run = a.reduced_sizes[a.reduced_rank - 1], stride = a.reduced_strides[a.reduced_rank - 1];
  device const T *x = input + kept_offset(a, a.kept_strides, o, 0);
  typename op::acc best = op::empty();
  for (long p = c * a.chunk; p < end;) {
    const long index = a.reduced_rank > 1 ? p / run : 0;
    const long first = p - index * run, count = min(min(run - first, end - p), (long)REDUCE_BLOCK);
    best_of_run<op, Order>(&best, x + run_offset(a, index) + first * stride, stride, count, p, a);
    p += count;
  }
  if (a.raw)
    partials[c * a.output_count + o] = best;
  else
    store_located<T>(best, values, indices, a, o);
}

template <typename Order, typename T>
kernel void locate_outer(device const T *input [[buffer(0)]], device located<typename order_type<T>::type> *partials [[buffer(1)]],
                         device T *values [[buffer(2)]], constant mps_reduce_arguments &a [[buffer(3)]],
                         device long *indices [[buffer(4)]], uint2 position [[thread_position_in_grid]]) {
  typedef order_index<Order, T> op;
  typedef typename op::lane lane;
  const long size = a.kept_sizes[a.kept_rank - 1], tiles = (size + MPS_REDUCE_TILE - 1) / MPS_REDUCE_TILE;
  const long outer = position.x / tiles, tile = (position.x - outer * tiles) * MPS_REDUCE_TILE;
  const long width = min((long)MPS_REDUCE_TILE, size - tile), c = position.y;
  const long begin = c * a.chunk, end = min(begin + a.chunk, (long)a.reduce_count);
  const long step = a.kept_strides[a.kept_rank - 1];
  const long run = a.reduced_sizes[a.reduced_rank - 1], stride = a.reduced_strides[a.reduced_rank - 1];
  device const T *x = input + kept_offset(a, a.kept_strides, outer, 1) + tile * step;
  lane best[MPS_REDUCE_TILE];
  int where[MPS_REDUCE_TILE]; // from `begin` on; a chunk is shorter than 2^31
  for (long j = 0; j < width; j++) {
    best[j] = Order::template worst<lane>();
    where[j] = -1;
  }
  for (long p = begin; p < end;) {
    const long index = a.reduced_rank > 1 ? p / run : 0;
    const long first = p - index * run, count = min(run - first, end - p);
    device const T *q = x + run_offset(a, index) + first * stride;
    for (long r = 0; r < count; r++) {
      const int row = int(p - begin + r);
      device const T *source = q + r * stride;
      if (step == 1) {
        VECTORIZE
        for (long j = 0; j < width; j++) {
          const lane v = lane(source[j]);
          const bool wins = Order::beats(v, best[j]) || where[j] < 0;
          best[j] = wins ? v : best[j];
          where[j] = wins ? row : where[j];
        }
      } else {
        VECTORIZE
        for (long j = 0; j < width; j++) {
          const lane v = lane(source[j * step]);
          const bool wins = Order::beats(v, best[j]) || where[j] < 0;
          best[j] = wins ? v : best[j];
          where[j] = wins ? row : where[j];
        }
      }
    }
    p += count;
  }
  for (long j = 0; j < width; j++) {
    typename op::acc result;
    result.value = best[j];
    result.index = where[j] < 0 ? -1 : begin + where[j];
    const long o = outer * size + tile + j;
    if (a.raw)
      partials[c * a.output_count + o] = result;
    else
      store_located<T>(result, values, indices, a, o);
  }
}

template <typename Order, typename T>
kernel void locate_finish(device const located<typename order_type<T>::type> *partials [[buffer(1)]], device T *values [[buffer(2)]],
                          constant mps_reduce_arguments &a [[buffer(3)]], device long *indices [[buffer(4)]],
                          uint o [[thread_position_in_grid]]) {
  typedef order_index<Order, T> op;
  typename op::acc best = op::empty();
  for (long c = 0; c < a.chunk_count; c++) best = op::merge(best, partials[c * a.output_count + o]);
  store_located<T>(best, values, indices, a, o);
}

#define LOCATE_KERNELS(name, suffix, order, type, lane) \
  template [[host_name("reduce_" #name "_inner_" #suffix)]] kernel void locate_inner<order, type>( \
      device const type *input [[buffer(0)]], device located<lane> *partials [[buffer(1)]], \
      device type *values [[buffer(2)]], constant mps_reduce_arguments &a [[buffer(3)]], \
      device long *indices [[buffer(4)]], uint2 position [[thread_position_in_grid]]); \
  template [[host_name("reduce_" #name "_outer_" #suffix)]] kernel void locate_outer<order, type>( \
      device const type *input [[buffer(0)]], device located<lane> *partials [[buffer(1)]], \
      device type *values [[buffer(2)]], constant mps_reduce_arguments &a [[buffer(3)]], \
      device long *indices [[buffer(4)]], uint2 position [[thread_position_in_grid]]); \
  template [[host_name("reduce_" #name "_finish_" #suffix)]] kernel void locate_finish<order, type>( \
      device const located<lane> *partials [[buffer(1)]], device type *values [[buffer(2)]], \
      constant mps_reduce_arguments &a [[buffer(3)]], device long *indices [[buffer(4)]], \
      uint o [[thread_position_in_grid]]);
#define ORDER_KERNELS(suffix, type, lane) \
  REDUCE_KERNELS(amax, suffix, type, lane, type, order_value<greater_first, type>) \
  REDUCE_KERNELS(amin, suffix, type, lane, type, order_value<less_first, type>) \
  LOCATE_KERNELS(max, suffix, greater_first, type, lane) \
  LOCATE_KERNELS(min, suffix, less_first, type, lane)
ORDER_KERNELS(f32, float, float)
ORDER_KERNELS(f16, half, float)
ORDER_KERNELS(bf16, bfloat, float)
ORDER_KERNELS(u8, uchar, int) // and bool
ORDER_KERNELS(i8, char, int)
ORDER_KERNELS(i16, short, int)
ORDER_KERNELS(i32, int, int)
ORDER_KERNELS(i64, long, long)
