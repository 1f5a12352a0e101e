/* SPDX-License-Identifier: BSD-3-Clause
 *
 * heap: regions, blocks and the index of free blocks. What may be given to whom: a stream's own blocks at once, another stream's when
 * that stream's completed serial has passed the block's.
 */
#include "runtime/heap.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/options.h"
#include "base/status.h"
#include "runtime/state.h"

#define SLAB_RECORDS 64
#define DISCARD_MIN ((uint64_t)64 << 10)
#define BIN_SEARCH_MAX 16 /* blocks of a bin that are looked at for a fit */

struct mps_heap_slab {
  mps_heap_slab *next;
  mps_buffer records[SLAB_RECORDS];
};

static _Atomic uint64_t next_identifier = 1; /* of buffers, in the process */

/* ---- block records ---- */
static mps_buffer *new_record(mps_heap *heap) {
  if (!heap->spare) {
    mps_heap_slab *slab = calloc(1, sizeof *slab);
    if (!slab) return NULL;
    slab->next = heap->slabs;
    heap->slabs = slab;
    for (int i = SLAB_RECORDS; i-- > 0;) {
      slab->records[i].bin_next = heap->spare;
      heap->spare = &slab->records[i];
    }
  }
  mps_buffer *record = heap->spare;
  heap->spare = record->bin_next;
  return record;
}

static void free_record(mps_heap *heap, mps_buffer *record) {
  record->region = NULL;
  record->bin_next = heap->spare;
  heap->spare = record;
}

mps_status mps_heap_new_record(mps_heap *heap, mps_buffer **out_buffer) {
  mps_mutex_lock(&heap->lock);
  mps_buffer *record = new_record(heap);
  mps_mutex_unlock(&heap->lock);
  if (!record) return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for a buffer record");
  record->identifier = atomic_fetch_add_explicit(&next_identifier, 1, memory_order_relaxed);
  *out_buffer = record;
  return MPS_STATUS_OK;
}

/* ---- the index ---- */
static void insert(mps_heap *heap, mps_buffer *block) {
  mps_heap_index *index = heap->indexes[block->slot][block->region->pool];
  uint32_t bin = mps_heap_bin_of(block->size);
  block->bin = (uint16_t)bin;
  block->bin_previous = NULL;
  block->bin_next = index->bins[bin];
  if (block->bin_next) block->bin_next->bin_previous = block;
  index->bins[bin] = block;
  index->bits[bin / 32] |= 1u << bin % 32;
  index->words |= UINT64_C(1) << bin / 32;
}

static void unlink_block(mps_heap *heap, mps_buffer *block) {
  mps_heap_index *index = heap->indexes[block->slot][block->region->pool];
  if (block->bin_next) block->bin_next->bin_previous = block->bin_previous;
  if (block->bin_previous) {
    block->bin_previous->bin_next = block->bin_next;
    return;
  }
  uint32_t bin = block->bin;
  index->bins[bin] = block->bin_next;
  if (block->bin_next) return;
  index->bits[bin / 32] &= ~(1u << bin % 32);
  if (!index->bits[bin / 32]) index->words &= ~(UINT64_C(1) << bin / 32);
}

/* The first bin from `bin` on that is not empty, or MPS_HEAP_BINS. */
static uint32_t next_bin(const mps_heap_index *index, uint32_t bin) {
  uint32_t word = bin / 32;
  if (bin >= MPS_HEAP_BINS) return MPS_HEAP_BINS;
  uint32_t here = index->bits[word] & (UINT32_MAX << bin % 32);
  if (here) return word * 32 + (uint32_t)__builtin_ctz(here);
  uint64_t above = word + 1 < 64 ? index->words & (UINT64_MAX << (word + 1)) : 0;
  if (!above) return MPS_HEAP_BINS;
  word = (uint32_t)__builtin_ctzll(above);
  return word * 32 + (uint32_t)__builtin_ctz(index->bits[word]);
}

static bool is_idle(const mps_heap *heap, const mps_buffer *block) {
  const mps_stream *stream = mps_device_stream(heap->device, block->slot);
  return !stream || block->serial <= mps_stream_completed(stream);
}

