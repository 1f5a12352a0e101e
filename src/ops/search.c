/* SPDX-License-Identifier: BSD-3-Clause
 *
 * search: searchsorted (bucketize is one with a single row of boundaries) and isin. Both look each value up by halving.
 */
#include "ops/search.h"

#include <string.h>

#include "graph/formula.h"
#include "openmps/library.h"
#include "openmps/ops/pointwise.h"
#include "openmps/ops/search.h"
#include "openmps/ops/sort.h"
#include "ops/operand.h"

enum { BLOCK = 1024 /* values that one thread takes */, FEW = 24 /* test elements that are compared one by one */ };

bool mps_isin_compares(int64_t tests) { return tests <= FEW; }

void mps_search_plan(const mps_tensor *boundaries, const mps_tensor *values, mps_search_arguments *arguments, double *cost) {
  memset(arguments, 0, sizeof *arguments);
  arguments->count = mps_tensor_element_count(values);
  arguments->block = BLOCK;
  arguments->length = boundaries->rank ? boundaries->sizes[boundaries->rank - 1] : 1;
  const bool rows = boundaries->rank > 1 && values->rank > 0;
  arguments->row = rows ? values->sizes[values->rank - 1] : arguments->count;
  if (arguments->row == 0) arguments->row = 1;
  double steps = 1.0;
  for (int64_t n = arguments->length; n > 0; n >>= 1) steps += 1.0;
  *cost = (double)arguments->count * steps * 1.5;
}

static mps_status check_search(const mps_tensor *boundaries, const mps_tensor *values, const mps_tensor *sorter, const mps_tensor *out) {
  if (boundaries->rank == 0 || boundaries->dtype != values->dtype)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "searchsorted(): boundaries need a dimension and the values' dtype");
  bool fits = mps_operands_same_shape(values, out) && (out->dtype == MPS_DTYPE_I64 || out->dtype == MPS_DTYPE_I32);
  if (boundaries->rank > 1) {
    fits = fits && values->rank == boundaries->rank;
    for (uint32_t d = 0; fits && d + 1 < boundaries->rank; d++) fits = values->sizes[d] == boundaries->sizes[d];
  }
  if (sorter) fits = fits && sorter->dtype == MPS_DTYPE_I64 && mps_operands_same_shape(sorter, boundaries);
  if (!fits)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "searchsorted(): boundaries, values, sorter and result do not fit each other");
  return MPS_STATUS_OK;
}

/* The kernel's type, for what can be ordered; NULL else. */
static const char *suffix(mps_dtype dtype) {
  return mps_dtype_is_complex(dtype) || dtype == MPS_DTYPE_BOOL || dtype == MPS_DTYPE_U16 || dtype == MPS_DTYPE_U32 || dtype == MPS_DTYPE_U64
             ? NULL
             : mps_dtype_name(dtype);
}

/* Contiguous operands and a contiguous place for the result, which finish() copies where it belongs. */
typedef struct search_operands {
  mps_tensor boundaries, values, sorter, result;
  mps_buffer *owned[4];
} search_operands;

static mps_status prepare(mps_stream *stream, const mps_tensor *boundaries, const mps_tensor *values, const mps_tensor *sorter, const mps_tensor *out,
                          search_operands *o) {
  memset(o, 0, sizeof *o);
  mps_status status = mps_operand_prepare(stream, boundaries, boundaries->dtype, true, &o->boundaries, &o->owned[0]);
  if (status == MPS_STATUS_OK) status = mps_operand_prepare(stream, values, values->dtype, true, &o->values, &o->owned[1]);
  if (status == MPS_STATUS_OK && sorter) status = mps_operand_prepare(stream, sorter, sorter->dtype, true, &o->sorter, &o->owned[2]);
  if (status != MPS_STATUS_OK) return status;
  o->result = *out;
  if (mps_tensor_is_contiguous(out) && !mps_operands_overlap(out, boundaries) && !mps_operands_overlap(out, values)) return MPS_STATUS_OK;
  status = mps_operand_create(stream, out->dtype, out->rank, out->sizes, &o->result);
  o->owned[3] = o->result.buffer;
  return status;
}

static mps_status finish(mps_stream *stream, mps_status status, search_operands *o, const mps_tensor *out) {
  if (status == MPS_STATUS_OK && o->owned[3]) status = mps_op_copy(stream, &o->result, out);
  for (int i = 0; i < 4; i++) mps_buffer_release(o->owned[i]);
  return status;
}

static uint64_t thread_count(const mps_search_arguments *a) { return (uint64_t)((a->count + a->block - 1) / a->block); }

