// SPDX-License-Identifier: BSD-3-Clause
//
// fft_rows: what transforms that do not fit into a tile need before, between and behind their steps. A thread does a block of one signal.

#include "fft_butterfly.h"

using namespace metal;

struct fft_block {
  long in, out;
  long begin, end;
};

inline fft_block locate_block(constant mps_fft_row_arguments &a, uint2 at) {
  fft_block b;
  locate_signal(a.batch, long(at.y), &b.in, &b.out);
  b.begin = long(at.x) * a.block;
  b.end = b.begin + a.block < a.length ? b.begin + a.block : a.length;
  return b;
}

inline fft_value value_at(device const float *in, constant mps_fft_values &v, long k) {
  return {in[k * v.in_step], v.flags & MPS_FFT_REAL_INPUT ? 0.0f : in[k * v.in_step + v.in_imaginary]};
}
inline void put_at(device float *out, constant mps_fft_values &v, long k, fft_value z) {
  out[k * v.out_step] = z.re;
  if (!(v.flags & MPS_FFT_REAL_OUTPUT)) out[k * v.out_step + v.out_imaginary] = z.im;
}
inline fft_value swapped(fft_value z) { return {z.im, z.re}; }

inline bool are_neighbours(constant mps_fft_values &v) {
  return v.in_step == 2 && v.in_imaginary == 1 && v.out_step == 2 && v.out_imaginary == 1;
}

inline void multiply_neighbours(device const float *in, device float *out, device const float *factors, long count, float scale) {
  VECTORIZE
  for (long k = 0; k < count; k++) {
    const fft_value z = fft_value{in[2 * k], in[2 * k + 1]} * fft_value{factors[2 * k], factors[2 * k + 1]};
    out[2 * k] = scale * z.re;
    out[2 * k + 1] = scale * z.im;
  }
}

// out[k] = in[k] * factors[k] * scale for k < in_count, zero up to `length`. SWAP, PACK: parts are exchanged before or behind the product.
kernel void fft_multiply(device const float *in [[buffer(0)]], device float *out [[buffer(1)]], constant mps_fft_row_arguments &a [[buffer(2)]],
                         device const float *table [[buffer(3)]], uint2 at [[thread_position_in_grid]]) {
  const fft_block b = locate_block(a, at);
  device const float *from = in + b.in, *factors = table + a.table;
  device float *to = out + b.out;
  const uint flags = a.values.flags;
  const long middle = b.end < a.values.in_count ? b.end : a.values.in_count;
  long k = b.begin;
  if (flags == 0 && are_neighbours(a.values) && k < middle) {
    multiply_neighbours(from + 2 * k, to + 2 * k, factors + 2 * k, middle - k, a.values.scale);
    k = middle;
  }
  for (; k < middle; k++) {
    const fft_value value = value_at(from, a.values, k), first = flags & MPS_FFT_SWAP ? swapped(value) : value;
    const fft_value z = scaled(a.values.scale, first * fft_value{factors[2 * k], factors[2 * k + 1]});
    put_at(to, a.values, k, flags & MPS_FFT_PACK ? swapped(z) : z);
  }
  for (; k < b.end; k++) put_at(to, a.values, k, {0.0f, 0.0f});
}

