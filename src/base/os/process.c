/* SPDX-License-Identifier: BSD-3-Clause
 *
 * process: fork and exit handlers, and where this library lies.
 */
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/os/os.h"

mps_status mps_os_at_fork(void (*child)(void)) {
  int failure = pthread_atfork(NULL, NULL, child);
  if (failure) return mps_error_set(MPS_STATUS_SYSTEM_ERROR, "cannot register a fork handler: %s", strerror(failure));
  return MPS_STATUS_OK;
}

/* One function is enough for the core; kept with the process it belongs to. */
static void (*exit_function)(void);
static pid_t exit_process;

static void run_exit_function(void) {
  if (exit_function && getpid() == exit_process) exit_function();
}

mps_status mps_os_at_exit(void (*function)(void)) {
  if (exit_function && exit_function != function) return mps_error_set(MPS_STATUS_INTERNAL_ERROR, "two exit functions");
  bool first = !exit_function;
  exit_function = function;
  exit_process = getpid();
  if (first && atexit(run_exit_function)) return mps_error_set(MPS_STATUS_SYSTEM_ERROR, "cannot register an exit handler");
  return MPS_STATUS_OK;
}

mps_status mps_os_library_path(char *out_path, size_t capacity) {
  Dl_info info;
  char resolved[PATH_MAX];
  if (!dladdr((void *)(uintptr_t)&mps_os_library_directory, &info) || !info.dli_fname || !realpath(info.dli_fname, resolved)) {
    return mps_error_set(MPS_STATUS_NOT_FOUND, "cannot tell where the OpenMPS library lies; set OPENMPS_KERNEL_PATH");
  }
  if (strlen(resolved) >= capacity) return mps_error_set(MPS_STATUS_NOT_FOUND, "the path %s is too long", resolved);
  memcpy(out_path, resolved, strlen(resolved) + 1);
  return MPS_STATUS_OK;
}

mps_status mps_os_library_directory(char *out_path, size_t capacity) {
  mps_status status = mps_os_library_path(out_path, capacity);
  char *slash = status == MPS_STATUS_OK ? strrchr(out_path, '/') : NULL;
  if (slash && slash != out_path) *slash = 0;
  return status;
}
