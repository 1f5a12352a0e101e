/* SPDX-License-Identifier: BSD-3-Clause
 *
 * convolution: check, plan and encode a convolution and its gradients, by the device's provider or by kernels/convolution.metal.
 */
#include <string.h>

#include "base/status.h"
#include "graph/formula.h"
#include "kernels/convolution.h"
#include "openmps/ops/dense.h"
#include "ops/dense.h"
#include "ops/operand.h"
#include "runtime/buffer.h"

#define DIMENSIONS MPS_CONVOLUTION_MAX_DIMENSIONS
#define PROVIDER_NS 0.03 /* a multiply-add, on one core */
#define KERNEL_NS 0.5

/* What a convolution is, without its tensors. */
typedef struct geometry {
  uint32_t dimensions;
  int64_t stride[DIMENSIONS], padding[DIMENSIONS], dilation[DIMENSIONS], output_padding[DIMENSIONS];
  int64_t groups;
  bool transposed;
} geometry;

/* An operand with memory: a tensor's, or a copy of it made for this call. */
typedef struct operand {
  mps_buffer *buffer;
  uint64_t offset;
  int64_t sizes[DIMENSIONS + 2], strides[DIMENSIONS + 2];
} operand;

/* ---- check ---- */

static mps_status read_list(const int64_t *values, uint32_t count, uint32_t dimensions, int64_t least, const char *name, int64_t *to) {
  if (count != 1 && count != dimensions)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "convolution: expected %u values for %s, but got %u", (unsigned)dimensions, name, (unsigned)count);
  for (uint32_t d = 0; d < dimensions; d++) {
    to[d] = values[count == 1 ? 0 : d];
    if (to[d] < least)
      return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "convolution: %s is %lld, but must be at least %lld", name, (long long)to[d],
                           (long long)least);
  }
  return MPS_STATUS_OK;
}

static int64_t output_size(const geometry *g, uint32_t d, int64_t input, int64_t taps) {
  int64_t reach = g->dilation[d] * (taps - 1);
  if (g->transposed) return (input - 1) * g->stride[d] - 2 * g->padding[d] + reach + g->output_padding[d] + 1;
  int64_t span = input + 2 * g->padding[d] - reach - 1;
  return span < 0 ? 0 : span / g->stride[d] + 1;
}

static mps_status check_tensors(const geometry *g, const mps_tensor *input, const mps_tensor *weight, const mps_tensor *out) {
  uint32_t rank = g->dimensions + 2;
  if (input->rank != rank || weight->rank != rank || out->rank != rank)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "convolution: input, weight and output must have %u dimensions, but have %u, %u and %u",
                         (unsigned)rank, (unsigned)input->rank, (unsigned)weight->rank, (unsigned)out->rank);
  if (input->dtype != weight->dtype || out->dtype != input->dtype)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "expected scalar type %s but found %s", mps_dtype_title(input->dtype),
                         mps_dtype_title(input->dtype != weight->dtype ? weight->dtype : out->dtype));
  if (input->dtype == MPS_DTYPE_BOOL)
    return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "\"slow_conv2d_cpu\" not implemented for 'Bool'");
  int64_t in_channels = g->transposed ? weight->sizes[0] : weight->sizes[1] * g->groups;
  int64_t out_channels = g->transposed ? weight->sizes[1] * g->groups : weight->sizes[0];
  if (input->sizes[1] != in_channels || weight->sizes[0] % g->groups != 0)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "convolution: with %lld groups and weights of %lld x %lld channels the input needs %lld "
                         "channels, but has %lld", (long long)g->groups, (long long)weight->sizes[0], (long long)weight->sizes[1],
                         (long long)in_channels, (long long)input->sizes[1]);
  bool fits = out->sizes[0] == input->sizes[0] && out->sizes[1] == out_channels;
  for (uint32_t d = 0; d < g->dimensions; d++)
    fits = fits && out->sizes[d + 2] == output_size(g, d, input->sizes[d + 2], weight->sizes[d + 2]);
  return fits ? MPS_STATUS_OK : mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "convolution: the output's shape does not fit");
}

