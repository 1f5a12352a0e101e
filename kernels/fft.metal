// SPDX-License-Identifier: BSD-3-Clause
//
// fft: whole transforms in scratch, 16 signals side by side. Scratch holds an element of all 16 in neighbouring floats, so that every
// loop over signals is one vector, whatever the length.

#include "fft_passes.h"
#include "fft_tile.h"

using namespace metal;

// x[k] *= factors[k]. Real and imaginary parts are exchanged before or behind the product where an offset says so.
inline void multiply(device float *x, device const float *factors, long count, uint flip_before, uint flip_behind) {
  for (long k = 0; k < count; k++) {
    device float *e = x + k * ELEMENT;
    const fft_value factor = {factors[2 * k], factors[2 * k + 1]};
    VECTORIZE
    for (uint v = 0; v < WIDTH; v++) {
      const fft_value z = fft_value{e[flip_before + v], e[WIDTH - flip_before + v]} * factor;
      e[flip_behind + v] = z.re;
      e[WIDTH - flip_behind + v] = z.im;
    }
  }
}

inline void twist(device float *x, constant mps_fft_arguments &a, device const float *table, long tile) {
  device const float *rows = table + a.twist_rows + (tile % a.tiles_each) * 2 * a.length, *lanes = table + a.twist_lanes;
  for (long k = 0; k < a.length; k++) {
    device float *e = x + k * ELEMENT;
    device const float *lane = lanes + k * ELEMENT;
    const fft_value row = {rows[2 * k], rows[2 * k + 1]};
    VECTORIZE
    for (uint v = 0; v < WIDTH; v++) {
      const fft_value z = fft_value{e[v], e[WIDTH + v]} * (fft_value{lane[v], lane[WIDTH + v]} * row);
      e[v] = z.re;
      e[WIDTH + v] = z.im;
    }
  }
}

// The first and the last value of a half spectrum count as real.
inline void make_real(device float *e) {
  for (uint v = 0; v < WIDTH; v++) e[WIDTH + v] = 0.0f;
}

// Half spectra in x, to the packed signals' in y, real and imaginary parts exchanged.
inline void pack(device float *__restrict x, device float *__restrict y, device const float *roots, long length) {
  make_real(x);
  make_real(x + length * ELEMENT);
  for (long k = 0; k < length; k++) {
    device const float *low = x + k * ELEMENT, *high = x + (length - k) * ELEMENT;
    device float *to = y + k * ELEMENT;
    const fft_value root = {roots[2 * k], roots[2 * k + 1]};
    VECTORIZE
    for (uint v = 0; v < WIDTH; v++) {
      const fft_value z = packed_value({low[v], low[WIDTH + v]}, {high[v], high[WIDTH + v]}, root);
      to[v] = z.im;
      to[WIDTH + v] = z.re;
    }
  }
}

// Half spectra in x, to whole ones in y, real and imaginary parts exchanged.
inline void extend(device float *__restrict x, device float *__restrict y, long whole) {
  make_real(x);
  for (long k = 0; k < whole; k++) {
    const bool upper = 2 * k > whole;
    device const float *from = x + (upper ? whole - k : k) * ELEMENT;
    device float *to = y + k * ELEMENT;
    const float sign = upper ? -1.0f : 1.0f;
    VECTORIZE
    for (uint v = 0; v < WIDTH; v++) {
      const float re = from[v], im = from[WIDTH + v];
      to[v] = sign * im;
      to[WIDTH + v] = re;
    }
  }
}

inline void unpack(device const float *__restrict x, device float *__restrict y, device const float *roots, long length) {
  for (long k = 0; k <= length; k++) {
    device const float *low = x + (k == length ? 0 : k) * ELEMENT, *high = x + (k == 0 ? 0 : length - k) * ELEMENT;
    device float *to = y + k * ELEMENT;
    const fft_value root = {roots[2 * k], roots[2 * k + 1]};
    VECTORIZE
    for (uint v = 0; v < WIDTH; v++) {
      const fft_value z = unpacked_value({low[v], low[WIDTH + v]}, {high[v], high[WIDTH + v]}, root);
      to[v] = z.re;
      to[WIDTH + v] = z.im;
    }
  }
}

kernel void fft_tiles(device const float *in [[buffer(0)]], device float *out [[buffer(1)]], constant mps_fft_arguments &a [[buffer(2)]],
                      device const float *table [[buffer(3)]], device float *scratch [[buffer(4)]], uint lane [[thread_position_in_grid]]) {
  device float *x = scratch + long(lane) * 2 * a.scratch, *y = x + a.scratch;
  const uint flags = a.values.flags, flip = flags & MPS_FFT_SWAP ? WIDTH : 0;
  const bool half_input = (flags & (MPS_FFT_PACK | MPS_FFT_EXTEND)) != 0;
  for (long tile = a.tiles * long(lane) / a.lanes; tile < a.tiles * (long(lane) + 1) / a.lanes; tile++) {
    const fft_tile t = locate_tile(a, tile);
    load(in, a, t, half_input ? 0 : flip, x);
    if (half_input) {
      if (flags & MPS_FFT_PACK) pack(x, y, table + a.real_table, a.signal);
      else extend(x, y, a.whole);
      device float *other = x;
      x = y;
      y = other;
    }
    if (flags & MPS_FFT_CHIRP) {
      multiply(x, table + a.chirp_table, a.signal, 0, 0);
      for (long i = a.signal * ELEMENT; i < a.length * ELEMENT; i++) x[i] = 0.0f;
      transform(x, y, a, table);
      multiply(x, table + a.spectrum_table, a.length, 0, WIDTH);
    }
    transform(x, y, a, table);
    if (flags & MPS_FFT_CHIRP) multiply(x, table + a.chirp_table, a.signal, WIDTH, 0);
    if (flags & MPS_FFT_UNPACK) {
      unpack(x, y, table + a.real_table, a.signal);
      device float *other = x;
      x = y;
      y = other;
    }
    if (flags & MPS_FFT_TWIST) twist(x, a, table, tile);
    store(out, a, t, flip, x);
  }
}
