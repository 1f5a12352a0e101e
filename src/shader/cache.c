/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cache: a file is written under a temporary name and renamed. There is no fsync: what a crash of the machine leaves of a file has no
 * seal that fits, and is compiled again.
 */
#include "shader/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/log.h"
#include "base/options.h"
#include "openmps/library.h"
#include "shader/process.h"

#define TEMPORARY_SECONDS 3600
#define KEY_LENGTH (2 * MPS_BLAKE2_BYTES)

/* The seal: a line that is a comment to C++, and behind the end of the file to the loader. */
static const char seal_mark[] = "\n//openmps 1 ";
#define SEAL_LENGTH (sizeof seal_mark - 1 + KEY_LENGTH + 1)

static const char *const suffixes[MPS_CACHE_KINDS] = {".so", ".list", ".hpp", ".pch"};

/* ---- names ---- */
bool mps_cache_locate(mps_cache *out_cache) {
  const char *option = mps_option_string(MPS_OPTION_CACHE_PATH), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  char *to = out_cache->path;
  int length;
  if (option[0]) length = snprintf(to, sizeof out_cache->path, "%s", option);
  else if (xdg && xdg[0] == '/') length = snprintf(to, sizeof out_cache->path, "%s/openmps", xdg);
  else if (home && home[0] == '/') length = snprintf(to, sizeof out_cache->path, "%s/.cache/openmps", home);
  else return false;
  return length > 0 && (size_t)length < sizeof out_cache->path;
}

static void print_hex(const unsigned char digest[MPS_BLAKE2_BYTES], char out[KEY_LENGTH + 1]) {
  for (int i = 0; i < MPS_BLAKE2_BYTES; i++) snprintf(out + 2 * i, 3, "%02x", digest[i]);
}

mps_cache_key mps_cache_key_end(mps_blake2 *hash) {
  unsigned char digest[MPS_BLAKE2_BYTES];
  mps_cache_key key;
  mps_blake2_end(hash, digest);
  print_hex(digest, key.text);
  return key;
}

void mps_cache_path(const mps_cache *cache, const mps_cache_key *key, mps_cache_kind kind, char *out, size_t capacity) {
  snprintf(out, capacity, "%s/%s%s", cache->path, key->text, suffixes[kind]);
}

void mps_cache_temporary(const mps_cache *cache, const mps_cache_key *key, mps_cache_kind kind, char *out, size_t capacity) {
  static _Atomic unsigned counter;
  unsigned number = atomic_fetch_add_explicit(&counter, 1, memory_order_relaxed);
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now); /* a process of another container may have the same number */
  snprintf(out, capacity, "%s/%s%s.tmp-%d-%u-%lx", cache->path, key->text, suffixes[kind], (int)getpid(), number, (unsigned long)now.tv_nsec);
}

/* True for files of the cache; *out_temporary: one that is being written. */
static bool is_ours(const char *name, bool *out_temporary) {
  for (int i = 0; i < KEY_LENGTH; i++)
    if (!((name[i] >= '0' && name[i] <= '9') || (name[i] >= 'a' && name[i] <= 'f'))) return false;
  for (int kind = 0; kind < MPS_CACHE_KINDS; kind++) {
    size_t length = strlen(suffixes[kind]);
    if (strncmp(name + KEY_LENGTH, suffixes[kind], length) != 0) continue;
    const char *rest = name + KEY_LENGTH + length;
    *out_temporary = strncmp(rest, ".tmp-", 5) == 0;
    if (!*rest || *out_temporary) return true;
  }
  return false;
}

/* ---- the directory ---- */
/* With the folders above it, all for this user alone. */
static bool make_directory(const char *path) {
  char part[1024];
  snprintf(part, sizeof part, "%s", path);
  for (char *p = part + 1; *p; p++) {
    if (*p != '/') continue;
    *p = 0;
    if (mkdir(part, 0700) != 0 && errno != EEXIST) return false;
    *p = '/';
  }
  return mkdir(part, 0700) == 0 || errno == EEXIST;
}

static void refuse(const char *path, const char *reason) {
  static atomic_flag told = ATOMIC_FLAG_INIT;
  if (!atomic_flag_test_and_set(&told)) MPS_LOG(SHADER, WARNING, "shaders are compiled without a cache: %s %s", path, reason);
}

