/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reader: the rewriting of single tokens, the writing of the output, and the edit map.
 */
#include "shader/reader.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "shader/reader_internal.h"

const char *mps_reader_text(reader *r, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  char *text = NULL;
  int length = vasprintf(&text, format, arguments);
  va_end(arguments);
  if (length < 0) text = NULL;
  if (!text || MPS_ARRAY_RESERVE(&r->texts, 1) != MPS_STATUS_OK) {
    free(text);
    r->status = mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "out of memory while reading a shader");
    return "";
  }
  MPS_ARRAY_PUSH(&r->texts, text);
  return text;
}

void mps_reader_fail(reader *r, uint32_t token, const char *format, ...) {
  if (r->status != MPS_STATUS_OK) return;
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  const mps_token *t = &r->list.tokens[token];
  const mps_text_line *line = &r->list.lines[t->line];
  r->status = mps_error_set(MPS_STATUS_COMPILE_ERROR, "%s:%u:%u: error: %s", r->list.files[line->file], line->number,
                            t->start - line->start + 1, text);
}

const char *mps_reader_render(reader *r, uint32_t begin, uint32_t end) {
  size_t size = 1;
  for (uint32_t i = begin; i < end; i++) size += (r->edits[i].text ? strlen(r->edits[i].text) : r->list.tokens[i].length) + 1;
  char *text = malloc(size);
  if (!text || MPS_ARRAY_RESERVE(&r->texts, 1) != MPS_STATUS_OK) {
    free(text);
    r->status = mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "out of memory while reading a shader");
    return "";
  }
  char *p = text;
  for (uint32_t i = begin; i < end; i++) {
    if (memchr(r->list.text + r->list.tokens[i].start, '\n', r->list.tokens[i].length))
      mps_reader_fail(r, i, "a string over several lines cannot stand in a kernel's declaration");
    const char *source = r->edits[i].text ? r->edits[i].text : r->list.text + r->list.tokens[i].start;
    size_t length = r->edits[i].text ? strlen(source) : r->list.tokens[i].length;
    memcpy(p, source, length);
    p += length;
    if (length > 0 && i + 1 < end) *p++ = ' ';
  }
  *p = 0;
  MPS_ARRAY_PUSH(&r->texts, text);
  return text;
}

void mps_reader_blank(reader *r, uint32_t begin, uint32_t end) {
  for (uint32_t i = begin; i < end; i++) r->edits[i].text = i == begin ? " " : "";
}

void mps_reader_append(reader *r, uint32_t token, const char *text) {
  const char *already = r->edits[token].after;
  r->edits[token].after = already ? mps_reader_text(r, "%s%s", already, text) : text;
}

uint32_t mps_reader_close_angle(const reader *r, uint32_t open, uint32_t end) {
  uint32_t depth = 0;
  for (uint32_t i = open; i < end; i++) {
    switch (token_first(r, i)) {
      case '(': case '[': case '{': i = r->partner[i]; break;
      case '<': if (token_punct(r, i, '<')) depth++; break;
      case '>': if (token_punct(r, i, '>') && --depth == 0) return i; break;
      case ';': case ')': case '}': return open;
      default: break;
    }
  }
  return open;
}

/* 1.0 -> 1.0f, 1.0h -> half(1.0f), 1.0bf -> bfloat(1.0f). Integers, and literals that have an f, stay. */
static void rewrite_number(reader *r, uint32_t index) {
  const mps_token *t = &r->list.tokens[index];
  const char *s = r->list.text + t->start;
  bool hex = t->length > 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X');
  bool floating = false;
  uint32_t digits = t->length; /* up to the suffix */
  for (uint32_t i = hex ? 2 : 0; i < t->length; i++) {
    bool exponent = hex ? s[i] == 'p' || s[i] == 'P' : s[i] == 'e' || s[i] == 'E';
    if (s[i] == '.') {
      floating = true;
    } else if (exponent) {
      floating = true;
      if (i + 1 < t->length && (s[i + 1] == '+' || s[i + 1] == '-')) i++;
      hex = false; /* the exponent's digits are decimal */
    } else if (!(s[i] >= '0' && s[i] <= '9') && s[i] != '\'' &&
               !(hex && ((s[i] >= 'a' && s[i] <= 'f') || (s[i] >= 'A' && s[i] <= 'F')))) {
      digits = i;
      break;
    }
  }
  if (hex && !floating) return;
  uint32_t suffix = t->length - digits;
  const char *end = s + digits;
  if (suffix == 0 && floating) {
    r->edits[index].text = mps_reader_text(r, "%.*sf", (int)digits, s);
  } else if (suffix == 1 && (end[0] == 'h' || end[0] == 'H')) {
    r->edits[index].text = mps_reader_text(r, "half(%.*s%sf)", (int)digits, s, floating ? "" : ".0");
  } else if (suffix == 2 && (memcmp(end, "bf", 2) == 0 || memcmp(end, "BF", 2) == 0)) {
    r->edits[index].text = mps_reader_text(r, "bfloat(%.*s%sf)", (int)digits, s, floating ? "" : ".0");
  }
}

