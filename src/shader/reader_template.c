/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reader_template: which template an instantiation of a kernel means, where several have its name. What tokens tell decides: how many
 * arguments there are, and that a number is no type.
 */
#include "shader/reader_internal.h"

#define MISFIT (-1)

/* Takes the next item of a list in < >, which ends in front of `close`, as [*begin, *end); false: there is none. */
static bool next_item(const reader *r, uint32_t *next, uint32_t close, uint32_t *begin, uint32_t *end) {
  if (*next >= close) return false;
  uint32_t i = *begin = *next;
  for (; i < close && !token_punct(r, i, ','); i++) {
    char c = token_first(r, i);
    if (c == '(' || c == '[' || c == '{') i = r->partner[i];
    else if (token_punct(r, i, '<')) i = mps_reader_close_angle(r, i, close);
  }
  *end = i;
  *next = i + 1;
  return true;
}

static bool is_value(const reader *r, uint32_t i) {
  return r->list.tokens[i].kind == MPS_TOKEN_NUMBER || token_punct(r, i, '-') || token_is(r, i, "true") || token_is(r, i, "false");
}

static bool has_default(const reader *r, uint32_t begin, uint32_t end) {
  for (uint32_t i = begin; i < end; i++)
    if (token_punct(r, i, '=')) return true;
  return false;
}

static bool is_pack(const reader *r, uint32_t begin, uint32_t end) {
  for (uint32_t i = begin; i < end; i++)
    if (token_punct(r, i, '.') && token_punct(r, i + 1, '.')) return true;
  return false;
}

/* MISFIT, or how many names of the arguments [begin, end) stand where the template takes a type. */
static int fit(const reader *r, const kernel_template *t, uint32_t begin, uint32_t end) {
  const declaration *d = &r->declarations.items[t->declaration];
  uint32_t next = d->begin + 2, close = mps_reader_close_angle(r, d->begin + 1, d->end), parameter, parameter_end, argument, argument_end;
  int score = 0;
  while (next_item(r, &next, close, &parameter, &parameter_end)) {
    bool type = token_is(r, parameter, "typename") || token_is(r, parameter, "class");
    if (is_pack(r, parameter, parameter_end)) return score;
    if (!next_item(r, &begin, end, &argument, &argument_end)) {
      if (has_default(r, parameter, parameter_end)) continue;
      return MISFIT; /* or deduced; then the last template of the name is as good as another */
    }
    if (type && is_value(r, argument)) return MISFIT;
    if (type) score++;
  }
  return begin < end ? MISFIT : score;
}

const kernel_template *mps_reader_find_template(reader *r, uint32_t name, uint32_t finish) {
  const kernel_template *best = NULL;
  int most = MISFIT;
  for (size_t i = r->templates.count; i-- > 0;) {
    const kernel_template *t = &r->templates.items[i];
    if (!token_same(r, t->name_token, name)) continue;
    int score = token_punct(r, name + 1, '<') ? fit(r, t, name + 2, finish - 1) : 0;
    if (best && score <= most) continue;
    best = t;
    most = score;
  }
  return best;
}
