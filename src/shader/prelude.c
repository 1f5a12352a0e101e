/* SPDX-License-Identifier: BSD-3-Clause
 *
 * prelude: the rewritten source is cut where the user's text begins. The key of what precedes is a hash over that very text and the command line,
 * so nothing is assumed of how it came about. clang wants the text of a precompiled header to stay where it was: it is an entry of its own.
 */
#include "shader/prelude.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/options.h"
#include "base/status.h"
#include "base/time.h"
#include "shader/process.h"

#define MAX_ARGUMENTS 112
#define LEAST_CACHE (64ll << 20) /* bytes; in a smaller one preludes, of 2 MB each, would push out what they are for */

/* A command line, and places in it. */
typedef struct command {
  const char *const *arguments;
  uint32_t language; /* of "c++" */
  uint32_t include;  /* of "-include": its file is in the precompiled header */
  uint32_t tail;     /* of -c (or -S) -o OBJECT INPUT, its end */
} command;

/* A rewritten source. */
typedef struct source {
  char *text;
  size_t length;
  size_t begin, end; /* of the prelude */
} source;

/* ---- taking apart ---- */
/* How many arguments at `index` only make clang tell more. */
static uint32_t talk(const command *c, uint32_t index) {
  if (strncmp(c->arguments[index], "-Rpass", 6) == 0) return 1;
  return strcmp(c->arguments[index], "-mllvm") == 0 && strncmp(c->arguments[index + 1], "-print-", 7) == 0 ? 2 : 0;
}

/* False for a command that this file does not know. */
static bool take_apart(const char *const *arguments, command *out) {
  *out = (command){.arguments = arguments};
  uint32_t count = 0;
  for (; arguments[count]; count++) {
    if (strcmp(arguments[count], "-x") == 0 && arguments[count + 1] && strcmp(arguments[count + 1], "c++") == 0) out->language = count + 1;
    if (strcmp(arguments[count], "-include") == 0) out->include = count;
    /* entries that run thread by thread are the source's own */
    if (strncmp(arguments[count], "-DMPS_HOST_SERIAL=", 18) == 0 && arguments[count][18]) return false;
  }
  if (count < 4 || count + 4 > MAX_ARGUMENTS || !out->language || !out->include) return false;
  out->tail = count - 4;
  bool compiles = strcmp(arguments[out->tail], "-c") == 0 || strcmp(arguments[out->tail], "-S") == 0;
  return compiles && strcmp(arguments[out->tail + 1], "-o") == 0 && out->include + 1 < out->tail;
}

/* The first line names the source; it comes again where what was included in front of it ends. */
static bool cut(source *s) {
  char mark[1200];
  size_t line = strcspn(s->text, "\n");
  int length = snprintf(mark, sizeof mark, "\n%.*s 2\n", (int)line, s->text);
  if (strncmp(s->text, "# 1 \"", 5) != 0 || length < 0 || (size_t)length >= sizeof mark) return false;
  const char *at = strstr(s->text, mark);
  if (!at) return false;
  s->begin = line + 1;
  s->end = (size_t)(at + 1 - s->text);
  s->text[s->end + (size_t)length - 3] = ' '; /* the 2: it returns from an inclusion, and there is none any more */
  return s->begin < s->end;
}

static mps_cache_key make_key(const mps_prelude *prelude, const command *c, const source *s) {
  mps_blake2 hash;
  mps_blake2_begin(&hash);
  mps_blake2_add_string(&hash, "prelude");
  mps_blake2_add_string(&hash, prelude->circumstances.text);
  mps_blake2_add_string(&hash, prelude->cache->path); /* the header knows where its text lies */
  for (uint32_t i = 0; i < c->tail;) {
    uint32_t skipped = talk(c, i);
    if (!skipped) mps_blake2_add_string(&hash, c->arguments[i]);
    i += skipped ? skipped : 1;
  }
  mps_blake2_add(&hash, s->text + s->begin, s->end - s->begin);
  return mps_cache_key_end(&hash);
}

/* ---- making ---- */
static bool add_text(const mps_prelude *prelude, const mps_cache_key *key, const source *s) {
  static const char back[] = "# 1 \"prelude\" 2\n";
  size_t length = s->end - s->begin;
  char *text = malloc(length + sizeof back);
  if (!text) return false;
  memcpy(text, s->text + s->begin, length);
  memcpy(text + length, back, sizeof back);
  bool added = mps_cache_add(prelude->cache, key, MPS_CACHE_PRELUDE_TEXT, text, length + sizeof back - 1);
  free(text);
  return added;
}

/* Compiles the entry with the text to `output`. */
static bool precompile(const mps_prelude *prelude, const mps_cache_key *key, const command *c, const char *output, uint32_t timeout_ms) {
  const char *arguments[MAX_ARGUMENTS + 8];
  char input[1024], *said = NULL;
  uint32_t count = 0;
  int code = -1;
  mps_cache_path(prelude->cache, key, MPS_CACHE_PRELUDE_TEXT, input, sizeof input);
  for (uint32_t i = 0; i < c->tail;) {
    uint32_t skipped = talk(c, i);
    if (!skipped) arguments[count++] = i == c->language ? "c++-header" : c->arguments[i];
    i += skipped ? skipped : 1;
  }
  const char *const rest[] = {"-Xclang", "-fno-pch-timestamp", "-o", output, input, NULL}; /* the text may be written again, as it was */
  memcpy(arguments + count, rest, sizeof rest);
  bool made = mps_process_run(arguments, timeout_ms, &said, &code) == MPS_STATUS_OK && code == 0;
  if (!made) MPS_LOG(SHADER, DEBUG, "the standard library cannot be precompiled: %s", said ? said : mps_error_message());
  free(said);
  return made;
}

