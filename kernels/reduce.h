/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reduce: the loops that all reductions share. An operation is a struct of static functions (see reduce_sum.metal):
 *   in, lane, acc, out   types: element, accumulator of the loops, accumulator between blocks, result
 *   identity, load, combine: on lanes;  empty, widen, merge: on acc;  finish: acc to out.
 * Order: a block goes into fixed lanes that are folded as a tree; blocks and chunks are merged as a tree, left to right. It
 * depends on the shape alone, never on threads.
 */
#ifndef OPENMPS_KERNELS_REDUCE_H
#define OPENMPS_KERNELS_REDUCE_H

#include <metal_stdlib>
#include "reduce_arguments.h"

using namespace metal;

#define REDUCE_LANES 16
#define REDUCE_BLOCK 8192 /* elements that go into the lanes before they are folded */
#define REDUCE_SHORT_BLOCK 1024 /* the same where runs are too short to be taken eight rows at once */
#define REDUCE_ROWS 64    /* rows that a tile adds up before they are merged */
#define REDUCE_TOGETHER 16 /* short rows that are folded together */
#define REDUCE_LEVELS 40  /* of the tree: more than any count has bits */

/* Iterations are independent; the fixed lanes are the vector. */
#define VECTORIZE _Pragma("clang loop vectorize(assume_safety) unroll(disable)")
/* All 16 lanes, or the half of them, at once: then they stay in registers from one loop to the next. */
#define ALL_LANES _Pragma("clang loop vectorize(assume_safety) vectorize_width(16) interleave_count(1) unroll(disable)")
#define HALF_THE_LANES _Pragma("clang loop vectorize(assume_safety) vectorize_width(8) interleave_count(1) unroll(disable)")

/* Element offset of kept dimension set `index`, without the `skip` innermost dimensions. */
inline long kept_offset(constant mps_reduce_arguments &a, constant int64_t *strides, long index, uint skip) {
  long offset = 0;
  for (uint d = a.kept_rank - skip; d-- > 0;) {
    long size = a.kept_sizes[d];
    long quotient = d ? index / size : 0;
    offset += (index - quotient * size) * strides[d];
    index = quotient;
  }
  return offset;
}

/* Offset of run `index`: all reduced dimensions but the innermost. */
inline long run_offset(constant mps_reduce_arguments &a, long index) {
  long offset = 0;
  for (uint d = a.reduced_rank - 1; d-- > 0;) {
    long size = a.reduced_sizes[d];
    long quotient = d ? index / size : 0;
    offset += (index - quotient * size) * a.reduced_strides[d];
    index = quotient;
  }
  return offset;
}

/* The values that wait in the tree: a binary counter, at most one per level. */
template <typename Op>
struct reduce_tree {
  typename Op::acc values[REDUCE_LEVELS];
  uint top;
  ulong count;
  reduce_tree() : top(0), count(0) {}
  void push(typename Op::acc value) {
    for (ulong n = ++count; (n & 1) == 0; n >>= 1) value = Op::merge(values[--top], value);
    values[top++] = value;
  }
  typename Op::acc fold() {
    if (top == 0) return Op::empty();
    typename Op::acc value = values[--top];
    while (top) value = Op::merge(values[--top], value);
    return value;
  }
};

template <typename Op>
inline typename Op::lane combine_four(device const typename Op::in *x, long stride, constant mps_reduce_arguments &a) {
  return Op::combine(Op::combine(Op::load(x[0], a), Op::load(x[stride], a)),
                     Op::combine(Op::load(x[2 * stride], a), Op::load(x[3 * stride], a)));
}
template <typename Op>
inline typename Op::lane combine_eight(device const typename Op::in *x, long stride, constant mps_reduce_arguments &a) {
  return Op::combine(combine_four<Op>(x, stride, a), combine_four<Op>(x + 4 * stride, stride, a));
}

