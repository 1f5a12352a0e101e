// SPDX-License-Identifier: BSD-3-Clause
// metal::sampler with its options, and what it makes of a coordinate. The rules are those of the Metal Shading Language Specification,
// "Samplers" and "Texture Addressing"; weights are computed in float, where graphics processors have 8 bits.
#pragma once

#include <metal_common>
#include <metal_math>
#include <openmps_texture/texel.h>

namespace metal {

enum class coord { normalized, pixel };
// The numbers are those of mps_sampler_layout.
enum class address { clamp_to_edge, clamp_to_zero, clamp_to_border, repeat, mirrored_repeat };
enum class s_address { clamp_to_edge, clamp_to_zero, clamp_to_border, repeat, mirrored_repeat };
enum class t_address { clamp_to_edge, clamp_to_zero, clamp_to_border, repeat, mirrored_repeat };
enum class r_address { clamp_to_edge, clamp_to_zero, clamp_to_border, repeat, mirrored_repeat };
enum class filter { nearest, linear };
enum class min_filter { nearest, linear };
enum class mag_filter { nearest, linear };
enum class mip_filter { none, nearest, linear };
enum class border_color { transparent_black, opaque_black, opaque_white };
enum class component { x, y, z, w };
// Taken and without effect: kernels have no derivatives, from which anisotropy would follow.
struct max_anisotropy {
  constexpr explicit max_anisotropy(int) {}
};
struct lod_clamp {
  float low, high;
  constexpr lod_clamp(float least, float most) : low(least), high(most) {}
};

struct sampler {
  mps_sampler_layout layout_;

  template <typename... Options>
  constexpr sampler(Options... options) : layout_{{0, 0, 0}, 0, 0, 0, 0, 0, 0.0f, 3.4028234663852886e38f} {
    const int done[] = {0, (set(options), 0)...};
    (void)done;
  }

  // Of an argument; without one the default.
  METAL_FUNC static sampler openmps_bind(void* const* from) {
    sampler bound;
    if (*from) bound.layout_ = *static_cast<const mps_sampler_layout*>(*from);
    return bound;
  }

