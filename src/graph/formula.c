/* SPDX-License-Identifier: BSD-3-Clause
 *
 * formula: promotion and computing types. The promotion table follows torch.promote_types; the categories follow torch.result_type.
 */
#include "graph/formula.h"

#include <string.h>

enum { KIND_BOOL, KIND_UNSIGNED, KIND_SIGNED, KIND_FLOAT, KIND_COMPLEX };

typedef struct dtype_facts {
  uint8_t kind;
  uint8_t bits;    /* of the value's magnitude: what must fit for a conversion to be exact */
  uint8_t compute; /* mps_compute */
  const char *title;
} dtype_facts;

static const dtype_facts facts[MPS_DTYPE_COUNT] = {
  [MPS_DTYPE_BOOL] = {KIND_BOOL, 1, MPS_COMPUTE_BOOL, "Bool"},
  [MPS_DTYPE_U8] = {KIND_UNSIGNED, 8, MPS_COMPUTE_I32, "Byte"},
  [MPS_DTYPE_U16] = {KIND_UNSIGNED, 16, MPS_COMPUTE_I32, "UInt16"},
  [MPS_DTYPE_U32] = {KIND_UNSIGNED, 32, MPS_COMPUTE_I64, "UInt32"},
  [MPS_DTYPE_U64] = {KIND_UNSIGNED, 64, MPS_COMPUTE_U64, "UInt64"},
  [MPS_DTYPE_I8] = {KIND_SIGNED, 7, MPS_COMPUTE_I32, "Char"},
  [MPS_DTYPE_I16] = {KIND_SIGNED, 15, MPS_COMPUTE_I32, "Short"},
  [MPS_DTYPE_I32] = {KIND_SIGNED, 31, MPS_COMPUTE_I32, "Int"},
  [MPS_DTYPE_I64] = {KIND_SIGNED, 63, MPS_COMPUTE_I64, "Long"},
  [MPS_DTYPE_F16] = {KIND_FLOAT, 11, MPS_COMPUTE_F32, "Half"},
  [MPS_DTYPE_BF16] = {KIND_FLOAT, 8, MPS_COMPUTE_F32, "BFloat16"},
  [MPS_DTYPE_F32] = {KIND_FLOAT, 24, MPS_COMPUTE_F32, "Float"},
  [MPS_DTYPE_C32] = {KIND_COMPLEX, 11, MPS_COMPUTE_C64, "ComplexHalf"},
  [MPS_DTYPE_C64] = {KIND_COMPLEX, 24, MPS_COMPUTE_C64, "ComplexFloat"},
};

mps_compute mps_dtype_compute(mps_dtype dtype) {
  return (mps_compute)facts[dtype].compute;
}

const char *mps_dtype_title(mps_dtype dtype) {
  return facts[dtype].title;
}

mps_dtype mps_compute_dtype(mps_compute compute) {
  static const uint8_t dtypes[MPS_COMPUTE_COUNT] = {
    [MPS_COMPUTE_F32] = MPS_DTYPE_F32, [MPS_COMPUTE_I32] = MPS_DTYPE_I32, [MPS_COMPUTE_I64] = MPS_DTYPE_I64,
    [MPS_COMPUTE_U64] = MPS_DTYPE_U64, [MPS_COMPUTE_C64] = MPS_DTYPE_C64, [MPS_COMPUTE_BOOL] = MPS_DTYPE_BOOL,
  };
  return (mps_dtype)dtypes[compute];
}

const char *mps_compute_name(mps_compute compute) {
  static const char *const names[MPS_COMPUTE_COUNT] = {
#define X(name, suffix, metal, bytes) #suffix,
    MPS_COMPUTE_LIST(X)
#undef X
  };
  return names[compute];
}

bool mps_dtype_contains(mps_dtype to, mps_dtype from) {
  if (to == from || facts[from].kind == KIND_BOOL)
    return true;
  const dtype_facts *t = &facts[to], *f = &facts[from];
  switch (f->kind) {
  case KIND_UNSIGNED:
    return t->kind != KIND_BOOL && f->bits <= t->bits;
  case KIND_SIGNED:
    return t->kind >= KIND_SIGNED && f->bits <= t->bits;
  case KIND_FLOAT:
    /* bf16 has fewer digits than f16 but a wider exponent. */
    return t->kind >= KIND_FLOAT && (t->bits == 24 || (from == MPS_DTYPE_F16 && to == MPS_DTYPE_C32));
  default:
    return t->kind == KIND_COMPLEX && f->bits <= t->bits;
  }
}

static mps_dtype complex_of(mps_dtype dtype) {
  return dtype == MPS_DTYPE_F16 || dtype == MPS_DTYPE_C32 ? MPS_DTYPE_C32 : MPS_DTYPE_C64;
}

static mps_dtype promote_integers(mps_dtype a, mps_dtype b) {
  const dtype_facts *fa = &facts[a], *fb = &facts[b];
  if (fa->kind == fb->kind)
    return fa->bits >= fb->bits ? a : b;
  const bool a_signed = fa->kind == KIND_SIGNED;
  const mps_dtype with_sign = a_signed ? a : b, without = a_signed ? b : a;
  if (facts[with_sign].bits >= facts[without].bits)
    return with_sign;
  if (without == MPS_DTYPE_U8)
    return MPS_DTYPE_I16;
  return without;
}

