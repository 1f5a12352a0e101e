/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_texture: textures and samplers of Metal kernels: each pixel format read and written, sampling against a second implementation in
 * double, levels, slices, what lies outside, arguments without an index, and what is refused. Needs a clang (OPENMPS_CLANG).
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "runtime/texture.h"
#include "host_device.h"

static const char source[] =
  "#include <metal_stdlib>\n"
  "using namespace metal;\n"
  "kernel void read_float(texture2d<float, access::read> t [[texture(0)]], device float4 *out [[buffer(0)]], uint2 p [[thread_position_in_grid]]) {\n"
  "  out[p.y * t.get_width() + p.x] = t.read(p); }\n"
  "kernel void read_half(texture2d<half> t, device half4 *out, uint2 p [[thread_position_in_grid]]) {\n"
  "  out[p.y * t.get_width() + p.x] = t.read(ushort2(p)); }\n"
  "kernel void read_int(texture2d<int> t, device int4 *out, uint2 p [[thread_position_in_grid]]) { out[p.y * t.get_width() + p.x] = t.read(p); }\n"
  "kernel void read_uint(texture2d<uint> t, device uint4 *out, uint2 p [[thread_position_in_grid]]) { out[p.y * t.get_width() + p.x] = t.read(p); }\n"
  "kernel void write_float(texture2d<float, access::write> t, device const float4 *in, uint2 p [[thread_position_in_grid]]) {\n"
  "  t.write(in[p.y * t.get_width() + p.x], p); }\n"
  "kernel void write_int(texture2d<int, access::write> t, device const int4 *in, uint2 p [[thread_position_in_grid]]) {\n"
  "  t.write(in[p.y * t.get_width() + p.x], p); }\n"
  "kernel void write_uint(texture2d<uint, access::read_write> t, device const uint4 *in, uint2 p [[thread_position_in_grid]]) {\n"
  "  t.write(in[p.y * t.get_width() + p.x], p); t.fence(); }\n"
  "kernel void sample1(texture1d<float> t, sampler s, device const float4 *at, device float4 *out, uint i [[thread_position_in_grid]]) {\n"
  "  out[i] = t.sample(s, at[i].x); }\n"
  "kernel void sample2(texture2d<float> t, sampler s, device const float4 *at, device float4 *out, uint i [[thread_position_in_grid]]) {\n"
  "  out[i] = t.sample(s, at[i].xy); }\n"
  "kernel void sample3(texture3d<float> t, sampler s, device const float4 *at, device float4 *out, uint i [[thread_position_in_grid]]) {\n"
  "  out[i] = t.sample(s, at[i].xyz); }\n"
  "kernel void slices(texture2d_array<float> t, sampler s, device const float4 *at, device float4 *out, uint i [[thread_position_in_grid]]) {\n"
  "  out[i] = t.sample(s, at[i].xy, uint(at[i].z)); }\n"
  "kernel void levels(texture2d<float> t, sampler s, device const float4 *at, device float4 *out, uint i [[thread_position_in_grid]]) {\n"
  "  out[i] = t.sample(s, at[i].xy, level(at[i].w)); }\n"
  "kernel void footprints(texture2d<float> t, sampler s, device const float4 *at, device float4 *out, uint i [[thread_position_in_grid]]) {\n"
  "  out[i] = t.sample(s, at[i].xy, gradient2d(float2(exp2(at[i].w) / t.get_width(), 0), float2(0))); }\n"
  "kernel void shifted(texture2d<float> t, sampler s, device const float4 *at, device float4 *out, uint i [[thread_position_in_grid]]) {\n"
  "  out[i] = t.sample(s, at[i].xy, int2(2, -1)); }\n"
  "kernel void gathered(texture2d<float> t, sampler s, device const float4 *at, device float4 *out, uint i [[thread_position_in_grid]]) {\n"
  "  out[i] = t.gather(s, at[i].xy, int2(0), component::y); }\n"
  "kernel void fixed(texture2d<float> t, device const float4 *at, device float4 *out, uint i [[thread_position_in_grid]]) {\n"
  "  constexpr sampler s(coord::pixel, s_address::mirrored_repeat, t_address::clamp_to_border, border_color::opaque_white, filter::linear);\n"
  "  out[i] = t.sample(s, at[i].xy); }\n"
  "kernel void outside(texture2d<float, access::read_write> t, texture3d<float> none [[texture(5)]], device float4 *out) {\n"
  "  t.write(float4(1), uint2(t.get_width(), 0)); t.write(float4(1), uint2(0, t.get_height())); t.write(float4(1), uint2(~0u, 0));\n"
  "  out[0] = t.read(uint2(t.get_width(), 0)); out[1] = t.read(uint2(0), 1); out[2] = none.read(uint3(0));\n"
  "  out[3] = float4(is_null_texture(t), is_null_texture(none), none.get_width(), t.get_num_mip_levels()); }\n"
  "kernel void several(array<texture2d<uint>, 3> t [[texture(2)]], texture2d<uint> first, device uint *out) {\n"
  "  out[0] = first.read(uint2(0)).x; for (int i = 0; i < 3; i++) out[i + 1] = t[i].read(uint2(0)).x; }\n"
  "kernel void blocks(texture2d<float> t, texture2d<float, access::write> small, uint2 p [[thread_position_in_grid]], uint l [[thread_index_in_threadgroup]],\n"
  "                   uint2 g [[threadgroup_position_in_grid]]) {\n"
  "  threadgroup float4 sums[64];\n"
  "  sums[l] = t.read(p);\n"
  "  for (uint n = 32; n > 0; n /= 2) { threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_texture); if (l < n) sums[l] += sums[l + n]; }\n"
  "  if (l == 0) small.write(sums[0] / 64, g); }\n"
  "kernel void lines(texture1d_array<float, access::read> a, texture1d_array<float, access::write> b, texture_buffer<int, access::read_write> c,\n"
  "                  uint2 p [[thread_position_in_grid]]) {\n"
  "  b.write(a.read(p.x, a.get_array_size() - 1 - p.y), p.x, p.y); if (p.y == 0) c.write(c.read(p.x) + 1, p.x); }\n";

