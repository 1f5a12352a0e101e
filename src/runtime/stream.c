/* SPDX-License-Identifier: BSD-3-Clause
 *
 * stream: making streams, and encoding steps into their command buffers. Running them is executor.c's.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "runtime/state.h"

#define SPARE_PAGES_MAX 4

/* The calling thread's current stream; NULL: the default one of whatever device is asked. */
static _Thread_local mps_stream *current_stream;

/* ---- pages ---- */
static mps_page *new_page(uint32_t capacity) {
  size_t size = (sizeof(mps_page) + capacity + 63) / 64 * 64;
  mps_page *page = aligned_alloc(64, size);
  if (!page) return NULL;
  page->next = NULL;
  page->capacity = capacity;
  atomic_init(&page->end, UINT32_MAX);
  return page;
}

static void free_pages(mps_page *page) {
  while (page) {
    mps_page *next = page->next;
    free(page);
    page = next;
  }
}

void mps_stream_recycle_pages(mps_stream *stream, mps_page *page) {
  while (page) {
    mps_page *next = page->next;
    stream->page_count--;
    if (page->capacity == MPS_PAGE_BYTES && stream->spare_count < SPARE_PAGES_MAX) {
      page->next = stream->spare_pages;
      stream->spare_pages = page;
      stream->spare_count++;
    } else {
      free(page);
    }
    page = next;
  }
}

/* Lock held. False without memory. */
static bool append_page(mps_stream *stream, uint32_t bytes) {
  mps_page *page;
  if (bytes <= MPS_PAGE_BYTES && stream->spare_pages) {
    page = stream->spare_pages;
    stream->spare_pages = page->next;
    stream->spare_count--;
    page->next = NULL;
    atomic_store_explicit(&page->end, UINT32_MAX, memory_order_relaxed);
  } else {
    page = new_page(bytes > MPS_PAGE_BYTES ? bytes : MPS_PAGE_BYTES);
    if (!page) return false;
  }
  stream->page_count++;
  stream->tail->next = page;
  atomic_store_explicit(&stream->tail->end, stream->tail_used, memory_order_relaxed); /* published with the next step */
  stream->tail = page;
  stream->tail_used = 0;
  return true;
}

/* ---- life ---- */
mps_status mps_stream_make(mps_device *device, uint32_t slot, int64_t identifier, mps_stream **out_stream) {
  mps_stream *stream = aligned_alloc(64, (sizeof *stream + 63) / 64 * 64);
  if (!stream) return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for a stream");
  memset(stream, 0, sizeof *stream);
  stream->device = device;
  stream->slot = slot;
  stream->identifier = identifier;
  stream->in_use = true;
  atomic_init(&stream->wake_at, UINT64_MAX);
  stream->tail = stream->head = new_page(MPS_PAGE_BYTES);
  stream->page_count = 1;
  mps_status status = stream->tail ? device->driver->vtable->create_queue(device->driver, &stream->queue)
                                   : mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for a stream");
  if (status != MPS_STATUS_OK) {
    free(stream->tail);
    free(stream);
    return status;
  }
  mps_mutex_init(&stream->lock);
  mps_condition_init(&stream->work);
  mps_condition_init(&stream->done);
  atomic_store_explicit(&device->streams[slot], stream, memory_order_release);
  *out_stream = stream;
  return MPS_STATUS_OK;
}

/* Ends the executor's thread after what is queued. */
static void stop_executor(mps_stream *stream) {
  mps_mutex_lock(&stream->lock);
  bool started = stream->executor_state == MPS_EXECUTOR_STARTED;
  stream->stopping = true;
  mps_condition_signal(&stream->work);
  mps_mutex_unlock(&stream->lock);
  if (started) mps_thread_join(&stream->executor);
  mps_mutex_lock(&stream->lock);
  stream->stopping = false;
  atomic_store_explicit(&stream->wake_sent, false, memory_order_relaxed);
  stream->executor_state = MPS_EXECUTOR_NONE;
  mps_mutex_unlock(&stream->lock);
}

void mps_stream_free(mps_stream *stream) {
  if (!stream) return;
  stop_executor(stream);
  atomic_store(&stream->device->streams[stream->slot], NULL);
  stream->device->driver->vtable->destroy_queue(stream->queue);
  free_pages(stream->passed);
  free_pages(stream->head); /* up to the tail */
  free_pages(stream->spare_pages);
  free(stream->failure);
  mps_condition_fini(&stream->work);
  mps_condition_fini(&stream->done);
  mps_mutex_fini(&stream->lock);
  free(stream);
}

mps_stream *mps_stream_default(mps_device *device) { return mps_device_stream(device, 0); }