static mps_status read_geometry(const mps_tensor *input, const int64_t *stride, uint32_t stride_count, const int64_t *padding,
                                uint32_t padding_count, const int64_t *dilation, uint32_t dilation_count, bool transposed,
                                const int64_t *output_padding, uint32_t output_padding_count, int64_t groups, geometry *g) {
  if (input->rank < 3 || input->rank > DIMENSIONS + 2)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "convolution: input must have 3 to 5 dimensions, but has %u", (unsigned)input->rank);
  if (groups < 1) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "convolution: groups is %lld, but must be positive", (long long)groups);
  *g = (geometry){.dimensions = input->rank - 2u, .groups = groups, .transposed = transposed};
  MPS_TRY(read_list(stride, stride_count, g->dimensions, 1, "stride", g->stride));
  MPS_TRY(read_list(padding, padding_count, g->dimensions, 0, "padding", g->padding));
  MPS_TRY(read_list(dilation, dilation_count, g->dimensions, 1, "dilation", g->dilation));
  return read_list(output_padding, output_padding_count, g->dimensions, 0, "output_padding", g->output_padding);
}

static mps_status check_vector(const mps_tensor *vector, mps_dtype dtype, int64_t size, const char *name) {
  if (vector == NULL || (vector->rank == 1 && vector->dtype == dtype && vector->sizes[0] == size)) return MPS_STATUS_OK;
  return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "convolution: %s must be %s of size %lld, but is %s of rank %u and size %lld", name,
                       mps_dtype_name(dtype), (long long)size, mps_dtype_name(vector->dtype), (unsigned)vector->rank,
                       (long long)(vector->rank ? vector->sizes[0] : 1));
}

/* ---- operands ---- */

static operand operand_of(const mps_tensor *tensor) {
  operand o = {.buffer = tensor->buffer, .offset = tensor->offset};
  for (uint32_t d = 0; d < DIMENSIONS + 2; d++) o.sizes[d] = 1;
  for (uint32_t d = 0; d < tensor->rank; d++) {
    o.sizes[d] = tensor->sizes[d];
    o.strides[d] = tensor->strides[d];
  }
  return o;
}

static bool is_empty(const mps_tensor *tensor) { return tensor != NULL && mps_tensor_element_count(tensor) == 0; }

/* Up to three inputs and the copies that were made of them. */
typedef struct inputs {
  operand operands[3];
  mps_buffer *copies[3];
  uint32_t count, copy_count;
} inputs;

static bool overlaps(const mps_tensor *a, const mps_tensor *b) {
  uint64_t a_begin, a_end, b_begin, b_end;
  if (b == NULL || a->buffer != b->buffer) return false;
  mps_operand_byte_range(a->offset, a->dtype, a->rank, a->sizes, a->strides, &a_begin, &a_end);
  mps_operand_byte_range(b->offset, b->dtype, b->rank, b->sizes, b->strides, &b_begin, &b_end);
  return a_begin < b_end && b_begin < a_end;
}

/* Adds an input; constants and inputs that an output overlaps get memory of their own. */
static mps_status add_input(mps_stream *stream, inputs *in, const mps_tensor *tensor, const mps_tensor *const outputs[3]) {
  operand o = operand_of(tensor);
  mps_buffer *copy = NULL;
  if (tensor->buffer == NULL) {
    MPS_TRY(mps_dense_constant(stream, tensor->constant, tensor->dtype, &copy));
    memset(o.strides, 0, sizeof o.strides);
    o.offset = 0;
  } else if (overlaps(tensor, outputs[0]) || overlaps(tensor, outputs[1]) || overlaps(tensor, outputs[2])) {
    uint64_t begin, end;
    mps_operand_byte_range(tensor->offset, tensor->dtype, tensor->rank, tensor->sizes, tensor->strides, &begin, &end);
    MPS_TRY(mps_dense_copy_range(stream, tensor->buffer, begin, end, &copy));
    o.offset -= begin;
  }
  if (copy != NULL) {
    o.buffer = copy;
    in->copies[in->copy_count++] = copy;
  }
  in->operands[in->count++] = o;
  return MPS_STATUS_OK;
}

