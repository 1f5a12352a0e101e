/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_prelude: with the standard library precompiled the same code comes out, and the same messages; what is damaged, changed or cannot be kept
 * costs time and nothing else. Needs a clang (OPENMPS_CLANG).
 */
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>

#include "cached_compiler.h"
#include "shader/compiler.h"

extern char **environ;

static const char *program;
static const char source[] = "kernel void f(device float *out, uint i [[thread_position_in_grid]]) { out[i] = 1.0; }\n";

/* The compiler's calls for a source that is not cached: preprocessing, compiling, linking; with a prelude that is not there, making it. */
enum { PLAIN = 3, MAKING = 4 };

/* A source that was not compiled before. */
static int compile_new(const char *body) {
  static int number;
  char text[400];
  snprintf(text, sizeof text, "kernel void f(device float *out, uint i [[thread_position_in_grid]]) { out[i] = %d.0; %s }\n", ++number, body);
  return compile(text);
}

static void precompiles_once(void) {
  fresh();
  CHECK_INT(compile_new(""), MAKING);
  CHECK_INT(compile_new(""), PLAIN);
  CHECK_INT(compile_new("metal::threadgroup_barrier(metal::mem_flags::mem_none);"), MAKING + 1); /* other options, and a step more */
  CHECK_INT(compile_new("metal::threadgroup_barrier(metal::mem_flags::mem_none);"), PLAIN + 1);
  CHECK_INT(compile_new(""), PLAIN);
  mps_option_set(MPS_OPTION_FAST_MATH, "1");
  CHECK_INT(compile_new(""), MAKING);
  mps_option_set(MPS_OPTION_FAST_MATH, "0");
  mps_option_set(MPS_OPTION_CACHE, "0");
  CHECK_INT(compile_new(""), PLAIN);
  mps_option_set(MPS_OPTION_CACHE, "1");
}

static void compiles_the_same_with_it(void) {
  static const char *const sources[] = {
    "#include <metal_stdlib>\nusing namespace metal;\nkernel void f(device float *o, uint i [[thread_position_in_grid]]) { o[i] = sin(o[i]) * M_PI_F; }\n",
    "kernel void f(device float *o, threadgroup float *t [[threadgroup(0)]], uint i [[thread_position_in_threadgroup]]) {\n"
    "  t[i] = o[i]; metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup); o[i] = metal::simd_sum(t[i ^ 1]); }\n",
    "kernel void f(device float *o, device int *at, uint i [[thread_position_in_grid]]) {\n" /* memory of a thread */
    "  float p[8]; for (int k = 0; k < 8; k++) p[k] = o[i * 8 + k]; o[i] = p[at[i] & 7]; }\n",
  };
  for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
    char path[600], *with = NULL, *without = NULL;
    size_t with_length = 0, without_length = 0;
    fresh();
    CHECK(compile(sources[i]) >= MAKING);
    find_entry(".so", path, sizeof path);
    CHECK_OK(mps_file_read(path, &with, &with_length));
    fresh();
    mps_option_set(MPS_OPTION_CACHE_SIZE, "1000000"); /* too small for preludes */
    CHECK(compile(sources[i]) >= PLAIN);
    find_entry(".pch", path, sizeof path);
    CHECK_STRING(path, "");
    find_entry(".so", path, sizeof path);
    CHECK_OK(mps_file_read(path, &without, &without_length));
    CHECK(with_length == without_length && with && without && memcmp(with, without, with_length) == 0);
    mps_option_set(MPS_OPTION_CACHE_SIZE, NULL);
    free(with);
    free(without);
  }
}

static void precompiles_again_what_is_damaged(void) {
  fresh();
  char path[600];
  CHECK_INT(compile_new(""), MAKING);
  find_entry(".pch", path, sizeof path);
  flip(path, 100000);
  CHECK_INT(compile_new(""), MAKING);
  CHECK_INT(compile_new(""), PLAIN);
  CHECK(truncate(path, 1000) == 0);
  CHECK_INT(compile_new(""), MAKING);
  CHECK(remove(path) == 0);
  CHECK_INT(compile_new(""), MAKING);
  find_entry(".hpp", path, sizeof path);
  flip(path, 1000);
  CHECK_INT(compile_new(""), PLAIN); /* the text is here anyway */
  CHECK(remove(path) == 0);
  CHECK_INT(compile_new(""), PLAIN);
  /* sealed, and no header: compiled the plain way, and gone */
  find_entry(".pch", path, sizeof path);
  mps_cache_key key;
  mps_cache cache;
  CHECK(mps_cache_open(&cache));
  snprintf(key.text, sizeof key.text, "%s", strrchr(path, '/') + 1);
  CHECK(mps_cache_add(&cache, &key, MPS_CACHE_PRELUDE, "CPCHxxxx", 8));
  CHECK_INT(compile_new(""), PLAIN + 1);
  find_entry(".pch", path, sizeof path);
  CHECK_STRING(path, "");
  CHECK_INT(compile_new(""), MAKING);
  CHECK_INT(compile_new(""), PLAIN);
}

