/* SPDX-License-Identifier: BSD-3-Clause
 *
 * checks_shadow: remembers for each byte which threads of the group that runs wrote and read it last, and how many barriers they had
 * behind them. Two threads race for a byte when no barrier lies between them, one of them writes, and not both are atomic.
 */
#include <stdlib.h>
#include <string.h>

#include "driver/host/checks_internal.h"

#define PAGE_BYTES 256u

typedef struct page {
  uintptr_t number; /* of the memory */
  checks_cell cells[PAGE_BYTES];
} page;

struct checks_shadow {
  page **table; /* open addressing */
  size_t capacity;
  page **pages; /* in use: the first `count`; those behind are free */
  size_t count, made;
  page *last;
};

checks_shadow *checks_shadow_create(void) { return calloc(1, sizeof(checks_shadow)); }

void checks_shadow_free(checks_shadow *shadow) {
  if (!shadow) return;
  for (size_t i = 0; i < shadow->made; i++) free(shadow->pages[i]);
  free(shadow->pages);
  free(shadow->table);
  free(shadow);
}

void checks_shadow_clear(checks_shadow *shadow) {
  if (shadow->count) memset(shadow->table, 0, shadow->capacity * sizeof *shadow->table);
  shadow->count = 0;
  shadow->last = NULL;
}

