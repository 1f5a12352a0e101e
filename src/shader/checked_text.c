/* SPDX-License-Identifier: BSD-3-Clause
 *
 * checked_text: types, values and debug locations in the text of a module.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "shader/checked_internal.h"
#include "shader/process.h"

#define MAX_DEPTH 64 /* of scopes in scopes, and of functions in functions */

mps_status checked_add(checked_text *out, const char *text, size_t length) {
  MPS_TRY(MPS_ARRAY_RESERVE(out, length + 1));
  memcpy(out->items + out->count, text, length);
  out->count += length;
  out->items[out->count] = 0;
  return MPS_STATUS_OK;
}

mps_status checked_print(checked_text *out, const char *format, ...) {
  va_list list, again;
  va_start(list, format);
  va_copy(again, list);
  int length = vsnprintf(NULL, 0, format, list);
  va_end(list);
  mps_status status = MPS_ARRAY_RESERVE(out, (size_t)length + 1);
  if (status == MPS_STATUS_OK) {
    vsnprintf(out->items + out->count, (size_t)length + 1, format, again);
    out->count += (size_t)length;
  }
  va_end(again);
  return status;
}

const char *checked_skip(const char *p) {
  int depth = 0;
  for (; *p && *p != '\n'; p++) {
    if (*p == '"') {
      const char *end = strchr(p + 1, '"');
      if (!end) return p;
      p = end;
    } else if (*p == '(' || *p == '[' || *p == '{' || *p == '<') {
      depth++;
    } else if (*p == ')' || *p == ']' || *p == '}' || *p == '>') {
      if (depth-- == 0) return p;
    } else if (*p == ',' && depth == 0) {
      return p;
    }
  }
  return p;
}

const char *checked_skip_type(const char *p) {
  int depth = 0;
  for (; *p && *p != '\n'; p++) {
    if (*p == '"') {
      const char *end = strchr(p + 1, '"');
      if (!end) return p;
      p = end;
    } else if (*p == '[' || *p == '{' || *p == '<') {
      depth++;
    } else if (*p == ']' || *p == '}' || *p == '>') {
      depth--;
    } else if (depth == 0 && (*p == ' ' || *p == ',' || *p == ')')) {
      break;
    }
  }
  while (*p == ' ') p++;
  return p;
}

/* Bits of a plain type; 0: of another one. */
static uint64_t bits_of(const char *p, size_t length) {
  static const struct {
    const char *name;
    unsigned bits;
  } types[] = {{"half", 16}, {"bfloat", 16}, {"float", 32}, {"double", 64}, {"ptr", 64}};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (strlen(types[i].name) == length && memcmp(types[i].name, p, length) == 0) return types[i].bits;
  if (length > 1 && *p == 'i' && p[1] >= '0' && p[1] <= '9') return strtoull(p + 1, NULL, 10);
  if (*p != '<' || p[length - 1] != '>') return 0;
  char *times;
  uint64_t count = strtoull(p + 1, &times, 10);
  return strncmp(times, " x ", 3) == 0 ? count * bits_of(times + 3, (size_t)(p + length - 1 - (times + 3))) : 0;
}

mps_status checked_print_bytes(checked_text *out, checked_span type) {
  while (type.length && type.text[type.length - 1] == ' ') type.length--;
  uint64_t bits = bits_of(type.text, type.length);
  if (bits) return checked_print(out, "%llu", (unsigned long long)((bits + 7) / 8));
  return checked_print(out, "ptrtoint (ptr getelementptr (%.*s, ptr null, i32 1) to i64)", (int)type.length, type.text);
}

/* ---- debug locations ---- */
mps_status checked_metadata_read(const char *text, checked_metadata *out) {
  for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
    if (line[0] != '!' || line[1] < '0' || line[1] > '9') continue;
    size_t number = strtoul(line + 1, NULL, 10);
    if (number >= out->count) {
      MPS_TRY(MPS_ARRAY_RESERVE(out, number + 1 - out->count));
      while (out->count <= number) MPS_ARRAY_PUSH(out, NULL);
    }
    out->items[number] = line;
  }
  return MPS_STATUS_OK;
}

static const char *line_of(const checked_metadata *metadata, uint32_t number) {
  return number < metadata->count ? metadata->items[number] : NULL;
}

/* Behind `key` in this line; NULL when it is not there. */
static const char *field(const char *line, const char *key) {
  const char *p = line ? memmem(line, strcspn(line, "\n"), key, strlen(key)) : NULL;
  return p ? p + strlen(key) : NULL;
}

static uint32_t number_field(const char *line, const char *key) {
  const char *p = field(line, key);
  return p ? (uint32_t)strtoul(p, NULL, 10) : UINT32_MAX;
}

static checked_span string_field(const char *line, const char *key) {
  const char *p = field(line, key), *end = p ? strchr(p, '"') : NULL;
  return end ? checked_between(p, end) : (checked_span){"", 0};
}

static bool is_ours(const char *file, const checked_folders *folders) {
  checked_span name = string_field(file, "filename: \""), folder = string_field(file, "directory: \"");
  char path[2400];
  if (name.length && name.text[0] == '/') snprintf(path, sizeof path, "%.*s", (int)name.length, name.text);
  else snprintf(path, sizeof path, "%.*s/%.*s", (int)folder.length, folder.text, (int)name.length, name.text);
  return mps_path_is_below(path, folders->include) || (folders->include_core[0] && mps_path_is_below(path, folders->include_core));
}

static bool ends_with(checked_span text, const char *end) {
  size_t length = strlen(end);
  return text.length >= length && memcmp(text.text + text.length - length, end, length) == 0;
}

checked_place checked_find_place(const checked_metadata *metadata, const checked_folders *folders, uint32_t number) {
  checked_place place = {{"", 0}, 0, false};
  const char *location = line_of(metadata, number);
  for (int depth = 0; location && depth < MAX_DEPTH; depth++) {
    const char *scope = line_of(metadata, number_field(location, "scope: !")), *function = scope;
    const char *file = line_of(metadata, number_field(scope, "file: !"));
    for (int i = 0; function && i < MAX_DEPTH && field(function, "DILexicalBlock"); i++)
      function = line_of(metadata, number_field(function, "scope: !"));
    checked_span name = string_field(file, "filename: \""), in = string_field(function, "name: \"");
    if (depth == 0 && ends_with(name, "/metal_compute")) place.machinery = true;
    if (in.length > 10 && memcmp(in.text, "mps_entry_", 10) == 0) return place; /* stands behind the kernel in the user's file */
    if (file && !is_ours(file, folders) && !field(function, "DIFlagArtificial")) { /* a copy that nobody wrote stands where it is made */
      place.file = name;
      place.line = number_field(location, "line: ");
      return place;
    }
    location = line_of(metadata, number_field(location, "inlinedAt: !"));
  }
  return place;
}
