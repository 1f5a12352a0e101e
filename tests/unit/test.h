/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test: the few macros that unit tests of the C core share. A test program lists its cases in main():
 *   int main(void) { RUN(case_name); ...; return test_end(); }
 * A failing check prints file, line and values, and the run goes on with the next case.
 */
#ifndef OPENMPS_TESTS_TEST_H
#define OPENMPS_TESTS_TEST_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "openmps/status.h"

static int test_failures;      /* of the case that runs */
static int test_cases_passed;
static int test_cases_failed;

#define CHECK(condition)                                                              \
  do {                                                                                \
    if (!(condition)) {                                                               \
      test_failures++;                                                                \
      fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__, #condition);   \
    }                                                                                 \
  } while (0)

#define CHECK_INT(actual, expected)                                                                                         \
  do {                                                                                                                      \
    int64_t actual_ = (int64_t)(actual), expected_ = (int64_t)(expected);                                                   \
    if (actual_ != expected_) {                                                                                             \
      test_failures++;                                                                                                      \
      fprintf(stderr, "%s:%d: %s is %" PRId64 ", expected %" PRId64 "\n", __FILE__, __LINE__, #actual, actual_, expected_); \
    }                                                                                                                       \
  } while (0)

/* The first elements of an int64 array: CHECK_INTS(plan.strides, 6, 1). */
#define CHECK_INTS(actual, ...)                                                                                                          \
  do {                                                                                                                                   \
    const int64_t expected_[] = {__VA_ARGS__};                                                                                           \
    for (size_t i_ = 0; i_ < sizeof expected_ / sizeof expected_[0]; i_++) {                                                             \
      const int64_t actual_ = (int64_t)(actual)[i_];                                                                                     \
      if (actual_ == expected_[i_]) continue;                                                                                            \
      test_failures++;                                                                                                                   \
      fprintf(stderr, "%s:%d: %s[%zu] is %" PRId64 ", expected %" PRId64 "\n", __FILE__, __LINE__, #actual, i_, actual_, expected_[i_]); \
    }                                                                                                                                    \
  } while (0)

#define CHECK_STRING(actual, expected)                                                                              \
  do {                                                                                                              \
    const char *actual_ = (actual), *expected_ = (expected);                                                        \
    if (strcmp(actual_, expected_) != 0) {                                                                          \
      test_failures++;                                                                                              \
      fprintf(stderr, "%s:%d: %s is \"%s\", expected \"%s\"\n", __FILE__, __LINE__, #actual, actual_, expected_);   \
    }                                                                                                               \
  } while (0)

/* A call that must succeed; prints the error text if it does not. */
#define CHECK_OK(call)                                                                                                  \
  do {                                                                                                                  \
    mps_status status_ = (call);                                                                                        \
    if (status_ != MPS_STATUS_OK) {                                                                                     \
      test_failures++;                                                                                                  \
      fprintf(stderr, "%s:%d: %s: %s: %s\n", __FILE__, __LINE__, #call, mps_status_name(status_), mps_error_message()); \
    }                                                                                                                   \
  } while (0)

#define CHECK_STATUS(call, expected)                                                                                     \
  do {                                                                                                                   \
    mps_status status_ = (call);                                                                                         \
    if (status_ != (expected)) {                                                                                         \
      test_failures++;                                                                                                   \
      fprintf(stderr, "%s:%d: %s answered %s, expected %s\n", __FILE__, __LINE__, #call, mps_status_name(status_), #expected); \
    }                                                                                                                    \
  } while (0)

#define RUN(name)                                              \
  do {                                                         \
    test_failures = 0;                                         \
    name();                                                    \
    printf("%s %s\n", test_failures ? "FAIL" : "ok  ", #name); \
    *(test_failures ? &test_cases_failed : &test_cases_passed) += 1; \
  } while (0)

static inline int test_end(void) {
  printf("%d passed, %d failed\n", test_cases_passed, test_cases_failed);
  return test_cases_failed ? 1 : 0;
}

#endif
