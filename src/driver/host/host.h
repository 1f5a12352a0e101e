/* SPDX-License-Identifier: BSD-3-Clause
 *
 * host: what the files of the host driver share. The device runs kernels on the processors of this machine: one executor thread a
 * queue (the caller's), helped by the workers.
 */
#ifndef OPENMPS_HOST_HOST_H
#define OPENMPS_HOST_HOST_H

#include <stdatomic.h>

#include "base/hash.h"
#include "base/thread.h"
#include "driver/driver.h"
#include "driver/host/abi.h"
#include "driver/host/pointwise.h"
#include "driver/host/threadgroup.h"
#include "driver/host/workers.h"
#include "driver/parallel.h"

/* A region is opened for work of at least this many nanoseconds; its chunks are about this long and at most this many a thread. Short
 * chunks matter on a busy machine: a helper that loses its processor in the middle of one is waited for. */
#define MPS_HOST_PARALLEL_NS 40000.0
#define MPS_HOST_CHUNK_NS 20000.0
#define MPS_HOST_CHUNKS_PER_THREAD 32

typedef struct mps_host_device {
  mps_driver_device base;
  _Atomic uint64_t allocated;
  mps_host_workers *workers;
  mps_mutex mutex; /* of builtin */
  mps_driver_library *_Atomic builtin;
  mps_host_threadgroup_pool threadgroups;
} mps_host_device;

struct mps_driver_library {
  struct mps_dylib *dylib; /* NULL: the table belongs to the caller */
  uint32_t function_count;
  mps_driver_function *functions;
  mps_map by_name;
  mps_host_conversions conversions; /* what of them the library has */
};

struct mps_driver_queue {
  mps_parallel parallel; /* what dense calls and callbacks spread over */
  double cost;           /* of the step that runs, in nanoseconds */
  mps_host_device *device;
  mps_host_region *region;
  mps_host_plan plan; /* of the pointwise step that runs */
  mps_host_plan *stages; /* of the reduce step that runs */
  uint32_t stage_capacity;
  void *partials; /* of reductions in chunks */
  size_t partial_capacity;
};

/* memory.c */
mps_status mps_host_allocate(mps_driver_device *device, uint64_t length, mps_driver_memory *out_memory);
void mps_host_free(mps_driver_device *device, mps_driver_memory *memory);
void mps_host_discard(mps_driver_device *device, mps_driver_memory *memory, uint64_t offset, uint64_t length);
uint64_t mps_host_allocated(const mps_driver_device *device);

/* library.c */
#define MPS_HOST_PATH_BYTES 4096
/* Path and level of the shipped kernels that suit this machine best. NOT_FOUND. */
mps_status mps_host_find_kernels(char *path, size_t capacity, const char **out_level);
mps_status mps_host_builtin_library(mps_driver_device *device, mps_driver_library **out_library);
mps_status mps_host_load_library(mps_driver_device *device, const void *image, size_t length, const char *path,
                                 mps_driver_library **out_library);
/* A library over a table that outlives it; for the loader, and for tests that bring their own kernels. */
mps_status mps_host_library_create(const mps_host_library_table *table, const char *path, mps_driver_library **out_library);
void mps_host_unload_library(mps_driver_library *library); /* accepts NULL */
uint32_t mps_host_function_count(const mps_driver_library *library);
const mps_driver_function *mps_host_function_at(const mps_driver_library *library, uint32_t index);
const mps_driver_function *mps_host_find_function(const mps_driver_library *library, const char *name);

/* dispatch.c */
mps_status mps_host_run_dispatch(mps_driver_queue *queue, const mps_step_dispatch *step);
/* Chunks for work of `cost` nanoseconds that can be cut into at most `most` pieces; 1 = not worth a region. */
uint32_t mps_host_chunk_count(const mps_host_workers *workers, double cost, uint64_t most);

/* reduce.c */
mps_status mps_host_run_reduce(mps_driver_queue *queue, const mps_step_reduce *step, const mps_host_conversions *conversions);

/* copy.c */
void mps_host_run_copy(mps_driver_queue *queue, const mps_step_copy *step);
void mps_host_run_fill(mps_driver_queue *queue, const mps_step_fill *step);

#endif
