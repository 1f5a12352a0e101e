// SPDX-License-Identifier: BSD-3-Clause
//
// im2col: windows of an image as columns, and back: each image element is the sum of the windows that hold it, in the order of the
// window's elements.

#include "element.h"
#include "im2col_arguments.h"

// Iterations are independent.
#define VECTORIZE _Pragma("clang loop vectorize(assume_safety) unroll(disable)")

namespace {

// The places [begin, end) along dimension d whose element at `offset` (padding taken off) lies in the image.
struct span {
  long begin, end;
};
inline span inside(constant mps_im2col_arguments &a, int d, long offset) {
  const long step = a.stride[d], reach = a.image_size[d] - 1 - offset;
  const long begin = offset >= 0 ? 0 : (-offset + step - 1) / step, end = reach < 0 ? 0 : reach / step + 1;
  return {min(begin, long(a.places[d])), max(min(end, long(a.places[d])), min(begin, long(a.places[d])))};
}

}  // namespace

// Thread: (row of columns, some rows of places). A row of columns belongs to an element of the window.
template <typename T>
kernel void im2col(device const T *image [[buffer(0)]], device T *columns [[buffer(1)]], constant mps_im2col_arguments &a [[buffer(2)]],
                   uint2 position [[thread_position_in_grid]]) {
  const long x = position.x, plane = x / (a.window[0] * a.window[1]), element = x - plane * a.window[0] * a.window[1];
  const long i = element / a.window[1], j = element - i * a.window[1], batch = plane / a.channels, channel = plane - batch * a.channels;
  const long top = i * a.dilation[0] - a.padding[0], left = j * a.dilation[1] - a.padding[1];
  const span rows = inside(a, 0, top), run = inside(a, 1, left);
  const long width = a.places[1], to_step = a.column_place, from_step = a.stride[1] * a.image_stride[1];
  device T *to = columns + batch * a.column_batch + (channel * a.window[0] * a.window[1] + element) * a.column_row;
  device const T *from = image + batch * a.image_batch + channel * a.image_channel + left * a.image_stride[1];
  const long begin = long(position.y) * a.rows, end = min(begin + a.rows, long(a.places[0]));
  for (long y = begin; y < end; y++) {
    device T *out = to + y * width * to_step;
    device const T *in = from + (top + y * a.stride[0]) * a.image_stride[0];
    const long first = y >= rows.begin && y < rows.end ? run.begin : width, last = first == width ? width : run.end;
    for (long w = 0; w < first; w++) out[w * to_step] = T(0);
    if (to_step == 1 && from_step == 1) {
      VECTORIZE
      for (long w = first; w < last; w++) out[w] = in[w];
    } else {
      for (long w = first; w < last; w++) out[w * to_step] = in[w * from_step];
    }
    for (long w = last; w < width; w++) out[w * to_step] = T(0);
  }
}

// What bool sums are: true when anything is.
inline float sum(float a, float b) { return a + b; }
inline float2 sum(float2 a, float2 b) { return a + b; }
inline bool sum(bool a, bool b) { return a || b; }

// Thread: (plane of the image, some of its rows). A is what is summed in.
template <typename A, typename T>
kernel void col2im(device const T *columns [[buffer(0)]], device A *image [[buffer(1)]], constant mps_im2col_arguments &a [[buffer(2)]],
                   uint2 position [[thread_position_in_grid]]) {
  const long plane = position.x, batch = plane / a.channels, channel = plane - batch * a.channels;
  const long width = a.image_size[1], to_step = a.stride[1] * a.image_stride[1], from_step = a.column_place;
  device A *to = image + batch * a.image_batch + channel * a.image_channel;
  device const T *from = columns + batch * a.column_batch + channel * a.window[0] * a.window[1] * a.column_row;
  const long begin = long(position.y) * a.rows, end = min(begin + a.rows, long(a.image_size[0]));
  for (long y = begin; y < end; y++) {
    device A *out = to + y * a.image_stride[0];
    for (long x = 0; x < width; x++) out[x * a.image_stride[1]] = A(0);
    for (long i = 0; i < a.window[0]; i++) {
      const long down = y + a.padding[0] - i * a.dilation[0], place = down / a.stride[0];
      if (down < 0 || place >= a.places[0] || place * a.stride[0] != down) continue;
      for (long j = 0; j < a.window[1]; j++) {
        const long left = j * a.dilation[1] - a.padding[1];
        const span run = inside(a, 1, left);
        device A *sums = out + left * a.image_stride[1];
        device const T *in = from + (i * a.window[1] + j) * a.column_row + place * a.places[1] * from_step;
        if (to_step == 1 && from_step == 1) {
          VECTORIZE
          for (long w = run.begin; w < run.end; w++) sums[w] = sum(sums[w], A(element(in + w)));
        } else {
          for (long w = run.begin; w < run.end; w++) sums[w * to_step] = sum(sums[w * to_step], A(element(in + w * from_step)));
        }
      }
    }
  }
}

#define IM2COL(NAME, T) \
  template [[host_name("im2col_" #NAME)]] kernel void im2col<T>(device const T *, device T *, constant mps_im2col_arguments &, uint2);
IM2COL(u8, uchar)
IM2COL(u16, ushort)
IM2COL(u32, uint)
IM2COL(u64, ulong)

#define COL2IM(NAME, A, T) \
  template [[host_name("col2im_" #NAME)]] kernel void col2im<A, T>(device const T *, device A *, constant mps_im2col_arguments &, uint2);
COL2IM(f32, float, float)
COL2IM(f16, float, half)
COL2IM(bf16, float, bfloat)
COL2IM(c64, float2, float2)
COL2IM(bool, bool, bool)
