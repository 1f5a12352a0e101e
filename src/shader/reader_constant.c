/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reader_constant: function constants. They are constants of the compiler here: where a value is given, the declaration gets it as its
 * initializer, and what is derived from it follows by itself.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "shader/reader_internal.h"

/* ---- numbers ---- */
#define MAX_NESTING 64 /* of signs and parentheses */

/* Where an expression is read; `i` moves on. */
typedef struct number_reader {
  const reader *r;
  uint32_t i, end;
  uint32_t depth;
  bool failed;
} number_reader;

static int64_t read_sum(number_reader *n);

static int64_t read_factor(number_reader *n) {
  const reader *r = n->r;
  if (n->depth == MAX_NESTING) {
    n->failed = true;
    n->i = n->end;
    return 0;
  }
  if (n->i < n->end && (token_punct(r, n->i, '+') || token_punct(r, n->i, '-'))) {
    bool negative = token_punct(r, n->i++, '-');
    n->depth++;
    int64_t value = read_factor(n);
    n->depth--;
    return negative ? -value : value;
  }
  if (n->i < n->end && token_punct(r, n->i, '(')) {
    number_reader inside = {r, n->i + 1, r->partner[n->i], n->depth + 1, false};
    int64_t value = read_sum(&inside);
    if (inside.i != inside.end) n->failed = true;
    n->failed = n->failed || inside.failed;
    n->i = inside.end + 1;
    return value;
  }
  if (n->i >= n->end || r->list.tokens[n->i].kind != MPS_TOKEN_NUMBER || r->list.tokens[n->i].length > 12) {
    n->failed = true;
    return 0;
  }
  char text[16] = "", *rest;
  const mps_token *t = &r->list.tokens[n->i++];
  memcpy(text, r->list.text + t->start, t->length);
  unsigned long value = strtoul(text, &rest, 0);
  if (rest[strspn(rest, "uUlL")] || value > UINT32_MAX) n->failed = true;
  return n->failed ? 0 : (int64_t)value;
}

static int64_t in_range(number_reader *n, int64_t value) { /* so that a product of two is one of 64 bits */
  if (value > UINT32_MAX || value < -(int64_t)UINT32_MAX) n->failed = true;
  return n->failed ? 0 : value;
}

static int64_t read_product(number_reader *n) {
  int64_t value = in_range(n, read_factor(n));
  while (n->i < n->end && token_punct(n->r, n->i, '*')) {
    n->i++;
    int64_t factor = in_range(n, read_factor(n));
    if (factor != 0 && (value > INT32_MAX || value < -INT32_MAX || factor > INT32_MAX || factor < -INT32_MAX)) n->failed = true;
    value = n->failed ? 0 : in_range(n, value * factor);
  }
  return value;
}

static int64_t read_sum(number_reader *n) {
  int64_t value = read_product(n);
  while (n->i < n->end && (token_punct(n->r, n->i, '+') || token_punct(n->r, n->i, '-'))) {
    bool minus = token_punct(n->r, n->i++, '-');
    int64_t other = read_product(n);
    value = in_range(n, minus ? value - other : value + other);
  }
  return value;
}

bool mps_reader_number(const reader *r, uint32_t begin, uint32_t end, uint32_t *out) {
  number_reader n = {r, begin, end, 0, false};
  int64_t value = read_sum(&n);
  if (n.failed || n.i != end || value < 0 || value >= UINT32_MAX) return false;
  *out = (uint32_t)value;
  return true;
}

/* ---- finding ---- */
static void add_constant(reader *r, uint32_t name, uint32_t group, uint32_t begin, uint32_t end) {
  mps_status status = MPS_ARRAY_RESERVE(&r->constants, 1);
  if (status == MPS_STATUS_OK) status = MPS_ARRAY_RESERVE(&r->constant_places, 1);
  const mps_token *t = &r->list.tokens[name];
  mps_reader_constant constant = {.name = status == MPS_STATUS_OK ? strndup(r->list.text + t->start, t->length) : NULL};
  if (!constant.name) {
    r->status = mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "out of memory while reading a shader");
    return;
  }
  if (!mps_reader_number(r, begin, end, &constant.index)) constant.index = MPS_READER_NO_INDEX;
  MPS_ARRAY_PUSH(&r->constants, constant);
  MPS_ARRAY_PUSH(&r->constant_places, ((constant_place){.name = name, .group = group}));
}

/* The constant that a token names; NULL if it names none. */
static constant_place *find_place(const reader *r, uint32_t token) {
  for (size_t i = 0; i < r->constant_places.count; i++)
    if (token_same(r, r->constant_places.items[i].name, token)) return &r->constant_places.items[i];
  return NULL;
}

/* The name in is_function_constant_defined(name), whose word is at `index`. */
static uint32_t asked_name(const reader *r, uint32_t index) {
  return token_punct(r, index + 1, '(') ? r->partner[index + 1] - 1 : index;
}

