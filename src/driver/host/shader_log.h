/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shader_log: messages of kernels (Metal's os_log), put into words and onto stderr, a line each.
 */
#ifndef OPENMPS_HOST_SHADER_LOG_H
#define OPENMPS_HOST_SHADER_LOG_H

#include <stddef.h>

#include "driver/host/abi.h"

/* Writes a message with its end; at most `capacity` - 1 bytes. What a format asks for and is not there is shown as it stands in the format.
 * Returns the length. Pure. */
size_t mps_host_shader_log_text(char *out, size_t capacity, const char *format, const mps_host_log_value *values, unsigned count);
/* mps_host_services.log: any thread. Levels below MTL_LOG_LEVEL are left out. */
void mps_host_shader_log(unsigned type, const char *subsystem, const char *category, const char *format, const mps_host_log_value *values,
                         unsigned count);

#endif
