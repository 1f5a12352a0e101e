/* SPDX-License-Identifier: BSD-3-Clause
 *
 * dense: the provider of dense maths (gemm, convolution, matrix factorisations), as on Apple a vendor's library.
 *
 * A provider works on addresses: a step calls it, mostly on the stream's executor thread, when the operands are ready. It must not touch
 * OpenMPS objects, must not wait for the caller, and turns its own failures into PROVIDER_ERROR with a text. What a device's provider
 * does not take (or where there is none), OpenMPS's own kernels do; factorisations need one.
 */
#ifndef OPENMPS_DENSE_H
#define OPENMPS_DENSE_H

#include "openmps/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An operand of a gemm. Strides count elements; 0 broadcasts. */
typedef struct mps_dense_matrix {
  void *data; /* address of element 0 */
  int64_t batch_stride, row_stride, column_stride;
  bool conjugate; /* the values are the complex conjugates of what is stored; never set for out */
} mps_dense_matrix;

/* out = beta * bias + alpha * (a @ b) for each of `batch` (m,k) x (k,n) products, all operands of one dtype. k may be 0; batch, m
 * and n are not. A bias whose data is NULL (beta is 0 then) is never read. bias may be out itself; out overlaps nothing else, nor itself.
 * Integers wrap; f16 and bf16 accumulate in f32 or better and are rounded once. */
typedef struct mps_dense_gemm {
  mps_dtype dtype;
  int64_t batch, m, n, k;
  mps_dense_matrix a, b, bias, out;
  mps_scalar alpha, beta;
} mps_dense_gemm;

#define MPS_CONVOLUTION_MAX_DIMENSIONS 3

/* An operand of a convolution: (N, C, spatial...), of the call's dtype. Strides count elements. */
typedef struct mps_dense_operand {
  void *data; /* address of element 0; NULL: absent */
  int64_t sizes[MPS_CONVOLUTION_MAX_DIMENSIONS + 2];
  int64_t strides[MPS_CONVOLUTION_MAX_DIMENSIONS + 2];
} mps_dense_operand;

/* 1 to 3 spatial dimensions. weight is (out, in / groups, spatial...), transposed: (in, out / groups, spatial...). No operand is empty. */
typedef struct mps_dense_convolution {
  mps_dtype dtype;
  uint32_t dimensions;
  mps_dense_operand input, weight, bias, out; /* bias: sizes[0], strides[0] */
  int64_t stride[MPS_CONVOLUTION_MAX_DIMENSIONS], padding[MPS_CONVOLUTION_MAX_DIMENSIONS], dilation[MPS_CONVOLUTION_MAX_DIMENSIONS];
  int64_t output_padding[MPS_CONVOLUTION_MAX_DIMENSIONS];
  int64_t groups;
  bool transposed;
} mps_dense_convolution;

/* Gradients of a convolution. forward.out is grad_output; a gradient whose data is NULL is not wanted. Values are not conjugated: the
 * caller hands conjugated copies for complex dtypes. */
typedef struct mps_dense_convolution_backward {
  mps_dense_convolution forward;
  mps_dense_operand grad_input, grad_weight, grad_bias;
} mps_dense_convolution_backward;

typedef enum mps_dense_kind {
  MPS_DENSE_GEMM,
  MPS_DENSE_CONVOLUTION,
  MPS_DENSE_CONVOLUTION_BACKWARD,
  /* Factorisations (mps_dense_factorization says which operands each has) */
  MPS_DENSE_CHOLESKY,
  MPS_DENSE_CHOLESKY_INVERSE,
  MPS_DENSE_CHOLESKY_SOLVE,
  MPS_DENSE_FACTOR_LU,
  MPS_DENSE_SOLVE_LU,
  MPS_DENSE_SOLVE_TRIANGULAR,
  MPS_DENSE_FACTOR_LDL,
  MPS_DENSE_SOLVE_LDL,
  MPS_DENSE_FACTOR_QR,
  MPS_DENSE_FORM_Q,
  MPS_DENSE_MULTIPLY_Q,
  MPS_DENSE_SVD,
  MPS_DENSE_EIGEN_HERMITIAN,
  MPS_DENSE_EIGEN,
  MPS_DENSE_LEAST_SQUARES,
} mps_dense_kind;

/* A matrix of each batch item, column-major: element (row, column) of item i at data[i * batch_stride + column * leading + row]. A vector
 * is one column. Strides count elements; data NULL: absent. */
typedef struct mps_dense_columns {
  void *data;
  int64_t leading, batch_stride;
} mps_dense_columns;

typedef enum mps_dense_transpose { MPS_DENSE_PLAIN, MPS_DENSE_TRANSPOSED, MPS_DENSE_ADJOINT } mps_dense_transpose;

/* LAPACK's drivers of least squares. */
typedef enum mps_dense_driver { MPS_DENSE_GELS, MPS_DENSE_GELSY, MPS_DENSE_GELSD, MPS_DENSE_GELSS } mps_dense_driver;

