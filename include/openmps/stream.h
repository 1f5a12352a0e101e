/* SPDX-License-Identifier: BSD-3-Clause
 *
 * stream: a serial queue of work. Calls encode steps and return; the stream's executor thread runs them.
 *
 * Steps of one stream take effect in order. Streams may be used from several threads; each call appends its steps as one.
 */
#ifndef OPENMPS_STREAM_H
#define OPENMPS_STREAM_H

#include "openmps/buffer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stream 0: made with the device, borrowed. */
MPS_API mps_stream *mps_stream_default(mps_device *device);
/* A further stream. The caller owns it; destroying waits for its work. */
MPS_API MPS_WARN_UNUSED mps_status mps_stream_create(mps_device *device, mps_stream **out_stream);
MPS_API void mps_stream_destroy(mps_stream *stream); /* accepts NULL */
/* One of the device's pool of 32, round-robin, borrowed; ids 1..32. */
MPS_API MPS_WARN_UNUSED mps_status mps_stream_from_pool(mps_device *device, mps_stream **out_stream);
MPS_API MPS_WARN_UNUSED mps_status mps_stream_from_identifier(mps_device *device, int64_t identifier, mps_stream **out_stream);
MPS_API int64_t mps_stream_identifier(const mps_stream *stream);
MPS_API mps_device *mps_stream_device(const mps_stream *stream); /* borrowed */
/* The calling thread's current stream (the default one until set). NULL resets. */
MPS_API mps_stream *mps_stream_current(mps_device *device);
MPS_API void mps_stream_set_current(mps_device *device, mps_stream *stream);

/* Hands what is encoded to the executor now. */
MPS_API void mps_stream_commit(mps_stream *stream);
/* Commits and waits. A kernel error of the work done since the last wait comes back as KERNEL_ERROR and is cleared. */
MPS_API MPS_WARN_UNUSED mps_status mps_stream_synchronize(mps_stream *stream);
/* True if nothing is outstanding. */
MPS_API bool mps_stream_query(mps_stream *stream);
/* Serial number of the last step encoded, and of the last one done. */
MPS_API uint64_t mps_stream_encoded(const mps_stream *stream);
MPS_API uint64_t mps_stream_completed(const mps_stream *stream);

/* Byte copy and fill; offsets and length in bytes. Ranges may overlap (memmove). */
MPS_API MPS_WARN_UNUSED mps_status mps_stream_copy(mps_stream *stream, mps_buffer *source, uint64_t source_offset,
                                                   mps_buffer *destination, uint64_t destination_offset, uint64_t length);
MPS_API MPS_WARN_UNUSED mps_status mps_stream_fill(mps_stream *stream, mps_buffer *buffer, uint64_t offset, uint64_t length, uint8_t value);
/* Writes host bytes into a buffer; reads `source` before it returns. Does not wait when the buffer is idle or the data is small. */
MPS_API MPS_WARN_UNUSED mps_status mps_stream_write(mps_stream *stream, mps_buffer *buffer, uint64_t offset, const void *source, uint64_t length);
/* Waits for the stream, then copies out. */
MPS_API MPS_WARN_UNUSED mps_status mps_stream_read(mps_stream *stream, mps_buffer *buffer, uint64_t offset, void *destination, uint64_t length);
/* Runs `function(context)` on the executor after the steps before it. It must not call into OpenMPS except to release buffers. */
MPS_API MPS_WARN_UNUSED mps_status mps_stream_callback(mps_stream *stream, void (*function)(void *context), void *context);

/* ---- events: a mark in a stream that streams and the CPU can wait for ---- */
typedef struct mps_event mps_event;
MPS_API MPS_WARN_UNUSED mps_status mps_event_create(mps_device *device, bool timing, mps_event **out_event);
MPS_API void mps_event_destroy(mps_event *event); /* accepts NULL; safe while recorded work is in flight */
MPS_API MPS_WARN_UNUSED mps_status mps_event_record(mps_event *event, mps_stream *stream);
MPS_API MPS_WARN_UNUSED mps_status mps_event_wait(mps_event *event, mps_stream *stream); /* the stream waits; nothing if never recorded */
MPS_API MPS_WARN_UNUSED mps_status mps_event_synchronize(mps_event *event);              /* the CPU waits */
MPS_API bool mps_event_query(mps_event *event); /* false for a never-recorded event */
/* Milliseconds on the device's clock between two completed timing events. */
MPS_API MPS_WARN_UNUSED mps_status mps_event_elapsed(mps_event *start, mps_event *end, double *out_milliseconds);

/* ---- generator: Philox 4x32-10, keyed by seed, counted by offset ---- */
typedef struct mps_generator mps_generator;
MPS_API MPS_WARN_UNUSED mps_status mps_generator_create(uint64_t seed, mps_generator **out_generator);
MPS_API void mps_generator_destroy(mps_generator *generator);
MPS_API void mps_generator_set_seed(mps_generator *generator, uint64_t seed); /* offset becomes 0 */
MPS_API uint64_t mps_generator_seed(const mps_generator *generator);
MPS_API uint64_t mps_generator_offset(const mps_generator *generator);
MPS_API void mps_generator_set_offset(mps_generator *generator, uint64_t offset);
/* Reserves `count` 128-bit Philox blocks: returns the offset of the first and moves on. Any thread. */
MPS_API uint64_t mps_generator_advance(mps_generator *generator, uint64_t count);

#ifdef __cplusplus
}
#endif
#endif