bool mps_cache_open(mps_cache *out_cache) {
  if (!mps_option_bool(MPS_OPTION_CACHE)) return false;
  if (!mps_cache_locate(out_cache)) {
    refuse("the cache directory", "has no place: HOME is not set");
    return false;
  }
  struct stat state;
  if (stat(out_cache->path, &state) != 0 && (!make_directory(out_cache->path) || stat(out_cache->path, &state) != 0)) {
    refuse(out_cache->path, strerror(errno));
    return false;
  }
  const char *reason = !S_ISDIR(state.st_mode) ? "is no directory"
                     : state.st_uid != geteuid() ? "belongs to another user"
                     : state.st_mode & (S_IWGRP | S_IWOTH) ? "may be written by others: chmod go-w it" : NULL;
  if (reason) refuse(out_cache->path, reason);
  return !reason;
}

/* ---- entries ---- */
static void print_seal(const mps_cache_key *key, mps_cache_kind kind, const void *contents, size_t length, char out[SEAL_LENGTH + 1]) {
  mps_blake2 hash;
  unsigned char digest[MPS_BLAKE2_BYTES];
  mps_blake2_begin(&hash);
  mps_blake2_add_string(&hash, key->text);
  mps_blake2_add_string(&hash, suffixes[kind]);
  mps_blake2_add(&hash, contents, length);
  mps_blake2_end(&hash, digest);
  memcpy(out, seal_mark, sizeof seal_mark - 1);
  print_hex(digest, out + sizeof seal_mark - 1);
  out[SEAL_LENGTH - 1] = '\n';
  out[SEAL_LENGTH] = 0;
}

/* Counts as used now. */
static void touch(const char *path) {
  if (utimensat(AT_FDCWD, path, NULL, 0) != 0) MPS_LOG(SHADER, DEBUG, "%s keeps its old time: %s", path, strerror(errno));
}

char *mps_cache_read(const mps_cache *cache, const mps_cache_key *key, mps_cache_kind kind, size_t *out_length) {
  char path[1024], seal[SEAL_LENGTH + 1], *text;
  size_t length;
  mps_cache_path(cache, key, kind, path, sizeof path);
  if (access(path, R_OK) != 0 || mps_file_read(path, &text, &length) != MPS_STATUS_OK) return NULL;
  if (length >= SEAL_LENGTH) {
    print_seal(key, kind, text, length - SEAL_LENGTH, seal);
    if (memcmp(text + length - SEAL_LENGTH, seal, SEAL_LENGTH) == 0) {
      touch(path);
      *out_length = length - SEAL_LENGTH;
      text[*out_length] = 0;
      return text;
    }
  }
  free(text);
  MPS_LOG(SHADER, WARNING, "the cached file %s is damaged: it is removed and made again", path);
  unlink(path);
  return NULL;
}

bool mps_cache_find(const mps_cache *cache, const mps_cache_key *key, mps_cache_kind kind, char *out_path, size_t capacity) {
  size_t length;
  char *text = mps_cache_read(cache, key, kind, &length);
  free(text);
  if (text && out_path) mps_cache_path(cache, key, kind, out_path, capacity);
  return text != NULL;
}

void mps_cache_remove(const mps_cache *cache, const mps_cache_key *key, mps_cache_kind kind) {
  char path[1024];
  mps_cache_path(cache, key, kind, path, sizeof path);
  unlink(path);
}

static bool write_all(int fd, const char *bytes, size_t length) {
  while (length > 0) {
    ssize_t written = write(fd, bytes, length);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes += written;
    length -= (size_t)written;
  }
  return true;
}

/* What OPENMPS_CACHE_SIZE says. */
static uint64_t size_limit(void) {
  int64_t limit = mps_option_int(MPS_OPTION_CACHE_SIZE);
  return limit > 0 ? (uint64_t)limit : 0;
}

/* Gives a file that is written its name, and makes room. */
static bool adopt(const mps_cache *cache, const mps_cache_key *key, mps_cache_kind kind, const char *temporary) {
  char path[1024];
  mps_cache_path(cache, key, kind, path, sizeof path);
  if (rename(temporary, path) == 0) {
    mps_cache_trim(cache, size_limit());
    return true;
  }
  MPS_LOG(SHADER, WARNING, "%s cannot be cached: %s", path, strerror(errno));
  unlink(temporary);
  return false;
}

