/* SPDX-License-Identifier: BSD-3-Clause
 *
 * checks_internal: what the files of checks.h share. A run belongs to one thread of the system; nothing here is locked.
 */
#ifndef OPENMPS_HOST_CHECKS_INTERNAL_H
#define OPENMPS_HOST_CHECKS_INTERNAL_H

#include <stdbool.h>

#include "base/array.h"
#include "driver/host/checks.h"
#include "driver/host/threadgroup.h"

#define CHECKS_SCRATCH_BYTES 4096u /* enough for nearly all accesses */

/* Memory in place of what a wrong access meant. The last one counts, and has `bytes`. */
typedef struct checks_scratch {
  MPS_ARRAY(void *) memory;
  uint64_t bytes;
} checks_scratch;

/* Memory that kernels know by addresses with a mark. */
typedef struct checks_region {
  unsigned char *memory; /* NULL: none */
  uint64_t first;        /* the address that kernels have for its begin */
  uint64_t length;
  const char *name; /* of a variable; NULL: a buffer or an argument */
  bool threadgroup;
  bool owned; /* the run frees it */
} checks_region;

/* What a thread of the group did. */
typedef struct checks_thread {
  uint32_t barriers; /* that it came to */
  uint32_t meetings; /* of its simdgroup */
  uint32_t site;     /* of the last barrier */
  bool ended;
} checks_thread;

/* Who used a byte in this group. Sites count from 1; 0: nobody. */
typedef struct checks_cell {
  uint32_t writer_site, writer_barriers, writer_meetings;
  uint32_t reader_site, reader_barriers, reader_meetings;
  uint16_t writer, reader;
  bool writer_atomic, reader_atomic, many_readers;
} checks_cell;

typedef struct checks_shadow checks_shadow;

#define CHECKS_DOUBT_BYTES 64u

/* Two threads that write to one place: harmless if it is the same value, which shows when the second one has written. */
typedef struct checks_doubt {
  const checks_region *region;
  const unsigned char *memory; /* NULL: there is none */
  uint32_t bytes, site, other_site, thread, other;
  unsigned char before[CHECKS_DOUBT_BYTES];
} checks_doubt;

typedef struct checks_run {
  const mps_driver_device *device;
  const mps_step_dispatch *step;
  const mps_host_checked *checked;
  checks_region *regions;
  uint32_t region_count;
  uint64_t origin[3];  /* of the group that runs */
  uint32_t size[3];    /* its threads */
  uint32_t thread;     /* that runs, in the group */
  uint32_t thread_count;
  checks_thread threads[MPS_HOST_GROUP_THREADS];
  uint32_t *barrier_sites; /* the site that the first thread came to, for each barrier */
  uint32_t barrier_capacity, barrier_count;
  checks_shadow *shadow;
  const unsigned char *stack; /* of the thread of the system, where the run began */
  uint64_t known_begin, known_length; /* memory that was found last */
  checks_doubt doubt;
  const unsigned char *unwritten; /* the byte of the first finding, if that is that nobody had written it in this group */
  uint64_t findings;
  char text[900]; /* the first one */
  checks_scratch zeros, trash;  /* to read from, to write to */
  void (*function)(void *context, unsigned index); /* of the kernel's threads */
  void *context;
} checks_run;

/* Counts a finding; the first one's text is kept. */
void checks_report(checks_run *run, const mps_host_site *site, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* "buffer 1", "threadgroup variable 'tile'" ... */
void checks_name_region(const checks_run *run, const checks_region *region, char *out, size_t capacity);
/* "(3, 0, 0)" of a thread of the group that runs. */
void checks_name_thread(const checks_run *run, uint32_t thread, char *out, size_t capacity);

/* checks_shadow.c */
checks_shadow *checks_shadow_create(void); /* NULL: no memory */
void checks_shadow_free(checks_shadow *shadow); /* accepts NULL */
/* Another group begins. */
void checks_shadow_clear(checks_shadow *shadow);
/* Notes an access to real memory. `region`: NULL for memory without a mark. */
void checks_shadow_note(checks_run *run, const checks_region *region, const unsigned char *memory, uint64_t bytes, uint32_t site);

/* The last write is done: was it the value that the other thread had written? */
void checks_settle_doubt(checks_run *run);

/* checks_meeting.c */
void checks_begin_group(checks_run *run, uint32_t count);
void checks_end_group(checks_run *run);
uint32_t checks_before_meeting(checks_run *run, uint32_t site);

#endif
