/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_interpolate_plan: taps and weights of an axis, for each filter; fixed point; transposition.
 */
#include <math.h>

#include "ops/interpolate_plan.h"
#include "test.h"

static mps_axis axis(int64_t in, int64_t out, mps_filter filter) {
  return (mps_axis){.in_size = in, .out_size = out, .filter = filter, .weight = MPS_DTYPE_F32};
}

static mps_axis_table make(const mps_axis *a) {
  mps_axis_table t;
  CHECK_OK(mps_axis_table_make(a, &t));
  return t;
}

static double weight_sum(const mps_axis_table *t, uint32_t row) {
  double sum = 0.0;
  for (uint32_t i = t->start[row]; i < t->start[row + 1]; i++) sum += (double)t->weight[i];
  return sum;
}

static void nearest_takes_the_pixel_below(void) {
  const mps_axis a = axis(5, 8, MPS_FILTER_NEAREST);
  mps_axis_table t = make(&a);
  const int32_t expected[] = {0, 0, 1, 1, 2, 3, 3, 4};
  CHECK_INT(t.rows, 8);
  CHECK_INT(t.taps, 1);
  for (int i = 0; i < 8; i++) CHECK_INT(t.index[i], expected[i]);
  mps_axis_table_free(&t);
}

static void nearest_exact_takes_the_nearest_centre(void) {
  const mps_axis a = axis(8, 3, MPS_FILTER_NEAREST_EXACT);
  mps_axis_table t = make(&a);
  const int32_t expected[] = {1, 4, 6};
  for (int i = 0; i < 3; i++) CHECK_INT(t.index[i], expected[i]);
  mps_axis_table_free(&t);
}

static void a_scale_counts_unless_pixels_are_doubled(void) {
  const double scale = 2.05;
  mps_axis a = axis(100, 200, MPS_FILTER_NEAREST);
  a.scale = &scale;
  mps_axis_table t = make(&a);
  CHECK_INT(t.index[199], 97); /* floor(199 / 2.05) */
  mps_axis_table_free(&t);
  a.by_pixel = true;
  t = make(&a);
  CHECK_INT(t.index[199], 99);
  mps_axis_table_free(&t);
}

static void linear_has_two_taps(void) {
  mps_axis a = axis(4, 8, MPS_FILTER_LINEAR);
  mps_axis_table t = make(&a);
  CHECK_INT(t.taps, 2);
  CHECK_INT(t.index[0], 0); /* clipped at the border */
  CHECK(t.weight[0] == 1.0f && t.weight[1] == 0.0f);
  CHECK_INT(t.index[2], 0);
  CHECK_INT(t.index[3], 1);
  CHECK(t.weight[2] == 0.75f && t.weight[3] == 0.25f);
  CHECK_INT(t.index[14], 3); /* beyond the last pixel: the same one twice */
  CHECK_INT(t.index[15], 3);
  mps_axis_table_free(&t);
  a.align_corners = true;
  t = make(&a);
  CHECK_INT(t.index[14], 3);
  CHECK(t.weight[14] == 1.0f);
  mps_axis_table_free(&t);
}

static void halves_round_weights(void) {
  mps_axis a = axis(3, 7, MPS_FILTER_LINEAR);
  a.weight = MPS_DTYPE_BF16;
  mps_axis_table t = make(&a);
  for (uint32_t i = 0; i < 14; i++) {
    uint32_t bits;
    memcpy(&bits, &t.weight[i], sizeof bits);
    CHECK_INT(bits & 0xffff, 0);
  }
  mps_axis_table_free(&t);
}

static void cubic_stays_inside(void) {
  const mps_axis a = axis(3, 10, MPS_FILTER_CUBIC);
  mps_axis_table t = make(&a);
  CHECK_INT(t.taps, 4);
  for (uint32_t row = 0; row < t.rows; row++) {
    CHECK(fabs(weight_sum(&t, row) - 1.0) < 1e-6);
    for (uint32_t i = t.start[row]; i < t.start[row + 1]; i++) CHECK(t.index[i] >= 0 && t.index[i] < 3);
  }
  mps_axis_table_free(&t);
}

static void antialiasing_widens_the_filter(void) {
  const mps_axis a = axis(40, 10, MPS_FILTER_LINEAR_ANTIALIAS);
  mps_axis_table t = make(&a);
  CHECK_INT(t.taps, 0); /* borders have fewer */
  CHECK_INT(t.start[6] - t.start[5], 8);
  CHECK_INT(t.index[t.start[5]], 18);
  for (uint32_t row = 0; row < t.rows; row++) CHECK(fabs(weight_sum(&t, row) - 1.0) < 1e-6);
  CHECK(t.span >= 8);
  mps_axis_table_free(&t);
}

