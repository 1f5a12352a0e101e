/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reduce: running a reduction kernel, for the operators of this family and for norms and losses that reduce.
 */
#ifndef OPENMPS_OPS_REDUCE_H
#define OPENMPS_OPS_REDUCE_H

#include "openmps/library.h"
#include "ops/operand.h"
#include "ops/reduce_plan.h"

/* Which kernels: reduce_<kernel>_{inner,outer}_<suffix>, then reduce_<kernel>_finish_<finish>. */
typedef struct mps_reduction {
  const char *label;
  const char *kernel;
  const char *suffix;
  const char *finish;       /* NULL: as suffix. Another one changes the dtype of the result */
  size_t accumulator_bytes; /* of a partial result */
  bool ordered;             /* places are counted */
  bool always_raw;          /* the first pass has no finish of its own */
  uint32_t mode, root;
  float divisor, power, correction; /* divisor 0 means 1 */
} mps_reduction;

/* `input` has the kernels' dtype and no flags; `out` and `second` (may be NULL) have the result's dtypes and do not overlap it. */
MPS_WARN_UNUSED mps_status mps_reduce_encode(mps_stream *stream, const mps_reduction *reduction, const mps_tensor *input, uint32_t mask,
                                             const mps_tensor *out, const mps_tensor *second);
/* The first pass alone: partial results [chunk][output] into a new buffer that the caller releases. No output may be empty. */
MPS_WARN_UNUSED mps_status mps_reduce_encode_partials(mps_stream *stream, const mps_reduction *reduction, const mps_tensor *input,
                                                      mps_reduce_plan *plan, mps_buffer **out_partials);
/* The finishing pass of partial sums that another kernel wrote as [chunk_count][elements of out]: reduce_sum_finish_<dtype of out>. */
MPS_WARN_UNUSED mps_status mps_reduce_finish_sums(mps_stream *stream, const char *label, mps_buffer *partials, int64_t chunk_count, float divisor,
                                                  const mps_tensor *out);

/* An output as kernels want it: `tensor` is `out` itself, or a temporary when dtype, flags or an overlap with `input` (may be NULL) forbid it. */
typedef struct mps_result {
  mps_tensor tensor;
  const mps_tensor *out; /* NULL when nothing is to be copied */
} mps_result;
MPS_WARN_UNUSED mps_status mps_result_begin(mps_stream *stream, const mps_tensor *out, mps_dtype dtype, const mps_tensor *input, bool contiguous,
                                            mps_result *result);
/* Copies a temporary to its place if `status` is OK, frees it, and returns the first failure. */
MPS_WARN_UNUSED mps_status mps_result_end(mps_stream *stream, mps_result *result, mps_status status);

/* Binds the elements of a tensor. */
void mps_encoder_set_tensor(mps_encoder *encoder, uint32_t index, const mps_tensor *tensor, mps_access access);

/* Binds a word of zeros: an argument that the kernel will not look at, but that must be there. */
void mps_encoder_set_unused(mps_encoder *encoder, uint32_t index);
/* The elements of a tensor, or, for NULL and a tensor without memory (an empty one may have none), an unused argument. */
void mps_encoder_set_optional(mps_encoder *encoder, uint32_t index, const mps_tensor *tensor, mps_access access);

/* A reduction with casts: input to `compute`, result `natural` to out's dtype. */
MPS_WARN_UNUSED mps_status mps_reduce_run(mps_stream *stream, const mps_reduction *reduction, const mps_tensor *self, mps_dtype compute, uint32_t mask,
                                          mps_dtype natural, const mps_tensor *out);

#endif
