/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lanes_write: the functions around the regions. A simdgroup goes from region to region with all lanes in one loop while they come to the
 * same meetings, which the vectoriser takes; else lane by lane, those first that wait at the first place of the text. A simdgroup
 * stops where a barrier is all that its lanes wait for; the group's function then goes on to the next one.
 *
 * States of a simdgroup: a site where all 32 lanes are, the number of sites when all have returned, or LANES_MIXED: each lane's own is in
 * its storage.
 */
#include "shader/lanes_write.h"

#include <string.h>

typedef struct group_writer {
  const lanes_function *f;
  ir_text *out;
  const lanes_numbers *numbers;
  uint32_t temporaries;
} group_writer;

#define MIXED "-1"
#define MAX_IN_PLACE 8u /* exchanges of a kernel that are copied to where they are */

/* ---- small loops over where lanes wait ---- */
static void put_extreme(group_writer *w, const char *name, const char *function) {
  ir_put(w->out,
    "define internal i32 @mps_group_%u.%s(ptr %%next) nounwind %.*s{\nbegin:\n  br label %%loop\nloop:\n"
    "  %%i = phi i64 [ 0, %%begin ], [ %%after, %%loop ]\n  %%best = phi i32 [ %s, %%begin ], [ %%better, %%loop ]\n"
    "  %%at = getelementptr inbounds i32, ptr %%next, i64 %%i\n  %%one = load i32, ptr %%at, align 4\n"
    "  %%better = call i32 @llvm.%s.i32(i32 %%best, i32 %%one)\n  %%after = add nuw nsw i64 %%i, 1\n"
    "  %%more = icmp ult i64 %%after, 32\n  br i1 %%more, label %%loop, label %%end\nend:\n  ret i32 %%better\n}\n\n",
    w->f->number, name, IR_SPAN(w->f->attributes), strcmp(function, "umin") ? "0" : "-1", function);
}

/* A bit for each lane that waits at a site from %low to %high. */
static void put_mask(group_writer *w) {
  ir_put(w->out,
    "define internal i32 @mps_group_%u.mask(ptr %%next, i32 %%low, i32 %%high) nounwind %.*s{\nbegin:\n  br label %%loop\nloop:\n"
    "  %%i = phi i32 [ 0, %%begin ], [ %%after, %%loop ]\n  %%bits = phi i32 [ 0, %%begin ], [ %%all, %%loop ]\n"
    "  %%i.wide = zext nneg i32 %%i to i64\n"
    "  %%at = getelementptr inbounds i32, ptr %%next, i64 %%i.wide\n  %%one = load i32, ptr %%at, align 4\n"
    "  %%not.below = icmp uge i32 %%one, %%low\n  %%not.above = icmp ule i32 %%one, %%high\n  %%inside = and i1 %%not.below, %%not.above\n"
    "  %%bit = zext i1 %%inside to i32\n  %%shifted = shl nuw i32 %%bit, %%i\n"
    "  %%all = or i32 %%bits, %%shifted\n  %%after = add nuw nsw i32 %%i, 1\n"
    "  %%more = icmp ult i32 %%after, 32\n  br i1 %%more, label %%loop, label %%end\nend:\n  ret i32 %%all\n}\n\n",
    w->f->number, IR_SPAN(w->f->attributes));
}

static uint32_t key_words(const lanes_function *f) {
  uint32_t depth = 0;
  for (uint32_t s = 1; s <= f->exchange_count; s++) depth = f->sites[s].loop_count > depth ? f->sites[s].loop_count : depth;
  return depth * 2 + 1;
}

/* Where a site lies: for each loop around it, from the outermost, the loop's place in the text and where the lanes' counts are; then its own
 * place. Unused words are 0. */
