/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_generator: seeds and offsets; blocks handed to several threads never overlap.
 */
#include <stdlib.h>

#include "base/thread.h"
#include "openmps/stream.h"
#include "test.h"

static void seeds_and_offsets(void) {
  mps_generator *generator;
  CHECK_OK(mps_generator_create(42, &generator));
  CHECK_INT(mps_generator_seed(generator), 42);
  CHECK_INT(mps_generator_advance(generator, 10), 0);
  CHECK_INT(mps_generator_advance(generator, 5), 10);
  CHECK_INT(mps_generator_offset(generator), 15);
  mps_generator_set_offset(generator, 7);
  CHECK_INT(mps_generator_advance(generator, 0), 7);
  mps_generator_set_seed(generator, UINT64_MAX);
  CHECK(mps_generator_seed(generator) == UINT64_MAX);
  CHECK_INT(mps_generator_offset(generator), 0);
  mps_generator_destroy(generator);
  mps_generator_destroy(NULL);
}

enum { threads = 4, draws = 20000 };
static mps_generator *shared;
static uint64_t firsts[threads][draws];
static void draw(void *context) {
  uint64_t *mine = context;
  for (int i = 0; i < draws; i++) mine[i] = mps_generator_advance(shared, 3);
}

static int compare(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static void threads_get_blocks_of_their_own(void) {
  CHECK_OK(mps_generator_create(1, &shared));
  mps_thread started[threads];
  for (int i = 0; i < threads; i++) CHECK_OK(mps_thread_create(&started[i], "draw", draw, firsts[i]));
  for (int i = 0; i < threads; i++) mps_thread_join(&started[i]);
  qsort(firsts, threads * draws, sizeof(uint64_t), compare);
  int wrong = 0;
  for (int i = 0; i < threads * draws; i++) wrong += firsts[i / draws][i % draws] != (uint64_t)i * 3;
  CHECK_INT(wrong, 0);
  mps_generator_destroy(shared);
}

int main(void) {
  RUN(seeds_and_offsets);
  RUN(threads_get_blocks_of_their_own);
  return test_end();
}
