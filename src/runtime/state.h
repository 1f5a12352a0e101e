/* SPDX-License-Identifier: BSD-3-Clause
 *
 * state: the insides of mps_device and mps_stream, for the files of this folder only.
 *
 * Locks, outermost first: device->streams_lock, stream->lock, heap->lock. A thread holds a stream's lock from reserve to publish; the
 * heap never takes a stream's lock. Serial numbers count the steps of a stream from 1 and never go back, even when a stream is
 * destroyed and its place used again; streams are freed only with their device, so that a serial can always be looked up.
 */
#ifndef OPENMPS_RUNTIME_STATE_H
#define OPENMPS_RUNTIME_STATE_H

#include <stdatomic.h>

#include "base/thread.h"
#include "runtime/buffer.h"
#include "runtime/device.h"
#include "runtime/heap.h"
#include "runtime/stream.h"

#define MPS_STREAM_SLOTS 64 /* bits of mps_buffer.foreign */
#define MPS_STREAM_POOL 32  /* slots 1..32 */

#define MPS_COST_UNKNOWN 20000.0     /* ns taken for a step that tells none */
#define MPS_WAKE_COST 20000.0        /* queued ns that are worth a thread switch */
#define MPS_IMMEDIATE_COST 300.0     /* a step of at most this, alone in the queue, is run by who encodes it: handing it over costs more */
#define MPS_INLINE_COST 5000000.0    /* a waiter runs at most this itself: Ctrl-C is not looked at meanwhile */
#define MPS_WAIT_SLICE_NS 50000000u  /* between two interrupt checks */
#define MPS_LINGER_NS 30000u         /* an open window waits this long for successors */
#define MPS_WAIT_SPIN_NS 4000u       /* a waiter looks this long before it sleeps */
#define MPS_IDLE_SPIN_NS 10000u      /* an executor that ran dry looks this long for more before it sleeps */
#define MPS_STAGED_MAX ((uint64_t)512 << 20) /* bytes of staged writes in flight on a stream */

/* ---- command buffer: a chain of pages that steps are encoded in ---- */
#define MPS_PAGE_BYTES (64u << 10)
#define MPS_PAGES_MAX 1024 /* encoding waits for the executor behind this many */

typedef struct mps_page {
  struct mps_page *next;  /* written before the first step of `next` is published */
  _Atomic uint32_t end;   /* where the last step ends; UINT32_MAX while it is the tail. Written before the next page's steps are published */
  uint32_t capacity;
  _Alignas(16) unsigned char bytes[];
} mps_page;

typedef struct mps_failure {
  mps_status status;
  char label[128];
  char text[1024];
} mps_failure;

typedef enum mps_executor_state { MPS_EXECUTOR_NONE, MPS_EXECUTOR_STARTED, MPS_EXECUTOR_REFUSED } mps_executor_state;

struct mps_stream {
  /* Fixed. */
  mps_device *device;
  uint32_t slot;
  int64_t identifier;
  mps_driver_queue *queue;

  mps_mutex lock;
  _Atomic uint64_t encoded; /* last serial published; written under lock */

  /* Encoding, under lock. */
  mps_page *tail;
  uint32_t tail_used;
  uint32_t page_count;
  mps_page *spare_pages;
  uint32_t spare_count;
  double cost_encoded;       /* sum over all steps ever */
  uint64_t blockers_encoded; /* steps ever that no waiter may run */
  bool running;              /* somebody holds the runner's role */
  bool spinning;             /* the executor looks at wake_sent: no signal is needed */
  bool stopping;
  bool in_use;               /* not destroyed */
  mps_executor_state executor_state;
  mps_thread executor;
  mps_failure *failure; /* first failure since the last wait, or NULL */
  mps_condition work;   /* for the executor */
  mps_condition done;   /* for waiters, and for those who want pages or the role */

  _Atomic bool failed;          /* failure != NULL */
  _Atomic bool wake_sent;       /* the executor was called and did not come yet; written under lock */
  _Atomic uint64_t staged;      /* bytes of staged writes since the stream was last seen idle */
  _Atomic uint64_t committed;   /* steps up to here run without delay; grows under lock */
  _Atomic uint64_t wake_at;     /* lowest serial that somebody waits for; UINT64_MAX = nobody */
  _Atomic(struct mps_buffer *) error_buffer; /* holds the kernel error record */
  _Atomic(struct mps_buffer *) message_buffer; /* holds what user kernels report (c10/metal/error.h) */

