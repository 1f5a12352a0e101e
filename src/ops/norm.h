/* SPDX-License-Identifier: BSD-3-Clause
 *
 * norm: what the normalisations share: launching small kernels, float vectors, layouts of tensors with channels.
 */
#ifndef OPENMPS_OPS_NORM_H
#define OPENMPS_OPS_NORM_H

#include "kernels/norm_arguments.h"
#include "ops/reduce.h"

/* ---- one launch ---- */
/* By [[buffer(n)]]; all zero: the kernel will not look at it. */
typedef struct mps_norm_argument {
  mps_buffer *buffer;
  uint64_t offset;
  const void *bytes;
  uint32_t length;
  mps_access access;
} mps_norm_argument;

static inline mps_norm_argument mps_norm_read(const mps_tensor *tensor) {
  return tensor ? (mps_norm_argument){.buffer = tensor->buffer, .offset = tensor->offset, .access = MPS_ACCESS_READ} : (mps_norm_argument){0};
}
static inline mps_norm_argument mps_norm_write(const mps_tensor *tensor) {
  return tensor ? (mps_norm_argument){.buffer = tensor->buffer, .offset = tensor->offset, .access = MPS_ACCESS_READ_WRITE} : (mps_norm_argument){0};
}
static inline mps_norm_argument mps_norm_bytes(const void *bytes, size_t length) {
  return (mps_norm_argument){.bytes = bytes, .length = (uint32_t)length};
}

/* Kernel "<kernel>_<suffix>" (suffix NULL: the kernel alone) over a grid of x by y threads; `cost` in nanoseconds. */
MPS_WARN_UNUSED mps_status mps_norm_launch(mps_stream *stream, const char *label, const char *kernel, const char *suffix,
                                           const mps_norm_argument *arguments, uint32_t count, int64_t x, int64_t y, double cost);

/* ---- operands, in the caller's list ---- */
/* A float vector of `count` elements. */
MPS_WARN_UNUSED mps_status mps_norm_vector(mps_operand_list *temporaries, int64_t count, mps_tensor *out);
/* `tensor` (may be NULL: then *out_pointer is NULL) as contiguous `dtype` in `storage`. */
MPS_WARN_UNUSED mps_status mps_norm_prepare(mps_operand_list *temporaries, const mps_tensor *tensor, mps_dtype dtype, mps_tensor *storage,
                                            const mps_tensor **out_pointer);

/* ---- tensors [N, C, ...] ---- */
typedef enum mps_norm_layout {
  MPS_NORM_STRIDED, /* neither */
  MPS_NORM_INNER,   /* contiguous: runs of one channel */
  MPS_NORM_OUTER,   /* channels are neighbours: [N, C], channels_last */
} mps_norm_layout;

mps_norm_layout mps_norm_layout_of(const mps_tensor *tensor);
/* `tensor` in `dtype`, in one of the two layouts; in that of `like` when it is given. */
MPS_WARN_UNUSED mps_status mps_norm_prepare_layout(mps_operand_list *temporaries, const mps_tensor *tensor, mps_dtype dtype, const mps_tensor *like,
                                                   mps_tensor *out);
/* As mps_result_begin, for an output in the layout of `like`. */
MPS_WARN_UNUSED mps_status mps_norm_result(mps_stream *stream, const mps_tensor *out, const mps_tensor *like, mps_result *result);
/* The runs of a tensor in layout inner or outer, and the pieces that threads take. */
mps_norm_runs mps_norm_runs_of(const mps_tensor *tensor, int64_t statistics, mps_norm_layout layout);

/* y = (x - mean) * scale + shift with coefficients [3][statistics]. */
MPS_WARN_UNUSED mps_status mps_norm_apply(mps_stream *stream, const char *label, const mps_tensor *input, const mps_tensor *coefficients,
                                          const mps_norm_runs *runs, mps_norm_layout layout, const mps_tensor *out);
/* dx = grad * scale + (x - mean) * slope + shift with coefficients [4][statistics]. */
MPS_WARN_UNUSED mps_status mps_norm_gradient(mps_stream *stream, const char *label, const mps_tensor *grad, const mps_tensor *input,
                                             const mps_tensor *coefficients, const mps_norm_runs *runs, mps_norm_layout layout, const mps_tensor *out);
/* sums [2][statistics]: of grad, and of grad * (x - mean). */
MPS_WARN_UNUSED mps_status mps_norm_pair(mps_stream *stream, const char *label, const mps_tensor *grad, const mps_tensor *input,
                                         const mps_tensor *means, const mps_norm_runs *runs, mps_norm_layout layout, const mps_tensor *sums);

#endif
