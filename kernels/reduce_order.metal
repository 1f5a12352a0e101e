// SPDX-License-Identifier: BSD-3-Clause
//
// reduce_order: amax, amin (values only) and the kernels that also find where: argmax, argmin, max and min over a dimension.
// NaN wins over every number; of equal values the first one counts.

#include "extreme.h"
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

// `a` beats `b` if it is better, or NaN; the comparisons of integers with themselves vanish. No branches: conditions are vectors.
struct greater_first {
  static float plain(float a, float b) { return a > b ? a : b; }
  template <typename A> static A better(A a, A b) { return larger(a, b); }
  template <typename A> static bool beats(A a, A b) { return bool(int(a > b) | (int(a != a) & int(b == b))); }
  template <typename A> static A worst() { return lowest(A(0)); }
};
struct less_first {
  static float plain(float a, float b) { return a < b ? a : b; }
  template <typename A> static A better(A a, A b) { return smaller(a, b); }
  template <typename A> static bool beats(A a, A b) { return bool(int(a < b) | (int(a != a) & int(b == b))); }
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
  static lane combine(lane a, lane b) { return Order::better(a, b); }
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
    ALL_LANES
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

#define PLACE_LANES 8

// As wide as the value beside it.
template <typename A> struct place_type { typedef int type; };
template <> struct place_type<long> { typedef long type; };

// The better of two places; of equal values the first one.
template <typename Order, typename A, typename P>
inline bool is_better(A value, P place, A other, P other_place) {
  return bool(int(Order::beats(value, other)) | (int(!Order::beats(other, value)) & int(place < other_place)));
}

// A short row into 8 lanes; as take_row, but that seeing an element twice does no harm. A place is as wide as a value.
template <typename Order, typename T, typename A, typename P>
inline void locate_row(thread A *values, thread P *places, device const T *x, int count) {
  A best[PLACE_LANES], next[PLACE_LANES];
  P where[PLACE_LANES], next_where[PLACE_LANES];
  HALF_THE_LANES
  for (uint l = 0; l < PLACE_LANES; l++) {
    best[l] = A(x[l]);
    where[l] = P(l);
  }
  for (int i = PLACE_LANES; i < count; i += PLACE_LANES) {
    const int first = min(i, count - PLACE_LANES);
    device const T *p = x + first;
    HALF_THE_LANES
    for (uint l = 0; l < PLACE_LANES; l++) { // into another set: see extreme.h
      const A v = A(p[l]);
      const bool wins = Order::beats(v, best[l]);
      next[l] = wins ? v : best[l];
      next_where[l] = wins ? P(first) + P(l) : where[l];
    }
    HALF_THE_LANES
    for (uint l = 0; l < PLACE_LANES; l++) {
      best[l] = next[l];
      where[l] = next_where[l];
    }
  }
  HALF_THE_LANES
  for (uint l = 0; l < PLACE_LANES; l++) {
    values[l] = best[l];
    places[l] = where[l];
  }
}

template <typename Order, typename A, typename P>
inline void fold_places(thread const A *values, thread const P *places, thread A *to, thread P *to_places, uint count) {
  VECTORIZE
  for (uint i = 0; i < count; i++) {
    const bool first = is_better<Order>(values[2 * i], places[2 * i], values[2 * i + 1], places[2 * i + 1]);
    to[i] = first ? values[2 * i] : values[2 * i + 1];
    to_places[i] = first ? places[2 * i] : places[2 * i + 1];
  }
}

template <typename Order, typename T, typename A>
inline void locate_rows(thread A *best, thread int *where, device const T *x, long step, long width, int count) {
  A eights[REDUCE_TOGETHER * 8], fours[REDUCE_TOGETHER * 4];
  typename place_type<A>::type places[REDUCE_TOGETHER * 8], places_of_fours[REDUCE_TOGETHER * 4];
  for (long j = 0; j < width; j += REDUCE_TOGETHER) {
    const uint rows = uint(min((long)REDUCE_TOGETHER, width - j));
    for (uint r = 0; r < rows; r++) locate_row<Order>(eights + r * 8, places + r * 8, x + (j + r) * step, count);
    fold_places<Order>(eights, places, fours, places_of_fours, rows * 4);
    fold_places<Order>(fours, places_of_fours, eights, places, rows * 2);
    fold_places<Order>(eights, places, fours, places_of_fours, rows);
    for (uint r = 0; r < rows; r++) {
      best[j + r] = fours[r];
      where[j + r] = int(places_of_fours[r]);
    }
  }
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
  lane bests[2][MPS_REDUCE_TILE];
  int wheres[2][MPS_REDUCE_TILE]; // from `begin` on; a chunk is shorter than 2^31
  thread lane *best = bests[0], *next = bests[1];
  thread int *where = wheres[0], *next_where = wheres[1];
  for (long j = 0; j < width; j++) {
    best[j] = Order::template worst<lane>();
    where[j] = -1;
  }
  if (a.rows) locate_rows<Order>(best, where, x, step, width, int(a.reduce_count));
  for (long p = begin; p < end && !a.rows;) {
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
          const bool wins = bool(int(Order::beats(v, best[j])) | int(where[j] < 0));
          next[j] = wins ? v : best[j];
          next_where[j] = wins ? row : where[j];
        }
      } else {
        VECTORIZE
        for (long j = 0; j < width; j++) {
          const lane v = lane(source[j * step]);
          const bool wins = bool(int(Order::beats(v, best[j])) | int(where[j] < 0));
          next[j] = wins ? v : best[j];
          next_where[j] = wins ? row : where[j];
        }
      }
      thread lane *const last = best;
      thread int *const last_where = where;
      best = next;
      next = last;
      where = next_where;
      next_where = last_where;
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
