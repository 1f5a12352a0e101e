/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tensor: dtypes, scalars and descriptors: pure functions, no device.
 */
#include "openmps/tensor.h"

#include <math.h>
#include <string.h>

typedef struct dtype_row {
  const char *name;
  uint8_t bytes;
  bool floating, signed_integer, unsigned_integer, complex;
} dtype_row;

static const dtype_row rows[MPS_DTYPE_COUNT] = {
#define X(id, short_name, metal, bytes, floating, signed_integer, unsigned_integer, complex) \
  {#short_name, bytes, floating, signed_integer, unsigned_integer, complex},
    MPS_DTYPE_LIST(X)
#undef X
};

/* The row of a dtype, or one of zeros. */
static const dtype_row *row_of(mps_dtype dtype) {
  static const dtype_row none = {"?", 0, false, false, false, false};
  return (unsigned)dtype < MPS_DTYPE_COUNT ? &rows[dtype] : &none;
}

size_t mps_dtype_size(mps_dtype dtype) { return row_of(dtype)->bytes; }
const char *mps_dtype_name(mps_dtype dtype) { return row_of(dtype)->name; }
bool mps_dtype_is_floating(mps_dtype dtype) { return row_of(dtype)->floating; }
bool mps_dtype_is_complex(mps_dtype dtype) { return row_of(dtype)->complex; }
bool mps_dtype_is_integral(mps_dtype dtype) { return row_of(dtype)->signed_integer || row_of(dtype)->unsigned_integer; }

/* ---- scalars ---- */
double mps_scalar_to_double(mps_scalar scalar) {
  switch (scalar.kind) {
    case MPS_SCALAR_BOOL:
    case MPS_SCALAR_INT:
      return (double)scalar.integer;
    case MPS_SCALAR_UINT:
      return (double)scalar.unsigned_integer;
    case MPS_SCALAR_FLOAT:
    case MPS_SCALAR_COMPLEX:
      return scalar.real;
  }
  return 0.0;
}

static int64_t saturate(double value) {
  if (isnan(value)) return 0;
  if (value >= 9223372036854775808.0) return INT64_MAX;
  if (value < -9223372036854775808.0) return INT64_MIN;
  return (int64_t)value;
}

int64_t mps_scalar_to_int64(mps_scalar scalar) {
  switch (scalar.kind) {
    case MPS_SCALAR_BOOL:
    case MPS_SCALAR_INT:
      return scalar.integer;
    case MPS_SCALAR_UINT:
      return scalar.unsigned_integer > INT64_MAX ? INT64_MAX : (int64_t)scalar.unsigned_integer;
    case MPS_SCALAR_FLOAT:
    case MPS_SCALAR_COMPLEX:
      return saturate(scalar.real);
  }
  return 0;
}

/* The 64 bits whose low part a narrower integer keeps: wrapping. */
static uint64_t scalar_bits(mps_scalar scalar) {
  switch (scalar.kind) {
    case MPS_SCALAR_BOOL:
    case MPS_SCALAR_INT:
      return (uint64_t)scalar.integer;
    case MPS_SCALAR_UINT:
      return scalar.unsigned_integer;
    case MPS_SCALAR_FLOAT:
    case MPS_SCALAR_COMPLEX:
      if (scalar.real >= 9223372036854775808.0 && scalar.real < 18446744073709551616.0) return (uint64_t)scalar.real;
      return (uint64_t)saturate(scalar.real);
  }
  return 0;
}

static bool scalar_is_true(mps_scalar scalar) {
  switch (scalar.kind) {
    case MPS_SCALAR_BOOL:
    case MPS_SCALAR_INT:
      return scalar.integer != 0;
    case MPS_SCALAR_UINT:
      return scalar.unsigned_integer != 0;
    case MPS_SCALAR_FLOAT:
      return scalar.real != 0.0;
    case MPS_SCALAR_COMPLEX:
      return scalar.real != 0.0 || scalar.imaginary != 0.0;
  }
  return false;
}

/* A float rounded from the scalar itself: an int64 goes to float in one rounding. */
static float scalar_float(mps_scalar scalar) {
  switch (scalar.kind) {
    case MPS_SCALAR_BOOL:
    case MPS_SCALAR_INT:
      return (float)scalar.integer;
    case MPS_SCALAR_UINT:
      return (float)scalar.unsigned_integer;
    case MPS_SCALAR_FLOAT:
    case MPS_SCALAR_COMPLEX:
      return (float)scalar.real;
  }
  return 0.0f;
}

/* Through float, as PyTorch converts: two roundings for doubles between floats are its, too. */
static uint16_t half_bits(float value) {
  uint32_t x;
  memcpy(&x, &value, 4);
  uint32_t sign = x >> 16 & 0x8000u, magnitude = x & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return (uint16_t)(sign | 0x7e00u | (magnitude >> 13 & 0x1ffu)); /* NaN */
  if (magnitude >= 0x47800000u) return (uint16_t)(sign | 0x7c00u);                               /* 65536 and more, infinity */
  if (magnitude < 0x33000001u) return (uint16_t)sign;                                            /* up to half of the smallest */
  uint32_t exponent = magnitude >> 23, mantissa = (magnitude & 0x7fffffu) | 0x800000u;
  uint32_t shift = exponent >= 113 ? 13 : 126 - exponent; /* subnormals lose more bits */
  uint32_t kept = mantissa >> shift, rest = mantissa & ((1u << shift) - 1), middle = 1u << (shift - 1);
  if (rest > middle || (rest == middle && (kept & 1))) kept++;
  uint32_t base = exponent >= 113 ? (exponent - 113) << 10 : 0; /* the implicit bit, or a carry, adds one to the exponent */
  return (uint16_t)(sign | (base + kept));
}

static uint16_t bfloat_bits(float value) {
  uint32_t x;
  memcpy(&x, &value, 4);
  if ((x & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(x >> 16 | 0x40u);
  return (uint16_t)((x + 0x7fffu + (x >> 16 & 1)) >> 16);
}

void mps_scalar_store(mps_scalar scalar, mps_dtype dtype, void *out) {
  const dtype_row *row = row_of(dtype);
  float imaginary = scalar.kind == MPS_SCALAR_COMPLEX ? (float)scalar.imaginary : 0.0f;
  float real = scalar_float(scalar);
  if (dtype == MPS_DTYPE_BOOL) {
    *(uint8_t *)out = scalar_is_true(scalar);
  } else if (row->signed_integer || row->unsigned_integer) {
    uint64_t bits = scalar_bits(scalar);
    if (row->bytes == 1) {
      *(uint8_t *)out = (uint8_t)bits;
    } else if (row->bytes == 2) {
      memcpy(out, &(uint16_t){(uint16_t)bits}, 2);
    } else if (row->bytes == 4) {
      memcpy(out, &(uint32_t){(uint32_t)bits}, 4);
    } else {
      memcpy(out, &bits, 8);
    }
  } else if (dtype == MPS_DTYPE_F32) {
    memcpy(out, &real, 4);
  } else if (dtype == MPS_DTYPE_F16) {
    memcpy(out, &(uint16_t){half_bits(real)}, 2);
  } else if (dtype == MPS_DTYPE_BF16) {
    memcpy(out, &(uint16_t){bfloat_bits(real)}, 2);
  } else if (dtype == MPS_DTYPE_C64) {
    memcpy(out, (float[2]){real, imaginary}, 8);
  } else if (dtype == MPS_DTYPE_C32) {
    memcpy(out, (uint16_t[2]){half_bits(real), half_bits(imaginary)}, 4);
  }
}

/* ---- descriptors ---- */
/* Wraps: an absurd size is refused by mps_tensor_check, not here. */
static int64_t multiply(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }

int64_t mps_tensor_element_count(const mps_tensor *tensor) {
  int64_t count = 1;
  for (uint32_t d = 0; d < tensor->rank; d++) count = multiply(count, tensor->sizes[d]);
  return count;
}

bool mps_tensor_is_contiguous(const mps_tensor *tensor) {
  int64_t expected = 1;
  bool gapless = true;
  for (uint32_t d = tensor->rank; d-- > 0;) {
    if (tensor->sizes[d] == 0) return true;
    if (tensor->sizes[d] != 1 && tensor->strides[d] != expected) gapless = false;
    expected = multiply(expected, tensor->sizes[d]);
  }
  return gapless;
}

void mps_tensor_set_contiguous(mps_tensor *tensor, uint32_t rank, const int64_t *sizes) {
  tensor->rank = (uint8_t)rank;
  int64_t stride = 1;
  for (uint32_t d = rank; d-- > 0;) {
    tensor->sizes[d] = sizes[d];
    tensor->strides[d] = stride;
    stride = multiply(stride, sizes[d] > 1 ? sizes[d] : 1);
  }
}
