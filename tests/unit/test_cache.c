/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_cache: compiled shaders on disk: what is damaged is not believed, what cannot be written harms nobody, many processes and threads
 * share a directory, a hit starts no compiler, and whatever goes into the code goes into its key. Needs a clang (OPENMPS_CLANG).
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/options.h"
#include "base/thread.h"
#include "openmps/library.h"
#include "shader/cache.h"
#include "shader/process.h"
#include "cached_compiler.h"
#include "test.h"

extern char **environ;

static const char *program;

static const char source[] = "kernel void f(device float *out, uint i [[thread_position_in_grid]]) { out[i] = 1.0; }\n";

static mps_cache_key key_of(uint64_t number) {
  mps_blake2 hash;
  mps_blake2_begin(&hash);
  mps_blake2_add_u64(&hash, number);
  return mps_cache_key_end(&hash);
}

/* The file of an entry, opened. */
static int open_entry(const mps_cache *cache, const mps_cache_key *key, mps_cache_kind kind, int flags) {
  char path[1024];
  mps_cache_path(cache, key, kind, path, sizeof path);
  return open(path, flags | O_CLOEXEC);
}

static void gives_back_what_was_added(void) {
  mps_cache cache = fresh();
  mps_cache_key a = key_of(1), b = key_of(2);
  size_t length = 0;
  CHECK(!mps_cache_read(&cache, &a, MPS_CACHE_LIST, &length));
  CHECK(mps_cache_add(&cache, &a, MPS_CACHE_LIST, "one\0two", 7));
  char *text = mps_cache_read(&cache, &a, MPS_CACHE_LIST, &length);
  CHECK(text && length == 7 && memcmp(text, "one\0two", 8) == 0);
  free(text);
  CHECK(!mps_cache_find(&cache, &b, MPS_CACHE_LIST, NULL, 0));
  CHECK(!mps_cache_find(&cache, &a, MPS_CACHE_LIBRARY, NULL, 0));
  CHECK(mps_cache_add(&cache, &a, MPS_CACHE_LIST, "", 0)); /* replaces */
  text = mps_cache_read(&cache, &a, MPS_CACHE_LIST, &length);
  CHECK(text && length == 0);
  free(text);
  CHECK_INT(entries(), 1);
  struct stat state;
  char path[1024];
  CHECK(mps_cache_find(&cache, &a, MPS_CACHE_LIST, path, sizeof path));
  CHECK(stat(path, &state) == 0 && (state.st_mode & 0777) == 0600);
  CHECK(stat(directory, &state) == 0 && (state.st_mode & 0777) == 0700);
}

/* Every byte of a file, the seal's too, and every length short of the whole. */
static void believes_nothing_damaged(void) {
  mps_cache cache = fresh();
  mps_cache_key key = key_of(3), other = key_of(4);
  static const char contents[] = "a library of forty bytes, more or less..";
  CHECK(mps_cache_add(&cache, &key, MPS_CACHE_LIST, contents, sizeof contents));
  char path[1024], moved[1024];
  mps_cache_path(&cache, &key, MPS_CACHE_LIST, path, sizeof path);
  struct stat state;
  CHECK(stat(path, &state) == 0);
  int believed = 0;
  for (off_t at = 0; at < state.st_size; at++) {
    int fd = open_entry(&cache, &key, MPS_CACHE_LIST, O_RDWR);
    char byte;
    CHECK(pread(fd, &byte, 1, at) == 1);
    byte = (char)(byte ^ (1 << (at % 8)));
    CHECK(pwrite(fd, &byte, 1, at) == 1);
    close(fd);
    believed += mps_cache_find(&cache, &key, MPS_CACHE_LIST, NULL, 0);
    CHECK(access(path, F_OK) != 0); /* removed */
    CHECK(mps_cache_add(&cache, &key, MPS_CACHE_LIST, contents, sizeof contents));
    CHECK(truncate(path, at) == 0);
    believed += mps_cache_find(&cache, &key, MPS_CACHE_LIST, NULL, 0);
    CHECK(mps_cache_add(&cache, &key, MPS_CACHE_LIST, contents, sizeof contents));
  }
  mps_cache_path(&cache, &other, MPS_CACHE_LIST, moved, sizeof moved); /* whole, but another's */
  CHECK(rename(path, moved) == 0);
  believed += mps_cache_find(&cache, &other, MPS_CACHE_LIST, NULL, 0);
  CHECK_INT(believed, 0);
}

