/* SPDX-License-Identifier: BSD-3-Clause
 *
 * threadgroup: see threadgroup.h. One simdgroup runs until each of its lanes waits at a barrier or is done, then the next one. A lane that
 * stops goes straight on to the next lane that is ready; when none is, the scheduler looks who meets. It never finds a state without a
 * way out: where lanes meet somebody always goes, and a barrier opens when all threads that are not done wait at one.
 */
#include "driver/host/threadgroup.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/os/fiber.h"
#include "driver/host/shader_log.h"

#define WIDTH 32u
#define STACK_BYTES ((size_t)256 << 10)
#define LOOP_DEPTH 16u
/* Tops of stacks lie so far apart within a page: at equal distances from page to page they would fight for the same lines of the cache. */
#define STACK_STAGGER 640u

/* A loop that a lane is in: where it began, and how often it went round. */
typedef struct loop {
  const void *site;
  unsigned iteration;
} loop;

typedef struct lane {
  mps_fiber fiber;
  mps_host_threadgroup *group;
  uint32_t index; /* in the group */
  const void *site; /* where it meets others */
  const void *value;
  unsigned bytes;
  uint32_t depth; /* loops it is in; those beyond LOOP_DEPTH are not told apart */
  loop loops[LOOP_DEPTH];
} lane;

/* Lanes of a simdgroup, a bit each. A lane without a bit is done. */
typedef struct simdgroup {
  uint32_t ready, meeting, waiting; /* waiting: at a barrier */
  lane *lanes;                      /* NULL: not made yet */
  void *stacks;
} simdgroup;

struct mps_host_threadgroup {
  mps_host_threadgroup *next; /* in the pool */
  mps_fiber scheduler;
  void (*function)(void *context, unsigned index);
  void *context;
  simdgroup *now;   /* that runs */
  lane *running;
  uint32_t active;  /* lanes of the last meeting */
  unsigned surplus; /* iterations of loops beyond LOOP_DEPTH */
  bool stopping;
  void *storage;    /* of loops over lanes */
  size_t storage_bytes;
  simdgroup simdgroups[MPS_HOST_GROUP_THREADS / WIDTH];
  _Alignas(64) unsigned char values[WIDTH * MPS_HOST_MEETING_BYTES]; /* of the last meeting */
};

/* The group that the calling thread of the system runs. Never read after a switch: the compiler may keep its address. */
static _Thread_local mps_host_threadgroup *current;
static _Thread_local unsigned lone_iteration;

/* ---- lanes ---- */
static void resume(mps_host_threadgroup *group, mps_fiber *from) {
  uint32_t ready = group->now->ready;
  if (ready) {
    lane *next = &group->now->lanes[__builtin_ctz(ready)];
    group->running = next;
    mps_fiber_switch(from, &next->fiber);
  } else {
    mps_fiber_switch(from, &group->scheduler);
  }
}

/* Stops the running lane; it is in one of the other sets of its simdgroup, or done. */
static void stop(mps_host_threadgroup *group) {
  lane *self = group->running;
  group->now->ready &= ~(1u << self->index % WIDTH);
  resume(group, &self->fiber);
}

static void lane_main(void *context) {
  lane *self = context;
  mps_host_threadgroup *group = self->group;
  mps_fiber_entered(&self->fiber);
  while (!group->stopping) { /* one round for each group */
    group->function(group->context, self->index);
    stop(group);
  }
  mps_fiber_leave(&self->fiber, &group->scheduler);
}

static void destroy_lanes(mps_host_threadgroup *group, simdgroup *s) {
  if (!s->lanes) return;
  mps_fiber_of_thread(&group->scheduler);
  group->stopping = true;
  for (uint32_t i = 0; i < WIDTH; i++) {
    mps_fiber_switch(&group->scheduler, &s->lanes[i].fiber); /* it ends */
    mps_fiber_destroy(&s->lanes[i].fiber);
  }
  group->stopping = false;
  mps_os_stacks_unmap(s->stacks, WIDTH, STACK_BYTES);
  free(s->lanes);
  *s = (simdgroup){0};
}

