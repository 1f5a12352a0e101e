/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_sequence_plan: doubles as sums of floats, where linspace turns round, and triangles with far diagonals.
 */
#include "ops/sequence_plan.h"
#include "tensors.h"
#include "test.h"

static void floats_keep_what_a_double_says(void) {
  mps_tensor out = TENSOR(F32, 7);
  out.strides[0] = 3;
  mps_sequence_plan p;
  mps_sequence_plan_arange(&p, mps_scalar_float(0.1), mps_scalar_float(1e10 + 0.5), &out);
  CHECK_STRING(p.stem, "sequence_float");
  CHECK_STRING(p.suffix, "f32");
  CHECK_INT(p.arguments.count, 7);
  CHECK_INT(p.arguments.middle, 7); /* nothing is counted back */
  CHECK_INT(p.arguments.out_stride, 3);
  CHECK(p.arguments.start_high == 0.1f);
  const double error = (double)p.arguments.start_high + (double)p.arguments.start_low - 0.1;
  CHECK(error < 1e-16 && error > -1e-16);
  CHECK(p.arguments.step_high == 1e10f);
  CHECK(p.arguments.step_low == 0.5f);
  mps_sequence_plan_arange(&p, mps_scalar_float(__builtin_inf()), mps_scalar_int(1), &out);
  CHECK(p.arguments.start_high == __builtin_inff() && p.arguments.start_low == 0.0f); /* not infinity less infinity */
}

static void integers_stay_exact(void) {
  mps_tensor out = TENSOR(I64, 5);
  mps_sequence_plan p;
  mps_sequence_plan_arange(&p, mps_scalar_int(((int64_t)1 << 53) + 1), mps_scalar_int(-3), &out);
  CHECK_STRING(p.stem, "sequence_integer");
  CHECK_STRING(p.suffix, "i64");
  CHECK_INT(p.arguments.first_integer, 9007199254740993);
  CHECK_INT(p.arguments.step_integer, -3);
}

static void linspace_counts_back_from_its_end(void) {
  mps_tensor five = TENSOR(F32, 5), one = TENSOR(F32, 1), none = TENSOR(F32, 0), bytes = TENSOR(U8, 4);
  mps_sequence_plan p;
  mps_sequence_plan_linspace(&p, mps_scalar_int(0), mps_scalar_int(1), &five);
  CHECK_STRING(p.stem, "linspace");
  CHECK_INT(p.arguments.middle, 2);
  CHECK(p.arguments.step_high == 0.25f && p.arguments.step_low == 0.0f && p.arguments.end_high == 1.0f);
  mps_sequence_plan_linspace(&p, mps_scalar_int(3), mps_scalar_int(9), &one);
  CHECK_INT(p.arguments.middle, 1); /* the only one is the start */
  CHECK(p.arguments.step_high == 0.0f);
  mps_sequence_plan_linspace(&p, mps_scalar_int(3), mps_scalar_int(9), &none);
  CHECK_INT(p.arguments.count, 0);
  CHECK(p.arguments.step_high == 0.0f);
  mps_sequence_plan_linspace(&p, mps_scalar_int(0), mps_scalar_int(9), &bytes);
  CHECK_STRING(p.stem, "sequence_truncated");
  CHECK_STRING(p.suffix, "u8");
  CHECK(p.arguments.step_high == 3.0f);
}

static void whole_numbers_of_a_logspace(void) {
  int64_t v[5];
  mps_sequence_logspace_integers(MPS_DTYPE_I64, 0, 18, 10.0, 19, 14, 5, v);
  CHECK_INT(v[0], 100000000000000);
  CHECK_INT(v[4], 1000000000000000000);
  mps_sequence_logspace_integers(MPS_DTYPE_I32, 8, 12, 10.0, 5, 0, 5, v);
  CHECK_INT(v[1], 1000000000);
  CHECK_INT(v[2], INT32_MIN); /* too large */
  mps_sequence_logspace_integers(MPS_DTYPE_I64, -1, 3, -2.0, 5, 0, 5, v);
  CHECK_INTS(v, 0, 1, -2, 4, -8);
  mps_sequence_logspace_integers(MPS_DTYPE_I64, 0, 1, -2.0, 3, 0, 3, v);
  CHECK_INT(v[1], INT64_MIN); /* a root of a negative number */
}