/* A `threadgroup` at the start of a statement that declares an object, not a pointer or reference. */
static bool declares_object(const reader *r, uint32_t index) {
  char before = index > 0 ? token_first(r, index - 1) : ';';
  if (before != ';' && before != '{' && before != '}') return false;
  uint32_t end = r->list.count;
  for (uint32_t i = index + 1; i < end; i++) {
    char c = token_first(r, i);
    if (token_punct(r, i, '<')) i = mps_reader_close_angle(r, i, end);
    else if (c == '*' || c == '&' || c == '(') return false;
    else if (c == ';' || c == '[' || c == ',') return true;
    else if (c == '{' || c == '}' || c == '=') return false;
  }
  return false;
}

/* Vectors have an assignment of their own (metal_vector), and a union of them would have none. */
static void assign_union(reader *r, uint32_t index) {
  uint32_t open = index + 2, close = r->partner[open];
  for (uint32_t i = open; i < close; i++)
    if (token_is(r, i, "operator")) return;
  const mps_token *name = &r->list.tokens[index + 1];
  const char *text = r->list.text + name->start;
  int length = (int)name->length;
  r->edits[close].before = mps_reader_text(r, "%.*s &operator=(const %.*s &mps_other) { __builtin_memcpy(this, &mps_other, sizeof(*this)); return *this; } ",
                                           length, text, length, text);
}

static void rewrite_word(reader *r, uint32_t index) {
  static const char *const vanishing[] = {"device", "thread", "threadgroup", "threadgroup_imageblock", "ray_data", "object_data", "vertex",
                                          "fragment"};
  if (index > 0) { /* a member or a name in a namespace is not the keyword */
    char before = token_first(r, index - 1);
    if (before == '.' || (before == ':' && r->list.tokens[index - 1].length == 2) || token_is(r, index - 1, "->")) return;
  }
  if (token_is(r, index, "union") && token_word(r, index + 1) && token_punct(r, index + 2, '{') && !r->list.tokens[index].system)
    assign_union(r, index);
  if (token_is(r, index, "asm") || token_is(r, index, "__asm__") || token_is(r, index, "__asm")) {
    mps_reader_fail(r, index, "inline assembly is not Metal");
  } else if (token_is(r, index, "constant")) {
    r->edits[index].text = "const";
  } else if (token_is(r, index, "threadgroup") && declares_object(r, index)) {
    r->edits[index].text = r->options->threadgroup_storage ? r->options->threadgroup_storage : "static thread_local";
  } else if (token_is(r, index, "coherent") && token_punct(r, index + 1, '(') && token_punct(r, index + 3, ')')) {
    mps_reader_blank(r, index, index + 4); /* coherent(system) and its like: all memory is */
  } else if (token_is(r, index, "is_function_constant_defined")) {
    r->edits[index].text = mps_reader_constant_defined(r, index) ? "!!sizeof" : "!sizeof";
  } else {
    for (size_t i = 0; i < sizeof vanishing / sizeof *vanishing; i++)
      if (token_is(r, index, vanishing[i])) r->edits[index].text = "";
  }
}

/* True if the text up to `end` begins with `word`. */
static bool starts(const char *text, const char *end, const char *word) {
  size_t length = strlen(word);
  return (size_t)(end - text) >= length && memcmp(text, word, length) == 0;
}