static void put_keys(group_writer *w) {
  const lanes_function *f = w->f;
  uint32_t words = key_words(f);
  ir_put(w->out, "@mps_group_%u.keys = private unnamed_addr constant [%u x i32] [", f->number, (f->exchange_count + 1) * words);
  for (uint32_t s = 0; s <= f->exchange_count; s++) {
    const lanes_site *site = &f->sites[s];
    for (uint32_t k = 0; k < words; k++) {
      uint32_t value = 0, loop = k / 2;
      if (s > 0 && loop < site->loop_count)
        value = k % 2 ? f->loops.items[site->loops[loop]].offset : f->loops.items[site->loops[loop]].rank;
      else if (s > 0 && k == site->loop_count * 2) value = f->instructions.items[site->instruction].rank;
      ir_put(w->out, "%si32 %u", s + k ? ", " : "", value);
    }
  }
  ir_put(w->out, "]\n\n");
}

/* Those of the lanes in %mask, which wait at exchanges, that are behind all others: word by word, who has the least stays. */
static void put_first(group_writer *w) {
  uint32_t words = key_words(w->f);
  ir_put(w->out,
    "define internal i32 @mps_group_%u.first(ptr %%storage, ptr %%next, i32 %%mask) noinline nounwind %.*s{\nbegin:\n  br label %%word\n"
    "word:\n  %%w = phi i32 [ 0, %%begin ], [ %%w.after, %%word.end ]\n  %%left = phi i32 [ %%mask, %%begin ], [ %%kept.after, %%word.end ]\n"
    "  %%counts = trunc i32 %%w to i1\n  br label %%lane\n"
    "lane:\n  %%i = phi i32 [ 0, %%word ], [ %%i.after, %%lane.end ]\n  %%best = phi i32 [ -1, %%word ], [ %%best.after, %%lane.end ]\n"
    "  %%kept = phi i32 [ 0, %%word ], [ %%kept.after, %%lane.end ]\n  %%shifted = lshr i32 %%left, %%i\n  %%in = trunc i32 %%shifted to i1\n"
    "  br i1 %%in, label %%key, label %%lane.end\n",
    w->f->number, IR_SPAN(w->f->attributes));
  ir_put(w->out,
    "key:\n  %%i.wide = zext nneg i32 %%i to i64\n"
    "  %%at = getelementptr inbounds i32, ptr %%next, i64 %%i.wide\n  %%site = load i32, ptr %%at, align 4\n"
    "  %%row = mul i32 %%site, %u\n  %%index = add i32 %%row, %%w\n  %%index.wide = zext i32 %%index to i64\n"
    "  %%key.at = getelementptr inbounds i32, ptr @mps_group_%u.keys, i64 %%index.wide\n  %%key.word = load i32, ptr %%key.at, align 4\n"
    "  %%used = icmp ne i32 %%key.word, 0\n  %%counted = and i1 %%used, %%counts\n  br i1 %%counted, label %%count, label %%compare\n"
    "count:\n  %%count.offset = zext i32 %%key.word to i64\n  %%count.base = getelementptr inbounds i8, ptr %%storage, i64 %%count.offset\n"
    "  %%count.at = getelementptr inbounds i32, ptr %%count.base, i64 %%i.wide\n"
    "  %%count.word = load i32, ptr %%count.at, align 4\n  br label %%compare\n",
    words, w->f->number);
  ir_put(w->out,
    "compare:\n  %%value = phi i32 [ %%key.word, %%key ], [ %%count.word, %%count ]\n  %%bit = shl nuw i32 1, %%i\n"
    "  %%less = icmp ult i32 %%value, %%best\n  %%same = icmp eq i32 %%value, %%best\n  %%both = or i32 %%kept, %%bit\n"
    "  %%stays = select i1 %%same, i32 %%both, i32 %%kept\n  %%kept.new = select i1 %%less, i32 %%bit, i32 %%stays\n"
    "  %%best.new = select i1 %%less, i32 %%value, i32 %%best\n  br label %%lane.end\n"
    "lane.end:\n  %%best.after = phi i32 [ %%best, %%lane ], [ %%best.new, %%compare ]\n"
    "  %%kept.after = phi i32 [ %%kept, %%lane ], [ %%kept.new, %%compare ]\n  %%i.after = add nuw nsw i32 %%i, 1\n"
    "  %%i.more = icmp ult i32 %%i.after, 32\n  br i1 %%i.more, label %%lane, label %%word.end\n"
    "word.end:\n  %%w.after = add nuw nsw i32 %%w, 1\n  %%w.more = icmp ult i32 %%w.after, %u\n  br i1 %%w.more, label %%word, label %%end\n"
    "end:\n  ret i32 %%kept.after\n}\n\n", words);
}

