/* SPDX-License-Identifier: BSD-3-Clause
 *
 * diagnostics: clang's messages as its user should see them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "shader/compiler.h"
#include "shader/process.h"

typedef MPS_ARRAY(char) char_array;

/* Line `number` of `text`, as a string of its own; NULL if there is none. */
static char *copy_line(const char *text, uint32_t number) {
  for (uint32_t i = 1; text && i < number; i++) {
    text = strchr(text, '\n');
    if (text) text++;
  }
  return text ? strndup(text, strcspn(text, "\n")) : NULL;
}

/* file:line:column: rest. False if `line` is no message. */
static bool parse(const char *line, size_t length, size_t *file_length, uint32_t *number, uint32_t *column, const char **rest) {
  for (const char *p = line; (p = memchr(p, ':', length - (size_t)(p - line))) != NULL; p++) {
    unsigned a, b;
    int used = 0;
    if (sscanf(p, ":%u:%u: %n", &a, &b, &used) == 2 && used > 0) {
      *file_length = (size_t)(p - line);
      *number = a;
      *column = b;
      *rest = p + used;
      return true;
    }
  }
  return false;
}

static bool add(char_array *out, const char *text, size_t length) {
  if (MPS_ARRAY_RESERVE(out, length + 1) != MPS_STATUS_OK) return false;
  memcpy(out->items + out->count, text, length);
  out->count += length;
  out->items[out->count] = 0;
  return true;
}

static bool may_read(const char *path, const char *const *readable) {
  struct stat state;
  bool below = !readable;
  for (; readable && *readable && !below; readable++) below = mps_path_is_below(path, *readable) && !strstr(path, "/../");
  return below && stat(path, &state) == 0 && S_ISREG(state.st_mode);
}

/* One message with its column mapped; false when out of memory. What an entry's text makes of a wrong kernel is no news. */
static bool add_message(char_array *out, const mps_reading *reading, const char *line, size_t file_length, uint32_t number, uint32_t column,
                        const char *rest, size_t rest_length, const char *user_file, const char *user_source, const char *const *readable) {
  char *file = strndup(line, file_length), *own = NULL;
  if (!file) return false;
  const char *source = user_source;
  if (strcmp(file, user_file) != 0 || !source) {
    size_t length;
    source = may_read(file, readable) && mps_file_read(file, &own, &length) == MPS_STATUS_OK ? own : NULL;
  }
  char *source_line = copy_line(source, number);
  if (reading) column = mps_reading_column(reading, file, number, column, source_line);
  if (column == 0 && out->count > 0) {
    free(source_line);
    free(own);
    free(file);
    return true;
  }
  char place[64];
  int place_length = snprintf(place, sizeof place, ":%u:%u: ", number, column);
  bool ok = add(out, file, file_length) && add(out, place, (size_t)place_length) && add(out, rest, rest_length) && add(out, "\n", 1);
  free(source_line);
  free(own);
  free(file);
  return ok;
}

char *mps_diagnostics_map(const char *text, const mps_reading *reading, const char *file, const char *source, const char *const *readable) {
  char_array out = {0};
  bool ok = add(&out, "", 0);
  for (const char *line = text; ok && *line;) {
    size_t length = strcspn(line, "\n"), file_length;
    uint32_t number, column;
    const char *rest;
    if (parse(line, length, &file_length, &number, &column, &rest)) {
      bool generated = file_length >= 13 && memcmp(line + file_length - 13, "host_launch.h", 13) == 0;
      bool note = strncmp(rest, "note:", 5) == 0;
      if (!(generated && note))
        ok = add_message(&out, reading, line, file_length, number, column, rest, length - (size_t)(rest - line), file, source, readable);
    } else if (strncmp(line, "error:", 6) == 0 || strncmp(line, "fatal error:", 12) == 0 || strncmp(line, "clang: error", 12) == 0) {
      ok = add(&out, line, length) && add(&out, "\n", 1);
    }
    line += length;
    if (*line) line++;
  }
  if (!ok) {
    MPS_ARRAY_FINI(&out);
    return NULL;
  }
  while (out.count > 0 && out.items[out.count - 1] == '\n') out.items[--out.count] = 0;
  return out.items;
}
