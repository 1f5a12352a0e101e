/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gemm: plan and encode one matrix product, by the device's provider or by kernels/gemm.metal.
 */
#include "ops/gemm.h"
#include "ops/operand.h"

#include <math.h>
#include <string.h>

#include "base/status.h"
#include "kernels/gemm.h"
#include "ops/dense.h"
#include "runtime/buffer.h"

/* Nanoseconds a multiply-add, on one core: the provider's and the kernel's. */
#define PROVIDER_NS 0.04
#define KERNEL_NS 0.2
/* The kernel for many small products: as many multiply-adds at most where a call of BLAS for each would take longer. */
#define SMALL_BATCH 4
#define SMALL_MACS 4096
#define SMALL_MACS_HALF 8192 /* halves are widened first */
#define SMALL_NS 0.3
#define OPERANDS 4

mps_gemm_operand mps_gemm_operand_of(const mps_tensor *tensor, int batch_dimension, int row_dimension, int column_dimension) {
  mps_gemm_operand operand = {.buffer = tensor->buffer, .offset = tensor->offset, .flags = tensor->flags, .constant = tensor->constant};
  const int dimensions[3] = {batch_dimension, row_dimension, column_dimension};
  for (int i = 0; i < 3; i++)
    operand.strides[i] = dimensions[i] < 0 || tensor->buffer == NULL ? 0 : tensor->strides[dimensions[i]];
  return operand;
}

/* ---- plan ---- */

static bool is_zero(mps_scalar scalar) {
  switch (scalar.kind) {
    case MPS_SCALAR_FLOAT: return scalar.real == 0.0;
    case MPS_SCALAR_COMPLEX: return scalar.real == 0.0 && scalar.imaginary == 0.0;
    default: return scalar.integer == 0;
  }
}

static mps_scalar negated(mps_scalar scalar) {
  switch (scalar.kind) {
    case MPS_SCALAR_FLOAT: scalar.real = -scalar.real; break;
    case MPS_SCALAR_COMPLEX:
      scalar.real = -scalar.real;
      scalar.imaginary = -scalar.imaginary;
      break;
    default:
      scalar.kind = MPS_SCALAR_INT;
      scalar.unsigned_integer = 0 - scalar.unsigned_integer;
  }
  return scalar;
}

/* The scalar as the dtype's arithmetic sees it: integers truncate floats. */
static mps_scalar in_dtype(mps_scalar scalar, mps_dtype dtype) {
  if (dtype == MPS_DTYPE_BOOL) return mps_scalar_int(is_zero(scalar) ? 0 : 1);
  if (mps_dtype_is_integral(dtype))
    return mps_scalar_int(scalar.kind == MPS_SCALAR_UINT ? (int64_t)scalar.unsigned_integer : mps_scalar_to_int64(scalar));
  if (mps_dtype_is_complex(dtype))
    return mps_scalar_complex(mps_scalar_to_double(scalar), scalar.kind == MPS_SCALAR_COMPLEX ? scalar.imaginary : 0.0);
  return mps_scalar_float(mps_scalar_to_double(scalar));
}

/* Strides of dimensions of size 1 do not matter: 0 makes comparisons simple. */
static void forget_strides(mps_gemm *g, mps_gemm_operand *operand, int64_t rows, int64_t columns) {
  if (g->batch == 1) operand->strides[0] = 0;
  if (rows == 1) operand->strides[1] = 0;
  if (columns == 1) operand->strides[2] = 0;
}

/* Rows of batch after batch lie at one distance. */
static bool is_tall(const mps_gemm *g, const mps_gemm_operand *operand) {
  return g->m == 1 || operand->strides[0] == g->m * operand->strides[1];
}

static void join_batch(mps_gemm *g) {
  if (g->batch == 1 || g->b.strides[0] != 0) return;
  if (!is_tall(g, &g->a) || !is_tall(g, &g->out) || (g->has_bias && !is_tall(g, &g->bias))) return;
  mps_gemm_operand *operands[] = {&g->a, &g->out, &g->bias};
  for (int i = 0; i < 3; i++) {
    if (g->m == 1) operands[i]->strides[1] = operands[i]->strides[0];
    operands[i]->strides[0] = 0;
  }
  g->m *= g->batch;
  g->batch = 1;
}

