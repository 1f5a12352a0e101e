/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lexer: cuts preprocessed C++ into tokens. Line markers and pragmas are trivia: they stay in the text between two tokens, and
 * markers fill a table that tells which file and line a line of the text came from.
 */
#ifndef OPENMPS_SHADER_LEXER_H
#define OPENMPS_SHADER_LEXER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "openmps/status.h"

typedef enum mps_token_kind {
  MPS_TOKEN_IDENTIFIER,
  MPS_TOKEN_NUMBER,
  MPS_TOKEN_STRING, /* with its quotes */
  MPS_TOKEN_CHARACTER,
  MPS_TOKEN_PUNCTUATION, /* one character, or one of :: -> << <= >= == */
} mps_token_kind;

typedef struct mps_token {
  uint32_t start; /* offset in the text */
  uint32_t length;
  uint32_t line; /* index in mps_token_list.lines */
  uint8_t kind;
  bool system; /* from a header found by -isystem */
  char first;  /* first character, 0 behind the end */
} mps_token;

/* One line of the text. */
typedef struct mps_text_line {
  uint32_t start;
  uint32_t file; /* index in mps_token_list.files */
  uint32_t number;
} mps_text_line;

typedef struct mps_token_list {
  const char *text; /* borrowed */
  size_t length;
  mps_token *tokens; /* one more than count; the last has first = 0 */
  uint32_t count;
  mps_text_line *lines;
  uint32_t line_count;
  char **files;
  uint32_t file_count;
} mps_token_list;

/* Lexes `text` (at most 1 GiB), which must outlive the list. mps_token_list_free accepts a zeroed or half-built list. */
MPS_WARN_UNUSED mps_status mps_lex(const char *text, size_t length, mps_token_list *out_list);
void mps_token_list_free(mps_token_list *list);

/* True if token `index` is exactly `word`. */
bool mps_token_is(const mps_token_list *list, uint32_t index, const char *word);

#endif
