/* SPDX-License-Identifier: BSD-3-Clause
 *
 * device: the host driver's device: this machine's processors and this process's memory.
 */
#include <stdlib.h>

#include "base/options.h"
#include "base/os/os.h"
#include "base/time.h"
#include "driver/host/host.h"

static void close_device(mps_driver_device *device) {
  mps_host_device *host = (mps_host_device *)device;
  mps_host_workers_destroy(host->workers);
  mps_host_threadgroup_drain(&host->threadgroups);
  mps_mutex_fini(&host->threadgroups.lock);
  mps_host_unload_library(atomic_load(&host->builtin));
  mps_mutex_fini(&host->mutex);
  free(host);
}

/* ---- queues ---- */
typedef struct pieces {
  void (*function)(void *context, uint32_t index);
  void *context;
  uint32_t count, chunk; /* pieces, and how many of them a chunk has */
} pieces;

static void run_piece(void *context, uint32_t chunk, void *scratch) {
  const pieces *p = context;
  (void)scratch;
  uint32_t left = p->count - chunk * p->chunk;
  for (uint32_t i = 0; i < (left < p->chunk ? left : p->chunk); i++) p->function(p->context, chunk * p->chunk + i);
}

static void run_parallel(const mps_parallel *parallel, uint32_t count, void (*function)(void *context, uint32_t index), void *context) {
  const mps_driver_queue *queue = (const mps_driver_queue *)parallel;
  uint32_t chunk = count / MPS_HOST_MAX_CHUNKS + 1;
  pieces p = {function, context, count, chunk};
  mps_host_region_run(queue->region, (uint32_t)(((uint64_t)count + chunk - 1) / chunk), queue->cost, run_piece, &p);
}

static mps_status create_queue(mps_driver_device *device, mps_driver_queue **out_queue) {
  mps_host_device *host = (mps_host_device *)device;
  *out_queue = NULL;
  mps_driver_queue *queue = calloc(1, sizeof *queue);
  if (!queue) return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for a queue");
  mps_status status = mps_host_region_open(host->workers, &queue->region);
  if (status != MPS_STATUS_OK) {
    free(queue);
    return status;
  }
  queue->device = host;
  queue->parallel = (mps_parallel){.run = run_parallel, .thread_count = mps_host_workers_count(host->workers)};
  *out_queue = queue;
  return MPS_STATUS_OK;
}

static void destroy_queue(mps_driver_queue *queue) {
  if (!queue) return;
  mps_host_region_close(queue->region);
  free(queue->stages);
  free(queue->partials);
  free(queue);
}

static mps_status find_library(mps_driver_queue *queue, mps_driver_library **out_library) {
  mps_driver_library *library = atomic_load_explicit(&queue->device->builtin, memory_order_acquire);
  if (!library) {
    mps_status status = mps_host_builtin_library(&queue->device->base, &library);
    if (status != MPS_STATUS_OK) return status;
  }
  *out_library = library;
  return MPS_STATUS_OK;
}

static mps_status run_pointwise(mps_driver_queue *queue, const mps_step_pointwise *step) {
  mps_driver_library *library;
  mps_status status = find_library(queue, &library);
  if (status != MPS_STATUS_OK) return status;
  return mps_host_pointwise_run(&queue->plan, &step->program, &library->conversions, queue->region, step->step.cost);
}

static mps_status run_reduce(mps_driver_queue *queue, const mps_step_reduce *step) {
  mps_driver_library *library;
  mps_status status = find_library(queue, &library);
  return status == MPS_STATUS_OK ? mps_host_run_reduce(queue, step, &library->conversions) : status;
}

static mps_status run_dense(mps_driver_queue *queue, const mps_step_dense *step) {
  const mps_parallel *previous = mps_parallel_set(&queue->parallel);
  mps_status status = step->function(step->parameters);
  mps_parallel_set(previous);
  return status;
}

