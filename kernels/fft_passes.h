// SPDX-License-Identifier: BSD-3-Clause
//
// fft_passes: the passes of transforms in scratch, 16 side by side. They are Stockham's: each reads one half of the scratch and writes the
// other, and the values come out in order.
#ifndef OPENMPS_KERNELS_FFT_PASSES_H
#define OPENMPS_KERNELS_FFT_PASSES_H

#include "fft_butterfly.h"

// Sub-transforms p of `count` blocks: element j at x + j * from, result k to y + k * to, times w[k - 1].
template <uint R, bool Twiddled>
inline void butterflies(device const float *__restrict x, device float *__restrict y, device const float *__restrict w, long from, long to, long blocks) {
  fft_value factor[R];
  if (Twiddled)
    for (uint k = 1; k < R; k++) factor[k] = {w[2 * k - 2], w[2 * k - 1]};
  for (long q = 0; q < blocks; q++) {
    device const float *a = x + q * ELEMENT;
    device float *b = y + q * ELEMENT;
    VECTORIZE
    for (uint v = 0; v < WIDTH; v++) {
      fft_value e[R];
      for (uint j = 0; j < R; j++) e[j] = {a[j * from + v], a[j * from + WIDTH + v]};
      fft_butterfly<R>::run(e);
      b[v] = e[0].re;
      b[WIDTH + v] = e[0].im;
      for (uint k = 1; k < R; k++) {
        const fft_value z = Twiddled ? e[k] * factor[k] : e[k];
        b[k * to + v] = z.re;
        b[k * to + WIDTH + v] = z.im;
      }
    }
  }
}

template <uint R>
inline void pass(device const float *x, device float *y, device const float *w, long count, long blocks) {
  const long from = blocks * count * ELEMENT, to = blocks * ELEMENT;
  butterflies<R, false>(x, y, w, from, to, blocks);
  for (long p = 1; p < count; p++) butterflies<R, true>(x + p * to, y + p * R * to, w + p * 2 * (R - 1), from, to, blocks);
}

// Any other radix, by the definition; `roots` are the radix's.
inline void long_pass(device const float *__restrict x, device float *__restrict y, device const float *w, device const float *roots, uint radix, long count,
                      long blocks) {
  const long from = blocks * count * ELEMENT, to = blocks * ELEMENT;
  for (long p = 0; p < count; p++) {
    for (long q = 0; q < blocks; q++) {
      device const float *a = x + (p * blocks + q) * ELEMENT;
      device float *b = y + (p * blocks * radix + q) * ELEMENT;
      for (uint k = 0; k < radix; k++, b += to) {
        VECTORIZE
        for (uint v = 0; v < ELEMENT; v++) b[v] = a[v];
        uint turn = 0;
        for (uint j = 1; j < radix; j++) {
          turn += k;
          turn -= turn >= radix ? radix : 0;
          const fft_value root = {roots[2 * turn], roots[2 * turn + 1]};
          device const float *c = a + j * from;
          VECTORIZE
          for (uint v = 0; v < WIDTH; v++) {
            const fft_value z = fft_value{c[v], c[WIDTH + v]} * root;
            b[v] += z.re;
            b[WIDTH + v] += z.im;
          }
        }
        if (p == 0 || k == 0) continue;
        const fft_value factor = {w[2 * (p * (radix - 1) + k - 1)], w[2 * (p * (radix - 1) + k - 1) + 1]};
        VECTORIZE
        for (uint v = 0; v < WIDTH; v++) {
          const fft_value z = fft_value{b[v], b[WIDTH + v]} * factor;
          b[v] = z.re;
          b[WIDTH + v] = z.im;
        }
      }
    }
  }
}

// All passes; the result is in x.
inline void transform(device float *thread &x, device float *thread &y, constant mps_fft_arguments &a, device const float *table) {
  device const float *w = table + a.pass_table;
  long count = a.length, blocks = 1;
  for (uint i = 0; i < a.pass_count; i++) {
    const uint radix = a.radices[i];
    count /= radix;
    device const float *from = x;
    device float *to = y;
    if (radix == 8) pass<8>(from, to, w, count, blocks);
    else if (radix == 4) pass<4>(from, to, w, count, blocks);
    else if (radix == 2) pass<2>(from, to, w, count, blocks);
    else if (radix == 3) pass<3>(from, to, w, count, blocks);
    else if (radix == 5) pass<5>(from, to, w, count, blocks);
    else if (radix == 7) pass<7>(from, to, w, count, blocks);
    else {
      long_pass(from, to, w + 2 * radix, w, radix, count, blocks);
      w += 2 * radix;
    }
    w += 2 * count * (radix - 1);
    blocks *= radix;
    y = x;
    x = to;
  }
}

#endif
