/* SPDX-License-Identifier: BSD-3-Clause
 *
 * philox: the counter-based generator Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011) and the
 * conversions of its words to numbers.
 */
#ifndef OPENMPS_KERNELS_PHILOX_H
#define OPENMPS_KERNELS_PHILOX_H

#include <metal_stdlib>

struct philox_block {
  uint words[4];
};

/* Block number `counter` of the sequence of `seed`. Each block has 2^32 rounds, for those who do not know beforehand how many words they need. */
inline philox_block philox(ulong seed, ulong counter, uint round_of_block) {
  uint k0 = uint(seed), k1 = uint(seed >> 32);
  uint c0 = uint(counter), c1 = uint(counter >> 32), c2 = round_of_block, c3 = 0;
  for (uint round = 0; round < 10; round++) {
    const ulong p0 = ulong(0xD2511F53u) * c0, p1 = ulong(0xCD9E8D57u) * c2;
    const uint n0 = uint(p1 >> 32) ^ c1 ^ k0, n2 = uint(p0 >> 32) ^ c3 ^ k1;
    c1 = uint(p1);
    c3 = uint(p0);
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}
inline philox_block philox(ulong seed, ulong counter) { return philox(seed, counter, 0); }

/* In [0, 1), a multiple of 2^-24. */
inline float unit(uint word) { return float(word >> 8) * 5.9604644775390625e-8f; }
/* In (0, 1], a multiple of 2^-24: safe for a logarithm. */
inline float unit_above_zero(uint word) { return float((word >> 8) + 1u) * 5.9604644775390625e-8f; }

/* In [0, 1) with as many bits as T holds, so that rounding never gives 1. */
template <typename T> inline float unit_for(uint word) { return unit(word); }
template <> inline float unit_for<half>(uint word) { return float(word >> 21) * 4.8828125e-4f; }
template <> inline float unit_for<bfloat>(uint word) { return float(word >> 24) * 3.90625e-3f; }

/* Two independent standard normals from two words (Box and Muller, 1958). */
inline float2 normal_pair(uint first, uint second) {
  const float radius = metal::sqrt(-2.0f * metal::log(unit_above_zero(first)));
  const float angle = 6.283185307179586f * unit(second);
  return float2(radius * metal::cos(angle), radius * metal::sin(angle));
}

#endif
