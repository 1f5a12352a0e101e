/* SPDX-License-Identifier: BSD-3-Clause
 *
 * buffer: memory of a device, from its caching heap. Reference counted.
 *
 * Freeing is stream-ordered: the last release may come while encoded steps still use the memory; the heap gives it to the same
 * stream at once (serial order makes that safe) and to anybody else only when those steps are done.
 */
#ifndef OPENMPS_BUFFER_H
#define OPENMPS_BUFFER_H

#include "openmps/device.h"
#include "openmps/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mps_stream mps_stream;

/* `length` bytes for use on `stream` (NULL: the calling thread's current stream). length 0 is INVALID_ARGUMENT. Contents are undefined.
 * Errors: OUT_OF_MEMORY with PyTorch's text; INVALID_ARGUMENT "Invalid buffer size: ...". The caller owns one reference. */
MPS_API MPS_WARN_UNUSED mps_status mps_buffer_create(mps_device *device, mps_stream *stream, size_t length, mps_buffer **out_buffer);
/* A buffer over memory that the caller owns and keeps alive until `release(context)` is called (any thread; NULL = never). */
MPS_API MPS_WARN_UNUSED mps_status mps_buffer_wrap(mps_device *device, void *memory, size_t length, void (*release)(void *context),
                                                   void *context, mps_buffer **out_buffer);
MPS_API mps_buffer *mps_buffer_retain(mps_buffer *buffer);
MPS_API void mps_buffer_release(mps_buffer *buffer); /* accepts NULL */
MPS_API size_t mps_buffer_length(const mps_buffer *buffer);
/* The CPU address; NULL where memory is not unified. Contents are valid after a synchronize. */
MPS_API void *mps_buffer_contents(const mps_buffer *buffer);
/* Unique and growing; never used twice in a process. */
MPS_API uint64_t mps_buffer_identifier(const mps_buffer *buffer);
/* True when no encoded step can still touch the memory, so that the CPU may write it without waiting. */
MPS_API bool mps_buffer_is_idle(const mps_buffer *buffer);
/* The memory is also used on `stream`: it is not reused before that stream's steps encoded so far are done. */
MPS_API void mps_buffer_record_stream(mps_buffer *buffer, mps_stream *stream);

#ifdef __cplusplus
}
#endif
#endif
