/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_reduce_plan: which dimensions are kept, reduced and merged, which layout and how many chunks a reduction gets.
 */
#include "ops/reduce_plan.h"
#include "tensors.h"
#include "test.h"

static void full_reduction_is_one_run(void) {
  mps_tensor x = TENSOR(F32, 4, 5, 6), out = zero_dimensional(MPS_DTYPE_F32);
  mps_reduce_plan p;
  mps_reduce_plan_make(&p, &x, 7, &out, NULL, false);
  CHECK_INT(p.arguments.reduced_rank, 1);
  CHECK_INT(p.arguments.reduced_sizes[0], 120);
  CHECK_INT(p.arguments.reduced_strides[0], 1);
  CHECK_INT(p.arguments.output_count, 1);
  CHECK_INT(p.arguments.chunk_count, 1);
  CHECK_INT(p.arguments.raw, 0);
  CHECK(!p.outer);
}

static void order_of_memory_decides(void) {
  mps_tensor x = transposed(TENSOR(F32, 4, 5, 6), 0, 2), out = zero_dimensional(MPS_DTYPE_F32);
  mps_reduce_plan p;
  mps_reduce_plan_make(&p, &x, 7, &out, NULL, false);
  CHECK_INT(p.arguments.reduced_rank, 1);
  mps_reduce_plan_make(&p, &x, 7, &out, NULL, true); /* places are counted in logical order */
  CHECK_INT(p.arguments.reduced_rank, 3);
  CHECK_INT(p.arguments.reduced_sizes[2], 4);
  CHECK_INT(p.arguments.reduced_strides[2], 30);
}

static void last_dimension(void) {
  mps_tensor x = TENSOR(F32, 300, 400), out = TENSOR(F32, 300);
  mps_reduce_plan p;
  mps_reduce_plan_make(&p, &x, 2, &out, NULL, false);
  CHECK(!p.outer);
  CHECK_INT(p.arguments.output_count, 300);
  CHECK_INT(p.arguments.kept_strides[0], 400);
  CHECK_INT(p.arguments.out_strides[0], 1);
  CHECK_INT(p.threads[0], 300);
  CHECK_INT(p.threads[1], 1);
}

static void first_dimension_takes_tiles(void) {
  mps_tensor x = TENSOR(F32, 300, 600), out = TENSOR(F32, 1, 600);
  mps_reduce_plan p;
  mps_reduce_plan_make(&p, &x, 1, &out, NULL, false);
  CHECK(p.outer);
  CHECK_INT(p.threads[0], 3); /* 600 outputs in tiles of 256 */
  CHECK_INT(p.arguments.reduced_strides[0], 600);
  CHECK_INT(p.arguments.chunk, 300); /* not much more than 256 rows stays whole */
}

static void short_rows_are_taken_side_by_side(void) {
  mps_tensor x = TENSOR(F32, 1000, 8), out = TENSOR(F32, 1000);
  mps_reduce_plan p;
  mps_reduce_plan_make(&p, &x, 2, &out, NULL, false);
  CHECK(p.outer);
  CHECK_INT(p.arguments.kept_strides[0], 8);
}

static void short_rows_are_a_layout(void) {
  mps_tensor x = TENSOR(F32, 1000, 40), out = TENSOR(F32, 1000);
  mps_reduce_plan p;
  mps_reduce_plan_make(&p, &x, 2, &out, NULL, false);
  CHECK(!p.outer); /* norms look at plans, too */
  CHECK_INT(p.arguments.rows, 0);
  mps_reduce_plan_rows(&p);
  CHECK(p.outer);
  CHECK_INT(p.arguments.rows, 1);
  CHECK_INT(p.threads[0], 4); /* 1000 rows in tiles of 256 */
  CHECK_INT(p.arguments.chunk_count, 1);
  const int64_t lengths[] = {15, 16, 127, 128};
  for (uint32_t i = 0; i < 4; i++) {
    mps_tensor y = TENSOR(F32, 1000, lengths[i]);
    mps_reduce_plan_make(&p, &y, 2, &out, NULL, false);
    mps_reduce_plan_rows(&p);
    CHECK_INT(p.arguments.rows, i == 1 || i == 2);
  }
  mps_tensor columns = transposed(TENSOR(F32, 40, 1000), 0, 1), few = TENSOR(F32, 15, 40), few_out = TENSOR(F32, 15);
  mps_reduce_plan_make(&p, &columns, 2, &out, NULL, false);
  mps_reduce_plan_rows(&p);
  CHECK_INT(p.arguments.rows, 0);
  mps_reduce_plan_make(&p, &few, 2, &few_out, NULL, false);
  mps_reduce_plan_rows(&p);
  CHECK_INT(p.arguments.rows, 0);
}

