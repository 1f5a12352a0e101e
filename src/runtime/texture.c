/* SPDX-License-Identifier: BSD-3-Clause
 *
 * texture: checks a descriptor, lays its texels out, and copies boxes of them.
 */
#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "runtime/buffer.h"
#include "runtime/texture.h"

#define MAX_SIDE 16384u
#define MAX_VOLUME_SIDE 2048u
#define MAX_SLICES 2048u
#define MAX_BUFFER_WIDTH (1u << 28)
#define LEVEL_ALIGNMENT 64u

typedef struct pixel_format {
  const char *name;
  uint32_t number;
  unsigned char channel, order;
  uint32_t components, bytes;
} pixel_format;

static const pixel_format *find_format(mps_pixel_format number) {
  static const pixel_format formats[] = {
#define X(name, number, channel, order, components, bytes) {#name, number, MPS_TEXEL_##channel, MPS_TEXEL_##order, components, bytes},
      MPS_PIXEL_FORMAT_LIST(X)
#undef X
  };
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
    if (formats[i].number == (uint32_t)number) return &formats[i];
  return NULL;
}

/* ---- descriptors ---- */
/* What a type has: the most texels along width, height and depth (1: no such dimension), and slices. */
typedef struct type_limits {
  const char *name;
  uint32_t most[3], slices;
} type_limits;

static const type_limits *find_type(mps_texture_type type) {
  static const type_limits types[] = {
      [MPS_TEXTURE_1D] = {"1D", {MAX_SIDE, 1, 1}, 1},
      [MPS_TEXTURE_1D_ARRAY] = {"1D array", {MAX_SIDE, 1, 1}, MAX_SLICES},
      [MPS_TEXTURE_2D] = {"2D", {MAX_SIDE, MAX_SIDE, 1}, 1},
      [MPS_TEXTURE_2D_ARRAY] = {"2D array", {MAX_SIDE, MAX_SIDE, 1}, MAX_SLICES},
      [MPS_TEXTURE_3D] = {"3D", {MAX_VOLUME_SIDE, MAX_VOLUME_SIDE, MAX_VOLUME_SIDE}, 1},
      [MPS_TEXTURE_BUFFER] = {"buffer", {MAX_BUFFER_WIDTH, 1, 1}, 1},
  };
  return (size_t)type < sizeof types / sizeof *types && types[type].name ? &types[type] : NULL;
}

static uint32_t at_least_one(uint32_t count) { return count ? count : 1; }
static uint32_t of_level(uint32_t size, uint32_t level) { return at_least_one(size >> level); }

/* As the descriptor, with 1 where 0 means it. */
static mps_texture_descriptor completed(const mps_texture_descriptor *from) {
  mps_texture_descriptor d = *from;
  const type_limits *type = find_type(d.type);
  if (type && type->most[1] == 1) d.height = at_least_one(d.height);
  if (type && type->most[2] == 1) d.depth = at_least_one(d.depth);
  if (type && type->slices == 1) d.array_length = at_least_one(d.array_length);
  d.level_count = at_least_one(d.level_count);
  return d;
}

static uint32_t most_levels(const mps_texture_descriptor *d) {
  if (d->type == MPS_TEXTURE_1D || d->type == MPS_TEXTURE_1D_ARRAY || d->type == MPS_TEXTURE_BUFFER) return 1;
  uint32_t side = d->width > d->height ? d->width : d->height;
  side = side > d->depth ? side : d->depth;
  return 32u - (uint32_t)__builtin_clz(side);
}

static mps_status check_size(const char *what, uint32_t size, uint32_t most, const type_limits *type) {
  if (size >= 1 && size <= most) return MPS_STATUS_OK;
  return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "a %s texture has a %s of 1 to %u, not %u", type->name, what, most, size);
}

static mps_status check_descriptor(const mps_texture_descriptor *d) {
  const type_limits *type = find_type(d->type);
  if (!type) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "textures of type %d are not supported: see mps_texture_type", (int)d->type);
  if (!find_format(d->format))
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "pixel format %d is not supported: see MPS_PIXEL_FORMAT_LIST", (int)d->format);
  MPS_TRY(check_size("width", d->width, type->most[0], type));
  MPS_TRY(check_size("height", d->height, type->most[1], type));
  MPS_TRY(check_size("depth", d->depth, type->most[2], type));
  MPS_TRY(check_size("length of its array", d->array_length, type->slices, type));
  if (d->level_count > most_levels(d))
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "a %s texture of %u x %u x %u texels has at most %u levels, not %u", type->name, d->width,
                         d->height, d->depth, most_levels(d), d->level_count);
  return MPS_STATUS_OK;
}

