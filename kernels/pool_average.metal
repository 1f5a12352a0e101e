// SPDX-License-Identifier: BSD-3-Clause
//
// pool_average: means over windows, and their gradients. Both are sums of source elements into target elements: of a window's elements,
// or of the shares of all windows that hold an element. Gradients are gathered, so that every thread owns what it writes.

#include "pool.h"

using namespace pool;

namespace {

template <typename T> struct sum_of { typedef float type; };
template <> struct sum_of<long> { typedef long type; };

// Sums, and what they are divided by, have one type: float would round a count or the user's divisor beyond 2^24.
inline float divided(float sum, float by) { return by != 0.0f ? sum / by : 0.0f; }
inline long divided(long sum, long by) { return by > 0 || by < -1 ? sum / by : by ? long(0ul - ulong(sum)) : 0; }

// The sides by direction: forward from the input to the output, backward from the output's gradient to the input's.
template <bool Backward> inline constant int64_t *source_strides(constant mps_pool_arguments &a) { return Backward ? a.out_stride : a.in_stride; }
template <bool Backward> inline constant int64_t *target_strides(constant mps_pool_arguments &a) { return Backward ? a.in_stride : a.out_stride; }
template <bool Backward> inline constant int64_t *target_sizes(constant mps_pool_arguments &a) { return Backward ? a.in_size : a.out_size; }
template <bool Backward> inline window sources_of(constant mps_pool_arguments &a, uint d, long i) {
  return Backward ? windows_at(a, d, i) : window_of(a, d, i);
}

template <typename T> inline device T *row_of(device T *plane, long row, constant int64_t *sizes, constant int64_t *strides) {
  const long z = quotient(row, sizes[1]);
  return plane + z * strides[0] + (row - z * sizes[1]) * strides[1];
}

// What a window's sum is divided by, as a product of its three sides.
template <typename S> inline S side(constant mps_pool_arguments &a, uint d, long o) {
  if (a.divisor) return S(d == 0 ? a.divisor : 1);
  return S(count_of(a, window_of(a, d, o)));
}

// Of one row of the target: the lines of the source, and (forward) two sides of the divisor.
template <typename S> struct row_lines {
  window depth, height;
  S sides;
};
template <typename S> inline bool same(row_lines<S> a, row_lines<S> b) {
  return a.depth.begin == b.depth.begin && a.depth.end == b.depth.end && a.height.begin == b.height.begin && a.height.end == b.height.end;
}
template <bool Backward, typename S> inline row_lines<S> lines_of(constant mps_pool_arguments &a, long row) {
  const long z = quotient(row, target_sizes<Backward>(a)[1]), y = row - z * target_sizes<Backward>(a)[1];
  row_lines<S> lines = {sources_of<Backward>(a, 0, z), sources_of<Backward>(a, 1, y), S(1)};
  if (!Backward) lines.sides = side<S>(a, 0, z) * side<S>(a, 1, y);
  return lines;
}

// column[i] = the sum of elements begin + i of the lines; gradients are divided first, by widths[i] and the sides of their line.
template <bool Backward, typename T, typename S>
inline void sum_lines(constant mps_pool_arguments &a, device const T *source, row_lines<S> lines, long begin, int count, thread const S *widths,
                      thread S *column) {
  const long step = source_strides<Backward>(a)[2];
  for (int i = 0; i < count; i++) column[i] = 0;
  for (long z = lines.depth.begin; z < lines.depth.end; z++)
    for (long y = lines.height.begin; y < lines.height.end; y++) {
      device const T *line = source + z * source_strides<Backward>(a)[0] + y * source_strides<Backward>(a)[1] + begin * step;
      const S sides = Backward ? side<S>(a, 0, z) * side<S>(a, 1, y) : S(1);
      if (Backward && step == 1) {
        VECTORIZE for (int i = 0; i < count; i++) column[i] += divided(S(line[i]), widths[i] * sides);
      } else if (Backward) {
        for (int i = 0; i < count; i++) column[i] += divided(S(line[i * step]), widths[i] * sides);
      } else if (step == 1) {
        VECTORIZE for (int i = 0; i < count; i++) column[i] += S(line[i]);
      } else {
        for (int i = 0; i < count; i++) column[i] += S(line[i * step]);
      }
    }
}

template <typename T, typename S>
inline void store(thread const S *sums, thread const S *widths, S sides, int count, device T *to, long step) {
  if (step == 1) {
    VECTORIZE for (int i = 0; i < count; i++) to[i] = T(divided(sums[i], widths[i] * sides));
  } else {
    for (int i = 0; i < count; i++) to[i * step] = T(divided(sums[i], widths[i] * sides));
  }
}

// ---- forward, along the width ----

template <typename T> inline void average_wide_windows(constant mps_pool_arguments &a, device const T *source, device T *target, long first, long last) {
  typedef typename sum_of<T>::type S;
  const long step = a.in_stride[2];
  for (long row = first; row < last; row++) {
    const row_lines<S> lines = lines_of<false, S>(a, row);
    device T *to = row_of(target, row, a.out_size, a.out_stride);
    for (long o = 0; o < a.out_size[2]; o++) {
      const window w = window_of(a, 2, o);
      S sums[LANES];
      for (int l = 0; l < LANES; l++) sums[l] = 0;
      for (long z = lines.depth.begin; z < lines.depth.end; z++)
        for (long y = lines.height.begin; y < lines.height.end; y++) {
          device const T *line = source + z * a.in_stride[0] + y * a.in_stride[1];
          long x = w.begin;
          for (; x + LANES <= w.end && step == 1; x += LANES) {
            VECTORIZE for (int l = 0; l < LANES; l++) sums[l] += S(line[x + l]);
          }
          for (int l = 0; x < w.end; x++, l = (l + 1) % LANES) sums[l] += S(line[x * step]);
        }
      for (int count = LANES / 2; count > 0; count /= 2)
        for (int l = 0; l < count; l++) sums[l] += sums[l + count];
      to[o * a.out_stride[2]] = T(divided(sums[0], lines.sides * side<S>(a, 2, o)));
    }
  }
}

// Sums of Taps (0: `taps`) columns, windows Stride (0: `stride`) apart.
template <int Stride, typename S> inline void sum_columns(thread const S *column, int taps, int stride, int count, thread S *sums) {
  const int step = Stride ? Stride : stride;
  VECTORIZE for (int o = 0; o < count; o++) sums[o] = column[o * step];
  for (int k = 1; k < taps; k++) {
    VECTORIZE for (int o = 0; o < count; o++) sums[o] += column[o * step + k];
  }
}

template <typename T> inline void average_regular(constant mps_pool_arguments &a, device const T *source, device T *target, long first, long last) {
  typedef typename sum_of<T>::type S;
  S column[COLUMNS], sums[COLUMNS];
  S widths[COLUMNS];
  const int taps = int(a.window[2]), stride = int(a.stride[2]);
  const long block = (COLUMNS - taps) / stride + 1;
  for (long x = 0; x < a.out_size[2]; x += block) {
    const int count = int(min(block, a.out_size[2] - x)), length = (count - 1) * stride + taps;
    const long base = x * stride - a.padding[2], low = max(0l, base), high = min(long(a.in_size[2]), base + length);
    for (int o = 0; o < count; o++) widths[o] = side<S>(a, 2, x + o);
    for (long i = base; i < low && i < base + length; i++) column[i - base] = 0;
    for (long i = max(high, base); i < base + length; i++) column[i - base] = 0;
    for (long row = first; row < last; row++) {
      const row_lines<S> lines = lines_of<false, S>(a, row);
      sum_lines<false>(a, source, lines, low, int(max(0l, high - low)), widths, column + (low - base));
      if (stride == 1)
        sum_columns<1>(column, taps, stride, count, sums);
      else if (stride == 2)
        sum_columns<2>(column, taps, stride, count, sums);
      else
        sum_columns<0>(column, taps, stride, count, sums);
      device T *to = row_of(target, row, a.out_size, a.out_stride) + x * a.out_stride[2];
      store(sums, widths, lines.sides, count, to, a.out_stride[2]);
    }
  }
}

template <typename T> inline void average_adaptive(constant mps_pool_arguments &a, device const T *source, device T *target, long first, long last) {
  typedef typename sum_of<T>::type S;
  S column[COLUMNS], sums[COLUMNS];
  S widths[COLUMNS];
  int begins[COLUMNS], ends[COLUMNS];
  const long block = max(1l, min(long(COLUMNS), (COLUMNS - 2 * WIDE) * a.out_size[2] / a.in_size[2]));
  for (long x = 0; x < a.out_size[2]; x += block) {
    const int count = int(min(block, a.out_size[2] - x));
    const long base = window_of(a, 2, x).begin;
    for (int o = 0; o < count; o++) {
      const window w = window_of(a, 2, x + o);
      begins[o] = int(w.begin - base);
      ends[o] = int(w.end - base);
      widths[o] = S(w.end - w.begin);
    }
    for (long row = first; row < last; row++) {
      const row_lines<S> lines = lines_of<false, S>(a, row);
      sum_lines<false>(a, source, lines, base, ends[count - 1], widths, column);
      for (int o = 0; o < count; o++) {
        S sum = column[begins[o]];
        for (int i = begins[o] + 1; i < ends[o]; i++) sum += column[i];
        sums[o] = sum;
      }
      device T *to = row_of(target, row, a.out_size, a.out_stride) + x * a.out_stride[2];
      store(sums, widths, lines.sides, count, to, a.out_stride[2]);
    }
  }
}

// ---- backward, along the width ----

// Every target of stride * m + phase - padding has the columns m, m - 1, ... as long as their windows reach it. `taps`: how many at most.
template <int Stride, typename S> inline void spread_columns(thread const S *column, int window, int stride, int taps, int count, thread S *sums) {
  const int step = Stride ? Stride : stride;
  for (int i = 0; i < count * step; i++) sums[i] = 0;
  for (int j = 0; j < taps; j++) {
    thread const S *from = column + (taps - 1 - j);
    if (Stride == 2) {
      const bool both = 2 * j + 1 < window; // a full pair is stored with fewer instructions than every second element
      VECTORIZE for (int m = 0; m < count; m++) {
        sums[2 * m] += from[m];
        sums[2 * m + 1] += both ? from[m] : S(0);
      }
      continue;
    }
    for (int phase = 0; phase < step && j * step + phase < window; phase++) {
      VECTORIZE for (int m = 0; m < count; m++) sums[m * step + phase] += from[m];
    }
  }
}

template <typename T, typename S> inline void store_sums(thread const S *sums, int count, device T *to, long step) {
  if (step == 1) {
    VECTORIZE for (int i = 0; i < count; i++) to[i] = T(sums[i]);
  } else {
    for (int i = 0; i < count; i++) to[i * step] = T(sums[i]);
  }
}

template <typename T> inline void spread_regular(constant mps_pool_arguments &a, device const T *source, device T *target, long first, long last) {
  typedef typename sum_of<T>::type S;
  S column[COLUMNS], sums[COLUMNS];
  S widths[COLUMNS];
  const int stride = int(a.stride[2]), size = int(a.window[2]), taps = (size + stride - 1) / stride;
  const long block = COLUMNS - 2 * WIDE;
  for (long x = 0; x < a.in_size[2]; x += block) {
    const int length = int(min(block, a.in_size[2] - x));
    const long begin = (x + a.padding[2]) / stride, end = (x + length - 1 + a.padding[2]) / stride + 1; // m
    const long base = begin - (taps - 1), low = max(0l, base), high = max(low, min(long(a.out_size[2]), end));
    for (long o = low; o < high; o++) widths[o - low] = side<S>(a, 2, o);
    for (long o = base; o < end; o++) column[o - base] = 0;
    row_lines<S> before = lines_of<true, S>(a, first);
    for (long row = first; row < last; row++) {
      const row_lines<S> lines = lines_of<true, S>(a, row);
      if (row == first || !same(lines, before)) { // else the row is like the one before
        sum_lines<true>(a, source, lines, low, int(high - low), widths, column + (low - base));
        const int count = int(end - begin);
        if (stride == 1)
          spread_columns<1>(column, size, stride, taps, count, sums);
        else if (stride == 2)
          spread_columns<2>(column, size, stride, taps, count, sums);
        else
          spread_columns<0>(column, size, stride, taps, count, sums);
      }
      before = lines;
      device T *to = row_of(target, row, a.in_size, a.in_stride) + x * a.in_stride[2];
      store_sums(sums + (x + a.padding[2] - begin * stride), length, to, a.in_stride[2]);
    }
  }
}

// One window along the width, as in global pooling.
template <typename T> inline void spread_one(constant mps_pool_arguments &a, device const T *source, device T *target, long first, long last) {
  typedef typename sum_of<T>::type S;
  const window w = window_of(a, 2, 0);
  const S width = side<S>(a, 2, 0);
  const long step = a.in_stride[2];
  for (long row = first; row < last; row++) {
    S sum;
    sum_lines<true>(a, source, lines_of<true, S>(a, row), 0, 1, &width, &sum);
    const T share = T(sum);
    device T *to = row_of(target, row, a.in_size, a.in_stride);
    for (long x = 0; x < w.begin; x++) to[x * step] = 0;
    if (step == 1) {
      for (long x = w.begin; x < w.end; x++) to[x] = share;
    } else {
      for (long x = w.begin; x < w.end; x++) to[x * step] = share;
    }
    for (long x = max(w.begin, w.end); x < a.in_size[2]; x++) to[x * step] = 0;
  }
}

// Windows of any kind: one after the other into the row.
template <typename T> inline void spread_windows(constant mps_pool_arguments &a, device const T *source, device T *target, long first, long last) {
  typedef typename sum_of<T>::type S;
  S column[COLUMNS], sums[COLUMNS];
  S widths[COLUMNS];
  int begins[COLUMNS], ends[COLUMNS];
  for (long x = 0; x < a.in_size[2]; x += COLUMNS) {
    const long length = min(long(COLUMNS), a.in_size[2] - x);
    const long low = windows_at(a, 2, x).begin, high = windows_at(a, 2, x + length - 1).end;
    long known = -1; // the first window in the tables
    row_lines<S> before = lines_of<true, S>(a, first);
    for (long row = first; row < last; row++) {
      const row_lines<S> lines = lines_of<true, S>(a, row);
      const bool again = row > first && same(lines, before); // the row is like the one before
      before = lines;
      for (long i = 0; i < length && !again; i++) sums[i] = 0;
      for (long o = low; o < high && !again; o += COLUMNS) {
        const int count = int(min(long(COLUMNS), high - o));
        for (int i = 0; i < count && known != o; i++) {
          const window w = window_of(a, 2, o + i);
          begins[i] = int(clamp(w.begin - x, 0l, length));
          ends[i] = int(clamp(w.end - x, 0l, length));
          widths[i] = side<S>(a, 2, o + i);
        }
        known = o;
        sum_lines<true>(a, source, lines, o, count, widths, column);
        for (int i = 0; i < count; i++) {
          const S share = column[i];
          for (int j = begins[i]; j < ends[i]; j++) sums[j] += share;
        }
      }
      device T *to = row_of(target, row, a.in_size, a.in_stride) + x * a.in_stride[2];
      store_sums(sums, int(length), to, a.in_stride[2]);
    }
  }
}

// ---- both, along the channels ----

template <bool Backward, typename T>
inline void average_channels(constant mps_pool_arguments &a, device const T *source, device T *target, int channels, long channel_stride, long first, long last) {
  typedef typename sum_of<T>::type S;
  S sums[CHANNELS];
  S widths[COLUMNS];
  for (long o = 0; Backward && o < min(a.out_size[2], long(COLUMNS)); o++) widths[o] = side<S>(a, 2, o);
  constant int64_t *from = source_strides<Backward>(a), *to = target_strides<Backward>(a), *sizes = target_sizes<Backward>(a);
  for (long row = first; row < last; row++) {
    const row_lines<S> lines = lines_of<Backward, S>(a, row);
    for (long i = 0; i < sizes[2]; i++) {
      const window width = sources_of<Backward>(a, 2, i);
      for (int c = 0; c < channels; c++) sums[c] = 0;
      for (long z = lines.depth.begin; z < lines.depth.end; z++)
        for (long y = lines.height.begin; y < lines.height.end; y++) {
          const S sides = Backward ? side<S>(a, 0, z) * side<S>(a, 1, y) : S(1);
          for (long x = width.begin; x < width.end; x++) {
            device const T *pixel = source + z * from[0] + y * from[1] + x * from[2];
            if (Backward) {
              const S by = sides * (x < COLUMNS ? widths[x] : side<S>(a, 2, x));
              VECTORIZE for (int c = 0; c < channels; c++) sums[c] += divided(S(pixel[c]), by);
            } else {
              VECTORIZE for (int c = 0; c < channels; c++) sums[c] += S(pixel[c]);
            }
          }
        }
      const S by = Backward ? S(1) : lines.sides * side<S>(a, 2, i);
      device T *result = row_of(target, row, sizes, to) + i * to[2];
      if (channel_stride == 1) {
        VECTORIZE for (int c = 0; c < channels; c++) result[c] = T(divided(sums[c], by));
      } else {
        for (int c = 0; c < channels; c++) result[c * channel_stride] = T(divided(sums[c], by));
      }
    }
  }
}

}  // namespace

