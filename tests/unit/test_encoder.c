/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_encoder: what an encoder binds besides buffers and bytes: nothing, buffers behind addresses in memory, the record of kernels'
 * messages; folders that sources include from. Needs a clang (OPENMPS_CLANG).
 */
#include <stdlib.h>

#include "base/options.h"
#include "shader/process.h"
#include "host_device.h"

#define COUNT 100

/* An encoder with the only kernel of `source`. */
static mps_library *begin(mps_encoder *encoder, const char *source) {
  mps_library *library = compile(source);
  mps_pipeline *pipeline = NULL;
  if (!library) exit(1);
  CHECK_OK(mps_library_pipeline(library, mps_library_function_name(library, 0), &pipeline));
  mps_encoder_begin(encoder, stream, "test");
  mps_encoder_set_pipeline(encoder, pipeline);
  return library;
}

static void binds_nothing(void) {
  mps_encoder encoder;
  mps_library *library = begin(&encoder, "kernel void f(device int *out, device const int *in, uint i [[thread_position_in_grid]]) {\n"
                                         "  out[i] = in ? in[i] : -1;\n}\n");
  mps_buffer *out = make_buffer(COUNT * 4);
  mps_encoder_set_buffer(&encoder, 0, out, 0, MPS_ACCESS_READ_WRITE);
  CHECK_STATUS(mps_encoder_dispatch(&encoder, (uint64_t[]){COUNT, 1, 1}, NULL), MPS_STATUS_INVALID_ARGUMENT); /* index 1 is missing */
  mps_encoder_set_nothing(&encoder, 1);
  CHECK_OK(mps_encoder_dispatch(&encoder, (uint64_t[]){COUNT, 1, 1}, NULL));
  CHECK_OK(mps_stream_synchronize(stream));
  CHECK_INT(((const int *)mps_buffer_contents(out))[COUNT - 1], -1);
  mps_encoder_set_nothing(&encoder, MPS_ENCODER_MAX_BUFFERS);
  CHECK_STATUS(mps_encoder_dispatch(&encoder, (uint64_t[]){COUNT, 1, 1}, NULL), MPS_STATUS_INVALID_ARGUMENT);
  mps_buffer_release(out);
  mps_library_release(library);
}

/* The buffers are released while the kernel that finds them by address is still queued. */
static void follows_addresses(void) {
  enum { BUFFERS = 40 };
  mps_encoder encoder;
  mps_library *library = begin(&encoder, "struct table { device int *at[40]; };\n"
                                         "kernel void f(device int *sums, constant table &t, uint i [[thread_position_in_grid]]) {\n"
                                         "  int sum = 0;\n  for (int b = 0; b < 40; b++) sum += t.at[b][i];\n  sums[i] = sum;\n}\n");
  mps_buffer *sums = make_buffer(COUNT * 4);
  uint64_t table[BUFFERS];
  mps_encoder_set_buffer(&encoder, 0, sums, 0, MPS_ACCESS_READ_WRITE);
  mps_buffer *buffers[BUFFERS];
  for (int b = 0; b < BUFFERS; b++) {
    buffers[b] = make_buffer((COUNT + 1) * 4);
    int *values = mps_buffer_contents(buffers[b]);
    for (int i = 0; i <= COUNT; i++) values[i] = b * i;
    table[b] = mps_encoder_use_buffer(&encoder, buffers[b]) + 4; /* from the second element on */
  }
  mps_encoder_set_bytes(&encoder, 1, table, sizeof table);
  CHECK_OK(mps_encoder_dispatch(&encoder, (uint64_t[]){COUNT, 1, 1}, NULL));
  for (int b = 0; b < BUFFERS; b++) mps_buffer_release(buffers[b]);
  CHECK_OK(mps_stream_synchronize(stream));
  int wrong = 0;
  for (int i = 0; i < COUNT; i++) wrong += ((const int *)mps_buffer_contents(sums))[i] != 780 * (i + 1);
  CHECK_INT(wrong, 0);
  mps_buffer_release(sums);
  mps_library_release(library);
}

