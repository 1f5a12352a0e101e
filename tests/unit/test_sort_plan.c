/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_sort_plan: which kernel sorts or selects, how rows are laid out, and how lanes share a limited scratch.
 */
#include "ops/sort_plan.h"
#include "tensors.h"
#include "test.h"

static mps_sort_plan plan_of(const mps_sort_call *call, const mps_tensor *self, uint32_t dimension) {
  int64_t sizes[MPS_MAX_RANK];
  memcpy(sizes, self->sizes, sizeof sizes);
  sizes[dimension] = call->count;
  mps_tensor values = make(buffer_b(), self->dtype, self->rank, sizes), indices = make(buffer_b(), MPS_DTYPE_I64, self->rank, sizes);
  mps_sort_plan p;
  mps_sort_plan_make(&p, call, self, &values, &indices, dimension);
  return p;
}

static mps_sort_plan sort(const mps_tensor *self, uint32_t dimension) {
  return plan_of(&(mps_sort_call){.label = "sort", .kind = MPS_SORT_ALL, .count = self->sizes[dimension]}, self, dimension);
}

static void sorts_rows(void) {
  mps_tensor x = TENSOR(F32, 300, 400);
  mps_sort_plan p = sort(&x, 1);
  CHECK_STRING(p.stem, "sort");
  CHECK_STRING(p.suffix, "f32");
  CHECK_INT(p.arguments.rows, 300);
  CHECK_INT(p.arguments.length, 400);
  CHECK_INT(p.arguments.count, 400);
  CHECK_INT(p.arguments.rank, 1);
  CHECK_INTS(p.arguments.input_strides, 400);
  CHECK_INT(p.arguments.input_step, 1);
  CHECK_INT(p.arguments.lanes, 64);
  CHECK_INT(p.key_bytes, 204800);   /* 64 lanes, 400 elements, two keys of four bytes */
  CHECK_INT(p.order_bytes, 204800); /* two places of four bytes */
  CHECK_INT(p.cost, 1440000);
}

static void other_dimensions_are_the_rows(void) {
  mps_tensor x = transposed(TENSOR(F32, 4, 5, 6), 0, 2); /* 6 x 5 x 4, strides 1, 6, 30 */
  mps_sort_plan p = sort(&x, 1);
  CHECK_INT(p.arguments.rows, 24);
  CHECK_INT(p.arguments.lanes, 24);
  CHECK_INT(p.arguments.input_step, 6);
  CHECK_INTS(p.arguments.sizes, 6, 4);
  CHECK_INTS(p.arguments.input_strides, 1, 30);
  CHECK_INTS(p.arguments.value_strides, 20, 1);
  CHECK_INTS(p.arguments.index_strides, 20, 1);
  CHECK_INT(p.arguments.value_step, 4);
}

static void keys_by_dtype(void) {
  mps_tensor wide = TENSOR(I64, 3, 10), half = TENSOR(F16, 3, 10), byte = TENSOR(BOOL, 3, 10);
  mps_sort_plan p = sort(&wide, 1);
  CHECK_STRING(p.suffix, "i64");
  CHECK_INT(p.key_bytes, 480);
  CHECK_INT(p.order_bytes, 240);
  p = sort(&half, 1);
  CHECK_STRING(p.suffix, "f16");
  CHECK_INT(p.key_bytes, 240);
  p = sort(&byte, 1);
  CHECK_STRING(p.suffix, "bool");
  CHECK_INT(p.key_bytes, 240);
}

