/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Plans of pointwise programs are data: promotion, conversions, layout and overlap are looked at without a device.
 */
#include "tensors.h"
#include "test.h"

#include "graph/program_builder.h"
#include "ops/pointwise_dense.h"

static const mps_dtype B = MPS_DTYPE_BOOL, U8 = MPS_DTYPE_U8, I8 = MPS_DTYPE_I8, I16 = MPS_DTYPE_I16, I32 = MPS_DTYPE_I32, I64 = MPS_DTYPE_I64,
                       F16 = MPS_DTYPE_F16, BF16 = MPS_DTYPE_BF16, F32 = MPS_DTYPE_F32, C32 = MPS_DTYPE_C32, C64 = MPS_DTYPE_C64;

static mps_tensor number(mps_scalar value, mps_dtype dtype, bool wrapped) {
  mps_tensor tensor;
  memset(&tensor, 0, sizeof(tensor));
  tensor.dtype = dtype;
  tensor.constant = value;
  tensor.flags = wrapped ? MPS_TENSOR_WRAPPED_NUMBER : 0;
  return tensor;
}

/* ---- promotion: the rows are torch.promote_types' own ---- */
static void promotes_types(void) {
  const mps_dtype order[] = {B, U8, I8, I16, I32, I64, F16, BF16, F32, C32, C64};
  const mps_dtype expected[11][11] = {
    {B, U8, I8, I16, I32, I64, F16, BF16, F32, C32, C64},       {U8, U8, I16, I16, I32, I64, F16, BF16, F32, C32, C64},
    {I8, I16, I8, I16, I32, I64, F16, BF16, F32, C32, C64},     {I16, I16, I16, I16, I32, I64, F16, BF16, F32, C32, C64},
    {I32, I32, I32, I32, I32, I64, F16, BF16, F32, C32, C64},   {I64, I64, I64, I64, I64, I64, F16, BF16, F32, C32, C64},
    {F16, F16, F16, F16, F16, F16, F16, F32, F32, C32, C64},    {BF16, BF16, BF16, BF16, BF16, BF16, F32, BF16, F32, C64, C64},
    {F32, F32, F32, F32, F32, F32, F32, F32, F32, C64, C64},    {C32, C32, C32, C32, C32, C32, C32, C64, C64, C32, C64},
    {C64, C64, C64, C64, C64, C64, C64, C64, C64, C64, C64},
  };
  for (int i = 0; i < 11; i++)
    for (int j = 0; j < 11; j++)
      CHECK_INT(mps_dtype_promote(order[i], order[j]), expected[i][j]);
}

static mps_dtype result_type(mps_dtype a, mps_dtype_category ca, mps_dtype b, mps_dtype_category cb) {
  mps_dtype_promotion promotion;
  mps_promotion_begin(&promotion);
  mps_promotion_add(&promotion, a, ca);
  mps_promotion_add(&promotion, b, cb);
  return mps_promotion_end(&promotion);
}

static void weighs_categories(void) {
  const mps_dtype_category tensor = MPS_CATEGORY_TENSOR, scalar = MPS_CATEGORY_SCALAR, plain = MPS_CATEGORY_NUMBER;
  CHECK_INT(result_type(I64, tensor, F32, plain), F32);  /* int64 tensor > 2.5 */
  CHECK_INT(result_type(U8, tensor, I64, plain), U8);    /* uint8 tensor + -1 */
  CHECK_INT(result_type(F16, tensor, F32, plain), F16);
  CHECK_INT(result_type(F16, tensor, F32, scalar), F16); /* 0-d tensors weigh less than others */
  CHECK_INT(result_type(F16, scalar, F32, plain), F16);
  CHECK_INT(result_type(I8, scalar, I64, plain), I8);
  CHECK_INT(result_type(I8, tensor, I64, scalar), I8);
  CHECK_INT(result_type(I32, tensor, F16, scalar), F16);
  CHECK_INT(result_type(B, tensor, I64, plain), I64);
  CHECK_INT(result_type(F32, tensor, C64, plain), C64);
  CHECK_INT(result_type(F16, tensor, C64, plain), C32);
  CHECK_INT(result_type(BF16, tensor, C64, plain), C64);
  CHECK_INT(result_type(F16, tensor, F32, tensor), F32);
}

/* ---- plans ---- */
static mps_program_builder builder;
static mps_program program;

