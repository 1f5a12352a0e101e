/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_threadgroup: fibers, and the scheduler of threads that work together, in plain C: who meets whom, who is waited for, what a
 * switch keeps. The same with kernels is in test_cooperation.c.
 */
#include <fenv.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/os/fiber.h"
#include "base/thread.h"
#include "base/time.h"
#include "driver/host/threadgroup.h"
#include "test.h"

#define SERVICES (&mps_host_group_services)
#define SITE(n) ((const void *)(uintptr_t)(n))

static mps_host_threadgroup_pool pool = {.lock = MPS_MUTEX_INITIALIZER};

static void run(uint32_t count, void (*function)(void *, unsigned), void *context) {
  mps_host_threadgroup *group;
  CHECK_OK(mps_host_threadgroup_take(&pool, &group));
  CHECK_OK(mps_host_threadgroup_run(group, count, function, context));
  mps_host_threadgroup_give(&pool, group);
}

/* ---- the switch ---- */
typedef struct two_fibers {
  mps_fiber main, other;
  int steps;
  int rounding[2];
  double sum;
} two_fibers;

static void other_main(void *context) {
  two_fibers *t = context;
  mps_fiber_entered(&t->other);
  t->rounding[0] = fegetround(); /* that of whoever made the fiber */
  fesetround(FE_UPWARD);
  double local = 1.5;
  for (int i = 0; i < 3; i++) {
    t->steps++;
    local *= 2.0;
    t->sum += local;
    mps_fiber_switch(&t->other, &t->main);
  }
  t->rounding[1] = fegetround();
  mps_fiber_leave(&t->other, &t->main);
}

static void switches_keep_registers_and_control_words(void) {
  void *stacks;
  two_fibers t = {0};
  CHECK_OK(mps_os_stacks_map(2, 65536, &stacks));
  mps_fiber_of_thread(&t.main);
  CHECK_OK(mps_fiber_create(&t.other, mps_os_stack_at(stacks, 1, 65536), 65536, other_main, &t));
  double mine = 0.25;
  for (int i = 1; i <= 3; i++) {
    mps_fiber_switch(&t.main, &t.other);
    mine *= 3.0;
    CHECK_INT(t.steps, i);
    CHECK_INT(fegetround(), FE_TONEAREST);
  }
  mps_fiber_switch(&t.main, &t.other);
  CHECK(mine == 6.75 && t.sum == 21.0);
  CHECK_INT(t.rounding[0], FE_TONEAREST);
  CHECK_INT(t.rounding[1], FE_UPWARD);
  mps_fiber_destroy(&t.other);
  mps_os_stacks_unmap(stacks, 2, 65536);
}

/* ---- barriers ---- */
typedef struct numbers {
  uint32_t count;
  uint32_t values[1024];
  uint32_t results[1024];
  uint32_t wrong;
} numbers;

static void rotate_twice(void *context, unsigned index) {
  numbers *n = context;
  n->values[index] = index * 7;
  SERVICES->barrier();
  uint32_t next = n->values[(index + 1) % n->count];
  SERVICES->barrier();
  n->values[index] = next;
  SERVICES->barrier();
  n->results[index] = n->values[(index + n->count - 1) % n->count];
}

static void barriers_part_phases(void) {
  static const uint32_t counts[] = {2, 3, 31, 32, 33, 64, 100, 1023, 1024, 5};
  for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
    static numbers n;
    n = (numbers){.count = counts[c]};
    run(n.count, rotate_twice, &n);
    for (uint32_t i = 0; i < n.count; i++) n.wrong += n.results[i] != i * 7;
    CHECK_INT(n.wrong, 0);
  }
}

/* Thread i passes i % 5 barriers and is done; nobody waits for it. */
static void leave_early(void *context, unsigned index) {
  numbers *n = context;
  for (unsigned round = 0; round < index % 5; round++) {
    n->values[round]++;
    SERVICES->barrier();
    uint32_t expected = 0;
    for (unsigned i = 0; i < n->count; i++) expected += i % 5 > round;
    n->wrong += n->values[round] != expected;
  }
}

