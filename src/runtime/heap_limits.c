/* SPDX-License-Identifier: BSD-3-Clause
 *
 * heap_limits: watermarks, statistics, the out-of-memory text, the allocator's log, and the walk that checks a heap's invariants.
 */
#include <string.h>

#include "base/log.h"
#include "base/options.h"
#include "base/os/os.h"
#include "base/status.h"
#include "runtime/state.h"

#define RATIO_MAX 2.0
#define PROCESS_SHARE 0.9
#define DISCARD_MIN ((uint64_t)64 << 10)

enum { DEBUG_PROFILING = 1, DEBUG_ALLOCATIONS = 2, DEBUG_RECYCLES = 4, DEBUG_RELEASES = 8, DEBUG_LARGE_ONLY = 16 };

/* ---- watermarks ---- */
static uint64_t limit_of(const mps_heap *heap, double ratio) {
  if (ratio == 0.0) return UINT64_MAX;
  double bytes = ratio * (double)heap->driver->limits.recommended_memory;
  return bytes < (double)heap->process_limit ? (uint64_t)bytes : heap->process_limit;
}

/* Lock held (or not shared yet). */
static void apply_ratios(mps_heap *heap) {
  heap->high_limit = limit_of(heap, heap->high_ratio);
  heap->low_limit = limit_of(heap, heap->low_ratio);
  /* Where the machine cuts the hard limit, the soft one keeps its distance. */
  if (heap->low_ratio > 0.0 && heap->high_ratio > heap->low_ratio && heap->high_limit != UINT64_MAX) {
    uint64_t scaled = (uint64_t)((double)heap->high_limit * (heap->low_ratio / heap->high_ratio));
    if (scaled < heap->low_limit) heap->low_limit = scaled;
  }
  char high[32], low[32];
  if (heap->debug & DEBUG_PROFILING) {
    MPS_LOG(HEAP, ERROR, "High watermark memory allocation limit: %s",
            heap->high_limit == UINT64_MAX ? "unlimited" : mps_heap_format_size(heap->high_limit, high));
    MPS_LOG(HEAP, ERROR, "Low watermark memory allocation limit: %s",
            heap->low_limit == UINT64_MAX ? "unlimited" : mps_heap_format_size(heap->low_limit, low));
  }
}

static mps_status check_high(double ratio) {
  if (ratio >= 0.0 && ratio <= RATIO_MAX) return MPS_STATUS_OK;
  return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "invalid high watermark ratio %g", ratio);
}

static mps_status check_low(double ratio, double high) {
  if (ratio >= 0.0 && ratio <= (high > 0.0 ? high : RATIO_MAX)) return MPS_STATUS_OK;
  return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "invalid low watermark ratio %g", ratio);
}

mps_status mps_heap_init_limits(mps_heap *heap) {
  double high = mps_option_double(MPS_OPTION_HIGH_WATERMARK_RATIO);
  double low = mps_option_double(MPS_OPTION_LOW_WATERMARK_RATIO);
  if (!mps_option_is_set(MPS_OPTION_LOW_WATERMARK_RATIO) && high > 0.0 && low > high) low = high;
  MPS_TRY(check_high(high));
  MPS_TRY(check_low(low, high));
  heap->process_limit = (uint64_t)(PROCESS_SHARE * (double)mps_os_available_memory());
  heap->high_ratio = high;
  heap->low_ratio = low;
  apply_ratios(heap);
  return MPS_STATUS_OK;
}

mps_status mps_heap_set_high_watermark_ratio(mps_device *device, double ratio) {
  MPS_TRY(mps_check_fork());
  MPS_TRY(check_high(ratio));
  mps_mutex_lock(&device->heap.lock);
  device->heap.high_ratio = ratio;
  apply_ratios(&device->heap);
  mps_mutex_unlock(&device->heap.lock);
  return MPS_STATUS_OK;
}

mps_status mps_heap_set_low_watermark_ratio(mps_device *device, double ratio) {
  MPS_TRY(mps_check_fork());
  mps_heap *heap = &device->heap;
  mps_mutex_lock(&heap->lock);
  mps_status status = check_low(ratio, heap->high_ratio);
  if (status == MPS_STATUS_OK) {
    heap->low_ratio = ratio;
    apply_ratios(heap);
  }
  mps_mutex_unlock(&heap->lock);
  return status;
}

uint64_t mps_heap_high_watermark(mps_device *device) {
  if (mps_process_is_forked) return 0;
  mps_mutex_lock(&device->heap.lock);
  uint64_t limit = device->heap.high_limit;
  mps_mutex_unlock(&device->heap.lock);
  return limit;
}

