/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reduce_plan: see reduce_plan.h. Dimensions are split into kept and reduced, ordered by the input's strides, and merged.
 */
#include "ops/reduce_plan.h"

#include <string.h>

/* Reduced elements a thread takes in the inner layout; what is not much longer stays whole. */
#define INNER_CHUNK 16384
/* Elements a thread takes in the outer layout, and the rows that must at least come to. A multiple of the kernels' block of rows. */
#define OUTER_ELEMENTS 65536
#define OUTER_ROWS 8192
/* Outputs of so few neighbouring elements are better taken side by side. */
#define SHORT_REDUCTION 24
#define MANY_OUTPUTS 16

typedef struct dimension {
  int64_t size;
  int64_t strides[3]; /* input, out, second */
} dimension;

typedef struct dimension_list {
  uint32_t count;
  dimension items[MPS_REDUCE_MAX_RANK]; /* the innermost last */
} dimension_list;

static int64_t magnitude(int64_t value) { return value < 0 ? -value : value; }

/* Large input strides first; expanded dimensions before all. */
static bool goes_before(const dimension *a, const dimension *b) {
  int64_t x = magnitude(a->strides[0]), y = magnitude(b->strides[0]);
  if (x == 0 || y == 0) return x == 0 && y != 0;
  return x > y;
}

static void sort(dimension_list *list) {
  for (uint32_t i = 1; i < list->count; i++) {
    dimension moved = list->items[i];
    uint32_t j = i;
    for (; j > 0 && goes_before(&moved, &list->items[j - 1]); j--) list->items[j] = list->items[j - 1];
    list->items[j] = moved;
  }
}

/* Joins neighbours that are one dimension in every tensor. An empty list becomes one dimension of size 1. */
static void merge(dimension_list *list) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < list->count; i++) {
    const dimension *next = &list->items[i];
    dimension *last = kept ? &list->items[kept - 1] : NULL;
    bool joins = last != NULL;
    for (uint32_t t = 0; joins && t < 3; t++) joins = last->strides[t] == next->strides[t] * next->size;
    if (joins) {
      last->size *= next->size;
      memcpy(last->strides, next->strides, sizeof last->strides);
    } else {
      list->items[kept++] = *next;
    }
  }
  if (kept == 0) list->items[kept++] = (dimension){.size = 1, .strides = {1, 1, 1}};
  list->count = kept;
}

static void collect(dimension_list *kept, dimension_list *reduced, const mps_tensor *input, uint32_t mask, const mps_tensor *out,
                    const mps_tensor *second) {
  bool out_keeps = out->rank == input->rank, second_keeps = second && second->rank == input->rank;
  uint32_t position = 0;
  for (uint32_t d = 0; d < input->rank; d++) {
    bool is_reduced = mask >> d & 1;
    uint32_t at = position;
    if (!is_reduced) position++;
    if (input->sizes[d] == 1) continue;
    dimension item = {.size = input->sizes[d], .strides = {input->strides[d], 0, 0}};
    if (is_reduced) {
      reduced->items[reduced->count++] = item;
      continue;
    }
    item.strides[1] = out->strides[out_keeps ? d : at];
    if (second) item.strides[2] = second->strides[second_keeps ? d : at];
    kept->items[kept->count++] = item;
  }
}

static void store(mps_reduce_arguments *a, const dimension_list *kept, const dimension_list *reduced) {
  a->kept_rank = kept->count;
  a->reduced_rank = reduced->count;
  a->output_count = a->reduce_count = 1;
  for (uint32_t d = 0; d < kept->count; d++) {
    a->kept_sizes[d] = kept->items[d].size;
    a->kept_strides[d] = kept->items[d].strides[0];
    a->out_strides[d] = kept->items[d].strides[1];
    a->second_strides[d] = kept->items[d].strides[2];
    a->output_count *= kept->items[d].size;
  }
  for (uint32_t d = 0; d < reduced->count; d++) {
    a->reduced_sizes[d] = reduced->items[d].size;
    a->reduced_strides[d] = reduced->items[d].strides[0];
    a->reduce_count *= reduced->items[d].size;
  }
}

