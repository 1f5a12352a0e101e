/* SPDX-License-Identifier: BSD-3-Clause
 *
 * checks: see checks.h. A kernel without meetings is called for one thread at a time, one with meetings for one group at a time, so that
 * the place in the grid is known without asking the kernel.
 */
#include "driver/host/checks.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "driver/host/checks_internal.h"

#define MAX_BUFFERS 64u
#define THREADGROUP_ARGUMENTS 4u
#define PAGE_MASK 4095u
#define STACK_BELOW ((uintptr_t)1 << 20) /* bytes of a stack that count as a thread's own */
#define STACK_ABOVE ((uintptr_t)64 << 10)
#define FIBER_BYTES ((uintptr_t)256 << 10)

static _Thread_local checks_run *current;

/* ---- reports ---- */
void checks_name_thread(const checks_run *run, uint32_t thread, char *out, size_t capacity) {
  const uint32_t *size = run->size;
  snprintf(out, capacity, "(%llu, %llu, %llu)", (unsigned long long)(run->origin[0] + thread % size[0]),
           (unsigned long long)(run->origin[1] + thread / size[0] % size[1]), (unsigned long long)(run->origin[2] + thread / size[0] / size[1]));
}

void checks_name_region(const checks_run *run, const checks_region *region, char *out, size_t capacity) {
  unsigned index = (unsigned)(region - run->regions);
  if (region->name) snprintf(out, capacity, "%s variable '%s'", region->threadgroup ? "threadgroup" : "constant", region->name);
  else if (region->threadgroup) snprintf(out, capacity, "threadgroup argument %u", index - MPS_CHECKED_THREADGROUP);
  else snprintf(out, capacity, "buffer %u", index);
}

void checks_report(checks_run *run, const mps_host_site *site, const char *format, ...) {
  if (run->findings++) return;
  char what[600], thread[80];
  va_list list;
  va_start(list, format);
  vsnprintf(what, sizeof what, format, list);
  va_end(list);
  checks_name_thread(run, run->thread, thread, sizeof thread);
  if (site->line)
    snprintf(run->text, sizeof run->text, "%s:%u: kernel '%s' %s, in thread %s", site->file, site->line, run->step->function->name, what, thread);
  else
    snprintf(run->text, sizeof run->text, "kernel '%s' %s, when its arguments are made ready for thread %s", run->step->function->name, what, thread);
}

static const char *verb(uint32_t kind) {
  if (kind & MPS_SITE_ATOMIC) return kind == (MPS_SITE_ATOMIC | MPS_SITE_READ) ? "reads (atomically)" : "changes (atomically)";
  return kind & MPS_SITE_WRITE ? "writes" : "reads";
}

/* ---- accesses ---- */
/* The one before stays until the run ends: an argument by reference may still lead there. */
static bool grow_scratch(checks_scratch *scratch, uint64_t bytes) {
  bytes = ((bytes > 2 * scratch->bytes ? bytes : 2 * scratch->bytes) + 255) & ~(uint64_t)255;
  if (MPS_ARRAY_RESERVE(&scratch->memory, 1) != MPS_STATUS_OK) return false;
  void *memory = aligned_alloc(256, bytes);
  if (!memory) return false;
  memset(memory, 0, bytes);
  MPS_ARRAY_PUSH(&scratch->memory, memory);
  scratch->bytes = bytes;
  return true;
}

static void free_scratch(checks_scratch *scratch) {
  for (size_t i = 0; i < scratch->memory.count; i++) free(scratch->memory.items[i]);
  MPS_ARRAY_FINI(&scratch->memory);
}

/* What a wrong access gets: zeros to read; what is written is lost. */
static void *scratch_for(checks_run *run, uint64_t bytes, uint32_t kind) {
  checks_scratch *scratch = kind & MPS_SITE_READ ? &run->zeros : &run->trash;
  if (bytes > scratch->bytes && !grow_scratch(scratch, bytes)) {
    fprintf(stderr, "openmps: %s\nopenmps: no memory for %llu bytes in place of this access; the kernel cannot go on\n", run->text,
            (unsigned long long)bytes);
    abort(); /* in the middle of a kernel, from which nothing leads out */
  }
  void *memory = scratch->memory.items[scratch->memory.count - 1];
  /* An atomic operation before may have written there. */
  if ((kind & MPS_SITE_READ) && (kind & MPS_SITE_WRITE)) memset(memory, 0, 64);
  return memory;
}

static void report_region(checks_run *run, const checks_region *region, const mps_host_site *site, uint64_t bytes, int64_t offset, bool inside) {
  char name[200];
  checks_name_region(run, region, name, sizeof name);
  if (inside)
    checks_report(run, site, "%s %llu bytes at offset %lld of %s, where they are misaligned: they need a multiple of %u", verb(site->kind),
                  (unsigned long long)bytes, (long long)offset, name, site->alignment);
  else
    checks_report(run, site, "%s %llu bytes at offset %lld of %s, which has %llu bytes", verb(site->kind), (unsigned long long)bytes,
                  (long long)offset, name, (unsigned long long)region->length);
}