mps_status mps_stream_create(mps_device *device, mps_stream **out_stream) {
  MPS_TRY(mps_check_fork());
  mps_status status = MPS_STATUS_OK;
  mps_stream *stream = NULL;
  mps_mutex_lock(&device->streams_lock);
  for (uint32_t slot = MPS_STREAM_POOL + 1; slot < MPS_STREAM_SLOTS && !stream && status == MPS_STATUS_OK; slot++) {
    mps_stream *old = mps_device_stream(device, slot);
    if (!old) {
      status = mps_stream_make(device, slot, device->next_identifier, &stream);
    } else if (!old->in_use) { /* serials go on where they were: blocks of the heap still carry them */
      stream = old;
      stream->identifier = device->next_identifier;
      stream->in_use = true;
    }
  }
  if (stream) device->next_identifier++;
  mps_mutex_unlock(&device->streams_lock);
  if (status != MPS_STATUS_OK) return status;
  if (!stream) {
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "a device has at most %d streams besides its pool of %d: destroy some",
                         MPS_STREAM_SLOTS - MPS_STREAM_POOL - 1, MPS_STREAM_POOL);
  }
  *out_stream = stream;
  return MPS_STATUS_OK;
}

void mps_stream_destroy(mps_stream *stream) {
  if (!stream || mps_process_is_forked || stream->slot <= MPS_STREAM_POOL) return; /* those are borrowed */
  while (mps_stream_synchronize(stream) == MPS_STATUS_INTERRUPTED) continue;
  stop_executor(stream);
  mps_mutex_lock(&stream->device->streams_lock);
  stream->in_use = false;
  mps_mutex_unlock(&stream->device->streams_lock);
  if (current_stream == stream) current_stream = NULL;
}

/* A pool stream is made when it is first asked for. */
static mps_status pool_stream(mps_device *device, uint32_t slot, mps_stream **out_stream) {
  mps_status status = MPS_STATUS_OK;
  mps_mutex_lock(&device->streams_lock);
  *out_stream = mps_device_stream(device, slot);
  if (!*out_stream) status = mps_stream_make(device, slot, slot, out_stream);
  mps_mutex_unlock(&device->streams_lock);
  return status;
}

mps_status mps_stream_from_pool(mps_device *device, mps_stream **out_stream) {
  MPS_TRY(mps_check_fork());
  uint32_t turn = atomic_fetch_add_explicit(&device->pool_next, 1, memory_order_relaxed);
  return pool_stream(device, 1 + turn % MPS_STREAM_POOL, out_stream);
}

mps_status mps_stream_from_identifier(mps_device *device, int64_t identifier, mps_stream **out_stream) {
  MPS_TRY(mps_check_fork());
  if (identifier >= 0 && identifier <= MPS_STREAM_POOL) return pool_stream(device, (uint32_t)identifier, out_stream);
  mps_stream *found = NULL;
  mps_mutex_lock(&device->streams_lock);
  for (uint32_t slot = MPS_STREAM_POOL + 1; slot < MPS_STREAM_SLOTS; slot++) {
    mps_stream *stream = mps_device_stream(device, slot);
    if (stream && stream->in_use && stream->identifier == identifier) found = stream;
  }
  mps_mutex_unlock(&device->streams_lock);
  if (!found) return mps_error_set(MPS_STATUS_NOT_FOUND, "there is no stream %lld", (long long)identifier);
  *out_stream = found;
  return MPS_STATUS_OK;
}

int64_t mps_stream_identifier(const mps_stream *stream) { return stream->identifier; }

mps_device *mps_stream_device(const mps_stream *stream) { return stream->device; }

mps_driver_queue *mps_stream_queue(mps_stream *stream) { return stream->queue; }

mps_stream *mps_stream_current(mps_device *device) {
  mps_stream *stream = current_stream;
  return stream && stream->device == device ? stream : mps_device_stream(device, 0);
}

void mps_stream_set_current(mps_device *device, mps_stream *stream) {
  (void)device;
  current_stream = stream;
}

uint64_t mps_stream_encoded(const mps_stream *stream) { return atomic_load_explicit(&stream->encoded, memory_order_acquire); }

uint64_t mps_stream_completed(const mps_stream *stream) { return atomic_load_explicit(&stream->completed, memory_order_acquire); }

/* ---- encoding ---- */
bool mps_stream_wake(mps_stream *stream) {
  if (stream->running || atomic_load_explicit(&stream->wake_sent, memory_order_relaxed)) return false;
  uint64_t executed = stream->executed;
  if (atomic_load_explicit(&stream->encoded, memory_order_relaxed) == executed) return false;
  if (atomic_load_explicit(&stream->committed, memory_order_relaxed) <= executed &&
      stream->cost_encoded - stream->cost_executed < MPS_WAKE_COST) {
    return false;
  }
  if (stream->executor_state != MPS_EXECUTOR_STARTED) {
    if (stream->executor_state == MPS_EXECUTOR_NONE) mps_stream_start_executor(stream);
    return false; /* a new executor looks at the queue before it sleeps */
  }
  atomic_store_explicit(&stream->wake_sent, true, memory_order_relaxed);
  return !stream->spinning;
}

/* Lock held. Memory for a step at the tail, or NULL. */
static mps_step *place_step(mps_stream *stream, uint32_t bytes) {
  if (mps_stream_is_quiet(stream) && stream->head == stream->tail) { /* start over: keeps the page's first lines warm */
    stream->head_offset = 0;
    stream->tail_used = 0;
  }
  if (bytes > stream->tail->capacity - stream->tail_used && !append_page(stream, bytes)) return NULL;
  return (mps_step *)(void *)(stream->tail->bytes + stream->tail_used);
}

