/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hash: eight bytes at a time; the map is open addressing with linear steps, at most three quarters full.
 */
#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

uint64_t mps_hash_bytes(uint64_t seed, const void *bytes, size_t length) {
  const unsigned char *p = bytes;
  uint64_t h = mps_hash_u64(seed, length);
  while (length >= 8) {
    uint64_t word;
    memcpy(&word, p, 8);
    h = mps_hash_u64(h, word);
    p += 8;
    length -= 8;
  }
  if (length) {
    uint64_t word = 0;
    memcpy(&word, p, length);
    h = mps_hash_u64(h, word);
  }
  return h;
}

uint64_t mps_hash_string(uint64_t seed, const char *text) { return mps_hash_bytes(seed, text, strlen(text)); }

/* The place of the key, or the free one where it belongs. capacity > count. */
static mps_map_entry *find(const mps_map *map, uint64_t hash, const void *key, size_t key_length) {
  for (size_t i = hash;; i++) {
    mps_map_entry *entry = &map->entries[i & (map->capacity - 1)];
    if (!entry->key) return entry;
    if (entry->hash == hash && entry->key_length == key_length && !memcmp(entry->key, key, key_length)) return entry;
  }
}

void *mps_map_get(const mps_map *map, const void *key, size_t key_length) {
  if (!map->count) return NULL;
  const mps_map_entry *entry = find(map, mps_hash_bytes(MPS_HASH_SEED, key, key_length), key, key_length);
  return entry->key ? entry->value : NULL;
}

static mps_status grow(mps_map *map) {
  mps_map larger = {.capacity = map->capacity ? map->capacity * 2 : 16, .count = map->count};
  larger.entries = calloc(larger.capacity, sizeof *larger.entries);
  if (!larger.entries) return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for a map of %zu entries", larger.capacity);
  for (size_t i = 0; i < map->capacity; i++) {
    mps_map_entry *entry = &map->entries[i];
    if (entry->key) *find(&larger, entry->hash, entry->key, entry->key_length) = *entry;
  }
  free(map->entries);
  *map = larger;
  return MPS_STATUS_OK;
}

mps_status mps_map_set(mps_map *map, const void *key, size_t key_length, void *value) {
  if ((map->count + 1) * 4 > map->capacity * 3) {
    mps_status status = grow(map);
    if (status != MPS_STATUS_OK) return status;
  }
  uint64_t hash = mps_hash_bytes(MPS_HASH_SEED, key, key_length);
  mps_map_entry *entry = find(map, hash, key, key_length);
  if (!entry->key) {
    char *copy = malloc(key_length + 1); /* ends with 0 for those whose keys are texts */
    if (!copy) return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for a map key of %zu bytes", key_length);
    if (key_length) memcpy(copy, key, key_length);
    copy[key_length] = 0;
    *entry = (mps_map_entry){.hash = hash, .key = copy, .key_length = key_length};
    map->count++;
  }
  entry->value = value;
  return MPS_STATUS_OK;
}

void mps_map_fini(mps_map *map, void (*destroy)(void *value)) {
  for (size_t i = 0; i < map->capacity; i++) {
    if (!map->entries[i].key) continue;
    free(map->entries[i].key);
    if (destroy) destroy(map->entries[i].value);
  }
  free(map->entries);
  *map = (mps_map){0};
}

int mps_map_next(const mps_map *map, size_t *position, const char **out_key, void **out_value) {
  while (*position < map->capacity) {
    const mps_map_entry *entry = &map->entries[(*position)++];
    if (!entry->key) continue;
    *out_key = entry->key;
    *out_value = entry->value;
    return 1;
  }
  return 0;
}