static void *check_region(checks_run *run, uint64_t address, uint64_t bytes, uint32_t number) {
  const mps_host_site *site = &run->checked->sites[number];
  uint32_t index = (uint32_t)(address >> MPS_CHECKED_REGION_SHIFT) & (MPS_CHECKED_REGIONS - 1);
  checks_region *region = index < run->region_count ? &run->regions[index] : NULL;
  if (!region || !region->memory) {
    checks_report(run, site, "%s %llu bytes at %#llx, which is far outside of what the kernel was given", verb(site->kind),
                  (unsigned long long)bytes, (unsigned long long)address);
    return scratch_for(run, bytes, site->kind);
  }
  int64_t offset = (int64_t)(address - region->first);
  bool inside = offset >= 0 && bytes <= region->length && (uint64_t)offset <= region->length - bytes;
  if (!inside || (address & (site->alignment - 1))) {
    report_region(run, region, site, bytes, offset, inside);
    return scratch_for(run, bytes, site->kind);
  }
  unsigned char *real = region->memory + offset;
  if (run->thread_count > 1 || region->threadgroup) checks_shadow_note(run, region, real, bytes, number);
  return real;
}

/* Memory that the driver or the library gave away by its own address. */
static bool is_known(const checks_run *run, uintptr_t p, uint64_t bytes) {
  uintptr_t here = (uintptr_t)__builtin_frame_address(0), base = (uintptr_t)run->stack;
  if (p - here < FIBER_BYTES) return true; /* variables of the thread */
  if (p - (base - STACK_BELOW) < STACK_BELOW + STACK_ABOVE) return true; /* and what it was called with */
  if (p - (uintptr_t)run < sizeof *run) return true;
  if (p - (uintptr_t)&mps_host_group_services < sizeof mps_host_group_services) return true; /* messages find their service there */
  for (uint32_t i = 0; i < run->checked->object_count; i++) {
    const mps_host_object *o = &run->checked->objects[i];
    if (o->address && p >= (uintptr_t)o->address && p + bytes <= (uintptr_t)o->address + o->bytes) return true;
  }
  return false;
}

/* *out_begins: it begins in a buffer's memory (known_begin), or between its end and the next one. */
static bool find_memory(checks_run *run, uint64_t p, uint64_t bytes, bool *out_begins) {
  uint64_t begin = 0, length = 0;
  if (p - run->known_begin < run->known_length && p - run->known_begin + bytes <= run->known_length) return true;
  const mps_driver_device *device = run->device;
  if (!device->find_memory) return true;
  if (!device->find_memory(device->find_context, p, &begin, &length)) return false;
  *out_begins = true;
  run->known_begin = begin;
  run->known_length = length;
  return p - begin + bytes <= length;
}

static void *check_plain(checks_run *run, void *pointer, uint64_t bytes, uint32_t number) {
  uintptr_t p = (uintptr_t)pointer;
  if (is_known(run, p, bytes)) return pointer;
  const mps_host_site *site = &run->checked->sites[number];
  if (p <= PAGE_MASK) {
    checks_report(run, site, "%s %llu bytes through a null pointer (at %#llx)", verb(site->kind), (unsigned long long)bytes, (unsigned long long)p);
    return scratch_for(run, bytes, site->kind);
  }
  bool inside = false;
  if (!find_memory(run, p, bytes, &inside)) {
    if (inside)
      checks_report(run, site, "%s %llu bytes at offset %llu of a buffer of %llu bytes that it has by address", verb(site->kind),
                    (unsigned long long)bytes, (unsigned long long)(p - run->known_begin), (unsigned long long)run->known_length);
    else
      checks_report(run, site, "%s %llu bytes at the address %#llx, which is in no buffer", verb(site->kind), (unsigned long long)bytes,
                    (unsigned long long)p);
    return scratch_for(run, bytes, site->kind);
  }
  if (site->alignment > 1 && p % site->alignment != 0) {
    checks_report(run, site, "%s %llu bytes at the misaligned address %#llx: they need a multiple of %u", verb(site->kind),
                  (unsigned long long)bytes, (unsigned long long)p, site->alignment);
    return scratch_for(run, bytes, site->kind);
  }
  if (run->thread_count > 1) checks_shadow_note(run, NULL, pointer, bytes, number);
  return pointer;
}

