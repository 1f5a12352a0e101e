/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_specialization: kernels with values of their function constants, on the host. Needs a clang (OPENMPS_CLANG).
 */
#include "host_device.h"

#define COUNT 100

static const char source[] =
  "#include <metal_stdlib>\nusing namespace metal;\n"
  "constant int n [[function_constant(0)]];\n"
  "constant bool more_there [[function_constant(1)]];\n"
  "constant half4 weights [[function_constant(1 + 1)]];\n"
  "constant float scale [[function_constant(3)]];\n"
  "constant float factor = is_function_constant_defined(scale) ? scale : 10.0;\n"
  "constant int twice = n * 2;\n"
  "kernel void f(device float *out, device const float *more [[buffer(1), function_constant(more_there)]],\n"
  "              constant float &extra [[buffer(2), function_constant(more_there)]], uint i [[thread_position_in_grid]]) {\n"
  "  float sum = twice * factor + weights.y;\n"
  "  if (more_there) sum += more[i] + extra;\n"
  "  out[i] = sum;\n}\n"
  "kernel void other(device float *out, uint i [[thread_position_in_grid]]) { out[i] = factor; }\n";

static const int three = 3;
static const bool yes = true;
static const float half_of_one = 0.5f;
static const uint16_t halves[4] = {0x3c00, 0x4100, 0x4200, 0xfe00}; /* 1, 2.5, 3, NaN */

/* Dispatches f with `more` (NULL: not bound) and 7 and checks each result. */
static void check_results(const mps_pipeline *pipeline, mps_buffer *more, float expected) {
  mps_buffer *out = make_buffer(COUNT * sizeof(float));
  mps_encoder encoder;
  mps_encoder_begin(&encoder, stream, "f");
  mps_encoder_set_pipeline(&encoder, pipeline);
  mps_encoder_set_buffer(&encoder, 0, out, 0, MPS_ACCESS_WRITE);
  if (more) mps_encoder_set_buffer(&encoder, 1, more, 0, MPS_ACCESS_READ);
  if (more) mps_encoder_set_bytes(&encoder, 2, &(float){7}, sizeof(float));
  CHECK_OK(mps_encoder_dispatch(&encoder, (uint64_t[]){COUNT, 1, 1}, NULL));
  CHECK_OK(mps_stream_synchronize(stream));
  const float *results = mps_buffer_contents(out);
  int wrong = 0;
  for (int i = 0; i < COUNT; i++) wrong += results[i] != expected + (more ? (float)i + 7 : 0);
  CHECK_INT(wrong, 0);
  if (wrong) fprintf(stderr, "the first one is %g\n", (double)results[0]);
  mps_buffer_release(out);
}

static mps_library *library;

/* Without values: zero, and not there. */
static void compiles_without_values(void) {
  library = compile(source);
  if (!library) return;
  CHECK_INT(mps_library_function_count(library), 2);
  mps_pipeline *pipeline = NULL;
  CHECK_OK(mps_library_pipeline(library, "f", &pipeline));
  if (pipeline) check_results(pipeline, NULL, 0);
}

static void gives_values(void) {
  mps_pipeline *all = NULL, *again = NULL, *some = NULL;
  mps_buffer *more = make_buffer(COUNT * sizeof(float));
  float *numbers = mps_buffer_contents(more);
  for (int i = 0; i < COUNT; i++) numbers[i] = (float)i;
  const mps_function_constant values[] = {{.index = 0, .type = MPS_CONSTANT_INT, .value = &three},
                                          {.name = "more_there", .type = MPS_CONSTANT_BOOL, .components = 1, .value = &yes},
                                          {.index = 2, .type = MPS_CONSTANT_HALF, .components = 4, .value = halves},
                                          {.index = 3, .type = MPS_CONSTANT_FLOAT, .value = &half_of_one}};
  const mps_function_constant fewer[] = {values[2], values[0], {.index = 1, .type = MPS_CONSTANT_BOOL, .value = &(bool){false}}};
  CHECK_OK(mps_library_specialize(library, "f", values, 4, &all));
  CHECK_OK(mps_library_specialize(library, "f", values, 4, &again));
  CHECK_OK(mps_library_specialize(library, "f", fewer, 3, &some));
  CHECK(all == again && all != some);
  if (!all || !some) return;
  CHECK_STRING(mps_pipeline_get_info(all)->name, "f");
  CHECK_INT(mps_pipeline_get_info(all)->buffer_count, 3);
  CHECK_INT(mps_pipeline_get_info(some)->buffer_count, 1);
  check_results(all, more, 3 * 2 * 0.5f + 2.5f);
  check_results(some, NULL, 3 * 2 * 10 + 2.5f);
  mps_buffer_release(more);
}

static void check_refused(const char *function, const mps_function_constant *values, uint32_t count, mps_status status, const char *text) {
  mps_pipeline *pipeline = NULL;
  CHECK_STATUS(mps_library_specialize(library, function, values, count, &pipeline), status);
  CHECK_STRING(mps_error_message(), text);
  CHECK(pipeline == NULL);
}

static void refuses_wrong_values(void) {
  const mps_function_constant right = {.index = 0, .type = MPS_CONSTANT_INT, .value = &three};
  mps_function_constant wrong = right;
  check_refused("none", &right, 1, MPS_STATUS_NOT_FOUND, "Failed to create function state object for: none");
  wrong.type = MPS_CONSTANT_UINT;
  check_refused("f", &wrong, 1, MPS_STATUS_INVALID_ARGUMENT, "the value of the function constant with index 0 is given as uint, but program_source:3 "
                "declares it as int: give a value of that type");
  wrong = (mps_function_constant){.name = "m", .type = MPS_CONSTANT_INT, .value = &three};
  check_refused("f", &wrong, 1, MPS_STATUS_INVALID_ARGUMENT, "a value is given for the function constant 'm', which the source does not declare; it "
                "declares 'n' (index 0), 'more_there' (index 1), 'weights' (index 2), 'scale' (index 3)");
  check_refused("f", &right, 1, MPS_STATUS_INVALID_ARGUMENT, "kernel 'f' uses the function constant 'more_there' (index 1) at program_source:9, which has "
                "no value: give it one, or have the source ask is_function_constant_defined(more_there)");
  wrong.value = NULL;
  check_refused("f", &wrong, 1, MPS_STATUS_INVALID_ARGUMENT, "the value of the function constant 'm' is NULL");
  wrong = right;
  wrong.components = 5;
  check_refused("f", &wrong, 1, MPS_STATUS_INVALID_ARGUMENT, "the function constant with index 0 has 5 components; vectors have 2 to 4, a scalar 1");
  wrong.components = 1;
  wrong.type = (mps_constant_type)12;
  check_refused("f", &wrong, 1, MPS_STATUS_INVALID_ARGUMENT, "the function constant with index 0 has type 12; types are those of mps_constant_type, 0 to 11");
  mps_library *builtin;
  mps_pipeline *pipeline;
  CHECK_OK(mps_library_builtin(device, &builtin));
  CHECK_STATUS(mps_library_specialize(builtin, "fill_4", NULL, 0, &pipeline), MPS_STATUS_INVALID_ARGUMENT);
}

int main(void) {
  open_device();
  RUN(compiles_without_values);
  if (library) RUN(gives_values);
  if (library) RUN(refuses_wrong_values);
  mps_library_release(library);
  mps_device_release(device);
  return test_end();
}