/* A free block for the request: the smallest bin that has one. `idle` asks for blocks that their stream is done with. */
static mps_buffer *search(const mps_heap *heap, const mps_heap_index *index, uint64_t size, uint64_t size_max, bool idle) {
  for (uint32_t bin = next_bin(index, mps_heap_bin_of(size)); bin < MPS_HEAP_BINS; bin = next_bin(index, bin + 1)) {
    int looked = 0;
    for (mps_buffer *block = index->bins[bin]; block && looked < BIN_SEARCH_MAX; block = block->bin_next, looked++) {
      if (block->size < size) continue;
      if (block->size > size_max) return NULL; /* bins only grow */
      if (!idle || is_idle(heap, block)) return block;
    }
  }
  return NULL;
}

static mps_buffer *find_block(const mps_heap *heap, uint32_t slot, mps_heap_pool pool, uint64_t size, bool idle) {
  /* An oversize block is not cut: it must fit well enough. */
  uint64_t size_max = pool == MPS_POOL_OVERSIZE ? size + size / 4 : UINT64_MAX;
  const mps_heap_index *own = heap->indexes[slot][pool];
  mps_buffer *block = own && own->words ? search(heap, own, size, size_max, idle) : NULL;
  if (block) return block;
  for (uint64_t others = heap->used_slots & ~(UINT64_C(1) << slot); others; others &= others - 1) {
    const mps_heap_index *index = heap->indexes[__builtin_ctzll(others)][pool];
    block = index && index->words ? search(heap, index, size, size_max, true) : NULL;
    if (block) return block;
  }
  return NULL;
}

/* Makes the slot's index of this pool exist. */
static bool ensure_index(mps_heap *heap, uint32_t slot, mps_heap_pool pool) {
  if (heap->indexes[slot][pool]) return true;
  heap->indexes[slot][pool] = calloc(1, sizeof(mps_heap_index));
  heap->used_slots |= UINT64_C(1) << slot;
  return heap->indexes[slot][pool] != NULL;
}

/* ---- cutting and merging ---- */
static void remove_record(mps_heap *heap, mps_buffer *block) {
  if (block->next) block->next->previous = block->previous;
  if (block->previous) {
    block->previous->next = block->next;
  } else {
    block->region->first = block->next;
  }
  free_record(heap, block);
}

/* `second` follows `first`, both free and out of the index; `first` stays. */
static void merge(mps_heap *heap, mps_buffer *first, mps_buffer *second) {
  first->size += second->size;
  if (first->slot == second->slot && second->serial > first->serial) first->serial = second->serial;
  remove_record(heap, second);
}

/* Whether `neighbour` may become part of a free block of stream `slot`. */
static bool is_mergeable(const mps_heap *heap, const mps_buffer *neighbour, uint32_t slot) {
  return neighbour && neighbour->state == MPS_BUFFER_FREE && (neighbour->slot == slot || is_idle(heap, neighbour));
}

/* A free block that is in no index yet: merges its neighbours in, and indexes it. A neighbour's neighbour may fit as well. */
static void add_free(mps_heap *heap, mps_buffer *block) {
  block->state = MPS_BUFFER_FREE;
  while (is_mergeable(heap, block->next, block->slot)) {
    unlink_block(heap, block->next);
    merge(heap, block, block->next);
  }
  while (is_mergeable(heap, block->previous, block->slot)) {
    mps_buffer *previous = block->previous;
    unlink_block(heap, previous);
    if (previous->slot != block->slot) { /* it is idle: its own serial says nothing any more */
      previous->slot = block->slot;
      previous->serial = block->serial;
    }
    merge(heap, previous, block);
    block = previous;
  }
  insert(heap, block);
}

static uint64_t min_split(mps_heap_pool pool) { return pool == MPS_POOL_SMALL ? 64 : pool == MPS_POOL_LARGE ? 65536 : UINT64_MAX; }

/* Cuts the tail of a free, unindexed block off when it is worth keeping. */
static void cut(mps_heap *heap, mps_buffer *block, uint64_t size) {
  mps_heap_region *region = block->region;
  if (block->size - size < min_split((mps_heap_pool)region->pool)) return;
  mps_buffer *rest = new_record(heap);
  if (!rest) return; /* the whole block serves as well */
  rest->region = region;
  rest->device = heap->device;
  rest->state = MPS_BUFFER_FREE;
  rest->slot = block->slot;
  rest->serial = block->serial;
  rest->offset = block->offset + size;
  rest->size = block->size - size;
  rest->previous = block;
  rest->next = block->next;
  if (rest->next) rest->next->previous = rest;
  block->next = rest;
  block->size = size;
  insert(heap, rest);
}

