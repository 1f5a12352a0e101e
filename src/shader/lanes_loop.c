/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lanes_loop: loops in which lanes meet. Lanes that leave a branch in different rounds would otherwise look alike: each lane counts its
 * rounds, and those behind go first, as in src/driver/host/threadgroup.c. A loop is a header that dominates who jumps back to it.
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

static mps_status find_loop(lanes_function *f, uint32_t header, const uint64_t *dominators, size_t words) {
  lanes_loop loop = {.header = header, .blocks = lanes_allocate(f->module, f->blocks.count)};
  if (!loop.blocks) return no_memory();
  bool found = false;
  for (uint32_t b = 0; b < f->blocks.count; b++) {
    uint32_t count;
    const uint32_t *successors = successors_of(f, b, &count);
    for (uint32_t s = 0; s < count; s++) {
      if (block_of(f, successors[s]) != header || !(dominators[b * words + header / 64] >> header % 64 & 1)) continue;
      found = loop.blocks[header] = true;
      add_body(f, &loop, b);
    }
  }
  if (!found || !lanes_meet_in(f, &loop)) return MPS_STATUS_OK;
  for (uint32_t b = 0; b < f->blocks.count; b++) loop.block_count += loop.blocks[b];
  loop.offset = lanes_place(f, sizeof(uint32_t));
  uint32_t place = f->loop_count++; /* larger ones first: those around others are */
  for (; place > 0 && f->loops[place - 1].block_count < loop.block_count; place--) f->loops[place] = f->loops[place - 1];
  f->loops[place] = loop;
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
