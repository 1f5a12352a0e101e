// SPDX-License-Identifier: BSD-3-Clause
//
// fft_butterfly: complex values, short transforms of 2, 3, 4, 5, 7 and 8 of them in registers, forward, and where signals of a batch lie.
#ifndef OPENMPS_KERNELS_FFT_BUTTERFLY_H
#define OPENMPS_KERNELS_FFT_BUTTERFLY_H

#include <metal_stdlib>
#include "fft.h"

#define WIDTH MPS_FFT_WIDTH
#define ELEMENT MPS_FFT_ELEMENT
#define VECTORIZE _Pragma("clang loop vectorize(assume_safety) unroll(disable)")
#pragma clang fp contract(fast)

struct fft_value {
  float re, im;
};

inline fft_value operator+(fft_value a, fft_value b) { return {a.re + b.re, a.im + b.im}; }
inline fft_value operator-(fft_value a, fft_value b) { return {a.re - b.re, a.im - b.im}; }
inline fft_value operator*(fft_value a, fft_value b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
inline fft_value conjugate(fft_value a) { return {a.re, -a.im}; }
// a times -i
inline fft_value turned(fft_value a) { return {a.im, -a.re}; }

template <uint R> struct fft_butterfly;

template <> struct fft_butterfly<2> {
  static inline void run(thread fft_value *x) {
    const fft_value a = x[0] + x[1], b = x[0] - x[1];
    x[0] = a;
    x[1] = b;
  }
};

template <> struct fft_butterfly<4> {
  static inline void run(thread fft_value *x) {
    const fft_value a = x[0] + x[2], b = x[0] - x[2], c = x[1] + x[3], d = turned(x[1] - x[3]);
    x[0] = a + c;
    x[1] = b + d;
    x[2] = a - c;
    x[3] = b - d;
  }
};

template <> struct fft_butterfly<8> {
  static inline void run(thread fft_value *x) {
    const float h = 0.70710678118654752f;
    fft_value even[4] = {x[0], x[2], x[4], x[6]}, odd[4] = {x[1], x[3], x[5], x[7]};
    fft_butterfly<4>::run(even);
    fft_butterfly<4>::run(odd);
    const fft_value b = odd[1], d = odd[3];
    odd[1] = {h * (b.re + b.im), h * (b.im - b.re)};
    odd[2] = turned(odd[2]);
    odd[3] = {h * (d.im - d.re), -h * (d.re + d.im)};
    x[0] = even[0] + odd[0];
    x[1] = even[1] + odd[1];
    x[2] = even[2] + odd[2];
    x[3] = even[3] + odd[3];
    x[4] = even[0] - odd[0];
    x[5] = even[1] - odd[1];
    x[6] = even[2] - odd[2];
    x[7] = even[3] - odd[3];
  }
};

// With c = sum of cos * (x[j] + x[R - j]) and s = sum of sin * (x[j] - x[R - j]): results k and R - k are x[0] + c -+ i s.
inline void fft_pair(fft_value c, fft_value s, thread fft_value &low, thread fft_value &high) {
  low = c + turned(s);
  high = c - turned(s);
}
inline fft_value scaled(float a, fft_value x) { return {a * x.re, a * x.im}; }

template <> struct fft_butterfly<3> {
  static inline void run(thread fft_value *x) {
    const fft_value a = x[1] + x[2], b = x[1] - x[2], zero = x[0];
    x[0] = zero + a;
    fft_pair(zero + scaled(-0.5f, a), scaled(0.86602540378443865f, b), x[1], x[2]);
  }
};

template <> struct fft_butterfly<5> {
  static inline void run(thread fft_value *x) {
    const float c1 = 0.30901699437494742f, c2 = -0.80901699437494742f, s1 = 0.95105651629515357f, s2 = 0.58778525229247313f;
    const fft_value a1 = x[1] + x[4], b1 = x[1] - x[4], a2 = x[2] + x[3], b2 = x[2] - x[3], zero = x[0];
    x[0] = zero + a1 + a2;
    fft_pair(zero + scaled(c1, a1) + scaled(c2, a2), scaled(s1, b1) + scaled(s2, b2), x[1], x[4]);
    fft_pair(zero + scaled(c2, a1) + scaled(c1, a2), scaled(s2, b1) - scaled(s1, b2), x[2], x[3]);
  }
};

template <> struct fft_butterfly<7> {
  static inline void run(thread fft_value *x) {
    const float c1 = 0.62348980185873353f, c2 = -0.22252093395631440f, c3 = -0.90096886790241913f;
    const float s1 = 0.78183148246802981f, s2 = 0.97492791218182361f, s3 = 0.43388373911755812f;
    const fft_value a1 = x[1] + x[6], b1 = x[1] - x[6], a2 = x[2] + x[5], b2 = x[2] - x[5], a3 = x[3] + x[4], b3 = x[3] - x[4], zero = x[0];
    x[0] = zero + a1 + a2 + a3;
    fft_pair(zero + scaled(c1, a1) + scaled(c2, a2) + scaled(c3, a3), scaled(s1, b1) + scaled(s2, b2) + scaled(s3, b3), x[1], x[6]);
    fft_pair(zero + scaled(c2, a1) + scaled(c3, a2) + scaled(c1, a3), scaled(s2, b1) - scaled(s3, b2) - scaled(s1, b3), x[2], x[5]);
    fft_pair(zero + scaled(c3, a1) + scaled(c1, a2) + scaled(c2, a3), scaled(s3, b1) - scaled(s1, b2) + scaled(s2, b3), x[3], x[4]);
  }
};

// Between half spectra and packed real signals; root = exp(-2 pi i k / n), `high` the value at the mirrored place.
inline fft_value packed_value(fft_value low, fft_value high, fft_value root) {
  const fft_value sum = low + conjugate(high), difference = (low - conjugate(high)) * conjugate(root);
  return sum - turned(difference);
}
inline fft_value unpacked_value(fft_value low, fft_value high, fft_value root) {
  const fft_value sum = low + conjugate(high), difference = turned(low - conjugate(high)) * root;
  return scaled(0.5f, sum + difference);
}

inline void locate_signal(constant mps_fft_batch &batch, long signal, thread long *in, thread long *out) {
  long from = 0, to = 0;
  for (uint d = batch.rank; d-- > 0;) {
    const long place = signal % batch.sizes[d];
    signal /= batch.sizes[d];
    from += place * batch.in_strides[d];
    to += place * batch.out_strides[d];
  }
  *in = from;
  *out = to;
}

#endif
