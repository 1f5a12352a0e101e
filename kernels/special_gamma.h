// SPDX-License-Identifier: BSD-3-Clause
//
// special_gamma: the gamma function's family. Formulas are those of Abramowitz and Stegun, chapter 6, and of the Digital Library of
// Mathematical Functions (DLMF), chapters 5, 8 and 25.
#ifndef OPENMPS_KERNELS_SPECIAL_GAMMA_H
#define OPENMPS_KERNELS_SPECIAL_GAMMA_H

#include "special_elementary.h"

namespace special {

// lgamma(2 + z) for |z| <= 1: z (1 + z) times a polynomial.
METAL_FUNC float lgamma_near_2(float z) {
  float p = 1.93196011e-05f;
  p = p * z - 3.87439104e-05f;
  p = p * z + 2.02178544e-05f;
  p = p * z - 5.23928684e-05f;
  p = p * z + 0.000195833534f;
  p = p * z - 0.000425597827f;
  p = p * z + 0.000910489529f;
  p = p * z - 0.00210205f;
  p = p * z + 0.0049994844f;
  p = p * z - 0.0123849772f;
  p = p * z + 0.0329649448f;
  p = p * z - 0.10031727f;
  p = p * z + 0.422784328f;
  return p * z * (1.0f + z);
}

// Stirling's series, its rest fitted for x >= 3.
METAL_FUNC float lgamma_large(float x) {
  float u = 1.0f / (x * x);
  float p = 0.000484247546f;
  p = p * u - 0.00056207506f;
  p = p * u + 0.00079218176f;
  p = p * u - 0.00277775037f;
  p = p * u + 0.0833333358f;
  return (x - 0.5f) * (metal::log(x) - 1.0f) + (0.418938533f + p / x);
}

METAL_FUNC float lgamma_positive(float x) {
  float z = x < 1.0f ? x - 1.0f : x > 3.0f ? 1.0f : x - 2.0f; // lgamma(x + 1) below 1
  float low = lgamma_near_2(z);
  low = x < 1.0f ? low - metal::log(x) : low;
  return x < 3.0f ? low : lgamma_large(x);
}

// sin(pi x) for the distance of x to the nearest integer: |sin| of the whole.
METAL_FUNC float absolute_sin_pi(float x) {
  float r = metal::fabs(x - metal::rint(x));
  return metal::sin(3.14159265f * r);
}

METAL_FUNC float lgamma(float x) {
  float a = metal::fabs(x);
  float positive = lgamma_positive(a);
  // Reflection: Gamma(x) Gamma(-x) = -pi / (x sin(pi x)).
  float negative = metal::log(3.14159265f / (a * absolute_sin_pi(a))) - positive;
  float result = x < 0.0f && a > 1.0e-10f ? negative : positive;
  result = x <= 0.0f && metal::floor(x) == x ? infinity() : result;
  result = a == infinity() ? a : result;
  return x != x ? x : result;
}

// psi(x) for x > 0: up to 6 by the recurrence psi(x) = psi(x + 1) - 1/x, then the asymptotic series (DLMF 5.11.2).
METAL_FUNC float digamma_positive(float x) {
  float sum = 0.0f;
  for (int k = 0; k < 6; k++) {
    bool small = x < 6.0f;
    sum = small ? sum - 1.0f / x : sum;
    x = small ? x + 1.0f : x;
  }
  float u = 1.0f / (x * x);
  float series = u * (0.0833333333f - u * (0.00833333333f - u * (0.00396825397f - u * (0.00416666667f - u * 0.00757575758f))));
  series = x > 1.0e17f ? 0.0f : series;
  return (metal::log(x) - 0.5f / x - series) + sum;
}

METAL_FUNC float digamma(float x) {
  // Reflection: psi(1 - x) - psi(x) = pi / tan(pi x).
  float r = x - metal::rint(x);
  float positive = digamma_positive(x <= 0.0f ? 1.0f - x : x);
  float result = x < 0.0f ? positive - 3.14159265f / metal::tan(3.14159265f * r) : positive;
  result = x < 0.0f && r == 0.0f ? not_a_number() : result;
  result = x == 0.0f ? metal::copysign(infinity(), -x) : result;
  result = x == infinity() ? x : result;
  return x != x || x == -infinity() ? not_a_number() : result;
}

// psi'(x) in the same manner (DLMF 5.15.8).
METAL_FUNC float trigamma_positive(float x) {
  float sum = 0.0f;
  for (int k = 0; k < 6; k++) {
    bool small = x < 6.0f;
    sum = small ? sum + 1.0f / (x * x) : sum;
    x = small ? x + 1.0f : x;
  }
  float u = 1.0f / (x * x);
  float series = (1.0f + 0.5f / x + u * (0.166666667f - u * (0.0333333333f - u * (0.0238095238f - u * 0.0333333333f)))) / x;
  return sum + series;
}

METAL_FUNC float trigamma(float x) {
  float sine = absolute_sin_pi(x);
  float ratio = 3.14159265f / sine;
  float positive = trigamma_positive(x < 0.5f ? 1.0f - x : x);
  float result = x < 0.5f ? ratio * ratio - positive : positive;
  return x != x ? x : result;
}

// Hurwitz's zeta(s, q) = sum over k >= 0 of (k + q)^-s, by the Euler-Maclaurin formula with 9 terms and more of the sum itself
// (DLMF 25.11.5); the coefficients are those of x^(2k) / (2k)! of the Bernoulli numbers, inverted.
inline float zeta(float s, float q) {
  if (s == 1.0f) return infinity();
  if (!(s > 1.0f)) return not_a_number();
  if (q <= 0.0f) {
    if (q == metal::floor(q)) return infinity();
    if (s != metal::floor(s)) return not_a_number();
  }
  if (!(q < 16777216.0f)) return q == infinity() ? 0.0f : q != q ? q : metal::pow(q, 1.0f - s) / (s - 1.0f);
  const float inverted[12] = {12.0f, -720.0f, 30240.0f, -1209600.0f, 47900160.0f, -1.8924375803183791606e9f, 7.47242496e10f,
                              -2.950130727918164224e12f, 1.1646782814350067249e14f, -4.5979787224074726105e15f,
                              1.8152105401943546773e17f, -7.1661652561756670113e18f};
  float sum = metal::pow(q, -s), a = q, term = 0.0f;
  for (int i = 0; i < 9 || a <= 9.0f; i++) {
    a += 1.0f;
    term = metal::pow(a, -s);
    sum += term;
    if ((term == 0.0f && a > 0.0f) || metal::fabs(term) < metal::fabs(sum) * 6.0e-8f) return sum;
  }
  sum += term * a / (s - 1.0f) - 0.5f * term;
  float factor = 1.0f, k = 0.0f;
  for (int i = 0; i < 12; i++) {
    factor *= s + k;
    term /= a;
    float t = factor * term / inverted[i];
    sum += t;
    if (metal::fabs(t) < metal::fabs(sum) * 6.0e-8f) break;
    k += 1.0f;
    factor *= s + k;
    term /= a;
    k += 1.0f;
  }
  return sum;
}

// (x - a) / a - log(x / a), without cancellation near x = a.
inline float excess(float x, float a) {
  float m = (x - a) / a;
  float series = 0.0f;
  for (int k = 14; k >= 2; k--) series = (k & 1 ? -1.0f : 1.0f) / float(k) + series * m;
  return metal::fabs(m) < 0.3f ? series * m * m : m - metal::log(x / a);
}

// x^a e^-x / Gamma(a + 1).
inline float gamma_prefactor(float a, float x) {
  if (a < 8.0f) return metal::exp(a * metal::log(x) - x - lgamma_positive(a + 1.0f));
  float u = 1.0f / (a * a);
  float stirling = (0.0833333333f - u * (0.00277777778f - u * 0.000793650794f)) / a;
  return metal::exp(-a * excess(x, a) - stirling) * metal::rsqrt(6.28318531f * a);
}

// P(a, x) by its power series (DLMF 8.11.4).
inline float gamma_series(float a, float x) {
  float term = 1.0f, sum = 1.0f, n = a;
  for (int i = 0; i < 600; i++) {
    n += 1.0f;
    term *= x / n;
    sum += term;
    if (term < sum * 6.0e-8f) break;
  }
  return gamma_prefactor(a, x) * sum;
}

// Q(a, x) by Legendre's continued fraction (DLMF 8.9.2), evaluated by Lentz's method.
inline float gamma_fraction(float a, float x) {
  float b = x + 1.0f - a, c = 1.0e30f, d = 1.0f / b, h = d;
  for (int i = 1; i < 600; i++) {
    float n = -float(i) * (float(i) - a);
    b += 2.0f;
    d = n * d + b;
    d = metal::fabs(d) < 1.0e-30f ? 1.0e-30f : d;
    c = b + n / c;
    c = metal::fabs(c) < 1.0e-30f ? 1.0e-30f : c;
    d = 1.0f / d;
    float step = d * c;
    h *= step;
    if (metal::fabs(step - 1.0f) < 1.2e-7f) break;
  }
  return gamma_prefactor(a, x) * a * h;
}

// Q(a, x) for small a and x, where 1 - P would cancel: 1 - x^a / Gamma(a + 1) (1 + a sum (-x)^n / (n! (a + n))).
inline float gamma_small_complement(float a, float x) {
  float factor = 1.0f, sum = 0.0f;
  for (int n = 1; n < 40; n++) {
    factor *= -x / float(n);
    float term = factor / (a + float(n));
    sum += term;
    if (metal::fabs(term) <= metal::fabs(sum) * 6.0e-8f) break;
  }
  float exponent = a * metal::log(x) - lgamma_positive(a + 1.0f);
  return -expm1(exponent) - metal::exp(exponent) * a * sum;
}

// Temme's uniform expansion for large a (DLMF 8.12.3): Q = erfc(eta sqrt(a/2)) / 2 + R, P = erfc(-eta sqrt(a/2)) / 2 - R.
inline float gamma_uniform(float a, float x, bool upper) {
  float phi = excess(x, a);
  if (a * phi > 110.0f) return (x > a) == upper ? 0.0f : 1.0f; // the polynomials below may be infinite here
  float eta = metal::sqrt(2.0f * (phi > 0.0f ? phi : 0.0f));
  eta = x < a ? -eta : eta;
  float c0 = -0.333333333f + eta * (0.0833333333f + eta * (-0.0148148148f + eta * (0.00115740741f + eta * (0.000352733686f +
             eta * (-0.000178755144f + eta * (3.91926318e-05f - eta * 2.18544851e-06f))))));
  float c1 = -0.00185185185f + eta * (-0.00347222222f + eta * (0.00264550265f + eta * (-0.000990226337f + eta * 0.000205761317f)));
  float c2 = 0.00413359788f - eta * 0.00268132716f;
  float rest = metal::exp(-a * phi) * metal::rsqrt(6.28318531f * a) * (c0 + (c1 + c2 / a) / a);
  float t = eta * metal::sqrt(0.5f * a);
  return upper ? 0.5f * erfc(t) + rest : 0.5f * erfc(-t) - rest;
}

#define OPENMPS_GAMMA_LARGE 200.0f

// The regularised lower incomplete gamma function P(a, x).
inline float igamma(float a, float x) {
  if (x < 0.0f || a < 0.0f) return not_a_number();
  if (a == 0.0f) return x > 0.0f ? 1.0f : not_a_number();
  if (x == 0.0f) return 0.0f;
  if (a == infinity()) return x == infinity() ? not_a_number() : 0.0f;
  if (x == infinity()) return 1.0f;
  if (x != x || a != a) return x + a;
  if (a > OPENMPS_GAMMA_LARGE) return gamma_uniform(a, x, false);
  return x < a + 1.0f ? gamma_series(a, x) : 1.0f - gamma_fraction(a, x);
}

// The regularised upper incomplete gamma function Q(a, x).
inline float igammac(float a, float x) {
  if (x < 0.0f || a < 0.0f) return not_a_number();
  if (a == 0.0f) return x > 0.0f ? 0.0f : not_a_number();
  if (x == 0.0f) return 1.0f;
  if (a == infinity()) return x == infinity() ? not_a_number() : 1.0f;
  if (x == infinity()) return 0.0f;
  if (x != x || a != a) return x + a;
  if (a > OPENMPS_GAMMA_LARGE) return gamma_uniform(a, x, true);
  if (x < 1.1f && a < 1.0f) return gamma_small_complement(a, x);
  return x < a + 1.0f ? 1.0f - gamma_series(a, x) : gamma_fraction(a, x);
}

}  // namespace special

#endif