static mps_library *library;
static mps_encoder encoder;

static void begin(const char *kernel) {
  mps_pipeline *pipeline = NULL;
  CHECK_OK(mps_library_pipeline(library, kernel, &pipeline));
  mps_encoder_begin(&encoder, stream, "test");
  mps_encoder_set_pipeline(&encoder, pipeline);
}

static void finish(uint32_t x, uint32_t y) {
  CHECK_OK(mps_encoder_dispatch(&encoder, (uint64_t[]){x, y, 1}, NULL));
  CHECK_OK(mps_stream_synchronize(stream));
}

static mps_texture *make_texture(mps_texture_type type, mps_pixel_format format, uint32_t width, uint32_t height, uint32_t depth, uint32_t slices,
                                 uint32_t levels) {
  mps_texture *texture = NULL;
  CHECK_OK(mps_texture_create(device, stream, &(mps_texture_descriptor){type, format, width, height, depth, slices, levels}, &texture));
  return texture;
}

static uint32_t random_state = 1;
static uint32_t random_bits(void) { return random_state = random_state * 1664525u + 1013904223u, random_state >> 8; }
static float random_float(float low, float high) { return low + (high - low) * (float)(random_bits() & 0xFFFF) / 65535.0f; }

/* ---- formats ---- */
enum { WIDTH = 13, HEIGHT = 7, TEXELS = WIDTH * HEIGHT };

typedef struct format {
  const char *name;
  mps_pixel_format number;
  int channel, order;
  unsigned components, bytes;
} format;

static const format formats[] = {
#define X(name, number, channel, order, components, bytes) {#name, number, MPS_TEXEL_##channel, MPS_TEXEL_##order, components, bytes},
  MPS_PIXEL_FORMAT_LIST(X)
#undef X
};

static bool is_integer(int channel) {
  return channel == MPS_TEXEL_UINT8 || channel == MPS_TEXEL_SINT8 || channel == MPS_TEXEL_UINT16 || channel == MPS_TEXEL_SINT16 ||
         channel == MPS_TEXEL_UINT32 || channel == MPS_TEXEL_SINT32 || channel == MPS_TEXEL_UINT10_2;
}
static bool is_signed(int channel) { return channel == MPS_TEXEL_SINT8 || channel == MPS_TEXEL_SINT16 || channel == MPS_TEXEL_SINT32; }

/* A component as it is stored: bits from `from` on. */
static double decode(int channel, const unsigned char *texel, unsigned i) {
  uint16_t bits16;
  uint32_t bits32;
  _Float16 half;
  float single;
  memcpy(&bits32, texel, channel == MPS_TEXEL_UNORM10_2 || channel == MPS_TEXEL_UINT10_2 ? 4 : 0);
  switch (channel) {
    case MPS_TEXEL_UNORM8: return texel[i] / 255.0;
    case MPS_TEXEL_UNORM8_SRGB: {
      double c = texel[i] / 255.0;
      return i == 3 ? c : c <= 0.04045 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4);
    }
    case MPS_TEXEL_SNORM8: return fmax((signed char)texel[i] / 127.0, -1.0);
    case MPS_TEXEL_UINT8: return texel[i];
    case MPS_TEXEL_SINT8: return (signed char)texel[i];
    case MPS_TEXEL_UNORM10_2: return i == 3 ? (bits32 >> 30) / 3.0 : (bits32 >> 10 * i & 1023) / 1023.0;
    case MPS_TEXEL_UINT10_2: return i == 3 ? bits32 >> 30 : bits32 >> 10 * i & 1023;
    case MPS_TEXEL_FLOAT16: return memcpy(&half, texel + 2 * i, 2), (double)half;
    case MPS_TEXEL_FLOAT32: return memcpy(&single, texel + 4 * i, 4), (double)single;
    case MPS_TEXEL_UINT32: return memcpy(&bits32, texel + 4 * i, 4), bits32;
    case MPS_TEXEL_SINT32: return memcpy(&bits32, texel + 4 * i, 4), (int32_t)bits32;
  }
  memcpy(&bits16, texel + 2 * i, 2);
  if (channel == MPS_TEXEL_UNORM16) return bits16 / 65535.0;
  if (channel == MPS_TEXEL_SNORM16) return fmax((int16_t)bits16 / 32767.0, -1.0);
  return channel == MPS_TEXEL_SINT16 ? (double)(int16_t)bits16 : (double)bits16;
}

