/* SPDX-License-Identifier: BSD-3-Clause
 *
 * checked_place: which line of the user's an instruction comes from, by the debug locations of a module.
 */
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "shader/checked_internal.h"
#include "shader/process.h"

#define MAX_DEPTH 64 /* of scopes in scopes, and of functions in functions */

mps_status checked_metadata_read(ir_span text, checked_metadata *out) {
  ir_span line;
  while (ir_next_line(&text, &line)) {
    uint64_t number;
    if (line.at[0] != '!' || ir_number(ir_behind(line, 1), &number) == 0) continue;
    if (number >= out->count) {
      MPS_TRY(MPS_ARRAY_RESERVE(out, number + 1 - out->count));
      while (out->count <= number) MPS_ARRAY_PUSH(out, (ir_span){0});
    }
    out->items[number] = line;
  }
  return MPS_STATUS_OK;
}

static ir_span line_of(const checked_metadata *metadata, uint32_t number) {
  return number < metadata->count ? metadata->items[number] : (ir_span){0};
}

/* Behind `key` in this line; {0} when it is not there. */
static ir_span field(ir_span line, const char *key) {
  size_t at = ir_find(line, key);
  return at < line.length ? ir_behind(line, at + strlen(key)) : (ir_span){0};
}

static uint32_t number_field(ir_span line, const char *key) {
  uint64_t number;
  return ir_number(field(line, key), &number) && number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
}

/* `key` ends with the quote that opens the string. */
static ir_span string_field(ir_span line, const char *key) {
  ir_span text = field(line, key);
  size_t length = ir_find(text, "\"");
  return length < text.length ? (ir_span){text.at, length} : (ir_span){0};
}

static bool is_ours(ir_span file, const checked_folders *folders) {
  ir_span name = string_field(file, "filename: \""), folder = string_field(file, "directory: \"");
  char path[2400];
  if (name.length && name.at[0] == '/') snprintf(path, sizeof path, "%.*s", IR_SPAN(name));
  else snprintf(path, sizeof path, "%.*s/%.*s", IR_SPAN(folder), IR_SPAN(name));
  return mps_path_is_below(path, folders->include) || (folders->include_core[0] && mps_path_is_below(path, folders->include_core));
}

static bool ends_with(ir_span text, const char *end) {
  size_t length = strlen(end);
  return text.length >= length && memcmp(text.at + text.length - length, end, length) == 0;
}

checked_place checked_find_place(const checked_metadata *metadata, const checked_folders *folders, uint32_t number) {
  checked_place place = {0};
  ir_span location = line_of(metadata, number);
  for (int depth = 0; location.length && depth < MAX_DEPTH; depth++) {
    ir_span scope = line_of(metadata, number_field(location, "scope: !")), function = scope;
    ir_span file = line_of(metadata, number_field(scope, "file: !"));
    for (int i = 0; i < MAX_DEPTH && field(function, "DILexicalBlock").at; i++)
      function = line_of(metadata, number_field(function, "scope: !"));
    ir_span name = string_field(file, "filename: \""), in = string_field(function, "name: \"");
    if (depth == 0 && ends_with(name, "/metal_compute")) place.machinery = true;
    if (ir_starts(in, "mps_entry_")) return place; /* stands behind the kernel in the user's file */
    if (file.length && !is_ours(file, folders) && !field(function, "DIFlagArtificial").at) { /* a copy that nobody wrote stands where it is made */
      place.file = name;
      place.line = number_field(location, "line: ");
      return place;
    }
    location = line_of(metadata, number_field(location, "inlinedAt: !"));
  }
  return place;
}
