/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_scan_plan: how rows are ordered and merged, which layout they get and when they are cut into chunks.
 */
#include "ops/scan_plan.h"
#include "test.h"

static mps_tensor contiguous(uint32_t rank, const int64_t *sizes) {
  mps_tensor t = {.dtype = MPS_DTYPE_F32};
  mps_tensor_set_contiguous(&t, rank, sizes);
  return t;
}
#define TENSOR(...) contiguous(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]){__VA_ARGS__})

static mps_scan_plan plan_of(mps_tensor x, uint32_t dimension, bool whole) {
  mps_scan_plan p;
  mps_tensor out = contiguous(x.rank, x.sizes);
  mps_scan_plan_make(&p, &x, dimension, &out, NULL, whole);
  return p;
}

static void last_dimension_is_inner(void) {
  mps_scan_plan p = plan_of(TENSOR(3, 100, 400), 2, false);
  CHECK(!p.outer);
  CHECK_INT(p.threads, 300);
  CHECK_INT(p.arguments.rank, 1);
  CHECK_INT(p.arguments.rows, 300);
  CHECK_INT(p.arguments.input_strides[0], 400);
  CHECK_INT(p.arguments.length, 400);
  CHECK_INT(p.arguments.chunk_count, 1);
}

static void first_and_middle_are_outer(void) {
  mps_scan_plan p = plan_of(TENSOR(300, 100), 0, false);
  CHECK(p.outer);
  CHECK_INT(p.threads, 2); /* 100 rows in tiles of 64 */
  CHECK_INT(p.arguments.input_step, 100);
  p = plan_of(TENSOR(7, 300, 100), 1, false);
  CHECK(p.outer);
  CHECK_INT(p.arguments.rank, 2);
  CHECK_INT(p.threads, 14);
}

static void short_rows_are_taken_side_by_side(void) {
  CHECK(plan_of(TENSOR(1000, 8), 1, false).outer);
  CHECK(!plan_of(TENSOR(10, 8), 1, false).outer);
  CHECK(!plan_of(TENSOR(1000, 8), 1, true).outer);
}

static void few_long_rows_are_cut(void) {
  mps_scan_plan p = plan_of(TENSOR(1000000), 0, false);
  CHECK_INT(p.arguments.chunk, 16384);
  CHECK_INT(p.arguments.chunk_count, 62);
  CHECK_INT(p.arguments.chunk % MPS_SCAN_GROUP, 0);
  CHECK_INT(plan_of(TENSOR(1000000), 0, true).arguments.chunk_count, 1);
  CHECK_INT(plan_of(TENSOR(8, 1000000), 1, false).arguments.chunk_count, 1);
  CHECK_INT(plan_of(TENSOR(65536), 0, false).arguments.chunk_count, 1);
  p = plan_of(TENSOR(10000, 64), 0, false);
  CHECK(p.outer);
  CHECK_INT(p.arguments.chunk % MPS_SCAN_STEPS, 0);
  CHECK_INT(p.arguments.chunk_count, 10);
}

static void indices_have_strides_of_their_own(void) {
  mps_tensor x = TENSOR(6, 40), values = TENSOR(6, 40), indices = TENSOR(40, 6);
  indices.sizes[0] = 6, indices.sizes[1] = 40, indices.strides[0] = 1, indices.strides[1] = 6;
  mps_scan_plan p;
  mps_scan_plan_make(&p, &x, 1, &values, &indices, false);
  CHECK_INT(p.arguments.index_step, 6);
  CHECK_INT(p.arguments.index_strides[0], 1);
  CHECK_INT(p.arguments.output_strides[0], 40);
}

static void a_row_alone(void) {
  mps_scan_plan p = plan_of(TENSOR(1, 5, 1), 1, false);
  CHECK_INT(p.arguments.rank, 1);
  CHECK_INT(p.arguments.rows, 1);
  CHECK_INT(p.threads, 1);
  p = plan_of(TENSOR(1), 0, false);
  CHECK_INT(p.arguments.length, 1);
  CHECK_INT(p.arguments.chunk_count, 1);
}

int main(void) {
  RUN(last_dimension_is_inner);
  RUN(first_and_middle_are_outer);
  RUN(short_rows_are_taken_side_by_side);
  RUN(few_long_rows_are_cut);
  RUN(indices_have_strides_of_their_own);
  RUN(a_row_alone);
  return test_end();
}