void mps_heap_coalesce(mps_heap *heap) {
  for (mps_heap_region *region = heap->regions; region; region = region->next) {
    for (mps_buffer *block = region->first; block;) {
      mps_buffer *next = block->next;
      if (block->state == MPS_BUFFER_FREE && is_mergeable(heap, next, block->slot)) {
        unlink_block(heap, block);
        unlink_block(heap, next);
        merge(heap, block, next);
        insert(heap, block);
      } else if (block->state == MPS_BUFFER_FREE && next && next->state == MPS_BUFFER_FREE && is_idle(heap, block)) {
        unlink_block(heap, block);
        unlink_block(heap, next);
        block->slot = next->slot;
        block->serial = next->serial;
        merge(heap, block, next);
        insert(heap, block);
      } else {
        block = next;
      }
    }
  }
}

/* ---- regions ---- */
static void free_region(mps_heap *heap, mps_heap_region *region) {
  if (region->next) region->next->previous = region->previous;
  if (region->previous) {
    region->previous->next = region->next;
  } else {
    heap->regions = region->next;
  }
  uint64_t length = region->memory.length;
  heap->driver->vtable->free(heap->driver, &region->memory);
  heap->statistics.reserved -= length;
  heap->statistics.heaps--;
  mps_heap_log_region(heap, region->number, length);
  free(region);
}

uint64_t mps_heap_release_regions(mps_heap *heap, uint64_t enough) {
  uint64_t regained = 0;
  mps_heap_region *next;
  for (mps_heap_region *region = heap->regions; region && regained < enough; region = next) {
    next = region->next;
    mps_buffer *only = region->first;
    if (only->state != MPS_BUFFER_FREE || only->next || !is_idle(heap, only)) continue;
    regained += region->memory.length;
    unlink_block(heap, only);
    free_record(heap, only);
    free_region(heap, region);
  }
  return regained;
}

/* Lock held. Gives the pages of free, idle blocks back where the driver can. */
static void discard_free(mps_heap *heap) {
  mps_driver_device *driver = heap->driver;
  if (!driver->vtable->discard) return;
  for (mps_heap_region *region = heap->regions; region; region = region->next) {
    for (mps_buffer *block = region->first; block; block = block->next) {
      if (block->state != MPS_BUFFER_FREE || block->size < DISCARD_MIN) continue;
      if (is_idle(heap, block)) driver->vtable->discard(driver, &region->memory, block->offset, block->size);
    }
  }
}

/* A region with one free block, which is not indexed. NULL without memory. */
static mps_buffer *add_region(mps_heap *heap, uint32_t slot, mps_heap_pool pool, uint64_t length) {
  mps_heap_region *region = calloc(1, sizeof *region);
  mps_buffer *block = new_record(heap);
  if (!region || !block || heap->driver->vtable->allocate(heap->driver, length, &region->memory) != MPS_STATUS_OK) {
    if (block) free_record(heap, block);
    free(region);
    return NULL;
  }
  region->number = ++heap->next_region;
  region->pool = (uint8_t)pool;
  region->first = block;
  region->next = heap->regions;
  if (region->next) region->next->previous = region;
  heap->regions = region;
  block->region = region;
  block->device = heap->device;
  block->state = MPS_BUFFER_FREE;
  block->slot = (uint8_t)slot;
  block->serial = 0;
  block->offset = 0;
  block->size = region->memory.length;
  block->previous = block->next = NULL;
  mps_heap_statistics *statistics = &heap->statistics;
  statistics->heaps++;
  statistics->reserved += region->memory.length;
  if (statistics->reserved > statistics->reserved_peak) statistics->reserved_peak = statistics->reserved;
  MPS_LOG(HEAP, DEBUG, "new heap #%llu of %llu bytes", (unsigned long long)region->number, (unsigned long long)region->memory.length);
  return block;
}

/* A new region of the tier's size, or one just large enough where the limit or the system forbids that. */
static mps_buffer *try_region(mps_heap *heap, uint32_t slot, mps_heap_pool pool, uint64_t size) {
  uint64_t length = mps_heap_region_size(size);
  uint64_t least = (size + MPS_HEAP_ROUND_REGION - 1) / MPS_HEAP_ROUND_REGION * MPS_HEAP_ROUND_REGION;
  mps_buffer *block = mps_heap_within_limit(heap, length, size) ? add_region(heap, slot, pool, length) : NULL;
  if (!block && least < length && mps_heap_within_limit(heap, least, size)) block = add_region(heap, slot, pool, least);
  return block;
}

/* ---- allocating ---- */