// Neighbouring complex values on both sides; the value mirrored at k is `length` - k.
inline void pack_neighbours(device const float *in, device float *out, device const float *roots, long begin, long end, long length) {
  device const float *mirrored = in + 2 * length;
  VECTORIZE
  for (long k = begin; k < end; k++) {
    const fft_value z = packed_value({in[2 * k], in[2 * k + 1]}, {mirrored[-2 * k], mirrored[-2 * k + 1]}, {roots[2 * k], roots[2 * k + 1]});
    out[2 * k] = z.re;
    out[2 * k + 1] = z.im;
  }
}
inline void unpack_neighbours(device const float *in, device float *out, device const float *roots, long begin, long end, long length, float scale) {
  device const float *mirrored = in + 2 * length;
  VECTORIZE
  for (long k = begin; k < end; k++) {
    const fft_value z = unpacked_value({in[2 * k], in[2 * k + 1]}, {mirrored[-2 * k], mirrored[-2 * k + 1]}, {roots[2 * k], roots[2 * k + 1]});
    out[2 * k] = scale * z.re;
    out[2 * k + 1] = scale * z.im;
  }
}
inline void mirror_neighbours(device float *out, long begin, long end, long whole) {
  device float *mirrored = out + 2 * whole;
  VECTORIZE
  for (long k = begin; k < end; k++) {
    mirrored[-2 * k] = out[2 * k];
    mirrored[-2 * k + 1] = -out[2 * k + 1];
  }
}

// PACK: half spectra become packed signals' spectra. EXTEND: whole ones. Neither: values are copied and scaled.
kernel void fft_pack(device const float *in [[buffer(0)]], device float *out [[buffer(1)]], constant mps_fft_row_arguments &a [[buffer(2)]],
                     device const float *table [[buffer(3)]], uint2 at [[thread_position_in_grid]]) {
  const fft_block b = locate_block(a, at);
  device const float *from = in + b.in, *roots = table + a.table;
  device float *to = out + b.out;
  const bool extend = (a.values.flags & MPS_FFT_EXTEND) != 0;
  for (long k = b.begin; k < b.end; k++) {
    if (k > 0 && (a.values.flags & MPS_FFT_PACK) && are_neighbours(a.values)) {
      pack_neighbours(from, to, roots, k, b.end, a.length);
      return;
    }
    if (a.values.flags & MPS_FFT_PACK) {
      fft_value low = value_at(from, a.values, k), high = value_at(from, a.values, a.length - k);
      low.im = k == 0 ? 0.0f : low.im;
      high.im = k == 0 ? 0.0f : high.im;
      put_at(to, a.values, k, packed_value(low, high, {roots[2 * k], roots[2 * k + 1]}));
    } else {
      const bool upper = extend && 2 * k > a.length;
      fft_value z = value_at(from, a.values, upper ? a.length - k : k);
      z.im = extend && k == 0 ? 0.0f : z.im;
      put_at(to, a.values, k, scaled(a.values.scale, upper ? conjugate(z) : z));
    }
  }
}

// Spectra of packed signals become half ones, of length + 1 values, or whole ones with MIRROR. A thread's block ends with value `length`.
kernel void fft_unpack(device const float *in [[buffer(0)]], device float *out [[buffer(1)]], constant mps_fft_row_arguments &a [[buffer(2)]],
                       device const float *table [[buffer(3)]], uint2 at [[thread_position_in_grid]]) {
  const fft_block b = locate_block(a, at);
  device const float *from = in + b.in, *roots = table + a.table;
  device float *to = out + b.out;
  const long end = b.end == a.length ? b.end + 1 : b.end;
  const bool neighbours = are_neighbours(a.values), mirror = (a.values.flags & MPS_FFT_MIRROR) != 0;
  for (long k = b.begin; k < end; k++) {
    if (neighbours && k > 0 && k < b.end) {
      unpack_neighbours(from, to, roots, k, b.end, a.length, a.values.scale);
      if (mirror) mirror_neighbours(to, k, b.end, a.whole);
      k = b.end;
      if (k == end) return;
    }
    const fft_value low = value_at(from, a.values, k == a.length ? 0 : k), high = value_at(from, a.values, k == 0 ? 0 : a.length - k);
    const fft_value z = scaled(a.values.scale, unpacked_value(low, high, {roots[2 * k], roots[2 * k + 1]}));
    put_at(to, a.values, k, z);
    if (mirror && k > 0 && 2 * k < a.whole) put_at(to, a.values, a.whole - k, conjugate(z));
  }
}
