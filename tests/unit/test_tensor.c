/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_tensor: dtypes, scalar conversions against formulas in double, descriptors and their check.
 */
#include <math.h>

#include "openmps/buffer.h"
#include "openmps/tensor.h"
#include "runtime/buffer.h"
#include "test.h"

static uint64_t random_state = 1;
static uint64_t random_bits(void) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return random_state;
}

static void dtypes(void) {
  CHECK_INT(mps_dtype_size(MPS_DTYPE_C64), 8);
  CHECK_INT(mps_dtype_size(MPS_DTYPE_C32), 4);
  CHECK_INT(mps_dtype_size(MPS_DTYPE_COUNT), 0);
  CHECK_STRING(mps_dtype_name(MPS_DTYPE_BF16), "bf16");
  CHECK_STRING(mps_dtype_name((mps_dtype)77), "?");
  CHECK(mps_dtype_is_floating(MPS_DTYPE_F16) && !mps_dtype_is_floating(MPS_DTYPE_C64));
  CHECK(mps_dtype_is_complex(MPS_DTYPE_C32));
  CHECK(mps_dtype_is_integral(MPS_DTYPE_U64) && !mps_dtype_is_integral(MPS_DTYPE_BOOL));
}

/* The value of 16 bits with `mantissa` fraction bits and the exponent's `bias`. */
static double value_of(uint16_t bits, int mantissa, int bias) {
  int exponent = (bits & 0x7fff) >> mantissa, fraction = bits & ((1 << mantissa) - 1);
  double value = exponent ? ldexp(1 << mantissa | fraction, exponent - bias - mantissa) : ldexp(fraction, 1 - bias - mantissa);
  return bits & 0x8000 ? -value : value;
}

/* Nearest of the finite values and the first one behind them, ties to even: found by looking at the two neighbours. */
static bool is_nearest(float x, uint16_t bits, int mantissa, int bias) {
  double got = value_of(bits, mantissa, bias);
  if ((got < 0 || (got == 0 && bits & 0x8000)) != (signbit(x) != 0)) return false;
  uint16_t magnitude = bits & 0x7fff;
  double here = value_of(magnitude, mantissa, bias), distance = fabs(fabs((double)x) - here);
  for (int step = -1; step <= 1; step += 2) {
    if (magnitude == 0 && step < 0) continue;
    double there = value_of((uint16_t)(magnitude + step), mantissa, bias), other = fabs(fabs((double)x) - there);
    if (other < distance || (other == distance && (magnitude & 1))) return false;
  }
  return true;
}

static uint16_t store16(float x, mps_dtype dtype) {
  uint16_t bits;
  mps_scalar_store(mps_scalar_float((double)x), dtype, &bits);
  return bits;
}

static void reduced_precision_rounds_to_nearest_even(void) {
  int wrong_half = 0, wrong_bfloat = 0;
  for (int i = 0; i < 2000000; i++) {
    uint32_t bits = (uint32_t)random_bits();
    if (i % 2) bits = (bits & 0x8fffffffu) | ((uint32_t)(96 + random_bits() % 52) << 23 & 0x7f800000u); /* half's range */
    if (i % 5 == 0) bits &= 0xffffe000u;                                                                /* exact, and ties */
    if (i % 5 == 1) bits = (bits & 0xffffe000u) | 0x1000u;
    if (i % 5 == 2) bits = (bits & 0xffff0000u) | 0x8000u;
    float x;
    memcpy(&x, &bits, 4);
    if (isnan(x)) continue;
    uint16_t half = store16(x, MPS_DTYPE_F16), bfloat = store16(x, MPS_DTYPE_BF16);
    wrong_half += fabsf(x) >= 65520.0f ? (half & 0x7fff) != 0x7c00 : !is_nearest(x, half, 10, 15);
    wrong_bfloat += !isinf(x) && !is_nearest(x, bfloat, 7, 127);
  }
  CHECK_INT(wrong_half, 0);
  CHECK_INT(wrong_bfloat, 0);
  CHECK_INT(store16(65504.0f, MPS_DTYPE_F16), 0x7bff);
  CHECK_INT(store16(65519.0f, MPS_DTYPE_F16), 0x7bff);
  CHECK_INT(store16(65520.0f, MPS_DTYPE_F16), 0x7c00);
  CHECK_INT(store16(-0.0f, MPS_DTYPE_F16), 0x8000);
  CHECK_INT(store16(ldexpf(1, -25), MPS_DTYPE_F16), 0);
  CHECK_INT(store16(nextafterf(ldexpf(1, -25), 1), MPS_DTYPE_F16), 1);
  CHECK((store16(NAN, MPS_DTYPE_F16) & 0x7fff) > 0x7c00);
  CHECK((store16(NAN, MPS_DTYPE_BF16) & 0x7fff) > 0x7f80);
  CHECK_INT(store16(INFINITY, MPS_DTYPE_BF16), 0x7f80);
}

