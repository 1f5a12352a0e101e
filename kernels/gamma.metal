// SPDX-License-Identifier: BSD-3-Clause
//
// gamma: random numbers whose parameters differ from element to element and that are found by rejection. Element i draws from Philox block
// offset + i and, as often as it is rejected, from that block's further words: other elements never notice.

#include <metal_stdlib>
#include "error.h"
#include "philox.h"
#include "random_arguments.h"
#include "special_gamma.h"

using namespace metal;

namespace {

// The words of one element, four at a time.
struct words {
  ulong seed, counter;
  uint round;
  philox_block next() { return philox(seed, counter, round++); }
};

inline words words_of(constant mps_random_arguments &a, uint i) { return {a.seed, a.offset + i, 0}; }

// The logarithm of a Gamma(alpha, 1) variable (Marsaglia and Tsang, "A simple method for generating gamma variables", 2000). Below 1:
// Gamma(alpha + 1) times u^(1 / alpha), whose logarithm never underflows.
inline float log_gamma_variable(float alpha, words w) {
  if (!(alpha > 0.0f)) return alpha == 0.0f ? -special::infinity() : special::not_a_number();
  if (alpha == special::infinity()) return alpha;
  float boost = 0.0f;
  if (alpha < 1.0f) {
    boost = log(unit_above_zero(w.next().words[0])) / alpha;
    alpha += 1.0f;
  }
  const float d = alpha - 0.333333333f, c = 1.0f / sqrt(9.0f * d);
  for (;;) {
    const philox_block block = w.next();
    const float x = normal_pair(block.words[0], block.words[1]).x, y = 1.0f + c * x;
    if (y <= 0.0f) continue;
    const float v = y * y * y, log_v = log(v), u = unit_above_zero(block.words[2]);
    if (u < 1.0f - 0.0331f * x * x * x * x || log(u) < 0.5f * x * x + d * (1.0f - v + log_v)) return boost + log(d) + log_v;
  }
}

// The same, not as a logarithm.
inline float gamma_variable(float alpha, words w) {
  if (!(alpha > 0.0f) || alpha == special::infinity()) return alpha < 0.0f ? special::not_a_number() : alpha;
  float boost = 1.0f;
  if (alpha < 1.0f) {
    boost = exp(log(unit_above_zero(w.next().words[0])) / alpha);
    alpha += 1.0f;
  }
  const float d = alpha - 0.333333333f, c = 1.0f / sqrt(9.0f * d);
  for (;;) {
    const philox_block block = w.next();
    const float x = normal_pair(block.words[0], block.words[1]).x, y = 1.0f + c * x;
    if (y <= 0.0f) continue;
    const float v = y * y * y, u = unit_above_zero(block.words[2]);
    if (u < 1.0f - 0.0331f * x * x * x * x || log(u) < 0.5f * x * x + d * (1.0f - v + log(v))) return boost * d * v;
  }
}

// log(k!) less Stirling's (k + 1/2) log k - k + log(2 pi) / 2, for whole k > 0.
inline float stirling_rest(float k) {
  if (k < 10.0f) return special::lgamma_positive(k + 1.0f) - ((k + 0.5f) * log(k) - k + 0.918938533f);
  const float u = 1.0f / (k * k);
  return (0.0833333333f - u * (0.00277777778f - u * 0.000793650794f)) / k;
}
// k log(k / mean) + mean - k: how far k is from its mean (Loader, "Fast and accurate computation of binomial probabilities", 2000).
inline float deviance(float k, float mean) { return k > 0.0f ? k * special::excess(mean, k) : mean; }

// log of lambda^k e^-lambda / k!.
inline float log_poisson(float k, float lambda) {
  if (k == 0.0f) return -lambda;
  return -stirling_rest(k) - deviance(k, lambda) - 0.5f * log(6.28318531f * k);
}

// Poisson: counts exponentials below 10, else transformed rejection (Hoermann, "The transformed rejection method for generating Poisson
// random variables", 1993, PTRS).
inline float poisson_variable(float lambda, words w) {
  if (lambda == 0.0f) return 0.0f;
  if (lambda > 2.8e14f) return lambda;  // the deviation is less than half a step of a float
  if (lambda < 10.0f) {
    const float limit = exp(-lambda);
    float product = 1.0f, k = 0.0f;
    for (;;) {
      const philox_block block = w.next();
      for (uint i = 0; i < 4; i++) {
        product *= unit_above_zero(block.words[i]);
        if (product <= limit) return k;
        k += 1.0f;
      }
    }
  }
  const float deviation = sqrt(lambda);
  const float b = 0.931f + 2.53f * deviation, a = -0.059f + 0.02483f * b;
  const float inverse_alpha = 1.1239f + 1.1328f / (b - 3.4f), v_r = 0.9277f - 3.6224f / (b - 2.0f);
  for (;;) {
    const philox_block block = w.next();
    for (uint i = 0; i < 4; i += 2) {
      const float u = unit(block.words[i]) - 0.5f, v = unit_above_zero(block.words[i + 1]), us = 0.5f - fabs(u);
      const float k = floor((2.0f * a / us + b) * u + lambda + 0.43f);
      if (us >= 0.07f && v <= v_r) return k;
      if (!(k >= 0.0f) || (us < 0.013f && v > us)) continue;
      if (log(v) + log(inverse_alpha) - log(a / (us * us) + b) <= log_poisson(k, lambda)) return k;
    }
  }
}

// log of the binomial probability, less what does not depend on k.
inline float log_binomial(float k, float n, float p) {
  if (k == 0.0f) return n * special::log1p(-p) + 0.5f * log(6.28318531f * n) - stirling_rest(n);
  if (k == n) return n * log(p) + 0.5f * log(6.28318531f * n) - stirling_rest(n);
  return -stirling_rest(k) - stirling_rest(n - k) - deviance(k, n * p) - deviance(n - k, n * (1.0f - p)) + 0.5f * (log(n / k) + log(n / (n - k)));
}

// Binomial with p <= 1/2: jumps from success to success when there are few, else transformed rejection (Hoermann, "The generation of
// binomial random variates", 1993, BTRS).
inline float binomial_variable(float n, float p, words w) {
  if (n * p < 10.0f) {
    const float log_q = special::log1p(-p);
    float at = 0.0f, k = 0.0f;
    for (;;) {
      const philox_block block = w.next();
      for (uint i = 0; i < 4; i++) {
        at += max(1.0f, ceil(log(unit_above_zero(block.words[i])) / log_q));
        if (!(at <= n)) return k;
        k += 1.0f;
      }
    }
  }
  const float deviation = sqrt(n * p * (1.0f - p));
  const float b = 1.15f + 2.53f * deviation, a = -0.0873f + 0.0248f * b + 0.01f * p, c = n * p + 0.5f;
  const float v_r = 0.92f - 4.2f / b, alpha = (2.83f + 5.1f / b) * deviation, mode = floor((n + 1.0f) * p);
  const float at_mode = log_binomial(mode, n, p);
  for (;;) {
    const philox_block block = w.next();
    for (uint i = 0; i < 4; i += 2) {
      const float u = unit(block.words[i]) - 0.5f, v = unit_above_zero(block.words[i + 1]), us = 0.5f - fabs(u);
      const float k = floor((2.0f * a / us + b) * u + c);
      if (!(k >= 0.0f && k <= n)) continue;
      if (us >= 0.07f && v <= v_r) return k;
      if (log(v * alpha / (a / (us * us) + b)) <= log_binomial(k, n, p) - at_mode) return k;
    }
  }
}

}  // namespace

