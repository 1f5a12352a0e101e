/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fuzz_heap: bytes as a sequence of calls on the heap: allocations and releases on four streams, queued uses, recorded streams, wrapped
 * memory, refusals of the driver, limits. Live blocks keep their marks, heap_check's walk finds nothing, and in the end nothing is left.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "runtime/buffer.h"
#include "runtime/state.h"
#include "wrapper_driver.h"

#define MIB ((size_t)1 << 20)

enum { slots = 32, streams = 4, call_bytes = 4, wrapped_bytes = 96 };

typedef struct slot {
  mps_buffer *buffer;
  size_t length;
  uint8_t mark;
  bool wrapped;
} slot;

typedef struct state {
  mps_device *device;
  mps_stream *streams[streams];
  slot slots[slots];
  uint8_t memory[slots][wrapped_bytes]; /* that is wrapped */
  int in_use[slots];                    /* wrappings whose owner has not heard yet */
  bool holds;
} state;

static void check(state *s, bool condition, const char *what) {
  if (condition || !s->holds) return;
  s->holds = false;
  fprintf(stderr, "%s\n", what);
}

static void check_status(state *s, mps_status status) {
  if (status != MPS_STATUS_OK) check(s, false, mps_error_message());
}

/* Most are small; some come near a limit between tiers. */
static size_t length_of(uint16_t code) {
  static const size_t edges[] = {64, 2048, 65536, MIB, 8 * MIB, 10 * MIB, 32 * MIB, 130 * MIB};
  const size_t edge = edges[code % 8], part = code >> 3;
  if (code & 0x8000) return edge - 4 + part % 8;
  return 1 + (size_t)((double)edge / 8192.0 * (double)part);
}

static void set_mark(slot *entry) {
  uint8_t *bytes = mps_buffer_contents(entry->buffer);
  bytes[0] = bytes[entry->length - 1] = bytes[entry->length / 2] = entry->mark;
}

static bool mark_holds(const slot *entry) {
  const uint8_t *bytes = mps_buffer_contents(entry->buffer);
  return bytes[0] == entry->mark && bytes[entry->length - 1] == entry->mark && bytes[entry->length / 2] == entry->mark;
}

static void release(state *s, slot *entry) {
  if (!entry->buffer) return;
  check(s, mark_holds(entry), "a live block lost its mark");
  mps_buffer_release(entry->buffer);
  entry->buffer = NULL;
}

static void note_release(void *context) { --*(int *)context; }

static void allocate(state *s, slot *entry, mps_stream *stream, uint16_t code, uint8_t mark) {
  release(s, entry);
  *entry = (slot){.length = length_of(code), .mark = mark};
  const mps_status status = mps_buffer_create(s->device, stream, entry->length, &entry->buffer);
  if (status == MPS_STATUS_OUT_OF_MEMORY) {
    check(s, entry->buffer == NULL, "a refused allocation gave a buffer");
    return;
  }
  check_status(s, status);
  if (status != MPS_STATUS_OK) return;
  check(s, mps_buffer_length(entry->buffer) == entry->length, "a buffer has another length");
  check(s, (uintptr_t)mps_buffer_contents(entry->buffer) % 64 == 0, "a buffer is not aligned");
  set_mark(entry);
}

static void wrap(state *s, uint32_t index, uint8_t mark) {
  slot *entry = &s->slots[index];
  release(s, entry);
  if (s->in_use[index]) return; /* the memory of the life before is not given back yet */
  *entry = (slot){.length = wrapped_bytes, .mark = mark, .wrapped = true};
  s->in_use[index]++;
  check_status(s, mps_buffer_wrap(s->device, s->memory[index], wrapped_bytes, note_release, &s->in_use[index], &entry->buffer));
  if (entry->buffer) set_mark(entry);
}

/* A dispatch that uses the buffer, not committed. */
static void use(state *s, mps_stream *stream, mps_buffer *buffer, double cost) {
  mps_step *step;
  const mps_status status = mps_stream_reserve(stream, MPS_STEP_DISPATCH, sizeof(mps_step_dispatch), "use", cost, (void **)&step);
  check_status(s, status);
  if (status != MPS_STATUS_OK) return;
  (void)mps_buffer_address(buffer);
  mps_buffer_use(buffer, stream);
  mps_stream_publish(stream, step);
}

