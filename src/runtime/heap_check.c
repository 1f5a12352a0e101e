/* SPDX-License-Identifier: BSD-3-Clause
 *
 * heap_check: walks all regions and the index, and tells which invariant of a heap is broken.
 */
#include "base/status.h"
#include "runtime/state.h"

typedef struct heap_count {
  uint64_t free_blocks, live_blocks, live_bytes, reserved, regions;
} heap_count;

static mps_status broken(const mps_heap_region *region, const mps_buffer *block, const char *what) {
  return mps_error_set(MPS_STATUS_INTERNAL_ERROR, "heap region %llu, block at %llu of %zu bytes: %s", (unsigned long long)region->number,
                       (unsigned long long)block->offset, block->size, what);
}

static bool is_indexed(const mps_heap *heap, const mps_buffer *block) {
  const mps_heap_index *index = heap->indexes[block->slot][block->region->pool];
  if (!index || block->bin != mps_heap_bin_of(block->size)) return false;
  for (const mps_buffer *b = index->bins[block->bin]; b; b = b->bin_next) {
    if (b == block) return true;
  }
  return false;
}

static mps_status check_region(const mps_heap *heap, const mps_heap_region *region, heap_count *count) {
  uint64_t offset = 0;
  const mps_buffer *previous = NULL;
  for (const mps_buffer *block = region->first; block; previous = block, block = block->next) {
    if (block->region != region) return broken(region, block, "belongs to another region");
    if (block->previous != previous) return broken(region, block, "its link back is wrong");
    if (block->offset != offset || block->size == 0) return broken(region, block, "does not begin where the one before ends");
    if (block->offset % heap->driver->limits.buffer_alignment) return broken(region, block, "is not aligned");
    offset += block->size;
    if (block->state == MPS_BUFFER_FREE) {
      count->free_blocks++;
      if (!is_indexed(heap, block)) return broken(region, block, "is free but not in its index");
      if (previous && previous->state == MPS_BUFFER_FREE && previous->slot == block->slot) return broken(region, block, "was not merged");
    } else if (block->state == MPS_BUFFER_LIVE) {
      count->live_blocks++;
      count->live_bytes += block->size;
      if (block->length > block->size) return broken(region, block, "is shorter than what was asked for");
      if (heap->guard && !mps_heap_guard_is_whole(block)) return broken(region, block, "something wrote outside its contents");
    }
  }
  if (offset != region->memory.length) return broken(region, region->first, "the blocks do not fill the region");
  return MPS_STATUS_OK;
}

static uint64_t count_indexed(const mps_heap *heap) {
  uint64_t count = 0;
  for (uint32_t slot = 0; slot < MPS_STREAM_SLOTS; slot++) {
    for (int pool = 0; pool < MPS_POOL_COUNT; pool++) {
      const mps_heap_index *index = heap->indexes[slot][pool];
      for (uint32_t bin = 0; index && bin < MPS_HEAP_BINS; bin++) {
        bool bit = index->bits[bin / 32] >> bin % 32 & 1;
        if (bit != (index->bins[bin] != NULL)) return UINT64_MAX;
        if (bit && !(index->words >> bin / 32 & 1)) return UINT64_MAX;
        for (const mps_buffer *b = index->bins[bin]; b; b = b->bin_next) count++;
      }
    }
  }
  return count;
}

static mps_status check_heap(const mps_heap *heap) {
  heap_count count = {0};
  for (const mps_heap_region *region = heap->regions; region; region = region->next) {
    MPS_TRY(check_region(heap, region, &count));
    count.regions++;
    count.reserved += region->memory.length;
  }
  const mps_heap_statistics *statistics = &heap->statistics;
  if (count_indexed(heap) != count.free_blocks) return mps_error_set(MPS_STATUS_INTERNAL_ERROR, "the index and the free blocks differ");
  if (count.live_bytes != statistics->allocated || count.live_blocks != statistics->live_buffers ||
      count.reserved != statistics->reserved || count.regions != statistics->heaps) {
    return mps_error_set(MPS_STATUS_INTERNAL_ERROR, "the statistics are wrong: %llu of %llu bytes live",
                         (unsigned long long)count.live_bytes, (unsigned long long)statistics->allocated);
  }
  return MPS_STATUS_OK;
}

mps_status mps_heap_validate(mps_device *device) {
  MPS_TRY(mps_check_fork());
  mps_mutex_lock(&device->heap.lock);
  mps_status status = check_heap(&device->heap);
  mps_mutex_unlock(&device->heap.lock);
  return status;
}