static void release_inputs(inputs *in) {
  for (uint32_t i = 0; i < in->copy_count; i++) mps_buffer_release(in->copies[i]);
}

static mps_status refuse_flags(const mps_tensor *tensor, const char *name) {
  if (tensor == NULL || tensor->flags == 0) return MPS_STATUS_OK;
  return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "convolution: %s has a conjugate or negative flag; resolve it first", name);
}

/* ---- encode: provider ---- */

static mps_dense_operand dense_operand(const operand *o) {
  mps_dense_operand d = {.data = (char *)mps_buffer_contents(o->buffer) + o->offset};
  memcpy(d.sizes, o->sizes, sizeof d.sizes);
  memcpy(d.strides, o->strides, sizeof d.strides);
  return d;
}

static mps_dense_convolution dense_convolution(const geometry *g, mps_dtype dtype) {
  mps_dense_convolution c = {.dtype = dtype, .dimensions = g->dimensions, .groups = g->groups, .transposed = g->transposed};
  memcpy(c.stride, g->stride, sizeof c.stride);
  memcpy(c.padding, g->padding, sizeof c.padding);
  memcpy(c.dilation, g->dilation, sizeof c.dilation);
  memcpy(c.output_padding, g->output_padding, sizeof c.output_padding);
  return c;
}

typedef struct forward_call {
  mps_status (*convolution)(const mps_dense_convolution *call);
  mps_dense_convolution call;
} forward_call;

typedef struct backward_call {
  mps_status (*convolution_backward)(const mps_dense_convolution_backward *call);
  mps_dense_convolution_backward call;
} backward_call;

static mps_status run_forward(const void *parameters) {
  const forward_call *c = parameters;
  return c->convolution(&c->call);
}
static mps_status run_backward(const void *parameters) {
  const backward_call *c = parameters;
  return c->convolution_backward(&c->call);
}

/* Multiply-adds of one pass. */
static double work(const geometry *g, const operand *input, const operand *weight, const operand *out) {
  const operand *many = g->transposed ? input : out;
  double taps = (double)weight->sizes[1];
  for (uint32_t d = 0; d < g->dimensions; d++) taps *= (double)weight->sizes[d + 2];
  for (uint32_t d = 0; d < DIMENSIONS + 2; d++) taps *= (double)many->sizes[d];
  return taps;
}

/* ---- encode: kernels ---- */

static void spatial(const geometry *g, int64_t to[3], const int64_t *from, int64_t missing) {
  for (uint32_t d = 0; d < 3; d++) to[d] = d + g->dimensions < 3 ? missing : from[d + g->dimensions - 3];
}

static void channels_and_spatial(const geometry *g, int64_t to[5], const int64_t *from) {
  to[0] = from[0];
  to[1] = from[1];
  spatial(g, to + 2, from + 2, 0);
}

static mps_convolution_arguments arguments_of(const geometry *g, const operand *wide, const operand *narrow, const operand *weight) {
  mps_convolution_arguments a = {.batch = wide->sizes[0], .groups = g->groups, .wide_channels = wide->sizes[1] / g->groups,
                                 .narrow_channels = narrow->sizes[1] / g->groups};
  spatial(g, a.wide_sizes, wide->sizes + 2, 1);
  spatial(g, a.narrow_sizes, narrow->sizes + 2, 1);
  spatial(g, a.taps, weight->sizes + 2, 1);
  spatial(g, a.stride, g->stride, 1);
  spatial(g, a.padding, g->padding, 0);
  spatial(g, a.dilation, g->dilation, 1);
  channels_and_spatial(g, a.wide_strides, wide->strides);
  channels_and_spatial(g, a.narrow_strides, narrow->strides);
  channels_and_spatial(g, a.weight_strides, weight->strides);
  return a;
}

