/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_stream: order, waits, copies, failures, kernel reports, windows, and many threads at once.
 */
#include <stdlib.h>

#include "../../kernels/error.h"
#include "base/thread.h"
#include "runtime/state.h"
#include "test.h"
#include "wrapper_driver.h"

#define MIB ((size_t)1 << 20)

static mps_buffer *make(mps_device *device, mps_stream *stream, size_t length) {
  mps_buffer *buffer = NULL;
  CHECK_OK(mps_buffer_create(device, stream, length, &buffer));
  return buffer;
}

static void encode(mps_stream *stream, uint32_t kind, size_t bytes, const char *label, double cost) {
  mps_step *step;
  CHECK_OK(mps_stream_reserve(stream, kind, bytes, label, cost, (void **)&step));
  memset(step + 1, 0, bytes - sizeof *step);
  mps_stream_publish(stream, step);
}

static void dispatch(mps_stream *stream, const char *label, double cost) {
  encode(stream, MPS_STEP_DISPATCH, sizeof(mps_step_dispatch), label, cost);
}

/* ---- order ---- */
typedef struct order_record {
  int seen[1000];
  _Atomic int count;
} order_record;
typedef struct order_item {
  order_record *record;
  int number;
} order_item;
static order_item order_items[1000];

static void note(void *context) {
  order_item *item = context;
  int place = atomic_load(&item->record->count);
  item->record->seen[place] = item->number;
  atomic_store(&item->record->count, place + 1);
}

static void steps_run_in_order(void) {
  mps_device *device = WRAPPER();
  mps_stream *stream = mps_stream_default(device);
  static order_record record;
  memset(&record, 0, sizeof record);
  for (int i = 0; i < 1000; i++) {
    order_items[i] = (order_item){&record, i};
    CHECK_OK(mps_stream_callback(stream, note, &order_items[i]));
    dispatch(stream, "between", 1.0);
  }
  CHECK_OK(mps_stream_synchronize(stream));
  CHECK_INT(record.count, 1000);
  int wrong = 0;
  for (int i = 0; i < 1000; i++) wrong += record.seen[i] != i;
  CHECK_INT(wrong, 0);
  CHECK_INT(mps_stream_encoded(stream), 2000);
  CHECK_INT(mps_stream_completed(stream), 2000);
  CHECK(mps_stream_query(stream));
  mps_device_release(device);
}

static void the_smallest_work_is_done_at_once(void) {
  mps_device *device = WRAPPER();
  mps_stream *stream = mps_stream_default(device);
  dispatch(stream, "smallest", 100.0);
  CHECK_INT(mps_stream_completed(stream), 1);
  dispatch(stream, "small", 1000.0);
  dispatch(stream, "smallest", 100.0); /* not alone: in its order */
  CHECK_INT(mps_stream_completed(stream), 1);
  CHECK_OK(mps_stream_synchronize(stream));
  encode(stream, MPS_STEP_DENSE, 128, "dense", 10.0); /* another thread's, always */
  CHECK_INT(stream->blockers_executed, 0);
  CHECK_OK(mps_stream_synchronize(stream));
  CHECK_INT(mps_stream_completed(stream), 4);
  mps_device_release(device);
}

static void small_work_waits_for_a_reason(void) {
  mps_device *device = WRAPPER();
  mps_stream *stream = mps_stream_default(device);
  dispatch(stream, "small", 1000.0);
  CHECK_INT(stream->executor_state, MPS_EXECUTOR_NONE); /* no thread was started for it */
  CHECK_INT(mps_stream_completed(stream), 0);
  CHECK_OK(mps_stream_synchronize(stream)); /* the waiter ran it */
  CHECK_INT(mps_stream_completed(stream), 1);
  CHECK_INT(stream->executor_state, MPS_EXECUTOR_NONE);
  dispatch(stream, "large", 1e6);
  CHECK_INT(stream->executor_state, MPS_EXECUTOR_STARTED);
  while (mps_stream_completed(stream) < 2) mps_thread_yield(); /* without a commit */
  dispatch(stream, "small", 1000.0);
  mps_stream_commit(stream);
  while (mps_stream_completed(stream) < 3) mps_thread_yield();
  encode(stream, MPS_STEP_DENSE, 128, "dense", 10.0); /* dense calls belong to the executor */
  CHECK_OK(mps_stream_synchronize(stream));
  dispatch(stream, "small", 1000.0);
  while (!mps_stream_query(stream)) mps_thread_yield(); /* who polls gets it run */
  mps_device_release(device);
}

