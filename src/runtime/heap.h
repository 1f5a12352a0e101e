/* SPDX-License-Identifier: BSD-3-Clause
 *
 * heap: the caching allocator. Regions of driver memory are cut into blocks (struct mps_buffer) that lie in offset order; free blocks
 * are indexed by size, per stream, because a stream may reuse its own blocks at once and others only when their steps are done.
 *
 * Requests up to 1 MiB are served from regions of 8 MiB, below 10 MiB from 32 MiB, below 512 MiB from 1 GiB (address space: pages are
 * taken when touched), larger ones get a region each.
 */
#ifndef OPENMPS_RUNTIME_HEAP_H
#define OPENMPS_RUNTIME_HEAP_H

#include "base/thread.h"
#include "driver/driver.h"
#include "runtime/buffer.h"

#define MPS_HEAP_SMALL_MAX ((uint64_t)1 << 20)
#define MPS_HEAP_LARGE_MIN ((uint64_t)10 << 20)    /* from here on the 1 GiB tier */
#define MPS_HEAP_OVERSIZE_MIN ((uint64_t)512 << 20)
#define MPS_HEAP_SMALL_REGION ((uint64_t)8 << 20)
#define MPS_HEAP_LARGE_REGION ((uint64_t)32 << 20)
#define MPS_HEAP_XLARGE_REGION ((uint64_t)1 << 30)
#define MPS_HEAP_ROUND_REGION ((uint64_t)2 << 20)

/* Free blocks of different pools never serve each other's requests. */
typedef enum mps_heap_pool { MPS_POOL_SMALL, MPS_POOL_LARGE, MPS_POOL_OVERSIZE, MPS_POOL_COUNT } mps_heap_pool;

/* 64-byte classes below 2 KiB, then 32 classes a power of two. */
#define MPS_HEAP_BIN_WORDS 40
#define MPS_HEAP_BINS (MPS_HEAP_BIN_WORDS * 32)

typedef struct mps_heap_index {
  uint64_t words; /* bit n: bits[n] is not 0 */
  uint32_t bits[MPS_HEAP_BIN_WORDS];
  mps_buffer *bins[MPS_HEAP_BINS]; /* the last freed first */
} mps_heap_index;

struct mps_heap_region {
  mps_driver_memory memory;
  uint64_t number; /* for logs */
  uint8_t pool;    /* mps_heap_pool */
  mps_buffer *first;
  mps_heap_region *previous, *next;
};

/* A block that other streams still use, or wrapped memory whose owner waits to hear. */
typedef struct mps_heap_pending {
  struct mps_heap_pending *next;
  mps_buffer *buffer;
  uint32_t count;
  struct {
    mps_stream *stream;
    uint64_t serial;
  } uses[];
} mps_heap_pending;

typedef struct mps_heap_slab mps_heap_slab;

/* Everything is under `lock` unless said otherwise. */
typedef struct mps_heap {
  mps_mutex lock;
  mps_device *device;
  mps_driver_device *driver;
  mps_heap_region *regions;
  mps_heap_index *indexes[64][MPS_POOL_COUNT]; /* [stream slot]; made when first needed */
  uint64_t used_slots;                         /* bit n: indexes[n] holds or held something */
  mps_buffer *spare;                           /* unused block records */
  mps_heap_slab *slabs;
  mps_heap_pending *pending;
  _Atomic uint32_t pending_count; /* read without the lock, as a hint */
  uint64_t next_region;
  _Atomic bool wrapped; /* there is, or was, wrapped memory */
  mps_heap_statistics statistics; /* all but `driver` */

  double high_ratio, low_ratio;
  uint64_t high_limit, low_limit; /* bytes; UINT64_MAX = none */
  uint64_t process_limit;         /* 90 % of what was left to the process when the device was opened */
  uint32_t debug;                 /* PYTORCH_DEBUG_MPS_ALLOCATOR */

  uint32_t guard;            /* OPENMPS_HEAP_GUARD: bits MPS_GUARD_*; fixed */
  _Atomic bool guard_failed; /* guard_text holds what a wait is to raise */
  char guard_text[256];
} mps_heap;

