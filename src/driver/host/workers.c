/* SPDX-License-Identifier: BSD-3-Clause
 *
 * workers: see workers.h. The claim is one compare-and-swap on a ticket that holds the chunk count and the next chunk: it can only
 * succeed on the region's present content, so a thread that read it before a new region was opened either claims a chunk of the new
 * one or nothing. What a claimer reads after its claim stays as it is until the chunk is finished.
 */
#include "driver/host/workers.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/os/os.h"
#include "base/thread.h"
#include "base/time.h"

/* How long a helper looks for more work, and an executor for the last chunk, before it sleeps. Short: the machine is shared. */
#define HELPER_SPIN_NS 30000
#define EXECUTOR_SPIN_NS 50000
/* Regions of this cost for each helper are worth telling the system where helpers should wake up: two system calls for each. */
#define PLACE_COST_NS 100000.0
#define CACHE_LINE 64
#define CHUNK_BITS 21
_Static_assert(MPS_HOST_MAX_CHUNKS == (1u << CHUNK_BITS) - 1, "three chunk numbers fit into a ticket");

struct mps_host_region {
  _Alignas(CACHE_LINE) _Atomic uint64_t ticket; /* count << 2 * CHUNK_BITS | claimed from the end << CHUNK_BITS | from the front */
  _Alignas(CACHE_LINE) _Atomic uint32_t finished;
  _Atomic bool sleeping; /* the executor waits on `done` */
  _Alignas(CACHE_LINE) mps_host_task task;
  void *context;
  mps_host_workers *workers;
  mps_host_region *next; /* all regions of the workers; only grows */
  void *scratch;
  bool in_use; /* under the workers' mutex */
  mps_mutex mutex;
  mps_condition done;
};

typedef struct helper {
  mps_thread thread;
  mps_host_workers *workers;
  void *scratch;
} helper;

struct mps_host_workers {
  _Atomic(mps_host_region *) regions;
  _Atomic uint64_t epoch; /* regions opened so far, that helpers may help with */
  _Atomic uint32_t sleepers;
  _Atomic uint32_t helper_count; /* running */
  _Atomic bool stopping;
  _Atomic uint32_t thread_count; /* with the executor; becomes smaller when the system refuses a thread */
  bool start_failed; /* no further attempts */
  helper *helpers;
  mps_mutex mutex;
  mps_condition wake;
};

/* False when nothing is left to claim. The executor takes chunks from the front, helpers from the end: neighbouring chunks, which may
 * share a fresh huge page or a cache, mostly stay with one thread. */
static bool claim(mps_host_region *region, bool is_helper, uint32_t *out_chunk, uint32_t *out_count) {
  const uint64_t mask = MPS_HOST_MAX_CHUNKS;
  uint64_t ticket = atomic_load_explicit(&region->ticket, memory_order_relaxed);
  for (;;) {
    uint64_t count = ticket >> (2 * CHUNK_BITS), end = ticket >> CHUNK_BITS & mask, front = ticket & mask;
    if (front + end >= count) return false;
    uint64_t claimed = ticket + (is_helper ? (uint64_t)1 << CHUNK_BITS : 1);
    if (atomic_compare_exchange_weak_explicit(&region->ticket, &ticket, claimed, memory_order_acquire, memory_order_relaxed)) {
      *out_chunk = (uint32_t)(is_helper ? count - 1 - end : front);
      *out_count = (uint32_t)count;
      return true;
    }
  }
}

/* Runs chunks of the region until none is left; true when it ran one. After the last chunk of somebody else's region only memory that
 * outlives the region is touched. */
static bool work(mps_host_region *region, void *scratch, bool is_helper) {
  uint32_t chunk, count;
  bool worked = false;
  while (claim(region, is_helper, &chunk, &count)) {
    region->task(region->context, chunk, scratch);
    worked = true;
    uint32_t finished = atomic_fetch_add(&region->finished, 1) + 1;
    if (is_helper && finished == count && atomic_load(&region->sleeping)) {
      mps_mutex_lock(&region->mutex);
      mps_condition_signal(&region->done);
      mps_mutex_unlock(&region->mutex);
    }
  }
  return worked;
}

static bool work_anywhere(mps_host_workers *workers, void *scratch) {
  bool worked = false;
  for (mps_host_region *r = atomic_load_explicit(&workers->regions, memory_order_acquire); r; r = r->next) {
    worked |= work(r, scratch, true);
  }
  return worked;
}

