// SPDX-License-Identifier: BSD-3-Clause
//
// cdist: p-norm distances between rows, and their gradients. Sums run in the order of the columns, one distance a vector lane, so that they
// are those of a plain loop. The norms' rules at zero, infinity and NaN are PyTorch's.

#include <metal_stdlib>
#include "cdist_arguments.h"

using namespace metal;

// Iterations are independent.
#define VECTORIZE _Pragma("clang loop vectorize(assume_safety) unroll(disable)")
// All lanes at once: then the sums stay in registers from one column to the next.
#define ALL_LANES _Pragma("clang loop vectorize(assume_safety) vectorize_width(Lanes) interleave_count(1) unroll(disable)")

namespace {

// NaN stays.
inline float sign_of(float x) { return x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x; }

// How many columns differ.
struct norm_zero {
  static constexpr constant bool is_quick = true; // a few instructions an element
  static float add(float sum, float d, float) { return sum + (d > 0.0f ? 1.0f : d); }
  static float finish(float sum, float) { return sum; }
};
struct norm_one {
  static constexpr constant bool is_quick = true;
  static float add(float sum, float d, float) { return sum + d; }
  static float finish(float sum, float) { return sum; }
  static float scale(float, float) { return 1.0f; }
  static float backward(float d, float grad, float, float, float) { return grad * sign_of(d); }
};
// 0 < p < 2
struct norm_below_two {
  static float scale(float distance, float p) { return pow(distance, p - 1.0f); }
  static float backward(float d, float grad, float distance, float scale, float p) {
    if (distance == 0.0f || (d == 0.0f && p < 1.0f)) return 0.0f;
    return sign_of(d) * pow(fabs(d), p - 1.0f) * grad / scale;
  }
};
struct norm_two {
  static constexpr constant bool is_quick = true;
  static float add(float sum, float d, float) { return sum + d * d; }
  static float finish(float sum, float) { return sqrt(sum); }
  static float scale(float, float) { return 1.0f; }
  static float backward(float d, float grad, float distance, float, float) { return distance == 0.0f ? 0.0f : grad * d / distance; }
};
struct norm_general {
  static constexpr constant bool is_quick = false;
  static float add(float sum, float d, float p) { return sum + pow(d, p); }
  static float finish(float sum, float p) { return pow(sum, 1.0f / p); }
  static float scale(float distance, float p) { return pow(distance, p - 1.0f); }
  static float backward(float d, float grad, float distance, float scale, float p) {
    return distance == 0.0f ? 0.0f : d * pow(fabs(d), p - 2.0f) * grad / scale;
  }
};
// The largest; a NaN is passed over.
struct norm_infinite {
  static constexpr constant bool is_quick = true;
  static float add(float sum, float d, float) { return sum < d ? d : sum; }
  static float finish(float sum, float) { return sum; }
  static float scale(float, float) { return 1.0f; }
  static float backward(float d, float grad, float distance, float, float) {
    const float gap = fabs(fabs(d) - distance);
    return grad * sign_of(d) * (gap == 0.0f ? 1.0f : gap > 0.0f ? 1.0f - min(1.0f, ceil(gap)) : gap);
  }
};

// Where the distance of rows i < j stands.
inline long pair_of(long i, long j, long rows) { return i * (2 * rows - i - 1) / 2 + j - i - 1; }

}  // namespace

// Strips of Lanes distances, as long as they last.
template <typename Norm, int Lanes>
inline long distances(device const float *mine, device const float *columns, device float *to, long j, long end, constant mps_cdist_arguments &a) {
  const long length = a.length, others = a.others;
  const float p = a.p;
  for (; j + Lanes <= end; j += Lanes) {
    float sums[Lanes];
    for (int l = 0; l < Lanes; l++) sums[l] = 0.0f;
    device const float *y = columns + j;
    for (long k = 0; k < length; k++, y += others) {
      const float x = mine[k];
      if (Norm::is_quick) {
        ALL_LANES
        for (int l = 0; l < Lanes; l++) sums[l] = Norm::add(sums[l], fabs(x - y[l]), p);
      } else {
        VECTORIZE
        for (int l = 0; l < Lanes; l++) sums[l] = Norm::add(sums[l], fabs(x - y[l]), p);
      }
    }
    VECTORIZE
    for (int l = 0; l < Lanes; l++) to[j + l] = Norm::finish(sums[l], p);
  }
  return j;
}

