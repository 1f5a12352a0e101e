/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lanes_type: types in LLVM IR text: where they end, how large they are, and which one an instruction's result has.
 */
#include <stdlib.h>
#include <string.h>

#include "shader/lanes_internal.h"

#define MAX_BYTES (UINT64_C(1) << 24)
#define MAX_DEPTH 16

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' || c == '.' || c == '$' || c == '-';
}

static size_t skip_blanks(lanes_span text, size_t i) {
  while (i < text.length && text.at[i] == ' ') i++;
  return i;
}

static size_t word_length(lanes_span text) {
  size_t i = 0;
  while (i < text.length && is_word(text.at[i])) i++;
  return i;
}

static const struct {
  const char *name;
  uint32_t bytes;
} scalars[] = {{"half", 2}, {"bfloat", 2}, {"float", 4}, {"double", 8}, {"ptr", 8}, {"x86_fp80", 16}, {"fp128", 16}, {"void", 0}};

/* iN gives N. */
static uint32_t integer_bits(lanes_span word) {
  if (word.length < 2 || word.length > 6 || word.at[0] != 'i') return 0;
  uint32_t bits = 0;
  for (size_t i = 1; i < word.length; i++) {
    if (!is_digit(word.at[i])) return 0;
    bits = bits * 10 + (uint32_t)(word.at[i] - '0');
  }
  return bits;
}

static bool is_scalar(lanes_span word) {
  if (integer_bits(word)) return true;
  for (size_t i = 0; i < sizeof scalars / sizeof *scalars; i++)
    if (lanes_is(word, scalars[i].name)) return true;
  return false;
}

/* Of what is in brackets, from the opening one to behind the closing one; 0: it does not close. */
static size_t bracketed_length(lanes_span text) {
  size_t depth = 0;
  for (size_t i = 0; i < text.length; i++) {
    char c = text.at[i];
    if (c == '"') {
      do i++;
      while (i < text.length && text.at[i] != '"');
      continue;
    }
    if (c == '(' || c == '[' || c == '{' || c == '<') depth++;
    if (c == ')' || c == ']' || c == '}' || c == '>') {
      if (depth == 0) return 0;
      if (--depth == 0) return i + 1;
    }
  }
  return 0;
}

bool lanes_type_starts(lanes_span text) {
  if (text.length == 0) return false;
  if (strchr("<{[%", text.at[0])) return true;
  return is_scalar((lanes_span){text.at, word_length(text)});
}

size_t lanes_type_length(lanes_span text) {
  if (!lanes_type_starts(text)) return 0;
  if (text.at[0] == '%') {
    if (text.length > 1 && text.at[1] == '"') {
      const char *end = memchr(text.at + 2, '"', text.length - 2);
      return end ? (size_t)(end - text.at) + 1 : 0;
    }
    return 1 + word_length(lanes_behind(text, 1));
  }
  if (text.at[0] == '<' || text.at[0] == '{' || text.at[0] == '[') return bracketed_length(text);
  size_t length = word_length(text);
  if (lanes_starts(lanes_behind(text, length), " addrspace(")) length += 1 + lanes_find(lanes_behind(text, length), ")");
  return length;
}

/* "[4 x float]" or "<4 x float>": 4 and float. */
static bool sequence(lanes_span type, uint64_t *count, lanes_span *element) {
  if (type.length < 5 || (type.at[0] != '[' && type.at[0] != '<') || type.at[1] == '{') return false;
  size_t i = 1;
  *count = 0;
  for (; i < type.length && is_digit(type.at[i]); i++)
    if ((*count = *count * 10 + (uint64_t)(type.at[i] - '0')) > MAX_BYTES) return false;
  if (i == 1 || !lanes_starts(lanes_behind(type, i), " x ")) return false;
  *element = lanes_behind(type, i + 3);
  element->length--;
  return lanes_type_length(*element) == element->length; /* not "vscale x ..." */
}

/* The inside of a struct type; false: it is none. */
static bool struct_body(const lanes_module *m, lanes_span type, lanes_span *body) {
  if (type.length && type.at[0] == '%') {
    const lanes_span *found = mps_map_get(&m->types, type.at, type.length);
    if (!found) return false;
    type = *found;
  }
  bool packed = type.length > 4 && type.at[0] == '<' && type.at[1] == '{';
  if (packed) type = (lanes_span){type.at + 1, type.length - 2};
  if (type.length < 2 || type.at[0] != '{') return false;
  *body = (lanes_span){type.at + 1, type.length - 2};
  return true;
}