static void keeps_to_its_size(void) {
  mps_cache cache = fresh();
  char kilobyte[1024] = {0};
  for (uint64_t i = 0; i < 8; i++) {
    mps_cache_key key = key_of(i);
    char path[1024];
    CHECK(mps_cache_add(&cache, &key, MPS_CACHE_LIBRARY, kilobyte, sizeof kilobyte));
    mps_cache_path(&cache, &key, MPS_CACHE_LIBRARY, path, sizeof path);
    const struct timespec times[2] = {{.tv_sec = 1000 + (time_t)i}, {.tv_sec = 1000 + (time_t)i}};
    CHECK(utimensat(AT_FDCWD, path, times, 0) == 0);
  }
  mps_cache_key first = key_of(0), second = key_of(1), last = key_of(9);
  char stranger[300], temporary[1100];
  snprintf(stranger, sizeof stranger, "%s/notes.txt", directory);
  CHECK_OK(mps_file_write(stranger, "mine", 4));
  CHECK(mps_cache_find(&cache, &first, MPS_CACHE_LIBRARY, NULL, 0)); /* used now */
  mps_option_set(MPS_OPTION_CACHE_SIZE, "5000");
  CHECK(mps_cache_add(&cache, &last, MPS_CACHE_LIBRARY, kilobyte, sizeof kilobyte));
  mps_option_set(MPS_OPTION_CACHE_SIZE, NULL);
  uint64_t count, bytes;
  mps_cache_measure(&cache, &count, &bytes);
  CHECK(bytes <= 5000 && count == 4);
  CHECK(mps_cache_find(&cache, &first, MPS_CACHE_LIBRARY, NULL, 0));
  CHECK(mps_cache_find(&cache, &last, MPS_CACHE_LIBRARY, NULL, 0));
  CHECK(!mps_cache_find(&cache, &second, MPS_CACHE_LIBRARY, NULL, 0));
  /* what is being written stays, what a dead process left goes */
  mps_cache_temporary(&cache, &last, MPS_CACHE_LIBRARY, temporary, sizeof temporary);
  CHECK_OK(mps_file_write(temporary, "half", 4));
  mps_cache_trim(&cache, 0);
  CHECK(access(temporary, F_OK) == 0 && entries() == 1);
  const struct timespec long_ago[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
  CHECK(utimensat(AT_FDCWD, temporary, long_ago, 0) == 0);
  mps_cache_trim(&cache, 1000000);
  CHECK(access(temporary, F_OK) != 0);
  CHECK(mps_cache_add(&cache, &last, MPS_CACHE_LIBRARY, kilobyte, sizeof kilobyte));
  mps_shader_cache_clear(&count, &bytes);
  CHECK(count == 1 && bytes > sizeof kilobyte && entries() == 0);
  CHECK(access(stranger, F_OK) == 0);
}

static void refuses_foreign_directories(void) {
  mps_cache cache = fresh();
  CHECK(chmod(directory, 0777) == 0);
  CHECK(!mps_cache_open(&cache));
  CHECK(chmod(directory, 0720) == 0);
  CHECK(!mps_cache_open(&cache));
  CHECK(chmod(directory, 0700) == 0);
  CHECK(mps_cache_open(&cache));
  if (geteuid() == 0) { /* only root may give a folder away */
    CHECK(chown(directory, 12345, (gid_t)-1) == 0);
    CHECK(!mps_cache_open(&cache));
    CHECK(chown(directory, 0, (gid_t)-1) == 0);
  }
  char file[300];
  snprintf(file, sizeof file, "%s/file", root);
  CHECK_OK(mps_file_write(file, "", 0));
  mps_option_set(MPS_OPTION_CACHE_PATH, file);
  CHECK(!mps_cache_open(&cache));
  snprintf(file, sizeof file, "%s/file/below", root);
  mps_option_set(MPS_OPTION_CACHE_PATH, file);
  CHECK(!mps_cache_open(&cache));
  mps_option_set(MPS_OPTION_CACHE_PATH, "/proc/openmps");
  CHECK(!mps_cache_open(&cache));
  mps_option_set(MPS_OPTION_CACHE_PATH, directory);
  mps_option_set(MPS_OPTION_CACHE, "0");
  CHECK(!mps_cache_open(&cache));
  mps_option_set(MPS_OPTION_CACHE, "1");
}

static void finds_the_users_directory(void) {
  mps_cache cache;
  char expected[300];
  const char *home = getenv("HOME"), *xdg = getenv("XDG_CACHE_HOME");
  char *old_home = home ? strdup(home) : NULL, *old_xdg = xdg ? strdup(xdg) : NULL;
  mps_option_set(MPS_OPTION_CACHE_PATH, "");
  setenv("HOME", root, 1);
  setenv("XDG_CACHE_HOME", "relative", 1);
  snprintf(expected, sizeof expected, "%s/.cache/openmps", root);
  CHECK(mps_cache_locate(&cache));
  CHECK_STRING(cache.path, expected);
  CHECK(mps_cache_open(&cache)); /* makes .cache too */
  setenv("XDG_CACHE_HOME", "/somewhere", 1);
  CHECK(mps_cache_locate(&cache));
  CHECK_STRING(cache.path, "/somewhere/openmps");
  unsetenv("XDG_CACHE_HOME");
  unsetenv("HOME");
  CHECK(!mps_cache_locate(&cache) && !mps_cache_open(&cache));
  if (old_home) setenv("HOME", old_home, 1);
  if (old_xdg) setenv("XDG_CACHE_HOME", old_xdg, 1);
  free(old_home);
  free(old_xdg);
  mps_option_set(MPS_OPTION_CACHE_PATH, directory);
}

/* A limit of file sizes stands for a full disk: both end a write in the middle. */
static void survives_a_full_disk(void) {
  mps_cache cache = fresh();
  mps_cache_key key = key_of(5);
  char contents[4096] = {0};
  struct rlimit old, small;
  CHECK(getrlimit(RLIMIT_FSIZE, &old) == 0);
  small = old;
  small.rlim_cur = 1000;
  signal(SIGXFSZ, SIG_IGN);
  CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
  bool added = mps_cache_add(&cache, &key, MPS_CACHE_LIBRARY, contents, sizeof contents);
  CHECK(setrlimit(RLIMIT_FSIZE, &old) == 0);
  CHECK(!added && entries() == 0);
}

/* ---- many at once ---- */
/* Adds and reads entries of a few keys; the contents tell their key. Returns how many were wrong. */
static int add_and_read(int rounds) {
  mps_cache cache;
  if (!mps_cache_open(&cache)) return 1;
  int wrong = 0;
  for (int i = 0; i < rounds; i++) {
    mps_cache_key key = key_of((uint64_t)(i % 5));
    char contents[3000];
    memset(contents, 'a' + i % 5, sizeof contents);
    if (i % 3 == 0) mps_cache_add(&cache, &key, MPS_CACHE_LIBRARY, contents, sizeof contents);
    if (i % 7 == 0) mps_cache_trim(&cache, 8000);
    size_t length;
    char *text = mps_cache_read(&cache, &key, MPS_CACHE_LIBRARY, &length);
    if (text) wrong += length != sizeof contents || memcmp(text, contents, length) != 0;
    free(text);
  }
  return wrong;
}

static int wrong_in_threads[4];
static void work(void *context) { *(int *)context = add_and_read(150); }

static void serves_many_threads(void) {
  fresh();
  mps_thread threads[4];
  for (int i = 0; i < 4; i++) CHECK_OK(mps_thread_create(&threads[i], "cache", work, &wrong_in_threads[i]));
  for (int i = 0; i < 4; i++) mps_thread_join(&threads[i]);
  for (int i = 0; i < 4; i++) CHECK_INT(wrong_in_threads[i], 0);
}

/* This program again, with a word that tells what to do. */
static pid_t start(const char *word) {
  char *arguments[] = {(char *)(uintptr_t)program, (char *)(uintptr_t)word, directory, NULL};
  pid_t pid = 0;
  CHECK(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, arguments, environ) == 0);
  return pid;
}