/* One kernel; operands in the order of its arguments, the last one is written. */
static mps_status dispatch(mps_stream *stream, const char *label, const char *kernel, mps_dtype dtype, const operand *const *operands,
                           uint32_t count, const mps_convolution_arguments *arguments, double cost, uint64_t x, uint64_t y, uint64_t z) {
  mps_pipeline *pipeline;
  MPS_TRY(mps_dense_pipeline(stream, kernel, dtype, &pipeline));
  mps_encoder encoder;
  mps_encoder_begin(&encoder, stream, label);
  mps_encoder_set_pipeline(&encoder, pipeline);
  for (uint32_t i = 0; i < count; i++)
    mps_encoder_set_buffer(&encoder, i, operands[i]->buffer, operands[i]->offset, i + 1 < count ? MPS_ACCESS_READ : MPS_ACCESS_WRITE);
  mps_encoder_set_bytes(&encoder, count, arguments, sizeof *arguments);
  mps_encoder_set_cost(&encoder, cost);
  const uint64_t threads[3] = {x, y, z};
  return mps_encoder_dispatch(&encoder, threads, NULL);
}

static uint64_t tiles(int64_t size) { return ((uint64_t)size + MPS_CONVOLUTION_TILE - 1) / MPS_CONVOLUTION_TILE; }

/* narrow = convolution of wide. */
static mps_status encode_narrow(mps_stream *stream, const char *label, mps_dtype dtype, mps_convolution_arguments a, const operand *wide,
                                const operand *weight, const operand *bias, const operand *narrow, double cost) {
  a.has_bias = bias != NULL;
  a.bias_stride = bias != NULL ? bias->strides[0] : 0;
  const operand *operands[] = {wide, weight, bias != NULL ? bias : weight, narrow};
  return dispatch(stream, label, "convolution", dtype, operands, 4, &a, cost, tiles(a.narrow_sizes[2]),
                  (uint64_t)(a.narrow_sizes[0] * a.narrow_sizes[1]), (uint64_t)(a.batch * a.groups * a.narrow_channels));
}

/* wide = transposed convolution of narrow. */
static mps_status encode_wide(mps_stream *stream, const char *label, mps_dtype dtype, mps_convolution_arguments a, const operand *narrow,
                              const operand *weight, const operand *bias, const operand *wide, double cost) {
  a.has_bias = bias != NULL;
  a.bias_stride = bias != NULL ? bias->strides[0] : 0;
  const operand *operands[] = {narrow, weight, bias != NULL ? bias : weight, wide};
  return dispatch(stream, label, "convolution_transpose", dtype, operands, 4, &a, cost, tiles(a.wide_sizes[2]),
                  (uint64_t)(a.wide_sizes[0] * a.wide_sizes[1]), (uint64_t)(a.batch * a.groups * a.wide_channels));
}

static mps_status encode_weight(mps_stream *stream, mps_dtype dtype, mps_convolution_arguments a, const operand *wide, const operand *narrow,
                                const operand *gradient, double cost) {
  const operand *operands[] = {wide, narrow, gradient};
  return dispatch(stream, "convolution_backward", "convolution_weight", dtype, operands, 3, &a, cost,
                  (uint64_t)(a.taps[0] * a.taps[1] * a.taps[2]), (uint64_t)a.wide_channels, (uint64_t)(a.groups * a.narrow_channels));
}

