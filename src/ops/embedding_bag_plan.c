/* SPDX-License-Identifier: BSD-3-Clause
 *
 * embedding_bag_plan: from the shapes of bags of embeddings to kernel arguments and threads. Pure.
 */
#include "ops/embedding_bag_plan.h"

#include <string.h>

enum {
  GRADIENT_BLOCK = 256, /* elements of a row that one thread takes */
  MANY_BAGS = 1024,
  SHORT_BAG = 8,        /* indices */
  TOGETHER_INDICES = 16,
  FEW_BAGS = 16,        /* threads share the rows of so few bags */
  MOST_SLICES = 8       /* each slice reads all indices */
};
/* Nanoseconds on one core, estimates. */
#define ELEMENT_COST 0.15
#define INDEX_COST 5.0

static int64_t blocks(int64_t count, int64_t block) { return (count + block - 1) / block; }

static void begin(mps_embedding_bag_plan *plan, const mps_tensor *indices, int64_t width, int64_t mode) {
  memset(plan, 0, sizeof *plan);
  plan->arguments.count = indices->sizes[0];
  plan->arguments.width = width;
  plan->arguments.mode = (uint32_t)mode;
  plan->arguments.padding = -1;
  plan->threads[0] = plan->threads[1] = plan->threads[2] = 1;
  plan->cost = (double)indices->sizes[0] * (INDEX_COST + ELEMENT_COST * (double)width);
}

void mps_embedding_bag_plan_forward(mps_embedding_bag_plan *plan, const mps_tensor *weight, const mps_tensor *indices, int64_t mode,
                                    const mps_tensor *out) {
  begin(plan, indices, weight->sizes[1], mode);
  mps_embedding_bag_arguments *a = &plan->arguments;
  a->bags = out->sizes[0];
  a->rows = weight->sizes[0];
  a->row_stride = weight->strides[0];
  a->column_stride = weight->strides[1];
  /* Short bags of short rows, where they are many: as many as have about TOGETHER_INDICES. */
  const int64_t of_a_bag = a->bags ? blocks(a->count, a->bags) : 0;
  a->together = 1;
  if (a->bags >= MANY_BAGS && a->rows && a->width && a->width <= MPS_EMBEDDING_BAG_BLOCK && of_a_bag <= SHORT_BAG)
    a->together = (uint32_t)(of_a_bag ? TOGETHER_INDICES / of_a_bag : TOGETHER_INDICES);
  plan->threads[0] = (uint64_t)blocks(a->bags, a->together);
  /* A row is read best in one go. */
  const int64_t in_width = blocks(a->width, MPS_EMBEDDING_BAG_BLOCK), parts = a->bags < FEW_BAGS ? blocks(FEW_BAGS, a->bags) : 1;
  a->block = (uint32_t)(blocks(in_width, parts) * MPS_EMBEDDING_BAG_BLOCK);
  /* Without elements there are still bags to count. */
  plan->threads[1] = a->width ? (uint64_t)blocks(a->width, a->block) : 1;
  plan->cost += (double)mps_tensor_element_count(out) * ELEMENT_COST;
}

void mps_embedding_bag_plan_gradient(mps_embedding_bag_plan *plan, const mps_tensor *grad, const mps_tensor *indices, int64_t mode, uint32_t cores,
                                     const mps_tensor *out) {
  begin(plan, indices, grad->sizes[1], mode);
  mps_embedding_bag_arguments *a = &plan->arguments;
  a->bags = grad->sizes[0];
  a->rows = out->sizes[0];
  a->slices = cores < 1 ? 1 : cores > MOST_SLICES ? MOST_SLICES : cores;
  if (a->slices > a->rows) a->slices = a->rows ? (uint32_t)a->rows : 1;
  a->block = GRADIENT_BLOCK;
  plan->threads[0] = a->slices;
  plan->threads[1] = (uint64_t)blocks(a->width, a->block);
}

void mps_embedding_bag_plan_scale_gradient(mps_embedding_bag_plan *plan, const mps_tensor *grad, const mps_tensor *weight, const mps_tensor *indices) {
  begin(plan, indices, grad->sizes[1], MPS_EMBEDDING_BAG_SUM);
  mps_embedding_bag_arguments *a = &plan->arguments;
  a->bags = grad->sizes[0];
  a->rows = weight->sizes[0];
  a->row_stride = weight->strides[0];
  a->column_stride = weight->strides[1];
  plan->threads[0] = (uint64_t)a->count;
}

void mps_embedding_bag_plan_bag_of(mps_embedding_bag_plan *plan, const mps_tensor *offsets, const mps_tensor *offset2bag) {
  begin(plan, offset2bag, 1, MPS_EMBEDDING_BAG_SUM);
  plan->arguments.bags = offsets->sizes[0];
  plan->threads[0] = (uint64_t)offsets->sizes[0];
  plan->cost = (double)offset2bag->sizes[0] * ELEMENT_COST + (double)offsets->sizes[0] * INDEX_COST;
}