static mps_status encode_search(mps_stream *stream, const search_operands *o, bool right, bool has_sorter) {
  mps_search_arguments a;
  double cost;
  mps_search_plan(&o->boundaries, &o->values, &a, &cost);
  a.right = right;
  a.sorter = has_sorter;
  a.narrow = o->result.dtype == MPS_DTYPE_I32;
  mps_pipeline *pipeline;
  mps_status status = mps_operand_pipeline(stream, "search_sorted", mps_dtype_name(o->values.dtype), &pipeline);
  if (status != MPS_STATUS_OK) return status;
  const mps_tensor *sorter = has_sorter ? &o->sorter : &o->values; /* something must be bound; it is not read */
  mps_encoder encoder;
  mps_encoder_begin(&encoder, stream, "searchsorted");
  mps_encoder_set_pipeline(&encoder, pipeline);
  mps_encoder_set_buffer(&encoder, 0, o->boundaries.buffer, o->boundaries.offset, MPS_ACCESS_READ);
  mps_encoder_set_buffer(&encoder, 1, o->values.buffer, o->values.offset, MPS_ACCESS_READ);
  mps_encoder_set_buffer(&encoder, 2, sorter->buffer, sorter->offset, MPS_ACCESS_READ);
  mps_encoder_set_buffer(&encoder, 3, o->result.buffer, o->result.offset, MPS_ACCESS_WRITE);
  mps_encoder_set_buffer(&encoder, 4, o->result.buffer, o->result.offset, MPS_ACCESS_WRITE);
  mps_encoder_set_bytes(&encoder, 5, &a, sizeof a);
  mps_encoder_set_cost(&encoder, cost);
  return mps_encoder_dispatch(&encoder, (uint64_t[]){thread_count(&a), 1, 1}, NULL);
}

mps_status mps_op_searchsorted(mps_stream *stream, const mps_tensor *sorted_sequence, const mps_tensor *self, bool right, const mps_tensor *sorter,
                               const mps_tensor *out) {
  mps_status status = check_search(sorted_sequence, self, sorter, out);
  if (status != MPS_STATUS_OK) return status;
  if (mps_tensor_element_count(self) == 0) return MPS_STATUS_OK;
  if (!suffix(self->dtype)) return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "\"searchsorted_out_cpu\" not implemented for '%s'", mps_dtype_title(self->dtype));
  if (mps_tensor_element_count(sorted_sequence) == 0) return mps_operand_fill(stream, out, mps_scalar_int(0));
  search_operands o;
  status = prepare(stream, sorted_sequence, self, sorter, out, &o);
  if (status == MPS_STATUS_OK) status = encode_search(stream, &o, right, sorter != NULL);
  return finish(stream, status, &o, out);
}

/* ---- isin ---- */

static mps_status encode_isin(mps_stream *stream, const char *stem, const search_operands *o, bool invert) {
  mps_search_arguments a;
  double cost;
  mps_search_plan(&o->boundaries, &o->values, &a, &cost);
  a.length = mps_tensor_element_count(&o->boundaries);
  a.inverted = invert;
  mps_pipeline *pipeline;
  mps_status status = mps_operand_pipeline(stream, stem, mps_dtype_name(o->values.dtype), &pipeline);
  if (status != MPS_STATUS_OK) return status;
  mps_encoder encoder;
  mps_encoder_begin(&encoder, stream, "isin");
  mps_encoder_set_pipeline(&encoder, pipeline);
  mps_encoder_set_buffer(&encoder, 0, o->boundaries.buffer, o->boundaries.offset, MPS_ACCESS_READ);
  mps_encoder_set_buffer(&encoder, 1, o->values.buffer, o->values.offset, MPS_ACCESS_READ);
  mps_encoder_set_buffer(&encoder, 2, o->result.buffer, o->result.offset, MPS_ACCESS_WRITE);
  mps_encoder_set_bytes(&encoder, 3, &a, sizeof a);
  mps_encoder_set_cost(&encoder, cost);
  return mps_encoder_dispatch(&encoder, (uint64_t[]){thread_count(&a), 1, 1}, NULL);
}

/* The test elements in order, in memory of their own. */
static mps_status sort_tests(mps_stream *stream, mps_tensor *tests, mps_buffer **owned) {
  mps_tensor flat = *tests, sorted, order;
  const int64_t count = mps_tensor_element_count(tests);
  mps_tensor_set_contiguous(&flat, 1, &count);
  mps_status status = mps_operand_create(stream, flat.dtype, 1, &count, &sorted);
  if (status != MPS_STATUS_OK) return status;
  status = mps_operand_create(stream, MPS_DTYPE_I64, 1, &count, &order);
  if (status == MPS_STATUS_OK) {
    status = mps_op_sort(stream, &flat, NULL, 0, false, &sorted, &order);
    mps_buffer_release(order.buffer);
  }
  mps_buffer_release(*owned);
  *owned = sorted.buffer;
  *tests = sorted;
  return status;
}

mps_status mps_op_isin(mps_stream *stream, const mps_tensor *elements, const mps_tensor *test_elements, bool invert, const mps_tensor *out) {
  if (!mps_operands_same_shape(elements, out) || out->dtype != MPS_DTYPE_BOOL || elements->dtype != test_elements->dtype)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "isin(): expected elements and test elements of one dtype and a bool result like elements");
  if (mps_tensor_element_count(elements) == 0) return MPS_STATUS_OK;
  if (!suffix(elements->dtype))
    return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "\"isin_default_cpu\" not implemented for '%s'", mps_dtype_title(elements->dtype));
  search_operands o;
  mps_status status = prepare(stream, test_elements, elements, NULL, out, &o);
  const bool few = mps_isin_compares(mps_tensor_element_count(test_elements));
  if (status == MPS_STATUS_OK && !few) status = sort_tests(stream, &o.boundaries, &o.owned[0]);
  if (status == MPS_STATUS_OK) status = encode_isin(stream, few ? "isin_few" : "isin_sorted", &o, invert);
  return finish(stream, status, &o, out);
}
