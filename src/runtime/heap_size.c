/* SPDX-License-Identifier: BSD-3-Clause
 *
 * heap_size: how requests are rounded, which pool and region serves them, which bin holds a size. Pure functions.
 */
#include <stdio.h>

#include "runtime/heap.h"

static uint32_t log2_floor(uint64_t value) { return 63u - (uint32_t)__builtin_clzll(value); }

static uint64_t align_up(uint64_t value, uint64_t granule) { return (value + granule - 1) / granule * granule; }

static int tier_of(uint64_t size) {
  return size <= MPS_HEAP_SMALL_MAX ? 0 : size < MPS_HEAP_LARGE_MIN ? 1 : size < MPS_HEAP_OVERSIZE_MIN ? 2 : 3;
}

uint64_t mps_heap_round(uint64_t length, uint64_t alignment, uint64_t page_bytes) {
  if (length <= MPS_HEAP_SMALL_MAX) return align_up(length, alignment);
  uint64_t granule = ((uint64_t)1 << log2_floor(length)) >> 5; /* 32 buckets a power of two: a growing cache meets its last block */
  uint64_t aligned = align_up(length, page_bytes);
  uint64_t bucket = align_up(length, granule > page_bytes ? granule : page_bytes);
  return tier_of(bucket) == tier_of(aligned) ? bucket : aligned;
}

mps_heap_pool mps_heap_pool_of(uint64_t size) {
  return size <= MPS_HEAP_SMALL_MAX ? MPS_POOL_SMALL : size < MPS_HEAP_OVERSIZE_MIN ? MPS_POOL_LARGE : MPS_POOL_OVERSIZE;
}

uint64_t mps_heap_region_size(uint64_t size) {
  switch (tier_of(size)) {
    case 0:
      return MPS_HEAP_SMALL_REGION;
    case 1:
      return MPS_HEAP_LARGE_REGION;
    case 2:
      return MPS_HEAP_XLARGE_REGION;
    default:
      return align_up(size, MPS_HEAP_ROUND_REGION);
  }
}

uint32_t mps_heap_bin_of(uint64_t size) {
  if (size < 2048) return (uint32_t)(size / 64);
  uint32_t log = log2_floor(size);
  uint32_t bin = 32 + (log - 11) * 32 + (uint32_t)(size >> (log - 5) & 31);
  return bin < MPS_HEAP_BINS ? bin : MPS_HEAP_BINS - 1;
}

const char *mps_heap_format_size(uint64_t bytes, char *out) {
  static const char *const units[] = {"KiB", "MiB", "GiB"};
  if (bytes <= 1024) {
    snprintf(out, 32, "%llu bytes", (unsigned long long)bytes);
    return out;
  }
  int unit = bytes <= (uint64_t)1 << 20 ? 0 : bytes <= (uint64_t)1 << 30 ? 1 : 2;
  snprintf(out, 32, "%.2f %s", (double)bytes / (double)((uint64_t)1 << (10 * (unit + 1))), units[unit]);
  return out;
}
