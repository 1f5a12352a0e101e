/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lanes_region: what lies between two meetings. Blocks are split behind each meeting; a region is what can be reached from where threads
 * go on without meeting again. A value that is needed behind a meeting is kept for each thread in memory, or computed anew
 * when that takes a few instructions from the arguments.
 */
#include <stdlib.h>
#include <string.h>

#include "shader/lanes_internal.h"

#define MAX_COST 16u
#define MAX_COPIED 20000u /* instructions in all regions of a function: some seconds of compiling */
#define MAX_BYTES (UINT64_C(1) << 21) /* of a simdgroup */

static mps_status no_memory(void) { return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for the regions of a kernel"); }

static const lanes_instruction *last_of(const lanes_function *f, const lanes_segment *s) { return &f->instructions.items[s->first + s->count - 1]; }

/* ---- meetings and segments ---- */
/* Exchanges first, barriers behind them, each in the order of the text. */
static mps_status sort_sites(lanes_function *f) {
  lanes_site *sorted = lanes_allocate(f->module, f->site_count * sizeof *sorted);
  if (!sorted) return no_memory();
  uint32_t count = 1;
  sorted[0] = f->sites[0];
  for (int barrier = 0; barrier < 2; barrier++) {
    for (uint32_t s = 1; s < f->site_count; s++) {
      if (f->sites[s].barrier != (barrier == 1)) continue;
      f->instructions.items[f->sites[s].instruction].site = count;
      sorted[count++] = f->sites[s];
    }
    if (!barrier) f->exchange_count = count - 1;
  }
  f->sites = sorted;
  f->barrier_end = count - 1;
  return MPS_STATUS_OK;
}

static mps_status make_segments(lanes_function *f) {
  for (uint32_t b = 0; b < f->blocks.count; b++) {
    lanes_block *block = &f->blocks.items[b];
    block->first_segment = (uint32_t)f->segments.count;
    for (uint32_t i = block->first, first = i; i < block->first + block->count; i++) {
      uint32_t site = f->instructions.items[i].site;
      if (site == LANES_NONE && i + 1 < block->first + block->count) continue;
      MPS_TRY(MPS_ARRAY_RESERVE(&f->segments, 1));
      MPS_ARRAY_PUSH(&f->segments, ((lanes_segment){.block = b, .first = first, .count = i + 1 - first, .site = site}));
      if (site != LANES_NONE) {
        f->sites[site].end = (uint32_t)f->segments.count - 1;
        f->sites[site].segment = (uint32_t)f->segments.count; /* the next one, of this block */
      }
      first = i + 1;
    }
    block->segment_count = (uint32_t)f->segments.count - block->first_segment;
  }
  for (size_t s = 0; s < f->segments.count; s++) {
    lanes_segment *segment = &f->segments.items[s];
    const lanes_instruction *end = last_of(f, segment);
    segment->first_successor = (uint32_t)f->successors.count;
    if (segment->site != LANES_NONE) continue;
    MPS_TRY(MPS_ARRAY_RESERVE(&f->successors, end->reference_count));
    for (uint32_t r = 0; r < end->reference_count; r++) {
      const lanes_reference *reference = &f->references.items[end->first_reference + r];
      if (!reference->is_block) continue;
      MPS_ARRAY_PUSH(&f->successors, f->blocks.items[reference->index].first_segment);
      segment->successor_count++;
    }
  }
  return MPS_STATUS_OK;
}

/* ---- what can be computed anew ---- */
/* The only value that an instruction names; LANES_NONE: none, or several. */
static uint32_t only_value(const lanes_function *f, const lanes_instruction *i) {
  return i->reference_count == 1 ? f->references.items[i->first_reference].index : LANES_NONE;
}

/* "lshr i32 %thread, 5" and what compares with a multiple of 32: the same for all lanes of a simdgroup. */
static bool is_of_simdgroup(const lanes_function *f, const lanes_instruction *i) {
  const lanes_reference *thread = &f->references.items[i->first_reference];
  if (only_value(f, i) != f->thread || thread->is_block || i->kind != LANES_PURE) return false;
  ir_span front = {i->text.at, thread->begin}, rest = {i->text.at + thread->end, i->text.length - thread->end};
  char number[24];
  if (!ir_starts(rest, ", ") || rest.length - 2 >= sizeof number) return false;
  memcpy(number, rest.at + 2, rest.length - 2);
  number[rest.length - 2] = 0;
  char *end;
  unsigned long value = strtoul(number, &end, 10);
  if (*end || end == number || number[0] == '-') return false;
  if (ir_is(front, "lshr i32 ") || ir_is(front, "lshr exact i32 ")) return value >= 5 && value < 32;
  if (ir_is(front, "icmp ult i32 ") || ir_is(front, "icmp samesign ult i32 ")) return value % LANES_WIDTH == 0;
  if (ir_is(front, "icmp ugt i32 ") || ir_is(front, "icmp samesign ugt i32 ")) return value % LANES_WIDTH == LANES_WIDTH - 1;
  return false;
}

/* Marks loads at constant places in the context. */
static mps_status find_context_loads(lanes_function *f) {
  bool *in_context = lanes_allocate(f->module, f->values.count);
  if (!in_context) return no_memory();
  in_context[f->context] = true;
  for (size_t n = 0; n < f->instructions.count; n++) f->instructions.items[n].of_simdgroup = is_of_simdgroup(f, &f->instructions.items[n]);
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t n = 0; n < f->instructions.count; n++) {
      lanes_instruction *i = &f->instructions.items[n];
      uint32_t base = only_value(f, i);
      if (i->result == LANES_NONE || base == LANES_NONE || !in_context[base] || in_context[i->result]) continue;
      if (i->kind == LANES_LOAD && i->plain) i->uniform_memory = true;
      if (ir_starts(i->text, "getelementptr ")) in_context[i->result] = changed = true;
    }
  }
  return MPS_STATUS_OK;
}