  /* The runner's, whoever it is; handed over with the role, under lock. */
  _Alignas(64) _Atomic uint64_t completed; /* last serial done */
  uint64_t executed;                       /* last serial given to the driver */
  mps_page *head;                          /* page of the next step */
  uint32_t head_offset;
  mps_page *passed; /* pages left behind while their steps may still be needed */
  double cost_executed;
  uint64_t blockers_executed;
};

struct mps_device {
  _Atomic uint32_t references;
  mps_driver_device *driver;
  mps_device_info info;
  mps_heap heap;

  mps_mutex streams_lock;                          /* creation and destruction of streams */
  _Atomic(mps_stream *) streams[MPS_STREAM_SLOTS]; /* a slot once filled stays filled */
  _Atomic uint32_t pool_next;
  int64_t next_identifier; /* under streams_lock; of streams that are not the pool's */

  _Atomic(void *) attachments[MPS_ATTACHMENT_COUNT];
  void (*attachment_destroy[MPS_ATTACHMENT_COUNT])(void *pointer); /* under streams_lock */

  mps_window_rewrite rewrite; /* set before steps are encoded */
  void *rewrite_context;
  _Atomic bool exiting; /* the process exits: no further step is begun */
};

/* Set in the child of a fork, where no thread runs; never reset. */
extern bool mps_process_is_forked;

static inline mps_stream *mps_device_stream(const mps_device *device, uint32_t slot) {
  return atomic_load_explicit(&device->streams[slot], memory_order_acquire);
}

/* A step that no waiter may run: it waits itself, wants the executor's thread, or may take any time, while Ctrl-C is to work. */
static inline bool mps_step_is_blocker(const mps_step *step) {
  if (step->kind == MPS_STEP_DISPATCH) return ((const mps_step_dispatch *)(const void *)step)->unknown != 0;
  if (step->kind == MPS_STEP_DENSE) return !((const mps_step_dense *)(const void *)step)->anywhere;
  return step->kind == MPS_STEP_WAIT;
}

/* ---- stream.c ---- */
mps_status mps_stream_make(mps_device *device, uint32_t slot, int64_t identifier, mps_stream **out_stream);
void mps_stream_free(mps_stream *stream); /* stops and joins the executor */
/* Lock held. True when the queue is worth waking the executor: signal `work`, best after unlocking. */
bool mps_stream_wake(mps_stream *stream);
/* Lock held. Takes back pages whose steps are done. */
void mps_stream_recycle_pages(mps_stream *stream, mps_page *page);
/* As mps_stream_reserve, but gives up (false) rather than wait for room. For hints. */
bool mps_stream_try_reserve(mps_stream *stream, uint32_t kind, size_t bytes, const char *label, void **out_step);

/* ---- failure.c ---- */
void mps_failure_set(mps_failure *failure, mps_status status, const char *label, const char *text);
/* Keeps a first failure for the next wait. */
void mps_stream_fail(mps_stream *stream, mps_status status, const char *label, const char *text);
/* Returns and clears the failure: its status with text and operator set, or OK. */
mps_status mps_stream_take_failure(mps_stream *stream);
/* Runner only, after steps are done: turns what a kernel reported into the stream's failure. */
void mps_stream_check_report(mps_stream *stream, const char *label);

/* ---- executor.c ---- */
/* As mps_stream_wait_serial, without looking at interrupts: those belong to the user's threads. */
mps_status mps_stream_wait_steadily(mps_stream *stream, uint64_t serial);
/* Lock held, dropped on return. Runs the only step that is queued; nobody holds the role. */
void mps_stream_run_immediately(mps_stream *stream);
/* Lock held. Starts the executor's thread. */
void mps_stream_start_executor(mps_stream *stream);
/* Lock held. True when nothing is queued and nobody runs. */
static inline bool mps_stream_is_quiet(const mps_stream *stream) {
  return !stream->running && atomic_load_explicit(&stream->completed, memory_order_acquire) ==
                                 atomic_load_explicit(&stream->encoded, memory_order_relaxed);
}

/* ---- event.c ---- */
void mps_event_execute_signal(mps_stream *stream, const mps_step *step);
mps_status mps_event_execute_wait(const mps_step *step);

/* ---- waits ---- */
/* The interrupt check's answer as a status. */
mps_status mps_check_interrupt(void);

#endif