static void scalars_convert(void) {
  CHECK_INT(mps_scalar_to_int64(mps_scalar_float(-3.9)), -3);
  CHECK_INT(mps_scalar_to_int64(mps_scalar_float(1e30)), INT64_MAX);
  CHECK_INT(mps_scalar_to_int64(mps_scalar_float(-1e30)), INT64_MIN);
  CHECK_INT(mps_scalar_to_int64(mps_scalar_float(NAN)), 0);
  CHECK_INT(mps_scalar_to_int64(mps_scalar_uint(UINT64_MAX)), INT64_MAX);
  CHECK_INT(mps_scalar_to_int64(mps_scalar_bool(true)), 1);
  CHECK(mps_scalar_to_double(mps_scalar_uint(UINT64_MAX)) == 18446744073709551616.0);
  CHECK(mps_scalar_to_double(mps_scalar_complex(2.5, 7)) == 2.5);
}

static void scalars_store(void) {
  uint8_t byte;
  int64_t wide;
  uint64_t wide_unsigned;
  float real, pair[2];
  mps_scalar_store(mps_scalar_int(257 - 512), MPS_DTYPE_U8, &byte);
  CHECK_INT(byte, 1); /* wraps */
  mps_scalar_store(mps_scalar_complex(0, 1), MPS_DTYPE_BOOL, &byte);
  CHECK_INT(byte, 1);
  mps_scalar_store(mps_scalar_float(NAN), MPS_DTYPE_BOOL, &byte);
  CHECK_INT(byte, 1);
  mps_scalar_store(mps_scalar_float(0.5), MPS_DTYPE_BOOL, &byte);
  CHECK_INT(byte, 1);
  mps_scalar_store(mps_scalar_int((INT64_C(1) << 53) + 1), MPS_DTYPE_I64, &wide);
  CHECK_INT(wide, (INT64_C(1) << 53) + 1); /* not by way of double */
  mps_scalar_store(mps_scalar_uint(UINT64_MAX - 1), MPS_DTYPE_U64, &wide_unsigned);
  CHECK(wide_unsigned == UINT64_MAX - 1);
  mps_scalar_store(mps_scalar_float(1e19), MPS_DTYPE_U64, &wide_unsigned);
  CHECK(wide_unsigned == UINT64_C(10000000000000000000));
  mps_scalar_store(mps_scalar_int((INT64_C(1) << 54) + (INT64_C(1) << 30) + 1), MPS_DTYPE_F32, &real);
  CHECK(real == (float)((INT64_C(1) << 54) + (INT64_C(1) << 30) + 1)); /* one rounding */
  mps_scalar_store(mps_scalar_complex(1.5, -2.5), MPS_DTYPE_C64, pair);
  CHECK(pair[0] == 1.5f && pair[1] == -2.5f);
  mps_scalar_store(mps_scalar_float(3), MPS_DTYPE_C64, pair);
  CHECK(pair[0] == 3.0f && pair[1] == 0.0f);
  uint16_t halves[2];
  mps_scalar_store(mps_scalar_complex(1, -2), MPS_DTYPE_C32, halves);
  CHECK_INT(halves[0], 0x3c00);
  CHECK_INT(halves[1], 0xc000);
}