bool mps_cache_add(const mps_cache *cache, const mps_cache_key *key, mps_cache_kind kind, const void *contents, size_t length) {
  char temporary[1060], seal[SEAL_LENGTH + 1];
  print_seal(key, kind, contents, length, seal);
  mps_cache_temporary(cache, key, kind, temporary, sizeof temporary);
  int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  bool written = fd >= 0 && write_all(fd, contents, length) && write_all(fd, seal, SEAL_LENGTH);
  int error = errno;
  if (fd >= 0 && close(fd) != 0 && written) {
    written = false;
    error = errno;
  }
  if (written) return adopt(cache, key, kind, temporary);
  MPS_LOG(SHADER, WARNING, "nothing is cached in %s: %s", cache->path, strerror(error));
  if (fd >= 0) unlink(temporary);
  return false;
}

/* ---- size ---- */
typedef struct cached_file {
  char name[KEY_LENGTH + 64];
  struct timespec used;
  uint64_t bytes;
  bool temporary;
} cached_file;

typedef MPS_ARRAY(cached_file) file_list;

/* The files that are ours, or as many of them as memory holds. The caller frees the list. */
static void list_files(const mps_cache *cache, file_list *out) {
  DIR *folder = opendir(cache->path);
  if (!folder) return;
  for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
    cached_file file = {.bytes = 0};
    struct stat state;
    if (strlen(entry->d_name) >= sizeof file.name || !is_ours(entry->d_name, &file.temporary)) continue;
    if (fstatat(dirfd(folder), entry->d_name, &state, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(state.st_mode)) continue;
    if (MPS_ARRAY_RESERVE(out, 1) != MPS_STATUS_OK) break;
    memcpy(file.name, entry->d_name, strlen(entry->d_name) + 1);
    file.used = state.st_mtim;
    file.bytes = (uint64_t)state.st_size;
    MPS_ARRAY_PUSH(out, file);
  }
  closedir(folder);
}

static bool remove_file(const mps_cache *cache, const cached_file *file) {
  char path[1100];
  snprintf(path, sizeof path, "%s/%s", cache->path, file->name);
  return unlink(path) == 0;
}

static int older_first(const void *a, const void *b) {
  const struct timespec *x = &((const cached_file *)a)->used, *y = &((const cached_file *)b)->used;
  if (x->tv_sec != y->tv_sec) return x->tv_sec < y->tv_sec ? -1 : 1;
  return x->tv_nsec < y->tv_nsec ? -1 : x->tv_nsec > y->tv_nsec;
}

void mps_cache_trim(const mps_cache *cache, uint64_t limit) {
  file_list files = {0};
  list_files(cache, &files);
  uint64_t total = 0;
  time_t now = time(NULL);
  for (size_t i = 0; i < files.count; i++) {
    cached_file *file = &files.items[i];
    if (file->temporary && now - file->used.tv_sec > TEMPORARY_SECONDS && remove_file(cache, file)) file->bytes = 0;
    total += file->bytes;
  }
  if (total > limit) {
    qsort(files.items, files.count, sizeof *files.items, older_first);
    for (size_t i = 0; i < files.count && total > limit; i++) {
      if (files.items[i].temporary) continue;
      MPS_LOG(SHADER, DEBUG, "the cache is full: %s goes", files.items[i].name);
      remove_file(cache, &files.items[i]);
      total -= files.items[i].bytes;
    }
  }
  MPS_ARRAY_FINI(&files);
}

void mps_cache_measure(const mps_cache *cache, uint64_t *out_entries, uint64_t *out_bytes) {
  file_list files = {0};
  list_files(cache, &files);
  *out_entries = files.count;
  *out_bytes = 0;
  for (size_t i = 0; i < files.count; i++) *out_bytes += files.items[i].bytes;
  MPS_ARRAY_FINI(&files);
}

/* ---- for the command line ---- */
void mps_shader_cache_get_info(mps_shader_cache_info *out_info) {
  *out_info = (mps_shader_cache_info){.enabled = mps_option_bool(MPS_OPTION_CACHE), .limit = size_limit()};
  mps_cache cache;
  if (!mps_cache_locate(&cache)) return;
  snprintf(out_info->path, sizeof out_info->path, "%s", cache.path);
  mps_cache_measure(&cache, &out_info->entries, &out_info->bytes);
}

void mps_shader_cache_clear(uint64_t *out_entries, uint64_t *out_bytes) {
  mps_cache cache;
  *out_entries = *out_bytes = 0;
  if (!mps_cache_locate(&cache)) return;
  file_list files = {0};
  list_files(&cache, &files);
  for (size_t i = 0; i < files.count; i++) {
    if (!remove_file(&cache, &files.items[i])) continue;
    *out_entries += 1;
    *out_bytes += files.items[i].bytes;
  }
  MPS_ARRAY_FINI(&files);
}
