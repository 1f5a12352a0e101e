/* SPDX-License-Identifier: BSD-3-Clause
 *
 * thread: what is too long for the header.
 */
#include "base/thread.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/status.h"

typedef struct start_record {
  void (*function)(void *context);
  void *context;
  char name[16];
} start_record;

static void *start(void *pointer) {
  start_record record = *(start_record *)pointer;
  free(pointer);
  pthread_setname_np(pthread_self(), record.name);
  record.function(record.context);
  return NULL;
}

mps_status mps_thread_create(mps_thread *thread, const char *name, void (*function)(void *context), void *context) {
  start_record *record = malloc(sizeof *record);
  if (!record) return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory to start the thread %s", name);
  *record = (start_record){.function = function, .context = context};
  snprintf(record->name, sizeof record->name, "%s", name);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before); /* the new thread inherits the mask */
  int failure = pthread_create(&thread->handle, NULL, start, record);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (failure) {
    free(record);
    return mps_error_set(MPS_STATUS_SYSTEM_ERROR, "cannot start the thread %s: %s", name, strerror(failure));
  }
  return MPS_STATUS_OK;
}

void mps_thread_join(mps_thread *thread) { pthread_join(thread->handle, NULL); }

void mps_thread_detach(mps_thread *thread) { pthread_detach(thread->handle); }

void mps_thread_yield(void) { sched_yield(); }

void mps_thread_keep_off(const mps_thread *thread, int cpu) {
  cpu_set_t processors; /* a machine with more of them than the set holds is left alone */
  if (cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof processors, &processors) != 0) return;
  if (cpu >= 0) CPU_CLR((size_t)cpu, &processors);
  if (CPU_COUNT(&processors) > 0) (void)pthread_setaffinity_np(thread->handle, sizeof processors, &processors);
}

void mps_condition_init(mps_condition *condition) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&condition->handle, &attributes);
  pthread_condattr_destroy(&attributes);
}

bool mps_condition_wait_for(mps_condition *condition, mps_mutex *mutex, uint64_t nanoseconds) {
  struct timespec deadline;
  clock_gettime(CLOCK_MONOTONIC, &deadline);
  uint64_t total = (uint64_t)deadline.tv_nsec + nanoseconds;
  deadline.tv_sec += (time_t)(total / 1000000000u);
  deadline.tv_nsec = (long)(total % 1000000000u);
  return pthread_cond_timedwait(&condition->handle, &mutex->handle, &deadline) != ETIMEDOUT;
}