/* What a kernel reads as component `c`, red first. */
static double expected(const format *f, const unsigned char *texel, unsigned c) {
  if (f->order == MPS_TEXEL_ALPHA) return c == 3 ? decode(f->channel, texel, 0) : 0.0;
  if (f->order == MPS_TEXEL_BGRA && c < 3) c = 2 - c;
  return c < f->components ? decode(f->channel, texel, c) : c == 3;
}

static void fill(const format *f, unsigned char *bytes, size_t size) {
  for (size_t i = 0; i < size; i++) bytes[i] = (unsigned char)random_bits();
  for (size_t i = 0; f->channel == MPS_TEXEL_FLOAT32 && i + 4 <= size; i += 4) memcpy(bytes + i, &(float){random_float(-9, 9)}, 4);
  for (size_t i = 0; f->channel == MPS_TEXEL_FLOAT16 && i + 2 <= size; i += 2) memcpy(bytes + i, &(_Float16){(_Float16)random_float(-9, 9)}, 2);
}

/* The texture lies in a buffer, with gaps between rows. */
static void reads(const format *f) {
  enum { GAP = 3, OFFSET = 32 };
  uint64_t row = (uint64_t)(WIDTH + GAP) * f->bytes;
  mps_buffer *memory = make_buffer(OFFSET + row * HEIGHT), *out = make_buffer(TEXELS * 16);
  unsigned char *bytes = mps_buffer_contents(memory);
  mps_texture *texture = NULL;
  fill(f, bytes, OFFSET + row * HEIGHT);
  CHECK_OK(mps_texture_create_with_buffer(memory, OFFSET, row, &(mps_texture_descriptor){.type = MPS_TEXTURE_2D, .format = f->number, .width = WIDTH, .height = HEIGHT}, &texture));
  begin(!is_integer(f->channel) ? "read_float" : is_signed(f->channel) ? "read_int" : "read_uint");
  mps_encoder_set_texture(&encoder, 0, texture);
  mps_encoder_set_buffer(&encoder, 0, out, 0, MPS_ACCESS_WRITE);
  finish(WIDTH, HEIGHT);
  mps_texture_release(texture);
  unsigned wrong = 0;
  for (unsigned i = 0; i < TEXELS * 4; i++) {
    const unsigned char *texel = bytes + OFFSET + i / 4 / WIDTH * row + i / 4 % WIDTH * f->bytes;
    double value = expected(f, texel, i % 4), is;
    const void *contents = mps_buffer_contents(out);
    if (!is_integer(f->channel)) is = (double)((const float *)contents)[i];
    else is = is_signed(f->channel) ? (double)((const int32_t *)contents)[i] : (double)((const uint32_t *)contents)[i];
    wrong += !(fabs(is - value) <= (is_integer(f->channel) ? 0.0 : 1e-6 * fmax(1.0, fabs(value))));
  }
  if (wrong) fprintf(stderr, "%s: %u wrong components\n", f->name, wrong);
  CHECK_INT(wrong, 0);
  mps_buffer_release(out);
  mps_buffer_release(memory);
}

/* The nearest number that the format has: what is written and read again differs by at most half a step. */
static double step_of(int channel, double value) {
  switch (channel) {
    case MPS_TEXEL_UNORM8: return 1 / 255.0;
    case MPS_TEXEL_UNORM8_SRGB: return 2.5 / 255.0; /* the steepest part */
    case MPS_TEXEL_SNORM8: return 1 / 127.0;
    case MPS_TEXEL_UNORM16: return 1 / 65535.0;
    case MPS_TEXEL_SNORM16: return 1 / 32767.0;
    case MPS_TEXEL_UNORM10_2: return 1 / 1023.0;
    case MPS_TEXEL_FLOAT16: return fabs(value) / 1024.0;
  }
  return 0;
}

static double held(int channel, double value) {
  static const double bounds[][2] = {[MPS_TEXEL_UNORM8] = {0, 1}, [MPS_TEXEL_UNORM8_SRGB] = {0, 1}, [MPS_TEXEL_SNORM8] = {-1, 1},
    [MPS_TEXEL_UINT8] = {0, 255}, [MPS_TEXEL_SINT8] = {-128, 127}, [MPS_TEXEL_UNORM16] = {0, 1}, [MPS_TEXEL_SNORM16] = {-1, 1},
    [MPS_TEXEL_UINT16] = {0, 65535}, [MPS_TEXEL_SINT16] = {-32768, 32767}, [MPS_TEXEL_FLOAT16] = {-65504, 65504},
    [MPS_TEXEL_UINT32] = {0, UINT32_MAX}, [MPS_TEXEL_SINT32] = {INT32_MIN, INT32_MAX}, [MPS_TEXEL_FLOAT32] = {-FLT_MAX, FLT_MAX},
    [MPS_TEXEL_UNORM10_2] = {0, 1}, [MPS_TEXEL_UINT10_2] = {0, 1023}};
  return fmin(fmax(value, bounds[channel][0]), bounds[channel][1]);
}

