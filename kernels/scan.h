/* SPDX-License-Identifier: BSD-3-Clause
 *
 * scan: the loops that all running results share. An operation is a struct of static functions (see scan.metal):
 *   in, out        elements in memory;  item: an element as computed with;  part: a scalar of the state
 *   state          what is known of a stretch of a row: `parts` scalars; load and store find them in arrays of `stride`;
 *                  load_within and store_within: the first `within` of them, all that is known inside of a lane
 *   identity, first, step, merge    of no element, of one; one more element; two neighbouring stretches
 *   value, index   the result behind a stretch, and its place in the row where `places` says that there is one
 *   unscaled, scale    the result in two steps, for a whole tile: unscaled of each, then all scaled
 *   settle         the same state, tidied up after every group
 *   good           false where a quick result cannot be trusted: the group is then done again by `careful`, element by element
 *   total_tells    whether a good state behind a group means that all in it were good
 *   heavy          a step is long; serial: it is so short that a row is best taken one by one
 *   rises          whether a group changes the state: of those with places
 *   finished       the state is infinite, or NaN, or zero, and `rest` does what is left
 * Order depends on the shape alone, never on threads: lanes of neighbouring elements, then groups, then chunks.
 */
#ifndef OPENMPS_KERNELS_SCAN_H
#define OPENMPS_KERNELS_SCAN_H

#include <metal_stdlib>
#include "scan_arguments.h"

using namespace metal;

#define SCAN_LANES 16
#define SCAN_RUN (MPS_SCAN_GROUP / SCAN_LANES) // neighbouring elements of a lane

/* Iterations are independent; the fixed lanes are the vector. */
#define SCAN_VECTORIZE _Pragma("clang loop vectorize(assume_safety) unroll(disable)")

struct scan_row {
  long input, output, index;
};

/* Where row `row` lies, without the `skip` innermost dimensions. */
inline scan_row locate_row(constant mps_scan_arguments &a, long row, uint skip) {
  scan_row at = {0, 0, 0};
  for (uint d = a.rank - skip; d-- > 0;) {
    const long rest = d ? row / a.sizes[d] : 0, coordinate = row - rest * a.sizes[d];
    at.input += coordinate * a.input_strides[d];
    at.output += coordinate * a.output_strides[d];
    at.index += coordinate * a.index_strides[d];
    row = rest;
  }
  return at;
}

/* The slot of a chunk: first its total, then the state of all before it and itself. */
template <typename Op>
inline device typename Op::part *find_slot(device typename Op::part *partials, constant mps_scan_arguments &a, long row, long chunk) {
  return partials + (chunk * a.rows + row) * Op::parts;
}

/* The states within the lanes. Where a step is short, all of a lane's are taken at once: its elements then come in by shuffles, not gathers. */
template <typename Op>
inline void scan_lanes(thread const typename Op::item *x, thread typename Op::part *local, thread typename Op::part *totals, long base) {
  typedef typename Op::state state;
  const uint row = Op::within * SCAN_LANES;
  if (Op::heavy) {
    SCAN_VECTORIZE
    for (uint l = 0; l < SCAN_LANES; l++) Op::first(x[l * SCAN_RUN], base + l * SCAN_RUN).store_within(local + l, SCAN_LANES);
    _Pragma("clang loop unroll(disable)") for (uint j = 1; j < SCAN_RUN; j++) {
      SCAN_VECTORIZE
      for (uint l = 0; l < SCAN_LANES; l++)
        Op::step(state::load_within(local + (j - 1) * row + l, SCAN_LANES), x[l * SCAN_RUN + j], base + l * SCAN_RUN + j)
            .store_within(local + j * row + l, SCAN_LANES);
    }
  } else {
    SCAN_VECTORIZE
    for (uint l = 0; l < SCAN_LANES; l++) {
      state s = Op::first(x[l * SCAN_RUN], base + l * SCAN_RUN);
      s.store_within(local + l, SCAN_LANES);
      for (uint j = 1; j < SCAN_RUN; j++) {
        s = Op::step(s, x[l * SCAN_RUN + j], base + l * SCAN_RUN + j);
        s.store_within(local + j * row + l, SCAN_LANES);
      }
    }
  }
  SCAN_VECTORIZE
  for (uint l = 0; l < SCAN_LANES; l++) Op::settle(state::load_within(local + (SCAN_RUN - 1) * row + l, SCAN_LANES)).store(totals + l, SCAN_LANES);
}

