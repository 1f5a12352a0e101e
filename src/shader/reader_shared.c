/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reader_shared: how many bytes of threadgroup variables a kernel declares. Types are clang's to know, and the variables are out of reach
 * behind the kernel; so their declarations, with those that they speak of, are written once more into a constexpr function that adds up sizes.
 */
#include <string.h>

#include "shader/reader_internal.h"

/* A statement of the kernel, [begin, end). */
typedef struct statement {
  uint32_t begin, end;
} statement;

typedef MPS_ARRAY(statement) statement_list;
typedef MPS_ARRAY(uint32_t) token_array;

static const char *const type_words[] = {"struct", "class", "union", "enum", NULL};

static bool is_object(const reader *r, uint32_t i) { return token_is(r, i, "threadgroup") && r->edits[i].text && r->edits[i].text[0]; }

static bool is_any(const reader *r, uint32_t i, const char *const *words) {
  for (; *words; words++)
    if (token_is(r, i, *words)) return true;
  return false;
}

static bool holds(const reader *r, const token_array *names, uint32_t token) {
  for (size_t i = 0; i < names->count; i++)
    if (token_same(r, names->items[i], token)) return true;
  return false;
}

static void add_words(reader *r, token_array *names, uint32_t begin, uint32_t end) {
  for (uint32_t i = begin; i < end && r->status == MPS_STATUS_OK; i++) {
    if (!token_word(r, i) || holds(r, names, i)) continue;
    r->status = MPS_ARRAY_RESERVE(names, 1);
    if (r->status == MPS_STATUS_OK) MPS_ARRAY_PUSH(names, i);
  }
}

/* The statements in front of `at` that are in sight there: blocks that end before it are left out. */
static void list_statements(reader *r, uint32_t body, uint32_t at, statement_list *out) {
  static const char *const blocks[] = {"else", "do", NULL};
  for (uint32_t begin = body + 1, i = begin; i < at && r->status == MPS_STATUS_OK; i++) {
    char c = token_first(r, i);
    if (c == '(' || c == '[') {
      i = r->partner[i];
    } else if (c == '{') {
      bool value = token_punct(r, i - 1, '=') || token_punct(r, i - 1, '>') || (token_word(r, i - 1) && !is_any(r, i - 1, blocks));
      if (r->partner[i] > at) begin = i + 1; /* around it */
      else if (i > begin && (value || is_any(r, begin, type_words))) i = r->partner[i];
      else begin = (i = r->partner[i]) + 1;
    } else if (c == ';') {
      r->status = MPS_ARRAY_RESERVE(out, 1);
      if (r->status == MPS_STATUS_OK) MPS_ARRAY_PUSH(out, ((statement){begin, i}));
      begin = i + 1;
    }
  }
}

/* True if the statement declares one of the names. */
static bool declares(const reader *r, const statement *s, const token_array *names) {
  static const char *const others[] = {"return", "if", "else", "for", "while", "do", "switch", "case", "default", "break", "continue", NULL};
  if (s->begin + 1 >= s->end || is_any(r, s->begin, others) || !token_word(r, s->begin)) return false;
  if (token_is(r, s->begin, "typedef")) return holds(r, names, s->end - 1);
  if (token_is(r, s->begin, "using")) return holds(r, names, s->begin + 1);
  if (is_any(r, s->begin, type_words)) return holds(r, names, s->begin + 1 + (token_is(r, s->begin + 1, "class") ? 1 : 0));
  for (uint32_t i = s->begin + 1; i < s->end; i++) {
    char c = token_first(r, i), next = i + 1 < s->end ? token_first(r, i + 1) : ';', before = token_first(r, i - 1);
    if (c == '(' || c == '[' || c == '{') i = r->partner[i];
    else if (token_word(r, i) && strchr("={[(;,", next) && (token_word(r, i - 1) || before == '>' || before == ',') && holds(r, names, i)) return true;
  }
  return false;
}

/* A kernel's parameters have no values where sizes are added up. */
static bool speaks_of_parameters(const reader *r, const declaration *d, const token_array *names) {
  for (uint32_t i = d->parameters + 1, close = r->partner[d->parameters]; i < close; i++) {
    bool last = token_punct(r, i + 1, ',') || i + 1 == close || token_attribute(r, i + 1);
    if (token_word(r, i) && last && holds(r, names, i)) return true;
  }
  return false;
}

/* Without `static`, which such a function may not have. */
static const char *statement_text(reader *r, const statement *s) {
  const char *text = "";
  for (uint32_t i = s->begin; i < s->end; i++)
    if (!token_is(r, i, "static")) text = mps_reader_text(r, "%s%s ", text, mps_reader_render(r, i, i + 1));
  return mps_reader_text(r, "%s; ", text);
}

/* sizeof of each variable that the declaration [begin, end) names, behind each other with + in front. */
static const char *sizes_text(reader *r, uint32_t begin, uint32_t end) {
  const char *text = "";
  for (uint32_t i = begin; i < end; i++) {
    if (token_punct(r, i, '<')) i = mps_reader_close_angle(r, i, end);
    else if (token_punct(r, i, '[')) i = r->partner[i];
    else if (token_word(r, i) && (i + 1 == end || token_punct(r, i + 1, '[') || token_punct(r, i + 1, ',')))
      text = mps_reader_text(r, "%s + sizeof(mps_part::%.*s)", text, (int)r->list.tokens[i].length, r->list.text + r->list.tokens[i].start);
  }
  return text;
}

/* The block that counts the declaration whose `threadgroup` is at `at`; "" if it speaks of what is not known there. */
static const char *part_text(reader *r, const declaration *d, uint32_t at) {
  statement_list statements = {0};
  token_array names = {0}, values = {0}; /* a type's members may be called as parameters are */
  uint32_t end = at;
  while (end < d->end && !token_punct(r, end, ';')) end++;
  list_statements(r, d->body, at, &statements);
  add_words(r, &names, at + 1, end);
  add_words(r, &values, at + 1, end);
  const char *before = "";
  bool known = true;
  for (size_t i = statements.count; i-- > 0 && r->status == MPS_STATUS_OK;) {
    const statement *s = &statements.items[i];
    if (!declares(r, s, &names)) continue;
    for (uint32_t k = s->begin; k < s->end; k++) known = known && !is_object(r, k);
    add_words(r, &names, s->begin, s->end);
    if (!is_any(r, s->begin, type_words)) add_words(r, &values, s->begin, s->end);
    before = mps_reader_text(r, "%s%s", statement_text(r, s), before);
  }
  if (speaks_of_parameters(r, d, &values)) known = false;
  MPS_ARRAY_FINI(&statements);
  MPS_ARRAY_FINI(&names);
  MPS_ARRAY_FINI(&values);
  if (!known) return "";
  return mps_reader_text(r, " { %sstruct mps_part { %s; }; mps_bytes += 0%s; }", before, mps_reader_render(r, at + 1, end),
                         sizes_text(r, at + 1, end));
}

const char *mps_reader_shared(reader *r, const declaration *d, uint32_t number) {
  const char *parts = "";
  for (uint32_t i = d->body; i < d->end && r->status == MPS_STATUS_OK; i++)
    if (is_object(r, i)) parts = mps_reader_text(r, "%s%s", parts, part_text(r, d, i));
  if (!parts[0]) return NULL;
  const char *head = d->is_template ? mps_reader_render(r, d->begin, d->head) : "";
  return mps_reader_text(r, " %s static constexpr unsigned mps_shared_%u() { unsigned mps_bytes = 0;%s return mps_bytes; }", head, number, parts);
}
