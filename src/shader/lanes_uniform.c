/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lanes_uniform: what all lanes have alike when they go through a region together: it is read once for all of them, so that the loop over
 * lanes sees one address and not 32. Within a region a kept value is the one that came in, or the one that the region gives it; where it
 * depends on the way which of the two it is, nothing is known.
 */
#include <string.h>

#include "shader/lanes_internal.h"

#define MAX_DEPTH 32

typedef enum version { VERSION_IN, VERSION_NEW, VERSION_EITHER } version;

typedef struct analysis {
  const lanes_function *f;
  const lanes_region *region;
  uint32_t entry; /* segment */
  const uint64_t *in; /* bits of values that come in alike */
  bool *seen;
  uint32_t *stack;
} analysis;

static bool bit(const uint64_t *bits, uint32_t value) { return bits[value / 64] >> (value % 64) & 1; }

/* Whether `to` can be reached from the segments behind `from`, or from `from` itself, not through `without`. */
static bool reaches(analysis *a, uint32_t from, bool itself, uint32_t to, uint32_t without) {
  const lanes_function *f = a->f;
  uint32_t count = 0;
  memset(a->seen, 0, f->segments.count);
  if (itself) {
    if (from == without) return false;
    a->stack[count++] = from;
    a->seen[from] = true;
    if (from == to) return true;
  } else {
    a->stack[count++] = from;
  }
  while (count) {
    const lanes_segment *s = &f->segments.items[a->stack[--count]];
    for (uint32_t n = 0; n < s->successor_count; n++) {
      uint32_t next = f->successors.items[s->first_successor + n];
      if (next == to && next != without) return true;
      if (next == without || a->seen[next]) continue;
      a->seen[next] = true;
      a->stack[count++] = next;
    }
  }
  return false;
}

static uint32_t segment_of(const lanes_function *f, uint32_t instruction) {
  const lanes_block *b = &f->blocks.items[f->instructions.items[instruction].block];
  for (uint32_t s = b->first_segment; s < b->first_segment + b->segment_count; s++) {
    const lanes_segment *segment = &f->segments.items[s];
    if (instruction >= segment->first && instruction < segment->first + segment->count) return s;
  }
  return b->first_segment;
}

/* What is true at the end of segment `at` of something that segment `given` gives. */
static version version_at(analysis *a, uint32_t given, uint32_t at) {
  if (!a->region->segments[given]) return VERSION_IN;
  if (reaches(a, given, false, given, LANES_NONE)) return VERSION_EITHER; /* more than once */
  if (given != at && !reaches(a, given, true, at, LANES_NONE)) return VERSION_IN;
  return given == at || !reaches(a, a->entry, true, at, given) ? VERSION_NEW : VERSION_EITHER;
}

static bool is_alike(analysis *a, uint32_t value, uint32_t at, int depth);

/* The one edge by which a segment is reached in the region; false: there are more. */
static bool only_edge(const analysis *a, uint32_t to, uint32_t *from) {
  uint32_t found = 0;
  *from = LANES_NONE;
  for (uint32_t s = 0; s < a->f->segments.count; s++) {
    const lanes_segment *segment = &a->f->segments.items[s];
    for (uint32_t n = 0; a->region->segments[s] && n < segment->successor_count; n++) {
      if (a->f->successors.items[segment->first_successor + n] != to) continue;
      found++;
      *from = s;
    }
  }
  return found == 1;
}

static bool phi_is_alike(analysis *a, const lanes_instruction *i, uint32_t at, int depth) {
  uint32_t from;
  if (!only_edge(a, at, &from)) return false;
  const lanes_reference *references = &a->f->references.items[i->first_reference];
  for (uint32_t r = 0; r < i->reference_count; r++) {
    if (!references[r].is_block || references[r].index != a->f->segments.items[from].block) continue;
    return r == 0 || references[r - 1].is_block || is_alike(a, references[r - 1].index, from, depth); /* a constant */
  }
  return false;
}

/* Whether `value`, used in segment `at`, is the same in all lanes. */
static bool is_alike(analysis *a, uint32_t value, uint32_t at, int depth) {
  const lanes_value *v = &a->f->values.items[value];
  if (value == a->f->thread || depth > MAX_DEPTH) return false;
  if (value == a->f->context) return true;
  const lanes_instruction *i = &a->f->instructions.items[v->instruction];
  uint32_t given = segment_of(a->f, v->instruction);
  if (i->of_simdgroup) return true;
  if (!v->anew && v->crossing) {
    version which = i->kind == LANES_COLLECTIVE ? VERSION_IN : version_at(a, given, at);
    if (which == VERSION_EITHER) return false;
    if (which == VERSION_IN) return bit(a->in, value);
  } else if (!v->anew && reaches(a, given, false, given, LANES_NONE)) {
    return false; /* of some round of a loop */
  }
  if (i->kind == LANES_PHI) return phi_is_alike(a, i, given, depth + 1);
  if (i->kind != LANES_PURE && !i->uniform_memory) return false;
  for (uint32_t r = 0; r < i->reference_count; r++)
    if (!is_alike(a, a->f->references.items[i->first_reference + r].index, given, depth + 1)) return false;
  return true;
}

