/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lanes_type: types of a module: how large they are, their members, and which one an instruction's result has.
 */
#include <stdlib.h>
#include <string.h>

#include "shader/lanes_internal.h"

#define MAX_BYTES (UINT64_C(1) << 24)
#define MAX_DEPTH 16

/* The inside of a struct type; false: it is none. */
static bool struct_body(const lanes_module *m, ir_span type, ir_span *body) {
  if (type.length && type.at[0] == '%') {
    const ir_span *found = mps_map_get(&m->types, type.at, type.length);
    if (!found) return false;
    type = *found;
  }
  bool packed = type.length > 4 && type.at[0] == '<' && type.at[1] == '{';
  if (packed) type = (ir_span){type.at + 1, type.length - 2};
  if (type.length < 2 || type.at[0] != '{') return false;
  *body = (ir_span){type.at + 1, type.length - 2};
  return true;
}

/* Takes the next member off `body`; false at the end. */
static bool next_member(ir_span *body, ir_span *member) {
  *body = ir_behind_blanks(*body);
  if (body->length == 0) return false;
  size_t length = ir_type_length(*body);
  *member = (ir_span){body->at, length};
  if (length == 0) return false;
  *body = ir_behind(*body, length);
  if (body->length && body->at[0] == ',') *body = ir_behind(*body, 1);
  return true;
}