static int wait_for(pid_t pid) {
  int state = 0;
  while (waitpid(pid, &state, 0) < 0) {}
  return state;
}

static void serves_many_processes(void) {
  fresh();
  pid_t pids[4];
  for (int i = 0; i < 4; i++) pids[i] = start("read");
  for (int i = 0; i < 4; i++) CHECK_INT(wait_for(pids[i]), 0);
}

static void survives_kills(void) {
  mps_cache cache = fresh();
  for (int round = 0; round < 12; round++) {
    pid_t pid = start("forever");
    const struct timespec pause = {.tv_nsec = 5000000 + round * 1700000};
    nanosleep(&pause, NULL);
    kill(pid, SIGKILL);
    wait_for(pid);
    CHECK_INT(add_and_read(10), 0);
  }
  CHECK(mps_cache_open(&cache));
}

/* ---- compiling ---- */
static void starts_no_compiler_on_a_hit(void) {
  fresh();
  CHECK(compile(source) > 0);
  CHECK_INT(compile(source), 0);
  CHECK_INT(compile(source), 0);
  mps_library *first = NULL, *second = NULL; /* both loaded: one code */
  CHECK_OK(mps_library_compile(device, source, NULL, &first));
  CHECK_OK(mps_library_compile(device, source, NULL, &second));
  mps_library_release(first);
  CHECK_STRING(mps_library_function_name(second, 0), "f");
  mps_library_release(second);
}

