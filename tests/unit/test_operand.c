/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_operand: byte ranges, overlap, constants and dimensions: what families ask of tensors without a device.
 */
#include "ops/operand.h"
#include "tensors.h"
#include "test.h"

static void check_range(const mps_tensor *tensor, uint64_t expected_begin, uint64_t expected_end) {
  uint64_t begin, end;
  mps_operand_range(tensor, &begin, &end);
  CHECK_INT(begin, expected_begin);
  CHECK_INT(end, expected_end);
}

static void ranges(void) {
  mps_tensor x = TENSOR(F32, 4, 6), backwards = TENSOR(F32, 4), expanded = TENSOR(F16, 1000), none = TENSOR(F32, 0, 3), point = zero_dimensional(MPS_DTYPE_C64);
  check_range(&x, 0, 96);
  x.offset = 8;
  x.strides[0] = 10; /* a slice: rows of 10 */
  check_range(&x, 8, 152);
  backwards.offset = 100, backwards.strides[0] = -2;
  check_range(&backwards, 76, 104);
  expanded.strides[0] = 0;
  check_range(&expanded, 0, 2);
  check_range(&none, 0, 0);
  check_range(&point, 0, 8);
  x.buffer = NULL;
  check_range(&x, 8, 8);
  mps_tensor large = TENSOR(F32, 3, (int64_t)1 << 31);
  check_range(&large, 0, (uint64_t)3 << 33);
}

static void overlaps(void) {
  mps_tensor x = TENSOR(F32, 4, 6), y = x, number = mps_operand_constant(&x, MPS_DTYPE_F32, mps_scalar_int(1));
  CHECK(mps_operands_overlap(&x, &y));
  y.offset = 96;
  CHECK(!mps_operands_overlap(&x, &y));
  y.offset = 95;
  CHECK(mps_operands_overlap(&x, &y));
  y = in_buffer(x, buffer_b());
  CHECK(!mps_operands_overlap(&x, &y));
  CHECK(!mps_operands_overlap(&number, &number));
  mps_tensor none = TENSOR(F32, 0, 6);
  CHECK(!mps_operands_overlap(&x, &none));
}

static void lists(void) {
  mps_operand_list list = {.status = MPS_STATUS_OUT_OF_MEMORY};
  mps_tensor x = TENSOR(F32, 4, 6);
  x.strides[0] = 1, x.strides[1] = 4;
  const mps_tensor prepared = mps_operands_prepare(&list, &x, MPS_DTYPE_F16, true), made = mps_operands_create(&list, MPS_DTYPE_I64, 2, x.sizes);
  for (int i = 0; i < 2; i++) { /* after a failure: shapes without memory */
    const mps_tensor *tensor = i ? &made : &prepared;
    CHECK(!tensor->buffer && tensor->dtype == (i ? MPS_DTYPE_I64 : MPS_DTYPE_F16));
    CHECK(mps_operands_same_shape(tensor, &x) && mps_tensor_is_contiguous(tensor));
  }
  mps_operands_keep(&list, NULL);
  CHECK_INT(list.count, 0);
  CHECK_INT(mps_operands_finish(&list), MPS_STATUS_OUT_OF_MEMORY);
}

static void equal_ones(void) {
  mps_tensor x = TENSOR(F32, 4, 1, 6), y = x;
  y.strides[1] = 99; /* of one element: does not matter */
  CHECK(mps_operands_equal(&x, &y));
  y.strides[0] = 7;
  CHECK(!mps_operands_equal(&x, &y));
  y = x, y.dtype = MPS_DTYPE_I32;
  CHECK(!mps_operands_equal(&x, &y));
  y = x, y.flags = MPS_TENSOR_NEGATIVE;
  CHECK(!mps_operands_equal(&x, &y));
  y = x, y.offset = 4;
  CHECK(!mps_operands_equal(&x, &y));
  y = TENSOR(F32, 4, 6);
  CHECK(!mps_operands_same_shape(&x, &y));
  y = x, y.buffer = x.buffer = NULL;
  CHECK(!mps_operands_equal(&x, &y)); /* constants have no elements to share */
}

static void constants_take_only_the_shape(void) {
  mps_tensor shape = TENSOR(F32, 4, 6);
  shape.offset = 40;
  shape.flags = MPS_TENSOR_CONJUGATE;
  const mps_tensor seven = mps_operand_constant(&shape, MPS_DTYPE_I16, mps_scalar_int(7));
  CHECK(seven.buffer == NULL);
  CHECK_INT(seven.dtype, MPS_DTYPE_I16);
  CHECK_INT(seven.flags, 0);
  CHECK_INT(seven.offset, 0);
  CHECK_INT(seven.rank, 2);
  CHECK_INTS(seven.sizes, 4, 6);
  CHECK_INTS(seven.strides, 0, 0);
  CHECK_INT(seven.constant.integer, 7);
  CHECK_OK(mps_operand_fill(NULL, NULL, mps_scalar_int(0))); /* an output that nobody wants */
  mps_tensor none = TENSOR(F32, 0, 3);
  CHECK_OK(mps_operand_fill(NULL, &none, mps_scalar_int(0))); /* the stream is not looked at */
}

static void dtypes(void) {
  CHECK_INT(mps_operand_sum_dtype(MPS_DTYPE_F16), MPS_DTYPE_F32);
  CHECK_INT(mps_operand_sum_dtype(MPS_DTYPE_BF16), MPS_DTYPE_F32);
  CHECK_INT(mps_operand_sum_dtype(MPS_DTYPE_F32), MPS_DTYPE_F32);
  CHECK_INT(mps_operand_sum_dtype(MPS_DTYPE_I8), MPS_DTYPE_I8);
  CHECK_STRING(mps_operand_bytes_suffix(MPS_DTYPE_BOOL), "u8");
  CHECK_STRING(mps_operand_bytes_suffix(MPS_DTYPE_BF16), "u16");
  CHECK_STRING(mps_operand_bytes_suffix(MPS_DTYPE_C32), "u32");
  CHECK_STRING(mps_operand_bytes_suffix(MPS_DTYPE_C64), "u64");
  CHECK(mps_operand_bytes_suffix(MPS_DTYPE_COUNT) == NULL);
}

static void dimensions(void) {
  uint32_t d;
  CHECK_OK(mps_operand_dimension(-1, 3, &d));
  CHECK_INT(d, 2);
  CHECK_OK(mps_operand_dimension(0, 0, &d));
  CHECK_OK(mps_operand_dimension(-1, 0, &d));
  CHECK_INT(d, 0);
  CHECK_STATUS(mps_operand_dimension(1, 0, &d), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_STRING(mps_error_message(), "Dimension out of range (expected to be in range of [-1, 0], but got 1)");
  mps_tensor point = zero_dimensional(MPS_DTYPE_F32), row = mps_operand_at_least_1d(&point);
  CHECK_INT(row.rank, 1);
  CHECK_INTS(row.sizes, 1);
  CHECK_INTS(row.strides, 1);
}

int main(void) {
  RUN(ranges);
  RUN(overlaps);
  RUN(lists);
  RUN(equal_ones);
  RUN(constants_take_only_the_shape);
  RUN(dtypes);
  RUN(dimensions);
  return test_end();
}
