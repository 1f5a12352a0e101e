/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sparse: products of a sparse matrix, given by its rows, and a dense one.
 */
#include "openmps/ops/sparse.h"

#include "graph/formula.h"
#include "ops/index_encode.h"
#include "ops/reduce.h"
#include "ops/sparse_plan.h"

static const char label[] = "sparse_product";

static mps_status check(const mps_tensor *begins, const mps_tensor *columns, const mps_tensor *values, const mps_tensor *dense, int64_t reduction,
                        const mps_tensor *out, const mps_tensor *places) {
  mps_status status = mps_index_check(begins, label);
  if (status == MPS_STATUS_OK) status = mps_index_check(columns, label);
  if (status != MPS_STATUS_OK) return status;
  if (begins->rank != 1 || columns->rank != 1 || values->rank != 1 || dense->rank != 2 || out->rank != 2 || begins->sizes[0] != out->sizes[0] + 1 ||
      columns->sizes[0] != values->sizes[0] || out->sizes[1] != dense->sizes[1] || (places && !mps_operands_same_shape(places, out)))
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): the shapes of the arguments do not fit", label);
  if (values->dtype != dense->dtype || dense->dtype != out->dtype || (places && places->dtype != MPS_DTYPE_I64))
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): expected matrices of one dtype, and places of int64", label);
  if (reduction < MPS_SPARSE_SUM || reduction > MPS_SPARSE_PRODUCT)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): expected a reduction of 0 to 4, got %lld", label, (long long)reduction);
  if (reduction != MPS_SPARSE_SUM && reduction != MPS_SPARSE_PRODUCT && !mps_dtype_is_floating(out->dtype))
    return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "\"spmm_reduce_kernel\" not implemented for '%s'", mps_dtype_title(out->dtype));
  return MPS_STATUS_OK;
}

static mps_status encode(mps_stream *stream, const mps_sparse_plan *plan, const mps_tensor *const read[4], const mps_tensor *out,
                         const mps_tensor *places) {
  mps_pipeline *pipeline;
  mps_status status = mps_operand_pipeline(stream, plan->stem, plan->suffix, &pipeline);
  if (status != MPS_STATUS_OK) return status;
  mps_encoder encoder;
  mps_encoder_begin(&encoder, stream, label);
  mps_encoder_set_pipeline(&encoder, pipeline);
  for (uint32_t i = 0; i < 4; i++) mps_encoder_set_optional(&encoder, i, read[i], MPS_ACCESS_READ);
  mps_encoder_set_optional(&encoder, 4, out, MPS_ACCESS_WRITE);
  mps_encoder_set_optional(&encoder, 5, places, MPS_ACCESS_WRITE);
  mps_encoder_set_bytes(&encoder, 6, &plan->arguments, sizeof plan->arguments);
  mps_encoder_set_error_buffer(&encoder, 7);
  mps_encoder_set_cost(&encoder, plan->cost);
  return mps_encoder_dispatch(&encoder, plan->threads, NULL);
}

mps_status mps_op_sparse_product(mps_stream *stream, const mps_tensor *begins, const mps_tensor *columns, const mps_tensor *values,
                                 const mps_tensor *dense, int64_t reduction, const mps_tensor *out, const mps_tensor *places) {
  mps_status status = check(begins, columns, values, dense, reduction, out, places);
  if (status == MPS_STATUS_OK && !(mps_tensor_is_contiguous(out) && (!places || mps_tensor_is_contiguous(places))))
    status = mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s(): expected contiguous results", label);
  if (status != MPS_STATUS_OK || mps_tensor_element_count(out) == 0) return status;
  const mps_tensor *const given[4] = {begins, columns, values, dense};
  const mps_dtype dtypes[4] = {MPS_DTYPE_I64, MPS_DTYPE_I64, values->dtype, dense->dtype};
  mps_tensor made[4];
  mps_buffer *owned[4] = {NULL, NULL, NULL, NULL};
  for (uint32_t i = 0; i < 4 && status == MPS_STATUS_OK; i++)
    status = mps_operand_prepare(stream, given[i], dtypes[i], /*contiguous=*/i < 3, &made[i], &owned[i]);
  if (status == MPS_STATUS_OK) {
    mps_sparse_plan plan;
    mps_sparse_plan_product(&plan, &made[1], &made[3], reduction, places != NULL, out);
    status = encode(stream, &plan, (const mps_tensor *const[]){&made[0], &made[1], &made[2], &made[3]}, out, places);
  }
  for (uint32_t i = 0; i < 4; i++) mps_buffer_release(owned[i]);
  return status;
}
