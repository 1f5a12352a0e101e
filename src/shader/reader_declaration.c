/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reader_declaration: cuts namespace scope into declarations, without understanding their types.
 */
#include <string.h>

#include "shader/reader_internal.h"

/* A parenthesis behind one of these belongs to a specifier, not to a function. */
static bool is_specifier(const reader *r, uint32_t index) {
  static const char *const words[] = {"alignas", "__attribute__", "__declspec", "decltype", "__typeof__", "noexcept", "requires"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (token_is(r, index, words[i])) return true;
  return false;
}

static bool is_class_key(const reader *r, uint32_t index) {
  return token_is(r, index, "struct") || token_is(r, index, "class") || token_is(r, index, "union") || token_is(r, index, "enum");
}

/* Skips `template <...>` heads; notes what the declaration is. */
static uint32_t read_template_head(reader *r, declaration *d, uint32_t i, uint32_t end) {
  while (token_is(r, i, "template")) {
    if (!token_punct(r, i + 1, '<')) {
      d->instantiation = true;
      return i + 1;
    }
    uint32_t close = mps_reader_close_angle(r, i + 1, end);
    if (close == i + 1) return i + 1;
    if (close == i + 2) d->specialization = true;
    else d->is_template = true;
    i = close + 1;
  }
  return i;
}

declaration mps_reader_scan(reader *r, uint32_t begin, uint32_t end) {
  declaration d = {.begin = begin};
  d.head = read_template_head(r, &d, begin, end);
  bool class_key = false, assigned = false, initializers = false;
  for (uint32_t i = d.head; i < end; i++) {
    char c = token_first(r, i);
    if (token_word(r, i)) {
      if (is_class_key(r, i) && !d.parameters) class_key = true;
      if (token_is(r, i, "kernel") && !d.parameters) d.is_kernel = true;
      if (class_key && !d.name && token_word(r, i + 1) && !is_specifier(r, i + 1) && !token_is(r, i + 1, "class")) d.name = i + 1;
      if (token_is(r, i, "using") && i == d.head) d.name = i + 1;
    } else if (c == '(') {
      if (!d.parameters && !assigned && i > d.head && !is_specifier(r, i - 1)) {
        d.parameters = i;
        if (!class_key || token_word(r, i - 1)) d.name = i - 1;
      }
      i = r->partner[i];
    } else if (c == '[') {
      if (token_attribute(r, i) && !d.parameters)
        for (uint32_t k = i + 2; k < r->partner[i + 1]; k++)
          if (token_is(r, k, "kernel")) d.is_kernel = true;
      i = r->partner[i];
    } else if (token_punct(r, i, '<') && i > d.head && token_word(r, i - 1) && !assigned) {
      i = mps_reader_close_angle(r, i, end);
    } else if (token_punct(r, i, '=') && !token_is(r, i - 1, "operator") && !(i > 1 && token_is(r, i - 2, "operator"))) { /* operator+= */
      assigned = true;
    } else if (token_punct(r, i, ':') && d.parameters) {
      initializers = true;
    } else if (c == '{') {
      bool member = initializers && (token_word(r, i - 1) || token_punct(r, i - 1, '>'));
      if (d.parameters && !assigned && !member) {
        d.function = true;
        d.body = i;
        d.end = r->partner[i] + 1;
        return d;
      }
      if (!d.body) d.body = i;
      i = r->partner[i];
    } else if (c == ';' || c == '}') {
      d.end = i + 1;
      return d;
    }
  }
  d.end = end;
  return d;
}

/* A typedef's name stands last. */
static void name_typedef(const reader *r, declaration *d) {
  if (!token_is(r, d->head, "typedef") || d->end < 2) return;
  for (uint32_t i = d->end - 1; i > d->head; i--)
    if (token_word(r, i)) {
      d->name = i;
      return;
    }
}

bool mps_reader_is_class(const reader *r, const declaration *d) {
  for (uint32_t i = d->head; i < d->body; i++) {
    if (token_is(r, i, "struct") || token_is(r, i, "class") || token_is(r, i, "union")) return true;
    if (token_punct(r, i, '(') || token_punct(r, i, '=')) return false;
  }
  return false;
}

uint32_t mps_reader_enter_block(const reader *r, uint32_t i, uint32_t end) {
  uint32_t k = token_is(r, i, "inline") ? i + 1 : i;
  bool block = token_is(r, k, "namespace") || (token_is(r, i, "extern") && i + 2 < end && r->list.tokens[i + 1].kind == MPS_TOKEN_STRING &&
                                               token_punct(r, i + 2, '{'));
  if (!block) return 0;
  for (; k < end; k++) {
    if (token_punct(r, k, '{') || token_punct(r, k, ';')) return k + 1;
    if (token_attribute(r, k)) k = r->partner[k];
  }
  return end;
}

/* The block around the one that the brace at `close` ends; scopes are as in `declaration`. */
static uint32_t outer_scope(const reader *r, uint32_t close) {
  uint32_t i = r->partner[close];
  while (i > 0) {
    i--;
    if (token_punct(r, i, '{')) return i + 1;
    if (token_punct(r, i, '}')) i = r->partner[i];
  }
  return 0;
}

void mps_reader_walk(reader *r) {
  uint32_t end = r->list.count, scope = 0;
  for (uint32_t i = 0; i < end && r->status == MPS_STATUS_OK;) {
    if (token_punct(r, i, ';') || token_punct(r, i, '}')) {
      if (scope && token_punct(r, i, '}')) scope = outer_scope(r, i);
      i++;
      continue;
    }
    uint32_t inside = mps_reader_enter_block(r, i, end);
    if (inside) {
      if (token_punct(r, inside - 1, '{')) scope = inside;
      i = inside;
      continue;
    }
    declaration d = mps_reader_scan(r, i, end);
    name_typedef(r, &d);
    d.scope = scope;
    if (d.end <= i) d.end = i + 1;
    i = d.end;
    if (r->list.tokens[d.begin].system && !d.is_kernel) continue;
    mps_status status = MPS_ARRAY_RESERVE(&r->declarations, 1);
    if (status != MPS_STATUS_OK) r->status = status;
    else MPS_ARRAY_PUSH(&r->declarations, d);
  }
  if (r->status == MPS_STATUS_OK) mps_reader_reach_build(r);
  for (uint32_t n = 0; n < r->declarations.count && r->status == MPS_STATUS_OK; n++) {
    const declaration *d = &r->declarations.items[n];
    mps_reader_check_statics(r, d);
    mps_reader_mark_loops(r, d);
    mps_reader_components(r, d);
    if (d->is_kernel) mps_reader_kernel_definition(r, n);
    else mps_reader_plain_attributes(r, d->begin, d->end);
  }
}