bool mps_reader_constant_defined(const reader *r, uint32_t index) {
  const constant_place *place = find_place(r, asked_name(r, index));
  return place && place->value;
}

const char *mps_reader_constant_text(reader *r, uint32_t group) {
  for (size_t i = 0; i < r->constant_places.count; i++) {
    const constant_place *place = &r->constant_places.items[i];
    if (place->group != group) continue;
    if (!place->value) return "{}"; /* zero */
    char text[MPS_CONSTANT_TEXT];
    mps_constant_print(place->value, text);
    return mps_reader_text(r, "= %s", text);
  }
  return NULL;
}

/* ---- types ---- */
static bool is_qualifier(const reader *r, uint32_t i) {
  static const char *const words[] = {"constant", "const", "constexpr", "static", "inline", "extern", "volatile", "metal", "::"};
  for (size_t k = 0; k < sizeof words / sizeof *words; k++)
    if (token_is(r, i, words[k])) return true;
  return false;
}

uint32_t mps_reader_find_alias(const reader *r, uint32_t word) {
  for (uint32_t i = 0; i < word; i++) {
    if (token_is(r, i, "using") && token_same(r, i + 1, word) && token_punct(r, i + 2, '=')) return i + 3;
    if (!token_is(r, i, "typedef")) continue;
    uint32_t end = i;
    while (end < word && !token_punct(r, end, ';')) end++;
    if (end < word && token_same(r, end - 1, word)) return i + 1;
  }
  return 0;
}

/* The type written at `i`; false if a function constant cannot have it, or it is not understood. */
static bool read_type(const reader *r, uint32_t i, unsigned depth, mps_constant_type *out_type, uint32_t *out_components) {
  while (is_qualifier(r, i)) i++;
  bool is_unsigned = token_is(r, i, "unsigned");
  if (is_unsigned || token_is(r, i, "signed")) {
    i++;
    *out_components = 1;
    *out_type = is_unsigned ? MPS_CONSTANT_UINT : MPS_CONSTANT_INT;
    mps_constant_type word;
    if (token_is(r, i, "char") || token_is(r, i, "short") || token_is(r, i, "long")) {
      const mps_token *t = &r->list.tokens[i];
      if (!mps_constant_type_read(r->list.text + t->start, t->length, &word, out_components)) return false;
      *out_type = (mps_constant_type)((int)word + (is_unsigned ? 1 : 0)); /* unsigned types stand behind theirs */
    }
    return true;
  }
  if (token_is(r, i, "vec") && token_punct(r, i + 1, '<')) {
    uint32_t close = mps_reader_close_angle(r, i + 1, r->list.count), number = close - 1;
    if (close < i + 4 || !read_type(r, i + 2, depth, out_type, out_components)) return false;
    return mps_reader_number(r, number, close, out_components) && *out_components >= 2 && *out_components <= 4;
  }
  if (!token_word(r, i)) return false;
  const mps_token *t = &r->list.tokens[i];
  if (mps_constant_type_read(r->list.text + t->start, t->length, out_type, out_components)) return true;
  uint32_t alias = depth > 0 ? mps_reader_find_alias(r, i) : 0;
  return alias && read_type(r, alias, depth - 1, out_type, out_components);
}

/* The first token of the declaration that the name stands in. */
static uint32_t declaration_begin(const reader *r, uint32_t name) {
  uint32_t i = name;
  while (i > 0) {
    char c = token_first(r, i - 1);
    if (c == ';' || c == '{' || c == '}') break;
    i = c == ']' || c == ')' ? r->partner[i - 1] : i - 1;
  }
  return i;
}

/* ---- values ---- */
static const char *list_constants(reader *r) {
  const char *text = "";
  for (size_t i = 0; i < r->constants.count; i++) {
    const mps_reader_constant *c = &r->constants.items[i];
    const char *between = i ? ", " : "";
    if (c->index == MPS_READER_NO_INDEX) text = mps_reader_text(r, "%s%s'%s'", text, between, c->name);
    else text = mps_reader_text(r, "%s%s'%s' (index %u)", text, between, c->name, c->index);
  }
  return text;
}

static void give_value(reader *r, constant_place *place, const mps_function_constant *value) {
  char given[16], declared[16] = "", which[MPS_CONSTANT_TEXT];
  mps_constant_type type = MPS_CONSTANT_INT;
  uint32_t components = 0, given_components = value->components ? value->components : 1, begin = declaration_begin(r, place->name);
  const mps_text_line *line = &r->list.lines[r->list.tokens[place->name].line];
  bool known = read_type(r, begin, 4, &type, &components);
  place->value = value;
  if (known && type == value->type && components == given_components) return;
  mps_constant_describe(value, which);
  mps_constant_type_name(value->type, given_components, given);
  if (known) mps_constant_type_name(type, components, declared);
  if (known)
    r->status = mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "the value of the function constant %s is given as %s, but %s:%u declares it as %s: "
                              "give a value of that type", which, given, r->list.files[line->file], line->number, declared);
  else
    r->status = mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "the function constant %s cannot get a value: the type that %s:%u declares it with is "
                              "neither a scalar nor a vector of 2 to 4 scalars", which, r->list.files[line->file], line->number);
}

