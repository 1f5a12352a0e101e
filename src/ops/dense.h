/* SPDX-License-Identifier: BSD-3-Clause
 *
 * dense: what the dense operators share: the choice between provider and kernels, dtype checks, operands that overlap the output.
 */
#ifndef OPENMPS_OPS_DENSE_H
#define OPENMPS_OPS_DENSE_H

#include "openmps/dense.h"
#include "openmps/library.h"
#include "openmps/tensor.h"

/* The device's provider if it takes such calls, else NULL: use a kernel. */
const mps_dense_provider *mps_dense_choose(mps_stream *stream, mps_dense_kind kind, mps_dtype dtype);

/* Whether a thread that waits may make such a call of the provider itself. */
bool mps_dense_is_anywhere(const mps_dense_provider *provider, mps_dense_kind kind, mps_dtype dtype);

/* The suffix of the kernels of a dtype: signed integers share the unsigned ones'. */
const char *mps_dense_suffix(mps_dtype dtype);
/* A built-in pipeline by name, "<stem>_<suffix>". */
MPS_WARN_UNUSED mps_status mps_dense_pipeline(mps_stream *stream, const char *stem, mps_dtype dtype, mps_pipeline **out_pipeline);

/* The name that PyTorch's texts use for a dtype in C++ ("float", "c10::Half", ...); mps_dtype_title gives the ScalarType's. */
const char *mps_dense_type_name(mps_dtype dtype);

/* A copy of the bytes [begin, end) of `source`, for this stream. The caller releases it, at the latest when the call ends. */
MPS_WARN_UNUSED mps_status mps_dense_copy_range(mps_stream *stream, mps_buffer *source, uint64_t begin, uint64_t end, mps_buffer **out_buffer);
/* A buffer that holds one element. */
MPS_WARN_UNUSED mps_status mps_dense_constant(mps_stream *stream, mps_scalar value, mps_dtype dtype, mps_buffer **out_buffer);

#endif
