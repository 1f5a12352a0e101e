/* SPDX-License-Identifier: BSD-3-Clause
 *
 * options: what the environment may set, for those who list it (`openmps info`). The table itself is src/base/options.h.
 */
#ifndef OPENMPS_OPTIONS_H
#define OPENMPS_OPTIONS_H

#include <stdbool.h>

#include "openmps/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mps_option_info {
  const char *name;          /* of the environment variable */
  const char *type;          /* "string", "int", "double", "bool" */
  const char *default_value; /* as text; "" = none */
  const char *value;         /* in force, as text */
  const char *doc;           /* one sentence */
  bool is_set;               /* the environment (or a call) sets it */
} mps_option_info;

MPS_API uint32_t mps_option_count(void);
/* Option `index` < mps_option_count(). Texts live for ever. Any thread. */
MPS_API void mps_option_describe(uint32_t index, mps_option_info *out_info);

#ifdef __cplusplus
}
#endif
#endif