// Thread (rows of the target, plane), or (rows of the target, batch, block of channels).
template <typename T>
kernel void pool_average(device const T *input [[buffer(0)]], device T *out [[buffer(1)]], constant mps_pool_arguments &a [[buffer(3)]],
                         uint3 position [[thread_position_in_grid]]) {
  const long first = long(position.x) * a.rows, last = min(first + a.rows, long(a.out_size[0] * a.out_size[1]));
  if (a.channel_block) {
    const long c = long(position.z) * a.channel_block;
    average_channels<false>(a, input + position.y * a.in_batch + c * a.in_channel, out + position.y * a.out_batch + c * a.out_channel,
                            int(min(long(a.channel_block), a.channels - c)), a.out_channel, first, last);
    return;
  }
  device const T *from = input + in_plane(a, position.y);
  device T *to = out + out_plane(a, position.y);
  if (a.kind[2] == MPS_POOL_ADAPTIVE && a.in_size[2] < (WIDE - 2) * a.out_size[2])
    average_adaptive(a, from, to, first, last);
  else if (a.kind[2] == MPS_POOL_REGULAR && a.window[2] < WIDE && a.stride[2] < 2 * WIDE)
    average_regular(a, from, to, first, last);
  else
    average_wide_windows(a, from, to, first, last);
}

