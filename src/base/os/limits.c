/* SPDX-License-Identifier: BSD-3-Clause
 *
 * limits: how many processors and how much memory this process may use: the machine's, cut by affinity and by its control groups
 * (version 1 and 2; limits of parent groups count too).
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/os/os.h"

#if defined(__linux__)

/* The first line of a small file; false when it cannot be read. */
static bool read_line(const char *path, char *out, size_t capacity) {
  FILE *file = fopen(path, "re");
  if (!file) return false;
  bool ok = fgets(out, (int)capacity, file) != NULL;
  fclose(file);
  return ok;
}

/* The group's path ("/a/b") of a version 1 controller, or of version 2 (controller ""). */
static bool group_path(const char *controller, char *out, size_t capacity) {
  FILE *file = fopen("/proc/self/cgroup", "re");
  char line[1024];
  bool found = false;
  while (file && !found && fgets(line, sizeof line, file)) {
    char *names = strchr(line, ':');
    char *path = names ? strchr(names + 1, ':') : NULL;
    if (!path) continue;
    *names++ = 0;
    *path++ = 0;
    path[strcspn(path, "\n")] = 0;
    if (!*controller) {
      found = *names == 0;
    } else {
      for (char *name = strtok(names, ","); name && !found; name = strtok(NULL, ",")) found = !strcmp(name, controller);
    }
    if (found) snprintf(out, capacity, "%s", path);
  }
  if (file) fclose(file);
  return found;
}

typedef void (*visit_group)(const char *directory, void *context);

/* Visits the group's directory and those above it, up to the mount point (in a container the path may not exist: the mount is the group). */
static void visit_groups(const char *mount, const char *controller, visit_group visit, void *context) {
  char path[1024], directory[1280];
  if (!group_path(controller, path, sizeof path)) return;
  for (;;) {
    if (!strcmp(path, "/")) path[0] = 0;
    snprintf(directory, sizeof directory, "%s%s", mount, path);
    visit(directory, context);
    char *slash = strrchr(path, '/');
    if (!slash) return;
    *slash = 0;
  }
}

static bool read_number(const char *directory, const char *name, uint64_t *out) {
  char path[1400], line[128];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  if (!read_line(path, line, sizeof line) || line[0] < '0' || line[0] > '9') return false;
  *out = strtoull(line, NULL, 10);
  return true;
}

/* ---- processors ---- */
static void visit_cpu_v2(const char *directory, void *context) {
  double *limit = context;
  char path[1400], line[128];
  unsigned long long quota, period;
  snprintf(path, sizeof path, "%s/cpu.max", directory);
  if (read_line(path, line, sizeof line) && sscanf(line, "%llu %llu", &quota, &period) == 2 && period) {
    double cpus = (double)quota / (double)period;
    if (cpus < *limit) *limit = cpus;
  }
}

static void visit_cpu_v1(const char *directory, void *context) {
  double *limit = context;
  uint64_t quota, period;
  if (read_number(directory, "cpu.cfs_quota_us", &quota) && read_number(directory, "cpu.cfs_period_us", &period) && period && quota) {
    double cpus = (double)quota / (double)period;
    if (cpus < *limit) *limit = cpus;
  }
}

uint32_t mps_os_cpu_count(void) {
  double limit = (double)sysconf(_SC_NPROCESSORS_ONLN);
  cpu_set_t set; /* 1024 processors; on a larger machine the call fails and the online count stays */
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) limit = CPU_COUNT(&set);
  visit_groups("/sys/fs/cgroup", "", visit_cpu_v2, &limit);
  visit_groups("/sys/fs/cgroup/cpu", "cpu", visit_cpu_v1, &limit);
  uint32_t whole = (uint32_t)limit;
  if (whole < limit) whole++;
  return whole ? whole : 1;
}

/* ---- memory ---- */
typedef struct memory_limits {
  uint64_t total, available;
} memory_limits;

static uint64_t stat_value(const char *directory, const char *field) {
  char path[1400], line[256];
  uint64_t value = 0;
  size_t length = strlen(field);
  snprintf(path, sizeof path, "%s/memory.stat", directory);
  FILE *file = fopen(path, "re");
  while (file && fgets(line, sizeof line, file)) {
    if (!strncmp(line, field, length) && line[length] == ' ') value = strtoull(line + length, NULL, 10);
  }
  if (file) fclose(file);
  return value;
}

static void apply_limit(memory_limits *limits, const char *directory, uint64_t limit, uint64_t used, const char *cache_field) {
  uint64_t cache = stat_value(directory, cache_field); /* file pages go away when memory is short */
  used = used > cache ? used - cache : 0;
  uint64_t left = limit > used ? limit - used : 0;
  if (limit < limits->total) limits->total = limit;
  if (left < limits->available) limits->available = left;
}

static void visit_memory_v2(const char *directory, void *context) {
  uint64_t limit, used;
  if (read_number(directory, "memory.max", &limit) && read_number(directory, "memory.current", &used)) {
    apply_limit(context, directory, limit, used, "inactive_file");
  }
}

static void visit_memory_v1(const char *directory, void *context) {
  uint64_t limit, used;
  if (read_number(directory, "memory.limit_in_bytes", &limit) && read_number(directory, "memory.usage_in_bytes", &used)) {
    apply_limit(context, directory, limit, used, "total_inactive_file");
  }
}

static memory_limits get_memory(void) {
  memory_limits limits = {0, 0};
  char line[256];
  unsigned long long kilobytes;
  FILE *file = fopen("/proc/meminfo", "re");
  while (file && fgets(line, sizeof line, file)) {
    if (sscanf(line, "MemTotal: %llu", &kilobytes) == 1) limits.total = kilobytes << 10;
    if (sscanf(line, "MemAvailable: %llu", &kilobytes) == 1) limits.available = kilobytes << 10;
  }
  if (file) fclose(file);
  if (!limits.total) limits.total = (uint64_t)sysconf(_SC_PHYS_PAGES) * mps_os_page_size();
  if (!limits.available) limits.available = limits.total;
  visit_groups("/sys/fs/cgroup", "", visit_memory_v2, &limits);
  visit_groups("/sys/fs/cgroup/memory", "memory", visit_memory_v1, &limits);
  return limits;
}

uint64_t mps_os_total_memory(void) { return get_memory().total; }

uint64_t mps_os_available_memory(void) { return get_memory().available; }

uint64_t mps_os_resident_memory(void) {
  char line[256];
  unsigned long long size, resident;
  if (!read_line("/proc/self/statm", line, sizeof line) || sscanf(line, "%llu %llu", &size, &resident) != 2) return 0;
  return resident * mps_os_page_size();
}

#else /* other POSIX systems: the machine as a whole */

uint32_t mps_os_cpu_count(void) {
  long count = sysconf(_SC_NPROCESSORS_ONLN);
  return count > 0 ? (uint32_t)count : 1;
}

uint64_t mps_os_total_memory(void) { return (uint64_t)sysconf(_SC_PHYS_PAGES) * mps_os_page_size(); }

uint64_t mps_os_available_memory(void) { return mps_os_total_memory(); }

uint64_t mps_os_resident_memory(void) { return 0; }

#endif
