/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lanes_write_region: the function of one region: one thread goes from one meeting to the next. Values kept over meetings lie in variables
 * of the function meanwhile, which the optimiser turns back into values: `%m.a<value>` is read wherever the value was used.
 */
#include <string.h>

#include "shader/lanes_internal.h"
#include "shader/lanes_write.h"

typedef struct region_writer {
  const lanes_function *f;
  const lanes_region *region;
  uint32_t entry; /* site where it begins */
  ir_text *out;
  const lanes_numbers *numbers;
  bool *written;   /* by value: computed anew */
  uint32_t temporaries;
} region_writer;

/* ---- slots ---- */
static bool is_bool(ir_span type) { return ir_is(type, "i1"); }

static uint32_t alignment(uint32_t bytes) { return bytes < 16 ? bytes : 16; }

/* An address in a slot; its number. */
static uint32_t put_address(ir_text *out, uint32_t offset, uint32_t bytes, const char *slot, uint32_t *temporaries) {
  uint32_t n = (*temporaries)++;
  ir_put(out, "  %%m.b%u = getelementptr inbounds i8, ptr %%m.storage, i64 %u\n", n, offset);
  ir_put(out, "  %%m.p%u = getelementptr inbounds [%u x i8], ptr %%m.b%u, i64 %s\n", n, bytes, n, slot);
  return n;
}

uint32_t lanes_put_load(ir_text *out, const lanes_value *v, const char *slot, uint32_t group, uint32_t *temporaries) {
  uint32_t n = put_address(out, v->offset, v->bytes, slot, temporaries);
  bool narrow = is_bool(v->type);
  ir_put(out, "  %%m.%s%u = load ", narrow ? "n" : "v", n);
  if (narrow) ir_put(out, "i8");
  else ir_put_span(out, v->type);
  ir_put(out, ", ptr %%m.p%u, align %u, !llvm.access.group !%u\n", n, alignment(v->bytes), group);
  if (narrow) ir_put(out, "  %%m.v%u = trunc i8 %%m.n%u to i1\n", n, n);
  return n;
}

/* Stores `text`, a value of `type`. */
static void put_store(region_writer *w, ir_span type, uint32_t offset, uint32_t bytes, const char *text) {
  uint32_t n = put_address(w->out, offset, bytes, "%m.slot", &w->temporaries);
  if (is_bool(type)) {
    ir_put(w->out, "  %%m.w%u = zext i1 %s to i8\n", n, text);
    ir_put(w->out, "  store i8 %%m.w%u, ptr %%m.p%u, align 1, !llvm.access.group !%u\n", n, n, w->numbers->access);
    return;
  }
  ir_put(w->out, "  store %.*s %s, ptr %%m.p%u, align %u, !llvm.access.group !%u\n", IR_SPAN(type), text, n, alignment(bytes),
         w->numbers->access);
}

/* ---- instructions ---- */
/* What may stay of an instruction's metadata; of one that is moved only what says nothing of where it was. */
static void put_metadata(region_writer *w, ir_span all, bool moved) {
  static const char *const kept[] = {"!tbaa ",  "!fpmath ",    "!range ", "!nonnull ",      "!noundef ",
                                     "!align ", "!llvm.loop ", "!prof ",  "!unpredictable "};
  while (all.length > 2) {
    ir_span rest = {all.at + 2, all.length - 2};
    size_t end = ir_find(rest, ", !");
    for (size_t i = 0; i < (moved ? 2u : sizeof kept / sizeof *kept); i++)
      if (ir_starts(rest, kept[i])) ir_put(w->out, ", %.*s", (int)end, rest.at);
    all = (ir_span){rest.at + end, rest.length - end};
  }
}

static const lanes_reference *references_of(const lanes_function *f, const lanes_instruction *i) {
  return &f->references.items[i->first_reference];
}

/* Part of an instruction's text with names as they are now. `loaded` numbers the first temporary of its kept operands. */
static void put_range(region_writer *w, const lanes_instruction *i, uint32_t begin, uint32_t end, const uint32_t *loaded) {
  const lanes_reference *references = references_of(w->f, i);
  uint32_t at = begin;
  for (uint32_t r = 0; r < i->reference_count; r++) {
    if (references[r].begin < at || references[r].end > end) continue;
    ir_put_span(w->out, (ir_span){i->text.at + at, references[r].begin - at});
    at = references[r].end;
    if (references[r].is_block) ir_put(w->out, "%%b%u", w->f->blocks.items[references[r].index].first_segment);
    else if (loaded && w->f->values.items[references[r].index].crossing) ir_put(w->out, "%%m.t%u", (*loaded) + r);
    else if (i->of_simdgroup) ir_put(w->out, "%%m.first");
    else ir_put(w->out, "%%v%u", references[r].index);
  }
  ir_put_span(w->out, (ir_span){i->text.at + at, end - at});
}

