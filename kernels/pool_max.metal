// SPDX-License-Identifier: BSD-3-Clause
//
// pool_max: maxima over windows and their numbers in the plane, row-major. A NaN is larger than everything, and the last one is taken; of
// equals the first. Lines are combined before columns, so that the order is kept by comparing numbers. Gradients and unpooling put
// elements where the numbers say, a whole plane a thread.

#include "error.h"
#include "pool.h"

using namespace pool;

namespace {

// What elements are compared in, what is smaller than all of them, and what sums of gradients are kept in.
template <typename T> struct value_of { typedef T type; };
template <> struct value_of<half> { typedef float type; };
template <> struct value_of<bfloat> { typedef float type; };
template <typename V> inline V least() { return numeric_limits<V>::lowest(); }
template <> inline float least<float>() { return -INFINITY; }

// `take` in any order, `take_next` in ascending order of the numbers. Maxima that grow over a loop stay in registers, in arrays of a fixed
// length: in memory, a choice between a new and the old element would become a store under a mask, which the next load waits for.
template <typename N, typename V> inline void take(thread V &best, thread N &best_number, V value, N number) {
  const bool larger = (value > best) | ((value == best) & (number < best_number));
  const bool later_nan = (value != value) & ((best == best) | (number > best_number));
  const bool wins = larger | later_nan;
  best = wins ? value : best;
  best_number = wins ? number : best_number;
}
template <typename N, typename V> inline void take_next(thread V &best, thread N &best_number, V value, N number) {
  const bool larger = (value > best) | (value != value);
  best = larger ? value : best;
  best_number = larger ? number : best_number;
}

// Where a window of fractional pooling begins. As on the CPU, the arithmetic is that of the tensor's type.
template <typename T> inline long fractional_begin(constant mps_pool_arguments &a, uint d, long o, T sample) {
  const long free = a.in_size[d] - a.window[d];
  if (o == a.out_size[d] - 1) return free;
  const T alpha = T(float(T(float(free))) / float(T(float(a.out_size[d] - 1))));
  const float at = float(T(float(T(float(T(float(o))) + float(sample))) * float(alpha))), before = float(T(float(sample) * float(alpha)));
  if (!(abs(at) < 1e9f && abs(before) < 1e9f)) return 0;
  return clamp(long(at) - long(before), 0l, free);
}

// The samples of a plane: depth, height, width in three dimensions, but width, height in two.
template <typename T> inline window max_window(constant mps_pool_arguments &a, device const T *samples, uint d, long o) {
  if (a.kind[d] != MPS_POOL_FRACTIONAL) return window_of(a, d, o);
  const long begin = fractional_begin(a, d, o, samples[a.samples == 3 ? d : 2 - d]);
  return {begin, begin + a.window[d], 1, 0};
}

// ---- along the width ----

// `L` columns of the lines, in registers.
template <int L, typename T, typename V, typename N>
inline void take_line_chunk(constant mps_pool_arguments &a, device const T *input, window depth, window height, long begin, long step, thread V *column,
                            thread N *number) {
  V best[L];
  N best_number[L];
  for (int l = 0; l < L; l++) best[l] = least<V>();
  for (int l = 0; l < L; l++) best_number[l] = numeric_limits<N>::max();
  bool fresh = true;
  for (long z = depth.begin; z < depth.end; z += depth.step)
    for (long y = height.begin; y < height.end; y += height.step) {
      device const T *line = input + z * a.in_stride[0] + y * a.in_stride[1] + begin * a.in_stride[2];
      const N base = N((z * a.in_size[1] + y) * a.in_size[2] + begin);
      if (fresh) {
        for (int l = 0; l < L; l++) best[l] = V(line[l * step]);
        for (int l = 0; l < L; l++) best_number[l] = base + N(l);
      } else {
        for (int l = 0; l < L; l++) take_next(best[l], best_number[l], V(line[l * step]), N(base + N(l)));
      }
      fresh = false;
    }
  for (int l = 0; l < L; l++) column[l] = best[l];
  for (int l = 0; l < L; l++) number[l] = best_number[l];
}

// column[i] = the largest of elements begin + i of the lines, number[i] its number. The last chunk may begin inside of the one before.
template <typename T, typename V, typename N>
inline void take_lines(constant mps_pool_arguments &a, device const T *input, window depth, window height, long begin, int count, thread V *column,
                       thread N *number) {
  const long step = a.in_stride[2];
  int done = 0;
  if (step == 1 && count >= LANES) {
    for (; done < count; done += LANES) {
      const int i = min(done, count - LANES);
      take_line_chunk<LANES>(a, input, depth, height, begin + i, 1, column + i, number + i);
    }
  } else if (step == 1 && count >= LANES / 2) {
    for (; done < count; done += LANES / 2) {
      const int i = min(done, count - LANES / 2);
      take_line_chunk<LANES / 2>(a, input, depth, height, begin + i, 1, column + i, number + i);
    }
  }
  for (; done < count; done++) take_line_chunk<1>(a, input, depth, height, begin + done, step, column + done, number + done);
}

// The number of a window that lies in the padding as a whole.
inline long first_number(constant mps_pool_arguments &a, window depth, window height, long x) {
  return (depth.begin * a.in_size[1] + height.begin) * a.in_size[2] + x;
}

template <typename T, typename N>
inline void max_wide_windows(constant mps_pool_arguments &a, device const T *input, device T *out, device long *indices, device const T *samples, long first,
                             long last) {
  typedef typename value_of<T>::type V;
  for (long row = first; row < last; row++) {
    const long od = quotient(row, a.out_size[1]), oh = row - od * a.out_size[1];
    const window depth = max_window(a, samples, 0, od), height = max_window(a, samples, 1, oh);
    for (long ow = 0; ow < a.out_size[2]; ow++) {
      const window w = max_window(a, samples, 2, ow);
      V best[LANES];
      N best_number[LANES];
      for (int l = 0; l < LANES; l++) best[l] = least<V>();
      for (int l = 0; l < LANES; l++) best_number[l] = numeric_limits<N>::max();
      for (long z = depth.begin; z < depth.end; z += depth.step)
        for (long y = height.begin; y < height.end; y += height.step) {
          device const T *line = input + z * a.in_stride[0] + y * a.in_stride[1];
          const N base = N((z * a.in_size[1] + y) * a.in_size[2]);
          long x = w.begin;
          if (a.in_stride[2] == 1 && w.step == 1 && w.end - x >= LANES) {
            for (; x < w.end; x += LANES) { // the last chunk may begin inside of the one before
              const long from = min(x, w.end - LANES);
              for (int l = 0; l < LANES; l++) take(best[l], best_number[l], V(line[from + l]), N(base + N(from) + N(l)));
            }
          }
          for (; x < w.end; x += w.step) take(best[0], best_number[0], V(line[x * a.in_stride[2]]), N(base + N(x)));
        }
      for (int count = LANES / 2; count > 0; count /= 2)
        for (int l = 0; l < count; l++) take(best[l], best_number[l], best[l + count], best_number[l + count]);
      // Where all is -infinity, no number was taken.
      const long number = best_number[0] == numeric_limits<N>::max() ? first_number(a, depth, height, w.begin) : long(best_number[0]);
      out[od * a.out_stride[0] + oh * a.out_stride[1] + ow * a.out_stride[2]] = T(best[0]);
      if (a.indexed) indices[od * a.index_stride[0] + oh * a.index_stride[1] + ow * a.index_stride[2]] = number;
    }
  }
}

// `L` windows, `step` columns apart.
template <int L, int Step, typename V, typename N>
inline void take_column_chunk(thread const V *column, thread const N *number, int taps, int apart, int stride, thread V *best, thread N *best_number) {
  const int step = Step ? Step : stride;
  V values[L];
  N numbers[L];
  for (int l = 0; l < L; l++) values[l] = column[l * step];
  for (int l = 0; l < L; l++) numbers[l] = number[l * step];
  for (int k = 1; k < taps; k++) {
    thread const V *next = column + k * apart;
    thread const N *next_number = number + k * apart;
    for (int l = 0; l < L; l++) take(values[l], numbers[l], next[l * step], next_number[l * step]);
  }
  for (int l = 0; l < L; l++) best[l] = values[l];
  for (int l = 0; l < L; l++) best_number[l] = numbers[l];
}

template <int Step, typename V, typename N>
inline void take_columns(thread const V *column, thread const N *number, int taps, int apart, int stride, int count, thread V *best, thread N *best_number) {
  int done = 0;
  if (count >= LANES / 2) {
    for (; done < count; done += LANES / 2) {
      const int o = min(done, count - LANES / 2);
      take_column_chunk<LANES / 2, Step>(column + o * stride, number + o * stride, taps, apart, stride, best + o, best_number + o);
    }
  }
  for (; done < count; done++)
    take_column_chunk<1, 1>(column + done * stride, number + done * stride, taps, apart, stride, best + done, best_number + done);
}

// The largest of `count` columns, at least `L`.
template <int L, typename V, typename N> inline void take_run(thread const V *column, thread const N *number, int count, thread V &best, thread N &best_number) {
  V values[L];
  N numbers[L];
  for (int l = 0; l < L; l++) values[l] = column[l];
  for (int l = 0; l < L; l++) numbers[l] = number[l];
  for (int i = L; i < count; i += L) {
    const int from = min(i, count - L);
    for (int l = 0; l < L; l++) take(values[l], numbers[l], column[from + l], number[from + l]);
  }
  for (int half_count = L / 2; half_count > 0; half_count /= 2)
    for (int l = 0; l < half_count; l++) take(values[l], numbers[l], values[l + half_count], numbers[l + half_count]);
  best = values[0];
  best_number = numbers[0];
}

template <typename T, typename V, typename N>
inline void store_row(constant mps_pool_arguments &a, thread const V *best, thread const N *best_number, int count, long od, long oh, long x, device T *out,
                      device long *indices) {
  device T *to = out + od * a.out_stride[0] + oh * a.out_stride[1] + x * a.out_stride[2];
  const long step = a.out_stride[2];
  if (step == 1) {
    VECTORIZE for (int o = 0; o < count; o++) to[o] = T(best[o]);
  } else {
    for (int o = 0; o < count; o++) to[o * step] = T(best[o]);
  }
  if (!a.indexed) return;
  device long *at = indices + od * a.index_stride[0] + oh * a.index_stride[1] + x * a.index_stride[2];
  const long hop = a.index_stride[2];
  if (hop == 1) {
    VECTORIZE for (int o = 0; o < count; o++) at[o] = long(best_number[o]);
  } else {
    for (int o = 0; o < count; o++) at[o * hop] = long(best_number[o]);
  }
}

template <typename T, typename N>
inline void max_regular(constant mps_pool_arguments &a, device const T *input, device T *out, device long *indices, long first, long last) {
  typedef typename value_of<T>::type V;
  V column[COLUMNS], best[COLUMNS];
  N number[COLUMNS], best_number[COLUMNS];
  const int taps = int(a.window[2]), stride = int(a.stride[2]), apart = int(a.dilation[2]), span = (taps - 1) * apart + 1;
  const long block = (COLUMNS - span) / stride + 1;
  const bool may_be_empty = a.dilation[0] > 1 || a.dilation[1] > 1 || apart > 1;
  for (long x = 0; x < a.out_size[2]; x += block) {
    const int count = int(min(block, a.out_size[2] - x)), length = (count - 1) * stride + span;
    const long base = x * stride - a.padding[2], low = max(0l, base), high = max(low, min(long(a.in_size[2]), base + length));
    for (int i = 0; i < length; i++) {
      column[i] = least<V>();
      number[i] = numeric_limits<N>::max();
    }
    for (long row = first; row < last; row++) {
      const long od = quotient(row, a.out_size[1]), oh = row - od * a.out_size[1];
      const window depth = window_of(a, 0, od), height = window_of(a, 1, oh);
      if (low - base < length) take_lines(a, input, depth, height, low, int(high - low), column + (low - base), number + (low - base));
      if (stride == 1)
        take_columns<1>(column, number, taps, apart, stride, count, best, best_number);
      else if (stride == 2)
        take_columns<2>(column, number, taps, apart, stride, count, best, best_number);
      else
        take_columns<0>(column, number, taps, apart, stride, count, best, best_number);
      for (int o = 0; may_be_empty && o < count; o++)
        if (best_number[o] == numeric_limits<N>::max()) best_number[o] = N(first_number(a, depth, height, window_of(a, 2, x + o).begin));
      store_row(a, best, best_number, count, od, oh, x, out, indices);
    }
  }
}

// Narrow windows that begin anywhere.
template <typename T, typename N>
inline void max_uneven(constant mps_pool_arguments &a, device const T *input, device T *out, device long *indices, device const T *samples, long first, long last) {
  typedef typename value_of<T>::type V;
  V column[COLUMNS], best[COLUMNS];
  N number[COLUMNS], best_number[COLUMNS];
  int begins[COLUMNS], ends[COLUMNS];
  int count;
  for (long x = 0; x < a.out_size[2]; x += count) {
    const long base = max_window(a, samples, 2, x).begin;
    int length = 0;
    for (count = 0; count < COLUMNS && x + count < a.out_size[2]; count++) {
      const window w = max_window(a, samples, 2, x + count);
      if (w.end - base > COLUMNS || w.begin < base) break;
      begins[count] = int(w.begin - base);
      ends[count] = int(w.end - base);
      length = max(length, ends[count]);
    }
    for (long row = first; row < last; row++) {
      const long od = quotient(row, a.out_size[1]), oh = row - od * a.out_size[1];
      take_lines(a, input, max_window(a, samples, 0, od), max_window(a, samples, 1, oh), base, length, column, number);
      for (int o = 0; o < count; o++) {
        const int from = begins[o], taps = ends[o] - from;
        if (taps >= 12)
          take_run<8>(column + from, number + from, taps, best[o], best_number[o]);
        else if (taps >= 4)
          take_run<4>(column + from, number + from, taps, best[o], best_number[o]);
        else
          take_run<1>(column + from, number + from, taps, best[o], best_number[o]);
      }
      store_row(a, best, best_number, count, od, oh, x, out, indices);
    }
  }
}

template <typename T, typename N>
inline void max_rows(constant mps_pool_arguments &a, device const T *input, device T *out, device long *indices, device const T *samples, long first, long last) {
  const bool narrow = (a.window[2] - 1) * a.dilation[2] < 2 * WIDE && a.window[2] < WIDE;
  if (a.kind[2] == MPS_POOL_ADAPTIVE ? a.in_size[2] < (WIDE - 2) * a.out_size[2] : a.kind[2] == MPS_POOL_FRACTIONAL && narrow)
    max_uneven<T, N>(a, input, out, indices, samples, first, last);
  else if (a.kind[2] == MPS_POOL_REGULAR && narrow && a.stride[2] < 2 * WIDE)
    max_regular<T, N>(a, input, out, indices, first, last);
  else
    max_wide_windows<T, N>(a, input, out, indices, samples, first, last);
}

// ---- along the channels ----

// `L` channels of a window, in registers.
template <int L, typename T, typename N>
inline void max_channel_chunk(constant mps_pool_arguments &a, device const T *input, window depth, window height, window width, device T *to, device long *at) {
  typedef typename value_of<T>::type V;
  V best[L];
  N best_number[L];
  const N begin = N(first_number(a, depth, height, width.begin));
  for (int c = 0; c < L; c++) best[c] = least<V>();
  for (int c = 0; c < L; c++) best_number[c] = begin;
  for (long z = depth.begin; z < depth.end; z += depth.step)
    for (long y = height.begin; y < height.end; y += height.step) {
      device const T *pixel = input + z * a.in_stride[0] + y * a.in_stride[1] + width.begin * a.in_stride[2];
      const long hop = width.step * a.in_stride[2];
      N number = N((z * a.in_size[1] + y) * a.in_size[2] + width.begin);
      for (long x = width.begin; x < width.end; x += width.step, pixel += hop, number += N(width.step))
        for (int c = 0; c < L; c++) take_next(best[c], best_number[c], V(pixel[c]), number);
    }
  const long step = a.out_channel, index_step = a.index_channel;
  if (step == 1) {
    for (int c = 0; c < L; c++) to[c] = T(best[c]);
  } else {
    for (int c = 0; c < L; c++) to[c * step] = T(best[c]);
  }
  if (!a.indexed) return;
  if (index_step == 1) {
    for (int c = 0; c < L; c++) at[c] = long(best_number[c]);
  } else {
    for (int c = 0; c < L; c++) at[c * index_step] = long(best_number[c]);
  }
}

template <typename T, typename N>
inline void max_channels(constant mps_pool_arguments &a, device const T *input, device T *out, device long *indices, int channels, long first, long last) {
  for (long row = first; row < last; row++) {
    const long od = quotient(row, a.out_size[1]), oh = row - od * a.out_size[1];
    const window depth = window_of(a, 0, od), height = window_of(a, 1, oh);
    for (long ow = 0; ow < a.out_size[2]; ow++) {
      const window width = window_of(a, 2, ow);
      device T *to = out + od * a.out_stride[0] + oh * a.out_stride[1] + ow * a.out_stride[2];
      device long *at = indices + od * a.index_stride[0] + oh * a.index_stride[1] + ow * a.index_stride[2];
      int c = 0;
      for (; c + LANES <= channels; c += LANES)
        max_channel_chunk<LANES, T, N>(a, input + c, depth, height, width, to + c * a.out_channel, at + c * a.index_channel);
      for (; c < channels; c++) max_channel_chunk<1, T, N>(a, input + c, depth, height, width, to + c * a.out_channel, at + c * a.index_channel);
    }
  }
}

inline bool numbers_are_short(constant mps_pool_arguments &a) {
  return a.in_size[0] * a.in_size[1] * a.in_size[2] < 0x7fff0000l && a.stride[2] < 65536 && a.dilation[2] < 65536;
}

// ---- back to the plane ----

// Position in a plane from its number in row-major order, as indices tell it.
inline long in_place(constant mps_pool_arguments &a, long number) {
  if (a.place) return number * a.place;
  const long w = number % a.in_size[2], rest = number / a.in_size[2];
  return rest / a.in_size[1] * a.in_stride[0] + rest % a.in_size[1] * a.in_stride[1] + w * a.in_stride[2];
}

// `count` elements of neighbouring places of the results, into planes `plane_step` apart (0: one plane).
template <typename A, typename T, bool Adds>
inline void put_run(constant mps_pool_arguments &a, device A *to, long plane_step, device const T *values, long value_step, device const long *numbers,
                    long number_step, long count, device mps_kernel_error *error) {
  const long limit = a.in_size[0] * a.in_size[1] * a.in_size[2], place = a.place;
  for (long i = 0; i < count; i++) {
    const long number = numbers[i * number_step];
    if (ulong(number) >= ulong(limit)) {
      report_index_error(error, number, limit, 0);
      continue;
    }
    device A *element = to + (place ? number * place : in_place(a, number)) + i * plane_step;
    const A value = A(values[i * value_step]);
    *element = Adds ? A(*element + value) : value;
  }
}

// Planes of zeros, then element by element to its place. `channels`: neighbours, 0 for one plane.
template <typename A, typename T, bool Adds>
inline void put_planes(constant mps_pool_arguments &a, device A *to, device const T *from, device const long *at, int channels, device mps_kernel_error *error) {
  const long limit = a.in_size[0] * a.in_size[1] * a.in_size[2], place = a.place;
  if (place && place == max(channels, 1)) {
    for (long i = 0; i < limit * place; i++) to[i] = 0;
  } else {
    for (long i = 0; i < limit; i++) {
      device A *element = to + in_place(a, i);
      for (int c = 0; c < max(channels, 1); c++) element[c] = 0;
    }
  }
  for (long z = 0; z < a.out_size[0]; z++)
    for (long y = 0; y < a.out_size[1]; y++) {
      device const T *values = from + z * a.out_stride[0] + y * a.out_stride[1];
      device const long *numbers = at + z * a.index_stride[0] + y * a.index_stride[1];
      if (!channels) {
        put_run<A, T, Adds>(a, to, 0, values, a.out_stride[2], numbers, a.index_stride[2], a.out_size[2], error);
        continue;
      }
      for (long x = 0; x < a.out_size[2]; x++)
        put_run<A, T, Adds>(a, to, 1, values + x * a.out_stride[2], a.out_channel, numbers + x * a.index_stride[2], a.index_channel, channels, error);
    }
}

template <typename A, typename T, bool Adds>
inline void put_all(constant mps_pool_arguments &a, device A *to, device const T *from, device const long *at, device mps_kernel_error *error, uint2 position) {
  if (!a.channel_block) {
    const long plane = position.y;
    put_planes<A, T, Adds>(a, to + in_plane(a, plane), from + out_plane(a, plane), at + index_plane(a, plane), 0, error);
    return;
  }
  const long c = long(position.x) * a.channel_block;
  put_planes<A, T, Adds>(a, to + position.y * a.in_batch + c * a.in_channel, from + position.y * a.out_batch + c * a.out_channel,
                         at + position.y * a.index_batch + c * a.index_channel, int(min(long(a.channel_block), a.channels - c)), error);
}

}  // namespace