static uint32_t cost_of(const lanes_function *f, const lanes_instruction *i) {
  if (i->kind == LANES_ALLOCA) return 0;
  if (i->kind != LANES_PURE && !i->uniform_memory) return LANES_NONE;
  uint32_t cost = 1;
  for (uint32_t r = 0; r < i->reference_count; r++) {
    uint32_t operand = f->values.items[f->references.items[i->first_reference + r].index].cost;
    if (operand == LANES_NONE || (cost += operand) > MAX_COST) return LANES_NONE;
  }
  return cost;
}

static mps_status find_costs(lanes_function *f) {
  MPS_TRY(find_context_loads(f));
  f->values.items[f->context].cost = f->values.items[f->thread].cost = 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t n = 0; n < f->instructions.count; n++) {
      const lanes_instruction *i = &f->instructions.items[n];
      if (i->result == LANES_NONE || f->values.items[i->result].cost != LANES_NONE) continue;
      uint32_t cost = cost_of(f, i);
      changed |= cost != LANES_NONE;
      f->values.items[i->result].cost = cost;
    }
  }
  return MPS_STATUS_OK;
}

static void mark_anew(lanes_function *f, uint32_t value) {
  lanes_value *v = &f->values.items[value];
  if (v->anew || v->instruction == LANES_NONE) return;
  v->anew = true;
  const lanes_instruction *i = &f->instructions.items[v->instruction];
  for (uint32_t r = 0; r < i->reference_count; r++) mark_anew(f, f->references.items[i->first_reference + r].index);
}

/* ---- what is needed where ---- */
static void set_bit(uint64_t *bits, uint32_t value) { bits[value / 64] |= UINT64_C(1) << (value % 64); }

/* Values that `segment` uses and does not define before, and those that it defines. */
static void find_uses(const lanes_function *f, const lanes_segment *s, uint64_t *uses, uint64_t *defines) {
  for (uint32_t n = s->first; n < s->first + s->count; n++) {
    const lanes_instruction *i = &f->instructions.items[n];
    for (uint32_t r = 0; i->kind != LANES_PHI && r < i->reference_count; r++) {
      const lanes_reference *reference = &f->references.items[i->first_reference + r];
      uint32_t v = reference->index;
      if (!reference->is_block && f->values.items[v].instruction != LANES_NONE && !(defines[v / 64] >> (v % 64) & 1)) set_bit(uses, v);
    }
    if (i->result != LANES_NONE) set_bit(defines, i->result);
  }
}

