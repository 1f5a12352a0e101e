/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lexer: one pass over the text; tokens are offsets into it.
 */
#include "shader/lexer.h"

#include <stdlib.h>
#include <string.h>

typedef struct lexer {
  mps_token_list *list;
  const char *p, *end;
  uint32_t token_capacity, line_capacity, file_capacity;
  uint32_t file; /* of the current line */
  bool system;
  bool line_start; /* only blanks so far on this line */
  bool failed;     /* out of memory */
} lexer;

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || is_digit(c) || (unsigned char)c >= 0x80;
}

/* Room for one more element; doubles the array. */
static bool grow(void **array, uint32_t *capacity, uint32_t count, size_t size) {
  if (count < *capacity) return true;
  uint32_t larger = *capacity ? *capacity * 2 : 256;
  void *moved = realloc(*array, larger * size);
  if (!moved) return false;
  *array = moved;
  *capacity = larger;
  return true;
}

static void add_line(lexer *x, const char *start, uint32_t number) {
  mps_token_list *list = x->list;
  if (!grow((void **)&list->lines, &x->line_capacity, list->line_count, sizeof *list->lines)) {
    x->failed = true;
    return;
  }
  list->lines[list->line_count++] = (mps_text_line){(uint32_t)(start - list->text), x->file, number};
}

static void add_token(lexer *x, const char *start, mps_token_kind kind) {
  mps_token_list *list = x->list;
  if (!grow((void **)&list->tokens, &x->token_capacity, list->count + 1, sizeof *list->tokens)) {
    x->failed = true;
    return;
  }
  list->tokens[list->count++] = (mps_token){.start = (uint32_t)(start - list->text), .length = (uint32_t)(x->p - start),
    .line = list->line_count - 1, .kind = (uint8_t)kind, .system = x->system, .first = *start};
  x->line_start = false;
  if (kind != MPS_TOKEN_STRING && kind != MPS_TOKEN_CHARACTER) return;
  for (const char *p = start; p < x->p; p++) /* a raw string, and one with a backslash at the end of a line, go over several */
    if (*p == '\n' && !x->failed) add_line(x, p + 1, list->lines[list->line_count - 1].number + 1);
}

static uint32_t find_file(lexer *x, const char *name, size_t length) {
  mps_token_list *list = x->list;
  for (uint32_t i = list->file_count; i-- > 0;)
    if (strlen(list->files[i]) == length && memcmp(list->files[i], name, length) == 0) return i;
  char *copy = malloc(length + 1);
  if (!copy || !grow((void **)&list->files, &x->file_capacity, list->file_count, sizeof *list->files)) {
    free(copy);
    x->failed = true;
    return 0;
  }
  memcpy(copy, name, length);
  copy[length] = 0;
  list->files[list->file_count] = copy;
  return list->file_count++;
}

/* `# 12 "file" 1 3`: sets what the next line is. Other directives (#pragma) are left alone. */
static uint32_t read_directive(lexer *x, uint32_t next_number) {
  const char *p = x->p + 1, *stop = memchr(x->p, '\n', (size_t)(x->end - x->p));
  if (!stop) stop = x->end;
  x->p = stop;
  while (p < stop && *p == ' ') p++;
  if (p >= stop || !is_digit(*p)) return next_number;
  uint32_t number = 0;
  while (p < stop && is_digit(*p)) number = number * 10 + (uint32_t)(*p++ - '0');
  while (p < stop && *p != '"') p++;
  const char *name = p < stop ? p + 1 : stop, *name_end = name;
  while (name_end < stop && *name_end != '"') name_end += *name_end == '\\' && name_end + 1 < stop ? 2 : 1;
  if (name < stop) {
    x->file = find_file(x, name, (size_t)(name_end - name));
    x->system = false;
    for (p = name_end; p < stop; p++)
      if (*p == '3') x->system = true;
  }
  return number;
}

static void read_quoted(lexer *x, char quote) {
  x->p++;
  while (x->p < x->end && *x->p != quote && *x->p != '\n') x->p += *x->p == '\\' && x->p + 1 < x->end ? 2 : 1;
  if (x->p < x->end && *x->p == quote) x->p++;
}

/* At the quote of R"delimiter( ... )delimiter". */
static void read_raw_string(lexer *x) {
  const char *delimiter = ++x->p;
  while (x->p < x->end && *x->p != '(' && *x->p != '\n') x->p++;
  size_t length = (size_t)(x->p - delimiter);
  for (; x->p < x->end; x->p++) {
    if (*x->p != ')' || (size_t)(x->end - x->p) < length + 2) continue;
    if (memcmp(x->p + 1, delimiter, length) == 0 && x->p[length + 1] == '"') {
      x->p += length + 2;
      return;
    }
  }
}

