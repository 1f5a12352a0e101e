// SPDX-License-Identifier: BSD-3-Clause
//
// gemm: out = beta * bias + alpha * (a @ b), batched, for every dtype and any strides. Used where the device's dense provider does not
// take a dtype (integers, bool) or where there is none. A thread makes one tile of the output; both operands are copied, converted, into
// small thread-local blocks, so that the inner loop always runs over neighbours. Sums are made of partial sums over blocks of k.

#include "dense_types.h"
#include "element.h"

#include "gemm.h"

#define ROWS MPS_GEMM_TILE_ROWS
#define COLUMNS MPS_GEMM_TILE_COLUMNS
#define DEPTH 64 // of a block of k
#define GROUP 4  // rows, and steps of k, of the inner loop

inline float scalar_of(constant mps_gemm_arguments &, constant float *value, int64_t, float) { return value[0]; }
inline float2 scalar_of(constant mps_gemm_arguments &, constant float *value, int64_t, float2) { return float2(value[0], value[1]); }
inline uint scalar_of(constant mps_gemm_arguments &, constant float *, int64_t value, uint) { return uint(value); }
inline ulong scalar_of(constant mps_gemm_arguments &, constant float *, int64_t value, ulong) { return ulong(value); }
inline bool scalar_of(constant mps_gemm_arguments &, constant float *, int64_t value, bool) { return value != 0; }

// rows x depth of the operand at `source` into `block` (rows of `width`), zeros around it.
template <typename T, typename C>
inline void pack(device const T *source, int64_t row_stride, int64_t column_stride, uint rows, uint columns, uint padded_rows, uint width,
                 bool conjugate, thread C *block) {
  if (rows < padded_rows || columns < width)
    for (uint i = 0; i < padded_rows * width; i++) block[i] = dense_type<T>::zero();
  if (column_stride == 1) {
    for (uint row = 0; row < rows; row++) {
      device const T *line = source + row * row_stride;
      thread C *to = block + row * width;
      VECTORIZE
      for (uint column = 0; column < columns; column++) to[column] = dense_type<T>::load(element(line + column), conjugate);
    }
    return;
  }
  for (uint column = 0; column < columns; column++) {
    device const T *line = source + column * column_stride;
    thread C *to = block + column;
    for (uint row = 0; row < rows; row++) to[row * width] = dense_type<T>::load(element(line + row * row_stride), conjugate);
  }
}

// total[GROUP][COLUMNS] += a[GROUP][DEPTH] @ b[DEPTH][COLUMNS]
template <typename C>
inline void multiply_block(thread const C *a, thread const C *b, thread C *total, C zero) {
  C sum[GROUP * COLUMNS];
  for (uint i = 0; i < GROUP * COLUMNS; i++) sum[i] = zero;
  for (uint k = 0; k < DEPTH; k += GROUP) {
    thread const C *b0 = b + k * COLUMNS;
    for (uint row = 0; row < GROUP; row++) {
      thread const C *line = a + row * DEPTH + k;
      C a0 = line[0], a1 = line[1], a2 = line[2], a3 = line[3];
      thread C *to = sum + row * COLUMNS;
      VECTORIZE
      for (uint j = 0; j < COLUMNS; j++) {
        C value = add(to[j], multiply(a0, b0[j]));
        value = add(value, multiply(a1, b0[COLUMNS + j]));
        value = add(value, multiply(a2, b0[2 * COLUMNS + j]));
        to[j] = add(value, multiply(a3, b0[3 * COLUMNS + j]));
      }
    }
  }
  VECTORIZE
  for (uint i = 0; i < GROUP * COLUMNS; i++) total[i] = add(total[i], sum[i]);
}

template <typename T>
kernel void gemm(device const T *a [[buffer(0)]], device const T *b [[buffer(1)]], device const T *bias [[buffer(2)]],
                 device T *out [[buffer(3)]], constant mps_gemm_arguments &arguments [[buffer(4)]],
                 uint3 position [[thread_position_in_grid]]) {
  typedef typename dense_type<T>::compute C;
  constant mps_gemm_arguments &g = arguments;
  const C zero = dense_type<T>::zero();
  int64_t row0 = int64_t(position.y) * ROWS, column0 = int64_t(position.x) * COLUMNS, batch = position.z;
  uint rows = uint(min(int64_t(ROWS), g.m - row0)), columns = uint(min(int64_t(COLUMNS), g.n - column0));
  device const T *a_tile = a + batch * g.a_strides[0] + row0 * g.a_strides[1];
  device const T *b_tile = b + batch * g.b_strides[0] + column0 * g.b_strides[2];

  C total[ROWS * COLUMNS];
  C a_block[GROUP * DEPTH];
  C b_block[DEPTH * COLUMNS];
  for (uint i = 0; i < (rows + GROUP - 1) / GROUP * GROUP * COLUMNS; i++) total[i] = zero;
  for (int64_t k = 0; k < g.k; k += DEPTH) {
    uint depth = uint(min(int64_t(DEPTH), g.k - k));
    pack<T, C>(b_tile + k * g.b_strides[1], g.b_strides[1], g.b_strides[2], depth, columns, DEPTH, COLUMNS,
               (g.flags & MPS_GEMM_CONJUGATE_B) != 0, b_block);
    for (uint row = 0; row < rows; row += GROUP) {
      pack<T, C>(a_tile + int64_t(row) * g.a_strides[1] + k * g.a_strides[2], g.a_strides[1], g.a_strides[2],
                 min(uint(GROUP), rows - row), depth, GROUP, DEPTH, (g.flags & MPS_GEMM_CONJUGATE_A) != 0, a_block);
      multiply_block<C>(a_block, b_block, total + row * COLUMNS, zero);
    }
  }

  C alpha = scalar_of(g, g.alpha, g.alpha_integer, zero), beta = scalar_of(g, g.beta, g.beta_integer, zero);
  for (uint row = 0; row < rows; row++) {
    device T *to = out + batch * g.out_strides[0] + (row0 + row) * g.out_strides[1] + column0 * g.out_strides[2];
    device const T *from = bias + batch * g.bias_strides[0] + (row0 + row) * g.bias_strides[1] + column0 * g.bias_strides[2];
    for (uint column = 0; column < columns; column++) {
      C value = multiply(alpha, total[row * COLUMNS + column]);
      if (g.flags & MPS_GEMM_HAS_BIAS)
        value = add(value, multiply(beta, dense_type<T>::load(element(from + column * g.bias_strides[2]), (g.flags & MPS_GEMM_CONJUGATE_BIAS) != 0)));
      to[column * g.out_strides[2]] = dense_type<T>::store(value);
    }
  }
}

