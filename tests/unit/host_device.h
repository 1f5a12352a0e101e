/* SPDX-License-Identifier: BSD-3-Clause
 *
 * host_device: the host device for tests that compile Metal source (OPENMPS_CLANG): its default stream, buffers that the CPU may write,
 * libraries.
 */
#ifndef OPENMPS_TESTS_HOST_DEVICE_H
#define OPENMPS_TESTS_HOST_DEVICE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "openmps/library.h"
#include "test.h"

static mps_device *device;
static mps_stream *stream; /* its default one */

/* Ends the program where there is none: nothing can be tested then. The caller releases `device`. */
static inline void open_device(void) {
  if (mps_device_open("host", &device) != MPS_STATUS_OK) {
    fprintf(stderr, "%s\n", mps_error_message());
    exit(1);
  }
  stream = mps_stream_default(device);
}

/* Zeros; NULL after a failed check. */
static inline mps_buffer *make_buffer(size_t bytes) {
  mps_buffer *buffer = NULL;
  CHECK_OK(mps_buffer_create(device, stream, bytes, &buffer));
  CHECK_OK(mps_stream_synchronize(stream));
  if (buffer) memset(mps_buffer_contents(buffer), 0, bytes);
  return buffer;
}

/* NULL after a failed check. */
static inline mps_library *compile(const char *source) {
  mps_library *library = NULL;
  CHECK_OK(mps_library_compile(device, source, NULL, &library));
  return library;
}

#endif
