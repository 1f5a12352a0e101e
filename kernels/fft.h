/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fft: arguments of the Fourier kernels, shared by C and Metal. Strides, steps and displacements count floats. Transforms run forward;
 * an inverse one exchanges real and imaginary parts on the way in and on the way out.
 */
#ifndef OPENMPS_KERNELS_FFT_H
#define OPENMPS_KERNELS_FFT_H

#ifndef __METAL_VERSION__
#include <stdint.h>
#endif

#define MPS_FFT_WIDTH 16         /* transforms that run side by side */
#define MPS_FFT_ELEMENT 32       /* floats of an element in scratch: the real parts of all transforms, then the imaginary parts */
#define MPS_FFT_MAX_PASSES 24
#define MPS_FFT_MAX_RANK 16

enum {
  MPS_FFT_SWAP = 1,         /* an inverse transform */
  MPS_FFT_REAL_INPUT = 2,   /* imaginary parts are zero */
  MPS_FFT_REAL_OUTPUT = 4,  /* only real parts are stored */
  MPS_FFT_PACK = 8,         /* first: length + 1 values of a half spectrum become `length` values, whose transform is the real signal, two by two */
  MPS_FFT_EXTEND = 16,      /* first: a half spectrum becomes the whole one */
  MPS_FFT_UNPACK = 32,      /* last: the reverse of PACK */
  MPS_FFT_MIRROR = 64,      /* the other half of the spectrum is stored too */
  MPS_FFT_TWIST = 128,      /* last: value k of column c becomes value * root^(k c), the middle of a transform in two steps */
  MPS_FFT_IN_PAIRS = 512,   /* every complex value that is read lies at a multiple of its size */
  MPS_FFT_OUT_PAIRS = 1024, /* every one that is written too */
  MPS_FFT_CHIRP = 256       /* Bluestein: the transform of `signal` values as a convolution of length `length` */
};

/* Where a batch of signals lies. Signals are numbered in row-major order of `sizes`. */
typedef struct mps_fft_batch {
  uint32_t rank;
  uint32_t reserved;
  int64_t sizes[MPS_FFT_MAX_RANK];
  int64_t in_strides[MPS_FFT_MAX_RANK], out_strides[MPS_FFT_MAX_RANK];
} mps_fft_batch;

/* How the values of one signal lie, and what is done to them. */
typedef struct mps_fft_values {
  int64_t in_count, in_step, in_imaginary;    /* value k: real part at k * step, imaginary part `imaginary` behind it */
  int64_t out_count, out_step, out_imaginary;
  uint32_t flags;
  float scale;
} mps_fft_values;

/* fft_tiles: whole transforms of up to some thousand values, 16 at a time. */
typedef struct mps_fft_arguments {
  mps_fft_values values;
  mps_fft_batch batch;
  int64_t length;  /* of the passes */
  int64_t signal;  /* values of the signal; length, but for CHIRP */
  int64_t whole;   /* MIRROR, EXTEND: values of the whole spectrum */
  int64_t columns; /* signals that are cut into tiles together */
  int64_t tiles_each; /* tiles of `columns` signals */
  int64_t tiles, lanes;
  int64_t scratch; /* floats of half a lane's scratch */
  int64_t pass_table, real_table, twist_rows, twist_lanes, chirp_table, spectrum_table; /* where the tables begin */
  uint32_t pass_count;
  uint32_t radices[MPS_FFT_MAX_PASSES];
  uint32_t reserved;
} mps_fft_arguments;

/* fft_multiply, fft_pack, fft_unpack: value by value, a thread a block of one signal. */
typedef struct mps_fft_row_arguments {
  mps_fft_values values;
  mps_fft_batch batch;
  int64_t length;  /* multiply: values stored; pack, unpack: values of the packed side; extend: of the whole spectrum */
  int64_t whole;   /* unpack with MIRROR: values of the whole spectrum */
  int64_t block;   /* values a thread */
  int64_t table;   /* where the factors begin */
} mps_fft_row_arguments;

#endif
