/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hash: 64-bit hashes of bytes, and a map from byte strings to pointers. Not for hostile keys; values may differ between versions.
 */
#ifndef OPENMPS_BASE_HASH_H
#define OPENMPS_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "openmps/status.h"

#define MPS_HASH_SEED UINT64_C(0x9e3779b97f4a7c15)

static inline uint64_t mps_hash_u64(uint64_t seed, uint64_t value) {
  uint64_t h = (seed ^ value) * UINT64_C(0xff51afd7ed558ccd);
  h ^= h >> 32;
  h *= UINT64_C(0xc4ceb9fe1a85ec53);
  return h ^ (h >> 29);
}
uint64_t mps_hash_bytes(uint64_t seed, const void *bytes, size_t length);
uint64_t mps_hash_string(uint64_t seed, const char *text);

/* A map; zero is an empty one. Not locked. Keys are copied. */
typedef struct mps_map_entry {
  uint64_t hash;
  char *key; /* NULL: free place */
  size_t key_length;
  void *value;
} mps_map_entry;

typedef struct mps_map {
  mps_map_entry *entries; /* open addressing */
  size_t capacity;        /* 0 or a power of two */
  size_t count;
} mps_map;

/* NULL when absent. */
void *mps_map_get(const mps_map *map, const void *key, size_t key_length);
/* Sets or replaces. OUT_OF_MEMORY leaves the map as it was. */
MPS_WARN_UNUSED mps_status mps_map_set(mps_map *map, const void *key, size_t key_length, void *value);
/* Frees the map itself; `destroy` (may be NULL) gets each value. */
void mps_map_fini(mps_map *map, void (*destroy)(void *value));
/* Walks: start with *position 0; false at the end. */
int mps_map_next(const mps_map *map, size_t *position, const char **out_key, void **out_value);

#endif
