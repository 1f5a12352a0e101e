// SPDX-License-Identifier: BSD-3-Clause
//
// fft_tile: 16 signals between memory and scratch. Neighbours in memory are read and written as vectors, whether they belong to one signal
// (rows, which are transposed) or to 16 (columns); anything else goes value by value.
#ifndef OPENMPS_KERNELS_FFT_TILE_H
#define OPENMPS_KERNELS_FFT_TILE_H

#include "fft_butterfly.h"

#define TINY_ROW 8    // values

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

// Rows of complex values: a value is one word of 8 bytes until its parts are taken apart. 16 rows of B values become B columns of 16 in two
// steps, each of which takes every fourth row.
inline ulong joined(float re, float im) { return ulong(as_type<uint>(re)) | ulong(as_type<uint>(im)) << 32; }

template <uint B, typename From, typename To>
inline void interleave(From a, From b, From c, From d, To to) {
  VECTORIZE
  for (uint k = 0; k < B; k++) {
    to[4 * k] = a[k];
    to[4 * k + 1] = b[k];
    to[4 * k + 2] = c[k];
    to[4 * k + 3] = d[k];
  }
}
template <uint B, typename From, typename To>
inline void part(From from, To a, To b, To c, To d) {
  VECTORIZE
  for (uint k = 0; k < B; k++) {
    a[k] = from[4 * k];
    b[k] = from[4 * k + 1];
    c[k] = from[4 * k + 2];
    d[k] = from[4 * k + 3];
  }
}

// B values at a time, from value k on; `lane` counts words.
template <uint B>
inline void load_blocks(device const ulong *in, long lane, thread long &k, long count, device float *re, device float *im) {
  ulong quarters[4][4 * B], columns[WIDTH * B];
  for (; k + B <= count; k += B) {
    for (uint g = 0; g < 4; g++) {
      device const ulong *from = in + k + g * lane;
      interleave<B>(from, from + 4 * lane, from + 8 * lane, from + 12 * lane, &quarters[g][0]);
    }
    interleave<4 * B>(&quarters[0][0], &quarters[1][0], &quarters[2][0], &quarters[3][0], &columns[0]);
    for (uint e = 0; e < B; e++) {
      device float *r = re + (k + e) * ELEMENT, *i = im + (k + e) * ELEMENT;
      VECTORIZE
      for (uint v = 0; v < WIDTH; v++) {
        const ulong value = columns[e * WIDTH + v];
        r[v] = as_type<float>(uint(value));
        i[v] = as_type<float>(uint(value >> 32));
      }
    }
  }
}
template <uint B>
inline void store_blocks(device ulong *out, long lane, thread long &k, long count, device const float *re, device const float *im, float scale) {
  ulong quarters[4][4 * B], columns[WIDTH * B];
  for (; k + B <= count; k += B) {
    for (uint e = 0; e < B; e++) {
      device const float *r = re + (k + e) * ELEMENT, *i = im + (k + e) * ELEMENT;
      VECTORIZE
      for (uint v = 0; v < WIDTH; v++) columns[e * WIDTH + v] = joined(scale * r[v], scale * i[v]);
    }
    part<4 * B>(&columns[0], &quarters[0][0], &quarters[1][0], &quarters[2][0], &quarters[3][0]);
    for (uint g = 0; g < 4; g++) {
      device ulong *to = out + k + g * lane;
      part<B>(&quarters[g][0], to, to + 4 * lane, to + 8 * lane, to + 12 * lane);
    }
  }
}

// Rows of fewer than 8 values go value by value. The last block of others is taken so that it ends with the row.
inline void load_rows(device const float *in, long lane, long count, device float *re, device float *im) {
  device const ulong *words = (device const ulong *)in;
  long k = 0;
  if (count < TINY_ROW) {
    for (; k < count; k++)
      for (uint v = 0; v < WIDTH; v++) {
        re[k * ELEMENT + v] = in[v * lane + 2 * k];
        im[k * ELEMENT + v] = in[v * lane + 2 * k + 1];
      }
    return;
  }
  if (count >= 16) load_blocks<16>(words, lane / 2, k, count, re, im);
  load_blocks<TINY_ROW>(words, lane / 2, k, count, re, im);
  if (k == count) return;
  k = count - TINY_ROW;
  load_blocks<TINY_ROW>(words, lane / 2, k, count, re, im);
}
inline void store_rows(device float *out, long lane, long count, device const float *re, device const float *im, float scale) {
  device ulong *words = (device ulong *)out;
  long k = 0;
  if (count < TINY_ROW) {
    for (; k < count; k++)
      for (uint v = 0; v < WIDTH; v++) {
        out[v * lane + 2 * k] = scale * re[k * ELEMENT + v];
        out[v * lane + 2 * k + 1] = scale * im[k * ELEMENT + v];
      }
    return;
  }
  if (count >= 16) store_blocks<16>(words, lane / 2, k, count, re, im, scale);
  store_blocks<TINY_ROW>(words, lane / 2, k, count, re, im, scale);
  if (k == count) return;
  k = count - TINY_ROW;
  store_blocks<TINY_ROW>(words, lane / 2, k, count, re, im, scale);
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

inline void load(device const float *in, constant mps_fft_arguments &a, thread const fft_tile &t, uint flip, device float *x) {
  device float *re = x + flip, *im = x + (WIDTH - flip);
  const bool whole = t.even && t.count == WIDTH && !(a.values.flags & MPS_FFT_REAL_INPUT);
  const bool complex = t.in_lane == 2 && a.values.in_imaginary == 1;
  if (whole && (complex || t.in_lane == 1)) load_columns(in + t.in, a.values, complex, re, im);
  else if (whole && a.values.in_step == 2 && a.values.in_imaginary == 1 && (a.values.flags & MPS_FFT_IN_PAIRS)) load_rows(in + t.in, t.in_lane, a.values.in_count, re, im);
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

inline void store(device float *out, constant mps_fft_arguments &a, thread const fft_tile &t, uint flip, device const float *x) {
  device const float *re = x + flip, *im = x + (WIDTH - flip);
  const bool whole = t.even && t.count == WIDTH && !(a.values.flags & MPS_FFT_REAL_OUTPUT), mirror = (a.values.flags & MPS_FFT_MIRROR) != 0;
  const bool complex = t.out_lane == 2 && a.values.out_imaginary == 1, columns = whole && (complex || t.out_lane == 1);
  const bool rows = whole && a.values.out_step == 2 && a.values.out_imaginary == 1 && (a.values.flags & MPS_FFT_OUT_PAIRS);
  if (columns) store_columns(out + t.out, a.values, complex, re, im);
  else if (rows) store_rows(out + t.out, t.out_lane, a.values.out_count, re, im, a.values.scale);
  for (uint v = 0; v < t.count && (mirror || !(columns || rows)); v++) {
    long from, to;
    locate_signal(a.batch, t.first + v, &from, &to);
    if (!(columns || rows)) store_signal(out + to, a.values, re + v, im + v);
    if (mirror) store_mirrored(out + to, a, re + v, im + v);
  }
}

#endif
