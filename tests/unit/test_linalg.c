/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_linalg: how factorisations hand their operands to a provider (here one that only looks and marks), and what they say without one.
 */
#include "openmps/dense.h"
#include "openmps/ops.h"
#include "test.h"

static mps_device *device;
static mps_stream *stream;
static mps_dense_factorization seen;

static bool takes(mps_dense_kind kind, mps_dtype dtype) { return kind >= MPS_DENSE_CHOLESKY && dtype == MPS_DTYPE_F32; }

/* "Factors" by negating the first column of each matrix; info is the item's number. */
static mps_status factorize(const mps_dense_factorization *call) {
  seen = *call;
  const mps_dense_matrix *from = &call->from, *to = &call->to;
  for (int64_t i = 0; i < call->batch; i++) {
    float own[9], *a = call->a.data != NULL ? (float *)call->a.data + i * call->a.batch_stride : own;
    for (int64_t e = 0; from->data != NULL && e < 9; e++)
      a[e] = ((float *)from->data)[i * from->batch_stride + e % 3 * from->row_stride + e / 3 * from->column_stride];
    for (int64_t r = 0; r < call->n; r++) a[r] = -a[r];
    for (int64_t e = 0; to->data != NULL && e < 9; e++)
      ((float *)to->data)[i * to->batch_stride + e % 3 * to->row_stride + e / 3 * to->column_stride] = a[e];
    if (call->info.data != NULL) ((int32_t *)call->info.data)[i * call->info.batch_stride] = (int32_t)i;
  }
  return MPS_STATUS_OK;
}

static const mps_dense_provider provider = {.name = "test", .takes = takes, .factorize = factorize};

static mps_tensor tensor(mps_dtype dtype, uint32_t rank, const int64_t *sizes) {
  mps_tensor t = {.dtype = dtype};
  mps_tensor_set_contiguous(&t, rank, sizes);
  CHECK_OK(mps_buffer_create(device, stream, 256, &t.buffer));
  memset(mps_buffer_contents(t.buffer), 0, 256);
  return t;
}

static void make_columns(mps_tensor *t) {
  t->strides[t->rank - 2u] = 1;
  t->strides[t->rank - 1u] = t->sizes[t->rank - 2u];
}

static void cholesky(const mps_tensor *from, const mps_tensor *to, const mps_tensor *info, bool in_place) {
  float *values = mps_buffer_contents(from->buffer);
  for (int64_t i = 0; i < 18; i++) values[i] = (float)(i + 1);
  CHECK_OK(mps_op_linalg_cholesky(stream, from, true, to, info));
  CHECK_OK(mps_stream_synchronize(stream));
  CHECK(seen.kind == MPS_DENSE_CHOLESKY && seen.batch == 2 && seen.n == 3 && seen.upper);
  CHECK(seen.info.batch_stride == 1 && seen.from.data == mps_buffer_contents(from->buffer) && seen.from.row_stride == from->strides[1]);
  if (in_place) CHECK(seen.a.leading == 3 && seen.a.batch_stride == 9 && seen.a.data == mps_buffer_contents(to->buffer) && seen.to.data == NULL);
  if (!in_place) CHECK(seen.a.data == NULL && seen.to.data == mps_buffer_contents(to->buffer) && seen.to.column_stride == to->strides[2]);
  const float *results = mps_buffer_contents(to->buffer);
  for (int64_t i = 0; i < 2; i++)
    for (int64_t r = 0; r < 3; r++)
      for (int64_t c = 0; c < 3; c++) {
        float expected = (float)(i * 9 + r * 3 + c + 1);
        CHECK(results[i * to->strides[0] + r * to->strides[1] + c * to->strides[2]] == (c == 0 ? -expected : expected));
      }
  CHECK(((const int32_t *)mps_buffer_contents(info->buffer))[1] == 1);
}

static void layouts(void) {
  const int64_t sizes[] = {2, 3, 3};
  mps_tensor from = tensor(MPS_DTYPE_F32, 3, sizes), rows = tensor(MPS_DTYPE_F32, 3, sizes), columns = rows, info = tensor(MPS_DTYPE_I32, 1, sizes);
  make_columns(&columns);
  mps_dense_set_provider(device, &provider);
  cholesky(&from, &columns, &info, true);
  cholesky(&from, &rows, &info, false);
  mps_buffer_release(from.buffer);
  mps_buffer_release(rows.buffer);
  mps_buffer_release(info.buffer);
}

static void triangles_in_rows_are_not_copied(void) {
  const int64_t sizes[] = {3, 3};
  mps_tensor a = tensor(MPS_DTYPE_F32, 2, sizes), b = tensor(MPS_DTYPE_F32, 2, sizes), out = tensor(MPS_DTYPE_F32, 2, sizes), by_columns = out;
  make_columns(&by_columns);
  mps_dense_set_provider(device, &provider);
  CHECK_OK(mps_op_linalg_solve_triangular(stream, &a, &b, true, true, false, false, &by_columns));
  CHECK_OK(mps_stream_synchronize(stream));
  CHECK(seen.a.data == mps_buffer_contents(a.buffer) && seen.b.data == mps_buffer_contents(out.buffer));
  CHECK(seen.is_left && !seen.upper && seen.transpose == MPS_DENSE_TRANSPOSED);
  /* With the solution in rows too it is the transposed system from the right. */
  CHECK_OK(mps_op_linalg_solve_triangular(stream, &a, &b, true, true, false, false, &out));
  CHECK_OK(mps_stream_synchronize(stream));
  CHECK(seen.a.data == mps_buffer_contents(a.buffer) && seen.b.data == mps_buffer_contents(out.buffer));
  CHECK(!seen.is_left && !seen.upper && seen.transpose == MPS_DENSE_PLAIN);
  mps_buffer_release(a.buffer);
  mps_buffer_release(b.buffer);
  mps_buffer_release(out.buffer);
}

static void refusals(void) {
  const int64_t sizes[] = {3, 3}, wide[] = {2, 3};
  mps_tensor a = tensor(MPS_DTYPE_F32, 2, sizes), info = tensor(MPS_DTYPE_I32, 0, sizes), half = tensor(MPS_DTYPE_F16, 2, sizes);
  mps_tensor oblong = tensor(MPS_DTYPE_F32, 2, wide);
  CHECK_STATUS(mps_op_linalg_cholesky(stream, &half, false, &half, &info), MPS_STATUS_NOT_IMPLEMENTED);
  CHECK_STATUS(mps_op_linalg_cholesky(stream, &oblong, false, &oblong, &info), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(mps_op_linalg_cholesky(stream, &a, false, &a, &a), MPS_STATUS_INVALID_ARGUMENT);
  mps_dense_set_provider(device, NULL);
  CHECK_STATUS(mps_op_linalg_cholesky(stream, &a, false, &a, &info), MPS_STATUS_NOT_IMPLEMENTED);
  mps_buffer_release(a.buffer);
  mps_buffer_release(info.buffer);
  mps_buffer_release(half.buffer);
  mps_buffer_release(oblong.buffer);
}

int main(void) {
  if (mps_device_open("host", &device) != MPS_STATUS_OK) {
    fprintf(stderr, "no device: %s\n", mps_error_message());
    return 1;
  }
  stream = mps_stream_default(device);
  RUN(layouts);
  RUN(triangles_in_rows_are_not_copied);
  RUN(refusals);
  mps_device_release(device);
  return test_end();
}
