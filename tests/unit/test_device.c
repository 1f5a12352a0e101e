/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_device: opening, information, attachments, and what a forked child gets.
 */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/options.h"
#include "base/thread.h"
#include "runtime/device.h"
#include "runtime/stream.h"
#include "test.h"
#include "wrapper_driver.h"

static void devices_open_by_name(void) {
  mps_device *device = NULL;
  CHECK_STATUS(mps_device_open("toaster", &device), MPS_STATUS_NOT_FOUND);
  CHECK(strstr(mps_error_message(), "toaster") != NULL);
  CHECK(device == NULL);
  CHECK_OK(mps_device_open("null", &device));
  const mps_device_info *info = mps_device_get_info(device);
  CHECK_STRING(info->driver, "null");
  CHECK_INT(info->thread_execution_width, 32);
  CHECK(info->unified_memory);
  CHECK(info->recommended_memory > 0);
  CHECK(mps_device_retain(device) == device);
  mps_device_release(device);
  CHECK(mps_device_get_info(device) == info); /* one reference is left */
  CHECK_OK(mps_device_synchronize(device));
  mps_device_release(device);
  mps_device_release(NULL);
}

static void opening_again_and_again_leaves_nothing(void) {
  for (int i = 0; i < 50; i++) {
    mps_device *device;
    mps_stream *stream;
    CHECK_OK(mps_device_open("null", &device));
    CHECK_OK(mps_stream_create(device, &stream)); /* not destroyed: the device does it */
    mps_buffer *buffer;
    CHECK_OK(mps_buffer_create(device, stream, 100, &buffer));
    CHECK_OK(mps_stream_fill(stream, buffer, 0, 100, 1));
    mps_stream_commit(stream);
    mps_device_release(device);
  }
}

/* ---- attachments ---- */
static int destroy_count, destroy_order[2];
static void destroy(void *pointer) { destroy_order[destroy_count++ % 2] = *(int *)pointer; }

static void attachments(void) {
  mps_device *device = WRAPPER();
  int first = 1, late = 2, graph = 3;
  CHECK(mps_device_attachment(device, MPS_ATTACHMENT_OPS) == NULL);
  CHECK(mps_device_attach(device, MPS_ATTACHMENT_OPS, &first, destroy) == &first);
  CHECK(mps_device_attach(device, MPS_ATTACHMENT_OPS, &late, destroy) == &first); /* the loser is destroyed */
  CHECK_INT(destroy_count, 1);
  CHECK_INT(destroy_order[0], 2);
  CHECK(mps_device_attachment(device, MPS_ATTACHMENT_OPS) == &first);
  CHECK(mps_device_attach(device, MPS_ATTACHMENT_GRAPH, &graph, destroy) == &graph);
  destroy_count = 0;
  mps_device_release(device);
  CHECK_INT(destroy_count, 2);
  CHECK_INT(destroy_order[0], 3); /* highest slot first */
  CHECK_INT(destroy_order[1], 1);
}

/* ---- the default device ---- */
static mps_device *seen[8];
static void ask(void *context) {
  if (mps_device_default((mps_device **)context) != MPS_STATUS_OK) *(mps_device **)context = NULL;
}

static void there_is_one_default_device(void) {
  mps_option_set(MPS_OPTION_DRIVER, "toaster");
  CHECK_STATUS(mps_device_default(&seen[0]), MPS_STATUS_NOT_FOUND);
  mps_option_set(MPS_OPTION_DRIVER, "null"); /* a failed attempt is not remembered */
  mps_thread threads[8];
  for (int i = 0; i < 8; i++) CHECK_OK(mps_thread_create(&threads[i], "ask", ask, &seen[i]));
  for (int i = 0; i < 8; i++) mps_thread_join(&threads[i]);
  for (int i = 0; i < 8; i++) CHECK(seen[i] != NULL && seen[i] == seen[0]);
}

