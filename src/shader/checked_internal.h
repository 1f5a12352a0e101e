/* SPDX-License-Identifier: BSD-3-Clause
 *
 * checked_internal: what the files of checked.h share. Texts are borrowed from the module's.
 */
#ifndef OPENMPS_SHADER_CHECKED_INTERNAL_H
#define OPENMPS_SHADER_CHECKED_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"

typedef MPS_ARRAY(char) checked_text;

/* A piece of the module's text. */
typedef struct checked_span {
  const char *text;
  size_t length;
} checked_span;

static inline checked_span checked_between(const char *begin, const char *end) {
  return (checked_span){begin, (size_t)(end - begin)};
}

/* Lines !0, !1, ... by number; NULL: none. */
typedef MPS_ARRAY(const char *) checked_metadata;
MPS_WARN_UNUSED mps_status checked_metadata_read(const char *text, checked_metadata *out);

/* Where code comes from. */
typedef struct checked_place {
  checked_span file; /* as in the source's #line */
  uint32_t line;     /* 0: no line of the user's */
  bool machinery;    /* what makes threads meet, in <metal_compute>: not to be checked */
} checked_place;

typedef struct checked_folders {
  const char *include, *include_core;
} checked_folders;
/* Of the location `number`. */
checked_place checked_find_place(const checked_metadata *metadata, const checked_folders *folders, uint32_t number);

/* ---- text ---- */
MPS_WARN_UNUSED mps_status checked_add(checked_text *out, const char *text, size_t length);
MPS_WARN_UNUSED mps_status checked_print(checked_text *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Behind the type, the value or the parameter that begins at `p`: at a comma, a closing bracket or the end of the line. */
const char *checked_skip(const char *p);
/* Behind the type that begins at `p`, spaces included. */
const char *checked_skip_type(const char *p);
/* Bytes of the type, as a constant of type i64. */
MPS_WARN_UNUSED mps_status checked_print_bytes(checked_text *out, checked_span type);

/* ---- pointers that are to the thread's own variables ---- */
typedef struct checked_stack checked_stack;
/* For the function whose lines are [begin, end). NULL: no memory. */
checked_stack *checked_stack_create(const char *begin, const char *end);
void checked_stack_free(checked_stack *stack); /* accepts NULL */
/* Looks at the next line. */
void checked_stack_line(checked_stack *stack, const char *line, const char *end);
bool checked_stack_owns(const checked_stack *stack, checked_span pointer);

#endif
