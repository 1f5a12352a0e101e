// SPDX-License-Identifier: BSD-3-Clause
//
// interpolate: resizing by tables of taps, in both directions: gradients have the transposed tables. Each thread takes some rows of the
// target. It keeps the source lines that a row needs, already interpolated along the width, in slots, since the next row needs most of
// them again. Sums run over depth, height and width in the order of the taps, whoever computes them.

#include <metal_stdlib>
#include "interpolate_arguments.h"

using namespace metal;

#define VECTORIZE _Pragma("clang loop vectorize(assume_safety)")

namespace {

constant constexpr uint BLOCK = 256; // columns that are summed in private memory

// What rows, sums and weights are of; how a sum becomes an element of a row. Floats begin with the zero that changes nothing.
template <typename T> struct arithmetic {
  typedef float row;
  typedef float sum;
  typedef float weight;
  static float begin(uint) { return -0.0f; }
  static float end(float value, uint) { return value; }
};
template <> struct arithmetic<uchar> {
  typedef uchar row;
  typedef int sum;
  typedef int weight;
  static int begin(uint precision) { return 1 << (precision - 1); }
  static uchar end(int value, uint precision) { return uchar(clamp(value >> int(precision), 0, 255)); }
};

inline long plane_offset(constant mps_interpolate_arguments &a, long plane, long batch_stride, long channel_stride) {
  const long batch = plane / a.channels;
  return batch * batch_stride + (plane - batch * a.channels) * channel_stride;
}

// ---- along the width ----

// Elements of type S with step `step`; `weights` and `indices` have a row of `columns` for each tap.
template <typename A, int Taps, typename S>
inline void spread_line(device const S *line, long step, device const int *indices, device const typename A::weight *weights, uint columns, uint begin,
                        uint end, uint precision, device typename A::row *row) {
  typedef typename A::sum sum_type;
  VECTORIZE for (uint o = begin; o < end; o++) {
    sum_type sum = sum_type(line[indices[o] * step]) * weights[o];
    if (Taps > 1) sum += sum_type(line[indices[columns + o] * step]) * weights[columns + o];
    if (Taps > 2) sum += sum_type(line[indices[2 * columns + o] * step]) * weights[2 * columns + o];
    if (Taps > 3) sum += sum_type(line[indices[3 * columns + o] * step]) * weights[3 * columns + o];
    row[o - begin] = A::end(A::begin(precision) + sum, precision);
  }
}

// The same for any number of taps, where it does not matter in what order they are added.
template <typename A, typename S>
inline void whole_line(device const S *, long, device const int *, device const float *, uint, uint, uint, uint, uint, device float *) {}
template <typename A, typename S>
inline void whole_line(device const S *line, long step, device const int *indices, device const int *weights, uint columns, uint taps, uint begin, uint end,
                       uint precision, device uchar *row) {
  for (uint first = begin; first < end; first += BLOCK) {
    const uint count = min(BLOCK, end - first);
    int sums[BLOCK];
    for (uint i = 0; i < count; i++) sums[i] = A::begin(precision);
    device const int *index = indices + first, *weight = weights + first;
    for (uint t = 0; t < taps; t += 2, index += 2 * columns, weight += 2 * columns) {
      if (t + 1 < taps) {
        VECTORIZE for (uint i = 0; i < count; i++)
          sums[i] += int(line[index[i] * step]) * weight[i] + int(line[index[columns + i] * step]) * weight[columns + i];
      } else {
        VECTORIZE for (uint i = 0; i < count; i++) sums[i] += int(line[index[i] * step]) * weight[i];
      }
    }
    VECTORIZE for (uint i = 0; i < count; i++) row[first - begin + i] = A::end(sums[i], precision);
  }
}

// One element a pixel, any number of taps.
template <typename A, typename S>
inline void listed_line(device const S *line, long step, device const uint *start, device const int *indices, device const typename A::weight *weights,
                        uint begin, uint end, uint precision, device typename A::row *row) {
  typedef typename A::sum sum_type;
  for (uint o = begin; o < end; o++) {
    sum_type sum = A::begin(precision);
    for (uint t = start[o]; t < start[o + 1]; t++) sum += sum_type(line[indices[t] * step]) * weights[t];
    row[o - begin] = A::end(sum, precision);
  }
}

// Pixels of `vector` contiguous elements.
template <typename A, typename S>
inline void vector_line(device const S *line, uint vector, device const uint *start, device const int *indices, device const typename A::weight *weights,
                        uint begin, uint end, uint precision, device typename A::row *row) {
  typedef typename A::sum sum_type;
  for (uint o = begin; o < end; o++, row += vector) {
    const uint first = start[o], taps = start[o + 1] - first;
    if (taps == 2) {
      device const S *a = line + long(indices[first]) * vector, *b = line + long(indices[first + 1]) * vector;
      const typename A::weight v = weights[first], w = weights[first + 1];
      VECTORIZE for (uint c = 0; c < vector; c++)
        row[c] = A::end(A::begin(precision) + (sum_type(a[c]) * v + sum_type(b[c]) * w), precision);
      continue;
    }
    for (uint c = 0; c < vector; c += BLOCK) {
      const uint count = min(BLOCK, vector - c);
      sum_type sums[BLOCK];
      for (uint i = 0; i < count; i++) sums[i] = A::begin(precision);
      for (uint t = first; t < first + taps; t++) {
        device const S *pixel = line + long(indices[t]) * vector + c;
        const typename A::weight w = weights[t];
        VECTORIZE for (uint i = 0; i < count; i++) sums[i] += sum_type(pixel[i]) * w;
      }
      VECTORIZE for (uint i = 0; i < count; i++) row[c + i] = A::end(sums[i], precision);
    }
  }
}

template <typename T, typename S>
inline void make_line(constant mps_interpolate_arguments &a, device const S *line, long step, device const int *table, uint begin, uint end,
                      device typename arithmetic<T>::row *row) {
  typedef arithmetic<T> A;
  constant mps_interpolate_axis &axis = a.axis[2];
  device const int *indices = table + axis.index;
  device const typename A::weight *weights = (device const typename A::weight *)(table + axis.weight);
  device const uint *start = (device const uint *)(table + axis.start);
  if (a.spread && axis.taps == 1)
    spread_line<A, 1>(line, step, indices, weights, a.columns, begin, end, axis.precision, row);
  else if (a.spread && axis.taps == 2)
    spread_line<A, 2>(line, step, indices, weights, a.columns, begin, end, axis.precision, row);
  else if (a.spread && axis.taps != 4)
    whole_line<A>(line, step, indices, weights, a.columns, axis.taps, begin, end, axis.precision, row);
  else if (a.spread)
    spread_line<A, 4>(line, step, indices, weights, a.columns, begin, end, axis.precision, row);
  else if (a.vector == 1)
    listed_line<A>(line, step, start, indices, weights, begin, end, axis.precision, row);
  else
    vector_line<A>(line, a.vector, start, indices, weights, begin / a.vector, end / a.vector, axis.precision, row);
}

// Converts the part of a line that columns [begin, end) read. Indices do not decrease from column to column.
template <typename T>
inline void stage(constant mps_interpolate_arguments &a, device const T *line, device const int *table, uint begin, uint end, device float *to) {
  constant mps_interpolate_axis &axis = a.axis[2];
  device const int *indices = table + axis.index;
  long low = 0, high = a.line_length;
  if (a.column_block < a.columns && a.spread) {
    low = max(long(indices[begin]) - 16, 0l);
    high = min(long(indices[(axis.taps - 1) * a.columns + end - 1]) + 17, high);
  } else if (a.column_block < a.columns) {
    device const uint *start = (device const uint *)(table + axis.start);
    const uint first = start[begin / a.vector], last = start[end / a.vector];
    low = first < last ? long(indices[first]) * a.vector : 0;
    high = first < last ? (long(indices[last - 1]) + 1) * a.vector : 0;
  }
  const long step = a.in_stride[2];
  if (step == 1) {
    VECTORIZE for (long x = low; x < high; x++) to[x] = float(line[x]);
  } else {
    VECTORIZE for (long x = low; x < high; x++) to[x] = float(line[x * step]);
  }
}

template <> inline void stage<uchar>(constant mps_interpolate_arguments &, device const uchar *, device const int *, uint, uint, device float *) {}

template <typename T>
inline void fill_slot(constant mps_interpolate_arguments &a, device const T *line, device const int *table, uint begin, uint end, device float *staging,
                      device typename arithmetic<T>::row *row) {
  stage<T>(a, line, table, begin, end, staging);
  make_line<T>(a, (device const float *)staging, 1, table, begin, end, row);
}

// Bytes: up to four channels become pixels of four bytes, whose sums are taken together.
inline void make_quads(constant mps_interpolate_arguments &a, device const uchar *line, device uchar *to) {
  const long step = a.in_stride[2], last = a.quads - 1;
  device const uchar *p = line, *q = line + min(1l, last) * a.in_channel, *r = line + min(2l, last) * a.in_channel, *s = line + last * a.in_channel;
  const uint length = a.line_length;
#define QUADS(STEP)                                \
  VECTORIZE for (uint x = 0; x < length; x++) {    \
    to[4 * x] = p[x * (STEP)];                     \
    to[4 * x + 1] = q[x * (STEP)];                 \
    to[4 * x + 2] = r[x * (STEP)];                 \
    to[4 * x + 3] = s[x * (STEP)];                 \
  }
  if (step == 1) {
    QUADS(1)
  } else if (step == 4 && a.quads == 4 && a.in_channel == 1) {
    VECTORIZE for (uint x = 0; x < 4 * length; x++) to[x] = p[x];
  } else if (step == 3 && a.quads == 3 && a.in_channel == 1) {
    VECTORIZE for (uint x = 0; x < length; x++) {
      to[4 * x] = p[3 * x];
      to[4 * x + 1] = p[3 * x + 1];
      to[4 * x + 2] = p[3 * x + 2];
      to[4 * x + 3] = p[3 * x + 2];
    }
  } else {
    QUADS(step)
  }
}

constant constexpr uint QUAD_BLOCK = 64; // pixels whose sums are in private memory

// The sums of a block of pixels, a channel in each row.
struct quad_sums {
  int red[QUAD_BLOCK], green[QUAD_BLOCK], blue[QUAD_BLOCK], alpha[QUAD_BLOCK];