static size_t place_of(const checks_shadow *shadow, uintptr_t number) {
  size_t place = (size_t)((uint64_t)number * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (shadow->capacity - 1);
  while (shadow->table[place] && shadow->table[place]->number != number) place = (place + 1) & (shadow->capacity - 1);
  return place;
}

static bool grow(checks_shadow *shadow) {
  size_t capacity = shadow->capacity ? shadow->capacity * 2 : 256;
  page **table = calloc(capacity, sizeof *table), **pages = realloc(shadow->pages, capacity * sizeof *pages);
  if (pages) shadow->pages = pages;
  if (!table || !pages) {
    free(table);
    return false;
  }
  free(shadow->table);
  shadow->table = table;
  shadow->capacity = capacity;
  for (size_t i = 0; i < shadow->count; i++) shadow->table[place_of(shadow, shadow->pages[i]->number)] = shadow->pages[i];
  return true;
}

/* NULL: no memory, and nothing is remembered. */
static page *find_page(checks_shadow *shadow, uintptr_t number) {
  if (shadow->last && shadow->last->number == number) return shadow->last;
  if (shadow->count * 2 >= shadow->capacity && !grow(shadow)) return NULL;
  size_t place = place_of(shadow, number);
  if (!shadow->table[place]) {
    if (shadow->count == shadow->made) {
      page *fresh = malloc(sizeof *fresh);
      if (!fresh) return NULL;
      shadow->pages[shadow->made++] = fresh;
    }
    page *p = shadow->pages[shadow->count++];
    memset(p, 0, sizeof *p);
    p->number = number;
    shadow->table[place] = p;
  }
  return shadow->last = shadow->table[place];
}

/* ---- findings ---- */
/* True if nothing orders what `other` did with these counts and what the running thread does now. */
static bool is_race(const checks_run *run, uint32_t other, uint32_t barriers, uint32_t meetings) {
  const checks_thread *self = &run->threads[run->thread];
  if (other == run->thread || barriers != self->barriers) return false;
  return other / 32 != run->thread / 32 || meetings == self->meetings;
}

static void report_race(checks_run *run, const checks_region *region, const unsigned char *memory, uint32_t site, uint32_t other_site,
                        uint32_t other, bool other_wrote) {
  char name[200] = "a buffer that it has by address", thread[80];
  const mps_host_site *s = &run->checked->sites[site], *o = &run->checked->sites[other_site];
  long long offset = 0;
  if (region) {
    checks_name_region(run, region, name, sizeof name);
    offset = memory - region->memory;
  }
  checks_name_thread(run, other, thread, sizeof thread);
  uint64_t findings = run->findings;
  if (memory == run->unwritten) run->findings = 0; /* that nobody had written before was a part of this */
  checks_report(run, s, "%s byte %lld of %s, which thread %s of the same group %s in line %u without a barrier between them: a data race",
                s->kind & MPS_SITE_WRITE ? "writes" : "reads", offset, name, thread, other_wrote ? "wrote" : "read", o->line);
  run->findings = findings + 1;
  run->unwritten = run->unwritten == memory ? NULL : run->unwritten;
}

void checks_settle_doubt(checks_run *run) {
  const checks_doubt *d = &run->doubt;
  const unsigned char *place = d->memory;
  if (!place) return;
  run->doubt.memory = NULL;
  if (memcmp(place, d->before, d->bytes) == 0) return;
  uint32_t thread = run->thread;
  run->thread = d->thread;
  report_race(run, d->region, place, d->site, d->other_site, d->other, true);
  run->thread = thread;
}

/* A plain write where another thread wrote. False: it is too long to wait for. */
static bool doubt_write(checks_run *run, const checks_cell *cell, const checks_region *region, const unsigned char *memory, uint64_t bytes,
                        uint32_t site) {
  uint32_t kind = run->checked->sites[site].kind;
  if ((kind & (MPS_SITE_READ | MPS_SITE_ATOMIC)) || bytes > CHECKS_DOUBT_BYTES) return false;
  run->doubt = (checks_doubt){.region = region, .memory = memory, .bytes = (uint32_t)bytes, .site = site, .other_site = cell->writer_site - 1,
                              .thread = run->thread, .other = cell->writer};
  memcpy(run->doubt.before, memory, bytes);
  return true;
}

static void report_unwritten(checks_run *run, const checks_region *region, const unsigned char *memory, uint32_t site) {
  char name[200];
  checks_name_region(run, region, name, sizeof name);
  if (!run->findings) run->unwritten = memory;
  checks_report(run, &run->checked->sites[site], "reads byte %lld of %s, which no thread of the group has written",
                (long long)(memory - region->memory), name);
}

/* Returns true when there was a finding: one is enough for an access. */
static bool note_byte(checks_run *run, checks_cell *cell, const checks_region *region, const unsigned char *memory, uint64_t bytes, uint32_t site) {
  uint32_t kind = run->checked->sites[site].kind;
  const checks_thread *self = &run->threads[run->thread];
  bool atomic = kind & MPS_SITE_ATOMIC, found = false;
  if ((kind & MPS_SITE_READ) && !(kind & MPS_SITE_COPY) && region && region->threadgroup && !cell->writer_site) {
    report_unwritten(run, region, memory, site);
    found = true;
  }
  if (!found && cell->writer_site && !(atomic && cell->writer_atomic) &&
      is_race(run, cell->writer, cell->writer_barriers, cell->writer_meetings)) {
    if (!doubt_write(run, cell, region, memory, bytes, site)) report_race(run, region, memory, site, cell->writer_site - 1, cell->writer, true);
    found = true;
  }
  if (!found && (kind & MPS_SITE_WRITE) && cell->reader_site && !(atomic && cell->reader_atomic) &&
      (cell->many_readers ? cell->reader_barriers == self->barriers && cell->reader_meetings == self->meetings && cell->reader != run->thread
                          : is_race(run, cell->reader, cell->reader_barriers, cell->reader_meetings))) {
    report_race(run, region, memory, site, cell->reader_site - 1, cell->reader, false);
    found = true;
  }
  if (kind & MPS_SITE_WRITE) {
    cell->writer_site = site + 1;
    cell->writer = (uint16_t)run->thread;
    cell->writer_barriers = self->barriers;
    cell->writer_meetings = self->meetings;
    cell->writer_atomic = atomic;
  }
  if (kind & MPS_SITE_READ && !(kind & MPS_SITE_WRITE)) {
    bool same_time = cell->reader_site && cell->reader_barriers == self->barriers;
    /* Of several readers the first is kept that is not the thread that writes later: two are enough to know that there is another. */
    cell->many_readers = same_time && cell->reader != run->thread;
    cell->reader_site = site + 1;
    cell->reader = (uint16_t)run->thread;
    cell->reader_barriers = self->barriers;
    cell->reader_meetings = self->meetings;
    cell->reader_atomic = atomic;
  }
  return found;
}

void checks_shadow_note(checks_run *run, const checks_region *region, const unsigned char *memory, uint64_t bytes, uint32_t site) {
  bool found = false;
  for (uint64_t i = 0; i < bytes; i++) {
    const unsigned char *p = memory + i;
    page *of = find_page(run->shadow, (uintptr_t)p / PAGE_BYTES);
    if (!of) return;
    checks_cell *cell = &of->cells[(uintptr_t)p % PAGE_BYTES];
    if (!found) found = note_byte(run, cell, region, p, bytes - i, site);
    else if (run->checked->sites[site].kind & MPS_SITE_WRITE) cell->writer_site = site + 1;
  }
}
