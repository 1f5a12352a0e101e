/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_gemm: plans of matrix products, and OpenMPS's own kernels (no provider) against sums in double and in wrapped integers.
 */
#include <complex.h>
#include <math.h>
#include <stdlib.h>

#include "openmps/dense.h"
#include "openmps/ops.h"
#include "ops/gemm.h"
#include "test.h"

static mps_device *device;
static mps_stream *stream;

/* A matrix of `rows` x `columns` with any strides, in a buffer of its own. */
static mps_tensor matrix(mps_dtype dtype, int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride) {
  size_t elements = (size_t)(rows * row_stride + columns * column_stride + 1);
  mps_tensor t = {.dtype = dtype, .rank = 2, .sizes = {rows, columns}, .strides = {row_stride, column_stride}};
  CHECK_OK(mps_buffer_create(device, stream, elements * mps_dtype_size(dtype), &t.buffer));
  memset(mps_buffer_contents(t.buffer), 0xFF, mps_buffer_length(t.buffer));
  return t;
}

static size_t at(const mps_tensor *t, int64_t row, int64_t column) {
  return (size_t)(t->offset / mps_dtype_size(t->dtype)) + (size_t)(row * t->strides[0] + column * t->strides[1]);
}

static uint32_t state = 1;
static int32_t next(void) {
  state = state * 1664525u + 1013904223u;
  return (int32_t)(state >> 8) - (1 << 23);
}

static void fill_floats(const mps_tensor *t) {
  float *values = mps_buffer_contents(t->buffer);
  for (int64_t r = 0; r < t->sizes[0]; r++)
    for (int64_t c = 0; c < t->sizes[1]; c++) values[at(t, r, c)] = (float)next() / (float)(1 << 23);
}

static void check_floats(int64_t m, int64_t n, int64_t k, const int64_t strides[3][2], double alpha, double beta) {
  mps_tensor a = matrix(MPS_DTYPE_F32, m, k, strides[0][0], strides[0][1]), b = matrix(MPS_DTYPE_F32, k, n, strides[1][0], strides[1][1]);
  mps_tensor out = matrix(MPS_DTYPE_F32, m, n, strides[2][0], strides[2][1]), bias = matrix(MPS_DTYPE_F32, 1, n, n, 1);
  fill_floats(&a);
  fill_floats(&b);
  if (beta != 0.0) fill_floats(&bias); /* NaN otherwise: must not be read */
  CHECK_OK(mps_op_addmm(stream, &bias, &a, &b, mps_scalar_float(beta), mps_scalar_float(alpha), &out));
  CHECK_OK(mps_stream_synchronize(stream));
  const float *pa = mps_buffer_contents(a.buffer), *pb = mps_buffer_contents(b.buffer), *po = mps_buffer_contents(out.buffer),
              *pbias = mps_buffer_contents(bias.buffer);
  double worst = 0.0;
  for (int64_t r = 0; r < m; r++)
    for (int64_t c = 0; c < n; c++) {
      double sum = beta != 0.0 ? beta * (double)pbias[c] : 0.0, size = fabs(sum);
      for (int64_t i = 0; i < k; i++) {
        double term = alpha * (double)pa[at(&a, r, i)] * (double)pb[at(&b, i, c)];
        sum += term;
        size += fabs(term);
      }
      double error = fabs((double)po[at(&out, r, c)] - sum) / (size + 1e-30);
      worst = error <= worst ? worst : error;
    }
  CHECK(worst < 1e-6);
  if (!(worst < 1e-6)) fprintf(stderr, "  %lldx%lldx%lld: %g\n", (long long)m, (long long)n, (long long)k, worst);
  mps_buffer_release(a.buffer);
  mps_buffer_release(b.buffer);
  mps_buffer_release(out.buffer);
  mps_buffer_release(bias.buffer);
}

static void f32_of_any_shape_and_layout(void) {
  static const int64_t shapes[][3] = {{1, 1, 1}, {5, 7, 3}, {17, 65, 129}, {64, 64, 64}, {100, 3, 200}, {3, 100, 70}, {1, 200, 65}, {200, 1, 66}, {2, 3, 0}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    int64_t m = shapes[i][0], n = shapes[i][1], k = shapes[i][2];
    const int64_t plain[3][2] = {{k, 1}, {n, 1}, {n, 1}}, turned[3][2] = {{1, m}, {1, k}, {1, m}}, spread[3][2] = {{2 * k, 2}, {3 * n, 3}, {2 * n + 1, 2}};
    const int64_t expanded[3][2] = {{0, 1}, {1, 0}, {n + 5, 1}};
    check_floats(m, n, k, plain, 1.0, 0.0);
    check_floats(m, n, k, turned, 0.5, 1.0);
    check_floats(m, n, k, spread, 1.0, -2.0);
    check_floats(m, n, k, expanded, -1.0, 1.0);
  }
}