static bool is_full(const mps_stream *stream) { return stream->page_count >= MPS_PAGES_MAX; }

static void fill_header(mps_step *step, uint32_t kind, uint32_t bytes, const char *label, double cost) {
  step->kind = kind;
  step->bytes = bytes;
  step->label = label;
  step->cost = cost;
}

mps_status mps_stream_reserve(mps_stream *stream, uint32_t kind, size_t bytes, const char *label, double cost, void **out_step) {
  if (mps_process_is_forked) return mps_check_fork();
  if (bytes < sizeof(mps_step) || bytes > MPS_STREAM_MAX_STEP_BYTES) {
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s: a step of %zu bytes; at most %u are possible", label, bytes,
                         MPS_STREAM_MAX_STEP_BYTES);
  }
  uint32_t rounded = (uint32_t)(bytes + 15) & ~15u;
  mps_mutex_lock(&stream->lock);
  while (is_full(stream)) { /* let the executor catch up with half of it */
    uint64_t encoded = atomic_load_explicit(&stream->encoded, memory_order_relaxed);
    uint64_t completed = mps_stream_completed(stream);
    mps_mutex_unlock(&stream->lock);
    MPS_TRY(mps_stream_wait_serial(stream, completed + (encoded - completed + 1) / 2));
    mps_mutex_lock(&stream->lock);
  }
  mps_step *step = place_step(stream, rounded);
  if (!step) {
    mps_mutex_unlock(&stream->lock);
    return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "%s: no memory to encode a step of %zu bytes", label, bytes);
  }
  fill_header(step, kind, rounded, label, cost > 0.0 ? cost : MPS_COST_UNKNOWN);
  *out_step = step;
  return MPS_STATUS_OK;
}

bool mps_stream_try_reserve(mps_stream *stream, uint32_t kind, size_t bytes, const char *label, void **out_step) {
  uint32_t rounded = (uint32_t)(bytes + 15) & ~15u;
  mps_mutex_lock(&stream->lock);
  mps_step *step = is_full(stream) ? NULL : place_step(stream, rounded);
  if (!step) {
    mps_mutex_unlock(&stream->lock);
    return false;
  }
  fill_header(step, kind, rounded, label, 0.0);
  *out_step = step;
  return true;
}

/* Lock held. Whether the step that becomes `serial` is small, alone, and one that never waits. */
static bool is_immediate(const mps_stream *stream, const mps_step *step, uint64_t serial) {
  if (step->cost > MPS_IMMEDIATE_COST || stream->running) return false;
  const bool runs_kernels = step->kind == MPS_STEP_POINTWISE || step->kind == MPS_STEP_DISPATCH || step->kind == MPS_STEP_COPY || step->kind == MPS_STEP_FILL;
  if ((!runs_kernels && step->kind != MPS_STEP_DENSE) || mps_step_is_blocker(step)) return false;
  const mps_device *device = stream->device;
  if (device->rewrite || device->driver->limits.asynchronous) return false;
  return mps_stream_completed(stream) + 1 == serial;
}

uint64_t mps_stream_publish(mps_stream *stream, mps_step *step) {
  uint64_t serial = atomic_load_explicit(&stream->encoded, memory_order_relaxed) + 1;
  stream->tail_used += step->bytes;
  stream->cost_encoded += step->cost;
  if (mps_step_is_blocker(step)) stream->blockers_encoded++;
  if (step->kind == MPS_STEP_CALLBACK || step->kind == MPS_STEP_SIGNAL) { /* others wait for its effect */
    atomic_store_explicit(&stream->committed, serial, memory_order_relaxed);
  }
  bool immediate = is_immediate(stream, step, serial);
  atomic_store_explicit(&stream->encoded, serial, memory_order_release);
  if (immediate) {
    mps_stream_run_immediately(stream);
    return serial;
  }
  bool signal = mps_stream_wake(stream);
  mps_mutex_unlock(&stream->lock);
  if (signal) mps_condition_signal(&stream->work);
  return serial;
}

void mps_stream_abandon(mps_stream *stream, mps_step *step) {
  (void)step;
  mps_mutex_unlock(&stream->lock);
}

void mps_stream_commit(mps_stream *stream) {
  if (mps_process_is_forked) return;
  if (mps_stream_completed(stream) == mps_stream_encoded(stream)) return;
  mps_mutex_lock(&stream->lock);
  atomic_store_explicit(&stream->committed, atomic_load_explicit(&stream->encoded, memory_order_relaxed), memory_order_relaxed);
  bool signal = mps_stream_wake(stream);
  mps_mutex_unlock(&stream->lock);
  if (signal) mps_condition_signal(&stream->work);
}

bool mps_stream_query(mps_stream *stream) {
  if (mps_process_is_forked) return true; /* nothing will come */
  if (mps_stream_completed(stream) == mps_stream_encoded(stream)) return true;
  mps_stream_commit(stream); /* who polls wants to see it happen */
  return false;
}
