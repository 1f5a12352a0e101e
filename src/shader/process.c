/* SPDX-License-Identifier: BSD-3-Clause
 *
 * process: posix_spawn and one pipe; the child's end is seen by the pipe's.
 */
#include "shader/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/log.h"
#include "base/status.h"
#include "base/time.h"

extern char **environ;

typedef MPS_ARRAY(char) char_array;

/* Reads until the other end is closed or `deadline`; false at the deadline or when out of memory. */
static bool read_all(int fd, uint64_t deadline, char_array *out) {
  for (;;) {
    uint64_t now = mps_time_ns();
    if (now >= deadline) return false;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int ready = poll(&p, 1, (int)((deadline - now) / 1000000 + 1));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    if (MPS_ARRAY_RESERVE(out, 65536) != MPS_STATUS_OK) return false;
    ssize_t got = read(fd, out->items + out->count, 65535);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return got == 0;
    out->count += (size_t)got;
  }
}

static mps_status spawn(const char *const *arguments, int write_end, pid_t *out_pid) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, write_end, 1);
  posix_spawn_file_actions_adddup2(&actions, write_end, 2);
  posix_spawnattr_init(&attributes);
  sigset_t none; /* the caller may block signals */
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  int error = posix_spawn(out_pid, arguments[0], &actions, &attributes, (char *const *)(uintptr_t)arguments, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error) return mps_error_set(MPS_STATUS_SYSTEM_ERROR, "%s cannot be started: %s", arguments[0], strerror(error));
  return MPS_STATUS_OK;
}

static void log_command(const char *const *arguments) {
  if (!mps_log_enabled(MPS_LOG_SHADER, MPS_LOG_DEBUG)) return;
  char line[4096] = "";
  size_t used = 0;
  for (; *arguments && used < sizeof line; arguments++) used += (size_t)snprintf(line + used, sizeof line - used, "%s ", *arguments);
  mps_log_write(MPS_LOG_SHADER, MPS_LOG_DEBUG, "%s", line);
}

mps_status mps_process_run(const char *const *arguments, uint32_t timeout_ms, char **out_text, int *out_code) {
  *out_text = NULL;
  *out_code = -1;
  log_command(arguments);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return mps_error_set(MPS_STATUS_SYSTEM_ERROR, "no pipe for %s: %s", arguments[0], strerror(errno));
  pid_t pid = 0;
  mps_status status = spawn(arguments, ends[1], &pid);
  close(ends[1]);
  char_array text = {0};
  if (status == MPS_STATUS_OK) {
    bool complete = read_all(ends[0], mps_time_ns() + (uint64_t)timeout_ms * 1000000, &text);
    if (!complete) kill(pid, SIGKILL);
    int state = 0;
    pid_t waited;
    while ((waited = waitpid(pid, &state, 0)) < 0 && errno == EINTR) {}
    if (!complete) status = mps_error_set(MPS_STATUS_SYSTEM_ERROR, "%s did not end within %u seconds", arguments[0], timeout_ms / 1000);
    else if (waited == pid && WIFSIGNALED(state))
      status = mps_error_set(MPS_STATUS_SYSTEM_ERROR, "%s was killed by signal %d", arguments[0], WTERMSIG(state));
    else *out_code = waited == pid && WIFEXITED(state) ? WEXITSTATUS(state) : 0; /* a program that ignores SIGCHLD hides the code */
  }
  close(ends[0]);
  if (status == MPS_STATUS_OK) status = MPS_ARRAY_RESERVE(&text, 1);
  if (status != MPS_STATUS_OK) {
    MPS_ARRAY_FINI(&text);
    return status;
  }
  text.items[text.count] = 0;
  *out_text = text.items;
  return MPS_STATUS_OK;
}

mps_status mps_temporary_create(char *out_path, size_t capacity) {
  const char *base = getenv("TMPDIR");
  if (!base || !base[0]) base = "/tmp";
  int length = snprintf(out_path, capacity, "%s/openmps-XXXXXX", base);
  if (length < 0 || (size_t)length >= capacity) return mps_error_set(MPS_STATUS_SYSTEM_ERROR, "TMPDIR is too long: %s", base);
  if (!mkdtemp(out_path)) return mps_error_set(MPS_STATUS_SYSTEM_ERROR, "no temporary folder under %s: %s", base, strerror(errno));
  return MPS_STATUS_OK;
}

void mps_temporary_remove(const char *path) {
  DIR *folder = opendir(path);
  if (folder) {
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
      if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) unlinkat(dirfd(folder), entry->d_name, 0);
    closedir(folder);
  }
  rmdir(path);
}

mps_status mps_file_read(const char *path, char **out_text, size_t *out_length) {
  *out_text = NULL;
  *out_length = 0;
  FILE *file = fopen(path, "rb");
  if (!file) return mps_error_set(MPS_STATUS_NOT_FOUND, "%s cannot be read: %s", path, strerror(errno));
  char_array text = {0};
  mps_status status;
  for (;;) {
    status = MPS_ARRAY_RESERVE(&text, 65536);
    if (status != MPS_STATUS_OK) break;
    size_t got = fread(text.items + text.count, 1, 65535, file);
    text.count += got;
    if (got == 0) break;
  }
  if (status == MPS_STATUS_OK && ferror(file)) status = mps_error_set(MPS_STATUS_NOT_FOUND, "%s cannot be read", path);
  fclose(file);
  if (status != MPS_STATUS_OK) {
    MPS_ARRAY_FINI(&text);
    return status;
  }
  text.items[text.count] = 0;
  *out_text = text.items;
  *out_length = text.count;
  return MPS_STATUS_OK;
}

mps_status mps_file_write(const char *path, const char *text, size_t length) {
  FILE *file = fopen(path, "wb");
  if (!file) return mps_error_set(MPS_STATUS_SYSTEM_ERROR, "%s cannot be written: %s", path, strerror(errno));
  bool written = fwrite(text, 1, length, file) == length;
  if (fclose(file) != 0) written = false;
  if (!written) return mps_error_set(MPS_STATUS_SYSTEM_ERROR, "%s cannot be written: %s", path, strerror(errno));
  return MPS_STATUS_OK;
}

bool mps_path_is_below(const char *path, const char *folder) {
  size_t length = strlen(folder);
  return length > 0 && strncmp(path, folder, length) == 0 && path[length] == '/';
}