  template <uint Taps> void add(device const uint *pixels, device const int *indices, device const int *weights, uint columns, uint count) {
    VECTORIZE for (uint i = 0; i < count; i++) {
      int r = red[i], g = green[i], b = blue[i], a = alpha[i];
      for (uint t = 0; t < Taps; t++) {
        const uint pixel = pixels[indices[t * columns + i]];
        const int w = weights[t * columns + i];
        r += int(pixel & 255u) * w;
        g += int(pixel >> 8 & 255u) * w;
        b += int(pixel >> 16 & 255u) * w;
        a += int(pixel >> 24) * w;
      }
      red[i] = r;
      green[i] = g;
      blue[i] = b;
      alpha[i] = a;
    }
  }
};

template <> inline void fill_slot<uchar>(constant mps_interpolate_arguments &a, device const uchar *line, device const int *table, uint begin, uint end,
                                         device float *staging, device uchar *row) {
  make_quads(a, line, (device uchar *)staging);
  constant mps_interpolate_axis &axis = a.axis[2];
  device const uint *pixels = (device const uint *)staging;
  const uint columns = a.columns / 4;
  const int half_unit = 1 << (axis.precision - 1), precision = int(axis.precision);
  device uint *to = (device uint *)row;
  quad_sums sums;
  for (uint first = begin / 4; first < end / 4; first += QUAD_BLOCK) {
    const uint count = min(QUAD_BLOCK, end / 4 - first);
    for (uint i = 0; i < count; i++) sums.red[i] = sums.green[i] = sums.blue[i] = sums.alpha[i] = half_unit;
    device const int *indices = table + axis.index + first, *weights = table + axis.weight + first;
    uint t = 0;
    for (; t + 4 <= axis.taps; t += 4) sums.add<4>(pixels, indices + t * columns, weights + t * columns, columns, count);
    for (; t + 2 <= axis.taps; t += 2) sums.add<2>(pixels, indices + t * columns, weights + t * columns, columns, count);
    for (; t < axis.taps; t++) sums.add<1>(pixels, indices + t * columns, weights + t * columns, columns, count);
    VECTORIZE for (uint i = 0; i < count; i++) {
      const uint r = uint(clamp(sums.red[i] >> precision, 0, 255)), g = uint(clamp(sums.green[i] >> precision, 0, 255));
      const uint b = uint(clamp(sums.blue[i] >> precision, 0, 255)), alpha = uint(clamp(sums.alpha[i] >> precision, 0, 255));
      to[first + i] = r | g << 8 | b << 16 | alpha << 24;
    }
  }
}

// Whether a line of quads is a line of the result.
inline bool are_quads(constant mps_interpolate_arguments &a) { return a.quads == 4 && a.out_channel == 1 && a.out_stride[2] == 4; }

// The channels of a line of quads, each to its place.
inline void part_quads(constant mps_interpolate_arguments &a, device const uchar *quads, device uchar *out) {
  const uint count = a.columns / 4;
  const long step = a.out_stride[2];
  if (a.quads == 3 && a.out_channel == 1 && step == 3) {
    VECTORIZE for (uint x = 0; x < count; x++) {
      out[3 * x] = quads[4 * x];
      out[3 * x + 1] = quads[4 * x + 1];
      out[3 * x + 2] = quads[4 * x + 2];
    }
    return;
  }
  for (uint c = 0; c < a.quads; c++, out += a.out_channel) {
    if (step == 1) {
      VECTORIZE for (uint x = 0; x < count; x++) out[x] = quads[4 * x + c];
    } else {
      VECTORIZE for (uint x = 0; x < count; x++) out[x * step] = quads[4 * x + c];
    }
  }
}
template <typename T> inline void part_quads(constant mps_interpolate_arguments &, device const uchar *, device T *) {}

// ---- across lines ----

#define STORE(VALUE)                                                          \
  if (step == 1) {                                                            \
    VECTORIZE for (uint x = 0; x < count; x++) out[x] = T(VALUE);             \
  } else {                                                                    \
    VECTORIZE for (uint x = 0; x < count; x++) out[x * step] = T(VALUE);      \
  }

// The slots that hold a target row's lines, and their weights.
template <typename T> struct lines {
  typedef arithmetic<T> A;
  device const typename A::row *slots;
  uint length; // of a slot
  device const int *depth, *height;                    // indices
  device const typename A::weight *by_depth, *by_height;
  uint depth_taps, height_taps, depth_span, height_span;

  uint slot(uint d, uint h) const { return uint(depth[d]) % depth_span * height_span + uint(height[h]) % height_span; }
  device const typename A::row *line(uint d, uint h) const { return slots + ulong(slot(d, h)) * length; }
};

template <typename T>
inline void combine_many(lines<T> from, uint count, uint precision, device T *out, long step) {
  typedef arithmetic<T> A;
  for (uint x = 0; x < count; x += BLOCK) {
    const uint n = min(BLOCK, count - x);
    typename A::sum total[BLOCK], part[BLOCK];
    for (uint i = 0; i < n; i++) total[i] = A::begin(precision);
    for (uint d = 0; d < from.depth_taps; d++) {
      for (uint i = 0; i < n; i++) part[i] = A::begin(precision);
      for (uint h = 0; h < from.height_taps; h++) {
        device const typename A::row *line = from.line(d, h) + x;
        const typename A::weight w = from.by_height[h];
        VECTORIZE for (uint i = 0; i < n; i++) part[i] += typename A::sum(line[i]) * w;
      }
      const float w = float(from.by_depth[d]);
      if (is_same<T, uchar>::value) {
        for (uint i = 0; i < n; i++) total[i] = part[i];
      } else {
        VECTORIZE for (uint i = 0; i < n; i++) total[i] += typename A::sum(part[i] * w);
      }
    }
    for (uint i = 0; i < n; i++) out[(x + i) * step] = T(A::end(total[i], precision));
  }
}

template <typename T>
inline void combine(lines<T> from, uint count, uint precision, device T *out, long step) {
  typedef arithmetic<T> A;
  typedef typename A::sum sum_type;
  if (from.depth_taps == 0 || from.height_taps == 0) {
    STORE(0)
    return;
  }
  device const typename A::row *a = from.line(0, 0);
  if (from.depth_taps == 1 && from.height_taps == 1) {
    const typename A::weight w = from.by_height[0];
    const sum_type v = is_same<T, uchar>::value ? sum_type(1) : sum_type(from.by_depth[0]);
    STORE(A::end(A::begin(precision) + sum_type(a[x]) * w * v, precision))
  } else if (from.depth_taps == 1 && from.height_taps == 2 && (is_same<T, uchar>::value || from.by_depth[0] == 1)) {
    device const typename A::row *b = from.line(0, 1);
    const typename A::weight v = from.by_height[0], w = from.by_height[1];
    STORE(A::end(A::begin(precision) + (sum_type(a[x]) * v + sum_type(b[x]) * w), precision))
  } else if (from.depth_taps == 1 && from.height_taps == 4 && (is_same<T, uchar>::value || from.by_depth[0] == 1)) {
    device const typename A::row *b = from.line(0, 1), *c = from.line(0, 2), *d = from.line(0, 3);
    const typename A::weight u = from.by_height[0], v = from.by_height[1], w = from.by_height[2], z = from.by_height[3];
    STORE(A::end(A::begin(precision) + (sum_type(a[x]) * u + sum_type(b[x]) * v + sum_type(c[x]) * w + sum_type(d[x]) * z), precision))
  } else if (from.depth_taps == 2 && from.height_taps == 2 && !is_same<T, uchar>::value) {
    device const typename A::row *b = from.line(0, 1), *c = from.line(1, 0), *d = from.line(1, 1);
    const typename A::weight v = from.by_height[0], w = from.by_height[1], p = from.by_depth[0], q = from.by_depth[1];
    STORE((a[x] * v + b[x] * w) * p + (c[x] * v + d[x] * w) * q)
  } else {
    combine_many<T>(from, count, precision, out, step);
  }
}

}  // namespace