static void diagonals(void) {
  mps_tensor wide = TENSOR(F32, 3, 5), tall = transposed(wide, 0, 1), none = TENSOR(F32, 0, 5);
  mps_tensor diagonal = mps_sequence_diagonal(&wide);
  CHECK_INT(diagonal.rank, 1);
  CHECK_INTS(diagonal.sizes, 3);
  CHECK_INTS(diagonal.strides, 6);
  diagonal = mps_sequence_diagonal(&tall);
  CHECK_INTS(diagonal.sizes, 3);
  CHECK_INTS(diagonal.strides, 6);
  CHECK_INT(mps_sequence_diagonal(&none).sizes[0], 0);
}

static void triangles_of_batches(void) {
  mps_tensor x = transposed(TENSOR(F16, 2, 3, 5, 4), 2, 3), out = TENSOR(F16, 2, 3, 4, 5);
  mps_triangle_plan p;
  CHECK_OK(mps_triangle_plan_make(&p, &x, 1, true, &out));
  CHECK_STRING(p.suffix, "u16");
  CHECK_INT(p.arguments.rows, 4);
  CHECK_INT(p.arguments.columns, 5);
  CHECK_INT(p.arguments.diagonal, 1);
  CHECK_INT(p.arguments.upper, 1);
  CHECK_INT(p.arguments.self_row, 1);
  CHECK_INT(p.arguments.self_column, 4);
  CHECK_INT(p.arguments.out_row, 5);
  CHECK_INT(p.arguments.out_column, 1);
  CHECK_INT(p.arguments.batch_rank, 2);
  CHECK_INTS(p.arguments.batch_sizes, 2, 3);
  CHECK_INTS(p.arguments.self_batch, 60, 20);
  CHECK_INTS(p.threads, 4, 6, 1);
  mps_tensor matrix = TENSOR(C64, 4, 5), none = TENSOR(F32, 0, 4, 5), vector = TENSOR(F32, 4), wide = TENSOR(F32, 4, 5);
  CHECK_OK(mps_triangle_plan_make(&p, &matrix, 0, false, &matrix));
  CHECK_STRING(p.suffix, "u64");
  CHECK_INTS(p.threads, 4, 1, 1);
  CHECK_OK(mps_triangle_plan_make(&p, &none, 0, false, &none));
  CHECK_INTS(p.threads, 4, 0, 1);
  CHECK_STATUS(mps_triangle_plan_make(&p, &vector, 0, false, &vector), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(mps_triangle_plan_make(&p, &matrix, 0, false, &wide), MPS_STATUS_INVALID_ARGUMENT); /* dtypes differ */
}

static void far_diagonals_do_not_overflow(void) {
  mps_tensor x = TENSOR(F32, 4, 5), pairs = transposed(TENSOR(I64, 6, 2), 0, 1);
  mps_triangle_plan p;
  CHECK_OK(mps_triangle_plan_make(&p, &x, INT64_MAX, false, &x));
  CHECK_INT(p.arguments.diagonal, 5);
  CHECK_OK(mps_triangle_plan_make(&p, &x, INT64_MIN, false, &x));
  CHECK_INT(p.arguments.diagonal, -5);
  CHECK_OK(mps_triangle_plan_make(&p, &x, -4, false, &x));
  CHECK_INT(p.arguments.diagonal, -4);
  mps_triangle_indices_arguments a = mps_triangle_indices_plan(3, 4, INT64_MAX, true, &pairs);
  CHECK_INT(a.offset, 4);
  CHECK_INT(a.count, 6);
  CHECK_INT(a.out_first, 1);
  CHECK_INT(a.out_second, 2);
  CHECK_INT(a.upper, 1);
  CHECK_INT(mps_triangle_indices_plan(3, 4, INT64_MIN, false, &pairs).offset, -4);
  CHECK_INT(mps_triangle_indices_plan(3, 4, -3, false, &pairs).offset, -3);
}

int main(void) {
  RUN(floats_keep_what_a_double_says);
  RUN(integers_stay_exact);
  RUN(linspace_counts_back_from_its_end);
  RUN(whole_numbers_of_a_logspace);
  RUN(diagonals);
  RUN(triangles_of_batches);
  RUN(far_diagonals_do_not_overflow);
  return test_end();
}