/* The states behind the lanes before, joined with those within: results. */
template <typename Op>
inline void scan_results(thread const typename Op::part *local, thread const typename Op::part *before, thread typename Op::item *y, thread long *places,
                         thread uint *bad) {
  typedef typename Op::state state;
  const uint row = Op::within * SCAN_LANES;
  if (Op::heavy) {
    _Pragma("clang loop unroll(disable)") for (uint j = 0; j < SCAN_RUN; j++) {
      SCAN_VECTORIZE
      for (uint l = 0; l < SCAN_LANES; l++) {
        const state here = state::load_within(local + j * row + l, SCAN_LANES), all = Op::merge(state::load(before + l, SCAN_LANES), here);
        y[l * SCAN_RUN + j] = Op::value(all);
        bad[l] |= uint(!Op::good(here)) | uint(!Op::good(all));
      }
    }
  } else {
    SCAN_VECTORIZE
    for (uint l = 0; l < SCAN_LANES; l++) {
      const state so_far = state::load(before + l, SCAN_LANES);
      uint worse = 0;
      for (uint j = 0; j < SCAN_RUN; j++) {
        const state here = state::load_within(local + j * row + l, SCAN_LANES), all = Op::merge(so_far, here);
        y[l * SCAN_RUN + j] = Op::value(all);
        if (Op::places) places[l * SCAN_RUN + j] = Op::index(all);
        worse |= uint(!Op::good(here)) | uint(!Op::good(all));
      }
      bad[l] = worse;
    }
  }
}

/* A group of a row, quickly. Returns whether all of it is good; *carry then is the state behind it. `total`: nobody looks at the results. */
template <typename Op>
inline bool scan_group(thread const typename Op::item *x, thread typename Op::item *y, thread long *places, thread typename Op::state *carry, long base,
                       bool total) {
  typedef typename Op::state state;
  typename Op::part local[SCAN_RUN * Op::within * SCAN_LANES], totals[Op::parts * SCAN_LANES], before[Op::parts * SCAN_LANES];
  uint bad[SCAN_LANES];
  if (Op::places && !Op::rises(x, *carry)) {
    const typename Op::item same = Op::value(*carry);
    const long place = Op::index(*carry);
    for (uint k = 0; k < MPS_SCAN_GROUP; k++) y[k] = same;
    for (uint k = 0; k < MPS_SCAN_GROUP; k++) places[k] = place;
    return true;
  }
  scan_lanes<Op>(x, local, totals, base);
  state c = *carry;
  for (uint l = 0; l < SCAN_LANES; l++) {
    c.store(before + l, SCAN_LANES);
    c = Op::merge(c, state::load(totals + l, SCAN_LANES));
  }
  c = Op::settle(c);
  if (Op::total_tells && total) {
    const bool fine = Op::good(c);
    if (fine) *carry = c;
    return fine;
  }
  for (uint l = 0; l < SCAN_LANES; l++) bad[l] = 0;
  scan_results<Op>(local, before, y, places, bad);
  uint any = 0;
  for (uint l = 0; l < SCAN_LANES; l++) any |= bad[l];
  if (any == 0) *carry = c;
  return any == 0;
}

/* The same element by element, `stride` apart. */
template <typename Op>
inline void scan_carefully(thread const typename Op::item *x, thread typename Op::item *y, uint stride, long count, thread typename Op::state *carry) {
  typename Op::state c = *carry;
  long i = 0;
  for (; i < count && !Op::finished(c); i++) {
    c = Op::careful(c, x[i * stride]);
    y[i * stride] = Op::careful_value(c);
  }
  if (i < count) c = Op::rest(c, x + i * stride, y + i * stride, stride, count - i);
  *carry = c;
}

