/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fft_plan: from transforms along one dimension to the steps that make them. Pure.
 *
 * Up to some thousand values are one step: whole transforms in a tile of scratch. Longer ones, and few signals that would leave a tile
 * empty, go in two steps n = n1 * n2 with roots of unity between, again and again. Lengths with a large prime factor are convolutions
 * (Bluestein). Real signals of even length are complex ones of half the length.
 */
#ifndef OPENMPS_OPS_FFT_PLAN_H
#define OPENMPS_OPS_FFT_PLAN_H

#include "ops/fft_table.h"

typedef enum mps_fft_kind { MPS_FFT_COMPLEX, MPS_FFT_FROM_REAL, MPS_FFT_TO_REAL } mps_fft_kind;

typedef struct mps_fft_call {
  mps_fft_kind kind;
  bool inverse;  /* TO_REAL always is */
  bool onesided; /* FROM_REAL: only values 0 .. n / 2 */
  float scale;
  uint32_t cores;
} mps_fft_call;

typedef enum mps_fft_kernel { MPS_FFT_TILES, MPS_FFT_MULTIPLY, MPS_FFT_PACK_ROWS, MPS_FFT_UNPACK_ROWS } mps_fft_kernel;

/* Memory that steps read and write: the tensors, then temporaries. */
enum { MPS_FFT_SELF, MPS_FFT_OUT, MPS_FFT_TEMPORARY, MPS_FFT_MAX_TEMPORARIES = 6, MPS_FFT_MAX_STEPS = 16 };

typedef struct mps_fft_step {
  mps_fft_kernel kernel;
  uint32_t source, destination;
  mps_fft_table_key table;
  union {
    mps_fft_arguments tiles;
    mps_fft_row_arguments rows;
  };
  uint64_t threads[3];
  uint64_t scratch_bytes; /* 0: none */
  double cost;
} mps_fft_step;

typedef struct mps_fft_plan {
  uint32_t cores;
  uint32_t step_count, temporary_count;
  uint64_t temporary_bytes[MPS_FFT_MAX_TEMPORARIES];
  mps_fft_step steps[MPS_FFT_MAX_STEPS];
} mps_fft_plan;

/* Transforms along `dimension`. self and out have the same sizes but there; FROM_REAL onesided: out has n / 2 + 1 of self's n values, TO_REAL
 * the other way round. NOT_IMPLEMENTED for lengths that no plan fits. */
MPS_WARN_UNUSED mps_status mps_fft_plan_make(mps_fft_plan *plan, const mps_fft_call *call, const mps_tensor *self, const mps_tensor *out,
                                             uint32_t dimension);

#endif
