// SPDX-License-Identifier: BSD-3-Clause
//
// random: numbers from Philox blocks. A thread makes the four elements of one block (two, for integers of more than 32 bits).

#include <metal_stdlib>
#include "philox.h"
#include "random_arguments.h"

using namespace metal;

namespace {

// A distribution turns a block into four floats.
struct uniform {
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

// A permutation of 0..count-1 (Fisher and Yates, with modulo). One thread: each step needs the one before.
kernel void random_permutation(device long *out [[buffer(0)]], constant mps_random_arguments &a [[buffer(1)]], uint position [[thread_position_in_grid]]) {
  for (long i = 0; i < a.count; i++) out[i] = i;
  for (long i = 0; i + 1 < a.count; i++) {
    const philox_block x = philox(a.seed, a.offset + ulong(i));
    const ulong word = ulong(x.words[0]) | (ulong(x.words[1]) << 32);
    const long j = i + long(word % ulong(a.count - i));
    const long kept = out[i];
    out[i] = out[j];
    out[j] = kept;
  }
}

#define FLOAT(NAME, DISTRIBUTION, SUFFIX, T)                                                                                                 \
  template [[host_name("random_" #NAME "_" #SUFFIX)]] kernel void random_float<T, DISTRIBUTION>(device T *, constant mps_random_arguments &, \
                                                                                               uint);
#define FLOATS(NAME, DISTRIBUTION)       \
  FLOAT(NAME, DISTRIBUTION, f32, float)  \
  FLOAT(NAME, DISTRIBUTION, f16, half)   \
  FLOAT(NAME, DISTRIBUTION, bf16, bfloat)
FLOATS(uniform, uniform)
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