static void dense(mps_stream *stream, bool anywhere, double cost) {
  mps_step *step;
  CHECK_OK(mps_stream_reserve(stream, MPS_STEP_DENSE, 128, anywhere ? "anywhere" : "executor's", cost, (void **)&step));
  memset(step + 1, 0, 128 - sizeof *step);
  ((mps_step_dense *)(void *)step)->anywhere = anywhere;
  mps_stream_publish(stream, step);
}

static void dense_calls_of_any_thread_need_no_executor(void) {
  mps_device *device = WRAPPER();
  mps_stream *stream = mps_stream_default(device);
  dense(stream, true, 10.0); /* the smallest work: at once */
  CHECK_INT(mps_stream_completed(stream), 1);
  dispatch(stream, "before", 1000.0);
  dense(stream, true, 1000.0);
  dispatch(stream, "behind", 1000.0);
  CHECK_OK(mps_stream_synchronize(stream)); /* the waiter's work, all of it */
  CHECK_INT(mps_stream_completed(stream), 4);
  CHECK_INT(stream->executor_state, MPS_EXECUTOR_NONE);
  dense(stream, true, 1000.0);
  dense(stream, false, 1000.0); /* behind it nobody but the executor may go on */
  dense(stream, true, 1000.0);
  CHECK_OK(mps_stream_synchronize(stream));
  CHECK_INT(mps_stream_completed(stream), 7);
  CHECK_INT(stream->executor_state, MPS_EXECUTOR_STARTED);
  dense(stream, true, 1000.0);
  CHECK_OK(mps_stream_synchronize(stream));
  CHECK(mps_stream_query(stream));
  mps_device_release(device);
}

