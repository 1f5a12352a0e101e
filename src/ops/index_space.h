/* SPDX-License-Identifier: BSD-3-Clause
 *
 * index_space: the iteration spaces of the indexing operators, from their tensors, and which kernel a write takes. Pure.
 */
#ifndef OPENMPS_OPS_INDEX_SPACE_H
#define OPENMPS_OPS_INDEX_SPACE_H

#include "ops/index_plan.h"

typedef enum mps_index_reduction { MPS_INDEX_ASSIGN, MPS_INDEX_ADD, MPS_INDEX_MULTIPLY, MPS_INDEX_LARGEST, MPS_INDEX_SMALLEST } mps_index_reduction;

/* A vector of indices (or one, 0-d) along `dimension` of data, for everything across: index_select, index_add and so on. data has rank 1 or
 * more, and `values` its rank, unless they are a constant. */
void mps_index_space_vector(mps_index_space *space, const mps_tensor *data, uint32_t dimension, const mps_tensor *index, const mps_tensor *values);
/* An index for each point: gather, scatter. The space is the index tensor's, which may be 0-d where data has one element a row. */
void mps_index_space_points(mps_index_space *space, const mps_tensor *data, uint32_t dimension, const mps_tensor *index, const mps_tensor *values);
/* index and index_put: data and values are laid out over one shape, data with stride 0 where an index decides. The index part stays open. */
void mps_index_space_over(mps_index_space *space, const mps_tensor *data, const mps_tensor *values);
/* Rows of values (count x width, row-major; value_step 0: one constant) that a contiguous index vector sends to rows of `data`, or to
 * elements of it when its rank is 1. */
void mps_index_space_rows(mps_index_space *space, int64_t count, int64_t width, const mps_tensor *data, int64_t value_step, int64_t skipped);
/* `space` with the counts of writes in place of the data they go to: `counts` is contiguous, and what is added to it a constant. */
mps_index_space mps_index_space_counts(const mps_index_space *space, const mps_tensor *counts);
/* The sizes of the offsets that several index tensors over one shape add up to: they start as 1, and each tensor widens those in which it
 * varies. */
void mps_index_offset_widen(const mps_tensor *index, int64_t *sizes);
/* Adds what index tensor `number` contributes to `offsets`: it picks along a dimension of `size` elements, `step` elements apart. */
void mps_index_space_offsets(mps_index_space *space, const mps_tensor *offsets, const mps_tensor *index, uint32_t number, int64_t size, int64_t step);

/* What a reduction starts from where self is left out: its identity. */
mps_scalar mps_index_identity(mps_index_reduction reduction, mps_dtype dtype);
/* What parts of a reduction start from, so that joining one with nothing in it changes no bit; false where there is no such value. */
bool mps_index_neutral(mps_index_reduction reduction, mps_dtype dtype, mps_scalar *out_value);
/* "<stem>_<suffix>" is the kernel that writes; assigning goes by size alone. */
void mps_index_write_kernel(mps_index_reduction reduction, mps_dtype dtype, const char **out_stem, const char **out_suffix);
/* The kernel that joins parts, of a reduction that has a neutral value. */
void mps_index_join_kernel(mps_index_reduction reduction, mps_dtype dtype, const char **out_stem, const char **out_suffix);

#endif
