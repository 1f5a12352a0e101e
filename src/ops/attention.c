/* SPDX-License-Identifier: BSD-3-Clause
 *
 * attention: softmax(scale * query @ key^T + mask) @ value without keeping the scores. Heads, or rows of one head, are taken in groups
 * whose scores stay in the cache: product, softmax in place, product.
 */
#include <math.h>
#include <string.h>

#include "base/status.h"
#include "kernels/attention.h"
#include "openmps/ops/attention.h"
#include "ops/dense.h"
#include "ops/gemm.h"

#define GROUP_BYTES (4 << 20) /* of the scores of one group */
#define SMALLEST_GROUP_ROWS 64
#define CAUSAL_GROUP_ROWS 128 /* a group computes no column that its last row does not see */
#define SOFTMAX_NS 1.0 /* an element, on one core */

/* What attention is, without its tensors. query is (batch, heads, rows, depth), key (batch, key_heads, columns, depth). */
typedef struct shape {
  mps_dtype dtype;
  int64_t batch, heads, key_heads, rows, columns, depth, value_depth;
  int64_t group_heads, group_rows;
} shape;

/* ---- check ---- */

static mps_status check(const mps_tensor *query, const mps_tensor *key, const mps_tensor *value, const mps_tensor *mask, const mps_tensor *out) {
  if (query->rank != 4 || key->rank != 4 || value->rank != 4 || out->rank != 4 || (mask != NULL && mask->rank != 4))
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "attention: operands must have 4 dimensions (batch, heads, rows, depth)");
  if (!mps_dtype_is_floating(query->dtype) || key->dtype != query->dtype || value->dtype != query->dtype || out->dtype != query->dtype)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "attention: query, key, value and out must share a floating dtype, but are %s, %s, %s and %s",
                         mps_dtype_name(query->dtype), mps_dtype_name(key->dtype), mps_dtype_name(value->dtype), mps_dtype_name(out->dtype));
  if (mask != NULL && mask->dtype != MPS_DTYPE_BOOL && mask->dtype != MPS_DTYPE_F32 && mask->dtype != query->dtype)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "attention: the mask must be bool, f32 or %s, but is %s", mps_dtype_name(query->dtype),
                         mps_dtype_name(mask->dtype));
  const int64_t *q = query->sizes, *k = key->sizes, *v = value->sizes;
  const int64_t results[4] = {q[0], q[1], q[2], v[3]}, scores[4] = {q[0], q[1], q[2], k[2]};
  bool fits = k[0] == q[0] && v[0] == q[0] && k[1] > 0 && q[1] % k[1] == 0 && v[1] == k[1] && k[3] == q[3] && v[2] == k[2];
  fits = fits && memcmp(out->sizes, results, sizeof results) == 0 && (mask == NULL || memcmp(mask->sizes, scores, sizeof scores) == 0);
  return fits ? MPS_STATUS_OK : mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "attention: the shapes of query, key, value, mask and out do not fit");
}

/* ---- plan ---- */

static shape plan(const mps_tensor *query, const mps_tensor *key, const mps_tensor *value, bool is_causal) {
  shape s = {.dtype = query->dtype, .batch = query->sizes[0], .heads = query->sizes[1], .key_heads = key->sizes[1], .rows = query->sizes[2],
             .columns = key->sizes[2], .depth = query->sizes[3], .value_depth = value->sizes[3]};
  int64_t row_bytes = s.columns * (int64_t)mps_dtype_size(s.dtype);
  int64_t most_heads = s.heads / s.key_heads == 1 ? s.heads : s.heads / s.key_heads; /* heads of one group share keys, or have one each */
  int64_t rows = row_bytes > 0 ? GROUP_BYTES / row_bytes : s.rows;
  s.group_rows = is_causal && s.rows > CAUSAL_GROUP_ROWS ? CAUSAL_GROUP_ROWS : s.rows;
  if (rows >= s.group_rows) {
    s.group_heads = s.group_rows > 0 ? rows / s.group_rows : 1;
    if (s.group_heads > most_heads) s.group_heads = most_heads;
  } else {
    s.group_heads = 1;
    s.group_rows = rows < SMALLEST_GROUP_ROWS ? SMALLEST_GROUP_ROWS : rows;
    if (s.group_rows > s.rows) s.group_rows = s.rows;
  }
  return s;
}

/* ---- encode ---- */

/* A part of a (batch, heads, rows, depth) tensor, from one batch item, head and row on. */
static mps_tensor part(const mps_tensor *tensor, int64_t batch, int64_t head, int64_t row) {
  mps_tensor t = *tensor;
  t.offset += (uint64_t)((batch * t.strides[0] + head * t.strides[1] + row * t.strides[2]) * (int64_t)mps_dtype_size(t.dtype));
  return t;
}

static mps_status encode_softmax(mps_stream *stream, const shape *s, mps_buffer *scores, const mps_tensor *mask, bool is_causal, int64_t heads,
                                 int64_t first_row, int64_t rows, int64_t columns) {
  mps_pipeline *pipeline;
  MPS_TRY(mps_dense_pipeline(stream, "attention_softmax", s->dtype, &pipeline));
  mps_attention_arguments arguments = {.rows = rows, .columns = columns, .first_row = first_row, .is_causal = is_causal};
  mps_encoder encoder;
  mps_encoder_begin(&encoder, stream, "attention");
  mps_encoder_set_pipeline(&encoder, pipeline);
  mps_encoder_set_buffer(&encoder, 0, scores, 0, MPS_ACCESS_READ_WRITE);
  if (mask != NULL) {
    arguments.mask = mask->dtype == MPS_DTYPE_BOOL ? MPS_ATTENTION_BOOL_MASK : mask->dtype == s->dtype ? MPS_ATTENTION_SCORE_MASK : MPS_ATTENTION_FLOAT_MASK;
    memcpy(arguments.mask_strides, mask->strides + 1, sizeof arguments.mask_strides);
    mps_encoder_set_buffer(&encoder, 1, mask->buffer, mask->offset, MPS_ACCESS_READ);
  } else {
    mps_encoder_set_buffer(&encoder, 1, scores, 0, MPS_ACCESS_READ);
  }
  mps_encoder_set_bytes(&encoder, 2, &arguments, sizeof arguments);
  mps_encoder_set_cost(&encoder, SOFTMAX_NS * (double)heads * (double)rows * (double)columns);
  const uint64_t threads[3] = {(uint64_t)rows, (uint64_t)heads, 1};
  return mps_encoder_dispatch(&encoder, threads, NULL);
}