/* Whether 32 elements of %bytes are the same bytes. */
static void put_alike(group_writer *w) {
  ir_put(w->out,
    "define internal i1 @mps_group_%u.alike(ptr %%values, i64 %%bytes) nounwind %.*s{\nbegin:\n  %%end = mul i64 %%bytes, 31\n  br label %%loop\n"
    "loop:\n  %%i = phi i64 [ 0, %%begin ], [ %%after, %%on ]\n  %%at = getelementptr inbounds i8, ptr %%values, i64 %%i\n"
    "  %%next = getelementptr inbounds i8, ptr %%at, i64 %%bytes\n  %%one = load i8, ptr %%at, align 1\n  %%other = load i8, ptr %%next, align 1\n"
    "  %%same = icmp eq i8 %%one, %%other\n  br i1 %%same, label %%on, label %%stop\non:\n  %%after = add nuw nsw i64 %%i, 1\n"
    "  %%more = icmp ult i64 %%after, %%end\n  br i1 %%more, label %%loop, label %%stop\nstop:\n"
    "  %%result = phi i1 [ false, %%loop ], [ true, %%on ]\n"
    "  ret i1 %%result\n}\n\n",
    w->f->number, IR_SPAN(w->f->attributes));
}

/* ---- lane by lane ---- */
/* One lane goes on from the site where it is. */
static void put_step(group_writer *w) {
  const lanes_function *f = w->f;
  ir_put(w->out,
         "define internal i32 @mps_group_%u.step(ptr %%context, i32 %%thread, ptr %%m.storage, i64 %%slot, i32 %%first, i32 %%site) "
         "noinline nounwind %.*s{\nbegin:\n  switch i32 %%site, label %%never [\n", f->number, IR_SPAN(f->attributes));
  for (uint32_t s = 0; s < f->site_count; s++) ir_put(w->out, "    i32 %u, label %%site%u\n", s, s);
  ir_put(w->out, "  ]\nnever:\n  unreachable\n");
  for (uint32_t s = 0; s < f->site_count; s++) {
    const lanes_region *region = &f->regions[s];
    uint32_t first = w->temporaries;
    ir_put(w->out, "site%u:\n", s);
    for (uint32_t u = 0; u < region->uniform_count; u++)
      lanes_put_load(w->out, &f->values.items[region->uniforms[u]], "%slot", w->numbers->access, &w->temporaries);
    ir_put(w->out, "  %%exit%u = call i32 @mps_group_%u.region%u(ptr %%context, i32 %%thread, ptr %%m.storage, i64 %%slot, i32 %%first",
           s, f->number, s);
    for (uint32_t u = 0; u < region->uniform_count; u++)
      ir_put(w->out, ", %.*s %%m.v%u", IR_SPAN(f->values.items[region->uniforms[u]].type), first + u);
    ir_put(w->out, ") noinline\n  ret i32 %%exit%u\n", s);
  }
  ir_put(w->out, "}\n\n");
}

