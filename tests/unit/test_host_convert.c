/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_host_convert: the shipped conversion kernels against those that host_formulas.h writes in C another way; values where PyTorch's
 * CPU defines none are compared with what it gives on x86 (torch 2.13.0).
 */
#include <stdio.h>
#include <stdlib.h>

#include "host_formulas.h"
#include "test.h"

#define COUNT 203 /* vectors, and a tail */

static mps_driver_device *device;
static mps_driver_library *library;
static mps_host_conversions second;

static const char *const compute_names[] = {"f32", "i32", "i64", "u64", "c64", "bool"};

static void run(mps_host_entry entry, void *out, const void *in, uint64_t begin, uint64_t end) {
  void *buffers[2] = {out, (void *)(uintptr_t)in};
  unsigned long long lengths[2] = {1 << 20, 1 << 20};
  mps_host_dispatch d = {.buffers = buffers, .lengths = lengths, .grid = {COUNT, 1, 1}, .group = {1, 1, 1},
                         .begin = {begin, 0, 0}, .end = {end, 1, 1}};
  entry(&d);
}

static mps_host_entry find(const char *prefix, const char *a, const char *b) {
  char name[64];
  snprintf(name, sizeof name, "%s_%s_%s", prefix, a, b);
  const mps_driver_function *function = device->vtable->find_function(library, name);
  if (!function) fprintf(stderr, "%s is missing\n", name);
  CHECK(function != NULL);
  return function ? (mps_host_entry)function->entry : NULL;
}

/* Values that fit into every integer of `bits`, so that their conversion is defined. */
static void fill(mps_dtype dtype, unsigned bits, bool negative, void *out) {
  static const double values[] = {0, -0.0, 1, 1.5, 0.25, 2, 77.75, 100, 126.9, 127, -1, -1.5, -0.25, -77.75, -127, 1e-5, -1e-7};
  size_t bytes = mps_dtype_size(dtype);
  for (uint64_t i = 0; i < COUNT; i++) {
    double value = values[i * 7 % 17];
    if (!negative) value = fabs(value);
    uint64_t step = i * 2654435761u;
    if (bits > 8 && i % 3 == 1) value *= (double)(step % (bits > 16 ? 1 << 20 : 250));
    wide w = {.integer = truncate_to_int(value), .real = value, .imaginary = i % 4 == 3 ? value / 2 : 0, .is_float = true};
    if (bits == 64 && i % 5 == 4 && !mps_dtype_is_floating(dtype)) w.integer = (int64_t)(step * step * step);
    write_dtype(dtype, w, (char *)out + i * bytes);
  }
}

static bool same_values(mps_dtype dtype, const void *a, const void *b) {
  return !memcmp(a, b, COUNT * mps_dtype_size(dtype));
}

static void compare(const char *what, mps_host_entry actual, mps_host_entry expected, mps_dtype from, mps_dtype to, unsigned bits,
                    bool negative) {
  static _Alignas(64) char in[COUNT * 8], out[COUNT * 8], one[COUNT * 8], want[COUNT * 8];
  if (!actual) return;
  fill(from, bits, negative, in);
  run(expected, want, in, 0, COUNT);
  run(actual, out, in, 0, COUNT);
  for (uint64_t i = 0; i < COUNT; i++) run(actual, one, in, i, i + 1);
  if (!same_values(to, out, want) || !same_values(to, out, one)) {
    fprintf(stderr, "%s from %s to %s: %s\n", what, mps_dtype_name(from), mps_dtype_name(to),
            same_values(to, out, one) ? "wrong values" : "a value depends on its position");
    CHECK(!"conversion");
  }
}

static unsigned bits_of(mps_dtype dtype) { return (unsigned)mps_dtype_size(dtype) * 8; }
static bool is_signed(mps_dtype dtype) {
  return dtype != MPS_DTYPE_U8 && dtype != MPS_DTYPE_U16 && dtype != MPS_DTYPE_U32 && dtype != MPS_DTYPE_U64;
}

static void every_pair(void) {
  for (unsigned d = 0; d < MPS_DTYPE_COUNT; d++) {
    mps_dtype dtype = (mps_dtype)d;
    for (unsigned k = 0; k < MPS_COMPUTE_COUNT; k++) {
      mps_dtype natural = dtype_of((mps_compute)k);
      const char *name = mps_dtype_name(dtype), *compute = compute_names[k];
      unsigned bits = bits_of(dtype) < bits_of(natural) ? bits_of(dtype) : bits_of(natural);
      /* Floats convert to integers as long as these hold them; integers wrap whatever they are. */
      bool floats = mps_dtype_is_floating(dtype) || mps_dtype_is_complex(dtype) || k == MPS_COMPUTE_F32 || k == MPS_COMPUTE_C64;
      bits = !floats ? 64 : bits == 64 ? 32 : bits;
      if (dtype == MPS_DTYPE_F16 || dtype == MPS_DTYPE_C32 || bits == 8) bits = 8;
      bool negative = !floats || (is_signed(dtype) && is_signed(natural));
      compare("load", find("load", name, compute), second.load[d][k], dtype, natural, bits, negative);
      compare("store", find("store", compute, name), second.store[k][d], natural, dtype, bits, negative);
      compare("round", find("round", name, compute), second.round[d][k], natural, natural, bits, negative);
      for (unsigned j = 0; j < MPS_COMPUTE_COUNT; j++) {
        if (dtype_of((mps_compute)j) != dtype) continue;
        compare("cast", find("cast", compute_names[j], compute), second.load[d][k], dtype, natural, bits, negative);
      }
    }
  }
}