static void selections(void) {
  mps_tensor x = TENSOR(F32, 3, 10);
  mps_sort_plan p = plan_of(&(mps_sort_call){.kind = MPS_SORT_TOP, .count = 4, .descending = true, .sorted = true}, &x, 1);
  CHECK_STRING(p.stem, "top");
  CHECK_INT(p.arguments.count, 4);
  CHECK_INT(p.arguments.descending, 1);
  CHECK_INT(p.arguments.sorted, 1);
  CHECK_INTS(p.arguments.value_strides, 4);
  CHECK_INT(p.arguments.capacity, 1); /* so few are kept as a list */
  CHECK_INT(p.key_bytes, 24);         /* three lanes, two keys */
  CHECK_INT(p.order_bytes, 24);
  CHECK_INT(p.cost, 30);
  mps_tensor wide = TENSOR(F32, 2, 1000);
  p = plan_of(&(mps_sort_call){.kind = MPS_SORT_TOP, .count = 40, .descending = true}, &wide, 1);
  CHECK_INT(p.arguments.capacity, 592); /* twice as many and 512 */
  CHECK_INT(p.key_bytes, 9472);
  p = plan_of(&(mps_sort_call){.kind = MPS_SORT_TOP, .count = 300, .descending = true}, &wide, 1);
  CHECK_INT(p.arguments.capacity, 1000); /* the whole row */
  p = plan_of(&(mps_sort_call){.kind = MPS_SORT_KTH, .count = 1, .kth = 2, .median = 1}, &x, 0);
  CHECK_STRING(p.stem, "kth");
  CHECK_INT(p.arguments.rows, 10);
  CHECK_INT(p.arguments.length, 3);
  CHECK_INT(p.arguments.input_step, 10);
  CHECK_INT(p.arguments.kth, 2);
  CHECK_INT(p.arguments.median, 1);
  CHECK_INT(p.key_bytes, 120);
  CHECK_INT(p.order_bytes, 120);
}

static void lanes_share_64_mebibytes(void) {
  const int64_t mebi = 1 << 20;
  mps_tensor even = TENSOR(F32, 64, mebi), odd = TENSOR(F32, 50, mebi), longest = TENSOR(F32, 2, 4294967295);
  CHECK_INT(sort(&even, 1).arguments.lanes, 4); /* 16 MiB a lane */
  CHECK_INT(sort(&odd, 1).arguments.lanes, 4);  /* 50, 25, 13, 7, 4 */
  mps_sort_plan p = sort(&longest, 1);
  CHECK_INT(p.arguments.lanes, 1);
  CHECK_INT(p.key_bytes, 34359738360);
}

static void points_and_dimensions_of_one(void) {
  mps_tensor one = TENSOR(F32, 1), thin = TENSOR(F32, 1, 5, 1), point = zero_dimensional(MPS_DTYPE_F32), matrix = TENSOR(F32, 3, 10);
  mps_sort_plan p = sort(&one, 0); /* what a 0-d tensor is taken as */
  CHECK_INT(p.arguments.rank, 0);
  CHECK_INT(p.arguments.rows, 1);
  CHECK_INT(p.arguments.lanes, 1);
  CHECK_INT(p.key_bytes, 8);
  p = sort(&thin, 1);
  CHECK_INT(p.arguments.rows, 1);
  CHECK_INTS(p.arguments.sizes, 1, 1);
  CHECK_INT(mps_sort_row_length(&point, -1), 1);
  CHECK_INT(mps_sort_row_length(&matrix, -1), 10);
  CHECK_INT(mps_sort_row_length(&matrix, -2), 3);
  CHECK_INT(mps_sort_row_length(&matrix, 2), 1);
}

static void overlaps_are_copied(void) {
  mps_tensor x = TENSOR(I64, 3, 10), values = in_buffer(x, buffer_b()), indices = in_buffer(x, buffer_b());
  CHECK(!mps_sort_needs_copy(&x, &values, &indices));
  CHECK(mps_sort_needs_copy(&x, &x, &indices));
  CHECK(mps_sort_needs_copy(&x, &values, &x));
  values = x;
  values.offset = 240; /* right behind */
  CHECK(!mps_sort_needs_copy(&x, &values, &indices));
  values.offset = 232;
  CHECK(mps_sort_needs_copy(&x, &values, &indices));
}