/* Takes off what the region does not leave alike at its exits. True: something went. */
static bool narrow(analysis *a, uint64_t *const *alike) {
  const lanes_function *f = a->f;
  bool changed = false;
  for (uint32_t e = 1; e < f->site_count; e++) {
    for (uint32_t v = 0; a->region->exits[e] && v < f->values.count; v++) {
      if (!bit(alike[e], v) || is_alike(a, v, f->sites[e].end, 0)) continue;
      alike[e][v / 64] &= ~(UINT64_C(1) << v % 64);
      changed = true;
    }
  }
  return changed;
}

/* Whether all lanes go the same way through the region, so that they come to the same site. */
static bool goes_one_way(analysis *a) {
  const lanes_function *f = a->f;
  for (uint32_t s = 0; s < f->segments.count; s++) {
    const lanes_segment *segment = &f->segments.items[s];
    const lanes_instruction *end = &f->instructions.items[segment->first + segment->count - 1];
    if (!a->region->segments[s] || segment->successor_count < 2) continue;
    bool differs = false; /* in where the ways lead */
    for (uint32_t e = 1; e <= f->site_count; e++) {
      uint32_t ways = 0;
      for (uint32_t n = 0; a->region->exits[e] && n < segment->successor_count; n++) {
        uint32_t to = f->successors.items[segment->first_successor + n];
        if (e < f->site_count) {
          ways += to == f->sites[e].end || reaches(a, to, true, f->sites[e].end, LANES_NONE);
          continue;
        }
        bool returns = false;
        for (uint32_t r = 0; r < f->segments.count && !returns; r++) {
          const lanes_segment *last = &f->segments.items[r];
          returns = a->region->segments[r] && f->instructions.items[last->first + last->count - 1].kind == LANES_RETURN &&
                    reaches(a, to, true, r, LANES_NONE);
        }
        ways += returns;
      }
      differs |= ways != 0 && ways != segment->successor_count;
    }
    for (uint32_t r = 0; differs && r < end->reference_count; r++) {
      const lanes_reference *reference = &f->references.items[end->first_reference + r];
      if (!reference->is_block && !is_alike(a, reference->index, s, 0)) return false;
    }
    if (differs && reaches(a, s, false, s, LANES_NONE)) return false;
  }
  return true;
}

/* Whether each call that changes the count of a loop is passed once by all that come to `at`, or by none. */
static bool counts_alike(analysis *a, uint32_t loop, uint32_t at) {
  for (uint32_t n = 0; n < a->f->instructions.count; n++) {
    const lanes_instruction *i = &a->f->instructions.items[n];
    if (i->kind == LANES_ROUND && i->loop == loop && i->round != 'l' && version_at(a, segment_of(a->f, n), at) == VERSION_EITHER) return false;
  }
  return true;
}

/* Whether lanes that come to a site together went round its loops equally often. */
static mps_status find_unlike(analysis *a, lanes_region *region) {
  const lanes_function *f = a->f;
  region->unlike = lanes_allocate(f->module, (size_t)(f->site_count + 1) * (f->loops.count + 1));
  if (!region->unlike) return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for the loops of a kernel");
  region->one_way = region->exit_count > 1 && goes_one_way(a);
  region->certain = region->exit_count == 1 || region->one_way;
  for (uint32_t e = 1; e < f->site_count; e++) {
    const lanes_site *site = &f->sites[e];
    for (uint32_t l = 0; region->exits[e] && l < site->loop_count; l++) {
      if (counts_alike(a, site->loops[l], site->end)) continue;
      region->unlike[e * f->loops.count + site->loops[l]] = true;
      region->certain = false;
    }
  }
  return MPS_STATUS_OK;
}

static mps_status keep_uniforms(const lanes_function *f, lanes_region *region, const uint64_t *alike) {
  region->uniforms = lanes_allocate(f->module, (f->values.count + 1) * sizeof *region->uniforms);
  if (!region->uniforms) return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for the values of a kernel");
  for (uint32_t v = 0; v < f->values.count; v++)
    if (bit(alike, v)) region->uniforms[region->uniform_count++] = v;
  return MPS_STATUS_OK;
}

mps_status lanes_find_uniforms(lanes_function *f) {
  analysis a = {.f = f, .seen = lanes_allocate(f->module, f->segments.count),
                .stack = lanes_allocate(f->module, (f->segments.count + 1) * sizeof *a.stack)};
  uint64_t **alike = lanes_allocate(f->module, f->site_count * sizeof *alike);
  if (!a.seen || !a.stack || !alike) return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for the values of a kernel");
  for (uint32_t s = 0; s < f->site_count; s++) { /* all that could be, to begin with */
    alike[s] = lanes_allocate(f->module, f->live_words * sizeof **alike);
    if (!alike[s]) return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for the values of a kernel");
    for (uint32_t v = 0; s > 0 && v < f->values.count; v++) {
      const lanes_value *value = &f->values.items[v];
      bool possible = value->crossing && value->bytes <= 8 && f->instructions.items[value->instruction].kind != LANES_COLLECTIVE;
      if (possible && lanes_is_live(f, f->sites[s].segment, v)) alike[s][v / 64] |= UINT64_C(1) << v % 64;
    }
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t s = 0; s < f->site_count; s++) {
      a.region = &f->regions[s];
      a.entry = f->sites[s].segment;
      a.in = alike[s];
      changed |= narrow(&a, alike);
    }
  }
  for (uint32_t s = 0; s < f->site_count; s++) {
    a.region = &f->regions[s];
    a.entry = f->sites[s].segment;
    MPS_TRY(keep_uniforms(f, &f->regions[s], alike[s]));
    MPS_TRY(find_unlike(&a, &f->regions[s]));
  }
  return MPS_STATUS_OK;
}
