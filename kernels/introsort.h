/* SPDX-License-Identifier: BSD-3-Clause
 *
 * introsort: the order that std::sort of libstdc++ leaves (key, index) pairs in, equal keys included, step by step: quicksort by the
 * median of three, heapsort where that goes too deep, insertion at the end; and the quick select of PyTorch's CPU. For results that depend
 * on which of equal elements is where.
 */
#ifndef OPENMPS_KERNELS_INTROSORT_H
#define OPENMPS_KERNELS_INTROSORT_H

#include <metal_stdlib>

using namespace metal;

enum { INTROSORT_SMALL = 16 };  // pairs that are left to insertion

template <typename K> struct sort_pairs {
  device K *keys;
  device uint *indices;

  void exchange(long i, long j) thread {
    const K key = keys[i];
    const uint index = indices[i];
    keys[i] = keys[j];
    indices[i] = indices[j];
    keys[j] = key;
    indices[j] = index;
  }
  void move(long to, long from) thread {
    keys[to] = keys[from];
    indices[to] = indices[from];
  }
  void set(long i, K key, uint index) thread {
    keys[i] = key;
    indices[i] = index;
  }
};

// Lets a pair sink from `hole` of the heap [first, first + length), then rise again.
template <typename K>
inline void adjust_heap(thread sort_pairs<K> &p, long first, long hole, long length, K key, uint index) {
  const long top = hole;
  long child = hole;
  while (child < (length - 1) / 2) {
    child = 2 * (child + 1);
    if (p.keys[first + child] < p.keys[first + child - 1]) child--;
    p.move(first + hole, first + child);
    hole = child;
  }
  if ((length & 1) == 0 && child == (length - 2) / 2) {
    child = 2 * child + 1;
    p.move(first + hole, first + child);
    hole = child;
  }
  for (long parent = (hole - 1) / 2; hole > top && p.keys[first + parent] < key; parent = (hole - 1) / 2) {
    p.move(first + hole, first + parent);
    hole = parent;
  }
  p.set(first + hole, key, index);
}

template <typename K>
inline void make_heap(thread sort_pairs<K> &p, long first, long length) {
  for (long parent = (length - 2) / 2; parent >= 0; parent--)
    adjust_heap(p, first, parent, length, p.keys[first + parent], p.indices[first + parent]);
}

// Moves the largest pair of the heap [first, first + length) to `place`, and what was there into the heap.
template <typename K>
inline void pop_heap(thread sort_pairs<K> &p, long first, long length, long place) {
  const K key = p.keys[place];
  const uint index = p.indices[place];
  p.move(place, first);
  adjust_heap(p, first, 0L, length, key, index);
}

template <typename K>
inline void heap_sort(thread sort_pairs<K> &p, long first, long last) {
  make_heap(p, first, last - first);
  for (long end = last - 1; end > first; end--) pop_heap(p, first, end - first, end);
}

// Moves the median of the second, the middle and the last pair to the front, and parts the others by it.
template <typename K>
inline long partition_pairs(thread sort_pairs<K> &p, long first, long last) {
  const long a = first + 1, b = first + (last - first) / 2, c = last - 1;
  const K x = p.keys[a], y = p.keys[b], z = p.keys[c];
  const long median = x < y ? (y < z ? b : x < z ? c : a) : (x < z ? a : y < z ? c : b);
  p.exchange(first, median);
  const K pivot = p.keys[first];
  long left = first + 1, right = last;
  while (true) {
    while (p.keys[left] < pivot) left++;
    right--;
    while (pivot < p.keys[right]) right--;
    if (left >= right) return left;
    p.exchange(left, right);
    left++;
  }
}

template <typename K>
inline void insert_pairs(thread sort_pairs<K> &p, long first, long last) {
  for (long i = first + 1; i < last; i++) {
    const K key = p.keys[i];
    const uint index = p.indices[i];
    long j = i;
    for (; j > first && key < p.keys[j - 1]; j--) p.move(j, j - 1);
    p.set(j, key, index);
  }
}

template <typename K>
inline void introsort(device K *keys, device uint *indices, long length) {
  sort_pairs<K> p = {keys, indices};
  long firsts[66], lasts[66];  // what is still to be parted; each entry is one level deeper, and there are at most 2 log2(length) levels
  int depths[66];
  int waiting = 0, depth = 0;
  for (long n = length; n > 1; n >>= 1) depth += 2;
  long first = 0, last = length;
  while (true) {
    while (last - first > INTROSORT_SMALL) {
      if (depth == 0) {
        heap_sort(p, first, last);
        break;
      }
      depth--;
      const long cut = partition_pairs(p, first, last);
      firsts[waiting] = cut;
      lasts[waiting] = last;
      depths[waiting++] = depth;
      last = cut;
    }
    if (waiting == 0) break;
    waiting--;
    first = firsts[waiting];
    last = lasts[waiting];
    depth = depths[waiting];
  }
  insert_pairs(p, 0L, length);
}

// Afterwards the pair at nth is the one that a sort would put there; the pivot is the median of three, at the front.
template <typename K>
inline void quick_select(device K *keys, device uint *indices, long length, long nth) {
  sort_pairs<K> p = {keys, indices};
  long first = 0, last = length - 1;
  while (last > first) {
    if (last == first + 1) {
      if (keys[first] > keys[last]) p.exchange(first, last);
      return;
    }
    p.exchange(first + (last - first) / 2, first + 1);
    if (keys[first + 1] > keys[last]) p.exchange(first + 1, last);
    if (keys[first] > keys[last]) p.exchange(first, last);
    if (keys[first + 1] > keys[first]) p.exchange(first + 1, first);
    const K pivot = keys[first];
    long left = first + 1, right = last;
    while (true) {
      do left++;
      while (pivot > keys[left]);
      do right--;
      while (keys[right] > pivot);
      if (right < left) break;
      p.exchange(left, right);
    }
    p.exchange(first, right);
    first = right <= nth ? left : first;
    last = right >= nth ? right - 1 : last;
  }
}

#endif
