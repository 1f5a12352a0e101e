/* SPDX-License-Identifier: BSD-3-Clause
 *
 * transfer: bytes between buffers, and between buffers and the CPU; callbacks.
 */
#include <string.h>

#include "base/status.h"
#include "runtime/state.h"

#define INLINE_WRITE_MAX ((uint64_t)32 << 10)    /* these bytes travel inside of the step */
#define STAGED_WRITE_MAX ((uint64_t)256 << 20)   /* up to here a copy is made rather than waited */
#define NS_PER_BYTE 0.1

static mps_status check_range(const char *what, const mps_buffer *buffer, uint64_t offset, uint64_t length) {
  if (offset <= buffer->length && length <= buffer->length - offset) return MPS_STATUS_OK;
  return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%s: bytes %llu to %llu of a buffer of %zu bytes", what, (unsigned long long)offset,
                       (unsigned long long)(offset + length), buffer->length);
}

static mps_status encode_copy(mps_stream *stream, mps_buffer *source, uint64_t source_offset, mps_buffer *destination,
                              uint64_t destination_offset, uint64_t length, const char *label) {
  mps_step_copy *step;
  MPS_TRY(mps_stream_reserve(stream, MPS_STEP_COPY, sizeof *step, label, 100.0 + (double)length * NS_PER_BYTE, (void **)&step));
  step->source = mps_buffer_address(source) + source_offset;
  step->destination = mps_buffer_address(destination) + destination_offset;
  step->length = length;
  step->source_allocation = source->identifier;
  step->destination_allocation = destination->identifier;
  mps_buffer_use(source, stream);
  mps_buffer_use(destination, stream);
  mps_stream_publish(stream, &step->step);
  return MPS_STATUS_OK;
}

mps_status mps_stream_copy(mps_stream *stream, mps_buffer *source, uint64_t source_offset, mps_buffer *destination,
                           uint64_t destination_offset, uint64_t length) {
  MPS_TRY(mps_check_fork());
  MPS_TRY(check_range("copy, source", source, source_offset, length));
  MPS_TRY(check_range("copy, destination", destination, destination_offset, length));
  if (length == 0) return MPS_STATUS_OK;
  return encode_copy(stream, source, source_offset, destination, destination_offset, length, "copy");
}

mps_status mps_stream_fill(mps_stream *stream, mps_buffer *buffer, uint64_t offset, uint64_t length, uint8_t value) {
  MPS_TRY(mps_check_fork());
  MPS_TRY(check_range("fill", buffer, offset, length));
  if (length == 0) return MPS_STATUS_OK;
  mps_step_fill *step;
  MPS_TRY(mps_stream_reserve(stream, MPS_STEP_FILL, sizeof *step, "fill", 100.0 + (double)length * NS_PER_BYTE, (void **)&step));
  step->address = mps_buffer_address(buffer) + offset;
  step->length = length;
  step->allocation = buffer->identifier;
  step->value = value;
  step->reserved = 0;
  mps_buffer_use(buffer, stream);
  mps_stream_publish(stream, &step->step);
  return MPS_STATUS_OK;
}

/* The bytes lie behind the step. */
static mps_status write_inline(mps_stream *stream, mps_buffer *buffer, uint64_t offset, const void *source, uint64_t length) {
  mps_step_copy *step;
  MPS_TRY(mps_stream_reserve(stream, MPS_STEP_COPY, sizeof *step + length, "write", 100.0 + (double)length * NS_PER_BYTE, (void **)&step));
  void *bytes = step + 1;
  memcpy(bytes, source, length);
  step->source = (uint64_t)(uintptr_t)bytes;
  step->destination = mps_buffer_address(buffer) + offset;
  step->length = length;
  step->source_allocation = 0;
  step->destination_allocation = buffer->identifier;
  mps_buffer_use(buffer, stream);
  mps_stream_publish(stream, &step->step);
  return MPS_STATUS_OK;
}

/* By a temporary buffer that no queued step uses. False: nothing was done. */
static bool write_staged(mps_stream *stream, mps_buffer *buffer, uint64_t offset, const void *source, uint64_t length) {
  mps_buffer *staging;
  if (mps_stream_query(stream)) atomic_store_explicit(&stream->staged, 0, memory_order_relaxed);
  if (atomic_load_explicit(&stream->staged, memory_order_relaxed) + length > MPS_STAGED_MAX) return false; /* too far ahead */
  if (mps_heap_allocate(&stream->device->heap, stream, length, true, &staging) != MPS_STATUS_OK) return false;
  memcpy(staging->contents, source, length);
  bool done = encode_copy(stream, staging, 0, buffer, offset, length, "write") == MPS_STATUS_OK;
  atomic_fetch_add_explicit(&stream->staged, length, memory_order_relaxed);
  mps_buffer_release(staging);
  return done;
}

mps_status mps_stream_write(mps_stream *stream, mps_buffer *buffer, uint64_t offset, const void *source, uint64_t length) {
  MPS_TRY(mps_check_fork());
  MPS_TRY(check_range("write", buffer, offset, length));
  if (length == 0) return MPS_STATUS_OK;
  if (!buffer->contents) return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "write: this device's buffers have no CPU address");
  if (!mps_buffer_is_idle(buffer)) {
    if (length <= INLINE_WRITE_MAX) return write_inline(stream, buffer, offset, source, length);
    if (length <= STAGED_WRITE_MAX && write_staged(stream, buffer, offset, source, length)) return MPS_STATUS_OK;
    MPS_TRY(mps_buffer_wait_idle(buffer));
  }
  memcpy((char *)buffer->contents + offset, source, length);
  return MPS_STATUS_OK;
}

mps_status mps_stream_read(mps_stream *stream, mps_buffer *buffer, uint64_t offset, void *destination, uint64_t length) {
  MPS_TRY(mps_check_fork());
  MPS_TRY(check_range("read", buffer, offset, length));
  MPS_TRY(mps_stream_synchronize(stream));
  if (length == 0) return MPS_STATUS_OK;
  if (!buffer->contents) return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "read: this device's buffers have no CPU address");
  memcpy(destination, (const char *)buffer->contents + offset, length);
  return MPS_STATUS_OK;
}

mps_status mps_stream_callback(mps_stream *stream, void (*function)(void *context), void *context) {
  mps_step_callback *step;
  MPS_TRY(mps_stream_reserve(stream, MPS_STEP_CALLBACK, sizeof *step, "callback", 1000.0, (void **)&step));
  step->function = function;
  step->context = context;
  mps_stream_publish(stream, &step->step);
  return MPS_STATUS_OK;
}
