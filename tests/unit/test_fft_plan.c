/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_fft_plan: how lengths are cut, what tables hold, and which steps a transform takes.
 */
#include "ops/fft_plan.h"

#include <math.h>
#include <stdlib.h>

#include "tensors.h"
#include "test.h"

static void factors(void) {
  uint32_t r[MPS_FFT_MAX_PASSES];
  CHECK_INT(mps_fft_factor(1024, r), 4); /* 8 * 8 * 4 * 4, without a 2 */
  CHECK_INTS(r, 8, 8, 4, 4);
  CHECK_INT(mps_fft_factor(8, r), 1);
  CHECK_INT(mps_fft_factor(16, r), 2);
  CHECK_INTS(r, 4, 4);
  CHECK_INT(mps_fft_factor(2310, r), 5);
  CHECK_INTS(r, 2, 3, 5, 7, 11);
  CHECK_INT(mps_fft_factor(61 * 9, r), 3);
  CHECK_INTS(r, 3, 3, 61);
  CHECK_INT(mps_fft_factor(67, r), 0);
  CHECK(mps_fft_is_smooth(1));
  CHECK(!mps_fft_is_smooth(1009));
  for (int64_t n = 2; n < 3000; n++) {
    int64_t product = 1;
    const uint32_t count = mps_fft_factor(n, r);
    for (uint32_t i = 0; i < count; i++) product *= r[i];
    if (count) CHECK_INT(product, n);
  }
}

static void convolutions(void) {
  CHECK_INT(mps_fft_convolution_length(67), 144); /* 133 at least */
  CHECK_INT(mps_fft_convolution_length(1009), 2048);
  CHECK_INT(mps_fft_convolution_length(1), 16);
}

static float *table_of(mps_fft_table_key key, mps_fft_table_layout *at) {
  mps_fft_table_lay_out(&key, at);
  float *table = calloc((size_t)at->total, sizeof *table);
  CHECK_OK(mps_fft_table_fill(&key, table));
  return table;
}

static bool near(const float *value, double re, double im) { return fabs(value[0] - re) < 1e-7 && fabs(value[1] - im) < 1e-7; }

static void roots_of_passes(void) {
  mps_fft_table_layout at;
  float *t = table_of((mps_fft_table_key){.passes = 12}, &at); /* 4 * 3 */
  CHECK_INT(at.total, 32); /* 3 * 3 + 2 values, and what aligns them */
  const double angle = 2 * 3.14159265358979323846 / 12;
  CHECK(near(t, 1, 0));                                        /* p = 0 */
  CHECK(near(t + 6, cos(angle), -sin(angle)));                 /* p = 1, k = 1 */
  CHECK(near(t + 2 * 8, cos(6 * angle), -sin(6 * angle)));     /* p = 2, k = 3 */
  CHECK(near(t + 2 * 9, 1, 0));                                /* the second pass has p = 0 only */
  free(t);
  t = table_of((mps_fft_table_key){.passes = 11}, &at); /* a radix without a butterfly brings its own roots */
  CHECK(near(t + 2 * 3, cos(3 * angle * 12 / 11), -sin(3 * angle * 12 / 11)));
  free(t);
}

static void roots_between_steps(void) {
  mps_fft_table_layout at;
  float *t = table_of((mps_fft_table_key){.passes = 8, .twist = 20}, &at);
  const double angle = 2 * 3.14159265358979323846 / 160;
  CHECK_INT(at.twist_lanes - at.twist_rows, 32);                            /* two tiles of eight values */
  CHECK(near(t + at.twist_rows + 2 * (8 + 3), cos(48 * angle), -sin(48 * angle))); /* tile 1 begins at column 16, value 3 */
  CHECK(fabs(t[at.twist_lanes + 3 * 32 + 5] - cos(15 * angle)) < 1e-7);     /* value 3, column 5 */
  CHECK(fabs(t[at.twist_lanes + 3 * 32 + 16 + 5] + sin(15 * angle)) < 1e-7);
  free(t);
}

static void spectra_of_chirps(void) {
  mps_fft_table_layout at;
  float *t = table_of((mps_fft_table_key){.chirp = 67, .spectrum = 144}, &at);
  const double pi = 3.14159265358979323846;
  CHECK(near(t + at.chirp + 2 * 9, cos(pi * 81 / 67), -sin(pi * 81 / 67)));
  double re = 0, im = 0; /* value 1 by the definition: the filter is symmetric */
  for (int k = -66; k <= 66; k++) {
    const double angle = pi * k * k / 67 - 2 * pi * k / 144;
    re += cos(angle) / 144;
    im += sin(angle) / 144;
  }
  CHECK(near(t + at.spectrum + 2, re, im));
  free(t);
}

