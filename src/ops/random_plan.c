/* SPDX-License-Identifier: BSD-3-Clause
 *
 * random_plan: from a distribution and a result to the kernel, its arguments and how many Philox blocks it takes. Pure.
 */
#include "ops/random_plan.h"

#include <string.h>

void mps_random_plan_make(mps_random_plan *plan, const mps_random_call *call, const mps_tensor *out) {
  memset(plan, 0, sizeof *plan);
  const int64_t count = mps_tensor_element_count(out);
  plan->stem = call->stem;
  plan->suffix = call->serial ? NULL : mps_dtype_name(call->makes);
  plan->arguments = call->arguments;
  plan->arguments.count = count;
  plan->blocks = (uint64_t)((count + call->per_block - 1) / call->per_block);
  plan->threads = call->serial && count ? 1 : plan->blocks;
  plan->direct = out->dtype == call->makes && !out->flags && mps_tensor_is_contiguous(out);
  plan->cost = (call->serial ? 10.0 : 3.0) * (double)count;
}

mps_tensor mps_random_parts(const mps_tensor *complex) {
  mps_tensor parts = *complex;
  parts.dtype = complex->dtype == MPS_DTYPE_C64 ? MPS_DTYPE_F32 : MPS_DTYPE_F16;
  for (uint32_t d = 0; d < parts.rank; d++) parts.strides[d] *= 2;
  parts.sizes[parts.rank] = 2;
  parts.strides[parts.rank] = 1;
  parts.rank++;
  return parts;
}

uint64_t mps_random_largest(mps_dtype dtype) {
  switch (dtype) {
    case MPS_DTYPE_BOOL: return 1;
    case MPS_DTYPE_U8: return UINT8_MAX;
    case MPS_DTYPE_I8: return INT8_MAX;
    case MPS_DTYPE_U16: return UINT16_MAX;
    case MPS_DTYPE_I16: return INT16_MAX;
    case MPS_DTYPE_U32: return UINT32_MAX;
    case MPS_DTYPE_I32: return INT32_MAX;
    case MPS_DTYPE_U64: return UINT64_MAX;
    case MPS_DTYPE_F16: return (uint64_t)1 << 11;
    case MPS_DTYPE_BF16: return (uint64_t)1 << 8;
    case MPS_DTYPE_F32: return (uint64_t)1 << 24;
    default: return INT64_MAX;
  }
}

mps_status mps_random_range(int64_t from, const int64_t *to, mps_dtype dtype, int64_t *out_base, uint64_t *out_range) {
  const uint64_t largest = mps_random_largest(dtype);
  *out_base = from;
  if (to) {
    if (from >= *to)
      return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "random_ expects 'from' to be less than 'to', but got from=%lld >= to=%lld", (long long)from, (long long)*to);
    if (!mps_dtype_is_floating(dtype) && *to - 1 > 0 && (uint64_t)(*to - 1) > largest)
      return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "to - 1 is out of bounds for %s", mps_dtype_name(dtype));
    if (!mps_dtype_is_floating(dtype) && from > 0 && (uint64_t)from > largest)
      return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "from is out of bounds for %s", mps_dtype_name(dtype));
    *out_range = (uint64_t)*to - (uint64_t)from;
    return MPS_STATUS_OK;
  }
  *out_range = 0;
  if (from == INT64_MIN) return MPS_STATUS_OK;
  const uint64_t top = largest > INT64_MAX ? INT64_MAX : largest;
  if (from > (int64_t)top) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "from is out of bounds for %s", mps_dtype_name(dtype));
  *out_range = top - (uint64_t)from + 1;
  return MPS_STATUS_OK;
}

mps_random_call mps_random_integers(int64_t base, uint64_t range, mps_dtype dtype) {
  const bool wide = range == 0 || range > ((uint64_t)1 << 32);
  return (mps_random_call){.label = "random_",
                           .stem = wide ? "random_integer_wide" : "random_integer",
                           .makes = dtype == MPS_DTYPE_I32 ? MPS_DTYPE_I32 : MPS_DTYPE_I64,
                           .per_block = wide ? 2 : 4,
                           .arguments = {.range = range, .base = base}};
}

void mps_multinomial_plan_make(mps_multinomial_plan *plan, const mps_tensor *weights, const mps_tensor *out) {
  memset(plan, 0, sizeof *plan);
  plan->arguments.rows = weights->sizes[0];
  plan->arguments.categories = weights->sizes[1];
  plan->arguments.samples = out->sizes[1];
  plan->arguments.row_stride = weights->strides[0];
  plan->arguments.category_stride = weights->strides[1];
  plan->rows = (uint64_t)weights->sizes[0];
  plan->samples = (uint64_t)mps_tensor_element_count(out);
  plan->blocks = (plan->samples + 3) / 4;
  plan->sums_cost = 3.0 * (double)mps_tensor_element_count(weights);
  plan->search_cost = 50.0 * (double)plan->samples;
}