static void threads_that_are_done_are_not_waited_for(void) {
  static numbers n;
  n = (numbers){.count = 77};
  run(n.count, leave_early, &n);
  CHECK_INT(n.wrong, 0);
}

/* ---- meetings ---- */
static uint32_t meet_at(uintptr_t site, uint32_t value, uint32_t *out_sum) {
  mps_host_meeting met;
  SERVICES->meet(&value, sizeof value, SITE(site), &met);
  uint32_t sum = 0, one;
  for (uint32_t i = 0; i < 32; i++) {
    if (!(met.active >> i & 1)) continue;
    memcpy(&one, met.values + i * sizeof one, sizeof one);
    sum += one;
  }
  if (out_sum) *out_sum = sum;
  return met.active;
}

static void meet_in_branches(void *context, unsigned index) {
  numbers *n = context;
  uint32_t sum, active;
  uint32_t lanes = n->count - index / 32 * 32;
  uint32_t all = lanes >= 32 ? UINT32_MAX : (1u << lanes) - 1;
  n->wrong += meet_at(10, 1, &sum) != all;
  if (index % 3 == 0) {
    active = meet_at(20, 1, &sum);
    for (uint32_t i = 0; i < 32; i++) n->wrong += (active >> i & 1) != ((all >> i & 1) && (index / 32 * 32 + i) % 3 == 0);
  } else if (index % 3 == 1) {
    active = meet_at(30, index, &sum);
    n->wrong += active & 1u << index % 32 ? 0 : 1;
  }
  n->wrong += meet_at(40, 2, &sum) != all; /* together again, though some came straight here */
  n->wrong += sum != 2 * (uint32_t)__builtin_popcount(all);
}

static void those_behind_go_first(void) {
  static numbers n;
  for (uint32_t count = 2; count < 130; count += 9) {
    n = (numbers){.count = count};
    run(count, meet_in_branches, &n);
    CHECK_INT(n.wrong, 0);
  }
}

/* for i: meet at 20; if (i == lane) meet at 30: in each round all meet at 20, also those that were alone at 30 before. */
static void meet_in_a_loop(void *context, unsigned index) {
  numbers *n = context;
  unsigned *round = SERVICES->enter_loop(SITE(15));
  for (uint32_t i = 0; i < 32; i++, ++*round) {
    n->wrong += meet_at(20, 1, NULL) != UINT32_MAX;
    if (i == index % 32) n->wrong += meet_at(30, 1, NULL) != 1u << index % 32;
  }
  SERVICES->leave_loop();
  unsigned *again = SERVICES->enter_loop(SITE(35));
  for (uint32_t i = 0; i <= index % 32; i++, ++*again) { /* trip counts of their own */
    n->wrong += meet_at(38, 1, NULL) != (i ? UINT32_MAX << i : UINT32_MAX);
  }
  SERVICES->leave_loop();
  n->wrong += meet_at(40, 1, NULL) != UINT32_MAX;
}

static void rounds_of_loops_are_kept_apart(void) {
  static numbers n;
  n = (numbers){.count = 64};
  run(64, meet_in_a_loop, &n);
  CHECK_INT(n.wrong, 0);
}

/* Some wait at a barrier that others come to only after they have met. */
static void barrier_while_others_meet(void *context, unsigned index) {
  numbers *n = context;
  if (index % 2) n->wrong += meet_at(10, 1, NULL) != 0xaaaaaaaau;
  SERVICES->barrier();
  if (index % 2 == 0) n->wrong += meet_at(20, 1, NULL) != 0x55555555u;
  if (index < 3) return;
  SERVICES->barrier();
  n->results[index] = 1;
}

static void barriers_and_meetings_mix(void) {
  static numbers n;
  n = (numbers){.count = 64};
  run(64, barrier_while_others_meet, &n);
  CHECK_INT(n.wrong, 0);
  uint32_t reached = 0;
  for (int i = 0; i < 64; i++) reached += n.results[i];
  CHECK_INT(reached, 61);
}

