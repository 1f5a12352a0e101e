/* SPDX-License-Identifier: BSD-3-Clause
 *
 * heap_find: which buffer an address lies in, for drivers that check what kernels do with addresses from memory.
 */
#include "runtime/heap.h"

#define GUESSED_BYTES 65536u /* of memory that is not the heap's */

static const mps_buffer *find_block(const mps_heap *heap, uint64_t address) {
  for (const mps_heap_region *region = heap->regions; region; region = region->next) {
    if (address - region->memory.address >= region->memory.length) continue;
    uint64_t offset = address - region->memory.address;
    for (const mps_buffer *block = region->first; block; block = block->next)
      if (offset - block->offset < block->size) return block;
  }
  return NULL;
}

bool mps_heap_find(void *context, uint64_t address, uint64_t *out_begin, uint64_t *out_length) {
  mps_heap *heap = context;
  mps_mutex_lock(&heap->lock);
  const mps_buffer *block = find_block(heap, address);
  bool found = block && block->state != MPS_BUFFER_FREE;
  *out_begin = found ? block->address : address;
  *out_length = found ? block->length : GUESSED_BYTES;
  mps_mutex_unlock(&heap->lock);
  /* Wrapped memory is in no list. */
  return found || (!block && atomic_load_explicit(&heap->wrapped, memory_order_relaxed));
}
