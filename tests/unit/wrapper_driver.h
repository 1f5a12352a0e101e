/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wrapper_driver: the null driver with faults: refuses chosen allocations, fails chosen steps, runs dispatches slowly, or poses as an
 * asynchronous driver. One at a time in a test program.
 */
#ifndef OPENMPS_TESTS_WRAPPER_DRIVER_H
#define OPENMPS_TESTS_WRAPPER_DRIVER_H

#include <stdatomic.h>

#include "base/status.h"
#include "base/thread.h"
#include "base/time.h"
#include "runtime/device.h"

typedef struct wrapper_settings {
  _Atomic int64_t allocations_left; /* then all are refused; negative: never */
  const char *failing_label;        /* steps of this label fail */
  uint64_t dispatch_ns;             /* how long a dispatch takes */
  void (*on_dispatch)(const mps_step_dispatch *step);
  bool asynchronous;
  uint64_t recommended_memory; /* 0: the null driver's */
  uint32_t core_count;         /* 0: the null driver's, 1 */
} wrapper_settings;

static wrapper_settings wrapper;
static const mps_driver_device_vtable *wrapped_vtable;
static mps_driver_device_vtable wrapper_vtable;

static mps_status wrapper_allocate(mps_driver_device *device, uint64_t length, mps_driver_memory *out_memory) {
  int64_t left = atomic_load(&wrapper.allocations_left);
  if (left == 0) return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "refused by the test");
  if (left > 0) atomic_store(&wrapper.allocations_left, left - 1);
  return wrapped_vtable->allocate(device, length, out_memory);
}

static mps_status wrapper_execute(mps_driver_queue *queue, const mps_step *step) {
  if (wrapper.failing_label && !strcmp(step->label, wrapper.failing_label)) {
    return mps_error_set(MPS_STATUS_PROVIDER_ERROR, "%s was made to fail", step->label);
  }
  if (step->kind == MPS_STEP_DISPATCH && wrapper.dispatch_ns) {
    uint64_t end = mps_time_ns() + wrapper.dispatch_ns;
    while (mps_time_ns() < end) continue;
  }
  if (step->kind == MPS_STEP_DISPATCH && wrapper.on_dispatch) wrapper.on_dispatch((const mps_step_dispatch *)(const void *)step);
  return wrapped_vtable->execute(queue, step);
}

static mps_status wrapper_drain(mps_driver_queue *queue) {
  (void)queue;
  return MPS_STATUS_OK;
}

static mps_status wrapper_open(mps_driver_device **out_device) {
  MPS_TRY(mps_driver_null.open(out_device));
  wrapped_vtable = (*out_device)->vtable;
  wrapper_vtable = *wrapped_vtable;
  wrapper_vtable.allocate = wrapper_allocate;
  wrapper_vtable.execute = wrapper_execute;
  wrapper_vtable.drain = wrapper_drain;
  (*out_device)->vtable = &wrapper_vtable;
  (*out_device)->limits.asynchronous = wrapper.asynchronous;
  if (wrapper.core_count) (*out_device)->limits.core_count = wrapper.core_count;
  if (wrapper.recommended_memory) (*out_device)->limits.recommended_memory = wrapper.recommended_memory;
  return MPS_STATUS_OK;
}

/* For on_dispatch: holds dispatches until the test opens the gate, so that no test depends on time. */
static _Atomic bool wrapper_gate_is_open;
static inline void wrapper_hold(const mps_step_dispatch *step) {
  (void)step;
  while (!atomic_load(&wrapper_gate_is_open)) mps_thread_yield();
}

static const mps_driver wrapper_driver = {.name = "wrapper", .open = wrapper_open};

/* Opens a device with these settings; the caller releases it. */
static inline mps_device *wrapper_device(wrapper_settings settings) {
  memcpy(&wrapper, &settings, sizeof wrapper);
  mps_device *device = NULL;
  if (mps_device_open_driver(&wrapper_driver, &device) != MPS_STATUS_OK) fprintf(stderr, "cannot open: %s\n", mps_error_message());
  return device;
}
#define WRAPPER(...) wrapper_device((wrapper_settings){.allocations_left = -1, __VA_ARGS__})

#endif
