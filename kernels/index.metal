// SPDX-License-Identifier: BSD-3-Clause
//
// index: reading and writing through an index tensor. What points, data, values and index are, index_arguments.h tells.
//
// Reading: thread (outer point, block of the run). Writing: thread (outer point, slice, block of the run); outer points and blocks never
// meet in one element, and a slice owns a range of indices, so that every element is written by one thread, in the order of the walk,
// whatever the thread count.

#include <metal_stdlib>
#include "error.h"
#include "index_arguments.h"

using namespace metal;

/* Iterations are independent. */
#define INDEX_VECTORIZE _Pragma("clang loop vectorize(assume_safety)")

namespace {

struct position {
  long data, value, index;
};

// Offsets of point `point` of the dimensions [first, first + rank).
inline position locate(constant mps_index_arguments &a, uint first, uint rank, long point) {
  position p = {0, 0, 0};
  for (uint d = rank; d-- > 0;) {
    const long size = a.sizes[first + d];
    const long rest = d ? point / size : 0;
    const long coordinate = point - rest * size;
    p.data += coordinate * a.data_strides[first + d];
    p.value += coordinate * a.value_strides[first + d];
    p.index += coordinate * a.index_strides[first + d];
    point = rest;
  }
  return p;
}

// The index in [0, index_size), or -1 after having reported it.
inline long checked(long index, constant mps_index_arguments &a, device mps_kernel_error *error) {
  const long wrapped = a.wraps && index < 0 ? index + a.index_size : index;
  if (wrapped >= 0 && wrapped < a.index_size) return wrapped;
  report_index_error(error, index, a.index_size, a.dimension);
  return -1;
}

enum { TOGETHER = 128 };  // indices that are looked at together

// Indices as they count from the start; true when all are in [0, index_size) and none is left out.
inline bool wrap_all(device const long *index, long stride, long count, constant mps_index_arguments &a, thread long *wrapped) {
  const long shift = a.wraps ? a.index_size : 0, skipped = a.skipped;
  const ulong last = ulong(a.index_size) - 1;
  ulong bad = 0;  // its sign tells
  if (stride == 1) {
    INDEX_VECTORIZE
    for (long k = 0; k < count; k++) {
      const long given = index[k], i = given + (given < 0 ? shift : 0);
      wrapped[k] = i;
      bad |= ulong(i) | (last - ulong(i)) | (given == skipped ? ~0ul : 0ul);
    }
  } else {
    for (long k = 0; k < count; k++) {
      const long given = index[k * stride], i = given + (given < 0 ? shift : 0);
      wrapped[k] = i;
      bad |= ulong(i) | (last - ulong(i)) | (given == skipped ? ~0ul : 0ul);
    }
  }
  return long(bad) >= 0;
}

// Which of `count` indices are written by a slice, the one that owns [low, high): their numbers and places. Those out of range are reported.
inline long admit(device const long *index, long stride, long count, long low, long high, constant mps_index_arguments &a,
                  device mps_kernel_error *error, thread long *places, thread uint *numbers) {
  long wrapped[TOGETHER];
  if (!wrap_all(index, stride, count, a, wrapped))
    for (long k = 0; k < count; k++) wrapped[k] = index[k * stride] == a.skipped ? -1 : checked(index[k * stride], a, error);
  const ulong owned = ulong(high - low);
  long admitted = 0;
  for (long k = 0; k < count; k++) {
    const long i = wrapped[k];
    places[admitted] = i;
    numbers[admitted] = uint(k);
    admitted += ulong(i - low) < owned ? 1 : 0;  // -1 is in no slice
  }
  return admitted;
}

struct assign {
  template <typename A, typename T> static A apply(A, T value) { return A(value); }
};
struct add {
  template <typename A, typename T> static A apply(A old, T value) { return A(old + A(value)); }
};
// Signed sums and products wrap, which the language promises for unsigned types only.
struct wrapping_add {
  template <typename T> static T apply(T old, T value) { return T(ulong(old) + ulong(value)); }
};
struct multiply {
  template <typename A, typename T> static A apply(A old, T value) { return A(old * A(value)); }
};
struct wrapping_multiply {
  template <typename T> static T apply(T old, T value) { return T(ulong(old) * ulong(value)); }
};
struct multiply_complex {
  static float2 apply(float2 a, float2 b) { return float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
};
// Sum and product, largest and smallest of truth values, by the bytes of bool: any but 0 is true.
struct either {
  static uchar apply(uchar old, uchar value) { return old != 0 || value != 0 ? 1 : 0; }
};
struct both {
  static uchar apply(uchar old, uchar value) { return old != 0 && value != 0 ? 1 : 0; }
};
struct largest_truth : either {};
struct smallest_truth : both {};
// A NaN on either side wins.
struct largest {
  template <typename A, typename T> static A apply(A old, T value) { return old != old || old > A(value) ? old : A(value); }
};
struct smallest {
  template <typename A, typename T> static A apply(A old, T value) { return old != old || old < A(value) ? old : A(value); }
};

}  // namespace

// values[point] = data[point, index]; where the index is out of range, zero.
template <typename T>
kernel void index_read(device const T *data [[buffer(0)]], device const long *index [[buffer(1)]], device T *values [[buffer(2)]],
                       constant mps_index_arguments &a [[buffer(3)]], device mps_kernel_error *error [[buffer(4)]],
                       uint2 thread_position [[thread_position_in_grid]]) {
  const position p = locate(a, 0, a.outer_rank, thread_position.x);
  const long begin = long(thread_position.y) * a.block, end = min(begin + a.block, long(a.run));
  const long step = a.index_step, data_run = a.data_run, value_run = a.value_run, index_run = a.index_run;
  if (index_run == 0) {
    device T *to = values + p.value;
    const long i = checked(index[p.index], a, error);
    device const T *from = data + p.data + max(i, 0L) * step;
    if (i < 0) {
      for (long r = begin; r < end; r++) to[r * value_run] = T(0);
    } else if (data_run == 1 && value_run == 1) {
      for (long r = begin; r < end; r++) to[r] = from[r];
    } else {
      for (long r = begin; r < end; r++) to[r * value_run] = from[r * data_run];
    }
    return;
  }
  long places[TOGETHER];
  for (long r = begin; r < end; r += TOGETHER) {
    const long count = min(long(TOGETHER), end - r);
    device const long *at = index + p.index + r * index_run;
    device const T *from = data + p.data + r * data_run;
    device T *to = values + p.value + r * value_run;
    if (!wrap_all(at, index_run, count, a, places)) {
      for (long k = 0; k < count; k++) {
        const long i = checked(at[k * index_run], a, error);
        to[k * value_run] = i < 0 ? T(0) : from[k * data_run + i * step];
      }
    } else if (data_run == 0 && step == 1 && value_run == 1) {
      for (long k = 0; k < count; k++) to[k] = from[places[k]];
    } else {
      for (long k = 0; k < count; k++) to[k * value_run] = from[k * data_run + places[k] * step];
    }
  }
}

// row = Op(row, from), elements from `begin` to `end`.
template <typename A, typename T, typename Op>
inline void write_row(device A *row, device const T *from, long begin, long end, long data_run, long value_run) {
  if (data_run == 1 && value_run == 1) {
    for (long r = begin; r < end; r++) row[r] = Op::apply(row[r], from[r]);
  } else {
    for (long r = begin; r < end; r++) row[r * data_run] = Op::apply(row[r * data_run], from[r * value_run]);
  }
}

// data[point, index] = Op(data[point, index], values[point]).
template <typename A, typename T, typename Op>
kernel void index_write(device A *data [[buffer(0)]], device const long *index [[buffer(1)]], device const T *values [[buffer(2)]],
                        constant mps_index_arguments &a [[buffer(3)]], device mps_kernel_error *error [[buffer(4)]],
                        uint3 thread_position [[thread_position_in_grid]]) {
  const position outer = locate(a, 0, a.outer_rank, thread_position.x);
  const long slice = thread_position.y, slices = a.slices;
  const long low = a.index_size / slices * slice + min(slice, a.index_size % slices);
  const long high = low + a.index_size / slices + (slice < a.index_size % slices ? 1 : 0);
  const long begin = long(thread_position.z) * a.block, end = min(begin + a.block, long(a.run));
  const long step = a.index_step, data_run = a.data_run, value_run = a.value_run, index_run = a.index_run, walk_count = a.walk_count;
  long places[TOGETHER];
  uint numbers[TOGETHER];
  if (index_run == 0 && a.walk_rank == 1) {  // rows, one index each
    const long to_step = a.data_strides[a.outer_rank], from_step = a.value_strides[a.outer_rank], at_step = a.index_strides[a.outer_rank];
    for (long w = 0; w < walk_count; w += TOGETHER) {
      const long admitted = admit(index + outer.index + w * at_step, at_step, min(long(TOGETHER), walk_count - w), low, high, a, error, places, numbers);
      for (long k = 0; k < admitted; k++)
        write_row<A, T, Op>(data + outer.data + (w + long(numbers[k])) * to_step + places[k] * step, values + outer.value + (w + long(numbers[k])) * from_step, begin,
                            end, data_run, value_run);
    }
    return;
  }
  for (long w = 0; w < walk_count; w++) {
    const position walk = locate(a, a.outer_rank, a.walk_rank, w);
    device A *to = data + outer.data + walk.data;
    device const T *from = values + outer.value + walk.value;
    device const long *at = index + outer.index + walk.index;
    if (index_run == 0) {
      const long i = *at == a.skipped ? -1 : checked(*at, a, error);
      if (i >= low && i < high) write_row<A, T, Op>(to + i * step, from, begin, end, data_run, value_run);
      continue;
    }
    for (long r = begin; r < end; r += TOGETHER) {
      const long count = min(long(TOGETHER), end - r);
      if (slices == 1 && wrap_all(at + r * index_run, index_run, count, a, places)) {
        device A *element = to + r * data_run;
        device const T *value = from + r * value_run;
        if (data_run == 0 && step == 1 && value_run == 1) {
          for (long k = 0; k < count; k++) element[places[k]] = Op::apply(element[places[k]], value[k]);
        } else {
          for (long k = 0; k < count; k++) {
            device A *one = element + k * data_run + places[k] * step;
            *one = Op::apply(*one, value[k * value_run]);
          }
        }
        continue;
      }
      const long admitted = admit(at + r * index_run, index_run, count, low, high, a, error, places, numbers);
      for (long k = 0; k < admitted; k++) {
        device A *one = to + (r + long(numbers[k])) * data_run + places[k] * step;
        *one = Op::apply(*one, from[(r + long(numbers[k])) * value_run]);
      }
    }
  }
}

// data[k] = Op(.. Op(data[k], parts[0][k]) .., parts[last][k]): what walks that were cut into parts have made of their copies of data.
template <typename A, typename Op>
kernel void index_join(device A *data [[buffer(0)]], device const A *parts [[buffer(1)]], constant mps_index_join_arguments &a [[buffer(2)]],
                       uint block [[thread_position_in_grid]]) {
  const long begin = long(block) * a.block, count = min(long(a.block), a.size - begin), step = a.step;
  A joined[MPS_INDEX_JOIN_BLOCK];
  device A *to = data + begin * step;
  for (long k = 0; k < count; k++) joined[k] = to[k * step];
  for (long p = 0; p < a.parts; p++) {
    device const A *part = parts + p * a.size + begin;
    for (long k = 0; k < count; k++) joined[k] = Op::apply(joined[k], part[k]);
  }
  for (long k = 0; k < count; k++) to[k * step] = joined[k];
}

// offsets[point] (+)= wrap(index[point]) * index_step, -1 once any index of the point is out of range. `data` is not used; the first
// index tensor (data_run 0) sets, later ones (data_run 1) add.
kernel void index_offsets(device const long *index [[buffer(1)]], device long *offsets [[buffer(2)]],
                          constant mps_index_arguments &a [[buffer(3)]], device mps_kernel_error *error [[buffer(4)]],
                          uint2 thread_position [[thread_position_in_grid]]) {
  const position p = locate(a, 0, a.outer_rank, thread_position.x);
  const long begin = long(thread_position.y) * a.block, end = min(begin + a.block, long(a.run));
  const long step = a.index_step, value_run = a.value_run, index_run = a.index_run;
  const bool adds = a.data_run != 0;
  long places[TOGETHER];
  for (long r = begin; r < end; r += TOGETHER) {
    const long count = min(long(TOGETHER), end - r);
    device const long *at = index + p.index + r * index_run;
    device long *to = offsets + p.value + r * value_run;
    if (value_run == 1 && wrap_all(at, index_run, count, a, places)) {
      if (adds) {
        for (long k = 0; k < count; k++) to[k] = to[k] < 0 ? -1 : to[k] + places[k] * step;
      } else {
        for (long k = 0; k < count; k++) to[k] = places[k] * step;
      }
      continue;
    }
    for (long k = 0; k < count; k++) {
      const long before = adds ? to[k * value_run] : 0;
      const long i = before < 0 ? -1 : checked(at[k * index_run], a, error);
      to[k * value_run] = i < 0 ? -1 : before + i * step;
    }
  }
}

#define READ(NAME, T)                                                                                                             \
  template [[host_name("index_read_" #NAME)]] kernel void index_read<T>(device const T *, device const long *, device T *,        \
                                                                       constant mps_index_arguments &, device mps_kernel_error *, \
                                                                       uint2);
#define WRITE(NAME, A, T, OP)                                                                                                        \
  template [[host_name("index_" #NAME)]] kernel void index_write<A, T, OP>(device A *, device const long *, device const T *,        \
                                                                          constant mps_index_arguments &, device mps_kernel_error *, \
                                                                          uint3);
#define JOIN(NAME, A, OP)                                                                                                  \
  template [[host_name("index_join_" #NAME)]] kernel void index_join<A, OP>(device A *, device const A *,                   \
                                                                           constant mps_index_join_arguments &, uint);
#define REDUCE(NAME, A, OP) \
  WRITE(NAME, A, A, OP)     \
  JOIN(NAME, A, OP)
// Reading and assigning move bytes: one kernel for each size of an element.
READ(u8, uchar)
READ(u16, ushort)
READ(u32, uint)
READ(u64, ulong)
WRITE(assign_u8, uchar, uchar, assign)
WRITE(assign_u16, ushort, ushort, assign)
WRITE(assign_u32, uint, uint, assign)
WRITE(assign_u64, ulong, ulong, assign)

#define INTEGER(NAME, T)                           \
  REDUCE(add_##NAME, T, wrapping_add)              \
  REDUCE(multiply_##NAME, T, wrapping_multiply)    \
  REDUCE(largest_##NAME, T, largest)               \
  REDUCE(smallest_##NAME, T, smallest)
INTEGER(u8, uchar)
INTEGER(u16, ushort)
INTEGER(u32, uint)
INTEGER(u64, ulong)
INTEGER(i8, char)
INTEGER(i16, short)
INTEGER(i32, int)
INTEGER(i64, long)
// Halves, bfloat values and complex halves go into a float copy of the data, which is rounded once at the end.
#define HALF(NAME, T)                        \
  WRITE(add_##NAME, float, T, add)           \
  WRITE(multiply_##NAME, float, T, multiply) \
  WRITE(largest_##NAME, float, T, largest)   \
  WRITE(smallest_##NAME, float, T, smallest)
HALF(f16, half)
HALF(bf16, bfloat)
WRITE(add_c32, float2, half2, add)
REDUCE(add_f32, float, add)
REDUCE(multiply_f32, float, multiply)
REDUCE(largest_f32, float, largest)
REDUCE(smallest_f32, float, smallest)
REDUCE(add_bool, uchar, either)
REDUCE(multiply_bool, uchar, both)
REDUCE(largest_bool, uchar, largest_truth)
REDUCE(smallest_bool, uchar, smallest_truth)
REDUCE(add_c64, float2, add)
WRITE(multiply_c64, float2, float2, multiply_complex)
