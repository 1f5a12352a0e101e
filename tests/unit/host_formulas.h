/* SPDX-License-Identifier: BSD-3-Clause
 *
 * host_formulas: block kernels in C for tests of the host driver: all conversions, and a few formulas of every computing type. Each is
 * a function of one element (which the tests' own evaluator calls, too) and an entry that loops over it.
 */
#ifndef OPENMPS_TESTS_HOST_FORMULAS_H
#define OPENMPS_TESTS_HOST_FORMULAS_H

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "driver/host/pointwise.h"

/* ---- one element of any dtype, widened ---- */
typedef struct wide {
  int64_t integer;
  double real, imaginary;
  bool is_float, is_unsigned;
} wide;

static float half_to_float(uint16_t bits) {
  uint32_t sign = (uint32_t)(bits >> 15) << 31, exponent = (bits >> 10) & 31u, fraction = bits & 1023u, out;
  if (exponent == 31) {
    out = sign | 0x7f800000u | fraction << 13;
  } else if (exponent == 0) {
    float value = (float)fraction * 5.9604644775390625e-8f;
    return sign ? -value : value;
  } else {
    out = sign | (exponent + 112) << 23 | fraction << 13;
  }
  float value;
  memcpy(&value, &out, 4);
  return value;
}

/* To nearest even; by value, not by bits: another way than any kernel takes. */
static uint16_t float_to_half(float value) {
  uint16_t sign = signbit(value) ? 0x8000 : 0;
  double a = fabs((double)value);
  if (isnan(value)) return (uint16_t)(sign | 0x7e00u);
  if (a == 0) return sign;
  if (a >= 65520.0) return (uint16_t)(sign | 0x7c00u);
  int exponent;
  (void)frexp(a, &exponent);
  if (exponent < -13) exponent = -13;
  double unit = ldexp(1.0, exponent - 11); /* of the last place */
  double count = nearbyint(a / unit);
  if (exponent == -13 && count < 1024) return (uint16_t)(sign | (unsigned)count);
  return (uint16_t)(sign | ((unsigned)(exponent + 13) * 1024u + (unsigned)count));
}

static float bfloat_to_float(uint16_t bits) {
  uint32_t wide_bits = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &wide_bits, 4);
  return value;
}

