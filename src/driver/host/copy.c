/* SPDX-License-Identifier: BSD-3-Clause
 *
 * copy: bytes from here to there, and bytes set to one value; large ones on all threads.
 */
#include <string.h>

#include "driver/host/host.h"

/* A piece of a large copy: whole huge pages, so that two threads do not fill in the same fresh one. */
#define PIECE_BYTES ((uint64_t)1 << 21)
#define COPY_NS_PER_BYTE 0.12
#define FILL_NS_PER_BYTE 0.06

typedef struct transfer {
  unsigned char *destination;
  const unsigned char *source; /* NULL: fill */
  uint64_t length;
  uint64_t piece;
  uint8_t value;
} transfer;

static void run_piece(void *context, uint32_t chunk, void *scratch) {
  const transfer *t = context;
  (void)scratch;
  uint64_t begin = chunk * t->piece;
  size_t length = (size_t)(t->length - begin < t->piece ? t->length - begin : t->piece);
  if (t->source) {
    memcpy(t->destination + begin, t->source + begin, length);
  } else {
    memset(t->destination + begin, t->value, length);
  }
}

static void run_transfer(mps_driver_queue *queue, transfer *t, double cost) {
  uint32_t chunks = mps_host_chunk_count(mps_host_region_workers(queue->region), cost, t->length / 4096);
  uint64_t piece = t->length / chunks + 1;
  uint64_t unit = piece > PIECE_BYTES ? PIECE_BYTES : 4096;
  t->piece = (piece + unit - 1) / unit * unit;
  mps_host_region_run(queue->region, (uint32_t)((t->length + t->piece - 1) / t->piece), cost, run_piece, t);
}

void mps_host_run_copy(mps_driver_queue *queue, const mps_step_copy *step) {
  unsigned char *destination = (unsigned char *)(uintptr_t)step->destination;
  const unsigned char *source = (const unsigned char *)(uintptr_t)step->source;
  if (step->length == 0 || source == destination) return;
  bool apart = step->source + step->length <= step->destination || step->destination + step->length <= step->source;
  double cost = (double)step->length * COPY_NS_PER_BYTE;
  if (!apart || cost < MPS_HOST_PARALLEL_NS) {
    memmove(destination, source, (size_t)step->length);
    return;
  }
  transfer t = {.destination = destination, .source = source, .length = step->length};
  run_transfer(queue, &t, cost);
}

void mps_host_run_fill(mps_driver_queue *queue, const mps_step_fill *step) {
  unsigned char *destination = (unsigned char *)(uintptr_t)step->address;
  if (step->length == 0) return;
  double cost = (double)step->length * FILL_NS_PER_BYTE;
  if (cost < MPS_HOST_PARALLEL_NS) {
    memset(destination, (int)(step->value & 255u), (size_t)step->length);
    return;
  }
  transfer t = {.destination = destination, .length = step->length, .value = (uint8_t)step->value};
  run_transfer(queue, &t, cost);
}
