/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fused optimiser steps, which are graphs: every combination of options against the formulas in double, over several steps; strided parameters,
 * half precision, loss scaling, and how many graphs are made for it.
 */
#include "test.h"

#include <math.h>
#include <stdlib.h>

#include "openmps/graph.h"
#include "openmps/ops.h"
#include "runtime/buffer.h"

static mps_device *device;
static mps_stream *stream;

#define COUNT 60
#define STEPS 3

static mps_tensor make(mps_dtype dtype, uint32_t rank, const int64_t *sizes, const double *values) {
  mps_tensor tensor;
  memset(&tensor, 0, sizeof tensor);
  tensor.dtype = dtype;
  mps_tensor_set_contiguous(&tensor, rank, sizes);
  const size_t count = (size_t)mps_tensor_element_count(&tensor), item = mps_dtype_size(dtype);
  CHECK_OK(mps_buffer_create(device, stream, count * item, &tensor.buffer));
  CHECK_OK(mps_stream_synchronize(stream));
  for (size_t i = 0; i < count; i++) mps_scalar_store(mps_scalar_float(values ? values[i] : 0.0), dtype, (char *)mps_buffer_contents(tensor.buffer) + i * item);
  return tensor;
}

static double value_at(const mps_tensor *tensor, int64_t i) {
  const void *memory = mps_buffer_contents(tensor->buffer);
  if (tensor->dtype == MPS_DTYPE_F32) return (double)((const float *)memory)[i];
  const uint32_t bits = (uint32_t)((const uint16_t *)memory)[i] << 16; /* bfloat */
  float value;
  memcpy(&value, &bits, 4);
  return (double)value;
}

static void gradients(double *out, int step) {
  for (int i = 0; i < COUNT; i++) out[i] = sin(i * 1.7 + step) * (i % 5 + 0.25);
}

/* ---- Adam ---- */
typedef struct adam_case {
  bool amsgrad, maximize, decoupled, scaled, strided, number;
  double decay;
  mps_dtype dtype;
} adam_case;

static void adam_formula(const adam_case *c, double *p, double *m, double *v, double *most, const double *grad, int step) {
  for (int i = 0; i < COUNT; i++) {
    double g = c->maximize ? -grad[i] : grad[i];
    if (c->decoupled)
      p[i] *= 1 - 0.01 * c->decay;
    else
      g += p[i] * c->decay;
    m[i] += (g - m[i]) * (1 - 0.9);
    v[i] = v[i] * 0.99 + g * g * (1 - 0.99);
    most[i] = most[i] > v[i] ? most[i] : v[i];
    const double root = sqrt(c->amsgrad ? most[i] : v[i]) / sqrt(1 - pow(0.99, step));
    p[i] -= 0.01 / (1 - pow(0.9, step)) * m[i] / (root + 1e-3);
  }
}

static void adam(const adam_case *c) {
  const int64_t sizes[] = {6, 10}, one[] = {1};
  double p[COUNT], m[COUNT] = {0}, v[COUNT] = {0}, most[COUNT] = {0}, g[COUNT], rate = 0.01;
  for (int i = 0; i < COUNT; i++) p[i] = cos(i) * 2;
  mps_tensor param = make(c->dtype, 2, sizes, p), average = make(MPS_DTYPE_F32, 2, sizes, NULL), square = make(MPS_DTYPE_F32, 2, sizes, NULL);
  mps_tensor largest = make(MPS_DTYPE_F32, 2, sizes, NULL), lr = make(MPS_DTYPE_F32, 0, one, &rate);
  if (c->number) {
    mps_buffer_release(lr.buffer);
    lr.buffer = NULL;
    lr.constant = mps_scalar_float(rate);
  }
  for (int i = 0; i < COUNT; i++) p[i] = value_at(&param, i);
  for (int step = 1; step <= STEPS; step++) {
    double count = step, scale = 128, scaled[COUNT], skip = c->scaled && step == 2;
    gradients(g, step);
    for (int i = 0; i < COUNT; i++) scaled[i] = g[i] * (c->scaled ? scale : 1);
    mps_tensor grad = make(c->dtype, 2, sizes, scaled), at = make(MPS_DTYPE_F32, 0, one, &count);
    mps_tensor grad_scale = make(MPS_DTYPE_F32, 1, one, &scale), found = make(MPS_DTYPE_F32, 1, one, &skip);
    for (int i = 0; i < COUNT; i++) g[i] = value_at(&grad, i) / (c->scaled ? scale : 1);
    mps_tensor list[] = {param, grad, average, square, largest};
    for (int i = 0; c->strided && i < 5; i++) { /* the same elements, all seen transposed */
      list[i].sizes[0] = 10, list[i].sizes[1] = 6;
      list[i].strides[0] = 1, list[i].strides[1] = 10;
    }
    mps_status (*op)(mps_stream *, const mps_tensor *, uint32_t, const mps_tensor *, uint32_t, const mps_tensor *, uint32_t, const mps_tensor *, uint32_t,
                     const mps_tensor *, uint32_t, const mps_tensor *, uint32_t, const mps_tensor *, double, double, double, double, bool, bool,
                     const mps_tensor *, const mps_tensor *) = c->decoupled ? mps_op_fused_adamw : mps_op_fused_adam;
    CHECK_OK(op(stream, &list[0], 1, &list[1], 1, &list[2], 1, &list[3], 1, &list[4], c->amsgrad, &at, 1, &lr, 0.9, 0.99, c->decay, 1e-3, c->amsgrad,
                c->maximize, c->scaled ? &grad_scale : NULL, c->scaled ? &found : NULL));
    CHECK_OK(mps_stream_synchronize(stream));
    if (!skip) adam_formula(c, p, m, v, most, g, step);
    for (int i = 0; i < COUNT; i++) {
      const double tolerance = c->dtype == MPS_DTYPE_F32 ? 5e-6 : 1e-2;
      CHECK(fabs(value_at(&param, i) - p[i]) <= tolerance * (1 + fabs(p[i])));
      CHECK(fabs(value_at(&average, i) - m[i]) <= 2e-6 * (1 + fabs(m[i])) && fabs(value_at(&square, i) - v[i]) <= 2e-6 * (1 + fabs(v[i])));
      if (c->amsgrad) CHECK(fabs(value_at(&largest, i) - most[i]) <= 2e-6 * (1 + fabs(most[i])));
      if (c->scaled) CHECK(fabs(value_at(&grad, i) - g[i]) <= 1e-6 * (1 + fabs(g[i])));
      p[i] = value_at(&param, i);
    }
    mps_buffer *buffers[] = {grad.buffer, at.buffer, grad_scale.buffer, found.buffer};
    for (int i = 0; i < 4; i++) mps_buffer_release(buffers[i]);
  }
  mps_buffer *buffers[] = {param.buffer, average.buffer, square.buffer, largest.buffer, lr.buffer};
  for (int i = 0; i < 5; i++) mps_buffer_release(buffers[i]);
}

