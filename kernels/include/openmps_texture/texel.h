// SPDX-License-Identifier: BSD-3-Clause
// One texel of a texture, from its memory and to it: normalised and plain integers, sRGB, half and float. Conversions are those of the
// Metal Shading Language Specification, "Texture Addressing and Conversion Rules"; components that a format lacks read as 0, 0, 1.
#pragma once

#include <metal_common>
#include <metal_math>
#include <metal_pack>
#include <openmps_texture/layout.h>

// Functions with a case for each format: calls, for inlined they make kernels of several textures take seconds to compile.
#define OPENMPS_TEXTURE_CALL inline __attribute__((__noinline__))

namespace metal {
namespace openmps_detail {

template <typename T>
METAL_FUNC T texel_part(const uchar* at, uint i) {
  T value;
  __builtin_memcpy(&value, at + i * sizeof(T), sizeof(T));
  return value;
}
template <typename T>
METAL_FUNC void set_texel_part(uchar* at, uint i, T value) {
  __builtin_memcpy(at + i * sizeof(T), &value, sizeof(T));
}

METAL_FUNC float srgb_to_linear(float x) { return x <= 0.04045f ? x / 12.92f : pow((x + 0.055f) / 1.055f, 2.4f); }
METAL_FUNC float linear_to_srgb(float x) { return x < 0.0031308f ? 12.92f * x : 1.055f * pow(x, 1.0f / 2.4f) - 0.055f; }
// NaN is 0, as in all conversions to normalised numbers.
METAL_FUNC uint float_to_unorm(float x, float top) { return x != x ? 0u : to_unorm(x, top); }

METAL_FUNC long texel_integer(uint channel, const uchar* at, uint i) {
  switch (channel) {
    case MPS_TEXEL_UINT8: return at[i];
    case MPS_TEXEL_SINT8: return texel_part<signed char>(at, i);
    case MPS_TEXEL_UINT16: return texel_part<ushort>(at, i);
    case MPS_TEXEL_SINT16: return texel_part<short>(at, i);
    case MPS_TEXEL_UINT32: return texel_part<uint>(at, i);
    case MPS_TEXEL_SINT32: return texel_part<int>(at, i);
    case MPS_TEXEL_UINT10_2: return (texel_part<uint>(at, 0) >> (10 * i)) & (i == 3 ? 3u : 1023u);
  }
  return 0;
}

METAL_FUNC float texel_float(uint channel, const uchar* at, uint i) {
  switch (channel) {
    case MPS_TEXEL_UNORM8: return unorm(at[i], 255.0f);
    case MPS_TEXEL_UNORM8_SRGB: return i == 3 ? unorm(at[i], 255.0f) : srgb_to_linear(unorm(at[i], 255.0f));
    case MPS_TEXEL_SNORM8: return snorm(texel_part<signed char>(at, i), 127.0f);
    case MPS_TEXEL_UNORM16: return unorm(texel_part<ushort>(at, i), 65535.0f);
    case MPS_TEXEL_SNORM16: return snorm(texel_part<short>(at, i), 32767.0f);
    case MPS_TEXEL_FLOAT16: return static_cast<float>(texel_part<half>(at, i));
    case MPS_TEXEL_FLOAT32: return texel_part<float>(at, i);
    case MPS_TEXEL_UNORM10_2: {
      uint bits = texel_part<uint>(at, 0) >> (10 * i);
      return i == 3 ? unorm(bits & 3u, 3.0f) : unorm(bits & 1023u, 1023.0f);
    }
  }
  return static_cast<float>(texel_integer(channel, at, i));
}

METAL_FUNC void set_texel_integer(uint channel, uchar* at, uint i, long value) {
  switch (channel) {
    case MPS_TEXEL_UINT8: at[i] = static_cast<uchar>(clamp(value, 0l, 255l)); break;
    case MPS_TEXEL_SINT8: set_texel_part(at, i, static_cast<signed char>(clamp(value, -128l, 127l))); break;
    case MPS_TEXEL_UINT16: set_texel_part(at, i, static_cast<ushort>(clamp(value, 0l, 65535l))); break;
    case MPS_TEXEL_SINT16: set_texel_part(at, i, static_cast<short>(clamp(value, -32768l, 32767l))); break;
    case MPS_TEXEL_UINT32: set_texel_part(at, i, static_cast<uint>(clamp(value, 0l, 4294967295l))); break;
    case MPS_TEXEL_SINT32: set_texel_part(at, i, static_cast<int>(clamp(value, -2147483648l, 2147483647l))); break;
    case MPS_TEXEL_UINT10_2: {
      const uint most = i == 3 ? 3u : 1023u, old = texel_part<uint>(at, 0) & ~(most << (10 * i));
      set_texel_part(at, 0, old | (static_cast<uint>(clamp(value, 0l, static_cast<long>(most))) << (10 * i)));
    }
  }
}

METAL_FUNC void set_texel_float(uint channel, uchar* at, uint i, float value) {
  switch (channel) {
    case MPS_TEXEL_UNORM8: at[i] = static_cast<uchar>(float_to_unorm(value, 255.0f)); break;
    case MPS_TEXEL_UNORM8_SRGB: at[i] = static_cast<uchar>(float_to_unorm(i == 3 ? value : linear_to_srgb(value), 255.0f)); break;
    case MPS_TEXEL_SNORM8: at[i] = static_cast<uchar>(to_snorm(value, 127.0f)); break;
    case MPS_TEXEL_UNORM16: set_texel_part(at, i, static_cast<ushort>(float_to_unorm(value, 65535.0f))); break;
    case MPS_TEXEL_SNORM16: set_texel_part(at, i, static_cast<ushort>(to_snorm(value, 32767.0f))); break;
    case MPS_TEXEL_FLOAT16: set_texel_part(at, i, static_cast<half>(value)); break;
    case MPS_TEXEL_FLOAT32: set_texel_part(at, i, value); break;
    case MPS_TEXEL_UNORM10_2: {
      const uint most = i == 3 ? 3u : 1023u, old = texel_part<uint>(at, 0) & ~(most << (10 * i));
      set_texel_part(at, 0, old | (float_to_unorm(value, static_cast<float>(most)) << (10 * i)));
      break;
    }
    default: set_texel_integer(channel, at, i, static_cast<long>(value));
  }
}

// Of a texture's element type: float and half count as float, all others as integers.
template <typename T, bool = is_floating_point<T>::value> struct texel_of {
  METAL_FUNC static T load(uint channel, const uchar* at, uint i) { return static_cast<T>(texel_float(channel, at, i)); }
  METAL_FUNC static void store(uint channel, uchar* at, uint i, T value) { set_texel_float(channel, at, i, static_cast<float>(value)); }
};
template <typename T> struct texel_of<T, false> {
  METAL_FUNC static T load(uint channel, const uchar* at, uint i) { return static_cast<T>(texel_integer(channel, at, i)); }
  METAL_FUNC static void store(uint channel, uchar* at, uint i, T value) { set_texel_integer(channel, at, i, static_cast<long>(value)); }
};

template <typename T>
OPENMPS_TEXTURE_CALL vec<T, 4> load_texel(const mps_texture_layout& layout, const uchar* at) {
  typedef texel_of<T> part;
  vec<T, 4> color(T(0), T(0), T(0), T(1));
  const uint channel = layout.channel;
  if (layout.order == MPS_TEXEL_ALPHA) {
    color.w = part::load(channel, at, 0);
    return color;
  }
  color.x = part::load(channel, at, 0);
  if (layout.component_count > 1) color.y = part::load(channel, at, 1);
  if (layout.component_count > 2) {
    color.z = part::load(channel, at, 2);
    color.w = part::load(channel, at, 3);
  }
  return layout.order == MPS_TEXEL_BGRA ? vec<T, 4>(color.z, color.y, color.x, color.w) : color;
}

template <typename T>
OPENMPS_TEXTURE_CALL void store_texel(const mps_texture_layout& layout, uchar* at, vec<T, 4> color) {
  typedef texel_of<T> part;
  const uint channel = layout.channel;
  if (layout.order == MPS_TEXEL_BGRA) color = vec<T, 4>(color.z, color.y, color.x, color.w);
  part::store(channel, at, 0, layout.order == MPS_TEXEL_ALPHA ? static_cast<T>(color.w) : static_cast<T>(color.x));
  if (layout.component_count > 1) part::store(channel, at, 1, color.y);
  if (layout.component_count > 2) {
    part::store(channel, at, 2, color.z);
    part::store(channel, at, 3, color.w);
  }
}

}  // namespace openmps_detail
}  // namespace metal