static void chunks_depend_on_the_shape(void) {
  mps_tensor x = TENSOR(F32, 1000000), out = zero_dimensional(MPS_DTYPE_F32);
  mps_reduce_plan p;
  mps_reduce_plan_make(&p, &x, 1, &out, NULL, false);
  CHECK_INT(p.arguments.chunk, 16384);
  CHECK_INT(p.arguments.chunk_count, 62);
  CHECK_INT(p.arguments.raw, 1);
  CHECK_INT(p.threads[1], 62);
}

static void middle_and_channels_last(void) {
  mps_tensor x = TENSOR(F32, 2, 3, 4, 5), out = TENSOR(F32, 2, 1, 4, 5);
  mps_reduce_plan p;
  mps_reduce_plan_make(&p, &x, 2, &out, NULL, false);
  CHECK(p.outer);
  CHECK_INT(p.arguments.kept_rank, 2);
  CHECK_INT(p.arguments.kept_sizes[1], 20);
  mps_tensor last = channels_last(TENSOR(F32, 2, 3, 4, 5)), channels = TENSOR(F32, 3);
  mps_reduce_plan_make(&p, &last, 13, &channels, NULL, false);
  CHECK(p.outer);
  CHECK_INT(p.arguments.reduced_rank, 1);
  CHECK_INT(p.arguments.reduced_sizes[0], 40);
}

static void second_output_has_strides_of_its_own(void) {
  mps_tensor x = TENSOR(F32, 6, 4, 7), values = TENSOR(F32, 6, 7), places = transposed(TENSOR(F32, 7, 6), 0, 1);
  mps_reduce_plan p;
  mps_reduce_plan_make(&p, &x, 2, &values, &places, true);
  CHECK_INT(p.arguments.kept_rank, 2);
  CHECK_INT(p.arguments.second_strides[0], 1);
  CHECK_INT(p.arguments.second_strides[1], 6);
}

static void empty_ones(void) {
  mps_tensor x = TENSOR(F32, 3, 0), out = TENSOR(F32, 3), none = TENSOR(F32, 0);
  mps_reduce_plan p;
  mps_reduce_plan_make(&p, &x, 2, &out, NULL, false);
  CHECK_INT(p.arguments.reduce_count, 0);
  CHECK_INT(p.arguments.chunk_count, 1);
  CHECK_INT(p.arguments.output_count, 3);
  mps_reduce_plan_make(&p, &x, 1, &none, NULL, false);
  CHECK_INT(p.arguments.output_count, 0);
  CHECK_INT(p.threads[0], 0);
}

static void expanded_dimensions_come_first(void) {
  mps_tensor x = TENSOR(F32, 6, 50, 9), out = TENSOR(F32, 6);
  x.strides[0] = 9, x.strides[1] = 0;
  mps_reduce_plan p;
  mps_reduce_plan_make(&p, &x, 6, &out, NULL, false);
  CHECK_INT(p.arguments.reduced_rank, 2);
  CHECK_INT(p.arguments.reduced_strides[0], 0);
  CHECK_INT(p.arguments.reduced_strides[1], 1);
}

static void masks(void) {
  uint32_t mask;
  CHECK_OK(mps_reduce_mask(NULL, 0, 3, &mask));
  CHECK_INT(mask, 7);
  CHECK_OK(mps_reduce_mask((int64_t[]){-1, 0}, 2, 3, &mask));
  CHECK_INT(mask, 5);
  CHECK_OK(mps_reduce_mask((int64_t[]){-1}, 1, 0, &mask));
  CHECK_STATUS(mps_reduce_mask((int64_t[]){3}, 1, 3, &mask), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_STRING(mps_error_message(), "Dimension out of range (expected to be in range of [-3, 2], but got 3)");
  CHECK_STATUS(mps_reduce_mask((int64_t[]){1, -2}, 2, 3, &mask), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_STRING(mps_error_message(), "dim 1 appears multiple times in the list of dims");
}

int main(void) {
  RUN(full_reduction_is_one_run);
  RUN(order_of_memory_decides);
  RUN(last_dimension);
  RUN(first_dimension_takes_tiles);
  RUN(short_rows_are_taken_side_by_side);
  RUN(short_rows_are_a_layout);
  RUN(chunks_depend_on_the_shape);
  RUN(middle_and_channels_last);
  RUN(second_output_has_strides_of_its_own);
  RUN(empty_ones);
  RUN(expanded_dimensions_come_first);
  RUN(masks);
  return test_end();
}
