/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fft_table: the roots of unity that a Fourier kernel reads: how a length is cut into passes, what a table holds and where. Computed in
 * double. Pure, but for the cache, which hangs off a device.
 */
#ifndef OPENMPS_OPS_FFT_TABLE_H
#define OPENMPS_OPS_FFT_TABLE_H

#include "kernels/fft.h"
#include "openmps/stream.h"

#define MPS_FFT_LARGEST_RADIX 61 /* larger prime factors are left to Bluestein's algorithm */

/* What a table is for; 0: without that part. Padding free, so that keys are compared as bytes. */
typedef struct mps_fft_table_key {
  int64_t passes; /* length of the transform in passes */
  int64_t real;   /* length of a real signal, for packing and unpacking */
  int64_t twist;  /* columns that a transform of `passes` values is one column of */
  int64_t chirp;  /* length of a signal transformed as a convolution */
  int64_t spectrum; /* length of that convolution */
} mps_fft_table_key;

/* Where parts begin, in floats. */
typedef struct mps_fft_table_layout {
  int64_t passes, real, twist_rows, twist_lanes, chirp, spectrum, total;
} mps_fft_table_layout;

/* The radices whose product is `length`; the number of them, or 0 when a prime factor is too large. length 1 has no passes: check it first. */
uint32_t mps_fft_factor(int64_t length, uint32_t radices[MPS_FFT_MAX_PASSES]);
bool mps_fft_is_smooth(int64_t length);
/* The length of the convolution that transforms `signal` values: at least 2 signal - 1, a multiple of 16 without prime factors above 5. */
int64_t mps_fft_convolution_length(int64_t signal);

void mps_fft_table_lay_out(const mps_fft_table_key *key, mps_fft_table_layout *layout);
/* Fills layout.total floats. OUT_OF_MEMORY. */
MPS_WARN_UNUSED mps_status mps_fft_table_fill(const mps_fft_table_key *key, float *table);

/* The device's table, made when it has none. The caller releases the buffer, right after what uses it is encoded. */
MPS_WARN_UNUSED mps_status mps_fft_table_find(mps_stream *stream, const mps_fft_table_key *key, mps_buffer **out_buffer);

#endif
