/* SPDX-License-Identifier: BSD-3-Clause
 *
 * buffer: inside of mps_buffer. A buffer is also a block of its heap region: while it is free it lies in the heap's index.
 *
 * Encoders: take the address with mps_buffer_address, and call mps_buffer_use(buffer, stream) for each buffer of a step.
 * Temporaries: mps_buffer_create, encode, mps_buffer_release at once; freeing is stream-ordered. Do not release a buffer between
 * mps_stream_reserve and mps_stream_publish (the stream's lock is held there).
 * Another stream than the owner's may use a buffer only behind an event of the owner (its block's last life may still be in flight there).
 * Two buffers may share addresses when the first is dead (its MPS_STEP_FREE lies before the second's steps): identifiers tell them apart.
 */
#ifndef OPENMPS_RUNTIME_BUFFER_H
#define OPENMPS_RUNTIME_BUFFER_H

#include <stdatomic.h>

#include "openmps/buffer.h"
#include "openmps/stream.h"

typedef struct mps_heap_region mps_heap_region;

typedef enum mps_buffer_state {
  MPS_BUFFER_FREE,    /* in the index of stream `slot` */
  MPS_BUFFER_LIVE,    /* somebody holds a reference */
  MPS_BUFFER_PENDING, /* released, but other streams' steps still use it */
} mps_buffer_state;

struct mps_buffer {
  /* Fixed while the buffer is live. */
  void *contents;      /* CPU address or NULL */
  uint64_t address;    /* device address */
  size_t length;       /* as asked for */
  uint64_t identifier; /* of this life of the block */
  mps_device *device;
  mps_stream *stream;  /* owner: serial order of its steps guards reuse; NULL when wrapped */

  _Atomic uint32_t references;
  _Atomic bool touched;      /* its device address was taken: a step may use it */
  _Atomic uint64_t foreign;  /* bit n: the stream of slot n, not the owner, uses it too */

  /* Under the heap's lock. */
  uint8_t state;           /* mps_buffer_state */
  uint8_t slot;            /* of the owner */
  uint16_t bin;            /* while free: place in the index */
  size_t size;             /* bytes of the block */
  uint64_t offset;         /* in the region */
  uint64_t serial;         /* the owner's steps up to here may still use the block (its last life included) */
  mps_heap_region *region; /* NULL when wrapped */
  struct mps_buffer *previous, *next;         /* neighbours by offset */
  struct mps_buffer *bin_previous, *bin_next; /* in the index; bin_next also links pending and spare ones */

  /* Wrapped memory only. */
  void (*release)(void *context);
  void *release_context;
};

/* Waits until the buffer is idle; errors of kernels are left for their streams' waits. INTERRUPTED, DEVICE_LOST. */
MPS_WARN_UNUSED mps_status mps_buffer_wait_idle(mps_buffer *buffer);
/* Marks use by another stream than the owner. */
void mps_buffer_use_foreign(mps_buffer *buffer, mps_stream *stream);

/* The device address, to be put into a step. Counts as use: from now on the buffer is idle only when its streams are. */
static inline uint64_t mps_buffer_address(mps_buffer *buffer) {
  if (!atomic_load_explicit(&buffer->touched, memory_order_relaxed)) atomic_store_explicit(&buffer->touched, true, memory_order_relaxed);
  return buffer->address;
}

/* A step of `stream` uses the buffer. Cheap for the owner's steps. */
static inline void mps_buffer_use(mps_buffer *buffer, mps_stream *stream) {
  if (!atomic_load_explicit(&buffer->touched, memory_order_relaxed)) atomic_store_explicit(&buffer->touched, true, memory_order_relaxed);
  if (buffer->stream != stream) mps_buffer_use_foreign(buffer, stream);
}

#endif
