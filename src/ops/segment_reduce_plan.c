/* SPDX-License-Identifier: BSD-3-Clause
 *
 * segment_reduce_plan: from the shapes of data and bounds to kernel arguments and threads. Pure.
 */
#include "ops/segment_reduce_plan.h"

#include <math.h>
#include <string.h>

/* Nanoseconds on one core, estimates. */
#define ELEMENT_COST 0.3
#define SEGMENT_COST 10.0

int mps_segment_reduce_mode(const char *reduce) {
  static const struct {
    const char *name;
    int mode;
  } names[] = {{"sum", MPS_SEGMENT_SUM}, {"mean", MPS_SEGMENT_MEAN}, {"prod", MPS_SEGMENT_PROD}, {"max", MPS_SEGMENT_MAX},
               {"amax", MPS_SEGMENT_MAX}, {"min", MPS_SEGMENT_MIN},   {"amin", MPS_SEGMENT_MIN}};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (!strcmp(reduce, names[i].name)) return names[i].mode;
  return -1;
}

static float natural_start(int mode) {
  switch (mode) {
    case MPS_SEGMENT_MAX: return -INFINITY;
    case MPS_SEGMENT_MIN: return INFINITY;
    case MPS_SEGMENT_PROD: return 1.0f;
    default: return 0.0f;
  }
}

void mps_segment_reduce_plan_make(mps_segment_reduce_plan *plan, const mps_tensor *data, const mps_tensor *bounds, bool offsets, int mode,
                                  const mps_scalar *initial) {
  memset(plan, 0, sizeof *plan);
  mps_segment_reduce_arguments *a = &plan->arguments;
  const uint32_t axis = bounds->rank - 1;
  int64_t outer = 1;
  for (uint32_t d = 0; d < axis; d++) outer *= data->sizes[d];
  a->inner = 1;
  for (uint32_t d = axis + 1; d < data->rank; d++) a->inner *= data->sizes[d];
  a->length = data->sizes[axis];
  a->bounds = bounds->sizes[axis];
  a->segments = a->bounds - (offsets ? 1 : 0);
  a->mode = (uint32_t)mode;
  a->has_initial = initial != NULL;
  a->initial = initial ? (float)mps_scalar_to_double(*initial) : natural_start(mode);
  plan->threads[0] = (uint64_t)(outer * a->segments);
  plan->threads[1] = (uint64_t)((a->inner + MPS_SEGMENT_BLOCK - 1) / MPS_SEGMENT_BLOCK);
  plan->threads[2] = 1;
  plan->cost = (double)mps_tensor_element_count(data) * ELEMENT_COST + (double)(plan->threads[0] * plan->threads[1]) * SEGMENT_COST;
}