static mps_status plan_two(mps_formula formula, const mps_tensor *a, const mps_tensor *b, const mps_tensor *out) {
  mps_program_begin(&builder, "test", out->rank, out->sizes);
  const mps_program_value sources[] = {mps_program_read(&builder, a), mps_program_read(&builder, b)};
  mps_program_write(&builder, mps_program_apply(&builder, formula, sources, NULL), out);
  return mps_program_plan(&builder, &program);
}

static void plans_an_add(void) {
  const int64_t sizes[] = {4, 8};
  const mps_tensor a = make(buffer_a(), F32, 2, sizes), b = make(buffer_a(), F32, 2, sizes), out = make(buffer_b(), F32, 2, sizes);
  CHECK_OK(plan_two(MPS_FORMULA_ADD, &a, &b, &out));
  CHECK_INT(program.rank, 1);
  CHECK_INT(program.sizes[0], 32);
  CHECK_INT(program.element_count, 32);
  CHECK_INT(program.operand_count, 3);
  CHECK_INT(program.instruction_count, 1);
  CHECK_INT(program.register_count, 0);
  CHECK_INT(program.instructions[0].destination, 2);
  CHECK_INT(program.instructions[0].round, F32);
  CHECK_INT(program.operands[2].access, 2);
  CHECK_INT(program.operands[0].strides[0], 4);
}

static void compares_in_the_promoted_dtype(void) {
  const int64_t sizes[] = {5};
  const mps_tensor a = make(buffer_a(), I64, 1, sizes), out = make(buffer_b(), B, 1, sizes);
  const mps_tensor half = number(mps_scalar_float(2.5), F32, true);
  CHECK_OK(plan_two(MPS_FORMULA_GT, &a, &half, &out));
  CHECK_INT(builder.instruction_computes[0], MPS_COMPUTE_F32);
  CHECK_INT(program.operands[0].compute, MPS_COMPUTE_F32);
  CHECK_INT(program.instructions[0].result, MPS_COMPUTE_BOOL);
  const mps_tensor bytes = make(buffer_a(), U8, 1, sizes), minus = number(mps_scalar_int(-1), I64, true);
  CHECK_OK(plan_two(MPS_FORMULA_EQ, &bytes, &minus, &out));
  CHECK_INT(program.operands[1].constant, 1);
  CHECK_INT((int32_t)program.operands[1].value, 255); /* -1 as uint8 */
}

static void rounds_constants_as_pytorch_does(void) {
  const int64_t sizes[] = {5};
  const mps_tensor a = make(buffer_a(), F16, 1, sizes), out = make(buffer_b(), F16, 1, sizes);
  const mps_tensor tenth = number(mps_scalar_float(0.1), F32, true);
  float value;
  CHECK_OK(plan_two(MPS_FORMULA_ADD, &a, &tenth, &out));
  memcpy(&value, &program.operands[1].value, 4);
  CHECK(value == 0.0999755859375f); /* the half nearest to 0.1 */
  CHECK_OK(plan_two(MPS_FORMULA_MUL, &a, &tenth, &out));
  memcpy(&value, &program.operands[1].value, 4);
  CHECK(value == 0.1f);
}

static void narrows_wide_sources_first(void) {
  const int64_t sizes[] = {5};
  const mps_tensor a = make(buffer_a(), F16, 1, sizes), wide = make(buffer_a(), I64, 1, sizes), out = make(buffer_b(), F16, 1, sizes);
  CHECK_OK(plan_two(MPS_FORMULA_DIV, &a, &wide, &out)); /* an int64 does not fit into a half */
  CHECK_INT(program.instruction_count, 2);
  CHECK_INT(program.instructions[0].formula, MPS_FORMULA_COPY);
  CHECK_INT(program.instructions[0].round, F16);
  CHECK_INT(program.register_count, 1);
  const mps_tensor narrow = make(buffer_a(), U8, 1, sizes);
  CHECK_OK(plan_two(MPS_FORMULA_DIV, &a, &narrow, &out)); /* a byte does */
  CHECK_INT(program.instruction_count, 1);
}

static void broadcasts_with_stride_zero(void) {
  const int64_t sizes[] = {2, 3, 4}, row[] = {4}, column[] = {3, 1};
  const mps_tensor a = make(buffer_a(), F32, 1, row), b = make(buffer_a(), F32, 2, column), out = make(buffer_b(), F32, 3, sizes);
  CHECK_OK(plan_two(MPS_FORMULA_ADD, &a, &b, &out));
  CHECK_INT(program.rank, 3);
  CHECK_INT(program.operands[0].strides[0], 0);
  CHECK_INT(program.operands[0].strides[1], 0);
  CHECK_INT(program.operands[0].strides[2], 4);
  CHECK_INT(program.operands[1].strides[1], 4);
  CHECK_INT(program.operands[1].strides[2], 0);
  const int64_t other[] = {5};
  const mps_tensor wrong = make(buffer_a(), F32, 1, other);
  CHECK_STATUS(plan_two(MPS_FORMULA_ADD, &a, &wrong, &out), MPS_STATUS_INVALID_ARGUMENT);
}

