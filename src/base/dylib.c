/* SPDX-License-Identifier: BSD-3-Clause
 *
 * dylib: dlopen and its kin. The handle itself is what mps_dylib points to.
 */
#include "base/dylib.h"

#include <dlfcn.h>

mps_status mps_dylib_open(const char *path, mps_dylib **out_dylib) {
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char *reason = dlerror();
    return mps_error_set(MPS_STATUS_NOT_FOUND, "cannot load %s: %s", path ? path : "the program itself", reason ? reason : "unknown reason");
  }
  *out_dylib = handle;
  return MPS_STATUS_OK;
}

void mps_dylib_close(mps_dylib *dylib) {
  if (dylib) dlclose(dylib);
}

void *mps_dylib_symbol(mps_dylib *dylib, const char *name) { return dlsym(dylib, name); }