void mps_gemm_plan(mps_gemm *g) {
  g->alpha = in_dtype(g->alpha, g->dtype);
  g->beta = in_dtype(g->beta, g->dtype);
  if (!g->has_bias) g->beta = in_dtype(mps_scalar_int(0), g->dtype);
  if (is_zero(g->beta)) g->has_bias = false;
  if (is_zero(g->alpha)) g->k = 0;
  if (!g->has_bias) memset(&g->bias, 0, sizeof g->bias);

  bool flip_product = ((g->a.flags ^ g->b.flags ^ g->out.flags) & MPS_TENSOR_NEGATIVE) != 0;
  bool flip_bias = ((g->bias.flags ^ g->out.flags) & MPS_TENSOR_NEGATIVE) != 0;
  if (flip_product) g->alpha = negated(g->alpha);
  if (flip_bias && g->has_bias) g->beta = negated(g->beta);
  if (g->out.flags & MPS_TENSOR_CONJUGATE) {
    g->a.flags ^= MPS_TENSOR_CONJUGATE;
    g->b.flags ^= MPS_TENSOR_CONJUGATE;
    g->bias.flags ^= MPS_TENSOR_CONJUGATE;
    g->alpha.imaginary = -g->alpha.imaginary;
    g->beta.imaginary = -g->beta.imaginary;
  }
  uint32_t keep = mps_dtype_is_complex(g->dtype) ? (uint32_t)MPS_TENSOR_CONJUGATE : 0u;
  g->a.flags &= keep;
  g->b.flags &= keep;
  g->bias.flags &= keep;
  g->out.flags = 0;

  forget_strides(g, &g->a, g->m, g->k);
  forget_strides(g, &g->b, g->k, g->n);
  forget_strides(g, &g->bias, g->m, g->n);
  forget_strides(g, &g->out, g->m, g->n);
  join_batch(g);
}

/* ---- encode ---- */

typedef struct gemm_call {
  mps_status (*gemm)(const mps_dense_gemm *call);
  mps_dense_gemm call;
} gemm_call;

static mps_status run_call(const void *parameters) {
  const gemm_call *c = parameters;
  return c->gemm(&c->call);
}

static mps_dense_matrix matrix(const mps_gemm_operand *operand) {
  mps_dense_matrix m = {.batch_stride = operand->strides[0], .row_stride = operand->strides[1], .column_stride = operand->strides[2],
                        .conjugate = (operand->flags & MPS_TENSOR_CONJUGATE) != 0};
  if (operand->buffer != NULL) m.data = (char *)mps_buffer_contents(operand->buffer) + operand->offset;
  return m;
}

static mps_status encode_call(mps_stream *stream, const char *label, const mps_gemm *g, const mps_dense_provider *provider) {
  gemm_call c = {provider->gemm, {.dtype = g->dtype, .batch = g->batch, .m = g->m, .n = g->n, .k = g->k, .a = matrix(&g->a), .b = matrix(&g->b),
                                  .bias = matrix(&g->bias), .out = matrix(&g->out), .alpha = g->alpha, .beta = g->beta}};
  mps_buffer *buffers[OPERANDS] = {g->out.buffer};
  uint32_t count = 1;
  if (g->k > 0) buffers[count++] = g->a.buffer;
  if (g->k > 0) buffers[count++] = g->b.buffer;
  if (g->has_bias) buffers[count++] = g->bias.buffer;
  double cost = 150.0 + PROVIDER_NS * (double)g->batch * (double)g->m * (double)g->n * (double)(g->k + 1);
  return mps_dense_call(stream, label, run_call, &c, sizeof c, buffers, count, mps_dense_is_anywhere(provider, MPS_DENSE_GEMM, g->dtype), cost);
}

static void set_strides(int64_t to[3], const mps_gemm_operand *operand) { memcpy(to, operand->strides, sizeof operand->strides); }

/* The kernel makes rows of 64 outputs: few columns are better computed as the transposed product. */
static mps_gemm transposed(const mps_gemm *g) {
  mps_gemm t = *g;
  t.m = g->n;
  t.n = g->m;
  t.a = g->b;
  t.b = g->a;
  mps_gemm_operand *operands[] = {&t.a, &t.b, &t.bias, &t.out};
  for (int i = 0; i < OPERANDS; i++) {
    int64_t row = operands[i]->strides[1];
    operands[i]->strides[1] = operands[i]->strides[2];
    operands[i]->strides[2] = row;
  }
  return t;
}

