/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tiny: OpenMPS from C alone. Multiplies two matrices, runs a Metal kernel of its own over the product, and checks both.
 *
 *   cc tiny.c -lopenmps -o tiny && ./tiny
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "openmps/library.h"
#include "openmps/ops.h"

enum { M = 33, K = 65, N = 17 };

static const char source[] =
  "#include <metal_stdlib>\n"
  "using namespace metal;\n"
  "kernel void soft_clip(device float *values, constant float &limit, uint i [[thread_position_in_grid]]) {\n"
  "  values[i] = limit * tanh(values[i] / limit);\n"
  "}\n";

/* Ends the program with the error's sentence. */
static void check(mps_status status) {
  if (status == MPS_STATUS_OK) return;
  fprintf(stderr, "tiny: %s: %s\n", mps_status_name(status), mps_error_message());
  exit(1);
}

/* A float matrix in device memory, filled by a formula. */
static mps_tensor make_matrix(mps_device *device, mps_stream *stream, int64_t rows, int64_t columns, int seed) {
  mps_tensor matrix = {.dtype = MPS_DTYPE_F32};
  mps_tensor_set_contiguous(&matrix, 2, (const int64_t[]){rows, columns});
  size_t bytes = (size_t)(rows * columns) * sizeof(float);
  check(mps_buffer_create(device, stream, bytes, &matrix.buffer));
  float *values = malloc(bytes);
  if (!values) exit(1);
  for (int64_t i = 0; i < rows * columns; i++) values[i] = (float)((i * 7 + seed) % 11) / 11.0f - 0.5f;
  check(mps_stream_write(stream, matrix.buffer, 0, values, bytes)); /* reads `values` before it returns */
  free(values);
  return matrix;
}

static void run_kernel(mps_stream *stream, mps_library *library, mps_buffer *values, float limit, uint64_t count) {
  mps_pipeline *pipeline;
  check(mps_library_pipeline(library, "soft_clip", &pipeline));
  mps_encoder encoder;
  mps_encoder_begin(&encoder, stream, "soft_clip");
  mps_encoder_set_pipeline(&encoder, pipeline);
  mps_encoder_set_buffer(&encoder, 0, values, 0, MPS_ACCESS_READ_WRITE);
  mps_encoder_set_bytes(&encoder, 1, &limit, sizeof limit);
  check(mps_encoder_dispatch(&encoder, (const uint64_t[]){count, 1, 1}, NULL));
}

/* The largest difference to the same in double, on the CPU. */
static double largest_error(mps_stream *stream, const mps_tensor *a, const mps_tensor *b, const mps_tensor *c, double limit) {
  static float left[M * K], right[K * N], result[M * N];
  check(mps_stream_read(stream, a->buffer, 0, left, sizeof left));
  check(mps_stream_read(stream, b->buffer, 0, right, sizeof right));
  check(mps_stream_read(stream, c->buffer, 0, result, sizeof result));
  double largest = 0.0;
  for (int i = 0; i < M; i++)
    for (int j = 0; j < N; j++) {
      double sum = 0.0;
      for (int k = 0; k < K; k++) sum += (double)left[i * K + k] * (double)right[k * N + j];
      double error = fabs((double)result[i * N + j] - limit * tanh(sum / limit));
      if (!(error <= largest)) largest = error;
    }
  return largest;
}

int main(void) {
  mps_device *device;
  check(mps_device_default(&device));
  mps_stream *stream = mps_stream_default(device);
  printf("device: %s, %u cores\n", mps_device_get_info(device)->name, (unsigned)mps_device_get_info(device)->core_count);

  mps_tensor a = make_matrix(device, stream, M, K, 1), b = make_matrix(device, stream, K, N, 4), c = make_matrix(device, stream, M, N, 0);
  check(mps_op_mm(stream, &a, &b, &c));

  const float limit = 0.75f;
  mps_library *library;
  check(mps_library_compile(device, source, "tiny.metal", &library));
  run_kernel(stream, library, c.buffer, limit, M * N);

  double error = largest_error(stream, &a, &b, &c, (double)limit); /* waits */
  printf("%d x %d times %d x %d, soft-clipped on the device: largest error %.2g\n", M, K, K, N, error);

  mps_library_release(library);
  mps_buffer_release(a.buffer);
  mps_buffer_release(b.buffer);
  mps_buffer_release(c.buffer);
  return error < 1e-5 ? 0 : 1;
}
