/* SPDX-License-Identifier: BSD-3-Clause
 *
 * dylib: shared objects opened at run time.
 */
#ifndef OPENMPS_BASE_DYLIB_H
#define OPENMPS_BASE_DYLIB_H

#include "openmps/status.h"

typedef struct mps_dylib mps_dylib;

/* Opens with local symbols, all bound at once. NOT_FOUND with the path and the loader's text. path NULL: the process itself. */
MPS_WARN_UNUSED mps_status mps_dylib_open(const char *path, mps_dylib **out_dylib);
void mps_dylib_close(mps_dylib *dylib); /* accepts NULL */
/* NULL when absent; sets no error. */
void *mps_dylib_symbol(mps_dylib *dylib, const char *name);

#endif
