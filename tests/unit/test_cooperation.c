/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_cooperation: kernels whose threads work together, compiled at run time: barriers, simd and quad functions of all types, loops and
 * branches that lanes take differently, partial groups, simdgroup matrices. Values are compared with plain C.
 */
#include <math.h>
#include <stdlib.h>

#include "base/options.h"
#include "host_device.h"

static void run(mps_library *library, const char *name, mps_buffer *const *buffers, uint32_t buffer_count, const uint64_t threads[3],
                const uint32_t group[3]) {
  mps_encoder encoder;
  mps_pipeline *pipeline = NULL;
  CHECK_OK(mps_library_pipeline(library, name, &pipeline));
  if (!pipeline) return;
  mps_encoder_begin(&encoder, stream, "test");
  mps_encoder_set_pipeline(&encoder, pipeline);
  for (uint32_t i = 0; i < buffer_count; i++) mps_encoder_set_buffer(&encoder, i, buffers[i], 0, MPS_ACCESS_READ_WRITE);
  mps_encoder_set_cost(&encoder, 1e6); /* several threads of the system, where there are */
  CHECK_OK(mps_encoder_dispatch(&encoder, threads, group));
  CHECK_OK(mps_stream_synchronize(stream));
}

#define GRID(...) (const uint64_t[3]){__VA_ARGS__}
#define GROUP(...) (const uint32_t[3]){__VA_ARGS__}

/* A number that every reader of the test finds again: small, and different for neighbours. */
static int number(uint32_t i) { return (int)(i * 7919u % 23u) - 9; }

/* ---- barriers ---- */
static const char barrier_source[] =
  "using namespace metal;\n"
  "kernel void total(device const int *in, device int *out, uint i [[thread_position_in_grid]], uint l [[thread_index_in_threadgroup]],\n"
  "                  uint n [[threads_per_threadgroup]], uint g [[threadgroup_position_in_grid]]) {\n"
  "  threadgroup int sums[1024];\n"
  "  sums[l] = in[i];\n"
  "  threadgroup_barrier(mem_flags::mem_threadgroup);\n"
  "  for (uint width = 1024; width > 0; width /= 2) {\n"
  "    if (l < width && l + width < n) sums[l] += sums[l + width];\n"
  "    threadgroup_barrier(mem_flags::mem_threadgroup);\n"
  "  }\n"
  "  if (l == 0) out[g] = sums[0];\n"
  "}\n"
  "kernel void transpose(device const float *in, device float *out, threadgroup float *tile [[threadgroup(0)]],\n"
  "                      uint2 p [[thread_position_in_grid]], uint2 size [[threads_per_grid]], uint2 l [[thread_position_in_threadgroup]],\n"
  "                      uint2 g [[threadgroup_position_in_grid]], uint2 n [[threads_per_threadgroup]]) {\n"
  "  tile[l.y * 9 + l.x] = in[p.y * size.x + p.x];\n"
  "  threadgroup_barrier(mem_flags::mem_threadgroup);\n"
  "  uint index = l.y * n.x + l.x, x = index % n.y, y = index / n.y;\n"
  "  out[(g.x * 8 + y) * size.y + g.y * 8 + x] = tile[x * 9 + y];\n"
  "}\n"
  "static void exchange(threadgroup int *t, uint a, uint b, bool up) {\n"
  "  int x = t[a], y = t[b];\n"
  "  if ((x > y) == up) { t[a] = y; t[b] = x; }\n"
  "}\n"
  "static void step(threadgroup int *t, uint l, uint k, uint j) {\n"
  "  if ((l ^ j) > l) exchange(t, l, l ^ j, (l & k) == 0);\n"
  "  threadgroup_barrier(mem_flags::mem_threadgroup);\n"
  "}\n"
  "kernel void bitonic(device int *data, uint i [[thread_position_in_grid]], uint l [[thread_index_in_threadgroup]]) {\n"
  "  threadgroup int t[1024];\n"
  "  t[l] = data[i];\n"
  "  threadgroup_barrier(mem_flags::mem_threadgroup);\n"
  "  for (uint k = 2; k <= 1024; k *= 2)\n"
  "    for (uint j = k / 2; j > 0; j /= 2) step(t, l, k, j);\n"
  "  data[i] = t[l];\n"
  "}\n"
  "kernel void leaves(device int *out, uint l [[thread_index_in_threadgroup]], uint i [[thread_position_in_grid]]) {\n"
  "  threadgroup int t[64];\n"
  "  int own[16];\n"
  "  for (int k = 0; k < 16; k++) own[k] = int(l) * k;\n"
  "  t[l] = int(l);\n"
  "  if (l % 3 == 2) { out[i] = -1; return; }\n"
  "  threadgroup_barrier(mem_flags::mem_threadgroup);\n"
  "  out[i] = t[63 - l] * 1000 + own[(l + uint(t[0])) % 16];\n"
  "}\n"
  "kernel void places(device uint *out, uint3 p [[thread_position_in_grid]], uint3 size [[threads_per_grid]],\n"
  "                   uint3 l [[thread_position_in_threadgroup]], uint3 n [[threads_per_threadgroup]], ushort i [[thread_index_in_threadgroup]],\n"
  "                   uint lane [[thread_index_in_simdgroup]], uint s [[simdgroup_index_in_threadgroup]],\n"
  "                   uint q [[thread_index_in_quadgroup]], uint qs [[quadgroup_index_in_threadgroup]], uint3 g [[threadgroup_position_in_grid]],\n"
  "                   uint count [[simdgroups_per_threadgroup]]) {\n"
  "  threadgroup_barrier(mem_flags::mem_none);\n"
  "  device uint *o = out + ((p.z * size.y + p.y) * size.x + p.x) * 13;\n"
  "  o[0] = l.x; o[1] = l.y; o[2] = l.z; o[3] = n.x * 10000 + n.y * 100 + n.z; o[4] = i; o[5] = lane; o[6] = s; o[7] = q; o[8] = qs;\n"
  "  o[9] = g.x; o[10] = g.y; o[11] = g.z; o[12] = count;\n"
  "}\n";

