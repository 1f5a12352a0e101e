/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_library: Metal source compiled at run time and dispatched on the host; messages with the user's own lines and columns; what the
 * encoder refuses. Needs a clang (OPENMPS_CLANG).
 */
#include <math.h>
#include <stdlib.h>

#include "host_device.h"

#define COUNT 1000

static mps_pipeline *pipeline_of(mps_library *library, const char *name) {
  mps_pipeline *pipeline = NULL;
  CHECK_OK(mps_library_pipeline(library, name, &pipeline));
  return pipeline;
}

/* Dispatches `name` with the buffers bound from index 0, over a grid, and waits. */
static void run(mps_library *library, const char *name, mps_buffer *const *buffers, uint32_t buffer_count, uint64_t x, uint64_t y,
                const uint32_t group[3]) {
  mps_encoder encoder;
  mps_encoder_begin(&encoder, stream, "test");
  mps_encoder_set_pipeline(&encoder, pipeline_of(library, name));
  for (uint32_t i = 0; i < buffer_count; i++) mps_encoder_set_buffer(&encoder, i, buffers[i], 0, MPS_ACCESS_READ_WRITE);
  CHECK_OK(mps_encoder_dispatch(&encoder, (uint64_t[]){x, y, 1}, group));
  CHECK_OK(mps_stream_synchronize(stream));
}

static void adds_in_place_and_with_bytes(void) {
  mps_library *library = compile("#include <metal_stdlib>\nusing namespace metal;\n"
                                 "kernel void scaled(device float *out, device const float *a, constant float &k,\n"
                                 "                   uint i [[thread_position_in_grid]]) { out[i] = a[i] * k + 0.5; }\n");
  if (!library) return;
  CHECK_INT(mps_library_function_count(library), 1);
  CHECK_STRING(mps_library_function_name(library, 0), "scaled");
  CHECK(mps_library_function_name(library, 1) == NULL);
  mps_buffer *buffer = make_buffer(COUNT * sizeof(float));
  float *values = mps_buffer_contents(buffer);
  for (int i = 0; i < COUNT; i++) values[i] = (float)i;
  mps_encoder encoder;
  mps_encoder_begin(&encoder, stream, "scaled");
  mps_encoder_set_pipeline(&encoder, pipeline_of(library, "scaled"));
  mps_encoder_set_buffer(&encoder, 0, buffer, 0, MPS_ACCESS_READ_WRITE);
  mps_encoder_set_buffer(&encoder, 1, buffer, 0, MPS_ACCESS_READ);
  float k = 2.0f;
  mps_encoder_set_bytes(&encoder, 2, &k, sizeof k);
  CHECK_OK(mps_encoder_dispatch(&encoder, (uint64_t[]){COUNT, 1, 1}, NULL));
  k = 10.0f; /* bytes were copied; set again for a second dispatch */
  mps_encoder_set_bytes(&encoder, 2, &k, sizeof k);
  CHECK_OK(mps_encoder_dispatch(&encoder, (uint64_t[]){COUNT, 1, 1}, NULL));
  CHECK_OK(mps_encoder_dispatch(&encoder, (uint64_t[]){0, 1, 1}, NULL));
  CHECK_OK(mps_stream_synchronize(stream));
  int wrong = 0;
  for (int i = 0; i < COUNT; i++) wrong += values[i] != ((float)i * 2.0f + 0.5f) * 10.0f + 0.5f;
  CHECK_INT(wrong, 0);
  mps_buffer_release(buffer);
  mps_library_release(library);
}

/* Steps that run a library's code may outlive its last reference. */
static void releases_while_queued(void) {
  mps_library *library = compile("kernel void count(device metal::atomic_uint *n, uint i [[thread_position_in_grid]]) {\n"
                                 "  metal::atomic_fetch_add_explicit(n, 1u, metal::memory_order_relaxed);\n}\n");
  if (!library) return;
  mps_buffer *buffer = make_buffer(4);
  mps_encoder encoder;
  mps_encoder_begin(&encoder, stream, "count");
  mps_encoder_set_pipeline(&encoder, pipeline_of(library, "count"));
  mps_encoder_set_buffer(&encoder, 0, buffer, 0, MPS_ACCESS_READ_WRITE);
  for (int i = 0; i < 20; i++) CHECK_OK(mps_encoder_dispatch(&encoder, (uint64_t[]){COUNT, 1, 1}, NULL));
  mps_library_release(library);
  CHECK_OK(mps_stream_synchronize(stream));
  CHECK_INT(*(uint32_t *)mps_buffer_contents(buffer), 20 * COUNT);
  mps_buffer_release(buffer);
}