static bool touches_memory(const lanes_instruction *i) {
  return i->kind == LANES_LOAD || i->kind == LANES_MEMORY ||
         (i->kind == LANES_CALL && (ir_find(i->text, "@llvm.mem") < i->text.length || ir_find(i->text, "@llvm.masked.") < i->text.length));
}

/* Reads a kept value from its variable. */
static void put_variable_load(region_writer *w, uint32_t value) {
  ir_put(w->out, "load %.*s, ptr %%m.a%u\n", IR_SPAN(w->f->values.items[value].type), value);
}

static void put_variable_store(region_writer *w, uint32_t value) {
  if (w->f->values.items[value].crossing)
    ir_put(w->out, "  store %.*s %%v%u, ptr %%m.a%u\n", IR_SPAN(w->f->values.items[value].type), value, value);
}

static void put_instruction(region_writer *w, const lanes_instruction *i, bool moved) {
  uint32_t loaded = w->temporaries;
  w->temporaries += i->reference_count;
  const lanes_reference *references = references_of(w->f, i);
  for (uint32_t r = 0; r < i->reference_count; r++) {
    if (references[r].is_block || !w->f->values.items[references[r].index].crossing) continue;
    ir_put(w->out, "  %%m.t%u = ", loaded + r);
    put_variable_load(w, references[r].index);
  }
  ir_put(w->out, "  ");
  if (i->result != LANES_NONE) ir_put(w->out, "%%v%u = ", i->result);
  put_range(w, i, 0, (uint32_t)i->text.length, &loaded);
  put_metadata(w, i->metadata, moved);
  if (touches_memory(i)) ir_put(w->out, ", !llvm.access.group !%u", w->numbers->access);
  if (i->uniform_memory) ir_put(w->out, ", !invariant.load !%u", w->numbers->empty);
  ir_put(w->out, "\n");
  if (i->result != LANES_NONE) put_variable_store(w, i->result);
}

/* ---- values computed anew ---- */
static void put_anew(region_writer *w, uint32_t value) {
  const lanes_value *v = &w->f->values.items[value];
  if (!v->anew || w->written[value]) return;
  w->written[value] = true;
  const lanes_instruction *i = &w->f->instructions.items[v->instruction];
  if (i->kind == LANES_ALLOCA) {
    uint32_t n = put_address(w->out, v->offset, v->bytes, "%m.slot", &w->temporaries);
    ir_put(w->out, "  %%v%u = getelementptr inbounds i8, ptr %%m.p%u, i64 0\n", value, n);
    return;
  }
  for (uint32_t r = 0; r < i->reference_count; r++) put_anew(w, references_of(w->f, i)[r].index);
  put_instruction(w, i, true);
}

/* All that the region's instructions name. */
static void put_all_anew(region_writer *w) {
  for (size_t s = 0; s < w->f->segments.count; s++) {
    const lanes_segment *segment = &w->f->segments.items[s];
    for (uint32_t n = segment->first; w->region->segments[s] && n < segment->first + segment->count; n++) {
      const lanes_instruction *i = &w->f->instructions.items[n];
      for (uint32_t r = 0; r < i->reference_count; r++)
        if (!references_of(w->f, i)[r].is_block) put_anew(w, references_of(w->f, i)[r].index);
    }
  }
}

/* ---- phis ---- */
static uint32_t last_segment(const lanes_function *f, uint32_t block) {
  return f->blocks.items[block].first_segment + f->blocks.items[block].segment_count - 1;
}

static void put_phi(region_writer *w, const lanes_instruction *i) {
  const lanes_value *v = &w->f->values.items[i->result];
  const lanes_reference *references = references_of(w->f, i);
  uint32_t at = (uint32_t)(v->type.at - i->text.at + (ptrdiff_t)v->type.length);
  const char *comma = "";
  ir_put(w->out, "  %%v%u = %.*s ", i->result, (int)at, i->text.at);
  for (uint32_t r = 0; r < i->reference_count; r++) { /* "[ value, %label ]": the label is the last reference of each pair */
    if (!references[r].is_block) continue;
    uint32_t block = references[r].index, segment = last_segment(w->f, block);
    uint32_t begin = at;
    while (i->text.at[begin] != '[') begin++;
    at = references[r].end;
    if (!w->region->segments[segment]) continue;
    bool kept = r > 0 && !references[r - 1].is_block && w->f->values.items[references[r - 1].index].crossing;
    ir_put(w->out, "%s", comma);
    if (kept) ir_put(w->out, "[ %%m.e%u.%u, ", i->result, block);
    else put_range(w, i, begin, references[r].begin, NULL);
    ir_put(w->out, "%%b%u ]", segment);
    comma = ", ";
  }
  ir_put(w->out, "\n");
}