mps_status mps_texture_layout_make(const mps_texture_descriptor *descriptor, uint64_t bytes_per_row, struct mps_texture_layout *out,
                                   uint64_t *out_bytes) {
  mps_texture_descriptor d = completed(descriptor);
  MPS_TRY(check_descriptor(&d));
  const pixel_format *format = find_format(d.format);
  uint64_t packed = (uint64_t)d.width * format->bytes, at = 0;
  if (bytes_per_row && (bytes_per_row < packed || bytes_per_row % format->bytes))
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%llu bytes a row: %u texels of %s take %llu, and rows begin at multiples of %u",
                         (unsigned long long)bytes_per_row, d.width, format->name, (unsigned long long)packed, format->bytes);
  *out = (struct mps_texture_layout){.width = d.width, .height = d.height, .depth = d.depth, .slices = d.array_length,
                                     .level_count = d.level_count, .texel_bytes = format->bytes, .component_count = format->components,
                                     .channel = format->channel, .order = format->order};
  for (uint32_t l = 0; l < d.level_count; l++) {
    uint64_t row = (uint64_t)of_level(d.width, l) * format->bytes;
    if (l == 0 && bytes_per_row) row = bytes_per_row;
    struct mps_texture_level level = {.offset = at, .row_bytes = row, .image_bytes = row * of_level(d.height, l)};
    out->levels[l] = level;
    uint64_t end = at + level.image_bytes * of_level(d.depth, l) * d.array_length;
    *out_bytes = end - (l == 0 && bytes_per_row ? bytes_per_row - packed : 0); /* the last row needs no gap */
    at = (end + LEVEL_ALIGNMENT - 1) / LEVEL_ALIGNMENT * LEVEL_ALIGNMENT;
  }
  return MPS_STATUS_OK;
}

/* ---- textures ---- */
/* Takes over the reference to `texels`, also when it fails. */
static mps_status create(mps_buffer *texels, uint64_t offset, const mps_texture_descriptor *descriptor, const struct mps_texture_layout *layout,
                         mps_texture **out_texture) {
  mps_texture *texture = calloc(1, sizeof *texture);
  mps_buffer *memory = NULL;
  mps_status status = texture ? mps_buffer_create(texels->device, texels->stream, sizeof *layout, &memory)
                              : mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "out of memory for a texture");
  if (status == MPS_STATUS_OK && !(memory->contents && texels->contents))
    status = mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "textures need memory that processor and device have in common");
  if (status == MPS_STATUS_OK) status = mps_buffer_wait_idle(memory);
  if (status != MPS_STATUS_OK) {
    mps_buffer_release(memory);
    mps_buffer_release(texels);
    free(texture);
    return status;
  }
  *texture = (mps_texture){.descriptor = completed(descriptor), .texels = texels, .layout = memory, .offset = offset, .copy = *layout};
  atomic_init(&texture->references, 1);
  texture->copy.memory = texels->address + offset;
  memcpy(memory->contents, &texture->copy, sizeof texture->copy);
  *out_texture = texture;
  return MPS_STATUS_OK;
}

mps_status mps_texture_create(mps_device *device, mps_stream *stream, const mps_texture_descriptor *descriptor, mps_texture **out_texture) {
  *out_texture = NULL;
  struct mps_texture_layout layout;
  uint64_t bytes = 0;
  mps_buffer *texels;
  MPS_TRY(mps_texture_layout_make(descriptor, 0, &layout, &bytes));
  MPS_TRY(mps_buffer_create(device, stream, bytes, &texels));
  mps_status status = mps_buffer_wait_idle(texels);
  if (status != MPS_STATUS_OK) {
    mps_buffer_release(texels);
    return status;
  }
  if (texels->contents) memset(texels->contents, 0, bytes);
  return create(texels, 0, descriptor, &layout, out_texture);
}

mps_status mps_texture_create_with_buffer(mps_buffer *buffer, uint64_t offset, uint64_t bytes_per_row, const mps_texture_descriptor *descriptor,
                                          mps_texture **out_texture) {
  *out_texture = NULL;
  struct mps_texture_layout layout;
  uint64_t bytes = 0;
  bool rows = descriptor->type == MPS_TEXTURE_2D, line = descriptor->type == MPS_TEXTURE_BUFFER;
  if ((!rows && !line) || descriptor->level_count > 1)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "a texture over a buffer is of type 2D or buffer, with one level");
  MPS_TRY(mps_texture_layout_make(descriptor, bytes_per_row, &layout, &bytes));
  if (offset % layout.texel_bytes)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "a texture begins at a multiple of its texel's %u bytes, not at %llu", layout.texel_bytes,
                         (unsigned long long)offset);
  if (offset > buffer->length || bytes > buffer->length - offset)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "a texture of %llu bytes at %llu does not fit into a buffer of %zu", (unsigned long long)bytes,
                         (unsigned long long)offset, buffer->length);
  return create(mps_buffer_retain(buffer), offset, descriptor, &layout, out_texture);
}

mps_texture *mps_texture_retain(mps_texture *texture) {
  atomic_fetch_add_explicit(&texture->references, 1, memory_order_relaxed);
  return texture;
}

void mps_texture_release(mps_texture *texture) {
  if (!texture || atomic_fetch_sub_explicit(&texture->references, 1, memory_order_acq_rel) > 1) return;
  mps_buffer_release(texture->texels);
  mps_buffer_release(texture->layout);
  free(texture);
}

const mps_texture_descriptor *mps_texture_get_descriptor(const mps_texture *texture) { return &texture->descriptor; }

