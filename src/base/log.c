/* SPDX-License-Identifier: BSD-3-Clause
 *
 * log: levels are parsed once from OPENMPS_LOG; a line is one write, so that threads do not mix.
 */
#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "base/time.h"

static const char *const area_names[MPS_LOG_AREA_COUNT] = {
#define X(id, name) name,
    MPS_LOG_AREA_LIST(X)
#undef X
};
static const char *const level_names[] = {"error", "warning", "info", "debug", "trace"};

/* Level + 1 of each area; 0 = OPENMPS_LOG not parsed yet. */
static _Atomic unsigned char levels[MPS_LOG_AREA_COUNT];

static int find_level(const char *text, size_t length) {
  for (int i = 0; i < (int)(sizeof level_names / sizeof *level_names); i++) {
    if (strlen(level_names[i]) == length && !strncmp(level_names[i], text, length)) return i;
  }
  return -1;
}

static void set_area(const char *area, size_t length, int level) {
  for (int i = 0; i < MPS_LOG_AREA_COUNT; i++) {
    bool all = length == 0 || (length == 3 && !strncmp(area, "all", 3));
    if (all || (strlen(area_names[i]) == length && !strncmp(area_names[i], area, length))) {
      atomic_store_explicit(&levels[i], (unsigned char)(level + 1), memory_order_relaxed);
    }
  }
}

void mps_log_reload(void) {
  set_area("all", 3, MPS_LOG_WARNING);
  const char *text = mps_option_string(MPS_OPTION_LOG);
  while (*text) {
    size_t length = strcspn(text, ",");
    const char *colon = memchr(text, ':', length);
    const char *level = colon ? colon + 1 : text;
    int number = find_level(level, (size_t)(text + length - level));
    if (number >= 0) set_area(text, colon ? (size_t)(colon - text) : 0, number);
    text += length;
    if (*text == ',') text++;
  }
}

bool mps_log_enabled(mps_log_area area, mps_log_level level) {
  unsigned char now = atomic_load_explicit(&levels[area], memory_order_relaxed);
  if (!now) {
    mps_log_reload();
    now = atomic_load_explicit(&levels[area], memory_order_relaxed);
  }
  return (int)level < now;
}

void mps_log_write(mps_log_area area, mps_log_level level, const char *format, ...) {
  char line[2048];
  double seconds = (double)mps_time_ns() * 1e-9;
  int start = snprintf(line, sizeof line, "openmps %.6f %s %s: ", seconds, area_names[area], level_names[level]);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line + start, sizeof line - (size_t)start - 1, format, arguments);
  va_end(arguments);
  size_t length = strlen(line);
  line[length] = '\n';
  fwrite(line, 1, length + 1, stderr);
}

void mps_log_print(const char *format, ...) {
  char line[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof line - 1, format, arguments);
  va_end(arguments);
  size_t length = strlen(line);
  line[length] = '\n';
  fwrite(line, 1, length + 1, stderr);
}
