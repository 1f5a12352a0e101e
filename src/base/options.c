/* SPDX-License-Identifier: BSD-3-Clause
 *
 * options: reads the environment into the table, one option at its first use. A value once published is never freed, so that readers
 * need no lock.
 */
#include "base/options.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/thread.h"

typedef struct option_row {
  const char *name, *type, *default_value, *doc;
} option_row;

static const option_row rows[MPS_OPTION_COUNT] = {
#define X(id, name, type, value, doc) {name, #type, value, doc},
    MPS_OPTION_LIST(X)
#undef X
};

typedef struct option_value {
  const char *text;
  bool is_set;
  struct option_value *older; /* replaced values stay: somebody may read them */
} option_value;

/* The table: filled under `lock`, read without. */
static _Atomic(option_value *) values[MPS_OPTION_COUNT];
static option_value *replaced; /* under lock */
static mps_mutex lock = MPS_MUTEX_INITIALIZER;

static option_value *make_value(const char *text, bool is_set) {
  static option_value none = {"", false, NULL};
  option_value *value = malloc(sizeof *value);
  char *copy = strdup(text);
  if (!value || !copy) {
    free(value);
    free(copy);
    return &none;
  }
  *value = (option_value){copy, is_set, NULL};
  return value;
}

static bool text_is_number(const char *text, const char *type) {
  char *end = NULL;
  if (!strcmp(type, "int")) {
    (void)strtoll(text, &end, 0);
  } else if (!strcmp(type, "double")) {
    (void)strtod(text, &end);
  } else {
    return true;
  }
  return end != text && *end == 0;
}

static option_value *read_value(mps_option option) {
  const option_row *row = &rows[option];
  const char *text = getenv(row->name);
  if (text && !text_is_number(text, row->type)) {
    fprintf(stderr, "openmps: %s=%s is no %s; using the default %s\n", row->name, text, row->type, row->default_value);
    text = NULL;
  }
  return make_value(text ? text : row->default_value, text != NULL);
}

static const option_value *get(mps_option option) {
  option_value *value = atomic_load_explicit(&values[option], memory_order_acquire);
  if (value) return value;
  mps_mutex_lock(&lock);
  value = atomic_load_explicit(&values[option], memory_order_relaxed);
  if (!value) {
    value = read_value(option);
    atomic_store_explicit(&values[option], value, memory_order_release);
  }
  mps_mutex_unlock(&lock);
  return value;
}

const char *mps_option_string(mps_option option) { return get(option)->text; }

int64_t mps_option_int(mps_option option) { return strtoll(get(option)->text, NULL, 0); }

double mps_option_double(mps_option option) { return strtod(get(option)->text, NULL); }

bool mps_option_bool(mps_option option) {
  const char *text = get(option)->text;
  return *text && strcmp(text, "0") && strcasecmp(text, "false") && strcasecmp(text, "no") && strcasecmp(text, "off");
}

bool mps_option_is_set(mps_option option) { return get(option)->is_set; }

void mps_option_set(mps_option option, const char *text) {
  mps_mutex_lock(&lock);
  option_value *old = atomic_load_explicit(&values[option], memory_order_relaxed);
  if (old) {
    old->older = replaced;
    replaced = old;
  }
  atomic_store_explicit(&values[option], text ? make_value(text, true) : NULL, memory_order_release);
  mps_mutex_unlock(&lock);
}

uint32_t mps_option_count(void) { return MPS_OPTION_COUNT; }

void mps_option_describe(uint32_t index, mps_option_info *out_info) {
  if (index >= MPS_OPTION_COUNT) {
    *out_info = (mps_option_info){"", "", "", "", "", false};
    return;
  }
  const option_value *value = get((mps_option)index);
  const option_row *row = &rows[index];
  *out_info = (mps_option_info){row->name, row->type, row->default_value, value->text, row->doc, value->is_set};
}
