// SPDX-License-Identifier: BSD-3-Clause
//
// reduce_norm: vector norms. ord 1: sum of magnitudes; 2: root of the sum of squares; inf and -inf: largest and smallest magnitude,
// NaN wins; 0: number of nonzero elements; any other p: (sum |x|^p)^(1/p). They add up in float.

#include "complex.h"
#include "extreme.h"
#include "reduce.h"

inline float magnitude(float x) { return fabs(x); }
inline float magnitude(half x) { return fabs(float(x)); }
inline float magnitude(bfloat x) { return fabs(float(x)); }
inline float square(float x) { return x * x; }
inline float square(half x) { return float(x) * float(x); }
inline float square(bfloat x) { return float(x) * float(x); }
inline float square(float2 x) { return x.x * x.x + x.y * x.y; }
// The same number as abs gives: the gradient of the largest magnitude looks for elements that equal it.
inline float magnitude(float2 x) { return formula::complex_abs(x); }

template <typename T, typename Out>
struct norm_one {
  typedef T in;
  typedef float lane;
  typedef float acc;
  typedef Out out;
  static float identity() { return 0.0f; }
  static float empty() { return 0.0f; }
  static float load(T x, constant mps_reduce_arguments &) { return magnitude(x); }
  static float combine(float a, float b) { return a + b; }
  static float merge(float a, float b) { return a + b; }
  static float widen(float a) { return a; }
  static Out finish(float a, constant mps_reduce_arguments &) { return Out(a); }
};

template <typename T, typename Out>
struct norm_two : norm_one<T, Out> {
  static float load(T x, constant mps_reduce_arguments &) { return square(x); }
  static Out finish(float a, constant mps_reduce_arguments &) { return Out(sqrt(a)); }
};

template <typename T, typename Out>
struct norm_zero : norm_one<T, Out> {
  static float load(T x, constant mps_reduce_arguments &) { return magnitude(x) == 0.0f ? 0.0f : 1.0f; }
};

template <typename T, typename Out>
struct norm_power : norm_one<T, Out> {
  static float load(T x, constant mps_reduce_arguments &args) { return pow(magnitude(x), args.power); }
  static Out finish(float a, constant mps_reduce_arguments &args) { return Out(pow(a, 1.0f / args.power)); }
};

template <typename T, typename Out>
struct norm_largest : norm_one<T, Out> {
  static float combine(float a, float b) { return larger(a, b); }
  static float merge(float a, float b) { return combine(a, b); }
};

template <typename T, typename Out>
struct norm_smallest : norm_one<T, Out> {
  static float identity() { return INFINITY; }
  static float empty() { return INFINITY; }
  static float combine(float a, float b) { return smaller(a, b); }
  static float merge(float a, float b) { return combine(a, b); }
};

#define NORM_KERNELS(suffix, type, out_type) \
  REDUCE_KERNELS(norm_zero, suffix, type, float, out_type, norm_zero<type, out_type>) \
  REDUCE_KERNELS(norm_one, suffix, type, float, out_type, norm_one<type, out_type>) \
  REDUCE_KERNELS(norm_two, suffix, type, float, out_type, norm_two<type, out_type>) \
  REDUCE_KERNELS(norm_power, suffix, type, float, out_type, norm_power<type, out_type>) \
  REDUCE_KERNELS(norm_largest, suffix, type, float, out_type, norm_largest<type, out_type>) \
  REDUCE_KERNELS(norm_smallest, suffix, type, float, out_type, norm_smallest<type, out_type>)
NORM_KERNELS(f32, float, float)
NORM_KERNELS(f16, half, half)
NORM_KERNELS(bf16, bfloat, bfloat)
NORM_KERNELS(c64, float2, float)
