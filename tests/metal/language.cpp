// SPDX-License-Identifier: BSD-3-Clause
// What a kernel's text may say: types, constructors, swizzles, operators, matrices, traits, integer and
// relational functions, atomics. Compiled as C++14 and C++17 for every target; on the levels that this
// machine runs, language_check() returns the line of the first expression that is wrong, or 0.
#include <metal_stdlib>
using namespace metal;

#define CHECK(condition)                 \
  do {                                   \
    if (!(condition)) return __LINE__;   \
  } while (0)

// ---- sizes and alignment, as Metal has them ----
static_assert(sizeof(float2) == 8 && alignof(float2) == 8, "float2");
static_assert(sizeof(float3) == 16 && alignof(float3) == 16, "float3");
static_assert(sizeof(float4) == 16 && alignof(float4) == 16, "float4");
static_assert(sizeof(half3) == 8 && sizeof(bfloat4) == 8 && sizeof(char3) == 4 && sizeof(ulong4) == 32, "others");
static_assert(sizeof(packed_float3) == 12 && alignof(packed_float3) == 4, "packed_float3");
static_assert(sizeof(packed_half2) == 4 && alignof(packed_half2) == 2, "packed_half2");
static_assert(sizeof(float3x3) == 48 && sizeof(half4x4) == 32, "matrices");
static_assert(sizeof(bool4) == 4 && sizeof(atomic_uint) == 4 && sizeof(atomic_ulong) == 8, "bool and atomics");

static_assert(__is_trivially_constructible(float4) && __is_trivially_constructible(packed_half3) &&
                  __is_trivially_constructible(float4x4) && __is_trivially_constructible(bfloat2) &&
                  __is_trivially_constructible(atomic_int) && is_trivially_copyable_v<float3>,
              "threadgroup memory starts without a constructor");

// ---- traits ----
static_assert(is_same_v<float2, vec<float, 2>> && !is_same_v<half, bfloat>, "is_same");
static_assert(is_floating_point_v<half> && is_floating_point_v<bfloat> && is_floating_point_v<float3>, "floating");
static_assert(is_integral_v<bool> && is_integral_v<ulong> && is_integral_v<char4> && !is_integral_v<half>, "integral");
static_assert(is_scalar_v<bfloat> && !is_scalar_v<float2> && is_signed_v<bfloat> && is_unsigned_v<uint3>, "scalar");
static_assert(is_same_v<enable_if_t<true, int>, int> && is_same_v<conditional_t<false, int, half>, half>, "choice");
static_assert(is_same_v<make_unsigned_t<long>, ulong> && is_same_v<remove_cv_t<const volatile float>, float>, "change");
static_assert(is_same_v<decltype(half() + half()), half> && is_same_v<decltype(half() * 1.0f), float>, "half rules");
static_assert(is_same_v<decltype(bfloat() + bfloat()), bfloat> && is_same_v<decltype(bfloat() * 1.0f), float>, "bfloat rules");
static_assert(is_same_v<decltype(bfloat() * 2), bfloat> && is_same_v<decltype(declval<bfloat>() < 1), bool>, "bfloat rules");

// ---- limits ----
static_assert(numeric_limits<int>::max() == INT_MAX && numeric_limits<uchar>::lowest() == 0, "limits");
static_assert(numeric_limits<float>::lowest() == -FLT_MAX && numeric_limits<half>::max() == HALF_MAX, "limits");
static_assert(numeric_limits<float>::epsilon() == FLT_EPSILON && numeric_limits<bfloat>::digits == 8, "limits");
static_assert(numeric_limits<float>::infinity() == INFINITY && numeric_limits<long>::min() == LONG_MIN, "limits");

// ---- constants at program scope ----
constant float4 corner = float4(1, 2, 3, 4);
constant float table[3] = {M_PI_F, M_E_F, INFINITY};
constexpr constant bool flag = is_same_v<half4, vec<half, 4>>;
static_assert(flag && sizeof(table) == 12, "constants");
constexpr constant bool forward = true; // metal::forward comes with <metal_utility> alone
static_assert(forward, "a program's own name");

template <typename T>
static T first_of(vec<T, 2> v) { return v.x; }

