/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fuzz: runs a target on inputs that it makes from a corpus by mutation, and keeps those that reach new code. The target runs in a child
 * process, so that a crash, a sanitizer's report or a hang leaves its input behind as a file: fuzz-TARGET-SEED.input, which the same
 * program takes again with --input. The same seed, corpus and number of cases make the same inputs.
 */
#ifndef OPENMPS_TESTS_FUZZ_H
#define OPENMPS_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FUZZ_MAX_LENGTH ((size_t)1 << 16)

typedef struct fuzz_target {
  const char *name;
  /* One case. False after saying on stderr which property does not hold. `data` ends where a sanitizer notices a step beyond it. */
  bool (*run)(const uint8_t *data, size_t length);
  const char *const *words; /* that mutations put in; ends with NULL */
  size_t most;              /* bytes of an input */
} fuzz_target;

/* main() of a fuzz program: [--seed N] [--cases N] [--seconds N] [--input FILE] [CORPUS FILE...]. Returns the exit status. */
int fuzz_main(int argc, char **argv, const fuzz_target *target);

/* ---- mutate.c ---- */
typedef struct fuzz_input {
  uint8_t *data;
  size_t length;
} fuzz_input;

typedef struct fuzz_pool {
  fuzz_input *inputs;
  size_t count, capacity;
  uint64_t random;
} fuzz_pool;

uint64_t fuzz_below(fuzz_pool *pool, uint64_t bound);
/* Adds a copy. */
void fuzz_pool_add(fuzz_pool *pool, const uint8_t *data, size_t length);
void fuzz_pool_fini(fuzz_pool *pool);
/* A new input out of one or two of the pool's, in at most `most` bytes. */
size_t fuzz_mutate(fuzz_pool *pool, const char *const *words, uint8_t *out, size_t most);

/* ---- reached.c ---- */
/* Between these the calling thread's way through the files that are compiled with -fsanitize-coverage=trace-pc is noted. */
void fuzz_reached_begin(void);
/* True when the way led where none did before, or more often around a loop. */
bool fuzz_reached_end(void);
/* Places reached so far. */
uint32_t fuzz_reached_count(void);

#endif
