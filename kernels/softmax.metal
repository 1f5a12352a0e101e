// SPDX-License-Identifier: BSD-3-Clause
//
// softmax: softmax, log_softmax and their gradients, in float. Layout "inner": elements of a row are neighbours, a thread takes a
// row, or a chunk of one where there are few long ones. Layout "outer": a thread takes a tile of rows that are neighbours, and is vectorised
// across them.

#include "reduce.h"
#include "softmax.h"
#include "softmax_arguments.h"

struct softmax_offsets {
  long at[3];
};
inline softmax_offsets row_offsets(constant mps_softmax_arguments &a, long row, uint skip) {
  softmax_offsets o;
  o.at[0] = o.at[1] = o.at[2] = 0;
  for (uint d = a.rank - skip; d-- > 0;) {
    const long size = a.sizes[d], quotient = d ? row / size : 0, index = row - quotient * size;
    for (uint t = 0; t < 3; t++) o.at[t] += index * a.strides[t][d];
    row = quotient;
  }
  return o;
}

inline float fold_add(thread float *lanes) {
  VECTORIZE
  for (uint l = 0; l < REDUCE_LANES / 2; l++) lanes[l] += lanes[l + REDUCE_LANES / 2];
  return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}
#define SOFTMAX_BLOCK 1024 // values that are kept between two looks at them

#define SOFTMAX_STRETCH 256 // the same of a tile

inline void end_stretch(thread float *sums, thread running_sum *totals, long width) {
  for (long j = 0; j < width; j++) {
    totals[j].add(sums[j]);
    sums[j] = 0.0f;
  }
}

// exp(x - top) into `values`, and their sum.
template <typename T>
inline float exponentials(thread float *values, device const T *x, long count, float top) {
  float lanes[REDUCE_LANES];
  for (uint l = 0; l < REDUCE_LANES; l++) lanes[l] = 0.0f;
  long i = 0;
  for (; i + REDUCE_LANES <= count; i += REDUCE_LANES) {
    device const T *p = x + i;
    thread float *v = values + i;
    VECTORIZE
    for (uint l = 0; l < REDUCE_LANES; l++) {
      v[l] = exp_below(float(p[l]) - top);
      lanes[l] += v[l];
    }
  }
  for (uint l = 0; i < count; i++, l++) {
    values[i] = exp_below(float(x[i]) - top);
    lanes[l] += values[i];
  }
  return fold_add(lanes);
}

template <typename T>
kernel void softmax_inner(device const T *input [[buffer(0)]], device T *output [[buffer(1)]],
                          constant mps_softmax_arguments &a [[buffer(3)]], uint row [[thread_position_in_grid]]) {
  const softmax_offsets at = row_offsets(a, row, 0);
  device const T *x = input + at.at[0];
  device T *y = output + at.at[1];
  const float top = largest_of_row<T>(x, a.count);
  float values[SOFTMAX_BLOCK];
  running_sum total;
  for (long i = 0; i < a.count; i += SOFTMAX_BLOCK)
    total.add(exponentials<T>(values, x + i, min((long)SOFTMAX_BLOCK, a.count - i), top));
  const float sum = total.value();
  if (a.logarithm) {
    const float shift = log(sum);
    VECTORIZE
    for (long i = 0; i < a.count; i++) y[i] = T((float(x[i]) - top) - shift);
    return;
  }
  const float scale = 1.0f / sum;
  if (a.count <= SOFTMAX_BLOCK) {
    VECTORIZE
    for (long i = 0; i < a.count; i++) y[i] = T(values[i] * scale);
    return;
  }
  VECTORIZE
  for (long i = 0; i < a.count; i++) y[i] = T(exp_below(float(x[i]) - top) * scale);
}

// Few long rows are cut into chunks: the largest of each and the sum of exp(x - it), [row][chunk]; then what the row makes of them; then results.
struct softmax_part {
  float top;
  float sum; // of a row: 1 / sum, or log(sum)
};

