// SPDX-License-Identifier: BSD-3-Clause
//
// convert: block kernels between the dtypes that memory holds and the types that formulas compute in. Values follow PyTorch's CPU:
// floats truncate to integers (out of range: as below), integers wrap, to bool is "not zero", to real drops the imaginary part.
#include <metal_stdlib>

using namespace metal;

// ---- float to integer: outside of the range, what x86 gives: the smallest int, before it is cut to fewer bits ----
template <typename T>
static inline T truncate_to(float v) {
  return T(v >= -2147483648.0f && v < 2147483648.0f ? int(v) : int(0x80000000u));
}

template <>
inline long truncate_to<long>(float v) {
  return v >= -9223372036854775808.0f && v < 9223372036854775808.0f ? long(v) : long(0x8000000000000000ul);
}

template <>
inline uint truncate_to<uint>(float v) {
  bool upper = v >= 2147483648.0f;
  return uint(truncate_to<int>(upper ? v - 2147483648.0f : v)) ^ (upper ? 0x80000000u : 0u);
}

template <>
inline ulong truncate_to<ulong>(float v) {
  bool upper = v >= 9223372036854775808.0f;
  return ulong(truncate_to<long>(upper ? v - 9223372036854775808.0f : v)) ^ (upper ? 0x8000000000000000ul : 0ul);
}

// ---- to any type, from bool, an integer, float or float2 ----
template <typename T>
struct caster {
  template <typename I>
  static inline T from(I v) { return T(v); }
  static inline T from(float v) { return truncate_to<T>(v); }
  static inline T from(float2 v) { return truncate_to<T>(v.x); }
};

template <>
struct caster<bool> {
  template <typename I>
  static inline bool from(I v) { return v != I(0); }
  static inline bool from(float v) { return v != 0.0f; }
  static inline bool from(float2 v) { return v.x != 0.0f || v.y != 0.0f; }
};

template <>
struct caster<float> {
  template <typename I>
  static inline float from(I v) { return float(v); }
  static inline float from(float2 v) { return v.x; }
};

template <>
struct caster<half> {
  template <typename I>
  static inline half from(I v) { return half(float(v)); }
  static inline half from(float2 v) { return half(v.x); }
};

template <>
struct caster<bfloat> {
  template <typename I>
  static inline bfloat from(I v) { return bfloat(float(v)); }
  static inline bfloat from(float2 v) { return bfloat(v.x); }
};

template <>
struct caster<float2> {
  template <typename I>
  static inline float2 from(I v) { return float2(float(v), 0.0f); }
  static inline float2 from(float2 v) { return v; }
};

template <>
struct caster<half2> {
  template <typename I>
  static inline half2 from(I v) { return half2(half(float(v)), half(0.0f)); }
  static inline half2 from(float2 v) { return half2(half(v.x), half(v.y)); }
};

template <typename T>
static inline T widen(T v) { return v; }
static inline float widen(half v) { return float(v); }
static inline float widen(bfloat v) { return float(v); }
static inline float2 widen(half2 v) { return float2(float(v.x), float(v.y)); }

// ---- kernels ----
template <typename C, typename D>
kernel void load(device C *out [[buffer(0)]], device const D *a [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  out[i] = caster<C>::from(widen(a[i]));
}

// The byte of a bool may hold anything but 0 for true.
template <typename C>
kernel void load_bool(device C *out [[buffer(0)]], device const uchar *a [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  out[i] = caster<C>::from(a[i] != 0);
}

template <typename D, typename C>
kernel void store(device D *out [[buffer(0)]], device const C *a [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  out[i] = caster<D>::from(a[i]);
}

// Rounds or wraps to D and comes back; out may be a.
template <typename D, typename C>
kernel void round_values(device C *out [[buffer(0)]], device const C *a [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  out[i] = caster<C>::from(widen(caster<D>::from(a[i])));
}

template <typename To, typename From>
kernel void cast_values(device To *out [[buffer(0)]], device const From *a [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  out[i] = caster<To>::from(a[i]);
}

// U: the unsigned counterpart of an integer, in which nothing overflows.
template <typename T, typename U>
kernel void negate_values(device T *out [[buffer(0)]], device const T *a [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  out[i] = T(-U(a[i]));
}

kernel void conjugate_c64(device float2 *out [[buffer(0)]], device const float2 *a [[buffer(1)]],
                          uint i [[thread_position_in_grid]]) {
  out[i] = float2(a[i].x, -a[i].y);
}

// ---- names: load_<dtype>_<compute>, store_<compute>_<dtype>, round_<dtype>_<compute>, cast_<from>_<to>, negate_<compute> ----
#define STRING(name) #name
#define DTYPE(d, D, c, C)                                                                                        \
  template [[host_name(STRING(load_##d##_##c))]] kernel void load<C, D>(device C *, device const D *, uint);     \
  template [[host_name(STRING(store_##c##_##d))]] kernel void store<D, C>(device D *, device const C *, uint);   \
  template [[host_name(STRING(round_##d##_##c))]] kernel void round_values<D, C>(device C *, device const C *, uint);

#define BOOL_DTYPE(c, C)                                                                                         \
  template [[host_name(STRING(load_bool_##c))]] kernel void load_bool<C>(device C *, device const uchar *, uint); \
  template [[host_name(STRING(store_##c##_bool))]] kernel void store<bool, C>(device bool *, device const C *, uint); \
  template [[host_name(STRING(round_bool_##c))]] kernel void round_values<bool, C>(device C *, device const C *, uint);

#define CAST(a, A, c, C) \
  template [[host_name(STRING(cast_##a##_##c))]] kernel void cast_values<C, A>(device C *, device const A *, uint);

#define COMPUTE(c, C)                                                                                            \
  BOOL_DTYPE(c, C)                                                                                               \
  DTYPE(u8, uchar, c, C)                                                                                         \
  DTYPE(u16, ushort, c, C)                                                                                       \
  DTYPE(u32, uint, c, C)                                                                                         \
  DTYPE(u64, ulong, c, C)                                                                                        \
  DTYPE(i8, char, c, C)                                                                                          \
  DTYPE(i16, short, c, C)                                                                                        \
  DTYPE(i32, int, c, C)                                                                                          \
  DTYPE(i64, long, c, C)                                                                                         \
  DTYPE(f16, half, c, C)                                                                                         \
  DTYPE(bf16, bfloat, c, C)                                                                                      \
  DTYPE(f32, float, c, C)                                                                                        \
  DTYPE(c32, half2, c, C)                                                                                        \
  DTYPE(c64, float2, c, C)                                                                                       \
  CAST(f32, float, c, C)                                                                                         \
  CAST(i32, int, c, C)                                                                                           \
  CAST(i64, long, c, C)                                                                                          \
  CAST(u64, ulong, c, C)                                                                                         \
  CAST(c64, float2, c, C)                                                                                        \
  CAST(bool, bool, c, C)

COMPUTE(f32, float)
COMPUTE(i32, int)
COMPUTE(i64, long)
COMPUTE(u64, ulong)
COMPUTE(c64, float2)
COMPUTE(bool, bool)

#define NEGATE(c, T, U) \
  template [[host_name(STRING(negate_##c))]] kernel void negate_values<T, U>(device T *, device const T *, uint);
NEGATE(f32, float, float)
NEGATE(i32, int, uint)
NEGATE(i64, long, ulong)
NEGATE(u64, ulong, ulong)
NEGATE(c64, float2, float2)
