// SPDX-License-Identifier: BSD-3-Clause
//
// sort: stable sort, top-k and k-th element of rows. A thread takes whole rows, one after the other; keys are sorted or selected, values
// are fetched by index at the end.

#include "introsort.h"
#include "sort.h"

namespace {

enum { SHORT = 48 };  // rows in which pairs are moved faster than digits are counted

// Scratch of a lane: keys, other keys, then (elsewhere) indices, other indices.
template <typename T, typename K>
inline void load_row(device const T *input, constant mps_sort_arguments &a, long at, bool inverted, device K *keys) {
  for (long i = 0; i < a.length; i++) {
    const K key = sort_key<T>::of(element(input + at + i * a.input_step));
    keys[i] = inverted ? K(~key) : key;
  }
}

/* `count` elements of a row from `begin` on. */
template <typename T, typename K>
inline void load_block(device const T *input, constant mps_sort_arguments &a, long at, long begin, long count, thread K *keys) {
  const K flip = a.descending ? K(~K(0)) : K(0);
  device const T *x = input + at + begin * a.input_step;
  if (a.input_step == 1) {
    SORT_VECTORIZE
    for (long i = 0; i < count; i++) keys[i] = sort_key<T>::of(element(x + i)) ^ flip;
  } else {
    for (long i = 0; i < count; i++) keys[i] = sort_key<T>::of(element(x + i * a.input_step)) ^ flip;
  }
}

template <typename K>
inline bool any_below(thread const K *keys, long count, K border) {
  uint any = 0;
  SORT_VECTORIZE
  for (long i = 0; i < count; i++) any |= keys[i] < border ? 1u : 0u;
  return any != 0;
}

/* The a.count first elements of a row, in order, at most MPS_SORT_LIST. */
template <typename T, typename K>
inline void list_first(device const T *input, constant mps_sort_arguments &a, long at, thread K *keys, thread uint *order) {
  K block[MPS_SORT_BLOCK];
  long held = 0;
  for (long begin = 0; begin < a.length; begin += MPS_SORT_BLOCK) {
    const long count = min((long)MPS_SORT_BLOCK, a.length - begin);
    load_block(input, a, at, begin, count, block);
    if (held == a.count && !any_below(block, count, keys[held - 1])) continue;
    for (long i = 0; i < count; i++) {
      if (held == a.count && block[i] >= keys[held - 1]) continue;
      long j = held < a.count ? held++ : held - 1;
      for (; j > 0 && keys[j - 1] > block[i]; j--) {
        keys[j] = keys[j - 1];
        order[j] = order[j - 1];
      }
      keys[j] = block[i];
      order[j] = uint(begin + i);
    }
  }
  if (a.sorted == 0) sort_indices(order, held);
}

/* Keeps the `count` first of *held elements, of equal ones those with the lowest index, in the order of their indices. Returns the last one's key. */
template <typename K>
inline K keep_first(device K *keys, device uint *order, thread long *held, long count) {
  long below;
  const K border = select_key(keys, *held, count - 1, &below);
  long kept = 0, equal = count - below;
  for (long i = 0; i < *held; i++) {
    const bool at_border = keys[i] == border;
    if (keys[i] > border || (at_border && equal == 0)) continue;
    equal -= at_border ? 1 : 0;
    keys[kept] = keys[i];
    order[kept++] = order[i];
  }
  *held = kept;
  return border;
}

/* The same for more elements: what may be among the first is gathered in scratch, which is thinned out whenever it is full. */
template <typename T, typename K>
inline void gather_first(device const T *input, constant mps_sort_arguments &a, long at, device K *keys, device uint *order) {
  K block[MPS_SORT_BLOCK];
  K border = 0;
  bool bounded = false;
  long held = 0;
  for (long begin = 0; begin < a.length; begin += MPS_SORT_BLOCK) {
    const long count = min((long)MPS_SORT_BLOCK, a.length - begin);
    if (held + count > a.capacity) {
      border = keep_first(keys, order, &held, a.count);
      bounded = true;
    }
    load_block(input, a, at, begin, count, block);
    if (bounded && !any_below(block, count, border)) continue;
    for (long i = 0; i < count; i++) {
      keys[held] = block[i];
      order[held] = uint(begin + i);
      held += !bounded || block[i] < border ? 1 : 0;
    }
  }
  if (held > a.count) keep_first(keys, order, &held, a.count);
}

// Where a stable sort finds the key of a rank; *alone is false when others are equal to it.
template <typename K>
inline long stable_place(device const K *keys, long length, long rank, thread bool *alone) {
  long below, found = -1, equal = 0;
  const K border = select_key(keys, length, rank, &below);
  for (long i = 0; i < length; i++) {
    found = keys[i] == border && equal <= rank - below ? i : found;
    equal += keys[i] == border ? 1 : 0;
  }
  *alone = equal == 1;
  return found;
}

}  // namespace