uint64_t mps_heap_low_watermark(mps_device *device) {
  if (mps_process_is_forked) return 0;
  mps_mutex_lock(&device->heap.lock);
  uint64_t limit = device->heap.low_limit;
  mps_mutex_unlock(&device->heap.lock);
  return limit;
}

bool mps_heap_within_limit(mps_heap *heap, uint64_t region_bytes, uint64_t request) {
  if (heap->high_limit == UINT64_MAX) return true;
  uint64_t held = heap->driver->vtable->allocated(heap->driver);
  if (held > heap->high_limit || region_bytes > heap->high_limit - held) return false;
  /* Pages are taken when touched: what is asked for must be there now, whoever else uses the machine. */
  return (double)request <= PROCESS_SHARE * (double)mps_os_available_memory();
}

mps_status mps_heap_out_of_memory(mps_heap *heap, uint64_t size) {
  uint64_t driver = heap->driver->vtable->allocated(heap->driver), reserved = heap->statistics.reserved;
  char own[32], other[32], limit[32], wanted[32];
  mps_heap_format_size(reserved, own);
  mps_heap_format_size(driver > reserved ? driver - reserved : 0, other);
  mps_heap_format_size(size, wanted);
  if (heap->high_limit == UINT64_MAX) {
    return mps_error_set(MPS_STATUS_OUT_OF_MEMORY,
                         "MPS backend out of memory (MPS allocated: %s, other allocations: %s). Tried to allocate %s on shared pool.",
                         own, other, wanted);
  }
  return mps_error_set(MPS_STATUS_OUT_OF_MEMORY,
                       "MPS backend out of memory (MPS allocated: %s, other allocations: %s, max allowed: %s). Tried to allocate %s on "
                       "shared pool. Use PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 to disable upper limit for memory allocations (may cause "
                       "system failure).",
                       own, other, mps_heap_format_size(heap->high_limit, limit), wanted);
}

/* ---- statistics and log ---- */
void mps_heap_get_statistics(mps_device *device, mps_heap_statistics *out) {
  if (mps_process_is_forked) {
    memset(out, 0, sizeof *out);
    return;
  }
  mps_mutex_lock(&device->heap.lock);
  *out = device->heap.statistics;
  mps_mutex_unlock(&device->heap.lock);
  out->driver = device->driver->vtable->allocated(device->driver);
}

void mps_heap_reset_peaks(mps_device *device) {
  if (mps_process_is_forked) return;
  mps_heap_statistics *statistics = &device->heap.statistics;
  mps_mutex_lock(&device->heap.lock);
  statistics->allocated_peak = statistics->allocated;
  statistics->reserved_peak = statistics->reserved;
  mps_mutex_unlock(&device->heap.lock);
}

void mps_heap_reset_accumulated(mps_device *device) {
  if (mps_process_is_forked) return;
  mps_mutex_lock(&device->heap.lock);
  device->heap.statistics.total_allocated = 0;
  device->heap.statistics.total_freed = 0;
  device->heap.statistics.reuses = 0;
  mps_mutex_unlock(&device->heap.lock);
}

void mps_heap_log_allocation(const mps_heap *heap, const mps_buffer *buffer) {
  if (!(heap->debug & DEBUG_ALLOCATIONS)) return;
  if (heap->debug & DEBUG_LARGE_ONLY && buffer->size <= MPS_HEAP_SMALL_MAX) return;
  char requested[32], size[32];
  MPS_LOG(HEAP, ERROR, "Allocated %s buffer #%llu of size %s (requested: %s, heap: #%llu)",
          buffer->size <= MPS_HEAP_SMALL_MAX ? "small shared" : "large shared", (unsigned long long)buffer->identifier,
          mps_heap_format_size(buffer->size, size), mps_heap_format_size(buffer->length, requested),
          (unsigned long long)buffer->region->number);
}

void mps_heap_discard_free(mps_heap *heap) {
  mps_driver_device *driver = heap->driver;
  if (!driver->vtable->discard) return;
  for (mps_heap_region *region = heap->regions; region; region = region->next) {
    for (mps_buffer *block = region->first; block; block = block->next) {
      if (block->state != MPS_BUFFER_FREE || block->size < DISCARD_MIN) continue;
      const mps_stream *stream = mps_device_stream(heap->device, block->slot);
      if (stream && block->serial > mps_stream_completed(stream)) continue;
      driver->vtable->discard(driver, &region->memory, block->offset, block->size);
    }
  }
}

/* ---- the check ---- */
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
