/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_heap: sizes, reuse between streams, statistics, limits and texts, faults, and a fuzzer against a model.
 */
#include <stdlib.h>

#include "base/os/os.h"
#include "base/options.h"
#include "test.h"
#include "wrapper_driver.h"
#include "runtime/heap.h"
#include "runtime/state.h"

#define MIB ((size_t)1 << 20)

static uint64_t random_state = 88172645463325252u;
static uint64_t random_below(uint64_t bound) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return random_state % bound;
}

static mps_buffer *make(mps_device *device, mps_stream *stream, size_t length) {
  mps_buffer *buffer = NULL;
  CHECK_OK(mps_buffer_create(device, stream, length, &buffer));
  return buffer;
}

/* A dispatch that uses the buffer, not committed. */
static void use(mps_stream *stream, mps_buffer *buffer, double cost) {
  mps_step *step;
  CHECK_OK(mps_stream_reserve(stream, MPS_STEP_DISPATCH, sizeof(mps_step_dispatch), "use", cost, (void **)&step));
  (void)mps_buffer_address(buffer);
  mps_buffer_use(buffer, stream);
  mps_stream_publish(stream, step);
}

static void sizes_are_rounded(void) {
  CHECK_INT(mps_heap_round(1, 64, 4096), 64);
  CHECK_INT(mps_heap_round(64, 64, 4096), 64);
  CHECK_INT(mps_heap_round(1000000, 64, 4096), 1000000);
  CHECK_INT(mps_heap_round(MIB, 64, 4096), MIB);
  CHECK_INT(mps_heap_round(MIB + 1, 64, 4096), MIB + (MIB >> 5));
  CHECK_INT(mps_heap_round(64 * MIB + 1, 64, 4096), 66 * MIB);
  CHECK_INT(mps_heap_round(10 * MIB - 10, 64, 4096), 10 * MIB);
  CHECK_INT(mps_heap_round(10 * MIB - 5000, 64, 4096), 10 * MIB - 4096); /* the bucket would be in the next tier */
  for (uint64_t size = 1; size < UINT64_C(1) << 41; size += 1 + size / 7) {
    uint64_t rounded = mps_heap_round(size, 64, 4096);
    CHECK(rounded >= size && rounded - size <= (size > MIB ? (size >> 5) + 4096 : 63));
    CHECK_INT(mps_heap_round(rounded, 64, 4096), rounded);
    CHECK(mps_heap_bin_of(rounded + 64) >= mps_heap_bin_of(rounded));
    CHECK(mps_heap_region_size(rounded) >= rounded);
  }
  CHECK_INT(mps_heap_region_size(MIB), 8 * MIB);
  CHECK_INT(mps_heap_region_size(2 * MIB), 32 * MIB);
  CHECK_INT(mps_heap_region_size(10 * MIB), 1024 * MIB);
  CHECK_INT(mps_heap_region_size(513 * MIB), 514 * MIB);
}

static void sizes_are_formatted(void) {
  char text[32];
  CHECK_STRING(mps_heap_format_size(1024, text), "1024 bytes");
  CHECK_STRING(mps_heap_format_size(1536, text), "1.50 KiB");
  CHECK_STRING(mps_heap_format_size(3 * MIB, text), "3.00 MiB");
  CHECK_STRING(mps_heap_format_size((uint64_t)(2.28 * 1073741824.0), text), "2.28 GiB");
}

