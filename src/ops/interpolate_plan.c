/* SPDX-License-Identifier: BSD-3-Clause
 *
 * interpolate_plan: taps and weights of one axis, in the precision of PyTorch's CPU kernels: scales and coordinates are floats (doubles
 * for uint8), with doubles in between where those kernels have a double constant, and products and sums fused where they are compiled so.
 */
#include "ops/interpolate_plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Taps while they are made: a row has `taps_most` places, of which count[r] are used. */
typedef struct rows {
  const mps_axis *axis;
  bool single; /* scalar_t is float */
  double scale, support;
  double most; /* the largest weight seen while they were made */
  uint32_t taps_most;
  uint32_t *count;
  int32_t *index;
  float *weight;  /* where scalar_t is float, */
  double *exact;  /* and where it is double */
} rows;

/* A result as scalar_t holds it. Products, sums and quotients of two floats, taken in double, round to what float arithmetic gives. */
static double narrow(const rows *r, double value) { return r->single ? (double)(float)value : value; }

static double fused(const rows *r, double a, double b, double c) { return r->single ? (double)fmaf((float)a, (float)b, (float)c) : fma(a, b, c); }

static double round_to(mps_dtype dtype, double value) {
  uint16_t bits;
  if (dtype == MPS_DTYPE_BF16) {
    mps_scalar_store(mps_scalar_float(value), dtype, &bits);
    uint32_t wide = (uint32_t)bits << 16;
    float result;
    memcpy(&result, &wide, sizeof result);
    return (double)result;
  }
  if (dtype == MPS_DTYPE_F16) {
    mps_scalar_store(mps_scalar_float(value), dtype, &bits);
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double magnitude = exponent == 0 ? ldexp(fraction, -24) : ldexp(fraction + 1024, exponent - 25);
    return bits >> 15 ? -magnitude : magnitude;
  }
  return value;
}

static double scale_of(const mps_axis *axis, const rows *r) {
  const double in = narrow(r, (double)axis->in_size), out = narrow(r, (double)axis->out_size);
  if (axis->align_corners)
    return axis->out_size > 1 ? narrow(r, narrow(r, (double)(axis->in_size - 1)) / narrow(r, (double)(axis->out_size - 1))) : 0.0;
  return axis->scale && *axis->scale > 0.0 ? narrow(r, 1.0 / *axis->scale) : narrow(r, in / out);
}

static double source_index(const rows *r, int64_t position, bool align_corners, bool cubic) {
  const double p = narrow(r, (double)position);
  if (align_corners) return narrow(r, r->scale * p);
  const double source = fused(r, r->scale, narrow(r, p + 0.5), -0.5);
  return !cubic && source < 0.0 ? 0.0 : source;
}

static int64_t clamp(int64_t value, int64_t low, int64_t high) { return value < low ? low : value > high ? high : value; }

/* Floor as an index below the size, and what is left over, within [0, 1]. */
static int64_t split(const rows *r, double source, double *fraction) {
  const int64_t floor_ = (int64_t)floorf((float)source), last = r->axis->in_size - 1;
  const int64_t index = floor_ < last ? floor_ : last;
  const double rest = narrow(r, source - narrow(r, (double)index));
  *fraction = rest < 0.0 ? 0.0 : rest > 1.0 ? 1.0 : rest;
  return index;
}

static void put(rows *r, int64_t row, int64_t index, double weight) {
  const uint64_t at = (uint64_t)row * r->taps_most + r->count[row]++;
  r->index[at] = (int32_t)index;
  if (r->single)
    r->weight[at] = (float)weight;
  else
    r->exact[at] = weight;
}

/* ---- one output position of each filter ---- */

static void nearest(rows *r, int64_t position) {
  const mps_axis *axis = r->axis;
  int64_t index;
  if (axis->by_pixel && axis->filter == MPS_FILTER_NEAREST && axis->out_size == axis->in_size)
    index = position;
  else if (axis->by_pixel && axis->filter == MPS_FILTER_NEAREST && axis->out_size == 2 * axis->in_size)
    index = position >> 1;
  else if (axis->filter == MPS_FILTER_NEAREST)
    index = (int64_t)floorf((float)source_index(r, position, true, false));
  else if (axis->by_pixel)
    index = (int64_t)floorf((float)(((double)position + 0.5) * r->scale));
  else
    index = (int64_t)floorf((float)(source_index(r, position, false, false) + 0.5));
  put(r, position, index < axis->in_size - 1 ? index : axis->in_size - 1, 1.0);
}

