/* SPDX-License-Identifier: BSD-3-Clause
 *
 * texture: images that Metal kernels read, write and sample, and the samplers that say how. Reference counted. The texels lie in a
 * buffer, level by level; names and numbers of formats are Metal's (MTLPixelFormat).
 */
#ifndef OPENMPS_TEXTURE_H
#define OPENMPS_TEXTURE_H

#include <stdbool.h>

#include "openmps/buffer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mps_texture mps_texture;

typedef enum mps_texture_type {
  MPS_TEXTURE_1D = 0,
  MPS_TEXTURE_1D_ARRAY = 1,
  MPS_TEXTURE_2D = 2,
  MPS_TEXTURE_2D_ARRAY = 3,
  MPS_TEXTURE_3D = 7,
  MPS_TEXTURE_BUFFER = 9,
} mps_texture_type;

/* X(Metal's name, MTLPixelFormat, channel and order of openmps_texture/layout.h, components, bytes of a texel) */
#define MPS_PIXEL_FORMAT_LIST(X)                                                                                                   \
  X(A8Unorm, 1, UNORM8, ALPHA, 1, 1)                                                                                               \
  X(R8Unorm, 10, UNORM8, RGBA, 1, 1) X(R8Unorm_sRGB, 11, UNORM8_SRGB, RGBA, 1, 1) X(R8Snorm, 12, SNORM8, RGBA, 1, 1)               \
  X(R8Uint, 13, UINT8, RGBA, 1, 1) X(R8Sint, 14, SINT8, RGBA, 1, 1)                                                                \
  X(R16Unorm, 20, UNORM16, RGBA, 1, 2) X(R16Snorm, 22, SNORM16, RGBA, 1, 2) X(R16Uint, 23, UINT16, RGBA, 1, 2)                     \
  X(R16Sint, 24, SINT16, RGBA, 1, 2) X(R16Float, 25, FLOAT16, RGBA, 1, 2)                                                          \
  X(RG8Unorm, 30, UNORM8, RGBA, 2, 2) X(RG8Unorm_sRGB, 31, UNORM8_SRGB, RGBA, 2, 2) X(RG8Snorm, 32, SNORM8, RGBA, 2, 2)            \
  X(RG8Uint, 33, UINT8, RGBA, 2, 2) X(RG8Sint, 34, SINT8, RGBA, 2, 2)                                                              \
  X(R32Uint, 53, UINT32, RGBA, 1, 4) X(R32Sint, 54, SINT32, RGBA, 1, 4) X(R32Float, 55, FLOAT32, RGBA, 1, 4)                       \
  X(RG16Unorm, 60, UNORM16, RGBA, 2, 4) X(RG16Snorm, 62, SNORM16, RGBA, 2, 4) X(RG16Uint, 63, UINT16, RGBA, 2, 4)                  \
  X(RG16Sint, 64, SINT16, RGBA, 2, 4) X(RG16Float, 65, FLOAT16, RGBA, 2, 4)                                                        \
  X(RGBA8Unorm, 70, UNORM8, RGBA, 4, 4) X(RGBA8Unorm_sRGB, 71, UNORM8_SRGB, RGBA, 4, 4) X(RGBA8Snorm, 72, SNORM8, RGBA, 4, 4)      \
  X(RGBA8Uint, 73, UINT8, RGBA, 4, 4) X(RGBA8Sint, 74, SINT8, RGBA, 4, 4)                                                          \
  X(BGRA8Unorm, 80, UNORM8, BGRA, 4, 4) X(BGRA8Unorm_sRGB, 81, UNORM8_SRGB, BGRA, 4, 4)                                            \
  X(RGB10A2Unorm, 90, UNORM10_2, RGBA, 4, 4) X(RGB10A2Uint, 91, UINT10_2, RGBA, 4, 4) X(BGR10A2Unorm, 94, UNORM10_2, BGRA, 4, 4)   \
  X(RG32Uint, 103, UINT32, RGBA, 2, 8) X(RG32Sint, 104, SINT32, RGBA, 2, 8) X(RG32Float, 105, FLOAT32, RGBA, 2, 8)                 \
  X(RGBA16Unorm, 110, UNORM16, RGBA, 4, 8) X(RGBA16Snorm, 112, SNORM16, RGBA, 4, 8) X(RGBA16Uint, 113, UINT16, RGBA, 4, 8)         \
  X(RGBA16Sint, 114, SINT16, RGBA, 4, 8) X(RGBA16Float, 115, FLOAT16, RGBA, 4, 8)                                                  \
  X(RGBA32Uint, 123, UINT32, RGBA, 4, 16) X(RGBA32Sint, 124, SINT32, RGBA, 4, 16) X(RGBA32Float, 125, FLOAT32, RGBA, 4, 16)

