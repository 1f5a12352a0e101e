/* SPDX-License-Identifier: BSD-3-Clause
 *
 * outputs: what the wrappers of structured kernels do with their outputs: make, resize, check.
 */
#pragma once

#include <ATen/core/Tensor.h>

namespace openmps {

// A result of a functional entry; strides may be empty (then the options' memory format decides).
at::Tensor create_out(at::IntArrayRef sizes, at::IntArrayRef strides, const at::TensorOptions &options);
// Gives an out= tensor the wanted size; PyTorch's errors for a wrong dtype or device.
void resize_out(const at::Tensor &out, at::IntArrayRef sizes, at::IntArrayRef strides, const at::TensorOptions &options);
// PyTorch's errors for an in-place call whose result would not fit.
void check_inplace(const at::Tensor &self, at::IntArrayRef sizes, const at::TensorOptions &options);
// True when a kernel cannot write this tensor directly: a proxy takes the result and is copied afterwards.
inline bool wants_proxy(const at::Tensor &out) { return out.is_conj() || out.is_neg(); }

}  // namespace openmps