static mps_status create_lanes(mps_host_threadgroup *group, uint32_t number) {
  simdgroup *s = &group->simdgroups[number];
  if (s->lanes) return MPS_STATUS_OK;
  lane *lanes = calloc(WIDTH, sizeof *lanes);
  if (!lanes) return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for the records of %u threads", WIDTH);
  mps_status status = mps_os_stacks_map(WIDTH, STACK_BYTES, &s->stacks);
  uint32_t made = 0;
  for (; made < WIDTH && status == MPS_STATUS_OK; made++) {
    lane *l = &lanes[made];
    l->group = group;
    l->index = number * WIDTH + made;
    size_t bytes = STACK_BYTES - made * STACK_STAGGER;
    status = mps_fiber_create(&l->fiber, mps_os_stack_at(s->stacks, made, STACK_BYTES), bytes, lane_main, l);
  }
  if (status == MPS_STATUS_OK) {
    s->lanes = lanes;
    return MPS_STATUS_OK;
  }
  for (uint32_t i = 0; i + 1 < made; i++) mps_fiber_destroy(&lanes[i].fiber);
  mps_os_stacks_unmap(s->stacks, WIDTH, STACK_BYTES);
  s->stacks = NULL;
  free(lanes);
  return status;
}

/* ---- meetings ---- */
/* Negative: `a` is behind `b` in the kernel and goes first. 0: they meet. By the loops they are in, outermost first, then by the place. */
static int compare(const lane *a, const lane *b) {
  for (uint32_t i = 0;; i++) {
    bool in_a = i < a->depth && i < LOOP_DEPTH, in_b = i < b->depth && i < LOOP_DEPTH;
    uintptr_t at_a = (uintptr_t)(in_a ? a->loops[i].site : a->site), at_b = (uintptr_t)(in_b ? b->loops[i].site : b->site);
    if (at_a != at_b) return at_a < at_b ? -1 : 1;
    if (!in_a || !in_b) return (int)in_b - (int)in_a;
    if (a->loops[i].iteration != b->loops[i].iteration) return a->loops[i].iteration < b->loops[i].iteration ? -1 : 1;
  }
}

/* Makes those ready that go first, and copies what they bring. */
static void release_meeting(mps_host_threadgroup *group, simdgroup *s) {
  const lane *first = &s->lanes[__builtin_ctz(s->meeting)];
  uint32_t active = 0;
  for (uint32_t left = s->meeting; left; left &= left - 1) {
    const lane *l = &s->lanes[__builtin_ctz(left)];
    int order = compare(l, first);
    if (order < 0) active = 0;
    if (order <= 0) active |= left & -left;
    if (order < 0) first = l;
  }
  for (uint32_t left = active; left; left &= left - 1) {
    uint32_t i = (uint32_t)__builtin_ctz(left);
    memcpy(group->values + (size_t)i * first->bytes, s->lanes[i].value, first->bytes);
  }
  s->meeting &= ~active;
  s->ready = group->active = active;
}

/* ---- groups ---- */
/* Until each lane waits at a barrier or is done. */
static void run_simdgroup(mps_host_threadgroup *group, simdgroup *s) {
  group->now = s;
  for (;;) {
    if (s->ready) resume(group, &group->scheduler);
    if (!s->meeting) return;
    release_meeting(group, s);
  }
}

mps_status mps_host_threadgroup_run(mps_host_threadgroup *group, uint32_t count, void (*function)(void *, unsigned), void *context) {
  uint32_t simdgroups = (count + WIDTH - 1) / WIDTH;
  for (uint32_t i = 0; i < simdgroups; i++) {
    mps_status status = create_lanes(group, i);
    if (status != MPS_STATUS_OK) return status;
  }
  mps_host_threadgroup *outer = current;
  current = group;
  group->function = function;
  group->context = context;
  mps_fiber_of_thread(&group->scheduler);
  for (uint32_t i = 0; i < simdgroups; i++) {
    simdgroup *s = &group->simdgroups[i];
    uint32_t lanes = count - i * WIDTH;
    s->ready = lanes >= WIDTH ? UINT32_MAX : (1u << lanes) - 1;
    for (uint32_t l = 0; l < WIDTH; l++) s->lanes[l].depth = 0;
  }
  for (bool running = true; running;) {
    for (uint32_t i = 0; i < simdgroups; i++) run_simdgroup(group, &group->simdgroups[i]);
    running = false;
    for (uint32_t i = 0; i < simdgroups; i++) { /* nobody else can go: the barrier opens */
      simdgroup *s = &group->simdgroups[i];
      s->ready = s->waiting;
      s->waiting = 0;
      running |= s->ready != 0;
    }
  }
  current = outer;
  return MPS_STATUS_OK;
}