static void follows_the_order_of_the_output(void) {
  const int64_t sizes[] = {2, 3, 4, 5};
  mps_tensor a = make(buffer_a(), F32, 4, sizes), out = make(buffer_b(), F32, 4, sizes);
  const int64_t channels_last[] = {60, 1, 15, 3};
  memcpy(out.strides, channels_last, sizeof(channels_last));
  memcpy(a.strides, channels_last, sizeof(channels_last));
  CHECK_OK(plan_two(MPS_FORMULA_ADD, &a, &a, &out));
  CHECK_INT(program.rank, 1);
  CHECK_INT(program.sizes[0], 120);
  mps_tensor plain = make(buffer_a(), F32, 4, sizes);
  CHECK_OK(plan_two(MPS_FORMULA_ADD, &plain, &a, &out));
  CHECK_INT(program.rank, 3); /* (2) (4 x 5) (3) */
  CHECK_INT(program.sizes[1], 20);
  CHECK_INT(program.sizes[2], 3);
  CHECK_INT(program.operands[0].strides[2], 80);
}

static void drops_dimensions_of_one(void) {
  const int64_t sizes[] = {1, 7, 1};
  mps_tensor a = make(buffer_a(), F32, 3, sizes), out = make(buffer_b(), F32, 3, sizes);
  a.strides[0] = 1234;
  CHECK_OK(plan_two(MPS_FORMULA_ADD, &a, &a, &out));
  CHECK_INT(program.rank, 1);
  const int64_t none[] = {1, 1};
  const mps_tensor one = make(buffer_a(), F32, 2, none), single = make(buffer_b(), F32, 2, none);
  CHECK_OK(plan_two(MPS_FORMULA_ADD, &one, &one, &single));
  CHECK_INT(program.rank, 0);
  CHECK_INT(program.element_count, 1);
}

static void refuses_types_without_kernels(void) {
  const int64_t sizes[] = {3};
  const mps_tensor a = make(buffer_a(), F32, 1, sizes), out = make(buffer_b(), F32, 1, sizes);
  CHECK_STATUS(plan_two(MPS_FORMULA_BITWISE_AND, &a, &a, &out), MPS_STATUS_NOT_IMPLEMENTED);
  CHECK_STRING(mps_error_message(), "\"test\" not implemented for 'Float'");
}

static void chains_round_after_each_formula(void) {
  const int64_t sizes[] = {9};
  const mps_tensor a = make(buffer_a(), F16, 1, sizes), out = make(buffer_b(), F16, 1, sizes), kept = make(buffer_a(), F32, 1, sizes);
  mps_program_begin(&builder, "chain", 1, sizes);
  const mps_program_value x = mps_program_read(&builder, &a), two = mps_program_number(&builder, mps_scalar_float(2.0));
  mps_program_value y = mps_program_apply(&builder, MPS_FORMULA_MUL, (mps_program_value[]){x, two}, NULL);
  y = mps_program_apply(&builder, MPS_FORMULA_EXP, &y, NULL);
  mps_program_write(&builder, y, &out);
  mps_program_write(&builder, y, &kept);
  CHECK_OK(mps_program_plan(&builder, &program));
  CHECK_INT(program.instruction_count, 4); /* mul, exp, and a copy for each of the two outputs */
  CHECK_INT(program.instructions[0].round, F16);
  CHECK_INT(program.instructions[1].round, F16);
  CHECK_INT(program.instructions[2].destination, 2);
  CHECK_INT(program.instructions[3].destination, 3);
}

static void reuses_registers(void) {
  const int64_t sizes[] = {9};
  const mps_tensor a = make(buffer_a(), F32, 1, sizes), out = make(buffer_b(), F32, 1, sizes);
  mps_program_begin(&builder, "long", 1, sizes);
  mps_program_value x = mps_program_read(&builder, &a);
  for (int i = 0; i < 30; i++)
    x = mps_program_apply(&builder, MPS_FORMULA_EXP, &x, NULL);
  mps_program_write(&builder, x, &out);
  CHECK_OK(mps_program_plan(&builder, &program));
  CHECK_INT(program.register_count, 2);
  CHECK_INT(program.instructions[29].destination, 1);
}