static mps_fft_plan plan_of(mps_fft_kind kind, const mps_tensor *self, uint32_t dimension, int64_t out_size) {
  mps_tensor out = make(buffer_b(), kind == MPS_FFT_TO_REAL ? MPS_DTYPE_F32 : MPS_DTYPE_C64, self->rank, self->sizes);
  int64_t sizes[MPS_MAX_RANK];
  memcpy(sizes, self->sizes, sizeof sizes);
  sizes[dimension] = out_size;
  mps_tensor_set_contiguous(&out, self->rank, sizes);
  mps_fft_plan plan;
  const mps_fft_call call = {.kind = kind, .onesided = out_size != self->sizes[dimension], .scale = 0.5f, .cores = 2};
  CHECK_OK(mps_fft_plan_make(&plan, &call, self, &out, dimension));
  return plan;
}

static void one_tile(void) {
  mps_tensor x = TENSOR(C64, 100, 64);
  mps_fft_plan p = plan_of(MPS_FFT_COMPLEX, &x, 1, 64);
  CHECK_INT(p.step_count, 1);
  CHECK_INT(p.temporary_count, 0);
  const mps_fft_step *s = &p.steps[0];
  CHECK_INT(s->kernel, MPS_FFT_TILES);
  CHECK_INT(s->source, MPS_FFT_SELF);
  CHECK_INT(s->destination, MPS_FFT_OUT);
  CHECK_INT(s->tiles.tiles, 7);
  CHECK_INT(s->tiles.values.flags, 0);
  CHECK_INT(s->tiles.values.in_step, 2);
  CHECK_INT(s->tiles.batch.rank, 1);
  CHECK_INTS(s->tiles.batch.in_strides, 128);
  CHECK(s->tiles.values.scale == 0.5f);
  CHECK_INT(s->scratch_bytes, s->tiles.lanes * 2 * (3 * 1024 + 512) * 4); /* 65 elements of 32 floats, in whole pages, and half a page */
}

static void batches_merge_widest_first(void) {
  mps_tensor x = transposed(TENSOR(C64, 4, 5, 6), 0, 1); /* 5 x 4 x 6, strides 6 30 1 */
  mps_fft_plan p = plan_of(MPS_FFT_COMPLEX, &x, 2, 6);
  CHECK_INT(p.steps[0].tiles.batch.rank, 2); /* the result is contiguous, so that they stay apart */
  CHECK_INTS(p.steps[0].tiles.batch.sizes, 4, 5);
  CHECK_INTS(p.steps[0].tiles.batch.in_strides, 60, 12);
  CHECK_INTS(p.steps[0].tiles.batch.out_strides, 12, 48);
  mps_tensor y = TENSOR(C64, 6, 4, 5);
  p = plan_of(MPS_FFT_COMPLEX, &y, 0, 6);
  CHECK_INT(p.steps[0].tiles.batch.rank, 1);
  CHECK_INTS(p.steps[0].tiles.batch.sizes, 20);
  CHECK_INTS(p.steps[0].tiles.batch.in_strides, 2);
}

static void long_ones_are_divided(void) {
  mps_tensor x = TENSOR(C64, 1, 1048576);
  mps_fft_plan p = plan_of(MPS_FFT_COMPLEX, &x, 1, 1048576);
  CHECK_INT(p.step_count, 2);
  CHECK_INT(p.temporary_count, 1);
  CHECK_INT(p.temporary_bytes[0], 8388608);
  const mps_fft_arguments *columns = &p.steps[0].tiles, *rows = &p.steps[1].tiles;
  CHECK_INT(columns->length, 1024);
  CHECK_INT(columns->columns, 1024);
  CHECK_INT(columns->values.flags, MPS_FFT_TWIST);
  CHECK_INT(columns->values.in_step, 2048);
  CHECK_INT(columns->tiles, 64);
  CHECK(columns->values.scale == 1.0f);
  CHECK_INT(p.steps[1].source, MPS_FFT_TEMPORARY);
  CHECK_INT(p.steps[1].destination, MPS_FFT_OUT);
  CHECK_INT(rows->values.in_step, 2);
  CHECK_INT(rows->values.out_step, 2048);
  CHECK_INTS(rows->batch.out_strides, 2);
  CHECK(rows->values.scale == 0.5f);
  mps_tensor many = TENSOR(C64, 9, 2048), few = TENSOR(C64, 8, 2048), longest = TENSOR(C64, 1594323);
  CHECK_INT(plan_of(MPS_FFT_COMPLEX, &many, 1, 2048).step_count, 1);
  CHECK_INT(plan_of(MPS_FFT_COMPLEX, &few, 1, 2048).step_count, 2);
  CHECK_INT(plan_of(MPS_FFT_COMPLEX, &longest, 0, 1594323).step_count, 3);
}