/* The lanes in %mask go on to where they meet others; they do not pause. */
static void put_resume(group_writer *w) {
  ir_put(w->out,
    "define internal void @mps_group_%u.resume(ptr %%context, i32 %%first, ptr %%storage, i32 %%mask) noinline nounwind %.*s{\n"
    "begin:\n  %%next = getelementptr inbounds i8, ptr %%storage, i64 %u\n  br label %%loop\nloop:\n"
    "  %%i = phi i32 [ 0, %%begin ], [ %%after, %%on ]\n  %%slot = zext nneg i32 %%i to i64\n"
    "  %%shifted = lshr i32 %%mask, %%i\n  %%goes = trunc i32 %%shifted to i1\n"
    "  br i1 %%goes, label %%go, label %%on\ngo:\n  %%at = getelementptr inbounds i32, ptr %%next, i64 %%slot\n"
    "  %%site = load i32, ptr %%at, align 4\n  %%thread = or disjoint i32 %%first, %%i\n",
    w->f->number, IR_SPAN(w->f->attributes), LANES_NEXT_OFFSET);
  ir_put(w->out,
    "  br label %%walk\nwalk:\n  %%from = phi i32 [ %%site, %%go ], [ %%exit, %%walk ]\n"
    "  %%exit = call i32 @mps_group_%u.step(ptr %%context, i32 %%thread, ptr %%storage, i64 %%slot, i32 %%first, i32 %%from)\n"
    "  %%above = icmp ugt i32 %%exit, %u\n  %%not.done = icmp ult i32 %%exit, %u\n  %%pauses = and i1 %%above, %%not.done\n"
    "  br i1 %%pauses, label %%walk, label %%stop\nstop:\n"
    "  store i32 %%exit, ptr %%at, align 4\n  br label %%on\non:\n"
    "  %%after = add nuw nsw i32 %%i, 1\n  %%more = icmp ult i32 %%after, 32\n  br i1 %%more, label %%loop, label %%end\nend:\n  ret void\n}\n\n",
    w->f->number, w->f->barrier_end, w->f->site_count);
}

/* ---- a simdgroup ---- */
static void put_exchange(group_writer *w, uint32_t number, const char *active) {
  const lanes_site *site = &w->f->sites[number];
  if (!site->exchange) return;
  uint32_t first = w->temporaries, count = site->operand_count;
  for (uint32_t o = 0; o < count; o++)
    ir_put(w->out, "  %%m.o%u = getelementptr inbounds i8, ptr %%m.storage, i64 %u\n", first + o, site->operands[o].offset);
  if (site->result != LANES_NONE)
    ir_put(w->out, "  %%m.o%u = getelementptr inbounds i8, ptr %%m.storage, i64 %u\n", first + count,
           w->f->values.items[site->result].offset);
  ir_put(w->out, "  call void @mps_lanes_%.*s(", IR_SPAN(site->name));
  count += site->result != LANES_NONE;
  for (uint32_t o = 0; o < count; o++) ir_put(w->out, "ptr %%m.o%u, ", first + o);
  /* With all lanes there, and few of them, a copy in place: its loops know that nobody is missing. */
  bool in_place = strcmp(active, "-1") == 0 && w->f->exchange_count <= MAX_IN_PLACE;
  ir_put(w->out, "i32 %s) %s\n", active, in_place ? "alwaysinline" : "noinline");
  w->temporaries += count;
}

/* Goes on when lanes went round the loops around the site equally often, else to %other. */
static void put_loop_checks(group_writer *w, uint32_t site, const bool *unlike, const char *label, const char *other) {
  const lanes_site *s = &w->f->sites[site];
  for (uint32_t l = 0; l < s->loop_count; l++) {
    if (unlike && !unlike[s->loops[l]]) continue;
    uint32_t n = w->temporaries++;
    ir_put(w->out,
           "  %%m.s%u = getelementptr inbounds i8, ptr %%m.storage, i64 %u\n"
           "  %%same.%s.%u = call i1 @mps_group_%u.alike(ptr %%m.s%u, i64 4)\n"
           "  br i1 %%same.%s.%u, label %%rounds.%s.%u, label %%%s\nrounds.%s.%u:\n",
           n, w->f->loops.items[s->loops[l]].offset, label, l, w->f->number, n, label, l, label, l, other, label, l);
  }
}

