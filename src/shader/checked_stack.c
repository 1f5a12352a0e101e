/* SPDX-License-Identifier: BSD-3-Clause
 *
 * checked_stack: which pointers of a function lead to its own variables. Those come from an alloca by constant or computed offsets, or
 * out of a variable that holds nothing else: what a parameter of an inlined function has become. All others count as unknown.
 */
#include <stdlib.h>
#include <string.h>

#include "shader/checked_internal.h"

#define NONE UINT32_MAX
#define MANY (UINT32_MAX - 1)

struct checked_stack {
  uint32_t count;   /* values are %0 to %count - 1; others have names, and are unknown */
  bool *owned;      /* a pointer to a variable */
  bool *holder;     /* a variable of type ptr, of which only the content is used */
  uint32_t *stored; /* the one value that is stored there; NONE, MANY */
};

/* The number of the value %N that begins here; NONE: no such value. */
static uint32_t value_at(ir_span text) {
  uint64_t number;
  if (text.length < 2 || text.at[0] != '%' || ir_number(ir_behind(text, 1), &number) == 0) return NONE;
  return number < MANY ? (uint32_t)number : NONE;
}

/* The instruction of a line, and its result. */
static ir_span instruction(ir_span line, uint32_t *out_result) {
  ir_span name;
  *out_result = value_at(ir_behind_blanks(line)); /* %"5" is not %5 */
  return ir_instruction(line, &name);
}

/* Notes what a line does to holders. */
static void look(checked_stack *stack, ir_span line) {
  uint32_t result, value = NONE, place = NONE;
  ir_span what = instruction(line, &result);
  size_t behind_value = 0;
  if (ir_starts(what, "store ptr ")) {
    behind_value = 10 + ir_item_length(ir_behind(what, 10));
    ir_span comma = ir_behind(what, behind_value);
    if (ir_starts(comma, ", ptr ")) {
      place = value_at(ir_behind(comma, 6));
      value = value_at(ir_behind(what, 10));
    }
  } else if (ir_starts(what, "load ptr, ptr ")) {
    place = value_at(ir_behind(what, 14));
  } else if (ir_starts(what, "call void @llvm.lifetime.")) {
    return;
  }
  if (place < stack->count && ir_starts(what, "store"))
    stack->stored[place] = stack->stored[place] == NONE && value < stack->count ? value : MANY;
  bool skipped = place == NONE; /* its place is no escape, but a second mention is */
  for (size_t i = 0; i < what.length; i++) {
    uint32_t number = value_at(ir_behind(what, i));
    if (number >= stack->count) continue;
    if (number == place && !skipped && i >= behind_value) skipped = true;
    else stack->holder[number] = false;
  }
}

static uint32_t count_values(ir_span lines) {
  uint32_t most = 0;
  for (size_t i = 0; i < lines.length; i++) {
    uint32_t number = value_at(ir_behind(lines, i));
    if (number != NONE && number >= most && number < (1u << 24)) most = number + 1;
  }
  return most;
}

checked_stack *checked_stack_create(ir_span lines) {
  checked_stack *stack = calloc(1, sizeof *stack);
  if (!stack) return NULL;
  stack->count = count_values(lines);
  size_t count = stack->count ? stack->count : 1;
  stack->owned = calloc(count, sizeof *stack->owned);
  stack->holder = calloc(count, sizeof *stack->holder);
  stack->stored = malloc(count * sizeof *stack->stored);
  if (!stack->owned || !stack->holder || !stack->stored) {
    checked_stack_free(stack);
    return NULL;
  }
  memset(stack->stored, 0xFF, count * sizeof *stack->stored);
  ir_span line;
  for (ir_span rest = lines; ir_next_line(&rest, &line);) {
    uint32_t result;
    ir_span what = instruction(line, &result);
    if (result < stack->count && ir_starts(what, "alloca ptr,")) stack->holder[result] = true;
  }
  for (ir_span rest = lines; ir_next_line(&rest, &line);) look(stack, line);
  return stack;
}

void checked_stack_free(checked_stack *stack) {
  if (!stack) return;
  free(stack->owned);
  free(stack->holder);
  free(stack->stored);
  free(stack);
}

void checked_stack_line(checked_stack *stack, ir_span line) {
  uint32_t result, from = NONE;
  ir_span what = instruction(line, &result);
  if (result >= stack->count) return;
  if (ir_starts(what, "alloca ")) {
    stack->owned[result] = true;
  } else if (ir_starts(what, "getelementptr ")) {
    from = value_at(ir_behind(what, ir_find(what, ", ptr ") + 6));
    stack->owned[result] = from < stack->count && stack->owned[from];
  } else if (ir_starts(what, "load ptr, ptr ")) {
    uint32_t place = value_at(ir_behind(what, 14));
    if (place < stack->count && stack->holder[place]) from = stack->stored[place];
    stack->owned[result] = from < stack->count && stack->owned[from];
  }
}

bool checked_stack_owns(const checked_stack *stack, ir_span pointer) {
  uint32_t number = value_at(pointer);
  return number < stack->count && stack->owned[number];
}
