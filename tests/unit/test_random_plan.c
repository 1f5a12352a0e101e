/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_random_plan: how many Philox blocks a result takes, when it is made in place, and which integers a dtype is given.
 */
#include "ops/random_plan.h"
#include "tensors.h"
#include "test.h"

static const mps_random_call uniform = {.label = "uniform_", .stem = "random_uniform", .makes = MPS_DTYPE_F32, .per_block = 4, .arguments = {.a = 1.5f, .b = 2.5f}};

static mps_random_plan plan_of(const mps_random_call *call, mps_tensor out) {
  mps_random_plan p;
  mps_random_plan_make(&p, call, &out);
  return p;
}

static void four_elements_a_block(void) {
  mps_random_plan p = plan_of(&uniform, TENSOR(F32, 2, 5));
  CHECK_STRING(p.stem, "random_uniform");
  CHECK_STRING(p.suffix, "f32");
  CHECK_INT(p.arguments.count, 10);
  CHECK(p.arguments.a == 1.5f && p.arguments.b == 2.5f);
  CHECK_INT(p.blocks, 3);
  CHECK_INT(p.threads, 3);
  CHECK_INT(p.cost, 30);
  CHECK(p.direct);
  CHECK_INT(plan_of(&uniform, TENSOR(F32, 8)).blocks, 2);
  CHECK_INT(plan_of(&uniform, TENSOR(F32, ((int64_t)1 << 33) + 1)).blocks, 2147483649);
}

static void points_and_empty_results(void) {
  mps_random_plan p = plan_of(&uniform, zero_dimensional(MPS_DTYPE_F32));
  CHECK_INT(p.arguments.count, 1);
  CHECK_INT(p.blocks, 1);
  CHECK(p.direct);
  p = plan_of(&uniform, TENSOR(F32, 3, 0));
  CHECK_INT(p.blocks, 0); /* the generator stays where it is */
  CHECK_INT(p.threads, 0);
}

/* Numbers go by logical position, so that a layout never changes values. */
static void only_plain_results_are_made_in_place(void) {
  CHECK(!plan_of(&uniform, transposed(TENSOR(F32, 2, 5), 0, 1)).direct);
  CHECK(!plan_of(&uniform, channels_last(TENSOR(F32, 2, 3, 4, 5))).direct);
  CHECK(!plan_of(&uniform, TENSOR(F16, 2, 5)).direct);
  mps_tensor negative = TENSOR(F32, 2, 5), thin = TENSOR(F32, 1, 5);
  negative.flags = MPS_TENSOR_NEGATIVE;
  thin.strides[0] = 77;
  CHECK(!plan_of(&uniform, negative).direct);
  CHECK(plan_of(&uniform, thin).direct);
  CHECK_INT(plan_of(&uniform, transposed(TENSOR(F32, 2, 5), 0, 1)).blocks, 3); /* as many as in place */
}

static void permutations_are_dealt_to_buckets(void) {
  mps_permutation_plan p;
  CHECK_OK(mps_permutation_plan_make(&p, 4096)); /* one bucket: nothing to deal */
  CHECK_INT(p.arguments.bits, 0);
  CHECK_INT(p.arguments.deal_blocks, 0);
  CHECK_INT(p.counts, 1);
  CHECK_INT(p.blocks, 2048);
  CHECK_OK(mps_permutation_plan_make(&p, 100001));
  CHECK_INT(p.arguments.bits, 5); /* 32 buckets of 3125 */
  CHECK_INT(p.arguments.blocks, 7);
  CHECK_INT(p.arguments.deal_blocks, 12501);
  CHECK_INT(p.counts, 224);
  CHECK_INT(p.blocks, 12501 + 50001);
  CHECK_OK(mps_permutation_plan_make(&p, (int64_t)1 << 31));
  CHECK_INT(p.arguments.bits, 10); /* no more: buckets become larger */
  CHECK_OK(mps_permutation_plan_make(&p, 0));
  CHECK_INT(p.blocks, 0);
  CHECK_STATUS(mps_permutation_plan_make(&p, (int64_t)1 << 32), MPS_STATUS_NOT_IMPLEMENTED);
}

static void integers_by_range(void) {
  mps_random_call call = mps_random_integers(-3, (uint64_t)1 << 32, MPS_DTYPE_I32);
  CHECK_STRING(call.stem, "random_integer");
  CHECK_INT(call.makes, MPS_DTYPE_I32);
  CHECK_INT(call.per_block, 4);
  CHECK_INT(call.arguments.base, -3);
  CHECK_INT(call.arguments.range, 4294967296);
  call = mps_random_integers(0, ((uint64_t)1 << 32) + 1, MPS_DTYPE_U8);
  CHECK_STRING(call.stem, "random_integer_wide");
  CHECK_INT(call.makes, MPS_DTYPE_I64);
  CHECK_INT(call.per_block, 2);
  call = mps_random_integers(INT64_MIN, 0, MPS_DTYPE_I64); /* all 64 bits */
  CHECK_STRING(call.stem, "random_integer_wide");
  CHECK_INT(plan_of(&call, TENSOR(I64, 5)).blocks, 3);
}

static void the_largest_integers(void) {
  CHECK_INT(mps_random_largest(MPS_DTYPE_BOOL), 1);
  CHECK_INT(mps_random_largest(MPS_DTYPE_U8), 255);
  CHECK_INT(mps_random_largest(MPS_DTYPE_I16), 32767);
  CHECK_INT(mps_random_largest(MPS_DTYPE_F16), 2048);
  CHECK_INT(mps_random_largest(MPS_DTYPE_BF16), 256);
  CHECK_INT(mps_random_largest(MPS_DTYPE_F32), 16777216);
  CHECK_INT(mps_random_largest(MPS_DTYPE_I64), INT64_MAX);
  CHECK(mps_random_largest(MPS_DTYPE_U64) == UINT64_MAX);
}

