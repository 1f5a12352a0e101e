// SPDX-License-Identifier: BSD-3-Clause
//
// amp: the two kernels of loss scaling: gradients are divided and looked at in one pass; the scale follows what was found.

#include <metal_stdlib>

using namespace metal;

#define CHUNK 4096

// Thread: a chunk of contiguous gradients. found_inf is only ever set to 1, by whoever finds something.
template <typename T>
kernel void amp_unscale(device T *gradients [[buffer(0)]], device atomic_uint *found_inf [[buffer(1)]], device const float *inverse_scale [[buffer(2)]],
                        constant long &count [[buffer(3)]], uint chunk [[thread_position_in_grid]]) {
  const long begin = long(chunk) * CHUNK, end = min(begin + CHUNK, count);
  const float factor = *inverse_scale;
  uint bad = 0;
  for (long i = begin; i < end; i++) {
    const float value = float(gradients[i]);
    bad |= (as_type<uint>(value) & 0x7f800000u) == 0x7f800000u ? 1u : 0u;
    gradients[i] = T(value * factor);
  }
  if (bad) atomic_store_explicit(found_inf, as_type<uint>(1.0f), memory_order_relaxed);
}

template [[host_name("amp_unscale_f32")]] kernel void amp_unscale<float>(device float *, device atomic_uint *, device const float *, constant long &, uint);
template [[host_name("amp_unscale_f16")]] kernel void amp_unscale<half>(device half *, device atomic_uint *, device const float *, constant long &, uint);
template [[host_name("amp_unscale_bf16")]] kernel void amp_unscale<bfloat>(device bfloat *, device atomic_uint *, device const float *, constant long &, uint);

struct amp_arguments {
  float growth, backoff;
  long interval;
};

kernel void amp_update_scale(device float *scale [[buffer(0)]], device int *tracker [[buffer(1)]], device const float *found_inf [[buffer(2)]],
                             constant amp_arguments &a [[buffer(3)]], uint position [[thread_position_in_grid]]) {
  if (*found_inf != 0.0f) {
    *scale *= a.backoff;
    *tracker = 0;
    return;
  }
  const int successes = *tracker + 1;
  if (successes == a.interval) {
    const float grown = *scale * a.growth;
    if (isfinite(grown)) *scale = grown;
    *tracker = 0;
  } else {
    *tracker = successes;
  }
}