static void alone(void) {
  uint32_t sum;
  SERVICES->barrier();
  CHECK_INT(meet_at(10, 5, &sum), 1);
  CHECK_INT(sum, 5);
  CHECK_INT(SERVICES->lane(), 0);
  ++*SERVICES->enter_loop(SITE(1));
  SERVICES->leave_loop();
}

/* ---- stacks ---- */
static void use_stack(void *context, unsigned index) {
  numbers *n = context;
  volatile unsigned char big[100000];
  for (size_t i = 0; i < sizeof big; i += 1000) big[i] = (unsigned char)(index + i);
  SERVICES->barrier();
  for (size_t i = 0; i < sizeof big; i += 1000) n->wrong += big[i] != (unsigned char)(index + i);
}

static void stacks_are_apart(void) {
  static numbers n;
  n = (numbers){.count = 128};
  run(128, use_stack, &n);
  CHECK_INT(n.wrong, 0);
}

static void thread_main(void *context) {
  numbers *n = context;
  for (int i = 0; i < 20; i++) {
    run(n->count, rotate_twice, n);
    for (uint32_t k = 0; k < n->count; k++) n->wrong += n->results[k] != k * 7;
  }
}

/* Groups on several threads of the system at once; a group's fibers go from one to another. */
static void groups_run_side_by_side(void) {
  static numbers n[4];
  mps_thread threads[4];
  for (uint32_t i = 0; i < 4; i++) {
    n[i] = (numbers){.count = 50 + i * 31};
    CHECK_OK(mps_thread_create(&threads[i], "group", thread_main, &n[i]));
  }
  for (uint32_t i = 0; i < 4; i++) {
    mps_thread_join(&threads[i]);
    CHECK_INT(n[i].wrong, 0);
  }
}

/* No memory for stacks is a status; the group serves on afterwards. */
static void says_when_there_is_no_memory(void) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* they need address space without end */
  struct rlimit before, none = {.rlim_cur = 1 << 20};
  CHECK_INT(getrlimit(RLIMIT_AS, &before), 0);
  none.rlim_max = before.rlim_max;
  static numbers n;
  n = (numbers){.count = 1024};
  mps_host_threadgroup *group;
  mps_host_threadgroup_drain(&pool);
  CHECK_OK(mps_host_threadgroup_take(&pool, &group));
  CHECK_INT(setrlimit(RLIMIT_AS, &none), 0);
  mps_status status = mps_host_threadgroup_run(group, 1024, rotate_twice, &n);
  CHECK_INT(setrlimit(RLIMIT_AS, &before), 0);
  CHECK_INT(status, MPS_STATUS_OUT_OF_MEMORY);
  CHECK_INT(n.values[1], 0);
  CHECK_OK(mps_host_threadgroup_run(group, 1024, rotate_twice, &n));
  CHECK_INT(n.results[1000], 7000);
  mps_host_threadgroup_give(&pool, group);
#endif
}

/* ---- how long a switch takes ---- */
static void many_barriers(void *context, unsigned index) {
  (void)context;
  (void)index;
  for (int i = 0; i < 1000; i++) SERVICES->barrier();
}

static void tells_the_cost_of_a_switch(void) {
  run(256, many_barriers, NULL);
  uint64_t begin = mps_time_ns();
  run(256, many_barriers, NULL);
  printf("     a thread at a barrier: %.1f ns\n", (double)(mps_time_ns() - begin) / 256000.0);
}

int main(void) {
  RUN(switches_keep_registers_and_control_words);
  RUN(barriers_part_phases);
  RUN(threads_that_are_done_are_not_waited_for);
  RUN(those_behind_go_first);
  RUN(rounds_of_loops_are_kept_apart);
  RUN(barriers_and_meetings_mix);
  RUN(alone);
  RUN(stacks_are_apart);
  RUN(groups_run_side_by_side);
  RUN(says_when_there_is_no_memory);
  RUN(tells_the_cost_of_a_switch);
  mps_host_threadgroup_drain(&pool);
  return test_end();
}