static void arguments_of(const mps_gemm *g, mps_gemm_arguments *arguments) {
  *arguments = (mps_gemm_arguments){.m = g->m, .n = g->n, .k = g->k};
  set_strides(arguments->a_strides, &g->a);
  set_strides(arguments->b_strides, &g->b);
  set_strides(arguments->bias_strides, &g->bias);
  set_strides(arguments->out_strides, &g->out);
  if (mps_dtype_is_integral(g->dtype) || g->dtype == MPS_DTYPE_BOOL) {
    arguments->alpha_integer = g->alpha.integer;
    arguments->beta_integer = g->beta.integer;
  } else {
    arguments->alpha[0] = (float)g->alpha.real;
    arguments->alpha[1] = (float)g->alpha.imaginary;
    arguments->beta[0] = (float)g->beta.real;
    arguments->beta[1] = (float)g->beta.imaginary;
  }
  if (g->a.flags) arguments->flags |= MPS_GEMM_CONJUGATE_A;
  if (g->b.flags) arguments->flags |= MPS_GEMM_CONJUGATE_B;
  if (g->bias.flags) arguments->flags |= MPS_GEMM_CONJUGATE_BIAS;
  if (g->has_bias) arguments->flags |= MPS_GEMM_HAS_BIAS;
}

bool mps_gemm_is_small(const mps_gemm *g) {
  const bool half = g->dtype == MPS_DTYPE_F16 || g->dtype == MPS_DTYPE_BF16;
  if (!half && g->dtype != MPS_DTYPE_F32 && g->dtype != MPS_DTYPE_C64) return false;
  const int64_t most = half ? SMALL_MACS_HALF : SMALL_MACS, columns = g->m < g->n ? g->m : g->n;
  return g->batch >= SMALL_BATCH && columns > 1 && columns <= MPS_GEMM_SMALL_COLUMNS && g->m <= most && g->n <= most && g->k <= most &&
         g->m * g->n * g->k <= most;
}

static mps_status begin_kernel(mps_stream *stream, const char *label, const char *stem, const mps_gemm *g, mps_encoder *encoder) {
  mps_pipeline *pipeline;
  MPS_TRY(mps_dense_pipeline(stream, stem, g->dtype, &pipeline));
  mps_gemm_arguments arguments;
  arguments_of(g, &arguments);
  mps_encoder_begin(encoder, stream, label);
  mps_encoder_set_pipeline(encoder, pipeline);
  /* Where k is 0 or there is no bias the operand is not read, but every argument wants an address. */
  const mps_gemm_operand *a = g->k > 0 ? &g->a : &g->out, *b = g->k > 0 ? &g->b : &g->out, *bias = g->has_bias ? &g->bias : &g->out;
  mps_encoder_set_buffer(encoder, 0, a->buffer, a->offset, MPS_ACCESS_READ);
  mps_encoder_set_buffer(encoder, 1, b->buffer, b->offset, MPS_ACCESS_READ);
  mps_encoder_set_buffer(encoder, 2, bias->buffer, bias->offset, MPS_ACCESS_READ);
  mps_encoder_set_buffer(encoder, 3, g->out.buffer, g->out.offset, MPS_ACCESS_WRITE);
  mps_encoder_set_bytes(encoder, 4, &arguments, sizeof arguments);
  return MPS_STATUS_OK;
}

static mps_status encode_small(mps_stream *stream, const char *label, const mps_gemm *plan) {
  const mps_gemm g = plan->n > MPS_GEMM_SMALL_COLUMNS ? transposed(plan) : *plan;
  mps_encoder encoder;
  MPS_TRY(begin_kernel(stream, label, "gemm_small", &g, &encoder));
  mps_encoder_set_cost(&encoder, (double)g.batch * (double)g.m * (5.0 + SMALL_NS * (double)g.n * (double)g.k));
  return mps_encoder_dispatch(&encoder, (uint64_t[]){(uint64_t)g.m, (uint64_t)g.batch, 1}, NULL);
}

