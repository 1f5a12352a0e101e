/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reached: which places of the code under test the cases came to. GCC calls __sanitizer_cov_trace_pc at each of them.
 */
#include "fuzz.h"

#define PLACES ((size_t)1 << 18)

static uint8_t counts[PLACES];  /* of this case */
static uint8_t reached[PLACES]; /* bit n: some case came there about 2^n times */
static uint32_t touched[PLACES];
static uint32_t touched_count, place_count;
static _Thread_local bool noting;

void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void) {
  if (!noting) return;
  /* The distance to this function is the same in every run, wherever the program lies. */
  const uintptr_t caller = (uintptr_t)__builtin_return_address(0);
  const size_t place = (size_t)(caller - (uintptr_t)&fuzz_reached_begin) % PLACES;
  if (counts[place] == 0) touched[touched_count++] = (uint32_t)place;
  if (counts[place] < 255) counts[place]++;
}

void fuzz_reached_begin(void) {
  touched_count = 0;
  noting = true;
}

bool fuzz_reached_end(void) {
  noting = false;
  bool news = false;
  for (uint32_t i = 0; i < touched_count; i++) {
    const uint32_t place = touched[i];
    uint8_t bit = 0;
    for (uint32_t n = counts[place]; n > 1; n >>= 1) bit++;
    if (!reached[place]) place_count++;
    if (!(reached[place] >> bit & 1)) news = true;
    reached[place] = (uint8_t)(reached[place] | 1u << bit);
    counts[place] = 0;
  }
  return news;
}

uint32_t fuzz_reached_count(void) { return place_count; }
