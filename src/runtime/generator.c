/* SPDX-License-Identifier: BSD-3-Clause
 *
 * generator: the state of a Philox generator: a seed, and how many 128-bit blocks were handed out. Kernels make the numbers.
 */
#include <stdlib.h>

#include "base/status.h"
#include "base/thread.h"
#include "openmps/stream.h"

struct mps_generator {
  mps_mutex lock;
  uint64_t seed, offset; /* under lock, so that a seed and its offset belong together */
};

mps_status mps_generator_create(uint64_t seed, mps_generator **out_generator) {
  mps_generator *generator = calloc(1, sizeof *generator);
  if (!generator) return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for a generator");
  mps_mutex_init(&generator->lock);
  generator->seed = seed;
  *out_generator = generator;
  return MPS_STATUS_OK;
}

void mps_generator_destroy(mps_generator *generator) {
  if (!generator) return;
  mps_mutex_fini(&generator->lock);
  free(generator);
}

void mps_generator_set_seed(mps_generator *generator, uint64_t seed) {
  mps_mutex_lock(&generator->lock);
  generator->seed = seed;
  generator->offset = 0;
  mps_mutex_unlock(&generator->lock);
}

/* Reading takes the lock too; the object itself is not changed. */
static uint64_t read_field(const mps_generator *generator, const uint64_t *field) {
  mps_mutex *lock = (mps_mutex *)(uintptr_t)&generator->lock;
  mps_mutex_lock(lock);
  uint64_t value = *field;
  mps_mutex_unlock(lock);
  return value;
}

uint64_t mps_generator_seed(const mps_generator *generator) { return read_field(generator, &generator->seed); }

uint64_t mps_generator_offset(const mps_generator *generator) { return read_field(generator, &generator->offset); }

void mps_generator_set_offset(mps_generator *generator, uint64_t offset) {
  mps_mutex_lock(&generator->lock);
  generator->offset = offset;
  mps_mutex_unlock(&generator->lock);
}

uint64_t mps_generator_advance(mps_generator *generator, uint64_t count) {
  mps_mutex_lock(&generator->lock);
  uint64_t first = generator->offset;
  generator->offset += count;
  mps_mutex_unlock(&generator->lock);
  return first;
}