static void buffers_have_lengths_and_identifiers(void) {
  mps_device *device = WRAPPER();
  mps_buffer *a = make(device, NULL, 100), *b = make(device, NULL, 100);
  CHECK_INT(mps_buffer_length(a), 100);
  CHECK_INT((uintptr_t)mps_buffer_contents(a) % 64, 0);
  CHECK(mps_buffer_identifier(b) > mps_buffer_identifier(a));
  CHECK(mps_buffer_contents(a) != mps_buffer_contents(b));
  mps_buffer *none = NULL;
  CHECK_STATUS(mps_buffer_create(device, NULL, 0, &none), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(mps_buffer_create(device, NULL, SIZE_MAX, &none), MPS_STATUS_INVALID_ARGUMENT);
  CHECK(strstr(mps_error_message(), "Invalid buffer size: ") == mps_error_message());
  CHECK(mps_buffer_retain(a) == a);
  mps_buffer_release(a);
  CHECK_OK(mps_heap_validate(device));
  mps_heap_statistics statistics;
  mps_heap_get_statistics(device, &statistics);
  CHECK_INT(statistics.live_buffers, 2);
  CHECK_INT(statistics.allocated, 256);
  CHECK_INT(statistics.reserved, 8 * MIB);
  CHECK_INT(statistics.driver, 8 * MIB);
  mps_buffer_release(a);
  mps_buffer_release(b);
  mps_buffer_release(NULL);
  mps_heap_get_statistics(device, &statistics);
  CHECK_INT(statistics.allocated, 0);
  CHECK_INT(statistics.allocated_peak, 256);
  CHECK_INT(statistics.total_freed, 256);
  mps_heap_reset_peaks(device);
  mps_heap_reset_accumulated(device);
  mps_heap_get_statistics(device, &statistics);
  CHECK_INT(statistics.allocated_peak, 0);
  CHECK_INT(statistics.total_allocated, 0);
  mps_device_release(device);
}

static void large_results_come_from_warm_blocks(void) {
  mps_device *device = WRAPPER();
  void *first = NULL;
  for (int i = 0; i < 5; i++) {
    mps_buffer *buffer = make(device, NULL, 64 * MIB);
    if (i == 0) first = mps_buffer_contents(buffer);
    CHECK(mps_buffer_contents(buffer) == first);
    mps_buffer_release(buffer);
  }
  mps_heap_statistics statistics;
  mps_heap_get_statistics(device, &statistics);
  CHECK_INT(statistics.heaps, 1);
  CHECK_INT(statistics.reuses, 4);
  mps_device_release(device);
}

static void own_stream_reuses_at_once_others_later(void) {
  mps_device *device = WRAPPER();
  mps_stream *own = mps_stream_default(device), *other = NULL;
  CHECK_OK(mps_stream_create(device, &other));
  mps_buffer *buffer = make(device, own, 5000);
  void *address = mps_buffer_contents(buffer);
  use(own, buffer, 1000.0); /* queued, too cheap to be started */
  mps_buffer_release(buffer);
  mps_buffer *same = make(device, own, 5000);
  CHECK(mps_buffer_contents(same) == address);
  CHECK(!mps_buffer_is_idle(same)); /* an earlier life's step is still queued */
  use(own, same, 1000.0);
  mps_buffer_release(same);
  mps_buffer *foreign = make(device, other, 5000);
  CHECK(mps_buffer_contents(foreign) != address);
  CHECK(mps_buffer_is_idle(foreign));
  mps_buffer_release(foreign);
  CHECK_OK(mps_heap_validate(device));
  CHECK_OK(mps_stream_synchronize(own));
  bool met = false;
  mps_buffer *taken[64];
  int count = 0;
  while (!met && count < 64) { /* now it may be given to the other stream: whole or as part of a merged block */
    taken[count] = make(device, other, MIB);
    char *start = mps_buffer_contents(taken[count]);
    met = start <= (char *)address && (char *)address < start + MIB;
    count++;
  }
  CHECK(met);
  while (count) mps_buffer_release(taken[--count]);
  CHECK_OK(mps_heap_validate(device));
  mps_stream_destroy(other);
  mps_device_release(device);
}

static void recorded_streams_keep_a_block(void) {
  mps_device *device = WRAPPER();
  mps_stream *own = mps_stream_default(device), *other = NULL;
  CHECK_OK(mps_stream_create(device, &other));
  mps_buffer *buffer = make(device, own, 5000);
  void *address = mps_buffer_contents(buffer);
  use(other, buffer, 1000.0);
  CHECK(!mps_buffer_is_idle(buffer));
  mps_buffer_release(buffer);
  mps_buffer *again = make(device, own, 5000);
  CHECK(mps_buffer_contents(again) != address); /* not even by its owner */
  CHECK_OK(mps_heap_validate(device));
  CHECK_OK(mps_stream_synchronize(other));
  mps_buffer_release(again);
  again = make(device, own, 5000);
  CHECK(mps_buffer_contents(again) == address);
  mps_buffer_record_stream(again, other); /* nothing queued there: free at once */
  mps_buffer_release(again);
  again = make(device, own, 5000);
  CHECK(mps_buffer_contents(again) == address);
  mps_buffer_release(again);
  CHECK_OK(mps_heap_validate(device));
  mps_stream_destroy(other);
  mps_device_release(device);
}

static void count_release(void *context) { ++*(int *)context; }

static void wrapped_memory_is_given_back(void) {
  mps_device *device = WRAPPER();
  mps_stream *stream = mps_stream_default(device);
  int released = 0;
  char memory[256] = {0};
  mps_buffer *buffer = NULL;
  CHECK_STATUS(mps_buffer_wrap(device, NULL, 3, NULL, NULL, &buffer), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_OK(mps_buffer_wrap(device, memory, sizeof memory, count_release, &released, &buffer));
  CHECK(mps_buffer_contents(buffer) == memory);
  mps_buffer_release(buffer);
  CHECK_INT(released, 1);
  CHECK_OK(mps_buffer_wrap(device, memory, sizeof memory, count_release, &released, &buffer));
  use(stream, buffer, 1000.0);
  CHECK_OK(mps_stream_fill(stream, buffer, 1, 10, 7));
  CHECK(!mps_buffer_is_idle(buffer));
  mps_buffer_release(buffer);
  CHECK_INT(released, 1); /* the fill is queued */
  CHECK_OK(mps_stream_synchronize(stream));
  CHECK_INT(released, 2);
  CHECK_INT(memory[10], 7);
  CHECK_OK(mps_heap_validate(device));
  mps_device_release(device);
}

static void empty_cache_shrinks_the_process(void) {
  mps_device *device = WRAPPER();
  mps_buffer *buffer = make(device, NULL, 100 * MIB), *small = make(device, NULL, 100), *part = make(device, NULL, 20 * MIB);
  memset(mps_buffer_contents(buffer), 1, 100 * MIB);
  uint64_t before = mps_os_resident_memory();
  mps_buffer_release(buffer);
  CHECK_OK(mps_heap_empty_cache(device));
  uint64_t after = mps_os_resident_memory();
  CHECK(before == 0 || after + 80 * MIB < before); /* although `part` keeps the region */
  mps_heap_statistics statistics;
  mps_heap_get_statistics(device, &statistics);
  CHECK_INT(statistics.heaps, 2);
  mps_buffer_release(part);
  mps_buffer_release(small);
  CHECK_OK(mps_heap_empty_cache(device));
  mps_heap_get_statistics(device, &statistics);
  CHECK_INT(statistics.heaps, 0);
  CHECK_INT(statistics.reserved, 0);
  CHECK_INT(statistics.driver, 0);
  mps_device_release(device);
}

static void out_of_memory_says_what_upstream_says(void) {
  mps_device *device = WRAPPER(.recommended_memory = 100 * MIB);
  CHECK_INT(mps_heap_high_watermark(device), 170 * MIB);
  CHECK_INT(mps_heap_low_watermark(device), 140 * MIB);
  CHECK_OK(mps_heap_set_high_watermark_ratio(device, 1.0));
  mps_buffer *buffer = NULL, *more = NULL;
  CHECK_OK(mps_buffer_create(device, NULL, 90 * MIB, &buffer)); /* the 1 GiB tier does not fit the limit: a region of its own size */
  CHECK_STATUS(mps_buffer_create(device, NULL, 20 * MIB, &more), MPS_STATUS_OUT_OF_MEMORY);
  CHECK_STRING(mps_error_message(),
               "MPS backend out of memory (MPS allocated: 90.00 MiB, other allocations: 0 bytes, max allowed: 100.00 MiB). Tried to "
               "allocate 20.00 MiB on shared pool. Use PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 to disable upper limit for memory "
               "allocations (may cause system failure).");
  CHECK(more == NULL);
  CHECK_OK(mps_heap_validate(device));
  mps_buffer_release(buffer);
  CHECK_OK(mps_buffer_create(device, NULL, 95 * MIB, &more)); /* the cached region is given back to make room */
  mps_buffer_release(more);
  CHECK_OK(mps_heap_set_high_watermark_ratio(device, 0.0));
  CHECK(mps_heap_high_watermark(device) == UINT64_MAX);
  CHECK_OK(mps_buffer_create(device, NULL, 300 * MIB, &more));
  mps_buffer_release(more);
  CHECK_STATUS(mps_heap_set_high_watermark_ratio(device, 2.5), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_STRING(mps_error_message(), "invalid high watermark ratio 2.5");
  CHECK_STATUS(mps_heap_set_high_watermark_ratio(device, -1.0), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_OK(mps_heap_set_high_watermark_ratio(device, 0.5));
  CHECK_STATUS(mps_heap_set_low_watermark_ratio(device, 0.6), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_STRING(mps_error_message(), "invalid low watermark ratio 0.6");
  CHECK_OK(mps_heap_set_low_watermark_ratio(device, 0.0));
  CHECK(mps_heap_low_watermark(device) == UINT64_MAX);
  mps_device_release(device);
}

static void limits_follow_the_process(void) {
  mps_option_set(MPS_OPTION_HIGH_WATERMARK_RATIO, "2.0");
  mps_device *device = WRAPPER(.recommended_memory = UINT64_C(1) << 60);
  CHECK(mps_heap_high_watermark(device) < mps_os_total_memory());
  CHECK(mps_heap_low_watermark(device) < mps_heap_high_watermark(device));
  mps_device_release(device);
  mps_option_set(MPS_OPTION_HIGH_WATERMARK_RATIO, "0.5"); /* below the soft limit's default: that follows */
  device = WRAPPER(.recommended_memory = 100 * MIB);
  CHECK(device != NULL);
  CHECK_INT(mps_heap_high_watermark(device), 50 * MIB);
  mps_device_release(device);
  mps_option_set(MPS_OPTION_HIGH_WATERMARK_RATIO, "3");
  CHECK_STATUS(mps_device_open("null", &device), MPS_STATUS_INVALID_ARGUMENT);
  mps_option_set(MPS_OPTION_HIGH_WATERMARK_RATIO, NULL);
}

static void blocks_in_flight_are_waited_for_before_giving_up(void) {
  mps_device *device = WRAPPER(.recommended_memory = 100 * MIB, .dispatch_ns = 2000000);
  mps_stream *own = mps_stream_default(device), *other = NULL;
  CHECK_OK(mps_stream_create(device, &other));
  CHECK_OK(mps_heap_set_high_watermark_ratio(device, 1.0));
  mps_buffer *buffer = make(device, own, 80 * MIB);
  use(own, buffer, 1e6);
  mps_buffer_release(buffer);
  buffer = make(device, other, 60 * MIB);
  mps_buffer_release(buffer);
  CHECK_OK(mps_heap_validate(device));
  mps_stream_destroy(other);
  mps_device_release(device);
}

/* Refuses each allocation of the driver in turn: a failing call leaves nothing behind, and later ones work. */
static void refused_allocations_leave_nothing(void) {
  mps_device *device = WRAPPER();
  static const size_t lengths[] = {100, 2 * MIB, 30 * MIB, 600 * MIB};
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    mps_buffer *buffer = NULL;
    atomic_store(&wrapper.allocations_left, 0);
    CHECK_STATUS(mps_buffer_create(device, NULL, lengths[i], &buffer), MPS_STATUS_OUT_OF_MEMORY);
    CHECK(strstr(mps_error_message(), "MPS backend out of memory (MPS allocated: ") == mps_error_message());
    CHECK_OK(mps_heap_validate(device));
    mps_heap_statistics statistics;
    mps_heap_get_statistics(device, &statistics);
    CHECK_INT(statistics.allocated, 0);
    CHECK_INT(statistics.reserved, 0);
    atomic_store(&wrapper.allocations_left, -1);
    CHECK_OK(mps_buffer_create(device, NULL, lengths[i], &buffer));
    mps_buffer_release(buffer);
    CHECK_OK(mps_heap_empty_cache(device));
  }
  mps_device_release(device);
}

/* ---- guard bytes ---- */
static mps_device *guarded_device(const char *bits) {
  mps_option_set(MPS_OPTION_HEAP_GUARD, bits);
  mps_device *device = WRAPPER();
  mps_option_set(MPS_OPTION_HEAP_GUARD, NULL);
  return device;
}

static void guards_lie_around_every_buffer(void) {
  mps_device *device = guarded_device("5");
  mps_stream *stream = mps_stream_default(device);
  static const size_t lengths[] = {1, 63, 64, 1000, MIB, 3 * MIB + 1, 20 * MIB};
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    mps_buffer *buffer = make(device, NULL, lengths[i]);
    uint8_t *bytes = mps_buffer_contents(buffer);
    CHECK_INT((uintptr_t)bytes % 64, 0);
    CHECK_INT(mps_buffer_address(buffer), (uintptr_t)bytes);
    CHECK_INT(bytes[0], 0xFF);
    CHECK_INT(bytes[lengths[i] - 1], 0xFF);
    memset(bytes, 0, lengths[i]);
    CHECK_OK(mps_heap_validate(device));
    mps_buffer_release(buffer);
    CHECK_OK(mps_stream_synchronize(stream));
  }
  CHECK_OK(mps_heap_validate(device));
  CHECK_OK(mps_heap_empty_cache(device));
  mps_heap_statistics statistics;
  mps_heap_get_statistics(device, &statistics);
  CHECK_INT(statistics.reserved, 0);
  mps_device_release(device);
}

/* Each place just outside is noticed at the release, told once, and mended. */
static void writes_outside_are_told_at_release(void) {
  mps_device *device = guarded_device("1");
  mps_stream *stream = mps_stream_default(device);
  static const int64_t places[] = {-512, -1, 100, 163, 611};
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    mps_buffer *buffer = make(device, NULL, 100);
    ((uint8_t *)mps_buffer_contents(buffer))[places[i]] = 0;
    CHECK_STATUS(mps_heap_validate(device), MPS_STATUS_INTERNAL_ERROR);
    CHECK(strstr(mps_error_message(), "outside its contents") != NULL);
    char text[256];
    snprintf(text, sizeof text, "a kernel wrote outside buffer #%llu of 100 bytes, at its bytes %lld to %lld; OPENMPS_HEAP_GUARD=3 tells which kernel",
             (unsigned long long)mps_buffer_identifier(buffer), (long long)places[i], (long long)places[i]);
    mps_buffer_release(buffer);
    CHECK_STATUS(mps_stream_synchronize(stream), MPS_STATUS_INTERNAL_ERROR);
    CHECK_STRING(mps_error_message(), text);
    CHECK_OK(mps_stream_synchronize(stream));
    CHECK_OK(mps_heap_validate(device));
  }
  mps_device_release(device);
}

static void guarded_blocks_are_not_reused_in_flight(void) {
  mps_device *device = guarded_device("1");
  mps_stream *stream = mps_stream_default(device);
  mps_buffer *buffer = make(device, NULL, 5000);
  void *contents = mps_buffer_contents(buffer);
  use(stream, buffer, 1000.0);
  CHECK_OK(mps_stream_fill(stream, buffer, 0, 5000, 7)); /* queued: the block must stay as it is until then */
  mps_buffer_release(buffer);
  mps_buffer *other = make(device, NULL, 5000);
  CHECK(mps_buffer_contents(other) != contents);
  CHECK_OK(mps_stream_synchronize(stream));
  mps_buffer_release(other);
  CHECK_OK(mps_heap_validate(device));
  mps_device_release(device);
}

static mps_buffer *victim;
static void overrun(const mps_step_dispatch *step) {
  if (strcmp(step->step.label, "use") != 0) return;
  uint8_t *bytes = mps_buffer_contents(victim);
  bytes[-3] = bytes[-2] = 1;
}

static void the_kernel_is_named(void) {
  mps_option_set(MPS_OPTION_HEAP_GUARD, "3");
  mps_device *device = WRAPPER(.on_dispatch = overrun);
  mps_option_set(MPS_OPTION_HEAP_GUARD, NULL);
  mps_stream *stream = mps_stream_default(device);
  victim = make(device, NULL, 100);
  mps_buffer *own = make(device, NULL, 100);
  use(stream, own, 10.0); /* writes beside a buffer that is not even its own */
  char text[256];
  snprintf(text, sizeof text, "use wrote outside buffer #%llu of 100 bytes, at its bytes -3 to -2", (unsigned long long)mps_buffer_identifier(victim));
  CHECK_STATUS(mps_stream_synchronize(stream), MPS_STATUS_INTERNAL_ERROR);
  CHECK_STRING(mps_error_message(), text);
  mps_buffer_release(own);
  mps_buffer_release(victim);
  CHECK_OK(mps_stream_synchronize(stream));
  mps_device_release(device);
}

/* ---- the fuzzer ---- */
enum { fuzz_slots = 300, fuzz_streams = 4 };
typedef struct fuzz_entry {
  mps_buffer *buffer;
  size_t length;
  uint8_t mark;
} fuzz_entry;

static size_t random_length(void) {
  switch (random_below(10)) {
    case 0:
      return 1 + random_below(12 * MIB);
    case 1:
      return 1 + random_below(2 * MIB);
    case 2:
    case 3:
      return 1 + random_below(100000);
    default:
      return 1 + random_below(4000);
  }
}

/* Live blocks must not overlap; the ends of each carry its mark. */
static bool marks_hold(const fuzz_entry *entry) {
  const uint8_t *bytes = mps_buffer_contents(entry->buffer);
  return bytes[0] == entry->mark && bytes[entry->length - 1] == entry->mark && bytes[entry->length / 2] == entry->mark;
}

static void fuzz_against_a_model(void) {
  mps_device *device = WRAPPER(.recommended_memory = 600 * MIB);
  mps_stream *streams[fuzz_streams] = {mps_stream_default(device)};
  for (int i = 1; i < fuzz_streams; i++) CHECK_OK(mps_stream_create(device, &streams[i]));
  static fuzz_entry entries[fuzz_slots];
  memset(entries, 0, sizeof entries);
  int lost = 0, refused = 0;
  for (int turn = 0; turn < 60000 && !test_failures; turn++) {
    fuzz_entry *entry = &entries[random_below(fuzz_slots)];
    mps_stream *stream = streams[random_below(fuzz_streams)];
    if (entry->buffer) {
      lost += !marks_hold(entry);
      uint64_t act = random_below(8);
      if (act == 0) use(stream, entry->buffer, 10.0);
      if (act == 1) mps_buffer_record_stream(entry->buffer, stream);
      if (act == 2) use(entry->buffer->stream, entry->buffer, 3000.0);
      mps_buffer_release(entry->buffer);
      entry->buffer = NULL;
    } else {
      entry->length = random_length();
      entry->mark = (uint8_t)turn;
      mps_status status = mps_buffer_create(device, stream, entry->length, &entry->buffer);
      if (status == MPS_STATUS_OUT_OF_MEMORY) {
        refused++;
        entry->buffer = NULL;
        continue;
      }
      CHECK_INT(status, MPS_STATUS_OK);
      uint8_t *bytes = mps_buffer_contents(entry->buffer);
      bytes[0] = bytes[entry->length - 1] = bytes[entry->length / 2] = entry->mark;
    }
    if (turn % 97 == 0) CHECK_OK(mps_stream_synchronize(stream));
    if (turn % 211 == 0) CHECK_OK(mps_heap_validate(device));
    if (turn % 9001 == 0) CHECK_OK(mps_heap_empty_cache(device));
  }
  CHECK_INT(lost, 0);
  uint64_t live = 0, bytes = 0;
  for (int i = 0; i < fuzz_slots; i++) {
    if (!entries[i].buffer) continue;
    live++;
    bytes += mps_heap_round(entries[i].length, 64, mps_os_page_size());
  }
  mps_heap_statistics statistics;
  mps_heap_get_statistics(device, &statistics);
  CHECK_INT(statistics.live_buffers, live);
  CHECK(statistics.allocated >= bytes);
  CHECK(statistics.allocated <= bytes + live * 65536);
  for (int i = 0; i < fuzz_slots; i++) mps_buffer_release(entries[i].buffer);
  CHECK_OK(mps_heap_empty_cache(device));
  CHECK_OK(mps_heap_validate(device));
  mps_heap_get_statistics(device, &statistics);
  CHECK_INT(statistics.reserved, 0);
  for (int i = 1; i < fuzz_streams; i++) mps_stream_destroy(streams[i]);
  mps_device_release(device);
}

int main(void) {
  RUN(sizes_are_rounded);
  RUN(sizes_are_formatted);
  RUN(buffers_have_lengths_and_identifiers);
  RUN(large_results_come_from_warm_blocks);
  RUN(own_stream_reuses_at_once_others_later);
  RUN(recorded_streams_keep_a_block);
  RUN(wrapped_memory_is_given_back);
  RUN(empty_cache_shrinks_the_process);
  RUN(out_of_memory_says_what_upstream_says);
  RUN(limits_follow_the_process);
  RUN(blocks_in_flight_are_waited_for_before_giving_up);
  RUN(refused_allocations_leave_nothing);
  RUN(guards_lie_around_every_buffer);
  RUN(writes_outside_are_told_at_release);
  RUN(guarded_blocks_are_not_reused_in_flight);
  RUN(the_kernel_is_named);
  RUN(fuzz_against_a_model);
  return test_end();
}
