/* SPDX-License-Identifier: BSD-3-Clause
 *
 * failure: words for what a kernel may report (MPS_KERNEL_ERROR_TEXT).
 */
#ifndef OPENMPS_RUNTIME_FAILURE_H
#define OPENMPS_RUNTIME_FAILURE_H

#include <stdint.h>

/* The number of a text, kept for ever; the same text has the same number. 0 stands for a general text, when there are too many. Any thread. */
int64_t mps_failure_text(const char *text);

#endif