/* Lock held. Nothing free fits: makes room without waiting for anybody. The block is out of the index. */
static mps_buffer *make_room(mps_heap *heap, uint32_t slot, mps_heap_pool pool, uint64_t size, bool idle) {
  mps_heap_coalesce(heap);
  mps_buffer *block = find_block(heap, slot, pool, size, idle);
  if (block) {
    unlink_block(heap, block);
    return block;
  }
  uint64_t driver = heap->driver->vtable->allocated(heap->driver);
  if (pool != MPS_POOL_SMALL && driver >= heap->low_limit) mps_heap_release_regions(heap, driver - heap->low_limit + size);
  block = try_region(heap, slot, pool, size);
  if (!block && mps_heap_release_regions(heap, UINT64_MAX)) block = try_region(heap, slot, pool, size);
  return block;
}

/* Lock held, dropped meanwhile: waits for all work, so that blocks in flight become free. */
static mps_status wait_for_streams(mps_heap *heap) {
  mps_mutex_unlock(&heap->lock);
  mps_status status = MPS_STATUS_OK;
  for (uint32_t slot = 0; slot < MPS_STREAM_SLOTS && status == MPS_STATUS_OK; slot++) {
    mps_stream *stream = mps_device_stream(heap->device, slot);
    if (stream) status = mps_stream_wait_serial(stream, mps_stream_encoded(stream));
  }
  mps_heap_retire(heap);
  mps_mutex_lock(&heap->lock);
  return status;
}

/* Lock held. The block is live afterwards. */
static void take(mps_heap *heap, mps_buffer *block, mps_stream *stream, size_t length, uint64_t size) {
  cut(heap, block, size);
  const mps_driver_memory *memory = &block->region->memory;
  if (block->slot != stream->slot) { /* it was idle */
    block->slot = (uint8_t)stream->slot;
    block->serial = 0;
  }
  block->state = MPS_BUFFER_LIVE;
  block->stream = stream;
  block->length = length;
  uint64_t offset = block->offset + (heap->guard ? MPS_HEAP_GUARD_BYTES : 0);
  block->contents = memory->contents ? (char *)memory->contents + offset : NULL;
  block->address = memory->address + offset;
  block->identifier = atomic_fetch_add_explicit(&next_identifier, 1, memory_order_relaxed);
  atomic_store_explicit(&block->references, 1, memory_order_relaxed);
  atomic_store_explicit(&block->touched, false, memory_order_relaxed);
  atomic_store_explicit(&block->foreign, 0, memory_order_relaxed);
  mps_heap_statistics *statistics = &heap->statistics;
  statistics->allocated += block->size;
  statistics->total_allocated += block->size;
  statistics->live_buffers++;
  if (statistics->allocated > statistics->allocated_peak) statistics->allocated_peak = statistics->allocated;
  if (heap->guard) mps_heap_guard_write(heap, block);
}

mps_status mps_heap_allocate(mps_heap *heap, mps_stream *stream, size_t length, bool idle, mps_buffer **out_buffer) {
  const mps_driver_limits *limits = &heap->driver->limits;
  size_t guarded = heap->guard && length <= SIZE_MAX - 2 * MPS_HEAP_GUARD_BYTES ? length + 2 * MPS_HEAP_GUARD_BYTES : length;
  uint64_t size = mps_heap_round(guarded, limits->buffer_alignment, limits->page_bytes);
  mps_heap_pool pool = mps_heap_pool_of(size);
  uint32_t slot = stream->slot;
  if (atomic_load_explicit(&heap->pending_count, memory_order_relaxed)) mps_heap_retire(heap);
  mps_mutex_lock(&heap->lock);
  mps_status status = MPS_STATUS_OK;
  mps_buffer *block = NULL;
  bool reused = false;
  if (ensure_index(heap, slot, pool)) {
    block = find_block(heap, slot, pool, size, idle);
    reused = block != NULL;
    if (block) {
      unlink_block(heap, block);
      heap->statistics.reuses++;
    } else {
      block = make_room(heap, slot, pool, size, idle);
    }
    if (!block) {
      status = wait_for_streams(heap);
      if (status == MPS_STATUS_OK) block = make_room(heap, slot, pool, size, idle);
    }
  }
  if (block) {
    take(heap, block, stream, length, size);
  } else if (status == MPS_STATUS_OK) {
    status = mps_heap_out_of_memory(heap, size);
  }
  mps_mutex_unlock(&heap->lock);
  if (block && heap->debug) mps_heap_log_allocation(heap, block, reused);
  *out_buffer = block;
  return status;
}

