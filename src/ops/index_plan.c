/* SPDX-License-Identifier: BSD-3-Clause
 *
 * index_plan: from an iteration space with three sets of strides to the arguments and grids of the indexing kernels. Pure.
 */
#include "ops/index_plan.h"

#include <string.h>

enum {
  BLOCK = 2048,        /* elements of a run that one thread takes */
  LEAST_BLOCK = 64,    /* the same where there are few threads */
  ENOUGH_THREADS = 16, /* outer points that keep all cores busy without slices */
  SLICED_POINTS = 8192, /* fewer points than this are not worth slices */
  SLICED_DATA = 1 << 17, /* single elements go to less data than this, which a cache holds, faster without slices */
  MOST_PARTS = 8,
  PART_POINTS = 8192,  /* fewer points than this are not worth a part */
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

/* Elements of a run along which points never meet that a thread takes. */
static int64_t free_block(int64_t run, int64_t outer_count, int64_t points) {
  int64_t block = BLOCK;
  if (points >= SLICED_POINTS)
    while (block > LEAST_BLOCK && outer_count * ((run + block - 1) / block) < ENOUGH_THREADS) block /= 2;
  return run < block ? run : block;
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
  a->block = a->data_run ? free_block(a->run, a->outer_count, points) : a->run;
  int64_t blocks = (a->run + a->block - 1) / a->block;
  bool sliced = a->index_run == 0 || a->index_size >= SLICED_DATA;
  if (a->outer_count * blocks < ENOUGH_THREADS && points >= SLICED_POINTS && a->index_size > 1 && sliced) {
    a->slices = slices ? slices : 1;
    if (a->slices > a->index_size) a->slices = (uint32_t)a->index_size;
  }
  out_plan->threads[0] = (uint64_t)a->outer_count;
  out_plan->threads[1] = a->slices;
  out_plan->threads[2] = (uint64_t)blocks;
  out_plan->cost = (double)points * (a->index_run ? 3.0 : 0.7) + 10.0 * (double)(a->outer_count * a->walk_count);
}

uint32_t mps_index_plan_parts(const mps_index_space *space) {
  mps_index_space merged;
  coalesce(space, &merged);
  /* Offsets of several index tensors (they leave points out) may span more than the data. */
  if (merged.rank != 1 || merged.data[0] != 0 || merged.index[0] == 0 || merged.skipped != INT64_MIN || merged.index_size < 1) return 1;
  int64_t parts = merged.sizes[0] / PART_POINTS;
  const int64_t most = merged.sizes[0] / 2 / merged.index_size; /* copies are filled and joined, too */
  if (parts > most) parts = most;
  return parts < 2 ? 1 : parts > MOST_PARTS ? MOST_PARTS : (uint32_t)parts;
}

int64_t mps_index_space_parts(const mps_index_space *space, uint32_t parts, mps_index_space *out_space) {
  coalesce(space, out_space);
  const int64_t length = out_space->sizes[0] / parts;
  out_space->rank = 2;
  out_space->sizes[1] = length;
  out_space->data[1] = 0;
  out_space->value[1] = out_space->value[0];
  out_space->index[1] = out_space->index[0];
  out_space->sizes[0] = parts;
  out_space->data[0] = out_space->index_size;
  out_space->value[0] = out_space->value[1] * length;
  out_space->index[0] = out_space->index[1] * length;
  out_space->index_step = 1;
  return length * parts;
}

void mps_index_space_rest(const mps_index_space *space, int64_t taken, mps_index_space *out_space) {
  coalesce(space, out_space);
  out_space->sizes[0] -= taken;
}

uint64_t mps_compact_plan_make(mps_compact_arguments *arguments, const mps_tensor *mask) {
  memset(arguments, 0, sizeof *arguments);
  arguments->count = arguments->limit = mps_tensor_element_count(mask);
  arguments->block = MASK_BLOCK;
  arguments->rank = mask->rank;
  memcpy(arguments->sizes, mask->sizes, mask->rank * sizeof mask->sizes[0]);
  return (uint64_t)((arguments->count + MASK_BLOCK - 1) / MASK_BLOCK);
}
