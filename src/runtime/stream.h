/* SPDX-License-Identifier: BSD-3-Clause
 *
 * stream: how the rooms above encode steps, in place, into a stream's command buffer.
 *
 *   mps_step_dispatch *step;
 *   MPS_TRY(mps_stream_reserve(stream, MPS_STEP_DISPATCH, bytes, "softmax", cost, (void **)&step));   // locks the stream
 *   ...fill everything behind step->step...
 *   mps_stream_publish(stream, &step->step);                                                          // unlocks it
 *
 * Between the two calls: no other call on this stream, no buffer created or released, nothing that waits. Steps never move, so that
 * addresses inside of a step (inline bytes) may be kept in it. Steps own nothing: memory is kept by stream-ordered freeing.
 */
#ifndef OPENMPS_RUNTIME_STREAM_H
#define OPENMPS_RUNTIME_STREAM_H

#include "driver/driver.h"
#include "openmps/stream.h"

/* Largest step, bytes. */
#define MPS_STREAM_MAX_STEP_BYTES (1u << 20)

/* Returns zero-filled-or-not, 16-byte aligned memory of `bytes` with the mps_step header filled in and the stream locked.
 * `label` lives for ever; `cost` is in nanoseconds on one core. On failure (OUT_OF_MEMORY, INVALID_ARGUMENT, DEVICE_LOST) nothing is locked. */
MPS_WARN_UNUSED mps_status mps_stream_reserve(mps_stream *stream, uint32_t kind, size_t bytes, const char *label, double cost, void **out_step);
/* Appends the step that was reserved. Returns its serial number. */
uint64_t mps_stream_publish(mps_stream *stream, mps_step *step);
/* Gives the reserved memory back; nothing was encoded. */
void mps_stream_abandon(mps_stream *stream, mps_step *step);

/* The stream's kernel error record (kernels/error.h); made at the first call. *out_address is a device address. */
MPS_WARN_UNUSED mps_status mps_stream_error_memory(mps_stream *stream, uint64_t *out_address, uint64_t *out_length);

/* The stream's record of c10/metal/error.h, for kernels that users write; likewise. */
MPS_WARN_UNUSED mps_status mps_stream_message_memory(mps_stream *stream, uint64_t *out_address, uint64_t *out_length);

/* The stream's driver queue; only the executor may run steps on it. */
mps_driver_queue *mps_stream_queue(mps_stream *stream);

/* Waits until the step `serial` is done; does not look at errors. INTERRUPTED, DEVICE_LOST. */
MPS_WARN_UNUSED mps_status mps_stream_wait_serial(mps_stream *stream, uint64_t serial);

/* Free marker: the allocation is dead for steps behind it. Not given to drivers. */
typedef struct mps_step_free {
  mps_step step;
  uint64_t allocation;
  uint64_t address, length; /* of its block */
  uint64_t shared;          /* 1: other streams used it, so its last contents matter */
} mps_step_free;

/* ---- the window: what the executor is about to run, open to rewriting ---- */
#define MPS_WINDOW_MAX_STEPS 64

typedef struct mps_window {
  mps_stream *stream;
  uint32_t count;
  bool closed; /* no successor is worth waiting for: somebody waits, committed, or a step follows that no window crosses */
  const mps_step *steps[MPS_WINDOW_MAX_STEPS]; /* DISPATCH, POINTWISE, REDUCE, DENSE, COPY, FILL and FREE, in order */
} mps_window;

typedef enum mps_window_answer {
  MPS_WINDOW_RUN,  /* run window->steps as they are now */
  MPS_WINDOW_MORE, /* nothing was changed; ask again when more is queued, or soon, closed. Not legal for a closed window */
} mps_window_answer;

/* May replace steps[0..count) by others with the same effect; new steps live in `rewrite`'s own memory until its next call for the same
 * stream. Runs on whatever thread executes the stream, one at a time a stream, without locks. */
typedef mps_window_answer (*mps_window_rewrite)(void *context, mps_window *window);
/* Set once, before steps are encoded. */
void mps_device_set_window_rewrite(mps_device *device, mps_window_rewrite rewrite, void *context);

#endif