static void refusals(void) {
  mps_sort_call call = {.label = "topk", .kind = MPS_SORT_TOP, .count = 4};
  mps_tensor x = TENSOR(F32, 3, 10), values = TENSOR(F32, 3, 4), indices = TENSOR(I64, 3, 4), narrow = TENSOR(I32, 3, 4), five = TENSOR(F32, 3, 5);
  CHECK_OK(mps_sort_check(&call, &x, &values, &indices, 1));
  CHECK_STATUS(mps_sort_check(&call, &x, &values, &narrow, 1), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(mps_sort_check(&call, &x, &five, &indices, 1), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(mps_sort_check(&call, &x, &values, &indices, 0), MPS_STATUS_INVALID_ARGUMENT);
  mps_tensor complex = TENSOR(C64, 3, 10), parts = TENSOR(C64, 3, 4);
  CHECK_STATUS(mps_sort_check(&call, &complex, &parts, &indices, 1), MPS_STATUS_NOT_IMPLEMENTED);
  mps_tensor rows = TENSOR(U8, 1, 4294967296), few = TENSOR(U8, 1, 4);
  indices = TENSOR(I64, 1, 4);
  CHECK_STATUS(mps_sort_check(&call, &rows, &few, &indices, 1), MPS_STATUS_NOT_IMPLEMENTED);
  CHECK_STRING(mps_error_message(), "topk(): rows of more than 2^32 - 1 elements (here 4294967296) are not supported");
  rows = TENSOR(U8, 1, 4294967295);
  CHECK_OK(mps_sort_check(&call, &rows, &few, &indices, 1));
}

static void one_long_row_is_sorted_by_all_threads(void) {
  mps_tensor row = TENSOR(I64, 100000), order = TENSOR(I64, 100000);
  const mps_sort_call all = {.label = "sort", .kind = MPS_SORT_ALL, .count = 100000, .descending = true};
  mps_sort_plan p;
  mps_sort_long_plan l;
  row.strides[0] = 3;
  mps_sort_plan_make(&p, &all, &row, &row, &order, 0);
  CHECK(mps_sort_long_plan_make(&l, &p, &all, MPS_DTYPE_I64));
  CHECK_STRING(l.suffix, "i64");
  CHECK_STRING(l.key_suffix, "u64");
  CHECK_INT(l.arguments.block, 8192);
  CHECK_INT(l.arguments.blocks, 13);
  CHECK_INT(l.arguments.digits, 8);
  CHECK_INT(l.arguments.input_step, 3);
  CHECK_INT(l.arguments.descending, 1);
  CHECK_INT(l.key_bytes, 1600000);
  CHECK_INT(l.order_bytes, 800000);
  CHECK_INT(l.varies_bytes, 104);
  CHECK_INT(l.count_bytes, 13312);
  CHECK(mps_sort_long_plan_make(&l, &p, &all, MPS_DTYPE_BF16));
  CHECK_INT(l.arguments.digits, 4); /* as float */
  CHECK(mps_sort_long_plan_make(&l, &p, &all, MPS_DTYPE_U8));
  CHECK_INT(l.arguments.digits, 1);
  p.arguments.length = 1 << 24;
  CHECK(mps_sort_long_plan_make(&l, &p, &all, MPS_DTYPE_F32));
  CHECK_INT(l.arguments.blocks, 64);
  p.arguments.rows = 2;
  CHECK(!mps_sort_long_plan_make(&l, &p, &all, MPS_DTYPE_F32));
  p.arguments.rows = 1;
  p.arguments.length = 32767;
  CHECK(!mps_sort_long_plan_make(&l, &p, &all, MPS_DTYPE_F32));
}

int main(void) {
  RUN(sorts_rows);
  RUN(other_dimensions_are_the_rows);
  RUN(keys_by_dtype);
  RUN(selections);
  RUN(lanes_share_64_mebibytes);
  RUN(points_and_dimensions_of_one);
  RUN(overlaps_are_copied);
  RUN(refusals);
  RUN(one_long_row_is_sorted_by_all_threads);
  return test_end();
}