static void integers_wrap(void) {
  int64_t m = 19, n = 70, k = 130;
  mps_tensor a = matrix(MPS_DTYPE_I8, m, k, k, 1), b = matrix(MPS_DTYPE_I8, k, n, n, 1), out = matrix(MPS_DTYPE_I8, m, n, n, 1);
  mps_tensor a64 = matrix(MPS_DTYPE_I64, m, k, k, 1), b64 = matrix(MPS_DTYPE_I64, k, n, 1, k), out64 = matrix(MPS_DTYPE_I64, m, n, n, 1);
  int8_t *pa = mps_buffer_contents(a.buffer), *pb = mps_buffer_contents(b.buffer), *po = mps_buffer_contents(out.buffer);
  int64_t *qa = mps_buffer_contents(a64.buffer), *qb = mps_buffer_contents(b64.buffer), *qo = mps_buffer_contents(out64.buffer);
  for (int64_t i = 0; i < m * k; i++) pa[i] = (int8_t)next(), qa[i] = (int64_t)next() << 40;
  for (int64_t i = 0; i < k * n; i++) pb[i] = (int8_t)next(), qb[i] = next();
  CHECK_OK(mps_op_mm(stream, &a, &b, &out));
  CHECK_OK(mps_op_mm(stream, &a64, &b64, &out64));
  CHECK_OK(mps_stream_synchronize(stream));
  bool equal = true, equal64 = true;
  for (int64_t r = 0; r < m; r++)
    for (int64_t c = 0; c < n; c++) {
      uint8_t sum = 0;
      uint64_t sum64 = 0;
      for (int64_t i = 0; i < k; i++) {
        sum = (uint8_t)(sum + (uint8_t)((uint8_t)pa[r * k + i] * (uint8_t)pb[i * n + c]));
        sum64 += (uint64_t)qa[r * k + i] * (uint64_t)qb[i + c * k];
      }
      equal = equal && (uint8_t)po[r * n + c] == sum;
      equal64 = equal64 && (uint64_t)qo[r * n + c] == sum64;
    }
  CHECK(equal);
  CHECK(equal64);
  mps_tensor *all[] = {&a, &b, &out, &a64, &b64, &out64};
  for (int i = 0; i < 6; i++) mps_buffer_release(all[i]->buffer);
}

static void complex_numbers_conjugate(void) {
  mps_tensor a = matrix(MPS_DTYPE_C64, 2, 3, 3, 1), b = matrix(MPS_DTYPE_C64, 3, 2, 2, 1), out = matrix(MPS_DTYPE_C64, 2, 2, 2, 1);
  float *pa = mps_buffer_contents(a.buffer), *pb = mps_buffer_contents(b.buffer), *po = mps_buffer_contents(out.buffer);
  for (int i = 0; i < 12; i++) pa[i] = (float)(i + 1), pb[i] = (float)(7 - i);
  a.flags = MPS_TENSOR_CONJUGATE;
  out.flags = MPS_TENSOR_CONJUGATE | MPS_TENSOR_NEGATIVE; /* what is stored is -conj(result) */
  mps_tensor zero = {.dtype = MPS_DTYPE_C64};
  CHECK_OK(mps_op_addmm(stream, &zero, &a, &b, mps_scalar_int(0), mps_scalar_complex(1.0, 2.0), &out));
  CHECK_OK(mps_stream_synchronize(stream));
  for (int r = 0; r < 2; r++)
    for (int c = 0; c < 2; c++) {
      double complex sum = 0.0;
      for (int i = 0; i < 3; i++) {
        const float *x = pa + 2 * (r * 3 + i), *y = pb + 2 * (i * 2 + c);
        sum += CMPLX((double)x[0], -(double)x[1]) * CMPLX((double)y[0], (double)y[1]);
      }
      sum = -conj(sum * CMPLX(1.0, 2.0));
      CHECK(fabs((double)po[2 * (r * 2 + c)] - creal(sum)) < 1e-3 && fabs((double)po[2 * (r * 2 + c) + 1] - cimag(sum)) < 1e-3);
    }
  mps_buffer_release(a.buffer);
  mps_buffer_release(b.buffer);
  mps_buffer_release(out.buffer);
}

