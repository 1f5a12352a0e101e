/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lanes_loop: the order in which threads come to places, and loops. Where lanes wait at different places those behind go first: by the
 * loops that they are in (calls around a loop in which lanes meet count its rounds), then by the place, as in
 * src/driver/host/threadgroup.c. In loops without a meeting that all lanes seem to go round equally often lanes pause, so that the
 * vectoriser sees a loop over lanes. A loop is a header that dominates who jumps back to it.
 */
#include <string.h>

#include "shader/lanes_internal.h"

#define MAX_DEPTH 8u

static mps_status no_memory(void) { return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for the loops of a kernel"); }

typedef struct natural_loop {
  uint32_t header; /* block */
  bool *blocks;    /* that belong to it */
} natural_loop;

/* The segments behind a block. */
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
static void add_body(const lanes_function *f, natural_loop *loop, uint32_t from) {
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

/* The loop with this header. *out_found: there is one. */
static mps_status read_loop(const lanes_function *f, uint32_t header, const uint64_t *dominators, size_t words, natural_loop *loop,
                            bool *out_found) {
  *loop = (natural_loop){.header = header, .blocks = lanes_allocate(f->module, f->blocks.count)};
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
static bool goes_alike(const lanes_function *f, const natural_loop *loop, const bool *different) {
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

/* ---- ranks ---- */
static uint32_t loops_of_both(const natural_loop *loops, uint32_t loop_count, uint32_t a, uint32_t b) {
  uint32_t count = 0;
  for (uint32_t l = 0; l < loop_count; l++) count += loops[l].blocks[a] && loops[l].blocks[b];
  return count;
}

/* The next block behind `block` that was not seen: those that leave loops first, so that they come last in the end. */
static uint32_t next_block(const lanes_function *f, const natural_loop *loops, uint32_t loop_count, const bool *seen, uint32_t block) {
  uint32_t count, best = LANES_NONE, least = LANES_NONE;
  const uint32_t *successors = successors_of(f, block, &count);
  for (uint32_t s = count; s-- > 0;) {
    uint32_t to = block_of(f, successors[s]), common = loops_of_both(loops, loop_count, block, to);
    if (seen[to] || common >= least) continue;
    least = common;
    best = to;
  }
  return best;
}

/* A block comes before those behind it, and all of a loop before what is behind the loop. */
static mps_status rank_instructions(lanes_function *f, const natural_loop *loops, uint32_t loop_count) {
  uint32_t *stack = lanes_allocate(f->module, f->blocks.count * sizeof *stack);
  uint32_t *order = lanes_allocate(f->module, f->blocks.count * sizeof *order);
  bool *seen = lanes_allocate(f->module, f->blocks.count);
  if (!stack || !order || !seen) return no_memory();
  uint32_t depth = 1, count = 0, rank = 1;
  seen[0] = true;
  while (depth) {
    uint32_t next = next_block(f, loops, loop_count, seen, stack[depth - 1]);
    if (next == LANES_NONE) {
      order[count++] = stack[--depth];
    } else {
      seen[next] = true;
      stack[depth++] = next;
    }
  }
  while (count) {
    const lanes_block *b = &f->blocks.items[order[--count]];
    for (uint32_t n = b->first; n < b->first + b->count; n++) f->instructions.items[n].rank = rank++;
  }
  return MPS_STATUS_OK;
}

mps_status lanes_find_pauses(lanes_function *f) {
  size_t words = (f->blocks.count + 63) / 64;
  if (f->blocks.count > 4000) return lanes_refuse("the kernel has %zu blocks", f->blocks.count);
  const uint64_t *dominators = find_dominators(f, words);
  const bool *different = find_different(f);
  natural_loop *loops = lanes_allocate(f->module, f->blocks.count * sizeof *loops);
  if (!dominators || !different || !loops) return no_memory();
  uint32_t count = 0;
  for (uint32_t b = 0; b < f->blocks.count; b++) {
    bool found;
    MPS_TRY(read_loop(f, b, dominators, words, &loops[count], &found));
    count += found;
  }
  MPS_TRY(rank_instructions(f, loops, count));
  for (uint32_t l = 0; l < count; l++)
    if (goes_alike(f, &loops[l], different)) MPS_TRY(add_pause(f, loops[l].header));
  return MPS_STATUS_OK;
}

/* ---- counted loops ---- */
typedef struct nest {
  uint32_t loops[MAX_DEPTH];
  uint32_t depth;
  bool known;
} nest;

/* What is around the end of a block, from what is around its beginning; meetings in it take note. */
static mps_status walk_block(lanes_function *f, uint32_t block, nest *around) {
  const lanes_block *b = &f->blocks.items[block];
  for (uint32_t n = b->first; n < b->first + b->count; n++) {
    const lanes_instruction *i = &f->instructions.items[n];
    if (i->site != LANES_NONE) {
      lanes_site *site = &f->sites[i->site];
      site->loops = lanes_allocate(f->module, sizeof around->loops);
      if (!site->loops) return no_memory();
      memcpy(site->loops, around->loops, sizeof around->loops);
      site->loop_count = around->depth;
    }
    if (i->kind != LANES_ROUND) continue;
    bool innermost = around->depth > 0 && around->loops[around->depth - 1] == i->loop;
    for (uint32_t d = 0; i->round == 'e' && d < around->depth; d++) /* of a function in itself: they would share a count */
      if (around->loops[d] == i->loop) return lanes_refuse("a counted loop is within itself");
    if (i->round == 'e' && around->depth < MAX_DEPTH) around->loops[around->depth++] = i->loop;
    else if (i->round == 'l' && innermost) around->depth--;
    else if (i->round != 'n' || !innermost) return lanes_refuse("counted loops are not in each other, or are too deep");
    lanes_loop *loop = &f->loops.items[i->loop];
    if (i->round == 'e' && (loop->rank == 0 || i->rank < loop->rank)) loop->rank = i->rank;
  }
  return MPS_STATUS_OK;
}

mps_status lanes_find_loops(lanes_function *f) {
  for (uint32_t l = 0; l < f->loops.count; l++) f->loops.items[l].offset = lanes_place(f, sizeof(uint32_t));
  nest *nests = lanes_allocate(f->module, f->blocks.count * sizeof *nests);
  uint32_t *stack = lanes_allocate(f->module, f->blocks.count * sizeof *stack), depth = 1;
  if (!nests || !stack) return no_memory();
  nests[0].known = true;
  while (depth) {
    uint32_t block = stack[--depth], count;
    nest around = nests[block];
    MPS_TRY(walk_block(f, block, &around));
    const uint32_t *successors = successors_of(f, block, &count);
    for (uint32_t s = 0; s < count; s++) {
      nest *next = &nests[block_of(f, successors[s])];
      bool same = next->depth == around.depth && memcmp(next->loops, around.loops, around.depth * sizeof *around.loops) == 0;
      const lanes_block *target = &f->blocks.items[block_of(f, successors[s])];
      if (f->instructions.items[target->first].kind == LANES_UNREACHABLE) continue; /* shared by all that never gets there */
      if (next->known && !same) return lanes_refuse("a block is reached from within a counted loop and from without");
      if (next->known) continue;
      *next = around;
      stack[depth++] = block_of(f, successors[s]);
    }
  }
  return MPS_STATUS_OK;
}
