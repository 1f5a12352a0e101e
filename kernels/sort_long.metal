// SPDX-License-Identifier: BSD-3-Clause
//
// sort_long: a stable sort of one long row by all threads: a radix sort, least digit first, block by block. For each digit of 8 bits blocks count
// their keys, the counts become places, and blocks move their keys there in order. Digits that all keys share take no time.

#include "sort.h"

namespace {

// Bits in which keys differ.
template <typename K>
inline K varying(device const K *varies, long blocks) {
  K all = 0;
  for (long b = 0; b < blocks; b++) all |= varies[b];
  return all;
}

template <typename K>
inline bool is_digit(K varies, uint digit) {
  return (uint(varies >> (8 * digit)) & 255u) != 0;
}

// Whether the keys are in the second half of the scratch before a digit is sorted by: each digit moves them.
template <typename K>
inline bool is_moved(K varies, uint digit) {
  bool moved = false;
  for (uint d = 0; d < digit; d++) moved = moved != is_digit(varies, d);
  return moved;
}

}  // namespace

// Keys and their numbers into the first half of the scratch; varies[block] = bits in which the block's keys differ from the row's first.
template <typename T, typename K>
kernel void sort_long_load(device const T *input [[buffer(0)]], constant mps_sort_long_arguments &a [[buffer(3)]], device K *keys [[buffer(4)]],
                           device uint *order [[buffer(5)]], device K *varies [[buffer(6)]], uint block [[thread_position_in_grid]]) {
  const long begin = long(block) * a.block, end = min(begin + a.block, long(a.length)), step = a.input_step;
  const K flip = a.descending ? K(~K(0)) : K(0), first = sort_key<T>::of(element(input)) ^ flip;
  K differing = 0;
  SORT_VECTORIZE
  for (long i = begin; i < end; i++) {
    const K key = sort_key<T>::of(element(input + i * step)) ^ flip;
    keys[i] = key;
    order[i] = uint(i);
    differing |= key ^ first;
  }
  varies[block] = differing;
}

// counts[value * blocks + block] = keys of a block whose digit has a value.
template <typename K>
kernel void sort_long_count(constant mps_sort_long_arguments &a [[buffer(3)]], device const K *keys [[buffer(4)]], device const K *varies [[buffer(6)]],
                            device uint *counts [[buffer(7)]], uint block [[thread_position_in_grid]]) {
  const K differing = varying(varies, a.blocks);
  if (!is_digit(differing, a.digit)) return;
  device const K *from = keys + (is_moved(differing, a.digit) ? long(a.length) : 0L);
  const long begin = long(block) * a.block, end = min(begin + a.block, long(a.length));
  const uint shift = 8 * a.digit;
  uint histogram[256];
  for (uint v = 0; v < 256; v++) histogram[v] = 0;
  for (long i = begin; i < end; i++) histogram[uint(from[i] >> shift) & 255u]++;
  for (uint v = 0; v < 256; v++) counts[long(v) * a.blocks + block] = histogram[v];
}

// Turns counts into the places where each block's keys begin.
template <typename K>
kernel void sort_long_starts(constant mps_sort_long_arguments &a [[buffer(3)]], device const K *varies [[buffer(6)]], device uint *counts [[buffer(7)]],
                             uint position [[thread_position_in_grid]]) {
  if (!is_digit(varying(varies, a.blocks), a.digit)) return;
  const long length = 256 * a.blocks;
  uint start = 0;
  for (long i = 0; i < length; i++) {
    const uint here = counts[i];
    counts[i] = start;
    start += here;
  }
}

template <typename K>
kernel void sort_long_move(constant mps_sort_long_arguments &a [[buffer(3)]], device K *keys [[buffer(4)]], device uint *order [[buffer(5)]],
                           device const K *varies [[buffer(6)]], device const uint *starts [[buffer(7)]], uint block [[thread_position_in_grid]]) {
  const K differing = varying(varies, a.blocks);
  if (!is_digit(differing, a.digit)) return;
  const bool moved = is_moved(differing, a.digit);
  const long from = moved ? long(a.length) : 0L, to = moved ? 0L : long(a.length);
  const long begin = long(block) * a.block, end = min(begin + a.block, long(a.length));
  const uint shift = 8 * a.digit;
  uint places[256];
  for (uint v = 0; v < 256; v++) places[v] = starts[long(v) * a.blocks + block];
  for (long i = begin; i < end; i++) {
    const K key = keys[from + i];
    const long place = to + long(places[uint(key >> shift) & 255u]++);
    keys[place] = key;
    order[place] = order[from + i];
  }
}

template <typename T, typename K>
kernel void sort_long_store(device const T *input [[buffer(0)]], device T *values [[buffer(1)]], device long *indices [[buffer(2)]],
                            constant mps_sort_long_arguments &a [[buffer(3)]], device const uint *order [[buffer(5)]],
                            device const K *varies [[buffer(6)]], uint block [[thread_position_in_grid]]) {
  device const uint *sorted = order + (is_moved(varying(varies, a.blocks), a.digits) ? long(a.length) : 0L);
  const long begin = long(block) * a.block, end = min(begin + a.block, long(a.length));
  for (long i = begin; i < end; i++) values[i * a.value_step] = element(input + long(sorted[i]) * a.input_step);
  for (long i = begin; i < end; i++) indices[i * a.index_step] = sorted[i];
}

#define MOVE(NAME, K)                                                                                                                                  \
  template [[host_name("sort_long_count_" #NAME)]] kernel void sort_long_count<K>(constant mps_sort_long_arguments &, device const K *,                \
                                                                                 device const K *, device uint *, uint);                              \
  template [[host_name("sort_long_starts_" #NAME)]] kernel void sort_long_starts<K>(constant mps_sort_long_arguments &, device const K *, device uint *, \
                                                                                   uint);                                                             \
  template [[host_name("sort_long_move_" #NAME)]] kernel void sort_long_move<K>(constant mps_sort_long_arguments &, device K *, device uint *,        \
                                                                               device const K *, device const uint *, uint);
MOVE(u32, uint)
MOVE(u64, ulong)

#define ENDS(NAME, T, K)                                                                                                                              \
  template [[host_name("sort_long_load_" #NAME)]] kernel void sort_long_load<T, K>(device const T *, constant mps_sort_long_arguments &, device K *, \
                                                                                  device uint *, device K *, uint);                                 \
  template [[host_name("sort_long_store_" #NAME)]] kernel void sort_long_store<T, K>(device const T *, device T *, device long *,                    \
                                                                                    constant mps_sort_long_arguments &, device const uint *,        \
                                                                                    device const K *, uint);
ENDS(bool, bool, uint)
ENDS(u8, uchar, uint)
ENDS(u16, ushort, uint)
ENDS(u32, uint, uint)
ENDS(u64, ulong, ulong)
ENDS(i8, char, uint)
ENDS(i16, short, uint)
ENDS(i32, int, uint)
ENDS(i64, long, ulong)
ENDS(f16, half, uint)
ENDS(bf16, bfloat, uint)
ENDS(f32, float, uint)
