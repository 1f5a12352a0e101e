/* SPDX-License-Identifier: BSD-3-Clause
 *
 * device: opening and closing, the default device, forks, the end of the process, attachments.
 */
#include <stdlib.h>

#include "base/log.h"
#include "base/options.h"
#include "base/os/os.h"
#include "base/status.h"
#include "runtime/state.h"

bool mps_process_is_forked;

/* The process's device and what belongs to opening it. */
static mps_mutex default_lock = MPS_MUTEX_INITIALIZER;
static _Atomic(mps_device *) default_device; /* written under default_lock */
static _Atomic bool fork_handler_is_set;     /* written under default_lock */
static _Atomic(int (*)(void)) interrupt_check;

#define EXIT_WAIT_NS UINT64_C(2000000000)

/* ---- fork and exit ---- */
static void after_fork(void) { mps_process_is_forked = true; }

bool mps_in_forked_child(void) { return mps_process_is_forked; }

mps_status mps_check_fork(void) {
  if (!mps_process_is_forked) return MPS_STATUS_OK;
  return mps_error_set(MPS_STATUS_DEVICE_LOST,
                       "the mps device cannot be used in a process made by fork() after its parent used it; "
                       "start such processes with the 'spawn' method");
}

/* Steps that did not begin are dropped; those that run are waited for a while, so that no kernel runs in memory that goes away. */
static void stop_at_exit(void) {
  mps_device *device = atomic_load(&default_device);
  if (!device || mps_process_is_forked) return;
  atomic_store(&device->exiting, true);
  uint64_t left = EXIT_WAIT_NS;
  for (uint32_t slot = 0; slot < MPS_STREAM_SLOTS; slot++) {
    mps_stream *stream = mps_device_stream(device, slot);
    if (!stream) continue;
    mps_mutex_lock(&stream->lock);
    while (stream->running && left >= MPS_WAIT_SLICE_NS) {
      if (!mps_condition_wait_for(&stream->done, &stream->lock, MPS_WAIT_SLICE_NS)) left -= MPS_WAIT_SLICE_NS;
    }
    mps_mutex_unlock(&stream->lock);
  }
}

void mps_set_interrupt_check(int (*check)(void)) { atomic_store(&interrupt_check, check); }

mps_status mps_check_interrupt(void) {
  int (*check)(void) = atomic_load(&interrupt_check);
  if (!check || check() == 0) return MPS_STATUS_OK;
  return mps_error_set(MPS_STATUS_INTERRUPTED, "the wait was interrupted");
}

/* ---- open and close ---- */
static void fill_info(mps_device *device, const mps_driver *driver) {
  const mps_driver_limits *limits = &device->driver->limits;
  device->info = (mps_device_info){
      .driver = driver->name,
      .name = device->driver->name,
      .kernel_level = device->driver->kernel_level,
      .core_count = limits->core_count,
      .thread_execution_width = limits->thread_execution_width,
      .max_threads_per_threadgroup = limits->max_threads_per_threadgroup,
      .preferred_threads_per_threadgroup = limits->preferred_threads_per_threadgroup,
      .threadgroup_memory_bytes = limits->threadgroup_memory_bytes,
      .max_buffer_length = limits->max_buffer_length,
      .recommended_memory = limits->recommended_memory,
      .unified_memory = limits->unified_memory,
  };
}

/* Accepts a half-built device. */
static void close_device(mps_device *device) {
  for (uint32_t slot = 0; slot < MPS_STREAM_SLOTS; slot++) {
    mps_stream *stream = mps_device_stream(device, slot);
    if (stream) (void)mps_stream_wait_steadily(stream, mps_stream_encoded(stream));
  }
  for (uint32_t slot = MPS_ATTACHMENT_COUNT; slot-- > 0;) {
    void *pointer = atomic_load(&device->attachments[slot]);
    if (pointer && device->attachment_destroy[slot]) device->attachment_destroy[slot](pointer);
  }
  for (uint32_t slot = 0; slot < MPS_STREAM_SLOTS; slot++) mps_stream_free(mps_device_stream(device, slot));
  mps_heap_fini(&device->heap);
  if (device->driver) device->driver->vtable->close(device->driver);
  mps_mutex_fini(&device->streams_lock);
  free(device);
}

static mps_status build_device(mps_device *device, const mps_driver *driver) {
  MPS_TRY(driver->open(&device->driver));
  fill_info(device, driver);
  MPS_TRY(mps_heap_init(&device->heap, device, device->driver));
  mps_stream *stream;
  MPS_TRY(mps_stream_make(device, 0, 0, &stream));
  return MPS_STATUS_OK;
}

static mps_status set_fork_handler(void) {
  if (atomic_load(&fork_handler_is_set)) return MPS_STATUS_OK;
  MPS_TRY(mps_os_at_fork(after_fork));
  atomic_store(&fork_handler_is_set, true);
  return MPS_STATUS_OK;
}

