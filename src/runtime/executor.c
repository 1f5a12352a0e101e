/* SPDX-License-Identifier: BSD-3-Clause
 *
 * executor: runs the steps of a stream, in order. Whoever holds the runner's role does it: mostly the stream's own thread, but a waiter
 * takes the role itself when little is queued, since a thread switch costs more than that work.
 */
#include <string.h>

#include "base/log.h"
#include "base/os/os.h"
#include "base/status.h"
#include "base/time.h"
#include "runtime/state.h"

/* ---- taking steps out of the command buffer: runner only ---- */

/* The next published step; the caller knows that there is one. */
static const mps_step *take_step(mps_stream *stream) {
  mps_page *page = stream->head;
  while (stream->head_offset == atomic_load_explicit(&page->end, memory_order_relaxed)) {
    stream->head = page->next;
    stream->head_offset = 0;
    page->next = stream->passed;
    stream->passed = page;
    page = stream->head;
  }
  const mps_step *step = (const mps_step *)(const void *)(page->bytes + stream->head_offset);
  stream->head_offset += step->bytes;
  stream->executed++;
  stream->cost_executed += step->cost;
  if (step->kind == MPS_STEP_DENSE || step->kind == MPS_STEP_WAIT) stream->blockers_executed++;
  return step;
}

/* The kind of the step that take_step would return. */
static uint32_t peek_kind(const mps_stream *stream) {
  const mps_page *page = stream->head;
  uint32_t offset = stream->head_offset;
  while (offset == atomic_load_explicit(&page->end, memory_order_relaxed)) {
    page = page->next;
    offset = 0;
  }
  return ((const mps_step *)(const void *)(page->bytes + offset))->kind;
}

static bool is_barrier(uint32_t kind) { return kind == MPS_STEP_SIGNAL || kind == MPS_STEP_WAIT || kind == MPS_STEP_CALLBACK; }

/* ---- running: runner only ---- */
static void run_step(mps_stream *stream, const mps_step *step) {
  mps_status status = MPS_STATUS_OK;
  switch (step->kind) {
    case MPS_STEP_FREE:
      return;
    case MPS_STEP_SIGNAL:
      mps_event_execute_signal(stream, step);
      return;
    case MPS_STEP_WAIT:
      status = mps_event_execute_wait(step);
      break;
    default:
      status = stream->device->driver->vtable->execute(stream->queue, step);
      break;
  }
  if (status != MPS_STATUS_OK) mps_stream_fail(stream, status, step->label, mps_error_message());
  if (!stream->device->driver->limits.asynchronous) mps_stream_check_report(stream, step->label);
  if (stream->device->heap.guard & MPS_GUARD_STEP) mps_heap_guard_step(&stream->device->heap, step->label);
}

/* All steps up to `serial` are done: tells those who wait for one of them. */
static void complete(mps_stream *stream, uint64_t serial) {
  if (stream->passed) {
    mps_mutex_lock(&stream->lock);
    mps_stream_recycle_pages(stream, stream->passed);
    mps_mutex_unlock(&stream->lock);
    stream->passed = NULL;
  }
  atomic_store_explicit(&stream->completed, serial, memory_order_seq_cst); /* pairs with wake_at in wait_done */
  if (serial < atomic_load_explicit(&stream->wake_at, memory_order_seq_cst)) return;
  mps_mutex_lock(&stream->lock);
  atomic_store_explicit(&stream->wake_at, UINT64_MAX, memory_order_relaxed);
  mps_condition_broadcast(&stream->done);
  mps_mutex_unlock(&stream->lock);
}

/* An asynchronous driver has done its steps only when it is drained. */
static void drain(mps_stream *stream, const char *label) {
  mps_status status = stream->device->driver->vtable->drain(stream->queue);
  if (status != MPS_STATUS_OK) mps_stream_fail(stream, status, label, mps_error_message());
  mps_stream_check_report(stream, label);
  complete(stream, stream->executed);
}

/* Waits a moment for a successor of an open window. False when nothing came. */
static bool linger(mps_stream *stream, uint64_t deadline) {
  for (;;) {
    if (atomic_load_explicit(&stream->encoded, memory_order_acquire) > stream->executed) return true;
    if (atomic_load_explicit(&stream->committed, memory_order_relaxed) >= stream->executed) return false;
    if (atomic_load_explicit(&stream->wake_at, memory_order_relaxed) != UINT64_MAX) return false;
    if (mps_time_ns() >= deadline) return false;
    mps_thread_yield();
  }
}

/* Takes steps into the window as far as they are published and may be in it. False when one follows that may not. */
static bool extend_window(mps_stream *stream, mps_window *window, uint64_t last) {
  while (window->count < MPS_WINDOW_MAX_STEPS && stream->executed < last) {
    if (is_barrier(peek_kind(stream))) return false;
    window->steps[window->count++] = take_step(stream);
  }
  return window->count < MPS_WINDOW_MAX_STEPS;
}