/* Takes the next member off `body`; false at the end. */
static bool next_member(lanes_span *body, lanes_span *member) {
  size_t i = skip_blanks(*body, 0);
  if (i == body->length) return false;
  *body = lanes_behind(*body, i);
  size_t length = lanes_type_length(*body);
  *member = (lanes_span){body->at, length};
  if (length == 0) return false;
  *body = lanes_behind(*body, length);
  if (body->length && body->at[0] == ',') *body = lanes_behind(*body, 1);
  return true;
}

static uint64_t bytes_of(const lanes_module *m, lanes_span type, int depth) {
  if (depth > MAX_DEPTH) return 0;
  uint32_t bits = integer_bits(type);
  if (bits) {
    uint64_t bytes = 1;
    while (bytes * 8 < bits) bytes *= 2;
    return bytes;
  }
  for (size_t i = 0; i < sizeof scalars / sizeof *scalars; i++)
    if (lanes_is(type, scalars[i].name)) return scalars[i].bytes;
  uint64_t count;
  lanes_span element, body, member;
  if (sequence(type, &count, &element)) {
    uint64_t bytes = bytes_of(m, element, depth + 1);
    if (bytes == 0 || count * bytes > MAX_BYTES) return 0;
    return count ? count * bytes : 1;
  }
  if (!struct_body(m, type, &body)) return 0;
  uint64_t bytes = 0;
  while (next_member(&body, &member)) { /* no member needs more than 16 for its alignment, or it is a vector and aligned by its size */
    uint64_t one = bytes_of(m, member, depth + 1), step = 16;
    while (step < one && member.at[0] == '<') step *= 2;
    if (one == 0) return 0;
    bytes += (one + step - 1) / step * step;
    if (bytes > MAX_BYTES) return 0;
  }
  return body.length == skip_blanks(body, 0) ? (bytes ? bytes : 1) : 0;
}

uint64_t lanes_type_bytes(const lanes_module *module, lanes_span type) {
  if (type.length == 0) return 0;
  if (lanes_starts(type, "ptr addrspace")) return 8;
  return bytes_of(module, type, 0);
}

lanes_span lanes_type_member(const lanes_module *module, lanes_span type, uint32_t index) {
  uint64_t count;
  lanes_span element, body, member;
  if (sequence(type, &count, &element)) return element;
  if (struct_body(module, type, &body))
    while (next_member(&body, &member))
      if (index-- == 0) return member;
  return (lanes_span){0};
}

/* ---- results ---- */
/* Drops words that are no types (flags, calling conventions, attributes with what is in their brackets) up to the first type. */
static lanes_span from_type(lanes_span text) {
  for (;;) {
    text = lanes_behind(text, skip_blanks(text, 0));
    if (text.length == 0 || lanes_type_starts(text)) return text;
    size_t length = text.at[0] == '#' ? 1 : word_length(text);
    if (length == 0) return (lanes_span){0};
    text = lanes_behind(text, length);
    if (text.length && text.at[0] == '(') {
      length = bracketed_length(text);
      if (length == 0) return (lanes_span){0};
      text = lanes_behind(text, length);
    }
  }
}

static bool take_type(lanes_span *text, lanes_span *type) {
  *text = from_type(*text);
  size_t length = lanes_type_length(*text);
  *type = (lanes_span){text->at, length};
  if (length == 0) return false;
  *text = lanes_behind(*text, length);
  return true;
}

/* Behind the next comma that is in no brackets; empty: there is none. */
static lanes_span behind_comma(lanes_span text) {
  for (size_t i = 0; i < text.length; i++) {
    if (strchr("([{<", text.at[i])) {
      size_t length = bracketed_length(lanes_behind(text, i));
      if (length == 0) break;
      i += length - 1;
    } else if (text.at[i] == ',') {
      return lanes_behind(text, i + 1);
    }
  }
  return (lanes_span){0};
}

/* A type that is written nowhere: prefix, middle and end in one. */
static lanes_span made(lanes_module *m, const char *prefix, lanes_span middle, const char *end) {
  size_t a = strlen(prefix), c = strlen(end);
  char *text = lanes_allocate(m, a + middle.length + c + 1);
  if (!text) return (lanes_span){0};
  memcpy(text, prefix, a);
  memcpy(text + a, middle.at, middle.length);
  memcpy(text + a + middle.length, end, c);
  return (lanes_span){text, a + middle.length + c};
}

