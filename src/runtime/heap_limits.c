/* SPDX-License-Identifier: BSD-3-Clause
 *
 * heap_limits: watermarks, the out-of-memory text, statistics and the allocator's log.
 */
#include <string.h>

#include "base/log.h"
#include "base/options.h"
#include "base/os/os.h"
#include "base/status.h"
#include "runtime/state.h"

#define RATIO_MAX 2.0
#define PROCESS_SHARE 0.9

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
    mps_log_print("High watermark memory allocation limit: %s",
            heap->high_limit == UINT64_MAX ? "unlimited" : mps_heap_format_size(heap->high_limit, high));
    mps_log_print("Low watermark memory allocation limit: %s",
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

void mps_heap_log_allocation(const mps_heap *heap, const mps_buffer *buffer, bool reused) {
  bool small = buffer->size <= MPS_HEAP_SMALL_MAX;
  if (!(heap->debug & (reused ? DEBUG_RECYCLES : DEBUG_ALLOCATIONS)) || (heap->debug & DEBUG_LARGE_ONLY && small)) return;
  char requested[32], size[32];
  mps_log_print("%s %s shared buffer #%llu of size %s (requested: %s, heap: #%llu)", reused ? "Reusing" : "Allocated",
                small ? "small" : "large", (unsigned long long)buffer->identifier, mps_heap_format_size(buffer->size, size),
                mps_heap_format_size(buffer->length, requested), (unsigned long long)buffer->region->number);
}

void mps_heap_log_region(const mps_heap *heap, uint64_t number, uint64_t length) {
  char size[32];
  if (heap->debug & DEBUG_RELEASES) mps_log_print("Released heap #%llu of size %s", (unsigned long long)number, mps_heap_format_size(length, size));
}
