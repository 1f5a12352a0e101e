/* SPDX-License-Identifier: BSD-3-Clause
 *
 * event: a mark in a stream. A record is the serial of a SIGNAL step; who waits, waits for that serial. The step keeps the event alive,
 * and carries the number of its record, so that a later record is not taken for an earlier one.
 */
#include <stdlib.h>

#include "base/status.h"
#include "runtime/state.h"

struct mps_event {
  _Atomic uint32_t references;
  mps_device *device;
  bool timing;
  uint64_t number; /* for texts */

  mps_mutex lock;       /* of what follows; inside of the stream's lock */
  mps_stream *stream;   /* of the last record; NULL = never recorded */
  uint64_t serial;      /* of its SIGNAL step */
  uint64_t record;      /* number of the last record */
  uint64_t timed_record; /* the record that `timestamp` belongs to */
  uint64_t timestamp;   /* ns */
};

typedef struct step_signal {
  mps_step step;
  mps_event *event;
  uint64_t record;
} step_signal;

typedef struct step_wait {
  mps_step step;
  mps_stream *stream;
  uint64_t serial;
} step_wait;

static _Atomic uint64_t next_number = 1;

mps_status mps_event_create(mps_device *device, bool timing, mps_event **out_event) {
  MPS_TRY(mps_check_fork());
  mps_event *event = calloc(1, sizeof *event);
  if (!event) return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for an event");
  atomic_init(&event->references, 1);
  mps_mutex_init(&event->lock);
  event->device = device;
  event->timing = timing;
  event->number = atomic_fetch_add(&next_number, 1);
  *out_event = event;
  return MPS_STATUS_OK;
}

static void release_event(mps_event *event) {
  if (atomic_fetch_sub_explicit(&event->references, 1, memory_order_acq_rel) != 1) return;
  mps_mutex_fini(&event->lock);
  free(event);
}

void mps_event_destroy(mps_event *event) {
  if (event && !mps_process_is_forked) release_event(event);
}

mps_status mps_event_record(mps_event *event, mps_stream *stream) {
  step_signal *step;
  MPS_TRY(mps_stream_reserve(stream, MPS_STEP_SIGNAL, sizeof *step, "event", 100.0, (void **)&step));
  atomic_fetch_add_explicit(&event->references, 1, memory_order_relaxed);
  mps_mutex_lock(&event->lock);
  event->stream = stream;
  event->serial = atomic_load_explicit(&stream->encoded, memory_order_relaxed) + 1; /* what publish will give it */
  step->event = event;
  step->record = ++event->record;
  mps_mutex_unlock(&event->lock);
  mps_stream_publish(stream, &step->step);
  return MPS_STATUS_OK;
}

void mps_event_execute_signal(mps_stream *stream, const mps_step *pointer) {
  const step_signal *step = (const step_signal *)(const void *)pointer;
  mps_event *event = step->event;
  if (event->timing) {
    uint64_t now = stream->device->driver->vtable->timestamp(stream->queue);
    mps_mutex_lock(&event->lock);
    if (step->record > event->timed_record) {
      event->timed_record = step->record;
      event->timestamp = now;
    }
    mps_mutex_unlock(&event->lock);
  }
  release_event(event);
}

/* The last record: false when there is none. */
static bool get_record(mps_event *event, mps_stream **out_stream, uint64_t *out_serial) {
  mps_mutex_lock(&event->lock);
  *out_stream = event->stream;
  *out_serial = event->serial;
  mps_mutex_unlock(&event->lock);
  return *out_stream != NULL;
}

mps_status mps_event_wait(mps_event *event, mps_stream *stream) {
  MPS_TRY(mps_check_fork());
  mps_stream *recorded;
  uint64_t serial;
  if (!get_record(event, &recorded, &serial)) return MPS_STATUS_OK;
  if (recorded == stream || mps_stream_completed(recorded) >= serial) return MPS_STATUS_OK;
  step_wait *step;
  MPS_TRY(mps_stream_reserve(stream, MPS_STEP_WAIT, sizeof *step, "event wait", 100.0, (void **)&step));
  step->stream = recorded;
  step->serial = serial;
  mps_stream_publish(stream, &step->step);
  mps_stream_commit(stream);
  return MPS_STATUS_OK;
}

mps_status mps_event_execute_wait(const mps_step *pointer) {
  const step_wait *step = (const step_wait *)(const void *)pointer;
  mps_status status = mps_stream_wait_steadily(step->stream, step->serial);
  return status == MPS_STATUS_DEVICE_LOST ? MPS_STATUS_OK : status;
}

mps_status mps_event_synchronize(mps_event *event) {
  MPS_TRY(mps_check_fork());
  mps_stream *stream;
  uint64_t serial;
  if (!get_record(event, &stream, &serial)) return MPS_STATUS_OK;
  return mps_stream_wait_serial(stream, serial);
}

bool mps_event_query(mps_event *event) {
  if (mps_process_is_forked) return false;
  mps_stream *stream;
  uint64_t serial;
  return get_record(event, &stream, &serial) && mps_stream_completed(stream) >= serial;
}

mps_status mps_event_elapsed(mps_event *start, mps_event *end, double *out_milliseconds) {
  if (!start->timing || !end->timing) {
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "Events were not created with argument 'enable_timing=True'");
  }
  mps_stream *stream;
  uint64_t serial;
  if (!get_record(start, &stream, &serial) || !get_record(end, &stream, &serial)) {
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "Both events must be recorded before calculating elapsed time.");
  }
  MPS_TRY(mps_event_synchronize(start));
  MPS_TRY(mps_event_synchronize(end));
  mps_mutex_lock(&start->lock);
  uint64_t begin = start->timestamp;
  mps_mutex_unlock(&start->lock);
  mps_mutex_lock(&end->lock);
  uint64_t finish = end->timestamp;
  mps_mutex_unlock(&end->lock);
  if (finish < begin) {
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "End event %llu was not recorded after start event %llu",
                         (unsigned long long)end->number, (unsigned long long)start->number);
  }
  *out_milliseconds = (double)(finish - begin) * 1e-6;
  return MPS_STATUS_OK;
}
