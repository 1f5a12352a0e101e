/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shader: Metal shaders from Python, the part of torch._C that a stock wheel lacks.
 */
#pragma once

#include <torch/csrc/utils/pybind.h>

namespace openmps {

// Adds _mps_compileShader, _mps_loadMetalllib, _mps_loadMetallibFromPath and their classes.
void bind_shaders(pybind11::module_ &module);

}  // namespace openmps