static void writes(const format *f) {
  mps_texture *texture = make_texture(MPS_TEXTURE_2D, f->number, WIDTH, HEIGHT, 0, 0, 0);
  mps_buffer *in = make_buffer(TEXELS * 16);
  double values[TEXELS * 4];
  for (unsigned i = 0; i < TEXELS * 4; i++) {
    float single = i == 0 ? 0.0f : i == 5 ? 1.0f : i == 6 ? -1.0f : random_float(-1.5f, 1.5f);
    int32_t whole = (int32_t)(random_bits() << 8) >> (random_bits() % 32);
    uint32_t natural = (uint32_t)whole;
    if (!is_integer(f->channel)) ((float *)mps_buffer_contents(in))[i] = single, values[i] = (double)single;
    else if (is_signed(f->channel)) ((int32_t *)mps_buffer_contents(in))[i] = whole, values[i] = whole;
    else ((uint32_t *)mps_buffer_contents(in))[i] = natural, values[i] = natural;
  }
  begin(!is_integer(f->channel) ? "write_float" : is_signed(f->channel) ? "write_int" : "write_uint");
  mps_encoder_set_texture(&encoder, 0, texture);
  mps_encoder_set_buffer(&encoder, 0, in, 0, MPS_ACCESS_READ);
  finish(WIDTH, HEIGHT);
  unsigned char bytes[TEXELS * 16];
  CHECK_OK(mps_texture_get_bytes(texture, &(mps_texture_region){.size = {WIDTH, HEIGHT}}, bytes, 0, 0));
  unsigned wrong = 0;
  for (unsigned i = 0; i < TEXELS * 4; i++) {
    unsigned c = i % 4;
    if (f->order == MPS_TEXEL_ALPHA ? c < 3 : c >= f->components) continue;
    double value = held(f->channel, values[i]), most = step_of(f->channel, value) * 0.505; /* ties in float */
    if (c == 3 && f->channel == MPS_TEXEL_UINT10_2) value = fmin(value, 3);
    if (c == 3 && f->channel == MPS_TEXEL_UNORM10_2) most = 0.16667;
    wrong += !(fabs(expected(f, bytes + i / 4 * f->bytes, c) - value) <= most);
  }
  if (wrong) fprintf(stderr, "%s: %u components written wrong\n", f->name, wrong);
  CHECK_INT(wrong, 0);
  mps_buffer_release(in);
  mps_texture_release(texture);
}

static void formats_are_read_and_written(void) {
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
    reads(&formats[i]);
    writes(&formats[i]);
  }
}

/* ---- sampling, once more in double ---- */
enum { SIDE = 6, DEEP = 3, PLACES = 400 };
static float texels[DEEP][SIDE][SIDE][4]; /* as many as needed */

typedef struct image {
  int width, height, depth, dimensions;
  int components;
} image;

static long wrap(long i, long n, mps_sampler_address mode) {
  if (mode == MPS_SAMPLER_CLAMP_TO_EDGE) return i < 0 ? 0 : i >= n ? n - 1 : i;
  if (mode == MPS_SAMPLER_REPEAT) return i - (long)floor((double)i / (double)n) * n;
  if (mode == MPS_SAMPLER_MIRROR_REPEAT) {
    long m = i - (long)floor((double)i / (double)(2 * n)) * 2 * n;
    return m < n ? m : 2 * n - 1 - m;
  }
  return i >= 0 && i < n ? i : mode == MPS_SAMPLER_CLAMP_TO_ZERO ? -1 : -2;
}

static double texel(const image *m, const mps_sampler_descriptor *s, const long at[3], int c) {
  long x = wrap(at[0], m->width, s->s_address), y = m->dimensions > 1 ? wrap(at[1], m->height, s->t_address) : 0;
  long z = m->dimensions > 2 ? wrap(at[2], m->depth, s->r_address) : at[2];
  if (x < 0 || y < 0 || z < 0) {
    mps_sampler_border_color color = x == -2 || y == -2 || z == -2 ? s->border_color : MPS_SAMPLER_TRANSPARENT_BLACK;
    return c == 3 ? m->components < 4 || color != MPS_SAMPLER_TRANSPARENT_BLACK : color == MPS_SAMPLER_OPAQUE_WHITE;
  }
  return c < m->components ? (double)texels[z][y][x][c] : c == 3;
}

static double sampled(const image *m, const mps_sampler_descriptor *s, const float where[3], int c, bool linear) {
  double size[3] = {m->width, m->height, m->depth}, at[3], sum = 0;
  long whole[3];
  for (int i = 0; i < 3; i++) {
    at[i] = (double)where[i] * (s->pixel_coordinates ? 1 : size[i]) - (linear ? 0.5 : 0);
    if (i >= m->dimensions) at[i] = i == 2 && m->dimensions == 2 && m->depth > 1 ? (double)where[2] : 0; /* a slice */
    whole[i] = (long)floor(at[i]);
  }
  if (!linear) return texel(m, s, whole, c);
  for (int corner = 0; corner < 1 << m->dimensions; corner++) {
    double weight = 1;
    long place[3] = {whole[0], whole[1], whole[2]};
    for (int i = 0; i < m->dimensions; i++) {
      double part = at[i] - (double)whole[i];
      weight *= corner >> i & 1 ? part : 1 - part;
      place[i] += corner >> i & 1;
    }
    sum += weight * texel(m, s, place, c);
  }
  return sum;
}

/* Places away from where a tiny error picks another texel. */
static void make_places(float (*at)[4], float low, float high) {
  for (int i = 0; i < PLACES; i++)
    for (int d = 0; d < 4; d++) at[i][d] = (roundf(random_float(low, high) * 60) + 0.29f) / 60;
}

