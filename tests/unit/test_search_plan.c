/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_search_plan: rows that searches share, blocks of distinct rows and their merges, parts of a histogram.
 */
#include "ops/histogram.h"
#include "ops/search.h"
#include "ops/unique.h"
#include "test.h"

static mps_tensor contiguous(uint32_t rank, const int64_t *sizes) {
  mps_tensor t = {.dtype = MPS_DTYPE_F32};
  mps_tensor_set_contiguous(&t, rank, sizes);
  return t;
}
#define TENSOR(...) contiguous(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]){__VA_ARGS__})

static void one_row_of_boundaries_serves_all_values(void) {
  mps_tensor boundaries = TENSOR(50), values = TENSOR(4, 5, 6);
  mps_search_arguments a;
  double cost;
  mps_search_plan(&boundaries, &values, &a, &cost);
  CHECK_INT(a.count, 120);
  CHECK_INT(a.row, 120);
  CHECK_INT(a.length, 50);
  CHECK(cost > 0.0);
}

static void rows_of_boundaries_go_with_rows_of_values(void) {
  mps_tensor boundaries = TENSOR(4, 5, 9), values = TENSOR(4, 5, 6);
  mps_search_arguments a;
  double cost;
  mps_search_plan(&boundaries, &values, &a, &cost);
  CHECK_INT(a.row, 6);
  CHECK_INT(a.length, 9);
}

static void a_number_is_one_row(void) {
  mps_tensor boundaries = TENSOR(9), value = contiguous(0, NULL);
  mps_search_arguments a;
  double cost;
  mps_search_plan(&boundaries, &value, &a, &cost);
  CHECK_INT(a.count, 1);
  CHECK_INT(a.row, 1);
  value = TENSOR(0); /* nothing to divide by */
  mps_search_plan(&boundaries, &value, &a, &cost);
  CHECK_INT(a.row, 1);
}

static void few_test_elements_are_compared(void) {
  CHECK(mps_isin_compares(0));
  CHECK(mps_isin_compares(10));
  CHECK(!mps_isin_compares(1000));
}

static void starts_give_the_blocks(void) {
  mps_tensor rows = TENSOR(100, 3);
  mps_unique_arguments a;
  mps_unique_plan(&rows, true, false, 9, &a);
  CHECK_INT(a.blocks, 8);
  CHECK_INT(a.block, 13);
  CHECK_INT(a.width, 3);
  CHECK(a.block * a.blocks >= a.count);
  mps_tensor none = TENSOR(0, 3);
  mps_unique_plan(&none, false, false, 2, &a);
  CHECK_INT(a.block, 1);
}

static void merges_double_the_runs(void) {
  CHECK_INT(mps_unique_merges(1, 16), 0);
  CHECK_INT(mps_unique_merges(16, 16), 0);
  CHECK_INT(mps_unique_merges(17, 16), 1);
  CHECK_INT(mps_unique_merges(32, 16), 1);
  CHECK_INT(mps_unique_merges(33, 16), 2);
  CHECK_INT(mps_unique_merges(1 << 20, 16), 16);
}

static void parts_depend_on_points_and_bins(void) {
  mps_histogram_arguments a;
  mps_histogram_plan(100, 10, &a);
  CHECK_INT(a.parts, 1);
  CHECK_INT(a.part, 100);
  mps_histogram_plan(1000000, 10, &a);
  CHECK_INT(a.parts, 16);
  CHECK_INT(a.part, 62500);
  mps_histogram_plan(1000000, 100000, &a); /* a part has four points a bin */
  CHECK_INT(a.parts, 2);
  mps_histogram_plan(100, 1000000, &a);
  CHECK_INT(a.parts, 1);
  mps_histogram_plan(0, 5, &a);
  CHECK_INT(a.parts, 1);
  CHECK_INT(a.part, 0);
}

int main(void) {
  RUN(one_row_of_boundaries_serves_all_values);
  RUN(rows_of_boundaries_go_with_rows_of_values);
  RUN(a_number_is_one_row);
  RUN(few_test_elements_are_compared);
  RUN(starts_give_the_blocks);
  RUN(merges_double_the_runs);
  RUN(parts_depend_on_points_and_bins);
  return test_end();
}