template <typename T, typename K>
kernel void sort_rows(device const T *input [[buffer(0)]], device T *values [[buffer(1)]], device long *indices [[buffer(2)]],
                      constant mps_sort_arguments &a [[buffer(3)]], device K *key_scratch [[buffer(4)]], device uint *index_scratch [[buffer(5)]],
                      uint lane [[thread_position_in_grid]]) {
  device K *keys = key_scratch + long(lane) * 2 * a.length;
  device uint *order = index_scratch + long(lane) * 2 * a.length;
  for (long row = lane; row < a.rows; row += a.lanes) {
    const sort_row at = locate_row(a, row);
    load_row(input, a, at.input, a.descending != 0, keys);
    for (long i = 0; i < a.length; i++) order[i] = uint(i);
    device const uint *sorted = stable_sort(keys, order, keys + a.length, order + a.length, a.length);
    for (long i = 0; i < a.length; i++) values[at.value + i * a.value_step] = element(input + at.input + long(sorted[i]) * a.input_step);
    for (long i = 0; i < a.length; i++) indices[at.index + i * a.index_step] = sorted[i];
  }
}

template <typename T, typename P>
inline void store_first(device const T *input, device T *values, device long *indices, constant mps_sort_arguments &a, sort_row at, P order) {
  for (long i = 0; i < a.count; i++) {
    values[at.value + i * a.value_step] = element(input + at.input + long(order[i]) * a.input_step);
    indices[at.index + i * a.index_step] = order[i];
  }
}

// The `count` first elements of the sorted row. Of equal ones at the border those with the lowest index are taken.
template <typename T, typename K>
kernel void top_rows(device const T *input [[buffer(0)]], device T *values [[buffer(1)]], device long *indices [[buffer(2)]],
                     constant mps_sort_arguments &a [[buffer(3)]], device K *key_scratch [[buffer(4)]], device uint *index_scratch [[buffer(5)]],
                     uint lane [[thread_position_in_grid]]) {
  device K *keys = key_scratch + long(lane) * 2 * a.capacity;
  device uint *order = index_scratch + long(lane) * 2 * a.capacity;
  for (long row = lane; row < a.rows; row += a.lanes) {
    const sort_row at = locate_row(a, row);
    if (a.count <= MPS_SORT_LIST) {
      K list[MPS_SORT_LIST];
      uint places[MPS_SORT_LIST];
      list_first(input, a, at.input, list, places);
      store_first(input, values, indices, a, at, places);
    } else {
      gather_first(input, a, at.input, keys, order);
      device const uint *first = order;
      if (a.sorted) first = stable_sort(keys, order, keys + a.capacity, order + a.capacity, a.count);
      store_first(input, values, indices, a, at, first);
    }
  }
}