static int compare_ints(const void *a, const void *b) { return *(const int *)a < *(const int *)b ? -1 : *(const int *)a > *(const int *)b; }

static void reduces_with_barriers(void) {
  mps_library *library = compile(barrier_source);
  if (!library) return;
  static const uint32_t sizes[] = {2, 31, 32, 33, 64, 100, 256, 1000, 1024};
  enum { COUNT = 5000 };
  mps_buffer *buffers[2] = {make_buffer(COUNT * 4), make_buffer(COUNT * 4)};
  int *in = mps_buffer_contents(buffers[0]);
  const int *out = mps_buffer_contents(buffers[1]);
  for (uint32_t i = 0; i < COUNT; i++) in[i] = number(i);
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    run(library, "total", buffers, 2, GRID(COUNT, 1, 1), GROUP(sizes[s], 1, 1));
    int wrong = 0;
    for (uint32_t g = 0; g * sizes[s] < COUNT; g++) {
      int sum = 0;
      for (uint32_t i = g * sizes[s]; i < (g + 1) * sizes[s] && i < COUNT; i++) sum += in[i];
      wrong += out[g] != sum;
    }
    CHECK_INT(wrong, 0);
  }
  run(library, "total", buffers, 2, GRID(COUNT, 1, 1), NULL); /* the largest groups */
  int sum = 0;
  for (uint32_t i = 0; i < 1024; i++) sum += in[i];
  CHECK_INT(out[0], sum);
  for (uint32_t i = 0; i < 4096; i++) in[i] = number(i * 31) * 1000 + number(i);
  int *expected = malloc(4096 * sizeof *expected);
  memcpy(expected, in, 4096 * sizeof *expected);
  for (int g = 0; g < 4; g++) qsort(expected + g * 1024, 1024, sizeof *expected, compare_ints);
  run(library, "bitonic", buffers, 1, GRID(4096, 1, 1), GROUP(1024, 1, 1));
  CHECK(memcmp(in, expected, 4096 * sizeof *expected) == 0);
  free(expected);
  run(library, "leaves", buffers + 1, 1, GRID(640, 1, 1), GROUP(64, 1, 1));
  int wrong = 0;
  for (int i = 0; i < 640; i++) {
    int l = i % 64;
    wrong += out[i] != (l % 3 == 2 ? -1 : (63 - l) * 1000 + l * (l % 16));
  }
  CHECK_INT(wrong, 0);
  mps_buffer_release(buffers[0]);
  mps_buffer_release(buffers[1]);
  mps_library_release(library);
}

