/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_fast_math: user shaders with PYTORCH_MPS_FAST_MATH=1 keep NaN, infinities and the functions of metal_stdlib. A program of its own,
 * since the option is read once a process. Needs a clang (OPENMPS_CLANG).
 */
#include <math.h>
#include <stdlib.h>

#include "openmps/library.h"
#include "test.h"

#define COUNT 64

static void functions_keep_their_special_values(void) {
  mps_device *device = NULL;
  CHECK_OK(mps_device_open("host", &device));
  if (!device) return;
  mps_stream *stream = mps_stream_default(device);
  mps_library *library = NULL;
  CHECK_OK(mps_library_compile(device,
                               "#include <metal_stdlib>\nusing namespace metal;\n"
                               "kernel void logs(device float *out, device const float *a, uint i [[thread_position_in_grid]]) {\n"
                               "  out[2 * i] = log(a[i]);\n  out[2 * i + 1] = isnan(log2(a[i])) ? 1.0 : asinh(a[i]);\n}\n",
                               NULL, &library));
  mps_buffer *in = NULL, *out = NULL;
  CHECK_OK(mps_buffer_create(device, stream, COUNT * sizeof(float), &in));
  CHECK_OK(mps_buffer_create(device, stream, 2 * COUNT * sizeof(float), &out));
  mps_pipeline *pipeline = NULL;
  if (library) CHECK_OK(mps_library_pipeline(library, "logs", &pipeline));
  if (pipeline && in && out) {
    float *a = mps_buffer_contents(in), *results = mps_buffer_contents(out);
    for (int i = 0; i < COUNT; i++) a[i] = i == 0 ? -1.0f : i == 1 ? 0.0f : i == 2 ? INFINITY : i == 3 ? NAN : 0.37f * (float)i;
    mps_encoder encoder;
    mps_encoder_begin(&encoder, stream, "logs");
    mps_encoder_set_pipeline(&encoder, pipeline);
    mps_encoder_set_buffer(&encoder, 0, out, 0, MPS_ACCESS_WRITE);
    mps_encoder_set_buffer(&encoder, 1, in, 0, MPS_ACCESS_READ);
    CHECK_OK(mps_encoder_dispatch(&encoder, (uint64_t[]){COUNT, 1, 1}, NULL));
    CHECK_OK(mps_stream_synchronize(stream));
    CHECK(isnan(results[0]) && results[1] == 1.0f);
    CHECK(isinf(results[2]) && results[2] < 0.0f);
    CHECK(isinf(results[4]) && results[4] > 0.0f && isinf(results[5]));
    CHECK(isnan(results[6]) && results[7] == 1.0f);
    for (int i = 4; i < COUNT; i++) {
      CHECK(fabs((double)results[2 * i] - log((double)a[i])) <= 3e-7 * fmax(1.0, fabs(log((double)a[i]))));
      CHECK(fabs((double)results[2 * i + 1] - asinh((double)a[i])) <= 3e-7 * asinh((double)a[i]));
    }
  }
  mps_buffer_release(out);
  mps_buffer_release(in);
  mps_library_release(library);
  mps_device_release(device);
}

int main(void) {
  setenv("PYTORCH_MPS_FAST_MATH", "1", 1);
  RUN(functions_keep_their_special_values);
  return test_end();
}