static void linear(rows *r, int64_t position) {
  const mps_axis *axis = r->axis;
  const mps_dtype dtype = axis->by_pixel ? MPS_DTYPE_F32 : axis->weight;
  if (axis->out_size == axis->in_size) {
    put(r, position, position, 1.0);
    put(r, position, position, 0.0);
    return;
  }
  double fraction;
  const int64_t index = split(r, source_index(r, position, axis->align_corners, false), &fraction);
  fraction = round_to(dtype, fraction);
  put(r, position, index, round_to(dtype, narrow(r, 1.0 - fraction)));
  put(r, position, index + (index < axis->in_size - 1), fraction);
}

/* The two pieces of the cubic convolution kernel: |x| <= 1 and 1 < |x| < 2. */
static double cubic_inner(const rows *r, double x, double a) {
  const double y = fused(r, narrow(r, a + 2.0), x, -narrow(r, a + 3.0));
  return fused(r, narrow(r, y * x), x, 1.0);
}
static double cubic_outer(const rows *r, double x, double a) {
  return fused(r, fused(r, fused(r, a, x, -5.0 * a), x, 8.0 * a), x, -4.0 * a);
}

/* The same at -0.75, as PyTorch's compiled function of four coefficients rounds it. */
static double coefficient_inner(const rows *r, double x) {
  const double y = narrow(r, narrow(r, 1.25 * x) - 2.25);
  return narrow(r, narrow(r, narrow(r, y * x) * x) + 1.0);
}
static double coefficient_outer(const rows *r, double x) {
  const double y = fused(r, fused(r, -0.75, x, 3.75), x, -6.0);
  return narrow(r, narrow(r, y * x) + 3.0);
}

static void cubic(rows *r, int64_t position) {
  const mps_axis *axis = r->axis;
  double t;
  const int64_t index = split(r, source_index(r, position, axis->align_corners, true), &t);
  const double rest = narrow(r, 1.0 - t);
  const double weights[4] = {coefficient_outer(r, narrow(r, t + 1.0)), coefficient_inner(r, t), coefficient_inner(r, rest),
                             coefficient_outer(r, narrow(r, rest + 1.0))};
  for (int64_t j = 0; j < 4; j++) put(r, position, clamp(index + j - 1, 0, axis->in_size - 1), round_to(axis->weight, weights[j]));
}

static double sinc(const rows *r, double x) {
  if (x == 0.0) return 1.0;
  x = narrow(r, x * 3.14159265358979323846);
  return narrow(r, (r->single ? (double)sinf((float)x) : sin(x)) / x);
}

/* Keys' kernel (-0.5) with antialiasing, as Pillow has it; -0.75 without. */
static double filter_value(const rows *r, double x) {
  const mps_filter filter = r->axis->filter;
  x = fabs(narrow(r, x));
  if (filter == MPS_FILTER_LINEAR || filter == MPS_FILTER_LINEAR_ANTIALIAS) return x < 1.0 ? narrow(r, 1.0 - x) : 0.0;
  if (filter == MPS_FILTER_LANCZOS_ANTIALIAS) return x < 3.0 ? narrow(r, sinc(r, x) * sinc(r, narrow(r, x / 3.0))) : 0.0;
  const double a = filter == MPS_FILTER_CUBIC_ANTIALIAS ? -0.5 : -0.75;
  return x < 1.0 ? cubic_inner(r, x, a) : x < 2.0 ? cubic_outer(r, x, a) : 0.0;
}

static void antialias(rows *r, int64_t position) {
  const double center = narrow(r, r->scale * ((double)position + 0.5));
  const double inverse = r->scale >= 1.0 ? narrow(r, 1.0 / r->scale) : 1.0;
  int64_t first = (int64_t)(narrow(r, center - r->support) + 0.5);
  if (first < 0) first = 0;
  int64_t end = (int64_t)(narrow(r, center + r->support) + 0.5);
  if (end > r->axis->in_size) end = r->axis->in_size;
  const int64_t count = clamp(end - first, 0, r->taps_most);
  double total = 0.0;
  for (int64_t j = 0; j < count; j++) {
    const double w = filter_value(r, (narrow(r, narrow(r, (double)(j + first)) - center) + 0.5) * inverse);
    put(r, position, first + j, w);
    total = narrow(r, total + w);
  }
  const uint64_t at = (uint64_t)position * r->taps_most;
  for (uint64_t j = at; total != 0.0 && j < at + (uint64_t)count; j++)
    if (r->single) {
      r->weight[j] = (float)((double)r->weight[j] / total);
    } else {
      r->exact[j] /= total;
      r->most = fmax(r->most, r->exact[j]);
    }
}

