/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reader_overload: what a program defines once for each address space. Memory is flat here, so such definitions are one and the same: the
 * first one stays, those that differ from it in address spaces alone go. Definitions that are equal to the letter stay, for clang to refuse.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shader/reader_internal.h"

typedef MPS_ARRAY(char) key_text;

/* Where declarations are looked at. */
typedef struct scope {
  const char *path;    /* names of namespaces and classes */
  uint32_t class_name; /* token, 0 = a namespace */
  mps_map *seen;       /* flat signature -> the first one's with address spaces */
} scope;

static bool is_space(const reader *r, uint32_t i) {
  return token_is(r, i, "device") || token_is(r, i, "thread") || token_is(r, i, "threadgroup") || token_is(r, i, "constant");
}

static void add_token(reader *r, key_text *key, uint32_t i, bool flat) {
  const char *text = r->list.text + r->list.tokens[i].start;
  size_t length = r->list.tokens[i].length;
  if (flat && is_space(r, i)) {
    if (!token_is(r, i, "constant") || (r->edits[i].text && !r->edits[i].text[0])) return;
    text = "const";
    length = 5;
  }
  bool again = length == 5 && memcmp(text, "const", 5) == 0 && key->count >= 6 && memcmp(key->items + key->count - 6, "const ", 6) == 0;
  if (again) return;
  mps_status status = MPS_ARRAY_RESERVE(key, length + 1);
  if (status != MPS_STATUS_OK) {
    r->status = status;
    return;
  }
  memcpy(key->items + key->count, text, length);
  key->count += length;
  key->items[key->count++] = ' ';
}

/* A parameter's name, which says nothing about its type. */
static bool is_parameter_name(const reader *r, uint32_t i) {
  if (!token_word(r, i) || i == 0) return false;
  char next = token_first(r, i + 1), before = token_first(r, i - 1);
  if (next != ',' && next != ')' && next != '=' && next != '[') return false;
  static const char *const type_words[] = {"const", "volatile", "unsigned", "signed", "long", "short", "typename", "struct", "class"};
  if (is_space(r, i - 1)) return false;
  for (size_t k = 0; k < sizeof type_words / sizeof *type_words; k++)
    if (token_is(r, i - 1, type_words[k])) return false;
  return token_word(r, i - 1) || before == '*' || before == '&' || before == '>';
}

/* The signature of tokens [begin, end) whose parameters open at `open` (0: none), without attributes, names of parameters and defaults. */
static const char *signature(reader *r, uint32_t begin, uint32_t open, uint32_t end, const char *path, bool flat) {
  key_text key = {0};
  uint32_t close = open ? r->partner[open] : 0;
  for (uint32_t i = begin; i < end && r->status == MPS_STATUS_OK; i++) {
    bool inside = open && i > open && i < close;
    if (token_attribute(r, i)) i = r->partner[i];
    else if (inside && token_punct(r, i, '=')) {
      for (; i + 1 < close && !token_punct(r, i + 1, ','); i++)
        if (r->partner[i + 1] > i + 1) i = r->partner[i + 1] - 1;
    } else if (!(inside && is_parameter_name(r, i))) add_token(r, &key, i, flat);
  }
  const char *text = mps_reader_text(r, "%s|%.*s", path, (int)key.count, key.items ? key.items : "");
  MPS_ARRAY_FINI(&key);
  return text;
}

/* True if an earlier definition differs in address spaces alone; remembers the first one. */
static bool is_twin(reader *r, const scope *s, uint32_t begin, uint32_t open, uint32_t end) {
  const char *flat = signature(r, begin, open, end, s->path, true), *spaced = signature(r, begin, open, end, s->path, false);
  if (r->status != MPS_STATUS_OK) return false;
  const char *first = mps_map_get(s->seen, flat, strlen(flat));
  if (first) return strcmp(first, spaced) != 0;
  mps_status status = mps_map_set(s->seen, flat, strlen(flat), (void *)(uintptr_t)spaced);
  if (status != MPS_STATUS_OK) r->status = status;
  return false;
}

static void drop(reader *r, uint32_t begin, uint32_t end) {
  for (uint32_t i = begin; i < end; i++) r->edits[i] = (mps_token_edit){.text = i == begin ? " " : "", .dropped = true};
}

/* `constant` behind a member function's parameters is const, which constructors cannot be. */
static void rewrite_trailing(reader *r, const scope *s, uint32_t name, uint32_t close, uint32_t end) {
  bool already = token_same(r, name, s->class_name); /* a constructor */
  for (uint32_t i = close + 1; i < end; i++) {
    if (token_is(r, i, "const")) already = true;
    if (!token_is(r, i, "constant")) continue;
    r->edits[i].text = already ? "" : "const";
    already = true;
  }
}

