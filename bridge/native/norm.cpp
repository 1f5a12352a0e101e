/* SPDX-License-Identifier: BSD-3-Clause
 *
 * norm: normalisations, which PyTorch leaves to allocate their own results. Statistics have the dtype that the CPU gives them: the
 * parameters' float32 with half inputs, else the input's.
 */
#include <limits>

#include <ATen/native/Resize.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#include "bridge/convert.h"
#include "bridge/kernels/norm.h"
#include "openmps/ops/norm.h"

namespace openmps::native {

namespace {

using at::Tensor;
using Maybe = std::optional<Tensor>;

bool given(const Maybe &value) { return value.has_value() && value->defined(); }

at::TensorOptions statistics_options(const Tensor &input, std::initializer_list<const Maybe *> parameters) {
  for (const Maybe *parameter : parameters)
    if (given(*parameter) && (*parameter)->scalar_type() == at::kFloat) return input.options().dtype(at::kFloat);
  return input.options();
}

// An output that may be absent.
struct Result {
  Tensor tensor;
  std::optional<Operand> operand;
  Result(bool wanted, const Tensor &like) {
    if (wanted) set(at::empty_like(like, like.suggest_memory_format()));
  }
  // As a contiguous tensor of its own.
  Result(bool wanted, at::IntArrayRef sizes, const at::TensorOptions &options) {
    if (wanted) set(empty(sizes, options));
  }
  const mps_tensor *pointer() const { return operand.has_value() ? operand->pointer() : nullptr; }