/* Fixed point without antialiasing: weights of taps beyond the borders are added to the border's; missing taps have weight 0. */
static void bounded(rows *r, int64_t position) {
  const mps_axis *axis = r->axis;
  const int64_t taps = r->taps_most, support = taps / 2, size = axis->in_size;
  double fraction;
  const int64_t index = split(r, source_index(r, position, axis->align_corners, taps > 2), &fraction);
  const int64_t unbounded = index - support + 1, first = unbounded > 0 ? unbounded : 0;
  const int64_t end = index + support + 1 < size ? index + support + 1 : size;
  const int64_t used = clamp(end - first, 0, taps);
  double *weights = r->exact + position * taps;
  for (int64_t j = 0; j < taps; j++) put(r, position, first + j < size ? first + j : size - 1, 0.0);
  int64_t place = 0;
  for (int64_t j = 0; j < taps; j++) {
    const double w = filter_value(r, (double)(j + 1 - support) - fraction);
    if (unbounded + j <= 0)
      place = 0;
    else if (unbounded + j >= size - 1)
      place = used - 1;
    weights[place] += w;
    r->most = fmax(r->most, weights[place++]);
  }
}

/* ---- tables ---- */

static mps_status allocate(uint64_t row_count, uint64_t entries, mps_axis_table *out) {
  memset(out, 0, sizeof *out);
  if (row_count >= INT32_MAX || entries >= INT32_MAX)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "interpolate(): an axis of %llu elements is too long", (unsigned long long)row_count);
  out->rows = (uint32_t)row_count;
  out->start = malloc((row_count + 1 + 2 * entries) * sizeof(uint32_t));
  if (!out->start) return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "interpolate(): no memory for a table of %llu taps", (unsigned long long)entries);
  out->index = (int32_t *)out->start + row_count + 1;
  out->fixed_weight = out->index + entries;
  return MPS_STATUS_OK;
}

/* As many bits as let the largest weight fit into 16. */
static uint32_t precision_of(double most) {
  uint32_t precision = 0;
  while (precision < 22 && (int)(0.5 + most * (1 << (precision + 1))) < 1 << 15) precision++;
  return precision;
}

/* Doubles become integers of 16 bits. */
static void fix(const rows *r, uint64_t places, mps_axis_table *out) {
  out->precision = precision_of(r->most);
  for (uint64_t i = 0; i < places; i++) {
    const double scaled = r->exact[i] * (1 << out->precision);
    out->fixed_weight[i] = (int16_t)(scaled < 0.0 ? -0.5 + scaled : 0.5 + scaled);
  }
}

/* Takes out the places that rows do not use, and fills start, in whose memory the counts are. */
static void close_up(const rows *r, mps_axis_table *out) {
  uint32_t at = 0;
  out->taps = out->rows ? r->count[0] : 0;
  for (uint32_t i = 0; i < out->rows; i++) {
    const uint32_t count = r->count[i], from = i * r->taps_most;
    for (uint32_t j = 0; from != at && j < count; j++) {
      out->index[at + j] = out->index[from + j];
      out->fixed_weight[at + j] = out->fixed_weight[from + j];
    }
    if (count != out->taps) out->taps = 0;
    out->start[i] = at;
    at += count;
  }
  out->start[out->rows] = at;
  memmove(out->index + at, out->fixed_weight, at * sizeof *out->index);
  out->fixed_weight = out->index + at;
  out->span = r->taps_most;
}

static void fill(rows *r) {
  const mps_axis *axis = r->axis;
  for (int64_t i = 0; i < axis->out_size; i++) switch (axis->filter) {
      case MPS_FILTER_NEAREST:
      case MPS_FILTER_NEAREST_EXACT: nearest(r, i); break;
      case MPS_FILTER_LINEAR: r->single ? linear(r, i) : bounded(r, i); break;
      case MPS_FILTER_CUBIC: r->single ? cubic(r, i) : bounded(r, i); break;
      default: antialias(r, i);
    }
}