/* The standard library keeps simdgroup functions in metal::openmps_lanes, where the types of their arguments do not lead (metal_simdgroup). One
 * that a program adds to metal joins them there: in metal itself it would hide them all from `metal::simd_sum`. */
static void join_lanes(reader *r, const scope *s, const declaration *d) {
  const mps_token *t = &r->list.tokens[d->parameters - 1];
  const char *name = r->list.text + t->start;
  if (strcmp(s->path, "namespace metal/") != 0 || t->length < 5 || (memcmp(name, "simd_", 5) != 0 && memcmp(name, "quad_", 5) != 0)) return;
  r->edits[d->begin].before = "namespace openmps_lanes { ";
  mps_reader_append(r, d->end - 1, " } using namespace openmps_lanes;");
}

static void visit_function(reader *r, const scope *s, const declaration *d) {
  uint32_t open = d->parameters;
  bool call = token_is(r, open - 1, "operator") && token_punct(r, r->partner[open] + 1, '(');
  if (call) open = r->partner[open] + 1;
  uint32_t close = r->partner[open], end = close + 1;
  while (end < d->end && !token_punct(r, end, '{') && !token_punct(r, end, ':') && !token_punct(r, end, ';') && !token_punct(r, end, '=')) end++;
  bool defined = d->function || (token_punct(r, end, '=') && (token_is(r, end + 1, "default") || token_is(r, end + 1, "delete")));
  if (s->class_name) rewrite_trailing(r, s, open - 1, close, end);
  if ((defined || s->class_name) && !d->instantiation && is_twin(r, s, d->begin, open, end)) drop(r, d->begin, d->end);
  else join_lanes(r, s, d);
}

static void visit_range(reader *r, const scope *s, uint32_t begin, uint32_t end);

static void visit_class(reader *r, const scope *s, const declaration *d) {
  bool special = d->is_template || d->specialization;
  if (special && is_twin(r, s, d->begin, 0, d->body)) {
    drop(r, d->begin, d->end);
    return;
  }
  mps_map seen = {0};
  scope inner = {.path = "", .class_name = d->name ? d->name : d->body, .seen = &seen};
  visit_range(r, &inner, d->body + 1, r->partner[d->body]);
  mps_map_fini(&seen, NULL);
}

/* A namespace or linkage block at `i`: visits what is in it and returns its end, else 0. */
static uint32_t visit_block(reader *r, const scope *s, uint32_t i, uint32_t end) {
  uint32_t inside = mps_reader_enter_block(r, i, end);
  if (!inside || !token_punct(r, inside - 1, '{')) return inside;
  uint32_t close = r->partner[inside - 1];
  if (!r->list.tokens[i].system) {
    const char *name = mps_reader_render(r, i, inside - 1);
    scope inner = {.path = mps_reader_text(r, "%s%s/", s->path, name), .seen = s->seen};
    visit_range(r, &inner, inside, close);
  }
  return close + 1;
}

static void visit_range(reader *r, const scope *s, uint32_t begin, uint32_t end) {
  for (uint32_t i = begin; i < end && r->status == MPS_STATUS_OK;) {
    bool access = token_is(r, i, "public") || token_is(r, i, "private") || token_is(r, i, "protected");
    if (token_punct(r, i, ';') || token_punct(r, i, '}') || (access && token_punct(r, i + 1, ':'))) {
      i += access ? 2 : 1;
      continue;
    }
    uint32_t behind = s->class_name ? 0 : visit_block(r, s, i, end);
    if (behind > i) {
      i = behind;
      continue;
    }
    declaration d = mps_reader_scan(r, i, end);
    if (d.end <= i) d.end = i + 1;
    i = d.end;
    if (r->list.tokens[d.begin].system || d.is_kernel) continue;
    bool class_body = d.body && !d.function && (!d.parameters || d.parameters > d.body) && token_punct(r, d.body, '{');
    if (class_body && mps_reader_is_class(r, &d)) visit_class(r, s, &d);
    else if (d.parameters > d.begin) visit_function(r, s, &d);
  }
}

void mps_reader_overloads(reader *r) {
  mps_map seen = {0};
  scope all = {.path = "", .seen = &seen};
  visit_range(r, &all, 0, r->list.count);
  mps_map_fini(&seen, NULL);
}