/* ---- freeing ---- */
static void release_locked(mps_heap *heap, mps_buffer *block, uint64_t serial) {
  if (heap->guard) mps_heap_guard_check(heap, block, NULL);
  block->serial = serial;
  block->stream = NULL;
  add_free(heap, block);
}

static void count_release(mps_heap *heap, const mps_buffer *block) {
  heap->statistics.allocated -= block->size;
  heap->statistics.total_freed += block->size;
  heap->statistics.live_buffers--;
}

void mps_heap_release(mps_heap *heap, mps_buffer *block, uint64_t serial) {
  mps_mutex_lock(&heap->lock);
  if (block->region) {
    count_release(heap, block);
    release_locked(heap, block, serial);
  } else {
    free_record(heap, block);
  }
  mps_mutex_unlock(&heap->lock);
}

void mps_heap_release_later(mps_heap *heap, mps_heap_pending *pending, uint64_t serial) {
  mps_buffer *block = pending->buffer;
  mps_mutex_lock(&heap->lock);
  if (block->region) count_release(heap, block);
  block->state = MPS_BUFFER_PENDING;
  block->serial = serial;
  pending->next = heap->pending;
  heap->pending = pending;
  atomic_fetch_add_explicit(&heap->pending_count, 1, memory_order_relaxed);
  mps_mutex_unlock(&heap->lock);
}

static bool is_done(const mps_heap_pending *pending) {
  for (uint32_t i = 0; i < pending->count; i++) {
    if (mps_stream_completed(pending->uses[i].stream) < pending->uses[i].serial) return false;
  }
  return true;
}

void mps_heap_retire(mps_heap *heap) {
  mps_heap_pending *wrapped = NULL; /* their owners are called without the lock */
  mps_mutex_lock(&heap->lock);
  for (mps_heap_pending **link = &heap->pending; *link;) {
    mps_heap_pending *pending = *link;
    if (!is_done(pending)) {
      link = &pending->next;
      continue;
    }
    *link = pending->next;
    atomic_fetch_sub_explicit(&heap->pending_count, 1, memory_order_relaxed);
    if (pending->buffer->region) {
      release_locked(heap, pending->buffer, pending->buffer->serial);
      free(pending);
    } else {
      pending->next = wrapped;
      wrapped = pending;
    }
  }
  mps_mutex_unlock(&heap->lock);
  while (wrapped) {
    mps_heap_pending *pending = wrapped;
    wrapped = pending->next;
    mps_buffer *buffer = pending->buffer;
    if (buffer->release) buffer->release(buffer->release_context);
    mps_heap_release(heap, buffer, 0);
    free(pending);
  }
}

/* ---- the whole ---- */
mps_status mps_heap_init(mps_heap *heap, mps_device *device, mps_driver_device *driver) {
  mps_mutex_init(&heap->lock);
  heap->device = device;
  heap->driver = driver;
  driver->find_memory = mps_heap_find;
  driver->find_context = heap;
  heap->debug = (uint32_t)mps_option_int(MPS_OPTION_DEBUG_ALLOCATOR);
  heap->guard = mps_heap_guard_option(driver);
  return mps_heap_init_limits(heap);
}

void mps_heap_fini(mps_heap *heap) {
  if (!heap->driver) return; /* never made */
  mps_heap_retire(heap);
  while (heap->pending) { /* only after an interrupted close */
    mps_heap_pending *next = heap->pending->next;
    free(heap->pending);
    heap->pending = next;
  }
  while (heap->regions) free_region(heap, heap->regions);
  for (uint32_t slot = 0; slot < MPS_STREAM_SLOTS; slot++) {
    for (int pool = 0; pool < MPS_POOL_COUNT; pool++) free(heap->indexes[slot][pool]);
  }
  while (heap->slabs) {
    mps_heap_slab *next = heap->slabs->next;
    free(heap->slabs);
    heap->slabs = next;
  }
  mps_mutex_fini(&heap->lock);
}

mps_status mps_heap_empty_cache(mps_device *device) {
  MPS_TRY(mps_check_fork());
  mps_heap *heap = &device->heap;
  mps_mutex_lock(&heap->lock);
  mps_status status = wait_for_streams(heap);
  if (status == MPS_STATUS_OK) {
    mps_heap_coalesce(heap);
    mps_heap_release_regions(heap, UINT64_MAX);
    discard_free(heap);
  }
  mps_mutex_unlock(&heap->lock);
  return status;
}