static mps_status encode_bias(mps_stream *stream, mps_dtype dtype, const geometry *g, const operand *grad_output, const operand *gradient) {
  mps_convolution_arguments a = {.batch = grad_output->sizes[0], .groups = 1, .narrow_channels = grad_output->sizes[1]};
  double cost = 1.0;
  for (uint32_t d = 0; d < DIMENSIONS + 2; d++) cost *= (double)grad_output->sizes[d];
  spatial(g, a.narrow_sizes, grad_output->sizes + 2, 1);
  channels_and_spatial(g, a.narrow_strides, grad_output->strides);
  a.bias_stride = gradient->strides[0];
  const operand *operands[] = {grad_output, gradient};
  return dispatch(stream, "convolution_backward", "convolution_bias", dtype, operands, 2, &a, cost, (uint64_t)grad_output->sizes[1], 1, 1);
}

/* ---- forward ---- */

static mps_status encode_forward(mps_stream *stream, const geometry *g, mps_dtype dtype, const inputs *in, const operand *out) {
  const operand *input = &in->operands[0], *weight = &in->operands[1], *bias = in->count > 2 ? &in->operands[2] : NULL;
  double macs = work(g, input, weight, out);
  const mps_dense_provider *provider = mps_dense_choose(stream, MPS_DENSE_CONVOLUTION, dtype);
  if (provider == NULL || provider->convolution == NULL) {
    mps_convolution_arguments a = g->transposed ? arguments_of(g, out, input, weight) : arguments_of(g, input, out, weight);
    return g->transposed ? encode_wide(stream, "convolution", dtype, a, input, weight, bias, out, KERNEL_NS * macs)
                         : encode_narrow(stream, "convolution", dtype, a, input, weight, bias, out, KERNEL_NS * macs);
  }
  forward_call c = {provider->convolution, dense_convolution(g, dtype)};
  c.call.input = dense_operand(input);
  c.call.weight = dense_operand(weight);
  if (bias != NULL) c.call.bias = dense_operand(bias);
  c.call.out = dense_operand(out);
  mps_buffer *buffers[] = {out->buffer, input->buffer, weight->buffer, bias != NULL ? bias->buffer : NULL};
  return mps_dense_call(stream, "convolution", run_forward, &c, sizeof c, buffers, bias != NULL ? 4 : 3, false, 10000.0 + PROVIDER_NS * macs);
}

/* Where the input or the weight is empty and the output is not, each output is its bias: a sum over no channel. */
static mps_status fill_with_bias(mps_stream *stream, const mps_tensor *bias, const mps_tensor *out) {
  mps_tensor rows = *out;
  for (uint32_t d = 2; d < out->rank; d++)
    if (out->sizes[d] != 1 && d + 1 < out->rank && out->strides[d] != out->strides[d + 1] * out->sizes[d + 1])
      return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "convolution: an output without inputs must be contiguous");
  int64_t positions = 1;
  for (uint32_t d = 2; d < out->rank; d++) positions *= out->sizes[d];
  rows.rank = 3;
  rows.sizes[2] = positions;
  rows.strides[2] = out->strides[out->rank - 1];
  mps_tensor nothing = {.buffer = NULL, .dtype = out->dtype, .rank = 3, .sizes = {out->sizes[0], out->sizes[1], 0}};
  mps_tensor nothing_too = {.buffer = NULL, .dtype = out->dtype, .rank = 3, .sizes = {out->sizes[0], 0, positions}};
  mps_tensor broadcast = {.buffer = NULL, .dtype = out->dtype};
  if (bias != NULL) {
    broadcast = *bias;
    broadcast.rank = 2;
    broadcast.sizes[1] = 1;
    broadcast.strides[1] = 0;
  }
  return mps_op_baddbmm(stream, &broadcast, &nothing, &nothing_too, mps_scalar_int(1), mps_scalar_int(1), &rows);
}

