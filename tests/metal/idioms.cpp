// SPDX-License-Identifier: BSD-3-Clause
// Expressions as kernels write them, compiled only: mixed operands, components in every position, packed
// vectors in device memory, templates over vectors, constants. Nothing here is called.
#include <metal_stdlib>
using namespace metal;

template <typename T>
T by_reference(const T& x) { return x; }
template <typename T>
T by_value(T x) { return x; }

template <typename T, int N>
struct tile {
  vec<T, N> rows[4];
  T get(int i, int j) const { return rows[i][j]; }
  vec<T, 2> low() { return rows[0].xy; }
};

float components(float4 v, bool c) {
  float chosen = c ? v.x : v.y;
  return chosen + (v.x += 1) + by_reference(v.y) + by_value(v.z) + max(v.x, 0.f) + fma(v.x, v.y, v.z);
}
int indices(int4 i, device int* p, device float4* q) {
  switch (i.x) {
    case 1: return 2;
  }
  if (i.y) return p[i.z];
  auto pair = i.xy;
  auto later = [=]() { return pair.y; };
  return !i.w + later() + int(q[i.x].y) + int(sizeof(i.x)) + (i.x ? 3 : 4);
}
float device_vectors(device float4* q, int n) {
  q[n].x *= 2;
  q->y = 3;
  (*q).zw = float2(1);
  (q + 1)->xy += q->zw;
  decltype(q->x) z = q->x;
  return z;
}
bool conditions(bool4 b) { return (b.x && !b.y) || any(b.zw); }
half halves(half4 h) {
  half s = 0;
  for (ushort i = 0; i < 4; ++i) s += h[i];
  return s * h.x + half(2.0f);
}
float2 complex_product(float2 a, float2 b) { return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x}; }
float positions(uint3 gid, constant uint& width) { return float(gid.y * width + gid.x); }
bfloat bfloats(bfloat x, bool c) {
  bfloat y = c ? x : bfloat(0);
  y = x * 2 + y;
  return static_cast<bfloat>(float(y) * 0.5f);
}
float read_packed(device const packed_float3* p, uint i) {
  float3 v = p[i];
  return dot(v, float3(p[i + 1]));
}
void write_packed(device packed_float3* p, float3 v) {
  p[0] = v;
  p[1] = v.zyx * 2;
  p[2].x += 1;
}
float templates(tile<float, 4> a) { return a.get(1, 2) + a.low().y; }
constant constexpr float third = 1.0f / 3;
constexpr constant int table[] = {1, 2, 3};
int constants(int i) { return table[i] + int(third); }
float mixed_powers(float x, int n) { return pow(x, n) + ldexp(x, n) + pow(2, x); }
uint bits(uint2 p) { return (p.x << 16) | (p.y & 0xffff) | extract_bits(p.x, 3u, 2u); }
half4 to_half(float4 v) { return half4(v) * half(2) + half4(1); }
float scalars_beside_vectors(float4 v, float s) {
  return length(v.xyz) + clamp(v, 0, 1).x + mix(v, v, s).y + all(v > 0) + step(0.5f, v).x;
}
float mixed_scalars(half h, float f) { return h * f + max(float(h), f) + (h > 0 ? h : half(0)) + (h > f); }
long mixed_integers(long a, int b) { return a + b + max(a, long(b)) + long(min(size_t(a), size_t(b))); }
