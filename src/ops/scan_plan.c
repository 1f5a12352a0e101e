/* SPDX-License-Identifier: BSD-3-Clause
 *
 * scan_plan: see scan_plan.h. The row space is ordered and merged as the kept dimensions of a reduction are.
 */
#include "ops/scan_plan.h"

#include <string.h>

#include "ops/reduce_plan.h"

/* Elements of a row that a thread takes where there are few rows, in either layout; multiples of what the kernels take at once. */
#define INNER_CHUNK 16384
#define OUTER_CHUNK 1024
/* Fewer threads than this are too few. A constant, so that results do not change with the machine. */
#define FEW_THREADS 8
/* Chunks are read twice: it takes so many to be worth it. */
#define LONG_ROW 8
/* Rows shorter than this are taken side by side when there are enough of them. */
#define SHORT_ROW 96
#define MANY_ROWS 16

static int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

static void order_rows(mps_scan_arguments *a, const mps_tensor *input, uint32_t dimension, const mps_tensor *output, const mps_tensor *indices) {
  mps_reduce_plan rows;
  mps_reduce_plan_make(&rows, input, 1u << dimension, output, indices, false);
  a->rank = rows.arguments.kept_rank;
  a->rows = rows.arguments.output_count;
  memcpy(a->sizes, rows.arguments.kept_sizes, sizeof a->sizes);
  memcpy(a->input_strides, rows.arguments.kept_strides, sizeof a->input_strides);
  memcpy(a->output_strides, rows.arguments.out_strides, sizeof a->output_strides);
  memcpy(a->index_strides, rows.arguments.second_strides, sizeof a->index_strides);
}

static bool choose_outer(const mps_scan_arguments *a) {
  int64_t size = a->sizes[a->rank - 1];
  if (size < MANY_ROWS) return false;
  return a->length < SHORT_ROW || (a->input_step != 1 && a->input_strides[a->rank - 1] == 1);
}

void mps_scan_plan_make(mps_scan_plan *plan, const mps_tensor *input, uint32_t dimension, const mps_tensor *output, const mps_tensor *indices,
                        bool whole) {
  memset(plan, 0, sizeof *plan);
  mps_scan_arguments *a = &plan->arguments;
  order_rows(a, input, dimension, output, indices);
  a->length = input->sizes[dimension];
  a->input_step = input->strides[dimension];
  a->output_step = output->strides[dimension];
  a->index_step = indices ? indices->strides[dimension] : 0;
  plan->outer = !whole && choose_outer(a);
  int64_t size = a->sizes[a->rank - 1];
  plan->threads = (uint64_t)(plan->outer ? a->rows / size * divide_up(size, MPS_SCAN_TILE) : a->rows);
  const int64_t chunk = plan->outer ? OUTER_CHUNK : INNER_CHUNK;
  a->chunk = whole || plan->threads >= FEW_THREADS || a->length < LONG_ROW * chunk ? a->length : chunk;
  a->chunk_count = divide_up(a->length, a->chunk);
}