/* default_lock held. */
static mps_status open_device(const mps_driver *driver, mps_device **out_device) {
  MPS_TRY(set_fork_handler());
  mps_device *device = calloc(1, sizeof *device);
  if (!device) return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for a device");
  atomic_init(&device->references, 1);
  mps_mutex_init(&device->streams_lock);
  device->next_identifier = MPS_STREAM_POOL + 1;
  mps_status status = build_device(device, driver);
  if (status != MPS_STATUS_OK) {
    close_device(device);
    return status;
  }
  MPS_LOG(DEVICE, INFO, "opened %s (%s, %u cores, %s)", device->info.name, device->info.driver, device->info.core_count,
          device->info.kernel_level);
  *out_device = device;
  return MPS_STATUS_OK;
}

/* NULL: the default driver. */
static mps_status find_driver(const char *name, const mps_driver **out_driver) {
  if (!name) name = mps_option_string(MPS_OPTION_DRIVER);
  *out_driver = mps_driver_find(name);
  if (*out_driver) return MPS_STATUS_OK;
  return mps_error_set(MPS_STATUS_NOT_FOUND, "there is no driver \"%s\" in this build; see OPENMPS_DRIVER", name);
}

mps_status mps_device_open(const char *name, mps_device **out_device) {
  const mps_driver *driver;
  MPS_TRY(find_driver(name, &driver));
  return mps_device_open_driver(driver, out_device);
}

mps_status mps_device_open_driver(const mps_driver *driver, mps_device **out_device) {
  MPS_TRY(mps_check_fork());
  mps_mutex_lock(&default_lock);
  mps_status status = open_device(driver, out_device);
  mps_mutex_unlock(&default_lock);
  return status;
}

/* default_lock held. */
static mps_status make_default(mps_device **out_device) {
  const mps_driver *driver;
  MPS_TRY(find_driver(NULL, &driver));
  MPS_TRY(mps_os_at_exit(stop_at_exit));
  MPS_TRY(open_device(driver, out_device));
  atomic_store_explicit(&default_device, *out_device, memory_order_release);
  return MPS_STATUS_OK;
}

mps_status mps_device_default(mps_device **out_device) {
  if (mps_process_is_forked) return mps_check_fork();
  mps_device *device = atomic_load_explicit(&default_device, memory_order_acquire);
  mps_status status = MPS_STATUS_OK;
  if (!device) {
    mps_mutex_lock(&default_lock);
    device = atomic_load(&default_device);
    if (!device) status = make_default(&device);
    mps_mutex_unlock(&default_lock);
  }
  if (status == MPS_STATUS_OK) *out_device = device;
  return status;
}

mps_device *mps_device_retain(mps_device *device) {
  atomic_fetch_add_explicit(&device->references, 1, memory_order_relaxed);
  return device;
}

void mps_device_release(mps_device *device) {
  if (!device || mps_process_is_forked) return;
  if (atomic_fetch_sub_explicit(&device->references, 1, memory_order_acq_rel) == 1) close_device(device);
}

const mps_device_info *mps_device_get_info(const mps_device *device) { return &device->info; }

mps_driver_device *mps_device_driver(const mps_device *device) { return device->driver; }

mps_status mps_device_synchronize(mps_device *device) {
  MPS_TRY(mps_check_fork());
  for (uint32_t slot = 0; slot < MPS_STREAM_SLOTS; slot++) { /* all of them start before the first is waited for */
    mps_stream *stream = mps_device_stream(device, slot);
    if (stream && slot) mps_stream_commit(stream);
  }
  mps_failure first = {.status = MPS_STATUS_OK};
  for (uint32_t slot = 0; slot < MPS_STREAM_SLOTS; slot++) {
    mps_stream *stream = mps_device_stream(device, slot);
    if (!stream) continue;
    mps_status status = mps_stream_synchronize(stream);
    if (status == MPS_STATUS_INTERRUPTED || status == MPS_STATUS_DEVICE_LOST) return status;
    if (status == MPS_STATUS_OK || first.status != MPS_STATUS_OK) continue;
    mps_failure_set(&first, status, mps_error_operator(), mps_error_message());
  }
  if (first.status == MPS_STATUS_OK) return MPS_STATUS_OK;
  return mps_error_set_operator(first.status, first.label, "%s", first.text);
}

/* ---- attachments ---- */
void *mps_device_attachment(const mps_device *device, mps_attachment_slot slot) {
  return atomic_load_explicit(&device->attachments[slot], memory_order_acquire);
}

void *mps_device_attach(mps_device *device, mps_attachment_slot slot, void *pointer, void (*destroy)(void *pointer)) {
  mps_mutex_lock(&device->streams_lock);
  void *present = atomic_load_explicit(&device->attachments[slot], memory_order_relaxed);
  if (!present) {
    device->attachment_destroy[slot] = destroy;
    atomic_store_explicit(&device->attachments[slot], pointer, memory_order_release);
  }
  mps_mutex_unlock(&device->streams_lock);
  if (!present) return pointer;
  if (destroy) destroy(pointer);
  return present;
}

void mps_device_set_window_rewrite(mps_device *device, mps_window_rewrite rewrite, void *context) {
  device->rewrite_context = context;
  device->rewrite = rewrite;
}
