/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_ctc_plan: which shapes and lengths are accepted, and where the targets of an item lie.
 */
#include <string.h>

#include "ops/ctc_plan.h"
#include "test.h"

static mps_tensor contiguous(mps_dtype dtype, uint32_t rank, const int64_t *sizes) {
  mps_tensor t = {.dtype = dtype};
  mps_tensor_set_contiguous(&t, rank, sizes);
  return t;
}
#define TENSOR(dtype, ...) contiguous(dtype, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]){__VA_ARGS__})

/* Two items of up to 5 steps, 4 classes. */
static mps_status checked(mps_tensor targets, int64_t input_0, int64_t input_1, int64_t target_0, int64_t target_1) {
  const int64_t inputs[] = {input_0, input_1}, lengths[] = {target_0, target_1};
  const mps_tensor log_probs = TENSOR(MPS_DTYPE_F32, 5, 2, 4);
  const mps_ctc_lengths l = {inputs, lengths, 2, 2};
  return mps_ctc_check(&log_probs, &targets, &l, 0);
}

static void lengths_are_checked(void) {
  const mps_tensor rows = TENSOR(MPS_DTYPE_I64, 2, 3), row = TENSOR(MPS_DTYPE_I64, 4);
  CHECK_INT(checked(rows, 5, 0, 3, 0), MPS_STATUS_OK);
  CHECK_INT(checked(rows, 6, 0, 3, 0), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_INT(checked(rows, 5, -1, 3, 0), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_INT(checked(rows, 5, 0, 4, 0), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_INT(checked(rows, 5, 0, 3, -1), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_INT(checked(row, 5, 5, 3, 1), MPS_STATUS_OK);
  CHECK_INT(checked(row, 5, 5, 0, 4), MPS_STATUS_OK);
  CHECK_INT(checked(row, 5, 5, 3, 0), MPS_STATUS_INVALID_ARGUMENT); /* one is left over */
  CHECK_INT(checked(row, 5, 5, 3, 2), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_INT(checked(row, 5, 5, INT64_MAX, INT64_MAX), MPS_STATUS_INVALID_ARGUMENT); /* the sum would wrap */
  CHECK_INT(checked(row, 5, 5, INT64_MAX, 5), MPS_STATUS_INVALID_ARGUMENT);
}

static void texts_are_torchs(void) {
  CHECK_INT(checked(TENSOR(MPS_DTYPE_I64, 4), 5, 5, 3, 2), MPS_STATUS_INVALID_ARGUMENT);
  CHECK(strstr(mps_error_message(), "Expected tensor to have size 5 at dimension 0, but got size 4 for argument #2 'targets'") != NULL);
  CHECK_INT(checked(TENSOR(MPS_DTYPE_I64, 2, 3), 5, 7, 3, 2), MPS_STATUS_INVALID_ARGUMENT);
  CHECK(strstr(mps_error_message(), "Expected input_lengths to have value at most 5, but got value 7") != NULL);
}

static void shapes_are_checked(void) {
  const int64_t one[] = {1, 1};
  const mps_ctc_lengths two = {one, one, 2, 2}, uneven = {one, one, 2, 1};
  const mps_tensor good = TENSOR(MPS_DTYPE_F32, 5, 2, 4), flat = TENSOR(MPS_DTYPE_F32, 5, 8), none = TENSOR(MPS_DTYPE_F32, 0, 2, 4);
  const mps_tensor rows = TENSOR(MPS_DTYPE_I64, 2, 3), other = TENSOR(MPS_DTYPE_I64, 3, 3), cube = TENSOR(MPS_DTYPE_I64, 1, 2, 3);
  CHECK_INT(mps_ctc_check(&good, &rows, &two, 3), MPS_STATUS_OK);
  CHECK_INT(mps_ctc_check(&good, &rows, &two, 4), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_INT(mps_ctc_check(&good, &rows, &two, -1), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_INT(mps_ctc_check(&good, &rows, &uneven, 0), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_INT(mps_ctc_check(&good, &other, &two, 0), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_INT(mps_ctc_check(&good, &cube, &two, 0), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_INT(mps_ctc_check(&flat, &rows, &two, 0), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_INT(mps_ctc_check(&none, &rows, &two, 0), MPS_STATUS_INVALID_ARGUMENT);
}

static void targets_lie_in_rows_or_in_one(void) {
  const int64_t inputs[] = {5, 4}, lengths[] = {3, 1};
  const mps_ctc_lengths l = {inputs, lengths, 2, 2};
  const mps_tensor log_probs = TENSOR(MPS_DTYPE_F32, 5, 2, 4);
  mps_tensor rows = TENSOR(MPS_DTYPE_I64, 2, 6), row = TENSOR(MPS_DTYPE_I64, 4);
  mps_ctc_plan plan;
  mps_ctc_item items[2];
  mps_ctc_plan_make(&log_probs, &rows, &l, 2, &plan, items);
  CHECK_INT(plan.arguments.steps, 5);
  CHECK_INT(plan.arguments.batch, 2);
  CHECK_INT(plan.arguments.classes, 4);
  CHECK_INT(plan.arguments.blank, 2);
  CHECK_INT(plan.arguments.states, 7);
  CHECK_INT(plan.arguments.places, 3);
  CHECK_INT(plan.arguments.target_stride, 1);
  CHECK_INT(items[1].target_offset, 6);
  CHECK_INT(items[1].input_length, 4);
  CHECK_INT(items[1].target_length, 1);
  row.strides[0] = 2; /* the items' places keep to the stride */
  mps_ctc_plan_make(&log_probs, &row, &l, 2, &plan, items);
  CHECK_INT(plan.arguments.target_stride, 2);
  CHECK_INT(items[0].target_offset, 0);
  CHECK_INT(items[1].target_offset, 6);
  CHECK(plan.cost > 0.0);
}

static void without_targets_there_is_one_state(void) {
  const int64_t inputs[] = {5, 4}, lengths[] = {0, 0};
  const mps_ctc_lengths l = {inputs, lengths, 2, 2};
  const mps_tensor log_probs = TENSOR(MPS_DTYPE_F32, 5, 2, 4), rows = TENSOR(MPS_DTYPE_I64, 2, 0);
  mps_ctc_plan plan;
  mps_ctc_item items[2];
  CHECK_INT(mps_ctc_check(&log_probs, &rows, &l, 0), MPS_STATUS_OK);
  mps_ctc_plan_make(&log_probs, &rows, &l, 0, &plan, items);
  CHECK_INT(plan.arguments.states, 1);
  CHECK_INT(plan.arguments.places, 1); /* the scratch is never empty */
}

int main(void) {
  RUN(lengths_are_checked);
  RUN(texts_are_torchs);
  RUN(shapes_are_checked);
  RUN(targets_lie_in_rows_or_in_one);
  RUN(without_targets_there_is_one_state);
  return test_end();
}
