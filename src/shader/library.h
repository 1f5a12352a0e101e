/* SPDX-License-Identifier: BSD-3-Clause
 *
 * library: inside of mps_library and mps_pipeline, for the encoder.
 */
#ifndef OPENMPS_SHADER_LIBRARY_H
#define OPENMPS_SHADER_LIBRARY_H

#include "driver/driver.h"
#include "openmps/library.h"

struct mps_pipeline {
  const mps_driver_function *function;
  mps_library *library;
  mps_pipeline_info info;
};

/* True for the shipped kernels, which live as long as the device: their uses need not be noted. */
bool mps_library_is_builtin(const mps_library *library);
/* A step of `stream` with this serial number runs the library's code: it is not unloaded before. Any thread. */
void mps_library_note_use(mps_library *library, mps_stream *stream, uint64_t serial);

#endif