/* A matrix factorisation, or what is done with one, for each of `batch` items; f32 or c64. m, n and k may be 0. Operands by kind
 * (f: `dtype`, r: its real type; < in, > out, <> changed in place; sizes are rows x columns):
 *
 * CHOLESKY            a <> f n x n: the factor, of the `upper` or lower triangle, the other one zeros; info >
 * CHOLESKY_INVERSE    a <> f n x n: a factor becomes the inverse of what it is a factor of, whole; info >
 * CHOLESKY_SOLVE      a < f n x n: a factor; b <> f n x k: right-hand sides become solutions
 * FACTOR_LU           a <> f m x n; pivots > i32 min(m, n), from 1; info >
 * SOLVE_LU            a < f n x n, pivots <; b <> f n x k, or k x n unless `is_left`
 * SOLVE_TRIANGULAR    a < f n x n, its `upper` or lower triangle, `unit`: ones on the diagonal; b as above
 * FACTOR_LDL          a <> f n x n (lower triangle; `hermitian`); pivots > i32 n as LAPACK writes them; info >
 * SOLVE_LDL           a < f n x n, pivots <; b <> f n x k
 * FACTOR_QR           a <> f m x n: R and reflectors; values > f min(m, n): their factors
 * FORM_Q              a <> f m x n: the first k columns are reflectors, becomes the first n columns of Q; values < f k
 * MULTIPLY_Q          a < f m x k (n x k unless `is_left`), values < f k; b <> f m x n becomes op(Q) b or b op(Q)
 * SVD                 a <> f m x n, destroyed; values > r min(m, n); unless absent left > f m x m, right > f n x n (V^H), without
 *                     `full` only min(m, n) columns or rows of them; info >
 * EIGEN_HERMITIAN     a <> f n x n, its `upper` or lower triangle, becomes the vectors when `vectors`; values > r n; info >
 * EIGEN               a <> f n x n, destroyed; values > c64 n; left (absent: not wanted) > c64 n x n: right eigenvectors; info >
 * LEAST_SQUARES       a <> f m x n, destroyed; b <> f max(m, n) x k; by `driver`, singular values below `tolerance` times the largest
 *                     count as 0; unless absent values > r min(m, n), ranks > i64; info >
 *
 * CHOLESKY and FACTOR_LU may be given `from`, memory of any strides that holds a before the call, and instead of a (absent then) `to`, where it
 * goes. from and to are the same memory or do not overlap.
 *
 * info (i32, one an item) is LAPACK's: 0 or how it failed. */
typedef struct mps_dense_factorization {
  mps_dense_kind kind;
  mps_dtype dtype;
  int64_t batch, m, n, k;
  mps_dense_columns a, b, left, right, values, pivots, ranks, info;
  mps_dense_matrix from, to; /* data NULL: absent */
  mps_dense_transpose transpose; /* of op(a) in SOLVE_LU, SOLVE_TRIANGULAR; of Q in MULTIPLY_Q (TRANSPOSED of a complex Q is the adjoint) */
  mps_dense_driver driver;
  bool upper, is_left, unit, hermitian, full, vectors;
  bool turned; /* SOLVE_LU: a is the transpose of the factors (never with ADJOINT of c64) */
  double tolerance;
} mps_dense_factorization;

typedef struct mps_dense_provider {
  const char *name;
  /* Which calls the provider takes. Asked when a call is encoded, on the caller's thread. */
  bool (*takes)(mps_dense_kind kind, mps_dtype dtype);
  mps_status (*gemm)(const mps_dense_gemm *call);
  mps_status (*convolution)(const mps_dense_convolution *call);
  mps_status (*convolution_backward)(const mps_dense_convolution_backward *call);
  mps_status (*factorize)(const mps_dense_factorization *call); /* kinds from CHOLESKY on; may be NULL */
  /* Which calls any thread may make: one that waits for the stream then makes them itself. NULL: none, all are the executor's. */
  bool (*anywhere)(mps_dense_kind kind, mps_dtype dtype);
} mps_dense_provider;

/* The provider of a device; the struct must live as long as the process. NULL takes it away: calls encoded from then on use OpenMPS's kernels. */
MPS_API void mps_dense_set_provider(mps_device *device, const mps_dense_provider *provider);
MPS_API const mps_dense_provider *mps_dense_get_provider(mps_device *device); /* may be NULL */

/* For providers, inside of a call only: runs function(context, i) for each i < count, on the device's workers and on the calling
 * thread, and returns when all are done. Pieces are claimed one by one, so a busy processor slows nobody else. */
MPS_API void mps_dense_parallel(uint32_t count, void (*function)(void *context, uint32_t index), void *context);
/* Threads that mps_dense_parallel may use, the calling one included. */
MPS_API uint32_t mps_dense_thread_count(void);

#define MPS_DENSE_MAX_PARAMETER_BYTES 4096

/* Any other dense call (a factorisation): runs `function(parameters)`, on the executor alone unless `anywhere`. `parameters` are copied (at
 * most MPS_DENSE_MAX_PARAMETER_BYTES); `buffers` are those that it touches. `label` lives for ever; `cost` is in nanoseconds on one core. */
MPS_API MPS_WARN_UNUSED mps_status mps_dense_call(mps_stream *stream, const char *label, mps_status (*function)(const void *parameters),
                                                  const void *parameters, uint32_t parameter_bytes, mps_buffer *const *buffers,
                                                  uint32_t buffer_count, bool anywhere, double cost);

#ifdef __cplusplus
}
#endif
#endif
