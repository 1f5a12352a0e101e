/* SPDX-License-Identifier: BSD-3-Clause
 *
 * device: the machine that runs kernels, and everything that hangs off it.
 *
 * One process has one default device (mps_device_default), opened at first use; further ones can be opened for tests with another
 * driver. All functions here may be called from any thread.
 */
#ifndef OPENMPS_DEVICE_H
#define OPENMPS_DEVICE_H

#include <stdbool.h>

#include "openmps/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mps_device mps_device;

/* What a device is. Strings live as long as the device. */
typedef struct mps_device_info {
  const char *driver;       /* "host", "null", "cuda" */
  const char *name;         /* what the system calls it */
  const char *kernel_level; /* host: "x86-64", "x86-64-v3", "x86-64-v4"; elsewhere the architecture */
  uint32_t core_count;      /* processors that kernels run on */
  uint32_t thread_execution_width; /* lanes of a simdgroup: 32 */
  uint32_t max_threads_per_threadgroup;
  uint32_t preferred_threads_per_threadgroup; /* what built-in kernels are launched with: 1 on the host */
  uint32_t threadgroup_memory_bytes;
  uint64_t max_buffer_length;       /* bytes */
  uint64_t recommended_memory;      /* bytes: recommendedMaxWorkingSetSize's counterpart */
  bool unified_memory;              /* buffers have a CPU address */
} mps_device_info;

/* Opens a device by driver name (NULL: OPENMPS_DRIVER, else "host"). The caller owns one reference. */
MPS_API MPS_WARN_UNUSED mps_status mps_device_open(const char *driver, mps_device **out_device);
/* The process's device: opened once, borrowed, never closed before exit. In a forked child: DEVICE_LOST. */
MPS_API MPS_WARN_UNUSED mps_status mps_device_default(mps_device **out_device);
MPS_API mps_device *mps_device_retain(mps_device *device);
/* Accepts NULL. The last release waits for the device's streams and frees everything. */
MPS_API void mps_device_release(mps_device *device);
MPS_API const mps_device_info *mps_device_get_info(const mps_device *device);
/* Waits for every stream of the device; the first kernel error comes back as KERNEL_ERROR. */
MPS_API MPS_WARN_UNUSED mps_status mps_device_synchronize(mps_device *device);

/* True in a child made by fork() after the parent had opened its default device. */
MPS_API bool mps_in_forked_child(void);

/* Called about every 50 ms by waiting threads; a non-zero answer ends the wait with INTERRUPTED. Process-wide, set once. */
MPS_API void mps_set_interrupt_check(int (*check)(void));

/* ---- the caching heap ---- */
typedef struct mps_heap_statistics {
  uint64_t allocated;        /* bytes in live buffers, rounded sizes */
  uint64_t allocated_peak;
  uint64_t reserved;         /* bytes in heaps */
  uint64_t reserved_peak;
  uint64_t driver;           /* bytes that the driver holds for this process */
  uint64_t total_allocated;  /* bytes ever allocated and freed */
  uint64_t total_freed;
  uint64_t live_buffers;
  uint64_t heaps;
  uint64_t reuses;           /* allocations served from a cached block */
} mps_heap_statistics;

MPS_API void mps_heap_get_statistics(mps_device *device, mps_heap_statistics *out);
MPS_API void mps_heap_reset_peaks(mps_device *device);
MPS_API void mps_heap_reset_accumulated(mps_device *device);
/* Waits, then gives fully free heaps back to the system. */
MPS_API MPS_WARN_UNUSED mps_status mps_heap_empty_cache(mps_device *device);
/* Hard limit = ratio x recommended memory, within [0, 2]; 0 = no limit. Texts as in PyTorch ("invalid high watermark ratio ..."). */
MPS_API MPS_WARN_UNUSED mps_status mps_heap_set_high_watermark_ratio(mps_device *device, double ratio);
MPS_API MPS_WARN_UNUSED mps_status mps_heap_set_low_watermark_ratio(mps_device *device, double ratio);
/* The limits in force, bytes; UINT64_MAX = none. */
MPS_API uint64_t mps_heap_high_watermark(mps_device *device);
MPS_API uint64_t mps_heap_low_watermark(mps_device *device);
/* Walks all heaps and checks their invariants; for tests. INTERNAL_ERROR tells which is broken. */
MPS_API MPS_WARN_UNUSED mps_status mps_heap_validate(mps_device *device);

#ifdef __cplusplus
}
#endif
#endif
