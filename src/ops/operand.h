/* SPDX-License-Identifier: BSD-3-Clause
 *
 * operand: small questions that every family asks of tensors (do they overlap, are they the same) and the temporaries it makes.
 */
#ifndef OPENMPS_OPS_OPERAND_H
#define OPENMPS_OPS_OPERAND_H

#include "openmps/library.h"
#include "openmps/tensor.h"

/* The bytes [*begin, *end) of a buffer that elements laid out so may touch; sizes 0 give an empty range. */
void mps_operand_byte_range(uint64_t offset, mps_dtype dtype, uint32_t rank, const int64_t *sizes, const int64_t *strides, uint64_t *begin,
                            uint64_t *end);
/* The bytes [*begin, *end) of its buffer that a tensor may touch; begin == end when it is empty or a constant. */
void mps_operand_range(const mps_tensor *tensor, uint64_t *begin, uint64_t *end);
/* True when the byte ranges of two tensors of one buffer meet. */
bool mps_operands_overlap(const mps_tensor *a, const mps_tensor *b);
/* True when both name the same elements in the same order with the same dtype and flags. */
bool mps_operands_equal(const mps_tensor *a, const mps_tensor *b);
bool mps_operands_same_shape(const mps_tensor *a, const mps_tensor *b);

/* A new contiguous tensor in memory of its own. The caller releases its buffer, right after what uses it is encoded. */
MPS_WARN_UNUSED mps_status mps_operand_create(mps_stream *stream, mps_dtype dtype, uint32_t rank, const int64_t *sizes, mps_tensor *out_tensor);
/* A contiguous copy in `dtype`, conjugate and negative bits resolved. The caller releases its buffer. */
MPS_WARN_UNUSED mps_status mps_operand_copy(mps_stream *stream, const mps_tensor *source, mps_dtype dtype, mps_tensor *out_tensor);
/* `tensor` itself if it has the dtype, no flags and (when asked for) is contiguous; else a copy. The caller releases *out_owned (may be NULL). */
MPS_WARN_UNUSED mps_status mps_operand_prepare(mps_stream *stream, const mps_tensor *tensor, mps_dtype dtype, bool contiguous, mps_tensor *out_tensor,
                                               mps_buffer **out_owned);

/* ---- operands of one call, and what had to be made for them: freed together ---- */
#define MPS_OPERAND_LIST_CAPACITY 16
typedef struct mps_operand_list {
  mps_stream *stream;
  mps_status status; /* the first failure: nothing is made after it. Tensors that were not made have their shape and no memory */
  mps_buffer *owned[MPS_OPERAND_LIST_CAPACITY];
  uint32_t count;
} mps_operand_list;

/* As mps_operand_prepare and mps_operand_create; the list owns what is made. */
mps_tensor mps_operands_prepare(mps_operand_list *list, const mps_tensor *tensor, mps_dtype dtype, bool contiguous);
mps_tensor mps_operands_create(mps_operand_list *list, mps_dtype dtype, uint32_t rank, const int64_t *sizes);
void mps_operands_keep(mps_operand_list *list, mps_buffer *buffer); /* accepts NULL */
/* Releases all, once everything that uses it is encoded. Returns the list's status. */
mps_status mps_operands_finish(mps_operand_list *list);

/* A tensor of `shape`'s sizes without memory: every element is `value`, converted to `dtype`. */
mps_tensor mps_operand_constant(const mps_tensor *shape, mps_dtype dtype, mps_scalar value);
/* Every element of `tensor` becomes `value`. NULL, an output that nobody wants, is left alone. */
MPS_WARN_UNUSED mps_status mps_operand_fill(mps_stream *stream, const mps_tensor *tensor, mps_scalar value);

/* A shipped kernel by name: "<stem>_<suffix>", or the stem alone when suffix is NULL. */
MPS_WARN_UNUSED mps_status mps_operand_pipeline(mps_stream *stream, const char *stem, const char *suffix, mps_pipeline **out_pipeline);
/* "u8", "u16", "u32" or "u64": the unsigned type of the dtype's size, for kernels that only move elements. NULL for no dtype. */
const char *mps_operand_bytes_suffix(mps_dtype dtype);
/* The dtype that sums into a tensor of `dtype` are kept in: float for half and bfloat, complex of floats for complex of halves. */
mps_dtype mps_operand_sum_dtype(mps_dtype dtype);
/* A dimension in [-rank, rank) as one in [0, rank); a 0-d tensor counts as rank 1. INVALID_ARGUMENT with PyTorch's text otherwise. */
MPS_WARN_UNUSED mps_status mps_operand_dimension(int64_t dimension, uint32_t rank, uint32_t *out_dimension);
/* The tensor as one of rank 1 if it is 0-d, else as it is. */
mps_tensor mps_operand_at_least_1d(const mps_tensor *tensor);

#endif
