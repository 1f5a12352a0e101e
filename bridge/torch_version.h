/* SPDX-License-Identifier: BSD-3-Clause
 *
 * torch_version: what differs between the versions of torch that the bridge compiles for (2.11 to 2.14). The only place that
 * asks for a version; 2.13 is the reference.
 */
#pragma once

#include <ATen/detail/MPSHooksInterface.h>
#include <torch/headeronly/version.h>

#define OPENMPS_TORCH_AT_LEAST(minor) (TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= (minor)))

// 2.12 and before: the registry hands an argument to the hooks' constructor.
#if OPENMPS_TORCH_AT_LEAST(13)
#define OPENMPS_HOOKS_CONSTRUCTOR(name) name() = default;
#else
#define OPENMPS_HOOKS_CONSTRUCTOR(name) explicit name(at::MPSHooksArgs) {}
#endif

// Virtual functions that appeared with a version.
#if OPENMPS_TORCH_AT_LEAST(13)
#define OPENMPS_OVERRIDE_SINCE_13 override
#else
#define OPENMPS_OVERRIDE_SINCE_13
#endif

// Up to 2.12 the set_output functions of structured kernels had one more parameter: dimension names.
#if OPENMPS_TORCH_AT_LEAST(13)
#define OPENMPS_NAMES_PARAMETER
#define OPENMPS_NAMES_ARGUMENT
#else
#define OPENMPS_NAMES_PARAMETER , at::DimnameList names
#define OPENMPS_NAMES_ARGUMENT , names
#endif
