/* SPDX-License-Identifier: BSD-3-Clause
 *
 * buffer: making, sharing and releasing; and when a released block may be used again.
 */
#include "runtime/buffer.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/status.h"
#include "runtime/state.h"

mps_status mps_buffer_create(mps_device *device, mps_stream *stream, size_t length, mps_buffer **out_buffer) {
  if (mps_process_is_forked) return mps_check_fork();
  if (length == 0 || length >= device->driver->limits.max_buffer_length) {
    char size[32];
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "Invalid buffer size: %s", mps_heap_format_size(length, size));
  }
  return mps_heap_allocate(&device->heap, stream ? stream : mps_stream_current(device), length, false, out_buffer);
}

mps_status mps_buffer_wrap(mps_device *device, void *memory, size_t length, void (*release)(void *context), void *context,
                           mps_buffer **out_buffer) {
  MPS_TRY(mps_check_fork());
  if (!memory || length == 0) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "cannot wrap %zu bytes at %p", length, memory);
  if (!device->driver->limits.unified_memory) {
    return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "memory of the CPU cannot be wrapped: %s has its own", device->info.name);
  }
  mps_buffer *buffer;
  MPS_TRY(mps_heap_new_record(&device->heap, &buffer));
  buffer->contents = memory;
  buffer->address = (uint64_t)(uintptr_t)memory;
  buffer->length = buffer->size = length;
  buffer->device = device;
  buffer->stream = NULL;
  buffer->region = NULL;
  buffer->state = MPS_BUFFER_LIVE;
  buffer->release = release;
  buffer->release_context = context;
  atomic_store_explicit(&device->heap.wrapped, true, memory_order_relaxed);
  atomic_store_explicit(&buffer->references, 1, memory_order_relaxed);
  atomic_store_explicit(&buffer->touched, false, memory_order_relaxed);
  atomic_store_explicit(&buffer->foreign, 0, memory_order_relaxed);
  *out_buffer = buffer;
  return MPS_STATUS_OK;
}

mps_buffer *mps_buffer_retain(mps_buffer *buffer) {
  atomic_fetch_add_explicit(&buffer->references, 1, memory_order_relaxed);
  return buffer;
}

/* ---- release ---- */

/* Tells the queue that the allocation is dead from here on; returns the serial after which its memory is free for everybody. */
static uint64_t append_free_marker(mps_stream *stream, const mps_buffer *buffer) {
  mps_step_free *step;
  uint64_t encoded = mps_stream_encoded(stream);
  if (encoded == mps_stream_completed(stream)) return encoded;
  if (!mps_stream_try_reserve(stream, MPS_STEP_FREE, sizeof *step, "free", (void **)&step)) return encoded;
  step->allocation = buffer->identifier;
  step->address = buffer->address;
  step->length = buffer->size;
  step->shared = atomic_load_explicit(&buffer->foreign, memory_order_relaxed) != 0;
  return mps_stream_publish(stream, &step->step);
}

/* The slots of the streams that may still use the buffer, its owner's left out. */
static uint64_t users_of(const mps_buffer *buffer) {
  uint64_t users = atomic_load_explicit(&buffer->foreign, memory_order_acquire);
  /* Wrapped memory has no owner: whoever took its address without telling could be any stream. */
  if (!buffer->stream && !users && atomic_load_explicit(&buffer->touched, memory_order_relaxed)) users = UINT64_MAX;
  return users;
}

static void release_now(mps_buffer *buffer, uint64_t serial) {
  if (!buffer->region && buffer->release) buffer->release(buffer->release_context);
  mps_heap_release(&buffer->device->heap, buffer, serial);
}