static void transposes_tiles(void) {
  mps_library *library = compile(barrier_source);
  if (!library) return;
  const uint32_t nx = 37, ny = 21;
  mps_buffer *buffers[2] = {make_buffer(nx * ny * 4), make_buffer(nx * ny * 4)};
  float *in = mps_buffer_contents(buffers[0]);
  const float *out = mps_buffer_contents(buffers[1]);
  for (uint32_t i = 0; i < nx * ny; i++) in[i] = (float)i;
  mps_pipeline *pipeline = NULL;
  CHECK_OK(mps_library_pipeline(library, "transpose", &pipeline));
  mps_encoder encoder;
  mps_encoder_begin(&encoder, stream, "transpose");
  mps_encoder_set_pipeline(&encoder, pipeline);
  mps_encoder_set_buffer(&encoder, 0, buffers[0], 0, MPS_ACCESS_READ);
  mps_encoder_set_buffer(&encoder, 1, buffers[1], 0, MPS_ACCESS_WRITE);
  mps_encoder_set_threadgroup_bytes(&encoder, 0, 9 * 8 * sizeof(float));
  mps_encoder_set_cost(&encoder, 1e6);
  CHECK_OK(mps_encoder_dispatch(&encoder, GRID(nx, ny, 1), GROUP(8, 8, 1)));
  CHECK_OK(mps_stream_synchronize(stream));
  int wrong = 0;
  for (uint32_t y = 0; y < ny; y++)
    for (uint32_t x = 0; x < nx; x++) wrong += out[x * ny + y] != in[y * nx + x];
  CHECK_INT(wrong, 0);
  mps_buffer_release(buffers[0]);
  mps_buffer_release(buffers[1]);
  mps_library_release(library);
}

static void tells_places_in_cut_groups(void) {
  mps_library *library = compile(barrier_source);
  if (!library) return;
  const uint32_t size[3] = {13, 7, 5}, group[3] = {5, 3, 4};
  mps_buffer *buffer = make_buffer(13 * 7 * 5 * 13 * 4);
  run(library, "places", &buffer, 1, GRID(13, 7, 5), group);
  const uint32_t *o = mps_buffer_contents(buffer);
  int wrong = 0;
  for (uint32_t i = 0; i < 13 * 7 * 5; i++, o += 13) {
    uint32_t p[3] = {i % 13, i / 13 % 7, i / 91}, l[3], n[3], g[3];
    for (int k = 0; k < 3; k++) {
      g[k] = p[k] / group[k];
      l[k] = p[k] % group[k];
      n[k] = size[k] - g[k] * group[k] < group[k] ? size[k] - g[k] * group[k] : group[k];
    }
    uint32_t index = (l[2] * n[1] + l[1]) * n[0] + l[0];
    const uint32_t expected[13] = {l[0], l[1], l[2], n[0] * 10000 + n[1] * 100 + n[2], index, index % 32, index / 32, index % 4, index / 4,
                                   g[0], g[1], g[2], (n[0] * n[1] * n[2] + 31) / 32};
    wrong += memcmp(o, expected, sizeof expected) != 0;
  }
  CHECK_INT(wrong, 0);
  mps_buffer_release(buffer);
  mps_library_release(library);
}

/* ---- simd and quad functions ---- */
#define OUTPUTS 42u
#define FAMILY(simd)                                                                                                                      \
  "  o[0] = " #simd "_sum(x); o[1] = " #simd "_product(x); o[2] = " #simd "_min(x); o[3] = " #simd "_max(x);\n"                            \
  "  o[4] = " #simd "_prefix_inclusive_sum(x); o[5] = " #simd "_prefix_exclusive_sum(x);\n"                                               \
  "  o[6] = " #simd "_prefix_inclusive_product(x); o[7] = " #simd "_prefix_exclusive_product(x);\n"                                       \
  "  o[8] = " #simd "_broadcast(x, 2); o[9] = " #simd "_broadcast_first(x); o[10] = " #simd "_shuffle(x, (l * 5 + 1) % 4);\n"             \
  "  o[11] = " #simd "_shuffle_xor(x, 3); o[12] = " #simd "_shuffle_down(x, 2); o[13] = " #simd "_shuffle_up(x, 1);\n"                    \
  "  o[14] = " #simd "_shuffle_rotate_down(x, 3); o[15] = " #simd "_shuffle_rotate_up(x, 1);\n"                                           \
  "  o[16] = " #simd "_shuffle_and_fill_down(x, y, 1); o[17] = " #simd "_shuffle_and_fill_up(x, y, 1);\n"                                 \
  "  o[18] = " #simd "_shuffle_and_fill_down(x, y, 1, 2); o[19] = " #simd "_shuffle_and_fill_up(x, y, 3, 4);\n"
/* T: the type; E: its element; values are small enough to be exact in any of them, products wrap or have factors of 1, -1, 2. */
static const char lanes_source[] =
  "using namespace metal;\n"
  "template <typename T> kernel void lanes(device const int *in, device T *out, uint i [[thread_position_in_grid]],\n"
  "                                        uint l [[thread_index_in_simdgroup]]) {\n"
  "  T x = T(in[i]), y = T(in[i] + 1);\n"
  "  device T *o = out + i * 42;\n" FAMILY(simd) "  o += 20; l %= 4;\n" FAMILY(quad)
  "}\n"