/* Where the lanes are that went from site `s`. */
static void put_arrival(group_writer *w, uint32_t s) {
  const lanes_function *f = w->f;
  const lanes_region *region = &f->regions[s];
  if (region->exit_count == 0) {
    ir_put(w->out, "  unreachable\n");
    return;
  }
  if (region->one_way) {
    ir_put(w->out, "  switch i32 %%exit%u, label %%never [\n", s);
    for (uint32_t e = 0; e <= f->site_count; e++)
      if (region->exits[e]) ir_put(w->out, "    i32 %u, label %%from%u.%u\n", e, s, e);
    ir_put(w->out, "  ]\n");
  } else if (region->exit_count > 1) {
    ir_put(w->out, "  %%low%u = call i32 @mps_group_%u.lowest(ptr %%next)\n  %%high%u = call i32 @mps_group_%u.highest(ptr %%next)\n"
           "  %%same%u = icmp eq i32 %%low%u, %%high%u\n  br i1 %%same%u, label %%which%u, label %%ready\nwhich%u:\n"
           "  switch i32 %%low%u, label %%never [\n", s, f->number, s, f->number, s, s, s, s, s, s, s);
    for (uint32_t e = 0; e <= f->site_count; e++)
      if (region->exits[e]) ir_put(w->out, "    i32 %u, label %%from%u.%u\n", e, s, e);
    ir_put(w->out, "  ]\n");
  } else {
    ir_put(w->out, "  br label %%from%u.%u\n", s, region->only_exit);
  }
  for (uint32_t e = 0; e <= f->site_count; e++) {
    if (!region->exits[e]) continue;
    char label[48];
    snprintf(label, sizeof label, "%u.%u", s, e);
    ir_put(w->out, "from%s:\n", label);
    if (e < f->site_count && f->loops.count) put_loop_checks(w, e, region->unlike + e * f->loops.count, label, "ready");
    ir_put(w->out, "  br label %%arrive%u\n", e);
  }
}

/* All 32 lanes go on from the site. */
static void put_fast(group_writer *w, uint32_t s) {
  const lanes_function *f = w->f;
  const lanes_region *region = &f->regions[s];
  uint32_t first = w->temporaries;
  ir_put(w->out, "fast%u:\n", s);
  for (uint32_t u = 0; u < region->uniform_count; u++)
    lanes_put_load(w->out, &f->values.items[region->uniforms[u]], "0", w->numbers->access, &w->temporaries);
  ir_put(w->out, "  br label %%loop%u\nloop%u:\n  %%i%u = phi i32 [ 0, %%fast%u ], [ %%after%u, %%loop%u ]\n", s, s, s, s, s, s);
  ir_put(w->out, "  %%slot%u = zext nneg i32 %%i%u to i64\n  %%thread%u = or disjoint i32 %%first, %%i%u\n", s, s, s, s);
  ir_put(w->out, "  %%exit%u = call i32 @mps_group_%u.region%u(ptr %%context, i32 %%thread%u, ptr %%m.storage, i64 %%slot%u, i32 %%first",
         s, f->number, s, s, s);
  for (uint32_t u = 0; u < region->uniform_count; u++)
    ir_put(w->out, ", %.*s %%m.v%u", IR_SPAN(f->values.items[region->uniforms[u]].type), first + u);
  ir_put(w->out, ") alwaysinline\n");
  if (!region->certain)
    ir_put(w->out, "  %%at%u = getelementptr inbounds i32, ptr %%next, i64 %%slot%u\n"
           "  store i32 %%exit%u, ptr %%at%u, align 4, !llvm.access.group !%u\n", s, s, s, s, w->numbers->access);
  ir_put(w->out, "  %%after%u = add nuw nsw i32 %%i%u, 1\n  %%more%u = icmp ult i32 %%after%u, 32\n"
         "  br i1 %%more%u, label %%loop%u, label %%end%u, !llvm.loop !%u\nend%u:\n", s, s, s, s, s, s, s, w->numbers->loop, s);
  put_arrival(w, s);
}