static int vectors() {
  float4 v(1.0f, 2.0f, 3.0f, 4.0f);
  CHECK(v.x == 1 && v.y == 2 && v.z == 3 && v.w == 4 && v[2] == 3);
  CHECK(v.r == 1 && v.g == 2 && v.b == 3 && v.a == 4);
  CHECK(all(v == corner));
  // Constructors.
  CHECK(all(float4(v.xy, v.zw) == v) && all(float4(v.x, v.yz, v.w) == v) && all(float4(v.xyz, 4) == v));
  CHECK(all(float4(1, v.yzw) == v) && all(float4(1, 2, v.zw) == v) && all(float4(v.xy, 3, 4) == v));
  CHECK(all(float3(v.xy, 3) == v.xyz) && all(float3(1, v.yz) == v.rgb) && all(float4(7) == float4(7, 7, 7, 7)));
  CHECK(all(int4(float4(1.9f, -1.9f, 0, 3)) == int4(1, -1, 0, 3)));
  CHECK(all(half2(v.xy) == half2(1, 2)));
  float2 listed = {5, 6};
  float3 one_value = 2;
  CHECK(listed.y == 6 && all(one_value == float3(2, 2, 2)));
  CHECK(all(uchar4(int4(255, 256, 257, 258)) == uchar4(255, 0, 1, 2)));
  // Swizzles, read and written.
  CHECK(all(v.wzyx == float4(4, 3, 2, 1)) && all(v.xxyy == float4(1, 1, 2, 2)) && all(v.bgr == float3(3, 2, 1)));
  CHECK(first_of(v.zw) == 3 && first_of(v.ab) == 4);
  v.zw = v.xy;
  CHECK(all(v == float4(1, 2, 1, 2)));
  v.xy += 10;
  v.wz *= float2(2, 3);
  v.x++;
  --v.y;
  CHECK(all(v == float4(12, 11, 3, 4)));
  v.xyz = float3(v.zxy);
  CHECK(all(v == float4(3, 12, 11, 4)));
  v.rgba = v.abgr;
  CHECK(all(v == float4(4, 11, 12, 3)));
  v[1] = -1;
  CHECK(v.y == -1);
  // Components in expressions: chains, conditions, templates, pointers to vectors.
  float chained = v.x = v.w = 8;
  CHECK(chained == 8 && (v.x += 1) == 9 && v.w == 8 && (v.xy = float2(2, 3)).y == 3 && v.y == 3);
  CHECK((v.x > 2 ? v.x : v.y) == 3 && max(v.x, 0.0f) == 2 && fma(v.x, v.y, 1.0f) == 7);
  float4 list[2] = {v, v};
  thread float4* second = list + 1;
  second->zw = list[0].xy;
  second[0].x *= 2;
  CHECK(all(list[1] == float4(4, 3, 2, 3)));
  // Operators: vector and scalar, either side; comparison; assignment; unary.
  float3 a(1, 2, 3), b(4, 5, 6);
  CHECK(all(a + b == float3(5, 7, 9)) && all(2 * a == float3(2, 4, 6)) && all(a / 2 == float3(0.5f, 1, 1.5f)));
  CHECK(all(-a == float3(-1, -2, -3)) && all((a < 2) == bool3(true, false, false)) && any(a == b - 3));
  a -= 1;
  a *= b;
  CHECK(all(a == float3(0, 5, 12)));
  int3 i(7, -7, 9);
  CHECK(all(i / 2 == int3(3, -3, 4)) && all(i % 4 == int3(3, -3, 1)) && all((i & 3) == int3(3, 1, 1)));
  CHECK(all((i << 1) == int3(14, -14, 18)) && all((i >> 1) == int3(3, -4, 4)) && all(~i == int3(-8, 6, -10)));
  CHECK(all(!(i > 0) == bool3(false, true, false)) && all((i ^ i) == 0) && all((i | 1) == int3(7, -7, 9)));
  i <<= int3(1, 0, 1);
  i++;
  CHECK(all(i == int3(15, -6, 19)));
  char2 small(127, -128);
  small += 1;
  CHECK(small.x == -128 && small.y == -127);
  CHECK(any(bool2(false, true)) && !all(bool2(false, true)) && all((i.xy > 0 || i.xy < 0) == true));
  // Packed.
  packed_float3 p(1, 2, 3);
  p[1] += 5;
  p.z = 9;
  float3 q = p;
  CHECK(all(q == float3(1, 7, 9)) && all(p + q == 2 * p) && all(p * 2 == float3(2, 14, 18)) && p.x == 1);
  p = q.zyx;
  p += 1;
  CHECK(p[0] == 10 && p[2] == 2);
  // Packed to another element type; scalars beside vectors in fma; how many elements a type has.
  packed_char4 bytes(1, -2, 3, -4);
  CHECK(all(float4(bytes) == float4(1, -2, 3, -4)) && all(int4(packed_float4(1.5f, 2, 3, 4)) == int4(1, 2, 3, 4)));
  CHECK(all(fma(float2(1, 2), 3.0f, float2(4, 5)) == float2(7, 11)) && all(fma(2.0f, float2(1, 2), float2(1)) == float2(3, 5)));
  CHECK(all(fma(float2(1, 2), float2(3, 4), 1.0f) == float2(4, 9)) && all(fma(float2(1, 2), 2.0f, 1.0f) == float2(3, 5)));
  static_assert(vec_elements<float>::value == 1 && vec_elements<half3>::value == 3 && vec_elements<packed_int2>::value == 2, "elements");
  return 0;
}