/* Pragmas that name files or modules, or work on the compiler itself; macros may have made them (mps_source_check sees the others). */
static void check_pragmas(reader *r) {
  static const char *const words[] = {"comment", "include_alias", "GCC dependency", "clang dependency", "clang module", "clang __debug"};
  for (uint32_t i = 0; i < r->list.line_count && r->status == MPS_STATUS_OK; i++) {
    const char *p = r->list.text + r->list.lines[i].start, *end = r->list.text + r->list.length;
    while (p < end && (*p == ' ' || *p == '\t')) p++;
    if (!starts(p, end, "#pragma ")) continue;
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
      if (starts(p + strlen("#pragma "), end, words[k]))
        r->status = mps_error_set(MPS_STATUS_COMPILE_ERROR, "%s:%u:1: error: the pragma '%s' is not Metal",
                                  r->list.files[r->list.lines[i].file], r->list.lines[i].number, words[k]);
  }
}

static void rewrite_tokens(reader *r) {
  for (uint32_t i = 0; i < r->list.count; i++) {
    if (r->list.tokens[i].kind == MPS_TOKEN_NUMBER) rewrite_number(r, i);
    else if (r->list.tokens[i].kind == MPS_TOKEN_IDENTIFIER) rewrite_word(r, i);
  }
}

/* Fills `partner`; brackets without one are an error. */
static void match_brackets(reader *r) {
  MPS_ARRAY(uint32_t) stack = {0};
  for (uint32_t i = 0; i <= r->list.count; i++) r->partner[i] = i;
  for (uint32_t i = 0; i < r->list.count && r->status == MPS_STATUS_OK; i++) {
    if (r->list.tokens[i].kind != MPS_TOKEN_PUNCTUATION) continue;
    char c = token_first(r, i);
    if (c == '(' || c == '[' || c == '{') {
      r->status = MPS_ARRAY_RESERVE(&stack, 1);
      if (r->status == MPS_STATUS_OK) MPS_ARRAY_PUSH(&stack, i);
    } else if (c == ')' || c == ']' || c == '}') {
      char open = c == ')' ? '(' : c == ']' ? '[' : '{';
      if (stack.count == 0) mps_reader_fail(r, i, "extraneous '%c'", c);
      else if (token_first(r, stack.items[stack.count - 1]) != open)
        mps_reader_fail(r, i, "'%c' does not match '%c'", c, token_first(r, stack.items[stack.count - 1]));
      if (r->status != MPS_STATUS_OK) break;
      uint32_t opener = stack.items[--stack.count];
      r->partner[opener] = i;
      r->partner[i] = opener;
    }
  }
  if (r->status == MPS_STATUS_OK && stack.count > 0) {
    uint32_t opener = stack.items[stack.count - 1];
    mps_reader_fail(r, opener, "'%c' is never closed", token_first(r, opener));
  }
  MPS_ARRAY_FINI(&stack);
}

static size_t text_length(const char *text) { return text ? strlen(text) : 0; }

static char *put(char *p, const char *text, size_t length) {
  memcpy(p, text, length);
  return p + length;
}

/* The newlines of a text that goes away. */
static char *put_newlines(char *p, const char *text, size_t length) {
  for (size_t i = 0; i < length; i++)
    if (text[i] == '\n') *p++ = '\n';
  return p;
}

/* What lies between two tokens: blanks, line markers and pragmas. Pragmas of a definition that goes away go with it, and so does the count
 * of `#pragma unroll (count)`, a hint in which macros are not replaced. */
static char *put_between(char *p, const char *text, size_t length, bool dropped) {
  for (const char *end = text + length; text < end;) {
    const char *line = text, *newline = memchr(text, '\n', (size_t)(end - text));
    text = newline ? newline + 1 : end;
    while (line < text && (*line == ' ' || *line == '\t')) line++;
    bool pragma = starts(line, text, "#pragma");
    bool counted = pragma && starts(line, text, "#pragma unroll") && memchr(line, '(', (size_t)(text - line));
    if (!pragma || !(dropped || counted)) p = put(p, line, (size_t)(text - line));
    else if (newline) *p++ = '\n';
  }
  return p;
}