/* Runs a window of at least one step that is no barrier. Returns the last label, for failures that come later. */
static const char *run_window(mps_stream *stream, uint64_t until) {
  mps_device *device = stream->device;
  mps_window window = {.stream = stream};
  uint64_t deadline = 0;
  for (;;) {
    uint64_t published = atomic_load_explicit(&stream->encoded, memory_order_acquire);
    bool open = extend_window(stream, &window, published < until ? published : until);
    window.closed = !open || stream->executed >= until ||
                    atomic_load_explicit(&stream->committed, memory_order_relaxed) >= stream->executed ||
                    (deadline && mps_time_ns() >= deadline);
    if (device->rewrite(device->rewrite_context, &window) == MPS_WINDOW_RUN || window.closed) break;
    if (!deadline) deadline = mps_time_ns() + MPS_LINGER_NS;
    if (!linger(stream, deadline)) deadline = 1; /* ask once more, closed */
  }
  for (uint32_t i = 0; i < window.count; i++) run_step(stream, window.steps[i]);
  return window.count ? window.steps[window.count - 1]->label : "";
}

/* Runs what is published, up to the step `until`. The caller holds the role. */
static void run(mps_stream *stream, uint64_t until) {
  const mps_device *device = stream->device;
  bool asynchronous = device->driver->limits.asynchronous;
  const char *label = "";
  for (;;) {
    uint64_t published = atomic_load_explicit(&stream->encoded, memory_order_acquire);
    if (stream->executed >= (published < until ? published : until)) break;
    if (atomic_load_explicit(&device->exiting, memory_order_relaxed)) break;
    uint32_t kind = device->rewrite ? peek_kind(stream) : MPS_STEP_SIGNAL;
    if (!is_barrier(kind)) {
      label = run_window(stream, until);
    } else {
      const mps_step *step = take_step(stream);
      label = step->label;
      if (asynchronous && is_barrier(step->kind)) {
        stream->executed--; /* the barrier itself is not done */
        drain(stream, label);
        stream->executed++;
      }
      run_step(stream, step);
    }
    if (!asynchronous) complete(stream, stream->executed);
  }
  if (asynchronous && mps_stream_completed(stream) < stream->executed) drain(stream, label);
}

/* Gives the role back; lock held. True when the executor is to be signalled. */
static bool end_role(mps_stream *stream) {
  stream->running = false;
  mps_condition_broadcast(&stream->done);
  return mps_stream_wake(stream);
}

void mps_stream_run_immediately(mps_stream *stream) {
  uint64_t serial = atomic_load_explicit(&stream->encoded, memory_order_relaxed);
  stream->running = true;
  mps_mutex_unlock(&stream->lock);
  run(stream, serial);
  mps_mutex_lock(&stream->lock);
  bool signal = end_role(stream);
  mps_mutex_unlock(&stream->lock);
  if (signal) mps_condition_signal(&stream->work);
}

/* ---- the thread ---- */
static bool has_work(const mps_stream *stream) {
  uint64_t encoded = atomic_load_explicit(&stream->encoded, memory_order_relaxed);
  if (encoded == stream->executed) return false;
  return stream->stopping || atomic_load_explicit(&stream->wake_sent, memory_order_relaxed) ||
         atomic_load_explicit(&stream->committed, memory_order_relaxed) > stream->executed ||
         stream->cost_encoded - stream->cost_executed >= MPS_WAKE_COST;
}

/* Lock held, dropped meanwhile. Looks for a call without sleeping: being woken costs the caller more than this costs us. The role stays
 * free, so that a waiter may take small work. */
static void spin_for_call(mps_stream *stream) {
  if (stream->device->driver->limits.core_count < 2) return;
  stream->spinning = true;
  mps_mutex_unlock(&stream->lock);
  uint64_t deadline = mps_time_ns() + MPS_IDLE_SPIN_NS;
  while (!atomic_load_explicit(&stream->wake_sent, memory_order_relaxed) && mps_time_ns() < deadline) {
    for (int i = 0; i < 16; i++) mps_os_cpu_relax();
    mps_thread_yield(); /* where processors are few, somebody may want this one */
  }
  mps_mutex_lock(&stream->lock);
  stream->spinning = false;
}