// Unions of vectors, named and nameless, are copied as their bytes. (Assigning one takes what the shader reader writes into it.)
union words { uint2 whole; uchar4 parts[2]; };
struct pair_of_views { int n; union { float4 v; float a[4]; }; };
static words joined(uint2 a, uint b) {
  words w;
  w.whole.x = a.x + b;
  w.whole[1] = a.y;
  w.whole += uint2(0, 1);
  return w;
}

static int unions() {
  const words w = joined(uint2(0x01020304u, 5), 1), copy = w;
  CHECK(copy.whole.x == 0x01020305u && all(copy.parts[0] == uchar4(5, 3, 2, 1)) && copy.parts[1].x == 6);
  words listed = {uint2(7, 8)};
  CHECK(listed.parts[1].x == 8);
  pair_of_views p;
  p.v = float4(1, 2, 3, 4);
  p.a[2] = 9;
  const pair_of_views q = p;
  CHECK(all(q.v == float4(1, 2, 9, 4)));
  constexpr float4 one = float4(1), two = one;
  static_assert(two.data[3] == 1, "a constant copy");
  return 0;
}

// Functions of bfloat and limits that a program brings itself, in Metal's namespace.
struct pair_of_ints { int a, b; };
namespace metal {
METAL_FUNC bfloat exp(bfloat x) { return static_cast<bfloat>(__metal_exp(static_cast<float>(x), __METAL_MAYBE_FAST_MATH__)) + bfloat(1); }
template <> struct _numeric_limits_impl<pair_of_ints> {
  static constexpr pair_of_ints max() { return pair_of_ints{INT_MAX, 0}; }
};
}  // namespace metal
namespace detail { static int own() { return 5; } }

static int brought() {
  CHECK(metal::exp(bfloat(0)) == 2 && metal::exp(half(0)) == 1 && numeric_limits<pair_of_ints>::max().a == INT_MAX && detail::own() == 5);
  assert(sizeof(int) == 4);
  return 0;
}

static int mixed_bfloat() {
  bfloat b = 3;  // integers convert, floats are cast
  float f = 1;
  f += b;
  f *= b;
  int i = 7;
  i -= b;
  half h = 1;
  h += b;
  CHECK(f == 12 && i == 4 && h == 4 && b + f == 15.0f && f - b == 9.0f && half(1) + b == 4.0f);
  CHECK(b < f && 3 == b && b != 4 && f >= b && b <= 3.0f && half(3) == b && bool(b) && !(!b));
  uint index = b;  // as kernels that sort or argsort in one text do
  bfloat chosen = f > 0 ? b : 0;
  float wide = f > 0 ? b : f;
  CHECK(index == 3 && chosen == b && wide == 3 && uchar(b) == 3 && long(b) == 3);
  ++b;
  b--;
  b -= 1.0f;
  b /= bfloat(2);
  CHECK(b == 1 && b++ == 1 && --b == 1 && pow(b, 2.0f) == 1 && max(b, bfloat(2)) == 2 && isfinite(b) && sign(b) == 1);
  return 0;
}

