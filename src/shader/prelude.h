/* SPDX-License-Identifier: BSD-3-Clause
 *
 * prelude: what comes before a user's text, Metal's standard library as the reader writes it, precompiled once and kept in the cache. Parsing it
 * is two thirds of compiling a small kernel.
 */
#ifndef OPENMPS_SHADER_PRELUDE_H
#define OPENMPS_SHADER_PRELUDE_H

#include "shader/cache.h"
#include "shader/compiler.h"

typedef struct mps_prelude {
  const mps_cache *cache; /* borrowed */
  mps_cache_key circumstances;
} mps_prelude;

/* A mps_compile_run: `context` is a mps_prelude. Runs the command of compiling rewritten source with the prelude precompiled, and makes it if it is
 * not there. The object is the same byte for byte. Whatever is unusual, and whatever fails, is compiled the plain way, so messages are those of it. */
MPS_WARN_UNUSED mps_status mps_prelude_run(void *context, const char *const *arguments, uint32_t timeout_ms, char **out_text, int *out_code);

#endif
