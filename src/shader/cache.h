/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cache: files on disk under names that are hashes of everything that went into them. Each ends with a seal, a hash of its key and its
 * contents, and is believed only when the seal fits. Nothing here fails a compile: what cannot be read or written is logged and left out.
 * Any number of threads and processes may use one directory.
 */
#ifndef OPENMPS_SHADER_CACHE_H
#define OPENMPS_SHADER_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/blake2.h"

typedef struct mps_cache {
  char path[900]; /* of the directory */
} mps_cache;

typedef struct mps_cache_key {
  char text[2 * MPS_BLAKE2_BYTES + 1]; /* hexadecimal */
} mps_cache_key;

/* What an entry is; also the end of its file's name. */
typedef enum mps_cache_kind {
  MPS_CACHE_LIBRARY,     /* .so: a kernel library */
  MPS_CACHE_LIST,        /* .list: the files that a source includes */
  MPS_CACHE_PRELUDE_TEXT, /* .hpp: what comes before the user's text */
  MPS_CACHE_PRELUDE,     /* .pch: that, precompiled */
  MPS_CACHE_KINDS
} mps_cache_kind;

/* The directory of this process, made if need be. False: there is none, or it is not ours alone (logged), or OPENMPS_CACHE=0. */
bool mps_cache_open(mps_cache *out_cache);
/* The directory's name, whether there is one or not; false if there is nowhere to put it. */
bool mps_cache_locate(mps_cache *out_cache);

mps_cache_key mps_cache_key_end(mps_blake2 *hash);
void mps_cache_path(const mps_cache *cache, const mps_cache_key *key, mps_cache_kind kind, char *out, size_t capacity);

/* True if the entry is there and whole; then it counts as used now, and `out_path` (may be NULL) is its file. One that is not whole is
 * removed. The file may go away at any time, whoever opens it must be ready for that. */
bool mps_cache_find(const mps_cache *cache, const mps_cache_key *key, mps_cache_kind kind, char *out_path, size_t capacity);
/* The entry's contents without the seal, 0 behind them; the caller frees them. NULL as above. */
char *mps_cache_read(const mps_cache *cache, const mps_cache_key *key, mps_cache_kind kind, size_t *out_length);
/* Seals and adds; replaces one of this name. Older entries go if the directory is larger than OPENMPS_CACHE_SIZE then. */
bool mps_cache_add(const mps_cache *cache, const mps_cache_key *key, mps_cache_kind kind, const void *contents, size_t length);
/* The name under which a file is written before it gets its own. */
void mps_cache_temporary(const mps_cache *cache, const mps_cache_key *key, mps_cache_kind kind, char *out, size_t capacity);
void mps_cache_remove(const mps_cache *cache, const mps_cache_key *key, mps_cache_kind kind);

/* Removes the longest unused until at most `limit` bytes are left, and temporary files that nobody can be writing any more. */
void mps_cache_trim(const mps_cache *cache, uint64_t limit);
void mps_cache_measure(const mps_cache *cache, uint64_t *out_entries, uint64_t *out_bytes);

#endif