template <typename T>
kernel void pool_average_backward(device T *grad_input [[buffer(0)]], device const T *grad_output [[buffer(1)]],
                                  constant mps_pool_arguments &a [[buffer(3)]], uint3 position [[thread_position_in_grid]]) {
  const long first = long(position.x) * a.rows, last = min(first + a.rows, long(a.in_size[0] * a.in_size[1]));
  if (a.channel_block) {
    const long c = long(position.z) * a.channel_block;
    average_channels<true>(a, grad_output + position.y * a.out_batch + c * a.out_channel, grad_input + position.y * a.in_batch + c * a.in_channel,
                           int(min(long(a.channel_block), a.channels - c)), a.in_channel, first, last);
    return;
  }
  device const T *from = grad_output + out_plane(a, position.y);
  device T *to = grad_input + in_plane(a, position.y);
  if (a.out_size[2] == 1)
    spread_one(a, from, to, first, last);
  else if (a.kind[2] == MPS_POOL_REGULAR && a.window[2] < WIDE && a.stride[2] < WIDE / 2)
    spread_regular(a, from, to, first, last);
  else
    spread_windows(a, from, to, first, last);
}

#define AVERAGE(NAME, T)                                                                                                                         \
  template [[host_name("pool_average_" #NAME)]] kernel void pool_average<T>(device const T *, device T *, constant mps_pool_arguments &, uint3); \
  template [[host_name("pool_average_backward_" #NAME)]] kernel void pool_average_backward<T>(device T *, device const T *,                     \
                                                                                             constant mps_pool_arguments &, uint3);
AVERAGE(f32, float)
AVERAGE(f16, half)
AVERAGE(bf16, bfloat)
AVERAGE(i64, long)
