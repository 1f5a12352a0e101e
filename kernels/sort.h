/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sort: what sorting and selecting share: keys whose unsigned order is the order of values, and where a row lies.
 *
 * NaN counts as larger than everything; -0 equals 0. Equal values have equal keys, so that a stable sort of keys is one of values.
 */
#ifndef OPENMPS_KERNELS_SORT_H
#define OPENMPS_KERNELS_SORT_H

#include "element.h"
#include "sort_arguments.h"

/* Iterations are independent. */
#define SORT_VECTORIZE _Pragma("clang loop vectorize(assume_safety) unroll(disable)")

template <typename T> struct sort_key {  // unsigned integers of up to 32 bits, and bool
  typedef uint type;
  static uint of(T value) { return uint(value); }
  static bool is_nan(T) { return false; }
};
template <> struct sort_key<char> {
  typedef uint type;
  static uint of(char value) { return uint(int(value) + 128); }
  static bool is_nan(char) { return false; }
};
template <> struct sort_key<short> {
  typedef uint type;
  static uint of(short value) { return uint(int(value) + 32768); }
  static bool is_nan(short) { return false; }
};
template <> struct sort_key<int> {
  typedef uint type;
  static uint of(int value) { return uint(value) ^ 0x80000000u; }
  static bool is_nan(int) { return false; }
};
template <> struct sort_key<long> {
  typedef ulong type;
  static ulong of(long value) { return ulong(value) ^ 0x8000000000000000ul; }
  static bool is_nan(long) { return false; }
};
template <> struct sort_key<ulong> {
  typedef ulong type;
  static ulong of(ulong value) { return value; }
  static bool is_nan(ulong) { return false; }
};
template <> struct sort_key<float> {
  typedef uint type;
  static uint of(float value) {
    const uint bits = as_type<uint>(value == 0.0f ? 0.0f : value);
    const uint ordered = bits ^ ((bits >> 31) ? 0xffffffffu : 0x80000000u);
    return is_nan(value) ? 0xffffffffu : ordered;
  }
  static bool is_nan(float value) { return value != value; }
};
template <> struct sort_key<half> {
  typedef uint type;
  static uint of(half value) { return sort_key<float>::of(float(value)); }
  static bool is_nan(half value) { return sort_key<float>::is_nan(float(value)); }
};
template <> struct sort_key<bfloat> {
  typedef uint type;
  static uint of(bfloat value) { return sort_key<float>::of(float(value)); }
  static bool is_nan(bfloat value) { return sort_key<float>::is_nan(float(value)); }
};

struct sort_row {
  long input, value, index;
};

inline sort_row locate_row(constant mps_sort_arguments &a, long row) {
  sort_row at = {0, 0, 0};
  for (uint d = a.rank; d-- > 0;) {
    const long rest = d ? row / a.sizes[d] : 0;
    const long coordinate = row - rest * a.sizes[d];
    at.input += coordinate * a.input_strides[d];
    at.value += coordinate * a.value_strides[d];
    at.index += coordinate * a.index_strides[d];
    row = rest;
  }
  return at;
}

/* Stable least-digit-first radix sort of `count` (key, index) pairs, digits of 8 bits; those that all keys share are skipped. Returns true when the
 * result is left in the other arrays, false when it is in keys and indices. */
template <typename K>
inline bool radix_sort(device K *keys, device uint *indices, device K *other_keys, device uint *other_indices, long count) {
  uint histograms[sizeof(K)][256];
  const K first = keys[0];
  K varies = 0;
  SORT_VECTORIZE
  for (long i = 0; i < count; i++) varies |= keys[i] ^ first;
  uint digits = 0;
  for (uint d = 0; d < sizeof(K); d++) digits += (uint(varies >> (8 * d)) & 255u) != 0 ? 1 : 0;
  for (uint d = 0; d < sizeof(K); d++)
    for (uint i = 0; i < 256; i++) histograms[d][i] = 0;
  if (digits > sizeof(K) / 2) {
    for (long i = 0; i < count; i++) {
      const K key = keys[i];
      for (uint d = 0; d < sizeof(K); d++) histograms[d][uint(key >> (8 * d)) & 255u]++;
    }
  }
  bool swapped = false;
  for (uint shift = 0; shift < 8 * sizeof(K); shift += 8) {
    if ((uint(varies >> shift) & 255u) == 0) continue;
    thread uint *histogram = histograms[shift / 8];
    device const K *from = swapped ? other_keys : keys;
    device const uint *from_indices = swapped ? other_indices : indices;
    device K *to = swapped ? keys : other_keys;
    device uint *to_indices = swapped ? indices : other_indices;
    if (digits <= sizeof(K) / 2)
      for (long i = 0; i < count; i++) histogram[uint(from[i] >> shift) & 255u]++;
    uint start = 0;
    for (uint i = 0; i < 256; i++) {
      const uint here = histogram[i];
      histogram[i] = start;
      start += here;
    }
    for (long i = 0; i < count; i++) {
      const K key = from[i];
      const uint place = histogram[uint(key >> shift) & 255u]++;
      to[place] = key;
      to_indices[place] = from_indices[i];
    }
    swapped = !swapped;
  }
  return swapped;
}

template <typename K>
inline void insertion_sort(device K *keys, device uint *indices, long count) {
  for (long i = 1; i < count; i++) {
    const K key = keys[i];
    const uint index = indices[i];
    long j = i;
    for (; j > 0 && keys[j - 1] > key; j--) {
      keys[j] = keys[j - 1];
      indices[j] = indices[j - 1];
    }
    keys[j] = key;
    indices[j] = index;
  }
}

inline void sort_indices(thread uint *indices, long count) {
  for (long i = 1; i < count; i++) {
    const uint index = indices[i];
    long j = i;
    for (; j > 0 && indices[j - 1] > index; j--) indices[j] = indices[j - 1];
    indices[j] = index;
  }
}

/* Where the sorted indices are: `indices` or `other_indices`. */
template <typename K>
inline device uint *stable_sort(device K *keys, device uint *indices, device K *other_keys, device uint *other_indices, long count) {
  if (count > 32) return radix_sort(keys, indices, other_keys, other_indices, count) ? other_indices : indices;
  insertion_sort(keys, indices, count);
  return indices;
}

/* The key that has `rank` smaller or equal ones before it in sorted order, by counting digits from the top. *below = how many keys are
 * smaller than it. */
template <typename K>
inline K select_key(device const K *keys, long count, long rank, thread long *below) {
  K prefix = 0, mask = 0;
  long smaller = 0;
  for (uint shift = sizeof(K) * 8; shift > 0;) {
    shift -= 8;
    uint histogram[256];
    for (uint i = 0; i < 256; i++) histogram[i] = 0;
    for (long i = 0; i < count; i++)
      if ((keys[i] & mask) == prefix) histogram[uint(keys[i] >> shift) & 255u]++;
    uint digit = 0;
    while (smaller + long(histogram[digit]) <= rank) smaller += histogram[digit++];
    prefix |= K(digit) << shift;
    mask |= K(255u) << shift;
  }
  *below = smaller;
  return prefix;
}

#endif
