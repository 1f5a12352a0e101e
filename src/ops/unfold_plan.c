/* SPDX-License-Identifier: BSD-3-Clause
 *
 * unfold_plan: from the windows' gradient and the result to the arguments and grid of unfold_backward. Pure.
 */
#include "ops/unfold_plan.h"

#include <string.h>

mps_status mps_unfold_plan_make(mps_unfold_plan *plan, const mps_tensor *grad, uint32_t dimension, int64_t size, int64_t step, const mps_tensor *out) {
  memset(plan, 0, sizeof *plan);
  mps_unfold_arguments *a = &plan->arguments;
  if (grad->rank != out->rank + 1 || grad->dtype != out->dtype || size < 1 || step < 1 || grad->sizes[grad->rank - 1] != size)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "unfold_backward(): the gradient must have one dimension more than the result, of size %lld", (long long)size);
  a->length = out->sizes[dimension];
  a->windows = grad->sizes[dimension];
  a->size = size;
  a->step = step;
  a->out_step = out->strides[dimension];
  a->window_step = grad->strides[dimension];
  a->element_step = grad->strides[grad->rank - 1];
  for (uint32_t d = 0; d < out->rank; d++) {
    if (d == dimension) continue;
    if (grad->sizes[d] != out->sizes[d]) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "unfold_backward(): gradient and result differ in dimension %u", d);
    a->sizes[a->rank] = out->sizes[d];
    a->out_strides[a->rank] = out->strides[d];
    a->grad_strides[a->rank++] = grad->strides[d];
  }
  const int64_t count = mps_tensor_element_count(out);
  if (count == 0) return MPS_STATUS_OK;
  plan->threads[0] = (uint64_t)a->length;
  plan->threads[1] = (uint64_t)(count / a->length);
  plan->threads[2] = 1;
  plan->cost = 2.0 * (double)mps_tensor_element_count(grad) + 5.0 * (double)count;
  return MPS_STATUS_OK;
}
