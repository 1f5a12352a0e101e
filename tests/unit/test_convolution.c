/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_convolution: OpenMPS's own convolution kernels (no provider) and their gradients against one loop in double over all pairs of
 * positions and taps.
 */
#include <math.h>
#include <stdlib.h>

#include "openmps/ops.h"
#include "test.h"

static mps_device *device;
static mps_stream *stream;

typedef struct geometry {
  int64_t batch, groups, wide_channels, narrow_channels; /* of a group */
  int64_t wide[3], taps[3], stride[3], padding[3], dilation[3];
} geometry;

static uint32_t state = 7;
static float next(void) {
  state = state * 1664525u + 1013904223u;
  return (float)((int32_t)(state >> 8) - (1 << 23)) / (float)(1 << 23);
}

/* A float tensor, channels last where asked for, filled with random values or with NaN. */
static mps_tensor tensor(uint32_t rank, const int64_t *sizes, bool channels_last, bool random) {
  mps_tensor t = {.dtype = MPS_DTYPE_F32};
  mps_tensor_set_contiguous(&t, rank, sizes);
  if (channels_last) {
    int64_t stride = sizes[1];
    t.strides[1] = 1;
    for (uint32_t d = rank; d-- > 2;) t.strides[d] = stride, stride *= sizes[d];
    t.strides[0] = stride;
  }
  size_t count = (size_t)mps_tensor_element_count(&t);
  CHECK_OK(mps_buffer_create(device, stream, count * sizeof(float), &t.buffer));
  float *values = mps_buffer_contents(t.buffer);
  for (size_t i = 0; i < count; i++) values[i] = random ? next() : NAN;
  return t;
}

static float *element(const mps_tensor *t, int64_t a, int64_t b, const int64_t *space) {
  float *values = mps_buffer_contents(t->buffer);
  return values + a * t->strides[0] + b * t->strides[1] + space[0] * t->strides[2] + space[1] * t->strides[3] + space[2] * t->strides[4];
}

/* Calls visit for every pair of positions and tap that belong together. */
typedef void (*visitor)(void *context, int64_t n, int64_t wide_channel, int64_t narrow_channel, int64_t weight_channel, const int64_t *wide,
                        const int64_t *narrow, const int64_t *tap);
static void each_term(const geometry *g, const int64_t narrow_sizes[3], visitor visit, void *context) {
  for (int64_t n = 0; n < g->batch; n++)
    for (int64_t o = 0; o < g->groups * g->narrow_channels; o++)
      for (int64_t i = 0; i < g->wide_channels; i++)
        for (int64_t p = 0; p < narrow_sizes[0] * narrow_sizes[1] * narrow_sizes[2]; p++)
          for (int64_t k = 0; k < g->taps[0] * g->taps[1] * g->taps[2]; k++) {
            int64_t narrow[3] = {p / (narrow_sizes[1] * narrow_sizes[2]), p / narrow_sizes[2] % narrow_sizes[1], p % narrow_sizes[2]};
            int64_t tap[3] = {k / (g->taps[1] * g->taps[2]), k / g->taps[2] % g->taps[1], k % g->taps[2]}, wide[3];
            bool inside = true;
            for (int d = 0; d < 3; d++) {
              wide[d] = narrow[d] * g->stride[d] - g->padding[d] + tap[d] * g->dilation[d];
              inside = inside && wide[d] >= 0 && wide[d] < g->wide[d];
            }
            if (inside) visit(context, n, o / g->narrow_channels * g->wide_channels + i, o, i, wide, narrow, tap);
          }
}

typedef struct sums {
  const mps_tensor *wide, *narrow, *weight;
  double *to_wide, *to_narrow, *to_weight; /* laid out as the tensors are in memory */
} sums;

static size_t place(const mps_tensor *t, int64_t a, int64_t b, const int64_t *space) {
  return (size_t)(element(t, a, b, space) - (float *)mps_buffer_contents(t->buffer));
}

static void add_term(void *context, int64_t n, int64_t wide_channel, int64_t narrow_channel, int64_t weight_channel, const int64_t *wide,
                     const int64_t *narrow, const int64_t *tap) {
  sums *s = context;
  double x = (double)*element(s->wide, n, wide_channel, wide), y = (double)*element(s->narrow, n, narrow_channel, narrow),
         w = (double)*element(s->weight, narrow_channel, weight_channel, tap);
  s->to_wide[place(s->wide, n, wide_channel, wide)] += y * w;
  s->to_narrow[place(s->narrow, n, narrow_channel, narrow)] += x * w;
  s->to_weight[place(s->weight, narrow_channel, weight_channel, tap)] += x * y;
}