/* What the child finds; its exit code tells the parent. */
static int look_in_child(mps_device *device, mps_buffer *buffer, mps_event *event) {
  mps_stream *stream = mps_stream_default(device);
  mps_device *other = NULL;
  mps_buffer *fresh = NULL;
  mps_heap_statistics statistics;
  char bytes[4] = {0};
  void *step;
  int n = 1;
  if (!mps_in_forked_child()) return n;
  n++;
  if (mps_device_default(&other) != MPS_STATUS_DEVICE_LOST || !strstr(mps_error_message(), "fork")) return n;
  n++;
  if (mps_device_open("null", &other) != MPS_STATUS_DEVICE_LOST) return n;
  n++;
  if (mps_buffer_create(device, NULL, 100, &fresh) != MPS_STATUS_DEVICE_LOST) return n;
  n++;
  if (mps_stream_synchronize(stream) != MPS_STATUS_DEVICE_LOST) return n;
  n++;
  if (mps_device_synchronize(device) != MPS_STATUS_DEVICE_LOST) return n;
  n++;
  if (mps_stream_fill(stream, buffer, 0, 1, 0) != MPS_STATUS_DEVICE_LOST) return n;
  n++;
  if (mps_stream_write(stream, buffer, 0, bytes, 4) != MPS_STATUS_DEVICE_LOST) return n;
  n++;
  if (mps_stream_read(stream, buffer, 0, bytes, 4) != MPS_STATUS_DEVICE_LOST) return n;
  n++;
  if (mps_stream_reserve(stream, MPS_STEP_DISPATCH, 64, "x", 1, &step) != MPS_STATUS_DEVICE_LOST) return n;
  n++;
  if (mps_event_record(event, stream) != MPS_STATUS_DEVICE_LOST || mps_event_query(event)) return n;
  n++;
  if (mps_heap_empty_cache(device) != MPS_STATUS_DEVICE_LOST) return n;
  mps_heap_get_statistics(device, &statistics);
  mps_stream_commit(stream);
  mps_buffer_release(buffer); /* does nothing */
  mps_event_destroy(event);
  mps_device_release(device);
  return 0;
}

static void a_forked_child_is_told(void) {
  mps_device *device = NULL;
  CHECK_OK(mps_device_default(&device));
  mps_stream *stream = mps_stream_default(device);
  mps_buffer *buffer;
  mps_event *event;
  CHECK_OK(mps_buffer_create(device, stream, 100, &buffer));
  CHECK_OK(mps_event_create(device, true, &event));
  CHECK_OK(mps_event_record(event, stream));
  CHECK_OK(mps_stream_fill(stream, buffer, 0, 100, 1));
  mps_stream_commit(stream);
  void *step;
  CHECK_OK(mps_stream_reserve(stream, MPS_STEP_DISPATCH, 64, "half", 1, &step));
  fflush(NULL);
  pid_t child = fork(); /* in the middle of an encoding: the lock is held */
  if (child == 0) {
    alarm(20);
    int answer = look_in_child(device, buffer, event);
    if (answer) _exit(answer);
    exit(0); /* runs exit handlers: none may hang */
  }
  mps_stream_abandon(stream, step);
  int result = -1;
  CHECK_INT(waitpid(child, &result, 0), child);
  CHECK(WIFEXITED(result));
  CHECK_INT(WEXITSTATUS(result), 0);
  CHECK(!mps_in_forked_child());
  CHECK_OK(mps_stream_synchronize(stream)); /* the parent goes on */
  mps_buffer_release(buffer);
  mps_event_destroy(event);
}

static void slow(void *context) {
  (void)context;
  struct timespec pause = {0, 100000000};
  nanosleep(&pause, NULL);
}

/* A process that exits with work queued: ends soon, without a crash. */
static void exit_drops_what_is_queued(void) {
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    execl("/proc/self/exe", "test_device", "exit", (char *)NULL);
    _exit(99);
  }
  int result = -1;
  CHECK_INT(waitpid(child, &result, 0), child);
  CHECK(WIFEXITED(result));
  CHECK_INT(WEXITSTATUS(result), 3);
}

static int exit_with_work(void) {
  mps_device *device;
  mps_option_set(MPS_OPTION_DRIVER, "null");
  if (mps_device_default(&device) != MPS_STATUS_OK) return 1;
  mps_stream *stream = mps_stream_default(device);
  for (int i = 0; i < 1000; i++) {
    if (mps_stream_callback(stream, slow, NULL) != MPS_STATUS_OK) return 2;
  }
  struct timespec pause = {0, 20000000};
  nanosleep(&pause, NULL);
  exit(3);
}

int main(int argc, char **argv) {
  if (argc > 1 && !strcmp(argv[1], "exit")) return exit_with_work();
  RUN(devices_open_by_name);
  RUN(opening_again_and_again_leaves_nothing);
  RUN(attachments);
  RUN(there_is_one_default_device);
  RUN(a_forked_child_is_told);
  RUN(exit_drops_what_is_queued);
  return test_end();
}