/* A preprocessing number: digits, letters, dots, separators, and signs behind an exponent letter. */
static void read_number(lexer *x) {
  const char *start = x->p++;
  bool hex = *start == '0' && x->p < x->end && (*x->p == 'x' || *x->p == 'X');
  while (x->p < x->end) {
    char c = *x->p, before = x->p[-1];
    bool exponent = hex ? before == 'p' || before == 'P' : before == 'e' || before == 'E';
    if ((c == '+' || c == '-') && exponent) x->p++;
    else if (c == '\'' && x->p + 1 < x->end && is_word(x->p[1])) x->p++;
    else if (is_word(c) || c == '.') x->p++;
    else break;
  }
}

static void read_punctuation(lexer *x) {
  static const char pairs[][3] = {"::", "->", "<<", "<=", ">=", "=="};
  const char *start = x->p++;
  if (x->p < x->end)
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
      if (start[0] == pairs[i][0] && start[1] == pairs[i][1]) {
        x->p++;
        break;
      }
  add_token(x, start, MPS_TOKEN_PUNCTUATION);
}

static void read_token(lexer *x) {
  const char *start = x->p;
  char c = *start;
  if (is_digit(c) || (c == '.' && x->p + 1 < x->end && is_digit(x->p[1]))) {
    read_number(x);
    add_token(x, start, MPS_TOKEN_NUMBER);
  } else if (is_word(c)) {
    while (x->p < x->end && is_word(*x->p)) x->p++;
    if (x->p < x->end && *x->p == '"' && x->p[-1] == 'R' && x->p - start <= 3) {
      read_raw_string(x);
      add_token(x, start, MPS_TOKEN_STRING);
    } else {
      add_token(x, start, MPS_TOKEN_IDENTIFIER);
    }
  } else if (c == '"') {
    read_quoted(x, '"');
    add_token(x, start, MPS_TOKEN_STRING);
  } else if (c == '\'') {
    read_quoted(x, '\'');
    add_token(x, start, MPS_TOKEN_CHARACTER);
  } else {
    read_punctuation(x);
  }
}

/* Skips a comment (preprocessed text has none, a user's own line read again for a message has). False if there is none here. */
static bool skip_comment(lexer *x) {
  if (x->end - x->p < 2 || x->p[0] != '/') return false;
  if (x->p[1] == '/') {
    while (x->p < x->end && *x->p != '\n') x->p++;
    return true;
  }
  if (x->p[1] != '*') return false;
  for (x->p += 2; x->p < x->end; x->p++)
    if (x->p[0] == '*' && x->p + 1 < x->end && x->p[1] == '/') {
      x->p += 2;
      break;
    } else if (*x->p == '\n') {
      add_line(x, x->p + 1, x->list->lines[x->list->line_count - 1].number + 1);
    }
  return true;
}

mps_status mps_lex(const char *text, size_t length, mps_token_list *out_list) {
  *out_list = (mps_token_list){.text = text, .length = length};
  if (length > (size_t)1 << 30)
    return mps_error_set(MPS_STATUS_COMPILE_ERROR, "the preprocessed source has %zu bytes; at most 1 GiB is accepted", length);
  lexer x = {.list = out_list, .p = text, .end = text + length, .line_start = true};
  x.file = find_file(&x, "", 0);
  add_line(&x, text, 1);
  while (x.p < x.end && !x.failed) {
    char c = *x.p;
    if (c == '\n') {
      x.p++;
      x.line_start = true;
      add_line(&x, x.p, out_list->lines[out_list->line_count - 1].number + 1);
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
      x.p++;
    } else if (c == '#' && x.line_start) {
      mps_text_line *line = &out_list->lines[out_list->line_count - 1];
      uint32_t next = read_directive(&x, line->number + 1);
      if (x.p < x.end && !x.failed) {
        x.p++;
        add_line(&x, x.p, next);
      }
    } else if (c == '\\' && x.p + 1 < x.end && x.p[1] == '\n') {
      x.p++;
    } else if (!skip_comment(&x)) {
      read_token(&x);
    }
  }
  if (!x.failed && !grow((void **)&out_list->tokens, &x.token_capacity, out_list->count + 1, sizeof *out_list->tokens)) x.failed = true;
  if (x.failed) {
    mps_token_list_free(out_list);
    return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "out of memory while reading %zu bytes of shader source", length);
  }
  out_list->tokens[out_list->count] = (mps_token){.start = (uint32_t)length, .line = out_list->line_count - 1, .kind = MPS_TOKEN_PUNCTUATION};
  return MPS_STATUS_OK;
}

void mps_token_list_free(mps_token_list *list) {
  for (uint32_t i = 0; i < list->file_count; i++) free(list->files[i]);
  free(list->files);
  free(list->lines);
  free(list->tokens);
  *list = (mps_token_list){0};
}

bool mps_token_is(const mps_token_list *list, uint32_t index, const char *word) {
  if (index >= list->count) return false;
  const mps_token *t = &list->tokens[index];
  return t->first == word[0] && strncmp(list->text + t->start, word, t->length) == 0 && word[t->length] == 0;
}
