/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lanes: the module around the thread functions: what is read of it, what is dropped, what stays as it was.
 */
#include "shader/lanes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shader/lanes_internal.h"

/* ---- text ---- */
static bool make_room(lanes_text *text, size_t extra) {
  if (text->failed) return false;
  if (text->length + extra < text->capacity) return true;
  size_t capacity = (text->length + extra) * 2 + 4096;
  char *at = realloc(text->at, capacity);
  if (!at) return text->failed = true, false;
  text->at = at;
  text->capacity = capacity;
  return true;
}

void lanes_put(lanes_text *text, const char *format, ...) {
  if (!make_room(text, 256)) return;
  for (;;) {
    va_list list;
    va_start(list, format);
    size_t room = text->capacity - text->length;
    int length = vsnprintf(text->at + text->length, room, format, list);
    va_end(list);
    if (length < 0) {
      text->failed = true;
      return;
    }
    if ((size_t)length < room) {
      text->length += (size_t)length;
      return;
    }
    if (!make_room(text, (size_t)length + 1)) return;
  }
}

void lanes_put_span(lanes_text *text, lanes_span span) {
  if (span.length == 0 || !make_room(text, span.length + 1)) return;
  memcpy(text->at + text->length, span.at, span.length);
  text->length += span.length;
  text->at[text->length] = 0;
}

bool lanes_is(lanes_span span, const char *text) { return span.length == strlen(text) && memcmp(span.at, text, span.length) == 0; }

bool lanes_starts(lanes_span span, const char *text) {
  size_t length = strlen(text);
  return span.length >= length && memcmp(span.at, text, length) == 0;
}

size_t lanes_find(lanes_span span, const char *what) {
  size_t length = strlen(what);
  const char *at = span.at, *end = span.at + span.length;
  while (length <= (size_t)(end - at)) {
    const char *found = memchr(at, what[0], (size_t)(end - at) - length + 1);
    if (!found) break;
    if (memcmp(found, what, length) == 0) return (size_t)(found - span.at);
    at = found + 1;
  }
  return span.length;
}

mps_status lanes_refuse(const char *format, ...) {
  char reason[400];
  va_list list;
  va_start(list, format);
  vsnprintf(reason, sizeof reason, format, list);
  va_end(list);
  return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "lane loops are not possible: %s", reason);
}

/* ---- memory ---- */
struct lanes_block_of_memory {
  lanes_block_of_memory *next;
  size_t used, capacity;
  _Alignas(16) unsigned char bytes[];
};

void *lanes_allocate(lanes_module *module, size_t bytes) {
  bytes = (bytes + 15) & ~(size_t)15;
  lanes_block_of_memory *block = module->memory;
  if (!block || block->capacity - block->used < bytes) {
    size_t capacity = bytes > 65536 ? bytes : 65536;
    block = calloc(1, sizeof *block + capacity);
    if (!block) return NULL;
    block->capacity = capacity;
    block->next = module->memory;
    module->memory = block;
  }
  void *result = block->bytes + block->used;
  block->used += bytes;
  return result;
}