static const char positions_source[] =
  "kernel void positions(device uint *out, uint2 p [[thread_position_in_grid]], uint2 n [[threads_per_grid]],\n"
  "                      uint2 l [[thread_position_in_threadgroup]], uint2 g [[threadgroup_position_in_grid]],\n"
  "                      uint2 s [[threads_per_threadgroup]], ushort i [[thread_index_in_threadgroup]],\n"
  "                      uint lane [[thread_index_in_simdgroup]], uint sg [[simdgroup_index_in_threadgroup]],\n"
  "                      uint2 m [[threadgroups_per_grid]]) {\n"
  "  device uint *o = out + (p.y * n.x + p.x) * 13;\n"
  "  o[0] = p.x; o[1] = p.y; o[2] = l.x; o[3] = l.y; o[4] = g.x; o[5] = g.y; o[6] = s.x; o[7] = s.y; o[8] = i; o[9] = lane; o[10] = sg;\n"
  "  o[11] = m.x; o[12] = m.y;\n"
  "}\n";

/* Groups of 8 x 6 over 21 x 13 threads: the last ones are cut. */
static void tells_positions(void) {
  mps_library *library = compile(positions_source);
  if (!library) return;
  const uint32_t nx = 21, ny = 13, gx = 8, gy = 6;
  mps_buffer *buffer = make_buffer(nx * ny * 13 * 4);
  run(library, "positions", &buffer, 1, nx, ny, (uint32_t[]){gx, gy, 1});
  const uint32_t *o = mps_buffer_contents(buffer);
  int wrong = 0;
  for (uint32_t y = 0; y < ny; y++)
    for (uint32_t x = 0; x < nx; x++, o += 13) {
      uint32_t bx = x / gx, by = y / gy, sx = nx - bx * gx < gx ? nx - bx * gx : gx, sy = ny - by * gy < gy ? ny - by * gy : gy;
      uint32_t index = (y - by * gy) * sx + (x - bx * gx);
      const uint32_t expected[13] = {x, y, x - bx * gx, y - by * gy, bx, by, sx, sy, index, index % 32, index / 32, 3, 3};
      wrong += memcmp(o, expected, sizeof expected) != 0;
    }
  CHECK_INT(wrong, 0);
  mps_buffer_release(buffer);
  mps_library_release(library);
}

/* An array that each thread has to itself, but that the compiler keeps in memory: vectorising over threads would share it. */
static void keeps_private_arrays_apart(void) {
  mps_library *library = compile("kernel void rotate(device float *out, device const float *in, uint i [[thread_position_in_grid]]) {\n"
                                 "  float t[8];\n  for (int j = 0; j < 8; j++) t[j] = in[i] * j;\n  int k = int(in[i]);\n"
                                 "  t[k & 7] += 1.0;\n  out[i] = t[(k + 1) & 7] + t[k & 7];\n}\n"
                                 "kernel void plain(device float *out, device const float *in, uint i [[thread_position_in_grid]]) {\n"
                                 "  out[i] = in[i] + 1.0;\n}\n");
  if (!library) return;
  mps_buffer *buffers[2] = {make_buffer(COUNT * 4), make_buffer(COUNT * 4)};
  float *in = mps_buffer_contents(buffers[1]);
  const float *out = mps_buffer_contents(buffers[0]);
  for (int i = 0; i < COUNT; i++) in[i] = (float)(i * 7 % 101);
  run(library, "rotate", buffers, 2, COUNT, 1, NULL);
  int wrong = 0;
  for (int i = 0; i < COUNT; i++) {
    int k = (int)in[i], first = (k + 1) & 7, second = k & 7;
    wrong += out[i] != in[i] * (float)first + (in[i] * (float)second + 1.0f);
  }
  CHECK_INT(wrong, 0);
  run(library, "plain", buffers, 2, COUNT, 1, NULL);
  for (int i = 0; i < COUNT; i++) wrong += out[i] != in[i] + 1.0f;
  CHECK_INT(wrong, 0);
  mps_buffer_release(buffers[0]);
  mps_buffer_release(buffers[1]);
  mps_library_release(library);
}

static void check_message(const char *source, const char *expected) {
  mps_library *library = NULL;
  CHECK_STATUS(mps_library_compile(device, source, NULL, &library), MPS_STATUS_COMPILE_ERROR);
  CHECK(library == NULL);
  if (strncmp(mps_error_message(), expected, strlen(expected)) != 0) {
    test_failures++;
    fprintf(stderr, "message is:\n%s\nexpected to begin with: %s\n", mps_error_message(), expected);
  }
  CHECK(strstr(mps_error_message(), "generated") == NULL);
}