mps_status mps_host_threadgroup_take(mps_host_threadgroup_pool *pool, mps_host_threadgroup **out_group) {
  mps_mutex_lock(&pool->lock);
  mps_host_threadgroup *group = pool->idle;
  if (group) pool->idle = group->next;
  mps_mutex_unlock(&pool->lock);
  if (!group) {
    group = aligned_alloc(64, sizeof *group);
    if (!group) return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for the records of a threadgroup");
    memset(group, 0, sizeof *group);
  }
  *out_group = group;
  return MPS_STATUS_OK;
}

void mps_host_threadgroup_give(mps_host_threadgroup_pool *pool, mps_host_threadgroup *group) {
  mps_mutex_lock(&pool->lock);
  group->next = pool->idle;
  pool->idle = group;
  mps_mutex_unlock(&pool->lock);
}

void mps_host_threadgroup_drain(mps_host_threadgroup_pool *pool) {
  mps_host_threadgroup *group = pool->idle;
  pool->idle = NULL;
  while (group) {
    mps_host_threadgroup *next = group->next;
    for (uint32_t i = 0; i < MPS_HOST_GROUP_THREADS / WIDTH; i++) destroy_lanes(group, &group->simdgroups[i]);
    free(group->storage);
    free(group);
    group = next;
  }
}

/* ---- what kernels call ---- */
static int run_group(const mps_host_dispatch *dispatch, unsigned count, void (*function)(void *, unsigned), void *context) {
  if (count == 1) { /* nobody to wait for */
    mps_host_threadgroup *outer = current;
    current = NULL;
    function(context, 0);
    current = outer;
    return 1;
  }
  mps_host_group_state *state = dispatch->state;
  state->failed = mps_host_threadgroup_run(state->group, count, function, context) != MPS_STATUS_OK;
  return !state->failed;
}

static void barrier(void) {
  mps_host_threadgroup *group = current;
  if (!group) return;
  group->now->waiting |= 1u << group->running->index % WIDTH;
  stop(group);
}

static void meet(const void *value, unsigned bytes, const void *site, mps_host_meeting *out) {
  mps_host_threadgroup *group = current;
  if (!group) {
    *out = (mps_host_meeting){.values = value, .active = 1};
    return;
  }
  lane *self = group->running;
  self->site = site;
  self->value = value;
  self->bytes = bytes;
  group->now->meeting |= 1u << self->index % WIDTH;
  stop(group);
  *out = (mps_host_meeting){.values = group->values, .active = group->active, .lane = self->index % WIDTH};
}

static unsigned lane_index(void) { return current ? current->running->index % WIDTH : 0; }

static unsigned *enter_loop(const void *site) {
  if (!current) return &lone_iteration;
  lane *self = current->running;
  uint32_t depth = self->depth++;
  if (depth >= LOOP_DEPTH) return &current->surplus;
  self->loops[depth] = (loop){.site = site};
  return &self->loops[depth].iteration;
}

static void leave_loop(void) {
  if (current) current->running->depth--;
}

/* Kept with the group: the next dispatch most likely wants as much. */
static void *storage(const mps_host_dispatch *dispatch, unsigned long long bytes) {
  mps_host_group_state *state = dispatch->state;
  mps_host_threadgroup *group = state->group;
  if (bytes <= group->storage_bytes) return group->storage;
  free(group->storage);
  size_t rounded = ((size_t)bytes + 63) / 64 * 64;
  group->storage = aligned_alloc(64, rounded);
  group->storage_bytes = group->storage ? rounded : 0;
  state->failed = !group->storage;
  return group->storage;
}

const mps_host_services mps_host_group_services = {.run_group = run_group, .barrier = barrier, .meet = meet, .lane = lane_index,
                                                   .enter_loop = enter_loop, .leave_loop = leave_loop, .storage = storage,
                                                   .log = mps_host_shader_log};
