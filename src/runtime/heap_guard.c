/* SPDX-License-Identifier: BSD-3-Clause
 *
 * heap_guard: OPENMPS_HEAP_GUARD, which finds kernels that write outside their buffers. Each block begins and ends with bytes of a
 * pattern; they are looked at when the block is freed, or after each step. Released blocks are not reused before their steps are done.
 */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/options.h"
#include "base/status.h"
#include "runtime/state.h"

#define PATTERN 0xA5
#define FRESH 0xFF      /* a NaN in every floating dtype */
#define AFTER_MAX 4096u /* bytes behind the contents that carry the pattern */

static size_t bytes_after(const mps_buffer *block) {
  size_t rest = block->size - MPS_HEAP_GUARD_BYTES - block->length;
  return rest < AFTER_MAX ? rest : AFTER_MAX;
}

/* Where the first and the last byte without the pattern lie, as [first, end) of `bytes`. False when all have it. */
static bool find_damage(const uint8_t *bytes, size_t count, size_t *out_first, size_t *out_end) {
  if (count == 0 || (bytes[0] == PATTERN && !memcmp(bytes, bytes + 1, count - 1))) return false;
  size_t first = 0, end = count;
  while (bytes[first] == PATTERN) first++;
  while (bytes[end - 1] == PATTERN) end--;
  *out_first = first;
  *out_end = end;
  return true;
}

uint32_t mps_heap_guard_option(const mps_driver_device *driver) {
  return driver->limits.unified_memory ? (uint32_t)mps_option_int(MPS_OPTION_HEAP_GUARD) : 0;
}

void mps_heap_guard_write(const mps_heap *heap, mps_buffer *block) {
  memset((uint8_t *)block->contents - MPS_HEAP_GUARD_BYTES, PATTERN, MPS_HEAP_GUARD_BYTES);
  memset((uint8_t *)block->contents + block->length, PATTERN, bytes_after(block));
  if (heap->guard & MPS_GUARD_FRESH) memset(block->contents, FRESH, block->length);
}

bool mps_heap_guard_is_whole(const mps_buffer *block) {
  size_t first, end;
  return !find_damage((const uint8_t *)block->contents - MPS_HEAP_GUARD_BYTES, MPS_HEAP_GUARD_BYTES, &first, &end) &&
         !find_damage((const uint8_t *)block->contents + block->length, bytes_after(block), &first, &end);
}

/* Bytes `first` to `last` of the buffer, counted from its begin, changed. Keeps the first text, and logs all. */
static void report(mps_heap *heap, const mps_buffer *block, int64_t first, int64_t last, const char *label) {
  char text[sizeof heap->guard_text];
  snprintf(text, sizeof text, "%s wrote outside buffer #%llu of %zu bytes, at its bytes %lld to %lld%s", label ? label : "a kernel",
           (unsigned long long)block->identifier, block->length, (long long)first, (long long)last,
           label ? "" : "; OPENMPS_HEAP_GUARD=3 tells which kernel");
  MPS_LOG(HEAP, ERROR, "%s", text);
  if (atomic_load(&heap->guard_failed)) return;
  memcpy(heap->guard_text, text, sizeof text);
  atomic_store(&heap->guard_failed, true);
}

void mps_heap_guard_check(mps_heap *heap, mps_buffer *block, const char *label) {
  const int64_t before = (int64_t)MPS_HEAP_GUARD_BYTES, length = (int64_t)block->length;
  uint8_t *contents = block->contents;
  size_t first, end;
  if (find_damage(contents - before, MPS_HEAP_GUARD_BYTES, &first, &end)) {
    report(heap, block, (int64_t)first - before, (int64_t)end - 1 - before, label);
    memset(contents - before, PATTERN, MPS_HEAP_GUARD_BYTES);
  }
  if (find_damage(contents + length, bytes_after(block), &first, &end)) {
    report(heap, block, length + (int64_t)first, length + (int64_t)end - 1, label);
    memset(contents + length, PATTERN, bytes_after(block));
  }
}

void mps_heap_guard_step(mps_heap *heap, const char *label) {
  mps_mutex_lock(&heap->lock);
  for (mps_heap_region *region = heap->regions; region; region = region->next) {
    for (mps_buffer *block = region->first; block; block = block->next) {
      if (block->state != MPS_BUFFER_FREE) mps_heap_guard_check(heap, block, label);
    }
  }
  mps_mutex_unlock(&heap->lock);
}

mps_status mps_heap_guard_take(mps_heap *heap) {
  if (!atomic_load(&heap->guard_failed)) return MPS_STATUS_OK;
  mps_mutex_lock(&heap->lock);
  mps_status status = mps_error_set(MPS_STATUS_INTERNAL_ERROR, "%s", heap->guard_text);
  atomic_store(&heap->guard_failed, false);
  mps_mutex_unlock(&heap->lock);
  return status;
}