static void compiles_for_every_difference(void) {
  fresh();
  CHECK(compile(source) > 0);
  CHECK(compile_named(source, "another name") > 0); /* __FILE__ */
  CHECK(compile("kernel void f(device float *out) { out[0] = 2.0; }\n") > 0);
  mps_option_set(MPS_OPTION_FAST_MATH, "1");
  CHECK(compile(source) > 0);
  mps_option_set(MPS_OPTION_FAST_MATH, "0");
  char compiler[300];
  snprintf(compiler, sizeof compiler, "%s", mps_option_string(MPS_OPTION_CLANG));
  const struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
  CHECK_INT(compile(source), 0);
  CHECK(utimensat(AT_FDCWD, compiler, times, 0) == 0); /* a new compiler */
  CHECK(compile(source) > 0);
  mps_option_set(MPS_OPTION_CACHE, "0");
  uint64_t before = entries();
  CHECK(compile(source) > 0);
  CHECK(compile(source) > 0);
  CHECK_INT(entries(), before);
  mps_option_set(MPS_OPTION_CACHE, "1");
  CHECK_INT(compile(source), 0);
}

static void sees_changes_of_included_files(void) {
  fresh();
  char first[300], second[300], folders[700], path[400];
  static const char text[] = "#include <part.h>\nkernel void f(device float *out) { out[0] = VALUE; }\n";
  snprintf(first, sizeof first, "%s/first", root);
  snprintf(second, sizeof second, "%s/second", root);
  snprintf(folders, sizeof folders, "%s:%s", first, second);
  CHECK(mkdir(first, 0700) == 0 && mkdir(second, 0700) == 0);
  snprintf(path, sizeof path, "%s/part.h", second);
  mps_option_set(MPS_OPTION_SHADER_INCLUDE, folders);
  CHECK_OK(mps_file_write(path, "#include \"inner.h\"\n", 19));
  char inner[400], shadow[400];
  snprintf(inner, sizeof inner, "%s/inner.h", second);
  CHECK_OK(mps_file_write(inner, "#define VALUE 1\n", 16));
  CHECK(compile(text) > 0);
  CHECK_INT(compile(text), 0);
  CHECK_OK(mps_file_write(inner, "#define VALUE 2\n", 16)); /* included by an included file, as long as before */
  CHECK(compile(text) > 0);
  CHECK_INT(compile(text), 0);
  CHECK_OK(mps_file_write(inner, "#define VALUE 1\n", 16)); /* as at first */
  CHECK_INT(compile(text), 0);
  snprintf(shadow, sizeof shadow, "%s/part.h", first); /* found before the other one */
  CHECK_OK(mps_file_write(shadow, "#define VALUE 3\n", 16));
  CHECK(compile(text) > 0);
  CHECK_INT(compile(text), 0);
  CHECK(remove(shadow) == 0);
  mps_library *library = NULL;
  CHECK(remove(path) == 0);
  CHECK_STATUS(mps_library_compile(device, text, NULL, &library), MPS_STATUS_COMPILE_ERROR);
  /* whether a file is there may be asked without including it: such a source is compiled each time */
  static const char asks[] = "#if __has_include(<part.h>)\n#define N 1\n#else\n#define N 2\n#endif\nkernel void f(device float *out) { out[0] = N; }\n";
  CHECK(compile(asks) > 0);
  CHECK(compile(asks) > 0);
  mps_option_set(MPS_OPTION_SHADER_INCLUDE, "");
}