// Thread (rows of windows, plane), or (rows of windows, batch, block of channels).
template <typename T>
kernel void pool_max(device const T *input [[buffer(0)]], device T *out [[buffer(1)]], device long *indices [[buffer(2)]],
                     constant mps_pool_arguments &a [[buffer(3)]], device const T *samples [[buffer(4)]], uint3 position [[thread_position_in_grid]]) {
  const long first = long(position.x) * a.rows, last = min(first + a.rows, long(a.out_size[0] * a.out_size[1]));
  if (a.channel_block) {
    const long c = long(position.z) * a.channel_block;
    const int channels = int(min(long(a.channel_block), a.channels - c));
    device const T *from = input + position.y * a.in_batch + c * a.in_channel;
    device T *to = out + position.y * a.out_batch + c * a.out_channel;
    device long *at = indices + (position.y * a.index_batch + c * a.index_channel);
    if (numbers_are_short(a))
      max_channels<T, int>(a, from, to, at, channels, first, last);
    else
      max_channels<T, long>(a, from, to, at, channels, first, last);
    return;
  }
  const long plane = position.y;
  device const T *own_samples = samples + plane * a.samples;
  if (numbers_are_short(a))
    max_rows<T, int>(a, input + in_plane(a, plane), out + out_plane(a, plane), indices + index_plane(a, plane), own_samples, first, last);
  else
    max_rows<T, long>(a, input + in_plane(a, plane), out + out_plane(a, plane), indices + index_plane(a, plane), own_samples, first, last);
}

