/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pch: what every file of the bridge includes; compiled once (parsing ATen takes most of a file's compile time).
 */
#pragma once

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/TensorIterator.h>
#include <ATen/TensorMeta.h>
#include <ATen/core/op_registration/adaption.h>
#include <ATen/native/Resize.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include "bridge/convert.h"
#include "bridge/outputs.h"
#include "openmps/ops.h"
