/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cache: the compiled graphs of a device, under two kinds of keys: the caller's own, which spares the building, and the structure of a graph, so
 * that equal graphs are compiled once. Few long-lived entries: a table of chains under one lock; the least recently used go first.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/thread.h"
#include "graph/graph.h"
#include "runtime/device.h"

#define BUCKETS 1024
#define MOST_ENTRIES 1024

typedef struct entry {
  struct entry *next;
  uint64_t hash, used; /* used: the clock at the last look-up */
  mps_graph *graph;
  mps_graph_build build; /* part of the key; NULL: a structure */
  size_t key_length;
  unsigned char key[];
} entry;

typedef struct graph_cache {
  mps_mutex mutex;
  uint64_t clock, count;
  mps_graph_statistics statistics;
  _Atomic uint64_t runs;
  entry *buckets[BUCKETS];
} graph_cache;

static void drop_all(graph_cache *cache) {
  for (uint32_t b = 0; b < BUCKETS; b++) {
    while (cache->buckets[b]) {
      entry *first = cache->buckets[b];
      cache->buckets[b] = first->next;
      mps_graph_release(first->graph);
      free(first);
    }
  }
  cache->count = 0;
}

static void destroy(void *pointer) {
  graph_cache *cache = pointer;
  drop_all(cache);
  mps_mutex_fini(&cache->mutex);
  free(cache);
}

static graph_cache *cache_of(mps_device *device) {
  graph_cache *cache = mps_device_attachment(device, MPS_ATTACHMENT_GRAPH);
  if (cache) return cache;
  cache = calloc(1, sizeof *cache);
  if (!cache) return NULL;
  mps_mutex_init(&cache->mutex);
  return mps_device_attach(device, MPS_ATTACHMENT_GRAPH, cache, destroy);
}

/* Under the lock. */
static mps_graph *look_up(graph_cache *cache, uint64_t hash, mps_graph_build build, const void *key, size_t key_length) {
  for (entry *e = cache->buckets[hash % BUCKETS]; e; e = e->next) {
    if (e->hash != hash || e->build != build || e->key_length != key_length || memcmp(e->key, key, key_length) != 0) continue;
    e->used = ++cache->clock;
    return mps_graph_retain(e->graph);
  }
  return NULL;
}

static void evict_one(graph_cache *cache) {
  entry **oldest = NULL;
  for (uint32_t b = 0; b < BUCKETS; b++)
    for (entry **e = &cache->buckets[b]; *e; e = &(*e)->next)
      if (!oldest || (*e)->used < (*oldest)->used) oldest = e;
  if (!oldest) return;
  entry *gone = *oldest;
  *oldest = gone->next;
  cache->count--;
  cache->statistics.evictions++;
  mps_graph_release(gone->graph);
  free(gone);
}

/* Under the lock. Without memory the graph is simply not kept. */
static void insert(graph_cache *cache, uint64_t hash, mps_graph_build build, const void *key, size_t key_length, mps_graph *graph) {
  entry *e = malloc(sizeof *e + key_length);
  if (!e) return;
  if (cache->count == MOST_ENTRIES) evict_one(cache);
  memcpy(e->key, key, key_length);
  e->key_length = key_length;
  e->hash = hash;
  e->build = build;
  e->used = ++cache->clock;
  e->graph = mps_graph_retain(graph);
  e->next = cache->buckets[hash % BUCKETS];
  cache->buckets[hash % BUCKETS] = e;
  cache->count++;
}

/* ---- structure ---- */
/* What a compiled graph depends on, as bytes: options, label, inputs, outputs, nodes with the used part of their sizes. */
static unsigned char *structure(const mps_graph_builder *b, size_t *out_length) {
  const size_t label = strlen(b->label) + 1, fixed = offsetof(graph_node, sizes);
  unsigned char *key = malloc(8 + label + sizeof b->outputs + b->node_count * sizeof(graph_node)), *at = key;
  if (!key) return NULL;
  memcpy(at, &b->options, sizeof b->options);
  memcpy(at + 4, &b->output_count, sizeof b->output_count);
  memcpy(at += 8, b->label, label);
  memcpy(at += label, b->outputs, b->output_count * sizeof b->outputs[0]);
  at += b->output_count * sizeof b->outputs[0];
  for (uint32_t n = 0; n < b->node_count; n++) {
    const graph_node *node = &b->nodes[n];
    memcpy(at, node, fixed);
    at += fixed;
    if (node->kind == NODE_SCALAR) *at++ = b->scalar_kinds[node->index];
    memcpy(at, node->sizes, node->rank * sizeof node->sizes[0]);
    at += node->rank * sizeof node->sizes[0];
  }
  *out_length = (size_t)(at - key);
  return key;
}