static void run_places(const char *kernel, mps_texture *texture, const mps_sampler_descriptor *s, mps_buffer *at, mps_buffer *out) {
  begin(kernel);
  mps_encoder_set_texture(&encoder, 0, texture);
  if (s) mps_encoder_set_sampler(&encoder, 0, s);
  mps_encoder_set_buffer(&encoder, 0, at, 0, MPS_ACCESS_READ);
  mps_encoder_set_buffer(&encoder, 1, out, 0, MPS_ACCESS_WRITE);
  finish(PLACES, 1);
}

static void compare(const char *kernel, const image *m, const mps_sampler_descriptor *s, mps_texture *texture, const mps_sampler_descriptor *bound) {
  mps_buffer *at = make_buffer(PLACES * 16), *out = make_buffer(PLACES * 16);
  float(*where)[4] = mps_buffer_contents(at), (*is)[4] = mps_buffer_contents(out);
  make_places(where, s->pixel_coordinates ? -12.0f : -2.0f, s->pixel_coordinates ? 18.0f : 3.0f);
  if (strcmp(kernel, "slices") == 0)
    for (int i = 0; i < PLACES; i++) where[i][2] = (float)(i % DEEP);
  run_places(kernel, texture, bound, at, out);
  unsigned wrong = 0;
  for (int i = 0; i < PLACES; i++)
    for (int c = 0; c < 4; c++) {
      double value = sampled(m, s, where[i], c, s->mag_filter == MPS_SAMPLER_LINEAR);
      wrong += !(fabs((double)is[i][c] - value) <= 2e-5);
    }
  if (wrong) fprintf(stderr, "%s, address %d %d %d, filter %d, border %d, pixels %d: %u wrong\n", kernel, (int)s->s_address, (int)s->t_address, (int)s->r_address, (int)s->mag_filter, (int)s->border_color, s->pixel_coordinates, wrong);
  CHECK_INT(wrong, 0);
  mps_buffer_release(at);
  mps_buffer_release(out);
}

static mps_texture *make_image(mps_texture_type type, const image *m) {
  bool array = type == MPS_TEXTURE_2D_ARRAY;
  mps_texture *texture = make_texture(type, m->components == 4 ? MPS_PIXEL_FORMAT_RGBA32Float : MPS_PIXEL_FORMAT_RG32Float, (uint32_t)m->width,
                                      (uint32_t)m->height, array ? 1 : (uint32_t)m->depth, array ? (uint32_t)m->depth : 1, 1);
  for (int z = 0; z < m->depth; z++)
    for (int y = 0; y < m->height; y++)
      for (int x = 0; x < m->width; x++) {
        for (int c = 0; c < 4; c++) texels[z][y][x][c] = random_float(-1, 1);
        mps_texture_region one = {.origin = {(uint32_t)x, (uint32_t)y, array ? 0 : (uint32_t)z}, .size = {1, 1, 1}, .slice = array ? (uint32_t)z : 0};
        CHECK_OK(mps_texture_replace_region(texture, &one, texels[z][y][x], 0, 0));
      }
  return texture;
}

static void samples_as_in_double(void) {
  static const mps_sampler_address modes[] = {MPS_SAMPLER_CLAMP_TO_EDGE, MPS_SAMPLER_REPEAT, MPS_SAMPLER_MIRROR_REPEAT, MPS_SAMPLER_CLAMP_TO_ZERO,
                                              MPS_SAMPLER_CLAMP_TO_BORDER};
  static const struct {
    const char *kernel;
    mps_texture_type type;
    image image;
  } cases[] = {{"sample1", MPS_TEXTURE_1D, {5, 1, 1, 1, 4}},          {"sample2", MPS_TEXTURE_2D, {6, 5, 1, 2, 4}},
               {"sample2", MPS_TEXTURE_2D, {1, 3, 1, 2, 2}},          {"sample3", MPS_TEXTURE_3D, {5, 6, 3, 3, 4}},
               {"slices", MPS_TEXTURE_2D_ARRAY, {4, 6, DEEP, 2, 2}}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    mps_texture *texture = make_image(cases[i].type, &cases[i].image);
    for (int n = 0; n < 60; n++) { /* every mode along s, with others along the rest */
      mps_sampler_descriptor s = {modes[n % 5], modes[n / 5 % 5], modes[(n * 7 + 3) % 5], MPS_SAMPLER_NEAREST, (mps_sampler_filter)(n & 1),
                                  MPS_SAMPLER_MIP_NONE, (mps_sampler_border_color)(n % 3), n / 2 % 2, 0, 0};
      s.min_filter = s.mag_filter;
      compare(cases[i].kernel, &cases[i].image, &s, texture, &s);
    }
    mps_texture_release(texture);
  }
}

static void a_sampler_in_the_source(void) {
  const image m = {6, 5, 1, 2, 4};
  const mps_sampler_descriptor s = {MPS_SAMPLER_MIRROR_REPEAT, MPS_SAMPLER_CLAMP_TO_BORDER, MPS_SAMPLER_CLAMP_TO_EDGE, MPS_SAMPLER_LINEAR,
                                    MPS_SAMPLER_LINEAR, MPS_SAMPLER_MIP_NONE, MPS_SAMPLER_OPAQUE_WHITE, true, 0, 0};
  mps_texture *texture = make_image(MPS_TEXTURE_2D, &m);
  compare("fixed", &m, &s, texture, NULL);
  mps_texture_release(texture);
}