static bool choose_outer(const mps_reduce_arguments *a) {
  int64_t size = a->kept_sizes[a->kept_rank - 1], stride = a->kept_strides[a->kept_rank - 1];
  bool reduced_neighbours = a->reduced_strides[a->reduced_rank - 1] == 1;
  if (size > 1 && stride == 1 && !reduced_neighbours) return true;
  return size >= MANY_OUTPUTS && a->reduce_count < SHORT_REDUCTION;
}

static int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* The chunk depends on the shape alone: results do not change with the number of threads. */
static void cut(mps_reduce_plan *plan) {
  mps_reduce_arguments *a = &plan->arguments;
  int64_t width = 1;
  a->chunk = INNER_CHUNK;
  plan->threads[0] = (uint64_t)a->output_count;
  if (plan->outer) {
    int64_t size = a->kept_sizes[a->kept_rank - 1];
    width = size < MPS_REDUCE_TILE ? size : MPS_REDUCE_TILE;
    a->chunk = OUTER_ELEMENTS / width;
    if (a->chunk > OUTER_ROWS) a->chunk = OUTER_ROWS;
    plan->threads[0] = (uint64_t)(a->output_count / size * divide_up(size, MPS_REDUCE_TILE));
  }
  if (a->reduce_count <= a->chunk + a->chunk / 2) a->chunk = a->reduce_count;
  a->chunk_count = a->reduce_count > 0 ? divide_up(a->reduce_count, a->chunk) : 1;
  plan->threads[1] = (uint64_t)a->chunk_count;
  plan->threads[2] = 1;
}

void mps_reduce_plan_make(mps_reduce_plan *plan, const mps_tensor *input, uint32_t mask, const mps_tensor *out, const mps_tensor *second,
                          bool ordered) {
  memset(plan, 0, sizeof *plan);
  dimension_list kept = {.count = 0}, reduced = {.count = 0};
  collect(&kept, &reduced, input, mask, out, second);
  sort(&kept);
  if (!ordered) sort(&reduced);
  merge(&kept);
  merge(&reduced);
  store(&plan->arguments, &kept, &reduced);
  plan->arguments.divisor = 1.0f;
  if (plan->arguments.output_count == 0) return; /* no thread at all */
  plan->outer = choose_outer(&plan->arguments);
  cut(plan);
  plan->arguments.raw = plan->arguments.chunk_count > 1;
}

void mps_reduce_plan_rows(mps_reduce_plan *plan) {
  mps_reduce_arguments *a = &plan->arguments;
  if (a->output_count == 0 || a->reduced_rank != 1 || a->reduced_strides[0] != 1 || a->reduce_count < MPS_REDUCE_ROW_LEAST ||
      a->reduce_count > MPS_REDUCE_ROW_MOST || a->kept_sizes[a->kept_rank - 1] < MANY_OUTPUTS)
    return;
  plan->outer = true;
  a->rows = 1;
  cut(plan);
}

mps_status mps_reduce_mask(const int64_t *dimensions, uint32_t count, uint32_t rank, uint32_t *out_mask) {
  uint32_t mask = 0;
  for (uint32_t i = 0; dimensions && i < count; i++) {
    int64_t range = rank ? rank : 1, d = dimensions[i];
    if (d < -range || d >= range)
      return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "Dimension out of range (expected to be in range of [%lld, %lld], but got %lld)",
                           (long long)-range, (long long)(range - 1), (long long)d);
    uint32_t bit = 1u << (d < 0 ? d + range : d);
    if (mask & bit)
      return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "dim %lld appears multiple times in the list of dims", (long long)(d < 0 ? d + range : d));
    mask |= bit;
  }
  *out_mask = dimensions && count ? mask : (1u << rank) - 1;
  return MPS_STATUS_OK;
}

int64_t mps_reduce_count(const mps_tensor *input, uint32_t mask) {
  int64_t count = 1;
  for (uint32_t d = 0; d < input->rank; d++)
    if (mask >> d & 1) count *= input->sizes[d];
  return count;
}
