/* SPDX-License-Identifier: BSD-3-Clause
 *
 * renorm: slices along a dimension, scaled down to a largest norm. Norms are taken in float; the factor is rounded to self's dtype.
 */
#include "graph/program_builder.h"
#include "openmps/ops/pointwise.h"
#include "openmps/ops/reduce.h"
#include "openmps/ops/renorm.h"
#include "ops/operand.h"

static mps_dtype real_dtype(mps_dtype dtype) { return mps_dtype_is_complex(dtype) ? MPS_DTYPE_F32 : dtype; }

/* factors = norms > maxnorm ? maxnorm / (norms + 1e-7) : 1 */
static mps_status encode_factors(mps_stream *stream, const mps_tensor *norms, mps_scalar maxnorm, const mps_tensor *factors) {
  const mps_scalar largest = mps_scalar_float(mps_scalar_to_double(maxnorm)), alpha = mps_scalar_int(1);
  mps_program_builder b;
  mps_program_begin(&b, "renorm", norms->rank, norms->sizes);
  const mps_program_value norm = mps_program_read(&b, norms), limit = mps_program_number(&b, largest);
  const mps_program_value above = mps_program_apply(&b, MPS_FORMULA_GT, (mps_program_value[]){norm, limit}, NULL);
  const mps_program_value divisor =
      mps_program_apply(&b, MPS_FORMULA_ADD, (mps_program_value[]){norm, mps_program_number(&b, mps_scalar_float(1e-7))}, &alpha);
  const mps_program_value scale = mps_program_apply(&b, MPS_FORMULA_DIV, (mps_program_value[]){limit, divisor}, NULL);
  const mps_program_value factor =
      mps_program_apply(&b, MPS_FORMULA_WHERE, (mps_program_value[]){above, scale, mps_program_number(&b, mps_scalar_float(1.0))}, NULL);
  mps_program_write(&b, factor, factors);
  return mps_program_encode(&b, stream);
}

mps_status mps_op_renorm(mps_stream *stream, const mps_tensor *self, mps_scalar p, int64_t dim, mps_scalar maxnorm, const mps_tensor *out) {
  uint32_t dimension;
  mps_status status = mps_operand_dimension(dim, self->rank, &dimension);
  if (status != MPS_STATUS_OK) return status;
  if (self->rank < 2 || !mps_operands_same_shape(self, out))
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "renorm: expected an input of at least 2 dimensions and a result of its shape");
  if (mps_tensor_element_count(out) == 0) return MPS_STATUS_OK;
  int64_t sizes[MPS_MAX_RANK], others[MPS_MAX_RANK];
  uint32_t count = 0;
  for (uint32_t d = 0; d < self->rank; d++) {
    sizes[d] = d == dimension ? self->sizes[d] : 1;
    if (d != dimension) others[count++] = d;
  }
  const mps_dtype single = MPS_DTYPE_F32;
  mps_tensor norms, factors;
  status = mps_operand_create(stream, single, self->rank, sizes, &norms);
  if (status != MPS_STATUS_OK) return status;
  status = mps_operand_create(stream, real_dtype(self->dtype), self->rank, sizes, &factors);
  if (status == MPS_STATUS_OK) {
    status = mps_op_linalg_vector_norm(stream, self, p, others, count, true, mps_dtype_is_complex(self->dtype) ? NULL : &single, &norms);
    if (status == MPS_STATUS_OK) status = encode_factors(stream, &norms, maxnorm, &factors);
    if (status == MPS_STATUS_OK) status = mps_op_mul(stream, self, &factors, out);
    mps_buffer_release(factors.buffer);
  }
  mps_buffer_release(norms.buffer);
  return status;
}
