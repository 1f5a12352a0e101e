// SPDX-License-Identifier: BSD-3-Clause
//
// ctc: connectionist temporal classification (Graves et al., ICML 2006, equations 6 to 16), in logarithms. A thread takes an item of the
// batch, step by step; a step is vectorised over the states. State 2i is the blank before target i, state 2i + 1 is target i.

#include "error.h"
#include "reduce.h"
#include "softmax.h"
#include "ctc_arguments.h"

namespace {

// log(e^a + e^b), log(e^a + e^b + e^c); -infinity when all are. Infinity and NaN give NaN, as on the CPU.
inline float log_add(float a, float b) {
  float top = b > a ? b : a;
  top = top == -INFINITY ? 0.0f : top;
  return log(exp_below(a - top) + exp_below(b - top)) + top;
}
inline float log_add(float a, float b, float c) {
  float top = b > a ? b : a;
  top = c > top ? c : top;
  top = top == -INFINITY ? 0.0f : top;
  return log(exp_below(a - top) + exp_below(b - top) + exp_below(c - top)) + top;
}

// The targets of an item: their classes, and whether a path may come from the target before without a blank.
struct sequence {
  device const int *classes;
  device const int *skips;
  long count;
};

inline sequence read_targets(device const long *targets, device int *scratch, mps_ctc_item item, long index, constant mps_ctc_arguments &a,
                             device mps_kernel_error *error) {
  device int *classes = scratch + index * 2 * a.places, *skips = classes + a.places;
  for (long i = 0; i < item.target_length; i++) {
    long target = targets[item.target_offset + i * a.target_stride];
    if (target < 0 || target >= a.classes) {
      report_error(error, MPS_KERNEL_ERROR_TARGET, target, a.classes, 0);
      target = 0;
    }
    classes[i] = int(target);
    skips[i] = i > 0 && classes[i - 1] != int(target);
  }
  return {classes, skips, item.target_length};
}

inline void fill(device float *to, long count, float value) {
  for (long i = 0; i < count; i++) to[i] = value;
}

// Rows are kept less the largest of the row before, and what was taken off is added up apart: logarithms of products of many probabilities
// are large, and would lose digits at every step.
inline float shift_of(device const float *row, long count) {
  const float top = largest_of_row<float>(row, count);
  return fabs(top) < INFINITY ? top : 0.0f;
}

// Equations 6 and 7. `x` are log_probs of the step.
inline void step_forward(device const float *before, device float *now, float shift, device const float *x, sequence s, long blank) {
  const float rest = x[blank] - shift;
  now[0] = before[0] + rest;
  if (s.count == 0) return;
  now[1] = log_add(before[1], before[0]) + (x[s.classes[0]] - shift);
  now[2] = log_add(before[2], before[1]) + rest;
  VECTORIZE
  for (long i = 1; i < s.count; i++) {
    const float a = before[2 * i + 1], b = before[2 * i], c = s.skips[i] ? before[2 * i - 1] : -INFINITY;
    now[2 * i + 1] = log_add(a, b, c) + (x[s.classes[i]] - shift);
    now[2 * i + 2] = log_add(before[2 * i + 2], a) + rest;
  }
}

inline void first_step(device float *now, device const float *x, sequence s, long blank) {
  fill(now, 2 * s.count + 1, -INFINITY);
  now[0] = x[blank];
  if (s.count > 0) now[1] = x[s.classes[0]];
}

// Equations 10 and 11.
inline void step_backward(device const float *after, device float *now, float shift, device const float *x, sequence s, long blank) {
  const float rest = x[blank] - shift;
  const long last = s.count - 1;
  now[2 * s.count] = after[2 * s.count] + rest;
  if (s.count == 0) return;
  VECTORIZE
  for (long i = 0; i < last; i++) {
    const float a = after[2 * i + 1], b = after[2 * i + 2], c = s.skips[i + 1] ? after[2 * i + 3] : -INFINITY;
    now[2 * i] = log_add(after[2 * i], a) + rest;
    now[2 * i + 1] = log_add(a, b, c) + (x[s.classes[i]] - shift);
  }
  now[2 * last] = log_add(after[2 * last], after[2 * last + 1]) + rest;
  now[2 * last + 1] = log_add(after[2 * last + 1], after[2 * last + 2]) + (x[s.classes[last]] - shift);
}

// Equation 8: the logarithm of the sum of the last two states, and of what was taken off.
inline running_sum log_likelihood(device const float *alpha, mps_ctc_item item, running_sum taken) {
  const float sum = item.target_length == 0 ? alpha[0] : log_add(alpha[2 * item.target_length], alpha[2 * item.target_length - 1]);
  taken.add(sum);
  return taken;
}

// `share` becomes each class's part of all paths at one step: the sum of e^(alpha + beta + scale - x) over the states of the class.
inline void collect(device float *share, device float *values, device const float *alpha, device const float *beta, float scale,
                    device const float *x, sequence s, bool is_last, constant mps_ctc_arguments &a) {
  fill(share, a.classes, 0.0f);
  const float rest = x[a.blank];
  float lanes[REDUCE_LANES];
  for (uint l = 0; l < REDUCE_LANES; l++) lanes[l] = 0.0f;
  long i = 0;
  for (; i + REDUCE_LANES <= s.count + 1; i += REDUCE_LANES) {
    VECTORIZE
    for (uint l = 0; l < REDUCE_LANES; l++) lanes[l] += exp((alpha[2 * (i + l)] + beta[2 * (i + l)]) + (scale - rest));
  }
  for (uint l = 0; i <= s.count; i++, l++) lanes[l] += exp((alpha[2 * i] + beta[2 * i]) + (scale - rest));
  float sum = 0.0f;
  for (uint l = 0; l < REDUCE_LANES; l++) sum += lanes[l];
  // A target that is the blank itself takes its place at the last step, as on the CPU.
  if (!is_last || s.count == 0 || s.classes[s.count - 1] != int(a.blank)) share[a.blank] = sum;
  VECTORIZE
  for (long j = 0; j < s.count; j++) values[j] = exp((alpha[2 * j + 1] + beta[2 * j + 1]) + (scale - x[s.classes[j]]));
  for (long j = 0; j < s.count; j++) share[s.classes[j]] += values[j];
}

// Equation 16, in place of the shares. A class without a state counts as the logarithm of nothing.
inline void finish(device float *result, device const float *x, float loss, float grad, long count) {
  VECTORIZE
  for (long c = 0; c < count; c++) {
    const float nothing = (-INFINITY + loss) - x[c], share = result[c];
    result[c] = (exp(x[c]) - (share != 0.0f || nothing == nothing ? share : nothing)) * grad;
  }
}

}  // namespace