/* Adds what the phis of `to` take from `block`. A phi's references: value, label or label alone, pair by pair. */
static void add_phi_uses(const lanes_function *f, uint32_t block, const lanes_segment *to, uint64_t *out) {
  for (uint32_t n = to->first; n < to->first + to->count && f->instructions.items[n].kind == LANES_PHI; n++) {
    const lanes_instruction *i = &f->instructions.items[n];
    const lanes_reference *references = &f->references.items[i->first_reference];
    for (uint32_t r = 1; r < i->reference_count; r++)
      if (references[r].is_block && references[r].index == block && !references[r - 1].is_block &&
          f->values.items[references[r - 1].index].instruction != LANES_NONE)
        set_bit(out, references[r - 1].index);
  }
}

static void find_live_out(const lanes_function *f, const lanes_segment *s, uint64_t *out) {
  if (s->site != LANES_NONE) {
    const uint64_t *next = &f->live[(size_t)f->sites[s->site].segment * f->live_words];
    for (uint32_t w = 0; w < f->live_words; w++) out[w] |= next[w];
    return;
  }
  for (uint32_t n = 0; n < s->successor_count; n++) {
    uint32_t to = f->successors.items[s->first_successor + n];
    const uint64_t *next = &f->live[(size_t)to * f->live_words];
    for (uint32_t w = 0; w < f->live_words; w++) out[w] |= next[w];
    add_phi_uses(f, s->block, &f->segments.items[to], out);
  }
}

static mps_status find_live(lanes_function *f) {
  f->live_words = (uint32_t)(f->values.count + 63) / 64;
  size_t row = f->live_words * sizeof(uint64_t), count = f->segments.count;
  f->live = lanes_allocate(f->module, count * row);
  uint64_t *uses = lanes_allocate(f->module, count * row), *defines = lanes_allocate(f->module, count * row), *out = lanes_allocate(f->module, row);
  if (!f->live || !uses || !defines || !out) return no_memory();
  for (size_t s = 0; s < count; s++) find_uses(f, &f->segments.items[s], uses + s * f->live_words, defines + s * f->live_words);
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t s = count; s-- > 0;) {
      memset(out, 0, row);
      find_live_out(f, &f->segments.items[s], out);
      uint64_t *live = f->live + s * f->live_words;
      for (uint32_t w = 0; w < f->live_words; w++) {
        uint64_t now = (out[w] & ~defines[s * f->live_words + w]) | uses[s * f->live_words + w];
        changed |= now != live[w];
        live[w] = now;
      }
    }
  }
  return MPS_STATUS_OK;
}

/* ---- places in memory ---- */
uint32_t lanes_place(lanes_function *f, uint64_t bytes_per_thread) {
  f->bytes = (f->bytes + 63) & ~UINT64_C(63);
  uint32_t offset = (uint32_t)f->bytes;
  f->bytes += bytes_per_thread * LANES_WIDTH;
  if (f->bytes > MAX_BYTES) f->bytes = MAX_BYTES + 1;
  return offset;
}

static mps_status place_value(lanes_function *f, lanes_value *v) {
  uint64_t bytes = lanes_type_bytes(f->module, v->type), step = 1;
  if (bytes == 0 || bytes > 4096)
    return lanes_refuse("%%%.*s is kept over a meeting and has the type '%.*s'", IR_SPAN(v->name), IR_SPAN(v->type));
  while (step < bytes) step *= 2;
  v->bytes = (uint32_t)step;
  v->offset = lanes_place(f, step);
  return MPS_STATUS_OK;
}

