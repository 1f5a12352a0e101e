/* SPDX-License-Identifier: BSD-3-Clause
 *
 * checks_meeting: barriers that not all threads of a group come to. Threads count theirs: the n-th barrier of each must be the same line,
 * and all must have come to as many when the group is done.
 */
#include <stdlib.h>
#include <string.h>

#include "driver/host/checks_internal.h"

void checks_begin_group(checks_run *run, uint32_t count) {
  run->thread_count = count;
  run->barrier_count = 0;
  memset(run->threads, 0, count * sizeof *run->threads);
  run->unwritten = NULL; /* a race with it would have been found by now */
  checks_shadow_clear(run->shadow);
}

static bool same_place(const mps_host_site *a, const mps_host_site *b) { return a->line == b->line && strcmp(a->file, b->file) == 0; }

static void note_barrier(checks_run *run, uint32_t site) {
  checks_thread *self = &run->threads[run->thread];
  uint32_t number = self->barriers++;
  self->site = site;
  if (number >= run->barrier_capacity) {
    uint32_t capacity = run->barrier_capacity ? run->barrier_capacity * 2 : 64;
    uint32_t *sites = realloc(run->barrier_sites, capacity * sizeof *sites);
    if (!sites) return;
    run->barrier_sites = sites;
    run->barrier_capacity = capacity;
  }
  if (number >= run->barrier_count) {
    run->barrier_sites[number] = site;
    run->barrier_count = number + 1;
    return;
  }
  const mps_host_site *here = &run->checked->sites[site], *other = &run->checked->sites[run->barrier_sites[number]];
  if (!same_place(here, other))
    checks_report(run, here, "waits at this barrier while other threads of its group wait at the one in line %u: all must come to the same one",
                  other->line);
}

uint32_t checks_before_meeting(checks_run *run, uint32_t site) {
  checks_settle_doubt(run);
  if (run->checked->sites[site].kind & MPS_SITE_BARRIER) note_barrier(run, site);
  else run->threads[run->thread].meetings++;
  return run->thread;
}

void checks_end_group(checks_run *run) {
  uint32_t most = 0, who = 0;
  checks_settle_doubt(run);
  for (uint32_t i = 0; i < run->thread_count; i++) {
    if (run->threads[i].barriers <= most) continue;
    most = run->threads[i].barriers;
    who = i;
  }
  uint32_t missing = 0, first = 0;
  for (uint32_t i = run->thread_count; i-- > 0;) {
    if (run->threads[i].barriers == most) continue;
    missing++;
    first = i;
  }
  if (!missing) return;
  char thread[80];
  checks_name_thread(run, first, thread, sizeof thread);
  run->thread = who;
  /* The barrier that the first of them did not come to. */
  uint32_t number = run->threads[first].barriers;
  const mps_host_site *site = &run->checked->sites[number < run->barrier_count ? run->barrier_sites[number] : run->threads[who].site];
  checks_report(run, site, "waits at a barrier that %u of the %u threads of its group do not come to, thread %s among them", missing,
                run->thread_count, thread);
}
