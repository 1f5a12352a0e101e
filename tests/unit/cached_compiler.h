/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cached_compiler: a cache in a temporary folder, and a compiler whose calls are counted. Each test program has its own.
 */
#ifndef OPENMPS_TESTS_CACHED_COMPILER_H
#define OPENMPS_TESTS_CACHED_COMPILER_H

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/options.h"
#include "openmps/library.h"
#include "shader/cache.h"
#include "shader/process.h"
#include "test.h"

static char root[200];     /* a temporary folder */
static char directory[260]; /* the cache in it */

static inline void remove_all(const char *path) {
  DIR *folder = opendir(path);
  for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
    char inner[1400];
    if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
    if (snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name) >= (int)sizeof inner) continue;
    if (unlink(inner) != 0) remove_all(inner);
  }
  if (folder) closedir(folder);
  rmdir(path);
}

static inline uint64_t entries(void) {
  mps_shader_cache_info info;
  mps_shader_cache_get_info(&info);
  return info.entries;
}

/* An empty cache. */
static inline mps_cache fresh(void) {
  mps_cache cache;
  remove_all(directory);
  CHECK(mps_cache_open(&cache));
  CHECK_STRING(cache.path, directory);
  CHECK_INT(entries(), 0);
  return cache;
}

/* ---- compiling ---- */
static mps_device *device;
static char calls[300]; /* the compiler's wrapper adds a line to it for each call */

/* A program called zig that counts its calls and is the real compiler then. */
static inline void wrap_compiler(void) {
  char path[300], text[2400];
  const char *real = mps_option_string(MPS_OPTION_CLANG);
  const char *base = strrchr(real, '/');
  snprintf(calls, sizeof calls, "%s/calls", root);
  snprintf(path, sizeof path, "%s/%s", root, base ? base + 1 : "zig");
  int length = snprintf(text, sizeof text, "#!/bin/sh\necho call >> '%s'\nexec '%s' \"$@\"\n", calls, real);
  CHECK_OK(mps_file_write(path, text, (size_t)length));
  CHECK(chmod(path, 0700) == 0);
  mps_option_set(MPS_OPTION_CLANG, path);
}

/* Compiles, looks at the kernels, and tells how many times the compiler was started. */
static inline int compile_named(const char *text, const char *name) {
  mps_library *library = NULL;
  remove(calls);
  CHECK_OK(mps_library_compile(device, text, name, &library));
  if (!library) return -1;
  CHECK_INT(mps_library_function_count(library), 1);
  CHECK_STRING(mps_library_function_name(library, 0), "f");
  mps_library_release(library);
  char *lines;
  size_t length;
  if (access(calls, F_OK) != 0) return 0;
  CHECK_OK(mps_file_read(calls, &lines, &length));
  free(lines);
  return (int)(length / 5);
}

static inline int compile(const char *text) { return compile_named(text, NULL); }

/* An entry whose name ends so; "" if there is none. */
static inline void find_entry(const char *suffix, char *out, size_t capacity) {
  DIR *folder = opendir(directory);
  out[0] = 0;
  for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
    size_t length = strlen(entry->d_name), end = strlen(suffix);
    if (length > end && !strcmp(entry->d_name + length - end, suffix)) snprintf(out, capacity, "%s/%s", directory, entry->d_name);
  }
  if (folder) closedir(folder);
}

static inline void flip(const char *path, off_t at) {
  int fd = open(path, O_RDWR | O_CLOEXEC);
  char byte = 0;
  CHECK(fd >= 0 && pread(fd, &byte, 1, at) == 1);
  byte = (char)(byte ^ 0x40);
  CHECK(pwrite(fd, &byte, 1, at) == 1);
  close(fd);
}

#endif