mps_status mps_op_convolution(mps_stream *stream, const mps_tensor *input, const mps_tensor *weight, const mps_tensor *bias,
                              const int64_t *stride, uint32_t stride_count, const int64_t *padding, uint32_t padding_count,
                              const int64_t *dilation, uint32_t dilation_count, bool transposed, const int64_t *output_padding,
                              uint32_t output_padding_count, int64_t groups, const mps_tensor *out) {
  geometry g;
  MPS_TRY(read_geometry(input, stride, stride_count, padding, padding_count, dilation, dilation_count, transposed, output_padding,
                        output_padding_count, groups, &g));
  MPS_TRY(check_tensors(&g, input, weight, out));
  MPS_TRY(check_vector(bias, input->dtype, out->sizes[1], "bias"));
  MPS_TRY(refuse_flags(input, "input"));
  MPS_TRY(refuse_flags(weight, "weight"));
  MPS_TRY(refuse_flags(bias, "bias"));
  MPS_TRY(refuse_flags(out, "the output"));
  if (is_empty(out)) return MPS_STATUS_OK;
  if (is_empty(input) || is_empty(weight)) return fill_with_bias(stream, bias, out);
  const mps_tensor *const outputs[3] = {out, NULL, NULL};
  inputs in = {.count = 0};
  operand to = operand_of(out);
  mps_status status = add_input(stream, &in, input, outputs);
  if (status == MPS_STATUS_OK) status = add_input(stream, &in, weight, outputs);
  if (status == MPS_STATUS_OK && bias != NULL) status = add_input(stream, &in, bias, outputs);
  if (status == MPS_STATUS_OK) status = encode_forward(stream, &g, input->dtype, &in, &to);
  release_inputs(&in);
  return status;
}

/* ---- backward ---- */

static mps_status encode_backward_call(mps_stream *stream, const geometry *g, mps_dtype dtype, const inputs *in, const operand *const gradients[3],
                                       double macs, const mps_dense_provider *provider) {
  const operand *grad_output = &in->operands[0], *input = &in->operands[1], *weight = &in->operands[2];
  backward_call c = {provider->convolution_backward, {.forward = dense_convolution(g, dtype)}};
  c.call.forward.input = dense_operand(input);
  c.call.forward.weight = dense_operand(weight);
  c.call.forward.out = dense_operand(grad_output);
  mps_dense_operand *to[3] = {&c.call.grad_input, &c.call.grad_weight, &c.call.grad_bias};
  mps_buffer *buffers[6] = {grad_output->buffer, input->buffer, weight->buffer};
  uint32_t count = 3, passes = 0;
  for (uint32_t i = 0; i < 3; i++) {
    if (gradients[i] == NULL) continue;
    *to[i] = dense_operand(gradients[i]);
    buffers[count++] = gradients[i]->buffer;
    if (i < 2) passes++;
  }
  return mps_dense_call(stream, "convolution_backward", run_backward, &c, sizeof c, buffers, count, false, 10000.0 + PROVIDER_NS * passes * macs);
}

static mps_status encode_backward(mps_stream *stream, const geometry *g, mps_dtype dtype, const inputs *in, const operand *const gradients[3]) {
  const operand *grad_output = &in->operands[0], *input = &in->operands[1], *weight = &in->operands[2];
  double macs = work(g, input, weight, grad_output);
  const mps_dense_provider *provider = mps_dense_choose(stream, MPS_DENSE_CONVOLUTION_BACKWARD, dtype);
  if (provider != NULL && provider->convolution_backward != NULL)
    return encode_backward_call(stream, g, dtype, in, gradients, macs, provider);
  const operand *wide = g->transposed ? grad_output : input, *narrow = g->transposed ? input : grad_output;
  if (gradients[0] != NULL) {
    const operand *to = gradients[0];
    mps_convolution_arguments a = g->transposed ? arguments_of(g, wide, to, weight) : arguments_of(g, to, narrow, weight);
    MPS_TRY(g->transposed ? encode_narrow(stream, "convolution_backward", dtype, a, wide, weight, NULL, to, KERNEL_NS * macs)
                          : encode_wide(stream, "convolution_backward", dtype, a, narrow, weight, NULL, to, KERNEL_NS * macs));
  }
  if (gradients[1] != NULL)
    MPS_TRY(encode_weight(stream, dtype, arguments_of(g, wide, narrow, gradients[1]), wide, narrow, gradients[1], KERNEL_NS * macs));
  return gradients[2] != NULL ? encode_bias(stream, dtype, g, grad_output, gradients[2]) : MPS_STATUS_OK;
}