 private:
  void set(Tensor value) {
    tensor = std::move(value);
    operand.emplace(tensor, Operand::output);
  }
};

// ---- rows ----
void check_rows(const Tensor &input, at::IntArrayRef shape, const Maybe &weight, const Maybe &bias) {
  TORCH_CHECK(!shape.empty(), "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got normalized_shape = ",
              shape);
  TORCH_CHECK(!given(weight) || weight->sizes() == shape, "Expected weight to be of same shape as normalized_shape, but got weight of shape ",
              weight->sizes(), " and normalized_shape = ", shape);
  TORCH_CHECK(!given(bias) || bias->sizes() == shape, "Expected bias to be of same shape as normalized_shape, but got bias of shape ", bias->sizes(),
              " and normalized_shape = ", shape);
  if (input.dim() < static_cast<int64_t>(shape.size()) || input.sizes().slice(input.dim() - shape.size()) != shape) {
    std::stringstream text;
    text << "Given normalized_shape=" << shape << ", expected input with shape [*";
    for (const int64_t size : shape) text << ", " << size;
    text << "], but got input of size" << input.sizes();
    TORCH_CHECK(false, text.str());
  }
}

at::DimVector statistics_shape(const Tensor &input, at::IntArrayRef shape) {
  at::DimVector sizes(input.sizes().begin(), input.sizes().end() - shape.size());
  sizes.resize(input.dim(), 1);
  return sizes;
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> layer_norm_mps(const Tensor &input, at::IntArrayRef normalized_shape, const Maybe &weight, const Maybe &bias,
                                                  double eps) {
  check_rows(input, normalized_shape, weight, bias);
  const at::TensorOptions options = statistics_options(input, {&weight, &bias});
  const at::DimVector shape = statistics_shape(input, normalized_shape);
  Tensor out = empty(input.sizes(), input.options()), mean = empty(shape, options), rstd = empty(shape, options);
  const Operand input_(input, Operand::plain), weight_(weight, Operand::plain), bias_(bias, Operand::plain);
  const Operand out_(out, Operand::output), mean_(mean, Operand::output), rstd_(rstd, Operand::output);
  const List<int64_t> shape_(normalized_shape);
  check(mps_op_layer_norm(stream(), input_.pointer(), shape_.data(), shape_.count(), weight_.pointer_or_null(), bias_.pointer_or_null(), eps,
                          out_.pointer(), mean_.pointer(), rstd_.pointer()));
  return {out, mean, rstd};
}

std::tuple<Tensor, Tensor, Tensor> layer_norm_backward_mps(const Tensor &grad_out, const Tensor &input, at::IntArrayRef normalized_shape,
                                                           const Tensor &mean, const Tensor &rstd, const Maybe &weight, const Maybe &bias,
                                                           std::array<bool, 3> output_mask) {
  check_rows(input, normalized_shape, weight, bias);
  const Result grad_input(output_mask[0], input.sizes(), input.options());
  const Result grad_weight(output_mask[1] && given(weight), normalized_shape, given(weight) ? weight->options() : input.options());
  const Result grad_bias(output_mask[2], normalized_shape, given(bias) ? bias->options() : given(weight) ? weight->options() : input.options());
  const Operand grad_(grad_out, Operand::plain), input_(input, Operand::plain), mean_(mean, Operand::plain), rstd_(rstd, Operand::plain);
  const Operand weight_(weight, Operand::plain);
  const List<int64_t> shape_(normalized_shape);
  check(mps_op_layer_norm_backward(stream(), grad_.pointer(), input_.pointer(), shape_.data(), shape_.count(), mean_.pointer(), rstd_.pointer(),
                                   weight_.pointer_or_null(), grad_input.pointer(), grad_weight.pointer(), grad_bias.pointer()));
  return {grad_input.tensor, grad_weight.tensor, grad_bias.tensor};
}

std::tuple<Tensor, Tensor> _fused_rms_norm_mps(const Tensor &input, at::IntArrayRef normalized_shape, const Maybe &weight, std::optional<double> eps) {
  check_rows(input, normalized_shape, weight, std::nullopt);
  Tensor out = empty(input.sizes(), input.options());
  Tensor rstd = empty(statistics_shape(input, normalized_shape), input.options().dtype(at::kFloat));
  const Operand input_(input, Operand::plain), weight_(weight, Operand::plain), out_(out, Operand::output), rstd_(rstd, Operand::output);
  const List<int64_t> shape_(normalized_shape);
  check(mps_op_rms_norm(stream(), input_.pointer(), shape_.data(), shape_.count(), weight_.pointer_or_null(),
                        eps.value_or(std::numeric_limits<float>::epsilon()), out_.pointer(), rstd_.pointer()));
  return {out, rstd};
}

namespace {

// Upstream has no gradient of the fused form on MPS; with one, rms_norm stays one kernel in training too.
std::tuple<Tensor, Tensor> rms_norm_backward(const Tensor &grad_out, const Tensor &input, at::IntArrayRef normalized_shape, const Tensor &rstd,
                                             const Maybe &weight, std::array<bool, 2> output_mask) {
  const Result grad_input(output_mask[0], input.sizes(), input.options());
  const Result grad_weight(output_mask[1] && given(weight), normalized_shape, given(weight) ? weight->options() : input.options());
  const Operand grad_(grad_out, Operand::plain), input_(input, Operand::plain), rstd_(rstd, Operand::plain), weight_(weight, Operand::plain);
  const List<int64_t> shape_(normalized_shape);
  check(mps_op_rms_norm_backward(stream(), grad_.pointer(), input_.pointer(), shape_.data(), shape_.count(), rstd_.pointer(), weight_.pointer_or_null(),
                                 grad_input.pointer(), grad_weight.pointer()));
  return {grad_input.tensor, grad_weight.tensor};
}

TORCH_LIBRARY_IMPL(aten, MPS, m) { m.impl("_fused_rms_norm_backward", rms_norm_backward); }

// ---- batch norm ----
struct BatchNorm {
  const Tensor &input;
  const Maybe &weight, &bias;
  Maybe running_mean, running_var;
  bool training;
  double momentum, eps;

  at::TensorOptions options() const { return statistics_options(input, {&weight, &bias, &running_mean}); }
  // Evaluation saves nothing.
  at::DimVector saved_shape() const { return {training ? input.size(1) : 0}; }

  void run(const Tensor &out, const Tensor &save_mean, const Tensor &save_invstd) const {
    const Operand input_(input, Operand::plain), weight_(weight, Operand::plain), bias_(bias, Operand::plain);
    const Operand mean_(running_mean, Operand::plain), var_(running_var, Operand::plain), out_(out, Operand::output);
    const Operand save_mean_(save_mean, Operand::output), save_invstd_(save_invstd, Operand::output);
    check(mps_op_batch_norm(stream(), input_.pointer(), weight_.pointer_or_null(), bias_.pointer_or_null(), mean_.pointer_or_null(),
                            var_.pointer_or_null(), training, momentum, eps, out_.pointer(), training ? save_mean_.pointer() : nullptr,
                            training ? save_invstd_.pointer() : nullptr));
  }

  std::tuple<Tensor, Tensor, Tensor> make() const {
    check_rank();
    Tensor out = at::empty_like(input, input.suggest_memory_format());
    Tensor save_mean = empty(saved_shape(), options()), save_invstd = empty(saved_shape(), options());
    run(out, save_mean, save_invstd);
    return {out, save_mean, save_invstd};
  }

  std::tuple<Tensor &, Tensor &, Tensor &> write(Tensor &out, Tensor &save_mean, Tensor &save_invstd) const {
    check_rank();
    TORCH_CHECK(out.scalar_type() == input.scalar_type(), "expected scalar type ", input.scalar_type(), " but found ", out.scalar_type());
    at::native::resize_output(out, input.sizes());
    at::native::resize_output(save_mean, saved_shape());
    at::native::resize_output(save_invstd, saved_shape());
    run(out, save_mean, save_invstd);
    return {out, save_mean, save_invstd};
  }

 private:
  void check_rank() const { TORCH_CHECK(input.dim() >= 2, "batch_norm: expected an input of at least 2 dimensions, but got ", input.dim()); }
};

std::tuple<Tensor, Tensor, Tensor> batch_norm_gradients(const Tensor &grad_out, const Tensor &input, const Maybe &weight, const Maybe &running_mean,
                                                        const Maybe &running_var, const Maybe &save_mean, const Maybe &save_invstd, bool train, double eps,
                                                        std::array<bool, 3> output_mask) {
  const at::TensorOptions options = given(weight) ? weight->options() : statistics_options(input, {&running_mean, &save_mean});
  const Result grad_input(output_mask[0], input);
  const Result grad_weight(output_mask[1], {input.size(1)}, options), grad_bias(output_mask[2], {input.size(1)}, options);
  const Operand grad_(grad_out, Operand::plain), input_(input, Operand::plain), weight_(weight, Operand::plain);
  const Operand mean_(running_mean, Operand::plain), var_(running_var, Operand::plain);
  const Operand save_mean_(save_mean, Operand::plain), save_invstd_(save_invstd, Operand::plain);
  check(mps_op_batch_norm_backward(stream(), grad_.pointer(), input_.pointer(), weight_.pointer_or_null(), train ? nullptr : mean_.pointer_or_null(),
                                   train ? nullptr : var_.pointer_or_null(), train ? save_mean_.pointer_or_null() : nullptr,
                                   train ? save_invstd_.pointer_or_null() : nullptr, train, eps, grad_input.pointer(), grad_weight.pointer(),
                                   grad_bias.pointer()));
  return {grad_input.tensor, grad_weight.tensor, grad_bias.tensor};
}

// Upstream's composite calls the CPU's kernel whatever the device is.
std::tuple<Tensor, Tensor, Tensor, Tensor> batch_norm_no_update(const Tensor &input, const Maybe &weight, const Maybe &bias, const Maybe &running_mean,
                                                                const Maybe &running_var, double momentum, double eps) {
  auto [out, mean, invstd] = BatchNorm{input, weight, bias, running_mean, running_var, false, momentum, eps}.make();
  return {out, mean, invstd, empty({0}, input.options().dtype(at::kByte))};
}

TORCH_LIBRARY_IMPL(aten, MPS, m) { m.impl("_batch_norm_no_update", batch_norm_no_update); }

}  // namespace

std::tuple<Tensor, Tensor, Tensor> batch_norm_mps(const Tensor &input, const Maybe &weight, const Maybe &bias, const Maybe &running_mean,
                                                  const Maybe &running_var, bool training, double momentum, double eps) {
  return BatchNorm{input, weight, bias, running_mean, running_var, training, momentum, eps}.make();
}

std::tuple<Tensor &, Tensor &, Tensor &> batch_norm_mps_out(const Tensor &input, const Maybe &weight, const Maybe &bias, const Maybe &running_mean,
                                                            const Maybe &running_var, bool training, double momentum, double eps, Tensor &out,
                                                            Tensor &save_mean, Tensor &save_invstd) {
  return BatchNorm{input, weight, bias, running_mean, running_var, training, momentum, eps}.write(out, save_mean, save_invstd);
}

std::tuple<Tensor, Tensor, Tensor> _batch_norm_legit_mps(const Tensor &input, const Maybe &weight, const Maybe &bias, Tensor &running_mean,
                                                         Tensor &running_var, bool training, double momentum, double eps) {
  return BatchNorm{input, weight, bias, running_mean, running_var, training, momentum, eps}.make();
}

std::tuple<Tensor &, Tensor &, Tensor &> _batch_norm_legit_mps_out(const Tensor &input, const Maybe &weight, const Maybe &bias, Tensor &running_mean,
                                                                   Tensor &running_var, bool training, double momentum, double eps, Tensor &out,
                                                                   Tensor &save_mean, Tensor &save_invstd) {
  return BatchNorm{input, weight, bias, running_mean, running_var, training, momentum, eps}.write(out, save_mean, save_invstd);
}

std::tuple<Tensor, Tensor, Tensor> _batch_norm_legit_no_stats_mps(const Tensor &input, const Maybe &weight, const Maybe &bias, bool training,
                                                                  double momentum, double eps) {
  return BatchNorm{input, weight, bias, std::nullopt, std::nullopt, training, momentum, eps}.make();
}

std::tuple<Tensor &, Tensor &, Tensor &> _batch_norm_legit_no_stats_mps_out(const Tensor &input, const Maybe &weight, const Maybe &bias, bool training,
                                                                            double momentum, double eps, Tensor &out, Tensor &save_mean,
                                                                            Tensor &save_invstd) {
  return BatchNorm{input, weight, bias, std::nullopt, std::nullopt, training, momentum, eps}.write(out, save_mean, save_invstd);
}

std::tuple<Tensor, Tensor, Tensor, Tensor> _batch_norm_with_update_mps(const Tensor &input, const Maybe &weight, const Maybe &bias, Tensor &running_mean,
                                                                       Tensor &running_var, double momentum, double eps) {
  auto [out, mean, invstd] = BatchNorm{input, weight, bias, running_mean, running_var, true, momentum, eps}.make();
  return {out, mean, invstd, empty({0}, input.options().dtype(at::kByte))};
}

std::tuple<Tensor &, Tensor &, Tensor &, Tensor &> _batch_norm_with_update_mps_out(const Tensor &input, const Maybe &weight, const Maybe &bias,
                                                                                   Tensor &running_mean, Tensor &running_var, double momentum, double eps,
                                                                                   Tensor &out, Tensor &save_mean, Tensor &save_invstd, Tensor &reserve) {
  BatchNorm{input, weight, bias, running_mean, running_var, true, momentum, eps}.write(out, save_mean, save_invstd);
  return {out, save_mean, save_invstd, reserve};
}

std::tuple<Tensor, Tensor, Tensor> batch_norm_backward_mps(const Tensor &grad_out, const Tensor &input, const Maybe &weight, const Maybe &running_mean,
                                                           const Maybe &running_var, const Maybe &save_mean, const Maybe &save_invstd, bool train,
                                                           double eps, std::array<bool, 3> output_mask) {
  return batch_norm_gradients(grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, output_mask);
}

std::tuple<Tensor, Tensor, Tensor> _new_batch_norm_backward_mps(const Tensor &grad_out, const Tensor &input, const Tensor &weight,
                                                                const Maybe &running_mean, const Maybe &running_var, const Maybe &save_mean,
                                                                const Maybe &save_var, bool update, double eps, std::array<bool, 3> output_mask,
                                                                const Tensor &) {
  return batch_norm_gradients(grad_out, input, weight, running_mean, running_var, save_mean, save_var, update, eps, output_mask);
}

// ---- group norm ----
std::tuple<Tensor, Tensor, Tensor> native_group_norm(const Tensor &input, const Maybe &weight, const Maybe &bias, int64_t N, int64_t C, int64_t HxW,
                                                     int64_t group, double eps) {
  const at::TensorOptions options = statistics_options(input, {&weight, &bias});
  Tensor out = empty(input.sizes(), input.options()), mean = empty({N, group}, options), rstd = empty({N, group}, options);
  const Tensor x = input.contiguous().view({N, C, HxW});
  const Operand input_(x, Operand::plain), weight_(weight, Operand::plain), bias_(bias, Operand::plain);
  const Operand out_(out.view({N, C, HxW}), Operand::output), mean_(mean, Operand::output), rstd_(rstd, Operand::output);
  check(mps_op_group_norm(stream(), input_.pointer(), weight_.pointer_or_null(), bias_.pointer_or_null(), group, eps, out_.pointer(), mean_.pointer(),
                          rstd_.pointer()));
  return {out, mean, rstd};
}

std::tuple<Tensor, Tensor, Tensor> native_group_norm_backward(const Tensor &grad_out, const Tensor &input, const Tensor &mean, const Tensor &rstd,
                                                              const Maybe &weight, int64_t N, int64_t C, int64_t HxW, int64_t group,
                                                              std::array<bool, 3> output_mask) {
  const at::TensorOptions options = given(weight) ? weight->options() : input.options();
  const Result grad_input(output_mask[0], {N, C, HxW}, input.options()), grad_weight(output_mask[1], {C}, options), grad_bias(output_mask[2], {C}, options);
  const Tensor x = input.contiguous().view({N, C, HxW}), g = grad_out.contiguous().view({N, C, HxW});
  const Operand grad_(g, Operand::plain), input_(x, Operand::plain), mean_(mean, Operand::plain), rstd_(rstd, Operand::plain);
  const Operand weight_(weight, Operand::plain);
  check(mps_op_group_norm_backward(stream(), grad_.pointer(), input_.pointer(), mean_.pointer(), rstd_.pointer(), weight_.pointer_or_null(), group,
                                   grad_input.pointer(), grad_weight.pointer(), grad_bias.pointer()));
  return {grad_input.tensor.defined() ? grad_input.tensor.view(input.sizes()) : grad_input.tensor, grad_weight.tensor, grad_bias.tensor};
}

// ---- weight norm ----
std::tuple<Tensor, Tensor> weight_norm_mps(const Tensor &v, const Tensor &g, int64_t dim) {
  Tensor out = at::empty_like(v), norms = empty(g.sizes(), g.options());
  const Operand v_(v, Operand::plain), g_(g, Operand::plain), out_(out, Operand::output), norms_(norms, Operand::output);
  check(mps_op_weight_norm(stream(), v_.pointer(), g_.pointer(), dim, out_.pointer(), norms_.pointer()));
  return {out, norms};
}

std::tuple<Tensor, Tensor> weight_norm_backward_mps(const Tensor &grad_w, const Tensor &saved_v, const Tensor &saved_g, const Tensor &saved_norms,
                                                    int64_t dim) {
  Tensor grad_v = at::empty_like(saved_v), grad_g = at::empty_like(saved_g);
  const Operand grad_(grad_w, Operand::plain), v_(saved_v, Operand::plain), g_(saved_g, Operand::plain), norms_(saved_norms, Operand::plain);
  const Operand grad_v_(grad_v, Operand::output), grad_g_(grad_g, Operand::output);
  check(mps_op_weight_norm_backward(stream(), grad_.pointer(), v_.pointer(), g_.pointer(), norms_.pointer(), dim, grad_v_.pointer(), grad_g_.pointer()));
  return {grad_v, grad_g};
}

}  // namespace openmps::native
