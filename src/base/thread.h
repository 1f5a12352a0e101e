/* SPDX-License-Identifier: BSD-3-Clause
 *
 * thread: mutex, condition, thread and once, over POSIX threads. Conditions count monotonic time.
 */
#ifndef OPENMPS_BASE_THREAD_H
#define OPENMPS_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "openmps/status.h"

typedef struct mps_mutex {
  pthread_mutex_t handle;
} mps_mutex;
#define MPS_MUTEX_INITIALIZER {PTHREAD_MUTEX_INITIALIZER}

static inline void mps_mutex_init(mps_mutex *mutex) { pthread_mutex_init(&mutex->handle, NULL); }
static inline void mps_mutex_fini(mps_mutex *mutex) { pthread_mutex_destroy(&mutex->handle); }
static inline void mps_mutex_lock(mps_mutex *mutex) { pthread_mutex_lock(&mutex->handle); }
static inline bool mps_mutex_try_lock(mps_mutex *mutex) { return pthread_mutex_trylock(&mutex->handle) == 0; }
static inline void mps_mutex_unlock(mps_mutex *mutex) { pthread_mutex_unlock(&mutex->handle); }

typedef struct mps_condition {
  pthread_cond_t handle;
} mps_condition;

void mps_condition_init(mps_condition *condition);
static inline void mps_condition_fini(mps_condition *condition) { pthread_cond_destroy(&condition->handle); }
static inline void mps_condition_wait(mps_condition *condition, mps_mutex *mutex) { pthread_cond_wait(&condition->handle, &mutex->handle); }
/* Waits at most `nanoseconds`; false when they are over. */
bool mps_condition_wait_for(mps_condition *condition, mps_mutex *mutex, uint64_t nanoseconds);
static inline void mps_condition_signal(mps_condition *condition) { pthread_cond_signal(&condition->handle); }
static inline void mps_condition_broadcast(mps_condition *condition) { pthread_cond_broadcast(&condition->handle); }

typedef struct mps_thread {
  pthread_t handle;
} mps_thread;

/* Starts a thread that blocks all signals (they belong to the program's own threads). `name` is cut at 15 bytes. SYSTEM_ERROR. */
MPS_WARN_UNUSED mps_status mps_thread_create(mps_thread *thread, const char *name, void (*function)(void *context), void *context);
void mps_thread_join(mps_thread *thread);
void mps_thread_detach(mps_thread *thread);
/* Gives the processor to whoever waits for it. */
void mps_thread_yield(void);
/* Lets the thread run where the calling one may, less the processor `cpu` (-1: nothing less). Nothing happens where none would be left.
 * A sleeping thread so kept off wakes up elsewhere; one that runs on `cpu` moves, which takes some microseconds. */
void mps_thread_keep_off(const mps_thread *thread, int cpu);

typedef struct mps_once {
  pthread_once_t handle;
} mps_once;
#define MPS_ONCE_INITIALIZER {PTHREAD_ONCE_INIT}
static inline void mps_once_run(mps_once *once, void (*function)(void)) { pthread_once(&once->handle, function); }

#endif