static void steps_of_all_sizes_fit(void) {
  mps_device *device = WRAPPER();
  mps_stream *stream = mps_stream_default(device);
  void *step;
  CHECK_STATUS(mps_stream_reserve(stream, MPS_STEP_DISPATCH, MPS_STREAM_MAX_STEP_BYTES + 1, "huge", 1, &step), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(mps_stream_reserve(stream, MPS_STEP_DISPATCH, 3, "tiny", 1, &step), MPS_STATUS_INVALID_ARGUMENT);
  size_t bytes = 24;
  for (int i = 0; i < 3000; i++) {
    CHECK_OK(mps_stream_reserve(stream, MPS_STEP_DISPATCH, bytes, "any", 20, &step));
    CHECK_INT((uintptr_t)step % 16, 0);
    memset((char *)step + sizeof(mps_step), 0xff, bytes - sizeof(mps_step));
    if (i % 7 == 3) {
      mps_stream_abandon(stream, step);
    } else {
      mps_stream_publish(stream, step);
    }
    bytes = 24 + (bytes * 7919 + (size_t)i) % (i % 100 == 0 ? 200000 : 3000);
  }
  CHECK_OK(mps_stream_reserve(stream, MPS_STEP_DISPATCH, MPS_STREAM_MAX_STEP_BYTES, "largest", 1, &step));
  mps_stream_publish(stream, step);
  CHECK_OK(mps_stream_synchronize(stream));
  CHECK(mps_stream_query(stream));
  mps_device_release(device);
}

static void encoding_does_not_run_away(void) {
  mps_device *device = WRAPPER(.dispatch_ns = 1000);
  mps_stream *stream = mps_stream_default(device);
  for (int i = 0; i < 3000; i++) encode(stream, MPS_STEP_DISPATCH, 60000, "wide", 1000.0); /* 180 MB of steps */
  CHECK(stream->page_count <= MPS_PAGES_MAX + 1);
  CHECK_OK(mps_stream_synchronize(stream));
  CHECK(stream->page_count <= 2);
  mps_device_release(device);
}

/* ---- bytes ---- */
static void bytes_move(void) {
  mps_device *device = WRAPPER();
  mps_stream *stream = mps_stream_default(device);
  mps_buffer *a = make(device, stream, 1000), *b = make(device, stream, 1000);
  uint8_t in[1000], out[1000];
  for (int i = 0; i < 1000; i++) in[i] = (uint8_t)(i * 7);
  CHECK_OK(mps_stream_write(stream, a, 0, in, 1000));
  CHECK_OK(mps_stream_copy(stream, a, 10, b, 0, 500));
  CHECK_OK(mps_stream_fill(stream, b, 100, 50, 0xaa));
  CHECK_OK(mps_stream_copy(stream, b, 0, b, 1, 400)); /* overlaps */
  CHECK_OK(mps_stream_read(stream, b, 0, out, 1000));
  CHECK_INT(out[0], in[10]);
  CHECK_INT(out[1], in[10]);
  CHECK_INT(out[100], in[109]);
  CHECK_INT(out[101], 0xaa);
  CHECK_INT(out[150], 0xaa);
  CHECK_INT(out[151], in[160]);
  CHECK_INT(out[400], in[409]);
  CHECK_INT(out[401], in[411]);
  CHECK_STATUS(mps_stream_copy(stream, a, 900, b, 0, 101), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(mps_stream_copy(stream, a, 0, b, UINT64_MAX, 2), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(mps_stream_fill(stream, a, 1001, 0, 0), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(mps_stream_write(stream, a, 1, in, 1000), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(mps_stream_read(stream, a, 0, out, 1001), MPS_STATUS_INVALID_ARGUMENT);
  uint64_t encoded = mps_stream_encoded(stream);
  CHECK_OK(mps_stream_fill(stream, a, 1000, 0, 0));
  CHECK_INT(mps_stream_encoded(stream), encoded); /* nothing to do, nothing encoded */
  mps_buffer_release(a);
  mps_buffer_release(b);
  mps_device_release(device);
}

/* Writes into a buffer that queued steps still use: small, larger (by a copy), and too large for that all keep the order. */
static void writes_keep_the_order(void) {
  mps_device *device = WRAPPER();
  mps_stream *stream = mps_stream_default(device);
  static const size_t lengths[] = {16, 40000, 3 * MIB};
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    size_t length = lengths[i];
    uint8_t *bytes = malloc(length), *first = malloc(length), *second = malloc(length);
    mps_buffer *buffer = make(device, stream, length), *before = make(device, stream, length);
    memset(bytes, 1, length);
    CHECK_OK(mps_stream_write(stream, buffer, 0, bytes, length)); /* idle: at once */
    CHECK_INT(mps_stream_encoded(stream), mps_stream_completed(stream));
    CHECK_OK(mps_stream_copy(stream, buffer, 0, before, 0, length)); /* cheap enough to stay queued when small */
    memset(bytes, 2, length);
    CHECK_OK(mps_stream_write(stream, buffer, 0, bytes, length));
    memset(bytes, 3, length); /* the write has read its source */
    CHECK_OK(mps_stream_read(stream, before, 0, first, length));
    CHECK_OK(mps_stream_read(stream, buffer, 0, second, length));
    CHECK(first[0] == 1 && first[length - 1] == 1);
    CHECK(second[0] == 2 && second[length - 1] == 2);
    mps_buffer_release(buffer);
    mps_buffer_release(before);
    free(bytes), free(first), free(second);
  }
  CHECK_OK(mps_heap_validate(device));
  mps_device_release(device);
}

static void a_fresh_buffer_is_written_at_once(void) {
  mps_device *device = WRAPPER(.on_dispatch = wrapper_hold);
  atomic_store(&wrapper_gate_is_open, false);
  mps_stream *stream = mps_stream_default(device);
  mps_buffer *busy = make(device, stream, 100000);
  dispatch(stream, "long", 1e8);
  mps_buffer *fresh = make(device, stream, 100000);
  char bytes[100000] = {1};
  CHECK(mps_buffer_is_idle(fresh)); /* although its stream is busy */
  CHECK_OK(mps_stream_write(stream, fresh, 0, bytes, sizeof bytes));
  CHECK_INT(mps_stream_encoded(stream), 1);
  mps_buffer_release(fresh);
  CHECK_INT(mps_stream_encoded(stream), 1); /* never used on the device: no marker */
  mps_buffer_release(busy);
  atomic_store(&wrapper_gate_is_open, true);
  CHECK_OK(mps_stream_synchronize(stream));
  mps_device_release(device);
}

/* ---- failures ---- */
static void a_failed_step_is_told_at_the_next_wait(void) {
  mps_device *device = WRAPPER(.failing_label = "gemm");
  mps_stream *stream = mps_stream_default(device);
  mps_buffer *buffer = make(device, stream, 64);
  dispatch(stream, "gemm", 1.0);
  dispatch(stream, "gemm", 1.0);
  CHECK_OK(mps_stream_fill(stream, buffer, 0, 64, 5)); /* later steps still run */
  CHECK_STATUS(mps_stream_synchronize(stream), MPS_STATUS_PROVIDER_ERROR);
  CHECK_STRING(mps_error_message(), "gemm was made to fail");
  CHECK_STRING(mps_error_operator(), "gemm");
  CHECK_INT(((uint8_t *)mps_buffer_contents(buffer))[63], 5);
  CHECK_OK(mps_stream_synchronize(stream));
  dispatch(stream, "gemm", 1e6); /* on the executor this time */
  uint8_t byte;
  CHECK_STATUS(mps_stream_read(stream, buffer, 0, &byte, 1), MPS_STATUS_PROVIDER_ERROR);
  dispatch(stream, "gemm", 1e6);
  CHECK_STATUS(mps_device_synchronize(device), MPS_STATUS_PROVIDER_ERROR);
  CHECK_STRING(mps_error_operator(), "gemm");
  CHECK_OK(mps_device_synchronize(device));
  mps_buffer_release(buffer);
  mps_device_release(device);
}

/* What a kernel does to report an index. */
static void report(const mps_step_dispatch *step) {
  if (step->argument_count == 0) return;
  mps_kernel_error *error = (mps_kernel_error *)(uintptr_t)step->arguments[0].address;
  if (error->count++) return;
  error->kind = MPS_KERNEL_ERROR_INDEX;
  error->dimension = 0;
  error->value = 6;
  error->bound = 4;
}

static void encode_report(mps_stream *stream, const char *label) {
  mps_step_dispatch *step;
  uint64_t address, length;
  CHECK_OK(mps_stream_error_memory(stream, &address, &length));
  CHECK_INT(length, sizeof(mps_kernel_error));
  size_t bytes = sizeof *step + sizeof(mps_step_argument);
  CHECK_OK(mps_stream_reserve(stream, MPS_STEP_DISPATCH, bytes, label, 10.0, (void **)&step));
  step->argument_count = 1;
  step->arguments[0] = (mps_step_argument){.address = address, .length = length};
  mps_stream_publish(stream, &step->step);
}

static void kernel_reports_become_errors(void) {
  for (int asynchronous = 0; asynchronous < 2; asynchronous++) {
    mps_device *device = WRAPPER(.on_dispatch = report, .asynchronous = asynchronous != 0);
    mps_stream *stream = mps_stream_default(device);
    dispatch(stream, "before", 1.0);
    encode_report(stream, "index_select");
    if (!asynchronous) encode_report(stream, "gather"); /* the first one counts */
    CHECK_STATUS(mps_stream_synchronize(stream), MPS_STATUS_KERNEL_ERROR);
    CHECK_STRING(mps_error_message(), "index 6 is out of bounds for dimension 0 with size 4");
    CHECK_STRING(mps_error_operator(), "index_select");
    CHECK_OK(mps_stream_synchronize(stream));
    encode_report(stream, "gather"); /* the record was cleared */
    CHECK_STATUS(mps_stream_synchronize(stream), MPS_STATUS_KERNEL_ERROR);
    CHECK_STRING(mps_error_operator(), "gather");
    mps_device_release(device);
  }
}

/* ---- interrupts ---- */
static _Atomic int interrupt;
static int asked_to_stop(void) { return atomic_load(&interrupt); }

static void waits_can_be_interrupted(void) {
  mps_device *device = WRAPPER(.on_dispatch = wrapper_hold);
  atomic_store(&wrapper_gate_is_open, false);
  mps_stream *stream = mps_stream_default(device);
  mps_set_interrupt_check(asked_to_stop);
  atomic_store(&interrupt, 1);
  encode(stream, MPS_STEP_DENSE, 128, "before", 1.0); /* keeps the waiter from running the dispatch itself */
  dispatch(stream, "long", 1e9);
  CHECK_STATUS(mps_stream_synchronize(stream), MPS_STATUS_INTERRUPTED); /* the dispatch does not end by itself */
  atomic_store(&interrupt, 0);
  atomic_store(&wrapper_gate_is_open, true);
  CHECK_OK(mps_stream_synchronize(stream));
  mps_set_interrupt_check(NULL);
  mps_device_release(device);
}

/* ---- several streams ---- */
static void streams_come_and_go(void) {
  mps_device *device = WRAPPER();
  mps_stream *streams[40], *again;
  int made = 0;
  while (made < 40 && mps_stream_create(device, &streams[made]) == MPS_STATUS_OK) made++;
  CHECK_INT(made, 31);
  CHECK(strstr(mps_error_message(), "at most 31 streams") != NULL);
  int64_t identifier = mps_stream_identifier(streams[5]);
  CHECK_OK(mps_stream_from_identifier(device, identifier, &again));
  CHECK(again == streams[5]);
  dispatch(streams[5], "work", 10.0);
  mps_stream_destroy(streams[5]); /* waits */
  CHECK_STATUS(mps_stream_from_identifier(device, identifier, &again), MPS_STATUS_NOT_FOUND);
  CHECK_OK(mps_stream_create(device, &streams[5]));
  CHECK(mps_stream_identifier(streams[5]) != identifier);
  CHECK_INT(mps_stream_encoded(streams[5]), 1); /* serials go on */
  dispatch(streams[5], "work", 1e6);
  CHECK_OK(mps_stream_synchronize(streams[5]));
  for (int i = 0; i < made; i++) mps_stream_destroy(streams[i]);
  mps_stream_destroy(NULL);

  mps_stream *first, *pool;
  CHECK_OK(mps_stream_from_pool(device, &first));
  CHECK_INT(mps_stream_identifier(first), 1);
  for (int i = 0; i < 31; i++) CHECK_OK(mps_stream_from_pool(device, &pool));
  CHECK_INT(mps_stream_identifier(pool), 32);
  CHECK_OK(mps_stream_from_pool(device, &pool));
  CHECK(pool == first);
  CHECK_OK(mps_stream_from_identifier(device, 0, &pool));
  CHECK(pool == mps_stream_default(device));
  CHECK(mps_stream_current(device) == pool);
  mps_stream_set_current(device, first);
  CHECK(mps_stream_current(device) == first);
  mps_stream_set_current(device, NULL);
  CHECK(mps_stream_current(device) == mps_stream_default(device));
  CHECK(mps_stream_device(first) == device);
  mps_device_release(device);
}

/* ---- windows ---- */
typedef struct window_record {
  int windows, steps, frees, closed, asked_more;
  bool drop; /* rewrite pairs of dispatches into one */
} window_record;

static mps_window_answer rewrite(void *context, mps_window *window) {
  window_record *record = context;
  if (!window->closed && window->count < 4) {
    record->asked_more++;
    return MPS_WINDOW_MORE;
  }
  record->windows++;
  record->closed += window->closed;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < window->count; i++) {
    record->steps++;
    record->frees += window->steps[i]->kind == MPS_STEP_FREE;
    bool dropped = record->drop && window->steps[i]->kind == MPS_STEP_DISPATCH;
    if (!dropped) window->steps[kept++] = window->steps[i];
  }
  window->count = kept;
  return MPS_WINDOW_RUN;
}

static _Atomic int dispatched;
static void count_dispatch(const mps_step_dispatch *step) {
  (void)step;
  atomic_fetch_add(&dispatched, 1);
}

static void windows_can_be_rewritten(void) {
  mps_device *device = WRAPPER(.on_dispatch = count_dispatch);
  mps_stream *stream = mps_stream_default(device);
  window_record record = {.drop = true};
  mps_device_set_window_rewrite(device, rewrite, &record);
  atomic_store(&dispatched, 0);
  mps_buffer *buffer = make(device, stream, 100);
  for (int i = 0; i < 100; i++) dispatch(stream, "a", 10.0);
  CHECK_OK(mps_stream_fill(stream, buffer, 0, 100, 9));
  uint8_t *bytes = mps_buffer_contents(buffer);
  mps_buffer_release(buffer);
  static order_record order;
  memset(&order, 0, sizeof order);
  order_items[0] = (order_item){&order, 0};
  CHECK_OK(mps_stream_synchronize(stream));
  CHECK_INT(bytes[99], 9);
  CHECK_INT(record.steps, 102);
  CHECK_INT(record.frees, 1);
  CHECK_INT(record.windows, 2); /* 64 and 38 */
  CHECK_INT(dispatched, 0);
  CHECK_OK(mps_stream_callback(stream, note, &order_items[0])); /* callbacks stand between windows */
  dispatch(stream, "b", 1e6);
  CHECK_OK(mps_stream_synchronize(stream));
  CHECK_INT(order.count, 1);
  record = (window_record){0};
  for (int i = 0; i < 200; i++) dispatch(stream, "large", 50000.0); /* an open window gets its moment */
  CHECK_OK(mps_stream_synchronize(stream));
  CHECK_INT(record.steps, 200);
  CHECK_INT(dispatched, 200);
  CHECK(record.closed >= 1);
  mps_device_release(device);
}

/* ---- many threads ---- */
enum { stress_threads = 8, stress_steps = 100000 };
typedef struct stress_thread {
  mps_thread thread;
  mps_device *device;
  mps_stream *streams[3];
  mps_event *event;
  uint64_t random;
  int wrong;
} stress_thread;

static uint64_t next_random(stress_thread *t) {
  t->random ^= t->random << 13;
  t->random ^= t->random >> 7;
  t->random ^= t->random << 17;
  return t->random;
}

static void stress_dispatch(mps_stream *stream, mps_buffer *buffer, double cost) {
  mps_step_fill *step;
  if (mps_stream_reserve(stream, MPS_STEP_FILL, sizeof *step, "stress", cost, (void **)&step) != MPS_STATUS_OK) return;
  step->address = mps_buffer_address(buffer);
  step->length = mps_buffer_length(buffer);
  step->allocation = mps_buffer_identifier(buffer);
  step->value = 1;
  mps_buffer_use(buffer, stream);
  mps_stream_publish(stream, &step->step);
}

/* A stream that is not a buffer's owner waits for the owner first: the block's last life may be in flight. */
static void hand_over(stress_thread *t, mps_stream *owner, mps_stream *user) {
  if (owner == user) return;
  t->wrong += mps_event_record(t->event, owner) != MPS_STATUS_OK;
  t->wrong += mps_event_wait(t->event, user) != MPS_STATUS_OK;
}

static void stress(void *context) {
  stress_thread *t = context;
  mps_buffer *held[8] = {0};
  mps_stream *users[8] = {0}; /* the one stream that uses it; not always its owner */
  for (int i = 0; i < stress_steps; i++) {
    uint64_t r = next_random(t);
    mps_stream *stream = t->streams[r % 3];
    mps_buffer **place = &held[r >> 8 & 7];
    if (!*place) {
      if (mps_buffer_create(t->device, stream, 1 + (r >> 16) % 300, place) != MPS_STATUS_OK) t->wrong++;
      users[r >> 8 & 7] = t->streams[(r >> 40) % 3];
      hand_over(t, stream, users[r >> 8 & 7]);
      continue;
    }
    stress_dispatch(users[r >> 8 & 7], *place, r & 1 << 20 ? 50.0 : 3000.0);
    if ((r >> 24 & 3) == 0) {
      mps_buffer_release(*place);
      *place = NULL;
    }
    if (r >> 32 & 1) continue;
    switch (r >> 34 & 255) {
      case 0:
        t->wrong += mps_stream_synchronize(stream) != MPS_STATUS_OK;
        break;
      case 1:
        mps_stream_commit(stream);
        break;
      case 2:
        (void)mps_stream_query(stream);
        break;
      case 3:
        if ((r >> 42 & 31) == 0) t->wrong += mps_heap_validate(t->device) != MPS_STATUS_OK;
        break;
      default:
        break;
    }
  }
  for (int i = 0; i < 8; i++) mps_buffer_release(held[i]);
}

static void many_threads_encode_free_and_wait(void) {
  mps_device *device = WRAPPER(.core_count = 2); /* executors spin before they sleep */
  static stress_thread threads[stress_threads];
  mps_stream *streams[3] = {mps_stream_default(device)};
  CHECK_OK(mps_stream_create(device, &streams[1]));
  CHECK_OK(mps_stream_create(device, &streams[2]));
  for (int i = 0; i < stress_threads; i++) {
    threads[i] = (stress_thread){.device = device, .random = 77777u + (uint64_t)i * 7919u};
    memcpy(threads[i].streams, streams, sizeof streams);
    CHECK_OK(mps_event_create(device, false, &threads[i].event));
    CHECK_OK(mps_thread_create(&threads[i].thread, "stress", stress, &threads[i]));
  }
  int wrong = 0;
  for (int i = 0; i < stress_threads; i++) {
    mps_thread_join(&threads[i].thread);
    mps_event_destroy(threads[i].event);
    wrong += threads[i].wrong;
  }
  CHECK_INT(wrong, 0);
  CHECK_OK(mps_device_synchronize(device));
  for (int i = 0; i < 3; i++) CHECK_INT(mps_stream_completed(streams[i]), mps_stream_encoded(streams[i]));
  CHECK_OK(mps_heap_empty_cache(device));
  mps_heap_statistics statistics;
  mps_heap_get_statistics(device, &statistics);
  CHECK_INT(statistics.live_buffers, 0);
  CHECK_INT(statistics.reserved, 0);
  CHECK_OK(mps_heap_validate(device));
  mps_stream_destroy(streams[1]);
  mps_stream_destroy(streams[2]);
  mps_device_release(device);
}

static void an_asynchronous_driver_is_drained(void) {
  mps_device *device = WRAPPER(.asynchronous = true);
  mps_stream *stream = mps_stream_default(device);
  mps_buffer *buffer = make(device, stream, 100);
  static order_record order;
  memset(&order, 0, sizeof order);
  for (int i = 0; i < 100; i++) {
    order_items[i] = (order_item){&order, i};
    dispatch(stream, "work", 5000.0);
    CHECK_OK(mps_stream_fill(stream, buffer, 0, 100, (uint8_t)i));
    CHECK_OK(mps_stream_callback(stream, note, &order_items[i]));
  }
  uint8_t byte = 0;
  CHECK_OK(mps_stream_read(stream, buffer, 50, &byte, 1));
  CHECK_INT(byte, 99);
  CHECK_INT(order.count, 100);
  CHECK_INT(order.seen[99], 99);
  mps_buffer_release(buffer);
  mps_device_release(device);
}

int main(void) {
  RUN(steps_run_in_order);
  RUN(the_smallest_work_is_done_at_once);
  RUN(small_work_waits_for_a_reason);
  RUN(dense_calls_of_any_thread_need_no_executor);
  RUN(steps_of_all_sizes_fit);
  RUN(encoding_does_not_run_away);
  RUN(bytes_move);
  RUN(writes_keep_the_order);
  RUN(a_fresh_buffer_is_written_at_once);
  RUN(a_failed_step_is_told_at_the_next_wait);
  RUN(kernel_reports_become_errors);
  RUN(waits_can_be_interrupted);
  RUN(streams_come_and_go);
  RUN(windows_can_be_rewritten);
  RUN(many_threads_encode_free_and_wait);
  RUN(an_asynchronous_driver_is_drained);
  return test_end();
}