static void output_may_be_an_input(void) {
  mps_tensor a = matrix(MPS_DTYPE_F32, 40, 40, 40, 1), copy = matrix(MPS_DTYPE_F32, 40, 40, 40, 1), out = matrix(MPS_DTYPE_F32, 40, 40, 40, 1);
  fill_floats(&a);
  memcpy(mps_buffer_contents(copy.buffer), mps_buffer_contents(a.buffer), 6400);
  CHECK_OK(mps_op_mm(stream, &copy, &copy, &out));
  CHECK_OK(mps_op_mm(stream, &a, &a, &a));
  CHECK_OK(mps_stream_synchronize(stream));
  CHECK(memcmp(mps_buffer_contents(a.buffer), mps_buffer_contents(out.buffer), 6400) == 0);
  mps_buffer_release(a.buffer);
  mps_buffer_release(copy.buffer);
  mps_buffer_release(out.buffer);
}

static void errors_name_the_shapes(void) {
  mps_tensor a = matrix(MPS_DTYPE_F32, 2, 3, 3, 1), h = matrix(MPS_DTYPE_F16, 3, 2, 2, 1), t = matrix(MPS_DTYPE_BOOL, 2, 2, 2, 1);
  CHECK_STATUS(mps_op_mm(stream, &a, &a, &a), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_STRING(mps_error_message(), "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)");
  CHECK_STATUS(mps_op_mm(stream, &a, &h, &a), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_STRING(mps_error_message(), "expected m1 and m2 to have the same dtype, but got: float != c10::Half");
  CHECK_STATUS(mps_op_mm(stream, &t, &t, &t), MPS_STATUS_NOT_IMPLEMENTED);
  mps_buffer_release(a.buffer);
  mps_buffer_release(h.buffer);
  mps_buffer_release(t.buffer);
}

/* ---- plans: no device needed ---- */

static void plan_resolves_flags_and_factors(void) {
  mps_gemm g = {.dtype = MPS_DTYPE_F32, .batch = 1, .m = 2, .n = 2, .k = 2, .alpha = mps_scalar_float(2.0), .beta = mps_scalar_int(0), .has_bias = true};
  g.a.flags = MPS_TENSOR_NEGATIVE;
  mps_gemm_plan(&g);
  CHECK(g.alpha.real == -2.0);
  CHECK(!g.has_bias);
  CHECK_INT(g.k, 2);
  g.alpha = mps_scalar_float(0.0);
  mps_gemm_plan(&g);
  CHECK_INT(g.k, 0);
}

static void plan_joins_a_tall_batch(void) {
  mps_gemm g = {.dtype = MPS_DTYPE_F32, .batch = 3, .m = 4, .n = 5, .k = 6, .alpha = mps_scalar_int(1), .beta = mps_scalar_int(0)};
  g.a = (mps_gemm_operand){.strides = {24, 6, 1}};
  g.b = (mps_gemm_operand){.strides = {0, 5, 1}};
  g.out = (mps_gemm_operand){.strides = {20, 5, 1}};
  mps_gemm_plan(&g);
  CHECK_INT(g.batch, 1);
  CHECK_INT(g.m, 12);
  CHECK_INT(g.a.strides[1], 6);
  g.batch = 3;
  g.m = 4;
  g.a.strides[0] = 30;
  g.out.strides[0] = 20;
  mps_gemm_plan(&g);
  CHECK_INT(g.batch, 3);
}

static void many_small_products_are_the_kernels(void) {
  mps_gemm g = {.dtype = MPS_DTYPE_F32, .batch = 4, .m = 40, .n = 3, .k = 3};
  CHECK(mps_gemm_is_small(&g));
  g.dtype = MPS_DTYPE_I32;
  CHECK(!mps_gemm_is_small(&g));
  g.dtype = MPS_DTYPE_BF16;
  g.k = 50; /* 6,000 multiply-adds: for halves still small */
  CHECK(mps_gemm_is_small(&g));
  g.dtype = MPS_DTYPE_F32;
  CHECK(!mps_gemm_is_small(&g));
  g.k = 3;
  g.batch = 3;
  CHECK(!mps_gemm_is_small(&g));
  g.batch = 4;
  g.n = 1; /* a product with a vector */
  CHECK(!mps_gemm_is_small(&g));
  g.n = 17;
  g.m = 17;
  CHECK(!mps_gemm_is_small(&g));
}

int main(void) {
  RUN(plan_resolves_flags_and_factors);
  RUN(plan_joins_a_tall_batch);
  RUN(many_small_products_are_the_kernels);
  if (mps_device_open("host", &device) != MPS_STATUS_OK) {
    fprintf(stderr, "no device: %s\n", mps_error_message());
    return 1;
  }
  stream = mps_stream_default(device);
  RUN(f32_of_any_shape_and_layout);
  RUN(integers_wrap);
  RUN(complex_numbers_conjugate);
  RUN(output_may_be_an_input);
  RUN(errors_name_the_shapes);
  mps_device_release(device);
  return test_end();
}