template <typename Op>
inline void accumulate_run(thread typename Op::lane *lanes, device const typename Op::in *x, long stride, long count,
                           constant mps_reduce_arguments &a) {
  if (stride == 1) {
    long i = 0;
    for (; i + 8 * REDUCE_LANES <= count; i += 8 * REDUCE_LANES) { // eight rows at once: the lanes go through memory
      device const typename Op::in *p = x + i;
      ALL_LANES
      for (uint l = 0; l < REDUCE_LANES; l++) lanes[l] = Op::combine(lanes[l], combine_eight<Op>(p + l, REDUCE_LANES, a));
    }
    for (; i + REDUCE_LANES <= count; i += REDUCE_LANES) {
      device const typename Op::in *p = x + i;
      ALL_LANES
      for (uint l = 0; l < REDUCE_LANES; l++) lanes[l] = Op::combine(lanes[l], Op::load(p[l], a));
    }
    for (uint l = 0; i < count; i++, l++) lanes[l] = Op::combine(lanes[l], Op::load(x[i], a));
  } else {
    uint l = 0;
    for (long i = 0; i < count; i++, l = (l + 1) % REDUCE_LANES)
      lanes[l] = Op::combine(lanes[l], Op::load(x[i * stride], a));
  }
}

template <typename Op>
inline typename Op::lane fold_lanes(thread typename Op::lane *lanes) {
  HALF_THE_LANES
  for (uint l = 0; l < REDUCE_LANES / 2; l++) lanes[l] = Op::combine(lanes[l], lanes[l + REDUCE_LANES / 2]);
  return Op::combine(Op::combine(Op::combine(lanes[0], lanes[1]), Op::combine(lanes[2], lanes[3])),
                     Op::combine(Op::combine(lanes[4], lanes[5]), Op::combine(lanes[6], lanes[7])));
}

/* How an operation takes a run in; the order of values has a quicker way. */
template <typename Op>
struct run_taker {
  static void take(thread typename Op::lane *lanes, device const typename Op::in *x, long stride, long count, constant mps_reduce_arguments &a) {
    accumulate_run<Op>(lanes, x, stride, count, a);
  }
};

/* One chunk of one output. */
template <typename Op>
inline typename Op::acc reduce_chunk(device const typename Op::in *x, long begin, long end, constant mps_reduce_arguments &a) {
  const long run = a.reduced_sizes[a.reduced_rank - 1], stride = a.reduced_strides[a.reduced_rank - 1];
  if (a.reduced_rank == 1 && stride == 1 && end - begin <= REDUCE_BLOCK) { // the same, without the tree
    typename Op::lane lanes[REDUCE_LANES];
    for (uint l = 0; l < REDUCE_LANES; l++) lanes[l] = Op::identity();
    run_taker<Op>::take(lanes, x + begin * stride, stride, end - begin, a);
    return Op::widen(fold_lanes<Op>(lanes));
  }
  const long block = stride == 1 && run >= 8 * REDUCE_LANES ? REDUCE_BLOCK : REDUCE_SHORT_BLOCK;
  reduce_tree<Op> tree;
  for (long p = begin; p < end;) {
    const long stop = min(p + block, end);
    typename Op::lane lanes[REDUCE_LANES];
    for (uint l = 0; l < REDUCE_LANES; l++) lanes[l] = Op::identity();
    while (p < stop) {
      const long index = a.reduced_rank > 1 ? p / run : 0;
      const long first = p - index * run, count = min(run - first, stop - p);
      run_taker<Op>::take(lanes, x + run_offset(a, index) + first * stride, stride, count, a);
      p += count;
    }
    tree.push(Op::widen(fold_lanes<Op>(lanes)));
  }
  return tree.fold();
}

/* Layout "inner": thread (output, chunk). */
template <typename Op>
kernel void reduce_inner(device const typename Op::in *input [[buffer(0)]], device typename Op::acc *partials [[buffer(1)]],
                         device typename Op::out *out [[buffer(2)]], constant mps_reduce_arguments &a [[buffer(3)]],
                         uint2 position [[thread_position_in_grid]]) {
  const long o = position.x, c = position.y;
  const long begin = c * a.chunk, end = min(begin + a.chunk, (long)a.reduce_count);
  typename Op::acc value = reduce_chunk<Op>(input + kept_offset(a, a.kept_strides, o, 0), begin, end, a);
  if (a.raw)
    partials[c * a.output_count + o] = value;
  else
    out[kept_offset(a, a.out_strides, o, 0)] = Op::finish(value, a);
}

/* Rows of a tile: `count` reduced elements, `stride` apart, for `width` outputs, `step` apart. Each step writes the other of two sets of lanes
 * (extreme.h says why); what comes out is in `lanes`. */
