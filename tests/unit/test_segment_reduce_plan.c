/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_segment_reduce_plan: rows, threads and starting values of reductions of segments, worked out by hand.
 */
#include <math.h>

#include "ops/segment_reduce_plan.h"
#include "tensors.h"
#include "test.h"

static void a_thread_for_each_segment_and_block(void) {
  mps_segment_reduce_plan p;
  mps_tensor data = TENSOR(F32, 5, 20, 3, 50), lengths = TENSOR(I64, 5, 4), offsets = TENSOR(I32, 5, 4);
  mps_segment_reduce_plan_make(&p, &data, &lengths, false, MPS_SEGMENT_SUM, NULL);
  CHECK_INT(p.threads[0], 20);
  CHECK_INT(p.threads[1], 3); /* 64 + 64 + 22 */
  CHECK_INT(p.arguments.segments, 4);
  CHECK_INT(p.arguments.bounds, 4);
  CHECK_INT(p.arguments.length, 20);
  CHECK_INT(p.arguments.inner, 150);
  CHECK_INT(p.arguments.has_initial, 0);
  mps_segment_reduce_plan_make(&p, &data, &offsets, true, MPS_SEGMENT_SUM, NULL);
  CHECK_INT(p.threads[0], 15);
  CHECK_INT(p.arguments.segments, 3);
  CHECK_INT(p.arguments.bounds, 4);
}

static void rows_of_bounds_that_data_lacks_are_left_alone(void) {
  mps_segment_reduce_plan p;
  mps_tensor data = TENSOR(F16, 2, 9), lengths = TENSOR(I64, 7, 3);
  mps_segment_reduce_plan_make(&p, &data, &lengths, false, MPS_SEGMENT_SUM, NULL);
  CHECK_INT(p.threads[0], 6);
  CHECK_INT(p.threads[1], 1);
}

static void what_a_segment_starts_with(void) {
  mps_segment_reduce_plan p;
  mps_tensor data = TENSOR(F32, 9), lengths = TENSOR(I64, 3);
  const struct {
    int mode;
    float start;
  } cases[] = {{MPS_SEGMENT_SUM, 0.0f}, {MPS_SEGMENT_MEAN, 0.0f}, {MPS_SEGMENT_PROD, 1.0f}, {MPS_SEGMENT_MAX, -INFINITY}, {MPS_SEGMENT_MIN, INFINITY}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    mps_segment_reduce_plan_make(&p, &data, &lengths, false, cases[i].mode, NULL);
    CHECK(p.arguments.initial == cases[i].start);
    const mps_scalar initial = mps_scalar_int(5);
    mps_segment_reduce_plan_make(&p, &data, &lengths, false, cases[i].mode, &initial);
    CHECK(p.arguments.initial == 5.0f);
    CHECK_INT(p.arguments.has_initial, 1);
  }
}

static void words_for_reductions(void) {
  CHECK_INT(mps_segment_reduce_mode("sum"), MPS_SEGMENT_SUM);
  CHECK_INT(mps_segment_reduce_mode("mean"), MPS_SEGMENT_MEAN);
  CHECK_INT(mps_segment_reduce_mode("prod"), MPS_SEGMENT_PROD);
  CHECK_INT(mps_segment_reduce_mode("amax"), MPS_SEGMENT_MAX);
  CHECK_INT(mps_segment_reduce_mode("max"), MPS_SEGMENT_MAX);
  CHECK_INT(mps_segment_reduce_mode("amin"), MPS_SEGMENT_MIN);
  CHECK_INT(mps_segment_reduce_mode("min"), MPS_SEGMENT_MIN);
  CHECK_INT(mps_segment_reduce_mode("median"), -1);
}

int main(void) {
  RUN(a_thread_for_each_segment_and_block);
  RUN(rows_of_bounds_that_data_lacks_are_left_alone);
  RUN(what_a_segment_starts_with);
  RUN(words_for_reductions);
  return test_end();
}