/* Writes tokens with their edits, and what lies between them as it was. */
static mps_status write_output(reader *r, mps_reading *out) {
  size_t size = r->list.length + 1;
  for (uint32_t i = 0; i < r->list.count; i++)
    size += text_length(r->edits[i].before) + text_length(r->edits[i].text) + text_length(r->edits[i].after) + 2;
  out->output = malloc(size);
  out->positions = malloc((r->list.count + (size_t)1) * sizeof *out->positions);
  if (!out->output || !out->positions) return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "out of memory: %zu bytes of shader source", size);
  char *p = out->output;
  const char *from = r->list.text;
  for (uint32_t i = 0; i < r->list.count; i++) {
    const mps_token *t = &r->list.tokens[i];
    const mps_token_edit *edit = &r->edits[i];
    if (memchr(from, '#', (size_t)(r->list.text + t->start - from)))
      p = put_between(p, from, (size_t)(r->list.text + t->start - from), edit->dropped && i > 0 && r->edits[i - 1].dropped);
    else p = put(p, from, (size_t)(r->list.text + t->start - from));
    from = r->list.text + t->start + t->length;
    if (edit->before) p = put(p, edit->before, strlen(edit->before));
    out->positions[i] = (uint32_t)(p - out->output);
    if (!edit->text) p = put(p, r->list.text + t->start, t->length);
    else p = put(p, edit->text, strlen(edit->text));
    if (edit->text && (t->kind == MPS_TOKEN_STRING || t->kind == MPS_TOKEN_CHARACTER)) p = put_newlines(p, r->list.text + t->start, t->length);
    if (edit->after) p = put(p, edit->after, strlen(edit->after));
  }
  p = put(p, from, (size_t)(r->list.text + r->list.length - from));
  out->positions[r->list.count] = (uint32_t)(p - out->output);
  *p = 0;
  out->length = (size_t)(p - out->output);
  return MPS_STATUS_OK;
}

static void reader_fini(reader *r) {
  mps_reader_reach_free(r);
  for (size_t i = 0; i < r->texts.count; i++) free(r->texts.items[i]);
  for (size_t i = 0; i < r->templates.count; i++) MPS_ARRAY_FINI(&r->templates.items[i].parameters);
  for (size_t i = 0; i < r->kernels.count; i++) free(r->kernels.items[i].name);
  for (size_t i = 0; i < r->constants.count; i++) free(r->constants.items[i].name);
  MPS_ARRAY_FINI(&r->texts);
  MPS_ARRAY_FINI(&r->declarations);
  MPS_ARRAY_FINI(&r->templates);
  MPS_ARRAY_FINI(&r->kernels);
  MPS_ARRAY_FINI(&r->constants);
  MPS_ARRAY_FINI(&r->constant_places);
  MPS_ARRAY_FINI(&r->exported);
  free(r->edits);
  free(r->partner);
  mps_token_list_free(&r->list);
}

mps_status mps_reader_read(const char *text, size_t length, const mps_reader_options *options, mps_reading *out_reading) {
  *out_reading = (mps_reading){0};
  reader r = {.options = options};
  MPS_TRY(mps_lex(text, length, &r.list));
  r.edits = calloc(r.list.count + (size_t)1, sizeof *r.edits);
  r.partner = malloc((r.list.count + (size_t)1) * sizeof *r.partner);
  if (!r.edits || !r.partner) r.status = mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "out of memory: %u tokens of shader source", r.list.count);
  if (r.status == MPS_STATUS_OK) match_brackets(&r);
  if (r.status == MPS_STATUS_OK) check_pragmas(&r);
  if (r.status == MPS_STATUS_OK) mps_reader_check_words(&r);
  if (r.status == MPS_STATUS_OK) mps_reader_find_constants(&r);
  if (r.status == MPS_STATUS_OK) rewrite_tokens(&r);
  if (r.status == MPS_STATUS_OK) mps_reader_overloads(&r);
  if (r.status == MPS_STATUS_OK) mps_reader_walk(&r);
  if (r.status == MPS_STATUS_OK) r.status = write_output(&r, out_reading);
  mps_status status = r.status;
  if (status == MPS_STATUS_OK) { /* what the reading keeps moves over */
    out_reading->kernels = r.kernels.items;
    out_reading->kernel_count = (uint32_t)r.kernels.count;
    out_reading->constants = r.constants.items;
    out_reading->constant_count = (uint32_t)r.constants.count;
    out_reading->tokens = r.list;
    r.list = (mps_token_list){0};
    r.kernels.items = NULL;
    r.constants.items = NULL;
    r.kernels.count = r.constants.count = 0;
  } else {
    mps_reading_free(out_reading);
  }
  reader_fini(&r);
  return status;
}