static void bounded_ranges(void) {
  int64_t base, to = 256;
  uint64_t range;
  CHECK_OK(mps_random_range(0, &to, MPS_DTYPE_U8, &base, &range));
  CHECK_INT(base, 0);
  CHECK_INT(range, 256);
  to = 257;
  CHECK_STATUS(mps_random_range(0, &to, MPS_DTYPE_U8, &base, &range), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_STRING(mps_error_message(), "to - 1 is out of bounds for unsigned char");
  CHECK_OK(mps_random_range(0, &to, MPS_DTYPE_BF16, &base, &range)); /* floats round */
  to = 5;
  CHECK_STATUS(mps_random_range(5, &to, MPS_DTYPE_I64, &base, &range), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_STRING(mps_error_message(), "random_ expects 'from' to be less than 'to', but got from=5 >= to=5");
  to = INT64_MAX;
  CHECK_OK(mps_random_range(INT64_MIN, &to, MPS_DTYPE_I64, &base, &range));
  CHECK(range == UINT64_MAX);
}

static void ranges_up_to_the_largest(void) {
  int64_t base;
  uint64_t range;
  CHECK_OK(mps_random_range(-5, NULL, MPS_DTYPE_I8, &base, &range));
  CHECK_INT(base, -5);
  CHECK_INT(range, 133);
  CHECK_STATUS(mps_random_range(128, NULL, MPS_DTYPE_I8, &base, &range), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_STRING(mps_error_message(), "from is out of bounds for signed char");
  CHECK_STATUS(mps_random_range(-129, NULL, MPS_DTYPE_I8, &base, &range), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(mps_random_range(0, NULL, MPS_DTYPE_U64, &base, &range), MPS_STATUS_INVALID_ARGUMENT); /* as PyTorch, whose int64 wraps */
  CHECK_STRING(mps_error_message(), "to - 1 is out of bounds for long unsigned int");
  CHECK_OK(mps_random_range(INT64_MIN + 1, NULL, MPS_DTYPE_I64, &base, &range));
  CHECK(range == UINT64_MAX);
  CHECK_STATUS(mps_random_range(65505, NULL, MPS_DTYPE_F16, &base, &range), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_STRING(mps_error_message(), "from is out of bounds for c10::Half");
  CHECK_STATUS(mps_random_range(256, NULL, MPS_DTYPE_BF16, &base, &range), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_OK(mps_random_range(255, NULL, MPS_DTYPE_BF16, &base, &range));
  CHECK_INT(range, 2);
  CHECK_OK(mps_random_range(INT64_MIN, NULL, MPS_DTYPE_I64, &base, &range));
  CHECK_INT(range, 0); /* all bits */
}

static void complex_numbers_are_made_in_parts(void) {
  mps_tensor whole = TENSOR(C64, 2, 3), turned = transposed(TENSOR(C32, 2, 3), 0, 1);
  mps_tensor parts = mps_random_parts(&whole);
  CHECK_INT(parts.dtype, MPS_DTYPE_F32);
  CHECK_INT(parts.rank, 3);
  CHECK_INTS(parts.sizes, 2, 3, 2);
  CHECK_INTS(parts.strides, 6, 2, 1);
  CHECK(mps_tensor_is_contiguous(&parts));
  parts = mps_random_parts(&turned);
  CHECK_INT(parts.dtype, MPS_DTYPE_F16);
  CHECK_INTS(parts.strides, 2, 6, 1);
  mps_tensor point = zero_dimensional(MPS_DTYPE_C64);
  parts = mps_random_parts(&point);
  CHECK_INT(parts.rank, 1);
  CHECK_INTS(parts.sizes, 2);
}

static void samples_of_categories(void) {
  mps_tensor weights = transposed(TENSOR(F32, 7, 3), 0, 1), out = TENSOR(I64, 3, 5), none = TENSOR(I64, 3, 0);
  mps_multinomial_plan p;
  mps_multinomial_plan_make(&p, &weights, &out);
  CHECK_INT(p.arguments.rows, 3);
  CHECK_INT(p.arguments.categories, 7);
  CHECK_INT(p.arguments.samples, 5);
  CHECK_INT(p.arguments.row_stride, 1);
  CHECK_INT(p.arguments.category_stride, 3);
  CHECK_INT(p.rows, 3);
  CHECK_INT(p.samples, 15);
  CHECK_INT(p.blocks, 4);
  CHECK_INT(p.arguments.blocks, 1);
  CHECK_INT(2 * p.sums_cost, 21);
  CHECK_INT(p.search_cost, 750);
  mps_multinomial_plan_make(&p, &weights, &none);
  CHECK_INT(p.blocks, 0);
  mps_tensor many = TENSOR(F32, 3, 33);
  mps_multinomial_plan_make(&p, &many, &out);
  CHECK_INT(p.arguments.blocks, 3);
}

int main(void) {
  RUN(four_elements_a_block);
  RUN(points_and_empty_results);
  RUN(only_plain_results_are_made_in_place);
  RUN(permutations_are_dealt_to_buckets);
  RUN(integers_by_range);
  RUN(the_largest_integers);
  RUN(bounded_ranges);
  RUN(ranges_up_to_the_largest);
  RUN(complex_numbers_are_made_in_parts);
  RUN(samples_of_categories);
  return test_end();
}