template <typename T>
kernel void softmax_totals(device const T *input [[buffer(0)]], constant mps_softmax_arguments &a [[buffer(3)]],
                           device softmax_part *partials [[buffer(4)]], uint2 position [[thread_position_in_grid]]) {
  const long begin = position.y * a.chunk, count = min((long)a.chunk, a.count - begin);
  device const T *x = input + row_offsets(a, position.x, 0).at[0] + begin;
  const float top = largest_of_row<T>(x, count);
  float values[SOFTMAX_BLOCK];
  running_sum total;
  for (long i = 0; i < count; i += SOFTMAX_BLOCK) total.add(exponentials<T>(values, x + i, min((long)SOFTMAX_BLOCK, count - i), top));
  softmax_part part = {top, total.value()};
  partials[position.x * a.chunk_count + position.y] = part;
}

kernel void softmax_merge(constant mps_softmax_arguments &a [[buffer(3)]], device softmax_part *partials [[buffer(4)]],
                          uint row [[thread_position_in_grid]]) {
  device softmax_part *parts = partials + row * a.chunk_count;
  float top = -INFINITY;
  for (long c = 0; c < a.chunk_count; c++) top = larger(top, parts[c].top);
  running_sum total;
  for (long c = 0; c < a.chunk_count; c++) // a chunk of -infinities is nothing, unless all are
    if (parts[c].top != -INFINITY || top == -INFINITY) total.add(parts[c].sum * exp_below(parts[c].top - top));
  const float sum = total.value();
  parts[0].top = top;
  parts[0].sum = a.logarithm ? log(sum) : 1.0f / sum;
}

template <typename T>
kernel void softmax_results(device const T *input [[buffer(0)]], device T *output [[buffer(1)]], constant mps_softmax_arguments &a [[buffer(3)]],
                            device const softmax_part *partials [[buffer(4)]], uint2 position [[thread_position_in_grid]]) {
  const long begin = position.y * a.chunk, count = min((long)a.chunk, a.count - begin);
  const softmax_offsets at = row_offsets(a, position.x, 0);
  device const T *x = input + at.at[0] + begin;
  device T *y = output + at.at[1] + begin;
  const float top = partials[position.x * a.chunk_count].top, factor = partials[position.x * a.chunk_count].sum;
  if (a.logarithm) {
    VECTORIZE
    for (long i = 0; i < count; i++) y[i] = T((float(x[i]) - top) - factor);
  } else {
    VECTORIZE
    for (long i = 0; i < count; i++) y[i] = T(exp_below(float(x[i]) - top) * factor);
  }
}

template <typename T>
inline void write_element(device T *to, float value) {
  *to = T(value);
}
inline void write_element(thread float *to, float value) { *to = value; }

#define SOFTMAX_SHORT 32 // rows of so many neighbouring elements are turned into columns first

// `x_step` and `y_step` lie between the rows of a tile; both are 1 when `unit`.
template <bool unit, typename X, typename Y>
inline void softmax_tile(X x, Y y, long x_step, long y_step, long xe, long ye, long width, constant mps_softmax_arguments &a) {
  const long xs = unit ? 1 : x_step, ys = unit ? 1 : y_step;
  float tops[MPS_SOFTMAX_TILE], sums[MPS_SOFTMAX_TILE];
  for (long j = 0; j < width; j++) {
    tops[j] = -INFINITY;
    sums[j] = 0.0f;
  }
  for (long i = 0; i < a.count; i++) {
    const X p = x + i * xe;
    VECTORIZE
    for (long j = 0; j < width; j++) tops[j] = larger(tops[j], float(p[j * xs]));
  }
  running_sum totals[MPS_SOFTMAX_TILE];
  for (long begin = 0; begin < a.count; begin += SOFTMAX_STRETCH) {
    const long end = min(begin + SOFTMAX_STRETCH, (long)a.count);
    for (long i = begin; i < end; i++) {
      const X p = x + i * xe;
      VECTORIZE
      for (long j = 0; j < width; j++) sums[j] += exp_below(float(p[j * xs]) - tops[j]);
    }
    end_stretch(sums, totals, width);
  }
  for (long j = 0; j < width; j++) sums[j] = totals[j].value();
  if (a.logarithm) {
    for (long j = 0; j < width; j++) sums[j] = log(sums[j]);
    for (long i = 0; i < a.count; i++) {
      const X p = x + i * xe;
      const Y q = y + i * ye;
      VECTORIZE
      for (long j = 0; j < width; j++) write_element(q + j * ys, (float(p[j * xs]) - tops[j]) - sums[j]);
    }
    return;
  }
  for (long j = 0; j < width; j++) sums[j] = 1.0f / sums[j];
  for (long i = 0; i < a.count; i++) {
    const X p = x + i * xe;
    const Y q = y + i * ye;
    VECTORIZE
    for (long j = 0; j < width; j++) write_element(q + j * ys, exp_below(float(p[j * xs]) - tops[j]) * sums[j]);
  }
}

