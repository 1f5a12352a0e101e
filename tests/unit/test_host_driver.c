/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_host_driver: the host driver without any compiled kernel: workers, memory, libraries, dispatches cut into boxes, copies, fills,
 * dense calls that spread over the workers.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/options.h"
#include "base/thread.h"
#include "base/time.h"
#include "driver/host/host.h"
#include "openmps/dense.h"
#include "test.h"

/* ---- workers ---- */
#define CHUNKS 300
typedef struct counted {
  _Atomic uint32_t times[CHUNKS];
  uint32_t sleep_us; /* of odd chunks */
} counted;

static void count_chunk(void *context, uint32_t chunk, void *scratch) {
  counted *c = context;
  memset(scratch, (int)chunk, 64);
  if (c->sleep_us && chunk % 2) usleep(c->sleep_us);
  atomic_fetch_add(&c->times[chunk], 1);
}

static void each_chunk_runs_once(void) {
  for (uint32_t threads = 1; threads <= 4; threads++) {
    mps_host_workers *workers;
    mps_host_region *region;
    CHECK_OK(mps_host_workers_create(threads, &workers));
    CHECK_OK(mps_host_region_open(workers, &region));
    for (int round = 0; round < 60; round++) {
      counted c = {.sleep_us = round % 20 == 19 ? 30 : 0};
      uint32_t count = 1 + (uint32_t)(round * 7) % CHUNKS;
      mps_host_region_run(region, count, round % 2 ? 1e6 : 0, count_chunk, &c);
      for (uint32_t i = 0; i < CHUNKS; i++) CHECK_INT(c.times[i], i < count ? 1 : 0);
      if (round % 10 == 0) usleep(300); /* helpers fall asleep */
    }
    mps_host_region_close(region);
    mps_host_workers_destroy(workers);
  }
}

typedef struct executor {
  mps_host_workers *workers;
  int failures;
} executor;

static void run_executor(void *context) {
  executor *e = context;
  for (int round = 0; round < 40; round++) {
    mps_host_region *region;
    if (mps_host_region_open(e->workers, &region) != MPS_STATUS_OK) {
      e->failures++;
      return;
    }
    for (int again = 0; again < 5; again++) {
      counted c = {.sleep_us = 0};
      mps_host_region_run(region, 50, 1e6, count_chunk, &c);
      for (uint32_t i = 0; i < 50; i++) e->failures += c.times[i] != 1;
    }
    mps_host_region_close(region);
  }
}

static void several_executors_share_the_helpers(void) {
  executor e[3];
  mps_thread threads[3];
  mps_host_workers *workers;
  CHECK_OK(mps_host_workers_create(3, &workers));
  for (int i = 0; i < 3; i++) {
    e[i] = (executor){workers, 0};
    CHECK_OK(mps_thread_create(&threads[i], "executor", run_executor, &e[i]));
  }
  for (int i = 0; i < 3; i++) {
    mps_thread_join(&threads[i]);
    CHECK_INT(e[i].failures, 0);
  }
  mps_host_workers_destroy(workers);
}

/* ---- a device with kernels of the test's own ---- */
static void mark_threads(const mps_host_dispatch *d) {
  unsigned char *marks = d->buffers[0];
  uint64_t *boxes = d->buffers[1];
  uint32_t *shared = d->threadgroup[0];
  for (unsigned i = 0; i < 3; i++) {
    if (d->begin[i] % d->group[i] != 0 || (d->end[i] % d->group[i] != 0 && d->end[i] != d->grid[i])) return;
  }
  for (uint64_t z = d->begin[2]; z < d->end[2]; z++) {
    for (uint64_t y = d->begin[1]; y < d->end[1]; y++) {
      for (uint64_t x = d->begin[0]; x < d->end[0]; x++) {
        shared[15] = (uint32_t)x;
        marks[(z * d->grid[1] + y) * d->grid[0] + x]++;
      }
    }
  }
  __atomic_fetch_add(&boxes[0], 1, __ATOMIC_RELAXED);
}
static const mps_host_function mark_function = {
    .name = "mark_threads", .entry = mark_threads, .buffer_count = 3, .buffer_mask = 3, .max_threads_per_threadgroup = 1024};
static const mps_host_function *const functions[] = {&mark_function};
static const mps_host_library_table table = {MPS_HOST_ABI_VERSION, 1, functions, NULL};

static mps_driver_device *device;
static mps_driver_queue *queue;