static void large_primes_are_convolutions(void) {
  mps_tensor x = TENSOR(C64, 20, 1009), longer = TENSOR(C64, 20, 10007);
  mps_fft_plan p = plan_of(MPS_FFT_COMPLEX, &x, 1, 1009);
  CHECK_INT(p.step_count, 1);
  CHECK_INT(p.steps[0].tiles.values.flags, MPS_FFT_CHIRP);
  CHECK_INT(p.steps[0].tiles.length, 2048);
  CHECK_INT(p.steps[0].tiles.signal, 1009);
  p = plan_of(MPS_FFT_COMPLEX, &longer, 1, 10007); /* times, two steps, times, two steps, times */
  CHECK_INT(p.step_count, 7);
  CHECK_INT(p.steps[0].kernel, MPS_FFT_MULTIPLY);
  CHECK_INT(p.steps[0].rows.values.in_count, 10007);
  CHECK_INT(p.steps[0].rows.length, mps_fft_convolution_length(10007));
  CHECK_INT(p.steps[3].source, p.steps[3].destination);
  CHECK_INT(p.steps[3].rows.table > p.steps[0].rows.table, 1);
  CHECK_INT(p.steps[6].destination, MPS_FFT_OUT);
  CHECK(p.steps[6].rows.values.scale == 0.5f && p.steps[0].rows.values.scale == 1.0f);
}

static void real_ones_have_half_the_length(void) {
  mps_tensor even = TENSOR(F32, 20, 64), odd = TENSOR(F32, 20, 63), many = TENSOR(F32, 1048576);
  mps_fft_plan p = plan_of(MPS_FFT_FROM_REAL, &even, 1, 33);
  CHECK_INT(p.step_count, 1);
  CHECK_INT(p.steps[0].tiles.length, 32);
  CHECK_INT(p.steps[0].tiles.values.flags, MPS_FFT_UNPACK);
  CHECK_INT(p.steps[0].tiles.values.in_step, 2);
  CHECK_INT(p.steps[0].tiles.values.in_imaginary, 1);
  CHECK_INT(p.steps[0].tiles.values.out_count, 33);
  CHECK_INTS(p.steps[0].tiles.batch.in_strides, 64);
  CHECK_INTS(p.steps[0].tiles.batch.out_strides, 66);
  CHECK_INT(plan_of(MPS_FFT_FROM_REAL, &even, 1, 64).steps[0].tiles.values.flags, MPS_FFT_UNPACK | MPS_FFT_MIRROR);
  CHECK_INT(plan_of(MPS_FFT_FROM_REAL, &odd, 1, 32).steps[0].tiles.values.flags, MPS_FFT_REAL_INPUT);
  p = plan_of(MPS_FFT_FROM_REAL, &many, 0, 524289);
  CHECK_INT(p.step_count, 3);
  CHECK_INT(p.steps[2].kernel, MPS_FFT_UNPACK_ROWS);
  CHECK_INT(p.steps[2].table.real, 1048576);
}

static void spectra_become_real(void) {
  mps_tensor even = TENSOR(C64, 20, 33), odd = TENSOR(C64, 20, 32), many = TENSOR(C64, 524289);
  mps_fft_plan p = plan_of(MPS_FFT_TO_REAL, &even, 1, 64);
  CHECK_INT(p.steps[0].tiles.values.flags, MPS_FFT_SWAP | MPS_FFT_PACK);
  CHECK_INT(p.steps[0].tiles.values.in_count, 33);
  CHECK_INT(p.steps[0].tiles.values.out_count, 32);
  CHECK_INT(p.steps[0].tiles.values.out_step, 2);
  p = plan_of(MPS_FFT_TO_REAL, &odd, 1, 63);
  CHECK_INT(p.steps[0].tiles.values.flags, MPS_FFT_SWAP | MPS_FFT_EXTEND | MPS_FFT_REAL_OUTPUT);
  CHECK_INT(p.steps[0].tiles.whole, 63);
  p = plan_of(MPS_FFT_TO_REAL, &many, 0, 1048576);
  CHECK_INT(p.step_count, 3);
  CHECK_INT(p.steps[0].kernel, MPS_FFT_PACK_ROWS);
  CHECK_INT(p.steps[2].destination, MPS_FFT_OUT);
}

int main(void) {
  RUN(factors);
  RUN(convolutions);
  RUN(roots_of_passes);
  RUN(roots_between_steps);
  RUN(spectra_of_chirps);
  RUN(one_tile);
  RUN(batches_merge_widest_first);
  RUN(long_ones_are_divided);
  RUN(large_primes_are_convolutions);
  RUN(real_ones_have_half_the_length);
  RUN(spectra_become_real);
  return test_end();
}