mps_status mps_axis_table_make(const mps_axis *axis, mps_axis_table *out) {
  static const uint32_t sizes[] = {1, 1, 2, 4, 2, 4, 6};
  memset(out, 0, sizeof *out);
  rows r = {.axis = axis, .single = axis->weight != MPS_DTYPE_U8};
  r.scale = scale_of(axis, &r);
  r.taps_most = sizes[axis->filter];
  if (axis->filter >= MPS_FILTER_LINEAR_ANTIALIAS) {
    const double half = sizes[axis->filter] * 0.5;
    r.support = r.scale >= 1.0 ? narrow(&r, half * r.scale) : half;
    if (r.support > 1e8) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "interpolate(): a scale of %g is too large", r.scale);
    r.taps_most = (uint32_t)ceil(r.support) * 2 + 1;
    if (r.taps_most > axis->in_size) r.taps_most = (uint32_t)axis->in_size;
  }
  if (axis->in_size >= INT32_MAX || axis->out_size >= INT32_MAX / (int64_t)(r.taps_most + 1))
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "interpolate(): an axis of %lld elements is too long", (long long)axis->out_size);
  const uint64_t places = (uint64_t)axis->out_size * r.taps_most;
  mps_status status = allocate((uint64_t)axis->out_size, places, out);
  if (status == MPS_STATUS_OK && !r.single && !(r.exact = calloc(places, sizeof *r.exact))) {
    mps_axis_table_free(out);
    status = mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "interpolate(): no memory for %llu taps", (unsigned long long)places);
  }
  if (status != MPS_STATUS_OK) return status;
  r.count = out->start;
  r.index = out->index;
  r.weight = out->weight;
  memset(r.count, 0, (uint64_t)axis->out_size * sizeof *r.count);
  fill(&r);
  if (r.exact) fix(&r, places, out);
  close_up(&r, out);
  free(r.exact);
  return MPS_STATUS_OK;
}

mps_status mps_axis_table_make_identity(int64_t size, mps_dtype weight, mps_axis_table *out) {
  mps_status status = allocate((uint64_t)size, (uint64_t)size, out);
  if (status != MPS_STATUS_OK) return status;
  out->taps = out->span = 1;
  out->precision = weight == MPS_DTYPE_U8 ? 1 : 0;
  for (uint32_t i = 0; i <= (uint32_t)size; i++) out->start[i] = i;
  for (uint32_t i = 0; i < (uint32_t)size; i++) {
    out->index[i] = (int32_t)i;
    if (weight == MPS_DTYPE_U8)
      out->fixed_weight[i] = 2;
    else
      out->weight[i] = 1.0f;
  }
  return MPS_STATUS_OK;
}

mps_status mps_axis_table_transpose(const mps_axis_table *table, int64_t in_size, mps_axis_table *out) {
  const uint32_t entries = table->start[table->rows];
  mps_status status = allocate((uint64_t)in_size, entries, out);
  if (status != MPS_STATUS_OK) return status;
  memset(out->start, 0, (uint64_t)(in_size + 1) * sizeof *out->start);
  for (uint32_t t = 0; t < entries; t++) out->start[table->index[t] + 1]++;
  for (int64_t i = 0; i < in_size; i++) out->start[i + 1] += out->start[i];
  /* Each row's start moves while it fills, and comes to rest at the next row's. */
  for (uint32_t row = 0; row < table->rows; row++)
    for (uint32_t t = table->start[row]; t < table->start[row + 1]; t++) {
      const uint32_t at = out->start[table->index[t]]++;
      out->index[at] = (int32_t)row;
      out->weight[at] = table->weight[t];
    }
  for (int64_t i = in_size; i > 0; i--) out->start[i] = out->start[i - 1];
  out->start[0] = 0;
  out->span = 1;
  out->taps = out->start[1];
  for (int64_t i = 0; i < in_size; i++) {
    const uint32_t first = out->start[i], end = out->start[i + 1];
    if (end - first != out->taps) out->taps = 0;
    if (end == first) continue;
    const uint32_t span = (uint32_t)(out->index[end - 1] - out->index[first]) + 1;
    out->span = span > out->span ? span : out->span;
  }
  return MPS_STATUS_OK;
}

void mps_axis_table_free(mps_axis_table *table) {
  free(table->start);
  memset(table, 0, sizeof *table);
}

uint64_t mps_axis_table_words(const mps_axis_table *table) { return table->rows + 1 + 2 * (uint64_t)table->start[table->rows]; }

uint32_t mps_axis_table_most_taps(const mps_axis_table *table) {
  uint32_t most = 0;
  for (uint32_t row = 0; row < table->rows; row++) {
    const uint32_t taps = table->start[row + 1] - table->start[row];
    if (taps > most) most = taps;
  }
  return most;
}

void mps_axis_table_spread(const mps_axis_table *table, uint32_t taps, uint32_t copies, int32_t *index, int32_t *weight) {
  for (uint32_t tap = 0; tap < taps; tap++)
    for (uint32_t row = 0; row < table->rows; row++) {
      const uint32_t at = table->start[row] + tap;
      const bool missing = at >= table->start[row + 1], empty = table->start[row] == table->start[row + 1];
      const int32_t place = empty ? 0 : table->index[missing ? table->start[row] : at];
      for (uint32_t copy = 0; copy < copies; copy++) {
        *index++ = place * (int32_t)copies + (int32_t)copy;
        *weight++ = missing ? 0 : table->fixed_weight[at];
      }
    }
}
