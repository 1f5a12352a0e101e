// SPDX-License-Identifier: BSD-3-Clause
//
// pad: reflection and replication padding, and their gradients. Thread: (some rows, block of the row). The gradient of a row is the sum of
// the rows that were made from it, in order; a row belongs to one thread.

#include <metal_stdlib>
#include "pad_arguments.h"

using namespace metal;

// Iterations are independent.
#define VECTORIZE _Pragma("clang loop vectorize(assume_safety) unroll(disable)")
// A handful of iterations: getting ready for more would take longer.
#define ONE_BY_ONE _Pragma("clang loop vectorize(disable) unroll(disable)")

namespace {

// A row of the written side by its coordinates.
struct row {
  long batch, channel, z, y;
};

inline row row_of(constant mps_pad_arguments &a, long number) {
  row r;
  long rest = number / a.to_size[1];
  r.y = number - rest * a.to_size[1];
  number = rest / a.to_size[0];
  r.z = rest - number * a.to_size[0];
  r.batch = number / a.channels;
  r.channel = number - r.batch * a.channels;
  return r;
}

// To the first row of the next depth.
inline void next_plane(constant mps_pad_arguments &a, thread row &r) {
  r.y = 0;
  if (++r.z < a.to_size[0]) return;
  r.z = 0;
  if (++r.channel < a.channels) return;
  r.channel = 0;
  r.batch++;
}

// Place p of the padding in front comes from place left + slope p, one of the padding behind from right + slope p.
struct reflection {
  static long slope() { return -1; }
  static long left(long before) { return before; }
  static long right(long before, long size) { return before + 2 * (size - 1); }
  // The place that place p is made from, before and size being those of the unpadded side.
  static long source(long p, long before, long size) {
    const long x = p - before, last = size - 1;
    return x < 0 ? -x : x > last ? 2 * last - x : x;
  }
  // The first place behind p of a padded side of size `padded` that is made from place x; `padded` when there is none.
  static long next(long x, long p, long before, long size, long padded) {
    const long left = before - x, middle = before + x, right = before + 2 * (size - 1) - x;
    if (x > 0 && left > p && left < padded) return left;
    if (middle > p && middle < padded) return middle;
    return x < size - 1 && right > p && right < padded ? right : padded;
  }
};

struct replication {
  static long slope() { return 0; }
  static long left(long) { return 0; }
  static long right(long, long size) { return size - 1; }
  static long source(long p, long before, long size) { return clamp(p - before, 0L, size - 1); }
  static long next(long x, long p, long before, long size, long padded) {
    const long begin = x == 0 ? 0 : before + x, end = x == size - 1 ? padded : before + x + 1, place = max(p + 1, begin);
    return place < min(end, padded) ? place : padded;
  }
};

struct assign {
  template <typename A, typename T> static A apply(A, T value) { return A(value); }
};
struct plus {
  template <typename A, typename T> static A apply(A old, T value) { return old + A(value); }
};

// Op over the places [begin, end) of a row's padding, one after the other: several may go to one place.
template <typename Op, typename A, typename T>
inline void move_edge(device A *to, long to_step, device const T *from, long from_step, long begin, long end, long group) {
  if (group == 1) {
    ONE_BY_ONE
    for (long x = begin; x < end; x++) to[x * to_step] = Op::apply(to[x * to_step], from[x * from_step]);
    return;
  }
  for (long x = begin; x < end; x++) {
    device A *written = to + x * to_step;
    device const T *read = from + x * from_step;
    VECTORIZE
    for (long g = 0; g < group; g++) written[g] = Op::apply(written[g], read[g]);
  }
}

// Op over `count` places. Rows are often short, so that vectors are short too.
template <typename Op, typename A, typename T>
inline void move(device A *to, long to_stride, device const T *from, long from_stride, long count, long group) {
  if (to_stride != group || from_stride != group) {
    for (long i = 0; i < count; i++) to[i * to_stride] = Op::apply(to[i * to_stride], from[i * from_stride]);
    return;
  }
  const int whole = 64 / int(sizeof(T)), part = whole / 4;
  const long elements = count * group;
  long i = 0;
  for (; i + whole <= elements; i += whole) {
    VECTORIZE
    for (int l = 0; l < whole; l++) to[i + l] = Op::apply(to[i + l], from[i + l]);
  }
  for (; i + part <= elements; i += part) {
    VECTORIZE
    for (int l = 0; l < part; l++) to[i + l] = Op::apply(to[i + l], from[i + l]);
  }
  for (; i < elements; i++) to[i] = Op::apply(to[i], from[i]);
}

template <typename A>
inline void clear(device A *to, long to_stride, long count, long group) {
  if (to_stride == group) {
    VECTORIZE
    for (long i = 0; i < count * group; i++) to[i] = 0.0f;
  } else {
    for (long i = 0; i < count; i++) to[i * to_stride] = 0.0f;
  }
}

}  // namespace

