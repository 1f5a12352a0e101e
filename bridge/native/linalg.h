/* SPDX-License-Identifier: BSD-3-Clause
 *
 * linalg: what the glue of the linear algebra shares: column-major results, and out= tensors of the older entries.
 */
#pragma once

#include <ATen/native/LinearAlgebraUtils.h>

#include "bridge/convert.h"
#include "bridge/bridge.h"

namespace openmps::native {

inline at::Tensor empty_columns(at::IntArrayRef sizes, const at::TensorOptions &options) {
  return empty_strided(sizes, at::native::batched_matrix_contiguous_strides(sizes, true), options);
}

inline at::DimVector batch_of(const at::Tensor &matrices) { return at::DimVector(matrices.sizes().slice(0, matrices.dim() - 2)); }

// One number for each matrix.
inline at::Tensor empty_info(const at::Tensor &matrices) { return at::zeros(batch_of(matrices), matrices.options().dtype(at::kInt)); }

inline void fill_identity(const at::Tensor &matrices) {
  matrices.zero_();
  matrices.diagonal(0, -2, -1).fill_(1);
}

// An out= tensor of an entry that is not structured: fill(target) is called on `out` itself where it has the dtype and is empty (it then
// becomes column-major) or has the sizes; else on a tensor that is copied.
template <class Fill>
at::Tensor &into(at::Tensor &out, at::IntArrayRef sizes, at::ScalarType type, const Fill &fill) {
  if (out.scalar_type() == type && (out.sizes() == sizes || out.numel() == 0)) {
    if (out.sizes() != sizes) {
      out.resize_(sizes, at::MemoryFormat::Contiguous);
      out.as_strided_(sizes, at::native::batched_matrix_contiguous_strides(sizes, true));
    }
    fill(out);
    return out;
  }
  const at::Tensor result = empty_columns(sizes, out.options().dtype(type));
  fill(result);
  at::native::resize_output(out, sizes);
  return out.copy_(result);
}

}  // namespace openmps::native
