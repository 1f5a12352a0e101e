/* SPDX-License-Identifier: BSD-3-Clause
 *
 * repeat_interleave: positions, each as often as told. A negative number of repeats, and a length that is not their sum, are reported by the
 * kernel.
 */
#include "openmps/library.h"
#include "openmps/ops/repeat_interleave.h"
#include "ops/operand.h"

enum { BLOCK = 1024 /* repeats that one thread takes */ };

/* repeat_arguments of kernels/repeat_interleave.metal */
typedef struct repeat_arguments {
  int64_t count, block, length;
} repeat_arguments;

static mps_status check(const mps_tensor *repeats, const mps_tensor *ends, const mps_tensor *out) {
  if (repeats->rank != 1) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "repeat_interleave only accept 1D vector as repeat");
  if (repeats->dtype != MPS_DTYPE_I64 && repeats->dtype != MPS_DTYPE_I32)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "repeats has to be Long or Int tensor");
  if (ends->dtype != MPS_DTYPE_I64 || ends->rank != 1 || ends->sizes[0] != repeats->sizes[0] + 1 || !mps_tensor_is_contiguous(ends))
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "repeat_interleave(): expected int64 ends, one more than there are repeats");
  if (out && (out->dtype != repeats->dtype || out->rank != 1 || !mps_tensor_is_contiguous(out)))
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "repeat_interleave(): expected a contiguous result of repeats' dtype");
  return MPS_STATUS_OK;
}

/* Buffers: repeats, ends, and with `out` the result; then the arguments. */
static mps_status encode(mps_stream *stream, const char *stem, const mps_tensor *repeats, const mps_tensor *ends, const mps_tensor *out) {
  mps_status status = check(repeats, ends, out);
  if (status != MPS_STATUS_OK || repeats->sizes[0] == 0) return status;
  mps_pipeline *pipeline;
  status = mps_operand_pipeline(stream, stem, mps_dtype_name(repeats->dtype), &pipeline);
  if (status != MPS_STATUS_OK) return status;
  mps_tensor counts;
  mps_buffer *owned;
  status = mps_operand_prepare(stream, repeats, repeats->dtype, true, &counts, &owned);
  if (status != MPS_STATUS_OK) return status;
  const repeat_arguments a = {.count = repeats->sizes[0], .block = BLOCK, .length = out ? out->sizes[0] : 0};
  mps_encoder encoder;
  mps_encoder_begin(&encoder, stream, "repeat_interleave");
  mps_encoder_set_pipeline(&encoder, pipeline);
  mps_encoder_set_buffer(&encoder, 0, counts.buffer, counts.offset, MPS_ACCESS_READ);
  mps_encoder_set_buffer(&encoder, 1, ends->buffer, ends->offset, out ? MPS_ACCESS_READ : MPS_ACCESS_WRITE);
  const mps_tensor *written = out && out->sizes[0] == 0 ? ends : out; /* an empty result may have no buffer */
  if (out) mps_encoder_set_buffer(&encoder, 2, written->buffer, written->offset, MPS_ACCESS_WRITE);
  mps_encoder_set_bytes(&encoder, out ? 3 : 2, &a, sizeof a);
  if (out) mps_encoder_set_error_buffer(&encoder, 4);
  mps_encoder_set_cost(&encoder, 2.0 * (double)a.count + 0.5 * (double)a.length);
  const uint64_t blocks = (uint64_t)((a.count + BLOCK - 1) / BLOCK);
  status = mps_encoder_dispatch(&encoder, (uint64_t[]){out ? blocks : 1, 1, 1}, NULL);
  mps_buffer_release(owned);
  return status;
}

mps_status mps_op_repeat_ends(mps_stream *stream, const mps_tensor *repeats, const mps_tensor *ends) {
  return encode(stream, "repeat_ends", repeats, ends, NULL);
}

mps_status mps_op_repeat_interleave(mps_stream *stream, const mps_tensor *repeats, const mps_tensor *ends, const mps_tensor *out) {
  return encode(stream, "repeat_interleave", repeats, ends, out);
}
