/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fiber: several stacks that one thread of the system goes back and forth between. A switch saves what the calling convention asks
 * of a callee, the floating-point control words among it, and takes a few nanoseconds.
 */
#ifndef OPENMPS_BASE_OS_FIBER_H
#define OPENMPS_BASE_OS_FIBER_H

#include <stddef.h>

#include "openmps/status.h"

typedef struct mps_fiber {
  void *position;       /* where it stopped: its stack pointer, or the system's own record */
  void *stack;          /* lowest byte; NULL: the thread's own stack */
  size_t stack_bytes;
  void *fake_stack;     /* AddressSanitizer's */
  void *thread_record;  /* ThreadSanitizer's */
} mps_fiber;

/* `count` stacks of `bytes` each (whole pages), with an inaccessible page below each where the system allows that many. Pages are taken
 * as they are touched. OUT_OF_MEMORY. */
MPS_WARN_UNUSED mps_status mps_os_stacks_map(size_t count, size_t bytes, void **out_memory);
void mps_os_stacks_unmap(void *memory, size_t count, size_t bytes); /* accepts NULL */
/* The lowest usable byte of a stack. */
void *mps_os_stack_at(void *memory, size_t index, size_t bytes);

/* `fiber` stands for the calling thread, as it runs now. */
void mps_fiber_of_thread(mps_fiber *fiber);
/* A fiber that calls function(context) when it is first switched to; `function` calls mps_fiber_entered first and never returns.
 * OUT_OF_MEMORY. */
MPS_WARN_UNUSED mps_status mps_fiber_create(mps_fiber *fiber, void *stack, size_t bytes, void (*function)(void *), void *context);
/* Its stack may be unmapped afterwards. The fiber does not run. */
void mps_fiber_destroy(mps_fiber *fiber);
/* Leaves `from`, which runs, for `to`; returns when somebody switches back. Both belong to one thread of the system. */
void mps_fiber_switch(mps_fiber *from, mps_fiber *to);
/* Like mps_fiber_switch, for the last time: `from` is destroyed next. */
void mps_fiber_leave(mps_fiber *from, mps_fiber *to);
/* The first thing that a fiber's function calls. */
void mps_fiber_entered(mps_fiber *self);

#endif
