/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shader_log: reads a format as printf does, one conversion at a time, so that a wrong format reads no memory that is not there.
 */
#include "driver/host/shader_log.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/options.h"
#include "driver/host/checks.h"

#define LINE_BYTES 1000 /* longer messages end with ... */

typedef struct text {
  char *at;
  size_t length, capacity;
} text;

static void put(text *out, const char *from, size_t length) {
  size_t left = out->capacity - 1 - out->length;
  if (length > left) length = left;
  memcpy(out->at + out->length, from, length);
  out->length += length;
}

/* A conversion of the format: %[flags][width][.precision][vN][length]letter. */
typedef struct conversion {
  char flags[40]; /* with the %, width and precision */
  unsigned components;
  char letter;
  size_t length; /* in the format */
} conversion;

/* False: it is none, and stands for itself. */
static bool read_conversion(const char *p, conversion *out) {
  const char *begin = p++;
  p += strspn(p, "-+ #0");
  p += strspn(p, "0123456789");
  if (*p == '.') p += 1 + strspn(p + 1, "0123456789");
  size_t length = (size_t)(p - begin);
  if (length >= sizeof out->flags - 4) return false;
  memcpy(out->flags, begin, length);
  out->flags[length] = 0;
  out->components = 1;
  if (*p == 'v') {
    out->components = (unsigned)strtoul(p + 1, (char **)(uintptr_t)&p, 10);
    if (out->components < 2 || out->components > 16) return false;
  }
  p += strspn(p, "hlLjzt");
  out->letter = *p;
  out->length = (size_t)(p + 1 - begin);
  return *p && strchr("diuoxXcfFeEgGaAp", *p) != NULL;
}

static uint64_t held_bits(const mps_host_log_value *value) {
  if (value->kind == 2) {
    double real;
    memcpy(&real, &value->bits, sizeof real);
    return (uint64_t)(int64_t)real;
  }
  return value->bytes < 8 ? value->bits & ((UINT64_C(1) << 8 * value->bytes) - 1) : value->bits;
}

static double real_of(const mps_host_log_value *value) {
  double real;
  if (value->kind == 2) memcpy(&real, &value->bits, sizeof real);
  else real = value->kind == 1 ? (double)(int64_t)value->bits : (double)value->bits;
  return real;
}

/* The format is put together from checked parts: flags, a length of our own, a letter. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static void put_value(text *out, const conversion *c, const mps_host_log_value *value) {
  char format[sizeof c->flags + 4], is[512];
  const char *size = strchr("diuoxX", c->letter) ? "ll" : "";
  snprintf(format, sizeof format, "%s%s%c", c->flags, size, c->letter);
  int length;
  if (strchr("di", c->letter)) {
    int64_t whole = value->kind == 2 ? (int64_t)held_bits(value) : (int64_t)value->bits;
    length = snprintf(is, sizeof is, format, (long long)whole);
  } else if (strchr("uoxX", c->letter)) {
    length = snprintf(is, sizeof is, format, (unsigned long long)held_bits(value));
  } else if (c->letter == 'c') {
    length = snprintf(is, sizeof is, format, (int)(unsigned char)value->bits);
  } else if (c->letter == 'p') {
    length = snprintf(is, sizeof is, format, (void *)(uintptr_t)value->bits);
  } else {
    length = snprintf(is, sizeof is, format, real_of(value));
  }
  if (length > 0) put(out, is, (size_t)length < sizeof is ? (size_t)length : sizeof is - 1);
}
#pragma GCC diagnostic pop

size_t mps_host_shader_log_text(char *out, size_t capacity, const char *format, const mps_host_log_value *values, unsigned count) {
  text t = {.at = out, .capacity = capacity};
  unsigned next = 0;
  for (const char *p = format; *p;) {
    conversion c;
    if (*p != '%') {
      size_t plain = strcspn(p, "%");
      put(&t, p, plain);
      p += plain;
    } else if (p[1] == '%') {
      put(&t, p, 1);
      p += 2;
    } else if (read_conversion(p, &c) && c.components <= count - next) {
      for (unsigned i = 0; i < c.components; i++) {
        if (i) put(&t, ",", 1);
        put_value(&t, &c, &values[next++]);
      }
      p += c.length;
    } else {
      put(&t, p++, 1);
    }
  }
  out[t.length] = 0;
  return t.length;
}

/* From what is told least on: debug, info, notice, error, fault. Metal's words (MTLLogLevelInfo) and their ends. */
static unsigned rank_of(unsigned type) { return type == 2 ? 0 : type == 1 ? 1 : type == 16 ? 3 : type == 17 ? 4 : 2; }
static unsigned least_rank(void) {
  static const char *const names[] = {"Debug", "Info", "Notice", "Error", "Fault"};
  const char *level = mps_option_string(MPS_OPTION_MTL_LOG_LEVEL);
  size_t length = strlen(level);
  for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
    size_t name = strlen(names[i]);
    if (length >= name && strcmp(level + length - name, names[i]) == 0) return i;
  }
  return 0;
}

void mps_host_shader_log(unsigned type, const char *subsystem, const char *category, const char *format, const mps_host_log_value *values,
                         unsigned count) {
  if (rank_of(type) < least_rank()) return;
  char line[LINE_BYTES];
  subsystem = mps_host_checks_resolve(subsystem);
  category = mps_host_checks_resolve(category);
  format = mps_host_checks_resolve(format);
  if (!format) return;
  size_t length = mps_host_shader_log_text(line, sizeof line, format, mps_host_checks_resolve(values), count);
  if (length == sizeof line - 1) memcpy(line + length - 3, "...", 3);
  if (subsystem || category) mps_log_print("[%s:%s] %s", subsystem ? subsystem : "", category ? category : "", line);
  else mps_log_print("%s", line);
}
