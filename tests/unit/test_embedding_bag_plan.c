/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_embedding_bag_plan: threads, strides and slices of bags of embeddings, worked out by hand.
 */
#include "ops/embedding_bag_plan.h"
#include "tensors.h"
#include "test.h"

static void a_thread_for_each_bag_and_block(void) {
  mps_embedding_bag_plan p;
  mps_tensor weight = TENSOR(F32, 100, 130), indices = TENSOR(I64, 40), out = TENSOR(F32, 7, 130);
  mps_embedding_bag_plan_forward(&p, &weight, &indices, MPS_EMBEDDING_BAG_MEAN, &out);
  CHECK_INT(p.threads[0], 7);
  CHECK_INT(p.threads[1], 3); /* 64 + 64 + 2 */
  CHECK_INT(p.arguments.count, 40);
  CHECK_INT(p.arguments.rows, 100);
  CHECK_INT(p.arguments.row_stride, 130);
  CHECK_INT(p.arguments.column_stride, 1);
  CHECK_INT(p.arguments.mode, MPS_EMBEDDING_BAG_MEAN);
  CHECK_INT(p.arguments.padding, -1);
}

static void a_thread_reads_whole_rows_of_many_bags(void) {
  mps_embedding_bag_plan p;
  mps_tensor weight = TENSOR(F32, 100, 300), indices = TENSOR(I64, 40), out = TENSOR(F32, 20, 300), few = TENSOR(F32, 8, 300);
  mps_embedding_bag_plan_forward(&p, &weight, &indices, MPS_EMBEDDING_BAG_SUM, &out);
  CHECK_INT(p.threads[1], 1);
  CHECK_INT(p.arguments.block, 320);
  mps_embedding_bag_plan_forward(&p, &weight, &indices, MPS_EMBEDDING_BAG_SUM, &few);
  CHECK_INT(p.threads[1], 2); /* 192 + 108 */
  CHECK_INT(p.arguments.block, 192);
}

static void a_thread_takes_several_short_bags(void) {
  mps_embedding_bag_plan p;
  mps_tensor weight = TENSOR(F32, 100, 16), indices = TENSOR(I64, 4000), out = TENSOR(F32, 2001, 16), wide = TENSOR(F32, 100, 65);
  mps_embedding_bag_plan_forward(&p, &weight, &indices, MPS_EMBEDDING_BAG_SUM, &out);
  CHECK_INT(p.arguments.together, 8); /* of two indices, about */
  CHECK_INT(p.threads[0], 251);
  mps_embedding_bag_plan_forward(&p, &wide, &indices, MPS_EMBEDDING_BAG_SUM, &out);
  CHECK_INT(p.arguments.together, 1);
  CHECK_INT(p.threads[0], 2001);
}

static void bags_without_elements_are_counted(void) {
  mps_embedding_bag_plan p;
  mps_tensor weight = TENSOR(F16, 100, 0), indices = TENSOR(I64, 40), out = TENSOR(F16, 7, 0);
  mps_embedding_bag_plan_forward(&p, &weight, &indices, MPS_EMBEDDING_BAG_MEAN, &out);
  CHECK_INT(p.threads[0], 7);
  CHECK_INT(p.threads[1], 1);
}

static void slices_of_the_gradient(void) {
  mps_embedding_bag_plan p;
  mps_tensor grad = TENSOR(F32, 7, 300), indices = TENSOR(I64, 40), out = TENSOR(F32, 100, 300), few = TENSOR(F32, 3, 300);
  mps_embedding_bag_plan_gradient(&p, &grad, &indices, MPS_EMBEDDING_BAG_SUM, 6, &out);
  CHECK_INT(p.threads[0], 6);
  CHECK_INT(p.threads[1], 2);
  CHECK_INT(p.arguments.slices, 6);
  CHECK_INT(p.arguments.bags, 7);
  mps_embedding_bag_plan_gradient(&p, &grad, &indices, MPS_EMBEDDING_BAG_SUM, 64, &out);
  CHECK_INT(p.arguments.slices, 8);
  mps_embedding_bag_plan_gradient(&p, &grad, &indices, MPS_EMBEDDING_BAG_SUM, 64, &few);
  CHECK_INT(p.arguments.slices, 3); /* no more than rows */
}

static void a_thread_for_each_scale_and_offset(void) {
  mps_embedding_bag_plan p;
  mps_tensor grad = TENSOR(F32, 7, 300), weight = TENSOR(F32, 100, 300), indices = TENSOR(I64, 40), offsets = TENSOR(I64, 8);
  mps_embedding_bag_plan_scale_gradient(&p, &grad, &weight, &indices);
  CHECK_INT(p.threads[0], 40);
  CHECK_INT(p.arguments.width, 300);
  mps_embedding_bag_plan_bag_of(&p, &offsets, &indices);
  CHECK_INT(p.threads[0], 8);
  CHECK_INT(p.arguments.count, 40);
  CHECK_INT(p.arguments.bags, 8);
}

int main(void) {
  RUN(a_thread_for_each_bag_and_block);
  RUN(a_thread_reads_whole_rows_of_many_bags);
  RUN(a_thread_takes_several_short_bags);
  RUN(bags_without_elements_are_counted);
  RUN(slices_of_the_gradient);
  RUN(a_thread_for_each_scale_and_offset);
  return test_end();
}
