/* SPDX-License-Identifier: BSD-3-Clause
 *
 * stage: what the compiler makes of a source on its way to code, for people to read.
 */
#ifndef OPENMPS_SHADER_STAGE_H
#define OPENMPS_SHADER_STAGE_H

#include "openmps/library.h"
#include "shader/compiler.h"

/* Compiles the Metal file `source` with these options, as far as `stage` needs, and returns what that stage wrote; the caller frees *out_text.
 * Files are left in `folder`. Errors as of mps_shader_emit. */
MPS_WARN_UNUSED mps_status mps_stage_make(const mps_compiler *compiler, const char *source, const char *folder, const mps_compile_options *options,
                                          mps_shader_stage stage, char **out_text);

#endif
