/* SPDX-License-Identifier: BSD-3-Clause
 *
 * dense: the provider of dense maths (gemm, convolution, matrix factorisations), as on Apple a vendor's library.
 *
 * A provider works on addresses: a step calls it on the stream's executor thread when the operands are ready. It must not touch
 * OpenMPS objects, must not wait for the caller, and turns its own failures into PROVIDER_ERROR with a text.
 */
#ifndef OPENMPS_DENSE_H
#define OPENMPS_DENSE_H

#include "openmps/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An operand of a dense call: what an mps_tensor is, with its address taken. Strides count elements. */
typedef struct mps_dense_operand {
  void *data; /* address of element 0 */
  mps_dtype dtype;
  uint32_t rank;
  int64_t sizes[MPS_MAX_RANK];
  int64_t strides[MPS_MAX_RANK];
} mps_dense_operand;

/* out = beta * bias + alpha * (a @ b) over rank 2 (m,k)(k,n) or rank 3 (batch first) operands of one dtype. beta 0 never reads bias,
 * whose data may then be NULL. bias is broadcast by strides 0. out may have any strides without overlap. */
typedef struct mps_dense_gemm {
  mps_dense_operand a, b, bias, out;
  mps_scalar alpha, beta;
} mps_dense_gemm;

#define MPS_CONVOLUTION_MAX_DIMENSIONS 3

/* 1 to 3 spatial dimensions; tensors are (N, C, spatial...), weights (out, in/groups, spatial...) or transposed as PyTorch's. */
typedef struct mps_dense_convolution {
  mps_dense_operand input, weight, bias, out; /* bias.data NULL: none */
  uint32_t dimensions;
  int64_t stride[MPS_CONVOLUTION_MAX_DIMENSIONS], padding[MPS_CONVOLUTION_MAX_DIMENSIONS], dilation[MPS_CONVOLUTION_MAX_DIMENSIONS];
  int64_t output_padding[MPS_CONVOLUTION_MAX_DIMENSIONS];
  int64_t groups;
  bool transposed;
} mps_dense_convolution;

/* Gradients of a convolution; a gradient whose data is NULL is not wanted. */
typedef struct mps_dense_convolution_backward {
  mps_dense_convolution forward; /* its out is unused */
  mps_dense_operand grad_output, grad_input, grad_weight, grad_bias;
} mps_dense_convolution_backward;

typedef struct mps_dense_provider {
  const char *name;
  mps_status (*gemm)(const mps_dense_gemm *call);
  mps_status (*convolution)(const mps_dense_convolution *call);
  mps_status (*convolution_backward)(const mps_dense_convolution_backward *call);
} mps_dense_provider;

/* The provider of a device; the struct must live as long as the device. NULL entries (or no provider) use OpenMPS's own kernels. */
MPS_API void mps_dense_set_provider(mps_device *device, const mps_dense_provider *provider);
MPS_API const mps_dense_provider *mps_dense_get_provider(const mps_device *device); /* may be NULL */

/* Any other dense call (a factorisation): runs `function(parameters)` on the executor. `parameters` are copied (at most 4096 bytes);
 * `buffers` are those that it touches. */
MPS_API MPS_WARN_UNUSED mps_status mps_dense_call(mps_stream *stream, const char *label, mps_status (*function)(const void *parameters),
                                                  const void *parameters, uint32_t parameter_bytes, mps_buffer *const *buffers,
                                                  uint32_t buffer_count, double cost);

#ifdef __cplusplus
}
#endif
#endif
