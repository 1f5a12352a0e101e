/* SPDX-License-Identifier: BSD-3-Clause
 *
 * generator: torch.Generator("mps"): a Philox 4x32-10 stream, keyed by its seed and counted by its offset. Opens no device.
 */
#pragma once

#include <ATen/core/Generator.h>

namespace openmps {

const at::Generator &default_generator();
at::Generator new_generator();

}  // namespace openmps