static void libraries(void) {
  mps_driver_library *library = NULL;
  CHECK_OK(mps_host_library_create(&table, "table", &library));
  CHECK_INT(mps_host_function_count(library), 1);
  CHECK(mps_host_find_function(library, "mark_threads") == mps_host_function_at(library, 0));
  CHECK(mps_host_find_function(library, "mark") == NULL);
  CHECK(mps_host_function_at(library, 1) == NULL);
  mps_host_unload_library(library);
  mps_host_library_table other = table;
  other.abi_version = 99;
  CHECK_STATUS(mps_host_library_create(&other, "old.so", &library), MPS_STATUS_NOT_FOUND);
  CHECK(library == NULL && strstr(mps_error_message(), "old.so was built for kernel interface 99"));
  CHECK_STATUS(device->vtable->load_library(device, NULL, 0, "/nonexistent/kernels.so", &library), MPS_STATUS_NOT_FOUND);
  CHECK_STATUS(device->vtable->load_library(device, NULL, 0, NULL, &library), MPS_STATUS_INVALID_ARGUMENT);
}

static void builtin_kernels_that_are_missing(void) {
  const char *before = getenv("OPENMPS_KERNEL_PATH");
  mps_option_set(MPS_OPTION_KERNEL_PATH, "/nonexistent");
  mps_driver_device *other;
  mps_driver_library *library;
  CHECK_OK(mps_driver_host.open(&other));
  CHECK_STATUS(other->vtable->builtin_library(other, &library), MPS_STATUS_NOT_FOUND);
  CHECK(strstr(mps_error_message(), "in /nonexistent: openmps-kernels-<level>.so is missing; set OPENMPS_KERNEL_PATH"));
  other->vtable->close(other);
  mps_option_set(MPS_OPTION_KERNEL_PATH, before);
}

static void limits(void) {
  const mps_driver_limits *l = &device->limits;
  CHECK(l->page_bytes >= 4096 && l->buffer_alignment == 64 && l->unified_memory && !l->asynchronous);
  CHECK(l->core_count >= 1 && l->preferred_threads_per_threadgroup == 1);
  CHECK(l->recommended_memory > 0 && l->recommended_memory <= l->max_buffer_length);
  CHECK_INT(l->recommended_memory % l->page_bytes, 0);
}

static void allocation(void) {
  mps_driver_memory small, large;
  uint64_t before = device->vtable->allocated(device);
  CHECK_OK(device->vtable->allocate(device, 4096, &small));
  CHECK_OK(device->vtable->allocate(device, (uint64_t)64 << 20, &large));
  CHECK_INT(device->vtable->allocated(device) - before, 4096 + ((uint64_t)64 << 20));
  CHECK_INT(large.address % (2 << 20), 0);
  CHECK((uint64_t)(uintptr_t)large.contents == large.address);
  ((char *)large.contents)[large.length - 1] = 1;
  ((char *)large.contents)[0] = 1;
  device->vtable->discard(device, &large, (uint64_t)2 << 20, (uint64_t)62 << 20);
  CHECK(((char *)large.contents)[0] == 1);
  device->vtable->free(device, &small);
  device->vtable->free(device, &large);
  CHECK_INT(device->vtable->allocated(device), before);
  mps_driver_memory none;
  CHECK_STATUS(device->vtable->allocate(device, UINT64_MAX - 4095, &none), MPS_STATUS_OUT_OF_MEMORY);
  CHECK(none.handle == NULL);
}

/* ---- dispatch ---- */
static void run_grid(const uint64_t threads[3], const uint32_t group[3], double cost) {
  uint64_t total = threads[0] * threads[1] * threads[2], boxes = 0;
  unsigned char *marks = calloc(1, total);
  mps_driver_library *library;
  CHECK_OK(mps_host_library_create(&table, "table", &library));
  mps_step_dispatch *step = calloc(1, sizeof *step + 2 * sizeof(mps_step_argument));
  step->step = (mps_step){.kind = MPS_STEP_DISPATCH, .label = "mark", .cost = cost};
  step->function = mps_host_find_function(library, "mark_threads");
  memcpy(step->threads, threads, sizeof step->threads);
  memcpy(step->group, group, sizeof step->group);
  step->threadgroup_bytes[0] = 64;
  step->argument_count = 2;
  step->arguments[0] = (mps_step_argument){.address = (uint64_t)(uintptr_t)marks, .length = total, .access = 2};
  step->arguments[1] = (mps_step_argument){.address = (uint64_t)(uintptr_t)&boxes, .length = 8, .access = 3};
  CHECK_OK(device->vtable->execute(queue, &step->step));
  for (uint64_t i = 0; i < total; i++) {
    if (marks[i] != 1) {
      CHECK_INT(marks[i], 1);
      break;
    }
  }
  CHECK(cost == 0 || device->limits.core_count == 1 || total == 1 || boxes > 1);
  free(step);
  free(marks);
  mps_host_unload_library(library);
}