/* The library entry of `source`: the only one. */
static void find_library(char *out, size_t capacity) { find_entry(".so", out, capacity); }

static void compiles_again_what_is_damaged(void) {
  fresh();
  char path[600];
  struct stat state;
  CHECK(compile(source) > 0);
  find_library(path, sizeof path);
  CHECK(stat(path, &state) == 0);
  for (int part = 0; part < 4; part++) { /* headers, code, tables, seal */
    off_t at = part < 3 ? state.st_size * part / 3 + 16 : state.st_size - 3;
    flip(path, at);
    CHECK(compile(source) > 0);
    CHECK_INT(compile(source), 0);
  }
  CHECK(truncate(path, state.st_size / 2) == 0);
  CHECK(compile(source) > 0);
  CHECK(truncate(path, 0) == 0);
  CHECK(compile(source) > 0);
  CHECK_INT(compile(source), 0);
}

static void compiles_without_a_cache(void) {
  fresh();
  CHECK(chmod(directory, 0777) == 0);
  CHECK(compile(source) > 0);
  CHECK(chmod(directory, 0700) == 0);
  mps_option_set(MPS_OPTION_CACHE_PATH, "/proc/openmps");
  CHECK(compile(source) > 0);
  mps_option_set(MPS_OPTION_CACHE_PATH, directory);
  mps_option_set(MPS_OPTION_CACHE_SIZE, "0"); /* what is added goes at once */
  CHECK(compile(source) > 0);
  CHECK(compile(source) > 0);
  CHECK_INT(entries(), 0);
  mps_option_set(MPS_OPTION_CACHE_SIZE, NULL);
}

static void compiles_in_many_processes(void) {
  fresh();
  pid_t pids[3];
  for (int i = 0; i < 3; i++) pids[i] = start("compile");
  for (int i = 0; i < 3; i++) CHECK_INT(wait_for(pids[i]), 0);
  CHECK_INT(compile(source), 0);
  fresh();
  pid_t killed = start("compile"); /* somewhere in the middle */
  const struct timespec pause = {.tv_nsec = 60000000};
  nanosleep(&pause, NULL);
  kill(killed, SIGKILL);
  wait_for(killed);
  CHECK(compile(source) >= 0);
  CHECK_INT(compile(source), 0);
}

/* What a process that start() made does. */
static int run_child(const char *word, const char *path) {
  mps_option_set(MPS_OPTION_CACHE_PATH, path);
  if (!strcmp(word, "read")) return add_and_read(150) != 0;
  if (!strcmp(word, "forever")) return add_and_read(1 << 30) != 0;
  mps_library *library = NULL;
  if (mps_device_open("host", &device) != MPS_STATUS_OK || mps_library_compile(device, source, NULL, &library) != MPS_STATUS_OK) return 1;
  mps_library_release(library);
  mps_device_release(device);
  return 0;
}

int main(int count, char **words) {
  setenv("OPENMPS_LOG", "shader:error", 0); /* much is damaged here on purpose */
  program = words[0];
  if (count == 3) return run_child(words[1], words[2]);
  if (mps_temporary_create(root, sizeof root) != MPS_STATUS_OK) return 1;
  snprintf(directory, sizeof directory, "%s/a/cache", root);
  mps_option_set(MPS_OPTION_CACHE_PATH, directory);
  RUN(gives_back_what_was_added);
  RUN(believes_nothing_damaged);
  RUN(keeps_to_its_size);
  RUN(refuses_foreign_directories);
  RUN(finds_the_users_directory);
  RUN(survives_a_full_disk);
  RUN(serves_many_threads);
  RUN(serves_many_processes);
  RUN(survives_kills);
  if (mps_device_open("host", &device) != MPS_STATUS_OK) {
    fprintf(stderr, "%s\n", mps_error_message());
    return 1;
  }
  wrap_compiler();
  setenv("OPENMPS_CLANG", mps_option_string(MPS_OPTION_CLANG), 1); /* for the processes that are started */
  RUN(starts_no_compiler_on_a_hit);
  RUN(compiles_for_every_difference);
  RUN(sees_changes_of_included_files);
  RUN(compiles_again_what_is_damaged);
  RUN(compiles_without_a_cache);
  RUN(compiles_in_many_processes);
  mps_device_release(device);
  remove_all(root);
  return test_end();
}