/* A vector of `element`s as long as the vector type `like`. */
static lanes_span vector_like(lanes_module *m, lanes_span like, lanes_span element) {
  lanes_span count = {like.at + 1, word_length(lanes_behind(like, 1))};
  lanes_span front = made(m, "<", count, " x ");
  if (!front.length) return front;
  char *text = lanes_allocate(m, front.length + element.length + 2);
  if (!text) return (lanes_span){0};
  memcpy(text, front.at, front.length);
  memcpy(text + front.length, element.at, element.length);
  text[front.length + element.length] = '>';
  return (lanes_span){text, front.length + element.length + 1};
}

static bool cast_type(lanes_span text, lanes_span *type) {
  for (size_t i = text.length; i >= 4; i--) {
    if (memcmp(text.at + i - 4, " to ", 4) != 0) continue;
    lanes_span rest = lanes_behind(text, i);
    *type = rest;
    return lanes_type_length(rest) == rest.length;
  }
  return false;
}

static bool extract_type(const lanes_module *m, lanes_span text, lanes_span *type) {
  if (!take_type(&text, type)) return false;
  while ((text = behind_comma(text)).length) {
    *type = lanes_type_member(m, *type, (uint32_t)strtoul(text.at, NULL, 10));
    if (type->length == 0) return false;
  }
  return true;
}

static bool shuffle_type(lanes_module *m, lanes_span text, lanes_span *type) {
  lanes_span mask, element;
  uint64_t count;
  if (!take_type(&text, type) || !sequence(*type, &count, &element)) return false;
  text = behind_comma(behind_comma(text));
  if (!take_type(&text, &mask) || mask.at[0] != '<') return false;
  *type = vector_like(m, mask, element);
  return type->length != 0;
}

static bool is_cast(lanes_span opcode) {
  static const char *const casts[] = {"trunc", "zext", "sext", "fptrunc", "fpext", "fptoui", "fptosi", "uitofp", "sitofp", "ptrtoint", "ptrtoaddr",
                                      "inttoptr", "bitcast", "addrspacecast"};
  for (size_t i = 0; i < sizeof casts / sizeof *casts; i++)
    if (lanes_is(opcode, casts[i])) return true;
  return false;
}

bool lanes_result_type(lanes_function *f, const lanes_instruction *instruction, lanes_span opcode, lanes_span *type) {
  lanes_module *m = f->module;
  lanes_span text = lanes_behind(instruction->text, opcode.length), other;
  *type = (lanes_span){0};
  if (instruction->kind == LANES_ALLOCA) return *type = (lanes_span){"ptr", 3}, true;
  if (is_cast(opcode)) return cast_type(text, type);
  if (lanes_is(opcode, "extractvalue")) return extract_type(m, text, type);
  if (lanes_is(opcode, "shufflevector")) return shuffle_type(m, text, type);
  if (lanes_is(opcode, "call") || lanes_is(opcode, "tail") || lanes_is(opcode, "notail")) {
    if (!take_type(&text, type)) return false;
    return !lanes_starts(lanes_behind(text, skip_blanks(text, 0)), "("); /* a function type */
  }
  if (!take_type(&text, type)) return false;
  if (lanes_is(opcode, "icmp") || lanes_is(opcode, "fcmp")) {
    if (type->at[0] != '<') return *type = (lanes_span){"i1", 2}, true;
    return (*type = vector_like(m, *type, (lanes_span){"i1", 2})).length != 0;
  }
  if (lanes_is(opcode, "select") || lanes_is(opcode, "getelementptr") || lanes_is(opcode, "cmpxchg") || lanes_is(opcode, "atomicrmw")) {
    text = behind_comma(text);
    if (!take_type(&text, &other)) return false;
    *type = other;
    if (lanes_is(opcode, "cmpxchg")) return (*type = made(m, "{ ", other, ", i1 }")).length != 0;
    if (lanes_is(opcode, "getelementptr"))
      while (lanes_is(*type, "ptr") && (text = behind_comma(text)).length)
        if (!take_type(&text, &other) || other.at[0] == '<') return *type = (lanes_span){0}, true; /* a vector of addresses */
    return true;
  }
  if (lanes_is(opcode, "extractelement")) {
    uint64_t count;
    other = *type;
    return sequence(other, &count, type);
  }
  return true; /* the first operand's: arithmetic, phi, load, insertvalue, insertelement, freeze */
}
