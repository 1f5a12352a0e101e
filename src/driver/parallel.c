/* SPDX-License-Identifier: BSD-3-Clause
 *
 * parallel: the calling thread's workers, and the two functions that dense providers reach them by.
 */
#include "driver/parallel.h"

#include "openmps/dense.h"

static _Thread_local const mps_parallel *current;

const mps_parallel *mps_parallel_set(const mps_parallel *parallel) {
  const mps_parallel *previous = current;
  current = parallel;
  return previous;
}

typedef struct piece {
  void (*function)(void *context, uint32_t index);
  void *context;
} piece;

/* A piece that calls mps_dense_parallel itself runs that alone: workers are not waited for by workers. */
static void run_piece(void *context, uint32_t index) {
  const piece *p = context;
  const mps_parallel *previous = mps_parallel_set(NULL);
  p->function(p->context, index);
  mps_parallel_set(previous);
}

void mps_dense_parallel(uint32_t count, void (*function)(void *context, uint32_t index), void *context) {
  const mps_parallel *parallel = current;
  if (count > 1 && parallel != NULL && parallel->thread_count > 1) {
    piece p = {function, context};
    parallel->run(parallel, count, run_piece, &p);
    return;
  }
  for (uint32_t i = 0; i < count; i++) function(context, i);
}

uint32_t mps_dense_thread_count(void) { return current == NULL ? 1 : current->thread_count; }