// out[i] = Gamma(alpha[i]), at least the smallest normal number of the result's dtype (a.a).
kernel void random_gamma_f32(device float *out [[buffer(0)]], constant mps_random_arguments &a [[buffer(1)]], device const float *alpha [[buffer(2)]],
                             uint i [[thread_position_in_grid]]) {
  const float value = gamma_variable(alpha[i], words_of(a, i));
  out[i] = value < a.a ? a.a : value;
}

// Its logarithm, at least a.a.
kernel void random_log_gamma_f32(device float *out [[buffer(0)]], constant mps_random_arguments &a [[buffer(1)]], device const float *alpha [[buffer(2)]],
                                 uint i [[thread_position_in_grid]]) {
  const float value = log_gamma_variable(alpha[i], words_of(a, i));
  out[i] = value < a.a ? a.a : value;
}

kernel void random_poisson_f32(device float *out [[buffer(0)]], constant mps_random_arguments &a [[buffer(1)]], device const float *rate [[buffer(2)]],
                               device mps_kernel_error *error [[buffer(4)]], uint i [[thread_position_in_grid]]) {
  if (rate[i] >= 0.0f) {
    out[i] = poisson_variable(rate[i], words_of(a, i));
  } else {
    report_error(error, MPS_KERNEL_ERROR_RATE, 0, 0, 0);
    out[i] = 0.0f;
  }
}

kernel void random_binomial_f32(device float *out [[buffer(0)]], constant mps_random_arguments &a [[buffer(1)]], device const float *count [[buffer(2)]],
                                device const float *probability [[buffer(3)]], uint i [[thread_position_in_grid]]) {
  const float n = count[i], p = probability[i];
  if (n <= 0.0f || p <= 0.0f) {
    out[i] = 0.0f;
  } else if (p >= 1.0f) {
    out[i] = n;
  } else if (n != n || p != p || n == special::infinity()) {
    out[i] = n != n ? n : p != p ? p : n;
  } else {
    const float k = binomial_variable(n, min(p, 1.0f - p), words_of(a, i));
    out[i] = p <= 0.5f ? k : n - k;
  }
}