static uint16_t float_to_bfloat(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  if (isnan(value)) return 0x7fc0;
  return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

static int64_t truncate_to_int(double value) {
  return value >= -9223372036854775808.0 && value < 9223372036854775808.0 ? (int64_t)value : INT64_MIN;
}

static wide from_int(int64_t v) { return (wide){.integer = v, .real = (double)v}; }
static wide from_real(float re, float im) { return (wide){.integer = truncate_to_int((double)re), .real = (double)re, .imaginary = (double)im, .is_float = true}; }

static wide read_dtype(mps_dtype dtype, const void *in) {
  union { int8_t i8; int16_t i16; int32_t i32; int64_t i64; uint8_t u8; uint16_t u16[2]; uint32_t u32; float f[2]; } v;
  memset(&v, 0, sizeof v);
  memcpy(&v, in, mps_dtype_size(dtype));
  switch (dtype) {
    case MPS_DTYPE_BOOL: return from_int(v.u8 != 0);
    case MPS_DTYPE_U8: return from_int(v.u8);
    case MPS_DTYPE_U16: return from_int(v.u16[0]);
    case MPS_DTYPE_U32: return from_int(v.u32);
    case MPS_DTYPE_U64: return (wide){.integer = v.i64, .real = (double)(uint64_t)v.i64, .is_unsigned = true};
    case MPS_DTYPE_I8: return from_int(v.i8);
    case MPS_DTYPE_I16: return from_int(v.i16);
    case MPS_DTYPE_I32: return from_int(v.i32);
    case MPS_DTYPE_I64: return from_int(v.i64);
    case MPS_DTYPE_F16: return from_real(half_to_float(v.u16[0]), 0);
    case MPS_DTYPE_BF16: return from_real(bfloat_to_float(v.u16[0]), 0);
    case MPS_DTYPE_F32: return from_real(v.f[0], 0);
    case MPS_DTYPE_C32: return from_real(half_to_float(v.u16[0]), half_to_float(v.u16[1]));
    default: return from_real(v.f[0], v.f[1]);
  }
}

static bool is_true(wide w) { return w.is_float ? w.real != 0 || w.imaginary != 0 : w.integer != 0; }

static float as_float(wide w) {
  if (w.is_float) return (float)w.real;
  return w.is_unsigned ? (float)(uint64_t)w.integer : (float)w.integer;
}

static void write_dtype(mps_dtype dtype, wide w, void *out) {
  union { uint8_t u8; uint16_t u16[2]; uint64_t u64; float f[2]; } v;
  memset(&v, 0, sizeof v);
  switch (dtype) {
    case MPS_DTYPE_BOOL: v.u8 = is_true(w); break;
    case MPS_DTYPE_F16: v.u16[0] = float_to_half(as_float(w)); break;
    case MPS_DTYPE_BF16: v.u16[0] = float_to_bfloat(as_float(w)); break;
    case MPS_DTYPE_F32: v.f[0] = as_float(w); break;
    case MPS_DTYPE_C32: v.u16[0] = float_to_half(as_float(w)); v.u16[1] = float_to_half((float)w.imaginary); break;
    case MPS_DTYPE_C64: v.f[0] = as_float(w); v.f[1] = (float)w.imaginary; break;
    default: v.u64 = (uint64_t)w.integer; break; /* little endian: the low bytes */
  }
  memcpy(out, &v, mps_dtype_size(dtype));
}

/* The dtype that holds a value of a computing type. */
static mps_dtype dtype_of(mps_compute compute) {
  static const mps_dtype dtypes[] = {MPS_DTYPE_F32, MPS_DTYPE_I32, MPS_DTYPE_I64, MPS_DTYPE_U64, MPS_DTYPE_C64, MPS_DTYPE_BOOL};
  return dtypes[compute];
}

static void convert_element(mps_dtype to, mps_dtype from, void *out, const void *in) { write_dtype(to, read_dtype(from, in), out); }

/* ---- conversions as entries ---- */
static void convert_block(const mps_host_dispatch *d, mps_dtype to, mps_dtype from) {
  size_t out_bytes = mps_dtype_size(to), in_bytes = mps_dtype_size(from);
  for (uint64_t i = d->begin[0]; i < d->end[0]; i++) {
    convert_element(to, from, (char *)d->buffers[0] + i * out_bytes, (const char *)d->buffers[1] + i * in_bytes);
  }
}
static void round_block(const mps_host_dispatch *d, mps_dtype dtype, mps_compute compute) {
  size_t bytes = mps_dtype_size(dtype_of(compute));
  for (uint64_t i = d->begin[0]; i < d->end[0]; i++) {
    char narrow[8];
    convert_element(dtype, dtype_of(compute), narrow, (const char *)d->buffers[1] + i * bytes);
    convert_element(dtype_of(compute), dtype, (char *)d->buffers[0] + i * bytes, narrow);
  }
}

#define CONVERSIONS(d, c)                                                                                                          \
  static void load_##d##_##c(const mps_host_dispatch *b) { convert_block(b, dtype_of(MPS_COMPUTE_##c), MPS_DTYPE_##d); }           \
  static void store_##c##_##d(const mps_host_dispatch *b) { convert_block(b, MPS_DTYPE_##d, dtype_of(MPS_COMPUTE_##c)); }          \
  static void round_##d##_##c(const mps_host_dispatch *b) { round_block(b, MPS_DTYPE_##d, MPS_COMPUTE_##c); }
#define ALL_COMPUTES(X, d) X(d, F32) X(d, I32) X(d, I64) X(d, U64) X(d, C64) X(d, BOOL)
#define ALL_DTYPES(X)                                                                                                              \
  ALL_COMPUTES(X, BOOL) ALL_COMPUTES(X, U8) ALL_COMPUTES(X, U16) ALL_COMPUTES(X, U32) ALL_COMPUTES(X, U64) ALL_COMPUTES(X, I8)     \
  ALL_COMPUTES(X, I16) ALL_COMPUTES(X, I32) ALL_COMPUTES(X, I64) ALL_COMPUTES(X, F16) ALL_COMPUTES(X, BF16) ALL_COMPUTES(X, F32)   \
  ALL_COMPUTES(X, C32) ALL_COMPUTES(X, C64)
ALL_DTYPES(CONVERSIONS)

/* ---- formulas ---- */
static void get(void *value, const void *from, size_t bytes) { memcpy(value, from, bytes); }
#define ARITHMETIC(suffix, type, wrap)                                                                                            \
  static void add_##suffix(void *out, const void *const *s, const void *p) {                                                      \
    type a, b, r;                                                                                                                 \
    get(&a, s[0], sizeof a), get(&b, s[1], sizeof b), (void)p;                                                                    \
    r = (type)((wrap)a + (wrap)b);                                                                                                \
    get(out, &r, sizeof r);                                                                                                       \
  }                                                                                                                               \
  static void multiply_add_##suffix(void *out, const void *const *s, const void *p) {                                             \
    type a, b, c, r;                                                                                                              \
    get(&a, s[0], sizeof a), get(&b, s[1], sizeof b), get(&c, s[2], sizeof c), (void)p;                                           \
    r = (type)((wrap)a * (wrap)b + (wrap)c);                                                                                      \
    get(out, &r, sizeof r);                                                                                                       \
  }                                                                                                                               \
  static void scale_##suffix(void *out, const void *const *s, const void *p) {                                                    \
    type a, k, r;                                                                                                                 \
    get(&a, s[0], sizeof a), get(&k, p, sizeof k);                                                                                \
    r = (type)((wrap)a * (wrap)k);                                                                                                \
    get(out, &r, sizeof r);                                                                                                       \
  }                                                                                                                               \
  static void less_##suffix(void *out, const void *const *s, const void *p) {                                                     \
    type a, b;                                                                                                                    \
    get(&a, s[0], sizeof a), get(&b, s[1], sizeof b), (void)p;                                                                    \
    *(bool *)out = a < b;                                                                                                         \
  }                                                                                                                               \
  static void where_##suffix(void *out, const void *const *s, const void *p) {                                                    \
    (void)p;                                                                                                                      \
    get(out, *(const bool *)s[0] ? s[1] : s[2], sizeof(type));                                                                    \
  }                                                                                                                               \
  static void negate_##suffix(void *out, const void *const *s, const void *p) {                                                   \
    type a, r;                                                                                                                    \
    get(&a, s[0], sizeof a), (void)p;                                                                                             \
    r = (type)(-(wrap)a);                                                                                                         \
    get(out, &r, sizeof r);                                                                                                       \
  }
