/* SPDX-License-Identifier: BSD-3-Clause
 *
 * process: runs the compiler and keeps what it says; temporary folders; whole files, and where their names say they lie.
 */
#ifndef OPENMPS_SHADER_PROCESS_H
#define OPENMPS_SHADER_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "openmps/status.h"

/* Runs arguments[0] (a path) with the NULL-terminated arguments, waits at most `timeout_ms`. *out_text is what it wrote to stdout and
 * stderr (the caller frees it), *out_code its exit code. SYSTEM_ERROR when it cannot be started, is killed or takes too long. */
MPS_WARN_UNUSED mps_status mps_process_run(const char *const *arguments, uint32_t timeout_ms, char **out_text, int *out_code);

/* A new empty folder under TMPDIR. Removing it takes its files along. */
MPS_WARN_UNUSED mps_status mps_temporary_create(char *out_path, size_t capacity);
void mps_temporary_remove(const char *path);

/* The caller frees *out_text, which ends with a 0 that is not counted. NOT_FOUND with the system's reason. */
MPS_WARN_UNUSED mps_status mps_file_read(const char *path, char **out_text, size_t *out_length);
MPS_WARN_UNUSED mps_status mps_file_write(const char *path, const char *text, size_t length);
/* True if the names say that `path` lies in `folder` or below it; nothing is resolved. False for a folder "". */
bool mps_path_is_below(const char *path, const char *folder);

#endif