static mps_status run_callback(mps_driver_queue *queue, const mps_step_callback *step) {
  const mps_parallel *previous = mps_parallel_set(&queue->parallel);
  step->function(step->context);
  mps_parallel_set(previous);
  return MPS_STATUS_OK;
}

static mps_status execute(mps_driver_queue *queue, const mps_step *step) {
  queue->cost = step->cost;
  switch (step->kind) {
    case MPS_STEP_DISPATCH: return mps_host_run_dispatch(queue, (const mps_step_dispatch *)step);
    case MPS_STEP_POINTWISE: return run_pointwise(queue, (const mps_step_pointwise *)step);
    case MPS_STEP_DENSE: return run_dense(queue, (const mps_step_dense *)step);
    case MPS_STEP_COPY: mps_host_run_copy(queue, (const mps_step_copy *)step); return MPS_STATUS_OK;
    case MPS_STEP_FILL: mps_host_run_fill(queue, (const mps_step_fill *)step); return MPS_STATUS_OK;
    case MPS_STEP_REDUCE: return run_reduce(queue, (const mps_step_reduce *)step);
    case MPS_STEP_CALLBACK: return run_callback(queue, (const mps_step_callback *)step);
    default:
      return mps_error_set(MPS_STATUS_INTERNAL_ERROR, "the host driver was given a step of kind %u (%s)", (unsigned)step->kind,
                           step->label ? step->label : "");
  }
}

static uint64_t timestamp(mps_driver_queue *queue) {
  (void)queue; /* what was executed is done */
  return mps_time_ns();
}

/* ---- open ---- */
static const mps_driver_device_vtable vtable = {
    .close = close_device,
    .allocate = mps_host_allocate,
    .free = mps_host_free,
    .discard = mps_host_discard,
    .allocated = mps_host_allocated,
    .builtin_library = mps_host_builtin_library,
    .load_library = mps_host_load_library,
    .unload_library = mps_host_unload_library,
    .function_count = mps_host_function_count,
    .function_at = mps_host_function_at,
    .find_function = mps_host_find_function,
    .create_queue = create_queue,
    .destroy_queue = destroy_queue,
    .execute = execute,
    .drain = NULL,
    .timestamp = timestamp,
};

static mps_driver_limits limits_of_machine(uint32_t threads) {
  uint64_t page = mps_os_page_size();
  uint64_t memory = mps_os_total_memory();
  return (mps_driver_limits){
      .page_bytes = page,
      .buffer_alignment = 64,
      .max_buffer_length = memory / page * page,
      .recommended_memory = memory / 4 * 3 / page * page,
      .core_count = threads,
      .thread_execution_width = 32,
      .max_threads_per_threadgroup = 1024,
      .preferred_threads_per_threadgroup = 1,
      .threadgroup_memory_bytes = 32768,
      .unified_memory = true,
      .asynchronous = false,
  };
}

static mps_status open_device(mps_driver_device **out_device) {
  *out_device = NULL;
  mps_host_device *host = calloc(1, sizeof *host);
  if (!host) return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for the device");
  int64_t chosen = mps_option_int(MPS_OPTION_THREADS);
  uint32_t threads = chosen > 0 ? (uint32_t)(chosen < 1024 ? chosen : 1024) : mps_os_cpu_count();
  mps_status status = mps_host_workers_create(threads, &host->workers);
  if (status != MPS_STATUS_OK) {
    free(host);
    return status;
  }
  mps_mutex_init(&host->mutex);
  mps_mutex_init(&host->threadgroups.lock);
  char path[MPS_HOST_PATH_BYTES + 64];
  const char *level;
  /* Missing kernels are reported by whoever needs them: the level is only for people here. */
  if (mps_host_find_kernels(path, sizeof path, &level) != MPS_STATUS_OK) level = mps_os_cpu_level();
  host->base = (mps_driver_device){
      .vtable = &vtable, .limits = limits_of_machine(threads), .name = mps_os_cpu_name(), .kernel_level = level};
  *out_device = &host->base;
  return MPS_STATUS_OK;
}

const mps_driver mps_driver_host = {.name = "host", .open = open_device};
