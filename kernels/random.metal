// SPDX-License-Identifier: BSD-3-Clause
//
// random: numbers from Philox blocks. A thread makes the four elements of one block (two, for integers of more than 32 bits).

#include <metal_stdlib>
#include "philox.h"
#include "random_arguments.h"

using namespace metal;

/* Iterations are independent. */
#define RANDOM_VECTORIZE _Pragma("clang loop vectorize(assume_safety)")

namespace {

// A distribution turns a block into four floats.
struct uniform_floats {
  template <typename T> static void apply(philox_block x, constant mps_random_arguments &a, thread float *v) {
    for (uint i = 0; i < 4; i++) v[i] = unit_for<T>(x.words[i]) * (a.b - a.a) + a.a;
  }
};
struct normal {
  template <typename T> static void apply(philox_block x, constant mps_random_arguments &a, thread float *v) {
    const float2 p = normal_pair(x.words[0], x.words[1]), q = normal_pair(x.words[2], x.words[3]);
    v[0] = p.x * a.b + a.a;
    v[1] = p.y * a.b + a.a;
    v[2] = q.x * a.b + a.a;
    v[3] = q.y * a.b + a.a;
  }
};
struct log_normal {
  template <typename T> static void apply(philox_block x, constant mps_random_arguments &a, thread float *v) {
    normal::apply<T>(x, a, v);
    for (uint i = 0; i < 4; i++) v[i] = exp(v[i]);
  }
};
// -log(u) / lambda, u in (0, 1]; u = 1 gives the smallest positive step instead of 0, as PyTorch's does.
struct exponential {
  template <typename T> static void apply(philox_block x, constant mps_random_arguments &a, thread float *v) {
    for (uint i = 0; i < 4; i++) {
      const float u = unit_above_zero(x.words[i]);
      v[i] = (u >= 1.0f - 5.9604645e-8f ? 5.9604645e-8f : -log(u)) / a.a;
    }
  }
};
struct cauchy {
  template <typename T> static void apply(philox_block x, constant mps_random_arguments &a, thread float *v) {
    for (uint i = 0; i < 4; i++) {
      const float u = (float(x.words[i] >> 9) + 0.5f) * 1.1920928955078125e-7f;  // never 0, 1/2 or 1
      v[i] = a.a + a.b * tan(3.14159265358979323846f * (u - 0.5f));
    }
  }
};
// How many trials up to the first success: ceil(log(u) / log(1 - p)); a.b holds log(1 - p).
struct geometric {
  template <typename T> static void apply(philox_block x, constant mps_random_arguments &a, thread float *v) {
    for (uint i = 0; i < 4; i++) v[i] = max(1.0f, ceil(log((float(x.words[i] >> 9) + 0.5f) * 1.1920928955078125e-7f) / a.b));
  }
};
struct bernoulli {
  template <typename T> static void apply(philox_block x, constant mps_random_arguments &a, thread float *v) {
    for (uint i = 0; i < 4; i++) v[i] = unit(x.words[i]) < a.a ? 1.0f : 0.0f;
  }
};

}  // namespace

template <typename T, typename Distribution>
kernel void random_float(device T *out [[buffer(0)]], constant mps_random_arguments &a [[buffer(1)]], uint block [[thread_position_in_grid]]) {
  float v[4];
  Distribution::template apply<T>(philox(a.seed, a.offset + block), a, v);
  const long first = long(block) * 4;
  if (first + 4 <= a.count) {
    for (uint i = 0; i < 4; i++) out[first + i] = T(v[i]);
  } else {
    for (uint i = 0; i < 4 && first + i < a.count; i++) out[first + i] = T(v[i]);
  }
}

// out[i] = 1 with probability p[i].
template <typename T>
kernel void random_bernoulli_each(device T *out [[buffer(0)]], constant mps_random_arguments &a [[buffer(1)]], device const float *p [[buffer(2)]],
                                  uint block [[thread_position_in_grid]]) {
  const philox_block x = philox(a.seed, a.offset + block);
  const long first = long(block) * 4;
  for (uint i = 0; i < 4 && first + i < a.count; i++) out[first + i] = T(unit(x.words[i]) < p[first + i] ? 1.0f : 0.0f);
}