static void give_values(reader *r) {
  for (uint32_t v = 0; v < r->options->special->count && r->status == MPS_STATUS_OK; v++) {
    const mps_function_constant *value = &r->options->special->constants[v];
    bool found = false;
    for (size_t i = 0; i < r->constants.count && r->status == MPS_STATUS_OK; i++) {
      const mps_reader_constant *c = &r->constants.items[i];
      if (value->name ? strcmp(c->name, value->name) != 0 : c->index != value->index || c->index == MPS_READER_NO_INDEX) continue;
      found = true;
      give_value(r, &r->constant_places.items[i], value);
    }
    if (found) continue;
    char which[MPS_CONSTANT_TEXT];
    mps_constant_describe(value, which);
    const char *listed = list_constants(r);
    r->status = mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "a value is given for the function constant %s, which the source does not declare; %s%s",
                              which, listed[0] ? "it declares " : "it declares none", listed);
  }
}

void mps_reader_find_constants(reader *r) {
  for (uint32_t i = 0; i < r->list.count && r->status == MPS_STATUS_OK; i++) {
    if (token_punct(r, i, '(')) { /* there it says whether an argument is there */
      i = r->partner[i];
    } else if (token_attribute(r, i)) {
      for (uint32_t k = i + 2; k < r->partner[i + 1]; k++)
        if (token_is(r, k, "function_constant") && token_punct(r, k + 1, '(') && i > 0 && token_word(r, i - 1))
          add_constant(r, i - 1, i, k + 2, r->partner[k + 1]);
      i = r->partner[i];
    }
  }
  for (uint32_t i = 0; i < r->list.count && r->constants.count > 0; i++) {
    constant_place *place = token_is(r, i, "is_function_constant_defined") ? find_place(r, asked_name(r, i)) : NULL;
    if (place) place->asked = true;
  }
  if (r->status == MPS_STATUS_OK && r->options->special) give_values(r);
}

/* ---- constants without a value ---- */
static void require_in(reader *r, uint32_t begin, uint32_t end, unsigned depth);

/* Constants of the program: `constant int m = n * 2;` stands for n wherever m is. */
static void require_variable(reader *r, uint32_t token, unsigned depth) {
  for (size_t i = 0; i < r->declarations.count; i++) {
    const declaration *d = &r->declarations.items[i];
    if (d->function || d->is_kernel || d->begin > token) continue;
    for (uint32_t k = d->head; k + 1 < d->end; k++)
      if (token_punct(r, k + 1, '=') && token_word(r, k) && token_same(r, k, token)) {
        if (k != token) require_in(r, k + 2, d->end, depth - 1);
        break;
      }
  }
}

static void require_in(reader *r, uint32_t begin, uint32_t end, unsigned depth) {
  if (depth == 0) return;
  for (uint32_t i = begin; i < end && r->status == MPS_STATUS_OK; i++) {
    if (token_is(r, i, "is_function_constant_defined") && token_punct(r, i + 1, '(')) {
      i = r->partner[i + 1];
      continue;
    }
    if (!token_word(r, i) || (i > 0 && (token_punct(r, i - 1, '.') || token_is(r, i - 1, "->")))) continue;
    const constant_place *place = find_place(r, i);
    if (place && !place->value && !place->asked) {
      const mps_reader_constant *c = &r->constants.items[place - r->constant_places.items];
      char index[32] = "";
      if (c->index != MPS_READER_NO_INDEX) snprintf(index, sizeof index, " (index %u)", c->index);
      const mps_text_line *line = &r->list.lines[r->list.tokens[i].line];
      r->status = mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "kernel '%s' uses the function constant '%s'%s at %s:%u, which has no value: give it one, "
                                "or have the source ask is_function_constant_defined(%s)", r->options->special->function, c->name, index,
                                r->list.files[line->file], line->number, c->name);
      return;
    }
    require_variable(r, i, depth);
    name_node *node = mps_reader_find_node(r, i);
    if (!node || node->visited) continue;
    node->visited = true;
    for (size_t k = 0; k < node->declarations.count; k++) {
      const declaration *d = &r->declarations.items[node->declarations.items[k]];
      require_in(r, d->begin, d->end, depth - 1);
    }
  }
}

void mps_reader_require_constants(reader *r, uint32_t begin, uint32_t end) {
  enum { MAX_DEPTH = 200 };
  if (r->constants.count > 0) require_in(r, begin, end, MAX_DEPTH);
}
