/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fft_table: radices and roots of unity. Roots are rounded once, from double.
 */
#include "ops/fft_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double pi = 3.14159265358979323846;

/* ---- lengths ---- */

uint32_t mps_fft_factor(int64_t length, uint32_t radices[MPS_FFT_MAX_PASSES]) {
  uint32_t count = 0, twos = 0;
  for (; length % 2 == 0; length /= 2) twos++;
  for (; twos > 4 || twos == 3; twos -= 3) radices[count++] = 8;
  for (; twos > 1; twos -= 2) radices[count++] = 4;
  if (twos) radices[count++] = 2;
  for (uint32_t radix = 3; length > 1; radix += 2) {
    if (radix > MPS_FFT_LARGEST_RADIX) return 0;
    for (; length % radix == 0; length /= radix) {
      if (count == MPS_FFT_MAX_PASSES) return 0;
      radices[count++] = radix;
    }
  }
  return count;
}

bool mps_fft_is_smooth(int64_t length) {
  uint32_t radices[MPS_FFT_MAX_PASSES];
  return length == 1 || mps_fft_factor(length, radices) > 0;
}

int64_t mps_fft_convolution_length(int64_t signal) {
  for (int64_t length = (2 * signal - 1 + 15) / 16 * 16;; length += 16) {
    int64_t rest = length;
    while (rest % 2 == 0) rest /= 2;
    while (rest % 3 == 0) rest /= 3;
    while (rest % 5 == 0) rest /= 5;
    if (rest == 1) return length;
  }
}

/* ---- layout ---- */

static int64_t aligned(int64_t floats) { return (floats + 15) / 16 * 16; }
static bool is_short(uint32_t radix) { return radix <= 5 || radix == 7 || radix == 8; } /* has a butterfly of its own */

static int64_t pass_floats(int64_t length) {
  uint32_t radices[MPS_FFT_MAX_PASSES];
  const uint32_t count = length > 1 ? mps_fft_factor(length, radices) : 0;
  int64_t floats = 0, rest = length;
  for (uint32_t i = 0; i < count; i++) {
    rest /= radices[i];
    floats += 2 * rest * (radices[i] - 1) + (is_short(radices[i]) ? 0 : 2 * radices[i]);
  }
  return floats;
}

void mps_fft_table_lay_out(const mps_fft_table_key *key, mps_fft_table_layout *layout) {
  layout->passes = 0;
  layout->real = aligned(key->passes ? pass_floats(key->passes) : 0);
  layout->twist_rows = layout->real + aligned(key->real ? 2 * (key->real / 2 + 1) : 0);
  layout->twist_lanes = layout->twist_rows + aligned((key->twist + MPS_FFT_WIDTH - 1) / MPS_FFT_WIDTH * 2 * key->passes);
  layout->chirp = layout->twist_lanes + (key->twist ? key->passes * MPS_FFT_ELEMENT : 0);
  layout->spectrum = layout->chirp + aligned(2 * key->chirp);
  layout->total = layout->spectrum + aligned(2 * key->spectrum);
  if (layout->total == 0) layout->total = 16;
}

/* ---- roots ---- */

typedef struct value {
  double re, im;
} value;

