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
  plan->suffix = mps_dtype_name(call->makes);
  plan->arguments = call->arguments;
  plan->arguments.count = count;
  plan->blocks = (uint64_t)((count + call->per_block - 1) / call->per_block);
  plan->threads = plan->blocks;
  plan->direct = out->dtype == call->makes && !out->flags && mps_tensor_is_contiguous(out);
  plan->cost = (call->cost > 0.0 ? call->cost : 3.0) * (double)count;
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

/* Refuses a bound that `dtype` cannot hold. bfloat and float hold any int64, rounded. */
static mps_status check_bound(int64_t value, const char *name, mps_dtype dtype) {
  static const char *const names[MPS_DTYPE_COUNT] = {
      [MPS_DTYPE_BOOL] = "bool",        [MPS_DTYPE_U8] = "unsigned char",      [MPS_DTYPE_U16] = "short unsigned int", [MPS_DTYPE_U32] = "unsigned int",
      [MPS_DTYPE_I8] = "signed char",   [MPS_DTYPE_U64] = "long unsigned int", [MPS_DTYPE_I16] = "short int",          [MPS_DTYPE_I32] = "int",
      [MPS_DTYPE_F16] = "c10::Half"};
  if (!names[dtype]) return MPS_STATUS_OK;
  const uint64_t largest = dtype == MPS_DTYPE_F16 ? 65504 : mps_random_largest(dtype);
  const int64_t high = largest > INT64_MAX ? INT64_MAX : (int64_t)largest;
  const bool is_signed = dtype == MPS_DTYPE_I8 || dtype == MPS_DTYPE_I16 || dtype == MPS_DTYPE_I32;
  const int64_t low = dtype == MPS_DTYPE_F16 ? -high : is_signed ? -high - 1 : 0;
  if (value >= low && value <= high) return MPS_STATUS_OK;
  return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s is out of bounds for %s", name, names[dtype]);
}

mps_status mps_random_range(int64_t from, const int64_t *to, mps_dtype dtype, int64_t *out_base, uint64_t *out_range) {
  *out_base = from;
  *out_range = 0;
  if (to && from >= *to)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "random_ expects 'from' to be less than 'to', but got from=%lld >= to=%lld", (long long)from, (long long)*to);
  if (!to && from == INT64_MIN) return MPS_STATUS_OK;
  const int64_t last = to ? *to - 1 : (int64_t)mps_random_largest(dtype); /* u64: -1, which PyTorch refuses, too */
  mps_status status = check_bound(from, "from", dtype);
  if (status == MPS_STATUS_OK && !to && mps_dtype_is_floating(dtype) && from >= last)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT,
                         "random_ expects 'from' casted to dtype to be less than or equal to 'to_inc' casted to dtype, but got from=%lld > to_inc=%lld",
                         (long long)from, (long long)last);
  if (status == MPS_STATUS_OK) status = check_bound(last, "to - 1", dtype);
  if (status == MPS_STATUS_OK) *out_range = (uint64_t)last - (uint64_t)from + 1;
  return status;
}

mps_random_call mps_random_integers(int64_t base, uint64_t range, mps_dtype dtype) {
  const bool wide = range == 0 || range > ((uint64_t)1 << 32);
  return (mps_random_call){.label = "random_",
                           .stem = wide ? "random_integer_wide" : "random_integer",
                           .makes = dtype == MPS_DTYPE_I32 ? MPS_DTYPE_I32 : MPS_DTYPE_I64,
                           .per_block = wide ? 2 : 4,
                           .arguments = {.range = range, .base = base}};
}

mps_status mps_permutation_plan_make(mps_permutation_plan *plan, int64_t count) {
  memset(plan, 0, sizeof *plan);
  if (count > UINT32_MAX)
    return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "randperm(): permutations of more than 2^32 - 1 numbers (here %lld) are not supported", (long long)count);
  mps_permutation_arguments *a = &plan->arguments;
  a->count = count;
  while (count >> a->bits > MPS_PERMUTATION_BUCKET && 1 << a->bits < MPS_PERMUTATION_BUCKETS) a->bits++;
  if (a->bits) {
    a->blocks = (count + MPS_PERMUTATION_BLOCK - 1) / MPS_PERMUTATION_BLOCK;
    a->deal_blocks = (count + 7) / 8;
  }
  plan->counts = a->bits ? a->blocks << a->bits : 1;
  plan->blocks = (uint64_t)(a->deal_blocks + (count + 1) / 2);
  plan->deal_cost = 2.0 * (double)count;
  plan->shuffle_cost = 5.0 * (double)count;
  return MPS_STATUS_OK;
}

void mps_multinomial_plan_make(mps_multinomial_plan *plan, const mps_tensor *weights, const mps_tensor *out) {
  memset(plan, 0, sizeof *plan);
  plan->arguments.rows = weights->sizes[0];
  plan->arguments.categories = weights->sizes[1];
  plan->arguments.samples = out->sizes[1];
  plan->arguments.row_stride = weights->strides[0];
  plan->arguments.category_stride = weights->strides[1];
  plan->arguments.blocks = (weights->sizes[1] + MPS_MULTINOMIAL_BLOCK - 1) / MPS_MULTINOMIAL_BLOCK;
  plan->rows = (uint64_t)weights->sizes[0];
  plan->samples = (uint64_t)mps_tensor_element_count(out);
  plan->blocks = (plan->samples + 3) / 4;
  plan->sums_cost = 0.5 * (double)mps_tensor_element_count(weights);
  plan->search_cost = 50.0 * (double)plan->samples;
}