// Dropout: mask[i] = kept with probability a.a, out[i] = kept ? x[i] * a.b : 0.
template <typename T>
kernel void random_dropout(device T *out [[buffer(0)]], constant mps_random_arguments &a [[buffer(1)]], device const T *x [[buffer(2)]],
                           device bool *mask [[buffer(3)]], uint block [[thread_position_in_grid]]) {
  const philox_block r = philox(a.seed, a.offset + block);
  const long first = long(block) * 4;
  for (uint i = 0; i < 4 && first + i < a.count; i++) {
    const bool kept = unit(r.words[i]) < a.a;
    mask[first + i] = kept;
    out[first + i] = kept ? T(float(x[first + i]) * a.b) : T(0.0f);
  }
}

// base + word % range, for ranges of at most 2^32.
template <typename T>
kernel void random_integer(device T *out [[buffer(0)]], constant mps_random_arguments &a [[buffer(1)]], uint block [[thread_position_in_grid]]) {
  const philox_block x = philox(a.seed, a.offset + block);
  const long first = long(block) * 4;
  for (uint i = 0; i < 4 && first + i < a.count; i++) out[first + i] = T(long(ulong(a.base) + (a.range >> 32 ? ulong(x.words[i]) : ulong(x.words[i] % uint(a.range)))));
}

// The same from two words, for larger ranges; range 0 takes all 64 bits.
template <typename T>
kernel void random_integer_wide(device T *out [[buffer(0)]], constant mps_random_arguments &a [[buffer(1)]], uint block [[thread_position_in_grid]]) {
  const philox_block x = philox(a.seed, a.offset + block);
  const long first = long(block) * 2;
  for (uint i = 0; i < 2 && first + i < a.count; i++) {
    const ulong word = ulong(x.words[2 * i]) | (ulong(x.words[2 * i + 1]) << 32);
    out[first + i] = T(long(ulong(a.base) + (a.range ? word % a.range : word)));
  }
}

// A permutation of 0..count-1. Each number goes to one of 2^bits buckets, evenly, and each bucket, which fits into a cache, is shuffled by
// itself (Fisher and Yates); the buckets one after the other are a permutation, all equally likely (Rao 1961, Sandelius 1962). Blocks of
// numbers and buckets have words of their own, so that threads do not matter.

namespace {

enum { PHILOX_TOGETHER = 32 };  // Philox blocks that are made side by side

// Sixteen bits for each of 8 * PHILOX_TOGETHER numbers.
inline void make_digits(constant mps_permutation_arguments &a, long block, thread uint *digits) {
  const uint shift = 16 - a.bits;
  RANDOM_VECTORIZE
  for (uint k = 0; k < PHILOX_TOGETHER; k++) {
    const philox_block x = philox(a.seed, a.offset + ulong(block) + k);
    for (uint w = 0; w < 4; w++) {
      digits[8 * k + 2 * w] = (x.words[w] & 0xffffu) >> shift;
      digits[8 * k + 2 * w + 1] = (x.words[w] >> 16) >> shift;
    }
  }
}

}  // namespace

// counts[bucket * blocks + block] = numbers of a block that go to a bucket.
kernel void permutation_count(device uint *counts [[buffer(1)]], constant mps_permutation_arguments &a [[buffer(2)]], uint block [[thread_position_in_grid]]) {
  const long begin = long(block) * MPS_PERMUTATION_BLOCK, end = min(begin + MPS_PERMUTATION_BLOCK, long(a.count)), buckets = 1L << a.bits;
  uint digits[8 * PHILOX_TOGETHER], found[MPS_PERMUTATION_BUCKETS];
  for (long b = 0; b < buckets; b++) found[b] = 0;
  for (long i = begin; i < end; i += 8 * PHILOX_TOGETHER) {
    make_digits(a, i / 8, digits);
    const long count = min(8L * PHILOX_TOGETHER, end - i);
    for (long k = 0; k < count; k++) found[digits[k]]++;
  }
  for (long b = 0; b < buckets; b++) counts[b * a.blocks + block] = found[b];
}

// Turns counts into where each block's numbers begin in each bucket.
kernel void permutation_starts(device uint *counts [[buffer(1)]], constant mps_permutation_arguments &a [[buffer(2)]], uint position [[thread_position_in_grid]]) {
  const long length = a.blocks << a.bits;
  uint start = 0;
  for (long k = 0; k < length; k++) {
    const uint here = counts[k];
    counts[k] = start;
    start += here;
  }
}

