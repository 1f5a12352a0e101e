/* SPDX-License-Identifier: BSD-3-Clause
 *
 * layout: where the texels of a texture lie, and how a sampler reads them. Shared by C, which fills it (runtime/texture.c), and Metal. A
 * texel of level l is at memory + levels[l].offset + image * image_bytes + y * row_bytes + x * texel_bytes; images are the slices of an
 * array or the depth.
 */
#ifndef OPENMPS_TEXTURE_LAYOUT_H
#define OPENMPS_TEXTURE_LAYOUT_H

#define MPS_TEXTURE_LEVELS 15 /* down from 16384 */

/* What is stored for a component of a texel. Packed ones are a whole texel of 32 bits, red in the lowest. */
enum mps_texel_channel {
  MPS_TEXEL_UNORM8,
  MPS_TEXEL_UNORM8_SRGB, /* alpha is linear */
  MPS_TEXEL_SNORM8,
  MPS_TEXEL_UINT8,
  MPS_TEXEL_SINT8,
  MPS_TEXEL_UNORM16,
  MPS_TEXEL_SNORM16,
  MPS_TEXEL_UINT16,
  MPS_TEXEL_SINT16,
  MPS_TEXEL_FLOAT16,
  MPS_TEXEL_UINT32,
  MPS_TEXEL_SINT32,
  MPS_TEXEL_FLOAT32,
  MPS_TEXEL_UNORM10_2,
  MPS_TEXEL_UINT10_2
};

enum mps_texel_order {
  MPS_TEXEL_RGBA, /* as many of them as there are components */
  MPS_TEXEL_BGRA,
  MPS_TEXEL_ALPHA /* one component, and it is alpha */
};

struct mps_texture_level {
  unsigned long offset, row_bytes, image_bytes;
};

struct mps_texture_layout {
  unsigned long memory;                     /* device address */
  unsigned int width, height, depth, slices; /* of level 0; 1 where the type has no such dimension */
  unsigned int level_count;
  unsigned int texel_bytes, component_count;
  unsigned char channel, order;
  unsigned char reserved[2];
  struct mps_texture_level levels[MPS_TEXTURE_LEVELS];
};

/* Values of metal::address, metal::filter, metal::mip_filter, metal::border_color, by number. */
enum mps_sampler_address_mode {
  MPS_ADDRESS_CLAMP_TO_EDGE,
  MPS_ADDRESS_CLAMP_TO_ZERO,
  MPS_ADDRESS_CLAMP_TO_BORDER,
  MPS_ADDRESS_REPEAT,
  MPS_ADDRESS_MIRRORED_REPEAT
};
enum mps_sampler_filter_mode { MPS_FILTER_NEAREST, MPS_FILTER_LINEAR };
enum mps_sampler_mip_mode { MPS_MIP_NONE, MPS_MIP_NEAREST, MPS_MIP_LINEAR };
enum mps_sampler_border { MPS_BORDER_TRANSPARENT_BLACK, MPS_BORDER_OPAQUE_BLACK, MPS_BORDER_OPAQUE_WHITE };

struct mps_sampler_layout {
  unsigned char address[3]; /* s, t, r */
  unsigned char min_filter, mag_filter, mip_filter;
  unsigned char border;
  unsigned char pixels; /* 1: coordinates count texels, 0: from 0 to 1 */
  float lod_min, lod_max;
};

#endif
