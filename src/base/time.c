/* SPDX-License-Identifier: BSD-3-Clause
 *
 * time: the monotonic clock.
 */
#include "base/time.h"

#include <time.h>

uint64_t mps_time_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
