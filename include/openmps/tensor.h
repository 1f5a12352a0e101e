/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tensor: dtypes, scalars and the tensor descriptor that operators take.
 *
 * An mps_tensor is a plain value: it owns nothing. The buffer it names is borrowed for the length of a call; whatever an encoded
 * step still needs after the call is kept alive by the stream, not by the caller.
 */
#ifndef OPENMPS_TENSOR_H
#define OPENMPS_TENSOR_H

#include <stdbool.h>

#include "openmps/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MPS_MAX_RANK 16

/* X(NAME, short name, Metal type, bytes an element, is floating, is signed integer, is unsigned integer, is complex) */
#define MPS_DTYPE_LIST(X)                 \
  X(BOOL, bool, bool, 1, 0, 0, 0, 0)      \
  X(U8, u8, uchar, 1, 0, 0, 1, 0)         \
  X(U16, u16, ushort, 2, 0, 0, 1, 0)      \
  X(U32, u32, uint, 4, 0, 0, 1, 0)        \
  X(U64, u64, ulong, 8, 0, 0, 1, 0)       \
  X(I8, i8, char, 1, 0, 1, 0, 0)          \
  X(I16, i16, short, 2, 0, 1, 0, 0)       \
  X(I32, i32, int, 4, 0, 1, 0, 0)         \
  X(I64, i64, long, 8, 0, 1, 0, 0)        \
  X(F16, f16, half, 2, 1, 0, 0, 0)        \
  X(BF16, bf16, bfloat, 2, 1, 0, 0, 0)    \
  X(F32, f32, float, 4, 1, 0, 0, 0)       \
  X(C32, c32, half2, 4, 0, 0, 0, 1)       \
  X(C64, c64, float2, 8, 0, 0, 0, 1)

typedef enum mps_dtype {
#define X(name, short_name, metal, bytes, floating, signed_integer, unsigned_integer, complex) MPS_DTYPE_##name,
  MPS_DTYPE_LIST(X)
#undef X
  MPS_DTYPE_COUNT
} mps_dtype;

/* Bytes of one element; 0 for a value that is no dtype. */
MPS_API size_t mps_dtype_size(mps_dtype dtype);
/* "f32" and the like: the suffix that kernels carry. Never NULL. */
MPS_API const char *mps_dtype_name(mps_dtype dtype);
MPS_API bool mps_dtype_is_floating(mps_dtype dtype); /* f16, bf16, f32 */
MPS_API bool mps_dtype_is_complex(mps_dtype dtype);
MPS_API bool mps_dtype_is_integral(mps_dtype dtype); /* signed and unsigned integers, not bool */

typedef enum mps_scalar_kind {
  MPS_SCALAR_BOOL,    /* integer is 0 or 1 */
  MPS_SCALAR_INT,     /* integer */
  MPS_SCALAR_UINT,    /* unsigned_integer */
  MPS_SCALAR_FLOAT,   /* real */
  MPS_SCALAR_COMPLEX, /* real, imaginary */
} mps_scalar_kind;

typedef struct mps_scalar {
  mps_scalar_kind kind;
  union {
    int64_t integer;
    uint64_t unsigned_integer;
    double real;
  };
  double imaginary;
} mps_scalar;

static inline mps_scalar mps_scalar_bool(bool value) {
  mps_scalar s = {MPS_SCALAR_BOOL, {0}, 0.0};
  s.integer = value ? 1 : 0;
  return s;
}
static inline mps_scalar mps_scalar_int(int64_t value) {
  mps_scalar s = {MPS_SCALAR_INT, {0}, 0.0};
  s.integer = value;
  return s;
}
static inline mps_scalar mps_scalar_uint(uint64_t value) {
  mps_scalar s = {MPS_SCALAR_UINT, {0}, 0.0};
  s.unsigned_integer = value;
  return s;
}
static inline mps_scalar mps_scalar_float(double value) {
  mps_scalar s = {MPS_SCALAR_FLOAT, {0}, 0.0};
  s.real = value;
  return s;
}
static inline mps_scalar mps_scalar_complex(double real, double imaginary) {
  mps_scalar s = {MPS_SCALAR_COMPLEX, {0}, 0.0};
  s.real = real;
  s.imaginary = imaginary;
  return s;
}
/* The value as a double (the real part of a complex one), or as an int64 (floats truncate, out of range saturates). */
MPS_API double mps_scalar_to_double(mps_scalar scalar);
MPS_API int64_t mps_scalar_to_int64(mps_scalar scalar);
/* Writes the value as one element of `dtype` to `out` (mps_dtype_size bytes): integers wrap, floats round to nearest even. */
MPS_API void mps_scalar_store(mps_scalar scalar, mps_dtype dtype, void *out);

typedef struct mps_buffer mps_buffer;

enum {
  MPS_TENSOR_CONJUGATE = 1, /* the values are the complex conjugates of what the buffer holds */
  MPS_TENSOR_NEGATIVE = 2,  /* the values are the negatives of what the buffer holds */
  MPS_TENSOR_WRAPPED_NUMBER = 4, /* a constant that is a Python number: it counts in type promotion by its category only */
};

/* sizes and strides count elements, offset counts bytes. Strides may be 0 (expanded) or negative. rank 0 is one element. */
typedef struct mps_tensor {
  mps_buffer *buffer; /* borrowed; NULL: every element is `constant` (converted to dtype) and strides are ignored */
  uint64_t offset;
  mps_dtype dtype;
  uint8_t rank;
  uint8_t flags; /* MPS_TENSOR_* */
  mps_scalar constant;
  int64_t sizes[MPS_MAX_RANK];
  int64_t strides[MPS_MAX_RANK];
} mps_tensor;

/* Product of the sizes; 1 for rank 0. */
MPS_API int64_t mps_tensor_element_count(const mps_tensor *tensor);
/* Row-major without gaps (dimensions of size 1 do not matter); true for empty tensors. */
MPS_API bool mps_tensor_is_contiguous(const mps_tensor *tensor);
/* Fills rank, sizes and row-major strides of `tensor`; leaves the rest as it is. */
MPS_API void mps_tensor_set_contiguous(mps_tensor *tensor, uint32_t rank, const int64_t *sizes);
/* Checks rank, dtype, and that every element lies inside the buffer; INVALID_ARGUMENT with `name` in the text otherwise. */
MPS_API MPS_WARN_UNUSED mps_status mps_tensor_check(const mps_tensor *tensor, const char *name);

#ifdef __cplusplus
}
#endif
#endif
