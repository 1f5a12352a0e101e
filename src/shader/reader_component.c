/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reader_component: operators that assign to one component, in templates. A component of a vector is a property (see metal_vector), and clang
 * resolves no `v.x += 1` when the type of v depends on a template's parameters; so the text names a function that gives an lvalue.
 */
#include <string.h>

#include "shader/reader_internal.h"

static bool is_component(const reader *r, uint32_t i) {
  return token_is(r, i, "x") || token_is(r, i, "y") || token_is(r, i, "z") || token_is(r, i, "w");
}

/* "+=" and its like; the lexer keeps only some pairs of characters together. */
static bool is_assigning_operator(const reader *r, uint32_t i) {
  if (token_is(r, i, "<<")) return token_punct(r, i + 1, '=');
  if (token_punct(r, i, '>')) return token_is(r, i + 1, ">=");
  char c = token_first(r, i);
  return c != '\0' && strchr("+-*/%&|^", c) && r->list.tokens[i].length == 1 && token_punct(r, i + 1, '=');
}

/* The first token of the names, members, calls and subscripts that end in front of `end`. */
static uint32_t operand_begin(const reader *r, uint32_t begin, uint32_t end) {
  uint32_t first = end;
  while (first > begin) {
    uint32_t last = first - 1;
    if (token_punct(r, last, ']') || token_punct(r, last, ')')) {
      first = r->partner[last];
      bool called = token_word(r, first - 1) && !token_is(r, first - 1, "return") && !token_is(r, first - 1, "else");
      if (first > begin && (called || token_punct(r, first - 1, ']'))) continue;
    } else if (token_word(r, last)) {
      first = last;
    } else {
      return end;
    }
    if (first < begin + 2 || !(token_punct(r, first - 1, '.') || token_is(r, first - 1, "->") || token_is(r, first - 1, "::"))) return first;
    first--;
  }
  return end;
}

void mps_reader_components(reader *r, const declaration *d) {
  if (!d->is_template || !d->body) return;
  for (uint32_t i = d->body + 1; i + 2 < d->end; i++) {
    bool arrow = token_is(r, i, "->");
    if (!(arrow || token_punct(r, i, '.')) || !is_component(r, i + 1) || !is_assigning_operator(r, i + 2)) continue;
    uint32_t first = operand_begin(r, d->body + 1, i);
    if (first == i || token_is(r, first, "this")) continue; /* members of its own may be private */
    const char *before = r->edits[first].before, *name = r->list.text + r->list.tokens[i + 1].start;
    r->edits[first].before = mps_reader_text(r, "%s::metal::openmps_detail::component_%c(%s", before ? before : "", *name, arrow ? "*(" : "");
    r->edits[i].text = arrow ? "))" : ")";
    r->edits[i + 1].text = "";
  }
}