static void steps_adam(void) {
  for (int bits = 0; bits < 64; bits++) {
    const adam_case c = {.amsgrad = bits & 1, .maximize = bits & 2, .decoupled = bits & 4, .scaled = bits & 8, .strided = bits & 16, .number = bits & 4,
                         .decay = bits & 32 ? 0.1 : 0, .dtype = bits % 7 == 3 && !(bits & 8) ? MPS_DTYPE_BF16 : MPS_DTYPE_F32};
    adam(&c);
  }
}

/* ---- SGD ---- */
static void sgd(bool momentum, bool nesterov, bool maximize, bool skips, double decay) {
  const int64_t sizes[] = {COUNT}, one[] = {1};
  double p[COUNT], b[COUNT] = {0}, g[COUNT], rate = 0.05;
  for (int i = 0; i < COUNT; i++) p[i] = cos(i) * 2;
  mps_tensor param = make(MPS_DTYPE_F32, 1, sizes, p), buffer = make(MPS_DTYPE_F32, 1, sizes, NULL), lr = make(MPS_DTYPE_F32, 0, one, &rate);
  for (int step = 1; step <= STEPS; step++) {
    double skip = skips && step == 2;
    gradients(g, step);
    mps_tensor grad = make(MPS_DTYPE_F32, 1, sizes, g), found = make(MPS_DTYPE_F32, 1, one, &skip);
    CHECK_OK(mps_op_fused_sgd(stream, &param, 1, &grad, 1, &buffer, momentum, decay, momentum ? 0.9 : 0, &lr, momentum ? 0.1 : 0, nesterov, maximize,
                              step == 1, NULL, skips ? &found : NULL));
    CHECK_OK(mps_stream_synchronize(stream));
    for (int i = 0; i < COUNT; i++) {
      double d = (maximize ? -g[i] : g[i]) + p[i] * decay;
      if (momentum && skip == 0) b[i] = step == 1 ? d : b[i] * 0.9 + d * 0.9;
      if (momentum) d = nesterov ? d + b[i] * 0.9 : b[i];
      if (skip == 0) p[i] -= rate * d;
      CHECK(fabs(value_at(&param, i) - p[i]) <= 2e-6 * (1 + fabs(p[i])));
      if (momentum) CHECK(fabs(value_at(&buffer, i) - b[i]) <= 2e-6 * (1 + fabs(b[i])));
    }
    mps_buffer_release(grad.buffer);
    mps_buffer_release(found.buffer);
  }
  mps_buffer_release(param.buffer);
  mps_buffer_release(buffer.buffer);
  mps_buffer_release(lr.buffer);
}

static void steps_sgd(void) {
  for (int bits = 0; bits < 16; bits++) sgd(bits & 1, bits & 1 && bits & 2, bits & 4, bits & 8, bits & 2 ? 0.1 : 0);
}

/* One graph serves all steps and all parameters of a size, whatever the numbers. */
static void keeps_graphs(void) {
  mps_graph_statistics before, after;
  mps_graph_get_statistics(device, &before);
  const adam_case c = {.decay = 0.1, .dtype = MPS_DTYPE_F32};
  adam(&c);
  adam(&c);
  mps_graph_get_statistics(device, &after);
  CHECK_INT(after.compiled, before.compiled); /* steps_adam had it */
  CHECK_INT(after.hits - before.hits, 2 * STEPS);
  CHECK_INT(after.runs - before.runs, 2 * STEPS);
}

static void refuses(void) {
  const int64_t sizes[] = {4}, more[] = {5};
  mps_tensor a = make(MPS_DTYPE_F32, 1, sizes, NULL), b = make(MPS_DTYPE_F32, 1, more, NULL);
  CHECK_STATUS(mps_op_fused_sgd(stream, &a, 1, &b, 1, NULL, 0, 0, 0, &a, 0, false, false, false, NULL, NULL), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(mps_op_fused_sgd(stream, &a, 1, &a, 0, NULL, 0, 0, 0, &a, 0, false, false, false, NULL, NULL), MPS_STATUS_INVALID_ARGUMENT);
  mps_buffer_release(a.buffer);
  mps_buffer_release(b.buffer);
}

int main(void) {
  if (mps_device_open("host", &device) != MPS_STATUS_OK) {
    fprintf(stderr, "%s\n", mps_error_message());
    return 1;
  }
  stream = mps_stream_default(device);
  RUN(steps_adam);
  RUN(steps_sgd);
  RUN(keeps_graphs);
  RUN(refuses);
  mps_device_release(device);
  return test_end();
}
