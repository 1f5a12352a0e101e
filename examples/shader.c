/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shader: Metal shaders from C. Compiles a file's worth of Metal source, says what is in it, runs a kernel over a grid of two dimensions,
 * and shows what a wrong source is answered with.
 *
 *   cc shader.c -lopenmps -o shader && ./shader
 */
#include <stdio.h>
#include <stdlib.h>

#include "openmps/library.h"

enum { WIDTH = 78, HEIGHT = 22 };

static const char source[] =
  "#include <metal_stdlib>\n"
  "using namespace metal;\n"
  "struct View { float2 corner; float step; int most; };\n"
  "kernel void mandelbrot(device uchar *steps, constant View &view, uint2 p [[thread_position_in_grid]],\n"
  "                       uint2 size [[threads_per_grid]]) {\n"
  "  float2 c = view.corner + float2(p) * float2(view.step, 2 * view.step), z = 0;\n"
  "  int n = 0;\n"
  "  while (n < view.most && dot(z, z) < 4) {\n"
  "    z = float2(z.x * z.x - z.y * z.y, 2 * z.x * z.y) + c;\n"
  "    n++;\n"
  "  }\n"
  "  steps[p.y * size.x + p.x] = n;\n"
  "}\n"
  "kernel void add(device uchar *a, constant uchar &b, uint i [[thread_position_in_grid]]) { a[i] += b; }\n";

static const char wrong_source[] = "kernel void scale(device float *x, uint i [[thread_position_in_grid]]) {\n  x[i] *= factor;\n}\n";

/* What the kernel takes as its constant: laid out as in Metal, float2 on 8 bytes. */
typedef struct view {
  float corner[2];
  float step;
  int most;
} view;

/* Ends the program with the error's sentence. */
static void check(mps_status status) {
  if (status == MPS_STATUS_OK) return;
  fprintf(stderr, "shader: %s: %s\n", mps_status_name(status), mps_error_message());
  exit(1);
}

/* `bytes` are the constant at index 1; they are copied. */
static void run(mps_stream *stream, mps_library *library, const char *name, mps_buffer *buffer, const void *bytes, uint32_t length,
                const uint64_t threads[3]) {
  mps_pipeline *pipeline;
  check(mps_library_pipeline(library, name, &pipeline));
  mps_encoder encoder;
  mps_encoder_begin(&encoder, stream, "shader");
  mps_encoder_set_pipeline(&encoder, pipeline);
  mps_encoder_set_buffer(&encoder, 0, buffer, 0, MPS_ACCESS_READ_WRITE);
  mps_encoder_set_bytes(&encoder, 1, bytes, length);
  check(mps_encoder_dispatch(&encoder, threads, NULL));
}

static void list(mps_library *library) {
  for (uint32_t i = 0; i < mps_library_function_count(library); i++) {
    mps_pipeline *pipeline;
    check(mps_library_pipeline(library, mps_library_function_name(library, i), &pipeline));
    const mps_pipeline_info *info = mps_pipeline_get_info(pipeline);
    printf("kernel %s: %u buffers, up to %u threads a threadgroup\n", info->name, info->buffer_count, info->max_threads_per_threadgroup);
  }
}

int main(void) {
  mps_device *device;
  mps_library *library;
  mps_buffer *steps;
  check(mps_device_default(&device));
  mps_stream *stream = mps_stream_default(device);
  if (mps_library_compile(device, wrong_source, "scale.metal", &library) != MPS_STATUS_COMPILE_ERROR) return 1;
  printf("%s\n", mps_error_message());

  check(mps_library_compile(device, source, "mandelbrot.metal", &library));
  list(library);
  check(mps_buffer_create(device, stream, WIDTH * HEIGHT, &steps));
  const view all = {{-2.1f, -0.825f}, 0.0375f, 90};
  const unsigned char blank = ' ';
  run(stream, library, "mandelbrot", steps, &all, sizeof all, (const uint64_t[]){WIDTH, HEIGHT, 1});
  run(stream, library, "add", steps, &blank, 1, (const uint64_t[]){WIDTH * HEIGHT, 1, 1});

  static char picture[WIDTH * HEIGHT];
  check(mps_stream_read(stream, steps, 0, picture, sizeof picture)); /* waits */
  for (int y = 0; y < HEIGHT; y++) printf("%.*s\n", WIDTH, picture + y * WIDTH);
  mps_buffer_release(steps);
  mps_library_release(library);
  /* A point far outside leaves at once, the middle of the set never. */
  return picture[0] <= ' ' + 2 && picture[(HEIGHT / 2) * WIDTH + WIDTH / 2] == ' ' + 90 ? 0 : 1;
}