/* All lanes came to one site, not at once: they go on together if what should be alike in all of them is. */
static void put_together(group_writer *w, uint32_t s) {
  const lanes_region *region = &w->f->regions[s];
  const bool exchange = s <= w->f->exchange_count;
  char target[32], other[32];
  snprintf(target, sizeof target, exchange ? "fast%u" : "arrive%u", s);
  snprintf(other, sizeof other, exchange ? "resume%u" : "apart", s);
  char label[32];
  snprintf(label, sizeof label, "t%u", s);
  ir_put(w->out, "together%u:\n", s);
  put_loop_checks(w, s, NULL, label, other);
  for (uint32_t u = 0; u < region->uniform_count; u++) {
    const lanes_value *v = &w->f->values.items[region->uniforms[u]];
    ir_put(w->out,
           "  %%m.s%u = getelementptr inbounds i8, ptr %%m.storage, i64 %u\n"
           "  %%same%u.%u = call i1 @mps_group_%u.alike(ptr %%m.s%u, i64 %u)\n"
           "  br i1 %%same%u.%u, label %%alike%u.%u, label %%%s\nalike%u.%u:\n",
           w->temporaries, v->offset, s, u, w->f->number, w->temporaries, v->bytes, s, u, s, u, other, s, u);
    w->temporaries++;
  }
  ir_put(w->out, "  br label %%%s\n", target);
}

/* Lanes wait at different places: those at the first one go on. */
static void put_ready(group_writer *w) {
  const lanes_function *f = w->f;
  ir_put(w->out,
    "mixed:\n  %%barrier.mask = call i32 @mps_group_%u.mask(ptr %%next, i32 %u, i32 %u)\n"
    "  %%begin.mask = call i32 @mps_group_%u.mask(ptr %%next, i32 0, i32 0)\n  %%going = or i32 %%barrier.mask, %%begin.mask\n"
    "  call void @mps_group_%u.resume(ptr %%context, i32 %%first, ptr %%m.storage, i32 %%going)\n  br label %%ready\n",
    f->number, f->exchange_count + 1, f->barrier_end, f->number, f->number);
  ir_put(w->out,
    "ready:\n  %%pause.mask = call i32 @mps_group_%u.mask(ptr %%next, i32 %u, i32 %u)\n"
    "  call void @mps_group_%u.resume(ptr %%context, i32 %%first, ptr %%m.storage, i32 %%pause.mask)\n"
    "  %%low = call i32 @mps_group_%u.lowest(ptr %%next)\n  %%high = call i32 @mps_group_%u.highest(ptr %%next)\n"
    "  %%meet = icmp ule i32 %%low, %u\n  br i1 %%meet, label %%meeting, label %%wait\n"
    "meeting:\n  %%meeting.mask = call i32 @mps_group_%u.mask(ptr %%next, i32 1, i32 %u)\n"
    "  %%active = call i32 @mps_group_%u.first(ptr %%m.storage, ptr %%next, i32 %%meeting.mask)\n"
    "  %%one = call i32 @llvm.cttz.i32(i32 %%active, i1 true)\n  %%one.wide = zext i32 %%one to i64\n"
    "  %%one.at = getelementptr inbounds i32, ptr %%next, i64 %%one.wide\n  %%one.site = load i32, ptr %%one.at, align 4\n"
    "  switch i32 %%one.site, label %%never [\n",
    f->number, f->barrier_end + 1, f->site_count - 1, f->number, f->number, f->number, f->exchange_count, f->number, f->exchange_count,
    f->number);
  for (uint32_t s = 1; s <= f->exchange_count; s++) ir_put(w->out, "    i32 %u, label %%mixed%u\n", s, s);
  /* Nobody is left but those at barriers and those that are done: all alike, or each where it is. */
  ir_put(w->out, "  ]\nwait:\n  %%alike = icmp eq i32 %%low, %%high\n  br i1 %%alike, label %%together, label %%apart\napart:\n  ret i32 " MIXED
         "\ntogether:\n  switch i32 %%low, label %%never [\n    i32 %u, label %%arrive%u\n", f->site_count, f->site_count);
  for (uint32_t s = f->exchange_count + 1; s <= f->barrier_end; s++) ir_put(w->out, "    i32 %u, label %%together%u\n", s, s);
  ir_put(w->out, "  ]\nnever:\n  unreachable\n");
  for (uint32_t s = 1; s <= f->barrier_end; s++) {
    if (s <= f->exchange_count) {
      ir_put(w->out, "mixed%u:\n", s);
      put_exchange(w, s, "%active");
      ir_put(w->out, "  %%all%u = icmp eq i32 %%active, -1\n  br i1 %%all%u, label %%together%u, label %%resume%u\nresume%u:\n",
             s, s, s, s, s);
      ir_put(w->out, "  call void @mps_group_%u.resume(ptr %%context, i32 %%first, ptr %%m.storage, i32 %%active)\n  br label %%ready\n",
             f->number);
    }
    put_together(w, s);
  }
}

