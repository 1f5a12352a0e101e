/* SPDX-License-Identifier: BSD-3-Clause
 *
 * source_check: reads text as clang's lexer does (lines joined by backslashes, comments, raw strings), as far as directives go. In doubt
 * it refuses. The lexer of the reader is another one: it reads preprocessed text, which has no comments and no joined lines.
 */
#include "shader/source_check.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/status.h"

typedef struct scanner {
  const char *source, *name;
  const char *p;
  const char *token; /* where the last token begins */
  char word[64];     /* its text, cut off; "" for white space and at the end */
  mps_status status;
} scanner;

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\f' || c == '\v' || c == '\r'; }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || (unsigned char)c >= 0x80; }

/* Behind backslashes at the ends of lines; clang takes blanks between the two. */
static const char *skip_joints(const char *p) {
  while (*p == '\\') {
    const char *q = p + 1;
    while (is_blank(*q)) q++;
    if (*q != '\n') break;
    p = q + 1;
  }
  return p;
}

static char peek(const scanner *s) { return *skip_joints(s->p); }

/* The character behind the next one. */
static char peek_second(const scanner *s) {
  const char *p = skip_joints(s->p);
  return *p ? *skip_joints(p + 1) : 0;
}

static char next(scanner *s) {
  s->p = skip_joints(s->p);
  return *s->p ? *s->p++ : 0;
}

static void fail(scanner *s, const char *at, const char *message) {
  if (s->status != MPS_STATUS_OK) return;
  unsigned line = 1;
  const char *start = s->source;
  for (const char *p = s->source; p < at; p++) {
    if (*p != '\n') continue;
    line++;
    start = p + 1;
  }
  s->status = mps_error_set(MPS_STATUS_COMPILE_ERROR, "%s:%u:%u: error: %s", s->name, line, (unsigned)(at - start) + 1, message);
}

/* Blanks and comments, up to the end of the line. */
static void skip_blanks(scanner *s) {
  for (;;) {
    char c = peek(s);
    if (is_blank(c)) {
      next(s);
    } else if (c == '/' && peek_second(s) == '/') {
      while (peek(s) && peek(s) != '\n') next(s);
    } else if (c == '/' && peek_second(s) == '*') {
      next(s);
      next(s);
      while (peek(s) && !(peek(s) == '*' && peek_second(s) == '/')) next(s);
      next(s);
      next(s);
    } else {
      return;
    }
  }
}

/* A quoted text whose quote was read; it ends with the line at the latest. */
static void skip_quoted(scanner *s, char quote) {
  for (char c; (c = peek(s)) != 0 && c != '\n';) {
    next(s);
    if (c == quote) return;
    if (c == '\\' && peek(s) && peek(s) != '\n') next(s);
  }
}

/* The same of a raw string: in it lines are not joined. */
static void skip_raw(scanner *s) {
  const char *delimiter = s->p;
  size_t length = 0;
  while (length <= 16 && delimiter[length] && !strchr("() \\\t\v\f\r\n\"", delimiter[length])) length++;
  if (length > 16 || delimiter[length] != '(') {
    fail(s, delimiter, "invalid delimiter of a raw string");
    return;
  }
  for (const char *p = delimiter + length; *p; p++) {
    if (*p != ')' || strncmp(p + 1, delimiter, length) != 0 || p[1 + length] != '"') continue;
    s->p = p + length + 2;
    return;
  }
  s->p += strlen(s->p);
}

static bool is_raw_prefix(const char *word) {
  return !strcmp(word, "R") || !strcmp(word, "LR") || !strcmp(word, "uR") || !strcmp(word, "UR") || !strcmp(word, "u8R");
}

/* Reads one token of a line; false at its end. Of a string s->word is its first character and what follows, as far as there is room. */
static bool read_token(scanner *s) {
  skip_blanks(s);
  s->token = skip_joints(s->p);
  s->word[0] = 0;
  char c = peek(s);
  if (c == 0 || c == '\n') return false;
  size_t length = 0;
  next(s);
  s->word[length++] = c;
  if (is_letter(c)) {
    while (is_letter(peek(s)) || is_digit(peek(s))) {
      char more = next(s);
      if (length + 1 < sizeof s->word) s->word[length++] = more;
    }
    s->word[length] = 0;
    if (peek(s) == '"' && is_raw_prefix(s->word)) {
      next(s);
      skip_raw(s);
      strcpy(s->word, "\"");
    }
  } else if (is_digit(c) || (c == '.' && is_digit(peek(s)))) {
    for (char d; (d = peek(s)) != 0;) {
      char after = peek_second(s);
      if (!(is_letter(d) || is_digit(d) || d == '.' || (d == '\'' && (is_letter(after) || is_digit(after))))) break;
      next(s); /* a sign behind an exponent is a token of its own here: no matter */
    }
    s->word[1] = 0;
  } else if (c == '"' || c == '\'') {
    skip_quoted(s, c);
    for (const char *p = s->token + 1; p < s->p && length + 1 < sizeof s->word; p++) s->word[length++] = *p;
    s->word[length] = 0;
  } else {
    s->word[length] = 0;
  }
  return true;
}