// `count` columns of one row; Count: as many, known to the compiler, or 0.
template <typename T, uint Count>
inline void small_row(device const T *a, device const T *b, device const T *bias, device T *out, uint count, constant mps_gemm_arguments &g) {
  typedef typename dense_type<T>::compute C;
  const C zero = dense_type<T>::zero();
  const uint columns = Count ? Count : count;
  const bool conjugate_a = (g.flags & MPS_GEMM_CONJUGATE_A) != 0, conjugate_b = (g.flags & MPS_GEMM_CONJUGATE_B) != 0;
  C total[MPS_GEMM_SMALL_COLUMNS];
  for (uint j = 0; j < columns; j++) total[j] = zero;
  for (int64_t k = 0; k < g.k; k++) {
    const C value = dense_type<T>::load(element(a + k * g.a_strides[2]), conjugate_a);
    device const T *line = b + k * g.b_strides[1];
    if (g.b_strides[2] == 1) {
      for (uint j = 0; j < columns; j++) total[j] = add(total[j], multiply(value, dense_type<T>::load(element(line + j), conjugate_b)));
    } else {
      for (uint j = 0; j < columns; j++) total[j] = add(total[j], multiply(value, dense_type<T>::load(element(line + j * g.b_strides[2]), conjugate_b)));
    }
  }
  const C alpha = scalar_of(g, g.alpha, g.alpha_integer, zero), beta = scalar_of(g, g.beta, g.beta_integer, zero);
  for (uint j = 0; j < columns; j++) {
    C value = multiply(alpha, total[j]);
    if (g.flags & MPS_GEMM_HAS_BIAS)
      value = add(value, multiply(beta, dense_type<T>::load(element(bias + j * g.bias_strides[2]), (g.flags & MPS_GEMM_CONJUGATE_BIAS) != 0)));
    out[j * g.out_strides[2]] = dense_type<T>::store(value);
  }
}

// Many products of few columns. Thread (row, item of the batch).
template <typename T>
kernel void gemm_small(device const T *a [[buffer(0)]], device const T *b [[buffer(1)]], device const T *bias [[buffer(2)]],
                       device T *out [[buffer(3)]], constant mps_gemm_arguments &g [[buffer(4)]], uint2 position [[thread_position_in_grid]]) {
  const int64_t row = position.x, item = position.y;
  device const T *a_row = a + item * g.a_strides[0] + row * g.a_strides[1], *b_item = b + item * g.b_strides[0];
  device const T *bias_row = bias + item * g.bias_strides[0] + row * g.bias_strides[1];
  device T *out_row = out + item * g.out_strides[0] + row * g.out_strides[1];
  switch (g.n) {
    case 3: return small_row<T, 3>(a_row, b_item, bias_row, out_row, 3, g);
    case 4: return small_row<T, 4>(a_row, b_item, bias_row, out_row, 4, g);
    case 8: return small_row<T, 8>(a_row, b_item, bias_row, out_row, 8, g);
    case 16: return small_row<T, 16>(a_row, b_item, bias_row, out_row, 16, g);
    default: return small_row<T, 0>(a_row, b_item, bias_row, out_row, uint(g.n), g);
  }
}

#define SMALL(name, type)                                                                                                              \
  template [[host_name("gemm_small_" #name)]] kernel void gemm_small<type>(device const type * a [[buffer(0)]], device const type *b [[buffer(1)]], \
                                                                           device const type *bias [[buffer(2)]], device type *out [[buffer(3)]], \
                                                                           constant mps_gemm_arguments &g [[buffer(4)]], uint2 position [[thread_position_in_grid]]);
SMALL(f16, half)
SMALL(bf16, bfloat)
SMALL(f32, float)
SMALL(c64, float2)

#define INSTANTIATE(name, type)                                                                                                    \
  template [[host_name("gemm_" #name)]] kernel void gemm<type>(device const type * a [[buffer(0)]], device const type *b [[buffer(1)]],  \
                                                               device const type *bias [[buffer(2)]], device type *out [[buffer(3)]],   \
                                                               constant mps_gemm_arguments &arguments [[buffer(4)]],               \
                                                               uint3 position [[thread_position_in_grid]]);
INSTANTIATE(bool, bool)
INSTANTIATE(u8, uchar)
INSTANTIATE(u16, ushort)
INSTANTIATE(u32, uint)
INSTANTIATE(u64, ulong)
INSTANTIATE(f16, half)
INSTANTIATE(bf16, bfloat)
INSTANTIATE(f32, float)
INSTANTIATE(c32, half2)
INSTANTIATE(c64, float2)