// grad_input = the sum of grad_output by its indices. Thread (1, plane), or (block of channels, batch).
template <typename A, typename T>
kernel void pool_max_backward(device A *grad_input [[buffer(0)]], device const T *grad_output [[buffer(1)]], device const long *indices [[buffer(2)]],
                              constant mps_pool_arguments &a [[buffer(3)]], device mps_kernel_error *error [[buffer(4)]],
                              uint2 position [[thread_position_in_grid]]) {
  put_all<A, T, true>(a, grad_input, grad_output, indices, error, position);
}

// out[index] = input: the reverse of max pooling. "in" is the large side here too.
template <typename T>
kernel void pool_unpool(device T *out [[buffer(0)]], device const T *input [[buffer(1)]], device const long *indices [[buffer(2)]],
                        constant mps_pool_arguments &a [[buffer(3)]], device mps_kernel_error *error [[buffer(4)]], uint2 position [[thread_position_in_grid]]) {
  put_all<T, T, false>(a, out, input, indices, error, position);
}

#define MAXIMUM(NAME, T)                                                                                                              \
  template [[host_name("pool_max_" #NAME)]] kernel void pool_max<T>(device const T *, device T *, device long *,                     \
                                                                   constant mps_pool_arguments &, device const T *, uint3);          \
  template [[host_name("pool_unpool_" #NAME)]] kernel void pool_unpool<T>(device T *, device const T *, device const long *,         \
                                                                         constant mps_pool_arguments &, device mps_kernel_error *, uint2);
#define MAXIMUM_BACKWARD(NAME, A, T)                                                                                                     \
  template [[host_name("pool_max_backward_" #NAME)]] kernel void pool_max_backward<A, T>(device A *, device const T *, device const long *, \
                                                                                        constant mps_pool_arguments &, device mps_kernel_error *, uint2);
MAXIMUM(f32, float)
MAXIMUM(f16, half)
MAXIMUM(bf16, bfloat)
MAXIMUM(u8, uchar)
MAXIMUM(i8, char)
MAXIMUM(i16, short)
MAXIMUM(i32, int)
MAXIMUM(i64, long)
MAXIMUM_BACKWARD(f32, float, float)
MAXIMUM_BACKWARD(f16, float, half)
MAXIMUM_BACKWARD(bf16, float, bfloat)
MAXIMUM_BACKWARD(i64, long, long)
