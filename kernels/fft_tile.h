// SPDX-License-Identifier: BSD-3-Clause
//
// fft_tile: 16 signals between memory and scratch. Neighbours in memory are read and written as vectors, whether they belong to one signal
// (rows, which are transposed) or to 16 (columns); anything else goes value by value.
#ifndef OPENMPS_KERNELS_FFT_TILE_H
#define OPENMPS_KERNELS_FFT_TILE_H

#include "fft_butterfly.h"

#define TINY_ROW 8    // values
#define SHORT_ROW 512

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

// Rows of fewer than 16 values go through `spare`, where they lie 16 values apart; what lies behind them there is copied, but never looked at.
inline void load_rows(device const float *in, long lane, long count, device float *re, device float *im, device float *spare) {
  long k = 0;
  if (count < TINY_ROW) {
    for (; k < count; k++) {
      for (uint v = 0; v < WIDTH; v++) {
        re[k * ELEMENT + v] = in[v * lane + 2 * k];
        im[k * ELEMENT + v] = in[v * lane + 2 * k + 1];
      }
    }
    return;
  }
  if (count < 16) {
    for (uint v = 0; v < WIDTH; v++)
      for (long i = 0; i < 2 * count; i++) spare[v * 32 + i] = in[v * lane + i];
    load_blocks<16>(spare, 32, k, 16, re, im);
    return;
  }
  load_blocks<64>(in, lane, k, count, re, im);
  load_blocks<16>(in, lane, k, count, re, im);
  if (k < count) { // the last block once more, so that it ends with the row
    k = count - 16;
    load_blocks<16>(in, lane, k, count, re, im);
  }
}
inline void store_rows(device float *out, long lane, long count, device const float *re, device const float *im, float scale, device float *spare) {
  long k = 0;
  if (count < TINY_ROW) {
    for (; k < count; k++) {
      for (uint v = 0; v < WIDTH; v++) {
        out[v * lane + 2 * k] = scale * re[k * ELEMENT + v];
        out[v * lane + 2 * k + 1] = scale * im[k * ELEMENT + v];
      }
    }
    return;
  }
  if (count < 16) {
    store_blocks<16>(spare, 32, k, 16, re, im, scale);
    for (uint v = 0; v < WIDTH; v++)
      for (long i = 0; i < 2 * count; i++) out[v * lane + i] = spare[v * 32 + i];
    return;
  }
  store_blocks<64>(out, lane, k, count, re, im, scale);
  store_blocks<16>(out, lane, k, count, re, im, scale);
  if (k < count) {
    k = count - 16;
    store_blocks<16>(out, lane, k, count, re, im, scale);
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
  else if (whole && a.values.in_step == 2 && a.values.in_imaginary == 1) load_rows(in + t.in, t.in_lane, a.values.in_count, re, im, spare);
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
  const bool complex = t.out_lane == 2 && a.values.out_imaginary == 1, columns = whole && (complex || t.out_lane == 1);
  const bool rows = whole && a.values.out_step == 2 && a.values.out_imaginary == 1;
  if (columns) store_columns(out + t.out, a.values, complex, re, im);
  else if (rows) {
    const bool dense = t.out_lane == 2 * a.values.out_count && a.values.out_count >= 16 && a.values.out_count <= SHORT_ROW;
    // Short rows behind each other are written in order, which the processor foresees.
    store_rows(dense ? spare : out + t.out, t.out_lane, a.values.out_count, re, im, dense ? 1.0f : a.values.scale, spare);
    if (dense) copy_scaled(spare, out + t.out, WIDTH * t.out_lane, a.values.scale);
  }
  for (uint v = 0; v < t.count && (mirror || !(columns || rows)); v++) {
    long from, to;
    locate_signal(a.batch, t.first + v, &from, &to);
    if (!(columns || rows)) store_signal(out + to, a.values, re + v, im + v);
    if (mirror) store_mirrored(out + to, a, re + v, im + v);
  }
}

#endif
