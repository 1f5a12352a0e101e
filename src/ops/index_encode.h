/* SPDX-License-Identifier: BSD-3-Clause
 *
 * index_encode: runs indexing plans: picks the kernel, brings indices to int64, and keeps half sums in float.
 */
#ifndef OPENMPS_OPS_INDEX_ENCODE_H
#define OPENMPS_OPS_INDEX_ENCODE_H

#include "openmps/stream.h"
#include "ops/index_space.h"

/* values = data[index]. `index` is an int64 tensor without flags; so are the next ones. */
MPS_WARN_UNUSED mps_status mps_index_read(mps_stream *stream, const char *label, const mps_index_space *space, const mps_tensor *data,
                                          const mps_tensor *index, const mps_tensor *values);
/* data[index] = reduction(data[index], values); `values` has data's dtype or is a constant. Half and bfloat data must be assigned only, or be
 * given as a float tensor (mps_index_accumulator). */
MPS_WARN_UNUSED mps_status mps_index_write(mps_stream *stream, const char *label, mps_index_reduction reduction, const mps_index_space *space,
                                           const mps_tensor *data, const mps_tensor *index, const mps_tensor *values);

/* Where sums into `data` are kept: `data` itself, or, for half and bfloat, a float copy that the caller copies back and releases (*out_owned). */
MPS_WARN_UNUSED mps_status mps_index_accumulator(mps_stream *stream, const mps_tensor *data, mps_index_reduction reduction, mps_tensor *out_tensor,
                                                 mps_buffer **out_owned);
/* INVALID_ARGUMENT unless the tensor holds indices (int64 or int32). */
MPS_WARN_UNUSED mps_status mps_index_check(const mps_tensor *index, const char *label);

#endif
