/* SPDX-License-Identifier: BSD-3-Clause
 *
 * null: the driver to copy when a new one is made, and the one that tests of the runtime use. It computes nothing: kernels are
 * accepted and skipped, only bytes are copied and filled and callbacks run, so that order and lifetime can be tested.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/os/os.h"
#include "base/status.h"
#include "base/time.h"
#include "driver/driver.h"

typedef struct null_device {
  mps_driver_device device; /* first */
  _Atomic uint64_t allocated; /* bytes */
} null_device;

struct mps_driver_queue {
  null_device *device;
};

/* One library without functions stands for all. */
struct mps_driver_library {
  int unused;
};
static mps_driver_library empty_library;

static null_device *null_device_of(mps_driver_device *device) { return (null_device *)device; }

static void null_close(mps_driver_device *device) { free(null_device_of(device)); }

static mps_status null_allocate(mps_driver_device *device, uint64_t length, mps_driver_memory *out_memory) {
  void *memory;
  MPS_TRY(mps_os_pages_map(length, &memory));
  *out_memory = (mps_driver_memory){.contents = memory, .address = (uint64_t)(uintptr_t)memory, .length = length};
  atomic_fetch_add(&null_device_of(device)->allocated, length);
  return MPS_STATUS_OK;
}

static void null_free(mps_driver_device *device, mps_driver_memory *memory) {
  mps_os_pages_unmap(memory->contents, memory->length);
  atomic_fetch_sub(&null_device_of(device)->allocated, memory->length);
  *memory = (mps_driver_memory){0};
}

static void null_discard(mps_driver_device *device, mps_driver_memory *memory, uint64_t offset, uint64_t length) {
  (void)device;
  mps_os_pages_discard((char *)memory->contents + offset, length);
}

static uint64_t null_allocated(const mps_driver_device *device) {
  return atomic_load(&((const null_device *)device)->allocated);
}

static mps_status null_builtin_library(mps_driver_device *device, mps_driver_library **out_library) {
  (void)device;
  *out_library = &empty_library;
  return MPS_STATUS_OK;
}

static mps_status null_load_library(mps_driver_device *device, const void *image, size_t length, const char *path,
                                    mps_driver_library **out_library) {
  (void)device, (void)image, (void)length, (void)path;
  *out_library = &empty_library;
  return MPS_STATUS_OK;
}

static void null_unload_library(mps_driver_library *library) { (void)library; }

static uint32_t null_function_count(const mps_driver_library *library) {
  (void)library;
  return 0;
}

static const mps_driver_function *null_function_at(const mps_driver_library *library, uint32_t index) {
  (void)library, (void)index;
  return NULL;
}

static const mps_driver_function *null_find_function(const mps_driver_library *library, const char *name) {
  (void)library, (void)name;
  return NULL;
}

static mps_status null_create_queue(mps_driver_device *device, mps_driver_queue **out_queue) {
  mps_driver_queue *queue = malloc(sizeof *queue);
  if (!queue) return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for a queue");
  queue->device = null_device_of(device);
  *out_queue = queue;
  return MPS_STATUS_OK;
}

static void null_destroy_queue(mps_driver_queue *queue) { free(queue); }

static mps_status null_execute(mps_driver_queue *queue, const mps_step *step) {
  (void)queue;
  switch (step->kind) {
    case MPS_STEP_COPY: {
      const mps_step_copy *copy = (const mps_step_copy *)step;
      memmove((void *)(uintptr_t)copy->destination, (const void *)(uintptr_t)copy->source, copy->length);
      return MPS_STATUS_OK;
    }
    case MPS_STEP_FILL: {
      const mps_step_fill *fill = (const mps_step_fill *)step;
      memset((void *)(uintptr_t)fill->address, (int)fill->value, fill->length);
      return MPS_STATUS_OK;
    }
    case MPS_STEP_CALLBACK: {
      const mps_step_callback *callback = (const mps_step_callback *)step;
      callback->function(callback->context);
      return MPS_STATUS_OK;
    }
    default:
      return MPS_STATUS_OK;
  }
}

static uint64_t null_timestamp(mps_driver_queue *queue) {
  (void)queue;
  return mps_time_ns();
}

static const mps_driver_device_vtable null_vtable = {
    .close = null_close,
    .allocate = null_allocate,
    .free = null_free,
    .discard = null_discard,
    .allocated = null_allocated,
    .builtin_library = null_builtin_library,
    .load_library = null_load_library,
    .unload_library = null_unload_library,
    .function_count = null_function_count,
    .function_at = null_function_at,
    .find_function = null_find_function,
    .create_queue = null_create_queue,
    .destroy_queue = null_destroy_queue,
    .execute = null_execute,
    .timestamp = null_timestamp,
};

static mps_status null_open(mps_driver_device **out_device) {
  null_device *device = calloc(1, sizeof *device);
  if (!device) return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for a device");
  device->device = (mps_driver_device){
      .vtable = &null_vtable,
      .limits = {.page_bytes = mps_os_page_size(),
                 .buffer_alignment = 64,
                 .max_buffer_length = UINT64_C(1) << 46,
                 .recommended_memory = mps_os_total_memory() / 4 * 3,
                 .core_count = 1,
                 .thread_execution_width = 32,
                 .max_threads_per_threadgroup = 1024,
                 .preferred_threads_per_threadgroup = 1,
                 .threadgroup_memory_bytes = 32768,
                 .unified_memory = true},
      .name = "null",
      .kernel_level = "none",
  };
  *out_device = &device->device;
  return MPS_STATUS_OK;
}

const mps_driver mps_driver_null = {.name = "null", .open = null_open};