/* Reads what phis of the blocks behind this one take of kept values. */
static void put_phi_loads(region_writer *w, const lanes_segment *s) {
  const lanes_function *f = w->f;
  for (uint32_t n = 0; n < s->successor_count; n++) {
    const uint32_t *successors = &f->successors.items[s->first_successor];
    bool before = false;
    for (uint32_t k = 0; k < n; k++) before |= successors[k] == successors[n];
    const lanes_segment *to = &f->segments.items[successors[n]];
    for (uint32_t p = to->first; !before && p < to->first + to->count && f->instructions.items[p].kind == LANES_PHI; p++) {
      const lanes_instruction *phi = &f->instructions.items[p];
      const lanes_reference *references = references_of(f, phi);
      bool found = false;
      for (uint32_t r = 1; r < phi->reference_count && !found; r++) {
        if (!references[r].is_block || references[r].index != s->block || references[r - 1].is_block) continue;
        found = true;
        if (!f->values.items[references[r - 1].index].crossing) continue;
        ir_put(w->out, "  %%m.e%u.%u = ", phi->result, s->block);
        put_variable_load(w, references[r - 1].index);
      }
    }
  }
}

/* ---- rounds of loops ---- */
static void put_round(region_writer *w, const lanes_instruction *i) {
  if (i->round == 'e') ir_put(w->out, "  store i32 0, ptr %%m.c%u\n", i->loop);
  if (i->round != 'n') return;
  uint32_t n = w->temporaries++;
  ir_put(w->out, "  %%m.q%u = load i32, ptr %%m.c%u\n  %%m.k%u = add i32 %%m.q%u, 1\n  store i32 %%m.k%u, ptr %%m.c%u\n",
         n, i->loop, n, n, n, i->loop);
}

/* Whether rounds of the loop are counted in the region. */
static bool counts(const region_writer *w, uint32_t loop) {
  for (uint32_t s = 0; s < w->f->segments.count; s++) {
    const lanes_segment *segment = &w->f->segments.items[s];
    for (uint32_t n = segment->first; w->region->segments[s] && n < segment->first + segment->count; n++)
      if (w->f->instructions.items[n].kind == LANES_ROUND && w->f->instructions.items[n].loop == loop) return true;
  }
  return false;
}

/* ---- segments ---- */
/* Whether the region gives the value anew, so that its slot has to be written. */
static bool defines(const region_writer *w, uint32_t value) {
  const lanes_instruction *i = &w->f->instructions.items[w->f->values.items[value].instruction];
  if (i->kind == LANES_COLLECTIVE) return false; /* the exchange wrote it */
  for (uint32_t s = 0; s < w->f->segments.count; s++) {
    const lanes_segment *segment = &w->f->segments.items[s];
    uint32_t n = w->f->values.items[value].instruction;
    if (w->region->segments[s] && n >= segment->first && n < segment->first + segment->count) return true;
  }
  return false;
}

static void put_meeting(region_writer *w, const lanes_segment *s) {
  const lanes_site *site = &w->f->sites[s->site];
  for (uint32_t o = 0; o < site->operand_count; o++) {
    const lanes_operand *operand = &site->operands[o];
    char name[32];
    if (operand->value == LANES_NONE) {
      char text[512];
      snprintf(text, sizeof text, "%.*s", IR_SPAN(operand->text));
      put_store(w, operand->type, operand->offset, operand->bytes, text);
      continue;
    }
    snprintf(name, sizeof name, "%%v%u", operand->value);
    if (w->f->values.items[operand->value].crossing) {
      snprintf(name, sizeof name, "%%m.t%u", w->temporaries++);
      ir_put(w->out, "  %s = ", name);
      put_variable_load(w, operand->value);
    }
    put_store(w, operand->type, operand->offset, operand->bytes, name);
  }
  for (uint32_t v = 0; v < w->f->values.count; v++) {
    const lanes_value *value = &w->f->values.items[v];
    if (!value->crossing || v == site->result || !lanes_is_live(w->f, site->segment, v) || !defines(w, v)) continue;
    char name[32];
    snprintf(name, sizeof name, "%%m.t%u", w->temporaries++);
    ir_put(w->out, "  %s = ", name);
    put_variable_load(w, v);
    put_store(w, value->type, value->offset, value->bytes, name);
  }
  for (uint32_t l = 0; l < site->loop_count; l++) {
    const lanes_loop *loop = &w->f->loops.items[site->loops[l]];
    if (!counts(w, site->loops[l])) continue;
    char name[32];
    snprintf(name, sizeof name, "%%m.t%u", w->temporaries++);
    ir_put(w->out, "  %s = load i32, ptr %%m.c%u\n", name, site->loops[l]);
    put_store(w, (ir_span){"i32", 3}, loop->offset, 4, name);
  }
  ir_put(w->out, "  ret i32 %u\n", s->site);
}

