/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fuzz_reader: arbitrary bytes as a preprocessed shader. The reader accepts or refuses them with a place, keeps every line where it is, and
 * tells a column for every place of its output.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "shader/reader.h"

static const char *const words[] = {
    "kernel ", "template <typename T> ", "template ", "[[buffer(0)]]", "[[host_name(\"a\")]]", "[[kernel]]", "[[function_constant(0)]]",
    "[[max_total_threads_per_threadgroup(8)]]", "[[thread_position_in_grid]]", "[[threadgroup(0)]]", "threadgroup ", "device ", "constant ",
    "void f(device int *a) { }", "kernel void f(device T *a) { }", "f<int>(device int *);", "decltype(f<int>) f<int>;", "struct s { ", "namespace n { ",
    "extern \"C\" {", "typedef ", "using t = s;", "operator", "threadgroup_barrier(x);", "simd_sum(x)", "is_function_constant_defined(c)",
    "\n# 1 \"a.metal\"\n", "\n# 4294967295 \"b\" 1 3\n", "#pragma x\n", "R\"(", "R\"x(", ")x\"", "\"", "'", "\\", "\\\n", "/*", "*/", "//", "\n", "0x1.8p3",
    "1.0h", "1bf", "1e+", "1'000.", ".5", "::", "->", "<<", ">", "<", "=", ";", ",", "(", ")", "[", "]", "[[", "]]", "{", "}", "*", "&", ":", NULL};

static size_t count_lines(const char *text, size_t length) {
  size_t lines = 0;
  for (size_t i = 0; i < length; i++) lines += text[i] == '\n';
  return lines;
}

static bool broken(const char *what, uint32_t at) {
  fprintf(stderr, "%s (at %u)\n", what, at);
  return false;
}

/* Tokens follow each other in the text, each on the line that it says. */
static bool tokens_are_placed(const mps_token_list *list) {
  for (uint32_t i = 0; i < list->count; i++) {
    const mps_token *t = &list->tokens[i];
    if (t->length == 0 || t->start + t->length > list->tokens[i + 1].start) return broken("tokens overlap", t->start);
    if (list->lines[t->line].start > t->start) return broken("a token begins before its line", t->start);
    if (t->line + 1 < list->line_count && list->lines[t->line + 1].start <= t->start) return broken("a token begins behind its line", t->start);
  }
  return true;
}

static bool reading_holds(const mps_reading *reading, const char *text, size_t length) {
  if (reading->output[reading->length] != 0) return broken("the output has no end", (uint32_t)reading->length);
  if (count_lines(text, length) != count_lines(reading->output, reading->length)) return broken("the output has other lines", 0);
  for (uint32_t i = 0; i < reading->kernel_count; i++)
    if (!reading->kernels[i].name) return broken("a kernel has no name", i);
  if (reading->tokens.line_count != count_lines(text, length) + 1) return broken("not every line is in the table", reading->tokens.line_count);
  return tokens_are_placed(&reading->tokens);
}

static void ask_columns(const mps_reading *reading, const char *source_line) {
  static const uint32_t columns[] = {1, 17, 90, 4000};
  for (uint32_t i = 0; i < 4; i++) {
    const mps_text_line *line = &reading->tokens.lines[(uint64_t)reading->tokens.line_count * i / 4];
    const char *file = reading->tokens.files[line->file];
    (void)mps_reading_column(reading, file, line->number, columns[i], source_line);
    (void)mps_reading_column(reading, file, line->number, columns[3 - i], NULL);
  }
}

static bool run(const uint8_t *data, size_t length) {
  const char *text = (const char *)data;
  char *source_line = strndup(text, length < 300 ? length : 300);
  if (!source_line) abort();
  bool holds = true;
  for (int mode = 0; mode < 2 && holds; mode++) {
    const mps_reader_options options = {.mode = mode ? MPS_READER_CHECK : MPS_READER_HOST};
    mps_reading reading = {0};
    const mps_status status = mps_reader_read(text, length, &options, &reading);
    if (status == MPS_STATUS_OK) {
      holds = reading_holds(&reading, text, length);
      ask_columns(&reading, source_line);
    } else if (status != MPS_STATUS_COMPILE_ERROR || !strstr(mps_error_message(), ": error: ")) {
      holds = broken(mps_error_message(), 0);
    }
    mps_reading_free(&reading);
  }
  free(source_line);
  return holds;
}

int main(int argc, char **argv) {
  const fuzz_target target = {.name = "reader", .run = run, .words = words, .most = FUZZ_MAX_LENGTH};
  return fuzz_main(argc, argv, &target);
}
