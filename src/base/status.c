/* SPDX-License-Identifier: BSD-3-Clause
 *
 * status: names of the codes, and the error record of each thread. A record lives in thread-local storage; only a text longer than
 * that lies on the heap, and is freed when the thread ends or fails again.
 */
#include "base/status.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct error_record {
  char text[MPS_ERROR_TEXT_BYTES];
  char operator_name[128];
  char *long_text; /* malloc'ed, when text is too small */
  bool key_is_set;
} error_record;

static _Thread_local error_record record;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key; /* only for its destructor */
static bool key_is_made;

static void free_long_text(void *context) {
  error_record *r = context;
  free(r->long_text);
  r->long_text = NULL;
}

static void make_key(void) { key_is_made = pthread_key_create(&key, free_long_text) == 0; }

const char *mps_status_name(mps_status status) {
  switch (status) {
#define X(name, value, meaning) \
  case MPS_STATUS_##name:       \
    return #name;
    MPS_STATUS_LIST(X)
#undef X
  }
  return "UNKNOWN";
}

const char *mps_error_message(void) { return record.long_text ? record.long_text : record.text; }

const char *mps_error_operator(void) { return record.operator_name; }

/* Takes over `text`. */
static void keep_long_text(char *text) {
  free(record.long_text);
  record.long_text = text;
  if (!record.key_is_set) {
    pthread_once(&key_once, make_key);
    record.key_is_set = key_is_made && pthread_setspecific(key, &record) == 0;
  }
}

static void set_text(const char *format, va_list arguments) {
  char buffer[MPS_ERROR_TEXT_BYTES]; /* an argument may point into the record itself */
  va_list again;
  va_copy(again, arguments);
  int length = vsnprintf(buffer, sizeof buffer, format, arguments);
  char *longer = NULL;
  if (length >= (int)sizeof buffer) {
    longer = malloc((size_t)length + 1);
    if (longer) vsnprintf(longer, (size_t)length + 1, format, again);
  }
  va_end(again);
  memcpy(record.text, buffer, length < 0 ? 1 : strlen(buffer) + 1);
  if (longer || record.long_text) keep_long_text(longer);
}

static void set_operator(const char *name) {
  char copy[sizeof record.operator_name];
  snprintf(copy, sizeof copy, "%s", name ? name : "");
  memcpy(record.operator_name, copy, strlen(copy) + 1);
}

mps_status mps_error_set(mps_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  set_text(format, arguments);
  va_end(arguments);
  record.operator_name[0] = 0;
  return status;
}

mps_status mps_error_set_operator(mps_status status, const char *name, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  set_text(format, arguments);
  va_end(arguments);
  set_operator(name);
  return status;
}

mps_status mps_error_set_text(mps_status status, const char *text) { return mps_error_set(status, "%s", text ? text : ""); }
