// SPDX-License-Identifier: BSD-3-Clause
//
// special_polynomial: orthogonal polynomials by their three-term recurrences (Abramowitz and Stegun, table 22.7), and Chebyshev's by their
// trigonometric forms where those are steadier (|x| < 1, degrees above 6). The degree is cut to an integer.
#ifndef OPENMPS_KERNELS_SPECIAL_POLYNOMIAL_H
#define OPENMPS_KERNELS_SPECIAL_POLYNOMIAL_H

#include "special_elementary.h"

namespace special {

// p(k+1) = 2 x p(k) - p(k-1) from p(0) = 1 and p(1).
inline float chebyshev_recurrence(float x, float first, long n) {
  float before = 1.0f, p = first;
  if (n == 0) return before;
  for (long k = 1; k < n && p == p; k++) {
    float next = (x + x) * p - before;
    before = p;
    p = next;
  }
  return p;
}

inline float chebyshev_t(float x, float degree) {
  long n = long(degree);
  if (n < 0) return 0.0f;
  if (metal::fabs(x) == 1.0f) return x > 0.0f || n % 2 == 0 ? 1.0f : -1.0f;
  if (n > 6 && metal::fabs(x) < 1.0f) return metal::cos(float(n) * metal::acos(x));
  return chebyshev_recurrence(x, x, n);
}

inline float chebyshev_u(float x, float degree) {
  long n = long(degree);
  if (n < 0) return 0.0f;
  if (metal::fabs(x) == 1.0f) return x > 0.0f || n % 2 == 0 ? float(n + 1) : -float(n + 1);
  if (n > 8 && metal::fabs(x) < 1.0f) {
    float angle = metal::acos(x), sine = metal::sin(angle);
    return sine != 0.0f ? metal::sin(float(n + 1) * angle) / sine : float(n + 1) * metal::cos(float(n + 1) * angle) / x;
  }
  return chebyshev_recurrence(x, x + x, n);
}

inline float chebyshev_v(float x, float degree) {
  long n = long(degree);
  if (n < 0) return 0.0f;
  if (metal::fabs(x) == 1.0f) return x > 0.0f ? 1.0f : n % 2 == 0 ? float(n + n + 1) : -float(n + n + 1);
  if (n > 8 && metal::fabs(x) < 1.0f) {
    float angle = metal::acos(x);
    if (metal::sin(0.5f * angle) != 1.0f) return metal::cos((float(n) + 0.5f) * angle) / metal::cos(0.5f * angle);
    return n % 2 == 0 ? float(n + n + 1) : -float(n + n + 1);
  }
  return chebyshev_recurrence(x, (x + x) - 1.0f, n);
}

inline float chebyshev_w(float x, float degree) {
  long n = long(degree);
  if (n < 0) return 0.0f;
  if (metal::fabs(x) == 1.0f) return x > 0.0f ? float(n + n + 1) : n % 2 == 0 ? 1.0f : -1.0f;
  if (n > 8 && metal::fabs(x) < 1.0f) {
    float angle = metal::acos(x);
    if (metal::cos(0.5f * angle) != 1.0f) return metal::sin((float(n) + 0.5f) * angle) / metal::sin(0.5f * angle);
    return x > 0.0f ? float(n + n + 1) : n % 2 == 0 ? 1.0f : -1.0f;
  }
  return chebyshev_recurrence(x, (x + x) + 1.0f, n);
}

inline float hermite_h(float x, float degree) {
  long n = long(degree);
  if (n < 0) return 0.0f;
  if (n == 0) return 1.0f;
  float before = 1.0f, p = x + x;
  for (long k = 2; k < n + n && p == p; k += 2) {
    float next = (x + x) * p - float(k) * before;
    before = p;
    p = next;
  }
  return p;
}

inline float hermite_he(float x, float degree) {
  long n = long(degree);
  if (n < 0) return 0.0f;
  if (n == 0) return 1.0f;
  float before = 1.0f, p = x;
  for (long k = 1; k < n && p == p; k++) {
    float next = x * p - float(k) * before;
    before = p;
    p = next;
  }
  return p;
}

inline float laguerre_l(float x, float degree) {
  long n = long(degree);
  if (n < 0) return 0.0f;
  if (x == 0.0f || n == 0) return 1.0f;
  float before = 1.0f, p = 1.0f - x;
  for (long k = 1; k < n && p == p; k++) {
    float next = ((float(k + k) + (1.0f - x)) * p - float(k) * before) / float(k + 1);
    before = p;
    p = next;
  }
  return p;
}

inline float legendre_p(float x, float degree) {
  long n = long(degree);
  if (n < 0) return 0.0f;
  if (metal::fabs(x) == 1.0f) return x > 0.0f || n % 2 == 0 ? 1.0f : -1.0f;
  if (n == 0) return 1.0f;
  float before = 1.0f, p = x;
  for (long k = 1; k < n && p == p; k++) {
    float next = (float(k + k + 1) * x * p - float(k) * before) / float(k + 1);
    before = p;
    p = next;
  }
  return p;
}

}  // namespace special

#endif