static void tells_the_same_errors(void) {
  static const char wrong[] = "#define TWICE(x) x x\n\nkernel void f(device float *out) {\n  out[0] = TWICE(1.0 +) unknown;\n}\n";
  char told[2][2000];
  for (int cached = 0; cached < 2; cached++) {
    fresh();
    if (!cached) mps_option_set(MPS_OPTION_CACHE, "0");
    if (cached) CHECK_INT(compile_new(""), MAKING);
    mps_library *library = NULL;
    CHECK_STATUS(mps_library_compile(device, wrong, NULL, &library), MPS_STATUS_COMPILE_ERROR);
    snprintf(told[cached], sizeof told[cached], "%s", mps_error_message());
    mps_option_set(MPS_OPTION_CACHE, "1");
    if (cached) CHECK_INT(compile_new(""), PLAIN); /* the prelude is not what was wrong */
  }
  CHECK(strstr(told[0], "program_source:4:25: error: ") != NULL);
  CHECK_STRING(told[0], told[1]);
}

static void copy_folder(const char *from, const char *to) {
  CHECK(mkdir(to, 0700) == 0);
  DIR *folder = opendir(from);
  for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
    char inner[600], copy[600], *text;
    size_t length;
    struct stat state;
    snprintf(inner, sizeof inner, "%s/%s", from, entry->d_name);
    snprintf(copy, sizeof copy, "%s/%s", to, entry->d_name);
    if (entry->d_name[0] == '.' || stat(inner, &state) != 0) continue;
    if (S_ISDIR(state.st_mode)) {
      copy_folder(inner, copy);
      continue;
    }
    CHECK_OK(mps_file_read(inner, &text, &length));
    CHECK_OK(mps_file_write(copy, text, length));
    free(text);
  }
  if (folder) closedir(folder);
}

/* Headers of the installation are known without being read; what changes one is seen all the same. */
static void sees_changes_of_headers(void) {
  fresh();
  char before[500], kernels[300], folder[400], header[500], inner[500];
  mps_compiler compiler;
  CHECK_OK(mps_compiler_find(&compiler));
  snprintf(before, sizeof before, "%s", mps_option_string(MPS_OPTION_KERNEL_PATH));
  snprintf(kernels, sizeof kernels, "%s/kernels", root);
  CHECK(mkdir(kernels, 0700) == 0);
  snprintf(folder, sizeof folder, "%s/include", kernels);
  copy_folder(compiler.include, folder);
  mps_option_set(MPS_OPTION_KERNEL_PATH, kernels);
  CHECK_INT(compile(source), MAKING);
  CHECK_INT(compile(source), 0);
  struct stat state;
  snprintf(header, sizeof header, "%s/metal_assert", folder);
  CHECK(stat(header, &state) == 0);
  const struct timespec times[2] = {state.st_atim, state.st_mtim}, pause = {.tv_nsec = 30000000};
  nanosleep(&pause, NULL);
  flip(header, 5); /* in a comment; as long and as old as before */
  CHECK(utimensat(AT_FDCWD, header, times, 0) == 0);
  CHECK(compile(source) > 0);
  CHECK_INT(compile(source), 0);
  snprintf(inner, sizeof inner, "%s/openmps_math/new.h", folder);
  CHECK_OK(mps_file_write(inner, "", 0));
  CHECK(compile(source) > 0);
  CHECK(remove(inner) == 0);
  CHECK_INT(compile(source), 0);
  mps_option_set(MPS_OPTION_KERNEL_PATH, before[0] ? before : NULL);
}

static void compiles_beside_a_folder_that_cannot_be_written(void) {
  fresh();
  CHECK_INT(compile_new(""), MAKING);
  CHECK(chmod(directory, 0500) == 0); /* root may write all the same */
  CHECK(compile_new("") >= PLAIN);
  CHECK(compile_new("metal::threadgroup_barrier(metal::mem_flags::mem_none);") >= PLAIN);
  CHECK(chmod(directory, 0700) == 0);
}

static void serves_many_processes(void) {
  fresh();
  pid_t pids[3];
  char name[64];
  for (int i = 0; i < 3; i++) {
    snprintf(name, sizeof name, "source %d", i);
    const char *const words[] = {program, name, NULL};
    CHECK_INT(posix_spawn(&pids[i], program, NULL, NULL, (char *const *)(uintptr_t)words, environ), 0);
  }
  for (int i = 0; i < 3; i++) {
    int state = -1;
    CHECK(waitpid(pids[i], &state, 0) == pids[i] && WIFEXITED(state) && WEXITSTATUS(state) == 0);
  }
  CHECK_INT(compile_new(""), PLAIN);
}

int main(int count, char **words) {
  program = words[0];
  setenv("OPENMPS_LOG", "shader:error", 0); /* much is damaged here on purpose */
  if (mps_device_open("host", &device) != MPS_STATUS_OK) {
    fprintf(stderr, "%s\n", mps_error_message());
    return 1;
  }
  if (count == 2) { /* one of many */
    mps_library *library = NULL;
    bool failed = mps_library_compile(device, source, words[1], &library) != MPS_STATUS_OK;
    mps_library_release(library);
    mps_device_release(device);
    return failed;
  }
  if (mps_temporary_create(root, sizeof root) != MPS_STATUS_OK) return 1;
  snprintf(directory, sizeof directory, "%s/cache", root);
  mps_option_set(MPS_OPTION_CACHE_PATH, directory);
  wrap_compiler();
  setenv("OPENMPS_CLANG", mps_option_string(MPS_OPTION_CLANG), 1); /* for the processes that are started */
  setenv("OPENMPS_CACHE_PATH", directory, 1);
  RUN(precompiles_once);
  RUN(compiles_the_same_with_it);
  RUN(precompiles_again_what_is_damaged);
  RUN(tells_the_same_errors);
  RUN(sees_changes_of_headers);
  RUN(compiles_beside_a_folder_that_cannot_be_written);
  RUN(serves_many_processes);
  mps_device_release(device);
  remove_all(root);
  return test_end();
}
