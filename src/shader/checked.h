/* SPDX-License-Identifier: BSD-3-Clause
 *
 * checked: puts a call in front of each access to memory, integer division and meeting of threads of a module, for the driver to check
 * (driver/host/checks.h). LLVM IR text in, LLVM IR text out, as shader/lanes.h. The text must come from clang -O1 -disable-llvm-passes
 * -gline-tables-only: each access is still there, and knows its line.
 */
#ifndef OPENMPS_SHADER_CHECKED_H
#define OPENMPS_SHADER_CHECKED_H

#include <stddef.h>

#include "openmps/status.h"

/* Makes the next step of clang inline all functions, so that what our headers do is known by the user's line that called them. The caller
 * frees *out_text. */
MPS_WARN_UNUSED mps_status mps_checked_inline(const char *text, size_t length, char **out_text, size_t *out_length);
/* `include`, `include_core`: the folders of our headers, whose lines are not the user's. The caller frees *out_text. */
MPS_WARN_UNUSED mps_status mps_checked_instrument(const char *text, size_t length, const char *include, const char *include_core,
                                                  char **out_text, size_t *out_length);

#endif
