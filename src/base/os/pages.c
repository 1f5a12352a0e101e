/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pages: address space from the system. Memory is taken as it is touched (no reservation), aligned for huge pages.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/os/os.h"

#define HUGE_PAGE ((size_t)2 << 20)

size_t mps_os_page_size(void) { return (size_t)sysconf(_SC_PAGESIZE); }

static size_t round_up(size_t value, size_t granule) { return (value + granule - 1) / granule * granule; }

static void advise(void *memory, size_t length) {
#if defined(MADV_HUGEPAGE)
  if (length >= HUGE_PAGE) (void)madvise(memory, length, MADV_HUGEPAGE);
#endif
#if defined(MADV_DONTDUMP)
  if (length >= HUGE_PAGE * 16) (void)madvise(memory, length, MADV_DONTDUMP);
#endif
  (void)memory;
  (void)length;
}

mps_status mps_os_pages_map(size_t length, void **out_memory) {
  size_t page = mps_os_page_size();
  size_t rounded = round_up(length, page);
  size_t slack = rounded >= HUGE_PAGE ? HUGE_PAGE : 0; /* to cut an aligned piece out */
  int flags = MAP_PRIVATE | MAP_ANONYMOUS;
#if defined(MAP_NORESERVE)
  flags |= MAP_NORESERVE;
#endif
  if (length == 0 || rounded < length || rounded + slack < rounded) {
    return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "cannot map %zu bytes", length);
  }
  char *start = mmap(NULL, rounded + slack, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (start == MAP_FAILED) return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "cannot map %zu bytes: %s", length, strerror(errno));
  char *memory = start;
  if (slack) {
    memory = (char *)round_up((size_t)start, HUGE_PAGE);
    size_t before = (size_t)(memory - start), after = slack - before;
    if (before) (void)munmap(start, before);
    if (after) (void)munmap(memory + rounded, after);
  }
  advise(memory, rounded);
  *out_memory = memory;
  return MPS_STATUS_OK;
}

void mps_os_pages_unmap(void *memory, size_t length) {
  if (memory) (void)munmap(memory, round_up(length, mps_os_page_size()));
}

void mps_os_pages_discard(void *memory, size_t length) {
  size_t page = mps_os_page_size();
  size_t begin = round_up((size_t)memory, page), end = ((size_t)memory + length) / page * page;
  if (begin < end) (void)madvise((void *)begin, end - begin, MADV_DONTNEED);
}
