/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reader_loop: marks loops in which threads of a simdgroup meet. Lanes that leave a branch at different rounds of a loop would otherwise
 * look alike to the driver; with its count of rounds (metal::openmps_detail::loop of kernels/include/metal_compute) those behind go first, as
 * on processors that run lanes in step. Functions that threads meet in are inlined, so that each call is a place of its own.
 */
#include "shader/reader_internal.h"

/* Behind the condition or header in parentheses that should be at `i`. */
static uint32_t behind_parentheses(const reader *r, uint32_t i, uint32_t end) {
  return token_punct(r, i, '(') && r->partner[i] < end ? r->partner[i] + 1 : end;
}

/* One behind the last token of the statement that begins at `i`. */
static uint32_t statement_end(const reader *r, uint32_t i, uint32_t end) {
  while (i < end) {
    if (token_punct(r, i, '{')) return r->partner[i] + 1;
    if (token_is(r, i, "for") || token_is(r, i, "while") || token_is(r, i, "switch")) {
      i = behind_parentheses(r, i + 1, end);
    } else if (token_is(r, i, "if")) {
      i = statement_end(r, behind_parentheses(r, token_is(r, i + 1, "constexpr") ? i + 2 : i + 1, end), end);
      if (!token_is(r, i, "else")) return i;
      i++;
    } else if (token_is(r, i, "do")) {
      i = statement_end(r, i + 1, end); /* while (...); */
      return i < end ? behind_parentheses(r, i + 1, end) + 1 : end;
    } else {
      while (i < end && !token_punct(r, i, ';')) {
        char c = token_first(r, i);
        i = c == '(' || c == '[' || c == '{' ? r->partner[i] + 1 : i + 1;
      }
      return i < end ? i + 1 : end;
    }
  }
  return end;
}

/* The second semicolon of a for loop's header (open, close); 0: it has none, it goes over a range. */
static uint32_t second_semicolon(const reader *r, uint32_t open, uint32_t close) {
  uint32_t last = 0, count = 0;
  for (uint32_t i = open + 1; i < close; i++) {
    char c = token_first(r, i);
    if (c == '(' || c == '[' || c == '{') i = r->partner[i];
    else if (token_punct(r, i, ';')) last = i, count++;
  }
  return count == 2 ? last : 0;
}

/* A condition that declares something cannot stand in an expression. */
static bool declares(const reader *r, uint32_t open, uint32_t close) {
  for (uint32_t i = open + 1; i < close; i++) {
    char c = token_first(r, i);
    if (c == '(' || c == '[' || c == '{') i = r->partner[i];
    else if (token_punct(r, i, '=')) return true;
  }
  return false;
}

/* Behind the token in front of the loop: pragmas stay with the loop. */
static void open_loop(reader *r, uint32_t keyword) {
  mps_reader_append(r, keyword - 1, mps_reader_text(r, " for (::metal::openmps_detail::loop mps_loop(%uu); mps_loop.once();)", r->loop_count++));
}

static void count_in_condition(reader *r, uint32_t keyword, uint32_t open) {
  uint32_t close = r->partner[open];
  if (declares(r, open, close)) return;
  open_loop(r, keyword);
  mps_reader_append(r, open, " mps_loop.next() && (");
  mps_reader_append(r, close - 1, ")");
}

static void mark_for(reader *r, uint32_t keyword) {
  uint32_t open = keyword + 1, close = r->partner[open], semicolon = second_semicolon(r, open, close);
  open_loop(r, keyword);
  if (!semicolon) mps_reader_append(r, close, " if (mps_loop.next())");
  else mps_reader_append(r, semicolon, semicolon + 1 == close ? " mps_loop.next()" : " (void)mps_loop.next(),");
}

static void mark_loops(reader *r, uint32_t begin, uint32_t end) {
  for (uint32_t i = begin + 1; i < end; i++) {
    bool is_do = token_is(r, i, "do"), is_for = token_is(r, i, "for"), is_while = token_is(r, i, "while");
    if (!is_do && !((is_for || is_while) && token_punct(r, i + 1, '('))) continue;
    uint32_t stop = statement_end(r, i, end);
    if (is_while && token_punct(r, r->partner[i + 1] + 1, ';')) continue; /* the end of a do loop, or a loop of nothing */
    if (!(mps_reader_reach(r, i, stop) & REACH_SIMDGROUP)) continue;
    if (is_for) {
      mark_for(r, i);
    } else if (is_while) {
      count_in_condition(r, i, i + 1);
    } else {
      uint32_t condition = statement_end(r, i + 1, end);
      if (token_is(r, condition, "while") && token_punct(r, condition + 1, '(')) count_in_condition(r, i, condition + 1);
    }
  }
}

void mps_reader_mark_loops(reader *r, const declaration *d) {
  if (r->options->mode != MPS_READER_HOST || !d->body) return;
  uint32_t reach = mps_reader_reach(r, d->body, d->end);
  if (!(reach & (REACH_SIMDGROUP | REACH_BARRIER))) return;
  if (reach & REACH_SIMDGROUP) mark_loops(r, d->body, d->end);
  if (!d->function || d->is_kernel || token_is(r, d->head, "extern") || token_attribute(r, d->head)) return;
  const char *before = r->edits[d->head].before;
  r->edits[d->head].before = mps_reader_text(r, "%s__attribute__((always_inline)) ", before ? before : "");
}
