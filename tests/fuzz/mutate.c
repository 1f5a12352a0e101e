/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mutate: the pool of inputs, and how a new input is made out of them.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

uint64_t fuzz_below(fuzz_pool *pool, uint64_t bound) {
  uint64_t x = pool->random += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64: any seed will do */
  x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  x ^= x >> 31;
  return bound ? x % bound : 0;
}

void fuzz_pool_add(fuzz_pool *pool, const uint8_t *data, size_t length) {
  if (pool->count == pool->capacity) {
    pool->capacity = pool->capacity ? pool->capacity * 2 : 256;
    pool->inputs = realloc(pool->inputs, pool->capacity * sizeof *pool->inputs);
    if (!pool->inputs) abort();
  }
  uint8_t *copy = malloc(length + 1);
  if (!copy) abort();
  if (length) memcpy(copy, data, length);
  pool->inputs[pool->count++] = (fuzz_input){copy, length};
}

void fuzz_pool_fini(fuzz_pool *pool) {
  for (size_t i = 0; i < pool->count; i++) free(pool->inputs[i].data);
  free(pool->inputs);
}

typedef struct draft {
  uint8_t *data;
  size_t length, most;
} draft;

/* Puts `length` bytes in at `at`; what does not fit is left out. `bytes` may lie in the draft itself only behind a copy. */
static void insert(draft *d, size_t at, const void *bytes, size_t length) {
  if (length > d->most - d->length) length = d->most - d->length;
  if (length == 0) return;
  memmove(d->data + at + length, d->data + at, d->length - at);
  memcpy(d->data + at, bytes, length);
  d->length += length;
}

static void cut(draft *d, size_t at, size_t length) {
  memmove(d->data + at, d->data + at + length, d->length - at - length);
  d->length -= length;
}

/* Mostly short, now and then long. */
static size_t some_length(fuzz_pool *pool, size_t bound) {
  const uint64_t limit = UINT64_C(1) << fuzz_below(pool, 12);
  return (size_t)fuzz_below(pool, limit < bound ? limit + 1 : bound + 1);
}

static void insert_part(fuzz_pool *pool, draft *d, size_t at, const uint8_t *from, size_t from_length, uint64_t times) {
  const size_t start = (size_t)fuzz_below(pool, from_length + 1), length = some_length(pool, from_length - start);
  uint8_t *part = malloc(length + 1);
  if (!part) abort();
  if (length) memcpy(part, from + start, length);
  for (uint64_t i = 0; i < times; i++) insert(d, at, part, length);
  free(part);
}

static void change_once(fuzz_pool *pool, const char *const *words, size_t word_count, draft *d) {
  const size_t at = (size_t)fuzz_below(pool, d->length + 1);
  const fuzz_input *other = &pool->inputs[fuzz_below(pool, pool->count)];
  const uint8_t byte = (uint8_t)fuzz_below(pool, 256);
  switch (fuzz_below(pool, word_count ? 11 : 7)) {
    case 0:
      if (at < d->length) d->data[at] = byte;
      break;
    case 1:
      if (at < d->length) d->data[at] = (uint8_t)(d->data[at] ^ 1u << byte % 8);
      break;
    case 2:
      insert(d, at, &byte, 1);
      break;
    case 3:
      cut(d, at, some_length(pool, d->length - at));
      break;
    case 4:
      insert_part(pool, d, at, d->data, d->length, 1);
      break;
    case 5: /* deep, or many times */
      insert_part(pool, d, at, d->data, d->length, UINT64_C(1) << fuzz_below(pool, 11));
      break;
    case 6:
      insert_part(pool, d, at, other->data, other->length, 1);
      break;
    default: {
      const char *word = words[fuzz_below(pool, word_count)];
      const uint64_t times = fuzz_below(pool, 40) ? 1 : UINT64_C(1) << fuzz_below(pool, 13);
      for (uint64_t i = 0; i < times; i++) insert(d, at, word, strlen(word));
    }
  }
}

size_t fuzz_mutate(fuzz_pool *pool, const char *const *words, uint8_t *out, size_t most) {
  size_t word_count = 0;
  while (words && words[word_count]) word_count++;
  /* The newest are the most interesting. */
  const size_t recent = pool->count > 32 && fuzz_below(pool, 2) ? 32 : pool->count;
  const fuzz_input *from = &pool->inputs[pool->count - 1 - fuzz_below(pool, recent)];
  draft d = {.data = out, .most = most};
  size_t start = 0, length = from->length;
  if (length > 2048 && fuzz_below(pool, 16)) { /* a part of a long one: fast */
    length = 64 + (size_t)fuzz_below(pool, 1984);
    start = (size_t)fuzz_below(pool, from->length - length);
  }
  insert(&d, 0, from->data + start, length);
  const uint64_t changes = 1 + fuzz_below(pool, UINT64_C(1) << fuzz_below(pool, 5));
  for (uint64_t i = 0; i < changes; i++) change_once(pool, words, word_count, &d);
  return d.length;
}