// Thread: a share of the rows, a block of columns.
template <typename T>
kernel void interpolate(device const T *input [[buffer(0)]], device T *output [[buffer(1)]], device const int *table [[buffer(2)]],
                        device float *scratch [[buffer(3)]], constant mps_interpolate_arguments &a [[buffer(4)]],
                        uint2 position [[thread_position_in_grid]]) {
  typedef arithmetic<T> A;
  const uint begin = position.y * a.column_block, end = min(begin + a.column_block, a.columns);
  const long first = a.rows * long(position.x) / a.threads, last = a.rows * long(position.x + 1) / a.threads;
  const uint slot_count = a.axis[0].span * a.axis[1].span;
  device int *tags = (device int *)(scratch + (ulong(position.y) * a.threads + position.x) * a.scratch_words);
  device typename A::row *slots = (device typename A::row *)(tags + slot_count);
  device float *staging = (device float *)(tags + a.scratch_words) - a.staging_words;
  device const uint *starts = (device const uint *)table;
  const uint rows_of_plane = a.out_size[0] * a.out_size[1];
  long plane = -1;
  device const T *source = input;
  device T *target = output;
  for (long r = first; r < last; r++) {
    if (r / rows_of_plane != plane) {
      plane = r / rows_of_plane;
      source = input + plane_offset(a, plane, a.in_batch, a.in_channel);
      target = output + plane_offset(a, plane, a.out_batch, a.out_channel);
      for (uint i = 0; i < slot_count; i++) tags[i] = -1;
    }
    const uint place = uint(r - plane * rows_of_plane), od = place / a.out_size[1], oh = place - od * a.out_size[1];
    if (a.direct) { // rows are floats, and so are the result's
      make_line<T>(a, source, a.in_stride[2], table, begin, end, (device typename A::row *)(target + begin));
      continue;
    }
    device const uint *d_start = starts + a.axis[0].start + od, *h_start = starts + a.axis[1].start + oh;
    lines<T> from;
    from.slots = slots;
    from.length = a.column_block;
    from.depth = table + a.axis[0].index + d_start[0];
    from.height = table + a.axis[1].index + h_start[0];
    from.by_depth = (device const typename A::weight *)(table + a.axis[0].weight) + d_start[0];
    from.by_height = (device const typename A::weight *)(table + a.axis[1].weight) + h_start[0];
    from.depth_taps = d_start[1] - d_start[0];
    from.height_taps = h_start[1] - h_start[0];
    from.depth_span = a.axis[0].span;
    from.height_span = a.axis[1].span;
    for (uint d = 0; d < from.depth_taps; d++)
      for (uint h = 0; h < from.height_taps; h++) {
        const uint slot = from.slot(d, h);
        const int tag = from.depth[d] * int(a.in_height) + from.height[h];
        if (tags[slot] == tag) continue;
        tags[slot] = tag;
        device const T *line = source + from.depth[d] * a.in_stride[0] + from.height[h] * a.in_stride[1];
        if (a.staged)
          fill_slot<T>(a, line, table, begin, end, staging, slots + ulong(slot) * a.column_block);
        else
          make_line<T>(a, line, a.in_stride[2], table, begin, end, slots + ulong(slot) * a.column_block);
      }
    device T *out = target + od * a.out_stride[0] + oh * a.out_stride[1];
    if (is_same<T, uchar>::value && a.quads && are_quads(a)) {
      combine<T>(from, a.columns, a.axis[1].precision, out, 1);
    } else if (is_same<T, uchar>::value && a.quads) {
      device T *quads = (device T *)(staging + a.line_length);
      combine<T>(from, a.columns, a.axis[1].precision, quads, 1);
      part_quads(a, (device const uchar *)quads, out);
    } else {
      combine<T>(from, end - begin, a.axis[1].precision, out + begin * a.out_stride[2], a.out_stride[2]);
    }
  }
}

