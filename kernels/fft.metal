// SPDX-License-Identifier: BSD-3-Clause
//
// fft: whole transforms in scratch, 16 signals side by side. Scratch holds an element of all 16 in neighbouring floats, so that every
// loop over signals is one vector, whatever the length. Passes are Stockham's: each reads one half of the scratch and writes the other.

#include <metal_stdlib>
#include "fft.h"
#include "fft_butterfly.h"

using namespace metal;

#define WIDTH MPS_FFT_WIDTH
#define ELEMENT MPS_FFT_ELEMENT
#define SHORT_ROW 512
#define VECTORIZE _Pragma("clang loop vectorize(assume_safety) unroll(disable)")

// ---- passes ----

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
inline void long_pass(device const float *__restrict x, device float *__restrict y, device const float *w, device const float *roots, uint radix, long count, long blocks) {
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

// ---- between memory and scratch ----

// Up to 16 signals of one tile. When they lie along one dimension, at equal distances, `even` is set.
struct fft_tile {
  long first;
  uint count;
  bool even;
  long in, out;
  long in_lane, out_lane; // from one signal to the next
};

inline fft_tile locate_tile(constant mps_fft_arguments &a, long tile) {
  fft_tile t;
  const long group = tile / a.tiles_each, start = (tile % a.tiles_each) * WIDTH, left = a.columns - start;
  t.first = group * a.columns + start;
  t.count = left < WIDTH ? uint(left) : WIDTH;
  locate_signal(a.batch, t.first, &t.in, &t.out);
  const uint last = a.batch.rank - 1;
  t.even = a.batch.rank == 0 || t.first % a.batch.sizes[last] + t.count <= a.batch.sizes[last];
  t.in_lane = a.batch.rank == 0 ? 0 : a.batch.in_strides[last];
  t.out_lane = a.batch.rank == 0 ? 0 : a.batch.out_strides[last];
  return t;
}

// 16 rows of B values become B columns of 16 in two steps, each of which takes every fourth row.
template <uint B>
inline void gather_rows(device const float *__restrict in, long lane, thread float *__restrict re, thread float *__restrict im) {
  for (uint g = 0; g < 4; g++) {
    device const float *a = in + g * lane, *b = a + 4 * lane, *c = b + 4 * lane, *d = c + 4 * lane;
    thread float *r = re + g * 4 * B, *i = im + g * 4 * B;
    VECTORIZE
    for (uint k = 0; k < B; k++) {
      r[4 * k] = a[2 * k];
      r[4 * k + 1] = b[2 * k];
      r[4 * k + 2] = c[2 * k];
      r[4 * k + 3] = d[2 * k];
      i[4 * k] = a[2 * k + 1];
      i[4 * k + 1] = b[2 * k + 1];
      i[4 * k + 2] = c[2 * k + 1];
      i[4 * k + 3] = d[2 * k + 1];
    }
  }
}
template <uint B>
inline void gather_quarters(thread const float *__restrict from, thread float *__restrict to) {
  VECTORIZE
  for (uint k = 0; k < 4 * B; k++) {
    to[4 * k] = from[k];
    to[4 * k + 1] = from[4 * B + k];
    to[4 * k + 2] = from[8 * B + k];
    to[4 * k + 3] = from[12 * B + k];
  }
}
template <uint B>
inline void scatter_quarters(thread const float *__restrict from, thread float *__restrict to) {
  VECTORIZE
  for (uint k = 0; k < 4 * B; k++) {
    to[k] = from[4 * k];
    to[4 * B + k] = from[4 * k + 1];
    to[8 * B + k] = from[4 * k + 2];
    to[12 * B + k] = from[4 * k + 3];
  }
}
template <uint B>
inline void scatter_rows(thread const float *__restrict re, thread const float *__restrict im, device float *__restrict out, long lane) {
  for (uint g = 0; g < 4; g++) {
    device float *a = out + g * lane, *b = a + 4 * lane, *c = b + 4 * lane, *d = c + 4 * lane;
    thread const float *r = re + g * 4 * B, *i = im + g * 4 * B;
    VECTORIZE
    for (uint k = 0; k < B; k++) {
      a[2 * k] = r[4 * k];
      a[2 * k + 1] = i[4 * k];
      b[2 * k] = r[4 * k + 1];
      b[2 * k + 1] = i[4 * k + 1];
      c[2 * k] = r[4 * k + 2];
      c[2 * k + 1] = i[4 * k + 2];
      d[2 * k] = r[4 * k + 3];
      d[2 * k + 1] = i[4 * k + 3];
    }
  }
}

// Rows of neighbouring complex values, B at a time from value k on.
template <uint B>
inline void load_blocks(device const float *in, long lane, thread long &k, long count, device float *re, device float *im) {
  float first[2][B * WIDTH], second[2][B * WIDTH];
  for (; k + B <= count; k += B) {
    gather_rows<B>(in + 2 * k, lane, first[0], first[1]);
    gather_quarters<B>(first[0], second[0]);
    gather_quarters<B>(first[1], second[1]);
    for (uint e = 0; e < B; e++) {
      VECTORIZE
      for (uint v = 0; v < WIDTH; v++) {
        re[(k + e) * ELEMENT + v] = second[0][e * WIDTH + v];
        im[(k + e) * ELEMENT + v] = second[1][e * WIDTH + v];
      }
    }
  }
}
template <uint B>
inline void store_blocks(device float *out, long lane, thread long &k, long count, device const float *re, device const float *im, float scale) {
  float first[2][B * WIDTH], second[2][B * WIDTH];
  for (; k + B <= count; k += B) {
    for (uint e = 0; e < B; e++) {
      VECTORIZE
      for (uint v = 0; v < WIDTH; v++) {
        first[0][e * WIDTH + v] = scale * re[(k + e) * ELEMENT + v];
        first[1][e * WIDTH + v] = scale * im[(k + e) * ELEMENT + v];
      }
    }
    scatter_quarters<B>(first[0], second[0]);
    scatter_quarters<B>(first[1], second[1]);
    scatter_rows<B>(second[0], second[1], out + 2 * k, lane);
  }
}

inline void load_rows(device const float *in, long lane, long count, device float *re, device float *im) {
  long k = 0;
  load_blocks<64>(in, lane, k, count, re, im);
  load_blocks<16>(in, lane, k, count, re, im);
  if (k < count && count >= 16) { // the last block once more, so that it ends with the row
    k = count - 16;
    load_blocks<16>(in, lane, k, count, re, im);
  }
  for (; k < count; k++) {
    for (uint v = 0; v < WIDTH; v++) {
      re[k * ELEMENT + v] = in[v * lane + 2 * k];
      im[k * ELEMENT + v] = in[v * lane + 2 * k + 1];
    }
  }
}
inline void store_rows(device float *out, long lane, long count, device const float *re, device const float *im, float scale) {
  long k = 0;
  store_blocks<64>(out, lane, k, count, re, im, scale);
  store_blocks<16>(out, lane, k, count, re, im, scale);
  if (k < count && count >= 16) {
    k = count - 16;
    store_blocks<16>(out, lane, k, count, re, im, scale);
  }
  for (; k < count; k++) {
    for (uint v = 0; v < WIDTH; v++) {
      out[v * lane + 2 * k] = scale * re[k * ELEMENT + v];
      out[v * lane + 2 * k + 1] = scale * im[k * ELEMENT + v];
    }
  }
}

// Signals side by side: complex ones, or the real and imaginary parts in rows of their own.
inline void load_columns(device const float *__restrict in, constant mps_fft_values &values, bool complex, device float *re, device float *im) {
  for (long k = 0; k < values.in_count; k++) {
    device const float *p = in + k * values.in_step, *q = p + values.in_imaginary;
    device float *r = re + k * ELEMENT, *i = im + k * ELEMENT;
    if (complex) {
      VECTORIZE
      for (uint v = 0; v < WIDTH; v++) {
        r[v] = p[2 * v];
        i[v] = p[2 * v + 1];
      }
    } else {
      VECTORIZE
      for (uint v = 0; v < WIDTH; v++) {
        r[v] = p[v];
        i[v] = q[v];
      }
    }
  }
}

inline void load_signal(device const float *__restrict in, constant mps_fft_values &values, device float *re, device float *im) {
  if (values.flags & MPS_FFT_REAL_INPUT) {
    for (long k = 0; k < values.in_count; k++) {
      re[k * ELEMENT] = in[k * values.in_step];
      im[k * ELEMENT] = 0.0f;
    }
    return;
  }
  for (long k = 0; k < values.in_count; k++) {
    re[k * ELEMENT] = in[k * values.in_step];
    im[k * ELEMENT] = in[k * values.in_step + values.in_imaginary];
  }
}

inline void copy_scaled(device const float *__restrict from, device float *__restrict to, long count, float scale) {
  VECTORIZE
  for (long i = 0; i < count; i++) to[i] = scale * from[i];
}

// `spare`: the other half of the scratch.
inline void load(device const float *in, constant mps_fft_arguments &a, thread const fft_tile &t, uint flip, device float *x, device float *spare) {
  device float *re = x + flip, *im = x + (WIDTH - flip);
  const bool whole = t.even && t.count == WIDTH && !(a.values.flags & MPS_FFT_REAL_INPUT);
  const bool complex = t.in_lane == 2 && a.values.in_imaginary == 1;
  if (whole && (complex || t.in_lane == 1)) load_columns(in + t.in, a.values, complex, re, im);
  else if (whole && a.values.in_step == 2 && a.values.in_imaginary == 1) load_rows(in + t.in, t.in_lane, a.values.in_count, re, im);
  else {
    for (uint v = 0; v < t.count; v++) {
      long from, to;
      locate_signal(a.batch, t.first + v, &from, &to);
      load_signal(in + from, a.values, re + v, im + v);
    }
    for (long k = 0; k < a.values.in_count && t.count < WIDTH; k++)
      for (uint v = t.count; v < WIDTH; v++) re[k * ELEMENT + v] = im[k * ELEMENT + v] = 0.0f;
  }
}

inline void store_columns(device float *__restrict out, constant mps_fft_values &values, bool complex, device const float *re, device const float *im) {
  const float scale = values.scale;
  for (long k = 0; k < values.out_count; k++) {
    device float *p = out + k * values.out_step, *q = p + values.out_imaginary;
    device const float *r = re + k * ELEMENT, *i = im + k * ELEMENT;
    if (complex) {
      VECTORIZE
      for (uint v = 0; v < WIDTH; v++) {
        p[2 * v] = scale * r[v];
        p[2 * v + 1] = scale * i[v];
      }
    } else {
      VECTORIZE
      for (uint v = 0; v < WIDTH; v++) {
        p[v] = scale * r[v];
        q[v] = scale * i[v];
      }
    }
  }
}

// The conjugates of values 1 .. also go where the other half of the spectrum is.
inline void store_mirrored(device float *__restrict out, constant mps_fft_arguments &a, device const float *re, device const float *im) {
  const long step = a.values.out_step, imaginary = a.values.out_imaginary;
  const float scale = a.values.scale;
  for (long k = 1; 2 * k < a.whole; k++) {
    device float *p = out + (a.whole - k) * step;
    p[0] = scale * re[k * ELEMENT];
    p[imaginary] = -(scale * im[k * ELEMENT]);
  }
}

inline void store_signal(device float *__restrict out, constant mps_fft_values &values, device const float *re, device const float *im) {
  const float scale = values.scale;
  for (long k = 0; k < values.out_count; k++) out[k * values.out_step] = scale * re[k * ELEMENT];
  if (values.flags & MPS_FFT_REAL_OUTPUT) return;
  for (long k = 0; k < values.out_count; k++) out[k * values.out_step + values.out_imaginary] = scale * im[k * ELEMENT];
}

inline void store(device float *out, constant mps_fft_arguments &a, thread const fft_tile &t, uint flip, device const float *x, device float *spare) {
  device const float *re = x + flip, *im = x + (WIDTH - flip);
  const bool whole = t.even && t.count == WIDTH && !(a.values.flags & MPS_FFT_REAL_OUTPUT), mirror = (a.values.flags & MPS_FFT_MIRROR) != 0;
  const bool complex = t.out_lane == 2 && a.values.out_imaginary == 1, columns = whole && (complex || t.out_lane == 1), rows = whole && a.values.out_step == 2 && a.values.out_imaginary == 1;
  if (columns) store_columns(out + t.out, a.values, complex, re, im);
  else if (rows) {
    const bool dense = t.out_lane == 2 * a.values.out_count && a.values.out_count <= SHORT_ROW;
    // Short rows behind each other are written in order, which the processor foresees.
    store_rows(dense ? spare : out + t.out, t.out_lane, a.values.out_count, re, im, dense ? 1.0f : a.values.scale);
    if (dense) copy_scaled(spare, out + t.out, WIDTH * t.out_lane, a.values.scale);
  }
  for (uint v = 0; v < t.count && (mirror || !(columns || rows)); v++) {
    long from, to;
    locate_signal(a.batch, t.first + v, &from, &to);
    if (!(columns || rows)) store_signal(out + to, a.values, re + v, im + v);
    if (mirror) store_mirrored(out + to, a, re + v, im + v);
  }
}

// ---- what comes before and behind the passes ----

// x[k] *= factors[k]; from `count` to `stop` zeros.
inline void multiply(device float *x, device const float *factors, long count, long stop) {
  for (long k = 0; k < count; k++) {
    device float *e = x + k * ELEMENT;
    const fft_value factor = {factors[2 * k], factors[2 * k + 1]};
    VECTORIZE
    for (uint v = 0; v < WIDTH; v++) {
      const fft_value z = fft_value{e[v], e[WIDTH + v]} * factor;
      e[v] = z.re;
      e[WIDTH + v] = z.im;
    }
  }
  for (long i = count * ELEMENT; i < stop * ELEMENT; i++) x[i] = 0.0f;
}

// x[k] *= factors[k], real and imaginary parts exchanged.
inline void multiply_swapped(device float *x, device const float *factors, long count) {
  for (long k = 0; k < count; k++) {
    device float *e = x + k * ELEMENT;
    const fft_value factor = {factors[2 * k], factors[2 * k + 1]};
    VECTORIZE
    for (uint v = 0; v < WIDTH; v++) {
      const fft_value z = fft_value{e[v], e[WIDTH + v]} * factor;
      e[v] = z.im;
      e[WIDTH + v] = z.re;
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
    load(in, a, t, half_input ? 0 : flip, x, y);
    if (half_input) {
      if (flags & MPS_FFT_PACK) pack(x, y, table + a.real_table, a.signal);
      else extend(x, y, a.whole);
      device float *other = x;
      x = y;
      y = other;
    }
    if (flags & MPS_FFT_CHIRP) multiply(x, table + a.chirp_table, a.signal, a.length);
    transform(x, y, a, table);
    if (flags & MPS_FFT_CHIRP) {
      multiply_swapped(x, table + a.spectrum_table, a.length);
      transform(x, y, a, table);
      // Back from exchanged parts, by the same chirp.
      for (long k = 0; k < a.signal; k++) {
        device float *e = x + k * ELEMENT;
        const fft_value factor = {table[a.chirp_table + 2 * k], table[a.chirp_table + 2 * k + 1]};
        VECTORIZE
        for (uint v = 0; v < WIDTH; v++) {
          const fft_value z = fft_value{e[WIDTH + v], e[v]} * factor;
          e[v] = z.re;
          e[WIDTH + v] = z.im;
        }
      }
    }
    if (flags & MPS_FFT_UNPACK) {
      unpack(x, y, table + a.real_table, a.signal);
      device float *other = x;
      x = y;
      y = other;
    }
    if (flags & MPS_FFT_TWIST) twist(x, a, table, tile);
    store(out, a, t, flip, x, y);
  }
}
