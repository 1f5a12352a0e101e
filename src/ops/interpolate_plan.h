/* SPDX-License-Identifier: BSD-3-Clause
 *
 * interpolate_plan: which source elements an output position of one axis is made of, and with what weights. Pure.
 *
 * Tables are made on the host, since PyTorch's CPU kernels compute them with a mix of double and float that shaders do not have.
 */
#ifndef OPENMPS_OPS_INTERPOLATE_PLAN_H
#define OPENMPS_OPS_INTERPOLATE_PLAN_H

#include "openmps/tensor.h"

typedef enum mps_filter {
  MPS_FILTER_NEAREST,       /* floor(o * scale) */
  MPS_FILTER_NEAREST_EXACT, /* the pixel whose centre is nearest */
  MPS_FILTER_LINEAR,
  MPS_FILTER_CUBIC,
  MPS_FILTER_LINEAR_ANTIALIAS, /* the filter is stretched when the result is smaller */
  MPS_FILTER_CUBIC_ANTIALIAS,
  MPS_FILTER_LANCZOS_ANTIALIAS,
} mps_filter;

typedef struct mps_axis {
  int64_t in_size, out_size;
  const double *scale; /* the caller's scale factor; NULL: the sizes' ratio */
  mps_filter filter;
  bool align_corners;
  bool by_pixel;    /* the rules of PyTorch's kernels that walk over pixels: nearest with whole factors, weights that are not rounded */
  mps_dtype weight; /* F32; F16 and BF16: weights are rounded to it; U8: fixed point */
} mps_axis;

/* Row r sums weight[t] * source[index[t]] over the taps t in [start[r], start[r + 1]). */
typedef struct mps_axis_table {
  uint32_t rows;
  uint32_t taps;      /* of every row; 0: rows differ */
  uint32_t span;      /* an upper bound of the distance between a row's first and last index, plus one */
  uint32_t precision; /* of fixed point: weights are integers, in units of 2^-precision */
  uint32_t *start;    /* the beginning of the table's memory: start, index and weight follow each other without gaps */
  int32_t *index;
  union {
    float *weight;
    int32_t *fixed_weight;
  };
} mps_axis_table;

/* The taps of each output position. INVALID_ARGUMENT for an axis that is too long, OUT_OF_MEMORY. The caller frees the table. */
MPS_WARN_UNUSED mps_status mps_axis_table_make(const mps_axis *axis, mps_axis_table *out_table);
/* One tap a row, weight 1: rows == in_size. */
MPS_WARN_UNUSED mps_status mps_axis_table_make_identity(int64_t size, mps_dtype weight, mps_axis_table *out_table);
/* The taps of each input position: those output positions that read it, in order. */
MPS_WARN_UNUSED mps_status mps_axis_table_transpose(const mps_axis_table *table, int64_t in_size, mps_axis_table *out_table);
/* Taps of the row that has most of them. */
uint32_t mps_axis_table_most_taps(const mps_axis_table *table);
/* The table by tap: index[tap][row][copy] and weight[tap][row][copy], with `taps` taps for each row and each row as often as `copies` says, for
 * neighbours that lie index * copies + copy. Taps that a row lacks have weight 0 and an index that may be read. */
void mps_axis_table_spread(const mps_axis_table *table, uint32_t taps, uint32_t copies, int32_t *index, int32_t *weight);
void mps_axis_table_free(mps_axis_table *table); /* zeroed tables too */
/* Words of four bytes that the table takes, from `start` on. */
uint64_t mps_axis_table_words(const mps_axis_table *table);

#endif