#define INSTANCE(T) "template [[host_name(\"lanes_" #T "\")]] kernel void lanes<" #T ">(device const int *, device " #T " *, uint, uint);\n"
  INSTANCE(char) INSTANCE(uchar) INSTANCE(short) INSTANCE(ushort) INSTANCE(int) INSTANCE(uint) INSTANCE(long) INSTANCE(ulong)
  INSTANCE(half) INSTANCE(bfloat) INSTANCE(float) INSTANCE(float2) INSTANCE(half3) INSTANCE(int4) INSTANCE(char2) INSTANCE(long4)
  INSTANCE(bfloat4);

typedef struct element_type {
  const char *name;
  uint32_t bytes, stride, count; /* of an element; elements from value to value, and those that matter */
  char kind;                     /* i, u, h, b, f */
} element_type;
static const element_type types[] = {
  {"char", 1, 1, 1, 'i'}, {"uchar", 1, 1, 1, 'u'}, {"short", 2, 1, 1, 'i'}, {"ushort", 2, 1, 1, 'u'}, {"int", 4, 1, 1, 'i'},
  {"uint", 4, 1, 1, 'u'}, {"long", 8, 1, 1, 'i'}, {"ulong", 8, 1, 1, 'u'}, {"half", 2, 1, 1, 'h'}, {"bfloat", 2, 1, 1, 'b'},
  {"float", 4, 1, 1, 'f'}, {"float2", 4, 2, 2, 'f'}, {"half3", 2, 4, 3, 'h'}, {"int4", 4, 4, 4, 'i'}, {"char2", 1, 2, 2, 'i'},
  {"long4", 8, 4, 4, 'i'}, {"bfloat4", 2, 4, 4, 'b'},
};

static double half_value(uint16_t bits) {
  int exponent = bits >> 10 & 31, fraction = bits & 1023;
  double value = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
  return bits >> 15 ? -value : value;
}

static double read_element(const void *at, const element_type *t) {
  int64_t value = 0;
  memcpy(&value, at, t->bytes);
  if (t->kind == 'f') {
    float f;
    memcpy(&f, at, 4);
    return (double)f;
  }
  if (t->kind == 'h') return half_value((uint16_t)value);
  if (t->kind == 'b') {
    uint32_t bits = (uint32_t)value << 16;
    float f;
    memcpy(&f, &bits, 4);
    return (double)f;
  }
  if (t->kind == 'i' && t->bytes < 8) value = (int64_t)((uint64_t)value << (64 - 8 * t->bytes)) >> (64 - 8 * t->bytes);
  return t->kind == 'u' ? (double)(uint64_t)value : (double)value;
}

/* What the type makes of an exact integer. */
static double wrap(int64_t value, const element_type *t) {
  if (t->kind != 'i' && t->kind != 'u') return (double)value;
  uint64_t bits = (uint64_t)value;
  return read_element(&bits, t);
}

/* Results of one family: `v` are the `count` active lanes' values of this group of `width`, from lane 0 on. */
static void expect_family(const int *v, uint32_t count, uint32_t width, uint32_t lane, int64_t out[20]) {
  int64_t sum = 0, product = 1, before = 0, factor = 1;
  int least = v[0], most = v[0];
  for (uint32_t i = 0; i < count; i++) {
    sum += v[i];
    product = (int64_t)((uint64_t)product * (uint64_t)(int64_t)v[i]);
    if (i < lane) before += v[i];
    if (i < lane) factor = (int64_t)((uint64_t)factor * (uint64_t)(int64_t)v[i]);
    if (v[i] < least) least = v[i];
    if (v[i] > most) most = v[i];
  }
#define LANE(n) ((n) < count ? v[n] : 0)
#define FILL(n) ((n) < count ? v[n] + 1 : v[lane] + 1)
#define DATA(n) ((n) < count ? v[n] : v[lane] + 1)
  const int64_t results[20] = {
    sum, product, least, most, before + v[lane], before, (int64_t)((uint64_t)factor * (uint64_t)(int64_t)v[lane]), factor,
    LANE(2), v[0], LANE((lane % width * 5 + 1) % 4), LANE(lane ^ 3), lane + 2 < width ? LANE(lane + 2) : v[lane], lane ? v[lane - 1] : v[0],
    LANE((lane + 3) % width), LANE((lane + width - 1) % width),
    lane + 1 < width ? DATA(lane + 1) : FILL(0), lane ? v[lane - 1] : FILL(width - 1),
    lane % 2 ? FILL(lane - 1) : DATA(lane + 1), lane % 4 == 3 ? v[lane - 3] : FILL(lane / 4 * 4 + (lane + 1) % 4)};
#undef LANE
#undef FILL
#undef DATA
  memcpy(out, results, sizeof results);
}