static void converts_floats_to_bytes_through_int64(void) {
  const int64_t sizes[] = {9};
  const mps_tensor a = make(buffer_a(), F32, 1, sizes), out = make(buffer_b(), U8, 1, sizes);
  mps_program_begin(&builder, "copy", 1, sizes);
  mps_program_write(&builder, mps_program_read(&builder, &a), &out);
  CHECK_OK(mps_program_plan(&builder, &program));
  CHECK_INT(program.operands[0].compute, MPS_COMPUTE_I64);
  CHECK_INT(program.operands[1].compute, MPS_COMPUTE_I64);
}

static void tells_how_tensors_overlap(void) {
  const int64_t sizes[] = {4, 4};
  mps_tensor a = make(buffer_a(), F32, 2, sizes), b = a;
  CHECK_INT(mps_tensor_overlap(&a, &b), MPS_OVERLAP_SAME);
  b.offset = 4;
  CHECK_INT(mps_tensor_overlap(&a, &b), MPS_OVERLAP_PARTIAL);
  b.offset = 64;
  CHECK_INT(mps_tensor_overlap(&a, &b), MPS_OVERLAP_NONE);
  b = a;
  b.strides[0] = 1;
  b.strides[1] = 4;
  CHECK_INT(mps_tensor_overlap(&a, &b), MPS_OVERLAP_PARTIAL);
  b = a;
  b.buffer = buffer_b();
  CHECK_INT(mps_tensor_overlap(&a, &b), MPS_OVERLAP_NONE);
  b = a;
  b.strides[0] = 0;
  CHECK_INT(mps_tensor_overlap(&a, &b), MPS_OVERLAP_PARTIAL);
  b = a;
  b.dtype = MPS_DTYPE_I32;
  CHECK_INT(mps_tensor_overlap(&a, &b), MPS_OVERLAP_SAME);
}

static void empty_plans_encode_nothing(void) {
  const int64_t sizes[] = {0, 3};
  const mps_tensor a = make(NULL, F32, 2, sizes), out = make(NULL, F32, 2, sizes);
  mps_program_begin(&builder, "empty", 2, sizes);
  mps_program_value x = mps_program_read(&builder, &a);
  mps_program_write(&builder, mps_program_apply(&builder, MPS_FORMULA_EXP, &x, NULL), &out);
  CHECK_OK(mps_program_encode(&builder, NULL)); /* the stream is not looked at */
}

static void knows_what_fits(void) {
  CHECK(mps_dtype_contains(F16, U8) && mps_dtype_contains(BF16, U8) && mps_dtype_contains(BF16, I8) && mps_dtype_contains(F32, F16));
  CHECK(!mps_dtype_contains(F16, BF16) && !mps_dtype_contains(BF16, F16) && !mps_dtype_contains(F16, I16) && !mps_dtype_contains(I8, U8));
  CHECK(mps_dtype_contains(I16, U8) && mps_dtype_contains(C32, F16) && !mps_dtype_contains(C32, F32) && mps_dtype_contains(C64, C32));
}

/* ---- the short way of dense calls makes what the builder makes ---- */
static void compare_programs(const mps_program *a, const mps_program *b) {
  CHECK_INT(a->operand_count, b->operand_count);
  CHECK_INT(a->instruction_count, b->instruction_count);
  CHECK_INT(a->register_count, b->register_count);
  CHECK_INT(a->rank, b->rank);
  CHECK_INT(a->element_count, b->element_count);
  CHECK(a->rank == 0 || a->sizes[0] == b->sizes[0]);
  for (uint32_t o = 0; o < a->operand_count && o < b->operand_count; o++) {
    const mps_operand *p = &a->operands[o], *q = &b->operands[o];
    CHECK(p->dtype == q->dtype && p->compute == q->compute && p->flags == q->flags && p->access == q->access && p->constant == q->constant);
    CHECK(a->rank == 0 || p->strides[0] == q->strides[0]);
  }
  const mps_instruction *p = a->instructions, *q = b->instructions;
  CHECK(p->formula == q->formula && p->source_count == q->source_count && p->result == q->result && p->round == q->round);
  CHECK_INT(p->destination, q->destination);
  CHECK(memcmp(p->sources, q->sources, p->source_count) == 0);
  CHECK(memcmp(p->parameters, q->parameters, sizeof p->parameters) == 0);
}

