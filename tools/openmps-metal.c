/* SPDX-License-Identifier: BSD-3-Clause
 *
 * openmps-metal: compiles Metal source ahead of time. The build runs it once a file and processor level, then once to link.
 *
 *   openmps-metal --clang C --include DIR [-I DIR] [--level L] [--depfile F] -o file.o file.metal
 *   openmps-metal --clang C --include DIR --link -o library.so file.o...
 *   openmps-metal --clang C --include DIR --check [--target T] [--std c++14] -o file.o file.metal
 *   openmps-metal --clang C --include DIR --user -o file.o file.metal          as sources of users are compiled at run time
 *
 * Beside each object stands <object>.kernels, a line "name flags" for each kernel; linking counts them and refuses a name used twice.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"
#include "base/status.h"
#include "shader/compiler.h"
#include "shader/process.h"

typedef struct arguments {
  const char *clang, *include, *core, *output;
  bool link, list;
  const char *includes[16];
  uint32_t include_count;
  const char **inputs;
  uint32_t input_count;
  mps_compile_options options;
} arguments;

/* The option's value, and one step further; NULL at the end. */
static const char *value(int count, char **words, int *i) { return *i + 1 < count ? words[++*i] : NULL; }

static bool parse(int count, char **words, arguments *out) {
  for (int i = 1; i < count; i++) {
    const char *word = words[i];
    const char **into = NULL;
    if (strcmp(word, "--clang") == 0) into = &out->clang;
    else if (strcmp(word, "--include") == 0) into = &out->include;
    else if (strcmp(word, "--core") == 0) into = &out->core;
    else if (strcmp(word, "-o") == 0) into = &out->output;
    else if (strcmp(word, "--level") == 0) into = &out->options.level;
    else if (strcmp(word, "--target") == 0) into = &out->options.target;
    else if (strcmp(word, "--std") == 0) into = &out->options.standard;
    else if (strcmp(word, "--depfile") == 0) into = &out->options.dependency_file;
    else if (strcmp(word, "-I") == 0 && out->include_count + 1 < sizeof out->includes / sizeof *out->includes)
      into = &out->includes[out->include_count++];
    else if (strcmp(word, "--link") == 0) out->link = true;
    else if (strcmp(word, "--list") == 0) out->list = true;
    else if (strcmp(word, "-O0") == 0 || strcmp(word, "-O1") == 0 || strcmp(word, "-fsyntax-only") == 0) out->options.optimization = word;
    else if (strcmp(word, "--user") == 0) out->options.ordered = out->options.lane_loops = true;
    else if (strcmp(word, "--check") == 0) out->options.mode = MPS_READER_CHECK;
    else if (word[0] == '-') return false;
    else out->inputs[out->input_count++] = word;
    if (into && !(*into = value(count, words, &i))) return false;
  }
  return out->clang && out->include && out->output && out->input_count > 0 && (out->link || out->input_count == 1);
}

static mps_status write_kernels(const char *object, const mps_reading *reading, bool show) {
  MPS_ARRAY(char) text = {0};
  char path[1100], line[640];
  snprintf(path, sizeof path, "%s.kernels", object);
  mps_status status = MPS_ARRAY_RESERVE(&text, 1);
  for (uint32_t i = 0; i < reading->kernel_count && status == MPS_STATUS_OK; i++) {
    int length = snprintf(line, sizeof line, "%s %u\n", reading->kernels[i].name, reading->kernels[i].flags);
    status = MPS_ARRAY_RESERVE(&text, (size_t)length);
    if (status != MPS_STATUS_OK) break;
    memcpy(text.items + text.count, line, (size_t)length);
    text.count += (size_t)length;
    if (show) fputs(line, stdout);
  }
  if (status == MPS_STATUS_OK) status = mps_file_write(path, text.items, text.count);
  MPS_ARRAY_FINI(&text);
  return status;
}

static mps_status compile(const mps_compiler *compiler, arguments *a) {
  mps_reading reading;
  char *text, *warnings;
  a->options.includes = a->includes;
  a->options.dependency_target = a->output;
  MPS_TRY(mps_compiler_compile(compiler, a->inputs[0], a->output, &a->options, &reading, &text, &warnings));
  if (warnings && warnings[0]) fprintf(stderr, "%s\n", warnings);
  mps_status status = write_kernels(a->output, &reading, a->list);
  mps_reading_free(&reading);
  free(text);
  free(warnings);
  return status;
}

/* Adds the kernels of one object to the count; a name that another object has is an error. */
static mps_status count_kernels(const char *object, mps_map *seen, uint32_t *count) {
  char path[1100], *text;
  size_t length;
  snprintf(path, sizeof path, "%s.kernels", object);
  MPS_TRY(mps_file_read(path, &text, &length));
  mps_status status = MPS_STATUS_OK;
  for (char *line = text; *line && status == MPS_STATUS_OK;) {
    size_t line_length = strcspn(line, "\n"), name_length = strcspn(line, " ");
    const char *other = mps_map_get(seen, line, name_length);
    if (other) status = mps_error_set(MPS_STATUS_COMPILE_ERROR, "error: the kernel '%.*s' is in %s and in %s", (int)name_length, line, other, object);
    else status = mps_map_set(seen, line, name_length, (void *)(uintptr_t)object);
    ++*count;
    line += line_length + (line[line_length] == '\n');
  }
  free(text);
  return status;
}

static mps_status link_library(const mps_compiler *compiler, const arguments *a) {
  mps_map seen = {0};
  uint32_t count = 0;
  mps_status status = MPS_STATUS_OK;
  for (uint32_t i = 0; i < a->input_count && status == MPS_STATUS_OK; i++) status = count_kernels(a->inputs[i], &seen, &count);
  if (status == MPS_STATUS_OK) status = mps_compiler_link(compiler, a->inputs, a->input_count, count, &a->options, a->output);
  mps_map_fini(&seen, NULL);
  return status;
}

int main(int count, char **words) {
  arguments a = {0};
  a.inputs = calloc((size_t)count, sizeof *a.inputs);
  if (!a.inputs || !parse(count, words, &a)) {
    fprintf(stderr, "usage: %s --clang CLANG --include DIR [--core DIR] [-I DIR] [--level LEVEL] [--target TARGET] [--std STD]\n"
                    "       [--depfile FILE] [--check | --user] [-O0 | -O1 | -fsyntax-only] [--list] -o OBJECT FILE.metal | --link -o LIBRARY OBJECT...\n", words[0]);
    free(a.inputs);
    return 2;
  }
  mps_compiler compiler;
  mps_status status = mps_compiler_set(&compiler, a.clang, a.include, a.core);
  if (status == MPS_STATUS_OK) status = a.link ? link_library(&compiler, &a) : compile(&compiler, &a);
  if (status != MPS_STATUS_OK) fprintf(stderr, "%s\n", mps_error_message());
  free(a.inputs);
  return status == MPS_STATUS_OK ? 0 : 1;
}
