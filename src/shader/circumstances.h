/* SPDX-License-Identifier: BSD-3-Clause
 *
 * circumstances: what compiling anything depends on besides its text and its options: this library, the compiler, the Metal headers. They are told
 * apart without being read, so that finding cached code costs microseconds.
 */
#ifndef OPENMPS_SHADER_CIRCUMSTANCES_H
#define OPENMPS_SHADER_CIRCUMSTANCES_H

#include "base/blake2.h"
#include "shader/compiler.h"

/* Which file or folder it is: path, device, inode, size, time of the last write. */
void mps_identity_add(mps_blake2 *hash, const char *path);
/* The identity of this library and the compiler, and of each file in the folders of headers, with the time of its last change of any kind:
 * that one cannot be set back. Looked at anew in each call: a package may be upgraded under a running process. */
void mps_circumstances_add(mps_blake2 *hash, const mps_compiler *compiler);

#endif