/* Returns when the epoch is no longer `epoch`, or the workers stop. */
static void wait_for_epoch(mps_host_workers *workers, uint64_t epoch) {
  uint64_t start = mps_time_ns();
  do {
    for (int i = 0; i < 16; i++) {
      if (atomic_load_explicit(&workers->epoch, memory_order_relaxed) != epoch) return;
      mps_os_cpu_relax();
    }
  } while (mps_time_ns() - start < HELPER_SPIN_NS);
  mps_mutex_lock(&workers->mutex);
  atomic_fetch_add(&workers->sleepers, 1);
  while (atomic_load(&workers->epoch) == epoch && !atomic_load(&workers->stopping)) mps_condition_wait(&workers->wake, &workers->mutex);
  atomic_fetch_sub(&workers->sleepers, 1);
  mps_mutex_unlock(&workers->mutex);
}

static void helper_main(void *context) {
  helper *self = context;
  mps_host_workers *workers = self->workers;
  while (!atomic_load_explicit(&workers->stopping, memory_order_relaxed)) {
    uint64_t epoch = atomic_load(&workers->epoch);
    if (!work_anywhere(workers, self->scratch)) wait_for_epoch(workers, epoch);
  }
}

/* Starts the helpers; where the system refuses a thread, those that run have to do. */
static void start_helpers(mps_host_workers *workers) {
  mps_mutex_lock(&workers->mutex);
  uint32_t wanted = workers->thread_count - 1;
  uint32_t running = atomic_load(&workers->helper_count);
  while (running < wanted && !workers->start_failed) {
    helper *h = &workers->helpers[running];
    h->workers = workers;
    if (mps_os_pages_map(MPS_HOST_SCRATCH_BYTES, &h->scratch) != MPS_STATUS_OK) {
      workers->start_failed = true;
    } else if (mps_thread_create(&h->thread, "mps-worker", helper_main, h) != MPS_STATUS_OK) {
      mps_os_pages_unmap(h->scratch, MPS_HOST_SCRATCH_BYTES);
      workers->start_failed = true;
    } else {
      atomic_store(&workers->helper_count, ++running);
    }
  }
  if (workers->start_failed) workers->thread_count = running + 1;
  mps_mutex_unlock(&workers->mutex);
}

mps_status mps_host_workers_create(uint32_t thread_count, mps_host_workers **out_workers) {
  *out_workers = NULL;
  mps_host_workers *workers = calloc(1, sizeof *workers);
  helper *helpers = calloc(thread_count ? thread_count : 1, sizeof *helpers);
  if (!workers || !helpers) {
    free(workers);
    free(helpers);
    return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for the records of %u threads", (unsigned)thread_count);
  }
  workers->helpers = helpers;
  workers->thread_count = thread_count ? thread_count : 1;
  mps_mutex_init(&workers->mutex);
  mps_condition_init(&workers->wake);
  *out_workers = workers;
  return MPS_STATUS_OK;
}

void mps_host_workers_destroy(mps_host_workers *workers) {
  if (!workers) return;
  mps_mutex_lock(&workers->mutex);
  atomic_store(&workers->stopping, true);
  atomic_fetch_add(&workers->epoch, 1);
  mps_condition_broadcast(&workers->wake);
  mps_mutex_unlock(&workers->mutex);
  for (uint32_t i = 0; i < atomic_load(&workers->helper_count); i++) {
    mps_thread_join(&workers->helpers[i].thread);
    mps_os_pages_unmap(workers->helpers[i].scratch, MPS_HOST_SCRATCH_BYTES);
  }
  mps_host_region *region = atomic_load(&workers->regions);
  while (region) {
    mps_host_region *next = region->next;
    mps_condition_fini(&region->done);
    mps_mutex_fini(&region->mutex);
    mps_os_pages_unmap(region->scratch, MPS_HOST_SCRATCH_BYTES);
    free(region);
    region = next;
  }
  mps_condition_fini(&workers->wake);
  mps_mutex_fini(&workers->mutex);
  free(workers->helpers);
  free(workers);
}

uint32_t mps_host_workers_count(const mps_host_workers *workers) { return workers->thread_count; }

