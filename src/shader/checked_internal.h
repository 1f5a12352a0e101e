/* SPDX-License-Identifier: BSD-3-Clause
 *
 * checked_internal: what the files of checked.h share. Spans are borrowed from the module's text.
 */
#ifndef OPENMPS_SHADER_CHECKED_INTERNAL_H
#define OPENMPS_SHADER_CHECKED_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "shader/ir_text.h"

/* Lines !0, !1, ... by number; empty: none. */
typedef MPS_ARRAY(ir_span) checked_metadata;
MPS_WARN_UNUSED mps_status checked_metadata_read(ir_span text, checked_metadata *out);

/* Where code comes from. */
typedef struct checked_place {
  ir_span file;   /* as in the source's #line */
  uint32_t line;  /* 0: no line of the user's */
  bool machinery; /* what makes threads meet, in <metal_compute>: not to be checked */
} checked_place;

typedef struct checked_folders {
  const char *include, *include_core;
} checked_folders;
/* Of the location `number`. */
checked_place checked_find_place(const checked_metadata *metadata, const checked_folders *folders, uint32_t number);

/* ---- pointers that are to the thread's own variables ---- */
typedef struct checked_stack checked_stack;
/* For the function with these lines. NULL: no memory. */
checked_stack *checked_stack_create(ir_span lines);
void checked_stack_free(checked_stack *stack); /* accepts NULL */
/* Looks at the next line. */
void checked_stack_line(checked_stack *stack, ir_span line);
bool checked_stack_owns(const checked_stack *stack, ir_span pointer);

#endif