static void grids(void) {
  static const uint64_t sizes[][3] = {{1, 1, 1}, {1000, 1, 1}, {7, 5, 3}, {1, 1, 97}, {3, 1000, 2}, {65, 33, 17}, {1, 2, 1}};
  static const uint32_t groups[][3] = {{1, 1, 1}, {32, 1, 1}, {4, 3, 2}, {8, 8, 1}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    for (size_t j = 0; j < sizeof groups / sizeof *groups; j++) {
      bool one = sizes[i][0] <= groups[j][0] && sizes[i][1] <= groups[j][1] && sizes[i][2] <= groups[j][2];
      run_grid(sizes[i], groups[j], 0);
      run_grid(sizes[i], groups[j], one ? 0 : 1e6);
    }
  }
}

/* ---- copies and fills ---- */
static void copy_bytes(unsigned char *memory, size_t from, size_t to, size_t length) {
  mps_step_copy step = {.step = {.kind = MPS_STEP_COPY}, .source = (uint64_t)(uintptr_t)memory + from,
                        .destination = (uint64_t)(uintptr_t)memory + to, .length = length};
  CHECK_OK(device->vtable->execute(queue, &step.step));
}

static void copies_and_fills(void) {
  size_t bytes = (size_t)12 << 20;
  unsigned char *memory = malloc(bytes), *expected = malloc(bytes);
  for (size_t i = 0; i < bytes; i++) memory[i] = expected[i] = (unsigned char)(i * 31 + i / 1000);
  static const size_t cases[][3] = {{0, 6 << 20, 5 << 20}, {6 << 20, 1, (5 << 20) + 77}, {0, 3, 5 << 20}, {3, 0, 5 << 20},
                                    {10, 500, 100},        {500, 10, 0},                 {8, 8, 1000}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    copy_bytes(memory, cases[i][0], cases[i][1], cases[i][2]);
    memmove(expected + cases[i][1], expected + cases[i][0], cases[i][2]);
    CHECK(!memcmp(memory, expected, bytes));
  }
  static const size_t fills[][2] = {{5, 11 << 20}, {100, 3}, {7, 0}, {1, 5000}};
  for (size_t i = 0; i < sizeof fills / sizeof *fills; i++) {
    mps_step_fill step = {.step = {.kind = MPS_STEP_FILL}, .address = (uint64_t)(uintptr_t)memory + fills[i][0],
                          .length = fills[i][1], .value = 0xf0 + (uint32_t)i};
    CHECK_OK(device->vtable->execute(queue, &step.step));
    memset(expected + fills[i][0], (int)(0xf0 + i), fills[i][1]);
    CHECK(!memcmp(memory, expected, bytes));
  }
  free(memory);
  free(expected);
}

/* ---- dense calls, callbacks, the rest ---- */
static void count_piece(void *context, uint32_t index) {
  atomic_fetch_add((_Atomic uint32_t *)context, index + 1);
}
static void count_pieces(void *context, uint32_t index) {
  (void)index;
  mps_dense_parallel(10, count_piece, context);
}
static mps_status dense_call(const void *parameters) {
  void *sum = *(void *const *)parameters;
  mps_dense_parallel(20, count_pieces, sum);
  if (mps_dense_thread_count() != device->limits.core_count) return MPS_STATUS_INTERNAL_ERROR;
  return mps_error_set(MPS_STATUS_PROVIDER_ERROR, "told");
}
static void callback(void *context) { mps_dense_parallel(10, count_piece, context); }

static void dense_calls_and_callbacks(void) {
  _Atomic uint32_t sum = 0;
  void *parameters[1] = {(void *)&sum};
  mps_step_dense dense = {.step = {.kind = MPS_STEP_DENSE}, .function = dense_call, .parameters = parameters};
  CHECK_STATUS(device->vtable->execute(queue, &dense.step), MPS_STATUS_PROVIDER_ERROR);
  CHECK_INT(sum, 20 * 55);
  mps_step_callback call = {.step = {.kind = MPS_STEP_CALLBACK}, .function = callback, .context = (void *)&sum};
  CHECK_OK(device->vtable->execute(queue, &call.step));
  CHECK_INT(sum, 21 * 55);
  CHECK_INT(mps_dense_thread_count(), 1);
  mps_step strange = {.kind = MPS_STEP_SIGNAL, .label = "strange"};
  CHECK_STATUS(device->vtable->execute(queue, &strange), MPS_STATUS_INTERNAL_ERROR);
  uint64_t first = device->vtable->timestamp(queue);
  CHECK(device->vtable->timestamp(queue) >= first);
}

int main(void) {
  mps_option_set(MPS_OPTION_THREADS, "3");
  CHECK_OK(mps_driver_host.open(&device));
  CHECK_OK(device->vtable->create_queue(device, &queue));
  RUN(each_chunk_runs_once);
  RUN(several_executors_share_the_helpers);
  RUN(limits);
  RUN(libraries);
  RUN(builtin_kernels_that_are_missing);
  RUN(allocation);
  RUN(grids);
  RUN(copies_and_fills);
  RUN(dense_calls_and_callbacks);
  device->vtable->destroy_queue(queue);
  device->vtable->close(device);
  return test_end();
}
