/* SPDX-License-Identifier: BSD-3-Clause
 *
 * dispatch: a kernel over a grid. The grid is cut into boxes on threadgroup boundaries, outer dimensions first, as many as the
 * step's cost is worth; each box is one call of the kernel's entry.
 */
#include <string.h>

#include "driver/host/checks.h"
#include "driver/host/host.h"

#define MAX_BUFFERS MPS_HOST_ARGUMENTS
#define MAX_THREADGROUP_ARGUMENTS 4
#define THREADGROUP_ALIGNMENT 64

typedef struct dispatch {
  const mps_step_dispatch *step;
  void *buffers[MAX_BUFFERS];
  unsigned long long lengths[MAX_BUFFERS];
  uint64_t groups[3]; /* threadgroups in the grid */
  uint32_t pieces[3]; /* boxes a dimension */
  mps_host_threadgroup_pool *pool; /* NULL: each thread is for itself */
  _Atomic bool out_of_memory;      /* some groups were not run */
} dispatch;

uint32_t mps_host_chunk_count(const mps_host_workers *workers, double cost, uint64_t most) {
  uint32_t threads = mps_host_workers_count(workers);
  if (threads <= 1 || cost < MPS_HOST_PARALLEL_NS || most <= 1) return 1;
  double wanted = cost / MPS_HOST_CHUNK_NS;
  double limit = (double)threads * MPS_HOST_CHUNKS_PER_THREAD;
  uint32_t count = (uint32_t)(wanted < limit ? wanted : limit);
  return count < most ? count : (uint32_t)most;
}

static void set_threadgroup_memory(const mps_step_dispatch *step, void *scratch, void **memory) {
  unsigned char *next = scratch;
  for (unsigned i = 0; i < MAX_THREADGROUP_ARGUMENTS; i++) {
    memory[i] = next;
    next += (step->threadgroup_bytes[i] + THREADGROUP_ALIGNMENT - 1) / THREADGROUP_ALIGNMENT * THREADGROUP_ALIGNMENT;
  }
}

static void run_box(void *context, uint32_t chunk, void *scratch) {
  dispatch *d = context;
  const mps_step_dispatch *step = d->step;
  void *threadgroup[MAX_THREADGROUP_ARGUMENTS];
  set_threadgroup_memory(step, scratch, threadgroup);
  mps_host_dispatch call = {.buffers = d->buffers, .lengths = d->lengths, .threadgroup = threadgroup};
  uint32_t index = chunk;
  for (unsigned i = 0; i < 3; i++) {
    uint32_t piece = index % d->pieces[i];
    index /= d->pieces[i];
    /* Pieces differ by one group at most. */
    uint64_t base = d->groups[i] / d->pieces[i], more = d->groups[i] % d->pieces[i];
    uint64_t first = piece * base + (piece < more ? piece : more);
    uint64_t end = (first + base + (piece < more ? 1 : 0)) * step->group[i];
    call.grid[i] = step->threads[i];
    call.group[i] = step->group[i];
    call.begin[i] = first * step->group[i];
    call.end[i] = end < step->threads[i] ? end : step->threads[i];
  }
  if (!d->pool) {
    ((mps_host_entry)step->function->entry)(&call);
    return;
  }
  mps_host_group_state state = {0};
  if (mps_host_threadgroup_take(d->pool, &state.group) == MPS_STATUS_OK) {
    call.services = &mps_host_group_services;
    call.state = &state;
    ((mps_host_entry)step->function->entry)(&call);
    mps_host_threadgroup_give(d->pool, state.group);
    if (!state.failed) return;
  }
  atomic_store(&d->out_of_memory, true);
}

/* Outer dimensions are cut first: what a box reads and writes stays in one piece. */
static uint32_t cut(dispatch *d, uint32_t wanted) {
  uint32_t total = 1;
  for (unsigned i = 3; i-- > 0;) {
    uint32_t more = (wanted + total - 1) / total;
    d->pieces[i] = d->groups[i] < more ? (uint32_t)d->groups[i] : more;
    total *= d->pieces[i];
  }
  return total;
}

static mps_status check(const mps_step_dispatch *step) {
  uint64_t bytes = 0;
  for (unsigned i = 0; i < MAX_THREADGROUP_ARGUMENTS; i++) bytes += (uint64_t)step->threadgroup_bytes[i] + THREADGROUP_ALIGNMENT;
  if (step->argument_count > MAX_BUFFERS || bytes > MPS_HOST_SCRATCH_BYTES || !step->function->entry) {
    return mps_error_set(MPS_STATUS_INTERNAL_ERROR,
                         "%s: %u arguments (at most %d), %llu bytes of threadgroup memory (at most %zu)%s", step->function->name,
                         (unsigned)step->argument_count, MAX_BUFFERS, (unsigned long long)bytes, MPS_HOST_SCRATCH_BYTES,
                         step->function->entry ? "" : ", and no compiled code for this machine");
  }
  for (unsigned i = 0; i < 3; i++) {
    if (step->threads[i] <= UINT32_MAX || (step->function->flags & MPS_FUNCTION_64_BIT_GRID)) continue;
    return mps_error_set(MPS_STATUS_INTERNAL_ERROR, "%s: %llu threads in dimension %u, but its position in the grid has 32 bits",
                         step->function->name, (unsigned long long)step->threads[i], i);
  }
  return MPS_STATUS_OK;
}

mps_status mps_host_run_dispatch(mps_driver_queue *queue, const mps_step_dispatch *step) {
  mps_status status = check(step);
  if (status != MPS_STATUS_OK) return status;
  if (step->function->flags & MPS_FUNCTION_CHECKED)
    return mps_host_checks_run(&queue->device->base, &queue->device->threadgroups, step, step->function->handle);
  dispatch d;
  d.step = step;
  d.pool = step->function->flags & (MPS_FUNCTION_USES_BARRIER | MPS_FUNCTION_USES_SIMDGROUP) ? &queue->device->threadgroups : NULL;
  atomic_init(&d.out_of_memory, false);
  for (uint32_t i = 0; i < step->argument_count; i++) {
    d.buffers[i] = (void *)(uintptr_t)step->arguments[i].address;
    d.lengths[i] = step->arguments[i].length;
  }
  /* A kernel may look at buffers that were not set. */
  uint32_t looked_at = step->function->flags & MPS_FUNCTION_USES_TEXTURES ? MAX_BUFFERS : step->function->buffer_count;
  for (uint32_t i = step->argument_count; i < MAX_BUFFERS && i < looked_at; i++) {
    d.buffers[i] = NULL;
    d.lengths[i] = 0;
  }
  uint64_t most = 1;
  for (unsigned i = 0; i < 3; i++) {
    d.groups[i] = (step->threads[i] + step->group[i] - 1) / step->group[i];
    most = most > UINT32_MAX ? most : most * (d.groups[i] < UINT32_MAX ? d.groups[i] : UINT32_MAX);
  }
  double cost = step->step.cost > 0 ? step->step.cost : (double)step->threads[0] * (double)step->threads[1] * (double)step->threads[2];
  uint32_t wanted = mps_host_chunk_count(mps_host_region_workers(queue->region), cost, most);
  mps_host_region_run(queue->region, cut(&d, wanted), cost, run_box, &d);
  if (!atomic_load(&d.out_of_memory)) return MPS_STATUS_OK;
  return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "kernel '%s': no memory for the stacks of threadgroups of %u x %u x %u threads",
                       step->function->name, step->group[0], step->group[1], step->group[2]);
}
