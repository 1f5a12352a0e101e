/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_sparse_plan: threads, strides and kernels of products of sparse matrices, worked out by hand.
 */
#include "ops/sparse_plan.h"
#include "tensors.h"
#include "test.h"

static void a_thread_for_each_row_and_block(void) {
  mps_sparse_plan p;
  mps_tensor columns = TENSOR(I64, 40), dense = TENSOR(F32, 100, 130), out = TENSOR(F32, 7, 130);
  mps_sparse_plan_product(&p, &columns, &dense, MPS_SPARSE_MEAN, false, &out);
  CHECK_INT(p.threads[0], 7);
  CHECK_INT(p.threads[1], 3); /* 64 + 64 + 2 */
  CHECK_INT(p.arguments.entries, 40);
  CHECK_INT(p.arguments.rows, 100);
  CHECK_INT(p.arguments.width, 130);
  CHECK_INT(p.arguments.row_stride, 130);
  CHECK_INT(p.arguments.column_stride, 1);
  CHECK_INT(p.arguments.reduction, MPS_SPARSE_MEAN);
  CHECK_INT(p.arguments.wants_places, 0);
}

static void kernels_by_reduction_and_dtype(void) {
  mps_sparse_plan p;
  mps_tensor columns = TENSOR(I64, 4), dense = TENSOR(F16, 3, 2), out = TENSOR(F16, 5, 2);
  mps_sparse_plan_product(&p, &columns, &dense, MPS_SPARSE_MAX, true, &out);
  CHECK_STRING(p.stem, "sparse_extremum");
  CHECK_STRING(p.suffix, "f16");
  CHECK_INT(p.arguments.wants_places, 1);
  mps_sparse_plan_product(&p, &columns, &dense, MPS_SPARSE_SUM, false, &out);
  CHECK_STRING(p.stem, "sparse_sum");
  CHECK_STRING(p.suffix, "f16");
  dense.dtype = out.dtype = MPS_DTYPE_I16; /* signs do not matter */
  mps_sparse_plan_product(&p, &columns, &dense, MPS_SPARSE_SUM, false, &out);
  CHECK_STRING(p.stem, "sparse_sum");
  CHECK_STRING(p.suffix, "u16");
  dense.dtype = out.dtype = MPS_DTYPE_BOOL;
  mps_sparse_plan_product(&p, &columns, &dense, MPS_SPARSE_SUM, false, &out);
  CHECK_STRING(p.suffix, "bool");
}

int main(void) {
  RUN(a_thread_for_each_row_and_block);
  RUN(kernels_by_reduction_and_dtype);
  return test_end();
}