static mps_status place_all(lanes_function *f) {
  f->bytes = LANES_HEADER_BYTES;
  for (uint32_t s = 1; s < f->site_count; s++) {
    uint32_t segment = f->sites[s].segment;
    for (uint32_t v = 0; v < f->values.count; v++) {
      if (!lanes_is_live(f, segment, v)) continue;
      if (f->values.items[v].cost == LANES_NONE) f->values.items[v].crossing = true;
      else mark_anew(f, v);
    }
  }
  for (size_t n = 0; n < f->instructions.count; n++) /* at a region's beginning, where they do not depend on a condition */
    if (f->instructions.items[n].uniform_memory) mark_anew(f, f->instructions.items[n].result);
  for (uint32_t v = 0; v < f->values.count; v++) {
    lanes_value *value = &f->values.items[v];
    bool is_alloca = value->instruction != LANES_NONE && f->instructions.items[value->instruction].kind == LANES_ALLOCA;
    if (value->crossing) MPS_TRY(place_value(f, value));
    if (is_alloca) {
      value->anew = true;
      value->offset = lanes_place(f, value->bytes);
    }
  }
  for (uint32_t s = 1; s < f->site_count; s++) {
    lanes_site *site = &f->sites[s];
    for (uint32_t o = 0; o < site->operand_count; o++) site->operands[o].offset = lanes_place(f, site->operands[o].bytes);
    if (site->result == LANES_NONE) continue;
    lanes_value *result = &f->values.items[site->result];
    if (!result->crossing) MPS_TRY(place_value(f, result)); /* nobody needs it */
    result->crossing = true;
  }
  MPS_TRY(lanes_find_loops(f));
  f->bytes = (f->bytes + 63) & ~UINT64_C(63);
  return f->bytes > MAX_BYTES ? lanes_refuse("a thread keeps more than %u bytes", (unsigned)(MAX_BYTES / LANES_WIDTH)) : MPS_STATUS_OK;
}

/* ---- regions ---- */
static mps_status make_region(lanes_function *f, uint32_t site, uint32_t *stack, uint64_t *copied) {
  lanes_region *r = &f->regions[site];
  r->segments = lanes_allocate(f->module, f->segments.count);
  r->exits = lanes_allocate(f->module, f->site_count + 1);
  if (!r->segments || !r->exits) return no_memory();
  uint32_t count = 0;
  stack[count++] = f->sites[site].segment;
  r->segments[f->sites[site].segment] = true;
  while (count) {
    const lanes_segment *s = &f->segments.items[stack[--count]];
    *copied += s->count;
    uint32_t exit = s->site != LANES_NONE ? s->site : last_of(f, s)->kind == LANES_RETURN ? f->site_count : LANES_NONE;
    if (exit != LANES_NONE && !r->exits[exit]) {
      r->exits[exit] = true;
      r->exit_count++;
      r->only_exit = exit;
    }
    for (uint32_t n = 0; n < s->successor_count; n++) {
      uint32_t to = f->successors.items[s->first_successor + n];
      if (r->segments[to]) continue;
      r->segments[to] = true;
      stack[count++] = to;
    }
  }
  return MPS_STATUS_OK;
}

static mps_status make_regions(lanes_function *f) {
  f->regions = lanes_allocate(f->module, f->site_count * sizeof *f->regions);
  uint32_t *stack = lanes_allocate(f->module, f->segments.count * sizeof *stack);
  if (!f->regions || !stack) return no_memory();
  uint64_t copied = 0;
  for (uint32_t s = 0; s < f->site_count; s++) {
    MPS_TRY(make_region(f, s, stack, &copied));
    if (copied > MAX_COPIED) return lanes_refuse("the regions between %u meetings grow too large", f->site_count - 1);
  }
  return MPS_STATUS_OK;
}

mps_status lanes_function_split(lanes_function *f) {
  MPS_TRY(sort_sites(f));
  MPS_TRY(make_segments(f));
  MPS_TRY(find_costs(f));
  MPS_TRY(lanes_find_pauses(f));
  f->segments.count = f->successors.count = 0;
  MPS_TRY(make_segments(f));
  MPS_TRY(find_live(f));
  MPS_TRY(place_all(f));
  MPS_TRY(make_regions(f));
  return lanes_find_uniforms(f);
}