static void check_lanes(mps_library *library, const element_type *t, uint32_t count, uint32_t group) {
  char name[32];
  snprintf(name, sizeof name, "lanes_%s", t->name);
  mps_buffer *buffers[2] = {make_buffer(count * 4), make_buffer((size_t)count * OUTPUTS * t->stride * t->bytes)};
  int *in = mps_buffer_contents(buffers[0]);
  for (uint32_t i = 0; i < count; i++) in[i] = i % 11 == 3 ? 2 : i % 5 == 0 && t->kind != 'u' ? -1 : 1;
  run(library, name, buffers, 2, GRID(count, 1, 1), GROUP(group, 1, 1));
  const char *out = mps_buffer_contents(buffers[1]);
  int wrong = 0;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t start = i / group * group, in_group = i - start, size = count - start < group ? count - start : group;
    for (uint32_t f = 0; f < 2; f++) {
      uint32_t width = f ? 4 : 32, first = in_group / width * width, lanes = size - first < width ? size - first : width;
      int64_t expected[20];
      expect_family(in + start + first, lanes, width, in_group - first, expected);
      for (uint32_t k = 0; k < 20; k++)
        for (uint32_t e = 0; e < t->count; e++) {
          double got = read_element(out + (((size_t)i * OUTPUTS + f * 20 + k) * t->stride + e) * t->bytes, t);
          if (got == wrap(expected[k], t)) continue;
          if (wrong++ < 3) fprintf(stderr, "%s: thread %u of %u, %s %u: %g, expected %g\n", name, i, group, f ? "quad" : "simd", k, got,
                                   wrap(expected[k], t));
        }
    }
  }
  CHECK_INT(wrong, 0);
  mps_buffer_release(buffers[0]);
  mps_buffer_release(buffers[1]);
}

static void lanes_of_all_types(void) {
  mps_library *library = compile(lanes_source);
  if (!library) return;
  for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
    check_lanes(library, &types[t], 200, 64);
    check_lanes(library, &types[t], 71, 71);
    check_lanes(library, &types[t], 40, 1);
  }
  mps_library_release(library);
}

static const char bits_source[] =
  "using namespace metal;\n"
  "template <typename T> kernel void bits(device const int *in, device T *out, uint i [[thread_position_in_grid]]) {\n"
  "  T x = T(in[i]);\n"
  "  out[i * 6] = simd_and(x); out[i * 6 + 1] = simd_or(x); out[i * 6 + 2] = simd_xor(x);\n"
  "  out[i * 6 + 3] = quad_and(x); out[i * 6 + 4] = quad_or(x); out[i * 6 + 5] = quad_xor(x);\n"
  "}\n"
  "template [[host_name(\"bits_char\")]] kernel void bits<char>(device const int *, device char *, uint);\n"
  "template [[host_name(\"bits_ushort\")]] kernel void bits<ushort>(device const int *, device ushort *, uint);\n"
  "template [[host_name(\"bits_int\")]] kernel void bits<int>(device const int *, device int *, uint);\n"
  "template [[host_name(\"bits_long\")]] kernel void bits<long>(device const int *, device long *, uint);\n"
  "kernel void votes(device const int *in, device uint *out, uint i [[thread_position_in_grid]]) {\n"
  "  bool x = in[i] > 0;\n"
  "  device uint *o = out + i * 12;\n"
  "  o[0] = simd_all(x); o[1] = simd_any(x); o[2] = uint(simd_vote::vote_t(simd_ballot(x)));\n"
  "  o[3] = uint(simd_vote::vote_t(simd_active_threads_mask())); o[4] = simd_is_first(); o[5] = simd_is_helper_thread();\n"
  "  o[6] = quad_all(x); o[7] = quad_any(x); o[8] = uint(quad_vote::vote_t(quad_ballot(x)));\n"
  "  o[9] = uint(quad_vote::vote_t(quad_active_threads_mask())); o[10] = quad_is_first();\n"
  "  o[11] = uint(simd_shuffle_xor(x, 1)) + 2 * uint(simd_ballot(true).all()) + 4 * uint(simd_ballot(x).any());\n"
  "}\n";