mps_status mps_host_region_open(mps_host_workers *workers, mps_host_region **out_region) {
  *out_region = NULL;
  mps_mutex_lock(&workers->mutex);
  mps_host_region *region = atomic_load(&workers->regions);
  while (region && region->in_use) region = region->next;
  if (region) region->in_use = true;
  mps_mutex_unlock(&workers->mutex);
  if (!region) {
    region = aligned_alloc(CACHE_LINE, sizeof *region);
    if (!region) return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for the record of a queue");
    *region = (mps_host_region){.workers = workers, .in_use = true};
    mps_status status = mps_os_pages_map(MPS_HOST_SCRATCH_BYTES, &region->scratch);
    if (status != MPS_STATUS_OK) {
      free(region);
      return status;
    }
    mps_mutex_init(&region->mutex);
    mps_condition_init(&region->done);
    mps_mutex_lock(&workers->mutex);
    region->next = atomic_load(&workers->regions);
    atomic_store_explicit(&workers->regions, region, memory_order_release);
    mps_mutex_unlock(&workers->mutex);
  }
  *out_region = region;
  return MPS_STATUS_OK;
}

void mps_host_region_close(mps_host_region *region) {
  if (!region) return;
  mps_mutex_lock(&region->workers->mutex);
  region->in_use = false;
  mps_mutex_unlock(&region->workers->mutex);
}

void *mps_host_region_scratch(mps_host_region *region) { return region->scratch; }
mps_host_workers *mps_host_region_workers(mps_host_region *region) { return region->workers; }

/* Schedulers like to wake a thread on its waker's processor, though another one is idle: executor and helper would take turns there.
 * `cpu`: where helpers must not wake up; -1: they may again. */
static void place_helpers(mps_host_workers *workers, int cpu) {
  for (uint32_t i = 0; i < atomic_load(&workers->helper_count); i++) mps_thread_keep_off(&workers->helpers[i].thread, cpu);
}

/* Lets helpers know of the open region. At most `wanted` sleeping ones are woken. */
static void call_helpers(mps_host_workers *workers, uint32_t wanted, double cost) {
  atomic_fetch_add(&workers->epoch, 1);
  uint32_t sleepers = atomic_load(&workers->sleepers);
  if (sleepers == 0) return;
  bool place = cost >= PLACE_COST_NS * atomic_load(&workers->helper_count);
  if (place) place_helpers(workers, mps_os_cpu_current());
  mps_mutex_lock(&workers->mutex);
  mps_mutex_unlock(&workers->mutex); /* who counts as a sleeper sleeps by now */
  if (wanted >= sleepers) {
    mps_condition_broadcast(&workers->wake);
  } else {
    for (uint32_t i = 0; i < wanted; i++) mps_condition_signal(&workers->wake);
  }
  if (place) place_helpers(workers, -1);
}

/* All chunks are claimed: waits for those that helpers still run. */
static void wait_for_helpers(mps_host_region *region, uint32_t chunk_count) {
  if (atomic_load(&region->finished) == chunk_count) return;
  uint64_t start = mps_time_ns();
  do {
    for (int i = 0; i < 16; i++) {
      if (atomic_load(&region->finished) == chunk_count) return;
      mps_os_cpu_relax();
    }
  } while (mps_time_ns() - start < EXECUTOR_SPIN_NS);
  mps_mutex_lock(&region->mutex);
  atomic_store(&region->sleeping, true);
  while (atomic_load(&region->finished) != chunk_count) mps_condition_wait(&region->done, &region->mutex);
  atomic_store(&region->sleeping, false);
  mps_mutex_unlock(&region->mutex);
}

void mps_host_region_run(mps_host_region *region, uint32_t chunk_count, double cost, mps_host_task task, void *context) {
  mps_host_workers *workers = region->workers;
  if (chunk_count <= 1 || workers->thread_count <= 1) {
    for (uint32_t i = 0; i < chunk_count; i++) task(context, i, region->scratch);
    return;
  }
  if (atomic_load_explicit(&workers->helper_count, memory_order_relaxed) + 1 < workers->thread_count) start_helpers(workers);
  region->task = task;
  region->context = context;
  atomic_store_explicit(&region->finished, 0, memory_order_relaxed);
  atomic_store_explicit(&region->ticket, (uint64_t)chunk_count << (2 * CHUNK_BITS), memory_order_release);
  call_helpers(workers, chunk_count - 1, cost);
  work(region, region->scratch, false);
  wait_for_helpers(region, chunk_count);
}
