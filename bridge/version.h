/* SPDX-License-Identifier: BSD-3-Clause
 *
 * version: which torch this bridge was compiled for.
 */
#pragma once

namespace openmps {

const char *torch_built_for(); // "2.13.0"

}  // namespace openmps