static void *access(void *pointer, uint64_t bytes, uint32_t site) {
  checks_run *run = current;
  if (!run || bytes == 0) return pointer;
  if (run->doubt.memory) checks_settle_doubt(run);
  uint64_t address = (uint64_t)(uintptr_t)pointer;
  return address >> 62 == 1 ? check_region(run, address, bytes, site) : check_plain(run, pointer, bytes, site);
}

static void division(uint32_t by_zero, uint32_t site) {
  (void)by_zero;
  if (current) checks_report(current, &current->checked->sites[site], "divides an integer by zero");
}

static uint32_t before_meeting(uint32_t site) { return current ? checks_before_meeting(current, site) : 0; }

static void after_meeting(uint32_t thread) {
  if (current) current->thread = thread;
}

static const mps_host_check_services services = {
    .access = access, .division = division, .before_meeting = before_meeting, .after_meeting = after_meeting};

mps_status mps_host_checks_prepare(const mps_host_checked *checked, const char *path) {
  if (checked->version != MPS_HOST_CHECKED_VERSION)
    return mps_error_set(MPS_STATUS_NOT_FOUND, "%s was checked for interface %u, this is %d; compile it again", path, checked->version,
                         MPS_HOST_CHECKED_VERSION);
  *checked->services = &services;
  return MPS_STATUS_OK;
}

const void *mps_host_checks_resolve(const void *pointer) {
  uint64_t address = (uint64_t)(uintptr_t)pointer;
  if (!current || address >> 62 != 1) return pointer;
  uint32_t index = (uint32_t)(address >> MPS_CHECKED_REGION_SHIFT) & (MPS_CHECKED_REGIONS - 1);
  const checks_region *region = index < current->region_count ? &current->regions[index] : NULL;
  return region && region->memory && address - region->first < region->length ? region->memory + (address - region->first) : NULL;
}

/* ---- regions ---- */
static void set_region(checks_run *run, uint32_t index, void *contents, uint64_t length, bool keep_offset) {
  checks_region *region = &run->regions[index];
  region->memory = contents;
  region->length = length;
  /* Aligned as the memory is. */
  region->first = MPS_CHECKED_MARK | (uint64_t)index << MPS_CHECKED_REGION_SHIFT | MPS_CHECKED_MIDDLE;
  if (keep_offset) region->first |= (uintptr_t)contents & PAGE_MASK;
}

static bool own_region(checks_run *run, uint32_t index, uint64_t length) {
  void *contents = aligned_alloc(256, (length + 256) / 256 * 256);
  if (!contents) return false;
  memset(contents, 0, length);
  set_region(run, index, contents, length, false);
  run->regions[index].owned = run->regions[index].threadgroup = true;
  return true;
}

static bool make_regions(checks_run *run) {
  run->region_count = MPS_CHECKED_OBJECTS + run->checked->object_count;
  run->regions = calloc(run->region_count, sizeof *run->regions);
  if (!run->regions) return false;
  for (uint32_t i = 0; i < run->step->argument_count && i < MAX_BUFFERS; i++) {
    const mps_step_argument *a = &run->step->arguments[i];
    if (a->address) set_region(run, i, (void *)(uintptr_t)a->address, a->length, true);
  }
  for (uint32_t i = 0; i < THREADGROUP_ARGUMENTS; i++)
    if (!own_region(run, MPS_CHECKED_THREADGROUP + i, run->step->threadgroup_bytes[i])) return false;
  for (uint32_t i = 0; i < run->checked->object_count; i++) {
    const mps_host_object *o = &run->checked->objects[i];
    uint32_t index = MPS_CHECKED_OBJECTS + i;
    if (o->address) set_region(run, index, (void *)(uintptr_t)o->address, o->bytes, false);
    else if (!own_region(run, index, o->bytes)) return false;
    run->regions[index].name = o->name;
  }
  return true;
}

static void destroy_run(checks_run *run) {
  for (uint32_t i = 0; run->regions && i < run->region_count; i++)
    if (run->regions[i].owned) free(run->regions[i].memory);
  checks_shadow_free(run->shadow);
  free(run->barrier_sites);
  free(run->regions);
  free_scratch(&run->zeros);
  free_scratch(&run->trash);
  free(run);
}

static checks_run *create_run(const mps_step_dispatch *step, const mps_host_checked *checked) {
  checks_run *run = calloc(1, sizeof *run);
  if (!run) return NULL;
  run->step = step;
  run->checked = checked;
  run->shadow = checks_shadow_create();
  if (run->shadow && grow_scratch(&run->zeros, CHECKS_SCRATCH_BYTES) && grow_scratch(&run->trash, CHECKS_SCRATCH_BYTES) && make_regions(run))
    return run;
  destroy_run(run);
  return NULL;
}

/* ---- running ---- */
static void member(void *context, unsigned index) {
  checks_run *run = context;
  run->thread = index;
  run->function(run->context, index);
  run->threads[index].ended = true;
}