template <typename T>
kernel void softmax_outer(device const T *input [[buffer(0)]], device T *output [[buffer(1)]],
                          constant mps_softmax_arguments &a [[buffer(3)]], uint tile [[thread_position_in_grid]]) {
  const long size = a.sizes[a.rank - 1], tiles = (size + MPS_SOFTMAX_TILE - 1) / MPS_SOFTMAX_TILE;
  const long outer = tile / tiles, first = (tile - outer * tiles) * MPS_SOFTMAX_TILE, width = min((long)MPS_SOFTMAX_TILE, size - first);
  const softmax_offsets at = row_offsets(a, outer, 1);
  const long xs = a.strides[0][a.rank - 1], ys = a.strides[1][a.rank - 1];
  device const T *x = input + at.at[0] + first * xs;
  device T *y = output + at.at[1] + first * ys;
  const long xe = a.element_strides[0], ye = a.element_strides[1];
  if (xs == 1 && ys == 1) {
    softmax_tile<true>(x, y, 1, 1, xe, ye, width, a);
  } else if (a.count <= SOFTMAX_SHORT) {
    float columns[SOFTMAX_SHORT * MPS_SOFTMAX_TILE];
    thread float *c = columns;
    for (long j = 0; j < width; j++)
      for (long i = 0; i < a.count; i++) c[i * MPS_SOFTMAX_TILE + j] = float(x[j * xs + i * xe]);
    softmax_tile<true>(c, c, 1, 1, MPS_SOFTMAX_TILE, MPS_SOFTMAX_TILE, width, a);
    for (long j = 0; j < width; j++)
      for (long i = 0; i < a.count; i++) y[j * ys + i * ye] = T(c[i * MPS_SOFTMAX_TILE + j]);
  } else {
    softmax_tile<false>(x, y, xs, ys, xe, ye, width, a);
  }
}

// Sum of g * y (softmax) or of g (log_softmax) over a row.
template <typename T>
inline float gradient_sum(device const T *g, device const T *y, long count, bool logarithm) {
  float lanes[REDUCE_LANES];
  running_sum total;
  for (long begin = 0; begin < count; begin += SOFTMAX_BLOCK) {
    const long end = min(begin + SOFTMAX_BLOCK, count);
    for (uint l = 0; l < REDUCE_LANES; l++) lanes[l] = 0.0f;
    long i = begin;
    for (; i + 2 * REDUCE_LANES <= end; i += 2 * REDUCE_LANES) {
      device const T *p = g + i, *q = y + i;
      if (logarithm) {
        VECTORIZE
        for (uint l = 0; l < REDUCE_LANES; l++) lanes[l] += float(p[l]) + float(p[l + REDUCE_LANES]);
      } else {
        VECTORIZE
        for (uint l = 0; l < REDUCE_LANES; l++)
          lanes[l] += float(p[l]) * float(q[l]) + float(p[l + REDUCE_LANES]) * float(q[l + REDUCE_LANES]);
      }
    }
    for (uint l = 0; i < end; i++, l = (l + 1) % REDUCE_LANES) lanes[l] += logarithm ? float(g[i]) : float(g[i]) * float(y[i]);
    total.add(fold_add(lanes));
  }
  return total.value();
}

template <typename T>
inline void gradient_results(device const T *g, device const T *y, device T *r, long count, float sum, bool logarithm) {
  if (logarithm) {
    VECTORIZE
    for (long i = 0; i < count; i++) r[i] = T(float(g[i]) - exp(float(y[i])) * sum);
  } else {
    VECTORIZE
    for (long i = 0; i < count; i++) r[i] = T((float(g[i]) - sum) * float(y[i]));
  }
}

template <typename T>
kernel void softmax_backward_inner(device const T *grad [[buffer(0)]], device const T *output [[buffer(1)]],
                                   device T *result [[buffer(2)]], constant mps_softmax_arguments &a [[buffer(3)]],
                                   uint row [[thread_position_in_grid]]) {
  const softmax_offsets at = row_offsets(a, row, 0);
  device const T *g = grad + at.at[0], *y = output + at.at[1];
  gradient_results<T>(g, y, result + at.at[2], a.count, gradient_sum<T>(g, y, a.count, a.logarithm != 0), a.logarithm != 0);
}