ARITHMETIC(f32, float, float)
ARITHMETIC(i32, int32_t, uint32_t)
ARITHMETIC(i64, int64_t, uint64_t)
ARITHMETIC(u64, uint64_t, uint64_t)

static void multiply_c64(void *out, const void *const *s, const void *p) {
  float a[2], b[2], r[2];
  get(a, s[0], 8), get(b, s[1], 8), (void)p;
  r[0] = a[0] * b[0] - a[1] * b[1];
  r[1] = a[0] * b[1] + a[1] * b[0];
  get(out, r, 8);
}
static void conjugate_c64(void *out, const void *const *s, const void *p) {
  float a[2];
  get(a, s[0], 8), (void)p;
  a[1] = -a[1];
  get(out, a, 8);
}
static void negate_c64(void *out, const void *const *s, const void *p) {
  float a[2];
  get(a, s[0], 8), (void)p;
  a[0] = -a[0], a[1] = -a[1];
  get(out, a, 8);
}
static void and_bool(void *out, const void *const *s, const void *p) {
  (void)p;
  *(bool *)out = *(const bool *)s[0] && *(const bool *)s[1];
}
static void not_bool(void *out, const void *const *s, const void *p) {
  (void)p;
  *(bool *)out = !*(const bool *)s[0];
}
static void cast_f32_i32(void *out, const void *const *s, const void *p) {
  (void)p;
  convert_element(MPS_DTYPE_I32, MPS_DTYPE_F32, out, s[0]);
}
static void cast_i64_f32(void *out, const void *const *s, const void *p) {
  (void)p;
  convert_element(MPS_DTYPE_F32, MPS_DTYPE_I64, out, s[0]);
}
static void cast_c64_f32(void *out, const void *const *s, const void *p) {
  (void)p;
  convert_element(MPS_DTYPE_F32, MPS_DTYPE_C64, out, s[0]);
}

typedef void (*element_function)(void *out, const void *const *sources, const void *parameters);

static void run_elements(const mps_host_dispatch *d, element_function f, mps_compute result, unsigned count, const mps_compute *computes) {
  for (uint64_t i = d->begin[0]; i < d->end[0]; i++) {
    const void *sources[4] = {0};
    for (unsigned k = 0; k < count; k++) sources[k] = (const char *)d->buffers[k + 1] + i * mps_dtype_size(dtype_of(computes[k]));
    f((char *)d->buffers[0] + i * mps_dtype_size(dtype_of(result)), sources, d->buffers[5]);
  }
}