static bool make(const mps_prelude *prelude, const mps_cache_key *key, const command *c, uint32_t timeout_ms) {
  static _Atomic uint64_t failed; /* the beginning of a key: a compiler that cannot do it is asked once */
  uint64_t beginning;
  memcpy(&beginning, key->text, sizeof beginning);
  if (atomic_load_explicit(&failed, memory_order_relaxed) == beginning) return false;
  char output[1100], *contents = NULL;
  size_t length;
  snprintf(output, sizeof output, "%s.pch", c->arguments[c->tail + 2]);
  bool made = precompile(prelude, key, c, output, timeout_ms) && mps_file_read(output, &contents, &length) == MPS_STATUS_OK;
  if (!made) atomic_store_explicit(&failed, beginning, memory_order_relaxed);
  bool added = made && mps_cache_add(prelude->cache, key, MPS_CACHE_PRELUDE, contents, length);
  free(contents);
  return added;
}

/* Both entries, whole; false if they cannot be had. */
static bool have(const mps_prelude *prelude, const mps_cache_key *key, const command *c, const source *s, uint32_t timeout_ms) {
  if (!mps_cache_find(prelude->cache, key, MPS_CACHE_PRELUDE_TEXT, NULL, 0) && !add_text(prelude, key, s)) return false;
  return mps_cache_find(prelude->cache, key, MPS_CACHE_PRELUDE, NULL, 0) || make(prelude, key, c, timeout_ms);
}

/* ---- using ---- */
/* The command without the prelude's text. The user's part takes the file's name: it is in the object. */
static mps_status run_short(const mps_prelude *prelude, const mps_cache_key *key, const command *c, const source *s, uint32_t timeout_ms,
                            char **out_text, int *out_code) {
  const char *arguments[MAX_ARGUMENTS], *input = c->arguments[c->tail + 3];
  char whole[1200], header[1024];
  snprintf(whole, sizeof whole, "%s.whole", input);
  mps_cache_path(prelude->cache, key, MPS_CACHE_PRELUDE, header, sizeof header);
  uint32_t count = 0;
  for (; c->arguments[count]; count++) arguments[count] = c->arguments[count];
  arguments[count] = NULL;
  arguments[c->include] = "-include-pch";
  arguments[c->include + 1] = header;
  if (rename(input, whole) != 0) return mps_error_set(MPS_STATUS_SYSTEM_ERROR, "%s cannot be renamed", input);
  mps_status status = mps_file_write(input, s->text + s->end, s->length - s->end);
  if (status == MPS_STATUS_OK) status = mps_process_run(arguments, timeout_ms, out_text, out_code);
  if (rename(whole, input) == 0) return status;
  if (status == MPS_STATUS_OK) free(*out_text);
  *out_text = NULL;
  return mps_error_set(MPS_STATUS_SYSTEM_ERROR, "%s cannot be renamed", whole);
}

static bool try_short(const mps_prelude *prelude, const command *c, source *s, uint32_t timeout_ms, mps_cache_key *out_key, char **out_text,
                      bool *out_tried) {
  if (mps_file_read(c->arguments[c->tail + 3], &s->text, &s->length) != MPS_STATUS_OK || !cut(s)) return false;
  *out_key = make_key(prelude, c, s);
  if (!have(prelude, out_key, c, s, timeout_ms)) return false;
  int code = -1;
  *out_tried = true;
  if (run_short(prelude, out_key, c, s, timeout_ms, out_text, &code) == MPS_STATUS_OK && code == 0) return true;
  free(*out_text);
  *out_text = NULL;
  return false;
}

mps_status mps_prelude_run(void *context, const char *const *arguments, uint32_t timeout_ms, char **out_text, int *out_code) {
  const mps_prelude *prelude = context;
  command c;
  source s = {0};
  mps_cache_key key;
  bool tried = false;
  *out_text = NULL;
  *out_code = 0;
  if (mps_option_int(MPS_OPTION_CACHE_SIZE) >= LEAST_CACHE && take_apart(arguments, &c)) {
    uint64_t begin = mps_time_ns();
    bool done = try_short(prelude, &c, &s, timeout_ms, &key, out_text, &tried);
    free(s.text);
    if (done) return MPS_STATUS_OK;
    if (mps_time_ns() - begin >= (uint64_t)timeout_ms * 1000000) return mps_error_set(MPS_STATUS_SYSTEM_ERROR, "%s took too long", arguments[0]);
  }
  MPS_TRY(mps_process_run(arguments, timeout_ms, out_text, out_code));
  if (tried && *out_code == 0) { /* so it is not the user's text that is wrong */
    MPS_LOG(SHADER, WARNING, "the precompiled standard library %s does not work: it is removed and made again", key.text);
    mps_cache_remove(prelude->cache, &key, MPS_CACHE_PRELUDE);
    mps_cache_remove(prelude->cache, &key, MPS_CACHE_PRELUDE_TEXT);
  }
  return MPS_STATUS_OK;
}