// `rows`: a.scratch floats an item, two rows of states.
kernel void ctc_forward(device const float *log_probs [[buffer(0)]], device const long *targets [[buffer(1)]],
                        device const mps_ctc_item *items [[buffer(2)]], device int *scratch [[buffer(3)]], device float *rows [[buffer(4)]],
                        device float *losses [[buffer(5)]], device float *log_alpha [[buffer(6)]], constant mps_ctc_arguments &a [[buffer(7)]],
                        device mps_kernel_error *error [[buffer(8)]], uint index [[thread_position_in_grid]]) {
  const mps_ctc_item item = items[index];
  const long width = 2 * item.target_length + 1;
  device float *alpha = log_alpha + index * a.steps * a.states;
  fill(alpha, a.steps * a.states, -INFINITY);
  if (item.input_length == 0) {
    losses[index] = item.target_length == 0 ? 0.0f : INFINITY;
    return;
  }
  const sequence s = read_targets(targets, scratch, item, index, a, error);
  device const float *x = log_probs + index * a.input_strides[1];
  device float *now = rows + index * a.scratch, *before = now + a.states;
  running_sum taken;
  first_step(now, x, s, a.blank);
  first_step(alpha, x, s, a.blank);
  for (long t = 1; t < item.input_length; t++) {
    const float shift = shift_of(now, width);
    taken.add(shift);
    device float *free = before;
    before = now;
    now = free;
    x += a.input_strides[0];
    alpha += a.states;
    step_forward(before, now, shift, x, s, a.blank);
    VECTORIZE
    for (long i = 0; i < width; i++) alpha[i] = (now[i] + taken.low) + taken.sum;
  }
  losses[index] = -log_likelihood(now, item, taken).value();
}

