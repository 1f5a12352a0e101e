/* SPDX-License-Identifier: BSD-3-Clause
 *
 * texture: inside of mps_texture: a buffer with texels, and a small one with their layout, to which a kernel's texture points. Neither
 * moves while the texture lives, and steps keep both.
 */
#ifndef OPENMPS_RUNTIME_TEXTURE_H
#define OPENMPS_RUNTIME_TEXTURE_H

#include <stdatomic.h>

#include "kernels/include/openmps_texture/layout.h"
#include "openmps/texture.h"

struct mps_texture {
  mps_texture_descriptor descriptor;
  mps_buffer *texels, *layout;
  uint64_t offset; /* of level 0 in `texels` */
  struct mps_texture_layout copy;
  _Atomic uint32_t references;
};

/* Fills *out from the descriptor, `memory` aside; *out_bytes: of all texels. `bytes_per_row`: of level 0; 0: no gap. Pure. INVALID_ARGUMENT. */
MPS_WARN_UNUSED mps_status mps_texture_layout_make(const mps_texture_descriptor *descriptor, uint64_t bytes_per_row,
                                                   struct mps_texture_layout *out, uint64_t *out_bytes);
/* NULL: the default sampler. INVALID_ARGUMENT for numbers that are not Metal's. */
MPS_WARN_UNUSED mps_status mps_sampler_layout_make(const mps_sampler_descriptor *descriptor, struct mps_sampler_layout *out);

#endif
