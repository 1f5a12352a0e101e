/* SPDX-License-Identifier: BSD-3-Clause
 *
 * workers: the threads that help executors. A parallel region is cut into chunks that are claimed one by one; whoever opened the
 * region claims too, and waits at the end only for chunks that a helper has claimed and not finished. A helper that comes late finds
 * no chunk left and is never waited for: on a busy machine that decides everything.
 */
#ifndef OPENMPS_HOST_WORKERS_H
#define OPENMPS_HOST_WORKERS_H

#include <stddef.h>
#include <stdint.h>

#include "openmps/status.h"

/* Memory of one thread for the time of one chunk; what it holds does not survive the chunk. 64-byte aligned. */
#define MPS_HOST_SCRATCH_BYTES ((size_t)1 << 19)

/* Chunks of a region, at most. */
#define MPS_HOST_MAX_CHUNKS ((1u << 21) - 1)

typedef struct mps_host_workers mps_host_workers;
typedef struct mps_host_region mps_host_region;

/* Runs one chunk; called by any number of threads at once. `scratch` belongs to the calling thread. */
typedef void (*mps_host_task)(void *context, uint32_t chunk, void *scratch);

/* `thread_count` includes the thread that opens regions. Helpers start at the first region that can use them. */
MPS_WARN_UNUSED mps_status mps_host_workers_create(uint32_t thread_count, mps_host_workers **out_workers);
/* Joins the helpers; no region is open. Accepts NULL. */
void mps_host_workers_destroy(mps_host_workers *workers);
uint32_t mps_host_workers_count(const mps_host_workers *workers);

/* A place for one executor's regions, with the executor's own scratch. Memory of a closed region is reused, never freed before the
 * workers are destroyed. OUT_OF_MEMORY. */
MPS_WARN_UNUSED mps_status mps_host_region_open(mps_host_workers *workers, mps_host_region **out_region);
void mps_host_region_close(mps_host_region *region); /* accepts NULL */
/* Runs task(context, 0 .. chunk_count - 1), each once, in any order and on any thread, and returns when all are done. At most
 * MPS_HOST_MAX_CHUNKS. `cost` is that of all chunks, in nanoseconds on one core.
 * One thread at a time per region; a task opens no region. Without helpers the chunks run in order. */
void mps_host_region_run(mps_host_region *region, uint32_t chunk_count, double cost, mps_host_task task, void *context);
/* The scratch of the executor, for work that is not worth a region. */
void *mps_host_region_scratch(mps_host_region *region);
mps_host_workers *mps_host_region_workers(mps_host_region *region);

#endif