/* Level l is of the colour l: what is sampled tells which level, or how two were mixed. */
static void levels_by_number_and_gradient(void) {
  mps_texture *texture = make_texture(MPS_TEXTURE_2D, MPS_PIXEL_FORMAT_R32Float, 16, 4, 0, 0, 5);
  for (uint32_t l = 0; l < 5; l++) {
    float value[16 * 4];
    for (int i = 0; i < 64; i++) value[i] = (float)l;
    CHECK_OK(mps_texture_replace_region(texture, &(mps_texture_region){.size = {16u >> l, 4u >> l ? 4u >> l : 1}, .level = l}, value, 0, 0));
  }
  mps_buffer *at = make_buffer(PLACES * 16), *out = make_buffer(PLACES * 16);
  float(*where)[4] = mps_buffer_contents(at), (*is)[4] = mps_buffer_contents(out);
  make_places(where, 0, 1);
  for (int i = 0; i < PLACES; i++) where[i][3] = random_float(-1, 6);
  for (int filter = MPS_SAMPLER_MIP_NONE; filter <= MPS_SAMPLER_MIP_LINEAR; filter++)
    for (int clamped = 0; clamped < 2; clamped++)
      for (int gradient = 0; gradient < 2; gradient++) {
        mps_sampler_descriptor s = {.mip_filter = (mps_sampler_mip_filter)filter, .lod_min = clamped ? 1 : 0, .lod_max = clamped ? 2.5f : 0};
        run_places(gradient ? "footprints" : "levels", texture, &s, at, out);
        unsigned wrong = 0;
        for (int i = 0; i < PLACES; i++) {
          double lod = (double)where[i][3];
          if (clamped) lod = fmin(fmax(lod, 1), 2.5);
          lod = fmin(fmax(lod, 0), 4);
          double value = filter == MPS_SAMPLER_MIP_NONE ? 0 : filter == MPS_SAMPLER_MIP_LINEAR ? lod : floor(lod + 0.5);
          bool edge = filter == MPS_SAMPLER_MIP_NEAREST && fabs(lod + 0.5 - rint(lod + 0.5)) < 1e-4;
          wrong += !edge && !(fabs((double)is[i][0] - value) <= 1e-4);
        }
        CHECK_INT(wrong, 0);
      }
  mps_buffer_release(at);
  mps_buffer_release(out);
  mps_texture_release(texture);
}

static void offsets_and_gathering(void) {
  const image m = {6, 5, 1, 2, 4};
  mps_texture *texture = make_image(MPS_TEXTURE_2D, &m);
  mps_buffer *at = make_buffer(PLACES * 16), *out = make_buffer(PLACES * 16);
  float(*where)[4] = mps_buffer_contents(at), (*is)[4] = mps_buffer_contents(out);
  const mps_sampler_descriptor s = {.s_address = MPS_SAMPLER_REPEAT, .t_address = MPS_SAMPLER_CLAMP_TO_EDGE};
  make_places(where, -1, 2);
  unsigned wrong = 0;
  run_places("shifted", texture, &s, at, out);
  for (int i = 0; i < PLACES; i++)
    for (int c = 0; c < 4; c++) {
      float place[3] = {where[i][0] + 2.0f / 6, where[i][1] - 1.0f / 5, 0};
      wrong += (double)is[i][c] != sampled(&m, &s, place, c, false);
    }
  CHECK_INT(wrong, 0);
  run_places("gathered", texture, &s, at, out);
  for (int i = 0; i < PLACES; i++) {
    long x = (long)floor((double)where[i][0] * 6 - 0.5), y = (long)floor((double)where[i][1] * 5 - 0.5);
    const long corners[4][3] = {{x, y + 1, 0}, {x + 1, y + 1, 0}, {x + 1, y, 0}, {x, y, 0}};
    for (int c = 0; c < 4; c++) wrong += (double)is[i][c] != texel(&m, &s, corners[c], 1);
  }
  CHECK_INT(wrong, 0);
  mps_buffer_release(at);
  mps_buffer_release(out);
  mps_texture_release(texture);
}

/* ---- arguments ---- */
static void outside_reads_zero_and_keeps_memory(void) {
  mps_buffer *memory = make_buffer(64 * 4), *out = make_buffer(64);
  for (int i = 0; i < 64; i++) ((float *)mps_buffer_contents(memory))[i] = 7;
  mps_texture *texture = NULL;
  CHECK_OK(mps_texture_create_with_buffer(memory, 16, 24, &(mps_texture_descriptor){.type = MPS_TEXTURE_2D, .format = MPS_PIXEL_FORMAT_R32Float, .width = 5, .height = 3}, &texture));
  begin("outside");
  mps_encoder_set_texture(&encoder, 0, texture);
  mps_encoder_set_buffer(&encoder, 0, out, 0, MPS_ACCESS_WRITE);
  finish(1, 1);
  const float *is = mps_buffer_contents(out);
  for (int i = 0; i < 12; i++) CHECK_INT((int)is[i], 0);
  CHECK_INT((int)is[12], 0);
  CHECK_INT((int)is[13], 1);
  CHECK_INT((int)is[14], 0);
  CHECK_INT((int)is[15], 1);
  for (int i = 0; i < 64; i++) CHECK_INT((int)((float *)mps_buffer_contents(memory))[i], 7);
  mps_texture_release(texture);
  mps_buffer_release(memory);
  mps_buffer_release(out);
}