static void executor_main(void *context) {
  mps_stream *stream = context;
  bool ran = false; /* since it last slept or spun */
  mps_mutex_lock(&stream->lock);
  for (;;) {
    bool exiting = atomic_load_explicit(&stream->device->exiting, memory_order_relaxed);
    if (!stream->running && !exiting && has_work(stream)) {
      stream->running = true;
      atomic_store_explicit(&stream->wake_sent, false, memory_order_relaxed);
      mps_mutex_unlock(&stream->lock);
      run(stream, UINT64_MAX);
      mps_mutex_lock(&stream->lock);
      (void)end_role(stream); /* what is left, this thread sees itself */
      ran = true;
    } else if (stream->stopping && !stream->running) {
      break;
    } else if (ran) {
      ran = false;
      atomic_store_explicit(&stream->wake_sent, false, memory_order_relaxed);
      spin_for_call(stream);
    } else {
      atomic_store_explicit(&stream->wake_sent, false, memory_order_relaxed);
      mps_condition_wait(&stream->work, &stream->lock);
    }
  }
  mps_mutex_unlock(&stream->lock);
}

void mps_stream_start_executor(mps_stream *stream) {
  mps_status status = mps_thread_create(&stream->executor, "mps-stream", executor_main, stream);
  stream->executor_state = status == MPS_STATUS_OK ? MPS_EXECUTOR_STARTED : MPS_EXECUTOR_REFUSED;
  if (status != MPS_STATUS_OK) MPS_LOG(STREAM, WARNING, "%s; waiting threads do its work", mps_error_message());
}

/* ---- waits ---- */
static bool may_run_inline(const mps_stream *stream) {
  if (stream->running) return false;
  if (stream->executor_state == MPS_EXECUTOR_REFUSED) return true;
  return stream->blockers_encoded == stream->blockers_executed && stream->cost_encoded - stream->cost_executed <= MPS_INLINE_COST;
}

static bool is_done(const mps_stream *stream, uint64_t serial) {
  return atomic_load_explicit(&stream->completed, memory_order_seq_cst) >= serial;
}

/* Looks a short while whether the runner gets there: sleeping and waking costs more. Lock not held. */
static void spin_for(const mps_stream *stream, uint64_t serial) {
  uint64_t deadline = mps_time_ns() + MPS_WAIT_SPIN_NS;
  while (!is_done(stream, serial) && mps_time_ns() < deadline) {
    for (int i = 0; i < 16; i++) mps_os_cpu_relax();
  }
}

/* Lock held, and held again afterwards. Sleeps until the step may be done, or for one slice. */
static mps_status sleep_for(mps_stream *stream, uint64_t serial, bool interruptible) {
  if (serial < atomic_load_explicit(&stream->wake_at, memory_order_relaxed)) {
    atomic_store_explicit(&stream->wake_at, serial, memory_order_seq_cst);
  }
  if (is_done(stream, serial)) return MPS_STATUS_OK;
  if (mps_condition_wait_for(&stream->done, &stream->lock, MPS_WAIT_SLICE_NS) || !interruptible) return MPS_STATUS_OK;
  mps_mutex_unlock(&stream->lock);
  mps_status status = mps_check_interrupt();
  mps_mutex_lock(&stream->lock);
  return status;
}

static mps_status wait_for(mps_stream *stream, uint64_t serial, bool interruptible) {
  if (mps_process_is_forked) return mps_check_fork();
  if (is_done(stream, serial)) return MPS_STATUS_OK;
  mps_status status = MPS_STATUS_OK;
  bool spun = false;
  mps_mutex_lock(&stream->lock);
  if (atomic_load_explicit(&stream->committed, memory_order_relaxed) < serial) {
    atomic_store_explicit(&stream->committed, serial, memory_order_relaxed);
  }
  while (!is_done(stream, serial) && status == MPS_STATUS_OK) {
    bool signal = false;
    if (atomic_load_explicit(&stream->device->exiting, memory_order_relaxed)) {
      status = mps_error_set(MPS_STATUS_DEVICE_LOST, "the process is exiting; queued work was dropped");
    } else if (may_run_inline(stream)) {
      stream->running = true;
      mps_mutex_unlock(&stream->lock);
      run(stream, serial);
      mps_mutex_lock(&stream->lock);
      signal = end_role(stream);
    } else if (stream->running && !spun) {
      spun = true;
      mps_mutex_unlock(&stream->lock);
      spin_for(stream, serial);
      mps_mutex_lock(&stream->lock);
    } else {
      if (mps_stream_wake(stream)) mps_condition_signal(&stream->work);
      status = sleep_for(stream, serial, interruptible);
    }
    if (signal) mps_condition_signal(&stream->work);
  }
  mps_mutex_unlock(&stream->lock);
  return status;
}

mps_status mps_stream_wait_serial(mps_stream *stream, uint64_t serial) { return wait_for(stream, serial, true); }

mps_status mps_stream_wait_steadily(mps_stream *stream, uint64_t serial) { return wait_for(stream, serial, false); }

mps_status mps_stream_synchronize(mps_stream *stream) {
  MPS_TRY(mps_stream_wait_serial(stream, mps_stream_encoded(stream)));
  if (atomic_load_explicit(&stream->device->heap.pending_count, memory_order_relaxed)) mps_heap_retire(&stream->device->heap);
  return mps_stream_take_failure(stream);
}
