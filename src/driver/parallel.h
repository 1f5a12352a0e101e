/* SPDX-License-Identifier: BSD-3-Clause
 *
 * parallel: how code inside of a dense call or callback spreads over the driver's workers. A driver sets the calling thread's
 * mps_parallel around such a call; everywhere else, and inside of a piece, work runs on the calling thread alone.
 */
#ifndef OPENMPS_DRIVER_PARALLEL_H
#define OPENMPS_DRIVER_PARALLEL_H

#include <stdint.h>

typedef struct mps_parallel {
  /* Runs function(context, i) for each i < count, on workers and the calling thread; returns when all are done. */
  void (*run)(const struct mps_parallel *parallel, uint32_t count, void (*function)(void *context, uint32_t index), void *context);
  uint32_t thread_count; /* the calling thread included */
} mps_parallel;

/* Sets the calling thread's workers (NULL: none) and returns what was set before. */
const mps_parallel *mps_parallel_set(const mps_parallel *parallel);

#endif