static int small_floats() {
  half h = 1.0f;
  h += 2048;
  CHECK(h == 2048.0f);  // 2049 is not a half; ties go to even
  CHECK(half(65519.0f) == HALF_MAX && isinf(half(65520.0f)) && half(5.9604645e-8f) == as_type<half>(ushort(1)));
  bfloat b = bfloat(1.0f);
  b = b + 256;
  CHECK(b == 256.0f);
  b += 4.0f;
  b *= bfloat(2);
  CHECK(b == 520.0f && -b < 0 && b > 519 && int(b) == 520 && bool(b) && 1.0f / b < 1);
  b++;
  CHECK(b == 520.0f);  // 521 rounds to 520
  CHECK(as_type<ushort>(bfloat(1.0f)) == 0x3f80 && as_type<ushort>(bfloat(NAN)) == 0x7fc0 && isnan(bfloat(NAN)));
  CHECK(as_type<uint>(1.0f) == 0x3f800000u && as_type<float2>(0x3f80000040000000ul).y == 1.0f);
  CHECK(all(as_type<ushort2>(0x00020001u) == ushort2(1, 2)));
  bfloat2 pair(1, 2);
  CHECK(all(pair * pair + bfloat(1) == bfloat2(2, 5)) && dot(pair, pair) == 5.0f);
  CHECK(b != bfloat(1) && b == b && bfloat(1) < b && b >= bfloat(2) && min(b, bfloat(3)) == 3);
  CHECK(max(half(1), half(2)) == 2 && clamp(bfloat(3), bfloat(0), bfloat(1)) == 1 && abs(half(-1)) == 1);
  CHECK(exp(half(0)) == 1 && sqrt(bfloat(4)) == 2 && fma(half(2), half(3), half(1)) == 7);
  return 0;
}

static int integers() {
  CHECK(popcount(0xf0f0u) == 8 && popcount(char(-1)) == 8 && popcount(long(-1)) == 64 && popcount(ushort(0)) == 0);
  CHECK(clz(1u) == 31 && clz(0u) == 32 && clz(uchar(1)) == 7 && clz(short(0)) == 16 && clz(1ul) == 63);
  CHECK(ctz(8u) == 3 && ctz(0u) == 32 && ctz(uchar(0)) == 8 && ctz(0ul) == 64);
  CHECK(mulhi(0x80000000u, 4u) == 2 && mulhi(-1, 1) == -1 && mulhi(ulong(1) << 63, 6ul) == 3 && mulhi(short(256), short(256)) == 1);
  CHECK(mulhi(long(-1), 1l) == -1 && madhi(0x80000000u, 4u, 5u) == 7);
  CHECK(addsat(uchar(200), uchar(100)) == 255 && addsat(INT_MAX, 1) == INT_MAX && subsat(3u, 4u) == 0 && subsat(char(-128), char(1)) == -128);
  CHECK(madsat(100000, 100000, 0) == INT_MAX && madsat(uchar(16), uchar(16), uchar(0)) == 255 && madsat(~0ul, 2ul, 0ul) == ~0ul && madsat(2u, 3u, 4u) == 10);
  CHECK(hadd(INT_MAX, INT_MAX - 2) == INT_MAX - 1 && rhadd(1u, 2u) == 2 && hadd(-1, -2) == -2 && hadd(1u, 2u) == 1);
  CHECK(rotate(0x80000001u, 1u) == 3 && rotate(uchar(0x81), uchar(4)) == 0x18 && rotate(5, 0) == 5 && rotate(1ul, 65ul) == 2);
  CHECK(absdiff(-2, 3) == 5u && absdiff(char(-128), char(127)) == 255 && abs(-5) == 5 && abs(long(-7)) == 7);
  CHECK(extract_bits(0xabcdu, 4, 8) == 0xbc && extract_bits(-1, 3, 5) == -1 && extract_bits(7u, 1, 0) == 0);
  CHECK(insert_bits(0u, 0xffu, 4, 4) == 0xf0 && reverse_bits(1u) == 0x80000000u && reverse_bits(uchar(1)) == 128);
  CHECK(mul24(3, -4) == -12 && mad24(3u, 4u, 5u) == 17);
  CHECK(max(3, 4) == 4 && min(3u, 4u) == 3 && clamp(-5, -3, 3) == -3 && max3(1, 5, 2) == 5 && median3(3, 1, 2) == 2);
  CHECK(all(max(int3(1, 5, 3), 2) == int3(2, 5, 3)) && all(clamp(int2(-9, 9), -1, 1) == int2(-1, 1)));
  CHECK(all(popcount(uint2(1, 3)) == uint2(1, 2)) && all(abs(int2(-1, 1)) == 1) && all(addsat(uchar2(255, 1), 1) == uchar2(255, 2)));
  return 0;
}