/* The file between quotes or angles that stands next. */
static void check_file(scanner *s) {
  skip_blanks(s);
  const char *at = skip_joints(s->p);
  char open = peek(s), close = open == '<' ? '>' : '"';
  if (open != '<' && open != '"') {
    fail(s, at, "expected \"FILENAME\" or <FILENAME>, written out: a shader cannot compute which file it includes");
    return;
  }
  next(s);
  char file[512];
  size_t length = 0;
  for (char c; (c = peek(s)) != 0 && c != '\n' && c != close;) {
    next(s);
    if (length + 1 < sizeof file) file[length++] = c;
    else fail(s, at, "the file's name is too long");
  }
  file[length] = 0;
  if (peek(s) != close) {
    fail(s, at, "expected \"FILENAME\" or <FILENAME>");
    return;
  }
  next(s);
  bool up = false;
  for (const char *part = file; part; part = strchr(part, '/')) {
    if (*part == '/') part++;
    if (part[0] == '.' && part[1] == '.' && (part[2] == '/' || part[2] == 0)) up = true;
  }
  if (file[0] == '/' || up || strchr(file, '\\'))
    fail(s, at, "a shader includes files of the given folders only: the name may not be absolute, nor hold '..' or a backslash");
}

static bool asks_for_file(const char *word) {
  return !strcmp(word, "__has_include") || !strcmp(word, "__has_include_next") || !strcmp(word, "__has_embed");
}

static const char refused_pragma[] = "this pragma is not Metal: it names a file or a module, or works on the compiler itself";

static void check_pragma(scanner *s) {
  const char *at = s->token;
  if (!read_token(s)) return;
  bool vendor = !strcmp(s->word, "GCC") || !strcmp(s->word, "clang");
  bool refused = !strcmp(s->word, "comment") || !strcmp(s->word, "include_alias");
  if (vendor && read_token(s)) refused = !strcmp(s->word, "dependency") || !strcmp(s->word, "module") || !strcmp(s->word, "__debug");
  if (refused) fail(s, at, refused_pragma);
}

/* _Pragma("GCC dependency ..."); texts that a macro makes into one are not seen here but by the reader. */
static void check_operator(scanner *s) {
  static const char *const words[] = {"dependency", "module", "__debug", "comment", "include_alias"};
  const char *at = s->token;
  if (!read_token(s) || strcmp(s->word, "(") != 0 || !read_token(s)) return;
  if (s->word[0] != '"') return;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    const char *found = memmem(s->token, (size_t)(s->p - s->token), words[i], strlen(words[i]));
    if (found) fail(s, at, refused_pragma);
  }
}

/* Behind the '#' that begins a line. */
static void check_directive(scanner *s) {
  if (!read_token(s)) return;
  if (!strcmp(s->word, "include") || !strcmp(s->word, "include_next") || !strcmp(s->word, "import") || !strcmp(s->word, "__include_macros"))
    check_file(s);
  else if (!strcmp(s->word, "embed")) fail(s, s->token, "#embed is not Metal");
  else if (!strcmp(s->word, "pragma")) check_pragma(s);
}

mps_status mps_source_check(const char *source, const char *name) {
  scanner s = {.source = source, .name = name, .p = source, .status = MPS_STATUS_OK};
  while (*s.p && s.status == MPS_STATUS_OK) {
    bool first = true, named = false; /* named: the word before asks whether the next is defined */
    while (s.status == MPS_STATUS_OK && read_token(&s)) {
      bool hash = s.word[0] == '#' || (s.word[0] == '%' && peek(&s) == ':');
      if (first && hash) {
        if (s.word[0] == '%') next(&s);
        check_directive(&s);
        named = !strcmp(s.word, "ifdef") || !strcmp(s.word, "ifndef") || !strcmp(s.word, "elifdef") || !strcmp(s.word, "elifndef");
      } else if (asks_for_file(s.word) && !named) {
        const char *at = s.token;
        skip_blanks(&s);
        if (peek(&s) == '(') {
          next(&s);
          check_file(&s);
        } else {
          fail(&s, at, "expected a file in parentheses behind this word");
        }
        named = false;
      } else {
        if (!strcmp(s.word, "_Pragma")) check_operator(&s);
        named = !strcmp(s.word, "defined") || (named && !strcmp(s.word, "("));
      }
      first = false;
    }
    s.p = skip_joints(s.p);
    if (*s.p == '\n') s.p++;
  }
  return s.status;
}