static mps_status encode_kernel(mps_stream *stream, const char *label, const mps_gemm *plan) {
  const mps_gemm g = plan->n < plan->m && plan->n < MPS_GEMM_TILE_COLUMNS ? transposed(plan) : *plan;
  mps_encoder encoder;
  MPS_TRY(begin_kernel(stream, label, "gemm", &g, &encoder));
  mps_encoder_set_cost(&encoder, KERNEL_NS * (double)g.batch * (double)g.m * (double)g.n * (double)(g.k + 4));
  const uint64_t threads[3] = {((uint64_t)g.n + MPS_GEMM_TILE_COLUMNS - 1) / MPS_GEMM_TILE_COLUMNS,
                               ((uint64_t)g.m + MPS_GEMM_TILE_ROWS - 1) / MPS_GEMM_TILE_ROWS, (uint64_t)g.batch};
  return mps_encoder_dispatch(&encoder, threads, NULL);
}

/* Temporaries of one run; released when it ends. */
typedef struct temporaries {
  mps_buffer *buffers[OPERANDS];
  uint32_t count;
} temporaries;

static void range_of(const mps_gemm *g, const mps_gemm_operand *operand, int64_t rows, int64_t columns, uint64_t *begin, uint64_t *end) {
  const int64_t sizes[3] = {g->batch, rows, columns};
  mps_operand_byte_range(operand->offset, g->dtype, 3, sizes, operand->strides, begin, end);
}

static bool is_same_view(const mps_gemm *g, const mps_gemm_operand *operand) {
  return operand->buffer == g->out.buffer && operand->offset == g->out.offset &&
         memcmp(operand->strides, g->out.strides, sizeof operand->strides) == 0;
}

/* Gives the operand memory of its own where it is a constant or overlaps the output. */
static mps_status detach(mps_stream *stream, const mps_gemm *g, mps_gemm_operand *operand, int64_t rows, int64_t columns, temporaries *t) {
  mps_buffer *buffer = NULL;
  if (operand->buffer == NULL) {
    MPS_TRY(mps_dense_constant(stream, operand->constant, g->dtype, &buffer));
    operand->offset = 0;
    memset(operand->strides, 0, sizeof operand->strides);
  } else if (operand->buffer == g->out.buffer) {
    uint64_t begin, end, out_begin, out_end;
    range_of(g, operand, rows, columns, &begin, &end);
    range_of(g, &g->out, g->m, g->n, &out_begin, &out_end);
    if (begin >= out_end || out_begin >= end) return MPS_STATUS_OK;
    MPS_TRY(mps_dense_copy_range(stream, operand->buffer, begin, end, &buffer));
    operand->offset -= begin;
  } else {
    return MPS_STATUS_OK;
  }
  operand->buffer = buffer;
  t->buffers[t->count++] = buffer;
  return MPS_STATUS_OK;
}

static mps_status encode(mps_stream *stream, const char *label, mps_gemm *g, temporaries *t) {
  if (g->k > 0) {
    MPS_TRY(detach(stream, g, &g->a, g->m, g->k, t));
    MPS_TRY(detach(stream, g, &g->b, g->k, g->n, t));
  }
  if (g->has_bias && !is_same_view(g, &g->bias)) MPS_TRY(detach(stream, g, &g->bias, g->m, g->n, t));
  if (mps_gemm_is_small(g)) return encode_small(stream, label, g);
  const mps_dense_provider *provider = mps_dense_choose(stream, MPS_DENSE_GEMM, g->dtype);
  return provider != NULL && provider->gemm != NULL ? encode_call(stream, label, g, provider) : encode_kernel(stream, label, g);
}

mps_status mps_gemm_run(mps_stream *stream, const char *label, const mps_gemm *gemm) {
  if (gemm->batch == 0 || gemm->m == 0 || gemm->n == 0) return MPS_STATUS_OK;
  if (gemm->out.buffer == NULL) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s: the output has no buffer", label);
  mps_gemm g = *gemm;
  mps_gemm_plan(&g);
  temporaries t = {.count = 0};
  mps_status status = encode(stream, label, &g, &t);
  for (uint32_t i = 0; i < t.count; i++) mps_buffer_release(t.buffers[i]);
  return status;
}