template <typename T>
kernel void softmax_backward_totals(device const T *grad [[buffer(0)]], device const T *output [[buffer(1)]],
                                    constant mps_softmax_arguments &a [[buffer(3)]], device float *partials [[buffer(4)]],
                                    uint2 position [[thread_position_in_grid]]) {
  const long begin = position.y * a.chunk, count = min((long)a.chunk, a.count - begin);
  const softmax_offsets at = row_offsets(a, position.x, 0);
  partials[position.x * a.chunk_count + position.y] =
      gradient_sum<T>(grad + at.at[0] + begin, output + at.at[1] + begin, count, a.logarithm != 0);
}

kernel void softmax_backward_merge(constant mps_softmax_arguments &a [[buffer(3)]], device float *partials [[buffer(4)]],
                                   uint row [[thread_position_in_grid]]) {
  device float *parts = partials + row * a.chunk_count;
  running_sum total;
  for (long c = 0; c < a.chunk_count; c++) total.add(parts[c]);
  parts[0] = total.value();
}

template <typename T>
kernel void softmax_backward_results(device const T *grad [[buffer(0)]], device const T *output [[buffer(1)]], device T *result [[buffer(2)]],
                                     constant mps_softmax_arguments &a [[buffer(3)]], device const float *partials [[buffer(4)]],
                                     uint2 position [[thread_position_in_grid]]) {
  const long begin = position.y * a.chunk, count = min((long)a.chunk, a.count - begin);
  const softmax_offsets at = row_offsets(a, position.x, 0);
  gradient_results<T>(grad + at.at[0] + begin, output + at.at[1] + begin, result + at.at[2] + begin, count, partials[position.x * a.chunk_count],
                      a.logarithm != 0);
}

template <bool unit, typename X, typename Y>
inline void softmax_backward_tile(X g, X y, Y r, long g_step, long y_step, long r_step, long ge, long ye, long re, long width,
                                  constant mps_softmax_arguments &a) {
  const long gs = unit ? 1 : g_step, ys = unit ? 1 : y_step, rs = unit ? 1 : r_step;
  const bool logarithm = a.logarithm != 0;
  float sums[MPS_SOFTMAX_TILE];
  running_sum totals[MPS_SOFTMAX_TILE];
  for (long j = 0; j < width; j++) sums[j] = 0.0f;
  for (long begin = 0; begin < a.count; begin += SOFTMAX_STRETCH) {
    const long end = min(begin + SOFTMAX_STRETCH, (long)a.count);
    for (long i = begin; i < end; i++) {
      const X p = g + i * ge, q = y + i * ye;
      if (logarithm) {
        VECTORIZE
        for (long j = 0; j < width; j++) sums[j] += float(p[j * gs]);
      } else {
        VECTORIZE
        for (long j = 0; j < width; j++) sums[j] += float(p[j * gs]) * float(q[j * ys]);
      }
    }
    end_stretch(sums, totals, width);
  }
  for (long j = 0; j < width; j++) sums[j] = totals[j].value();
  for (long i = 0; i < a.count; i++) {
    const X p = g + i * ge, q = y + i * ye;
    const Y o = r + i * re;
    if (logarithm) {
      VECTORIZE
      for (long j = 0; j < width; j++) write_element(o + j * rs, float(p[j * gs]) - exp(float(q[j * ys])) * sums[j]);
    } else {
      VECTORIZE
      for (long j = 0; j < width; j++) write_element(o + j * rs, (float(p[j * gs]) - sums[j]) * float(q[j * ys]));
    }
  }
}