/* Stands between the kernel and the driver, to learn which thread begins. */
static int run_group(const mps_host_dispatch *call, unsigned count, void (*function)(void *, unsigned), void *context) {
  checks_run *run = current;
  run->function = function;
  run->context = context;
  checks_begin_group(run, count);
  int done = mps_host_group_services.run_group(call, count, member, run);
  if (done) checks_end_group(run);
  return done;
}

/* One group of a kernel with meetings; of others, its threads one by one. */
static void run_box(checks_run *run, mps_host_dispatch *call, bool together) {
  for (int i = 0; i < 3; i++) run->origin[i] = call->begin[i];
  if (together) {
    ((mps_host_entry)run->step->function->entry)(call);
    return;
  }
  uint64_t begin[3], end[3];
  memcpy(begin, call->begin, sizeof begin);
  memcpy(end, call->end, sizeof end);
  checks_begin_group(run, run->size[0] * run->size[1] * run->size[2]);
  run->thread = 0;
  for (uint64_t z = begin[2]; z < end[2]; z++)
    for (uint64_t y = begin[1]; y < end[1]; y++)
      for (uint64_t x = begin[0]; x < end[0]; x++, run->thread++) {
        const uint64_t at[3] = {x, y, z};
        for (int i = 0; i < 3; i++) call->end[i] = (call->begin[i] = at[i]) + 1;
        ((mps_host_entry)run->step->function->entry)(call);
      }
  checks_settle_doubt(run);
}

static void run_groups(checks_run *run, mps_host_dispatch *call, bool together, const mps_host_group_state *state) {
  const mps_step_dispatch *step = run->step;
  for (uint64_t z = 0; z < step->threads[2]; z += step->group[2])
    for (uint64_t y = 0; y < step->threads[1]; y += step->group[1])
      for (uint64_t x = 0; x < step->threads[0] && !state->failed; x += step->group[0]) {
        const uint64_t at[3] = {x, y, z};
        for (int i = 0; i < 3; i++) {
          uint64_t left = step->threads[i] - at[i];
          run->size[i] = left < step->group[i] ? (uint32_t)left : step->group[i];
          call->begin[i] = at[i];
          call->end[i] = at[i] + run->size[i];
        }
        run_box(run, call, together);
      }
}

static mps_status run_kernel(checks_run *run, mps_host_threadgroup_pool *pool) {
  const mps_step_dispatch *step = run->step;
  void *buffers[MAX_BUFFERS] = {NULL}, *threadgroup[THREADGROUP_ARGUMENTS];
  unsigned long long lengths[MAX_BUFFERS] = {0};
  for (uint32_t i = 0; i < MAX_BUFFERS; i++) {
    buffers[i] = (void *)(uintptr_t)run->regions[i].first; /* NULL stays */
    lengths[i] = run->regions[i].length;
  }
  for (uint32_t i = 0; i < THREADGROUP_ARGUMENTS; i++) threadgroup[i] = (void *)(uintptr_t)run->regions[MPS_CHECKED_THREADGROUP + i].first;
  mps_host_services group_services = mps_host_group_services;
  group_services.run_group = run_group;
  mps_host_group_state state = {0};
  mps_host_dispatch call = {.buffers = buffers, .lengths = lengths, .threadgroup = threadgroup, .services = &group_services, .state = &state};
  for (int i = 0; i < 3; i++) {
    call.grid[i] = step->threads[i];
    call.group[i] = step->group[i];
  }
  bool together = step->function->flags & (MPS_FUNCTION_USES_BARRIER | MPS_FUNCTION_USES_SIMDGROUP);
  if (together) MPS_TRY(mps_host_threadgroup_take(pool, &state.group));
  checks_run *outer = current;
  current = run;
  run->stack = __builtin_frame_address(0);
  run_groups(run, &call, together, &state);
  current = outer;
  if (together) mps_host_threadgroup_give(pool, state.group);
  return state.failed ? mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "kernel '%s': no memory for the stacks of its threads", step->function->name)
                      : MPS_STATUS_OK;
}

mps_status mps_host_checks_run(const mps_driver_device *device, mps_host_threadgroup_pool *pool, const mps_step_dispatch *step,
                               const mps_host_checked *checked) {
  checks_run *run = create_run(step, checked);
  if (!run) return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory to check kernel '%s'", step->function->name);
  run->device = device;
  mps_status status = run_kernel(run, pool);
  if (status == MPS_STATUS_OK && run->findings == 1) status = mps_error_set(MPS_STATUS_KERNEL_ERROR, "%s", run->text);
  else if (status == MPS_STATUS_OK && run->findings)
    status = mps_error_set(MPS_STATUS_KERNEL_ERROR, "%s (the first of %llu findings)", run->text, (unsigned long long)run->findings);
  destroy_run(run);
  return status;
}