static void several_textures(void) {
  mps_buffer *out = make_buffer(16);
  begin("several");
  const uint32_t places[4] = {0, 2, 3, 4};
  mps_texture *textures[4];
  for (uint32_t i = 0; i < 4; i++) {
    textures[i] = make_texture(MPS_TEXTURE_2D, MPS_PIXEL_FORMAT_R32Uint, 1, 1, 0, 0, 0);
    CHECK_OK(mps_texture_replace_region(textures[i], &(mps_texture_region){.size = {1, 1, 1}}, &(uint32_t){10 * i}, 0, 0));
    mps_encoder_set_texture(&encoder, places[i], textures[i]);
  }
  mps_encoder_set_buffer(&encoder, 0, out, 0, MPS_ACCESS_WRITE);
  CHECK_OK(mps_encoder_dispatch(&encoder, (uint64_t[]){1, 1, 1}, NULL));
  for (int i = 0; i < 4; i++) mps_texture_release(textures[i]); /* the step keeps what it needs */
  CHECK_OK(mps_stream_synchronize(stream));
  for (int i = 0; i < 4; i++) CHECK_INT(((const int *)mps_buffer_contents(out))[i], 10 * i);
  mps_buffer_release(out);
}

/* Threads that meet, with textures; and a layout in memory that another texture gets next. */
static void textures_of_groups(void) {
  mps_texture *large = make_texture(MPS_TEXTURE_2D, MPS_PIXEL_FORMAT_RGBA8Unorm, 32, 16, 0, 0, 0);
  mps_texture *small = make_texture(MPS_TEXTURE_2D, MPS_PIXEL_FORMAT_RGBA32Float, 4, 2, 0, 0, 0);
  unsigned char bytes[16][32][4];
  double sums[2][4][4] = {{{0}}};
  for (int y = 0; y < 16; y++)
    for (int x = 0; x < 32; x++)
      for (int c = 0; c < 4; c++) sums[y / 8][x / 8][c] += (bytes[y][x][c] = (unsigned char)random_bits()) / 255.0 / 64;
  CHECK_OK(mps_texture_replace_region(large, &(mps_texture_region){.size = {32, 16}}, bytes, 0, 0));
  begin("blocks");
  mps_encoder_set_texture(&encoder, 0, large);
  mps_encoder_set_texture(&encoder, 1, small);
  CHECK_OK(mps_encoder_dispatch(&encoder, (uint64_t[]){32, 16, 1}, (uint32_t[]){8, 8, 1}));
  float is[2][4][4];
  CHECK_OK(mps_texture_get_bytes(small, &(mps_texture_region){.size = {4, 2}}, is, 0, 0)); /* waits */
  for (int i = 0; i < 32; i++) CHECK(fabs((double)is[i / 16][i / 4 % 4][i % 4] - sums[i / 16][i / 4 % 4][i % 4]) < 1e-6);
  mps_texture_release(large);
  mps_texture_release(small);
}

static void lines_and_buffers(void) {
  enum { LONG = 9, MANY = 3 };
  mps_texture *a = make_texture(MPS_TEXTURE_1D_ARRAY, MPS_PIXEL_FORMAT_R16Float, LONG, 0, 0, MANY, 0);
  mps_texture *b = make_texture(MPS_TEXTURE_1D_ARRAY, MPS_PIXEL_FORMAT_R32Float, LONG, 0, 0, MANY, 0), *c = NULL;
  mps_buffer *memory = make_buffer(LONG * 2);
  CHECK_OK(mps_texture_create_with_buffer(memory, 0, 0, &(mps_texture_descriptor){.type = MPS_TEXTURE_BUFFER, .format = MPS_PIXEL_FORMAT_R16Sint, .width = LONG}, &c));
  _Float16 from[MANY][LONG];
  for (int y = 0; y < MANY; y++) {
    for (int x = 0; x < LONG; x++) from[y][x] = (_Float16)(100 * y + x);
    CHECK_OK(mps_texture_replace_region(a, &(mps_texture_region){.size = {LONG}, .slice = (uint32_t)y}, from[y], 0, 0));
  }
  begin("lines");
  mps_encoder_set_texture(&encoder, 0, a);
  mps_encoder_set_texture(&encoder, 1, b);
  mps_encoder_set_texture(&encoder, 2, c);
  finish(LONG, MANY);
  for (int y = 0; y < MANY; y++) {
    float is[LONG];
    CHECK_OK(mps_texture_get_bytes(b, &(mps_texture_region){.size = {LONG}, .slice = (uint32_t)y}, is, 0, 0));
    for (int x = 0; x < LONG; x++) CHECK_INT((int)is[x], 100 * (MANY - 1 - y) + x);
  }
  for (int x = 0; x < LONG; x++) CHECK_INT(((const int16_t *)mps_buffer_contents(memory))[x], 1);
  mps_texture_release(a);
  mps_texture_release(b);
  mps_texture_release(c);
  mps_buffer_release(memory);
}

