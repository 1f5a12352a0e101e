/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fallback: operators without a kernel.
 */
#pragma once

#include <string>

namespace openmps {

// The commit of torch, which the error text names.
void set_commit(const std::string &hash);
bool fallback_enabled();

}  // namespace openmps
