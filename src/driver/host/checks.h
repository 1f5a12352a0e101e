/* SPDX-License-Identifier: BSD-3-Clause
 *
 * checks: what code that was compiled in checked mode (shader/checked.h) and the host driver agree on, and how the driver runs it
 * (docs/decisions/0017-checked-mode.md). Such a library exports a second symbol, `mps_host_checked`, beside `mps_host_library`.
 *
 * Kernels get addresses that belong to no memory: they name a region (a buffer, a threadgroup array, a constant) and a place in it, so
 * that an access far outside is known for what it is. Each access asks for the real address; a wrong one gets the address of scratch.
 */
#ifndef OPENMPS_HOST_CHECKS_H
#define OPENMPS_HOST_CHECKS_H

#include <stdint.h>

#include "driver/driver.h"
#include "driver/host/abi.h"
#include "driver/host/threadgroup.h"

#define MPS_HOST_CHECKED_VERSION 1

/* Addresses that kernels see: the mark, 14 bits of the region, 48 bits of the place, of which the region's begin is in the middle. */
#define MPS_CHECKED_MARK (UINT64_C(1) << 62)
#define MPS_CHECKED_REGION_SHIFT 48
#define MPS_CHECKED_MIDDLE (UINT64_C(1) << 40)
#define MPS_CHECKED_THREADGROUP 64u /* regions from here on are [[threadgroup(n)]] arguments; those before, buffers by index */
#define MPS_CHECKED_OBJECTS 128u    /* and from here on, variables of the library */
#define MPS_CHECKED_REGIONS (1u << 14)

/* What a site is about; READ and WRITE together: an atomic operation that does both. */
enum {
  MPS_SITE_READ = 1,
  MPS_SITE_WRITE = 2,
  MPS_SITE_ATOMIC = 4,
  MPS_SITE_COPY = 8, /* of a whole object, gaps between its members included */
  MPS_SITE_DIVISION = 16,
  MPS_SITE_BARRIER = 32,
  MPS_SITE_MEETING = 64, /* of a simdgroup */
};

/* The place of an access in the user's source. */
typedef struct mps_host_site {
  const char *file;
  uint32_t line; /* 0: in no function of the user's, but where a kernel's arguments are made ready */
  uint32_t kind; /* MPS_SITE_* */
  uint32_t alignment;
  uint32_t reserved;
} mps_host_site;

/* A variable of the library. */
typedef struct mps_host_object {
  const void *address; /* NULL: threadgroup memory, for which the driver gives room */
  const char *name;
  uint64_t bytes;
  uint64_t alignment;
} mps_host_object;

/* What instrumented code calls. Sites are numbers in the library's list. */
typedef struct mps_host_check_services {
  void *(*access)(void *pointer, uint64_t bytes, uint32_t site); /* the address to use in its place */
  void (*division)(uint32_t by_zero, uint32_t site);
  uint32_t (*before_meeting)(uint32_t site); /* the thread's number, for: */
  void (*after_meeting)(uint32_t thread);
} mps_host_check_services;

typedef struct mps_host_checked {
  uint32_t version;
  uint32_t site_count;
  uint32_t object_count;
  uint32_t reserved;
  const mps_host_site *sites;
  const mps_host_object *objects;
  const mps_host_check_services **services; /* where the driver puts its own */
} mps_host_checked;

/* Prepares a library that was loaded. NOT_FOUND: of another version. */
MPS_WARN_UNUSED mps_status mps_host_checks_prepare(const mps_host_checked *checked, const char *path);
/* Runs a kernel of such a library, thread by thread, on the calling thread of the system. KERNEL_ERROR: the first finding and how many
 * there are; the kernel went on to its end. */
MPS_WARN_UNUSED mps_status mps_host_checks_run(const mps_driver_device *device, mps_host_threadgroup_pool *pool,
                                               const mps_step_dispatch *step, const mps_host_checked *checked);
/* The memory behind an address that a kernel gave away, which runs on the calling thread; NULL when it is in no region. Addresses without
 * the mark, NULL among them, are what they are. */
const void *mps_host_checks_resolve(const void *address);

#endif