static mps_status no_memory(void) { return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for lane loops"); }

/* ---- reading a module ---- */
/* Takes the next line, its end included, off `rest`. */
static bool next_line(lanes_span *rest, lanes_span *line) {
  if (rest->length == 0) return false;
  const char *end = memchr(rest->at, '\n', rest->length);
  size_t length = end ? (size_t)(end - rest->at) + 1 : rest->length;
  *line = (lanes_span){rest->at, length};
  *rest = (lanes_span){rest->at + length, rest->length - length};
  return true;
}

static lanes_span without_end(lanes_span line) {
  while (line.length && (line.at[line.length - 1] == '\n' || line.at[line.length - 1] == '\r')) line.length--;
  return line;
}

/* The name behind the first @ of a line, without quotes. */
static lanes_span global_name(lanes_span line) {
  size_t at = lanes_find(line, "@");
  if (at == line.length) return (lanes_span){0};
  lanes_span rest = {line.at + at + 1, line.length - at - 1};
  size_t length = 0;
  if (rest.length && rest.at[0] == '"') {
    rest = (lanes_span){rest.at + 1, rest.length - 1};
    length = lanes_find(rest, "\"");
  } else {
    while (length < rest.length && !strchr(" (,)*\n", rest.at[length])) length++;
  }
  return (lanes_span){rest.at, length};
}

static mps_status keep(lanes_module *m, mps_map *map, lanes_span key, lanes_span value) {
  lanes_span *kept = lanes_allocate(m, sizeof *kept);
  if (!kept) return no_memory();
  *kept = value;
  return mps_map_set(map, key.at, key.length, kept);
}

/* "%struct.a = type { ... }" and "attributes #0 = { ... }". */
static mps_status read_table_line(lanes_module *m, lanes_span line) {
  static const char is_type[] = " = type ";
  bool attributes = lanes_starts(line, "attributes #");
  size_t at = lanes_find(line, attributes ? " = {" : is_type);
  if (at == line.length || line.length < at + 5) return MPS_STATUS_OK;
  if (!attributes) {
    size_t value = at + sizeof is_type - 1;
    return keep(m, &m->types, (lanes_span){line.at, at}, (lanes_span){line.at + value, line.length - value});
  }
  return keep(m, &m->attributes, (lanes_span){line.at + 11, at - 11}, (lanes_span){line.at + at + 4, line.length - at - 5});
}

static mps_status read_definition(lanes_module *m, lanes_span line, lanes_span *rest) {
  lanes_definition d = {.name = global_name(line), .head = without_end(line), .whole = line};
  lanes_span inner;
  while (next_line(rest, &inner)) {
    d.whole.length += inner.length;
    if (inner.at[0] != '}') continue;
    MPS_TRY(MPS_ARRAY_RESERVE(&m->definitions, 1));
    MPS_ARRAY_PUSH(&m->definitions, d);
    return MPS_STATUS_OK;
  }
  return lanes_refuse("@%.*s does not end", LANES_SPAN(d.name));
}

mps_status lanes_module_read(lanes_module *m, const char *text, size_t length) {
  *m = (lanes_module){.text = {text, length}};
  if (memchr(text, 0, length)) return lanes_refuse("the text holds a 0");
  if (length > (size_t)1 << 30) return lanes_refuse("the text has %zu bytes", length);
  lanes_span rest = m->text, line;
  while (next_line(&rest, &line)) {
    lanes_span bare = without_end(line);
    if (bare.length == 0) continue;
    if (lanes_starts(bare, "define ")) MPS_TRY(read_definition(m, line, &rest));
    else if (bare.at[0] == '%' || lanes_starts(bare, "attributes #")) MPS_TRY(read_table_line(m, bare));
    else if (bare.at[0] == '!' && bare.length > 1 && bare.at[1] >= '0' && bare.at[1] <= '9') {
      uint32_t number = (uint32_t)strtoul(bare.at + 1, NULL, 10);
      if (number >= m->metadata_count) m->metadata_count = number + 1;
    }
  }
  return MPS_STATUS_OK;
}

void lanes_module_fini(lanes_module *m) {
  mps_map_fini(&m->types, NULL);
  mps_map_fini(&m->attributes, NULL);
  MPS_ARRAY_FINI(&m->definitions);
  while (m->memory) {
    lanes_block_of_memory *next = m->memory->next;
    free(m->memory);
    m->memory = next;
  }
}

/* ---- the transformation ---- */
#define MAX_TEXT ((size_t)4 << 20) /* written for all thread functions together: compiling it takes some seconds */

static const char threads_prefix[] = "mps_threads_", group_prefix[] = "mps_group_", collective_prefix[] = "mps_collective_";

static bool is_threads(const lanes_definition *d) { return lanes_starts(d->name, threads_prefix); }

/* Nothing but thread functions may have a word in it. */
static mps_status check_text_between(lanes_span text) {
  lanes_span rest = text, line;
  while (next_line(&rest, &line)) {
    bool declared = lanes_starts(line, "declare ");
    if (!declared && lanes_find(line, "@mps_collective_") < line.length)
      return lanes_refuse("threads meet outside of thread functions: %.*s", LANES_SPAN(without_end(line)));
    if (!declared && lanes_find(line, "@mps_lane_index") < line.length)
      return lanes_refuse("a lane's number is asked for outside of thread functions: %.*s", LANES_SPAN(without_end(line)));
    if (lanes_find(line, "@mps_threads_") < line.length)
      return lanes_refuse("a thread function is used: %.*s", LANES_SPAN(without_end(line)));
  }
  return MPS_STATUS_OK;
}

/* Copies what lies between thread functions, without the declarations of what goes or is defined now. */
static void copy_text_between(lanes_text *out, lanes_span text) {
  lanes_span rest = text, line;
  while (next_line(&rest, &line)) {
    lanes_span name = global_name(line);
    bool declared = lanes_starts(line, "declare ") || (line.at[0] == '@' && lanes_find(line, " = external ") < line.length);
    if (declared && (lanes_starts(name, group_prefix) || lanes_starts(name, collective_prefix) || lanes_is(name, "mps_lane_index"))) continue;
    lanes_put_span(out, line);
  }
}

static mps_status transform_function(lanes_module *m, const lanes_definition *d, lanes_text *out, uint32_t *metadata, mps_lanes_function *done) {
  lanes_function f = {0};
  mps_status status = lanes_function_read(&f, m, d);
  if (status == MPS_STATUS_OK) status = lanes_function_split(&f);
  if (status == MPS_STATUS_OK) status = lanes_function_write(&f, out, metadata);
  if (status == MPS_STATUS_OK) {
    *done = (mps_lanes_function){.number = f.number, .bytes_per_thread = (uint32_t)(f.bytes / LANES_WIDTH), .meetings = f.barrier_end};
    for (size_t i = 0; i < f.values.count; i++) done->values += f.values.items[i].crossing;
  }
  lanes_function_fini(&f);
  return status;
}

static mps_status transform(lanes_module *m, lanes_text *out, mps_lanes_result *result) {
  const char *from = m->text.at, *end = m->text.at + m->text.length;
  uint32_t count = 0, metadata = m->metadata_count;
  for (size_t i = 0; i <= m->definitions.count; i++) {
    const lanes_definition *d = i < m->definitions.count ? &m->definitions.items[i] : NULL;
    if (d && !is_threads(d)) continue;
    lanes_span between = {from, (size_t)((d ? d->whole.at : end) - from)};
    MPS_TRY(check_text_between(between));
    copy_text_between(out, between);
    if (!d) break;
    count++;
    from = d->whole.at + d->whole.length;
  }
  lanes_put(out, "\n");
  result->functions = calloc(count + 1, sizeof *result->functions);
  if (!result->functions) return no_memory();
  const size_t before = out->length;
  for (size_t i = 0; i < m->definitions.count; i++) {
    if (!is_threads(&m->definitions.items[i])) continue;
    MPS_TRY(transform_function(m, &m->definitions.items[i], out, &metadata, &result->functions[result->function_count++]));
    if (out->length - before > MAX_TEXT) return lanes_refuse("the loops take more than %zu MiB of text", MAX_TEXT >> 20);
  }
  return out->failed ? no_memory() : MPS_STATUS_OK;
}

mps_status mps_lanes_transform(const char *text, size_t length, mps_lanes_result *out_result) {
  *out_result = (mps_lanes_result){0};
  lanes_module module;
  lanes_text out = {0};
  mps_status status = lanes_module_read(&module, text, length);
  if (status == MPS_STATUS_OK) status = transform(&module, &out, out_result);
  lanes_module_fini(&module);
  out_result->text = out.at;
  out_result->length = out.length;
  if (status != MPS_STATUS_OK) mps_lanes_result_free(out_result);
  return status;
}

void mps_lanes_result_free(mps_lanes_result *result) {
  free(result->text);
  free(result->functions);
  *result = (mps_lanes_result){0};
}