 private:
  constexpr void set(coord c) { layout_.pixels = c == coord::pixel; }
  constexpr void set(address a) { layout_.address[0] = layout_.address[1] = layout_.address[2] = static_cast<uchar>(a); }
  constexpr void set(s_address a) { layout_.address[0] = static_cast<uchar>(a); }
  constexpr void set(t_address a) { layout_.address[1] = static_cast<uchar>(a); }
  constexpr void set(r_address a) { layout_.address[2] = static_cast<uchar>(a); }
  constexpr void set(filter f) { layout_.min_filter = layout_.mag_filter = static_cast<uchar>(f); }
  constexpr void set(min_filter f) { layout_.min_filter = static_cast<uchar>(f); }
  constexpr void set(mag_filter f) { layout_.mag_filter = static_cast<uchar>(f); }
  constexpr void set(mip_filter f) { layout_.mip_filter = static_cast<uchar>(f); }
  constexpr void set(border_color c) { layout_.border = static_cast<uchar>(c); }
  constexpr void set(max_anisotropy) {}
  constexpr void set(lod_clamp c) {
    layout_.lod_min = c.low;
    layout_.lod_max = c.high;
  }
};

namespace openmps_detail {

METAL_FUNC uint level_size(uint size, uint level) { return max(size >> level, 1u); }

constexpr int outside = -1, at_border = -2;

// The texel that an index along an axis means; at_border: outside, where the sampler's colour is; outside: where it is zero.
METAL_FUNC int wrapped(int i, int size, uint mode) {
  switch (mode) {
    case MPS_ADDRESS_CLAMP_TO_EDGE: return clamp(i, 0, size - 1);
    case MPS_ADDRESS_REPEAT: {
      const int rest = i % size;
      return rest < 0 ? rest + size : rest;
    }
    case MPS_ADDRESS_MIRRORED_REPEAT: {
      int rest = i % (2 * size);
      rest = rest < 0 ? rest + 2 * size : rest;
      return rest < size ? rest : 2 * size - 1 - rest;
    }
  }
  return i >= 0 && i < size ? i : mode == MPS_ADDRESS_CLAMP_TO_BORDER ? at_border : outside;
}

// Two neighbouring texels along an axis, and how much of the second there is.
struct sampled_axis {
  int index[2];
  float weight;
};
METAL_FUNC sampled_axis sample_axis(float where, uint size, uint mode, bool pixels, bool linear, int offset) {
  const float position = (pixels ? where : where * static_cast<float>(size)) - (linear ? 0.5f : 0.0f);
  const float held = fmin(fmax(position, -1e9f), 1e9f);  // NaN becomes a bound
  const float whole = floor(held);
  const int first = static_cast<int>(whole) + offset;
  return {{wrapped(first, static_cast<int>(size), mode), wrapped(first + 1, static_cast<int>(size), mode)}, linear ? held - whole : 0.0f};
}

template <typename T>
METAL_FUNC vec<T, 4> border_texel(const mps_texture_layout& layout, uint border) {
  const bool alpha = layout.component_count == 4 || layout.order == MPS_TEXEL_ALPHA;
  const T white = T(border == MPS_BORDER_OPAQUE_WHITE);
  return vec<T, 4>(white, white, white, T(!alpha || border != MPS_BORDER_TRANSPARENT_BLACK));
}

METAL_FUNC uchar* texel_address(const mps_texture_layout& layout, uint x, uint y, uint image, uint level) {
  const mps_texture_level& at = layout.levels[level];
  return reinterpret_cast<uchar*>(layout.memory + at.offset + image * at.image_bytes + y * at.row_bytes + x * static_cast<ulong>(layout.texel_bytes));
}

// A texel by its indices along the axes.
template <typename T>
METAL_FUNC vec<T, 4> sampled_texel(const mps_texture_layout& layout, const mps_sampler_layout& s, int x, int y, int image, uint level) {
  const int least = min(min(x, y), image);
  if (least < 0) return border_texel<T>(layout, least == at_border ? s.border : MPS_BORDER_TRANSPARENT_BLACK);
  return load_texel<T>(layout, texel_address(layout, static_cast<uint>(x), static_cast<uint>(y), static_cast<uint>(image), level));
}

// `dimensions` of `where` count; the image is `slice` where the third does not.
struct sampled_place {
  float3 where;
  int3 offset;
  uint dimensions, slice;
};

template <typename T>
OPENMPS_TEXTURE_CALL vec<T, 4> sample_level(const mps_texture_layout& layout, const mps_sampler_layout& s, const sampled_place& place, uint level, bool linear) {
  const int slice = static_cast<int>(min(place.slice, layout.slices - 1));
  const sampled_axis x = sample_axis(place.where.x, level_size(layout.width, level), s.address[0], s.pixels, linear, place.offset.x);
  sampled_axis y = {{0, 0}, 0.0f}, z = {{slice, slice}, 0.0f};
  if (place.dimensions > 1) y = sample_axis(place.where.y, level_size(layout.height, level), s.address[1], s.pixels, linear, place.offset.y);
  if (place.dimensions > 2) z = sample_axis(place.where.z, level_size(layout.depth, level), s.address[2], s.pixels, linear, place.offset.z);
  if (!linear) return sampled_texel<T>(layout, s, x.index[0], y.index[0], z.index[0], level);
  float4 sum(0.0f);
  for (int corner = 0; corner < 8; corner++) {
    const int i = corner & 1, j = corner >> 1 & 1, k = corner >> 2;
    const float weight = (i ? x.weight : 1.0f - x.weight) * (j ? y.weight : 1.0f - y.weight) * (k ? z.weight : 1.0f - z.weight);
    if (weight != 0.0f) sum += weight * float4(sampled_texel<T>(layout, s, x.index[i], y.index[j], z.index[k], level));
  }
  return vec<T, 4>(sum);
}

template <typename T>
METAL_FUNC vec<T, 4> sample_texture(const mps_texture_layout* texture, const sampler& by, const sampled_place& place, float lod) {
  if (!texture) return vec<T, 4>(T(0));
  const mps_sampler_layout& s = by.layout_;
  const mps_texture_layout& layout = *texture;
  const float held = fmin(fmax(lod, s.lod_min), s.lod_max), most = static_cast<float>(layout.level_count - 1);
  // Integers are never mixed.
  const bool linear = is_floating_point<T>::value && (held > 0.0f ? s.min_filter : s.mag_filter) == MPS_FILTER_LINEAR;
  const float inside = clamp(held, 0.0f, most);
  if (s.mip_filter == MPS_MIP_NONE) return sample_level<T>(layout, s, place, 0, linear);
  if (s.mip_filter == MPS_MIP_NEAREST || !is_floating_point<T>::value)
    return sample_level<T>(layout, s, place, static_cast<uint>(floor(inside + 0.5f)), linear);
  const uint below = static_cast<uint>(inside);
  const float weight = inside - static_cast<float>(below);
  const float4 first(sample_level<T>(layout, s, place, below, linear));
  if (weight == 0.0f) return vec<T, 4>(first);
  return vec<T, 4>(mix(first, float4(sample_level<T>(layout, s, place, below + 1, linear)), weight));
}

// Component `c` of the four texels that bilinear filtering would mix, counterclockwise from the lower left.
template <typename T>
OPENMPS_TEXTURE_CALL vec<T, 4> gather_texture(const mps_texture_layout* texture, const sampler& by, const sampled_place& place, component c) {
  if (!texture) return vec<T, 4>(T(0));
  const mps_sampler_layout& s = by.layout_;
  const int slice = static_cast<int>(min(place.slice, texture->slices - 1));
  const sampled_axis x = sample_axis(place.where.x, texture->width, s.address[0], s.pixels, true, place.offset.x);
  const sampled_axis y = sample_axis(place.where.y, texture->height, s.address[1], s.pixels, true, place.offset.y);
  const int i = static_cast<int>(c);
  return vec<T, 4>(sampled_texel<T>(*texture, s, x.index[0], y.index[1], slice, 0)[i], sampled_texel<T>(*texture, s, x.index[1], y.index[1], slice, 0)[i],
                   sampled_texel<T>(*texture, s, x.index[1], y.index[0], slice, 0)[i], sampled_texel<T>(*texture, s, x.index[0], y.index[0], slice, 0)[i]);
}

}  // namespace openmps_detail
}  // namespace metal