// `rows`: two rows of states for beta, one of values by target, then what was taken off each row of alpha, in two parts, and these rows.
// They are made again, as the digits that log_alpha has lost would be missed where large logarithms cancel.
kernel void ctc_backward(device const float *log_probs [[buffer(0)]], device const long *targets [[buffer(1)]],
                         device const mps_ctc_item *items [[buffer(2)]], device int *scratch [[buffer(3)]], device float *rows [[buffer(4)]],
                         device const float *losses [[buffer(5)]], device const float *grads [[buffer(6)]], device float *result [[buffer(7)]],
                         constant mps_ctc_arguments &a [[buffer(8)]], device mps_kernel_error *error [[buffer(9)]],
                         uint index [[thread_position_in_grid]]) {
  const mps_ctc_item item = items[index];
  const long last = item.input_length - 1, step = a.batch * a.classes, width = 2 * item.target_length + 1;
  device float *to = result + index * a.classes;
  for (long t = item.input_length; t < a.steps; t++) fill(to + t * step, a.classes, 0.0f);
  if (last < 0) return;
  const sequence s = read_targets(targets, scratch, item, index, a, error);
  device const float *x = log_probs + index * a.input_strides[1];
  device float *now = rows + index * a.scratch, *after = now + a.states, *values = after + a.states, *parts = values + a.places;
  device float *alpha = parts + 2 * a.steps;
  running_sum taken;
  first_step(alpha, x, s, a.blank);
  parts[0] = parts[1] = 0.0f;
  for (long t = 1; t <= last; t++) {
    const float shift = shift_of(alpha, width);
    taken.add(shift);
    alpha += a.states;
    x += a.input_strides[0];
    step_forward(alpha - a.states, alpha, shift, x, s, a.blank);
    parts[2 * t] = taken.sum;
    parts[2 * t + 1] = taken.low;
  }
  // The loss with all its digits, if it is the one that was given.
  const running_sum sum = log_likelihood(alpha, item, taken);
  const bool same = a.own_loss || -sum.value() == losses[index];
  const float loss = same ? -sum.value() : losses[index], high = same ? -sum.sum : losses[index], low = same ? -sum.low : 0.0f;
  if (a.zero_infinity && loss == INFINITY) {
    for (long t = 0; t <= last; t++) fill(to + t * step, a.classes, 0.0f);
    return;
  }
  running_sum gone;
  for (long t = last; t >= 0; t--) {
    if (t == last) {
      fill(now, width, -INFINITY);
      now[2 * s.count] = x[a.blank];
      if (s.count > 0) now[2 * s.count - 1] = x[s.classes[s.count - 1]];
    } else {
      const float shift = shift_of(now, width);
      gone.add(shift);
      device float *free = after;
      after = now;
      now = free;
      step_backward(after, now, shift, x, s, a.blank);
    }
    running_sum scale = gone;
    scale.add(parts[2 * t]);
    scale.add(high);
    scale.low += parts[2 * t + 1] + low;
    collect(to + t * step, values, alpha, now, scale.value(), x, s, t == last, a);
    finish(to + t * step, x, loss, grads[index * a.grad_stride], a.classes);
    alpha -= a.states;
    x -= a.input_strides[0];
  }
}