static void check_bits(mps_library *library, const element_type *t) {
  enum { COUNT = 75 };
  char name[32];
  snprintf(name, sizeof name, "bits_%s", t->name);
  mps_buffer *buffers[2] = {make_buffer(COUNT * 4), make_buffer((size_t)COUNT * 6 * t->bytes)};
  int *in = mps_buffer_contents(buffers[0]);
  for (uint32_t i = 0; i < COUNT; i++) in[i] = number(i) * 3 | (i % 8 == 1 ? 0x55 : 0x40);
  run(library, name, buffers, 2, GRID(COUNT, 1, 1), GROUP(COUNT, 1, 1));
  const char *out = mps_buffer_contents(buffers[1]);
  int wrong = 0;
  for (uint32_t i = 0; i < COUNT; i++)
    for (uint32_t f = 0; f < 2; f++) {
      uint32_t width = f ? 4 : 32, first = i / width * width;
      int64_t all = -1, any = 0, odd = 0;
      for (uint32_t k = first; k < first + width && k < COUNT; k++) {
        all &= in[k];
        any |= in[k];
        odd ^= in[k];
      }
      const int64_t expected[3] = {all, any, odd};
      for (uint32_t k = 0; k < 3; k++) wrong += read_element(out + (i * 6 + f * 3 + k) * t->bytes, t) != wrap(expected[k], t);
    }
  CHECK_INT(wrong, 0);
  mps_buffer_release(buffers[0]);
  mps_buffer_release(buffers[1]);
}

static void bits_and_votes(void) {
  mps_library *library = compile(bits_source);
  if (!library) return;
  check_bits(library, &types[0]);
  check_bits(library, &types[3]);
  check_bits(library, &types[4]);
  check_bits(library, &types[6]);
  enum { COUNT = 200, SIZE = 90 };
  mps_buffer *buffers[2] = {make_buffer(COUNT * 4), make_buffer(COUNT * 12 * 4)};
  int *in = mps_buffer_contents(buffers[0]);
  for (uint32_t i = 0; i < COUNT; i++) in[i] = i < 40 || number(i) > -5;
  run(library, "votes", buffers, 2, GRID(COUNT, 1, 1), GROUP(SIZE, 1, 1));
  const uint32_t *out = mps_buffer_contents(buffers[1]);
  int wrong = 0;
  for (uint32_t i = 0; i < COUNT; i++) {
    uint32_t start = i / SIZE * SIZE, size = COUNT - start < SIZE ? COUNT - start : SIZE, first = (i - start) / 32 * 32;
    uint32_t quad = (i - start) / 4 * 4, votes = 0, there = 0;
    for (uint32_t k = 0; k < 32 && first + k < size; k++) {
      there |= 1u << k;
      votes |= (uint32_t)(in[start + first + k] > 0) << k;
    }
    uint32_t lane = i - start - first, quad_votes = votes >> (quad - first) & 15, quad_there = there >> (quad - first) & 15;
    const uint32_t expected[12] = {votes == there, votes != 0, votes, there, lane == 0, 0, quad_votes == quad_there, quad_votes != 0,
                                   quad_votes, quad_there, lane % 4 == 0, (votes >> (lane ^ 1) & 1) + 2u * (there == UINT32_MAX) + 4u * (votes != 0)};
    wrong += memcmp(out + i * 12, expected, sizeof expected) != 0;
  }
  CHECK_INT(wrong, 0);
  mps_buffer_release(buffers[0]);
  mps_buffer_release(buffers[1]);
  mps_library_release(library);
}

/* ---- lanes that go ways of their own ---- */
static const char ways_source[] =
  "using namespace metal;\n"
  "static uint helper(uint x) { return simd_sum(x); }\n"
  "template <typename T> struct adder { T seen; T add(T x) { for (int k = 0; k < 2; k++) seen += simd_sum(x); return seen; } };\n"
  "kernel void ways(device uint *out, uint i [[thread_position_in_grid]], uint l [[thread_index_in_simdgroup]]) {\n"
  "  device uint *o = out + i * 12;\n"
  "  if (l % 2 == 0) o[0] = simd_sum(1u); else o[0] = 100 + simd_sum(1u);\n"
  "  o[1] = simd_sum(1u);\n"
  "  uint sum = 0;\n"
  "  for (uint k = 0; k < l; k++) sum += simd_sum(1u);\n"                              /* trip counts of their own */
  "  o[2] = sum; o[3] = simd_sum(1u);\n"
  "  sum = 0; uint alone = 0;\n"
  "  for (uint k = 0; k < 32; k++) {\n"                                                /* one at a time, then all again */
  "    sum += simd_sum(1u);\n"
  "    if (k == l) alone += simd_sum(1u);\n"
  "  }\n"
  "  o[4] = sum; o[5] = alone;\n"
  "  sum = 0; uint k = 0;\n"
  "  while (true) {\n"                                                                  /* break and continue */
  "    k++;\n"
  "    if (k % 2 == 0) continue;\n"
  "    sum += simd_sum(1u);\n"
  "    if (k > l) break;\n"
  "  }\n"
  "  o[6] = sum; o[7] = simd_sum(1u);\n"
  "  sum = 0; k = 0;\n"
  "  do { sum += k == l ? 1000 : simd_sum(k == l ? 0u : 1u); } while (k++ < l % 4);\n"
  "  o[8] = simd_sum(1u);\n"
  "  o[9] = l < 10 ? helper(1) : 1000 + helper(2);\n"
  "  switch (l % 3) { case 0: o[10] = simd_max(l); break; case 1: o[10] = simd_min(l); break; default: o[10] = simd_sum(1u); }\n"
  "  if (l == 31) return;\n"
  "  adder<uint> a = {0}; o[11] = a.add(1u);\n"
  "}\n"
  "kernel void first_wins(device uint *out, uint i [[thread_position_in_grid]], uint l [[thread_index_in_simdgroup]]) {\n"
  "  uint left = i * 37 % 5, got = 0, rounds = 0;\n"                                     /* the loop over distinct values */
  "  while (simd_any(left != 99)) {\n"
  "    rounds++;\n"
  "    if (left != 99) {\n"
  "      uint value = simd_broadcast_first(left);\n"
  "      if (left == value) { got = simd_sum(1u); left = 99; }\n"
  "    }\n"
  "  }\n"
  "  out[i * 2] = got; out[i * 2 + 1] = rounds;\n"
  "}\n";