static void put_segment(region_writer *w, uint32_t number) {
  const lanes_function *f = w->f;
  const lanes_segment *s = &f->segments.items[number];
  uint32_t n = s->first, end = s->first + s->count;
  ir_put(w->out, "b%u:\n", number);
  for (; n < end && f->instructions.items[n].kind == LANES_PHI; n++) put_phi(w, &f->instructions.items[n]);
  for (uint32_t p = s->first; p < n; p++) put_variable_store(w, f->instructions.items[p].result);
  for (; n < end; n++) {
    const lanes_instruction *i = &f->instructions.items[n];
    if (i->result != LANES_NONE && f->values.items[i->result].anew) continue;
    if (i->kind == LANES_COLLECTIVE) put_meeting(w, s);
    else if (i->kind == LANES_ROUND) put_round(w, i);
    else if (i->kind == LANES_RETURN) ir_put(w->out, "  ret i32 %u\n", f->site_count);
    else {
      if (i->kind == LANES_BRANCH) put_phi_loads(w, s);
      put_instruction(w, i, false);
    }
  }
  if (s->site != LANES_NONE && f->instructions.items[end - 1].kind != LANES_COLLECTIVE) put_meeting(w, s); /* a pause */
}

/* ---- the function ---- */
static bool is_uniform(const lanes_region *region, uint32_t value) {
  for (uint32_t u = 0; u < region->uniform_count; u++)
    if (region->uniforms[u] == value) return true;
  return false;
}

static void put_entry(region_writer *w) {
  const lanes_function *f = w->f;
  uint32_t segment = f->sites[w->entry].segment;
  for (uint32_t v = 0; v < f->values.count; v++)
    if (f->values.items[v].crossing) ir_put(w->out, "  %%m.a%u = alloca %.*s\n", v, IR_SPAN(f->values.items[v].type));
  for (uint32_t v = 0; v < f->values.count; v++) {
    if (!f->values.items[v].crossing || !lanes_is_live(f, segment, v)) continue;
    ir_span type = f->values.items[v].type;
    if (is_uniform(w->region, v)) {
      ir_put(w->out, "  store %.*s %%m.u%u, ptr %%m.a%u\n", IR_SPAN(type), v, v);
    } else {
      uint32_t n = lanes_put_load(w->out, &f->values.items[v], "%m.slot", w->numbers->access, &w->temporaries);
      ir_put(w->out, "  store %.*s %%m.v%u, ptr %%m.a%u\n", IR_SPAN(type), n, v);
    }
  }
  const lanes_site *site = &f->sites[w->entry];
  for (uint32_t l = 0; l < f->loops.count; l++) ir_put(w->out, "  %%m.c%u = alloca i32\n", l);
  for (uint32_t l = 0; l < site->loop_count; l++) {
    lanes_value count = {.type = {"i32", 3}, .bytes = 4, .offset = f->loops.items[site->loops[l]].offset};
    uint32_t n = lanes_put_load(w->out, &count, "%m.slot", w->numbers->access, &w->temporaries);
    ir_put(w->out, "  store i32 %%m.v%u, ptr %%m.c%u\n", n, site->loops[l]);
  }
  put_all_anew(w);
  ir_put(w->out, "  br label %%b%u\n", segment);
}

mps_status lanes_write_region(const lanes_function *f, uint32_t site, const lanes_numbers *numbers, ir_text *out) {
  region_writer w = {.f = f, .region = &f->regions[site], .entry = site, .out = out, .numbers = numbers};
  w.written = lanes_allocate(f->module, f->values.count);
  if (!w.written) return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for a region");
  ir_put(out, "define internal i32 @mps_group_%u.region%u(ptr %%v%u, i32 %%v%u, ptr %%m.storage, i64 %%m.slot, i32 %%m.first", f->number, site,
         f->context, f->thread);
  for (uint32_t u = 0; u < w.region->uniform_count; u++) {
    uint32_t v = w.region->uniforms[u];
    ir_put(out, ", %.*s %%m.u%u", IR_SPAN(f->values.items[v].type), v);
  }
  ir_put(out, ") nounwind %.*s{\nbegin:\n", IR_SPAN(f->attributes));
  put_entry(&w);
  for (uint32_t s = 0; s < f->segments.count; s++)
    if (w.region->segments[s]) put_segment(&w, s);
  ir_put(out, "}\n\n");
  return MPS_STATUS_OK;
}