// Brings the numbers of a block to their buckets.
kernel void permutation_deal(device uint *dealt [[buffer(0)]], device const uint *starts [[buffer(1)]], constant mps_permutation_arguments &a [[buffer(2)]],
                             uint block [[thread_position_in_grid]]) {
  const long begin = long(block) * MPS_PERMUTATION_BLOCK, end = min(begin + MPS_PERMUTATION_BLOCK, long(a.count)), buckets = 1L << a.bits;
  uint digits[8 * PHILOX_TOGETHER], next[MPS_PERMUTATION_BUCKETS];
  for (long b = 0; b < buckets; b++) next[b] = starts[b * a.blocks + block];
  for (long i = begin; i < end; i += 8 * PHILOX_TOGETHER) {
    make_digits(a, i / 8, digits);
    const long count = min(8L * PHILOX_TOGETHER, end - i);
    for (long k = 0; k < count; k++) dealt[next[digits[k]]++] = uint(i + k);
  }
}

// Shuffles a bucket: number i changes places with one of those from i on. Words: two for each place of the result.
kernel void permutation_shuffle(device uint *dealt [[buffer(0)]], device const uint *starts [[buffer(1)]], constant mps_permutation_arguments &a [[buffer(2)]],
                                device long *out [[buffer(3)]], uint bucket [[thread_position_in_grid]]) {
  const bool whole = a.bits == 0, last = long(bucket) + 1 == 1L << a.bits;
  const long begin = whole ? 0 : long(starts[long(bucket) * a.blocks]), end = last ? long(a.count) : long(starts[(long(bucket) + 1) * a.blocks]);
  const ulong first = a.offset + ulong(a.deal_blocks);
  if (whole)
    for (long i = 0; i < end; i++) dealt[i] = uint(i);
  uint places[2 * PHILOX_TOGETHER];
  for (long i = begin & ~1L; i < end; i += 2 * PHILOX_TOGETHER) {
    RANDOM_VECTORIZE
    for (uint k = 0; k < PHILOX_TOGETHER; k++) {
      const philox_block x = philox(a.seed, first + ulong(i) / 2 + k);
      for (uint w = 0; w < 2; w++) {  // 64 bits of chance, times how many are left
        const ulong left = ulong(max(end - i - long(2 * k + w), 0L));
        places[2 * k + w] = uint((ulong(x.words[2 * w + 1]) * left + ((ulong(x.words[2 * w]) * left) >> 32)) >> 32);
      }
    }
    const long stop = min(i + 2 * PHILOX_TOGETHER, end);
    for (long j = max(i, begin); j < stop; j++) {
      const long other = j + long(places[j - i]);
      const uint kept = dealt[other];
      dealt[other] = dealt[j];
      out[j] = kept;
    }
  }
}

#define FLOAT(NAME, DISTRIBUTION, SUFFIX, T)                                                                                                 \
  template [[host_name("random_" #NAME "_" #SUFFIX)]] kernel void random_float<T, DISTRIBUTION>(device T *, constant mps_random_arguments &, \
                                                                                               uint);
#define FLOATS(NAME, DISTRIBUTION)       \
  FLOAT(NAME, DISTRIBUTION, f32, float)  \
  FLOAT(NAME, DISTRIBUTION, f16, half)   \
  FLOAT(NAME, DISTRIBUTION, bf16, bfloat)
FLOATS(uniform, uniform_floats)
FLOATS(normal, normal)
FLOATS(log_normal, log_normal)
FLOATS(exponential, exponential)
FLOATS(cauchy, cauchy)
FLOATS(geometric, geometric)
FLOATS(bernoulli, bernoulli)

#define DROPOUT(SUFFIX, T)                                                                                                                    \
  template [[host_name("random_dropout_" #SUFFIX)]] kernel void random_dropout<T>(device T *, constant mps_random_arguments &, device const T *, \
                                                                                 device bool *, uint);
DROPOUT(f32, float)
DROPOUT(f16, half)
DROPOUT(bf16, bfloat)
template [[host_name("random_bernoulli_each_f32")]] kernel void random_bernoulli_each<float>(device float *, constant mps_random_arguments &,
                                                                                           device const float *, uint);

#define INTEGER(SUFFIX, T)                                                                                                              \
  template [[host_name("random_integer_" #SUFFIX)]] kernel void random_integer<T>(device T *, constant mps_random_arguments &, uint);   \
  template [[host_name("random_integer_wide_" #SUFFIX)]] kernel void random_integer_wide<T>(device T *, constant mps_random_arguments &, uint);
INTEGER(i32, int)
INTEGER(i64, long)
