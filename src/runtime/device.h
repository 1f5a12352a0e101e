/* SPDX-License-Identifier: BSD-3-Clause
 *
 * device: inside of mps_device, for the rooms above the driver. What hangs off a device: its heap, its streams, and attachments
 * (per-device state of shader, graph, ops), so that no room needs a global.
 */
#ifndef OPENMPS_RUNTIME_DEVICE_H
#define OPENMPS_RUNTIME_DEVICE_H

#include <stdatomic.h>

#include "base/thread.h"
#include "driver/driver.h"
#include "openmps/stream.h"

/* Who attaches what. One slot a noun. */
typedef enum mps_attachment_slot {
  MPS_ATTACHMENT_BUILTIN_LIBRARY, /* shader */
  MPS_ATTACHMENT_SHADER_CACHE,    /* shader */
  MPS_ATTACHMENT_POINTWISE,       /* ops: the pointwise engine's tables */
  MPS_ATTACHMENT_DENSE,           /* ops: the dense provider and its choices */
  MPS_ATTACHMENT_OPS,             /* ops: cached pipelines */
  MPS_ATTACHMENT_FUSION,          /* graph: the window rewriter */
  MPS_ATTACHMENT_GRAPH,           /* graph: compiled graphs */
  MPS_ATTACHMENT_PROFILER,
  MPS_ATTACHMENT_RANDOM,
  MPS_ATTACHMENT_SORT,
  MPS_ATTACHMENT_FFT, /* ops: tables of roots */
  MPS_ATTACHMENT_SPARE_0,
  MPS_ATTACHMENT_SPARE_1,
  MPS_ATTACHMENT_COUNT
} mps_attachment_slot;

/* Opens a device of a driver that need not be in the registry: wrapper drivers of tests. The caller owns one reference. */
MPS_WARN_UNUSED mps_status mps_device_open_driver(const mps_driver *driver, mps_device **out_device);
/* The driver's device; borrowed, as long as the device. */
mps_driver_device *mps_device_driver(const mps_device *device);
/* The slot's pointer, or NULL. Any thread, a few nanoseconds. */
void *mps_device_attachment(const mps_device *device, mps_attachment_slot slot);
/* Fills an empty slot. If another thread was first, `destroy(pointer)` is called and the other's pointer comes back: use what is returned.
 * When the device is closed `destroy` (may be NULL) gets the pointer, highest slot first, after the streams are done. */
void *mps_device_attach(mps_device *device, mps_attachment_slot slot, void *pointer, void (*destroy)(void *pointer));

/* Sets DEVICE_LOST's text and returns it in a forked child, else OK. */
mps_status mps_check_fork(void);

#endif