// Only moves elements: rows have one tap. A row that comes from the same source line as the one before it is copied from there.
template <typename T>
kernel void interpolate_nearest(device const T *input [[buffer(0)]], device T *output [[buffer(1)]], device const int *table [[buffer(2)]],
                                constant mps_interpolate_arguments &a [[buffer(4)]], uint2 position [[thread_position_in_grid]]) {
  const uint begin = position.y * a.column_block, end = min(begin + a.column_block, a.columns);
  const long first = a.rows * long(position.x) / a.threads, last = a.rows * long(position.x + 1) / a.threads;
  const uint rows_of_plane = a.out_size[0] * a.out_size[1];
  device const int *depth = table + a.axis[0].index, *height = table + a.axis[1].index, *width = table + a.axis[2].index;
  const long in_step = a.in_stride[2], step = a.out_stride[2];
  device const T *before = nullptr;
  device T *out_before = nullptr;
  for (long r = first; r < last; r++) {
    const long plane = r / rows_of_plane;
    const uint place = uint(r - plane * rows_of_plane), od = place / a.out_size[1], oh = place - od * a.out_size[1];
    device const T *line = input + plane_offset(a, plane, a.in_batch, a.in_channel) + depth[od] * a.in_stride[0] + height[oh] * a.in_stride[1];
    device T *out = output + plane_offset(a, plane, a.out_batch, a.out_channel) + od * a.out_stride[0] + oh * a.out_stride[1];
    if (line == before && step == 1) {
      VECTORIZE for (uint x = begin; x < end; x++) out[x] = out_before[x];
    } else if (a.vector > 1) {
      for (uint x = begin; x < end; x += a.vector) {
        device const T *pixel = line + long(width[x / a.vector]) * a.vector;
        VECTORIZE for (uint c = 0; c < a.vector; c++) out[x + c] = pixel[c];
      }
    } else if (step == 1 && in_step == 1) {
      VECTORIZE for (uint x = begin; x < end; x++) out[x] = line[width[x]];
    } else {
      VECTORIZE for (uint x = begin; x < end; x++) out[x * step] = line[width[x] * in_step];
    }
    before = line;
    out_before = out;
  }
}

#define INTERPOLATE(NAME, T)                                                                                                                \
  template [[host_name("interpolate_" #NAME)]] kernel void interpolate<T>(device const T *, device T *, device const int *, device float *, \
                                                                          constant mps_interpolate_arguments &, uint2);
#define NEAREST(NAME, T)                                                                                                            \
  template [[host_name("interpolate_nearest_" #NAME)]] kernel void interpolate_nearest<T>(device const T *, device T *, device const int *, \
                                                                                          constant mps_interpolate_arguments &, uint2);
INTERPOLATE(f32, float)
INTERPOLATE(f16, half)
INTERPOLATE(bf16, bfloat)
INTERPOLATE(u8, uchar)
NEAREST(u8, uchar)
NEAREST(u16, ushort)
NEAREST(u32, uint)
