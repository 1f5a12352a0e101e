/* SPDX-License-Identifier: BSD-3-Clause
 *
 * dense: the provider of a device, the step that calls it, and what the dense operators share.
 */
#include "ops/dense.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "ops/operand.h"
#include "runtime/buffer.h"
#include "runtime/device.h"
#include "runtime/stream.h"

/* What hangs off a device. */
typedef struct dense_state {
  const mps_dense_provider *_Atomic provider;
} dense_state;

static dense_state *state_of(mps_device *device) {
  dense_state *state = mps_device_attachment(device, MPS_ATTACHMENT_DENSE);
  if (state != NULL) return state;
  state = malloc(sizeof *state);
  if (state == NULL) return NULL;
  atomic_init(&state->provider, NULL);
  return mps_device_attach(device, MPS_ATTACHMENT_DENSE, state, free);
}

void mps_dense_set_provider(mps_device *device, const mps_dense_provider *provider) {
  dense_state *state = state_of(device);
  if (state != NULL) atomic_store(&state->provider, provider);
}

const mps_dense_provider *mps_dense_get_provider(mps_device *device) {
  dense_state *state = mps_device_attachment(device, MPS_ATTACHMENT_DENSE);
  return state == NULL ? NULL : atomic_load(&state->provider);
}

const mps_dense_provider *mps_dense_choose(mps_stream *stream, mps_dense_kind kind, mps_dtype dtype) {
  mps_device *device = mps_stream_device(stream);
  if (!mps_device_driver(device)->limits.unified_memory) return NULL;
  const mps_dense_provider *provider = mps_dense_get_provider(device);
  return provider != NULL && provider->takes(kind, dtype) ? provider : NULL;
}

bool mps_dense_is_anywhere(const mps_dense_provider *provider, mps_dense_kind kind, mps_dtype dtype) {
  return provider->anywhere != NULL && provider->anywhere(kind, dtype);
}

mps_status mps_dense_call(mps_stream *stream, const char *label, mps_status (*function)(const void *parameters), const void *parameters,
                          uint32_t parameter_bytes, mps_buffer *const *buffers, uint32_t buffer_count, bool anywhere, double cost) {
  if (parameter_bytes > MPS_DENSE_MAX_PARAMETER_BYTES)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s: %u bytes of parameters, at most %u can be copied", label, (unsigned)parameter_bytes,
                         (unsigned)MPS_DENSE_MAX_PARAMETER_BYTES);
  size_t offset = sizeof(mps_step_dense) + buffer_count * sizeof(uint64_t);
  offset = (offset + 15) & ~(size_t)15;
  for (uint32_t i = 0; i < buffer_count; i++) mps_buffer_use(buffers[i], stream);
  mps_step_dense *step;
  MPS_TRY(mps_stream_reserve(stream, MPS_STEP_DENSE, offset + parameter_bytes, label, cost, (void **)&step));
  char *copy = (char *)step + offset;
  memcpy(copy, parameters, parameter_bytes);
  step->function = function;
  step->parameters = copy;
  step->buffer_count = buffer_count;
  step->anywhere = anywhere;
  for (uint32_t i = 0; i < buffer_count; i++) step->allocations[i] = mps_buffer_identifier(buffers[i]);
  mps_stream_publish(stream, &step->step);
  return MPS_STATUS_OK;
}

const char *mps_dense_suffix(mps_dtype dtype) {
  switch (dtype) {
    case MPS_DTYPE_I8: return mps_dtype_name(MPS_DTYPE_U8);
    case MPS_DTYPE_I16: return mps_dtype_name(MPS_DTYPE_U16);
    case MPS_DTYPE_I32: return mps_dtype_name(MPS_DTYPE_U32);
    case MPS_DTYPE_I64: return mps_dtype_name(MPS_DTYPE_U64);
    default: return mps_dtype_name(dtype);
  }
}

mps_status mps_dense_pipeline(mps_stream *stream, const char *stem, mps_dtype dtype, mps_pipeline **out_pipeline) {
  return mps_operand_pipeline(stream, stem, mps_dense_suffix(dtype), out_pipeline);
}

const char *mps_dense_type_name(mps_dtype dtype) {
  static const char *const names[MPS_DTYPE_COUNT] = {
      [MPS_DTYPE_BOOL] = "bool",       [MPS_DTYPE_U8] = "unsigned char",  [MPS_DTYPE_U16] = "uint16_t",
      [MPS_DTYPE_U32] = "uint32_t",    [MPS_DTYPE_U64] = "uint64_t",      [MPS_DTYPE_I8] = "signed char",
      [MPS_DTYPE_I16] = "short",       [MPS_DTYPE_I32] = "int",           [MPS_DTYPE_I64] = "long",
      [MPS_DTYPE_F16] = "c10::Half",   [MPS_DTYPE_BF16] = "c10::BFloat16", [MPS_DTYPE_F32] = "float",
      [MPS_DTYPE_C32] = "c10::complex<c10::Half>", [MPS_DTYPE_C64] = "c10::complex<float>"};
  return (unsigned)dtype < MPS_DTYPE_COUNT ? names[dtype] : "undefined";
}

mps_status mps_dense_copy_range(mps_stream *stream, mps_buffer *source, uint64_t begin, uint64_t end, mps_buffer **out_buffer) {
  mps_buffer *copy;
  MPS_TRY(mps_buffer_create(mps_stream_device(stream), stream, end - begin, &copy));
  mps_status status = mps_stream_copy(stream, source, begin, copy, 0, end - begin);
  if (status != MPS_STATUS_OK) {
    mps_buffer_release(copy);
    return status;
  }
  *out_buffer = copy;
  return MPS_STATUS_OK;
}

mps_status mps_dense_constant(mps_stream *stream, mps_scalar value, mps_dtype dtype, mps_buffer **out_buffer) {
  uint64_t element[2];
  mps_buffer *buffer;
  mps_scalar_store(value, dtype, element);
  MPS_TRY(mps_buffer_create(mps_stream_device(stream), stream, mps_dtype_size(dtype), &buffer));
  mps_status status = mps_stream_write(stream, buffer, 0, element, mps_dtype_size(dtype));
  if (status != MPS_STATUS_OK) {
    mps_buffer_release(buffer);
    return status;
  }
  *out_buffer = buffer;
  return MPS_STATUS_OK;
}