static void expect_ways(uint32_t l, uint32_t out[12]) {
  uint32_t trips = 0, breaks = 0;
  for (uint32_t k = 0; k < l; k++) trips += 31 - k;
  for (uint32_t k = 1;; k += 2) { /* lane m takes part in round k if it has not left before: k - 2 <= m */
    for (uint32_t m = 0; m < 32; m++) breaks += k < 2 || k - 2 <= m;
    if (k > l) break;
  }
  const uint32_t thirds[3] = {30, 1, 10};
  const uint32_t expected[12] = {l % 2 ? 116 : 16, 32, trips, 32, 32 * 32, 1, breaks, 32, 32, l < 10 ? 10 : 1044, thirds[l % 3], l == 31 ? 0 : 62};
  memcpy(out, expected, sizeof expected);
}

static void ways_of_their_own(void) {
  mps_library *library = compile(ways_source);
  if (!library) return;
  mps_buffer *buffer = make_buffer(128 * 12 * 4);
  run(library, "ways", &buffer, 1, GRID(128, 1, 1), GROUP(64, 1, 1));
  const uint32_t *out = mps_buffer_contents(buffer);
  for (uint32_t i = 0; i < 128; i++) {
    uint32_t expected[12];
    expect_ways(i % 32, expected);
    for (uint32_t k = 0; k < 12; k++) {
      if (out[i * 12 + k] == expected[k]) continue;
      test_failures++;
      if (i < 34) fprintf(stderr, "lane %u, result %u: %u, expected %u\n", i, k, out[i * 12 + k], expected[k]);
    }
  }
  run(library, "first_wins", &buffer, 1, GRID(32, 1, 1), GROUP(32, 1, 1));
  uint32_t counts[5] = {0};
  for (uint32_t i = 0; i < 32; i++) counts[i * 37 % 5]++;
  for (uint32_t i = 0; i < 32; i++) {
    CHECK_INT(out[i * 2], counts[i * 37 % 5]);
    CHECK_INT(out[i * 2 + 1], 5);
  }
  mps_buffer_release(buffer);
  mps_library_release(library);
}

/* ---- simdgroup matrices ---- */
static const char matrix_source[] =
  "#include <metal_simdgroup_matrix>\n"
  "using namespace metal;\n"
  "template <typename T> kernel void product(device const T *a, device const T *b, device float *c, uint2 g [[threadgroup_position_in_grid]],\n"
  "                                          uint s [[simdgroup_index_in_threadgroup]]) {\n"
  "  simdgroup_matrix<T, 8, 8> x, y;\n"
  "  simdgroup_float8x8 sum = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);\n"
  "  uint row = g.y * 8, column = (g.x * 2 + s) * 8;\n"
  "  for (uint k = 0; k < 40; k += 8) {\n"
  "    simdgroup_load(x, a + row * 40 + k, 40, 0, false);\n"
  "    simdgroup_load(y, b, 40, ulong2(k, column), true);\n"
  "    simdgroup_multiply_accumulate(sum, x, y, sum);\n"
  "  }\n"
  "  simdgroup_store(sum, c, 32, ulong2(column, row));\n"
  "}\n"
  "template [[host_name(\"product_float\")]] kernel void product<float>(device const float *, device const float *, device float *, uint2, uint);\n"
  "template [[host_name(\"product_half\")]] kernel void product<half>(device const half *, device const half *, device float *, uint2, uint);\n"
  "template [[host_name(\"product_bfloat\")]] kernel void product<bfloat>(device const bfloat *, device const bfloat *, device float *, uint2, uint);\n"
  "kernel void elements(device float *out, uint l [[thread_index_in_simdgroup]]) {\n"
  "  simdgroup_float8x8 one(1.0f), m; simdgroup_half8x8 h;\n"
  "  m.thread_elements()[0] = float(l * 2); m.thread_elements()[1] = float(l * 2 + 1);\n"
  "  simdgroup_store(m, out, 8);\n"
  "  simdgroup_store(m, out + 64, 8, ulong2(0), true);\n"
  "  simdgroup_store(m * one, out + 128, 8);\n"
  "  simdgroup_multiply(m, one, m);\n"
  "  out[192 + l * 2] = m.thread_elements()[0]; out[193 + l * 2] = m.thread_elements()[1];\n"
  "}\n";