static void contiguous_descriptors(void) {
  mps_tensor t = {0};
  mps_tensor_set_contiguous(&t, 3, (const int64_t[]){2, 3, 4});
  CHECK_INT(t.strides[0], 12);
  CHECK_INT(mps_tensor_element_count(&t), 24);
  CHECK(mps_tensor_is_contiguous(&t));
  t.strides[0] = 13;
  CHECK(!mps_tensor_is_contiguous(&t));
  t.sizes[0] = 1;
  CHECK(mps_tensor_is_contiguous(&t));
  t.sizes[1] = 0;
  t.strides[2] = 99;
  CHECK(mps_tensor_is_contiguous(&t));
  mps_tensor_set_contiguous(&t, 0, NULL);
  CHECK_INT(mps_tensor_element_count(&t), 1);
  CHECK(mps_tensor_is_contiguous(&t));
}

static void check_finds_what_is_outside(void) {
  mps_buffer buffer = {.length = 100};
  mps_tensor t = {.buffer = &buffer, .dtype = MPS_DTYPE_F32};
  mps_tensor_set_contiguous(&t, 2, (const int64_t[]){5, 5});
  CHECK_OK(mps_tensor_check(&t, "input"));
  t.offset = 4;
  CHECK_STATUS(mps_tensor_check(&t, "input"), MPS_STATUS_INVALID_ARGUMENT);
  CHECK(strstr(mps_error_message(), "input") != NULL);
  t.offset = 0;
  t.strides[0] = -5;
  CHECK_STATUS(mps_tensor_check(&t, "input"), MPS_STATUS_INVALID_ARGUMENT);
  t.offset = 80; /* a flipped view starts at the last row */
  CHECK_OK(mps_tensor_check(&t, "input"));
  t.strides[0] = INT64_MAX / 2;
  CHECK_STATUS(mps_tensor_check(&t, "input"), MPS_STATUS_INVALID_ARGUMENT);
  t.sizes[1] = 0;
  CHECK_OK(mps_tensor_check(&t, "input"));
  t.sizes[1] = -1;
  CHECK_STATUS(mps_tensor_check(&t, "input"), MPS_STATUS_INVALID_ARGUMENT);
  mps_tensor_set_contiguous(&t, 1, (const int64_t[]){1});
  t.offset = UINT64_MAX - 3;
  CHECK_STATUS(mps_tensor_check(&t, "input"), MPS_STATUS_INVALID_ARGUMENT);
  t.offset = 0;
  t.dtype = (mps_dtype)50;
  CHECK_STATUS(mps_tensor_check(&t, "input"), MPS_STATUS_INVALID_ARGUMENT);
  t.dtype = MPS_DTYPE_F32;
  t.rank = 17;
  CHECK_STATUS(mps_tensor_check(&t, "input"), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(mps_tensor_check(NULL, "input"), MPS_STATUS_INVALID_ARGUMENT);
  mps_tensor constant = {.dtype = MPS_DTYPE_I64, .constant = mps_scalar_int(3)};
  mps_tensor_set_contiguous(&constant, 2, (const int64_t[]){INT64_C(1) << 32, INT64_C(1) << 32});
  CHECK_STATUS(mps_tensor_check(&constant, "input"), MPS_STATUS_INVALID_ARGUMENT); /* 2^64 elements */
  constant.sizes[1] = 1;
  CHECK_OK(mps_tensor_check(&constant, "input"));
}

int main(void) {
  RUN(dtypes);
  RUN(reduced_precision_rounds_to_nearest_even);
  RUN(scalars_convert);
  RUN(scalars_store);
  RUN(contiguous_descriptors);
  RUN(check_finds_what_is_outside);
  return test_end();
}
