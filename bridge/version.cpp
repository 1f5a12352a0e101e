// SPDX-License-Identifier: BSD-3-Clause
//
// version: which torch this bridge was compiled for. python/openmps compares it before anything of the bridge runs.
#include "bridge/torch_version.h"
#include "bridge/version.h"

namespace openmps {

const char *torch_built_for() { return TORCH_VERSION; }

}  // namespace openmps
