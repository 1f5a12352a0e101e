/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ir_text: the text of LLVM IR: spans, growing text, words, brackets, types. See ir_text.h.
 */
#include "shader/ir_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_COUNT (UINT64_C(1) << 24) /* elements of a sequence: more than a kernel may have of anything */

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' || c == '.' || c == '$' || c == '-';
}
static bool opens(char c) { return c == '(' || c == '[' || c == '{' || c == '<'; }
static bool closes(char c) { return c == ')' || c == ']' || c == '}' || c == '>'; }

/* ---- a piece of text ---- */
bool ir_is(ir_span span, const char *text) { return span.length == strlen(text) && memcmp(span.at, text, span.length) == 0; }

bool ir_starts(ir_span span, const char *text) {
  size_t length = strlen(text);
  return span.length >= length && memcmp(span.at, text, length) == 0;
}

size_t ir_find(ir_span span, const char *what) {
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

ir_span ir_behind_blanks(ir_span text) {
  size_t i = 0;
  while (i < text.length && text.at[i] == ' ') i++;
  return ir_behind(text, i);
}

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

ir_span ir_trimmed(ir_span text) {
  while (text.length && is_space(text.at[0])) text = ir_behind(text, 1);
  while (text.length && is_space(text.at[text.length - 1])) text.length--;
  return text;
}

bool ir_next_line(ir_span *rest, ir_span *out_line) {
  if (rest->length == 0) return false;
  const char *end = memchr(rest->at, '\n', rest->length);
  size_t length = end ? (size_t)(end - rest->at) + 1 : rest->length;
  *out_line = (ir_span){rest->at, length};
  *rest = ir_behind(*rest, length);
  return true;
}

ir_span ir_bare_line(ir_span line) {
  while (line.length && (line.at[line.length - 1] == '\n' || line.at[line.length - 1] == '\r')) line.length--;
  return line;
}

/* ---- text that grows ---- */
static bool make_room(ir_text *text, size_t extra) {
  if (text->failed) return false;
  if (text->length + extra < text->capacity) return true;
  size_t capacity = (text->length + extra) * 2 + 4096;
  char *at = realloc(text->at, capacity);
  if (!at) return text->failed = true, false;
  text->at = at;
  text->capacity = capacity;
  return true;
}

void ir_put(ir_text *text, const char *format, ...) {
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

void ir_put_span(ir_text *text, ir_span span) {
  if (span.length == 0 || !make_room(text, span.length + 1)) return;
  memcpy(text->at + text->length, span.at, span.length);
  text->length += span.length;
  text->at[text->length] = 0;
}

void ir_text_fini(ir_text *text) {
  free(text->at);
  *text = (ir_text){0};
}

/* ---- words ---- */
size_t ir_number(ir_span text, uint64_t *out_number) {
  size_t i = 0;
  *out_number = 0;
  for (; i < text.length && is_digit(text.at[i]); i++) {
    uint64_t digit = (uint64_t)(text.at[i] - '0');
    *out_number = *out_number > (UINT64_MAX - digit) / 10 ? UINT64_MAX : *out_number * 10 + digit;
  }
  return i;
}

size_t ir_word_length(ir_span text) {
  size_t i = 0;
  while (i < text.length && is_word(text.at[i])) i++;
  return i;
}

size_t ir_string_length(ir_span text) {
  size_t inside = ir_find(ir_behind(text, 1), "\"");
  return inside + 1 < text.length ? inside + 2 : text.length;
}

size_t ir_name_length(ir_span text, ir_span *out_name) {
  if (text.length && text.at[0] == '"') {
    ir_span inside = ir_behind(text, 1);
    *out_name = (ir_span){inside.at, ir_find(inside, "\"")};
    return out_name->length < inside.length ? out_name->length + 2 : 0;
  }
  *out_name = (ir_span){text.at, ir_word_length(text)};
  return out_name->length;
}

ir_span ir_instruction(ir_span line, ir_span *out_result) {
  line = ir_behind_blanks(ir_bare_line(line));
  *out_result = (ir_span){0};
  if (line.length == 0 || line.at[0] != '%') return line;
  ir_span name;
  size_t length = ir_name_length(ir_behind(line, 1), &name);
  ir_span rest = ir_behind(line, 1 + length);
  if (length == 0 || !ir_starts(rest, " = ")) return line;
  *out_result = name;
  return ir_behind(rest, 3);
}

/* ---- brackets ---- */
/* Up to the bracket that closes what `text` is in, or, if `commas`, to a comma in no further brackets; the text's length: neither comes. */
static size_t walk(ir_span text, bool commas) {
  size_t depth = 0;
  for (size_t i = 0; i < text.length; i++) {
    char c = text.at[i];
    if (c == '"') i += ir_string_length(ir_behind(text, i)) - 1;
    else if (opens(c)) depth++;
    else if (closes(c) && depth-- == 0) return i;
    else if (c == ',' && depth == 0 && commas) return i;
  }
  return text.length;
}

size_t ir_item_length(ir_span text) { return walk(text, true); }

size_t ir_brackets_length(ir_span text) {
  if (text.length == 0 || !opens(text.at[0])) return 0;
  size_t inside = walk(ir_behind(text, 1), false);
  return inside + 1 < text.length ? inside + 2 : 0;
}

bool ir_bracketed(ir_span text, ir_span *out_inside) {
  size_t length = ir_brackets_length(text);
  if (length) *out_inside = (ir_span){text.at + 1, length - 2};
  return length != 0;
}

bool ir_next_item(ir_span *list, ir_span *out_item) {
  if (ir_trimmed(*list).length == 0) return false;
  size_t length = ir_item_length(*list);
  if (length < list->length && list->at[length] != ',') length = list->length; /* closes what was not opened: for the reader to refuse */
  *out_item = ir_trimmed((ir_span){list->at, length});
  *list = ir_behind(*list, length + 1);
  return true;
}

ir_span ir_behind_comma(ir_span text) {
  size_t length = ir_item_length(text);
  return length < text.length && text.at[length] == ',' ? ir_behind(text, length + 1) : (ir_span){0};
}

/* ---- types ---- */
bool ir_scalar_bits(ir_span type, uint32_t *out_bits) {
  static const struct {
    const char *name;
    uint32_t bits;
  } scalars[] = {{"half", 16}, {"bfloat", 16}, {"float", 32}, {"double", 64}, {"ptr", 64}, {"x86_fp80", 128}, {"fp128", 128}, {"void", 0}};
  for (size_t i = 0; i < sizeof scalars / sizeof *scalars; i++)
    if (ir_is(type, scalars[i].name)) return *out_bits = scalars[i].bits, true;
  uint64_t bits;
  if (type.length < 2 || type.length > 6 || type.at[0] != 'i' || ir_number(ir_behind(type, 1), &bits) + 1 != type.length) return false;
  *out_bits = (uint32_t)bits;
  return bits != 0;
}

bool ir_type_starts(ir_span text) {
  uint32_t bits;
  if (text.length == 0) return false;
  if (text.at[0] == '<' || text.at[0] == '{' || text.at[0] == '[' || text.at[0] == '%') return true;
  return ir_scalar_bits((ir_span){text.at, ir_word_length(text)}, &bits);
}

size_t ir_type_length(ir_span text) {
  if (!ir_type_starts(text)) return 0;
  if (text.at[0] == '%') {
    ir_span name;
    size_t length = ir_name_length(ir_behind(text, 1), &name);
    return length ? length + 1 : 0;
  }
  if (opens(text.at[0])) return ir_brackets_length(text);
  static const char space[] = " addrspace";
  size_t length = ir_word_length(text);
  ir_span rest = ir_behind(text, length);
  if (!ir_starts(rest, " addrspace(")) return length;
  size_t number = ir_brackets_length(ir_behind(rest, sizeof space - 1));
  return number ? length + sizeof space - 1 + number : 0;
}

bool ir_sequence(ir_span type, uint64_t *out_count, ir_span *out_element) {
  if (type.length < 6 || (type.at[0] != '[' && type.at[0] != '<') || ir_brackets_length(type) != type.length) return false;
  size_t digits = ir_number(ir_behind(type, 1), out_count);
  if (digits == 0 || *out_count > MAX_COUNT || !ir_starts(ir_behind(type, 1 + digits), " x ")) return false;
  *out_element = ir_behind(type, digits + 4);
  out_element->length--;
  return out_element->length && ir_type_length(*out_element) == out_element->length; /* not "vscale x ..." */
}

uint64_t ir_type_bits(ir_span type) {
  uint32_t bits = 0;
  uint64_t count = 1;
  ir_span element = type;
  if (type.length && type.at[0] == '<' && !ir_sequence(type, &count, &element)) return 0;
  return ir_scalar_bits(element, &bits) ? count * bits : 0;
}
