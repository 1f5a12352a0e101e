/* SPDX-License-Identifier: BSD-3-Clause
 *
 * embedding: what the gradients of an embedding and of bags of embeddings share.
 */
#ifndef OPENMPS_OPS_EMBEDDING_H
#define OPENMPS_OPS_EMBEDDING_H

#include "openmps/stream.h"
#include "openmps/tensor.h"

/* Each row of `sums` (a float matrix) is divided by how often its number occurs in `indices` (int64, rank 1); `skipped` does not count. */
MPS_WARN_UNUSED mps_status mps_embedding_scale_by_frequency(mps_stream *stream, const mps_tensor *indices, int64_t skipped, const mps_tensor *sums);

#endif