template <typename Mode, typename T>
kernel void pad(device const T *from [[buffer(0)]], device T *to [[buffer(1)]], constant mps_pad_arguments &a [[buffer(2)]],
                uint2 position [[thread_position_in_grid]]) {
  const long first = long(position.x) * a.rows, behind = min(first + a.rows, long(a.row_count));
  const long begin = long(position.y) * a.block, end = min(begin + a.block, long(a.to_size[2]));
  const long before = a.before[2], size = a.from_size[2], group = a.group, to_step = a.to_stride[2], from_step = a.from_stride[2];
  const long left = clamp(before, begin, end), right = clamp(before + size, left, end);
  const long height = a.to_size[1], to_row = a.to_stride[1], from_row = a.from_stride[1], top = a.before[1], from_height = a.from_size[1];
  row r = row_of(a, first);
  for (long number = first; number < behind; next_plane(a, r)) {
    device T *to_plane = to + r.batch * a.to_batch + r.channel * a.to_channel + r.z * a.to_stride[0];
    device const T *from_plane = from + r.batch * a.from_batch + r.channel * a.from_channel +
                                 Mode::source(r.z, a.before[0], a.from_size[0]) * a.from_stride[0];
    for (long y = r.y; y < height && number < behind; y++, number++) {
      device T *out = to_plane + y * to_row;
      device const T *in = from_plane + Mode::source(y, top, from_height) * from_row;
      move_edge<assign>(out, to_step, in + Mode::left(before) * from_step, Mode::slope() * from_step, begin, left, group);
      move<assign>(out + left * to_step, to_step, in + (left - before) * from_step, from_step, right - left, group);
      move_edge<assign>(out, to_step, in + Mode::right(before, size) * from_step, Mode::slope() * from_step, right, end, group);
    }
  }
}

// "to" is the gradient of the input; A is what it is summed in.
template <typename Mode, typename A, typename T>
kernel void pad_backward(device const T *from [[buffer(0)]], device A *to [[buffer(1)]], constant mps_pad_arguments &a [[buffer(2)]],
                         uint2 position [[thread_position_in_grid]]) {
  const long first = long(position.x) * a.rows, behind = min(first + a.rows, long(a.row_count));
  const long before = a.before[2], size = a.to_size[2], padded = a.from_size[2];
  const long group = a.group, to_step = a.to_stride[2], from_step = a.from_stride[2];
  const long left = clamp(before, 0L, padded), right = clamp(before + size, left, padded);
  row r = row_of(a, first);
  for (long number = first; number < behind; next_plane(a, r)) {
    device A *to_plane = to + r.batch * a.to_batch + r.channel * a.to_channel + r.z * a.to_stride[0];
    device const T *from_plane = from + r.batch * a.from_batch + r.channel * a.from_channel;
    for (; r.y < a.to_size[1] && number < behind; r.y++, number++) {
      device A *out = to_plane + r.y * a.to_stride[1];
      clear(out, to_step, size, group);
      for (long z = Mode::next(r.z, -1, a.before[0], a.to_size[0], a.from_size[0]); z < a.from_size[0];
           z = Mode::next(r.z, z, a.before[0], a.to_size[0], a.from_size[0]))
        for (long y = Mode::next(r.y, -1, a.before[1], a.to_size[1], a.from_size[1]); y < a.from_size[1];
             y = Mode::next(r.y, y, a.before[1], a.to_size[1], a.from_size[1])) {
          device const T *in = from_plane + z * a.from_stride[0] + y * a.from_stride[1];
          move_edge<plus>(out + Mode::left(before) * to_step, Mode::slope() * to_step, in, from_step, 0, left, group);
          move<plus>(out + (left - before) * to_step, to_step, in + left * from_step, from_step, right - left, group);
          move_edge<plus>(out + Mode::right(before, size) * to_step, Mode::slope() * to_step, in, from_step, right, padded, group);
        }
    }
  }
}

#define PAD(NAME, T)                                                                                                            \
  template [[host_name("reflection_pad_" #NAME)]] kernel void pad<reflection, T>(device const T *, device T *,                  \
                                                                                 constant mps_pad_arguments &, uint2);          \
  template [[host_name("replication_pad_" #NAME)]] kernel void pad<replication, T>(device const T *, device T *,                \
                                                                                   constant mps_pad_arguments &, uint2);
PAD(u8, uchar)
PAD(u16, ushort)
PAD(u32, uint)
PAD(u64, ulong)

#define BACKWARD(NAME, A, T)                                                                                                                \
  template [[host_name("reflection_pad_backward_" #NAME)]] kernel void pad_backward<reflection, A, T>(device const T *, device A *,         \
                                                                                                      constant mps_pad_arguments &, uint2); \
  template [[host_name("replication_pad_backward_" #NAME)]] kernel void pad_backward<replication, A, T>(device const T *, device A *,       \
                                                                                                        constant mps_pad_arguments &, uint2);
BACKWARD(f32, float, float)
BACKWARD(f16, float, half)
BACKWARD(bf16, float, bfloat)
BACKWARD(c64, float2, float2)