/* ---- refusals ---- */
static void refuses(void) {
  static const mps_texture_descriptor wrong[] = {
      {.type = MPS_TEXTURE_2D, .format = MPS_PIXEL_FORMAT_R8Unorm, .width = 0, .height = 1},
      {.type = MPS_TEXTURE_2D, .format = MPS_PIXEL_FORMAT_R8Unorm, .width = 1, .height = 0},
      {.type = MPS_TEXTURE_2D, .format = MPS_PIXEL_FORMAT_R8Unorm, .width = 16385, .height = 1},
      {.type = MPS_TEXTURE_2D, .format = MPS_PIXEL_FORMAT_R8Unorm, .width = 1, .height = 1, .depth = 2},
      {.type = MPS_TEXTURE_2D, .format = MPS_PIXEL_FORMAT_R8Unorm, .width = 1, .height = 1, .array_length = 2},
      {.type = MPS_TEXTURE_2D, .format = MPS_PIXEL_FORMAT_R8Unorm, .width = 4, .height = 7, .level_count = 4},
      {.type = MPS_TEXTURE_1D, .format = MPS_PIXEL_FORMAT_R8Unorm, .width = 8, .level_count = 2},
      {.type = MPS_TEXTURE_2D, .format = (mps_pixel_format)92, .width = 1, .height = 1},
      {.type = (mps_texture_type)5, .format = MPS_PIXEL_FORMAT_R8Unorm, .width = 1, .height = 1},
  };
  mps_texture *texture = NULL;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    CHECK_STATUS(mps_texture_create(device, stream, &wrong[i], &texture), MPS_STATUS_INVALID_ARGUMENT);
    CHECK(texture == NULL);
  }
  mps_buffer *memory = make_buffer(100);
  const mps_texture_descriptor d = {.type = MPS_TEXTURE_2D, .format = MPS_PIXEL_FORMAT_R32Uint, .width = 5, .height = 5};
  CHECK_STATUS(mps_texture_create_with_buffer(memory, 0, 16, &d, &texture), MPS_STATUS_INVALID_ARGUMENT); /* rows overlap */
  CHECK_STATUS(mps_texture_create_with_buffer(memory, 0, 22, &d, &texture), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(mps_texture_create_with_buffer(memory, 4, 0, &d, &texture), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(mps_texture_create_with_buffer(memory, 2, 0, &d, &texture), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(mps_texture_create_with_buffer(memory, 200, 0, &d, &texture), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_OK(mps_texture_create_with_buffer(memory, 0, 0, &d, &texture));
  uint32_t values[25];
  CHECK_STATUS(mps_texture_get_bytes(texture, &(mps_texture_region){.origin = {1}, .size = {5, 1}}, values, 0, 0), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(mps_texture_get_bytes(texture, &(mps_texture_region){.size = {5, 5}, .level = 1}, values, 0, 0), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(mps_texture_get_bytes(texture, &(mps_texture_region){.size = {5, 5}, .slice = 1}, values, 0, 0), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(mps_texture_get_bytes(texture, &(mps_texture_region){.size = {5, 5}}, values, 16, 0), MPS_STATUS_INVALID_ARGUMENT);
  begin("several");
  mps_encoder_set_buffer(&encoder, 0, memory, 0, MPS_ACCESS_WRITE);
  mps_encoder_set_texture(&encoder, MPS_ENCODER_MAX_TEXTURES, texture);
  CHECK_STATUS(mps_encoder_dispatch(&encoder, (uint64_t[]){1, 1, 1}, NULL), MPS_STATUS_INVALID_ARGUMENT);
  begin("several");
  mps_encoder_set_buffer(&encoder, 0, memory, 0, MPS_ACCESS_WRITE);
  mps_encoder_set_sampler(&encoder, MPS_ENCODER_MAX_SAMPLERS, NULL);
  CHECK_STATUS(mps_encoder_dispatch(&encoder, (uint64_t[]){1, 1, 1}, NULL), MPS_STATUS_INVALID_ARGUMENT);
  begin("several");
  mps_encoder_set_buffer(&encoder, 0, memory, 0, MPS_ACCESS_WRITE);
  mps_encoder_set_sampler(&encoder, 0, &(mps_sampler_descriptor){.s_address = (mps_sampler_address)1});
  CHECK_STATUS(mps_encoder_dispatch(&encoder, (uint64_t[]){1, 1, 1}, NULL), MPS_STATUS_INVALID_ARGUMENT);
  mps_texture_release(texture);
  mps_buffer_release(memory);
}

/* Writing to what may only be read is the author's mistake, in the author's line. */
static void refuses_the_wrong_access(void) {
  mps_library *wrong = NULL;
  CHECK_STATUS(mps_library_compile(device, "#include <metal_stdlib>\nusing namespace metal;\nkernel void f(texture2d<float> t) {\n  t.write(float4(0), uint2(0));\n}\n", "f.metal", &wrong), MPS_STATUS_COMPILE_ERROR);
  CHECK(strstr(mps_error_message(), "f.metal:4:5: error: no matching member function for call to 'write'") != NULL);
}

int main(void) {
  open_device();
  library = compile(source);
  if (!library) return 1;
  RUN(formats_are_read_and_written);
  RUN(samples_as_in_double);
  RUN(a_sampler_in_the_source);
  RUN(levels_by_number_and_gradient);
  RUN(offsets_and_gathering);
  RUN(outside_reads_zero_and_keeps_memory);
  RUN(several_textures);
  RUN(textures_of_groups);
  RUN(lines_and_buffers);
  RUN(refuses);
  RUN(refuses_the_wrong_access);
  mps_library_release(library);
  mps_device_release(device);
  return test_end();
}