static void fixed_point_sums_to_one(void) {
  const mps_filter filters[] = {MPS_FILTER_LINEAR, MPS_FILTER_CUBIC, MPS_FILTER_LINEAR_ANTIALIAS, MPS_FILTER_CUBIC_ANTIALIAS, MPS_FILTER_LANCZOS_ANTIALIAS};
  for (uint32_t f = 0; f < 5; f++) {
    mps_axis a = axis(13, 9, filters[f]);
    a.weight = MPS_DTYPE_U8;
    mps_axis_table t = make(&a);
    CHECK(t.precision >= 14 && t.precision < 22);
    for (uint32_t row = 0; row < t.rows; row++) {
      int64_t sum = 0;
      for (uint32_t i = t.start[row]; i < t.start[row + 1]; i++) {
        CHECK(t.fixed_weight[i] >= INT16_MIN && t.fixed_weight[i] <= INT16_MAX);
        sum += t.fixed_weight[i];
      }
      CHECK(sum > (1 << t.precision) - 8 && sum < (1 << t.precision) + 8);
    }
    mps_axis_table_free(&t);
  }
}

static void transposed_rows_hold_every_tap_once(void) {
  const mps_axis a = axis(5, 12, MPS_FILTER_CUBIC);
  mps_axis_table t = make(&a), back;
  CHECK_OK(mps_axis_table_transpose(&t, 5, &back));
  CHECK_INT(back.rows, 5);
  CHECK_INT(back.start[5], 48);
  double total = 0.0;
  for (uint32_t row = 0; row < 5; row++)
    for (uint32_t i = back.start[row]; i < back.start[row + 1]; i++) {
      CHECK(i == back.start[row] || back.index[i] >= back.index[i - 1]);
      CHECK((uint32_t)(back.index[back.start[row + 1] - 1] - back.index[back.start[row]]) < back.span);
      total += (double)back.weight[i];
    }
  CHECK(fabs(total - 12.0) < 1e-5);
  mps_axis_table_free(&back);
  mps_axis_table_free(&t);
}

static void nearest_transposed_may_have_empty_rows(void) {
  const mps_axis a = axis(6, 2, MPS_FILTER_NEAREST);
  mps_axis_table t = make(&a), back;
  CHECK_OK(mps_axis_table_transpose(&t, 6, &back));
  const uint32_t counts[] = {1, 0, 0, 1, 0, 0};
  for (uint32_t row = 0; row < 6; row++) CHECK_INT(back.start[row + 1] - back.start[row], counts[row]);
  CHECK_INT(back.taps, 0);
  mps_axis_table_free(&back);
  mps_axis_table_free(&t);
}

static void identity_has_one_tap(void) {
  mps_axis_table t;
  CHECK_OK(mps_axis_table_make_identity(3, MPS_DTYPE_F32, &t));
  CHECK_INT(t.taps, 1);
  CHECK_INT(t.index[2], 2);
  CHECK(t.weight[2] == 1.0f);
  CHECK_INT(mps_axis_table_words(&t), 4 + 3 + 3);
  mps_axis_table_free(&t);
}

static void tables_are_spread_by_tap(void) {
  mps_axis a = axis(4, 2, MPS_FILTER_NEAREST);
  mps_axis_table t, back;
  CHECK_OK(mps_axis_table_make(&a, &t));
  CHECK_OK(mps_axis_table_transpose(&t, 4, &back)); /* rows of one tap and of none */
  CHECK_INT(mps_axis_table_most_taps(&back), 1);
  int32_t index[16], weight[16];
  mps_axis_table_spread(&back, 2, 2, index, weight);
  const int32_t indices[] = {0, 1, 0, 1, 2, 3, 0, 1, 0, 1, 0, 1, 2, 3, 0, 1}; /* [tap][row][copy]; missing taps read what their row reads */
  for (uint32_t i = 0; i < 16; i++) CHECK_INT(index[i], indices[i]);
  for (uint32_t i = 0; i < 16; i++) CHECK((weight[i] != 0) == (i < 2 || (i >= 4 && i < 6)));
  mps_axis_table_free(&back);
  mps_axis_table_free(&t);
}

static void long_axes_are_refused(void) {
  const mps_axis a = axis((int64_t)1 << 32, 4, MPS_FILTER_LINEAR);
  mps_axis_table t;
  CHECK_STATUS(mps_axis_table_make(&a, &t), MPS_STATUS_INVALID_ARGUMENT);
  mps_axis_table_free(&t);
}

int main(void) {
  RUN(nearest_takes_the_pixel_below);
  RUN(nearest_exact_takes_the_nearest_centre);
  RUN(a_scale_counts_unless_pixels_are_doubled);
  RUN(linear_has_two_taps);
  RUN(halves_round_weights);
  RUN(cubic_stays_inside);
  RUN(antialiasing_widens_the_filter);
  RUN(fixed_point_sums_to_one);
  RUN(transposed_rows_hold_every_tap_once);
  RUN(nearest_transposed_may_have_empty_rows);
  RUN(identity_has_one_tap);
  RUN(tables_are_spread_by_tap);
  RUN(long_axes_are_refused);
  return test_end();
}