mps_dtype mps_dtype_promote(mps_dtype a, mps_dtype b) {
  if (a == b)
    return a;
  if (facts[a].kind > facts[b].kind) {
    const mps_dtype swapped = a;
    a = b;
    b = swapped;
  }
  const dtype_facts *low = &facts[a], *high = &facts[b];
  if (low->kind == KIND_BOOL)
    return b;
  if (high->kind == KIND_COMPLEX) {
    if (low->kind == KIND_COMPLEX)
      return MPS_DTYPE_C64;
    return low->kind == KIND_FLOAT && complex_of(a) == MPS_DTYPE_C64 ? MPS_DTYPE_C64 : b;
  }
  if (high->kind == KIND_FLOAT)
    return low->kind == KIND_FLOAT ? MPS_DTYPE_F32 : b;
  return promote_integers(a, b);
}

void mps_promotion_begin(mps_dtype_promotion *promotion) {
  memset(promotion->dtypes, MPS_DTYPE_COUNT, sizeof(promotion->dtypes));
}

void mps_promotion_add(mps_dtype_promotion *promotion, mps_dtype dtype, mps_dtype_category category) {
  uint8_t *slot = &promotion->dtypes[category];
  *slot = (uint8_t)(*slot == MPS_DTYPE_COUNT ? dtype : mps_dtype_promote((mps_dtype)*slot, dtype));
}

/* The dtype of the weightier category stands unless the other one is of a higher kind. */
static uint8_t combine(uint8_t heavy, uint8_t light) {
  if (heavy == MPS_DTYPE_COUNT)
    return light;
  if (light == MPS_DTYPE_COUNT)
    return heavy;
  const uint8_t heavy_kind = facts[heavy].kind, light_kind = facts[light].kind;
  if (heavy_kind == KIND_COMPLEX)
    return heavy;
  if (heavy_kind == KIND_FLOAT)
    return light_kind == KIND_COMPLEX ? (uint8_t)complex_of((mps_dtype)heavy) : heavy;
  if (heavy_kind == KIND_BOOL || light_kind >= KIND_FLOAT)
    return (uint8_t)mps_dtype_promote((mps_dtype)heavy, (mps_dtype)light);
  return heavy;
}

mps_dtype mps_promotion_end(const mps_dtype_promotion *promotion) {
  const uint8_t *dtypes = promotion->dtypes;
  const uint8_t result = combine(dtypes[MPS_CATEGORY_TENSOR], combine(dtypes[MPS_CATEGORY_SCALAR], dtypes[MPS_CATEGORY_NUMBER]));
  return result == MPS_DTYPE_COUNT ? MPS_DTYPE_F32 : (mps_dtype)result;
}

mps_dtype mps_formula_result_dtype(const mps_formula_info *info, mps_dtype common) {
  switch (info->result) {
  case MPS_RESULT_BOOL:
    return MPS_DTYPE_BOOL;
  case MPS_RESULT_REAL:
    return common == MPS_DTYPE_C64 ? MPS_DTYPE_F32 : common == MPS_DTYPE_C32 ? MPS_DTYPE_F16 : common;
  case MPS_RESULT_COMPLEX:
    return complex_of(common);
  default:
    return common;
  }
}

static float half_to_float(uint16_t half) {
  const uint32_t sign = (uint32_t)(half & 0x8000u) << 16, exponent = (half >> 10) & 31u, fraction = half & 1023u;
  uint32_t bits;
  float value;
  if (exponent == 0) {
    value = (float)fraction * 0x1p-24f;
    memcpy(&bits, &value, 4);
    bits |= sign;
  } else {
    bits = sign | (exponent == 31 ? 255u : exponent + 112u) << 23 | fraction << 13;
  }
  memcpy(&value, &bits, 4);
  return value;
}

static mps_scalar narrow_scalar(const void *element, mps_dtype dtype) {
  uint16_t halves[2];
  memcpy(halves, element, sizeof(halves));
  switch (dtype) {
  case MPS_DTYPE_U8:
    return mps_scalar_int((uint8_t)halves[0]);
  case MPS_DTYPE_I8:
    return mps_scalar_int((int8_t)(uint8_t)halves[0]);
  case MPS_DTYPE_U16:
    return mps_scalar_int(halves[0]);
  case MPS_DTYPE_I16:
    return mps_scalar_int((int16_t)halves[0]);
  case MPS_DTYPE_F16:
    return mps_scalar_float((double)half_to_float(halves[0]));
  case MPS_DTYPE_C32:
    return mps_scalar_complex((double)half_to_float(halves[0]), (double)half_to_float(halves[1]));
  default: {
    const uint32_t bits = (uint32_t)halves[0] << 16;
    float value;
    memcpy(&value, &bits, 4);
    return mps_scalar_float((double)value);
  }
  }
}

uint64_t mps_scalar_element(mps_scalar scalar, mps_dtype dtype, mps_compute compute) {
  uint64_t bytes = 0;
  const mps_dtype wide = mps_compute_dtype(compute);
  if (facts[dtype].compute == compute && dtype != wide) {
    uint64_t narrow = 0;
    mps_scalar_store(scalar, dtype, &narrow);
    if (dtype == MPS_DTYPE_U32) /* computed in i64 */
      scalar = mps_scalar_int((int64_t)(uint32_t)narrow);
    else
      scalar = narrow_scalar(&narrow, dtype);
  }
  mps_scalar_store(scalar, wide, &bytes);
  return bytes;
}