/* ---- boxes of texels ---- */
static mps_status check_region(const mps_texture *texture, const mps_texture_region *region, uint32_t size[3]) {
  const struct mps_texture_layout *layout = &texture->copy;
  if (region->level >= layout->level_count || region->slice >= layout->slices)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "level %u, slice %u: the texture has %u and %u", region->level, region->slice,
                         layout->level_count, layout->slices);
  const uint32_t whole[3] = {of_level(layout->width, region->level), of_level(layout->height, region->level),
                             of_level(layout->depth, region->level)};
  for (int i = 0; i < 3; i++) {
    size[i] = i == 0 ? region->size[0] : at_least_one(region->size[i]);
    if (region->origin[i] > whole[i] || size[i] > whole[i] - region->origin[i])
      return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "texels %u to %u along %c are not within the level's %u", region->origin[i],
                           region->origin[i] + size[i], "xyz"[i], whole[i]);
  }
  return MPS_STATUS_OK;
}

/* `write`: into the texture. */
static mps_status copy_region(mps_texture *texture, const mps_texture_region *region, char *bytes, uint64_t bytes_per_row,
                              uint64_t bytes_per_image, bool write) {
  uint32_t size[3];
  MPS_TRY(check_region(texture, region, size));
  const struct mps_texture_level *level = &texture->copy.levels[region->level];
  uint64_t row = (uint64_t)size[0] * texture->copy.texel_bytes;
  if (bytes_per_row == 0) bytes_per_row = row;
  if (bytes_per_image == 0) bytes_per_image = bytes_per_row * size[1];
  if (bytes_per_row < row && size[1] * size[2] > 1)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%llu bytes a row: %u texels take %llu", (unsigned long long)bytes_per_row, size[0],
                         (unsigned long long)row);
  MPS_TRY(mps_buffer_wait_idle(texture->texels));
  char *texels = (char *)texture->texels->contents + texture->offset + level->offset + region->slice * level->image_bytes +
                 region->origin[0] * (uint64_t)texture->copy.texel_bytes;
  for (uint32_t z = 0; z < size[2]; z++)
    for (uint32_t y = 0; y < size[1]; y++) {
      char *inside = texels + (region->origin[2] + z) * level->image_bytes + (region->origin[1] + y) * level->row_bytes;
      char *outside = bytes + z * bytes_per_image + y * bytes_per_row;
      memcpy(write ? inside : outside, write ? outside : inside, row);
    }
  return MPS_STATUS_OK;
}

mps_status mps_texture_replace_region(mps_texture *texture, const mps_texture_region *region, const void *bytes, uint64_t bytes_per_row,
                                      uint64_t bytes_per_image) {
  return copy_region(texture, region, (char *)(uintptr_t)bytes, bytes_per_row, bytes_per_image, true);
}

mps_status mps_texture_get_bytes(mps_texture *texture, const mps_texture_region *region, void *bytes, uint64_t bytes_per_row,
                                 uint64_t bytes_per_image) {
  return copy_region(texture, region, bytes, bytes_per_row, bytes_per_image, false);
}

/* ---- samplers ---- */
static bool make_address(mps_sampler_address from, unsigned char *out) {
  switch (from) {
    case MPS_SAMPLER_CLAMP_TO_EDGE: return *out = MPS_ADDRESS_CLAMP_TO_EDGE, true;
    case MPS_SAMPLER_REPEAT: return *out = MPS_ADDRESS_REPEAT, true;
    case MPS_SAMPLER_MIRROR_REPEAT: return *out = MPS_ADDRESS_MIRRORED_REPEAT, true;
    case MPS_SAMPLER_CLAMP_TO_ZERO: return *out = MPS_ADDRESS_CLAMP_TO_ZERO, true;
    case MPS_SAMPLER_CLAMP_TO_BORDER: return *out = MPS_ADDRESS_CLAMP_TO_BORDER, true;
  }
  return false;
}

mps_status mps_sampler_layout_make(const mps_sampler_descriptor *descriptor, struct mps_sampler_layout *out) {
  static const mps_sampler_descriptor usual = {0};
  const mps_sampler_descriptor *d = descriptor ? descriptor : &usual;
  *out = (struct mps_sampler_layout){.min_filter = (unsigned char)d->min_filter, .mag_filter = (unsigned char)d->mag_filter,
                                     .mip_filter = (unsigned char)d->mip_filter, .border = (unsigned char)d->border_color,
                                     .pixels = d->pixel_coordinates, .lod_min = d->lod_min, .lod_max = d->lod_max > 0.0f ? d->lod_max : FLT_MAX};
  bool known = make_address(d->s_address, &out->address[0]) && make_address(d->t_address, &out->address[1]) &&
               make_address(d->r_address, &out->address[2]) && (unsigned)d->min_filter <= MPS_SAMPLER_LINEAR &&
               (unsigned)d->mag_filter <= MPS_SAMPLER_LINEAR && (unsigned)d->mip_filter <= MPS_SAMPLER_MIP_LINEAR &&
               (unsigned)d->border_color <= MPS_SAMPLER_OPAQUE_WHITE;
  return known ? MPS_STATUS_OK : mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "a sampler has an address mode, filter or border colour that is not Metal's");
}
