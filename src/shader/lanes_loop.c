/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lanes_loop: loops in which lanes meet. Lanes that leave a branch in different rounds would otherwise look alike: each lane counts its
 * rounds, and those behind go first, as in src/driver/host/threadgroup.c. A loop is a header that dominates who jumps back to it.
 * In loops without a meeting that all lanes seem to go round equally often lanes pause, so that the vectoriser sees a loop over lanes.
 */
#include <string.h>

#include "shader/lanes_internal.h"

#define MAX_DEPTH 8u

static mps_status no_memory(void) { return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for the loops of a kernel"); }

/* Calls back for each block behind `block`: its last segment has them. */
static const uint32_t *successors_of(const lanes_function *f, uint32_t block, uint32_t *count) {
  const lanes_block *b = &f->blocks.items[block];
  const lanes_segment *s = &f->segments.items[b->first_segment + b->segment_count - 1];
  *count = s->successor_count;
  return f->successors.items + s->first_successor;
}

static uint32_t block_of(const lanes_function *f, uint32_t segment) { return f->segments.items[segment].block; }

/* Bits of the blocks that dominate each block. Blocks that nothing leads to keep all bits. */
static uint64_t *find_dominators(const lanes_function *f, size_t words) {
  size_t count = f->blocks.count;
  uint64_t *dominators = lanes_allocate(f->module, count * words * sizeof *dominators);
  uint64_t *next = lanes_allocate(f->module, words * sizeof *next);
  if (!dominators || !next) return NULL;
  memset(dominators, 0xff, count * words * sizeof *dominators);
  memset(dominators, 0, words * sizeof *dominators);
  dominators[0] = 1;
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t b = 0; b < count; b++) {
      uint32_t successor_count;
      const uint32_t *successors = successors_of(f, b, &successor_count);
      const uint64_t *own = dominators + b * words;
      for (uint32_t s = 0; s < successor_count; s++) {
        uint32_t to = block_of(f, successors[s]);
        uint64_t *theirs = dominators + to * words;
        memcpy(next, own, words * sizeof *next);
        next[to / 64] |= UINT64_C(1) << to % 64;
        for (size_t w = 0; w < words; w++) {
          uint64_t both = theirs[w] & next[w];
          changed |= both != theirs[w];
          theirs[w] = both;
        }
      }
    }
  }
  return dominators;
}

/* Adds to the loop all blocks from which `from` can be reached without its header. */
static void add_body(const lanes_function *f, lanes_loop *loop, uint32_t from) {
  loop->blocks[from] = true;
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t b = 0; b < f->blocks.count; b++) {
      uint32_t count;
      const uint32_t *successors = successors_of(f, b, &count);
      for (uint32_t s = 0; s < count && !loop->blocks[b]; s++) {
        uint32_t to = block_of(f, successors[s]);
        if (to != loop->header && loop->blocks[to]) loop->blocks[b] = changed = true;
      }
    }
  }
}

static bool lanes_meet_in(const lanes_function *f, const lanes_loop *loop) {
  for (uint32_t s = 1; s <= f->exchange_count; s++)
    if (loop->blocks[block_of(f, f->sites[s].end)]) return true;
  return false;
}

/* The loop with this header. *out_found: there is one. */
static mps_status read_loop(const lanes_function *f, uint32_t header, const uint64_t *dominators, size_t words, lanes_loop *loop, bool *out_found) {
  *loop = (lanes_loop){.header = header, .blocks = lanes_allocate(f->module, f->blocks.count)};
  *out_found = false;
  if (!loop->blocks) return no_memory();
  for (uint32_t b = 0; b < f->blocks.count; b++) {
    uint32_t count;
    const uint32_t *successors = successors_of(f, b, &count);
    for (uint32_t s = 0; s < count; s++) {
      if (block_of(f, successors[s]) != header || !(dominators[b * words + header / 64] >> header % 64 & 1)) continue;
      *out_found = loop->blocks[header] = true;
      add_body(f, loop, b);
    }
  }
  for (uint32_t b = 0; b < f->blocks.count; b++) loop->block_count += loop->blocks[b];
  return MPS_STATUS_OK;
}

static mps_status find_loop(lanes_function *f, uint32_t header, const uint64_t *dominators, size_t words) {
  lanes_loop loop;
  bool found;
  MPS_TRY(read_loop(f, header, dominators, words, &loop, &found));
  if (!found || !lanes_meet_in(f, &loop)) return MPS_STATUS_OK;
  loop.offset = lanes_place(f, sizeof(uint32_t));
  uint32_t place = f->loop_count++; /* larger ones first: those around others are */
  for (; place > 0 && f->loops[place - 1].block_count < loop.block_count; place--) f->loops[place] = f->loops[place - 1];
  f->loops[place] = loop;
  return MPS_STATUS_OK;
}