mps_status mps_reading_unchanged(const char *text, size_t length, mps_reading *out_reading) {
  *out_reading = (mps_reading){0};
  MPS_TRY(mps_lex(text, length, &out_reading->tokens));
  out_reading->output = strndup(text, length);
  out_reading->length = length;
  const mps_token_list *list = &out_reading->tokens;
  out_reading->positions = malloc((list->count + (size_t)1) * sizeof *out_reading->positions);
  if (!out_reading->output || !out_reading->positions) {
    mps_reading_free(out_reading);
    return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "out of memory: %zu bytes of shader source", length);
  }
  for (uint32_t i = 0; i <= list->count; i++) out_reading->positions[i] = list->tokens[i].start;
  return MPS_STATUS_OK;
}

void mps_reading_free(mps_reading *reading) {
  for (uint32_t i = 0; i < reading->kernel_count; i++) free(reading->kernels[i].name);
  for (uint32_t i = 0; i < reading->constant_count; i++) free(reading->constants[i].name);
  free(reading->kernels);
  free(reading->constants);
  free(reading->output);
  free(reading->positions);
  mps_token_list_free(&reading->tokens);
  *reading = (mps_reading){0};
}

static bool same_token(const mps_token_list *a, uint32_t i, const mps_token_list *b, uint32_t j) {
  return a->tokens[i].length == b->tokens[j].length &&
         memcmp(a->text + a->tokens[i].start, b->text + b->tokens[j].start, a->tokens[i].length) == 0;
}

/* Walks the user's tokens and the preprocessed ones side by side. Where they differ the user wrote a macro: everything it became
 * belongs to its name. Returns the user's token for `target`. */
static uint32_t align_tokens(const mps_token_list *user, const mps_token_list *done, uint32_t first, uint32_t target, uint32_t last) {
  uint32_t i = 0, j = first;
  while (i < user->count && j < last) {
    if (same_token(user, i, done, j)) {
      if (j == target) return i;
      i++;
      j++;
      continue;
    }
    uint32_t macro = i++;
    if (mps_token_is(user, i, "(")) {
      for (uint32_t depth = 0; i < user->count; i++) {
        if (user->tokens[i].first == '(') depth++;
        if (user->tokens[i].first == ')' && --depth == 0) break;
      }
      if (i < user->count) i++;
    }
    while (j < last && !(i < user->count && same_token(user, i, done, j))) {
      if (j == target) return macro;
      j++;
    }
    if (i >= user->count) return macro;
  }
  return user->count ? user->count - 1 : 0;
}

/* An entry stands between a token and `position`. */
static bool is_generated(const mps_reading *reading, uint32_t begin, uint32_t position) {
  if (!reading->output || position <= begin || position > reading->length) return false;
  const char *text = reading->output + begin;
  return memmem(text, position - begin, "mps_launch_", 11) || memmem(text, position - begin, "static constexpr", 16);
}

uint32_t mps_reading_column(const mps_reading *reading, const char *file, uint32_t line, uint32_t column, const char *source_line) {
  const mps_token_list *list = &reading->tokens;
  uint32_t first = 0;
  while (first < list->count) {
    const mps_text_line *at = &list->lines[list->tokens[first].line];
    if (at->number == line && strcmp(list->files[at->file], file) == 0) break;
    first++;
  }
  if (first >= list->count) return column;
  uint32_t text_line = list->tokens[first].line, last = first;
  while (last < list->count && list->tokens[last].line == text_line) last++;
  uint32_t line_start = reading->positions[first], token = first;
  while (line_start > 0 && reading->output[line_start - 1] != '\n') line_start--;
  uint32_t position = line_start + column - 1;
  while (token + 1 < last && reading->positions[token + 1] <= position) token++;
  if (is_generated(reading, reading->positions[token], position)) return 0;
  uint32_t inside = position > reading->positions[token] ? position - reading->positions[token] : 0;
  if (inside > list->tokens[token].length) inside = 0; /* equal: behind it, where something is missing */
  if (!source_line) return list->tokens[token].start - list->lines[text_line].start + inside + 1;
  mps_token_list user;
  if (mps_lex(source_line, strlen(source_line), &user) != MPS_STATUS_OK) return column;
  uint32_t result = column;
  if (user.count > 0) {
    uint32_t mine = align_tokens(&user, list, first, token, last);
    result = user.tokens[mine].start + 1 + (same_token(&user, mine, list, token) ? inside : 0);
  }
  mps_token_list_free(&user);
  return result;
}
