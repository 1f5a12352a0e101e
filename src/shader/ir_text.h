/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ir_text: the text of LLVM IR, as lanes and checked mode read and write it: pieces of it, text that grows, and how far names, operands and
 * types reach. Nothing here looks behind a span's end, needs a 0 there or allocates anything but an ir_text's memory; functions that read
 * may run on any thread. What does not close, a bracket or a quote, is no name and no type, or goes on to the span's end.
 */
#ifndef OPENMPS_SHADER_IR_TEXT_H
#define OPENMPS_SHADER_IR_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "openmps/status.h"

/* ---- a piece of text ---- */
/* Borrows it. {0}: none. */
typedef struct ir_span {
  const char *at;
  size_t length;
} ir_span;

#define IR_SPAN(span) (int)(span).length, (span).at /* for %.*s */

static inline ir_span ir_between(const char *begin, const char *end) { return (ir_span){begin, (size_t)(end - begin)}; }
/* Without its first `length` characters; empty when it has no more. */
static inline ir_span ir_behind(ir_span text, size_t length) {
  if (length > text.length) length = text.length;
  return (ir_span){text.at + length, text.length - length};
}
/* The span is `text`, or begins with it. */
bool ir_is(ir_span span, const char *text);
bool ir_starts(ir_span span, const char *text);
/* Where `what` begins in the span, or its length. `what` is not empty. */
size_t ir_find(ir_span span, const char *what);
/* Without blanks at its beginning. */
ir_span ir_behind_blanks(ir_span text);
/* Without blanks, tabs and ends of lines at both sides. */
ir_span ir_trimmed(ir_span text);
/* Takes the next line, its end included, off `rest`; false when there is none. */
bool ir_next_line(ir_span *rest, ir_span *out_line);
/* The line without its end. */
ir_span ir_bare_line(ir_span line);

/* ---- text that grows ---- */
/* {0} is an empty one. Memory that lacks is told once, at the end: what is put behind it is lost. Not for several threads at once. */
typedef struct ir_text {
  char *at; /* ends with a 0 that is not counted; NULL: nothing was put */
  size_t length, capacity;
  bool failed; /* out of memory */
} ir_text;

void ir_put(ir_text *text, const char *format, ...) MPS_PRINTF(2, 3);
void ir_put_span(ir_text *text, ir_span span);
void ir_text_fini(ir_text *text); /* frees `at`, unless it was handed on */

/* ---- words ---- */
/* Digits at the beginning, how many there are. *out_number is their value, 0 if there are none, UINT64_MAX if it is above that. */
size_t ir_number(ir_span text, uint64_t *out_number);
/* Characters at the beginning that a name has without quotes; words of the language are made of them, too. */
size_t ir_word_length(ir_span text);
/* From the quote that the text begins with to behind the next one: all of it, if there is none. */
size_t ir_string_length(ir_span text);
/* Of the name that follows a % or @ and begins here, quotes included; 0: none. *out_name is the name without quotes. */
size_t ir_name_length(ir_span text, ir_span *out_name);
/* The instruction of a line, from its opcode to the line's end. *out_result: the name of its result without % and quotes; {0}: none. */
ir_span ir_instruction(ir_span line, ir_span *out_result);

/* ---- brackets: ( [ { and <, which need not be told apart, as none is closed by another one's end in what clang writes ---- */
/* Of the item of a list that begins here: up to a comma, or to the closing bracket of the list, or all of the text. */
size_t ir_item_length(ir_span text);
/* From the opening bracket that the text begins with to behind the closing one; 0: it does not close, or none opens. */
size_t ir_brackets_length(ir_span text);
/* What is in the brackets that begin here; false when ir_brackets_length is 0. */
bool ir_bracketed(ir_span text, ir_span *out_inside);
/* Takes the next item, trimmed, and the comma behind it off `list`; false when only blanks are left. */
bool ir_next_item(ir_span *list, ir_span *out_item);
/* Behind the next comma that is in no brackets; empty: there is none. */
ir_span ir_behind_comma(ir_span text);

/* ---- types ---- */
/* Whether a type begins here. */
bool ir_type_starts(ir_span text);
/* Of the type that begins here; 0: none. */
size_t ir_type_length(ir_span text);
/* True for a scalar and void. *out_bits: what it takes in memory, but for integers, which have their own width; 0 for void. */
bool ir_scalar_bits(ir_span type, uint32_t *out_bits);
/* "[4 x float]" or "<4 x float>": 4 and float. False: no such type, or it has more than 1 << 24 elements. */
bool ir_sequence(ir_span type, uint64_t *out_count, ir_span *out_element);
/* Of a scalar or a vector of scalars, without what pads it; 0: another type. */
uint64_t ir_type_bits(ir_span type);

#endif
