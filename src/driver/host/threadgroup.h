/* SPDX-License-Identifier: BSD-3-Clause
 *
 * threadgroup: runs the threads of one threadgroup side by side, as fibers of the calling thread (docs/decisions/0013-fibers.md).
 * What threads of a simdgroup exchange, and who takes part, is decided here; what is made of it, in kernels/include/metal_simdgroup.
 */
#ifndef OPENMPS_HOST_THREADGROUP_H
#define OPENMPS_HOST_THREADGROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/thread.h"
#include "driver/host/abi.h"
#include "openmps/status.h"

#define MPS_HOST_GROUP_THREADS 1024u /* at most */

/* Fibers with their stacks, for one threadgroup at a time. */
typedef struct mps_host_threadgroup mps_host_threadgroup;

/* Those that nobody uses now; as many are made as threads of the system have run groups at once. Zero is an empty pool. */
typedef struct mps_host_threadgroup_pool {
  mps_mutex lock;
  mps_host_threadgroup *idle;
} mps_host_threadgroup_pool;

/* What mps_host_dispatch.state points to. */
typedef struct mps_host_group_state {
  mps_host_threadgroup *group;
  bool failed; /* a group was not run, for want of memory */
} mps_host_group_state;

extern const mps_host_services mps_host_group_services;

/* A group of the pool, or a new one. OUT_OF_MEMORY. */
MPS_WARN_UNUSED mps_status mps_host_threadgroup_take(mps_host_threadgroup_pool *pool, mps_host_threadgroup **out_group);
void mps_host_threadgroup_give(mps_host_threadgroup_pool *pool, mps_host_threadgroup *group);
/* Frees what the pool holds. */
void mps_host_threadgroup_drain(mps_host_threadgroup_pool *pool);

/* Runs function(context, i) for each i < count (1 to 1024) until all have returned. OUT_OF_MEMORY: none was run. The functions use
 * mps_host_group_services. */
MPS_WARN_UNUSED mps_status mps_host_threadgroup_run(mps_host_threadgroup *group, uint32_t count, void (*function)(void *, unsigned),
                                                    void *context);

#endif