static void names_line_and_column(void) {
  check_message("kernel void f(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {\n  out[i] =   y;\n}\n",
                "program_source:2:14: error: use of undeclared identifier 'y'");
  /* behind attributes and literals that were rewritten, on the same line */
  check_message("kernel void f(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) { out[i] = 1.0 + 2.0h + y; }\n",
                "program_source:1:108: error: use of undeclared identifier 'y'");
  /* behind a macro, and in one */
  check_message("#define TWICE(x) ((x) + (x))\nkernel void f(device float *out) { out[0] = TWICE(1.0) + y; }\n",
                "program_source:2:58: error: use of undeclared identifier 'y'");
  check_message("#define Z y + 1\nkernel void f(device float *out) { out[0] = 2.0 * Z; }\n",
                "program_source:2:51: error: use of undeclared identifier 'y'");
  check_message("kernel void f(device foo *out, uint i [[thread_position_in_grid]]) { out[i] = 1; }\n",
                "program_source:1:22: error: unknown type name 'foo'");
  CHECK(strstr(mps_error_message(), "mps_") == NULL && strchr(mps_error_message(), '\n') == NULL);
  check_message("template <typename T> kernel void f(device T *out) { out[0] = 1; }\n"
                "template [[host_name(\"a\")]] kernel void f<float>(device int *);\n", "program_source:2:");
  check_message("#include <nothing>\n", "program_source:1:10: fatal error: 'nothing' file not found");
  check_message("kernel void f(device float *out) { out[0] = 1.0;\n", "program_source:1:34: error: '{' is never closed");
  check_message("kernel void f(device float *out, float x) { out[0] = x; }\n",
                "program_source:1:34: error: parameter 2 of kernel 'f' has no attribute");
  check_message("float g(float);\nkernel void f(device float *out) { out[0] = g(1.0); }\n", "");
  CHECK(strstr(mps_error_message(), "g(float)") != NULL || strstr(mps_error_message(), "_Z1gf") != NULL);
  mps_library *library = NULL;
  CHECK_STATUS(mps_library_compile(device, "\n\n  foo", "my \"shader\"", &library), MPS_STATUS_COMPILE_ERROR);
  CHECK(strncmp(mps_error_message(), "my _shader_:3:3: error:", 23) == 0);
}

