/* SPDX-License-Identifier: BSD-3-Clause
 *
 * status: the parts of the error record that only the core uses. The public half is openmps/status.h.
 */
#ifndef OPENMPS_BASE_STATUS_H
#define OPENMPS_BASE_STATUS_H

#include <stdarg.h>

#include "openmps/status.h"

#define MPS_ERROR_TEXT_BYTES 1024 /* longer texts (compiler output) are kept on the thread's heap */

/* Returns from the enclosing function when `call` fails. */
#define MPS_TRY(call)                                   \
  do {                                                  \
    mps_status try_status_ = (call);                    \
    if (try_status_ != MPS_STATUS_OK) return try_status_; \
  } while (0)

/* As mps_error_set, with the operator that the failure belongs to (`name` is copied; NULL = none). */
mps_status mps_error_set_operator(mps_status status, const char *name, const char *format, ...) MPS_PRINTF(3, 4);
/* Sets a text of any length as it is. */
mps_status mps_error_set_text(mps_status status, const char *text);

#endif
