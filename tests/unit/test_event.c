/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_event: records, waits between streams and by the CPU, timing, lifetime.
 */
#include "base/thread.h"
#include "runtime/state.h"
#include "test.h"
#include "wrapper_driver.h"

static void dispatch(mps_stream *stream, double cost) {
  mps_step *step;
  CHECK_OK(mps_stream_reserve(stream, MPS_STEP_DISPATCH, sizeof(mps_step_dispatch), "work", cost, (void **)&step));
  mps_stream_publish(stream, step);
}

static void an_event_marks_what_was_encoded(void) {
  mps_device *device = WRAPPER(.on_dispatch = wrapper_hold);
  mps_stream *stream = mps_stream_default(device);
  mps_event *event;
  CHECK_OK(mps_event_create(device, false, &event));
  CHECK(!mps_event_query(event)); /* never recorded */
  CHECK_OK(mps_event_synchronize(event));
  CHECK_OK(mps_event_wait(event, stream));
  CHECK_INT(mps_stream_encoded(stream), 0);
  dispatch(stream, 1e6);
  CHECK_OK(mps_event_record(event, stream));
  CHECK(!mps_event_query(event));
  atomic_store(&wrapper_gate_is_open, true);
  CHECK_OK(mps_event_synchronize(event));
  CHECK(mps_event_query(event));
  atomic_store(&wrapper_gate_is_open, false);
  dispatch(stream, 1e6);
  CHECK(mps_event_query(event)); /* what came later does not matter */
  CHECK_OK(mps_event_record(event, stream));
  CHECK(!mps_event_query(event));
  atomic_store(&wrapper_gate_is_open, true);
  while (!mps_event_query(event)) mps_thread_yield(); /* a record is committed */
  mps_event_destroy(event);
  mps_event_destroy(NULL);
  mps_device_release(device);
}

static _Atomic int order_count;
static int order[3];
static void note(void *context) { order[atomic_fetch_add(&order_count, 1)] = *(int *)context; }

static void streams_wait_for_each_other(void) {
  mps_device *device = WRAPPER(.dispatch_ns = 20000000);
  mps_stream *first = mps_stream_default(device), *second = NULL;
  CHECK_OK(mps_stream_create(device, &second));
  mps_event *event;
  CHECK_OK(mps_event_create(device, false, &event));
  int numbers[3] = {1, 2, 3};
  for (int turn = 0; turn < 5; turn++) {
    atomic_store(&order_count, 0);
    dispatch(first, 1e6);
    CHECK_OK(mps_stream_callback(first, note, &numbers[0]));
    CHECK_OK(mps_event_record(event, first));
    CHECK_OK(mps_event_wait(event, second));
    CHECK_OK(mps_stream_callback(second, note, &numbers[1]));
    CHECK_OK(mps_event_record(event, second)); /* the earlier wait keeps its meaning */
    CHECK_OK(mps_event_wait(event, first));
    CHECK_OK(mps_stream_callback(first, note, &numbers[2]));
    CHECK_OK(mps_device_synchronize(device));
    CHECK_INT(order_count, 3);
    CHECK(order[0] == 1 && order[1] == 2 && order[2] == 3);
  }
  uint64_t encoded = mps_stream_encoded(second);
  CHECK_OK(mps_event_wait(event, second)); /* done already: nothing is encoded */
  CHECK_INT(mps_stream_encoded(second), encoded);
  mps_event_destroy(event);
  mps_stream_destroy(second);
  mps_device_release(device);
}

static void elapsed_times(void) {
  mps_device *device = WRAPPER(.dispatch_ns = 10000000);
  mps_stream *stream = mps_stream_default(device);
  mps_event *start, *end, *plain;
  double milliseconds = -1.0;
  CHECK_OK(mps_event_create(device, true, &start));
  CHECK_OK(mps_event_create(device, true, &end));
  CHECK_OK(mps_event_create(device, false, &plain));
  CHECK_STATUS(mps_event_elapsed(start, plain, &milliseconds), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_STRING(mps_error_message(), "Events were not created with argument 'enable_timing=True'");
  CHECK_STATUS(mps_event_elapsed(start, end, &milliseconds), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_STRING(mps_error_message(), "Both events must be recorded before calculating elapsed time.");
  CHECK_OK(mps_event_record(start, stream));
  dispatch(stream, 1e6);
  CHECK_OK(mps_event_record(end, stream));
  CHECK_OK(mps_event_elapsed(start, end, &milliseconds)); /* waits for them */
  CHECK(milliseconds >= 9.9 && milliseconds < 2000.0);
  CHECK_STATUS(mps_event_elapsed(end, start, &milliseconds), MPS_STATUS_INVALID_ARGUMENT);
  CHECK(strstr(mps_error_message(), "was not recorded after start event") != NULL);
  mps_event_destroy(start), mps_event_destroy(end), mps_event_destroy(plain);
  mps_device_release(device);
}

static void events_may_go_before_their_work(void) {
  mps_device *device = WRAPPER(.dispatch_ns = 1000000);
  mps_stream *stream = mps_stream_default(device), *other = NULL;
  CHECK_OK(mps_stream_from_pool(device, &other));
  for (int i = 0; i < 20; i++) {
    mps_event *event;
    CHECK_OK(mps_event_create(device, i % 2 == 0, &event));
    dispatch(stream, 1e6);
    CHECK_OK(mps_event_record(event, stream));
    CHECK_OK(mps_event_wait(event, other));
    CHECK_OK(mps_event_record(event, stream)); /* twice in flight */
    mps_event_destroy(event);
  }
  CHECK_OK(mps_device_synchronize(device));
  mps_device_release(device);
}

/* ---- many threads record and wait ---- */
enum { threads = 4, turns = 3000 };
typedef struct worker {
  mps_thread thread;
  mps_stream *own, *next;
  mps_event *event, *seen;
  int wrong;
} worker;

static void work(void *context) {
  worker *w = context;
  for (int i = 0; i < turns; i++) {
    dispatch(w->own, 500.0);
    w->wrong += mps_event_record(w->event, w->own) != MPS_STATUS_OK;
    w->wrong += mps_event_wait(w->seen, w->own) != MPS_STATUS_OK; /* another thread's, at whatever point it is */
    if (i % 50 == 0) w->wrong += mps_event_synchronize(w->event) != MPS_STATUS_OK || !mps_event_query(w->event);
  }
}

static void threads_wait_in_a_ring(void) {
  mps_device *device = WRAPPER();
  static worker workers[threads];
  memset(workers, 0, sizeof workers);
  for (int i = 0; i < threads; i++) {
    CHECK_OK(mps_stream_from_pool(device, &workers[i].own));
    CHECK_OK(mps_event_create(device, i % 2 == 0, &workers[i].event));
  }
  for (int i = 0; i < threads; i++) workers[i].seen = workers[(i + 1) % threads].event;
  for (int i = 0; i < threads; i++) CHECK_OK(mps_thread_create(&workers[i].thread, "worker", work, &workers[i]));
  for (int i = 0; i < threads; i++) {
    mps_thread_join(&workers[i].thread);
    CHECK_INT(workers[i].wrong, 0);
  }
  CHECK_OK(mps_device_synchronize(device));
  for (int i = 0; i < threads; i++) {
    CHECK(mps_event_query(workers[i].event));
    mps_event_destroy(workers[i].event);
  }
  mps_device_release(device);
}

int main(void) {
  RUN(an_event_marks_what_was_encoded);
  RUN(streams_wait_for_each_other);
  RUN(elapsed_times);
  RUN(events_may_go_before_their_work);
  RUN(threads_wait_in_a_ring);
  return test_end();
}