static void multiplies_matrices(void) {
  mps_library *library = compile(matrix_source);
  if (!library) return;
  static const struct { const char *name; uint32_t bytes; } kinds[] = {{"product_float", 4}, {"product_half", 2}, {"product_bfloat", 2}};
  for (int k = 0; k < 3; k++) {
    mps_buffer *buffers[3] = {make_buffer(32 * 40 * 4), make_buffer(32 * 40 * 4), make_buffer(32 * 32 * 4)};
    double a[32 * 40], b[32 * 40];
    for (uint32_t i = 0; i < 32 * 40; i++) {
      a[i] = number(i), b[i] = number(i * 3 + 1);
      float fa = (float)a[i], fb = (float)b[i];
      uint32_t bits[2];
      memcpy(&bits[0], &fa, 4);
      memcpy(&bits[1], &fb, 4);
      for (int m = 0; m < 2; m++) {
        char *to = (char *)mps_buffer_contents(buffers[m]) + i * kinds[k].bytes;
        if (k == 0) memcpy(to, &bits[m], 4);
        /* small integers: exact in all three */
        uint16_t half = (uint16_t)(bits[m] ? (bits[m] >> 16 & 0x8000u) | (((bits[m] >> 23 & 255u) - 112u) << 10) | (bits[m] >> 13 & 1023u) : 0);
        uint16_t upper = (uint16_t)(bits[m] >> 16);
        if (k == 1) memcpy(to, &half, 2);
        if (k == 2) memcpy(to, &upper, 2);
      }
    }
    run(library, kinds[k].name, buffers, 3, GRID(2 * 64, 4, 1), GROUP(64, 1, 1));
    const float *c = mps_buffer_contents(buffers[2]);
    int wrong = 0;
    for (int row = 0; row < 32; row++)
      for (int column = 0; column < 32; column++) {
        double sum = 0;
        for (int i = 0; i < 40; i++) sum += a[row * 40 + i] * b[column * 40 + i];
        wrong += (double)c[row * 32 + column] != sum;
      }
    CHECK_INT(wrong, 0);
    for (int m = 0; m < 3; m++) mps_buffer_release(buffers[m]);
  }
  mps_buffer *buffer = make_buffer(256 * 4);
  run(library, "elements", &buffer, 1, GRID(32, 1, 1), GROUP(32, 1, 1));
  const float *out = mps_buffer_contents(buffer);
  int wrong = 0;
  for (uint32_t l = 0; l < 32; l++) {
    uint32_t quad = l / 4, row = (quad & 4) + l / 2 % 4, column = (quad & 2) * 2 + l % 2 * 2; /* as published kernels compute it */
    for (uint32_t e = 0; e < 2; e++) {
      float value = (float)(l * 2 + e);
      wrong += out[row * 8 + column + e] != value || out[64 + (column + e) * 8 + row] != value || out[128 + row * 8 + column + e] != value ||
               out[192 + l * 2 + e] != value;
    }
  }
  CHECK_INT(wrong, 0);
  mps_buffer_release(buffer);
  mps_library_release(library);
}

/* As loops over lanes, or with a stack for each thread. */
static void all_cases(const char *threads, const char *lanes) {
  mps_option_set(MPS_OPTION_THREADS, threads);
  mps_option_set(MPS_OPTION_SHADER_LANES, lanes);
  open_device();
  RUN(reduces_with_barriers);
  RUN(transposes_tiles);
  RUN(tells_places_in_cut_groups);
  if (strcmp(threads, "2") != 0) { /* whatever the number of workers: the cases above are run by all */
    RUN(ways_of_their_own);
    RUN(bits_and_votes);
    RUN(multiplies_matrices);
  }
  if (strcmp(threads, "1") == 0) RUN(lanes_of_all_types);
  mps_device_release(device);
}

int main(void) {
#if !defined(__SANITIZE_THREAD__) /* it takes microseconds for each switch among many fibers, and looks for what one worker cannot do */
  all_cases("1", "0");
  all_cases("2", "0");
#endif
  all_cases("5", "0");
  all_cases("5", "1");
  return test_end();
}