mps_status mps_graph_compile(mps_graph_builder *builder, mps_graph **out_graph) {
  *out_graph = NULL;
  if (builder->failure != MPS_STATUS_OK) return builder->failure;
  graph_cache *cache = cache_of(builder->device);
  size_t length;
  unsigned char *key = structure(builder, &length);
  if (!cache || !key) {
    free(key);
    return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for the cache of graphs");
  }
  const uint64_t hash = mps_hash_bytes(MPS_HASH_SEED, key, length);
  mps_mutex_lock(&cache->mutex);
  if (!(builder->options & MPS_GRAPH_UNCACHED)) *out_graph = look_up(cache, hash, NULL, key, length);
  if (*out_graph) cache->statistics.shared++;
  mps_mutex_unlock(&cache->mutex);
  mps_status status = MPS_STATUS_OK;
  if (!*out_graph) {
    status = mps_graph_compile_new(builder, out_graph);
    if (status == MPS_STATUS_OK) {
      (*out_graph)->runs = &cache->runs;
      MPS_LOG(GRAPH, INFO, "%s: %u nodes in %u stages, %u steps, %llu bytes of temporaries", builder->label, builder->node_count,
              (*out_graph)->stage_count, mps_graph_step_count(*out_graph), (unsigned long long)(*out_graph)->scratch_bytes);
      mps_mutex_lock(&cache->mutex);
      cache->statistics.compiled++;
      if (!(builder->options & MPS_GRAPH_UNCACHED)) insert(cache, hash, NULL, key, length, *out_graph);
      mps_mutex_unlock(&cache->mutex);
    }
  }
  free(key);
  return status;
}

mps_status mps_graph_cache_find(mps_device *device, const char *label, const void *key, size_t key_length, mps_graph_build build, void *context,
                                mps_graph **out_graph) {
  *out_graph = NULL;
  graph_cache *cache = cache_of(device);
  if (!cache) return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for the cache of graphs");
  const uint64_t hash = mps_hash_bytes(MPS_HASH_SEED, key, key_length);
  mps_mutex_lock(&cache->mutex);
  *out_graph = look_up(cache, hash, build, key, key_length);
  if (*out_graph)
    cache->statistics.hits++;
  else
    cache->statistics.misses++;
  mps_mutex_unlock(&cache->mutex);
  if (*out_graph) return MPS_STATUS_OK;
  mps_graph_builder *builder;
  MPS_TRY(mps_graph_builder_create(device, label, &builder));
  mps_status status = build(builder, context);
  if (status == MPS_STATUS_OK) status = mps_graph_compile(builder, out_graph);
  mps_graph_builder_destroy(builder);
  if (status != MPS_STATUS_OK) return status;
  mps_mutex_lock(&cache->mutex);
  mps_graph *other = look_up(cache, hash, build, key, key_length); /* another thread may have been faster */
  if (!other) insert(cache, hash, build, key, key_length, *out_graph);
  mps_mutex_unlock(&cache->mutex);
  mps_graph_release(other);
  return MPS_STATUS_OK;
}

void mps_graph_get_statistics(mps_device *device, mps_graph_statistics *out) {
  memset(out, 0, sizeof *out);
  graph_cache *cache = cache_of(device);
  if (!cache) return;
  mps_mutex_lock(&cache->mutex);
  *out = cache->statistics;
  out->graphs = cache->count;
  mps_mutex_unlock(&cache->mutex);
  out->runs = atomic_load_explicit(&cache->runs, memory_order_relaxed);
}

void mps_graph_cache_clear(mps_device *device) {
  graph_cache *cache = cache_of(device);
  if (!cache) return;
  mps_mutex_lock(&cache->mutex);
  drop_all(cache);
  mps_mutex_unlock(&cache->mutex);
}
