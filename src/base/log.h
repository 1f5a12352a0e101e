/* SPDX-License-Identifier: BSD-3-Clause
 *
 * log: lines on stderr, by area and level, set with OPENMPS_LOG (heap:debug,shader:info or just debug). Default: warnings.
 */
#ifndef OPENMPS_BASE_LOG_H
#define OPENMPS_BASE_LOG_H

#include <stdbool.h>

#include "openmps/status.h"

/* X(ID, name) */
#define MPS_LOG_AREA_LIST(X) \
  X(BASE, "base")            \
  X(DEVICE, "device")        \
  X(DRIVER, "driver")        \
  X(HEAP, "heap")            \
  X(STREAM, "stream")        \
  X(SHADER, "shader")        \
  X(FUSION, "fusion")        \
  X(GRAPH, "graph")          \
  X(OPS, "ops")              \
  X(DENSE, "dense")          \
  X(BRIDGE, "bridge")

typedef enum mps_log_area {
#define X(id, name) MPS_LOG_##id,
  MPS_LOG_AREA_LIST(X)
#undef X
  MPS_LOG_AREA_COUNT
} mps_log_area;

typedef enum mps_log_level { MPS_LOG_ERROR, MPS_LOG_WARNING, MPS_LOG_INFO, MPS_LOG_DEBUG, MPS_LOG_TRACE } mps_log_level;

bool mps_log_enabled(mps_log_area area, mps_log_level level);
void mps_log_write(mps_log_area area, mps_log_level level, const char *format, ...) MPS_PRINTF(3, 4);
/* A line on stderr as it is, whatever the levels: for logs that a setting of their own turns on. */
void mps_log_print(const char *format, ...) MPS_PRINTF(1, 2);
/* Reads OPENMPS_LOG again. */
void mps_log_reload(void);

/* MPS_LOG(HEAP, DEBUG, "released %zu bytes", n); arguments are evaluated only when the level is on. */
#define MPS_LOG(area, level, ...)                                                                                      \
  do {                                                                                                                 \
    if (mps_log_enabled(MPS_LOG_##area, MPS_LOG_##level)) mps_log_write(MPS_LOG_##area, MPS_LOG_##level, __VA_ARGS__); \
  } while (0)

#endif