/* Layout "inner": thread (row, chunk). */
template <typename Op>
kernel void scan_inner(device const typename Op::in *input [[buffer(0)]], device typename Op::out *output [[buffer(1)]],
                       device long *indices [[buffer(2)]], constant mps_scan_arguments &a [[buffer(3)]],
                       device typename Op::part *partials [[buffer(4)]], uint2 position [[thread_position_in_grid]]) {
  const long row = position.x, chunk = position.y, begin = chunk * a.chunk, end = min(begin + a.chunk, (long)a.length);
  const bool total = a.pass == MPS_SCAN_TOTALS;
  const scan_row at = locate_row(a, row, 0);
  typename Op::item x[MPS_SCAN_GROUP], y[MPS_SCAN_GROUP];
  long places[MPS_SCAN_GROUP];
  typename Op::state carry = Op::identity();
  if (chunk > 0 && !total) carry = Op::state::load(find_slot<Op>(partials, a, row, chunk - 1), 1);
  if (Op::serial) {
    device const typename Op::in *p = input + at.input;
    device typename Op::out *q = output + at.output;
    for (long i = begin; i < end; i++) {
      carry = Op::step(carry, Op::take(p[i * a.input_step], a), i);
      if (!total) q[i * a.output_step] = Op::give(Op::value(carry), a);
    }
  }
  for (long i = begin; i < end && !Op::serial; i += MPS_SCAN_GROUP) {
    const long count = min((long)MPS_SCAN_GROUP, end - i);
    device const typename Op::in *p = input + at.input + i * a.input_step;
    if (a.input_step == 1) {
      SCAN_VECTORIZE
      for (long k = 0; k < count; k++) x[k] = Op::take(p[k], a);
    } else if (a.input_step == 2) { // the parts of complex numbers
      SCAN_VECTORIZE
      for (long k = 0; k < count; k++) x[k] = Op::take(p[2 * k], a);
    } else {
      for (long k = 0; k < count; k++) x[k] = Op::take(p[k * a.input_step], a);
    }
    for (long k = count; k < MPS_SCAN_GROUP; k++) x[k] = Op::neutral();
    if (Op::finished(carry) || !scan_group<Op>(x, y, places, &carry, i, total)) scan_carefully<Op>(x, y, 1, count, &carry);
    if (total) continue;
    device typename Op::out *q = output + at.output + i * a.output_step;
    if (a.output_step == 1) {
      SCAN_VECTORIZE
      for (long k = 0; k < count; k++) q[k] = Op::give(y[k], a);
    } else {
      for (long k = 0; k < count; k++) q[k * a.output_step] = Op::give(y[k], a);
    }
    if (Op::places)
      for (long k = 0; k < count; k++) indices[at.index + (i + k) * a.index_step] = places[k];
  }
  if (total) carry.store(find_slot<Op>(partials, a, row, chunk), 1);
}

/* `count` elements of `width` rows side by side, from x to y. */
template <typename Op>
inline void scan_tile(thread const typename Op::item *x, thread typename Op::item *y, thread long *places, thread typename Op::part *carry, long base,
                      long count, long width) {
  typedef typename Op::state state;
  typename Op::part now[Op::parts * MPS_SCAN_TILE];
  uint bad[MPS_SCAN_TILE];
  for (long j = 0; j < long(Op::parts) * MPS_SCAN_TILE; j++) now[j] = carry[j];
  for (long j = 0; j < width; j++) bad[j] = 0;
  for (long i = 0; i < count; i++) {
    SCAN_VECTORIZE
    for (long j = 0; j < width; j++) {
      const state all = Op::step(state::load(now + j, MPS_SCAN_TILE), x[i * MPS_SCAN_TILE + j], base + i);
      all.store(now + j, MPS_SCAN_TILE);
      y[i * MPS_SCAN_TILE + j] = Op::unscaled(all);
      if (Op::places) places[i * MPS_SCAN_TILE + j] = Op::index(all);
      bad[j] |= uint(!Op::good(all));
    }
  }
  Op::scale(y, now, count, width);
  uint any = 0;
  for (long j = 0; j < width; j++) any |= bad[j];
  if (any == 0) {
    SCAN_VECTORIZE
    for (long j = 0; j < width; j++) Op::settle(state::load(now + j, MPS_SCAN_TILE)).store(carry + j, MPS_SCAN_TILE);
    return;
  }
  for (long j = 0; j < width; j++) {
    state c = bad[j] ? state::load(carry + j, MPS_SCAN_TILE) : Op::settle(state::load(now + j, MPS_SCAN_TILE));
    if (bad[j]) scan_carefully<Op>(x + j, y + j, MPS_SCAN_TILE, count, &c);
    c.store(carry + j, MPS_SCAN_TILE);
  }
}