static void halves_round_to_nearest_even(void) {
  static float in[COUNT];
  static uint16_t half[COUNT], bfloat[COUNT];
  for (unsigned step = 0; step < 300; step++) {
    for (unsigned i = 0; i < COUNT; i++) {
      uint32_t bits = (step * COUNT + i) * 70531u;
      memcpy(&in[i], &bits, 4);
    }
    run(find("store", "f32", "f16"), half, in, 0, COUNT);
    run(find("store", "f32", "bf16"), bfloat, in, 0, COUNT);
    for (unsigned i = 0; i < COUNT; i++) {
      if (isnan(in[i])) {
        CHECK((half[i] & 0x7fffu) > 0x7c00u && (bfloat[i] & 0x7fffu) > 0x7f80u);
      } else if (half[i] != float_to_half(in[i]) || bfloat[i] != float_to_bfloat(in[i])) {
        fprintf(stderr, "%a: %04x %04x\n", (double)in[i], half[i], bfloat[i]);
        CHECK(!"rounding");
        return;
      }
    }
  }
}

static void floats_out_of_range(void) {
  static const float in[COUNT] = {2147483648.0f, -3e9f, 3e9f, 1e10f, 1e30f, -1e30f, INFINITY, -INFINITY, NAN, 70000.0f, -1.0f};
  static const int64_t i64[] = {2147483648, -3000000000, 3000000000, 10000000000, INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN,
                                70000, -1};
  static const int32_t i32[] = {INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN, 70000, -1};
  static const uint32_t u32[] = {2147483648u, 2147483648u, 3000000000u, 0, 0, 2147483648u, 0, 2147483648u, 2147483648u, 70000, UINT32_MAX};
  static const int16_t i16[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 4464, -1};
  static const uint8_t u8[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 112, 255};
  static _Alignas(64) char out[COUNT * 8];
  struct { const char *name; const void *values; size_t bytes; } cases[] = {
      {"i64", i64, sizeof i64}, {"i32", i32, sizeof i32}, {"u32", u32, sizeof u32}, {"i16", i16, sizeof i16}, {"u8", u8, sizeof u8}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    run(find("store", "f32", cases[i].name), out, in, 0, COUNT);
    CHECK(!memcmp(out, cases[i].values, cases[i].bytes));
  }
}

static void bools_of_any_byte(void) {
  static unsigned char in[COUNT], out[COUNT];
  for (unsigned i = 0; i < COUNT; i++) in[i] = (unsigned char)i;
  run(find("load", "bool", "bool"), out, in, 0, COUNT);
  for (unsigned i = 0; i < COUNT; i++) CHECK_INT(out[i], i != 0);
}

static void signs(void) {
  static const char *const names[] = {"f32", "i32", "i64", "u64", "c64"};
  static _Alignas(64) char in[COUNT * 8], out[COUNT * 8], want[COUNT * 8];
  for (unsigned k = 0; k < 5; k++) {
    mps_dtype dtype = dtype_of((mps_compute)k);
    char name[32];
    snprintf(name, sizeof name, "negate_%s", names[k]);
    const mps_driver_function *function = device->vtable->find_function(library, name);
    CHECK(function != NULL);
    if (!function) continue;
    fill(dtype, 64, true, in);
    run(second.negate[k], want, in, 0, COUNT);
    run((mps_host_entry)function->entry, out, in, 0, COUNT);
    CHECK(same_values(dtype, out, want));
  }
  fill(MPS_DTYPE_C64, 32, true, in);
  run(second.conjugate, want, in, 0, COUNT);
  const mps_driver_function *function = device->vtable->find_function(library, "conjugate_c64");
  CHECK(function != NULL);
  if (!function) return;
  run((mps_host_entry)function->entry, out, in, 0, COUNT);
  CHECK(same_values(MPS_DTYPE_C64, out, want));
}

int main(void) {
  fill_conversions(&second);
  CHECK_OK(mps_driver_host.open(&device));
  if (device->vtable->builtin_library(device, &library) != MPS_STATUS_OK) {
    fprintf(stderr, "%s\n", mps_error_message());
    return 1;
  }
  RUN(every_pair);
  RUN(halves_round_to_nearest_even);
  RUN(floats_out_of_range);
  RUN(bools_of_any_byte);
  RUN(signs);
  device->vtable->close(device);
  return test_end();
}
