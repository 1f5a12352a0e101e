/* SPDX-License-Identifier: BSD-3-Clause
 *
 * blake2: the reference algorithm of RFC 7693, without a key.
 */
#include "base/blake2.h"

#include <string.h>

static const uint64_t initial[8] = {
  UINT64_C(0x6a09e667f3bcc908), UINT64_C(0xbb67ae8584caa73b), UINT64_C(0x3c6ef372fe94f82b), UINT64_C(0xa54ff53a5f1d36f1),
  UINT64_C(0x510e527fade682d1), UINT64_C(0x9b05688c2b3e6c1f), UINT64_C(0x1f83d9abfb41bd6b), UINT64_C(0x5be0cd19137e2179)};

static const unsigned char order[10][16] = {
  {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
  {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4}, {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
  {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13}, {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
  {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11}, {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
  {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5}, {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0}};

static uint64_t load(const unsigned char *p) {
  uint64_t value = 0;
  for (int i = 7; i >= 0; i--) value = value << 8 | p[i];
  return value;
}

static inline uint64_t rotate(uint64_t value, int bits) { return value >> bits | value << (64 - bits); }

static inline void mix(uint64_t *v, int a, int b, int c, int d, uint64_t x, uint64_t y) {
  v[a] += v[b] + x;
  v[d] = rotate(v[d] ^ v[a], 32);
  v[c] += v[d];
  v[b] = rotate(v[b] ^ v[c], 24);
  v[a] += v[b] + y;
  v[d] = rotate(v[d] ^ v[a], 16);
  v[c] += v[d];
  v[b] = rotate(v[b] ^ v[c], 63);
}

static void compress(mps_blake2 *hash, const unsigned char *block, uint64_t last) {
  uint64_t v[16], m[16];
  for (int i = 0; i < 16; i++) m[i] = load(block + 8 * i);
  for (int i = 0; i < 8; i++) {
    v[i] = hash->state[i];
    v[i + 8] = initial[i];
  }
  v[12] ^= hash->length;
  v[14] ^= last;
#pragma GCC unroll 12 /* so that `order` is folded: twice as fast */
  for (int round = 0; round < 12; round++) {
    const unsigned char *s = order[round % 10];
    mix(v, 0, 4, 8, 12, m[s[0]], m[s[1]]);
    mix(v, 1, 5, 9, 13, m[s[2]], m[s[3]]);
    mix(v, 2, 6, 10, 14, m[s[4]], m[s[5]]);
    mix(v, 3, 7, 11, 15, m[s[6]], m[s[7]]);
    mix(v, 0, 5, 10, 15, m[s[8]], m[s[9]]);
    mix(v, 1, 6, 11, 12, m[s[10]], m[s[11]]);
    mix(v, 2, 7, 8, 13, m[s[12]], m[s[13]]);
    mix(v, 3, 4, 9, 14, m[s[14]], m[s[15]]);
  }
  for (int i = 0; i < 8; i++) hash->state[i] ^= v[i] ^ v[i + 8];
}

void mps_blake2_begin(mps_blake2 *hash) {
  *hash = (mps_blake2){0};
  memcpy(hash->state, initial, sizeof initial);
  hash->state[0] ^= UINT64_C(0x01010000) ^ MPS_BLAKE2_BYTES;
}

void mps_blake2_add(mps_blake2 *hash, const void *bytes, size_t length) {
  const unsigned char *p = bytes;
  while (length > 0) {
    if (hash->used == sizeof hash->block) { /* only when more follows: the last block is marked */
      hash->length += sizeof hash->block;
      compress(hash, hash->block, 0);
      hash->used = 0;
    }
    size_t part = sizeof hash->block - hash->used;
    if (part > length) part = length;
    memcpy(hash->block + hash->used, p, part);
    hash->used += part;
    p += part;
    length -= part;
  }
}

void mps_blake2_add_u64(mps_blake2 *hash, uint64_t value) {
  unsigned char bytes[8];
  for (int i = 0; i < 8; i++) bytes[i] = (unsigned char)(value >> 8 * i);
  mps_blake2_add(hash, bytes, sizeof bytes);
}

void mps_blake2_add_string(mps_blake2 *hash, const char *text) {
  size_t length = text ? strlen(text) : 0;
  mps_blake2_add_u64(hash, length);
  mps_blake2_add(hash, text, length);
}

void mps_blake2_end(mps_blake2 *hash, unsigned char out[MPS_BLAKE2_BYTES]) {
  hash->length += hash->used;
  memset(hash->block + hash->used, 0, sizeof hash->block - hash->used);
  compress(hash, hash->block, UINT64_MAX);
  for (int i = 0; i < MPS_BLAKE2_BYTES; i++) out[i] = (unsigned char)(hash->state[i / 8] >> 8 * (i % 8));
}