static int functions() {
  CHECK(isnan(NAN) && !isnan(INFINITY) && isinf(-INFINITY) && isfinite(1.0f) && !isfinite(half(INFINITY)));
  CHECK(isnormal(1.0f) && !isnormal(1e-40f) && signbit(-0.0f) && !signbit(half(0)) && isunordered(NAN, 1.0f));
  CHECK(all(isnan(float2(NAN, 1)) == bool2(true, false)) && select(1, 2, true) == 2);
  CHECK(all(select(float2(1, 2), float2(3, 4), bool2(false, true)) == float2(1, 4)));
  CHECK(all(select(int3(1), int3(2), int3(1, 2, 3) > 1) == int3(1, 2, 2)));
  CHECK(fmax(NAN, 1.0f) == 1 && fmin(1.0f, NAN) == 1 && isnan(max(NAN, NAN)) && max(-1.0f, -2.0f) == -1);
  CHECK(clamp(5.0f, 0.0f, 1.0f) == 1 && saturate(-1.0f) == 0 && saturate(NAN) == 0 && mix(1.0f, 3.0f, 0.5f) == 2);
  CHECK(sign(-3.0f) == -1 && sign(NAN) == 0 && signbit(sign(-0.0f)) && step(1.0f, 0.5f) == 0 && step(1.0f, 1.0f) == 1);
  CHECK(smoothstep(0.0f, 1.0f, 0.5f) == 0.5f && fmedian3(3.0f, 1.0f, 2.0f) == 2 && fract(-0.25f) == 0.75f);
  CHECK(all(max(float2(1, 4), float2(3, 2)) == float2(3, 4)) && all(min(1, float2(0, 2)) == float2(0, 1)));
  CHECK(all(exp(float3(0)) == 1) && all(floor(float2(1.5f, -1.5f)) == float2(1, -2)) && all(precise::sqrt(half2(4)) == 2));
  CHECK(fast::exp2(3.0f) == 8 && precise::pow(2.0f, 10.0f) == 1024 && all(pow(float2(2, 3), 2) == float2(4, 9)));
  float3 x(1, 0, 0), y(0, 1, 0);
  CHECK(dot(x, y) == 0 && all(cross(x, y) == float3(0, 0, 1)) && length(float2(3, 4)) == 5 && distance(x, x) == 0);
  CHECK(all(normalize(float2(0, 2)) == float2(0, 1)) && all(reflect(float2(1, -1), float2(0, 1)) == float2(1, 1)));
  float whole;
  int exponent;
  float2 cosine;
  CHECK(modf(2.5f, whole) == 0.5f && whole == 2 && frexp(8.0f, exponent) == 0.5f && exponent == 4 && ldexp(1.0f, -149) > 0);
  CHECK(all(sincos(float2(0), cosine) == 0) && all(cosine == 1) && ilogb(0.5f) == -1);
  CHECK(pack_float_to_unorm4x8(float4(0, 1, 0.5f, 2)) == 0xff80ff00u && unpack_unorm4x8_to_float(0xff000000u).w == 1);
  CHECK(all(unpack_snorm2x16_to_float(pack_float_to_snorm2x16(float2(-1, 1))) == float2(-1, 1)));
  return 0;
}