static mps_status check_gradient(const mps_tensor *gradient, const mps_tensor *like, const char *name) {
  if (gradient == NULL) return MPS_STATUS_OK;
  MPS_TRY(refuse_flags(gradient, name));
  if (gradient->dtype == like->dtype && gradient->rank == like->rank && memcmp(gradient->sizes, like->sizes, like->rank * sizeof(int64_t)) == 0)
    return MPS_STATUS_OK;
  return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "convolution_backward: %s must have the shape and dtype of what it is the gradient of", name);
}

mps_status mps_op_convolution_backward(mps_stream *stream, const mps_tensor *grad_output, const mps_tensor *input, const mps_tensor *weight,
                                       const int64_t *stride, uint32_t stride_count, const int64_t *padding, uint32_t padding_count,
                                       const int64_t *dilation, uint32_t dilation_count, bool transposed, const int64_t *output_padding,
                                       uint32_t output_padding_count, int64_t groups, const mps_tensor *grad_input,
                                       const mps_tensor *grad_weight, const mps_tensor *grad_bias) {
  geometry g;
  MPS_TRY(read_geometry(input, stride, stride_count, padding, padding_count, dilation, dilation_count, transposed, output_padding,
                        output_padding_count, groups, &g));
  MPS_TRY(check_tensors(&g, input, weight, grad_output));
  MPS_TRY(refuse_flags(grad_output, "grad_output"));
  MPS_TRY(refuse_flags(input, "input"));
  MPS_TRY(refuse_flags(weight, "weight"));
  MPS_TRY(check_gradient(grad_input, input, "grad_input"));
  MPS_TRY(check_gradient(grad_weight, weight, "grad_weight"));
  MPS_TRY(check_vector(grad_bias, input->dtype, grad_output->sizes[1], "grad_bias"));
  if (is_empty(grad_output) || is_empty(input) || is_empty(weight)) {
    /* Every element is a sum of nothing. */
    MPS_TRY(mps_operand_fill(stream, grad_input, mps_scalar_int(0)));
    MPS_TRY(mps_operand_fill(stream, grad_weight, mps_scalar_int(0)));
    if (is_empty(grad_output) || grad_bias == NULL) return mps_operand_fill(stream, grad_bias, mps_scalar_int(0));
    operand from = operand_of(grad_output), to = operand_of(grad_bias);
    return encode_bias(stream, input->dtype, &g, &from, &to);
  }
  const mps_tensor *const outputs[3] = {grad_input, grad_weight, grad_bias};
  operand gradients[3];
  const operand *wanted[3] = {NULL, NULL, NULL};
  for (uint32_t i = 0; i < 3; i++) {
    if (outputs[i] == NULL || is_empty(outputs[i])) continue;
    gradients[i] = operand_of(outputs[i]);
    wanted[i] = &gradients[i];
  }
  inputs in = {.count = 0};
  mps_status status = add_input(stream, &in, grad_output, outputs);
  if (status == MPS_STATUS_OK) status = add_input(stream, &in, input, outputs);
  if (status == MPS_STATUS_OK) status = add_input(stream, &in, weight, outputs);
  if (status == MPS_STATUS_OK) status = encode_backward(stream, &g, input->dtype, &in, wanted);
  release_inputs(&in);
  return status;
}