template <typename Op>
inline void accumulate_rows(thread typename Op::lane *thread &lanes, thread typename Op::lane *thread &others, device const typename Op::in *x,
                            long stride, long count, long step, long width, constant mps_reduce_arguments &a) {
  for (long r = 0; r < count;) {
    thread typename Op::lane *from = lanes, *to = others;
    device const typename Op::in *p = x + r * stride;
    if (step == 1 && r + 4 <= count) {
      device const typename Op::in *p1 = p + stride, *p2 = p1 + stride, *p3 = p2 + stride;
      VECTORIZE
      for (long j = 0; j < width; j++)
        to[j] = Op::combine(from[j], Op::combine(Op::combine(Op::load(p[j], a), Op::load(p1[j], a)),
                                                 Op::combine(Op::load(p2[j], a), Op::load(p3[j], a))));
      r += 4;
    } else if (step == 1) {
      VECTORIZE
      for (long j = 0; j < width; j++) to[j] = Op::combine(from[j], Op::load(p[j], a));
      r++;
    } else {
      VECTORIZE
      for (long j = 0; j < width; j++) to[j] = Op::combine(from[j], Op::load(p[j * step], a));
      r++;
    }
    lanes = to;
    others = from;
  }
}

/* A row of ROW_LEAST to ROW_MOST neighbours into 16 lanes, of which the first 8 come out. The last elements are taken with those before them,
 * which count as nothing. */
template <typename Op>
inline void take_row(thread typename Op::lane *halves, device const typename Op::in *x, long count, constant mps_reduce_arguments &a) {
  typename Op::lane lanes[REDUCE_LANES];
  ALL_LANES
  for (uint l = 0; l < REDUCE_LANES; l++) lanes[l] = Op::combine(Op::identity(), Op::load(x[l], a));
  long i = REDUCE_LANES;
  for (; i + REDUCE_LANES <= count; i += REDUCE_LANES) {
    device const typename Op::in *p = x + i;
    ALL_LANES
    for (uint l = 0; l < REDUCE_LANES; l++) lanes[l] = Op::combine(lanes[l], Op::load(p[l], a));
  }
  if (i < count) {
    device const typename Op::in *p = x + count - REDUCE_LANES;
    const uint seen = uint(i - (count - REDUCE_LANES));
    ALL_LANES
    for (uint l = 0; l < REDUCE_LANES; l++) {
      const typename Op::lane value = Op::load(p[l], a);
      lanes[l] = Op::combine(lanes[l], l < seen ? Op::identity() : value);
    }
  }
  HALF_THE_LANES
  for (uint l = 0; l < REDUCE_LANES / 2; l++) halves[l] = Op::combine(lanes[l], lanes[l + REDUCE_LANES / 2]);
}

/* Neighbours become one: half as many. */
template <typename Op>
inline void fold_neighbours(thread const typename Op::lane *from, thread typename Op::lane *to, uint count) {
  VECTORIZE
  for (uint i = 0; i < count; i++) to[i] = Op::combine(from[2 * i], from[2 * i + 1]);
}

/* A tile of short rows, 16 at a time, so that the lanes of all of them are folded together. */
template <typename Op>
inline void reduce_rows(thread typename Op::acc *totals, device const typename Op::in *x, long step, long width, constant mps_reduce_arguments &a) {
  typename Op::lane eights[REDUCE_TOGETHER * 8], fours[REDUCE_TOGETHER * 4];
  for (long j = 0; j < width; j += REDUCE_TOGETHER) {
    const uint rows = uint(min((long)REDUCE_TOGETHER, width - j));
    for (uint r = 0; r < rows; r++) take_row<Op>(eights + r * 8, x + (j + r) * step, a.reduce_count, a);
    fold_neighbours<Op>(eights, fours, rows * 4);
    fold_neighbours<Op>(fours, eights, rows * 2);
    fold_neighbours<Op>(eights, fours, rows);
    for (uint r = 0; r < rows; r++) totals[j + r] = Op::widen(fours[r]);
  }
}