/* X(name, result, source count, source computing types) */
#define FORMULA_LIST(X)                                                                                                    \
  X(add_f32, F32, 2, F32, F32, F32) X(multiply_add_f32, F32, 3, F32, F32, F32) X(scale_f32, F32, 1, F32, F32, F32)         \
  X(less_f32, BOOL, 2, F32, F32, F32) X(where_f32, F32, 3, BOOL, F32, F32) X(negate_f32, F32, 1, F32, F32, F32)            \
  X(add_i32, I32, 2, I32, I32, I32) X(multiply_add_i32, I32, 3, I32, I32, I32) X(scale_i32, I32, 1, I32, I32, I32)         \
  X(less_i32, BOOL, 2, I32, I32, I32) X(where_i32, I32, 3, BOOL, I32, I32) X(negate_i32, I32, 1, I32, I32, I32)            \
  X(add_i64, I64, 2, I64, I64, I64) X(multiply_add_i64, I64, 3, I64, I64, I64) X(scale_i64, I64, 1, I64, I64, I64)         \
  X(less_i64, BOOL, 2, I64, I64, I64) X(where_i64, I64, 3, BOOL, I64, I64) X(negate_i64, I64, 1, I64, I64, I64)            \
  X(add_u64, U64, 2, U64, U64, U64) X(multiply_add_u64, U64, 3, U64, U64, U64) X(scale_u64, U64, 1, U64, U64, U64)         \
  X(less_u64, BOOL, 2, U64, U64, U64) X(where_u64, U64, 3, BOOL, U64, U64) X(negate_u64, U64, 1, U64, U64, U64)            \
  X(multiply_c64, C64, 2, C64, C64, C64) X(conjugate_c64, C64, 1, C64, C64, C64) X(negate_c64, C64, 1, C64, C64, C64)      \
  X(and_bool, BOOL, 2, BOOL, BOOL, BOOL) X(not_bool, BOOL, 1, BOOL, BOOL, BOOL)                                            \
  X(cast_f32_i32, I32, 1, F32, F32, F32) X(cast_i64_f32, F32, 1, I64, I64, I64) X(cast_c64_f32, F32, 1, C64, C64, C64)

typedef struct formula {
  const char *name;
  element_function element;
  mps_driver_function function;
  mps_compute result;
  unsigned source_count;
  mps_compute sources[3];
} formula;

#define X(id, result, count, a, b, c)                                                          \
  static const mps_compute computes_##id[3] = {MPS_COMPUTE_##a, MPS_COMPUTE_##b, MPS_COMPUTE_##c}; \
  static void entry_##id(const mps_host_dispatch *d) { run_elements(d, id, MPS_COMPUTE_##result, count, computes_##id); }
FORMULA_LIST(X)
#undef X

static const formula formulas[] = {
#define X(id, result, count, a, b, c)                                                                                       \
  {#id, id, {.name = #id, .entry = (void (*)(const void *))entry_##id}, MPS_COMPUTE_##result, count,                  \
   {MPS_COMPUTE_##a, MPS_COMPUTE_##b, MPS_COMPUTE_##c}},
    FORMULA_LIST(X)
#undef X
};
#define FORMULA_COUNT (sizeof formulas / sizeof formulas[0])

static inline const mps_driver_function *formula_function(const char *name) {
  for (size_t i = 0; i < FORMULA_COUNT; i++) {
    if (!strcmp(formulas[i].name, name)) return &formulas[i].function;
  }
  return NULL;
}

static inline void fill_conversions(mps_host_conversions *c) {
  memset(c, 0, sizeof *c);
#define X(d, k)                                                \
  c->load[MPS_DTYPE_##d][MPS_COMPUTE_##k] = load_##d##_##k;    \
  c->store[MPS_COMPUTE_##k][MPS_DTYPE_##d] = store_##k##_##d;  \
  c->round[MPS_DTYPE_##d][MPS_COMPUTE_##k] = round_##d##_##k;
  ALL_DTYPES(X)
#undef X
  c->negate[MPS_COMPUTE_F32] = entry_negate_f32;
  c->negate[MPS_COMPUTE_I32] = entry_negate_i32;
  c->negate[MPS_COMPUTE_I64] = entry_negate_i64;
  c->negate[MPS_COMPUTE_U64] = entry_negate_u64;
  c->negate[MPS_COMPUTE_C64] = entry_negate_c64;
  c->conjugate = entry_conjugate_c64;
}

#endif