// One element of each row: the kth smallest, or the (lower) median. Of equal elements the CPU's choice: a stable sort's for the median,
// for the kth that of its quick select, which is also taken when floats, which seldom are equal, turn out to be.
template <typename T, typename K>
kernel void kth_rows(device const T *input [[buffer(0)]], device T *values [[buffer(1)]], device long *indices [[buffer(2)]],
                     constant mps_sort_arguments &a [[buffer(3)]], device K *key_scratch [[buffer(4)]], device uint *index_scratch [[buffer(5)]],
                     uint lane [[thread_position_in_grid]]) {
  device K *keys = key_scratch + long(lane) * a.length;
  device uint *order = index_scratch + long(lane) * a.length;
  const bool seldom_equal = sizeof(T) > 1 && T(0.5f) != T(0);  // floats
  for (long row = lane; row < a.rows; row += a.lanes) {
    const sort_row at = locate_row(a, row);
    load_row(input, a, at.input, false, keys);
    long numbers = a.length, first_nan = -1;
    for (long i = a.median ? a.length : 0; i-- > 0;) {
      const bool nan = sort_key<T>::is_nan(input[at.input + i * a.input_step]);
      numbers -= nan ? 1 : 0;
      first_nan = nan ? i : first_nan;
    }
    const long rank = a.median ? max((a.median == 2 ? numbers : long(a.length)) - 1, 0L) / 2 : a.kth;
    long found = a.median == 1 ? first_nan : -1;
    if (found < 0 && a.length > SHORT && (a.median || seldom_equal)) {
      bool alone;
      found = stable_place(keys, a.length, rank, &alone);
      if (!a.median && !alone) found = -1;
    }
    if (found < 0) {
      for (long i = 0; i < a.length; i++) order[i] = uint(i);
      if (a.median)
        insertion_sort(keys, order, a.length);
      else
        quick_select(keys, order, a.length, rank);
      found = order[rank];
    }
    values[at.value] = element(input + at.input + found * a.input_step);
    indices[at.index] = found;
  }
}

// The most frequent value of each row, of several the smallest; each NaN is a value of its own. The index is that of the last of them in
// the order of std::sort, as on the CPU.
template <typename T, typename K>
kernel void mode_rows(device const T *input [[buffer(0)]], device T *values [[buffer(1)]], device long *indices [[buffer(2)]],
                      constant mps_sort_arguments &a [[buffer(3)]], device K *key_scratch [[buffer(4)]], device uint *index_scratch [[buffer(5)]],
                      uint lane [[thread_position_in_grid]]) {
  device K *keys = key_scratch + long(lane) * a.length;
  device uint *order = index_scratch + long(lane) * a.length;
  for (long row = lane; row < a.rows; row += a.lanes) {
    const sort_row at = locate_row(a, row);
    load_row(input, a, at.input, false, keys);
    for (long i = 0; i < a.length; i++) order[i] = uint(i);
    introsort(keys, order, a.length);
    long best = 0, found = 0, run = 0;
    for (long i = 0; i < a.length; i++) {
      run++;
      if (i + 1 < a.length && keys[i] == keys[i + 1] && !sort_key<T>::is_nan(input[at.input + long(order[i]) * a.input_step])) continue;
      found = run > best ? i : found;
      best = max(best, run);
      run = 0;
    }
    values[at.value] = element(input + at.input + long(order[found]) * a.input_step);
    indices[at.index] = order[found];
  }
}

#define SORT(NAME, T, K)                                                                                                                            \
  template [[host_name("sort_" #NAME)]] kernel void sort_rows<T, K>(device const T *, device T *, device long *, constant mps_sort_arguments &,     \
                                                                   device K *, device uint *, uint);                                               \
  template [[host_name("top_" #NAME)]] kernel void top_rows<T, K>(device const T *, device T *, device long *, constant mps_sort_arguments &,       \
                                                                 device K *, device uint *, uint);                                                 \
  template [[host_name("kth_" #NAME)]] kernel void kth_rows<T, K>(device const T *, device T *, device long *, constant mps_sort_arguments &,       \
                                                                 device K *, device uint *, uint);                                                \
  template [[host_name("mode_" #NAME)]] kernel void mode_rows<T, K>(device const T *, device T *, device long *, constant mps_sort_arguments &,     \
                                                                   device K *, device uint *, uint);
SORT(bool, bool, uint)
SORT(u8, uchar, uint)
SORT(u16, ushort, uint)
SORT(u32, uint, uint)
SORT(u64, ulong, ulong)
SORT(i8, char, uint)
SORT(i16, short, uint)
SORT(i32, int, uint)
SORT(i64, long, ulong)
SORT(f16, half, uint)
SORT(bf16, bfloat, uint)
SORT(f32, float, uint)
