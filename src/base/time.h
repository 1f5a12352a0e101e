/* SPDX-License-Identifier: BSD-3-Clause
 *
 * time: the monotonic clock.
 */
#ifndef OPENMPS_BASE_TIME_H
#define OPENMPS_BASE_TIME_H

#include <stdint.h>

/* Nanoseconds since some fixed moment; never goes back. */
uint64_t mps_time_ns(void);

#endif