/* ---- pauses ---- */
/* Values that look as if they differ between lanes: a guess by operands alone, since lanes that differ after all only lose time. */
static bool *find_different(const lanes_function *f) {
  bool *different = lanes_allocate(f->module, f->values.count);
  if (!different) return NULL;
  different[f->thread] = true;
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t n = 0; n < f->instructions.count; n++) {
      const lanes_instruction *i = &f->instructions.items[n];
      if (i->result == LANES_NONE || different[i->result]) continue;
      bool known = i->of_simdgroup || i->kind == LANES_PURE || i->kind == LANES_PHI || i->kind == LANES_OTHER || i->uniform_memory;
      for (uint32_t r = 0; r < i->reference_count && known && !i->of_simdgroup; r++) {
        const lanes_reference *reference = &f->references.items[i->first_reference + r];
        known = reference->is_block || !different[reference->index];
      }
      changed |= different[i->result] = !known;
    }
  }
  return different;
}

/* Whether all ways out of the loop are taken by what looks alike, and no threads meet in it. */
static bool goes_alike(const lanes_function *f, const lanes_loop *loop, const bool *different) {
  for (uint32_t b = 0; b < f->blocks.count; b++) {
    if (!loop->blocks[b]) continue;
    const lanes_block *block = &f->blocks.items[b];
    for (uint32_t n = block->first; n < block->first + block->count; n++)
      if (f->instructions.items[n].kind == LANES_COLLECTIVE) return false;
    uint32_t count;
    const uint32_t *successors = successors_of(f, b, &count);
    bool leaves = false;
    for (uint32_t s = 0; s < count; s++) leaves |= !loop->blocks[block_of(f, successors[s])];
    const lanes_instruction *end = &f->instructions.items[block->first + block->count - 1];
    for (uint32_t r = 0; leaves && r < end->reference_count; r++) {
      const lanes_reference *reference = &f->references.items[end->first_reference + r];
      if (!reference->is_block && different[reference->index]) return false;
    }
  }
  return true;
}

static mps_status add_pause(lanes_function *f, uint32_t block) {
  const lanes_block *b = &f->blocks.items[block];
  uint32_t last = LANES_NONE;
  for (uint32_t n = b->first; n < b->first + b->count && f->instructions.items[n].kind == LANES_PHI; n++) last = n;
  if (last == LANES_NONE) return MPS_STATUS_OK;
  lanes_site *sites = lanes_allocate(f->module, (f->site_count + 1) * sizeof *sites);
  if (!sites) return no_memory();
  memcpy(sites, f->sites, f->site_count * sizeof *sites);
  sites[f->site_count] = (lanes_site){.instruction = last, .result = LANES_NONE};
  f->instructions.items[last].site = f->site_count++;
  f->sites = sites;
  return MPS_STATUS_OK;
}

mps_status lanes_find_pauses(lanes_function *f) {
  size_t words = (f->blocks.count + 63) / 64;
  if (f->blocks.count > 4000) return MPS_STATUS_OK;
  const uint64_t *dominators = find_dominators(f, words);
  const bool *different = find_different(f);
  if (!dominators || !different) return no_memory();
  for (uint32_t b = 0; b < f->blocks.count; b++) {
    lanes_loop loop;
    bool found;
    MPS_TRY(read_loop(f, b, dominators, words, &loop, &found));
    if (found && goes_alike(f, &loop, different)) MPS_TRY(add_pause(f, b));
  }
  return MPS_STATUS_OK;
}

mps_status lanes_find_loops(lanes_function *f) {
  size_t words = (f->blocks.count + 63) / 64;
  if (f->exchange_count == 0) return MPS_STATUS_OK;
  if (f->blocks.count > 4000) return lanes_refuse("the kernel has %zu blocks", f->blocks.count);
  const uint64_t *dominators = find_dominators(f, words);
  f->loops = lanes_allocate(f->module, f->blocks.count * sizeof *f->loops);
  if (!dominators || !f->loops) return no_memory();
  for (uint32_t b = 0; b < f->blocks.count; b++) MPS_TRY(find_loop(f, b, dominators, words));
  for (uint32_t s = 1; s < f->site_count; s++) {
    lanes_site *site = &f->sites[s];
    site->loops = lanes_allocate(f->module, (f->loop_count + 1) * sizeof *site->loops);
    if (!site->loops) return no_memory();
    for (uint32_t l = 0; l < f->loop_count; l++)
      if (f->loops[l].blocks[block_of(f, site->end)]) site->loops[site->loop_count++] = l;
    if (site->loop_count > MAX_DEPTH) return lanes_refuse("threads meet in more than %u loops around each other", MAX_DEPTH);
  }
  return MPS_STATUS_OK;
}