mps_status mps_heap_init(mps_heap *heap, mps_device *device, mps_driver_device *driver);
void mps_heap_fini(mps_heap *heap);

/* A live block of at least `length` bytes. `idle`: one that no queued step uses, so that the CPU may write it at once. */
mps_status mps_heap_allocate(mps_heap *heap, mps_stream *stream, size_t length, bool idle, mps_buffer **out_buffer);
/* A block record without a region, for wrapped memory. */
mps_status mps_heap_new_record(mps_heap *heap, mps_buffer **out_buffer);
/* The block is dead after its owner's step `serial`. */
void mps_heap_release(mps_heap *heap, mps_buffer *buffer, uint64_t serial);
/* The block is dead after the uses in `pending`, too; takes `pending`. */
void mps_heap_release_later(mps_heap *heap, mps_heap_pending *pending, uint64_t serial);
/* Frees pending blocks whose steps are done; calls wrapped memory's owners. */
void mps_heap_retire(mps_heap *heap);
/* Gives idle, fully free regions back; lock held. Returns the bytes. Stops when `enough` is regained. */
uint64_t mps_heap_release_regions(mps_heap *heap, uint64_t enough);
/* Merges neighbours that are free and idle; lock held. */
void mps_heap_coalesce(mps_heap *heap);

/* ---- heap_limits.c ---- */
mps_status mps_heap_init_limits(mps_heap *heap);
/* True when a region stays within the hard limit, and the system has memory for the request; lock held. */
bool mps_heap_within_limit(mps_heap *heap, uint64_t region_bytes, uint64_t request);
/* Lines of PYTORCH_DEBUG_MPS_ALLOCATOR. */
void mps_heap_log_allocation(const mps_heap *heap, const mps_buffer *buffer, bool reused);
void mps_heap_log_region(const mps_heap *heap, uint64_t number, uint64_t length);
/* Sets the out-of-memory text. */
mps_status mps_heap_out_of_memory(mps_heap *heap, uint64_t size);

/* ---- heap_guard.c ---- */
#define MPS_HEAP_GUARD_BYTES ((size_t)512) /* at either end of a block; a multiple of every buffer alignment */
enum { MPS_GUARD_FREE = 1, MPS_GUARD_STEP = 2, MPS_GUARD_FRESH = 4 };
/* The option's bits; 0 where the CPU cannot see the memory. */
uint32_t mps_heap_guard_option(const mps_driver_device *driver);
/* Marks the ends of a block that was just taken; lock held, as in all that follow but _step and _take. */
void mps_heap_guard_write(const mps_heap *heap, mps_buffer *block);
bool mps_heap_guard_is_whole(const mps_buffer *block);
/* Looks at the ends of a block that no step uses any more, or, with the label of the step that just ran, of any block that is not free. Mends
 * them, logs what it finds and keeps the first of it for the next wait. */
void mps_heap_guard_check(mps_heap *heap, mps_buffer *block, const char *label);
/* All blocks, after a step. */
void mps_heap_guard_step(mps_heap *heap, const char *label);
/* What was found since the last call: INTERNAL_ERROR with a text that names the buffer, or OK. */
mps_status mps_heap_guard_take(mps_heap *heap);

/* ---- heap_find.c ---- */
/* The live block that holds `address`: mps_driver_device.find_memory. Memory outside of all regions is taken for wrapped memory, if any was
 * ever wrapped. */
bool mps_heap_find(void *heap, uint64_t address, uint64_t *out_begin, uint64_t *out_length);

/* ---- heap_size.c ---- */
/* Rounded size of a request; and the pool and region size that serve it. Pure. */
uint64_t mps_heap_round(uint64_t length, uint64_t alignment, uint64_t page_bytes);
mps_heap_pool mps_heap_pool_of(uint64_t size);
uint64_t mps_heap_region_size(uint64_t size);
uint32_t mps_heap_bin_of(uint64_t size);
/* "2.28 GiB" as PyTorch writes it; `out` has at least 32 bytes. */
const char *mps_heap_format_size(uint64_t bytes, char *out);

#endif
