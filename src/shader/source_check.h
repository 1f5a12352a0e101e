/* SPDX-License-Identifier: BSD-3-Clause
 *
 * source_check: what a source may ask of the preprocessor. A source is not trusted: it names files to include inside of the given folders
 * only, and no other files at all. Looked at before the compiler sees the text, so that none of its messages can quote a file.
 */
#ifndef OPENMPS_SHADER_SOURCE_CHECK_H
#define OPENMPS_SHADER_SOURCE_CHECK_H

#include "openmps/status.h"

/* COMPILE_ERROR "name:line:column: error: ..." for: an #include (#import, __has_include...) whose file is not written out between quotes
 * or angles, is absolute or goes up with ".."; #embed; pragmas that name files or modules, or crash the compiler. */
MPS_WARN_UNUSED mps_status mps_source_check(const char *source, const char *name);

#endif
