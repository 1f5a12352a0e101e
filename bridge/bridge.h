/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bridge: what every file of the bridge starts from.
 */
#pragma once

#include "bridge/pch.h"

#include "bridge/convert.h"
#include "bridge/outputs.h"