static void refuses_wrong_dispatches(void) {
  mps_library *library = compile("kernel void f(device float *out, device float *in [[buffer(3)]], uint i [[thread_position_in_grid]]) { out[i] = in[i]; }\n");
  if (!library) return;
  mps_pipeline *none = NULL, *pipeline = pipeline_of(library, "f");
  CHECK_STATUS(mps_library_pipeline(library, "g", &none), MPS_STATUS_NOT_FOUND);
  CHECK_STRING(mps_error_message(), "Failed to create function state object for: g");
  CHECK_INT(mps_pipeline_get_info(pipeline)->buffer_count, 4);
  CHECK_INT(mps_pipeline_get_info(pipeline)->max_threads_per_threadgroup, 1024);
  CHECK(pipeline_of(library, "f") == pipeline);
  mps_buffer *buffer = make_buffer(64);
  mps_encoder encoder;
  const uint64_t threads[3] = {16, 1, 1};
  mps_encoder_begin(&encoder, stream, "f");
  CHECK_STATUS(mps_encoder_dispatch(&encoder, threads, NULL), MPS_STATUS_INVALID_ARGUMENT);
  mps_encoder_set_pipeline(&encoder, pipeline);
  mps_encoder_set_buffer(&encoder, 0, buffer, 0, MPS_ACCESS_WRITE);
  CHECK_STATUS(mps_encoder_dispatch(&encoder, threads, NULL), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_STRING(mps_error_message(), "kernel 'f' takes an argument at buffer index 3, and none is set");
  mps_encoder_set_buffer(&encoder, 3, buffer, 0, MPS_ACCESS_READ);
  CHECK_STATUS(mps_encoder_dispatch(&encoder, threads, (uint32_t[]){512, 4, 1}), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_STRING(mps_error_message(), "Threadgroup size exceeds 1024 limit");
  CHECK_STATUS(mps_encoder_dispatch(&encoder, threads, (uint32_t[]){1, 0, 1}), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(mps_encoder_dispatch(&encoder, (uint64_t[]){UINT64_C(1) << 32, 1, 1}, NULL), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_OK(mps_encoder_dispatch(&encoder, threads, NULL));
  mps_encoder_set_buffer(&encoder, 31, buffer, 0, MPS_ACCESS_READ);
  CHECK_STATUS(mps_encoder_dispatch(&encoder, threads, NULL), MPS_STATUS_INVALID_ARGUMENT);
  mps_encoder_begin(&encoder, stream, "f");
  mps_encoder_set_buffer(&encoder, 1, buffer, 1 << 30, MPS_ACCESS_READ);
  CHECK_STATUS(mps_encoder_dispatch(&encoder, threads, NULL), MPS_STATUS_INVALID_ARGUMENT);
  mps_encoder_begin(&encoder, stream, "f");
  char many[4097] = {0};
  mps_encoder_set_bytes(&encoder, 1, many, sizeof many);
  CHECK_STATUS(mps_encoder_dispatch(&encoder, threads, NULL), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_OK(mps_stream_synchronize(stream));
  mps_buffer_release(buffer);
  mps_library_release(library);
}

static void finds_builtin_kernels(void) {
  mps_library *library = NULL, *again = NULL;
  CHECK_OK(mps_library_builtin(device, &library));
  CHECK_OK(mps_library_builtin(device, &again));
  CHECK(library == again);
  if (!library) return;
  mps_buffer *buffer = make_buffer(COUNT * 4);
  mps_encoder encoder;
  mps_encoder_begin(&encoder, stream, "fill");
  mps_encoder_set_pipeline(&encoder, pipeline_of(library, "fill_4"));
  mps_encoder_set_buffer(&encoder, 0, buffer, 0, MPS_ACCESS_WRITE);
  const uint32_t value = 0xdeadbeef;
  mps_encoder_set_bytes(&encoder, 1, &value, sizeof value);
  CHECK_OK(mps_encoder_dispatch(&encoder, (uint64_t[]){COUNT, 1, 1}, NULL));
  CHECK_OK(mps_stream_synchronize(stream));
  const uint32_t *words = mps_buffer_contents(buffer);
  int wrong = 0;
  for (int i = 0; i < COUNT; i++) wrong += words[i] != value;
  CHECK_INT(wrong, 0);
  mps_buffer_release(buffer);
}

/* ---- stages ---- */
static const char meeting_source[] =
  "kernel void total(device float *out, device const float *in, uint i [[thread_position_in_grid]]) { out[i] = metal::simd_sum(in[i]); }\n";
static const char plain_source[] = "kernel void add(device float *out, uint i [[thread_position_in_grid]]) { out[i] += 1; }\n";

static bool stage_has(const char *source, mps_shader_stage stage, const char *wanted) {
  char *text;
  CHECK_OK(mps_shader_emit(device, source, "mine.metal", stage, &text));
  bool found = text && strstr(text, wanted);
  free(text);
  return found;
}

static void shows_stages(void) {
  CHECK(stage_has(plain_source, MPS_SHADER_STAGE_PREPROCESSED, "kernel void add(device float *out"));
  CHECK(stage_has(plain_source, MPS_SHADER_STAGE_READER, "mps_entry_0"));
  CHECK(stage_has(plain_source, MPS_SHADER_STAGE_CHECKED, "mine.metal"));
  CHECK(stage_has(plain_source, MPS_SHADER_STAGE_LLVM, "fadd"));
  CHECK(stage_has(plain_source, MPS_SHADER_STAGE_ASSEMBLY, "mps_host_library"));
  CHECK(stage_has(meeting_source, MPS_SHADER_STAGE_LANES, "void @mps_group_0(ptr"));
  CHECK(stage_has(meeting_source, MPS_SHADER_STAGE_LLVM, "@mps_host_library"));
  CHECK(stage_has(meeting_source, MPS_SHADER_STAGE_ASSEMBLY, "mps_host_library"));
}

static void says_why_there_is_no_stage(void) {
  char *text;
  CHECK_INT(mps_shader_emit(device, plain_source, "mine.metal", MPS_SHADER_STAGE_LANES, &text), MPS_STATUS_NOT_FOUND);
  CHECK_STRING(mps_error_message(), "mine.metal has no kernel whose threads meet, so there are no loops over lanes");
  CHECK(text == NULL);
  CHECK_INT(mps_shader_emit(device, "kernel void f(device float *x) { x[0] = y; }", "mine.metal", MPS_SHADER_STAGE_LLVM, &text),
            MPS_STATUS_COMPILE_ERROR);
  CHECK_STRING(mps_error_message(), "mine.metal:1:41: error: use of undeclared identifier 'y'");
  CHECK_INT(mps_shader_emit(device, plain_source, "mine.metal", (mps_shader_stage)6, &text), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_STRING(mps_error_message(), "there is no stage 6: stages are 0 to 5");
  CHECK_INT(mps_shader_emit(device, NULL, "mine.metal", MPS_SHADER_STAGE_LLVM, &text), MPS_STATUS_INVALID_ARGUMENT);
}

int main(void) {
  open_device();
  RUN(finds_builtin_kernels);
  RUN(adds_in_place_and_with_bytes);
  RUN(releases_while_queued);
  RUN(tells_positions);
  RUN(keeps_private_arrays_apart);
  RUN(names_line_and_column);
  RUN(refuses_wrong_dispatches);
  RUN(shows_stages);
  RUN(says_why_there_is_no_stage);
  mps_device_release(device);
  return test_end();
}
