// SPDX-License-Identifier: BSD-3-Clause
//
// sparse: a sparse matrix, row by row, times a dense one. Each element of the result is made by one thread in the order of the entries, in
// the type that sums are kept in, and rounded once: no atomics, the same bits every time. Thread: (row, block of the width).

#include <metal_stdlib>
#include "dense_types.h"
#include "element.h"
#include "error.h"
#include "sparse_arguments.h"

using namespace metal;

namespace {

struct range {
  long begin, end;
};
// The entries of a row, always inside of the arrays.
inline range entries_of(device const long *begins, long row, constant mps_sparse_arguments &a) {
  const long begin = clamp(begins[row], 0L, long(a.entries));
  return {begin, clamp(begins[row + 1], begin, long(a.entries))};
}

inline bool valid(long column, constant mps_sparse_arguments &a, device mps_kernel_error *error) {
  if (column >= 0 && column < a.rows) return true;
  report_index_error(error, column, a.rows, 1);
  return false;
}

inline float divide(float sum, long count) { return sum / float(count); }
inline float2 divide(float2 sum, long count) { return sum / float(count); }
inline uint divide(uint sum, long) { return sum; }
inline ulong divide(ulong sum, long) { return sum; }
inline bool divide(bool sum, long) { return sum; }

}  // namespace

template <typename T>
kernel void sparse_sum(device const long *begins [[buffer(0)]], device const long *columns [[buffer(1)]], device const T *values [[buffer(2)]],
                       device const T *dense [[buffer(3)]], device T *out [[buffer(4)]], constant mps_sparse_arguments &a [[buffer(6)]],
                       device mps_kernel_error *error [[buffer(7)]], uint2 position [[thread_position_in_grid]]) {
  typedef typename dense_type<T>::compute compute;
  const long row = position.x, first = long(position.y) * MPS_SPARSE_BLOCK;
  const long length = min(long(MPS_SPARSE_BLOCK), a.width - first), stride = a.column_stride;
  const range r = entries_of(begins, row, a);
  compute sums[MPS_SPARSE_BLOCK];
  for (uint i = 0; i < MPS_SPARSE_BLOCK; i++) sums[i] = dense_type<T>::zero();
  for (long e = r.begin; e < r.end; e++) {
    const long column = columns[e];
    if (!valid(column, a, error)) continue;
    const compute value = dense_type<T>::load(element(values + e), false);
    device const T *from = dense + column * a.row_stride + first * stride;
    if (a.reduction == MPS_SPARSE_PRODUCT) {
      for (long i = 0; i < length; i++) {
        const compute factor = multiply(value, dense_type<T>::load(element(from + i * stride), false));
        sums[i] = e == r.begin ? factor : multiply(sums[i], factor);
      }
    } else if (length == MPS_SPARSE_BLOCK && stride == 1) {
      for (uint i = 0; i < MPS_SPARSE_BLOCK; i++) sums[i] = add(sums[i], multiply(value, dense_type<T>::load(element(from + i), false)));
    } else {
      for (long i = 0; i < length; i++) sums[i] = add(sums[i], multiply(value, dense_type<T>::load(element(from + i * stride), false)));
    }
  }
  if (a.reduction == MPS_SPARSE_MEAN && r.end > r.begin)
    for (long i = 0; i < length; i++) sums[i] = divide(sums[i], r.end - r.begin);
  device T *to = out + row * a.width + first;
  for (long i = 0; i < length; i++) to[i] = dense_type<T>::store(sums[i]);
}

// The largest or smallest product; a NaN wins and stays, the first of equal ones counts. Rows without entries give 0; the place is `entries` there
// and where all products are the infinity that any other would beat.
template <typename T>
kernel void sparse_extremum(device const long *begins [[buffer(0)]], device const long *columns [[buffer(1)]], device const T *values [[buffer(2)]],
                            device const T *dense [[buffer(3)]], device T *out [[buffer(4)]], device long *places [[buffer(5)]],
                            constant mps_sparse_arguments &a [[buffer(6)]], device mps_kernel_error *error [[buffer(7)]],
                            uint2 position [[thread_position_in_grid]]) {
  const long row = position.x, first = long(position.y) * MPS_SPARSE_BLOCK;
  const long length = min(long(MPS_SPARSE_BLOCK), a.width - first);
  const float sign = a.reduction == MPS_SPARSE_MIN ? -1.0f : 1.0f, worst = -sign * as_type<float>(0x7f800000u);
  const range r = entries_of(begins, row, a);
  for (long i = 0; i < length; i++) {
    const long element = (first + i) * a.column_stride;
    float best = worst;
    long place = a.entries;
    for (long e = r.begin; e < r.end; e++) {
      const long column = columns[e];
      if (!valid(column, a, error)) continue;
      const float product = float(values[e]) * float(dense[column * a.row_stride + element]);
      const bool better = sign * product > sign * best || (product != product && best == best);
      best = better ? product : best;
      place = better ? e : place;
    }
    out[row * a.width + first + i] = T(r.end > r.begin ? best : 0.0f);
    if (a.wants_places) places[row * a.width + first + i] = place;
  }
}

#define SUM(NAME, T)                                                                                                        \
  template [[host_name("sparse_sum_" #NAME)]] kernel void sparse_sum<T>(device const long *, device const long *,           \
                                                                        device const T *, device const T *, device T *,     \
                                                                        constant mps_sparse_arguments &,                    \
                                                                        device mps_kernel_error *, uint2);
SUM(bool, bool)
SUM(u8, uchar)
SUM(u16, ushort)
SUM(u32, uint)
SUM(u64, ulong)
SUM(f16, half)
SUM(bf16, bfloat)
SUM(f32, float)
SUM(c32, half2)
SUM(c64, float2)

#define EXTREMUM(NAME, T)                                                                                                             \
  template [[host_name("sparse_extremum_" #NAME)]] kernel void sparse_extremum<T>(device const long *, device const long *,           \
                                                                                  device const T *, device const T *, device T *,     \
                                                                                  device long *, constant mps_sparse_arguments &,     \
                                                                                  device mps_kernel_error *, uint2);
EXTREMUM(f16, half)
EXTREMUM(bf16, bfloat)
EXTREMUM(f32, float)