static double worst(const mps_tensor *actual, const double *expected) {
  const float *values = mps_buffer_contents(actual->buffer);
  double result = 0.0;
  for (int64_t i = 0; i < mps_tensor_element_count(actual); i++) {
    double error = fabs((double)values[i] - expected[i]);
    result = error <= result ? result : error;
  }
  return result;
}

static void check_geometry(const geometry *g, bool channels_last) {
  int64_t narrow_sizes[3];
  for (int d = 0; d < 3; d++) narrow_sizes[d] = (g->wide[d] + 2 * g->padding[d] - g->dilation[d] * (g->taps[d] - 1) - 1) / g->stride[d] + 1;
  const int64_t wide_shape[5] = {g->batch, g->groups * g->wide_channels, g->wide[0], g->wide[1], g->wide[2]};
  const int64_t narrow_shape[5] = {g->batch, g->groups * g->narrow_channels, narrow_sizes[0], narrow_sizes[1], narrow_sizes[2]};
  const int64_t weight_shape[5] = {g->groups * g->narrow_channels, g->wide_channels, g->taps[0], g->taps[1], g->taps[2]};
  mps_tensor wide = tensor(5, wide_shape, channels_last, true), narrow = tensor(5, narrow_shape, channels_last, true);
  mps_tensor weight = tensor(5, weight_shape, channels_last, true), to_wide = tensor(5, wide_shape, channels_last, false);
  mps_tensor to_narrow = tensor(5, narrow_shape, channels_last, false), to_weight = tensor(5, weight_shape, channels_last, false);
  sums s = {&wide, &narrow, &weight, calloc((size_t)mps_tensor_element_count(&wide), sizeof(double)),
            calloc((size_t)mps_tensor_element_count(&narrow), sizeof(double)), calloc((size_t)mps_tensor_element_count(&weight), sizeof(double))};
  each_term(g, narrow_sizes, add_term, &s);
  int64_t output_padding[3];
  for (int d = 0; d < 3; d++)
    output_padding[d] = g->wide[d] - ((narrow_sizes[d] - 1) * g->stride[d] - 2 * g->padding[d] + g->dilation[d] * (g->taps[d] - 1) + 1);
  const int64_t none[1] = {0};

  /* A convolution takes wide to narrow; a transposed one takes narrow to wide with the same weight. */
  CHECK_OK(mps_op_convolution(stream, &wide, &weight, NULL, g->stride, 3, g->padding, 3, g->dilation, 3, false, none, 1, g->groups, &to_narrow));
  CHECK_OK(mps_op_convolution_backward(stream, &narrow, &wide, &weight, g->stride, 3, g->padding, 3, g->dilation, 3, false, none, 1, g->groups, &to_wide,
                                       &to_weight, NULL));
  CHECK_OK(mps_stream_synchronize(stream));
  CHECK(worst(&to_narrow, s.to_narrow) < 1e-4);
  CHECK(worst(&to_wide, s.to_wide) < 1e-4);
  CHECK(worst(&to_weight, s.to_weight) < 1e-4);
  CHECK_OK(mps_op_convolution(stream, &narrow, &weight, NULL, g->stride, 3, g->padding, 3, g->dilation, 3, true, output_padding, 3, g->groups, &to_wide));
  CHECK_OK(mps_op_convolution_backward(stream, &wide, &narrow, &weight, g->stride, 3, g->padding, 3, g->dilation, 3, true, output_padding, 3, g->groups,
                                       &to_narrow, &to_weight, NULL));
  CHECK_OK(mps_stream_synchronize(stream));
  CHECK(worst(&to_wide, s.to_wide) < 1e-4);
  CHECK(worst(&to_narrow, s.to_narrow) < 1e-4);
  CHECK(worst(&to_weight, s.to_weight) < 1e-4);
  mps_tensor *tensors[] = {&wide, &narrow, &weight, &to_wide, &to_narrow, &to_weight};
  for (int i = 0; i < 6; i++) mps_buffer_release(tensors[i]->buffer);
  free(s.to_wide);
  free(s.to_narrow);
  free(s.to_weight);
}