/* exp(-2 pi i k / n) */
static value root(int64_t k, int64_t n) {
  const double angle = -2.0 * pi * (double)(k % n) / (double)n;
  return (value){cos(angle), sin(angle)};
}
static value product(value a, value b) { return (value){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
static void put(float *to, value v) {
  to[0] = (float)v.re;
  to[1] = (float)v.im;
}

static void fill_passes(int64_t length, float *to) {
  uint32_t radices[MPS_FFT_MAX_PASSES];
  const uint32_t count = length > 1 ? mps_fft_factor(length, radices) : 0;
  int64_t rest = length;
  for (uint32_t i = 0; i < count; i++) {
    const int64_t radix = radices[i], whole = rest;
    rest /= radix;
    if (!is_short(radices[i]))
      for (int64_t j = 0; j < radix; j++, to += 2) put(to, root(j, radix));
    for (int64_t p = 0; p < rest; p++)
      for (int64_t k = 1; k < radix; k++, to += 2) put(to, root(p * k, whole));
  }
}

static void fill_twist(int64_t length, int64_t columns, float *rows, float *lanes) {
  for (int64_t start = 0; start < columns; start += MPS_FFT_WIDTH)
    for (int64_t k = 0; k < length; k++, rows += 2) put(rows, root(k * start, length * columns));
  for (int64_t k = 0; k < length; k++, lanes += MPS_FFT_ELEMENT) {
    for (int64_t v = 0; v < MPS_FFT_WIDTH; v++) {
      const value r = root(k * v, length * columns);
      lanes[v] = (float)r.re;
      lanes[MPS_FFT_WIDTH + v] = (float)r.im;
    }
  }
}

/* exp(-pi i k^2 / n); k^2 is reduced first, so that the angle is exact. */
static value chirp(int64_t k, int64_t n) { return root((int64_t)((uint64_t)k * (uint64_t)k % (uint64_t)(2 * n)), 2 * n); }

/* out = the transform of every stride-th value of in; roots are those of `whole`, a multiple of n. */
static void transform(const value *in, value *out, int64_t n, int64_t stride, const value *roots) {
  if (n == 1) {
    *out = *in;
    return;
  }
  const int64_t radix = n % 2 == 0 ? 2 : n % 3 == 0 ? 3 : 5, part = n / radix;
  for (int64_t j = 0; j < radix; j++) transform(in + j * stride, out + j * part, part, stride * radix, roots);
  for (int64_t k = 0; k < part; k++) {
    value terms[5], sums[5];
    for (int64_t j = 0; j < radix; j++) terms[j] = product(out[j * part + k], roots[j * k * stride]);
    for (int64_t q = 0; q < radix; q++) {
      sums[q] = terms[0];
      for (int64_t j = 1; j < radix; j++) {
        const value term = product(terms[j], roots[j * q % radix * part * stride]);
        sums[q].re += term.re;
        sums[q].im += term.im;
      }
    }
    for (int64_t q = 0; q < radix; q++) out[q * part + k] = sums[q];
  }
}

/* The transform of the conjugate chirp, wrapped around, over its length. */
static mps_status fill_spectrum(int64_t signal, int64_t length, float *to) {
  value *filter = calloc((size_t)length * 3, sizeof *filter);
  if (!filter) return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for the roots of a transform of %lld values", (long long)signal);
  value *roots = filter + length, *out = roots + length;
  for (int64_t k = 0; k < length; k++) roots[k] = root(k, length);
  for (int64_t k = 0; k < signal; k++) {
    value c = chirp(k, signal);
    c.im = -c.im;
    filter[k] = c;
    if (k > 0) filter[length - k] = c;
  }
  transform(filter, out, length, 1, roots);
  for (int64_t k = 0; k < length; k++) put(to + 2 * k, (value){out[k].re / (double)length, out[k].im / (double)length});
  free(filter);
  return MPS_STATUS_OK;
}

mps_status mps_fft_table_fill(const mps_fft_table_key *key, float *table) {
  mps_fft_table_layout at;
  mps_fft_table_lay_out(key, &at);
  if (key->passes) fill_passes(key->passes, table + at.passes);
  for (int64_t k = 0; key->real && k <= key->real / 2; k++) put(table + at.real + 2 * k, root(k, key->real));
  if (key->twist) fill_twist(key->passes, key->twist, table + at.twist_rows, table + at.twist_lanes);
  for (int64_t k = 0; k < key->chirp; k++) put(table + at.chirp + 2 * k, chirp(k, key->chirp));
  return key->spectrum ? fill_spectrum(key->chirp, key->spectrum, table + at.spectrum) : MPS_STATUS_OK;
}
