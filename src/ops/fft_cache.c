/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fft_cache: the tables of roots that a device keeps: at most 64 of them and 64 MiB, the least recently used go first.
 */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/thread.h"
#include "ops/fft_table.h"
#include "runtime/device.h"

enum { MOST_TABLES = 64, MOST_BYTES = 64 << 20 };

typedef struct entry {
  mps_fft_table_key key;
  mps_buffer *buffer; /* NULL: free */
  uint64_t used;      /* the clock at the last look-up */
  size_t bytes;
} entry;

typedef struct table_cache {
  mps_mutex mutex;
  uint64_t clock;
  size_t bytes;
  entry entries[MOST_TABLES];
} table_cache;

static void drop(table_cache *cache, entry *e) {
  mps_buffer_release(e->buffer);
  e->buffer = NULL;
  cache->bytes -= e->bytes;
}

static void destroy(void *pointer) {
  table_cache *cache = pointer;
  for (int i = 0; i < MOST_TABLES; i++)
    if (cache->entries[i].buffer) drop(cache, &cache->entries[i]);
  mps_mutex_fini(&cache->mutex);
  free(cache);
}

static table_cache *cache_of(mps_device *device) {
  table_cache *cache = mps_device_attachment(device, MPS_ATTACHMENT_FFT);
  if (cache) return cache;
  cache = calloc(1, sizeof *cache);
  if (!cache) return NULL;
  mps_mutex_init(&cache->mutex);
  return mps_device_attach(device, MPS_ATTACHMENT_FFT, cache, destroy);
}

/* Under the lock. */
static mps_buffer *look_up(table_cache *cache, const mps_fft_table_key *key) {
  for (int i = 0; i < MOST_TABLES; i++) {
    entry *e = &cache->entries[i];
    if (!e->buffer || memcmp(&e->key, key, sizeof *key) != 0) continue;
    e->used = ++cache->clock;
    return mps_buffer_retain(e->buffer);
  }
  return NULL;
}

/* Under the lock: a free entry, with room for `bytes`. */
static entry *make_room(table_cache *cache, size_t bytes) {
  for (;;) {
    entry *vacant = NULL, *oldest = NULL;
    for (int i = 0; i < MOST_TABLES; i++) {
      entry *e = &cache->entries[i];
      if (!e->buffer) vacant = e;
      else if (!oldest || e->used < oldest->used) oldest = e;
    }
    if (vacant && cache->bytes + bytes <= MOST_BYTES) return vacant;
    drop(cache, oldest); /* there is one: the cache is full, and bytes <= MOST_BYTES */
  }
}

/* Host memory is never in use by steps that are still to run, so that it can be filled at once, and read from every stream. */
static mps_status create(mps_stream *stream, const mps_fft_table_key *key, size_t bytes, mps_buffer **out_buffer) {
  mps_device *device = mps_stream_device(stream);
  float *table = calloc(1, bytes);
  if (!table) return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for a table of %zu bytes", bytes);
  mps_status status = mps_fft_table_fill(key, table);
  if (status == MPS_STATUS_OK && mps_device_driver(device)->limits.unified_memory) {
    status = mps_buffer_wrap(device, table, bytes, free, table, out_buffer);
    if (status == MPS_STATUS_OK) return status;
  } else if (status == MPS_STATUS_OK) {
    status = mps_buffer_create(device, stream, bytes, out_buffer);
    if (status == MPS_STATUS_OK) status = mps_stream_write(stream, *out_buffer, 0, table, bytes);
  }
  free(table);
  return status;
}

mps_status mps_fft_table_find(mps_stream *stream, const mps_fft_table_key *key, mps_buffer **out_buffer) {
  table_cache *cache = cache_of(mps_stream_device(stream));
  if (!cache) return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for the tables of transforms");
  mps_mutex_lock(&cache->mutex);
  *out_buffer = look_up(cache, key);
  mps_mutex_unlock(&cache->mutex);
  if (*out_buffer) return MPS_STATUS_OK;
  mps_fft_table_layout layout;
  mps_fft_table_lay_out(key, &layout);
  const size_t bytes = (size_t)layout.total * sizeof(float);
  MPS_TRY(create(stream, key, bytes, out_buffer));
  /* Without unified memory a table is written by its own stream, and others would have to wait for it: it is used once. */
  if (bytes > MOST_BYTES || !mps_device_driver(mps_stream_device(stream))->limits.unified_memory) return MPS_STATUS_OK;
  mps_mutex_lock(&cache->mutex);
  mps_buffer *other = look_up(cache, key); /* another thread may have been faster */
  if (!other) {
    entry *e = make_room(cache, bytes);
    *e = (entry){.key = *key, .buffer = mps_buffer_retain(*out_buffer), .used = ++cache->clock, .bytes = bytes};
    cache->bytes += bytes;
  }
  mps_mutex_unlock(&cache->mutex);
  mps_buffer_release(other);
  return MPS_STATUS_OK;
}
