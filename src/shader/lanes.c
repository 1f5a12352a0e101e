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
/* The name behind the first @ of a line, without quotes. */
static ir_span global_name(ir_span line) {
  ir_span name;
  ir_name_length(ir_behind(line, ir_find(line, "@") + 1), &name);
  return name;
}

static mps_status keep(lanes_module *m, mps_map *map, ir_span key, ir_span value) {
  ir_span *kept = lanes_allocate(m, sizeof *kept);
  if (!kept) return no_memory();
  *kept = value;
  return mps_map_set(map, key.at, key.length, kept);
}

/* "%struct.a = type { ... }" and "attributes #0 = { ... }". */
static mps_status read_table_line(lanes_module *m, ir_span line) {
  static const char is_type[] = " = type ";
  bool attributes = ir_starts(line, "attributes #");
  size_t at = ir_find(line, attributes ? " = {" : is_type);
  if (at == line.length || line.length < at + 5) return MPS_STATUS_OK;
  if (!attributes) {
    size_t value = at + sizeof is_type - 1;
    return keep(m, &m->types, (ir_span){line.at, at}, (ir_span){line.at + value, line.length - value});
  }
  return keep(m, &m->attributes, (ir_span){line.at + 11, at - 11}, (ir_span){line.at + at + 4, line.length - at - 5});
}

static mps_status read_definition(lanes_module *m, ir_span line, ir_span *rest) {
  lanes_definition d = {.name = global_name(line), .head = ir_bare_line(line), .whole = line};
  ir_span inner;
  while (ir_next_line(rest, &inner)) {
    d.whole.length += inner.length;
    if (inner.at[0] != '}') continue;
    MPS_TRY(MPS_ARRAY_RESERVE(&m->definitions, 1));
    MPS_ARRAY_PUSH(&m->definitions, d);
    return MPS_STATUS_OK;
  }
  return lanes_refuse("@%.*s does not end", IR_SPAN(d.name));
}

mps_status lanes_module_read(lanes_module *m, const char *text, size_t length) {
  *m = (lanes_module){.text = {text, length}};
  if (memchr(text, 0, length)) return lanes_refuse("the text holds a 0");
  if (length > (size_t)1 << 30) return lanes_refuse("the text has %zu bytes", length);
  ir_span rest = m->text, line;
  while (ir_next_line(&rest, &line)) {
    ir_span bare = ir_bare_line(line);
    if (bare.length == 0) continue;
    if (ir_starts(bare, "define ")) MPS_TRY(read_definition(m, line, &rest));
    else if (bare.at[0] == '%' || ir_starts(bare, "attributes #")) MPS_TRY(read_table_line(m, bare));
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

static bool is_threads(const lanes_definition *d) { return ir_starts(d->name, threads_prefix); }

/* Nothing but thread functions may have a word in it. */
static mps_status check_text_between(ir_span text) {
  ir_span rest = text, line;
  while (ir_next_line(&rest, &line)) {
    bool declared = ir_starts(line, "declare ");
    if (!declared && ir_find(line, "@mps_collective_") < line.length)
      return lanes_refuse("threads meet outside of thread functions: %.*s", IR_SPAN(ir_bare_line(line)));
    if (!declared && ir_find(line, "@mps_lane_index") < line.length)
      return lanes_refuse("a lane's number is asked for outside of thread functions: %.*s", IR_SPAN(ir_bare_line(line)));
    if (ir_find(line, "@mps_threads_") < line.length)
      return lanes_refuse("a thread function is used: %.*s", IR_SPAN(ir_bare_line(line)));
  }
  return MPS_STATUS_OK;
}

/* Copies what lies between thread functions, without the declarations of what goes or is defined now. */
static void copy_text_between(ir_text *out, ir_span text) {
  ir_span rest = text, line;
  while (ir_next_line(&rest, &line)) {
    ir_span name = global_name(line);
    bool declared = ir_starts(line, "declare ") || (line.at[0] == '@' && ir_find(line, " = external ") < line.length);
    if (declared && (ir_starts(name, group_prefix) || ir_starts(name, collective_prefix) || ir_is(name, "mps_lane_index"))) continue;
    ir_put_span(out, line);
  }
}

static mps_status transform_function(lanes_module *m, const lanes_definition *d, ir_text *out, uint32_t *metadata, mps_lanes_function *done) {
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

static mps_status transform(lanes_module *m, ir_text *out, mps_lanes_result *result) {
  const char *from = m->text.at, *end = m->text.at + m->text.length;
  uint32_t count = 0, metadata = m->metadata_count;
  for (size_t i = 0; i <= m->definitions.count; i++) {
    const lanes_definition *d = i < m->definitions.count ? &m->definitions.items[i] : NULL;
    if (d && !is_threads(d)) continue;
    ir_span between = {from, (size_t)((d ? d->whole.at : end) - from)};
    MPS_TRY(check_text_between(between));
    copy_text_between(out, between);
    if (!d) break;
    count++;
    from = d->whole.at + d->whole.length;
  }
  ir_put(out, "\n");
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
  ir_text out = {0};
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