template <typename T>
kernel void softmax_backward_outer(device const T *grad [[buffer(0)]], device const T *output [[buffer(1)]],
                                   device T *result [[buffer(2)]], constant mps_softmax_arguments &a [[buffer(3)]],
                                   uint tile [[thread_position_in_grid]]) {
  const long size = a.sizes[a.rank - 1], tiles = (size + MPS_SOFTMAX_TILE - 1) / MPS_SOFTMAX_TILE;
  const long outer = tile / tiles, first = (tile - outer * tiles) * MPS_SOFTMAX_TILE, width = min((long)MPS_SOFTMAX_TILE, size - first);
  const softmax_offsets at = row_offsets(a, outer, 1);
  const long gs = a.strides[0][a.rank - 1], ys = a.strides[1][a.rank - 1], rs = a.strides[2][a.rank - 1];
  device const T *g = grad + at.at[0] + first * gs, *y = output + at.at[1] + first * ys;
  device T *r = result + at.at[2] + first * rs;
  const long ge = a.element_strides[0], ye = a.element_strides[1], re = a.element_strides[2], row = MPS_SOFTMAX_TILE;
  if (gs == 1 && ys == 1 && rs == 1) {
    softmax_backward_tile<true>(g, y, r, 1, 1, 1, ge, ye, re, width, a);
  } else if (a.count <= SOFTMAX_SHORT) {
    float columns[2 * SOFTMAX_SHORT * MPS_SOFTMAX_TILE];
    thread float *c = columns, *d = columns + SOFTMAX_SHORT * row;
    for (long j = 0; j < width; j++)
      for (long i = 0; i < a.count; i++) {
        c[i * row + j] = float(g[j * gs + i * ge]);
        d[i * row + j] = float(y[j * ys + i * ye]);
      }
    softmax_backward_tile<true>(c, d, c, 1, 1, 1, row, row, row, width, a);
    for (long j = 0; j < width; j++)
      for (long i = 0; i < a.count; i++) r[j * rs + i * re] = T(c[i * row + j]);
  } else {
    softmax_backward_tile<false>(g, y, r, gs, ys, rs, ge, ye, re, width, a);
  }
}

#define SOFTMAX_CHUNK_KERNELS(suffix, type)                                                                                     \
  template [[host_name("softmax_totals_" #suffix)]] kernel void softmax_totals<type>(                                           \
      device const type *, constant mps_softmax_arguments &, device softmax_part *, uint2);                                     \
  template [[host_name("softmax_results_" #suffix)]] kernel void softmax_results<type>(                                         \
      device const type *, device type *, constant mps_softmax_arguments &, device const softmax_part *, uint2);                \
  template [[host_name("softmax_backward_totals_" #suffix)]] kernel void softmax_backward_totals<type>(                         \
      device const type *, device const type *, constant mps_softmax_arguments &, device float *, uint2);                       \
  template [[host_name("softmax_backward_results_" #suffix)]] kernel void softmax_backward_results<type>(                       \
      device const type *, device const type *, device type *, constant mps_softmax_arguments &, device const float *, uint2);
SOFTMAX_CHUNK_KERNELS(f32, float)
SOFTMAX_CHUNK_KERNELS(f16, half)
SOFTMAX_CHUNK_KERNELS(bf16, bfloat)

#define SOFTMAX_KERNELS(suffix, type)                                                                                    \
  template [[host_name("softmax_inner_" #suffix)]] kernel void softmax_inner<type>(                                      \
      device const type *input [[buffer(0)]], device type *output [[buffer(1)]],                                         \
      constant mps_softmax_arguments &a [[buffer(3)]], uint row [[thread_position_in_grid]]);                            \
  template [[host_name("softmax_outer_" #suffix)]] kernel void softmax_outer<type>(                                      \
      device const type *input [[buffer(0)]], device type *output [[buffer(1)]],                                         \
      constant mps_softmax_arguments &a [[buffer(3)]], uint tile [[thread_position_in_grid]]);                           \
  template [[host_name("softmax_backward_inner_" #suffix)]] kernel void softmax_backward_inner<type>(                    \
      device const type *grad [[buffer(0)]], device const type *output [[buffer(1)]], device type *result [[buffer(2)]], \
      constant mps_softmax_arguments &a [[buffer(3)]], uint row [[thread_position_in_grid]]);                            \
  template [[host_name("softmax_backward_outer_" #suffix)]] kernel void softmax_backward_outer<type>(                    \
      device const type *grad [[buffer(0)]], device const type *output [[buffer(1)]], device type *result [[buffer(2)]], \
      constant mps_softmax_arguments &a [[buffer(3)]], uint tile [[thread_position_in_grid]]);
SOFTMAX_KERNELS(f32, float)
SOFTMAX_KERNELS(f16, half)
SOFTMAX_KERNELS(bf16, bfloat)