/* Laid out as torch's c10/metal/error.h has it. */
static const char reporting[] =
  "struct message { char file[128]; char func[128]; char text[250]; uint line; };\n"
  "struct messages { metal::atomic<uint> count; message at[30]; };\n"
  "kernel void f(device messages *m, constant int &which, uint i [[thread_position_in_grid]]) {\n"
  "  if (int(i) < which) return;\n"
  "  uint n = metal::atomic_fetch_add_explicit(&m->count, 1u, metal::memory_order_relaxed);\n"
  "  if (n >= 30) return;\n"
  "  for (int c = 0; c < 250; c++) m->at[n].text[c] = 'a' + c % 26;\n"
  "  m->at[n].line = 7;\n}\n";

static void tells_messages(void) {
  mps_encoder encoder;
  mps_library *library = begin(&encoder, reporting);
  int which = COUNT - 1;
  mps_encoder_set_error_messages(&encoder, 0);
  mps_encoder_set_bytes(&encoder, 1, &which, sizeof which);
  CHECK_OK(mps_encoder_dispatch(&encoder, (uint64_t[]){COUNT, 1, 1}, NULL));
  CHECK_STATUS(mps_stream_synchronize(stream), MPS_STATUS_KERNEL_ERROR);
  CHECK_INT((int)strlen(mps_error_message()), 250); /* not ended by the kernel */
  CHECK(memcmp(mps_error_message(), "abcdef", 6) == 0);
  CHECK_OK(mps_stream_synchronize(stream)); /* told once */
  which = 0;                                /* more than the record holds */
  mps_encoder_set_bytes(&encoder, 1, &which, sizeof which);
  CHECK_OK(mps_encoder_dispatch(&encoder, (uint64_t[]){COUNT, 1, 1}, NULL));
  CHECK_STATUS(mps_stream_synchronize(stream), MPS_STATUS_KERNEL_ERROR);
  which = COUNT;
  mps_encoder_set_bytes(&encoder, 1, &which, sizeof which);
  CHECK_OK(mps_encoder_dispatch(&encoder, (uint64_t[]){COUNT, 1, 1}, NULL));
  CHECK_OK(mps_stream_synchronize(stream));
  mps_library_release(library);
}

static void includes_from_added_folders(void) {
  char folder[256], path[300];
  const char *header = "constant int nine = 9;\n";
  CHECK_OK(mps_temporary_create(folder, sizeof folder));
  snprintf(path, sizeof path, "%s/nine.h", folder);
  CHECK_OK(mps_file_write(path, header, strlen(header)));
  const char *source = "#include <nine.h>\nkernel void f(device int *x) { x[0] = nine; }\n";
  mps_library *library = NULL;
  CHECK_STATUS(mps_library_compile(device, source, NULL, &library), MPS_STATUS_COMPILE_ERROR);
  mps_library_add_include("/absent");
  mps_library_add_include(folder);
  mps_encoder encoder;
  library = begin(&encoder, source);
  mps_library_release(library);
  mps_temporary_remove(folder);
}

static void offers_a_compiler_where_none_is_named(void) {
  mps_library_offer_compiler("/absent/zig"); /* OPENMPS_CLANG names one */
  CHECK(strcmp(mps_option_string(MPS_OPTION_CLANG), "/absent/zig") != 0);
  mps_option_set(MPS_OPTION_CLANG, "");
  mps_library_offer_compiler("/absent/zig");
  CHECK_STRING(mps_option_string(MPS_OPTION_CLANG), "/absent/zig");
  mps_option_set(MPS_OPTION_CLANG, NULL);
}

int main(void) {
  open_device();
  RUN(binds_nothing);
  RUN(follows_addresses);
  RUN(tells_messages);
  RUN(includes_from_added_folders);
  RUN(offers_a_compiler_where_none_is_named);
  mps_device_release(device);
  return test_end();
}
