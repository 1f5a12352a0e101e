/* SPDX-License-Identifier: BSD-3-Clause
 *
 * find: where clang and the Metal headers of a running process are.
 */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/options.h"
#include "base/os/os.h"
#include "base/status.h"
#include "shader/compiler.h"

static bool is_program(const char *path) { return access(path, X_OK) == 0; }

/* The ziglang package among the folders above `directory` (site-packages/openmps/... -> site-packages/ziglang/zig). */
static bool find_beside(const char *directory, char *out, size_t capacity) {
  char path[1024];
  snprintf(path, sizeof path, "%s", directory);
  for (int up = 0; up < 6; up++) {
    int length = snprintf(out, capacity, "%s/ziglang/zig", path);
    if (length > 0 && (size_t)length < capacity && is_program(out)) return true;
    char *slash = strrchr(path, '/');
    if (!slash) return false;
    *slash = 0;
  }
  return false;
}

/* The ziglang package of a Python installed under `prefix`. */
static bool find_in_prefix(const char *prefix, size_t length, char *out, size_t capacity) {
  char pattern[1024];
  snprintf(pattern, sizeof pattern, "%.*s/lib/python3*/site-packages/ziglang/zig", (int)length, prefix);
  glob_t found;
  if (glob(pattern, 0, NULL, &found) != 0) return false;
  bool ok = found.gl_pathc > 0 && is_program(found.gl_pathv[0]);
  if (ok) snprintf(out, capacity, "%s", found.gl_pathv[0]);
  globfree(&found);
  return ok;
}

/* That of an active virtual environment, or of a Python in PATH. */
static bool find_in_environment(char *out, size_t capacity) {
  const char *environment = getenv("VIRTUAL_ENV");
  if (environment && environment[0] && find_in_prefix(environment, strlen(environment), out, capacity)) return true;
  for (const char *p = getenv("PATH"); p && *p;) {
    size_t length = strcspn(p, ":");
    if (length > 4 && memcmp(p + length - 4, "/bin", 4) == 0 && find_in_prefix(p, length - 4, out, capacity)) return true;
    p += length;
    if (*p) p++;
  }
  return false;
}

static bool find_in_path(const char *name, char *out, size_t capacity) {
  for (const char *p = getenv("PATH"); p && *p;) {
    size_t length = strcspn(p, ":");
    if (length > 0) {
      snprintf(out, capacity, "%.*s/%s", (int)length, p, name);
      if (is_program(out)) return true;
    }
    p += length;
    if (*p) p++;
  }
  return false;
}

mps_status mps_compiler_find(mps_compiler *out_compiler) {
  char clang[1024], directory[1000], include[1024];
  MPS_TRY(mps_os_library_directory(directory, sizeof directory));
  const char *option = mps_option_string(MPS_OPTION_CLANG);
  if (option[0]) {
    snprintf(clang, sizeof clang, "%s", option);
    bool found = strchr(option, '/') ? is_program(option) : find_in_path(option, clang, sizeof clang);
    if (!found) return mps_error_set(MPS_STATUS_NOT_FOUND, "OPENMPS_CLANG names %s, which is no program", option);
  } else if (!find_beside(directory, clang, sizeof clang) && !find_in_environment(clang, sizeof clang) &&
             !find_in_path("zig", clang, sizeof clang) && !find_in_path("clang", clang, sizeof clang)) {
    return mps_error_set(MPS_STATUS_NOT_FOUND, "compiling Metal source needs clang, and none was found: "
                         "pip install 'openmps[shaders]' (the ziglang package), or set OPENMPS_CLANG to a clang or zig");
  }
  const char *kernels = mps_option_string(MPS_OPTION_KERNEL_PATH);
  if (kernels[0]) snprintf(include, sizeof include, "%s/include", kernels);
  else snprintf(include, sizeof include, "%s/kernels/include", directory);
  char probe[1100];
  snprintf(probe, sizeof probe, "%s/metal_stdlib", include);
  if (access(probe, R_OK) != 0) return mps_error_set(MPS_STATUS_NOT_FOUND, "the Metal headers are missing: %s", probe);
  return mps_compiler_set(out_compiler, clang, include, NULL);
}
