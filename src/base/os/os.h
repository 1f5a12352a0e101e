/* SPDX-License-Identifier: BSD-3-Clause
 *
 * os: what the core needs of the operating system and the processor. The only folder with platform switches.
 */
#ifndef OPENMPS_BASE_OS_H
#define OPENMPS_BASE_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "openmps/status.h"

/* ---- pages ---- */
size_t mps_os_page_size(void);
/* Address space of `length` bytes (rounded up to pages), zero-filled, taken from the system page by page as it is touched; aligned to
 * 2 MiB and with huge pages advised from 2 MiB on. OUT_OF_MEMORY. */
MPS_WARN_UNUSED mps_status mps_os_pages_map(size_t length, void **out_memory);
void mps_os_pages_unmap(void *memory, size_t length);
/* Gives the pages that lie inside the range back; they read as zero afterwards. */
void mps_os_pages_discard(void *memory, size_t length);

/* ---- limits of this process ---- */
/* Processors it may use: affinity and the cgroup's quota (rounded up) count; at least 1. */
uint32_t mps_os_cpu_count(void);
/* Memory it may use in all: the machine's, or its cgroup's limit. */
uint64_t mps_os_total_memory(void);
/* Memory it may still take without swapping or being killed. */
uint64_t mps_os_available_memory(void);
/* Resident bytes of this process. */
uint64_t mps_os_resident_memory(void);

/* ---- processor ---- */
/* The best kernel level this processor and system support: "x86-64", "x86-64-v3", "x86-64-v4"; elsewhere the architecture's name. */
const char *mps_os_cpu_level(void);
/* What a compiler calls this machine: "x86_64-linux-gnu", "aarch64-linux-gnu". */
const char *mps_os_target(void);
/* What the system calls the processor, e.g. "AMD EPYC 9B14"; never empty. */
const char *mps_os_cpu_name(void);
/* The processor that the calling thread is on; it may be another one a moment later. -1: not known. */
int mps_os_cpu_current(void);
/* Tells the processor that this is a spin loop. */
static inline void mps_os_cpu_relax(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/* ---- process ---- */
/* `child` runs in the child after each fork(). Cannot be undone. SYSTEM_ERROR. */
MPS_WARN_UNUSED mps_status mps_os_at_fork(void (*child)(void));
/* Runs at exit() of the process, not in a forked child. */
MPS_WARN_UNUSED mps_status mps_os_at_exit(void (*function)(void));
/* The shared object (or program) that holds this code. NOT_FOUND. */
MPS_WARN_UNUSED mps_status mps_os_library_path(char *out_path, size_t capacity);
/* Its directory, without the last slash. NOT_FOUND. */
MPS_WARN_UNUSED mps_status mps_os_library_directory(char *out_path, size_t capacity);

#endif