/* Heads [head, head + heads) and rows [row, row + rows) of one batch item. */
static mps_status encode_group(mps_stream *stream, const shape *s, const mps_tensor *query, const mps_tensor *key, const mps_tensor *value,
                               const mps_tensor *mask, bool is_causal, double scale, const mps_tensor *out, mps_buffer *scores, int64_t batch,
                               int64_t head, int64_t heads, int64_t row, int64_t rows) {
  int64_t shared = s->heads / s->key_heads, key_head = head / shared;
  int64_t columns = is_causal && row + rows < s->columns ? row + rows : s->columns;
  mps_tensor q = part(query, batch, head, row), k = part(key, batch, key_head, 0), v = part(value, batch, key_head, 0), o = part(out, batch, head, row);
  mps_gemm gemm = {.dtype = s->dtype, .batch = heads, .m = rows, .n = columns, .k = s->depth, .alpha = mps_scalar_float(scale),
                   .beta = mps_scalar_int(0)};
  int key_batch = shared == 1 ? 1 : -1;
  gemm.a = mps_gemm_operand_of(&q, 1, 2, 3);
  gemm.b = mps_gemm_operand_of(&k, key_batch, 3, 2);
  gemm.out = (mps_gemm_operand){.buffer = scores, .strides = {rows * columns, columns, 1}};
  MPS_TRY(mps_gemm_run(stream, "attention", &gemm));
  mps_tensor m;
  if (mask != NULL) m = part(mask, batch, head, row);
  MPS_TRY(encode_softmax(stream, s, scores, mask != NULL ? &m : NULL, is_causal, heads, row, rows, columns));
  mps_gemm second = {.dtype = s->dtype, .batch = heads, .m = rows, .n = s->value_depth, .k = columns, .alpha = mps_scalar_int(1),
                     .beta = mps_scalar_int(0)};
  second.a = gemm.out;
  second.b = mps_gemm_operand_of(&v, key_batch, 2, 3);
  second.out = mps_gemm_operand_of(&o, 1, 2, 3);
  return mps_gemm_run(stream, "attention", &second);
}

static mps_status encode(mps_stream *stream, const shape *s, const mps_tensor *query, const mps_tensor *key, const mps_tensor *value,
                         const mps_tensor *mask, bool is_causal, double scale, const mps_tensor *out, mps_buffer *scores) {
  for (int64_t batch = 0; batch < s->batch; batch++)
    for (int64_t head = 0, heads; head < s->heads; head += heads) {
      int64_t shared = s->heads / s->key_heads, most = shared == 1 ? s->heads - head : shared - head % shared;
      heads = s->group_heads < most ? s->group_heads : most;
      for (int64_t row = 0; row < s->rows; row += s->group_rows) {
        int64_t rows = s->rows - row < s->group_rows ? s->rows - row : s->group_rows;
        MPS_TRY(encode_group(stream, s, query, key, value, mask, is_causal, scale, out, scores, batch, head, heads, row, rows));
      }
    }
  return MPS_STATUS_OK;
}

/* Batch items whose heads lie at one distance are more heads. */
static void join_batch(mps_tensor *const tensors[], uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (tensors[i] != NULL && tensors[i]->strides[0] != tensors[i]->sizes[1] * tensors[i]->strides[1]) return;
  for (uint32_t i = 0; i < count; i++) {
    if (tensors[i] == NULL) continue;
    tensors[i]->sizes[1] *= tensors[i]->sizes[0];
    tensors[i]->sizes[0] = 1;
  }
}

mps_status mps_op_attention(mps_stream *stream, const mps_tensor *query, const mps_tensor *key, const mps_tensor *value, const mps_tensor *mask,
                            bool is_causal, double scale, const mps_tensor *out) {
  MPS_TRY(check(query, key, value, mask, out));
  const mps_tensor *const all[] = {query, key, value, mask, out};
  for (uint32_t i = 0; i < 5; i++)
    if (all[i] != NULL && (all[i]->flags != 0 || (all[i]->buffer == NULL && mps_tensor_element_count(all[i]) > 0)))
      return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "attention: operands must have memory and no flags");
  if (mps_tensor_element_count(out) == 0) return MPS_STATUS_OK;
  mps_tensor q = *query, k = *key, v = *value, o = *out, m;
  if (mask != NULL) m = *mask;
  mps_tensor *const joined[] = {&q, &k, &v, &o, mask != NULL ? &m : NULL};
  join_batch(joined, 5);
  shape s = plan(&q, &k, &v, is_causal);
  mps_buffer *scores = NULL;
  size_t bytes = (size_t)(s.group_heads * s.group_rows * s.columns) * mps_dtype_size(s.dtype);
  MPS_TRY(mps_buffer_create(mps_stream_device(stream), stream, bytes > 0 ? bytes : 1, &scores));
  mps_status status = encode(stream, &s, &q, &k, &v, mask != NULL ? &m : NULL, is_causal, scale, &o, scores);
  mps_buffer_release(scores);
  return status;
}