static uint32_t compare_dense(mps_formula formula, mps_dtype dtype, const int64_t *sizes) {
  const mps_formula_info *info = &mps_formula_infos[formula];
  const mps_scalar parameters[MPS_PROGRAM_MAX_PARAMETERS] = {mps_scalar_float(1.5), mps_scalar_int(3), mps_scalar_bool(true), mps_scalar_int(-1)};
  mps_tensor tensors[MPS_PROGRAM_MAX_SOURCES], out = make(buffer_b(), mps_formula_result_dtype(info, dtype), 3, sizes);
  const mps_tensor *inputs[MPS_PROGRAM_MAX_SOURCES];
  mps_program_value sources[MPS_PROGRAM_MAX_SOURCES];
  mps_program_begin(&builder, "test", out.rank, out.sizes);
  for (uint32_t i = 0; i < info->source_count; i++) {
    tensors[i] = make(buffer_a(), dtype, 3, sizes);
    inputs[i] = &tensors[i];
    sources[i] = mps_program_read(&builder, &tensors[i]);
  }
  if (!mps_pointwise_is_dense(formula, inputs, info->source_count, &out)) return 0;
  mps_program_write(&builder, mps_program_apply(&builder, formula, sources, parameters), &out);
  CHECK_OK(mps_program_plan(&builder, &program));
  mps_operand operands[MPS_PROGRAM_MAX_SOURCES + 1];
  mps_instruction instruction;
  mps_program dense;
  mps_pointwise_plan_dense(formula, inputs, info->source_count, parameters, &out, operands, &instruction, &dense);
  compare_programs(&dense, &program);
  CHECK_INT(mps_dtype_compute(dtype), builder.instruction_computes[0]);
  return 1;
}

static void plans_dense_calls_alike(void) {
  const int64_t sizes[] = {2, 1, 5}, one[] = {1, 1, 1};
  uint32_t dense = 0;
  for (uint32_t formula = 0; formula < MPS_FORMULA_COUNT; formula++)
    for (uint32_t dtype = 0; dtype < MPS_DTYPE_COUNT; dtype++)
      dense += compare_dense((mps_formula)formula, (mps_dtype)dtype, sizes) + compare_dense((mps_formula)formula, (mps_dtype)dtype, one);
  CHECK(dense > 200);
}

static bool is_dense_add(const mps_tensor *a, const mps_tensor *b, const mps_tensor *out) {
  const mps_tensor *const inputs[] = {a, b};
  return mps_pointwise_is_dense(MPS_FORMULA_ADD, inputs, 2, out);
}

static void leaves_other_calls_to_the_builder(void) {
  const int64_t sizes[] = {2, 3}, row[] = {1, 3}, none[] = {0, 3};
  const mps_tensor a = make(buffer_a(), F32, 2, sizes), out = make(buffer_b(), F32, 2, sizes), narrow = make(buffer_a(), F16, 2, sizes);
  const mps_tensor broadcast = make(buffer_a(), F32, 2, row), empty = make(buffer_a(), F32, 2, none), two = number(mps_scalar_int(2), I64, true);
  CHECK(is_dense_add(&a, &a, &out) && is_dense_add(&a, &out, &out));
  CHECK(!is_dense_add(&a, &narrow, &out) && !is_dense_add(&narrow, &narrow, &narrow) && !is_dense_add(&a, &two, &out));
  CHECK(!is_dense_add(&a, &broadcast, &out) && !is_dense_add(&empty, &empty, &empty));
  mps_tensor transposed = a, conjugate = a, across = out;
  transposed.strides[0] = 1;
  transposed.strides[1] = 2;
  conjugate.flags = MPS_TENSOR_NEGATIVE;
  across.offset = 4;
  CHECK(!is_dense_add(&a, &transposed, &out) && !is_dense_add(&a, &a, &transposed) && !is_dense_add(&conjugate, &a, &out));
  CHECK(!is_dense_add(&a, &across, &out));
}

int main(void) {
  RUN(promotes_types);
  RUN(weighs_categories);
  RUN(plans_an_add);
  RUN(compares_in_the_promoted_dtype);
  RUN(rounds_constants_as_pytorch_does);
  RUN(narrows_wide_sources_first);
  RUN(broadcasts_with_stride_zero);
  RUN(follows_the_order_of_the_output);
  RUN(drops_dimensions_of_one);
  RUN(refuses_types_without_kernels);
  RUN(chains_round_after_each_formula);
  RUN(reuses_registers);
  RUN(converts_floats_to_bytes_through_int64);
  RUN(tells_how_tensors_overlap);
  RUN(empty_plans_encode_nothing);
  RUN(knows_what_fits);
  RUN(plans_dense_calls_alike);
  RUN(leaves_other_calls_to_the_builder);
  return test_end();
}
