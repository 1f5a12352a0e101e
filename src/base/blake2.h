/* SPDX-License-Identifier: BSD-3-Clause
 *
 * blake2: BLAKE2b with a digest of 32 bytes (RFC 7693), for keys that must not collide and files that must not be believed untested.
 */
#ifndef OPENMPS_BASE_BLAKE2_H
#define OPENMPS_BASE_BLAKE2_H

#include <stddef.h>
#include <stdint.h>

#define MPS_BLAKE2_BYTES 32

typedef struct mps_blake2 {
  uint64_t state[8];
  uint64_t length; /* bytes compressed so far */
  size_t used;     /* bytes waiting in `block` */
  unsigned char block[128];
} mps_blake2;

void mps_blake2_begin(mps_blake2 *hash);
void mps_blake2_add(mps_blake2 *hash, const void *bytes, size_t length);
/* The length in front, so that "ab","c" and "a","bc" differ. NULL counts as "". */
void mps_blake2_add_string(mps_blake2 *hash, const char *text);
void mps_blake2_add_u64(mps_blake2 *hash, uint64_t value);
void mps_blake2_end(mps_blake2 *hash, unsigned char out[MPS_BLAKE2_BYTES]);

#endif
