/* SPDX-License-Identifier: BSD-3-Clause
 *
 * embedding_bag_plan: from the shapes of bags of embeddings to kernel arguments and threads. Pure.
 */
#ifndef OPENMPS_OPS_EMBEDDING_BAG_PLAN_H
#define OPENMPS_OPS_EMBEDDING_BAG_PLAN_H

#include "kernels/embedding_bag_arguments.h"
#include "openmps/tensor.h"

typedef struct mps_embedding_bag_plan {
  mps_embedding_bag_arguments arguments;
  uint64_t threads[3];
  double cost; /* nanoseconds */
} mps_embedding_bag_plan;

/* `indices` are contiguous, `out` (bags x width) too. `mode` is valid. */
void mps_embedding_bag_plan_forward(mps_embedding_bag_plan *plan, const mps_tensor *weight, const mps_tensor *indices, int64_t mode,
                                    const mps_tensor *out);
/* grad: bags x width; out: rows x width. At most `cores` slices of the rows. */
void mps_embedding_bag_plan_gradient(mps_embedding_bag_plan *plan, const mps_tensor *grad, const mps_tensor *indices, int64_t mode, uint32_t cores,
                                     const mps_tensor *out);
/* From the offsets alone to the bag of each index. */
void mps_embedding_bag_plan_bag_of(mps_embedding_bag_plan *plan, const mps_tensor *offsets, const mps_tensor *offset2bag);
void mps_embedding_bag_plan_scale_gradient(mps_embedding_bag_plan *plan, const mps_tensor *grad, const mps_tensor *weight, const mps_tensor *indices);

#endif