typedef enum mps_pixel_format {
#define X(name, number, channel, order, components, bytes) MPS_PIXEL_FORMAT_##name = number,
  MPS_PIXEL_FORMAT_LIST(X)
#undef X
} mps_pixel_format;

/* Sizes in texels. Those that the type does not have, and counts, may be 0 and mean 1. */
typedef struct mps_texture_descriptor {
  mps_texture_type type;
  mps_pixel_format format;
  uint32_t width, height, depth;
  uint32_t array_length;
  uint32_t level_count; /* mipmaps: each is half as large as the one before; 1D has one */
} mps_texture_descriptor;

/* A box of texels. `origin` and `size`: x, y, z; sizes in dimensions that the type does not have may be 0 and mean 1. */
typedef struct mps_texture_region {
  uint32_t origin[3], size[3];
  uint32_t level, slice;
} mps_texture_region;

/* A texture with memory of its own, zero-filled, for use on `stream` (NULL: the calling thread's current stream). INVALID_ARGUMENT for
 * sizes that are 0 or more than Metal's 16384 (3D and array length: 2048; buffer: 2^28), unknown formats and too many levels; OUT_OF_MEMORY. */
MPS_API MPS_WARN_UNUSED mps_status mps_texture_create(mps_device *device, mps_stream *stream, const mps_texture_descriptor *descriptor,
                                                      mps_texture **out_texture);
/* A texture over texels that lie in `buffer`, which it retains: type 2D or BUFFER with one level, rows `bytes_per_row` apart (0: no gap).
 * `offset` and `bytes_per_row` are multiples of the format's texel. INVALID_ARGUMENT also when the buffer is too short. */
MPS_API MPS_WARN_UNUSED mps_status mps_texture_create_with_buffer(mps_buffer *buffer, uint64_t offset, uint64_t bytes_per_row,
                                                                  const mps_texture_descriptor *descriptor, mps_texture **out_texture);
MPS_API mps_texture *mps_texture_retain(mps_texture *texture);
MPS_API void mps_texture_release(mps_texture *texture); /* accepts NULL */
/* As it was made, with 1 in place of 0. */
MPS_API const mps_texture_descriptor *mps_texture_get_descriptor(const mps_texture *texture);

/* Copy a box of texels from and to memory of the caller, rows `bytes_per_row` and images (of 3D) `bytes_per_image` apart (0: no gap). Wait
 * until no encoded step uses the texture any more. INVALID_ARGUMENT for a box that is not within the level. */
MPS_API MPS_WARN_UNUSED mps_status mps_texture_replace_region(mps_texture *texture, const mps_texture_region *region, const void *bytes,
                                                              uint64_t bytes_per_row, uint64_t bytes_per_image);
MPS_API MPS_WARN_UNUSED mps_status mps_texture_get_bytes(mps_texture *texture, const mps_texture_region *region, void *bytes,
                                                         uint64_t bytes_per_row, uint64_t bytes_per_image);

/* ---- samplers: the numbers are Metal's ---- */
typedef enum mps_sampler_address {
  MPS_SAMPLER_CLAMP_TO_EDGE = 0,
  MPS_SAMPLER_REPEAT = 2,
  MPS_SAMPLER_MIRROR_REPEAT = 3,
  MPS_SAMPLER_CLAMP_TO_ZERO = 4,
  MPS_SAMPLER_CLAMP_TO_BORDER = 5,
} mps_sampler_address;
typedef enum mps_sampler_filter { MPS_SAMPLER_NEAREST = 0, MPS_SAMPLER_LINEAR = 1 } mps_sampler_filter;
typedef enum mps_sampler_mip_filter { MPS_SAMPLER_MIP_NONE = 0, MPS_SAMPLER_MIP_NEAREST = 1, MPS_SAMPLER_MIP_LINEAR = 2 } mps_sampler_mip_filter;
typedef enum mps_sampler_border_color {
  MPS_SAMPLER_TRANSPARENT_BLACK = 0,
  MPS_SAMPLER_OPAQUE_BLACK = 1,
  MPS_SAMPLER_OPAQUE_WHITE = 2,
} mps_sampler_border_color;

/* {0} is Metal's default, with one difference that C asks for: lod_max 0 means no limit. */
typedef struct mps_sampler_descriptor {
  mps_sampler_address s_address, t_address, r_address;
  mps_sampler_filter min_filter, mag_filter;
  mps_sampler_mip_filter mip_filter;
  mps_sampler_border_color border_color;
  bool pixel_coordinates; /* coordinates count texels; else they go from 0 to 1 */
  float lod_min, lod_max;
} mps_sampler_descriptor;

#ifdef __cplusplus
}
#endif
#endif