static void call_on_buffer(state *s, uint8_t kind, slot *entry, mps_stream *stream, uint16_t code) {
  mps_buffer *buffer = entry->buffer;
  if (!buffer) return;
  switch (kind) {
    case 0:
      use(s, stream, buffer, code % 2 ? 10.0 : 30000.0);
      break;
    case 1:
      mps_buffer_record_stream(buffer, stream);
      break;
    case 2:
      check_status(s, mps_stream_fill(stream, buffer, 0, entry->length < 4096 ? entry->length : 4096, entry->mark));
      check_status(s, mps_stream_synchronize(stream));
      set_mark(entry);
      break;
    case 3:
      check(s, mps_buffer_retain(buffer) == buffer, "retain gave another buffer");
      mps_buffer_release(buffer);
      break;
    default:
      check_status(s, mps_buffer_wait_idle(buffer));
      check(s, mps_buffer_is_idle(buffer), "a buffer is not idle after the wait");
      break;
  }
}

static void call(state *s, const uint8_t *bytes) {
  const uint32_t index = bytes[1] % slots;
  mps_stream *stream = s->streams[bytes[1] / slots % streams];
  const uint16_t code = (uint16_t)(bytes[2] << 8 | bytes[3]);
  const uint8_t kind = bytes[0] % 24;
  if (kind < 8) allocate(s, &s->slots[index], stream, code, bytes[0]);
  else if (kind < 12) release(s, &s->slots[index]);
  else if (kind < 17) call_on_buffer(s, (uint8_t)(kind - 12), &s->slots[index], stream, code);
  else if (kind == 17) wrap(s, index, bytes[0]);
  else if (kind == 18) check_status(s, mps_stream_synchronize(stream));
  else if (kind == 19) check_status(s, mps_heap_empty_cache(s->device));
  else if (kind == 20) atomic_store(&wrapper.allocations_left, code % 8 ? -1 : code >> 3 & 3);
  else if (kind == 21) check_status(s, mps_heap_set_high_watermark_ratio(s->device, code % 5 * 0.5));
  else if (kind == 22) (void)mps_stream_commit(stream);
  else check_status(s, mps_heap_validate(s->device));
}

static void finish(state *s) {
  uint64_t live = 0;
  for (int i = 0; i < slots; i++) live += s->slots[i].buffer && !s->slots[i].wrapped;
  mps_heap_statistics statistics;
  mps_heap_get_statistics(s->device, &statistics);
  check(s, statistics.live_buffers == live, "the statistics count other live buffers");
  for (int i = 0; i < slots; i++) release(s, &s->slots[i]);
  check_status(s, mps_heap_validate(s->device));
  check_status(s, mps_heap_empty_cache(s->device));
  check_status(s, mps_heap_validate(s->device));
  mps_heap_get_statistics(s->device, &statistics);
  check(s, statistics.reserved == 0 && statistics.allocated == 0, "memory stays reserved when all is released");
  for (int i = 0; i < slots; i++) check(s, s->in_use[i] == 0, "the owner of wrapped memory has not heard of its release");
}

static bool run(const uint8_t *data, size_t length) {
  static state s;
  memset(&s, 0, sizeof s);
  s.holds = true;
  /* With slow steps blocks become idle while the heap looks at them. */
  s.device = WRAPPER(.recommended_memory = 400 * MIB, .dispatch_ns = length && data[0] & 64 ? 2000 : 0);
  if (!s.device) return false;
  s.streams[0] = mps_stream_default(s.device);
  for (int i = 1; i < streams; i++) check_status(&s, mps_stream_create(s.device, &s.streams[i]));
  for (size_t at = 0; s.holds && at + call_bytes <= length; at += call_bytes) call(&s, data + at);
  atomic_store(&wrapper.allocations_left, -1);
  finish(&s);
  for (int i = 1; i < streams; i++) mps_stream_destroy(s.streams[i]);
  mps_device_release(s.device);
  return s.holds;
}

int main(int argc, char **argv) {
  /* Calls that something depends on later. */
  static const char *const words[] = {"\x01\x01\x01\x01", "\x02\x22\x80\x03", "\x08\x01\x01\x01", "\x09\x22\x01\x01", "\x0c\x21\x01\x01", "\x0d\x41\x01\x01",
                                      "\x11\x01\x01\x01", "\x12\x21\x01\x01", "\x13\x01\x01\x01", "\x14\x01\x01\x08", "\x17\x01\x01\x01", NULL};
  const fuzz_target target = {.name = "heap", .run = run, .words = words, .most = 1024 * call_bytes};
  return fuzz_main(argc, argv, &target);
}
