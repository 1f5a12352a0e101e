/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reader_reach: what a kernel's code may come to, by names alone: every name in it stands for all declarations of that name outside of
 * the standard library. So the answer may be too careful, never too bold.
 */
#include <string.h>

#include "shader/reader_internal.h"

static bool starts_with(const reader *r, uint32_t index, const char *prefix) {
  size_t length = strlen(prefix);
  return r->list.tokens[index].length >= length && memcmp(r->list.text + r->list.tokens[index].start, prefix, length) == 0;
}

static uint32_t own_flags(const reader *r, uint32_t index) {
  char c = token_first(r, index);
  if (c == 't') {
    if (token_is(r, index, "threadgroup_barrier")) return REACH_BARRIER;
    if (token_is(r, index, "threadgroup") && r->edits[index].text && r->edits[index].text[0]) return REACH_THREADGROUP;
  } else if (c == 's') {
    if (token_is(r, index, "simdgroup_barrier")) return REACH_BARRIER | REACH_SIMDGROUP;
    bool named = starts_with(r, index, "simd_") || starts_with(r, index, "simdgroup_");
    if (named && (token_punct(r, index + 1, '(') || token_punct(r, index + 1, '<'))) return REACH_SIMDGROUP;
  } else if (c == 'q') {
    if (starts_with(r, index, "quad_") && (token_punct(r, index + 1, '(') || token_punct(r, index + 1, '<'))) return REACH_SIMDGROUP;
  }
  return 0;
}

name_node *mps_reader_find_node(const reader *r, uint32_t token) {
  const mps_token *t = &r->list.tokens[token];
  uintptr_t number = (uintptr_t)mps_map_get(&r->names, r->list.text + t->start, t->length);
  return number ? &r->nodes.items[number - 1] : NULL;
}

static void add_node(reader *r, uint32_t name, uint32_t declaration_index) {
  const mps_token *t = &r->list.tokens[name];
  name_node *node = mps_reader_find_node(r, name);
  if (!node) {
    mps_status status = MPS_ARRAY_RESERVE(&r->nodes, 1);
    if (status == MPS_STATUS_OK) status = mps_map_set(&r->names, r->list.text + t->start, t->length, (void *)(uintptr_t)(r->nodes.count + 1));
    if (status != MPS_STATUS_OK) {
      r->status = status;
      return;
    }
    MPS_ARRAY_PUSH(&r->nodes, (name_node){0});
    node = &r->nodes.items[r->nodes.count - 1];
  }
  mps_status status = MPS_ARRAY_RESERVE(&node->declarations, 1);
  if (status != MPS_STATUS_OK) r->status = status;
  else MPS_ARRAY_PUSH(&node->declarations, declaration_index);
}

uint32_t mps_reader_reach(reader *r, uint32_t begin, uint32_t end) {
  uint32_t flags = 0;
  for (uint32_t i = begin; i < end; i++) {
    if (!token_word(r, i)) continue;
    flags |= own_flags(r, i);
    const name_node *node = mps_reader_find_node(r, i);
    if (node) flags |= node->flags;
  }
  return flags;
}

void mps_reader_reach_build(reader *r) {
  for (uint32_t i = 0; i < r->declarations.count && r->status == MPS_STATUS_OK; i++) {
    const declaration *d = &r->declarations.items[i];
    if (d->name && token_word(r, d->name) && !d->is_kernel) add_node(r, d->name, i);
  }
  for (bool changed = true; changed && r->status == MPS_STATUS_OK;) { /* to the fixed point: a few rounds */
    changed = false;
    for (size_t n = 0; n < r->nodes.count; n++) {
      name_node *node = &r->nodes.items[n];
      uint32_t flags = node->flags;
      for (size_t k = 0; k < node->declarations.count; k++) {
        const declaration *d = &r->declarations.items[node->declarations.items[k]];
        flags |= mps_reader_reach(r, d->begin, d->end);
      }
      if (flags != node->flags) changed = true;
      node->flags = flags;
    }
  }
}

void mps_reader_reach_free(reader *r) {
  for (size_t i = 0; i < r->nodes.count; i++) MPS_ARRAY_FINI(&r->nodes.items[i].declarations);
  MPS_ARRAY_FINI(&r->nodes);
  mps_map_fini(&r->names, NULL);
}
