/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_pad_plan: what padding accepts, and how rows are laid out and shared among threads.
 */
#include "ops/pad_plan.h"
#include "test.h"

static mps_tensor contiguous(uint32_t rank, const int64_t *sizes) {
  mps_tensor t = {.dtype = MPS_DTYPE_F32};
  mps_tensor_set_contiguous(&t, rank, sizes);
  return t;
}
#define TENSOR(...) contiguous(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]){__VA_ARGS__})

static mps_status checked(mps_tensor small, mps_tensor large, const int64_t *padding, uint32_t count, bool reflects) {
  return mps_pad_check("pad", &small, &large, padding, count, reflects);
}

static void shapes_are_checked(void) {
  const int64_t p[] = {1, 2, 3, 0};
  CHECK_INT(checked(TENSOR(2, 5, 4), TENSOR(2, 8, 7), p, 4, true), MPS_STATUS_OK);
  CHECK_INT(checked(TENSOR(6, 2, 5, 4), TENSOR(6, 2, 8, 7), p, 4, true), MPS_STATUS_OK);
  CHECK_INT(checked(TENSOR(2, 5, 4), TENSOR(2, 8, 8), p, 4, true), MPS_STATUS_INVALID_ARGUMENT); /* width */
  CHECK_INT(checked(TENSOR(2, 5, 4), TENSOR(3, 8, 7), p, 4, true), MPS_STATUS_INVALID_ARGUMENT); /* channels */
  CHECK_INT(checked(TENSOR(5, 4), TENSOR(8, 7), p, 4, true), MPS_STATUS_INVALID_ARGUMENT);       /* rank */
  CHECK_INT(checked(TENSOR(2, 5, 4), TENSOR(2, 8, 7), p, 3, true), MPS_STATUS_INVALID_ARGUMENT); /* an odd list */
}

static void reflection_needs_smaller_paddings(void) {
  const int64_t p[] = {4, 0};
  CHECK_INT(checked(TENSOR(2, 4), TENSOR(2, 8), p, 2, true), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_INT(checked(TENSOR(2, 4), TENSOR(2, 8), p, 2, false), MPS_STATUS_OK);
}

static void rows_lie_along_the_width(void) {
  const int64_t p[] = {1, 2, 3, -1};
  mps_tensor small = TENSOR(6, 2, 5, 4), large = TENSOR(6, 2, 7, 7);
  mps_pad_plan plan;
  mps_pad_plan_make(&small, &large, p, 4, false, &plan);
  const mps_pad_arguments *a = &plan.arguments;
  CHECK_INT(a->group, 1);
  CHECK_INT(a->channels, 2);
  CHECK_INT(a->row_count, 6 * 2 * 7);
  CHECK_INT(a->to_size[0], 1);
  CHECK_INT(a->to_size[1], 7);
  CHECK_INT(a->from_size[2], 4);
  CHECK_INT(a->before[0], 0);
  CHECK_INT(a->before[1], 3);
  CHECK_INT(a->before[2], 1);
  CHECK_INT(a->to_batch, 98);
  CHECK_INT(a->from_channel, 20);
  CHECK_INT(plan.threads[0], 1); /* little work: one thread takes it all */
  CHECK_INT(plan.threads[1], 1);
}

static mps_tensor channels_last(mps_tensor t) {
  t.strides[1] = 1;
  t.strides[3] = t.sizes[1];
  t.strides[2] = t.sizes[3] * t.strides[3];
  return t;
}

static void channels_that_lie_together_are_a_group(void) {
  const int64_t p[] = {1, 1, 1, 1};
  mps_tensor small = channels_last(TENSOR(2, 3, 4, 5)), large = channels_last(TENSOR(2, 3, 6, 7));
  mps_pad_plan plan;
  mps_pad_plan_make(&small, &large, p, 4, false, &plan);
  CHECK_INT(plan.arguments.group, 3);
  CHECK_INT(plan.arguments.channels, 1);
  CHECK_INT(plan.arguments.row_count, 2 * 6);
  small = TENSOR(2, 3, 4, 5); /* in one of them only: no group */
  mps_pad_plan_make(&small, &large, p, 4, false, &plan);
  CHECK_INT(plan.arguments.group, 1);
  CHECK_INT(plan.arguments.row_count, 2 * 3 * 6);
}

static void long_rows_are_cut(void) {
  const int64_t p[] = {5, 5};
  mps_tensor small = TENSOR(1, 100000), large = TENSOR(1, 100010);
  mps_pad_plan plan;
  mps_pad_plan_make(&small, &large, p, 2, false, &plan);
  CHECK_INT(plan.threads[0], 1);
  CHECK(plan.threads[1] > 1);
  CHECK(plan.threads[1] * (uint64_t)plan.arguments.block >= 100010);
  mps_pad_plan_make(&large, &small, p, 2, true, &plan); /* the gradient: a row belongs to one thread */
  CHECK_INT(plan.threads[1], 1);
}

static void rows_are_shared_out(void) {
  const int64_t p[] = {1, 1};
  mps_tensor small = TENSOR(1000, 64, 62), large = TENSOR(1000, 64, 64);
  mps_pad_plan plan;
  mps_pad_plan_make(&small, &large, p, 2, false, &plan);
  CHECK_INT(plan.arguments.row_count, 64000);
  CHECK(plan.threads[0] > 100);
  CHECK(plan.threads[0] * (uint64_t)plan.arguments.rows >= 64000);
}

static void nothing_is_written_to_an_empty_tensor(void) {
  const int64_t p[] = {1, 1};
  mps_tensor small = TENSOR(0, 3, 4), large = TENSOR(0, 3, 6);
  mps_pad_plan plan;
  mps_pad_plan_make(&small, &large, p, 2, false, &plan);
  CHECK_INT(plan.threads[0], 0);
}

int main(void) {
  RUN(shapes_are_checked);
  RUN(reflection_needs_smaller_paddings);
  RUN(rows_lie_along_the_width);
  RUN(channels_that_lie_together_are_a_group);
  RUN(long_rows_are_cut);
  RUN(rows_are_shared_out);
  RUN(nothing_is_written_to_an_empty_tensor);
  return test_end();
}
