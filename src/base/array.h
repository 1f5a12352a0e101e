/* SPDX-License-Identifier: BSD-3-Clause
 *
 * array: a growing array of plain values. MPS_ARRAY(int) a = {0}; zero is an empty one.
 */
#ifndef OPENMPS_BASE_ARRAY_H
#define OPENMPS_BASE_ARRAY_H

#include <stdlib.h>

#include "openmps/status.h"

#define MPS_ARRAY(type) \
  struct {              \
    type *items;        \
    size_t count;       \
    size_t capacity;    \
  }

/* Makes room for `extra` more; items may move. OUT_OF_MEMORY leaves the array as it was. */
MPS_WARN_UNUSED mps_status mps_array_grow(void **items, size_t *capacity, size_t count, size_t extra, size_t item_bytes);

#define MPS_ARRAY_RESERVE(array, extra) \
  mps_array_grow((void **)&(array)->items, &(array)->capacity, (array)->count, (extra), sizeof *(array)->items)
/* Appends after a successful MPS_ARRAY_RESERVE. */
#define MPS_ARRAY_PUSH(array, value) ((void)((array)->items[(array)->count++] = (value)))
#define MPS_ARRAY_FINI(array) (free((array)->items), (array)->items = NULL, (array)->count = (array)->capacity = 0)

#endif