/* Layout "outer": thread (tile of rows that are neighbours, chunk); vectorised across the rows. */
template <typename Op>
kernel void scan_outer(device const typename Op::in *input [[buffer(0)]], device typename Op::out *output [[buffer(1)]],
                       device long *indices [[buffer(2)]], constant mps_scan_arguments &a [[buffer(3)]],
                       device typename Op::part *partials [[buffer(4)]], uint2 position [[thread_position_in_grid]]) {
  const long size = a.sizes[a.rank - 1], tiles = (size + MPS_SCAN_TILE - 1) / MPS_SCAN_TILE, outer = position.x / tiles;
  const long first = (position.x - outer * tiles) * MPS_SCAN_TILE, width = min((long)MPS_SCAN_TILE, size - first), row = outer * size + first;
  const long chunk = position.y, begin = chunk * a.chunk, end = min(begin + a.chunk, (long)a.length);
  const bool total = a.pass == MPS_SCAN_TOTALS;
  const scan_row at = locate_row(a, outer, 1);
  const long xs = a.input_strides[a.rank - 1], ys = a.output_strides[a.rank - 1], zs = a.index_strides[a.rank - 1];
  typename Op::item x[MPS_SCAN_STEPS * MPS_SCAN_TILE], y[MPS_SCAN_STEPS * MPS_SCAN_TILE];
  long places[Op::places ? MPS_SCAN_STEPS * MPS_SCAN_TILE : 1];
  typename Op::part carry[Op::parts * MPS_SCAN_TILE];
  for (long j = 0; j < MPS_SCAN_TILE; j++) Op::identity().store(carry + j, MPS_SCAN_TILE);
  if (chunk > 0 && !total)
    for (long j = 0; j < width; j++) Op::state::load(find_slot<Op>(partials, a, row + j, chunk - 1), 1).store(carry + j, MPS_SCAN_TILE);
  for (long i = begin; i < end; i += MPS_SCAN_STEPS) {
    const long count = min((long)MPS_SCAN_STEPS, end - i);
    for (long k = 0; k < count; k++) {
      device const typename Op::in *p = input + at.input + (i + k) * a.input_step + first * xs;
      if (xs == 1) {
        SCAN_VECTORIZE
        for (long j = 0; j < width; j++) x[k * MPS_SCAN_TILE + j] = Op::take(p[j], a);
      } else {
        for (long j = 0; j < width; j++) x[k * MPS_SCAN_TILE + j] = Op::take(p[j * xs], a);
      }
    }
    scan_tile<Op>(x, y, places, carry, i, count, width);
    if (total) continue;
    for (long k = 0; k < count; k++) {
      device typename Op::out *q = output + at.output + (i + k) * a.output_step + first * ys;
      if (ys == 1) {
        SCAN_VECTORIZE
        for (long j = 0; j < width; j++) q[j] = Op::give(y[k * MPS_SCAN_TILE + j], a);
      } else {
        for (long j = 0; j < width; j++) q[j * ys] = Op::give(y[k * MPS_SCAN_TILE + j], a);
      }
      if (Op::places)
        for (long j = 0; j < width; j++) indices[at.index + (i + k) * a.index_step + (first + j) * zs] = places[k * MPS_SCAN_TILE + j];
    }
  }
  if (total)
    for (long j = 0; j < width; j++) Op::state::load(carry + j, MPS_SCAN_TILE).store(find_slot<Op>(partials, a, row + j, chunk), 1);
}

/* Turns the totals of a row's chunks into the states behind them. */
template <typename Op>
kernel void scan_prefix(constant mps_scan_arguments &a [[buffer(3)]], device typename Op::part *partials [[buffer(4)]],
                        uint row [[thread_position_in_grid]]) {
  typename Op::state c = Op::identity();
  for (long chunk = 0; chunk + 1 < a.chunk_count; chunk++) {
    device typename Op::part *slot = find_slot<Op>(partials, a, row, chunk);
    c = Op::join(c, Op::state::load(slot, 1));
    c.store(slot, 1);
  }
}

/* "scan_<name>_inner_<suffix>" and its two companions. */
#define SCAN_KERNELS(name, suffix, in_type, out_type, part_type, ...)                                                                                       \
  template [[host_name("scan_" #name "_inner_" #suffix)]] kernel void scan_inner<__VA_ARGS__>(                                                    \
      device const in_type *, device out_type *, device long *, constant mps_scan_arguments &, device part_type *, uint2);                         \
  template [[host_name("scan_" #name "_outer_" #suffix)]] kernel void scan_outer<__VA_ARGS__>(                                                    \
      device const in_type *, device out_type *, device long *, constant mps_scan_arguments &, device part_type *, uint2);                         \
  template [[host_name("scan_" #name "_prefix_" #suffix)]] kernel void scan_prefix<__VA_ARGS__>(constant mps_scan_arguments &, device part_type *, \
                                                                                               uint);

#endif