/* One chunk of a tile of outputs: totals[0..width). */
template <typename Op>
inline void reduce_tile(thread typename Op::acc *totals, device const typename Op::in *x, long begin, long end, long step, long width,
                        constant mps_reduce_arguments &a) {
  const long run = a.reduced_sizes[a.reduced_rank - 1], stride = a.reduced_strides[a.reduced_rank - 1];
  typename Op::lane sets[2][MPS_REDUCE_TILE];
  thread typename Op::lane *lanes = sets[0], *others = sets[1];
  for (long j = 0; j < width; j++) totals[j] = Op::empty();
  for (long p = begin; p < end;) {
    const long stop = min(p + REDUCE_ROWS, end);
    for (long j = 0; j < width; j++) lanes[j] = Op::identity();
    while (p < stop) {
      const long index = a.reduced_rank > 1 ? p / run : 0;
      const long first = p - index * run, count = min(run - first, stop - p);
      accumulate_rows<Op>(lanes, others, x + run_offset(a, index) + first * stride, stride, count, step, width, a);
      p += count;
    }
    for (long j = 0; j < width; j++) totals[j] = Op::merge(totals[j], Op::widen(lanes[j]));
  }
}

/* Layout "outer": thread (tile, chunk); vectorised across the outputs of the tile. */
template <typename Op>
kernel void reduce_outer(device const typename Op::in *input [[buffer(0)]], device typename Op::acc *partials [[buffer(1)]],
                         device typename Op::out *out [[buffer(2)]], constant mps_reduce_arguments &a [[buffer(3)]],
                         uint2 position [[thread_position_in_grid]]) {
  const long size = a.kept_sizes[a.kept_rank - 1], tiles = (size + MPS_REDUCE_TILE - 1) / MPS_REDUCE_TILE;
  const long outer = position.x / tiles, first = (position.x - outer * tiles) * MPS_REDUCE_TILE;
  const long width = min((long)MPS_REDUCE_TILE, size - first), c = position.y;
  const long begin = c * a.chunk, end = min(begin + a.chunk, (long)a.reduce_count);
  const long step = a.kept_strides[a.kept_rank - 1];
  typename Op::acc totals[MPS_REDUCE_TILE];
  device const typename Op::in *x = input + kept_offset(a, a.kept_strides, outer, 1) + first * step;
  if (a.rows)
    reduce_rows<Op>(totals, x, step, width, a);
  else
    reduce_tile<Op>(totals, x, begin, end, step, width, a);
  if (a.raw) {
    device typename Op::acc *p = partials + c * a.output_count + outer * size + first;
    for (long j = 0; j < width; j++) p[j] = totals[j];
  } else {
    const long out_step = a.out_strides[a.kept_rank - 1];
    device typename Op::out *p = out + kept_offset(a, a.out_strides, outer, 1) + first * out_step;
    for (long j = 0; j < width; j++) p[j * out_step] = Op::finish(totals[j], a);
  }
}

/* Merges the chunks of one output. */
template <typename Op>
kernel void reduce_finish(device const typename Op::acc *partials [[buffer(1)]], device typename Op::out *out [[buffer(2)]],
                          constant mps_reduce_arguments &a [[buffer(3)]], uint o [[thread_position_in_grid]]) {
  reduce_tree<Op> tree;
  for (long c = 0; c < a.chunk_count; c++) tree.push(partials[c * a.output_count + o]);
  out[kept_offset(a, a.out_strides, o, 0)] = Op::finish(tree.fold(), a);
}

/* "reduce_<name>_inner_<suffix>" and its two companions; the operation comes last, it may contain commas. */
#define REDUCE_KERNELS(name, suffix, in_type, acc_type, out_type, ...)                                               \
  template [[host_name("reduce_" #name "_inner_" #suffix)]] kernel void reduce_inner<__VA_ARGS__>(                   \
      device const in_type *input [[buffer(0)]], device acc_type *partials [[buffer(1)]],                            \
      device out_type *out [[buffer(2)]], constant mps_reduce_arguments &a [[buffer(3)]],                            \
      uint2 position [[thread_position_in_grid]]);                                                                   \
  template [[host_name("reduce_" #name "_outer_" #suffix)]] kernel void reduce_outer<__VA_ARGS__>(                   \
      device const in_type *input [[buffer(0)]], device acc_type *partials [[buffer(1)]],                            \
      device out_type *out [[buffer(2)]], constant mps_reduce_arguments &a [[buffer(3)]],                            \
      uint2 position [[thread_position_in_grid]]);                                                                   \
  template [[host_name("reduce_" #name "_finish_" #suffix)]] kernel void reduce_finish<__VA_ARGS__>(                 \
      device const acc_type *partials [[buffer(1)]], device out_type *out [[buffer(2)]],                             \
      constant mps_reduce_arguments &a [[buffer(3)]], uint o [[thread_position_in_grid]]);

#endif