/* Used by other streams than its owner, or wrapped: the block waits until they are done. */
static void release_shared(mps_buffer *buffer, uint64_t users, uint64_t serial) {
  mps_device *device = buffer->device;
  mps_heap_pending *pending = malloc(sizeof *pending + MPS_STREAM_SLOTS * sizeof pending->uses[0]);
  uint32_t count = 0;
  for (; users; users &= users - 1) {
    mps_stream *stream = mps_device_stream(device, (uint32_t)__builtin_ctzll(users));
    if (!stream) continue;
    uint64_t encoded = mps_stream_encoded(stream);
    if (mps_stream_completed(stream) >= encoded) continue;
    if (pending) {
      pending->uses[count].stream = stream;
      pending->uses[count++].serial = encoded;
    } else {
      (void)mps_stream_wait_steadily(stream, encoded); /* no memory to remember it */
    }
  }
  if (!count) {
    free(pending);
    release_now(buffer, serial);
    return;
  }
  pending->buffer = buffer;
  pending->count = count;
  mps_heap_release_later(&device->heap, pending, serial);
}

void mps_buffer_release(mps_buffer *buffer) {
  if (!buffer || mps_process_is_forked) return;
  /* A sole owner needs no atomic change. */
  if (atomic_load_explicit(&buffer->references, memory_order_acquire) != 1 &&
      atomic_fetch_sub_explicit(&buffer->references, 1, memory_order_acq_rel) != 1) {
    return;
  }
  mps_stream *stream = buffer->stream;
  bool touched = atomic_load_explicit(&buffer->touched, memory_order_relaxed);
  uint64_t serial = buffer->serial; /* never used in this life: the last one's users matter */
  if (touched && stream) serial = append_free_marker(stream, buffer);
  uint64_t users = users_of(buffer);
  if (stream && buffer->device->heap.guard) users |= UINT64_C(1) << stream->slot; /* its guard is looked at when its steps are done */
  if (users) {
    release_shared(buffer, users, serial);
  } else {
    release_now(buffer, serial);
  }
}

/* ---- queries ---- */
size_t mps_buffer_length(const mps_buffer *buffer) { return buffer->length; }

void *mps_buffer_contents(const mps_buffer *buffer) { return buffer->contents; }

uint64_t mps_buffer_identifier(const mps_buffer *buffer) { return buffer->identifier; }

static bool stream_is_idle(const mps_stream *stream) { return mps_stream_completed(stream) >= mps_stream_encoded(stream); }

bool mps_buffer_is_idle(const mps_buffer *buffer) {
  if (mps_process_is_forked) return true;
  if (buffer->stream) {
    bool touched = atomic_load_explicit(&buffer->touched, memory_order_relaxed);
    bool idle = touched ? stream_is_idle(buffer->stream) : mps_stream_completed(buffer->stream) >= buffer->serial;
    if (!idle) return false;
  }
  for (uint64_t users = users_of(buffer); users; users &= users - 1) {
    const mps_stream *stream = mps_device_stream(buffer->device, (uint32_t)__builtin_ctzll(users));
    if (stream && !stream_is_idle(stream)) return false;
  }
  return true;
}

mps_status mps_buffer_wait_idle(mps_buffer *buffer) {
  uint64_t users = users_of(buffer);
  if (buffer->stream) users |= UINT64_C(1) << buffer->stream->slot;
  for (; users; users &= users - 1) {
    mps_stream *stream = mps_device_stream(buffer->device, (uint32_t)__builtin_ctzll(users));
    if (stream) MPS_TRY(mps_stream_wait_serial(stream, mps_stream_encoded(stream)));
  }
  return MPS_STATUS_OK;
}

void mps_buffer_use_foreign(mps_buffer *buffer, mps_stream *stream) {
  uint64_t bit = UINT64_C(1) << stream->slot;
  if (!(atomic_load_explicit(&buffer->foreign, memory_order_relaxed) & bit)) {
    atomic_fetch_or_explicit(&buffer->foreign, bit, memory_order_acq_rel);
  }
}

void mps_buffer_record_stream(mps_buffer *buffer, mps_stream *stream) {
  if (!mps_process_is_forked) mps_buffer_use(buffer, stream);
}
