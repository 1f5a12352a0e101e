/* SPDX-License-Identifier: BSD-3-Clause
 *
 * failure: what went wrong on a stream since the last wait. The first failure is kept: that of a driver's execute, or a report that a
 * kernel left in the stream's error record (kernels/error.h).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/error.h"
#include "base/log.h"
#include "base/status.h"
#include "runtime/failure.h"
#include "runtime/state.h"

void mps_failure_set(mps_failure *failure, mps_status status, const char *label, const char *text) {
  failure->status = status;
  snprintf(failure->label, sizeof failure->label, "%s", label ? label : "");
  snprintf(failure->text, sizeof failure->text, "%s", text);
}

void mps_stream_fail(mps_stream *stream, mps_status status, const char *label, const char *text) {
  MPS_LOG(STREAM, INFO, "%s failed: %s: %s", label ? label : "?", mps_status_name(status), text);
  mps_failure *failure = malloc(sizeof *failure);
  if (!failure) return; /* logged at least */
  mps_failure_set(failure, status, label, text);
  mps_mutex_lock(&stream->lock);
  if (!stream->failure) {
    stream->failure = failure;
    failure = NULL;
    atomic_store(&stream->failed, true);
  }
  mps_mutex_unlock(&stream->lock);
  free(failure);
}

mps_status mps_stream_take_failure(mps_stream *stream) {
  if (!atomic_load(&stream->failed)) return mps_heap_guard_take(&stream->device->heap);
  mps_mutex_lock(&stream->lock);
  mps_failure *failure = stream->failure;
  stream->failure = NULL;
  atomic_store(&stream->failed, false);
  mps_mutex_unlock(&stream->lock);
  if (!failure) return MPS_STATUS_OK;
  mps_status status = mps_error_set_operator(failure->status, failure->label, "%s", failure->text);
  free(failure);
  return status;
}

/* ---- kernel reports ---- */
static const char *text_of(uint32_t kind) {
  switch (kind) {
#define X(name, number, text) \
  case number:                \
    return text;
    MPS_KERNEL_ERROR_LIST(X)
#undef X
    default:
      return "a kernel reported an unknown error";
  }
}

/* ---- texts of the caller's ---- */
enum { TEXT_MAX = 1024 };
static struct {
  mps_mutex lock;
  const char *texts[TEXT_MAX]; /* from 1 on */
  int64_t count;
} words = {.lock = MPS_MUTEX_INITIALIZER};

int64_t mps_failure_text(const char *text) {
  mps_mutex_lock(&words.lock);
  int64_t number = 1;
  while (number <= words.count && strcmp(words.texts[number], text) != 0) number++;
  if (number > words.count) {
    char *copy = number < TEXT_MAX ? malloc(strlen(text) + 1) : NULL;
    if (copy) {
      strcpy(copy, text);
      words.texts[number] = copy;
      words.count = number;
    } else {
      number = 0;
    }
  }
  mps_mutex_unlock(&words.lock);
  return number;
}

static const char *text_with(int64_t number) {
  mps_mutex_lock(&words.lock);
  const char *text = number > 0 && number <= words.count ? words.texts[number] : "assertion failed in a kernel";
  mps_mutex_unlock(&words.lock);
  return text;
}

static void format_report(const mps_kernel_error *error, char *out, size_t capacity) {
  size_t used = 0;
  for (const char *p = text_of(error->kind); *p && used + 24 < capacity; p++) {
    if (*p != '%') {
      out[used++] = *p;
      continue;
    }
    p++;
    if (*p == 'T') {
      int written = snprintf(out + used, capacity - used, "%s", text_with(error->value));
      used = used + (size_t)written < capacity ? used + (size_t)written : capacity - 1;
      continue;
    }
    long long value = *p == 'V' ? (long long)error->value : *p == 'B' ? (long long)error->bound : (long long)error->dimension;
    used += (size_t)snprintf(out + used, capacity - used, "%lld", value);
  }
  out[used] = 0;
}

/* ---- what kernels of users report: laid out as c10::metal::ErrorMessages ---- */
typedef struct shader_message {
  char file[128];
  char function[128];
  char text[250];
  uint32_t line;
} shader_message;

typedef struct shader_messages {
  uint32_t count; /* reports; only the first 30 are written */
  shader_message messages[30];
} shader_messages;
_Static_assert(sizeof(shader_messages) == 15364, "torch's layout");

static void check_messages(mps_stream *stream, const char *label) {
  mps_buffer *buffer = atomic_load_explicit(&stream->message_buffer, memory_order_acquire);
  if (!buffer) return;
  shader_messages *record = buffer->contents;
  if (!record || __atomic_load_n(&record->count, __ATOMIC_RELAXED) == 0) return;
  const shader_message *first = &record->messages[0];
  char text[sizeof first->text + 1];
  snprintf(text, sizeof text, "%.*s", (int)sizeof first->text, first->text);
  MPS_LOG(STREAM, INFO, "%s reported %u errors, first at %.127s:%u in %.127s", label ? label : "?", record->count, first->file, first->line,
          first->function);
  memset(record, 0, sizeof *record); /* no kernel of this stream runs now */
  mps_stream_fail(stream, MPS_STATUS_KERNEL_ERROR, label, text);
}

void mps_stream_check_report(mps_stream *stream, const char *label) {
  check_messages(stream, label);
  mps_buffer *buffer = atomic_load_explicit(&stream->error_buffer, memory_order_acquire);
  if (!buffer) return;
  mps_kernel_error *error = buffer->contents;
  if (!error || __atomic_load_n(&error->count, __ATOMIC_RELAXED) == 0) return;
  char text[256];
  format_report(error, text, sizeof text);
  memset(error, 0, sizeof *error); /* no kernel of this stream runs now */
  mps_stream_fail(stream, MPS_STATUS_KERNEL_ERROR, label, text);
}

/* A record of `bytes`, made and cleared at the first call; `place` remembers it. */
static mps_status find_record(mps_stream *stream, _Atomic(mps_buffer *) *place, size_t bytes, uint64_t *out_address, uint64_t *out_length) {
  mps_buffer *buffer = atomic_load_explicit(place, memory_order_acquire);
  if (!buffer) {
    mps_buffer *fresh;
    MPS_TRY(mps_buffer_create(stream->device, stream, bytes, &fresh));
    /* Its block may still be used by steps before; those must not write after the record is cleared. */
    mps_status status = mps_buffer_is_idle(fresh) ? MPS_STATUS_OK : mps_stream_wait_serial(stream, mps_stream_encoded(stream));
    if (status != MPS_STATUS_OK) {
      mps_buffer_release(fresh);
      return status;
    }
    if (fresh->contents) memset(fresh->contents, 0, bytes);
    if (atomic_compare_exchange_strong(place, &buffer, fresh)) {
      buffer = fresh;
    } else {
      mps_buffer_release(fresh);
    }
  }
  *out_address = buffer->address;
  *out_length = bytes;
  return MPS_STATUS_OK;
}

mps_status mps_stream_error_memory(mps_stream *stream, uint64_t *out_address, uint64_t *out_length) {
  return find_record(stream, &stream->error_buffer, sizeof(mps_kernel_error), out_address, out_length);
}

mps_status mps_stream_message_memory(mps_stream *stream, uint64_t *out_address, uint64_t *out_length) {
  return find_record(stream, &stream->message_buffer, sizeof(shader_messages), out_address, out_length);
}