static void put_simdgroup(group_writer *w) {
  const lanes_function *f = w->f;
  ir_put(w->out, "define internal i32 @mps_group_%u.simdgroup(ptr %%context, i32 %%simdgroup, ptr %%m.storage, i32 %%state) nounwind %.*s{\n"
         "begin:\n  %%first = shl nuw nsw i32 %%simdgroup, 5\n  %%next = getelementptr inbounds i8, ptr %%m.storage, i64 %u\n"
         "  switch i32 %%state, label %%mixed [\n    i32 0, label %%fast0\n",
         f->number, IR_SPAN(f->attributes), LANES_NEXT_OFFSET);
  for (uint32_t s = f->exchange_count + 1; s <= f->barrier_end; s++) ir_put(w->out, "    i32 %u, label %%fast%u\n", s, s);
  ir_put(w->out, "  ]\n");
  for (uint32_t s = 0; s < f->site_count; s++) put_fast(w, s);
  for (uint32_t s = 1; s <= f->site_count; s++) {
    ir_put(w->out, "arrive%u:\n", s);
    if ((s > f->exchange_count && s <= f->barrier_end) || s == f->site_count) {
      ir_put(w->out, "  ret i32 %u\n", s);
      continue;
    }
    put_exchange(w, s, "-1");
    ir_put(w->out, "  br label %%fast%u\n", s);
  }
  put_ready(w);
  ir_put(w->out, "}\n\n");
}

/* ---- a group ---- */
static void put_group(group_writer *w) {
  const lanes_function *f = w->f;
  ir_put(w->out,
         "@mps_group_%u_bytes = hidden constant i32 %u\n\n"
         "define hidden void @mps_group_%u(ptr %%context, i32 %%threads, ptr %%storage) nounwind %.*s{\n"
         "begin:\n  %%rounded = add i32 %%threads, 31\n  %%count = lshr i32 %%rounded, 5\n  %%none = icmp eq i32 %%threads, 0\n"
         "  br i1 %%none, label %%end, label %%start\n", f->number, (unsigned)(f->bytes / LANES_WIDTH), f->number, IR_SPAN(f->attributes));
  ir_put(w->out, /* a full simdgroup begins at site 0; lanes that a partial one does not have are done */
    "start:\n  %%s = phi i32 [ 0, %%begin ], [ %%s.after, %%started ]\n  %%s.wide = zext i32 %%s to i64\n"
    "  %%s.at = mul nuw nsw i64 %%s.wide, %llu\n  %%s.storage = getelementptr inbounds i8, ptr %%storage, i64 %%s.at\n"
    "  %%s.first = shl i32 %%s, 5\n  %%left = sub i32 %%threads, %%s.first\n  %%full = icmp uge i32 %%left, 32\n"
    "  %%s.state = select i1 %%full, i32 0, i32 " MIXED "\n  store i32 %%s.state, ptr %%s.storage, align 4\n"
    "  br i1 %%full, label %%started, label %%part\npart:\n  %%s.next = getelementptr inbounds i8, ptr %%s.storage, i64 %u\n"
    "  br label %%lane\nlane:\n  %%l = phi i32 [ 0, %%part ], [ %%l.after, %%lane ]\n  %%there = icmp ult i32 %%l, %%left\n",
    (unsigned long long)f->bytes, LANES_NEXT_OFFSET);
  ir_put(w->out,
    "  %%l.site = select i1 %%there, i32 0, i32 %u\n  %%l.wide = zext nneg i32 %%l to i64\n"
    "  %%l.at = getelementptr inbounds i32, ptr %%s.next, i64 %%l.wide\n  store i32 %%l.site, ptr %%l.at, align 4\n"
    "  %%l.after = add nuw nsw i32 %%l, 1\n  %%l.more = icmp ult i32 %%l.after, 32\n  br i1 %%l.more, label %%lane, label %%started\n"
    "started:\n  %%s.after = add i32 %%s, 1\n  %%s.more = icmp ult i32 %%s.after, %%count\n  br i1 %%s.more, label %%start, label %%round\n",
    f->site_count);
  ir_put(w->out,
    "round:\n  br label %%each\neach:\n  %%g = phi i32 [ 0, %%round ], [ %%g.after, %%on ]\n"
    "  %%waiting = phi i1 [ false, %%round ], [ %%waiting.after, %%on ]\n  %%g.wide = zext i32 %%g to i64\n"
    "  %%g.at = mul nuw nsw i64 %%g.wide, %llu\n  %%g.storage = getelementptr inbounds i8, ptr %%storage, i64 %%g.at\n"
    "  %%state = load i32, ptr %%g.storage, align 4\n  %%done = icmp eq i32 %%state, %u\n  br i1 %%done, label %%on, label %%go\ngo:\n"
    "  %%new = call i32 @mps_group_%u.simdgroup(ptr %%context, i32 %%g, ptr %%g.storage, i32 %%state)\n"
    "  store i32 %%new, ptr %%g.storage, align 4\n  %%waits = icmp ne i32 %%new, %u\n  %%any = or i1 %%waiting, %%waits\n  br label %%on\n",
    (unsigned long long)f->bytes, f->site_count, f->number, f->site_count);
  ir_put(w->out,
    "on:\n  %%waiting.after = phi i1 [ %%waiting, %%each ], [ %%any, %%go ]\n  %%g.after = add i32 %%g, 1\n"
    "  %%g.more = icmp ult i32 %%g.after, %%count\n  br i1 %%g.more, label %%each, label %%last\nlast:\n"
    "  br i1 %%waiting.after, label %%round, label %%end\nend:\n  ret void\n}\n\n");
}