// Thread: (row of x1, block of rows of x2). `columns` is x2 transposed.
template <typename Norm>
kernel void cdist(device const float *x1 [[buffer(0)]], device const float *columns [[buffer(1)]], device float *out [[buffer(2)]],
                  constant mps_cdist_arguments &a [[buffer(3)]], uint2 position [[thread_position_in_grid]]) {
  const long row = position.x, batch = row / a.rows, i = row - batch * a.rows;
  const long start = long(position.y) * a.block, end = min(start + a.block, long(a.others));
  device const float *mine = x1 + row * a.length, *matrix = columns + batch * a.length * a.others;
  device float *to = a.triangle ? out + pair_of(i, 0, a.others) : out + row * a.others;
  long j = a.triangle ? max(start, i + 1) : start;
  j = distances<Norm, 64>(mine, matrix, to, j, end, a);
  j = distances<Norm, 16>(mine, matrix, to, j, end, a);
  j = distances<Norm, 4>(mine, matrix, to, j, end, a);
  distances<Norm, 1>(mine, matrix, to, j, end, a);
}

// Strips of Lanes columns of the gradient of row i, as long as they last.
template <typename Norm, int Lanes>
inline long gradients(device const float *mine, device const float *x2, device const float *grad, device const float *distances, device float *to,
                      long i, long k, long end, constant mps_cdist_arguments &a) {
  const float p = a.p;
  for (; k + Lanes <= end; k += Lanes) {
    float sums[Lanes];
    for (int l = 0; l < Lanes; l++) sums[l] = 0.0f;
    for (long j = 0; j < a.others; j++) {
      if (a.triangle && j == i) continue;
      const long place = !a.triangle ? j : i < j ? pair_of(i, j, a.others) : pair_of(j, i, a.others);
      const float g = grad[place], distance = distances[place], scale = Norm::scale(distance, p);
      device const float *x = mine + k, *y = x2 + j * a.length + k;
      VECTORIZE
      for (int l = 0; l < Lanes; l++) sums[l] += Norm::backward(x[l] - y[l], g, distance, scale, p);
    }
    VECTORIZE
    for (int l = 0; l < Lanes; l++) to[k + l] = sums[l];
  }
  return k;
}

// Thread: (row of x1, block of columns). The gradient of x1; pairs are taken in the order of x2's rows.
template <typename Norm>
kernel void cdist_backward(device const float *x1 [[buffer(0)]], device const float *x2 [[buffer(1)]], device const float *grad [[buffer(2)]],
                           device const float *distances [[buffer(3)]], device float *out [[buffer(4)]], constant mps_cdist_arguments &a [[buffer(5)]],
                           uint2 position [[thread_position_in_grid]]) {
  const long row = position.x, batch = row / a.rows, i = row - batch * a.rows;
  const long end = min((long(position.y) + 1) * a.block, long(a.length)), first = a.triangle ? 0 : row * a.others;
  device const float *mine = x1 + row * a.length, *matrix = x2 + batch * a.others * a.length;
  device float *to = out + row * a.length;
  long k = long(position.y) * a.block;
  k = gradients<Norm, 64>(mine, matrix, grad + first, distances + first, to, i, k, end, a);
  k = gradients<Norm, 16>(mine, matrix, grad + first, distances + first, to, i, k, end, a);
  k = gradients<Norm, 4>(mine, matrix, grad + first, distances + first, to, i, k, end, a);
  gradients<Norm, 1>(mine, matrix, grad + first, distances + first, to, i, k, end, a);
}

#define CDIST(NAME)                                                                                                             \
  template [[host_name("cdist_" #NAME)]] kernel void cdist<norm_##NAME>(device const float *, device const float *, device float *, \
                                                                        constant mps_cdist_arguments &, uint2);
CDIST(zero)
CDIST(one)
CDIST(two)
CDIST(general)
CDIST(infinite)

#define BACKWARD(NAME)                                                                                                                    \
  template [[host_name("cdist_backward_" #NAME)]] kernel void cdist_backward<norm_##NAME>(device const float *, device const float *,      \
                                                                                          device const float *, device const float *,      \
                                                                                          device float *, constant mps_cdist_arguments &, uint2);
BACKWARD(one)
BACKWARD(below_two)
BACKWARD(two)
BACKWARD(general)
BACKWARD(infinite)
