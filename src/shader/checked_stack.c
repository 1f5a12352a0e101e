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

/* The number of the value %N at `p`; NONE: no such value. */
static uint32_t value_at(const char *p) {
  if (*p != '%' || p[1] < '0' || p[1] > '9') return NONE;
  return (uint32_t)strtoul(p + 1, NULL, 10);
}

static const char *next_line(const char *p, const char *end) {
  const char *line = memchr(p, '\n', (size_t)(end - p));
  return line ? line + 1 : end;
}

static bool begins(const char *p, const char *what) { return strncmp(p, what, strlen(what)) == 0; }

/* The instruction of a line, and its result. */
static const char *instruction(const char *line, uint32_t *out_result) {
  while (*line == ' ') line++;
  *out_result = value_at(line);
  if (*line != '%') return line;
  while (*line != ' ' && *line != '\n') line++;
  return begins(line, " = ") ? line + 3 : line;
}

/* Notes what a line does to holders. */
static void look(checked_stack *stack, const char *line, const char *end) {
  uint32_t result, value = NONE, place = NONE;
  const char *what = instruction(line, &result);
  if (begins(what, "store ptr ")) {
    const char *comma = checked_skip(what + 10);
    if (begins(comma, ", ptr ")) {
      place = value_at(comma + 6);
      value = value_at(what + 10);
    }
  } else if (begins(what, "load ptr, ptr ")) {
    place = value_at(what + 14);
  } else if (begins(what, "call void @llvm.lifetime.")) {
    return;
  }
  if (place < stack->count && begins(what, "store"))
    stack->stored[place] = stack->stored[place] == NONE && value < stack->count ? value : MANY;
  bool skipped = place == NONE; /* its place is no escape, but a second mention is */
  for (const char *p = what; p < end; p++) {
    uint32_t number = *p == '%' ? value_at(p) : NONE;
    if (number >= stack->count) continue;
    if (number == place && !skipped && (begins(what, "load") || p > checked_skip(what + 10))) skipped = true;
    else stack->holder[number] = false;
  }
}

static uint32_t count_values(const char *begin, const char *end) {
  uint32_t most = 0;
  for (const char *p = begin; p < end; p++) {
    uint32_t number = *p == '%' ? value_at(p) : NONE;
    if (number != NONE && number >= most && number < (1u << 24)) most = number + 1;
  }
  return most;
}

checked_stack *checked_stack_create(const char *begin, const char *end) {
  checked_stack *stack = calloc(1, sizeof *stack);
  if (!stack) return NULL;
  stack->count = count_values(begin, end);
  size_t count = stack->count ? stack->count : 1;
  stack->owned = calloc(count, sizeof *stack->owned);
  stack->holder = calloc(count, sizeof *stack->holder);
  stack->stored = malloc(count * sizeof *stack->stored);
  if (!stack->owned || !stack->holder || !stack->stored) {
    checked_stack_free(stack);
    return NULL;
  }
  memset(stack->stored, 0xFF, count * sizeof *stack->stored);
  for (const char *line = begin; line < end; line = next_line(line, end)) {
    uint32_t result;
    const char *what = instruction(line, &result);
    if (result < stack->count && begins(what, "alloca ptr,")) stack->holder[result] = true;
  }
  for (const char *line = begin; line < end; line = next_line(line, end)) look(stack, line, next_line(line, end));
  return stack;
}

void checked_stack_free(checked_stack *stack) {
  if (!stack) return;
  free(stack->owned);
  free(stack->holder);
  free(stack->stored);
  free(stack);
}

void checked_stack_line(checked_stack *stack, const char *line, const char *end) {
  uint32_t result, from = NONE;
  const char *what = instruction(line, &result);
  if (result >= stack->count) return;
  if (begins(what, "alloca ")) {
    stack->owned[result] = true;
  } else if (begins(what, "getelementptr ")) {
    const char *base = strstr(what, ", ptr ");
    if (base && base < end) from = value_at(base + 6);
    stack->owned[result] = from < stack->count && stack->owned[from];
  } else if (begins(what, "load ptr, ptr ")) {
    uint32_t place = value_at(what + 14);
    if (place < stack->count && stack->holder[place]) from = stack->stored[place];
    stack->owned[result] = from < stack->count && stack->owned[from];
  }
}

bool checked_stack_owns(const checked_stack *stack, checked_span pointer) {
  uint32_t number = value_at(pointer.text);
  return number < stack->count && stack->owned[number];
}