/* ---- all of it ---- */
static mps_status check_exchanges(const lanes_function *f) {
  for (uint32_t s = 1; s <= f->exchange_count; s++) {
    bool found = !f->sites[s].exchange;
    for (size_t d = 0; d < f->module->definitions.count && !found; d++) {
      ir_span name = f->module->definitions.items[d].name, wanted = f->sites[s].name;
      found = ir_starts(name, "mps_lanes_") && name.length == wanted.length + 10 && memcmp(name.at + 10, wanted.at, wanted.length) == 0;
    }
    if (!found) return lanes_refuse("the module has no mps_lanes_%.*s", IR_SPAN(f->sites[s].name));
  }
  return MPS_STATUS_OK;
}

mps_status lanes_function_write(const lanes_function *f, ir_text *out, uint32_t *metadata) {
  MPS_TRY(check_exchanges(f));
  uint32_t n = *metadata;
  lanes_numbers numbers = {.access = n, .empty = n + 1, .loop = n + 2};
  *metadata += 6;
  group_writer w = {.f = f, .out = out, .numbers = &numbers};
  for (uint32_t s = 0; s < f->site_count; s++) MPS_TRY(lanes_write_region(f, s, &numbers, out));
  put_extreme(&w, "lowest", "umin");
  put_extreme(&w, "highest", "umax");
  put_mask(&w);
  put_keys(&w);
  put_first(&w);
  put_alike(&w);
  put_step(&w);
  put_resume(&w);
  put_simdgroup(&w);
  put_group(&w);
  ir_put(out, "!%u = distinct !{}\n!%u = !{}\n!%u = distinct !{!%u, !%u, !%u, !%u}\n!%u = !{!\"llvm.loop.parallel_accesses\", !%u}\n"
         "!%u = !{!\"llvm.loop.vectorize.enable\", i1 true}\n!%u = !{!\"llvm.loop.unroll.disable\"}\n",
         numbers.access, numbers.empty, numbers.loop, numbers.loop, n + 3, n + 4, n + 5, n + 3, numbers.access, n + 4, n + 5);
  return MPS_STATUS_OK;
}
