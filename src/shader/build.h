/* SPDX-License-Identifier: BSD-3-Clause
 *
 * build: from Metal source to loaded code, by way of the cache.
 */
#ifndef OPENMPS_SHADER_BUILD_H
#define OPENMPS_SHADER_BUILD_H

#include "driver/driver.h"
#include "openmps/library.h"
#include "shader/specialization.h"

/* `name`: what messages call the source. `special` (valid, or NULL): one kernel with values of its function constants, which must fit the source
 * (INVALID_ARGUMENT). *out_cached: no compiler was started. COMPILE_ERROR with the compiler's messages. */
MPS_WARN_UNUSED mps_status mps_build(mps_driver_device *driver, const char *source, const char *name, const mps_specialization *special,
                                     mps_driver_library **out_code, bool *out_cached);
/* What the compiler makes of it at one of its stages; the caller frees *out_text. The cache takes no part. */
MPS_WARN_UNUSED mps_status mps_build_stage(mps_driver_device *driver, const char *source, const char *name, mps_shader_stage stage,
                                           char **out_text);

#endif
