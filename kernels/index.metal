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

struct assign {
  template <typename A, typename T> static A apply(A, T value) { return A(value); }
};
struct add {
  template <typename A, typename T> static A apply(A old, T value) { return A(old + A(value)); }
  static bool apply(bool old, bool value) { return old || value; }
};
// Signed sums and products wrap, which the language promises for unsigned types only.
struct wrapping_add {
  template <typename T> static T apply(T old, T value) { return T(ulong(old) + ulong(value)); }
};
struct multiply {
  template <typename A, typename T> static A apply(A old, T value) { return A(old * A(value)); }
  static bool apply(bool old, bool value) { return old && value; }
};
struct wrapping_multiply {
  template <typename T> static T apply(T old, T value) { return T(ulong(old) * ulong(value)); }
};
struct multiply_complex {
  static float2 apply(float2 a, float2 b) { return float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
};
// The largest and smallest of truth values.
struct either {
  static bool apply(bool old, bool value) { return old || value; }
};
struct both {
  static bool apply(bool old, bool value) { return old && value; }
};
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
  device T *to = values + p.value;
  if (a.index_run == 0) {
    const long i = checked(index[p.index], a, error);
    device const T *from = data + p.data + max(i, 0L) * a.index_step;
    if (i < 0) {
      for (long r = begin; r < end; r++) to[r * a.value_run] = T(0);
    } else if (a.data_run == 1 && a.value_run == 1) {
      for (long r = begin; r < end; r++) to[r] = from[r];
    } else {
      for (long r = begin; r < end; r++) to[r * a.value_run] = from[r * a.data_run];
    }
    return;
  }
  device const T *from = data + p.data;
  for (long r = begin; r < end; r++) {
    const long i = checked(index[p.index + r * a.index_run], a, error);
    to[r * a.value_run] = i < 0 ? T(0) : from[r * a.data_run + i * a.index_step];
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
  for (long w = 0; w < a.walk_count; w++) {
    const position walk = locate(a, a.outer_rank, a.walk_rank, w);
    device A *to = data + outer.data + walk.data;
    device const T *from = values + outer.value + walk.value;
    device const long *at = index + outer.index + walk.index;
    if (a.index_run == 0) {
      const long i = *at == a.skipped ? -1 : checked(*at, a, error);
      if (i < low || i >= high) continue;
      device A *row = to + i * a.index_step;
      if (a.data_run == 1 && a.value_run == 1) {
        for (long r = begin; r < end; r++) row[r] = Op::apply(row[r], from[r]);
      } else {
        for (long r = begin; r < end; r++) row[r * a.data_run] = Op::apply(row[r * a.data_run], from[r * a.value_run]);
      }
    } else {
      for (long r = begin; r < end; r++) {
        const long given = at[r * a.index_run];
        const long i = given == a.skipped ? -1 : checked(given, a, error);
        if (i < low || i >= high) continue;
        device A *element = to + r * a.data_run + i * a.index_step;
        *element = Op::apply(*element, from[r * a.value_run]);
      }
    }
  }
}

// offsets[point] (+)= wrap(index[point]) * index_step, -1 once any index of the point is out of range. `data` is not used; the first
// index tensor (data_run 0) sets, later ones (data_run 1) add.
kernel void index_offsets(device const long *index [[buffer(1)]], device long *offsets [[buffer(2)]],
                          constant mps_index_arguments &a [[buffer(3)]], device mps_kernel_error *error [[buffer(4)]],
                          uint2 thread_position [[thread_position_in_grid]]) {
  const position p = locate(a, 0, a.outer_rank, thread_position.x);
  const long begin = long(thread_position.y) * a.block, end = min(begin + a.block, long(a.run));
  for (long r = begin; r < end; r++) {
    device long *to = offsets + p.value + r * a.value_run;
    const long before = a.data_run ? *to : 0;
    const long i = before < 0 ? -1 : checked(index[p.index + r * a.index_run], a, error);
    *to = i < 0 ? -1 : before + i * a.index_step;
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
// Reading and assigning move bytes: one kernel for each size of an element.
READ(u8, uchar)
READ(u16, ushort)
READ(u32, uint)
READ(u64, ulong)
WRITE(assign_u8, uchar, uchar, assign)
WRITE(assign_u16, ushort, ushort, assign)
WRITE(assign_u32, uint, uint, assign)
WRITE(assign_u64, ulong, ulong, assign)

#define INTEGER(NAME, T)                       \
  WRITE(add_##NAME, T, T, wrapping_add)        \
  WRITE(multiply_##NAME, T, T, wrapping_multiply) \
  WRITE(largest_##NAME, T, T, largest)         \
  WRITE(smallest_##NAME, T, T, smallest)
INTEGER(u8, uchar)
INTEGER(u16, ushort)
INTEGER(u32, uint)
INTEGER(u64, ulong)
INTEGER(i8, char)
INTEGER(i16, short)
INTEGER(i32, int)
INTEGER(i64, long)
// Halves, bfloat values and complex halves go into a float copy of the data, which is rounded once at the end.
#define FLOATING(NAME, T)                  \
  WRITE(add_##NAME, float, T, add)         \
  WRITE(multiply_##NAME, float, T, multiply) \
  WRITE(largest_##NAME, float, T, largest) \
  WRITE(smallest_##NAME, float, T, smallest)
FLOATING(f16, half)
FLOATING(bf16, bfloat)
FLOATING(f32, float)
WRITE(add_bool, bool, bool, add)
WRITE(multiply_bool, bool, bool, multiply)
WRITE(largest_bool, bool, bool, either)
WRITE(smallest_bool, bool, bool, both)
WRITE(add_c32, float2, half2, add)
WRITE(add_c64, float2, float2, add)
WRITE(multiply_c64, float2, float2, multiply_complex)
