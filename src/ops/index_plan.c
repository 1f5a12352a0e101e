/* SPDX-License-Identifier: BSD-3-Clause
 *
 * index_plan: from an iteration space with three sets of strides to the arguments and grids of the indexing kernels. Pure.
 */
#include "ops/index_plan.h"

#include <string.h>

enum {
  BLOCK = 2048,        /* elements of a run that one thread takes */
  ENOUGH_THREADS = 16, /* outer points that keep all cores busy without slices */
  SLICED_POINTS = 8192, /* fewer points than this are not worth slices */
  MASK_BLOCK = 4096    /* mask elements that one thread takes */
};

/* Drops dimensions of size 1 and merges neighbours whose strides allow it, which keeps the row-major order. */
static void coalesce(const mps_index_space *space, mps_index_space *out) {
  *out = *space;
  out->rank = 0;
  for (uint32_t d = 0; d < space->rank; d++) {
    if (space->sizes[d] == 1) continue;
    uint32_t last = out->rank - 1;
    if (out->rank && out->data[last] == space->data[d] * space->sizes[d] && out->value[last] == space->value[d] * space->sizes[d] &&
        out->index[last] == space->index[d] * space->sizes[d]) {
      out->sizes[last] *= space->sizes[d];
    } else {
      last = out->rank++;
      out->sizes[last] = space->sizes[d];
    }
    out->data[last] = space->data[d];
    out->value[last] = space->value[d];
    out->index[last] = space->index[d];
  }
}

static int64_t count_points(const mps_index_space *space) {
  int64_t count = 1;
  for (uint32_t d = 0; d < space->rank; d++) count *= space->sizes[d];
  return count;
}

static void put(mps_index_arguments *a, uint32_t to, const mps_index_space *space, uint32_t from) {
  a->sizes[to] = space->sizes[from];
  a->data_strides[to] = space->data[from];
  a->value_strides[to] = space->value[from];
  a->index_strides[to] = space->index[from];
}

/* What both plans share: everything but which dimension goes where. The innermost dimension is the run. */
static void begin(const mps_index_space *space, mps_index_space *merged, mps_index_plan *plan) {
  memset(plan, 0, sizeof *plan);
  coalesce(space, merged);
  mps_index_arguments *a = &plan->arguments;
  a->outer_count = a->walk_count = a->run = 1;
  a->slices = 1;
  a->index_size = space->index_size;
  a->index_step = space->index_step;
  a->skipped = space->skipped;
  a->wraps = space->wraps;
  a->dimension = space->dimension;
  if (merged->rank) {
    uint32_t inner = merged->rank - 1;
    a->run = merged->sizes[inner];
    a->data_run = merged->data[inner];
    a->value_run = merged->value[inner];
    a->index_run = merged->index[inner];
  }
}

void mps_index_plan_read(const mps_index_space *space, mps_index_plan *out_plan) {
  mps_index_space merged;
  begin(space, &merged, out_plan);
  mps_index_arguments *a = &out_plan->arguments;
  int64_t points = count_points(&merged);
  if (points == 0) return;
  for (uint32_t d = 0; d + 1 < merged.rank; d++) {
    put(a, a->outer_rank++, &merged, d);
    a->outer_count *= merged.sizes[d];
  }
  a->block = a->run < BLOCK ? a->run : BLOCK;
  out_plan->threads[0] = (uint64_t)a->outer_count;
  out_plan->threads[1] = (uint64_t)((a->run + a->block - 1) / a->block);
  out_plan->threads[2] = 1;
  out_plan->cost = (double)points * (a->index_run ? 2.0 : 0.5) + 10.0 * (double)a->outer_count;
}

void mps_index_plan_write(const mps_index_space *space, uint32_t slices, mps_index_plan *out_plan) {
  mps_index_space merged;
  begin(space, &merged, out_plan);
  mps_index_arguments *a = &out_plan->arguments;
  int64_t points = count_points(&merged);
  if (points == 0) return;
  for (uint32_t d = 0; d + 1 < merged.rank; d++) {
    if (merged.data[d] == 0) continue;
    put(a, a->outer_rank++, &merged, d);
    a->outer_count *= merged.sizes[d];
  }
  for (uint32_t d = 0; d + 1 < merged.rank; d++) {
    if (merged.data[d] != 0) continue;
    put(a, a->outer_rank + a->walk_rank++, &merged, d);
    a->walk_count *= merged.sizes[d];
  }
  bool run_is_free = a->data_run != 0;
  a->block = run_is_free && a->run > BLOCK ? BLOCK : a->run;
  int64_t blocks = (a->run + a->block - 1) / a->block;
  if (a->outer_count * blocks < ENOUGH_THREADS && points >= SLICED_POINTS && a->index_size > 1) {
    a->slices = slices ? slices : 1;
    if (a->slices > a->index_size) a->slices = (uint32_t)a->index_size;
  }
  out_plan->threads[0] = (uint64_t)a->outer_count;
  out_plan->threads[1] = a->slices;
  out_plan->threads[2] = (uint64_t)blocks;
  out_plan->cost = (double)points * (a->index_run ? 3.0 : 0.7) + 10.0 * (double)(a->outer_count * a->walk_count);
}

uint64_t mps_compact_plan_make(mps_compact_arguments *arguments, const mps_tensor *mask) {
  memset(arguments, 0, sizeof *arguments);
  arguments->count = arguments->limit = mps_tensor_element_count(mask);
  arguments->block = MASK_BLOCK;
  arguments->rank = mask->rank;
  memcpy(arguments->sizes, mask->sizes, mask->rank * sizeof mask->sizes[0]);
  return (uint64_t)((arguments->count + MASK_BLOCK - 1) / MASK_BLOCK);
}