static int matrices() {
  float2x2 m(1, 2, 3, 4);  // columns (1, 2) and (3, 4)
  CHECK(all(m[1] == float2(3, 4)) && m[0][1] == 2 && all(m * float2(1, 1) == float2(4, 6)) && all(float2(1, 1) * m == float2(3, 7)));
  CHECK(m * m == float2x2(7, 10, 15, 22) && transpose(m)[0][1] == 3 && determinant(m) == -2);
  float3x3 identity(1.0f);
  CHECK(all(identity * float3(1, 2, 3) == float3(1, 2, 3)) && determinant(identity) == 1 && identity * 2 == identity + identity);
  float4x4 n(float4(2, 0, 0, 0), float4(0, 3, 0, 0), float4(0, 0, 4, 0), float4(1, 1, 1, 1));
  CHECK(determinant(n) == 24 && n - n == float4x4(0.0f));
  float2x3 wide(float3(1, 2, 3), float3(4, 5, 6));  // two columns of three
  CHECK(all(wide * float2(1, 1) == float3(5, 7, 9)) && all(transpose(wide)[2] == float2(3, 6)));
  half2x2 small(m);
  small[0].y = 9;
  CHECK(small[0][1] == 9 && float2x2(small)[1][0] == 3);
  return 0;
}

static int memory() {
  atomic_int counter;
  atomic_store_explicit(&counter, 5, memory_order_relaxed);
  CHECK(atomic_fetch_add_explicit(&counter, 3, memory_order_relaxed) == 5 && atomic_load_explicit(&counter, memory_order_relaxed) == 8);
  CHECK(atomic_fetch_max_explicit(&counter, 20, memory_order_relaxed) == 8 && atomic_fetch_min_explicit(&counter, -1, memory_order_relaxed) == 20);
  CHECK(atomic_exchange_explicit(&counter, 12, memory_order_relaxed) == -1 && atomic_fetch_and_explicit(&counter, 10, memory_order_relaxed) == 12);
  CHECK(atomic_fetch_or_explicit(&counter, 1, memory_order_relaxed) == 8 && atomic_fetch_xor_explicit(&counter, 15, memory_order_relaxed) == 9);
  CHECK(atomic_fetch_sub_explicit(&counter, 6, memory_order_relaxed) == 6);
  int expected = 1;
  CHECK(!atomic_compare_exchange_weak_explicit(&counter, &expected, 9, memory_order_relaxed, memory_order_relaxed) && expected == 0);
  atomic_float sum;
  atomic_store_explicit(&sum, 1, memory_order_relaxed);
  CHECK(atomic_fetch_add_explicit(&sum, 0.5f, memory_order_relaxed) == 1 && atomic_load_explicit(&sum, memory_order_relaxed) == 1.5f);
  atomic_ulong top;
  atomic_store_explicit(&top, 7, memory_order_relaxed);
  atomic_max_explicit(&top, 1ul << 40, memory_order_relaxed);
  CHECK(atomic_load_explicit(&top, memory_order_relaxed) == 1ul << 40);
  atomic<bool> done;
  atomic_store_explicit(&done, true, memory_order_relaxed);
  CHECK(atomic_load_explicit(&done, memory_order_relaxed));
  array<int, 3> list = {{1, 2, 3}};
  int total = 0;
  for (int v : list) total += v;
  CHECK(total == 6 && list.size() == 3 && list[2] == 3);
  threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
  simdgroup_barrier(mem_flags::mem_none);
  CHECK(simd_sum(3) == 3 && simd_prefix_exclusive_sum(3.0f) == 0 && simd_shuffle_down(float2(1, 2), 0).y == 2 && simd_any(true));
  CHECK(ctz(static_cast<ulong>(simd_ballot(true))) == 0 && simd_max(half(2)) == 2);
  return 0;
}

extern "C" int language_check() {
  if (int line = vectors()) return line;
  if (int line = small_floats()) return line;
  if (int line = unions()) return line;
  if (int line = brought()) return line;
  if (int line = mixed_bfloat()) return line;
  if (int line = integers()) return line;
  if (int line = functions()) return line;
  if (int line = matrices()) return line;
  return memory();
}

// A kernel as users write it.
kernel void scaled_sum(device const float4* a, constant float& factor, device float* result, threadgroup float* shared, uint i) {
  float4 v = a[i];
  v.xyz *= factor;
  shared[0] = dot(v, float4(1)) + v.w;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  result[i] = simd_sum(shared[0]);
}

extern "C" void add_many(device atomic_float* sum, device atomic_uint* count, int n) {
  for (int i = 0; i < n; ++i) {
    atomic_fetch_add_explicit(sum, 1.0f, memory_order_relaxed);
    atomic_fetch_add_explicit(count, 2u, memory_order_relaxed);
  }
}