static uint64_t bytes_of(const lanes_module *m, ir_span type, int depth) {
  if (depth > MAX_DEPTH) return 0;
  uint32_t bits;
  if (ir_scalar_bits(type, &bits)) {
    uint64_t bytes = bits ? 1 : 0;
    while (bytes * 8 < bits) bytes *= 2;
    return bytes;
  }
  uint64_t count;
  ir_span element, body, member;
  if (ir_sequence(type, &count, &element)) {
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
  return ir_behind_blanks(body).length == 0 ? (bytes ? bytes : 1) : 0;
}

uint64_t lanes_type_bytes(const lanes_module *module, ir_span type) {
  if (type.length == 0) return 0;
  if (ir_starts(type, "ptr addrspace")) return 8;
  return bytes_of(module, type, 0);
}

ir_span lanes_type_member(const lanes_module *module, ir_span type, uint32_t index) {
  uint64_t count;
  ir_span element, body, member;
  if (ir_sequence(type, &count, &element)) return element;
  if (struct_body(module, type, &body))
    while (next_member(&body, &member))
      if (index-- == 0) return member;
  return (ir_span){0};
}

/* ---- results ---- */
/* Drops words that are no types (flags, calling conventions, attributes with what is in their brackets) up to the first type. */
static ir_span from_type(ir_span text) {
  for (;;) {
    text = ir_behind_blanks(text);
    if (text.length == 0 || ir_type_starts(text)) return text;
    size_t length = text.at[0] == '#' ? 1 : ir_word_length(text);
    if (length == 0) return (ir_span){0};
    text = ir_behind(text, length);
    if (text.length && text.at[0] == '(') {
      length = ir_brackets_length(text);
      if (length == 0) return (ir_span){0};
      text = ir_behind(text, length);
    }
  }
}

static bool take_type(ir_span *text, ir_span *type) {
  *text = from_type(*text);
  size_t length = ir_type_length(*text);
  *type = (ir_span){text->at, length};
  if (length == 0) return false;
  *text = ir_behind(*text, length);
  return true;
}

/* A type that is written nowhere: prefix, middle and end in one. */
static ir_span made(lanes_module *m, const char *prefix, ir_span middle, const char *end) {
  size_t a = strlen(prefix), c = strlen(end);
  char *text = lanes_allocate(m, a + middle.length + c + 1);
  if (!text) return (ir_span){0};
  memcpy(text, prefix, a);
  memcpy(text + a, middle.at, middle.length);
  memcpy(text + a + middle.length, end, c);
  return (ir_span){text, a + middle.length + c};
}

/* A vector of `element`s as long as the vector type `like`. */
static ir_span vector_like(lanes_module *m, ir_span like, ir_span element) {
  ir_span count = {like.at + 1, ir_word_length(ir_behind(like, 1))};
  ir_span front = made(m, "<", count, " x ");
  if (!front.length) return front;
  char *text = lanes_allocate(m, front.length + element.length + 2);
  if (!text) return (ir_span){0};
  memcpy(text, front.at, front.length);
  memcpy(text + front.length, element.at, element.length);
  text[front.length + element.length] = '>';
  return (ir_span){text, front.length + element.length + 1};
}

static bool cast_type(ir_span text, ir_span *type) {
  for (size_t i = text.length; i >= 4; i--) {
    if (memcmp(text.at + i - 4, " to ", 4) != 0) continue;
    ir_span rest = ir_behind(text, i);
    *type = rest;
    return ir_type_length(rest) == rest.length;
  }
  return false;
}

static bool extract_type(const lanes_module *m, ir_span text, ir_span *type) {
  if (!take_type(&text, type)) return false;
  while ((text = ir_behind_comma(text)).length) {
    *type = lanes_type_member(m, *type, (uint32_t)strtoul(text.at, NULL, 10));
    if (type->length == 0) return false;
  }
  return true;
}

static bool shuffle_type(lanes_module *m, ir_span text, ir_span *type) {
  ir_span mask, element;
  uint64_t count;
  if (!take_type(&text, type) || !ir_sequence(*type, &count, &element)) return false;
  text = ir_behind_comma(ir_behind_comma(text));
  if (!take_type(&text, &mask) || mask.at[0] != '<') return false;
  *type = vector_like(m, mask, element);
  return type->length != 0;
}

static bool is_cast(ir_span opcode) {
  static const char *const casts[] = {"trunc", "zext", "sext", "fptrunc", "fpext", "fptoui", "fptosi", "uitofp", "sitofp", "ptrtoint", "ptrtoaddr",
                                      "inttoptr", "bitcast", "addrspacecast"};
  for (size_t i = 0; i < sizeof casts / sizeof *casts; i++)
    if (ir_is(opcode, casts[i])) return true;
  return false;
}

bool lanes_result_type(lanes_function *f, const lanes_instruction *instruction, ir_span opcode, ir_span *type) {
  lanes_module *m = f->module;
  ir_span text = ir_behind(instruction->text, opcode.length), other;
  *type = (ir_span){0};
  if (instruction->kind == LANES_ALLOCA) return *type = (ir_span){"ptr", 3}, true;
  if (is_cast(opcode)) return cast_type(text, type);
  if (ir_is(opcode, "extractvalue")) return extract_type(m, text, type);
  if (ir_is(opcode, "shufflevector")) return shuffle_type(m, text, type);
  if (ir_is(opcode, "call") || ir_is(opcode, "tail") || ir_is(opcode, "notail")) {
    if (!take_type(&text, type)) return false;
    return !ir_starts(ir_behind_blanks(text), "("); /* a function type */
  }
  if (!take_type(&text, type)) return false;
  if (ir_is(opcode, "icmp") || ir_is(opcode, "fcmp")) {
    if (type->at[0] != '<') return *type = (ir_span){"i1", 2}, true;
    return (*type = vector_like(m, *type, (ir_span){"i1", 2})).length != 0;
  }
  if (ir_is(opcode, "select") || ir_is(opcode, "getelementptr") || ir_is(opcode, "cmpxchg") || ir_is(opcode, "atomicrmw")) {
    text = ir_behind_comma(text);
    if (!take_type(&text, &other)) return false;
    *type = other;
    if (ir_is(opcode, "cmpxchg")) return (*type = made(m, "{ ", other, ", i1 }")).length != 0;
    if (ir_is(opcode, "getelementptr"))
      while (ir_is(*type, "ptr") && (text = ir_behind_comma(text)).length)
        if (!take_type(&text, &other) || other.at[0] == '<') return *type = (ir_span){0}, true; /* a vector of addresses */
    return true;
  }
  if (ir_is(opcode, "extractelement")) {
    uint64_t count;
    other = *type;
    return ir_sequence(other, &count, type);
  }
  return true; /* the first operand's: arithmetic, phi, load, insertvalue, insertelement, freeze */
}
