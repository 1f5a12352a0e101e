/* SPDX-License-Identifier: BSD-3-Clause
 *
 * array: growth by half.
 */
#include "base/array.h"

mps_status mps_array_grow(void **items, size_t *capacity, size_t count, size_t extra, size_t item_bytes) {
  if (extra <= *capacity - count) return MPS_STATUS_OK;
  size_t wanted = count + extra;
  size_t larger = *capacity + *capacity / 2;
  if (larger < wanted) larger = wanted;
  if (larger < 8) larger = 8;
  if (wanted < count || larger > SIZE_MAX / item_bytes) {
    return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "an array of %zu + %zu items is too large", count, extra);
  }
  void *moved = realloc(*items, larger * item_bytes);
  if (!moved) return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for an array of %zu items", larger);
  *items = moved;
  *capacity = larger;
  return MPS_STATUS_OK;
}
