/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ctc_plan: see ctc_plan.h. Targets are rows of a matrix, or one row that holds them all, one item's behind another's.
 */
#include "ops/ctc_plan.h"

#include <stdbool.h>
#include <string.h>

/* Nanoseconds a state and a class of one step on one core, estimates. */
#define STATE_COST 2.0
#define CLASS_COST 0.5
#define WHILE " (while checking arguments for ctc_loss_allocate_outputs)"

static mps_status refuse_size(const char *bound, int64_t expected, uint32_t dimension, int64_t size) {
  return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "Expected tensor to have size %s%lld at dimension %u, but got size %lld for argument #2 'targets'" WHILE,
                       bound, (long long)expected, (unsigned)dimension, (long long)size);
}

static mps_status refuse_length(const char *name, const char *bound, int64_t expected, int64_t value) {
  return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "Expected %s to have value at %s %lld, but got value %lld" WHILE, name, bound, (long long)expected,
                       (long long)value);
}

static mps_status check_shapes(const mps_tensor *log_probs, const mps_tensor *targets, const mps_ctc_lengths *lengths, int64_t blank) {
  if (log_probs->rank != 3)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "Expected 3-dimensional tensor, but got %u-dimensional tensor for argument #1 'log_probs'" WHILE,
                         (unsigned)log_probs->rank);
  if (targets->rank != 1 && targets->rank != 2)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "Expected 1 to 2 dimensions, but got %u-dimensional tensor for argument #2 'targets'" WHILE,
                         (unsigned)targets->rank);
  if (mps_tensor_element_count(log_probs) == 0) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "log_probs tensor must not be empty");
  if (blank < 0 || blank >= log_probs->sizes[2] || log_probs->sizes[2] > INT32_MAX)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "blank must be in label range");
  if (lengths->input_count != log_probs->sizes[1]) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "input_lengths must be of size batch_size");
  if (lengths->target_count != log_probs->sizes[1]) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "target_lengths must be of size batch_size");
  return MPS_STATUS_OK;
}

mps_status mps_ctc_check(const mps_tensor *log_probs, const mps_tensor *targets, const mps_ctc_lengths *lengths, int64_t blank) {
  mps_status status = check_shapes(log_probs, targets, lengths, blank);
  if (status != MPS_STATUS_OK) return status;
  const int64_t batch = log_probs->sizes[1], steps = log_probs->sizes[0];
  int64_t longest = 0, left = targets->sizes[0], total = 0;
  bool fits = true;
  for (int64_t b = 0; b < batch; b++) {
    const int64_t length = lengths->targets[b];
    if (length < 0) return refuse_length("target_lengths", "least", 0, length);
    if (length > longest) longest = length;
    fits = fits && length <= left;
    left -= fits ? length : 0;
    total = (int64_t)((uint64_t)total + (uint64_t)length); /* only for the text: it may wrap */
  }
  if (targets->rank == 1) {
    if (!fits || left != 0) return refuse_size("", total, 0, targets->sizes[0]);
  } else {
    if (targets->sizes[0] != batch) return refuse_size("", batch, 0, targets->sizes[0]);
    if (targets->sizes[1] < longest) return refuse_size("at least ", longest, 1, targets->sizes[1]);
  }
  for (int64_t b = 0; b < batch; b++) {
    const int64_t length = lengths->inputs[b];
    if (length < 0) return refuse_length("input_lengths", "least", 0, length);
    if (length > steps) return refuse_length("input_lengths", "most", steps, length);
  }
  return MPS_STATUS_OK;
}

void mps_ctc_plan_make(const mps_tensor *log_probs, const mps_tensor *targets, const mps_ctc_lengths *lengths, int64_t blank, mps_ctc_plan *plan,
                       mps_ctc_item *items) {
  memset(plan, 0, sizeof *plan);
  mps_ctc_arguments *a = &plan->arguments;
  *a = (mps_ctc_arguments){.steps = log_probs->sizes[0], .batch = log_probs->sizes[1], .classes = log_probs->sizes[2], .blank = blank};
  const bool rows = targets->rank == 2;
  a->target_stride = targets->strides[rows ? 1 : 0];
  int64_t place = 0;
  for (int64_t b = 0; b < a->batch; b++) {
    const int64_t length = lengths->targets[b];
    items[b] = (mps_ctc_item){.input_length = lengths->inputs[b], .target_length = length};
    items[b].target_offset = rows ? b * targets->strides[0] : place * a->target_stride;
    place += length;
    if (length > plan->longest) plan->longest = length;
    plan->cost += (double)items[b].input_length * ((double)(2 * length + 1) * STATE_COST + (double)a->classes * CLASS_COST);
  }
  a->places = plan->longest > 0 ? plan->longest : 1;
  a->states = 2 * plan->longest + 1;
}
