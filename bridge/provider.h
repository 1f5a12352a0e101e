/* SPDX-License-Identifier: BSD-3-Clause
 *
 * provider: the dense maths that the installed torch carries (MKL or another BLAS, oneDNN), as OpenMPS's provider. It is called on
 * stream executors, on memory of OpenMPS's buffers, without the GIL and without autograd.
 *
 * Each call of the library runs on one thread; a large job is cut into pieces by its shape alone, and the pieces are spread over the
 * device's workers. An OpenMP team per executor was measured and refused: docs/decisions/0004-dense-provider.md.
 */
#pragma once

#include <ATen/core/Tensor.h>

#include <exception>
#include <functional>

#include "openmps/dense.h"

namespace openmps {

// The provider, for mps_dense_set_provider. It touches torch at the first call only.
const mps_dense_provider *dense_provider();

namespace dense {

mps_status gemm(const mps_dense_gemm *call);
mps_status convolution(const mps_dense_convolution *call);
mps_status convolution_backward(const mps_dense_convolution_backward *call);
mps_status factorize(const mps_dense_factorization *call);

// Runs work(i) for each i < count on the device's workers, each with the libraries held to one thread and dispatch below autograd; the
// first exception becomes PROVIDER_ERROR.
mps_status spread(uint32_t count, const std::function<void(uint32_t)> &work);
// How many pieces a job of `nanoseconds` on one core is cut into, large ones into pieces of about `piece_nanoseconds`; depends on nothing else.
int64_t pieces_for(double nanoseconds, double piece_nanoseconds);

at::ScalarType scalar_type(mps_dtype dtype);
// A CPU tensor over memory that belongs to somebody else.
at::Tensor alias(void *data, at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType type);

// Memory of the calling thread that lasts until the next request of the same slot.
void *scratch(unsigned slot, size_t bytes);

// oneDNN computes this half type well on this processor.
bool has_native(at::ScalarType type);

}  // namespace dense
}  // namespace openmps