static void any_geometry(void) {
  static const geometry geometries[] = {
      {1, 1, 1, 1, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}},
      {2, 1, 3, 4, {1, 9, 41}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}},
      {2, 2, 2, 3, {1, 10, 70}, {1, 3, 4}, {1, 2, 3}, {0, 1, 2}, {1, 1, 2}},
      {1, 4, 1, 2, {5, 6, 7}, {2, 3, 1}, {2, 1, 2}, {1, 2, 0}, {1, 2, 1}},
      {1, 1, 2, 2, {4, 4, 4}, {3, 3, 3}, {3, 3, 3}, {2, 2, 2}, {2, 2, 2}},
      {3, 1, 2, 2, {1, 1, 100}, {1, 1, 5}, {1, 1, 1}, {0, 0, 4}, {1, 1, 3}},
  };
  for (size_t i = 0; i < sizeof geometries / sizeof *geometries; i++) {
    check_geometry(&geometries[i], false);
    check_geometry(&geometries[i], true);
  }
}

static void bias_is_added_and_summed(void) {
  const int64_t shape[3] = {2, 3, 50}, weights[3] = {4, 3, 1}, results[3] = {2, 4, 50}, four[1] = {4}, one[1] = {1}, none[1] = {0};
  mps_tensor x = tensor(3, shape, false, true), w = tensor(3, weights, false, true), b = tensor(1, four, false, true), y = tensor(3, results, false, false);
  mps_tensor plain = tensor(3, results, false, false), gradient = tensor(1, four, false, false);
  CHECK_OK(mps_op_convolution(stream, &x, &w, &b, one, 1, none, 1, one, 1, false, none, 1, 1, &y));
  CHECK_OK(mps_op_convolution(stream, &x, &w, NULL, one, 1, none, 1, one, 1, false, none, 1, 1, &plain));
  CHECK_OK(mps_op_convolution_backward(stream, &y, &x, &w, one, 1, none, 1, one, 1, false, none, 1, 1, NULL, NULL, &gradient));
  CHECK_OK(mps_stream_synchronize(stream));
  const float *py = mps_buffer_contents(y.buffer), *pp = mps_buffer_contents(plain.buffer), *pb = mps_buffer_contents(b.buffer),
              *pg = mps_buffer_contents(gradient.buffer);
  for (int c = 0; c < 4; c++) {
    double sum = 0.0;
    for (int n = 0; n < 2; n++)
      for (int i = 0; i < 50; i++) {
        int at = (n * 4 + c) * 50 + i;
        CHECK(fabsf(py[at] - pp[at] - pb[c]) < 1e-5f);
        sum += (double)py[at];
      }
    CHECK(fabs(sum - (double)pg[c]) < 1e-4);
  }
  mps_tensor *tensors[] = {&x, &w, &b, &y, &plain, &gradient};
  for (int i = 0; i < 6; i++) mps_buffer_release(tensors[i]->buffer);
}

static void errors_are_told(void) {
  const int64_t shape[3] = {2, 3, 50}, weights[3] = {4, 2, 1}, results[3] = {2, 4, 50}, one[1] = {1}, none[1] = {0};
  mps_tensor x = tensor(3, shape, false, true), w = tensor(3, weights, false, true), y = tensor(3, results, false, false);
  CHECK_STATUS(mps_op_convolution(stream, &x, &w, NULL, one, 1, none, 1, one, 1, false, none, 1, 1, &y), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(mps_op_convolution(stream, &x, &w, NULL, none, 1, none, 1, one, 1, false, none, 1, 1, &y), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_STRING(mps_error_message(), "convolution: stride is 0, but must be at least 1");
  mps_buffer_release(x.buffer);
  mps_buffer_release(w.buffer);
  mps_buffer_release(y.buffer);
}

int main(void) {
  if (mps_device_open("host", &device) != MPS_STATUS_OK) {
    fprintf(stderr, "no device: %s\n", mps_error_message());
    return 1;
  }
  stream = mps_stream_default(device);
  RUN(any_geometry);
  RUN(bias_is_added_and_summed);
  RUN(errors_are_told);
  mps_device_release(device);
  return test_end();
}
